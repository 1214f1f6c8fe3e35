/* The paper's block: forces and gradients through a descent against finite differences, symmetries
 * under permutations and batching, dense against listed pairs, and the edges of its domain. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basin/energy.h"
#include "support/lab.h"

enum { N = 4, D = 5, H = 2, Y = 3, M = 6, P = 2 };

/* One way to use the block. */
typedef struct variant {
    const char *name;
    basin_hopfield hopfield;
    double power;
    bool no_attention, no_hopfield, self, list, scale, mix, learn_beta, couplings, neighbours;
    int64_t batch; /* 0: tokens of rank 2 */
} variant;

static const variant variants[] = {
    {.name = "relu"},
    {.name = "relu, self", .self = true},
    {.name = "relu, batch", .batch = 2},
    {.name = "power 3", .hopfield = BASIN_HOPFIELD_POWER, .power = 3, .learn_beta = true},
    {.name = "power 2.5", .hopfield = BASIN_HOPFIELD_POWER, .power = 2.5, .batch = 2},
    {.name = "softmax", .hopfield = BASIN_HOPFIELD_SOFTMAX, .self = true, .learn_beta = true},
    {.name = "softmax, batch", .hopfield = BASIN_HOPFIELD_SOFTMAX, .batch = 2},
    {.name = "no hopfield", .no_hopfield = true, .learn_beta = true},
    {.name = "no attention", .no_attention = true, .batch = 2},
    {.name = "dense, scale", .scale = true, .learn_beta = true},
    {.name = "dense, mix", .mix = true, .learn_beta = true, .self = true},
    {.name = "dense, scale and mix", .scale = true, .mix = true, .learn_beta = true, .batch = 2},
    {.name = "list", .list = true, .learn_beta = true},
    {.name = "list, self", .list = true, .self = true},
    {.name = "list, scale", .list = true, .scale = true, .learn_beta = true},
    {.name = "list, mix", .list = true, .mix = true, .learn_beta = true},
    {.name = "list, scale and mix", .list = true, .scale = true, .mix = true, .learn_beta = true},
    {.name = "list, softmax", .list = true, .hopfield = BASIN_HOPFIELD_SOFTMAX},
    {.name = "list, couplings", .list = true, .couplings = true, .no_attention = true},
    {.name = "list, all", .list = true, .couplings = true, .mix = true, .learn_beta = true},
    {.name = "list, memories of neighbours", .list = true, .neighbours = true},
    {.name = "list, memories of neighbours, couplings",
     .list = true,
     .neighbours = true,
     .couplings = true,
     .hopfield = BASIN_HOPFIELD_SOFTMAX},
    {.name = "couplings alone",
     .list = true,
     .couplings = true,
     .no_attention = true,
     .no_hopfield = true},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* Token 3 of the list has no neighbour. */
static const int32_t some_edges[] = {0, 1, 1, 2, 2, 0, 1, 0};
static const int32_t some_queries[] = {0, 1, 1, 2}, some_keys[] = {1, 0, 2, 0}; /* in order */
enum { SOME_EDGES = 4 };

typedef struct scene {
    lab lab;
    basin_block block;
    basin_pattern pattern;
    basin_block_graph_inputs inputs;
    basin_block_bound bound;
    basin_energy energy;
    basin_expr x; /* a state "x" */
} scene;

/* A block with a state "x" of tokens; every number in it depends on names alone. */
static void scene_open(scene *s, const variant *v, const char *backend) {
    lab *l = &s->lab;
    lab_open(l, backend, 1);
    basin_block_graph graph = {.couplings = v->couplings ? H : 0,
                               .neighbour_heads = v->neighbours ? H : 0,
                               .pair_features = P};
    basin_block_config config = {.dim = D,
                                 .heads = H,
                                 .head_dim = Y,
                                 .memories = M,
                                 .no_attention = v->no_attention,
                                 .no_hopfield = v->no_hopfield,
                                 .hopfield = v->hopfield,
                                 .power = v->power,
                                 .learn_beta = v->learn_beta,
                                 .mix = v->mix,
                                 .graph = &graph};
    if (basin_block_declare(&s->block, &l->params, "", &config))
        fail_msg("%s", basin_graph_error(l->graph)->text);
    s->x = lab_state(l, "x", v->batch ? BASIN_SHAPE(v->batch, N, D) : BASIN_SHAPE(N, D));
    s->pattern = (basin_pattern){.exclude_self = !v->self};
    if (v->list)
        s->pattern =
            lab_pairs(l, "pairs", N, some_edges, SOME_EDGES, v->self ? BASIN_PAIRS_ADD_SELF : 0, 0);
    s->inputs = (basin_block_graph_inputs){0};
    s->bound = (basin_block_bound){.block = &s->block, .pattern = &s->pattern, .graph = &s->inputs};
    if (v->scale) {
        int64_t pairs =
            v->list ? basin_expr_shape(s->pattern.key).dim[0] : (v->batch ? v->batch : 1) * N * N;
        s->bound.scale = lab_state(l, "scale", BASIN_SHAPE(pairs, H));
    }
    if (v->couplings || v->neighbours) {
        s->inputs.features = lab_state(l, "features", BASIN_SHAPE(SOME_EDGES, P));
        s->inputs.strength = lab_state(l, "strength", BASIN_SHAPE(SOME_EDGES));
    }
    s->energy = basin_block_energy(&s->bound);
    lab_fill(l, 3, 0.8);
}

static void scene_close(scene *s) { lab_close(&s->lab); }

static const basin_descent_spec two_steps = {.steps = 2, .alpha = 0.2};

/* A loss that sees every token after two steps. */
static basin_expr loss_of(scene *s) {
    basin_expr end = basin_descend(&s->energy, s->x, &two_steps, NULL);
    return basin_sum_all(basin_square(basin_offset(basin_sin(end), 0.3)));
}

/* The energy as a function of activations, here the state x itself, and of every parameter. */
TEST(energy_gradients) {
    for (int i = 0; i < VARIANTS; i++) {
        scene s;
        scene_open(&s, &variants[i], "ref");
        lab_check_gradients(&s.lab, basin_energy_total(&s.energy, s.x), 1e-7, variants[i].name);
        basin_tensor force = lab_value(&s.lab, basin_energy_force(&s.energy, s.x));
        basin_expr slope = basin_grad(basin_energy_total(&s.energy, s.x), s.x);
        basin_tensor minus = lab_value(&s.lab, basin_neg(slope));
        lab_assert_near(&force, &minus, 0, "force");
        basin_tensor_free(&force);
        basin_tensor_free(&minus);
        scene_close(&s);
    }
}

/* Second order: the gradient of a loss through two steps. */
TEST(descent_gradients) {
    for (int i = 0; i < VARIANTS; i++) {
        scene s;
        scene_open(&s, &variants[i], "ref");
        lab_check_gradients(&s.lab, loss_of(&s), 1e-6, variants[i].name);
        scene_close(&s);
    }
}

/* ---- energies written as the paper writes them, in plain loops ---- */

/* sum over d of w[row, d] g[d] */
static double along(const double *w, const double *g) {
    double sum = 0;
    for (int d = 0; d < D; d++) sum += w[d] * g[d];
    return sum;
}

/* The states of a scene that the loops read; those it lacks are NULL. */
typedef struct numbers {
    basin_tensor g, wk, wq, xi, beta, mix, scale;
    basin_tensor cq, ck, ce, features, strength, nv, ne;
} numbers;

static basin_tensor state_of(scene *s, const char *name) {
    basin_tensor raw, value;
    assert_int_equal(basin_store_get(&raw, s->lab.store, name, NULL), BASIN_OK);
    assert_int_equal(basin_tensor_new(&value, BASIN_F64, raw.shape, NULL), BASIN_OK);
    assert_int_equal(basin_tensor_convert(&value, &raw, NULL), BASIN_OK);
    basin_tensor_free(&raw);
    return value;
}

static double beta_of(const numbers *n, int h) {
    return n->beta.data ? ((double *)n->beta.data)[h] : 1 / sqrt(Y);
}

/* beta Q . K of head h. */
static double score(const numbers *n, const double *gq, const double *gk, int h) {
    double sum = 0;
    for (int y = 0; y < Y; y++)
        sum += along((double *)n->wq.data + (h * Y + y) * D, gq) *
               along((double *)n->wk.data + (h * Y + y) * D, gk);
    return beta_of(n, h) * sum;
}

static double pair_score(const numbers *n, const double *g, int q, int k, int64_t pair, int h) {
    const double *mix = n->mix.data, *scale = n->scale.data;
    double z = mix ? 0 : score(n, g + q * D, g + k * D, h);
    for (int f = 0; mix && f < H; f++) z += score(n, g + q * D, g + k * D, f) * mix[f * H + h];
    return scale ? z * scale[pair * H + h] : z;
}

static double attention_loop(const numbers *n, const double *g, int64_t sample, const variant *v) {
    static const int listed[N][N] = {{0, 1, 0, 0}, {1, 0, 1, 0}, {1, 0, 0, 0}, {0, 0, 0, 0}};
    double energy = 0;
    int64_t pair = v->list ? 0 : sample * N * N;
    for (int q = 0; q < N; q++) {
        double sum[H] = {0};
        int keys = 0;
        for (int k = 0; k < N; k++) {
            bool seen = v->list ? listed[q][k] || (v->self && q == k) : v->self || q != k;
            for (int h = 0; seen && h < H; h++) sum[h] += exp(pair_score(n, g, q, k, pair, h));
            keys += seen;
            pair += seen || !v->list;
        }
        for (int h = 0; keys && h < H; h++) energy -= log(sum[h]) / beta_of(n, h);
    }
    return energy;
}

/* How much a pair counts in head h, by weights [P, H] of its features. */
static double strength_of(const numbers *n, const double *weight, int pair, int h) {
    double c = 0;
    for (int f = 0; f < P; f++) c += weight[f * H + h] * ((double *)n->features.data)[pair * P + f];
    return c * ((double *)n->strength.data)[pair];
}

/* What memory m has with the neighbours of token i. */
static double around(const numbers *n, const double *g, int i, int m) {
    const double *own = (double *)n->xi.data + m * (D + H * Y) + D;
    double sum = 0;
    for (int p = 0; p < SOME_EDGES; p++)
        for (int y = 0; some_queries[p] == i && y < H * Y; y++)
            sum += own[y] * strength_of(n, n->ne.data, p, y / Y) *
                   along((double *)n->nv.data + y * D, g + some_keys[p] * D);
    return sum;
}

static double hopfield_loop(const numbers *n, const double *g, const variant *v) {
    double energy = 0;
    int width = v->neighbours ? D + H * Y : D;
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int m = 0; m < M; m++) {
            double h = along((double *)n->xi.data + m * width, g + i * D);
            if (v->neighbours) h += around(n, g, i, m);
            double r = h > 0 ? h : 0;
            if (v->hopfield == BASIN_HOPFIELD_RELU) energy -= r * r / 2;
            if (v->hopfield == BASIN_HOPFIELD_POWER) energy -= pow(r, v->power) / v->power;
            sum += exp(h);
        }
        if (v->hopfield == BASIN_HOPFIELD_SOFTMAX) energy -= log(sum);
    }
    return energy;
}

