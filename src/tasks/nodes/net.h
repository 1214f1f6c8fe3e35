/* The model of settings as expressions (inputs, logits, loss), its training and scoring. */
#ifndef BASIN_TASK_NODES_NET_H
#define BASIN_TASK_NODES_NET_H

#include "basin/train.h"
#include "tasks/common/shards/shards.h"
#include "tasks/nodes/network/parts/parts.h"
#include "tasks/nodes/nodes.h"

/* ---- Facts of an edge as columns, which bias the score of a pair (docs/energies.md); their totals
 * over a node's edges are features of the node. ---- */

bool basin_facts_bias(const basin_nodes_settings *settings);
bool basin_facts_are_features(const basin_nodes_settings *settings);

/* Columns: log count; sum, mean, last of numbers as signed logs; log age; shares of kinds. Nodes
 * also have extremes: max, min, deviation of numbers, the share of round ones, the age of the first
 * edge, the most in a day and in a week. */
int64_t basin_facts_width(const basin_facts *facts);
void basin_facts_columns(float *column /* [width] */, const basin_facts *facts,
                         const float *fact /* [facts] */);
/* A column of a node, as below, in the user's units. */
double basin_facts_value(const basin_network *network, int64_t column, double x);

/* Columns of all a node's edges per relation, if directed those in, then out; then the same of
 * extremes, where edges carry them and they are asked for. */
int64_t basin_node_facts_width(const basin_network *network, int relations, bool extremes);
basin_status basin_node_facts_fill(float *x /* [N, stride] */, int64_t stride,
                                   const basin_network *network, const int *relation, int relations,
                                   bool extremes, basin_error *error);

typedef struct basin_nodes_shape {
    int64_t nodes, columns;
    int64_t positions; /* nodes of the whole network, for learned positions */
    bool placed;       /* its nodes are some of them: positions by index */
    int64_t parts;     /* number of parts, of which they are one: losses are sums, whose weights
                          make up 1 over all parts; 0: they are all nodes */
    int64_t halo;      /* max nodes of others that they see */
    int relations;
    int64_t pairs[BASIN_MAX_RELATIONS]; /* capacities */
    int64_t facts;                      /* numbers of an edge that bias its score; 0: none */
    int64_t listed; /* inputs that are not 0, where the model reads a list of them; 0: all */
} basin_nodes_shape;

typedef struct basin_nodes_net {
    basin_graph *graph;
    basin_params params;
    basin_anomaly energy; /* of form energy; else its parameters are NULL */
    basin_published published;
    basin_expr features;
    basin_listed
        listed;       /* in place of `seen`, where the shape has it: `features` is [listed] then */
    basin_expr place; /* [N] the rows of learned positions; NULL: all in order, or none */
    basin_expr seen;  /* [N, columns] the features, masked */
    basin_pattern pattern[BASIN_MAX_RELATIONS];
    basin_expr facts[BASIN_MAX_RELATIONS]; /* [pairs, facts], or NULL */
    basin_expr label, weight, seed;        /* for training: [N], [N], [2]; else NULL */
    basin_expr logits, probability, loss;  /* [N], [N], []; of C classes label, logits and
                                              probability are [N, C] */
} basin_nodes_net;

bool basin_nodes_descends(const basin_nodes_settings *settings); /* as the paper has it */
/* Whether sampling auto takes samples even of a graph that fits: a step on a sample teaches as much
 * as one on the whole graph, for a small part of the work. Not of models of classes, of fixed
 * points, which depend on the whole graph, and of learned positions, one per node. */
bool basin_nodes_prefer_samples(const basin_nodes_settings *settings,
                                const basin_task_settings *task);
bool basin_nodes_on_graph(const basin_nodes_settings *settings); /* or by nodes only */
bool basin_nodes_plain(const basin_nodes_settings *settings);    /* form linear or mlp */
basin_anomaly_config basin_nodes_net_config(const basin_nodes_settings *settings,
                                            const basin_nodes_shape *shape);

