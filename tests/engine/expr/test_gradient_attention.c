/* Energy attention and products over pair lists: values against a formula made of other
 * operations, gradients to second order against finite differences in double. Also draws. */
#include <math.h>
#include <string.h>

#include "basin/pairs.h"
#include "basin/random.h"
#include "engine/expr/graph.h"
#include "support/lab.h"

enum { H = 2, Y = 3 };

typedef struct tokens {
    basin_expr q, k, beta, scale, mix;
    bool added; /* the scale is a bias */
} tokens;

static tokens make_tokens(check *c, basin_shape q, basin_shape k, int64_t pairs, bool with_scale,
                          bool with_mix) {
    tokens t = {.q = check_input(c, "q", q, -1, 1), .k = check_input(c, "k", k, -1, 1)};
    t.beta = check_input(c, "beta", BASIN_SHAPE(H), 0.3, 1);
    if (with_scale) t.scale = check_input(c, "scale", BASIN_SHAPE(pairs, H), 0.2, 1);
    if (with_mix) t.mix = check_input(c, "mix", BASIN_SHAPE(H, H), -1, 1);
    return t;
}

/* Scores of pairs [P, H] from products [P, H]. */
static basin_expr scores(const tokens *t, basin_expr product) {
    basin_expr z = basin_mul(product, t->beta);
    if (t->mix) z = basin_matmul(z, t->mix);
    if (t->added) return basin_add(z, t->scale);
    return t->scale ? basin_mul(z, t->scale) : z;
}

static basin_expr lse_of(const tokens *t, const basin_pattern *pattern) {
    basin_lse_options options = {.mix = t->mix};
    *(t->added ? &options.bias : &options.scale) = t->scale;
    return basin_attention_lse(t->q, t->k, t->beta, pattern, &options);
}

/* The log-sum-exp of all pairs, through a tensor of all scores; -1e3 where query == key. */
static basin_expr dense_formula(check *c, const tokens *t, bool others) {
    basin_shape q = basin_expr_shape(t->q), k = basin_expr_shape(t->k);
    int64_t B = q.dim[0], N = q.dim[1], M = k.dim[1];
    basin_expr z = scores(
        t, basin_reshape(basin_einsum("bnhy,bmhy->bnmh", t->q, t->k), BASIN_SHAPE(B * N * M, H)));
    z = basin_reshape(z, BASIN_SHAPE(B, N, M, H));
    if (others) {
        int i = c->inputs;
        basin_expr self = check_input(c, "self", BASIN_SHAPE(N, M, 1), 0, 0);
        for (int64_t n = 0; n < N; n++) ((double *)c->tensor[i].data)[n * M + n] = -1e3;
        z = basin_add(z, self);
    }
    return basin_logsumexp(basin_permute(z, (int[]){0, 1, 3, 2}), -1);
}

static void agree(check *c, basin_expr a, basin_expr b) {
    if (basin_graph_error(c->graph)) fail_msg("%s", basin_graph_error(c->graph)->text);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor x = check_value(c, a, "ref", true), y = check_value(c, b, "ref", true);
    if (!(check_distance(&x, &y) < 1e-12)) fail_msg("off by %g", check_distance(&x, &y));
}

static void differentiate(check *c, basin_expr y) {
    check_backends(c, y, 1e-5);
    check_gradients(c, basin_sin(y), 1e-6);
    check_free(c);
}

TEST(test_dense) {
    for (int kind = 0; kind < 16; kind++) {
        bool others = kind & 1, with_scale = kind & 2, with_mix = kind & 4;
        check c;
        basin_shape s = BASIN_SHAPE(2, 3, H, Y);
        if ((kind & 10) == 8) continue;
        c = check_new();
        tokens t = make_tokens(&c, s, s, 2 * 3 * 3, with_scale, with_mix);
        t.added = kind & 8;
        basin_pattern pattern = others ? BASIN_OTHER_PAIRS : BASIN_ALL_PAIRS;
        basin_expr lse = lse_of(&t, &pattern);
        int inputs = c.inputs;
        agree(&c, lse, dense_formula(&c, &t, others));
        while (c.inputs > inputs) basin_tensor_free(&c.tensor[--c.inputs]);
        differentiate(&c, lse);
    }
}

