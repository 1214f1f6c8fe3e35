/* Energy attention over all pairs of a picture's tokens: 193 to 208 nodes on either side, heads of
 * up to 64, on sm_90's warpgroup products. For bfloat16, or floats whose products may be rounded to
 * tf32: these become halves, which have the 11 significant bits of tf32, each table being scaled by
 * the power of two that its largest number asks for; there is no tf32 product over the rows of a
 * table, and one of halves takes half the time.
 *
 * A block of four warps has one head of one batch entry: its tables Q, K (and A, B) lie in shared
 * memory, read once. 64 rows at a time, it holds the scores against all 208 others in registers:
 * first queries against keys, which gives each query's softmax, then keys against queries, computed
 * again; where only the log-sum-exp is computed, the first half is all. With x, x2 the own rows and
 * y, y2 the others (attention/dense.h),
 *
 *     r = x y^T    c = x2 y^T + x y2^T    sum over y of  t y  (force),  t y2 + gs y  (reverse)
 *
 * In bfloat16 up to 8 nodes after the last whole strip are multiplied separately
 * (attention/strip_rows.h). */
#include "engine/backend/cuda/attention/strip_rows.h"

/* ---- products ---- */

/* c of a piece; x, x2 and y, y2 as above. */
template <typename number, int N>
BASIN_DEVICE void multiply_both(piece<N> &v, const char *x, const char *x2, int first,
                                const char *y, const char *y2, int from) {
    basin_wgmma_multiply<number, false>(v.c, x2, first, y, from);
    basin_wgmma_multiply<number, true>(v.c, x, first, y2, from);
}

/* Queues sum (+)= p y (force), p y2 + s y (reverse), over rows from `from` on. */
template <typename number, basin_cuda_mode MODE, bool ADD, int N>
BASIN_DEVICE void gather(float (&sum)[SUMS], const weights<N> &w, const char *y, const char *y2,
                         int from) {
    basin_wgmma_fence();
    if (MODE == BASIN_CUDA_REVERSE) {
        basin_wgmma_sum<number, ADD>(sum, w.p, y2, from);
        basin_wgmma_sum<number, true>(sum, w.s, y, from);
    } else {
        basin_wgmma_sum<number, ADD>(sum, w.p, y, from);
    }
    basin_wgmma_close();
}

/* ---- by query ---- */

/* What a force or its reverse is still multiplied with; in reverse log2 of P's divisor, shift. */
struct query_end {
    float shift, level, factor;
};

/* What a query comes to, from sums over all columns; `writes`: is the one to write it. */
template <basin_cuda_mode MODE, typename T>
BASIN_DEVICE query_end close_query(float maximum, float total, float gain, float slope, float bend,
                                   float w, const strip_block<T> &s, const basin_strip_launch &p,
                                   int query, bool writes) {
    enum { REVERSE = MODE == BASIN_CUDA_REVERSE, LIFT = strip_block<T>::LIFT };
    int64_t at = (s.entry * p.queries + query) * p.heads + s.head;
    float inverse = __fdividef(1.0f, total), mean = REVERSE ? gain * inverse : 0;
    query_end end = {-s.steep * mean, REVERSE ? maximum + __log2f(total) - (float)LIFT : 0.0f,
                     REVERSE ? s.beta * w * s.unit_b * power_of_two(-LIFT)
                             : s.beta * w * inverse * s.unit_k};
    slope *= inverse, bend *= inverse;
    __syncwarp();
    if (!writes) return end;
    s.known->level[query] = maximum + __log2f(total) - __log2f(fabsf(w) * s.per_w);
    s.known->w[query] = w < 0 ? -1.0f : 1.0f;
    if (REVERSE) s.known->shift[query] = end.shift;
    if (p.lse) p.lse[at] = fmaf(maximum, BASIN_LN_2, logf(total));
    if (p.gw) p.gw[at] = s.beta * s.unit_c * mean;
    if (p.slope)
        p.slope[at] = REVERSE ? w * s.unit_c * fmaf(s.steep, bend - mean * slope, mean)
                              : w * s.unit_q * s.unit_k * slope;
    return end;
}

