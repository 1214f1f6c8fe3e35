/* Gradients of movement, reductions and layer norm, first and second order, against finite
 * differences in double. Each result goes through a nonlinear function, so that the second order
 * is not zero. */
#include <math.h>

#include "basin/random.h"
#include "engine/expr/graph.h"
#include "support/lab.h"

TEST(test_reshape_permute) {
    const int orders[][3] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {0, 1, 2}};
    for (int i = 0; i < 6; i++) {
        check c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3, 2), -1, 1);
        basin_expr w = check_input(&c, "w", BASIN_SHAPE(4, 3), -1, 1);
        basin_expr y = basin_reshape(basin_permute(basin_square(x), orders[i]), BASIN_SHAPE(4, 3));
        check_sine(&c, basin_mul(y, w));
    }
    check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 1, 3, 2), -1, 1);
    check_sine(&c, basin_transpose(basin_transpose(basin_permute(x, (int[]){3, 1, 0, 2}))));
}

TEST(test_slice_pad) {
    for (int axis = -3; axis < 3; axis++) {
        check c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(3, 4, 3), -1, 1);
        basin_expr part = basin_slice(x, axis, 1, 2);
        check_sine(&c, basin_pad(basin_square(part), axis, 2, 1));
    }
}

TEST(test_broadcast) {
    check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 1, 2), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(2, 2, 3, 2), -1, 1);
    basin_expr wide = basin_broadcast_to(basin_exp(x), BASIN_SHAPE(2, 2, 3, 2));
    check_sine(&c, basin_mul(basin_permute(wide, (int[]){3, 1, 2, 0}), w));
}

TEST(test_concat) {
    for (int axis = 0; axis < 3; axis++) {
        check c = check_new();
        basin_shape s = BASIN_SHAPE(2, 2, 2), t = s;
        t.dim[axis] = 3;
        basin_expr x = check_input(&c, "x", s, -1, 1), y = check_input(&c, "y", t, -1, 1);
        check_sine(&c, basin_square(basin_concat((basin_expr[]){x, y, x}, 3, axis - 3)));
    }
}

/* More parts than a call has operands. */
TEST(test_concat_many) {
    const int counts[] = {16, 17, 33, 50};
    for (int k = 0; k < 4; k++) {
        check c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(4, 2), -1, 1);
        basin_expr part[50];
        for (int i = 0; i < counts[k]; i++)
            part[i] = basin_scale(basin_slice(x, 0, i % 4, 1), 1 + 0.1 * i);
        basin_expr y = basin_concat(part, counts[k], 0);
        assert_int_equal(basin_expr_shape(y).dim[0], counts[k]);
        basin_tensor value = check_value(&c, y, "ref", true);
        for (int i = 0; i < counts[k] * 2; i++) {
            double wanted =
                ((double *)c.tensor[0].data)[(i / 2) % 4 * 2 + i % 2] * (1 + 0.1 * (i / 2));
            assert_float_equal(((double *)value.data)[i], wanted, 1e-12);
        }
        basin_tensor_free(&value);
        check_sine(&c, y);
    }
}

TEST(test_gather_scatter) {
    const int32_t rows[] = {2, -1, 0, 2, 1, 2};
    check c = check_new();
    basin_expr table = check_input(&c, "table", BASIN_SHAPE(3, 2, 2), -1, 1);
    basin_expr values = check_input(&c, "values", BASIN_SHAPE(6, 2), -1, 1);
    basin_expr index = check_index(&c, "index", rows, 6);
    basin_expr chosen = basin_reshape(basin_take(basin_square(table), 0, index), BASIN_SHAPE(6, 4));
    basin_expr sums = basin_scatter(basin_exp(values), index, 4);
    basin_tensor sum = check_value(&c, basin_scatter(values, index, 4), "ref", true);
    double *v = c.tensor[1].data, *s = sum.data;
    assert_float_equal(s[0], v[4], 1e-15);
    assert_float_equal(s[2 * 2 + 1], v[1] + v[7] + v[11], 1e-15);
    assert_float_equal(s[3 * 2], 0, 0);
    basin_tensor_free(&sum);
    check_sine(&c, basin_matmul_t(sums, false, basin_slice(chosen, 1, 1, 2), true));
}

