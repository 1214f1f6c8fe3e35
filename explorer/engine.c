/* What the page calls: energies from formulas, a picture's model, Sudoku. Arrays and texts are in
 * the module's memory. Every function returns 0, or 1 with a message at explorer_message() and the
 * place in a formula at explorer_place(). One thread calls them, a worker of the page's. */
#include <emscripten.h>

#include "../examples/sudoku/model.h"
#include <basin/params.h>
#include <basin/tasks/nodes.h>

#include "formula.h"
#include "tasks/pictures/complete/complete.h"

#define EXPORT EMSCRIPTEN_KEEPALIVE

static char message[BASIN_ERROR_TEXT];
static int place;

EXPORT const char *explorer_message(void) { return message; }
EXPORT int explorer_place(void) { return place; }

static int refuse(const char *text, int where) {
    snprintf(message, sizeof message, "%s", text);
    place = where;
    return 1;
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        if (call) {                                                                                \
            failed = refuse(error.text, -1);                                                       \
            goto end;                                                                              \
        }                                                                                          \
    } while (0)

static const basin_compute alone = {.backend = "cpu", .threads = 1};

/* ---- energies from formulas ---- */

/* What a formula mentions, and how states go down it. */
typedef struct written {
    const char *text;
    int64_t states, dim;
    int together; /* the states see each other: g is all of them, [states, dim] */
    const float *pattern;
    int64_t patterns; /* xi [patterns, dim] */
    double beta;
} written;

/* NULL with a message where it is too long, or without memory. */
static formula *formula_new(const written *w, basin_graph *graph) {
    formula *f = strlen(w->text) < FORMULA_TEXT ? calloc(1, sizeof *f) : NULL;
    if (!f) {
        basin_fail(&error, BASIN_BAD_VALUE, "a formula of %zu characters; wanted fewer than %d",
                   strlen(w->text), FORMULA_TEXT);
        return NULL;
    }
    memcpy(f->text, w->text, strlen(w->text) + 1);
    f->batched = !w->together;
    basin_tensor xi =
        basin_tensor_borrow((void *)w->pattern, BASIN_F32, BASIN_SHAPE(w->patterns, w->dim));
    f->name[f->names++] = (formula_name){"beta", basin_scalar(graph, w->beta)};
    if (w->patterns) f->name[f->names++] = (formula_name){"xi", basin_constant(graph, &xi)};
    return f;
}

static basin_expr build(const void *context, basin_expr g) {
    return formula_build((formula *)context, g);
}

static int refuse_formula(const formula *f) {
    return f && f->message[0] ? refuse(f->message, f->place) : refuse(error.text, -1);
}

/* Energies [states] at x [states, dim], and forces if `force` is not NULL; of states together, one
 * energy. */
EXPORT int explorer_energies(const char *text, float *energy, float *force, const float *x,
                             int states, int dim, int together, const float *pattern, int patterns,
                             double beta) {
    written w = {text, states, dim, together, pattern, patterns, beta};
    basin_engine engine = {0};
    basin_shape shape = BASIN_SHAPE(states, dim);
    basin_tensor results[2] = {0};
    int failed = 0;
    formula *f = NULL;
    TRY(basin_engine_open(&engine, &alone, &error));
    f = formula_new(&w, engine.graph);
    basin_expr g = basin_input(engine.graph, "g", shape), e = f ? formula_build(f, g) : NULL;
    if (!e) {
        failed = refuse_formula(f);
        goto end;
    }
    basin_expr wanted[2] = {e, force ? basin_neg(basin_grad(e, g)) : NULL};
    basin_tensor at = basin_tensor_borrow((void *)x, BASIN_F32, shape);
    basin_feed given = {g, &at};
    TRY(basin_engine_compute(&engine, results, wanted, force ? 2 : 1, &given, 1, &error));
    for (int i = 0; i < (together ? 1 : states); i++)
        energy[i] = (float)basin_tensor_at(&results[0], i);
    for (int i = 0; force && i < states * dim; i++)
        force[i] = (float)basin_tensor_at(&results[1], i);
end:
    basin_tensor_free(&results[0]);
    basin_tensor_free(&results[1]);
    free(f);
    basin_engine_close(&engine);
    return failed;
}

/* Tells the worker how far a descent is. */
EM_JS(void, say_step, (int step, int steps), { self.explorerStep(step, steps); });

/* Where states were at every step. */
typedef struct path {
    basin_store *store;
    float *x; /* [steps + 1, count] */
    int64_t count;
    int steps;
} path;

