/* Parameters of a store averaged, their moments cleared, taken out; see states.h. */
#include <math.h>
#include <stdio.h>

#include "task/nodes/states.h"

enum { NAME = 300 };

static const char *join(char text[NAME], const char *prefix, basin_expr state, const char *suffix) {
    snprintf(text, NAME, "%s%s%s", prefix, basin_expr_name(state), suffix);
    return text;
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