TEST(test_reductions) {
    basin_expr (*const reduce[])(basin_expr, int, int) = {basin_sum, basin_mean, basin_max};
    for (int kind = 0; kind < 3; kind++)
        for (int axis = 0; axis < 4; axis++)
            for (int count = 1; axis + count <= 4; count++) {
                check c = check_new();
                basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 1, 3, 2), -1, 1);
                check_sine(&c, reduce[kind](basin_square(x), axis - 4, count));
            }
}

TEST(test_reduce_all) {
    basin_expr (*const reduce[])(basin_expr) = {basin_sum_all, basin_mean_all, basin_max_all};
    for (int kind = 0; kind < 3; kind++) {
        check c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3), -1, 1);
        basin_expr y = reduce[kind](basin_exp(x));
        assert_int_equal(basin_expr_shape(y).rank, 0);
        check_sine(&c, y);
    }
}

TEST(test_logsumexp_softmax) {
    const basin_shape shapes[] = {BASIN_SHAPE(5), BASIN_SHAPE(2, 3), BASIN_SHAPE(2, 2, 3),
                                  BASIN_SHAPE(3, 1)};
    for (int i = 0; i < 4; i++) {
        check c = check_new();
        check_sine(&c, basin_logsumexp(check_input(&c, "x", shapes[i], -2, 2), -1));
        c = check_new();
        check_sine(&c, basin_softmax(check_input(&c, "x", shapes[i], -2, 2), -1));
    }
}

/* Of keys that causal queries see: more keys than queries and fewer, one head and several, with the
 * query's own key and without, which leaves the first query none. */
TEST(test_causal) {
    const basin_shape shapes[] = {BASIN_SHAPE(3, 3, 2), BASIN_SHAPE(2, 2, 4, 1),
                                  BASIN_SHAPE(4, 2, 1)};
    for (int i = 0; i < 3; i++)
        for (int strict = 0; strict < 2; strict++) {
            check c = check_new();
            basin_expr x = check_input(&c, "x", shapes[i], -2, 2);
            check_sine(&c, basin_causal_logsumexp(x, 0.7, strict));
            c = check_new();
            x = check_input(&c, "x", shapes[i], -2, 2);
            check_sine(&c, basin_causal_softmax(x, 0.7, strict));
        }
}

/* A number for each share: what dropping multiplies it by. */
static basin_expr kept(check *c, basin_shape shape, double drop, uint64_t seed) {
    basin_expr mask = check_input(c, "kept", shape, 0, 1);
    double *number = c->tensor[c->inputs - 1].data;
    for (int64_t i = 0; i < basin_shape_count(shape); i++)
        number[i] = basin_random_uniform_at(seed, 1, (uint64_t)i) > drop ? 1 / (1 - drop) : 0;
    return mask;
}

/* Both backends, and with the fused operations and without. */
static void check_equal(check *c, basin_expr made, basin_expr wanted) {
    check_backends(c, made, 1e-5);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor a = check_value(c, made, "ref", true), b = check_value(c, wanted, "ref", true);
    for (int64_t i = 0; i < basin_shape_count(a.shape); i++)
        assert_float_equal(((double *)a.data)[i], ((double *)b.data)[i], 1e-12);
}

/* Dropped shares are those of the same softmax, written out, under the draws that dropout would
 * make; so are their gradients to second order. */
TEST(test_values_dropped) {
    enum { B = 2, N = 6, H = 3, Y = 2 };
    const int32_t word[2] = {5, 9};
    check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(B, N, 3 * H * Y), -2, 2), part[3];
    basin_expr seed = check_index(&c, "seed", word, 2), none = basin_scalar(c.graph, -1e30);
    basin_expr made = lab_attention(x, H, 0.4, seed, &BASIN_CAUSAL_PAIRS);
    for (int i = 0; i < 3; i++)
        part[i] = basin_reshape(basin_slice(x, -1, i * H * Y, H * Y), BASIN_SHAPE(B, N, H, Y));
    basin_expr z = basin_scale(basin_einsum("bnhy,bmhy->bhnm", part[0], part[1]), sqrt(0.5));
    basin_expr share = basin_softmax(basin_where(basin_tri(c.graph, N, N, 0), z, none), -1);
    share = basin_mul(share, kept(&c, BASIN_SHAPE(B, H, N, N), 0.4, (uint64_t)9 << 32 | 5));
    basin_expr wanted = basin_einsum("bhnm,bmhy->bnhy", share, part[2]);
    for (int order = 0; order < 3; order++) {
        check_equal(&c, made, wanted);
        made = basin_grad(basin_square(made), x);
        wanted = basin_grad(basin_square(wanted), x);
    }
    check_free(&c);
}

