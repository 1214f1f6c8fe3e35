/* What the backends in the host's memory share; see host.h. */
#include "engine/backend/host.h"

#include <pthread.h>
#include <stdarg.h>

#include "base/try.h"

basin_status basin_host_open(basin_backend **backend, const basin_backend_table *table, int threads,
                             basin_error *error) {
    basin_host_backend *host;
    *backend = NULL;
    BASIN_TRY(BASIN_NEW(&host, 1, "the state of a backend", error));
    host->base = (basin_backend){.table = table, .threads = threads};
    *backend = &host->base;
    return BASIN_OK;
}

static void *resolve(const basin_operand *operand, void *const *block, size_t part) {
    void *first = basin_operand_at(operand, block);
    return first ? (char *)first + part * operand->part : NULL;
}

basin_frame basin_host_frame(basin_backend *backend, const basin_call *call, void *const *block,
                             size_t part) {
    basin_frame frame = {.backend = backend, .call = call};
    frame.error = &((basin_host_backend *)backend)->error;
    for (int i = 0; i < call->ins; i++) frame.in[i] = resolve(&call->in[i], block, part);
    for (int i = 0; i < call->outs; i++) frame.out[i] = resolve(&call->out[i], block, part);
    for (int i = 0; i < call->byte_copies; i++)
        frame.byte_copy[i] = resolve(&call->byte_copy[i], block, part);
    if (call->workspace_bytes) frame.workspace = (char *)block[0] + call->workspace;
    return frame;
}

void basin_host_fail(const basin_frame *frame, const char *format, ...) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    char text[sizeof frame->error->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&one_at_a_time);
    if (frame->error->status == BASIN_OK) basin_fail(frame->error, BASIN_BAD_VALUE, "%s", text);
    pthread_mutex_unlock(&one_at_a_time);
}

void basin_host_bad_index(const basin_frame *frame, const char *name, int64_t at, int64_t found,
                          int64_t min, int64_t limit) {
    basin_host_fail(frame, "%s: index %lld at element %lld is not in [%lld, %lld)", name,
                    (long long)found, (long long)at, (long long)min, (long long)limit);
}

void basin_host_none(const basin_frame *frame) {
    if (frame->error->status != BASIN_OK) return;
    basin_fail(frame->error, BASIN_UNSUPPORTED, "backend %s: no operation %d, of 0 to %d",
               frame->backend->table->name, (int)frame->call->op, BASIN_OP_COUNT - 1);
}

/* ---- for tables ---- */

void *basin_host_alloc(basin_backend *backend, size_t bytes) {
    (void)backend;
    return basin_large_new(bytes);
}

void basin_host_free(basin_backend *backend, void *memory) {
    (void)backend;
    basin_aligned_free(memory);
}

void basin_host_copy_in(basin_backend *backend, void *device, const void *host, size_t bytes) {
    (void)backend;
    if (bytes) memcpy(device, host, bytes);
}

void basin_host_copy_out(basin_backend *backend, void *host, const void *device, size_t bytes) {
    (void)backend;
    if (bytes) memcpy(host, device, bytes);
}

void basin_host_fill_zero(basin_backend *backend, void *device, size_t bytes) {
    (void)backend;
    if (bytes) memset(device, 0, bytes);
}

basin_status basin_host_wait(basin_backend *backend, basin_error *error) {
    basin_error *own = &((basin_host_backend *)backend)->error;
    basin_status status = own->status;
    if (status != BASIN_OK) basin_fail(error, status, "%s", own->text);
    own->status = BASIN_OK;
    return status;
}

void basin_host_close(basin_backend *backend) { free(backend); }

/* ---- sizes ---- */

basin_span basin_span_of(const basin_call *call) {
    const basin_shape *shape = &call->in[0].shape;
    int first = call->attr.axis, last = call->attr.axis + call->attr.count;
    return (basin_span){basin_shape_product(shape, 0, first),
                        basin_shape_product(shape, first, last),
                        basin_shape_product(shape, last, shape->rank)};
}

basin_factor basin_factor_of(const basin_shape *shape, bool transposed) {
    int64_t rows = shape->dim[shape->rank - 2], columns = shape->dim[shape->rank - 1];
    int64_t batch = basin_shape_product(shape, 0, shape->rank - 2);
    basin_factor f = {batch, rows, columns, batch == 1 ? 0 : rows * columns, columns, 1};
    if (transposed) {
        f.rows = columns, f.columns = rows;
        f.step_row = 1, f.step_column = columns;
    }
    return f;
}

basin_causal basin_causal_of(const basin_call *call) {
    const basin_shape *s = &call->in[0].shape;
    return (basin_causal){basin_shape_product(s, 0, s->rank - 2),
                          s->dim[s->rank - 3],
                          s->dim[s->rank - 2],
                          s->dim[s->rank - 1],
                          call->attr.value,
                          call->attr.exclude_self ? 0 : 1};
}
