/* Fuzz target: any bytes as a MATLAB 5 file, also as the inside of a compressed
 * variable, since no mutation leaves a checksum right. */
#include <stdlib.h>
#include <string.h>

#include <matio.h>
#include <zlib.h>

#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"
#include "fuzz/network.h"

enum { HEADER = 128, TAG = 8, ROOM = 1 << 20 };

static void check(const uint8_t *data, size_t size) {
    basin_network *n;
    basin_error error = {0};
    basin_network_options o = {.missing = BASIN_MISSING_ZERO, .memory = ROOM};
    basin_status status = basin_network_mat_read(&n, data, size, "fuzz", &o, &error);
    network_check_outcome(n, status, &error);
    basin_network_free(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < HEADER) return 0;
    check(data, size);
    uLong packed = compressBound((uLong)(size - HEADER));
    uint8_t *whole = malloc(HEADER + TAG + packed);
    if (!whole) abort();
    memcpy(whole, data, HEADER);
    compress2(whole + HEADER + TAG, &packed, data + HEADER, (uLong)(size - HEADER), 1);
    const uint32_t tag[] = {15, (uint32_t)packed};
    memcpy(whole + HEADER, tag, TAG);
    check(whole, HEADER + TAG + packed);
    free(whole);
    return 0;
}

static void put(mat_t *file, const char *name, enum matio_classes class, void *data,
                enum matio_compression packed) {
    size_t dims[] = {4, 2};
    matvar_t *v = Mat_VarCreate(name, class, MAT_T_DOUBLE, 2, dims, data, MAT_F_DONT_COPY_DATA);
    if (!v || Mat_VarWrite(file, v, packed)) abort();
    Mat_VarFree(v);
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    char path[MEMORY_PATH];
    mat_uint32_t row[] = {0, 2, 3}, start[] = {0, 1, 3};
    double dense[] = {1, 2, 3, 4, 5, 6, 7, 8};
    mat_sparse_t s = {
        .nzmax = 3, .ir = row, .nir = 3, .jc = start, .njc = 3, .ndata = 3, .data = dense};
    if (index > 3) return 0;
    temporary_name(path, "mat");
    mat_t *file = Mat_CreateVer(path, NULL, MAT_FT_MAT5);
    if (!file) abort();
    enum matio_compression packed = index & 1 ? MAT_COMPRESSION_ZLIB : MAT_COMPRESSION_NONE;
    if (index & 2) put(file, "homo", MAT_C_SPARSE, &s, packed);
    put(file, "features", MAT_C_DOUBLE, dense, packed);
    Mat_Close(file);
    return take_file(out, FUZZ_ROOM, path);
}
