/* Energy attention over all pairs of a picture's tokens: 193 to 208 nodes on either side, heads of
 * up to 64, on sm_90's warpgroup products. Of bfloat16, or of floats whose products may be rounded
 * to tf32: these become halves, which have the 11 significant bits of tf32, each table being scaled
 * by the power of two that its largest number asks for; there is no tf32 product over the rows of a
 * table, and one of halves takes half the time.
 *
 * A block of four warps has one head of one batch entry: its tables Q, K (and A, B) lie in shared
 * memory, read once. 64 rows at a time, it holds the scores against all 208 others in registers:
 * first queries against keys, which gives each query's softmax, then keys against queries, computed
 * again. With x, x2 the own rows and y, y2 the others (attention_dense.h),
 *
 *     r = x y^T    c = x2 y^T + x y2^T    sum over y of  t y  (force),  t y2 + gs y  (reverse)
 *
 * Count, for a head of a batch entry of 197 nodes, in clocks of a multiprocessor that does 4,096
 * operations in one: 8 strips of 64 rows (4 by query, 4 by key), each r 416, c 832, a sum of rows
 * 416: force 6.7 k, reverse 16.6 k; 86 k exponentials at 16 a clock 5.4 k. Batch 256, H 12 on 132
 * multiprocessors at 1.75 GHz: 0.09 and 0.22 ms. Bytes: q, k (a, b) read, two results written,
 * once: 310 and 465 MB (floats twice that), 0.07 and 0.11 ms at 4.3 TB/s. */
#include "backend/cuda/attention_dense_rows.h"
#include "backend/cuda/attention_strip.h"
#include "backend/cuda/attention_wgmma.h"

enum {
    ROWS = 208,                        /* of a table; the others of a strip */
    WIDTH = 64,                        /* columns of a table */
    SUMS = WIDTH / 2,                  /* of a thread: two rows, every fourth pair of columns */
    TABLE_BYTES = ROWS * 128,          /* a multiple of 1,024 */
    BEHIND_BYTES = (256 - ROWS) * 128, /* the last 64 own rows reach beyond the last table */
    NODES_LEAST = ROWS - 15,           /* only the last 16 columns are looked at for the end */
};

/* What the key side needs to know of each query; lies behind the last table. */
struct strip_queries {
    float most[ROWS];   /* the largest score, in units of log 2 */
    float weight[ROWS]; /* w / sum of 2^(z' - most) in units of w; 0 where there is no query */
    float mean[ROWS];   /* reverse: the mean of c under P, in units of c */
    int exponent[5][4]; /* of the largest q, k, a, b, w, as each warp saw them */
};
static_assert(sizeof(strip_queries) <= BEHIND_BYTES, "the summaries fit behind the tables");

enum { Q, K, A, B, W };

/* Floats: a table holds x / unit. Products r are then in units of q k, c in units of a k = b q, gs
 * in units of c / q k, so that P a and gs q have the same; weights are lifted from 1 to 2^LIFT,
 * small ones being subnormal halves. */
template <typename T> struct strip_block {
    enum { WIDE = sizeof(T) == 4, LIFT = WIDE ? 10 : 0 };
    typedef typename std::conditional<WIDE, basin_wgmma_half, basin_wgmma_bf16>::type number;
    char *q, *k, *a, *b; /* tables in shared memory */
    strip_queries *known;
    int64_t entry;
    int head, warp, g, t;
    float unit_q, unit_k, unit_a, unit_b, unit_c, unit_w;
    float beta, steep; /* steep: beta in units of r */
    float scale;       /* steep / log 2, never 0, so that a left-out pair weighs nothing */
    float left_out;    /* the score of a left-out pair */
};

/* ---- memory ---- */

static __device__ __forceinline__ void copy_async(uint32_t shared, const void *global, int from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
                 "r"(from)
                 : "memory");
}

/* One head's rows of bfloat16, zeros beyond `nodes` rows and `width` columns and where x is NULL.
 */
