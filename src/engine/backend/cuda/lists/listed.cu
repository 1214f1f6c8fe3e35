/* Energy attention over a CSR list, a head at a time: launches, and joining of cut nodes. */
#include "engine/backend/cuda/lists/listed.h"

/* A query and head that was cut, or has no pairs, by a warp. */
template <basin_cuda_mode MODE, typename T>
static __device__ void join_query(const listed &p, const basin_cuts &cuts, int64_t node, int h) {
    enum { PARTS = MODE == BASIN_CUDA_REVERSE ? 2 : 1 };
    int lane = threadIdx.x % 32;
    running s = {basin_minus_infinity()};
    for (int64_t i = 0; i < cuts.count; i++) {
        const running &from = p.states[cuts.slot(i) * p.heads + h];
        if (i == 0) s.center = from.center;
        s.maximum = fmaxf(s.maximum, from.maximum);
    }
    for (int64_t i = 0; i < cuts.count; i++) {
        const running &from = p.states[cuts.slot(i) * p.heads + h];
        float factor = basin_exp2(from.maximum - s.maximum), shift = from.center - s.center;
        s.total = fmaf(factor, from.total, s.total);
        s.slope = fmaf(factor, from.slope, s.slope);
        s.gain = fmaf(factor, from.gain + shift * from.total, s.gain);
        s.gain_slope = fmaf(factor, from.gain_slope + shift * from.slope, s.gain_slope);
    }
    closing end = close<MODE>(p, s, node, h, lane == 0);
    if (MODE == BASIN_CUDA_VALUE || !p.out) return;
    float beta = p.beta[h];
    for (int y = lane; y < p.width; y += 32) {
        float sum = 0, plain = 0;
        for (int64_t i = 0; i < cuts.count; i++) {
            int64_t slot = cuts.slot(i) * p.heads + h;
            const running &from = p.states[slot];
            float factor = basin_exp2(from.maximum - s.maximum), shift = from.center - s.center;
            float first = p.sums[slot * PARTS * p.width + y];
            float second = PARTS == 2 ? p.sums[(slot * PARTS + 1) * p.width + y] : 0.0f;
            sum = fmaf(factor, first + beta * shift * second, sum);
            plain = fmaf(factor, second, plain);
        }
        ((T *)p.out)[(node * p.heads + h) * p.width + y] =
            basin_from_float<T>(end.factor * fmaf(end.plain, plain, sum));
    }
}

template <basin_cuda_mode MODE, typename T>
static __global__ void __launch_bounds__(BASIN_WALK_WARPS * 32) join_queries(listed p, bool large) {
    basin_cuda_walk_cut(p.walk, p.heads, large, [&](int64_t node, int h, const basin_cuts &cuts) {
        join_query<MODE, T>(p, cuts, node, h);
    });
}

/* ---- launching ---- */

bool basin_cuda_listed_fits(const basin_cuda_heads *at) {
    bool plain = !at->mix && !at->out_mix && !at->added && (at->scale || !at->out_scale);
    return plain && at->width > 0 && at->width <= BASIN_WALK_WIDTH && at->heads < 65536;
}

size_t basin_cuda_listed_workspace(const basin_cuda_heads *at, basin_cuda_mode mode) {
    listed_space s;
    return lay_out(&s, at, mode, NULL);
}

static unsigned blocks_of(const listed &p) {
    return basin_cuda_walk_blocks((p.whole ? p.walk.nodes : p.walk.chunks) * p.heads);
}

template <basin_cuda_mode MODE, bool KEYS, typename T>
static void walk_side(const basin_cuda_frame *frame, const listed &p) {
    enum { THREADS = BASIN_WALK_WARPS * 32 };
    bool aligned = p.width % (16 / sizeof(T)) == 0, large = basin_cuda_walk_is_large(p.walk);
    basin_cuda_walk_rows<T>(p.width, aligned, [&](auto row, auto group) {
        enum { G = decltype(group)::value };
        if constexpr (KEYS)
            by_key<MODE, T, decltype(row), G, G><<<blocks_of(p), THREADS, 0, frame->stream>>>(p);
        else
            by_query<MODE, T, decltype(row), G, G><<<blocks_of(p), THREADS, 0, frame->stream>>>(p);
    });
    BASIN_CUDA_LAUNCHED(frame->cuda, "attention along a list");
    if (p.whole || (KEYS && !p.out)) return;
    unsigned blocks = basin_cuda_walk_cut_blocks(p.walk, p.heads);
    if constexpr (KEYS)
        basin_cuda_walk_join<T><<<blocks, THREADS, 0, frame->stream>>>(
            (T *)p.out, p.sums, p.beta, p.walk, p.heads, p.width, (int64_t)p.heads * p.width,
            p.width, 0, large);
    else
        join_queries<MODE, T><<<blocks, THREADS, 0, frame->stream>>>(p, large);
    BASIN_CUDA_LAUNCHED(frame->cuda, "attention along a list, cut rows");
}

