/* The two products around a ReLU on Hopper (wgmma, sm_90a): with A [m, k], B [n, k], D [m, n]
 * bfloat16, rows at any stride of a multiple of 8, sums in float,
 *
 *     marks:   D = max(alpha A B', 0), and a bit an element: set where D is above 0
 *     masked:  D = alpha A B' where the bit is set, 0 elsewhere
 *
 * Bits lie as threads hold results: of each 64 x 64 of D, row after row of such blocks, 128 words,
 * word t of thread t of a warpgroup; bit 4 i + 2 h + e is column 8 i + 2 (t % 4) + e of row
 * 16 (t / 32) + t % 32 / 4 + 8 h.
 *
 * A block stays on its multiprocessor and takes tiles of 128 x 192 from all over D. One thread
 * queues copies of 64 columns of A and B, slabs, into a ring in shared memory (TMA). Two warpgroups
 * take tiles in turn, so that one writes its results while the other multiplies: with k = 768 that
 * is a fifth of the time. The two blocks of a cluster have tiles one below the other; each fetches
 * half of the rows of B for both.
 *
 * Count, m 50,176, n 3,072, k 768: 237 Gflop, 0.30 ms at 790 TFLOP/s. A slab takes 768 clocks, in
 * which a block reads 28 KB from the second-level cache (40 without clusters); a tile's results, 48
 * KB, leave during the 9,216 clocks of the other's slabs. */
#include <cuda.h>
#include <cudaTypedefs.h>

#include "backend/cuda/attention_wgmma.h"
#include "backend/cuda/inside.h"

enum bits { BITS_WRITE, BITS_READ };

enum {
    CLUSTER = 2,
    HALVES = 2, /* of 64 rows, in a tile */
    ROWS = 64 * HALVES,
    COLUMNS = 192,
    PART = COLUMNS / CLUSTER, /* of the columns of a tile, which are rows of B */
    DEPTH = 64,               /* columns of A and B in a slab: 128 bytes, the swizzle */
    STAGES = 4,               /* of the ring: slabs */
    A_BYTES = ROWS * 128,
    B_BYTES = COLUMNS * 128,
    STAGE_BYTES = A_BYTES + B_BYTES,
    BLOCKS_ACROSS = COLUMNS / 64,
    BLOCKS = HALVES * BLOCKS_ACROSS, /* of 64 x 64, in a tile */
    PIECES = 3,                      /* such blocks on their way out, a warpgroup */
    PIECE_BYTES = 64 * 128,
    THREADS = 384, /* two warpgroups that multiply, one of which a thread fetches */
    /* shared memory: the ring and the pieces, from a multiple of 1,024 on, and barriers */
    OUT_AT = STAGES * STAGE_BYTES,
    FULL_AT = OUT_AT + 2 * PIECES * PIECE_BYTES,
    EMPTY_AT = FULL_AT + 8 * STAGES,
    TURN_AT = EMPTY_AT + 8 * STAGES,
    SHARED_BYTES = TURN_AT + 16 + 1024,
};
static_assert(BLOCKS % PIECES == 0, "pieces come round with tiles");

/* What the kernel is told. */
struct tiled {
    CUtensorMap a, b, d;
    uint32_t *bits;         /* [ceil(m / 64), n / 64, 128] */
    int slabs;              /* of 64 columns of A and B */
    int blocks_m, blocks_n; /* of 64 x 64, in D */
    int tiles_n, tiles;     /* tiles of a cluster */
    float alpha;
};

/* ---- barriers in shared memory, by address ---- */

