/* Detection in context: the golden case of PyTorch on ref and cpu; the columns of networks as
 * cells; which labels are stored; bounds. */
#include <math.h>

#include "basin/io.h"
#include "tasks/nodes/context/context.h"
#include "tasks/nodes/fraud.h"

#define CASE BASIN_SOURCE "/tests/golden/context/context.safetensors"

static double off(const basin_tensor *expected, int64_t at, int64_t step, const double *found,
                  int64_t count) {
    double worst = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        double e = basin_tensor_at(expected, at + i * step);
        worst = fmax(worst, fabs(found[i] - e)), size = fmax(size, fabs(e));
    }
    return worst / size;
}

static void compare(const char *name, double allowed) {
    basin_bundle *file;
    basin_backend *backend;
    basin_context_net *net;
    assert_ok(basin_bundle_read(&file, CASE, &failure));
    assert_ok(basin_backend_open(&backend, &(basin_compute){.backend = name}, &failure));
    assert_ok(basin_context_net_open(&net, CASE, backend, &failure));
    const basin_tensor *row = basin_bundle_find(file, "in.row");
    const basin_tensor *label = basin_bundle_find(file, "in.label");
    const basin_tensor *ratio = basin_bundle_find(file, "out.ratio");
    const basin_tensor *energy = basin_bundle_find(file, "out.energy");
    const basin_tensor *share = basin_bundle_find(file, "out.share");
    int64_t n = label->shape.dim[0], queries = ratio->shape.dim[0], T = row->shape.dim[1];
    int64_t ends = energy->shape.dim[1];
    const float *query = (const float *)row->data + n * T * BASIN_CELL;
    const basin_tensor *move = basin_bundle_find(file, "out.move");
    double found[16], energies[64], shares[16], moves[16];
    basin_context_look look = {.energy = energies, .share = shares, .move = moves};
    assert_ok(basin_context_net_store(net, row->data, label->data, n, T, 1, &failure));
    assert_ok(basin_context_net_predict(found, net, query, queries, &failure));
    assert_true(off(ratio, 0, 1, found, queries) < allowed);
    for (int64_t i = 0; i < queries; i++) {
        assert_ok(basin_context_net_look(&look, net, query + i * T * BASIN_CELL, &failure));
        assert_true(off(ratio, i, 1, &look.ratio, 1) < 10 * allowed);
        assert_true(off(move, i * n, 1, moves, n) < 10 * allowed);
        assert_true(off(energy, i * ends, 1, energies, ends) < allowed);
        assert_true(off(share, i * n, 1, shares, n) < allowed);
        for (int b = 0; b < ends / 2; b++) assert_true(energies[2 * b + 1] < energies[2 * b]);
    }
    basin_context_net_close(net);
    basin_backend_close(backend);
    basin_bundle_free(file);
}

TEST(ref_computes_the_golden_case) { compare("ref", 1e-10); }
TEST(cpu_computes_the_golden_case) { compare("cpu", 1e-5); }

/* ---- cells ---- */

TEST(a_cell_has_a_value_and_its_means) {
    BASIN_AT_EXIT(free_network) basin_network *n = NULL;
    BASIN_AT_EXIT(basin_cells_close) basin_cells c = {0};
    static const float x[] = {1, 5, 2, 5, 4, NAN, 9, 5};
    static const int32_t end[] = {0, 1, 1, 2, 0, 2}; /* 3 has no edges */
    basin_edges edges = {end, end + 1, BASIN_I32, 2, 3};
    basin_network_arrays arrays = {
        .nodes = 4, .features = 2, .feature = x, .relations = 1, .edges = &edges};
    basin_network_options keep = {.missing = BASIN_MISSING_KEEP};
    assert_ok(basin_network_from_arrays(&n, &arrays, &keep, &failure));
    assert_ok(basin_cells_open(&c, n, NULL, 0, &failure));
    assert_int_equal(c.cells, 4);
    assert_int_equal(c.columns, 10);
    assert_true(c.value[0] == 1 && c.value[2] == 3);    /* own; mean of 2 and 4 */
    assert_true(c.value[4] == (2.5f + 1.5f) / 2);       /* mean of the means of 1 and 2 */
    assert_true(c.value[6] == (float)log(3));           /* two neighbours */
    assert_true(isnan(c.value[21]) && c.value[3] == 5); /* a gap; a mean without it */
    assert_true(c.value[32] == 0 && c.value[36] == 0);
    float row[4 * BASIN_CELL];
    basin_cells_rows(row, &c, (const int64_t[]){3}, 1);
    assert_true(fabsf(row[0] - 1.15034938f) < 1e-6f); /* rank 3.5 of 4 */
    assert_true(row[1] == 0.25f && row[2] == 1);
    assert_true(row[BASIN_CELL] == 0 && row[BASIN_CELL + 1] == 1);             /* a constant */
    assert_true(row[2 * BASIN_CELL + 5] == 0 && row[2 * BASIN_CELL + 4] == 1); /* an empty place */
    basin_cells_rows(row, &c, (const int64_t[]){2}, 1);
    assert_true(row[BASIN_CELL] == 0 && row[BASIN_CELL + 1] == 0.25f && row[BASIN_CELL + 2] == 0);
}

