/* The synapses: biases, matrices, tensors, memories, hidden layers integrated out, some through a
 * Lagrangian; attention; convolutions. Errors stay in the graph. */
#include <math.h>
#include <string.h>

#include "base/shape.h"
#include "engine/energy/network.h"

#define SYNAPSE(name)                                                                              \
    static basin_expr name(basin_ham *ham, const basin_synapse *synapse, const basin_expr *g,      \
                           int count)

/* ---- what the synapses share ---- */

/* Whether all activations are present, from `min` to `max` of them. */
static bool has_layers(basin_ham *ham, const basin_synapse *s, const basin_expr *g, int count,
                       int min, int max) {
    for (int i = 0; i < count; i++)
        if (!g[i]) return false;
    if (count >= min && count <= max) return true;
    return basin_graph_fail(ham->graph, BASIN_BAD_VALUE,
                            "synapse '%s' joins %d layers, expected %d to %d of them", s->name,
                            count, min, max);
}

/* Whether the setting called `what` is above 0. */
static bool is_positive(basin_ham *ham, const basin_synapse *s, const char *what, int64_t value) {
    if (value > 0) return true;
    return basin_graph_fail(ham->graph, BASIN_BAD_VALUE,
                            "synapse '%s' has %s %lld, expected more than 0", s->name, what,
                            (long long)value);
}

/* The parameter "NAME.part", at first N(0, deviation^2). */
static basin_expr weight(basin_ham *ham, const basin_synapse *s, const char *part,
                         basin_shape shape) {
    double deviation = s->deviation != 0 ? s->deviation : 0.02;
    return basin_ham_parameter(ham, s->name, part, shape,
                               (basin_init){BASIN_INIT_NORMAL, deviation});
}

/* The parameter "NAME.part", at first `value`. */
static basin_expr offset(basin_ham *ham, const basin_synapse *s, const char *part,
                         basin_shape shape, double value) {
    return basin_ham_parameter(ham, s->name, part, shape, (basin_init){BASIN_INIT_CONSTANT, value});
}

/* The hidden Lagrangian, by default the one named. */
static basin_lagrangian hidden_of(const basin_synapse *s, const char *otherwise) {
    basin_lagrangian hidden = s->hidden;
    if (!hidden.name && !hidden.custom) hidden.name = otherwise;
    return hidden;
}

/* [B, .., D] as tokens [B, N, D]; [B, D] is one token. */
static basin_expr tokens_of(basin_expr g) {
    basin_shape shape = basin_expr_shape(g);
    int64_t batch = shape.dim[0], width = shape.rank > 1 ? shape.dim[shape.rank - 1] : 1, rows = 1;
    for (int i = 1; i < shape.rank - 1; i++) rows *= shape.dim[i];
    return basin_reshape(g, BASIN_SHAPE(batch, rows, width));
}

/* [B, ..] as vectors [V, n], according to `rows`; V is B, or B times the number of rows. */
static basin_expr vectors(basin_expr g, basin_rows rows) {
    basin_shape shape = basin_expr_shape(g);
    if (rows == BASIN_ROWS_SUMMED) {
        g = basin_sum(tokens_of(g), 1, 1);
        shape = basin_expr_shape(g);
    }
    int64_t all = basin_shape_count(shape);
    int64_t width = rows == BASIN_ROWS_FLAT ? all / shape.dim[0]
                    : shape.rank > 1        ? shape.dim[shape.rank - 1]
                                            : 1;
    return basin_reshape(g, BASIN_SHAPE(all / width, width));
}

static int64_t width_of(basin_expr vector) { return basin_expr_shape(vector).dim[1]; }

/* The vectors of all layers; false if they do not go in pairs. */
static bool all_vectors(basin_expr *v, basin_ham *ham, const basin_synapse *s, const basin_expr *g,
                        int count) {
    for (int i = 0; i < count; i++) {
        v[i] = vectors(g[i], s->rows);
        if (!v[i]) return false;
        if (basin_expr_shape(v[i]).dim[0] == basin_expr_shape(v[0]).dim[0]) continue;
        return basin_graph_fail(
            ham->graph, BASIN_BAD_SHAPE,
            "synapse '%s' joins activations of shapes %s and %s, which differ in the "
            "number of rows",
            s->name, basin_shape_text(basin_expr_shape(g[0])),
            basin_shape_text(basin_expr_shape(g[i])));
    }
    return true;
}

/* One number per vector, [V], as one number per sample, [B], negated. */
static basin_expr energy_of(basin_expr alignment, basin_expr g) {
    int64_t batch = basin_expr_shape(g).dim[0];
    if (!alignment) return NULL;
    int64_t rows = basin_shape_count(basin_expr_shape(alignment)) / batch;
    return basin_neg(basin_sum(basin_reshape(alignment, BASIN_SHAPE(batch, rows)), 1, 1));
}

