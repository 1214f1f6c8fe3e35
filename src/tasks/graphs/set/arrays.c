/* Sets of graphs from arrays in memory, with checks; readers of files also end here. See
 * include/basin/tasks/graphset.h. */
#include "base/sized.h"
#include "base/sort.h"
#include "base/try.h"
#include "tasks/graphs/set/graphset.h"

static const char the_set[] = "the set"; /* what memory is for */

/* An edge of the arrays: line i, or its reverse, line edges + i. */
typedef struct sort_item {
    int32_t from, to, line;
} sort_item;

/* What the rows of a table are taken from. */
typedef struct rows {
    int64_t given, kept;   /* in the arrays, in the set */
    const sort_item *item; /* [kept]; NULL: all, as they stand */
} rows;

/* Rows of 4-byte numbers into a new table; none where there are no columns. */
static basin_status take_rows(void *to, const void *from, int64_t columns, rows r, const char *what,
                              const basin_graphset *set, basin_error *error) {
    size_t row, bytes;
    char **table = to;
    if (columns < 0 || (columns > 0) != (from != NULL))
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %s has %lld columns and %s array", set->name,
                          what, (long long)columns, from ? "an" : "no");
    if (!columns) return BASIN_OK;
    if (!basin_size_multiply(&row, (size_t)columns, 4) ||
        !basin_size_multiply(&bytes, row, (size_t)r.kept) || !(*table = basin_array_new(bytes, 1)))
        return basin_fail_memory(error, the_set);
    for (int64_t i = 0; i < r.kept; i++) {
        int64_t line = r.item ? r.item[i].line % r.given : i;
        memcpy(*table + (size_t)i * row, (const char *)from + (size_t)line * row, row);
    }
    return BASIN_OK;
}

/* `missing`: NaN stands for a value that is not known. */
static basin_status take_reals(float **to, const float *from, int64_t columns, rows r, bool missing,
                               const char *what, const basin_graphset *set, basin_error *error) {
    BASIN_TRY(take_rows(to, from, columns, r, what, set, error));
    return basin_reals_check(from, r.given * columns, missing, what, set->name, BASIN_BAD_VALUE,
                             error);
}

static basin_status take_nodes(basin_graphset *set, const basin_graphset_arrays *a,
                               basin_error *error) {
    if (a->graphs < 1 || a->graphs >= INT32_MAX || !a->nodes)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %lld graphs%s; expected at least 1",
                          set->name, (long long)a->graphs,
                          a->nodes ? "" : " without numbers of nodes");
    if (a->molecules) BASIN_TRY(BASIN_NEW(&set->line, a->graphs, the_set, error));
    for (int64_t g = 0; a->molecules && g < a->graphs; g++) set->line[g] = g;
    BASIN_TRY(BASIN_NEW_RAW(&set->node_start, a->graphs + 1, the_set, error));
    set->node_start[0] = 0;
    for (int64_t g = 0; g < a->graphs; g++) {
        if (a->nodes[g] < 0 || a->nodes[g] > INT32_MAX - set->nodes)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: nodes[%lld] is %lld; expected at least 0, and a sum below 2^31",
                              set->name, (long long)g, (long long)a->nodes[g]);
        set->node_start[g + 1] = set->nodes += a->nodes[g];
    }
    rows r = {set->nodes, set->nodes, NULL};
    BASIN_TRY(take_reals(&set->node_attribute, a->node_attribute, a->node_attributes, r, false,
                         "node_attribute", set, error));
    return take_rows(&set->node_label, a->node_label, a->node_labels, r, "node_label", set, error);
}

static basin_status check_edges(const basin_graphset *set, const basin_graphset_arrays *a,
                                basin_error *error) {
    BASIN_SCRATCH_RAW(int32_t, owner, set->nodes, the_set, error);
    for (int64_t g = 0; g < set->graphs; g++)
        for (int64_t n = set->node_start[g]; n < set->node_start[g + 1]; n++) owner[n] = (int32_t)g;
    for (int64_t i = 0; i < a->edges; i++) {
        int64_t from = a->from[i], to = a->to[i];
        if (from < 0 || from >= set->nodes || to < 0 || to >= set->nodes)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: edge %lld joins nodes %lld and %lld; expected 0 to %lld",
                              set->name, (long long)i, (long long)from, (long long)to,
                              (long long)set->nodes - 1);
        if (owner[from] != owner[to])
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: edge %lld joins node %lld of graph %d and node %lld of graph "
                              "%d; expected both in one graph",
                              set->name, (long long)i, (long long)from, owner[from], (long long)to,
                              owner[to]);
    }
    return BASIN_OK;
}

