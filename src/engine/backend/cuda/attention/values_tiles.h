/* Softmax attention with values over all pairs on tensor cores; see attention/values.h. A warp owns
 * 16 rows of one head of one batch entry; its block streams the other side through shared memory,
 * two tiles in flight. By key, the streamed queries are those of all heads that share the key's. */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_VALUES_TILES_H
#define BASIN_BACKEND_CUDA_ATTENTION_VALUES_TILES_H

#include "engine/backend/cuda/attention/dense.h"
#include "engine/backend/cuda/attention/values.h"

template <typename M, int WIDTH> struct basin_values_shape {
    typedef typename M::T T;
    enum {
        LD = WIDTH + M::PAD,
        ROWS = BASIN_VALUES_ROWS,
        TILE = sizeof(T) == 4 && WIDTH > 64 ? 16 : 32,
        COLUMNS = sizeof(T) == 2 && WIDTH <= 64 ? 32 : 16, /* of scores held at a time */
    };
    static size_t bytes(bool second) {
        size_t tables = second ? 4 : 2;
        return (ROWS + 2 * TILE) * LD * tables * sizeof(T) + 2 * TILE * sizeof(basin_values_stats);
    }
};

template <typename M, int WIDTH, basin_values_stage STAGE> struct basin_values_block {
    typedef basin_values_shape<M, WIDTH> S;
    typedef typename M::T T;
    enum { BY_KEY = STAGE == BASIN_VALUES_BY_KEY, PARTS = S::COLUMNS / 8 };
    const basin_values_launch &p;
    T *own, *stage;            /* [tables, ROWS, LD]; [2, tables, TILE, LD] */
    basin_values_stats *stats; /* [2, TILE] of the streamed queries */
    int entry, head, first, warp, tables;
    int from, tiles; /* streamed tiles of a head: from .. tiles - 1 */
    basin_values_stats mine[2];
    basin_values_sums sums[2];
    float s[PARTS][4], x[PARTS][4], g[PARTS][4], y[PARTS][4];
    float out[2][WIDTH / 8][4];

    BASIN_METHOD basin_values_block(const basin_values_launch &launch, char *shared) : p(launch) {
        int task = (int)blockIdx.x, set = task / p.blocks,
            heads = BY_KEY ? p.heads / p.each : p.heads;
        entry = set / heads, head = set % heads, first = task % p.blocks * S::ROWS;
        warp = (int)threadIdx.x / 32, tables = p.second ? 4 : 2;
        own = (T *)shared;
        stage = own + tables * S::ROWS * S::LD;
        stats = (basin_values_stats *)(stage + 2 * tables * S::TILE * S::LD);
        from = BY_KEY && p.causal ? first / S::TILE : 0;
        int end = !BY_KEY && p.causal ? min(p.other, first + S::ROWS) : p.other;
        tiles = max((end + S::TILE - 1) / S::TILE, from);
    }

    BASIN_METHOD int slot(int table) const { return p.second ? table : table / 2; }
    BASIN_METHOD T *mine_of(int table) const {
        return own + (slot(table) * S::ROWS + warp * 16) * S::LD;
    }
    BASIN_METHOD T *streamed(int at, int table, int n) const {
        return stage + ((at * tables + slot(table)) * S::TILE + n) * S::LD;
    }
    /* The head of queries that tile `turn` is of. */
    BASIN_METHOD int query_head(int turn) const {
        return BY_KEY ? head * p.each + turn / max(1, tiles - from) : head;
    }
    BASIN_METHOD int begin_of(int turn) const {
        return (from + turn % max(1, tiles - from)) * S::TILE;
    }
    BASIN_METHOD int turns() const { return (BY_KEY ? p.each : 1) * (tiles - from); }

    BASIN_METHOD void fetch_own() {
        BASIN_UNROLL (t, 4) {
            if (!p.x[t]) continue;
            const basin_values_steps &of = p.of_x[t / 2];
            basin_dense_fetch<T, WIDTH, S::LD>(
                own + slot(t) * S::ROWS * S::LD,
                (const T *)p.x[t] + entry * of.batch + head * of.head, first, S::ROWS, p.own,
                of.token, p.width[t / 2], p.vectors);
        }
    }

    BASIN_METHOD void fetch(int turn) {
        int at = turn % 2, begin = begin_of(turn), queries = query_head(turn);
        int other = BY_KEY ? queries : head / p.each;
        BASIN_UNROLL (t, 4) {
            if (!p.y[t]) continue;
            const basin_values_steps &of = p.of_y[t / 2];
            basin_dense_fetch<T, WIDTH, S::LD>(
                streamed(at, t, 0), (const T *)p.y[t] + entry * of.batch + other * of.head, begin,
                S::TILE, p.other, of.token, p.width[t / 2], p.vectors);
        }
        if (!BY_KEY) return;
        const basin_values_stats *known =
            p.stats + ((int64_t)entry * p.heads + queries) * p.other + begin;
        for (int i = threadIdx.x; i < 2 * S::TILE; i += blockDim.x) {
            bool there = begin + i / 2 < p.other;
            basin_copy_async((float4 *)(stats + at * S::TILE) + i,
                             there ? (const float4 *)known + i : (const float4 *)p.stats,
                             there ? 16 : 0);
        }
    }

    BASIN_METHOD void clear(float (*c)[4], int n) {
        BASIN_UNROLL (i, n)
            BASIN_UNROLL (e, 4) c[i][e] = 0;
    }

    /* a = X[t] Y[t]^T and b = X[t + 1] Y[t]^T + X[t] Y[t + 1]^T over COLUMNS streamed rows. */
    BASIN_METHOD void products(float (*a)[4], float (*b)[4], int t, int at, int n) {
        const T *other = streamed(at, t, n);
        clear(a, PARTS), clear(b, PARTS);
        if (p.second && p.x[t + 1])
            basin_dense_scores<M, WIDTH, S::LD, S::COLUMNS, true>(a, b, mine_of(t), mine_of(t + 1),
                                                                  other);
        else
            basin_dense_scores<M, WIDTH, S::LD, S::COLUMNS, false>(a, NULL, mine_of(t), NULL,
                                                                   other);
        if (p.second && p.y[t + 1])
            basin_dense_scores<M, WIDTH, S::LD, S::COLUMNS, false>(b, NULL, mine_of(t), NULL,
                                                                   streamed(at, t + 1, n));
    }

    /* Whether the warp's rows see all of the streamed rows begin .. begin + COLUMNS - 1; streamed
     * queries beyond the last have no share. */
    BASIN_METHOD bool sees_all(int begin) const {
        int mine = first + warp * 16, end = begin + S::COLUMNS;
        bool below = BY_KEY ? mine + 15 <= begin : end - 1 <= mine;
        return (BY_KEY || end <= p.other) && (!p.causal || below) && !p.exclude_self && !p.bias &&
               !p.tbias;
    }

    /* Scores in units of log 2, minus infinity where there is no pair, and ts. */
    BASIN_METHOD void pairs(int turn, int n) {
        int lane = threadIdx.x % 32, begin = begin_of(turn) + n, h = query_head(turn);
        float scale = p.scale * BASIN_LOG2_E;
        BASIN_UNROLL (c, PARTS)
            BASIN_UNROLL (e, 4) s[c][e] *= scale, x[c][e] *= p.scale;
        if (sees_all(begin)) return;
        BASIN_UNROLL (c, PARTS)
            BASIN_UNROLL (e, 4) {
                int mine = first + warp * 16 + lane / 4 + e / 2 * 8;
                int other = begin + c * 8 + lane % 4 * 2 + e % 2;
                basin_values_pair(s[c][e], x[c][e], p, entry, h, BY_KEY ? other : mine,
                                  BY_KEY ? mine : other, mine < p.own && other < p.other);
            }
    }

    /* Sums are about the numbers of the first key. */
    BASIN_METHOD void measure(bool opens) {
        BASIN_UNROLL (r, 2) {
            float ts = __shfl_sync(~0u, x[0][2 * r], threadIdx.x & 28);
            float slope = __shfl_sync(~0u, g[0][2 * r], threadIdx.x & 28);
            if (opens) sums[r].begin(ts, slope);
            float top = basin_minus_infinity();
            BASIN_UNROLL (c, PARTS)
                BASIN_UNROLL (e, 2) top = fmaxf(top, s[c][2 * r + e]);
            sums[r].raise(top);
            BASIN_UNROLL (c, PARTS)
                BASIN_UNROLL (e, 2)
                    sums[r].add(s[c][2 * r + e], x[c][2 * r + e], g[c][2 * r + e], y[c][2 * r + e]);
        }
    }

    /* In orders below the second, x also becomes p and y ds. */
    BASIN_METHOD void finish(int turn, int n) {
        int lane = threadIdx.x % 32, begin = begin_of(turn) + n;
        BASIN_UNROLL (c, PARTS)
            BASIN_UNROLL (e, 4) {
                int column = c * 8 + lane % 4 * 2 + e % 2;
                basin_values_finish(s[c][e], x[c][e], g[c][e], y[c][e],
                                    BY_KEY ? stats[turn % 2 * S::TILE + n + column] : mine[e / 2]);
                int i = first + warp * 16 + lane / 4 + e / 2 * 8, j = begin + column;
                if (!p.second) x[c][e] = s[c][e], y[c][e] = g[c][e];
                if (!BY_KEY && p.slope && i < p.own && j < p.other)
                    p.slope[(((int64_t)entry * p.heads + head) * p.own + i) * p.other + j] =
                        y[c][e];
            }
    }

    /* Dropout of two numbers of each pair. */
    BASIN_METHOD void drop(float (*a)[4], float (*b)[4], int turn, int n) {
        int lane = threadIdx.x % 32, begin = begin_of(turn) + n;
        int64_t head = (int64_t)entry * p.heads + query_head(turn);
        if (!p.keep) return;
        BASIN_UNROLL (c, PARTS)
            BASIN_UNROLL (e, 4) {
                int mine = first + warp * 16 + lane / 4 + e / 2 * 8;
                int other = begin + c * 8 + lane % 4 * 2 + e % 2;
                bool there = mine < p.own && other < p.other;
                int i = BY_KEY ? other : mine, j = BY_KEY ? mine : other;
                float m = there ? basin_values_mask(p, head, i, j) : 0;
                a[c][e] *= m, b[c][e] *= m;
            }
    }

    BASIN_METHOD void gather(int at, int n) {
        enum { C = S::COLUMNS };
        if (p.out[0]) {
            basin_dense_gather<M, WIDTH, S::LD, C>(out[0], y, streamed(at, 0, n));
            if (p.second && p.y[1])
                basin_dense_gather<M, WIDTH, S::LD, C>(out[0], g, streamed(at, 1, n));
        }
        if (p.out[1]) {
            basin_dense_gather<M, WIDTH, S::LD, C>(out[1], x, streamed(at, 2, n));
            if (p.second && p.y[3])
                basin_dense_gather<M, WIDTH, S::LD, C>(out[1], s, streamed(at, 3, n));
        }
    }

    BASIN_METHOD int64_t query_at(int r) const {
        int i = first + warp * 16 + threadIdx.x % 32 / 4 + 8 * r;
        return i < p.own ? ((int64_t)entry * p.heads + head) * p.own + i : -1;
    }

    BASIN_METHOD void begin() {
        clear(out[0], WIDTH / 8), clear(out[1], WIDTH / 8);
        BASIN_UNROLL (r, 2) {
            sums[r].begin(0, 0), mine[r] = {};
            if (STAGE == BASIN_VALUES_BY_QUERY && query_at(r) >= 0) mine[r] = p.stats[query_at(r)];
        }
    }

    BASIN_METHOD void write() {
        if (STAGE == BASIN_VALUES_STATS) {
            BASIN_UNROLL (r, 2) {
                sums[r].merge(1), sums[r].merge(2);
                if (threadIdx.x % 4 == 0 && query_at(r) >= 0) p.stats[query_at(r)] = sums[r].end();
            }
        }
        BASIN_UNROLL (w, STAGE == BASIN_VALUES_STATS ? 0 : 2) {
            if (!p.out[w]) continue;
            const basin_values_steps &of = p.of_x[w];
            T *to = (T *)p.out[w] + entry * of.batch + head * of.head;
            float scale = w == 0 ? p.scale : 1;
            BASIN_UNROLL (c, WIDTH / 8)
                BASIN_UNROLL (e, 4) {
                    int i = first + warp * 16 + threadIdx.x % 32 / 4 + e / 2 * 8;
                    int column = c * 8 + threadIdx.x % 4 * 2 + e % 2;
                    if (i < p.own && column < p.width[w])
                        to[i * of.token + column] = basin_from_float<T>(scale * out[w][c][e]);
                }
        }
    }

    BASIN_METHOD void tile(int turn) {
        int at = turn % 2;
#pragma unroll 1
        for (int n = 0; n < S::TILE && begin_of(turn) + n < p.other; n += S::COLUMNS) {
            products(s, x, 0, at, n);
            if (p.values)
                products(g, y, 2, at, n);
            else
                clear(g, PARTS), clear(y, PARTS);
            drop(g, y, turn, n);
            pairs(turn, n);
            if (STAGE == BASIN_VALUES_STATS) {
                measure(turn == 0 && n == 0);
            } else {
                finish(turn, n);
                drop(s, x, turn, n);
                gather(at, n);
            }
        }
    }

    BASIN_METHOD void run() {
        int count = turns();
        fetch_own();
        if (count > 0) fetch(0);
        asm volatile("cp.async.commit_group;" ::: "memory");
        begin();
        for (int turn = 0; turn < count; turn++) {
            if (turn + 1 < count) fetch(turn + 1);
            asm volatile("cp.async.commit_group;" ::: "memory");
            asm volatile("cp.async.wait_group 1;" ::: "memory");
            __syncthreads();
            tile(turn);
            __syncthreads();
        }
        write();
    }
};