static basin_status remember(void *context, const basin_descent_state *now, basin_error *why) {
    path *p = context;
    basin_tensor tokens;
    const char *name = basin_expr_name(basin_descent_tokens(now->descent, 0));
    basin_status status = basin_store_get(&tokens, p->store, name, why);
    if (status) return status;
    say_step((int)now->step, p->steps);
    memcpy(p->x + now->step * p->count, tokens.data, (size_t)p->count * sizeof *p->x);
    basin_tensor_free(&tokens);
    return BASIN_OK;
}

/* What a step is where the page chooses its size. */
typedef struct stride {
    double reach; /* its greatest length */
    int together;
} stride;

/* The step along the force to the lowest point that the curvature there promises, a fifth shorter,
 * so that it does not swing across valleys; as far as `reach` where the energy curves down. */
static basin_expr choose_step(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    const stride *s = context;
    const double shortened = 0.8, tiny = 1e-30, far = 1e30;
    (void)t;
    basin_graph *graph = basin_expr_graph(x);
    basin_shape shape = basin_expr_shape(x);
    int from = s->together ? 0 : 1, axes = shape.rank - from;
    basin_expr square = basin_square(force), along = basin_sum(square, from, axes);
    basin_expr turn = basin_grad(basin_sum(square, 0, shape.rank), x); /* -2 (Hessian @ force) */
    basin_expr curved = basin_scale(basin_sum(basin_mul(force, turn), from, axes), -0.5);
    basin_expr small = basin_scalar(graph, tiny);
    basin_expr lowest = basin_scale(basin_div(along, basin_maximum(curved, small)), shortened);
    lowest = basin_where(basin_greater(curved, small), lowest, basin_scalar(graph, far));
    basin_expr longest = basin_sqrt(basin_add(along, small));
    longest = basin_div(basin_scalar(graph, s->reach), longest);
    basin_expr size = basin_minimum(lowest, longest);
    if (!s->together) size = basin_expand_dims(size, 1, axes);
    return basin_mul(force, size);
}

/* The rest of a path that ended early: its states stay. */
static void stay(float *x, double *energy, int64_t count, int64_t samples, int taken, int steps) {
    for (int t = taken + 1; t <= steps; t++) {
        memcpy(x + t * count, x + taken * count, (size_t)count * sizeof *x);
        memcpy(energy + t * samples, energy + taken * samples, (size_t)samples * sizeof *energy);
    }
}

/* x [steps + 1, states, dim], of which the first are given; energy [steps + 1, states], of states
 * together [steps + 1]. alpha 0: each state's step is chosen anew every time, at most `reach` long,
 * and halved while its energy would rise. */
EXPORT int explorer_descend(const char *text, float *x, double *energy, int states, int dim,
                            int together, const float *pattern, int patterns, double beta,
                            int steps, double alpha, double reach, double noise, int seed) {
    written w = {text, states, dim, together, pattern, patterns, beta};
    const bool chosen = alpha <= 0;
    basin_engine engine = {0};
    basin_descent *descent = NULL;
    basin_descent_result result = {0};
    int failed = 0;
    formula *f = NULL;
    TRY(basin_engine_open(&engine, &alone, &error));
    f = formula_new(&w, engine.graph);
    basin_term term = {"E", build, f};
    basin_energy whole = {.term = &term, .terms = 1};
    stride longest = {reach, together};
    basin_substep turn = {.move = choose_step, .context = &longest};
    basin_descent_spec spec = {.steps = steps, .alpha = chosen ? 1 : alpha, .noise = noise};
    if (chosen) spec.substep = &turn, spec.substeps = 1;
    path p = {engine.store, x, (int64_t)states * dim, steps};
    basin_stop stop = {.seed = (uint64_t)seed, .observe = remember, .context = &p};
    stop.guard = chosen && noise <= 0;
    if (stop.guard) stop.tolerance = 1e-6, stop.until = 3e-6; /* what is left is rounding */
    basin_tensor first = basin_tensor_borrow(x, BASIN_F32, BASIN_SHAPE(states, dim));
    if (!f || basin_descent_new(&descent, engine.store, &whole, engine.graph, first.shape, &spec,
                                &stop, &error)) {
        failed = refuse_formula(f);
        goto end;
    }
    TRY(basin_descent_run(descent, &result, &first, &error));
    memcpy(energy, result.energy,
           (size_t)(result.steps + 1) * (size_t)result.samples * sizeof *energy);
    stay(x, energy, p.count, result.samples, result.steps, steps);
end:
    basin_descent_result_free(&result);
    basin_descent_free(descent);
    free(f);
    basin_engine_close(&engine);
    return failed;
}

