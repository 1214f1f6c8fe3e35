/* Networks in MATLAB files (v5 and v7.3, through matio), in CARE-GNN's layout of Amazon and
 * YelpChi:
 *
 *     homo, net_upu, net_usu, ...   sparse [N, N], a relation each ("homo", "upu", "usu")
 *     features                      sparse or dense [N, F]
 *     label                         [1, N] or [N, 1]
 *
 * Also Network, Attributes and Label of other sets. An entry (i, j) of a matrix is an edge i -> j.
 * Stored zeros are no edges. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/library.h"
#include "base/memory.h"
#include "base/try.h"
#include "data/network/mat.h"

/* ---- the frame ---- */

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

/* ---- the numbers ---- */

bool basin_network_mat_is(const void *data, size_t size) {
    return size >= 128 && !memcmp(data, "MATLAB ", 7);
}

static bool one_of(const char *name, const char *const *list) {
    for (; *list; list++)
        if (!strcasecmp(name, *list)) return true;
    return false;
}

basin_mat_role basin_mat_role_of(const char **relation, const char *name) {
    static const char *const whole[] = {"homo", "network", "adj", "adjacency", "A", NULL};
    static const char *const features[] = {"features", "feature", "attributes", "attr", "X", NULL};
    static const char *const labels[] = {"label", "labels", "gnd", "y", NULL};
    *relation = NULL;
    if (!name) return BASIN_MAT_OTHER;
    if (!strncmp(name, "net_", 4) && name[4]) *relation = name + 4;
    if (one_of(name, whole)) *relation = "homo";
    if (*relation) return BASIN_MAT_RELATION;
    if (one_of(name, features)) return BASIN_MAT_FEATURES;
    return one_of(name, labels) ? BASIN_MAT_LABELS : BASIN_MAT_OTHER;
}

static bool is_matrix(const matvar_t *v) {
    return v->rank == 2 && v->dims && v->dims[0] <= INT32_MAX && v->dims[1] <= INT32_MAX &&
           v->data && !v->isComplex;
}

int64_t basin_mat_nodes(const matvar_t *variable, basin_mat_role role) {
    if (variable->rank != 2 || !variable->dims || role == BASIN_MAT_OTHER) return -1;
    size_t rows = variable->dims[0], columns = variable->dims[1];
    size_t nodes = role == BASIN_MAT_LABELS && rows == 1 ? columns : rows;
    return nodes > INT32_MAX ? -1 : (int64_t)nodes;
}

static bool find_type(basin_dtype *dtype, enum matio_types type) {
    switch (type) {
    case MAT_T_DOUBLE: *dtype = BASIN_F64; return true;
    case MAT_T_SINGLE: *dtype = BASIN_F32; return true;
    case MAT_T_INT8: *dtype = BASIN_I8; return true;
    case MAT_T_UINT8: *dtype = BASIN_U8; return true;
    case MAT_T_INT16: *dtype = BASIN_I16; return true;
    case MAT_T_INT32: *dtype = BASIN_I32; return true;
    case MAT_T_INT64: *dtype = BASIN_I64; return true;
    default: return false;
    }
}

static basin_status bad(const basin_network *n, const matvar_t *v, const char *what,
                        basin_error *error) {
    size_t rows = v->rank > 0 && v->dims ? v->dims[0] : 0;
    size_t columns = v->rank > 1 && v->dims ? v->dims[1] : 0;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s [%zu, %zu] %s", n->path, v->name, rows,
                      columns, what);
}

/* ---- sparse matrices ---- */

/* Everything about a sparse matrix that later code relies on. */
static basin_status check_sparse(const basin_network *n, const matvar_t *v, int64_t *entries,
                                 basin_error *error) {
    const mat_sparse_t *s = v->data;
    if (!is_matrix(v) || (size_t)s->njc != v->dims[1] + 1 || !s->jc || (s->nir > 0 && !s->ir))
        return bad(n, v, "is not a sparse matrix with a start for each column", error);
    uint64_t count = s->jc[s->njc - 1];
    if (s->jc[0] != 0 || count > s->nir)
        return bad(n, v, "has columns that lie outside of its entries", error);
    for (size_t j = 0; j < v->dims[1]; j++)
        if (s->jc[j] > s->jc[j + 1])
            return bad(n, v, "has a column that ends before it begins", error);
    for (uint64_t e = 0; e < count; e++)
        if (s->ir[e] >= v->dims[0])
            return bad(n, v, "has an entry in a row beyond its last", error);
    *entries = (int64_t)count;
    return BASIN_OK;
}

/* The values as a tensor; false where there are none, and all entries count as 1. */
static bool sparse_values(basin_tensor *values, const matvar_t *v, int64_t entries) {
    const mat_sparse_t *s = v->data;
    basin_dtype dtype = BASIN_U8;
    bool known = find_type(&dtype, v->data_type);
    if (!s->data || !known || (int64_t)s->ndata < entries) return false;
    *values = basin_tensor_borrow(s->data, dtype, BASIN_SHAPE(entries));
    return true;
}