static __device__ __forceinline__ void fetch(const strip_block<basin_bf16> &s, char *table,
                                             const basin_bf16 *x, int nodes,
                                             const basin_strip_launch &p) {
    int row = (int)threadIdx.x / 8, piece = (int)threadIdx.x % 8;
    int64_t step = (int64_t)p.heads * p.width;
    uint32_t to = basin_shared_address(table) + (uint32_t)(row * 128 + ((piece ^ row % 8) * 16));
    const basin_bf16 *from =
        x + (s.entry * nodes + row) * step + (int64_t)s.head * p.width + piece * 8;
    bool wide = x && piece * 8 < p.width;
#pragma unroll
    for (int i = 0; i < ROWS / 16; i++) {
        bool there = wide && row + i * 16 < nodes;
        copy_async(to + (uint32_t)i * 2048, there ? (const void *)(from + i * 16 * step) : p.q,
                   there ? 16 : 0);
    }
}

static __device__ __forceinline__ void fetch_all(strip_block<basin_bf16> &s,
                                                 const basin_strip_launch &p, bool reverse) {
    fetch(s, s.q, (const basin_bf16 *)p.q, p.queries, p);
    fetch(s, s.k, (const basin_bf16 *)p.k, p.keys, p);
    if (reverse) {
        fetch(s, s.a, (const basin_bf16 *)p.a, p.queries, p);
        fetch(s, s.b, (const basin_bf16 *)p.b, p.keys, p);
    }
    s.unit_q = s.unit_k = s.unit_a = s.unit_b = s.unit_c = s.unit_w = 1;
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* ---- floats ---- */

/* A thread's share of a table: 8 columns of every 16th row. */
struct strip_share {
    float4 x[ROWS / 16][2];
};

static __device__ __forceinline__ uint32_t two_halves(float low, float high) {
    uint32_t both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

/* The exponent to divide by, of the largest of the warp's numbers: it comes to 2^10 or more, less
 * than 2^11. Zeros ask for none. */
static __device__ __forceinline__ int exponent_of(float largest) {
    int e = (__float_as_int(basin_warp_max(largest)) >> 23) - 127 - 10;
    return max(-60, min(60, e));
}

static __device__ __forceinline__ float power_of_two(int e) {
    return __int_as_float((max(-126, min(127, e)) + 127) << 23);
}

static __device__ __forceinline__ void take(strip_share &v, const strip_block<float> &s,
                                            const float *x, int nodes, int which,
                                            const basin_strip_launch &p) {
    int row = (int)threadIdx.x / 8, column = (int)threadIdx.x % 8 * 8;
    int64_t step = (int64_t)p.heads * p.width;
    const float *from = x + (s.entry * nodes + row) * step + (int64_t)s.head * p.width + column;
    float most = 0;
#pragma unroll
    for (int i = 0; i < ROWS / 16; i++) {
        bool there = x && column < p.width && row + i * 16 < nodes;
#pragma unroll
        for (int j = 0; j < 2; j++)
            v.x[i][j] =
                there ? *(const float4 *)(from + i * 16 * step + j * 4) : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < ROWS / 8; i++) {
        float4 y = v.x[i / 2][i % 2];
        most = fmaxf(fmaxf(most, fmaxf(fabsf(y.x), fabsf(y.y))), fmaxf(fabsf(y.z), fabsf(y.w)));
    }
    int e = exponent_of(most);
    if (threadIdx.x % 32 == 0) s.known->exponent[which][s.warp] = e;
}

static __device__ __forceinline__ void place(char *table, const strip_share &v, float factor) {
    int row = (int)threadIdx.x / 8, piece = (int)threadIdx.x % 8;
    char *to = table + row * 128 + (piece ^ row % 8) * 16;
#pragma unroll
    for (int i = 0; i < ROWS / 16; i++) {
        const float4 *x = v.x[i];
        *(uint4 *)(to + i * 2048) = make_uint4(two_halves(x[0].x * factor, x[0].y * factor),
                                               two_halves(x[0].z * factor, x[0].w * factor),
                                               two_halves(x[1].x * factor, x[1].y * factor),
                                               two_halves(x[1].z * factor, x[1].w * factor));
    }
}

static __device__ __forceinline__ int exponent_known(const strip_block<float> &s, int which) {
    const int *e = s.known->exponent[which];
    return max(max(e[0], e[1]), max(e[2], e[3]));
}

/* Tables of halves; c = a k + b q asks for one unit of both products, the larger. */
static __device__ __forceinline__ void fetch_all(strip_block<float> &s, const basin_strip_launch &p,
                                                 bool reverse) {
    strip_share x, y;
    float w = 0;
    for (int i = (int)threadIdx.x; i < p.queries; i += 128)
        w = fmaxf(w, fabsf(p.w[(s.entry * p.queries + i) * p.heads + s.head]));
    int e = exponent_of(w), c = 0;
    if (threadIdx.x % 32 == 0) s.known->exponent[W][s.warp] = e;
    take(x, s, (const float *)p.q, p.queries, Q, p);
    __syncthreads();
    int q = exponent_known(s, Q);
    place(s.q, x, power_of_two(-q));
    take(x, s, (const float *)p.k, p.keys, K, p);
    __syncthreads();
    int k = exponent_known(s, K);
    place(s.k, x, power_of_two(-k));
    s.unit_q = power_of_two(q), s.unit_k = power_of_two(k);
    s.unit_w = power_of_two(exponent_known(s, W));
    if (reverse) {
        take(x, s, (const float *)p.a, p.queries, A, p);
        take(y, s, (const float *)p.b, p.keys, B, p);
        __syncthreads();
        c = max(exponent_known(s, A) + k, exponent_known(s, B) + q);
        place(s.a, x, power_of_two(k - c));
        place(s.b, y, power_of_two(q - c));
    }
    s.unit_c = power_of_two(c), s.unit_a = power_of_two(c - k), s.unit_b = power_of_two(c - q);
}

/* ---- results ---- */

/* Four threads of a row exchange what they hold so that each has 16 bytes in a row. */
static __device__ __forceinline__ void transpose(uint32_t (&v)[4], int t) {
    uint32_t x = __shfl_xor_sync(0xffffffffu, t & 1 ? v[0] : v[1], 1);
    uint32_t y = __shfl_xor_sync(0xffffffffu, t & 1 ? v[2] : v[3], 1);
    if (t & 1)
        v[0] = x, v[2] = y;
    else
        v[1] = x, v[3] = y;
    x = __shfl_xor_sync(0xffffffffu, t & 2 ? v[0] : v[2], 2);
    y = __shfl_xor_sync(0xffffffffu, t & 2 ? v[1] : v[3], 2);
    if (t & 2)
        v[0] = x, v[1] = y;
    else
        v[2] = x, v[3] = y;
}

/* Rows row + g and row + g + 8 of the sums, times a factor each. */
static __device__ __forceinline__ void write(const strip_block<float> &s, void *out,
                                             const float (&sum)[SUMS], const float factor[2],
                                             int row, int nodes, int heads, int width) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int node = row + s.g + i * 8;
        float *to = (float *)out + ((s.entry * nodes + node) * heads + s.head) * width + 2 * s.t;
#pragma unroll
        for (int j = 0; j < WIDTH / 8; j++)
            if (node < nodes && j * 8 < width)
                *(float2 *)(to + j * 8) =
                    make_float2(sum[j * 4 + i * 2] * factor[i], sum[j * 4 + i * 2 + 1] * factor[i]);
    }
}