static basin_expr dot(basin_expr a, basin_expr b) { return basin_sum(basin_mul(a, b), -1, 1); }

/* [V, out]: sum of w[out, n1, n2, ..] v1[n1] v2[n2] .., the last layer first. The first product is
 * with the weights, which all vectors share; what follows is one small product per vector. */
static basin_expr contract(basin_expr w, const basin_expr *v, int count) {
    int64_t rows = basin_expr_shape(v[0]).dim[0];
    int64_t left = basin_shape_count(basin_expr_shape(w)) / width_of(v[count - 1]);
    basin_expr t = basin_matmul_t(
        v[count - 1], false, basin_reshape(w, BASIN_SHAPE(left, width_of(v[count - 1]))), true);
    for (int i = count - 2; i >= 0; i--) {
        int64_t n = width_of(v[i]);
        left /= n;
        t = basin_reshape(t, BASIN_SHAPE(rows, left, n));
        t = left == 1 ? dot(basin_reshape(t, BASIN_SHAPE(rows, n)), v[i])
                      : basin_matmul(t, basin_reshape(v[i], BASIN_SHAPE(rows, n, 1)));
    }
    return t ? basin_reshape(t, BASIN_SHAPE(rows, left)) : NULL;
}

/* ---- biases, matrices, tensors ---- */

SYNAPSE(bias) {
    if (!has_layers(ham, synapse, g, count, 1, 1)) return NULL;
    basin_expr v = vectors(g[0], synapse->rows);
    if (!v) return NULL;
    basin_shape shape = BASIN_SHAPE(width_of(v));
    return energy_of(dot(v, offset(ham, synapse, "b", shape, 0)), g[0]);
}

SYNAPSE(linear) {
    basin_expr v[BASIN_MAX_ENDS];
    basin_shape shape = {.rank = count};
    if (!has_layers(ham, synapse, g, count, 1, BASIN_MAX_ENDS)) return NULL;
    if (!all_vectors(v, ham, synapse, g, count)) return NULL;
    for (int i = 0; i < count; i++) shape.dim[i] = width_of(v[i]);
    basin_expr w = weight(ham, synapse, "w", shape);
    if (!w) return NULL;
    basin_expr energy = energy_of(contract(w, v, count), g[0]);
    if (!synapse->bias) return energy;
    return basin_add(energy, bias(ham, synapse, &g[count - 1], 1));
}

/* ---- hidden neurons integrated out ---- */

/* w [n, m] with columns (axis 0 summed) or rows (axis 1) of length 1. */
static basin_expr unit_length(basin_expr w, int axis) {
    const double tiny = 1e-12; /* a row of zeros stays one */
    basin_shape shape = basin_expr_shape(w);
    shape.dim[axis] = 1;
    basin_expr square = basin_offset(basin_sum(basin_square(w), axis, 1), tiny);
    return basin_div(w, basin_reshape(basin_sqrt(square), shape));
}

/* -L(h) of hidden states h [V, ..], a number per sample. */
static basin_expr hidden_energy(const basin_lagrangian *hidden, basin_expr h, basin_expr g) {
    return h ? energy_of(basin_lagrangian_value(hidden, h, 1), g) : NULL;
}

SYNAPSE(memory) {
    basin_lagrangian hidden = hidden_of(synapse, "softmax");
    if (!has_layers(ham, synapse, g, count, 1, 1) ||
        !is_positive(ham, synapse, "units", synapse->units))
        return NULL;
    basin_expr v = vectors(g[0], synapse->rows);
    if (!v) return NULL;
    basin_expr xi = weight(ham, synapse, "xi", BASIN_SHAPE(synapse->units, width_of(v)));
    if (synapse->normalize) xi = unit_length(xi, 1);
    basin_expr z = basin_matmul_t(v, false, xi, true);
    if (synapse->distance) { /* -|xi - g|^2 / 2 */
        z = basin_sub(z, basin_scale(basin_sum(basin_square(xi), 1, 1), 0.5));
        basin_expr own = basin_scale(basin_sum(basin_square(v), 1, 1), 0.5);
        z = basin_sub(z, basin_reshape(own, BASIN_SHAPE(basin_expr_shape(v).dim[0], 1)));
    }
    return hidden_energy(&hidden, z, g[0]);
}

