/* Matrix products, contractions, convolution and pooling: values against plain loops, gradients to
 * second order against finite differences in double. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/lab.h"

/* ---- einsum, the slow way: all letters looped over ---- */

typedef struct loops {
    char letter[16];
    int64_t dim[16], at[16];
    int letters;
} loops;

static void add_letters(loops *l, const char *text, size_t count, basin_shape shape) {
    assert_int_equal((int)count, shape.rank);
    for (size_t i = 0; i < count; i++) {
        if (strchr(l->letter, text[i])) continue;
        l->dim[l->letters] = shape.dim[i];
        l->letter[l->letters++] = text[i];
    }
}

static int64_t offset(const loops *l, const char *text, size_t count) {
    int64_t at = 0;
    for (size_t i = 0; i < count; i++) {
        size_t which = (size_t)(strchr(l->letter, text[i]) - l->letter);
        at = at * l->dim[which] + l->at[which];
    }
    return at;
}

static void check_einsum_value(check *c, const char *spec, basin_expr y) {
    const char *comma = strchr(spec, ','), *arrow = strstr(spec, "->");
    size_t a = (size_t)(comma - spec), b = (size_t)(arrow - comma - 1), out = strlen(arrow + 2);
    loops l = {0};
    add_letters(&l, spec, a, c->tensor[0].shape);
    add_letters(&l, comma + 1, b, c->tensor[1].shape);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor found = check_value(c, y, "ref", true), wanted;
    assert_int_equal((int)out, found.shape.rank);
    assert_int_equal(basin_tensor_new(&wanted, BASIN_F64, found.shape, NULL), BASIN_OK);
    for (bool more = true; more;) {
        ((double *)wanted.data)[offset(&l, arrow + 2, out)] +=
            ((double *)c->tensor[0].data)[offset(&l, spec, a)] *
            ((double *)c->tensor[1].data)[offset(&l, comma + 1, b)];
        int i = 0;
        while (i < l.letters && ++l.at[i] == l.dim[i]) l.at[i++] = 0;
        more = i < l.letters;
    }
    assert_true(check_distance(&found, &wanted) < 1e-13);
}

static const struct {
    const char *spec;
    basin_shape a, b;
} contractions[] = {
    {"ab,bc->ac", {2, {2, 3}}, {2, {3, 4}}},
    {"ab,bc->ca", {2, {2, 3}}, {2, {3, 4}}},
    {"ab,cb->ac", {2, {2, 3}}, {2, {4, 3}}},
    {"ba,bc->ac", {2, {3, 2}}, {2, {3, 4}}},
    {"ba,cb->ca", {2, {3, 2}}, {2, {2, 3}}},
    {"bnd,hyd->bnhy", {3, {2, 2, 3}}, {3, {2, 2, 3}}},
    {"bnhy,hyd->bnd", {4, {1, 2, 2, 2}}, {3, {2, 2, 3}}},
    {"bnhy,bmhy->bhnm", {4, {2, 2, 2, 2}}, {4, {2, 3, 2, 2}}},
    {"bhnm,bmhy->bnhy", {4, {1, 2, 2, 3}}, {4, {1, 3, 2, 2}}},
    {"abc,abc->", {3, {2, 2, 3}}, {3, {2, 2, 3}}},
    {"abc,abc->b", {3, {2, 3, 2}}, {3, {2, 3, 2}}},
    {"abc,cab->bca", {3, {2, 2, 3}}, {3, {3, 2, 2}}},
    {"a,b->ba", {1, {3}}, {1, {2}}},
    {"a,a->", {1, {4}}, {1, {4}}},
    {"a,a->a", {1, {4}}, {1, {4}}},
    {"abc,d->bd", {3, {2, 2, 2}}, {1, {3}}},
    {"abc,b->ca", {3, {2, 3, 2}}, {1, {3}}},
    {"ab,->ba", {2, {2, 3}}, {0, {0}}},
    {",->", {0, {0}}, {0, {0}}},
    {"abcd,cdef->abef", {4, {2, 1, 2, 2}}, {4, {2, 2, 1, 2}}},
    {"abcd,dcef->fabe", {4, {2, 1, 2, 2}}, {4, {2, 2, 1, 2}}},
    {"ab,ab->ba", {2, {1, 3}}, {2, {1, 3}}},
};

TEST(test_einsum) {
    for (size_t i = 0; i < sizeof contractions / sizeof *contractions; i++) {
        check c = check_new();
        basin_expr a = check_input(&c, "a", contractions[i].a, -1, 1);
        basin_expr b = check_input(&c, "b", contractions[i].b, -1, 1);
        print_message("%s\n", contractions[i].spec);
        basin_expr y = basin_einsum(contractions[i].spec, a, b);
        if (!y) fail_msg("%s", basin_graph_error(c.graph)->text);
        check_einsum_value(&c, contractions[i].spec, y);
        check_sine(&c, y);
    }
}

