/* Rows of inputs of nodes that additions change; those of the base are made once. See near.h. */
#include "tasks/nodes/near.h"

#include "base/sort.h"

enum { HUB = 4096 }; /* more neighbours than these */

basin_status basin_near_rows_open(basin_near_rows *rows, const basin_near_graph *graph,
                                  const basin_nodes_model *model, size_t memory,
                                  basin_error *error) {
    const basin_nodes_ensemble *e = &model->ensemble;
    basin_node_inputs *inputs = &rows->inputs;
    rows->network = !e->fits || e->share > 0, rows->trees = e->fits && e->share < 1;
    if (rows->network) {
        BASIN_TRY(basin_node_inputs_open(inputs, graph->base, &model->settings, error));
        BASIN_TRY(basin_node_inputs_scale(inputs, &model->scale, &model->edge_scale, error));
        rows->hops = model->settings.hops;
        rows->width = inputs->shape.columns / (1 + rows->hops);
    }
    if (rows->trees) BASIN_TRY(basin_tree_table_open(&rows->table, graph->base, e, memory, error));
    size_t size = (size_t)(inputs->features + graph->base->facts.count + 1);
    size += (size_t)(rows->width + rows->table.own);
    return BASIN_NEW_RAW(&rows->scratch, size, "inputs", error);
}

void basin_near_rows_close(basin_near_rows *rows) {
    basin_node_inputs_close(&rows->inputs);
    basin_tree_table_close(&rows->table);
    free(rows->scratch);
}

int64_t basin_near_rows_size(const basin_near_rows *rows) {
    const basin_tree_table *t = &rows->table;
    return rows->inputs.shape.columns + t->own + t->relations * (t->own + 2);
}

/* ---- rows of a node ---- */

static float *changed_row(const basin_near_rows *rows, int64_t node) {
    return rows->graph->node[node] ? rows->graph->node[node]->row : NULL;
}

static float *inputs_row(const basin_near_rows *rows, int64_t node) {
    float *row = changed_row(rows, node);
    return row ? row : rows->inputs.table + node * rows->inputs.shape.columns;
}

const float *basin_near_inputs(const basin_near_rows *rows, int64_t node) {
    return inputs_row(rows, node);
}

/* Of trees: its own, or its first means along one of their relations (-1: its own). */
static float *tree_row(const basin_near_rows *rows, int64_t node, int r) {
    const basin_tree_table *t = &rows->table;
    float *row = changed_row(rows, node);
    if (row) return row + rows->inputs.shape.columns + (1 + r) * t->own;
    return r < 0 ? t->raw + node * t->own : t->near + (node * t->relations + r) * t->own;
}

/* How many known neighbours are anomalous, and how many there are. */
static void known_sums(float sum[2], const basin_near_rows *rows, int64_t node, int r) {
    const basin_tree_table *t = &rows->table;
    const float *row = changed_row(rows, node);
    sum[0] = row ? tree_row(rows, node, t->relations)[2 * r] : t->sums[r].anomalous[node];
    sum[1] = row ? tree_row(rows, node, t->relations)[2 * r + 1] : t->sums[r].count[node];
}

/* A mean over neighbours: of the inputs over `hop` hops, or of trees' rows. */
static void mean(float *to, const basin_near_rows *rows, int relation, int64_t node, bool trees,
                 int64_t which) {
    basin_near_list list = basin_near_sees(rows->graph, relation, node, false);
    int64_t columns = trees ? rows->table.own : rows->width, count = 0;
    memset(to, 0, (size_t)columns * sizeof *to);
    for (int64_t i = 0; i < list.count; i++) {
        int64_t j = list.col[i];
        if (j == node) continue;
        basin_row_add(to,
                      trees ? tree_row(rows, j, (int)which)
                            : basin_near_inputs(rows, j) + which * columns,
                      columns);
        count++;
    }
    for (int64_t c = 0; c < columns && count; c++) to[c] /= (float)count;
}

/* ---- changed nodes ---- */

