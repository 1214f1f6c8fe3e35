/* What the columns of trees move a node's logit by: Shapley values against a typical row. A leaf is
 * reached by those mixtures of the two rows that have certain columns of the one and certain
 * columns of the other, so that its part of the values is a fraction of its own value; no mixture
 * is ever made. What means over neighbours add is handed on to the neighbours that made them so. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/anomaly/explain/explain.h"

/* ---- one tree ---- */

/* The way from the root: columns in which the rows part, and which of the two was followed. */
typedef struct way {
    const basin_tree_node *tree;
    const float *from, *to;
    double *part, factor;
    int32_t column[BASIN_TREE_DEPTH];
    bool own[BASIN_TREE_DEPTH]; /* `to` was followed */
    int depth, owns;
} way;

static const basin_tree_node *child_of(const way *w, const basin_tree_node *n, const float *row) {
    return w->tree + n->child + !(row[n->feature] <= n->threshold);
}

/* 1 / (a (a + b choose a)): of the orders of a + b columns, those in which one of the a is the last
 * of them and comes before all b. */
static double weight(int a, int b) {
    double w = 1.0 / a;
    for (int i = 1; i <= b; i++) w *= (double)i / (double)(a + i);
    return w;
}

static void leaf(const way *w, double value) {
    int others = w->depth - w->owns;
    double up = w->owns ? w->factor * value * weight(w->owns, others) : 0;
    double down = others ? w->factor * value * weight(others, w->owns) : 0;
    for (int i = 0; i < w->depth; i++) w->part[w->column[i]] += w->own[i] ? up : -down;
}

static void descend(way *w, const basin_tree_node *n);

static void follow(way *w, const basin_tree_node *n, int32_t column, bool own) {
    w->column[w->depth] = column;
    w->own[w->depth++] = own;
    w->owns += own;
    descend(w, n);
    w->owns -= own;
    w->depth--;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as a tree */
static void descend(way *w, const basin_tree_node *n) {
    if (n->feature < 0) {
        leaf(w, (double)n->value);
        return;
    }
    const basin_tree_node *from = child_of(w, n, w->from), *to = child_of(w, n, w->to);
    int32_t column = n->feature;
    for (int i = 0; i < w->depth && from != to; i++)
        if (w->column[i] == column) from = to = w->own[i] ? to : from;
    if (from == to) {
        descend(w, to);
        return;
    }
    follow(w, from, column, false);
    follow(w, to, column, true);
}

void basin_trees_shapley(double *part, const basin_trees *trees, const float *from, const float *to,
                         double factor) {
    for (int64_t t = 0; t < trees->trees; t++) {
        way w = {.tree = trees->node + trees->root[t],
                 .from = from,
                 .to = to,
                 .part = part,
                 .factor = factor};
        descend(&w, w.tree);
    }
}

/* ---- through neighbours ---- */

/* How far a neighbour's value lies from a typical one, of the mean that a column is. */
static double away(const basin_explainer *x, int64_t column, int relation, int64_t neighbour) {
    const basin_tree_table *t = &x->table;
    double typical = (double)x->column_typical[column];
    int64_t own = column % t->own, block = column / t->own;
    if (column >= t->plain) {
        const basin_known_sums *s = &t->sums[relation];
        bool first = (column - t->plain) % 2 == 0;
        if (first) return t->label[neighbour] < 0 ? 0 : t->label[neighbour] - t->rate;
        return (s->anomalous[neighbour] + 2 * t->rate) / (s->count[neighbour] + 2) - typical;
    }
    if (block <= t->relations) return (double)t->raw[neighbour * t->own + own] - typical;
    return (double)t->near[(neighbour * t->relations + relation) * t->own + own] - typical;
}

/* A mean over neighbours that lies above the typical one was made so by those that lie above, each
 * as far as it does; likewise below. */
static void hand_on(basin_told *told, const basin_explainer *x, int64_t column, int relation,
                    float value, double moves) {
    const basin_relation *r = &x->network->relation[x->table.relation[relation]];
    double sign = value >= x->column_typical[column] ? 1 : -1, sum = 0;
    for (int64_t e = r->row[told->node]; e < r->row[told->node + 1]; e++)
        if (r->col[e] != told->node) sum += fmax(0, sign * away(x, column, relation, r->col[e]));
    if (!(sum > 0)) {
        basin_told_push(told, -1, moves);
        return;
    }
    for (int64_t e = r->row[told->node]; e < r->row[told->node + 1]; e++) {
        double far = fmax(0, sign * away(x, column, relation, r->col[e]));
        if (r->col[e] != told->node && far > 0) basin_told_push(told, r->col[e], moves * far / sum);
    }
}

/* ---- a node ---- */

static int relation_of(const basin_explainer *x, int64_t column) {
    const basin_tree_table *t = &x->table;
    if (column >= t->plain) return (int)((column - t->plain) / 2);
    return (int)((column / t->own - 1) % t->relations);
}

static void tell(basin_told *told, const basin_explainer *x, const double *part, const float *row) {
    for (int64_t c = 0; c < x->table.columns; c++) {
        int64_t slot, hop;
        if (part[c] == 0) continue;
        basin_explainer_place(&slot, &hop, x, c);
        basin_told_add(told, x, slot, hop, part[c]);
        if (hop)
            hand_on(told, x, c, relation_of(x, c), row[c], part[c]);
        else
            basin_told_push(told, -1, part[c]);
    }
}

basin_status basin_explain_trees(basin_explainer *x, basin_error *error) {
    const basin_anomaly_ensemble *e = x->ensemble;
    double weight = x->weight[BASIN_ANOMALY_TREES];
    if (!(weight > 0)) return BASIN_OK;
    float *row = basin_array_new((size_t)x->table.columns, sizeof *row);
    double *part = basin_array_new((size_t)x->table.columns, sizeof *part);
    basin_status status = row && part ? BASIN_OK : BASIN_NO_MEMORY;
    if (status) basin_fail(error, status, "out of memory for the reasons of trees");
    for (int64_t i = 0; i < x->count && !status; i++) {
        basin_told *told = &x->told[i];
        memset(part, 0, (size_t)x->table.columns * sizeof *part);
        basin_tree_table_rows(row, &x->table, &told->node, 0, 1);
        for (int64_t k = 0; k < e->fits; k++) {
            double typical, own, factor = weight * basin_anomaly_ensemble_weight(e, &x->table, k);
            if (!(factor > 0)) continue;
            basin_trees_shapley(part, e->trees[k], x->column_typical, row, factor);
            basin_trees_predict(&typical, e->trees[k], x->column_typical, 1);
            basin_trees_predict(&own, e->trees[k], row, 1);
            told->typical += factor * typical;
            told->reached += factor * own;
        }
        tell(told, x, part, row);
    }
    free(row);
    free(part);
    return status;
}
