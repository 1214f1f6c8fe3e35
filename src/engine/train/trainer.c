/* Optimizers; a trainer: plan, optimizer and schedule of one loss; its states in files. */
#include <errno.h>

#include "base/shape.h"
#include "base/sized.h"
#include "base/states.h"
#include "base/training.h"
#include "base/try.h"
#include "engine/io/bundle.h"
#include "engine/plan/plan.h"
#include "engine/train/optimizer.h"

/* ---- AdamW, Lion and SGD with clipping by the global norm, built from expressions ---- */

static basin_expr moment(basin_expr state, const char *suffix) {
    char name[300];
    snprintf(name, sizeof name, "%s%s", basin_expr_name(state), suffix);
    return basin_state(basin_expr_graph(state), name, basin_expr_shape(state));
}

static basin_expr blend(basin_expr m, basin_expr g, double beta) {
    return basin_add(basin_scale(m, beta), basin_scale(g, 1 - beta));
}

/* m' = b1 m + (1 - b1) g; v' = b2 v + (1 - b2) g^2; m' / c1 / (sqrt(v' / c2) + epsilon) */
static basin_expr adamw_step(basin_optimizer *a, basin_expr p, basin_expr g) {
    const basin_optimizer_config *c = &a->config;
    basin_expr m = moment(p, ".m"), v = moment(p, ".v");
    basin_expr m1 = blend(m, g, c->beta1), v1 = blend(v, basin_square(g), c->beta2);
    basin_expr scale = basin_offset(basin_sqrt(basin_div(v1, a->correct2)), c->epsilon);
    a->update[a->updates++] = (basin_update){m, m1};
    a->update[a->updates++] = (basin_update){v, v1};
    return basin_div(basin_div(m1, a->correct1), scale);
}

static basin_expr lion_step(basin_optimizer *a, basin_expr p, basin_expr g) {
    basin_expr m = moment(p, ".m");
    a->update[a->updates++] = (basin_update){m, blend(m, g, a->config.beta2)};
    return basin_sign(blend(m, g, a->config.beta1));
}

static basin_expr sgd_step(basin_optimizer *a, basin_expr p, basin_expr g) {
    basin_expr m = moment(p, ".m"), m1 = basin_add(basin_scale(m, a->config.beta1), g);
    a->update[a->updates++] = (basin_update){m, m1};
    return m1;
}

/* Whether a name matches a pattern; * stands for any characters. */
static bool matches(const char *pattern, const char *name) {
    const char *star = NULL, *mark = name;
    while (*name) {
        if (*pattern == '*')
            star = pattern++, mark = name;
        else if (*pattern == *name)
            pattern++, name++;
        else if (star)
            pattern = star + 1, name = ++mark;
        else
            return false;
    }
    while (*pattern == '*') pattern++;
    return !*pattern;
}

static const basin_optimizer_group *group_of(const basin_optimizer *a, basin_expr p) {
    static const basin_optimizer_group usual = {"*", 1, 1};
    for (int i = 0; i < a->config.groups; i++)
        if (matches(a->config.group[i].pattern, basin_expr_name(p))) return &a->config.group[i];
    return &usual;
}

static basin_status check_groups(const basin_optimizer *a, const basin_params *params,
                                 basin_error *error) {
    for (int i = 0; i < a->config.groups; i++) {
        bool found = false;
        for (size_t k = 0; k < params->count && !found; k++)
            found = matches(a->config.group[i].pattern, basin_expr_name(params->param[k].state));
        if (!found)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "no parameter is named '%s', which a group is for; the first of %zu "
                              "is '%s'",
                              a->config.group[i].pattern, params->count,
                              params->count ? basin_expr_name(params->param[0].state) : "");
    }
    return BASIN_OK;
}

static double rate_of(const basin_optimizer *a, basin_expr p) {
    return (a->config.rate_of ? a->config.rate_of(a->config.context, p) : 1) * group_of(a, p)->rate;
}

