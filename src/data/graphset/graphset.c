/* Sets of graphs in files: the packed form, written and read; see include/basin/tasks/graphset.h.
 */
#include "data/graphset/graphset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/sort.h"
#include "base/try.h"
#include "io/bundle.h"
#include "io/file.h"

static const char *const task_name[] = {"graph classes", "node classes", "graph values"};

const char *basin_graphs_target_name(basin_graphs_target task) { return task_name[task]; }

void basin_graphset_free(basin_graphset *set) {
    void *array[] = {set->node_start,     set->edge_start, set->edge,        set->node_attribute,
                     set->node_label,     set->edge_label, set->class_value, set->class_of,
                     set->edge_attribute, set->target};
    for (size_t i = 0; !set->file && i < sizeof array / sizeof *array; i++) free(array[i]);
    basin_bundle_free(set->file);
    *set = (basin_graphset){0};
}

/* ---- the packed form ---- */

/* The arrays of a set as tensors: name, place, type, columns (0: a vector), rows. */
typedef struct part {
    const char *name;
    void **data;
    basin_dtype dtype;
    int64_t rows, columns;
    bool optional;
} part;

enum { PARTS = 10 };
static const char FORMAT[] = "basin graph set 1";

static void list_parts(part list[PARTS], basin_graphset *s) {
    int64_t items = s->task == BASIN_NODE_CLASSES ? s->nodes : s->graphs;
    const part all[PARTS] = {
        {"node_start", (void **)&s->node_start, BASIN_I64, s->graphs + 1, 0, false},
        {"edge_start", (void **)&s->edge_start, BASIN_I64, s->graphs + 1, 0, false},
        {"edge", (void **)&s->edge, BASIN_I32, s->edges, 2, false},
        {"node_attribute", (void **)&s->node_attribute, BASIN_F32, s->nodes, s->node_attributes,
         true},
        {"node_label", (void **)&s->node_label, BASIN_I32, s->nodes, s->node_labels, true},
        {"edge_attribute", (void **)&s->edge_attribute, BASIN_F32, s->edges, s->edge_attributes,
         true},
        {"edge_label", (void **)&s->edge_label, BASIN_I32, s->edges, s->edge_labels, true},
        {"class_value", (void **)&s->class_value, BASIN_I64, s->classes, 0, true},
        {"class_of", (void **)&s->class_of, BASIN_I32, items, 0, true},
        {"target", (void **)&s->target, BASIN_F32, s->graphs, s->targets, true},
    };
    memcpy(list, all, sizeof all);
}

static basin_shape shape_of(const part *p) {
    return p->columns ? BASIN_SHAPE(p->rows, p->columns) : BASIN_SHAPE(p->rows);
}

basin_status basin_graphset_write(const char *path, const basin_graphset *set, basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    part list[PARTS];
    basin_graphset view = *set;
    char split[100];
    snprintf(split, sizeof split, "%lld %lld %lld", (long long)set->split[0],
             (long long)set->split[1], (long long)set->split[2]);
    const char *const meta[][2] = {
        {"format", FORMAT}, {"name", set->name}, {"task", task_name[set->task]}, {"split", split}};
    list_parts(list, &view);
    BASIN_TRY(basin_bundle_new(&bundle, error));
    for (int i = 0; i < PARTS; i++) {
        const part *p = &list[i];
        if (*p->data)
            BASIN_TRY(basin_bundle_put(bundle, p->name, *p->data, p->dtype, shape_of(p), error));
    }
    for (int i = 0; i < 4; i++)
        BASIN_TRY(basin_bundle_meta_set(bundle, meta[i][0], meta[i][1], error));
    return basin_safetensors_write(path, bundle, error);
}

/* Sizes from the tensors' shapes, before the arrays are checked against them. */
static void read_sizes(basin_graphset *set, const basin_bundle *bundle) {
    struct {
        const char *name;
        int axis;
        int64_t *size;
    } want[] = {{"node_start", 0, &set->graphs},
                {"edge", 0, &set->edges},
                {"node_attribute", 1, &set->node_attributes},
                {"node_label", 1, &set->node_labels},
                {"edge_attribute", 1, &set->edge_attributes},
                {"edge_label", 1, &set->edge_labels},
                {"class_value", 0, &set->classes},
                {"target", 1, &set->targets}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const basin_tensor *t = basin_bundle_find(bundle, want[i].name);
        if (t && t->shape.rank > want[i].axis) *want[i].size = t->shape.dim[want[i].axis];
    }
    set->graphs--;
}