/* ---- a picture as the memory of itself ---- */

enum { PATCH_SIDE = 7, PATCH_PIXELS = PATCH_SIDE * PATCH_SIDE, COLOURS = 3 };

/* What the energy of a hole is made of: missing pixels x [missing, 3] in a picture of n x n. */
typedef struct hole {
    basin_tensor known;  /* [n n, 3] */
    basin_tensor pixel;  /* [targets 49] of each patch with something missing: its place in the
                            picture, or n n and the number of the missing pixel */
    basin_tensor stored; /* [patterns, 147] the patches that are known */
    basin_tensor half;   /* [patterns] half of their squares */
    basin_tensor trust;  /* [targets] confidence, less with the depth */
    basin_tensor share;  /* [missing, 1] by 49 / 2 divided by the confidence of all that cover it */
    int64_t targets;
    double beta;
    basin_expr product; /* [targets, patterns] -d / 2 without what all patterns share */
} hole;

/* Patches of the picture with the hole as x has it, [targets, 147]. */
static basin_expr patches_of(const hole *h, basin_expr x) {
    basin_graph *graph = basin_expr_graph(x);
    basin_expr both[2] = {basin_constant(graph, &h->known), x};
    basin_expr all = basin_concat(both, 2, 0);
    basin_expr rows = basin_take(all, 0, basin_constant(graph, &h->pixel));
    return basin_reshape(rows, BASIN_SHAPE(h->targets, PATCH_PIXELS * COLOURS));
}

/* E = sum over patches p of c_p (-1 / beta) log sum over stored q exp(-beta |x_p - x_q|^2 / 49) */
static basin_expr hole_energy(const void *context, basin_expr x) {
    hole *h = (hole *)context;
    basin_graph *graph = basin_expr_graph(x);
    basin_expr p = patches_of(h, x);
    basin_expr near = basin_matmul_t(p, false, basin_constant(graph, &h->stored), true);
    h->product = basin_sub(near, basin_constant(graph, &h->half));
    basin_expr score = basin_scale(h->product, 2 * h->beta / PATCH_PIXELS);
    basin_expr own = basin_scale(basin_sum(basin_square(p), 1, 1), 1.0 / PATCH_PIXELS);
    basin_expr each = basin_sub(own, basin_scale(basin_logsumexp(score, -1), 1 / h->beta));
    return basin_sum(basin_mul(each, basin_constant(graph, &h->trust)), 0, 1);
}

/* Each pixel moves to the mean of what is retrieved for the patches that cover it. */
static basin_expr to_mean(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)t;
    const hole *h = context;
    return basin_mul(force, basin_constant(basin_expr_graph(x), &h->share));
}

/* A hole of `missing` pixels, x [steps + 1, missing, 3] of which the first are given, goes down.
 * Arrays as in `hole`; energy [steps + 1]; best [targets]: the pattern that each patch is nearest
 * to in the end. */
