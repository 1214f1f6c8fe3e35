/* Expressions: the mathematics of a model, written down once.
 *
 * An expression is a tensor that will be computed: an operation, its operands, a shape. It belongs
 * to a graph and lives as long as the graph does. Building one computes nothing; it checks shapes.
 * Gradients are expressions too (basin_grad), so they can be differentiated again: an energy's
 * gradient is the force of a descent, and a loss can be differentiated through that descent. A plan
 * (basin/plan.h) compiles expressions for a backend and runs them.
 *
 *     basin_graph *graph = basin_graph_new();
 *     basin_expr x = basin_input(graph, "x", BASIN_SHAPE(N, D));
 *     basin_expr w = basin_state(graph, "w", BASIN_SHAPE(D, M));
 *     basin_expr h = basin_relu(basin_matmul(x, w));
 *     basin_expr energy = basin_scale(basin_sum_all(basin_square(h)), -0.5);
 *     basin_expr force = basin_neg(basin_grad(energy, x));
 *
 * Errors stick: a function whose operands do not fit returns NULL and leaves its message in the
 * graph; every function accepts NULL operands and passes them on. So a formula is written without
 * checks, and basin_graph_error is called once at the end (making a plan also calls it). Equal
 * expressions are shared: building the same thing twice gives the same pointer. */
#ifndef BASIN_EXPR_H
#define BASIN_EXPR_H

#include "basin/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A graph and its expressions belong to one thread at a time; different graphs are independent. */
typedef struct basin_graph basin_graph;
typedef const struct basin_value *basin_expr;

BASIN_API basin_graph *basin_graph_new(void); /* NULL when out of memory */
BASIN_API void basin_graph_free(basin_graph *graph);
/* The first error since the graph was made, or NULL. */
BASIN_API const basin_error *basin_graph_error(const basin_graph *graph);
/* The same as a status, with the message in `error`. */
BASIN_API basin_status basin_graph_check(const basin_graph *graph, basin_error *error);
/* For code built on expressions: reports an error in the graph; returns NULL (false). Only the
 * first error of a graph is kept. */
