/* The fast backend inside: each operation is a function of a frame, the call with its operands
 * resolved to addresses. Work is cut into pieces by shape, never by the number of threads, and
 * partial results are combined in a fixed order, so a result does not depend on that number. The
 * functions named _workspace return the bytes of scratch that the frame must provide. */
#ifndef BASIN_BACKEND_CPU_CPU_H
#define BASIN_BACKEND_CPU_CPU_H

#include "engine/backend/cpu/simd/simd.h"
#include "engine/backend/host.h"
#include "engine/core/team/team.h"

/* Threads for `work` element operations. */
static inline int basin_cpu_team(const basin_frame *frame, int64_t work) {
    return basin_parallel_size(frame->threads, work);
}

/* Does items first .. last - 1 of a call's work. */
typedef void basin_cpu_part(const basin_frame *frame, int64_t first, int64_t last);

/* Calls `part` for all of [0, count), by as many threads as `work` element operations deserve. */
void basin_cpu_share(const basin_frame *frame, basin_cpu_part *part, int64_t count, int64_t work);

/* Piece i of `count` things cut into `pieces`: first[i] .. first[i + 1] - 1. */
static inline int64_t basin_cpu_first(int64_t i, int64_t pieces, int64_t count) {
    return count / pieces * i + (i < count % pieces ? i : count % pieces);
}

/* Does all calls of a run for all parts, each part's in order; any thread takes any part's. */
typedef void basin_cpu_part_step(const void *context, size_t call, int part);
void basin_cpu_run_parts(basin_cpu_part_step *step, const void *context, size_t calls, int parts,
                         int threads);

/* The operations. */
typedef void basin_cpu_operation(const basin_frame *frame);
typedef size_t basin_cpu_workspace(const basin_call *call, int threads);
basin_cpu_operation basin_cpu_pointwise;
#define basin_cpu_none basin_host_none
#define LEAF(...)
#define POINTWISE(...)
#define CALL(name, rule, ref, cpu, workspace, ...)                                                 \
    basin_cpu_operation basin_cpu_##cpu;                                                           \
    basin_cpu_workspace basin_cpu_##workspace##_workspace;
#include "engine/backend/ops.inc"

/* product.c */
size_t basin_cpu_packed_bytes(const basin_backend *backend, int64_t k, int64_t n, basin_kind kind);

/* Narrow operands of a call as float, for kernels that take no others: copies in the workspace;
 * _widen fills in and out and returns what is left, _narrow rounds results. */
size_t basin_cpu_widened_bytes(const basin_call *call);
void *basin_cpu_widen(const void **in, void **out, const basin_frame *frame);
void basin_cpu_narrow(const basin_frame *frame, void *const *out);

/* ---- pointwise programs ----
 * Runs a pointwise program on pieces of its domain: each instruction is a vector loop over a block
 * of elements, registers are blocks of scratch that stay in the nearest cache. Operands that lie
 * contiguous under a block are read in place and results are written in place where that is safe;
 * the others are gathered first. Narrow operands become float as they are read, and results narrow
 * as they are written. */

enum {
    BASIN_CPU_LONG_ROW = 256, /* from here on rows are taken one at a time */
    BASIN_CPU_SCRATCH = 8192 + BASIN_MAX_REGISTERS * 16, /* floats per thread */
};

/* Which operands and outputs of a program are bfloat16, a bit each. */
typedef struct basin_cpu_kinds {
    uint32_t narrow_in, narrow_out;
} basin_cpu_kinds;

/* Those of a call whose program reads operands from number `first` on. */
static inline basin_cpu_kinds basin_cpu_kinds_of(const basin_call *call, int first) {
    basin_cpu_kinds kinds = {0};
    for (int a = first; a < call->ins && a < BASIN_MAX_IN; a++)
        kinds.narrow_in |= (uint32_t)(call->in[a].kind == BASIN_NARROW) << (a - first);
    for (int s = 0; s < call->outs && s < BASIN_MAX_OUT; s++)
        kinds.narrow_out |= (uint32_t)(call->out[s].kind == BASIN_NARROW) << s;
    return kinds;
}

typedef struct basin_cpu_program {
    const basin_simd *simd;
    const basin_program *program;
    const void *const *in; /* operand a of the program is in[a] */
    void *const *out;
    int64_t block; /* floats per register */
    basin_cpu_kinds kinds;
    uint32_t dense;    /* operands laid out as the domain is */
    int64_t unit;      /* blocks start at multiples of this: the row where rows are short, else 1 */
    uint32_t periodic; /* operands that repeat one short row: the same in every block */
    uint32_t constant; /* operands with one element */
    int lasting;       /* constants that keep their scratch, the first in the program */
    int direct[BASIN_MAX_OUT]; /* the instruction that writes output i in place; -1: copied at the
                                  end */
} basin_cpu_program;

/* A piece of a matrix product: tile[r * tile_row + c] is element [batch, row + r, col + c]. */
typedef struct basin_cpu_tile {
    const float *tile;
    int64_t tile_row, batch, row, col, rows, cols; /* rows * cols <= block */
} basin_cpu_tile;

basin_cpu_program basin_cpu_program_prepare(const basin_program *program, const void *const *in,
                                            void *const *out, const basin_simd *simd,
                                            basin_cpu_kinds kinds);
/* The elements of a tile, for an epilogue; needs no begin. */
void basin_cpu_program_tile(const basin_cpu_program *p, float *scratch, const basin_cpu_tile *at);

/* Reduces each row of what the program of a SUM or MAX computes, which is written nowhere. */
void basin_cpu_program_reduce(const basin_frame *frame,
                              void (*each)(float *to, const float *x, int64_t rows, int64_t n));

#endif
