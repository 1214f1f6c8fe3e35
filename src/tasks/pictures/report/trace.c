/* A descent step by step (Algorithm 1, figure 4): one plan encodes, an observer of
 * the descent decodes tokens and forces; with attention, and errors by step. See report.h. */
#include "base/sort.h"
#include "base/states.h"
#include "tasks/pictures/report/report.h"

/* ---- shares of attention, as bytes (equation 3's softmax over keys) ---- */

basin_status basin_image_attention_new(basin_image_attention *a, const basin_image_settings *s,
                                       int64_t pictures, int last, size_t bytes,
                                       basin_error *error) {
    int64_t N = basin_image_tokens(s);
    *a = (basin_image_attention){0};
    if (!strcmp(s->arch, "et") && !s->attention) return BASIN_OK;
    *a = (basin_image_attention){.heads = s->heads, .tokens = N, .keys = N + s->cls};
    double one = (double)a->heads * (double)a->tokens * (double)a->keys;
    int64_t maps = (int64_t)((double)bytes / one); /* pictures times steps */
    if (maps < 1) return BASIN_OK;                 /* even one is too much for a page */
    int64_t few = basin_int_min(pictures, 2), whole = maps / (last + 1);
    a->pictures = basin_int_min(maps, basin_int_min(pictures, basin_int_max(whole, few)));
    a->steps = (int)basin_int_min(maps / a->pictures, last + 1);
    BASIN_TRY(BASIN_NEW_RAW(&a->step, a->steps, "steps", error));
    for (int i = 0; i < a->steps; i++) /* evenly spread */
        a->step[i] = a->steps > 1 ? (int)((int64_t)i * last / (a->steps - 1)) : last;
    return BASIN_NEW_RAW(&a->share, (double)(a->pictures * a->steps) * one, "maps of attention",
                         error);
}

void basin_image_attention_free(basin_image_attention *a) {
    BASIN_FREE(a->step, a->share);
    *a = (basin_image_attention){0};
}

/* Where that step is kept; -1: nowhere. */
static int place_of(const basin_image_attention *a, int step) {
    for (int i = 0; a && i < a->steps; i++)
        if (a->step[i] == step) return i;
    return -1;
}

/* exp(score - greatest) of one query and all keys, and the bytes of it. */
static void set_row(uint8_t *share, double *score, const float *query, const float *key,
                    const basin_image_attention *a, int64_t self, int64_t head_dim) {
    double max = -INFINITY;
    for (int64_t k = 0; k < a->keys; k++) {
        score[k] = k == self ? -INFINITY : 0;
        for (int64_t y = 0; y < head_dim && k != self; y++)
            score[k] += (double)query[y] * key[k * a->heads * head_dim + y];
        max = fmax(max, score[k]);
    }
    for (int64_t k = 0; k < a->keys; k++)
        share[k] = k == self ? 0 : (uint8_t)lrint(255 * exp(score[k] - max));
}

/* Fills in one of the steps from queries, times beta, and keys [count, keys, H, Y]. */
static basin_status set_shares(basin_image_attention *a, int at, const float *query,
                               const float *key, int64_t head_dim, bool exclude_self,
                               basin_error *error) {
    int64_t row = a->heads * head_dim, skip = a->keys - a->tokens;
    BASIN_SCRATCH_RAW(double, score, a->keys, "scores of attention", error);
    for (int64_t b = 0; b < a->pictures; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t n = 0; n < a->tokens; n++) {
                int64_t to = ((b * a->steps + at) * a->heads + h) * a->tokens + n;
                int64_t from = (b * a->keys + skip + n) * row + h * head_dim;
                set_row(a->share + to * a->keys, score, query + from,
                        key + b * a->keys * row + h * head_dim, a, exclude_self ? skip + n : -1,
                        head_dim);
            }
    return BASIN_OK;
}

/* ---- an observer of the descent ---- */

