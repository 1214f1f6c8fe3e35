/* Networks in MATLAB files of version 5 (what MATLAB's save -v7 and scipy.io.savemat write), in
 * CARE-GNN's layout of Amazon and YelpChi:
 *
 *     homo, net_upu, net_usu, ...   sparse [N, N], a relation each ("homo", "upu", "usu")
 *     features                      sparse or dense [N, F]
 *     label                         [1, N] or [N, 1]
 *
 * Also Network, Attributes and Label of other sets. An entry (i, j) of a matrix is an edge i -> j.
 * Stored zeros are no edges.
 *
 * A file is a list of elements, a tag (type and bytes) and data each: matrices, or matrices packed
 * by zlib. A matrix is elements again: flags, sizes, name, then of a sparse one rows, starts of
 * columns and values, of a dense one its numbers, column after column, in the narrowest type that
 * holds them. */
#include <inttypes.h>
#include <strings.h>
#include <zlib.h>

#include "base/try.h"
#include "data/network/network.h"

enum { HEADER = 128, TAG = 8, COMPRESSED = 15, MATRIX = 14, RANK = 32, NAME = 200 };
enum { SPARSE = 5, DOUBLE = 6, LAST_NUMERIC = 15, COMPLEX = 1 << 11 };

/* ---- elements ---- */

typedef struct file {
    const char *path;
    bool swap; /* numbers lie in the other byte order */
    size_t limit;
    basin_error *error;
} file;

typedef struct bytes {
    const unsigned char *at;
    size_t left;
} bytes;

/* Numbers of one type, as an element has them. */
typedef struct numbers {
    uint32_t type;
    uint64_t count;
    const unsigned char *at;
    bool swap;
} numbers;

typedef struct matrix {
    char name[NAME];
    uint32_t flags, class;
    uint64_t rows, columns; /* 0, 0 where it has more than two sizes */
    numbers row, start;     /* of a sparse matrix: [entries], [columns + 1] */
    numbers value;
} matrix;

static basin_status bad(const file *f, const char *what) {
    return basin_fail(f->error, BASIN_BAD_FILE, "%s: %s", f->path, what);
}

static basin_status bad_matrix(const file *f, const matrix *m, const char *what) {
    return basin_fail(f->error, BASIN_BAD_FILE, "%s: %s [%" PRIu64 ", %" PRIu64 "] %s", f->path,
                      m->name, m->rows, m->columns, what);
}

static uint32_t number(const file *f, const unsigned char *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return f->swap ? __builtin_bswap32(value) : value;
}

/* Bytes of one number, 0 where the type is none of numbers. */
static uint32_t width_of(uint32_t type) {
    static const uint8_t width[] = {0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8};
    return type < sizeof width ? width[type] : 0;
}

static double at(const numbers *n, uint64_t i) {
    union {
        unsigned char raw[8];
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        float f32;
        double f64;
        int64_t i64;
        uint64_t u64;
    } v;
    uint32_t width = width_of(n->type);
    for (uint32_t k = 0; k < width; k++)
        v.raw[k] = n->at[i * width + (n->swap ? width - 1 - k : k)];
    switch (n->type) {
    case 1: return (int8_t)v.raw[0];
    case 2: return v.raw[0];
    case 3: return v.i16;
    case 4: return v.u16;
    case 5: return v.i32;
    case 6: return v.u32;
    case 7: return (double)v.f32;
    case 9: return v.f64;
    case 12: return (double)v.i64;
    default: return (double)v.u64;
    }
}

/* The next element of a matrix; one of at most four bytes may lie in its tag. */
static basin_status take(numbers *n, const file *f, bytes *in) {
    if (in->left < TAG) return bad(f, "a matrix ends before its parts do");
    uint32_t type = number(f, in->at), size = number(f, in->at + 4), small = type >> 16;
    if (small > 4) return bad(f, "a small part has more than four bytes");
    uint64_t whole = small ? TAG : TAG + (uint64_t)size + (8 - size % 8) % 8;
    if (whole > in->left) return bad(f, "a matrix ends before its parts do");
    *n = (numbers){small ? type & 0xffff : type, 0, in->at + (small ? 4 : TAG), f->swap};
    uint32_t width = width_of(n->type);
    n->count = (small ? small : size) / (width ? width : 1);
    in->at += whole, in->left -= whole;
    return BASIN_OK;
}

