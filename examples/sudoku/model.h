/* An energy over tokens in groups, its training and its files: docs/sudoku.md.
 *
 * The tokens of a board are its candidates, digit d in a cell: x [729, D]. They begin as u, one of
 * three vectors: the cell is empty; it shows this digit; it shows another one. Exactly one of nine
 * candidates is true in each of 324 groups: a digit in a row, in a column or in a box; the digits
 * of a cell. The tokens of a maze are its cells: x [side * side, D]. They begin as one of four
 * vectors: a wall, a way, the start, the goal. A cell has one group, its four neighbours.
 *
 *     E(g) = - sum over tokens i and memories m of
 *              (out_m . g_i) silu(eta_m . g_i + sum over kinds k of zeta_km . S_k + bias_m) - <u,
 * g> g = layernorm(x), S_k = a third (a half) of the sum of g over i's group of the kind k x <- x +
 * alpha (-dE/dg - x)
 *
 * Kinds: rows, columns, boxes, cells, and perhaps the three cells of a box in one row and in one
 * column (S is their sum over the root of 3); the neighbours of mazes. Without products (`kinds`
 * 0, the energy of earlier files) there are squares of memories and perhaps attention:
 *
 *     E(g) = - sum over tokens i, their groups and memories m of
 *              s_m relu(eta_m . g_i + zeta_m . S)^2 / 2
 *            - sum over heads h and tokens i of log sum over j in i's group of
 *              exp(wq_h g_i . wk_h g_j) - <u, g>
 *
 * The first half of those memories attract (s = 1). Of the four heads of attention, each sees the
 * groups of one kind: rows, columns, boxes, cells; those of mazes see the neighbours. A linear map
 * of g scores the tokens; the loss is the cross entropy of what is not given after every step. */
#pragma once
#include <math.h>

#include "boards.h"

#define ALPHA 0.5
enum { ROW, COLUMN, BOX, CELL, KINDS, IN_ROW = KINDS, IN_COLUMN };
enum { TOKENS = CELLS * DIGITS, HEADS = 4, BATCH = 100 };
enum { WALL, WAY, START, GOAL, SIGHTS }; /* what a cell of a maze shows */

/* ---- the energy ---- */

/* Width D, memories M, and the engine whose store has its weights. */
typedef struct model {
    int64_t dim, memories, keys; /* keys: numbers of a head of attention; 0 for none */
    int64_t kinds; /* of sums that products see: 4, or 6 with triples; 1 of mazes; 0: no products */
    int64_t side;  /* of a maze; 0 for boards */
    double alpha;  /* 0: ALPHA */
    basin_engine engine;
} model;

/* The model on a graph; its parameters are the states `prefix` + name of the store. */
typedef struct net {
    int64_t dim, memories, keys, kinds, side, batch; /* D, M, Y, K, side, B */
    int64_t cells, tokens;                           /* 81 and 729; side * side */
    double alpha;
    basin_graph *graph;
    basin_params params;
    basin_expr shown, head;  /* [3 or 4, D] of the first tokens, [D, 1] */
    basin_expr zeta, eta;    /* [M, D]; zeta of products [K, M, D] */
    basin_expr out, bias;    /* [M, D], [M] of products */
    basin_expr wk, wq;       /* [4 Y, D] */
    basin_expr gamma, delta; /* [], [D] of the layer norm */
    basin_expr board, start; /* index input [B * cells]; u [B, tokens, D] */
} net;

/* Candidate d of a cell that shows s begins as row 0 of `shown` if s is 0, 1 if s is d, else 2. */
static basin_expr first_tokens(const net *n) {
    basin_shape shape = BASIN_SHAPE(n->batch, n->tokens, n->dim);
    if (n->side) return basin_reshape(basin_take(n->shown, 0, n->board), shape);
    int32_t row[(DIGITS + 1) * DIGITS];
    for (int i = 0; i < (DIGITS + 1) * DIGITS; i++)
        row[i] = i < DIGITS ? 0 : i / DIGITS == i % DIGITS + 1 ? 1 : 2;
    basin_tensor rows = basin_tensor_view(row, BASIN_I32, BASIN_SHAPE((DIGITS + 1) * DIGITS));
    basin_expr index = basin_constant(n->graph, &rows);
    basin_shape by_digit = BASIN_SHAPE(DIGITS + 1, DIGITS * n->dim);
    basin_expr table = basin_reshape(basin_take(n->shown, 0, index), by_digit);
    return basin_reshape(basin_take(table, 0, n->board), shape);
}

