/* Running a model of images on batches of patches: all steps of the descent in one plan, or step by
 * step until the tokens rest (Algorithm 1 of the paper, with an end of its own); see image.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "task/image/image.h"

/* ---- how a model descends ---- */

basin_status basin_image_set_descent(basin_image_model *model, const basin_image_descent *descent,
                                     basin_error *error) {
    enum { MOST = 10000 };
    const basin_image_descent d = *descent;
    if (d.steps < 0 || d.steps > MOST)
        return basin_fail(error, BASIN_BAD_VALUE, "steps is %lld, wanted 0 to %d",
                          (long long)d.steps, MOST);
    if (!(d.alpha >= 0) || !isfinite(d.alpha))
        return basin_fail(error, BASIN_BAD_VALUE, "alpha is %g, wanted 0 or more", d.alpha);
    if (!(d.until >= 0) || d.until >= 1)
        return basin_fail(error, BASIN_BAD_VALUE, "until is %g, wanted 0 to below 1", d.until);
    if (d.accelerate && (!(d.until > 0) || model->settings.implicit))
        return basin_fail(error, BASIN_BAD_VALUE,
                          model->settings.implicit
                              ? "accelerate with a model that descends to rest (implicit), which "
                                "has momentum anyway"
                              : "accelerate without until; it shortens descents that end by "
                                "themselves");
    bool set = d.steps > 0 || d.alpha > 0 || d.until > 0;
    if (set && strcmp(model->settings.arch, "et") != 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the model's arch is '%s': its layers are not steps of a descent that "
                          "steps, alpha or until could change",
                          model->settings.arch);
    basin_image_runner_drop(model);
    model->descent = d;
    return BASIN_OK;
}

basin_image_settings basin_image_run_settings(const basin_image_model *model) {
    enum { UNTIL_STEPS = 1000 };
    const basin_image_descent *d = &model->descent;
    basin_image_settings s = model->settings;
    if (d->until > 0) s.steps = UNTIL_STEPS;
    if (d->steps > 0) s.steps = s.rest_steps = d->steps;
    if (d->until > 0) s.rest_until = d->until;
    if (d->alpha > 0) s.alpha = d->alpha;
    return s;
}

basin_convergence basin_image_take_convergence(basin_image_model *model) {
    basin_convergence rests = model->rests;
    model->rests = (basin_convergence){0};
    return rests;
}

/* ---- plans ---- */