static basin_status take_numbers(numbers *n, const file *f, bytes *in, uint64_t least, bool exact) {
    BASIN_TRY(take(n, f, in));
    if (n->count >= least && !(exact && n->count != least) && (width_of(n->type) || !n->count))
        return BASIN_OK;
    return bad(f, "a matrix holds another count of numbers than its sizes say");
}

static basin_status take_sizes(matrix *m, uint64_t *count, const file *f, bytes *in) {
    numbers sizes;
    BASIN_TRY(take(&sizes, f, in));
    if (width_of(sizes.type) != 4 || sizes.count < 2 || sizes.count > RANK)
        return bad(f, "a matrix has no sizes");
    *count = 1;
    for (uint64_t i = 0; i < sizes.count; i++) {
        uint64_t dim = number(f, sizes.at + 4 * i);
        if (dim && *count > UINT64_MAX / 16 / dim) return bad(f, "a matrix is too large");
        *count *= dim;
    }
    m->columns = number(f, sizes.at + 4);
    m->rows = number(f, sizes.at);
    if (sizes.count > 2) m->rows = m->columns = 0;
    return BASIN_OK;
}

static basin_status read_matrix(matrix *m, const file *f, bytes in) {
    numbers part;
    uint64_t count;
    BASIN_TRY(take(&part, f, &in));
    if (width_of(part.type) != 4 || part.count != 2) return bad(f, "a matrix has no flags");
    m->flags = number(f, part.at), m->class = m->flags & 0xff;
    BASIN_TRY(take_sizes(m, &count, f, &in));
    BASIN_TRY(take(&part, f, &in));
    size_t length = part.count < NAME ? part.count : 0; /* a longer name is none of ours */
    memcpy(m->name, part.at, length);
    m->name[length] = 0;
    if (m->class == SPARSE) {
        BASIN_TRY(take_numbers(&m->row, f, &in, 0, false));
        BASIN_TRY(take_numbers(&m->start, f, &in, m->columns + 1, true));
        return in.left ? take_numbers(&m->value, f, &in, 0, false) : BASIN_OK;
    }
    if (m->class < DOUBLE || m->class > LAST_NUMERIC) return BASIN_OK;
    BASIN_TRY(basin_memory_check(8 * (double)count, f->limit, f->path, BASIN_NO_MEMORY, f->error));
    return take_numbers(&m->value, f, &in, count, true);
}

/* ---- packed matrices ---- */

static bool inflate_to(z_stream *z, unsigned char *to, size_t size) {
    int code = Z_OK;
    for (z->next_out = to; size && code == Z_OK;) {
        uInt room = z->avail_out = size < UINT32_MAX ? (uInt)size : UINT32_MAX;
        code = inflate(z, Z_NO_FLUSH);
        size -= room - z->avail_out;
    }
    return !size;
}

/* Whether nothing but padding and the right checksum is left. */
static bool ends(z_stream *z) {
    unsigned char beyond[8];
    int code = Z_BUF_ERROR;
    do {
        z->next_out = beyond, z->avail_out = sizeof beyond;
        code = inflate(z, Z_FINISH);
    } while (code == Z_BUF_ERROR && !z->avail_out);
    return code == Z_STREAM_END;
}

static basin_status unpack_from(unsigned char **to, size_t *size, const file *f, z_stream *z) {
    unsigned char tag[TAG];
    if (!inflate_to(z, tag, TAG)) return bad(f, "a variable does not unpack to its end");
    if (number(f, tag) != MATRIX) return bad(f, "a variable is no matrix");
    *size = number(f, tag + 4);
    BASIN_TRY(basin_memory_check((double)*size, f->limit, f->path, BASIN_NO_MEMORY, f->error));
    BASIN_TRY(BASIN_NEW_RAW(to, *size, "a packed matrix", f->error));
    if (inflate_to(z, *to, *size) && ends(z)) return BASIN_OK;
    return bad(f, "a variable does not unpack to its end");
}

/* What follows the tag of the matrix; free it. */
static basin_status unpack(unsigned char **to, size_t *size, const file *f, bytes in) {
    z_stream z = {.next_in = (Bytef *)(uintptr_t)in.at, .avail_in = (uInt)in.left};
    if (inflateInit(&z) != Z_OK) return basin_fail_memory(f->error, "a packed matrix");
    basin_status status = unpack_from(to, size, f, &z);
    inflateEnd(&z);
    return status;
}

/* ---- what a matrix is to a network, by its name ---- */

typedef enum role { OTHER, RELATION, FEATURES, LABELS } role;

static bool one_of(const char *name, const char *const *list) {
    for (; *list; list++)
        if (!strcasecmp(name, *list)) return true;
    return false;
}