/* Squares begin small, so that at first what the board shows outweighs them; with three times
 * these values, training got nowhere in 400 steps. */
static void net_new(net *n, const model *m, int64_t batch, const char *prefix) {
    double width = 1 / sqrt((double)m->dim);
    basin_init wide = {BASIN_INIT_NORMAL, width}, small = {BASIN_INIT_NORMAL, 0.1 * width};
    basin_init half = {BASIN_INIT_NORMAL, 0.5}, one = {BASIN_INIT_CONSTANT, 1}, zero = {0};
    basin_shape memories = BASIN_SHAPE(m->memories, m->dim);
    *n = (net){.dim = m->dim, .memories = m->memories, .keys = m->keys, .side = m->side};
    n->kinds = m->kinds;
    n->alpha = m->alpha > 0 ? m->alpha : ALPHA;
    n->batch = batch;
    n->cells = m->side ? m->side * m->side : CELLS;
    n->tokens = m->side ? n->cells : TOKENS;
    n->graph = basin_graph_new();
    basin_params *p = &n->params;
    basin_params_begin(p, n->graph);
    basin_shape shown = BASIN_SHAPE(m->side ? SIGHTS : 3, m->dim);
    n->shown = basin_param_add(p, prefix, "digit", shown, half);
    n->head = basin_param_add(p, prefix, "head_w", BASIN_SHAPE(m->dim, 1), wide);
    if (m->kinds) {
        basin_init medium = {BASIN_INIT_NORMAL, 0.5 * width};
        basin_init low = {BASIN_INIT_NORMAL, 0.5 / sqrt((double)m->memories)};
        basin_shape sums = BASIN_SHAPE(m->kinds, m->memories, m->dim);
        n->zeta = basin_param_add(p, prefix, "zeta", sums, medium);
        n->eta = basin_param_add(p, prefix, "eta", memories, medium);
        n->out = basin_param_add(p, prefix, "out", memories, low);
        n->bias = basin_param_add(p, prefix, "bias", BASIN_SHAPE(m->memories), zero);
    } else {
        n->zeta = basin_param_add(p, prefix, "zeta", memories, small);
        n->eta = basin_param_add(p, prefix, "eta", memories, small);
    }
    if (m->keys) {
        basin_init medium = {BASIN_INIT_NORMAL, 0.5 * width};
        n->wk = basin_param_add(p, prefix, "wk", BASIN_SHAPE(HEADS * m->keys, m->dim), medium);
        n->wq = basin_param_add(p, prefix, "wq", BASIN_SHAPE(HEADS * m->keys, m->dim), medium);
    }
    n->gamma = basin_param_add(p, prefix, "block.gamma", BASIN_SCALAR, one);
    n->delta = basin_param_add(p, prefix, "block.delta", BASIN_SHAPE(m->dim), zero);
    basin_param_set_minimum(p, n->gamma, 1e-3);
    n->board = basin_index(n->graph, "board", BASIN_SHAPE(batch * n->cells));
    n->start = first_tokens(n);
}

static void net_free(net *n) {
    basin_params_free(&n->params);
    basin_graph_free(n->graph);
}

/* [B, 729, W] with the members of a group on axes of their own. */
static basin_expr grouped(const net *n, basin_expr a, int kind) {
    if (kind == CELL) return basin_reshape(a, BASIN_SHAPE(n->batch * CELLS, DIGITS, -1));
    if (kind == BOX) return basin_reshape(a, BASIN_SHAPE(n->batch * 3, 3, 3, 3, DIGITS, -1));
    return basin_reshape(a, BASIN_SHAPE(n->batch, 9, 9, DIGITS, -1));
}

static basin_expr sum_axis(basin_expr a, int axis) {
    return basin_expand_dims(basin_sum(a, axis, 1), axis, 1);
}

/* The four neighbours of a cell of a maze, [B, side * side, W] -> [B, side * side, 4, W]; zeros
 * outside. */
