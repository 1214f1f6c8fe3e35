/* Decompositions: their results multiplied out again, gradients to second order against finite
 * differences in double, matrices and shapes that are refused. */
#include <math.h>
#include <string.h>

#include "engine/expr/misfit.h"
#include "support/lab.h"

static void finish(check *c, basin_expr y) {
    if (basin_graph_error(c->graph)) fail_msg("%s", basin_graph_error(c->graph)->text);
    y = basin_sin(y);
    check_backends(c, y, 2e-5);
    check_gradients(c, y, 1e-6);
    check_free(c);
}

/* w w' + 1 */
static basin_expr positive(basin_expr w) {
    basin_shape shape = basin_expr_shape(w);
    basin_expr eye = basin_eye(basin_expr_graph(w), shape.dim[shape.rank - 1]);
    return basin_add(basin_matmul_t(w, false, w, true), eye);
}

static void assert_near(check *c, basin_expr a, basin_expr b) {
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor x = check_value(c, a, "ref", true), y = check_value(c, b, "ref", true);
    assert_true(check_distance(&x, &y) < 1e-12);
}

static const basin_shape squares[] = {
    {2, {1, 1}}, {2, {3, 3}}, {3, {2, 4, 4}}, {2, {17, 17}}, {4, {2, 1, 3, 3}}};
enum { SQUARES = sizeof squares / sizeof *squares };

TEST(multiplied_out) {
    for (int i = 0; i < SQUARES; i++) {
        BASIN_AT_EXIT(check_free) check c = check_new();
        basin_shape row = squares[i];
        row.dim[row.rank - 1] = 2;
        basin_expr w = check_input(&c, "w", squares[i], -1, 1), a = positive(w);
        basin_expr b = check_input(&c, "b", row, -1, 1), l = basin_cholesky(a), sign;
        assert_near(&c, basin_matmul_t(l, false, l, true), a);
        assert_near(&c, basin_matmul(w, basin_solve(w, b, BASIN_SOLVE_GENERAL)), b);
        assert_near(&c, basin_matmul_t(w, true, basin_solve(w, b, BASIN_SOLVE_TRANSPOSED), false),
                    b);
        basin_expr half = basin_solve(l, b, BASIN_SOLVE_LOWER);
        assert_near(&c, basin_solve(l, half, BASIN_SOLVE_LOWER_TRANSPOSED),
                    basin_solve(a, b, BASIN_SOLVE_GENERAL));
        basin_expr size = basin_slogdet(w, NULL), both = basin_slogdet(basin_matmul(w, w), &sign);
        assert_near(&c, basin_scale(size, 2), both);
        assert_near(&c, sign, basin_full(c.graph, basin_expr_shape(sign), 1));
    }
}

TEST(signs) {
    const double number[] = {0, 2, 3, 0, /**/ 1, 2, 2, 4, /**/ -1, 0, 0, -4, /**/ 1, 0, 0, 5};
    const double size[] = {log(6), -INFINITY, log(4), log(5)}, want[] = {-1, 0, 1, 1};
    for (int cpu = 0; cpu < 2; cpu++) {
        BASIN_AT_EXIT(lab_close) lab l = lab_new(cpu ? "cpu" : "ref", 1);
        basin_expr sign, a = lab_input(&l, "a", BASIN_SHAPE(4, 2, 2), number);
        BASIN_AT_EXIT(basin_tensor_free)
        basin_tensor log_size = lab_value(&l, basin_slogdet(a, &sign));
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor signs = lab_value(&l, sign);
        for (int i = 0; i < 4; i++) {
            assert_true(((double *)signs.data)[i] == want[i]);
            double found = ((double *)log_size.data)[i];
            assert_true(found == size[i] || fabs(found - size[i]) < 1e-6);
        }
    }
}

TEST(gradients_of_cholesky) {
    for (int i = 0; i < SQUARES; i++) {
        check c = check_new();
        finish(&c, basin_cholesky(positive(check_input(&c, "w", squares[i], -1, 1))));
    }
    check c = check_new(); /* of a matrix that is not even */
    basin_expr eye = basin_scale(basin_eye(c.graph, 3), 3);
    finish(&c, basin_cholesky(basin_add(check_input(&c, "a", BASIN_SHAPE(3, 3), -1, 1), eye)));
}