basin_status basin_nodes_net_new(basin_nodes_net *net, const basin_nodes_settings *settings,
                                 const basin_nodes_shape *shape, bool training, basin_error *error);
void basin_nodes_net_free(basin_nodes_net *net);

/* What a plan over nodes is written with. Pointers may be NULL where the net has no such input. */
typedef struct basin_nodes_net_data {
    const float *table;                     /* [n, columns] */
    const int32_t *place;                   /* [n] */
    const basin_pairs *pairs;               /* [relations] */
    const struct basin_node_inputs *inputs; /* of what edges carry, */
    const basin_network *network;           /* whose edges the pairs are */
    const float *label, *weight;            /* [n], or [n, C]; [n] */
    int64_t nodes;                          /* n; the rest up to the capacity is zero */
} basin_nodes_net_data;

basin_status basin_nodes_net_write(const basin_nodes_net *net, basin_plan *plan,
                                   const basin_nodes_net_data *data, basin_error *error);

basin_status basin_nodes_net_write_seed(const basin_nodes_net *net, basin_plan *plan, uint64_t seed,
                                        basin_error *error);

/* Bytes of a plan of this shape with inputs and pair lists, by a plan of a few thousand nodes. */
basin_status basin_nodes_net_memory(size_t *bytes, const basin_nodes_settings *settings,
                                    const basin_nodes_shape *shape, bool training,
                                    basin_backend *backend, basin_error *error);

/* Those of learned positions, in training with their moments; 0 of other models. */
size_t basin_nodes_position_bytes(const basin_nodes_settings *settings,
                                  const basin_nodes_shape *shape, bool training);

/* What a plan takes beside the weights, which do not grow with the graph. */
size_t basin_plan_work_bytes(const basin_plan *plan);

basin_optimizer_config basin_nodes_net_adamw(const basin_nodes_settings *settings);

/* All nodes of a network, by the settings. */
typedef struct basin_node_inputs {
    const basin_network *network;
    const basin_nodes_settings *settings;
    basin_node_table node;          /* [N, shape.columns] scaled, with means over hops */
    float *raw;                     /* [N, own] unscaled, until the table is made */
    const basin_scaler *edge_scale; /* of what edges carry */
    basin_nodes_shape shape;        /* of the whole network */
} basin_node_inputs;

/* Everything but the table, which needs a scale. */
basin_status basin_node_inputs_open(basin_node_inputs *inputs, const basin_network *network,
                                    const basin_nodes_settings *settings, basin_error *error);
/* Fits scales on some nodes: of their columns, and of what their edges carry. */
basin_status basin_node_inputs_fit(basin_scaler *scale, basin_scaler *edge_scale,
                                   const basin_node_inputs *inputs, const int64_t *node,
                                   int64_t nodes, basin_error *error);
/* Makes the table; the raw columns are no longer there afterwards. Borrows the scale of edges. */
basin_status basin_node_inputs_scale(basin_node_inputs *inputs, const basin_scaler *scale,
                                     const basin_scaler *edge_scale, basin_error *error);
/* The same without the means over neighbours, which stay open. */
basin_status basin_node_inputs_scale_rows(basin_node_inputs *inputs, const basin_scaler *scale,
                                          const basin_scaler *edge_scale, basin_error *error);
void basin_node_inputs_close(basin_node_inputs *inputs);
/* The relations of the settings as pairs, as basin_network_pairs has them; free each. */
basin_status basin_node_inputs_pairs(basin_pairs *pairs /* [relations] */,
                                     const basin_node_inputs *inputs, const basin_network *network,
                                     int64_t room, int64_t halo, basin_error *error);
/* All nodes as a plan is written with them; `pairs` as above. */
basin_nodes_net_data basin_node_inputs_data(const basin_node_inputs *inputs,
                                            const basin_pairs *pairs);
/* The scaled columns of pairs of the inputs' relation `r`; 0 for a pair that is not an edge. */
enum { BASIN_FITTED_EDGES = 200000 }; /* enough to learn a scale from */
basin_status basin_edge_facts(float **facts /* [pairs, width]; free it */,
                              const basin_node_inputs *inputs, const basin_network *network, int r,
                              const basin_pairs *pairs, basin_error *error);
