/* Lists of parameters and their first values; see include/basin/params.h. */
#include "basin/params.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "basin/random.h"

void basin_params_begin(basin_params *params, basin_graph *graph) {
    *params = (basin_params){.graph = graph};
}

void basin_params_free(basin_params *params) {
    free(params->param);
    *params = (basin_params){0};
}

static bool has(const basin_params *params, const char *name) {
    for (size_t i = 0; i < params->count; i++)
        if (strcmp(basin_expr_name(params->param[i].state), name) == 0) return true;
    return false;
}

basin_expr basin_param_add(basin_params *params, const char *prefix, const char *name,
                           basin_shape shape, basin_init init) {
    char full[256];
    int length = snprintf(full, sizeof full, "%s%s", prefix, name);
    if (length < 0 || (size_t)length >= sizeof full)
        return basin_graph_fail(params->graph, BASIN_BAD_VALUE,
                                "the parameter name '%s%s' is longer than 255 characters", prefix,
                                name);
    if (has(params, full))
        return basin_graph_fail(params->graph, BASIN_BAD_VALUE,
                                "there are two parameters named '%s'", full);
    if (!basin_array_reserve((void **)&params->param, &params->capacity, params->count + 1,
                             sizeof *params->param))
        return basin_graph_fail(params->graph, BASIN_NO_MEMORY, "out of memory for a parameter");
    basin_expr state = basin_state(params->graph, full, shape);
    if (state) params->param[params->count++] = (basin_param){.state = state, .init = init};
    return state;
}

void basin_param_keep_above(basin_params *params, basin_expr state, double least) {
    for (size_t i = 0; i < params->count; i++)
        if (params->param[i].state == state) params->param[i].least = least;
}

basin_expr basin_statistic_add(basin_params *params, const char *prefix, const char *name,
                               basin_shape shape, basin_init init) {
    basin_expr state = basin_param_add(params, prefix, name, shape, init);
    if (state) params->param[params->count - 1].statistic = true;
    return state;
}

void basin_statistic_update(basin_params *params, basin_expr state, basin_expr value) {
    for (size_t i = 0; i < params->count && state; i++)
        if (params->param[i].state == state) params->param[i].next = value;
}

int64_t basin_params_total(const basin_params *params) {
    int64_t total = 0;
    for (size_t i = 0; i < params->count; i++)
        if (!params->param[i].statistic)
            total += basin_shape_count(basin_expr_shape(params->param[i].state));
    return total;
}

/* A normal draw within two deviations, scaled to variance 1. Each try takes its own element. */
static double truncated_normal(uint64_t seed, uint32_t stream, uint64_t i) {
    const double kept_deviation = 0.87962566103423978;
    for (uint64_t attempt = 0;; attempt++) {
        double z = basin_random_normal_at(seed, stream, i + (attempt << 40));
        if (fabs(z) <= 2) return z / kept_deviation;
    }
}

static double draw(basin_init init, uint64_t seed, uint32_t stream, uint64_t i) {
    switch (init.kind) {
    case BASIN_INIT_CONSTANT: return init.scale;
    case BASIN_INIT_NORMAL: return init.scale * basin_random_normal_at(seed, stream, i);
    case BASIN_INIT_LECUN: return truncated_normal(seed, stream, i) / sqrt(init.scale);
    case BASIN_INIT_UNIFORM: return init.scale * (2 * basin_random_uniform_at(seed, stream, i) - 1);
    }
    return 0;
}

basin_status basin_params_init(const basin_params *params, basin_store *store, uint64_t seed,
                               basin_error *error) {
    for (size_t i = 0; i < params->count; i++) {
        basin_tensor tensor;
        basin_shape shape = basin_expr_shape(params->param[i].state);
        basin_status status = basin_tensor_new(&tensor, BASIN_F64, shape, error);
        if (status) return status;
        int64_t count = basin_shape_count(shape);
        for (int64_t k = 0; k < count; k++)
            ((double *)tensor.data)[k] =
                draw(params->param[i].init, seed, (uint32_t)i, (uint64_t)k);
        status = basin_store_write(store, basin_expr_name(params->param[i].state), &tensor, error);
        basin_tensor_free(&tensor);
        if (status) return status;
    }
    return BASIN_OK;
}
