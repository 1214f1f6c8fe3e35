/* The models of the zoo: a row each with its reference and how it is built from numbers, whose
 * names are those of the golden files; running and judging them. Everything is computed in double
 * by the backend ref: a rise of a small step must not be a matter of rounding. */
#include "program/verify/specimen.h"

#include "base/try.h"
#include "basin/random.h"

enum { N = 6, D = 8, M = 10, HIDDEN = 12, HEADS = 2 }; /* of specimens that are drawn */

/* ---- numbers ---- */

static basin_expr from_file(basin_specimen *s, const char *name) {
    char full[100];
    if (s->c) return basin_case_parameter(s->c, name);
    snprintf(full, sizeof full, "in.%s", name);
    const basin_tensor *found = basin_bundle_find(s->bundle, full);
    if (found) return basin_constant(s->graph, found);
    return basin_graph_fail(s->graph, BASIN_BAD_FILE, "no tensor %s for this model", full);
}

/* Numbers of a parameter: the file's, or normal ones of a deviation. */
static basin_expr tensor(basin_specimen *s, const char *name, double deviation, basin_shape shape) {
    basin_tensor drawn;
    basin_error error;
    if (s->bundle) return from_file(s, name);
    if (basin_tensor_new(&drawn, BASIN_F64, shape, &error))
        return basin_graph_fail(s->graph, error.status, "%s", error.text);
    double *number = drawn.data;
    int64_t count = basin_shape_count(shape);
    basin_random_fill_normal_f64(number, s->seed, s->drawn++, 0, (size_t)count);
    for (int64_t i = 0; i < count; i++) number[i] *= deviation;
    basin_expr expr = basin_constant(s->graph, &drawn);
    basin_tensor_free(&drawn);
    return expr;
}

/* The same for one number, which is `value` without a file; and a setting. */
static basin_expr scalar(basin_specimen *s, const char *name, double value) {
    return s->bundle ? from_file(s, name) : basin_scalar(s->graph, value);
}
static double setting(const basin_specimen *s, const char *key, double value) {
    const char *text = s->bundle ? basin_bundle_meta(s->bundle, key) : NULL;
    return text ? strtod(text, NULL) : value;
}
/* Whether a file's setting is this JSON; `otherwise` without a file. */
static bool setting_is(const basin_specimen *s, const char *key, const char *json, bool otherwise) {
    const char *found = s->bundle ? basin_bundle_meta(s->bundle, key) : NULL;
    return s->bundle ? found && !strcmp(found, json) : otherwise;
}

/* Fails if a file is of another variant. */
static void require_setting(basin_specimen *s, const char *key, const char *expected) {
    const char *found = s->bundle ? basin_bundle_meta(s->bundle, key) : NULL;
    if (found && strcmp(found, expected) != 0)
        basin_graph_fail(s->graph, BASIN_UNSUPPORTED, "the setting %s is %s; expected %s", key,
                         found, expected);
}

/* A tensor that is not a parameter: an input of a case. */
static basin_expr given(basin_specimen *s, const char *name, basin_shape shape) {
    return s->c ? basin_case_input_add(s->c, name, 2) : tensor(s, name, 1, shape);
}

static void begin(basin_specimen *s, double alpha, const char *tokens, basin_shape shape) {
    s->alpha = setting(s, "alpha", alpha);
    s->start = s->x = given(s, tokens, shape);
}
static void begin_rows(basin_specimen *s, double alpha) {
    begin(s, alpha, "x0", BASIN_SHAPE(N, D));
}

/* ---- memories ---- */

static basin_expr into_cube(const void *context, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_to_box(x, -1, 1);
}

/* These energies have no lower bound but on the cube, where their networks live. */
static void build_dense(basin_specimen *s) {
    begin_rows(s, 0.1);
    s->x = basin_tanh(s->x);
    s->m.dense =
        (basin_zoo_dense){.xi = tensor(s, "xi", 0.5, BASIN_SHAPE(M, D)), .power = s->variant};
    s->energy = basin_zoo_dense_energy(&s->m.dense);
    s->turn[0] = (basin_substep){.project = into_cube};
    s->turns = 1;
}

static void build_entropy(basin_specimen *s) {
    begin_rows(s, 1);
    s->m.hopfield = (basin_zoo_hopfield){.xi = tensor(s, "xi", 1, BASIN_SHAPE(M, D)),
                                         .beta = scalar(s, "beta", 1),
                                         .entropy = (basin_zoo_entropy)s->variant};
    s->energy = basin_zoo_hopfield_energy(&s->m.hopfield);
}

