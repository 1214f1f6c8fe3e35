/* The table of operations: which function runs each, and what scratch it wants. */
#include "backend/cuda/inside.h"

typedef basin_cuda_operation operation;

basin_cuda_operation basin_cuda_operation_of(basin_op op) {
    if (basin_op_is_pointwise(op)) return operation{basin_cuda_pointwise, NULL};
    switch (op) {
    case BASIN_OP_POINTWISE: return operation{basin_cuda_pointwise, NULL};
    case BASIN_OP_PERMUTE: return operation{basin_cuda_permute, NULL};
    case BASIN_OP_SLICE: return operation{basin_cuda_slice, NULL};
    case BASIN_OP_PAD: return operation{basin_cuda_pad, NULL};
    case BASIN_OP_CONCAT: return operation{basin_cuda_concat, NULL};
    case BASIN_OP_GATHER: return operation{basin_cuda_gather, NULL};
    case BASIN_OP_SCATTER: return operation{basin_cuda_scatter, basin_cuda_scatter_workspace};
    case BASIN_OP_FROM_INDEX:
    case BASIN_OP_TO_INDEX: return operation{basin_cuda_convert_index, NULL};
    case BASIN_OP_SUM:
    case BASIN_OP_MAX: return operation{basin_cuda_reduce, basin_cuda_reduce_workspace};
    case BASIN_OP_SQUARES: return operation{basin_cuda_squares, basin_cuda_squares_workspace};
    case BASIN_OP_LOGSUMEXP:
    case BASIN_OP_SOFTMAX: return operation{basin_cuda_softmax, NULL};
    case BASIN_OP_THRESHOLD: return operation{basin_cuda_threshold, NULL};
    case BASIN_OP_CAUSAL_LOGSUMEXP:
    case BASIN_OP_CAUSAL_SOFTMAX:
    case BASIN_OP_CAUSAL_SOFTMAX_REVERSE:
        return operation{basin_cuda_causal, basin_cuda_causal_workspace};
    case BASIN_OP_LAYERNORM: return operation{basin_cuda_layernorm, NULL};
    case BASIN_OP_LAYERNORM_REVERSE:
        return operation{basin_cuda_layernorm_reverse, basin_cuda_layernorm_reverse_workspace};
    case BASIN_OP_MATMUL: return operation{basin_cuda_matmul, basin_cuda_matmul_workspace};
    case BASIN_OP_ATTENTION:
    case BASIN_OP_ATTENTION_FORCE:
    case BASIN_OP_ATTENTION_REVERSE:
        return operation{basin_cuda_attention, basin_cuda_attention_workspace};
    case BASIN_OP_TOKENS_FORCE:
    case BASIN_OP_TOKENS_REVERSE:
        return operation{basin_cuda_tokens_attention, basin_cuda_tokens_workspace};
    case BASIN_OP_PAIR_DOT: return operation{basin_cuda_pair_dot, basin_cuda_pair_workspace};
    case BASIN_OP_PAIR_SUM: return operation{basin_cuda_pair_sum, basin_cuda_pair_workspace};
    case BASIN_OP_CONV:
    case BASIN_OP_CONV_INPUT:
    case BASIN_OP_CONV_KERNEL: return operation{basin_cuda_conv, basin_cuda_conv_workspace};
    case BASIN_OP_AVGPOOL: return operation{basin_cuda_avgpool, NULL};
    case BASIN_OP_AVGPOOL_REVERSE: return operation{basin_cuda_avgpool_reverse, NULL};
    case BASIN_OP_MAXPOOL:
    case BASIN_OP_MAXPOOL_GATHER: return operation{basin_cuda_maxpool, NULL};
    case BASIN_OP_MAXPOOL_SCATTER: return operation{basin_cuda_maxpool_scatter, NULL};
    case BASIN_OP_NORMAL:
    case BASIN_OP_UNIFORM: return operation{basin_cuda_random, NULL};
    default: return operation{NULL, NULL};
    }
}