static double couplings_loop(const numbers *n, const double *g) {
    const double *cq = n->cq.data, *ck = n->ck.data;
    double energy = 0;
    for (int p = 0; p < SOME_EDGES; p++)
        for (int h = 0; h < H; h++) {
            double z = 0;
            for (int y = h * Y; y < (h + 1) * Y; y++)
                z += along(cq + y * D, g + some_queries[p] * D) *
                     along(ck + y * D, g + some_keys[p] * D);
            energy -= strength_of(n, n->ce.data, p, h) * z;
        }
    return energy;
}

static numbers numbers_of(scene *s, const variant *v) {
    numbers n = {.g = state_of(s, "x")};
    if (!v->no_attention) n.wk = state_of(s, "wk"), n.wq = state_of(s, "wq");
    if (!v->no_hopfield) n.xi = state_of(s, "xi");
    if (v->learn_beta && !v->no_attention) n.beta = state_of(s, "beta");
    if (v->mix) n.mix = state_of(s, "mix");
    if (v->scale) n.scale = state_of(s, "scale");
    if (v->couplings) n.cq = state_of(s, "cq"), n.ck = state_of(s, "ck"), n.ce = state_of(s, "ce");
    if (v->neighbours) n.nv = state_of(s, "nv"), n.ne = state_of(s, "ne");
    if (!v->couplings && !v->neighbours) return n;
    n.features = state_of(s, "features"), n.strength = state_of(s, "strength");
    return n;
}

