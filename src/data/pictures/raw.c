/* Pictures stored as pixels: idx files (MNIST's format), plain or gz, and CIFAR's binary batches.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/gz.h"
#include "data/pictures/pictures.h"

/* ---- idx: 0, 0, type, rank, then big-endian sizes, then the values ---- */

static int64_t big(const uint8_t *at) {
    return (int64_t)at[0] << 24 | (int64_t)at[1] << 16 | (int64_t)at[2] << 8 | at[3];
}

/* [n, h, w], [n, h, w, c] or [n, c, h, w], c 1 or 3. */
static basin_status idx_shape(basin_shelf *shelf, const uint8_t *bytes, basin_error *error) {
    int rank = bytes[3];
    int64_t size[4] = {1, 1, 1, 1};
    for (int i = 0; i < rank; i++) size[i] = big(bytes + 4 + 4 * i);
    shelf->count = size[0];
    shelf->height = size[1];
    shelf->width = size[2];
    shelf->channels = 1;
    if (rank == 4 && (size[3] == 1 || size[3] == 3)) {
        shelf->channels = (int)size[3];
    } else if (rank == 4 && (size[1] == 1 || size[1] == 3)) {
        shelf->channels = (int)size[1];
        shelf->height = size[2];
        shelf->width = size[3];
        shelf->planar = true;
    } else if (rank == 4) {
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: idx of sizes %lld x %lld x %lld x %lld, want 1 or 3 channels, last "
                          "or second",
                          shelf->name, (long long)size[0], (long long)size[1], (long long)size[2],
                          (long long)size[3]);
    }
    return BASIN_OK;
}

basin_status basin_idx_parse(basin_shelf *shelf, const uint8_t *bytes, size_t size,
                             basin_error *error) {
    enum { BYTES = 0x08 };
    basin_status status;
    size_t need, head = size >= 4 ? 4 + 4 * (size_t)bytes[3] : 4;
    shelf->kind = BASIN_SHELF_RAW;
    if (size < 4 || bytes[0] || bytes[1])
        return basin_fail(error, BASIN_BAD_FILE, "%s: does not start like an idx file",
                          shelf->name);
    if (bytes[2] != BYTES)
        return basin_fail(error, BASIN_UNSUPPORTED, "%s: idx of type 0x%02x, want bytes (0x08)",
                          shelf->name, bytes[2]);
    if (bytes[3] != 3 && bytes[3] != 4)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: idx of rank %d, want 3 or 4 (labels have rank 1)", shelf->name,
                          bytes[3]);
    if (size < head)
        return basin_fail(error, BASIN_BAD_FILE, "%s: ends within its header", shelf->name);
    status = idx_shape(shelf, bytes, error);
    if (status) return status;
    if (shelf->count > 0 && (shelf->height < 1 || shelf->width < 1 ||
                             shelf->height > BASIN_PICTURE_PIXELS / shelf->width))
        return basin_fail(error, BASIN_BAD_FILE, "%s: pictures of %lld x %lld pixels", shelf->name,
                          (long long)shelf->height, (long long)shelf->width);
    shelf->step = (size_t)shelf->height * (size_t)shelf->width * (size_t)shelf->channels;
    if (!basin_size_multiply(&need, shelf->step, (size_t)shelf->count) || need != size - head)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: %zu bytes of pixels, want %lld pictures of %lld x %lld x %d",
                          shelf->name, size - head, (long long)shelf->count,
                          (long long)shelf->height, (long long)shelf->width, shelf->channels);
    shelf->first = bytes + head;
    return BASIN_OK;
}

/* Unpacks a gz file into *out. Its length is found by unpacking, so that nothing is believed. */
static basin_status unpack(uint8_t **out, size_t *size, size_t limit, const char *path,
                           basin_error *error) {
    enum { CHUNK = 1 << 20 };
    size_t capacity = 0, got = 1;
    gzFile file;
    if (!limit) limit = basin_memory_share();
    basin_status status = basin_gz_open(&file, path, error);
    if (status) return status;
    gzbuffer(file, CHUNK / 4);
    for (*size = 0; got && !status; *size += got) {
        got = 0;
        status = basin_memory_check((double)*size + CHUNK, limit, path, BASIN_NO_MEMORY, error);
        if (!status && !basin_array_reserve((void **)out, &capacity, *size + CHUNK, 1))
            status = basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to unpack %zu bytes",
                                path, *size);
        if (!status) status = basin_gz_read(&got, *out + *size, CHUNK, file, path, error);
    }
    gzclose(file);
    return status;
}

basin_status basin_shelf_idx(basin_shelf *shelf, basin_error *error) {
    size_t size;
    basin_status status = basin_map_open(&shelf->map, shelf->name, error);
    if (status) return status;
    if (shelf->map.size < 2 || shelf->map.data[0] != 0x1f || shelf->map.data[1] != 0x8b)
        return basin_idx_parse(shelf, shelf->map.data, shelf->map.size, error);
    basin_map_close(&shelf->map);
    status = unpack(&shelf->unpacked, &size, shelf->limit, shelf->name, error);
    return status ? status : basin_idx_parse(shelf, shelf->unpacked, size, error);
}

/* ---- CIFAR: records of 1 or 2 label bytes and 3 planes of 32 x 32 ---- */

basin_status basin_shelf_cifar(basin_shelf *shelf, basin_error *error) {
    enum { SIDE = 32, PIXELS = 3 * SIDE * SIDE };
    basin_status status = basin_map_open(&shelf->map, shelf->name, error);
    if (status) return status;
    size_t labels = shelf->map.size % (PIXELS + 1) == 0 ? 1 : 2;
    if (shelf->map.size == 0 || shelf->map.size % (PIXELS + labels) != 0)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: %zu bytes, want records of 3073 (CIFAR-10) or 3074 (CIFAR-100)",
                          shelf->name, shelf->map.size);
    shelf->kind = BASIN_SHELF_RAW;
    shelf->height = shelf->width = SIDE;
    shelf->channels = 3;
    shelf->planar = true;
    shelf->step = PIXELS + labels;
    shelf->first = shelf->map.data + labels;
    shelf->count = (int64_t)(shelf->map.size / shelf->step);
    return BASIN_OK;
}
