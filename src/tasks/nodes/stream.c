/* Scoring a graph that does not fit as one plan, with every neighbour of every node. The tokens x
 * of all nodes are kept, and their activations g; everything else runs over blocks of nodes, by a
 * few plans and, along edges, by basin/walk.h. A step of descent, with M = Wk' Wq of each head:
 *
 *     g = layernorm(x)           of all nodes
 *     x[C] += alpha M' sum over B of p[C, B] g[B]        as a query; leaves lse[C]
 *     x[B] += alpha M sum over C of p[C, B] g[C]     as a key
 *     x += alpha relu(g Xi') Xi
 *
 * both roles that a node has in the energy, each over all its neighbours, with no sampling and no
 * approximation. Since forces depend only on g, x can take them as they come. Parts of a graph
 * take each step together, and exchange the rows of their halos in between. */
#include "base/info.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "base/states.h"
#include "basin/walk.h"
#include "tasks/nodes/net.h"

/* Numbers of a block for all heads: in and out of plans they should stay in cache. */
enum { BLOCK_NUMBERS = 1 << 19, BLOCK_MIN = 128, BLOCK_MAX = 16384 };

/* Plans of a block: tokens, head; g M, M' of the sums of walks; activations, memories. */
enum {
    EMBED,
    HEAD,
    PROJECT,
    PULL,
    NORM,
    RECALL = NORM + BASIN_MAX_ANOMALY_BLOCKS,
    PIECES = RECALL + BASIN_MAX_ANOMALY_BLOCKS
};
typedef struct piece {
    basin_expr output; /* NULL: there is none */
    basin_plan *plan;
} piece;

/* A step of descent; halos need the rows of the first two. */
typedef enum phase { ACTIVATE, AS_QUERY, AS_KEY, PHASES } phase;

struct basin_nodes_stream {
    const basin_node_inputs *inputs;
    const basin_nodes_resources *work;
    basin_store *store;
    basin_graph *graph;
    basin_params params;
    basin_anomaly model;
    int64_t rows;        /* B, nodes of a block */
    int64_t stride;      /* D rounded up, as attention along lists needs rows */
    int64_t halo;        /* for a part: further rows of g and lse, which are other parts' */
    basin_expr features; /* [B, columns] */
    basin_expr where;    /* places [B], or NULL */
    basin_expr in_x, in_g, in_stack, in_sum; /* [B, D] [B, stride] [stride, H stride] [B, ..] */
    basin_expr last[BASIN_MAX_RELATIONS];    /* [B, D] */
    piece piece[PIECES];
    basin_nodes_lists list[BASIN_MAX_RELATIONS];
    basin_relation back[BASIN_MAX_RELATIONS]; /* of lists that had to be made */
    int64_t *entry[BASIN_MAX_RELATIONS];
    basin_nodes_tap tap;
    /* of all nodes, while it runs */
    float *token[BASIN_MAX_RELATIONS]; /* [N, D] each */
    float *g;                          /* [N + halo, stride] */
    float *lse;                        /* [N + halo, H] */
    float *bias;                       /* [edges, H] of this relation and block; or NULL */
    /* of a block */
    float *own, *sum;    /* [B, H stride] */
    float *out;          /* [B, stride or classes] */
    float *ask, *answer; /* [stride, H stride] M' of each head, and M */
    float *beta;         /* [H] */
    int32_t *place;      /* [B] */
};

/* ---- plans ---- */

static void declare_inputs(basin_nodes_stream *s) {
    const basin_nodes_settings *r = s->inputs->settings;
    int64_t B = s->rows, S = s->stride, columns = s->inputs->shape.columns;
    s->features = basin_input(s->graph, "features", BASIN_SHAPE(B, columns));
    if (basin_choice_is(r->position, "learned"))
        s->where = basin_index(s->graph, "place", BASIN_SHAPE(B));
    s->in_x = basin_input(s->graph, "x", BASIN_SHAPE(B, r->dim));
    s->in_g = basin_input(s->graph, "g", BASIN_SHAPE(B, S));
    s->in_stack = basin_input(s->graph, "stack", BASIN_SHAPE(S, r->heads * S));
    s->in_sum = basin_input(s->graph, "sum", BASIN_SHAPE(B, r->heads * S));
}

