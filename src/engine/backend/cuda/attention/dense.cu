/* Energy attention over all pairs on tensor cores: two launches, by query and by key, and the sum
 * of the queries' shares of dbeta. See attention/dense.h; attention/stream_sm90a.cu has kernels for
 * long sequences, and attention/strip_sm90a.cu does the tokens of pictures in one launch. */
#include "engine/backend/cuda/attention/dense.h"
#include "engine/backend/cuda/attention/dense_rows.h"

/* The products' precision: bf16 for narrow operands, tf32 or three tf32 products for floats. */
static size_t shared_bytes(const basin_cuda_heads *at, basin_cuda_mode mode, int warps) {
    int width = (int)at->width;
    return at->kind == BASIN_NARROW ? basin_dense_bytes_bf16(width, mode, warps)
                                    : basin_dense_bytes_f32(width, mode, warps);
}

bool basin_cuda_dense_fits(const basin_cuda *cuda, const basin_cuda_heads *at) {
    int64_t nodes = at->queries > at->keys ? at->queries : at->keys;
    return at->width > 0 && at->width <= BASIN_CUDA_DENSE_WIDTH && nodes < INT32_MAX / 2 &&
           at->batch * at->heads * basin_cuda_ceil(nodes, 16) < INT32_MAX &&
           shared_bytes(at, BASIN_CUDA_REVERSE, 1) <= cuda->shared_limit;
}

/* Rows go to as few blocks as hold them, evenly. */
static int warps_of(const basin_cuda *cuda, const basin_cuda_heads *at, basin_cuda_mode mode,
                    int64_t own) {
    int64_t strips = basin_cuda_ceil(own, 16), maximum = BASIN_DENSE_WARPS;
    while (maximum > 1 && shared_bytes(at, mode, (int)maximum) > cuda->shared_limit) maximum--;
    return (int)basin_cuda_ceil(strips, basin_cuda_ceil(strips, maximum));
}

struct dense_space {
    basin_cuda_summary *summary; /* [batch, H, queries] */
    float *slope;                /* [batch, queries, H] */
    char *sum;
};

static size_t lay_out(dense_space *s, const basin_cuda_heads *at, basin_cuda_mode mode,
                      void *workspace) {
    basin_cuda_arena arena = {(char *)workspace, 0};
    int64_t rows = at->batch * at->queries;
    *s = {};
    if (mode == BASIN_CUDA_VALUE) return 0;
    if (at->out_k) s->summary = basin_cuda_take<basin_cuda_summary>(&arena, rows * at->heads);
    if (at->out_beta) {
        s->slope = basin_cuda_take<float>(&arena, rows * at->heads);
        s->sum = basin_cuda_take<char>(&arena, (int64_t)basin_cuda_sum_bytes(1, rows, at->heads));
    }
    return arena.used;
}

size_t basin_cuda_dense_workspace(const basin_cuda_heads *at, basin_cuda_mode mode) {
    dense_space s;
    return lay_out(&s, at, mode, NULL);
}

/* Whether every row that is read begins at 16 bytes. */
static bool rows_aligned(const basin_cuda_heads *at, bool reverse) {
    const basin_cuda_steps *step = &at->step;
    return basin_cuda_aligned(at->q, step->q, at->kind, 16) &&
           basin_cuda_aligned(at->k, step->k, at->kind, 16) &&
           basin_cuda_aligned(reverse ? at->a : NULL, step->a, at->kind, 16) &&
           basin_cuda_aligned(reverse ? at->b : NULL, step->b, at->kind, 16);
}

