/* A descent step by step (Algorithm 1, figure 4) in one plan: tokens and forces decoded, energies,
 * attention; and weights as patches (appendix B). See report.h. */
#include "base/sort.h"
#include "base/states.h"
#include "tasks/common/layers.h"
#include "tasks/pictures/report/report.h"

/* ---- shares of attention, as bytes (equation 3's softmax over keys) ---- */

static basin_status make_attention(basin_image_trace *t, const basin_image_settings *s,
                                   size_t bytes, basin_error *error) {
    enum { PICTURES = 2 };
    basin_image_attention *a = &t->attention;
    bool et = !strcmp(s->arch, "et");
    int last = et ? t->steps : t->steps - 1;
    if (!bytes || (et && !s->attention)) return BASIN_OK;
    *a = (basin_image_attention){.heads = s->heads, .tokens = basin_image_tokens(s)};
    a->keys = a->tokens + s->cls;
    double one = (double)a->heads * (double)a->tokens * (double)a->keys;
    int64_t maps = (int64_t)((double)bytes / one); /* pictures times steps */
    if (maps < 1) return BASIN_OK;                 /* even one is too much for a page */
    a->pictures = basin_int_min(maps, basin_int_min(t->count, PICTURES));
    a->steps = (int)basin_int_min(maps / a->pictures, last + 1);
    BASIN_TRY(BASIN_NEW_RAW(&a->step, a->steps, "steps", error));
    for (int i = 0; i < a->steps; i++)
        a->step[i] = a->steps > 1 ? (int)((int64_t)i * last / (a->steps - 1)) : last;
    return BASIN_NEW_RAW(&a->share, (double)(a->pictures * a->steps) * one, "maps of attention",
                         error);
}

/* Where that step is kept; -1: nowhere. */
static int place_of(const basin_image_attention *a, int step) {
    for (int i = 0; a->share && i < a->steps; i++)
        if (a->step[i] == step) return i;
    return -1;
}

/* Row `row` [picture, head, patch] of the shares of a step, its greatest as 255. */
static void set_row(basin_image_attention *a, int at, const float *shares, int64_t row) {
    int64_t n = row % a->tokens, h = row / a->tokens % a->heads, b = row / a->tokens / a->heads;
    int64_t query = a->keys - a->tokens + n; /* past CLS */
    const float *from = shares + ((b * a->heads + h) * a->keys + query) * a->keys;
    uint8_t *to = a->share + (((b * a->steps + at) * a->heads + h) * a->tokens + n) * a->keys;
    float max = 0;
    for (int64_t k = 0; k < a->keys; k++) max = fmaxf(max, from[k]);
    for (int64_t k = 0; k < a->keys; k++) to[k] = basin_image_byte((double)(from[k] / max));
}

/* ---- expressions ---- */

/* What is seen of a step. */
typedef struct view {
    basin_expr decoded, force[2];    /* [B, N, P] */
    basin_expr energy[2], square[2]; /* [B]; square: of the force on replaced tokens, mean */
    basin_expr share;                /* [B, H, N (+ 1), N (+ 1)], or NULL */
} view;

typedef struct tracer {
    basin_image_graph graph;
    basin_plan *plan;
    view *step;     /* [T + 1] */
    basin_expr use; /* [M], or NULL */
    /* memory, key, query [rows, P], or NULL; the gain as it is used */
    basin_expr weight[BASIN_IMAGE_WEIGHTS], gamma;
} tracer;

static void tracer_free(tracer *s) {
    basin_plan_free(s->plan);
    basin_image_graph_free(&s->graph);
    free(s->step);
}

/* Each memory's share of the Hopfield energy, up to a factor; for a log-sum-exp, of its weights. */
static basin_expr build_use(const basin_block *block, basin_expr g) {
    basin_expr h = basin_matmul_t(g, false, block->xi, true), use = NULL;
    switch (block->config.hopfield) {
    case BASIN_HOPFIELD_RELU: use = basin_square(basin_relu(h)); break;
    case BASIN_HOPFIELD_POWER: use = basin_power_scalar(basin_relu(h), block->config.power); break;
    case BASIN_HOPFIELD_SOFTMAX: use = basin_softmax(h, -1); break;
    }
    return basin_sum(use, 0, 2);
}

/* Mean square of the force over the replaced tokens of each picture. */
static basin_expr build_square(const tracer *s, basin_expr force) {
    basin_expr square = basin_mean(basin_square(force), -1, 1), replaced = s->graph.replaced;
    int64_t N = basin_expr_shape(replaced).dim[1];
    square = basin_slice(square, 1, basin_expr_shape(square).dim[1] - N, N);
    basin_expr count = basin_maximum(basin_sum(replaced, 1, 1), basin_scalar(s->graph.graph, 1));
    return basin_div(basin_sum(basin_mul(square, replaced), 1, 1), count);
}

