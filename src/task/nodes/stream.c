/* A whole graph in blocks of nodes, with every neighbour of every node, where no plan of it fits
 * into memory; see stream.h. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/device.h"
#include "backend/walk.h"
#include "base/team/processors.h"
#include "base/team/team.h"
#include "base/try.h"
#include "task/nodes/stream.h"

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

/* ---- Smoothing node by node, as basin_smooth has it as an expression: z <- a h + (1 - a) (S + S')
 * z / 2, S = D^-1/2 (A + I) D^-1/2. */

typedef struct smoothing {
    const basin_stream_graph *graph;
    bool keep_self; /* loops of the data count beside the one that each node has */
    int64_t classes;
    double anchor;
    double *own, *next; /* [N, C] */
    double *root;       /* [N] */
} smoothing;

static void find_roots(smoothing *s) {
    const basin_stream_graph *g = s->graph;
    for (int64_t i = 0; i < g->nodes; i++) {
        int64_t count = 1;
        for (int64_t e = g->row[i]; e < g->row[i + 1]; e++) count += s->keep_self || g->key[e] != i;
        s->root[i] = 1 / sqrt((double)count);
    }
}

/* sum [C] += half of what node i hears along one of the lists. */
static void hear(double *sum, const smoothing *s, const double *z, int64_t i, const int64_t *begin,
                 const int32_t *other) {
    int64_t C = s->classes;
    for (int64_t e = begin[i]; e < begin[i + 1]; e++) {
        int64_t j = other[e];
        double part = 0.5 * s->root[j];
        if (j == i && !s->keep_self) continue;
        for (int64_t c = 0; c < C; c++) sum[c] += part * z[j * C + c];
    }
}

typedef struct stepping {
    const smoothing *smoothing;
    const double *z; /* [nodes, C] */
} stepping;

static void step_nodes(const void *context, int64_t first, int64_t last, int place) {
    const smoothing *s = ((const stepping *)context)->smoothing;
    const double *z = ((const stepping *)context)->z;
    const basin_stream_graph *g = s->graph;
    int64_t C = s->classes;
    (void)place;
    for (int64_t i = first; i < last; i++) {
        double *sum = s->next + i * C;
        for (int64_t c = 0; c < C; c++) sum[c] = s->root[i] * z[i * C + c];
        hear(sum, s, z, i, g->row, g->key);
        hear(sum, s, z, i, g->column, g->query);
        for (int64_t c = 0; c < C; c++)
            sum[c] = s->anchor * s->own[i * C + c] + (1 - s->anchor) * s->root[i] * sum[c];
    }
}

static void step(const smoothing *s, double *z) {
    int64_t nodes = s->graph->nodes;
    stepping now = {s, z};
    basin_team_run_all(step_nodes, &now, nodes, 256);
    memcpy(z, s->next, (size_t)(nodes * s->classes) * sizeof *z);
}

static basin_status smooth(double *z, const basin_stream_graph *graph,
                           const basin_nodes_settings *r, basin_error *error) {
    smoothing s = {.graph = graph,
                   .keep_self = basin_choice_is(r->self_loops, "keep"),
                   .classes = r->classes,
                   .anchor = r->anchor};
    size_t rows = (size_t)graph->nodes, row = (size_t)r->classes * sizeof(double);
    s.own = basin_array_new(rows, row);
    s.next = basin_array_new(rows, row);
    s.root = basin_array_new(rows, sizeof *s.root);
    basin_status status = s.own && s.next && s.root ? BASIN_OK : BASIN_NO_MEMORY;
    if (status) basin_fail(error, status, "out of memory to smooth %zu nodes", rows);
    if (!status) {
        memcpy(s.own, z, rows * row);
        find_roots(&s);
        for (int64_t t = 0; t < r->smoothing; t++) step(&s, z);
    }
    free(s.own), free(s.next), free(s.root);
    return status;
}

