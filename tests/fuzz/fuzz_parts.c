/* Fuzz target: any bytes as the first file of a graph in parts. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"
#include "tasks/nodes/network/parts/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char folder[] = "/tmp/basin-fuzz-parts-XXXXXX", path[MEMORY_PATH];
    basin_part *part;
    basin_error error = {0};
    int64_t parts;
    if (!mkdtemp(folder)) abort();
    snprintf(path, sizeof path, "%s/part-0.basin", folder);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file)) abort();
    (void)basin_cut_count(&parts, folder, &error);
    basin_status status = basin_part_open(&part, folder, 0, &error);
    if (status && (part || error.status != status || !*error.text)) abort();
    /* What it sees lies within its nodes and its halo. */
    for (int r = 0; !status && r < part->network->relations; r++) {
        const basin_relation *relation = &part->network->relation[r];
        for (int64_t e = 0; e < relation->edges; e++)
            if (relation->col[e] < 0 || relation->col[e] >= part->network->nodes + part->halo)
                abort();
    }
    basin_part_free(part);
    unlink(path);
    rmdir(folder);
    return 0;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    static const int32_t from[] = {0, 1, 2, 3}, to[] = {1, 2, 3, 0};
    static const float feature[] = {0, 1, 2, 3};
    basin_edges edges = {from, to, BASIN_I32, 1, 4};
    basin_network_arrays arrays = {
        .nodes = 4, .features = 1, .feature = feature, .relations = 1, .edges = &edges};
    char folder[] = "/tmp/basin-fuzz-seed-XXXXXX", path[MEMORY_PATH];
    basin_network *network;
    basin_cut_report report;
    if (index > 0) return 0;
    if (!mkdtemp(folder) || basin_network_from_arrays(&network, &arrays, NULL, NULL) ||
        basin_network_cut(&report, folder, network,
                          &(basin_cut_spec){.parts = 2, .method = "range"}, NULL))
        abort();
    basin_network_close(network);
    snprintf(path, sizeof path, "%s/part-1.basin", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/part-0.basin", folder);
    size_t size = take_file(out, FUZZ_ROOM, path);
    rmdir(folder);
    return size;
}
