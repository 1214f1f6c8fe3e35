/* Scoring a graph that does not fit as one plan: step by step, in blocks of nodes. */
#ifndef BASIN_TASK_NODES_STREAM_H
#define BASIN_TASK_NODES_STREAM_H

#include "task/nodes/inputs.h"
#include "task/nodes/nodes.h"

typedef struct basin_nodes_stream basin_nodes_stream;
/* `halo` nodes of other parts are seen where the inputs are a part's, else 0. */
basin_status basin_nodes_stream_new(basin_nodes_stream **stream, const basin_node_inputs *inputs,
                                    int64_t halo, basin_store *store,
                                    const basin_nodes_resources *work, basin_error *error);
void basin_nodes_stream_free(basin_nodes_stream *stream);
/* What it takes while it runs, beside the inputs. */
size_t basin_nodes_stream_bytes(const basin_nodes_stream *stream);
const basin_params *basin_nodes_stream_params(const basin_nodes_stream *stream);
basin_status basin_nodes_stream_run(basin_nodes_stream *stream, double *probability /* [N] */,
                                    int64_t member, basin_error *error);

/* ---- the same in pieces, for parts that run together ---- */

/* A step of descent: activations; nodes as queries, which leaves their log-sum-exps; nodes as keys,
 * and the memories. Between these the rows of halos are exchanged. */
typedef enum basin_stream_phase {
    BASIN_STREAM_NORM,
    BASIN_STREAM_QUERY,
    BASIN_STREAM_KEY,
    BASIN_STREAM_PHASES
} basin_stream_phase;

basin_status basin_nodes_stream_begin(basin_nodes_stream *stream, int64_t member,
                                      basin_error *error);
basin_status basin_nodes_stream_phase(basin_nodes_stream *stream, basin_stream_phase phase,
                                      int block, int relation, basin_error *error);
/* Probabilities, or NULL where something failed; frees what it took. */
basin_status basin_nodes_stream_end(basin_nodes_stream *stream, double *probability,
                                    basin_error *error);
/* What halos want after a phase: activations, log-sum-exps; in place of the last, weights of nodes,
 * once after the beginning, where there are any. */
basin_exchange_rows basin_nodes_stream_rows(basin_nodes_stream *stream, basin_stream_phase phase,
                                            int relation);
void basin_nodes_stream_show(const basin_nodes_stream *stream, int done);

/* ---- The expressions and plans of a stream: what is done to a block of nodes at a time. Internal
 * to anomaly_stream*.c. */

typedef struct basin_nodes_stream_plans {
    basin_graph *graph;
    basin_params params;
    basin_anomaly model;
    int64_t rows;   /* B, nodes of a block */
    int64_t stride; /* D rounded up, as attention along lists wants rows */
    /* inputs */
    basin_expr features, eigenvectors; /* [B, columns]; [B, k] or NULL */
    basin_expr place;                  /* index [B] of learned positions, or NULL */
    basin_expr mask;                   /* [columns], or NULL */
    basin_expr x, g;                   /* [B, D], [B, stride] */
    basin_expr stack, sum;             /* [stride, H stride], [B, H stride] */
    basin_expr last[BASIN_ANOMALY_RELATIONS];
    /* outputs and their plans */
    basin_expr tokens, own, back;              /* [B, D] [B, H stride] [B, stride] */
    basin_expr read;                           /* [B] probabilities, or logits [B, C] of classes */
    basin_expr normed[BASIN_ANOMALY_BLOCKS];   /* [B, stride] */
    basin_expr recalled[BASIN_ANOMALY_BLOCKS]; /* [B, D] */
    basin_plan *embed, *project, *pull, *head;
    basin_plan *norm[BASIN_ANOMALY_BLOCKS], *recall[BASIN_ANOMALY_BLOCKS];
} basin_nodes_stream_plans;

basin_status basin_nodes_stream_plans_new(basin_nodes_stream_plans *plans,
                                          const basin_node_inputs *inputs, int64_t rows,
                                          basin_store *store, basin_error *error);
void basin_nodes_stream_plans_free(basin_nodes_stream_plans *plans);
size_t basin_nodes_stream_plans_bytes(const basin_nodes_stream_plans *plans);

/* A parameter as floats. */
basin_status basin_nodes_stream_read(basin_tensor *to, basin_store *store, basin_expr state,
                                     basin_error *error);
/* M = Wk' Wq of all heads of a block side by side, [stride, H stride]: `ask` has M' of each head,
 * `answer` M. beta [H]. */
basin_status basin_nodes_stream_stack(float *ask, float *answer, float *beta,
                                      const basin_nodes_stream_plans *plans,
                                      const basin_block *block, basin_store *store,
                                      basin_error *error);

/* ---- The end of a stream of classes: logits of all nodes smoothed over the graph, then
 * probabilities.
 */

/* Who is next to whom, by query and by key: the same lists where every edge goes both ways. */
typedef struct basin_stream_graph {
    const int64_t *row, *column; /* [N + 1] */
    const int32_t *key, *query;
    int64_t nodes;
} basin_stream_graph;

/* Logits [N, C] become probabilities, in place, as the settings have smoothing. */
basin_status basin_stream_settle(double *value, const basin_stream_graph *graph,
                                 const basin_nodes_settings *settings, basin_error *error);

#endif
