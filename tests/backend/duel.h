/* One kernel call run on the reference backend and on the fast one, from the same numbers. The
 * fast result must be near the reference's, and the same bits for every number of threads. */
#ifndef BASIN_TESTS_BACKEND_DUEL_H
#define BASIN_TESTS_BACKEND_DUEL_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/kernel.h"
#include "basin/random.h"

enum { DUEL_BLOCKS = 1 + BASIN_MAX_IN + BASIN_MAX_OUT };

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

static inline int64_t duel_count(const basin_operand *operand) {
    return basin_shape_count(operand->shape);
}

/* A REAL operand of random floats in [low, high). */
static inline double *duel_in(duel *d, basin_shape shape, double low, double high) {
    int64_t count = basin_shape_count(shape);
    double *data = malloc((size_t)(count + 1) * sizeof *data);
    assert_non_null(data);
    for (int64_t i = 0; i < count; i++) {
        double u = basin_random_uniform_at(7, (uint64_t)d->call.op, d->drawn++);
        data[i] = (double)(float)(low + (high - low) * u);
    }
    d->in[d->call.ins] = data;
    d->call.in[d->call.ins++] = (basin_operand){.kind = BASIN_REAL, .shape = shape};
    return data;
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

static inline void *duel_block(basin_backend *backend, const double *real, const int32_t *index,
                               int64_t count) {
    size_t size = index ? 4 : backend->table->real_size;
    char *memory = backend->table->alloc(backend, (size_t)count * size + 64);
    assert_non_null(memory);
    memset(memory, 0xff, (size_t)count * size + 64);
    for (int64_t i = 0; real && i < count; i++) {
        if (size == sizeof(double))
            ((double *)(void *)(memory + 64))[i] = real[i];
        else
            ((float *)(void *)(memory + 64))[i] = (float)real[i];
    }
    if (index) memcpy(memory + 64, index, (size_t)count * 4);
    return memory;
}

/* Runs the call; result[i] holds a copy of output i, to be freed. */
static inline void duel_run(duel *d, basin_backend *backend, void *result[BASIN_MAX_OUT]) {
    void *block[DUEL_BLOCKS] = {0};
    basin_call *call = &d->call;
    basin_error error = {0};
    int blocks = 1;
    for (int i = 0; i < call->ins; i++) {
        if (call->in[i].block < 0) continue;
        block[blocks] = duel_block(backend, d->in[i], d->index[i], duel_count(&call->in[i]));
        call->in[i].block = blocks++, call->in[i].offset = 64;
    }
    for (int i = 0; i < call->outs; i++) {
        if (call->out[i].block < 0) continue;
        call->out[i].offset = 64;
        call->out[i].block = d->in_place[i] < 0 ? blocks : call->in[d->in_place[i]].block;
        if (d->in_place[i] < 0)
            block[blocks++] = duel_block(backend, NULL, NULL, duel_count(&call->out[i]));
    }
    call->workspace_bytes = backend->table->workspace(backend, call);
    block[0] = backend->table->alloc(backend, call->workspace_bytes + 64);
    assert_non_null(block[0]);
    memset(block[0], 0xff, call->workspace_bytes + 64);
    backend->table->run(backend, call, 1, block);
    basin_status status = backend->table->wait(backend, &error);
    if (status != BASIN_OK) fail_msg("%s: %s", backend->table->name, error.text);
    for (int i = 0; i < call->outs; i++) {
        size_t bytes = call->out[i].block < 0
                           ? 0
                           : (size_t)duel_count(&call->out[i]) * backend->table->real_size;
        result[i] = malloc(bytes + 1);
        assert_non_null(result[i]);
        if (bytes) memcpy(result[i], (char *)block[call->out[i].block] + 64, bytes);
    }
    for (int i = 0; i < blocks; i++) backend->table->free(backend, block[i]);
}

/* |found - wanted| <= tolerance (|wanted| + scale), scale being the root mean square of what is
 * wanted; with tolerance < 0 relative to each element alone, within -tolerance. */
static inline void duel_compare(const duel *d, int out, const float *found, const double *wanted,
                                double tolerance) {
    int64_t count = duel_count(&d->call.out[out]);
    double square = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(wanted[i])) square += wanted[i] * wanted[i];
    double scale = tolerance < 0 ? 2e-38 : sqrt(square / (double)(count ? count : 1));
    for (int64_t i = 0; i < count; i++) {
        double a = found[i], b = wanted[i];
        if (isnan(a) && isnan(b)) continue;
        if (isinf(a) && (a == b || fabs(b) > 3.4028235e38) && (a > 0) == (b > 0)) continue;
        double allowed =
            tolerance < 0 ? -tolerance * fabs(b) + scale : tolerance * (fabs(b) + scale) + 1e-37;
        if (fabs(a - b) <= allowed) continue;
        char text[BASIN_SHAPE_TEXT];
        fail_msg("operation %d, output %d %s, element %lld: found %.9g, wanted %.9g",
                 (int)d->call.op, out, basin_shape_print(text, d->call.out[out].shape),
                 (long long)i, a, b);
    }
}

/* Runs on both, compares and releases. */
static inline void duel_fight(duel *d, double tolerance) {
    static const int threads[] = {1, 2, 5};
    void *wanted[BASIN_MAX_OUT], *first[BASIN_MAX_OUT], *found[BASIN_MAX_OUT];
    basin_backend *backend;
    assert_int_equal(basin_backend_open_ref(&backend, NULL), BASIN_OK);
    duel_run(d, backend, wanted);
    backend->table->close(backend);
    for (int t = 0; t < 3; t++) {
        assert_int_equal(basin_backend_open_cpu(&backend, threads[t], NULL), BASIN_OK);
        duel_run(d, backend, t == 0 ? first : found);
        backend->table->close(backend);
        for (int i = 0; i < d->call.outs; i++) {
            if (d->call.out[i].block < 0) continue;
            size_t bytes = (size_t)duel_count(&d->call.out[i]) * sizeof(float);
            if (t == 0)
                duel_compare(d, i, first[i], wanted[i], tolerance);
            else if (bytes && memcmp(first[i], found[i], bytes) != 0)
                fail_msg("operation %d, output %d: %d threads give other bits than one",
                         (int)d->call.op, i, threads[t]);
        }
        for (int i = 0; t > 0 && i < d->call.outs; i++) free(found[i]);
    }
    for (int i = 0; i < d->call.outs; i++) free(wanted[i]), free(first[i]);
    duel_free(d);
}

#endif
