/* The state of a run as JSON in a checkpoint's metadata: every number by its name; see state.h. */
#include "train/run/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "io/json.h"

static const char KEY[] = "basin.run";

/* ---- writing ---- */

/* Numbers are exact; those that JSON lacks (NaN, infinity) become null. */
static bool put(cJSON *object, const char *name, double value) {
    char text[BASIN_NUMBER_TEXT];
    cJSON *item =
        isfinite(value) ? cJSON_CreateRaw(basin_number_print(text, value)) : cJSON_CreateNull();
    if (item && cJSON_AddItemToObject(object, name, item)) return true;
    cJSON_Delete(item);
    return false;
}

static bool put_sum(cJSON *object, const char *name, const basin_run_sum *sum) {
    cJSON *inner = cJSON_AddObjectToObject(object, name);
    return inner && put(inner, "loss", sum->loss) && put(inner, "weight", sum->weight);
}

/* Only of runs that seek rest points. */
static bool put_rests(cJSON *object, const char *name, const basin_rests *r) {
    if (!r->points) return true;
    cJSON *inner = cJSON_AddObjectToObject(object, name);
    return inner && put(inner, "points", (double)r->points) &&
           put(inner, "steps", (double)r->steps) &&
           put(inner, "most_steps", (double)r->most_steps) &&
           put(inner, "restless", (double)r->restless) && put(inner, "change", r->change) &&
           put(inner, "solutions", (double)r->solutions) &&
           put(inner, "products", (double)r->products) &&
           put(inner, "unsolved", (double)r->unsolved) && put(inner, "residual", r->residual);
}

static bool put_score(cJSON *object, const char *name, const basin_score *score) {
    cJSON *inner = cJSON_AddObjectToObject(object, name);
    bool good = inner && put(inner, "merit", score->merit) && put(inner, "tie", score->tie);
    cJSON *measures = good ? cJSON_AddObjectToObject(inner, "measures") : NULL;
    good = good && measures;
    for (int i = 0; i < score->measures && good; i++)
        good = put(measures, score->measure[i].name, score->measure[i].value);
    return good;
}

static bool put_members(cJSON *object, const basin_run_state *s) {
    cJSON *array = cJSON_AddArrayToObject(object, "members");
    for (int64_t m = 0; m < s->member && array; m++) {
        const basin_run_member *how = &s->done[m];
        cJSON *one = cJSON_CreateObject();
        if (one && put(one, "best_epoch", (double)how->best_epoch) &&
            put(one, "epochs", (double)how->epochs) && put(one, "merit", how->merit) &&
            cJSON_AddItemToArray(array, one))
            continue;
        cJSON_Delete(one);
        return false;
    }
    return array != NULL;
}

static cJSON *to_json(const basin_run_state *s) {
    cJSON *o = cJSON_CreateObject();
    bool good = o && put(o, "member", (double)s->member) && put(o, "epoch", (double)s->epoch) &&
                put(o, "step", (double)s->step) && put_sum(o, "epoch_loss", &s->epoch_loss) &&
                put_sum(o, "recent_loss", &s->recent_loss) &&
                put_rests(o, "epoch_rests", &s->epoch_rests) &&
                put_rests(o, "recent_rests", &s->recent_rests) &&
                put(o, "best_epoch", (double)s->best_epoch) && put_score(o, "best", &s->best) &&
                put_score(o, "last", &s->last) && put(o, "seconds", s->seconds) &&
                put_members(o, s);
    if (good) return o;
    cJSON_Delete(o);
    return NULL;
}

basin_status basin_run_state_write(basin_bundle *bundle, const basin_run_state *state,
                                   basin_error *error) {
    cJSON *object = to_json(state);
    char *text = object ? cJSON_PrintUnformatted(object) : NULL;
    cJSON_Delete(object);
    if (!text) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a checkpoint");
    basin_status status = basin_bundle_meta_set(bundle, KEY, text, error);
    cJSON_free(text);
    return status;
}

/* ---- reading ---- */

static bool get(double *value, const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    *value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    return cJSON_IsNumber(item) || cJSON_IsNull(item);
}

static bool get_count(int64_t *value, const cJSON *object, const char *name) {
    double number;
    bool good =
        get(&number, object, name) && number >= 0 && number <= 0x1p53 && number == floor(number);
    *value = good ? (int64_t)number : 0;
    return good;
}

