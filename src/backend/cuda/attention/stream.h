/* Energy attention over all pairs of long sequences: the launch. See attention/stream_sm90a.cu. */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_STREAM_H
#define BASIN_BACKEND_CUDA_ATTENTION_STREAM_H

#include "backend/cuda/attention/dense_rows.h"

enum { BASIN_STREAM_ROWS = 64 }; /* own rows of a block */

/* Whether there is a kernel for these sizes on this device. Rows that are read must begin at
 * multiples of 16 bytes, those of results at multiples of 4. The summaries' memory then holds what
 * these kernels tell each other. */
bool basin_stream_fits(const basin_cuda *cuda, const basin_cuda_heads *at);
cudaError_t basin_stream_start(const basin_dense_launch *p, basin_cuda_mode mode, bool by_key,
                               cudaStream_t stream);

#endif