EXPORT int explorer_hole_descend(float *x, double *energy, int32_t *best, int missing,
                                 const float *known, int pixels, const int32_t *pixel, int targets,
                                 const float *stored, const float *half, int patterns,
                                 const float *trust, const float *share, double beta, int steps) {
    int failed = 0;
    basin_engine engine = {0};
    basin_descent *descent = NULL;
    basin_descent_result result = {0};
    basin_plan *plan = NULL;
    basin_tensor scores = {0};
    basin_shape shape = BASIN_SHAPE(missing, COLOURS);
    hole h = {.targets = targets, .beta = beta};
    h.known = basin_tensor_borrow((void *)known, BASIN_F32, BASIN_SHAPE(pixels, COLOURS));
    h.pixel =
        basin_tensor_borrow((void *)pixel, BASIN_I32, BASIN_SHAPE((int64_t)targets * PATCH_PIXELS));
    h.stored = basin_tensor_borrow((void *)stored, BASIN_F32,
                                   BASIN_SHAPE(patterns, PATCH_PIXELS * COLOURS));
    h.half = basin_tensor_borrow((void *)half, BASIN_F32, BASIN_SHAPE(patterns));
    h.trust = basin_tensor_borrow((void *)trust, BASIN_F32, BASIN_SHAPE(targets));
    h.share = basin_tensor_borrow((void *)share, BASIN_F32, BASIN_SHAPE(missing, 1));
    basin_term term = {"memory", hole_energy, &h};
    basin_energy whole = {.term = &term, .terms = 1};
    basin_substep turn = {.move = to_mean, .context = &h};
    basin_descent_spec spec = {.steps = steps, .alpha = 1, .substep = &turn, .substeps = 1};
    path p = {NULL, x, (int64_t)missing * COLOURS, steps};
    basin_stop stop = {.observe = remember, .context = &p};
    basin_tensor first = basin_tensor_borrow(x, BASIN_F32, shape);
    TRY(basin_engine_open(&engine, &alone, &error));
    p.store = engine.store;
    TRY(basin_descent_new(&descent, engine.store, &whole, engine.graph, shape, &spec, &stop,
                          &error));
    TRY(basin_descent_run(descent, &result, &first, &error));
    memcpy(energy, result.energy, (size_t)(steps + 1) * sizeof *energy);
    hole_energy(&h, basin_descent_tokens(descent, 0));
    basin_plan_spec looks = {.output = &h.product, .outputs = 1};
    TRY(basin_plan_new(&plan, engine.store, &looks, &error));
    TRY(basin_plan_run(plan, &error));
    TRY(basin_tensor_new(&scores, BASIN_F32, BASIN_SHAPE(targets, patterns), &error));
    TRY(basin_plan_read(&scores, plan, h.product, &error));
    const float *score = scores.data;
    for (int k = 0; k < targets; k++) {
        best[k] = 0;
        for (int q = 1; q < patterns; q++)
            if (score[(int64_t)k * patterns + q] > score[(int64_t)k * patterns + best[k]])
                best[k] = q;
    }
end:
    basin_tensor_free(&scores);
    basin_plan_free(plan);
    basin_descent_result_free(&result);
    basin_descent_free(descent);
    basin_engine_close(&engine);
    return failed;
}

/* ---- a model of pictures ---- */

/* The model for one picture: tokens by step are kept, and looked at afterwards. */
static struct {
    basin_engine engine;
    basin_params params;
    basin_block block;
    basin_expr enc_w, enc_b, mask, pos;          /* [P, D] [D] [D] [N, D] */
    basin_expr dec_w, dec_b;                     /* [D, P] [P] */
    basin_expr hole_w, hole_b;                   /* the same for a guess of the hole; or NULL */
    basin_expr patches, replaced, first, tokens; /* inputs; encoded; an input of tokens */
    basin_expr decoded, share, active;           /* of those tokens: [1, N, P] [H, N, N] [N, M] */
    basin_plan *encode, *decode, *look;
    int channels;
    double gamma;
    float *x; /* [steps + 1, N, D] of the last descent */
    int steps;
} picture;

EXPORT void explorer_picture_close(void) {
    basin_plan_free(picture.encode);
    basin_plan_free(picture.decode);
    basin_plan_free(picture.look);
    basin_params_free(&picture.params);
    basin_engine_close(&picture.engine);
    free(picture.x);
    memset(&picture, 0, sizeof picture);
}

/* [N, D] -> [H, N, Y] */
static basin_expr heads_of(basin_expr g, basin_expr w) {
    basin_expr operands[2] = {g, w};
    return basin_einsum_many("nd,hyd->hny", operands, 2);
}

/* What the block does at tokens: the share of each key in a query's attention, by head; and how
 * much each memory is recalled by each token. */
static void build_look(void) {
    const basin_block *b = &picture.block;
    basin_graph *graph = picture.engine.graph;
    basin_shape s = basin_expr_shape(picture.tokens);
    basin_expr g = basin_block_norm(b, basin_reshape(picture.tokens, BASIN_SHAPE(s.dim[1], -1)));
    basin_expr pair[2] = {heads_of(g, b->wq), heads_of(g, b->wk)};
    basin_expr score = basin_einsum_many("hcy,hby->hcb", pair, 2);
    score = basin_scale(score, 1 / sqrt((double)b->config.head_dim));
    score = basin_add(score, basin_scale(basin_eye(graph, s.dim[1]), -1e9));
    picture.share = basin_softmax(score, -1);
    picture.active = basin_relu(basin_matmul_t(g, false, b->xi, true));
}

/* The network of a file of `basin image train`: the affine encoder, the MASK token, positions; the
 * block; a layer norm and the affine decoder; `holes`: another decoder, for the change of a guess.
 */
