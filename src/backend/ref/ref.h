/* The reference backend: every operation as plain loops in double, one thread, nothing clever.
 * It judges the other backends, so each function here reads like the equation it computes.
 * An operation is a function of a frame: the call, with its operands resolved to addresses. */
#ifndef BASIN_BACKEND_REF_REF_H
#define BASIN_BACKEND_REF_REF_H

#include "backend/kernel.h"

typedef struct basin_ref_frame {
    const basin_call *call;
    const void *in[BASIN_MAX_IN]; /* NULL where the operand is absent */
    void *out[BASIN_MAX_OUT];     /* NULL where nobody asks for the result */
    void *twin[BASIN_MAX_TWINS];  /* the same */
    double *scratch;              /* call->workspace_bytes of it */
    basin_error *error;           /* the first fault of the stream; reported by wait */
} basin_ref_frame;

/* Sets all (REAL) outputs to 0, for operations that add to them. */
void basin_ref_clear(const basin_ref_frame *frame);

/* Notes that `found`, element `at` of the index operand of operation `name`, is outside
 * [least, limit). The stream goes on: such an index counts as absent. */
void basin_ref_bad_index(const basin_ref_frame *frame, const char *name, int64_t at, int64_t found,
                         int64_t least, int64_t limit);

/* A list of pairs: those of query q are row[q] .. row[q + 1] - 1, and pair p has key key[p]. There
 * are row[queries] of them; `key` may be longer, the rest is padding. */
typedef struct basin_ref_csr {
    const int32_t *row; /* [queries + 1] */
    const int32_t *key; /* [pairs] */
    int64_t queries, keys, pairs;
} basin_ref_csr;

/* Whether the list stays inside its arrays; if not, notes so. A NULL row is no list: true. */
bool basin_ref_csr_check(const basin_ref_frame *frame, const char *name, const basin_ref_csr *csr);

/* pointwise.c. basin_ref_program fills registers [program->registers] for one element; operand a
 * is read at in[a][at[a]]. */
void basin_ref_program(double *registers, const basin_program *program, const void *const *in,
                       const int64_t *at, double tile);

/* The operations. */
typedef void basin_ref_operation(const basin_ref_frame *frame);
basin_ref_operation basin_ref_pointwise;
#define LEAF(...)
#define POINTWISE(...)
#define CALL(name, rule, ref, ...) basin_ref_operation basin_ref_##ref;
#include "backend/ops.inc"
size_t basin_ref_attention_scratch(const basin_call *call);
size_t basin_ref_tokens_scratch(const basin_call *call);

#endif
