/* The CUDA backend's table and state: one device, one stream. Errors are kept until wait(). */
#include <new>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "basin/version.h"
#include "engine/backend/cuda/inside.h"

extern "C" {
#include "engine/backend/device.h"
}

void basin_cuda_fail(basin_cuda *cuda, cudaError_t code, const char *what, const char *file,
                     int line) {
    const char *name = strrchr(file, '/');
    if (cuda->error.status != BASIN_OK) return;
    basin_fail(&cuda->error, code == cudaErrorMemoryAllocation ? BASIN_NO_MEMORY : BASIN_IO,
               "backend cuda: %s: %s (%s, %s:%d)", what, cudaGetErrorString(code),
               cudaGetErrorName(code), name ? name + 1 : file, line);
}

void basin_cuda_fail_lt(basin_cuda *cuda, cublasStatus_t code, const char *what, const char *file,
                        int line) {
    const char *name = strrchr(file, '/');
    if (cuda->error.status != BASIN_OK) return;
    basin_fail(&cuda->error, BASIN_IO, "backend cuda: %s: cuBLASLt says %s (%s:%d)", what,
               cublasLtGetStatusName(code), name ? name + 1 : file, line);
}

/* ---- faults ---- */

static const char *fault_name(int32_t op) {
    switch (op) {
    case BASIN_OP_GATHER: return "gather";
    case BASIN_OP_SCATTER: return "scatter";
    case BASIN_OP_ATTENTION: return "attention";
    case BASIN_OP_ATTENTION_FORCE: return "attention force";
    case BASIN_OP_ATTENTION_REVERSE: return "attention reverse";
    case BASIN_OP_PAIR_DOT: return "pair dot";
    case BASIN_OP_PAIR_SUM: return "pair sum";
    default: return "operation";
    }
}

/* What a kernel found wrong becomes the stream's error, unless there is one. */
static void take_fault(basin_cuda *cuda) {
    basin_cuda_fault *fault = cuda->fault_host;
    if (!fault || fault->op == 0) return; /* NULL: the backend could not be opened */
    if (cuda->error.status == BASIN_OK)
        basin_fail(&cuda->error, BASIN_BAD_VALUE,
                   "%s: index %lld at element %lld is not in [%lld, %lld)", fault_name(fault->op),
                   (long long)fault->found, (long long)fault->at, (long long)fault->minimum,
                   (long long)fault->limit);
    memset(fault, 0, sizeof *fault);
    BASIN_CUDA_TRY(cuda, cudaMemsetAsync(cuda->fault_taken, 0, sizeof(int), cuda->stream));
}

static basin_status report(basin_cuda *cuda, basin_error *error) {
    basin_status status = cuda->error.status;
    if (status != BASIN_OK) basin_fail(error, status, "%s", cuda->error.text);
    cuda->error.status = BASIN_OK;
    return status;
}

static basin_status stream_wait(basin_backend *backend, basin_error *error) {
    basin_cuda *cuda = (basin_cuda *)backend;
    basin_cuda_deliver(cuda);
    if (basin_cuda_wait(cuda)) take_fault(cuda);
    return report(cuda, error);
}

static basin_status stream_check(basin_backend *backend, basin_error *error) {
    return report((basin_cuda *)backend, error);
}

/* ---- the life of a backend ---- */

static void close_backend(basin_backend *backend) {
    basin_cuda *cuda = (basin_cuda *)backend;
    if (cuda->stream) cudaStreamSynchronize(cuda->stream);
    basin_cuda_gate gate(cuda);
    basin_cuda_graphs_free(cuda);
    basin_cuda_codes_free(cuda);
    basin_cuda_factors_free(cuda);
    basin_cuda_staging_free(cuda);
    basin_cuda_nccl_free(cuda);
    if (cuda->lt) cublasLtDestroy(cuda->lt);
    if (cuda->lt_workspace) cudaFree(cuda->lt_workspace);
    if (cuda->fault_taken) cudaFree(cuda->fault_taken);
    if (cuda->arrived) cudaFree(cuda->arrived);
    if (cuda->fault_host) cudaFreeHost(cuda->fault_host);
    if (cuda->stream) cudaStreamDestroy(cuda->stream);
    delete (basin_cuda_state *)cuda;
}