TEST(gradients_of_solve) {
    const basin_shape cases[][2] = {{BASIN_SHAPE(3, 3), BASIN_SHAPE(3)},
                                    {BASIN_SHAPE(3, 3), BASIN_SHAPE(3, 2)},
                                    {BASIN_SHAPE(2, 4, 4), BASIN_SHAPE(4)},
                                    {BASIN_SHAPE(3, 3), BASIN_SHAPE(2, 3, 1)},
                                    {BASIN_SHAPE(2, 1, 3, 3), BASIN_SHAPE(3, 3, 2)}};
    for (int i = 0; i < 5; i++)
        for (int kind = BASIN_SOLVE_GENERAL; kind <= BASIN_SOLVE_LOWER_TRANSPOSED; kind++) {
            check c = check_new();
            basin_expr w = check_input(&c, "w", cases[i][0], -1, 1);
            basin_expr b = check_input(&c, "b", cases[i][1], -1, 1);
            int64_t n = cases[i][0].dim[cases[i][0].rank - 1];
            basin_expr eye = basin_scale(basin_eye(c.graph, n), 3);
            finish(&c, basin_solve(basin_add(w, eye), b, (basin_solve_kind)kind));
        }
}

TEST(gradients_of_slogdet) {
    for (int i = 0; i < SQUARES; i++) {
        check c = check_new();
        basin_expr w = check_input(&c, "w", squares[i], 0.1, 1);
        basin_expr eye = basin_scale(basin_eye(c.graph, squares[i].dim[squares[i].rank - 1]), 2);
        finish(&c, basin_slogdet(basin_sub(w, eye), NULL));
    }
}

/* ---- what is refused ---- */

static void assert_run_fails(const char *backend, basin_expr (*build)(basin_expr a),
                             const char *says) {
    const double number[] = {1, 0, 0, 1, /**/ 1, 2, 2, 4};
    BASIN_AT_EXIT(lab_close) lab l = lab_new(backend, 1);
    basin_expr a = lab_input(&l, "a", BASIN_SHAPE(2, 2, 2), number), y = build(a);
    basin_plan *plan = lab_plan(&l, &y, 1);
    assert_says(basin_plan_run(plan, &failure), BASIN_BAD_VALUE, says);
    basin_plan_free(plan);
}

static basin_expr inverse(basin_expr a) {
    return basin_solve(a, basin_eye(basin_expr_graph(a), 2), BASIN_SOLVE_GENERAL);
}
static basin_expr lower_inverse(basin_expr a) {
    basin_expr apart = basin_sub(a, basin_scale(basin_eye(basin_expr_graph(a), 2), 4));
    return basin_solve(apart, basin_eye(basin_expr_graph(a), 2), BASIN_SOLVE_LOWER);
}

TEST(matrices_are_named) {
    for (int cpu = 0; cpu < 2; cpu++) {
        const char *backend = cpu ? "cpu" : "ref";
        assert_run_fails(backend, basin_cholesky,
                         "cholesky: matrix 1 is not positive definite (row 1)");
        assert_run_fails(backend, inverse, "solve: matrix 1 is singular (column 1)");
        assert_run_fails(backend, lower_inverse, "solve: matrix 1 is singular (column 1)");
    }
}

TEST(wrong_shapes) {
    static const struct {
        int what;
        const char *says[MISFIT_SAYS];
    } cases[] = {{0, {"cholesky", "'a' [2, 3]"}},
                 {1, {"slogdet", "'a' [2, 3]"}},
                 {2, {"solve", "'a' [2, 3]", "'v' [3]"}},
                 {3, {"solve", "'m' [5, 3, 3]", "'b' [4, 3, 2]"}},
                 {4, {"solve", "'m' [5, 3, 3]", "'a' [2, 3]"}},
                 {5, {"cholesky", "1 []"}},
                 {6, {"solve", "7"}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        basin_graph *graph = basin_graph_new();
        basin_expr a = basin_input(graph, "a", BASIN_SHAPE(2, 3)), sign;
        basin_expr m = basin_input(graph, "m", BASIN_SHAPE(5, 3, 3));
        basin_expr b = basin_input(graph, "b", BASIN_SHAPE(4, 3, 2));
        basin_expr v = basin_input(graph, "v", BASIN_SHAPE(3));
        basin_expr made = cases[i].what == 0   ? basin_cholesky(a)
                          : cases[i].what == 1 ? basin_slogdet(a, &sign)
                          : cases[i].what == 2 ? basin_solve(a, v, BASIN_SOLVE_GENERAL)
                          : cases[i].what == 3 ? basin_solve(m, b, BASIN_SOLVE_LOWER)
                          : cases[i].what == 4 ? basin_solve(m, a, BASIN_SOLVE_GENERAL)
                          : cases[i].what == 5 ? basin_cholesky(basin_scalar(graph, 1))
                                               : basin_solve(m, v, (basin_solve_kind)7);
        assert_true(misfit_told(cases[i].says[0], made, graph, cases[i].says));
        assert_null(basin_solve(NULL, v, BASIN_SOLVE_GENERAL));
        basin_graph_free(graph);
    }
}