static basin_status check_starts(const int64_t *start, int64_t graphs, int64_t total,
                                 const char *path, const char *name, basin_error *error) {
    bool rising = start[0] == 0 && start[graphs] == total;
    for (int64_t g = 0; g < graphs && rising; g++) rising = start[g] <= start[g + 1];
    if (rising) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: '%s' does not rise from 0 to %lld", path, name,
                      (long long)total);
}

/* Attributes are finite, values too or not known, and labels no more columns than an encoding has.
 */
static basin_status check_columns(const basin_graphset *s, const char *path, basin_error *error) {
    const struct {
        const char *name;
        const float *number;
        int64_t count;
    } real[] = {{"node_attribute", s->node_attribute, s->nodes * s->node_attributes},
                {"edge_attribute", s->edge_attribute, s->edges * s->edge_attributes},
                {"target", s->target, s->graphs * s->targets}};
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; real[i].number && k < real[i].count; k++)
            if (!isfinite(real[i].number[k]) && !(i == 2 && isnan(real[i].number[k])))
                return basin_fail(error, BASIN_BAD_FILE,
                                  "%s: '%s' has %g at element %lld, wanted finite numbers", path,
                                  real[i].name, (double)real[i].number[k], (long long)k);
    if (s->node_labels <= BASIN_MAX_LABELS && s->edge_labels <= BASIN_MAX_LABELS) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: %lld columns of node labels and %lld of edge labels, wanted %d at most",
                      path, (long long)s->node_labels, (long long)s->edge_labels, BASIN_MAX_LABELS);
}

static basin_status check_edges(const basin_graphset *s, int64_t g, const char *path,
                                basin_error *error) {
    int64_t n = s->node_start[g + 1] - s->node_start[g];
    for (int64_t e = s->edge_start[g]; e < s->edge_start[g + 1]; e++) {
        const int32_t *at = s->edge + 2 * e;
        bool first = e == s->edge_start[g];
        bool rises = first || at[0] > at[-2] || (at[0] == at[-2] && at[1] > at[-1]);
        if (at[0] < 0 || at[0] >= n || at[1] < 0 || at[1] >= n || at[0] == at[1] || !rises)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: edge %lld joins %d and %d in a graph of %lld nodes; wanted two "
                              "numbers below that, in ascending order",
                              path, (long long)e, at[0], at[1], (long long)n);
    }
    return BASIN_OK;
}

static basin_status check_numbers(const basin_graphset *s, const char *path, basin_error *error) {
    int64_t items = s->task == BASIN_NODE_CLASSES ? s->nodes : s->graphs;
    BASIN_TRY(check_starts(s->node_start, s->graphs, s->nodes, path, "node_start", error));
    BASIN_TRY(check_starts(s->edge_start, s->graphs, s->edges, path, "edge_start", error));
    for (int64_t g = 0; g < s->graphs; g++) BASIN_TRY(check_edges(s, g, path, error));
    for (int64_t i = 0; s->class_of && i < items; i++)
        if (s->class_of[i] < -1 || s->class_of[i] >= s->classes)
            return basin_fail(error, BASIN_BAD_FILE, "%s: class_of[%lld] is %d of %lld classes",
                              path, (long long)i, s->class_of[i], (long long)s->classes);
    return BASIN_OK;
}

static basin_status find_parts(basin_graphset *set, const char *path, basin_error *error) {
    part list[PARTS];
    char have[BASIN_SHAPE_TEXT], want[BASIN_SHAPE_TEXT];
    list_parts(list, set);
    for (int i = 0; i < PARTS; i++) {
        const basin_tensor *t = basin_bundle_find(set->file, list[i].name);
        if (!t && list[i].optional) continue;
        if (!t) return basin_fail(error, BASIN_BAD_FILE, "%s: no tensor '%s'", path, list[i].name);
        basin_shape shape = shape_of(&list[i]);
        if (t->dtype != list[i].dtype || !basin_shape_equal(t->shape, shape))
            return basin_fail(error, BASIN_BAD_FILE, "%s: '%s' is %s %s; wanted %s %s", path,
                              list[i].name, basin_dtype_name(t->dtype),
                              basin_shape_print(have, t->shape), basin_dtype_name(list[i].dtype),
                              basin_shape_print(want, shape));
        *list[i].data = t->data;
    }
    return BASIN_OK;
}