static void build_drdam(basin_specimen *s) {
    begin_rows(s, 0.1);
    bool phases = setting_is(s, "kind", "\"cos\"", false);
    basin_expr xi = tensor(s, "xi", 0.5, BASIN_SHAPE(M, D));
    s->m.features = (basin_zoo_features){.s = tensor(s, "s", 1, BASIN_SHAPE(300, D)),
                                         .phase = phases ? from_file(s, "b") : NULL,
                                         .beta = scalar(s, "beta", 0.3),
                                         .floor = setting(s, "floor", 1e-5)};
    s->m.features.sum = basin_zoo_features_sum(&s->m.features, xi);
    s->energy = basin_zoo_features_energy(&s->m.features);
}

static void build_lsr(basin_specimen *s) {
    begin_rows(s, 0.1);
    s->m.lsr = (basin_zoo_lsr){.xi = tensor(s, "xi", 1, BASIN_SHAPE(M, D)),
                               .beta = scalar(s, "beta", 0.15),
                               .epsilon = setting(s, "eps", 1e-6),
                               .decay = setting(s, "decay", 0)};
    s->energy = basin_zoo_lsr_energy(&s->m.lsr);
}

/* ---- graphs ---- */

static basin_expr indices(basin_graph *graph, const int32_t *number, int64_t count) {
    return basin_index_constant(graph, number, BASIN_SHAPE(count));
}

/* A ring in which each node has two neighbours: A is 1/2 for every pair. */
static basin_expr ring(basin_specimen *s) {
    int32_t edge[N][2];
    basin_pairs p;
    basin_error error;
    for (int i = 0; i < N; i++) edge[i][0] = i, edge[i][1] = (i + 1) % N;
    if (basin_pairs_new(&p, N, N, &edge[0][0], N, BASIN_PAIRS_BOTH_WAYS, &error))
        return basin_graph_fail(s->graph, error.status, "%s", error.text);
    s->pattern = (basin_pattern){.row = indices(s->graph, p.row, N + 1),
                                 .key = indices(s->graph, p.key, p.pairs),
                                 .column = indices(s->graph, p.column, N + 1),
                                 .query = indices(s->graph, p.query, p.pairs),
                                 .pair = indices(s->graph, p.pair, p.pairs)};
    basin_expr weight = basin_full(s->graph, BASIN_SHAPE(p.pairs), 0.5);
    basin_pairs_free(&p);
    return weight;
}

/* 1 / sqrt(degree of both ends) for each pair of a case's list, as an input. */
static basin_expr edge_weights(basin_case *c, int64_t nodes) {
    const basin_pairs *list = &c->pairs;
    basin_tensor weights;
    basin_error error;
    basin_case_edges(c, nodes, "edges", BASIN_PAIRS_BOTH_WAYS);
    if (basin_graph_error(c->graph)) return NULL;
    if (basin_tensor_new(&weights, BASIN_F64, BASIN_SHAPE(list->pairs), &error))
        return basin_graph_fail(c->graph, error.status, "%s", error.text);
    for (int64_t q = 0; q < list->queries; q++)
        for (int32_t i = list->row[q]; i < list->row[q + 1]; i++) {
            int32_t k = list->key[i];
            double degrees = (double)(list->row[q + 1] - list->row[q]) *
                             (double)(list->row[k + 1] - list->row[k]);
            ((double *)weights.data)[i] = 1 / sqrt(degrees);
        }
    basin_expr weight = basin_input(c->graph, "weight", weights.shape);
    basin_case_write(c, weight, &weights);
    return weight;
}

static void build_graph(basin_specimen *s) {
    if (s->bundle && !s->c)
        basin_graph_fail(s->graph, BASIN_UNSUPPORTED,
                         "this model runs on a built-in ring and reads no file");
    begin_rows(s, 0.3);
    if (basin_graph_error(s->graph)) return;
    basin_expr weight = s->c ? edge_weights(s->c, basin_expr_shape(s->x).dim[0]) : ring(s);
    s->m.graph = (basin_zoo_graph){.xi = tensor(s, "xi", 1, BASIN_SHAPE(M, D)),
                                   .beta = scalar(s, "beta", 0.2),
                                   .pattern = s->c ? &s->c->pattern : &s->pattern,
                                   .weight = weight,
                                   .lambda = scalar(s, "lam", 0.3)};
    s->energy = basin_zoo_graph_energy(&s->m.graph);
}

