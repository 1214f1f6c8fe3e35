/* AdamW, Lion and SGD with clipping by the global norm, built from expressions; see
 * include/basin/train.h. */
#include "basin/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/try.h"
#include "plan/plan.h"
#include "train/trainer.h"

static basin_expr global_norm(const basin_expr *gradient, size_t count) {
    return basin_sqrt(basin_sum_squares(gradient, (int)count));
}

static basin_expr moment(basin_expr state, const char *suffix) {
    char name[300];
    snprintf(name, sizeof name, "%s%s", basin_expr_name(state), suffix);
    return basin_state(basin_expr_graph(state), name, basin_expr_shape(state));
}

double basin_decay_matrices(basin_expr parameter) {
    return basin_expr_shape(parameter).rank >= 2 ? 1 : 0;
}

static basin_expr blend(basin_expr m, basin_expr g, double beta) {
    return basin_add(basin_scale(m, beta), basin_scale(g, 1 - beta));
}

/* m' = b1 m + (1 - b1) g; v' = b2 v + (1 - b2) g^2; m' / c1 / (sqrt(v' / c2) + epsilon) */
static basin_expr adamw_step(basin_adamw *a, basin_expr p, basin_expr g) {
    const basin_adamw_config *c = &a->config;
    basin_expr m = moment(p, ".m"), v = moment(p, ".v");
    basin_expr m1 = blend(m, g, c->beta1), v1 = blend(v, basin_square(g), c->beta2);
    basin_expr scale = basin_offset(basin_sqrt(basin_div(v1, a->correct2)), c->epsilon);
    a->update[a->updates++] = (basin_update){m, m1};
    a->update[a->updates++] = (basin_update){v, v1};
    return basin_div(basin_div(m1, a->correct1), scale);
}

static basin_expr lion_step(basin_adamw *a, basin_expr p, basin_expr g) {
    basin_expr m = moment(p, ".m");
    a->update[a->updates++] = (basin_update){m, blend(m, g, a->config.beta2)};
    return basin_sign(blend(m, g, a->config.beta1));
}

