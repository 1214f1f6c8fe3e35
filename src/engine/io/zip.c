/* Zip archives; see zip.h and PKWARE's APPNOTE 6.3.
 *
 * Only the central directory is believed, as every other reader does, and of it nothing that the
 * archive's own size contradicts: an entry lies inside the file, the entries together take no more
 * than the file has, and none unpacks to more than deflate can. */
#include "engine/io/zip.h"
#include "base/file.h"

#include <limits.h>

#include "base/try.h"

enum {
    LOCAL = 30,
    CENTRAL = 46,
    END = 22,
    END64 = 56,
    LOCATOR64 = 20,
    STORED = 0,
    DEFLATED = 8,
    ENCRYPTED = 1,
    MAX_DEFLATE = 1032, /* most bytes that one packed byte can unpack to */
    SLACK = 64
};

static uint32_t get16(const unsigned char *at) { return (uint32_t)(at[0] | at[1] << 8); }
static uint32_t get32(const unsigned char *at) { return get16(at) | get16(at + 2) << 16; }
static uint64_t get64(const unsigned char *at) { return get32(at) | (uint64_t)get32(at + 4) << 32; }

static basin_status bad(const basin_zip *zip, const char *what, basin_error *error) {
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s", zip->path, what);
}

static int shown(int length) { return length < 100 ? length : 100; }

static basin_status bad_entry(const basin_zip *zip, const basin_zip_entry *entry, const char *what,
                              basin_error *error) {
    return basin_fail(error, BASIN_BAD_FILE, "%s: entry '%.*s': %s", zip->path,
                      shown(entry->name_length), entry->name, what);
}

/* The end record is the last 22 bytes, or lies before a comment of up to 65535. */
static const unsigned char *find_end(const basin_zip *zip) {
    for (size_t back = END; back <= zip->size && back <= END + 65535; back++) {
        const unsigned char *at = zip->data + zip->size - back;
        if (memcmp(at, "PK\5\6", 4) == 0 && get16(at + 20) == back - END) return at;
    }
    return NULL;
}

basin_status basin_zip_open(basin_zip *zip, const void *data, size_t size, const char *path,
                            basin_error *error) {
    *zip = (basin_zip){.path = path, .data = data, .size = size, .limit = basin_memory_share()};
    const unsigned char *end = find_end(zip);
    if (!end) return bad(zip, "not a zip archive or cut short: it has no end record", error);
    size_t end_at = (size_t)(end - zip->data);
    uint64_t count = get16(end + 10), bytes = get32(end + 12), offset = get32(end + 16);
    if (end_at >= LOCATOR64 && memcmp(end - LOCATOR64, "PK\6\7", 4) == 0) {
        uint64_t at = get64(end - LOCATOR64 + 8);
        if (at > end_at - LOCATOR64 || end_at - LOCATOR64 - at < END64 ||
            memcmp(zip->data + at, "PK\6\6", 4) != 0)
            return bad(zip, "its 64-bit end record is not where the archive says", error);
        end_at = (size_t)at;
        count = get64(zip->data + at + 32);
        bytes = get64(zip->data + at + 40);
        offset = get64(zip->data + at + 48);
    }
    if (offset > end_at || bytes > end_at - offset)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: a directory of %llu bytes at %llu does not fit into a file of %zu",
                          path, (unsigned long long)bytes, (unsigned long long)offset, size);
    zip->at = (size_t)offset;
    zip->end = (size_t)(offset + bytes);
    zip->left = count;
    return BASIN_OK;
}

/* A 32-bit field that is all ones has its value in the extra field of id 1, where such values
 * follow one another. */
static bool widen(uint64_t *value, const unsigned char **wide, size_t *left) {
    if (*value != 0xffffffff) return true;
    if (*left < 8) return false;
    *value = get64(*wide);
    *wide += 8;
    *left -= 8;
    return true;
}

