/* The operations: one list for expressions, plans and backends alike.
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
    /* Leaves: have storage of their own, no kernel. */
    BASIN_OP_INPUT, /* written by the caller before a run */
    BASIN_OP_STATE, /* lives in a store, shared between plans: parameters, moments */
    BASIN_OP_DATA,  /* a constant tensor, whose numbers the graph holds */
    BASIN_OP_CONST, /* attr.value, a scalar */

    /* Pointwise, one operand. */
    BASIN_OP_NEG,
    BASIN_OP_ABS,
    BASIN_OP_SIGN, /* -1, 0, 1 */
    BASIN_OP_SQRT,
    BASIN_OP_EXP,
    BASIN_OP_LOG,
    BASIN_OP_LOG1P,
    BASIN_OP_EXPM1,
    BASIN_OP_TANH,
    BASIN_OP_SIGMOID,  /* 1 / (1 + exp(-x)), without overflow */
    BASIN_OP_SOFTPLUS, /* log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)) */
    BASIN_OP_LNCOSH,   /* log(cosh(x)) = |x| - log 2 + log1p(exp(-2|x|)) */
    BASIN_OP_RELU,
    BASIN_OP_STEP, /* 1 where x > 0, else 0 */
    BASIN_OP_SIN,
    BASIN_OP_COS,
    BASIN_OP_ERF,
    BASIN_OP_POW,  /* x to the constant attr.value; 0^0 = 1 */
    BASIN_OP_COPY, /* x itself: materialises a broadcast or an update */
    /* Pointwise, two operands. */
    BASIN_OP_ADD,
    BASIN_OP_SUB,
    BASIN_OP_MUL,
    BASIN_OP_DIV,
    BASIN_OP_MAX2,
    BASIN_OP_MIN2,
    BASIN_OP_GREATER, /* 1 where a > b, else 0 */
    BASIN_OP_EQUAL,   /* 1 where a == b, else 0 */
    /* Pointwise, three operands. */
    BASIN_OP_SELECT, /* a != 0 ? b : c */

    /* A fused group of the above, as a program; see kernel.h. */
    BASIN_OP_POINTWISE,

    /* Moving numbers. RESHAPE never runs: it shares its operand's storage. */
    BASIN_OP_RESHAPE,
    BASIN_OP_PERMUTE, /* out axis i is in axis attr.axes[i] */
    BASIN_OP_SLICE,   /* attr.axis, elements attr.start .. attr.start + out dim - 1 */
    BASIN_OP_PAD,     /* zeros, with the operand at attr.start of attr.axis: the reverse of SLICE */
    BASIN_OP_CONCAT,  /* of n operands, along attr.axis */
    BASIN_OP_GATHER,  /* in: table [V, R...], index [n]; out [n, R...]; index -1 gives zeros */
    BASIN_OP_SCATTER, /* in: values [n, R...], index [n]; out [V, R...] = sums; -1 is dropped */
    BASIN_OP_FROM_INDEX, /* INDEX to REAL; attr.start: the numbers lie in -1 .. start - 1, 0: any */
    BASIN_OP_TO_INDEX,   /* REAL to INDEX, the nearest of 0 .. attr.start - 1; NaN gives 0 */

    /* Over the attr.count axes that start at attr.axis; they vanish from the shape. */
    BASIN_OP_SUM,
    BASIN_OP_MAX,

    BASIN_OP_SQUARES, /* of n operands of any shapes: [], the sum of all their squares */

    /* Over the row. */
    BASIN_OP_LOGSUMEXP, /* [.., n] -> [..] */
    BASIN_OP_SOFTMAX,   /* [.., n] -> [.., n] */
    /* [.., n] -> [..]: the t at which relu(x - t)^attr.count sums to 1; attr.count is 1 or 2. Of an
     * empty row, 0. */
    BASIN_OP_THRESHOLD,

    /* Causal pairs whose scores are in memory, x [.., N, M, H] of query, key, head. Query n sees
     * keys 0 .. n, or 0 .. n - 1 (attr.exclude_self); attr.value multiplies the scores. A query
     * that sees nothing has the log-sum-exp 0 and the shares 0. */
    BASIN_OP_CAUSAL_LOGSUMEXP, /* x -> [.., N, H] */
    /* in: x, and perhaps a seed; out: shares like x, 0 where a query does not see. With a seed, the
     * fraction attr.drop of them is 0, too, and the rest divided by 1 - attr.drop: those whose
     * draws in stream attr.stream, UNIFORM, are not above attr.drop. */
    BASIN_OP_CAUSAL_SOFTMAX,
    /* in: x, c (cotangent of the shares), and perhaps the seed; out: the cotangent of x */
    BASIN_OP_CAUSAL_SOFTMAX_REVERSE,

    /* in: x [.., D], gamma [], delta [D]; out g = gamma (x - mean) / sqrt(var + attr.value) + delta
     */
    BASIN_OP_LAYERNORM,
    /* in: x, gamma, c [.., D] (cotangent of g), and perhaps r like x, which is added to dx; out:
     * dx, dgamma [], ddelta [D], each may be absent, and perhaps dx once more, NARROW. Only plans
     * ask for the two that may be missing. */
    BASIN_OP_LAYERNORM_REVERSE,

    /* in: A [batch, m, k] (attr.transpose_a: [batch, k, m]), B likewise; out [batch, m, n].
     * rank 2 operands mean batch 1. call.program, if any, is an epilogue. An INDEX result is the
     * mask of the first one, bits in an order that the backend chooses; an INDEX operand of the
     * program is such a mask: 1 where a bit is set. */
    BASIN_OP_MATMUL,
    /* in: B [k, n] (attr.transpose_b: [n, k]); out: the same numbers laid out as the backend's
     * products read them fastest, in a form and size of its own (table.packed_bytes). A MATMUL with
     * attr.packed_b takes that for B; its operand keeps B's shape. Only plans make these, for
     * factors that several products share. */
    BASIN_OP_PACK,

    /* Energy attention; operands in the order of basin_attention_in/out below. */
    BASIN_OP_ATTENTION,         /* out: lse */
    BASIN_OP_ATTENTION_FORCE,   /* out: lse, dq, dk, dbeta, dscale, dmix */
    BASIN_OP_ATTENTION_REVERSE, /* out: gq, gk, gw, gbeta, gscale, gmix */

    /* Products over the pairs of a CSR pattern; head-wise, x [Nq, H, Y], z [Nk, H, Y], w [P, H]. */
    BASIN_OP_PAIR_DOT, /* in: x, z, row, key, column, query, pair; out w[p, h] = x[q, h] . z[k, h]
                        */
    BASIN_OP_PAIR_SUM, /* in: w, z, row, ...; out[q, h] = sum over its pairs of w[p, h] z[k, h];
                          attr.transpose_a: out[k, h] = sum of w[p, h] x[q, h], in: w, x, row, ...
                        */

    /* Convolution (cross-correlation), NHWC: x [B, h, w, C], kernel [kh, kw, C, O], y [B, h', w',
     * O]; attr.stride, attr.pad (rows or columns of zeros before; those after follow from the
     * shapes). */
    BASIN_OP_CONV,        /* in: x, kernel; out y */
    BASIN_OP_CONV_INPUT,  /* in: y, kernel; out x: the transposed convolution */
    BASIN_OP_CONV_KERNEL, /* in: x, y; out kernel */
    /* Pooling, NHWC: windows attr.window, attr.stride, attr.pad. The average divides by the number
     * of real cells in the window; the maximum of an empty window is 0. */
    BASIN_OP_AVGPOOL,         /* x -> y */
    BASIN_OP_AVGPOOL_REVERSE, /* y -> x: each y spread evenly over its window */
    BASIN_OP_MAXPOOL,         /* x -> y */
    BASIN_OP_MAXPOOL_SCATTER, /* in: x, y; out like x: each y added at its window's (first) maximum
                               */
    BASIN_OP_MAXPOOL_GATHER,  /* in: x, v like x; out like y: v at each window's (first) maximum */

    /* Counter-based draws: element i of stream attr.stream under seed (INDEX [2], low and high
     * word); basin/random.h gives the numbers, the same on every backend up to rounding. */
    BASIN_OP_NORMAL,
    /* [0, 1); with attr.drop above 0, 1 where that is above attr.drop, else 0 */
    BASIN_OP_UNIFORM,

    /* Rows that several plans, each of one part of the tokens, have in common. These two have no
     * kernel: plans stop at them, and whoever runs them together moves the rows (basin/plan.h). */
    BASIN_OP_EXCHANGE,      /* [n, R...] -> [n + h, R...]: own rows, then h that others own */
    BASIN_OP_EXCHANGE_BACK, /* [n + h, R...] -> [n, R...]: own rows, with what others have for them
                               added; the reverse */

    /* in: a state, what its end is a function of, and perhaps what must end before; out: the state
     * at the end of iteration attr.start of the graph. Plans run the iteration first and read the
     * state (src/plan/iterate.c). */
    BASIN_OP_ITERATED,

    /* attr.function at every element of 1 to 3 operands, broadcast. On host backends alone. */
    BASIN_OP_OWN,

    /* Energy attention along a list where queries and keys are Wq g and Wk g, in the tokens' own
     * space: r = g[k] . M_h g[q]. In the place of q tokens g [N, D], of k M [H, D, D], of a the
     * cotangent t [N, D] of dg; no scale, mix, pair and b. Only plans make these
     * (plan/passes/tokens.c). */
    BASIN_OP_TOKENS_FORCE,   /* out: lse, dg */
    BASIN_OP_TOKENS_REVERSE, /* out: gg, gM, gw, gbeta */

    BASIN_OP_COUNT
} basin_op;

