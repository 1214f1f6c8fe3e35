/* Every synapse: its signal -dE/dg against finite differences of its energy, parameters' gradients
 * through two steps of descent against finite differences (second order), and both backends. */
#include <string.h>

#include "rig.h"
#include "support/lab.h"

/* A synapse between layers of the given shapes. */
typedef struct setup {
    const char *what;
    basin_shape shape[3];
    int layers;
    basin_synapse synapse;
} setup;

static basin_expr own_energy(basin_ham *ham, const basin_synapse *s, const basin_expr *g,
                             int count) {
    (void)count;
    basin_shape shape = basin_expr_shape(g[0]);
    basin_expr w = basin_ham_parameter(ham, s->name, "pull", BASIN_SHAPE(shape.dim[1]),
                                       (basin_init){BASIN_INIT_NORMAL, 0.5});
    /* Builders read through a scale: the gradient must not be lost for that. */
    basin_expr near = basin_sub(basin_scale(g[0], 0.5), w);
    return basin_neg(basin_exp(basin_neg(basin_square(near))));
}

static int setups(setup *list) {
    basin_shape four = BASIN_SHAPE(4), three = BASIN_SHAPE(3), grid = BASIN_SHAPE(2, 3);
    basin_shape tokens = BASIN_SHAPE(3, 4), image = BASIN_SHAPE(5, 4, 2);
    const setup all[] = {
        {"bias", {four}, 1, {.kind = BASIN_SYNAPSE_BIAS}},
        {"linear", {four, grid}, 2, {.kind = BASIN_SYNAPSE_LINEAR}},
        {"linear with bias", {four, three}, 2, {.kind = BASIN_SYNAPSE_LINEAR, .bias = true}},
        {"linear by rows",
         {tokens, BASIN_SHAPE(3, 2)},
         2,
         {.kind = BASIN_SYNAPSE_LINEAR, .rows = BASIN_ROWS_EACH, .bias = true}},
        {"linear of summed rows",
         {tokens, grid},
         2,
         {.kind = BASIN_SYNAPSE_LINEAR, .rows = BASIN_ROWS_SUMMED}},
        {"three-body", {four, three, BASIN_SHAPE(2)}, 3, {.kind = BASIN_SYNAPSE_LINEAR}},
        {"memory", {four}, 1, {.kind = BASIN_SYNAPSE_MEMORY, .units = 5}},
        {"unit memories",
         {tokens},
         1,
         {.kind = BASIN_SYNAPSE_MEMORY, .units = 5, .rows = BASIN_ROWS_EACH, .normalize = true}},
        {"memory by distance",
         {four},
         1,
         {.kind = BASIN_SYNAPSE_MEMORY, .units = 5, .distance = true}},
        {"cubic memory",
         {four},
         1,
         {.kind = BASIN_SYNAPSE_MEMORY, .units = 5, .hidden = {.name = "repu3"}}},
        {"hidden", {four, three}, 2, {.kind = BASIN_SYNAPSE_HIDDEN, .units = 6}},
        {"hidden, normalised",
         {four, three},
         2,
         {.kind = BASIN_SYNAPSE_HIDDEN,
          .units = 6,
          .hidden = {.name = "tanh"},
          .normalize = true,
          .bias = true}},
        {"hidden tensor",
         {four, three},
         2,
         {.kind = BASIN_SYNAPSE_TENSOR, .units = 3, .heads = 2, .hidden = {.name = "softmax"}}},
        {"mixer",
         {tokens, BASIN_SHAPE(3, 2)},
         2,
         {.kind = BASIN_SYNAPSE_MIXER, .units = 3, .heads = 2}},
        {"mixer with one row",
         {three, BASIN_SHAPE(3, 2)},
         2,
         {.kind = BASIN_SYNAPSE_MIXER, .units = 3}},
        {"conv2d",
         {image, BASIN_SHAPE(5, 4, 3)},
         2,
         {.kind = BASIN_SYNAPSE_CONV2D, .kernel = 3, .bias = true}},
        {"conv2d, valid, stride 2",
         {image, BASIN_SHAPE(2, 1, 3)},
         2,
         {.kind = BASIN_SYNAPSE_CONV2D, .kernel = 3, .stride = 2, .valid = true}},
        {"conv2d, average pool",
         {image, BASIN_SHAPE(2, 2, 3)},
         2,
         {.kind = BASIN_SYNAPSE_CONV2D, .kernel = 3, .pool = BASIN_POOL_AVERAGE, .pool_window = 2}},
        {"conv2d, maximum pool",
         {image, BASIN_SHAPE(4, 3, 2)},
         2,
         {.kind = BASIN_SYNAPSE_CONV2D,
          .kernel = 2,
          .pool = BASIN_POOL_MAX,
          .pool_window = 2,
          .pool_stride = 1}},
        {"self-attention",
         {tokens},
         1,
         {.kind = BASIN_SYNAPSE_ATTENTION, .heads = 2, .head_dim = 3}},
        {"attention to others",
         {tokens},
         1,
         {.kind = BASIN_SYNAPSE_ATTENTION,
          .heads = 2,
          .head_dim = 3,
          .pattern = {.exclude_self = true}}},
        {"cross attention",
         {tokens, BASIN_SHAPE(2, 2, 3)},
         2,
         {.kind = BASIN_SYNAPSE_ATTENTION, .heads = 2, .head_dim = 3}},
        {"attention with norms",
         {tokens},
         1,
         {.kind = BASIN_SYNAPSE_ATTENTION, .heads = 2, .head_dim = 3, .normalize = true}},
        {"attention through relu",
         {tokens},
         1,
         {.kind = BASIN_SYNAPSE_ATTENTION, .heads = 2, .head_dim = 3, .hidden = {.name = "relu"}}},
        {"own", {four}, 1, {.energy = own_energy}},
    };
    int count = (int)(sizeof all / sizeof *all);
    memcpy(list, all, sizeof all);
    return count;
}
enum { MOST = 40 };

