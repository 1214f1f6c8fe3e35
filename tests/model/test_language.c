/* Models of language: GPT against PyTorch's numbers, NRGPT against the golden case of its authors'
 * model, in windows side by side, too; causality, backends, dropout, and what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../energy/golden.h"
#include "basin/language.h"
#include "support/lab.h"

typedef struct scene {
    lab lab;
    basin_language model;
    basin_expr ids, label, logits, loss;
    int64_t windows, tokens;
} scene;

static bool flag(const basin_bundle *golden, const char *key) {
    const char *text = basin_bundle_meta(golden, key);
    return text && !strcmp(text, "true");
}

/* ---- golden cases ---- */

static basin_language_config gpt_config(const basin_bundle *golden) {
    basin_shape tok = golden_get(golden, "in.tok")->shape,
                pos = golden_get(golden, "in.pos")->shape;
    return (basin_language_config){
        .arch = BASIN_LANGUAGE_GPT,
        .vocabulary = tok.dim[0],
        .context = pos.dim[0],
        .dim = tok.dim[1],
        .heads = (int64_t)golden_number(golden, "heads"),
        .hidden = golden_get(golden, "in.layer0.mlp_w1")->shape.dim[1],
        .steps = (int)golden_number(golden, "layers"),
        .tied = flag(golden, "tied"),
        .bias = flag(golden, "bias"),
    };
}

static basin_language_config nrgpt_config(const basin_bundle *golden) {
    basin_shape tok = golden_get(golden, "in.tok")->shape,
                pos = golden_get(golden, "in.pos")->shape;
    assert_string_equal(basin_bundle_meta(golden, "ff"), "\"2w\"");
    return (basin_language_config){
        .arch = BASIN_LANGUAGE_NRGPT,
        .vocabulary = tok.dim[0],
        .context = pos.dim[0],
        .dim = tok.dim[1],
        .heads = golden_get(golden, "in.h")->shape.dim[0],
        .hidden = golden_get(golden, "in.w1")->shape.dim[0],
        .steps = (int)golden_number(golden, "steps"),
        .feed = BASIN_ZOO_FEED_2W,
        .strict = flag(golden, "strict"),
    };
}

static void fill(lab *l, const basin_bundle *golden) {
    basin_error error;
    for (size_t i = 0; i < l->params.count; i++) {
        char name[128];
        const char *state = basin_expr_name(l->params.param[i].state);
        snprintf(name, sizeof name, "in.%s", state);
        if (basin_store_write(l->store, state, golden_get(golden, name), &error))
            fail_msg("%s", error.text);
    }
}

/* The golden windows `repeat` times over. */
static void scene_open(scene *s, const char *backend, const basin_bundle *golden,
                       basin_language_config config, int64_t windows, int64_t repeat) {
    const basin_tensor *ids = golden_get(golden, "in.ids"), *label = golden_get(golden, "in.label");
    int64_t count = basin_shape_count(ids->shape);
    int32_t *list[2] = {malloc((size_t)(count * repeat) * 4), malloc((size_t)(count * repeat) * 4)};
    for (int64_t i = 0; i < count * repeat; i++) {
        list[0][i] = ((const int32_t *)ids->data)[i % count];
        list[1][i] = ((const int32_t *)label->data)[i % count];
    }
    s->windows = windows * repeat;
    s->tokens = count / windows;
    lab_open(&s->lab, backend, 1);
    if (basin_language_declare(&s->model, &s->lab.params, &config))
        fail_msg("%s", basin_graph_error(s->lab.graph)->text);
    s->ids = lab_index(&s->lab, "ids", list[0], count * repeat);
    s->label = lab_index(&s->lab, "label", list[1], count * repeat);
    basin_expr x = basin_language_tokens(&s->model, s->ids, s->windows, NULL, NULL);
    s->logits = basin_language_logits(&s->model, x);
    s->loss = basin_language_loss(s->logits, s->label);
    fill(&s->lab, golden);
    free(list[0]);
    free(list[1]);
}

static double length(const basin_tensor *t) {
    double sum = 0;
    for (int64_t i = 0; i < basin_shape_count(t->shape); i++)
        sum += basin_tensor_at(t, i) * basin_tensor_at(t, i);
    return sqrt(sum);
}

/* A bias of all keys changes no share of the softmax: its gradient is 0 but for rounding. */
static void compare(lab *l, basin_expr found, const basin_bundle *golden, const char *name,
                    double tolerance) {
    basin_tensor value = lab_value(l, found), want = *golden_get(golden, name);
    assert_int_equal(basin_shape_count(value.shape), basin_shape_count(want.shape));
    value.shape = want.shape;
    if (length(&want) < 1e-14)
        assert_true(length(&value) < tolerance);
    else
        lab_assert_near(&value, &want, tolerance, name);
    basin_tensor_free(&value);
}