static __device__ __forceinline__ void barrier_new(uint32_t barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}
static __device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
static __device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
    asm volatile("{.reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}
static __device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/* At the barrier of block `rank` of the cluster. Nothing but the arrival is made known there: with
 * the scope of a cluster this would wait for all of the thread's memory traffic. */
static __device__ __forceinline__ void barrier_arrive_at(uint32_t barrier, int rank) {
    asm volatile("{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];}" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}
static __device__ __forceinline__ void meet_cluster() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

/* ---- copies ---- */

/* A box of the matrix from column x, row y on into shared memory. */
static __device__ __forceinline__ void fetch(uint32_t to, const CUtensorMap *map, int x, int y,
                                             uint32_t barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
}
/* The same into that of all blocks of the cluster. */
static __device__ __forceinline__ void fetch_for_all(uint32_t to, const CUtensorMap *map, int x,
                                                     int y, uint32_t barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier), "h"((uint16_t)((1 << CLUSTER) - 1))
                 : "memory");
}
static __device__ __forceinline__ void send(const CUtensorMap *map, uint32_t from, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
        "r"(x), "r"(y), "r"(from)
        : "memory");
}
static __device__ __forceinline__ void close_sent() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/* Until a piece is free again: all that were sent but the last ones. */
static __device__ __forceinline__ void wait_sent() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PIECES - 1) : "memory");
}

/* ---- products ---- */

#define BASIN_F96(d)                                                                               \
    BASIN_F56("+f", d), BASIN_F8("+f", d, 56), BASIN_F8("+f", d, 64), BASIN_F8("+f", d, 72),       \
        BASIN_F8("+f", d, 80), BASIN_F8("+f", d, 88)
#define BASIN_R96                                                                                  \
    BASIN_R56 ", %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, " \
              "%72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, "   \
              "%88, %89, %90, %91, %92, %93, %94, %95"

/* r [64, 192] += x [64, 16] y' [16, 192], of tables (attention_wgmma.h) */
static __device__ __forceinline__ void add_product(float (&r)[COLUMNS / 2], uint64_t x,
                                                   uint64_t y) {
    static_assert(COLUMNS == 192, "as wide as the instruction");
    asm volatile("wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {" BASIN_R96
                 "}, %96, %97, 1, 1, 1, 0, 0;"
                 : BASIN_F96(r)
                 : "l"(x), "l"(y));
}

/* ---- where things lie ---- */

/* A block's tile in D. Its blocks of 64 x 64 are counted row after row; at the edge of D some are
 * not there. */
struct tile_place {
    int row, column;
    __device__ __forceinline__ bool there(const tiled &p, int block) const {
        return row / 64 + block / BLOCKS_ACROSS < p.blocks_m &&
               column / 64 + block % BLOCKS_ACROSS < p.blocks_n;
    }
    /* The thread's word of bits. */
    __device__ __forceinline__ uint32_t *word(const tiled &p, int block) const {
        int64_t down = row / 64 + block / BLOCKS_ACROSS,
                along = column / 64 + block % BLOCKS_ACROSS;
        return p.bits + (down * p.blocks_n + along) * 128 + threadIdx.x % 128;
    }
};
static __device__ __forceinline__ tile_place place_of(const tiled &p, int tile, int rank) {
    return {(tile / p.tiles_n * CLUSTER + rank) * ROWS, tile % p.tiles_n * COLUMNS};
}