static int by_ends(const void *a, const void *b) {
    const sort_item *x = a, *y = b;
    if (x->from != y->from) return BASIN_COMPARE(x->from, y->from);
    return x->to != y->to ? BASIN_COMPARE(x->to, y->to) : BASIN_COMPARE(x->line, y->line);
}

/* Ascending by both ends, without self loops, of equal ones the first; returns how many. */
static int64_t sort_edges(sort_item *item, const basin_graphset_arrays *a, int ways) {
    int64_t n = 0, kept = 0;
    for (int64_t i = 0; i < a->edges * ways; i++) {
        int32_t from = (int32_t)a->from[i % a->edges], to = (int32_t)a->to[i % a->edges];
        bool back = i >= a->edges;
        if (from != to) item[n++] = (sort_item){back ? to : from, back ? from : to, (int32_t)i};
    }
    qsort(item, (size_t)n, sizeof *item, by_ends);
    for (int64_t i = 0; i < n; i++)
        if (!i || item[i].from != item[kept - 1].from || item[i].to != item[kept - 1].to)
            item[kept++] = item[i];
    return kept;
}

static basin_status take_edges(basin_graphset *set, const basin_graphset_arrays *a,
                               basin_error *error) {
    int ways = a->undirected ? 2 : 1;
    int64_t graph = 0;
    if (a->edges < 0 || a->edges > INT32_MAX / ways || (a->edges && (!a->from || !a->to)))
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %lld edges%s; expected 0 to 2^31 - 1",
                          set->name, (long long)a->edges,
                          a->from && a->to ? "" : " without their nodes");
    BASIN_TRY(check_edges(set, a, error));
    BASIN_SCRATCH_RAW(sort_item, item, a->edges * ways, the_set, error);
    set->edges = sort_edges(item, a, ways);
    BASIN_TRY(BASIN_NEW_RAW(&set->edge, 2 * set->edges, the_set, error));
    BASIN_TRY(BASIN_NEW_RAW(&set->edge_start, set->graphs + 1, the_set, error));
    set->edge_start[0] = 0;
    for (int64_t i = 0; i < set->edges; i++) {
        while (item[i].from >= set->node_start[graph + 1]) set->edge_start[++graph] = i;
        set->edge[2 * i] = (int32_t)(item[i].from - set->node_start[graph]);
        set->edge[2 * i + 1] = (int32_t)(item[i].to - set->node_start[graph]);
    }
    while (graph < set->graphs) set->edge_start[++graph] = set->edges;
    rows r = {a->edges, set->edges, item};
    BASIN_TRY(take_reals(&set->edge_attribute, a->edge_attribute, a->edge_attributes, r, false,
                         "edge_attribute", set, error));
    return take_rows(&set->edge_label, a->edge_label, a->edge_labels, r, "edge_label", set, error);
}

/* Maps class numbers [count] of any kind to 0 .. classes - 1. */
static basin_status take_classes(basin_graphset *set, const int64_t *value, int64_t count,
                                 basin_error *error) {
    BASIN_TRY(BASIN_NEW_RAW(&set->class_value, count, the_set, error));
    BASIN_TRY(BASIN_NEW_RAW(&set->class_of, count, the_set, error));
    memcpy(set->class_value, value, (size_t)count * sizeof *value);
    qsort(set->class_value, (size_t)count, sizeof *value, basin_compare_int64);
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

static basin_status take_targets(basin_graphset *set, const basin_graphset_arrays *a,
                                 basin_error *error) {
    int given = (a->graph_class != NULL) + (a->node_class != NULL) + (a->target != NULL);
    if (given > 1)
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "%s: %d of graph_class, node_class and target are given; expected at most one",
            set->name, given);
    set->task = a->node_class ? BASIN_GRAPHS_NODE_CLASSES
                : a->target   ? BASIN_GRAPHS_VALUES
                              : BASIN_GRAPHS_CLASSES;
    set->targets = a->targets;
    set->binary = a->binary && a->target;
    for (int64_t i = 0; set->binary && i < a->graphs * a->targets; i++)
        if (a->target[i] != 0 && a->target[i] != 1 && !isnan(a->target[i]))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: target %lld of graph %lld is %g; expected 0, 1 or NaN",
                              set->name, (long long)(i % a->targets), (long long)(i / a->targets),
                              (double)a->target[i]);
    if (a->graph_class) return take_classes(set, a->graph_class, set->graphs, error);
    if (a->node_class) return take_classes(set, a->node_class, set->nodes, error);
    return take_reals(&set->target, a->target, a->targets, (rows){set->graphs, set->graphs, NULL},
                      true, "target", set, error);
}

