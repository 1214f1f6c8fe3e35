/* Packed sets of graphs: making one from edges in any order, writing and reading the packed form;
 * see include/basin/tasks/graphset.h. */
#include "data/graphset/graphset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"
#include "base/sort.h"
#include "base/try.h"
#include "io/bundle.h"
#include "io/file.h"

static const char *const task_name[] = {"graph classes", "node classes", "graph values"};

const char *basin_graphs_target_name(basin_graphs_target task) { return task_name[task]; }

void basin_graphset_set_name(basin_graphset *set, const char *name, size_t length) {
    if (length >= sizeof set->name) length = sizeof set->name - 1;
    memcpy(set->name, name, length);
    set->name[length] = 0;
}

void basin_graphset_free(basin_graphset *set) {
    void *array[] = {set->node_start,     set->edge_start, set->edge,        set->node_attribute,
                     set->node_label,     set->edge_label, set->class_value, set->class_of,
                     set->edge_attribute, set->target};
    if (set->file) {
        basin_bundle_free(set->file);
        free(set->own);
    } else
        for (size_t i = 0; i < sizeof array / sizeof *array; i++) free(array[i]);
    *set = (basin_graphset){0};
}

/* ---- edges ---- */

typedef struct sort_item {
    int32_t from, to, line;
} sort_item;

static int by_ends(const void *a, const void *b) {
    const sort_item *x = a, *y = b;
    if (x->from != y->from) return BASIN_COMPARE(x->from, y->from);
    return x->to != y->to ? BASIN_COMPARE(x->to, y->to) : BASIN_COMPARE(x->line, y->line);
}

/* The graph that a node belongs to. */
static int64_t graph_of(const basin_graphset *set, int64_t node) {
    int64_t low = 0, high = set->graphs;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (set->node_start[middle] <= node)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static basin_status check_edges(const basin_graphset *set, const int32_t *edge, int64_t count,
                                const char *path, const char *what, basin_error *error) {
    for (int64_t i = 0; i < count; i++) {
        for (int end = 0; end < 2; end++)
            if (edge[2 * i + end] < 0 || edge[2 * i + end] >= set->nodes)
                return basin_fail(error, BASIN_BAD_FILE,
                                  "%s: %s, line %lld: node %lld; wanted 1 to %lld", path, what,
                                  (long long)i + 1, (long long)edge[2 * i + end] + 1,
                                  (long long)set->nodes);
        int64_t graph = graph_of(set, edge[2 * i]), last = set->node_start[graph + 1];
        if (edge[2 * i + 1] < set->node_start[graph] || edge[2 * i + 1] >= last)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: %s, line %lld: an edge from node %lld of graph %lld to node "
                              "%lld of graph %lld; wanted both in one graph",
                              path, what, (long long)i + 1, (long long)edge[2 * i] + 1,
                              (long long)graph + 1, (long long)edge[2 * i + 1] + 1,
                              (long long)graph_of(set, edge[2 * i + 1]) + 1);
    }
    return BASIN_OK;
}

/* Copies the kept lines of a column table into a new one. */
static bool take_lines(void **table, size_t row_bytes, const sort_item *item, int64_t kept) {
    if (!*table) return true;
    unsigned char *fresh = basin_array_new((size_t)kept, row_bytes);
    if (!fresh) return false;
    for (int64_t i = 0; i < kept; i++)
        memcpy(fresh + (size_t)i * row_bytes,
               (unsigned char *)*table + (size_t)item[i].line * row_bytes, row_bytes);
    free(*table);
    *table = fresh;
    return true;
}

static void lay_edges(basin_graphset *set, const sort_item *item) {
    int64_t graph = 0;
    set->edge_start[0] = 0;
    for (int64_t i = 0; i < set->edges; i++) {
        while (item[i].from >= set->node_start[graph + 1]) set->edge_start[++graph] = i;
        set->edge[2 * i] = (int32_t)(item[i].from - set->node_start[graph]);
        set->edge[2 * i + 1] = (int32_t)(item[i].to - set->node_start[graph]);
    }
    while (graph < set->graphs) set->edge_start[++graph] = set->edges;
}

