/* Fuzz target: any bytes as a checkpoint of a store with two states. */
#include <stdlib.h>
#include <string.h>

#include "basin/train.h"
#include "engine/io/bundle.h"
#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"

static basin_store *store_new(basin_backend **backend) {
    basin_store *store;
    float weight[6] = {1, 2, 3, 4, 5, 6};
    basin_tensor w = basin_tensor_borrow(weight, BASIN_F32, BASIN_SHAPE(2, 3));
    basin_tensor b = basin_tensor_borrow(weight, BASIN_F32, BASIN_SHAPE(3));
    if (basin_backend_open(backend, &(basin_compute){.backend = "ref", .threads = 1}, NULL) ||
        basin_store_new(&store, *backend, NULL) || basin_store_write(store, "w", &w, NULL) ||
        basin_store_write(store, "b", &b, NULL))
        abort();
    return store;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    basin_bundle *bundle;
    basin_error error = {0};
    int64_t step = -1;
    if (basin_safetensors_parse(&bundle, data, size, "fuzz", NULL)) return 0;
    basin_backend *backend;
    basin_store *store = store_new(&backend);
    basin_status status = basin_checkpoint_read(&step, store, bundle, &error);
    if (status ? error.status != status || !*error.text : step < 0) abort();
    basin_store_free(store);
    basin_backend_close(backend);
    basin_bundle_free(bundle);
    return 0;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    char path[MEMORY_PATH];
    if (index > 0) return 0;
    basin_backend *backend;
    basin_store *store = store_new(&backend);
    temporary_name(path, "safetensors");
    if (basin_checkpoint_write(path, store, 42, NULL, 0, NULL)) abort();
    basin_store_free(store);
    basin_backend_close(backend);
    return take_file(out, FUZZ_ROOM, path);
}
