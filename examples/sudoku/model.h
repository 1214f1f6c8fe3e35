/* A recurrent energy model of Sudoku boards, training through its descent, and descents.
 *
 * A token is a candidate: digit d in a cell. Tokens x [729, D] begin as u, one of three vectors:
 * the cell is empty; it shows this digit; it shows another one. In each of 324 groups of nine
 * candidates exactly one is true: a digit in a row, column or box, or the nine digits of a cell.
 *
 *     E(g) = - sum over groups, their members i and memories m of
 *              s_m relu(eta_m . g_i + zeta_m . S)^2 / 2  -  <u, g>
 *     g = layernorm(x), S = a third of the sum of g over the group, s_m = 1 or -1
 *     x <- x + alpha (-dE/dg - x)
 *
 * The first half of the memories attract (s = 1). A linear map of g scores the candidates; the loss
 * is the cross entropy of the empty cells after every step. */
#pragma once
#include <math.h>

#include "boards.h"

#define ALPHA 0.5
enum { ROW, COLUMN, BOX, CELL, KINDS, TOKENS = CELLS * DIGITS, PARAMS = 6, BATCH = 100 };

/* ---- the energy ---- */

/* Width D, memories M, and the engine whose store has its weights. */
typedef struct model {
    int64_t dim, memories;
    basin_engine engine;
} model;

/* The model on a graph; its parameters are the states `prefix` + name of the store. */
typedef struct net {
    int64_t dim, memories, batch; /* D, M, B */
    basin_graph *graph;
    basin_params params;
    basin_expr shown, head;  /* [3, D] of the first tokens, [D, 1] */
    basin_expr zeta, eta;    /* [M, D] */
    basin_expr gamma, delta; /* [], [D] of the layer norm */
    basin_expr board, start; /* index input [B * 81]; u [B, 729, D] */
} net;

/* Candidate d of a cell that shows s begins as row 0 of `shown` if s is 0, 1 if s is d, else 2. */
static basin_expr first_tokens(const net *n) {
    int32_t row[(DIGITS + 1) * DIGITS];
    for (int i = 0; i < (DIGITS + 1) * DIGITS; i++)
        row[i] = i < DIGITS ? 0 : i / DIGITS == i % DIGITS + 1 ? 1 : 2;
    basin_expr index = basin_index_constant(n->graph, row, BASIN_SHAPE((DIGITS + 1) * DIGITS));
    basin_shape by_digit = BASIN_SHAPE(DIGITS + 1, DIGITS * n->dim);
    basin_expr table = basin_reshape(basin_gather(n->shown, index), by_digit);
    return basin_reshape(basin_gather(table, n->board), BASIN_SHAPE(n->batch, TOKENS, n->dim));
}

/* Memories begin small, so that at first what the board shows outweighs them; with three times
 * these values, training got nowhere in 400 steps. */
static void net_new(net *n, const model *m, int64_t batch, const char *prefix) {
    double width = 1 / sqrt((double)m->dim);
    basin_init wide = {BASIN_INIT_NORMAL, width}, small = {BASIN_INIT_NORMAL, 0.1 * width};
    basin_init half = {BASIN_INIT_NORMAL, 0.5}, one = {BASIN_INIT_CONSTANT, 1}, zero = {0};
    basin_shape memories = BASIN_SHAPE(m->memories, m->dim);
    *n = (net){.dim = m->dim, .memories = m->memories, .batch = batch, .graph = basin_graph_new()};
    basin_params *p = &n->params;
    basin_params_begin(p, n->graph);
    n->shown = basin_param_add(p, prefix, "digit", BASIN_SHAPE(3, m->dim), half);
    n->head = basin_param_add(p, prefix, "head_w", BASIN_SHAPE(m->dim, 1), wide);
    n->zeta = basin_param_add(p, prefix, "zeta", memories, small);
    n->eta = basin_param_add(p, prefix, "eta", memories, small);
    n->gamma = basin_param_add(p, prefix, "block.gamma", BASIN_SCALAR, one);
    n->delta = basin_param_add(p, prefix, "block.delta", BASIN_SHAPE(m->dim), zero);
    basin_param_keep_above(p, n->gamma, 1e-3);
    n->board = basin_index(n->graph, "board", BASIN_SHAPE(batch * CELLS));
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
    return basin_axes_insert(basin_sum(a, axis, 1), axis, 1);
}