/* ---- networks ---- */

static void build_plastic(basin_specimen *s) {
    begin_rows(s, 0.2);
    s->alpha = setting(s, "dt", 0.2);
    s->m.plastic = (basin_zoo_plastic){.xi = tensor(s, "xi", 1, BASIN_SHAPE(4, D)),
                                       .u = tensor(s, "u", 1, BASIN_SHAPE(N, D))};
    s->energy = basin_zoo_plastic_energy(&s->m.plastic, s->turn);
    s->turns = 1;
}

static void build_layers(basin_specimen *s) {
    s->alpha = 0.3;
    s->m.layers = (basin_zoo_layers){.layers = 2, .x = given(s, "x", BASIN_SHAPE(N, 6))};
    basin_zoo_layers *m = &s->m.layers;
    m->w[0] = tensor(s, "w0", 0.5, BASIN_SHAPE(D, 6));
    m->b[0] = tensor(s, "b0", 0.5, BASIN_SHAPE(D));
    m->w[1] = tensor(s, "w1", 0.5, BASIN_SHAPE(4, D));
    m->b[1] = tensor(s, "b1", 0.5, BASIN_SHAPE(4));
    if (basin_graph_error(s->graph)) return;
    int64_t units = basin_expr_shape(m->b[0]).dim[0] + basin_expr_shape(m->b[1]).dim[0];
    basin_shape shape = BASIN_SHAPE(basin_expr_shape(m->x).dim[0], units);
    s->x = s->bundle ? basin_full(s->graph, shape, 0) : tensor(s, "s", 1, shape);
    s->energy = basin_zoo_layers_energy(m);
}

static void build_et(basin_specimen *s) {
    basin_block *b = &s->m.et.block;
    begin_rows(s, 0.1);
    *b = (basin_block){.wk = tensor(s, "wk", 0.5, BASIN_SHAPE(HEADS, 4, D)),
                       .wq = tensor(s, "wq", 0.5, BASIN_SHAPE(HEADS, 4, D)),
                       .xi = tensor(s, "xi", 0.5, BASIN_SHAPE(M, D)),
                       .gamma = scalar(s, "gamma", 1),
                       .delta = tensor(s, "delta", 0.1, BASIN_SHAPE(D))};
    if (basin_graph_error(s->graph)) return;
    basin_shape heads = basin_expr_shape(b->wk), memories = basin_expr_shape(b->xi);
    b->config = (basin_block_config){.dim = heads.dim[2],
                                     .heads = heads.dim[0],
                                     .head_dim = heads.dim[1],
                                     .memories = memories.dim[0],
                                     .epsilon = 1e-5,
                                     .beta = 1 / sqrt((double)heads.dim[1])};
    b->beta = basin_full(s->graph, BASIN_SHAPE(heads.dim[0]), b->config.beta);
    s->m.et.bound = (basin_block_bound){.block = b, .pattern = &BASIN_OTHER_PAIRS};
    s->energy = basin_block_energy(&s->m.et.bound);
}

/* ---- NRGPT ---- */

enum { LEARNED, STRICT, INCLUSIVE };

static void build_nrgpt(basin_specimen *s) {
    bool two = !setting_is(s, "ff", "\"1\"", true);
    if (!s->c) require_setting(s, "strict", s->variant == INCLUSIVE ? "false" : "true");
    if (!s->bundle || basin_bundle_find(s->bundle, "in.x0")) begin_rows(s, 1);
    s->alpha = s->bundle ? 1 : 0.1;
    s->m.nrgpt =
        (basin_zoo_nrgpt){.h = tensor(s, "h", 0.3, BASIN_SHAPE(HEADS, D, D)),
                          .bias = tensor(s, "bias", 0.1, BASIN_SHAPE(D)),
                          .scale = scalar(s, "scale", 1),
                          .w1 = tensor(s, "w1", 0.3, BASIN_SHAPE(HIDDEN, D)),
                          .b1 = tensor(s, "b1", 0.1, BASIN_SHAPE(HIDDEN)),
                          .w2 = two ? from_file(s, "w2") : NULL,
                          .b2 = two ? from_file(s, "b2") : NULL,
                          .feed = !two                                   ? BASIN_ZOO_FEED_1
                                  : setting_is(s, "ff", "\"2w\"", false) ? BASIN_ZOO_FEED_2W
                                                                         : BASIN_ZOO_FEED_2,
                          .strict = setting_is(s, "strict", "true", s->variant != INCLUSIVE)};
    s->m.nrgpt.proj = s->variant == LEARNED ? tensor(s, "proj", 0.3, BASIN_SHAPE(D, D))
                                            : basin_eye(s->graph, basin_expr_shape(s->x).dim[1]);
    s->energy = basin_zoo_nrgpt_energy(&s->m.nrgpt, s->turn);
    s->turns = 1;
}