static void to_probabilities(double *z, int64_t classes) {
    double most = z[0], sum = 0;
    for (int64_t c = 1; c < classes; c++) most = fmax(most, z[c]);
    for (int64_t c = 0; c < classes; c++) sum += z[c] = exp(z[c] - most);
    for (int64_t c = 0; c < classes; c++) z[c] /= sum;
}

basin_status basin_stream_settle(double *value, const basin_stream_graph *graph,
                                 const basin_nodes_settings *settings, basin_error *error) {
    basin_status status =
        settings->smoothing > 0 ? smooth(value, graph, settings, error) : BASIN_OK;
    for (int64_t i = 0; i < graph->nodes && !status; i++)
        to_probabilities(value + i * settings->classes, settings->classes);
    return status;
}

/* ---- Scoring a graph that does not fit as one plan. The tokens x of all nodes are kept, and their
 * activations g; everything else runs over blocks of nodes, by the plans of stream_plans.c
 * and, along edges, by backend/walk.h. A step of descent, with M = Wk' Wq of each head:
 *
 *     g = layernorm(x)           of all nodes
 *     x[C] += alpha M' sum over B of p[C, B] g[B]        as a query; leaves lse[C]
 *     x[B] += alpha M sum over C of weight[C] p[C, B] g[C]     as a key
 *     x += alpha relu(g Xi') Xi
 *
 * both roles that a node has in the energy, each over all its neighbours, with no sampling and no
 * approximation. Since forces come from g alone, x can take them as they come. */

/* Numbers of a block for all heads: in and out of plans they should stay in cache. */
enum { BLOCK_NUMBERS = 1 << 19, BLOCK_LEAST = 128, BLOCK_MOST = 16384 };

/* Who is next to whom: by query, and by key (the same where every edge goes both ways). */
typedef struct lists {
    const int64_t *row, *column;
    const int32_t *key, *query;
    int64_t *column_own; /* where they had to be made */
    int32_t *query_own;
    int64_t *entry; /* of each by key: which it is by query; NULL: facts there are the same */
} lists;

struct basin_nodes_stream {
    const basin_node_inputs *inputs;
    const basin_nodes_resources *work;
    basin_store *store;
    basin_nodes_stream_plans plans;
    int64_t halo; /* of a part: so many more rows of g, lse and weights are other parts' */
    lists list[BASIN_ANOMALY_RELATIONS];
    /* of all nodes, while it runs */
    float *token[BASIN_ANOMALY_RELATIONS];  /* [N, D] each */
    float *g;                               /* [N + halo, stride] */
    float *lse;                             /* [N + halo, H] */
    float *weight[BASIN_ANOMALY_RELATIONS]; /* [N + halo] of a part that has weights; else NULL */
    /* of a block */
    float *own, *sum;    /* [B, H stride] */
    float *out;          /* [B, stride] */
    float *ask, *answer; /* [stride, H stride] */
    float *beta;         /* [H] */
    int32_t *place;      /* [B] */
    float *bias;         /* [edges, H] of the relation and block that is run; NULL: none */
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- lists ---- */

/* The lists by key of a graph with edges in one direction. */
static basin_status turn_around(lists *l, int64_t nodes, bool facts, basin_error *error) {
    int64_t edges = l->row[nodes];
    l->column_own = calloc((size_t)nodes + 2, sizeof *l->column_own);
    l->query_own = basin_array_new((size_t)edges, sizeof *l->query_own);
    if (facts) l->entry = basin_array_new((size_t)edges, sizeof *l->entry);
    if (!l->column_own || !l->query_own || (facts && !l->entry))
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld edges", (long long)edges);
    int64_t *next = l->column_own + 1; /* the place of a key's next query, shifted by one */
    for (int64_t e = 0; e < edges; e++) next[l->key[e] + 1]++;
    for (int64_t i = 0; i < nodes; i++) next[i + 1] += next[i];
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t e = l->row[i]; e < l->row[i + 1]; e++) {
            int64_t at = next[l->key[e]]++;
            l->query_own[at] = (int32_t)i;
            if (facts) l->entry[at] = e;
        }
    l->column = l->column_own;
    l->query = l->query_own;
    return BASIN_OK;
}

