/* The Sudoku model as expressions; see sudoku.h for its energy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "basin/pairs.h"
#include "task/sudoku/sudoku.h"

enum { SIDE = 9, DIGITS = 9, KINDS = 3 };

static bool by_houses(const basin_sudoku_net *net) {
    return !basin_sudoku_is_hyperset(&net->settings) && !strcmp(net->settings.pairs, "houses");
}

/* ---- houses ---- */

/* Query (kind * B + b) * 81 + cell and the eight other cells of that kind of house on board b. */
static void list_pairs(int32_t *edge /* [B * 27 * 72, 2] */, int64_t batch) {
    for (int house = 0; house < BASIN_SUDOKU_HOUSES; house++)
        for (int64_t b = 0; b < batch; b++)
            for (int i = 0; i < SIDE * SIDE; i++) {
                int one = basin_sudoku_house_cell(house, i / SIDE);
                int two = basin_sudoku_house_cell(house, i % SIDE);
                if (one == two) continue;
                *edge++ = (int32_t)((house / SIDE * batch + b) * BASIN_SUDOKU_CELLS + one);
                *edge++ = (int32_t)(b * BASIN_SUDOKU_CELLS + two);
            }
}

static basin_expr constant(basin_graph *graph, const int32_t *number, int64_t count) {
    return basin_index_constant(graph, number, BASIN_SHAPE(count));
}

static basin_status build_houses(basin_sudoku_net *net, basin_error *error) {
    int64_t cells = net->batch * BASIN_SUDOKU_CELLS, count = cells * KINDS * (SIDE - 1);
    basin_graph *g = net->graph;
    basin_pairs pairs;
    if (net->batch > BASIN_SUDOKU_BATCH)
        return basin_fail(error, BASIN_BAD_VALUE, "batch is %lld, wanted at most %d",
                          (long long)net->batch, BASIN_SUDOKU_BATCH);
    int32_t *edge = basin_array_new((size_t)count, 2 * sizeof *edge);
    if (!edge) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for pairs of cells");
    list_pairs(edge, net->batch);
    basin_status status = basin_pairs_new(&pairs, KINDS * cells, cells, edge, count, 0, error);
    free(edge);
    if (status) return status;
    net->houses = (basin_pattern){.row = constant(g, pairs.row, KINDS * cells + 1),
                                  .key = constant(g, pairs.key, count),
                                  .column = constant(g, pairs.column, cells + 1),
                                  .query = constant(g, pairs.query, count),
                                  .pair = constant(g, pairs.pair, count)};
    basin_pairs_free(&pairs);
    return BASIN_OK;
}

/* ---- parameters ---- */

static void declare(basin_sudoku_net *net) {
    const basin_sudoku_settings *s = &net->settings;
    basin_params *params = &net->params;
    basin_init wide = {BASIN_INIT_NORMAL, 1 / sqrt((double)s->dim)};
    basin_block_config config = {BASIN_BLOCK_OF(s), .init_query = wide, .init_memory = wide};
    bool hyperset = basin_sudoku_is_hyperset(s);
    basin_init shown = {BASIN_INIT_NORMAL, hyperset ? 0.02 : 0.5};
    bool candidates = basin_sudoku_is_candidates(s);
    basin_shape said = BASIN_SHAPE(candidates ? 3 : DIGITS + 1, s->dim);
    net->digit = basin_param_add(params, "", "digit", said, shown);
    if (s->places)
        net->place =
            basin_param_add(params, "", "place", BASIN_SHAPE(BASIN_SUDOKU_CELLS, s->dim), shown);
    net->head_w =
        basin_param_add(params, "", "head_w", BASIN_SHAPE(s->dim, candidates ? 1 : DIGITS), wide);
    if (!candidates)
        net->head_b = basin_param_add(params, "", "head_b", BASIN_SHAPE(DIGITS), (basin_init){0});
    if (!hyperset && s->house_memories) basin_sudoku_houses_declare(net);
    if (hyperset)
        basin_sudoku_hyperset_declare(net);
    else
        basin_block_declare(&net->block, params, "block.", &config);
}