TEST(energy_values) {
    for (int i = 0; i < VARIANTS; i++) {
        const variant *v = &variants[i];
        scene s;
        scene_open(&s, v, "ref");
        numbers n = numbers_of(&s, v);
        basin_tensor found = lab_value(&s.lab, basin_energy_total(&s.energy, s.x));
        assert_int_equal(found.shape.rank, v->batch ? 1 : 0);
        for (int64_t b = 0; b < basin_shape_count(found.shape); b++) {
            const double *g = (double *)n.g.data + b * N * D;
            double wanted = (v->no_attention ? 0 : attention_loop(&n, g, b, v)) +
                            (v->no_hopfield ? 0 : hopfield_loop(&n, g, v)) +
                            (v->couplings ? couplings_loop(&n, g) : 0);
            double value = basin_tensor_at(&found, b);
            if (!(fabs(value - wanted) <= 1e-12 * fabs(wanted)))
                fail_msg("%s: the energy is %.15g, expected %.15g", v->name, value, wanted);
        }
        basin_tensor *own[] = {&n.g,     &n.wk, &n.wq, &n.xi, &n.beta,     &n.mix,      &n.nv,
                               &n.scale, &n.cq, &n.ck, &n.ce, &n.features, &n.strength, &n.ne};
        for (int k = 0; k < 14; k++) basin_tensor_free(own[k]);
        basin_tensor_free(&found);
        scene_close(&s);
    }
}