/* Both rows of a thread. */
template <basin_cuda_mode MODE, typename T>
BASIN_DEVICE void close_row(float shift[2], float level[2], float factor[2], const strip_row &row,
                            const strip_block<T> &s, const basin_strip_launch &p, int first) {
    enum { REVERSE = MODE == BASIN_CUDA_REVERSE };
    BASIN_UNROLL (i, 2) {
        int query = first + s.g + i * 8;
        bool there = query < p.queries;
        float w = there ? s.known->w[query] : 0.0f, total = basin_quad_sum(row.total[i]);
        float gain = REVERSE ? basin_quad_sum(row.gain[i]) : 0;
        float slope = p.slope ? basin_quad_sum(row.slope[i]) : 0;
        float bend = p.slope && REVERSE ? basin_quad_sum(row.bend[i]) : 0;
        query_end end = close_query<MODE>(row.maximum[i], total, gain, slope, bend, w, s, p, query,
                                          there && s.t == 0);
        shift[i] = end.shift, level[i] = end.level, factor[i] = end.factor;
    }
}

/* From a piece's scores, the largest of its rows being known, to its share of the force's sums; a
 * value has only the weights' sum. */
template <basin_cuda_mode MODE, bool ADD, typename T, int N>
BASIN_DEVICE void weigh_piece(float (&sum)[SUMS], weights<N> &w, strip_row &row, const piece<N> &v,
                              const strip_block<T> &s, const basin_strip_launch &p, bool busy,
                              int from) {
    if (MODE == BASIN_CUDA_VALUE) {
        if (busy) weigh<MODE, false>(w, row, s, v);
        return;
    }
    if (!busy)
        idle(w, v, false);
    else if (p.slope)
        weigh<BASIN_CUDA_FORCE, true>(w, row, s, v);
    else
        weigh<BASIN_CUDA_FORCE, false>(w, row, s, v);
    gather<typename strip_block<T>::number, BASIN_CUDA_FORCE, ADD>(sum, w, s.k, NULL, from);
}

/* The force on 64 queries, or only their log-sum-exp. */
template <basin_cuda_mode MODE, typename T>
BASIN_DEVICE void force_queries(const strip_block<T> &s, const basin_strip_launch &p, int tile) {
    typedef typename strip_block<T>::number number;
    piece<96> v0;
    piece<112> v1;
    weights<96> w0;
    weights<112> w1;
    float sum[SUMS], shift[2], level[2], factor[2];
    int first = tile + s.warp * 16;
    basin_wgmma_fence();
    basin_wgmma_multiply<number, false>(v0.r, s.q, tile, s.k, 0);
    basin_wgmma_close();
    basin_wgmma_multiply<number, false>(v1.r, s.q, tile, s.k, 96);
    basin_wgmma_close();
    strip_row row = {{s.left_out, s.left_out}};
    basin_wgmma_wait<1>();
    basin_wgmma_pin(v0.r);
    bool busy = first < p.queries;
    if (p.exclude_self) leave_out_self(s, v0, first);
    if (busy) raise(row, s, v0);
    basin_wgmma_wait<0>();
    basin_wgmma_pin(v1.r);
    leave_out_end(s, v1, p.keys - 96);
    if (p.exclude_self) leave_out_self(s, v1, first - 96);
    if (busy) raise(row, s, v1);
    settle(row, s);
    weigh_piece<MODE, false>(sum, w0, row, v0, s, p, busy, 0);
    weigh_piece<MODE, true>(sum, w1, row, v1, s, p, busy, 96);
    close_row<BASIN_CUDA_FORCE>(shift, level, factor, row, s, p, first);
    if (MODE == BASIN_CUDA_VALUE) return;
    basin_wgmma_wait<0>();
    basin_wgmma_pin(sum);
    if (p.out_q) write(s, p, p.out_q, sum, factor, first, p.queries, p.step.out_q, p.width);
}

/* From a piece's scores, the sums of its rows being known, to its share of the reverse's sums. */
template <bool ADD, typename T, int N>
BASIN_DEVICE void bend_piece(float (&sum)[SUMS], weights<N> &w, const piece<N> &v,
                             const strip_block<T> &s, const float level[2], const float shift[2],
                             bool busy, int from) {
    if (busy)
        bend(w, s, v, level, shift);
    else
        idle(w, v, true);
    gather<typename strip_block<T>::number, BASIN_CUDA_REVERSE, ADD>(sum, w, s.k, s.b, from);
}