/* A path 0 - 1 - 2 - 3 - 4 and the edge 1 - 3. Counts by one changed label equal those by all. */
TEST(labels_of_neighbours_are_columns) {
    BASIN_AT_EXIT(free_network) basin_network *n = NULL;
    BASIN_AT_EXIT(basin_cells_close) basin_cells c = {0};
    static const float x[] = {1, 2, 3, 4, 5};
    static const int32_t end[] = {0, 1, 1, 2, 2, 3, 3, 4, 1, 3};
    int32_t label[] = {1, -1, 0, -1, 1};
    basin_edges edges = {end, end + 1, BASIN_I32, 2, 5};
    basin_network_arrays arrays = {
        .nodes = 5, .features = 1, .feature = x, .relations = 1, .edges = &edges};
    assert_ok(basin_network_from_arrays(&n, &arrays, NULL, &failure));
    assert_ok(basin_cells_open(&c, n, NULL, 0, &failure));
    basin_cells_label(&c, label);
    /* anomalous and all labelled: neighbours, ends of two steps */
    static const int64_t vote[] = {0, 0, 0, 1, 1, 2, 1, 2, 0, 0, 2, 2, 1, 2, 1, 2, 0, 0, 0, 1};
    assert_memory_equal(c.vote, vote, sizeof vote);
    float row[3 * BASIN_CELL], *entry = row + 2 * BASIN_CELL, value[5 * 7];
    basin_cells_rows(row, &c, (const int64_t[]){1}, 1);
    assert_true(entry[2] == 1 && entry[5] == 1 && entry[8] == -1);
    assert_true(c.value[7 + 4] == 0.5f && c.value[7 + 6] == (float)log(3));
    assert_true(fabsf(entry[6] - 0.84162123f) < 1e-6f); /* rank 4 of 5, between 3 and 5 */
    basin_cells_rows(row, &c, (const int64_t[]){0}, 1);
    assert_true(entry[0] == 0 && entry[2] == 0 &&
                entry[1] == 0.6f); /* a gap, as of three of five */
    label[3] = label[2] = 1;
    basin_cells_relabel(&c, 3, -1, 1);
    basin_cells_relabel(&c, 2, 0, 1);
    basin_cells_rank_labels(&c);
    memcpy(value, c.value, sizeof value);
    basin_cells_label(&c, label);
    assert_memory_equal(value, c.value, sizeof value);
}

/* Two directions in 300 columns, with noise: the first components have them. */
TEST(many_columns_become_components) {
    enum { N = 500, F = 300 };
    BASIN_AT_EXIT(free_network) basin_network *n = NULL;
    BASIN_AT_EXIT(basin_cells_close) basin_cells c = {0};
    BASIN_FREE_AT_EXIT float *x = calloc((size_t)N * F, sizeof *x);
    double dot[2] = {0}, size[2] = {0}, own[2] = {0};
    for (int64_t i = 0; i < N; i++)
        for (int64_t f = 0; f < F; f++) {
            double a = basin_random_normal_at(1, 0, (uint64_t)i);
            double b = basin_random_normal_at(1, 1, (uint64_t)i);
            x[i * F + f] = (float)((f < 200 ? a : b) +
                                   0.5 * basin_random_normal_at(1, 2, (uint64_t)(i * F + f)));
        }
    basin_edges none = {x, x, BASIN_I32, 1, 0};
    basin_network_arrays arrays = {
        .nodes = N, .features = F, .feature = x, .relations = 1, .edges = &none};
    assert_ok(basin_network_from_arrays(&n, &arrays, NULL, &failure));
    assert_ok(basin_cells_open(&c, n, NULL, 0, &failure));
    assert_int_equal(c.components, F);
    assert_int_equal(c.cells, 7);
    assert_false(c.grouped);
    for (int64_t i = 0; i < N; i++)
        for (int k = 0; k < 2; k++) {
            double z = basin_random_normal_at(1, (uint64_t)k, (uint64_t)i);
            double v = (double)c.value[i * c.columns + k];
            dot[k] += z * v, size[k] += v * v, own[k] += z * z;
        }
    for (int k = 0; k < 2; k++) assert_true(fabs(dot[k]) > 0.97 * sqrt(size[k] * own[k]));
}

