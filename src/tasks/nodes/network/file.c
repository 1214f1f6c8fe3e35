/* The mapped network: safetensors whose tensors are the container's own arrays, so that opening
 * one is a map and a look at the header. The metadata `format` is "basin network"; names are
 *
 *     row.NAME I64 [N + 1], col.NAME I32 [edges]   a relation
 *     fact.NAME F32 [edges, facts]                 what its edges carry, by the schema
 *     since F64 [N]                                times of first edges
 *     x F32 [N, F]   y I32 [N]   train_masks, val_masks, test_masks U8 [splits, N]
 *     id_at I64 [N + 1], id_text U8 []   ids       column_at, column_text   names of features
 *
 * Also written as npz, with the same names and edges in place of rows where it is to be read
 * elsewhere. */
#include <inttypes.h>

#include "base/bundle.h"
#include "base/text.h"
#include "tasks/common/digest.h"
#include "tasks/nodes/network/network.h"

static const char format_name[] = "basin network";

bool basin_network_file_is(const basin_bundle *bundle) {
    const char *format = basin_bundle_meta(bundle, "format");
    return format && !strcmp(format, format_name);
}

/* Arrays of nodes: one row each, the features, or for every split. */
static const struct {
    const char *key;
    size_t offset; /* in basin_network */
    basin_dtype dtype;
    enum { ROWS, FEATURES, SPLITS } of;
} array[] = {{"x", offsetof(basin_network, feature), BASIN_F32, FEATURES},
             {"y", offsetof(basin_network, label), BASIN_I32, ROWS},
             {"since", offsetof(basin_network, since), BASIN_F64, ROWS},
             {"train_masks", offsetof(basin_network, train), BASIN_U8, SPLITS},
             {"val_masks", offsetof(basin_network, val), BASIN_U8, SPLITS},
             {"test_masks", offsetof(basin_network, test), BASIN_U8, SPLITS}};
enum { ARRAYS = sizeof array / sizeof *array };

static void **array_of(basin_network *n, size_t i) {
    return (void **)(void *)((char *)n + array[i].offset);
}

/* -1 where it is not known yet. */
static basin_shape shape_of(const basin_network *n, size_t i) {
    if (array[i].of == ROWS) return BASIN_SHAPE(n->nodes);
    if (array[i].of == SPLITS) return BASIN_SHAPE(n->splits ? n->splits : -1, n->nodes);
    return BASIN_SHAPE(n->nodes, n->features ? n->features : -1);
}

/* ---- reading ---- */

/* Offsets from 0 up to `end`; basin_network_check looks at their order. */
static basin_status check_ends(const basin_bundle *bundle, const char *name, const int64_t *at,
                               int64_t count, int64_t end, basin_error *error) {
    if (at[0] == 0 && at[count] == end) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: %s runs from %" PRId64 " to %" PRId64 ", expected 0 to %" PRId64,
                      basin_bundle_path(bundle), name, at[0], at[count], end);
}

static basin_status map_names(basin_names *names, const basin_bundle *bundle, const char *key,
                              int64_t count, basin_error *error) {
    char at_key[40], text_key[40];
    const basin_tensor *at, *text;
    snprintf(at_key, sizeof at_key, "%s_at", key);
    snprintf(text_key, sizeof text_key, "%s_text", key);
    if (!basin_bundle_find(bundle, at_key)) return BASIN_OK;
    basin_shape shape = BASIN_SHAPE(count < 0 ? -1 : count + 1);
    BASIN_TRY(basin_bundle_expect(&at, bundle, at_key, BASIN_I64, shape, error));
    BASIN_TRY(basin_bundle_expect(&text, bundle, text_key, BASIN_U8, BASIN_SHAPE(-1), error));
    /* with a zero byte at the end no entry can run out of the file */
    int64_t bytes = text->shape.dim[0];
    count = at->shape.dim[0] - 1;
    if (count < 0 || bytes == 0 || ((const char *)text->data)[bytes - 1] != 0)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s has no end", basin_bundle_path(bundle),
                          text_key);
    BASIN_TRY(check_ends(bundle, at_key, at->data, count, bytes, error));
    *names = (basin_names){.count = count, .at = at->data, .text = text->data};
    return BASIN_OK;
}

enum { KEY = 300 }; /* longer names of relations are refused */

static basin_status make_key(char key[KEY], const char *of, const char *mark, const char *relation,
                             basin_error *error) {
    if (snprintf(key, KEY, "%s%s%s", of, mark, relation) < KEY) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "the name of relation '%.40s..' is too long",
                      relation);
}

