/* The reference backend: every operation as plain loops in double, one thread, nothing clever.
 * It judges the other backends, so each function here reads like the equation it computes.
 * An operation is a function of a frame: the call, with its operands resolved to addresses. */
#ifndef BASIN_BACKEND_REF_REF_H
#define BASIN_BACKEND_REF_REF_H

#include "engine/backend/host.h"

/* Sets all (REAL) outputs to 0, for operations that add to them. */
void basin_ref_clear(const basin_frame *frame);

/* A list of pairs: those of query q are row[q] .. row[q + 1] - 1, and pair p has key key[p]. There
 * are row[queries] of them; `key` may be longer, the rest is padding. */
typedef struct basin_ref_csr {
    const int32_t *row; /* [queries + 1] */
    const int32_t *key; /* [pairs] */
    int64_t queries, keys, pairs;
} basin_ref_csr;

/* Whether the list stays inside its arrays; if not, records an error. True for a NULL row (no
 * list). */
bool basin_ref_csr_check(const basin_frame *frame, const char *name, const basin_ref_csr *csr);

/* basin_ref_program fills registers for one element; operand a is read at in[a][at[a]]. */
void basin_ref_program(double *registers, const basin_program *program, const void *const *in,
                       const int64_t *at, double tile);

/* The operations. */
typedef void basin_ref_operation(const basin_frame *frame);
#define basin_ref_none basin_host_none
basin_ref_operation basin_ref_pointwise;
#define LEAF(...)
#define POINTWISE(...)
#define CALL(name, rule, ref, ...) basin_ref_operation basin_ref_##ref;
#include "engine/backend/ops.inc"
size_t basin_ref_attention_scratch(const basin_call *call);
size_t basin_ref_values_scratch(const basin_call *call);

#endif