static __device__ __forceinline__ void write(const strip_block<basin_bf16> &s, void *out,
                                             const float (&sum)[SUMS], const float factor[2],
                                             int row, int nodes, int heads, int width) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int node = row + s.g + i * 8;
        basin_bf16 *to = (basin_bf16 *)out + ((s.entry * nodes + node) * heads + s.head) * width;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t v[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                int at = (half * 4 + j) * 4 + i * 2;
                v[j] = basin_mma_bf16::two(sum[at] * factor[i], sum[at + 1] * factor[i]);
            }
            transpose(v, s.t);
            int column = (half * 4 + s.t) * 8;
            if (node < nodes && column < width)
                *(uint4 *)(to + column) = make_uint4(v[0], v[1], v[2], v[3]);
        }
    }
}

/* ---- products ----
 * A strip is cut into pieces of N others: ptxas keeps all registers of a product's result until the
 * last of them is dead, so what is made of one piece takes the place of the one before. */

template <int N> struct piece {
    float r[N / 2], c[N / 2]; /* [4 j + e]: own row g (e < 2) or g + 8, other 8 j + 2 t + e % 2 */
};
template <int N> struct weights {
    uint32_t p[N / 16][4], s[N / 16][4]; /* left operands: of P or t, and in reverse of gs */
};

