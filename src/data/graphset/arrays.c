/* Sets of graphs from arrays in memory, with the checks that files get; see
 * include/basin/tasks/graphset.h. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
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

/* ---- the packed arrays of ZINC ---- */

/* ZINC from packed arrays (npz): for each split s, s_node_ptr, s_atom, s_edge_ptr, s_edge (a bond
 * once, numbers within the molecule), s_bond, s_y. */

static const char *const split_name[3] = {"train", "val", "test"};
enum { NODE_PTR, ATOM, EDGE_PTR, EDGE, BOND, Y, ARRAYS };
static const char *const array_name[ARRAYS] = {"node_ptr", "atom", "edge_ptr", "edge", "bond", "y"};

typedef struct molecules {
    basin_tensor array[ARRAYS]; /* I64, y in F64 */
} molecules;

static basin_status take_zinc(basin_tensor *to, const basin_bundle *bundle, const char *split,
                              int which, basin_error *error) {
    char name[64];
    const basin_tensor *from;
    snprintf(name, sizeof name, "%s_%s", split, array_name[which]);
    BASIN_TRY(basin_bundle_get(&from, bundle, name, error));
    if (which != Y && from->dtype <= BASIN_BF16)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s holds %s, wanted whole numbers",
                          basin_bundle_path(bundle), name, basin_dtype_name(from->dtype));
    BASIN_TRY(basin_tensor_new(to, which == Y ? BASIN_F64 : BASIN_I64, from->shape, error));
    return basin_tensor_convert(to, from, error);
}

static basin_status wrong(const basin_bundle *bundle, int split, const char *what,
                          basin_error *error) {
    return basin_fail(error, BASIN_BAD_FILE, "%s: the arrays of '%s' do not fit: %s",
                      basin_bundle_path(bundle), split_name[split], what);
}

static bool rising(const int64_t *start, int64_t count, int64_t end) {
    if (start[0] != 0 || start[count] != end) return false;
    for (int64_t i = 0; i < count; i++)
        if (start[i + 1] < start[i]) return false;
    return true;
}

/* Kinds of atoms and bonds are kept in 32 bits. */
static bool small(const basin_tensor *kind) {
    int64_t count = basin_shape_count(kind->shape);
    const int64_t *number = kind->data;
    for (int64_t i = 0; i < count; i++)
        if (number[i] < 0 || number[i] > INT32_MAX) return false;
    return true;
}

/* Targets are kept as floats; NaN is one that is not known. */
static bool bounded(const basin_tensor *y) {
    const double *value = y->data;
    for (int64_t i = 0; i < basin_shape_count(y->shape); i++)
        if (fabs(value[i]) > FLT_MAX) return false;
    return true;
}

/* Whether every bond joins two atoms of its own molecule. */
static bool joined(const molecules *m, int64_t graphs) {
    const int64_t *node = m->array[NODE_PTR].data, *edge = m->array[EDGE_PTR].data;
    const int64_t *end = m->array[EDGE].data;
    for (int64_t g = 0; g < graphs; g++)
        for (int64_t e = 2 * edge[g]; e < 2 * edge[g + 1]; e++)
            if (end[e] < 0 || end[e] >= node[g + 1] - node[g]) return false;
    return true;
}

static basin_status check(const molecules *m, const basin_bundle *bundle, int split,
                          basin_error *error) {
    const basin_tensor *a = m->array;
    int64_t graphs = basin_shape_count(a[Y].shape), edges = basin_shape_count(a[BOND].shape);
    if (basin_shape_count(a[NODE_PTR].shape) != graphs + 1 ||
        basin_shape_count(a[EDGE_PTR].shape) != graphs + 1)
        return wrong(bundle, split, "one pointer more than there are targets is wanted", error);
    if (a[EDGE].shape.rank != 2 || a[EDGE].shape.dim[0] != edges || a[EDGE].shape.dim[1] != 2)
        return wrong(bundle, split, "edge must have a row a bond, with its two ends", error);
    if (!rising(a[NODE_PTR].data, graphs, basin_shape_count(a[ATOM].shape)) ||
        !rising(a[EDGE_PTR].data, graphs, edges))
        return wrong(bundle, split, "pointers must rise to the number of atoms and bonds", error);
    if (!joined(m, graphs))
        return wrong(bundle, split, "a bond must join two atoms of its molecule", error);
    if (!bounded(&a[Y])) return wrong(bundle, split, "targets must be finite, or nan", error);
    if (!small(&a[ATOM]) || !small(&a[BOND]))
        return wrong(bundle, split, "kinds of atoms and bonds must lie between 0 and 2^31 - 1",
                     error);
    return BASIN_OK;
}

