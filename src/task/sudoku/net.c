/* The Sudoku model as expressions; see sudoku.h for its energy. */
#include <math.h>
#include <string.h>

#include "task/sudoku/sudoku.h"

enum { SIDE = 9, DIGITS = 9 };

static bool by_houses(const basin_sudoku_net *net) {
    return !strcmp(net->settings.pairs, "houses");
}

/* ---- parameters ---- */

static void declare(basin_sudoku_net *net) {
    const basin_sudoku_settings *s = &net->settings;
    basin_params *params = &net->params;
    basin_init wide = {BASIN_INIT_NORMAL, 1 / sqrt((double)s->dim)};
    basin_block_config config = {BASIN_BLOCK_OF(s), .init_query = wide, .init_memory = wide};
    net->digit = basin_param_add(params, "", "digit", BASIN_SHAPE(DIGITS + 1, s->dim),
                                 (basin_init){BASIN_INIT_NORMAL, 0.5});
    if (s->places)
        net->place = basin_param_add(params, "", "place", BASIN_SHAPE(BASIN_SUDOKU_CELLS, s->dim),
                                     (basin_init){BASIN_INIT_NORMAL, 0.5});
    net->head_w = basin_param_add(params, "", "head_w", BASIN_SHAPE(s->dim, DIGITS), wide);
    net->head_b = basin_param_add(params, "", "head_b", BASIN_SHAPE(DIGITS), (basin_init){0});
    basin_block_declare(&net->block, params, "block.", &config);
}

static void build_start(basin_sudoku_net *net) {
    int64_t cells = net->batch * BASIN_SUDOKU_CELLS;
    net->board = basin_index(net->graph, "board", BASIN_SHAPE(cells));
    net->start = basin_reshape(basin_gather(net->digit, net->board),
                               BASIN_SHAPE(net->batch, BASIN_SUDOKU_CELLS, net->settings.dim));
    if (net->place) net->start = basin_add(net->start, net->place);
}

basin_status basin_sudoku_net_check(const basin_sudoku_net *net, basin_error *error) {
    const basin_error *found = basin_graph_error(net->graph);
    return found ? basin_fail(error, found->status, "%s", found->text) : BASIN_OK;
}

basin_status basin_sudoku_net_new(basin_sudoku_net *net, const basin_sudoku_settings *settings,
                                  int64_t batch, basin_error *error) {
    *net = (basin_sudoku_net){.settings = *settings, .batch = batch};
    net->graph = basin_graph_new();
    if (!net->graph) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a graph");
    basin_params_begin(&net->params, net->graph);
    declare(net);
    build_start(net);
    basin_status status = basin_sudoku_net_check(net, error);
    if (status) basin_sudoku_net_free(net);
    return status;
}

void basin_sudoku_net_free(basin_sudoku_net *net) {
    basin_params_free(&net->params);
    basin_graph_free(net->graph);
    *net = (basin_sudoku_net){0};
}

/* ---- the energy ---- */

/* Cells [B, 81, W] by house, [B * 9, 9, W]: kind 0 rows, 1 columns, 2 boxes. */
static basin_expr by_house(basin_expr a, int kind) {
    static const int columns[] = {0, 2, 1, 3}, boxes[] = {0, 1, 3, 2, 4, 5};
    basin_shape s = basin_expr_shape(a);
    int64_t batch = s.dim[0], width = s.dim[2];
    if (kind == 1)
        a = basin_permute(basin_reshape(a, BASIN_SHAPE(batch, SIDE, SIDE, width)), columns);
    if (kind == 2)
        a = basin_permute(basin_reshape(a, BASIN_SHAPE(batch, 3, 3, 3, 3, width)), boxes);
    return basin_reshape(a, BASIN_SHAPE(batch * SIDE, SIDE, width));
}

/* -(1 / beta) times the log-sum-exps [.., H], summed for each board: [B] */
static basin_expr settle(const basin_sudoku_net *net, basin_expr lse) {
    basin_expr sum = basin_div(lse, net->block.beta);
    int64_t each = basin_shape_count(basin_expr_shape(sum)) / net->batch;
    return basin_neg(basin_sum(basin_reshape(sum, BASIN_SHAPE(net->batch, each)), 1, 1));
}