static basin_expr around(const net *n, basin_expr a) {
    basin_expr grid = basin_reshape(a, BASIN_SHAPE(n->batch, n->side, n->side, -1)), near[4];
    for (int k = 0; k < 4; k++) {
        int axis = 1 + k / 2;
        near[k] = basin_slice(basin_pad(grid, axis, k % 2, 1 - k % 2), axis, 1 - k % 2, n->side);
    }
    return basin_reshape(basin_stack(near, 4, 3), BASIN_SHAPE(n->batch, n->cells, 4, -1));
}

/* S of every group of a kind, so that it can be added to what its members see. */
static basin_expr sum_of(const net *n, basin_expr g, int kind) {
    if (n->side) return basin_scale(basin_sum(around(n, g), 2, 1), 0.5);
    basin_expr sum = grouped(n, g, kind);
    if (kind == BOX) sum = sum_axis(sum, 3);
    return basin_scale(sum_axis(sum, kind == ROW ? 2 : 1), 1.0 / 3);
}

static basin_expr groups(const void *context, basin_expr g) {
    const net *n = context;
    basin_expr total = NULL, seen = basin_matmul_t(g, false, n->eta, true);
    basin_expr number = basin_arange(n->graph, n->memories);
    basin_expr sign = basin_sign(basin_offset(basin_neg(number), (double)(n->memories / 2) - 0.5));
    for (int kind = 0; kind < (n->side ? 1 : KINDS); kind++) {
        basin_expr own = n->side ? seen : grouped(n, seen, kind);
        basin_expr h = basin_add(own, basin_matmul_t(sum_of(n, g, kind), false, n->zeta, true));
        h = basin_mul(basin_square(basin_relu(h)), sign);
        h = basin_scale(basin_sum(basin_reshape(h, BASIN_SHAPE(n->batch, -1)), 1, 1), -0.5);
        total = total ? basin_add(total, h) : h;
    }
    return total;
}

/* What products see of the sums of a kind, [B, 9, 9, 9, M] or, of boxes and of their triples,
 * [B * 3, 3, 3, 3, 9, M], with an axis of 1 where it is the same for all members. */
static basin_expr seen_of(const net *n, basin_expr g, int kind) {
    basin_expr zeta = basin_slice(n->zeta, 0, kind, 1), sum;
    zeta = basin_reshape(zeta, BASIN_SHAPE(n->memories, n->dim));
    if (n->side)
        sum = basin_scale(basin_sum(around(n, g), 2, 1), 0.5);
    else if (kind == CELL)
        sum = basin_scale(sum_axis(grouped(n, g, ROW), 3), 1.0 / 3);
    else if (kind < CELL)
        sum = sum_of(n, g, kind);
    else /* three cells of a box in one row, or in one column */
        sum = basin_scale(sum_axis(grouped(n, g, BOX), kind == IN_ROW ? 3 : 1), 1 / sqrt(3.0));
    return basin_matmul_t(sum, false, zeta, true);
}

/* Products: - sum over tokens i and m of (out_m . g_i) silu(eta_m . g_i + sum over kinds k of
 * zeta_km . S_k + bias_m). */
static basin_expr products(const void *context, basin_expr g) {
    const net *n = context;
    basin_expr h = basin_add(basin_matmul_t(g, false, n->eta, true), n->bias);
    if (n->side)
        h = basin_add(h, seen_of(n, g, 0));
    else {
        static const int kind[] = {ROW, COLUMN, CELL, BOX, IN_ROW, IN_COLUMN};
        h = grouped(n, h, ROW);
        for (int k = 0; k < n->kinds; k++) {
            if (kind[k] == BOX) h = grouped(n, h, BOX);
            h = basin_add(h, seen_of(n, g, kind[k]));
        }
    }
    h = basin_reshape(basin_mul(h, basin_sigmoid(h)), BASIN_SHAPE(n->batch, n->tokens, -1));
    h = basin_mul(h, basin_matmul_t(g, false, n->out, true));
    return basin_neg(basin_sum(h, 1, 2));
}

/* [B, 729, W] -> [groups, 9, W] of a kind. */
static basin_expr members(const net *n, basin_expr a, int kind) {
    static const int order[KINDS][6] = {{0, 1, 3, 2, 4}, {0, 2, 3, 1, 4}, {0, 2, 4, 1, 3, 5}};
    a = grouped(n, a, kind);
    if (kind != CELL) a = basin_permute(a, order[kind]);
    return basin_reshape(a, BASIN_SHAPE(n->batch * CELLS, DIGITS, -1));
}

