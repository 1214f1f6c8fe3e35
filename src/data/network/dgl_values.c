/* Values of DGL files; see dgl_values.h. */
#include "data/network/dgl_values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/network.h"

#define MAGIC_CSR UINT64_C(0xdd6cd31205dff127)
#define MAGIC_COO UINT64_C(0xdd61ffd305dff127)
#define MAGIC_TENSOR UINT64_C(0xdd5e40f096b4a13f)

/* The whole numbers of a file lie in it as they lie here. */
const unsigned char *basin_dgl_take(basin_dgl_cursor *c, uint64_t bytes, const char *what) {
    if (c->status) return NULL;
    if (bytes > c->size - c->at) {
        c->status = basin_fail(c->error, BASIN_BAD_FILE,
                               "%s: cut off in %s: %" PRIu64 " bytes wanted at %zu of %zu", c->path,
                               what, bytes, c->at, c->size);
        return NULL;
    }
    const unsigned char *from = c->data + c->at;
    c->at += (size_t)bytes;
    return from;
}

uint64_t basin_dgl_u64(basin_dgl_cursor *c, const char *what) {
    uint64_t value = 0;
    const unsigned char *from = basin_dgl_take(c, sizeof value, what);
    if (from) memcpy(&value, from, sizeof value);
    return value;
}

void basin_dgl_magic(basin_dgl_cursor *c, uint64_t magic, const char *what) {
    size_t at = c->at;
    uint64_t found = basin_dgl_u64(c, what);
    if (!c->status && found != magic)
        c->status = basin_fail(c->error, BASIN_BAD_FILE,
                               "%s: %s at byte %zu begins with %" PRIx64 ", wanted %" PRIx64,
                               c->path, what, at, found, magic);
}

size_t basin_dgl_count(basin_dgl_cursor *c, uint64_t least, uint64_t most, const char *what) {
    uint64_t count = basin_dgl_u64(c, what);
    if (!c->status && (count > most || count > (c->size - c->at) / least))
        c->status = basin_fail(c->error, BASIN_BAD_FILE,
                               "%s: %" PRIu64 " %s, more than the file or this reader has room for",
                               c->path, count, what);
    return c->status ? 0 : (size_t)count;
}

void basin_dgl_name(basin_dgl_cursor *c, char *name, size_t room) {
    size_t length = basin_dgl_count(c, 1, room - 1, "bytes of a name");
    const unsigned char *from = basin_dgl_take(c, length, "a name");
    if (from && memchr(from, 0, length))
        c->status =
            basin_fail(c->error, BASIN_BAD_FILE, "%s: a name with a zero byte in it", c->path);
    if (c->status) length = 0;
    if (length) memcpy(name, from, length);
    name[length] = 0;
}

static bool find_type(basin_dtype *dtype, unsigned code, unsigned bits) {
    static const struct {
        unsigned code, bits;
        basin_dtype dtype;
    } type[] = {{0, 8, BASIN_I8},    {0, 16, BASIN_I16}, {0, 32, BASIN_I32}, {0, 64, BASIN_I64},
                {1, 8, BASIN_U8},    {2, 16, BASIN_F16}, {2, 32, BASIN_F32}, {2, 64, BASIN_F64},
                {4, 16, BASIN_BF16}, {6, 8, BASIN_BOOL}, {1, 1, BASIN_BOOL}};
    for (size_t i = 0; i < sizeof type / sizeof *type; i++)
        if (type[i].code == code && type[i].bits == bits) {
            *dtype = type[i].dtype;
            return true;
        }
    return false;
}

