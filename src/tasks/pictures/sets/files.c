/* Pictures stored as pixels: idx files (MNIST's), plain or gz, and CIFAR's binary batches. */
#include "base/file.h"
#include "base/try.h"
#include "tasks/common/packed.h"
#include "tasks/pictures/sets/pictures.h"

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
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "%s: idx of sizes %lld x %lld x %lld x %lld; expected 1 or 3 channels, last or second",
            shelf->name, (long long)size[0], (long long)size[1], (long long)size[2],
            (long long)size[3]);
    }
    return BASIN_OK;
}

basin_status basin_idx_parse(basin_shelf *shelf, const uint8_t *bytes, size_t size,
                             basin_error *error) {
    enum { BYTES = 0x08 };
    size_t need, head = size >= 4 ? 4 + 4 * (size_t)bytes[3] : 4;
    shelf->kind = BASIN_SHELF_RAW;
    if (size < 4 || bytes[0] || bytes[1])
        return basin_fail(error, BASIN_BAD_FILE, "%s: does not start like an idx file",
                          shelf->name);
    if (bytes[2] != BYTES)
        return basin_fail(error, BASIN_UNSUPPORTED, "%s: idx of type 0x%02x; expected bytes (0x08)",
                          shelf->name, bytes[2]);
    if (bytes[3] != 3 && bytes[3] != 4)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: idx of rank %d; expected 3 or 4 (labels have rank 1)", shelf->name,
                          bytes[3]);
    if (size < head)
        return basin_fail(error, BASIN_BAD_FILE, "%s: ends within its header", shelf->name);
    BASIN_TRY(idx_shape(shelf, bytes, error));
    if (shelf->count > 0 && (shelf->height < 1 || shelf->width < 1 ||
                             shelf->height > BASIN_MAX_PICTURE_PIXELS / shelf->width))
        return basin_fail(error, BASIN_BAD_FILE, "%s: pictures of %lld x %lld pixels", shelf->name,
                          (long long)shelf->height, (long long)shelf->width);
    shelf->step = (size_t)shelf->height * (size_t)shelf->width * (size_t)shelf->channels;
    if (!basin_size_multiply(&need, shelf->step, (size_t)shelf->count) || need != size - head)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: %zu bytes of pixels; expected %lld pictures of %lld x %lld x %d",
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
    basin_packed *file;
    if (!limit) limit = basin_memory_share();
    basin_status status = BASIN_OK;
    BASIN_TRY(basin_packed_open(&file, path, error));
    for (*size = 0; got && !status; *size += got) {
        got = 0;
        status = basin_memory_check((double)*size + CHUNK, limit, path, BASIN_NO_MEMORY, error);
        if (!status && !basin_array_reserve((void **)out, &capacity, *size + CHUNK, 1))
            status = basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to unpack %zu bytes",
                                path, *size);
        if (!status) status = basin_packed_read(&got, *out + *size, CHUNK, file, error);
    }
    basin_packed_close(file);
    return status;
}

basin_status basin_shelf_idx(basin_shelf *shelf, basin_error *error) {
    size_t size;
    BASIN_TRY(basin_map_open(&shelf->map, shelf->name, error));
    if (shelf->map.size < 2 || shelf->map.data[0] != 0x1f || shelf->map.data[1] != 0x8b)
        return basin_idx_parse(shelf, shelf->map.data, shelf->map.size, error);
    basin_map_close(&shelf->map);
    BASIN_TRY(unpack(&shelf->unpacked, &size, shelf->limit, shelf->name, error));
    return basin_idx_parse(shelf, shelf->unpacked, size, error);
}

/* ---- CIFAR: records of 1 or 2 label bytes and 3 planes of 32 x 32 ---- */