static basin_status reserve(basin_graphset *set, int32_t **edge, const molecules *m,
                            basin_error *error) {
    int64_t bonds = 0;
    for (int s = 0; s < 3; s++) {
        set->split[s] = basin_shape_count(m[s].array[Y].shape);
        set->graphs += set->split[s];
        set->nodes += basin_shape_count(m[s].array[ATOM].shape);
        bonds += basin_shape_count(m[s].array[BOND].shape);
    }
    if (set->nodes > INT32_MAX || bonds > INT32_MAX / 4)
        return basin_fail(error, BASIN_UNSUPPORTED, "%lld atoms and %lld bonds, too many",
                          (long long)set->nodes, (long long)bonds);
    set->node_start = basin_array_new((size_t)set->graphs + 1, sizeof *set->node_start);
    set->node_label = basin_array_new((size_t)set->nodes, sizeof *set->node_label);
    set->edge_label = basin_array_new(2 * (size_t)bonds, sizeof *set->edge_label);
    set->target = basin_array_new((size_t)set->graphs, sizeof *set->target);
    *edge = basin_array_new(4 * (size_t)bonds, sizeof **edge);
    set->node_labels = set->edge_labels = set->targets = 1;
    if (set->node_start && set->node_label && set->edge_label && set->target && *edge)
        return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld molecules",
                      (long long)set->graphs);
}

/* Copies one split behind what is there; bonds go both ways. */
static void append(basin_graphset *set, int32_t *edge, const molecules *m, int64_t *graph,
                   int64_t *node, int64_t *bond) {
    const int64_t *start = m->array[NODE_PTR].data, *edges = m->array[EDGE_PTR].data;
    const int64_t *atom = m->array[ATOM].data, *ends = m->array[EDGE].data;
    const int64_t *kind = m->array[BOND].data;
    int64_t count = basin_shape_count(m->array[Y].shape);
    for (int64_t g = 0; g < count; g++, (*graph)++) {
        set->node_start[*graph] = *node + start[g];
        set->target[*graph] = (float)((const double *)m->array[Y].data)[g];
        for (int64_t e = edges[g]; e < edges[g + 1]; e++, (*bond)++) {
            int32_t a = (int32_t)(*node + start[g] + ends[2 * e]);
            int32_t b = (int32_t)(*node + start[g] + ends[2 * e + 1]);
            int32_t *to = edge + 4 * *bond;
            to[0] = to[3] = a, to[1] = to[2] = b;
            set->edge_label[2 * *bond] = set->edge_label[2 * *bond + 1] = (int32_t)kind[e];
        }
    }
    for (int64_t i = 0; i < start[count]; i++) set->node_label[*node + i] = (int32_t)atom[i];
    *node += start[count];
}

basin_status basin_graphset_from_zinc(basin_graphset *set, const basin_bundle *bundle,
                                      basin_error *error) {
    molecules m[3] = {0};
    int32_t *edge = NULL;
    int64_t graph = 0, node = 0, bond = 0;
    *set = (basin_graphset){.task = BASIN_GRAPHS_VALUES, .name = "ZINC"};
    basin_status status = BASIN_OK;
    if (!basin_bundle_find(bundle, "train_node_ptr"))
        status = basin_fail(error, BASIN_BAD_FILE,
                            "%s: neither a packed graph set nor ZINC: no tensor 'train_node_ptr'",
                            basin_bundle_path(bundle));
    for (int s = 0; s < 3 && !status; s++) {
        for (int i = 0; i < ARRAYS && !status; i++)
            status = take_zinc(&m[s].array[i], bundle, split_name[s], i, error);
        if (!status) status = check(&m[s], bundle, s, error);
    }
    if (!status) status = reserve(set, &edge, m, error);
    for (int s = 0; s < 3 && !status; s++) append(set, edge, &m[s], &graph, &node, &bond);
    if (!status) {
        set->node_start[graph] = node;
        status = basin_graphset_set_edges(set, edge, 2 * bond, basin_bundle_path(bundle),
                                          "the list of bonds", error);
    }
    free(edge);
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < ARRAYS; i++) basin_tensor_free(&m[s].array[i]);
    if (status) basin_graphset_free(set);
    return status;
}