static basin_expr attention(const void *context, basin_expr g) {
    const net *n = context;
    basin_expr total = NULL;
    for (int h = 0; h < HEADS; h++) {
        basin_expr wk = basin_slice(n->wk, 0, h * n->keys, n->keys), score;
        basin_expr wq = basin_slice(n->wq, 0, h * n->keys, n->keys);
        basin_expr k = basin_matmul_t(g, false, wk, true), q = basin_matmul_t(g, false, wq, true);
        if (n->side)
            score = basin_sum(basin_mul(around(n, k), basin_expand_dims(q, 2, 1)), 3, 1);
        else
            score = basin_matmul_t(members(n, q, h), false, members(n, k, h), true);
        score = basin_reshape(basin_logsumexp(score, -1), BASIN_SHAPE(n->batch, -1));
        basin_expr one = basin_neg(basin_sum(score, 1, 1));
        total = total ? basin_add(total, one) : one;
    }
    return total;
}

static basin_expr clues(const void *context, basin_expr g) {
    return basin_neg(basin_sum(basin_mul(((const net *)context)->start, g), 1, 2));
}

static basin_expr norm(const void *context, basin_expr x) {
    const net *n = context;
    return basin_layernorm(x, n->gamma, n->delta, 1e-5);
}

static basin_energy energy_of(const net *n) {
    static const basin_term term[2][3] = {
        {{"groups", groups, NULL}, {"givens", clues, NULL}, {"attention", attention, NULL}},
        {{"products", products, NULL}, {"givens", clues, NULL}, {"attention", attention, NULL}}};
    int terms = n->keys ? 3 : 2;
    return (basin_energy){
        .term = term[n->kinds > 0], .terms = terms, .activation = norm, .context = n};
}

/* Tokens also decay, so that they stay bounded over many steps. */
static basin_expr decay(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_sub(force, x);
}

static basin_expr next(const net *n, basin_expr x) {
    basin_energy energy = energy_of(n);
    basin_substep turn = {.move = decay};
    basin_descent_spec spec = {.steps = 1, .alpha = n->alpha, .substep = &turn, .substeps = 1};
    return basin_descend(&energy, x, &spec, NULL);
}

/* Scores of what a cell may be, [B * cells, 9 or 2]: a digit; not on the path, or on it. */
static basin_expr digits(const net *n, basin_expr x) {
    basin_expr score = basin_matmul(norm(n, x), n->head);
    if (!n->side) return basin_reshape(score, BASIN_SHAPE(n->batch * CELLS, DIGITS));
    return basin_pad(basin_reshape(score, BASIN_SHAPE(n->batch * n->cells, 1)), 1, 1, 0);
}

/* ---- files ---- */

static void model_write(const char *path, const model *m) {
    basin_meta meta = {"basin.model", m->side ? "maze" : "sudoku"};
    net n;
    net_new(&n, m, 1, "");
    must(basin_params_write(path, &n.params, m->engine.store, &meta, 1, &error));
    net_free(&n);
}

static void model_open(model *m, const char *path) {
    basin_bundle *bundle;
    const basin_tensor *eta, *shown;
    net n;
    must(basin_bundle_read(&bundle, path, &error));
    must(basin_bundle_get(&eta, bundle, "eta", &error));
    must(basin_bundle_get(&shown, bundle, "digit", &error));
    if (shown->shape.dim[0] != (m->side ? SIGHTS : 3))
        quit(path, m->side ? "not a model of mazes" : "not a model of boards");
    m->memories = eta->shape.dim[0];
    m->dim = eta->shape.dim[1];
    const basin_tensor *keys = basin_bundle_find(bundle, "wk");
    const basin_tensor *zeta = basin_bundle_find(bundle, "zeta");
    const basin_tensor *alpha = basin_bundle_find(bundle, "alpha");
    m->keys = keys ? keys->shape.dim[0] / HEADS : 0;
    m->kinds = zeta && zeta->shape.rank == 3 ? zeta->shape.dim[0] : 0;
    if (m->kinds > (m->side ? 1 : IN_COLUMN + 1) || (m->kinds && m->kinds < KINDS && !m->side))
        quit(path, "zeta: not a number of kinds that this program knows");
    m->alpha = alpha && alpha->dtype == BASIN_F32 ? *(const float *)alpha->data : ALPHA;
    net_new(&n, m, 1, "");
    must(basin_params_read(&n.params, m->engine.store, bundle, &error));
    net_free(&n);
    basin_bundle_free(bundle);
}