/* Zeros beyond the width. */
static basin_expr widen(const basin_nodes_stream *s, basin_expr a) {
    int64_t D = s->model.config.block.dim;
    if (s->stride == D) return a;
    basin_expr zero = basin_full(s->graph, BASIN_SHAPE(s->rows, s->stride - D), 0);
    return basin_concat((basin_expr[]){a, zero}, 2, 1);
}

static void declare_blocks(basin_nodes_stream *s) {
    const basin_anomaly_config *c = &s->model.config;
    for (int b = 0; b < c->blocks; b++) {
        const basin_block *block = basin_anomaly_block(&s->model, b);
        s->piece[NORM + b].output = widen(s, basin_block_norm(block, s->in_x));
        if (c->block.no_hopfield) continue;
        basin_expr g = basin_variable(basin_slice(s->in_g, 1, 0, c->block.dim));
        basin_expr energy = basin_energy_hopfield(g, block->xi, c->block.hopfield, c->block.power);
        s->piece[RECALL + b].output = basin_neg(basin_grad(energy, g));
    }
    if (c->block.no_attention) return;
    s->piece[PROJECT].output = basin_matmul(s->in_g, s->in_stack);
    s->piece[PULL].output = basin_matmul_t(s->in_sum, false, s->in_stack, true);
}

static void declare_ends(basin_nodes_stream *s) {
    const basin_anomaly_config *c = &s->model.config;
    basin_expr last[BASIN_MAX_RELATIONS];
    basin_expr tokens = basin_anomaly_embed(&s->model, s->features, NULL, s->where);
    for (int r = 0; r < c->relations; r++) {
        char name[32];
        snprintf(name, sizeof name, "last%d", r);
        s->last[r] = basin_input(s->graph, name, BASIN_SHAPE(s->rows, c->block.dim));
        last[r] = basin_block_norm(basin_anomaly_block(&s->model, c->blocks - 1), s->last[r]);
    }
    basin_expr first = basin_block_norm(&s->model.block, tokens);
    basin_expr read = basin_anomaly_head(&s->model, first, last, NULL);
    s->piece[EMBED].output = tokens;
    s->piece[HEAD].output = c->outputs ? read : basin_sigmoid(read);
}

static basin_status make_plans(basin_nodes_stream *s, basin_error *error) {
    basin_anomaly_config config = basin_nodes_net_config(s->inputs->settings, &s->inputs->shape);
    config.dropout = 0;
    s->graph = basin_graph_new();
    if (!s->graph) return basin_fail_memory(error, "a stream");
    basin_params_begin(&s->params, s->graph);
    declare_inputs(s);
    if (!basin_anomaly_declare(&s->model, &s->params, &config)) {
        declare_blocks(s);
        declare_ends(s);
    }
    BASIN_TRY(basin_graph_check(s->graph, error));
    for (piece *p = s->piece; p < s->piece + PIECES; p++) {
        basin_plan_spec spec = {.output = &p->output, .outputs = 1};
        if (p->output) BASIN_TRY(basin_plan_new(&p->plan, s->store, &spec, error));
    }
    return BASIN_OK;
}

static basin_status open_lists(basin_nodes_stream *s, basin_error *error) {
    const basin_node_inputs *inputs = s->inputs;
    for (int r = 0; r < inputs->shape.relations; r++) {
        const basin_relation *relation = &inputs->network->relation[inputs->node.relation[r]];
        basin_nodes_lists *l = &s->list[r];
        l->row = l->column = relation->row, l->key = l->query = relation->col;
        if (!inputs->network->directed) continue;
        BASIN_TRY(basin_relation_turn(&s->back[r], inputs->shape.facts ? &s->entry[r] : NULL,
                                      relation, inputs->shape.nodes, error));
        l->column = s->back[r].row, l->query = s->back[r].col, l->entry = s->entry[r];
    }
    return BASIN_OK;
}

/* ---- memory ---- */

