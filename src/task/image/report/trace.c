/* A descent step by step (Algorithm 1, figure 4): one plan encodes, one takes a step and decodes
 * tokens and forces; see look.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/image/report/look.h"

typedef struct stepper {
    basin_image_graph graph;
    basin_plan *encoder, *plan;
    basin_pattern pattern;
    basin_block_bound bound;
    basin_energy energy;
    basin_expr first;                     /* tokens [B, N (+ 1), D] of the patches */
    basin_expr tokens, next;              /* the same before a step (an input) and after it */
    basin_expr decoded, force[2];         /* [B, N, P] */
    basin_expr part[2], square[2];        /* [B], [B, N (+ 1)] mean square of a token's force */
    basin_expr use;                       /* [M], or NULL */
    basin_tensor state, picture, numbers; /* tokens; [B, N, P]; [B, N (+ 1)] */
} stepper;

/* ---- the expressions ---- */

static void build_part(stepper *s, basin_expr g, int p) {
    s->part[p] = s->energy.part(s->energy.context, g, p);
    basin_expr force = basin_neg(basin_grad(s->part[p], g));
    s->force[p] = basin_image_decode(&s->graph.net.et, force);
    s->square[p] = basin_mean(basin_square(force), -1, 1);
    s->next = basin_add(s->next, basin_scale(force, s->graph.net.et.config.descent.alpha));
}

/* What each memory has of the Hopfield energy, up to a factor; of a log-sum-exp, of its weights. */
static basin_expr build_use(const basin_block *block, basin_expr g) {
    basin_expr h = basin_matmul_t(g, false, block->xi, true), use = NULL;
    switch (block->config.hopfield) {
    case BASIN_HOPFIELD_RELU: use = basin_square(basin_relu(h)); break;
    case BASIN_HOPFIELD_POWER: use = basin_pow(basin_relu(h), block->config.power); break;
    case BASIN_HOPFIELD_SOFTMAX: use = basin_softmax(h); break;
    }
    return basin_sum(use, 0, 2);
}

static void build(stepper *s) {
    basin_image *m = &s->graph.net.et;
    s->pattern = (basin_pattern){.exclude_self = !m->config.self_attention};
    s->bound = (basin_block_bound){.block = &m->block, .pattern = &s->pattern};
    s->energy = basin_block_energy(&s->bound);
    s->first = basin_image_encode(m, s->graph.patches, s->graph.replaced);
    s->tokens = basin_input(s->graph.graph, "tokens", basin_expr_shape(s->first));
    s->decoded = basin_image_decode(m, s->tokens);
    s->next = s->tokens;
    basin_expr g = basin_block_norm(&m->block, s->tokens);
    for (int p = 0; p < s->energy.parts; p++) build_part(s, g, p);
    if (m->block.xi) s->use = build_use(&m->block, g);
}

static basin_status make_plans(stepper *s, basin_image_model *model, basin_error *error) {
    basin_expr output[9] = {s->decoded, s->next};
    int outputs = 2;
    for (int p = 0; p < s->energy.parts; p++) {
        output[outputs++] = s->force[p];
        output[outputs++] = s->part[p];
        output[outputs++] = s->square[p];
    }
    if (s->use) output[outputs++] = s->use;
    basin_plan_spec first = {.output = &s->first, .outputs = 1};
    basin_plan_spec step = {.output = output, .outputs = outputs};
    basin_status status = basin_plan_new(&s->encoder, model->store, &first, error);
    if (!status) status = basin_plan_new(&s->plan, model->store, &step, error);
    return status;
}

static basin_status make_tensors(stepper *s, basin_error *error) {
    basin_shape shape = basin_expr_shape(s->tokens);
    basin_status status = basin_tensor_new(&s->state, BASIN_F32, shape, error);
    if (!status)
        status = basin_tensor_new(&s->picture, BASIN_F32, basin_expr_shape(s->decoded), error);
    shape.rank = 2;
    if (!status) status = basin_tensor_new(&s->numbers, BASIN_F64, shape, error);
    return status;
}

static void stepper_free(stepper *s) {
    basin_plan_free(s->encoder);
    basin_plan_free(s->plan);
    basin_tensor_free(&s->state);
    basin_tensor_free(&s->picture);
    basin_tensor_free(&s->numbers);
    basin_image_graph_free(&s->graph);
}

