/* Products over a list of pairs (q, k), head by head:
 *   dot  w[p,h] = x[q,h] . z[k,h],  sum  out[q,h] = sum over the pairs of q of w[p,h] z[k,h],
 *   and its transpose  out[k,h] = sum over the pairs of k of w[p,h] x[q,h]. */
#include "backend/ref/ref.h"
#include "backend/shape.h"

bool basin_ref_csr_check(const basin_ref_frame *frame, const char *name, const basin_ref_csr *csr) {
    int64_t least = 0;
    if (!csr->row) return true;
    for (int64_t q = 0; q <= csr->queries; q++) {
        if (csr->row[q] < least || csr->row[q] > csr->pairs) {
            basin_ref_bad_index(frame, name, q, csr->row[q], least, csr->pairs + 1);
            return false;
        }
        least = csr->row[q];
    }
    for (int64_t p = csr->row[0]; p < csr->row[csr->queries]; p++)
        if (csr->key[p] < 0 || csr->key[p] >= csr->keys) {
            basin_ref_bad_index(frame, name, p, csr->key[p], 0, csr->keys);
            return false;
        }
    return true;
}

enum { ROW = 2, KEY = 3 }; /* operands of both operations */

static basin_ref_csr csr_of(const basin_ref_frame *frame, int64_t keys) {
    return (basin_ref_csr){.row = frame->in[ROW],
                           .key = frame->in[KEY],
                           .queries = basin_shape_count(frame->call->in[ROW].shape) - 1,
                           .keys = keys,
                           .pairs = basin_shape_count(frame->call->in[KEY].shape)};
}

void basin_ref_pair_dot(const basin_ref_frame *frame) {
    const basin_shape *shape = &frame->call->in[1].shape;
    int64_t heads = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1];
    const double *x = frame->in[0]; /* [queries, heads, width] */
    const double *z = frame->in[1]; /* [keys, heads, width] */
    double *w = frame->out[0];      /* [pairs, heads]; 0 in the padding */
    basin_ref_csr csr = csr_of(frame, shape->dim[shape->rank - 3]);
    basin_ref_clear(frame);
    if (!basin_ref_csr_check(frame, "pair dot", &csr)) return;
    for (int64_t q = 0; q < csr.queries; q++)
        for (int64_t p = csr.row[q]; p < csr.row[q + 1]; p++)
            for (int64_t h = 0; h < heads; h++)
                for (int64_t y = 0; y < width; y++)
                    w[p * heads + h] +=
                        x[(q * heads + h) * width + y] * z[(csr.key[p] * heads + h) * width + y];
}

void basin_ref_pair_sum(const basin_ref_frame *frame) {
    const basin_shape *shape = &frame->call->in[1].shape, *result = &frame->call->out[0].shape;
    bool transposed = frame->call->attr.transpose_a;
    int64_t heads = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1];
    const double *w = frame->in[0]; /* [pairs, heads] */
    const double *z = frame->in[1]; /* [keys, heads, width]; transposed: [queries, ..] */
    double *out = frame->out[0];    /* [queries, heads, width]; transposed: [keys, ..] */
    basin_ref_csr csr =
        csr_of(frame, transposed ? result->dim[result->rank - 3] : shape->dim[shape->rank - 3]);
    basin_ref_clear(frame);
    if (!basin_ref_csr_check(frame, "pair sum", &csr)) return;
    for (int64_t q = 0; q < csr.queries; q++)
        for (int64_t p = csr.row[q]; p < csr.row[q + 1]; p++) {
            int64_t from = transposed ? q : csr.key[p], to = transposed ? csr.key[p] : q;
            for (int64_t h = 0; h < heads; h++)
                for (int64_t y = 0; y < width; y++)
                    out[(to * heads + h) * width + y] +=
                        w[p * heads + h] * z[(from * heads + h) * width + y];
        }
}