/* ---- training ---- */

/* Puzzles as numbers: what each cell shows and what it is in the solution, [count, cells]. `sweep`,
 * or NULL: how far filling dead ends has to come before a cell off the path can be judged. */
typedef struct puzzles {
    int64_t count, cells;
    int32_t *given, *solution, *sweep;
} puzzles;

static puzzles new_puzzles(int64_t count, int64_t cells) {
    puzzles p = {.count = count, .cells = cells};
    p.given = calloc((size_t)(2 * count * cells) + 1, sizeof *p.given);
    if (!p.given) quit("puzzles", "out of memory");
    p.solution = p.given + count * cells;
    return p;
}

static puzzles puzzles_of(const boards *b) {
    puzzles p = new_puzzles(b->count, CELLS);
    for (int64_t i = 0; i < b->count * CELLS; i++) {
        p.given[i] = b->given[i / CELLS].cell[i % CELLS];
        p.solution[i] = b->solution[i / CELLS].cell[i % CELLS];
    }
    return p;
}

/* States are carried on from batch to batch, so that answers are trained to hold: a sample goes on
 * from where its last `steps` steps ended, without a gradient of those. One that is solved begins
 * anew with the next puzzle with probability 1 - `keep`, another one with probability `leave`. It
 * begins at u with normal noise of a deviation below `start`, and each step adds noise of a
 * deviation below `noise`, for half of the samples. Weights are averaged over batches. With
 * `front`, a cell of a maze off the path counts in the loss once dead ends, filled by `front` cells
 * per step, have reached it: a loss on all cells asks for guesses inside long dead ends, and
 * weights trained so did not carry to larger mazes. */
typedef struct training {
    int64_t steps, batch, epochs, seed;
    double rate, last, average; /* the highest learning rate, and the last */
    double keep, leave, start, noise, front;
    const char *output; /* a model file, written after every epoch; or NULL */
} training;

typedef struct trainer {
    net net;
    basin_trainer *trainer;
    int64_t step;
    basin_expr label, average;     /* inputs: [B * cells] or -1 if given; [] of the average */
    basin_expr fresh, start, path; /* inputs [B, 1, 1]: begin anew; deviations of noise */
    basin_expr seed, pool, answer; /* index [2]; states [B, tokens, D]; [B * cells] at their end */
    basin_plan *reads;             /* the answer */
    int64_t *item;                 /* [2, B] puzzle of each sample, batches since it began */
    float *number;                 /* [3, B] fresh, start, path */
    int32_t *cells, *labels, *now; /* [B * cells] */
    int64_t next, drawn;           /* place in the order; draws */
} trainer;

static basin_expr loss_of(const trainer *t, const training *how) {
    const net *n = &t->net;
    basin_shape shape = basin_expr_shape(n->start);
    basin_expr first = basin_mul(basin_normal(t->seed, shape), t->start), sum = NULL;
    first = basin_add(basin_stop_gradient(n->start), first);
    basin_expr x = basin_where(t->fresh, first, t->pool);
    for (int64_t i = 0; i < how->steps; i++) {
        x = next(n, x);
        if (how->noise > 0) x = basin_add(x, basin_mul(basin_normal(t->seed, shape), t->path));
        basin_expr one = basin_sum_all(basin_cross_entropy_labels(digits(n, x), t->label));
        sum = sum ? basin_add(sum, one) : one;
    }
    basin_param_set_statistic((basin_params *)&n->params, t->pool, x);
    basin_expr empty = basin_sum_all(basin_one_hot(t->label, n->side ? 2 : DIGITS));
    return basin_scale(basin_div(sum, empty), 1 / (double)how->steps);
}

