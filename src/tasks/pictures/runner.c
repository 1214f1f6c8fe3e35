/* Running a model of images on batches of patches; see image.h. */
#include "base/info.h"
#include "base/sized.h"
#include "base/states.h"
#include "tasks/pictures/image.h"

/* ---- how a model descends ---- */

basin_status basin_image_set_descent(basin_image_model *model,
                                     const basin_image_descent_options *descent,
                                     basin_error *error) {
    enum { MAX_STEPS = 10000 };
    BASIN_TRY(BASIN_SIZE_CHECK(descent, "basin_image_descent_options", error));
    const basin_image_descent_options d = *descent;
    if (d.steps < 0 || d.steps > MAX_STEPS)
        return basin_fail(error, BASIN_BAD_VALUE, "steps is %lld; expected 0 to %d",
                          (long long)d.steps, MAX_STEPS);
    if (!(d.alpha >= 0) || !isfinite(d.alpha))
        return basin_fail(error, BASIN_BAD_VALUE, "alpha is %g; expected at least 0", d.alpha);
    if ((d.steps > 0 || d.alpha > 0) && strcmp(model->settings.arch, "et") != 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the model's arch is '%s': its layers are not steps of a descent that "
                          "steps or alpha could change",
                          model->settings.arch);
    basin_image_runner_drop(model);
    model->descent = d;
    return BASIN_OK;
}

basin_image_settings basin_image_run_settings(const basin_image_model *model) {
    const basin_image_descent_options *d = &model->descent;
    basin_image_settings s = model->settings;
    if (d->steps > 0) s.steps = s.rest_steps = d->steps;
    if (d->alpha > 0) s.alpha = d->alpha;
    return s;
}

/* ---- plans ---- */

basin_status basin_image_runner_new(basin_image_runner *runner, basin_image_model *model,
                                    int64_t batch, basin_error *error) {
    basin_image_settings settings = basin_image_run_settings(model);
    basin_plan_spec spec = {.output = &runner->graph.output, .outputs = 1};
    *runner = (basin_image_runner){0};
    BASIN_TRY(basin_image_graph_new(&runner->graph, &settings, batch, error));
    BASIN_TRY_OR(basin_plan_new(&runner->plan, model->store, &spec, error),
                 basin_image_runner_free(runner));
    return BASIN_OK;
}

void basin_image_runner_free(basin_image_runner *runner) {
    basin_plan_free(runner->plan);
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

/* The plan's inputs are of a full batch: what a short one lacks is its first picture again. */
basin_status basin_image_write_batch(basin_plan *plan, const basin_image_graph *g,
                                     const float *patches, const uint8_t *mask, int64_t count,
                                     basin_error *error) {
    basin_shape shape = basin_expr_shape(g->patches);
    int64_t B = shape.dim[0], N = shape.dim[1], size = N * shape.dim[2];
    BASIN_SCRATCH_RAW(float, x, B *size, "a batch", error);
    BASIN_SCRATCH_RAW(float, replaced, B *N, "a batch", error);
    static const float code[] = {[BASIN_PATCH_REPLACED] = 1, [BASIN_PATCH_GUESSED] = 2};
    for (int64_t i = 0; i < B; i++) {
        int64_t from = i < count ? i : 0;
        memcpy(x + i * size, patches + from * size, (size_t)size * sizeof *x);
        for (int64_t n = 0; n < N; n++) replaced[i * N + n] = code[mask[from * N + n]];
    }
    BASIN_TRY(basin_values_write(plan, g->patches, x, BASIN_F32, error));
    return basin_values_write(plan, g->replaced, replaced, BASIN_F32, error);
}

basin_status basin_image_runner_run(basin_image_runner *r, float *output, const float *patches,
                                    const uint8_t *mask, int64_t count, basin_error *error) {
    int64_t all = basin_shape_count(basin_expr_shape(r->graph.output));
    BASIN_SCRATCH_RAW(float, result, all, "a batch", error);
    BASIN_TRY(basin_image_write_batch(r->plan, &r->graph, patches, mask, count, error));
    BASIN_TRY(basin_plan_run(r->plan, error));
    BASIN_TRY(basin_values_read(r->plan, r->graph.output, result, BASIN_F32, error));
    memcpy(output, result, (size_t)(all / r->graph.batch * count) * sizeof *output);
    return BASIN_OK;
}
