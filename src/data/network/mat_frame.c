/* Walking through the tags of a MATLAB 5 file; see mat_frame.h. matio takes the end of a file for
 * the end of its variables and a short inflate for zeros, so that a file which was cut would be
 * read as another one. A cut between two variables leaves a whole file with fewer of them, which
 * nothing can tell.
 *
 *     header 124 bytes, version, "IM" or "MI"
 *     elements: type u32, bytes u32, data padded to 8; or type u16, bytes u16, up to 4 bytes
 *     matrix: flags, sizes, name, then of numbers the real part; of sparse ones rows, starts,
 * values
 */
#include "data/network/mat_frame.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <zlib.h>

#include "base/memory.h"

enum { HEADER = 128, TAG = 8, COMPRESSED = 15, MATRIX = 14, CHUNK = 1 << 14, RANK = 32 };
enum { SPARSE = 5, DOUBLE = 6, LAST_NUMERIC = 15 };

/* Bytes in order: those of the file, or what they unpack to. */
typedef struct source {
    const unsigned char *at;
    size_t left; /* of the file's bytes */
    bool packed, swap;
    z_stream z;
    double limit, wanted; /* bytes of the largest matrix allowed, and of one that is larger */
    const char *why;      /* set where it fails */
} source;

typedef struct tag {
    uint32_t type, bytes;
    uint32_t padding;
    bool small; /* the data were in the tag itself */
    unsigned char data[4];
} tag;

static bool fail_why(source *s, const char *why) {
    s->why = why;
    return false;
}

static bool unpack(source *s, unsigned char *to, size_t bytes) {
    s->z.next_out = to;
    s->z.avail_out = (uInt)bytes;
    int code = Z_OK;
    while (s->z.avail_out && code == Z_OK) code = inflate(&s->z, Z_NO_FLUSH);
    if (!s->z.avail_out) return true;
    return fail_why(s, code == Z_MEM_ERROR ? "out of memory to unpack it"
                                           : "a variable does not unpack to its end");
}

static bool take(source *s, void *to, size_t bytes) {
    if (s->packed) return unpack(s, to, bytes);
    if (bytes > s->left) return fail_why(s, "it is cut off");
    memcpy(to, s->at, bytes);
    s->at += bytes;
    s->left -= bytes;
    return true;
}

static bool skip(source *s, size_t bytes) {
    unsigned char chunk[CHUNK];
    if (!s->packed) {
        if (bytes > s->left) return fail_why(s, "it is cut off");
        s->at += bytes;
        s->left -= bytes;
        return true;
    }
    for (size_t n; bytes; bytes -= n) {
        n = bytes < sizeof chunk ? bytes : sizeof chunk;
        if (!unpack(s, chunk, n)) return false;
    }
    return true;
}

static uint32_t number(const source *s, const unsigned char *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return s->swap ? __builtin_bswap32(value) : value;
}

/* A tag, counted against what is left of the matrix around it. */
static bool take_tag(tag *t, source *s, uint64_t *room) {
    unsigned char raw[TAG];
    if (*room < TAG) return fail_why(s, "a matrix ends before its parts do");
    if (!take(s, raw, TAG)) return false;
    *room -= TAG;
    *t = (tag){.type = number(s, raw), .bytes = number(s, raw + 4)};
    if (t->type >> 16) {
        t->small = true;
        t->bytes = t->type >> 16;
        t->type &= 0xffff;
        memcpy(t->data, raw + 4, 4);
        return t->bytes <= 4 || fail_why(s, "a small part has more than four bytes");
    }
    t->padding = (8 - t->bytes % 8) % 8;
    if ((uint64_t)t->bytes + t->padding > *room)
        return fail_why(s, "a matrix ends before its parts do");
    *room -= (uint64_t)t->bytes + t->padding;
    return true;
}

static bool take_data(void *to, source *s, const tag *t) {
    if (t->small) return memcpy(to, t->data, t->bytes), true;
    return take(s, to, t->bytes) && skip(s, t->padding);
}

static bool skip_data(source *s, const tag *t) {
    return t->small || skip(s, (size_t)t->bytes + t->padding);
}

/* Bytes of one number of a part, 0 where the type is none of numbers. */
static uint32_t width_of(uint32_t type) {
    static const uint32_t width[] = {0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8};
    return type < sizeof width / sizeof *width ? width[type] : 0;
}

/* A part of `count` numbers at least, exactly so many where `exact`. */
static bool check_part(source *s, uint64_t *room, uint64_t count, bool exact) {
    tag t;
    if (!take_tag(&t, s, room)) return false;
    uint32_t width = width_of(t.type);
    uint64_t has = width ? t.bytes / width : 0;
    if (has < count || (exact && has != count) || (!width && t.bytes))
        return fail_why(s, "a matrix holds another count of numbers than its sizes say");
    return skip_data(s, &t);
}

