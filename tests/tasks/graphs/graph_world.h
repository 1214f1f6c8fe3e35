/* Small sets of random graphs for tests of the graph task. */
#ifndef TESTS_TASK_GRAPH_WORLD_H
#define TESTS_TASK_GRAPH_WORLD_H

#include <math.h>

#include "basin/random.h"
#include "support/folder.h"
#include "support/test.h"
#include "tasks/graphs/graphs.h"
#include "tasks/graphs/set/graphset.h"

/* `graphs` rings of 3 to 10 nodes with a few chords and labels 0 .. kinds - 1. Graphs of class 1
 * have every other label raised by one, so that classes can be learnt. `order` moves the nodes of
 * graph 0: node i becomes order[i]. */
static inline void world_new(basin_graphset *set, basin_graphs_target target, int64_t graphs,
                             int32_t kinds, const int64_t *order) {
    basin_random random = basin_random_start(5, 5, 0);
    int64_t *from = malloc((size_t)graphs * 40 * sizeof *from), *to = from + graphs * 20;
    int64_t *nodes = malloc((size_t)graphs * sizeof *nodes), edges = 0, first = 0;
    int64_t *class_of = malloc((size_t)graphs * 10 * sizeof *class_of);
    int32_t *label = malloc((size_t)graphs * 10 * sizeof *label);
    float *value = malloc((size_t)graphs * sizeof *value);
    bool of_nodes = target == BASIN_GRAPHS_NODE_CLASSES, values = target == BASIN_GRAPHS_VALUES;
    for (int64_t g = 0; g < graphs; first += nodes[g++]) {
        int64_t n = nodes[g] = 3 + (int64_t)basin_random_below(&random, 8);
        int64_t own = (int64_t)basin_random_below(&random, 2);
        value[g] = (float)n + (own ? 0.5f : 0);
        if (!of_nodes) class_of[g] = own;
        for (int64_t i = 0; i < n; i++) {
            int32_t kind = (int32_t)basin_random_below(&random, (uint64_t)kinds - 1);
            int64_t end[3] = {i, (i + 1) % n, (int64_t)basin_random_below(&random, (uint64_t)n)};
            for (int k = 0; k < 3; k++) end[k] = first + (g == 0 && order ? order[end[k]] : end[k]);
            label[end[0]] = kind + (own && i % 2);
            if (of_nodes) class_of[end[0]] = label[end[0]] % 2;
            for (int k = 1; k < 3; k++) from[edges] = end[0], to[edges++] = end[k];
        }
    }
    basin_graphset_arrays arrays = {.name = "world",
                                    .graphs = graphs,
                                    .nodes = nodes,
                                    .edges = edges,
                                    .from = from,
                                    .to = to,
                                    .undirected = true,
                                    .node_labels = 1,
                                    .node_label = label,
                                    .graph_class = of_nodes || values ? NULL : class_of,
                                    .node_class = of_nodes ? class_of : NULL,
                                    .targets = values,
                                    .target = values ? value : NULL};
    assert_ok(basin_graphset_from_arrays(set, &arrays, &failure));
    void *own[] = {from, nodes, class_of, label, value};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) free(own[i]);
}

/* Small settings of the default preset. */
static inline basin_graphs_settings world_settings(void) {
    basin_graphs_settings s;
    assert_int_equal(basin_settings_preset(&s, &basin_graphs_task, "default", NULL), BASIN_OK);
    s.dim = 16, s.heads = 2, s.head_dim = 8, s.memories = 24, s.blocks = 2, s.hidden = 12;
    s.couplings = 2;
    s.eigenvectors = 0, s.walks = 4, s.batch = 8, s.epochs = 4, s.warmup = 1, s.rate = 5e-3;
    return s;
}

static inline size_t world_weights(const basin_bundle *bundle) {
    size_t count = 0;
    for (size_t i = 0; i < basin_bundle_count(bundle); i++)
        count += strncmp(basin_bundle_name(bundle, i), "seen.", 5) != 0;
    return count;
}

/* The same weights in two files, each number up to `tolerance`. */
static inline void world_same_files(const char *a, const char *b, double tolerance) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *x, *y;
    assert_ok(basin_bundle_read(&x, a, &failure));
    assert_ok(basin_bundle_read(&y, b, &failure));
    assert_int_equal(world_weights(x), world_weights(y));
    for (size_t i = 0; i < basin_bundle_count(x); i++) {
        const basin_tensor *t = basin_bundle_at(x, i), *other;
        assert_ok(basin_bundle_get(&other, y, basin_bundle_name(x, i), &failure));
        assert_true(basin_shape_equal(t->shape, other->shape));
        for (int64_t k = 0; k < basin_shape_count(t->shape); k++)
            assert_true(fabs(basin_tensor_at(t, k) - basin_tensor_at(other, k)) <= tolerance);
    }
}

/* A setup: a folder with such a set of classes as set.safetensors. */
static inline int world_folder(void **state) {
    basin_graphset set;
    if (folder_new(state)) return -1;
    world_new(&set, BASIN_GRAPHS_CLASSES, 60, 4, NULL);
    assert_ok(basin_graphset_write(folder_path(state, "set.safetensors"), &set, &failure));
    basin_graphset_free(&set);
    return 0;
}

/* A world and a model that was trained on it. */
typedef struct world_scene {
    basin_graphset set;
    basin_backend *backend;
    basin_graphs_model *model;
} world_scene;

static inline void world_train(world_scene *s, basin_graphs_target target, int64_t graphs,
                               basin_graphs_settings *values) {
    basin_training_result outcome = {.size = sizeof outcome};
    basin_settings settings = {.kind = &basin_graphs_task, .values = values};
    world_new(&s->set, target, graphs, 4, NULL);
    assert_ok(basin_backend_open(&s->backend, &(basin_compute){.threads = 1}, &failure));
    basin_graphs_train_data data = {.set = &s->set};
    basin_training_options training = {.backend = s->backend};
    assert_ok(basin_graphs_train(&s->model, &outcome, &settings, &data, &training, &failure));
}

/* Predictions and measures with default options. */
static inline basin_status world_predict(float *output, int64_t *class_value,
                                         basin_graphs_model *model, const basin_graphs_data *data,
                                         basin_error *error) {
    basin_graphs_predict_result result = {.output = output, .class_value = class_value};
    return basin_graphs_predict(&result, model, data, NULL, error);
}

static inline basin_status world_evaluate(basin_graphs_measures *measures,
                                          basin_graphs_value *value, basin_graphs_model *model,
                                          const basin_graphs_data *data, basin_error *error) {
    basin_graphs_evaluate_result result = {.value = value};
    basin_status status = basin_graphs_evaluate(&result, model, data, NULL, error);
    if (measures) *measures = result.measures;
    return status;
}

static inline basin_status world_folds(basin_folds *folds, const int32_t *class_of, int64_t count,
                                       int64_t number, double inner, uint64_t seed,
                                       basin_error *error) {
    basin_folds_options options = {.count = count, .folds = number, .class_of = class_of};
    options.inner = inner, options.seed = seed;
    return basin_folds_new(folds, &options, error);
}

static inline void world_close(world_scene *s) {
    basin_graphs_close(s->model);
    basin_backend_close(s->backend);
    basin_graphset_free(&s->set);
}

#endif