/* ---- running ---- */

static basin_status read_picture(float *out, stepper *s, basin_expr from, int step,
                                 basin_error *error) {
    basin_status status = basin_plan_read(s->plan, from, &s->picture, error);
    size_t bytes = basin_tensor_bytes(&s->picture);
    if (!status) memcpy((char *)out + (size_t)step * bytes, s->picture.data, bytes);
    return status;
}

static basin_status read_mean(double *mean, basin_plan *plan, basin_expr from, basin_error *error) {
    basin_tensor each;
    basin_status status = basin_tensor_new(&each, BASIN_F64, basin_expr_shape(from), error);
    if (status) return status;
    status = basin_plan_read(plan, from, &each, error);
    int64_t count = basin_shape_count(each.shape);
    *mean = 0;
    for (int64_t i = 0; i < count; i++) *mean += ((double *)each.data)[i] / (double)count;
    basin_tensor_free(&each);
    return status;
}

/* The root mean square over replaced tokens, all pictures together. */
static basin_status read_size(double *size, stepper *s, basin_expr from, const uint8_t *mask,
                              basin_error *error) {
    basin_status status = basin_plan_read(s->plan, from, &s->numbers, error);
    if (status) return status;
    int64_t all = s->numbers.shape.dim[1], N = s->picture.shape.dim[1], count = 0;
    double sum = 0;
    for (int64_t b = 0; b < s->numbers.shape.dim[0]; b++)
        for (int64_t n = 0; n < N; n++)
            if (mask[b * N + n] == BASIN_PATCH_REPLACED) {
                sum += ((double *)s->numbers.data)[b * all + (all - N) + n];
                count++;
            }
    *size = count ? sqrt(sum / (double)count) : 0;
    return BASIN_OK;
}

static basin_status record(basin_image_trace *t, stepper *s, const uint8_t *mask, int step,
                           basin_error *error) {
    basin_status status = basin_plan_write(s->plan, s->tokens, &s->state, error);
    if (!status) status = basin_plan_run(s->plan, error);
    if (!status) status = read_picture(t->token, s, s->decoded, step, error);
    for (int p = 0; p < t->parts && !status; p++) {
        status = read_picture(t->force[p], s, s->force[p], step, error);
        if (!status) status = read_mean(&t->energy[p][step], s->plan, s->part[p], error);
        if (!status) status = read_size(&t->size[p][step], s, s->square[p], mask, error);
    }
    if (!status && t->use && step == t->steps) {
        basin_tensor use = basin_tensor_borrow(t->use, BASIN_F64, basin_expr_shape(s->use));
        status = basin_plan_read(s->plan, s->use, &use, error);
    }
    if (!status) status = basin_plan_read(s->plan, s->next, &s->state, error);
    return status;
}

static basin_status write_inputs(basin_plan *plan, const basin_image_graph *g, const float *patches,
                                 const uint8_t *mask, basin_error *error) {
    basin_shape shape = basin_expr_shape(g->patches);
    basin_tensor replaced;
    basin_tensor x = basin_tensor_borrow((void *)(uintptr_t)patches, BASIN_F32, shape);
    shape.rank = 2;
    basin_status status = basin_tensor_new(&replaced, BASIN_F32, shape, error);
    if (status) return status;
    for (int64_t i = 0; i < basin_shape_count(shape); i++)
        ((float *)replaced.data)[i] = mask[i] == BASIN_PATCH_REPLACED;
    status = basin_plan_write(plan, g->patches, &x, error);
    if (!status) status = basin_plan_write(plan, g->replaced, &replaced, error);
    basin_tensor_free(&replaced);
    return status;
}

