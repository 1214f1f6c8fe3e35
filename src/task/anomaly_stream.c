/* Scoring a graph that does not fit as one plan. The tokens of all nodes are kept, and three more
 * arrays of their size at most; everything else runs over blocks of nodes. A step of descent is,
 * for each head, four sweeps over the nodes:
 *
 *     K of all nodes;            queries C:  lse[C] = log sum over B of exp(beta K[B] . Q[C]),
 *                                            force[C] += Wq' weight[C] sum of p[C, B] K[B]
 *     Q of all nodes;            keys B:     force[B] += Wk' sum over C of weight[C] p[C, B] Q[C]
 *
 * with p[C, B] = exp(beta K[B] . Q[C] - lse[C]): both roles that a node has in the energy, each of
 * them over all its neighbours, with no sampling and no approximation. */
#include "task/anomaly_stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* A block's neighbours are at most as many as its edges, and each brings a row of numbers: blocks
 * of a graph with many nodes have fewer edges. */
enum { BLOCK_NODES = 16384, BLOCK_EDGES = 1 << 17, BLOCK_EDGES_DENSE = 1 << 20 };

/* Who is next to whom: by query, and by key (the same where every edge goes both ways). */
typedef struct lists {
    const int64_t *row, *column;
    const int32_t *key, *query;
    int64_t *column_own; /* where they had to be made */
    int32_t *query_own;
    bool drop_self, add_self;
} lists;

/* The plans of one head; all heads of all blocks take turns with them, their weights are inputs. */
typedef struct head_plans {
    basin_plan *keys, *queries;            /* x [B, D] -> K or Q [B, Y] */
    basin_plan *ask, *answer;              /* the two sweeps along edges */
    basin_expr wk, wq, beta, gamma, delta; /* [Y, D] [Y, D] [1] [] [D] */
    basin_expr k, q, lse, asked, answered;
} head_plans;

