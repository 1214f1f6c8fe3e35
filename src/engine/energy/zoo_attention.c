/* The zoo's transformers and their relatives; include/basin/zoo.h has the formulas. */
#include <math.h>

#include "engine/energy/energy.h"
#include "engine/expr/graph.h"

/* Phi(x), the share of a normal distribution below x, and x Phi(x). */
static basin_expr below(basin_expr x) {
    return basin_scale(basin_offset(basin_erf(basin_scale(x, sqrt(0.5))), 1), 0.5);
}

static basin_expr gelu(basin_expr x) { return basin_mul(x, below(x)); }

/* (x - mean) / sqrt(variance + epsilon) gain + bias over the last axis; gain may be NULL. */
static basin_expr norm(basin_expr x, basin_expr gain, basin_expr bias, double epsilon) {
    basin_graph *graph = basin_expr_graph(x);
    basin_expr one = basin_scalar(graph, 1);
    if (!gain) return basin_layernorm(x, one, bias, epsilon);
    basin_expr zero = basin_full(graph, basin_expr_shape(bias), 0);
    return basin_add(basin_mul(basin_layernorm(x, one, zero, epsilon), gain), bias);
}

/* Whether `width` channels divide into heads; if not, the graph has a message. */
static bool divides(basin_graph *graph, int64_t width, int64_t heads) {
    if (heads >= 1 && width % heads == 0) return true;
    return basin_graph_fail(graph, BASIN_BAD_VALUE,
                            "%lld channels in %lld heads; expected a divisor", (long long)width,
                            (long long)heads);
}

/* ---- NRGPT: causal attention, whose keys are held, and a feed-forward network ---- */

static basin_expr nrgpt_activation(const void *context, basin_expr x) {
    return norm(x, NULL, ((const basin_zoo_nrgpt *)context)->bias, 1e-5);
}

/* The same tokens, whose pull is dropped here and there: held + mask (g - held). */
static basin_expr with_dropout(const basin_zoo_nrgpt *m, basin_expr g) {
    if (!m->seed || m->dropout == 0) return g;
    basin_expr one = basin_full(basin_expr_graph(g), basin_expr_shape(g), 1),
               held = basin_variable_source(g);
    basin_expr mask = basin_dropout(one, m->dropout, m->seed);
    return basin_add(held, basin_mul(mask, basin_sub(g, held)));
}

/* h g_B of every head, [.., N, H D] */
static basin_expr keys(const basin_zoo_nrgpt *m, basin_expr g) {
    basin_shape h = basin_expr_shape(m->h);
    basin_expr all = basin_reshape(m->h, BASIN_SHAPE(h.dim[0] * h.dim[1], h.dim[1]));
    return basin_zoo_linear(basin_variable_source(g), all, NULL);
}

static double beta_of(const basin_zoo_nrgpt *m) { return m->beta > 0 ? m->beta : 1; }

/* log sum over earlier B of exp(beta g_A . k_B) by fused attention, [.., N, H] */
static basin_expr streamed(const basin_zoo_nrgpt *m, basin_expr g) {
    basin_shape heads = basin_expr_shape(g);
    int64_t H = basin_expr_shape(m->h).dim[0], D = heads.dim[heads.rank - 1];
    int axis = heads.rank - 1;
    heads.dim[heads.rank++] = D;
    heads.dim[axis] = H;
    basin_expr q = basin_broadcast_to(basin_expand_dims(with_dropout(m, g), axis, 1), heads);
    basin_expr beta = basin_full(basin_expr_graph(g), BASIN_SHAPE(H), beta_of(m));
    const basin_pattern *pairs = m->strict ? &BASIN_EARLIER_PAIRS : &BASIN_CAUSAL_PAIRS;
    return basin_attention_lse(q, basin_reshape(keys(m, g), heads), beta, NULL, NULL, pairs);
}