/* Its reverse: r and c of all pairs of 64 queries in registers. */
template <typename T>
BASIN_DEVICE void reverse_queries(const strip_block<T> &s, const basin_strip_launch &p, int tile) {
    typedef typename strip_block<T>::number number;
    piece<32> v0;
    piece<64> v1;
    piece<112> v2;
    weights<32> w0;
    weights<64> w1;
    weights<112> w2;
    float sum[SUMS], shift[2], level[2], factor[2];
    int first = tile + s.warp * 16;
    basin_wgmma_fence();
    basin_wgmma_multiply<number, false>(v0.r, s.q, tile, s.k, 0);
    basin_wgmma_multiply<number, false>(v1.r, s.q, tile, s.k, 32);
    basin_wgmma_multiply<number, false>(v2.r, s.q, tile, s.k, 96);
    basin_wgmma_close();
    multiply_both<number>(v0, s.q, s.a, tile, s.k, s.b, 0);
    multiply_both<number>(v1, s.q, s.a, tile, s.k, s.b, 32);
    multiply_both<number>(v2, s.q, s.a, tile, s.k, s.b, 96);
    basin_wgmma_close();
    strip_row row = {{s.left_out, s.left_out}};
    basin_wgmma_wait<1>();
    basin_wgmma_pin(v0.r), basin_wgmma_pin(v1.r), basin_wgmma_pin(v2.r);
    leave_out_end(s, v2, p.keys - 96);
    if (p.exclude_self) {
        leave_out_self(s, v0, first);
        leave_out_self(s, v1, first - 32);
        leave_out_self(s, v2, first - 96);
    }
    bool busy = first < p.queries;
    if (busy) raise(row, s, v0), raise(row, s, v1), raise(row, s, v2);
    settle(row, s);
    basin_wgmma_wait<0>();
    basin_wgmma_pin(v0.c), basin_wgmma_pin(v1.c), basin_wgmma_pin(v2.c);
    if (busy && p.slope) {
        weigh<BASIN_CUDA_REVERSE, true>(w0, row, s, v0);
        weigh<BASIN_CUDA_REVERSE, true>(w1, row, s, v1);
        weigh<BASIN_CUDA_REVERSE, true>(w2, row, s, v2);
    } else if (busy) {
        weigh<BASIN_CUDA_REVERSE, false>(w0, row, s, v0);
        weigh<BASIN_CUDA_REVERSE, false>(w1, row, s, v1);
        weigh<BASIN_CUDA_REVERSE, false>(w2, row, s, v2);
    }
    close_row<BASIN_CUDA_REVERSE>(shift, level, factor, row, s, p, first);
    if (!p.out_q) return;
    bend_piece<false>(sum, w0, v0, s, level, shift, busy, 0);
    bend_piece<true>(sum, w1, v1, s, level, shift, busy, 32);
    bend_piece<true>(sum, w2, v2, s, level, shift, busy, 96);
    basin_wgmma_wait<0>();
    basin_wgmma_pin(sum);
    write(s, p, p.out_q, sum, factor, first, p.queries, p.step.out_q, p.width);
}