/* Each is compared, their sum might overflow. */
bool basin_graphset_is_split(const basin_graphset *set) {
    int64_t left = set->graphs;
    for (int i = 0; i < 3; i++) {
        if (set->split[i] < 0 || set->split[i] > left) return false;
        left -= set->split[i];
    }
    return !left || left == set->graphs;
}

static basin_status read_split(basin_graphset *set, const char *split, const char *path,
                               basin_error *error) {
    const char *at = split;
    bool good = true;
    if (!split) return BASIN_OK;
    for (int i = 0; i < 3; i++) good = good && basin_integer_read(&set->split[i], &at);
    if (good && !*at && basin_graphset_is_split(set)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: a split into %s of %lld graphs", path, split,
                      (long long)set->graphs);
}

/* A set may have no array of nodes, so that their number has nothing else behind it. */
static basin_status set_nodes(basin_graphset *set, int64_t nodes, const char *path,
                              basin_error *error) {
    if (nodes < 0 || nodes > INT32_MAX)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %lld nodes, wanted 0 to %d", path,
                          (long long)nodes, INT32_MAX);
    set->nodes = nodes;
    return basin_memory_check(16.0 * (double)nodes, 0, path, BASIN_NO_MEMORY, error);
}

static basin_status read_packed(basin_graphset *set, basin_bundle *bundle, const char *path,
                                basin_error *error) {
    const char *task = basin_bundle_meta(bundle, "task"), *name = basin_bundle_meta(bundle, "name");
    const char *split = basin_bundle_meta(bundle, "split");
    const basin_tensor *start = basin_bundle_find(bundle, "node_start");
    for (int i = 0; i < 3; i++)
        if (task && !strcmp(task, task_name[i])) set->task = (basin_graphs_target)i;
    if (name) snprintf(set->name, sizeof set->name, "%s", name);
    read_sizes(set, bundle);
    if (start && set->graphs < 1)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: has no graphs: 'node_start' has no two entries", path);
    BASIN_TRY(read_split(set, split, path, error));
    if (start && start->dtype == BASIN_I64 && start->shape.rank == 1)
        BASIN_TRY(set_nodes(set, ((const int64_t *)start->data)[set->graphs], path, error));
    BASIN_TRY(find_parts(set, path, error));
    BASIN_TRY(check_numbers(set, path, error));
    return check_columns(set, path, error);
}

/* ---- reading whatever it is ---- */

basin_status basin_graphset_from_bundle(basin_graphset *set, basin_bundle *bundle, const char *path,
                                        basin_error *error) {
    const char *format = basin_bundle_meta(bundle, "format");
    if (!format || strcmp(format, FORMAT) != 0) {
        basin_status status = basin_graphset_from_zinc(set, bundle, error);
        basin_bundle_free(bundle);
        return status;
    }
    *set = (basin_graphset){.file = bundle};
    basin_status status = read_packed(set, bundle, path, error);
    if (status) basin_graphset_free(set);
    return status;
}

/* Of tensors: npz by its name, for TUDatasets are zip files, too; or a header's length in eight
 * bytes, then JSON, whatever the file is called. */
static bool is_bundle(const char *path) {
    BASIN_AT_EXIT(basin_map_close) basin_map map = {0};
    size_t length = strlen(path);
    if (basin_map_open(&map, path, NULL)) return false;
    return (length > 4 && !strcmp(path + length - 4, ".npz")) ||
           (map.size >= 9 && map.data[8] == '{');
}

static basin_status read_any(basin_graphset *set, const char *path, bool bare, basin_error *error) {
    basin_bundle *bundle;
    *set = (basin_graphset){0};
    if (!is_bundle(path)) return basin_graphset_open_tu(set, path, bare, error);
    BASIN_TRY(basin_bundle_read_numbers(&bundle, path, true, error));
    return basin_graphset_from_bundle(set, bundle, path, error);
}

basin_status basin_graphset_read(basin_graphset *set, const char *path, basin_error *error) {
    return read_any(set, path, false, error);
}

basin_status basin_graphset_read_bare(basin_graphset *set, const char *path, basin_error *error) {
    return read_any(set, path, true, error);
}