static void launch(const basin_cuda_frame *frame, const basin_cuda_heads *at, basin_cuda_mode mode,
                   const dense_space *s, bool by_key, bool streams) {
    basin_dense_launch p = {};
    bool reverse = mode == BASIN_CUDA_REVERSE;
    p.x = by_key ? at->k : at->q, p.y = by_key ? at->q : at->k;
    p.x2 = !reverse ? NULL : by_key ? at->b : at->a;
    p.y2 = !reverse ? NULL : by_key ? at->a : at->b;
    p.out = by_key ? at->out_k : at->out_q;
    const basin_cuda_steps *step = &at->step;
    p.step_x = by_key ? step->k : step->q, p.step_y = by_key ? step->q : step->k;
    p.step_x2 = by_key ? step->b : step->a, p.step_y2 = by_key ? step->a : step->b;
    p.step_out = by_key ? step->out_k : step->out_q;
    p.vectors = at->width % (at->kind == BASIN_NARROW ? 8 : 4) == 0 && rows_aligned(at, reverse);
    p.pairs = at->width % 2 == 0 &&
              basin_cuda_aligned(p.out, p.step_out, at->kind, at->kind == BASIN_NARROW ? 4 : 8);
    p.beta = at->beta, p.w = mode == BASIN_CUDA_VALUE ? NULL : at->w;
    p.lse = by_key ? NULL : at->lse, p.gw = by_key ? NULL : at->gw;
    p.slope = by_key ? NULL : s->slope, p.summary = s->summary;
    p.own = (int)(by_key ? at->keys : at->queries),
    p.other = (int)(by_key ? at->queries : at->keys);
    p.heads = (int)at->heads, p.width = (int)at->width, p.exclude_self = at->exclude_self;
    p.order = !at->causal ? 0 : by_key ? -1 : 1;
    int warps = warps_of(frame->cuda, at, mode, p.own);
    p.blocks = (int)basin_cuda_ceil(p.own, streams ? BASIN_STREAM_ROWS : warps * 16);
    p.tasks = at->batch * at->heads * p.blocks;
    if (streams) {
        BASIN_CUDA_TRY(frame->cuda, basin_stream_start(&p, mode, by_key, frame->stream));
        return;
    }
    cudaError_t (*start)(const basin_dense_launch *, basin_cuda_mode, bool, int, cudaStream_t) =
        at->kind == BASIN_NARROW ? basin_dense_launch_bf16
        : at->tf32               ? basin_dense_launch_tf32
                                 : basin_dense_launch_f32;
    BASIN_CUDA_TRY(frame->cuda, start(&p, mode, by_key, warps, frame->stream));
}

/* One launch for both sides. */
static void launch_strip(const basin_cuda_frame *frame, const basin_cuda_heads *at,
                         basin_cuda_mode mode, const dense_space *s) {
    bool reverse = mode == BASIN_CUDA_REVERSE;
    basin_strip_launch p = {};
    p.q = at->q, p.k = at->k, p.a = reverse ? at->a : NULL, p.b = reverse ? at->b : NULL;
    p.out_q = at->out_q, p.out_k = at->out_k, p.step = at->step;
    p.beta = at->beta, p.w = mode == BASIN_CUDA_VALUE ? NULL : at->w;
    p.lse = at->lse, p.gw = at->gw, p.slope = s->slope;
    p.queries = (int)at->queries, p.keys = (int)at->keys;
    p.heads = (int)at->heads, p.width = (int)at->width, p.exclude_self = at->exclude_self;
    p.bytes = at->bytes, p.five = at->five, p.scale = at->byte_scale;
    BASIN_CUDA_TRY(frame->cuda,
                   basin_strip_start(&p, at->kind, mode, at->batch * at->heads, frame->stream));
}

/* Tokens lie as plans lay them, rows at multiples of 16 bytes, where results are bytes. */
bool basin_cuda_dense_stores_bytes(const basin_cuda *cuda, const basin_cuda_heads *at) {
    return at->kind == BASIN_NARROW && at->width % 16 == 0 && at->step.q % 8 == 0 &&
           at->step.k % 8 == 0 && at->step.a % 8 == 0 && at->step.b % 8 == 0 &&
           at->step.out_q % 8 == 0 && at->step.out_k % 8 == 0 && basin_strip_fits(cuda, at);
}

void basin_cuda_dense(const basin_cuda_frame *frame, const basin_cuda_heads *at,
                      basin_cuda_mode mode) {
    dense_space s;
    lay_out(&s, at, mode, frame->workspace);
    bool aligned = rows_aligned(at, mode == BASIN_CUDA_REVERSE) &&
                   basin_cuda_aligned(at->out_q, at->step.out_q, at->kind, 8) &&
                   basin_cuda_aligned(at->out_k, at->step.out_k, at->kind, 8);
    if (aligned && basin_strip_fits(frame->cuda, at)) {
        launch_strip(frame, at, mode, &s);
    } else {
        bool streams = aligned && basin_stream_fits(frame->cuda, at);
        launch(frame, at, mode, &s, false, streams);
        if (mode == BASIN_CUDA_VALUE) return;
        if (at->out_k) launch(frame, at, mode, &s, true, streams);
    }
    if (at->out_beta)
        basin_cuda_sum(frame, at->out_beta, BASIN_REAL, s.slope, BASIN_REAL, 1,
                       at->batch * at->queries, at->heads, s.sum);
}
