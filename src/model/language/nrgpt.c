/* NRGPT's block and its descent, x <- x - proj dE/dg, as its authors' code has them: D x D a head,
 * one block for all steps. */
#include "model/language/language.h"

static basin_expr normal(basin_params *params, const char *name, basin_shape shape) {
    return basin_param_add(params, "", name, shape, (basin_init){BASIN_INIT_NORMAL, 0.02});
}

static basin_expr zeros(basin_params *params, const char *name, int64_t count) {
    return basin_param_add(params, "", name, BASIN_SHAPE(count),
                           (basin_init){BASIN_INIT_CONSTANT, 0});
}

/* FF1 and FF2W widen at once; FF2 has a square map first. */
void basin_nrgpt_declare(basin_language *model, basin_params *params) {
    const basin_language_config *c = &model->config;
    basin_zoo_nrgpt *m = &model->nrgpt;
    int64_t D = c->dim, U = c->hidden;
    bool two = c->feed != BASIN_ZOO_FEED_1, square = c->feed == BASIN_ZOO_FEED_2;
    *m = (basin_zoo_nrgpt){.feed = c->feed, .strict = c->strict, .beta = c->beta};
    m->h = normal(params, "h", BASIN_SHAPE(c->heads, D, D));
    m->bias = zeros(params, "bias", D);
    m->proj = normal(params, "proj", BASIN_SHAPE(D, D));
    m->scale =
        basin_param_add(params, "", "scale", BASIN_SCALAR, (basin_init){BASIN_INIT_CONSTANT, 1});
    m->w1 = normal(params, "w1", BASIN_SHAPE(square ? D : U, D));
    m->b1 = zeros(params, "b1", square ? D : U);
    if (!two) return;
    m->w2 = normal(params, "w2", square ? BASIN_SHAPE(U, D) : BASIN_SHAPE(D, U));
    m->b2 = zeros(params, "b2", square ? U : D);
}

basin_expr basin_nrgpt_steps(const basin_language *model, basin_expr x, basin_expr seed,
                             basin_expr *energy) {
    const basin_language_config *c = &model->config;
    basin_zoo_nrgpt m = model->nrgpt;
    m.dropout = c->dropout;
    m.dropout_step = c->dropout_step;
    m.seed = seed;
    x = basin_dropout(x, c->dropout_step, seed);
    basin_turn turn;
    basin_energy energies = basin_zoo_nrgpt_energy(&m, &turn);
    basin_descent_spec spec = {.steps = c->steps,
                               .alpha = c->alpha > 0 ? c->alpha : 1,
                               .recompute = c->recompute,
                               .turn = &turn,
                               .turns = 1};
    return basin_descend(&energies, x, &spec, energy);
}