static bool widen_all(uint64_t value[3], const unsigned char *extra, size_t left) {
    while (left >= 4) {
        size_t length = get16(extra + 2);
        if (length > left - 4) return false;
        if (get16(extra) == 1) {
            extra += 4;
            return widen(&value[0], &extra, &length) && widen(&value[1], &extra, &length) &&
                   widen(&value[2], &extra, &length);
        }
        extra += 4 + length;
        left -= 4 + length;
    }
    return true; /* all ones without such a field: sizes no file has, refused with the others */
}

/* Where the entry's data begin: after its local header, whose names may differ in length. */
static basin_status locate(basin_zip_entry *entry, const basin_zip *zip, uint64_t offset,
                           uint64_t packed, basin_error *error) {
    if (zip->size < LOCAL || offset > zip->size - LOCAL ||
        memcmp(zip->data + offset, "PK\3\4", 4) != 0)
        return bad_entry(zip, entry, "its header is not where the directory says", error);
    const unsigned char *local = zip->data + offset;
    uint64_t begin = offset + LOCAL + get16(local + 26) + get16(local + 28);
    if (begin > zip->size || packed > zip->size - begin)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: entry '%.*s': %llu bytes at %llu do not lie within a file of %zu",
                          zip->path, shown(entry->name_length), entry->name,
                          (unsigned long long)packed, (unsigned long long)begin, zip->size);
    entry->data = zip->data + begin;
    entry->packed = (size_t)packed;
    return BASIN_OK;
}

static basin_status check_sizes(const basin_zip *zip, const basin_zip_entry *entry, uint64_t size,
                                basin_error *error) {
    uint64_t max = (uint64_t)entry->packed * MAX_DEFLATE + SLACK;
    if (entry->method != STORED && entry->method != DEFLATED)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: entry '%.*s': packed by method %u, only 0 (stored) and 8 (deflated) "
                          "are read",
                          zip->path, shown(entry->name_length), entry->name, entry->method);
    if (entry->method == STORED ? size != entry->packed : size > max)
        return basin_fail(
            error, BASIN_BAD_FILE,
            "%s: entry '%.*s': claims %llu bytes, its %zu packed ones cannot hold that", zip->path,
            shown(entry->name_length), entry->name, (unsigned long long)size, entry->packed);
    if (zip->packed > zip->size) return bad_entry(zip, entry, "overlaps other entries", error);
    if (entry->method == STORED) return BASIN_OK;
    return basin_memory_check((double)zip->unpacked, zip->limit, zip->path, BASIN_NO_MEMORY, error);
}

basin_status basin_zip_next(basin_zip_entry *entry, bool *more, basin_zip *zip,
                            basin_error *error) {
    *more = zip->left > 0;
    if (!*more && zip->at == zip->end) return BASIN_OK;
    if (!*more) return bad(zip, "its directory has more entries than it says", error);
    const unsigned char *at = zip->data + zip->at;
    size_t room = zip->end - zip->at;
    if (room < CENTRAL || memcmp(at, "PK\1\2", 4) != 0)
        return bad(zip, "its directory has fewer entries than it says", error);
    size_t name = get16(at + 28), extra = get16(at + 30), comment = get16(at + 32);
    if (room - CENTRAL < name + extra + comment)
        return bad(zip, "an entry reaches past the end of its directory", error);
    *entry = (basin_zip_entry){.name = (const char *)at + CENTRAL,
                               .name_length = (int)name,
                               .method = get16(at + 10),
                               .crc = get32(at + 16)};
    uint64_t value[3] = {get32(at + 24), get32(at + 20), get32(at + 42)}; /* size, packed, offset */
    if (get16(at + 8) & ENCRYPTED) return bad_entry(zip, entry, "is encrypted", error);
    if (!widen_all(value, at + CENTRAL + name, extra))
        return bad_entry(zip, entry, "has a broken extra field", error);
    BASIN_TRY(locate(entry, zip, value[2], value[1], error));
    zip->packed += entry->packed + LOCAL;
    zip->unpacked = value[0] < UINT64_MAX - zip->unpacked ? zip->unpacked + value[0] : UINT64_MAX;
    BASIN_TRY(check_sizes(zip, entry, value[0], error));
    entry->size = (size_t)value[0];
    zip->at += CENTRAL + name + extra + comment;
    zip->left--;
    return BASIN_OK;
}

