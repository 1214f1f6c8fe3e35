/* AKOrN: oscillators on spheres, x <- normalise(x + gamma (omega x + tangent(force))). */
#include "energy/zoo/zoo.h"

#include <math.h>

/* Plain attention with biases; head h owns the channels h, h + H, h + 2 H, .. */
static basin_expr attention(const basin_zoo_akorn *m, basin_expr x) {
    basin_shape shape = basin_expr_shape(x);
    if (!basin_zoo_divides(basin_expr_graph(x), shape.dim[1], m->heads)) return NULL;
    int64_t tokens = shape.dim[0], channels = shape.dim[1], width = channels / m->heads;
    basin_expr all = basin_zoo_linear(x, m->qkv_w, m->qkv_b), part[3];
    for (int i = 0; i < 3; i++)
        part[i] = basin_reshape(basin_slice(all, 1, i * channels, channels),
                                BASIN_SHAPE(tokens, width, m->heads));
    basin_expr score = basin_einsum("ich,jch->hij", part[0], part[1]);
    basin_expr a = basin_softmax(basin_scale(score, 1 / sqrt((double)width)));
    basin_expr mixed = basin_einsum("hij,jch->ich", a, part[2]);
    return basin_zoo_linear(basin_reshape(mixed, shape), m->o_w, m->o_b);
}

static basin_expr energy(const void *context, basin_expr x, int part) {
    const basin_zoo_akorn *m = context;
    (void)part;
    if (!m->a) return basin_neg(basin_sum_all(basin_mul(x, basin_add(attention(m, x), m->c))));
    basin_expr flat = basin_reshape(x, BASIN_SHAPE(-1));
    basin_expr square = basin_sum_all(basin_mul(flat, basin_matmul(flat, m->a)));
    return basin_neg(basin_add(basin_scale(square, 0.5), basin_sum_all(basin_mul(m->c, x))));
}

basin_energy basin_zoo_akorn_energy(const basin_zoo_akorn *model) {
    return (basin_energy){.parts = 1, .name = {"oscillators"}, .part = energy, .context = model};
}

/* Channels (2 i, 2 i + 1) -> |omega_i| (x[2 i + 1], -x[2 i]) */
static basin_expr rotate(basin_expr x, basin_expr omega) {
    basin_shape shape = basin_expr_shape(x);
    basin_expr pairs = basin_reshape(x, BASIN_SHAPE(shape.dim[0], -1, 2));
    basin_expr speed = basin_sqrt(basin_sum(basin_square(omega), -1, 1));
    basin_expr sign = basin_scale(basin_offset(basin_iota(basin_expr_graph(x), 2), -0.5), -2);
    basin_expr turned = basin_mul(basin_flip(pairs, -1), sign);
    return basin_reshape(basin_mul(basin_axes_insert(speed, 1, 1), turned), shape);
}

static basin_expr move(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    const basin_zoo_akorn *m = context;
    (void)t;
    if (!m->a) force = basin_add(attention(m, x), m->c);
    basin_expr tangent = basin_to_tangent(force, x, m->sphere);
    return basin_mul(m->gamma, basin_add(rotate(x, m->omega), tangent));
}

static basin_expr land(const void *context, basin_expr x, basin_expr t) {
    (void)t;
    return basin_to_sphere(x, ((const basin_zoo_akorn *)context)->sphere);
}

basin_turn basin_zoo_akorn_turn(const basin_zoo_akorn *model) {
    return (basin_turn){.move = move, .land = land, .context = model};
}