struct basin_stream {
    const basin_view *view;
    const basin_anomaly_work *work;
    basin_store *store;
    basin_graph *graph;
    basin_params params;
    basin_anomaly model;
    int64_t rows, edges, others; /* capacities of a block: nodes, pairs, neighbours */
    /* inputs */
    basin_expr features, eigenvectors, x, other, other_lse, other_weight, weight;
    basin_expr last[BASIN_ANOMALY_RELATIONS];
    basin_pattern pattern;
    /* plans */
    basin_plan *embed, *head;
    basin_expr tokens, probability;
    basin_plan *recall[BASIN_ANOMALY_BLOCKS];
    basin_expr recalled[BASIN_ANOMALY_BLOCKS];
    head_plans heads;
    /* memory */
    lists list[BASIN_ANOMALY_RELATIONS];
    float *token[BASIN_ANOMALY_RELATIONS]; /* [N, D] each */
    float *force, *side;                   /* [N, D], [N, Y] */
    float *lse;                            /* [N] */
    int32_t *local;  /* [N] a node's place among a block's neighbours, or -1 */
    int32_t *member; /* [others] the nodes of these places */
    int32_t *edge;   /* [edges, 2] */
    float *gathered, *gathered_lse, *gathered_weight; /* [others, Y] [others] [others] */
    float *out;                                       /* [rows, max(D, Y)] */
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- expressions ---- */

static basin_expr as_column(basin_expr a) {
    return basin_reshape(a, BASIN_SHAPE(basin_expr_shape(a).dim[0], 1, 1));
}

/* Wk' sum over C of weight[C] p[C, B] Q[C], by the kernel that asks: with one more dimension the
 * score of B and C becomes log(weight[C] p[C, B]); what that kernel divides by is known from its
 * own lse. */
static basin_expr answer(const basin_stream *s, basin_expr k, basin_expr beta, basin_expr wk) {
    int64_t B = s->rows, U = s->others, Y = basin_expr_shape(wk).dim[0];
    basin_expr weight = basin_max(s->other_weight, basin_const(s->graph, 1e-30));
    basin_expr bias = basin_div(basin_sub(basin_log(weight), s->other_lse), beta);
    basin_expr more =
        basin_concat((basin_expr[]){s->other, basin_reshape(bias, BASIN_SHAPE(U, 1))}, 2, 1);
    basin_expr own =
        basin_concat((basin_expr[]){k, basin_fill(s->graph, BASIN_SHAPE(B, 1), 1)}, 2, 1);
    own = basin_reshape(own, BASIN_SHAPE(B, 1, Y + 1));
    more = basin_reshape(more, BASIN_SHAPE(U, 1, Y + 1));
    basin_expr lse = basin_attention_lse(own, more, beta, NULL, NULL, &s->pattern); /* [B, 1] */
    basin_expr mean = basin_reshape(basin_grad(lse, own), BASIN_SHAPE(B, Y + 1));
    basin_expr sum = basin_mul(basin_slice(mean, 1, 0, Y), basin_div(basin_exp(lse), beta));
    return sum ? basin_matmul(sum, wk) : NULL;
}

static void declare_head(basin_stream *s) {
    const basin_anomaly_config *c = &s->model.config;
    head_plans *p = &s->heads;
    int64_t B = s->rows, U = s->others, Y = c->block.head_dim, D = c->block.dim;
    basin_expr wk = p->wk = basin_input(s->graph, "head.wk", BASIN_SHAPE(Y, D));
    basin_expr wq = p->wq = basin_input(s->graph, "head.wq", BASIN_SHAPE(Y, D));
    basin_expr beta = p->beta = basin_input(s->graph, "head.beta", BASIN_SHAPE(1));
    p->gamma = basin_input(s->graph, "head.gamma", BASIN_SCALAR);
    p->delta = basin_input(s->graph, "head.delta", BASIN_SHAPE(D));
    basin_expr g = basin_layernorm(s->x, p->gamma, p->delta, s->model.block.config.epsilon);
    p->k = basin_matmul_t(g, false, wk, true);
    p->q = basin_matmul_t(g, false, wq, true);
    basin_expr q = basin_reshape(p->q, BASIN_SHAPE(B, 1, Y));
    basin_expr other = basin_reshape(s->other, BASIN_SHAPE(U, 1, Y));
    basin_expr lse = basin_attention_lse(q, other, beta, NULL, NULL, &s->pattern); /* [B, 1] */
    basin_expr mean = basin_div(basin_grad(lse, q), basin_reshape(beta, BASIN_SHAPE(1, 1, 1)));
    p->lse = basin_reshape(lse, BASIN_SHAPE(B));
    p->asked =
        basin_matmul(basin_reshape(basin_mul(mean, as_column(s->weight)), BASIN_SHAPE(B, Y)), wq);
    p->answered = answer(s, p->k, beta, wk);
}

static void declare_inputs(basin_stream *s, const basin_net_shape *shape) {
    const basin_anomaly_recipe *r = s->view->recipe;
    int64_t B = s->rows, U = s->others;
    s->features = basin_input(s->graph, "features", BASIN_SHAPE(B, shape->columns));
    if (basin_recipe_has(r->position, "laplacian"))
        s->eigenvectors = basin_input(s->graph, "eigenvectors", BASIN_SHAPE(B, r->eigenvectors));
    s->x = basin_input(s->graph, "x", BASIN_SHAPE(B, r->dim));
    s->other = basin_input(s->graph, "other", BASIN_SHAPE(U, r->head_dim));
    s->other_lse = basin_input(s->graph, "other_lse", BASIN_SHAPE(U));
    s->other_weight = basin_input(s->graph, "other_weight", BASIN_SHAPE(U));
    s->weight = basin_input(s->graph, "weight", BASIN_SHAPE(B));
    s->pattern = basin_pairs_declare(s->graph, "pairs", B, U, s->edges);
}

static void declare_ends(basin_stream *s) {
    const basin_anomaly_config *c = &s->model.config;
    basin_expr last[BASIN_ANOMALY_RELATIONS];
    char name[32];
    s->tokens = basin_anomaly_embed(&s->model, s->features, s->eigenvectors);
    for (int r = 0; r < c->relations; r++) {
        snprintf(name, sizeof name, "last%d", r);
        s->last[r] = basin_input(s->graph, name, BASIN_SHAPE(s->rows, c->block.dim));
        last[r] = basin_block_norm(basin_anomaly_block(&s->model, c->blocks - 1), s->last[r]);
    }
    basin_expr first = basin_block_norm(&s->model.block, s->tokens);
    s->probability = basin_sigmoid(basin_anomaly_head(&s->model, first, last, NULL));
    for (int b = 0; b < c->blocks && !c->block.no_hopfield; b++) {
        const basin_block *block = basin_anomaly_block(&s->model, b);
        basin_expr g = basin_variable(basin_block_norm(block, s->x));
        basin_expr energy = basin_energy_hopfield(g, block->xi, BASIN_HOPFIELD_RELU, 0);
        s->recalled[b] = basin_neg(basin_grad(energy, g));
    }
}

static basin_status make_plan(basin_plan **plan, basin_stream *s, basin_expr a, basin_expr b,
                              basin_error *error) {
    basin_expr output[2] = {a, b};
    basin_plan_spec spec = {.output = output, .outputs = b ? 2 : 1};
    return basin_plan_new(plan, s->store, &spec, error);
}

static basin_status make_plans(basin_stream *s, basin_error *error) {
    const basin_anomaly_config *c = &s->model.config;
    const basin_error *found = basin_graph_error(s->graph);
    if (found) return basin_fail(error, found->status, "%s", found->text);
    basin_status status = make_plan(&s->embed, s, s->tokens, NULL, error);
    if (!status) status = make_plan(&s->head, s, s->probability, NULL, error);
    for (int b = 0; b < c->blocks && !status; b++) {
        if (!c->block.no_hopfield)
            status = make_plan(&s->recall[b], s, s->recalled[b], NULL, error);
    }
    head_plans *p = &s->heads;
    if (status || c->block.no_attention) return status;
    status = make_plan(&p->keys, s, p->k, NULL, error);
    if (!status) status = make_plan(&p->queries, s, p->q, NULL, error);
    if (!status) status = make_plan(&p->ask, s, p->lse, p->asked, error);
    return status ? status : make_plan(&p->answer, s, p->answered, NULL, error);
}

static basin_status declare(basin_stream *s, basin_error *error) {
    const basin_view *view = s->view;
    basin_anomaly_config config = basin_net_config(view->recipe, &view->shape);
    config.dropout = 0;
    s->graph = basin_graph_new();
    if (!s->graph) return basin_fail(error, BASIN_NO_MEMORY, "no memory to stream");
    basin_params_begin(&s->params, s->graph);
    declare_inputs(s, &view->shape);
    if (!basin_anomaly_declare(&s->model, &s->params, &config)) {
        declare_ends(s);
        if (!config.block.no_attention) declare_head(s);
    }
    return make_plans(s, error);
}

/* ---- lists ---- */

/* The lists by key of a graph with edges in one direction. */
static basin_status turn_around(lists *l, int64_t nodes, basin_error *error) {
    int64_t edges = l->row[nodes];
    l->column_own = calloc((size_t)nodes + 2, sizeof *l->column_own);
    l->query_own = basin_array_new((size_t)edges, sizeof *l->query_own);
    if (!l->column_own || !l->query_own)
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for %lld edges", (long long)edges);
    int64_t *next = l->column_own + 1; /* the place of a key's next query, shifted by one */
    for (int64_t e = 0; e < edges; e++) next[l->key[e] + 1]++;
    for (int64_t i = 0; i < nodes; i++) next[i + 1] += next[i];
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t e = l->row[i]; e < l->row[i + 1]; e++)
            l->query_own[next[l->key[e]]++] = (int32_t)i;
    l->column = l->column_own;
    l->query = l->query_own;
    return BASIN_OK;
}