/* p' = p - rate (step + decay p), but not below param->minimum */
static void add_updates(basin_optimizer *a, const basin_param *param, basin_expr g) {
    const basin_optimizer_config *c = &a->config;
    basin_expr p = param->state;
    double decay =
        c->weight_decay * (c->decay_of ? c->decay_of(c->context, p) : 1) * group_of(a, p)->decay;
    if (c->decay_matrices_only && basin_expr_shape(p).rank < 2) decay = 0;
    basin_expr step = c->kind == BASIN_OPTIMIZER_LION  ? lion_step(a, p, g)
                      : c->kind == BASIN_OPTIMIZER_SGD ? sgd_step(a, p, g)
                                                       : adamw_step(a, p, g);
    if (decay != 0) step = basin_add(step, basin_scale(p, decay));
    basin_expr p1 = basin_sub(p, basin_mul(basin_scale(a->rate, rate_of(a, p)), step));
    if (param->minimum > 0)
        p1 = basin_maximum(p1, basin_scalar(basin_expr_graph(p), param->minimum));
    a->update[a->updates++] = (basin_update){p, p1};
}

/* `moving`: room for the gradients of the parameters that move. */
static void build(basin_optimizer *a, const basin_params *params, const basin_expr *gradient,
                  basin_expr *moving) {
    basin_graph *graph = params->graph;
    size_t count = 0;
    a->rate = basin_input(graph, "adamw.rate", BASIN_SCALAR);
    a->correct1 = basin_input(graph, "adamw.correct1", BASIN_SCALAR);
    a->correct2 = basin_input(graph, "adamw.correct2", BASIN_SCALAR);
    for (size_t i = 0; i < params->count; i++)
        if (!params->param[i].statistic && rate_of(a, params->param[i].state) != 0)
            moving[count++] = gradient[i];
    a->norm = count ? basin_sqrt(basin_sum_squares(moving, (int)count)) : basin_scalar(graph, 0);
    basin_expr clip = NULL;
    if (a->config.clip > 0)
        clip = basin_minimum(basin_scalar(graph, 1), basin_div(basin_scalar(graph, a->config.clip),
                                                               basin_offset(a->norm, 1e-12)));
    for (size_t i = 0; i < params->count; i++) {
        const basin_param *p = &params->param[i];
        if (p->statistic && p->next) a->update[a->updates++] = (basin_update){p->state, p->next};
        if (!p->statistic && rate_of(a, p->state) != 0)
            add_updates(a, p, clip ? basin_mul(clip, gradient[i]) : gradient[i]);
    }
}

/* basin_optimizer_new from gradients that are there, one per parameter: expressions of the
 * parameters' graph. */
static basin_status optimizer_from(basin_optimizer *optimizer, const basin_params *params,
                                   const basin_expr *gradient, const basin_optimizer_config *config,
                                   basin_error *error) {
    *optimizer = (basin_optimizer){.config = *config};
    BASIN_TRY(check_groups(optimizer, params, error));
    BASIN_SCRATCH_RAW(basin_expr, moving, params->count, "an optimizer", error);
    BASIN_TRY(BASIN_NEW_RAW(&optimizer->update, 3 * params->count, "an optimizer", error));
    if (params->count) build(optimizer, params, gradient, moving);
    optimizer->config.group = NULL; /* the caller's; not needed any more */
    optimizer->config.groups = 0;
    BASIN_TRY_OR(basin_graph_check(params->graph, error), basin_optimizer_free(optimizer));
    if (params->count) return BASIN_OK;
    basin_optimizer_free(optimizer);
    return basin_fail(error, BASIN_BAD_VALUE, "no parameter to train");
}

basin_status basin_optimizer_new(basin_optimizer *optimizer, const basin_params *params,
                                 basin_expr loss, const basin_optimizer_config *config,
                                 basin_error *error) {
    static const basin_optimizer_config defaults = BASIN_OPTIMIZER_DEFAULT;
    *optimizer = (basin_optimizer){0};
    BASIN_TRY(BASIN_SIZE_CHECK(config, "basin_optimizer_config", error));
    if (!config) config = &defaults;
    BASIN_SCRATCH_RAW(basin_expr, gradient, params->count, "an optimizer", error);
    BASIN_TRY(basin_gradients(gradient, params, loss, error));
    return optimizer_from(optimizer, params, gradient, config, error);
}

void basin_optimizer_free(basin_optimizer *optimizer) {
    free(optimizer->update);
    *optimizer = (basin_optimizer){0};
}

static basin_status write_scalar(basin_plan *plan, basin_expr input, double value,
                                 basin_error *error) {
    return basin_values_write(plan, input, &value, BASIN_F64, error);
}