/* A list in which query 1 has no key and key 0 no query. */
static basin_pattern make_list(check *c, int64_t *pairs) {
    static const int32_t edge[] = {0, 1, 0, 2, 2, 1, 2, 2, 2, 3};
    basin_pairs list;
    assert_int_equal(basin_pairs_new(&list, 3, 4, edge, 5, 0, NULL), BASIN_OK);
    *pairs = list.pairs;
    basin_pattern p = {.row = check_index(c, "row", list.row, 4),
                       .key = check_index(c, "key", list.key, list.pairs),
                       .column = check_index(c, "column", list.column, 5),
                       .query = check_index(c, "query", list.query, list.pairs),
                       .pair = check_index(c, "pair", list.pair, list.pairs)};
    basin_pairs_free(&list);
    return p;
}

/* Through a mask; a query without keys gives 0. */
static basin_expr causal_formula(check *c, const tokens *t, bool others) {
    int64_t N = basin_expr_shape(t->q).dim[1];
    basin_expr z = basin_einsum("bnhy,bmhy->bnmh", t->q, t->k);
    z = basin_reshape(scores(t, basin_reshape(z, BASIN_SHAPE(-1, H))), BASIN_SHAPE(-1, N, N, H));
    basin_expr seen = basin_expand_dims(basin_tri(c->graph, N, N, others ? -1 : 0), 2, 1);
    z = basin_where(seen, z, basin_scalar(c->graph, -1e3));
    basin_expr any = basin_expand_dims(basin_max(seen, 1, 1), 0, 1);
    return basin_mul(any, basin_logsumexp(z, 2));
}

TEST(test_causal) {
    for (int kind = 0; kind < 8; kind++) {
        bool others = kind & 1, with_scale = kind & 2, with_mix = kind & 4;
        check c = check_new();
        basin_shape s = BASIN_SHAPE(2, 3, H, Y);
        tokens t = make_tokens(&c, s, s, 2 * 3 * 3, with_scale, with_mix);
        const basin_pattern *pattern = others ? &BASIN_EARLIER_PAIRS : &BASIN_CAUSAL_PAIRS;
        basin_expr lse = basin_attention_lse(t.q, t.k, t.beta, pattern,
                                             &(basin_lse_options){.scale = t.scale, .mix = t.mix});
        agree(&c, lse, causal_formula(&c, &t, others));
        differentiate(&c, lse);
    }
}

TEST(test_causal_errors) {
    check c = check_new();
    int64_t pairs;
    basin_pattern p = make_list(&c, &pairs);
    p.causal = true;
    tokens t = make_tokens(&c, BASIN_SHAPE(3, H, Y), BASIN_SHAPE(4, H, Y), pairs, false, false);
    assert_null(basin_attention_lse(t.q, t.k, t.beta, &p, NULL));
    assert_string_equal(basin_graph_error(c.graph)->text,
                        "attention: a pair list that is causal; list the pairs that count");
    check_free(&c);
    c = check_new();
    t = make_tokens(&c, BASIN_SHAPE(3, H, Y), BASIN_SHAPE(4, H, Y), pairs, false, false);
    assert_null(basin_attention_lse(t.q, t.k, t.beta, &BASIN_CAUSAL_PAIRS, NULL));
    assert_string_equal(basin_graph_error(c.graph)->text,
                        "attention: 3 queries and 4 keys, which must be the same tokens to leave "
                        "out later ones");
    check_free(&c);
}

