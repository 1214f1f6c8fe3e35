/* The fast backend's table: float32 in the host's memory, the stream executed as it is queued by a
 * team of threads (base/team/team.h). What goes wrong in a run is kept until wait() asks. */
#include "backend/cpu/cpu.h"

#include <pthread.h>
#include <stdlib.h>

#include "backend/host.h"
#include "backend/isa.h"
#include "base/team/processors.h"

typedef struct cpu_backend {
    basin_backend base;
    const basin_simd *simd;
    basin_error error; /* status BASIN_OK while nothing failed */
} cpu_backend;

void basin_cpu_bad_index(const basin_cpu_frame *frame, const char *name, int64_t at, int64_t found,
                         int64_t least, int64_t limit) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one_at_a_time);
    if (frame->error->status == BASIN_OK)
        basin_fail(frame->error, BASIN_BAD_VALUE,
                   "%s: index %lld at element %lld is not in [%lld, %lld)", name, (long long)found,
                   (long long)at, (long long)least, (long long)limit);
    pthread_mutex_unlock(&one_at_a_time);
}

typedef struct sharing {
    const basin_cpu_frame *frame;
    basin_cpu_part *part;
} sharing;

static void run_part(const void *context, int64_t first, int64_t last, int place) {
    const sharing *s = context;
    (void)place;
    s->part(s->frame, first, last);
}

void basin_cpu_share(const basin_cpu_frame *frame, basin_cpu_part *part, int64_t count,
                     int64_t work) {
    sharing s = {frame, part};
    basin_team_run(run_part, &s, count, 0, basin_cpu_team(frame, work));
}

void basin_cpu_none(const basin_cpu_frame *frame) {
    if (frame->error->status != BASIN_OK) return;
    basin_fail(frame->error, BASIN_UNSUPPORTED, "backend cpu: no operation %d, of 0 to %d",
               (int)frame->call->op, BASIN_OP_COUNT - 1);
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
#include "backend/ops.inc"
};

static operation operation_of(basin_op op) {
    return operations[(unsigned)op < BASIN_OP_COUNT ? op : BASIN_OP_INPUT];
}

static size_t workspace(basin_backend *backend, const basin_call *call) {
    return operation_of(call->op).workspace(call, call->parts > 1 ? 1 : backend->threads);
}

static void *resolve(const basin_operand *operand, void *const *block, size_t part) {
    if (operand->block < 0) return NULL;
    return (char *)block[operand->block] + operand->offset + part * operand->part;
}

/* A call; of one in parts, part number `part` in the workspace of thread number `place`. */
static void run_one(cpu_backend *cpu, const basin_call *call, void *const *block, size_t part,
                    size_t place) {
    basin_cpu_frame frame = {.call = call, .threads = call->parts > 1 ? 1 : cpu->base.threads};
    frame.simd = cpu->simd;
    frame.error = &cpu->error;
    for (int i = 0; i < call->ins; i++) frame.in[i] = resolve(&call->in[i], block, part);
    for (int i = 0; i < call->outs; i++) frame.out[i] = resolve(&call->out[i], block, part);
    if (call->workspace_bytes)
        frame.workspace = (char *)block[0] + call->workspace + place * call->workspace_bytes;
    if (basin_op_has_kernel(call->op)) operation_of(call->op).run(&frame);
}

/* Calls in parts that follow each other. */
typedef struct run_of_parts {
    cpu_backend *cpu;
    const basin_call *call;
    void *const *block;
} run_of_parts;

static void run_part_of_call(const void *context, size_t call, int part, int place) {
    const run_of_parts *run = context;
    run_one(run->cpu, run->call + call, run->block, (size_t)part, (size_t)place);
}

static void stream_run(basin_backend *backend, const basin_call *call, size_t calls,
                       void *const *block) {
    cpu_backend *cpu = (cpu_backend *)backend;
    for (size_t i = 0, end; i < calls; i = end) {
        run_of_parts run = {cpu, &call[i], block};
        end = i + 1;
        while (call[i].parts > 1 && end < calls && call[end].parts == call[i].parts) end++;
        if (call[i].parts > 1)
            basin_cpu_run_parts(run_part_of_call, &run, end - i, call[i].parts, backend->threads);
        else
            run_one(cpu, &call[i], block, 0, 0);
    }
}

static basin_status stream_wait(basin_backend *backend, basin_error *error) {
    cpu_backend *cpu = (cpu_backend *)backend;
    basin_status status = cpu->error.status;
    if (status != BASIN_OK) basin_fail(error, status, "%s", cpu->error.text);
    cpu->error.status = BASIN_OK;
    return status;
}

static const char *narrow_lacks(const basin_backend *backend) {
    (void)backend;
    return basin_cpu_bf16() ? NULL : "bfloat16 instructions (AMX, AVX-512 BF16 or Arm's BFMMLA)";
}

static void close_backend(basin_backend *backend) { free(backend); }

static const basin_backend_table table = {
    .name = "cpu",
    .real_size = sizeof(float),
    .real = BASIN_F32,
    .fuse = true,
    .parts = true,
    .narrow_size = sizeof(uint16_t),
    .narrow_least = 0x1p20,
    .narrow_lacks = narrow_lacks,
    .alloc = basin_host_alloc,
    .free = basin_host_free,
    .copy_in = basin_host_copy_in,
    .copy_out = basin_host_copy_out,
    .fill_zero = basin_host_fill_zero,
    .packed_bytes = basin_cpu_packed_bytes,
    .workspace = workspace,
    .run = stream_run,
    .wait = stream_wait,
    .close = close_backend,
};

basin_status basin_backend_open_cpu(basin_backend **backend, int threads, basin_error *error) {
    cpu_backend *cpu = calloc(1, sizeof *cpu);
    *backend = NULL;
    if (!cpu) return basin_fail(error, BASIN_NO_MEMORY, "backend cpu: out of memory for its state");
    if (threads <= 0) threads = basin_processors();
    cpu->base = (basin_backend){.table = &table, .threads = threads};
    cpu->simd = basin_simd_select();
    *backend = &cpu->base;
    return BASIN_OK;
}