typedef struct watcher {
    basin_image_trace *trace;
    const uint8_t *mask; /* [B, N] */
    basin_image_graph graph;
    basin_plan *encoder, *plan; /* plan: what is seen of the tokens */
    basin_descent *descent;
    basin_pattern pattern;
    basin_expr first;                     /* tokens [B, N (+ 1), D] of the patches */
    basin_expr decoded, force[2];         /* [B, N, P] */
    basin_expr square[2];                 /* [B, N (+ 1)] mean square of a token's force */
    basin_expr use;                       /* [M], or NULL */
    basin_expr query, key;                /* [B, N (+ 1), H, Y], queries times beta; or NULL */
    basin_tensor state, picture, numbers; /* tokens; [B, N, P]; [B, N (+ 1)] */
} watcher;

/* ---- the expressions ---- */

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

/* g [B, N, D] by the heads' matrices w [H, Y, D] -> [B, N, H, Y] */
static basin_expr project(basin_expr g, basin_expr w) {
    basin_shape s = basin_expr_shape(w), tokens = basin_expr_shape(g);
    basin_expr flat = basin_reshape(w, BASIN_SHAPE(s.dim[0] * s.dim[1], s.dim[2]));
    return basin_reshape(basin_matmul_t(g, false, flat, true),
                         BASIN_SHAPE(tokens.dim[0], tokens.dim[1], s.dim[0], s.dim[1]));
}

static void build_attention(watcher *s, basin_expr g) {
    const basin_block *b = &s->graph.net.et.block;
    basin_expr beta = basin_reshape(b->beta, BASIN_SHAPE(b->config.heads, 1));
    s->query = basin_mul(project(g, b->wq), beta);
    s->key = project(g, b->wk);
}

static basin_observer observe;