static basin_expr groups(const void *context, basin_expr g) {
    const net *n = context;
    basin_expr total = NULL, seen = basin_matmul_t(g, false, n->eta, true);
    basin_expr number = basin_iota(n->graph, n->memories);
    basin_expr sign = basin_sign(basin_offset(basin_neg(number), (double)(n->memories / 2) - 0.5));
    for (int kind = 0; kind < KINDS; kind++) {
        basin_expr sum = grouped(n, g, kind);
        if (kind == BOX) sum = sum_axis(sum, 3);
        sum = basin_scale(sum_axis(sum, kind == ROW ? 2 : 1), 1.0 / 3);
        basin_expr h = basin_add(grouped(n, seen, kind), basin_matmul_t(sum, false, n->zeta, true));
        h = basin_mul(basin_square(basin_relu(h)), sign);
        h = basin_scale(basin_sum(basin_reshape(h, BASIN_SHAPE(n->batch, -1)), 1, 1), -0.5);
        total = total ? basin_add(total, h) : h;
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
    static const basin_term term[] = {{"groups", groups, NULL}, {"givens", clues, NULL}};
    return (basin_energy){.term = term, .terms = 2, .activation = norm, .context = n};
}

/* Tokens also decay, so that they stay bounded over many steps. */
static basin_expr decay(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_sub(force, x);
}

static basin_expr next(const net *n, basin_expr x) {
    basin_energy energy = energy_of(n);
    basin_turn turn = {.move = decay};
    basin_descent_spec spec = {.steps = 1, .alpha = ALPHA, .turn = &turn, .turns = 1};
    return basin_descend(&energy, x, &spec, NULL);
}

/* Scores of the digits, [B * 81, 9]. */
static basin_expr digits(const net *n, basin_expr x) {
    return basin_reshape(basin_matmul(norm(n, x), n->head), BASIN_SHAPE(n->batch * CELLS, DIGITS));
}

/* ---- files ---- */

static void model_write(const char *path, const model *m) {
    basin_meta meta = {"basin.model", "sudoku"};
    net n;
    net_new(&n, m, 1, "");
    must(basin_params_write(path, &n.params, m->engine.store, &meta, 1, &error));
    net_free(&n);
}

static void model_open(model *m, const char *path) {
    basin_bundle *bundle;
    const basin_tensor *eta;
    net n;
    must(basin_bundle_read(&bundle, path, &error));
    must(basin_bundle_get(&eta, bundle, "eta", &error));
    m->memories = eta->shape.dim[0];
    m->dim = eta->shape.dim[1];
    net_new(&n, m, 1, "");
    must(basin_params_read(&n.params, m->engine.store, bundle, &error));
    net_free(&n);
    basin_bundle_free(bundle);
}

/* ---- training ---- */

/* The last half of a batch takes `ahead` steps without gradients before the `steps` that are
 * trained through, so that answers hold for more steps. Weights are averaged over batches. */
typedef struct training {
    int64_t steps, ahead, batch, epochs, seed;
    double rate, last, average; /* the highest learning rate, and the last */
    const char *output;         /* a model file, written after every epoch; or NULL */
} training;

typedef struct trainer {
    net net;
    basin_trainer trainer;
    basin_expr label, keep; /* inputs: [B * 81] digit - 1, or -1 if given; [] of the average */
} trainer;

static basin_expr loss_of(const trainer *t, const training *how) {
    const net *n = &t->net;
    basin_expr x = n->start, sum = NULL;
    for (int64_t i = 0; i < how->ahead; i++) x = next(n, x);
    basin_expr late = basin_offset(basin_iota(n->graph, n->batch), 0.5 - (double)n->batch / 2);
    late = basin_heaviside(basin_reshape(late, BASIN_SHAPE(n->batch, 1, 1)));
    if (how->ahead) x = basin_select(late, basin_stop_gradient(x), n->start);
    for (int64_t i = 0; i < how->steps; i++) {
        x = next(n, x);
        basin_expr one = basin_sum_all(basin_cross_entropy_labels(digits(n, x), t->label));
        sum = sum ? basin_add(sum, one) : one;
    }
    basin_expr empty = basin_sum_all(basin_one_hot(t->label, DIGITS));
    return basin_scale(basin_div(sum, empty), 1 / (double)how->steps);
}

/* Weights are trained as the states "train.NAME"; the states NAME become their averages. */
static void add_averages(basin_params *p, basin_expr keep) {
    for (int i = 0; i < PARAMS; i++) {
        basin_expr now = p->param[i].state;
        const char *name = basin_expr_name(now) + strlen("train.");
        basin_expr mean = basin_statistic_add(p, "", name, basin_expr_shape(now), (basin_init){0});
        basin_expr apart = basin_mul(basin_sub(mean, now), keep);
        basin_statistic_update(p, mean, basin_add(now, apart));
    }
}

static void trainer_new(trainer *t, const model *m, const training *how, int64_t per_epoch) {
    basin_trainer_spec spec = {
        .adamw = {0.9, 0.99, 1e-8, 0.01, 1, .decay_of = basin_decay_matrices},
        .schedule = {per_epoch, per_epoch * how->epochs, 0, how->rate, how->last}};
    net_new(&t->net, m, how->batch, "train.");
    t->label = basin_index(t->net.graph, "label", BASIN_SHAPE(how->batch * CELLS));
    t->keep = basin_input(t->net.graph, "keep", BASIN_SCALAR);
    basin_expr loss = loss_of(t, how);
    add_averages(&t->net.params, t->keep);
    must(basin_trainer_new(&t->trainer, m->engine.store, &t->net.params, loss, &spec, &error));
    must(basin_params_init(&t->net.params, m->engine.store, (uint64_t)how->seed, &error));
}

static void write_to(basin_plan *plan, basin_expr input, void *data, basin_dtype dtype) {
    basin_tensor tensor = basin_tensor_borrow(data, dtype, basin_expr_shape(input));
    must(basin_plan_write(plan, input, &tensor, &error));
}

/* Takes the boards `item` [batch], each under a symmetry that is drawn. */
static double take_step(trainer *t, const training *how, const boards *b, const int64_t *item) {
    int64_t count = how->batch * CELLS, step = t->trainer.step;
    double keep = fmin(how->average, (double)step / (double)(step + 10)), loss;
    int32_t *cells = calloc((size_t)(2 * count), sizeof *cells), *labels = cells + count;
    for (int64_t i = 0; i < how->batch; i++) {
        uint64_t stream = ((uint64_t)1 << 32) + (uint64_t)(step * how->batch + i);
        basin_random random = basin_random_start((uint64_t)how->seed, stream, 0);
        symmetry s = draw_symmetry(&random);
        board given = transformed(&b->given[item[i]], &s);
        board full = transformed(&b->solution[item[i]], &s);
        for (int k = 0; k < CELLS; k++) {
            cells[i * CELLS + k] = given.cell[k];
            labels[i * CELLS + k] = given.cell[k] ? -1 : full.cell[k] - 1;
        }
    }
    write_to(t->trainer.plan, t->net.board, cells, BASIN_I32);
    write_to(t->trainer.plan, t->label, labels, BASIN_I32);
    write_to(t->trainer.plan, t->keep, &keep, BASIN_F64);
    must(basin_trainer_step(&t->trainer, &loss, &error));
    free(cells);
    return loss;
}

/* The loss of the last batch. */
static double model_train(const model *m, const training *how, const boards *b) {
    int64_t per_epoch = b->count / how->batch;
    int64_t *order = calloc((size_t)b->count, sizeof *order);
    double loss = NAN;
    trainer t;
    trainer_new(&t, m, how, per_epoch);
    for (int64_t epoch = 0; epoch < how->epochs; epoch++) {
        uint64_t stream = ((uint64_t)1 << 20) + (uint64_t)epoch;
        basin_random_permutation(order, (size_t)b->count, (uint64_t)how->seed, stream);
        for (int64_t i = 0; i < per_epoch; i++)
            loss = take_step(&t, how, b, order + i * how->batch);
        fprintf(stderr, "epoch %d of %d: loss %.6f\n", (int)epoch + 1, (int)how->epochs, loss);
        if (how->output) model_write(how->output, m);
    }
    free(order);
    basin_trainer_free(&t.trainer);
    net_free(&t.net);
    return loss;
}

/* ---- descents ---- */

/* What is seen of a batch on its way down. */
typedef struct watch {
    const boards *boards;
    int64_t first, count; /* of the batch */
    basin_plan *plan;     /* reads the likeliest digits - 1, [B * 81] */
    basin_expr digit;
    int64_t *solved; /* [steps + 1] boards */
    double *energy;  /* [steps + 1] mean over boards */
    board *answer;   /* [boards] the given digits, and the likeliest ones elsewhere */
} watch;

static basin_status see(void *context, const basin_moment *now, basin_error *why) {
    watch *w = context;
    int32_t digit[BATCH * CELLS];
    basin_tensor digits = basin_tensor_borrow(digit, BASIN_I32, basin_expr_shape(w->digit));
    basin_status status = basin_plan_run(w->plan, why);
    if (!status) status = basin_plan_read(w->plan, w->digit, &digits, why);
    for (int64_t i = 0; i < w->count && !status; i++) {
        const board *given = &w->boards->given[w->first + i];
        board *answer = &w->answer[w->first + i];
        for (int k = 0; k < CELLS; k++)
            answer->cell[k] = given->cell[k] ? given->cell[k] : (uint8_t)(digit[i * CELLS + k] + 1);
        w->solved[now->step] += !memcmp(answer, &w->boards->solution[w->first + i], sizeof *answer);
        for (int term = 0; term < now->terms; term++)
            w->energy[now->step] += now->energy[term * now->samples + i] / (double)w->boards->count;
    }
    return status;
}

/* Takes `steps` steps with every board: how many are solved, and their mean energy, before each and
 * at the end, [steps + 1]; the answers at the end. */
static void model_descend(int64_t *solved, double *energy, board *answer, const model *m,
                          const boards *b, int64_t steps) {
    int32_t cells[BATCH * CELLS] = {0};
    int64_t batch = b->count < BATCH ? b->count : BATCH;
    basin_store *store = m->engine.store;
    watch w = {.boards = b, .solved = solved, .energy = energy, .answer = answer};
    basin_turn turn = {.move = decay};
    basin_descent_spec spec = {.steps = (int)steps, .alpha = ALPHA, .turn = &turn, .turns = 1};
    basin_stop stop = {.observe = see, .context = &w};
    basin_descent *descent;
    basin_plan *begin;
    net n;
    net_new(&n, m, batch, "");
    basin_energy whole = energy_of(&n);
    basin_shape shape = basin_expr_shape(n.start);
    must(basin_descent_new(&descent, store, &whole, n.graph, shape, &spec, &stop, &error));
    basin_expr tokens = basin_descent_tokens(descent, 0);
    basin_update first = {tokens, n.start};
    w.digit = basin_argmax(digits(&n, tokens), 1);
    basin_plan_spec starts = {.update = &first, .updates = 1};
    basin_plan_spec reads = {.output = &w.digit, .outputs = 1};
    must(basin_plan_new(&begin, store, &starts, &error));
    must(basin_plan_new(&w.plan, store, &reads, &error));
    for (w.first = 0; w.first < b->count; w.first += batch) {
        basin_descent_result result;
        w.count = b->count - w.first < batch ? b->count - w.first : batch;
        for (int64_t k = 0; k < w.count * CELLS; k++)
            cells[k] = b->given[w.first + k / CELLS].cell[k % CELLS];
        write_to(begin, n.board, cells, BASIN_I32);
        write_to(basin_descent_plan(descent), n.board, cells, BASIN_I32);
        must(basin_plan_run(begin, &error));
        must(basin_descent_run(descent, &result, NULL, &error));
        basin_descent_result_free(&result);
    }
    basin_plan_free(w.plan);
    basin_plan_free(begin);
    basin_descent_free(descent);
    net_free(&n);
}
