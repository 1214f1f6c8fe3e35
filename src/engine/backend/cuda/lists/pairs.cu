/* Products over a list of pairs (q, k), head by head: PAIR_DOT, PAIR_SUM, and the same for
 * lists/mixed.cu:
 *     dot  w[p,h] = x[q,h] . z[k,h]      sum  out[q,h] = sum over the pairs of q of w[p,h] z[k,h]
 * and its transpose by key. A pair and head reads one row of Y elements across, from the
 * second-level cache, for 2 Y operations; own rows stay in the first-level cache or in registers.
 */
#include "engine/backend/cuda/lists/walk.h"

struct dots {
    basin_cuda_walk walk;
    basin_pair_numbers r, c;
    const void *x, *x2, *y, *y2;
    int heads, width;
    bool fill;
};

enum { LANES = 8 }; /* for a pair */

/* The group's share of sums of products; V elements at a time. */
template <typename T, int V, bool TWO>
BASIN_DEVICE void dot(float &r, float &c, const dots &p, int64_t own, int64_t other) {
    const T *x = (const T *)p.x + own, *y = (const T *)p.y + other;
    const T *x2 = (const T *)p.x2 + own, *y2 = (const T *)p.y2 + other;
    r = c = 0;
    for (int at = threadIdx.x % LANES * V; at < p.width; at += LANES * V) {
        float left[V], right[V], more[V];
        basin_row_load(left, x + at), basin_row_load(right, y + at);
        BASIN_UNROLL (i, V) r = fmaf(left[i], right[i], r);
        if (TWO && p.x2) {
            basin_row_load(more, x2 + at);
            BASIN_UNROLL (i, V) c = fmaf(more[i], right[i], c);
        }
        if (TWO && p.y2) {
            basin_row_load(more, y2 + at);
            BASIN_UNROLL (i, V) c = fmaf(left[i], more[i], c);
        }
    }
    r = basin_group_sum<LANES>(r);
    if (TWO) c = basin_group_sum<LANES>(c);
}

template <typename T, int V, bool TWO>
static __global__ void __launch_bounds__(BASIN_WALK_WARPS * 32) dots_kernel(dots p) {
    int64_t task = basin_cuda_walk_task(), chunk = task % p.walk.chunks;
    int h = (int)(task / p.walk.chunks), lane = threadIdx.x % 32, group = lane / LANES;
    if (h >= p.heads) return;
    int64_t step = (int64_t)p.heads * p.width, shift = (int64_t)h * p.width;
    basin_cuda_walker walker(p.walk, chunk);
    int64_t end = walker.end;
    while (walker.more()) {
        basin_cuda_fragment f = walker.next(p.walk);
        for (int64_t base = f.begin; base < f.end; base += 32 / LANES) {
            bool on = base + group < f.end;
            int64_t i = on ? base + group : f.end - 1;
            float r, c;
            dot<T, V, TWO>(r, c, p, f.node * step + shift,
                           basin_cuda_walk_other(p.walk, f.node, i) * step + shift);
            if (!on || lane % LANES != 0) continue;
            p.r.at[i * p.r.pair + h * p.r.head] = r;
            if (TWO) p.c.at[i * p.c.pair + h * p.c.head] = c;
        }
    }
    if (!p.fill) return;
    int64_t begin = chunk * p.walk.piece, last = begin + p.walk.piece;
    if (last > p.walk.capacity) last = p.walk.capacity;
    for (int64_t i = (end > begin ? end : begin) + lane; i < last; i += 32)
        p.r.at[i * p.r.pair + h * p.r.head] = 0;
}

template <typename T, int V> static void launch_dots(const dots &p, cudaStream_t stream) {
    unsigned blocks = basin_cuda_walk_blocks(p.walk.chunks * p.heads);
    if (p.c.at)
        dots_kernel<T, V, true><<<blocks, BASIN_WALK_WARPS * 32, 0, stream>>>(p);
    else
        dots_kernel<T, V, false><<<blocks, BASIN_WALK_WARPS * 32, 0, stream>>>(p);
}

void basin_cuda_pair_dots(const basin_cuda_frame *frame, basin_pair_numbers r, basin_pair_numbers c,
                          basin_kind kind, const void *x, const void *x2, const void *y,
                          const void *y2, const basin_cuda_walk &queries, int64_t heads,
                          int64_t width, bool fill) {
    dots p = {queries, r, c, x, x2, y, y2, (int)heads, (int)width, fill};
    if (queries.chunks == 0 || heads == 0) return;
    basin_cuda_typed(kind, [&](auto zero) {
        using T = decltype(zero);
        constexpr int V = 16 / sizeof(T);
        if (width % V == 0)
            launch_dots<T, V>(p, frame->stream);
        else
            launch_dots<T, 1>(p, frame->stream);
    });
    BASIN_CUDA_LAUNCHED(frame->cuda, "products over pairs");
}

struct sums {
    basin_cuda_walk walk;
    basin_pair_numbers t, gs;
    const void *y, *y2;
    void *out;
    float *left;                 /* [slots, H, width] of cut nodes */
    int heads, width;            /* width: the columns of this launch */
    int64_t step, stride, shift; /* of rows, of heads, of the first column */
};

