/* Trees that were grown: scores of rows, and their form in model files. */
#include "train/trees/trees.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/team/processors.h"
#include "base/team/team.h"

void basin_trees_free(basin_trees *trees) {
    if (!trees) return;
    free(trees->base);
    free(trees->root);
    free(trees->node);
    free(trees);
}

static double value_of(const basin_tree_node *tree, const float *x) {
    const basin_tree_node *n = tree;
    while (n->feature >= 0) n = tree + n->child + !(x[n->feature] <= n->threshold);
    return n->value;
}

typedef struct predicting {
    double *score;
    const basin_trees *trees;
    const float *x;
} predicting;

static void predict_rows(const void *context, int64_t first, int64_t last, int place) {
    const predicting *p = context;
    const basin_trees *trees = p->trees;
    (void)place;
    for (int64_t r = first; r < last; r++) {
        double *mine = p->score + r * trees->scores;
        for (int64_t k = 0; k < trees->scores; k++) mine[k] = trees->base[k];
        for (int64_t t = 0; t < trees->trees; t++)
            mine[t % trees->scores] +=
                value_of(trees->node + trees->root[t], p->x + r * trees->features);
    }
}

void basin_trees_predict(double *score, const basin_trees *trees, const float *x, int64_t rows) {
    predicting p = {score, trees, x};
    int64_t work = 8 * rows * trees->trees;
    basin_team_run(predict_rows, &p, rows, 0, basin_team_size(basin_processors(), work));
}

/* ---- files ---- */

enum { NAME = 128 };

/* A tensor of zeros under PREFIXname, which the caller fills through `data`. */
static basin_status add(void **data, basin_bundle *bundle, const char *prefix, const char *name,
                        basin_dtype dtype, basin_shape shape, basin_error *error) {
    char key[NAME];
    basin_tensor tensor;
    snprintf(key, sizeof key, "%s%s", prefix, name);
    basin_status status = basin_tensor_new(&tensor, dtype, shape, error);
    if (status) return status;
    *data = tensor.data;
    status = basin_bundle_add(bundle, key, &tensor, error);
    basin_tensor_free(&tensor);
    return status;
}

basin_status basin_trees_store(basin_bundle *bundle, const char *prefix, const basin_trees *trees,
                               basin_error *error) {
    int64_t nodes = trees->root[trees->trees];
    void *base = NULL, *root = NULL, *link = NULL, *number = NULL, *features = NULL;
    basin_status status =
        add(&features, bundle, prefix, "features", BASIN_I64, BASIN_SHAPE(1), error);
    if (!status)
        status = add(&base, bundle, prefix, "base", BASIN_F64, BASIN_SHAPE(trees->scores), error);
    if (!status)
        status =
            add(&root, bundle, prefix, "root", BASIN_I64, BASIN_SHAPE(trees->trees + 1), error);
    if (!status)
        status = add(&link, bundle, prefix, "link", BASIN_I32, BASIN_SHAPE(nodes, 2), error);
    if (!status)
        status = add(&number, bundle, prefix, "number", BASIN_F32, BASIN_SHAPE(nodes, 2), error);
    if (status) return status;
    memcpy(features, &trees->features, sizeof trees->features);
    memcpy(base, trees->base, (size_t)trees->scores * sizeof *trees->base);
    memcpy(root, trees->root, (size_t)(trees->trees + 1) * sizeof *trees->root);
    for (int64_t i = 0; i < nodes; i++) {
        const basin_tree_node *n = &trees->node[i];
        memcpy((int32_t *)link + 2 * i, (int32_t[]){n->feature, n->child}, 2 * sizeof(int32_t));
        memcpy((float *)number + 2 * i, (float[]){n->threshold, n->value}, 2 * sizeof(float));
    }
    return BASIN_OK;
}

/* PREFIXname, of that type and rank, finite. */
static basin_status get(const basin_tensor **tensor, const basin_bundle *bundle, const char *prefix,
                        const char *name, basin_dtype dtype, int rank, basin_error *error) {
    char key[NAME], text[BASIN_SHAPE_TEXT];
    snprintf(key, sizeof key, "%s%s", prefix, name);
    basin_status status = basin_bundle_get(tensor, bundle, key, error);
    if (status) return status;
    const basin_tensor *t = *tensor;
    bool pairs = rank == 1 || (t->shape.rank == 2 && t->shape.dim[1] == 2);
    if (t->dtype == dtype && t->shape.rank == rank && pairs && basin_tensor_first_bad(t) < 0)
        return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s is %s %s, wanted %s of %d axes",
                      basin_bundle_path(bundle), key, basin_dtype_name(t->dtype),
                      basin_shape_print(text, t->shape), basin_dtype_name(dtype), rank);
}

