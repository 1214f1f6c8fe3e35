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
        return basin_fail(
            error, BASIN_BAD_VALUE,
            model->settings.implicit
                ? "accelerate with a model that descends to a fixed point (implicit), which "
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

static basin_status make_plan(basin_plan **plan, basin_store *store, basin_expr output,
                              basin_error *error) {
    basin_plan_spec spec = {.output = &output, .outputs = 1};
    return basin_plan_new(plan, store, &spec, error);
}

/* The descent apart from what is before and after it. */
static basin_status make_descent(basin_image_runner *r, basin_store *store, basin_error *error) {
    basin_image_et *m = &r->graph.net.et;
    basin_pattern pattern = {.exclude_self = !m->config.self_attention};
    basin_block_bound bound = {.block = &m->block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = {.steps = (int)r->steps, .alpha = m->config.descent.alpha};
    basin_stop stop = {.until = r->until, .accelerate = r->model->descent.accelerate};
    r->first = basin_image_et_encode(m, r->graph.patches, r->graph.replaced);
    BASIN_TRY(basin_graph_check(r->graph.graph, error));
    BASIN_TRY(basin_descent_new(&r->descent, store, &energy, r->graph.graph,
                                basin_expr_shape(r->first), &spec, &stop, error));
    r->decoded = basin_image_et_decode(m, basin_descent_tokens(r->descent, 0));
    BASIN_TRY(basin_graph_check(r->graph.graph, error));
    BASIN_TRY(make_plan(&r->plan, store, r->first, error));
    return make_plan(&r->decoder, store, r->decoded, error);
}

basin_status basin_image_runner_new(basin_image_runner *runner, basin_image_model *model,
                                    int64_t batch, basin_error *error) {
    basin_image_settings settings = basin_image_run_settings(model);
    *runner = (basin_image_runner){.model = model,
                                   .until = settings.implicit ? 0 : model->descent.until,
                                   .steps = settings.steps};
    if (runner->until > 0) settings.steps = 1;
    BASIN_TRY(basin_image_graph_new(&runner->graph, &settings, batch, error));
    BASIN_TRY_OR(BASIN_NEW_RAW(&runner->taken, batch, "running a model", error),
                 basin_image_runner_free(runner));
    BASIN_TRY_OR(runner->until > 0
                     ? make_descent(runner, model->store, error)
                     : make_plan(&runner->plan, model->store, runner->graph.output, error),
                 basin_image_runner_free(runner));
    return BASIN_OK;
}

void basin_image_runner_free(basin_image_runner *runner) {
    basin_plan_free(runner->plan);
    basin_plan_free(runner->decoder);
    basin_descent_free(runner->descent);
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
    if (!model->kept || model->kept->graph.batch != batch) {
        basin_image_runner_drop(model);
        BASIN_TRY(BASIN_NEW(&model->kept, 1, "running a model", error));
        BASIN_TRY_OR(basin_image_runner_new(model->kept, model, batch, error),
                     basin_image_runner_drop(model));
    }
    *runner = model->kept;
    return BASIN_OK;
}

/* ---- running ---- */

/* The plan's inputs are of the whole batch: what a short batch lacks is its first picture again,
 * which takes no more steps than that. */
basin_status basin_image_write_batch(basin_plan *plan, const basin_image_graph *g,
                                     const float *patches, const uint8_t *mask, int64_t count,
                                     basin_error *error) {
    basin_shape whole = basin_expr_shape(g->patches);
    int64_t N = whole.dim[1], size = N * whole.dim[2];
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor x = {0};
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor replaced = {0};
    BASIN_TRY(basin_tensor_new(&x, BASIN_F32, whole, error));
    BASIN_TRY(basin_tensor_new(&replaced, BASIN_F32, BASIN_SHAPE(whole.dim[0], N), error));
    for (int64_t i = 0; i < whole.dim[0]; i++) {
        int64_t from = i < count ? i : 0;
        memcpy((float *)x.data + i * size, patches + from * size, (size_t)size * sizeof(float));
        for (int64_t n = 0; n < N; n++)
            ((float *)replaced.data)[i * N + n] = mask[from * N + n] == BASIN_PATCH_REPLACED;
    }
    BASIN_TRY(basin_plan_write(plan, g->patches, &x, error));
    return basin_plan_write(plan, g->replaced, &replaced, error);
}

static basin_status descend(basin_image_runner *r, basin_tensor *result, int64_t count,
                            basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor first = {0};
    BASIN_AT_EXIT(basin_descent_result_free) basin_descent_result done = {0};
    BASIN_TRY(basin_tensor_new(&first, BASIN_F32, basin_expr_shape(r->first), error));
    BASIN_TRY(basin_plan_read(r->plan, r->first, &first, error));
    BASIN_TRY(basin_descent_run(r->descent, &done, &first, error));
    for (int64_t i = 0; i < count; i++) r->taken[i] = done.taken[i];
    BASIN_TRY(basin_plan_run(r->decoder, error));
    return basin_plan_read(r->decoder, r->decoded, result, error);
}

static basin_status run(basin_image_runner *r, basin_tensor *result, const float *patches,
                        const uint8_t *mask, int64_t count, basin_error *error) {
    BASIN_TRY(basin_image_write_batch(r->plan, &r->graph, patches, mask, count, error));
    BASIN_TRY(basin_tensor_new(result, BASIN_F32, basin_expr_shape(r->graph.output), error));
    BASIN_TRY(basin_plan_run(r->plan, error));
    if (r->descent) return descend(r, result, count, error);
    return basin_plan_read(r->plan, r->graph.output, result, error);
}

basin_status basin_image_runner_run(basin_image_runner *runner, float *output, const float *patches,
                                    const uint8_t *mask, int64_t count, basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor result = {0};
    basin_shape whole = basin_expr_shape(runner->graph.output);
    for (int64_t i = 0; i < count; i++) runner->taken[i] = runner->steps;
    (void)basin_store_take_convergence(runner->model->store);
    basin_status status = run(runner, &result, patches, mask, count, error);
    basin_convergence rests = basin_store_take_convergence(runner->model->store);
    for (int64_t i = 0; i < count && rests.points; i++) runner->taken[i] = rests.steps;
    basin_convergence_add(&runner->model->rests, &rests);
    if (!status)
        memcpy(output, result.data, (size_t)(count * whole.dim[1] * whole.dim[2]) * sizeof(float));
    return status;
}
