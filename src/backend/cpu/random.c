/* Counter-based draws: element i is a function of the seed, the stream and i alone, so any thread
 * may fill any range. The numbers are those of basin/random.h. */
#include "basin/random.h"

#include "backend/cpu/cpu.h"

enum { PIECE = 4096 };

typedef void fill_function(float *out, uint64_t seed, uint64_t stream, uint64_t first,
                           size_t count);

static void draw(const basin_cpu_frame *frame, fill_function *fill) {
    const int32_t *word = frame->in[0]; /* [2]: low, high */
    uint64_t seed = (uint64_t)(uint32_t)word[1] << 32 | (uint32_t)word[0];
    float *out = frame->out[0];
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    int team = basin_cpu_team(frame, count * 8);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < count; i += PIECE)
        fill(out + i, seed, frame->call->attr.stream, (uint64_t)i,
             (size_t)(count - i < PIECE ? count - i : PIECE));
}

void basin_cpu_normal(const basin_cpu_frame *frame) { draw(frame, basin_random_fill_normal); }

void basin_cpu_uniform(const basin_cpu_frame *frame) { draw(frame, basin_random_fill_uniform); }