static basin_status open_lists(basin_stream *s, basin_error *error) {
    const basin_view *view = s->view;
    basin_status status = BASIN_OK;
    for (int r = 0; r < view->shape.relations && !status; r++) {
        const basin_relation *relation = &view->network->relation[view->relation[r]];
        lists *l = &s->list[r];
        *l = (lists){.row = relation->row, .key = relation->col};
        l->drop_self = !basin_recipe_has(view->recipe->self_loops, "keep");
        l->add_self = basin_recipe_has(view->recipe->self_loops, "add");
        l->column = l->row, l->query = l->key;
        if (view->network->directed) status = turn_around(l, view->shape.nodes, error);
        for (int64_t i = 0; i < view->shape.nodes; i++) {
            int64_t degree = most(l->row[i + 1] - l->row[i], l->column[i + 1] - l->column[i]);
            s->edges = most(s->edges, degree + 1);
        }
    }
    return status;
}

static basin_status reserve(basin_stream *s, basin_error *error) {
    const basin_anomaly_recipe *r = s->view->recipe;
    size_t N = (size_t)s->view->shape.nodes, U = (size_t)s->others;
    size_t D = (size_t)r->dim, Y = (size_t)r->head_dim;
    bool good = true;
    for (int i = 0; i < s->view->shape.relations; i++)
        good = good && (s->token[i] = basin_array_new(N, D * sizeof(float)));
    s->force = basin_array_new(N, D * sizeof(float));
    s->side = r->attention ? basin_array_new(N, Y * sizeof(float)) : NULL;
    s->lse = basin_array_new(N, sizeof(float));
    s->local = basin_array_new(N, sizeof(int32_t));
    s->member = basin_array_new(U, sizeof(int32_t));
    s->edge = basin_array_new((size_t)s->edges, 2 * sizeof(int32_t));
    s->gathered = calloc(U, Y * sizeof(float));
    s->gathered_lse = calloc(U, sizeof(float));
    s->gathered_weight = calloc(U, sizeof(float));
    s->out = basin_array_new((size_t)s->rows, (D > Y ? D : Y) * sizeof(float));
    good = good && s->force && (s->side || !r->attention) && s->lse && s->local && s->member &&
           s->edge && s->gathered && s->gathered_lse && s->gathered_weight && s->out;
    if (!good) return basin_fail(error, BASIN_NO_MEMORY, "no memory to stream %zu nodes", N);
    for (size_t i = 0; i < N; i++) s->local[i] = -1;
    return BASIN_OK;
}

