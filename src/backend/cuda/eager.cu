/* Single calls on the caller's stream; see backend/device.h. Each works on a copy of the backend
 * that has this stream and knows the thread's device, so that threads do not meet. */
#include "backend/cuda/inside.h"

static basin_cuda copy_of(const basin_backend *backend) {
    basin_cuda cuda = *(const basin_cuda *)backend;
    basin_error error;
    int device = cuda.device;
    cuda.error.status = BASIN_OK;
    BASIN_CUDA_TRY(&cuda, cudaGetDevice(&device));
    if (device != cuda.device && basin_cuda_choose_device(&cuda, &error) != BASIN_OK)
        cuda.error = error;
    return cuda;
}

static size_t workspace(const basin_backend *backend, const basin_call *call) {
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

extern const basin_eager_table basin_cuda_eager = {workspace, run};
