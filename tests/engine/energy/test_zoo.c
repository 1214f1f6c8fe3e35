/* The zoo beyond its golden cases (basin verify): dense memories against loops, recall, and models
 * whose update is the gradient of their energy: small steps never raise it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "basin/zoo.h"
#include "support/lab.h"

enum { N = 3, D = 6, M = 4 };

#define BUILD(graph, name, ...)                                                                    \
    build(graph, name, (const basin_zoo_value[]){__VA_ARGS__},                                     \
          (int)(sizeof((const basin_zoo_value[]){__VA_ARGS__}) / sizeof(basin_zoo_value)))
static const basin_zoo *build(basin_graph *graph, const char *name, const basin_zoo_value *value,
                              int values) {
    const basin_zoo *zoo = basin_zoo_build(graph, name, value, values);
    if (!zoo) fail_msg("%s", basin_graph_error(graph)->text);
    return zoo;
}

TEST(dense_against_loops) {
    static const double powers[] = {2, 3, 4};
    for (int k = 0; k < 3; k++) {
        lab l = lab_new("ref", 1);
        basin_expr xi = lab_state(&l, "xi", BASIN_SHAPE(M, D)),
                   x = lab_state(&l, "x", BASIN_SHAPE(N, D));
        lab_fill(&l, 3, 1);
        basin_tensor a = lab_value(&l, x), b = lab_value(&l, xi);
        const basin_zoo *zoo =
            BUILD(l.graph, "classical", {"xi", .expr = xi}, {"power", .number = powers[k]});
        basin_expr total = basin_energy_total(&zoo->energy, x);
        basin_tensor found = lab_value(&l, total);
        for (int n = 0; n < N; n++) {
            double want = 0, power = powers[k];
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
    static const char *const kinds[] = {"softmax", "entmax15", "sparsemax", "normmax2"};
    double xi[M * D], x[D];
    for (int i = 0; i < M * D; i++) xi[i] = i / D == i % D ? 3 : 0;
    for (int i = 0; i < D; i++) x[i] = i == 2 ? 2 : 0.3;
    for (int k = 0; k < 4; k++) {
        lab l = lab_new("cpu", 1);
        const basin_zoo *zoo =
            BUILD(l.graph, "hopfield", {"xi", .expr = lab_input(&l, "xi", BASIN_SHAPE(M, D), xi)},
                  {"beta", .number = 8}, {"entropy", .choice = kinds[k]});
        basin_expr start = lab_input(&l, "x", BASIN_SHAPE(1, D), x);
        basin_descent_spec spec = {.steps = 1, .alpha = zoo->alpha};
        basin_tensor end = lab_value(&l, basin_descend(&zoo->energy, start, &spec, NULL));
        for (int i = 0; i < D; i++)
            assert_float_equal(((double *)end.data)[i], i == 2 ? 3 : 0, 1e-5);
        basin_tensor p = lab_value(&l, basin_zoo_output(zoo, "recall", start));
        assert_float_equal(((double *)p.data)[2], 1, 1e-5);
        basin_tensor_free(&end);
        basin_tensor_free(&p);
        lab_close(&l);
    }
}

/* Small steps along the models' updates. */
static void check_falls(lab *l, const basin_zoo *zoo, basin_expr x) {
    enum { STEPS = 20 };
    basin_expr trace[(STEPS + 1) * 2], total[STEPS + 1];
    int terms = zoo->energy.terms;
    basin_descent_spec spec = {
        .steps = STEPS, .alpha = 0.01, .substep = zoo->substep, .substeps = zoo->substeps};
    assert_non_null(basin_descend(&zoo->energy, basin_zoo_output(zoo, "begin", x), &spec, trace));
    for (int t = 0; t <= STEPS; t++) {
        total[t] = basin_scalar(l->graph, 0);
        for (int p = 0; p < terms; p++)
            total[t] = basin_add(total[t], basin_sum_all(trace[t * terms + p]));
    }
    basin_tensor all = lab_value(l, basin_stack(total, STEPS + 1, 0));
    const double *e = all.data;
    for (int t = 0; t < STEPS; t++)
        if (!(e[t + 1] < e[t]))
            fail_msg("%s: the energy goes from %.17g to %.17g in step %d", zoo->model->name, e[t],
                     e[t + 1], t);
    basin_tensor_free(&all);
}

TEST(energies_fall) {
    BASIN_AT_EXIT(lab_close) lab l = lab_new("ref", 1);
    basin_expr xi = lab_state(&l, "xi", BASIN_SHAPE(M, D)),
               u = lab_state(&l, "u", BASIN_SHAPE(N, D));
    basin_expr x = lab_state(&l, "x", BASIN_SHAPE(N, D)),
               a = lab_state(&l, "a", BASIN_SHAPE(N * D, N * D));
    lab_fill(&l, 11, 1);
    basin_expr still = basin_full(l.graph, BASIN_SHAPE(D / 2, 2), 0);
    check_falls(&l, BUILD(l.graph, "lsr", {"xi", .expr = xi}, {"beta", .number = 0.3}), x);
    check_falls(&l, BUILD(l.graph, "idp", {"xi", .expr = xi}, {"u", .expr = basin_scale(u, 9)}), x);
    check_falls(&l,
                BUILD(l.graph, "akorn", {"c", .expr = u}, {"omega", .expr = still},
                      {"a", .expr = a}, {"sphere", .number = 2}),
                x);
}

