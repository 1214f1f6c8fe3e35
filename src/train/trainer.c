/* A trainer: plan, optimiser and schedule of one loss; its states in files. See
 * include/basin/train.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/try.h"
#include "basin/train.h"
#include "io/bundle.h"
#include "plan/plan.h"
#include "train/trainer.h"

basin_status basin_graph_check(const basin_graph *graph, basin_error *error) {
    const basin_error *found = basin_graph_error(graph);
    return found ? basin_fail(error, found->status, "%s", found->text) : BASIN_OK;
}

static basin_status make_plan(basin_trainer *t, const basin_trainer_spec *spec,
                              const basin_update *update, int updates, basin_error *error) {
    size_t outputs = (size_t)spec->outputs + 1;
    BASIN_FREE_AT_EXIT basin_expr *output = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&output, outputs, "a trainer", error));
    output[0] = t->loss;
    for (size_t i = 1; i < outputs; i++) output[i] = spec->output[i - 1];
    basin_plan_spec plan = {
        .output = output, .outputs = (int)outputs, .update = update, .updates = updates};
    return basin_plan_new(&t->plan, t->store, &plan, error);
}

/* ---- gradients and update apart, for processes that meet in between ---- */

/* States "gradient.NAME", and the plan of the update by them. */
basin_status basin_trainer_new_update(basin_trainer *t, basin_store *store,
                                      const basin_params *params, const basin_trainer_spec *spec,
                                      basin_error *error) {
    BASIN_FREE_AT_EXIT basin_expr *gradient = NULL;
    t->store = store, t->schedule = spec->schedule;
    BASIN_TRY(BASIN_NEW_RAW(&gradient, params->count, "a trainer", error));
    basin_params_begin(&t->gradients, params->graph);
    for (size_t i = 0; i < params->count; i++) {
        basin_expr p = params->param[i].state;
        gradient[i] = basin_param_add(&t->gradients, "gradient.", basin_expr_name(p),
                                      basin_expr_shape(p), (basin_init){0});
    }
    BASIN_TRY(basin_graph_check(params->graph, error));
    BASIN_TRY(basin_adamw_from(&t->adamw, params, gradient, &spec->adamw, error));
    basin_plan_spec plan = {.update = t->adamw.update, .updates = t->adamw.updates};
    return basin_plan_new(&t->update, store, &plan, error);
}

/* The plan that fills these states. A reverse pass finds the gradients of the last parameters
 * first; asked for in that order, each comes as soon as it can, and may leave. */
static basin_status make_apart(basin_trainer *t, const basin_params *params,
                               const basin_trainer_spec *spec, basin_error *error) {
    size_t count = params->count;
    t->reduction = *spec->reduction;
    for (size_t i = 0; i < count; i++)
        if (params->param[i].statistic)
            return basin_fail(error, BASIN_UNSUPPORTED,
                              "batch norm, whose statistics are of whole batches, and a batch in "
                              "shards; wanted a model without it, or shards 1 and one rank");
    BASIN_FREE_AT_EXIT basin_expr *gradient = NULL;
    BASIN_FREE_AT_EXIT basin_update *update = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&gradient, count, "a trainer", error));
    BASIN_TRY(BASIN_NEW_RAW(&update, count, "a trainer", error));
    BASIN_TRY(basin_gradients(gradient, params, t->loss, error));
    BASIN_TRY(basin_trainer_new_update(t, t->store, params, spec, error));
    for (size_t i = 0; i < count; i++)
        update[count - 1 - i] = (basin_update){t->gradients.param[i].state, gradient[i]};
    return make_plan(t, spec, update, (int)count, error);
}

static basin_status meet(basin_trainer *t, basin_error *error) {
    size_t count = t->gradients.count;
    const char **name BASIN_FREE_AT_EXIT = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&name, count, "a reduction", error));
    for (size_t i = 0; i < count; i++) name[i] = basin_expr_name(t->gradients.param[i].state);
    return t->reduction.sum(t->reduction.context, t->store, name, (int)count, error);
}

/* ---- a trainer ---- */

static basin_status make_whole(basin_trainer *t, const basin_params *params,
                               const basin_trainer_spec *spec, basin_error *error) {
    BASIN_TRY(basin_adamw_new(&t->adamw, params, t->loss, &spec->adamw, error));
    return make_plan(t, spec, t->adamw.update, t->adamw.updates, error);
}

basin_status basin_trainer_new(basin_trainer *trainer, basin_store *store,
                               const basin_params *params, basin_expr loss,
                               const basin_trainer_spec *spec, basin_error *error) {
    basin_trainer *t = trainer;
    *t = (basin_trainer){.store = store, .loss = loss, .schedule = spec->schedule};
    basin_status status =
        spec->reduction ? make_apart(t, params, spec, error) : make_whole(t, params, spec, error);
    if (status) basin_trainer_free(t);
    return status;
}

void basin_trainer_free(basin_trainer *trainer) {
    basin_plan_free(trainer->plan);
    basin_plan_free(trainer->update);
    basin_params_free(&trainer->gradients);
    basin_adamw_free(&trainer->adamw);
    *trainer = (basin_trainer){0};
}

/* The rate and corrections of this step, to the plan that updates. */
static basin_status write_rate(basin_trainer *t, basin_error *error) {
    const basin_schedule *s = &t->schedule;
    double rate = basin_rate_cosine(t->step, s->warmup, s->total, s->first, s->peak, s->last);
    return basin_adamw_write(&t->adamw, t->update ? t->update : t->plan, t->step + 1, rate, error);
}

