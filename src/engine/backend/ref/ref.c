/* The reference backend's table: memory is the host's, the stream is executed as it is queued.
 * What goes wrong in a run is kept until wait() asks, as it would be on a device. */
#include "engine/backend/ref/ref.h"

#include <math.h>
#include <string.h>

#include "engine/tensor/byte.h"

void basin_ref_clear(const basin_frame *frame) {
    for (int o = 0; o < frame->call->outs; o++) {
        double *out = frame->out[o];
        int64_t count = out ? basin_shape_count(frame->call->out[o].shape) : 0;
        for (int64_t i = 0; i < count; i++) out[i] = 0;
    }
}

static basin_ref_operation *const operations[BASIN_OP_COUNT] = {
#define LEAF(...) basin_ref_none,
#define POINTWISE(...) basin_ref_pointwise,
#define CALL(name, rule, ref, ...) basin_ref_##ref,
#include "engine/backend/ops.inc"
};

static size_t scratch_bytes(const basin_call *call) {
    switch (call->op) {
    case BASIN_OP_ATTENTION:
    case BASIN_OP_ATTENTION_FORCE:
    case BASIN_OP_ATTENTION_REVERSE: return basin_ref_attention_scratch(call);
    case BASIN_OP_VALUES:
    case BASIN_OP_VALUES_REVERSE:
    case BASIN_OP_VALUES_SECOND: return basin_ref_values_scratch(call);
    case BASIN_OP_SOLVE: /* a matrix */
        return (size_t)basin_shape_last(&call->in[0].shape, 1) *
               (size_t)basin_shape_last(&call->in[0].shape, 2) * sizeof(double);
    default: return 0;
    }
}

/* ---- operands whose rows lie apart: kernels see dense copies of them ---- */

static size_t copy_bytes(const basin_operand *operand) {
    bool apart = operand->block >= 0 && operand->stride;
    return apart ? (size_t)basin_shape_count(operand->shape) * sizeof(double) : 0;
}

static size_t workspace(basin_backend *backend, const basin_call *call) {
    size_t bytes = scratch_bytes(call);
    (void)backend;
    for (int i = 0; i < call->ins; i++) bytes += copy_bytes(&call->in[i]);
    for (int i = 0; i < call->outs; i++) bytes += copy_bytes(&call->out[i]);
    for (int i = 0; i < call->byte_copies; i++) bytes += copy_bytes(&call->byte_copy[i]);
    return bytes;
}

/* A row of a matrix, or all heads of a token, which only attention reads. */
static void copy_rows(void *to, const void *from, const basin_operand *operand, basin_op op,
                      bool out) {
    bool matrix = op == BASIN_OP_MATMUL || op == BASIN_OP_PERMUTE;
    int last = operand->shape.rank - (matrix ? 1 : 2);
    int64_t width = basin_shape_product(&operand->shape, last, operand->shape.rank);
    int64_t rows = basin_shape_product(&operand->shape, 0, last);
    int64_t step_to = out ? operand->stride : width, step_from = out ? width : operand->stride;
    for (int64_t i = 0; i < rows; i++)
        memcpy((double *)to + i * step_to, (const double *)from + i * step_from,
               (size_t)width * sizeof(double));
}

/* The place of an operand, or of a dense copy of it in the room where its rows lie apart. */
static void *dense(char **room, const basin_operand *operand, void *at) {
    size_t bytes = copy_bytes(operand);
    void *copy = *room;
    *room += bytes;
    return bytes ? copy : at;
}

/* Puts dense copies in the place of operands that are not. */
static void make_dense(basin_frame *frame) {
    const basin_call *call = frame->call;
    if (!frame->workspace) return; /* neither scratch nor a copy is needed */
    char *room = (char *)frame->workspace + scratch_bytes(call);
    for (int i = 0; i < call->ins; i++) {
        void *to = dense(&room, &call->in[i], NULL);
        if (to) copy_rows(to, frame->in[i], &call->in[i], call->op, false);
        if (to) frame->in[i] = to;
    }
    for (int i = 0; i < call->outs; i++) frame->out[i] = dense(&room, &call->out[i], frame->out[i]);
    for (int i = 0; i < call->byte_copies; i++)
        frame->byte_copy[i] = dense(&room, &call->byte_copy[i], frame->byte_copy[i]);
}

