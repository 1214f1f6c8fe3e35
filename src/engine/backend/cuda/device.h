/* The CUDA backend inside, for .cu files only. Each operation is a function of a frame: the call
 * with its operands at device addresses. It queues kernels on the one stream and never waits,
 * allocates or copies to the host: lists of calls can be captured. Work is cut by shape only and
 * partial results are combined in a fixed order: the same call gives the same bits again. */
#ifndef BASIN_BACKEND_CUDA_DEVICE_H
#define BASIN_BACKEND_CUDA_DEVICE_H

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>

extern "C" {
#include "engine/backend/kernel.h"
#include "engine/backend/shape.h"
}

/* Functions of the device, and those within structs. */
#define BASIN_DEVICE static __device__ __forceinline__
#define BASIN_METHOD __device__ __forceinline__

/* Loops: unrolled over 0 .. n - 1; over 0 .. count - 1 by a grid of blocks of `threads` threads. */
#define BASIN_UNROLL(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)
#define BASIN_GRID(i, count, threads)                                                              \
    for (int64_t i = (int64_t)blockIdx.x * (threads) + threadIdx.x; i < (count);                   \
         i += (int64_t)gridDim.x * (threads))

/* ---- the backend ---- */

/* What a kernel found wrong; in mapped host memory, so that wait() sees it without a copy. */
struct basin_cuda_fault {
    int32_t op; /* a basin_op; 0: nothing */
    int64_t at, found, minimum, limit;
};

enum { BASIN_CUDA_COUNTERS = 1024 };

struct basin_cuda_graphs;  /* captured call lists; run.cu */
struct basin_cuda_codes;   /* compiled pointwise programs; code.cu */
struct basin_cuda_factors; /* chosen cuBLASLt algorithms; product.cu */
struct basin_cuda_staging; /* pinned memory on the way in and out; memory.cu */

typedef struct basin_cuda {
    basin_backend base; /* first: a basin_backend * is a basin_cuda * */
    cudaStream_t stream;
    cublasLtHandle_t lt;
    void *lt_workspace; /* device memory, lt_bytes of it */
    size_t lt_bytes;
    int device, multiprocessors, capability; /* capability: 90 is 9.0 */
    size_t shared_limit;                     /* bytes of shared memory a block may ask for */
    basin_error error;                       /* the first fault of the stream; wait() reports it */
    int *fault_taken;  /* device memory: 1 once a kernel has written a fault */
    unsigned *arrived; /* device memory: blocks that have come, of the tiles of a cut sum; 0 between
                          launches */
    basin_cuda_fault *fault_host, *fault; /* one mapped record, as the host and the device see it */
    basin_cuda_graphs *graphs;
    basin_cuda_codes *codes;
    basin_cuda_factors *factors;
    basin_cuda_staging *staging;
    bool beside;  /* another backend of this process was there first */
    bool tune;    /* time the algorithms of large products; not with BASIN_CUDA_TUNE=0 */
    bool careful; /* BASIN_CUDA_SYNC=1: wait after every call and name the one that failed */
} basin_cuda;

/* Keeps the first fault of the stream, for wait(). */
void basin_cuda_fail(basin_cuda *cuda, cudaError_t code, const char *what, const char *file,
                     int line);
void basin_cuda_fail_lt(basin_cuda *cuda, cublasStatus_t code, const char *what, const char *file,
                        int line);

