/* Builds small zip archives in memory, right ones and wrong ones, field by field. */
#ifndef TESTS_IO_ARCHIVE_H
#define TESTS_IO_ARCHIVE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

typedef struct archive {
    unsigned char bytes[1 << 16];
    size_t size;
    unsigned char directory[1 << 12];
    size_t used, count;
    size_t last; /* where the last entry's directory record begins, in `directory` */
} archive;

static inline void le(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> 8 * i);
}

/* An entry with any content, deflated or stored. */
static inline void archive_add(archive *a, const char *name, const void *content, size_t size,
                               int deflated) {
    unsigned char local[30] = "PK\3\4", central[46] = "PK\1\2";
    size_t length = strlen(name), room = sizeof a->bytes - a->size - 30 - length;
    unsigned char *data = a->bytes + a->size + 30 + length;
    size_t packed = size;
    if (deflated) {
        z_stream z = {0};
        deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
        z.next_in = (Bytef *)content;
        z.avail_in = (uInt)size;
        z.next_out = data;
        z.avail_out = (uInt)room;
        deflate(&z, Z_FINISH);
        packed = z.total_out;
        deflateEnd(&z);
    } else if (size) {
        memcpy(data, content, size);
    }
    le(local + 8, deflated ? 8 : 0, 2);
    le(local + 14, crc32_z(0, content, size), 4);
    le(local + 18, packed, 4);
    le(local + 22, size, 4);
    le(local + 26, length, 2);
    memcpy(central + 10, local + 8, 20);
    le(central + 42, a->size, 4);
    memcpy(a->bytes + a->size, local, 30);
    memcpy(a->bytes + a->size + 30, name, length);
    a->size += 30 + length + packed;
    a->last = a->used;
    memcpy(a->directory + a->used, central, 46);
    memcpy(a->directory + a->used + 46, name, length);
    a->used += 46 + length;
    a->count++;
}

/* A .npy array of version 1, 2 or 3 with the given header text and data. */
static inline void archive_add_npy(archive *a, const char *name, const char *header,
                                   const void *data, size_t size, int version, int deflated) {
    static unsigned char content[1 << 15];
    size_t length = strlen(header), before = version == 1 ? 10 : 12;
    memcpy(content, "\x93NUMPY", 6);
    le(content + 6, (uint64_t)version, 2);
    le(content + 8, length, version == 1 ? 2 : 4);
    memcpy(content + before, header, length);
    if (size) memcpy(content + before + length, data, size);
    archive_add(a, name, content, before + length + size, deflated);
}

static inline void archive_end(archive *a) {
    unsigned char end[22] = "PK\5\6";
    le(end + 8, a->count, 2);
    le(end + 10, a->count, 2);
    le(end + 12, a->used, 4);
    le(end + 16, a->size, 4);
    memcpy(a->bytes + a->size, a->directory, a->used);
    memcpy(a->bytes + a->size + a->used, end, 22);
    a->size += a->used + 22;
}

#endif
