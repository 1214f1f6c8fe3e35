/* Constants, arrangements along an axis, choices and sparse probabilities: values against plain
 * loops, gradients of first and second order against finite differences in double. */
#include <math.h>

#include "engine/expr/graph.h"
#include "support/lab.h"

/* The numbers of an expression on ref and on cpu. */
static void wants(check *c, basin_expr a, const double *number, double tolerance) {
    static const char *const backend[] = {"ref", "cpu"};
    for (int b = 0; b < 2; b++) {
        basin_tensor value = check_value(c, a, backend[b], false);
        for (int64_t i = 0; i < basin_shape_count(value.shape); i++)
            assert_float_equal(basin_tensor_at(&value, i), number[i], tolerance);
        basin_tensor_free(&value);
    }
}

TEST(test_constants) {
    check c = check_new();
    float number[6] = {1, 2, 3, -4, 0.5f, 7};
    basin_tensor tensor = basin_tensor_borrow(number, BASIN_F32, BASIN_SHAPE(2, 3));
    basin_expr k = basin_constant(c.graph, &tensor);
    assert_ptr_equal(k, basin_constant(c.graph, &tensor));
    number[0] = 9; /* they were copied */
    wants(&c, k, (double[]){1, 2, 3, -4, 0.5, 7}, 0);
    wants(&c, basin_arange(c.graph, 4), (double[]){0, 1, 2, 3}, 0);
    wants(&c, basin_eye(c.graph, 3), (double[]){1, 0, 0, 0, 1, 0, 0, 0, 1}, 0);
    wants(&c, basin_tri(c.graph, 2, 3, 0), (double[]){1, 0, 0, 1, 1, 0}, 0);
    wants(&c, basin_tri(c.graph, 3, 3, -1), (double[]){0, 0, 0, 1, 0, 0, 1, 1, 0}, 0);
    wants(&c, basin_tri(c.graph, 2, 3, 1), (double[]){1, 1, 0, 1, 1, 1}, 0);
    const int32_t at[3] = {2, -1, 0};
    basin_expr index = basin_leaf_data(c.graph, BASIN_INDEX, BASIN_SHAPE(3), at);
    wants(&c, index, (double[]){2, -1, 0}, 0);
    wants(&c, basin_one_hot(index, 3), (double[]){0, 0, 1, 0, 0, 0, 1, 0, 0}, 0);
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3), -1, 1);
    basin_expr rows = basin_take(basin_transpose(basin_square(x)), 0, index);
    check_sine(&c, basin_matmul(rows, basin_mul(x, k)));
}

TEST(test_reshape_open) {
    check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3, 2), -1, 1);
    assert_true(
        basin_shape_equal(basin_expr_shape(basin_reshape(x, BASIN_SHAPE(-1))), BASIN_SHAPE(12)));
    assert_true(basin_shape_equal(basin_expr_shape(basin_reshape(x, BASIN_SHAPE(4, -1))),
                                  BASIN_SHAPE(4, 3)));
    basin_expr mean = basin_expand_dims(basin_mean(x, 1, 2), -2, 2);
    assert_true(basin_shape_equal(basin_expr_shape(mean), BASIN_SHAPE(2, 1, 1)));
    check_sine(&c, basin_mul(x, mean));
}

typedef basin_expr arrange(basin_expr x, int axis);
static basin_expr stride_3(basin_expr x, int axis) { return basin_stride(x, axis, 1, 1, 3); }
static basin_expr stride_all(basin_expr x, int axis) { return basin_stride(x, axis, 2, 2, 1); }
static basin_expr every_2(basin_expr x, int axis) { return basin_stride(x, axis, 1, 2, 2); }
static basin_expr stride_far(basin_expr x, int axis) { return basin_stride(x, axis, 0, 1, 9); }
static basin_expr flip(basin_expr x, int axis) { return basin_stride(x, axis, 3, 4, -1); }
static basin_expr back_2(basin_expr x, int axis) { return basin_stride(x, axis, 3, 2, -2); }
static basin_expr roll(basin_expr x, int axis) { return basin_roll(x, axis, -6); }
static basin_expr stack(basin_expr x, int axis) {
    return basin_stack((basin_expr[]){x, basin_square(x)}, 2, axis);
}
static basin_expr take(basin_expr x, int axis) {
    const int32_t at[] = {3, 0, -1, 3};
    return basin_take(x, axis,
                      basin_leaf_data(basin_expr_graph(x), BASIN_INDEX, BASIN_SHAPE(4), at));
}