/* Whether each node has one parent and no leaf lies too deep; children lie behind their parents. */
static bool is_shallow(uint8_t *depth /* [count] zeros */, const basin_tree_node *tree,
                       int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (tree[i].feature < 0) continue;
        if (depth[i] == BASIN_TREE_DEPTH) return false;
        for (int k = 0; k < 2; k++) {
            uint8_t *child = &depth[tree[i].child + k];
            if (*child) return false;
            *child = (uint8_t)(depth[i] + 1);
        }
    }
    return true;
}

/* Children lie behind their parent and inside their tree, features inside the table. */
static bool is_sound(uint8_t *depth /* [nodes] zeros */, const basin_trees *trees, int64_t nodes) {
    if (trees->root[0] != 0 || trees->root[trees->trees] != nodes) return false;
    for (int64_t t = 0; t < trees->trees; t++)
        if (trees->root[t + 1] <= trees->root[t]) return false;
    for (int64_t t = 0; t < trees->trees; t++) {
        int64_t first = trees->root[t], count = trees->root[t + 1] - first;
        for (int64_t i = 0; i < count; i++) {
            const basin_tree_node *n = &trees->node[first + i];
            if (n->feature < -1 || n->feature >= trees->features) return false;
            if (n->feature >= 0 && (n->child <= i || n->child >= count - 1)) return false;
        }
        if (!is_shallow(depth + first, trees->node + first, count)) return false;
    }
    return true;
}

static void copy_nodes(basin_trees *trees, const int32_t *link, const float *number,
                       int64_t nodes) {
    for (int64_t i = 0; i < nodes; i++)
        trees->node[i] =
            (basin_tree_node){link[2 * i], link[2 * i + 1], number[2 * i], number[2 * i + 1]};
}

basin_status basin_trees_load(basin_trees **trees, const basin_bundle *bundle, const char *prefix,
                              basin_error *error) {
    const basin_tensor *base, *root, *link, *number, *features;
    *trees = NULL;
    basin_status status = get(&features, bundle, prefix, "features", BASIN_I64, 1, error);
    if (!status) status = get(&base, bundle, prefix, "base", BASIN_F64, 1, error);
    if (!status) status = get(&root, bundle, prefix, "root", BASIN_I64, 1, error);
    if (!status) status = get(&link, bundle, prefix, "link", BASIN_I32, 2, error);
    if (!status) status = get(&number, bundle, prefix, "number", BASIN_F32, 2, error);
    if (status) return status;
    int64_t scores = base->shape.dim[0], count = root->shape.dim[0] - 1, nodes = link->shape.dim[0];
    basin_trees *made = calloc(1, sizeof *made);
    if (!made) return basin_fail(error, BASIN_NO_MEMORY, "boosted trees");
    *made = (basin_trees){.scores = scores, .trees = count};
    made->base = basin_array_new((size_t)scores, sizeof *made->base);
    made->root = basin_array_new((size_t)(count + 1), sizeof *made->root);
    made->node = basin_array_new((size_t)nodes, sizeof *made->node);
    uint8_t *depth = calloc((size_t)nodes + 1, 1);
    if (!made->base || !made->root || !made->node || !depth)
        status = basin_fail(error, BASIN_NO_MEMORY, "%lld nodes of trees", (long long)nodes);
    bool fits = features->shape.dim[0] == 1 && scores > 0 && count >= 0 && count % scores == 0 &&
                number->shape.dim[0] == nodes;
    if (!status && fits) {
        made->features = ((const int64_t *)features->data)[0];
        memcpy(made->base, base->data, (size_t)scores * sizeof *made->base);
        memcpy(made->root, root->data, (size_t)(count + 1) * sizeof *made->root);
        copy_nodes(made, link->data, number->data, nodes);
        fits = is_sound(depth, made, nodes);
    }
    free(depth);
    if (!status && !fits)
        status = basin_fail(error, BASIN_BAD_FILE, "%s: %s* are no trees: a node leads astray",
                            basin_bundle_path(bundle), prefix);
    if (status)
        basin_trees_free(made);
    else
        *trees = made;
    return status;
}