basin_status basin_graphset_set_edges(basin_graphset *set, const int32_t *edge, int64_t count,
                                      const char *path, const char *what, basin_error *error) {
    basin_status status = check_edges(set, edge, count, path, what, error);
    if (status) return status;
    sort_item *item = basin_array_new((size_t)count, sizeof *item);
    if (!item)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for %lld edges", path,
                          (long long)count);
    int64_t n = 0, kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (edge[2 * i] != edge[2 * i + 1])
            item[n++] = (sort_item){edge[2 * i], edge[2 * i + 1], (int32_t)i};
    qsort(item, (size_t)n, sizeof *item, by_ends);
    for (int64_t i = 0; i < n; i++)
        if (!i || item[i].from != item[kept - 1].from || item[i].to != item[kept - 1].to)
            item[kept++] = item[i];
    set->edges = kept;
    set->edge = basin_array_new((size_t)kept, 2 * sizeof *set->edge);
    set->edge_start = basin_array_new((size_t)set->graphs + 1, sizeof *set->edge_start);
    void *label = set->edge_label, *attribute = set->edge_attribute;
    bool fine = set->edge && set->edge_start &&
                take_lines(&label, (size_t)set->edge_labels * sizeof(int32_t), item, kept);
    set->edge_label = label;
    fine = fine && take_lines(&attribute, (size_t)set->edge_attributes * sizeof(float), item, kept);
    set->edge_attribute = attribute;
    if (fine)
        lay_edges(set, item);
    else
        status = basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for %lld edges", path,
                            (long long)kept);
    free(item);
    return status;
}

/* ---- classes ---- */

basin_status basin_graphset_set_classes(basin_graphset *set, const int64_t *value, int64_t count,
                                        basin_error *error) {
    set->class_value = basin_array_new((size_t)count, sizeof *set->class_value);
    set->class_of = basin_array_new((size_t)count, sizeof *set->class_of);
    if (!set->class_value || !set->class_of)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld classes",
                          (long long)count);
    memcpy(set->class_value, value, (size_t)count * sizeof *value);
    qsort(set->class_value, (size_t)count, sizeof *value, basin_compare_int64);
    set->classes = 0;
    for (int64_t i = 0; i < count; i++)
        if (!i || set->class_value[i] != set->class_value[set->classes - 1])
            set->class_value[set->classes++] = set->class_value[i];
    for (int64_t i = 0; i < count; i++) {
        const int64_t *at = bsearch(&value[i], set->class_value, (size_t)set->classes,
                                    sizeof *value, basin_compare_int64);
        set->class_of[i] = (int32_t)(at - set->class_value);
    }
    return BASIN_OK;
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