static basin_status reserve(basin_nodes_stream *s, basin_error *error) {
    const basin_nodes_settings *r = s->inputs->settings;
    const char *what = "a stream";
    int64_t N = s->inputs->shape.nodes, B = s->rows, H = r->heads, S = s->stride;
    int64_t seen = N + s->halo, width = H * S;
    for (int i = 0; i < s->inputs->shape.relations; i++)
        BASIN_TRY(BASIN_NEW_RAW(&s->token[i], N * r->dim, what, error));
    /* Rows of neighbours are read in any order: large pages save most of the walks to find them. */
    s->g = basin_large_new((size_t)(seen * S) * sizeof *s->g);
    if (!s->g) return basin_fail_memory(error, what);
    BASIN_TRY(BASIN_NEW_RAW(&s->lse, seen * H, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&s->own, B * width, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&s->sum, B * width, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&s->out, B * basin_int_max(r->classes, S), what, error));
    BASIN_TRY(BASIN_NEW_RAW(&s->ask, S * width, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&s->answer, S * width, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&s->beta, H, what, error));
    return BASIN_NEW_RAW(&s->place, B, what, error);
}

/* Training needs the memory between two runs. */
static void release(basin_nodes_stream *s) {
    float **array[] = {&s->lse, &s->own, &s->sum, &s->out, &s->ask, &s->answer, &s->beta, &s->bias};
    for (size_t i = 0; i < sizeof array / sizeof *array; i++) free(*array[i]), *array[i] = NULL;
    for (int r = 0; r < BASIN_MAX_RELATIONS; r++) free(s->token[r]), s->token[r] = NULL;
    basin_aligned_free(s->g);
    free(s->place);
    s->g = NULL, s->place = NULL;
}

/* Numbers of the biases of the relation with most edges; 0: there are none. */
static size_t bias_count(const basin_nodes_stream *s) {
    const basin_node_inputs *v = s->inputs;
    int64_t edges = 0;
    for (int r = 0; r < v->shape.relations; r++)
        edges = basin_int_max(edges, v->network->relation[v->node.relation[r]].edges);
    return s->model.config.facts > 0 ? (size_t)(edges * s->inputs->settings->heads) : 0;
}

size_t basin_nodes_stream_bytes(const basin_nodes_stream *s) {
    const basin_nodes_settings *r = s->inputs->settings;
    size_t N = (size_t)s->inputs->shape.nodes, B = (size_t)s->rows, H = (size_t)r->heads;
    size_t R = (size_t)s->inputs->shape.relations, S = (size_t)s->stride;
    size_t floats = N * (R * (size_t)r->dim + S + H) + B * (2 * H * S + S) + 2 * S * H * S + H;
    floats += (size_t)s->halo * (S + H) + bias_count(s);
    size_t bytes = floats * sizeof(float);
    for (const piece *p = s->piece; p < s->piece + PIECES; p++)
        bytes += p->plan ? basin_plan_work_bytes(p->plan) : 0;
    for (size_t i = 0; i < R; i++)
        if (s->back[i].row)
            bytes +=
                (N + 1) * sizeof(int64_t) +
                (size_t)s->back[i].edges * (sizeof(int32_t) + (s->entry[i] ? sizeof(int64_t) : 0));
    return bytes;
}

static basin_status check(const basin_node_inputs *inputs, const basin_part *part,
                          basin_error *error) {
    const basin_nodes_settings *r = inputs->settings;
    if (part && part->halo && inputs->network->directed)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: a directed graph in parts cannot be streamed; needs more memory",
                          inputs->network->path);
    if (part && r->smoothing > 0)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "smoothing %lld of parts that are streamed, as their plans do not fit; "
                          "expected more memory, more ranks, or a model with smoothing 0",
                          (long long)r->smoothing);
    if (r->implicit)
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "%s: the graph does not fit into the memory allowed, and descents to "
            "fixed points (implicit) cannot be streamed; needs more memory or a smaller dim",
            inputs->network->path);
    if (basin_nodes_descends(r)) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "%s: the graph does not fit into the memory allowed, and form %s cannot be "
                      "streamed; needs form energy",
                      inputs->network->path, r->form);
}

