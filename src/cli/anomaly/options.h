/* Options that the anomaly commands share: the recipe, the data, the work. */
#ifndef BASIN_CLI_ANOMALY_OPTIONS_H
#define BASIN_CLI_ANOMALY_OPTIONS_H

#include "cli/command.h"
#include "cli/watch.h"
#include "task/anomaly/anomaly.h"

#define BASIN_OR_ALONE(name, others) "|" name
#define BASIN_OR_OTHERS(name, others) "|" others

/* A recipe's options; `type` has a member `recipe` and `preset`. */
#define BASIN_RECIPE_OPTIONS(type)                                                                 \
    BASIN_CHOICE(type, preset, "preset",                                                           \
                 "default|paper|amazon|amazon-1|yelp|yelp-1|tfinance|tfinance-1|tsocial|"          \
                 "tsocial-1",                                                                      \
                 "default: made for all graphs; the others are the paper's model with a row of "   \
                 "its table (-1: the rows of 1 %). Other options override it."),                   \
        BASIN_CHOICE(type, recipe.scaling, "scaling",                                              \
                     "auto|none" BASIN_ANOMALY_SCALINGS(BASIN_OR_ALONE)                            \
                         BASIN_ANOMALY_SCALINGS(BASIN_OR_OTHERS),                                  \
                     "Scaling of features, fitted on the training nodes; joined ones are seen by " \
                     "members in turn; auto: those that do well on validation."),                  \
        BASIN_INTEGER(type, recipe.hops, "hops", "N", -1, 8,                                       \
                      "Means of the features over N hops stand beside them; -1: 0 or 2, "          \
                      "whichever validation prefers."),                                            \
        BASIN_SWITCH(type, recipe.degree, "degree",                                                \
                     "The logarithm of the number of neighbours stands beside the features."),     \
        BASIN_CHOICE(type, recipe.relations, "relations", "one|max|concat",                        \
                     "one: the graph as a whole; max, concat: each relation by itself, results "   \
                     "merged so."),                                                                \
        BASIN_CHOICE(type, recipe.self_loops, "self-loops", "keep|drop|add",                       \
                     "Whether nodes are neighbours of themselves."),                               \
        BASIN_CHOICE(type, recipe.form, "form", "energy|published|linear|mlp",                     \
                     "energy: descent as the paper has it; published: as its code does; linear, "  \
                     "mlp: without descent."),                                                     \
        BASIN_INTEGER(type, recipe.dim, "dim", "D", 1, 65536, "Dimension of tokens."),             \
        BASIN_INTEGER(type, recipe.heads, "heads", "H", 1, 1024, "Heads."),                        \
        BASIN_INTEGER(type, recipe.head_dim, "head-dim", "Y", 1, 65536,                            \
                      "Dimension of queries and keys."),                                           \
        BASIN_INTEGER(type, recipe.memories, "memories", "K", 1, 1 << 24,                          \
                      "Memories of the Hopfield network."),                                        \
        BASIN_INTEGER(type, recipe.blocks, "blocks", "N", 1, BASIN_ANOMALY_BLOCKS,                 \
                      "Blocks, one after the other."),                                             \
        BASIN_INTEGER(type, recipe.steps, "steps", "T", 1, 256,                                    \
                      "Steps of descent in each block."),                                          \
        BASIN_REAL(type, recipe.alpha, "alpha", "X", 0, 1e6, "Size of a step."),                   \
        BASIN_CHOICE(type, recipe.position, "position", "none|learned|laplacian",                  \
                     "Positions of nodes. With learned ones only the nodes of the training graph " \
                     "can be scored."),                                                            \
        BASIN_INTEGER(type, recipe.eigenvectors, "eigenvectors", "N", 1, 1024,                     \
                      "Eigenvectors of laplacian positions."),                                     \
        BASIN_INTEGER(type, recipe.embedding, "embedding", "N", 0, 65536,                          \
                      "Units of a hidden layer before the embedding; 0: none."),                   \
        BASIN_INTEGER(type, recipe.hidden, "hidden", "N", 0, 65536,                                \
                      "Units of the hidden layer of the head; 0: none."),                          \
        BASIN_SWITCH(type, recipe.attention, "attention", "The attention energy."),                \
        BASIN_SWITCH(type, recipe.hopfield, "hopfield", "The Hopfield energy."),                   \
        BASIN_SWITCH(type, recipe.concat, "concat", "First activations beside the last."),         \
        BASIN_SWITCH(type, recipe.learn_beta, "learn-beta", "Train the inverse temperature."),     \
        BASIN_REAL(type, recipe.degree_power, "degree-power", "X", 0, 4,                           \
                   "A node's attention energy weighs its degree to this power."),                  \
        BASIN_REAL(type, recipe.query_init, "query-init", "X", 0, 10,                              \
                   "Deviation of the first query and key weights."),                               \
        BASIN_REAL(type, recipe.dropout, "dropout", "X", 0, 0.99, "Dropout in training."),         \
        BASIN_INTEGER(type, recipe.epochs, "epochs", "N", 1, 1e9, "Epochs at most."),              \
        BASIN_INTEGER(type, recipe.patience, "patience", "N", 0, 1e9,                              \
                      "Stop when validation has not improved for so many epochs; 0: never."),      \
        BASIN_INTEGER(type, recipe.evaluate, "evaluate", "N", 1, 1e9,                              \
                      "Epochs between looks at validation."),                                      \
        BASIN_INTEGER(type, recipe.warmup, "warmup", "N", 0, 1e9,                                  \
                      "Epochs of warm-up, before a cosine; 0: a constant rate."),                  \
        BASIN_REAL(type, recipe.rate, "rate", "X", 0, 10, "Learning rate."),                       \
        BASIN_REAL(type, recipe.decay, "decay", "X", 0, 10, "Weight decay."),                      \
        BASIN_REAL(type, recipe.clip, "clip", "X", 0, 1e9,                                         \
                   "Largest norm of the gradient; 0: any."),                                       \
        BASIN_REAL(type, recipe.average, "average", "X", 0, 0.99999,                               \
                   "Averaging of weights over steps; 0: none."),                                   \
        BASIN_CHOICE(type, recipe.select, "select", "macro_f1|auroc|auprc",                        \
                     "What on validation chooses the epoch."),                                     \
        BASIN_CHOICE(type, recipe.threshold, "threshold", "all|grid|smooth",                       \
                     "Thresholds that validation may choose: all, 0.05 to 0.95, or all, each "     \
                     "judged together with those around it."),                                     \
        BASIN_CHOICE(type, recipe.balance, "balance", "full|root|none",                            \
                     "Weight of anomalies in the loss: the classes' ratio, its root, or 1."),      \
        BASIN_CHOICE(type, recipe.sampling, "sampling", "auto|full|subgraph|neighbours",           \
                     "What an epoch runs over; auto: the full graph where it fits, else "          \
                     "neighbours."),                                                               \
        BASIN_REAL(type, recipe.fraction, "fraction", "X", 1e-6, 1,                                \
                   "The part of the nodes that a sampled epoch takes."),                           \
        BASIN_INTEGER(type, recipe.batch, "batch", "N", 1, 1e9,                                    \
                      "Nodes in a batch of neighbour sampling."),                                  \
        BASIN_INTEGER(type, recipe.fanout, "fanout", "N", 1, 1e6,                                  \
                      "Neighbours of a node that it takes."),                                      \
        BASIN_INTEGER(type, recipe.members, "members", "N", 0, 64,                                 \
                      "Detectors trained from different seeds and averaged; 0: 6 up to 2 million " \
                      "edges, 3 up to 20 million, else 1."),                                       \
        BASIN_INTEGER(type, recipe.seed, "seed", "N", 0, 9007199254740992.0,                       \
                      "Seed of all random numbers.")