/* What every edge of relation `r` adds to scores: its scaled columns by `we`. */
basin_status basin_edge_bias(float *bias /* [edges, H] */, const basin_node_inputs *inputs, int r,
                             const float *we /* [width, H] */, int64_t heads, basin_error *error);
/* Rows of all nodes become those of a part's, by its origin; NULL stays NULL. */
basin_status basin_rows_take(float **to /* [n, width]; free it */,
                             const float *from /* [N, width] */, int64_t width,
                             const basin_network *part, basin_error *error);

/* ---- Subgraphs, and nodes with some neighbours; a draw is a function of seed and stream ---- */

typedef struct basin_nodes_batch {
    basin_network *network; /* the part; `origin` leads back */
    const basin_node_inputs *inputs;
    basin_pairs pairs[BASIN_MAX_RELATIONS];
    float *table, *label, *weight;
    int32_t *place;          /* [nodes] who they are in the network */
    basin_nodes_shape shape; /* capacities a plan for it should have */
    int64_t targets;         /* nodes that the loss counts */
} basin_nodes_batch;

typedef struct basin_nodes_source {
    const basin_node_inputs *inputs;
    const float *label, *weight; /* [N], of classes [N, C]; [N], 0: not a training node */
    const int64_t *train;        /* [train_count] */
    int64_t train_count;
    int64_t shard, shards; /* which of its shards is drawn of a batch of neighbours; 0 of 0: all */
} basin_nodes_source;

/* How many batches an epoch has: subgraphs one, neighbours `fraction` of the training nodes. */
int64_t basin_nodes_batch_count(const basin_nodes_source *source);
/* How many nodes they take: those whose loss counts where neighbours are sampled, else all. */
int64_t basin_nodes_batch_nodes(const basin_nodes_source *source);
/* Batch `number` of an epoch; one without targets, which a shard may be, has no network. */
basin_status basin_nodes_batch_draw(basin_nodes_batch *batch, const basin_nodes_source *source,
                                    uint64_t seed, int64_t epoch, int64_t number,
                                    basin_error *error);
/* A given part of the network, which becomes the batch's; its `origin` leads to the inputs. */
basin_status basin_nodes_batch_take(basin_nodes_batch *batch, const basin_nodes_source *source,
                                    basin_network *part, basin_error *error);
basin_nodes_net_data basin_nodes_batch_data(const basin_nodes_batch *batch);
void basin_nodes_batch_free(basin_nodes_batch *batch);

/* ---- Inputs of each part of this rank, padded to one shape across all parts and ranks; training
 * on parts, and scoring. What is computed depends only on the number of parts. ---- */

typedef struct basin_parted_inputs {
    basin_parts *parts;       /* NULL: the graph is whole, its own only part */
    int64_t count;            /* parts of this rank */
    basin_node_inputs *part;  /* [count] */
    basin_node_inputs *whole; /* sizes of the whole graph; for parts, it has no edges */
    basin_nodes_shape shape;  /* of the plans of parts */
} basin_parted_inputs;

/* As basin_node_inputs_open, _fit and _scale; the first refuses what parts cannot have. */
basin_status basin_parted_inputs_open(basin_parted_inputs *inputs, const basin_network *network,
                                      basin_parts *parts, const basin_nodes_settings *settings,
                                      basin_error *error);
basin_status basin_parted_inputs_fit(basin_scaler *scale, basin_scaler *edge_scale,
                                     const basin_parted_inputs *inputs,
                                     const int64_t *node /* [nodes] of the whole, ascending */,
                                     int64_t nodes, basin_error *error);
basin_status basin_parted_inputs_scale(basin_parted_inputs *inputs, const basin_scaler *scale,
                                       const basin_scaler *edge_scale, basin_error *error);