/* Four pairs of numbers as a left operand. */
template <typename T>
static __device__ __forceinline__ void pack(uint32_t (&to)[4], const strip_block<T> &,
                                            const float (&x)[8]) {
#pragma unroll
    for (int i = 0; i < 4; i++)
        to[i] = strip_block<T>::WIDE ? two_halves(x[2 * i], x[2 * i + 1])
                                     : basin_mma_bf16::two(x[2 * i], x[2 * i + 1]);
}

/* r (+)= rows `first` .. + 63 of x times rows `from` .. + N - 1 of y. */
template <typename number, bool ADD, int HALF>
static __device__ __forceinline__ void multiply(float (&r)[HALF], const char *x, int first,
                                                const char *y, int from) {
    uint64_t own = basin_wgmma_table(x) + (uint64_t)first * 8;
    uint64_t other = basin_wgmma_table(y) + (uint64_t)from * 8;
    basin_wgmma_scores<number, ADD>(r, own, other);
#pragma unroll
    for (int step = 1; step < WIDTH / 16; step++)
        basin_wgmma_scores<number, true>(r, own + step * 2, other + step * 2);
}

/* c of a piece; x, x2 and y, y2 as above. */
template <typename number, int N>
static __device__ __forceinline__ void multiply_both(piece<N> &v, const char *x, const char *x2,
                                                     int first, const char *y, const char *y2,
                                                     int from) {
    multiply<number, false>(v.c, x2, first, y, from);
    multiply<number, true>(v.c, x, first, y2, from);
}

template <typename number, bool ADD, int STEPS>
static __device__ __forceinline__ void sum_rows(float (&sum)[SUMS], const uint32_t (&w)[STEPS][4],
                                                const char *y, int from) {
    uint64_t other = basin_wgmma_table(y) + (uint64_t)from * 8;
    basin_wgmma_rows<number, ADD>(sum, w[0], other);
#pragma unroll
    for (int step = 1; step < STEPS; step++)
        basin_wgmma_rows<number, true>(sum, w[step], other + step * 128);
}

/* Queues sum (+)= p y (force), p y2 + s y (reverse), over rows from `from` on. */
template <typename number, basin_cuda_mode MODE, bool ADD, int N>
static __device__ __forceinline__ void gather(float (&sum)[SUMS], const weights<N> &w,
                                              const char *y, const char *y2, int from) {
    basin_wgmma_fence();
    if (MODE == BASIN_CUDA_REVERSE) {
        sum_rows<number, ADD>(sum, w.p, y2, from);
        sum_rows<number, true>(sum, w.s, y, from);
    } else {
        sum_rows<number, ADD>(sum, w.p, y, from);
    }
    basin_wgmma_close();
}

/* ---- scores in registers ---- */

/* Pairs of a node with itself; `row` is the warp's first own row, a multiple of 16, less the
 * piece's first other. */
template <typename T, int N>
static __device__ __forceinline__ void leave_out_self(const strip_block<T> &s, piece<N> &v,
                                                      int row) {
#pragma unroll
    for (int step = 0; step < N / 16; step++)
        if (row == step * 16) {
            if (s.g == 2 * s.t) v.r[8 * step] = v.r[8 * step + 6] = s.left_out;
            if (s.g == 2 * s.t + 1) v.r[8 * step + 1] = v.r[8 * step + 7] = s.left_out;
        }
}

/* Others from `nodes` on, all of them among the last 16. */
template <typename T, int N>
static __device__ __forceinline__ void leave_out_end(const strip_block<T> &s, piece<N> &v,
                                                     int nodes) {
#pragma unroll
    for (int i = N / 2 - 8; i < N / 2; i++)
        if (i / 4 * 8 + 2 * s.t + i % 2 >= nodes) v.r[i] = s.left_out;
}

/* What is summed over a row: the largest score (of this thread's columns, as beta's sign has it),
 * weights 2^(z' - most), and these times c, r and c r. */
struct strip_row {
    float most[2], total[2], gain[2], slope[2], bend[2];
};

template <typename T, int N>
static __device__ __forceinline__ void raise(strip_row &row, const strip_block<T> &s,
                                             const piece<N> &v) {
    if (s.scale > 0) {
#pragma unroll
        for (int i = 0; i < N / 2; i++) row.most[i / 2 % 2] = fmaxf(row.most[i / 2 % 2], v.r[i]);
    } else {
#pragma unroll
        for (int i = 0; i < N / 2; i++) row.most[i / 2 % 2] = fminf(row.most[i / 2 % 2], v.r[i]);
    }
}

