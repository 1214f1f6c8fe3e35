/* Running a model of images on batches of patches: all steps of the descent in one plan, or step by
 * step until the tokens rest (Algorithm 1 of the paper, with an end of its own); see image.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/given.h"
#include "task/image/image.h"

/* ---- how a model descends ---- */

basin_status basin_image_set_descent(basin_image_model *model, const basin_image_descent *descent,
                                     basin_error *error) {
    enum { MOST = 10000 };
    basin_image_descent d;
    basin_status status = basin_given_take(&d, sizeof d, descent, "basin_image_descent", error);
    if (status) return status;
    if (d.steps < 0 || d.steps > MOST)
        return basin_fail(error, BASIN_BAD_VALUE, "steps is %lld, wanted 0 to %d",
                          (long long)d.steps, MOST);
    if (!(d.alpha >= 0) || !isfinite(d.alpha))
        return basin_fail(error, BASIN_BAD_VALUE, "alpha is %g, wanted 0 or more", d.alpha);
    if (!(d.until >= 0) || d.until >= 1)
        return basin_fail(error, BASIN_BAD_VALUE, "until is %g, wanted 0 to below 1", d.until);
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

basin_rests basin_image_take_rests(basin_image_model *model) {
    basin_rests rests = model->rests;
    model->rests = (basin_rests){0};
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
    r->decoded = basin_image_decode(m, r->tokens);
}

static basin_status make_plan(basin_plan **plan, basin_store *store, const basin_expr *output,
                              basin_error *error) {
    basin_plan_spec spec = {.output = output, .outputs = 1};
    return basin_plan_new(plan, store, &spec, error);
}

static basin_status make_plans(basin_image_runner *r, basin_store *store, basin_error *error) {
    if (r->until <= 0) return make_plan(&r->plan, store, &r->graph.output, error);
    build_step(r);
    basin_status status = basin_image_graph_check(&r->graph, error);
    if (!status) status = make_plan(&r->encoder, store, &r->first, error);
    if (!status) status = make_plan(&r->plan, store, &r->next, error);
    if (!status) status = make_plan(&r->decoder, store, &r->decoded, error);
    return status;
}

basin_status basin_image_runner_new(basin_image_runner *runner, basin_image_model *model,
                                    int64_t batch, basin_error *error) {
    basin_image_settings settings = basin_image_run_settings(model);
    *runner = (basin_image_runner){.model = model,
                                   .until = settings.implicit ? 0 : model->descent.until,
                                   .steps = settings.steps};
    if (runner->until > 0) settings.steps = 1;
    basin_status status = basin_image_graph_new(&runner->graph, &settings, batch, error);
    if (status) return status;
    runner->taken = basin_array_new((size_t)batch, sizeof *runner->taken);
    if (!runner->taken) status = basin_fail(error, BASIN_NO_MEMORY, "no memory to run a model");
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
        model->kept = calloc(1, sizeof *model->kept);
        if (!model->kept) return basin_fail(error, BASIN_NO_MEMORY, "no memory to run a model");
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

/* A step of those pictures that still move; whether any does after it. */
static basin_status take_step(bool *moving, basin_image_runner *r, basin_tensor *x,
                              basin_tensor *next, bool *done, int64_t count, basin_error *error) {
    int64_t tokens = x->shape.dim[1], dim = x->shape.dim[2];
    basin_status status = basin_plan_write(r->plan, r->tokens, x, error);
    if (!status) status = basin_plan_run(r->plan, error);
    if (!status) status = basin_plan_read(r->plan, r->next, next, error);
    *moving = false;
    for (int64_t i = 0; i < count && !status; i++) {
        float *from = (float *)x->data + i * tokens * dim;
        const float *to = (const float *)next->data + i * tokens * dim;
        if (done[i]) continue;
        done[i] = largest_move(from, to, tokens, dim) <= r->until;
        memcpy(from, to, (size_t)(tokens * dim) * sizeof *from);
        r->taken[i]++;
        *moving = *moving || !done[i];
    }
    return status;
}

static basin_status descend(basin_image_runner *r, basin_tensor *result, int64_t count,
                            basin_error *error) {
    basin_tensor x = {0}, next = {0};
    basin_shape shape = basin_expr_shape(r->first);
    bool *done = calloc((size_t)count + 1, sizeof *done), moving = true;
    basin_status status = basin_tensor_new(&x, BASIN_F32, shape, error);
    if (!status) status = basin_tensor_new(&next, BASIN_F32, shape, error);
    if (!status && !done) status = basin_fail(error, BASIN_NO_MEMORY, "no memory for a descent");
    if (!status) status = basin_plan_run(r->encoder, error);
    if (!status) status = basin_plan_read(r->encoder, r->first, &x, error);
    for (int64_t t = 0; t < r->steps && moving && !status; t++)
        status = take_step(&moving, r, &x, &next, done, count, error);
    if (!status) status = basin_plan_write(r->decoder, r->tokens, &x, error);
    if (!status) status = basin_plan_run(r->decoder, error);
    if (!status) status = basin_plan_read(r->decoder, r->decoded, result, error);
    basin_tensor_free(&x);
    basin_tensor_free(&next);
    free(done);
    return status;
}

basin_status basin_image_runner_run(basin_image_runner *runner, float *output, const float *patches,
                                    const uint8_t *mask, int64_t count, basin_error *error) {
    basin_tensor result = {0};
    basin_shape whole = basin_expr_shape(runner->graph.output);
    bool steps = runner->until > 0;
    for (int64_t i = 0; i < count; i++) runner->taken[i] = steps ? 0 : runner->steps;
    (void)basin_store_take_rests(runner->model->store);
    basin_status status =
        write_batch(runner, steps ? runner->encoder : runner->plan, patches, mask, count, error);
    if (!status) status = basin_tensor_new(&result, BASIN_F32, whole, error);
    if (!status && steps) status = descend(runner, &result, count, error);
    if (!status && !steps) status = basin_plan_run(runner->plan, error);
    if (!status && !steps)
        status = basin_plan_read(runner->plan, runner->graph.output, &result, error);
    basin_rests rests = basin_store_take_rests(runner->model->store);
    for (int64_t i = 0; i < count && rests.points; i++) runner->taken[i] = rests.steps;
    basin_rests_add(&runner->model->rests, &rests);
    if (!status)
        memcpy(output, result.data, (size_t)(count * whole.dim[1] * whole.dim[2]) * sizeof(float));
    basin_tensor_free(&result);
    return status;
}