/* ---- Hyper-SET, AKOrN, CRATE, EBT ---- */

static void build_hyperset(basin_specimen *s) {
    basin_zoo_hyperset *m = &s->m.hyperset;
    begin_rows(s, 0.25);
    *m = (basin_zoo_hyperset){.w = tensor(s, "w", 0.4, BASIN_SHAPE(D, D)),
                              .m = tensor(s, "m", 0.4, BASIN_SHAPE(4 * D, D)),
                              .gain_w = scalar(s, "gain_w", 1),
                              .gain_m = scalar(s, "gain_m", 1),
                              .heads = (int64_t)setting(s, "heads", HEADS),
                              .gelu = setting_is(s, "activation", "\"gelu\"", false),
                              .straight = true,
                              .epsilon = setting(s, "eps", 1.1920928955078125e-07),
                              .alpha = 1,
                              .start = s->x};
    if (setting_is(s, "learned_steps", "true", false)) {
        m->t1_w = from_file(s, "t1_w"), m->t1_b = from_file(s, "t1_b");
        m->t2_w = from_file(s, "t2_w"), m->t2_b = from_file(s, "t2_b");
        m->t3_w = from_file(s, "t3_w"), m->t3_b = from_file(s, "t3_b");
        s->alpha = 1;
    }
    s->exact = *m;
    s->exact.straight = false;
    s->by_x = &s->exact;
    s->energy = basin_zoo_hyperset_energy(m, s->turn);
    s->turns = 2;
}

enum { STILL, TURNING, ATTENTIVE };

static void build_akorn(basin_specimen *s) {
    int64_t sphere = (int64_t)setting(s, "n", 4);
    basin_zoo_akorn *m = &s->m.akorn;
    begin_rows(s, 1);
    s->alpha = 1;
    *m = (basin_zoo_akorn){
        .c = tensor(s, "c", 0.5, BASIN_SHAPE(N, D)),
        .omega = tensor(s, "omega", s->variant == STILL ? 0 : 0.5, BASIN_SHAPE(D / 2, 2)),
        .gamma = scalar(s, "gamma", 0.5),
        .heads = (int64_t)setting(s, "heads", HEADS),
        .sphere = sphere};
    if (s->variant == ATTENTIVE) {
        m->qkv_w = tensor(s, "qkv_w", 0.5, BASIN_SHAPE(3 * D, D));
        m->qkv_b = tensor(s, "qkv_b", 0.1, BASIN_SHAPE(3 * D));
        m->o_w = tensor(s, "o_w", 0.5, BASIN_SHAPE(D, D));
        m->o_b = tensor(s, "o_b", 0.1, BASIN_SHAPE(D));
    } else {
        m->a = tensor(s, "a", 0.3, BASIN_SHAPE(N * D, N * D));
    }
    s->x = basin_to_sphere(s->x, sphere);
    s->energy = basin_zoo_akorn_energy(m, s->turn);
    s->turns = 1;
}

/* |y - a d'|^2 / 2 + lambda sum a, of a >= 0 */
static basin_expr sparsity(const void *context, basin_expr a) {
    return basin_scale(basin_sum(a, -1, 1), ((const basin_specimen *)context)->m.crate.lambda);
}
static basin_expr sparse_code(const void *context, basin_expr a) {
    const basin_specimen *s = context;
    basin_expr gap = basin_sub(s->m.crate.y, basin_matmul_t(a, false, s->m.crate.d, true));
    return basin_scale(basin_sum(basin_square(gap), -1, 1), 0.5);
}

static basin_expr above_zero(const void *context, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_relu(x);
}

/* From the block's second step on: its first begins at a = y, which may be negative. */
static void build_crate(basin_specimen *s) {
    static const basin_term term[] = {{"code", sparse_code, NULL}, {"sparsity", sparsity, NULL}};
    if (s->bundle)
        basin_graph_fail(s->graph, BASIN_UNSUPPORTED,
                         "this model runs half a block and reads no file");
    begin_rows(s, 0.1);
    s->m.crate.y = s->x;
    s->m.crate.d = tensor(s, "d", 0.35, BASIN_SHAPE(D, D));
    s->m.crate.lambda = 0.1;
    s->x = basin_relu(s->x);
    s->energy = (basin_energy){.term = term, .terms = 2, .context = s};
    s->turn[0] = (basin_substep){.project = above_zero};
    s->turns = 1;
}

