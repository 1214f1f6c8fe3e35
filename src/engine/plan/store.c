/* Stores: named states in a backend's memory, and the copies in and out of it. */
#include "base/shape.h"
#include "base/sized.h"
#include "engine/plan/plan.h"
#include "engine/tensor/tensor.h"

#include "base/try.h"
#include "basin/params.h"
#include "basin/random.h"

basin_status basin_store_new(basin_store **store, basin_backend *backend, basin_error *error) {
    BASIN_TRY(BASIN_NEW(store, 1, "a store", error));
    (*store)->backend = backend;
    (*store)->changes = 1;
    return BASIN_OK;
}

void basin_store_free(basin_store *store) {
    if (!store) return;
    for (size_t i = 0; i < store->entries; i++) {
        store->backend->table->free(store->backend, store->entry[i].memory);
        free(store->entry[i].name);
    }
    store->backend->table->free(store->backend, store->arena);
    BASIN_FREE(store->entry, store);
}

bool basin_store_share_results(basin_store *store) {
    return store->share = !store->backend->table->check;
}

basin_status basin_store_reserve(basin_store *store, size_t bytes, basin_error *error) {
    const basin_backend_table *table = store->backend->table;
    if (store->arena && bytes <= store->arena_bytes) return BASIN_OK;
    table->free(store->backend, store->arena);
    store->last = NULL;
    store->arena = table->alloc(store->backend, bytes);
    store->arena_bytes = store->arena ? bytes : 0;
    if (store->arena) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "plans need %.4g GiB of memory for their results",
                      (double)bytes / 0x1p30);
}

void basin_store_take_convergence(basin_convergence *convergence, basin_store *store) {
    basin_info_fill(convergence, &store->convergence, sizeof store->convergence);
    store->convergence = (basin_convergence){0};
}

const char *basin_store_name(const basin_store *store, int i) {
    return i >= 0 && (size_t)i < store->entries ? store->entry[i].name : NULL;
}
basin_shape basin_store_shape(const basin_store *store, int i) { return store->entry[i].shape; }

static int find(const basin_store *store, const char *name) {
    for (size_t i = 0; i < store->entries; i++)
        if (strcmp(store->entry[i].name, name) == 0) return (int)i;
    return -1;
}

static basin_status create(basin_store *store, const char *name, basin_shape shape,
                           basin_error *error) {
    const basin_backend_table *table = store->backend->table;
    size_t bytes;
    int64_t count = basin_shape_count(shape);
    basin_store_entry entry = {.shape = shape};
    bool ok = count >= 0 && basin_size_multiply(&bytes, (size_t)count, table->real_size) &&
              basin_array_reserve((void **)&store->entry, &store->capacity, store->entries + 1,
                                  sizeof entry);
    if (ok) entry.name = basin_string_copy(name);
    if (entry.name) entry.memory = table->alloc(store->backend, bytes);
    if (!entry.memory) {
        free(entry.name);
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the state '%s'", name);
    }
    table->fill_zero(store->backend, entry.memory, bytes);
    store->entry[store->entries++] = entry;
    return BASIN_OK;
}

basin_status basin_store_demand(int *entry, basin_store *store, const char *name, basin_shape shape,
                                basin_error *error) {
    *entry = find(store, name);
    if (*entry < 0) {
        *entry = (int)store->entries;
        return create(store, name, shape, error);
    }
    basin_shape found = store->entry[*entry].shape;
    if (basin_shape_equal(found, shape)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_SHAPE, "the state '%s' has shape %s, expected %s", name,
                      basin_shape_text(found), basin_shape_text(shape));
}

/* The host type of device memory. */
static basin_dtype host_dtype(const basin_backend *backend, basin_kind kind) {
    return kind == BASIN_REAL ? backend->table->real : BASIN_I32;
}

basin_status basin_device_write(basin_backend *backend, void *device, basin_kind kind,
                                const basin_tensor *from, basin_error *error) {
    const basin_backend_table *table = backend->table;
    basin_dtype dtype = host_dtype(backend, kind);
    size_t bytes = (size_t)basin_shape_count(from->shape) * basin_dtype_size(dtype);
    if (from->dtype == dtype) {
        table->copy_in(backend, device, from->data, bytes);
        return BASIN_OK;
    }
    if (basin_backend_threads(backend) > 0) { /* the host's memory */
        basin_tensor there = basin_tensor_borrow(device, dtype, from->shape);
        return basin_tensor_convert(&there, from, error);
    }
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor converted = {0};
    BASIN_TRY(basin_tensor_new(&converted, dtype, from->shape, error));
    BASIN_TRY(basin_tensor_convert(&converted, from, error));
    table->copy_in(backend, device, converted.data, bytes);
    return BASIN_OK;
}

