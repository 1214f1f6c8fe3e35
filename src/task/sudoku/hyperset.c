/* Hyper-SET as a Sudoku model: the authors' energies and turns (basin/zoo.h), step sizes learned of
 * the step and the cell, an RMS norm before the digits. */
#include <string.h>

#include "task/sudoku/sudoku.h"

bool basin_sudoku_is_hyperset(const basin_sudoku_settings *settings) {
    return !strcmp(settings->arch, "hyperset");
}

/* Step sizes begin at 0, so that training begins with the identity. */
void basin_sudoku_hyperset_declare(basin_sudoku_net *net) {
    const basin_sudoku_settings *s = &net->settings;
    basin_params *p = &net->params;
    basin_zoo_hyperset *h = &net->hyperset;
    basin_init normal = {BASIN_INIT_NORMAL, 0.02}, zero = {BASIN_INIT_CONSTANT, 0};
    basin_init one = {BASIN_INIT_CONSTANT, 1};
    int64_t D = s->dim, M = s->memories;
    *h = (basin_zoo_hyperset){.heads = s->heads, .straight = true, .epsilon = 0x1p-23};
    h->w = basin_param_add(p, "block.", "w", BASIN_SHAPE(D, D), normal);
    h->m = basin_param_add(p, "block.", "m", BASIN_SHAPE(M, D), normal);
    h->gain_w = basin_param_add(p, "block.", "gain_w", BASIN_SHAPE(s->head_dim), one);
    h->gain_m = basin_param_add(p, "block.", "gain_m", BASIN_SHAPE(M), one);
    h->t1_w = basin_param_add(p, "block.", "t1_w", BASIN_SHAPE(D, D), zero);
    h->t1_b = basin_param_add(p, "block.", "t1_b", BASIN_SHAPE(D), zero);
    h->t2_w = basin_param_add(p, "block.", "t2_w", BASIN_SHAPE(D, D), zero);
    h->t2_b = basin_param_add(p, "block.", "t2_b", BASIN_SHAPE(D), zero);
    h->t3_w = basin_param_add(p, "block.", "t3_w", BASIN_SHAPE(2 * D, D), zero);
    h->t3_b = basin_param_add(p, "block.", "t3_b", BASIN_SHAPE(2 * D), zero);
    net->gain = basin_param_add(p, "", "gain", BASIN_SHAPE(D), one);
}

/* The turns with the number of the step from outside: each step is a descent of its own. */
typedef struct numbered {
    const basin_turn *turn;
    basin_expr t;
} numbered;

static basin_expr move(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    const numbered *n = context;
    (void)t;
    return n->turn->move(n->turn->context, force, x, n->t);
}

basin_expr basin_sudoku_hyperset_step(const basin_sudoku_net *net, basin_expr x, basin_expr t) {
    basin_turn turn[2], own[2];
    numbered context[2];
    basin_energy energy = basin_zoo_hyperset_energy(&net->hyperset);
    basin_zoo_hyperset_turns(turn, &net->hyperset);
    for (int i = 0; i < 2; i++) {
        context[i] = (numbered){&turn[i], t};
        own[i] = (basin_turn){.parts = turn[i].parts, .move = move, .context = &context[i]};
    }
    basin_descent_spec spec = {
        .steps = 1, .alpha = 1, .recompute = net->settings.recompute, .turn = own, .turns = 2};
    return basin_descend(&energy, x, &spec, NULL);
}

basin_expr basin_sudoku_hyperset_norm(const basin_sudoku_net *net, basin_expr x) {
    basin_expr mean = basin_axes_insert(basin_mean(basin_square(x), -1, 1), -1, 1);
    return basin_mul(net->gain, basin_div(x, basin_sqrt(basin_offset(mean, 0x1p-23))));
}