static void compare_gradients(scene *s, const basin_bundle *golden, double tolerance) {
    const basin_params *p = &s->lab.params;
    for (size_t i = 0; i < p->count; i++) {
        char name[128];
        snprintf(name, sizeof name, "grad.%s", basin_expr_name(p->param[i].state));
        compare(&s->lab, basin_grad(s->loss, p->param[i].state), golden, name, tolerance);
    }
}

static void check_case(const char *name, int64_t windows,
                       basin_language_config (*config)(const basin_bundle *)) {
    static const struct {
        const char *backend;
        double values, gradients;
    } way[] = {{"ref", 1e-12, 1e-11}, {"cpu", 1e-5, 1e-4}};
    basin_bundle *golden = golden_open(name);
    for (int i = 0; i < 2; i++) {
        scene s;
        scene_open(&s, way[i].backend, golden, config(golden), windows, 1);
        compare(&s.lab, s.logits, golden, "out.logits", way[i].values);
        compare(&s.lab, s.loss, golden, "out.loss", way[i].values);
        compare_gradients(&s, golden, way[i].gradients);
        lab_close(&s.lab);
    }
    basin_bundle_free(golden);
}

TEST(gpt_is_pytorchs) {
    check_case("language/gpt", 2, gpt_config);
    check_case("language/gpt_tied", 2, gpt_config);
}

TEST(nrgpt_is_the_authors) { check_case("zoo/nrgpt_lm", 1, nrgpt_config); }

/* The loss is a mean, so that three equal windows have the gradients of one. */
TEST(windows_do_not_see_each_other) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *golden = golden_open("zoo/nrgpt_lm");
    scene s;
    scene_open(&s, "ref", golden, nrgpt_config(golden), 1, 3);
    compare(&s.lab, s.loss, golden, "out.loss", 1e-12);
    compare_gradients(&s, golden, 1e-11);
    lab_close(&s.lab);
}

TEST(energies_are_the_authors) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *golden = golden_open("zoo/nrgpt_lm");
    scene s;
    basin_expr energy[8];
    scene_open(&s, "ref", golden, nrgpt_config(golden), 1, 1);
    assert_non_null(basin_language_tokens(&s.model, s.ids, 1, NULL, energy));
    const basin_tensor *want = golden_get(golden, "out.energy"); /* [4, N, 2] */
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor scale = lab_value(&s.lab, s.model.nrgpt.scale);
    double factor[2] = {1, basin_tensor_at(&scale, 0)};
    for (int i = 0; i < 8; i++) {
        basin_tensor found = lab_value(&s.lab, energy[i]);
        for (int64_t n = 0; n < s.tokens; n++) {
            double value = basin_tensor_at(want, ((i / 2) * s.tokens + n) * 2 + i % 2);
            assert_true(fabs(basin_tensor_at(&found, n) - factor[i % 2] * value) <
                        1e-10 * fmax(1, fabs(value)));
        }
        basin_tensor_free(&found);
    }
    lab_close(&s.lab);
}

/* ---- models of our own ---- */

enum { V = 9, N = 6, B = 2, D = 8, H = 2, T = 2 };

static const int32_t ids_of[B * N] = {0, 3, 8, 1, 1, 5, 2, 7, 4, 6, 0, 8};

static basin_language_config small(basin_language_arch arch) {
    return (basin_language_config){.arch = arch,
                                   .vocabulary = V,
                                   .context = N,
                                   .dim = D,
                                   .heads = H,
                                   .hidden = 11,
                                   .steps = T,
                                   .bias = true};
}

static void small_open(scene *s, basin_language_config config, basin_expr seed) {
    lab *l = &s->lab;
    if (basin_language_declare(&s->model, &l->params, &config))
        fail_msg("%s", basin_graph_error(l->graph)->text);
    s->ids = lab_index(l, "ids", ids_of, B * N);
    s->label = lab_index(l, "label", ids_of, B * N);
    basin_expr x = basin_language_tokens(&s->model, s->ids, B, seed, NULL);
    s->logits = basin_language_logits(&s->model, x);
    s->loss = basin_language_loss(s->logits, s->label);
    lab_fill(l, 5, 0.6);
}

