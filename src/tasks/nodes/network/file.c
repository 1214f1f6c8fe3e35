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
    BASIN_TRY(basin_bundle_expect(&at, bundle, at_key, BASIN_I64, BASIN_SHAPE(count + 1), error));
    BASIN_TRY(basin_bundle_expect(&text, bundle, text_key, BASIN_U8, BASIN_SHAPE(-1), error));
    BASIN_TRY(check_ends(bundle, at_key, at->data, count, text->shape.dim[0], error));
    /* with a zero byte at the end no entry can run out of the file */
    const char *bytes = text->data;
    if (text->shape.dim[0] == 0 || bytes[text->shape.dim[0] - 1] != 0)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s has no end", basin_bundle_path(bundle),
                          text_key);
    *names = (basin_names){.count = count, .at = at->data, .text = text->data};
    return BASIN_OK;
}

static basin_status map_facts(basin_relation *r, const basin_network *n, const basin_bundle *bundle,
                              const char *relation, basin_error *error) {
    const basin_tensor *fact;
    char name[300];
    if (!n->facts.count) return BASIN_OK;
    snprintf(name, sizeof name, "fact.%s", relation);
    BASIN_TRY(basin_bundle_expect(&fact, bundle, name, BASIN_F32,
                                  BASIN_SHAPE(r->edges, n->facts.count), error));
    r->fact = fact->data;
    r->fact_mapped = true;
    return BASIN_OK;
}

static basin_status map_relation(basin_network *n, const basin_bundle *bundle, const char *key,
                                 basin_error *error) {
    const basin_tensor *row, *col;
    basin_relation *r;
    char name[300];
    if (snprintf(name, sizeof name, "col.%s", key + 4) >= (int)sizeof name)
        return basin_fail(error, BASIN_BAD_FILE, "%s: the name of a relation is too long", n->path);
    BASIN_TRY(basin_bundle_expect(&row, bundle, key, BASIN_I64, BASIN_SHAPE(n->nodes + 1), error));
    BASIN_TRY(basin_bundle_expect(&col, bundle, name, BASIN_I32, BASIN_SHAPE(-1), error));
    BASIN_TRY(check_ends(bundle, key, row->data, n->nodes, col->shape.dim[0], error));
    BASIN_TRY(basin_network_new_relation(&r, n, key + 4, error));
    r->mapped = true;
    r->row = row->data;
    r->col = col->data;
    r->edges = col->shape.dim[0];
    return map_facts(r, n, bundle, key + 4, error);
}

/* An array that may be absent: NULL then. */
static basin_status map_array(void **data, const basin_tensor **found, const basin_bundle *bundle,
                              const char *name, basin_dtype dtype, basin_shape shape,
                              basin_error *error) {
    if (!(*found = basin_bundle_find(bundle, name))) return BASIN_OK;
    BASIN_TRY(basin_bundle_expect(found, bundle, name, dtype, shape, error));
    *data = (*found)->data;
    return BASIN_OK;
}