/* Rows of another network are compared with what was read, whoever else is asked. */
TEST(a_row_of_another_table_has_the_same_score) {
    enum { N = 60, F = 5 };
    BASIN_AT_EXIT(free_network) basin_network *all = NULL;
    BASIN_AT_EXIT(free_network) basin_network *some = NULL;
    basin_backend *backend;
    basin_context *context;
    basin_context_explanation *why;
    float x[N * F];
    int32_t label[N];
    double p[N], q[10], one;
    basin_random_fill_normal(x, 1, 0, 0, N * F);
    for (int i = 0; i < N; i++) label[i] = i < 30 ? x[i * F] > 0.5f : -1;
    basin_edges none = {label, label, BASIN_I32, 1, 0};
    basin_network_arrays arrays = {
        .nodes = N, .features = F, .feature = x, .label = label, .relations = 1, .edges = &none};
    basin_network_arrays part = {
        .nodes = 10, .features = F, .feature = x + 40 * F, .relations = 1, .edges = &none};
    assert_ok(basin_network_from_arrays(&all, &arrays, NULL, &failure));
    assert_ok(basin_network_from_arrays(&some, &part, NULL, &failure));
    assert_ok(basin_backend_open(&backend, NULL, &failure));
    assert_ok(basin_context_open(&context, CASE, backend, &failure));
    assert_ok(basin_context_read(context, all, 0, &failure));
    assert_ok(basin_context_store(context, NULL, &failure));
    assert_ok(basin_context_predict_network(p, context, all, &failure));
    assert_ok(basin_context_predict_network(q, context, some, &failure));
    assert_memory_equal(p + 40, q, sizeof q);
    for (int64_t i = 0; i < N; i++) {
        assert_ok(basin_context_predict(&one, context, &i, 1, &failure));
        assert_true(one == p[i]);
    }
    assert_ok(basin_context_explain(&why, context, some, 3, &failure));
    assert_true(fabs(why->probability - q[3]) < 1e-5);
    basin_context_explanation_free(why);
    part.features = 2;
    basin_network_close(some);
    assert_ok(basin_network_from_arrays(&some, &part, NULL, &failure));
    assert_failure(basin_context_predict_network(q, context, some, &failure), BASIN_BAD_SHAPE,
                   "2 columns");
    basin_context_close(context);
    basin_backend_close(backend);
}