static basin_shape transposed(basin_shape s, bool turn) {
    int64_t last = s.dim[s.rank - 1];
    if (turn) s.dim[s.rank - 1] = s.dim[s.rank - 2], s.dim[s.rank - 2] = last;
    return s;
}

/* One operand pair under all transposes; values against einsum, which was checked above. */
static void check_matmul(basin_shape as, basin_shape bs, const char *letters[2], bool turn_a) {
    for (int t = 0; t < 4; t++) {
        bool ta = t & 1, tb = t & 2;
        if (ta && !turn_a) continue;
        check c;
        char spec[32];
        c = check_new();
        basin_expr a = check_input(&c, "a", transposed(as, ta), -1, 1);
        basin_expr b = check_input(&c, "b", transposed(bs, tb), -1, 1);
        basin_expr y = basin_matmul_t(a, ta, b, tb);
        if (!y) fail_msg("%s", basin_graph_error(c.graph)->text);
        snprintf(spec, sizeof spec, "%s%s,%s%s->%s%s", letters[0], ta ? "km" : "mk", letters[1],
                 tb ? "nk" : "kn", letters[0], "mn");
        check_einsum_value(&c, spec, y);
        check_sine(&c, y);
    }
}

TEST(test_matmul) {
    check_matmul(BASIN_SHAPE(2, 3), BASIN_SHAPE(3, 4), (const char *[]){"", ""}, true);
    check_matmul(BASIN_SHAPE(1, 3), BASIN_SHAPE(3, 1), (const char *[]){"", ""}, true);
    check_matmul(BASIN_SHAPE(3, 1), BASIN_SHAPE(1, 2), (const char *[]){"", ""}, true);
    check_matmul(BASIN_SHAPE(2, 2, 3), BASIN_SHAPE(2, 3, 2), (const char *[]){"a", "a"}, true);
    check_matmul(BASIN_SHAPE(1, 2, 3), BASIN_SHAPE(1, 3, 2), (const char *[]){"a", "a"}, true);
    check_matmul(BASIN_SHAPE(2, 1, 2, 2), BASIN_SHAPE(2, 1, 2, 3), (const char *[]){"ab", "ab"},
                 true);
    check_matmul(BASIN_SHAPE(2, 2, 3), BASIN_SHAPE(3, 2), (const char *[]){"a", ""}, false);
    check_matmul(BASIN_SHAPE(2, 1, 2, 2), BASIN_SHAPE(2, 3), (const char *[]){"ab", ""}, false);
}

TEST(test_vector) {
    for (int tb = 0; tb < 2; tb++) {
        check c = check_new();
        basin_expr a = check_input(&c, "a", BASIN_SHAPE(3), -1, 1);
        basin_expr b = check_input(&c, "b", transposed(BASIN_SHAPE(3, 2), tb), -1, 1);
        basin_expr y = basin_matmul_t(a, false, b, tb);
        check_einsum_value(&c, tb ? "k,nk->n" : "k,kn->n", y);
        check_sine(&c, y);
    }
}

/* Numbers down to the smallest there are must not turn into others. */
TEST(test_tiny) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr a = check_input(&c, "a", BASIN_SHAPE(4, 21), -1, 1);
    basin_expr b = check_input(&c, "b", BASIN_SHAPE(21, 13), -1, 1);
    double *number = c.tensor[0].data;
    for (int i = 0; i < 4 * 21; i++) number[i] = ldexp(number[i], -15 - (i % 21) * 8);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor x = check_value(&c, basin_matmul(a, b), "cpu", false);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor y = check_value(&c, basin_matmul(a, b), "ref", false);
    for (int i = 0; i < 4 * 13; i++) ((double *)x.data)[i] *= 1e5, ((double *)y.data)[i] *= 1e5;
    assert_true(check_distance(&x, &y) < 1e-5);
}

/* Both factors the same, and epilogues of all kinds behind a product. */
TEST(test_epilogues) {
    check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3, 3), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(3, 3), -1, 1);
    basin_expr bias = check_input(&c, "bias", BASIN_SHAPE(3), -1, 1);
    basin_expr column = check_input(&c, "column", BASIN_SHAPE(2, 3, 1), -1, 1);
    basin_expr y = basin_tanh(basin_add(basin_matmul(x, w), bias));
    y = basin_add(x, basin_mul(column, basin_matmul_t(y, false, w, true)));
    y = basin_add(basin_matmul_t(y, false, x, true), basin_matmul_t(x, true, y, false));
    check_sine(&c, basin_scale(y, 0.3));
}

