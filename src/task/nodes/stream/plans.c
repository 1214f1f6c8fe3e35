/* Expressions and plans of a stream; see stream_plans.h. */
#include "task/nodes/stream/plans.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/walk.h"
#include "base/memory.h"

static void declare_inputs(basin_nodes_stream_plans *p, const basin_node_inputs *inputs) {
    const basin_nodes_settings *r = inputs->settings;
    int64_t B = p->rows, S = p->stride;
    p->features = basin_input(p->graph, "features", BASIN_SHAPE(B, inputs->shape.columns));
    p->mask = basin_nodes_mask_declare(p->graph, r, inputs->shape.columns);
    if (basin_choice_is(r->position, "laplacian"))
        p->eigenvectors = basin_input(p->graph, "eigenvectors", BASIN_SHAPE(B, r->eigenvectors));
    if (basin_choice_is(r->position, "learned"))
        p->place = basin_index(p->graph, "place", BASIN_SHAPE(B));
    p->x = basin_input(p->graph, "x", BASIN_SHAPE(B, r->dim));
    p->g = basin_input(p->graph, "g", BASIN_SHAPE(B, S));
    p->stack = basin_input(p->graph, "stack", BASIN_SHAPE(S, r->heads * S));
    p->sum = basin_input(p->graph, "sum", BASIN_SHAPE(B, r->heads * S));
}

/* Zeros beyond the width. */
static basin_expr widen(const basin_nodes_stream_plans *p, basin_expr a) {
    int64_t D = p->model.config.block.dim;
    if (p->stride == D) return a;
    basin_expr zero = basin_fill(p->graph, BASIN_SHAPE(p->rows, p->stride - D), 0);
    return basin_concat((basin_expr[]){a, zero}, 2, 1);
}

static void declare_blocks(basin_nodes_stream_plans *p) {
    const basin_anomaly_config *c = &p->model.config;
    for (int b = 0; b < c->blocks; b++) {
        const basin_block *block = basin_anomaly_block(&p->model, b);
        p->normed[b] = widen(p, basin_block_norm(block, p->x));
        if (c->block.no_hopfield) continue;
        basin_expr g = basin_variable(basin_slice(p->g, 1, 0, c->block.dim));
        basin_expr energy = basin_energy_hopfield(g, block->xi, c->block.hopfield, c->block.power);
        p->recalled[b] = basin_neg(basin_grad(energy, g));
    }
    if (c->block.no_attention) return;
    p->own = basin_matmul(p->g, p->stack);
    p->back = basin_matmul_t(p->sum, false, p->stack, true);
}

static void declare_ends(basin_nodes_stream_plans *p) {
    const basin_anomaly_config *c = &p->model.config;
    basin_expr last[BASIN_ANOMALY_RELATIONS];
    char name[32];
    basin_expr seen = p->mask ? basin_mul(p->features, p->mask) : p->features;
    p->tokens = basin_anomaly_embed(&p->model, seen, p->place ? p->place : p->eigenvectors);
    for (int r = 0; r < c->relations; r++) {
        snprintf(name, sizeof name, "last%d", r);
        p->last[r] = basin_input(p->graph, name, BASIN_SHAPE(p->rows, c->block.dim));
        last[r] = basin_block_norm(basin_anomaly_block(&p->model, c->blocks - 1), p->last[r]);
    }
    basin_expr first = basin_block_norm(&p->model.block, p->tokens);
    p->read = basin_anomaly_head(&p->model, first, last, NULL);
    if (!p->model.config.outputs) p->read = basin_sigmoid(p->read);
}

static basin_status make_plan(basin_plan **plan, basin_store *store, basin_expr output,
                              basin_error *error) {
    basin_plan_spec spec = {.output = &output, .outputs = 1};
    return basin_plan_new(plan, store, &spec, error);
}

static basin_status make_plans(basin_nodes_stream_plans *p, basin_store *store,
                               basin_error *error) {
    const basin_anomaly_config *c = &p->model.config;
    const basin_error *found = basin_graph_error(p->graph);
    if (found) return basin_fail(error, found->status, "%s", found->text);
    basin_status status = make_plan(&p->embed, store, p->tokens, error);
    if (!status) status = make_plan(&p->head, store, p->read, error);
    for (int b = 0; b < c->blocks && !status; b++) {
        status = make_plan(&p->norm[b], store, p->normed[b], error);
        if (!status && p->recalled[b])
            status = make_plan(&p->recall[b], store, p->recalled[b], error);
    }
    if (status || c->block.no_attention) return status;
    status = make_plan(&p->project, store, p->own, error);
    return status ? status : make_plan(&p->pull, store, p->back, error);
}