static size_t workspace(basin_backend *backend, const basin_call *call) {
    basin_cuda_operation op = basin_cuda_operation_of(call->op);
    try {
        return op.workspace((const basin_cuda *)backend, call);
    } catch (const std::bad_alloc &) {
        return SIZE_MAX / 4; /* more than there is: the plan fails for lack of memory */
    }
}

static basin_status open_beside(basin_backend **backend, const basin_backend *other,
                                basin_error *error);

static const basin_backend_table make_table(bool hopper) {
    basin_backend_table t = {};
    t.name = "cuda";
    t.real_size = sizeof(float);
    t.real = BASIN_F32;
    t.fuse = true;
    t.chain = true;
    t.masks = hopper; /* product/relu_sm90a.cu */
    t.joins = t.keeps = t.draws = true;
    t.narrow_size = sizeof(basin_bf16);
    t.narrow_reads = true;
    t.narrow_lists = true;
    t.apart = 32;
    t.byte_size = hopper ? 1 : 0;
    t.alloc = basin_cuda_alloc;
    t.free = basin_cuda_free;
    t.copy_in = basin_cuda_copy_in;
    t.copy_out = basin_cuda_copy_out;
    t.fill_zero = basin_cuda_fill_zero;
    t.free_bytes = basin_cuda_free_bytes;
    t.workspace = workspace;
    t.run = basin_cuda_run;
    t.check = stream_check;
    t.wait = stream_wait;
    t.collective = &basin_cuda_collectives;
    t.own = &basin_cuda_own;
    t.eager = &basin_cuda_eager;
    t.open_beside = open_beside;
    t.close = close_backend;
    return t;
}

static const basin_backend_table table = make_table(false), hopper_table = make_table(true);

/* Makes the device of `beside`, or else the one that BASIN_CUDA_DEVICE names, if it is set, the
 * thread's. Ranks of one host take devices in turn, so that the number may exceed them. */
static basin_status take_device(basin_cuda *cuda, const basin_cuda *beside, basin_error *error) {
    const char *requested = getenv("BASIN_CUDA_DEVICE");
    int devices = 0;
    if (beside) BASIN_CUDA_TRY(cuda, cudaSetDevice(beside->device));
    if (beside || !requested) return report(cuda, error);
    size_t digits = strspn(requested, "0123456789");
    if (digits == 0 || requested[digits] != '\0')
        return basin_fail(error, BASIN_BAD_VALUE,
                          "backend cuda: BASIN_CUDA_DEVICE is '%.40s'; expected a device's number",
                          requested);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
        return BASIN_OK; /* reported next */
    unsigned long number = strtoul(requested, NULL, 10) % (unsigned long)devices;
    BASIN_CUDA_TRY(cuda, cudaSetDevice((int)number));
    return report(cuda, error);
}

/* backend.cu: the thread's device, if it can run the kernels of this module. */
static basin_status cuda_choose_device(basin_cuda *cuda, basin_error *error) {
    int devices = 0, major = 0, minor = 0, shared = 0;
    cudaError_t code = cudaGetDeviceCount(&devices);
    if (code != cudaSuccess || devices == 0)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "backend cuda: there is no CUDA device here (%s)",
                          code != cudaSuccess ? cudaGetErrorString(code) : "the driver counts 0");
    BASIN_CUDA_TRY(cuda, cudaGetDevice(&cuda->device));
    BASIN_CUDA_TRY(cuda, cudaSetDevice(cuda->device));
    BASIN_CUDA_TRY(cuda,
                   cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, cuda->device));
    BASIN_CUDA_TRY(cuda,
                   cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, cuda->device));
    BASIN_CUDA_TRY(cuda, cudaDeviceGetAttribute(&cuda->multiprocessors,
                                                cudaDevAttrMultiProcessorCount, cuda->device));
    BASIN_CUDA_TRY(cuda, cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                                cuda->device));
    cuda->shared_limit = (size_t)shared, cuda->capability = major * 10 + minor;
    if (cuda->error.status == BASIN_OK && major < 9)
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "backend cuda: device %d has compute capability %d.%d; expected 9.0 or more",
            cuda->device, major, minor);
    return report(cuda, error);
}

