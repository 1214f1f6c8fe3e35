/* Reductions, over axes or rows, causal pairs and layer norm. */
#include <math.h>

#include "base/sort.h"
#include "engine/backend/cpu/cpu.h"

enum {
    CHUNK = 32768,    /* elements, at least, in a chunk */
    MAX_CHUNKS = 64,  /* per outer index */
    STRETCH = 1024,   /* wide rows */
    FOLD_WIDTH = 128, /* inner axes shorter than half of this are summed several rows at a time */
};

/* Chunks of the middle, as many for one sample as beside others: its bits do not depend on them. */
static int64_t chunks_of(const basin_span *s) {
    int64_t chunks = s->middle * s->inner / CHUNK;
    return basin_int_max(1, basin_int_min(basin_int_min(chunks, MAX_CHUNKS), s->middle));
}

size_t basin_cpu_reduce_workspace(const basin_call *call, int threads) {
    (void)threads;
    if (call->program) return 0;
    basin_span s = basin_span_of(call);
    int64_t chunks = chunks_of(&s);
    return chunks > 1 ? (size_t)(s.outer * chunks * s.inner) * sizeof(float) : 0;
}

typedef struct reducer {
    void (*each)(float *to, const float *x, int64_t rows, int64_t n);
    void (*rows)(float *to, const float *x, int64_t rows, int64_t stride, int64_t n);
} reducer;

/* A short inner axis: `fold` rows are taken as one wide row, and folded at the end. Wide rows are
 * reduced in stretches, so that a long sum is a sum of sums. */
static void reduce_folded(float *to, const float *x, int64_t rows, int64_t inner,
                          const reducer *by) {
    float pair[2 * FOLD_WIDTH], both[FOLD_WIDTH];
    int64_t fold = FOLD_WIDTH / inner, width = fold * inner, whole = rows / fold;
    by->rows(both, x, 0, width, width); /* the result of nothing */
    for (int64_t i = 0; i < whole; i += STRETCH) {
        memcpy(pair, both, (size_t)width * sizeof *pair);
        by->rows(pair + width, x + i * width, whole - i < STRETCH ? whole - i : STRETCH, width,
                 width);
        by->rows(both, pair, 2, width, width);
    }
    by->rows(pair, both, fold, inner, inner);
    by->rows(pair + inner, x + whole * width, rows - whole * fold, inner, inner);
    by->rows(to, pair, 2, inner, inner);
}

/* to [inner] from `rows` rows of x. */
static void reduce_part(float *to, const float *x, int64_t rows, int64_t inner, const reducer *by) {
    if (inner == 1)
        by->each(to, x, 1, rows);
    else if (inner <= FOLD_WIDTH / 2 && rows > 2 * FOLD_WIDTH / inner)
        reduce_folded(to, x, rows, inner, by);
    else
        by->rows(to, x, rows, inner, inner);
}

static reducer reducer_of(const basin_frame *frame) {
    if (frame->call->op == BASIN_OP_MAX)
        return (reducer){frame->simd->maxima, frame->simd->max_rows};
    return (reducer){frame->simd->sums, frame->simd->sum_rows};
}

static void reduce_chunks(const basin_frame *frame, int64_t begin, int64_t end) {
    basin_span s = basin_span_of(frame->call);
    reducer by = reducer_of(frame);
    int64_t chunks = chunks_of(&s);
    const float *x = frame->in[0];                               /* [outer, middle, inner] */
    float *part = chunks > 1 ? frame->workspace : frame->out[0]; /* [outer, chunks, inner] */
    if (chunks == 1 && s.inner == 1) {
        by.each(part + begin, x + begin * s.middle, end - begin, s.middle);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        int64_t first = basin_cpu_first(i % chunks, chunks, s.middle);
        int64_t last = basin_cpu_first(i % chunks + 1, chunks, s.middle);
        reduce_part(part + i * s.inner, x + (i / chunks * s.middle + first) * s.inner, last - first,
                    s.inner, &by);
    }
}

