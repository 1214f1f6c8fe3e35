/* ReLUs of products and their reverse on Hopper (wgmma, sm_90a): with A [m, k], B [n, k], D [m, n]
 * bfloat16, rows at any stride of a multiple of 8, or bytes (A e4m3 or e5m2, B e4m3, D as A or
 * bfloat16), of a multiple of 16, sums in float,
 *
 *     plain:   D = max(alpha A B', 0)
 *     marks:   the same, and a bit per element: set where D is above 0
 *     masked:  D = alpha A B' where the bit is set, 0 elsewhere
 *     transposed:  of bytes, marked or masked: and D' [n, m], for products that sum over m
 *
 * Bits lie as threads hold results: of each 64 x 64 of D, row after row of such blocks, 128 words,
 * word t of thread t of a warpgroup; bit 4 i + 2 h + e is column 8 i + 2 (t % 4) + e of row
 * 16 (t / 32) + t % 32 / 4 + 8 h.
 *
 * Blocks take tiles from all over D (product/tile_sm90a.h). The two blocks of a cluster have tiles
 * one below the other; each fetches half of the rows of B for both. */
#include "engine/backend/cuda/product/tile_sm90a.h"

enum bits { BITS_NONE, BITS_WRITE, BITS_READ };
enum results { RESULTS_BF16, RESULTS_BYTES, RESULTS_TRANSPOSED };

enum {
    PART = COLUMNS / CLUSTER, /* of the columns of a tile, which are rows of B */
    PIECES = 3,               /* on their way out, a warpgroup */
    SHARED_BYTES = FREE_AT + 2 * PIECES * PIECE_BYTES + 1024,
};
static_assert(BLOCKS % PIECES == 0, "pieces come round with tiles");

/* The kernel's arguments. */
struct tiled {
    CUtensorMap a, b, d, transposed;
    uint32_t *bits;         /* [ceil(m / 64), n / 64, 128] */
    int slabs;              /* of 128 bytes of rows of A and B */
    int depth;              /* elements of these */
    int blocks_m, blocks_n; /* of 64 x 64, in D */
    int tiles_n, tiles;     /* tiles of a cluster */
    float alpha, scale;     /* scale: of bytes */
};

/* ---- where things lie ---- */

/* A block's tile in D. Its blocks of 64 x 64 are counted row by row; at the edge some lack. */
struct tile_place {
    int row, column;
    BASIN_METHOD bool there(const tiled &p, int block) const {
        return row / 64 + block / BLOCKS_ACROSS < p.blocks_m &&
               column / 64 + block % BLOCKS_ACROSS < p.blocks_n;
    }
    /* The thread's word of bits. */
    BASIN_METHOD uint32_t *word(const tiled &p, int block) const {
        int64_t down = row / 64 + block / BLOCKS_ACROSS,
                along = column / 64 + block % BLOCKS_ACROSS;
        return p.bits + (down * p.blocks_n + along) * 128 + threadIdx.x % 128;
    }
};
BASIN_DEVICE tile_place place_of(const tiled &p, int tile, int rank) {
    return {(tile / p.tiles_n * CLUSTER + rank) * ROWS, tile % p.tiles_n * COLUMNS};
}

/* ---- the thread that fetches ---- */

BASIN_DEVICE void fetch_all(const tiled &p, uint32_t base, int first, int clusters, int rank) {
    ring r = {0, 0};
    for (int tile = first; tile < p.tiles; tile += clusters) {
        tile_place place = place_of(p, tile, rank);
        for (int slab = 0; slab < p.slabs; slab++, r.next()) {
            uint32_t full = base + FULL_AT + (uint32_t)r.stage * 8;
            uint32_t a = base + (uint32_t)(r.stage * STAGE_BYTES);
            uint32_t b = a + (uint32_t)(A_BYTES + rank * PART * 128);
            barrier_wait(base + EMPTY_AT + (uint32_t)r.stage * 8, r.parity ^ 1);
            barrier_expect(full, STAGE_BYTES);
            fetch(a, &p.a, slab * p.depth, place.row, full);
            fetch_for_all(b, &p.b, slab * p.depth, place.column + rank * PART, full);
        }
    }
}

