/* A generator of random expressions; see world.h. Every choice is drawn before it is looked at, so
 * that the flags change what is built but not what is drawn. */
#include "support/world.h"
#include "engine/expr/graph.h"

#include <string.h>

static int below(world *w, int n) { return (int)basin_random_below(&w->random, (uint64_t)n); }

static basin_expr pick(world *w) { return w->pool[below(w, w->pools)]; }

/* One of the last few, so that graphs grow deep. */
static basin_expr pick_late(world *w) {
    int span = w->pools < 8 ? w->pools : 8;
    return w->pool[w->pools - 1 - below(w, span)];
}

static basin_expr leaf(world *w, basin_expr a, double low, double high) {
    w->leaf[w->leaves] = a;
    w->low[w->leaves] = low;
    w->high[w->leaves++] = high;
    return a;
}

static int64_t most(const world *w) { return w->large ? 20000 : 400; }

static void make_leaves(world *w) {
    basin_graph *g = w->graph;
    int64_t n = w->large ? 19 : 3, d = w->large ? 70 : 4;
    const basin_shape shape[] = {BASIN_SHAPE(n, d),    BASIN_SHAPE(d),    BASIN_SHAPE(2, n, d),
                                 BASIN_SHAPE(d, d),    BASIN_SCALAR,      BASIN_SHAPE(n, 1),
                                 BASIN_SHAPE(2, 1, d), BASIN_SHAPE(5, d), BASIN_SHAPE(2, 4, 5, 3),
                                 BASIN_SHAPE(d, 2, n), BASIN_SHAPE(1, n)};
    static const char *const name[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"};
    for (int i = 0; i < 11; i++)
        w->pool[w->pools++] = leaf(w, basin_input(g, name[i], shape[i]), -1, 1);
    w->pool[w->pools++] = leaf(w, basin_state(g, "state p", BASIN_SHAPE(n, d)), -1, 1);
    w->pool[w->pools++] = leaf(w, basin_state(g, "state q", BASIN_SHAPE(n, d)), -1, 1);
    w->pool[w->pools++] = leaf(w, basin_state(g, "state r", BASIN_SHAPE(d, d)), -1, 1);
    w->beta = leaf(w, basin_input(g, "beta", BASIN_SHAPE(2)), 0.2, 1);
    w->gamma = leaf(w, basin_input(g, "gamma", BASIN_SCALAR), 0.5, 1);
    w->kernel = leaf(w, basin_input(g, "kernel", BASIN_SHAPE(2, 3, 3, 2)), -1, 1);
    w->real_leaves = w->leaves;
    w->index = leaf(w, basin_index(g, "index", BASIN_SHAPE(5)), -1, 3);
    w->seed = leaf(w, basin_index(g, "seed", BASIN_SHAPE(2)), 0, 100);
}

static basin_expr smooth_unary(world *w, basin_expr a) {
    switch (below(w, 18)) {
    case 0: return basin_neg(a);
    case 1: return basin_exp(basin_tanh(a));
    case 2: return basin_log(basin_offset(basin_softplus(a), 0.1));
    case 3: return basin_log1p(basin_sigmoid(a));
    case 4: return basin_expm1(basin_tanh(a));
    case 5: return basin_tanh(a);
    case 6: return basin_sigmoid(a);
    case 7: return basin_softplus(a);
    case 8: return basin_lncosh(a);
    case 9: return basin_sin(a);
    case 10: return basin_cos(a);
    case 11: return basin_erf(a);
    case 12: return basin_power_scalar(basin_offset(basin_sigmoid(a), 0.5), 2.5);
    case 13: return basin_square(basin_tanh(a));
    case 14: return basin_reciprocal(basin_offset(basin_softplus(a), 0.5));
    case 15: return basin_scale(a, -0.75);
    case 16: return basin_offset(a, 0.25);
    default: return basin_sqrt(basin_offset(basin_sigmoid(a), 0.2));
    }
}

static basin_expr rough_unary(world *w, basin_expr a) {
    switch (below(w, 6)) {
    case 0: return basin_relu(a);
    case 1: return basin_abs(a);
    case 2: return basin_sign(a);
    case 3: return basin_heaviside(a);
    case 4: return basin_stop_gradient(a);
    default: return basin_power_scalar(basin_relu(a), 3);
    }
}

static bool broadcasts(const world *w, basin_expr a, basin_expr b) {
    basin_shape x = basin_expr_shape(a), y = basin_expr_shape(b);
    int64_t size = 1;
    for (int i = 1; i <= x.rank || i <= y.rank; i++) {
        int64_t m = i <= x.rank ? x.dim[x.rank - i] : 1, n = i <= y.rank ? y.dim[y.rank - i] : 1;
        if (m != n && m != 1 && n != 1) return false;
        size *= m == 1 ? n : m;
    }
    return size <= most(w);
}

static basin_expr binary(world *w, basin_expr a) {
    basin_expr b = pick(w), c = pick(w);
    for (int i = 0; i < 10 && !broadcasts(w, a, b); i++) b = pick(w);
    int which = below(w, w->rough ? 10 : 5);
    if (!broadcasts(w, a, b)) b = a;
    switch (which) {
    case 0:
    case 1: return basin_add(a, b);
    case 2: return basin_sub(b, a);
    case 3: return basin_mul(a, b);
    case 4: return basin_div(a, basin_offset(basin_softplus(b), 0.5));
    case 5: return basin_maximum(a, b);
    case 6: return basin_minimum(a, b);
    case 7: return basin_greater(a, b);
    case 8: return basin_equal(a, basin_maximum(a, b));
    default: {
        basin_expr where = basin_heaviside(b);
        return broadcasts(w, c, a) && broadcasts(w, c, where) ? basin_where(where, a, c)
                                                              : basin_where(where, a, b);
    }
    }
}

static basin_expr move(world *w, basin_expr a) {
    basin_shape s = basin_expr_shape(a);
    int which = below(w, 9), axis = s.rank ? below(w, s.rank) : 0, more = below(w, 4);
    int64_t n = s.rank ? s.dim[axis] : 0;
    int axes[BASIN_MAX_RANK] = {0};
    if (s.rank == 0) return basin_broadcast_to(a, BASIN_SHAPE(2, 3));
    switch (which) {
    case 0: return basin_reshape(a, BASIN_SHAPE(basin_shape_count(s)));
    case 1: return s.rank >= 2 ? basin_transpose(a) : basin_reshape(a, BASIN_SHAPE(1, n));
    case 2:
        for (int i = 0; i < s.rank; i++) axes[i] = (i + 1 + more) % s.rank;
        return basin_permute(a, axes);
    case 3: return basin_slice(a, axis, more % n, n - more % n > 1 ? n - more % n - 1 : 1);
    case 4: return n < 6 ? basin_pad(a, axis, more, 1) : a;
    case 5: return n < 4 ? basin_concat((basin_expr[]){a, basin_neg(a), a}, 3, axis) : a;
    case 6: return s.dim[0] >= 3 ? basin_take(a, 0, w->index) : a;
    case 7: return s.dim[0] == 5 ? basin_scatter(a, w->index, 3 + more) : a;
    default:
        return s.rank < 4 && basin_shape_count(s) <= most(w) / 10
                   ? basin_broadcast_to(a, s.rank == 3
                                               ? BASIN_SHAPE(2, s.dim[0], s.dim[1], s.dim[2])
                                           : s.rank == 2 ? BASIN_SHAPE(3, s.dim[0], s.dim[1])
                                                         : BASIN_SHAPE(3, s.dim[0]))
                   : a;
    }
}

static basin_expr reduce(world *w, basin_expr a) {
    int rank = basin_expr_shape(a).rank, which = below(w, 7);
    int axis = rank ? below(w, rank) : 0, count = rank ? 1 + below(w, rank - axis) : 0;
    if (rank == 0) return a;
    switch (which) {
    case 0: return basin_sum(a, axis, count);
    case 1: return basin_mean(a, axis, count);
    case 2: return w->rough ? basin_max(a, axis, count) : basin_mean(a, axis, count);
    case 3: return basin_logsumexp(a, -1);
    case 4: return basin_softmax(a, -1);
    default: {
        basin_shape s = basin_expr_shape(a);
        basin_expr delta = basin_full(w->graph, BASIN_SHAPE(s.dim[s.rank - 1]), 0.5);
        return basin_layernorm(a, w->gamma, delta, 0.05);
    }
    }
}

/* A product of `a` with something that fits, the other way round where need be. */
static basin_expr product(world *w, basin_expr a) {
    for (int i = 0; i < 20; i++) {
        basin_expr b = pick(w);
        bool ta = below(w, 2), tb = below(w, 2);
        basin_shape s = basin_expr_shape(a), t = basin_expr_shape(b);
        if (s.rank < 2 || t.rank < 2 || (t.rank > 2 && t.rank != s.rank)) continue;
        if (t.rank == 2 && s.rank > 2) ta = false;
        bool fits = s.dim[s.rank - 1 - ta] == t.dim[t.rank - 1 - !tb];
        for (int k = 0; t.rank > 2 && k < t.rank - 2; k++) fits = fits && s.dim[k] == t.dim[k];
        if (fits) return basin_matmul_t(a, ta, b, tb);
    }
    basin_shape s = basin_expr_shape(a);
    if (s.rank == 3) return basin_einsum("abc,dbc->dab", a, a);
    if (s.rank == 2) return basin_einsum("ab,cb->ca", a, a);
    return s.rank == 1 ? basin_einsum("a,b->ba", a, a) : basin_square(a);
}

static basin_expr attention(world *w, basin_expr a) {
    basin_shape s = basin_expr_shape(a);
    int64_t size = basin_shape_count(s);
    bool others = below(w, 2);
    if (size == 0 || size > most(w) / 4 || size % 4) return basin_tanh(a);
    basin_expr q = basin_reshape(a, BASIN_SHAPE(2, 1, 2, size / 4));
    if (size % 8 == 0) q = basin_reshape(a, BASIN_SHAPE(2, 2, 2, size / 8));
    basin_expr k = basin_sin(q);
    if (others && size % 8 == 0)
        return basin_attention_lse(q, k, w->beta, &BASIN_OTHER_PAIRS, NULL);
    return basin_attention_lse(q, k, w->beta, &BASIN_ALL_PAIRS, NULL);
}

static basin_expr windowed(world *w, basin_expr a) {
    basin_shape s = basin_expr_shape(a);
    int which = below(w, 4), stride = 1 + below(w, 2);
    if (s.rank != 4 || s.dim[1] < 3 || s.dim[2] < 3) return basin_tanh(a);
    if (which == 0) return basin_pool2d(a, BASIN_POOL_AVERAGE, 2, stride);
    if (which == 1 && w->rough) return basin_pool2d(a, BASIN_POOL_MAX, 2, stride);
    if (s.dim[3] != 3) return basin_sin(a);
    return basin_conv2d(a, w->kernel, stride, which == 2);
}

static basin_expr grow(world *w) {
    int which = below(w, 16);
    basin_expr a = below(w, 3) ? pick_late(w) : pick(w);
    if (which < 4) return smooth_unary(w, a);
    if (which < 8) return binary(w, a);
    if (which < 10) return move(w, a);
    if (which < 12) return reduce(w, a);
    if (which < 14) return product(w, a);
    if (which == 14) {
        int kind = below(w, 3);
        if (kind == 0) return attention(w, a);
        if (kind == 1) return windowed(w, a);
        return basin_mul(basin_normal(w->seed, basin_expr_shape(a)), a);
    }
    return w->rough ? rough_unary(w, a) : smooth_unary(w, a);
}

/* Gradients of a scalar made of late values, and gradients of a scalar made of those. */
static void differentiate(world *w) {
    basin_expr x[3], first[3], second[3], energy = basin_scalar(w->graph, 0), loss = energy;
    for (int i = 0; i < 3; i++) {
        x[i] = w->pool[below(w, 14)];
        energy = basin_add(energy, basin_mean_all(basin_tanh(pick_late(w))));
    }
    basin_vjp(first, energy, NULL, x, 3);
    for (int i = 0; i < 3; i++) {
        w->output[w->outputs++] = first[i];
        loss = basin_add(loss, basin_sum_all(basin_sin(first[i])));
    }
    w->output[w->outputs++] = energy;
    basin_vjp(second, loss, NULL, x, 3);
    for (int i = 0; i < 3; i++) w->output[w->outputs++] = second[i];
    w->pool[w->pools++] = first[0];
    w->pool[w->pools++] = second[1];
}

static void make_updates(world *w) {
    for (int i = 11; i < 14; i++) {
        basin_expr state = w->pool[i], value = NULL;
        for (int k = 0; k < 60; k++) {
            basin_expr a = pick(w);
            if (basin_shape_equal(basin_expr_shape(a), basin_expr_shape(state))) value = a;
        }
        if (value && below(w, 4)) w->update[w->updates++] = (basin_update){state, value};
    }
}

void world_build(world *w, uint64_t seed, bool rough, bool regions) {
    *w = (world){.random = basin_random_start(seed, 5, 0), .graph = basin_graph_new()};
    w->rough = rough;
    w->regions = regions;
    w->large = seed % 8 == 6 || seed % 8 == 1;
    make_leaves(w);
    int operations = 5 + below(w, 40);
    bool open = false;
    for (int i = 0; i < operations && w->graph; i++) {
        int edge = below(w, 8), kept = below(w, 4);
        if (edge == 0 && regions) {
            if (open)
                basin_recompute_end(w->graph);
            else
                basin_recompute_begin(w->graph);
            open = !open;
        }
        basin_expr a = grow(w);
        if (kept == 0 && regions) basin_keep(a);
        if (basin_shape_count(basin_expr_shape(a)) <= most(w)) w->pool[w->pools++] = a;
    }
    if (regions) basin_recompute_end(w->graph);
    differentiate(w);
    for (int i = 0; i < 3; i++) w->output[w->outputs++] = pick_late(w);
    make_updates(w);
}
