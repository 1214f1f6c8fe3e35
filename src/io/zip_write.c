/* Writing zip archives of stored entries; see zip.h. Dates are the format's first day, so that
 * equal tensors give equal files. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/zip.h"

enum {
    UNIX_45 = 3 << 8 | 45, /* made on Unix, by version 4.5 of the format */
    UTF8_NAME = 1 << 11,
    FIRST_DAY = 1 << 5 | 1, /* 1 January 1980 */
    MODE = 0100644
};

/* A record under construction; the largest fixed part is 56 bytes, an extra field 28. */
typedef struct record {
    unsigned char bytes[96];
    size_t size;
} record;

static void put(record *to, uint64_t value, int bytes) {
    for (; bytes > 0; bytes--, value >>= 8) to->bytes[to->size++] = (unsigned char)value;
}

static void put_signature(record *to, const char *signature) {
    memcpy(to->bytes + to->size, signature, 4);
    to->size += 4;
}

typedef struct member {
    const char *name;
    uint32_t crc;
    uint64_t size, offset;
    bool wide; /* size and offset go into the extra field */
} member;

/* What local header and directory have in common: from the version needed to the name's length. */
static void put_common(record *to, const member *m) {
    bool ascii = true;
    for (const char *c = m->name; *c; c++) ascii = ascii && (unsigned char)*c < 128;
    put(to, m->wide ? 45 : 20, 2);
    put(to, ascii ? 0 : UTF8_NAME, 2);
    put(to, 0, 2); /* stored */
    put(to, 0, 2);
    put(to, FIRST_DAY, 2);
    put(to, m->crc, 4);
    for (int i = 0; i < 2; i++) put(to, m->wide ? 0xffffffff : m->size, 4); /* packed, unpacked */
    put(to, strlen(m->name), 2);
}

static record local_header(const member *m) {
    record r = {.size = 0};
    put_signature(&r, "PK\3\4");
    put_common(&r, m);
    put(&r, m->wide ? 20 : 0, 2);
    return r;
}

static record local_extra(const member *m) {
    record r = {.size = 0};
    if (!m->wide) return r;
    put(&r, 1, 2);
    put(&r, 16, 2);
    for (int i = 0; i < 2; i++) put(&r, m->size, 8);
    return r;
}

static record central_header(const member *m) {
    record r = {.size = 0};
    put_signature(&r, "PK\1\2");
    put(&r, UNIX_45, 2);
    put_common(&r, m);
    put(&r, m->wide ? 28 : 0, 2);
    put(&r, 0, 2); /* comment */
    put(&r, 0, 2); /* disk */
    put(&r, 0, 2); /* internal attributes */
    put(&r, (uint64_t)MODE << 16, 4);
    put(&r, m->wide ? 0xffffffff : m->offset, 4);
    return r;
}

static record central_extra(const member *m) {
    record r = {.size = 0};
    if (!m->wide) return r;
    put(&r, 1, 2);
    put(&r, 24, 2);
    for (int i = 0; i < 2; i++) put(&r, m->size, 8);
    put(&r, m->offset, 8);
    return r;
}

basin_zip_writer basin_zip_begin(basin_writer *file) {
    return (basin_zip_writer){.file = file, .limit = 0xffffffff};
}

static basin_status put_file(basin_zip_writer *zip, const void *data, size_t bytes,
                             basin_error *error) {
    zip->at += bytes;
    return basin_writer_put(zip->file, data, bytes, error);
}

static void put_directory(basin_zip_writer *zip, const void *data, size_t bytes) {
    memcpy(zip->directory + zip->used, data, bytes);
    zip->used += bytes;
}

basin_status basin_zip_add(basin_zip_writer *zip, const char *name, const void *head,
                           size_t head_bytes, const void *body, size_t body_bytes,
                           basin_error *error) {
    size_t length = strlen(name), need = zip->used + length + 2 * sizeof(record);
    if (length > BASIN_ZIP_NAME_MAX)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: a name of %zu bytes, zip allows %d",
                          zip->file->path, length, BASIN_ZIP_NAME_MAX);
    if (!basin_array_reserve((void **)&zip->directory, &zip->capacity, need, 1))
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for its directory",
                          zip->file->path);
    member m = {.name = name, .size = head_bytes + body_bytes, .offset = zip->at};
    m.crc = (uint32_t)crc32_z(0, head, head_bytes);
    if (body_bytes) m.crc = (uint32_t)crc32_z(m.crc, body, body_bytes); /* NULL would reset it */
    m.wide = m.size >= zip->limit || m.offset >= zip->limit;

    record header = local_header(&m), extra = local_extra(&m);
    basin_status status = put_file(zip, header.bytes, header.size, error);
    if (status == BASIN_OK) status = put_file(zip, name, length, error);
    if (status == BASIN_OK) status = put_file(zip, extra.bytes, extra.size, error);
    if (status == BASIN_OK) status = put_file(zip, head, head_bytes, error);
    if (status == BASIN_OK) status = put_file(zip, body, body_bytes, error);

    header = central_header(&m);
    extra = central_extra(&m);
    put_directory(zip, header.bytes, header.size);
    put_directory(zip, name, length);
    put_directory(zip, extra.bytes, extra.size);
    zip->count++;
    return status;
}

static void put_end64(record *r, const basin_zip_writer *zip, uint64_t directory_at) {
    put_signature(r, "PK\6\6");
    put(r, 44, 8); /* bytes that follow */
    put(r, UNIX_45, 2);
    put(r, 45, 2);
    put(r, 0, 4); /* this disk, and the directory's */
    put(r, 0, 4);
    put(r, zip->count, 8);
    put(r, zip->count, 8);
    put(r, zip->used, 8);
    put(r, directory_at, 8);
    put_signature(r, "PK\6\7");
    put(r, 0, 4);
    put(r, directory_at + zip->used, 8);
    put(r, 1, 4); /* disks */
}

basin_status basin_zip_end(basin_zip_writer *zip, basin_error *error) {
    uint64_t directory_at = zip->at;
    bool wide = zip->count >= 0xffff || zip->used >= zip->limit || directory_at >= zip->limit;
    record end64 = {.size = 0}, end = {.size = 0};
    if (wide) put_end64(&end64, zip, directory_at);
    put_signature(&end, "PK\5\6");
    put(&end, 0, 4);
    for (int i = 0; i < 2; i++) put(&end, wide ? 0xffff : zip->count, 2);
    put(&end, wide ? 0xffffffff : zip->used, 4);
    put(&end, wide ? 0xffffffff : directory_at, 4);
    put(&end, 0, 2); /* comment */
    basin_status status = put_file(zip, zip->directory, zip->used, error);
    if (status == BASIN_OK) status = put_file(zip, end64.bytes, end64.size, error);
    if (status == BASIN_OK) status = put_file(zip, end.bytes, end.size, error);
    return status;
}

void basin_zip_free(basin_zip_writer *zip) {
    free(zip->directory);
    *zip = (basin_zip_writer){0};
}
