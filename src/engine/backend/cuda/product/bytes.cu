/* Numbers as bytes, e4m3 or e5m2, where no kernel stores them: copies of weights and rows of
 * tokens, and transposes for products along rows (plan/passes/bytes.c). */
#include "engine/backend/cuda/elements.h"
#include "engine/backend/cuda/inside.h"

/* ---- copies ---- */

/* Eight neighbours a thread; columns and strides are multiples of 8. */
template <typename T>
static __global__ void store_rows(basin_sink to, int64_t to_apart, const T *from,
                                  int64_t from_apart, int64_t rows, int64_t columns) {
    int64_t items = rows * (columns / 8);
    BASIN_GRID (i, items, blockDim.x) {
        int64_t row = i / (columns / 8), column = i % (columns / 8) * 8;
        basin_pack<T, 8> pack = *(const basin_pack<T, 8> *)(from + row * from_apart + column);
        float x[8];
        BASIN_UNROLL (j, 8) x[j] = basin_to_float(pack.v[j]);
        basin_write_any<8>(to, row * to_apart + column, x);
    }
}

void basin_cuda_bytes_store(basin_cuda *cuda, void *to, const basin_operand *operand,
                            const void *from, bool narrow, int64_t from_apart, int64_t rows,
                            int64_t columns) {
    int64_t apart = operand->stride ? operand->stride : columns;
    if (rows == 0 || columns == 0) return;
    if (columns % 8 != 0 || apart % 8 != 0) {
        if (cuda->error.status == BASIN_OK)
            basin_fail(&cuda->error, BASIN_UNSUPPORTED,
                       "backend cuda: bytes of %lld columns, %lld apart; expected multiples of 8",
                       (long long)columns, (long long)apart);
        return;
    }
    basin_sink sink = basin_cuda_sink_of(to, operand);
    basin_cuda_typed(narrow ? BASIN_NARROW : BASIN_REAL, [&](auto zero) {
        using T = decltype(zero);
        store_rows<T><<<basin_cuda_grid(cuda, rows * columns / 8, 256), 256, 0, cuda->stream>>>(
            sink, apart, (const T *)from, from_apart ? from_apart : columns, rows, columns);
    });
    BASIN_CUDA_LAUNCHED(cuda, "bytes");
}

void basin_cuda_bytes_copy(const basin_cuda_frame *frame) {
    const basin_operand *out = &frame->call->out[0];
    int64_t columns = out->shape.rank ? out->shape.dim[out->shape.rank - 1] : 1;
    int64_t count = basin_shape_product(&out->shape, 0, out->shape.rank);
    if (basin_cuda_codes_collecting(frame->cuda) || count == 0) return;
    basin_cuda_bytes_store(frame->cuda, frame->out[0], out, frame->in[0],
                           frame->call->in[0].kind == BASIN_NARROW, 0, count / columns, columns);
}

/* ---- transposes ---- */

enum { TILE = 128, WORDS = TILE / 4, GROUPS = TILE / 16, THREADS = 256 };

/* Column j of four rows of four bytes, as the word to[j]. */
BASIN_DEVICE void turn_four(uint32_t (&to)[4], const uint32_t *row) {
    uint32_t low = __byte_perm(row[0], row[1], 0x5140), high = __byte_perm(row[0], row[1], 0x7362);
    uint32_t low2 = __byte_perm(row[2], row[3], 0x5140),
             high2 = __byte_perm(row[2], row[3], 0x7362);
    to[0] = __byte_perm(low, low2, 0x5410), to[1] = __byte_perm(low, low2, 0x7632);
    to[2] = __byte_perm(high, high2, 0x5410), to[3] = __byte_perm(high, high2, 0x7632);
}

/* to [columns, rows] = from [rows, columns]', rows of `from` `apart` from one to the next; 128 x
 * 128 at a time through shared memory, both sides 16 bytes at a time. Rows and columns are
 * multiples of
 * 16. A thread turns 16 rows of 4 columns; the words of row group g lie at w ^ 4 g, so that the
 * lanes of a warp, 8 groups of 4 words, find them in different banks. */
