/* Which columns move the trees' logit of a node; see ensemble.h. A node of a tree is worth the mean
 * of the leaves that the network's nodes reach below it, so a path goes from the mean over all
 * nodes, split by split, to the leaf. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/anomaly/ensemble/ensemble.h"

enum { BLOCK = 4096 };

/* Sums of leaves, and how many nodes came by, for every node of every tree of one fit. */
typedef struct worth {
    double *sum, *count; /* [nodes of trees] */
} worth;

static const basin_tree_node *next(const basin_tree_node *tree, const basin_tree_node *n,
                                   const float *x) {
    return tree + n->child + !(x[n->feature] <= n->threshold);
}

static void pass(worth *w, const basin_trees *trees, const float *x) {
    for (int64_t t = 0; t < trees->trees; t++) {
        const basin_tree_node *tree = trees->node + trees->root[t], *leaf = tree;
        while (leaf->feature >= 0) leaf = next(tree, leaf, x);
        for (const basin_tree_node *n = tree;; n = next(tree, n, x)) {
            w->sum[n - trees->node] += (double)leaf->value;
            w->count[n - trees->node]++;
            if (n == leaf) break;
        }
    }
}

static double value_of(const worth *w, const basin_trees *trees, const basin_tree_node *n) {
    return w->sum[n - trees->node] / w->count[n - trees->node];
}

static void follow(double *part, double *mean, double *logit, const worth *w,
                   const basin_trees *trees, const float *x, double factor) {
    *mean += factor * trees->base[0];
    *logit += factor * trees->base[0];
    for (int64_t t = 0; t < trees->trees; t++) {
        const basin_tree_node *tree = trees->node + trees->root[t], *n = tree;
        *mean += factor * value_of(w, trees, n);
        while (n->feature >= 0) {
            const basin_tree_node *child = next(tree, n, x);
            part[n->feature] += factor * (value_of(w, trees, child) - value_of(w, trees, n));
            n = child;
        }
        *logit += factor * (double)n->value;
    }
}

static void pass_all(worth *w, float *x, const basin_trees *trees, const basin_tree_table *table) {
    int64_t N = table->network->nodes;
    for (int64_t first = 0; first < N; first += BLOCK) {
        int64_t rows = N - first < BLOCK ? N - first : BLOCK;
        basin_tree_table_rows(x, table, NULL, first, rows);
        for (int64_t i = 0; i < rows; i++) pass(w, trees, x + i * table->columns);
    }
}

basin_status basin_anomaly_ensemble_reasons(double *part, double *mean, double *logit,
                                            const basin_anomaly_ensemble *e,
                                            const basin_tree_table *table, int64_t node,
                                            basin_error *error) {
    size_t most = 1, cells;
    int64_t fits = basin_anomaly_ensemble_heard(e, table);
    worth w = {0};
    float *x = NULL;
    for (int64_t k = 0; k < e->fits; k++) {
        size_t nodes = (size_t)e->trees[k]->root[e->trees[k]->trees];
        most = nodes > most ? nodes : most;
    }
    w.sum = basin_array_new(most, sizeof *w.sum);
    w.count = basin_array_new(most, sizeof *w.count);
    if (basin_size_multiply(&cells, BLOCK, (size_t)table->columns))
        x = basin_array_new(cells, sizeof *x);
    basin_status status = w.sum && w.count && x ? BASIN_OK : BASIN_NO_MEMORY;
    if (status) basin_fail(error, status, "no memory for the reasons of trees");
    *mean = *logit = 0;
    for (int64_t c = 0; c < table->columns; c++) part[c] = 0;
    for (int64_t k = 0; k < fits && !status; k++) {
        memset(w.sum, 0, most * sizeof *w.sum);
        memset(w.count, 0, most * sizeof *w.count);
        pass_all(&w, x, e->trees[k], table);
        basin_tree_table_rows(x, table, &node, 0, 1);
        follow(part, mean, logit, &w, e->trees[k], x, 1.0 / (double)fits);
    }
    free(w.sum);
    free(w.count);
    free(x);
    return status;
}
