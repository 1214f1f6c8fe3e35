/* Beyond basin/tensor.h. */
#ifndef BASIN_ENGINE_TENSOR_H
#define BASIN_ENGINE_TENSOR_H

#include "basin/tensor.h"

/* An error where the tensor is constant. */
basin_status basin_tensor_check_writable(const basin_tensor *tensor, basin_error *error);

#endif
