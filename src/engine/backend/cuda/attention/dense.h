/* Energy attention over all pairs, without multipliers and mixing, on tensor cores.
 *
 * A warp owns 16 rows of one head of one batch entry, its block streams the other side through
 * shared memory in tiles, two of them in flight. By query the other side are the keys, and by key
 * the queries; with x, x2 the own rows and y, y2 the streamed ones,
 *
 *     r = x y^T    c = x2 y^T + x y2^T    sum over y of  t y  (force),  t y2 + gs y  (reverse)
 *
 * is the same for both sides (x, x2 = Q, A and y, y2 = K, B, or the other way round). By query,
 * the force keeps a running largest score and rescales; its reverse goes twice, for the mean of c
 * first. By key, what is known of each query is read from the summaries. */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_DENSE_H
#define BASIN_BACKEND_CUDA_ATTENTION_DENSE_H

#include "engine/backend/cuda/attention/dense_rows.h"
#include "engine/backend/cuda/attention/mma.h"

enum { BASIN_DENSE_WARPS = 8 }; /* at most, in a block */

/* What a kernel is compiled for. */
template <typename M, int WIDTH, basin_cuda_mode MODE> struct basin_dense_shape {
    enum {
        LD = WIDTH + M::PAD,
        TABLES = MODE == BASIN_CUDA_REVERSE ? 2 : 1,                /* x, x2 and y, y2 */
        TILE = TABLES == 2 && sizeof(typename M::T) == 4 ? 32 : 64, /* streamed rows a stage */
        COLUMNS = TABLES == 2 ? 32 : 64,                            /* of scores held at a time */
    };
    static size_t bytes(int warps) {
        size_t rows = (size_t)warps * 16 + 2 * TILE;
        return rows * LD * TABLES * sizeof(typename M::T) + 2 * TILE * sizeof(basin_cuda_summary);
    }
};

BASIN_DEVICE void basin_copy_async(void *shared, const void *global, int from) {
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(basin_shared_address(shared)),
        "l"(global), "r"(from)
        : "memory");
}

BASIN_DEVICE void basin_dense_store(float *to, float low, float high) {
    *(float2 *)to = make_float2(low, high);
}
BASIN_DEVICE void basin_dense_store(basin_bf16 *to, float low, float high) {
    *(__nv_bfloat162 *)to = __floats2bfloat162_rn(low, high);
}

/* Rows first .. first + rows - 1 of one head, zeros beyond `nodes` rows and `width` columns. */
template <typename T, int WIDTH, int LD>
BASIN_DEVICE void basin_dense_fetch(T *tile, const T *x, int first, int rows, int nodes,
                                    int64_t step, int width, bool vectors) {
    enum { VECTOR = 16 / sizeof(T), VECTORS = WIDTH / VECTOR };
    if (vectors) {
        for (int i = threadIdx.x; i < rows * VECTORS; i += blockDim.x) {
            int row = i / VECTORS, column = i % VECTORS * VECTOR;
            bool there = first + row < nodes && column < width;
            const T *from = there ? x + (first + row) * step + column : x;
            basin_copy_async(tile + row * LD + column, from, there ? 16 : 0);
        }
    } else {
        for (int i = threadIdx.x; i < rows * WIDTH; i += blockDim.x) {
            int row = i / WIDTH, column = i % WIDTH;
            bool there = first + row < nodes && column < width;
            tile[row * LD + column] =
                there ? x[(first + row) * step + column] : basin_from_float<T>(0.0f);
        }
    }
}

/* r [16, COLUMNS] += x y^T, and with x2, c += x2 y^T: own rows times streamed rows. */
template <typename M, int WIDTH, int LD, int COLUMNS, bool TWO>
BASIN_DEVICE void basin_dense_scores(float (*r)[4], float (*c)[4], const typename M::T *x,
                                     const typename M::T *x2, const typename M::T *y) {
#pragma unroll M::UNROLL
    for (int k = 0; k < WIDTH; k += M::K) {
        typename M::left_t a = M::left(x, LD, 0, k), a2;
        if (TWO) a2 = M::left(x2, LD, 0, k);
#pragma unroll
        for (int n = 0; n < COLUMNS; n += 16) {
            typename M::right_t b[2];
            M::right(b, y, LD, n, k);
            BASIN_UNROLL (i, 2) {
                M::add(r[n / 8 + i], a, b[i]);
                if (TWO) M::add(c[n / 8 + i], a2, b[i]);
            }
        }
    }
}

