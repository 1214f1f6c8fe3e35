/* Copies of parameters within a store, and the checkpoint of a run; see anomaly_file.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "task/anomaly_file.h"

enum { NAME = 300 };

static const char *join(char text[NAME], const char *prefix, basin_expr state, const char *suffix) {
    snprintf(text, NAME, "%s%s%s", prefix, basin_expr_name(state), suffix);
    return text;
}

basin_status basin_states_copy(basin_store *store, const basin_params *params, const char *to,
                               const char *from, basin_error *error) {
    char name[NAME];
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < params->count && !status; i++) {
        basin_expr state = params->param[i].state;
        basin_tensor tensor;
        status = basin_store_read(store, join(name, from, state, ""), &tensor, error);
        if (status) break;
        status = basin_store_write(store, join(name, to, state, ""), &tensor, error);
        basin_tensor_free(&tensor);
    }
    return status;
}

/* a = keep a + (1 - keep) b */
static void mix(basin_tensor *a, const basin_tensor *b, double keep) {
    int64_t count = basin_shape_count(a->shape);
    if (a->dtype == BASIN_F64)
        for (int64_t i = 0; i < count; i++)
            ((double *)a->data)[i] =
                keep * ((double *)a->data)[i] + (1 - keep) * ((const double *)b->data)[i];
    else
        for (int64_t i = 0; i < count; i++)
            ((float *)a->data)[i] = (float)keep * ((float *)a->data)[i] +
                                    (float)(1 - keep) * ((const float *)b->data)[i];
}

basin_status basin_states_average(basin_store *store, const basin_params *params, const char *to,
                                  double a, int64_t step, basin_error *error) {
    char name[NAME];
    double keep = fmin(a, (double)step / (10.0 + (double)step));
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < params->count && !status; i++) {
        basin_expr state = params->param[i].state;
        basin_tensor old = {0}, now = {0};
        status = basin_store_read(store, join(name, to, state, ""), &old, error);
        if (!status) status = basin_store_read(store, basin_expr_name(state), &now, error);
        if (!status) mix(&old, &now, keep);
        if (!status) status = basin_store_write(store, name, &old, error);
        basin_tensor_free(&old);
        basin_tensor_free(&now);
    }
    return status;
}

basin_status basin_states_clear_moments(basin_store *store, const basin_params *params,
                                        basin_error *error) {
    char name[NAME];
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < params->count && !status; i++) {
        basin_expr state = params->param[i].state;
        basin_tensor zero;
        status = basin_tensor_new(&zero, BASIN_F32, basin_expr_shape(state), error);
        if (status) break;
        status = basin_store_write(store, join(name, "", state, ".m"), &zero, error);
        if (!status) status = basin_store_write(store, join(name, "", state, ".v"), &zero, error);
        basin_tensor_free(&zero);
    }
    return status;
}

basin_status basin_states_bundle(basin_bundle **bundle, basin_store *store,
                                 const basin_params *params, const char *prefix,
                                 basin_error *error) {
    char name[NAME];
    basin_bundle_free(*bundle);
    *bundle = NULL;
    basin_status status = basin_bundle_new(bundle, error);
    for (size_t i = 0; i < params->count && !status; i++) {
        basin_expr state = params->param[i].state;
        basin_tensor tensor;
        status = basin_store_read(store, join(name, prefix, state, ""), &tensor, error);
        if (status) break;
        status = basin_bundle_add(*bundle, basin_expr_name(state), &tensor, error);
        basin_tensor_free(&tensor);
    }
    return status;
}

basin_status basin_states_write(basin_store *store, const basin_bundle *bundle,
                                basin_error *error) {
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < basin_bundle_count(bundle) && !status; i++)
        status = basin_store_write(store, basin_bundle_name(bundle, i), basin_bundle_at(bundle, i),
                                   error);
    return status;
}

/* ---- checkpoints ---- */

basin_status basin_fit_save(const char *path, const basin_anomaly_recipe *recipe,
                            basin_store *store, int64_t step, const basin_fit_state *s,
                            basin_error *error) {
    char text[4][40];
    char *config = basin_settings_print(recipe, basin_anomaly_settings, false);
    if (!config) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a checkpoint");
    snprintf(text[0], sizeof text[0], "%lld", (long long)s->member);
    snprintf(text[1], sizeof text[1], "%lld", (long long)s->epoch);
    snprintf(text[2], sizeof text[2], "%lld", (long long)s->best_epoch);
    snprintf(text[3], sizeof text[3], "%.17g", s->best);
    basin_meta meta[] = {{"basin.model", "anomaly checkpoint"},
                         {"basin.config", config},
                         {"member", text[0]},
                         {"epoch", text[1]},
                         {"best_epoch", text[2]},
                         {"best", text[3]}};
    basin_status status =
        basin_checkpoint_write(path, store, step, meta, (int)(sizeof meta / sizeof *meta), error);
    free(config);
    return status;
}

static basin_status read_number(double *value, const basin_bundle *bundle, const char *key,
                                basin_error *error) {
    const char *text = basin_bundle_meta(bundle, key);
    char *end = NULL;
    *value = text ? strtod(text, &end) : NAN;
    if (text && end != text && !*end) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s is '%s'; wanted a number",
                      basin_bundle_path(bundle), key, text ? text : "absent");
}

static basin_status read_state(basin_fit_state *s, const basin_bundle *bundle, basin_error *error) {
    double number[4];
    const char *const key[] = {"member", "epoch", "best_epoch", "best"};
    for (int i = 0; i < 4; i++) {
        basin_status status = read_number(&number[i], bundle, key[i], error);
        if (status) return status;
    }
    *s = (basin_fit_state){(int64_t)number[0], (int64_t)number[1], (int64_t)number[2], number[3]};
    return BASIN_OK;
}

static basin_status check_recipe(const basin_anomaly_recipe *recipe, const basin_bundle *bundle,
                                 basin_error *error) {
    const char *config = basin_bundle_meta(bundle, "basin.config"),
               *path = basin_bundle_path(bundle);
    basin_anomaly_recipe found = *recipe;
    if (!config)
        return basin_fail(error, BASIN_BAD_FILE, "%s: no configuration; wanted a checkpoint", path);
    basin_status status = basin_settings_parse(&found, basin_anomaly_settings, config, path, error);
    if (status) return status;
    const char *other = basin_settings_differ(recipe, &found, basin_anomaly_settings);
    if (!other) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: its %s is not the one asked for; a run goes on with its own settings",
                      path, other);
}

basin_status basin_fit_load(const char *path, const basin_anomaly_recipe *recipe,
                            basin_store *store, const basin_params *params, int64_t *step,
                            basin_fit_state *state, basin_error *error) {
    basin_bundle *bundle;
    basin_status status = basin_bundle_read(&bundle, path, error);
    if (status) return status;
    status = check_recipe(recipe, bundle, error);
    if (!status) status = read_state(state, bundle, error);
    for (int64_t m = 0; !status && m < state->member && m < recipe->members; m++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "member%lld.", (long long)m);
        status = basin_states_copy(store, params, prefix, "", error);
    }
    if (!status) status = basin_checkpoint_read(step, store, bundle, error);
    basin_bundle_free(bundle);
    return status;
}