static bool take_sizes(uint64_t *count, uint32_t *columns, source *s, uint64_t *room) {
    unsigned char raw[4 * RANK];
    tag t;
    if (!take_tag(&t, s, room)) return false;
    if (t.bytes > sizeof raw || t.bytes < 8) return fail_why(s, "a matrix has no sizes");
    if (!take_data(raw, s, &t)) return false;
    *count = 1;
    for (uint32_t i = 0; i + 4 <= t.bytes; i += 4) {
        uint64_t dim = number(s, raw + i);
        if (dim && *count > UINT64_MAX / 16 / dim) return fail_why(s, "a matrix is too large");
        *count *= dim;
    }
    *columns = number(s, raw + 4);
    return true;
}

/* Numbers are in memory as doubles at most. */
static bool check_size(source *s, double bytes) {
    if (bytes <= s->limit) return true;
    s->wanted = bytes;
    return false;
}

/* What follows the tag of a matrix, `bytes` of it. */
static bool walk_matrix(source *s, uint64_t bytes) {
    unsigned char flags[8];
    uint64_t room = bytes, count;
    uint32_t columns;
    tag t;
    if (room == 0) return true; /* an empty array has nothing but its tag */
    if (!check_size(s, (double)bytes)) return false;
    if (!take_tag(&t, s, &room)) return false;
    if (t.bytes != 8 || t.small) return fail_why(s, "a matrix has no flags");
    if (!take_data(flags, s, &t) || !take_sizes(&count, &columns, s, &room)) return false;
    if (!take_tag(&t, s, &room) || !skip_data(s, &t)) return false; /* the name */
    uint32_t class = number(s, flags) & 0xff;
    if (class == SPARSE) {
        if (!check_part(s, &room, 0, false) || !check_part(s, &room, (uint64_t)columns + 1, true))
            return false;
    } else if (class >= DOUBLE && class <= LAST_NUMERIC) {
        if (!check_size(s, 8 * (double)count) || !check_part(s, &room, count, true)) return false;
    }
    return skip(s, (size_t)room); /* values of sparse ones, imaginary parts, cells, fields */
}

static bool walk_packed(source *s, size_t bytes) {
    source inner = {.packed = true, .swap = s->swap, .limit = s->limit};
    unsigned char raw[TAG], beyond[8];
    inner.z.next_in = (Bytef *)(uintptr_t)s->at;
    inner.z.avail_in = (uInt)bytes;
    if (inflateInit(&inner.z) != Z_OK) return fail_why(s, "out of memory to unpack it");
    bool good = take(&inner, raw, TAG) &&
                (number(s, raw) == MATRIX || fail_why(&inner, "a variable is no matrix")) &&
                walk_matrix(&inner, number(s, raw + 4));
    /* the checksum comes last, perhaps behind padding */
    int code = Z_OK;
    while (good && code == Z_OK) {
        inner.z.next_out = beyond;
        inner.z.avail_out = sizeof beyond;
        code = inflate(&inner.z, Z_FINISH);
        if (code == Z_BUF_ERROR && inner.z.avail_out == 0) code = Z_OK;
    }
    if (good && code != Z_STREAM_END)
        good = fail_why(&inner, "a variable does not unpack to its end");
    inflateEnd(&inner.z);
    s->why = inner.why;
    s->wanted = inner.wanted;
    return good && skip(s, bytes);
}

static bool walk(source *s) {
    while (s->left) {
        unsigned char raw[TAG];
        if (!take(s, raw, TAG)) return false;
        uint32_t type = number(s, raw), bytes = number(s, raw + 4);
        if (type != COMPRESSED && type != MATRIX) return fail_why(s, "it has an unknown element");
        if (bytes > s->left) return fail_why(s, "it is cut off");
        if (!(type == COMPRESSED ? walk_packed(s, bytes) : walk_matrix(s, bytes))) return false;
    }
    return true;
}

basin_status basin_mat_frame_check(const void *data, size_t size, size_t limit, const char *path,
                                   basin_error *error) {
    const unsigned char *bytes = data;
    if (size < HEADER) return basin_fail(error, BASIN_BAD_FILE, "%s: it is cut off", path);
    uint16_t one = 1, little;
    memcpy(&little, "\1", 2);
    bool same = !memcmp(bytes + 126, one == little ? "IM" : "MI", 2);
    uint32_t version = bytes[126] == 'I' ? bytes[125] : bytes[124];
    if (version != 1) return BASIN_OK; /* 7.3 is HDF5, which knows its own size */
    source s = {.at = bytes + HEADER,
                .left = size - HEADER,
                .swap = !same,
                .limit = (double)(limit ? limit : basin_memory_share())};
    if (walk(&s)) return BASIN_OK;
    if (s.wanted > 0)
        return basin_memory_check(s.wanted, (size_t)s.limit, path, BASIN_NO_MEMORY, error);
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s", path, s.why);
}