/* More layers than the row of the table names. */
TEST(any_number_of_layers) {
    enum { LAYERS = 12 };
    BASIN_AT_EXIT(lab_close) lab l = lab_new("ref", 1);
    char name[2 * LAYERS + 1][16];
    basin_zoo_value value[2 * LAYERS + 1] = {
        {"x", .expr = basin_full(l.graph, BASIN_SHAPE(N, D), 1)}};
    for (int i = 0; i < 2 * LAYERS; i++) {
        snprintf(name[i], sizeof name[i], "%c%d", i % 2 ? 'b' : 'w', i / 2);
        basin_shape shape = i % 2 ? BASIN_SHAPE(D) : BASIN_SHAPE(D, D);
        value[i + 1] =
            (basin_zoo_value){.name = name[i], .expr = basin_full(l.graph, shape, 0.01 * i)};
    }
    const basin_zoo *zoo = basin_zoo_build(l.graph, "eqprop", value, 2 * LAYERS + 1);
    assert_non_null(zoo);
    memset(name, 0, sizeof name); /* names are copied */
    basin_expr zero = basin_full(l.graph, BASIN_SHAPE(N, LAYERS * D), 0);
    basin_tensor energy = lab_value(&l, basin_energy_total(&zoo->energy, zero));
    double want = 0.5 * D; /* |x|^2 / 2 - sum of r(0) (sum of w r(below) + b) */
    for (int i = 0; i < LAYERS; i++) {
        double below = i ? 0.5 : 1 / (1 + exp(-1));
        want -= D * 0.5 * (D * 0.01 * (2 * i) * below + 0.01 * (2 * i + 1));
    }
    for (int n = 0; n < N; n++) assert_float_equal(((double *)energy.data)[n], want, 1e-12);
    basin_tensor_free(&energy);
}

/* ---- the table ---- */

TEST(rows_are_whole) {
    int count = 0;
    for (const basin_zoo_model *row; (row = basin_zoo_at(count)); count++) {
        const basin_zoo_kind *kind = row->kind;
        assert_true(row->reference && kind->title && kind->formula && kind->alpha > 0);
        assert_int_equal(kind->tensor[0].role, BASIN_ZOO_STATE);
        for (const basin_zoo_setting *s = kind->setting; s && s->name; s++)
            assert_true(s->min <= s->value && s->value <= s->max);
    }
    assert_int_equal(count, 27);
    assert_null(basin_zoo_at(count + 1));
    assert_null(basin_zoo_at(-1));
}

/* What is wrong, in one line each. */
TEST(wrong_values) {
    double numbers[4] = {1, 0, 0, 1};
    const basin_tensor data = basin_tensor_borrow(numbers, BASIN_F64, BASIN_SHAPE(2, 2));
    const struct {
        const char *model, *message;
        basin_zoo_value value[3];
    } all[] = {
        {"unicorn", "no model 'unicorn' in the zoo", {{"xi", .data = &data}}},
        {"hopfield", "hopfield has no tensor or setting 'xj'", {{"xj", .data = &data}}},
        {"hopfield", "hopfield: xi is absent; expected [..,M,D]", {{0}}},
        {"lsr",
         "lsr: beta is [2, 2]; expected []",
         {{"xi", .data = &data}, {"beta", .data = &data}}},
        {"idp", "idp: u is []; expected [N,D]", {{"xi", .data = &data}, {"u", .number = 1}}},
        {"lsr",
         "lsr: decay is -1; expected 0 to 1e+09",
         {{"xi", .data = &data}, {"decay", .number = -1}}},
        {"hopfield",
         "hopfield: entropy is 'max'; expected softmax|entmax15|sparsemax|normmax2",
         {{"xi", .data = &data}, {"entropy", .choice = "max"}}},
        {"drdam", "drdam needs one of xi|total", {{"s", .data = &data}}},
        {"graph_hopfield",
         "graph_hopfield: no number of nodes; expected x0 or N",
         {{"xi", .data = &data}, {"edges", .data = &data}}},
        {"hyperset",
         "hyperset: heads is 0; expected 1 to 1e+06",
         {{"w", .data = &data}, {"m", .data = &data}, {"heads", .number = 0}}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        basin_graph *graph = basin_graph_new();
        int values = 0;
        while (values < 3 && all[i].value[values].name) values++;
        assert_null(basin_zoo_build(graph, all[i].model, all[i].value, values));
        assert_string_equal(basin_graph_error(graph)->text, all[i].message);
        basin_graph_free(graph);
    }
}

/* Heads that do not divide the channels: one line. */
TEST(wrong_heads) {
    BASIN_AT_EXIT(lab_close) lab l = lab_new("ref", 1);
    basin_expr x = lab_state(&l, "x", BASIN_SHAPE(N, D)), w = lab_state(&l, "w", BASIN_SHAPE(D, D));
    const basin_zoo *zoo =
        BUILD(l.graph, "hyperset", {"w", .expr = w}, {"m", .expr = w}, {"heads", .number = 4});
    assert_null(basin_energy_total(&zoo->energy, x));
    assert_string_equal(basin_graph_error(l.graph)->text,
                        "6 channels in 4 heads; expected a divisor");
}
