/* The zoo beyond its golden cases (basin verify): dense memories against loops, recall, and models
 * whose update is the gradient of their energy: small steps never raise it. */
#include <math.h>
#include <stdio.h>

#include "basin/zoo.h"
#include "support/lab.h"

enum { N = 3, D = 6, M = 4 };

TEST(dense_against_loops) {
    static const double powers[] = {0, 2, 3, 4};
    for (int k = 0; k < 4; k++) {
        lab l = lab_new("ref", 1);
        basin_expr xi = lab_state(&l, "xi", BASIN_SHAPE(M, D)),
                   x = lab_state(&l, "x", BASIN_SHAPE(N, D));
        lab_fill(&l, 3, 1);
        basin_tensor a = lab_value(&l, x), b = lab_value(&l, xi);
        basin_zoo_dense m = {.xi = xi, .power = powers[k]};
        basin_energy energy = basin_zoo_dense_energy(&m);
        basin_expr total = basin_energy_total(&energy, x);
        basin_tensor found = lab_value(&l, total);
        for (int n = 0; n < N; n++) {
            double want = 0, power = powers[k] == 0 ? 2 : powers[k];
            for (int mu = 0; mu < M; mu++) {
                double z = 0;
                for (int d = 0; d < D; d++)
                    z += ((double *)a.data)[n * D + d] * ((double *)b.data)[mu * D + d];
                want -= pow(power == 2 ? fabs(z) : fmax(z, 0), power) / power;
            }
            assert_float_equal(((double *)found.data)[n], want, 1e-13);
        }
        lab_check_gradients(&l, basin_sin(total), 1e-7, "dense memories");
        basin_tensor_free(&a);
        basin_tensor_free(&b);
        basin_tensor_free(&found);
        lab_close(&l);
    }
}

/* Well apart and at a low temperature, a damaged memory comes back in one step. */
TEST(recalls) {
    const basin_zoo_entropy kinds[] = {BASIN_ZOO_SOFTMAX, BASIN_ZOO_ENTMAX15, BASIN_ZOO_SPARSEMAX,
                                       BASIN_ZOO_NORMMAX2};
    double xi[M * D], x[D];
    for (int i = 0; i < M * D; i++) xi[i] = i / D == i % D ? 3 : 0;
    for (int i = 0; i < D; i++) x[i] = i == 2 ? 2 : 0.3;
    for (int k = 0; k < 4; k++) {
        lab l = lab_new("cpu", 1);
        basin_zoo_hopfield m = {.xi = lab_input(&l, "xi", BASIN_SHAPE(M, D), xi),
                                .beta = basin_scalar(l.graph, 8),
                                .entropy = kinds[k]};
        basin_expr start = lab_input(&l, "x", BASIN_SHAPE(1, D), x);
        basin_energy energy = basin_zoo_hopfield_energy(&m);
        basin_descent_spec spec = {.steps = 1, .alpha = 1};
        basin_tensor end = lab_value(&l, basin_descend(&energy, start, &spec, NULL));
        for (int i = 0; i < D; i++)
            assert_float_equal(((double *)end.data)[i], i == 2 ? 3 : 0, 1e-5);
        basin_tensor p = lab_value(&l, basin_zoo_hopfield_recall(&m, start));
        assert_float_equal(((double *)p.data)[2], 1, 1e-5);
        basin_tensor_free(&end);
        basin_tensor_free(&p);
        lab_close(&l);
    }
}

/* Small steps along the models' own updates. */
static void check_falls(lab *l, const basin_energy *energy, basin_expr x, const basin_substep *turn,
                        const char *what) {
    enum { STEPS = 20 };
    basin_expr trace[(STEPS + 1) * 2], total[STEPS + 1];
    basin_descent_spec spec = {.steps = STEPS, .alpha = 0.01, .turn = turn, .turns = turn ? 1 : 0};
    assert_non_null(basin_descend(energy, x, &spec, trace));
    for (int t = 0; t <= STEPS; t++) {
        total[t] = basin_scalar(l->graph, 0);
        for (int p = 0; p < energy->terms; p++)
            total[t] = basin_add(total[t], basin_sum_all(trace[t * energy->terms + p]));
    }
    basin_tensor all = lab_value(l, basin_stack(total, STEPS + 1, 0));
    const double *e = all.data;
    for (int t = 0; t < STEPS; t++)
        if (!(e[t + 1] < e[t]))
            fail_msg("%s: the energy goes from %.17g to %.17g in step %d", what, e[t], e[t + 1], t);
    basin_tensor_free(&all);
}

TEST(energies_fall) {
    BASIN_AT_EXIT(lab_close) lab l = lab_new("ref", 1);
    basin_expr xi = lab_state(&l, "xi", BASIN_SHAPE(M, D)),
               u = lab_state(&l, "u", BASIN_SHAPE(N, D));
    basin_expr x = lab_state(&l, "x", BASIN_SHAPE(N, D)),
               a = lab_state(&l, "a", BASIN_SHAPE(N * D, N * D));
    lab_fill(&l, 11, 1);
    basin_zoo_lsr lsr = {.xi = xi, .beta = basin_scalar(l.graph, 0.3), .epsilon = 1e-3};
    basin_zoo_plastic plastic = {.xi = xi, .u = basin_scale(u, 9)};
    basin_zoo_akorn akorn = {.c = u,
                             .omega = basin_full(l.graph, BASIN_SHAPE(D / 2, 2), 0),
                             .gamma = basin_scalar(l.graph, 1),
                             .a = a,
                             .sphere = 2};
    basin_energy energy = basin_zoo_lsr_energy(&lsr);
    check_falls(&l, &energy, x, NULL, "log-sum-ReLU");
    basin_substep turn;
    energy = basin_zoo_plastic_energy(&plastic, &turn);
    check_falls(&l, &energy, x, &turn, "plastic");
    energy = basin_zoo_akorn_energy(&akorn, &turn);
    check_falls(&l, &energy, basin_to_sphere(x, 2), &turn, "oscillators");
}

/* Heads that do not divide the channels: one line. */
TEST(wrong_heads) {
    static const int64_t heads[] = {0, 4, -1};
    for (int i = 0; i < 3; i++)
        for (int model = 0; model < 3; model++) {
            lab l = lab_new("ref", 1);
            basin_expr x = lab_state(&l, "x", BASIN_SHAPE(N, D));
            basin_expr w = lab_state(&l, "w", BASIN_SHAPE(D, D)),
                       b = lab_state(&l, "b", BASIN_SHAPE(D));
            basin_zoo_hyperset set = {.w = w, .m = w, .gain_w = b, .gain_m = b, .heads = heads[i]};
            basin_zoo_akorn akorn = {.c = x, .heads = heads[i], .sphere = 2};
            basin_zoo_crate crate = {.ln1_w = b, .ln1_b = b, .u = w, .heads = heads[i]};
            basin_energy energy = model == 0 ? basin_zoo_hyperset_energy(&set, NULL)
                                             : basin_zoo_akorn_energy(&akorn, NULL);
            assert_null(model == 2 ? basin_zoo_crate_block(&crate, x, NULL)
                                   : basin_energy_total(&energy, x));
            char want[100];
            snprintf(want, sizeof want, "6 channels in %d heads; expected a divisor",
                     (int)heads[i]);
            assert_string_equal(basin_graph_error(l.graph)->text, want);
            lab_close(&l);
        }
}
