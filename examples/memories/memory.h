/* An associative memory: patterns are written down once, and recalled from damaged cues by going
 * down an energy.
 *
 * Keys xi have length 1: patterns without their mean, or, in binary memories, signs / sqrt(D).
 * States x live in the same space, so that overlaps m = xi . x lie in -1 .. 1. The separation
 * function says how overlaps attract:
 *
 *     classical   E = -sum m^2 / 2                          Hopfield 1982
 *     power       E = -sum relu(m)^n / n                    Krotov and Hopfield 2016
 *     softmax     E = -log-sum-exp(beta m) / beta + ..      Ramsauer et al. 2020
 *     entmax15, sparsemax, normmax2: its sparse relatives   Santos et al. 2024
 *     lsr         E = -log sum relu(1 - beta/2 |x - xi|^2) / beta    Hoover et al. 2025
 *
 * No step raises its energy: each maximises a linear or quadratic lower bound of -E, on the cube
 * (binary), on the sphere (classical and power) or in all of space. The one exception is the first
 * step of a binary lsr memory whose cue was erased in part, and so is shorter than a key. */
#pragma once
#include <math.h>

#include "../options.h"

typedef enum separation {
    CLASSICAL,
    POWER,
    SOFTMAX,
    ENTMAX15,
    SPARSEMAX,
    NORMMAX2,
    LSR,
    FUNCTIONS
} separation;

static const char *const function_name[FUNCTIONS] = {"classical", "power",    "softmax", "entmax15",
                                                     "sparsemax", "normmax2", "lsr"};

static separation find_function(const char *name) {
    for (int i = 0; i < FUNCTIONS; i++)
        if (!strcmp(name, function_name[i])) return (separation)i;
    quit(name, "expected classical, power, softmax, entmax15, sparsemax, normmax2 or lsr");
    return FUNCTIONS;
}

typedef struct memory {
    separation function;
    double power, beta; /* n of power; of softmax and those after it */
    bool binary;        /* states are +1 and -1: above and below the middle of the values */
    int64_t height, width, channels; /* of patterns that are pictures of values 0 .. 1; or 0 */
    int64_t count, dim;              /* M, D */
    basin_tensor patterns, keys;     /* [M, D] F32 */
    float *mean, *length;            /* [D] of the patterns; [M], of those without their mean */
    float low, high;                 /* the least and the largest value of all patterns */
} memory;

/* ---- keys ---- */

/* The key of a pattern; what is not known is 0. Returns the length before scaling. */
static double encode(float *key, const memory *m, const float *pattern, const uint8_t *known) {
    float middle = (m->low + m->high) / 2;
    double squares = 0;
    for (int64_t i = 0; i < m->dim; i++) {
        key[i] = m->binary ? (pattern[i] > middle ? 1 : -1) : pattern[i] - m->mean[i];
        if (known && !known[i]) key[i] = 0;
        squares += (double)key[i] * key[i];
    }
    double length = sqrt(m->binary ? (double)m->dim : squares);
    for (int64_t i = 0; i < m->dim && length > 0; i++) key[i] = (float)(key[i] / length);
    return length;
}

/* From the patterns and the settings. */
static void make_keys(memory *m) {
    const float *p = m->patterns.data;
    m->count = m->patterns.shape.dim[0];
    m->dim = m->patterns.shape.dim[1];
    m->mean = calloc((size_t)m->dim, sizeof *m->mean);
    m->length = calloc((size_t)m->count, sizeof *m->length);
    must(basin_tensor_new(&m->keys, BASIN_F32, m->patterns.shape, &error));
    m->low = INFINITY, m->high = -INFINITY;
    for (int64_t i = 0; i < m->count * m->dim; i++) {
        if (!isfinite(p[i])) quit("patterns", "a number is not finite");
        m->low = fminf(m->low, p[i]);
        m->high = fmaxf(m->high, p[i]);
        m->mean[i % m->dim] += p[i] / (float)m->count;
    }
    for (int64_t i = 0; i < m->count; i++) {
        float *key = (float *)m->keys.data + i * m->dim;
        m->length[i] = (float)encode(key, m, p + i * m->dim, NULL);
        if (m->length[i] == 0) quit("patterns", "one is the mean of all and has no direction");
    }
}

static void memory_free(memory *m) {
    basin_tensor_free(&m->patterns);
    basin_tensor_free(&m->keys);
    free(m->mean);
    free(m->length);
}

/* ---- files: the patterns, and the settings as metadata ---- */

static void memory_write(const char *path, const memory *m) {
    const struct {
        const char *key;
        double value;
    } number[] = {{"power", m->power},         {"beta", m->beta},
                  {"binary", m->binary},       {"height", (double)m->height},
                  {"width", (double)m->width}, {"channels", (double)m->channels}};
    basin_tensor patterns = basin_tensor_borrow(m->patterns.data, BASIN_F32, m->patterns.shape);
    basin_bundle *out;
    char value[40];
    must(basin_bundle_new(&out, NULL, &error));
    must(basin_bundle_add(out, "patterns", &patterns, &error));
    must(basin_bundle_meta_set(out, "format", "basin memory", &error));
    must(basin_bundle_meta_set(out, "function", function_name[m->function], &error));
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        snprintf(value, sizeof value, "%.17g", number[i].value);
        must(basin_bundle_meta_set(out, number[i].key, value, &error));
    }
    must(basin_bundle_write(path, out, &error));
    basin_bundle_free(out);
}