static __global__ void __launch_bounds__(THREADS)
    turn_tiles(uint8_t *to, const uint8_t *from, int64_t rows, int64_t columns, int64_t apart) {
    __shared__ __align__(16) uint32_t tile[TILE][WORDS];
    int64_t row = (int64_t)blockIdx.x * TILE, column = (int64_t)blockIdx.y * TILE;
    int thread = (int)threadIdx.x, chunk = thread % 8;
#pragma unroll
    for (int i = thread / 8; i < TILE; i += THREADS / 8)
        if (row + i < rows && column + chunk * 16 < columns)
            *(uint4 *)&tile[i][(chunk ^ i / 16) * 4] =
                *(const uint4 *)(from + (row + i) * apart + column + chunk * 16);
    __syncthreads();
    int group = thread % 32 / 4, word = thread / 32 * 4 + thread % 4;
    if (row + group * 16 >= rows || column + word * 4 >= columns) return;
    uint32_t x[16], y[4][4];
    BASIN_UNROLL (k, 16) x[k] = tile[group * 16 + k][word ^ group * 4];
    BASIN_UNROLL (k, 4) turn_four(y[k], x + k * 4);
    BASIN_UNROLL (j, 4)
        *(uint4 *)(to + (column + word * 4 + j) * rows + row + group * 16) =
            make_uint4(y[0][j], y[1][j], y[2][j], y[3][j]);
}
static_assert(GROUPS * 4 == 32 && THREADS / 32 * 4 == WORDS, "a thread for 16 rows of 4 columns");

void basin_cuda_bytes_turn(basin_cuda *cuda, void *to, const void *from, int64_t apart,
                           int64_t rows, int64_t columns) {
    dim3 grid((unsigned)basin_cuda_ceil(rows, TILE), (unsigned)basin_cuda_ceil(columns, TILE));
    turn_tiles<<<grid, THREADS, 0, cuda->stream>>>((uint8_t *)to, (const uint8_t *)from, rows,
                                                   columns, apart ? apart : columns);
    BASIN_CUDA_LAUNCHED(cuda, "transpose of bytes");
}

/* Masks of products, a bit per element, where no kernel writes or reads them with the product:
 * of each 64 x 64 of it 128 words, in the order given in product/relu_sm90a.cu. */

/* Where bit `bit` of word `word` lies in the matrix. */
struct bit_place {
    int64_t row, column;
};
BASIN_DEVICE bit_place place_of(int64_t word, int bit, int64_t n) {
    int64_t block = word / 128, across = n / 64;
    int thread = (int)(word % 128);
    return {block / across * 64 + thread / 32 * 16 + thread % 32 / 4 + bit / 2 % 2 * 8,
            block % across * 64 + bit / 4 * 8 + thread % 4 * 2 + bit % 2};
}

/* x [m, n], rows `apart` from one to the next */
template <typename T>
static __global__ void write_mask(uint32_t *mask, const T *x, int64_t words, int64_t m, int64_t n,
                                  int64_t apart) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t word = 0;
    if (i >= words) return;
    for (int bit = 0; bit < 32; bit++) {
        bit_place at = place_of(i, bit, n);
        if (at.row < m && basin_to_float(x[at.row * apart + at.column]) > 0.0f) word |= 1u << bit;
    }
    mask[i] = word;
}

/* x = 0 where no bit is set */
template <typename T>
static __global__ void apply_mask(T *x, const uint32_t *mask, int64_t words, int64_t m, int64_t n,
                                  int64_t apart) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= words) return;
    uint32_t word = mask[i];
    for (int bit = 0; bit < 32; bit++) {
        bit_place at = place_of(i, bit, n);
        if (at.row < m && !(word >> bit & 1))
            x[at.row * apart + at.column] = basin_from_float<T>(0.0f);
    }
}

/* Calls f(zero of the result's type, blocks, words, elements from row to row). */
template <typename F> static void each_word(basin_cuda *cuda, const basin_cuda_product *p, F f) {
    int64_t words = basin_cuda_ceil(p->m, 64) * (p->n / 64) * 128;
    basin_cuda_typed(p->narrow_result ? BASIN_NARROW : BASIN_REAL, [&](auto zero) {
        f(zero, (unsigned)basin_cuda_ceil(words, 256), words, p->row_d ? p->row_d : p->n);
    });
    BASIN_CUDA_LAUNCHED(cuda, "mask");
}

void basin_cuda_mask_write(basin_cuda *cuda, const basin_cuda_product *p, void *mask,
                           const void *d) {
    each_word(cuda, p, [&](auto zero, unsigned blocks, int64_t words, int64_t apart) {
        using T = decltype(zero);
        write_mask<T><<<blocks, 256, 0, cuda->stream>>>((uint32_t *)mask, (const T *)d, words, p->m,
                                                        p->n, apart);
    });
}

void basin_cuda_mask_apply(basin_cuda *cuda, const basin_cuda_product *p, void *d,
                           const void *mask) {
    each_word(cuda, p, [&](auto zero, unsigned blocks, int64_t words, int64_t apart) {
        using T = decltype(zero);
        apply_mask<T><<<blocks, 256, 0, cuda->stream>>>((T *)d, (const uint32_t *)mask, words, p->m,
                                                        p->n, apart);
    });
}