static bool is_careful(void) {
    const char *careful = getenv("BASIN_CUDA_SYNC");
    return careful && strcmp(careful, "0") != 0;
}

/* What lists of calls need; single ones (below) run on the caller's device without it. */
static void make_resources(basin_cuda *cuda, const basin_cuda *beside) {
    const char *tune = getenv("BASIN_CUDA_TUNE");
    basin_cuda_gate gate(beside);
    cuda->beside = beside != NULL;
    cuda->tune = !tune || strcmp(tune, "0") != 0;
    BASIN_CUDA_TRY(cuda, cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking));
    cuda->lt_bytes = (size_t)32 << 20; /* what NVIDIA recommends for Hopper */
    BASIN_CUDA_TRY(cuda, cudaMalloc(&cuda->lt_workspace, cuda->lt_bytes));
    BASIN_CUDA_TRY(cuda, cudaMalloc((void **)&cuda->fault_taken, sizeof(int)));
    if (cuda->fault_taken)
        BASIN_CUDA_TRY(cuda, cudaMemsetAsync(cuda->fault_taken, 0, sizeof(int), cuda->stream));
    size_t counters = BASIN_CUDA_COUNTERS * sizeof *cuda->arrived;
    if (BASIN_CUDA_TRY(cuda, cudaMalloc((void **)&cuda->arrived, counters)))
        BASIN_CUDA_TRY(cuda, cudaMemsetAsync(cuda->arrived, 0, counters, cuda->stream));
    BASIN_CUDA_TRY(cuda, cudaHostAlloc((void **)&cuda->fault_host, sizeof(basin_cuda_fault),
                                       cudaHostAllocMapped));
    if (cuda->fault_host) {
        memset(cuda->fault_host, 0, sizeof(basin_cuda_fault));
        BASIN_CUDA_TRY(cuda, cudaHostGetDevicePointer((void **)&cuda->fault, cuda->fault_host, 0));
    }
    cublasStatus_t status = cublasLtCreate(&cuda->lt);
    if (status != CUBLAS_STATUS_SUCCESS)
        basin_cuda_fail_lt(cuda, status, "cublasLtCreate", __FILE__, __LINE__);
    basin_cuda_graphs_new(cuda);
    basin_cuda_codes_new(cuda, beside);
    basin_cuda_factors_new(cuda);
    basin_cuda_staging_new(cuda, beside != NULL);
}

static basin_status open_backend(basin_backend **backend, const basin_backend *beside, bool lists,
                                 basin_error *error) {
    *backend = NULL;
    basin_cuda_state *cuda = new (std::nothrow) basin_cuda_state();
    if (!cuda)
        return basin_fail(error, BASIN_NO_MEMORY, "backend cuda: out of memory for its state");
    if (beside) cuda->base = *beside;
    cuda->base.table = &table;
    cuda->base.threads = 1;
    cuda->careful = is_careful();
    basin_status status = lists ? take_device(cuda, (const basin_cuda *)beside, error) : BASIN_OK;
    if (!status) status = cuda_choose_device(cuda, error);
    if (cuda->capability == 90) cuda->base.table = &hopper_table;
    if (!status && lists) {
        make_resources(cuda, (const basin_cuda *)beside);
        status = stream_wait(&cuda->base, error);
    }
    if (status)
        close_backend(&cuda->base);
    else
        *backend = &cuda->base;
    return status;
}

