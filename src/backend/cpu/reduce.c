/* Reductions: sums and maxima over neighbouring axes; log-sum-exp and softmax over the row.
 * A tensor is seen as [outer, middle, inner] and the middle vanishes. A middle too long for one
 * thread is cut into chunks of a fixed size, whose results are combined in their order. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/shape.h"

enum {
    CHUNK = 32768,    /* elements, at least, in a chunk */
    MAX_CHUNKS = 64,  /* per outer index */
    STRETCH = 1024,   /* wide rows */
    FOLD_WIDTH = 128, /* inner axes shorter than half of this are summed several rows at a time */
};

typedef struct span {
    int64_t outer, middle, inner;
    int64_t chunks; /* of the middle */
} span;

static span reduced_span(const basin_call *call) {
    const basin_shape *shape = &call->in[0].shape;
    int first = call->attr.axis, last = call->attr.axis + call->attr.count;
    span s = {basin_shape_product(shape, 0, first), basin_shape_product(shape, first, last),
              basin_shape_product(shape, last, shape->rank), 1};
    int64_t chunks = s.middle * s.inner / CHUNK;
    if (s.outer < MAX_CHUNKS && chunks > 1) s.chunks = chunks < MAX_CHUNKS ? chunks : MAX_CHUNKS;
    if (s.chunks > s.middle && s.middle > 0) s.chunks = s.middle;
    return s;
}

size_t basin_cpu_reduce_workspace(const basin_call *call, int threads) {
    (void)threads;
    span s = reduced_span(call);
    return s.chunks > 1 ? (size_t)(s.outer * s.chunks * s.inner) * sizeof(float) : 0;
}

typedef struct reducer {
    float (*row)(const float *x, int64_t n);
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
        *to = by->row(x, rows);
    else if (inner <= FOLD_WIDTH / 2 && rows > 2 * FOLD_WIDTH / inner)
        reduce_folded(to, x, rows, inner, by);
    else
        by->rows(to, x, rows, inner, inner);
}

static reducer reducer_of(const basin_cpu_frame *frame) {
    if (frame->call->op == BASIN_OP_MAX) return (reducer){frame->simd->max, frame->simd->max_rows};
    return (reducer){frame->simd->sum, frame->simd->sum_rows};
}

/* Where the results of chunks go: [outer, chunks, inner]. */
static float *chunk_results(const basin_cpu_frame *frame, const span *s) {
    return s->chunks > 1 ? frame->workspace : frame->out[0];
}

static void reduce_chunks(const basin_cpu_frame *frame, int64_t begin, int64_t end) {
    span s = reduced_span(frame->call);
    reducer by = reducer_of(frame);
    const float *x = frame->in[0]; /* [outer, middle, inner] */
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i / s.chunks, chunk = i % s.chunks;
        int64_t first = basin_cpu_first(chunk, s.chunks, s.middle);
        int64_t last = basin_cpu_first(chunk + 1, s.chunks, s.middle);
        reduce_part(chunk_results(frame, &s) + i * s.inner, x + (at * s.middle + first) * s.inner,
                    last - first, s.inner, &by);
    }
}

static void reduce(const basin_cpu_frame *frame) {
    span s = reduced_span(frame->call);
    reducer by = reducer_of(frame);
    float *y = frame->out[0]; /* [outer, inner] */
    basin_cpu_share(frame, reduce_chunks, s.outer * s.chunks, s.outer * s.middle * s.inner);
    for (int64_t i = 0; i < s.outer && s.chunks > 1; i++)
        reduce_part(y + i * s.inner, chunk_results(frame, &s) + i * s.chunks * s.inner, s.chunks,
                    s.inner, &by);
}

void basin_cpu_sum(const basin_cpu_frame *frame) { reduce(frame); }

void basin_cpu_max(const basin_cpu_frame *frame) { reduce(frame); }

/* Calls `part` for the rows of the operand; an element takes `cost` operations. */
static void share_rows(const basin_cpu_frame *frame, basin_cpu_part *part, int64_t cost) {
    const basin_shape *shape = &frame->call->in[0].shape;
    int64_t rows = basin_cpu_rows(shape);
    basin_cpu_share(frame, part, rows, rows * basin_cpu_width(shape) * cost);
}

static void logsumexp_rows(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    int64_t n = basin_cpu_width(&frame->call->in[0].shape);
    const float *x = frame->in[0]; /* [rows, n] */
    float *y = frame->out[0];      /* [rows] */
    for (int64_t i = first; i < last; i++) y[i] = frame->simd->logsumexp(x + i * n, n);
}

void basin_cpu_logsumexp(const basin_cpu_frame *frame) { share_rows(frame, logsumexp_rows, 4); }

static void softmax_rows(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    int64_t n = basin_cpu_width(&frame->call->in[0].shape);
    const float *x = frame->in[0]; /* [rows, n] */
    float *y = frame->out[0];      /* [rows, n] */
    for (int64_t i = first; i < last; i++) frame->simd->softmax(y + i * n, x + i * n, n);
}

void basin_cpu_softmax(const basin_cpu_frame *frame) { share_rows(frame, softmax_rows, 4); }

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
        step = next > t ? next - t : 0; /* NaN ends it, too */
        t = step > 0 ? next : t;
    }
    return t;
}

static void threshold_rows(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    int64_t n = basin_cpu_width(&frame->call->in[0].shape);
    const float *x = frame->in[0]; /* [rows, n] */
    float *y = frame->out[0];      /* [rows] */
    for (int64_t i = first; i < last; i++) {
        double most = n > 0 ? (double)frame->simd->max(x + i * n, n) : 1;
        y[i] = (float)row_threshold(x + i * n, n, frame->call->attr.count, most - 1);
    }
}

void basin_cpu_threshold(const basin_cpu_frame *frame) { share_rows(frame, threshold_rows, 16); }

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
static double square_part(const basin_cpu_frame *frame, int64_t chunk) {
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

static void square_parts(const basin_cpu_frame *frame, int64_t first, int64_t last) {
    double *part = frame->workspace; /* [chunks] */
    for (int64_t i = first; i < last; i++) part[i] = square_part(frame, i);
}

void basin_cpu_squares(const basin_cpu_frame *frame) {
    int64_t chunks = all_square_chunks(frame->call);
    const double *part = frame->workspace; /* [chunks] */
    double sum = 0;
    basin_cpu_share(frame, square_parts, chunks, chunks * CHUNK);
    for (int64_t i = 0; i < chunks; i++) sum += part[i];
    *(float *)frame->out[0] = (float)sum;
}