static basin_status declare_picture(int tokens, int patch, const basin_block_config *config,
                                    bool holes) {
    basin_params *p = &picture.params;
    const basin_init none = {BASIN_INIT_CONSTANT, 0}; /* the file has the values */
    const int64_t D = config->dim;
    picture.enc_w = basin_param_add(p, "", "enc_w", BASIN_SHAPE(patch, D), none);
    picture.enc_b = basin_param_add(p, "", "enc_b", BASIN_SHAPE(D), none);
    picture.mask = basin_param_add(p, "", "mask", BASIN_SHAPE(D), none);
    picture.pos = basin_param_add(p, "", "pos", BASIN_SHAPE(tokens, D), none);
    picture.dec_w = basin_param_add(p, "", "dec_w", BASIN_SHAPE(D, patch), none);
    picture.dec_b = basin_param_add(p, "", "dec_b", BASIN_SHAPE(patch), none);
    if (holes) picture.hole_w = basin_param_add(p, "", "hole_w", BASIN_SHAPE(D, patch), none);
    if (holes) picture.hole_b = basin_param_add(p, "", "hole_b", BASIN_SHAPE(patch), none);
    return basin_block_declare(&picture.block, p, "", config);
}

static void build_picture(int tokens, int patch, int dim) {
    basin_graph *graph = picture.engine.graph;
    picture.patches = basin_input(graph, "patches", BASIN_SHAPE(1, tokens, patch));
    picture.replaced = basin_input(graph, "replaced", BASIN_SHAPE(1, tokens));
    picture.tokens = basin_input(graph, "tokens", BASIN_SHAPE(1, tokens, dim));
    basin_expr guess = basin_matmul(picture.patches, picture.enc_w);
    basin_expr x = basin_add(guess, picture.enc_b);
    basin_expr hidden = basin_reshape(picture.replaced, BASIN_SHAPE(1, tokens, 1));
    basin_expr mask = picture.hole_w ? basin_add(guess, picture.mask) : picture.mask;
    picture.first = basin_add(basin_where(hidden, mask, x), picture.pos);
    basin_expr g = basin_block_norm(&picture.block, picture.tokens);
    picture.decoded = basin_add(basin_matmul(g, picture.dec_w), picture.dec_b);
    if (picture.hole_w) {
        basin_expr change = basin_add(basin_matmul(g, picture.hole_w), picture.hole_b);
        change = basin_add(picture.patches, change);
        picture.decoded = basin_where(hidden, change, picture.decoded);
    }
    build_look();
}

/* The weights of a file, for N patches of P numbers: `channels` squares each. */
EXPORT int explorer_picture_open(const char *file, int tokens, int patch, int channels, int dim,
                                 int heads, int head_dim, int memories) {
    int failed = 0;
    basin_bundle *bundle = NULL;
    explorer_picture_close();
    basin_block_config config = {
        .dim = dim, .heads = heads, .head_dim = head_dim, .memories = memories};
    TRY(basin_bundle_read(&bundle, file, &error));
    TRY(basin_engine_open(&picture.engine, &alone, &error));
    basin_graph *graph = picture.engine.graph;
    basin_store *store = picture.engine.store;
    basin_params_begin(&picture.params, graph);
    picture.channels = channels;
    bool holes = basin_bundle_find(bundle, "hole_w") != NULL;
    TRY(declare_picture(tokens, patch, &config, holes));
    TRY(basin_params_read(&picture.params, store, bundle, &error));
    const basin_tensor *gamma;
    TRY(basin_bundle_get(&gamma, bundle, "gamma", &error));
    picture.gamma = basin_tensor_at(gamma, 0);
    build_picture(tokens, patch, dim);
    basin_plan_spec encodes = {.output = &picture.first, .outputs = 1};
    basin_plan_spec decodes = {.output = &picture.decoded, .outputs = 1};
    basin_plan_spec looks = {.output = (basin_expr[]){picture.share, picture.active}, .outputs = 2};
    TRY(basin_plan_new(&picture.encode, store, &encodes, &error));
    TRY(basin_plan_new(&picture.decode, store, &decodes, &error));
    TRY(basin_plan_new(&picture.look, store, &looks, &error));
end:
    basin_bundle_free(bundle);
    if (failed) explorer_picture_close();
    return failed;
}

static basin_status write_floats(basin_plan *plan, basin_expr input, const float *data) {
    basin_tensor t = basin_tensor_borrow((void *)data, BASIN_F32, basin_expr_shape(input));
    return basin_plan_write(plan, input, &t, &error);
}

static basin_status read_floats(basin_plan *plan, basin_expr output, float *data) {
    basin_tensor t = basin_tensor_borrow(data, BASIN_F32, basin_expr_shape(output));
    return basin_plan_read(&t, plan, output, &error);
}