static basin_status map_arrays(basin_network *n, const basin_bundle *bundle, basin_error *error) {
    static const char *const key[] = {"train_masks", "val_masks", "test_masks"};
    uint8_t **mask[] = {&n->train, &n->val, &n->test};
    const char *schema = basin_bundle_meta(bundle, "schema");
    basin_shape rows = BASIN_SHAPE(n->nodes);
    const basin_tensor *t;
    BASIN_TRY(map_array((void **)&n->feature, &t, bundle, "x", BASIN_F32, BASIN_SHAPE(n->nodes, -1),
                        error));
    if (t) n->features = t->shape.dim[1];
    BASIN_TRY(map_array((void **)&n->label, &t, bundle, "y", BASIN_I32, rows, error));
    BASIN_TRY(map_array((void **)&n->since, &t, bundle, "since", BASIN_F64, rows, error));
    for (int i = 0; i < 3; i++) {
        basin_shape shape = BASIN_SHAPE(n->splits ? n->splits : -1, n->nodes);
        BASIN_TRY(map_array((void **)mask[i], &t, bundle, key[i], BASIN_U8, shape, error));
        if (t) n->splits = t->shape.dim[0];
    }
    BASIN_TRY(map_names(&n->id, bundle, "id", n->nodes, error));
    if (n->features) BASIN_TRY(map_names(&n->column, bundle, "column", n->features, error));
    t = basin_bundle_find(bundle, "class_at");
    if (t && t->shape.rank == 1 && t->shape.dim[0] > 0)
        BASIN_TRY(map_names(&n->class_name, bundle, "class", t->shape.dim[0] - 1, error));
    if (schema) BASIN_TRY(basin_schema_read(&n->schema, schema, n->features, n->path, error));
    BASIN_TRY(basin_schema_facts(&n->facts, n->schema, error));
    for (size_t i = 0; i < basin_bundle_count(bundle); i++)
        if (!strncmp(basin_bundle_name(bundle, i), "row.", 4))
            BASIN_TRY(map_relation(n, bundle, basin_bundle_name(bundle, i), error));
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

/* In metadata, or, as npz has none, as an array of bytes. */
static basin_status put_schema(basin_bundle *bundle, const basin_schema *schema, bool npz,
                               basin_error *error) {
    BASIN_FREE_AT_EXIT char *text = basin_schema_print(schema);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor t = {0};
    if (!text) return basin_fail_memory(error, "a schema");
    if (!npz) return basin_bundle_meta_set(bundle, "schema", text, error);
    BASIN_TRY(basin_tensor_new(&t, BASIN_U8, BASIN_SHAPE((int64_t)strlen(text)), error));
    memcpy(t.data, text, strlen(text));
    return basin_bundle_add(bundle, "schema", &t, error);
}

static basin_status put_meta(basin_bundle *bundle, const basin_network *n, basin_error *error) {
    char number[32];
    snprintf(number, sizeof number, "%" PRId64, n->nodes);
    BASIN_TRY(basin_bundle_meta_set(bundle, "format", format_name, error));
    BASIN_TRY(basin_bundle_meta_set(bundle, "version", "1", error));
    BASIN_TRY(basin_bundle_meta_set(bundle, "nodes", number, error));
    BASIN_TRY(basin_bundle_meta_set(bundle, "directed", n->directed ? "true" : "false", error));
    if (n->note) BASIN_TRY(basin_bundle_meta_set(bundle, "note", n->note, error));
    return n->schema ? put_schema(bundle, n->schema, false, error) : BASIN_OK;
}

static basin_status put_nodes(basin_bundle *bundle, const basin_network *n, basin_error *error) {
    const char *key[] = {"train_masks", "val_masks", "test_masks"};
    const uint8_t *mask[] = {n->train, n->val, n->test};
    if (n->feature)
        BASIN_TRY(basin_bundle_put(bundle, "x", n->feature, BASIN_F32,
                                   BASIN_SHAPE(n->nodes, n->features), error));
    if (n->label)
        BASIN_TRY(basin_bundle_put(bundle, "y", n->label, BASIN_I32, BASIN_SHAPE(n->nodes), error));
    if (n->since)
        BASIN_TRY(
            basin_bundle_put(bundle, "since", n->since, BASIN_F64, BASIN_SHAPE(n->nodes), error));
    for (int i = 0; i < 3; i++)
        if (mask[i])
            BASIN_TRY(basin_bundle_put(bundle, key[i], mask[i], BASIN_U8,
                                       BASIN_SHAPE(n->splits, n->nodes), error));
    return BASIN_OK;
}

enum { KEY = 300 }; /* longer names of relations are refused, as by the reader */

static basin_status make_key(char key[KEY], const char *of, const char *mark,
                             const basin_relation *r, basin_error *error) {
    if (snprintf(key, KEY, "%s%s%s", of, mark, *mark ? r->name : "") < KEY) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "the name of relation '%.40s..' is too long",
                      r->name);
}

static basin_status put_relation(basin_bundle *bundle, const basin_network *n,
                                 const basin_relation *r, basin_error *error) {
    char key[KEY];
    BASIN_TRY(make_key(key, "row", ".", r, error));
    BASIN_TRY(basin_bundle_put(bundle, key, r->row, BASIN_I64, BASIN_SHAPE(n->nodes + 1), error));
    BASIN_TRY(make_key(key, "col", ".", r, error));
    BASIN_TRY(basin_bundle_put(bundle, key, r->col, BASIN_I32, BASIN_SHAPE(r->edges), error));
    if (!r->fact) return BASIN_OK;
    BASIN_TRY(make_key(key, "fact", ".", r, error));
    return basin_bundle_put(bundle, key, r->fact, BASIN_F32, BASIN_SHAPE(r->edges, n->facts.count),
                            error);
}

/* Edges [E, 2], of an undirected network each once, and their facts [E, facts]. */
static basin_status put_edges(basin_bundle *bundle, const basin_network *n, const basin_relation *r,
                              basin_error *error) {
    const char *mark = strcmp(r->name, "homo") != 0 ? "_" : "";
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor pairs = {0};
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor facts = {0};
    int64_t count = 0, F = r->fact ? n->facts.count : 0;
    char key[KEY];
    for (int64_t v = 0; v < n->nodes; v++)
        for (int64_t e = r->row[v]; e < r->row[v + 1]; e++) count += n->directed || r->col[e] <= v;
    BASIN_TRY(basin_tensor_new(&pairs, BASIN_I32, BASIN_SHAPE(count, 2), error));
    BASIN_TRY(basin_tensor_new(&facts, BASIN_F32, BASIN_SHAPE(count, F), error));
    int32_t *edge = pairs.data;
    float *fact = facts.data;
    for (int64_t v = 0; v < n->nodes; v++)
        for (int64_t e = r->row[v]; e < r->row[v + 1]; e++) {
            if (!n->directed && r->col[e] > v) continue;
            *edge++ = r->col[e], *edge++ = (int32_t)v;
            for (int64_t f = 0; f < F; f++) *fact++ = r->fact[e * F + f];
        }
    BASIN_TRY(make_key(key, "edges", mark, r, error));
    BASIN_TRY(basin_bundle_add(bundle, key, &pairs, error));
    if (!F) return BASIN_OK;
    BASIN_TRY(make_key(key, "fact", mark, r, error));
    return basin_bundle_add(bundle, key, &facts, error);
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
    BASIN_TRY(put_nodes(bundle, network, error));
    if (network->facts.count) BASIN_TRY(put_schema(bundle, network->schema, true, error));
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
