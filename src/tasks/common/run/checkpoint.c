/* Checkpoints of runs, and averages of their weights: every state of the store that belongs to a
 * parameter, and where the run stands as JSON in the metadata, every number by its name. */

#include "base/bundle.h"
#include "base/states.h"
#include "basin/train.h"
#include "tasks/common/digest.h"
#include "tasks/common/run/run.h"

enum { NAME = 320 };

/* ---- states by prefix ---- */

static bool has_state(const basin_store *store, const char *name) {
    for (int i = 0; basin_store_name(store, i); i++)
        if (!strcmp(basin_store_name(store, i), name)) return true;
    return false;
}

basin_status basin_states_copy(basin_store *store, const basin_params *params, const char *to,
                               const char *from, basin_error *error) {
    for (size_t i = 0; i < params->count; i++) {
        char a[NAME], b[NAME];
        const char *name = basin_expr_name(params->param[i].state);
        snprintf(a, sizeof a, "%s%s", to, name);
        snprintf(b, sizeof b, "%s%s", from, name);
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor tensor;
        BASIN_TRY(basin_store_get(&tensor, store, b, error));
        BASIN_TRY(basin_store_write(store, a, &tensor, error));
    }
    return BASIN_OK;
}

bool basin_states_exist(basin_store *store, const basin_params *params, const char *prefix) {
    char name[NAME];
    if (!params->count) return false;
    snprintf(name, sizeof name, "%s%s", prefix, basin_expr_name(params->param[0].state));
    return has_state(store, name);
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

/* The parameter that a state is, or is a moment or a kept copy of; NULL: of none. */
static const basin_param *parameter_of(const basin_params *params, const char *name) {
    size_t length = strlen(name);
    const basin_param *p = find(params, name, length);
    if (p) return p;
    if (length > 2 && (!strcmp(name + length - 2, ".m") || !strcmp(name + length - 2, ".v")))
        return find(params, name, length - 2);
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
                      "%s: its run trains on other %s than these; use the same, or start a new run",
                      basin_bundle_path(checkpoint), task->unit);
}

/* ---- where a run stands: one list of fields, which are written or read ---- */

static const char KEY[] = "basin.run";

typedef struct fields {
    cJSON *object;
    bool reading;
    bool good; /* all were there, or found memory */
} fields;

/* Numbers are exact; those that JSON lacks (NaN, infinity) become null. */
static void number(fields *f, const char *name, double *value) {
    char text[BASIN_NUMBER_TEXT];
    if (f->reading) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(f->object, name);
        *value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
        f->good = f->good && (cJSON_IsNumber(item) || cJSON_IsNull(item));
    } else if (f->good) {
        cJSON *item = isfinite(*value) ? cJSON_CreateRaw(basin_number_print(text, *value))
                                       : cJSON_CreateNull();
        f->good = item && cJSON_AddItemToObject(f->object, name, item);
        if (!f->good) cJSON_Delete(item);
    }
}

static void count(fields *f, const char *name, int64_t *value) {
    double as = (double)*value;
    number(f, name, &as);
    f->good = f->good && as >= 0 && as <= 0x1p53 && as == floor(as);
    if (f->reading) *value = f->good ? (int64_t)as : 0;
}

static fields inside(fields *f, const char *name) {
    cJSON *object = f->reading ? cJSON_GetObjectItemCaseSensitive(f->object, name)
                    : f->good  ? cJSON_AddObjectToObject(f->object, name)
                               : NULL;
    return (fields){object, f->reading, f->good && object};
}

static void sum(fields *f, const char *name, basin_run_sum *to) {
    fields in = inside(f, name);
    number(&in, "loss", &to->loss);
    number(&in, "weight", &to->weight);
    f->good = in.good && (!f->reading || (to->weight >= 0 && isfinite(to->loss)));
}

static void score(fields *f, const char *name, basin_score *to) {
    const cJSON *item;
    fields in = inside(f, name);
    number(&in, "merit", &to->merit);
    number(&in, "tie", &to->tie);
    fields each = inside(&in, "measures");
    if (f->reading) cJSON_ArrayForEach(item, each.object) {
            basin_score_add(to, item->string, cJSON_IsNumber(item) ? item->valuedouble : NAN);
        }
    for (int i = 0; i < to->measures && !f->reading; i++)
        number(&each, to->measure[i].name, &to->measure[i].value);
    f->good = each.good && cJSON_IsObject(each.object);
}