void basin_parted_inputs_close(basin_parted_inputs *inputs);
size_t basin_parted_inputs_bytes(const basin_parted_inputs *inputs);
/* A part's inputs into a plan. label, weight [N] of all nodes; with classes label [N, C]; or NULL.
 */
basin_status basin_parted_inputs_write(const basin_parted_inputs *inputs, int64_t part,
                                       const basin_nodes_net *net, basin_plan *plan,
                                       const float *label, const float *weight, basin_error *error);

/* A plan per part for its gradients, and one for the update by their sum in the parts' order. */
typedef struct basin_parted_trainer basin_parted_trainer;
basin_status basin_parted_trainer_new(basin_parted_trainer **trainer,
                                      const basin_parted_inputs *inputs, const basin_nodes_net *net,
                                      basin_store *store, const basin_trainer_spec *spec,
                                      const float *label, const float *weight, basin_error *error);
void basin_parted_trainer_free(basin_parted_trainer *trainer);
/* One step, number `step` from 0; the loss over all parts. */
basin_status basin_parted_trainer_step(basin_parted_trainer *trainer, double *loss, int64_t step,
                                       uint64_t seed, basin_error *error);
/* Its plans' memory goes back to the system until the next step: another's need it meanwhile. */
void basin_parted_trainer_release(basin_parted_trainer *trainer);
size_t basin_parted_trainer_bytes(const basin_parted_trainer *trainer);

/* ---- Scoring all nodes: a plan of the whole graph or of each part, else streams ---- */

/* Called in every step with the activations of all nodes [N + halo, width] (moment 0, 2, ..), then
 * with the log-sum-exps of their attention (1, 3, ..): to keep them, or to fill those of others. */
typedef struct basin_nodes_tap {
    void (*rows)(void *context, int moment, float *rows, int64_t width);
    void *context;
} basin_nodes_tap;

typedef struct basin_nodes_scorer basin_nodes_scorer;
/* `memory`: bytes for a plan of a whole graph; parts go by work->memory, all ranks together. */
basin_status basin_nodes_scorer_new(basin_nodes_scorer **scorer, const basin_parted_inputs *inputs,
                                    size_t memory, const basin_nodes_resources *work,
                                    basin_error *error);
bool basin_nodes_scorer_streams(const basin_nodes_scorer *scorer);
/* What streams take while they run; 0 of plans. */
size_t basin_nodes_scorer_bytes(const basin_nodes_scorer *scorer);
void basin_nodes_scorer_free(basin_nodes_scorer *scorer);
/* `weights` has every parameter under `prefix` + name. With classes, probabilities are [N, C]. */
basin_status basin_nodes_scorer_run(basin_nodes_scorer *scorer, double *probability /* [N] */,
                                    basin_store *weights, const char *prefix, basin_error *error);
/* For one that streams a whole graph: rows of every step of every member. */
void basin_nodes_scorer_tap(basin_nodes_scorer *scorer, const basin_nodes_tap *tap);
/* The mean of all members' probabilities, or of their logits. */
basin_status basin_nodes_scorer_mean(basin_nodes_scorer *scorer, double *mean /* [N] */,
                                     bool logits, const basin_nodes_model *model,
                                     basin_error *error);

typedef struct basin_nodes_stream basin_nodes_stream;
/* `part` is NULL where the inputs are of a whole graph. To be freed even after an error. */
basin_status basin_nodes_stream_new(basin_nodes_stream **stream, const basin_node_inputs *inputs,
                                    const basin_part *part, basin_store *store,
                                    const basin_nodes_resources *work, basin_error *error);
void basin_nodes_stream_free(basin_nodes_stream *stream);
size_t basin_nodes_stream_bytes(const basin_nodes_stream *stream);
const basin_params *basin_nodes_stream_params(const basin_nodes_stream *stream);
/* The streams of this rank's parts take their steps together; `parts` NULL: there is one. */
basin_status basin_nodes_streams_run(basin_nodes_stream *const *stream, int64_t count,
                                     basin_parts *parts, double *const *probability,
                                     basin_error *error);

