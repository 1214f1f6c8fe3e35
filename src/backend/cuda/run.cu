/* Running a list of calls: call by call the first time (programs are compiled, algorithms chosen),
 * captured as a CUDA graph the second, replayed from then on. A list is known by its address, its
 * length and its blocks; freeing memory drops the graphs that use it. */
#include <new>
#include <vector>

#include "backend/cuda/inside.h"

struct recorded {
    const basin_call *call;
    size_t calls;
    std::vector<void *> block;
    int runs;
    cudaGraphExec_t graph; /* NULL before the second run */
};

struct basin_cuda_graphs {
    std::vector<recorded> list;
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
    int32_t most = 0;
    for (size_t i = 0; i < calls; i++) {
        for (int k = 0; k < call[i].ins; k++)
            if (call[i].in[k].block > most) most = call[i].in[k].block;
        for (int k = 0; k < call[i].outs; k++)
            if (call[i].out[k].block > most) most = call[i].out[k].block;
    }
    return (size_t)most + 1;
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
    for (int i = 0; i < call->twins; i++) frame.twin[i] = basin_operand_at(&call->twin[i], block);
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
#include "backend/ops.inc"
    };
    return operations[(unsigned)op < BASIN_OP_COUNT ? op : BASIN_OP_INPUT];
}

static void run_one(basin_cuda *cuda, const basin_call *call, void *const *block) {
    basin_cuda_frame frame = basin_cuda_frame_of(cuda, call, block);
    if (basin_op_has_kernel(call->op)) basin_cuda_operation_of(call->op).run(&frame);
}

/* Runs the first call, with those behind it that can go along; returns how many. */
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

static void capture(basin_cuda *cuda, recorded *r, void *const *block) {
    cudaGraph_t graph = NULL;
    if (!BASIN_CUDA_TRY(cuda,
                        cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal)))
        return;
    for (size_t i = 0; i < r->calls && cuda->error.status == BASIN_OK;)
        i += run_some(cuda, &r->call[i], r->calls - i, block);
    if (!BASIN_CUDA_TRY(cuda, cudaStreamEndCapture(cuda->stream, &graph))) return;
    if (cuda->error.status == BASIN_OK) /* else calls are missing */
        BASIN_CUDA_TRY(cuda, cudaGraphInstantiate(&r->graph, graph, 0));
    BASIN_CUDA_TRY(cuda, cudaGraphDestroy(graph));
}

/* One that has no graph yet. A run that fails does not count: what it wants may not be compiled. */
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
