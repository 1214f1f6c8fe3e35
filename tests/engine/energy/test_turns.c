/* Steps in turns, with step sizes of one's own, retractions, and forces that pull at queries alone:
 * unrolled and run against plain loops, gradients against finite differences. */
#include <math.h>
#include <string.h>

#include "basin/energy.h"
#include "engine/energy/energy.h"
#include "support/lab.h"

enum { N = 3, D = 4, STEPS = 3 };

/* Two springs: 3/2 |g|^2 and 1/2 |g - c|^2. */
typedef struct springs {
    lab lab;
    basin_energy energy;
    basin_expr x, c, p; /* [N, D], states [D] and [D, D] */
    basin_tensor start, center, matrix;
} springs;

static basin_expr to_zero(const void *context, basin_expr g) {
    (void)context;
    return basin_scale(basin_sum(basin_square(g), 0, 2), 1.5);
}
static basin_expr to_center(const void *context, basin_expr g) {
    basin_expr gap = basin_sub(g, ((const springs *)context)->c);
    return basin_scale(basin_sum(basin_square(gap), 0, 2), 0.5);
}

static void springs_open(springs *s, const char *backend) {
    lab_open(&s->lab, backend, 1);
    s->c = lab_state(&s->lab, "c", BASIN_SHAPE(D));
    s->p = lab_state(&s->lab, "p", BASIN_SHAPE(D, D));
    lab_fill(&s->lab, 5, 0.7);
    assert_ok(basin_store_get(&s->center, s->lab.store, "c", &failure));
    assert_ok(basin_store_get(&s->matrix, s->lab.store, "p", &failure));
    assert_ok(basin_tensor_new(&s->start, BASIN_F64, BASIN_SHAPE(N, D), &failure));
    for (int i = 0; i < N * D; i++)
        ((double *)s->start.data)[i] = 2 * basin_random_uniform_at(3, 1, (uint64_t)i) - 1;
    s->x = lab_input(&s->lab, "x", BASIN_SHAPE(N, D), s->start.data);
    static const basin_term term[] = {{"a", to_zero, NULL}, {"b", to_center, NULL}};
    s->energy = (basin_energy){.term = term, .terms = 2, .context = s};
}

static void springs_close(springs *s) {
    basin_tensor_free(&s->start);
    basin_tensor_free(&s->center);
    basin_tensor_free(&s->matrix);
    lab_close(&s->lab);
}

/* Both ways of descending end where `want` says. */
static void check_end(springs *s, const basin_descent_spec *spec, const double *want,
                      double tolerance) {
    basin_descent *descent;
    basin_descent_result result;
    basin_error error = {0};
    basin_tensor wanted = basin_tensor_view(want, BASIN_F64, BASIN_SHAPE(N, D));
    basin_tensor end = lab_value(&s->lab, basin_descend(&s->energy, s->x, spec, NULL));
    lab_assert_near(&end, &wanted, tolerance, "unrolled");
    if (basin_descent_new(&descent, s->lab.store, &s->energy, s->lab.graph, s->start.shape, spec,
                          NULL, &error) ||
        basin_descent_run(descent, &result, &s->start, &error))
        fail_msg("%s", error.text);
    lab_assert_near(result.x, &wanted, tolerance, "run");
    basin_descent_result_free(&result);
    basin_descent_free(descent);
    basin_tensor_free(&end);
}

static const char *const backends[] = {"ref", "cpu"};
static const double tolerances[] = {1e-14, 1e-6};

TEST(split_steps) {
    for (int b = 0; b < 2; b++) {
        springs s;
        springs_open(&s, backends[b]);
        const basin_substep turn[] = {{.terms = 1}, {.terms = 2}};
        basin_descent_spec spec = {.steps = STEPS, .alpha = 0.1, .substep = turn, .substeps = 2};
        double x[N * D];
        memcpy(x, s.start.data, sizeof x);
        for (int t = 0; t < STEPS; t++)
            for (int i = 0; i < N * D; i++) {
                x[i] -= 0.1 * 3 * x[i];
                x[i] -= 0.1 * (x[i] - basin_tensor_at(&s.center, i % D));
            }
        check_end(&s, &spec, x, tolerances[b]);
        springs_close(&s);
    }
}

/* The force times a matrix, times a number that falls with the step and grows with the token. */
static basin_expr paced(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    const springs *s = context;
    basin_expr token = basin_expand_dims(basin_arange(basin_expr_graph(x), N), 1, 1);
    basin_expr pace = basin_div(basin_offset(token, 1), basin_offset(t, 2));
    return basin_mul(pace, basin_matmul(force, s->p));
}

