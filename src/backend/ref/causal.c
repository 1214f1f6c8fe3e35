/* Log-sum-exp and softmax over the keys that causal queries see, x [rows, N, M, H], and the
 * reverse: p = exp(f x - lse), y = p kept, dx = f p (d - sum over keys of p d) with d = c kept. */
#include <math.h>

#include "backend/ref/ref.h"
#include "backend/shape.h"
#include "basin/random.h"

typedef struct causal {
    int64_t rows, queries, keys, heads;
    double factor;
    int64_t offset; /* query n sees keys 0 .. n + offset - 1 */
} causal;

static causal sizes(const basin_call *call) {
    const basin_shape *s = &call->in[0].shape;
    return (causal){basin_shape_product(s, 0, s->rank - 3),
                    s->dim[s->rank - 3],
                    s->dim[s->rank - 2],
                    s->dim[s->rank - 1],
                    call->attr.value,
                    call->attr.exclude_self ? 0 : 1};
}

static int64_t seen(const causal *c, int64_t n) {
    return n + c->offset < c->keys ? n + c->offset : c->keys;
}

/* Of every stride-th number; 0 of none. */
static double logsumexp(const double *x, int64_t count, int64_t stride, double factor) {
    double most = -INFINITY, sum = 0;
    for (int64_t m = 0; m < count; m++) most = fmax(most, factor * x[m * stride]);
    if (isinf(most)) return count > 0 ? most : 0;
    for (int64_t m = 0; m < count; m++) sum += exp(factor * x[m * stride] - most);
    return most + log(sum);
}

/* What share i is multiplied by. */
static double kept(const basin_ref_frame *frame, const int32_t *seed, int64_t i) {
    double drop = frame->call->attr.drop;
    if (!seed) return 1;
    uint64_t number = (uint64_t)(uint32_t)seed[0] | (uint64_t)(uint32_t)seed[1] << 32;
    float draw = basin_random_uniform_at(number, frame->call->attr.stream, (uint64_t)i);
    return (double)draw > drop ? 1 / (1 - drop) : 0;
}

void basin_ref_causal_logsumexp(const basin_ref_frame *frame) {
    causal c = sizes(frame->call);
    const double *x = frame->in[0]; /* [rows, N, M, H] */
    double *y = frame->out[0];      /* [rows, N, H] */
    for (int64_t i = 0; i < c.rows * c.queries; i++)
        for (int64_t h = 0; h < c.heads; h++)
            y[i * c.heads + h] =
                logsumexp(x + i * c.keys * c.heads + h, seen(&c, i % c.queries), c.heads, c.factor);
}

void basin_ref_causal_softmax(const basin_ref_frame *frame) {
    causal c = sizes(frame->call);
    const double *x = frame->in[0]; /* [rows, N, M, H] */
    const int32_t *seed = frame->call->ins > 1 ? frame->in[1] : NULL;
    double *y = frame->out[0]; /* like x */
    basin_ref_clear(frame);
    for (int64_t i = 0; i < c.rows * c.queries; i++)
        for (int64_t h = 0; h < c.heads; h++) {
            int64_t first = i * c.keys * c.heads + h, count = seen(&c, i % c.queries);
            double lse = logsumexp(x + first, count, c.heads, c.factor);
            for (int64_t m = 0; m < count; m++) {
                int64_t at = first + m * c.heads;
                y[at] = exp(c.factor * x[at] - lse) * kept(frame, seed, at);
            }
        }
}

void basin_ref_causal_softmax_reverse(const basin_ref_frame *frame) {
    causal c = sizes(frame->call);
    const double *x = frame->in[0], *d = frame->in[1]; /* [rows, N, M, H] */
    const int32_t *seed = frame->call->ins > 2 ? frame->in[2] : NULL;
    double *dx = frame->out[0]; /* like x */
    basin_ref_clear(frame);
    for (int64_t i = 0; i < c.rows * c.queries; i++)
        for (int64_t h = 0; h < c.heads; h++) {
            int64_t first = i * c.keys * c.heads + h, count = seen(&c, i % c.queries);
            double lse = logsumexp(x + first, count, c.heads, c.factor), mean = 0;
            for (int64_t at = first; at < first + count * c.heads; at += c.heads)
                mean += exp(c.factor * x[at] - lse) * d[at] * kept(frame, seed, at);
            for (int64_t at = first; at < first + count * c.heads; at += c.heads)
                dx[at] =
                    c.factor * exp(c.factor * x[at] - lse) * (d[at] * kept(frame, seed, at) - mean);
        }
}