template <typename M, int WIDTH, basin_values_stage STAGE>
static __global__ void __launch_bounds__(BASIN_VALUES_ROWS * 2)
    basin_values_kernel(const __grid_constant__ basin_values_launch p) {
    extern __shared__ __align__(128) char values_shared[];
    basin_values_block<M, WIDTH, STAGE> block(p, values_shared);
    block.run();
}

template <typename M, int WIDTH, basin_values_stage STAGE>
static cudaError_t basin_values_start(const basin_values_launch *p, cudaStream_t stream) {
    size_t bytes = basin_values_shape<M, WIDTH>::bytes(p->second);
    void (*kernel)(basin_values_launch) = basin_values_kernel<M, WIDTH, STAGE>;
    cudaError_t code =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (code != cudaSuccess) return code;
    kernel<<<(unsigned)p->tasks, BASIN_VALUES_ROWS * 2, bytes, stream>>>(*p);
    return cudaGetLastError();
}

template <typename M, int WIDTH>
static cudaError_t basin_values_choose(const basin_values_launch *p, basin_values_stage stage,
                                       cudaStream_t stream) {
    return stage == BASIN_VALUES_STATS ? basin_values_start<M, WIDTH, BASIN_VALUES_STATS>(p, stream)
           : stage == BASIN_VALUES_BY_QUERY
               ? basin_values_start<M, WIDTH, BASIN_VALUES_BY_QUERY>(p, stream)
               : basin_values_start<M, WIDTH, BASIN_VALUES_BY_KEY>(p, stream);
}

#define BASIN_VALUES_DEFINE(name, M)                                                               \
    size_t basin_values_bytes_##name(int width, bool second) {                                     \
        return width <= 64 ? basin_values_shape<M, 64>::bytes(second)                              \
                           : basin_values_shape<M, 128>::bytes(second);                            \
    }                                                                                              \
    cudaError_t basin_values_launch_##name(const basin_values_launch *p, basin_values_stage stage, \
                                           cudaStream_t stream) {                                  \
        return p->width[0] <= 64 && p->width[1] <= 64                                              \
                   ? basin_values_choose<M, 64>(p, stage, stream)                                  \
                   : basin_values_choose<M, 128>(p, stage, stream);                                \
    }

#endif