/* The same with the scores in memory. All heads have one query, so that scores are one product of
 * [N, D] and [N H, D], keys as they lie, and the pull is one of [N, N H] and [N H, D]. */
static basin_expr written(const basin_zoo_nrgpt *m, basin_expr g) {
    basin_shape s = basin_expr_shape(g), out = s;
    int64_t H = basin_expr_shape(m->h).dim[0], N = s.dim[s.rank - 2], D = s.dim[s.rank - 1];
    basin_expr k = basin_reshape(keys(m, g), BASIN_SHAPE(-1, N * H, D));
    basin_expr q = basin_reshape(with_dropout(m, g), BASIN_SHAPE(-1, N, D));
    basin_expr score = basin_reshape(basin_matmul_t(q, false, k, true), BASIN_SHAPE(-1, N, N, H));
    out.dim[out.rank - 1] = H;
    return basin_reshape(basin_causal_logsumexp(score, beta_of(m), m->strict), out);
}

/* Tiles of fused attention are made for narrow heads. NRGPT's are as wide as tokens: where scores
 * take no more room than keys, products of matrices are faster. */
static bool writes_scores(basin_shape g) { return g.dim[g.rank - 2] <= 2 * g.dim[g.rank - 1]; }

/* -(1 / beta) sum over heads of log sum over earlier B of exp(beta g_A . h g_B), [.., N] */
static basin_expr nrgpt_attention(const void *context, basin_expr g) {
    const basin_zoo_nrgpt *m = context;
    basin_shape h = basin_expr_shape(m->h), s = basin_expr_shape(g);
    if (h.rank != 3 || s.rank < 2 || h.dim[1] != s.dim[s.rank - 1])
        return basin_graph_fail(basin_expr_graph(g), BASIN_BAD_SHAPE,
                                "NRGPT with matrices of rank %d and tokens of rank %d, expected "
                                "[H, D, D] and [.., N, D]",
                                h.rank, s.rank);
    basin_expr lse = (writes_scores(s) ? written : streamed)(m, g);
    return basin_scale(basin_sum(lse, -1, 1), -1 / beta_of(m));
}

static basin_expr nrgpt_network(const basin_zoo_nrgpt *m, basin_expr g) {
    basin_expr a = gelu(basin_zoo_linear(g, m->w1, m->b1));
    if (m->feed == BASIN_ZOO_FEED_1) return basin_neg(basin_sum(basin_square(a), -1, 1));
    a = basin_zoo_linear(a, m->w2, m->b2);
    if (m->feed == BASIN_ZOO_FEED_2W) return basin_neg(basin_sum(basin_mul(g, a), -1, 1));
    return basin_neg(basin_sum(basin_square(gelu(a)), -1, 1));
}

static basin_expr nrgpt_feed(const void *context, basin_expr g) {
    const basin_zoo_nrgpt *m = context;
    return basin_mul(m->scale, nrgpt_network(m, g));
}

static basin_expr project(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    const basin_zoo_nrgpt *m = context;
    (void)x, (void)t;
    return basin_dropout(basin_zoo_linear(force, m->proj, NULL), m->dropout_step, m->seed);
}

basin_energy basin_zoo_nrgpt_energy(const basin_zoo_nrgpt *model, basin_substep *turn) {
    static const basin_term term[] = {{"attention", nrgpt_attention, NULL},
                                      {"feed-forward", nrgpt_feed, NULL}};
    if (turn) *turn = (basin_substep){.move = project, .context = model};
    return (basin_energy){
        .term = term, .terms = 2, .activation = nrgpt_activation, .context = model};
}

/* ---- Hyper-SET: attention on spheres, a feed-forward energy, in turns; straight-through ---- */

/* gain x / sqrt(mean x^2 + epsilon) */
static basin_expr on_sphere(basin_expr x, basin_expr gain, double epsilon) {
    basin_expr mean = basin_expand_dims(basin_mean(basin_square(x), -1, 1), -1, 1);
    return basin_mul(gain, basin_div(x, basin_sqrt(basin_offset(mean, epsilon))));
}

