/* The attention calls of a plan, handed to the form that fits; see attention.h. */
#include "engine/backend/cuda/attention/attention.h"
#include "engine/backend/cuda/inside.h"

/* From a node's heads to the next one's, of operand i of `count`. */
static int64_t step_of(const basin_operand *x, int count, int i, int64_t dense) {
    return i < count && x[i].block >= 0 && x[i].stride ? x[i].stride : dense;
}

/* The result on that side, of queries (0) or keys. */
static int side_of(const basin_call *call, int side) {
    return (call->op == BASIN_OP_ATTENTION_REVERSE ? (int)BASIN_ATT_GQ : (int)BASIN_ATT_DQ) + side;
}

static basin_cuda_steps steps_of(const basin_call *call, int64_t dense) {
    auto in = [&](int i) { return step_of(call->in, call->ins, i, dense); };
    auto out = [&](int side) { return step_of(call->out, call->outs, side_of(call, side), dense); };
    return {in(BASIN_ATT_Q), in(BASIN_ATT_K), in(BASIN_ATT_A), in(BASIN_ATT_B), out(0), out(1)};
}

static bool lies_apart(const basin_cuda_heads *at) {
    int64_t dense = at->heads * at->width;
    const basin_cuda_steps *s = &at->step;
    return s->q != dense || s->k != dense || s->a != dense || s->b != dense || s->out_q != dense ||
           s->out_k != dense;
}

static basin_cuda_heads describe(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    const void *const *in = frame->in;
    void *const *out = frame->out;
    const basin_shape *q = &call->in[BASIN_ATT_Q].shape, *k = &call->in[BASIN_ATT_K].shape;
    basin_cuda_heads at = {};
    at.kind = call->in[BASIN_ATT_Q].kind;
    at.batch = basin_shape_last(q, 4), at.queries = basin_shape_last(q, 3),
    at.keys = basin_shape_last(k, 3);
    at.heads = basin_shape_last(q, 2), at.width = basin_shape_last(q, 1);
    at.step = steps_of(call, at.heads * at.width);
    at.exclude_self = call->attr.exclude_self, at.causal = call->attr.causal;
    at.added = call->attr.added;
    at.tf32 = call->attr.products == BASIN_PRODUCTS_TF32;
    at.row = (const int32_t *)in[BASIN_ATT_ROW], at.key = (const int32_t *)in[BASIN_ATT_KEY];
    at.column = (const int32_t *)in[BASIN_ATT_COLUMN];
    at.query = (const int32_t *)in[BASIN_ATT_QUERY];
    at.pair = (const int32_t *)in[BASIN_ATT_PAIR];
    at.pairs = at.row ? call->in[BASIN_ATT_KEY].shape.dim[0] : at.batch * at.queries * at.keys;
    at.q = in[BASIN_ATT_Q], at.k = in[BASIN_ATT_K], at.a = in[BASIN_ATT_A], at.b = in[BASIN_ATT_B];
    at.beta = (const float *)in[BASIN_ATT_BETA], at.scale = (const float *)in[BASIN_ATT_SCALE];
    at.mix = (const float *)in[BASIN_ATT_MIX], at.w = (const float *)in[BASIN_ATT_W];
    if (call->op == BASIN_OP_ATTENTION_REVERSE) {
        at.out_q = out[BASIN_ATT_GQ], at.out_k = out[BASIN_ATT_GK];
        at.gw = (float *)out[BASIN_ATT_GW], at.out_beta = (float *)out[BASIN_ATT_GBETA];
        at.out_scale = (float *)out[BASIN_ATT_GSCALE], at.out_mix = (float *)out[BASIN_ATT_GMIX];
    } else {
        at.out_q = out[BASIN_ATT_DQ], at.out_k = out[BASIN_ATT_DK];
        at.lse = (float *)out[BASIN_ATT_LSE], at.out_beta = (float *)out[BASIN_ATT_DBETA];
        at.out_scale = (float *)out[BASIN_ATT_DSCALE], at.out_mix = (float *)out[BASIN_ATT_DMIX];
    }
    return at;
}

static basin_cuda_mode mode_of(const basin_call *call) {
    return call->op == BASIN_OP_ATTENTION         ? BASIN_CUDA_VALUE
           : call->op == BASIN_OP_ATTENTION_FORCE ? BASIN_CUDA_FORCE
                                                  : BASIN_CUDA_REVERSE;
}

enum form { DENSE, LISTED, MIXED };

/* ---- results as bytes: in the type the plan asks for, or with bytes as well ---- */

static bool is_bytes(const basin_call *call, int side) {
    int k = side_of(call, side);
    return call->op != BASIN_OP_ATTENTION && k < call->outs && call->out[k].block >= 0 &&
           basin_kind_is_byte(call->out[k].kind);
}

/* Whether what there is on both sides is bytes of one kind and scale, as kernels write them. */
static bool are_bytes(const basin_call *call) {
    const basin_operand *first = NULL;
    for (int side = 0; side < 2; side++) {
        int k = side_of(call, side);
        if (k >= call->outs || call->out[k].block < 0) continue;
        if (!is_bytes(call, side)) return false;
        if (first && (first->kind != call->out[k].kind || first->scale != call->out[k].scale))
            return false;
        first = &call->out[k];
    }
    return first != NULL;
}

static int64_t nodes_of(const basin_cuda_heads *at, int side) {
    return at->batch * (side == 0 ? at->queries : at->keys);
}

/* Byte results, as bfloat16 in the workspace after what the kernels need. */
static size_t staged_bytes(const basin_call *call, const basin_cuda_heads *at, int side) {
    size_t row = (size_t)(at->heads * at->width) * sizeof(basin_bf16);
    return is_bytes(call, side) ? ((size_t)nodes_of(at, side) * row + 255) / 256 * 256 : 0;
}