/* The ring of stages, followed by whoever fills or empties it. */
struct ring {
    int stage;
    uint32_t parity;
    __device__ __forceinline__ void at(int slab) {
        stage = slab % STAGES, parity = (uint32_t)(slab / STAGES & 1);
    }
    __device__ __forceinline__ void next() {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

/* ---- the thread that fetches ---- */

static __device__ __forceinline__ void fetch_all(const tiled &p, uint32_t base, int first,
                                                 int clusters, int rank) {
    ring r = {0, 0};
    for (int tile = first; tile < p.tiles; tile += clusters) {
        tile_place place = place_of(p, tile, rank);
        for (int slab = 0; slab < p.slabs; slab++, r.next()) {
            uint32_t full = base + FULL_AT + (uint32_t)r.stage * 8;
            uint32_t a = base + (uint32_t)(r.stage * STAGE_BYTES);
            uint32_t b = a + (uint32_t)(A_BYTES + rank * PART * 128);
            barrier_wait(base + EMPTY_AT + (uint32_t)r.stage * 8, r.parity ^ 1);
            barrier_expect(full, STAGE_BYTES);
            fetch(a, &p.a, slab * DEPTH, place.row, full);
            fetch_for_all(b, &p.b, slab * DEPTH, place.column + rank * PART, full);
        }
    }
}

/* ---- a warpgroup ---- */

/* As basin_wgmma_table. */
static __device__ __forceinline__ uint64_t table_at(uint32_t address) {
    return (uint64_t)(address & 0x3ffff) >> 4 | (uint64_t)64 << 16 | (uint64_t)64 << 32 |
           (uint64_t)1 << 62;
}

/* Frees a stage, in all blocks that fill it. */
static __device__ __forceinline__ void release(uint32_t empty) {
    int lane = (int)threadIdx.x % 32;
    if (lane < CLUSTER) barrier_arrive_at(empty, lane);
}

/* Sums of a tile, the slabs of which begin at stage r; then the other warpgroup has its turn, once
 * this one has seen the last of its own slabs: barriers tell one round of the ring from the next,
 * but not from the one after that. */
static __device__ __forceinline__ void multiply_tile(float (&sum)[HALVES][COLUMNS / 2], ring r,
                                                     uint32_t base, int slabs, uint32_t next_turn) {
    uint32_t before = 0;
#pragma unroll
    for (int h = 0; h < HALVES; h++)
#pragma unroll
        for (int i = 0; i < COLUMNS / 2; i++) sum[h][i] = 0;
    for (int slab = 0; slab < slabs; slab++, r.next()) {
        uint32_t stage = base + (uint32_t)(r.stage * STAGE_BYTES);
        uint64_t a = table_at(stage), b = table_at(stage + A_BYTES);
        barrier_wait(base + FULL_AT + (uint32_t)r.stage * 8, r.parity);
        basin_wgmma_fence();
#pragma unroll
        for (int step = 0; step < DEPTH / 16; step++)
#pragma unroll
            for (int h = 0; h < HALVES; h++)
                add_product(sum[h], a + (uint64_t)(h * 512 + step * 2), b + (uint64_t)(step * 2));
        basin_wgmma_close();
        basin_wgmma_wait<1>();
        if (slab > 0) release(before);
        before = base + EMPTY_AT + (uint32_t)r.stage * 8;
    }
    if (threadIdx.x % 32 == 0) barrier_arrive(next_turn);
    basin_wgmma_wait<0>();
    release(before);
#pragma unroll
    for (int h = 0; h < HALVES; h++) basin_wgmma_pin(sum[h]);
}

/* Two neighbours as bfloat16, the first below. */
template <bool RELU>
static __device__ __forceinline__ uint32_t narrow_pair(float first, float second) {
    uint32_t pair;
    if (RELU)
        asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

/* The thread's 32 numbers of 64 x 64 to a piece of shared memory; their bits are `word` or, where
 * they are written, become it. */
template <bits BITS>
static __device__ __forceinline__ void write_piece(uint32_t &word, uint32_t piece, const float *sum,
                                                   float alpha) {
    int thread = (int)threadIdx.x % 128, lane = thread % 32;
    uint32_t row = piece + (uint32_t)(thread / 32 * 16 + lane / 8 % 2 * 8 + lane % 8) * 128;
    if (BITS == BITS_WRITE) word = 0;
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
        uint32_t pair[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            float x[2];
#pragma unroll
            for (int e = 0; e < 2; e++) {
                int at = i * 4 + k * 2 + e;
                x[e] = alpha * sum[at];
                if (BITS == BITS_WRITE) word |= x[e] > 0.0f ? 1u << at : 0u;
                if (BITS == BITS_READ) x[e] = word & 1u << at ? x[e] : 0.0f;
            }
            pair[k] = narrow_pair<BITS == BITS_WRITE>(x[0], x[1]);
        }
        uint32_t to = row + (uint32_t)(((i + lane / 16) ^ lane % 8) << 4);
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                     "r"(pair[0]), "r"(pair[1]), "r"(pair[2]), "r"(pair[3])
                     : "memory");
    }
}

static __device__ __forceinline__ void meet_warpgroup(int which) {
    asm volatile("bar.sync %0, 128;" ::"r"(which + 1) : "memory");
}

template <bits BITS>
static __device__ __forceinline__ void
write_tile(const tiled &p, const float (&sum)[HALVES][COLUMNS / 2], uint32_t (&word)[BLOCKS],
           uint32_t out, int which, tile_place place) {
    bool leader = threadIdx.x % 128 == 0;
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
        int down = i / BLOCKS_ACROSS, along = i % BLOCKS_ACROSS;
        uint32_t piece = out + (uint32_t)(i % PIECES * PIECE_BYTES);
        bool there = place.there(p, i);
        if (leader) wait_sent();
        meet_warpgroup(which);
        write_piece<BITS>(word[i], piece, &sum[down][along * 32], p.alpha);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        meet_warpgroup(which);
        if (leader && there) send(&p.d, piece, place.column + along * 64, place.row + down * 64);
        if (leader) close_sent(); /* of nothing, too: pieces are counted */
        if (BITS == BITS_WRITE && there) *place.word(p, i) = word[i];
    }
}

