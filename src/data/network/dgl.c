/* Graphs as dgl.save_graphs writes them (format version 2), the form in which T-Finance and
 * T-Social are published. Little-endian throughout:
 *
 *     u64 magic, version, kind, graphs; zeros or rubbish up to byte 4096
 *     u64 where the graphs begin, then a dictionary of tensors that we skip
 *     a graph: u64 magic, the meta graph (which node types each relation joins), relations,
 *         vector of node counts, node tensors by type, edge tensors by relation, names of both
 *     a relation: u64 magic, two codes that say which forms are stored, then of each form its meta
 *         graph and the matrix: COO, CSR (rows are sources) or CSC (rows are targets)
 *     a tensor: u64 magic, reserved, device, rank, type; i64 shape, i64 bytes, data
 *     a vector or string: u64 count, entries
 *
 * Only the first graph of a file is read. Reading goes on with zeros after the first error, which
 * sticks in the cursor. Tensors are left where they lie; nothing in the file is aligned. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "data/network/network.h"

#define MAGIC_CSR UINT64_C(0xdd6cd31205dff127)
#define MAGIC_COO UINT64_C(0xdd61ffd305dff127)
#define MAGIC_TENSOR UINT64_C(0xdd5e40f096b4a13f)
#define MAGIC_FILE UINT64_C(0xdd2e4ff046b4a13f)
#define MAGIC_GRAPH UINT64_C(0xdd589fbe35224abf)
#define MAGIC_META UINT64_C(0xdd3c5ffe20046abf)
#define MAGIC_RELATION UINT64_C(0xdd2e60f0f6b4a127)

enum { COO = 1, CSR = 2, CSC = 4 };
enum { HEAD = 4096, MOST_TYPES = 128, NAME = 200 };

/* ---- values ---- */

typedef struct cursor {
    const unsigned char *data;
    size_t size, at;
    const char *path;
    basin_status status;
    basin_error *error;
} cursor;

/* Where nothing failed before and `bad`, fails with "PATH: " and the text. */
#define FAIL_IF(c, bad, format, ...)                                                               \
    do {                                                                                           \
        if (!(c)->status && (bad))                                                                 \
            (c)->status =                                                                          \
                basin_fail((c)->error, BASIN_BAD_FILE, "%s: " format, (c)->path, __VA_ARGS__);     \
    } while (0)

static const unsigned char *take(cursor *c, uint64_t bytes, const char *what) {
    FAIL_IF(c, bytes > c->size - c->at, "cut off in %s: %" PRIu64 " bytes wanted at %zu of %zu",
            what, bytes, c->at, c->size);
    if (c->status) return NULL;
    c->at += (size_t)bytes;
    return c->data + c->at - bytes;
}

/* The whole numbers of a file lie in it as they lie here. */
static uint64_t take_u64(cursor *c, const char *what) {
    uint64_t value = 0;
    const unsigned char *from = take(c, sizeof value, what);
    if (from) memcpy(&value, from, sizeof value);
    return value;
}

static void take_magic(cursor *c, uint64_t magic, const char *what) {
    size_t at = c->at;
    uint64_t found = take_u64(c, what);
    FAIL_IF(c, found != magic, "%s at byte %zu begins with %" PRIx64 ", wanted %" PRIx64, what, at,
            found, magic);
}

/* A count of entries that take `least` bytes each. */
static size_t take_count(cursor *c, uint64_t least, uint64_t most, const char *what) {
    uint64_t count = take_u64(c, what);
    FAIL_IF(c, count > most || count > (c->size - c->at) / least,
            "%" PRIu64 " %s, more than the file or this reader has room for", count, what);
    return c->status ? 0 : (size_t)count;
}

static void take_name(cursor *c, char name[NAME]) {
    size_t length = take_count(c, 1, NAME - 1, "bytes of a name");
    const unsigned char *from = take(c, length, "a name");
    FAIL_IF(c, from && memchr(from, 0, length), "a name with %s in it", "a zero byte");
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
        if (type[i].code == code && type[i].bits == bits) return *dtype = type[i].dtype, true;
    return false;
}