/* Neighbours: by query, and by key (the same where every edge goes both ways). */
typedef struct basin_nodes_lists {
    const int64_t *row, *column;
    const int32_t *key, *query;
    const int64_t *entry; /* of each by key: which edge it is; NULL: facts there are the same */
} basin_nodes_lists;
/* For inputs without relations: what the next run goes along; a tap fills the other rows. */
void basin_nodes_stream_give(basin_nodes_stream *stream, const basin_nodes_lists *list,
                             int64_t halo);
void basin_nodes_stream_tap(basin_nodes_stream *stream, const basin_nodes_tap *tap);

/* A copy of a network as a model sees it: in the order of ids, and where edges have a direction and
 * the settings say so both ways; NULL: it is already. */
basin_status basin_nodes_view(basin_network **copy, const basin_nodes_settings *settings,
                              const basin_network *network, basin_error *error);

/* ---- training with settings that leave nothing open but the sampling (fit.c) ---- */

typedef struct basin_nodes_job {
    const basin_task_settings *task;
    const basin_network *network;
    const uint8_t *part; /* [N] */
    const basin_nodes_settings *settings;
    bool minimal;                     /* see basin_nodes_resources */
    bool probe;                       /* only the outcome is needed: no threshold, no scores */
    const basin_nodes_record *record; /* for the model's file; or NULL */
} basin_nodes_job;

/* Trains in an opened run. The model is also there after an interrupt. */
basin_status basin_nodes_fit(basin_nodes_model **model, basin_training_result *outcome,
                             basin_run *run, const basin_nodes_job *job, basin_error *error);

/* The same in a separate run, which writes and reports nothing. */
basin_status basin_nodes_fit_quietly(basin_nodes_model **model, basin_training_result *outcome,
                                     const basin_nodes_job *job, const basin_nodes_resources *work,
                                     basin_error *error);

/* Sampling and batch where they are open, by a checkpoint whose other settings must match. */
basin_status basin_nodes_resume(basin_nodes_settings *settings, const basin_task_settings *task,
                                const basin_run *run, basin_error *error);

/* ---- what fit.c and classes.c share ---- */

typedef struct basin_nodes_fitting {
    const basin_network *network;
    const uint8_t *part;
    basin_run *run;
    basin_nodes_settings settings; /* sampling decided */
    basin_nodes_resources work;
    basin_nodes_model *model;
    basin_parted_inputs inputs;
    basin_store *store;
    basin_nodes_net net;
    basin_trainer *trainer;
    basin_shards shards;         /* of batches that are sampled */
    basin_parted_trainer *joint; /* of a graph in parts, in place of the trainer */
    basin_nodes_shape planned;   /* what the trainer's plan is made for */
    bool probe;                  /* see the job */
    const basin_nodes_record *record;
    uint64_t data;  /* a digest of it, for checkpoints */
    bool shrink;    /* sampling was left open: batches are halved until they fit */
    size_t bytes;   /* that training takes */
    int64_t member; /* that is trained */
    basin_nodes_scorer *scorer;
    int64_t *train; /* [train_count] nodes */
    int64_t train_count, validation_count;
    float *label, *weight; /* [N], of classes [N, C]; [N] */
    int32_t *class_of;     /* [N] the node's class, -1: none that is trained on; NULL: a detector */
    double *probability;   /* [N], of classes [N, C] */
    double *tree_logit;    /* [BASIN_TREE_VIEWS, N] of the ensemble's trees; NULL: none */
} basin_nodes_fitting;

/* ---- Several classes of nodes: names, inputs, figures; detectors have none ---- */

/* Whether a task tells classes apart; else it is the detector's. */
bool basin_classes_several(const basin_task_settings *task);

/* The training nodes' classes, by order of labels, become the model's; every node's class. */
basin_status basin_classes_take(basin_nodes_fitting *fit, basin_error *error);
/* Fills labels and weights: a node counts by the setting `balance`. */
void basin_classes_weigh(basin_nodes_fitting *fit);
/* What a rarer class weighs: the ratio, its root, or 1. */
double basin_weight_of(const char *balance, double ratio);
basin_status basin_classes_store(basin_bundle *bundle, const basin_nodes_model *model,
                                 basin_error *error);
