/* ZINC from packed arrays (npz): for each split s, s_node_ptr, s_atom, s_edge_ptr, s_edge (a bond
 * once, numbers within the molecule), s_bond, s_y. They are joined into the arrays of one set. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/try.h"
#include "data/graphset/graphset.h"

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
    void *own[] = {z->nodes, z->from, z->to, z->atom, z->bond, z->y};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) free(own[i]);
    for (int i = 0; i < 3 * ARRAYS; i++) basin_tensor_free(&z->array[i / ARRAYS][i % ARRAYS]);
}

static int64_t count(const zinc *z, int split, int which) {
    return basin_shape_count(z->array[split][which].shape);
}

static bool rises(const basin_tensor *pointer, int64_t entries, int64_t end) {
    const int64_t *start = pointer->data;
    if (start[0] != 0 || start[entries] != end) return false;
    for (int64_t i = 0; i < entries; i++)
        if (start[i + 1] < start[i]) return false;
    return true;
}

/* What is wrong with the arrays of a split, or NULL. */
static const char *flaw(const zinc *z, int split) {
    const basin_tensor *a = z->array[split];
    int64_t graphs = count(z, split, Y), bonds = count(z, split, BOND);
    const int64_t *node = a[NODE_PTR].data, *edge = a[EDGE_PTR].data, *end = a[EDGE].data;
    if (count(z, split, NODE_PTR) != graphs + 1 || count(z, split, EDGE_PTR) != graphs + 1)
        return "one pointer more than there are targets is wanted";
    if (!basin_shape_equal(a[EDGE].shape, BASIN_SHAPE(bonds, 2)))
        return "edge must have a row a bond, with its two ends";
    if (!rises(&a[NODE_PTR], graphs, count(z, split, ATOM)) || !rises(&a[EDGE_PTR], graphs, bonds))
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

static basin_status take(zinc *z, const basin_bundle *bundle, int split, basin_error *error) {
    const char *path = basin_bundle_path(bundle);
    for (int i = 0; i < ARRAYS; i++) {
        char name[64];
        const basin_tensor *from;
        basin_tensor *to = &z->array[split][i];
        snprintf(name, sizeof name, "%s_%s", split_name[split], array_name[i]);
        BASIN_TRY(basin_bundle_get(&from, bundle, name, error));
        if (i != Y && from->dtype <= BASIN_BF16)
            return basin_fail(error, BASIN_BAD_FILE, "%s: %s holds %s, wanted whole numbers", path,
                              name, basin_dtype_name(from->dtype));
        BASIN_TRY(basin_tensor_new(to, i == Y ? BASIN_F32 : BASIN_I64, from->shape, error));
        BASIN_TRY(basin_tensor_convert(to, from, error));
    }
    const char *what = flaw(z, split);
    if (!what) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: the arrays of '%s' do not fit: %s", path,
                      split_name[split], what);
}

/* Puts a split behind those that `a` counts already. */
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
        BASIN_TRY(take(&z, bundle, s, error));
        graphs += count(&z, s, Y), atoms += count(&z, s, ATOM), bonds += count(&z, s, BOND);
    }
    BASIN_TRY(BASIN_NEW_RAW(&z.nodes, graphs, "molecules", error));
    BASIN_TRY(BASIN_NEW_RAW(&z.y, graphs, "molecules", error));
    BASIN_TRY(BASIN_NEW_RAW(&z.atom, atoms, "molecules", error));
    BASIN_TRY(BASIN_NEW_RAW(&z.from, bonds, "molecules", error));
    BASIN_TRY(BASIN_NEW_RAW(&z.to, bonds, "molecules", error));
    BASIN_TRY(BASIN_NEW_RAW(&z.bond, bonds, "molecules", error));
    basin_graphset_arrays arrays = {.name = "ZINC",
                                    .nodes = z.nodes,
                                    .from = z.from,
                                    .to = z.to,
                                    .undirected = true,
                                    .node_labels = 1,
                                    .node_label = z.atom,
                                    .edge_labels = 1,
                                    .edge_label = z.bond,
                                    .targets = 1,
                                    .target = z.y};
    atoms = 0;
    for (int s = 0; s < 3; s++) join(&z, &arrays, &atoms, s);
    return basin_graphset_from_arrays(set, &arrays, error);
}