static void build(rig *r, const setup *s, const char *lagrangian, const char *backend) {
    static const char *const name[3] = {"a", "b", "c"};
    basin_synapse synapse = s->synapse;
    char ends[16] = "";
    rig_open(r, backend);
    synapse.name = "s";
    synapse.deviation = 0.4;
    for (int i = 0; i < s->layers; i++) {
        basin_ham_layer(r->ham, &(basin_layer){.name = name[i],
                                               .shape = s->shape[i],
                                               .lagrangian = {.name = lagrangian},
                                               .tau = 1 + 0.5 * i,
                                               .bias = i == 0});
        strcat(strcat(ends, i ? ", " : ""), name[i]);
    }
    basin_ham_synapse(r->ham, &synapse);
    if (basin_ham_connect(r->ham, "s", ends) < 0)
        fail_msg("%s: %s", s->what, basin_graph_error(r->graph)->text);
}

TEST(test_signal) {
    setup list[MOST];
    int count = setups(list);
    for (int i = 0; i < count; i++) {
        rig r;
        basin_expr dEdg[3];
        build(&r, &list[i], "identity", "ref");
        rig_start(&r, 2, 7);
        basin_expr energy = basin_sum_all(basin_ham_energy(r.ham, r.x, true));
        basin_ham_gradient(r.ham, dEdg, r.x, true);
        for (int k = 0; k < list[i].layers; k++)
            rig_compare(&r, energy, dEdg[k], &r.number[k], NULL, list[i].what, 1e-6);
        rig_close(&r);
    }
}

/* A loss after two steps sees every synapse's second derivatives. */
TEST(test_second_order) {
    setup list[MOST];
    int count = setups(list);
    for (int i = 0; i < count; i++) {
        rig r;
        basin_expr end[3], loss = NULL;
        build(&r, &list[i], i % 2 ? "tanh" : "layernorm", "ref");
        rig_start(&r, 2, 8);
        basin_ham_descend(r.ham, end, r.x, &(basin_ham_spec){.steps = 2, .dt = 0.3}, NULL);
        for (int k = 0; k < list[i].layers; k++) {
            basin_expr part = basin_sum_all(basin_square(basin_offset(end[k], 0.1 * k)));
            loss = loss ? basin_add(loss, part) : part;
        }
        rig_check_loss(&r, loss, list[i].what, 2e-5);
        rig_close(&r);
    }
}