TEST(step_sizes) {
    for (int b = 0; b < 2; b++) {
        springs s;
        springs_open(&s, backends[b]);
        const basin_substep turn = {.move = paced, .context = &s};
        basin_descent_spec spec = {.steps = STEPS, .alpha = 0.2, .substep = &turn, .substeps = 1};
        double x[N][D], force[D];
        memcpy(x, s.start.data, sizeof x);
        for (int t = 0; t < STEPS; t++)
            for (int n = 0; n < N; n++) {
                for (int i = 0; i < D; i++)
                    force[i] = -3 * x[n][i] - (x[n][i] - basin_tensor_at(&s.center, i));
                for (int i = 0; i < D; i++)
                    for (int j = 0; j < D; j++)
                        x[n][i] += 0.2 * (n + 1) / (t + 2) * force[j] *
                                   basin_tensor_at(&s.matrix, j * D + i);
            }
        check_end(&s, &spec, &x[0][0], tolerances[b]);
        if (b == 0) {
            basin_expr end = basin_descend(&s.energy, s.x, &spec, NULL);
            lab_check_gradients(&s.lab, basin_sum_all(basin_sin(end)), 1e-8, "learned steps");
        }
        springs_close(&s);
    }
}

static basin_expr to_spheres(const void *context, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_to_sphere(x, 2);
}
static basin_expr tangent(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_to_tangent(force, x, 2);
}
static basin_expr to_box(const void *context, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    basin_graph *graph = basin_expr_graph(x);
    return basin_minimum(basin_maximum(x, basin_scalar(graph, -0.1)), basin_scalar(graph, 0.2));
}
static basin_expr shrink(const void *context, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_sub(basin_relu(basin_offset(x, -0.05)),
                     basin_relu(basin_neg(basin_offset(x, 0.05))));
}

static void land(double *x, int kind) {
    for (int i = 0; i < N * D; i += 2) {
        double length = sqrt(x[i] * x[i] + x[i + 1] * x[i + 1]);
        for (int j = i; j < i + 2; j++) {
            if (kind == 0) x[j] /= length;
            if (kind == 1) x[j] = fmin(fmax(x[j], -0.1), 0.2);
            if (kind == 2) x[j] = copysign(fmax(fabs(x[j]) - 0.05, 0), x[j]);
        }
    }
}

TEST(retractions) {
    for (int b = 0; b < 2; b++)
        for (int kind = 0; kind < 3; kind++) {
            springs s;
            springs_open(&s, backends[b]);
            const basin_substep turn = {
                .terms = 2,
                .move = kind == 0 ? tangent : NULL,
                .project = (basin_expr(*const[])(const void *, basin_expr, basin_expr)){
                    to_spheres, to_box, shrink}[kind]};
            basin_descent_spec spec = {
                .steps = STEPS, .alpha = 0.3, .substep = &turn, .substeps = 1};
            double x[N * D], force[N * D];
            memcpy(x, s.start.data, sizeof x);
            for (int t = 0; t < STEPS; t++) {
                for (int i = 0; i < N * D; i++) force[i] = basin_tensor_at(&s.center, i % D) - x[i];
                for (int i = 0; i < N * D && kind == 0; i += 2) {
                    double along = force[i] * x[i] + force[i + 1] * x[i + 1];
                    force[i] -= along * x[i], force[i + 1] -= along * x[i + 1];
                }
                for (int i = 0; i < N * D; i++) x[i] += 0.3 * force[i];
                land(x, kind);
            }
            check_end(&s, &spec, x, tolerances[b]);
            if (b == 0) {
                basin_expr end = basin_descend(&s.energy, s.x, &spec, NULL);
                lab_check_gradients(&s.lab, basin_sum_all(basin_sin(end)), 1e-7, "retraction");
            }
            springs_close(&s);
        }
}

/* The length of a zero vector stays 0, and so does its gradient. */
TEST(sphere_at_zero) {
    BASIN_AT_EXIT(lab_close) lab l = lab_new("ref", 1);
    basin_expr x = lab_input(&l, "x", BASIN_SHAPE(4), (double[]){0, 0, 3, 4});
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor y = lab_value(&l, basin_to_sphere(x, 2));
    const double want[] = {0, 0, 0.6, 0.8};
    for (int i = 0; i < 4; i++) assert_float_equal(((double *)y.data)[i], want[i], 1e-15);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor g = lab_value(&l, basin_grad(basin_sum_all(basin_to_sphere(x, 2)), x));
    assert_int_equal(basin_tensor_first_bad(&g), -1);
}

