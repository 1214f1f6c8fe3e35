/* Archives of pictures through libarchive: the members are listed once. Those of a plain tar stay
 * in the mapped file; those of a compressed archive are unpacked into memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/archive.h"
#include "data/pictures/pictures.h"

/* Room for `length` bytes more of a member that has to be unpacked. */
static basin_status make_room(uint8_t **copy, size_t *capacity, basin_shelf *shelf, size_t size,
                              size_t length, la_int64_t offset, const char *name,
                              basin_error *error) {
    if (offset != (la_int64_t)size)
        return basin_fail(error, BASIN_UNSUPPORTED, "%s/%s: has holes", shelf->name, name);
    shelf->held += length;
    basin_status status =
        basin_memory_check((double)shelf->held, shelf->limit, shelf->name, BASIN_NO_MEMORY, error);
    if (!status && !basin_array_reserve((void **)copy, capacity, size + length, 1))
        status =
            basin_fail(error, BASIN_NO_MEMORY, "%s/%s: out of memory to unpack", shelf->name, name);
    return status;
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
        basin_status status =
            make_room(&copy, &capacity, shelf, *size, length, offset, name, error);
        if (status) {
            free(copy);
            return status;
        }
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
    basin_status status = take_data(&data, &size, &owned, shelf, archive, name, error);
    if (status) return status;
    status = basin_shelf_add(shelf, name, data, size, owned, error);
    if (status && owned) free((void *)data);
    return status;
}

static basin_status list(basin_shelf *shelf, const basin_archive *archive, basin_error *error) {
    struct archive_entry *entry;
    basin_status status = BASIN_OK;
    int code;
    while (!status &&
           (code = archive->archive_read_next_header(archive->reader, &entry)) != ARCHIVE_EOF) {
        if (code < ARCHIVE_WARN)
            status = basin_fail(error, BASIN_BAD_FILE, "%s: not read to its end: %s", shelf->name,
                                basin_archive_why(archive));
        else
            status = add_member(shelf, archive, entry, error);
    }
    return status;
}

static int by_name(const void *a, const void *b) {
    const basin_entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->data > y->data) - (x->data < y->data);
}

basin_status basin_archive_parse(basin_shelf *shelf, const uint8_t *bytes, size_t size,
                                 basin_error *error) {
    basin_archive archive;
    shelf->bytes = bytes;
    shelf->size = size;
    if (!shelf->limit) shelf->limit = basin_memory_share();
    basin_status status = basin_archive_open(&archive, bytes, size, shelf->name,
                                             "picture, idx file, CIFAR batch or archive", error);
    if (status) return status;
    status = list(shelf, &archive, error);
    basin_archive_close(&archive);
    if (!status && shelf->count > 0)
        qsort(shelf->entry, (size_t)shelf->count, sizeof *shelf->entry, by_name);
    return status;
}

basin_status basin_shelf_archive(basin_shelf *shelf, const char *split, bool *divided,
                                 basin_error *error) {
    basin_status status = basin_map_open(&shelf->map, shelf->name, error);
    if (!status) status = basin_archive_parse(shelf, shelf->map.data, shelf->map.size, error);
    if (!status) basin_shelf_divide(shelf, split, divided);
    return status;
}