/* sum [16, WIDTH] += weights [16, COLUMNS] times streamed rows. Tensor cores cut off what they add
 * instead of rounding it, which adds up over a thousand rows: exact products are summed afresh for
 * these COLUMNS and then added. */
template <typename M, int WIDTH, int LD, int COLUMNS>
BASIN_DEVICE void basin_dense_gather(float (*sum)[4], const float (*weight)[4],
                                     const typename M::T *other) {
    typename M::right_t b[2];
    if constexpr (M::EXACT) {
#pragma unroll
        for (int y = 0; y < WIDTH; y += 16) {
            float part[2][4] = {};
#pragma unroll
            for (int n = 0; n < COLUMNS; n += M::K) {
                typename M::left_t a = M::again(weight + n / 8);
                M::right_rows(b, other, LD, n, y);
                M::add(part[0], a, b[0]);
                M::add(part[1], a, b[1]);
            }
            BASIN_UNROLL (i, 8) sum[y / 8 + i / 4][i % 4] += part[i / 4][i % 4];
        }
    } else {
#pragma unroll
        for (int n = 0; n < COLUMNS; n += M::K) {
            typename M::left_t a = M::again(weight + n / 8);
#pragma unroll
            for (int y = 0; y < WIDTH; y += 16) {
                M::right_rows(b, other, LD, n, y);
                M::add(sum[y / 8], a, b[0]);
                M::add(sum[y / 8 + 1], a, b[1]);
            }
        }
    }
}

/* ---- the kernel ---- */

