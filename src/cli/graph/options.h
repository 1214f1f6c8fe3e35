/* What the commands of graphs share: the options of a model, opening data, a backend and
 * positions, printing scores. */
#ifndef BASIN_CLI_GRAPH_OPTIONS_H
#define BASIN_CLI_GRAPH_OPTIONS_H

#include "cli/command.h"
#include "task/graphs/graphs.h"

/* Settings of a model and its training as options; `type` has a field `s` of them. */
#define BASIN_GRAPH_OPTIONS(type)                                                                  \
    BASIN_CHOICE(type, preset, "preset", BASIN_GRAPH_PRESETS,                                      \
                 "Where the settings below start: honest, chosen on validation graphs; the "       \
                 "others are the paper's configurations."),                                        \
        BASIN_INTEGER(type, s.epochs, "epochs", "N", 0, 1 << 24,                                   \
                      "Epochs of training; 0: by the size of the set, 30 to 100."),                \
        BASIN_INTEGER(type, s.warmup, "warmup", "N", 0, 1 << 24,                                   \
                      "Epochs until the learning rate is reached."),                               \
        BASIN_INTEGER(type, s.batch, "batch", "N", 1, 1 << 20, "Graphs a step."),                  \
        BASIN_REAL(type, s.rate, "rate", "X", 0, 1e3, "Highest learning rate."),                   \
        BASIN_REAL(type, s.decay, "decay", "X", 0, 1e3, "Weight decay."),                          \
        BASIN_REAL(type, s.clip, "clip", "X", 0, 1e9, "Largest norm of the gradient; 0: any."),    \
        BASIN_REAL(type, s.smoothing, "smoothing", "X", 0, 0.99, "Label smoothing."),              \
        BASIN_SWITCH(type, s.centralise, "centralise", "Gradient centralisation."),                \
        BASIN_SWITCH(type, s.weight_classes, "weight-classes",                                     \
                     "Node classes: rare classes count more."),                                    \
        BASIN_INTEGER(type, s.vectors, "vectors", "K", 0, 1024,                                    \
                      "Positions: so many Laplacian eigenvectors."),                               \
        BASIN_INTEGER(type, s.walks, "walks", "K", 0, 1024,                                        \
                      "Positions: return probabilities of walks of 1 to K steps."),                \
        BASIN_INTEGER(type, s.edge_walks, "edge-walks", "K", 0, 1024,                              \
                      "Features of edges: walks of 2 to K + 1 steps from end to end."),            \
        BASIN_SWITCH(type, s.cls_laplacian, "cls-laplacian",                                       \
                     "Eigenvectors of the graph with its CLS node, as published."),                \
        BASIN_SWITCH(type, s.raw, "raw", "Labels as plain numbers, not one-hot."),                 \
        BASIN_SWITCH(type, s.standardise, "standardise",                                           \
                     "Attributes and targets to mean 0 and deviation 1."),                         \
        BASIN_SWITCH(type, s.edge_sums, "edge-sums", "Sums of edge features at their nodes."),     \
        BASIN_INTEGER(type, s.degrees, "degrees", "N", -1, 4096,                                   \
                      "One-hot degrees below N, or 32 where nodes have nothing else; -1: only "    \
                      "there."),                                                                   \
        BASIN_INTEGER(type, s.dim, "dim", "D", 2, 65536, "Width of a token."),                     \
        BASIN_INTEGER(type, s.heads, "heads", "H", 1, 4096, "Heads of attention."),                \
        BASIN_INTEGER(type, s.head_dim, "head-dim", "Y", 1, 65536, "Width of a head."),            \
        BASIN_INTEGER(type, s.memories, "memories", "M", 1, 1 << 24,                               \
                      "Memories of the Hopfield network."),                                        \
        BASIN_INTEGER(type, s.couplings, "couplings", "N", 0, 4096,                                \
                      "Heads of couplings between the nodes of an edge; 0: none."),                \
        BASIN_INTEGER(type, s.blocks, "blocks", "S", 1, BASIN_MAX_BLOCKS,                          \
                      "Blocks, each with weights of its own."),                                    \
        BASIN_INTEGER(type, s.steps, "steps", "T", 1, 1000, "Steps of descent in a block."),       \
        BASIN_REAL(type, s.alpha, "alpha", "X", 0, 1e3, "Size of a step."),                        \
        BASIN_REAL(type, s.noise, "noise", "X", 0, 1e3, "Noise of the descent in training."),      \
        BASIN_SWITCH(type, s.attention, "attention", "Attention in the energy."),                  \
        BASIN_SWITCH(type, s.hopfield, "hopfield", "The Hopfield network in the energy."),         \
        BASIN_SWITCH(type, s.mix, "mix", "Mixing of heads, as in the published code."),            \
        BASIN_CHOICE(type, s.adjacency, "adjacency", "conv|bilinear|edges|none",                   \
                     "The factor of an edge's scores: the paper's convolution, which depends on "  \
                     "the order of nodes; a bilinear form; edge features alone; none."),           \
        BASIN_CHOICE(type, s.readout, "readout",                                                   \
                     "auto|cls|mean|sum|cls+mean|cls+sum|cls+sized|cls+mean+sized",                \
                     "What the head reads."),                                                      \
        BASIN_INTEGER(type, s.hidden, "hidden", "N", 0, 65536,                                     \
                      "Hidden units of the head; 0: it is linear."),                               \
        BASIN_SWITCH(type, s.norm_head, "norm-head", "A layer norm before the head."),             \
        BASIN_REAL(type, s.drop, "drop", "X", 0, 0.99, "Dropout in the head."),                    \
        BASIN_SWITCH(type, s.reconstruct, "reconstruct", "Also reconstruct the edge features."),   \
        BASIN_REAL(type, s.query_deviation, "query-deviation", "X", 0, 100,                        \
                   "Deviation of first attention weights; 0: 1 / sqrt(D)."),                       \
        BASIN_REAL(type, s.memory_deviation, "memory-deviation", "X", 0, 100,                      \
                   "Deviation of first memories; 0: 1 / sqrt(D)."),                                \
        BASIN_INTEGER(type, s.outputs, "outputs", "C", 0, 1 << 20, "At least so many outputs."),   \
        BASIN_SWITCH(type, s.recompute, "recompute", "Trade time for memory.")