/* What a comparison looks at: the end of a descent, its energies, and every gradient. */
enum { SEEN = 16 };
typedef struct sight {
    basin_tensor tensor[SEEN];
    char name[SEEN][40];
    int count;
} sight;

static sight look(scene *s) {
    sight seen = {0};
    basin_expr output[SEEN], states[SEEN];
    int params = (int)s->lab.params.count;
    for (int i = 0; i < params; i++) {
        states[i] = s->lab.params.param[i].state;
        snprintf(seen.name[2 + i], sizeof seen.name[0], "grad %s", basin_expr_name(states[i]));
    }
    output[0] = basin_descend(&s->energy, s->x, &two_steps, NULL);
    output[1] = basin_energy_total(&s->energy, basin_energy_activation(&s->energy, output[0]));
    snprintf(seen.name[0], sizeof seen.name[0], "tokens");
    snprintf(seen.name[1], sizeof seen.name[0], "energy");
    basin_vjp(output + 2, loss_of(s), NULL, states, params);
    seen.count = params + 2;
    basin_plan *plan = lab_plan(&s->lab, output, seen.count);
    lab_run(plan);
    for (int i = 0; i < seen.count; i++) seen.tensor[i] = lab_read(plan, output[i]);
    basin_plan_free(plan);
    return seen;
}

static void sight_free(sight *seen) {
    for (int i = 0; i < seen->count; i++) basin_tensor_free(&seen->tensor[i]);
}

static const basin_tensor *seen_tensor(const sight *seen, const char *name) {
    for (int i = 0; i < seen->count; i++)
        if (!strcmp(seen->name[i], name)) return &seen->tensor[i];
    fail_msg("no %s", name);
    return NULL;
}

static void assert_same(const sight *a, const sight *b, double tolerance, const char *what) {
    char text[120];
    for (int i = 0; i < b->count; i++) {
        snprintf(text, sizeof text, "%s: %s", what, b->name[i]);
        lab_assert_near(seen_tensor(a, b->name[i]), &b->tensor[i], tolerance, text);
    }
}

TEST(backends_agree) {
    for (int i = 0; i < VARIANTS; i++) {
        scene exact, fast;
        scene_open(&exact, &variants[i], "ref");
        scene_open(&fast, &variants[i], "cpu");
        sight a = look(&fast), b = look(&exact);
        assert_same(&a, &b, 3e-5, variants[i].name);
        sight_free(&a);
        sight_free(&b);
        scene_close(&exact);
        scene_close(&fast);
    }
}

static double close_for(const char *backend) { return strcmp(backend, "ref") ? 1e-5 : 1e-12; }