/* Along each axis of a cube of side 4, and by hand along its last. */
TEST(test_arrange) {
    const struct {
        arrange *of;
        int count, from[8];
    } cases[] = {
        {stride_3, 1, {1}},      {stride_all, 2, {2, 3}},  {stride_far, 1, {0}},
        {roll, 4, {2, 3, 0, 1}}, {flip, 4, {3, 2, 1, 0}},  {every_2, 2, {1, 3}},
        {back_2, 2, {3, 1}},     {take, 4, {3, 0, -1, 3}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        check c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(4), -1, 1);
        double want[8];
        for (int i = 0; i < cases[k].count; i++)
            want[i] = cases[k].from[i] < 0 ? 0 : ((double *)c.tensor[0].data)[cases[k].from[i]];
        basin_expr y = cases[k].of(x, -1);
        assert_int_equal(basin_expr_shape(y).dim[0], cases[k].count);
        wants(&c, y, want, 1e-7);
        check_free(&c);
        for (int axis = 0; axis < 3; axis++) {
            c = check_new();
            x = check_input(&c, "x", BASIN_SHAPE(4, 4, 4), -1, 1);
            check_sine(&c, cases[k].of(basin_square(x), axis - 3));
        }
    }
}

TEST(test_stack_diagonal) {
    for (int axis = 0; axis < 3; axis++) {
        check c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3), -1, 1);
        basin_expr y = stack(x, axis);
        assert_int_equal(basin_expr_shape(y).dim[axis], 2);
        check_sine(&c, y);
    }
    check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(3, 2, 3), -1, 1);
    const double *v = c.tensor[0].data;
    basin_expr y = basin_einsum("jij->ij", x);
    wants(&c, y, (double[]){v[0], v[7], v[14], v[3], v[10], v[17]}, 1e-7);
    check_sine(&c, basin_square(y));
}

TEST(test_cumsum) {
    for (int64_t n = 1; n < 8; n++) {
        check c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, n, 2), -1, 1);
        double want[32] = {0};
        for (int64_t i = 0; i < 4 * n; i++)
            want[i] = ((double *)c.tensor[0].data)[i] + (i % (2 * n) >= 2 ? want[i - 2] : 0);
        basin_expr y = basin_cumsum(x, 1);
        wants(&c, y, want, 1e-6);
        check_sine(&c, basin_square(y));
    }
}

TEST(test_along) {
    for (int axis = 0; axis < 3; axis++) {
        check c = check_new();
        check_sine(&c, basin_softmax(check_input(&c, "x", BASIN_SHAPE(2, 3, 2), -2, 2), axis));
        c = check_new();
        basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3, 2), -2, 2);
        basin_expr y = basin_logsumexp(x, axis - 3);
        assert_int_equal(basin_expr_shape(y).rank, 2);
        check_sine(&c, y);
    }
}

TEST(test_power) {
    check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3), 0.7, 2);
    basin_expr p = check_input(&c, "p", BASIN_SHAPE(3), -1, 2);
    double want[6];
    for (int i = 0; i < 6; i++)
        want[i] = pow(((double *)c.tensor[0].data)[i], ((double *)c.tensor[1].data)[i % 3]);
    wants(&c, basin_power(x, p), want, 1e-5);
    check_sine(&c, basin_power(x, p));
}

TEST(test_argmax_top) {
    check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 4), -1, 1);
    const double number[] = {1, 5, 5, -2, -7, -9, -8, -7};
    for (int i = 0; i < 8; i++) ((double *)c.tensor[0].data)[i] = number[i];
    wants(&c, basin_argmax(x, 1), (double[]){1, 0}, 0);
    wants(&c, basin_argmax(x, 0), (double[]){0, 0, 0, 0}, 0);
    basin_expr where, best = basin_top_k(x, 3, -1, &where);
    wants(&c, where, (double[]){1, 2, 0, 0, 3, 2}, 0);
    wants(&c, best, (double[]){5, 5, 1, -7, -7, -8}, 0);
    assert_non_null(basin_top_k(x, 2, 0, &where));
    wants(&c, where, (double[]){0, 0, 0, 0, 1, 1, 1, 1}, 0);
    /* A position is an index like any other. */
    basin_expr rows = basin_take(basin_transpose(x), 0, basin_argmax(x, 1));
    wants(&c, rows, (double[]){5, -9, 1, -7}, 0);
    check_free(&c);
    c = check_new();
    x = check_input(&c, "x", BASIN_SHAPE(3, 5), -1, 1);
    check_sine(&c, basin_square(basin_top_k(x, 2, 1, NULL)));
}