static basin_status open_beside(basin_backend **backend, const basin_backend *other,
                                basin_error *error) {
    return open_backend(backend, other, true, error);
}

extern "C" __attribute__((visibility("default"))) basin_status
basin_cuda_open(basin_backend **backend, const char *version, bool lists, basin_error *error) {
    *backend = NULL;
    if (strcmp(version, BASIN_VERSION_STRING) != 0)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "backend cuda: " BASIN_CUDA_MODULE " is of Basin %s; expected %s",
                          BASIN_VERSION_STRING, version);
    return open_backend(backend, NULL, lists, error);
}

/* Single calls on the caller's stream; see backend/device.h. Each works on a copy of the backend
 * that has this stream and knows the thread's device, so that threads do not meet. */

static basin_cuda copy_of(const basin_backend *backend) {
    basin_cuda cuda = *(const basin_cuda *)backend;
    basin_error error;
    int device = cuda.device;
    cuda.error.status = BASIN_OK;
    BASIN_CUDA_TRY(&cuda, cudaGetDevice(&device));
    if (device != cuda.device && cuda_choose_device(&cuda, &error) != BASIN_OK) cuda.error = error;
    return cuda;
}

static size_t eager_workspace(const basin_backend *backend, const basin_call *call) {
    basin_cuda cuda = copy_of(backend);
    return cuda.base.table->workspace(&cuda.base, call);
}

static basin_status run(const basin_backend *backend, const basin_call *call, void *const *block,
                        void *stream, basin_error *error) {
    basin_cuda cuda = copy_of(backend);
    cuda.stream = (cudaStream_t)stream;
    if (cuda.error.status == BASIN_OK) {
        basin_cuda_frame frame = basin_cuda_frame_of(&cuda, call, block);
        basin_cuda_operation_of(call->op).run(&frame);
    }
    if (cuda.careful) BASIN_CUDA_TRY(&cuda, cudaStreamSynchronize(cuda.stream));
    if (cuda.error.status != BASIN_OK) basin_fail(error, cuda.error.status, "%s", cuda.error.text);
    return cuda.error.status;
}

/* Plans run on the backend's own stream; events order it with the caller's. */

static void follow(basin_cuda *cuda, cudaStream_t later, cudaStream_t sooner) {
    cudaEvent_t reached = NULL;
    if (!BASIN_CUDA_TRY(cuda, cudaEventCreateWithFlags(&reached, cudaEventDisableTiming))) return;
    if (BASIN_CUDA_TRY(cuda, cudaEventRecord(reached, sooner)))
        BASIN_CUDA_TRY(cuda, cudaStreamWaitEvent(later, reached, 0));
    BASIN_CUDA_TRY(cuda, cudaEventDestroy(reached)); /* once it is reached */
}

static basin_status enter(basin_backend *backend, void *stream, basin_error *error) {
    basin_cuda *cuda = (basin_cuda *)backend;
    int device = cuda->device;
    BASIN_CUDA_TRY(cuda, cudaGetDevice(&device));
    if (device != cuda->device)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a plan on device %d, run by a thread whose device is %d", cuda->device,
                          device);
    follow(cuda, cuda->stream, (cudaStream_t)stream);
    return report(cuda, error);
}

static basin_status leave(basin_backend *backend, void *stream, basin_error *error) {
    basin_cuda *cuda = (basin_cuda *)backend;
    follow(cuda, (cudaStream_t)stream, cuda->stream);
    return report(cuda, error);
}

static void copy(basin_backend *backend, void *to, const void *from, size_t bytes) {
    basin_cuda *cuda = (basin_cuda *)backend;
    BASIN_CUDA_TRY(cuda, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, cuda->stream));
}

extern const basin_eager_table basin_cuda_eager = {eager_workspace, run, enter, leave, copy};