/* The largest score of the whole row, in units of log 2, less the lift of the weights. */
template <typename T>
static __device__ __forceinline__ void settle(strip_row &row, const strip_block<T> &s) {
    for (int i = 0; i < 2; i++)
        row.most[i] = basin_quad_max(row.most[i] * s.scale) - (float)strip_block<T>::LIFT;
}

/* Sums over the row's weights; a force keeps them. */
template <basin_cuda_mode MODE, bool SLOPE, typename T, int N>
static __device__ __forceinline__ void weigh(weights<N> &w, strip_row &row, const strip_block<T> &s,
                                             const piece<N> &v) {
#pragma unroll
    for (int step = 0; step < N / 16; step++) {
        float kept[8];
#pragma unroll
        for (int e = 0; e < 8; e++) {
            int n = step * 8 + e, i = e / 2 % 2;
            kept[e] = basin_exp2(fmaf(v.r[n], s.scale, -row.most[i]));
            row.total[i] += kept[e];
            if (MODE == BASIN_CUDA_REVERSE) row.gain[i] = fmaf(kept[e], v.c[n], row.gain[i]);
            if (SLOPE) {
                float moved = kept[e] * v.r[n];
                row.slope[i] += moved;
                if (MODE == BASIN_CUDA_REVERSE) row.bend[i] = fmaf(moved, v.c[n], row.bend[i]);
            }
        }
        if (MODE == BASIN_CUDA_FORCE) pack(w.p[step], s, kept);
    }
}

/* The reverse, sums being known: P = 2^(z' - level) and gs = P beta (c - mean). */
template <typename T, int N>
static __device__ __forceinline__ void bend(weights<N> &w, const strip_block<T> &s,
                                            const piece<N> &v, const float level[2],
                                            const float mean[2]) {
#pragma unroll
    for (int step = 0; step < N / 16; step++) {
        float p[8], gs[8];
#pragma unroll
        for (int e = 0; e < 8; e++) {
            int n = step * 8 + e, i = e / 2 % 2;
            p[e] = basin_exp2(fmaf(v.r[n], s.scale, -level[i]));
            gs[e] = p[e] * s.steep * (v.c[n] - mean[i]);
        }
        pack(w.p[step], s, p);
        pack(w.s[step], s, gs);
    }
}

/* By key: P w, and in reverse P w beta (c - mean), from what is known of the queries. */
template <basin_cuda_mode MODE, typename T, int N>
static __device__ __forceinline__ void weigh_known(weights<N> &w, const strip_block<T> &s,
                                                   const piece<N> &v, int from) {
#pragma unroll
    for (int step = 0; step < N / 16; step++) {
        float p[8], gs[8];
#pragma unroll
        for (int j = 0; j < 2; j++) {
            int at = from + step * 16 + j * 8 + 2 * s.t;
            float2 most = *(const float2 *)&s.known->most[at];
            float2 weight = *(const float2 *)&s.known->weight[at], mean = {0, 0};
            if (MODE == BASIN_CUDA_REVERSE) mean = *(const float2 *)&s.known->mean[at];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int n = step * 8 + j * 4 + e, to = j * 4 + e;
                p[to] = basin_exp2(fmaf(v.r[n], s.scale, e % 2 ? -most.y : -most.x)) *
                        (e % 2 ? weight.y : weight.x);
                if (MODE == BASIN_CUDA_REVERSE)
                    gs[to] = p[to] * s.steep * (v.c[n] - (e % 2 ? mean.y : mean.x));
            }
        }
        pack(w.p[step], s, p);
        if (MODE == BASIN_CUDA_REVERSE) pack(w.s[step], s, gs);
    }
}

/* ---- by query ---- */