/* Operands of the attention family. Optional ones may be absent. The pattern is a CSR list when
 * `row` is there (batch is 1), all pairs otherwise (attr.exclude_self leaves out q == k,
 * attr.causal k > q). q [batch, Nq, H, Y], k [batch, Nk, H, Y], beta [H], scale [pairs, H], mix [H,
 * H], w [batch, Nq, H] (cotangent of lse), a like q (cotangent of dq), b like k (cotangent of dk).
 * Equations: src/backend/cpu/attention/attention.h. */
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

/* A pointwise operation of the caller's own, as far as a backend that compiles it wants to know. */
typedef struct basin_own_code {
    const char *name, *source; /* the body of its function in CUDA C; NULL: there is none */
    int operands;
} basin_own_code;

/* What an operation needs to know beside its operands. Unused fields are zero. */
struct basin_own;
typedef struct basin_attr {
    double value;                /* CONST, POW; epsilon of LAYERNORM; factor of CAUSAL_.. */
    double drop;                 /* CAUSAL_SOFTMAX and its reverse; UNIFORM */
    int64_t start;               /* SLICE, PAD; FROM_INDEX, TO_INDEX; ITERATED */
    int axis, count;             /* SLICE, PAD, CONCAT; SUM, MAX; THRESHOLD */
    int8_t axes[BASIN_MAX_RANK]; /* PERMUTE */
    bool transpose_a, transpose_b;
    bool packed_b;    /* MATMUL */
    uint8_t products; /* MATMUL, PACK: a basin_products of basin/backend.h, set by the plan */
    bool exclude_self, causal;
    bool added; /* ATTENTION: `scale` is added to the scores, a bias, and multiplies nothing */
    int32_t window[2], stride[2], pad[2]; /* rows, columns */
    uint32_t stream;                      /* NORMAL, UNIFORM; CAUSAL_SOFTMAX, its reverse */
    const struct basin_own *own;          /* OWN: the caller's, and what backends take of it */
    double (*function)(const double *x /* [ins] */, const void *context);
    const void *context;
    basin_own_code code;
} basin_attr;

enum { BASIN_MAX_IN = 16, BASIN_MAX_OUT = 6, BASIN_OWN_INS = 3 };

static inline bool basin_op_is_pointwise(basin_op op) {
    return op >= BASIN_OP_NEG && op <= BASIN_OP_SELECT;
}

/* Whether plans stop there. */
static inline bool basin_op_exchanges(basin_op op) {
    return op == BASIN_OP_EXCHANGE || op == BASIN_OP_EXCHANGE_BACK;
}

const char *basin_op_name(basin_op op);

#endif
