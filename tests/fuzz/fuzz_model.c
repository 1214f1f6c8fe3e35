/* Fuzz target: any bytes as a model file of each of the four tasks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basin/tasks/graphs.h"
#include "basin/tasks/image.h"
#include "basin/tasks/nodes.h"
#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"
#include "tasks/nodes/network/network.h"

static void check(basin_status status, const basin_error *error) {
    if (status && (error->status != status || !*error->text || strchr(error->text, '\n'))) abort();
}

static basin_backend *backend_new(void) {
    basin_backend *backend;
    if (basin_backend_open(&backend, &(basin_compute){.backend = "ref", .threads = 1}, NULL))
        abort();
    return backend;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[MEMORY_PATH];
    basin_error error = {0};
    basin_image_model *image;
    basin_graphs_model *graph;
    basin_nodes_model *detector;
    int fd = memory_file(path, data, size);
    basin_backend *backend = backend_new();
    basin_status status = basin_image_open(&image, path, backend, &error);
    check(status, &error);
    if (!status) basin_image_close(image);
    status = basin_graphs_open(&graph, path, backend, &error);
    check(status, &error);
    if (!status) basin_graphs_close(graph);
    status = basin_nodes_open(&detector, "anomaly", path, backend, &error);
    check(status, &error);
    if (!status) basin_nodes_close(detector);
    basin_backend_close(backend);
    close(fd);
    return 0;
}

/* Small models are seeds. */
size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    static const char *const name[] = {"image", "graph"};
    char path[400];
    if (index >= 2) return 0;
    snprintf(path, sizeof path, "%s/tests/files/%s.safetensors", BASIN_SOURCE, name[index]);
    FILE *file = fopen(path, "rb");
    if (!file) abort();
    size_t size = fread(out, 1, FUZZ_ROOM, file);
    fclose(file);
    return size;
}
