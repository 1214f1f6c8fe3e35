/* Sudoku models in memory and in files; see sudoku.h. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "basin/train.h"
#include "task/sudoku/sudoku.h"
#include "train/restore.h"

basin_status basin_sudoku_model_bare(basin_sudoku_model **model,
                                     const basin_sudoku_settings *settings, basin_backend *backend,
                                     basin_error *error) {
    basin_sudoku_model *m = calloc(1, sizeof *m);
    *model = NULL;
    if (!m) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a model");
    m->settings = *settings;
    m->described = (basin_settings){.kind = &basin_sudoku_task, .values = &m->settings};
    m->backend = backend;
    basin_status status = basin_store_new(&m->store, backend, error);
    if (status)
        basin_sudoku_close(m);
    else
        *model = m;
    return status;
}

void basin_sudoku_close(basin_sudoku_model *model) {
    if (!model) return;
    basin_store_free(model->store);
    free(model);
}

const basin_settings *basin_sudoku_get_settings(const basin_sudoku_model *model) {
    return &model->described;
}

int64_t basin_sudoku_parameters(const basin_sudoku_model *model) { return model->parameters; }

/* ---- files ---- */

basin_status basin_sudoku_settings_read(basin_sudoku_settings *settings, const basin_bundle *bundle,
                                        basin_error *error) {
    const char *path = basin_bundle_path(bundle), *kind = basin_bundle_meta(bundle, "basin.model");
    const char *json = basin_bundle_meta(bundle, "basin.config");
    if (!kind || strcmp(kind, "sudoku") != 0 || !json)
        return basin_fail(error, BASIN_BAD_FILE, "%s: the model is '%s', wanted 'sudoku'", path,
                          kind ? kind : "absent");
    return basin_settings_parse(settings, basin_sudoku_task.table, json, true, path, error);
}

basin_status basin_sudoku_settings_write(basin_bundle *bundle,
                                         const basin_sudoku_settings *settings,
                                         basin_error *error) {
    char *config = basin_settings_print(settings, basin_sudoku_task.table, false);
    if (!config) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a configuration");
    basin_status status = basin_bundle_meta_set(bundle, "basin.model", "sudoku", error);
    if (!status) status = basin_bundle_meta_set(bundle, "basin.config", config, error);
    cJSON_free(config);
    return status;
}

static basin_status read_weights(basin_sudoku_model *model, const basin_bundle *bundle,
                                 basin_error *error) {
    basin_sudoku_net net;
    basin_status status = basin_sudoku_net_new(&net, &model->settings, 1, error);
    if (status) return status;
    model->parameters = basin_params_total(&net.params);
    status = basin_params_read(&net.params, model->store, bundle, error);
    basin_sudoku_net_free(&net);
    return status;
}

basin_status basin_sudoku_open(basin_sudoku_model **model, const char *path, basin_backend *backend,
                               basin_error *error) {
    basin_bundle *bundle;
    basin_sudoku_settings settings;
    *model = NULL;
    basin_status status = basin_bundle_read(&bundle, path, error);
    if (status) return status;
    status = basin_sudoku_settings_read(&settings, bundle, error);
    if (!status) status = basin_sudoku_task.check(&settings, error);
    if (!status) status = basin_sudoku_model_bare(model, &settings, backend, error);
    if (!status) status = read_weights(*model, bundle, error);
    basin_bundle_free(bundle);
    if (!status) return BASIN_OK;
    basin_sudoku_close(*model);
    *model = NULL;
    return status;
}

basin_status basin_sudoku_write(const char *path, basin_sudoku_model *model, basin_error *error) {
    basin_sudoku_net net;
    basin_bundle *bundle = NULL;
    basin_status status = basin_sudoku_net_new(&net, &model->settings, 1, error);
    if (status) return status;
    status = basin_bundle_new(&bundle, error);
    if (!status) status = basin_sudoku_settings_write(bundle, &model->settings, error);
    if (!status) status = basin_params_add(bundle, &net.params, model->store, error);
    if (!status) status = basin_bundle_write(path, bundle, error);
    basin_bundle_free(bundle);
    basin_sudoku_net_free(&net);
    return status;
}