static void members(fields *f, basin_run_state *s) {
    cJSON *array = f->reading ? cJSON_GetObjectItemCaseSensitive(f->object, "members")
                   : f->good  ? cJSON_AddArrayToObject(f->object, "members")
                              : NULL;
    f->good =
        f->good && cJSON_IsArray(array) && (!f->reading || cJSON_GetArraySize(array) == s->member);
    for (int64_t m = 0; m < s->member && f->good; m++) {
        basin_run_member *how = &s->done[m];
        cJSON *one = f->reading ? cJSON_GetArrayItem(array, (int)m) : cJSON_CreateObject();
        fields in = {one, f->reading, one && (f->reading || cJSON_AddItemToArray(array, one))};
        count(&in, "best_epoch", &how->best_epoch);
        count(&in, "epochs", &how->epochs);
        number(&in, "merit", &how->merit);
        f->good = in.good;
    }
}

static bool state(cJSON *object, bool reading, basin_run_state *s) {
    fields f = {object, reading, object != NULL};
    count(&f, "member", &s->member);
    f.good = f.good && s->member < BASIN_MAX_MEMBERS;
    count(&f, "epoch", &s->epoch);
    count(&f, "step", &s->step);
    sum(&f, "epoch_loss", &s->epoch_loss);
    sum(&f, "recent_loss", &s->recent_loss);
    count(&f, "best_epoch", &s->best_epoch);
    score(&f, "best", &s->best);
    score(&f, "last", &s->last);
    number(&f, "seconds", &s->seconds);
    members(&f, s);
    return f.good;
}

static basin_status write_state(basin_bundle *bundle, basin_run_state *at, basin_error *error) {
    BASIN_JSON_AT_EXIT cJSON *object = cJSON_CreateObject();
    BASIN_FREE_AT_EXIT char *text =
        state(object, false, at) ? cJSON_PrintUnformatted(object) : NULL;
    if (!text) return basin_fail_memory(error, "a checkpoint");
    return basin_bundle_meta_set(bundle, KEY, text, error);
}

/* A damaged file must not lead a run to steps that do not exist. */
static basin_status check(const basin_run_state *s, const basin_run_task *task, const char *path,
                          basin_error *error) {
    int64_t from = s->epoch * task->steps;
    if (s->member >= task->members)
        return basin_fail(error, BASIN_BAD_FILE, "%s: member is %lld, expected less than %lld",
                          path, (long long)s->member, (long long)task->members);
    if (s->epoch > task->epochs)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: its run has done %lld epochs; %lld are requested", path,
                          (long long)s->epoch, (long long)task->epochs);
    if (s->step < from || s->step > from + task->steps)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: step is %lld, expected %lld to %lld in epoch %lld: another set of "
                          "data, or a damaged file",
                          path, (long long)s->step, (long long)from, (long long)from + task->steps,
                          (long long)s->epoch + 1);
    if (s->best_epoch > s->epoch)
        return basin_fail(error, BASIN_BAD_FILE, "%s: best_epoch is %lld, expected at most %lld",
                          path, (long long)s->best_epoch, (long long)s->epoch);
    return BASIN_OK;
}

/* Checked against what the task can have. */
static basin_status read_state(basin_run_state *at, const basin_bundle *bundle,
                               const basin_run_task *task, basin_error *error) {
    const char *path = basin_bundle_path(bundle), *text = basin_bundle_meta(bundle, KEY);
    BASIN_JSON_AT_EXIT cJSON *object = NULL;
    *at = (basin_run_state){0};
    if (!text)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s is absent: not a checkpoint of a run",
                          path, KEY);
    BASIN_TRY(basin_json_parse(&object, text, strlen(text), path, KEY, error));
    if (!state(object, true, at))
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s is damaged: a number is missing", path,
                          KEY);
    return check(at, task, path, error);
}

/* ---- writing ---- */

