/* Fuzz target: any bytes as a model file of each of the three tasks. */
#include <stdlib.h>
#include <string.h>

#include "data/graphset/graphset.h"
#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"
#include "task/anomaly/anomaly.h"
#include "task/graphs/graphs.h"
#include "task/image/image.h"

static void check(basin_status status, const basin_error *error) {
    if (status && (error->status != status || !*error->text || strchr(error->text, '\n'))) abort();
}

static basin_backend *backend_new(void) {
    basin_backend *backend;
    if (basin_backend_open(&backend, "ref", 1, NULL)) abort();
    return backend;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[MEMORY_PATH];
    basin_error error = {0};
    basin_image_session image;
    basin_graph_session graph;
    basin_anomaly_detector *detector;
    int fd = memory_file(path, data, size);
    basin_backend *backend = backend_new();
    basin_status status = basin_image_session_open(&image, path, backend, &error);
    check(status, &error);
    if (!status) basin_image_session_close(&image);
    status = basin_graph_session_open(&graph, path, backend, &error);
    check(status, &error);
    if (!status) basin_graph_session_close(&graph);
    status = basin_anomaly_read(&detector, path, &error);
    check(status, &error);
    if (!status) basin_anomaly_free(detector);
    basin_backend_close(backend);
    close(fd);
    return 0;
}

static size_t seed_image(uint8_t *out, const char *path) {
    basin_image_settings s;
    basin_image_session session;
    basin_backend *backend = backend_new();
    if (!basin_image_preset(&s, "fashion")) abort();
    s.size = 4, s.patch = 2, s.dim = 4, s.heads = 1, s.head_dim = 2, s.memories = 4, s.steps = 2;
    s.occlude = 2, s.keep = 0;
    for (int c = 0; c < 3; c++) s.mean[c] = s.deviation[c] = 0.5;
    if (basin_image_session_new(&session, &s, backend, NULL)) abort();
    if (basin_image_session_write(path, &session, NULL)) abort();
    basin_image_session_close(&session);
    basin_backend_close(backend);
    return take_file(out, FUZZ_ROOM, path);
}

static size_t seed_graph(uint8_t *out, const char *path) {
    static int64_t start[] = {0, 2, 4};
    static int32_t edge[] = {0, 1, 1, 0, 2, 3, 3, 2}, label[] = {0, 1, 1, 0};
    static const int64_t value[] = {0, 1}, graph[] = {0, 1};
    basin_graphset set = {.task = BASIN_GRAPH_CLASSES, .graphs = 2, .nodes = 4, .node_labels = 1};
    basin_graph_settings s;
    basin_graph_session session;
    basin_backend *backend = backend_new();
    set.node_start = start;
    set.node_label = label;
    if (basin_graphset_set_edges(&set, edge, 4, "fuzz", "edges", NULL) ||
        basin_graphset_set_classes(&set, value, 2, NULL) || !basin_graph_preset(&s, "tu"))
        abort();
    s.dim = 4, s.heads = 1, s.head_dim = 2, s.memories = 4, s.steps = 1, s.blocks = 1;
    s.hidden = 2;
    if (basin_graph_session_new(&session, &s, &set, graph, 2, backend, NULL)) abort();
    if (basin_graph_session_write(path, &session, NULL)) abort();
    basin_graph_session_close(&session);
    set.node_start = NULL;
    set.node_label = NULL;
    basin_graphset_free(&set);
    basin_backend_close(backend);
    return take_file(out, FUZZ_ROOM, path);
}

static size_t seed_anomaly(uint8_t *out, const char *path) {
    enum { NODES = 40 };
    basin_fraud_spec spec = {.nodes = NODES,
                             .edges = 80,
                             .features = 2,
                             .anomalous = 0.3,
                             .homophily = 0.5,
                             .ring = 0.1,
                             .shift = 1,
                             .camouflage = 0,
                             .seed = 1};
    basin_anomaly_recipe recipe;
    basin_anomaly_detector *detector;
    basin_network *network;
    uint8_t part[NODES];
    basin_anomaly_work work = {.backend = backend_new()};
    if (basin_network_make_fraud(&network, &spec, NULL)) abort();
    if (basin_split_stratified(part, network, 0.5, 1, 0, NULL)) abort();
    if (basin_anomaly_preset(&recipe, "default", NULL)) abort();
    recipe.dim = 4, recipe.heads = 1, recipe.head_dim = 2, recipe.memories = 4, recipe.steps = 1;
    recipe.epochs = 1, recipe.members = 1, recipe.hops = 0, recipe.scaling = "standard";
    recipe.embedding = recipe.hidden = 2;
    if (basin_anomaly_fit(&detector, network, part, &recipe, &work, NULL)) abort();
    if (basin_anomaly_write(path, detector, NULL)) abort();
    basin_anomaly_free(detector);
    basin_network_free(network);
    basin_backend_close(work.backend);
    return take_file(out, FUZZ_ROOM, path);
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    char path[MEMORY_PATH];
    temporary_name(path, "safetensors");
    switch (index) {
    case 0: return seed_image(out, path);
    case 1: return seed_graph(out, path);
    case 2: return seed_anomaly(out, path);
    default: return 0;
    }
}