/* A later token leaves the rows before it, and the other window, as they are to the bit. */
static void check_causal(const char *backend, basin_language_config config) {
    scene s;
    enum { CHANGED = 3 };
    int32_t other[B * N];
    memcpy(other, ids_of, sizeof other);
    other[CHANGED] = (other[CHANGED] + 1) % V;
    lab_open(&s.lab, backend, 1);
    small_open(&s, config, NULL);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor before = lab_value(&s.lab, s.logits);
    lab_give(&s.lab, s.ids, other);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor after = lab_value(&s.lab, s.logits);
    for (int64_t n = 0; n < B * N; n++) {
        bool same = true;
        for (int64_t v = 0; v < V; v++)
            same =
                same && basin_tensor_at(&before, n * V + v) == basin_tensor_at(&after, n * V + v);
        assert_int_equal(same, n < CHANGED || n >= N);
    }
    lab_close(&s.lab);
}

TEST(later_tokens_are_not_seen) {
    for (int strict = 0; strict < 2; strict++)
        for (int feed = BASIN_ZOO_FEED_1; feed <= BASIN_ZOO_FEED_2W; feed++) {
            basin_language_config config = small(BASIN_LANGUAGE_NRGPT);
            config.feed = (basin_zoo_feed)feed;
            config.strict = strict;
            check_causal("ref", config);
            check_causal("cpu", config);
        }
    check_causal("ref", small(BASIN_LANGUAGE_GPT));
    check_causal("cpu", small(BASIN_LANGUAGE_GPT));
}

TEST(gradients_are_differences) {
    for (int feed = BASIN_ZOO_FEED_1; feed <= BASIN_ZOO_FEED_2W; feed++) {
        scene s;
        basin_language_config config = small(BASIN_LANGUAGE_NRGPT);
        config.feed = (basin_zoo_feed)feed;
        config.strict = feed == BASIN_ZOO_FEED_1;
        config.tied = feed == BASIN_ZOO_FEED_2;
        lab_open(&s.lab, "ref", 1);
        small_open(&s, config, NULL);
        lab_check_gradients(&s.lab, s.loss, 1e-7, "NRGPT");
        lab_close(&s.lab);
    }
}

/* Dropout has its gradients: the same draws before and after a parameter is moved. */
TEST(dropout_is_differentiated) {
    static const int32_t seed[2] = {3, 4};
    for (int way = 0; way < 3; way++) {
        scene s;
        basin_language_config config = small(way == 1 ? BASIN_LANGUAGE_GPT : BASIN_LANGUAGE_NRGPT);
        *(way == 2 ? &config.dropout_step : &config.dropout) = 0.4;
        lab_open(&s.lab, "ref", 1);
        small_open(&s, config, lab_index(&s.lab, "seed", seed, 2));
        basin_tensor with = lab_value(&s.lab, s.loss);
        basin_expr x = basin_language_tokens(&s.model, s.ids, B, NULL, NULL);
        basin_expr plain = basin_language_loss(basin_language_logits(&s.model, x), s.label);
        basin_tensor without = lab_value(&s.lab, plain);
        assert_true(fabs(basin_tensor_at(&with, 0) - basin_tensor_at(&without, 0)) > 1e-6);
        lab_check_gradients(&s.lab, s.loss, 1e-7, "dropout");
        basin_tensor_free(&with);
        basin_tensor_free(&without);
        lab_close(&s.lab);
    }
}

/* Windows of many tokens stream their scores, those of few keep them: both give the same. */
static void check_lengths(const char *backend, bool strict, double tolerance) {
    enum { LONG = 10, SHORT = 8 };
    basin_tensor found[2];
    for (int i = 0; i < 2; i++) {
        scene s;
        int32_t list[LONG];
        basin_language_config config = small(BASIN_LANGUAGE_NRGPT);
        for (int n = 0; n < LONG; n++) list[n] = 7 * n % V;
        config.dim = 4;
        config.context = LONG;
        config.strict = strict;
        lab_open(&s.lab, backend, 1);
        basin_language_declare(&s.model, &s.lab.params, &config);
        s.ids = lab_index(&s.lab, "ids", list, i ? SHORT : LONG);
        basin_expr x = basin_language_tokens(&s.model, s.ids, 1, NULL, NULL);
        x = basin_slice(basin_language_logits(&s.model, x), 1, 0, SHORT);
        lab_fill(&s.lab, 5, 0.6);
        found[i] = lab_value(&s.lab, basin_grad(basin_sum_all(basin_square(x)), s.model.nrgpt.h));
        lab_close(&s.lab);
    }
    lab_assert_near(&found[0], &found[1], tolerance, "scores kept and streamed");
    basin_tensor_free(&found[0]);
    basin_tensor_free(&found[1]);
}

TEST(scores_are_kept_or_streamed) {
    for (int strict = 0; strict < 2; strict++) {
        check_lengths("ref", strict, 1e-12);
        check_lengths("cpu", strict, 1e-4);
    }
}

/* Scores times beta, and the energy over it: that of matrices beta h, over beta. Kept and streamed.
 */
