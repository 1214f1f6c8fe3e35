/* Log-sum-exp and softmax over the keys that causal queries see, x [rows, N, M, H], and the
 * reverse; the equations are in ref/causal.c. A query's scores are turned to [H, keys seen] in
 * scratch memory, so that vectors run along keys. */
#include "backend/cpu/cpu.h"
#include "backend/shape.h"

enum { BUFFERS = 2 }; /* of a row of scores, for each thread */

typedef struct causal {
    const basin_cpu_frame *frame;
    int64_t queries, keys, heads;
    int64_t offset; /* query n sees keys 0 .. n + offset - 1 */
    float factor;
    const float *x, *c;  /* [rows, N, M, H]; c of the reverse */
    const int32_t *seed; /* or NULL */
} causal;

static int64_t row_length(const basin_call *call) {
    const basin_shape *s = &call->in[0].shape;
    return (s->dim[s->rank - 2] * s->dim[s->rank - 1] + 15) / 16 * 16;
}

size_t basin_cpu_causal_workspace(const basin_call *call, int threads) {
    return (size_t)threads * BUFFERS * (size_t)row_length(call) * sizeof(float);
}

static causal causal_of(const basin_cpu_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *s = &call->in[0].shape;
    bool reverse = call->op == BASIN_OP_CAUSAL_SOFTMAX_REVERSE;
    int seed = reverse ? 2 : 1;
    return (causal){.frame = frame,
                    .queries = s->dim[s->rank - 3],
                    .keys = s->dim[s->rank - 2],
                    .heads = s->dim[s->rank - 1],
                    .offset = call->attr.exclude_self ? 0 : 1,
                    .factor = (float)call->attr.value,
                    .x = frame->in[0],
                    .c = reverse ? frame->in[1] : NULL,
                    .seed = call->ins > seed ? frame->in[seed] : NULL};
}

static float *buffer(const causal *c, int place, int number) {
    return (float *)c->frame->workspace + (place * BUFFERS + number) * row_length(c->frame->call);
}

static int64_t seen(const causal *c, int64_t row) {
    int64_t n = row % c->queries + c->offset;
    return n < c->keys ? n : c->keys;
}

/* to[h, m] = factor from[m, h] */
static void turn_in(const causal *c, float *to, const float *from, int64_t count, float factor) {
    for (int64_t h = 0; h < c->heads; h++)
        for (int64_t m = 0; m < count; m++) to[h * count + m] = factor * from[m * c->heads + h];
}

/* to[m, h] = from[h, m], and zeros behind. */
static void turn_out(const causal *c, float *to, const float *from, int64_t count) {
    for (int64_t m = 0; m < count; m++)
        for (int64_t h = 0; h < c->heads; h++) to[m * c->heads + h] = from[h * count + m];
    c->frame->simd->fill(to + count * c->heads, 0, (c->keys - count) * c->heads);
}

/* Drops some of the numbers x [count, H] of a row of scores; `draw` is scratch. */
static void drop(const causal *c, float *x, float *draw, int64_t row, int64_t count) {
    const basin_attr *attr = &c->frame->call->attr;
    int64_t first = row * c->keys * c->heads, numbers = count * c->heads;
    if (!c->seed) return;
    uint64_t seed = (uint64_t)(uint32_t)c->seed[1] << 32 | (uint32_t)c->seed[0];
    float more = (float)(1 / (1 - attr->drop));
    c->frame->simd->uniform(draw, seed, attr->stream, (uint64_t)first, (size_t)numbers);
    for (int64_t i = 0; i < numbers; i++) x[i] *= (double)draw[i] > attr->drop ? more : 0.0F;
}

static void logsumexp_rows(const void *context, int64_t first, int64_t last, int place) {
    const causal *c = context;
    float *y = c->frame->out[0]; /* [rows, H] */
    for (int64_t i = first; i < last; i++) {
        float *score = buffer(c, place, 0);
        int64_t count = seen(c, i);
        turn_in(c, score, c->x + i * c->keys * c->heads, count, c->factor);
        for (int64_t h = 0; h < c->heads; h++)
            y[i * c->heads + h] =
                count > 0 ? c->frame->simd->logsumexp(score + h * count, count) : 0.0F;
    }
}

/* Shares of a row, [H, keys seen], in the first buffer. */
static float *shares_of(const causal *c, int64_t row, int64_t count, int place) {
    float *share = buffer(c, place, 0), *score = buffer(c, place, 1);
    turn_in(c, score, c->x + row * c->keys * c->heads, count, c->factor);
    for (int64_t h = 0; h < c->heads; h++)
        c->frame->simd->softmax(share + h * count, score + h * count, count);
    return share;
}

static void softmax_rows(const void *context, int64_t first, int64_t last, int place) {
    const causal *c = context;
    for (int64_t i = first; i < last; i++) {
        float *y = (float *)c->frame->out[0] + i * c->keys * c->heads; /* [M, H] */
        int64_t count = seen(c, i);
        turn_out(c, y, shares_of(c, i, count, place), count);
        drop(c, y, buffer(c, place, 1), i, count);
    }
}

static void reverse_rows(const void *context, int64_t first, int64_t last, int place) {
    const causal *c = context;
    for (int64_t i = first; i < last; i++) {
        float *dx = (float *)c->frame->out[0] + i * c->keys * c->heads; /* [M, H] */
        int64_t count = seen(c, i), numbers = count * c->heads;
        float *p = shares_of(c, i, count, place), *d = buffer(c, place, 1);
        const float *from = c->c + i * c->keys * c->heads;
        for (int64_t j = 0; j < numbers; j++) dx[j] = from[j];
        drop(c, dx, d, i, count);
        turn_in(c, d, dx, count, 1);
        for (int64_t h = 0; h < c->heads; h++) {
            float mean = c->frame->simd->dot(p + h * count, d + h * count, count);
            for (int64_t m = h * count; m < (h + 1) * count; m++) p[m] *= c->factor * (d[m] - mean);
        }
        turn_out(c, dx, p, count);
    }
}

static void share(const basin_cpu_frame *frame, basin_team_body *body) {
    causal c = causal_of(frame);
    const basin_shape *s = &frame->call->in[0].shape;
    int64_t rows = basin_shape_product(s, 0, s->rank - 2);
    basin_team_run(body, &c, rows, 0, basin_cpu_team(frame, rows * c.keys * c.heads * 4));
}

void basin_cpu_causal_logsumexp(const basin_cpu_frame *frame) { share(frame, logsumexp_rows); }

void basin_cpu_causal_softmax(const basin_cpu_frame *frame) { share(frame, softmax_rows); }

void basin_cpu_causal_softmax_reverse(const basin_cpu_frame *frame) { share(frame, reverse_rows); }