static role role_of(const char **relation, const char *name) {
    static const char *const whole[] = {"homo", "network", "adj", "adjacency", "A", NULL};
    static const char *const features[] = {"features", "feature", "attributes", "attr", "X", NULL};
    static const char *const labels[] = {"label", "labels", "gnd", "y", NULL};
    *relation = NULL;
    if (!strncmp(name, "net_", 4) && name[4]) *relation = name + 4;
    if (one_of(name, whole)) *relation = "homo";
    return *relation                ? RELATION
           : one_of(name, features) ? FEATURES
           : one_of(name, labels)   ? LABELS
                                    : OTHER;
}

/* Everything about a sparse matrix that is relied on below. */
static basin_status check_sparse(const file *f, const matrix *m) {
    double entries = at(&m->start, m->columns);
    if (m->flags & COMPLEX) return bad_matrix(f, m, "holds complex numbers, wanted real ones");
    if (at(&m->start, 0) != 0 || !(entries <= (double)m->row.count))
        return bad_matrix(f, m, "has columns that lie outside of its entries");
    for (uint64_t j = 0; j < m->columns; j++)
        if (!(at(&m->start, j) <= at(&m->start, j + 1)))
            return bad_matrix(f, m, "has a column that ends before it begins");
    for (uint64_t e = 0; e < (uint64_t)entries; e++)
        if (!(at(&m->row, e) >= 0 && at(&m->row, e) < (double)m->rows))
            return bad_matrix(f, m, "has an entry in a row beyond its last");
    if (m->value.count && !(entries <= (double)m->value.count))
        return bad_matrix(f, m, "has fewer values than entries");
    return BASIN_OK;
}

/* The value of an entry; a matrix without values has ones. */
static double value_at(const matrix *m, uint64_t e) {
    return e < m->value.count ? at(&m->value, e) : 1;
}

static basin_status add_relation(basin_network *n, const file *f, const matrix *m, const char *name,
                                 const basin_network_options *o) {
    BASIN_FREE_AT_EXIT int32_t *pair = NULL;
    int64_t count = 0, nodes = n->nodes;
    if (m->class != SPARSE) return bad_matrix(f, m, "is not sparse, as edges must be");
    BASIN_TRY(check_sparse(f, m));
    if ((int64_t)m->rows != nodes || (int64_t)m->columns != nodes) {
        char wanted[80];
        snprintf(wanted, sizeof wanted, "joins other nodes, wanted [%" PRId64 ", %" PRId64 "]",
                 nodes, nodes);
        return bad_matrix(f, m, wanted);
    }
    uint64_t entries = (uint64_t)at(&m->start, m->columns);
    BASIN_TRY(BASIN_NEW_RAW(&pair, 2 * entries, "edges", f->error));
    for (uint64_t j = 0, e = 0; j < m->columns; j++)
        for (uint64_t end = (uint64_t)at(&m->start, j + 1); e < end; e++) {
            if (value_at(m, e) == 0) continue;
            pair[2 * count] = (int32_t)at(&m->row, e);
            pair[2 * count++ + 1] = (int32_t)j;
        }
    basin_edges edges = {pair, pair + 1, BASIN_I32, 2, count};
    return basin_network_add_relation(n, name, &edges, o, f->error);
}

static bool is_dense(const matrix *m) {
    return m->class >= DOUBLE && m->class <= LAST_NUMERIC && !(m->flags & COMPLEX);
}

static basin_status add_features(basin_network *n, const file *f, const matrix *m,
                                 const basin_network_options *o) {
    uint64_t N = (uint64_t)n->nodes, F = m->columns;
    if (m->rows != N) {
        char wanted[80];
        snprintf(wanted, sizeof wanted, "are no features, wanted [%" PRIu64 ", F]", N);
        return bad_matrix(f, m, wanted);
    }
    if (m->class != SPARSE && !is_dense(m))
        return bad_matrix(f, m, "does not hold plain real numbers");
    if (m->class == SPARSE) BASIN_TRY(check_sparse(f, m));
    if (n->feature) return bad(f, "it has features twice");
    BASIN_TRY(basin_network_alloc_features(n, (int64_t)F, o, f->error));
    if (m->class == SPARSE) memset(n->feature, 0, N * F * sizeof *n->feature);
    for (uint64_t j = 0, e = 0; j < F; j++) {
        uint64_t end = m->class == SPARSE ? (uint64_t)at(&m->start, j + 1) : (j + 1) * N;
        for (; e < end; e++) {
            uint64_t i = m->class == SPARSE ? (uint64_t)at(&m->row, e) : e - j * N;
            n->feature[i * F + j] = (float)value_at(m, e);
        }
    }
    return basin_network_fill_missing(n, o->missing, f->error);
}