/* Rows of x [N, D] put into the places that `to` names. */
static void permute_rows(double *out, const double *in, const int *to) {
    for (int i = 0; i < N; i++) memcpy(out + to[i] * D, in + i * D, D * sizeof *out);
}

/* Permuting the tokens (and the edges with them) permutes tokens and gradients alike. */
static void check_permutation(const char *backend, bool list) {
    static const int to[N] = {2, 0, 3, 1};
    const variant v = {.name = "permuted", .list = list, .learn_beta = true, .self = true};
    BASIN_AT_EXIT(scene_close) scene s, t;
    int32_t edge[2 * SOME_EDGES];
    scene_open(&s, &v, backend);
    scene_open(&t, &v, backend);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor x = state_of(&s, "x");
    double moved[N * D];
    permute_rows(moved, x.data, to);
    lab_set(&t.lab, t.x, moved);
    if (list) {
        for (int i = 0; i < 2 * SOME_EDGES; i++) edge[i] = to[some_edges[i]];
        t.pattern = lab_pairs(&t.lab, "moved", N, edge, SOME_EDGES, BASIN_PAIRS_ADD_SELF, 0);
    }
    sight a = look(&s), b = look(&t);
    for (int i = 0; i < a.count; i++)
        if (!strcmp(a.name[i], "tokens") || !strcmp(a.name[i], "grad x")) {
            permute_rows(moved, a.tensor[i].data, to);
            memcpy(a.tensor[i].data, moved, sizeof moved);
        }
    assert_same(&b, &a, close_for(backend), list ? "permuted list" : "permuted");
    sight_free(&a);
    sight_free(&b);
}

TEST(permutations) {
    for (int list = 0; list < 2; list++) {
        check_permutation("ref", list);
        check_permutation("cpu", list);
    }
}

/* All pairs within each of `batch` entries, as edges over batch * N tokens. */
static int64_t list_all(int32_t *edge, int batch, bool self) {
    int64_t count = 0;
    for (int b = 0; b < batch; b++)
        for (int q = 0; q < N; q++)
            for (int k = 0; k < N; k++) {
                if (q == k && !self) continue;
                edge[2 * count] = b * N + q;
                edge[2 * count++ + 1] = b * N + k;
            }
    return count;
}

/* The multipliers of the pairs that `edge` lists, out of those of all pairs [batch, N, N, H]. */
static void copy_scale(double *listed, const double *all, const int32_t *edge, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        int32_t q = edge[2 * i], k = edge[2 * i + 1];
        memcpy(listed + i * H, all + (q * N + k % N) * H, H * sizeof *listed);
    }
}

static void check_listed(const char *backend, variant v) {
    BASIN_AT_EXIT(scene_close) scene s, t;
    int32_t edge[2 * 2 * N * N];
    double scale[2 * N * N * H];
    int batch = v.batch ? (int)v.batch : 1;
    scene_open(&s, &v, backend);
    scene_open(&t, &v, backend);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor x = state_of(&s, "x");
    int64_t count = list_all(edge, batch, v.self);
    t.pattern = lab_pairs(&t.lab, "listed", batch * N, edge, count, 0, count + 3);
    t.x = lab_state(&t.lab, "flat", BASIN_SHAPE(batch * N, D));
    lab_set(&t.lab, t.x, x.data);
    if (v.scale) {
        basin_tensor all = state_of(&s, "scale");
        memset(scale, 0, sizeof scale);
        copy_scale(scale, all.data, edge, count);
        t.bound.scale = lab_state(&t.lab, "listed scale", BASIN_SHAPE(count + 3, H));
        double padded[(2 * N * N + 3) * H] = {0};
        memcpy(padded, scale, (size_t)(count * H) * sizeof *padded);
        lab_set(&t.lab, t.bound.scale, padded);
        basin_tensor_free(&all);
    }
    sight a = look(&s), b = look(&t);
    double total = 0;
    for (int i = 0; i < batch; i++) total += basin_tensor_at(&a.tensor[1], i);
    assert_true(fabs(total - basin_tensor_at(&b.tensor[1], 0)) <= 1e-5 * fabs(total));
    lab_assert_near(&b.tensor[0], &a.tensor[0], close_for(backend), v.name);
    for (int i = 2; i < a.count; i++)
        if (strcmp(a.name[i], "grad x") && strcmp(a.name[i], "grad scale"))
            lab_assert_near(&b.tensor[i], &a.tensor[i], close_for(backend), a.name[i]);
    lab_assert_near(seen_tensor(&b, "grad flat"), seen_tensor(&a, "grad x"), close_for(backend),
                    "gradient of the tokens");
    sight_free(&a);
    sight_free(&b);
}

