/* Arrays into plans and out of them, states and parameters into files and out of them; see
 * states.h.
 */

#include "base/states.h"

#include "base/shape.h"
#include "base/try.h"

basin_status basin_values_write(basin_plan *plan, basin_expr input, const void *values,
                                basin_dtype dtype, basin_error *error) {
    if (!input) return BASIN_OK;
    basin_tensor tensor = basin_tensor_view(values, dtype, basin_expr_shape(input));
    return basin_plan_write(plan, input, &tensor, error);
}

basin_status basin_values_read(basin_plan *plan, basin_expr output, void *values, basin_dtype dtype,
                               basin_error *error) {
    basin_tensor tensor = basin_tensor_borrow(values, dtype, basin_expr_shape(output));
    return basin_plan_read(&tensor, plan, output, error);
}

basin_status basin_loss_check(double loss, int64_t step, basin_error *error) {
    if (isfinite(loss)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "the loss is %g at step %lld, expected a finite number: a smaller learning "
                      "rate or a smaller alpha may help",
                      loss, (long long)step);
}

basin_status basin_state_add(basin_bundle *bundle, basin_store *store, const char *name,
                             basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor tensor;
    BASIN_TRY(basin_store_get(&tensor, store, name, error));
    return basin_bundle_add(bundle, name, &tensor, error);
}

basin_status basin_state_restore(basin_store *store, const char *name, basin_shape shape,
                                 const basin_bundle *bundle, basin_error *error) {
    const basin_tensor *tensor;
    BASIN_TRY(basin_bundle_get(&tensor, bundle, name, error));
    if (!basin_shape_equal(tensor->shape, shape))
        return basin_fail(error, BASIN_BAD_SHAPE, "%s: tensor '%s' has shape %s, expected %s",
                          basin_bundle_path(bundle), name, basin_shape_text(tensor->shape),
                          basin_shape_text(shape));
    int64_t bad = basin_tensor_first_bad(tensor);
    if (bad >= 0)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: tensor '%s' has %g at element %lld, expected finite numbers",
                          basin_bundle_path(bundle), name, basin_tensor_at(tensor, bad),
                          (long long)bad);
    return basin_store_write(store, name, tensor, error);
}

basin_status basin_params_add(basin_bundle *bundle, const basin_params *params, basin_store *store,
                              basin_error *error) {
    for (size_t i = 0; i < params->count; i++)
        BASIN_TRY(basin_state_add(bundle, store, basin_expr_name(params->param[i].state), error));
    return BASIN_OK;
}