basin_status basin_trainer_differentiate(basin_trainer *trainer, basin_error *error) {
    return basin_plan_run(trainer->plan, error);
}

basin_status basin_trainer_apply(basin_trainer *trainer, basin_error *error) {
    BASIN_TRY(write_rate(trainer, error));
    BASIN_TRY(basin_plan_run(trainer->update, error));
    trainer->step++;
    return BASIN_OK;
}

basin_status basin_trainer_step(basin_trainer *trainer, double *loss, basin_error *error) {
    basin_trainer *t = trainer;
    if (!t->update) BASIN_TRY(write_rate(t, error));
    BASIN_TRY(basin_plan_run(t->plan, error));
    if (t->update) {
        BASIN_TRY(meet(t, error));
        BASIN_TRY(basin_trainer_apply(t, error));
    } else
        t->step++;
    return loss ? basin_trainer_loss(t, loss, error) : BASIN_OK;
}

basin_status basin_trainer_loss(const basin_trainer *trainer, double *loss, basin_error *error) {
    basin_tensor value = basin_tensor_borrow(loss, BASIN_F64, BASIN_SCALAR);
    BASIN_TRY(basin_plan_read(trainer->plan, trainer->loss, &value, error));
    return basin_loss_check(*loss, trainer->step, error);
}

basin_status basin_loss_check(double loss, int64_t step, basin_error *error) {
    if (isfinite(loss)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "the loss is %g at step %lld, wanted a finite number: a smaller learning "
                      "rate or a smaller alpha may help",
                      loss, (long long)step);
}

/* ---- checkpoints and parameters as safetensors files ---- */

basin_status basin_state_add(basin_bundle *bundle, basin_store *store, const char *name,
                             basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor tensor;
    BASIN_TRY(basin_store_read(store, name, &tensor, error));
    return basin_bundle_add(bundle, name, &tensor, error);
}

static basin_status add_meta(basin_bundle *bundle, const basin_meta *meta, int metas,
                             basin_error *error) {
    for (int i = 0; i < metas; i++)
        BASIN_TRY(basin_bundle_meta_set(bundle, meta[i].key, meta[i].value, error));
    return BASIN_OK;
}

basin_status basin_checkpoint_write(const char *path, basin_store *store, int64_t step,
                                    const basin_meta *meta, int metas, basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)step);
    BASIN_TRY(basin_bundle_new(&bundle, error));
    BASIN_TRY(add_meta(bundle, meta, metas, error));
    BASIN_TRY(basin_bundle_meta_set(bundle, "step", text, error));
    for (int i = 0; i < basin_store_count(store); i++)
        BASIN_TRY(basin_state_add(bundle, store, basin_store_name(store, i), error));
    return basin_safetensors_write(path, bundle, error);
}

basin_status basin_state_restore(basin_store *store, const char *name, basin_shape shape,
                                 const basin_bundle *bundle, basin_error *error) {
    char a[BASIN_SHAPE_TEXT], b[BASIN_SHAPE_TEXT];
    const basin_tensor *tensor;
    BASIN_TRY(basin_bundle_get(&tensor, bundle, name, error));
    if (!basin_shape_equal(tensor->shape, shape))
        return basin_fail(error, BASIN_BAD_SHAPE, "%s: tensor '%s' has shape %s, wanted %s",
                          basin_bundle_path(bundle), name, basin_shape_print(a, tensor->shape),
                          basin_shape_print(b, shape));
    int64_t bad = basin_tensor_first_bad(tensor);
    if (bad >= 0)
        return basin_fail(
            error, BASIN_BAD_FILE, "%s: tensor '%s' has %g at element %lld, wanted finite numbers",
            basin_bundle_path(bundle), name, basin_tensor_at(tensor, bad), (long long)bad);
    return basin_store_write(store, name, tensor, error);
}

basin_status basin_checkpoint_read(int64_t *step, basin_store *store, const basin_bundle *bundle,
                                   basin_error *error) {
    const char *text = basin_bundle_meta(bundle, "step");
    char *end = NULL;
    errno = 0;
    *step = text ? strtoll(text, &end, 10) : -1;
    if (!text || errno || end == text || *end || *step < 0)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: the step is '%s', wanted a number: not a checkpoint",
                          basin_bundle_path(bundle), text ? text : "absent");
    for (int i = 0; i < basin_store_count(store); i++)
        BASIN_TRY(basin_state_restore(store, basin_store_name(store, i),
                                      basin_store_shape(store, i), bundle, error));
    return BASIN_OK;
}

basin_status basin_params_add(basin_bundle *bundle, const basin_params *params, basin_store *store,
                              basin_error *error) {
    for (size_t i = 0; i < params->count; i++)
        BASIN_TRY(basin_state_add(bundle, store, basin_expr_name(params->param[i].state), error));
    return BASIN_OK;
}

basin_status basin_params_write(const char *path, const basin_params *params, basin_store *store,
                                const basin_meta *meta, int metas, basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    BASIN_TRY(basin_bundle_new(&bundle, error));
    BASIN_TRY(add_meta(bundle, meta, metas, error));
    BASIN_TRY(basin_params_add(bundle, params, store, error));
    return basin_bundle_write(path, bundle, error);
}

basin_status basin_params_read(const basin_params *params, basin_store *store,
                               const basin_bundle *bundle, basin_error *error) {
    for (size_t i = 0; i < params->count; i++) {
        basin_expr state = params->param[i].state;
        BASIN_TRY(basin_state_restore(store, basin_expr_name(state), basin_expr_shape(state),
                                      bundle, error));
    }
    return BASIN_OK;
}