static basin_status add_labels(basin_network *n, const file *f, const matrix *m,
                               const basin_network_options *o) {
    BASIN_FREE_AT_EXIT double *value = NULL;
    if (m->class == SPARSE) return bad_matrix(f, m, "is sparse, wanted plain labels");
    if (!is_dense(m)) return bad_matrix(f, m, "does not hold plain real numbers");
    BASIN_TRY(BASIN_NEW_RAW(&value, m->value.count, "labels", f->error));
    for (uint64_t i = 0; i < m->value.count; i++) value[i] = at(&m->value, i);
    basin_tensor y = basin_tensor_borrow(value, BASIN_F64, BASIN_SHAPE((int64_t)m->value.count));
    return basin_network_set_label_tensor(n, &y, o, f->error);
}

/* ---- the file ---- */

/* The nodes of the network: the first matrix with a role says how many; edges before others. */
typedef struct counting {
    uint64_t nodes;
    bool known, relations;
} counting;

static void count_nodes(counting *c, const matrix *m) {
    const char *relation;
    role what = role_of(&relation, m->name);
    if (what == OTHER) return;
    if (!c->known || (relation && !c->relations))
        c->nodes = what == LABELS && m->rows == 1 ? m->columns : m->rows;
    c->known = true;
    c->relations = c->relations || relation;
}

static basin_status convert(basin_network *n, const file *f, const matrix *m,
                            const basin_network_options *o) {
    const char *relation;
    switch (role_of(&relation, m->name)) {
    case RELATION: return add_relation(n, f, m, relation, o);
    case FEATURES: return add_features(n, f, m, o);
    case LABELS: return add_labels(n, f, m, o);
    default: return BASIN_OK;
    }
}

/* All matrices, one at a time, so that no more than one is unpacked: they are counted, or where
 * there is a network converted. */
static basin_status read_all(counting *c, basin_network *n, const file *f, bytes in,
                             const basin_network_options *o) {
    while (in.left) {
        if (in.left < TAG) return bad(f, "it is cut off");
        uint32_t type = number(f, in.at), size = number(f, in.at + 4);
        in.at += TAG, in.left -= TAG;
        if (type != COMPRESSED && type != MATRIX) return bad(f, "it has an unknown element");
        if (size > in.left) return bad(f, "it is cut off");
        BASIN_FREE_AT_EXIT unsigned char *unpacked = NULL;
        bytes element = {in.at, size};
        matrix m = {0};
        in.at += size, in.left -= size;
        if (type == COMPRESSED) {
            BASIN_TRY(unpack(&unpacked, &element.left, f, element));
            element.at = unpacked;
        }
        if (!element.left) continue; /* an empty array has nothing but its tag */
        BASIN_TRY(read_matrix(&m, f, element));
        if (n)
            BASIN_TRY(convert(n, f, &m, o));
        else
            count_nodes(c, &m);
    }
    return BASIN_OK;
}

bool basin_network_mat_is(const void *data, size_t size) {
    return size >= HEADER && !memcmp(data, "MATLAB ", 7);
}

basin_status basin_network_mat_read(basin_network **network, const void *data, size_t size,
                                    const char *path, const basin_network_options *options,
                                    basin_error *error) {
    const basin_network_options *o = basin_network_options_or(options);
    const unsigned char *head = data;
    const uint16_t order = 'M' << 8 | 'I'; /* written as a number by the machine that saved it */
    file f = {path, memcmp(head + 126, &order, 2) != 0,
              o->memory ? o->memory : basin_memory_share(), error};
    bytes in = {head + HEADER, size - HEADER};
    counting c = {0};
    *network = NULL;
    if ((head[126] == 'I' ? head[125] : head[124]) != 1)
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "%s: a MATLAB file of version 7.3 (HDF5), wanted version 5: save it again "
            "with -v7",
            path);
    BASIN_TRY(read_all(&c, NULL, &f, in, o));
    if (!c.relations) return bad(&f, "no edges are in it, wanted sparse matrices homo or net_NAME");
    BASIN_NETWORK_AT_EXIT basin_network *n = NULL;
    BASIN_TRY(basin_network_new(&n, path, (int64_t)c.nodes, error));
    BASIN_TRY(read_all(NULL, n, &f, in, o));
    *network = n, n = NULL;
    return BASIN_OK;
}
