/* One kernel call run on the reference backend and on its rival, from the same numbers. The rival's
 * result must be near the reference's, and the same bits in every round (another number of threads,
 * or simply again). */
#ifndef BASIN_TESTS_BACKEND_DUEL_H
#define BASIN_TESTS_BACKEND_DUEL_H

#include <math.h>

#include "base/shape.h"
#include "basin/random.h"
#include "engine/backend/kernel.h"
#include "engine/core/philox.h"
#include "support/test.h"

enum { DUEL_BLOCKS = 1 + BASIN_MAX_IN + BASIN_MAX_OUT };

/* Who is compared with the reference; a test sets it before its duels. */
static struct {
    basin_backend *(*open)(int round);
    void (*close)(basin_backend *backend);
    int rounds;
    bool gather; /* print what fails and go on; duel_verdict fails the test */
    int failures;
} duel_rival;

typedef struct duel {
    basin_call call;
    double *in[BASIN_MAX_IN]; /* REAL operands; what the reference reads */
    const int32_t *index[BASIN_MAX_IN];
    int in_place[BASIN_MAX_OUT]; /* operand an output lies on, or -1 */
    uint64_t drawn;
} duel;

static inline duel duel_new(basin_op op) {
    duel d = {.call = {.op = op}};
    for (int i = 0; i < BASIN_MAX_OUT; i++) d.in_place[i] = -1;
    return d;
}

static inline void duel_free(duel *d) {
    for (int i = 0; i < d->call.ins; i++) free(d->in[i]);
}

/* Elements in memory: of a matrix whose rows lie apart, with the gaps. */
static inline int64_t duel_count(const basin_operand *operand) {
    int64_t count = basin_shape_count(operand->shape);
    if (!operand->stride) return count;
    return count / operand->shape.dim[operand->shape.rank - 1] * operand->stride;
}

/* A REAL operand of random floats in [low, high), its rows `stride` apart (0: dense). */
static inline double *duel_in_apart(duel *d, basin_shape shape, int64_t stride, double low,
                                    double high) {
    basin_operand operand = {.kind = BASIN_REAL, .shape = shape, .stride = stride};
    int64_t count = duel_count(&operand);
    double *data = malloc((size_t)(count + 1) * sizeof *data);
    assert_non_null(data);
    float *drawn = malloc((size_t)(count + 1) * sizeof *drawn);
    assert_non_null(drawn);
    basin_random_fill_uniform(drawn, 7, (uint64_t)d->call.op, d->drawn, (size_t)count);
    d->drawn += (uint64_t)count;
    for (int64_t i = 0; i < count; i++)
        data[i] = (double)(float)(low + (high - low) * (double)drawn[i]);
    free(drawn);
    d->in[d->call.ins] = data;
    d->call.in[d->call.ins++] = operand;
    return data;
}

static inline double *duel_in(duel *d, basin_shape shape, double low, double high) {
    return duel_in_apart(d, shape, 0, low, high);
}

static inline void duel_index(duel *d, basin_shape shape, const int32_t *data) {
    d->index[d->call.ins] = data;
    d->call.in[d->call.ins++] = (basin_operand){.kind = BASIN_INDEX, .shape = shape};
}

static inline void duel_in_absent(duel *d) {
    d->call.in[d->call.ins++] = (basin_operand){.block = -1};
}

static inline void duel_out(duel *d, basin_shape shape) {
    d->call.out[d->call.outs++] = (basin_operand){.kind = BASIN_REAL, .shape = shape};
}

static inline void duel_out_absent(duel *d) {
    d->call.out[d->call.outs++] = (basin_operand){.block = -1};
}