template <basin_cuda_mode MODE>
static void walk(const basin_cuda_frame *frame, const basin_cuda_heads *at, const listed_space *s) {
    listed queries = describe(at, MODE, s, false);
    basin_cuda_typed(at->kind, [&](auto zero) {
        using T = decltype(zero);
        walk_side<MODE, false, T>(frame, queries);
        if constexpr (MODE != BASIN_CUDA_VALUE)
            if (at->out_k || at->out_scale)
                walk_side<MODE, true, T>(frame, describe(at, MODE, s, true));
    });
}

void basin_cuda_listed(const basin_cuda_frame *frame, const basin_cuda_heads *at,
                       basin_cuda_mode mode) {
    run_walks(frame, at, mode, [&](auto of, const listed_space *space) {
        walk<decltype(of)::value>(frame, at, space);
    });
}

/* Energy attention over a short CSR list of pairs, all heads of a node at once, where these are 64
 * or 128 floats: a molecule's node has three or four pairs, and a warp per node and head would
 * leave most of its lanes idle. Nothing is cut. */

template <int N> using number = std::integral_constant<int, N>;

/* Calls f(row, group, lanes of a head) for all heads of a node, 64 or 128 floats; else false. */
template <typename F> static bool with_rows(int64_t heads, int64_t width, F f) {
    int64_t all = heads * width;
    if (all == 64 && width == 16)
        f(basin_row<float, 16, 4, 4>(), number<16>(), number<4>());
    else if (all == 64 && width == 32)
        f(basin_row<float, 16, 4, 4>(), number<16>(), number<8>());
    else if (all == 128 && width == 16)
        f(basin_row<float, 32, 4, 4>(), number<32>(), number<4>());
    else if (all == 128 && width == 32)
        f(basin_row<float, 32, 4, 4>(), number<32>(), number<8>());
    else
        return false;
    return true;
}

bool basin_cuda_joint_fits(const basin_cuda_heads *at) {
    return at->kind == BASIN_REAL && at->pairs <= SHORT && basin_cuda_listed_fits(at) &&
           with_rows(at->heads, at->width, [](auto, auto, auto) {});
}

template <basin_cuda_mode MODE>
static void joint_walk(const basin_cuda_frame *frame, const basin_cuda_heads *at,
                       const listed_space *s) {
    with_rows(at->heads, at->width, [&](auto row, auto group, auto lanes) {
        enum { G = decltype(group)::value, L = decltype(lanes)::value };
        enum { THREADS = BASIN_WALK_WARPS * 32 };
        listed p = describe(at, MODE, s, false);
        by_query<MODE, float, decltype(row), G, L>
            <<<basin_cuda_walk_blocks(p.walk.nodes), THREADS, 0, frame->stream>>>(p);
        if constexpr (MODE != BASIN_CUDA_VALUE) {
            if (!at->out_k && !at->out_scale) return;
            p = describe(at, MODE, s, true);
            by_key<MODE, float, decltype(row), G, L>
                <<<basin_cuda_walk_blocks(p.walk.nodes), THREADS, 0, frame->stream>>>(p);
        }
    });
    BASIN_CUDA_LAUNCHED(frame->cuda, "attention of all heads");
}

void basin_cuda_joint(const basin_cuda_frame *frame, const basin_cuda_heads *at,
                      basin_cuda_mode mode) {
    run_walks(frame, at, mode, [&](auto of, const listed_space *space) {
        joint_walk<decltype(of)::value>(frame, at, space);
    });
}