static bool get_sum(basin_run_sum *sum, const cJSON *object, const char *name) {
    const cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, name);
    return get(&sum->loss, inner, "loss") && get(&sum->weight, inner, "weight") &&
           sum->weight >= 0 && isfinite(sum->loss);
}

static bool get_rests(basin_rests *r, const cJSON *object, const char *name) {
    const cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, name);
    return !inner ||
           (get_count(&r->points, inner, "points") && get_count(&r->steps, inner, "steps") &&
            get_count(&r->most_steps, inner, "most_steps") &&
            get_count(&r->restless, inner, "restless") && get(&r->change, inner, "change") &&
            get_count(&r->solutions, inner, "solutions") &&
            get_count(&r->products, inner, "products") &&
            get_count(&r->unsolved, inner, "unsolved") && get(&r->residual, inner, "residual"));
}

static bool get_score(basin_score *score, const cJSON *object, const char *name) {
    const cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, name), *item;
    const cJSON *measures = cJSON_GetObjectItemCaseSensitive(inner, "measures");
    *score = (basin_score){0};
    if (!get(&score->merit, inner, "merit") || !get(&score->tie, inner, "tie")) return false;
    cJSON_ArrayForEach(item, measures) {
        basin_score_add(score, item->string, cJSON_IsNumber(item) ? item->valuedouble : NAN);
    }
    return cJSON_IsObject(measures);
}

static bool get_members(basin_run_state *s, const cJSON *object) {
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(object, "members");
    if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) != s->member) return false;
    for (int64_t m = 0; m < s->member; m++) {
        const cJSON *one = cJSON_GetArrayItem(array, (int)m);
        basin_run_member *how = &s->done[m];
        if (!get_count(&how->best_epoch, one, "best_epoch") ||
            !get_count(&how->epochs, one, "epochs") || !get(&how->merit, one, "merit"))
            return false;
    }
    return true;
}

static bool from_json(basin_run_state *s, const cJSON *o) {
    return get_count(&s->member, o, "member") && s->member < BASIN_MAX_MEMBERS &&
           get_count(&s->epoch, o, "epoch") && get_count(&s->step, o, "step") &&
           get_sum(&s->epoch_loss, o, "epoch_loss") && get_sum(&s->recent_loss, o, "recent_loss") &&
           get_rests(&s->epoch_rests, o, "epoch_rests") &&
           get_rests(&s->recent_rests, o, "recent_rests") &&
           get_count(&s->best_epoch, o, "best_epoch") && get_score(&s->best, o, "best") &&
           get_score(&s->last, o, "last") && get(&s->seconds, o, "seconds") && get_members(s, o);
}

/* A damaged file must not lead a run to steps that do not exist. */
static basin_status check(const basin_run_state *s, const basin_run_task *task, const char *path,
                          basin_error *error) {
    int64_t from = s->epoch * task->steps;
    if (s->member >= task->members)
        return basin_fail(error, BASIN_BAD_FILE, "%s: member is %lld, wanted one below %lld", path,
                          (long long)s->member, (long long)task->members);
    if (s->epoch > task->epochs)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: its run has done %lld epochs, asked for are %lld", path,
                          (long long)s->epoch, (long long)task->epochs);
    if (s->step < from || s->step > from + task->steps)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: step is %lld, wanted %lld to %lld in epoch %lld: another set of "
                          "data, or a damaged file",
                          path, (long long)s->step, (long long)from, (long long)from + task->steps,
                          (long long)s->epoch + 1);
    if (s->best_epoch > s->epoch)
        return basin_fail(error, BASIN_BAD_FILE, "%s: best_epoch is %lld, wanted at most %lld",
                          path, (long long)s->best_epoch, (long long)s->epoch);
    return BASIN_OK;
}

basin_status basin_run_state_read(basin_run_state *state, const basin_bundle *bundle,
                                  const basin_run_task *task, basin_error *error) {
    const char *path = basin_bundle_path(bundle), *text = basin_bundle_meta(bundle, KEY);
    cJSON *object;
    *state = (basin_run_state){0};
    if (!text)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s is absent: not a checkpoint of a run",
                          path, KEY);
    BASIN_TRY(basin_json_parse(&object, text, strlen(text), path, KEY, error));
    bool good = from_json(state, object);
    cJSON_Delete(object);
    if (!good)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s is damaged: a number is missing", path,
                          KEY);
    return check(state, task, path, error);
}