/* As many nodes as mostly use a block's edges up. */
static int64_t rows_of(const basin_stream *s) {
    int64_t most_pairs = 1;
    for (int r = 0; r < s->view->shape.relations; r++)
        most_pairs = most(most_pairs, s->view->shape.pairs[r]);
    double degree = (double)most_pairs / (double)s->view->shape.nodes;
    int64_t rows = (int64_t)(1.25 * (double)s->edges / (degree > 0.1 ? degree : 0.1));
    return most(512, least(rows, BLOCK_NODES));
}

static void drop(void *array) {
    void **at = array;
    free(*at);
    *at = NULL;
}

static void release(basin_stream *s) {
    for (int r = 0; r < BASIN_ANOMALY_RELATIONS; r++) drop(&s->token[r]);
    drop(&s->force), drop(&s->side), drop(&s->lse), drop(&s->local), drop(&s->member);
    drop(&s->edge), drop(&s->gathered), drop(&s->gathered_lse), drop(&s->gathered_weight);
    drop(&s->out);
}

static basin_status check(const basin_view *view, basin_error *error) {
    const basin_anomaly_recipe *r = view->recipe;
    if (basin_recipe_has(r->form, "energy") && !basin_recipe_has(r->position, "learned"))
        return BASIN_OK;
    return basin_fail(
        error, BASIN_UNSUPPORTED,
        "%s: the graph does not fit into the memory allowed, and form %s with "
        "position %s cannot be streamed; wanted form energy without learned positions",
        view->network->path, r->form, r->position);
}

basin_status basin_stream_new(basin_stream **stream, const basin_view *view, basin_store *store,
                              const basin_anomaly_work *work, basin_error *error) {
    *stream = NULL;
    basin_status status = check(view, error);
    if (status) return status;
    basin_stream *s = calloc(1, sizeof *s);
    if (!s) return basin_fail(error, BASIN_NO_MEMORY, "no memory to stream");
    s->view = view;
    s->store = store;
    s->work = work;
    s->edges = view->shape.nodes > BLOCK_EDGES ? BLOCK_EDGES : BLOCK_EDGES_DENSE;
    status = open_lists(s, error);
    s->others = least(s->edges, view->shape.nodes);
    s->rows = least(rows_of(s), view->shape.nodes);
    if (!status) status = declare(s, error);
    if (status)
        basin_stream_free(s);
    else
        *stream = s;
    return status;
}