static double meta_number(const basin_bundle *in, const char *key) {
    const char *value = basin_bundle_meta(in, key);
    return value ? strtod(value, NULL) : 0;
}

static void memory_open(memory *m, const char *path) {
    basin_bundle *in;
    const basin_tensor *patterns;
    must(basin_bundle_read(&in, path, &error));
    const char *name = basin_bundle_meta(in, "function");
    if (!name) quit(path, "no memory that `memories store` wrote");
    *m = (memory){.function = find_function(name),
                  .power = meta_number(in, "power"),
                  .beta = meta_number(in, "beta"),
                  .binary = meta_number(in, "binary") != 0,
                  .height = (int64_t)meta_number(in, "height"),
                  .width = (int64_t)meta_number(in, "width"),
                  .channels = (int64_t)meta_number(in, "channels")};
    must(basin_bundle_get(&patterns, in, "patterns", &error));
    if (patterns->shape.rank != 2 || basin_shape_count(patterns->shape) < 1)
        quit(path, "patterns are not [M, D]");
    must(basin_tensor_new(&m->patterns, BASIN_F32, patterns->shape, &error));
    must(basin_tensor_convert(&m->patterns, patterns, &error));
    basin_bundle_free(in);
    make_keys(m);
}

/* ---- energies and steps ---- */

/* The memory as expressions. */
typedef struct formula {
    const memory *memory;
    basin_expr xi, beta;  /* [M, D] keys; [] */
    const basin_zoo *zoo; /* the published model */
    basin_energy energy;  /* of the descent */
    basin_term term;      /* of that, where it is another */
    basin_substep turn;
} formula;

/* Without |x|^2 / 2: on the cube that is a constant, and what is not known has no length. */
static basin_expr convex(const void *context, basin_expr x) {
    const formula *f = context;
    basin_expr half = basin_scale(basin_sum(basin_square(x), -1, 1), 0.5);
    return basin_sub(basin_energy_total(&f->zoo->energy, x), half);
}

/* The force itself becomes the state. */
static basin_expr replace(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    (void)context, (void)t;
    return basin_sub(force, x);
}

/* To the mean of the memories in reach. Where there are as many on either side, a sign stays. */
static basin_expr to_mean(const void *context, basin_expr force, basin_expr x, basin_expr t) {
    const formula *f = context;
    (void)t;
    basin_expr energy = basin_energy_total(&f->zoo->energy, x),
               one = basin_scalar(basin_expr_graph(x), 1);
    basin_expr inside = basin_exp(basin_neg(basin_mul(f->beta, energy)));
    basin_expr count = basin_maximum(basin_zoo_output(f->zoo, "support", x), one);
    basin_expr move = basin_mul(force, basin_expand_dims(basin_div(inside, count), -1, 1));
    return f->memory->binary ? basin_add(move, basin_scale(x, 1e-4)) : move;
}

static basin_expr to_signs(const void *context, basin_expr x, basin_expr t) {
    const formula *f = context;
    (void)t;
    return basin_scale(basin_sign(x), 1 / sqrt((double)f->memory->dim));
}

static basin_expr to_sphere(const void *context, basin_expr x, basin_expr t) {
    const formula *f = context;
    (void)t;
    return basin_to_sphere(x, f->memory->dim);
}

static void write_formula(formula *f, const memory *m, basin_graph *graph) {
    bool dense = m->function <= POWER, lsr = m->function == LSR;
    *f = (formula){.memory = m,
                   .xi = basin_state(graph, "keys", m->keys.shape),
                   .beta = basin_scalar(graph, m->beta),
                   .turn = {.context = f}};
    basin_zoo_value value[3] = {{"xi", .expr = f->xi}};
    int values = 1;
    if (m->function == POWER) value[values++] = (basin_zoo_value){"power", .number = m->power};
    if (!dense) value[values++] = (basin_zoo_value){"beta", .expr = f->beta};
    if (lsr) value[values++] = (basin_zoo_value){"epsilon", .number = 1e-12};
    const char *name = m->function == SOFTMAX ? "hopfield" : function_name[m->function];
    f->zoo = basin_zoo_build(graph, name, value, values);
    must(basin_graph_check(graph, &error));
    if (lsr)
        f->turn.move = to_mean;
    else if (dense || m->binary)
        f->turn.move = replace;
    if (dense) f->turn.project = to_sphere;
    if (m->binary) f->turn.project = to_signs;
    f->energy = f->zoo->energy;
    f->term = (basin_term){"memories", convex, f};
    if (m->binary && !dense && !lsr) f->energy.term = &f->term;
}

