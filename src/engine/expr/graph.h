/* The inside of a graph: nodes (operations), values (their results), and what builders share. */
#ifndef BASIN_EXPR_GRAPH_H
#define BASIN_EXPR_GRAPH_H

#include "basin/expr.h"
#include "engine/backend/kernel.h"

typedef struct basin_node basin_node;

struct basin_value {
    basin_graph *graph;
    basin_node *node;
    int index; /* which output of the node */
    int id;    /* ascending in the order of creation; operands come first */
    basin_kind kind;
    basin_shape shape;
};

struct basin_node {
    basin_op op;
    basin_attr attr;
    int id;
    int region; /* of recomputation; 0 outside */
    bool keep;
    int ins, outs;
    basin_expr in[BASIN_MAX_IN];            /* absent operands are NULL */
    struct basin_value *out[BASIN_MAX_OUT]; /* absent results are NULL */
    char *name;                             /* leaves */
    const basin_node *origin; /* leaves of a rewritten graph: the leaf they stand for */
    void *data;               /* DATA: double or int32_t; NULL where `origin` has it */
    uint64_t hash;
    basin_node *next; /* in its hash bucket */
};

/* An iteration over states: all of them take their first values, then the next ones, again and
 * again, until what is left is small. Its end is an ITERATED node. */
enum { BASIN_ITERATION_STATES = 8, BASIN_ITERATION_HELD = 4 };
typedef struct basin_iteration basin_iteration;
struct basin_iteration {
    struct {
        basin_expr state, first, next; /* next NULL: it stays */
    } carry[BASIN_ITERATION_STATES];
    int carries;
    basin_expr size, left; /* scalars: |target|^2 at the start and |residual|^2 after a step;
                              without a size, the residual is relative already */
    double accuracy;       /* stops where the relative residual is at most this */
    int max;               /* max steps */
    bool solves;           /* a linear system; else a fixed point */
    /* The cotangent of what the end is a function of; NULL: it has no reverse. */
    basin_expr (*reverse)(basin_expr end, const basin_iteration *iteration, basin_expr cotangent);
    basin_expr held[BASIN_ITERATION_HELD]; /* for `reverse` */
    int products;                          /* max steps and accuracy of the reverse */
    double precision;
};

struct basin_graph {
    basin_iteration *iteration; /* [iterations] */
    size_t iterations, iteration_capacity;
    basin_error error;
    basin_node **node; /* [nodes] */
    size_t nodes, node_capacity;
    int values;
    basin_node **bucket; /* [buckets], a power of two */
    size_t buckets;
    int region, regions;
    uint32_t streams, variables;
    bool simplify; /* builders look through their operands; only for graphs made for a plan */
    bool thin;     /* and products of vectors become pointwise operations and sums */
    void **kept;   /* [kepts] of basin_graph_keep */
    size_t kepts, kept_capacity;
};

/* Zeroed memory that is freed with the graph: for contexts of builders. NULL leaves a message. */
void *basin_graph_keep(basin_graph *graph, size_t size);

/* One result of a node to be made. */
typedef struct basin_result {
    basin_kind kind;
    basin_shape shape;
    bool absent;
} basin_result;

/* Makes a node or finds an equal one. NULL on failure (the graph knows why). */
basin_node *basin_node_new(basin_graph *graph, basin_op op, const basin_attr *attr,
                           const basin_expr *in, int ins, const basin_result *out, int outs);
/* The common case: one REAL result. */
basin_expr basin_node_single(basin_graph *graph, basin_op op, const basin_attr *attr,
                             const basin_expr *in, int ins, basin_shape shape);

/* Leaves are found again by name. */
basin_expr basin_leaf(basin_graph *graph, basin_op op, basin_kind kind, const char *name,
                      basin_shape shape);

/* A constant tensor of these numbers, copied, double or int32_t; an equal one is found. */
basin_expr basin_leaf_data(basin_graph *graph, basin_kind kind, basin_shape shape,
                           const void *number);
/* The same tensor in a graph made for a plan, while the other lives. */
basin_expr basin_leaf_again(basin_graph *graph, const basin_node *origin);

static inline basin_op basin_expr_op(basin_expr a) { return a->node->op; }
static inline bool basin_expr_is_const(basin_expr a) { return a->node->op == BASIN_OP_CONST; }

/* An expression in a message: 'x' [4, 8], or matmul('x', 'w') [4, 8] for what has no name.
 * The text is there until this thread has asked for four more. */