/* BASIN_CUDA_TRY(cuda, cudaMemsetAsync(..)): true where the call succeeded; notes the fault. */
#define BASIN_CUDA_TRY(cuda, expression)                                                           \
    basin_cuda_try((cuda), (expression), #expression, __FILE__, __LINE__)
static inline bool basin_cuda_try(basin_cuda *cuda, cudaError_t code, const char *what,
                                  const char *file, int line) {
    if (code != cudaSuccess) basin_cuda_fail(cuda, code, what, file, line);
    return code == cudaSuccess;
}
/* After each <<<>>>: BASIN_CUDA_LAUNCHED(frame->cuda, "layernorm"). */
#define BASIN_CUDA_LAUNCHED(cuda, what)                                                            \
    ((void)basin_cuda_try((cuda), cudaGetLastError(), "launch of " what, __FILE__, __LINE__))

/* ---- operations ---- */

typedef struct basin_cuda_frame {
    basin_cuda *cuda;
    cudaStream_t stream; /* cuda->stream: <<<grid, block, shared, frame->stream>>> */
    const basin_call *call;
    const void *in[BASIN_MAX_IN];           /* device addresses; NULL where the operand is absent */
    void *out[BASIN_MAX_OUT];               /* NULL where nobody asks for the result */
    void *byte_copy[BASIN_MAX_BYTE_COPIES]; /* bytes of results; NULL where nobody asks for them */
    void *workspace; /* 64-byte aligned, call->workspace_bytes of it; not cleared */
} basin_cuda_frame;

/* The operations and their workspaces. The latter are asked for before operands have addresses, and
 * depend only on op, attr, shapes, kinds and which operands are absent (block < 0). */
typedef struct basin_cuda_operation {
    void (*run)(const basin_cuda_frame *frame);
    size_t (*workspace)(const basin_cuda *cuda, const basin_call *call);
} basin_cuda_operation;
void basin_cuda_pointwise(const basin_cuda_frame *frame);
#define LEAF(...)
#define POINTWISE(...)
#define CALL(name, rule, ref, cpu, cpu_workspace, cuda, cuda_workspace)                            \
    void basin_cuda_##cuda(const basin_cuda_frame *frame);                                         \
    size_t basin_cuda_##cuda_workspace##_workspace(const basin_cuda *, const basin_call *call);
#include "engine/backend/ops.inc"

/* ---- element types ----
 * An operand's kind says what its elements are: BASIN_REAL float, BASIN_NARROW bfloat16,
 * BASIN_INDEX int32_t. Arithmetic is always in float. Which operands may be narrow: the large ones,
 * activations and their cotangents. In the attention family q, k, a, b, dq, dk, gq, gk are all of
 * one kind, that of in[BASIN_ATT_Q]; beta, scale, mix, w, lse and their cotangents are always
 * float. Likewise x, z and the result of PAIR_SUM (w is float), x and z of PAIR_DOT (its result is
 * float). */
typedef __nv_bfloat16 basin_bf16;

/* Calls f(T()) with the element type T of a REAL or NARROW operand:
 *     basin_cuda_typed(call->in[0].kind, [&](auto zero) { using T = decltype(zero); ... }); */
template <typename F> static inline void basin_cuda_typed(basin_kind kind, F f) {
    if (kind == BASIN_NARROW)
        f(basin_bf16());
    else
        f(float());
}

BASIN_DEVICE float basin_to_float(float x) { return x; }
BASIN_DEVICE float basin_to_float(basin_bf16 x) { return __bfloat162float(x); }
template <typename T> BASIN_DEVICE T basin_from_float(float x);
template <> BASIN_METHOD float basin_from_float<float>(float x) { return x; }
template <> BASIN_METHOD basin_bf16 basin_from_float<basin_bf16>(float x) {
    return __float2bfloat16_rn(x);
}

/* Two numbers as bytes, saturated, the first below. FIVE: e5m2, else e4m3. RELU: at least 0. */
template <bool FIVE, bool RELU = false>
BASIN_DEVICE uint32_t basin_two_bytes(float first, float second) {
    uint16_t pair;
    if (FIVE && RELU)
        asm("cvt.rn.satfinite.relu.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    else if (FIVE)
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    else if (RELU)
        asm("cvt.rn.satfinite.relu.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    else
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(second), "f"(first));
    return pair;
}

/* N neighbouring elements, read or written at once; the address must be a multiple of its size. */
template <typename T, int N> struct alignas(sizeof(T) * N) basin_pack { T v[N]; };

static inline int64_t basin_cuda_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- faults found by kernels ----
 * Notes that `found`, element `at` of an index operand, is outside [minimum, limit). */
struct basin_cuda_reporter {
    basin_cuda_fault *fault;
    int *taken;
    int32_t op;
};
static inline basin_cuda_reporter basin_cuda_reporter_of(const basin_cuda_frame *frame) {
    return {frame->cuda->fault, frame->cuda->fault_taken, (int32_t)frame->call->op};
}
static __device__ inline void basin_cuda_report(basin_cuda_reporter r, int64_t at, int64_t found,
                                                int64_t minimum, int64_t limit) {
    if (atomicExch(r.taken, 1) != 0) return;
    r.fault->at = at, r.fault->found = found, r.fault->minimum = minimum, r.fault->limit = limit;
    __threadfence_system();
    *(volatile int32_t *)&r.fault->op = r.op;
}

/* ---- sums within a warp and a block, in the same order; every thread gets the result ---- */

BASIN_DEVICE float basin_warp_sum(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}
BASIN_DEVICE float basin_warp_max(float x) { /* no NaN comes out for one */
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* ---- what operations do for others ---- */

/* reduce.cu: out [outer, inner] = sums over the middle of x [outer, middle, inner]; workspace of
 * basin_cuda_sum_bytes. */
size_t basin_cuda_sum_bytes(int64_t outer, int64_t middle, int64_t inner);
void basin_cuda_sum(const basin_cuda_frame *frame, void *out, basin_kind out_kind, const void *x,
                    basin_kind x_kind, int64_t outer, int64_t middle, int64_t inner,
                    void *workspace);

#endif