static basin_status open_lists(basin_nodes_stream *s, basin_error *error) {
    const basin_node_inputs *inputs = s->inputs;
    basin_status status = BASIN_OK;
    for (int r = 0; r < inputs->shape.relations && !status; r++) {
        const basin_relation *relation = &inputs->network->relation[inputs->relation[r]];
        lists *l = &s->list[r];
        *l = (lists){.row = relation->row, .key = relation->col};
        l->column = l->row, l->query = l->key;
        if (inputs->network->directed)
            status = turn_around(l, inputs->shape.nodes, inputs->shape.facts, error);
    }
    return status;
}

/* ---- memory ---- */

/* Rows of neighbours are read in any order: large pages save most of the walks to find them. */
static float *new_rows(size_t nodes, size_t width) {
    size_t bytes = 0;
    bool fits = basin_size_multiply(&bytes, nodes, width * sizeof(float));
    return fits ? basin_large_new(bytes) : NULL;
}

static basin_status reserve(basin_nodes_stream *s, basin_error *error) {
    const basin_nodes_settings *r = s->inputs->settings;
    size_t N = (size_t)s->inputs->shape.nodes, B = (size_t)s->plans.rows, H = (size_t)r->heads;
    size_t D = (size_t)r->dim, S = (size_t)s->plans.stride, width = H * S * sizeof(float);
    size_t seen = N + (size_t)s->halo;
    bool good = true;
    for (int i = 0; i < s->inputs->shape.relations; i++) {
        good = good && (s->token[i] = basin_array_new(N, D * sizeof(float)));
        if (s->halo && s->inputs->node_weight[i])
            good = good && (s->weight[i] = basin_array_new(seen, sizeof(float)));
    }
    s->g = new_rows(seen, S);
    s->lse = basin_array_new(seen, H * sizeof(float));
    s->own = basin_array_new(B, width);
    s->sum = basin_array_new(B, width);
    size_t C = (size_t)r->classes;
    s->out = basin_array_new(B, (C > S ? C : S) * sizeof(float));
    s->ask = basin_array_new(S, width);
    s->answer = basin_array_new(S, width);
    s->beta = basin_array_new(H, sizeof(float));
    s->place = basin_array_new(B, sizeof *s->place);
    if (good && s->g && s->lse && s->own && s->sum && s->out && s->ask && s->answer && s->beta &&
        s->place)
        return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory to stream %zu nodes", N);
}

/* Those of the relation with most edges. */
static size_t bias_bytes(const basin_nodes_stream *s) {
    int64_t edges = 0;
    for (int r = 0; r < s->inputs->shape.relations; r++)
        edges = most(edges, s->list[r].row[s->inputs->shape.nodes]);
    bool facts = s->plans.model.config.block.facts > 0;
    return facts ? (size_t)edges * (size_t)s->inputs->settings->heads * sizeof(float) : 0;
}

size_t basin_nodes_stream_bytes(const basin_nodes_stream *s) {
    const basin_nodes_settings *r = s->inputs->settings;
    size_t N = (size_t)s->inputs->shape.nodes, B = (size_t)s->plans.rows, H = (size_t)r->heads;
    size_t R = (size_t)s->inputs->shape.relations, S = (size_t)s->plans.stride;
    size_t floats = N * (R * (size_t)r->dim + S + H) + B * (2 * H * S + S) + 2 * S * H * S + H;
    floats += (size_t)s->halo * (S + H);
    size_t bytes = floats * sizeof(float) + basin_nodes_stream_plans_bytes(&s->plans);
    for (size_t i = 0; i < R; i++)
        if (s->list[i].query_own)
            bytes += (N + 1) * sizeof *s->list[i].column_own +
                     (size_t)s->list[i].column_own[N] *
                         (sizeof *s->list[i].query_own + (s->list[i].entry ? sizeof(int64_t) : 0));
    return bytes + bias_bytes(s);
}

