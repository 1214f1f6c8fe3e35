/* Rivals by name; see rivals.h. */
#include "cli/rivals/rivals.h"

#include <stdio.h>
#include <string.h>

#include "base/library.h"

static const char family[] = "rival-", paper[] = "paper";
static const char xgboost[] = "xgboost"; /* no preset: it is not ours */

static bool is_detector(const basin_cli_rivals *r) { return !strcmp(r->task, "anomaly"); }

bool basin_cli_rival_is_xgboost(const char *name) { return !strcmp(name, xgboost); }

/* A preset's name without the family; NULL of a preset that is no rival. */
static const char *name_of(const char *preset) {
    size_t length = sizeof family - 1;
    if (!strcmp(preset, paper)) return preset;
    return strncmp(preset, family, length) ? NULL : preset + length;
}

static basin_status add(basin_cli_rivals *r, const char *name, size_t length, basin_error *error) {
    const char *const *preset = basin_settings_presets(r->task);
    char known[200];
    const char *found = NULL;
    snprintf(known, sizeof known, "all%s", is_detector(r) ? ", xgboost" : "");
    if (is_detector(r) && strlen(xgboost) == length && !strncmp(xgboost, name, length))
        found = xgboost;
    for (; *preset; preset++) {
        const char *its = name_of(*preset);
        if (!its) continue;
        if (strlen(its) == length && !strncmp(its, name, length)) found = *preset;
        snprintf(known + strlen(known), sizeof known - strlen(known), ", %s", its);
    }
    if (!found)
        return basin_fail(error, BASIN_BAD_VALUE, "--rivals: '%.*s'; wanted some of %s",
                          (int)length, name, known);
    for (int i = 0; i < r->count; i++)
        if (r->preset[i] == found)
            return basin_fail(error, BASIN_BAD_VALUE, "--rivals: '%.*s' twice", (int)length, name);
    if (r->count == BASIN_CLI_RIVALS)
        return basin_fail(error, BASIN_BAD_VALUE, "--rivals: more than %d", BASIN_CLI_RIVALS);
    r->preset[r->count++] = found;
    return BASIN_OK;
}

/* Before anything is trained beside which it would be missed. */
static basin_status find_xgboost(const basin_cli_rivals *r, basin_error *error) {
    static const basin_library_function none[] = {{0}};
    char table[1];
    for (int i = 0; i < r->count; i++)
        if (basin_cli_rival_is_xgboost(r->preset[i]))
            return basin_library_load(table, BASIN_LIBRARY_XGBOOST, none, error);
    return BASIN_OK;
}

basin_status basin_cli_rivals_parse(basin_cli_rivals *rivals, const char *task, const char *list,
                                    basin_error *error) {
    const char *const *preset = basin_settings_presets(task);
    basin_status status = BASIN_OK;
    *rivals = (basin_cli_rivals){.task = task};
    if (!list) return BASIN_OK;
    if (strcmp(list, "all") != 0) {
        for (;;) {
            size_t length = strcspn(list, ",");
            status = add(rivals, list, length, error);
            if (status) return status;
            if (!list[length]) return find_xgboost(rivals, error);
            list += length + 1;
        }
    }
    for (; *preset && !status; preset++) {
        const char *name = name_of(*preset);
        if (name) status = add(rivals, name, strlen(name), error);
    }
    if (!status && is_detector(rivals) && basin_library_present(BASIN_LIBRARY_XGBOOST))
        status = add(rivals, xgboost, strlen(xgboost), error);
    return status;
}

basin_status basin_cli_rival_train(basin_anomaly_model **model, basin_outcome *outcome,
                                   const char *task, const char *preset, int64_t seed,
                                   const basin_anomaly_data *data, const basin_training *training,
                                   basin_error *error) {
    basin_settings *settings;
    char text[32];
    bool detector = !strcmp(task, "anomaly");
    basin_status status = basin_settings_new(&settings, task, preset, error);
    if (status) return status;
    snprintf(text, sizeof text, "%lld", (long long)seed);
    status = basin_settings_set(settings, "seed", text, error);
    if (!status)
        status = detector ? basin_anomaly_train(model, outcome, settings, data, training, error)
                          : basin_node_train(model, outcome, settings, data, training, error);
    basin_settings_free(settings);
    return status;
}
