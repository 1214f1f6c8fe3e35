/* Fuzz target: any bytes as a DGL file. What they begin with is put right, since the head is long
 * and little of it matters. */
#include "data/network/dgl.h"
#include "fuzz/fuzz.h"
#include "fuzz/network.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    basin_network *n;
    basin_error error;
    basin_network_options o = {.missing = BASIN_MISSING_ZERO, .directed = size % 2};
    basin_status status = basin_network_dgl_parse(&n, data, size, "fuzz", &o, &error);
    network_check_outcome(n, status, &error);
    basin_network_free(n);
    return 0;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    static dgl file;
    if (index > 3) return 0;
    if (index == 3)
        dgl_two_types(&file);
    else
        dgl_small(&file, 1 << index, 0);
    memcpy(out, file.bytes, file.size);
    return file.size;
}