/* Every second of the block's tiles. */
template <bits BITS>
static __device__ __forceinline__ void take_tiles(const tiled &p, uint32_t base, int which,
                                                  int first, int clusters, int rank) {
    float sum[HALVES][COLUMNS / 2];
    uint32_t word[BLOCKS], out = base + OUT_AT + (uint32_t)(which * PIECES * PIECE_BYTES);
    uint32_t turn = base + TURN_AT + (uint32_t)which * 8;
    uint32_t next_turn = base + TURN_AT + (uint32_t)(8 - which * 8);
    ring r;
    for (int i = which;; i += 2) {
        int tile = first + i * clusters;
        if (tile >= p.tiles) break;
        tile_place place = place_of(p, tile, rank);
        r.at(i * p.slabs);
        if (i > 0) barrier_wait(turn, (uint32_t)((i - 1) / 2 & 1));
#pragma unroll
        for (int j = 0; j < BLOCKS; j++)
            word[j] = BITS == BITS_READ && place.there(p, j) ? *place.word(p, j) : 0;
        multiply_tile(sum, r, base, p.slabs, next_turn);
        write_tile<BITS>(p, sum, word, out, which, place);
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

template <bits BITS>
__global__ void __launch_bounds__(THREADS, 1) tiled_kernel(const __grid_constant__ tiled p) {
    extern __shared__ char shared[];
    uint32_t base = (basin_shared_address(shared) + 1023) & ~1023u;
    int rank = (int)blockIdx.x % CLUSTER, first = (int)blockIdx.x / CLUSTER;
    int clusters = (int)gridDim.x / CLUSTER;
    int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        for (uint32_t i = 0; i < STAGES; i++) {
            barrier_new(base + FULL_AT + i * 8, 1);
            barrier_new(base + EMPTY_AT + i * 8, 4 * CLUSTER); /* the warps that use it */
        }
        for (uint32_t i = 0; i < 2; i++) barrier_new(base + TURN_AT + i * 8, 4);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    meet_cluster();
    if (group == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 256) fetch_all(p, base, first, clusters, rank);
        __syncwarp();
        meet_cluster(); /* nobody leaves while the other may write or arrive here */
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        take_tiles<BITS>(p, base, group, first, clusters, rank);
        meet_cluster();
    }
}

/* ---- the launch ---- */

typedef PFN_cuTensorMapEncodeTiled_v12000 encoder;

/* The driver's function that describes matrices to the copy engine; NULL where it has none. */
static encoder find_encoder() {
    void *found = NULL;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    cudaError_t code = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000,
                                                        cudaEnableDefault, &result);
#else
    cudaError_t code =
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result);
#endif
    if (code != cudaSuccess) cudaGetLastError();
    bool good = code == cudaSuccess && result == cudaDriverEntryPointSuccess;
    return good ? (encoder)found : NULL;
}

