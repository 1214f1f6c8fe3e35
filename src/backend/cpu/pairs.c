/* Products over the pairs of a CSR pattern: w[p, h] = x[q, h] . z[k, h], and
 * out[q, h] = sum over its pairs of w[p, h] z[k, h], or the same by keys. Rows are dealt to threads
 * in chunks of about equally many pairs; a row is summed by one thread, in the order of its pairs.
 */
#include <string.h>

#include "backend/cpu/cpu.h"

enum { IN_ROW = 2, IN_KEY, IN_COLUMN, IN_QUERY, IN_PAIR, CHUNKS = 256 };

/* The first row of chunk i: the first that starts at or after its share of the pairs. */
static int64_t chunk_first(const int32_t *row, int64_t rows, int64_t i) {
    if (i >= CHUNKS) return rows;
    int64_t low = 0, high = rows, wanted = (int64_t)row[rows] * i / CHUNKS;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (row[middle] >= wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return i == 0 ? 0 : low;
}

static void dot_chunks(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->in[0].shape;
    const float *x = frame->in[0]; /* [rows, heads, width] */
    const float *z = frame->in[1]; /* [keys, heads, width] */
    const int32_t *row = frame->in[IN_ROW], *key = frame->in[IN_KEY];
    float *w = frame->out[0]; /* [pairs, heads] */
    int64_t rows = call->in[IN_ROW].shape.dim[0] - 1, end = chunk_first(row, rows, last);
    int64_t heads = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1];
    for (int64_t q = chunk_first(row, rows, first); q < end; q++)
        frame->simd->pair_dot(w + row[q] * heads, x + q * heads * width, z, key + row[q],
                              row[q + 1] - row[q], heads, width);
}

void basin_cpu_pair_dot(const basin_cpu_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->in[0].shape;
    const int32_t *row = frame->in[IN_ROW];
    float *w = frame->out[0]; /* [pairs, heads] */
    int64_t rows = call->in[IN_ROW].shape.dim[0] - 1, pairs = call->in[IN_KEY].shape.dim[0];
    int64_t heads = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1];
    basin_cpu_share(frame, dot_chunks, CHUNKS, pairs * heads * width);
    memset(w + row[rows] * heads, 0, (size_t)((pairs - row[rows]) * heads) * sizeof *w);
}

static void sum_chunks(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->in[1].shape;
    bool by_key = call->attr.transpose_a;
    const float *w = frame->in[0]; /* [pairs, heads] */
    const float *z = frame->in[1]; /* [keys, heads, width], by key [queries, heads, width] */
    const int32_t *row = frame->in[by_key ? IN_COLUMN : IN_ROW];
    const int32_t *other = frame->in[by_key ? IN_QUERY : IN_KEY];
    const int32_t *pair = by_key ? frame->in[IN_PAIR] : NULL;
    float *out = frame->out[0]; /* [rows, heads, width] */
    int64_t rows = call->in[by_key ? IN_COLUMN : IN_ROW].shape.dim[0] - 1;
    int64_t heads = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1];
    int64_t end = chunk_first(row, rows, last);
    for (int64_t q = chunk_first(row, rows, first); q < end; q++)
        frame->simd->pair_sum(out + q * heads * width, w + (pair ? 0 : row[q] * heads), z,
                              pair ? pair + row[q] : NULL, other + row[q], row[q + 1] - row[q],
                              heads, width);
}

void basin_cpu_pair_sum(const basin_cpu_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->in[1].shape;
    int side = call->attr.transpose_a ? IN_COLUMN : IN_ROW;
    const int32_t *row = frame->in[side];
    int64_t pairs = row[call->in[side].shape.dim[0] - 1];
    int64_t heads = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1];
    basin_cpu_share(frame, sum_chunks, CHUNKS, pairs * heads * width);
}