/* Weights are trained as the states "train.NAME"; the states NAME become their averages. */
static void add_averages(basin_params *p, int count, basin_expr keep) {
    for (int i = 0; i < count; i++) {
        basin_expr now = p->param[i].state;
        const char *name = basin_expr_name(now) + strlen("train.");
        basin_expr mean = basin_param_add(p, "", name, basin_expr_shape(now), (basin_init){0});
        basin_expr apart = basin_mul(basin_sub(mean, now), keep);
        basin_param_set_statistic(p, mean, basin_add(now, apart));
    }
}

static void trainer_new(trainer *t, const model *m, const training *how, int64_t per_epoch) {
    basin_trainer_spec spec = {
        .optimizer = {.beta1 = 0.9,
                      .beta2 = 0.99,
                      .epsilon = 1e-8,
                      .weight_decay = 0.01,
                      .clip = 1,
                      .decay_matrices_only = true},
        .schedule = {per_epoch / 2, per_epoch * how->epochs, 0, how->rate, how->last}};
    basin_shape each = BASIN_SHAPE(how->batch, 1, 1);
    net *n = &t->net;
    net_new(n, m, how->batch, "train.");
    int weights = (int)n->params.count;
    int64_t cells = how->batch * n->cells;
    t->label = basin_index(n->graph, "label", BASIN_SHAPE(cells));
    t->average = basin_input(n->graph, "average", BASIN_SCALAR);
    t->fresh = basin_input(n->graph, "fresh", each);
    t->start = basin_input(n->graph, "start", each);
    t->path = basin_input(n->graph, "path", each);
    t->seed = basin_index(n->graph, "seed", BASIN_SHAPE(2));
    t->pool = basin_param_add(&n->params, "", "pool", basin_expr_shape(n->start), (basin_init){0});
    basin_param_set_statistic(&n->params, t->pool, NULL);
    t->answer = basin_argmax(digits(n, t->pool), 1);
    basin_expr loss = loss_of(t, how);
    add_averages(&n->params, weights, t->average);
    basin_store *store = m->engine.store;
    must(basin_trainer_new(&t->trainer, store, &n->params, loss, &spec, &error));
    must(basin_params_init(&n->params, store, (uint64_t)how->seed, &error));
    basin_plan_spec reads = {.output = &t->answer, .outputs = 1};
    must(basin_plan_new(&t->reads, store, &reads, &error));
    t->item = calloc((size_t)how->batch * 2, sizeof *t->item);
    t->number = calloc((size_t)how->batch * 3, sizeof *t->number);
    t->cells = calloc((size_t)cells * 3, sizeof *t->cells);
    if (!t->item || !t->number || !t->cells) quit("training", "out of memory");
    t->labels = t->cells + cells;
    t->now = t->labels + cells;
    for (int64_t i = 0; i < how->batch; i++) t->number[i] = 1;
}

static void trainer_free(trainer *t) {
    basin_plan_free(t->reads);
    basin_trainer_free(t->trainer);
    net_free(&t->net);
    free(t->item);
    free(t->number);
    free(t->cells);
}

static void write_to(basin_plan *plan, basin_expr input, void *data, basin_dtype dtype) {
    basin_tensor tensor = basin_tensor_borrow(data, dtype, basin_expr_shape(input));
    must(basin_plan_write(plan, input, &tensor, &error));
}

/* Sample i begins with the next puzzle of the order. */
static void begin(trainer *t, const training *how, const puzzles *p, const int64_t *order,
                  int64_t i) {
    int64_t cells = p->cells, item = order[t->next++ % p->count];
    basin_random random = basin_random_start((uint64_t)how->seed, 1 + (uint64_t)t->drawn++, 0);
    double draw[3];
    for (int k = 0; k < 3; k++) draw[k] = (double)basin_random_next(&random) / 4294967296.0;
    t->item[i] = item;
    t->item[how->batch + i] = 0;
    t->number[how->batch + i] = (float)(how->start * fmax(0, 1.4 * draw[0] - 0.4));
    t->number[2 * how->batch + i] = draw[1] < 0.5 ? 0 : (float)(how->noise * draw[2]);
    for (int64_t k = 0; k < cells; k++) {
        int32_t given = p->given[item * cells + k], full = p->solution[item * cells + k];
        bool known = t->net.side ? given != WAY : given > 0;
        t->cells[i * cells + k] = given;
        t->labels[i * cells + k] = known ? -1 : t->net.side ? full : full - 1;
    }
}