/* The same value, with the slope 1 in a force: x + (sphere - x), the second held. */
static basin_expr normalised(const basin_zoo_hyperset *m, basin_expr x, basin_expr map,
                             basin_expr gain, int64_t heads) {
    basin_shape shape = basin_expr_shape(x);
    if (!divides(basin_expr_graph(x), basin_expr_shape(map).dim[0], heads)) return NULL;
    int64_t width = basin_expr_shape(map).dim[0] / heads;
    shape.dim[shape.rank - 1] = heads;
    shape.dim[shape.rank++] = width;
    basin_expr plain = basin_reshape(basin_zoo_linear(x, map, NULL), shape);
    if (!m->straight) return on_sphere(plain, gain, m->epsilon);
    basin_expr held = basin_reshape(basin_zoo_linear(basin_variable_source(x), map, NULL), shape);
    return basin_add(plain, basin_sub(on_sphere(held, gain, m->epsilon), held));
}

/* The sum for each sample: [B] of tokens [B, N, D], [] of [N, D]. */
static basin_expr per_sample(basin_expr a, basin_expr x) {
    int batch = basin_expr_shape(x).rank == 3;
    return a ? basin_sum(a, batch, basin_expr_shape(a).rank - batch) : NULL;
}

/* sqrt(d) sum of log-sum-exp of w_i . w_j / sqrt(d), self included */
static basin_expr hyperset_attention(const void *context, basin_expr x) {
    const basin_zoo_hyperset *m = context;
    basin_expr w = normalised(m, x, m->w, m->gain_w, m->heads);
    if (!w) return NULL;
    basin_shape shape = basin_expr_shape(w);
    double root = sqrt((double)shape.dim[shape.rank - 1]);
    basin_expr beta = basin_full(basin_expr_graph(x), BASIN_SHAPE(m->heads), 1 / root);
    basin_expr lse = basin_attention_lse(w, w, beta, NULL, NULL, &BASIN_ALL_PAIRS);
    return basin_scale(per_sample(lse, x), root);
}

/* -relu(f)^2 / 2, or minus the integral of gelu: ((f^2 - 1) Phi(f) + f phi(f)) / 2 */
static basin_expr hyperset_feed(const void *context, basin_expr x) {
    const basin_zoo_hyperset *m = context;
    basin_expr f = normalised(m, x, m->m, m->gain_m, 1), square = basin_square(f);
    if (!m->gelu) return basin_scale(per_sample(basin_square(basin_relu(f)), x), -0.5);
    basin_expr phi = basin_scale(basin_exp(basin_scale(square, -0.5)), sqrt(0.5 / acos(-1)));
    basin_expr under = basin_mul(basin_offset(square, -1), below(f));
    basin_expr sum = basin_add(under, basin_mul(f, phi));
    return basin_scale(per_sample(sum, x), -0.5);
}

/* [sin, cos] of (t + 1) 10000^(-i / (half - 1)), [E] */
static basin_expr sinusoid(basin_expr t, int64_t width) {
    double rate = -log(10000.0) / (double)(width / 2 - 1);
    basin_expr number = basin_arange(basin_expr_graph(t), width / 2);
    basin_expr angle = basin_mul(basin_offset(t, 1), basin_exp(basin_scale(number, rate)));
    return basin_concat((basin_expr[]){basin_sin(angle), basin_cos(angle)}, 2, 0);
}