static basin_status take(basin_graphset *set, const basin_graphset_arrays *a, basin_error *error) {
    memcpy(set->split, a->split, sizeof set->split);
    set->graphs = a->graphs;
    set->node_attributes = a->node_attributes, set->node_labels = a->node_labels;
    set->edge_attributes = a->edge_attributes, set->edge_labels = a->edge_labels;
    BASIN_TRY(basin_graphset_check_sizes(set, set->name, BASIN_BAD_VALUE, error));
    BASIN_TRY(take_nodes(set, a, error));
    BASIN_TRY(take_edges(set, a, error));
    return take_targets(set, a, error);
}

basin_status basin_graphset_from_arrays(basin_graphset *set, const basin_graphset_arrays *arrays,
                                        basin_error *error) {
    *set = (basin_graphset){0};
    BASIN_TRY(BASIN_SIZE_CHECK(arrays, "basin_graphset_arrays", error));
    snprintf(set->name, sizeof set->name, "%s", arrays->name ? arrays->name : "graphs");
    BASIN_TRY_OR(take(set, arrays, error), basin_graphset_free(set));
    return BASIN_OK;
}

/* ---- the packed arrays of ZINC ---- */

/* As npz: for each split s, s_node_ptr, s_atom, s_edge_ptr, s_edge (a bond once, numbers within the
 * molecule), s_bond, s_y. They are joined into the arrays of one set. */

static const char *const split_name[3] = {"train", "val", "test"};
enum { NODE_PTR, ATOM, EDGE_PTR, EDGE, BOND, Y, ARRAYS };
static const char *const array_name[ARRAYS] = {"node_ptr", "atom", "edge_ptr", "edge", "bond", "y"};

typedef struct zinc {
    basin_tensor array[3][ARRAYS]; /* I64, y in F32 */
    int64_t *nodes, *from, *to;
    int32_t *atom, *bond;
    float *y;
} zinc;

static void zinc_free(zinc *z) {
    BASIN_FREE(z->nodes, z->from, z->to, z->atom, z->bond, z->y);
    for (int i = 0; i < 3 * ARRAYS; i++) basin_tensor_free(&z->array[i / ARRAYS][i % ARRAYS]);
}

static int64_t count(const zinc *z, int split, int which) {
    return basin_shape_count(z->array[split][which].shape);
}

/* What is wrong with the arrays of a split, or NULL. */
static const char *flaw(const zinc *z, int split) {
    const basin_tensor *a = z->array[split];
    int64_t graphs = count(z, split, Y), bonds = count(z, split, BOND);
    const int64_t *node = a[NODE_PTR].data, *edge = a[EDGE_PTR].data, *end = a[EDGE].data;
    if (count(z, split, NODE_PTR) != graphs + 1 || count(z, split, EDGE_PTR) != graphs + 1)
        return "the number of pointers must be the number of targets + 1";
    if (!basin_shape_equal(a[EDGE].shape, BASIN_SHAPE(bonds, 2)))
        return "edge must have one row per bond, with its two ends";
    if (!basin_starts_rise(node, graphs, count(z, split, ATOM)) ||
        !basin_starts_rise(edge, graphs, bonds))
        return "pointers must rise to the number of atoms and bonds";
    for (int64_t g = 0; g < graphs; g++) {
        if (isinf(((const float *)a[Y].data)[g])) return "targets must be finite, or nan";
        for (int64_t e = 2 * edge[g]; e < 2 * edge[g + 1]; e++)
            if (end[e] < 0 || end[e] >= node[g + 1] - node[g])
                return "a bond must join two atoms of its molecule";
    }
    for (int which = ATOM; which <= BOND; which += BOND - ATOM)
        for (int64_t i = 0; i < count(z, split, which); i++) {
            int64_t kind = ((const int64_t *)a[which].data)[i];
            if (kind < 0 || kind > INT32_MAX)
                return "kinds of atoms and bonds must lie between 0 and 2^31 - 1";
        }
    return NULL;
}