/* Value, force or reverse of the rest. */
template <basin_cuda_mode MODE>
BASIN_DEVICE void rest_queries(const rest_block &s, const basin_strip_launch &p) {
    enum { REVERSE = MODE == BASIN_CUDA_REVERSE };
    float r[SHARE], c[SHARE], sum[WIDTH / 8][4] = {};
    float total = 0, gain = 0, slope = 0, bend = 0;
    rest_rows x = own_rows(s.q, s);
    rest_scores products = {}, more = {};
    int query = STRIPS_END + s.g;
    bool there = query < p.queries;
    float w = there ? s.known->w[query] : 0.0f, maximum = s.left_out;
    add_scores(products, x, s.k, s);
    if (REVERSE) add_scores(more, x, s.b, s), add_scores(more, own_rows(s.a, s), s.k, s);
    take_scores(r, products), take_scores(c, more);
    leave_out_rest(r, s, p.keys, p.exclude_self);
    BASIN_UNROLL (i, SHARE) maximum = s.scale > 0 ? fmaxf(maximum, r[i]) : fminf(maximum, r[i]);
    maximum = basin_quad_max(maximum * s.scale);
    if (s.t == 0) s.known->maximum[s.warp][s.g] = maximum;
    __syncthreads();
    BASIN_UNROLL (i, 4) maximum = fmaxf(maximum, s.known->maximum[i][s.g]);
    BASIN_UNROLL (i, SHARE) {
        float kept = basin_exp2(fmaf(r[i], s.scale, -maximum)), moved = kept * r[i];
        total += kept;
        gain = fmaf(kept, c[i], gain);
        if (p.slope) slope += moved, bend = fmaf(moved, c[i], bend);
        if (!REVERSE) r[i] = kept;
    }
    float4 mine = {basin_quad_sum(total), basin_quad_sum(gain), basin_quad_sum(slope),
                   basin_quad_sum(bend)};
    if (s.t == 0) *(float4 *)s.known->rest[s.warp][s.g] = mine;
    __syncthreads();
    total = gain = slope = bend = 0;
    BASIN_UNROLL (i, 4) {
        float4 other = *(const float4 *)s.known->rest[i][s.g];
        total += other.x, gain += other.y, slope += other.z, bend += other.w;
    }
    query_end end = close_query<MODE>(maximum, total, gain, slope, bend, w, s, p, query,
                                      there && s.warp == 0 && s.t == 0);
    if (MODE == BASIN_CUDA_VALUE || !p.out_q) return;
    if (REVERSE) {
        BASIN_UNROLL (i, SHARE) {
            r[i] = basin_exp2(fmaf(r[i], s.scale, -end.level));
            c[i] = r[i] * fmaf(c[i], s.steep, end.shift);
        }
        add_sums(sum, r, s.b, s), add_sums(sum, c, s.k, s);
    } else {
        add_sums(sum, r, s.k, s);
    }
    write_rest(s, p, sum, p.out_q, end.factor, p.queries, p.step.out_q, p.width);
}

/* ---- by key ---- */

/* From a piece's scores, which are there, to its sums, which are queued. */
template <basin_cuda_mode MODE, bool ADD, typename T, int N>
BASIN_DEVICE void spend_piece(float (&sum)[SUMS], weights<N> &w, piece<N> &v,
                              const strip_block<T> &s, const basin_strip_launch &p, int tile,
                              int from) {
    enum { REVERSE = MODE == BASIN_CUDA_REVERSE };
    basin_wgmma_pin(v.r);
    if (REVERSE) basin_wgmma_pin(v.c);
    int first = tile + s.warp * 16;
    if (first < p.keys) {
        if (p.exclude_self) leave_out_self(s, v, first - from);
        weigh_known<MODE>(w, s, v, from);
    } else {
        idle(w, v, REVERSE);
    }
    gather<typename strip_block<T>::number, MODE, ADD>(sum, w, s.q, s.a, from);
}

template <typename T>
BASIN_DEVICE void force_keys(const strip_block<T> &s, const basin_strip_launch &p, int tile) {
    typedef typename strip_block<T>::number number;
    piece<96> v0;
    piece<112> v1;
    weights<96> w0;
    weights<112> w1;
    float sum[SUMS], unit = s.sign * s.beta * s.unit_w * s.unit_q, factor[2] = {unit, unit};
    basin_wgmma_fence();
    basin_wgmma_multiply<number, false>(v0.r, s.k, tile, s.q, 0);
    basin_wgmma_close();
    basin_wgmma_multiply<number, false>(v1.r, s.k, tile, s.q, 96);
    basin_wgmma_close();
    basin_wgmma_wait<1>();
    spend_piece<BASIN_CUDA_FORCE, false>(sum, w0, v0, s, p, tile, 0);
    basin_wgmma_wait<1>();
    spend_piece<BASIN_CUDA_FORCE, true>(sum, w1, v1, s, p, tile, 96);
    basin_wgmma_wait<0>();
    basin_wgmma_pin(sum);
    write(s, p, p.out_k, sum, factor, tile + s.warp * 16, p.keys, p.step.out_k, p.width);
}

/* Queues the scores of a piece of the reverse by key. */
template <typename T, int N>
BASIN_DEVICE void queue_piece(piece<N> &v, const strip_block<T> &s, int tile, int from) {
    typedef typename strip_block<T>::number number;
    basin_wgmma_fence();
    basin_wgmma_multiply<number, false>(v.r, s.k, tile, s.q, from);
    multiply_both<number>(v, s.k, s.b, tile, s.q, s.a, from);
    basin_wgmma_close();
}

