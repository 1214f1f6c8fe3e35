/* Energy attention over a short CSR list of pairs, all heads of a node at once, where these are 64
 * or 128 floats: a molecule's node has three or four pairs, and a warp a node and head would leave
 * most of its lanes idle. Nothing is cut. */
#include "backend/cuda/lists/listed.h"

template <int N> using number = std::integral_constant<int, N>;

/* Calls f(row, group, lanes of a head) for all heads of a node at once; false where these are not
 * 64 or 128 floats. */
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
static void walk(const basin_cuda_frame *frame, const basin_cuda_heads *at, const listed_space *s) {
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
        walk<decltype(of)::value>(frame, at, space);
    });
}