static basin_status map_relation(basin_network *n, const basin_bundle *bundle, const char *name,
                                 basin_error *error) {
    const basin_tensor *row, *col, *fact;
    basin_relation *r;
    char key[KEY], begins[KEY];
    BASIN_TRY(make_key(begins, "row", ".", name, error));
    BASIN_TRY(make_key(key, "col", ".", name, error));
    basin_shape rows = BASIN_SHAPE(n->nodes + 1);
    BASIN_TRY(basin_bundle_expect(&row, bundle, begins, BASIN_I64, rows, error));
    BASIN_TRY(basin_bundle_expect(&col, bundle, key, BASIN_I32, BASIN_SHAPE(-1), error));
    BASIN_TRY(check_ends(bundle, begins, row->data, n->nodes, col->shape.dim[0], error));
    BASIN_TRY(basin_network_new_relation(&r, n, name, error));
    r->mapped = true;
    r->row = row->data;
    r->col = col->data;
    r->edges = col->shape.dim[0];
    if (!n->facts.count) return BASIN_OK;
    BASIN_TRY(make_key(key, "fact", ".", name, error));
    basin_shape shape = BASIN_SHAPE(r->edges, n->facts.count);
    BASIN_TRY(basin_bundle_expect(&fact, bundle, key, BASIN_F32, shape, error));
    r->fact = fact->data;
    r->fact_mapped = true;
    return BASIN_OK;
}

static basin_status map_arrays(basin_network *n, const basin_bundle *bundle, basin_error *error) {
    const char *schema = basin_bundle_meta(bundle, "schema");
    const basin_tensor *t;
    for (size_t i = 0; i < ARRAYS; i++) {
        if (!basin_bundle_find(bundle, array[i].key)) continue;
        BASIN_TRY(
            basin_bundle_expect(&t, bundle, array[i].key, array[i].dtype, shape_of(n, i), error));
        *array_of(n, i) = t->data;
        if (array[i].of == FEATURES) n->features = t->shape.dim[1];
        if (array[i].of == SPLITS) n->splits = t->shape.dim[0];
    }
    BASIN_TRY(map_names(&n->id, bundle, "id", n->nodes, error));
    if (n->features) BASIN_TRY(map_names(&n->column, bundle, "column", n->features, error));
    BASIN_TRY(map_names(&n->class_name, bundle, "class", -1, error));
    if (schema) BASIN_TRY(basin_schema_read(&n->schema, schema, n->features, n->path, error));
    BASIN_TRY(basin_schema_facts(&n->facts, n->schema, error));
    for (size_t i = 0; i < basin_bundle_count(bundle); i++)
        if (!strncmp(basin_bundle_name(bundle, i), "row.", 4))
            BASIN_TRY(map_relation(n, bundle, basin_bundle_name(bundle, i) + 4, error));
    return BASIN_OK;
}

basin_status basin_network_file_read(basin_network **network, basin_bundle *bundle,
                                     basin_error *error) {
    const char *nodes = basin_bundle_meta(bundle, "nodes");
    const char *directed = basin_bundle_meta(bundle, "directed");
    const char *note = basin_bundle_meta(bundle, "note");
    BASIN_NETWORK_AT_EXIT basin_network *n = NULL;
    *network = NULL;
    basin_status status =
        nodes ? basin_network_new(&n, basin_bundle_path(bundle), strtoll(nodes, NULL, 10), error)
              : basin_fail(error, BASIN_BAD_FILE, "%s: the number of nodes is not in the metadata",
                           basin_bundle_path(bundle));
    if (status) return basin_bundle_free(bundle), status;
    n->file = bundle;
    n->directed = directed && !strcmp(directed, "true");
    if (note) n->note_lost = !(n->note = basin_string_copy(note));
    BASIN_TRY(map_arrays(n, bundle, error));
    if (!n->relations)
        return basin_fail(error, BASIN_BAD_FILE, "%s: no relation is in it", n->path);
    *network = n, n = NULL;
    return BASIN_OK;
}

/* ---- writing ---- */

static basin_status put_names(basin_bundle *bundle, const char *key, const basin_names *names,
                              basin_error *error) {
    char at[40], text[40];
    if (!names->count) return BASIN_OK;
    snprintf(at, sizeof at, "%s_at", key);
    snprintf(text, sizeof text, "%s_text", key);
    BASIN_TRY(
        basin_bundle_put(bundle, at, names->at, BASIN_I64, BASIN_SHAPE(names->count + 1), error));
    return basin_bundle_put(bundle, text, names->text, BASIN_U8,
                            BASIN_SHAPE(names->at[names->count]), error);
}