basin_status basin_optimizer_write(const basin_optimizer *optimizer, basin_plan *plan, int64_t t,
                                   double rate, basin_error *error) {
    const basin_optimizer_config *c = &optimizer->config;
    BASIN_TRY(write_scalar(plan, optimizer->rate, rate, error));
    BASIN_TRY(write_scalar(plan, optimizer->correct1, 1 - pow(c->beta1, (double)t), error));
    return write_scalar(plan, optimizer->correct2, 1 - pow(c->beta2, (double)t), error);
}

/* ---- the plan of a trainer ---- */

struct basin_trainer {
    basin_store *store;
    basin_expr loss;
    basin_optimizer optimizer;
    basin_schedule schedule;
    basin_plan *plan;
    int64_t step;
    /* With a reduction: `plan` leaves gradients in the store, `update` reads them. */
    basin_reduction reduction;
    basin_plan *update;
    basin_params gradients;
};

static basin_status make_plan(basin_trainer *t, const basin_trainer_spec *spec,
                              const basin_update *update, int updates, basin_error *error) {
    size_t outputs = (size_t)spec->outputs + 1;
    BASIN_SCRATCH_RAW(basin_expr, output, outputs, "a trainer", error);
    output[0] = t->loss;
    for (size_t i = 1; i < outputs; i++) output[i] = spec->output[i - 1];
    basin_plan_spec plan = {
        .output = output, .outputs = (int)outputs, .update = update, .updates = updates};
    return basin_plan_new(&t->plan, t->store, &plan, error);
}

/* ---- gradients and update apart, for processes that meet in between ---- */

/* States "gradient.NAME", and the plan of the update by them. */
static basin_status make_update(basin_trainer *t, const basin_params *params,
                                const basin_trainer_spec *spec, basin_error *error) {
    BASIN_SCRATCH_RAW(basin_expr, gradient, params->count, "a trainer", error);
    basin_params_begin(&t->gradients, params->graph);
    for (size_t i = 0; i < params->count; i++) {
        basin_expr p = params->param[i].state;
        gradient[i] = basin_param_add(&t->gradients, "gradient.", basin_expr_name(p),
                                      basin_expr_shape(p), (basin_init){0});
    }
    BASIN_TRY(basin_graph_check(params->graph, error));
    BASIN_TRY(optimizer_from(&t->optimizer, params, gradient, &spec->optimizer, error));
    basin_plan_spec plan = {.update = t->optimizer.update, .updates = t->optimizer.updates};
    return basin_plan_new(&t->update, t->store, &plan, error);
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
                              "shards; expected a model without it, or shards 1 and one rank");
    BASIN_SCRATCH_RAW(basin_expr, gradient, count, "a trainer", error);
    BASIN_SCRATCH_RAW(basin_update, update, count, "a trainer", error);
    BASIN_TRY(basin_gradients(gradient, params, t->loss, error));
    BASIN_TRY(make_update(t, params, spec, error));
    for (size_t i = 0; i < count; i++)
        update[count - 1 - i] = (basin_update){t->gradients.param[i].state, gradient[i]};
    return make_plan(t, spec, update, (int)count, error);
}

static basin_status reduce_gradients(basin_trainer *t, basin_error *error) {
    size_t count = t->gradients.count;
    const char **name BASIN_FREE_AT_EXIT = NULL;
    if (!t->reduction.sum)
        return basin_fail(error, BASIN_UNSUPPORTED, "a step of one shard needs a reduction");
    BASIN_TRY(BASIN_NEW_RAW(&name, count, "a reduction", error));
    for (size_t i = 0; i < count; i++) name[i] = basin_expr_name(t->gradients.param[i].state);
    return t->reduction.sum(t->reduction.context, t->store, name, (int)count, error);
}

/* ---- a trainer ---- */

static basin_status make(basin_trainer *t, const basin_params *params,
                         const basin_trainer_spec *spec, basin_error *error) {
    if (!t->loss) return make_update(t, params, spec, error);
    if (spec->reduction) return make_apart(t, params, spec, error);
    BASIN_TRY(basin_optimizer_new(&t->optimizer, params, t->loss, &spec->optimizer, error));
    return make_plan(t, spec, t->optimizer.update, t->optimizer.updates, error);
}

void basin_trainer_free(basin_trainer *trainer) {
    if (!trainer) return;
    basin_plan_free(trainer->plan);
    basin_plan_free(trainer->update);
    basin_params_free(&trainer->gradients);
    basin_optimizer_free(&trainer->optimizer);
    free(trainer);
}

