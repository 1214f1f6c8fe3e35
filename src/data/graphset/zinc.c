/* ZINC from packed arrays (npz): for each split s, s_node_ptr, s_atom, s_edge_ptr, s_edge (a bond
 * once, numbers within the molecule), s_bond, s_y. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/graphset/graphset.h"

static const char *const split_name[3] = {"train", "val", "test"};
enum { NODE_PTR, ATOM, EDGE_PTR, EDGE, BOND, Y, ARRAYS };
static const char *const array_name[ARRAYS] = {"node_ptr", "atom", "edge_ptr", "edge", "bond", "y"};

typedef struct molecules {
    basin_tensor array[ARRAYS]; /* I64, y in F64 */
} molecules;

static basin_status take(basin_tensor *to, const basin_bundle *bundle, const char *split, int which,
                         basin_error *error) {
    char name[64];
    const basin_tensor *from;
    snprintf(name, sizeof name, "%s_%s", split, array_name[which]);
    basin_status status = basin_bundle_get(&from, bundle, name, error);
    if (!status && which != Y && from->dtype <= BASIN_BF16)
        status = basin_fail(error, BASIN_BAD_FILE, "%s: %s holds %s, wanted whole numbers",
                            basin_bundle_path(bundle), name, basin_dtype_name(from->dtype));
    if (!status)
        status = basin_tensor_new(to, which == Y ? BASIN_F64 : BASIN_I64, from->shape, error);
    return status ? status : basin_tensor_convert(to, from, error);
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
            status = take(&m[s].array[i], bundle, split_name[s], i, error);
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