void basin_stream_free(basin_stream *s) {
    if (!s) return;
    basin_plan_free(s->heads.keys);
    basin_plan_free(s->heads.queries);
    basin_plan_free(s->heads.ask);
    basin_plan_free(s->heads.answer);
    for (int b = 0; b < BASIN_ANOMALY_BLOCKS; b++) basin_plan_free(s->recall[b]);
    basin_plan_free(s->embed);
    basin_plan_free(s->head);
    basin_params_free(&s->params);
    basin_graph_free(s->graph);
    release(s);
    for (int r = 0; r < BASIN_ANOMALY_RELATIONS; r++) {
        free(s->list[r].column_own);
        free(s->list[r].query_own);
    }
    free(s);
}

const basin_params *basin_stream_params(const basin_stream *stream) { return &stream->params; }

/* ---- sweeps over nodes ---- */

static basin_status write(basin_plan *plan, basin_expr input, const float *data,
                          basin_error *error) {
    if (!input) return BASIN_OK;
    basin_tensor t =
        basin_tensor_borrow((void *)(uintptr_t)data, BASIN_F32, basin_expr_shape(input));
    return basin_plan_write(plan, input, &t, error);
}

/* Rows [first, first + count) of an array into an input of `rows` rows: where the last block is
 * short, the rows before it come again, so that every block is whole. */
static int64_t block_start(const basin_stream *s, int64_t first) {
    return least(first, s->view->shape.nodes - s->rows);
}

static basin_status read_rows(basin_stream *s, basin_plan *plan, basin_expr output,
                              basin_error *error) {
    basin_tensor t = basin_tensor_borrow(s->out, BASIN_F32, basin_expr_shape(output));
    return basin_plan_read(plan, output, &t, error);
}

/* to[i] = f(from[i]) for all nodes in blocks, `width` numbers a node; or added to it. */
static basin_status sweep(basin_stream *s, float *to, int64_t width, bool add, basin_plan *plan,
                          basin_expr input, const float *from, int64_t from_width,
                          basin_expr output, basin_error *error) {
    int64_t N = s->view->shape.nodes;
    basin_status status = BASIN_OK;
    for (int64_t first = 0; first < N && !status; first += s->rows) {
        int64_t start = block_start(s, first);
        status = write(plan, input, from + start * from_width, error);
        if (!status && input == s->features && s->eigenvectors)
            status = write(plan, s->eigenvectors,
                           s->view->eigenvectors + start * s->view->recipe->eigenvectors, error);
        if (!status) status = basin_plan_run(plan, error);
        if (!status) status = read_rows(s, plan, output, error);
        int64_t count = least(s->rows, N - first);
        const float *out = s->out + (first - start) * width;
        float *rows = to + first * width;
        for (int64_t i = 0; i < count * width && !status; i++)
            rows[i] = add ? rows[i] + out[i] : out[i];
    }
    return status;
}

/* ---- sweeps along edges ---- */

/* A block of nodes from `first` on that fits: its edges, with neighbours numbered in the order in
 * which they are met. Returns how many nodes. */
static int64_t take_block(basin_stream *s, int64_t first, const int64_t *row, const int32_t *col,
                          const lists *l, int64_t *edges, int64_t *others) {
    int64_t N = s->view->shape.nodes, count = 0;
    *edges = *others = 0;
    for (; first + count < N && count < s->rows; count++) {
        int64_t i = first + count;
        if (*edges + row[i + 1] - row[i] + 1 > s->edges) break;
        for (int64_t e = row[i]; e <= row[i + 1]; e++) {
            bool own = e == row[i + 1]; /* after the last comes the node itself */
            int32_t j = own ? (int32_t)i : col[e];
            if (own ? !l->add_self : l->drop_self && j == i) continue;
            if (s->local[j] < 0) {
                s->local[j] = (int32_t)*others;
                s->member[(*others)++] = j;
            }
            s->edge[2 * *edges] = (int32_t)count;
            s->edge[2 * (*edges)++ + 1] = s->local[j];
        }
    }
    for (int64_t u = 0; u < *others; u++) s->local[s->member[u]] = -1;
    return count;
}

