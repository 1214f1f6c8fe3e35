/* Checkpoints of runs: every state of the store that belongs to a parameter, and where the run
 * stands; see state.h. */
#include <stdio.h>
#include <string.h>

#include "train/restore.h"
#include "train/run/share.h"

enum { NAME = 320 };

/* ---- states by prefix ---- */

static basin_status copy_state(basin_store *store, const char *to, const char *from,
                               basin_error *error) {
    basin_tensor tensor;
    basin_status status = basin_store_read(store, from, &tensor, error);
    if (status) return status;
    status = basin_store_write(store, to, &tensor, error);
    basin_tensor_free(&tensor);
    return status;
}

basin_status basin_states_copy(basin_store *store, const basin_params *params, const char *to,
                               const char *from, basin_error *error) {
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < params->count && !status; i++) {
        char a[NAME], b[NAME];
        const char *name = basin_expr_name(params->param[i].state);
        snprintf(a, sizeof a, "%s%s", to, name);
        snprintf(b, sizeof b, "%s%s", from, name);
        status = copy_state(store, a, b, error);
    }
    return status;
}

bool basin_states_exist(basin_store *store, const basin_params *params, const char *prefix) {
    char name[NAME];
    if (!params->count) return false;
    snprintf(name, sizeof name, "%s%s", prefix, basin_expr_name(params->param[0].state));
    for (int i = 0; i < basin_store_count(store); i++)
        if (!strcmp(basin_store_name(store, i), name)) return true;
    return false;
}

/* ---- whose a state is ---- */

static const basin_param *find(const basin_params *params, const char *name, size_t length) {
    for (size_t i = 0; i < params->count; i++) {
        const char *known = basin_expr_name(params->param[i].state);
        if (strlen(known) == length && !strncmp(known, name, length)) return &params->param[i];
    }
    return NULL;
}

static size_t prefix_length(const char *name) {
    int used = 0;
    if (!strncmp(name, "best.", 5)) return 5;
    if (!strncmp(name, "average.", 8)) return 8;
    if (sscanf(name, "member%*d.%n", &used) == 0 && used > 0) return (size_t)used;
    return 0;
}

static bool is_moment(const char *name) {
    size_t length = strlen(name);
    return length > 2 && (!strcmp(name + length - 2, ".m") || !strcmp(name + length - 2, ".v"));
}

/* The parameter that a state is, or is a moment or a kept copy of; NULL: of none. */
static const basin_param *parameter_of(const basin_params *params, const char *name) {
    size_t length = strlen(name);
    const basin_param *p = find(params, name, length);
    if (p) return p;
    if (is_moment(name)) return find(params, name, length - 2);
    size_t skip = prefix_length(name);
    return skip ? find(params, name + skip, length - skip) : NULL;
}

/* ---- what is trained on ---- */

static const char DATA_KEY[] = "basin.trained_on";
enum { DIGEST = 17 };

static basin_status add_data(basin_bundle *bundle, const basin_run_task *task, basin_error *error) {
    char text[DIGEST];
    if (!task->data) return BASIN_OK;
    snprintf(text, sizeof text, "%016llx", (unsigned long long)task->data);
    return basin_bundle_meta_set(bundle, DATA_KEY, text, error);
}

static basin_status check_data(const basin_run_task *task, const basin_bundle *checkpoint,
                               basin_error *error) {
    char text[DIGEST];
    const char *found = basin_bundle_meta(checkpoint, DATA_KEY);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)task->data);
    if (!task->data || !found || !strcmp(found, text)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: its run trains on other %s than these; wanted the same, or a new run",
                      basin_bundle_path(checkpoint), task->unit);
}

/* ---- writing ---- */

static basin_status add_states(basin_bundle *bundle, const basin_run_task *task,
                               basin_error *error) {
    basin_status status = BASIN_OK;
    for (int i = 0; i < basin_store_count(task->store) && !status; i++) {
        const char *name = basin_store_name(task->store, i);
        basin_tensor tensor;
        if (!parameter_of(task->params, name)) continue;
        status = basin_store_read(task->store, name, &tensor, error);
        if (!status) status = basin_bundle_add(bundle, name, &tensor, error);
        basin_tensor_free(&tensor);
    }
    return status;
}

basin_status basin_run_save(basin_run *run, basin_error *error) {
    const basin_run_task *task = run->task;
    basin_bundle *bundle;
    basin_status status = basin_bundle_new(&bundle, error);
    if (status) return status;
    status = task->describe(task->context, bundle, error);
    if (!status) status = add_data(bundle, task, error);
    if (!status) status = basin_run_state_write(bundle, &run->at, error);
    if (!status) status = add_states(bundle, task, error);
    if (!status) status = basin_run_share_moments(run, bundle, error);
    if (!status) status = basin_safetensors_write(run->checkpoint, bundle, error);
    basin_bundle_free(bundle);
    return status;
}

/* ---- reading ---- */

static basin_status restore_tensor(const basin_run_task *task, const basin_bundle *bundle,
                                   const char *name, basin_error *error) {
    const basin_param *param = parameter_of(task->params, name);
    if (param && task->own && is_moment(name) && !task->own[param - task->params->param])
        return BASIN_OK; /* another rank's */
    if (param)
        return basin_state_restore(task->store, name, basin_expr_shape(param->state), bundle,
                                   error);
    return basin_fail(error, BASIN_BAD_FILE, "%s: tensor '%s' belongs to no parameter",
                      basin_bundle_path(bundle), name);
}

/* A parameter, and the optimiser's two moments of it once a step has been taken; a statistic has
 * none. */
static basin_status check_there(const basin_bundle *bundle, const char *name, bool moments,
                                basin_error *error) {
    static const char *const suffix[] = {"", ".m", ".v"};
    basin_status status = BASIN_OK;
    for (int i = 0; i < (moments ? 3 : 1) && !status; i++) {
        const basin_tensor *tensor;
        char text[NAME];
        snprintf(text, sizeof text, "%s%s", name, suffix[i]);
        status = basin_bundle_get(&tensor, bundle, text, error);
    }
    return status;
}

static basin_status restore_store(const basin_run_task *task, const basin_bundle *bundle,
                                  bool moments, basin_error *error) {
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < task->params->count && !status; i++)
        status = check_there(bundle, basin_expr_name(task->params->param[i].state),
                             moments && !task->params->param[i].statistic, error);
    for (size_t i = 0; i < basin_bundle_count(bundle) && !status; i++) {
        status = restore_tensor(task, bundle, basin_bundle_name(bundle, i), error);
    }
    return status;
}

basin_status basin_run_restore(basin_run_state *state, const basin_run_task *task,
                               const basin_bundle *checkpoint, basin_error *error) {
    basin_status status = basin_run_state_read(state, checkpoint, task, error);
    if (!status) status = restore_store(task, checkpoint, state->step > 0, error);
    if (!status && state->best_epoch && !basin_states_exist(task->store, task->params, "best."))
        status = basin_fail(error, BASIN_BAD_FILE, "%s: the weights of its best epoch, %lld, lack",
                            basin_bundle_path(checkpoint), (long long)state->best_epoch);
    if (!status && task->restore)
        status = task->restore(task->context, state->member, checkpoint, error);
    if (!status) status = check_data(task, checkpoint, error);
    return status;
}