/* Fills the missing patches with the membrane that a model with another decoder for holes is
 * shown. */
static basin_status guess_hole(float *patches, const float *replaced) {
    basin_shape s = basin_expr_shape(picture.patches);
    int64_t tokens = s.dim[1], values = s.dim[2], C = picture.channels;
    int64_t across = llround(sqrt((double)tokens)), side = llround(sqrt((double)(values / C)));
    int64_t width = across * side;
    BASIN_SCRATCH(uint8_t, missing, width * width, "a picture", &error);
    BASIN_SCRATCH(float, known, width *width *C, "a picture", &error);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < tokens * values; i++) {
            int64_t n = i / values, c = i / (side * side) % C, k = i % (side * side);
            int64_t at = (n / across * side + k / side) * width + n % across * side + k % side;
            if (replaced[n] == 0) known[at * C + c] = patches[i];
            if (replaced[n] > 0 && pass) patches[i] = known[at * C + c];
            missing[at] = replaced[n] > 0;
        }
        basin_ties ties = {
            .height = width, .width = width, .stride = C, .missing = missing, .known = known};
        if (!pass) BASIN_TRY(basin_membrane_add(known, &ties, (int)C, &error));
    }
    return BASIN_OK;
}

/* All steps from patches [N, P], of which those that are 1 in `replaced` are missing. `gamma`
 * replaces the file's unless it is 0; `terms` are bits: attention, memories. energy [steps + 1, 2].
 */
EXPORT int explorer_picture_descend(double *energy, float *patches, const float *replaced,
                                    int steps, double alpha, double gamma, int terms) {
    int failed = 0;
    basin_descent *descent = NULL;
    basin_descent_result result = {0};
    basin_store *store = picture.engine.store;
    basin_shape shape = basin_expr_shape(picture.tokens);
    int64_t count = basin_shape_count(shape);
    basin_pattern pattern = {.exclude_self = true};
    basin_block_bound bound = {.block = &picture.block, .pattern = &pattern};
    basin_energy whole = basin_block_energy(&bound);
    basin_substep turn = {.terms = (unsigned)terms};
    basin_descent_spec spec = {.steps = steps, .alpha = alpha, .substep = &turn, .substeps = 1};
    float *x = realloc(picture.x, (size_t)(steps + 1) * (size_t)count * sizeof *x);
    if (!x) return refuse("out of memory", -1);
    picture.x = x, picture.steps = steps;
    path p = {store, x, count, steps};
    basin_stop stop = {.observe = remember, .context = &p};
    double factor = gamma != 0 ? gamma : picture.gamma;
    basin_tensor scalar = basin_tensor_borrow(&factor, BASIN_F64, BASIN_SCALAR);
    basin_tensor first = basin_tensor_borrow(x, BASIN_F32, shape);
    TRY(basin_store_write(store, "gamma", &scalar, &error));
    if (picture.hole_w) TRY(guess_hole(patches, replaced));
    if (picture.hole_w) TRY(write_floats(picture.decode, picture.patches, patches));
    if (picture.hole_w) TRY(write_floats(picture.decode, picture.replaced, replaced));
    TRY(write_floats(picture.encode, picture.patches, patches));
    TRY(write_floats(picture.encode, picture.replaced, replaced));
    TRY(basin_plan_run(picture.encode, &error));
    TRY(read_floats(picture.encode, picture.first, x));
    TRY(basin_descent_new(&descent, store, &whole, picture.engine.graph, shape, &spec, &stop,
                          &error));
    TRY(basin_descent_run(descent, &result, &first, &error));
    memcpy(energy, result.energy, (size_t)(steps + 1) * 2 * sizeof *energy);
end:
    basin_descent_result_free(&result);
    basin_descent_free(descent);
    return failed;
}

/* The picture at a step of the last descent, patches [N, P]. */
EXPORT int explorer_picture_decode(float *patches, int step) {
    int failed = 0;
    int64_t count = basin_shape_count(basin_expr_shape(picture.tokens));
    TRY(write_floats(picture.decode, picture.tokens, picture.x + step * count));
    TRY(basin_plan_run(picture.decode, &error));
    TRY(read_floats(picture.decode, picture.decoded, patches));
end:
    return failed;
}

/* share [H, N, N] of keys in the attention of queries, active [N, M] of memories, at a step. */
EXPORT int explorer_picture_look(float *share, float *active, int step) {
    int failed = 0;
    int64_t count = basin_shape_count(basin_expr_shape(picture.tokens));
    TRY(write_floats(picture.look, picture.tokens, picture.x + step * count));
    TRY(basin_plan_run(picture.look, &error));
    TRY(read_floats(picture.look, picture.share, share));
    TRY(read_floats(picture.look, picture.active, active));
end:
    return failed;
}