static void build_parts(tracer *s, view *v, basin_expr tokens, int parts) {
    const basin_image_net *net = &s->graph.net;
    basin_pattern pattern;
    basin_block_bound bound;
    basin_energy energy = basin_image_net_energy(&bound, &pattern, net);
    basin_expr g = basin_block_norm(&net->block, tokens);
    for (int p = 0; p < parts; p++) {
        v->energy[p] = basin_energy_term(&energy, g, p);
        basin_expr force = basin_neg(basin_grad(v->energy[p], g));
        v->force[p] = basin_image_net_decode(net, force);
        v->square[p] = build_square(s, force);
    }
    s->use = net->block.xi ? build_use(&net->block, g) : NULL; /* the last one counts */
}

/* Parameters of the block, read as rows [rows, D] and decoded as tokens are. */
static void build_weights(tracer *s) {
    const basin_block *block = &s->graph.net.block;
    const basin_expr state[BASIN_IMAGE_WEIGHTS] = {block->xi, block->wk, block->wq};
    s->gamma = basin_scale(block->gamma, 1);
    for (int i = 0; i < BASIN_IMAGE_WEIGHTS; i++) {
        if (!state[i]) continue;
        basin_expr rows = basin_reshape(state[i], BASIN_SHAPE(-1, block->config.dim));
        s->weight[i] = basin_model_affine(basin_block_norm(block, rows), s->graph.net.dec_w,
                                          s->graph.net.dec_b);
    }
}

static basin_status build(tracer *s, const basin_image_trace *t, basin_image_model *model,
                          basin_error *error) {
    const basin_image_net *net = &s->graph.net;
    basin_expr x = basin_image_net_encode(net, s->graph.patches, s->graph.replaced);
    int outputs = 0;
    BASIN_SCRATCH_RAW(basin_expr, output, (t->steps + 1) * 8 + 2 + BASIN_IMAGE_WEIGHTS, "a trace",
                      error);
    BASIN_TRY(BASIN_NEW(&s->step, t->steps + 1, "a trace", error));
    for (int i = 0; i <= t->steps; i++) {
        view *v = &s->step[i];
        output[outputs++] = v->decoded = basin_image_net_decode(net, x);
        if (t->parts) build_parts(s, v, x, t->parts);
        for (int p = 0; p < t->parts; p++) {
            output[outputs++] = v->force[p];
            output[outputs++] = v->energy[p];
            output[outputs++] = v->square[p];
        }
        if (place_of(&t->attention, i) >= 0)
            output[outputs++] = v->share = basin_image_net_attention(net, x, i);
        if (i < t->steps) x = basin_image_net_step(net, x, i);
    }
    if (s->use) output[outputs++] = s->use;
    if (t->parts) build_weights(s);
    if (t->parts) output[outputs++] = s->gamma;
    for (int i = 0; i < BASIN_IMAGE_WEIGHTS; i++)
        if (s->weight[i]) output[outputs++] = s->weight[i];
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    BASIN_TRY(basin_graph_check(s->graph.graph, error));
    return basin_plan_new(&s->plan, model->store, &spec, error);
}

/* ---- running ---- */

static basin_status read_shares(basin_image_attention *a, int at, const tracer *s, basin_expr share,
                                basin_error *error) {
    int64_t count = basin_shape_count(basin_expr_shape(share));
    BASIN_SCRATCH_RAW(float, shares, count, "maps of attention", error);
    BASIN_TRY(basin_values_read(s->plan, share, shares, BASIN_F32, error));
    for (int64_t row = 0; row < a->pictures * a->heads * a->tokens; row++)
        set_row(a, at, shares, row);
    return BASIN_OK;
}

static basin_status read_step(basin_image_trace *t, const tracer *s, int i, basin_error *error) {
    const view *v = &s->step[i];
    int64_t at = i * basin_shape_count(basin_expr_shape(v->decoded));
    BASIN_TRY(basin_values_read(s->plan, v->decoded, t->token + at, BASIN_F32, error));
    for (int p = 0; p < t->parts; p++) {
        double *energy = t->energy[p] + i * t->count, *square = t->square[p] + i * t->count;
        BASIN_TRY(basin_values_read(s->plan, v->force[p], t->force[p] + at, BASIN_F32, error));
        BASIN_TRY(basin_values_read(s->plan, v->energy[p], energy, BASIN_F64, error));
        BASIN_TRY(basin_values_read(s->plan, v->square[p], square, BASIN_F64, error));
    }
    if (!v->share) return BASIN_OK;
    return read_shares(&t->attention, place_of(&t->attention, i), s, v->share, error);
}

static basin_status read_weights(basin_image_trace *t, const tracer *s, basin_error *error) {
    if (t->use) BASIN_TRY(basin_values_read(s->plan, s->use, t->use, BASIN_F64, error));
    if (t->parts) BASIN_TRY(basin_values_read(s->plan, s->gamma, &t->gamma, BASIN_F64, error));
    for (int i = 0; i < BASIN_IMAGE_WEIGHTS; i++) {
        basin_expr from = s->weight[i];
        if (!from) continue;
        BASIN_TRY(BASIN_NEW_RAW(&t->weight[i], basin_shape_count(basin_expr_shape(from)),
                                "decoded weights", error));
        BASIN_TRY(basin_values_read(s->plan, from, t->weight[i], BASIN_F32, error));
    }
    return BASIN_OK;
}