/* The scores of a piece are computed while weights are made of the one before. */
template <typename T>
BASIN_DEVICE void reverse_keys(const strip_block<T> &s, const basin_strip_launch &p, int tile) {
    float sum[SUMS], unit = s.sign * s.beta * s.unit_w * s.unit_a, factor[2] = {unit, unit};
    piece<80> v0;
    piece<64> v1, v2;
    weights<80> w0;
    weights<64> w1, w2;
    queue_piece(v0, s, tile, 0);
    queue_piece(v1, s, tile, 80);
    basin_wgmma_wait<1>();
    spend_piece<BASIN_CUDA_REVERSE, false>(sum, w0, v0, s, p, tile, 0);
    queue_piece(v2, s, tile, 144);
    basin_wgmma_wait<2>();
    spend_piece<BASIN_CUDA_REVERSE, true>(sum, w1, v1, s, p, tile, 80);
    basin_wgmma_wait<1>();
    spend_piece<BASIN_CUDA_REVERSE, true>(sum, w2, v2, s, p, tile, 144);
    basin_wgmma_wait<0>();
    basin_wgmma_pin(sum);
    write(s, p, p.out_k, sum, factor, tile + s.warp * 16, p.keys, p.step.out_k, p.width);
}

/* Force or reverse of the rest. */
template <basin_cuda_mode MODE>
BASIN_DEVICE void rest_keys(const rest_block &s, const basin_strip_launch &p) {
    enum { REVERSE = MODE == BASIN_CUDA_REVERSE };
    float r[SHARE], c[SHARE], sum[WIDTH / 8][4] = {};
    float factor = s.sign * s.beta;
    rest_rows x = own_rows(s.k, s);
    rest_scores products = {}, more = {};
    add_scores(products, x, s.q, s);
    if (REVERSE) add_scores(more, x, s.a, s), add_scores(more, own_rows(s.b, s), s.q, s);
    take_scores(r, products), take_scores(c, more);
    leave_out_rest(r, s, p.queries, p.exclude_self);
    BASIN_UNROLL (i, SHARE) {
        int query = has_others(s, i / 4) ? other_at(s, i) : 0;
        r[i] = basin_exp2(fmaf(r[i], s.scale, -s.known->level[query]));
        if (s.mixed) r[i] *= s.known->w[query];
        if (REVERSE) c[i] = r[i] * fmaf(c[i], s.steep, s.known->shift[query]);
    }
    if (REVERSE)
        add_sums(sum, r, s.a, s), add_sums(sum, c, s.q, s);
    else
        add_sums(sum, r, s.q, s);
    write_rest(s, p, sum, p.out_k, factor, p.keys, p.step.out_k, p.width);
}

/* ---- the kernel ---- */

/* Blocks on a multiprocessor, and what each takes of its 228 KB, in steps of 128 bytes. */
template <basin_cuda_mode MODE> constexpr int BLOCKS = MODE == BASIN_CUDA_REVERSE ? 2 : 3;
template <basin_cuda_mode MODE> static constexpr size_t shared_bytes() {
    return (size_t)(MODE == BASIN_CUDA_REVERSE ? 4 : 2) * TABLE_BYTES + sizeof(strip_queries);
}
template <basin_cuda_mode MODE> static constexpr bool blocks_fit() {
    return BLOCKS<MODE> * ((shared_bytes<MODE>() + 1024 + 127) / 128 * 128) <= 228 * 1024;
}
static_assert(blocks_fit<BASIN_CUDA_FORCE>() && blocks_fit<BASIN_CUDA_REVERSE>(),
              "shared memory leaves room for all blocks");