/* The folder of cached positions: --cache, or basin/ in the user's cache folder; NULL for "none".
 */
const char *basin_graph_cache(const char *option, char *text, size_t size);
#define BASIN_GRAPH_OPTION_CACHE(type)                                                             \
    BASIN_TEXT(type, cache, 0, "cache", "DIR",                                                     \
               "Where positions of nodes are kept between runs; none: nowhere. Without it, the "   \
               "user's cache folder.")

/* The graphs of a set: train, validation, test as it says, or all. Free *list. */
basin_status basin_graph_part(int64_t **list, int64_t *count, const basin_graphset *set,
                              const char *part, const char *path, basin_error *error);

/* A model and the graphs it is to be used on. */
typedef struct basin_graph_use {
    basin_graphset set;
    basin_positions positions;
    basin_backend *backend;
    basin_graph_session session;
    int64_t *list, count; /* the graphs */
    float *output;        /* [rows, C] */
} basin_graph_use;

/* Opens both and computes the outputs of the part. Classes of the set are renumbered to the
 * model's. With `labels` a set without is refused. */
basin_status basin_graph_use_open(basin_graph_use *use, const char *model, const char *data,
                                  const char *part, const char *cache, const char *backend,
                                  const char *products, int64_t threads, bool labels,
                                  basin_error *error);
void basin_graph_use_free(basin_graph_use *use);

/* The fields of a score for a task, with `prefix` before their names. */
void basin_graph_score_json(basin_json *json, const basin_graph_score *score,
                            basin_graph_task task);
/* "87.50 % (balanced 85.00 %)" or "MAE 0.2100". */
void basin_graph_score_text(char *text, size_t size, const basin_graph_score *score,
                            basin_graph_task task);

#endif