TEST(test_cross) {
    check c = check_new();
    tokens t = make_tokens(&c, BASIN_SHAPE(1, 2, H, Y), BASIN_SHAPE(1, 4, H, Y), 8, true, true);
    basin_expr lse = basin_attention_lse(t.q, t.k, t.beta, &BASIN_ALL_PAIRS,
                                         &(basin_lse_options){.scale = t.scale, .mix = t.mix});
    agree(&c, lse, dense_formula(&c, &t, false));
    differentiate(&c, lse);
}

/* Keys that are the queries' own tokens, or computed from them: gradients of both kinds meet. */
TEST(test_shared_tokens) {
    check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(3, H, Y), -1, 1);
    basin_expr beta = check_input(&c, "beta", BASIN_SHAPE(H), 0.3, 1);
    differentiate(&c, basin_attention_lse(x, x, beta, &BASIN_OTHER_PAIRS, NULL));
}

/* A force inside a descent: the loss is not linear in it. */
TEST(test_descent) {
    check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(3, H, Y), -1, 1);
    basin_expr beta = check_input(&c, "beta", BASIN_SHAPE(H), 0.3, 1);
    c.first_only[0] = c.first_only[1] = true; /* the third order of attention */
    for (int step = 0; step < 2; step++) {
        basin_expr lse = basin_attention_lse(x, basin_tanh(x), beta, &BASIN_ALL_PAIRS, NULL);
        basin_expr energy = basin_neg(basin_sum_all(basin_div(lse, beta)));
        x = basin_sub(x, basin_scale(basin_grad(energy, x), 0.5));
    }
    differentiate(&c, basin_square(x));
}

/* exp z summed with pair_sum over keys that hold ones; a query without keys gives log 1 = 0. */
static basin_expr list_formula(check *c, const tokens *t, const basin_pattern *p) {
    basin_expr z = scores(t, basin_pair_dot(t->q, t->k, p));
    basin_expr ones = basin_full(c->graph, BASIN_SHAPE(4, H, 1), 1);
    basin_expr sum = basin_reshape(basin_pair_sum(basin_exp(z), ones, p), BASIN_SHAPE(3, H));
    return basin_log(basin_add(sum, basin_equal(sum, basin_scalar(c->graph, 0))));
}

TEST(test_list) {
    for (int kind = 0; kind < 8; kind++) {
        check c;
        int64_t pairs;
        if ((kind & 5) == 4) continue; /* there is nothing to add */
        c = check_new();
        basin_pattern p = make_list(&c, &pairs);
        tokens t =
            make_tokens(&c, BASIN_SHAPE(3, H, Y), BASIN_SHAPE(4, H, Y), pairs, kind & 1, kind & 2);
        t.added = kind & 4;
        basin_expr lse = lse_of(&t, &p);
        agree(&c, lse, list_formula(&c, &t, &p));
        basin_tensor value = check_value(&c, lse, "cpu", false);
        for (int h = 0; h < H; h++) assert_float_equal(((double *)value.data)[H + h], 0, 0);
        basin_tensor_free(&value);
        differentiate(&c, lse);
    }
}

TEST(test_pair_products) {
    check c = check_new();
    int64_t pairs;
    basin_pattern p = make_list(&c, &pairs);
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(3, H, Y), -1, 1);
    basin_expr z = check_input(&c, "z", BASIN_SHAPE(4, H, Y), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(pairs, H), -1, 1);
    basin_expr dot = basin_pair_dot(x, basin_square(z), &p);
    basin_expr sum = basin_pair_sum(basin_mul(w, basin_tanh(dot)), z, &p);
    basin_tensor d = check_value(&c, basin_pair_dot(x, z, &p), "ref", true);
    const double *a = c.tensor[5].data, *b = c.tensor[6].data; /* pair 2 is query 2, key 1 */
    for (int h = 0; h < H; h++) {
        double wanted = 0;
        for (int y = 0; y < Y; y++) wanted += a[(2 * H + h) * Y + y] * b[(1 * H + h) * Y + y];
        assert_float_equal(((double *)d.data)[2 * H + h], wanted, 1e-14);
    }
    basin_tensor_free(&d);
    differentiate(&c, basin_mul(sum, x));
}