/* A step apart from what is before and after it. */
static void build_step(basin_image_runner *r) {
    basin_image *m = &r->graph.net.et;
    basin_pattern pattern = {.exclude_self = !m->config.self_attention};
    basin_block_bound bound = {.block = &m->block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec one = {.steps = 1, .alpha = m->config.descent.alpha};
    r->first = basin_image_encode(m, r->graph.patches, r->graph.replaced);
    r->tokens = basin_input(r->graph.graph, "tokens", basin_expr_shape(r->first));
    r->next = basin_descend(&energy, r->tokens, &one, NULL);
    if (r->accelerate)
        r->energy = basin_energy_total(&energy, basin_energy_activation(&energy, r->next));
    r->decoded = basin_image_decode(m, r->tokens);
}

static basin_status make_plan(basin_plan **plan, basin_store *store, const basin_expr *output,
                              int outputs, basin_error *error) {
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    return basin_plan_new(plan, store, &spec, error);
}

static basin_status make_plans(basin_image_runner *r, basin_store *store, basin_error *error) {
    if (r->until <= 0) return make_plan(&r->plan, store, &r->graph.output, 1, error);
    build_step(r);
    basin_expr step[] = {r->next, r->energy};
    BASIN_TRY(basin_image_graph_check(&r->graph, error));
    BASIN_TRY(make_plan(&r->encoder, store, &r->first, 1, error));
    BASIN_TRY(make_plan(&r->plan, store, step, r->energy ? 2 : 1, error));
    return make_plan(&r->decoder, store, &r->decoded, 1, error);
}

basin_status basin_image_runner_new(basin_image_runner *runner, basin_image_model *model,
                                    int64_t batch, basin_error *error) {
    basin_image_settings settings = basin_image_run_settings(model);
    *runner = (basin_image_runner){.model = model,
                                   .until = settings.implicit ? 0 : model->descent.until,
                                   .accelerate = model->descent.accelerate,
                                   .steps = settings.steps};
    if (runner->until > 0) settings.steps = 1;
    basin_status status = basin_image_graph_new(&runner->graph, &settings, batch, error);
    if (status) return status;
    runner->taken = basin_array_new((size_t)batch, sizeof *runner->taken);
    if (!runner->taken) status = basin_fail(error, BASIN_NO_MEMORY, "out of memory to run a model");
    if (!status) status = make_plans(runner, model->store, error);
    if (status) basin_image_runner_free(runner);
    return status;
}

void basin_image_runner_free(basin_image_runner *runner) {
    basin_plan_free(runner->plan);
    basin_plan_free(runner->encoder);
    basin_plan_free(runner->decoder);
    free(runner->taken);
    basin_image_graph_free(&runner->graph);
    *runner = (basin_image_runner){0};
}

void basin_image_runner_drop(basin_image_model *model) {
    if (model->kept) basin_image_runner_free(model->kept);
    free(model->kept);
    model->kept = NULL;
}

basin_status basin_image_runner_borrow(basin_image_runner **runner, basin_image_model *model,
                                       int64_t batch, basin_error *error) {
    basin_status status = BASIN_OK;
    if (!model->kept || model->kept->graph.batch != batch) {
        basin_image_runner_drop(model);
        BASIN_TRY(BASIN_NEW(&model->kept, 1, "running a model", error));
        status = basin_image_runner_new(model->kept, model, batch, error);
        if (status) basin_image_runner_drop(model);
    }
    *runner = model->kept;
    return status;
}

/* ---- running ---- */

/* The plan's inputs are of the whole batch: what a short batch lacks is zero. */
static basin_status write_batch(basin_image_runner *r, basin_plan *plan, const float *patches,
                                const uint8_t *mask, int64_t count, basin_error *error) {
    basin_shape whole = basin_expr_shape(r->graph.patches);
    int64_t N = whole.dim[1], P = whole.dim[2];
    basin_tensor x = {0}, replaced = {0};
    basin_status status = basin_tensor_new(&x, BASIN_F32, whole, error);
    if (!status)
        status = basin_tensor_new(&replaced, BASIN_F32, BASIN_SHAPE(whole.dim[0], N), error);
    if (!status) {
        memcpy(x.data, patches, (size_t)(count * N * P) * sizeof(float));
        for (int64_t i = 0; i < count * N; i++)
            ((float *)replaced.data)[i] = mask[i] == BASIN_PATCH_REPLACED;
        status = basin_plan_write(plan, r->graph.patches, &x, error);
    }
    if (!status) status = basin_plan_write(plan, r->graph.replaced, &replaced, error);
    basin_tensor_free(&x);
    basin_tensor_free(&replaced);
    return status;
}

/* The largest move of a token, in parts of its length. */
static double largest_move(const float *from, const float *to, int64_t tokens, int64_t dim) {
    double largest = 0;
    for (int64_t n = 0; n < tokens; n++) {
        double moved = 0, length = 0;
        for (int64_t d = n * dim; d < (n + 1) * dim; d++) {
            double step = (double)to[d] - from[d];
            moved += step * step;
            length += (double)to[d] * to[d];
        }
        if (moved > 0) largest = fmax(largest, sqrt(moved / length));
    }
    return largest;
}

/* Pictures on their way down. */
typedef struct way {
    basin_image_runner *r;
    int64_t count, tokens, dim; /* pictures; of a picture; of a token */
    basin_tensor x, next, from; /* before a step and after it; where it began */
    bool *done;                 /* [count] */
    float *last;                /* accelerated: x before the last step, */
    double *lead;               /* [count] steps since the momentum was dropped, */
    double *energy, *after;     /* [batch] at x, at next */
} way;

static basin_status way_open(way *w, basin_image_runner *r, int64_t count, basin_error *error) {
    basin_shape shape = basin_expr_shape(r->first);
    size_t batch = (size_t)r->graph.batch;
    *w = (way){.r = r, .count = count, .tokens = shape.dim[1], .dim = shape.dim[2]};
    w->done = calloc(batch, sizeof *w->done);
    w->lead = calloc(batch, sizeof *w->lead);
    w->energy = calloc(batch, sizeof *w->energy);
    w->after = calloc(batch, sizeof *w->after);
    w->last = calloc((size_t)basin_shape_count(shape), sizeof *w->last);
    if (!w->done || !w->lead || !w->energy || !w->after || !w->last)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a descent");
    for (int64_t i = 0; i < count; i++) w->energy[i] = INFINITY;
    BASIN_TRY(basin_tensor_new(&w->x, BASIN_F32, shape, error));
    BASIN_TRY(basin_tensor_new(&w->next, BASIN_F32, shape, error));
    return basin_tensor_new(&w->from, BASIN_F32, shape, error);
}

static void way_close(way *w) {
    basin_tensor_free(&w->x);
    basin_tensor_free(&w->next);
    basin_tensor_free(&w->from);
    free(w->done);
    free(w->lead);
    free(w->energy);
    free(w->after);
    free(w->last);
}

/* Where the steps begin: ahead of the tokens by a part of their last move. */
static basin_status run_step(way *w, basin_error *error) {
    basin_image_runner *r = w->r;
    const float *x = w->x.data;
    float *from = w->from.data;
    int64_t each = w->tokens * w->dim;
    memcpy(from, x, basin_tensor_bytes(&w->x));
    for (int64_t i = 0; i < w->count * each && r->accelerate; i++) {
        double lead = w->lead[i / each];
        if (lead > 0) from[i] += (float)(lead / (lead + 3) * ((double)x[i] - w->last[i]));
    }
    BASIN_TRY(basin_plan_write(r->plan, r->tokens, &w->from, error));
    BASIN_TRY(basin_plan_run(r->plan, error));
    BASIN_TRY(basin_plan_read(r->plan, r->next, &w->next, error));
    basin_tensor after = basin_tensor_borrow(w->after, BASIN_F64, BASIN_SHAPE(r->graph.batch));
    if (r->accelerate) BASIN_TRY(basin_plan_read(r->plan, r->energy, &after, error));
    return BASIN_OK;
}

/* Steps of which none raises the energy: again without momentum, where one does; a picture that
 * rises even so stays. */
static basin_status run_accelerated(way *w, basin_error *error) {
    bool again = false;
    BASIN_TRY(run_step(w, error));
    for (int64_t i = 0; i < w->count; i++) {
        if (w->done[i] || w->after[i] <= w->energy[i] || w->lead[i] == 0) continue;
        w->lead[i] = 0;
        again = true;
    }
    if (again) BASIN_TRY(run_step(w, error));
    for (int64_t i = 0; i < w->count; i++) {
        if (!(w->after[i] <= w->energy[i])) w->done[i] = true;
        if (w->done[i]) continue;
        w->energy[i] = w->after[i];
        w->lead[i]++;
    }
    memcpy(w->last, w->x.data, basin_tensor_bytes(&w->x));
    return BASIN_OK;
}

/* A step of those pictures that still move; whether any does after it. */
static basin_status take_step(bool *moving, way *w, basin_error *error) {
    int64_t each = w->tokens * w->dim;
    BASIN_TRY(w->r->accelerate ? run_accelerated(w, error) : run_step(w, error));
    *moving = false;
    for (int64_t i = 0; i < w->count; i++) {
        const float *from = (const float *)w->from.data + i * each; /* momentum does not count */
        const float *to = (const float *)w->next.data + i * each;
        if (w->done[i]) continue;
        w->done[i] = largest_move(from, to, w->tokens, w->dim) <= w->r->until;
        memcpy((float *)w->x.data + i * each, to, (size_t)each * sizeof *to);
        w->r->taken[i]++;
        *moving = *moving || !w->done[i];
    }
    return BASIN_OK;
}

static basin_status descend(basin_image_runner *r, basin_tensor *result, int64_t count,
                            basin_error *error) {
    way w;
    bool moving = true;
    basin_status status = way_open(&w, r, count, error);
    if (!status) status = basin_plan_run(r->encoder, error);
    if (!status) status = basin_plan_read(r->encoder, r->first, &w.x, error);
    for (int64_t t = 0; t < r->steps && moving && !status; t++)
        status = take_step(&moving, &w, error);
    if (!status) status = basin_plan_write(r->decoder, r->tokens, &w.x, error);
    if (!status) status = basin_plan_run(r->decoder, error);
    if (!status) status = basin_plan_read(r->decoder, r->decoded, result, error);
    way_close(&w);
    return status;
}

basin_status basin_image_runner_run(basin_image_runner *runner, float *output, const float *patches,
                                    const uint8_t *mask, int64_t count, basin_error *error) {
    basin_tensor result = {0};
    basin_shape whole = basin_expr_shape(runner->graph.output);
    bool steps = runner->until > 0;
    for (int64_t i = 0; i < count; i++) runner->taken[i] = steps ? 0 : runner->steps;
    (void)basin_store_take_convergence(runner->model->store);
    basin_status status =
        write_batch(runner, steps ? runner->encoder : runner->plan, patches, mask, count, error);
    if (!status) status = basin_tensor_new(&result, BASIN_F32, whole, error);
    if (!status && steps) status = descend(runner, &result, count, error);
    if (!status && !steps) status = basin_plan_run(runner->plan, error);
    if (!status && !steps)
        status = basin_plan_read(runner->plan, runner->graph.output, &result, error);
    basin_convergence rests = basin_store_take_convergence(runner->model->store);
    for (int64_t i = 0; i < count && rests.points; i++) runner->taken[i] = rests.steps;
    basin_convergence_add(&runner->model->rests, &rests);
    if (!status)
        memcpy(output, result.data, (size_t)(count * whole.dim[1] * whole.dim[2]) * sizeof(float));
    basin_tensor_free(&result);
    return status;
}