/* bfloat16, rounded to even; the numbers here are finite. */
static inline uint16_t duel_to_narrow(double number) {
    float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float duel_from_narrow(uint16_t narrow) {
    uint32_t bits = (uint32_t)narrow << 16;
    float single;
    memcpy(&single, &bits, sizeof single);
    return single;
}

/* Makes the operands and results of which a bit is set narrow, where the backend takes such;
 * numbers are rounded for both sides. */
static inline void duel_narrow(duel *d, unsigned ins, unsigned outs) {
    for (int i = 0; i < d->call.ins; i++) {
        if (!(ins >> i & 1) || !d->in[i]) continue;
        d->call.in[i].kind = BASIN_NARROW;
        for (int64_t j = 0; j < duel_count(&d->call.in[i]); j++)
            d->in[i][j] = (double)duel_from_narrow(duel_to_narrow(d->in[i][j]));
    }
    for (int i = 0; i < d->call.outs; i++)
        if (outs >> i & 1 && d->call.out[i].block >= 0) d->call.out[i].kind = BASIN_NARROW;
}

static inline size_t duel_size(const basin_backend *backend, const basin_operand *operand) {
    if (operand->kind == BASIN_INDEX) return 4;
    bool narrow = operand->kind == BASIN_NARROW && backend->table->narrow_size == 2;
    return narrow ? 2 : backend->table->real_size;
}

/* Device memory of `count` elements behind 64 bytes of padding; all bits set where no number is. */
static inline void *duel_block(basin_backend *backend, const double *real, const int32_t *index,
                               int64_t count, size_t size) {
    size_t bytes = (size_t)count * size + 64;
    char *memory = backend->table->alloc(backend, bytes), *host = malloc(bytes);
    assert_non_null(memory);
    assert_non_null(host);
    memset(host, 0xff, bytes);
    for (int64_t i = 0; real && i < count; i++) {
        if (size == sizeof(double))
            ((double *)(void *)(host + 64))[i] = real[i];
        else if (size == 2)
            ((uint16_t *)(void *)(host + 64))[i] = duel_to_narrow(real[i]);
        else
            ((float *)(void *)(host + 64))[i] = (float)real[i];
    }
    if (index) memcpy(host + 64, index, (size_t)count * 4);
    backend->table->copy_in(backend, memory, host, bytes);
    free(host);
    return memory;
}

/* The call in words: its number and all shapes. */
static inline const char *duel_text(const duel *d, char text[1000]) {
    int at = snprintf(text, 1000, "operation %d (", (int)d->call.op);
    for (int i = 0; i < d->call.ins && at < 900; i++)
        at += snprintf(text + at, 1000 - (size_t)at, "%s%s", i ? " " : "",
                       d->call.in[i].block < 0 ? "-" : basin_shape_text(d->call.in[i].shape));
    for (int i = 0; i < d->call.outs && at < 900; i++)
        at += snprintf(text + at, 1000 - (size_t)at, "%s%s", i ? " " : ") -> ",
                       d->call.out[i].block < 0 ? "-" : basin_shape_text(d->call.out[i].shape));
    snprintf(text + at, 1000 - (size_t)at, ", axis %d, transposed %d%d, value %g",
             d->call.attr.axis, d->call.attr.transpose_a, d->call.attr.transpose_b,
             d->call.attr.value);
    return text;
}

static inline void duel_failed(const char *text) {
    if (!duel_rival.gather) fail_msg("%s", text);
    duel_rival.failures++;
    if (duel_rival.failures <= 40) fprintf(stderr, "  FAILED %s\n", text);
}

/* For the end of a test that gathers failures. */
static inline int duel_verdict(void **state) {
    int failures = duel_rival.failures;
    (void)state;
    duel_rival.failures = 0;
    return failures ? -1 : 0;
}

/* Runs the call; result[i] holds a copy of output i, to be freed. */
static inline void duel_run(duel *d, basin_backend *backend, void *result[BASIN_MAX_OUT]) {
    void *block[DUEL_BLOCKS] = {0};
    basin_call *call = &d->call;
    basin_error error = {0};
    int blocks = 1;
    for (int i = 0; i < call->ins; i++) {
        if (call->in[i].block < 0) continue;
        block[blocks] = duel_block(backend, d->in[i], d->index[i], duel_count(&call->in[i]),
                                   duel_size(backend, &call->in[i]));
        call->in[i].block = blocks++, call->in[i].offset = 64;
    }
    for (int i = 0; i < call->outs; i++) {
        if (call->out[i].block < 0) continue;
        call->out[i].offset = 64;
        call->out[i].block = d->in_place[i] < 0 ? blocks : call->in[d->in_place[i]].block;
        if (d->in_place[i] < 0)
            block[blocks++] = duel_block(backend, NULL, NULL, duel_count(&call->out[i]),
                                         duel_size(backend, &call->out[i]));
    }
    call->workspace_bytes = backend->table->workspace(backend, call);
    size_t reals = call->workspace_bytes / backend->table->real_size + 1;
    block[0] = duel_block(backend, NULL, NULL, (int64_t)reals, backend->table->real_size);
    backend->table->run(backend, call, 1, block);
    basin_status status = backend->table->wait(backend, &error);
    if (status != BASIN_OK) {
        char text[1000], line[1600];
        snprintf(line, sizeof line, "%s: %s: %s", backend->table->name, duel_text(d, text),
                 error.text);
        duel_failed(line);
        if (strstr(error.text, "cudaError")) exit(3); /* the device is lost to this process */
    }
    for (int i = 0; i < call->outs; i++) {
        int64_t count = call->out[i].block < 0 ? 0 : duel_count(&call->out[i]);
        size_t size = duel_size(backend, &call->out[i]);
        result[i] = malloc((size_t)count * (size < 4 ? 4 : size) + 1);
        assert_non_null(result[i]);
        if (count)
            backend->table->copy_out(backend, result[i], (char *)block[call->out[i].block] + 64,
                                     (size_t)count * size);
        for (int64_t j = count; size == 2 && j-- > 0;) /* from the end: floats need more room */
            ((float *)result[i])[j] = duel_from_narrow(((uint16_t *)result[i])[j]);
    }
    for (int i = 0; i < blocks; i++) backend->table->free(backend, block[i]);
}

/* How far a is beyond what is allowed for b; 0 where it is not. */
static inline double duel_excess(double a, double b, double tolerance, double scale) {
    if (isnan(a) && isnan(b)) return 0;
    if (tolerance == 0) return (float)a == (float)b ? 0 : INFINITY;
    if (isinf(a) && (a == b || fabs(b) > 3.4028235e38) && (a > 0) == (b > 0)) return 0;
    double allowed =
        tolerance < 0 ? -tolerance * fabs(b) + scale : tolerance * (fabs(b) + scale) + 1e-37;
    double off = fabs(a - b);
    return off <= allowed ? 0 : isnan(off) ? INFINITY : off / allowed;
}

/* |found - wanted| <= tolerance (|wanted| + scale), scale being the root mean square of what is
 * wanted; with tolerance < 0 relative to each element alone, within -tolerance; with 0 the float
 * next to what is wanted. */
static inline void duel_compare(const duel *d, int out, const float *found, const double *wanted,
                                double tolerance) {
    int64_t count = duel_count(&d->call.out[out]), worst = -1, wrong = 0;
    double square = 0, most = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(wanted[i])) square += wanted[i] * wanted[i];
    double scale = tolerance < 0 ? 2e-38 : sqrt(square / (double)(count ? count : 1));
    for (int64_t i = 0; i < count; i++) {
        double excess = duel_excess(found[i], wanted[i], tolerance, scale);
        wrong += excess > 0;
        if (excess > most) most = excess, worst = i;
    }
    if (worst < 0) return;
    char text[1000], line[1600];
    snprintf(
        line, sizeof line,
        "%s: output %d: %lld of %lld wrong; worst element %lld: found %.9g, expected %.9g (%.3g "
        "times what is allowed)",
        duel_text(d, text), out, (long long)wrong, (long long)count, (long long)worst,
        (double)found[worst], wanted[worst], most);
    duel_failed(line);
}

