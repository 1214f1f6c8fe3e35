/* The attention calls of a plan, handed to attention.h. */
#include "backend/cpu/attention/attention.h"

#include <string.h>

#include "backend/cpu/attention/narrow.h"
#include "backend/cpu/cpu.h"

static int64_t last_but(const basin_shape *shape, int back) {
    return shape->rank < back ? 1 : shape->dim[shape->rank - back];
}

/* The operands and the pattern; in and out as in the frame. */
static basin_attention describe(const basin_call *call, const void *const *in, void *const *out) {
    const basin_shape *q = &call->in[BASIN_ATT_Q].shape, *k = &call->in[BASIN_ATT_K].shape;
    basin_attention at = {.q = in[BASIN_ATT_Q], .k = in[BASIN_ATT_K], .beta = in[BASIN_ATT_BETA]};
    at.pattern = (basin_attention_pattern){.batch = last_but(q, 4),
                                           .parts = call->parts,
                                           .queries = last_but(q, 3),
                                           .keys = last_but(k, 3),
                                           .heads = last_but(q, 2),
                                           .width = last_but(q, 1),
                                           .exclude_self = call->attr.exclude_self,
                                           .causal = call->attr.causal,
                                           .row = in[BASIN_ATT_ROW],
                                           .key = in[BASIN_ATT_KEY],
                                           .column = in[BASIN_ATT_COLUMN],
                                           .query = in[BASIN_ATT_QUERY],
                                           .pair = in[BASIN_ATT_PAIR]};
    if (at.pattern.row) at.pattern.pairs = call->in[BASIN_ATT_KEY].shape.dim[0];
    at.scale = in[BASIN_ATT_SCALE], at.mix = in[BASIN_ATT_MIX], at.w = in[BASIN_ATT_W];
    at.a = in[BASIN_ATT_A], at.b = in[BASIN_ATT_B], at.added = call->attr.added;
    if (call->op == BASIN_OP_ATTENTION_REVERSE) {
        at.gq = out[BASIN_ATT_GQ], at.gk = out[BASIN_ATT_GK], at.gw = out[BASIN_ATT_GW];
        at.gbeta = out[BASIN_ATT_GBETA], at.gscale = out[BASIN_ATT_GSCALE];
        at.gmix = out[BASIN_ATT_GMIX];
    } else {
        at.lse = out[BASIN_ATT_LSE], at.dq = out[BASIN_ATT_DQ], at.dk = out[BASIN_ATT_DK];
        at.dbeta = out[BASIN_ATT_DBETA], at.dscale = out[BASIN_ATT_DSCALE];
        at.dmix = out[BASIN_ATT_DMIX];
    }
    return at;
}

static basin_attention_mode mode_of(const basin_call *call) {
    return call->op == BASIN_OP_ATTENTION         ? BASIN_ATTENTION_VALUE
           : call->op == BASIN_OP_ATTENTION_FORCE ? BASIN_ATTENTION_FORCE
                                                  : BASIN_ATTENTION_REVERSE;
}

/* Where the tokens are bfloat16 and there are kernels for such; elsewhere they are widened. */
static bool is_narrow(const basin_call *call, const basin_attention *at) {
    return call->in[BASIN_ATT_Q].kind == BASIN_NARROW &&
           basin_attention_narrow_fits(at, mode_of(call));
}

static basin_attention_narrow narrow_of(const basin_attention *at) {
    basin_attention_narrow n = {.at = at, .q = (const uint16_t *)at->q};
    n.k = (const uint16_t *)at->k, n.a = (const uint16_t *)at->a, n.b = (const uint16_t *)at->b;
    n.by_query = (uint16_t *)(at->gq ? at->gq : at->dq);
    n.by_key = (uint16_t *)(at->gk ? at->gk : at->dk);
    return n;
}

static size_t workspace_of(const basin_attention *at, basin_op op, int threads) {
    if (op == BASIN_OP_ATTENTION) return basin_attention_value_workspace(at, threads);
    if (op == BASIN_OP_ATTENTION_FORCE) return basin_attention_force_workspace(at, threads);
    return basin_attention_force_reverse_workspace(at, threads);
}

size_t basin_cpu_attention_workspace(const basin_call *call, int threads) {
    float there; /* the size depends on which operands there are, not on where they lie */
    const void *in[BASIN_MAX_IN] = {0};
    void *out[BASIN_MAX_OUT] = {0};
    for (int i = 0; i < call->ins; i++)
        if (call->in[i].block >= 0) in[i] = &there;
    for (int i = 0; i < call->outs; i++)
        if (call->out[i].block >= 0) out[i] = &there;
    basin_attention at = describe(call, in, out);
    basin_attention_narrow n = narrow_of(&at);
    if (is_narrow(call, &at)) return basin_attention_narrow_workspace(&n, mode_of(call), threads);
    return basin_cpu_widened_bytes(call) + workspace_of(&at, call->op, threads);
}

/* The multipliers of pairs beyond the last row are padding: their gradient is 0. */
static void clear_padding(float *gradient /* [pairs, H] */, const basin_attention_pattern *at) {
    if (!gradient || !at->row) return;
    int64_t used = at->row[at->queries];
    memset(gradient + used * at->heads, 0,
           (size_t)((at->pairs - used) * at->heads) * sizeof(float));
}

static void run(const basin_attention *at, basin_op op, int threads, void *workspace) {
    if (op == BASIN_OP_ATTENTION)
        basin_attention_value(at, threads, workspace);
    else if (op == BASIN_OP_ATTENTION_FORCE)
        basin_attention_force(at, threads, workspace);
    else
        basin_attention_force_reverse(at, threads, workspace);
    clear_padding(at->dscale, &at->pattern);
    clear_padding(at->gscale, &at->pattern);
}

void basin_cpu_attention(const basin_cpu_frame *frame) {
    const void *in[BASIN_MAX_IN];
    void *out[BASIN_MAX_OUT];
    basin_attention at = describe(frame->call, frame->in, frame->out);
    if (is_narrow(frame->call, &at)) {
        basin_attention_narrow n = narrow_of(&at);
        basin_attention_narrow_run(&n, mode_of(frame->call), frame->threads, frame->workspace);
        return;
    }
    void *workspace = basin_cpu_widen(in, out, frame);
    at = describe(frame->call, in, out);
    run(&at, frame->call->op, frame->threads, workspace);
    basin_cpu_narrow(frame, out);
}