basin_status basin_nodes_stream_new(basin_nodes_stream **stream, const basin_node_inputs *inputs,
                                    const basin_part *part, basin_store *store,
                                    const basin_nodes_resources *work, basin_error *error) {
    const int64_t align = BASIN_WALK_ALIGN;
    *stream = NULL;
    BASIN_TRY(check(inputs, part, error));
    BASIN_TRY(BASIN_NEW(stream, 1, "a stream", error));
    basin_nodes_stream *s = *stream;
    s->inputs = inputs, s->store = store, s->work = work, s->halo = part ? part->halo : 0;
    int64_t rows = BLOCK_NUMBERS / (inputs->settings->heads * inputs->settings->dim);
    rows = basin_int_max(BLOCK_MIN, basin_int_min(rows, BLOCK_MAX));
    s->rows = basin_int_min(rows, inputs->shape.nodes);
    s->stride = (inputs->settings->dim + align - 1) / align * align;
    if (inputs->network->relations) BASIN_TRY(open_lists(s, error));
    return make_plans(s, error);
}

void basin_nodes_stream_give(basin_nodes_stream *s, const basin_nodes_lists *list, int64_t halo) {
    memcpy(s->list, list, (size_t)s->inputs->shape.relations * sizeof *list);
    s->halo = halo;
}

void basin_nodes_stream_tap(basin_nodes_stream *s, const basin_nodes_tap *tap) { s->tap = *tap; }

void basin_nodes_stream_free(basin_nodes_stream *s) {
    if (!s) return;
    for (piece *p = s->piece; p < s->piece + PIECES; p++) basin_plan_free(p->plan);
    basin_params_free(&s->params);
    basin_graph_free(s->graph);
    release(s);
    for (int r = 0; r < BASIN_MAX_RELATIONS; r++)
        basin_relation_free(&s->back[r]), free(s->entry[r]);
    free(s);
}

const basin_params *basin_nodes_stream_params(const basin_nodes_stream *stream) {
    return &stream->params;
}

/* ---- blocks of nodes ---- */

static basin_status put(const basin_nodes_stream *s, int number, basin_expr input,
                        const float *data, basin_error *error) {
    return basin_values_write(s->piece[number].plan, input, data, BASIN_F32, error);
}

static basin_status run(float *out, const basin_nodes_stream *s, int number, basin_error *error) {
    const piece *p = &s->piece[number];
    BASIN_TRY(basin_plan_run(p->plan, error));
    return basin_values_read(p->plan, p->output, out, BASIN_F32, error);
}

/* Where the last block is short, the rows before it come again, so that every block is whole. */
static int64_t block_start(const basin_nodes_stream *s, int64_t first) {
    return basin_int_min(first, s->inputs->shape.nodes - s->rows);
}

static basin_status write_features(basin_nodes_stream *s, int number, int64_t start,
                                   basin_error *error) {
    const basin_node_inputs *v = s->inputs;
    BASIN_TRY(put(s, number, s->features, v->node.row + start * v->shape.columns, error));
    if (!s->where) return BASIN_OK;
    for (int64_t i = 0; i < s->rows; i++) s->place[i] = (int32_t)(start + i);
    return basin_values_write(s->piece[number].plan, s->where, s->place, BASIN_I32, error);
}

/* x += alpha out, for the nodes from `first` on of the block that begins at `start`. */
static void step_block(basin_nodes_stream *s, float *token, int64_t first, int64_t start,
                       int64_t width) {
    int64_t D = s->inputs->settings->dim,
            end = basin_int_min(start + s->rows, s->inputs->shape.nodes);
    float alpha = (float)s->inputs->settings->alpha;
    for (int64_t i = first; i < end; i++) {
        const float *from = s->out + (i - start) * width;
        float *x = token + i * D;
        for (int64_t d = 0; d < D; d++) x[d] += alpha * from[d];
    }
}

/* A piece over all nodes, of rows of `from` or features, into `to` or as a step of tokens. */
static basin_status sweep(basin_nodes_stream *s, int number, basin_expr input, const float *from,
                          float *to, float *token, basin_error *error) {
    int64_t out = basin_expr_shape(s->piece[number].output).dim[1];
    for (int64_t first = 0; first < s->inputs->shape.nodes; first += s->rows) {
        int64_t start = block_start(s, first);
        if (input)
            BASIN_TRY(put(s, number, input, from + start * basin_expr_shape(input).dim[1], error));
        else
            BASIN_TRY(write_features(s, number, start, error));
        BASIN_TRY(run(to ? to + start * out : s->out, s, number, error));
        if (token) step_block(s, token, first, start, out);
    }
    return BASIN_OK;
}

/* ---- attention along edges ---- */

