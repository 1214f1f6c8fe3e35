/* The operations: one list (ops.inc) for expressions, plans and backends alike.
 *
 * Shapes are written [a, b, c]; "row" is the last axis. REAL tensors hold the backend's floating
 * type (double on ref, float on cpu), INDEX tensors int32_t. Every operation is total: no NaN comes
 * out of finite input except where mathematics has none (log of a negative number, 0/0). */
#ifndef BASIN_BACKEND_OP_H
#define BASIN_BACKEND_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "basin/tensor.h"

typedef enum basin_op {
#define LEAF(name, ...) BASIN_OP_##name,
#define POINTWISE(name, ...) BASIN_OP_##name,
#define CALL(name, ...) BASIN_OP_##name,
#include "engine/backend/ops.inc"
    BASIN_OP_COUNT
} basin_op;

/* Operands of the attention family. Optional ones may be absent. The pattern is a CSR list when
 * `row` is there (batch is 1), all pairs otherwise (attr.exclude_self leaves out q == k,
 * attr.causal k > q). q [batch, Nq, H, Y], k [batch, Nk, H, Y], beta [H], scale [pairs, H], mix [H,
 * H], w [batch, Nq, H] (cotangent of lse), a like q (cotangent of dq), b like k (cotangent of dk).
 * Equations: src/engine/backend/cpu/attention/attention.h. */
enum basin_attention_in {
    BASIN_ATT_Q,
    BASIN_ATT_K,
    BASIN_ATT_BETA,
    BASIN_ATT_SCALE,  /* optional; dense: pairs in (batch, query, key) order; see attr.added */
    BASIN_ATT_MIX,    /* optional */
    BASIN_ATT_ROW,    /* [Nq + 1] */
    BASIN_ATT_KEY,    /* [pairs] */
    BASIN_ATT_COLUMN, /* [Nk + 1] */
    BASIN_ATT_QUERY,  /* [pairs] in key order */
    BASIN_ATT_PAIR,   /* [pairs] in key order: number in CSR order */
    BASIN_ATT_W,      /* force and its reverse */
    BASIN_ATT_A,      /* reverse, optional */
    BASIN_ATT_B,      /* reverse, optional */
    BASIN_ATT_IN
};
enum basin_attention_out {
    BASIN_ATT_LSE,
    BASIN_ATT_DQ,
    BASIN_ATT_DK,
    BASIN_ATT_DBETA,
    BASIN_ATT_DSCALE,
    BASIN_ATT_DMIX,
    BASIN_ATT_OUT
};
enum basin_attention_reverse_out {
    BASIN_ATT_GQ,
    BASIN_ATT_GK,
    BASIN_ATT_GW,
    BASIN_ATT_GBETA,
    BASIN_ATT_GSCALE,
    BASIN_ATT_GMIX
};

/* Operands of softmax attention with values, the VALUES family; equations: backend/values.h. The
 * tangents may be absent, which is zero, and so may the bias; the list as above. */
enum basin_values_in {
    BASIN_VAL_Q,    /* [batch, Nq, H, Y] */
    BASIN_VAL_K,    /* [batch, Nk, K, Y], K divides H */
    BASIN_VAL_V,    /* [batch, Nk, K, V] */
    BASIN_VAL_BIAS, /* [batch, H, Nq, Nk], the first three of which may be 1; [batch, pairs, H] of
                       a list, batch may be 1 */
    BASIN_VAL_ROW,  /* .. BASIN_VAL_PAIR: as those of BASIN_ATT_ROW; any batch */
    BASIN_VAL_PAIR = BASIN_VAL_ROW + 4,
    BASIN_VAL_SEED,  /* optional: the fraction attr.drop of p is 0 where p meets v, and the rest
                        divided by 1 - attr.drop, by draws of stream attr.stream; no list */
    BASIN_VAL_C,     /* like o: its cotangent */
    BASIN_VAL_TQ,    /* like q */
    BASIN_VAL_TK,    /* like k */
    BASIN_VAL_TV,    /* like v */
    BASIN_VAL_TBIAS, /* like the bias */
    BASIN_VAL_TC,    /* like c */
    BASIN_VAL_IN,
    /* the reverse, where the plan also has the result and the backend keeps something of it: */
    BASIN_VAL_KEPT = BASIN_VAL_TQ, /* the result's second one */
    BASIN_VAL_O                    /* and its first */
};
/* Results of the reverse and the second order: like q, k, v, the bias with nothing that is 1, c. */
enum basin_values_out {
    BASIN_VAL_OUT_Q,
    BASIN_VAL_OUT_K,
    BASIN_VAL_OUT_V,
    BASIN_VAL_OUT_BIAS,
    BASIN_VAL_OUT_C, /* second order only */
    BASIN_VAL_OUT,
    BASIN_VAL_OUT_O =
        BASIN_VAL_OUT /* o beside its tangent: only for single operations on a device */
};

/* A custom pointwise operation, as a backend that compiles it sees it. */
typedef struct basin_custom_code {
    const char *name, *source; /* the body of its function in CUDA C; NULL: there is none */
    int operands;
} basin_custom_code;

/* What an operation needs to know beside its operands. Unused fields are zero. */
struct basin_custom_op;
typedef struct basin_attr {
    double value;                /* CONST, POW; epsilon of LAYERNORM; factor of CAUSAL_.., VALUES */
    double drop;                 /* UNIFORM; VALUES */
    int64_t start;               /* SLICE, PAD; FROM_INDEX, TO_INDEX; ITERATED */
    int axis, count;             /* SLICE, PAD, CONCAT; SUM, MAX; THRESHOLD */
    int8_t axes[BASIN_MAX_RANK]; /* PERMUTE */
    bool transpose_a, transpose_b; /* VALUES, the first: tokens lie as [batch, H, N, Y] */
    bool packed_b;                 /* MATMUL */
    uint8_t products; /* MATMUL, PACK: a basin_products of basin/backend.h, set by the plan */
    bool exclude_self, causal;
    bool added;      /* ATTENTION: `scale` is added to the scores, a bias, and multiplies nothing */
    bool widens;     /* ATTENTION: hosts also compute bfloat16 tokens in float */
    uint32_t stream; /* NORMAL, UNIFORM; VALUES */
    const struct basin_custom_op *own; /* OWN: the caller's, and what backends take of it */
    double (*function)(const double *x /* [ins] */, const void *context);
    const void *context;
    basin_custom_code code;
} basin_attr;

enum { BASIN_MAX_IN = 16, BASIN_MAX_OUT = 6, BASIN_OWN_INS = 3 };

static inline bool basin_op_is_pointwise(basin_op op) {
    return op >= BASIN_OP_NEG && op <= BASIN_OP_SELECT;
}

/* Leaves have storage but no kernel; a reshape is its operand's storage. */
static inline bool basin_op_has_kernel(basin_op op) {
    return op > BASIN_OP_CONST && op != BASIN_OP_RESHAPE;
}

/* Whether it takes a processor longer than reading and writing its result. */
bool basin_op_is_slow(basin_op op);

/* Whether hosts have a kernel for it and devices none. */
bool basin_op_is_hosts(basin_op op);

/* Whether plans stop there. */
static inline bool basin_op_exchanges(basin_op op) {
    return op == BASIN_OP_EXCHANGE || op == BASIN_OP_EXCHANGE_BACK;
}

const char *basin_op_name(basin_op op);

#endif