TEST(all_pairs_listed) {
    static const variant v[] = {
        {.name = "listed", .learn_beta = true},
        {.name = "listed, self", .self = true, .learn_beta = true},
        {.name = "listed, scale", .self = true, .learn_beta = true, .scale = true},
        {.name = "listed, mix", .learn_beta = true, .mix = true, .batch = 2},
        {.name = "listed, both", .learn_beta = true, .mix = true, .scale = true, .batch = 2},
    };
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        check_listed("ref", v[i]);
        check_listed("cpu", v[i]);
    }
}

static void assert_finite(const sight *seen, const char *what) {
    for (int i = 0; i < seen->count; i++)
        if (basin_tensor_first_bad(&seen->tensor[i]) >= 0)
            fail_msg("%s: %s is not finite", what, seen->name[i]);
}

/* A token without keys: no force, no energy, no NaN, in any gradient. */
TEST(query_without_key) {
    const char *backends[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++)
        for (int mixed = 0; mixed < 2; mixed++) {
            const variant v = {.no_hopfield = true,
                               .list = true,
                               .learn_beta = true,
                               .mix = mixed,
                               .scale = mixed};
            scene s;
            scene_open(&s, &v, backends[i]);
            sight seen = look(&s);
            assert_finite(&seen, "without key");
            basin_tensor x = state_of(&s, "x");
            const double *end = seen_tensor(&seen, "tokens")->data, *start = x.data;
            for (int d = 0; d < D; d++) assert_true(end[3 * D + d] == start[3 * D + d]);
            assert_true(end[0] != start[0]);
            sight_free(&seen);
            basin_tensor_free(&x);
            scene_close(&s);
        }
}

/* A single token that may not look at itself, and a list without any pair. */
TEST(nobody_to_look_at) {
    const char *backends[] = {"ref", "cpu"};
    for (int i = 0; i < 4; i++) {
        const variant v = {.no_hopfield = true, .learn_beta = true};
        scene s;
        scene_open(&s, &v, backends[i % 2]);
        if (i < 2) {
            s.x = lab_state(&s.lab, "alone", BASIN_SHAPE(1, D));
            lab_fill(&s.lab, 3, 0.8);
        } else {
            s.pattern = lab_pairs(&s.lab, "none", N, NULL, 0, 0, i == 2 ? 0 : 2);
        }
        sight seen = look(&s);
        assert_finite(&seen, "nobody");
        assert_true(basin_tensor_at(seen_tensor(&seen, "energy"), 0) == 0);
        basin_tensor x = state_of(&s, basin_expr_name(s.x));
        lab_assert_near(seen_tensor(&seen, "tokens"), &x, 0, "nobody");
        basin_tensor_free(&x);
        sight_free(&seen);
        scene_close(&s);
    }
}

/* Scores of 10^4 and beyond: the log-sum-exp is their maximum, nothing overflows. */
TEST(large_scores) {
    const char *backends[] = {"ref", "cpu"};
    for (int list = 0; list < 2; list++) {
        sight seen[2];
        for (int i = 0; i < 2; i++) {
            const variant v = {.no_hopfield = true, .learn_beta = true, .list = list};
            scene s;
            scene_open(&s, &v, backends[i]);
            lab_fill(&s.lab, 3, 12);
            basin_expr g = basin_energy_activation(&s.energy, s.x);
            basin_tensor energy = lab_value(&s.lab, basin_energy_total(&s.energy, g));
            assert_true(fabs(basin_tensor_at(&energy, 0)) > 1e4);
            basin_tensor_free(&energy);
            seen[i] = look(&s);
            assert_finite(&seen[i], backends[i]);
            scene_close(&s);
        }
        lab_assert_near(&seen[1].tensor[1], &seen[0].tensor[1], 1e-3, "large scores");
        sight_free(&seen[0]);
        sight_free(&seen[1]);
    }
}

