/* Tiles of a product of bfloat16 or of bytes on Hopper (wgmma, sm_90a), as a warpgroup makes them.
 * A block stays on its multiprocessor and takes tiles of 128 x 192, one after the other. One thread
 * queues copies of 128 bytes of the rows of A and of B that a tile needs, slabs, into a ring in
 * shared memory (TMA). Two warpgroups take tiles in turn, so that one makes something of its sums
 * while the other multiplies. What the kernels make of them: product/relu_sm90a.cu. */
#ifndef BASIN_BACKEND_CUDA_PRODUCT_TILE_SM90A_H
#define BASIN_BACKEND_CUDA_PRODUCT_TILE_SM90A_H

#include "engine/backend/cuda/attention/tma.h"
#include "engine/backend/cuda/attention/wgmma.h"
#include "engine/backend/cuda/inside.h"

enum {
    CLUSTER = 2, /* blocks that share rows of B */
    HALVES = 2,  /* of 64 rows, in a tile */
    ROWS = 64 * HALVES,
    COLUMNS = 192,
    DEPTH = 128, /* bytes of a row of A and B in a slab: the swizzle */
    STAGES = 4,  /* of the ring: slabs */
    A_BYTES = ROWS * 128,
    B_BYTES = COLUMNS * 128,
    STAGE_BYTES = A_BYTES + B_BYTES,
    BLOCKS_ACROSS = COLUMNS / 64, /* of 64 x 64, in a tile */
    BLOCKS = HALVES * BLOCKS_ACROSS,
    PIECE_BYTES = 64 * 128,  /* such a block of bfloat16, on its way out */
    TRANSPOSED_AT = 64 * 64, /* in a piece of bytes: the same the other way round */
    THREADS = 384,           /* two warpgroups that multiply, one of which a thread fetches */
    /* shared memory: the ring, from a multiple of 1,024 on, barriers, other data of the kernel */
    FULL_AT = STAGES * STAGE_BYTES,
    EMPTY_AT = FULL_AT + 8 * STAGES,
    TURN_AT = EMPTY_AT + 8 * STAGES,
    FREE_AT = FULL_AT + 1024,
};
static_assert(TURN_AT + 16 <= FREE_AT, "barriers fit between the ring and the rest");

/* ---- barriers in shared memory, by address; see also attention/wgmma.h ---- */

/* At the barrier of block `rank` of the cluster. Nothing but the arrival is made known there: with
 * the scope of a cluster this would wait for all of the thread's memory traffic. */
BASIN_DEVICE void barrier_arrive_at(uint32_t barrier, int rank) {
    asm volatile("{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];}" ::"r"(barrier),
                 "r"(rank)
                 : "memory");
}
BASIN_DEVICE void meet_cluster() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

/* ---- copies ---- */

/* A box of the matrix from column x, row y on into shared memory. */
BASIN_DEVICE void fetch(uint32_t to, const CUtensorMap *map, int x, int y, uint32_t barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier)
                 : "memory");
}
/* The same into that of all blocks of the cluster. */
BASIN_DEVICE void fetch_for_all(uint32_t to, const CUtensorMap *map, int x, int y,
                                uint32_t barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(x), "r"(y), "r"(barrier), "h"((uint16_t)((1 << CLUSTER) - 1))
                 : "memory");
}
BASIN_DEVICE void send(const CUtensorMap *map, uint32_t from, int x, int y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
        "r"(x), "r"(y), "r"(from)
        : "memory");
}
BASIN_DEVICE void close_sent() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/* Until all that were sent but the last `KEPT` have been read. */
template <int KEPT> BASIN_DEVICE void wait_sent() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(KEPT) : "memory");
}

/* ---- products ---- */

#define BASIN_F96(d)                                                                               \
    BASIN_F56("+f", d), BASIN_F8("+f", d, 56), BASIN_F8("+f", d, 64), BASIN_F8("+f", d, 72),       \
        BASIN_F8("+f", d, 80), BASIN_F8("+f", d, 88)
#define BASIN_R96                                                                                  \
    BASIN_R56 ", %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, " \
              "%72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, "   \
              "%88, %89, %90, %91, %92, %93, %94, %95"

/* What A and B are: bfloat16, e4m3, or A e5m2 and B e4m3. */
enum factors { FACTORS_BF16, FACTORS_E4M3, FACTORS_E5M2 };

/* r [64, 192] += x y', of 32 bytes of 64 rows and of 192 of tables (attention/wgmma.h) */
template <factors FACTORS>
BASIN_DEVICE void add_product(float (&r)[COLUMNS / 2], uint64_t x, uint64_t y) {
    static_assert(COLUMNS == 192, "as wide as the instruction");
    if constexpr (FACTORS == FACTORS_BF16)
        asm volatile("wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {" BASIN_R96
                     "}, %96, %97, 1, 1, 1, 0, 0;"
                     : BASIN_F96(r)
                     : "l"(x), "l"(y));
    else if constexpr (FACTORS == FACTORS_E4M3)
        asm volatile("wgmma.mma_async.sync.aligned.m64n192k32.f32.e4m3.e4m3 {" BASIN_R96
                     "}, %96, %97, 1, 1, 1;"
                     : BASIN_F96(r)
                     : "l"(x), "l"(y));
    else
        asm volatile("wgmma.mma_async.sync.aligned.m64n192k32.f32.e5m2.e4m3 {" BASIN_R96
                     "}, %96, %97, 1, 1, 1;"
                     : BASIN_F96(r)
                     : "l"(x), "l"(y));
}