/* Features, logarithms of degrees and totals of what edges carry, along some relations. */
static void fill_own(float *x, float *total, const basin_near_graph *g, int64_t node,
                     const int *relation, int relations, bool degree, bool totals) {
    const basin_facts *facts = &g->base->facts;
    int64_t F = g->base->feature ? g->base->features : 0;
    if (F) memcpy(x, basin_near_feature(g, node), (size_t)F * sizeof *x);
    x += F;
    for (int r = 0; r < relations && degree; r++)
        *x++ = (float)log1p((double)basin_near_sees(g, relation[r], node, false).count);
    for (int r = 0; r < relations && totals; r++)
        for (int leaving = 0; leaving <= g->base->directed; leaving++) {
            basin_near_list list = basin_near_sees(g, relation[r], node, leaving);
            memset(total, 0, (size_t)facts->count * sizeof *total);
            for (int64_t i = 0; i < list.count; i++)
                basin_facts_merge(total, basin_near_fact(&list, i, facts->count), facts);
            basin_node_facts_columns(x, total, facts);
            x += basin_facts_width(facts);
        }
}

static void renew_own(const basin_near_rows *rows, int64_t node) {
    const basin_node_inputs *in = &rows->inputs;
    const basin_nodes_settings *s = &rows->model->settings;
    const basin_tree_table *t = &rows->table;
    basin_scaler scale = rows->model->scale;
    float *row = changed_row(rows, node), *raw = rows->scratch;
    scale.features = in->features;
    if (rows->network) {
        fill_own(raw, raw + in->features, rows->graph, node, in->relation, in->shape.relations,
                 s->degree, basin_facts_are_features(s));
        basin_scaler_apply(row, &scale, raw, 1);
    }
    if (rows->trees)
        fill_own(row + in->shape.columns, raw, rows->graph, node, t->relation, t->relations,
                 rows->model->ensemble.degree, t->facts > 0);
}

static void sum_labels(float sum[2], const basin_near_graph *g, int relation, int64_t node) {
    basin_near_list list = basin_near_sees(g, relation, node, false);
    sum[0] = sum[1] = 0;
    for (int64_t i = 0; i < list.count; i++) {
        int8_t label = basin_near_known(g, list.col[i]);
        if (list.col[i] != node && label >= 0) sum[0] += label, sum[1]++;
    }
}

/* Neighbours of a node in its means: all but itself. */
static int64_t others(const basin_near_graph *g, int relation, int64_t node) {
    basin_near_list list = basin_near_sees(g, relation, node, false);
    int32_t own = (int32_t)node;
    return list.count -
           (bsearch(&own, list.col, (size_t)list.count, sizeof own, basin_compare_int32) != NULL);
}

/* In a node's first means along a relation a neighbour's row grows by so much. */
static void replace(float *mean, const float *grows, int64_t columns, int64_t count) {
    for (int64_t c = 0; c < columns; c++) mean[c] += grows[c] / (float)count;
}

/* Own rows of a changed node anew, in the means of who sees it, too. */
static void renew_in_means(const basin_near_rows *rows, int64_t node) {
    const basin_near_graph *g = rows->graph;
    const basin_tree_table *t = &rows->table;
    int along = rows->hops ? (int)(basin_node_inputs_hops(&rows->inputs) - g->base->relation) : -1;
    int64_t columns = rows->inputs.shape.columns;
    float *row = changed_row(rows, node), *own = rows->scratch + rows->inputs.features;
    own += g->base->facts.count + 1;
    for (int64_t c = 0; c < rows->width; c++) own[c] = -row[c];
    for (int64_t c = 0; c < t->own; c++) own[rows->width + c] = -row[columns + c];
    renew_own(rows, node);
    for (int64_t c = 0; c < rows->width; c++) own[c] += row[c];
    for (int64_t c = 0; c < t->own; c++) own[rows->width + c] += row[columns + c];
    for (int r = 0; r < g->base->relations; r++) {
        basin_near_list list = basin_near_sees(g, r, node, g->base->directed);
        for (int64_t i = 0; i < list.count && list.count <= HUB; i++) {
            int64_t j = list.col[i], count = others(g, r, j);
            if (r == along && j != node)
                replace(inputs_row(rows, j) + rows->width, own, rows->width, count);
            for (int k = 0; k < t->relations && j != node; k++)
                if (t->relation[k] == r)
                    replace(tree_row(rows, j, k), own + rows->width, t->own, count);
        }
    }
}