static basin_status descend(basin_image_trace *t, basin_image_model *model, const float *patches,
                            const uint8_t *mask, basin_error *error) {
    stepper s = {0};
    basin_image_settings settings = basin_image_run_settings(model);
    basin_status status = basin_image_graph_new(&s.graph, &settings, t->count, error);
    if (status) return status;
    build(&s);
    status = basin_image_graph_check(&s.graph, error);
    if (!status) status = make_plans(&s, model, error);
    if (!status) status = make_tensors(&s, error);
    if (!status) status = write_inputs(s.encoder, &s.graph, patches, mask, error);
    if (!status) status = basin_plan_run(s.encoder, error);
    if (!status) status = basin_plan_read(s.encoder, s.first, &s.state, error);
    for (int step = 0; step <= t->steps && !status; step++)
        status = record(t, &s, mask, step, error);
    stepper_free(&s);
    return status;
}

/* The layers of a ViT, decoded as if each were the last. */
static basin_status pass_layers(basin_image_trace *t, basin_image_model *model,
                                const float *patches, const uint8_t *mask, basin_error *error) {
    basin_expr layer[BASIN_MAX_LAYERS + 1];
    basin_image_graph g;
    basin_plan *plan = NULL;
    basin_status status = basin_image_graph_new(&g, &model->settings, t->count, error);
    if (status) return status;
    basin_vit_tokens(&g.net.vit, g.patches, g.replaced, layer);
    for (int i = 0; i <= t->steps; i++) layer[i] = basin_vit_decode(&g.net.vit, layer[i]);
    basin_plan_spec spec = {.output = layer, .outputs = t->steps + 1};
    status = basin_image_graph_check(&g, error);
    if (!status) status = basin_plan_new(&plan, model->store, &spec, error);
    if (!status) status = write_inputs(plan, &g, patches, mask, error);
    if (!status) status = basin_plan_run(plan, error);
    for (int i = 0; i <= t->steps && !status; i++) {
        basin_shape shape = basin_expr_shape(layer[i]);
        basin_tensor out =
            basin_tensor_borrow(t->token + i * basin_shape_count(shape), BASIN_F32, shape);
        status = basin_plan_read(plan, layer[i], &out, error);
    }
    basin_plan_free(plan);
    basin_image_graph_free(&g);
    return status;
}

/* ---- the whole ---- */

static basin_status make_room(basin_image_trace *t, const basin_image_settings *s,
                              basin_error *error) {
    size_t frames = (size_t)(t->steps + 1), bytes = sizeof(float);
    int64_t sizes[] = {t->count, basin_image_tokens(s), basin_image_patch_values(s)};
    bool fits = basin_size_multiply(&bytes, bytes, frames), good = true;
    for (int i = 0; i < 3; i++) fits = fits && basin_size_multiply(&bytes, bytes, (size_t)sizes[i]);
    if (fits) {
        t->token = basin_array_new(1, bytes);
        good = t->token != NULL;
        for (int p = 0; p < t->parts && good; p++) {
            t->force[p] = basin_array_new(1, bytes);
            t->energy[p] = basin_array_new(frames, sizeof(double));
            t->size[p] = basin_array_new(frames, sizeof(double));
            good = t->force[p] && t->energy[p] && t->size[p];
        }
        bool memories = t->parts > 0 && s->hopfield;
        if (memories) t->use = basin_array_new((size_t)s->memories, sizeof *t->use);
        good = good && (!memories || t->use);
    }
    if (fits && good) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "no memory to trace %lld pictures",
                      (long long)t->count);
}

basin_status basin_image_trace_new(basin_image_trace *trace, basin_image_model *model,
                                   const float *patches, const uint8_t *mask, int64_t count,
                                   basin_error *error) {
    const basin_image_settings *s = &model->settings;
    bool et = !strcmp(s->arch, "et");
    *trace =
        (basin_image_trace){.steps = (int)basin_image_run_settings(model).steps, .count = count};
    if (et && s->attention) trace->part[trace->parts++] = "attention";
    if (et && s->hopfield) trace->part[trace->parts++] = "hopfield";
    basin_status status = make_room(trace, s, error);
    if (!status)
        status = et ? descend(trace, model, patches, mask, error)
                    : pass_layers(trace, model, patches, mask, error);
    if (status) basin_image_trace_free(trace);
    return status;
}

void basin_image_trace_free(basin_image_trace *trace) {
    free(trace->token);
    free(trace->use);
    for (int p = 0; p < 2; p++) {
        free(trace->force[p]);
        free(trace->energy[p]);
        free(trace->size[p]);
    }
    *trace = (basin_image_trace){0};
}