static basin_expr to_probabilities(const void *context, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_softmax(x, -1);
}

static void build_ebt(basin_specimen *s) {
    enum { V = 7 };
    begin(s, 1, "y0", BASIN_SHAPE(N, V));
    s->alpha = 1;
    s->x = basin_softmax(s->x, -1);
    s->m.ebt = (basin_zoo_ebt){.context = tensor(s, "ctx", 1, BASIN_SHAPE(N, D)),
                               .e = tensor(s, "e", 1, BASIN_SHAPE(D, V)),
                               .w1 = tensor(s, "w1", 0.5, BASIN_SHAPE(HIDDEN, 2 * D)),
                               .b1 = tensor(s, "b1", 0.1, BASIN_SHAPE(HIDDEN)),
                               .w2 = tensor(s, "w2", 1, BASIN_SHAPE(HIDDEN)),
                               .alpha = scalar(s, "alpha", 0.5)};
    s->energy = basin_zoo_ebt_energy(&s->m.ebt, s->turn);
    if (s->variant) s->turn[0].project = to_probabilities;
    s->turns = 1;
}

/* ---- the list; docs/zoo.md has titles and formulas ---- */

const basin_species basin_species_all[] = {
    {"classical", "Hopfield 1982", build_dense, 2},
    {"power", "Krotov and Hopfield 2016", build_dense, 3},
    {"hopfield", "Ramsauer et al. 2020", build_entropy, BASIN_ZOO_SOFTMAX},
    {"entmax15", "Santos et al. 2024", build_entropy, BASIN_ZOO_ENTMAX15},
    {"sparsemax", "Santos et al. 2024", build_entropy, BASIN_ZOO_SPARSEMAX},
    {"normmax2", "Santos et al. 2024", build_entropy, BASIN_ZOO_NORMMAX2},
    {"drdam", "Hoover et al. 2024", build_drdam, 0},
    {"lsr", "Hoover et al. 2025", build_lsr, 0},
    {"graph_hopfield", "arXiv 2603.03464", build_graph, 0},
    {"idp", "Betteti et al. 2025", build_plastic, 0},
    {"eqprop", "Scellier and Bengio 2017", build_layers, 0},
    {"et", "Hoover et al. 2023", build_et, 0},
    {"nrgpt", "Dehmamy et al. 2025", build_nrgpt, LEARNED},
    {"nrgpt_strict", "Dehmamy et al. 2025", build_nrgpt, STRICT},
    {"nrgpt_inclusive", "Dehmamy et al. 2025", build_nrgpt, INCLUSIVE},
    {"hyperset", "Hu et al. 2026", build_hyperset, 0},
    {"akorn", "Miyato et al. 2025", build_akorn, STILL},
    {"akorn_rotation", "Miyato et al. 2025", build_akorn, TURNING},
    {"akorn_attention", "Miyato et al. 2025", build_akorn, ATTENTIVE},
    {"crate", "Yu et al. 2023", build_crate, 0},
    {"ebt", "Gladstone et al. 2025", build_ebt, 0},
    {"ebt_loop", "Gladstone et al. 2025", build_ebt, 1},
    {0},
};

const basin_species *basin_species_find(const char *name) {
    for (const basin_species *at = basin_species_all; at->name; at++)
        if (!strcmp(at->name, name)) return at;
    return NULL;
}

/* ---- running ---- */

/* The cosine of x's move in a tiny step and of the gradient downwards, by the activations g. */
static basin_expr cosine(const basin_specimen *s, basin_descent_spec spec) {
    basin_energy energy = s->by_x ? basin_zoo_hyperset_energy(s->by_x, NULL) : s->energy;
    basin_expr g =
        energy.activation ? basin_energy_activation(&energy, s->x) : basin_variable(s->x);
    basin_expr down = basin_neg(basin_grad(basin_sum_all(basin_energy_total(&energy, g)), g));
    spec.steps = 1;
    spec.alpha = s->alpha * 1e-6;
    basin_expr move = basin_sub(basin_descend(&s->energy, s->x, &spec, NULL), s->x);
    basin_expr dot = basin_sum_all(basin_mul(move, down));
    basin_expr squares =
        basin_mul(basin_sum_all(basin_square(move)), basin_sum_all(basin_square(down)));
    return basin_div(dot, basin_sqrt(squares));
}