TEST(test_backends) {
    setup list[MOST];
    int count = setups(list);
    for (int i = 0; i < count; i++) {
        basin_tensor end[2];
        for (int k = 0; k < 2; k++) {
            rig r;
            basin_expr x[3];
            build(&r, &list[i], "layernorm", k ? "cpu" : "ref");
            rig_start(&r, 3, 9);
            basin_ham_descend(r.ham, x, r.x, &(basin_ham_spec){.steps = 3, .dt = 0.2}, NULL);
            end[k] = rig_value(&r, x[list[i].layers - 1]);
            rig_close(&r);
        }
        double distance = check_distance(&end[1], &end[0]);
        if (!(distance < 1e-4)) fail_msg("%s: cpu is off by %g", list[i].what, distance);
        basin_tensor_free(&end[0]);
        basin_tensor_free(&end[1]);
    }
}

/* The formulas themselves, written out once more. */
static double at(const basin_tensor *t, int64_t i) { return basin_tensor_at(t, i); }

TEST(test_linear_formula) {
    BASIN_AT_EXIT(rig_close) rig r;
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor w, b;
    const setup s = {.shape = {BASIN_SHAPE(4), BASIN_SHAPE(3)},
                     .layers = 2,
                     .synapse = {.kind = BASIN_SYNAPSE_LINEAR, .bias = true}};
    build(&r, &s, "identity", "ref");
    rig_start(&r, 1, 3);
    double number[3] = {0.5, -1, 2};
    basin_tensor given = basin_tensor_borrow(number, BASIN_F64, BASIN_SHAPE(3));
    assert_ok(basin_store_write(r.store, "s.b", &given, &failure));
    assert_ok(basin_store_get(&w, r.store, "s.w", &failure));
    assert_ok(basin_store_get(&b, r.store, "s.b", &failure));
    assert_true(basin_shape_equal(w.shape, BASIN_SHAPE(4, 3)));
    double want = 0;
    for (int j = 0; j < 3; j++) {
        want -= at(&b, j) * at(&r.number[1], j);
        for (int i = 0; i < 4; i++)
            want -= at(&r.number[0], i) * at(&w, i * 3 + j) * at(&r.number[1], j);
    }
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor energy = rig_value(&r, basin_ham_energy(r.ham, r.x, true));
    assert_true(fabs(at(&energy, 0) - want) < 1e-12);
}

/* -sum W[a, b, c] g1[a] g2[b] g3[c] */
TEST(test_three_body_formula) {
    BASIN_AT_EXIT(rig_close) rig r;
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor w;
    const setup s = {.shape = {BASIN_SHAPE(4), BASIN_SHAPE(3), BASIN_SHAPE(2)},
                     .layers = 3,
                     .synapse = {.kind = BASIN_SYNAPSE_LINEAR}};
    build(&r, &s, "identity", "ref");
    rig_start(&r, 1, 3);
    assert_ok(basin_store_get(&w, r.store, "s.w", &failure));
    double want = 0;
    for (int i = 0; i < 24; i++)
        want -= at(&w, i) * at(&r.number[0], i / 6) * at(&r.number[1], i / 2 % 3) *
                at(&r.number[2], i % 2);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor energy = rig_value(&r, basin_ham_energy(r.ham, r.x, true));
    assert_true(fabs(at(&energy, 0) - want) < 1e-12);
}

