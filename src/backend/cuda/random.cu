/* Random draws: element i of the stream attr.stream under the seed the operand holds, as
 * basin/random.h defines them; the arithmetic, and so the bits, are those of base/philox.h. */
#include "backend/cuda/elements.h"
#include "backend/cuda/inside.h"
#include "base/philox.h"

enum { THREADS = 256 };

/* Several at once, of which each has blocks of its own. */
struct draws {
    basin_sink out[BASIN_CONCURRENT];
    const uint32_t *seed[BASIN_CONCURRENT];
    int64_t count[BASIN_CONCURRENT];
    uint32_t stream[BASIN_CONCURRENT];
    bool normal[BASIN_CONCURRENT], masks[BASIN_CONCURRENT];
    uint32_t limit[BASIN_CONCURRENT]; /* of masks: the largest draw that becomes 0, times 2^24 */
    unsigned first[BASIN_CONCURRENT + 1]; /* block */
};

/* A thread makes the four elements of one call of Philox. */
static __global__ void draw(const __grid_constant__ draws d) {
    int k = 0;
    while (blockIdx.x >= d.first[k + 1]) k++;
    int64_t count = d.count[k], calls = (count + 3) / 4, block = blockIdx.x - d.first[k];
    int64_t step = (int64_t)(d.first[k + 1] - d.first[k]) * THREADS;
    for (int64_t call = block * THREADS + threadIdx.x; call < calls; call += step) {
        uint32_t word[4] = {(uint32_t)call, (uint32_t)(call >> 32), d.stream[k], 0};
        uint32_t key[2] = {d.seed[k][0], d.seed[k][1]};
        float value[4];
#pragma unroll
        for (int round = 0; round < 10; round++, basin_philox_next(key))
            basin_philox_round(word, key);
        BASIN_UNROLL (i, 4) value[i] = word[i] >> 8 > d.limit[k] ? 1.0f : 0.0f;
#pragma unroll
        for (int i = 0; i < 4 && !d.masks[k]; i += 2) {
            double even = basin_uniform_of(word[i]), odd = basin_uniform_of(word[i + 1]);
            if (d.normal[k]) basin_normals_of(&even, &odd, word[i], word[i + 1]);
            value[i] = (float)even, value[i + 1] = (float)odd;
        }
        if (4 * call + 4 <= count)
            basin_write<4>(d.out[k], 4 * call, value);
        else
            for (int i = 0; i < 4 && 4 * call + i < count; i++)
                basin_write_one(d.out[k], 4 * call + i, value[i]);
    }
}

void basin_cuda_random_many(const basin_cuda_frame *frame, int frames) {
    draws d = {};
    unsigned blocks = 0;
    for (int i = 0; i < frames; i++) {
        const basin_shape *shape = &frame[i].call->out[0].shape;
        d.out[i] = basin_cuda_sink(&frame[i], 0);
        d.seed[i] = (const uint32_t *)frame[i].in[0];
        d.count[i] = basin_shape_product(shape, 0, shape->rank);
        d.stream[i] = frame[i].call->attr.stream;
        d.normal[i] = frame[i].call->op == BASIN_OP_NORMAL;
        d.masks[i] = frame[i].call->attr.drop > 0;
        d.limit[i] = (uint32_t)(frame[i].call->attr.drop * 0x1p24);
        blocks += basin_cuda_grid(frame->cuda, (d.count[i] + 3) / 4, THREADS);
        d.first[i + 1] = blocks;
    }
    if (!blocks) return;
    draw<<<blocks, THREADS, 0, frame->stream>>>(d);
    BASIN_CUDA_LAUNCHED(frame->cuda, "random draws");
}

void basin_cuda_random(const basin_cuda_frame *frame) { basin_cuda_random_many(frame, 1); }
