/* Narrow operands for kernels that take float: copies in the workspace, see cpu.h. */
#include "backend/cpu/cpu.h"
#include "backend/shape.h"
#include "base/team/team.h"

enum { PIECE = 1 << 14 }; /* numbers that a thread takes at a time */

static int64_t count_of(const basin_operand *operand) {
    return basin_shape_product(&operand->shape, 0, operand->shape.rank);
}

static size_t bytes_of(const basin_operand *operand) {
    if (operand->block < 0 || operand->kind != BASIN_NARROW) return 0;
    return ((size_t)count_of(operand) * sizeof(float) + 63) / 64 * 64;
}

size_t basin_cpu_widened_bytes(const basin_call *call) {
    size_t bytes = 0;
    for (int i = 0; i < call->ins; i++) bytes += bytes_of(&call->in[i]);
    for (int i = 0; i < call->outs; i++) bytes += bytes_of(&call->out[i]);
    return bytes;
}

typedef struct conversion {
    const basin_cpu_frame *frame;
    float *wide;
    uint16_t *narrow;
    bool widens;
} conversion;

static void convert_some(const void *context, int64_t first, int64_t last, int place) {
    (void)place;
    const conversion *c = context;
    if (c->widens)
        c->frame->simd->widen(c->wide + first, c->narrow + first, last - first);
    else
        c->frame->simd->narrow(c->narrow + first, c->wide + first, last - first);
}

/* All of an operand, to float or back: one of the two pointers is the source. */
static void convert(const basin_cpu_frame *frame, float *wide, uint16_t *narrow, int64_t count,
                    bool widens) {
    conversion c = {frame, wide, narrow, widens};
    basin_team_run(convert_some, &c, count, PIECE, basin_cpu_team(frame, count));
}

void *basin_cpu_widen(const void **in, void **out, const basin_cpu_frame *frame) {
    const basin_call *call = frame->call;
    char *room = frame->workspace;
    for (int i = 0; i < BASIN_MAX_IN; i++) {
        in[i] = i < call->ins ? frame->in[i] : NULL;
        size_t bytes = i < call->ins ? bytes_of(&call->in[i]) : 0;
        if (bytes == 0) continue;
        convert(frame, (float *)room, (uint16_t *)(uintptr_t)frame->in[i], count_of(&call->in[i]),
                true);
        in[i] = room;
        room += bytes;
    }
    for (int i = 0; i < BASIN_MAX_OUT; i++) {
        out[i] = i < call->outs ? frame->out[i] : NULL;
        size_t bytes = i < call->outs ? bytes_of(&call->out[i]) : 0;
        if (bytes == 0) continue;
        out[i] = room;
        room += bytes;
    }
    return room;
}

void basin_cpu_narrow(const basin_cpu_frame *frame, void *const *out) {
    for (int i = 0; i < frame->call->outs; i++)
        if (bytes_of(&frame->call->out[i]) > 0)
            convert(frame, out[i], frame->out[i], count_of(&frame->call->out[i]), false);
}
