/* Networks as npz, or any bundle with the same names:
 *
 *     x [N, F] features      y [N] labels, 0 or 1, -1 unknown; or [N, C] one-hot
 *     edges [E, 2]           undirected, each listed once or twice; the relation "homo"
 *     edges_NAME [E, 2]      the relation NAME
 *     edge.COLUMN [E]        what edges carry, a number each; edge_NAME.COLUMN of edges_NAME. All
 *                            relations have the same columns
 *     labelled [N]           0 where the label does not count
 *     train_mask(s), val_mask(s), test_mask(s) [N] or [splits, N]
 *
 * node_features and node_labels, as the heterophilous sets have them, stand for x and y. All are
 * optional but one of x and y, which says how many nodes there are, and edges. */
#include <inttypes.h>

#include "base/bundle.h"
#include "base/shape.h"
#include "base/text.h"
#include "tasks/nodes/network/network.h"

static const basin_tensor *find_either(const basin_bundle *bundle, const char *name,
                                       const char *other) {
    const basin_tensor *t = basin_bundle_find(bundle, name);
    return t ? t : basin_bundle_find(bundle, other);
}

static const basin_tensor *find_y(const basin_bundle *bundle) {
    return find_either(bundle, "y", "node_labels");
}

/* ---- what edges carry ---- */

/* The column that `key` has of the edges called `edges`, or NULL. */
static const char *column_of(const char *key, const char *edges) {
    const char *relation = edges + strlen("edges");
    size_t length = strlen(relation);
    if (strncmp(key, "edge", 4) != 0 || strncmp(key + 4, relation, length) != 0) return NULL;
    return key[4 + length] == '.' ? key + 5 + length : NULL;
}

/* The columns of the first edges become the schema's. */
static basin_status list_columns(basin_network *n, const basin_bundle *bundle, const char *edges,
                                 basin_error *error) {
    bool timed = false;
    for (size_t i = 0; i < basin_bundle_count(bundle); i++) {
        const char *name = column_of(basin_bundle_name(bundle, i), edges);
        if (!name) continue;
        if (!n->schema) BASIN_TRY(basin_schema_of(&n->schema, n, BASIN_MISSING_ERROR, error));
        basin_schema_column c = {.name = (char *)(uintptr_t)name,
                                 .type = BASIN_COLUMN_NUMBER,
                                 .time = !timed && basin_column_sounds_like_time(name),
                                 .mean = NAN};
        timed = timed || c.time;
        BASIN_TRY(basin_schema_add(n->schema, &n->schema->edges, &c, error));
    }
    return n->schema ? basin_schema_facts(&n->facts, n->schema, error) : BASIN_OK;
}

/* Column `c` of the edges, into cell [count, cells], and into time [count] where it is that. */
static basin_status read_column(float *cell, double *time, const basin_network *n,
                                const basin_bundle *bundle, const char *edges, size_t c,
                                int64_t count, basin_error *error) {
    char key[300];
    const basin_tensor *t;
    snprintf(key, sizeof key, "edge%.140s.%.140s", edges + strlen("edges"),
             n->schema->edges.column[c].name);
    BASIN_TRY(basin_bundle_get(&t, bundle, key, error));
    if (basin_shape_count(t->shape) != count)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: %s has %" PRId64 " numbers, expected one for each of %" PRId64
                          " edges",
                          n->path, key, basin_shape_count(t->shape), count);
    for (int64_t i = 0; i < count; i++) {
        float x = (float)basin_tensor_at(t, i);
        if (!isfinite(x))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: %s holds %g for edge %" PRId64 ", expected a number", n->path,
                              key, (double)x, i);
        cell[i * n->schema->cells + (int64_t)c] = x;
        if (n->schema->edges.column[c].time) time[i] = basin_tensor_at(t, i);
    }
    return BASIN_OK;
}

static basin_status add_facts(basin_network *n, const basin_bundle *bundle, const char *key,
                              const basin_edges *edges, basin_error *error) {
    size_t count, cells = (size_t)n->schema->cells;
    if (!basin_size_multiply(&count, (size_t)edges->count, cells))
        return basin_fail_memory(error, "facts");
    BASIN_SCRATCH_RAW(float, cell, count, "facts", error);
    BASIN_SCRATCH_RAW(double, time, edges->count, "facts", error);
    for (size_t c = 0; c < cells; c++)
        BASIN_TRY(read_column(cell, time, n, bundle, key, c, edges->count, error));
    return basin_network_add_facts(n, &n->relation[n->relations - 1], edges, cell,
                                   n->facts.time < 0 ? NULL : time, error);
}

/* ---- edges ---- */

static basin_status add_edges(basin_network *n, const char *key, const char *name,
                              const basin_bundle *bundle, const basin_tensor *t,
                              const basin_network_options *o, basin_error *error) {
    if (t->shape.rank != 2 || t->shape.dim[1] != 2)
        return basin_fail(error, BASIN_BAD_SHAPE, "%s: %s is %s, expected [E, 2]", n->path, key,
                          basin_shape_text(t->shape));
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor wide = {0};
    if (t->dtype != BASIN_I32 && t->dtype != BASIN_I64) {
        if (t->dtype <= BASIN_BF16)
            return basin_fail(error, BASIN_BAD_FILE, "%s: %s holds %s, expected whole numbers",
                              n->path, key, basin_dtype_name(t->dtype));
        BASIN_TRY(basin_tensor_new(&wide, BASIN_I32, t->shape, error));
        BASIN_TRY(basin_tensor_convert(&wide, t, error));
        t = &wide;
    }
    basin_edges edges = {.from = t->data,
                         .to = (const char *)t->data + basin_dtype_size(t->dtype),
                         .dtype = t->dtype,
                         .stride = 2,
                         .count = t->shape.dim[0]};
    if (!n->relations) BASIN_TRY(list_columns(n, bundle, key, error));
    BASIN_TRY(basin_network_add_relation(n, name, &edges, o, error));
    return n->facts.count ? add_facts(n, bundle, key, &edges, error) : BASIN_OK;
}