BASIN_API basin_expr basin_graph_fail(basin_graph *graph, basin_status status, const char *format,
                                      ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

BASIN_API basin_graph *basin_expr_graph(basin_expr a);
BASIN_API basin_shape basin_expr_shape(basin_expr a); /* of NULL: a scalar */
/* The name of an input or a state, "g" for variables, "" for all others. */
BASIN_API const char *basin_expr_name(basin_expr a);

/* Leaves. An input is written before each run; a state lives in a store, is shared by name between
 * plans, and may be updated by a run; an index tensor holds int32 numbers. Two leaves of one kind,
 * name and shape are the same leaf. */
BASIN_API basin_expr basin_input(basin_graph *graph, const char *name, basin_shape shape);
BASIN_API basin_expr basin_index(basin_graph *graph, const char *name, basin_shape shape);
BASIN_API basin_expr basin_state(basin_graph *graph, const char *name, basin_shape shape);
BASIN_API basin_expr basin_scalar(basin_graph *graph, double value);
BASIN_API basin_expr basin_full(basin_graph *graph, basin_shape shape, double value);
/* A tensor of constants, copied from the host. A tensor of I32 gives an index tensor, for
 * basin_take or a pattern, and making a plan fails where an index is out of range; a tensor of any
 * other type gives numbers. */
BASIN_API basin_expr basin_constant(basin_graph *graph, const basin_tensor *tensor);
/* 0, 1, .., count - 1; at most as many as a float counts, BASIN_MAX_ARANGE. */
enum { BASIN_MAX_ARANGE = 1 << 24 };
BASIN_API basin_expr basin_arange(basin_graph *graph, int64_t count);
/* 1 on the diagonal, else 0, [count, count]; and 1 where column <= row + diagonal, else 0: the
 * lower triangle, with its diagonal for 0 and without it for -1. */
BASIN_API basin_expr basin_eye(basin_graph *graph, int64_t count);
BASIN_API basin_expr basin_tri(basin_graph *graph, int64_t rows, int64_t columns, int64_t diagonal);
/* Index tensors as numbers. What is written into `index` must lie in -1 .. limit - 1 (limit 0:
 * anything). */
BASIN_API basin_expr basin_from_index(basin_expr index, int64_t limit);
/* The nearest index of 0 .. limit - 1 to each number; NaN gives 0. No gradient flows through it. */
BASIN_API basin_expr basin_to_index(basin_expr a, int64_t limit);
/* [..] -> [.., count]: 1 where the column is the index, else 0; a row of zeros for -1. */
BASIN_API basin_expr basin_one_hot(basin_expr index, int64_t count);

/* Pointwise functions of one operand. */
BASIN_API basin_expr basin_neg(basin_expr a);
BASIN_API basin_expr basin_abs(basin_expr a);
BASIN_API basin_expr basin_sign(basin_expr a);
BASIN_API basin_expr basin_sqrt(basin_expr a);
BASIN_API basin_expr basin_exp(basin_expr a);
BASIN_API basin_expr basin_log(basin_expr a);
BASIN_API basin_expr basin_log1p(basin_expr a);
BASIN_API basin_expr basin_expm1(basin_expr a);
BASIN_API basin_expr basin_tanh(basin_expr a);
BASIN_API basin_expr basin_sigmoid(basin_expr a);
BASIN_API basin_expr basin_softplus(basin_expr a); /* log(1 + e^a), never overflows */
BASIN_API basin_expr basin_lncosh(basin_expr a);   /* log cosh a, never overflows */
BASIN_API basin_expr basin_relu(basin_expr a);
BASIN_API basin_expr basin_heaviside(basin_expr a); /* 1 where a > 0, else 0; its gradient is 0 */
BASIN_API basin_expr basin_sin(basin_expr a);
BASIN_API basin_expr basin_cos(basin_expr a);
BASIN_API basin_expr basin_erf(basin_expr a);
BASIN_API basin_expr basin_power_scalar(basin_expr a, double exponent);
/* a to the power of an expression, for a > 0. */
BASIN_API basin_expr basin_power(basin_expr a, basin_expr exponent);
BASIN_API basin_expr basin_square(basin_expr a);
BASIN_API basin_expr basin_reciprocal(basin_expr a);
BASIN_API basin_expr basin_scale(basin_expr a, double factor);
BASIN_API basin_expr basin_offset(basin_expr a, double term);
/* The same value, through which no gradient flows. */
BASIN_API basin_expr basin_stop_gradient(basin_expr a);
/* The same value as a new expression, distinct from all others: a gradient with respect to it sees
 * only what is built on it. */
BASIN_API basin_expr basin_variable(basin_expr a);
/* The expression a variable was created from; any other expression is returned unchanged. A
 * gradient with respect to the variable does not pass through its source, while one with respect to
 * the source passes through both. So an energy whose keys are built from basin_variable_source(g)
 * has a force on the queries only, and is trained through both. */
BASIN_API basin_expr basin_variable_source(basin_expr variable);

/* Pointwise functions of several operands, broadcast as numpy does: shapes are aligned at their
 * last axes, and an axis of 1 (or a missing one) repeats. */
BASIN_API basin_expr basin_add(basin_expr a, basin_expr b);
BASIN_API basin_expr basin_sub(basin_expr a, basin_expr b);
BASIN_API basin_expr basin_mul(basin_expr a, basin_expr b);
BASIN_API basin_expr basin_div(basin_expr a, basin_expr b);
BASIN_API basin_expr basin_maximum(basin_expr a, basin_expr b);
BASIN_API basin_expr basin_minimum(basin_expr a, basin_expr b);
BASIN_API basin_expr basin_greater(basin_expr a, basin_expr b); /* 1 or 0 */
BASIN_API basin_expr basin_equal(basin_expr a, basin_expr b);   /* 1 or 0 */
BASIN_API basin_expr basin_atan2(basin_expr y, basin_expr x);   /* the angle of (x, y) */
/* floor(a / b), whose gradient is 0; where `remainder` is not NULL, a - b floor(a / b) there,
 * without rounding and with the sign of b. */
BASIN_API basin_expr basin_divmod(basin_expr a, basin_expr b, basin_expr *remainder);
BASIN_API basin_expr basin_where(basin_expr where, basin_expr yes, basin_expr no);

/* Moving numbers. A negative axis counts from the end. One axis of a new shape may be -1: as long
 * as the others leave. */
BASIN_API basin_expr basin_reshape(basin_expr a, basin_shape shape);
BASIN_API basin_expr basin_permute(basin_expr a, const int *axes); /* [rank] */
BASIN_API basin_expr basin_transpose(basin_expr a);                /* the last two axes */
BASIN_API basin_expr basin_broadcast_to(basin_expr a, basin_shape shape);
BASIN_API basin_expr basin_slice(basin_expr a, int axis, int64_t start, int64_t count);
BASIN_API basin_expr basin_pad(basin_expr a, int axis, int64_t before, int64_t after);
BASIN_API basin_expr basin_concat(const basin_expr *parts, int count, int axis);
/* Inserts `count` axes of length 1, the first of which becomes `axis`: what keeps the axes of a
 * reduction, basin_expand_dims(basin_sum(a, 1, 2), 1, 2). */
BASIN_API basin_expr basin_expand_dims(basin_expr a, int axis, int count);
/* Tensors of one shape side by side along a new axis. */
BASIN_API basin_expr basin_stack(const basin_expr *parts, int count, int axis);
/* `count` elements: start, start + step, ..; a negative step reverses their order. */
BASIN_API basin_expr basin_stride(basin_expr a, int axis, int64_t start, int64_t count,
                                  int64_t step);
/* The axis rotated by a number of elements. */
BASIN_API basin_expr basin_roll(basin_expr a, int axis, int64_t by);
/* Elements along an axis chosen by index [n], such as rows of a table (axis 0); -1 gives zeros. */
BASIN_API basin_expr basin_take(basin_expr a, int axis, basin_expr index);
/* Sums of the elements up to and with each. */
BASIN_API basin_expr basin_cumsum(basin_expr a, int axis);
/* [rows, ...]: row index[i] is the sum of its values [n, ...]. */
BASIN_API basin_expr basin_scatter(basin_expr values, basin_expr index, int64_t rows);

/* Reductions over `count` axes from `axis` on, which vanish. */
BASIN_API basin_expr basin_sum(basin_expr a, int axis, int count);
BASIN_API basin_expr basin_mean(basin_expr a, int axis, int count);
BASIN_API basin_expr basin_max(basin_expr a, int axis, int count);
BASIN_API basin_expr basin_min(basin_expr a, int axis, int count);
BASIN_API basin_expr basin_sum_all(basin_expr a);
BASIN_API basin_expr basin_mean_all(basin_expr a);
/* Over an axis, which vanishes in the first; without overflow. */
BASIN_API basin_expr basin_logsumexp(basin_expr a, int axis);
BASIN_API basin_expr basin_softmax(basin_expr a, int axis);
/* Sparse relatives of softmax over the last axis: rows of probabilities, some of them 0. Each is
 * the gradient of its conjugate, [.., n] -> [..], as softmax is of log-sum-exp: max over p of p.z -
 * Omega(p), with Omega the negative entropy of Tsallis (2 for sparsemax, 1.5 for entmax15) or |p| -
 * 1 (normmax2). Derivatives of any order hold the support. */
typedef enum basin_sparse_kind {
    BASIN_SPARSE_SPARSEMAX,
    BASIN_SPARSE_ENTMAX15,
    BASIN_SPARSE_NORMMAX2,
} basin_sparse_kind;
BASIN_API basin_expr basin_sparse_softmax(basin_expr a, basin_sparse_kind kind);

/* The (first) position of the largest element of an axis, which vanishes: an index tensor. */
BASIN_API basin_expr basin_argmax(basin_expr a, int axis);
/* The `count` largest elements of an axis in descending order, and their positions where `where` is
 * not NULL. One pass over the axis per element. */
enum { BASIN_MAX_TOP_K = 64 };
BASIN_API basin_expr basin_top_k(basin_expr a, int64_t count, int axis, basin_expr *where);
/* log-sum-exp of the scores minus the labelled one, [.., classes] and index [..] -> [..]; 0 for the
 * label -1. */
BASIN_API basin_expr basin_cross_entropy_labels(basin_expr scores, basin_expr label);

/* gamma (x - mean) / sqrt(var + epsilon) + delta over the last axis; gamma [] or [D], delta [D];
 * NULL: 0. */
BASIN_API basin_expr basin_layernorm(basin_expr x, basin_expr gamma, basin_expr delta,
                                     double epsilon);

/* Matrix products. a [.., m, k] b [k, n] (b shared by all leading axes of a) or b [.., k, n] with
 * equal leading axes. The _t form multiplies by transposes. */
BASIN_API basin_expr basin_matmul(basin_expr a, basin_expr b);
BASIN_API basin_expr basin_matmul_t(basin_expr a, bool transpose_a, basin_expr b, bool transpose_b);
/* Contraction: basin_einsum("bnd,hyd->bnhy", g, w). A letter twice in an operand means its
 * diagonal. Any number of operands up to BASIN_MAX_EINSUM are multiplied from the left to the
 * right. */
enum { BASIN_MAX_EINSUM = 8 };
BASIN_API basin_expr basin_einsum_many(const char *spec, const basin_expr *a, int count);
#ifndef __cplusplus
#define basin_einsum(spec, ...)                                                                    \
    basin_einsum_many(spec, (const basin_expr[]){__VA_ARGS__},                                     \
                      (int)(sizeof((const basin_expr[]){__VA_ARGS__}) / sizeof(basin_expr)))
#else
extern "C++" {
template <class... Operand> inline basin_expr basin_einsum(const char *spec, Operand... a) {
    const basin_expr list[] = {a...};
    return basin_einsum_many(spec, list, static_cast<int>(sizeof...(a)));
}
}
#endif

/* Square matrices [.., n, n], each by itself; with derivatives of any order, on the backends cpu
 * and ref. The lower triangle l with l l' = (a + a') / 2; a run fails where that is not positive
 * definite, and names the matrix. */
BASIN_API basin_expr basin_cholesky(basin_expr a);
/* x with a x = b; b [n], or [.., n, k] whose leading axes and those of `a` are broadcast. A run
 * fails where a matrix is singular. The lower kinds read only the lower triangle. */
typedef enum basin_solve_kind {
    BASIN_SOLVE_GENERAL,
    BASIN_SOLVE_TRANSPOSED, /* a' x = b */
    BASIN_SOLVE_LOWER,
    BASIN_SOLVE_LOWER_TRANSPOSED,
} basin_solve_kind;
BASIN_API basin_expr basin_solve(basin_expr a, basin_expr b, basin_solve_kind kind);
/* log |det a| [..], -inf where a is singular; and the sign, -1, 0 or 1, where `sign` is not NULL.
 */
BASIN_API basin_expr basin_slogdet(basin_expr a, basin_expr *sign);

/* Convolution (cross-correlation) over x [B, h, w, C] with kernel [kh, kw, C, O]; zeros around:
 * `same` pads so that out = ceil(in / stride), otherwise nothing is padded. */
BASIN_API basin_expr basin_conv2d(basin_expr x, basin_expr kernel, int stride, bool same);
/* Pooling over windows, [B, h, w, C], without padding; ties go to the lowest index. */
typedef enum basin_pool { BASIN_POOL_NONE, BASIN_POOL_AVERAGE, BASIN_POOL_MAX } basin_pool;
BASIN_API basin_expr basin_pool2d(basin_expr x, basin_pool kind, int window, int stride);

/* Custom pointwise operations, for functions that the operations above cannot express.
 *
 *     static double softsign(const double *x, const void *context) {
 *         return x[0] / (1 + fabs(x[0]));
 *     }
 *     static basin_expr slope(const basin_custom_op *own, const basin_expr *x, int i) {
 *         return basin_power_scalar(basin_offset(basin_abs(x[0]), 1), -2);
 *     }
 *     static const basin_custom_op own = {.name = "softsign", .operands = 1, .value = softsign,
 *                                   .slope = slope,
 *                                   .cuda = "return x[0] / (1 + fabsf(x[0]));"};
 *     basin_expr y = basin_custom_apply(&own, &x);
 *
 * Operands are broadcast as those of basin_add. The derivative by operand i is what `slope` builds
 * of the operands (NULL: zero), or the operation derivative[i] of the same operands: so a function,
 * its first and its second derivative are three of these, each naming the next. Asking for one that
 * is not there is an error. `value` is called by several threads at once and must depend on nothing
 * but its arguments.
 *
 * `value` runs on the host. The backend cuda compiles `cuda` instead, the same function's body in
 * CUDA C: x is float x[operands], what is returned becomes a float, there is no context (write its
 * numbers into the text), a body has no preprocessor directives. It is fused with the operations
 * around it. Making a plan fails where it is missing or does not compile. The struct and its texts
 * must outlive plans. */
enum { BASIN_MAX_CUSTOM_OPERANDS = 3 };
typedef struct basin_custom_op basin_custom_op;
struct basin_custom_op {
    const char *name;                                      /* for messages and descriptions */
    int operands;                                          /* 1 to BASIN_MAX_CUSTOM_OPERANDS */
    double (*value)(const double *x, const void *context); /* x [operands] */
    basin_expr (*slope)(const basin_custom_op *own, const basin_expr *x, int i);
    const basin_custom_op *derivative[BASIN_MAX_CUSTOM_OPERANDS]; /* where there is no `slope` */
    const void *context;
    const char *cuda; /* `value` for that backend; NULL: it refuses the operation */
};
BASIN_API basin_expr basin_custom_apply(const basin_custom_op *own, const basin_expr *x);

/* Random draws, counter-based: the same on every backend and for any number of threads. `seed` is
 * an index tensor [2] written before a run; each call of these functions opens a new stream. */
BASIN_API basin_expr basin_normal(basin_expr seed, basin_shape shape);
BASIN_API basin_expr basin_uniform(basin_expr seed, basin_shape shape);
/* Dropout: a share `rate` of the elements, 0 <= rate < 1, becomes 0 and the others larger, so that
 * the mean stays. `a` itself where the seed is NULL or the rate 0. */
BASIN_API basin_expr basin_dropout(basin_expr a, double rate, basin_expr seed);

/* Which pairs (query, key) see each other. All pairs of `queries` x `keys` within each of `batch`
 * entries (attention also takes NULL for them), or a list in CSR form whose parts are index tensors
 * (basin/pairs.h makes them). */
typedef struct basin_pattern {
    bool exclude_self; /* all pairs: leave out query == key */
    bool causal;       /* all pairs: leave out key > query; as many queries as keys */
    basin_expr row;    /* [queries + 1]; NULL for all pairs */
    basin_expr key;    /* [pairs] */
    basin_expr column; /* [keys + 1], the same pairs by key: */
    basin_expr query;  /* [pairs] */
    basin_expr pair;   /* [pairs], numbers in CSR order */
    int64_t halo;      /* lists only: how many keys at the end are rows of other partitions
                          (basin_exchange); the keys are passed without them */
} basin_pattern;
static const basin_pattern BASIN_ALL_PAIRS = {false, false, NULL, NULL, NULL, NULL, NULL, 0};
static const basin_pattern BASIN_OTHER_PAIRS = {true, false, NULL, NULL, NULL, NULL, NULL, 0};
/* A token sees itself and those before it, or those before it alone; these take about half as long
 * as all pairs. */
static const basin_pattern BASIN_CAUSAL_PAIRS = {false, true, NULL, NULL, NULL, NULL, NULL, 0};
static const basin_pattern BASIN_EARLIER_PAIRS = {true, true, NULL, NULL, NULL, NULL, NULL, 0};

/* log-sum-exp of the scores of each query and head, the heart of energy attention:
 *     z[q, k, h] = sum over g of beta[g] (Q[q, g] . K[k, g]) mix[g, h], times scale[pair, h] or
 *                  plus bias[pair, h]
 * out[q, h] = log of the sum over keys k of exp z[q, k, h]; 0 for a query without keys.
 * q [.., Nq, H, Y], k [.., Nk, H, Y], beta [H]. One fused kernel computes it, one its gradient (the
 * force), one the gradient of that; memory grows with tokens or pairs, never with their product or
 * with pairs x Y. pattern NULL: all pairs. */
typedef struct basin_lse_options {
    size_t size;            /* sizeof this struct; 0: as in version 1.0 */
    basin_expr scale, bias; /* [pairs, H], one of them; NULL: 1 and 0 */
    basin_expr mix;         /* [H, H]; NULL: the identity */
} basin_lse_options;
BASIN_API basin_expr basin_attention_lse(basin_expr q, basin_expr k, basin_expr beta,
                                         const basin_pattern *pattern,
                                         const basin_lse_options *options);
/* softmax(beta Q K^T + bias) V of each head: out [.., Nq, H, V] of q [.., Nq, H, Y], k [.., Nk, K,
 * Y] and v [.., Nk, K, V], where each of the K heads is shared by H / K heads of queries; 0 for a
 * query without keys. It can be differentiated twice with respect to all of them; memory grows as
 * that of basin_attention_lse does. */
typedef struct basin_softmax_options {
    size_t size;     /* sizeof this struct; 0: as in version 1.0 */
    basin_expr beta; /* [] or [H]; NULL: 1 / sqrt(Y) */
    basin_expr bias; /* [.., H, Nq, Nk], of which all but the last may be 1 or missing; for a list
                        [pairs, H]; NULL: 0 */
    double
        dropout; /* the share of the softmax that becomes 0, as by basin_dropout; not for lists */
    basin_expr seed; /* index [2] of its draws; NULL: no dropout */
} basin_softmax_options;
BASIN_API basin_expr basin_softmax_attention(basin_expr q, basin_expr k, basin_expr v,
                                             const basin_pattern *pattern,
                                             const basin_softmax_options *options);
/* Per pair of a CSR list: x[q, h] . z[k, h], [pairs, H]; and its reverse, sums of w[pair, h] z[k,
 * h] for each query. x [Nq, H, Y], z [Nk, H, Y], w [pairs, H]. */
BASIN_API basin_expr basin_pair_dot(basin_expr x, basin_expr z, const basin_pattern *pattern);
BASIN_API basin_expr basin_pair_sum(basin_expr w, basin_expr z, const basin_pattern *pattern);

/* The gradient of the sum of y with respect to x, an expression of x's shape (zeros where y does
 * not depend on it). */
BASIN_API basin_expr basin_grad(basin_expr y, basin_expr x);
/* The same with respect to several x in one reverse pass, and weighted by a cotangent of y's shape
 * (NULL: ones): the gradient of sum(cotangent * y). */
BASIN_API void basin_vjp(basin_expr *gradient, basin_expr y, basin_expr cotangent,
                         const basin_expr *x, int count);

/* The derivative of y as x moves along tangents of its shapes: J t, an expression of y's shape. One
 * order more than a gradient: there is none of the force of energy attention. */
BASIN_API basin_expr basin_jvp(basin_expr y, const basin_expr *x, const basin_expr *tangent,
                               int count);
/* All of dy/dx, [elements of y, elements of x]: a reverse sweep for each element of y. */
enum { BASIN_MAX_JACOBIAN = 256 };
BASIN_API basin_expr basin_jacobian(basin_expr y, basin_expr x);

/* What is built between begin and end is computed again where something outside needs it, instead
 * of being stored, unless it was kept: less memory, more time. */
BASIN_API void basin_recompute_begin(basin_graph *graph);
BASIN_API void basin_recompute_end(basin_graph *graph);
BASIN_API basin_expr basin_keep(basin_expr a);

#ifdef __cplusplus
}
#endif
#endif