/* Each memory's share of a state, [cues, M]; they sum to 1 at most. */
static basin_expr shares(const formula *f, basin_expr x) {
    const memory *m = f->memory;
    basin_expr overlap = basin_matmul_t(x, false, f->xi, true), w = overlap;
    if (m->function > POWER && m->function < LSR) return basin_zoo_output(f->zoo, "recall", x);
    if (m->function == POWER) w = basin_power_scalar(basin_relu(overlap), m->power - 1);
    if (m->function == LSR) { /* 1 where 1 - beta/2 (|x|^2 + 1 - 2 overlap) > 0 */
        basin_expr length = basin_expand_dims(basin_sum(basin_square(x), -1, 1), -1, 1);
        basin_expr gap = basin_offset(basin_sub(length, basin_scale(overlap, 2)), 1);
        w = basin_heaviside(basin_offset(basin_scale(gap, -m->beta / 2), 1));
    }
    basin_expr total = basin_expand_dims(basin_sum(basin_abs(w), -1, 1), -1, 1);
    return basin_div(w, basin_maximum(total, basin_scalar(basin_expr_graph(x), 1e-30)));
}

/* ---- recall ---- */

typedef struct recalled {
    basin_descent_result path; /* energies by step, and whether all states converged */
    float *value;              /* [cues, D] what was recalled, in the units of the patterns */
    int32_t *nearest;          /* [cues] the stored pattern whose key is nearest to the end */
} recalled;

/* Reads the nearest pattern and the mean of the patterns by shares off the end of the descent. */
static void read_end(recalled *r, const memory *m, const formula *f, basin_engine *engine,
                     basin_expr x) {
    int64_t cues = basin_expr_shape(x).dim[0];
    basin_tensor lengths = basin_tensor_borrow(m->length, BASIN_F32, BASIN_SHAPE(m->count));
    basin_expr length = basin_input(engine->graph, "length", lengths.shape), xi = f->xi;
    basin_expr out[] = {basin_argmax(basin_matmul_t(x, false, xi, true), 1),
                        basin_matmul(basin_mul(shares(f, x), length), xi)};
    basin_feed given[] = {{x, r->path.x}, {length, &lengths}};
    basin_tensor end[2];
    must(basin_engine_compute(engine, end, out, 2, given, 2, &error));
    r->value = calloc((size_t)(cues * m->dim), sizeof *r->value);
    r->nearest = calloc((size_t)cues, sizeof *r->nearest);
    for (int64_t i = 0; i < cues; i++) r->nearest[i] = (int32_t)basin_tensor_at(&end[0], i);
    for (int64_t i = 0; i < cues * m->dim; i++) {
        double x_i = basin_tensor_at(r->path.x, i);
        float sign = x_i > 0 ? m->high : x_i < 0 ? m->low : (m->low + m->high) / 2;
        float value = m->mean[i % m->dim] + (float)basin_tensor_at(&end[1], i);
        r->value[i] = m->binary ? sign : value;
    }
    basin_tensor_free(&end[0]);
    basin_tensor_free(&end[1]);
}

/* Cues [cues, D], of which known [cues, D] says what is not erased, go down the energy. */
static void recall(recalled *r, const memory *m, basin_engine *engine, const float *cue,
                   const uint8_t *known, int64_t cues, int steps) {
    basin_shape shape = BASIN_SHAPE(cues, m->dim);
    basin_tensor start;
    formula f;
    must(basin_tensor_new(&start, BASIN_F32, shape, &error));
    for (int64_t i = 0; i < cues * m->dim; i += m->dim)
        encode((float *)start.data + i, m, cue + i, known + i);
    must(basin_store_write(engine->store, "keys", &m->keys, &error));
    basin_expr x = basin_input(engine->graph, "x", shape);
    write_formula(&f, m, engine->graph);
    basin_descent_spec spec = {.steps = steps, .alpha = 1, .substep = &f.turn, .substeps = 1};
    basin_stop stop = {.tolerance = 1e-6};
    must(basin_engine_descend(engine, &r->path, &f.energy, &start, &spec, &stop, &error));
    read_end(r, m, &f, engine, x);
    basin_tensor_free(&start);
}

static void recalled_free(recalled *r) {
    basin_descent_result_free(&r->path);
    free(r->value);
    free(r->nearest);
}

/* The cosine of the keys of two patterns; what is not known of the first is 0. */
static double overlap_of(const memory *m, const float *a, const uint8_t *known, const float *b) {
    double ab = 0, aa = 0, bb = 0, middle = ((double)m->low + m->high) / 2;
    for (int64_t i = 0; i < m->dim; i++) {
        double u = m->binary ? (a[i] > middle) - (a[i] < middle) : a[i] - m->mean[i];
        double v = m->binary ? (b[i] > middle) - (b[i] < middle) : b[i] - m->mean[i];
        if (known && !known[i]) u = 0;
        ab += u * v, aa += u * u, bb += v * v;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}
