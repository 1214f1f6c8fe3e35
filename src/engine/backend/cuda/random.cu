/* Random draws: element i of the stream attr.stream under the seed the operand holds, as
 * basin/random.h defines them; the arithmetic, and so the bits, are those of engine/core/philox.h.
 */
#include "engine/backend/cuda/elements.h"
#include "engine/backend/cuda/inside.h"
#include "engine/core/philox.h"

enum { THREADS = 256 };

struct draws {
    basin_sink out;
    const uint32_t *seed;
    int64_t count;
    uint32_t stream;
    bool normal, masks;
    uint32_t limit; /* of masks: the largest draw that becomes 0, times 2^24 */
};

/* A thread makes the four elements of one call of Philox. */
static __global__ void draw(const draws d) {
    int64_t count = d.count, calls = (count + 3) / 4, step = (int64_t)gridDim.x * THREADS;
    for (int64_t call = (int64_t)blockIdx.x * THREADS + threadIdx.x; call < calls; call += step) {
        uint32_t word[4] = {(uint32_t)call, (uint32_t)(call >> 32), d.stream, 0};
        uint32_t key[2] = {d.seed[0], d.seed[1]};
        float value[4];
#pragma unroll
        for (int round = 0; round < 10; round++, basin_philox_next(key))
            basin_philox_round(word, key);
        BASIN_UNROLL (i, 4) value[i] = word[i] >> 8 > d.limit ? 1.0f : 0.0f;
#pragma unroll
        for (int i = 0; i < 4 && !d.masks; i += 2) {
            double even = basin_uniform_of(word[i]), odd = basin_uniform_of(word[i + 1]);
            if (d.normal) basin_normals_of(&even, &odd, word[i], word[i + 1]);
            value[i] = (float)even, value[i + 1] = (float)odd;
        }
        if (4 * call + 4 <= count)
            basin_write<4>(d.out, 4 * call, value);
        else
            for (int i = 0; i < 4 && 4 * call + i < count; i++)
                basin_write_one(d.out, 4 * call + i, value[i]);
    }
}

void basin_cuda_random(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    int64_t count = basin_shape_product(&call->out[0].shape, 0, call->out[0].shape.rank);
    if (!count) return;
    draws d = {basin_cuda_sink(frame, 0),
               (const uint32_t *)frame->in[0],
               count,
               call->attr.stream,
               call->op == BASIN_OP_NORMAL,
               call->attr.drop > 0,
               (uint32_t)(call->attr.drop * 0x1p24)};
    unsigned blocks = basin_cuda_grid(frame->cuda, (count + 3) / 4, THREADS);
    draw<<<blocks, THREADS, 0, frame->stream>>>(d);
    BASIN_CUDA_LAUNCHED(frame->cuda, "random draws");
}