static basin_tensor take_tensor(cursor *c, const char *what) {
    basin_tensor none = {.dtype = BASIN_U8, .shape = {.rank = 1}}, t = none;
    take_magic(c, MAGIC_TENSOR, what);
    (void)take(c, 16, what); /* reserved, and the device, which is always the host */
    int32_t rank = 0;
    const unsigned char *from = take(c, 8, what);
    if (!from) return none;
    memcpy(&rank, from, sizeof rank);
    bool known = find_type(&t.dtype, from[4], from[5]) && from[6] == 1 && from[7] == 0;
    FAIL_IF(c, rank < 0 || rank > BASIN_MAX_RANK || !known,
            "%s has %d axes of type %d with %d bits, which is not known here", what, rank, from[4],
            from[5]);
    if (c->status) return none;
    t.shape.rank = rank;
    for (int i = 0; i < rank; i++) t.shape.dim[i] = (int64_t)take_u64(c, what);
    uint64_t bytes = take_u64(c, what);
    int64_t count = c->status ? 0 : basin_shape_count(t.shape);
    size_t wanted = 0;
    FAIL_IF(c,
            count < 0 || !basin_size_multiply(&wanted, (size_t)count, basin_dtype_size(t.dtype)) ||
                wanted != bytes,
            "%s has %" PRIu64 " bytes, which its shape does not account for", what, bytes);
    t.data = (void *)(uintptr_t)take(c, bytes, what);
    return c->status ? none : t;
}

/* ---- matrices ---- */

typedef struct matrix {
    int form;
    uint64_t rows, columns;
    basin_tensor first, second; /* COO: row, col; else starts, columns */
    basin_tensor number;        /* of each entry, or empty */
} matrix;

static matrix take_matrix(cursor *c, int form) {
    matrix m = {.form = form};
    take_magic(c, form == COO ? MAGIC_COO : MAGIC_CSR, "a matrix");
    m.columns = take_u64(c, "a matrix");
    m.rows = take_u64(c, "a matrix");
    m.first = take_tensor(c, "a matrix");
    m.second = take_tensor(c, "a matrix");
    m.number = take_tensor(c, "a matrix");
    (void)take(c, form == COO ? 2 : 1, "a matrix"); /* whether it is sorted */
    bool whole = (m.first.dtype == BASIN_I64 || m.first.dtype == BASIN_I32) &&
                 m.second.dtype == m.first.dtype && m.first.shape.rank == 1 &&
                 m.second.shape.rank == 1;
    int64_t wanted = form == COO                    ? m.second.shape.dim[0]
                     : m.rows < BASIN_NETWORK_NODES ? (int64_t)m.rows + 1
                                                    : -1;
    FAIL_IF(c, !whole || m.first.shape.dim[0] != wanted,
            "the edges of a relation are %" PRId64 " and %" PRId64
            " numbers of type %s and %s, which do not fit each other",
            m.first.shape.dim[0], m.second.shape.dim[0], basin_dtype_name(m.first.dtype),
            basin_dtype_name(m.second.dtype));
    return m;
}

static matrix take_meta(cursor *c) {
    take_magic(c, MAGIC_META, "a meta graph");
    return take_matrix(c, CSR);
}

static int64_t whole_at(const basin_tensor *t, int64_t i) {
    return basin_whole_at(t->data, t->dtype, i);
}

/* The row of each entry of a CSR matrix; free it. NULL where it fails. */
static int32_t *rows_of(cursor *c, const matrix *m) {
    int64_t entries = m->second.shape.dim[0], at = 0;
    int32_t *row = NULL;
    if (!c->status) c->status = BASIN_NEW_RAW(&row, entries, "edges", c->error);
    for (uint64_t i = 0; !c->status && i < m->rows; i++) {
        int64_t begin = whole_at(&m->first, (int64_t)i);
        int64_t end = whole_at(&m->first, (int64_t)i + 1);
        FAIL_IF(c, begin != at || end < begin || end > entries,
                "row %" PRIu64 " of a relation runs from %" PRId64 " to %" PRId64 " of %" PRId64
                " edges",
                i, begin, end, entries);
        while (!c->status && at < end) row[at++] = (int32_t)i;
    }
    FAIL_IF(c, at != entries, "the rows of a relation hold %" PRId64 " of its %" PRId64 " edges",
            at, entries);
    if (!c->status) return row;
    free(row);
    return NULL;
}