static void build_start(basin_sudoku_net *net) {
    int64_t cells = net->batch * BASIN_SUDOKU_CELLS;
    net->board = basin_index(net->graph, "board", BASIN_SHAPE(cells));
    const basin_sudoku_settings *s = &net->settings;
    basin_expr shown =
        basin_sudoku_is_candidates(s) ? basin_sudoku_net_candidates(net) : net->digit;
    net->start = basin_reshape(basin_gather(shown, net->board),
                               BASIN_SHAPE(net->batch, basin_sudoku_net_tokens(s), s->dim));
    if (net->place) net->start = basin_add(net->start, net->place);
    net->hyperset.start = net->start;
}

basin_status basin_sudoku_net_check(const basin_sudoku_net *net, basin_error *error) {
    const basin_error *found = basin_graph_error(net->graph);
    return found ? basin_fail(error, found->status, "%s", found->text) : BASIN_OK;
}

basin_status basin_sudoku_net_new(basin_sudoku_net *net, const basin_sudoku_settings *settings,
                                  int64_t batch, basin_error *error) {
    *net = (basin_sudoku_net){.settings = *settings, .batch = batch};
    net->graph = basin_graph_new();
    if (!net->graph) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a graph");
    basin_params_begin(&net->params, net->graph);
    declare(net);
    build_start(net);
    basin_status status = net->block.wq && by_houses(net) ? build_houses(net, error) : BASIN_OK;
    if (!status) status = basin_sudoku_net_check(net, error);
    if (status) basin_sudoku_net_free(net);
    return status;
}

void basin_sudoku_net_free(basin_sudoku_net *net) {
    basin_params_free(&net->params);
    basin_graph_free(net->graph);
    *net = (basin_sudoku_net){0};
}

/* ---- the energy ---- */

/* 1 for heads that pull and -1 for those that push, [H]. */
static basin_expr signs(const basin_sudoku_net *net) {
    double pulling = (double)(net->settings.heads - net->settings.repel) - 0.5;
    basin_expr head = basin_iota(net->graph, net->settings.heads);
    return basin_sign(basin_offset(basin_neg(head), pulling));
}

/* -(1 / beta) times the log-sum-exps, summed for each board: [3 * B * 81, H] or [B, 81, H] -> [B]
 */
static basin_expr settle(const basin_sudoku_net *net, basin_expr lse) {
    int64_t kinds = by_houses(net) ? KINDS : 1, each = BASIN_SUDOKU_CELLS * net->settings.heads;
    basin_expr sum = basin_div(lse, net->block.beta);
    if (net->settings.repel) sum = basin_mul(sum, signs(net));
    sum = basin_sum(basin_reshape(sum, BASIN_SHAPE(kinds, net->batch, each)), 2, 1);
    return basin_neg(basin_sum(sum, 0, 1));
}

/* Queries and keys are made once for all three kinds of houses, which share weights, as the rules
 * of the game do. */
static basin_expr attention(const basin_sudoku_net *net, basin_expr g) {
    const basin_block *b = &net->block;
    const basin_sudoku_settings *s = &net->settings;
    basin_shape flat = BASIN_SHAPE(s->heads * s->head_dim, s->dim);
    bool houses = by_houses(net);
    basin_shape shape = houses ? BASIN_SHAPE(net->batch * BASIN_SUDOKU_CELLS, s->heads, s->head_dim)
                               : BASIN_SHAPE(net->batch, BASIN_SUDOKU_CELLS, s->heads, s->head_dim);
    basin_expr q = basin_matmul_t(g, false, basin_reshape(b->wq, flat), true);
    basin_expr k = basin_matmul_t(g, false, basin_reshape(b->wk, flat), true);
    q = basin_reshape(q, shape);
    k = basin_reshape(k, shape);
    if (houses) q = basin_concat((basin_expr[]){q, q, q}, KINDS, 0);
    const basin_pattern *pattern = houses ? &net->houses : &BASIN_OTHER_PAIRS;
    return settle(net, basin_attention_lse(q, k, b->beta, NULL, NULL, pattern));
}

static basin_expr givens(const basin_sudoku_net *net, basin_expr g) {
    return basin_neg(basin_sum(basin_mul(net->start, g), 1, 2));
}

enum { ATTENTION, MEMORIES, HOUSES, GIVENS, PARTS };

/* Which kind the part number `part` is, among those that the settings have. */
static int part_kind(const basin_sudoku_settings *s, int part) {
    const bool has[] = {s->attention, s->hopfield, s->house_memories > 0, s->inject};
    for (int kind = 0; kind < PARTS; kind++)
        if (has[kind] && part-- == 0) return kind;
    return -1;
}