/* The descent, and the expressions of what is seen of its tokens. */
static basin_status build(watcher *s, const basin_image_trace *t, basin_image_model *model,
                          basin_error *error) {
    basin_image_et *m = &s->graph.net.et;
    s->pattern = (basin_pattern){.exclude_self = !m->config.self_attention};
    basin_block_bound bound = {.block = &m->block, .pattern = &s->pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = {.steps = t->steps, .alpha = m->config.descent.alpha};
    basin_stop stop = {.observe = observe, .context = s};
    s->first = basin_image_et_encode(m, s->graph.patches, s->graph.replaced);
    BASIN_TRY(basin_graph_check(s->graph.graph, error));
    BASIN_TRY(basin_descent_new(&s->descent, model->store, &energy, s->graph.graph,
                                basin_expr_shape(s->first), &spec, &stop, error));
    basin_expr tokens = basin_descent_tokens(s->descent, 0);
    basin_expr g = basin_block_norm(&m->block, tokens);
    s->decoded = basin_image_et_decode(m, tokens);
    for (int p = 0; p < t->parts; p++) {
        basin_expr force = basin_neg(basin_grad(basin_energy_term(&energy, g, p), g));
        s->force[p] = basin_image_et_decode(m, force);
        s->square[p] = basin_mean(basin_square(force), -1, 1);
    }
    if (m->block.xi) s->use = build_use(&m->block, g);
    if (m->block.wq && t->attention && t->attention->share) build_attention(s, g);
    return basin_graph_check(s->graph.graph, error);
}

static basin_status make_plans(watcher *s, basin_image_model *model, basin_error *error) {
    basin_expr output[8] = {s->decoded};
    int outputs = 1;
    for (int p = 0; p < s->trace->parts; p++) {
        output[outputs++] = s->force[p];
        output[outputs++] = s->square[p];
    }
    if (s->use) output[outputs++] = s->use;
    if (s->query) output[outputs++] = s->query;
    if (s->key) output[outputs++] = s->key;
    basin_plan_spec first = {.output = &s->first, .outputs = 1};
    basin_plan_spec seen = {.output = output, .outputs = outputs};
    BASIN_TRY(basin_plan_new(&s->encoder, model->store, &first, error));
    return basin_plan_new(&s->plan, model->store, &seen, error);
}

static basin_status make_tensors(watcher *s, basin_error *error) {
    basin_shape shape = basin_expr_shape(s->first);
    BASIN_TRY(basin_tensor_new(&s->state, BASIN_F32, shape, error));
    BASIN_TRY(basin_tensor_new(&s->picture, BASIN_F32, basin_expr_shape(s->decoded), error));
    shape.rank = 2;
    return basin_tensor_new(&s->numbers, BASIN_F64, shape, error);
}

static void watcher_free(watcher *s) {
    basin_plan_free(s->encoder);
    basin_plan_free(s->plan);
    basin_descent_free(s->descent);
    basin_tensor_free(&s->state);
    basin_tensor_free(&s->picture);
    basin_tensor_free(&s->numbers);
    basin_image_graph_free(&s->graph);
}

/* ---- running ---- */

static basin_status read_picture(float *out, watcher *s, basin_expr from, int step,
                                 basin_error *error) {
    BASIN_TRY(basin_plan_read(&s->picture, s->plan, from, error));
    size_t bytes = basin_tensor_bytes(&s->picture);
    memcpy((char *)out + (size_t)step * bytes, s->picture.data, bytes);
    return BASIN_OK;
}

/* Each picture's mean square over its replaced tokens. */
static basin_status read_square(double *square, watcher *s, basin_expr from, basin_error *error) {
    BASIN_TRY(basin_plan_read(&s->numbers, s->plan, from, error));
    int64_t all = s->numbers.shape.dim[1], N = s->picture.shape.dim[1];
    for (int64_t b = 0; b < s->numbers.shape.dim[0]; b++) {
        const double *number = (double *)s->numbers.data + b * all + (all - N);
        double sum = 0;
        int64_t count = 0;
        for (int64_t n = 0; n < N; n++)
            if (s->mask[b * N + n] == BASIN_PATCH_REPLACED) sum += number[n], count++;
        square[b] = count ? sum / (double)count : 0;
    }
    return BASIN_OK;
}

/* Queries and keys of one step or layer -> shares of attention, where the step is requested. */
static basin_status read_attention(basin_image_trace *t, basin_plan *plan, basin_expr query,
                                   basin_expr key, int step, bool exclude_self,
                                   basin_error *error) {
    int at = place_of(t->attention, step);
    if (!query || at < 0) return BASIN_OK;
    basin_shape shape = basin_expr_shape(query);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor q = {0};
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor k = {0};
    BASIN_TRY(basin_tensor_new(&q, BASIN_F32, shape, error));
    BASIN_TRY(basin_tensor_new(&k, BASIN_F32, shape, error));
    BASIN_TRY(basin_plan_read(&q, plan, query, error));
    BASIN_TRY(basin_plan_read(&k, plan, key, error));
    return set_shares(t->attention, at, q.data, k.data, shape.dim[3], exclude_self, error);
}

static basin_status observe(void *context, const basin_descent_state *now, basin_error *error) {
    watcher *s = context;
    basin_image_trace *t = s->trace;
    int64_t at = now->step * t->count;
    BASIN_TRY(basin_plan_run(s->plan, error));
    BASIN_TRY(read_picture(t->token, s, s->decoded, now->step, error));
    for (int p = 0; p < t->parts; p++) {
        BASIN_TRY(read_picture(t->force[p], s, s->force[p], now->step, error));
        BASIN_TRY(read_square(t->square[p] + at, s, s->square[p], error));
        memcpy(t->energy[p] + at, now->energy + p * now->samples,
               (size_t)t->count * sizeof *now->energy);
    }
    BASIN_TRY(
        read_attention(t, s->plan, s->query, s->key, now->step, s->pattern.exclude_self, error));
    if (!t->use || now->step < t->steps) return BASIN_OK;
    return basin_values_read(s->plan, s->use, t->use, BASIN_F64, error);
}

static basin_status descend(basin_image_trace *t, basin_image_model *model, const float *patches,
                            const uint8_t *mask, basin_error *error) {
    BASIN_AT_EXIT(watcher_free) watcher s = {.trace = t, .mask = mask};
    BASIN_AT_EXIT(basin_descent_result_free) basin_descent_result done = {0};
    basin_image_settings settings = basin_image_run_settings(model);
    BASIN_TRY(basin_image_graph_new(&s.graph, &settings, t->count, error));
    BASIN_TRY(build(&s, t, model, error));
    BASIN_TRY(make_plans(&s, model, error));
    BASIN_TRY(make_tensors(&s, error));
    BASIN_TRY(basin_image_write_batch(s.encoder, &s.graph, patches, mask, t->count, error));
    BASIN_TRY(basin_plan_run(s.encoder, error));
    BASIN_TRY(basin_plan_read(&s.state, s.encoder, s.first, error));
    return basin_descent_run(s.descent, &done, &s.state, error);
}

/* ---- the layers of a ViT ---- */

typedef struct layers {
    basin_image_graph graph;
    basin_plan *plan;
    basin_expr decoded[BASIN_MAX_LAYERS + 1];                  /* [B, N, P] */
    basin_expr query[BASIN_MAX_LAYERS], key[BASIN_MAX_LAYERS]; /* [B, N (+ 1), H, Y]; or NULL */
} layers;

static void layers_free(layers *l) {
    basin_plan_free(l->plan);
    basin_image_graph_free(&l->graph);
}

/* Tokens before each layer, decoded as if it were the last; what its attention asks. */
static basin_status build_layers(layers *l, const basin_image_trace *t, basin_image_model *model,
                                 basin_error *error) {
    const basin_vit *vit = &l->graph.net.vit;
    basin_expr token[BASIN_MAX_LAYERS + 1], output[3 * BASIN_MAX_LAYERS + 1];
    double beta = 1 / sqrt((double)vit->config.head_dim);
    int outputs = 0;
    basin_vit_tokens(vit, l->graph.patches, l->graph.replaced, token);
    for (int i = 0; i <= t->steps; i++)
        output[outputs++] = l->decoded[i] = basin_vit_decode(vit, token[i]);
    for (int i = 0; i < t->steps; i++) {
        if (place_of(t->attention, i) < 0) continue;
        basin_vit_queries(&l->query[i], &l->key[i], vit, token[i], i);
        output[outputs++] = l->query[i] = basin_scale(l->query[i], beta);
        output[outputs++] = l->key[i];
    }
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    BASIN_TRY(basin_graph_check(l->graph.graph, error));
    return basin_plan_new(&l->plan, model->store, &spec, error);
}

static basin_status read_layers(basin_image_trace *t, layers *l, basin_error *error) {
    for (int i = 0; i <= t->steps; i++) {
        float *token = t->token + i * basin_shape_count(basin_expr_shape(l->decoded[i]));
        BASIN_TRY(basin_values_read(l->plan, l->decoded[i], token, BASIN_F32, error));
        if (i < t->steps)
            BASIN_TRY(read_attention(t, l->plan, l->query[i], l->key[i], i, false, error));
    }
    return BASIN_OK;
}

static basin_status pass_layers(basin_image_trace *t, basin_image_model *model,
                                const float *patches, const uint8_t *mask, basin_error *error) {
    BASIN_AT_EXIT(layers_free) layers l = {0};
    BASIN_TRY(basin_image_graph_new(&l.graph, &model->settings, t->count, error));
    BASIN_TRY(build_layers(&l, t, model, error));
    BASIN_TRY(basin_image_write_batch(l.plan, &l.graph, patches, mask, t->count, error));
    BASIN_TRY(basin_plan_run(l.plan, error));
    return read_layers(t, &l, error);
}

/* ---- the whole ---- */

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

basin_status basin_image_trace_new(basin_image_trace *trace, basin_image_attention *attention,
                                   basin_image_model *model, const float *patches,
                                   const uint8_t *mask, int64_t count, basin_error *error) {
    const basin_image_settings *s = &model->settings;
    bool et = !strcmp(s->arch, "et");
    *trace = (basin_image_trace){0};
    if (s->implicit)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "the model descends to a fixed point (implicit), in no fixed number of "
                          "steps; frames and reports need a model of steps");
    *trace = (basin_image_trace){.steps = (int)basin_image_run_settings(model).steps,
                                 .count = count,
                                 .attention = attention};
    if (et && s->attention) trace->part[trace->parts++] = "attention";
    if (et && s->hopfield) trace->part[trace->parts++] = "hopfield";
    BASIN_TRY_OR(make_room(trace, s, error), basin_image_trace_free(trace));
    BASIN_TRY_OR((et ? descend : pass_layers)(trace, model, patches, mask, error),
                 basin_image_trace_free(trace));
    return BASIN_OK;
}