/* Every memory as a patch: what the decoder makes of it, [M, P]. */
EXPORT int explorer_picture_memories(float *patches) {
    int failed = 0;
    basin_plan *plan = NULL;
    basin_expr tiles = basin_matmul(picture.block.xi, picture.dec_w);
    basin_plan_spec spec = {.output = &tiles, .outputs = 1};
    TRY(basin_plan_new(&plan, picture.engine.store, &spec, &error));
    TRY(basin_plan_run(plan, &error));
    TRY(read_floats(plan, tiles, patches));
end:
    basin_plan_free(plan);
    return failed;
}

/* ---- Sudoku: examples/sudoku ---- */

static model sudoku;

/* What is seen of one board on its way down. */
typedef struct sight {
    basin_plan *plan;
    basin_expr likely; /* [81, 9] */
    float *likelihood; /* [steps + 1, 81, 9] */
    double *energy;    /* [steps + 1] */
    int steps;
} sight;

static basin_status see_board(void *context, const basin_descent_state *now, basin_error *why) {
    sight *s = context;
    float *to = s->likelihood + now->step * CELLS * DIGITS;
    basin_tensor t = basin_tensor_borrow(to, BASIN_F32, BASIN_SHAPE(CELLS, DIGITS));
    basin_status status = basin_plan_run(s->plan, why);
    if (!status) status = basin_plan_read(&t, s->plan, s->likely, why);
    s->energy[now->step] = 0;
    for (int i = 0; i < now->terms; i++) s->energy[now->step] += now->energy[i];
    say_step((int)now->step, s->steps);
    return status;
}

EXPORT int explorer_sudoku_open(const char *file) {
    int failed = 0;
    TRY(basin_engine_open(&sudoku.engine, &alone, &error));
    model_open(&sudoku, file);
end:
    return failed;
}

/* How likely each digit is in each cell at every step, [steps + 1, 81, 9]; energy [steps + 1]. */
EXPORT int explorer_sudoku_descend(float *likelihood, double *energy, const int32_t *cells,
                                   int steps) {
    int failed = 0;
    net n;
    net_new(&n, &sudoku, 1, "");
    basin_store *store = sudoku.engine.store;
    sight s = {.likelihood = likelihood, .energy = energy, .steps = steps};
    basin_substep turn = {.move = decay};
    basin_descent_spec spec = {.steps = steps, .alpha = n.alpha, .substep = &turn, .substeps = 1};
    basin_stop stop = {.observe = see_board, .context = &s};
    basin_descent *descent = NULL;
    basin_descent_result result = {0};
    basin_plan *begin = NULL;
    basin_energy whole = energy_of(&n);
    basin_tensor board = basin_tensor_borrow((void *)cells, BASIN_I32, BASIN_SHAPE(CELLS));
    TRY(basin_descent_new(&descent, store, &whole, n.graph, basin_expr_shape(n.start), &spec, &stop,
                          &error));
    basin_expr tokens = basin_descent_tokens(descent, 0);
    basin_update first = {tokens, n.start};
    s.likely = basin_softmax(digits(&n, tokens), -1);
    basin_plan_spec starts = {.update = &first, .updates = 1};
    basin_plan_spec reads = {.output = &s.likely, .outputs = 1};
    TRY(basin_plan_new(&begin, store, &starts, &error));
    TRY(basin_plan_new(&s.plan, store, &reads, &error));
    TRY(basin_plan_write(begin, n.board, &board, &error));
    TRY(basin_plan_write(basin_descent_plan(descent), n.board, &board, &error));
    TRY(basin_plan_run(begin, &error));
    TRY(basin_descent_run(descent, &result, NULL, &error));
end:
    basin_descent_result_free(&result);
    basin_plan_free(begin);
    basin_plan_free(s.plan);
    basin_descent_free(descent);
    net_free(&n);
    return failed;
}

/* Fills in what naked and hidden singles give; how many cells are left. */
static int fill_singles(board *b) {
    int left = 0;
    for (choice c = choose(b); c.cell >= 0 && c.digits && !(c.digits & (c.digits - 1));
         c = choose(b))
        b->cell[c.cell] = (uint8_t)__builtin_ctz(c.digits);
    for (int i = 0; i < CELLS; i++) left += !b->cell[i];
    return left;
}