void basin_cpu_reduce(const basin_frame *frame) {
    reducer by = reducer_of(frame);
    if (frame->call->program) {
        basin_cpu_program_reduce(frame, by.each);
        return;
    }
    basin_span s = basin_span_of(frame->call);
    int64_t chunks = chunks_of(&s);
    float *y = frame->out[0], *part = frame->workspace; /* [outer, inner] [outer, chunks, inner] */
    basin_cpu_share(frame, reduce_chunks, s.outer * chunks, s.outer * s.middle * s.inner);
    for (int64_t i = 0; i < s.outer && chunks > 1; i++)
        reduce_part(y + i * s.inner, part + i * chunks * s.inner, chunks, s.inner, &by);
}

/* Calls `part` for the rows of the operand; an element takes `cost` operations. */
static void share_rows(const basin_frame *frame, basin_cpu_part *part, int64_t cost) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = basin_shape_rows(shape);
    basin_cpu_share(frame, part, rows, rows * basin_shape_last(shape, 1) * cost);
}

static void logsumexp_rows(const basin_frame *frame, int64_t first, int64_t last) {
    int64_t n = basin_shape_last(&frame->call->in[0].shape, 1);
    const float *x = frame->in[0]; /* [rows, n] */
    float *y = frame->out[0];      /* [rows] */
    for (int64_t i = first; i < last; i++) y[i] = frame->simd->logsumexp(x + i * n, n);
}

void basin_cpu_logsumexp(const basin_frame *frame) { share_rows(frame, logsumexp_rows, 4); }

static void softmax_rows(const basin_frame *frame, int64_t first, int64_t last) {
    int64_t n = basin_shape_last(&frame->call->in[0].shape, 1);
    const float *x = frame->in[0];                             /* [rows, n] */
    float *y = frame->out[0];                                  /* [rows, n] */
    float *lse = frame->call->outs > 1 ? frame->out[1] : NULL; /* [rows] */
    for (int64_t i = first; i < last; i++)
        frame->simd->softmax(y + i * n, lse ? lse + i : NULL, x + i * n, n);
}

void basin_cpu_softmax(const basin_frame *frame) { share_rows(frame, softmax_rows, 4); }

/* Newton's steps from below, where the sum is too large: it falls with the threshold and is convex,
 * so that every step ends below as well. In double, for their end is where rounding stops them. */
static double row_threshold(const float *x, int64_t n, int power, double t) {
    for (double step = 1; step > 0;) {
        double sum = -1, slope = 0;
        for (int64_t j = 0; j < n; j++) {
            double over = fmax((double)x[j] - t, 0);
            sum += power == 1 ? over : over * over;
            slope += power == 1 ? over > 0 : 2 * over;
        }
        double next = t + sum / slope;
        step = next > t ? next - t : 0; /* also ends at NaN */
        t = step > 0 ? next : t;
    }
    return t;
}

static void threshold_rows(const basin_frame *frame, int64_t first, int64_t last) {
    int64_t n = basin_shape_last(&frame->call->in[0].shape, 1);
    const float *x = frame->in[0]; /* [rows, n] */
    float *y = frame->out[0];      /* [rows] */
    for (int64_t i = first; i < last; i++) {
        double max = n > 0 ? (double)frame->simd->max(x + i * n, n) : 1;
        y[i] = (float)row_threshold(x + i * n, n, frame->call->attr.count, max - 1);
    }
}

void basin_cpu_threshold(const basin_frame *frame) { share_rows(frame, threshold_rows, 16); }

/* ---- sums of squares of many tensors ---- */

static int64_t square_chunks(const basin_call *call, int k) {
    return (basin_shape_count(call->in[k].shape) + CHUNK - 1) / CHUNK;
}

static int64_t all_square_chunks(const basin_call *call) {
    int64_t chunks = 0;
    for (int k = 0; k < call->ins; k++) chunks += square_chunks(call, k);
    return chunks;
}

size_t basin_cpu_squares_workspace(const basin_call *call, int threads) {
    (void)threads;
    return (size_t)all_square_chunks(call) * sizeof(double);
}

