/* The energy of houses: memories that see the sum of a house's tokens, or that sum beside each of
 * its tokens in turn. A house is a row, a column or a box; where a token is a candidate, a digit in
 * a cell, it is one digit in a row, in a column, in a box, or the nine digits of a cell: in each of
 * these 324 exactly one candidate is true. */
#include <math.h>
#include <string.h>

#include "task/sudoku/sudoku.h"

enum { SIDE = 9, BAND = 3, BOX = 2, CELL = 3 };

bool basin_sudoku_is_candidates(const basin_sudoku_settings *settings) {
    return !strcmp(settings->tokens, "candidates");
}

int64_t basin_sudoku_net_digits(const basin_sudoku_settings *settings) {
    return basin_sudoku_is_candidates(settings) ? SIDE : 1;
}

int64_t basin_sudoku_net_tokens(const basin_sudoku_settings *settings) {
    return BASIN_SUDOKU_CELLS * basin_sudoku_net_digits(settings);
}

static int kinds_of(const basin_sudoku_settings *s) {
    return basin_sudoku_is_candidates(s) ? 4 : 3;
}

/* Memories that see members begin small, so that what the board shows outweighs them at first:
 * three times as large, they learnt nothing that lasts in 400 steps. */
void basin_sudoku_houses_declare(basin_sudoku_net *net) {
    const basin_sudoku_settings *s = &net->settings;
    basin_init init = {BASIN_INIT_NORMAL, (s->house_members ? 0.1 : 1) / sqrt((double)s->dim)};
    basin_shape shape = BASIN_SHAPE(s->house_memories, s->dim);
    net->zeta = basin_param_add(&net->params, "", "zeta", shape, init);
    if (s->house_members) net->eta = basin_param_add(&net->params, "", "eta", shape, init);
}

/* Tokens [B, N, W] with the members of a house on axes of their own. */
static basin_expr apart(const basin_sudoku_net *net, basin_expr a, int kind) {
    int64_t B = net->batch, V = basin_sudoku_net_digits(&net->settings);
    if (kind == CELL) return basin_reshape(a, BASIN_SHAPE(B * BASIN_SUDOKU_CELLS, SIDE, -1));
    if (kind == BOX) return basin_reshape(a, BASIN_SHAPE(B * BAND, BAND, BAND, BAND, V, -1));
    return basin_reshape(a, BASIN_SHAPE(B, SIDE, SIDE, V, -1));
}

/* A third of the sum over the members, whose axes stay, of length 1. */
static basin_expr sum_members(basin_expr tokens, int kind) {
    int axis = kind == 0 ? 2 : 1;
    if (kind == BOX) tokens = basin_axes_insert(basin_sum(tokens, 3, 1), 3, 1);
    return basin_scale(basin_axes_insert(basin_sum(tokens, axis, 1), axis, 1), 1.0 / BAND);
}

/* 1 for the first half of the memories, which pull, -1 for those that push: [M] */
static basin_expr signs(const basin_sudoku_net *net) {
    int64_t M = net->settings.house_memories;
    return basin_sign(basin_offset(basin_neg(basin_iota(net->graph, M)), (double)(M / 2) - 0.5));
}

static basin_expr per_board(const basin_sudoku_net *net, basin_expr a) {
    return basin_sum(basin_reshape(a, BASIN_SHAPE(net->batch, -1)), 1, 1);
}

/* -sum over members i and memories m of s_m relu(eta_m . g_i + zeta_m . S)^2 / 2 */
static basin_expr members(const basin_sudoku_net *net, basin_expr seen, basin_expr sum, int kind) {
    basin_expr house = basin_matmul_t(sum, false, net->zeta, true);
    basin_expr h = basin_relu(basin_add(apart(net, seen, kind), house));
    return basin_scale(per_board(net, basin_mul(basin_square(h), signs(net))), -0.5);
}

static basin_expr together(const basin_sudoku_net *net, basin_expr sum) {
    const basin_block_config *c = &net->block.config;
    basin_expr rows = basin_reshape(sum, BASIN_SHAPE(net->batch, -1, net->settings.dim));
    return basin_energy_hopfield(rows, net->zeta, c->hopfield, c->power);
}

basin_expr basin_sudoku_net_houses(const basin_sudoku_net *net, basin_expr g) {
    basin_expr total = NULL, seen = net->eta ? basin_matmul_t(g, false, net->eta, true) : NULL;
    for (int kind = 0; kind < kinds_of(&net->settings); kind++) {
        basin_expr sum = sum_members(apart(net, g, kind), kind);
        basin_expr part = seen ? members(net, seen, sum, kind) : together(net, sum);
        total = total ? basin_add(total, part) : part;
    }
    return total;
}

/* ---- candidates ---- */

/* What candidate d of a cell that shows s (0: nothing) is: open, true or false. */
static void list_candidates(int32_t index[(SIDE + 1) * SIDE]) {
    for (int s = 0; s <= SIDE; s++)
        for (int d = 1; d <= SIDE; d++) index[s * SIDE + d - 1] = s == 0 ? 0 : s == d ? 1 : 2;
}

basin_expr basin_sudoku_net_candidates(const basin_sudoku_net *net) {
    int32_t index[(SIDE + 1) * SIDE];
    int64_t D = net->settings.dim;
    list_candidates(index);
    basin_expr of = basin_index_constant(net->graph, index, BASIN_SHAPE((SIDE + 1) * SIDE));
    return basin_reshape(basin_gather(net->digit, of), BASIN_SHAPE(SIDE + 1, SIDE * D));
}