template <typename M, int WIDTH, basin_cuda_mode MODE> struct basin_dense_block {
    typedef basin_dense_shape<M, WIDTH, MODE> S;
    typedef typename M::T T;
    T *own, *stage;                     /* [TABLES, rows, LD]; [2, TABLES, TILE, LD] */
    basin_cuda_summary *summary;        /* [2, TILE] of the streamed queries */
    const T *x, *x2, *y, *y2;           /* the head's first rows, NULL where absent */
    int entry, head, first, warp, rows; /* first: own row of the block; rows of it */

    BASIN_METHOD const T *head_of(const void *table, int nodes, int64_t step, int width) const {
        return table ? (const T *)table + (int64_t)entry * nodes * step + (int64_t)head * width
                     : NULL;
    }

    BASIN_METHOD basin_dense_block(const basin_dense_launch &p, char *shared) {
        int task = (int)blockIdx.x, set = task / p.blocks;
        rows = (int)blockDim.x / 2, warp = (int)threadIdx.x / 32;
        first = task % p.blocks * rows;
        entry = set / p.heads, head = set % p.heads;
        own = (T *)shared;
        stage = own + S::TABLES * rows * S::LD;
        summary = (basin_cuda_summary *)(stage + 2 * S::TABLES * S::TILE * S::LD);
        x = head_of(p.x, p.own, p.step_x, p.width), y = head_of(p.y, p.other, p.step_y, p.width);
        x2 = head_of(p.x2, p.own, p.step_x2, p.width);
        y2 = head_of(p.y2, p.other, p.step_y2, p.width);
    }

    BASIN_METHOD T *streamed(int at, int table) const {
        return stage + (at * S::TABLES + table) * S::TILE * S::LD;
    }

    BASIN_METHOD void fetch_own(const basin_dense_launch &p) {
        basin_dense_fetch<T, WIDTH, S::LD>(own, x, first, rows, p.own, p.step_x, p.width,
                                           p.vectors);
        if (S::TABLES == 2 && x2)
            basin_dense_fetch<T, WIDTH, S::LD>(own + rows * S::LD, x2, first, rows, p.own,
                                               p.step_x2, p.width, p.vectors);
    }

    template <bool BY_KEY> BASIN_METHOD void fetch(const basin_dense_launch &p, int tile, int to) {
        int begin = tile * S::TILE;
        basin_dense_fetch<T, WIDTH, S::LD>(streamed(to, 0), y, begin, S::TILE, p.other, p.step_y,
                                           p.width, p.vectors);
        if (S::TABLES == 2 && y2)
            basin_dense_fetch<T, WIDTH, S::LD>(streamed(to, 1), y2, begin, S::TILE, p.other,
                                               p.step_y2, p.width, p.vectors);
        if (!BY_KEY) return;
        const basin_cuda_summary *from =
            p.summary + ((int64_t)entry * p.heads + head) * p.other + begin;
        for (int i = threadIdx.x; i < S::TILE; i += blockDim.x)
            basin_copy_async(summary + to * S::TILE + i, begin + i < p.other ? from + i : p.summary,
                             begin + i < p.other ? 16 : 0);
    }

    /* r and c of the warp's rows against streamed rows n .. n + N - 1. */
    template <int N> BASIN_METHOD void products(float (*r)[4], float (*c)[4], int at, int n) {
        const T *mine = own + warp * 16 * S::LD, *mine2 = mine + rows * S::LD;
        const T *other = streamed(at, 0) + n * S::LD, *other2 = streamed(at, 1) + n * S::LD;
        if (MODE == BASIN_CUDA_REVERSE && x2)
            basin_dense_scores<M, WIDTH, S::LD, N, true>(r, c, mine, mine2, other);
        else
            basin_dense_scores<M, WIDTH, S::LD, N, false>(r, NULL, mine, NULL, other);
        if (MODE == BASIN_CUDA_REVERSE && y2)
            basin_dense_scores<M, WIDTH, S::LD, N, false>(c, NULL, mine, NULL, other2);
    }

    /* COLUMNS of them, of which `there` exist; what lies beyond is left 0, 16 by 16. */
    BASIN_METHOD void scores(float (*r)[4], float (*c)[4], int at, int n, int there) {
        BASIN_UNROLL (j, S::COLUMNS / 8)
            BASIN_UNROLL (e, 4) r[j][e] = c[j][e] = 0;
        if (there > S::COLUMNS - 16) {
            products<S::COLUMNS>(r, c, at, n);
            return;
        }
#pragma unroll
        for (int i = 0; i < S::COLUMNS; i += 16)
            if (i < there) products<16>(r + i / 8, c + i / 8, at, n + i);
    }

    /* sum += r y (force), r y2 + c y (reverse) over N streamed rows. */
    template <int N>
    BASIN_METHOD void gather_rows(float (*sum)[4], const float (*r)[4], const float (*c)[4], int at,
                                  int n) {
        const T *other = streamed(at, 0) + n * S::LD, *other2 = streamed(at, 1) + n * S::LD;
        if (MODE != BASIN_CUDA_REVERSE) {
            basin_dense_gather<M, WIDTH, S::LD, N>(sum, r, other);
            return;
        }
        if (y2) basin_dense_gather<M, WIDTH, S::LD, N>(sum, r, other2);
        basin_dense_gather<M, WIDTH, S::LD, N>(sum, c, other);
    }

    BASIN_METHOD void gather(float (*sum)[4], const float (*r)[4], const float (*c)[4], int at,
                             int n, int there) {
        if (there > S::COLUMNS - 16) {
            gather_rows<S::COLUMNS>(sum, r, c, at, n);
            return;
        }
#pragma unroll
        for (int i = 0; i < S::COLUMNS; i += 16)
            if (i < there) gather_rows<16>(sum, r + i / 8, c + i / 8, at, n + i);
    }

    /* Writes rows of sums times factor[row] in the result's type. */
    BASIN_METHOD void write(const basin_dense_launch &p, const float (*sum)[4],
                            const float factor[2]) {
        int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        for (int i = 0; i < 2; i++) {
            int row = first + warp * 16 + g + i * 8;
            if (row >= p.own) continue;
            T *out =
                (T *)p.out + ((int64_t)entry * p.own + row) * p.step_out + (int64_t)head * p.width;
            BASIN_UNROLL (j, WIDTH / 8) {
                int column = j * 8 + 2 * t;
                float low = sum[j][2 * i] * factor[i], high = sum[j][2 * i + 1] * factor[i];
                if (column >= p.width) continue;
                if (p.pairs) {
                    basin_dense_store(out + column, low, high);
                } else {
                    out[column] = basin_from_float<T>(low);
                    if (column + 1 < p.width) out[column + 1] = basin_from_float<T>(high);
                }
            }
        }
    }
};

