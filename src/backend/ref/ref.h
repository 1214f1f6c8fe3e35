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
    double *scratch;              /* call->workspace_bytes of it */
    basin_error *error;           /* the first fault of the stream; reported by wait */
} basin_ref_frame;

/* Notes that `found`, element `at` of the index operand of operation `name`, is outside
 * [least, limit). The stream goes on: such an index counts as absent. */
void basin_ref_bad_index(const basin_ref_frame *frame, const char *name, int64_t at, int64_t found,
                         int64_t least, int64_t limit);

/* pointwise.c. basin_ref_program fills registers [program->registers] for one element; operand a
 * is read at in[a][at[a]]. */
void basin_ref_program(double *registers, const basin_program *program, const void *const *in,
                       const int64_t *at, double tile);
void basin_ref_pointwise(const basin_ref_frame *frame);
void basin_ref_pointwise_fused(const basin_ref_frame *frame);

/* move.c */
void basin_ref_permute(const basin_ref_frame *frame);
void basin_ref_slice(const basin_ref_frame *frame);
void basin_ref_pad(const basin_ref_frame *frame);
void basin_ref_concat(const basin_ref_frame *frame);
void basin_ref_gather(const basin_ref_frame *frame);
void basin_ref_scatter(const basin_ref_frame *frame);

/* reduce.c */
void basin_ref_sum(const basin_ref_frame *frame);
void basin_ref_max(const basin_ref_frame *frame);
void basin_ref_logsumexp(const basin_ref_frame *frame);
void basin_ref_softmax(const basin_ref_frame *frame);

/* norm.c */
void basin_ref_layernorm(const basin_ref_frame *frame);
void basin_ref_layernorm_reverse(const basin_ref_frame *frame);

/* product.c */
void basin_ref_matmul(const basin_ref_frame *frame);

#endif