basin_tensor basin_dgl_tensor(basin_dgl_cursor *c, const char *what) {
    basin_tensor t = {.dtype = BASIN_U8, .shape = {.rank = 1}};
    basin_dgl_magic(c, MAGIC_TENSOR, what);
    (void)basin_dgl_take(c, 16, what); /* reserved, and the device, which is always the host */
    int32_t rank = 0;
    const unsigned char *from = basin_dgl_take(c, 8, what);
    if (from) memcpy(&rank, from, sizeof rank);
    bool known = from && find_type(&t.dtype, from[4], from[5]) && from[6] == 1 && from[7] == 0;
    if (from && (rank < 0 || rank > BASIN_MAX_RANK || !known))
        c->status =
            basin_fail(c->error, BASIN_BAD_FILE,
                       "%s: %s has %d axes of type %d with %d bits, which is not known here",
                       c->path, what, rank, from[4], from[5]);
    if (c->status) return t;
    t.shape.rank = rank;
    for (int i = 0; i < rank; i++) t.shape.dim[i] = (int64_t)basin_dgl_u64(c, what);
    uint64_t bytes = basin_dgl_u64(c, what);
    int64_t count = c->status ? 0 : basin_shape_count(t.shape);
    size_t wanted = 0;
    if (!c->status &&
        (count < 0 || !basin_size_multiply(&wanted, (size_t)count, basin_dtype_size(t.dtype)) ||
         wanted != bytes))
        c->status = basin_fail(c->error, BASIN_BAD_FILE,
                               "%s: %s has %" PRIu64 " bytes, which its shape does not account for",
                               c->path, what, bytes);
    t.data = (void *)(uintptr_t)basin_dgl_take(c, bytes, what);
    if (c->status) t.shape = (basin_shape){1, {0}};
    return t;
}

basin_status basin_dgl_align(basin_tensor *to, const basin_tensor *from, basin_error *error) {
    basin_status status = basin_tensor_new(to, from->dtype, from->shape, error);
    size_t bytes = status ? 0 : basin_tensor_bytes(to);
    if (bytes) memcpy(to->data, from->data, bytes);
    return status;
}

/* ---- matrices ---- */

basin_dgl_matrix basin_dgl_take_matrix(basin_dgl_cursor *c, int form) {
    basin_dgl_matrix m = {.form = form};
    basin_dgl_magic(c, form == BASIN_DGL_COO ? MAGIC_COO : MAGIC_CSR, "a matrix");
    m.columns = basin_dgl_u64(c, "a matrix");
    m.rows = basin_dgl_u64(c, "a matrix");
    m.first = basin_dgl_tensor(c, "a matrix");
    m.second = basin_dgl_tensor(c, "a matrix");
    m.number = basin_dgl_tensor(c, "a matrix");
    (void)basin_dgl_take(c, form == BASIN_DGL_COO ? 2 : 1, "a matrix"); /* whether it is sorted */
    if (c->status) return m;
    bool whole = (m.first.dtype == BASIN_I64 || m.first.dtype == BASIN_I32) &&
                 m.second.dtype == m.first.dtype && m.first.shape.rank == 1 &&
                 m.second.shape.rank == 1;
    int64_t wanted = form == BASIN_DGL_COO          ? m.second.shape.dim[0]
                     : m.rows < BASIN_NETWORK_NODES ? (int64_t)m.rows + 1
                                                    : -1;
    if (!whole || m.first.shape.dim[0] != wanted)
        c->status = basin_fail(c->error, BASIN_BAD_FILE,
                               "%s: the edges of a relation are %" PRId64 " and %" PRId64
                               " numbers of type %s and %s, which do not fit each other",
                               c->path, m.first.shape.dim[0], m.second.shape.dim[0],
                               basin_dtype_name(m.first.dtype), basin_dtype_name(m.second.dtype));
    return m;
}

int64_t basin_dgl_whole(const basin_tensor *t, int64_t i) {
    return basin_whole_at(t->data, t->dtype, i);
}

int32_t *basin_dgl_rows(basin_dgl_cursor *c, const basin_dgl_matrix *m) {
    int64_t entries = m->second.shape.dim[0], at = 0;
    int32_t *row = basin_array_new((size_t)entries, sizeof *row);
    if (!row) {
        c->status = basin_fail(c->error, BASIN_NO_MEMORY, "%s: out of memory for %" PRId64 " edges",
                               c->path, entries);
        return NULL;
    }
    for (uint64_t i = 0; i < m->rows; i++) {
        int64_t begin = basin_dgl_whole(&m->first, (int64_t)i),
                end = basin_dgl_whole(&m->first, (int64_t)i + 1);
        if (begin != at || end < begin || end > entries) {
            c->status = basin_fail(c->error, BASIN_BAD_FILE,
                                   "%s: row %" PRIu64 " of a relation runs from %" PRId64
                                   " to %" PRId64 " of %" PRId64 " edges",
                                   c->path, i, begin, end, entries);
            free(row);
            return NULL;
        }
        while (at < end) row[at++] = (int32_t)i;
    }
    if (at == entries) return row;
    c->status = basin_fail(c->error, BASIN_BAD_FILE,
                           "%s: the rows of a relation hold %" PRId64 " of its %" PRId64 " edges",
                           c->path, at, entries);
    free(row);
    return NULL;
}
