/* One kernel call built by hand: operands in blocks of their own, outputs poisoned so that an
 * element left unwritten shows as NaN. For the tests of backends whose REAL is double. */
#ifndef BASIN_TESTS_BACKEND_RIG_H
#define BASIN_TESTS_BACKEND_RIG_H

#include <math.h>

#include "engine/backend/kernel.h"
#include "support/test.h"

typedef struct rig {
    basin_backend *backend;
    basin_call call;
    void *block[1 + BASIN_MAX_IN + BASIN_MAX_OUT]; /* block 0: the workspace */
    int blocks;
} rig;

static inline rig rig_new(basin_op op) {
    rig r = {.blocks = 1};
    assert_int_equal(basin_backend_open_ref(&r.backend, NULL), BASIN_OK);
    r.call.op = op;
    return r;
}

static inline void rig_free(rig *r) {
    for (int i = 0; i < r->blocks; i++)
        if (r->block[i]) r->backend->table->free(r->backend, r->block[i]);
    r->backend->table->close(r->backend);
}

/* Operands start 64 bytes into their block, so that a forgotten offset shows. */
static inline basin_operand rig_operand(rig *r, basin_kind kind, basin_shape shape,
                                        const void *data) {
    const basin_backend_table *table = r->backend->table;
    size_t bytes = (size_t)basin_shape_count(shape) * (kind == BASIN_REAL ? table->real_size : 4);
    char *memory = table->alloc(r->backend, bytes + 64);
    assert_non_null(memory);
    memset(memory, 0xff, bytes + 64);
    if (data) table->copy_in(r->backend, memory + 64, data, bytes);
    r->block[r->blocks] = memory;
    return (basin_operand){.block = r->blocks++, .kind = kind, .offset = 64, .shape = shape};
}

static inline void rig_in(rig *r, basin_shape shape, const double *data) {
    r->call.in[r->call.ins++] = rig_operand(r, BASIN_REAL, shape, data);
}

static inline void rig_index(rig *r, basin_shape shape, const int32_t *data) {
    r->call.in[r->call.ins++] = rig_operand(r, BASIN_INDEX, shape, data);
}

static inline void rig_in_absent(rig *r) {
    r->call.in[r->call.ins++] = (basin_operand){.block = -1};
}

static inline void rig_out(rig *r, basin_shape shape) {
    r->call.out[r->call.outs++] = rig_operand(r, BASIN_REAL, shape, NULL);
}

static inline void rig_out_absent(rig *r) {
    r->call.out[r->call.outs++] = (basin_operand){.block = -1};
}

static inline basin_status rig_try(rig *r, basin_error *error) {
    const basin_backend_table *table = r->backend->table;
    r->call.workspace_bytes = table->workspace(r->backend, &r->call);
    if (!r->block[0]) r->block[0] = table->alloc(r->backend, r->call.workspace_bytes);
    assert_non_null(r->block[0]);
    table->run(r->backend, &r->call, 1, r->block);
    return table->wait(r->backend, error);
}

static inline double *rig_data(rig *r, const basin_operand *operand) {
    return (double *)((char *)r->block[operand->block] + operand->offset);
}

static inline void rig_run(rig *r) { assert_ok(rig_try(r, &failure)); }

static inline double *rig_result(rig *r, int i) { return rig_data(r, &r->call.out[i]); }

/* Compares output i with `wanted` within `tolerance`; NaN and infinity must match exactly. */
static inline void rig_check(rig *r, int i, const double *wanted, double tolerance) {
    const double *found = rig_result(r, i);
    int64_t count = basin_shape_count(r->call.out[i].shape);
    for (int64_t j = 0; j < count; j++) {
        if (found[j] == wanted[j] || fabs(found[j] - wanted[j]) <= tolerance) continue;
        fail_msg("operation %d, output %d, element %lld: found %.17g, expected %.17g",
                 (int)r->call.op, i, (long long)j, found[j], wanted[j]);
    }
}

/* Runs, compares the only output and releases. */
static inline void rig_expect(rig *r, const double *wanted) {
    rig_run(r);
    rig_check(r, 0, wanted, 1e-14);
    rig_free(r);
}

#define VALUES(...) ((const double[]){__VA_ARGS__})
#define INDICES(...) ((const int32_t[]){__VA_ARGS__})

#endif
