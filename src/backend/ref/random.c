/* Random draws: element i of the stream attr.stream under the seed the operand holds, as
 * basin/random.h defines them. */
#include "basin/random.h"

#include "backend/ref/ref.h"

static uint64_t seed_of(const int32_t *seed /* [2], low and high word */) {
    return (uint64_t)(uint32_t)seed[0] | (uint64_t)(uint32_t)seed[1] << 32;
}

void basin_ref_normal(const basin_ref_frame *frame) {
    uint64_t seed = seed_of(frame->in[0]);
    double *y = frame->out[0];
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    for (int64_t i = 0; i < count; i++)
        y[i] = basin_random_normal_at(seed, frame->call->attr.stream, (uint64_t)i);
}

void basin_ref_uniform(const basin_ref_frame *frame) {
    uint64_t seed = seed_of(frame->in[0]);
    double *y = frame->out[0];
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    for (int64_t i = 0; i < count; i++)
        y[i] = (double)basin_random_uniform_at(seed, frame->call->attr.stream, (uint64_t)i);
    double drop = frame->call->attr.drop;
    for (int64_t i = 0; i < count && drop > 0; i++) y[i] = y[i] > drop ? 1 : 0;
}