static basin_status add_relations(basin_network *n, const basin_bundle *bundle,
                                  const basin_network_options *o, basin_error *error) {
    for (size_t i = 0; i < basin_bundle_count(bundle); i++) {
        const char *key = basin_bundle_name(bundle, i);
        const char *name = !strcmp(key, "edges")        ? "homo"
                           : !strncmp(key, "edges_", 6) ? key + 6
                                                        : NULL;
        if (!name) continue;
        BASIN_TRY(add_edges(n, key, name, bundle, basin_bundle_at(bundle, i), o, error));
    }
    if (n->relations) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: no edges, expected edges [E, 2] or edges_NAME",
                      n->path);
}

static basin_status add_labels(basin_network *n, const basin_bundle *bundle,
                               const basin_network_options *o, basin_error *error) {
    const basin_tensor *y = find_y(bundle);
    const basin_tensor *labelled = basin_bundle_find(bundle, "labelled");
    if (!y) return BASIN_OK;
    BASIN_TRY(basin_network_set_label_tensor(n, y, o, error));
    if (!labelled) return BASIN_OK;
    if (basin_shape_count(labelled->shape) != n->nodes)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: labelled has %" PRId64 " entries, expected %" PRId64, n->path,
                          basin_shape_count(labelled->shape), n->nodes);
    for (int64_t i = 0; i < n->nodes; i++)
        if (basin_tensor_at(labelled, i) == 0) n->label[i] = -1;
    basin_network_finish_labels(n, o);
    return BASIN_OK;
}

static basin_status add_masks(basin_network *n, const basin_bundle *bundle, basin_error *error) {
    static const char *const key[][3] = {{"train_masks", "train_mask", "train"},
                                         {"val_masks", "val_mask", "val"},
                                         {"test_masks", "test_mask", "test"}};
    for (int i = 0; i < 3; i++) {
        const basin_tensor *mask = find_either(bundle, key[i][0], key[i][1]);
        if (mask) BASIN_TRY(basin_network_set_masks(n, key[i][2], mask, error));
    }
    return BASIN_OK;
}

/* ---- what is left ---- */

static bool is_read(const basin_network *n, const basin_bundle *bundle, const char *name) {
    static const char *const fixed[] = {"x",         "node_features", "y",           "node_labels",
                                        "labelled",  "train_mask",    "train_masks", "val_mask",
                                        "val_masks", "test_mask",     "test_masks",  "edges",
                                        NULL};
    for (const char *const *one = fixed; *one; one++)
        if (!strcmp(name, *one)) return true;
    if (!strncmp(name, "edges_", 6)) return true;
    for (size_t i = 0; i < basin_bundle_count(bundle); i++) {
        const char *edges = basin_bundle_name(bundle, i), *column;
        if (strncmp(edges, "edges", 5) != 0 || !(column = column_of(name, edges))) continue;
        if (n->schema && basin_schema_find(&n->schema->edges, column)) return true;
    }
    return false;
}

/* An array under another name, edge_attr for instance, is a mistake that nothing else shows. */
static void note_rest(basin_network *n, const basin_bundle *bundle) {
    basin_list rest = {0};
    for (size_t i = 0; i < basin_bundle_count(bundle); i++)
        if (!is_read(n, bundle, basin_bundle_name(bundle, i)))
            basin_list_add(&rest, basin_bundle_name(bundle, i));
    if (rest.count) basin_network_add_note(n, "arrays not read: %s", rest.text);
}

basin_status basin_network_npz_read(basin_network **network, const basin_bundle *bundle,
                                    const basin_network_options *options, basin_error *error) {
    const basin_network_options *o = basin_network_options_or(options);
    const basin_tensor *x = find_either(bundle, "x", "node_features");
    const basin_tensor *one = x ? x : find_y(bundle);
    BASIN_NETWORK_AT_EXIT basin_network *n = NULL;
    *network = NULL;
    if (basin_bundle_meta(bundle, "basin.model"))
        return basin_fail(error, BASIN_BAD_FILE, "%s: is a model, expected a network or tables",
                          basin_bundle_path(bundle));
    if (!one || one->shape.rank < 1)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: neither x [N, F] nor y [N] is there, expected one of them and edges",
                          basin_bundle_path(bundle));
    BASIN_TRY(basin_network_new(&n, basin_bundle_path(bundle), one->shape.dim[0], error));
    if (x) BASIN_TRY(basin_network_set_features(n, x, o, error));
    BASIN_TRY(add_labels(n, bundle, o, error));
    BASIN_TRY(add_masks(n, bundle, error));
    BASIN_TRY(add_relations(n, bundle, o, error));
    note_rest(n, bundle);
    *network = n, n = NULL;
    return BASIN_OK;
}
