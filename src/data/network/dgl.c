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
 * sticks. Tensors are left where they lie; nothing in the file is aligned. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/network.h"

/* ---- values as DGL serialises them. Reading goes on with zeros after the first error, which
 * sticks in the cursor ---- */

enum { BASIN_DGL_COO = 1, BASIN_DGL_CSR = 2, BASIN_DGL_CSC = 4 };

typedef struct basin_dgl_cursor {
    const unsigned char *data;
    size_t size, at;
    const char *path;
    basin_status status;
    basin_error *error;
} basin_dgl_cursor;

typedef struct basin_dgl_matrix {
    int form; /* BASIN_DGL_* */
    uint64_t rows, columns;
    basin_tensor first, second; /* COO: row, col; else starts, columns */
    basin_tensor number;        /* of each entry, or empty */
} basin_dgl_matrix;

#define MAGIC_CSR UINT64_C(0xdd6cd31205dff127)
#define MAGIC_COO UINT64_C(0xdd61ffd305dff127)
#define MAGIC_TENSOR UINT64_C(0xdd5e40f096b4a13f)

/* The whole numbers of a file lie in it as they lie here. */
static const unsigned char *basin_dgl_take(basin_dgl_cursor *c, uint64_t bytes, const char *what) {
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

static uint64_t basin_dgl_u64(basin_dgl_cursor *c, const char *what) {
    uint64_t value = 0;
    const unsigned char *from = basin_dgl_take(c, sizeof value, what);
    if (from) memcpy(&value, from, sizeof value);
    return value;
}

static void basin_dgl_magic(basin_dgl_cursor *c, uint64_t magic, const char *what) {
    size_t at = c->at;
    uint64_t found = basin_dgl_u64(c, what);
    if (!c->status && found != magic)
        c->status = basin_fail(c->error, BASIN_BAD_FILE,
                               "%s: %s at byte %zu begins with %" PRIx64 ", wanted %" PRIx64,
                               c->path, what, at, found, magic);
}

static size_t basin_dgl_count(basin_dgl_cursor *c, uint64_t least, uint64_t most,
                              const char *what) {
    uint64_t count = basin_dgl_u64(c, what);
    if (!c->status && (count > most || count > (c->size - c->at) / least))
        c->status = basin_fail(c->error, BASIN_BAD_FILE,
                               "%s: %" PRIu64 " %s, more than the file or this reader has room for",
                               c->path, count, what);
    return c->status ? 0 : (size_t)count;
}

static void basin_dgl_name(basin_dgl_cursor *c, char *name, size_t room) {
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

static basin_tensor basin_dgl_tensor(basin_dgl_cursor *c, const char *what) {
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

static basin_status basin_dgl_align(basin_tensor *to, const basin_tensor *from,
                                    basin_error *error) {
    basin_status status = basin_tensor_new(to, from->dtype, from->shape, error);
    size_t bytes = status ? 0 : basin_tensor_bytes(to);
    if (bytes) memcpy(to->data, from->data, bytes);
    return status;
}

/* ---- matrices ---- */

static basin_dgl_matrix basin_dgl_take_matrix(basin_dgl_cursor *c, int form) {
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

static int64_t basin_dgl_whole(const basin_tensor *t, int64_t i) {
    return basin_whole_at(t->data, t->dtype, i);
}

static int32_t *basin_dgl_rows(basin_dgl_cursor *c, const basin_dgl_matrix *m) {
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

/* ---- a graph ---- */

#define MAGIC_FILE UINT64_C(0xdd2e4ff046b4a13f)
#define MAGIC_GRAPH UINT64_C(0xdd589fbe35224abf)
#define MAGIC_META UINT64_C(0xdd3c5ffe20046abf)
#define MAGIC_RELATION UINT64_C(0xdd2e60f0f6b4a127)

enum { HEAD = 4096, MOST_TYPES = 128 };

bool basin_network_dgl_is(const void *data, size_t size) {
    uint64_t magic = 0;
    if (size >= sizeof magic) memcpy(&magic, data, sizeof magic);
    return magic == MAGIC_FILE;
}

/* ---- a graph ---- */

typedef struct graph {
    size_t types, relations, nodes_count;
    uint64_t nodes[MOST_TYPES];
    int from[MOST_TYPES], to[MOST_TYPES]; /* node types that a relation joins */
    basin_dgl_matrix edges[MOST_TYPES];
    char relation_name[MOST_TYPES][200];
    int type;         /* the node type that is read */
    char chosen[200]; /* its name */
    basin_tensor feature, label, mask[3];
    bool has_feature, has_label, has_mask[3];
} graph;

static basin_dgl_matrix take_meta(basin_dgl_cursor *c) {
    basin_dgl_magic(c, MAGIC_META, "a meta graph");
    return basin_dgl_take_matrix(c, BASIN_DGL_CSR);
}

/* Which types the relations join: entry e of row s of the meta graph is relation number[e]. */
static void read_meta(basin_dgl_cursor *c, graph *g) {
    basin_dgl_matrix m = take_meta(c);
    size_t relations = c->status ? 0 : (size_t)m.second.shape.dim[0];
    if (c->status) return;
    if (m.rows == 0 || m.rows > MOST_TYPES || relations > MOST_TYPES) {
        c->status = basin_fail(c->error, BASIN_BAD_FILE,
                               "%s: %" PRIu64 " node types and %zu relations, wanted 1 to %d",
                               c->path, m.rows, relations, MOST_TYPES);
        return;
    }
    g->types = (size_t)m.rows;
    g->relations = relations;
    int32_t *row = basin_dgl_rows(c, &m);
    bool numbered = m.number.shape.rank == 1 && m.number.shape.dim[0] == (int64_t)relations &&
                    (m.number.dtype == BASIN_I64 || m.number.dtype == BASIN_I32);
    for (size_t e = 0; row && e < relations && !c->status; e++) {
        int64_t number = numbered ? basin_dgl_whole(&m.number, (int64_t)e) : (int64_t)e;
        int64_t to = basin_dgl_whole(&m.second, (int64_t)e);
        if (number < 0 || (size_t)number >= relations || to < 0 || (size_t)to >= g->types) {
            c->status = basin_fail(c->error, BASIN_BAD_FILE,
                                   "%s: relation %" PRId64 " leads to node type %" PRId64 " of %zu",
                                   c->path, number, to, g->types);
            break;
        }
        g->from[number] = row[e];
        g->to[number] = (int)to;
    }
    free(row);
}

/* Which forms follow: a set of bits where the high word is 1, one number in older files. */
static int forms_of(uint64_t code) {
    if (code >> 32) return (int)(code & 7);
    return code == 1 ? BASIN_DGL_COO : code == 2 ? BASIN_DGL_CSR : code == 3 ? BASIN_DGL_CSC : 0;
}

static void read_relation(basin_dgl_cursor *c, basin_dgl_matrix *edges) {
    basin_dgl_magic(c, MAGIC_RELATION, "a relation");
    uint64_t code = basin_dgl_u64(c, "a relation");
    (void)basin_dgl_u64(c, "a relation");
    int forms = forms_of(code);
    if (!c->status && !forms)
        c->status = basin_fail(
            c->error, BASIN_BAD_FILE,
            "%s: a relation is stored in form %" PRIx64 ", wanted COO, CSR or CSC", c->path, code);
    for (int form = BASIN_DGL_COO; form <= BASIN_DGL_CSC; form *= 2) {
        if (!(forms & form)) continue;
        (void)take_meta(c);
        basin_dgl_matrix m = basin_dgl_take_matrix(c, form);
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

/* Tensors of one type; `g` NULL skips them. */
static void read_tensors(basin_dgl_cursor *c, graph *g) {
    size_t count = basin_dgl_count(c, 16, 1 << 20, "tensors");
    for (size_t i = 0; i < count && !c->status; i++) {
        char name[200];
        basin_dgl_name(c, name, sizeof name);
        basin_tensor t = basin_dgl_tensor(c, name);
        if (g && !c->status) keep_tensor(g, name, t);
    }
}

/* The node type to read is the first with labels; without any the largest. */
static void read_node_tensors(basin_dgl_cursor *c, graph *g) {
    size_t lists = basin_dgl_count(c, 8, MOST_TYPES, "lists of tensors"), start = c->at;
    graph *trial = calloc(1, sizeof *trial);
    if (!trial) c->status = basin_fail(c->error, BASIN_NO_MEMORY, "%s: out of memory", c->path);
    bool labelled = false;
    for (size_t t = 0; t < lists && !c->status; t++) {
        trial->has_label = false;
        read_tensors(c, trial);
        bool better =
            t < g->types && !labelled && (trial->has_label || g->nodes[t] > g->nodes[g->type]);
        if (better) g->type = (int)t;
        labelled = labelled || trial->has_label;
    }
    free(trial);
    size_t end = c->at;
    c->at = start;
    for (size_t t = 0; t < lists && !c->status; t++) read_tensors(c, (int)t == g->type ? g : NULL);
    if (!c->status) c->at = end;
}

static void read_names(basin_dgl_cursor *c, graph *g) {
    char name[200];
    size_t types = basin_dgl_count(c, 8, MOST_TYPES, "node types");
    for (size_t t = 0; t < types; t++) {
        basin_dgl_name(c, name, sizeof name);
        if ((int)t == g->type) memcpy(g->chosen, name, sizeof name);
    }
    size_t relations = basin_dgl_count(c, 8, MOST_TYPES, "relations");
    for (size_t r = 0; r < relations; r++) {
        basin_dgl_name(c, name, sizeof name);
        if (r < g->relations) memcpy(g->relation_name[r], name, sizeof name);
    }
}

static void read_graph(basin_dgl_cursor *c, graph *g) {
    basin_dgl_magic(c, MAGIC_GRAPH, "a graph");
    read_meta(c, g);
    size_t relations = basin_dgl_count(c, 8, MOST_TYPES, "relations");
    if (!c->status && relations != g->relations)
        c->status = basin_fail(c->error, BASIN_BAD_FILE, "%s: %zu relations, wanted %zu", c->path,
                               relations, g->relations);
    for (size_t r = 0; r < relations && !c->status; r++) read_relation(c, &g->edges[r]);
    size_t types = basin_dgl_count(c, 8, MOST_TYPES, "node counts");
    if (!c->status && types != g->types)
        c->status = basin_fail(c->error, BASIN_BAD_FILE, "%s: %zu node counts, wanted %zu", c->path,
                               types, g->types);
    for (size_t t = 0; t < types; t++) g->nodes[t] = basin_dgl_u64(c, "node counts");
    read_node_tensors(c, g);
    size_t lists = basin_dgl_count(c, 8, MOST_TYPES, "lists of tensors");
    for (size_t r = 0; r < lists && !c->status; r++) read_tensors(c, NULL);
    read_names(c, g);
}

static uint64_t read_head(basin_dgl_cursor *c) {
    basin_dgl_magic(c, MAGIC_FILE, "the file");
    uint64_t version = basin_dgl_u64(c, "the head"), kind = basin_dgl_u64(c, "the head");
    uint64_t graphs = basin_dgl_u64(c, "the head");
    if (!c->status && (version != 2 || kind != 2))
        c->status = basin_fail(c->error, BASIN_UNSUPPORTED,
                               "%s: a DGL file of version %" PRIu64 " and kind %" PRIu64
                               ", wanted 2 and 2 (DGL 0.5 and later; save the graph again)",
                               c->path, version, kind);
    if (!c->status && graphs == 0)
        c->status = basin_fail(c->error, BASIN_BAD_FILE, "%s: no graph is in it", c->path);
    c->at = 0;
    (void)basin_dgl_take(c, HEAD, "the head");
    uint64_t first = basin_dgl_u64(c, "the head");
    if (!c->status && (first < c->at || first > c->size))
        c->status = basin_fail(c->error, BASIN_BAD_FILE,
                               "%s: the first graph begins at byte %" PRIu64 " of %zu", c->path,
                               first, c->size);
    if (!c->status) c->at = (size_t)first;
    return graphs;
}

/* ---- into the container ---- */

static basin_status set_tensors(basin_network *n, const graph *g, const basin_network_options *o,
                                basin_error *error) {
    static const char *const part[] = {"train", "val", "test"};
    basin_tensor t = {0};
    basin_status status = BASIN_OK;
    if (g->has_feature) {
        status = basin_dgl_align(&t, &g->feature, error);
        if (!status) status = basin_network_set_features(n, &t, o, error);
        basin_tensor_free(&t);
    }
    if (!status && g->has_label) {
        status = basin_dgl_align(&t, &g->label, error);
        if (!status) status = basin_network_set_label_tensor(n, &t, o, error);
        basin_tensor_free(&t);
    }
    for (int i = 0; i < 3 && !status; i++) {
        if (!g->has_mask[i]) continue;
        status = basin_dgl_align(&t, &g->mask[i], error);
        if (!status) status = basin_network_set_masks(n, part[i], &t, error);
        basin_tensor_free(&t);
    }
    return status;
}

static void add_relation(basin_dgl_cursor *c, basin_network *n, const basin_dgl_matrix *m,
                         const char *name, const basin_network_options *o) {
    basin_edges edges = {.from = m->first.data,
                         .to = m->second.data,
                         .dtype = m->first.dtype,
                         .stride = 1,
                         .count = m->second.shape.dim[0]};
    int32_t *row = NULL, *other = NULL;
    if (m->form != BASIN_DGL_COO) {
        row = basin_dgl_rows(c, m);
        other = row ? basin_array_new((size_t)edges.count, sizeof *other) : NULL;
        if (row && !other)
            c->status = basin_fail(c->error, BASIN_NO_MEMORY, "%s: out of memory", c->path);
        for (int64_t e = 0; other && e < edges.count; e++) {
            int64_t v = basin_dgl_whole(&m->second, e);
            other[e] = v < 0 || v > INT32_MAX ? -1 : (int32_t)v;
        }
        bool by_source = m->form == BASIN_DGL_CSR;
        edges.from = by_source ? row : other;
        edges.to = by_source ? other : row;
        edges.dtype = BASIN_I32;
    }
    if (!c->status) c->status = basin_network_add_relation(n, name, &edges, o, c->error);
    free(row);
    free(other);
}

static void add_relations(basin_dgl_cursor *c, basin_network *n, const graph *g,
                          const basin_network_options *o) {
    size_t left_out = 0;
    for (size_t r = 0; r < g->relations && !c->status; r++) {
        bool within = g->from[r] == g->type && g->to[r] == g->type;
        const char *name = g->relation_name[r];
        left_out += !within;
        if (!within) continue;
        /* "_E" is how DGL calls the edges of a graph without relations */
        if (!*name || !strcmp(name, "_E")) name = "homo";
        add_relation(c, n, &g->edges[r], name, o);
    }
    if (c->status) return;
    if (!n->relations)
        c->status = basin_fail(c->error, BASIN_BAD_FILE,
                               "%s: no edges among the nodes of type '%s'", c->path, g->chosen);
    if (left_out)
        basin_network_add_note(n, "nodes of type '%s' alone; %zu relations to others left out",
                               g->chosen, left_out);
}

basin_status basin_network_dgl_parse(basin_network **network, const void *data, size_t size,
                                     const char *path, const basin_network_options *options,
                                     basin_error *error) {
    const basin_network_options *o = basin_network_options_or(options);
    basin_dgl_cursor c = {.data = data, .size = size, .path = path, .error = error};
    *network = NULL;
    graph *g = calloc(1, sizeof *g);
    if (!g) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", path);
    uint64_t graphs = read_head(&c);
    read_graph(&c, g);
    uint64_t nodes = g->nodes[g->type];
    /* where no tensor vouches for the number of nodes, a few bytes could ask for all memory */
    if (!c.status && !g->has_feature && !g->has_label && nodes > size)
        c.status = basin_fail(error, BASIN_BAD_FILE,
                              "%s: %" PRIu64 " nodes without features or labels in %zu bytes", path,
                              nodes, size);
    if (!c.status)
        c.status = basin_network_new(network, path, nodes > INT64_MAX ? -1 : (int64_t)nodes, error);
    if (!c.status) c.status = set_tensors(*network, g, o, error);
    if (!c.status) add_relations(&c, *network, g, o);
    if (!c.status && graphs > 1)
        basin_network_add_note(*network, "the first of %" PRIu64 " graphs in the file", graphs);
    free(g);
    if (c.status) {
        basin_network_free(*network);
        *network = NULL;
    }
    return c.status;
}