/* The squares of one chunk of all operands' chunks. */
static double square_part(const basin_frame *frame, int64_t chunk) {
    const basin_call *call = frame->call;
    int k = 0;
    for (; chunk >= square_chunks(call, k); k++) chunk -= square_chunks(call, k);
    int64_t count = basin_shape_count(call->in[k].shape), first = chunk * CHUNK;
    const float *x = (const float *)frame->in[k] + first;
    double sum = 0;
    for (int64_t i = 0; i < CHUNK && first + i < count; i += STRETCH) {
        int64_t left = count - first - i;
        sum += (double)frame->simd->dot(x + i, x + i, left < STRETCH ? left : STRETCH);
    }
    return sum;
}

static void square_parts(const basin_frame *frame, int64_t first, int64_t last) {
    double *part = frame->workspace; /* [chunks] */
    for (int64_t i = first; i < last; i++) part[i] = square_part(frame, i);
}

void basin_cpu_squares(const basin_frame *frame) {
    int64_t chunks = all_square_chunks(frame->call);
    const double *part = frame->workspace; /* [chunks] */
    double sum = 0;
    basin_cpu_share(frame, square_parts, chunks, chunks * CHUNK);
    for (int64_t i = 0; i < chunks; i++) sum += part[i];
    *(float *)frame->out[0] = (float)sum;
}

/* Log-sum-exp and softmax over the keys that causal queries see, and the reverse (ref/rows.c); a
 * query's scores are transposed to [H, keys seen] in scratch memory. */

enum { BUFFERS = 2 }; /* of a row of scores, for each thread */

typedef struct causal {
    const basin_frame *frame;
    basin_causal sizes;
    const float *x, *c; /* [rows, M, H]; c of the reverse */
} causal;

static int64_t row_length(const basin_call *call) {
    const basin_shape *s = &call->in[0].shape;
    return (s->dim[s->rank - 2] * s->dim[s->rank - 1] + 15) / 16 * 16;
}

size_t basin_cpu_causal_workspace(const basin_call *call, int threads) {
    return (size_t)threads * BUFFERS * (size_t)row_length(call) * sizeof(float);
}

static float *buffer(const causal *c, int number) {
    return (float *)c->frame->workspace +
           (basin_parallel_place() * BUFFERS + number) * row_length(c->frame->call);
}

/* to[h, m] = factor from[m, h] */
static void turn_in(const causal *c, float *to, const float *from, int64_t count, float factor) {
    for (int64_t h = 0; h < c->sizes.heads; h++)
        for (int64_t m = 0; m < count; m++)
            to[h * count + m] = factor * from[m * c->sizes.heads + h];
}

/* to[m, h] = from[h, m], followed by zeros. */
static void turn_out(const causal *c, float *to, const float *from, int64_t count) {
    for (int64_t m = 0; m < count; m++)
        for (int64_t h = 0; h < c->sizes.heads; h++)
            to[m * c->sizes.heads + h] = from[h * count + m];
    c->frame->simd->fill(to + count * c->sizes.heads, 0, (c->sizes.keys - count) * c->sizes.heads);
}

static void causal_logsumexp_rows(const void *context, int64_t first, int64_t last) {
    const causal *c = context;
    float *y = c->frame->out[0]; /* [rows, H] */
    for (int64_t i = first; i < last; i++) {
        float *score = buffer(c, 0);
        int64_t count = basin_causal_seen(&c->sizes, i);
        turn_in(c, score, c->x + i * c->sizes.keys * c->sizes.heads, count, (float)c->sizes.factor);
        for (int64_t h = 0; h < c->sizes.heads; h++)
            y[i * c->sizes.heads + h] =
                count > 0 ? c->frame->simd->logsumexp(score + h * count, count) : 0.0F;
    }
}

/* Shares of a row, [H, keys seen], in the first buffer. */
static float *shares_of(const causal *c, int64_t row, int64_t count) {
    float *share = buffer(c, 0), *score = buffer(c, 1);
    turn_in(c, score, c->x + row * c->sizes.keys * c->sizes.heads, count, (float)c->sizes.factor);
    for (int64_t h = 0; h < c->sizes.heads; h++)
        c->frame->simd->softmax(share + h * count, NULL, score + h * count, count);
    return share;
}