static basin_status add_relation(basin_network *n, const matvar_t *v, const char *name,
                                 const basin_network_options *o, basin_error *error) {
    const mat_sparse_t *s = v->data;
    int64_t entries, count = 0;
    if (v->class_type != MAT_C_SPARSE) return bad(n, v, "is not sparse, as edges must be", error);
    BASIN_TRY(check_sparse(n, v, &entries, error));
    if ((int64_t)v->dims[0] != n->nodes || (int64_t)v->dims[1] != n->nodes) {
        char wanted[80];
        snprintf(wanted, sizeof wanted, "joins other nodes, wanted [%" PRId64 ", %" PRId64 "]",
                 n->nodes, n->nodes);
        return bad(n, v, wanted, error);
    }
    size_t room;
    BASIN_FREE_AT_EXIT int32_t *pair =
        basin_size_multiply(&room, (size_t)entries, 2) ? basin_array_new(room, sizeof *pair) : NULL;
    if (!pair)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for %" PRId64 " edges of %s",
                          n->path, entries, v->name);
    basin_tensor value;
    bool valued = sparse_values(&value, v, entries);
    for (size_t j = 0; j < v->dims[1]; j++)
        for (int64_t e = s->jc[j]; e < (int64_t)s->jc[j + 1]; e++) {
            if (valued && basin_tensor_at(&value, e) == 0) continue;
            pair[2 * count] = (int32_t)s->ir[e];
            pair[2 * count++ + 1] = (int32_t)j;
        }
    basin_edges edges = {pair, pair + 1, BASIN_I32, 2, count};
    return basin_network_add_relation(n, name, &edges, o, error);
}

static basin_status sparse_features(basin_network *n, const matvar_t *v,
                                    const basin_network_options *o, basin_error *error) {
    const mat_sparse_t *s = v->data;
    int64_t entries;
    basin_tensor value;
    BASIN_TRY(check_sparse(n, v, &entries, error));
    bool valued = sparse_values(&value, v, entries);
    BASIN_TRY(basin_network_alloc_features(n, (int64_t)v->dims[1], o, error));
    memset(n->feature, 0, (size_t)(n->nodes * n->features) * sizeof *n->feature);
    for (size_t j = 0; j < v->dims[1]; j++)
        for (int64_t e = s->jc[j]; e < (int64_t)s->jc[j + 1]; e++)
            n->feature[(int64_t)s->ir[e] * n->features + (int64_t)j] =
                valued ? (float)basin_tensor_at(&value, e) : 1;
    return BASIN_OK;
}

/* ---- dense matrices ---- */

/* The numbers of a dense matrix as one row of them, column after column. */
static basin_status dense_values(basin_tensor *values, const basin_network *n, const matvar_t *v,
                                 basin_error *error) {
    basin_dtype dtype;
    size_t count, bytes;
    if (!is_matrix(v) || v->class_type == MAT_C_CELL || v->class_type == MAT_C_STRUCT ||
        !find_type(&dtype, v->data_type))
        return bad(n, v, "does not hold plain real numbers", error);
    if (!basin_size_multiply(&count, v->dims[0], v->dims[1]) ||
        !basin_size_multiply(&bytes, count, basin_dtype_size(dtype)) || v->nbytes < bytes)
        return bad(n, v, "holds fewer numbers than that", error);
    *values = basin_tensor_borrow(v->data, dtype, BASIN_SHAPE((int64_t)count));
    return BASIN_OK;
}

static basin_status dense_features(basin_network *n, const matvar_t *v,
                                   const basin_network_options *o, basin_error *error) {
    basin_tensor value;
    BASIN_TRY(dense_values(&value, n, v, error));
    BASIN_TRY(basin_network_alloc_features(n, (int64_t)v->dims[1], o, error));
    for (int64_t i = 0; i < n->nodes; i++)
        for (int64_t f = 0; f < n->features; f++)
            n->feature[i * n->features + f] = (float)basin_tensor_at(&value, f * n->nodes + i);
    return BASIN_OK;
}

static basin_status add_features(basin_network *n, const matvar_t *v,
                                 const basin_network_options *o, basin_error *error) {
    if (!is_matrix(v) || (int64_t)v->dims[0] != n->nodes) {
        char wanted[80];
        snprintf(wanted, sizeof wanted, "are no features, wanted [%" PRId64 ", F]", n->nodes);
        return bad(n, v, wanted, error);
    }
    BASIN_TRY(v->class_type == MAT_C_SPARSE ? sparse_features(n, v, o, error)
                                            : dense_features(n, v, o, error));
    return basin_network_fill_missing(n, o->missing, error);
}

static basin_status add_labels(basin_network *n, const matvar_t *v, const basin_network_options *o,
                               basin_error *error) {
    basin_tensor value;
    if (v->class_type == MAT_C_SPARSE) return bad(n, v, "is sparse, wanted plain labels", error);
    BASIN_TRY(dense_values(&value, n, v, error));
    return basin_network_set_label_tensor(n, &value, o, error);
}