/* Allocates zlib's state, so that all memory comes from one place. */
static voidpf zlib_alloc(voidpf opaque, uInt items, uInt size) {
    (void)opaque;
    return basin_array_new(items, size);
}

static void zlib_free(voidpf opaque, voidpf address) {
    (void)opaque;
    free(address);
}

basin_status basin_zip_stream_open(basin_zip_stream *stream, const basin_zip *zip,
                                   const basin_zip_entry *entry, basin_error *error) {
    *stream = (basin_zip_stream){.zip = zip, .entry = entry};
    if (entry->method == STORED) return BASIN_OK;
    stream->inflate.zalloc = zlib_alloc;
    stream->inflate.zfree = zlib_free;
    stream->inflate.next_in = (Bytef *)entry->data;
    if (inflateInit2(&stream->inflate, -MAX_WBITS) == Z_OK) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "%s: entry '%.*s': out of memory to unpack it",
                      zip->path, shown(entry->name_length), entry->name);
}

/* zlib counts in 32 bits, so large arrays pass in pieces. *got < bytes where the data end. */
static int inflate_some(size_t *got, basin_zip_stream *stream, unsigned char *out, size_t bytes) {
    z_stream *z = &stream->inflate;
    int code = Z_OK;
    *got = 0;
    do {
        size_t in = stream->entry->packed - (size_t)(z->next_in - stream->entry->data);
        size_t room = bytes - *got;
        z->avail_in = in < INT_MAX ? (uInt)in : INT_MAX;
        z->avail_out = room < INT_MAX ? (uInt)room : INT_MAX;
        z->next_out = out + *got;
        uInt before = z->avail_out;
        code = inflate(z, Z_NO_FLUSH);
        *got += before - z->avail_out;
    } while (code == Z_OK && *got < bytes);
    return code;
}

basin_status basin_zip_stream_read(basin_zip_stream *stream, void *out, size_t bytes,
                                   basin_error *error) {
    const basin_zip_entry *entry = stream->entry;
    size_t got = 0;
    if (bytes > entry->size - stream->taken)
        return bad_entry(stream->zip, entry, "ends before its content does", error);
    if (bytes == 0) return BASIN_OK;
    if (entry->method == STORED) {
        memcpy(out, entry->data + stream->taken, bytes);
    } else {
        int code = inflate_some(&got, stream, out, bytes);
        if (code == Z_MEM_ERROR)
            return basin_fail(error, BASIN_NO_MEMORY,
                              "%s: entry '%.*s': out of memory to unpack it", stream->zip->path,
                              shown(entry->name_length), entry->name);
        if (got != bytes)
            return bad_entry(stream->zip, entry, "its packed data are damaged", error);
    }
    stream->crc = (uint32_t)crc32_z(stream->crc, out, bytes);
    stream->taken += bytes;
    return BASIN_OK;
}

basin_status basin_zip_stream_finish(basin_zip_stream *stream, basin_error *error) {
    const basin_zip_entry *entry = stream->entry;
    unsigned char beyond;
    size_t got = 0;
    if (stream->taken != entry->size)
        return bad_entry(stream->zip, entry, "goes on after its content has ended", error);
    if (entry->method == DEFLATED && inflate_some(&got, stream, &beyond, 1) != Z_STREAM_END)
        return bad_entry(stream->zip, entry, "its packed data are damaged", error);
    if (got) return bad_entry(stream->zip, entry, "unpacks to more than it claims", error);
    if (stream->crc != entry->crc)
        return basin_fail(
            error, BASIN_BAD_FILE, "%s: entry '%.*s': its checksum is %08x, the archive says %08x",
            stream->zip->path, shown(entry->name_length), entry->name, stream->crc, entry->crc);
    return BASIN_OK;
}

void basin_zip_stream_close(basin_zip_stream *stream) {
    if (stream->entry && stream->entry->method == DEFLATED) inflateEnd(&stream->inflate);
}