basin_status basin_shelf_cifar(basin_shelf *shelf, basin_error *error) {
    enum { SIDE = 32, PIXELS = 3 * SIDE * SIDE };
    BASIN_TRY(basin_map_open(&shelf->map, shelf->name, error));
    size_t labels = shelf->map.size % (PIXELS + 1) == 0 ? 1 : 2;
    if (shelf->map.size == 0 || shelf->map.size % (PIXELS + labels) != 0)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: %zu bytes; expected records of 3073 (CIFAR-10) or 3074 (CIFAR-100)",
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

/* ---- Archives of pictures through libarchive: the members are listed once. Those of a plain tar
 * stay in the mapped file; those of a compressed archive are unpacked into memory ---- */

/* Room for `length` bytes more of a member that has to be unpacked. */
static basin_status make_room(uint8_t **copy, size_t *capacity, basin_shelf *shelf, size_t size,
                              size_t length, la_int64_t offset, const char *name,
                              basin_error *error) {
    if (offset != (la_int64_t)size)
        return basin_fail(error, BASIN_UNSUPPORTED, "%s/%s: has holes", shelf->name, name);
    shelf->held += length;
    BASIN_TRY(
        basin_memory_check((double)shelf->held, shelf->limit, shelf->name, BASIN_NO_MEMORY, error));
    if (!basin_array_reserve((void **)copy, capacity, size + length, 1))
        return basin_fail(error, BASIN_NO_MEMORY, "%s/%s: out of memory to unpack", shelf->name,
                          name);
    return BASIN_OK;
}

/* All of a member's data: in place where it lies in the map as one piece, else in memory. */
static basin_status take_data(const uint8_t **data, size_t *size, bool *owned, basin_shelf *shelf,
                              const basin_archive *archive, const char *name, basin_error *error) {
    size_t capacity = 0;
    uint8_t *copy = NULL;
    const void *block;
    size_t length;
    la_int64_t offset;
    int code;
    *data = NULL;
    *size = 0;
    *owned = false;
    while ((code = archive->archive_read_data_block(archive->reader, &block, &length, &offset)) ==
           ARCHIVE_OK) {
        const uint8_t *at = block;
        if (length == 0) continue;
        if (!copy && at >= shelf->bytes && at < shelf->bytes + shelf->size &&
            (!*data || (at == *data + *size && (la_int64_t)*size == offset))) {
            if (!*data) *data = at;
            *size += length;
            continue;
        }
        BASIN_TRY_OR(make_room(&copy, &capacity, shelf, *size, length, offset, name, error),
                     free(copy));
        if (*data && !*owned) memcpy(copy, *data, *size);
        memcpy(copy + *size, block, length);
        *data = copy;
        *owned = true;
        *size += length;
    }
    if (code == ARCHIVE_EOF) {
        if (!*data) *data = (const uint8_t *)"";
        return BASIN_OK;
    }
    free(copy);
    return basin_fail(error, BASIN_BAD_FILE, "%s/%s: cannot be unpacked: %s", shelf->name, name,
                      basin_archive_why(archive));
}

static basin_status add_member(basin_shelf *shelf, const basin_archive *archive,
                               struct archive_entry *entry, basin_error *error) {
    const uint8_t *data;
    size_t size;
    bool owned;
    const char *name = archive->archive_entry_pathname(entry);
    if (!name) name = archive->archive_entry_pathname_utf8(entry);
    if (!name || archive->archive_entry_filetype(entry) != AE_IFREG) return BASIN_OK;
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    if (base[0] == '.' || !basin_name_is_picture(base)) return BASIN_OK;
    while (name[0] == '.' && name[1] == '/') name += 2;
    BASIN_TRY(take_data(&data, &size, &owned, shelf, archive, name, error));
    basin_status status = basin_shelf_add(shelf, name, data, size, owned, error);
    if (status && owned) free((void *)data);
    return status;
}

static basin_status list(basin_shelf *shelf, const basin_archive *archive, basin_error *error) {
    struct archive_entry *entry;
    int code;
    while ((code = archive->archive_read_next_header(archive->reader, &entry)) != ARCHIVE_EOF) {
        if (code < ARCHIVE_WARN)
            return basin_fail(error, BASIN_BAD_FILE, "%s: not read to its end: %s", shelf->name,
                              basin_archive_why(archive));
        BASIN_TRY(add_member(shelf, archive, entry, error));
    }
    return BASIN_OK;
}

basin_status basin_archive_parse(basin_shelf *shelf, const uint8_t *bytes, size_t size,
                                 basin_error *error) {
    basin_archive archive;
    shelf->bytes = bytes;
    shelf->size = size;
    if (!shelf->limit) shelf->limit = basin_memory_share();
    BASIN_TRY(basin_archive_open(&archive, bytes, size, shelf->name,
                                 "picture, idx file, CIFAR batch or archive", error));
    basin_status status = list(shelf, &archive, error);
    basin_archive_close(&archive);
    if (!status) basin_shelf_sort(shelf);
    return status;
}