basin_status basin_classes_load(basin_nodes_model *model, const basin_bundle *bundle,
                                basin_error *error);

/* ---- explanations: explain.c opens and finishes them and adds Shapley values of trees;
 * explain_network.c adds integrated gradients, energies and attention. A detector's logit is
 * weight[TREES] z_trees + weight[NETWORK] z_network + shift. Each is explained by its distance from
 * a typical node, of medians, with neighbours that are the same, in this node's place. ---- */

typedef struct basin_explainer {
    const basin_nodes_model *model;
    const basin_network *network;
    const basin_nodes_ensemble *ensemble; /* the model's; `plain` where it has no trees */
    basin_nodes_ensemble plain;
    double weight[2], shift; /* by BASIN_NODES_TREES, _NETWORK */
    basin_nodes_resources work;
    basin_node_inputs inputs; /* of the network; not opened where it has no weight */
    basin_tree_table table;   /* columns in the user's units */
    float *column_typical;    /* [table.columns] */
    float *input_typical;     /* [inputs.shape.columns] */
    float *edge_typical;      /* [inputs.shape.facts] scaled; or NULL */
    /* Relations that make neighbours, and where edges have a direction the same reversed. */
    int relations;
    const basin_relation *relation[2 * BASIN_TREE_RELATIONS];
    basin_relation back[2 * BASIN_TREE_RELATIONS];
    /* Slots of a hop: features, then degree and facts of each relation, known labels. */
    int64_t features, facts, slots, hops; /* facts: columns of a node's edges in one relation */
    float *total, *total_typical; /* [N, relations, facts] where the table has none; or NULL */
    int64_t count;
    /* [count] Until finished: features by hop and slot, neighbours by number, logit in `rest`. */
    basin_nodes_explanation **of;
    /* For a part: the whole's typical values (borrowed), and who gives rows; NULL: a whole one. */
    const struct basin_explainer *whole;
    void (*give_rows)(struct basin_explainer *x, void *context);
    void *context;
} basin_explainer;

/* Medians of what is open, for `whole`; free them with basin_explainer_forget. */
basin_status basin_explainer_typical(basin_explainer *x, basin_error *error);
void basin_explainer_forget(basin_explainer *x);
/* basin_nodes_explain with an explainer that has model, network, count, of, and what is above. */
basin_status basin_explainer_run(basin_explainer *x, const int64_t *node,
                                 const basin_nodes_explain_options *options, basin_error *error);

static inline int64_t basin_explainer_fact_slot(const basin_explainer *x, int relation,
                                                int64_t fact) {
    return x->features + x->network->relations + relation * x->facts + fact;
}
/* The slot of a column of a node's own; `relation`: those that its degrees and facts are of. */
int64_t basin_explainer_slot(const basin_explainer *x, int64_t column, const int *relation,
                             int degrees);
/* The neighbours of a node in ascending order, each once, itself left out; free them. */
basin_status basin_explainer_list(int64_t **neighbour, int64_t *count, const basin_explainer *x,
                                  int64_t node, basin_error *error);
/* Adds to a feature; hops beyond the last count as the last. */
void basin_explainer_add(basin_nodes_explanation *e, const basin_explainer *x, int64_t slot,
                         int64_t hop, double moves);
/* Adds what comes through a neighbour; through another node: the node's own. */
void basin_explainer_push(basin_nodes_explanation *e, int64_t neighbour, double moves);
/* What a node two hops away adds comes through those between, in equal parts. */
basin_status basin_explainer_push_between(basin_nodes_explanation *e, const basin_explainer *x,
                                          int64_t node, double moves, basin_error *error);

basin_status basin_explain_network(basin_explainer *x, basin_error *error);
/* Energies and attention of all nodes, on the whole graph. */
basin_status basin_explain_look(basin_explainer *x, basin_error *error);

#endif