static void drop(float **array) {
    free(*array);
    *array = NULL;
}

static void release(basin_nodes_stream *s) {
    for (int r = 0; r < BASIN_ANOMALY_RELATIONS; r++) drop(&s->token[r]), drop(&s->weight[r]);
    basin_aligned_free(s->g);
    s->g = NULL;
    drop(&s->lse), drop(&s->own), drop(&s->sum), drop(&s->out);
    drop(&s->ask), drop(&s->answer), drop(&s->beta), drop(&s->bias);
    free(s->place);
    s->place = NULL;
}

static basin_status check(const basin_node_inputs *inputs, basin_error *error) {
    const basin_nodes_settings *r = inputs->settings;
    if (r->implicit)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: the graph does not fit into the memory allowed, and descents to "
                          "rest (implicit) cannot be streamed; wanted more memory or a smaller dim",
                          inputs->network->path);
    if (basin_nodes_descends(r)) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "%s: the graph does not fit into the memory allowed, and form %s cannot be "
                      "streamed; wanted form energy",
                      inputs->network->path, r->form);
}

basin_status basin_nodes_stream_new(basin_nodes_stream **stream, const basin_node_inputs *inputs,
                                    int64_t halo, basin_store *store,
                                    const basin_nodes_resources *work, basin_error *error) {
    *stream = NULL;
    basin_status status = check(inputs, error);
    if (!status && halo && inputs->network->directed)
        status = basin_fail(error, BASIN_UNSUPPORTED,
                            "%s: a directed graph in parts cannot be streamed; wanted more memory",
                            inputs->network->path);
    if (status) return status;
    basin_nodes_stream *s = calloc(1, sizeof *s);
    if (!s) return basin_fail(error, BASIN_NO_MEMORY, "out of memory to stream");
    s->inputs = inputs, s->store = store, s->work = work, s->halo = halo;
    int64_t rows = BLOCK_NUMBERS / (inputs->settings->heads * inputs->settings->dim);
    rows = least(most(BLOCK_LEAST, least(rows, BLOCK_MOST)), inputs->shape.nodes);
    status = open_lists(s, error);
    if (!status) status = basin_nodes_stream_plans_new(&s->plans, inputs, rows, store, error);
    if (status)
        basin_nodes_stream_free(s);
    else
        *stream = s;
    return status;
}

void basin_nodes_stream_free(basin_nodes_stream *s) {
    if (!s) return;
    basin_nodes_stream_plans_free(&s->plans);
    release(s);
    for (int r = 0; r < BASIN_ANOMALY_RELATIONS; r++) {
        free(s->list[r].column_own);
        free(s->list[r].query_own);
        free(s->list[r].entry);
    }
    free(s);
}

const basin_params *basin_nodes_stream_params(const basin_nodes_stream *stream) {
    return &stream->plans.params;
}

/* ---- blocks of nodes ---- */

static basin_status put(basin_plan *plan, basin_expr input, const float *data, basin_error *error) {
    if (!input) return BASIN_OK;
    basin_tensor t = basin_tensor_borrow(data, BASIN_F32, basin_expr_shape(input));
    return basin_plan_write(plan, input, &t, error);
}

static basin_status run(float *out, basin_plan *plan, basin_expr output, basin_error *error) {
    basin_tensor t = basin_tensor_borrow(out, BASIN_F32, basin_expr_shape(output));
    BASIN_TRY(basin_plan_run(plan, error));
    return basin_plan_read(plan, output, &t, error);
}