static basin_status read_floats(basin_tensor *to, basin_store *store, basin_expr state,
                                basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor found = {0};
    BASIN_TRY(basin_store_get(&found, store, basin_expr_name(state), error));
    BASIN_TRY(basin_tensor_new(to, BASIN_F32, found.shape, error));
    return basin_tensor_convert(to, &found, error);
}

/* One head's M[i, j] = sum over y of wk[y, i] wq[y, j], into both stacks. */
static void fill_stack(basin_nodes_stream *s, const float *wk, const float *wq, int64_t head,
                       const basin_block_config *c) {
    int64_t D = c->dim, at = head * s->stride, width = c->heads * s->stride;
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j < D; j++) {
            double m = 0;
            for (int64_t y = 0; y < c->head_dim; y++) m += (double)wk[y * D + i] * wq[y * D + j];
            s->answer[i * width + at + j] = (float)m;
            s->ask[j * width + at + i] = (float)m;
        }
}

/* M = Wk' Wq of all heads of a block side by side, and beta. */
static basin_status stack_heads(basin_nodes_stream *s, const basin_block *block,
                                basin_error *error) {
    const basin_block_config *c = &block->config;
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor wk = {0};
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor wq = {0};
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor learned = {0};
    BASIN_TRY(read_floats(&wk, s->store, block->wk, error));
    BASIN_TRY(read_floats(&wq, s->store, block->wq, error));
    if (c->learn_beta) BASIN_TRY(read_floats(&learned, s->store, block->beta, error));
    double fixed = c->beta > 0 ? c->beta : 1 / sqrt((double)c->head_dim);
    size_t bytes = (size_t)(s->stride * c->heads * s->stride) * sizeof *s->ask;
    memset(s->ask, 0, bytes);
    memset(s->answer, 0, bytes);
    for (int64_t h = 0; h < c->heads; h++) {
        int64_t at = h * c->head_dim * c->dim;
        fill_stack(s, (const float *)wk.data + at, (const float *)wq.data + at, h, c);
        s->beta[h] = learned.data ? ((const float *)learned.data)[h] : (float)fixed;
    }
    return BASIN_OK;
}

/* What the edges of a relation add to scores in a block. */
static basin_status find_bias(basin_nodes_stream *s, int block, int relation, basin_error *error) {
    const basin_block *b = basin_anomaly_block(&s->model, block);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor we = {0};
    if (!b->we) return BASIN_OK;
    if (!s->bias) BASIN_TRY(BASIN_NEW_RAW(&s->bias, bias_count(s), "biases of edges", error));
    BASIN_TRY(read_floats(&we, s->store, b->we, error));
    return basin_edge_bias(s->bias, s->inputs, relation, we.data, s->inputs->settings->heads,
                           error);
}

static basin_walk walk_of(const basin_nodes_stream *s, const basin_nodes_lists *l, bool ask) {
    const basin_nodes_settings *r = s->inputs->settings;
    int threads = basin_backend_info_of(s->work->backend).threads; /* 0 of a GPU's */
    return (basin_walk){.rows = s->g,
                        .stride = s->stride,
                        .heads = r->heads,
                        .beta = s->beta,
                        .begin = ask ? l->row : l->column,
                        .other = ask ? l->key : l->query,
                        .drop_self = !basin_choice_is(r->self_loops, "keep"),
                        .add_self = basin_choice_is(r->self_loops, "add"),
                        .bias = s->bias,
                        .entry = ask ? NULL : l->entry,
                        .threads = threads > 0 ? threads : basin_thread_count()};
}

/* All nodes as queries (ask) or as keys. */
static basin_status walk(basin_nodes_stream *s, int relation, bool ask, basin_error *error) {
    const float *stack = ask ? s->ask : s->answer;
    basin_walk w = walk_of(s, &s->list[relation], ask);
    BASIN_TRY(put(s, PROJECT, s->in_stack, stack, error));
    BASIN_TRY(put(s, PULL, s->in_stack, stack, error));
    for (int64_t first = 0; first < s->inputs->shape.nodes; first += s->rows) {
        int64_t start = block_start(s, first);
        BASIN_TRY(put(s, PROJECT, s->in_g, s->g + start * s->stride, error));
        BASIN_TRY(run(s->own, s, PROJECT, error));
        if (ask)
            basin_walk_by_query(s->sum, s->lse, s->own, &w, start, s->rows);
        else
            basin_walk_by_key(s->sum, s->own, s->lse, &w, start, s->rows);
        BASIN_TRY(put(s, PULL, s->in_sum, s->sum, error));
        BASIN_TRY(run(s->out, s, PULL, error));
        step_block(s, s->token[relation], first, start, s->stride);
    }
    return BASIN_OK;
}

