/* Latency: how long one picture, one node and one molecule take from call to result on an open
 * model. A small model of each task is trained for a moment, then asked about one item at a time.
 * Sizes of items differ as they do in use, so that a plan which serves only one size shows.
 *
 *     build/bench/latency [THREADS [BACKEND]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/sort.h"
#include "basin/basin.h"
#include "basin/tasks/graphs.h"
#include "basin/tasks/image.h"
#include "basin/tasks/nodes.h"
#include "engine/core/philox.h"
#include "tasks/nodes/network/network.h"

enum { MOLECULES = 64, LEAST_ATOMS = 10, ATOMS = 40, SIDE = 28, PICTURES = 16 };

/* A model and what it is asked about; `ask` is what is timed. */
typedef struct subject {
    basin_backend *backend;
    uint64_t seed;
    basin_image_model *image;
    basin_picture picture[PICTURES];
    basin_nodes_model *anomaly;
    basin_network *network;
    basin_graphs_model *graphs;
    basin_graphset set;
} subject;

typedef basin_status step(subject *s, int64_t i, basin_error *error);

/* Settings of a task, some set: name, value, name, value, ..., NULL. */
static basin_status settings_of(basin_settings **settings, const char *task, const char *preset,
                                const char *const *given, basin_error *error) {
    basin_status status = basin_settings_new(settings, task, preset, error);
    for (; !status && *given; given += 2)
        status = basin_settings_set(*settings, given[0], given[1], error);
    return status;
}

/* ---- a picture ---- */

static basin_status draw_pictures(subject *s, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int i = 0; i < PICTURES && !status; i++) {
        float value[SIDE * SIDE];
        status = basin_picture_resize_memory(&s->picture[i], SIDE, SIDE, 1, error);
        basin_random_fill_uniform(value, s->seed, (uint64_t)i, 0, SIDE * SIDE);
        for (int p = 0; p < SIDE * SIDE && !status; p++)
            s->picture[i].pixel[p] = (uint8_t)(255 * value[p]);
    }
    return status;
}

static basin_status make_image(subject *s, basin_error *error) {
    static const char *const given[] = {"epochs", "1", "warmup", "0", "batch", "16", NULL};
    basin_settings *settings = NULL;
    basin_pictures *pictures = NULL;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_status status = draw_pictures(s, error);
    if (!status) status = settings_of(&settings, "image", "fashion", given, error);
    if (!status) status = basin_pictures_from_memory(&pictures, s->picture, PICTURES, error);
    basin_image_source source = {.pictures = pictures};
    basin_image_data data = {.train = &source};
    basin_training_options training = {.backend = s->backend};
    if (!status)
        status = basin_image_train(&s->image, &outcome, NULL, settings, &data, &training, error);
    basin_pictures_close(pictures);
    basin_settings_free(settings);
    return status;
}

static basin_status ask_image(subject *s, int64_t i, basin_error *error) {
    basin_image_complete_result done = {0};
    basin_image_complete_options how = {.rectangle = {8, 8, 12, 12}};
    basin_status status =
        basin_image_complete(&done, s->image, &s->picture[i % PICTURES], 1, &how, error);
    if (!status) basin_image_complete_result_free(&done);
    return status;
}

/* ---- a node ---- */

/* Of the size of 5 % of Amazon's: 597 nodes, 80,000 edges, 25 features. */
static basin_status make_network(basin_network **network, basin_error *error) {
    enum { N = 597, E = 80000, F = 25 };
    static int32_t pair[2 * E], label[N];
    static float x[N * F];
    basin_random random = basin_random_start(1, 1, 0);
    for (int i = 0; i < 2 * E; i++) pair[i] = (int32_t)basin_random_below(&random, N);
    for (int i = 0; i < N; i++) label[i] = i % 14 == 3;
    basin_random_fill_normal(x, 1, 2, 0, N * F);
    basin_tensor features = basin_tensor_borrow(x, BASIN_F32, BASIN_SHAPE(N, F));
    basin_tensor y = basin_tensor_borrow(label, BASIN_I32, BASIN_SHAPE(N));
    basin_edges edges = {pair, pair + 1, BASIN_I32, 2, E};
    basin_status status = basin_network_new(network, "made", N, error);
    if (!status) status = basin_network_set_features(*network, &features, NULL, error);
    if (!status) status = basin_network_set_label_tensor(*network, &y, NULL, error);
    if (!status) status = basin_network_add_relation(*network, "homo", &edges, NULL, error);
    return status;
}

static basin_status make_anomaly(subject *s, basin_error *error) {
    static const char *const given[] = {"epochs", "1", "members", "1", "trees", "0", NULL};
    basin_settings *settings = NULL;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_status status = make_network(&s->network, error);
    if (!status) status = settings_of(&settings, "anomaly", NULL, given, error);
    basin_nodes_data data = {.network = s->network};
    basin_training_options training = {.backend = s->backend};
    if (!status)
        status = basin_nodes_train(&s->anomaly, &outcome, settings, &data, &training, error);
    basin_settings_free(settings);
    return status;
}