void basin_image_trace_free(basin_image_trace *trace) {
    BASIN_FREE(trace->token, trace->use);
    for (int p = 0; p < 2; p++) {
        BASIN_FREE(trace->force[p], trace->energy[p], trace->square[p]);
    }
    *trace = (basin_image_trace){0};
}

/* ---- error, PSNR and energy step by step, as means over pictures ---- */

static basin_status course_room(basin_image_course *c, const basin_image_trace *t,
                                const basin_image_settings *s, basin_error *error) {
    size_t frames = (size_t)(t->steps + 1);
    *c = (basin_image_course){.steps = t->steps, .parts = t->parts};
    BASIN_TRY(BASIN_NEW(&c->mse, frames, "the course of a descent", error));
    BASIN_TRY(BASIN_NEW(&c->psnr, frames, "the course of a descent", error));
    for (int p = 0; p < t->parts; p++) {
        BASIN_TRY(BASIN_NEW(&c->energy[p], frames, "the course of a descent", error));
        BASIN_TRY(BASIN_NEW(&c->size[p], frames, "the course of a descent", error));
    }
    return t->use ? BASIN_NEW(&c->use, s->memories, "the course of a descent", error) : BASIN_OK;
}

static void add_energies(basin_image_course *c, const basin_image_trace *t) {
    for (int64_t i = 0; i < t->count && t->parts; i++) {
        double before = INFINITY;
        for (int step = 0; step <= t->steps; step++) {
            double total = 0;
            for (int p = 0; p < t->parts; p++) {
                double energy = t->energy[p][step * t->count + i];
                c->energy[p][step] += energy;
                c->size[p][step] += t->square[p][step * t->count + i];
                total += energy;
            }
            /* Beyond what float rounds: sums of many terms waver in the last digits. */
            c->rises += total > before + 1e-5 * fabs(before);
            before = total;
        }
    }
}