static void gather(basin_stream *s, int64_t others, const float *node_weight) {
    int64_t Y = s->view->recipe->head_dim;
#pragma omp parallel for schedule(static)
    for (int64_t u = 0; u < others; u++) {
        int64_t j = s->member[u];
        memcpy(s->gathered + u * Y, s->side + j * Y, (size_t)Y * sizeof(float));
        s->gathered_lse[u] = s->lse[j];
        s->gathered_weight[u] = node_weight ? node_weight[j] : 1;
    }
}

/* Writes a block's edges and what its neighbours bring, runs the plan and takes the results. */
static basin_status run_block(basin_stream *s, basin_plan *plan, const head_plans *p, bool ask,
                              const float *token, const float *node_weight, int64_t first,
                              int64_t count, int64_t edges, int64_t others, basin_error *error) {
    int64_t D = s->view->recipe->dim, start = block_start(s, first), shift = first - start;
    basin_pairs pairs;
    for (int64_t e = 0; e < edges; e++) s->edge[2 * e] += (int32_t)shift;
    gather(s, others, node_weight);
    basin_status status = basin_pairs_new(&pairs, s->rows, s->others, s->edge, edges, 0, error);
    if (status) return status;
    status = basin_pairs_write(plan, &s->pattern, &pairs, error);
    basin_pairs_free(&pairs);
    if (!status) status = write(plan, s->x, token + start * D, error);
    if (!status) status = write(plan, s->other, s->gathered, error);
    if (!status && !ask) status = write(plan, s->other_lse, s->gathered_lse, error);
    if (!status && !ask) status = write(plan, s->other_weight, s->gathered_weight, error);
    for (int64_t i = 0; i < s->rows && ask; i++)
        s->out[i] = node_weight ? node_weight[start + i] : 1;
    if (!status && ask) status = write(plan, s->weight, s->out, error);
    if (!status) status = basin_plan_run(plan, error);
    if (!status && ask) {
        status = read_rows(s, plan, p->lse, error);
        memcpy(s->lse + first, s->out + shift, (size_t)count * sizeof(float));
    }
    if (!status) status = read_rows(s, plan, ask ? p->asked : p->answered, error);
    for (int64_t i = 0; i < count * D && !status; i++)
        s->force[first * D + i] += s->out[shift * D + i];
    return status;
}

/* All nodes as queries (ask) or as keys. */
static basin_status sweep_edges(basin_stream *s, const head_plans *p, bool ask, int relation,
                                basin_error *error) {
    const lists *l = &s->list[relation];
    const int64_t *row = ask ? l->row : l->column;
    const int32_t *col = ask ? l->key : l->query;
    int64_t edges, others;
    basin_status status = BASIN_OK;
    for (int64_t first = 0, count; first < s->view->shape.nodes && !status; first += count) {
        count = take_block(s, first, row, col, l, &edges, &others);
        status = run_block(s, ask ? p->ask : p->answer, p, ask, s->token[relation],
                           s->view->node_weight[relation], first, count, edges, others, error);
    }
    return status;
}

/* ---- descent ---- */

/* Part `h` of `parts` of a state into an input of all four plans. */
static basin_status write_part(basin_stream *s, basin_expr input, basin_expr state, int64_t h,
                               int64_t parts, basin_error *error) {
    basin_plan *const plan[] = {s->heads.keys, s->heads.queries, s->heads.ask, s->heads.answer};
    basin_tensor whole, part, single;
    basin_status status = basin_store_read(s->store, basin_expr_name(state), &whole, error);
    if (status) return status;
    size_t bytes = basin_tensor_bytes(&whole) / (size_t)parts;
    part = basin_tensor_borrow((char *)whole.data + (size_t)h * bytes, whole.dtype,
                               basin_expr_shape(input));
    status = basin_tensor_new(&single, BASIN_F32, basin_expr_shape(input), error);
    if (!status) status = basin_tensor_convert(&single, &part, error);
    for (int i = 0; i < 4 && !status; i++)
        status = basin_plan_write(plan[i], input, &single, error);
    basin_tensor_free(&single);
    basin_tensor_free(&whole);
    return status;
}