/* Runs on both, compares and releases. */
static inline void duel_fight(duel *d, double tolerance) {
    void *wanted[BASIN_MAX_OUT], *first[BASIN_MAX_OUT], *found[BASIN_MAX_OUT];
    basin_backend *backend;
    assert_int_equal(basin_backend_open_ref(&backend, NULL), BASIN_OK);
    duel_run(d, backend, wanted);
    backend->table->close(backend);
    for (int round = 0; round < duel_rival.rounds; round++) {
        backend = duel_rival.open(round);
        duel_run(d, backend, round == 0 ? first : found);
        duel_rival.close(backend);
        for (int i = 0; i < d->call.outs; i++) {
            if (d->call.out[i].block < 0) continue;
            size_t bytes = (size_t)duel_count(&d->call.out[i]) * sizeof(float);
            if (round == 0)
                duel_compare(d, i, first[i], wanted[i], tolerance);
            else if (bytes && memcmp(first[i], found[i], bytes) != 0) {
                char text[1000], line[1600];
                snprintf(line, sizeof line,
                         "%s: output %d: round %d gives other bits than the first",
                         duel_text(d, text), i, round);
                duel_failed(line);
            }
        }
        for (int i = 0; round > 0 && i < d->call.outs; i++) free(found[i]);
    }
    for (int i = 0; i < d->call.outs; i++) free(wanted[i]), free(first[i]);
    duel_free(d);
}

#endif