/* The ring of stages, followed by whoever fills or empties it. */
struct ring {
    int stage;
    uint32_t parity;
    BASIN_METHOD void at(int slab) {
        stage = slab % STAGES, parity = (uint32_t)(slab / STAGES & 1);
    }
    BASIN_METHOD void next() {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

/* ---- a tile ---- */

/* As basin_wgmma_table. */
BASIN_DEVICE uint64_t table_at(uint32_t address) {
    return (uint64_t)(address & 0x3ffff) >> 4 | (uint64_t)64 << 16 | (uint64_t)64 << 32 |
           (uint64_t)1 << 62;
}

/* Frees a stage, in all blocks that fill it. */
BASIN_DEVICE void release(uint32_t empty) {
    int lane = (int)threadIdx.x % 32;
    if (lane < CLUSTER) barrier_arrive_at(empty, lane);
}

/* Sums of a tile, the slabs of which begin at stage r; then the other warpgroup has its turn, once
 * this one has seen the last of its slabs: barriers distinguish one round of the ring from the
 * next, but not from the one after that. */
template <factors FACTORS>
BASIN_DEVICE void multiply_tile(float (&sum)[HALVES][COLUMNS / 2], ring r, uint32_t base, int slabs,
                                uint32_t next_turn) {
    uint32_t before = 0;
    BASIN_UNROLL (h, HALVES)
        BASIN_UNROLL (i, COLUMNS / 2) sum[h][i] = 0;
    for (int slab = 0; slab < slabs; slab++, r.next()) {
        uint32_t stage = base + (uint32_t)(r.stage * STAGE_BYTES);
        uint64_t a = table_at(stage), b = table_at(stage + A_BYTES);
        barrier_wait(base + FULL_AT + (uint32_t)r.stage * 8, r.parity);
        basin_wgmma_fence();
        BASIN_UNROLL (step, DEPTH / 32)
            BASIN_UNROLL (h, HALVES)
                add_product<FACTORS>(sum[h], a + (uint64_t)(h * 512 + step * 2),
                                     b + (uint64_t)(step * 2));
        basin_wgmma_close();
        basin_wgmma_wait<1>();
        if (slab > 0) release(before);
        before = base + EMPTY_AT + (uint32_t)r.stage * 8;
    }
    if (threadIdx.x % 32 == 0) barrier_arrive(next_turn);
    basin_wgmma_wait<0>();
    release(before);
    BASIN_UNROLL (h, HALVES) basin_wgmma_pin(sum[h]);
}

/* Two neighbours as bfloat16, the first below. */
template <bool RELU> BASIN_DEVICE uint32_t narrow_pair(float first, float second) {
    uint32_t pair;
    if (RELU)
        asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

/* The thread's 32 numbers of 64 x 64 to a piece of shared memory, bfloat16; RELU: at least 0. */
template <bool RELU, typename F> BASIN_DEVICE void write_piece(uint32_t piece, F number) {
    int thread = (int)threadIdx.x % 128, lane = thread % 32;
    uint32_t row = piece + (uint32_t)(thread / 32 * 16 + lane / 8 % 2 * 8 + lane % 8) * 128;
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
        uint32_t pair[4];
        BASIN_UNROLL (k, 4)
            pair[k] = narrow_pair<RELU>(number(i * 4 + k * 2), number(i * 4 + k * 2 + 1));
        uint32_t to = row + (uint32_t)(((i + lane / 16) ^ lane % 8) << 4);
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                     "r"(pair[0]), "r"(pair[1]), "r"(pair[2]), "r"(pair[3])
                     : "memory");
    }
}

/* The same as bytes, in rows of 64 with the copy engine's swizzle of 64 bytes. Neighbours exchange
 * pairs, so that four lanes write 16 bytes in a row. pair[h]: of columns from 8 i on, those of 8
 * rows and of the 8 below; pair[2 + h]: 8 columns on. */
BASIN_DEVICE void write_pairs(uint32_t piece, int i, const uint32_t *pair) {
    int thread = (int)threadIdx.x % 128, lane = thread % 32, t = lane % 4;
    bool odd = t & 1;
    BASIN_UNROLL (h, 2) {
        int row = thread / 32 * 16 + lane / 4 + h * 8;
        uint32_t low = pair[h], high = pair[2 + h];
        uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? low : high, 1);
        uint32_t word = odd ? other | high << 16 : low | other << 16;
        uint32_t to =
            piece + (uint32_t)(row * 64 + ((i / 2 ^ row / 2 % 4) << 4) + t % 2 * 8 + t / 2 * 4);
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
    }
}

