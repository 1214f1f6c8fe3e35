/* Layer norm with a scalar gain, g = gamma n + delta, n = (x - mean) / sqrt(var + eps), and its
 * reverse: dx = gamma (c - mean(c) - n mean(c n)) / sqrt(var + eps), dgamma = sum c n and
 * ddelta = sum over rows of c. The two sums run over fixed chunks of rows. */
#include <string.h>

#include "backend/cpu/cpu.h"

enum { ROWS = 16, MAX_CHUNKS = 64 };

static void norm_rows(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    int64_t width = basin_cpu_width(&frame->call->in[0].shape);
    const float *x = frame->in[0];     /* [rows, width] */
    const float *gamma = frame->in[1]; /* [] */
    const float *delta = frame->in[2]; /* [width] */
    void *g = frame->out[0];           /* [rows, width] */
    bool narrow = frame->call->out[0].kind == BASIN_NARROW;
    float epsilon = (float)frame->call->attr.value;
    for (int64_t i = first; i < last; i++) {
        const float *row = x + i * width;
        if (narrow)
            frame->simd->norm_narrow((uint16_t *)g + i * width, row, *gamma, delta, epsilon, width);
        else
            frame->simd->norm((float *)g + i * width, row, *gamma, delta, epsilon, width);
    }
}

void basin_cpu_layernorm(const basin_cpu_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = basin_cpu_rows(shape);
    basin_cpu_share(frame, norm_rows, rows, rows * basin_cpu_width(shape));
}

static int64_t row_chunks(const basin_shape *shape) {
    int64_t chunks = (basin_cpu_rows(shape) + ROWS - 1) / ROWS;
    return chunks < MAX_CHUNKS ? chunks : MAX_CHUNKS;
}

size_t basin_cpu_layernorm_reverse_workspace(const basin_call *call, int threads) {
    (void)threads;
    const basin_shape *shape = &call->in[0].shape;
    /* of each chunk: its part of ddelta and of dgamma, and a row of c as float */
    return (size_t)(row_chunks(shape) * (2 * basin_cpu_width(shape) + 1)) * sizeof(float);
}

/* A row's cotangent as float, `own` being room for it. */
static const float *cotangent(const basin_cpu_frame *frame, float *own, int64_t row,
                              int64_t width) {
    if (frame->call->in[2].kind != BASIN_NARROW) return (const float *)frame->in[2] + row * width;
    frame->simd->widen(own, (const uint16_t *)frame->in[2] + row * width, width);
    return own;
}

/* One row: dx, and dx once more where it is asked for; returns the row's part of dgamma. */
static float reverse_row(const basin_cpu_frame *frame, float *part, float *own, int64_t i,
                         int64_t width) {
    const float *x = (const float *)frame->in[0] + i * width;
    const float *r = frame->call->ins > 3 ? (const float *)frame->in[3] + i * width : NULL;
    float *dx = frame->out[0] ? (float *)frame->out[0] + i * width : NULL;
    uint16_t *again = frame->call->outs > 3 ? frame->out[3] : NULL; /* [rows, width] */
    float sum = frame->simd->norm_reverse(dx, part, x, *(const float *)frame->in[1],
                                          cotangent(frame, own, i, width),
                                          (float)frame->call->attr.value, width);
    if (r && dx) frame->simd->axpy(dx, 1, r, width);
    if (again && dx) frame->simd->narrow(again + i * width, dx, width);
    return sum;
}

/* Chunk k: dx of its rows, and into `part` its share of ddelta; returns that of dgamma. */
static double reverse_chunk(const basin_cpu_frame *frame, float *part, float *own, int64_t k) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = basin_cpu_rows(shape), width = basin_cpu_width(shape);
    double sum = 0;
    int64_t last = basin_cpu_first(k + 1, row_chunks(shape), rows);
    for (int64_t i = basin_cpu_first(k, row_chunks(shape), rows); i < last; i++) {
        sum += reverse_row(frame, part, own, i, width);
    }
    return sum;
}

static void reverse_chunks(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t width = basin_cpu_width(shape);
    float *part_delta = frame->workspace;                       /* [chunks, width] */
    float *part_gamma = part_delta + row_chunks(shape) * width; /* [chunks] */
    float *wide = part_gamma + row_chunks(shape);               /* [chunks, width] */
    for (int64_t k = first; k < last; k++) {
        float *part = frame->out[2] ? part_delta + k * width : NULL;
        if (part) memset(part, 0, (size_t)width * sizeof *part);
        part_gamma[k] = (float)reverse_chunk(frame, part, wide + k * width, k);
    }
}

/* in: x, gamma, c and perhaps r; out: dx, dgamma, ddelta and perhaps dx narrow, as op.h has them.
 */
void basin_cpu_layernorm_reverse(const basin_cpu_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t width = basin_cpu_width(shape), chunks = row_chunks(shape);
    float *dgamma = frame->out[1], *ddelta = frame->out[2];
    const float *part_delta = frame->workspace;            /* [chunks, width] */
    const float *part_gamma = part_delta + chunks * width; /* [chunks] */
    basin_cpu_share(frame, reverse_chunks, chunks, basin_cpu_rows(shape) * width);
    if (dgamma) *dgamma = frame->simd->sum(part_gamma, chunks);
    if (ddelta) frame->simd->sum_rows(ddelta, part_delta, chunks, width, width);
}
