/* Running a list of calls: call by call the first time (programs are compiled, algorithms chosen),
 * captured as a CUDA graph the second, replayed from then on. A list is known by its address, its
 * length and its blocks; freeing memory drops the graphs that use it. */
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <vector>

#include "engine/backend/cuda/inside.h"

struct recorded {
    const basin_call *call;
    size_t calls;
    std::vector<void *> block;
    int runs;
    cudaGraphExec_t graph; /* NULL before the second run */
};

/* Calls that do not touch each other's memory run side by side in a captured graph, where all of
 * them are small: what is scratch of the backend is there several times then. */
enum { SLOTS = 4 };
static const size_t SMALL = (size_t)16 << 20; /* bytes of the largest operand */

struct basin_cuda_graphs {
    std::vector<recorded> list;
    void *scratch[SLOTS]; /* the first is the backend's own; NULL: not made yet */
    unsigned *arrived[SLOTS];
};

void basin_cuda_graphs_new(basin_cuda *cuda) {
    cuda->graphs = new (std::nothrow) basin_cuda_graphs();
    if (!cuda->graphs)
        basin_cuda_fail(cuda, cudaErrorMemoryAllocation, "graphs", __FILE__, __LINE__);
}

void basin_cuda_graphs_free(basin_cuda *cuda) {
    if (!cuda->graphs) return;
    for (recorded &r : cuda->graphs->list)
        if (r.graph) cudaGraphExecDestroy(r.graph);
    if (cuda->graphs->scratch[0]) cuda->lt_workspace = cuda->graphs->scratch[0];
    if (cuda->graphs->scratch[0]) cuda->arrived = cuda->graphs->arrived[0];
    for (int i = 1; i < SLOTS; i++) cudaFree(cuda->graphs->scratch[i]);
    delete cuda->graphs;
    cuda->graphs = NULL;
}

void basin_cuda_graphs_forget(basin_cuda *cuda, const void *memory) {
    std::vector<recorded> &list = cuda->graphs->list;
    for (size_t i = list.size(); i-- > 0;) {
        bool uses = false;
        for (void *block : list[i].block) uses = uses || block == memory;
        if (!uses) continue;
        if (list[i].graph) BASIN_CUDA_TRY(cuda, cudaGraphExecDestroy(list[i].graph));
        list.erase(list.begin() + (ptrdiff_t)i);
    }
}

static size_t blocks_of(const basin_call *call, size_t calls) {
    int32_t maximum = 0;
    for (size_t i = 0; i < calls; i++) {
        for (int k = 0; k < call[i].ins; k++)
            if (call[i].in[k].block > maximum) maximum = call[i].in[k].block;
        for (int k = 0; k < call[i].outs; k++)
            if (call[i].out[k].block > maximum) maximum = call[i].out[k].block;
    }
    return (size_t)maximum + 1;
}

static recorded *find(basin_cuda *cuda, const basin_call *call, size_t calls, void *const *block) {
    for (recorded &r : cuda->graphs->list) {
        bool same = r.call == call && r.calls == calls;
        for (size_t i = 0; i < r.block.size() && same; i++) same = r.block[i] == block[i];
        if (same) return &r;
    }
    recorded fresh = {call, calls, {}, 0, NULL};
    fresh.block.assign(block, block + blocks_of(call, calls));
    cuda->graphs->list.push_back(fresh);
    return &cuda->graphs->list.back();
}

basin_cuda_frame basin_cuda_frame_of(basin_cuda *cuda, const basin_call *call, void *const *block) {
    basin_cuda_frame frame = {};
    frame.cuda = cuda;
    frame.stream = cuda->stream;
    frame.call = call;
    for (int i = 0; i < call->ins; i++) frame.in[i] = basin_operand_at(&call->in[i], block);
    for (int i = 0; i < call->outs; i++) frame.out[i] = basin_operand_at(&call->out[i], block);
    for (int i = 0; i < call->byte_copies; i++)
        frame.byte_copy[i] = basin_operand_at(&call->byte_copy[i], block);
    if (call->workspace_bytes) frame.workspace = (char *)block[0] + call->workspace;
    return frame;
}