static void causal_softmax_rows(const void *context, int64_t first, int64_t last) {
    const causal *c = context;
    for (int64_t i = first; i < last; i++) {
        float *y = (float *)c->frame->out[0] + i * c->sizes.keys * c->sizes.heads; /* [M, H] */
        int64_t count = basin_causal_seen(&c->sizes, i);
        turn_out(c, y, shares_of(c, i, count), count);
    }
}

static void reverse_rows(const void *context, int64_t first, int64_t last) {
    const causal *c = context;
    for (int64_t i = first; i < last; i++) {
        float *dx = (float *)c->frame->out[0] + i * c->sizes.keys * c->sizes.heads; /* [M, H] */
        int64_t count = basin_causal_seen(&c->sizes, i);
        float *p = shares_of(c, i, count), *d = buffer(c, 1);
        turn_in(c, d, c->c + i * c->sizes.keys * c->sizes.heads, count, 1);
        for (int64_t h = 0; h < c->sizes.heads; h++) {
            float mean = c->frame->simd->dot(p + h * count, d + h * count, count);
            for (int64_t m = h * count; m < (h + 1) * count; m++)
                p[m] *= (float)c->sizes.factor * (d[m] - mean);
        }
        turn_out(c, dx, p, count);
    }
}

static void share(const basin_frame *frame, basin_parallel_body *body) {
    basin_causal s = basin_causal_of(frame->call);
    causal c = {frame, s, frame->in[0], frame->in[1]};
    basin_parallel_for(body, &c, s.rows, 0, basin_cpu_team(frame, s.rows * s.keys * s.heads * 4));
}

void basin_cpu_causal_logsumexp(const basin_frame *frame) { share(frame, causal_logsumexp_rows); }

void basin_cpu_causal_softmax(const basin_frame *frame) { share(frame, causal_softmax_rows); }

void basin_cpu_causal_softmax_reverse(const basin_frame *frame) { share(frame, reverse_rows); }

/* Layer norm with a gain, g = gamma n + delta, n = (x - mean) / sqrt(var + eps), and
 * its reverse: dx = gamma (c - mean(c) - n mean(c n)) / sqrt(var + eps), dgamma = sum c n and
 * ddelta = sum over rows of c. The two sums run over fixed chunks of rows. */

enum { ROWS = 16, NORM_MAX_CHUNKS = 64 };

/* A gain for each column, where gamma is that. */
static const float *gains(const basin_frame *frame) {
    return frame->call->in[1].shape.rank > 0 ? frame->in[1] : NULL;
}

static void norm_rows(const basin_frame *frame, int64_t first, int64_t last) {
    int64_t width = basin_shape_last(&frame->call->in[0].shape, 1);
    const float *x = frame->in[0];     /* [rows, width] */
    const float *gain = gains(frame);  /* [width] or NULL */
    const float *delta = frame->in[2]; /* [width] */
    float gamma = gain ? 1 : *(const float *)frame->in[1];
    void *g = frame->out[0]; /* [rows, width] */
    bool narrow = frame->call->out[0].kind == BASIN_NARROW;
    float epsilon = (float)frame->call->attr.value;
    for (int64_t i = first; i < last; i++) {
        const float *row = x + i * width;
        if (narrow)
            frame->simd->norm_narrow((uint16_t *)g + i * width, row, gamma, gain, delta, epsilon,
                                     width);
        else
            frame->simd->norm((float *)g + i * width, row, gamma, gain, delta, epsilon, width);
    }
}

void basin_cpu_layernorm(const basin_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = basin_shape_rows(shape);
    basin_cpu_share(frame, norm_rows, rows, rows * basin_shape_last(shape, 1));
}

static int64_t row_chunks(const basin_shape *shape) {
    int64_t chunks = (basin_shape_rows(shape) + ROWS - 1) / ROWS;
    return chunks < NORM_MAX_CHUNKS ? chunks : NORM_MAX_CHUNKS;
}