static basin_status run(basin_image_trace *t, basin_image_model *model, const float *patches,
                        const uint8_t *mask, basin_error *error) {
    BASIN_AT_EXIT(tracer_free) tracer s = {0};
    basin_image_settings settings = basin_image_run_settings(model);
    BASIN_TRY(basin_image_graph_new(&s.graph, &settings, t->count, error));
    BASIN_TRY(build(&s, t, model, error));
    BASIN_TRY(basin_image_write_batch(s.plan, &s.graph, patches, mask, t->count, error));
    BASIN_TRY(basin_plan_run(s.plan, error));
    for (int i = 0; i <= t->steps; i++) BASIN_TRY(read_step(t, &s, i, error));
    return read_weights(t, &s, error);
}

static basin_status make_room(basin_image_trace *t, const basin_image_settings *s,
                              basin_error *error) {
    size_t each = (size_t)(t->steps + 1) * (size_t)t->count;
    size_t values = (size_t)(basin_image_tokens(s) * basin_image_patch_values(s));
    if (!basin_size_multiply(&values, values, each)) return basin_fail_memory(error, "a trace");
    BASIN_TRY(BASIN_NEW_RAW(&t->token, values, "a trace", error));
    for (int p = 0; p < t->parts; p++) {
        BASIN_TRY(BASIN_NEW_RAW(&t->force[p], values, "a trace", error));
        BASIN_TRY(BASIN_NEW_RAW(&t->energy[p], each, "a trace", error));
        BASIN_TRY(BASIN_NEW_RAW(&t->square[p], each, "a trace", error));
    }
    if (!t->parts || !s->hopfield) return BASIN_OK;
    return BASIN_NEW_RAW(&t->use, s->memories, "a trace", error);
}

basin_status basin_image_trace_new(basin_image_trace *trace, basin_image_model *model,
                                   const float *patches, const uint8_t *mask, int64_t count,
                                   size_t bytes, basin_error *error) {
    const basin_image_settings *s = &model->settings;
    bool et = !strcmp(s->arch, "et");
    *trace = (basin_image_trace){.gamma = NAN};
    if (s->implicit)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "the model descends to a fixed point (implicit), in no fixed number of "
                          "steps; frames and reports need a model of steps");
    trace->steps = (int)basin_image_run_settings(model).steps;
    trace->count = count;
    if (et && s->attention) trace->part[trace->parts++] = "attention";
    if (et && s->hopfield) trace->part[trace->parts++] = "hopfield";
    BASIN_TRY_OR(make_room(trace, s, error), basin_image_trace_free(trace));
    BASIN_TRY_OR(make_attention(trace, s, bytes, error), basin_image_trace_free(trace));
    BASIN_TRY_OR(run(trace, model, patches, mask, error), basin_image_trace_free(trace));
    return BASIN_OK;
}

void basin_image_trace_free(basin_image_trace *trace) {
    BASIN_FREE(trace->token, trace->use, trace->attention.step, trace->attention.share);
    for (int i = 0; i < BASIN_IMAGE_WEIGHTS; i++) free(trace->weight[i]);
    for (int p = 0; p < 2; p++) {
        BASIN_FREE(trace->force[p], trace->energy[p], trace->square[p]);
    }
    *trace = (basin_image_trace){0};
}

int64_t basin_image_trace_rises(const basin_image_trace *t) {
    int64_t rises = 0;
    for (int64_t i = 0; i < t->count && t->parts; i++) {
        double before = INFINITY;
        for (int step = 0; step <= t->steps; step++) {
            double total = 0;
            for (int p = 0; p < t->parts; p++) total += t->energy[p][step * t->count + i];
            /* Beyond what float rounds: sums of many terms waver in the last digits. */
            rises += total > before + 1e-5 * fabs(before);
            before = total;
        }
    }
    return rises;
}

/* ---- pictures of patches ---- */

uint8_t basin_image_byte(double value) { return (uint8_t)lrint(255 * fmin(fmax(value, 0), 1)); }

basin_status basin_image_sheet_picture(basin_picture *picture, const float *patches,
                                       const uint8_t *mask, const basin_image_settings *s,
                                       basin_error *error) {
    enum { GREY = 128 };
    basin_patching patching = basin_image_patching(s);
    int64_t across = s->size / s->patch, row = s->size * s->channels,
            width = s->patch * s->channels;
    BASIN_TRY(basin_picture_resize_memory(picture, s->size, s->size, (int)s->channels, error));
    basin_patches_to_pixels(picture->pixel, patches, &patching);
    for (int64_t n = 0; mask && n < across * across; n++)
        for (int64_t y = 0; y < s->patch && mask[n] == BASIN_PATCH_REPLACED; y++)
            memset(picture->pixel + (n / across * s->patch + y) * row + n % across * width, GREY,
                   (size_t)width);
    return BASIN_OK;
}