static basin_status take_zinc(zinc *z, const basin_bundle *bundle, int split, basin_error *error) {
    const char *path = basin_bundle_path(bundle);
    for (int i = 0; i < ARRAYS; i++) {
        char name[64];
        const basin_tensor *from;
        basin_tensor *to = &z->array[split][i];
        snprintf(name, sizeof name, "%s_%s", split_name[split], array_name[i]);
        BASIN_TRY(basin_bundle_get(&from, bundle, name, error));
        if (i != Y && from->dtype <= BASIN_BF16)
            return basin_fail(error, BASIN_BAD_FILE, "%s: %s holds %s; expected integers", path,
                              name, basin_dtype_name(from->dtype));
        BASIN_TRY(basin_tensor_new(to, i == Y ? BASIN_F32 : BASIN_I64, from->shape, error));
        BASIN_TRY(basin_tensor_convert(to, from, error));
    }
    const char *what = flaw(z, split);
    if (!what) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: the arrays of '%s' do not fit: %s", path,
                      split_name[split], what);
}

/* Appends a split to those that `a` holds already. */
static void join(zinc *z, basin_graphset_arrays *a, int64_t *atoms, int split) {
    const basin_tensor *from = z->array[split];
    const int64_t *node = from[NODE_PTR].data, *edge = from[EDGE_PTR].data, *end = from[EDGE].data;
    const int64_t *atom = from[ATOM].data, *bond = from[BOND].data;
    a->split[split] = count(z, split, Y);
    for (int64_t g = 0; g < a->split[split]; g++) {
        for (int64_t e = edge[g]; e < edge[g + 1]; e++) {
            z->from[a->edges] = *atoms + end[2 * e];
            z->to[a->edges] = *atoms + end[2 * e + 1];
            z->bond[a->edges++] = (int32_t)bond[e];
        }
        for (int64_t n = node[g]; n < node[g + 1]; n++) z->atom[(*atoms)++] = (int32_t)atom[n];
        z->y[a->graphs] = ((const float *)from[Y].data)[g];
        z->nodes[a->graphs++] = node[g + 1] - node[g];
    }
}

basin_status basin_graphset_from_zinc(basin_graphset *set, const basin_bundle *bundle,
                                      basin_error *error) {
    BASIN_AT_EXIT(zinc_free) zinc z = {0};
    int64_t graphs = 0, atoms = 0, bonds = 0;
    *set = (basin_graphset){0};
    if (!basin_bundle_find(bundle, "train_node_ptr"))
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: neither a packed graph set nor ZINC: no tensor 'train_node_ptr'",
                          basin_bundle_path(bundle));
    for (int s = 0; s < 3; s++) {
        BASIN_TRY(take_zinc(&z, bundle, s, error));
        graphs += count(&z, s, Y), atoms += count(&z, s, ATOM), bonds += count(&z, s, BOND);
    }
    BASIN_TRY(BASIN_NEW_RAW(&z.nodes, graphs, "molecules", error));
    BASIN_TRY(BASIN_NEW_RAW(&z.y, graphs, "molecules", error));
    BASIN_TRY(BASIN_NEW_RAW(&z.atom, atoms, "molecules", error));
    BASIN_TRY(BASIN_NEW_RAW(&z.from, bonds, "molecules", error));
    BASIN_TRY(BASIN_NEW_RAW(&z.to, bonds, "molecules", error));
    BASIN_TRY(BASIN_NEW_RAW(&z.bond, bonds, "molecules", error));
    basin_graphset_arrays arrays = {.name = "ZINC", .nodes = z.nodes, .undirected = true};
    arrays.from = z.from, arrays.to = z.to, arrays.target = z.y, arrays.targets = 1;
    arrays.node_label = z.atom, arrays.edge_label = z.bond;
    arrays.node_labels = arrays.edge_labels = 1;
    atoms = 0;
    for (int s = 0; s < 3; s++) join(&z, &arrays, &atoms, s);
    return basin_graphset_from_arrays(set, &arrays, error);
}