/* Sums over all columns; writes what a query comes to. */
template <basin_cuda_mode MODE, typename T>
static __device__ __forceinline__ void close_row(float mean[2], float level[2], float factor[2],
                                                 const strip_row &row, const strip_block<T> &s,
                                                 const basin_strip_launch &p, int first) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int query = first + s.g + i * 8;
        bool there = query < p.queries;
        int64_t at = (s.entry * p.queries + query) * p.heads + s.head;
        float w = there ? p.w[at] : 0.0f, total = basin_quad_sum(row.total[i]);
        float inverse = 1.0f / total;
        mean[i] = MODE == BASIN_CUDA_REVERSE ? basin_quad_sum(row.gain[i]) * inverse : 0.0f;
        float lse = row.most[i] + log2f(total), slope = 0, bent = 0;
        level[i] = lse - (float)strip_block<T>::LIFT;
        factor[i] = MODE == BASIN_CUDA_REVERSE
                        ? s.beta * w * s.unit_b * power_of_two(-strip_block<T>::LIFT)
                        : s.beta * w * inverse * s.unit_k;
        if (p.slope) slope = basin_quad_sum(row.slope[i]) * inverse;
        if (p.slope && MODE == BASIN_CUDA_REVERSE) bent = basin_quad_sum(row.bend[i]) * inverse;
        if (!there || s.t != 0) continue;
        s.known->most[query] = row.most[i];
        s.known->weight[query] = w / s.unit_w * inverse;
        if (MODE == BASIN_CUDA_REVERSE) s.known->mean[query] = mean[i];
        if (p.lse) p.lse[at] = lse * BASIN_LN_2;
        if (p.gw) p.gw[at] = s.beta * s.unit_c * mean[i];
        if (p.slope)
            p.slope[at] = MODE == BASIN_CUDA_REVERSE
                              ? w * s.unit_c * fmaf(s.steep, bent - mean[i] * slope, mean[i])
                              : w * s.unit_q * s.unit_k * slope;
    }
}

/* The force on 64 queries. */
template <typename T>
static __device__ __forceinline__ void force_queries(const strip_block<T> &s,
                                                     const basin_strip_launch &p, int tile) {
    typedef typename strip_block<T>::number number;
    piece<96> v0;
    piece<112> v1;
    weights<96> w0;
    weights<112> w1;
    float sum[SUMS], mean[2], level[2], factor[2];
    int first = tile + s.warp * 16;
    basin_wgmma_fence();
    multiply<number, false>(v0.r, s.q, tile, s.k, 0);
    basin_wgmma_close();
    multiply<number, false>(v1.r, s.q, tile, s.k, 96);
    basin_wgmma_close();
    strip_row row = {{s.left_out, s.left_out}};
    basin_wgmma_wait<1>();
    basin_wgmma_pin(v0.r);
    if (p.exclude_self) leave_out_self(s, v0, first);
    raise(row, s, v0);
    basin_wgmma_wait<0>();
    basin_wgmma_pin(v1.r);
    leave_out_end(s, v1, p.keys - 96);
    if (p.exclude_self) leave_out_self(s, v1, first - 96);
    raise(row, s, v1);
    settle(row, s);
    if (p.slope)
        weigh<BASIN_CUDA_FORCE, true>(w0, row, s, v0);
    else
        weigh<BASIN_CUDA_FORCE, false>(w0, row, s, v0);
    gather<number, BASIN_CUDA_FORCE, false>(sum, w0, s.k, NULL, 0);
    if (p.slope)
        weigh<BASIN_CUDA_FORCE, true>(w1, row, s, v1);
    else
        weigh<BASIN_CUDA_FORCE, false>(w1, row, s, v1);
    gather<number, BASIN_CUDA_FORCE, true>(sum, w1, s.k, NULL, 96);
    close_row<BASIN_CUDA_FORCE>(mean, level, factor, row, s, p, first);
    basin_wgmma_wait<0>();
    basin_wgmma_pin(sum);
    if (p.out_q) write(s, p.out_q, sum, factor, first, p.queries, p.heads, p.width);
}

