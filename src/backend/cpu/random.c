/* Counter-based draws: element i is a function of the seed, the stream and i alone, so any thread
 * may fill any range. The numbers are those of basin/random.h. */
#include "backend/cpu/cpu.h"

enum { PIECE = 4096 };

static void draw(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    const int32_t *word = frame->in[0]; /* [2]: low, high */
    uint64_t seed = (uint64_t)(uint32_t)word[1] << 32 | (uint32_t)word[0];
    basin_simd_fill *fill =
        frame->call->op == BASIN_OP_NORMAL ? frame->simd->normal : frame->simd->uniform;
    float *out = frame->out[0];
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    int64_t begin = first * PIECE, end = last * PIECE < count ? last * PIECE : count;
    fill(out + begin, seed, frame->call->attr.stream, (uint64_t)begin, (size_t)(end - begin));
    double drop = frame->call->attr.drop;
    for (int64_t i = begin; i < end && drop > 0; i++) out[i] = (double)out[i] > drop ? 1.0F : 0.0F;
}

static void share_draws(const basin_cpu_frame *frame) {
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    basin_cpu_share(frame, draw, (count + PIECE - 1) / PIECE, count * 8);
}

void basin_cpu_normal(const basin_cpu_frame *frame) { share_draws(frame); }

void basin_cpu_uniform(const basin_cpu_frame *frame) { share_draws(frame); }