basin_status basin_nodes_stream_plans_new(basin_nodes_stream_plans *p,
                                          const basin_node_inputs *inputs, int64_t rows,
                                          basin_store *store, basin_error *error) {
    basin_anomaly_config config = basin_nodes_net_config(inputs->settings, &inputs->shape);
    int64_t align = BASIN_WALK_ALIGN;
    config.dropout = 0;
    *p = (basin_nodes_stream_plans){.graph = basin_graph_new(), .rows = rows};
    if (!p->graph) return basin_fail(error, BASIN_NO_MEMORY, "out of memory to stream");
    p->stride = (inputs->settings->dim + align - 1) / align * align;
    basin_params_begin(&p->params, p->graph);
    declare_inputs(p, inputs);
    if (!basin_anomaly_declare(&p->model, &p->params, &config)) {
        declare_blocks(p);
        declare_ends(p);
    }
    return make_plans(p, store, error);
}

void basin_nodes_stream_plans_free(basin_nodes_stream_plans *p) {
    for (int b = 0; b < BASIN_ANOMALY_BLOCKS; b++) {
        basin_plan_free(p->norm[b]);
        basin_plan_free(p->recall[b]);
    }
    basin_plan_free(p->embed);
    basin_plan_free(p->project);
    basin_plan_free(p->pull);
    basin_plan_free(p->head);
    basin_params_free(&p->params);
    basin_graph_free(p->graph);
    *p = (basin_nodes_stream_plans){0};
}

static size_t plan_bytes(const basin_plan *plan) {
    if (!plan) return 0;
    basin_plan_stats stats = basin_plan_get_stats(plan);
    return stats.arena_bytes + stats.input_bytes;
}

size_t basin_nodes_stream_plans_bytes(const basin_nodes_stream_plans *p) {
    size_t bytes =
        plan_bytes(p->embed) + plan_bytes(p->project) + plan_bytes(p->pull) + plan_bytes(p->head);
    for (int b = 0; b < BASIN_ANOMALY_BLOCKS; b++)
        bytes += plan_bytes(p->norm[b]) + plan_bytes(p->recall[b]);
    return bytes;
}

/* ---- weights ---- */

basin_status basin_nodes_stream_read(basin_tensor *to, basin_store *store, basin_expr state,
                                     basin_error *error) {
    basin_tensor found = {0};
    basin_status status = basin_store_read(store, basin_expr_name(state), &found, error);
    if (!status) status = basin_tensor_new(to, BASIN_F32, found.shape, error);
    if (!status) status = basin_tensor_convert(to, &found, error);
    basin_tensor_free(&found);
    return status;
}

/* One head's M[i, j] = sum over y of wk[y, i] wq[y, j], into both stacks. */
static void fill_stack(float *ask, float *answer, const float *wk, const float *wq, int64_t head,
                       int64_t width, int64_t D, int64_t Y, int64_t stride) {
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j < D; j++) {
            double m = 0;
            for (int64_t y = 0; y < Y; y++) m += (double)wk[y * D + i] * wq[y * D + j];
            answer[i * width + head * stride + j] = (float)m;
            ask[j * width + head * stride + i] = (float)m;
        }
}

basin_status basin_nodes_stream_stack(float *ask, float *answer, float *beta,
                                      const basin_nodes_stream_plans *p, const basin_block *block,
                                      basin_store *store, basin_error *error) {
    const basin_block_config *c = &block->config;
    int64_t H = c->heads, D = c->dim, Y = c->head_dim, width = H * p->stride;
    basin_tensor wk = {0}, wq = {0}, learned = {0};
    basin_status status = basin_nodes_stream_read(&wk, store, block->wk, error);
    if (!status) status = basin_nodes_stream_read(&wq, store, block->wq, error);
    if (!status && c->learn_beta)
        status = basin_nodes_stream_read(&learned, store, block->beta, error);
    if (!status) {
        double fixed = c->beta > 0 ? c->beta : 1 / sqrt((double)Y);
        memset(ask, 0, (size_t)(p->stride * width) * sizeof *ask);
        memset(answer, 0, (size_t)(p->stride * width) * sizeof *answer);
        for (int64_t h = 0; h < H; h++) {
            fill_stack(ask, answer, (const float *)wk.data + h * Y * D,
                       (const float *)wq.data + h * Y * D, h, width, D, Y, p->stride);
            beta[h] = learned.data ? ((const float *)learned.data)[h] : (float)fixed;
        }
    }
    basin_tensor_free(&wk);
    basin_tensor_free(&wq);
    basin_tensor_free(&learned);
    return status;
}