template <typename T, basin_cuda_mode MODE>
__global__ void __launch_bounds__(128, BLOCKS<MODE>)
    strip_kernel(const __grid_constant__ basin_strip_launch p) {
    extern __shared__ __align__(1024) char shared[];
    enum { REVERSE = MODE == BASIN_CUDA_REVERSE };
    strip_block<T> s;
    s.k = shared, s.q = s.k + TABLE_BYTES;
    s.b = REVERSE ? s.q + TABLE_BYTES : NULL, s.a = REVERSE ? s.b + TABLE_BYTES : NULL;
    s.known = (strip_queries *)(shared + (REVERSE ? 4 : 2) * TABLE_BYTES);
    unsigned block = gridDim.x - 1 - blockIdx.x; /* the last were written last: in the cache */
    s.entry = block / p.heads, s.head = (int)(block % p.heads);
    s.warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
    s.g = (int)threadIdx.x % 32 / 4, s.t = (int)threadIdx.x % 4;
    float w = 0;
    bool above = false, below = false;
    for (int i = (int)threadIdx.x; i < ROWS; i += 128) {
        float x = p.w && i < p.queries ? p.w[(s.entry * p.queries + i) * p.heads + s.head] : 0.0f;
        s.known->level[i] = 3e38f, s.known->w[i] = x, s.known->shift[i] = 0;
        w = fmaxf(w, fabsf(x)), above = above || x > 0, below = below || x < 0;
    }
    fetch_all(s, p, w, REVERSE);
    s.beta = p.beta[s.head], s.steep = s.beta * s.unit_q * s.unit_k;
    s.scale = s.steep * BASIN_LOG2_E;
    if (fabsf(s.scale) < 1e-30f) s.scale = 1e-30f;
    s.left_out = s.scale > 0 ? -3e38f : 3e38f;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    s.sign = __syncthreads_or(below) ? -1.0f : 1.0f;
    s.mixed = __syncthreads_or(above) && s.sign < 0;
    if (s.mixed) s.sign = 1;
    int queries = p.queries, keys = p.keys; /* in strips */
    if constexpr (std::is_same<T, basin_bf16>::value) {
        if (queries <= STRIPS_END + REST) queries = STRIPS_END, rest_queries<MODE>(s, p);
        if (keys <= STRIPS_END + REST) keys = STRIPS_END;
    }
    for (int tile = 0; tile < queries; tile += 64)
        if (REVERSE)
            reverse_queries(s, p, tile);
        else
            force_queries<MODE>(s, p, tile);
    if (MODE == BASIN_CUDA_VALUE || !p.out_k) return;
    __syncthreads();
    if constexpr (std::is_same<T, basin_bf16>::value)
        if (keys < p.keys) rest_keys<MODE>(s, p);
    for (int tile = 0; tile < keys; tile += 64)
        if (REVERSE)
            reverse_keys(s, p, tile);
        else
            force_keys(s, p, tile);
}

bool basin_strip_fits(const basin_cuda *cuda, const basin_cuda_heads *at) {
    bool fit = at->queries >= MIN_NODES && at->queries <= ROWS && at->keys >= MIN_NODES &&
               at->keys <= ROWS;
    return fit && !at->causal && (at->kind == BASIN_NARROW || at->tf32) && cuda->capability == 90 &&
           at->width > WIDTH / 2 && at->width <= WIDTH && at->width % 8 == 0 &&
           shared_bytes<BASIN_CUDA_REVERSE>() <= cuda->shared_limit;
}

template <basin_cuda_mode MODE, typename T>
static cudaError_t start(const basin_strip_launch *p, int64_t blocks, cudaStream_t stream) {
    size_t bytes = shared_bytes<MODE>();
    void (*kernel)(const basin_strip_launch) = strip_kernel<T, MODE>;
    cudaError_t code =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (code == cudaSuccess) /* as many blocks at a time as there are registers for */
        code = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxShared);
    if (code != cudaSuccess) return code;
    kernel<<<(unsigned)blocks, 128, bytes, stream>>>(*p);
    return cudaGetLastError();
}

template <typename T>
static cudaError_t choose(const basin_strip_launch *p, basin_cuda_mode mode, int64_t blocks,
                          cudaStream_t stream) {
    return mode == BASIN_CUDA_VALUE   ? start<BASIN_CUDA_VALUE, T>(p, blocks, stream)
           : mode == BASIN_CUDA_FORCE ? start<BASIN_CUDA_FORCE, T>(p, blocks, stream)
                                      : start<BASIN_CUDA_REVERSE, T>(p, blocks, stream);
}

cudaError_t basin_strip_start(const basin_strip_launch *p, basin_kind kind, basin_cuda_mode mode,
                              int64_t blocks, cudaStream_t stream) {
    return kind == BASIN_NARROW ? choose<basin_bf16>(p, mode, blocks, stream)
                                : choose<float>(p, mode, blocks, stream);
}