basin_cuda_frame basin_cuda_outline(const basin_call *call) {
    static char there;
    basin_cuda_frame frame = {};
    frame.call = call;
    for (int i = 0; i < call->ins; i++) frame.in[i] = call->in[i].block < 0 ? NULL : &there;
    for (int i = 0; i < call->outs; i++) frame.out[i] = call->out[i].block < 0 ? NULL : &there;
    return frame;
}

void basin_cuda_none(const basin_cuda_frame *frame) {
    if (frame->cuda->error.status != BASIN_OK) return;
    basin_fail(&frame->cuda->error, BASIN_UNSUPPORTED, "backend cuda: no operation %d, of 0 to %d",
               (int)frame->call->op, BASIN_OP_COUNT - 1);
}
size_t basin_cuda_none_workspace(const basin_cuda *, const basin_call *) { return 0; }

basin_cuda_operation basin_cuda_operation_of(basin_op op) {
    static const basin_cuda_operation operations[BASIN_OP_COUNT] = {
#define LEAF(...) {basin_cuda_none, basin_cuda_none_workspace},
#define POINTWISE(...) {basin_cuda_pointwise, basin_cuda_none_workspace},
#define CALL(name, rule, ref, cpu, cpu_workspace, cuda, cuda_workspace)                            \
    {basin_cuda_##cuda, basin_cuda_##cuda_workspace##_workspace},
#include "engine/backend/ops.inc"
    };
    return operations[(unsigned)op < BASIN_OP_COUNT ? op : BASIN_OP_INPUT];
}

static void run_one(basin_cuda *cuda, const basin_call *call, void *const *block) {
    basin_cuda_frame frame = basin_cuda_frame_of(cuda, call, block);
    if (basin_op_has_kernel(call->op)) basin_cuda_operation_of(call->op).run(&frame);
}

/* Runs the first call together with the following ones that can share its launch; returns how
 * many. */
static size_t run_some(basin_cuda *cuda, const basin_call *call, size_t calls, void *const *block) {
    basin_cuda_frame frame[BASIN_CUDA_TOGETHER];
    int frames = 0;
    while (frames < BASIN_CUDA_TOGETHER && (size_t)frames < calls &&
           call[frames].op == BASIN_OP_POINTWISE && !cuda->careful &&
           !basin_kind_is_byte(call[frames].out[0].kind)) {
        frame[frames] = basin_cuda_frame_of(cuda, &call[frames], block);
        frames++;
    }
    if (frames > 1) return (size_t)basin_cuda_pointwise_many(frame, frames);
    run_one(cuda, call, block);
    return 1;
}

static void run_eagerly(basin_cuda *cuda, const basin_call *call, size_t calls,
                        void *const *block) {
    for (size_t i = 0; i < calls && cuda->error.status == BASIN_OK;) {
        size_t some = run_some(cuda, &call[i], calls - i, block);
        i += some;
        if (!cuda->careful) continue;
        cudaError_t code = cudaStreamSynchronize(cuda->stream);
        if (code == cudaSuccess) continue;
        basin_fail(&cuda->error, BASIN_IO,
                   "backend cuda: call %zu of %zu, operation %d: %s (BASIN_CUDA_SYNC)", i - 1,
                   calls, (int)call[i - 1].op, cudaGetErrorString(code));
    }
}

/* Compiles all programs of the list at once. */
static void prepare(basin_cuda *cuda, const basin_call *call, size_t calls, void *const *block) {
    basin_cuda_codes_collect(cuda);
    for (size_t i = 0; i < calls;) {
        bool program = call[i].program || basin_op_is_pointwise(call[i].op);
        i += program ? run_some(cuda, &call[i], calls - i, block) : 1;
    }
    basin_cuda_codes_compile(cuda);
}

/* ---- calls side by side ---- */

struct span {
    const char *from, *to;
    bool writes;
};

/* Calls that were captured together: what they touch, what ends them, all that is before them. */
struct captured {
    std::vector<span> touched;
    std::vector<cudaGraphNode_t> end;
    std::vector<bool> before;
};

/* At least the bytes of an operand: four for each element. */
static span span_of(const basin_operand *o, void *const *block, bool writes) {
    const char *at = (const char *)basin_operand_at(o, block);
    int64_t count = basin_shape_count(o->shape), last = o->shape.rank - 1;
    if (o->stride && last >= 0 && o->shape.dim[last])
        count = count / o->shape.dim[last] * o->stride;
    return {at, at ? at + 4 * count : NULL, writes};
}

static void touch(std::vector<span> *to, const basin_call *c, void *const *block) {
    for (int k = 0; k < c->ins; k++) to->push_back(span_of(&c->in[k], block, false));
    for (int k = 0; k < c->outs; k++) to->push_back(span_of(&c->out[k], block, true));
    const char *workspace = (const char *)block[0] + c->workspace;
    if (c->workspace_bytes) to->push_back({workspace, workspace + c->workspace_bytes, true});
}

static bool conflict(const captured &a, const captured &b) {
    for (const span &x : a.touched)
        for (const span &y : b.touched)
            if ((x.writes || y.writes) && x.from < y.to && y.from < x.to) return true;
    return false;
}

/* Whether all calls are small and of floats, and scratch for several at once is there. Backends
 * beside others leave the device to them. */
static bool can_fork(basin_cuda *cuda, const recorded *r, void *const *block) {
    basin_cuda_graphs *g = cuda->graphs;
    const char *serial = getenv("BASIN_CUDA_SERIAL");
    if (CUDART_VERSION < 13000 || cuda->beside || (serial && strcmp(serial, "0") != 0))
        return false;
    for (size_t i = 0; i < r->calls; i++) {
        std::vector<span> touched;
        touch(&touched, &r->call[i], block);
        for (const span &s : touched)
            if ((size_t)(s.to - s.from) > SMALL) return false;
        for (int k = 0; k < r->call[i].outs; k++)
            if (r->call[i].out[k].block >= 0 && r->call[i].out[k].kind != BASIN_REAL) return false;
        if (r->call[i].byte_copies || r->call[i].parts > 1) return false;
    }
    size_t counters = BASIN_CUDA_COUNTERS * sizeof *cuda->arrived;
    g->scratch[0] = cuda->lt_workspace, g->arrived[0] = cuda->arrived;
    for (int i = 1; i < SLOTS; i++) {
        if (g->scratch[i]) continue;
        if (cudaMalloc(&g->scratch[i], cuda->lt_bytes + counters) != cudaSuccess) {
            cudaGetLastError();
            return false;
        }
        g->arrived[i] = (unsigned *)((char *)g->scratch[i] + cuda->lt_bytes);
        if (!BASIN_CUDA_TRY(cuda, cudaMemsetAsync(g->arrived[i], 0, counters, cuda->stream)))
            return false;
    }
    return BASIN_CUDA_TRY(cuda, cudaStreamSynchronize(cuda->stream));
}

/* Waits for another, and with it for all that is before that. */
static void await(captured *own, size_t which, const captured &other) {
    own->before[which] = true;
    for (size_t k = 0; k < other.before.size(); k++)
        if (other.before[k]) own->before[k] = true;
    own->end.insert(own->end.end(), other.end.begin(), other.end.end());
}

#if CUDART_VERSION >= 13000
/* Captures the first calls that go together; each waits for those before it that touch what it
 * touches, and for the last that had its scratch. Returns how many. */
static size_t fork_some(basin_cuda *cuda, std::vector<captured> *all, size_t last[SLOTS],
                        const basin_call *call, size_t calls, void *const *block) {
    captured own;
    size_t n = all->size(), together = 1;
    while (together < BASIN_CUDA_TOGETHER && together < calls &&
           call[together - 1].op == BASIN_OP_POINTWISE && call[together].op == BASIN_OP_POINTWISE)
        together++;
    for (size_t i = 0; i < together; i++) touch(&own.touched, &call[i], block);
    own.before.assign(n, false);
    for (size_t k = n; k-- > 0;)
        if (!own.before[k] && conflict(own, (*all)[k])) await(&own, k, (*all)[k]);
    int slot = 0;
    for (int i = 1; i < SLOTS; i++)
        if (last[i] < last[slot]) slot = i;
    for (int i = 0; i < SLOTS; i++)
        if (!last[i] || own.before[last[i] - 1]) slot = i;
    if (call->op != BASIN_OP_POINTWISE) {
        if (last[slot] && !own.before[last[slot] - 1])
            await(&own, last[slot] - 1, (*all)[last[slot] - 1]);
        last[slot] = n + 1;
        cuda->lt_workspace = cuda->graphs->scratch[slot];
        cuda->arrived = cuda->graphs->arrived[slot];
    }
    std::sort(own.end.begin(), own.end.end());
    own.end.erase(std::unique(own.end.begin(), own.end.end()), own.end.end());
    cudaStreamCaptureStatus status;
    const cudaGraphNode_t *node = NULL;
    size_t count = 0;
    BASIN_CUDA_TRY(cuda, cudaStreamUpdateCaptureDependencies(cuda->stream, own.end.data(), NULL,
                                                             own.end.size(),
                                                             cudaStreamSetCaptureDependencies));
    size_t some = run_some(cuda, call, calls, block);
    BASIN_CUDA_TRY(
        cuda, cudaStreamGetCaptureInfo(cuda->stream, &status, NULL, NULL, &node, NULL, &count));
    own.end.assign(node, node + count);
    own.touched.clear(); /* of those that did go together */
    for (size_t i = 0; i < some; i++) touch(&own.touched, &call[i], block);
    all->push_back(own);
    return some;
}
#else
#define fork_some(cuda, all, last, call, calls, block) run_some(cuda, call, calls, block)
#endif

static void capture(basin_cuda *cuda, recorded *r, void *const *block) {
    cudaGraph_t graph = NULL;
    bool fork = can_fork(cuda, r, block);
    std::vector<captured> all;
    size_t last[SLOTS] = {}; /* which had each scratch, from 1 on */
    if (cuda->error.status != BASIN_OK ||
        !BASIN_CUDA_TRY(cuda,
                        cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal)))
        return;
    for (size_t i = 0; i < r->calls && cuda->error.status == BASIN_OK;)
        i += fork ? fork_some(cuda, &all, last, &r->call[i], r->calls - i, block)
                  : run_some(cuda, &r->call[i], r->calls - i, block);
    if (fork)
        cuda->lt_workspace = cuda->graphs->scratch[0], cuda->arrived = cuda->graphs->arrived[0];
    if (!BASIN_CUDA_TRY(cuda, cudaStreamEndCapture(cuda->stream, &graph))) return;
    if (cuda->error.status == BASIN_OK) /* else calls are missing */
        BASIN_CUDA_TRY(cuda, cudaGraphInstantiate(&r->graph, graph, 0));
    BASIN_CUDA_TRY(cuda, cudaGraphDestroy(graph));
}