static basin_status add_errors(basin_image_course *c, const basin_image_trace *t,
                               const float *patches, const uint8_t *mask,
                               const basin_image_settings *s, basin_error *error) {
    int64_t N = basin_image_tokens(s), P = basin_image_patch_values(s), size = N * P;
    BASIN_SCRATCH_RAW(float, room, (size_t)size * 3, "comparing pictures", error);
    float *whole = room, *plane[2] = {room + size, room + 2 * size};
    for (int64_t i = 0; i < t->count; i++) {
        const float *truth = patches + i * size;
        const uint8_t *hidden = mask + i * N;
        for (int step = 0; step <= t->steps; step++) {
            const float *output = t->token + (step * t->count + i) * size;
            c->mse[step] += basin_image_masked_error(output, truth, hidden, N, P);
            basin_image_paste(whole, output, truth, hidden, N, P);
            c->psnr[step] += basin_image_psnr(plane, whole, truth, s);
        }
        c->mean_mse += basin_image_mean_error(truth, hidden, s);
        basin_image_mean_fill(whole, truth, hidden, s);
        c->mean_psnr += basin_image_psnr(plane, whole, truth, s);
    }
    return BASIN_OK;
}

basin_status basin_image_course_add(basin_image_course *c, const basin_image_trace *t,
                                    const float *patches, const uint8_t *mask,
                                    const basin_image_settings *s, basin_error *error) {
    BASIN_TRY(c->mse ? BASIN_OK : course_room(c, t, s, error));
    BASIN_TRY(add_errors(c, t, patches, mask, s, error));
    add_energies(c, t);
    for (int64_t m = 0; c->use && m < s->memories; m++) c->use[m] += t->use[m];
    c->pictures += t->count;
    return BASIN_OK;
}

void basin_image_course_end(basin_image_course *c) {
    double part = 1 / (double)c->pictures;
    c->mean_mse *= part;
    c->mean_psnr *= part;
    for (int step = 0; step <= c->steps; step++) {
        c->mse[step] *= part;
        c->psnr[step] *= part;
        for (int p = 0; p < c->parts; p++) {
            c->energy[p][step] *= part;
            c->size[p][step] = sqrt(c->size[p][step] * part);
        }
    }
}

void basin_image_course_free(basin_image_course *c) {
    BASIN_FREE(c->mse, c->psnr, c->use);
    for (int p = 0; p < 2; p++) {
        BASIN_FREE(c->energy[p], c->size[p]);
    }
    *c = (basin_image_course){0};
}