/* ---- a graph ---- */

typedef struct graph {
    size_t types, relations;
    uint64_t nodes[MOST_TYPES];
    int from[MOST_TYPES], to[MOST_TYPES]; /* node types that a relation joins */
    matrix edges[MOST_TYPES];
    char relation_name[MOST_TYPES][NAME];
    int type;          /* the node type that is read */
    char chosen[NAME]; /* its name */
    basin_tensor feature, label, mask[3];
    bool has_feature, has_label, has_mask[3];
} graph;

bool basin_network_dgl_is(const void *data, size_t size) {
    uint64_t magic = 0;
    if (size >= sizeof magic) memcpy(&magic, data, sizeof magic);
    return magic == MAGIC_FILE;
}

/* Which types the relations join: entry e of row s of the meta graph is relation number[e]. */
static void read_meta(cursor *c, graph *g) {
    matrix m = take_meta(c);
    size_t relations = c->status ? 0 : (size_t)m.second.shape.dim[0];
    FAIL_IF(c, m.rows == 0 || m.rows > MOST_TYPES || relations > MOST_TYPES,
            "%" PRIu64 " node types and %zu relations, wanted 1 to %d", m.rows, relations,
            MOST_TYPES);
    BASIN_FREE_AT_EXIT int32_t *row = rows_of(c, &m);
    bool numbered = m.number.shape.rank == 1 && m.number.shape.dim[0] == (int64_t)relations &&
                    (m.number.dtype == BASIN_I64 || m.number.dtype == BASIN_I32);
    if (!c->status) g->types = (size_t)m.rows, g->relations = relations;
    for (size_t e = 0; e < relations && !c->status; e++) {
        int64_t number = numbered ? whole_at(&m.number, (int64_t)e) : (int64_t)e;
        int64_t to = whole_at(&m.second, (int64_t)e);
        FAIL_IF(c, number < 0 || (size_t)number >= relations || to < 0 || (size_t)to >= g->types,
                "relation %" PRId64 " leads to node type %" PRId64 " of %zu", number, to, g->types);
        if (!c->status) g->from[number] = row[e], g->to[number] = (int)to;
    }
}

static void read_relation(cursor *c, matrix *edges) {
    take_magic(c, MAGIC_RELATION, "a relation");
    uint64_t code = take_u64(c, "a relation");
    (void)take_u64(c, "a relation");
    /* Which forms follow: a set of bits where the high word is 1, one number in older files. */
    int forms = code >> 32  ? (int)(code & 7)
                : code == 1 ? COO
                : code == 2 ? CSR
                : code == 3 ? CSC
                            : 0;
    FAIL_IF(c, !forms, "a relation is stored in form %" PRIx64 ", wanted COO, CSR or CSC", code);
    for (int form = COO; form <= CSC; form *= 2) {
        if (!(forms & form)) continue;
        (void)take_meta(c);
        matrix m = take_matrix(c, form);
        if (!edges->form) *edges = m;
    }
}

static bool one_of(const char *name, const char *const *list) {
    for (; *list; list++)
        if (!strcmp(name, *list)) return true;
    return false;
}

static void keep_tensor(graph *g, const char *name, basin_tensor t) {
    static const char *const features[] = {"feature", "features", "feat", "x", "attr", NULL};
    static const char *const labels[] = {"label", "labels", "y", NULL};
    static const char *const masks[3][5] = {{"train_mask", "train_masks", NULL},
                                            {"val_mask", "val_masks", "valid_mask", "valid_masks"},
                                            {"test_mask", "test_masks", NULL}};
    if (!g->has_feature && one_of(name, features)) g->feature = t, g->has_feature = true;
    if (!g->has_label && one_of(name, labels)) g->label = t, g->has_label = true;
    for (int i = 0; i < 3; i++)
        if (one_of(name, masks[i])) g->mask[i] = t, g->has_mask[i] = true;
}