template <typename M, int WIDTH, basin_cuda_mode MODE, bool BY_KEY>
__global__ void __launch_bounds__(BASIN_DENSE_WARPS * 32, WIDTH > 64 ? 1 : 2)
    basin_dense_kernel(basin_dense_launch p) {
    typedef basin_dense_shape<M, WIDTH, MODE> S;
    extern __shared__ __align__(128) char dense_shared[];
    basin_dense_block<M, WIDTH, MODE> block(p, dense_shared);
    int row = block.first + block.warp * 16, tiles = (p.other + S::TILE - 1) / S::TILE;
    int begin = p.order < 0 ? block.first / S::TILE : 0; /* causal blocks skip tiles */
    if (p.order > 0) tiles = min(tiles, (block.first + block.rows + S::TILE - 1) / S::TILE);
    tiles -= begin;
    int passes = MODE == BASIN_CUDA_REVERSE && !BY_KEY ? 2 : 1, rounds = tiles * passes;
    float beta = p.beta[block.head], infinity = basin_minus_infinity();
    basin_dense_rows s = {{infinity, infinity}, {0, 0}, {0, 0}, {0, 0}};
    float sum[WIDTH / 8][4], r[S::COLUMNS / 8][4], c[S::COLUMNS / 8][4];
    BASIN_UNROLL (j, WIDTH / 8)
        BASIN_UNROLL (e, 4) sum[j][e] = 0;
    block.fetch_own(p);
    block.template fetch<BY_KEY>(p, begin, 0);
    asm volatile("cp.async.commit_group;" ::: "memory");
    for (int round = 0; round < rounds; round++) {
        if (round + 1 < rounds)
            block.template fetch<BY_KEY>(p, begin + (round + 1) % tiles, (round + 1) % 2);
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        bool last_pass = round >= tiles * (passes - 1);
        if (round == tiles && passes == 2) basin_dense_between(s);
        for (int n = 0; n < S::TILE && row < p.own; n += S::COLUMNS) {
            int column = (begin + round % tiles) * S::TILE + n, at = round % 2;
            if (column >= p.other) break;
            if (basin_dense_outside<S::COLUMNS>(p, row, column)) continue;
            basin_dense_bounds in = basin_dense_bounds_of<S::COLUMNS>(p, row, column);
            block.scores(r, c, at, n, p.other - column);
            if (BY_KEY) {
                basin_dense_by_key<S::COLUMNS, MODE>(r, c, block.summary + at * S::TILE + n, beta,
                                                     in);
            } else if (MODE == BASIN_CUDA_REVERSE) {
                if (last_pass)
                    basin_dense_reverse<S::COLUMNS>(r, c, s, beta, in);
                else
                    basin_dense_mean<S::COLUMNS>(r, c, s, beta * BASIN_LOG2_E, in);
            } else {
                float factor[2];
                basin_dense_force<S::COLUMNS>(factor, r, s, beta * BASIN_LOG2_E, in);
                BASIN_UNROLL (j, WIDTH / 8)
                    BASIN_UNROLL (e, 4) sum[j][e] *= factor[e / 2];
            }
            if (MODE != BASIN_CUDA_VALUE && last_pass && p.out)
                block.gather(sum, r, c, at, n, p.other - column);
        }
        __syncthreads();
    }
    if (row >= p.own) return;
    float factor[2] = {beta, beta};
    if (!BY_KEY) {
        int g = threadIdx.x % 32 / 4;
        basin_dense_close<MODE>(factor, p, s, block.entry, block.head, row + g);
    }
    if (MODE != BASIN_CUDA_VALUE && p.out) block.write(p, sum, factor);
}