/* Scores in the hundreds: no overflow, and the gradient is that of a maximum. */
TEST(test_large_scores) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    tokens t = make_tokens(&c, BASIN_SHAPE(1, 3, H, Y), BASIN_SHAPE(1, 3, H, Y), 9, false, false);
    double *q = c.tensor[0].data;
    for (int i = 0; i < 3 * H * Y; i++) q[i] *= 1000;
    basin_expr lse = basin_attention_lse(t.q, t.k, t.beta, NULL, NULL); /* all pairs */
    check_backends(&c, lse, 1e-5);
    check_backends(&c, basin_grad(lse, t.k), 1e-3);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor value = check_value(&c, lse, "cpu", false);
    assert_int_equal(basin_tensor_first_bad(&value), -1);
}

/* One token that sees no other. */
TEST(test_no_key) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(1, H, Y), -1, 1);
    basin_expr beta = check_input(&c, "beta", BASIN_SHAPE(H), 0.3, 1);
    basin_expr lse = basin_attention_lse(x, x, beta, &BASIN_OTHER_PAIRS, NULL);
    const char *const backend[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        basin_expr all[] = {lse, basin_grad(lse, x), basin_grad(basin_grad(lse, x), beta)};
        for (int k = 0; k < 3; k++) {
            basin_tensor value = check_value(&c, all[k], backend[i], false);
            for (int64_t n = 0; n < basin_shape_count(value.shape); n++)
                assert_float_equal(((double *)value.data)[n], 0, 0);
            basin_tensor_free(&value);
        }
    }
}

/* softmax(scale q k + bias) v through a tensor of all scores. */
static basin_expr values_formula(basin_expr q, basin_expr k, basin_expr v, basin_expr scale,
                                 basin_expr bias) {
    basin_expr z = basin_einsum("bnhy,bmhy->bhnm", q, k);
    z = basin_mul(z, basin_reshape(scale, BASIN_SHAPE(H, 1, 1)));
    return basin_einsum("bhnm,bmhy->bnhy", basin_softmax(basin_add(z, bias), -1), v);
}

TEST(test_values) {
    const basin_shape biases[] = {BASIN_SHAPE(2, H, 3, 4), BASIN_SHAPE(H, 1, 4), BASIN_SHAPE(4)};
    for (int kind = 0; kind < 3; kind++) {
        check c = check_new();
        basin_expr q = check_input(&c, "q", BASIN_SHAPE(2, 3, H, Y), -1, 1);
        basin_expr k = check_input(&c, "k", BASIN_SHAPE(2, 4, H, Y), -1, 1);
        basin_expr v = check_input(&c, "v", BASIN_SHAPE(2, 4, H, 2), -1, 1);
        basin_expr scale = check_input(&c, "scale", BASIN_SHAPE(H), 0.3, 1);
        basin_expr bias = check_input(&c, "bias", biases[kind], -1, 1);
        basin_expr o =
            basin_softmax_attention(q, k, v, kind ? NULL : &BASIN_ALL_PAIRS,
                                    &(basin_softmax_options){.beta = scale, .bias = bias});
        agree(&c, o, values_formula(q, k, v, scale, bias));
        check_backends(&c, o, 1e-5);
        differentiate(&c, o);
    }
}

/* With and without dropout. */
TEST(test_values_dropout) {
    const int32_t word[] = {3, 8};
    for (int kind = 0; kind < 2; kind++) {
        check c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3, 3 * H * Y), -1, 1);
        basin_expr seed = kind ? check_index(&c, "seed", word, 2) : NULL;
        differentiate(&c, lab_attention(x, H, 0.4, seed, &BASIN_CAUSAL_PAIRS));
    }
    BASIN_AT_EXIT(check_free) check c = check_new();
    int64_t pairs;
    basin_pattern p = make_list(&c, &pairs);
    basin_softmax_options drop = {.dropout = 0.5, .seed = check_index(&c, "seed", word, 2)};
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(3, H, Y), -1, 1);
    basin_expr k = check_input(&c, "k", BASIN_SHAPE(4, H, Y), -1, 1);
    assert_null(basin_softmax_attention(x, k, k, &p, &drop));
    assert_int_equal(basin_graph_error(c.graph)->status, BASIN_UNSUPPORTED);
}