/* ---- descent ---- */

static basin_status begin(basin_nodes_stream *s, basin_error *error) {
    const basin_node_inputs *v = s->inputs;
    BASIN_TRY(reserve(s, error));
    for (int r = 0; r < v->shape.relations; r++)
        BASIN_TRY(sweep(s, EMBED, NULL, NULL, s->token[r], NULL, error));
    return BASIN_OK;
}

static basin_status take_phase(basin_nodes_stream *s, phase now, int block, int relation,
                               basin_error *error) {
    const basin_block *b = basin_anomaly_block(&s->model, block);
    float *token = s->token[relation];
    if (now == ACTIVATE) return sweep(s, NORM + block, s->in_x, token, s->g, NULL, error);
    if (!b->config.no_attention) {
        if (now == AS_QUERY) BASIN_TRY(stack_heads(s, b, error));
        BASIN_TRY(walk(s, relation, now == AS_QUERY, error));
    }
    if (now == AS_QUERY || b->config.no_hopfield) return BASIN_OK;
    return sweep(s, RECALL + block, s->in_g, s->g, NULL, token, error);
}

/* The rows that a phase has left: halos get those of other parts; a tap looks on. */
static basin_status share_rows(basin_nodes_stream *const *stream, basin_parts *parts, int step,
                               phase after, basin_error *error) {
    const basin_nodes_stream *s = stream[0];
    bool first = after == ACTIVATE;
    int64_t width = first ? s->stride : s->inputs->settings->heads;
    if (after == AS_KEY || !s->inputs->settings->attention) return BASIN_OK;
    if (s->tap.rows) s->tap.rows(s->tap.context, 2 * step + !first, first ? s->g : s->lse, width);
    if (!parts) return BASIN_OK;
    BASIN_SCRATCH_RAW(basin_exchange_rows, rows, parts->count, "rows of halos", error);
    for (int64_t k = 0; k < parts->count; k++) {
        float *of = first ? stream[k]->g : stream[k]->lse;
        rows[k] = (basin_exchange_rows){
            of, of, stream[k]->inputs->shape.nodes, stream[k]->halo, width, BASIN_F32, false};
    }
    return basin_parts_move(parts, rows, (int)parts->count, error);
}

static basin_status descend(basin_nodes_stream *const *stream, int64_t count, basin_parts *parts,
                            basin_error *error) {
    const basin_anomaly_config *c = &stream[0]->model.config;
    int steps = c->descent.steps, total = c->relations * c->blocks * steps;
    for (int done = 0; done < total; done++) {
        int r = done / steps / c->blocks, b = done / steps % c->blocks;
        for (int64_t k = 0; k < count && done % steps == 0; k++)
            BASIN_TRY(find_bias(stream[k], b, r, error));
        basin_watch_progress(stream[0]->work->watch, "scoring, steps", done, total, NAN, NULL);
        for (phase now = ACTIVATE; now < PHASES; now++) { /* of all parts, then their halos hear */
            for (int64_t k = 0; k < count; k++) BASIN_TRY(take_phase(stream[k], now, b, r, error));
            BASIN_TRY(share_rows(stream, parts, done, now, error));
        }
    }
    return BASIN_OK;
}

/* ---- Several classes: smoothing as basin_smooth has it, then probabilities ---- */

typedef struct smoothing {
    const basin_nodes_lists *list;
    int64_t classes;
    bool keep_self; /* loops of the data count beside the one that each node has */
    double anchor;
    double *z;                 /* [N, C] */
    double *own, *next, *root; /* [N, C] [N, C] [N] */
} smoothing;

