/* Single calls on the caller's stream; see backend/eager.h. Each works on a copy of the backend
 * that has this stream, so that threads do not meet. */
#include "backend/cuda/inside.h"

static void run_call(basin_cuda *cuda, const basin_call *call, void *const *block) {
    basin_cuda_frame frame = basin_cuda_frame_of(cuda, call, block);
    basin_cuda_operation_of(call->op).run(&frame);
    if (cuda->careful) BASIN_CUDA_TRY(cuda, cudaStreamSynchronize(cuda->stream));
}

/* The device of the backend is the thread's during the call. */
static basin_status run(const basin_backend *backend, const basin_call *call, void *const *block,
                        void *stream, basin_error *error) {
    basin_cuda cuda = *(const basin_cuda *)backend;
    int before = cuda.device;
    cuda.stream = (cudaStream_t)stream;
    cuda.error.status = BASIN_OK;
    BASIN_CUDA_TRY(&cuda, cudaGetDevice(&before));
    if (before != cuda.device) BASIN_CUDA_TRY(&cuda, cudaSetDevice(cuda.device));
    if (cuda.error.status == BASIN_OK) run_call(&cuda, call, block);
    if (before != cuda.device) BASIN_CUDA_TRY(&cuda, cudaSetDevice(before));
    if (cuda.error.status != BASIN_OK) basin_fail(error, cuda.error.status, "%s", cuda.error.text);
    return cuda.error.status;
}

extern const basin_eager_table basin_cuda_eager = {run};