/* How the files are read; `type` has `data`. */
typedef struct basin_data_options {
    bool directed;
    const char *id, *label, *source, *target, *edge_type, *drop;
    const char *missing;
    int64_t unlabelled_first;
} basin_data_options;

#define BASIN_DATA_OPTIONS(type)                                                                   \
    BASIN_FLAG(type, data.directed, 0, "directed", "Edges as they stand; else both ways."),        \
        BASIN_TEXT(type, data.id, 0, "id", "COLUMN", "CSV: the column of node ids."),              \
        BASIN_TEXT(type, data.label, 0, "label", "COLUMN", "CSV: the column of labels."),          \
        BASIN_TEXT(type, data.source, 0, "source", "COLUMN", "CSV: where edges begin."),           \
        BASIN_TEXT(type, data.target, 0, "target", "COLUMN", "CSV: where edges end."),             \
        BASIN_TEXT(type, data.edge_type, 0, "edge-type", "COLUMN", "CSV: relations of edges."),    \
        BASIN_TEXT(type, data.drop, 0, "drop", "COLUMNS",                                          \
                   "CSV: columns to leave out, by commas."),                                       \
        BASIN_CHOICE(type, data.missing, "missing", "error|zero|mean",                             \
                     "Features that are empty, NaN or infinite."),                                 \
        BASIN_INTEGER(type, data.unlabelled_first, "unlabelled-first", "N", 0, 9e15,               \
                      "The first N nodes have no label that counts (Amazon: 3305).")

#define BASIN_WORK_OPTIONS(type)                                                                   \
    BASIN_REAL(type, memory, "memory", "GIB", 0, 1e6,                                              \
               "Memory to stay within; 0: three quarters of what is free."),                       \
        BASIN_OPTION_BACKEND(type), BASIN_OPTION_THREADS(type), BASIN_OPTION_QUIET(type)

/* Opens the files as a network with the union of its relations. */
basin_status basin_anomaly_open(basin_network **network, char **path, int paths,
                                const basin_data_options *options, basin_error *error);

#endif