void basin_near_rows_begin(float *row, const basin_near_rows *rows, int64_t node) {
    const basin_tree_table *t = &rows->table;
    int64_t columns = rows->inputs.shape.columns;
    if (node >= rows->graph->base->nodes) return;
    if (columns) memcpy(row, basin_near_inputs(rows, node), (size_t)columns * sizeof *row);
    for (int r = -1; r < t->relations && t->own; r++)
        memcpy(row + columns + (1 + r) * t->own, tree_row(rows, node, r),
               (size_t)t->own * sizeof *row);
}

void basin_near_rows_renew(const basin_near_rows *rows, const int64_t *changed, int64_t count) {
    const basin_near_graph *g = rows->graph;
    const basin_tree_table *t = &rows->table;
    if (!rows->network && !rows->trees) return;
    for (int64_t i = 0; i < count; i++) renew_in_means(rows, changed[i]);
    for (int64_t hop = 0; hop < rows->hops; hop++)
        for (int64_t i = 0; i < count; i++)
            mean(changed_row(rows, changed[i]) + (hop + 1) * rows->width, rows,
                 (int)(basin_node_inputs_hops(&rows->inputs) - g->base->relation), changed[i],
                 false, hop);
    for (int64_t i = 0; i < count && rows->trees; i++) {
        float *row = changed_row(rows, changed[i]) + rows->inputs.shape.columns + t->own;
        for (int r = 0; r < t->relations; r++) {
            mean(row + r * t->own, rows, t->relation[r], changed[i], true, -1);
            if (t->label)
                sum_labels(row + t->relations * t->own + 2 * r, g, t->relation[r], changed[i]);
        }
    }
}

/* As basin_known_shares has it. */
static void known_shares(float share[2], const basin_near_rows *rows, int64_t node, int r) {
    const double strength = 2, rate = rows->table.rate;
    basin_near_list list = basin_near_sees(rows->graph, rows->table.relation[r], node, false);
    int8_t label = basin_near_known(rows->graph, node);
    float own[2], theirs[2];
    double sum = 0, count = 0, back = label >= 0 && !rows->graph->base->directed;
    known_sums(own, rows, node, r);
    share[0] = (float)((own[0] + rate * strength) / (own[1] + strength));
    for (int64_t i = 0; i < list.count; i++) {
        if (list.col[i] == node) continue;
        known_sums(theirs, rows, list.col[i], r);
        sum += (theirs[0] - back * (label > 0) + rate * strength) / (theirs[1] - back + strength);
        count++;
    }
    share[1] = (float)(count > 0 ? sum / count : rate);
}

void basin_near_inputs_now(float *x, const basin_near_rows *rows, int64_t node) {
    int along = (int)(basin_node_inputs_hops(&rows->inputs) - rows->graph->base->relation);
    memcpy(x, basin_near_inputs(rows, node), (size_t)rows->width * sizeof *x);
    for (int64_t hop = 0; hop < rows->hops; hop++)
        mean(x + (hop + 1) * rows->width, rows, along, node, false, hop);
}

void basin_near_trees(float *x, const basin_near_rows *rows, int64_t node) {
    const basin_tree_table *t = &rows->table;
    int64_t R = t->relations;
    if (!rows->graph->changes) {
        basin_tree_table_rows(x, t, &node, 0, 1);
        return;
    }
    memcpy(x, tree_row(rows, node, -1), (size_t)t->own * sizeof *x);
    for (int r = 0; r < R; r++) {
        mean(x + (1 + r) * t->own, rows, t->relation[r], node, true, -1);
        mean(x + (1 + R + r) * t->own, rows, t->relation[r], node, true, r);
        if (t->label) known_shares(x + t->plain + 2 * r, rows, node, r);
    }
}

void basin_near_table_rows(basin_tree_table *t, int64_t at, const basin_near_rows *rows,
                           int64_t node) {
    size_t own = (size_t)t->own * sizeof *t->raw;
    memcpy(t->raw + at * t->own, tree_row(rows, node, -1), own);
    for (int r = 0; r < t->relations; r++) {
        float sum[2];
        memcpy(t->near + (at * t->relations + r) * t->own, tree_row(rows, node, r), own);
        if (!t->label) continue;
        known_sums(sum, rows, node, r);
        t->sums[r].anomalous[at] = sum[0], t->sums[r].count[at] = sum[1];
    }
}