/* ---- a warpgroup ---- */

/* The thread's part of a 64 x 64 block to a piece; its bits are `word`, or become it. */
template <bits BITS, factors FACTORS, results RESULTS>
BASIN_DEVICE void write_block(uint32_t &word, uint32_t piece, const float *sum, float alpha,
                              float scale) {
    if (BITS == BITS_WRITE) word = 0;
    auto number = [&](int at) {
        float x = alpha * sum[at];
        if (BITS == BITS_WRITE) word |= x > 0.0f ? 1u << at : 0u;
        if (BITS == BITS_READ) x = word & 1u << at ? x : 0.0f;
        return RESULTS == RESULTS_BF16 ? x : x * scale;
    };
    if constexpr (RESULTS == RESULTS_BF16)
        write_piece<BITS != BITS_READ>(piece, number);
    else
        write_bytes<FACTORS == FACTORS_E5M2, BITS != BITS_READ, RESULTS == RESULTS_TRANSPOSED>(
            piece, number);
}

template <bits BITS, factors FACTORS, results RESULTS>
BASIN_DEVICE void write_tile(const tiled &p, const float (&sum)[HALVES][COLUMNS / 2],
                             uint32_t (&word)[BLOCKS], uint32_t out, int which, tile_place place) {
    bool leader = threadIdx.x % 128 == 0;
    BASIN_UNROLL (i, BLOCKS) {
        int down = i / BLOCKS_ACROSS, along = i % BLOCKS_ACROSS;
        uint32_t piece = out + (uint32_t)(i % PIECES * PIECE_BYTES);
        bool there = place.there(p, i);
        if (leader) wait_sent<PIECES - 1>();
        meet_warpgroup(which);
        write_block<BITS, FACTORS, RESULTS>(word[i], piece, &sum[down][along * 32], p.alpha,
                                            p.scale);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        meet_warpgroup(which);
        if (leader && there) {
            int row = place.row + down * 64, column = place.column + along * 64;
            send(&p.d, piece, column, row);
            if (RESULTS == RESULTS_TRANSPOSED)
                send(&p.transposed, piece + TRANSPOSED_AT, row, column);
        }
        if (leader) close_sent(); /* also an empty one: pieces are counted */
        if (BITS == BITS_WRITE && there) *place.word(p, i) = word[i];
    }
}

