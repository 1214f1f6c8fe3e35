/* Random draws: element i of the stream attr.stream under the seed the operand holds, as
 * basin/random.h defines them; the arithmetic, and so the bits, are those of base/philox.h. */
#include "backend/cuda/elements.h"
#include "backend/cuda/inside.h"
#include "base/philox.h"

enum { THREADS = 256 };

/* A thread makes the four elements of one call of Philox. */
static __global__ void draw(basin_sink out, const uint32_t *seed, uint32_t stream, int64_t count,
                            bool normal) {
    int64_t calls = (count + 3) / 4;
    for (int64_t call = (int64_t)blockIdx.x * THREADS + threadIdx.x; call < calls;
         call += (int64_t)gridDim.x * THREADS) {
        uint32_t word[4] = {(uint32_t)call, (uint32_t)(call >> 32), stream, 0};
        uint32_t key[2] = {seed[0], seed[1]};
        float value[4];
#pragma unroll
        for (int round = 0; round < 10; round++, basin_philox_next(key))
            basin_philox_round(word, key);
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            double even = basin_uniform_of(word[i]), odd = basin_uniform_of(word[i + 1]);
            if (normal) basin_normals_of(&even, &odd, word[i], word[i + 1]);
            value[i] = (float)even, value[i + 1] = (float)odd;
        }
        if (4 * call + 4 <= count)
            basin_write<4>(out, 4 * call, value);
        else
            for (int i = 0; i < 4 && 4 * call + i < count; i++)
                basin_write_one(out, 4 * call + i, value[i]);
    }
}

void basin_cuda_random(const basin_cuda_frame *frame) {
    const basin_shape *shape = &frame->call->out[0].shape;
    int64_t count = basin_shape_product(shape, 0, shape->rank);
    if (count == 0) return;
    draw<<<basin_cuda_grid(frame->cuda, (count + 3) / 4, THREADS), THREADS, 0, frame->stream>>>(
        basin_cuda_sink(frame, 0), (const uint32_t *)frame->in[0], frame->call->attr.stream, count,
        frame->call->op == BASIN_OP_NORMAL);
    BASIN_CUDA_LAUNCHED(frame->cuda, "random draws");
}