/* The other way round, 32 columns of 64 rows from column 8 i on, as rows of 64: pair[2 k + h] is
 * that of columns 8 (i + k). A lane collects two neighbouring rows of its warp's 16, in place of
 * two that are 8 apart, so that what is a matrix of pairs can be stored transposed. */
BASIN_DEVICE void write_transposed(uint32_t piece, int i, const uint32_t *pair) {
    int thread = (int)threadIdx.x % 128, lane = thread % 32;
    int from = lane / 4 * 2 % 8 * 4 + lane % 4, column = (i + lane / 8) * 8 + lane % 8;
    uint32_t order = lane < 16 ? 0x5140 : 0x7362, word[4];
    BASIN_UNROLL (k, 4) {
        uint32_t both = pair[2 * k] | pair[2 * k + 1] << 16;
        uint32_t first = __shfl_sync(0xffffffffu, both, from);
        uint32_t second = __shfl_sync(0xffffffffu, both, from + 4);
        word[k] = __byte_perm(first, second, order);
    }
    uint32_t to = piece + (uint32_t)(column * 64 + ((thread / 32 ^ column / 2 % 4) << 4));
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
                 : "memory");
}

/* The thread's 32 numbers of 64 x 64 as bytes; TRANSPOSED: followed by the transposed ones.
 */
template <bool FIVE, bool RELU, bool TRANSPOSED, typename F>
BASIN_DEVICE void write_bytes(uint32_t piece, F number) {
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        uint32_t pair[8];
        BASIN_UNROLL (k, 8)
            pair[k] = basin_two_bytes<FIVE, RELU>(number(i * 4 + k * 2), number(i * 4 + k * 2 + 1));
        write_pairs(piece, i, pair);
        write_pairs(piece, i + 2, pair + 4);
        if (TRANSPOSED) write_transposed(piece + TRANSPOSED_AT, i, pair);
    }
}

BASIN_DEVICE void meet_warpgroup(int which) {
    asm volatile("bar.sync %0, 128;" ::"r"(which + 1) : "memory");
}

/* ---- the kernel around it ---- */

/* The barriers of the ring and of turns, by one thread. */
BASIN_DEVICE void ring_new(uint32_t base) {
    for (uint32_t i = 0; i < STAGES; i++) {
        barrier_new(base + FULL_AT + i * 8, 1);
        barrier_new(base + EMPTY_AT + i * 8, 4 * CLUSTER); /* the warps that use it */
    }
    for (uint32_t i = 0; i < 2; i++) barrier_new(base + TURN_AT + i * 8, 4);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Whose turn it is: warpgroup `which` at its tile number i. */
BASIN_DEVICE void wait_turn(uint32_t base, int which, int i) {
    if (i > 0) barrier_wait(base + TURN_AT + (uint32_t)which * 8, (uint32_t)((i - 1) / 2 & 1));
}
BASIN_DEVICE uint32_t next_turn(uint32_t base, int which) {
    return base + TURN_AT + (uint32_t)(8 - which * 8);
}

/* ---- matrices for the copy engine ---- */

/* A matrix [rows, columns] of bfloat16 or bytes in boxes of box_rows x box_bytes (swizzle). */
static bool map_matrix(CUtensorMap *map, basin_encoder encode, const void *x, bool bytes,
                       int64_t rows, int64_t columns, int64_t apart, int box_rows, int box_bytes) {
    size_t element = bytes ? 1 : sizeof(basin_bf16);
    cuuint64_t size[2] = {(cuuint64_t)columns, (cuuint64_t)rows};
    cuuint64_t stride[1] = {(cuuint64_t)apart * element};
    cuuint32_t box[2] = {(cuuint32_t)((size_t)box_bytes / element), (cuuint32_t)box_rows};
    cuuint32_t step[2] = {1, 1};
    return encode(map, bytes ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
                  (void *)x, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  box_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/* Whether tiles take a product's sizes: A [m, k], B [n, k], rows at multiples of 16 bytes. */
static inline bool takes_tiles(const basin_cuda *cuda, const basin_cuda_product *p) {
    const int64_t maximum = INT32_MAX / 2, unit = basin_kind_is_byte(p->kind_a) ? 16 : 8;
    const int64_t unit_d = basin_kind_is_byte(p->kind_d) ? 16 : 8;
    bool kind = p->batch == 1 && !p->transpose_a && p->transpose_b && p->narrow_factors;
    bool sizes = p->k > 0 && p->k % unit == 0 && p->n % 64 == 0 && p->m <= maximum &&
                 p->n <= maximum && p->k <= maximum && p->m / 64 * (p->n / 64) <= maximum;
    bool rows = p->row_a % unit == 0 && p->row_b % unit == 0 && p->row_d % unit_d == 0;
    return kind && sizes && rows && cuda->capability == 90 && basin_tma_encoder();
}

#endif