TEST(test_scale_and_bias) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(3, H, Y), -1, 1);
    basin_expr pairs = check_input(&c, "pairs", BASIN_SHAPE(9, H), -1, 1);
    basin_lse_options both = {.scale = pairs, .bias = pairs};
    assert_null(basin_attention_lse(x, x, basin_full(c.graph, BASIN_SHAPE(H), 1), NULL, &both));
    assert_int_equal(basin_graph_error(c.graph)->status, BASIN_UNSUPPORTED);
}

/* An energy that contains it: heads that share keys, causal; a list; along tangents. */
TEST(test_values_in_an_energy) {
    for (int kind = 0; kind < 4; kind++) {
        check c = check_new();
        int64_t pairs = 0;
        basin_pattern p = kind == 3 ? make_list(&c, &pairs) : BASIN_CAUSAL_PAIRS;
        if (kind == 2) p = BASIN_OTHER_PAIRS;
        basin_expr q = check_input(&c, "q", BASIN_SHAPE(3, 4, Y), -1, 1);
        basin_expr k = check_input(&c, "k", BASIN_SHAPE(kind == 3 ? 4 : 3, 2, Y), -1, 1);
        basin_expr bias = kind == 3 ? check_input(&c, "bias", BASIN_SHAPE(pairs, 4), -1, 1) : NULL;
        basin_expr o = basin_softmax_attention(q, k, basin_tanh(k), &p,
                                               &(basin_softmax_options){.bias = bias});
        if (kind == 1) o = basin_jvp(o, &q, (basin_expr[]){basin_sin(q)}, 1);
        if (kind == 1) {
            check_backends(&c, o, 1e-5);
            check_free(&c);
            continue;
        }
        differentiate(&c, basin_mul(basin_square(o), q));
    }
}

TEST(test_values_that_do_not_fit) {
    const struct {
        basin_shape q, k, v, scale, bias;
        const basin_pattern *pattern;
        const char *text;
    } cases[] = {
        {{2, {3, 4}}, {3, {4, 2, 3}}, {3, {4, 2, 3}}, {0}, {0}, &BASIN_ALL_PAIRS, "q 'q'"},
        {{3, {3, 3, 3}}, {3, {4, 2, 3}}, {3, {4, 2, 3}}, {0}, {0}, &BASIN_ALL_PAIRS, "K divides"},
        {{3, {3, 2, 3}}, {3, {4, 2, 3}}, {3, {4, 2, 3}}, {1, {3}}, {0}, &BASIN_ALL_PAIRS, "beta"},
        {{3, {3, 2, 3}}, {3, {4, 2, 3}}, {3, {4, 2, 3}}, {0}, {1, {3}}, &BASIN_ALL_PAIRS, "a bias"},
        {{3, {3, 2, 3}}, {3, {4, 2, 3}}, {3, {4, 2, 3}}, {0}, {0}, &BASIN_OTHER_PAIRS, "self"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        BASIN_AT_EXIT(check_free) check c = check_new();
        basin_expr q = check_input(&c, "q", cases[i].q, -1, 1);
        basin_expr k = check_input(&c, "k", cases[i].k, -1, 1);
        basin_expr v = check_input(&c, "v", cases[i].v, -1, 1);
        basin_expr scale = cases[i].scale.rank ? check_input(&c, "s", cases[i].scale, 1, 1) : NULL;
        basin_expr bias = cases[i].bias.rank ? check_input(&c, "b", cases[i].bias, 1, 1) : NULL;
        assert_null(basin_softmax_attention(q, k, v, cases[i].pattern,
                                            &(basin_softmax_options){.beta = scale, .bias = bias}));
        assert_non_null(strstr(basin_graph_error(c.graph)->text, cases[i].text));
    }
}

TEST(test_third_order) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, H, Y), -1, 1);
    basin_expr beta = basin_full(c.graph, BASIN_SHAPE(H), 1);
    basin_expr lse = basin_attention_lse(x, x, beta, &BASIN_ALL_PAIRS, NULL);
    basin_expr second = basin_grad(basin_sum_all(basin_sin(basin_grad(lse, x))), x);
    assert_non_null(second);
    assert_null(basin_grad(basin_sum_all(basin_sin(second)), x));
    assert_int_equal(basin_graph_error(c.graph)->status, BASIN_UNSUPPORTED);
    assert_non_null(strstr(basin_graph_error(c.graph)->text, "third derivatives"));
}