/* Half `which` of the learned step sizes, of the tokens' shape. */
static basin_expr sizes(const basin_zoo_hyperset *m, basin_expr t, int which) {
    if (!m->t1_w) return basin_scalar(basin_expr_graph(t), m->alpha);
    basin_shape tokens = basin_expr_shape(m->start);
    int64_t width = tokens.dim[tokens.rank - 1];
    basin_expr e = sinusoid(t, basin_expr_shape(m->t1_w).dim[1]);
    e = basin_zoo_linear(gelu(basin_zoo_linear(e, m->t1_w, m->t1_b)), m->t2_w, m->t2_b);
    basin_expr both = basin_zoo_linear(gelu(basin_add(e, m->start)), m->t3_w, m->t3_b);
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

basin_energy basin_zoo_hyperset_energy(const basin_zoo_hyperset *model, basin_substep turn[2]) {
    static const basin_term term[] = {{"attention", hyperset_attention, NULL},
                                      {"feed-forward", hyperset_feed, NULL}};
    if (turn) {
        turn[0] = (basin_substep){.terms = 1, .move = move_1, .context = model};
        turn[1] = (basin_substep){.terms = 2, .move = move_2, .context = model};
    }
    return (basin_energy){.term = term, .terms = 2, .context = model};
}

/* ---- AKOrN: oscillators on spheres ---- */

/* Plain attention with biases; head h owns the channels h, h + H, h + 2 H, .. */
static basin_expr akorn_attention(const basin_zoo_akorn *m, basin_expr x) {
    basin_shape shape = basin_expr_shape(x);
    if (!divides(basin_expr_graph(x), shape.dim[1], m->heads)) return NULL;
    int64_t tokens = shape.dim[0], channels = shape.dim[1], width = channels / m->heads;
    basin_expr all = basin_zoo_linear(x, m->qkv_w, m->qkv_b), part[3];
    for (int i = 0; i < 3; i++)
        part[i] = basin_reshape(basin_slice(all, 1, i * channels, channels),
                                BASIN_SHAPE(tokens, width, m->heads));
    basin_expr score = basin_einsum("ich,jch->hij", part[0], part[1]);
    basin_expr a = basin_softmax(basin_scale(score, 1 / sqrt((double)width)), -1);
    basin_expr mixed = basin_einsum("hij,jch->ich", a, part[2]);
    return basin_zoo_linear(basin_reshape(mixed, shape), m->o_w, m->o_b);
}

static basin_expr akorn_energy(const void *context, basin_expr x) {
    const basin_zoo_akorn *m = context;
    if (!m->a)
        return basin_neg(basin_sum_all(basin_mul(x, basin_add(akorn_attention(m, x), m->c))));
    basin_expr flat = basin_reshape(x, BASIN_SHAPE(-1));
    basin_expr square = basin_sum_all(basin_mul(flat, basin_matmul(flat, m->a)));
    return basin_neg(basin_add(basin_scale(square, 0.5), basin_sum_all(basin_mul(m->c, x))));
}

/* Channels (2 i, 2 i + 1) -> |omega_i| (x[2 i + 1], -x[2 i]) */
static basin_expr rotate(basin_expr x, basin_expr omega) {
    basin_shape shape = basin_expr_shape(x);
    basin_expr pairs = basin_reshape(x, BASIN_SHAPE(shape.dim[0], -1, 2));
    basin_expr speed = basin_sqrt(basin_sum(basin_square(omega), -1, 1));
    basin_expr sign = basin_scale(basin_offset(basin_arange(basin_expr_graph(x), 2), -0.5), -2);
    basin_expr transposed = basin_mul(basin_flip(pairs, -1), sign);
    return basin_reshape(basin_mul(basin_expand_dims(speed, 1, 1), transposed), shape);
}

static basin_expr akorn_move(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    const basin_zoo_akorn *m = context;
    (void)t;
    if (!m->a) force = basin_add(akorn_attention(m, x), m->c);
    basin_expr tangent = basin_to_tangent(force, x, m->sphere);
    return basin_mul(m->gamma, basin_add(rotate(x, m->omega), tangent));
}

static basin_expr akorn_land(const void *context, basin_expr x, basin_expr t) {
    (void)t;
    return basin_to_sphere(x, ((const basin_zoo_akorn *)context)->sphere);
}

basin_energy basin_zoo_akorn_energy(const basin_zoo_akorn *model, basin_substep *turn) {
    static const basin_term term = {"oscillators", akorn_energy, NULL};
    if (turn) *turn = (basin_substep){.move = akorn_move, .project = akorn_land, .context = model};
    return (basin_energy){.term = &term, .terms = 1, .context = model};
}

/* ---- energy-based transformers: the loop around a small network ---- */

static basin_expr ebt_energy(const void *context, basin_expr p) {
    const basin_zoo_ebt *m = context;
    basin_expr seen = basin_zoo_linear(p, m->e, NULL);
    basin_expr both = basin_concat((basin_expr[]){m->context, seen}, 2, -1);
    basin_expr hidden = gelu(basin_zoo_linear(both, m->w1, m->b1));
    return basin_sum(basin_mul(hidden, m->w2), -1, 1);
}

static basin_expr ebt_move(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)x, (void)t;
    return basin_mul(((const basin_zoo_ebt *)context)->alpha, force);
}

