/* The checkpoint of a training run: the store (weights, moments, averages, the best so far,
 * finished members), the settings, and where the run stands, so that one that goes on ends with the
 * same bits.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "task/anomaly/file.h"

enum { NUMBER = 40, MOST_MEMBERS = 64, MEMBER_TEXT = 80, MOST_EPOCHS = 1000000000 };

/* "epoch last best" of each finished member, by spaces. */
static void print_members(char *text, size_t size, const basin_anomaly_detector *d, int64_t count) {
    size_t at = 0;
    text[0] = 0;
    for (int64_t m = 0; m < count && at < size; m++)
        at += (size_t)snprintf(text + at, size - at, "%s%lld %lld %.17g", m ? " " : "",
                               (long long)d->member[m].epoch, (long long)d->member[m].last,
                               d->member[m].chosen);
}

basin_status basin_fit_save(const char *path, const basin_anomaly_settings *settings,
                            basin_store *store, int64_t step, const basin_fit_state *s,
                            const basin_anomaly_detector *detector, basin_error *error) {
    char text[4][NUMBER], members[MOST_MEMBERS * MEMBER_TEXT];
    char *config = basin_settings_print(settings, basin_anomaly_task.table, false);
    if (!config) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a checkpoint");
    snprintf(text[0], NUMBER, "%lld", (long long)s->member);
    snprintf(text[1], NUMBER, "%lld", (long long)s->epoch);
    snprintf(text[2], NUMBER, "%lld", (long long)s->best_epoch);
    snprintf(text[3], NUMBER, "%.17g", s->best);
    print_members(members, sizeof members, detector, s->member);
    basin_meta meta[] = {{"basin.model", "anomaly checkpoint"},
                         {"basin.config", config},
                         {"member", text[0]},
                         {"epoch", text[1]},
                         {"best_epoch", text[2]},
                         {"best", text[3]},
                         {"members_done", members}};
    basin_status status =
        basin_checkpoint_write(path, store, step, meta, (int)(sizeof meta / sizeof *meta), error);
    free(config);
    return status;
}

/* ---- reading ---- */

static basin_status read_settings(basin_anomaly_settings *settings, const basin_bundle *bundle,
                                  basin_error *error) {
    const char *config = basin_bundle_meta(bundle, "basin.config"),
               *path = basin_bundle_path(bundle);
    if (!config)
        return basin_fail(error, BASIN_BAD_FILE, "%s: no configuration; wanted a checkpoint", path);
    return basin_settings_parse(settings, basin_anomaly_task.table, config, true, path, error);
}

/* Whether the batches asked for, halved some times or not at all, are those found. */
static bool is_halved(int64_t asked, int64_t found) {
    while (asked > found && asked > 0) asked /= 2;
    return asked == found;
}

basin_status basin_fit_open(basin_bundle **checkpoint, basin_anomaly_settings *settings,
                            const char *path, basin_error *error) {
    basin_anomaly_settings found = *settings;
    *checkpoint = NULL;
    if (!path) return BASIN_OK;
    if (access(path, F_OK)) return BASIN_OK;
    basin_status status = basin_bundle_read(checkpoint, path, error);
    if (!status) status = read_settings(&found, *checkpoint, error);
    if (status) return status;
    if (!strcmp(settings->scaling, "auto")) settings->scaling = found.scaling;
    if (settings->hops < 0) settings->hops = found.hops;
    if (strcmp(settings->sampling, "auto")) return BASIN_OK;
    settings->sampling = found.sampling;
    if (is_halved(settings->batch, found.batch)) settings->batch = found.batch;
    return BASIN_OK;
}

static basin_status check_settings(const basin_anomaly_settings *settings,
                                   const basin_bundle *bundle, basin_error *error) {
    basin_anomaly_settings found = *settings;
    basin_status status = read_settings(&found, bundle, error);
    if (status) return status;
    return basin_settings_match(&found, settings, basin_anomaly_task.table,
                                basin_bundle_path(bundle), error);
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

static basin_status read_state(basin_fit_state *s, const basin_bundle *bundle, int64_t members,
                               basin_error *error) {
    double number[4];
    const char *const key[] = {"member", "epoch", "best_epoch", "best"};
    for (int i = 0; i < 4; i++) {
        basin_status status = read_number(&number[i], bundle, key[i], error);
        if (status) return status;
    }
    if (!(number[0] >= 0 && number[0] < (double)members))
        return basin_fail(error, BASIN_BAD_FILE, "%s: member is %g; wanted one below %lld",
                          basin_bundle_path(bundle), number[0], (long long)members);
    for (int i = 1; i < 3; i++)
        if (!(number[i] >= 0 && number[i] <= MOST_EPOCHS))
            return basin_fail(error, BASIN_BAD_FILE, "%s: %s is %g; wanted 0 to %d",
                              basin_bundle_path(bundle), key[i], number[i], MOST_EPOCHS);
    *s = (basin_fit_state){(int64_t)number[0], (int64_t)number[1], (int64_t)number[2], number[3]};
    return BASIN_OK;
}

static basin_status read_members(basin_anomaly_detector *d, const basin_bundle *bundle,
                                 int64_t count, basin_error *error) {
    const char *text = basin_bundle_meta(bundle, "members_done");
    for (int64_t m = 0; m < count; m++) {
        char *end = NULL;
        bool good = text && basin_integer_read(&d->member[m].epoch, &text) &&
                    basin_integer_read(&d->member[m].last, &text);
        if (good) d->member[m].chosen = strtod(text, &end);
        if (!good || end == text)
            return basin_fail(error, BASIN_BAD_FILE, "%s: members_done lacks member %lld",
                              basin_bundle_path(bundle), (long long)m);
        text = end;
    }
    return BASIN_OK;
}

basin_status basin_fit_load(int64_t *step, basin_fit_state *state, basin_anomaly_detector *detector,
                            basin_store *store, const basin_bundle *checkpoint,
                            const basin_anomaly_settings *settings, const basin_params *params,
                            basin_error *error) {
    basin_status status = check_settings(settings, checkpoint, error);
    if (!status) status = read_state(state, checkpoint, settings->members, error);
    if (!status) status = read_members(detector, checkpoint, state->member, error);
    for (int64_t m = 0; !status && m < state->member; m++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "member%lld.", (long long)m);
        status = basin_states_copy(store, params, prefix, "", error);
    }
    return status ? status : basin_checkpoint_read(step, store, checkpoint, error);
}