/* Tensors of one type, which `g` keeps unless it is NULL; returns whether labels are among them. */
static bool read_tensors(cursor *c, graph *g) {
    size_t count = take_count(c, 16, 1 << 20, "tensors");
    graph seen;
    seen.has_feature = seen.has_label = false;
    for (size_t i = 0; i < count && !c->status; i++) {
        char name[NAME];
        take_name(c, name);
        basin_tensor t = take_tensor(c, name);
        if (!c->status) keep_tensor(g ? g : &seen, name, t);
    }
    return (g ? g : &seen)->has_label;
}

/* The node type to read is the first with labels; without any the largest. */
static void read_node_tensors(cursor *c, graph *g) {
    size_t lists = take_count(c, 8, MOST_TYPES, "lists of tensors"), start = c->at;
    bool labelled = false;
    for (size_t t = 0; t < lists && !c->status; t++) {
        bool has = read_tensors(c, NULL);
        if (t < g->types && !labelled && (has || g->nodes[t] > g->nodes[g->type])) g->type = (int)t;
        labelled = labelled || has;
    }
    size_t end = c->at;
    c->at = start;
    for (size_t t = 0; t < lists && !c->status; t++)
        (void)read_tensors(c, (int)t == g->type ? g : NULL);
    if (!c->status) c->at = end;
}

static void read_names(cursor *c, graph *g) {
    char name[NAME];
    size_t types = take_count(c, 8, MOST_TYPES, "node types");
    for (size_t t = 0; t < types; t++) {
        take_name(c, name);
        if ((int)t == g->type) memcpy(g->chosen, name, sizeof name);
    }
    size_t relations = take_count(c, 8, MOST_TYPES, "relations");
    for (size_t r = 0; r < relations; r++) {
        take_name(c, name);
        if (r < g->relations) memcpy(g->relation_name[r], name, sizeof name);
    }
}

static void read_graph(cursor *c, graph *g) {
    take_magic(c, MAGIC_GRAPH, "a graph");
    read_meta(c, g);
    size_t relations = take_count(c, 8, MOST_TYPES, "relations");
    FAIL_IF(c, relations != g->relations, "%zu relations, wanted %zu", relations, g->relations);
    for (size_t r = 0; r < relations && !c->status; r++) read_relation(c, &g->edges[r]);
    size_t types = take_count(c, 8, MOST_TYPES, "node counts");
    FAIL_IF(c, types != g->types, "%zu node counts, wanted %zu", types, g->types);
    for (size_t t = 0; t < types; t++) g->nodes[t] = take_u64(c, "node counts");
    read_node_tensors(c, g);
    size_t lists = take_count(c, 8, MOST_TYPES, "lists of tensors");
    for (size_t r = 0; r < lists && !c->status; r++) (void)read_tensors(c, NULL);
    read_names(c, g);
}

static uint64_t read_head(cursor *c) {
    take_magic(c, MAGIC_FILE, "the file");
    uint64_t version = take_u64(c, "the head"), kind = take_u64(c, "the head");
    uint64_t graphs = take_u64(c, "the head");
    if (!c->status && (version != 2 || kind != 2))
        c->status = basin_fail(c->error, BASIN_UNSUPPORTED,
                               "%s: a DGL file of version %" PRIu64 " and kind %" PRIu64
                               ", wanted 2 and 2 (DGL 0.5 and later; save the graph again)",
                               c->path, version, kind);
    FAIL_IF(c, graphs == 0, "no graph is in %s", "it");
    c->at = 0;
    (void)take(c, HEAD, "the head");
    uint64_t first = take_u64(c, "the head");
    FAIL_IF(c, first < c->at || first > c->size,
            "the first graph begins at byte %" PRIu64 " of %zu", first, c->size);
    if (!c->status) c->at = (size_t)first;
    return graphs;
}

/* ---- into the container ---- */

static basin_status align(basin_tensor *to, const basin_tensor *from, basin_error *error) {
    BASIN_TRY(basin_tensor_new(to, from->dtype, from->shape, error));
    if (basin_tensor_bytes(to)) memcpy(to->data, from->data, basin_tensor_bytes(to));
    return BASIN_OK;
}