/* ---- writing ---- */

/* Dates are the format's first day, so that equal tensors give equal files. */
enum {
    UNIX_45 = 3 << 8 | 45, /* made on Unix, by version 4.5 of the format */
    NEEDS_20 = 20,
    UTF8_NAME = 1 << 11,
    FIRST_DAY = 1 << 5 | 1, /* 1 January 1980 */
    MODE = 0100644
};

/* Packs little-endian numbers of the given sizes in bytes: "42" packs two, of four and of two
 * bytes. */
static size_t pack(unsigned char *to, const char *bytes, const uint64_t *value) {
    size_t at = 0;
    for (; *bytes; bytes++, value++)
        for (int i = 0; i < *bytes - '0'; i++) to[at++] = (unsigned char)(*value >> 8 * i);
    return at;
}

basin_zip_writer basin_zip_begin(basin_writer *file) {
    return (basin_zip_writer){.file = file, .limit = 0xffffffff};
}

static basin_status put(basin_zip_writer *zip, const void *data, size_t bytes, basin_error *error) {
    zip->at += bytes;
    return basin_writer_put(zip->file, data, bytes, error);
}

static basin_status check_room(const basin_zip_writer *zip, size_t bytes, basin_error *error) {
    if (zip->count < 0xffff && bytes < zip->limit && zip->at < zip->limit - bytes) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "%s: more than npz of 4 GiB or 65,534 arrays hold: write safetensors",
                      zip->file->path);
}

basin_status basin_zip_add(basin_zip_writer *zip, const char *name, const void *head,
                           size_t head_bytes, const void *body, size_t body_bytes,
                           basin_error *error) {
    size_t length = strlen(name), size = head_bytes + body_bytes;
    if (length > BASIN_ZIP_NAME_MAX)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: a name of %zu bytes, zip allows %d",
                          zip->file->path, length, BASIN_ZIP_NAME_MAX);
    BASIN_TRY(check_room(zip, size, error));
    BASIN_TRY(BASIN_GROW(&zip->directory, &zip->capacity, zip->used + CENTRAL + length,
                         "the directory of an archive", error));
    bool ascii = true;
    for (const char *c = name; *c; c++) ascii = ascii && (unsigned char)*c < 128;
    uint64_t crc = crc32_z(0, head, head_bytes), flags = ascii ? 0 : UTF8_NAME;
    if (body_bytes) crc = crc32_z(crc, body, body_bytes); /* NULL would reset it */

    /* the version needed, flags, method, time, date, checksum, sizes, the name's length, no extra
     * field; in the directory also the maker, no comment, disk, attributes, and the offset */
    unsigned char local[LOCAL], *central = zip->directory + zip->used;
    pack(local, "42222244422",
         (uint64_t[]){0x04034b50, NEEDS_20, flags, STORED, 0, FIRST_DAY, crc, size, size, length,
                      0});
    pack(central, "42222224442222244",
         (uint64_t[]){0x02014b50, UNIX_45, NEEDS_20, flags, STORED, 0, FIRST_DAY, crc, size, size,
                      length, 0, 0, 0, 0, (uint64_t)MODE << 16, zip->at});
    memcpy(central + CENTRAL, name, length);
    zip->used += CENTRAL + length;
    zip->count++;
    BASIN_TRY(put(zip, local, LOCAL, error));
    BASIN_TRY(put(zip, name, length, error));
    BASIN_TRY(put(zip, head, head_bytes, error));
    return put(zip, body, body_bytes, error);
}

basin_status basin_zip_end(basin_zip_writer *zip, basin_error *error) {
    unsigned char end[END];
    BASIN_TRY(check_room(zip, zip->used, error));
    pack(end, "42222442",
         (uint64_t[]){0x06054b50, 0, 0, zip->count, zip->count, zip->used, zip->at, 0});
    BASIN_TRY(put(zip, zip->directory, zip->used, error));
    return put(zip, end, END, error);
}

void basin_zip_free(basin_zip_writer *zip) {
    free(zip->directory);
    *zip = (basin_zip_writer){0};
}