/* Every second of the block's tiles. */
template <bits BITS, factors FACTORS, results RESULTS>
BASIN_DEVICE void take_tiles(const tiled &p, uint32_t base, int which, int first, int clusters,
                             int rank) {
    float sum[HALVES][COLUMNS / 2];
    uint32_t word[BLOCKS], out = base + FREE_AT + (uint32_t)(which * PIECES * PIECE_BYTES);
    ring r;
    for (int i = which;; i += 2) {
        int tile = first + i * clusters;
        if (tile >= p.tiles) break;
        tile_place place = place_of(p, tile, rank);
        r.at(i * p.slabs);
        wait_turn(base, which, i);
        BASIN_UNROLL (j, BLOCKS)
            word[j] = BITS == BITS_READ && place.there(p, j) ? *place.word(p, j) : 0;
        multiply_tile<FACTORS>(sum, r, base, p.slabs, next_turn(base, which));
        write_tile<BITS, FACTORS, RESULTS>(p, sum, word, out, which, place);
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

template <bits BITS, factors FACTORS, results RESULTS>
__global__ void __launch_bounds__(THREADS, 1) tiled_kernel(const __grid_constant__ tiled p) {
    extern __shared__ char shared[];
    uint32_t base = (basin_shared_address(shared) + 1023) & ~1023u;
    int rank = (int)blockIdx.x % CLUSTER, first = (int)blockIdx.x / CLUSTER;
    int clusters = (int)gridDim.x / CLUSTER;
    int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
    if (threadIdx.x == 0) ring_new(base);
    __syncthreads();
    meet_cluster();
    if (group == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 256) fetch_all(p, base, first, clusters, rank);
        __syncwarp();
        meet_cluster(); /* nobody leaves while the other may write or arrive here */
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        take_tiles<BITS, FACTORS, RESULTS>(p, base, group, first, clusters, rank);
        meet_cluster();
    }
}

/* ---- the launch ---- */

template <bits BITS, factors FACTORS, results RESULTS>
static cudaError_t start(const basin_cuda *cuda, const tiled *p) {
    void (*kernel)(const tiled) = tiled_kernel<BITS, FACTORS, RESULTS>;
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
    bool result = p->narrow_result || (basin_kind_is_byte(p->kind_d) && p->kind_d == p->kind_a);
    bool factors = !basin_kind_is_byte(p->kind_a) ||
                   (p->kind_a == (p->relu ? BASIN_E4M3 : BASIN_E5M2) && p->kind_b == BASIN_E4M3);
    return takes_tiles(cuda, p) && result && factors && !p->bias && !p->add &&
           cuda->multiprocessors >= CLUSTER && SHARED_BYTES <= cuda->shared_limit;
}

/* For bytes: ReLUs of e4m3 and masked products of e5m2, the forward pass and its reverse. */
template <results RESULTS>
static cudaError_t start_bytes(const basin_cuda *cuda, const tiled *p,
                               const basin_cuda_product *x) {
    return x->masked  ? start<BITS_READ, FACTORS_E5M2, RESULTS>(cuda, p)
           : x->marks ? start<BITS_WRITE, FACTORS_E4M3, RESULTS>(cuda, p)
                      : start<BITS_NONE, FACTORS_E4M3, RESULTS>(cuda, p);
}

static cudaError_t start_any(const basin_cuda *cuda, const tiled *p, const basin_cuda_product *x,
                             bool transposed) {
    if (transposed) return start_bytes<RESULTS_TRANSPOSED>(cuda, p, x);
    if (basin_kind_is_byte(x->kind_d)) return start_bytes<RESULTS_BYTES>(cuda, p, x);
    if (basin_kind_is_byte(x->kind_a)) return start_bytes<RESULTS_BF16>(cuda, p, x);
    return x->masked  ? start<BITS_READ, FACTORS_BF16, RESULTS_BF16>(cuda, p)
           : x->marks ? start<BITS_WRITE, FACTORS_BF16, RESULTS_BF16>(cuda, p)
                      : start<BITS_NONE, FACTORS_BF16, RESULTS_BF16>(cuda, p);
}

void basin_cuda_relu_product_run(basin_cuda *cuda, const basin_cuda_product *product, void *d,
                                 void *transposed, const void *a, const void *b, void *bits) {
    const basin_cuda_product *x = product;
    tiled p = {};
    basin_encoder encode = basin_tma_encoder();
    bool bytes = basin_kind_is_byte(x->kind_a), bytes_d = basin_kind_is_byte(x->kind_d);
    int64_t row_a = x->row_a ? x->row_a : x->k, row_b = x->row_b ? x->row_b : x->k;
    int64_t row_d = x->row_d ? x->row_d : x->n;
    bool mapped = encode && map_matrix(&p.a, encode, a, bytes, x->m, x->k, row_a, ROWS, DEPTH) &&
                  map_matrix(&p.b, encode, b, bytes, x->n, x->k, row_b, PART, DEPTH) &&
                  map_matrix(&p.d, encode, d, bytes_d, x->m, x->n, row_d, 64, bytes_d ? 64 : 128) &&
                  (!transposed ||
                   map_matrix(&p.transposed, encode, transposed, true, x->n, x->m, x->m, 64, 64));
    p.bits = (uint32_t *)bits;
    p.alpha = (float)(x->alpha * x->unit), p.scale = (float)x->scale;
    p.depth = bytes ? DEPTH : DEPTH / 2;
    p.slabs = (int)basin_cuda_ceil(x->k, p.depth);
    p.blocks_m = (int)basin_cuda_ceil(x->m, 64), p.blocks_n = (int)(x->n / 64);
    p.tiles_n = (int)basin_cuda_ceil(x->n, COLUMNS);
    p.tiles = (int)basin_cuda_ceil(x->m, ROWS * CLUSTER) * p.tiles_n;
    BASIN_CUDA_TRY(cuda,
                   mapped ? start_any(cuda, &p, x, transposed != NULL) : cudaErrorInvalidValue);
}
