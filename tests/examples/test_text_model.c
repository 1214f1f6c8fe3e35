/* The language models of examples/text: GPT against PyTorch's numbers, NRGPT against the golden
 * case of its authors' model, energies included; windows side by side; causality; gradients of
 * dropout. */
#include "../../examples/text/model.h"
#include "engine/energy/golden.h"
#include "support/lab.h"

typedef struct scene {
    lab lab; /* its graph and parameters are the network's */
    network n;
    basin_expr label, loss;
} scene;

/* The network on these ids, its graph and parameters in the lab. */
static void scene_open(scene *s, const char *backend, const config *c, const int32_t *ids,
                       const int32_t *label, int64_t windows, int64_t tokens, bool dropout) {
    static const int32_t seed[2] = {3, 4};
    lab_open(&s->lab, backend, 1);
    network_new(&s->n, c, windows, tokens, dropout);
    basin_params_free(&s->lab.params);
    basin_graph_free(s->lab.graph);
    s->lab.graph = s->n.graph;
    s->lab.params = s->n.params;
    lab_index(&s->lab, "ids", ids, windows * tokens);
    if (dropout) lab_index(&s->lab, "seed", seed, 2);
    s->label = lab_index(&s->lab, "label", label, windows * tokens);
    s->loss = basin_mean_all(network_loss(&s->n, s->label));
}

static void scene_close(scene *s) {
    network_free(&s->n);
    s->lab.graph = NULL;
    s->lab.params = (basin_params){0};
    lab_close(&s->lab);
}

/* ---- golden cases ---- */

static bool flag(const basin_bundle *golden, const char *key) {
    const char *text = basin_bundle_meta(golden, key);
    return text && !strcmp(text, "true");
}

static config config_of(const basin_bundle *golden, bool gpt) {
    basin_shape tok = golden_get(golden, "in.tok")->shape;
    return (config){
        .gpt = gpt,
        .vocabulary = tok.dim[0],
        .context = golden_get(golden, "in.pos")->shape.dim[0],
        .dim = tok.dim[1],
        .heads = gpt ? (int64_t)golden_number(golden, "heads")
                     : golden_get(golden, "in.h")->shape.dim[0],
        .hidden = gpt ? golden_get(golden, "in.layer0.mlp_w1")->shape.dim[1]
                      : golden_get(golden, "in.w1")->shape.dim[0],
        .steps = (int64_t)golden_number(golden, gpt ? "layers" : "steps"),
        .tied = flag(golden, "tied"),
        .bias = flag(golden, "bias"),
        .strict = flag(golden, "strict"),
        .feed = FEED_2W,
        .beta = 1,
    };
}

static void fill(scene *s, const basin_bundle *golden) {
    basin_error error;
    for (size_t i = 0; i < s->lab.params.count; i++) {
        char name[128];
        const char *state = basin_expr_name(s->lab.params.param[i].state);
        snprintf(name, sizeof name, "in.%s", state);
        if (basin_store_write(s->lab.store, state, golden_get(golden, name), &error))
            fail_msg("%s", error.text);
    }
}

/* A bias of all keys changes no share of the softmax: its gradient is 0 up to rounding. */
static void compare(lab *l, basin_expr found, const basin_bundle *golden, const char *name,
                    double tolerance) {
    basin_tensor value = lab_value(l, found), want = *golden_get(golden, name);
    assert_int_equal(basin_shape_count(value.shape), basin_shape_count(want.shape));
    value.shape = want.shape;
    double largest = 0;
    for (int64_t i = 0; i < basin_shape_count(want.shape); i++)
        largest = fmax(largest, fabs(basin_tensor_at(&want, i)));
    if (largest < 1e-14)
        for (int64_t i = 0; i < basin_shape_count(want.shape); i++)
            assert_true(fabs(basin_tensor_at(&value, i)) < tolerance);
    else
        lab_assert_near(&value, &want, tolerance, name);
    basin_tensor_free(&value);
}

/* The loss is a mean: the windows `repeat` times over have the same loss and gradients. */
static void check_case(const char *path, bool gpt, int64_t windows, const char *backend,
                       int64_t repeat, double values, double gradients) {
    enum { MOST = 64 };
    basin_bundle *golden = golden_open(path);
    config c = config_of(golden, gpt);
    const basin_tensor *ids = golden_get(golden, "in.ids"), *label = golden_get(golden, "in.label");
    int64_t count = basin_shape_count(ids->shape);
    int32_t list[2][MOST];
    assert_true(count * repeat <= MOST);
    for (int64_t i = 0; i < count * repeat; i++) {
        list[0][i] = ((const int32_t *)ids->data)[i % count];
        list[1][i] = ((const int32_t *)label->data)[i % count];
    }
    scene s;
    scene_open(&s, backend, &c, list[0], list[1], windows * repeat, count / windows, false);
    fill(&s, golden);
    if (repeat == 1) compare(&s.lab, s.n.logits, golden, "out.logits", values);
    compare(&s.lab, s.loss, golden, "out.loss", values);
    for (size_t i = 0; i < s.lab.params.count; i++) {
        char name[128];
        basin_expr state = s.lab.params.param[i].state;
        snprintf(name, sizeof name, "grad.%s", basin_expr_name(state));
        compare(&s.lab, basin_grad(s.loss, state), golden, name, gradients);
    }
    scene_close(&s);
    basin_bundle_free(golden);
}

