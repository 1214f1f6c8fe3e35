/* The fast backend's table: float32 in the host's memory, the stream executed as it is queued by a
 * team of threads (engine/core/team/team.h). What goes wrong in a run is kept until wait() asks. */
#include "engine/backend/cpu/cpu.h"

#include <pthread.h>

#include "engine/backend/device.h"
#include "engine/core/team/team.h"

typedef struct sharing {
    const basin_frame *frame;
    basin_cpu_part *part;
} sharing;

static void run_part(const void *context, int64_t first, int64_t last) {
    const sharing *s = context;
    s->part(s->frame, first, last);
}

void basin_cpu_share(const basin_frame *frame, basin_cpu_part *part, int64_t count, int64_t work) {
    sharing s = {frame, part};
    basin_parallel_for(run_part, &s, count, 0, basin_cpu_team(frame, work));
}

size_t basin_cpu_none_workspace(const basin_call *call, int threads) {
    (void)call, (void)threads;
    return 0;
}

typedef struct operation {
    basin_cpu_operation *run;
    basin_cpu_workspace *workspace;
} operation;

static const operation operations[BASIN_OP_COUNT] = {
#define LEAF(...) {basin_cpu_none, basin_cpu_none_workspace},
#define POINTWISE(...) {basin_cpu_pointwise, basin_cpu_none_workspace},
#define CALL(name, rule, ref, cpu, workspace, ...)                                                 \
    {basin_cpu_##cpu, basin_cpu_##workspace##_workspace},
#include "engine/backend/ops.inc"
};

static operation operation_of(basin_op op) {
    return operations[(unsigned)op < BASIN_OP_COUNT ? op : BASIN_OP_INPUT];
}

static size_t workspace(basin_backend *backend, const basin_call *call) {
    return operation_of(call->op).workspace(call, call->parts > 1 ? 1 : backend->threads);
}

/* Runs a call, or part number `part` of a call in parts in this thread's workspace. */
static void run_one(basin_backend *backend, const basin_call *call, void *const *block,
                    size_t part) {
    basin_frame frame = basin_host_frame(backend, call, block, part);
    frame.threads = call->parts > 1 ? 1 : backend->threads;
    size_t place = call->parts > 1 ? (size_t)basin_parallel_place() : 0;
    frame.simd = basin_simd_select();
    if (frame.workspace) frame.workspace = (char *)frame.workspace + place * call->workspace_bytes;
    if (basin_op_has_kernel(call->op)) operation_of(call->op).run(&frame);
}

/* Calls in parts that follow each other. */
typedef struct run_of_parts {
    basin_backend *backend;
    const basin_call *call;
    void *const *block;
} run_of_parts;

static void run_part_of_call(const void *context, size_t call, int part) {
    const run_of_parts *run = context;
    run_one(run->backend, run->call + call, run->block, (size_t)part);
}

static void stream_run(basin_backend *backend, const basin_call *call, size_t calls,
                       void *const *block) {
    for (size_t i = 0, end; i < calls; i = end) {
        run_of_parts run = {backend, &call[i], block};
        end = i + 1;
        while (call[i].parts > 1 && end < calls && call[end].parts == call[i].parts) end++;
        if (call[i].parts > 1)
            basin_cpu_run_parts(run_part_of_call, &run, end - i, call[i].parts, backend->threads);
        else
            run_one(backend, &call[i], block, 0);
    }
}

static const char *narrow_lacks(const basin_backend *backend) {
    (void)backend;
    return basin_cpu_bf16() ? NULL : "bfloat16 instructions (AMX, AVX-512 BF16 or Arm's BFMMLA)";
}

static const basin_backend_table table = {
    .name = "cpu",
    .real_size = sizeof(float),
    .real = BASIN_F32,
    .fuse = true,
    .reduces = true,
    .parts = true,
    .narrow_size = sizeof(uint16_t),
    .narrow_min = 0x1p20,
    .narrow_lacks = narrow_lacks,
    BASIN_HOST_MEMORY,
    .packed_bytes = basin_cpu_packed_bytes,
    .workspace = workspace,
    .run = stream_run,
};

basin_status basin_backend_open_cpu(basin_backend **backend, int threads, basin_error *error) {
    *backend = NULL;
    if (basin_isa_unknown())
        return basin_fail(error, BASIN_BAD_VALUE,
                          "BASIN_ISA is '%s'; expected portable, neon, avx2 or avx512",
                          basin_isa_unknown());
    return basin_host_open(backend, &table, threads > 0 ? threads : basin_thread_count(), error);
}

/* Calls in parts (backend/kernel.h): threads share the parts, not the calls, and synchronise only
 * at the end. A thread stays with a part while it is not far ahead of the others, then takes the
 * one furthest behind: cores of unequal speed all work to the end. */

enum { AHEAD = 8 }; /* calls: about a step of a descent */

typedef struct parts_sharing {
    basin_cpu_part_step *step;
    const void *context;
    size_t calls;
    int parts;
    pthread_mutex_t lock;     /* of these two */
    size_t next[BASIN_PARTS]; /* call of each part */
    bool taken[BASIN_PARTS];  /* some thread is at it */
} parts_sharing;

/* The part to go on with after part `own` (-1: none); -1: nothing is left for this thread. */
static int choose(const parts_sharing *s, int own) {
    int best = -1;
    for (int i = 0; i < s->parts; i++)
        if (!s->taken[i] && s->next[i] < s->calls && (best < 0 || s->next[i] < s->next[best]))
            best = i;
    bool stays =
        best >= 0 && own >= 0 && s->next[own] < s->calls && s->next[own] < s->next[best] + AHEAD;
    return stays ? own : best;
}

/* Gives part `own` back, one call further, and takes the next. */
static int take(parts_sharing *s, int own, size_t *call) {
    pthread_mutex_lock(&s->lock);
    if (own >= 0) s->taken[own] = false, s->next[own]++;
    int part = choose(s, own);
    if (part >= 0) s->taken[part] = true, *call = s->next[part];
    pthread_mutex_unlock(&s->lock);
    return part;
}

static void work(const void *context, int64_t first, int64_t last) {
    parts_sharing *s = *(parts_sharing *const *)context;
    size_t call;
    (void)first, (void)last;
    for (int part = take(s, -1, &call); part >= 0; part = take(s, part, &call))
        s->step(s->context, call, part);
}

void basin_cpu_run_parts(basin_cpu_part_step *step, const void *context, size_t calls, int parts,
                         int threads) {
    parts_sharing all = {.step = step, .context = context, .calls = calls, .parts = parts},
                  *s = &all;
    pthread_mutex_init(&all.lock, NULL);
    basin_parallel_for(work, &s, threads < parts ? threads : parts, 1, threads);
    pthread_mutex_destroy(&all.lock);
}

/* ---- Narrow operands for kernels that take float: copies in the workspace, see cpu.h ---- */

enum { PIECE = 1 << 14 }; /* numbers that a thread takes at a time */

static int64_t count_of(const basin_operand *operand) {
    return basin_shape_product(&operand->shape, 0, operand->shape.rank);
}

static size_t bytes_of(const basin_operand *operand) {
    if (operand->block < 0 || operand->kind != BASIN_NARROW) return 0;
    return ((size_t)count_of(operand) * sizeof(float) + 63) / 64 * 64;
}

size_t basin_cpu_widened_bytes(const basin_call *call) {
    size_t bytes = 0;
    for (int i = 0; i < call->ins; i++) bytes += bytes_of(&call->in[i]);
    for (int i = 0; i < call->outs; i++) bytes += bytes_of(&call->out[i]);
    return bytes;
}

typedef struct conversion {
    const basin_frame *frame;
    float *wide;
    uint16_t *narrow;
    bool widens;
} conversion;

static void convert_some(const void *context, int64_t first, int64_t last) {
    const conversion *c = context;
    if (c->widens)
        c->frame->simd->widen(c->wide + first, c->narrow + first, last - first);
    else
        c->frame->simd->narrow(c->narrow + first, c->wide + first, last - first);
}

/* All of an operand, to float or back: one of the two pointers is the source. */
static void convert(const basin_frame *frame, float *wide, uint16_t *narrow, int64_t count,
                    bool widens) {
    conversion c = {frame, wide, narrow, widens};
    basin_parallel_for(convert_some, &c, count, PIECE, basin_cpu_team(frame, count));
}

void *basin_cpu_widen(const void **in, void **out, const basin_frame *frame) {
    const basin_call *call = frame->call;
    char *room = frame->workspace;
    for (int i = 0; i < BASIN_MAX_IN; i++) {
        in[i] = i < call->ins ? frame->in[i] : NULL;
        size_t bytes = i < call->ins ? bytes_of(&call->in[i]) : 0;
        if (bytes == 0) continue;
        convert(frame, (float *)room, (uint16_t *)(uintptr_t)frame->in[i], count_of(&call->in[i]),
                true);
        in[i] = room;
        room += bytes;
    }
    for (int i = 0; i < BASIN_MAX_OUT; i++) {
        out[i] = i < call->outs ? frame->out[i] : NULL;
        size_t bytes = i < call->outs ? bytes_of(&call->out[i]) : 0;
        if (bytes == 0) continue;
        out[i] = room;
        room += bytes;
    }
    return room;
}

void basin_cpu_narrow(const basin_frame *frame, void *const *out) {
    for (int i = 0; i < frame->call->outs; i++)
        if (bytes_of(&frame->call->out[i]) > 0)
            convert(frame, out[i], frame->out[i], count_of(&frame->call->out[i]), false);
}