static basin_status add_states(basin_bundle *bundle, const basin_run_task *task,
                               basin_error *error) {
    for (int i = 0; basin_store_name(task->store, i); i++) {
        const char *name = basin_store_name(task->store, i);
        if (parameter_of(task->params, name))
            BASIN_TRY(basin_state_add(bundle, task->store, name, error));
    }
    return BASIN_OK;
}

static basin_status fill(basin_bundle *bundle, basin_run *run, basin_error *error) {
    const basin_run_task *task = run->task;
    BASIN_TRY(task->describe(task->context, bundle, error));
    BASIN_TRY(add_data(bundle, task, error));
    BASIN_TRY(write_state(bundle, &run->at, error));
    return add_states(bundle, task, error);
}

basin_status basin_run_save(basin_run *run, basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    BASIN_TRY(basin_bundle_new(&bundle, NULL, error));
    BASIN_TRY(fill(bundle, run, error));
    BASIN_TRY(basin_bundle_digest(bundle, error));
    return basin_bundle_write_safetensors(run->checkpoint, bundle, error);
}

/* ---- reading ---- */

static basin_status restore_tensor(const basin_run_task *task, const basin_bundle *bundle,
                                   const char *name, basin_error *error) {
    const basin_param *param = parameter_of(task->params, name);
    if (param)
        return basin_state_restore(task->store, name, basin_expr_shape(param->state), bundle,
                                   error);
    return basin_fail(error, BASIN_BAD_FILE, "%s: tensor '%s' belongs to no parameter",
                      basin_bundle_path(bundle), name);
}

/* A parameter, and the optimiser's moments of it once a step has been taken: both, or where the
 * task has `some_moments` (Lion and SGD keep one, frozen parameters and statistics none) those that
 * the trainer has put into the store. */
static basin_status check_there(const basin_run_task *task, const basin_bundle *bundle,
                                const basin_param *param, bool moments, basin_error *error) {
    static const char *const suffix[] = {"", ".m", ".v"};
    for (int i = 0; i < (moments && !param->statistic ? 3 : 1); i++) {
        const basin_tensor *tensor;
        char text[NAME];
        snprintf(text, sizeof text, "%s%s", basin_expr_name(param->state), suffix[i]);
        if (i && task->some_moments && !has_state(task->store, text)) continue;
        BASIN_TRY(basin_bundle_get(&tensor, bundle, text, error));
    }
    return BASIN_OK;
}

static basin_status restore_store(const basin_run_task *task, const basin_bundle *bundle,
                                  bool moments, basin_error *error) {
    for (size_t i = 0; i < task->params->count; i++)
        BASIN_TRY(check_there(task, bundle, &task->params->param[i], moments, error));
    for (size_t i = 0; i < basin_bundle_count(bundle); i++)
        BASIN_TRY(restore_tensor(task, bundle, basin_bundle_name(bundle, i), error));
    return BASIN_OK;
}

basin_status basin_run_restore(basin_run_state *state, const basin_run_task *task,
                               const basin_bundle *checkpoint, basin_error *error) {
    BASIN_TRY(read_state(state, checkpoint, task, error));
    BASIN_TRY(restore_store(task, checkpoint, state->step > 0, error));
    if (state->best_epoch && !basin_states_exist(task->store, task->params, "best."))
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: the weights of its best epoch, %lld, are missing",
                          basin_bundle_path(checkpoint), (long long)state->best_epoch);
    if (task->restore) BASIN_TRY(task->restore(task->context, state->member, checkpoint, error));
    return check_data(task, checkpoint, error);
}

/* ---- averages of parameters over steps ---- */

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

/* One parameter. */
static basin_status average(basin_store *store, const char *name, double keep, basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor old = {0};
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor now = {0};
    char mean[NAME];
    snprintf(mean, sizeof mean, "average.%s", name);
    BASIN_TRY(basin_store_get(&old, store, mean, error));
    BASIN_TRY(basin_store_get(&now, store, name, error));
    mix(&old, &now, keep);
    return basin_store_write(store, mean, &old, error);
}

basin_status basin_run_average(basin_store *store, const basin_params *params, double limit,
                               int64_t t, basin_error *error) {
    double keep = fmin(limit, (double)t / (10 + (double)t));
    for (size_t i = 0; i < params->count; i++)
        BASIN_TRY(average(store, basin_expr_name(params->param[i].state), keep, error));
    return BASIN_OK;
}