static basin_expr energy_part(const void *context, basin_expr g, int part) {
    const basin_sudoku_net *net = context;
    const basin_block_config *c = &net->block.config;
    switch (part_kind(&net->settings, part)) {
    case ATTENTION: return attention(net, g);
    case MEMORIES: return basin_energy_hopfield(g, net->block.xi, c->hopfield, c->power);
    case HOUSES: return basin_sudoku_net_houses(net, g);
    default: return givens(net, g);
    }
}

static basin_expr norm(const void *context, basin_expr x) {
    const basin_sudoku_net *net = context;
    return basin_block_norm(&net->block, x);
}

basin_energy basin_sudoku_net_energy(const basin_sudoku_net *net) {
    static const char *const name[] = {"attention", "memories", "houses", "givens"};
    if (basin_sudoku_is_hyperset(&net->settings)) return basin_zoo_hyperset_energy(&net->hyperset);
    basin_energy energy = {.part = energy_part, .activation = norm, .context = net};
    for (int kind; (kind = part_kind(&net->settings, energy.parts)) >= 0;)
        energy.name[energy.parts++] = name[kind];
    return energy;
}

/* ---- steps, answers, loss ---- */

static basin_expr leak(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_sub(force, x);
}

basin_expr basin_sudoku_net_step(const basin_sudoku_net *net, basin_expr x, basin_expr t) {
    if (basin_sudoku_is_hyperset(&net->settings)) return basin_sudoku_hyperset_step(net, x, t);
    basin_energy energy = basin_sudoku_net_energy(net);
    basin_turn turn = {.move = leak};
    basin_descent_spec spec = {.steps = 1,
                               .alpha = net->settings.alpha,
                               .recompute = net->settings.recompute,
                               .turn = net->settings.leak ? &turn : NULL,
                               .turns = net->settings.leak ? 1 : 0};
    return basin_descend(&energy, x, &spec, NULL);
}

basin_expr basin_sudoku_net_read(const basin_sudoku_net *net, basin_expr x) {
    bool hyperset = basin_sudoku_is_hyperset(&net->settings);
    basin_expr g = hyperset ? basin_sudoku_hyperset_norm(net, x) : basin_block_norm(&net->block, x);
    basin_expr scores = basin_matmul(g, net->head_w);
    return net->head_b ? basin_add(scores, net->head_b)
                       : basin_reshape(scores, BASIN_SHAPE(net->batch, BASIN_SUDOKU_CELLS, DIGITS));
}

basin_sudoku_target basin_sudoku_net_target(const basin_sudoku_net *net) {
    basin_graph *g = net->graph;
    int64_t cells = net->batch * BASIN_SUDOKU_CELLS;
    return (basin_sudoku_target){
        .label = basin_index(g, "label", BASIN_SHAPE(cells)),
        .share = basin_input(g, "share", BASIN_SCALAR),
        .late = net->settings.ahead ? basin_input(g, "late", BASIN_SHAPE(net->batch, 1, 1)) : NULL,
    };
}

/* Tokens that training begins with: the first ones, or, where `late` says so, those that are some
 * steps ahead, through which nothing is learnt. */
static basin_expr begin(const basin_sudoku_net *net, basin_expr late) {
    basin_expr x = net->start;
    if (!late) return x;
    for (int64_t t = 0; t < net->settings.ahead; t++)
        x = basin_sudoku_net_step(net, x, basin_const(net->graph, (double)t));
    return basin_select(late, basin_stop_gradient(x), net->start);
}

basin_expr basin_sudoku_net_loss(const basin_sudoku_net *net, const basin_sudoku_target *target) {
    const basin_sudoku_settings *s = &net->settings;
    int64_t counted = s->supervise ? s->supervise : s->steps;
    basin_shape flat = BASIN_SHAPE(net->batch * BASIN_SUDOKU_CELLS, DIGITS);
    basin_expr x = begin(net, target->late), sum = NULL;
    for (int64_t t = 0; t < s->steps; t++) {
        x = basin_sudoku_net_step(net, x, basin_const(net->graph, (double)t));
        if (t < s->steps - counted) continue;
        basin_expr scores = basin_reshape(basin_sudoku_net_read(net, x), flat);
        basin_expr loss = basin_sum_all(basin_cross_entropy_labels(scores, target->label));
        sum = sum ? basin_add(sum, loss) : loss;
    }
    return basin_scale(basin_mul(sum, target->share), 1 / (double)counted);
}