/* A number as bfloat16 has it: 8 bits, ties to even. The host's float does the rounding to 24. */
static double narrowed(double x) {
    float single = (float)x;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    if (isfinite(single)) bits += 0x7fff + (bits >> 16 & 1);
    bits &= 0xffff0000U;
    memcpy(&single, &bits, sizeof single);
    return isnan(x) ? x : (double)single;
}

/* A number as a byte has it. */
static double byte_of(double x, const basin_operand *operand) {
    basin_byte_form form = operand->kind == BASIN_E5M2 ? BASIN_BYTE_E5M2 : BASIN_BYTE_E4M3;
    uint8_t byte = basin_byte_from_double(x * operand->scale, form);
    return basin_byte_to_double(byte, form) / operand->scale;
}

/* Narrow results and bytes hold what a device would have stored. */
static void round_result(double *out, const basin_operand *operand) {
    bool narrow = operand->kind == BASIN_NARROW, byte = basin_kind_is_byte(operand->kind);
    if (!out || (!narrow && !byte)) return;
    int64_t count = basin_shape_count(operand->shape);
    for (int64_t i = 0; i < count; i++)
        out[i] = narrow ? narrowed(out[i]) : byte_of(out[i], operand);
}

/* to [n, m] = from [m, n]' */
static void copy_transposed(double *to, const double *from, const basin_shape *shape) {
    int64_t n = shape->dim[0], m = shape->dim[1];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) to[i * m + j] = from[j * n + i];
}

/* Twins come from what was computed, before it is rounded. */
static void copy_byte_copies(const basin_frame *frame) {
    const basin_call *call = frame->call;
    for (int i = 0; i < call->byte_copies; i++) {
        const double *from = frame->out[basin_byte_copy_of(call->op, i)];
        if (!frame->byte_copy[i] || !from) continue;
        if (call->op == BASIN_OP_MATMUL && i == BASIN_BYTE_COPY_TRANSPOSED)
            copy_transposed(frame->byte_copy[i], from, &call->byte_copy[i].shape);
        else
            memcpy(frame->byte_copy[i], from,
                   (size_t)basin_shape_count(call->byte_copy[i].shape) * sizeof(double));
    }
}

static void round_results(const basin_frame *frame) {
    const basin_call *call = frame->call;
    for (int i = 0; i < call->byte_copies; i++)
        round_result(frame->byte_copy[i], &call->byte_copy[i]);
    for (int o = 0; o < call->outs; o++) round_result(frame->out[o], &call->out[o]);
}

static void run_one(basin_backend *backend, const basin_call *call, void *const *block) {
    basin_frame frame = basin_host_frame(backend, call, block, 0);
    if (!basin_op_has_kernel(call->op)) return;
    make_dense(&frame);
    (call->op < BASIN_OP_COUNT ? operations[call->op] : basin_ref_none)(&frame);
    copy_byte_copies(&frame);
    if (backend->narrow) round_results(&frame);
    for (int i = 0; i < call->outs + call->byte_copies; i++) {
        int byte_copy = i - call->outs;
        const basin_operand *to = byte_copy < 0 ? &call->out[i] : &call->byte_copy[byte_copy];
        if (copy_bytes(to))
            copy_rows(basin_operand_at(to, block),
                      byte_copy < 0 ? frame.out[i] : frame.byte_copy[byte_copy], to, call->op,
                      true);
    }
}

static void stream_run(basin_backend *backend, const basin_call *call, size_t calls,
                       void *const *block) {
    for (size_t i = 0; i < calls; i++) run_one(backend, &call[i], block);
}

static const basin_backend_table table = {
    .name = "ref",
    .real_size = sizeof(double),
    .real = BASIN_F64,
    .fuse = false,
    .masks = true,
    .narrow_reads = true,
    .joins = true,
    .narrow_size = sizeof(double),
    .narrow_lists = true,
    .byte_size = sizeof(double),
    BASIN_HOST_MEMORY,
    .workspace = workspace,
    .run = stream_run,
};

basin_status basin_backend_open_ref(basin_backend **backend, basin_error *error) {
    return basin_host_open(backend, &table, 1, error);
}