basin_plan *basin_trainer_plan(const basin_trainer *trainer) {
    return trainer ? trainer->plan : NULL;
}

void basin_trainer_get_info(basin_trainer_info *info, const basin_trainer *trainer) {
    basin_trainer_info all = {
        .store = trainer->store, .step = trainer->step, .gradients = &trainer->gradients};
    basin_info_fill(info, &all, sizeof all);
}

void basin_trainer_set_step(basin_trainer *trainer, int64_t step) { trainer->step = step; }

/* The rate and corrections of this step, to the plan that updates. */
static basin_status write_rate(basin_trainer *t, basin_error *error) {
    double rate = basin_schedule_rate(&t->schedule, t->step);
    return basin_optimizer_write(&t->optimizer, t->update ? t->update : t->plan, t->step + 1, rate,
                                 error);
}

/* The rate of the first step is there from the beginning, so that the plan can also run by itself.
 */
basin_status basin_trainer_new(basin_trainer **trainer, basin_store *store,
                               const basin_params *params, basin_expr loss,
                               const basin_trainer_spec *spec, basin_error *error) {
    *trainer = NULL;
    BASIN_TRY(BASIN_SIZE_CHECK(spec, "basin_trainer_spec", error));
    BASIN_AT_EXIT(basin_trainer_free_at) basin_trainer *t = NULL;
    BASIN_TRY(BASIN_NEW(&t, 1, "a trainer", error));
    *t = (basin_trainer){.store = store, .loss = loss, .schedule = spec->schedule};
    BASIN_TRY(make(t, params, spec, error));
    BASIN_TRY(write_rate(t, error));
    *trainer = t;
    t = NULL;
    return BASIN_OK;
}

basin_status basin_trainer_apply(basin_trainer *trainer, basin_error *error) {
    BASIN_TRY(write_rate(trainer, error));
    BASIN_TRY(basin_plan_run(trainer->update, error));
    trainer->step++;
    return BASIN_OK;
}

basin_status basin_trainer_step(double *loss, basin_trainer *trainer, basin_error *error) {
    basin_trainer *t = trainer;
    if (!t->update) BASIN_TRY(write_rate(t, error));
    BASIN_TRY(basin_plan_run(t->plan, error));
    if (t->update) {
        BASIN_TRY(reduce_gradients(t, error));
        BASIN_TRY(basin_trainer_apply(t, error));
    } else
        t->step++;
    return loss ? basin_trainer_loss(loss, t, error) : BASIN_OK;
}

basin_status basin_trainer_loss(double *loss, const basin_trainer *trainer, basin_error *error) {
    BASIN_TRY(basin_values_read(trainer->plan, trainer->loss, loss, BASIN_F64, error));
    return basin_loss_check(*loss, trainer->step, error);
}

/* ---- checkpoints and parameters as safetensors files ---- */

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
    BASIN_TRY(basin_bundle_new(&bundle, NULL, error));
    BASIN_TRY(add_meta(bundle, meta, metas, error));
    BASIN_TRY(basin_bundle_meta_set(bundle, "step", text, error));
    for (int i = 0; basin_store_name(store, i); i++)
        BASIN_TRY(basin_state_add(bundle, store, basin_store_name(store, i), error));
    return basin_bundle_write_safetensors(path, bundle, error);
}

basin_status basin_checkpoint_read(int64_t *step, basin_store *store, const basin_bundle *bundle,
                                   basin_error *error) {
    const char *text = basin_bundle_meta(bundle, "step");
    char *end = NULL;
    errno = 0;
    *step = text ? strtoll(text, &end, 10) : -1;
    if (!text || errno || end == text || *end || *step < 0)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: the step is '%s', expected a number: not a checkpoint",
                          basin_bundle_path(bundle), text ? text : "absent");
    for (int i = 0; basin_store_name(store, i); i++)
        BASIN_TRY(basin_state_restore(store, basin_store_name(store, i),
                                      basin_store_shape(store, i), bundle, error));
    return BASIN_OK;
}

basin_status basin_params_write(const char *path, const basin_params *params, basin_store *store,
                                const basin_meta *meta, int metas, basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    BASIN_TRY(basin_bundle_new(&bundle, NULL, error));
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