static basin_status put_meta(basin_bundle *bundle, const basin_network *n, basin_error *error) {
    char number[32];
    snprintf(number, sizeof number, "%" PRId64, n->nodes);
    BASIN_TRY(basin_bundle_meta_set(bundle, "format", format_name, error));
    BASIN_TRY(basin_bundle_meta_set(bundle, "version", "1", error));
    BASIN_TRY(basin_bundle_meta_set(bundle, "nodes", number, error));
    BASIN_TRY(basin_bundle_meta_set(bundle, "directed", n->directed ? "true" : "false", error));
    if (n->note) BASIN_TRY(basin_bundle_meta_set(bundle, "note", n->note, error));
    if (!n->schema) return BASIN_OK;
    BASIN_FREE_AT_EXIT char *schema = basin_schema_print(n->schema);
    if (!schema) return basin_fail_memory(error, "a schema");
    return basin_bundle_meta_set(bundle, "schema", schema, error);
}

static basin_status put_nodes(basin_bundle *bundle, const basin_network *n, basin_error *error) {
    for (size_t i = 0; i < ARRAYS; i++) {
        const void *data = *array_of((basin_network *)(uintptr_t)n, i);
        if (data)
            BASIN_TRY(basin_bundle_put(bundle, array[i].key, data, array[i].dtype, shape_of(n, i),
                                       error));
    }
    return BASIN_OK;
}

static basin_status put_relation(basin_bundle *bundle, const basin_network *n,
                                 const basin_relation *r, basin_error *error) {
    char key[KEY];
    BASIN_TRY(make_key(key, "row", ".", r->name, error));
    BASIN_TRY(basin_bundle_put(bundle, key, r->row, BASIN_I64, BASIN_SHAPE(n->nodes + 1), error));
    BASIN_TRY(make_key(key, "col", ".", r->name, error));
    BASIN_TRY(basin_bundle_put(bundle, key, r->col, BASIN_I32, BASIN_SHAPE(r->edges), error));
    if (!r->fact) return BASIN_OK;
    BASIN_TRY(make_key(key, "fact", ".", r->name, error));
    return basin_bundle_put(bundle, key, r->fact, BASIN_F32, BASIN_SHAPE(r->edges, n->facts.count),
                            error);
}

/* Edges [E, 2], of an undirected network each once. */
static basin_status put_edges(basin_bundle *bundle, const basin_network *n, const basin_relation *r,
                              basin_error *error) {
    bool homo = !strcmp(r->name, "homo");
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor pairs = {0};
    int64_t count = 0;
    char key[KEY];
    for (int64_t v = 0; v < n->nodes; v++)
        for (int64_t e = r->row[v]; e < r->row[v + 1]; e++) count += n->directed || r->col[e] <= v;
    BASIN_TRY(basin_tensor_new(&pairs, BASIN_I32, BASIN_SHAPE(count, 2), error));
    int32_t *edge = pairs.data;
    for (int64_t v = 0; v < n->nodes; v++)
        for (int64_t e = r->row[v]; e < r->row[v + 1]; e++)
            if (n->directed || r->col[e] <= v) *edge++ = r->col[e], *edge++ = (int32_t)v;
    BASIN_TRY(make_key(key, "edges", homo ? "" : "_", homo ? "" : r->name, error));
    return basin_bundle_add(bundle, key, &pairs, error);
}

basin_status basin_network_file_put(basin_bundle *bundle, const basin_network *network,
                                    basin_error *error) {
    BASIN_TRY(put_meta(bundle, network, error));
    BASIN_TRY(put_nodes(bundle, network, error));
    BASIN_TRY(put_names(bundle, "id", &network->id, error));
    BASIN_TRY(put_names(bundle, "column", &network->column, error));
    BASIN_TRY(put_names(bundle, "class", &network->class_name, error));
    for (int r = 0; r < network->relations; r++)
        BASIN_TRY(put_relation(bundle, network, &network->relation[r], error));
    return BASIN_OK;
}

static basin_status put_npz(basin_bundle *bundle, const basin_network *network,
                            basin_error *error) {
    if (network->facts.count)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: its edges carry amounts, times or kinds, which npz does not hold; "
                          "expected NAME.basin, or tables without these columns (drop)",
                          network->path);
    BASIN_TRY(put_nodes(bundle, network, error));
    for (int r = 0; r < network->relations; r++)
        BASIN_TRY(put_edges(bundle, network, &network->relation[r], error));
    return BASIN_OK;
}

basin_status basin_network_write(const char *path, const basin_network *network,
                                 basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    BASIN_TRY(basin_bundle_new(&bundle, NULL, error));
    bool npz = basin_text_ends(path, ".npz");
    BASIN_TRY((npz ? put_npz : basin_network_file_put)(bundle, network, error));
    if (!npz) BASIN_TRY(basin_bundle_digest(bundle, error));
    return basin_bundle_write(path, bundle, error);
}