/* Cells of a maze that filling dead ends has not reached in the middle of this batch do not count.
 */
static void wait_for_front(trainer *t, const training *how, const puzzles *p) {
    int64_t cells = p->cells;
    for (int64_t i = 0; i < how->batch && p->sweep && how->front > 0; i++) {
        double front = how->front * (double)how->steps * ((double)t->item[how->batch + i] + 0.5);
        const int64_t from = t->item[i] * cells;
        for (int64_t k = 0; k < cells; k++)
            if (p->given[from + k] == WAY)
                t->labels[i * cells + k] = p->sweep[from + k] > front ? -1 : p->solution[from + k];
        t->item[how->batch + i]++;
    }
}

/* Whether the state of sample i has the right answer. */
static bool is_right(const trainer *t, const puzzles *p, int64_t i) {
    int64_t cells = t->net.cells, from = t->item[i] * cells;
    for (int64_t k = 0; k < cells; k++) {
        int32_t given = p->given[from + k], full = p->solution[from + k];
        bool known = t->net.side ? given != WAY : given > 0;
        if (!known && t->now[i * cells + k] != (t->net.side ? full : full - 1)) return false;
    }
    return true;
}

static double take_step(trainer *t, const training *how, const puzzles *p, const int64_t *order) {
    int64_t step = t->step++, batch = how->batch;
    double average = fmin(how->average, (double)step / (double)(step + 10)), loss;
    int32_t seed[2] = {(int32_t)how->seed, (int32_t)step};
    basin_plan *plan = basin_trainer_plan(t->trainer);
    for (int64_t i = 0; i < batch; i++)
        if (t->number[i] > 0) begin(t, how, p, order, i);
    wait_for_front(t, how, p);
    write_to(plan, t->net.board, t->cells, BASIN_I32);
    write_to(plan, t->label, t->labels, BASIN_I32);
    write_to(plan, t->average, &average, BASIN_F64);
    write_to(plan, t->fresh, t->number, BASIN_F32);
    write_to(plan, t->start, t->number + batch, BASIN_F32);
    if (how->noise > 0) write_to(plan, t->path, t->number + 2 * batch, BASIN_F32);
    write_to(plan, t->seed, seed, BASIN_I32);
    must(basin_trainer_step(&loss, t->trainer, &error));
    basin_tensor now = basin_tensor_borrow(t->now, BASIN_I32, basin_expr_shape(t->answer));
    must(basin_plan_run(t->reads, &error));
    must(basin_plan_read(&now, t->reads, t->answer, &error));
    basin_random random = basin_random_start((uint64_t)how->seed, (1ull << 40) + (uint64_t)step, 0);
    for (int64_t i = 0; i < batch; i++) {
        double draw = (double)basin_random_next(&random) / 4294967296.0;
        t->number[i] = draw < (is_right(t, p, i) ? 1 - how->keep : how->leave);
    }
    return loss;
}

/* Ends before training where weights could not be written; what is there stays. */
static void check_output(const char *path) {
    FILE *file = fopen(path, "ab");
    if (!file) quit(path, "cannot be written");
    fseek(file, 0, SEEK_END);
    bool empty = !ftell(file);
    fclose(file);
    if (empty) remove(path);
}

/* The mean loss of the last epoch. */
static double model_train(const model *m, const training *how, const puzzles *p) {
    int64_t per_epoch = p->count / how->batch;
    int64_t *order = calloc((size_t)p->count, sizeof *order);
    double loss = NAN;
    trainer t = {0};
    if (how->output) check_output(how->output);
    trainer_new(&t, m, how, per_epoch);
    for (int64_t epoch = 0; epoch < how->epochs; epoch++) {
        uint64_t stream = ((uint64_t)1 << 20) + (uint64_t)epoch;
        basin_random_permutation(order, (size_t)p->count, (uint64_t)how->seed, stream);
        loss = 0;
        for (int64_t i = 0; i < per_epoch; i++)
            loss += take_step(&t, how, p, order) / (double)per_epoch;
        fprintf(stderr, "epoch %d of %d: loss %.6f\n", (int)epoch + 1, (int)how->epochs, loss);
        if (how->output) model_write(how->output, m);
    }
    free(order);
    trainer_free(&t);
    return loss;
}