/* Softmax memories with products of 10^4 do not overflow either. */
TEST(large_memories) {
    const char *backends[] = {"ref", "cpu"};
    for (int i = 0; i < 2; i++) {
        const variant v = {.no_attention = true, .hopfield = BASIN_HOPFIELD_SOFTMAX};
        scene s;
        scene_open(&s, &v, backends[i]);
        lab_fill(&s.lab, 3, 1e4);
        sight seen = look(&s);
        assert_finite(&seen, backends[i]);
        assert_true(fabs(basin_tensor_at(seen_tensor(&seen, "energy"), 0)) > 1e4);
        sight_free(&seen);
        scene_close(&s);
    }
}

/* Copies the parameters that both have, so that only the shape of x differs. */
static void check_batches(const char *backend, int64_t batch, variant v) {
    BASIN_AT_EXIT(scene_close) scene whole, one;
    variant single = v;
    v.batch = batch;
    scene_open(&whole, &v, backend);
    scene_open(&one, &single, backend);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor x = state_of(&whole, "x");
    basin_expr output[2];
    output[0] = basin_descend(&whole.energy, whole.x, &two_steps, NULL);
    output[1] = basin_energy_total(&whole.energy, basin_block_norm(&whole.block, output[0]));
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor all = lab_value(&whole.lab, output[0]), sums = lab_value(&whole.lab, output[1]);
    for (int64_t b = 0; b < batch; b++) {
        lab_set(&one.lab, one.x, (double *)x.data + b * N * D);
        output[0] = basin_descend(&one.energy, one.x, &two_steps, NULL);
        output[1] = basin_energy_total(&one.energy, basin_block_norm(&one.block, output[0]));
        basin_tensor end = lab_value(&one.lab, output[0]), sum = lab_value(&one.lab, output[1]);
        basin_tensor part =
            basin_tensor_borrow((double *)all.data + b * N * D, BASIN_F64, BASIN_SHAPE(N, D));
        lab_assert_near(&end, &part, close_for(backend), v.name);
        double wanted = basin_tensor_at(&sums, b), found = basin_tensor_at(&sum, 0);
        assert_true(fabs(wanted - found) <= close_for(backend) * fabs(wanted));
        basin_tensor_free(&end);
        basin_tensor_free(&sum);
    }
}

TEST(batches) {
    static const variant v[] = {{.name = "relu"},
                                {.name = "softmax", .hopfield = BASIN_HOPFIELD_SOFTMAX},
                                {.name = "no attention", .no_attention = true},
                                {.name = "mix", .mix = true, .self = true}};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        for (int64_t batch = 1; batch <= 3; batch += 2) {
            check_batches("ref", batch, v[i]);
            check_batches("cpu", batch, v[i]);
        }
}

/* ---- declarations and errors ---- */

static basin_block declare(lab *l, basin_block_config config) {
    basin_block block;
    basin_block_declare(&block, &l->params, "b.", &config);
    return block;
}

TEST(parameters) {
    lab l = lab_new("ref", 1);
    basin_block b = declare(
        &l,
        (basin_block_config){
            .dim = D, .heads = H, .head_dim = Y, .memories = M, .learn_beta = true, .mix = true});
    assert_int_equal(l.params.count, 7);
    assert_int_equal(basin_params_total(&l.params), 2 * H * Y * D + M * D + 1 + D + H + H * H);
    assert_string_equal(basin_expr_name(b.wk), "b.wk");
    assert_int_equal(basin_params_init(&l.params, l.store, 1, NULL), BASIN_OK);
    basin_tensor beta = lab_value(&l, b.beta), gamma = lab_value(&l, b.gamma);
    for (int h = 0; h < H; h++) assert_true(fabs(basin_tensor_at(&beta, h) - 1 / sqrt(Y)) < 1e-15);
    assert_true(basin_tensor_at(&gamma, 0) == 1);
    assert_true(b.config.epsilon == 1e-5);
    basin_tensor_free(&beta);
    basin_tensor_free(&gamma);
    lab_close(&l);

    lab_open(&l, "ref", 1);
    b = declare(&l, (basin_block_config){.dim = D, .memories = M, .no_attention = true});
    assert_null(b.wk);
    assert_null(b.beta);
    assert_int_equal(basin_params_total(&l.params), M * D + 1 + D);
    basin_block_bound bound = {.block = &b};
    assert_int_equal(basin_block_energy(&bound).terms, 1);
    assert_string_equal(basin_block_energy(&bound).term[0].name, "hopfield");
    lab_close(&l);
}

