/* What the columns of trees move a node's logit by: its Shapley values less those of a typical row,
 * both by XGBoost. What means over neighbours add is passed on to the neighbours behind them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "task/nodes/explain/explain.h"

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

/* Both rows of a fit: the typical one's values taken off the node's, their sum is the distance
 * between the two logits. */
static basin_status add_fit(double *moves, basin_told *told, const basin_trees *trees,
                            const float *rows /* [2, columns] */, int64_t columns, double factor,
                            basin_error *error) {
    int64_t read = basin_trees_features(trees);
    BASIN_FREE_AT_EXIT float *value = NULL; /* [2, read + 1] */
    double logit[2], sum = 0;
    BASIN_TRY(BASIN_NEW(&value, 2 * (read + 1), "the reasons of trees", error));
    BASIN_TRY(basin_trees_shapley(value, trees, rows, 2, columns, error));
    BASIN_TRY(basin_trees_predict(logit, trees, rows, 2, columns, error));
    int64_t largest = 0;
    for (int64_t c = 0; c < read; c++) {
        value[c] = value[read + 1 + c] - value[c];
        moves[c] += factor * (double)value[c];
        sum += (double)value[c];
        if (fabsf(value[c]) > fabsf(value[largest])) largest = c;
    }
    moves[largest] += factor * (logit[1] - logit[0] - sum); /* what single precision lost */
    told->typical += factor * logit[0];
    told->reached += factor * logit[1];
    return BASIN_OK;
}

basin_status basin_explain_trees(basin_explainer *x, basin_error *error) {
    const basin_nodes_ensemble *e = x->ensemble;
    int64_t columns = x->table.columns;
    double weight = x->weight[BASIN_NODES_TREES];
    BASIN_FREE_AT_EXIT float *rows = NULL;
    BASIN_FREE_AT_EXIT double *moves = NULL;
    if (!(weight > 0)) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&rows, 2 * columns, "the reasons of trees", error));
    BASIN_TRY(BASIN_NEW_RAW(&moves, columns, "the reasons of trees", error));
    memcpy(rows, x->column_typical, (size_t)columns * sizeof *rows);
    for (int64_t i = 0; i < x->count; i++) {
        basin_told *told = &x->told[i];
        memset(moves, 0, (size_t)columns * sizeof *moves);
        basin_tree_table_rows(rows + columns, &x->table, &told->node, 0, 1);
        for (int64_t k = 0; k < e->fits; k++) {
            double factor = weight * basin_nodes_ensemble_weight(e, &x->table, k);
            if (factor > 0)
                BASIN_TRY(add_fit(moves, told, e->trees[k], rows, columns, factor, error));
        }
        tell(told, x, moves, rows + columns);
    }
    return BASIN_OK;
}
