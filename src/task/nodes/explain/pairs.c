/* Facts of edges along the line of an integral, and what they are told as; see pairs.h. */
#include "task/nodes/explain/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static basin_status line_new(basin_pair_line *l, basin_expr input, const basin_pairs *pairs,
                             basin_error *error) {
    size_t cells = (size_t)basin_shape_count(basin_expr_shape(input));
    *l = (basin_pair_line){.pairs = pairs, .input = input, .cells = (int64_t)cells};
    l->own = calloc(cells + 1, sizeof *l->own);
    l->apart = calloc(cells + 1, sizeof *l->apart);
    l->row = basin_array_new(cells, sizeof *l->row);
    l->sum = basin_array_new(cells, sizeof *l->sum);
    l->value = basin_array_new(cells, sizeof *l->value);
    if (l->own && l->apart && l->row && l->sum && l->value) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for what edges explain");
}

/* A node's pair with itself, where it is added, is no edge and has no facts. */
static void set_apart(basin_pair_line *l, const basin_explainer *x, int64_t facts) {
    for (int64_t q = 0; q < l->pairs->queries; q++)
        for (int64_t p = l->pairs->row[q]; p < l->pairs->row[q + 1]; p++) {
            if (x->inputs.reader.add_self && l->pairs->key[p] == q) continue;
            for (int64_t c = 0; c < facts; c++)
                l->apart[p * facts + c] = l->own[p * facts + c] - x->edge_typical[c];
        }
}

basin_status basin_pair_lines_open(basin_pair_lines *lines, const basin_explainer *x,
                                   const basin_nodes_net *net, const basin_nodes_batch *batch,
                                   basin_error *error) {
    basin_status status = BASIN_OK;
    *lines = (basin_pair_lines){.facts = batch->shape.facts};
    for (int r = 0; r < batch->shape.relations && net->facts[r] && !status; r++) {
        basin_pair_line *l = &lines->of[lines->count++];
        const basin_pairs *pairs = &batch->pairs[r];
        float *own = NULL;
        status = line_new(l, net->facts[r], pairs, error);
        if (!status)
            status = basin_edge_facts(&own, batch->reader, batch->network, r, pairs, error);
        if (!status) {
            memcpy(l->own, own, (size_t)(pairs->pairs * lines->facts) * sizeof *own);
            set_apart(l, x, lines->facts);
        }
        free(own);
    }
    return status;
}

void basin_pair_lines_close(basin_pair_lines *lines) {
    for (int r = 0; r < lines->count; r++) {
        basin_pair_line *l = &lines->of[r];
        free(l->own), free(l->apart), free(l->row), free(l->sum), free(l->value);
    }
    *lines = (basin_pair_lines){0};
}

basin_status basin_pair_lines_write(basin_pair_lines *lines, basin_plan *plan, double t,
                                    basin_error *error) {
    basin_status status = BASIN_OK;
    for (int r = 0; r < lines->count && !status; r++) {
        basin_pair_line *l = &lines->of[r];
        for (int64_t i = 0; i < l->cells; i++) l->row[i] = l->own[i] - (float)(1 - t) * l->apart[i];
        basin_tensor tensor = basin_tensor_borrow(l->row, BASIN_F32, basin_expr_shape(l->input));
        status = basin_plan_write(plan, l->input, &tensor, error);
    }
    return status;
}

void basin_pair_lines_clear(basin_pair_lines *lines) {
    for (int r = 0; r < lines->count; r++)
        memset(lines->of[r].sum, 0, (size_t)lines->of[r].cells * sizeof *lines->of[r].sum);
}

basin_status basin_pair_lines_add(basin_pair_lines *lines, basin_plan *plan, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int r = 0; r < lines->count && !status; r++) {
        basin_pair_line *l = &lines->of[r];
        basin_tensor tensor = basin_tensor_borrow(l->value, BASIN_F64, basin_expr_shape(l->input));
        status = basin_plan_read(plan, l->slope, &tensor, error);
        for (int64_t i = 0; i < l->cells && !status; i++) l->sum[i] += l->value[i];
    }
    return status;
}

double basin_pair_lines_moved(const basin_pair_lines *lines, int64_t start, int64_t rows) {
    double sum = 0;
    for (int r = 0; r < lines->count; r++) {
        const basin_pair_line *l = &lines->of[r];
        int64_t end = l->pairs->row[start + rows] * lines->facts;
        for (int64_t i = l->pairs->row[start] * lines->facts; i < end; i++)
            sum += l->sum[i] * (double)l->apart[i];
    }
    return sum;
}

/* ---- telling ---- */

/* 0: the node itself, 1: a neighbour, 2: one of theirs. */
static int64_t hops_to(const basin_surroundings *around, int64_t at) {
    return at == 0 ? 0 : at <= around->firsts ? 1 : 2;
}

/* What an edge adds comes through the neighbour at its end; between two of them in halves. */
static basin_status push_pair(basin_told *told, const basin_explainer *x,
                              const basin_surroundings *around, int64_t a, int64_t b, double all,
                              basin_error *error) {
    int64_t far_a = hops_to(around, a), far_b = hops_to(around, b);
    if (far_a == 2 && far_b == 2)
        return basin_told_push_between(told, x, around->node[a], all, error);
    if (!far_a || !far_b) {
        basin_told_push(told, a + b ? around->node[a + b] : -1, all);
        return BASIN_OK;
    }
    double part = far_a == far_b ? all / 2 : all;
    if (far_a == 1) basin_told_push(told, around->node[a], part);
    if (far_b == 1) basin_told_push(told, around->node[b], part);
    return BASIN_OK;
}

basin_status basin_pair_lines_tell(const basin_pair_lines *lines, const basin_explainer *x,
                                   basin_told *told, const basin_surroundings *around,
                                   int64_t start, double scale, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int r = 0; r < lines->count; r++) {
        const basin_pair_line *l = &lines->of[r];
        for (int64_t a = 0; a < around->count; a++)
            for (int64_t p = l->pairs->row[start + a]; p < l->pairs->row[start + a + 1]; p++) {
                int64_t b = l->pairs->key[p] - start, far = hops_to(around, a);
                bool goes = hops_to(around, b) < far; /* seen from its nearer end */
                int64_t slot = x->edge_slot[r] + (goes && x->network->directed ? lines->facts : 0);
                double all = 0;
                for (int64_t c = 0; c < lines->facts; c++) {
                    int64_t i = p * lines->facts + c;
                    double one = scale * l->sum[i] * (double)l->apart[i];
                    basin_told_add(told, x, slot + c, goes ? hops_to(around, b) : far, one);
                    all += one;
                }
                status = push_pair(told, x, around, a, b, all, error);
                if (status) return status;
            }
    }
    return status;
}