template <typename T, typename R, int G>
static __global__ void __launch_bounds__(BASIN_WALK_WARPS * 32) sums_kernel(sums p) {
    int64_t task = basin_cuda_walk_task(), chunk = task % p.walk.chunks;
    int h = (int)(task / p.walk.chunks), group = threadIdx.x % 32 / G;
    if (h >= p.heads) return;
    int64_t shift = h * p.stride + p.shift;
    basin_cuda_walker walker(p.walk, chunk);
    while (walker.more()) {
        basin_cuda_fragment f = walker.next(p.walk);
        R sum, y;
        sum.clear();
#pragma unroll 2
        for (int64_t base = f.begin; base < f.end; base += 32 / G) {
            bool on = base + group < f.end;
            int64_t i = on ? base + group : f.end - 1;
            int64_t other = basin_cuda_walk_other(p.walk, f.node, i) * p.step + shift;
            int64_t pair = basin_cuda_walk_pair(p.walk, f.node, i);
            float t = on ? __ldg(p.t.at + pair * p.t.pair + h * p.t.head) : 0.0f;
            y.load((const T *)p.y + other, p.width);
            sum.add(t, y);
            if (!p.gs.at) continue;
            t = on ? __ldg(p.gs.at + pair * p.gs.pair + h * p.gs.head) : 0.0f;
            y.load((const T *)p.y2 + other, p.width);
            sum.add(t, y);
        }
        sum.join();
        if (f.continues || f.continued)
            sum.leave(p.left + (basin_cuda_fragment_slot(f, chunk) * p.heads + h) * p.width,
                      p.width);
        else
            sum.store((T *)p.out + f.node * p.step + shift, 1.0f, p.width);
    }
}

size_t basin_cuda_pair_sums_bytes(const basin_cuda_walk &walk, int64_t heads, int64_t width) {
    int64_t columns = width < BASIN_WALK_WIDTH ? width : BASIN_WALK_WIDTH;
    return (size_t)(2 * walk.chunks * heads * columns) * sizeof(float);
}

template <typename T> static void launch_sums(const basin_cuda_frame *frame, const sums &p) {
    bool aligned = p.stride % (16 / sizeof(T)) == 0;
    if (p.walk.chunks > 0)
        basin_cuda_walk_rows<T>(p.width, aligned, [&](auto row, auto group) {
            sums_kernel<T, decltype(row), decltype(group)::value>
                <<<basin_cuda_walk_blocks(p.walk.chunks * p.heads), BASIN_WALK_WARPS * 32, 0,
                   frame->stream>>>(p);
        });
    BASIN_CUDA_LAUNCHED(frame->cuda, "sums over pairs");
    basin_cuda_walk_join<T>
        <<<basin_cuda_walk_cut_blocks(p.walk, p.heads), BASIN_WALK_WARPS * 32, 0, frame->stream>>>(
            (T *)p.out, p.left, NULL, p.walk, p.heads, p.width, p.step, p.stride, p.shift,
            basin_cuda_walk_is_large(p.walk));
    BASIN_CUDA_LAUNCHED(frame->cuda, "sums over pairs, cut rows");
}

void basin_cuda_pair_sums(const basin_cuda_frame *frame, void *out, basin_kind kind,
                          basin_pair_numbers t, const void *y, basin_pair_numbers gs,
                          const void *y2, const basin_cuda_walk &walk, int64_t heads, int64_t width,
                          void *workspace) {
    sums p = {walk, t, gs, y, y2, out, (float *)workspace, (int)heads, 0, heads * width, width, 0};
    if (walk.nodes == 0 || heads == 0) return;
    for (p.shift = 0; p.shift < width; p.shift += BASIN_WALK_WIDTH) {
        int64_t rest = width - p.shift;
        p.width = (int)(rest < BASIN_WALK_WIDTH ? rest : BASIN_WALK_WIDTH);
        basin_cuda_typed(kind, [&](auto zero) { launch_sums<decltype(zero)>(frame, p); });
    }
}

/* ---- the operations ---- */

enum { IN_ROW = 2, IN_KEY, IN_COLUMN, IN_QUERY, IN_PAIR };

static basin_cuda_walk walk_of(const basin_cuda_frame *frame, const basin_call *call, bool by_key) {
    basin_cuda_heads at = {};
    at.batch = 1;
    at.queries = call->in[IN_ROW].shape.dim[0] - 1, at.keys = call->in[IN_COLUMN].shape.dim[0] - 1;
    at.pairs = call->in[IN_KEY].shape.dim[0];
    if (frame) {
        at.row = (const int32_t *)frame->in[IN_ROW], at.key = (const int32_t *)frame->in[IN_KEY];
        at.column = (const int32_t *)frame->in[IN_COLUMN];
        at.query = (const int32_t *)frame->in[IN_QUERY];
        at.pair = (const int32_t *)frame->in[IN_PAIR];
    }
    return basin_cuda_walk_of(&at, by_key);
}

void basin_cuda_pair_dot(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->in[0].shape; /* [queries, H, Y] */
    int64_t heads = basin_shape_last(shape, 2);
    basin_cuda_pair_dots(frame, {(float *)frame->out[0], heads, 1}, {}, call->in[0].kind,
                         frame->in[0], NULL, frame->in[1], NULL, walk_of(frame, call, false), heads,
                         basin_shape_last(shape, 1), true);
}

size_t basin_cuda_pair_workspace(const basin_cuda *, const basin_call *call) {
    if (call->op != BASIN_OP_PAIR_SUM) return 0;
    const basin_shape *shape = &call->in[1].shape;
    return basin_cuda_pair_sums_bytes(walk_of(NULL, call, call->attr.transpose_a),
                                      basin_shape_last(shape, 2), basin_shape_last(shape, 1));
}

void basin_cuda_pair_sum(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->in[1].shape; /* [nodes across, H, Y] */
    int64_t heads = basin_shape_last(shape, 2);
    basin_cuda_pair_sums(frame, frame->out[0], call->out[0].kind, {(float *)frame->in[0], heads, 1},
                         frame->in[1], {}, NULL, walk_of(frame, call, call->attr.transpose_a),
                         heads, basin_shape_last(shape, 1), frame->workspace);
}