TEST(beta_is_an_inverse_temperature) {
    for (int64_t tokens = N; tokens <= 3 * D; tokens += 3 * D - N) {
        scene s;
        lab_open(&s.lab, "ref", 1);
        small_open(&s, small(BASIN_LANGUAGE_NRGPT), NULL);
        basin_zoo_nrgpt cool = s.model.nrgpt, narrow = s.model.nrgpt;
        cool.beta = 0.25;
        narrow.h = basin_scale(narrow.h, 0.25);
        basin_expr g =
            basin_sin(basin_reshape(basin_iota(s.lab.graph, tokens * D), BASIN_SHAPE(tokens, D)));
        basin_energy a = basin_zoo_nrgpt_energy(&cool, NULL);
        basin_energy b = basin_zoo_nrgpt_energy(&narrow, NULL);
        basin_tensor one = lab_value(&s.lab, basin_energy_term(&a, g, 0));
        basin_tensor two = lab_value(&s.lab, basin_scale(basin_energy_term(&b, g, 0), 4));
        lab_assert_near(&one, &two, 1e-12, "beta");
        basin_tensor_free(&one);
        basin_tensor_free(&two);
        lab_close(&s.lab);
    }
}

static basin_tensor moved(double alpha) {
    scene s;
    basin_language_config config = small(BASIN_LANGUAGE_NRGPT);
    config.steps = 1;
    config.alpha = alpha;
    lab_open(&s.lab, "ref", 1);
    small_open(&s, config, NULL);
    basin_expr start = basin_reshape(basin_gather(s.model.tok, s.ids), BASIN_SHAPE(B, N, D));
    start = basin_add(start, s.model.pos);
    basin_expr x =
        basin_reshape(basin_language_tokens(&s.model, s.ids, B, NULL, NULL), BASIN_SHAPE(B, N, D));
    basin_tensor by = lab_value(&s.lab, basin_scale(basin_sub(x, start), 1 / alpha));
    lab_close(&s.lab);
    return by;
}

TEST(alpha_is_the_size_of_a_step) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor whole = moved(1), half = moved(0.5);
    lab_assert_near(&half, &whole, 1e-12, "alpha");
}

TEST(recomputation_changes_nothing) {
    for (int arch = 0; arch < 2; arch++) {
        basin_tensor found[2];
        for (int again = 0; again < 2; again++) {
            scene s;
            basin_language_config config = small(arch ? BASIN_LANGUAGE_GPT : BASIN_LANGUAGE_NRGPT);
            config.recompute = again;
            lab_open(&s.lab, "ref", 1);
            small_open(&s, config, NULL);
            found[again] = lab_value(&s.lab, basin_grad(s.loss, s.model.tok));
            lab_close(&s.lab);
        }
        lab_assert_near(&found[0], &found[1], 1e-14, "recompute");
        basin_tensor_free(&found[0]);
        basin_tensor_free(&found[1]);
    }
}

/* ---- what is refused ---- */

static void check_refused(basin_language_config config, const char *words) {
    BASIN_AT_EXIT(lab_close) lab l;
    basin_language model;
    lab_open(&l, "ref", 1);
    assert_int_not_equal(basin_language_declare(&model, &l.params, &config), BASIN_OK);
    assert_non_null(strstr(basin_graph_error(l.graph)->text, words));
}

TEST(wrong_sizes_are_refused) {
    basin_language_config config = small(BASIN_LANGUAGE_GPT);
    config.heads = 3;
    check_refused(config, "3 heads, wanted a divisor of D 8");
    config = small(BASIN_LANGUAGE_NRGPT);
    config.steps = 0;
    check_refused(config, "0 steps");
    config = small(BASIN_LANGUAGE_NRGPT);
    config.vocabulary = 0;
    check_refused(config, "0 tokens");
}

TEST(a_window_may_not_be_longer_than_the_context) {
    scene s;
    lab_open(&s.lab, "ref", 1);
    small_open(&s, small(BASIN_LANGUAGE_GPT), NULL);
    assert_null(basin_language_tokens(&s.model, s.ids, 1, NULL, NULL));
    assert_non_null(strstr(basin_graph_error(s.lab.graph)->text, "at most 6 tokens a window"));
    lab_close(&s.lab);
}

TEST(a_gpt_has_no_energies) {
    scene s;
    basin_expr energy[2 * (T + 1)];
    lab_open(&s.lab, "ref", 1);
    small_open(&s, small(BASIN_LANGUAGE_GPT), NULL);
    assert_null(basin_language_tokens(&s.model, s.ids, B, NULL, energy));
    assert_non_null(strstr(basin_graph_error(s.lab.graph)->text, "which has none"));
    lab_close(&s.lab);
}