/* ---- forces at the queries alone ---- */

typedef struct attention {
    lab lab;
    basin_expr w; /* [1, D, D] */
} attention;

static basin_expr one_sided(const void *context, basin_expr g) {
    const attention *a = context;
    basin_expr q = basin_expand_dims(g, 1, 1); /* [N, 1, D] */
    basin_expr k = basin_einsum("nd,hyd->nhy", basin_variable_source(g), a->w);
    basin_expr beta = basin_full(basin_expr_graph(g), BASIN_SHAPE(1), 1);
    return basin_neg(basin_sum_all(basin_attention_lse(q, k, beta, &BASIN_EARLIER_PAIRS, NULL)));
}

TEST(query_side) {
    attention a;
    double x[N][D], w[D][D];
    lab_open(&a.lab, "ref", 1);
    a.w = lab_state(&a.lab, "w", BASIN_SHAPE(1, D, D));
    basin_expr start = lab_state(&a.lab, "x", BASIN_SHAPE(N, D));
    lab_fill(&a.lab, 9, 0.8);
    for (int i = 0; i < N * D; i++) (&x[0][0])[i] = cos(1.7 * i);
    for (int i = 0; i < D * D; i++) (&w[0][0])[i] = sin(2.3 * i);
    lab_set(&a.lab, start, &x[0][0]);
    lab_set(&a.lab, a.w, &w[0][0]);
    basin_energy energy = {BASIN_TERMS({"attention", one_sided, &a})};
    basin_tensor force = lab_value(&a.lab, basin_energy_force(&energy, start));
    for (int n = 0; n < N; n++) {
        double p[N], total = 0, want[D] = {0}, key[N][D] = {{0}};
        for (int m = 0; m < n; m++) {
            double score = 0;
            for (int y = 0; y < D; y++) {
                for (int d = 0; d < D; d++) key[m][y] += w[y][d] * x[m][d];
                score += x[n][y] * key[m][y];
            }
            total += p[m] = exp(score);
        }
        for (int m = 0; m < n; m++)
            for (int y = 0; y < D; y++) want[y] += p[m] / total * key[m][y];
        for (int y = 0; y < D; y++)
            assert_float_equal(((double *)force.data)[n * D + y], want[y], 1e-13);
    }
    basin_tensor_free(&force);
    basin_expr end =
        basin_descend(&energy, start, &(basin_descent_spec){.steps = 2, .alpha = 0.4}, NULL);
    lab_check_gradients(&a.lab, basin_sum_all(basin_sin(end)), 1e-8, "training through both sides");
    lab_close(&a.lab);
}

/* ---- mistakes ---- */

static basin_expr to_nothing(const void *context, basin_expr x, basin_expr t) {
    (void)context, (void)x, (void)t;
    return NULL;
}
static basin_expr to_fewer(const void *context, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_sum(x, 0, 1);
}
static basin_expr to_uneven(const void *context, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_to_sphere(x, 3);
}

TEST(errors) {
    const struct {
        basin_substep turn;
        int turns;
        const char *says;
    } cases[] = {
        {{.terms = 5},
         1,
         "turn 0 of a descent takes the terms of bits 0x5; the energy has 2 terms"},
        {{.terms = 1}, -1, "a descent of -1 turns without a list of them"},
        {{.project = to_nothing}, 1, "turn 0 of a descent gives NULL; expected tokens"},
        {{.project = to_fewer}, 1, "turn 0 of a descent gives tokens [4], expected [3, 4]"},
        {{.project = to_uneven},
         1,
         "spheres of 3 neighbours in tokens [3, 4]; expected a divisor of the last axis"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int run = 0; run < 2; run++) {
            springs s;
            basin_descent *descent;
            basin_error error = {0};
            springs_open(&s, "ref");
            basin_descent_spec spec = {
                .steps = 1, .alpha = 0.1, .substep = &cases[i].turn, .substeps = cases[i].turns};
            if (run) {
                assert_int_not_equal(basin_descent_new(&descent, s.lab.store, &s.energy,
                                                       s.lab.graph, s.start.shape, &spec, NULL,
                                                       &error),
                                     BASIN_OK);
                assert_null(descent);
            } else {
                assert_null(basin_descend(&s.energy, s.x, &spec, NULL));
                error = *basin_graph_error(s.lab.graph);
            }
            assert_string_equal(error.text, cases[i].says);
            springs_close(&s);
        }
}
