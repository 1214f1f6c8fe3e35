/* Sets of graphs from arrays in memory, with the checks that files get; see
 * include/basin/tasks/graphset.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/graphset/graphset.h"

static basin_status no_memory(const basin_graphset *set, basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for the set", set->name);
}

/* ---- columns ---- */

/* `missing`: NaN stands for a value that is not known. */
static basin_status check_finite(const float *value, int64_t count, const char *what, bool missing,
                                 const basin_graphset *set, basin_error *error) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(value[i]) && !(missing && isnan(value[i])))
            return basin_fail(error, BASIN_BAD_VALUE, "%s: %s[%lld] is %g, wanted finite numbers",
                              set->name, what, (long long)i, (double)value[i]);
    return BASIN_OK;
}

/* `copies` times the 4-byte numbers [rows, columns] into a new array; none where there are no
 * columns. */
static basin_status copy(void *to, const void *from, int64_t rows, int64_t columns, int copies,
                         const char *what, const basin_graphset *set, basin_error *error) {
    size_t count, bytes;
    void **array = to;
    if (columns < 0 || (columns > 0) != (from != NULL))
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %s has %lld columns and %s array", set->name,
                          what, (long long)columns, from ? "an" : "no");
    if (!columns) return BASIN_OK;
    if (!basin_size_multiply(&count, (size_t)rows, (size_t)columns) ||
        !basin_size_multiply(&bytes, count, 4) ||
        !(*array = basin_array_new(bytes, (size_t)copies)))
        return no_memory(set, error);
    for (int i = 0; i < copies; i++) memcpy((char *)*array + bytes * (size_t)i, from, bytes);
    return BASIN_OK;
}

static basin_status copy_reals(float **to, const float *from, int64_t rows, int64_t columns,
                               int copies, const char *what, const basin_graphset *set,
                               basin_error *error) {
    basin_status status = copy(to, from, rows, columns, copies, what, set, error);
    return status || !columns ? status
                              : check_finite(from, rows * columns, what, false, set, error);
}

static basin_status copy_labels(int32_t **to, const int32_t *from, int64_t rows, int64_t columns,
                                int copies, const char *what, const basin_graphset *set,
                                basin_error *error) {
    if (columns > BASIN_MAX_LABELS)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %s has %lld columns, wanted %d at most",
                          set->name, what, (long long)columns, BASIN_MAX_LABELS);
    return copy(to, from, rows, columns, copies, what, set, error);
}

/* ---- nodes and edges ---- */

static basin_status take_nodes(basin_graphset *set, const basin_graphset_arrays *a,
                               basin_error *error) {
    if (a->graphs < 1 || a->graphs >= INT32_MAX || !a->nodes)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %lld graphs%s, wanted 1 or more", set->name,
                          (long long)a->graphs, a->nodes ? "" : " without numbers of nodes");
    set->graphs = a->graphs;
    set->node_start = basin_array_new((size_t)a->graphs + 1, sizeof *set->node_start);
    if (!set->node_start) return no_memory(set, error);
    set->node_start[0] = 0;
    for (int64_t g = 0; g < a->graphs; g++) {
        if (a->nodes[g] < 0 || a->nodes[g] > INT32_MAX - set->nodes)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: nodes[%lld] is %lld, wanted 0 or more, below 2^31 in all",
                              set->name, (long long)g, (long long)a->nodes[g]);
        set->node_start[g + 1] = set->nodes += a->nodes[g];
    }
    return BASIN_OK;
}

/* The graph of each node; free it. */
static int32_t *owners(const basin_graphset *set) {
    int32_t *owner = basin_array_new((size_t)set->nodes, sizeof *owner);
    for (int64_t g = 0; owner && g < set->graphs; g++)
        for (int64_t n = set->node_start[g]; n < set->node_start[g + 1]; n++) owner[n] = (int32_t)g;
    return owner;
}

static basin_status check_edges(const basin_graphset *set, const basin_graphset_arrays *a,
                                const int32_t *owner, basin_error *error) {
    for (int64_t i = 0; i < a->edges; i++) {
        int64_t from = a->from[i], to = a->to[i];
        if (from < 0 || from >= set->nodes || to < 0 || to >= set->nodes)
            return basin_fail(
                error, BASIN_BAD_VALUE, "%s: edge %lld joins nodes %lld and %lld, wanted 0 to %lld",
                set->name, (long long)i, (long long)from, (long long)to, (long long)set->nodes - 1);
        if (owner[from] != owner[to])
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: edge %lld joins node %lld of graph %d and node %lld of graph "
                              "%d, wanted both in one graph",
                              set->name, (long long)i, (long long)from, owner[from], (long long)to,
                              owner[to]);
    }
    return BASIN_OK;
}