static basin_status write_head(basin_stream *s, const basin_block *b, int64_t h,
                               basin_error *error) {
    const head_plans *p = &s->heads;
    int64_t H = b->config.heads;
    double beta = b->config.beta > 0 ? b->config.beta : 1 / sqrt((double)b->config.head_dim);
    float fixed = (float)beta;
    basin_status status = write_part(s, p->wk, b->wk, h, H, error);
    if (!status) status = write_part(s, p->wq, b->wq, h, H, error);
    if (!status) status = write_part(s, p->gamma, b->gamma, 0, 1, error);
    if (!status) status = write_part(s, p->delta, b->delta, 0, 1, error);
    if (!status && b->config.learn_beta) return write_part(s, p->beta, b->beta, h, H, error);
    if (!status) status = write(p->ask, p->beta, &fixed, error);
    return status ? status : write(p->answer, p->beta, &fixed, error);
}

static basin_status head_force(basin_stream *s, const basin_block *b, int64_t h, int relation,
                               basin_error *error) {
    const head_plans *p = &s->heads;
    int64_t D = s->view->recipe->dim, Y = s->view->recipe->head_dim;
    const float *x = s->token[relation];
    basin_status status = write_head(s, b, h, error);
    if (!status) status = sweep(s, s->side, Y, false, p->keys, s->x, x, D, p->k, error);
    if (!status) status = sweep_edges(s, p, true, relation, error);
    if (!status) status = sweep(s, s->side, Y, false, p->queries, s->x, x, D, p->q, error);
    return status ? status : sweep_edges(s, p, false, relation, error);
}

static basin_status descend_step(basin_stream *s, int block, int relation, basin_error *error) {
    const basin_anomaly_config *c = &s->model.config;
    int64_t N = s->view->shape.nodes, D = c->block.dim;
    float *x = s->token[relation], alpha = (float)c->descent.alpha;
    memset(s->force, 0, (size_t)(N * D) * sizeof(float));
    basin_status status = BASIN_OK;
    for (int64_t h = 0; h < c->block.heads && !status && !c->block.no_attention; h++)
        status = head_force(s, basin_anomaly_block(&s->model, block), h, relation, error);
    if (!status && !c->block.no_hopfield)
        status =
            sweep(s, s->force, D, true, s->recall[block], s->x, x, D, s->recalled[block], error);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < N * D; i++) x[i] += alpha * s->force[i];
    return status;
}

static basin_status read_heads(basin_stream *s, double *probability, basin_error *error) {
    int64_t N = s->view->shape.nodes, D = s->view->recipe->dim;
    basin_status status = BASIN_OK;
    for (int64_t first = 0; first < N && !status; first += s->rows) {
        int64_t start = block_start(s, first), count = least(s->rows, N - first);
        status =
            write(s->head, s->features, s->view->table + start * s->view->shape.columns, error);
        if (!status && s->eigenvectors)
            status = write(s->head, s->eigenvectors,
                           s->view->eigenvectors + start * s->view->recipe->eigenvectors, error);
        for (int r = 0; r < s->view->shape.relations && !status; r++)
            status = write(s->head, s->last[r], s->token[r] + start * D, error);
        if (!status) status = basin_plan_run(s->head, error);
        if (!status) status = read_rows(s, s->head, s->probability, error);
        for (int64_t i = 0; i < count && !status; i++)
            probability[first + i] = s->out[first - start + i];
    }
    return status;
}

basin_status basin_stream_run(basin_stream *s, double *probability, basin_error *error) {
    const basin_anomaly_config *c = &s->model.config;
    basin_status status = reserve(s, error);
    int total = c->relations * c->blocks * c->descent.steps, done = 0;
    for (int r = 0; r < c->relations && !status; r++) {
        status = sweep(s, s->token[r], c->block.dim, false, s->embed, s->features, s->view->table,
                       s->view->shape.columns, s->tokens, error);
        for (int b = 0; b < c->blocks; b++)
            for (int t = 0; t < c->descent.steps && !status; t++, done++) {
                basin_watch_show(s->work->watch, &(basin_news){.what = "scoring, steps",
                                                               .done = done,
                                                               .total = total,
                                                               .loss = NAN,
                                                               .speed = NAN,
                                                               .seconds_left = NAN});
                status = descend_step(s, b, r, error);
            }
    }
    if (!status) status = read_heads(s, probability, error);
    release(s); /* training wants the memory in between */
    return status;
}