/* The same synapse twice: one set of weights, the energies add up, the gradient sees both. */
TEST(test_sharing) {
    BASIN_AT_EXIT(rig_close) rig r;
    rig_open(&r, "ref");
    for (int i = 0; i < 3; i++)
        basin_ham_layer(r.ham, &(basin_layer){.name = (const char *[]){"a", "b", "c"}[i],
                                              .shape = BASIN_SHAPE(3),
                                              .lagrangian = {.name = "tanh"}});
    basin_ham_synapse(
        r.ham, &(basin_synapse){.name = "s", .kind = BASIN_SYNAPSE_LINEAR, .deviation = 0.5});
    assert_int_equal(basin_ham_connect(r.ham, "s", "a, b"), 0);
    assert_int_equal(basin_ham_connect(r.ham, "s", "b c"), 1);
    assert_int_equal(basin_ham_connect(r.ham, "s", "c,c"), 2);
    assert_int_equal(basin_ham_params(r.ham)->count, 1);
    assert_string_equal(basin_ham_term_name(r.ham, 4), "s(b, c)");
    rig_start(&r, 2, 5);
    rig_check_loss(&r, basin_sum_all(basin_ham_energy(r.ham, r.x, false)), "shared", 1e-6);
    basin_expr end[3];
    basin_ham_descend(r.ham, end, r.x, &(basin_ham_spec){.steps = 2, .dt = 0.4}, NULL);
    rig_check_loss(&r, basin_sum_all(basin_square(end[2])), "shared", 1e-6);
}

/* What must be refused, and how it is called. */
static void assert_refused(basin_synapse synapse, basin_shape a, basin_shape b, const char *ends,
                           const char *part) {
    basin_graph *graph = basin_graph_new();
    basin_ham *ham = basin_ham_new(graph);
    synapse.name = "s";
    basin_ham_layer(ham, &(basin_layer){.name = "a", .shape = a});
    basin_ham_layer(ham, &(basin_layer){.name = "b", .shape = b});
    basin_ham_synapse(ham, &synapse);
    assert_int_equal(basin_ham_connect(ham, "s", ends), -1);
    assert_int_equal(basin_ham_terms(ham), 2);
    assert_misbuilt(graph, part);
    basin_ham_free(ham);
    basin_graph_free(graph);
}

TEST(test_errors) {
    basin_shape v = BASIN_SHAPE(4), image = BASIN_SHAPE(5, 5, 2), rows = BASIN_SHAPE(3, 4);
    assert_refused((basin_synapse){.kind = BASIN_SYNAPSE_MEMORY}, v, v, "a", "units 0");
    assert_refused((basin_synapse){.kind = BASIN_SYNAPSE_MEMORY, .units = 2}, v, v, "a, b",
                   "2 layers");
    assert_refused((basin_synapse){.kind = BASIN_SYNAPSE_LINEAR}, v, v, "a, z", "no layer 'z'");
    assert_refused((basin_synapse){.kind = BASIN_SYNAPSE_LINEAR}, v, v, " ", "no layer");
    assert_refused((basin_synapse){.kind = BASIN_SYNAPSE_LINEAR}, v, v, "a a a a b b b b a",
                   "more than 8");
    assert_refused((basin_synapse){.kind = BASIN_SYNAPSE_LINEAR, .rows = BASIN_ROWS_EACH}, rows, v,
                   "a, b", "number of rows");
    assert_refused((basin_synapse){.kind = BASIN_SYNAPSE_CONV2D, .kernel = 3}, image, v, "a, b",
                   "[1, 5, 5, 2] and [1, 4]");
    assert_refused((basin_synapse){.kind = BASIN_SYNAPSE_CONV2D, .kernel = 3, .valid = true}, image,
                   image, "a, b", "[1, 3, 3, 2]");
    assert_refused((basin_synapse){.kind = BASIN_SYNAPSE_ATTENTION, .heads = 1}, rows, v, "a",
                   "width 0");
    assert_refused((basin_synapse){.kind = BASIN_SYNAPSE_ATTENTION,
                                   .heads = 1,
                                   .head_dim = 2,
                                   .hidden = {.name = "relu"},
                                   .pattern = {.exclude_self = true}},
                   rows, v, "a", "relu");
}