SYNAPSE(hidden) {
    basin_lagrangian hidden = hidden_of(synapse, "relu");
    basin_expr v[BASIN_MAX_ENDS], h = NULL;
    if (!has_layers(ham, synapse, g, count, 1, BASIN_MAX_ENDS) ||
        !is_positive(ham, synapse, "units", synapse->units) ||
        !all_vectors(v, ham, synapse, g, count))
        return NULL;
    for (int i = 0; i < count; i++) {
        char part[] = "w1";
        part[1] = (char)('1' + i);
        basin_expr w = weight(ham, synapse, part, BASIN_SHAPE(width_of(v[i]), synapse->units));
        if (synapse->normalize) w = unit_length(w, 0);
        basin_expr product = basin_matmul(v[i], w);
        h = h ? basin_add(h, product) : product;
    }
    if (synapse->bias) h = basin_add(h, offset(ham, synapse, "b", BASIN_SHAPE(synapse->units), 0));
    return hidden_energy(&hidden, h, g[0]);
}

SYNAPSE(tensor) {
    basin_lagrangian hidden = hidden_of(synapse, "relu");
    basin_expr v[BASIN_MAX_ENDS];
    int64_t heads = synapse->heads ? synapse->heads : 1;
    basin_shape shape = {.rank = count + 2, .dim = {heads, synapse->units}};
    if (!has_layers(ham, synapse, g, count, 1, BASIN_MAX_RANK - 2) ||
        !is_positive(ham, synapse, "units", synapse->units) ||
        !is_positive(ham, synapse, "heads", heads) || !all_vectors(v, ham, synapse, g, count))
        return NULL;
    for (int i = 0; i < count; i++) shape.dim[i + 2] = width_of(v[i]);
    basin_expr w = weight(ham, synapse, "w", shape);
    basin_expr h = w ? contract(w, v, count) : NULL;
    if (!h) return NULL;
    int64_t rows = basin_expr_shape(h).dim[0];
    h = basin_reshape(h, BASIN_SHAPE(rows, heads, synapse->units));
    return hidden_energy(&hidden, h, g[0]);
}

/* sum over rows of a[i] (x) b[i], [B, D1, D2]; a single row meets all rows of the other layer. */
static basin_expr paired_rows(basin_expr a, basin_expr b) {
    int64_t na = basin_expr_shape(a).dim[1], nb = basin_expr_shape(b).dim[1];
    if (na == 1 && nb > 1) b = basin_sum(b, 1, 1);
    if (nb == 1 && na > 1) a = basin_sum(a, 1, 1);
    if (na != nb) a = tokens_of(a), b = tokens_of(b);
    return basin_einsum("bni,bnj->bij", a, b);
}

SYNAPSE(mixer) {
    basin_lagrangian hidden = hidden_of(synapse, "softmax");
    int64_t heads = synapse->heads ? synapse->heads : 1, units = synapse->units;
    if (!has_layers(ham, synapse, g, count, 2, 2) || !is_positive(ham, synapse, "units", units) ||
        !is_positive(ham, synapse, "heads", heads))
        return NULL;
    basin_expr a = tokens_of(g[0]), b = tokens_of(g[1]);
    int64_t batch = basin_expr_shape(a).dim[0];
    int64_t m = basin_expr_shape(a).dim[2], n = basin_expr_shape(b).dim[2];
    basin_expr w = weight(ham, synapse, "w", BASIN_SHAPE(heads, units, m, n));
    basin_expr pairs = basin_reshape(paired_rows(a, b), BASIN_SHAPE(batch, m * n));
    basin_expr h =
        basin_matmul_t(pairs, false, basin_reshape(w, BASIN_SHAPE(heads * units, m * n)), true);
    return hidden_energy(&hidden, basin_reshape(h, BASIN_SHAPE(batch, heads, units)), g[0]);
}

/* ---- attention: E = -sum over heads h and queries C of L(Q_C K_B over keys B), whose L is
 * softmax's Lagrangian, 1/beta log-sum-exp, unless another is given ---- */

/* One beta per head, [heads], above 1e-6 where it is learnt. */
static basin_expr head_beta(basin_ham *ham, const basin_synapse *s) {
    if (!s->hidden.beta)
        return basin_full(ham->graph, BASIN_SHAPE(s->heads), 1 / sqrt((double)s->head_dim));
    basin_expr beta = basin_maximum(s->hidden.beta, basin_scalar(ham->graph, 1e-6));
    return basin_broadcast_to(beta, BASIN_SHAPE(s->heads));
}

/* Queries or keys, [B, N, heads, width] */
static basin_expr project(basin_ham *ham, const basin_synapse *s, basin_expr g, const char *part) {
    basin_shape shape = BASIN_SHAPE(s->heads, s->head_dim, basin_expr_shape(g).dim[2]);
    basin_expr p = basin_einsum("bnd,hyd->bnhy", g, weight(ham, s, part, shape));
    if (!s->normalize) return p;
    return basin_layernorm(p, offset(ham, s, "norm_gamma", BASIN_SCALAR, 1),
                           offset(ham, s, "norm_delta", BASIN_SHAPE(s->head_dim), 0), 1e-5);
}