/* A row-major matrix [rows, columns] of bfloat16, read or written in boxes of box_rows x 64. */
static bool map_matrix(CUtensorMap *map, encoder encode, const void *x, int64_t rows,
                       int64_t columns, int64_t apart, int box_rows) {
    cuuint64_t size[2] = {(cuuint64_t)columns, (cuuint64_t)rows};
    cuuint64_t stride[1] = {(cuuint64_t)apart * sizeof(basin_bf16)};
    cuuint32_t box[2] = {64, (cuuint32_t)box_rows}, step[2] = {1, 1};
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, (void *)x, size, stride, box, step,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <bits BITS> static cudaError_t start(const basin_cuda *cuda, const tiled *p) {
    void (*kernel)(const tiled) = tiled_kernel<BITS>;
    cudaError_t code =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (code != cudaSuccess) return code;
    int clusters = cuda->multiprocessors / CLUSTER;
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = CLUSTER;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3((unsigned)((clusters < p->tiles ? clusters : p->tiles) * CLUSTER));
    launch.blockDim = dim3(THREADS);
    launch.dynamicSmemBytes = SHARED_BYTES;
    launch.stream = cuda->stream;
    launch.attrs = &cluster, launch.numAttrs = 1;
    return cudaLaunchKernelEx(&launch, kernel, *p);
}

bool basin_cuda_relu_product_exists(const basin_cuda *cuda, const basin_cuda_product *p) {
    const int64_t most = INT32_MAX / 2;
    bool kind = p->batch == 1 && !p->transpose_a && p->transpose_b && p->narrow_factors &&
                p->narrow_result && !p->bias && !p->add;
    bool sizes = p->k > 0 && p->k % 8 == 0 && p->n % 64 == 0 && p->m <= most && p->n <= most &&
                 p->k <= most && p->m / 64 * (p->n / 64) <= most;
    bool rows = p->row_a % 8 == 0 && p->row_b % 8 == 0 && p->row_d % 8 == 0;
    return kind && sizes && rows && cuda->capability == 90 && cuda->multiprocessors >= CLUSTER &&
           SHARED_BYTES <= cuda->shared_limit && find_encoder();
}

void basin_cuda_relu_product_run(basin_cuda *cuda, const basin_cuda_product *product, void *d,
                                 const void *a, const void *b, void *bits) {
    const basin_cuda_product *x = product;
    tiled p = {};
    encoder encode = find_encoder();
    int64_t row_a = x->row_a ? x->row_a : x->k, row_b = x->row_b ? x->row_b : x->k;
    bool mapped = encode && map_matrix(&p.a, encode, a, x->m, x->k, row_a, ROWS) &&
                  map_matrix(&p.b, encode, b, x->n, x->k, row_b, PART) &&
                  map_matrix(&p.d, encode, d, x->m, x->n, x->row_d ? x->row_d : x->n, 64);
    p.bits = (uint32_t *)bits;
    p.alpha = (float)x->alpha;
    p.slabs = (int)basin_cuda_ceil(x->k, DEPTH);
    p.blocks_m = (int)basin_cuda_ceil(x->m, 64), p.blocks_n = (int)(x->n / 64);
    p.tiles_n = (int)basin_cuda_ceil(x->n, COLUMNS);
    p.tiles = (int)basin_cuda_ceil(x->m, ROWS * CLUSTER) * p.tiles_n;
    cudaError_t code = !mapped     ? cudaErrorInvalidValue
                       : x->masked ? start<BITS_READ>(cuda, &p)
                                   : start<BITS_WRITE>(cuda, &p);
    BASIN_CUDA_TRY(cuda, code);
}
