/* Checkpoints and parameters as safetensors files; see include/basin/train.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/try.h"
#include "basin/train.h"
#include "train/trainer.h"

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
    basin_bundle *bundle;
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)step);
    basin_status status = basin_bundle_new(&bundle, error);
    if (!status) status = add_meta(bundle, meta, metas, error);
    if (!status) status = basin_bundle_meta_set(bundle, "step", text, error);
    for (int i = 0; i < basin_store_count(store) && !status; i++)
        status = basin_state_add(bundle, store, basin_store_name(store, i), error);
    if (!status) status = basin_safetensors_write(path, bundle, error);
    basin_bundle_free(bundle);
    return status;
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

basin_status basin_params_bundle(basin_bundle **bundle, const basin_params *params,
                                 basin_store *store, const basin_meta *meta, int metas,
                                 basin_error *error) {
    BASIN_TRY(basin_bundle_new(bundle, error));
    BASIN_TRY(add_meta(*bundle, meta, metas, error));
    return basin_params_add(*bundle, params, store, error);
}

basin_status basin_params_write(const char *path, const basin_params *params, basin_store *store,
                                const basin_meta *meta, int metas, basin_error *error) {
    basin_bundle *bundle;
    basin_status status = basin_params_bundle(&bundle, params, store, meta, metas, error);
    if (!status) status = basin_bundle_write(path, bundle, error);
    basin_bundle_free(bundle);
    return status;
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