static void assert_error(lab *l, basin_status status, const char *a, const char *b) {
    assert_misbuilt(l->graph, a), assert_misbuilt(l->graph, b);
    assert_int_equal(basin_graph_error(l->graph)->status, status);
    lab_close(l);
    lab_open(l, "ref", 1);
}

TEST(errors) {
    BASIN_AT_EXIT(lab_close) lab l = lab_new("ref", 1);
    basin_pattern all = BASIN_ALL_PAIRS;
    basin_expr g = lab_state(&l, "g", BASIN_SHAPE(3, 5)), beta = lab_state(&l, "b", BASIN_SHAPE(2));
    basin_expr wk = lab_state(&l, "wk", BASIN_SHAPE(2, 4, 6));
    assert_null(basin_energy_attention(g, wk, wk, beta, &all, NULL));
    assert_error(&l, BASIN_BAD_SHAPE, "[3, 5]", "[2, 4, 6]");

    g = lab_state(&l, "g", BASIN_SHAPE(3, 5));
    assert_null(
        basin_energy_hopfield(g, lab_state(&l, "xi", BASIN_SHAPE(7, 4)), BASIN_HOPFIELD_RELU, 0));
    assert_error(&l, BASIN_BAD_SHAPE, "[3, 5]", "[7, 4]");

    g = lab_state(&l, "g", BASIN_SHAPE(3, 5));
    wk = lab_state(&l, "wk", BASIN_SHAPE(2, 4, 5));
    basin_expr wq = lab_state(&l, "wq", BASIN_SHAPE(3, 4, 5));
    beta = lab_state(&l, "b", BASIN_SHAPE(2));
    assert_null(basin_energy_attention(g, wk, wq, beta, &all, NULL));
    assert_error(&l, BASIN_BAD_SHAPE, "3, 4]", "2, 4]");

    g = lab_state(&l, "g", BASIN_SHAPE(3, 5));
    wk = lab_state(&l, "wk", BASIN_SHAPE(2, 4, 5));
    beta = lab_state(&l, "b", BASIN_SHAPE(3));
    assert_null(basin_energy_attention(g, wk, wk, beta, &all, NULL));
    assert_error(&l, BASIN_BAD_SHAPE, "[3]", "[2]");

    g = lab_state(&l, "g", BASIN_SHAPE(3, 5));
    wk = lab_state(&l, "wk", BASIN_SHAPE(2, 4, 5));
    beta = lab_state(&l, "b", BASIN_SHAPE(2));
    basin_expr scale = lab_state(&l, "scale", BASIN_SHAPE(8, 2));
    assert_null(
        basin_energy_attention(g, wk, wk, beta, &all, &(basin_lse_options){.scale = scale}));
    assert_error(&l, BASIN_BAD_SHAPE, "[8, 2]", "[9, 2]");

    g = lab_state(&l, "g", BASIN_SHAPE(3, 5));
    basin_block sums = {.config = {.no_attention = true},
                        .nv = lab_state(&l, "nv", BASIN_SHAPE(2, 4, 5)),
                        .xi = lab_state(&l, "xi", BASIN_SHAPE(7, 13))};
    basin_energy alone = basin_block_energy(&(basin_block_bound){.block = &sums, .pattern = &all});
    assert_null(basin_energy_term(&alone, g, 0));
    assert_error(&l, BASIN_BAD_VALUE, "sums over neighbours", "list of pairs");

    declare(&l, (basin_block_config){.dim = 4, .heads = 2, .head_dim = 0, .memories = 3});
    assert_error(&l, BASIN_BAD_VALUE, "Y 0", "expected 1 or more");
    declare(&l, (basin_block_config){
                    .dim = 4, .memories = 3, .no_attention = true, .hopfield = 1, .power = 1});
    assert_error(&l, BASIN_BAD_VALUE, "power 1", "more than 1");
}
