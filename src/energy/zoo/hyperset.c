/* Hyper-SET: attention that spreads tokens on spheres, then a feed-forward energy, in turns; forces
 * go straight through the normalisation. */
#include "energy/zoo/zoo.h"

#include <math.h>

/* gain x / sqrt(mean x^2 + epsilon) */
static basin_expr on_sphere(basin_expr x, basin_expr gain, double epsilon) {
    basin_expr mean = basin_axes_insert(basin_mean(basin_square(x), -1, 1), -1, 1);
    return basin_mul(gain, basin_div(x, basin_sqrt(basin_offset(mean, epsilon))));
}

/* The same value, with the slope 1 in a force: x + (sphere - x), the second held. */
static basin_expr normalised(const basin_zoo_hyperset *m, basin_expr x, basin_expr map,
                             basin_expr gain, int64_t heads) {
    basin_shape shape = basin_expr_shape(x);
    if (!basin_zoo_divides(basin_expr_graph(x), basin_expr_shape(map).dim[0], heads)) return NULL;
    int64_t width = basin_expr_shape(map).dim[0] / heads;
    shape.dim[shape.rank - 1] = heads;
    shape.dim[shape.rank++] = width;
    basin_expr plain = basin_reshape(basin_zoo_linear(x, map, NULL), shape);
    if (!m->straight) return on_sphere(plain, gain, m->epsilon);
    basin_expr held = basin_reshape(basin_zoo_linear(basin_held(x), map, NULL), shape);
    return basin_add(plain, basin_sub(on_sphere(held, gain, m->epsilon), held));
}

/* The sum for each sample: [B] of tokens [B, N, D], [] of [N, D]. */
static basin_expr per_sample(basin_expr a, basin_expr x) {
    int batch = basin_expr_shape(x).rank == 3;
    return a ? basin_sum(a, batch, basin_expr_shape(a).rank - batch) : NULL;
}

/* sqrt(d) sum of log-sum-exp of w_i . w_j / sqrt(d), self included */
static basin_expr attention(const basin_zoo_hyperset *m, basin_expr x) {
    basin_expr w = normalised(m, x, m->w, m->gain_w, m->heads);
    if (!w) return NULL;
    basin_shape shape = basin_expr_shape(w);
    double root = sqrt((double)shape.dim[shape.rank - 1]);
    basin_expr beta = basin_fill(basin_expr_graph(x), BASIN_SHAPE(m->heads), 1 / root);
    basin_expr lse = basin_attention_lse(w, w, beta, NULL, NULL, &BASIN_ALL_PAIRS);
    return basin_scale(per_sample(lse, x), root);
}

/* -relu(f)^2 / 2, or minus the integral of gelu: ((f^2 - 1) Phi(f) + f phi(f)) / 2 */
static basin_expr feed_forward(const basin_zoo_hyperset *m, basin_expr x) {
    basin_expr f = normalised(m, x, m->m, m->gain_m, 1), square = basin_square(f);
    if (!m->gelu) return basin_scale(per_sample(basin_square(basin_relu(f)), x), -0.5);
    basin_expr phi = basin_scale(basin_exp(basin_scale(square, -0.5)), sqrt(0.5 / acos(-1)));
    basin_expr below = basin_mul(basin_offset(square, -1), basin_zoo_below(f));
    basin_expr sum = basin_add(below, basin_mul(f, phi));
    return basin_scale(per_sample(sum, x), -0.5);
}

static basin_expr energy(const void *context, basin_expr x, int part) {
    return part == 0 ? attention(context, x) : feed_forward(context, x);
}

basin_energy basin_zoo_hyperset_energy(const basin_zoo_hyperset *model) {
    return (basin_energy){
        .parts = 2, .name = {"attention", "feed-forward"}, .part = energy, .context = model};
}

/* [sin, cos] of (t + 1) 10000^(-i / (half - 1)), [E] */
static basin_expr sinusoid(basin_expr t, int64_t width) {
    double rate = -log(10000.0) / (double)(width / 2 - 1);
    basin_expr number = basin_iota(basin_expr_graph(t), width / 2);
    basin_expr angle = basin_mul(basin_offset(t, 1), basin_exp(basin_scale(number, rate)));
    return basin_concat((basin_expr[]){basin_sin(angle), basin_cos(angle)}, 2, 0);
}

/* Half `which` of the learned step sizes, of the tokens' shape. */
static basin_expr sizes(const basin_zoo_hyperset *m, basin_expr t, int which) {
    if (!m->t1_w) return basin_const(basin_expr_graph(t), m->alpha);
    basin_shape tokens = basin_expr_shape(m->start);
    int64_t width = tokens.dim[tokens.rank - 1];
    basin_expr e = sinusoid(t, basin_expr_shape(m->t1_w).dim[1]);
    e = basin_zoo_linear(basin_zoo_gelu(basin_zoo_linear(e, m->t1_w, m->t1_b)), m->t2_w, m->t2_b);
    basin_expr both = basin_zoo_linear(basin_zoo_gelu(basin_add(e, m->start)), m->t3_w, m->t3_b);
    return basin_slice(both, -1, which * width, width);
}

static basin_expr move_1(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)x;
    return basin_mul(sizes(context, t, 0), force);
}
static basin_expr move_2(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)x;
    return basin_mul(sizes(context, t, 1), force);
}

void basin_zoo_hyperset_turns(basin_turn turn[2], const basin_zoo_hyperset *model) {
    turn[0] = (basin_turn){.parts = 1, .move = move_1, .context = model};
    turn[1] = (basin_turn){.parts = 2, .move = move_2, .context = model};
}