/* Any Lagrangian over the scores of all pairs, [B, heads, queries, keys]. */
static basin_expr general(basin_ham *ham, const basin_synapse *s, basin_expr q, basin_expr k) {
    if (s->pattern.row || s->pattern.exclude_self || s->pattern.causal)
        return basin_graph_fail(ham->graph, BASIN_UNSUPPORTED,
                                "synapse '%s': attention with the Lagrangian '%s' among chosen "
                                "pairs; only softmax can leave pairs out",
                                s->name, s->hidden.name ? s->hidden.name : "a custom Lagrangian");
    basin_expr score = basin_einsum("bqhy,bkhy->bhqk", q, k);
    return score ? basin_neg(basin_lagrangian_value(&s->hidden, score, 1)) : NULL;
}

SYNAPSE(attention) {
    if (!has_layers(ham, synapse, g, count, 1, 2) ||
        !is_positive(ham, synapse, "heads", synapse->heads) ||
        !is_positive(ham, synapse, "width", synapse->head_dim))
        return NULL;
    const basin_lagrangian *own = &synapse->hidden;
    bool softmax = !own->custom && (!own->name || !strcmp(own->name, "softmax"));
    basin_expr tokens = tokens_of(g[0]);
    basin_expr q = project(ham, synapse, tokens, "wq");
    if (count == 2) tokens = tokens_of(g[1]);
    basin_expr k = project(ham, synapse, tokens, "wk");
    if (!softmax) return general(ham, synapse, q, k);
    basin_expr beta = head_beta(ham, synapse);
    basin_expr lse = basin_attention_lse(q, k, beta, &synapse->pattern, NULL);
    return basin_neg(basin_sum(basin_div(lse, beta), 1, 2));
}

/* ---- convolution: E = -<g2, pool(conv(g1, w))>. Its signal into g1 is the transposed convolution
 * (through the pool's reverse) of g2, which differentiation gives. ---- */

static basin_expr pooled(basin_ham *ham, const basin_synapse *s, basin_expr y) {
    if (s->pool == BASIN_POOL_NONE) return y;
    if (!is_positive(ham, s, "pool_window", s->pool_window)) return NULL;
    int stride = s->pool_stride ? s->pool_stride : s->pool_window;
    return basin_pool2d(y, s->pool, s->pool_window, stride);
}

SYNAPSE(conv2d) {
    if (!has_layers(ham, synapse, g, count, 2, 2) ||
        !is_positive(ham, synapse, "kernel", synapse->kernel))
        return NULL;
    basin_shape in = basin_expr_shape(g[0]), out = basin_expr_shape(g[1]);
    if (in.rank != 4 || out.rank != 4)
        return basin_graph_fail(ham->graph, BASIN_BAD_SHAPE,
                                "synapse '%s' joins activations of shapes %s and %s, expected "
                                "[batch, height, width, channels] twice",
                                synapse->name, basin_shape_text(in), basin_shape_text(out));
    basin_shape kernel = BASIN_SHAPE(synapse->kernel, synapse->kernel, in.dim[3], out.dim[3]);
    basin_expr w = weight(ham, synapse, "w", kernel);
    basin_expr y = basin_conv2d(g[0], w, synapse->stride ? synapse->stride : 1, !synapse->valid);
    y = pooled(ham, synapse, y);
    if (synapse->bias) y = basin_add(y, offset(ham, synapse, "b", BASIN_SHAPE(out.dim[3]), 0));
    if (y && !basin_shape_equal(basin_expr_shape(y), out))
        return basin_graph_fail(ham->graph, BASIN_BAD_SHAPE,
                                "synapse '%s' makes shape %s of its first layer, its second has %s",
                                synapse->name, basin_shape_text(basin_expr_shape(y)),
                                basin_shape_text(out));
    return basin_neg(basin_sum(basin_mul(y, g[1]), 1, 3));
}

basin_expr basin_synapse_energy(basin_ham *ham, const basin_synapse *synapse, const basin_expr *g,
                                int count) {
    switch (synapse->kind) {
    case BASIN_SYNAPSE_CUSTOM: break;
    case BASIN_SYNAPSE_BIAS: return bias(ham, synapse, g, count);
    case BASIN_SYNAPSE_LINEAR: return linear(ham, synapse, g, count);
    case BASIN_SYNAPSE_MEMORY: return memory(ham, synapse, g, count);
    case BASIN_SYNAPSE_HIDDEN: return hidden(ham, synapse, g, count);
    case BASIN_SYNAPSE_TENSOR: return tensor(ham, synapse, g, count);
    case BASIN_SYNAPSE_MIXER: return mixer(ham, synapse, g, count);
    case BASIN_SYNAPSE_CONV2D: return conv2d(ham, synapse, g, count);
    case BASIN_SYNAPSE_ATTENTION: return attention(ham, synapse, g, count);
    }
    return synapse->energy ? synapse->energy(ham, synapse, g, count) : NULL;
}