TEST(test_draws) {
    enum { COUNT = 20000 };
    const int32_t word[] = {5, -7};
    uint64_t seed = (uint64_t)(uint32_t)word[1] << 32 | (uint32_t)word[0];
    for (int kind = 0; kind < 2; kind++) {
        check c = check_new();
        basin_expr s = check_index(&c, "seed", word, 2);
        basin_expr a = (kind ? basin_normal : basin_uniform)(s, BASIN_SHAPE(COUNT));
        basin_expr b = (kind ? basin_normal : basin_uniform)(s, BASIN_SHAPE(COUNT));
        assert_ptr_not_equal(a, b); /* a stream of its own */
        basin_tensor x = check_value(&c, a, "ref", false), y = check_value(&c, b, "ref", false);
        basin_tensor fast = check_value(&c, a, "cpu", false);
        double mean = 0, square = 0, cross = 0;
        for (int i = 0; i < COUNT; i++) {
            double u = ((double *)x.data)[i], v = ((double *)y.data)[i];
            double exact = kind ? basin_random_normal_at(seed, 1, (uint64_t)i)
                                : basin_random_uniform_at(seed, 1, (uint64_t)i);
            assert_float_equal(u, exact, 0);
            assert_float_equal(((double *)fast.data)[i], (float)exact, 0);
            mean += u / COUNT, square += u * u / COUNT, cross += u * v / COUNT;
        }
        double variance = square - mean * mean;
        assert_float_equal(mean, kind ? 0 : 0.5, 0.02);
        assert_float_equal(variance, kind ? 1 : 1.0 / 12, kind ? 0.03 : 0.003);
        assert_float_equal(cross, kind ? 0 : 0.25, 0.02);
        basin_tensor_free(&x);
        basin_tensor_free(&y);
        basin_tensor_free(&fast);
        check_free(&c);
    }
}

TEST(test_dropout) {
    enum { COUNT = 20000 };
    const int32_t word[] = {5, -7};
    const double rate = 0.25;
    uint64_t seed = (uint64_t)(uint32_t)word[1] << 32 | (uint32_t)word[0];
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr s = check_index(&c, "seed", word, 2);
    basin_expr one = basin_broadcast_to(basin_scalar(c.graph, 3), BASIN_SHAPE(COUNT));
    basin_expr some = basin_dropout(one, rate, s);
    assert_ptr_equal(basin_dropout(one, rate, NULL), one);
    assert_ptr_equal(basin_dropout(one, 0, s), one);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor value = check_value(&c, some, "ref", false);
    double mean = 0;
    for (int i = 0; i < COUNT; i++) {
        bool kept = basin_random_uniform_at(seed, 1, (uint64_t)i) > rate;
        assert_float_equal(((double *)value.data)[i], kept ? 3 / (1 - rate) : 0, 1e-12);
        mean += ((double *)value.data)[i] / COUNT;
    }
    assert_float_equal(mean, 3, 0.06);
}