/* Where the last block is short, the rows before it come again, so that every block is whole. */
static int64_t block_start(const basin_nodes_stream *s, int64_t first) {
    return least(first, s->inputs->shape.nodes - s->plans.rows);
}

/* Which rows of learned positions a block has. */
static basin_status write_places(basin_nodes_stream *s, basin_plan *plan, int64_t start,
                                 basin_error *error) {
    if (!s->plans.place) return BASIN_OK;
    int32_t *place = s->place;
    for (int64_t i = 0; i < s->plans.rows; i++) place[i] = (int32_t)(start + i);
    basin_tensor t = basin_tensor_borrow(place, BASIN_I32, BASIN_SHAPE(s->plans.rows));
    return basin_plan_write(plan, s->plans.place, &t, error);
}

static basin_status write_features(basin_nodes_stream *s, basin_plan *plan, int64_t start,
                                   basin_error *error) {
    const basin_node_inputs *v = s->inputs;
    basin_status status = put(plan, s->plans.features, v->table + start * v->shape.columns, error);
    if (!status) status = write_places(s, plan, start, error);
    if (status || !s->plans.eigenvectors) return status;
    return put(plan, s->plans.eigenvectors, v->eigenvectors + start * v->settings->eigenvectors,
               error);
}

static basin_status embed(basin_nodes_stream *s, float *token, basin_error *error) {
    int64_t N = s->inputs->shape.nodes, D = s->inputs->settings->dim;
    basin_status status = BASIN_OK;
    for (int64_t first = 0; first < N && !status; first += s->plans.rows) {
        int64_t start = block_start(s, first);
        status = write_features(s, s->plans.embed, start, error);
        if (!status) status = run(token + start * D, s->plans.embed, s->plans.tokens, error);
    }
    return status;
}

static basin_status normalise(basin_nodes_stream *s, const float *token, int block,
                              basin_error *error) {
    const basin_nodes_stream_plans *p = &s->plans;
    int64_t N = s->inputs->shape.nodes, D = s->inputs->settings->dim;
    basin_status status = BASIN_OK;
    for (int64_t first = 0; first < N && !status; first += p->rows) {
        int64_t start = block_start(s, first);
        status = put(p->norm[block], p->x, token + start * D, error);
        if (!status)
            status = run(s->g + start * p->stride, p->norm[block], p->normed[block], error);
    }
    return status;
}

/* x += alpha out, for the nodes from `first` on of the block that begins at `start`. */
static void step_block(basin_nodes_stream *s, float *token, int64_t first, int64_t start,
                       int64_t width, const float *weight) {
    int64_t D = s->inputs->settings->dim,
            end = least(start + s->plans.rows, s->inputs->shape.nodes);
    float alpha = (float)s->inputs->settings->alpha;
    for (int64_t i = first; i < end; i++) {
        const float *from = s->out + (i - start) * width;
        float *x = token + i * D, size = weight ? alpha * weight[i] : alpha;
        for (int64_t d = 0; d < D; d++) x[d] += size * from[d];
    }
}

static basin_status recall(basin_nodes_stream *s, float *token, int block, basin_error *error) {
    const basin_nodes_stream_plans *p = &s->plans;
    basin_status status = BASIN_OK;
    for (int64_t first = 0; first < s->inputs->shape.nodes && !status; first += p->rows) {
        int64_t start = block_start(s, first);
        status = put(p->recall[block], p->g, s->g + start * p->stride, error);
        if (!status) status = run(s->out, p->recall[block], p->recalled[block], error);
        if (!status) step_block(s, token, first, start, s->inputs->settings->dim, NULL);
    }
    return status;
}

/* ---- along edges ---- */

