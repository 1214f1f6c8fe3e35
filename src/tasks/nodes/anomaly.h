/* The model of nodes as expressions (section 4 of the paper): parameters, logits, the loss. It is
 * declared on a graph for one shape of data; another declaration with other sizes shares its
 * parameters through the store. */
#ifndef BASIN_TASK_NODES_ANOMALY_H
#define BASIN_TASK_NODES_ANOMALY_H

#include "tasks/common/layers.h"

enum { BASIN_MAX_ANOMALY_BLOCKS = 8, BASIN_MAX_RELATIONS = 8 };

typedef enum basin_position {
    BASIN_POSITION_NONE,
    BASIN_POSITION_LEARNED, /* a vector per node: only nodes seen in training can be scored */
} basin_position;

/* How the results of several relations become one (appendix on heterogeneous graphs). */
typedef enum basin_merge { BASIN_MERGE_MAX, BASIN_MERGE_CONCAT } basin_merge;

/* All zero beyond `hidden` is the paper's model. */
typedef struct basin_anomaly_config {
    int64_t nodes, features; /* nodes: of learned positions, the table's rows */
    basin_block_config block;
    int64_t facts; /* A: numbers of a pair that bias its score; 0: none */
    basin_descent_spec descent;
    basin_position position;
    int64_t hidden;     /* units of the head's hidden layer; 0: a linear head */
    int blocks;         /* one after the other, each with its own weights; 0 means 1 */
    int relations;      /* 0 means 1; the block runs on each with the same weights */
    basin_merge merge;  /* of the relations' results */
    bool no_concat;     /* ablation: only g(T), without g(1) */
    double dropout;     /* of the embedding, between blocks and in the head, in training */
    const char *prefix; /* of the parameters' names; NULL: none */
    int64_t outputs;    /* C, logits a node; 0 or 1: one */
} basin_anomaly_config;

typedef struct basin_anomaly {
    basin_anomaly_config config;
    basin_block block;                               /* the first */
    basin_block later[BASIN_MAX_ANOMALY_BLOCKS - 1]; /* [blocks - 1] */
    basin_expr emb_w, emb_b, pos;                    /* [F or U, D] [D] [N, D] */
    basin_expr hidden_w, hidden_b, head_w, head_b;   /* [W, U] [U] [W or U] []; W = 2D mostly; of C
                                                        outputs head_w [W or U, C] and head_b [C] */
} basin_anomaly;

/* Rows of features as a list of those that are not 0, where most are: pair (n, f) has value[pair].
 * A product with it costs as much as the list is long. */
typedef struct basin_listed {
    basin_pattern pattern; /* queries are the nodes, keys the features */
    basin_expr value;      /* [pairs] */
} basin_listed;

/* What the logits are computed from. */
typedef struct basin_anomaly_inputs {
    basin_expr features;             /* [N, F] */
    const basin_pattern *neighbours; /* [relations] */
    const basin_expr *facts;         /* [relations] of [pairs, A], where `facts` is A; or NULL */
    basin_expr place; /* index [N], learned positions of sampled nodes: the row that each has in
                         the table, -1 for none; NULL: N is all nodes, in order */
    basin_expr seed;  /* index [2]: dropout takes place; NULL: none */
    const basin_listed *listed; /* in place of `features`, or NULL */
} basin_anomaly_inputs;

basin_status basin_anomaly_declare(basin_anomaly *model, basin_params *params,
                                   const basin_anomaly_config *config);
/* Logits [N], or [N, C]. */
basin_expr basin_anomaly_logits(const basin_anomaly *model, const basin_anomaly_inputs *inputs);

/* Cross entropy, weighted: sum(weight * ce) / sum(weight), weight [N]. Logits [N] against labels 0
 * and 1; or logits [N, C] against distributions over C classes. */
basin_expr basin_weighted_cross_entropy(basin_expr logits, basin_expr label, basin_expr weight);

/* ---- smoothing ---- */

/* Numbers of nodes that should agree with those of their neighbours: the descent of
 *
 *     E(z) = anchor / 2 |z - h|^2 + (1 - anchor) / 2 z . (z - S z)
 *
 * from z = h [N, C], where S = D^-1/2 (A + I) D^-1/2 over the pairs, each node a neighbour of
 * itself (`loops`: the pairs have these already). A step of size 1 is z <- anchor h + (1 - anchor)
 * S z, personalised PageRank of h where edges go both ways; others count half each way. */
typedef struct basin_smoothing {
    int steps;
    double anchor; /* from 0 to 1 */
    bool loops;
} basin_smoothing;
basin_expr basin_smooth(basin_expr h, const basin_pattern *pattern, const basin_smoothing *how);

/* Its parts, for those who stream over nodes: tokens x [n, D] of features [n, F], or of a list of
 * them, where `place` is that of the inputs above; logits of the first tokens and each relation's
 * last ones. */
basin_expr basin_anomaly_embed(const basin_anomaly *model, basin_expr features,
                               const basin_listed *listed, basin_expr place);
basin_expr basin_anomaly_head(const basin_anomaly *model, basin_expr first,
                              const basin_expr *last /* [relations] */, basin_expr seed);
const basin_block *basin_anomaly_block(const basin_anomaly *model, int number);

/* The published code's form, which differs from the paper: see anomaly.c. Parameters besides
 * `config`'s sizes: steps T, heads, memories, dropout. */
typedef struct basin_published {
    basin_anomaly_config config;
    struct {
        basin_expr wk, wq, xi, temperature; /* [H, Y, D] twice, [D, M], [] */
    } block[2];                             /* all steps but the last; the last */
    basin_expr emb_w, emb_b, gain, bias;    /* [F, D] [D] [D] [D] */
    basin_expr head_w, head_b;              /* [2D or D] [], of C outputs [2D or D, C] [C] */
} basin_published;
basin_status basin_published_declare(basin_published *model, basin_params *params,
                                     const basin_anomaly_config *config);
basin_expr basin_published_logits(const basin_published *model, const basin_anomaly_inputs *inputs);
/* softplus(z) - label z = -log p(label) of one logit per node, and of several log-sum-exp(z) - sum
 * over classes of label z. */
basin_expr basin_model_surprise(basin_expr logits, basin_expr label);

#endif