static basin_status set_edges(basin_graphset *set, const basin_graphset_arrays *a, int copies,
                              basin_error *error) {
    int64_t count = a->edges * copies;
    int32_t *edge = basin_array_new((size_t)count, 2 * sizeof *edge);
    if (!edge) return no_memory(set, error);
    for (int64_t i = 0; i < count; i++) {
        bool back = i >= a->edges;
        int64_t k = back ? i - a->edges : i;
        edge[2 * i] = (int32_t)(back ? a->to[k] : a->from[k]);
        edge[2 * i + 1] = (int32_t)(back ? a->from[k] : a->to[k]);
    }
    basin_status status = basin_graphset_set_edges(set, edge, count, set->name, "edges", error);
    free(edge);
    return status;
}

static basin_status take_edges(basin_graphset *set, const basin_graphset_arrays *a,
                               basin_error *error) {
    int copies = a->undirected ? 2 : 1;
    if (a->edges < 0 || a->edges > INT32_MAX / copies || (a->edges && (!a->from || !a->to)))
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %lld edges%s, wanted 0 to 2^31 - 1",
                          set->name, (long long)a->edges,
                          a->from && a->to ? "" : " without their nodes");
    int32_t *owner = owners(set);
    if (!owner) return no_memory(set, error);
    basin_status status = check_edges(set, a, owner, error);
    free(owner);
    set->edge_attributes = a->edge_attributes;
    set->edge_labels = a->edge_labels;
    if (!status)
        status = copy_reals(&set->edge_attribute, a->edge_attribute, a->edges, a->edge_attributes,
                            copies, "edge_attribute", set, error);
    if (!status)
        status = copy_labels(&set->edge_label, a->edge_label, a->edges, a->edge_labels, copies,
                             "edge_label", set, error);
    return status ? status : set_edges(set, a, copies, error);
}

/* ---- what is to be learnt, and how the set is divided ---- */

static basin_status take_targets(basin_graphset *set, const basin_graphset_arrays *a,
                                 basin_error *error) {
    int given = (a->graph_class != NULL) + (a->node_class != NULL) + (a->target != NULL);
    if (given > 1)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: %d of graph_class, node_class and target; wanted one at most",
                          set->name, given);
    set->task = a->node_class ? BASIN_NODE_CLASSES
                : a->target   ? BASIN_GRAPHS_VALUES
                              : BASIN_GRAPHS_CLASSES;
    set->targets = a->targets;
    if (a->graph_class) return basin_graphset_set_classes(set, a->graph_class, set->graphs, error);
    if (a->node_class) return basin_graphset_set_classes(set, a->node_class, set->nodes, error);
    basin_status status =
        copy(&set->target, a->target, set->graphs, a->targets, 1, "target", set, error);
    if (status || !a->targets) return status;
    return check_finite(a->target, set->graphs * a->targets, "target", true, set, error);
}

static basin_status take_split(basin_graphset *set, const basin_graphset_arrays *a,
                               basin_error *error) {
    int64_t left = set->graphs;
    bool good = true, some = false;
    for (int i = 0; i < 3 && good; i++) {
        set->split[i] = a->split[i];
        good = a->split[i] >= 0 && a->split[i] <= left;
        some = some || a->split[i];
        left -= good ? a->split[i] : 0;
    }
    if (good && (!some || !left)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s: a split into %lld, %lld, %lld of %lld graphs",
                      set->name, (long long)a->split[0], (long long)a->split[1],
                      (long long)a->split[2], (long long)set->graphs);
}

static basin_status take(basin_graphset *set, const basin_graphset_arrays *a, basin_error *error) {
    basin_status status = take_nodes(set, a, error);
    set->node_attributes = a->node_attributes;
    set->node_labels = a->node_labels;
    if (!status)
        status = copy_reals(&set->node_attribute, a->node_attribute, set->nodes, a->node_attributes,
                            1, "node_attribute", set, error);
    if (!status)
        status = copy_labels(&set->node_label, a->node_label, set->nodes, a->node_labels, 1,
                             "node_label", set, error);
    if (!status) status = take_edges(set, a, error);
    if (!status) status = take_targets(set, a, error);
    return status ? status : take_split(set, a, error);
}

basin_status basin_graphset_from_arrays(basin_graphset *set, const basin_graphset_arrays *arrays,
                                        basin_error *error) {
    const char *name = arrays->name ? arrays->name : "graphs";
    *set = (basin_graphset){0};
    basin_graphset_set_name(set, name, strlen(name));
    basin_status status = take(set, arrays, error);
    if (status) basin_graphset_free(set);
    return status;
}