/* A label that is added or corrected is known as if it had been there; a class keeps one. */
TEST(a_label_is_added) {
    enum { N = 50, F = 4 };
    BASIN_AT_EXIT(free_network) basin_network *n = NULL;
    basin_backend *backend;
    basin_context *context;
    float x[N * F];
    int32_t label[N], end[4 * N];
    double before[N], after[N], expected[N];
    basin_random_fill_normal(x, 1, 0, 0, N * F);
    for (int i = 0; i < N; i++)
        label[i] = i < 20 ? i == 3 : -1, end[4 * i] = end[4 * i + 2] = i,
        end[4 * i + 1] = (i + 1) % N, end[4 * i + 3] = (7 * i + 3) % N;
    basin_edges edges = {end, end + 1, BASIN_I32, 2, 2 * N};
    basin_network_arrays arrays = {
        .nodes = N, .features = F, .feature = x, .label = label, .relations = 1, .edges = &edges};
    assert_ok(basin_network_from_arrays(&n, &arrays, NULL, &failure));
    assert_ok(basin_backend_open(&backend, NULL, &failure));
    assert_ok(basin_context_open(&context, CASE, backend, &failure));
    assert_ok(basin_context_read(context, n, 0, &failure));
    assert_ok(basin_context_store(context, NULL, &failure));
    assert_ok(basin_context_predict_network(before, context, n, &failure));
    static const int64_t node[] = {30, 3, 30, N};
    static const int32_t y[] = {0, 0, 1, 2, 1};
    assert_failure(basin_context_label(context, node, y, 2, &failure), BASIN_BAD_VALUE,
                   "are normal");
    assert_failure(basin_context_label(context, node, y + 3, 1, &failure), BASIN_BAD_VALUE,
                   "0, 1 or -1");
    assert_failure(basin_context_label(context, node + 3, y, 1, &failure), BASIN_BAD_VALUE,
                   "no node");
    assert_ok(basin_context_predict_network(after, context, n, &failure));
    assert_memory_equal(before, after, sizeof before);
    assert_ok(basin_context_label(context, node, y, 1, &failure));
    assert_ok(basin_context_label(context, node + 1, y + 1, 2, &failure)); /* 30 is corrected */
    assert_int_equal(basin_context_get_label(context, 30), 1);
    assert_ok(basin_context_predict_network(after, context, n, &failure));
    label[30] = 1, label[3] = 0;
    assert_ok(basin_context_store(context, &(basin_context_options){.label = label}, &failure));
    assert_ok(basin_context_predict_network(expected, context, n, &failure));
    assert_memory_equal(after, expected, sizeof after);
    assert_true(memcmp(after, before, sizeof after) != 0);
    basin_context_close(context);
    basin_backend_close(backend);
}

/* ---- labels ---- */

typedef struct world {
    basin_network *network;
    basin_backend *backend;
    basin_context *context;
} world;

static world open_world(int64_t nodes) {
    world w = {.network = fraud_new(nodes, 3, 1, false)};
    assert_ok(basin_backend_open(&w.backend, &(basin_compute){.threads = 1}, &failure));
    assert_ok(basin_context_open(&w.context, CASE, w.backend, &failure));
    return w;
}

static void close_world(world *w) {
    basin_context_close(w->context);
    basin_backend_close(w->backend);
    basin_network_close(w->network);
}

/* The golden case's file has codes for six cells, too few for this network. */
TEST(too_many_cells_for_the_codes) {
    BASIN_AT_EXIT(close_world) world w = open_world(60);
    double p;
    assert_ok(basin_context_read(w.context, w.network, 0, &failure));
    assert_ok(basin_context_store(w.context, NULL, &failure));
    assert_failure(basin_context_predict(&p, w.context, (const int64_t[]){0}, 1, &failure),
                   BASIN_BAD_VALUE, "codes for 6");
}

TEST(labels_that_do_not_fit_are_chosen) {
    BASIN_AT_EXIT(close_world) world w = open_world(400);
    const basin_context_info *info = basin_context_get_info(w.context);
    int64_t ones = 0;
    for (int64_t i = 0; i < 400; i++) ones += w.network->label[i];
    assert_failure(basin_context_store(w.context, NULL, &failure), BASIN_BAD_VALUE, "not read");
    assert_failure(basin_context_read(w.context, w.network, 1000, &failure), BASIN_NO_MEMORY,
                   "columns");
    assert_ok(basin_context_read(w.context, w.network, 0, &failure));
    assert_ok(basin_context_store(w.context, &(basin_context_options){.labels = 200}, &failure));
    assert_int_equal(info->labelled[1], ones);
    assert_int_equal(info->stored[1], ones); /* fewer than half of the places */
    assert_int_equal(info->stored[0], 200 - ones);
    for (int64_t i = 0; i < w.context->stored; i++) {
        assert_int_equal(w.context->label[i], w.network->label[w.context->node[i]]);
        for (int64_t k = 0; k < i; k++) assert_true(w.context->node[k] != w.context->node[i]);
    }
    assert_ok(basin_context_store(w.context, &(basin_context_options){.labels = 20}, &failure));
    assert_int_equal(info->stored[1], 10);
    assert_int_equal(info->stored[0], 10);
    assert_failure(basin_context_store(w.context, &(basin_context_options){.passes = 5}, &failure),
                   BASIN_BAD_VALUE, "passes");
    double p;
    assert_failure(basin_context_predict(&p, w.context, (const int64_t[]){0}, 1, &failure),
                   BASIN_BAD_VALUE, "codes for 6");
}