/* What singles give, and the solution, if there is just one; how many there are, at most 2. */
EXPORT int explorer_sudoku_solve(int32_t *singles, int32_t *solution, const int32_t *cells) {
    board b, full;
    for (int i = 0; i < CELLS; i++) b.cell[i] = (uint8_t)cells[i];
    full = b;
    int found = count_solutions(b);
    if (found == 1) solve(&full, 1, NULL);
    fill_singles(&b);
    for (int i = 0; i < CELLS; i++) singles[i] = b.cell[i], solution[i] = full.cell[i];
    return found;
}

/* A board with one solution; hard: singles do not solve it, unless none of 100 boards is so. */
EXPORT void explorer_sudoku_make(int32_t *cells, int seed, int hard) {
    board b = {0};
    for (int i = 0; i < (hard ? 100 : 1); i++) {
        generation how = {
            .count = 1, .seed = seed + 1000 * i, .least = 30, .most = 36, .hard = hard};
        boards made = generate_boards(&how);
        b = made.given[0];
        free(made.given);
        board tried = b;
        if (fill_singles(&tried)) break;
    }
    for (int i = 0; i < CELLS; i++) cells[i] = b.cell[i];
}

/* ---- a network of accounts ---- */

static struct {
    basin_backend *backend;
    basin_nodes_model *model;
} accounts;

EXPORT int explorer_accounts_open(const char *file) {
    int failed = 0;
    if (!accounts.backend) TRY(basin_backend_open(&accounts.backend, &alone, &error));
    TRY(basin_nodes_open(&accounts.model, "anomaly", file, accounts.backend, &error));
end:
    return failed;
}

EXPORT double explorer_accounts_threshold(void) {
    return basin_nodes_get_info(accounts.model)->threshold;
}

/* The network of features [nodes, columns] named by lines of `names`, and edges [edges, 2]. */
static basin_status network_of(basin_network **network, const float *feature, int nodes,
                               const char *names, int columns, const int32_t *edge, int edges) {
    char copy[400];
    const char *column[16] = {0};
    snprintf(copy, sizeof copy, "%s", names);
    char *rest = copy;
    for (int i = 0; i < columns && i < 16; i++) column[i] = strsep(&rest, "\n");
    basin_edges pairs = {edge, edge + 1, BASIN_I32, 2, edges};
    basin_network_arrays arrays = {.nodes = nodes,
                                   .features = columns,
                                   .feature = feature,
                                   .relations = 1,
                                   .edges = &pairs,
                                   .column = column};
    basin_network_options options = {.schema = basin_nodes_get_info(accounts.model)->schema};
    return basin_network_from_arrays(network, &arrays, &options, &error);
}

/* The probability of every node, and why `node` (if not -1) has its own: neighbour [nodes, 2] the
 * share of its attention and what came through each, feature [columns + 1, 2]: what came from its
 * own column and from those of others (the last: from the number of neighbours); about: logit,
 * typical logit, own, rest. */
EXPORT int explorer_accounts_score(double *probability, float *neighbour, float *by_feature,
                                   double *about, const float *feature, int nodes,
                                   const char *names, int columns, const int32_t *edge, int edges,
                                   int node) {
    int failed = 0;
    basin_network *network = NULL;
    basin_nodes_explanation *why = NULL;
    TRY(network_of(&network, feature, nodes, names, columns, edge, edges));
    TRY(basin_nodes_predict(probability, accounts.model, network, NULL, &error));
    if (node < 0) goto end;
    TRY(basin_nodes_explain(&why, accounts.model, network, (int64_t[]){node}, 1,
                            &(basin_nodes_explain_options){.probability = probability}, &error));
    memset(neighbour, 0, (size_t)nodes * 2 * sizeof *neighbour);
    memset(by_feature, 0, (size_t)(columns + 1) * 2 * sizeof *by_feature);
    for (int64_t i = 0; i < why->neighbours; i++) {
        neighbour[2 * why->neighbour[i].node] = (float)why->neighbour[i].share;
        neighbour[2 * why->neighbour[i].node + 1] = (float)why->neighbour[i].push;
    }
    for (int64_t i = 0; i < why->features; i++) {
        const basin_nodes_feature *f = &why->feature[i];
        int64_t column = f->column < 0 || f->column > columns ? columns : f->column;
        by_feature[2 * column + (f->hop > 0)] += (float)f->share;
    }
    about[0] = why->logit, about[1] = why->typical_logit, about[2] = why->own, about[3] = why->rest;
end:
    basin_nodes_explanation_free(why);
    basin_network_close(network);
    return failed;
}