/* Its reverse: r and c of all pairs of 64 queries in registers. */
template <typename T>
static __device__ __forceinline__ void reverse_queries(const strip_block<T> &s,
                                                       const basin_strip_launch &p, int tile) {
    typedef typename strip_block<T>::number number;
    piece<32> v0;
    piece<64> v1;
    piece<112> v2;
    weights<32> w0;
    weights<64> w1;
    weights<112> w2;
    float sum[SUMS], mean[2], level[2], factor[2];
    int first = tile + s.warp * 16;
    basin_wgmma_fence();
    multiply<number, false>(v0.r, s.q, tile, s.k, 0);
    multiply<number, false>(v1.r, s.q, tile, s.k, 32);
    multiply<number, false>(v2.r, s.q, tile, s.k, 96);
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
    raise(row, s, v0), raise(row, s, v1), raise(row, s, v2);
    settle(row, s);
    basin_wgmma_wait<0>();
    basin_wgmma_pin(v0.c), basin_wgmma_pin(v1.c), basin_wgmma_pin(v2.c);
    if (p.slope) {
        weigh<BASIN_CUDA_REVERSE, true>(w0, row, s, v0);
        weigh<BASIN_CUDA_REVERSE, true>(w1, row, s, v1);
        weigh<BASIN_CUDA_REVERSE, true>(w2, row, s, v2);
    } else {
        weigh<BASIN_CUDA_REVERSE, false>(w0, row, s, v0);
        weigh<BASIN_CUDA_REVERSE, false>(w1, row, s, v1);
        weigh<BASIN_CUDA_REVERSE, false>(w2, row, s, v2);
    }
    close_row<BASIN_CUDA_REVERSE>(mean, level, factor, row, s, p, first);
    if (!p.out_q) return;
    bend(w0, s, v0, level, mean);
    gather<number, BASIN_CUDA_REVERSE, false>(sum, w0, s.k, s.b, 0);
    bend(w1, s, v1, level, mean);
    gather<number, BASIN_CUDA_REVERSE, true>(sum, w1, s.k, s.b, 32);
    bend(w2, s, v2, level, mean);
    gather<number, BASIN_CUDA_REVERSE, true>(sum, w2, s.k, s.b, 96);
    basin_wgmma_wait<0>();
    basin_wgmma_pin(sum);
    write(s, p.out_q, sum, factor, first, p.queries, p.heads, p.width);
}

/* ---- by key ---- */

template <typename T>
static __device__ __forceinline__ void force_keys(const strip_block<T> &s,
                                                  const basin_strip_launch &p, int tile) {
    typedef typename strip_block<T>::number number;
    piece<96> v0;
    piece<112> v1;
    weights<96> w0;
    weights<112> w1;
    float sum[SUMS], unit = s.beta * s.unit_w * s.unit_q, factor[2] = {unit, unit};
    int first = tile + s.warp * 16;
    basin_wgmma_fence();
    multiply<number, false>(v0.r, s.k, tile, s.q, 0);
    basin_wgmma_close();
    multiply<number, false>(v1.r, s.k, tile, s.q, 96);
    basin_wgmma_close();
    basin_wgmma_wait<1>();
    basin_wgmma_pin(v0.r);
    if (p.exclude_self) leave_out_self(s, v0, first);
    weigh_known<BASIN_CUDA_FORCE>(w0, s, v0, 0);
    gather<number, BASIN_CUDA_FORCE, false>(sum, w0, s.q, NULL, 0);
    basin_wgmma_wait<1>();
    basin_wgmma_pin(v1.r);
    if (p.exclude_self) leave_out_self(s, v1, first - 96);
    weigh_known<BASIN_CUDA_FORCE>(w1, s, v1, 96);
    gather<number, BASIN_CUDA_FORCE, true>(sum, w1, s.q, NULL, 96);
    basin_wgmma_wait<0>();
    basin_wgmma_pin(sum);
    write(s, p.out_k, sum, factor, first, p.keys, p.heads, p.width);
}

/* One piece of the reverse by key, from scores to sums. */
template <bool ADD, typename T, int N>
static __device__ __forceinline__ void
reverse_piece(float (&sum)[SUMS], weights<N> &w, const strip_block<T> &s,
              const basin_strip_launch &p, int tile, int from) {
    typedef typename strip_block<T>::number number;
    piece<N> v;
    basin_wgmma_fence();
    multiply<number, false>(v.r, s.k, tile, s.q, from);
    multiply_both<number>(v, s.k, s.b, tile, s.q, s.a, from);
    basin_wgmma_close();
    basin_wgmma_wait<0>();
    basin_wgmma_pin(v.r), basin_wgmma_pin(v.c);
    if (p.exclude_self) leave_out_self(s, v, tile + s.warp * 16 - from);
    weigh_known<BASIN_CUDA_REVERSE>(w, s, v, from);
    gather<number, BASIN_CUDA_REVERSE, ADD>(sum, w, s.q, s.a, from);
}