/* ---- windows ---- */

static double pixel(const basin_tensor *x, int64_t b, int64_t r, int64_t col, int64_t channel) {
    const int64_t *d = x->shape.dim;
    if (r < 0 || r >= d[1] || col < 0 || col >= d[2]) return 0;
    return ((double *)x->data)[((b * d[1] + r) * d[2] + col) * d[3] + channel];
}

static void check_conv_value(check *c, basin_expr y, int stride, bool same) {
    const basin_tensor *x = &c->tensor[0], *k = &c->tensor[1];
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor found = check_value(c, y, "ref", true);
    const int64_t *d = found.shape.dim, *kd = k->shape.dim;
    int64_t pad[2] = {0, 0};
    for (int i = 0; i < 2 && same; i++) {
        assert_int_equal(d[1 + i], (x->shape.dim[1 + i] + stride - 1) / stride);
        int64_t missing = (d[1 + i] - 1) * stride + kd[i] - x->shape.dim[1 + i];
        pad[i] = missing > 0 ? missing / 2 : 0;
    }
    int64_t count = basin_shape_count(found.shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t o = i % d[3], col = i / d[3] % d[2], r = i / d[3] / d[2] % d[1];
        int64_t b = i / d[3] / d[2] / d[1];
        double sum = 0;
        for (int64_t u = 0; u < kd[0] * kd[1] * kd[2]; u++) {
            int64_t ch = u % kd[2], kc = u / kd[2] % kd[1], kr = u / kd[2] / kd[1];
            sum += pixel(x, b, r * stride + kr - pad[0], col * stride + kc - pad[1], ch) *
                   ((double *)k->data)[u * kd[3] + o];
        }
        assert_float_equal(((double *)found.data)[i], sum, 1e-13);
    }
}

TEST(test_conv) {
    for (int stride = 1; stride <= 3; stride++)
        for (int same = 0; same < 2; same++) {
            check c = check_new();
            basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 4, 5, 2), -1, 1);
            basin_expr k = check_input(&c, "k", BASIN_SHAPE(3, 2, 2, 2), -1, 1);
            basin_expr y = basin_conv2d(x, k, stride, same);
            check_conv_value(&c, y, stride, same);
            check_sine(&c, basin_scale(y, 0.5));
        }
}

TEST(test_pools) {
    for (int window = 1; window <= 3; window++)
        for (int stride = 1; stride <= 2; stride++)
            for (int kind = 0; kind < 2; kind++) {
                check c = check_new();
                basin_expr x = check_input(&c, "x", BASIN_SHAPE(1, 4, 5, 2), -1, 1);
                check_sine(&c,
                           basin_pool2d(basin_square(x), kind ? BASIN_POOL_MAX : BASIN_POOL_AVERAGE,
                                        window, stride));
            }
}

TEST(the_first_of_equal_maxima_has_the_gradient) {
    static const double cells[9] = {1, 5, 5, 2, 9, -1, 4, 9, 3};
    static const double wanted[3][9] = {
        {9, 9, 9, 9}, {4.25, 4.5, 6, 5}, {0, 0, 0, 0, 4, 0, 0, 0, 0}};
    const basin_tensor image = basin_tensor_view(cells, BASIN_F64, BASIN_SHAPE(1, 3, 3, 1));
    basin_engine engine;
    basin_tensor found[3];
    assert_ok(basin_engine_open(&engine, &(basin_compute){.backend = "ref"}, &failure));
    basin_expr x = basin_variable(basin_constant(engine.graph, &image));
    basin_expr most = basin_pool2d(x, BASIN_POOL_MAX, 2, 1);
    const basin_expr out[] = {most, basin_pool2d(x, BASIN_POOL_AVERAGE, 2, 1),
                              basin_grad(basin_sum_all(most), x)};
    assert_ok(basin_engine_compute(&engine, found, out, 3, NULL, 0, &failure));
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(found[i].data, wanted[i], (i < 2 ? 4 : 9) * sizeof(double));
        basin_tensor_free(&found[i]);
    }
    basin_engine_close(&engine);
}

/* Third order: the gradient of a product chain, differentiated as any formula. */
TEST(test_third_order) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(3, 2), -1, 1);
    basin_expr energy = basin_sum_all(basin_lncosh(basin_matmul(x, w)));
    basin_expr force = basin_grad(basin_sum_all(basin_square(basin_grad(energy, x))), w);
    check_gradients(&c, force, 1e-5);
}