TEST(gpt_is_pytorchs) {
    for (int tied = 0; tied < 2; tied++) {
        const char *path = tied ? "language/gpt_tied" : "language/gpt";
        check_case(path, true, 2, "ref", 1, 1e-12, 1e-11);
        check_case(path, true, 2, "cpu", 1, 1e-5, 1e-4);
    }
}

TEST(nrgpt_is_the_authors) {
    check_case("zoo/nrgpt_lm", false, 1, "ref", 1, 1e-12, 1e-11);
    check_case("zoo/nrgpt_lm", false, 1, "cpu", 1, 1e-5, 1e-4);
    check_case("zoo/nrgpt_lm", false, 1, "ref", 3, 1e-12, 1e-11);
}

TEST(energies_are_the_authors) {
    basin_bundle *golden = golden_open("zoo/nrgpt_lm");
    config c = config_of(golden, false);
    scene s;
    int64_t tokens = golden_get(golden, "in.ids")->shape.dim[0];
    const int32_t *ids = golden_get(golden, "in.ids")->data;
    scene_open(&s, "ref", &c, ids, ids, 1, tokens, false);
    fill(&s, golden);
    const basin_tensor *want = golden_get(golden, "out.energy"); /* [steps + 1, N, 2] */
    double scale = basin_tensor_at(golden_get(golden, "in.scale"), 0);
    assert_int_equal(want->shape.dim[0], c.steps + 1);
    for (int64_t i = 0; i < 2 * (c.steps + 1); i++) {
        basin_tensor found = lab_value(&s.lab, s.n.energy[i]);
        for (int64_t k = 0; k < tokens; k++) {
            double value = basin_tensor_at(want, (i / 2 * tokens + k) * 2 + i % 2);
            value *= i % 2 ? scale : 1; /* the golden one is without the factor */
            assert_true(fabs(basin_tensor_at(&found, k) - value) < 1e-10 * fmax(1, fabs(value)));
        }
        basin_tensor_free(&found);
    }
    scene_close(&s);
    basin_bundle_free(golden);
}

/* ---- other sizes ---- */

enum { V = 9, N = 6, B = 2 };
static const int32_t some_ids[B * N] = {0, 3, 8, 1, 1, 5, 2, 7, 4, 6, 0, 8};

static config small_config(bool gpt) {
    return (config){.gpt = gpt,
                    .vocabulary = V,
                    .context = N,
                    .dim = 8,
                    .heads = 2,
                    .hidden = 11,
                    .steps = 2,
                    .beta = 1};
}

/* A later token leaves the logits before it, and the other window, as they are to the bit. */
static void check_causal(const char *backend, const config *c) {
    enum { CHANGED = 3 };
    scene s;
    int32_t other[B * N];
    memcpy(other, some_ids, sizeof other);
    other[CHANGED] = (other[CHANGED] + 1) % V;
    scene_open(&s, backend, c, some_ids, some_ids, B, N, false);
    lab_fill(&s.lab, 5, 0.6);
    basin_tensor before = lab_value(&s.lab, s.n.logits);
    lab_give(&s.lab, s.n.ids, other);
    basin_tensor after = lab_value(&s.lab, s.n.logits);
    for (int64_t row = 0; row < B * N; row++) {
        bool same = true;
        for (int64_t v = row * V; v < (row + 1) * V; v++)
            same = same && basin_tensor_at(&before, v) == basin_tensor_at(&after, v);
        assert_int_equal(same, row < CHANGED || row >= N);
    }
    basin_tensor_free(&before);
    basin_tensor_free(&after);
    scene_close(&s);
}

TEST(later_tokens_are_not_seen) {
    for (int kind = 0; kind < 4; kind++) { /* GPT, and NRGPT with each feed-forward energy */
        config c = small_config(kind == 3);
        c.feed = kind % 3;
        c.strict = kind == 1;
        check_causal("ref", &c);
        check_causal("cpu", &c);
    }
}

/* The same draws before and after a parameter moves; attention of GPT keeps its scores then. */
TEST(dropout_is_differentiated) {
    for (int kind = 0; kind < 3; kind++) {
        scene with, without;
        config c = small_config(kind == 1);
        *(kind == 2 ? &c.dropout_step : &c.dropout) = 0.4;
        scene_open(&with, "ref", &c, some_ids, some_ids, B, N, true);
        scene_open(&without, "ref", &c, some_ids, some_ids, B, N, false);
        lab_fill(&with.lab, 5, 0.6);
        lab_fill(&without.lab, 5, 0.6);
        basin_tensor a = lab_value(&with.lab, with.loss), b = lab_value(&without.lab, without.loss);
        assert_true(fabs(basin_tensor_at(&a, 0) - basin_tensor_at(&b, 0)) > 1e-6);
        lab_check_gradients(&with.lab, with.loss, 1e-7, "dropout");
        basin_tensor_free(&a);
        basin_tensor_free(&b);
        scene_close(&with);
        scene_close(&without);
    }
}

/* Attention that keeps its scores, at a dropout that drops nothing, is the fused one. */
TEST(kept_scores_are_the_fused_ones) {
    scene s[2];
    basin_tensor loss[2];
    for (int i = 0; i < 2; i++) {
        config c = small_config(true);
        c.dropout = i ? 1e-12 : 0;
        scene_open(&s[i], "ref", &c, some_ids, some_ids, B, N, true);
        lab_fill(&s[i].lab, 5, 0.6);
        loss[i] = lab_value(&s[i].lab, s[i].loss);
    }
    lab_assert_near(&loss[0], &loss[1], 1e-10, "attention");
    for (int i = 0; i < 2; i++) basin_tensor_free(&loss[i]), scene_close(&s[i]);
}