static basin_walk walk_of(const basin_nodes_stream *s, const lists *l, bool ask) {
    const basin_nodes_settings *r = s->inputs->settings;
    int threads = basin_backend_threads(s->work->backend); /* 0 of a GPU's */
    return (basin_walk){.rows = s->g,
                        .stride = s->plans.stride,
                        .heads = r->heads,
                        .beta = s->beta,
                        .begin = ask ? l->row : l->column,
                        .other = ask ? l->key : l->query,
                        .drop_self = !basin_choice_is(r->self_loops, "keep"),
                        .add_self = basin_choice_is(r->self_loops, "add"),
                        .bias = s->bias,
                        .entry = ask ? NULL : l->entry,
                        .threads = threads > 0 ? threads : basin_processors()};
}

/* All nodes as queries (ask) or as keys. */
static basin_status walk(basin_nodes_stream *s, int relation, bool ask, basin_error *error) {
    const basin_nodes_stream_plans *p = &s->plans;
    const float *own = s->inputs->node_weight[relation], *stack = ask ? s->ask : s->answer;
    const float *weight = s->weight[relation] ? s->weight[relation] : own;
    basin_walk w = walk_of(s, &s->list[relation], ask);
    basin_status status = put(p->project, p->stack, stack, error);
    if (!status) status = put(p->pull, p->stack, stack, error);
    for (int64_t first = 0; first < s->inputs->shape.nodes && !status; first += p->rows) {
        int64_t start = block_start(s, first);
        status = put(p->project, p->g, s->g + start * p->stride, error);
        if (!status) status = run(s->own, p->project, p->own, error);
        if (status) break;
        if (ask)
            basin_walk_by_query(s->sum, s->lse, s->own, &w, start, p->rows);
        else
            basin_walk_by_key(s->sum, s->own, s->lse, weight, &w, start, p->rows);
        status = put(p->pull, p->sum, s->sum, error);
        if (!status) status = run(s->out, p->pull, p->back, error);
        if (!status)
            step_block(s, s->token[relation], first, start, p->stride, ask ? weight : NULL);
    }
    return status;
}

/* ---- descent ---- */

/* What the edges of a relation add to scores in a block. */
static basin_status find_bias(basin_nodes_stream *s, int block, int relation, basin_error *error) {
    const basin_block *b = basin_anomaly_block(&s->plans.model, block);
    basin_tensor we = {0};
    if (!b->we) return BASIN_OK;
    if (!s->bias) s->bias = basin_array_new(bias_bytes(s), 1);
    if (!s->bias) return basin_fail_memory(error, "biases of edges");
    basin_status status = basin_nodes_stream_read(&we, s->store, b->we, error);
    if (!status)
        status = basin_edge_bias(s->bias, &s->inputs->reader, s->inputs->network, relation, we.data,
                                 s->inputs->settings->heads, error);
    basin_tensor_free(&we);
    return status;
}

static basin_status read_heads(basin_nodes_stream *s, double *probability, basin_error *error) {
    const basin_nodes_stream_plans *p = &s->plans;
    int64_t N = s->inputs->shape.nodes, D = s->inputs->settings->dim;
    int64_t width = basin_nodes_width(s->inputs->settings);
    basin_status status = BASIN_OK;
    for (int64_t first = 0; first < N && !status; first += p->rows) {
        int64_t start = block_start(s, first);
        status = write_features(s, p->head, start, error);
        for (int r = 0; r < s->inputs->shape.relations && !status; r++)
            status = put(p->head, p->last[r], s->token[r] + start * D, error);
        if (!status) status = run(s->out, p->head, p->read, error);
        for (int64_t i = 0; i < p->rows * width && !status; i++)
            probability[start * width + i] = s->out[i];
    }
    return status;
}

basin_status basin_nodes_stream_begin(basin_nodes_stream *s, int64_t member, basin_error *error) {
    const basin_nodes_settings *settings = s->inputs->settings;
    basin_status status = reserve(s, error);
    if (!status)
        status = basin_nodes_mask_write(s->plans.embed, s->plans.mask, settings, member, error);
    if (!status)
        status = basin_nodes_mask_write(s->plans.head, s->plans.mask, settings, member, error);
    for (int r = 0; r < s->inputs->shape.relations && !status; r++) {
        status = embed(s, s->token[r], error);
        if (!status && s->weight[r])
            memcpy(s->weight[r], s->inputs->node_weight[r],
                   (size_t)s->inputs->shape.nodes * sizeof(float));
    }
    return status;
}