size_t basin_cpu_layernorm_reverse_workspace(const basin_call *call, int threads) {
    (void)threads;
    const basin_shape *shape = &call->in[0].shape;
    int64_t gamma = basin_shape_count(call->in[1].shape);
    /* of each chunk: its part of ddelta and of dgamma, and a row of c as float */
    return (size_t)(row_chunks(shape) * (2 * basin_shape_last(shape, 1) + gamma)) * sizeof(float);
}

/* A row's cotangent as float, `own` being room for it. */
static const float *cotangent(const basin_frame *frame, float *own, int64_t row, int64_t width) {
    if (frame->call->in[2].kind != BASIN_NARROW) return (const float *)frame->in[2] + row * width;
    frame->simd->widen(own, (const uint16_t *)frame->in[2] + row * width, width);
    return own;
}

/* One row: dx, and dx once more where it is asked for; returns the row's part of dgamma. */
static float reverse_row(const basin_frame *frame, float *part, float *gain_part, float *own,
                         int64_t i, int64_t width) {
    const float *x = (const float *)frame->in[0] + i * width;
    const float *r = frame->call->ins > 3 ? (const float *)frame->in[3] + i * width : NULL;
    float *dx = frame->out[0] ? (float *)frame->out[0] + i * width : NULL;
    uint16_t *again = frame->call->outs > 3 ? frame->out[3] : NULL; /* [rows, width] */
    float gamma = gains(frame) ? 1 : *(const float *)frame->in[1];
    float sum = frame->simd->norm_reverse(dx, part, gain_part, x, gamma, gains(frame),
                                          cotangent(frame, own, i, width),
                                          (float)frame->call->attr.value, width);
    if (r && dx) frame->simd->axpy(dx, 1, r, width);
    if (again && dx) frame->simd->narrow(again + i * width, dx, width);
    return sum;
}

/* Chunk k: dx of its rows, and into `part` its share of ddelta; returns that of dgamma. */
static double reverse_chunk(const basin_frame *frame, float *part, float *gain_part, float *own,
                            int64_t k) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = basin_shape_rows(shape), width = basin_shape_last(shape, 1);
    double sum = 0;
    int64_t last = basin_cpu_first(k + 1, row_chunks(shape), rows);
    for (int64_t i = basin_cpu_first(k, row_chunks(shape), rows); i < last; i++)
        sum += reverse_row(frame, part, gain_part, own, i, width);
    return sum;
}

static void reverse_chunks(const basin_frame *frame, int64_t first, int64_t last) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t width = basin_shape_last(shape, 1);
    float *part_delta = frame->workspace;                       /* [chunks, width] */
    float *part_gamma = part_delta + row_chunks(shape) * width; /* [chunks] or [chunks, width] */
    int64_t each = gains(frame) ? width : 1;
    float *wide = part_gamma + row_chunks(shape) * each; /* [chunks, width] */
    for (int64_t k = first; k < last; k++) {
        float *part = frame->out[2] ? part_delta + k * width : NULL, *own = part_gamma + k * each;
        if (part) memset(part, 0, (size_t)width * sizeof *part);
        if (gains(frame)) memset(own, 0, (size_t)width * sizeof *own);
        double sum = reverse_chunk(frame, part, gains(frame) ? own : NULL, wide + k * width, k);
        if (!gains(frame)) *own = (float)sum;
    }
}

/* in: x, gamma, c, perhaps r; out: dx, dgamma, ddelta, perhaps dx narrow, as op.h has them. */
void basin_cpu_layernorm_reverse(const basin_frame *frame) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t width = basin_shape_last(shape, 1), chunks = row_chunks(shape);
    float *dgamma = frame->out[1], *ddelta = frame->out[2];
    const float *part_delta = frame->workspace;            /* [chunks, width] */
    const float *part_gamma = part_delta + chunks * width; /* [chunks] or [chunks, width] */
    basin_cpu_share(frame, reverse_chunks, chunks, basin_shape_rows(shape) * width);
    if (dgamma && gains(frame))
        frame->simd->sum_rows(dgamma, part_gamma, chunks, width, width);
    else if (dgamma)
        *dgamma = frame->simd->sum(part_gamma, chunks);
    if (ddelta) frame->simd->sum_rows(ddelta, part_delta, chunks, width, width);
}