basin_status basin_mat_convert(basin_network *network, const matvar_t *variable,
                               const basin_network_options *options, basin_error *error) {
    const basin_network_options *o = basin_network_options_or(options);
    const char *relation;
    switch (basin_mat_role_of(&relation, variable->name)) {
    case BASIN_MAT_RELATION: return add_relation(network, variable, relation, o, error);
    case BASIN_MAT_FEATURES: return add_features(network, variable, o, error);
    case BASIN_MAT_LABELS: return add_labels(network, variable, o, error);
    default: return BASIN_OK;
    }
}

/* ---- the file ---- */

#define MATIO_FUNCTIONS(X)                                                                         \
    X(Mat_Open)                                                                                    \
    X(Mat_Close)                                                                                   \
    X(Mat_Rewind)                                                                                  \
    X(Mat_VarFree)                                                                                 \
    X(Mat_VarReadNextInfo)                                                                         \
    X(Mat_VarReadDataAll)

/* A file that is read, with matio's functions. */
typedef struct mat_reader {
    MATIO_FUNCTIONS(BASIN_LIBRARY_FIELD)
    mat_t *file;
} mat_reader;
static const basin_library_function matio_functions[] = {MATIO_FUNCTIONS(BASIN_LIBRARY_NAME){0}};

/* HDF5, on which matio stands, prints pages about a damaged file unless it is told not to. It is
 * matio's dependency, not ours, so its functions are looked up where it is loaded. */
typedef struct quiet {
    int (*set)(int64_t stack, void *function, void *data);
    int (*get)(int64_t stack, void **function, void **data);
    void *function, *data;
} quiet;

static quiet hush(void) {
    quiet q = {0};
    void *set = basin_library_find(BASIN_LIBRARY_MATIO, "H5Eset_auto2");
    void *get = basin_library_find(BASIN_LIBRARY_MATIO, "H5Eget_auto2");
    if (!set || !get) return q;
    memcpy(&q.set, &set, sizeof set);
    memcpy(&q.get, &get, sizeof get);
    (void)q.get(0, &q.function, &q.data);
    (void)q.set(0, NULL, NULL);
    return q;
}

static void unhush(const quiet *q) {
    if (q->set) (void)q->set(0, q->function, q->data);
}

/* The first variable with a role says how many nodes there are; edges before others. */
static basin_status count_nodes(int64_t *nodes, const mat_reader *m, const char *path,
                                basin_error *error) {
    bool relations = false;
    *nodes = -1;
    for (matvar_t *v; (v = m->Mat_VarReadNextInfo(m->file)); m->Mat_VarFree(v)) {
        const char *relation;
        basin_mat_role role = basin_mat_role_of(&relation, v->name);
        int64_t count = basin_mat_nodes(v, role);
        if (count >= 0 && (*nodes < 0 || (relation && !relations))) *nodes = count;
        relations = relations || relation;
    }
    m->Mat_Rewind(m->file);
    if (relations) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: no edges are in it (or it is cut off), wanted sparse matrices homo or "
                      "net_NAME",
                      path);
}

/* One variable at a time, so that no more than it is in memory beside the network. */
static basin_status convert_all(basin_network *n, const mat_reader *m,
                                const basin_network_options *o, basin_error *error) {
    basin_status status = BASIN_OK;
    for (matvar_t *info; !status && (info = m->Mat_VarReadNextInfo(m->file));
         m->Mat_VarFree(info)) {
        const char *relation;
        if (basin_mat_role_of(&relation, info->name) == BASIN_MAT_OTHER) continue;
        if (m->Mat_VarReadDataAll(m->file, info) != 0)
            status = basin_fail(error, BASIN_BAD_FILE, "%s: %s cannot be read; is the file whole?",
                                n->path, info->name);
        else
            status = basin_mat_convert(n, info, o, error);
    }
    return status;
}

static basin_status read_file(basin_network **network, const char *path,
                              const basin_network_options *o, basin_error *error) {
    int64_t nodes;
    mat_reader m = {0};
    basin_status status = basin_library_load(&m, BASIN_LIBRARY_MATIO, matio_functions, error);
    if (status) return status;
    m.file = m.Mat_Open(path, MAT_ACC_RDONLY);
    if (!m.file)
        return basin_fail(error, BASIN_BAD_FILE, "%s: not a MATLAB file that can be read", path);
    status = count_nodes(&nodes, &m, path, error);
    if (!status) status = basin_network_new(network, path, nodes, error);
    if (!status) status = convert_all(*network, &m, o, error);
    m.Mat_Close(m.file);
    return status;
}

basin_status basin_network_mat_read(basin_network **network, const void *data, size_t size,
                                    const char *path, const basin_network_options *options,
                                    basin_error *error) {
    const basin_network_options *o = basin_network_options_or(options);
    *network = NULL;
    basin_status status = basin_mat_frame_check(data, size, o->memory, path, error);
    if (status) return status;
    quiet q = hush();
    status = read_file(network, path, o, error);
    unhush(&q);
    if (status) {
        basin_network_free(*network);
        *network = NULL;
    }
    return status;
}