TEST(test_cross_entropy) {
    check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(3, 4), -2, 2);
    const int32_t label[3] = {3, -1, 0};
    basin_expr y = basin_cross_entropy_labels(x, check_index(&c, "label", label, 3));
    double want[3] = {0};
    for (int i = 0; i < 3; i++) {
        const double *row = (double *)c.tensor[0].data + 4 * i;
        for (int j = 0; j < 4; j++) want[i] += exp(row[j]);
        want[i] = label[i] < 0 ? 0 : log(want[i]) - row[label[i]];
    }
    wants(&c, y, want, 1e-6);
    check_sine(&c, y);
}

/* A label beyond the classes is refused when it is written. */
TEST(test_label_bounds) {
    basin_backend *backend;
    basin_store *store;
    basin_plan *plan;
    BASIN_AT_EXIT(free_graph) basin_graph *graph = basin_graph_new();
    basin_expr x = basin_input(graph, "x", BASIN_SHAPE(1, 4));
    basin_expr label = basin_index(graph, "label", BASIN_SHAPE(1));
    basin_expr y = basin_cross_entropy_labels(x, label);
    assert_ok(
        basin_backend_open(&backend, &(basin_compute){.backend = "ref", .threads = 1}, &failure));
    assert_ok(basin_store_new(&store, backend, &failure));
    assert_ok(
        basin_plan_new(&plan, store, &(basin_plan_spec){.output = &y, .outputs = 1}, &failure));
    int32_t number = 4;
    basin_tensor tensor = basin_tensor_borrow(&number, BASIN_I32, BASIN_SHAPE(1));
    assert_says(basin_plan_write(plan, label, &tensor, &failure), BASIN_BAD_VALUE,
                "input 'label': element 0 is 4, expected -1 to 3");
    basin_plan_free(plan);
    basin_store_free(store);
    basin_backend_close(backend);
}

static basin_expr einsum(const char *spec, const basin_expr *a, int count) {
    return basin_einsum_many(spec, a, count);
}

TEST(test_einsum_many) {
    check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 3), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(3, 2), -1, 1);
    basin_expr z = check_input(&c, "z", BASIN_SHAPE(2, 3), -1, 1);
    const double *a = c.tensor[0].data, *b = c.tensor[1].data, *d = c.tensor[2].data;
    double want[2] = {0}, trace = 0, sums[3] = {0};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 2; k++) want[i] += a[i * 3 + j] * b[j * 2 + k] * d[k * 3 + j];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) trace += a[i * 3 + j] * b[j * 2 + i], sums[j] += a[i * 3 + j];
    wants(&c, einsum("ij,jk,kj->i", (basin_expr[]){x, w, z}, 3), want, 1e-6);
    wants(&c, einsum("ii->", (basin_expr[]){basin_matmul(x, w)}, 1), &trace, 1e-6);
    wants(&c, einsum("ij->j", (basin_expr[]){x}, 1), sums, 1e-6);
    basin_expr square = basin_matmul(x, w);
    basin_expr y = einsum("ii,ij,kk,jl->lk", (basin_expr[]){square, x, square, w}, 4);
    check_sine(&c, basin_add(y, einsum("ii,jj->ij", (basin_expr[]){square, square}, 2)));
}

/* Probabilities: they sum to 1, some are 0, and the conjugate's gradient is them. */
TEST(test_sparse) {
    for (basin_sparse_kind kind = 0; kind <= BASIN_SPARSE_NORMMAX2; kind++)
        for (int wide = 0; wide < 2; wide++) {
            check c = check_new();
            basin_expr x =
                check_input(&c, "x", BASIN_SHAPE(3, 5), wide ? -1.5 : -0.2, wide ? 1.5 : 0.2);
            basin_expr p = basin_sparse_softmax(x, kind), z = basin_sparse_conjugate(x, kind);
            wants(&c, basin_sum(p, -1, 1), (double[]){1, 1, 1}, 1e-6);
            basin_expr zeros = basin_sum_all(basin_equal(p, basin_scalar(c.graph, 0)));
            basin_tensor count = check_value(&c, zeros, "ref", true);
            if (wide) assert_true(basin_tensor_at(&count, 0) >= 3);
            basin_tensor_free(&count);
            basin_expr off = basin_sum_all(basin_abs(basin_sub(p, basin_grad(z, x))));
            basin_tensor far = check_value(&c, off, "ref", true);
            assert_true(basin_tensor_at(&far, 0) < 1e-13);
            basin_tensor_free(&far);
            check_sine(&c, basin_add(basin_matmul(basin_square(p), basin_transpose(x)),
                                     basin_expand_dims(z, 1, 1)));
        }
}