/* Steps that raised the energy; one that is not finite did. */
static int64_t count_rises(const basin_descent_result *r) {
    int64_t rises = 0;
    for (int t = 0; t < r->steps; t++) {
        double before = basin_descent_total(r, t), after = basin_descent_total(r, t + 1);
        rises += !(after <= before + 1e-13 * (1 + fabs(before)));
    }
    return rises;
}

/* All steps of the published size from x, and of small ones from there and from their end. */
static basin_status follow(basin_specimen_run *run, basin_engine *engine, const basin_specimen *s,
                           basin_descent_spec spec, const basin_tensor *x, basin_error *error) {
    BASIN_AT_EXIT(basin_descent_result_free) basin_descent_result result = {0};
    basin_descent_result small;
    basin_descent *descent;
    basin_status status = BASIN_OK;
    BASIN_TRY(basin_engine_descend(engine, &result, &s->energy, x, &spec, NULL, error));
    for (int t = 0; t <= run->steps; t++) run->energy[t] = basin_descent_total(&result, t);
    run->rises = count_rises(&result);
    spec.alpha = s->alpha * 1e-3;
    BASIN_TRY(basin_descent_new(&descent, engine->store, &s->energy, engine->graph, x->shape, &spec,
                                NULL, error));
    for (int i = 0; i < 2 && !status; i++) {
        status = basin_descent_run(descent, &small, i ? result.x : x, error);
        if (!status) run->small_rises += count_rises(&small);
        basin_descent_result_free(&small);
    }
    basin_descent_free(descent);
    return status;
}

static basin_status compute(basin_specimen_run *run, basin_engine *engine, const basin_specimen *s,
                            double scale, basin_error *error) {
    basin_tensor value[2];
    basin_descent_spec spec = {.steps = run->steps,
                               .alpha = s->alpha * scale,
                               .turn = s->turns ? s->turn : NULL,
                               .turns = s->turns};
    BASIN_TRY(basin_graph_check(s->graph, error));
    const basin_expr out[2] = {s->x, cosine(s, spec)};
    BASIN_TRY(basin_engine_compute(engine, value, out, 2, NULL, 0, error));
    run->cosine = basin_tensor_at(&value[1], 0);
    basin_status status = follow(run, engine, s, spec, &value[0], error);
    basin_tensor_free(&value[0]);
    basin_tensor_free(&value[1]);
    return status;
}

basin_status basin_specimen_descend(basin_specimen_run *run, const basin_species *species,
                                    const basin_bundle *bundle, uint64_t seed, int steps,
                                    double scale, basin_error *error) {
    basin_engine engine;
    *run = (basin_specimen_run){.steps = steps};
    if (steps < 1 || steps > BASIN_SPECIMEN_STEPS)
        return basin_fail(error, BASIN_BAD_VALUE, "%d steps; expected 1 to %d", steps,
                          BASIN_SPECIMEN_STEPS);
    BASIN_TRY(basin_engine_open(&engine, &(basin_compute){.backend = "ref", .threads = 1}, error));
    basin_specimen s = {
        .graph = engine.graph, .bundle = bundle, .seed = seed, .variant = species->variant};
    species->build(&s);
    basin_status status = compute(run, &engine, &s, scale, error);
    if (status && bundle) basin_verify_name_file(error, basin_bundle_path(bundle));
    basin_engine_close(&engine);
    return status;
}

basin_status basin_specimen_judge(basin_specimen_verdict *verdict, const basin_species *species,
                                  const basin_bundle *bundle, int seeds, uint64_t seed, int steps,
                                  basin_error *error) {
    *verdict = (basin_specimen_verdict){.least_cosine = 1};
    if (bundle) seeds = 1;
    for (int i = 0; i < seeds; i++) {
        basin_specimen_run run;
        BASIN_TRY(
            basin_specimen_descend(&run, species, bundle, seed + (uint64_t)i, steps, 1, error));
        verdict->steps += steps;
        verdict->rises += run.rises;
        verdict->small_rises += run.small_rises;
        verdict->least_cosine = fmin(verdict->least_cosine, run.cosine);
        verdict->mean_cosine += run.cosine / seeds;
    }
    return BASIN_OK;
}

const char *basin_specimen_answer(const basin_specimen_verdict *verdict) {
    if (verdict->small_rises) return "not at all";
    return verdict->rises ? "for small steps" : "always";
}