/* Values far apart and large. */
TEST(test_large_scores) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3), -1, 1);
    const double at[] = {1000, 999, -1000, -1e4, -1e4, -1e4};
    for (int i = 0; i < 6; i++) ((double *)c.tensor[0].data)[i] = at[i];
    basin_tensor lse = check_value(&c, basin_logsumexp(x, -1), "cpu", false);
    assert_float_equal(((double *)lse.data)[0], 1000 + log1p(exp(-1)), 1e-3);
    assert_float_equal(((double *)lse.data)[1], -1e4 + log(3), 1e-2);
    basin_tensor_free(&lse);
    check_backends(&c, basin_softmax(x, -1), 1e-5);
    check_backends(&c, basin_grad(basin_logsumexp(x, -1), x), 1e-5);
}

static basin_expr make_gained(check *c, basin_shape shape, bool each) {
    basin_shape row = BASIN_SHAPE(shape.dim[shape.rank - 1]);
    basin_expr x = check_input(c, "x", shape, -1, 1);
    basin_expr gamma = check_input(c, "gamma", each ? row : BASIN_SCALAR, 0.5, 1.5);
    basin_expr delta = check_input(c, "delta", row, -1, 1);
    return basin_layernorm(x, gamma, delta, 0.05);
}

static basin_expr make_norm(check *c, basin_shape shape) { return make_gained(c, shape, false); }

TEST(test_layernorm) {
    const basin_shape shapes[] = {BASIN_SHAPE(5), BASIN_SHAPE(3, 4), BASIN_SHAPE(2, 1, 3),
                                  BASIN_SHAPE(2, 1)};
    for (int i = 0; i < 8; i++) { /* one gain, or one of each column */
        check c = check_new();
        check_sine(&c, make_gained(&c, shapes[i % 4], i >= 4));
    }
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(3, 4), -1, 1), one = basin_scalar(c.graph, 1);
    check_equal(&c, basin_layernorm(x, one, NULL, 0.05),
                basin_layernorm(x, one, basin_full(c.graph, BASIN_SHAPE(4), 0), 0.05));
}

/* The cotangent of the norm is x itself, is the norm, depends on it: none of these may be counted
 * twice or taken for a constant. */
TEST(test_layernorm_of_itself) {
    for (int kind = 0; kind < 6; kind++) {
        check c = check_new();
        basin_expr g = make_norm(&c, BASIN_SHAPE(2, 3)), x = c.input[0];
        basin_expr other[] = {x,
                              g,
                              basin_tanh(g),
                              basin_layernorm(g, c.input[1], c.input[2], 0.1),
                              basin_neg(x),
                              basin_sum(x, 0, 1)};
        check_sine(&c, basin_sum_all(basin_mul(g, other[kind])));
    }
}

/* Operands that are constants or broadcasts, which builders read through. */
TEST(test_layernorm_operands) {
    check c = check_new();
    basin_expr v = check_input(&c, "v", BASIN_SHAPE(2, 1, 3), -1, 1);
    basin_expr x = basin_broadcast_to(v, BASIN_SHAPE(2, 2, 3));
    basin_expr delta = basin_full(c.graph, BASIN_SHAPE(3), 0.5);
    basin_expr g = basin_layernorm(x, basin_scalar(c.graph, 0.7), delta, 0.1);
    check_sine(&c, basin_mul(basin_broadcast_to(basin_sum_all(v), BASIN_SHAPE(2, 2, 3)), g));
}

/* A force of layer norm inside a loss that is not linear in it. */
TEST(test_layernorm_force) {
    check c = check_new();
    basin_expr g = make_norm(&c, BASIN_SHAPE(2, 4)), x = c.input[0];
    basin_expr energy = basin_sum_all(basin_lncosh(g));
    basin_expr step = basin_sub(x, basin_scale(basin_grad(energy, x), 0.3));
    basin_expr next = basin_layernorm(step, c.input[1], c.input[2], 0.05);
    check_sine(&c, basin_mul(next, basin_grad(basin_sum_all(basin_sin(next)), step)));
}