/* A node is scored with some of its neighbours and of theirs. */
static basin_status ask_anomaly(subject *s, int64_t i, basin_error *error) {
    static const int64_t fanout[] = {16, 4};
    basin_sample_spec spec = {.fanout = fanout, .steps = 2, .stream = (uint64_t)i};
    int64_t node = i % s->network->nodes;
    basin_network *near = NULL;
    basin_status status = basin_network_sample(&near, s->network, &node, 1, &spec, error);
    double *probability = status ? NULL : basin_array_new((size_t)near->nodes, sizeof(double));
    if (!status && !probability)
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for scores");
    if (!status) status = basin_nodes_predict(probability, s->anomaly, near, NULL, error);
    free(probability);
    basin_network_close(near);
    return status;
}

/* ---- a molecule ---- */

/* Chains of 10 to 40 atoms, every other one closed to a ring, which is its class. */
static basin_status draw_molecules(subject *s, basin_error *error) {
    int64_t atoms[MOLECULES], ring[MOLECULES], bonds = 0, atom = 0;
    int64_t from[MOLECULES * ATOMS], to[MOLECULES * ATOMS];
    for (int64_t m = 0; m < MOLECULES; atom += atoms[m++]) {
        atoms[m] = LEAST_ATOMS + 7 * m % (ATOMS - LEAST_ATOMS + 1);
        ring[m] = m % 2;
        for (int64_t i = 0; i < atoms[m] - !ring[m]; i++, bonds++)
            from[bonds] = atom + i, to[bonds] = atom + (i + 1) % atoms[m];
    }
    basin_graphset_arrays arrays = {.graphs = MOLECULES, .nodes = atoms};
    arrays.edges = bonds, arrays.from = from, arrays.to = to, arrays.undirected = true;
    arrays.graph_class = ring;
    return basin_graphset_from_arrays(&s->set, &arrays, error);
}

static basin_status make_graphs(subject *s, basin_error *error) {
    static const char *const given[] = {"epochs", "1", NULL};
    basin_settings *settings = NULL;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_status status = draw_molecules(s, error);
    if (!status) status = settings_of(&settings, "graphs", NULL, given, error);
    basin_graphs_train_data data = {.set = &s->set};
    basin_training_options training = {.backend = s->backend};
    if (!status)
        status = basin_graphs_train(&s->graphs, &outcome, settings, &data, &training, error);
    basin_settings_free(settings);
    return status;
}

static basin_status ask_graphs(subject *s, int64_t i, basin_error *error) {
    int64_t graph = i % MOLECULES;
    float probability[2];
    basin_graphs_data data = {.set = &s->set, .graph = &graph, .graphs = 1};
    basin_graphs_predict_result result = {.output = probability};
    return basin_graphs_predict(&result, s->graphs, &data, NULL, error);
}

/* ---- all of them ---- */

enum { CALLS = 200 };

static basin_status time_calls(const char *name, step *ask, subject *s, basin_error *error) {
    double seconds[CALLS + 1];
    for (int i = 0; i <= CALLS; i++) {
        double start = basin_clock();
        basin_status status = ask(s, i, error);
        if (status) return status;
        seconds[i] = basin_clock() - start;
    }
    qsort(seconds + 1, CALLS, sizeof *seconds, basin_compare_double);
    printf("%-48s first call %8.3f ms, median %8.3f, 99th percentile %8.3f\n", name,
           1e3 * seconds[0], 1e3 * seconds[1 + CALLS / 2], 1e3 * seconds[1 + CALLS * 99 / 100]);
    return BASIN_OK;
}

static void close_all(subject *s) {
    basin_image_close(s->image);
    for (int i = 0; i < PICTURES; i++) basin_picture_free(&s->picture[i]);
    basin_nodes_close(s->anomaly);
    basin_network_close(s->network);
    basin_graphs_close(s->graphs);
    basin_graphset_free(&s->set);
}

int main(int count, char **argument) {
    basin_error error;
    basin_compute compute = {.backend = count > 2 ? argument[2] : NULL,
                             .threads = count > 1 ? atoi(argument[1]) : 0};
    subject s = {0};
    basin_status status = basin_backend_open(&s.backend, &compute, &error);
    if (!status) status = make_image(&s, &error);
    if (!status) status = make_anomaly(&s, &error);
    if (!status) status = make_graphs(&s, &error);
    if (!status)
        status = time_calls("a picture of 28 x 28, half of it missing", ask_image, &s, &error);
    if (!status)
        status =
            time_calls("a node with up to 16 neighbours and 4 of each", ask_anomaly, &s, &error);
    if (!status) status = time_calls("a molecule of 10 to 40 atoms", ask_graphs, &s, &error);
    if (status) fprintf(stderr, "%s\n", error.text);
    close_all(&s);
    basin_backend_close(s.backend);
    return status != BASIN_OK;
}