static basin_expr heads(const basin_sudoku_net *net, basin_expr flat) {
    basin_shape s = basin_expr_shape(flat);
    return basin_reshape(
        flat, BASIN_SHAPE(s.dim[0], s.dim[1], net->settings.heads, net->settings.head_dim));
}

/* Queries and keys are made once and read by row, by column and by box: the houses share weights,
 * as the rules of the game do. */
static basin_expr attention(const basin_sudoku_net *net, basin_expr g) {
    const basin_block *b = &net->block;
    int64_t width = net->settings.heads * net->settings.head_dim;
    basin_shape flat = BASIN_SHAPE(width, net->settings.dim);
    basin_expr q = basin_matmul_t(g, false, basin_reshape(b->wq, flat), true);
    basin_expr k = basin_matmul_t(g, false, basin_reshape(b->wk, flat), true), sum = NULL;
    if (!by_houses(net))
        return settle(net, basin_attention_lse(heads(net, q), heads(net, k), b->beta, NULL, NULL,
                                               &BASIN_OTHER_PAIRS));
    for (int kind = 0; kind < 3; kind++) {
        basin_expr lse =
            basin_attention_lse(heads(net, by_house(q, kind)), heads(net, by_house(k, kind)),
                                b->beta, NULL, NULL, &BASIN_OTHER_PAIRS);
        sum = sum ? basin_add(sum, settle(net, lse)) : settle(net, lse);
    }
    return sum;
}

static basin_expr givens(const basin_sudoku_net *net, basin_expr g) {
    return basin_neg(basin_sum(basin_mul(net->start, g), 1, 2));
}

enum { ATTENTION, MEMORIES, GIVENS };

/* Which kind the part number `part` is, among those that the settings have. */
static int part_kind(const basin_sudoku_settings *s, int part) {
    const bool has[] = {s->attention, s->hopfield, s->inject};
    for (int kind = 0; kind < 3; kind++)
        if (has[kind] && part-- == 0) return kind;
    return -1;
}

static basin_expr energy_part(const void *context, basin_expr g, int part) {
    const basin_sudoku_net *net = context;
    const basin_block_config *c = &net->block.config;
    switch (part_kind(&net->settings, part)) {
    case ATTENTION: return attention(net, g);
    case MEMORIES: return basin_energy_hopfield(g, net->block.xi, c->hopfield, c->power);
    default: return givens(net, g);
    }
}

static basin_expr norm(const void *context, basin_expr x) {
    const basin_sudoku_net *net = context;
    return basin_block_norm(&net->block, x);
}

basin_energy basin_sudoku_net_energy(const basin_sudoku_net *net) {
    static const char *const name[] = {"attention", "memories", "givens"};
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

basin_expr basin_sudoku_net_step(const basin_sudoku_net *net, basin_expr x) {
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
    basin_expr g = basin_block_norm(&net->block, x);
    return basin_add(basin_matmul(g, net->head_w), net->head_b);
}

basin_expr basin_sudoku_net_loss(const basin_sudoku_net *net, basin_expr label, basin_expr share) {
    const basin_sudoku_settings *s = &net->settings;
    int64_t counted = s->supervise ? s->supervise : s->steps;
    basin_shape flat = BASIN_SHAPE(net->batch * BASIN_SUDOKU_CELLS, DIGITS);
    basin_expr x = net->start, sum = NULL;
    for (int64_t t = 1; t <= s->steps; t++) {
        x = basin_sudoku_net_step(net, x);
        if (t <= s->steps - counted) continue;
        basin_expr scores = basin_reshape(basin_sudoku_net_read(net, x), flat);
        basin_expr loss = basin_sum_all(basin_cross_entropy_labels(scores, label));
        sum = sum ? basin_add(sum, loss) : loss;
    }
    return basin_scale(basin_mul(sum, share), 1 / (double)counted);
}