basin_status basin_graphset_write(const char *path, const basin_graphset *set, basin_error *error) {
    basin_bundle *bundle;
    part list[PARTS];
    basin_graphset view = *set;
    list_parts(list, &view);
    basin_status status = basin_bundle_new(&bundle, error);
    if (status) return status;
    for (int i = 0; i < PARTS && !status; i++) {
        if (!*list[i].data) continue;
        basin_shape shape = list[i].columns ? BASIN_SHAPE(list[i].rows, list[i].columns)
                                            : BASIN_SHAPE(list[i].rows);
        basin_tensor tensor = basin_tensor_borrow(*list[i].data, list[i].dtype, shape);
        status = basin_bundle_add(bundle, list[i].name, &tensor, error);
    }
    char text[100];
    snprintf(text, sizeof text, "%lld %lld %lld", (long long)set->split[0],
             (long long)set->split[1], (long long)set->split[2]);
    if (!status) status = basin_bundle_meta_set(bundle, "format", "basin graph set 1", error);
    if (!status) status = basin_bundle_meta_set(bundle, "name", set->name, error);
    if (!status) status = basin_bundle_meta_set(bundle, "task", task_name[set->task], error);
    if (!status) status = basin_bundle_meta_set(bundle, "split", text, error);
    if (!status) status = basin_safetensors_write(path, bundle, error);
    basin_bundle_free(bundle);
    return status;
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

static basin_status check_numbers(const basin_graphset *s, const char *path, basin_error *error) {
    basin_status status =
        check_starts(s->node_start, s->graphs, s->nodes, path, "node_start", error);
    if (!status)
        status = check_starts(s->edge_start, s->graphs, s->edges, path, "edge_start", error);
    for (int64_t g = 0; g < s->graphs && !status; g++) {
        int64_t n = s->node_start[g + 1] - s->node_start[g];
        for (int64_t e = s->edge_start[g]; e < s->edge_start[g + 1] && !status; e++) {
            const int32_t *at = s->edge + 2 * e;
            bool first = e == s->edge_start[g];
            bool rises = first || at[0] > at[-2] || (at[0] == at[-2] && at[1] > at[-1]);
            if (at[0] < 0 || at[0] >= n || at[1] < 0 || at[1] >= n || at[0] == at[1] || !rises)
                status =
                    basin_fail(error, BASIN_BAD_FILE,
                               "%s: edge %lld joins %d and %d in a graph of %lld nodes; wanted "
                               "two numbers below that, in ascending order",
                               path, (long long)e, at[0], at[1], (long long)n);
        }
    }
    int64_t items = s->task == BASIN_NODE_CLASSES ? s->nodes : s->graphs;
    for (int64_t i = 0; s->class_of && i < items && !status; i++)
        if (s->class_of[i] < -1 || s->class_of[i] >= s->classes)
            status = basin_fail(error, BASIN_BAD_FILE, "%s: class_of[%lld] is %d of %lld classes",
                                path, (long long)i, s->class_of[i], (long long)s->classes);
    return status;
}

static basin_status find_parts(basin_graphset *set, const char *path, basin_error *error) {
    part list[PARTS];
    char have[BASIN_SHAPE_TEXT], want[BASIN_SHAPE_TEXT];
    list_parts(list, set);
    for (int i = 0; i < PARTS; i++) {
        const basin_tensor *t = basin_bundle_find(set->file, list[i].name);
        if (!t && list[i].optional) continue;
        if (!t) return basin_fail(error, BASIN_BAD_FILE, "%s: no tensor '%s'", path, list[i].name);
        basin_shape shape = list[i].columns ? BASIN_SHAPE(list[i].rows, list[i].columns)
                                            : BASIN_SHAPE(list[i].rows);
        if (t->dtype != list[i].dtype || !basin_shape_equal(t->shape, shape))
            return basin_fail(error, BASIN_BAD_FILE, "%s: '%s' is %s %s; wanted %s %s", path,
                              list[i].name, basin_dtype_name(t->dtype),
                              basin_shape_print(have, t->shape), basin_dtype_name(list[i].dtype),
                              basin_shape_print(want, shape));
        *list[i].data = t->data;
    }
    return BASIN_OK;
}

/* Three sizes that make up the set, or three zeros; each is compared, their sum might overflow. */
static bool is_split(basin_graphset *set, const char *text) {
    int64_t left = set->graphs, *size = set->split;
    for (int i = 0; i < 3; i++) {
        if (!basin_integer_read(&size[i], &text) || size[i] < 0 || size[i] > left) return false;
        left -= size[i];
    }
    return !*text && (!left || left == set->graphs);
}

static basin_status read_split(basin_graphset *set, const char *split, const char *path,
                               basin_error *error) {
    if (!split || is_split(set, split)) return BASIN_OK;
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
    *set = (basin_graphset){.file = bundle};
    for (int i = 0; i < 3; i++)
        if (task && !strcmp(task, task_name[i])) set->task = (basin_graphs_target)i;
    if (name) basin_graphset_set_name(set, name, strlen(name));
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

static bool ends_with(const char *path, const char *end) {
    size_t n = strlen(path), m = strlen(end);
    return n >= m && !strcmp(path + n - m, end);
}

/* A header's length in eight bytes, then JSON: whatever the file is called. */
static bool is_safetensors(const char *path) {
    basin_map map;
    if (ends_with(path, ".safetensors")) return true;
    if (basin_map_open(&map, path, NULL)) return false;
    bool is = map.size >= 9 && map.data[8] == '{';
    basin_map_close(&map);
    return is;
}

basin_status basin_graphset_from_bundle(basin_graphset *set, basin_bundle *bundle, const char *path,
                                        basin_error *error) {
    const char *format = basin_bundle_meta(bundle, "format");
    basin_status status;
    if (format && !strcmp(format, "basin graph set 1"))
        status = read_packed(set, bundle, path, error);
    else {
        status = basin_graphset_from_zinc(set, bundle, error);
        basin_bundle_free(bundle);
    }
    if (status) basin_graphset_free(set);
    return status;
}

static basin_status read_any(basin_graphset *set, const char *path, bool bare, basin_error *error) {
    struct stat info;
    *set = (basin_graphset){0};
    bool folder = !stat(path, &info) && S_ISDIR(info.st_mode), npz = ends_with(path, ".npz");
    if (folder || (!npz && !is_safetensors(path)))
        return basin_graphset_open_tu(set, path, bare, error);
    basin_bundle *bundle;
    BASIN_TRY(basin_bundle_read_numbers(&bundle, path, true, error));
    return basin_graphset_from_bundle(set, bundle, path, error);
}

basin_status basin_graphset_read(basin_graphset *set, const char *path, basin_error *error) {
    return read_any(set, path, false, error);
}

basin_status basin_graphset_read_bare(basin_graphset *set, const char *path, basin_error *error) {
    return read_any(set, path, true, error);
}
