/* Rows of nodes that additions change; those of the base are made once. See near.h. */
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
    }
    if (rows->trees) BASIN_TRY(basin_tree_table_open(&rows->table, graph->base, e, memory, error));
    inputs->node.grown = rows->table.node.grown = graph;
    rows->table.node.first = inputs->node.stride;
    int64_t widest = basin_int_max(inputs->node.own, rows->table.node.own);
    return BASIN_NEW_RAW(&rows->scratch, 2 * widest + graph->base->facts.count, "inputs", error);
}

void basin_near_rows_close(basin_near_rows *rows) {
    basin_node_inputs_close(&rows->inputs);
    basin_tree_table_close(&rows->table);
    free(rows->scratch);
}

int64_t basin_near_rows_size(const basin_near_rows *rows) {
    return rows->inputs.node.stride + rows->table.node.stride;
}

void basin_near_rows_begin(float *row, const basin_near_rows *rows, int64_t node) {
    const basin_node_table *table[] = {&rows->inputs.node, &rows->table.node};
    for (int k = 0; k < 2 && node < rows->graph->base->nodes; k++)
        if (table[k]->row)
            memcpy(row + table[k]->first, basin_node_row(table[k], node),
                   (size_t)table[k]->stride * sizeof *row);
}

/* ---- changed nodes ---- */

static void renew_own(const basin_near_rows *rows, const basin_node_table *t, int64_t node) {
    float *row = basin_node_row(t, node), *raw = rows->scratch, *total = raw + 2 * t->own;
    bool scaled = t == &rows->inputs.node;
    basin_scaler scale = rows->model->scale;
    scale.features = t->own;
    basin_node_table_own_row(scaled ? raw : row, total, t, node);
    if (scaled) basin_scaler_apply(row, &scale, raw, 1);
}

/* Neighbours of a node in its means: all but itself. */
static int64_t others(const basin_near_graph *g, int relation, int64_t node) {
    basin_near_list list = basin_near_sees(g, relation, node, false);
    int64_t at = basin_near_place(g, &list, node);
    return list.count - (at < list.count && list.col[at] == node);
}

/* A changed node's own columns anew, also in the first means of the nodes that see it. */
static void renew_in_means(const basin_near_rows *rows, const basin_node_table *t, int64_t node) {
    const basin_near_graph *g = rows->graph;
    float *row = basin_node_row(t, node), *grows = rows->scratch + t->own;
    for (int64_t c = 0; c < t->own; c++) grows[c] = -row[c];
    renew_own(rows, t, node);
    for (int64_t c = 0; c < t->own; c++) grows[c] += row[c];
    for (int64_t b = 1; b <= (t->chain < 0 ? t->means : basin_int_min(t->means, 1)); b++) {
        int along = basin_node_table_along(t, b);
        basin_near_list list = basin_near_sees(g, along, node, g->base->directed);
        for (int64_t i = 0; i < list.count && list.count <= HUB; i++) {
            int64_t j = list.col[i], count = others(g, along, j);
            float *mean = basin_node_row(t, j) + b * t->own;
            for (int64_t c = 0; c < t->own && j != node; c++) mean[c] += grows[c] / (float)count;
        }
    }
}

void basin_near_rows_renew(const basin_near_rows *rows, const int64_t *changed, int64_t count) {
    const basin_node_table *table[] = {&rows->inputs.node, &rows->table.node};
    for (int k = 0; k < 2; k++) {
        const basin_node_table *t = table[k];
        if (!t->row) continue;
        for (int64_t i = 0; i < count; i++) renew_in_means(rows, t, changed[i]);
        for (int64_t b = 1; b <= t->means; b++)
            for (int64_t i = 0; i < count; i++)
                basin_node_table_mean(basin_node_row(t, changed[i]) + b * t->own, t, b, changed[i]);
    }
    for (int64_t i = 0; i < count && rows->table.label; i++)
        basin_known_sums_fill(&rows->table, changed[i]);
}