/* Lets the kernels write bytes where they can; else bfloat16 into the workspace. */
static void redirect(basin_cuda_heads *at, const basin_cuda_frame *frame, bool direct, char *room) {
    const basin_call *call = frame->call;
    for (int side = 0; side < 2; side++) {
        if (!is_bytes(call, side)) continue;
        const basin_operand *out = &call->out[side_of(call, side)];
        at->bytes = direct, at->five = out->kind == BASIN_E5M2;
        at->byte_scale = (float)out->scale;
        if (direct) continue;
        (side == 0 ? at->out_q : at->out_k) = room;
        (side == 0 ? at->step.out_q : at->step.out_k) = at->heads * at->width;
        room += staged_bytes(call, at, side);
    }
}

/* Bytes of what was computed as bfloat16: of the workspace, or beside the results. */
static void store_bytes(const basin_cuda_frame *frame, const basin_cuda_heads *at, bool direct) {
    const basin_call *call = frame->call;
    int64_t columns = at->heads * at->width;
    for (int side = 0; side < 2; side++) {
        const void *from = side == 0 ? at->out_q : at->out_k;
        int64_t apart = side == 0 ? at->step.out_q : at->step.out_k;
        int k = side_of(call, side);
        if (is_bytes(call, side) && !direct)
            basin_cuda_bytes_store(frame->cuda, frame->out[k], &call->out[k], from, true, apart,
                                   nodes_of(at, side), columns);
        if (side < call->byte_copies && frame->byte_copy[side])
            basin_cuda_bytes_store(frame->cuda, frame->byte_copy[side], &call->byte_copy[side],
                                   from, true, apart, nodes_of(at, side), columns);
    }
}

static form form_of(const basin_cuda *cuda, const basin_cuda_heads *at) {
    if (at->row) return basin_cuda_listed_fits(at) ? LISTED : MIXED;
    if (at->scale || at->mix || at->out_scale || at->out_mix) return MIXED;
    return basin_cuda_dense_fits(cuda, at) ? DENSE : MIXED;
}

/* Rounded up, so that staged results may follow. */
static size_t kernels_workspace(const basin_cuda *cuda, const basin_cuda_heads *at,
                                basin_cuda_mode mode) {
    size_t bytes;
    switch (form_of(cuda, at)) {
    case DENSE: bytes = basin_cuda_dense_workspace(at, mode); break;
    case LISTED: bytes = basin_cuda_listed_workspace(at, mode); break;
    default: bytes = basin_cuda_mixed_workspace(at, mode); break;
    }
    return (bytes + 255) / 256 * 256;
}

size_t basin_cuda_attention_workspace(const basin_cuda *cuda, const basin_call *call) {
    const basin_cuda_frame frame = basin_cuda_outline(call);
    basin_cuda_heads at = describe(&frame);
    return kernels_workspace(cuda, &at, mode_of(call)) + staged_bytes(call, &at, 0) +
           staged_bytes(call, &at, 1);
}

/* Where there is no token or no pair: everything is 0. */
static void clear_outputs(const basin_cuda_frame *frame) {
    for (int i = 0; i < frame->call->outs; i++) {
        const basin_operand *out = &frame->call->out[i];
        size_t size = out->kind == BASIN_NARROW       ? sizeof(basin_bf16)
                      : basin_kind_is_byte(out->kind) ? 1
                                                      : sizeof(float);
        size_t bytes = frame->out[i] ? (size_t)basin_shape_count(out->shape) * size : 0;
        size_t row =
            (size_t)(basin_shape_last(&out->shape, 2) * basin_shape_last(&out->shape, 1)) * size;
        if (bytes && out->stride)
            BASIN_CUDA_TRY(frame->cuda, cudaMemset2DAsync(frame->out[i], (size_t)out->stride * size,
                                                          0, row, bytes / row, frame->stream));
        else if (bytes)
            BASIN_CUDA_TRY(frame->cuda, cudaMemsetAsync(frame->out[i], 0, bytes, frame->stream));
    }
}

static void refuse_steps(basin_cuda *cuda, const basin_cuda_heads *at) {
    if (cuda->error.status == BASIN_OK)
        basin_fail(&cuda->error, BASIN_UNSUPPORTED,
                   "backend cuda: attention: rows of %lld heads of %lld lie apart, which all pairs "
                   "without multipliers and mixing take, of heads up to %d wide",
                   (long long)at->heads, (long long)at->width, BASIN_CUDA_DENSE_WIDTH);
}

void basin_cuda_attention(const basin_cuda_frame *frame) {
    basin_cuda_heads at = describe(frame);
    basin_cuda_mode mode = mode_of(frame->call);
    if (at.pairs == 0 || at.heads == 0) {
        clear_outputs(frame);
        return;
    }
    enum form form = form_of(frame->cuda, &at);
    bool direct =
        form == DENSE && are_bytes(frame->call) && basin_cuda_dense_stores_bytes(frame->cuda, &at);
    redirect(&at, frame, direct,
             (char *)frame->workspace + kernels_workspace(frame->cuda, &at, mode));
    if (form != DENSE && lies_apart(&at)) {
        refuse_steps(frame->cuda, &at);
        return;
    }
    switch (form) {
    case DENSE: basin_cuda_dense(frame, &at, mode); break;
    case LISTED:
        (basin_cuda_joint_fits(&at) ? basin_cuda_joint : basin_cuda_listed)(frame, &at, mode);
        break;
    default: basin_cuda_mixed(frame, &at, mode); break;
    }
    store_bytes(frame, &at, direct);
}