basin_status basin_device_read(basin_backend *backend, basin_tensor *to, const void *device,
                               basin_kind kind, basin_error *error) {
    const basin_backend_table *table = backend->table;
    basin_dtype dtype = host_dtype(backend, kind);
    BASIN_TRY(basin_tensor_check_writable(to, error));
    size_t bytes = (size_t)basin_shape_count(to->shape) * basin_dtype_size(dtype);
    if (to->dtype == dtype) {
        table->copy_out(backend, to->data, device, bytes);
        return table->wait(backend, error);
    }
    if (basin_backend_threads(backend) > 0) {
        basin_tensor there = basin_tensor_view(device, dtype, to->shape);
        BASIN_TRY(table->wait(backend, error));
        return basin_tensor_convert(to, &there, error);
    }
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor raw = {0};
    BASIN_TRY(basin_tensor_new(&raw, dtype, to->shape, error));
    table->copy_out(backend, raw.data, device, bytes);
    BASIN_TRY(table->wait(backend, error));
    return basin_tensor_convert(to, &raw, error);
}

basin_status basin_store_write(basin_store *store, const char *name, const basin_tensor *tensor,
                               basin_error *error) {
    int i;
    BASIN_TRY(basin_store_demand(&i, store, name, tensor->shape, error));
    store->changes++;
    return basin_device_write(store->backend, store->entry[i].memory, BASIN_REAL, tensor, error);
}

void *basin_store_memory(basin_store *store, const char *name, bool change) {
    int i = find(store, name);
    if (i >= 0 && change) store->changes++;
    return i < 0 ? NULL : store->entry[i].memory;
}

basin_status basin_store_get(basin_tensor *tensor, basin_store *store, const char *name,
                             basin_error *error) {
    int i = find(store, name);
    *tensor = (basin_tensor){0};
    if (i < 0) return basin_fail(error, BASIN_BAD_VALUE, "there is no state '%s'", name);
    BASIN_TRY(basin_tensor_new(tensor, store->backend->table->real, store->entry[i].shape, error));
    BASIN_TRY_OR(
        basin_device_read(store->backend, tensor, store->entry[i].memory, BASIN_REAL, error),
        basin_tensor_free(tensor));
    return BASIN_OK;
}

/* ---- Lists of parameters and their first values; see include/basin/params.h ---- */

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
    if (!BASIN_RESERVE(&params->param, &params->capacity, params->count + 1))
        return basin_graph_fail(params->graph, BASIN_NO_MEMORY, "out of memory for a parameter");
    basin_expr state = basin_state(params->graph, full, shape);
    if (state) params->param[params->count++] = (basin_param){.state = state, .init = init};
    return state;
}

void basin_param_set_minimum(basin_params *params, basin_expr state, double minimum) {
    for (size_t i = 0; i < params->count; i++)
        if (params->param[i].state == state) params->param[i].minimum = minimum;
}

void basin_param_set_statistic(basin_params *params, basin_expr state, basin_expr next) {
    for (size_t i = 0; i < params->count && state; i++)
        if (params->param[i].state == state)
            params->param[i].statistic = true, params->param[i].next = next;
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
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor tensor = {0};
        basin_shape shape = basin_expr_shape(params->param[i].state);
        BASIN_TRY(basin_tensor_new(&tensor, BASIN_F64, shape, error));
        int64_t count = basin_shape_count(shape);
        for (int64_t k = 0; k < count; k++)
            ((double *)tensor.data)[k] =
                draw(params->param[i].init, seed, (uint32_t)i, (uint64_t)k);
        BASIN_TRY(
            basin_store_write(store, basin_expr_name(params->param[i].state), &tensor, error));
    }
    return BASIN_OK;
}

/* ---- Backend, store and graph together, and a plan that is made, run once and read ---- */

basin_status basin_engine_open(basin_engine *engine, const basin_compute *compute,
                               basin_error *error) {
    *engine = (basin_engine){0};
    BASIN_TRY(basin_backend_open(&engine->backend, compute, error));
    BASIN_TRY_OR(basin_store_new(&engine->store, engine->backend, error),
                 basin_engine_close(engine));
    if ((engine->graph = basin_graph_new())) return BASIN_OK;
    basin_engine_close(engine);
    return basin_fail_memory(error, "a graph");
}

void basin_engine_close(basin_engine *engine) {
    basin_store_free(engine->store);
    if (engine->backend) basin_backend_close(engine->backend);
    basin_graph_free(engine->graph);
    *engine = (basin_engine){0};
}

static basin_status run_once(basin_tensor *result, basin_plan *plan, const basin_expr *output,
                             int outputs, const basin_feed *given, int count, basin_error *error) {
    for (int i = 0; i < outputs; i++)
        BASIN_TRY(basin_tensor_new(&result[i], BASIN_F64, basin_expr_shape(output[i]), error));
    return basin_plan_call(plan, given, count, output, result, outputs, error);
}

basin_status basin_engine_compute(basin_engine *engine, basin_tensor *result,
                                  const basin_expr *output, int outputs, const basin_feed *given,
                                  int count, basin_error *error) {
    basin_plan *plan;
    const basin_error *found = basin_graph_error(engine->graph);
    for (int i = 0; i < outputs; i++) result[i] = (basin_tensor){0};
    if (found) return basin_fail(error, found->status, "%s", found->text);
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    BASIN_TRY(basin_plan_new(&plan, engine->store, &spec, error));
    basin_status status = run_once(result, plan, output, outputs, given, count, error);
    for (int i = 0; i < outputs && status; i++) basin_tensor_free(&result[i]);
    basin_plan_free(plan);
    return status;
}