static void smooth_some(const void *context, int64_t first, int64_t last) {
    const smoothing *s = context;
    const basin_nodes_lists *l = s->list;
    const int64_t *begin[] = {l->row, l->column}, C = s->classes;
    const int32_t *other[] = {l->key, l->query};
    for (int64_t i = first; i < last; i++) {
        double *sum = s->next + i * C;
        for (int64_t c = 0; c < C; c++) sum[c] = s->root[i] * s->z[i * C + c];
        for (int way = 0; way < 2; way++) /* half of what the node hears each way */
            for (int64_t e = begin[way][i]; e < begin[way][i + 1]; e++) {
                int64_t j = other[way][e];
                double part = 0.5 * s->root[j];
                for (int64_t c = 0; c < C && (j != i || s->keep_self); c++)
                    sum[c] += part * s->z[j * C + c];
            }
        for (int64_t c = 0; c < C; c++)
            sum[c] = s->anchor * s->own[i * C + c] + (1 - s->anchor) * s->root[i] * sum[c];
    }
}

static basin_status smooth(double *z, const basin_nodes_stream *stream, basin_error *error) {
    const basin_nodes_settings *r = stream->inputs->settings;
    int64_t N = stream->inputs->shape.nodes;
    size_t count = (size_t)(N * r->classes);
    BASIN_SCRATCH_RAW(double, own, count, "smoothing", error);
    BASIN_SCRATCH_RAW(double, next, count, "smoothing", error);
    BASIN_SCRATCH_RAW(double, root, N, "smoothing", error);
    bool keep_self = basin_choice_is(r->self_loops, "keep");
    const basin_nodes_lists *l = stream->list;
    smoothing s = {l, r->classes, keep_self, r->anchor, z, own, next, root};
    memcpy(own, z, count * sizeof *z);
    for (int64_t i = 0; i < N; i++) {
        int64_t all = 1;
        for (int64_t e = l->row[i]; e < l->row[i + 1]; e++) all += keep_self || l->key[e] != i;
        root[i] = 1 / sqrt((double)all);
    }
    for (int64_t t = 0; t < r->smoothing; t++) {
        basin_parallel_for(smooth_some, &s, N, 256, 0);
        memcpy(z, next, count * sizeof *z);
    }
    return BASIN_OK;
}

static void to_probabilities(double *z, int64_t classes) {
    double max = z[0], sum = 0;
    for (int64_t c = 1; c < classes; c++) max = fmax(max, z[c]);
    for (int64_t c = 0; c < classes; c++) sum += z[c] = exp(z[c] - max);
    for (int64_t c = 0; c < classes; c++) z[c] /= sum;
}

static basin_status end(basin_nodes_stream *s, double *probability, basin_error *error) {
    const basin_nodes_settings *r = s->inputs->settings;
    int64_t N = s->inputs->shape.nodes, width = r->classes ? r->classes : 1;
    BASIN_FREE_AT_EXIT double *all = NULL; /* of all classes, where one is asked for */
    if (r->focus) BASIN_TRY(BASIN_NEW_RAW(&all, N * width, "scores", error));
    double *to = r->focus ? all : probability;
    for (int64_t first = 0; first < N; first += s->rows) {
        int64_t start = block_start(s, first);
        BASIN_TRY(write_features(s, HEAD, start, error));
        for (int i = 0; i < s->inputs->shape.relations; i++)
            BASIN_TRY(put(s, HEAD, s->last[i], s->token[i] + start * r->dim, error));
        BASIN_TRY(run(s->out, s, HEAD, error));
        for (int64_t i = 0; i < s->rows * width; i++) to[start * width + i] = s->out[i];
    }
    if (r->classes && r->smoothing > 0) BASIN_TRY(smooth(to, s, error));
    for (int64_t i = 0; i < N && r->classes; i++) to_probabilities(to + i * width, width);
    for (int64_t i = 0; i < N && r->focus; i++) probability[i] = to[i * width + r->focus - 1];
    return BASIN_OK;
}

basin_status basin_nodes_streams_run(basin_nodes_stream *const *stream, int64_t count,
                                     basin_parts *parts, double *const *probability,
                                     basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < count && !status; k++) status = begin(stream[k], error);
    status = basin_ranks_agree(parts ? parts->ranks : NULL, status, error);
    if (!status) status = descend(stream, count, parts, error);
    for (int64_t k = 0; k < count; k++) {
        if (!status) status = end(stream[k], probability[k], error);
        release(stream[k]);
    }
    return status;
}