static basin_expr sgd_step(basin_adamw *a, basin_expr p, basin_expr g) {
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

static const basin_adamw_group *group_of(const basin_adamw *a, basin_expr p) {
    static const basin_adamw_group usual = {"*", 1, 1};
    for (int i = 0; i < a->config.groups; i++)
        if (matches(a->config.group[i].pattern, basin_expr_name(p))) return &a->config.group[i];
    return &usual;
}

static basin_status check_groups(const basin_adamw *a, const basin_params *params,
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

static double rate_of(const basin_adamw *a, basin_expr p) {
    return (a->config.rate_of ? a->config.rate_of(p) : 1) * group_of(a, p)->rate;
}

/* p' = p - rate (step + decay p), and at least `least` */
static void add_updates(basin_adamw *a, const basin_param *param, basin_expr g) {
    const basin_adamw_config *c = &a->config;
    basin_expr p = param->state;
    double decay = c->weight_decay * (c->decay_of ? c->decay_of(p) : 1) * group_of(a, p)->decay;
    basin_expr step = c->kind == BASIN_LION  ? lion_step(a, p, g)
                      : c->kind == BASIN_SGD ? sgd_step(a, p, g)
                                             : adamw_step(a, p, g);
    if (decay != 0) step = basin_add(step, basin_scale(p, decay));
    basin_expr p1 = basin_sub(p, basin_mul(basin_scale(a->rate, rate_of(a, p)), step));
    if (param->least > 0) p1 = basin_max(p1, basin_const(basin_expr_graph(p), param->least));
    a->update[a->updates++] = (basin_update){p, p1};
}

/* `moving`: room for the gradients of the parameters that move. */
static void build(basin_adamw *a, const basin_params *params, const basin_expr *gradient,
                  basin_expr *moving) {
    basin_graph *graph = params->graph;
    size_t count = 0;
    a->rate = basin_input(graph, "adamw.rate", BASIN_SCALAR);
    a->correct1 = basin_input(graph, "adamw.correct1", BASIN_SCALAR);
    a->correct2 = basin_input(graph, "adamw.correct2", BASIN_SCALAR);
    for (size_t i = 0; i < params->count; i++)
        if (!params->param[i].statistic && rate_of(a, params->param[i].state) != 0)
            moving[count++] = gradient[i];
    a->norm = count ? global_norm(moving, count) : basin_const(graph, 0);
    basin_expr clip = NULL;
    if (a->config.clip > 0)
        clip = basin_min(basin_const(graph, 1), basin_div(basin_const(graph, a->config.clip),
                                                          basin_offset(a->norm, 1e-12)));
    for (size_t i = 0; i < params->count; i++) {
        const basin_param *p = &params->param[i];
        if (p->statistic && p->next) a->update[a->updates++] = (basin_update){p->state, p->next};
        if (!p->statistic && rate_of(a, p->state) != 0)
            add_updates(a, p, clip ? basin_mul(clip, gradient[i]) : gradient[i]);
    }
}

static basin_status no_memory(basin_error *error) {
    return basin_fail_memory(error, "an optimiser");
}

basin_status basin_adamw_from(basin_adamw *adamw, const basin_params *params,
                              const basin_expr *gradient, const basin_adamw_config *config,
                              basin_error *error) {
    *adamw = (basin_adamw){.config = *config};
    basin_status status = check_groups(adamw, params, error);
    if (status) return status;
    basin_expr *moving = basin_array_new(params->count, sizeof(basin_expr));
    adamw->update = basin_array_new(3 * params->count, sizeof *adamw->update);
    if (!adamw->update || !moving) {
        free(moving);
        basin_adamw_free(adamw);
        return no_memory(error);
    }
    if (params->count) build(adamw, params, gradient, moving);
    free(moving);
    adamw->config.group = NULL; /* the caller's; not needed any more */
    adamw->config.groups = 0;
    status = basin_graph_check(params->graph, error);
    if (!status && !params->count)
        status = basin_fail(error, BASIN_BAD_VALUE, "no parameter to train");
    if (status) basin_adamw_free(adamw);
    return status;
}

basin_status basin_gradients(basin_expr *gradient, const basin_params *params, basin_expr loss,
                             basin_error *error) {
    if (basin_expr_shape(loss).rank > 0) {
        char text[BASIN_SHAPE_TEXT];
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "the loss has shape %s, wanted []: the sum or the mean of it",
                          basin_shape_print(text, basin_expr_shape(loss)));
    }
    basin_expr *state = basin_array_new(params->count, sizeof *state);
    if (!state) return no_memory(error);
    for (size_t i = 0; i < params->count; i++) state[i] = params->param[i].state;
    basin_vjp(gradient, loss, NULL, state, (int)params->count);
    for (size_t i = 0; i < params->count && params->adjust; i++)
        gradient[i] = params->adjust(state[i], gradient[i]);
    free(state);
    BASIN_TRY(basin_graph_check(params->graph, error));
    return loss ? BASIN_OK : basin_fail(error, BASIN_BAD_VALUE, "no loss to train");
}

basin_status basin_adamw_new(basin_adamw *adamw, const basin_params *params, basin_expr loss,
                             const basin_adamw_config *config, basin_error *error) {
    *adamw = (basin_adamw){0};
    basin_expr *gradient = basin_array_new(params->count, sizeof *gradient);
    if (!gradient) return no_memory(error);
    basin_status status = basin_gradients(gradient, params, loss, error);
    if (!status) status = basin_adamw_from(adamw, params, gradient, config, error);
    free(gradient);
    return status;
}

void basin_adamw_free(basin_adamw *adamw) {
    free(adamw->update);
    *adamw = (basin_adamw){0};
}

static basin_status write_scalar(basin_plan *plan, basin_expr input, double value,
                                 basin_error *error) {
    basin_tensor tensor = basin_tensor_borrow(&value, BASIN_F64, BASIN_SCALAR);
    return basin_plan_write(plan, input, &tensor, error);
}

basin_status basin_adamw_write(const basin_adamw *adamw, basin_plan *plan, int64_t t, double rate,
                               basin_error *error) {
    const basin_adamw_config *c = &adamw->config;
    BASIN_TRY(write_scalar(plan, adamw->rate, rate, error));
    BASIN_TRY(write_scalar(plan, adamw->correct1, 1 - pow(c->beta1, (double)t), error));
    return write_scalar(plan, adamw->correct2, 1 - pow(c->beta2, (double)t), error);
}

double basin_rate_cosine(int64_t step, int64_t warmup, int64_t total, double first, double peak,
                         double last) {
    if (step < warmup) return first + (peak - first) * (double)step / (double)warmup;
    double done = total > warmup ? (double)(step - warmup) / (double)(total - warmup) : 1;
    return last + (peak - last) * 0.5 * (1 + cos(acos(-1) * fmin(done, 1)));
}