/* The launches of one precision; attention_dense_*.cu. Shared memory for `warps` warps. */
#define BASIN_DENSE_DECLARE(name)                                                                  \
    size_t basin_dense_bytes_##name(int width, basin_cuda_mode mode, int warps);                   \
    cudaError_t basin_dense_launch_##name(const basin_dense_launch *p, basin_cuda_mode mode,       \
                                          bool by_key, int warps, cudaStream_t stream);
BASIN_DENSE_DECLARE(bf16)
BASIN_DENSE_DECLARE(tf32)
BASIN_DENSE_DECLARE(f32)

template <typename M, int WIDTH, basin_cuda_mode MODE, bool BY_KEY>
static cudaError_t basin_dense_start(const basin_dense_launch *p, int warps, cudaStream_t stream) {
    size_t bytes = basin_dense_shape<M, WIDTH, MODE>::bytes(warps);
    void (*kernel)(basin_dense_launch) = basin_dense_kernel<M, WIDTH, MODE, BY_KEY>;
    cudaError_t code =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (code != cudaSuccess) return code;
    kernel<<<(unsigned)p->tasks, (unsigned)warps * 32, bytes, stream>>>(*p);
    return cudaGetLastError();
}

template <typename M, int WIDTH>
static cudaError_t basin_dense_choose(const basin_dense_launch *p, basin_cuda_mode mode,
                                      bool by_key, int warps, cudaStream_t stream) {
    if (mode == BASIN_CUDA_VALUE)
        return basin_dense_start<M, WIDTH, BASIN_CUDA_VALUE, false>(p, warps, stream);
    if (mode == BASIN_CUDA_FORCE)
        return by_key ? basin_dense_start<M, WIDTH, BASIN_CUDA_FORCE, true>(p, warps, stream)
                      : basin_dense_start<M, WIDTH, BASIN_CUDA_FORCE, false>(p, warps, stream);
    return by_key ? basin_dense_start<M, WIDTH, BASIN_CUDA_REVERSE, true>(p, warps, stream)
                  : basin_dense_start<M, WIDTH, BASIN_CUDA_REVERSE, false>(p, warps, stream);
}

template <typename M, int WIDTH> static size_t basin_dense_shared(basin_cuda_mode mode, int warps) {
    return mode == BASIN_CUDA_REVERSE
               ? basin_dense_shape<M, WIDTH, BASIN_CUDA_REVERSE>::bytes(warps)
               : basin_dense_shape<M, WIDTH, BASIN_CUDA_FORCE>::bytes(warps);
}

#define BASIN_DENSE_DEFINE(name, M)                                                                \
    size_t basin_dense_bytes_##name(int width, basin_cuda_mode mode, int warps) {                  \
        return width <= 32   ? basin_dense_shared<M, 32>(mode, warps)                              \
               : width <= 64 ? basin_dense_shared<M, 64>(mode, warps)                              \
                             : basin_dense_shared<M, 128>(mode, warps);                            \
    }                                                                                              \
    cudaError_t basin_dense_launch_##name(const basin_dense_launch *p, basin_cuda_mode mode,       \
                                          bool by_key, int warps, cudaStream_t stream) {           \
        return p->width <= 32   ? basin_dense_choose<M, 32>(p, mode, by_key, warps, stream)        \
               : p->width <= 64 ? basin_dense_choose<M, 64>(p, mode, by_key, warps, stream)        \
                                : basin_dense_choose<M, 128>(p, mode, by_key, warps, stream);      \
    }

#endif
