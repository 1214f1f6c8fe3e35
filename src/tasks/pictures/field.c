/* An energy of pictures that is trained by matching its gradient (equilibrium matching, Wang and
 * Du 2025): between a picture x and noise e, at y = t x + (1 - t) e, the gradient is to be
 * c(t) (e - x), without knowing t. The descent then leads from noise to pictures and slows down
 * there: c is 1 up to t = HOLD and falls to 0 at the picture. */
#include <math.h>
#include <stdio.h>

#include "tasks/common/layers.h"

#define HOLD 0.8

/* ---- parameters ---- */

static const basin_init small = {BASIN_INIT_NORMAL, 0.02}, none = {BASIN_INIT_CONSTANT, 0};

/* The block of patches of one size, with its encoder. */
static void declare_scale(basin_match_scale *s, basin_params *params, const basin_match_config *c,
                          int number) {
    char prefix[40] = "";
    int64_t grid = c->size / s->side, values = c->channels * s->side * s->side;
    basin_block_config block = c->net.et.block;
    if (number) snprintf(prefix, sizeof prefix, "patch%lld.", (long long)s->side);
    if (grid == 1 && !block.no_hopfield) block.no_attention = true; /* of one token */
    block.init_query = small;
    s->pattern = (basin_pattern){.exclude_self = !c->net.et.self_attention && grid > 1};
    s->enc_w = basin_param_add(params, prefix, "enc_w", BASIN_SHAPE(values, block.dim), small);
    s->enc_b = basin_param_add(params, prefix, "enc_b", BASIN_SHAPE(block.dim), none);
    s->pos = basin_param_add(params, prefix, "pos", BASIN_SHAPE(grid * grid, block.dim), small);
    basin_block_declare(&s->block, params, prefix, &block);
}

/* Lists the patch sizes from `min` on that divide `size`, ascending, at most `max` of them; returns
 * how many. */
static int find_sides(int64_t *side, int max, int64_t size, int64_t min) {
    int count = 0;
    for (int64_t s = min; s <= size && count < max; s++)
        if (size % s == 0) side[count++] = s;
    return count;
}

basin_status basin_match_declare(basin_match *m, basin_params *params,
                                 const basin_match_config *config) {
    const basin_match_config *c = &m->config;
    int64_t side[BASIN_MATCH_SCALES], grid = config->size / config->side;
    basin_shape all = BASIN_SHAPE(grid * grid, config->channels * config->side * config->side);
    *m = (basin_match){.config = *config};
    if (c->free) return basin_image_net_declare(&m->net, params, &config->net);
    m->config.scales = find_sides(side, c->scales, c->size, c->side);
    for (int i = 0; i < c->scales; i++) {
        m->scale[i].side = side[i];
        declare_scale(&m->scale[i], params, c, i);
    }
    m->curve = basin_param_add(params, "", "curve", all, none);
    m->slope = basin_param_add(params, "", "slope", all, none);
    return basin_model_status(params->graph);
}

/* ---- the energy ---- */

/* Patches [B, N, P] of one size as those of another. */
static basin_expr cut_again(const basin_match_config *c, basin_expr x, int64_t side) {
    int64_t B = basin_expr_shape(x).dim[0], C = c->channels, p = c->side, k = c->size / p;
    int64_t grid = c->size / side;
    if (side == p) return x;
    x = basin_reshape(x, BASIN_SHAPE(B, k, k, C, p, p));
    x = basin_permute(x, (const int[]){0, 3, 1, 4, 2, 5}); /* B, C, rows, columns */
    x = basin_reshape(x, BASIN_SHAPE(B, C, grid, side, grid, side));
    x = basin_permute(x, (const int[]){0, 2, 4, 1, 3, 5});
    return basin_reshape(x, BASIN_SHAPE(B, grid * grid, C * side * side));
}

static basin_expr scale_energy(const basin_match *m, const basin_match_scale *s, basin_expr x) {
    basin_block_bound bound = {.block = &s->block, .pattern = &s->pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_expr patches = cut_again(&m->config, x, s->side);
    basin_expr tokens = basin_add(basin_model_affine(patches, s->enc_w, s->enc_b), s->pos);
    return basin_energy_total(&energy, basin_energy_activation(&energy, tokens));
}

basin_expr basin_match_field(const basin_match *m, basin_expr x, basin_expr energy) {
    basin_shape shape = basin_expr_shape(x);
    if (energy) return basin_grad(energy, x);
    basin_expr shown = basin_full(basin_expr_graph(x), BASIN_SHAPE(shape.dim[0], shape.dim[1]), 0);
    return basin_image_net_forward(&m->net, x, shown);
}

basin_expr basin_match_energy(const basin_match *m, basin_expr x) {
    if (m->config.free) return NULL;
    basin_expr bowl = basin_add(basin_scale(basin_mul(m->curve, x), 0.5), m->slope);
    basin_expr energy = basin_sum(basin_mul(bowl, x), 1, 2);
    for (int i = 0; i < m->config.scales; i++)
        energy = basin_add(energy, scale_energy(m, &m->scale[i], x));
    return energy;
}

/* ---- the loss ---- */

basin_expr basin_match_errors(const basin_match *m, basin_expr patches, basin_expr seed) {
    basin_shape shape = basin_expr_shape(patches);
    basin_graph *graph = basin_expr_graph(patches);
    basin_expr one = basin_scalar(graph, 1);
    basin_expr noise = basin_normal(seed, shape);
    basin_expr t = basin_uniform(seed, BASIN_SHAPE(shape.dim[0], 1, 1)), left = basin_sub(one, t);
    basin_expr x = basin_variable(basin_add(basin_mul(t, patches), basin_mul(left, noise)));
    basin_expr c = basin_minimum(one, basin_scale(left, 1 / (1 - HOLD)));
    basin_expr target = basin_mul(c, basin_sub(noise, patches));
    basin_expr field = basin_match_field(m, x, basin_match_energy(m, x));
    return basin_mean(basin_square(basin_sub(field, target)), 1, 2);
}

double basin_match_speed(double t) { return fmax(0, fmin(1, (1 - t) / (1 - HOLD))); }