static basin_status set_tensors(basin_network *n, const graph *g, const basin_network_options *o,
                                basin_error *error) {
    static const char *const part[] = {"train", "val", "test"};
    if (g->has_feature) {
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor x = {0};
        BASIN_TRY(align(&x, &g->feature, error));
        BASIN_TRY(basin_network_set_features(n, &x, o, error));
    }
    if (g->has_label) {
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor y = {0};
        BASIN_TRY(align(&y, &g->label, error));
        BASIN_TRY(basin_network_set_label_tensor(n, &y, o, error));
    }
    for (int i = 0; i < 3; i++) {
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor mask = {0};
        if (!g->has_mask[i]) continue;
        BASIN_TRY(align(&mask, &g->mask[i], error));
        BASIN_TRY(basin_network_set_masks(n, part[i], &mask, error));
    }
    return BASIN_OK;
}

static basin_status add_relation(cursor *c, basin_network *n, const matrix *m, const char *name,
                                 const basin_network_options *o) {
    basin_edges edges = {m->first.data, m->second.data, m->first.dtype, 1, m->second.shape.dim[0]};
    BASIN_FREE_AT_EXIT int32_t *row = NULL;
    BASIN_FREE_AT_EXIT int32_t *other = NULL;
    if (m->form != COO) {
        row = rows_of(c, m);
        BASIN_TRY(c->status);
        BASIN_TRY(BASIN_NEW_RAW(&other, edges.count, "edges", c->error));
        for (int64_t e = 0; e < edges.count; e++) {
            int64_t v = whole_at(&m->second, e);
            other[e] = v < 0 || v > INT32_MAX ? -1 : (int32_t)v;
        }
        edges.from = m->form == CSR ? row : other;
        edges.to = m->form == CSR ? other : row;
        edges.dtype = BASIN_I32;
    }
    return basin_network_add_relation(n, name, &edges, o, c->error);
}

static basin_status add_relations(cursor *c, basin_network *n, const graph *g,
                                  const basin_network_options *o) {
    size_t left_out = 0;
    for (size_t r = 0; r < g->relations; r++) {
        bool within = g->from[r] == g->type && g->to[r] == g->type;
        const char *name = g->relation_name[r];
        left_out += !within;
        /* "_E" is how DGL calls the edges of a graph without relations */
        if (!*name || !strcmp(name, "_E")) name = "homo";
        if (within) BASIN_TRY(add_relation(c, n, &g->edges[r], name, o));
    }
    FAIL_IF(c, !n->relations, "no edges among the nodes of type '%s'", g->chosen);
    if (left_out)
        basin_network_add_note(n, "nodes of type '%s' alone; %zu relations to others left out",
                               g->chosen, left_out);
    return c->status;
}

basin_status basin_network_dgl_parse(basin_network **network, const void *data, size_t size,
                                     const char *path, const basin_network_options *options,
                                     basin_error *error) {
    const basin_network_options *o = basin_network_options_or(options);
    cursor c = {.data = data, .size = size, .path = path, .error = error};
    BASIN_FREE_AT_EXIT graph *g = NULL;
    BASIN_NETWORK_AT_EXIT basin_network *n = NULL;
    *network = NULL;
    BASIN_TRY(BASIN_NEW(&g, 1, "a graph", error));
    uint64_t graphs = read_head(&c);
    read_graph(&c, g);
    uint64_t nodes = g->nodes[g->type];
    /* where no tensor vouches for the number of nodes, a few bytes could ask for all memory */
    FAIL_IF(&c, !g->has_feature && !g->has_label && nodes > size,
            "%" PRIu64 " nodes without features or labels in %zu bytes", nodes, size);
    BASIN_TRY(c.status);
    BASIN_TRY(basin_network_new(&n, path, nodes > INT64_MAX ? -1 : (int64_t)nodes, error));
    BASIN_TRY(set_tensors(n, g, o, error));
    BASIN_TRY(add_relations(&c, n, g, o));
    if (graphs > 1)
        basin_network_add_note(n, "the first of %" PRIu64 " graphs in the file", graphs);
    *network = n, n = NULL;
    return BASIN_OK;
}