/* One that has no graph yet. A run that fails does not count: a kernel that it needs may not be
 * compiled. */
static void run_fresh(basin_cuda *cuda, recorded *r, void *const *block) {
    basin_cuda_gate gate(cuda);
    if (r->runs == 0) prepare(cuda, r->call, r->calls, block);
    if (r->runs == 1 && !cuda->careful) capture(cuda, r, block);
    if (cuda->error.status == BASIN_OK && !r->graph) run_eagerly(cuda, r->call, r->calls, block);
    r->runs += r->runs < 2 && cuda->error.status == BASIN_OK;
}

static void run_list(basin_cuda *cuda, const basin_call *call, size_t calls, void *const *block) {
    recorded *r = find(cuda, call, calls, block);
    if (!r->graph) run_fresh(cuda, r, block);
    if (r->graph && cuda->error.status == BASIN_OK)
        BASIN_CUDA_TRY(cuda, cudaGraphLaunch(r->graph, cuda->stream));
}

void basin_cuda_run(basin_backend *backend, const basin_call *call, size_t calls,
                    void *const *block) {
    basin_cuda *cuda = (basin_cuda *)backend;
    if (calls == 0) return;
    basin_cuda_deliver(cuda);
    try {
        run_list(cuda, call, calls, block);
    } catch (const std::bad_alloc &) {
        basin_cuda_fail(cuda, cudaErrorMemoryAllocation, "a list of calls", __FILE__, __LINE__);
    }
}