basin_status basin_nodes_stream_end(basin_nodes_stream *s, double *probability,
                                    basin_error *error) {
    const basin_nodes_settings *settings = s->inputs->settings;
    basin_status status = probability ? read_heads(s, probability, error) : BASIN_OK;
    if (!status && probability && settings->classes) {
        const lists *l = &s->list[0];
        basin_stream_graph graph = {l->row, l->column, l->key, l->query, s->inputs->shape.nodes};
        status = basin_stream_settle(probability, &graph, settings, error);
    }
    release(s); /* training wants the memory in between */
    return status;
}

basin_status basin_nodes_stream_phase(basin_nodes_stream *s, basin_stream_phase phase, int block,
                                      int relation, basin_error *error) {
    const basin_anomaly_config *c = &s->plans.model.config;
    bool attends = !c->block.no_attention;
    basin_status status = BASIN_OK;
    if (phase == BASIN_STREAM_NORM) return normalise(s, s->token[relation], block, error);
    if (phase == BASIN_STREAM_QUERY && attends) {
        status =
            basin_nodes_stream_stack(s->ask, s->answer, s->beta, &s->plans,
                                     basin_anomaly_block(&s->plans.model, block), s->store, error);
        return status ? status : walk(s, relation, true, error);
    }
    if (phase != BASIN_STREAM_KEY) return BASIN_OK;
    if (attends) status = walk(s, relation, false, error);
    return status || c->block.no_hopfield ? status : recall(s, s->token[relation], block, error);
}

basin_exchange_rows basin_nodes_stream_rows(basin_nodes_stream *s, basin_stream_phase phase,
                                            int relation) {
    float *rows = phase == BASIN_STREAM_NORM    ? s->g
                  : phase == BASIN_STREAM_QUERY ? s->lse
                                                : s->weight[relation];
    int64_t width = phase == BASIN_STREAM_NORM    ? s->plans.stride
                    : phase == BASIN_STREAM_QUERY ? s->inputs->settings->heads
                                                  : 1;
    return (basin_exchange_rows){rows,      rows, s->inputs->shape.nodes, s->halo, width,
                                 BASIN_F32, false};
}

void basin_nodes_stream_show(const basin_nodes_stream *s, int done) {
    const basin_anomaly_config *c = &s->plans.model.config;
    basin_news news = {.what = "scoring, steps",
                       .done = done,
                       .total = c->relations * c->blocks * c->descent.steps,
                       .loss = NAN,
                       .speed = NAN,
                       .seconds_left = NAN};
    basin_watch_show(s->work->watch, &news);
}

basin_status basin_nodes_stream_run(basin_nodes_stream *s, double *probability, int64_t member,
                                    basin_error *error) {
    const basin_anomaly_config *c = &s->plans.model.config;
    basin_status status = basin_nodes_stream_begin(s, member, error);
    int done = 0;
    for (int r = 0; r < c->relations && !status; r++)
        for (int b = 0; b < c->blocks && !status; b++) {
            status = find_bias(s, b, r, error); /* of a part there is none: it has no facts */
            for (int t = 0; t < c->descent.steps && !status; t++) {
                basin_nodes_stream_show(s, done++);
                for (int phase = 0; phase < BASIN_STREAM_PHASES && !status; phase++)
                    status = basin_nodes_stream_phase(s, (basin_stream_phase)phase, b, r, error);
            }
        }
    basin_status ended = basin_nodes_stream_end(s, status ? NULL : probability, error);
    return status ? status : ended;
}