basin_energy basin_zoo_ebt_energy(const basin_zoo_ebt *model, basin_substep *turn) {
    static const basin_term term = {"network", ebt_energy, NULL};
    if (turn) *turn = (basin_substep){.move = ebt_move, .context = model};
    return (basin_energy){.term = &term, .terms = 1, .context = model};
}

/* ---- CRATE: attention with q = k = v, then one proximal step ---- */

static basin_expr attend(const basin_zoo_crate *m, basin_expr x) {
    basin_shape shape = basin_expr_shape(x);
    basin_expr w = basin_zoo_linear(norm(x, m->ln1_w, m->ln1_b, m->epsilon), m->u, NULL);
    int64_t all = basin_expr_shape(w).dim[1];
    if (!divides(basin_expr_graph(x), all, m->heads)) return NULL;
    int64_t width = all / m->heads;
    w = basin_reshape(w, BASIN_SHAPE(shape.dim[0], m->heads, width));
    basin_expr score = basin_einsum("ihy,jhy->hij", w, w);
    basin_expr a = basin_softmax(basin_scale(score, 1 / sqrt((double)width)), -1);
    basin_expr mixed = basin_reshape(basin_einsum("hij,jhy->ihy", a, w), BASIN_SHAPE(-1, all));
    return basin_add(x, basin_zoo_linear(mixed, m->out_w, m->out_b));
}

typedef struct code {
    const basin_zoo_crate *model;
    basin_expr y;
} code;

static basin_expr code_fit(const void *context, basin_expr a) {
    const code *c = context;
    basin_expr gap = basin_sub(c->y, basin_zoo_linear(a, c->model->d, NULL));
    return basin_scale(basin_sum_all(basin_square(gap)), 0.5);
}

static basin_expr code_size(const void *context, basin_expr a) {
    return basin_scale(basin_sum_all(basin_abs(a)), ((const code *)context)->model->lambda);
}

static basin_expr code_land(const void *context, basin_expr a, basin_expr t) {
    const basin_zoo_crate *m = ((const code *)context)->model;
    (void)t;
    return basin_relu(basin_offset(a, -m->eta * m->lambda));
}

basin_expr basin_zoo_crate_block(const basin_zoo_crate *model, basin_expr x,
                                 basin_expr *objective) {
    code c = {model, norm(attend(model, x), model->ln2_w, model->ln2_b, model->epsilon)};
    basin_energy lasso = {BASIN_TERMS({"fit", code_fit, &c}, {"size", code_size, &c})};
    basin_substep turn = {.terms = 1, .project = code_land, .context = &c};
    basin_descent_spec spec = {.steps = 1, .alpha = model->eta, .turn = &turn, .turns = 1};
    basin_expr trace[4], end = basin_descend(&lasso, c.y, &spec, trace);
    if (objective)
        *objective = basin_stack(
            (basin_expr[]){basin_add(trace[0], trace[1]), basin_add(trace[2], trace[3])}, 2, 0);
    return end;
}