template <typename T>
static __device__ __forceinline__ void reverse_keys(const strip_block<T> &s,
                                                    const basin_strip_launch &p, int tile) {
    float sum[SUMS], unit = s.beta * s.unit_w * s.unit_a, factor[2] = {unit, unit};
    weights<96> w0;
    weights<112> w1;
    reverse_piece<false>(sum, w0, s, p, tile, 0);
    reverse_piece<true>(sum, w1, s, p, tile, 96);
    basin_wgmma_wait<0>();
    basin_wgmma_pin(sum);
    write(s, p.out_k, sum, factor, tile + s.warp * 16, p.keys, p.heads, p.width);
}

/* ---- the kernel ---- */

template <basin_cuda_mode MODE> static size_t shared_bytes() {
    return (size_t)(MODE == BASIN_CUDA_REVERSE ? 4 : 2) * TABLE_BYTES + BEHIND_BYTES;
}

template <typename T, basin_cuda_mode MODE>
__global__ void __launch_bounds__(128, MODE == BASIN_CUDA_REVERSE ? 2 : 3)
    strip_kernel(const __grid_constant__ basin_strip_launch p) {
    extern __shared__ __align__(1024) char shared[];
    enum { REVERSE = MODE == BASIN_CUDA_REVERSE };
    strip_block<T> s;
    s.k = shared, s.q = s.k + TABLE_BYTES;
    s.b = REVERSE ? s.q + TABLE_BYTES : NULL, s.a = REVERSE ? s.b + TABLE_BYTES : NULL;
    s.known = (strip_queries *)(shared + (REVERSE ? 4 : 2) * TABLE_BYTES);
    s.entry = blockIdx.x / p.heads, s.head = (int)(blockIdx.x % p.heads);
    s.warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
    s.g = (int)threadIdx.x % 32 / 4, s.t = (int)threadIdx.x % 4;
    for (int i = (int)threadIdx.x; i < 3 * ROWS; i += 128) ((float *)s.known)[i] = 0;
    fetch_all(s, p, REVERSE);
    s.beta = p.beta[s.head], s.steep = s.beta * s.unit_q * s.unit_k;
    s.scale = s.steep * BASIN_LOG2_E;
    if (fabsf(s.scale) < 1e-30f) s.scale = 1e-30f;
    s.left_out = s.scale > 0 ? -3e38f : 3e38f;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    for (int tile = 0; tile < p.queries; tile += 64)
        if (REVERSE)
            reverse_queries(s, p, tile);
        else
            force_queries(s, p, tile);
    if (!p.out_k) return;
    __syncthreads();
    for (int tile = 0; tile < p.keys; tile += 64)
        if (REVERSE)
            reverse_keys(s, p, tile);
        else
            force_keys(s, p, tile);
}

bool basin_strip_fits(const basin_cuda *cuda, const basin_cuda_heads *at, basin_cuda_mode mode) {
    bool fit = at->queries >= NODES_LEAST && at->queries <= ROWS && at->keys >= NODES_LEAST &&
               at->keys <= ROWS;
    return fit && mode != BASIN_CUDA_VALUE && (at->kind == BASIN_NARROW || at->tf32) &&
           cuda->capability == 90 && at->width > WIDTH / 2 && at->width <= WIDTH &&
           at->width % 8 == 0 && shared_bytes<BASIN_CUDA_REVERSE>() <= cuda->shared_limit;
}

template <typename T, basin_cuda_mode MODE>
static cudaError_t start(const basin_strip_launch *p, int64_t blocks, cudaStream_t stream) {
    size_t bytes = shared_bytes<MODE>();
    void (*kernel)(const basin_strip_launch) = strip_kernel<T, MODE>;
    cudaError_t code =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (code != cudaSuccess) return code;
    kernel<<<(unsigned)blocks, 128, bytes, stream>>>(*p);
    return cudaGetLastError();
}

cudaError_t basin_strip_start(const basin_strip_launch *p, basin_kind kind, basin_cuda_mode mode,
                              int64_t blocks, cudaStream_t stream) {
    if (kind == BASIN_NARROW)
        return mode == BASIN_CUDA_REVERSE ? start<basin_bf16, BASIN_CUDA_REVERSE>(p, blocks, stream)
                                          : start<basin_bf16, BASIN_CUDA_FORCE>(p, blocks, stream);
    return mode == BASIN_CUDA_REVERSE ? start<float, BASIN_CUDA_REVERSE>(p, blocks, stream)
                                      : start<float, BASIN_CUDA_FORCE>(p, blocks, stream);
}
