/* The fast backend inside: each operation is a function of a frame, the call with its operands
 * resolved to addresses. Work is cut into pieces by the shapes alone, never by the number of
 * threads, and partial results meet in a fixed order, so a result does not depend on that number.
 * The functions named _workspace say how many bytes of scratch the frame must bring. */
#ifndef BASIN_BACKEND_CPU_CPU_H
#define BASIN_BACKEND_CPU_CPU_H

#include "backend/cpu/simd/simd.h"
#include "backend/kernel.h"
#include "base/team/team.h"

typedef struct basin_cpu_frame {
    const basin_call *call;
    const void *in[BASIN_MAX_IN]; /* NULL where the operand is absent */
    void *out[BASIN_MAX_OUT];     /* NULL where nobody asks for the result */
    void *workspace;              /* 64-byte aligned */
    int threads;
    const basin_simd *simd;
    basin_error *error; /* the first fault of the stream; reported by wait */
} basin_cpu_frame;

/* Threads for `work` element operations. */
static inline int basin_cpu_team(const basin_cpu_frame *frame, int64_t work) {
    return basin_team_size(frame->threads, work);
}

/* Does items first .. last - 1 of a call's work. */
typedef void basin_cpu_part(const basin_cpu_frame *frame, int64_t first, int64_t last);

/* Calls `part` for all of [0, count), by as many threads as `work` element operations deserve. */
void basin_cpu_share(const basin_cpu_frame *frame, basin_cpu_part *part, int64_t count,
                     int64_t work);

/* Piece i of `count` things cut into `pieces`: first[i] .. first[i + 1] - 1. */
static inline int64_t basin_cpu_first(int64_t i, int64_t pieces, int64_t count) {
    return count / pieces * i + (i < count % pieces ? i : count % pieces);
}

/* Rows and width of a tensor seen as a matrix of rows. */
static inline int64_t basin_cpu_width(const basin_shape *shape) {
    return shape->rank > 0 ? shape->dim[shape->rank - 1] : 1;
}
static inline int64_t basin_cpu_rows(const basin_shape *shape) {
    int64_t rows = 1;
    for (int i = 0; i + 1 < shape->rank; i++) rows *= shape->dim[i];
    return rows;
}

/* Notes that `found`, element `at` of an index operand of `name`, is outside [least, limit). Such
 * an index counts as absent. Any thread may call it. */
void basin_cpu_bad_index(const basin_cpu_frame *frame, const char *name, int64_t at, int64_t found,
                         int64_t least, int64_t limit);

/* parts.c: does all calls of a run for all parts, each part's in their order and one at a time. Any
 * thread may take any part's next call; `place` numbers the threads. */
typedef void basin_cpu_part_step(const void *context, size_t call, int part, int place);
void basin_cpu_run_parts(basin_cpu_part_step *step, const void *context, size_t calls, int parts,
                         int threads);

/* The operations. */
typedef void basin_cpu_operation(const basin_cpu_frame *frame);
typedef size_t basin_cpu_workspace(const basin_call *call, int threads);
basin_cpu_operation basin_cpu_pointwise;
#define LEAF(...)
#define POINTWISE(...)
#define CALL(name, rule, ref, cpu, workspace, ...)                                                 \
    basin_cpu_operation basin_cpu_##cpu;                                                           \
    basin_cpu_workspace basin_cpu_##workspace##_workspace;
#include "backend/ops.inc"

/* product.c */
size_t basin_cpu_packed_bytes(const basin_backend *backend, int64_t k, int64_t n, basin_kind kind);

/* Narrow operands of a call as float, for kernels that take no others. Float copies of
 * narrow operands, and room for narrow results, lie in the workspace; _widen fills in and out and
 * returns what is left of it, _narrow rounds the results. */
size_t basin_cpu_widened_bytes(const basin_call *call);
void *basin_cpu_widen(const void **in, void **out, const basin_cpu_frame *frame);
void basin_cpu_narrow(const basin_cpu_frame *frame, void *const *out);

#endif