const char *basin_expr_text(basin_expr a);

/* The first state of an iteration at its end, where it is the value of `through`, and gradients go
 * there. `after` ends before it begins, or is NULL. */
basin_expr basin_iterated(const basin_iteration *iteration, basin_expr through, basin_expr after);

/* Any pointwise operation over its one, two or three operands. */
basin_expr basin_pointwise(basin_op op, const basin_expr *in, double value);

/* Whether it is an index tensor [2]; an error in the graph if not. */
bool basin_is_seed(basin_expr seed);

/* The factor of a multiple c * x or -x, and x itself; 1 and the operand for anything else. */
double basin_split_factor(basin_expr *a);

/* [tokens, heads, width] with an axis of a batch; NULL, and an error in the graph, if not that. */
basin_expr basin_as_batch(basin_expr a, const char *what);
/* How many pairs a list of that many queries and keys has; -1: it does not fit them. */
int64_t basin_pattern_pairs(const basin_pattern *pattern, int64_t queries, int64_t keys);
/* [..] -> [.., 1], to meet rows. */
basin_expr basin_as_column(basin_expr a);
/* Resolves a negative axis; -1 and an error in the graph if it is out of range. */
int basin_axis(basin_expr a, int axis, const char *what);
/* `axis` moved to the end, or from there to `axis`. */
basin_expr basin_axis_last(basin_expr a, int axis);
basin_expr basin_axis_back(basin_expr a, int axis);
/* The shape without `count` axes from `axis` on. */
basin_shape basin_shape_drop(basin_shape shape, int axis, int count);

/* ---- builders for the models and energies of this library ---- */

/* Scores of causal pairs, x [.., N, M, H]: query n sees keys 0 .. n, or with `strict` those before
 * n. log sum over keys seen of exp(factor x), [.., N, H], or 0; and their shares like x, 0
 * elsewhere. */
basin_expr basin_causal_logsumexp(basin_expr x, double factor, bool strict);
basin_expr basin_causal_softmax(basin_expr x, double factor, bool strict);
/* The functions whose gradients are the sparse relatives of softmax. */
basin_expr basin_sparse_conjugate(basin_expr a, basin_sparse_kind kind);
/* The elements with equal places on two axes, which vanish; theirs becomes the last axis. */
basin_expr basin_diagonal(basin_expr a, int axis, int other);

basin_expr basin_max_all(basin_expr a);
/* The sum of the squares of all elements of `count` tensors, of any shapes: a global norm. */
basin_expr basin_sum_squares(const basin_expr *a, int count);

/* Rows [n, ..] followed by `halo` more, [n + halo, ..], which the plans of other partitions of the
 * same tokens hold; the reverse sends their cotangents back, where they are added in the order of
 * the partitions. Plans with it run together (basin_plans_run). `a` itself where halo is 0. */
basin_expr basin_exchange(basin_expr a, int64_t halo);

/* ---- gradients ---- */

/* The reverse rule of an operation: given the cotangents of its results (NULL: zero), sets grad[i]
 * for each operand i with want[i]. A rule builds nodes like any formula. */
typedef void basin_rule(basin_node *node, const basin_expr *cotangent, const bool *want,
                        basin_expr *grad);
/* Defines the rule of an operation: BASIN_RULE(sum) { grad[0] = ..; } */
#define BASIN_RULE(name)                                                                           \
    void basin_rule_##name(basin_node *node, BASIN_UNUSED const basin_expr *cotangent,             \
                           BASIN_UNUSED const bool *want, BASIN_UNUSED basin_expr *grad)
#define BASIN_UNUSED __attribute__((unused))
basin_rule basin_rule_pointwise;
#define LEAF(...)
#define POINTWISE(...)
#define CALL(name, rule, ...) basin_rule basin_rule_##rule;
#include "engine/backend/ops.inc"

/* ---- The reverse sweep, as rules use it ---- */

/* Stand-ins for a node's operands, for rules that write a formula of them and differentiate it with
 * basin_partial: separate variables even where one operand is another, or is computed from it, and
 * opaque to the simplifications of builders. Absent ones stay NULL. */
void basin_stand_ins(basin_expr *stand_in, const basin_node *node);
/* The gradient of sum over i of sum(cotangent[i] y[i]) by the stand-ins x; NULL: none. */
void basin_partial(basin_expr *gradient, const basin_expr *y, const basin_expr *cotangent,
                   int results, const basin_expr *x, const bool *want, int count);
#endif
