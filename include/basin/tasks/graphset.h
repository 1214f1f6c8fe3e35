/* Sets of many small graphs: what graph classification, node classification and graph regression
 * learn from.
 *
 * A set is packed: all nodes in a row, all edges in a row, and where each graph's begin. Node and
 * edge labels stay the numbers of the file; an encoding (below) turns them into features when a
 * batch is made, so a set of 300,000 nodes with 89 kinds takes 1 MB for them and not 100.
 *
 *     basin_graphset set;
 *     if (basin_graphset_read(&set, "MUTAG.zip", &error) != BASIN_OK) ...
 *     printf("%lld graphs, %lld nodes\n", (long long)set.graphs, (long long)set.nodes);
 *     basin_graphset_free(&set); */
#ifndef BASIN_TASKS_GRAPHSET_H
#define BASIN_TASKS_GRAPHSET_H

#include <stdbool.h>
#include <stdint.h>

#include "basin/io.h"
#include "basin/pairs.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum basin_graphs_target {
    BASIN_GRAPHS_CLASSES, /* a class a graph */
    BASIN_NODE_CLASSES,   /* a class a node */
    BASIN_GRAPHS_VALUES,  /* numbers a graph */
} basin_graphs_target;

BASIN_API const char *basin_graphs_target_name(basin_graphs_target task);

enum { BASIN_GRAPHSET_NAME = 64 };

typedef struct basin_graphset {
    char name[BASIN_GRAPHSET_NAME];
    basin_graphs_target task;
    int64_t graphs, nodes, edges; /* edges are directed: an undirected one is there both ways */
    int64_t *node_start;          /* [graphs + 1] */
    int64_t *edge_start;          /* [graphs + 1] */
    int32_t *edge;                /* [edges, 2] from, to: numbers within the graph, ascending,
                                     without self loops, each once */
    int64_t node_attributes, node_labels, edge_attributes, edge_labels; /* columns */
    float *node_attribute;                                              /* [nodes, columns] */
    int32_t *node_label;                                                /* [nodes, columns] */
    float *edge_attribute;                                              /* [edges, columns] */
    int32_t *edge_label;                                                /* [edges, columns] */
    int64_t classes;
    int64_t *class_value; /* [classes] the file's number of each class, ascending */
    int32_t *class_of;    /* [graphs] or [nodes]; -1 where unknown; NULL: nothing is known */
    int64_t targets;
    float *target;      /* [graphs, targets]; NaN where a value is not known */
    int64_t split[3];   /* the first so many graphs are for training, then validation, then test;
                           zeros where the set does not say */
    int64_t edge_walks; /* the last so many edge attributes are walks along the edges */
    basin_bundle *file; /* what the arrays lie in; NULL where the set owns them */
    float *own;         /* an edge_attribute that does not lie there */
} basin_graphset;

/* Reads by content: a TUDataset folder or zip, a packed set (safetensors, written by
 * basin_graphset_write), or the packed arrays of ZINC (npz with train_node_ptr, ...). */
BASIN_API basin_status basin_graphset_read(basin_graphset *set, const char *path,
                                           basin_error *error);
/* The same to predict with: classes and values of a TUDataset's graphs may be of any kind, and are
 * not read. */
BASIN_API basin_status basin_graphset_read_bare(basin_graphset *set, const char *path,
                                                basin_error *error);
/* The packed form, which is memory-mapped when it is read. */
BASIN_API basin_status basin_graphset_write(const char *path, const basin_graphset *set,
                                            basin_error *error);
BASIN_API void basin_graphset_free(basin_graphset *set);

/* Adds edge attributes: how much likelier than in the long run a walk from one end of the edge is
 * at the other after 2 .. walks + 1 steps (src/data/graphset/edge_walks.c). To a set that has none
 * yet. */
BASIN_API basin_status basin_graphset_add_edge_walks(basin_graphset *set, int64_t walks,
                                                     basin_error *error);
/* The same for graphs first .. first + count - 1 alone; the others' walks are zeros. */
BASIN_API basin_status basin_graphset_add_edge_walks_part(basin_graphset *set, int64_t walks,
                                                          int64_t first, int64_t count,
                                                          basin_error *error);

/* A TUDataset: DS_A.txt, DS_graph_indicator.txt and what else there is, in a folder or an archive.
 * One without labels and attributes of graphs has neither classes nor targets. */
BASIN_API basin_status basin_graphset_read_tu(basin_graphset *set, const char *path,
                                              basin_error *error);
BASIN_API basin_status basin_graphset_from_zinc(basin_graphset *set, const basin_bundle *bundle,
                                                basin_error *error);

/* The benchmark's generators of PATTERN and CLUSTER (Dwivedi et al.), pure functions of the seed.
 * `size` [3]: graphs for training, validation and test; the benchmark's are 10000, 2000, 2000 and
 * 10000, 1000, 1000. PATTERN's hidden patterns are shared by the three, 100 of them, as there. */
BASIN_API basin_status basin_graphset_pattern(basin_graphset *set, const int64_t size[3],
                                              uint64_t seed, basin_error *error);
BASIN_API basin_status basin_graphset_cluster(basin_graphset *set, const int64_t size[3],
                                              uint64_t seed, basin_error *error);

/* Superpixel graphs of pictures: SLIC, then each superpixel's 8 nearest by place, weighted
 * exp(-(d / sigma)^2). Node attributes: mean colour (0 .. 1), then x and y (0 .. 1). */
typedef struct basin_superpixels {
    int64_t segments;   /* superpixels wanted: MNIST 75, CIFAR-10 150 */
    double compactness; /* how much place counts against colour: MNIST 0.25, CIFAR-10 10 */
    int iterations;     /* of SLIC; 0 means 10 */
} basin_superpixels;
/* One picture, values 0 .. 1; labels are the segments 0 .. *found - 1. */
BASIN_API basin_status basin_slic(int32_t *label /* [height, width] */, int64_t *found,
                                  const float *pixel /* [height, width, channels] */,
                                  int64_t height, int64_t width, int64_t channels,
                                  const basin_superpixels *spec, basin_error *error);
/* A set of all pictures [count, height, width, channels], bytes, with their classes [count]. */
BASIN_API basin_status basin_graphset_superpixels(basin_graphset *set, const uint8_t *pixel,
                                                  const int32_t *class_of, const int64_t split[3],
                                                  int64_t height, int64_t width, int64_t channels,
                                                  const basin_superpixels *spec,
                                                  basin_error *error);

/* The superpixel graphs of a labelled collection: MNIST's idx files, CIFAR-10's binaries, or
 * pictures in a folder a class, with halves train and test. `validation` of the training pictures
 * are set apart (the first ones, as in the benchmark, or of folders some by the seed); `limit`
 * training and as many test pictures at most, 0 for all. A spec of 0 segments chooses by the
 * pictures: 75 for grey ones, 150 for colours. */
BASIN_API basin_status basin_graphset_read_pictures(basin_graphset *set, const char *path,
                                                    const basin_superpixels *spec,
                                                    int64_t validation, int64_t limit,
                                                    uint64_t seed, basin_error *error);

/* ---- positions ---- */

typedef struct basin_position_spec {
    int64_t vectors; /* k: eigenvectors of the normalised Laplacian behind the first */
    int64_t walks;   /* return probabilities of random walks of 1 .. so many steps */
    bool with_cls;   /* the Laplacian of the graph with the CLS node tied to all, as published; the
                        star makes eigenvectors blurry, so that of the graph itself is the default,
                        with zeros for the CLS token */
} basin_position_spec;

/* One row a token: each graph's CLS, then its nodes; eigenvectors, then walks. */
typedef struct basin_positions {
    basin_position_spec spec;
    int64_t tokens, width;
    int64_t first; /* the set's token that they begin with */
    float *value;  /* [tokens, width] */
    basin_bundle *file;
} basin_positions;

/* Computes them (in parallel), or reads them from `cache`, a folder, where an earlier call left
 * them for the same edges; NULL for no cache. */
BASIN_API basin_status basin_positions_new(basin_positions *positions, const basin_graphset *set,
                                           const basin_position_spec *spec, const char *cache,
                                           basin_error *error);
/* Those of graphs first .. first + count - 1 alone, unless the cache has all. */
BASIN_API basin_status basin_positions_new_part(basin_positions *positions,
                                                const basin_graphset *set,
                                                const basin_position_spec *spec, int64_t first,
                                                int64_t count, const char *cache,
                                                basin_error *error);
BASIN_API void basin_positions_free(basin_positions *positions);
/* One graph of `nodes` and edges [count, 2] (their directions do not matter): rows [nodes + 1,
 * width] as above. */
BASIN_API basin_status basin_positions_of(float *value, const basin_position_spec *spec,
                                          int64_t nodes, const int32_t *edge, int64_t count,
                                          basin_error *error);

/* ---- features ---- */

enum { BASIN_MAX_LABELS = 32 };

/* One column of labels: first .. first + count - 1 become one-hot; others have all zeros. */
typedef struct basin_label_column {
    int32_t first, count;
} basin_label_column;

/* How nodes and edges become numbers. Learnt from the training graphs, kept in the model file. */
typedef struct basin_graphset_encoding {
    int64_t attributes, labels, edge_attributes, edge_labels; /* columns a set must have */
    basin_label_column label[BASIN_MAX_LABELS], edge_label[BASIN_MAX_LABELS];
    float *mean, *scale;   /* [attributes + edge_attributes] features are (a - mean) * scale */
    bool raw;              /* labels as plain numbers, as published for ZINC, not one-hot */
    int64_t degrees;       /* a node's degree, one-hot, the last for all higher; 0: none */
    bool edge_sums;        /* a node's edges added up, feature by feature, times 1/4 */
    bool no_cls_self;      /* the CLS has no pair with itself */
    int64_t features;      /* F; a constant 1 where there is nothing else */
    int64_t edge_features; /* P; at least 1 */
} basin_graphset_encoding;

typedef struct basin_encoding_spec {
    bool raw, standardise, edge_sums;
    int64_t degrees; /* where the set has no node labels and no attributes 32 at least, unless it is
                        0; -1: 0 elsewhere */
} basin_encoding_spec;

BASIN_API basin_status basin_graphset_encoding_new(basin_graphset_encoding *encoding,
                                                   const basin_graphset *set, const int64_t *graph,
                                                   int64_t count, const basin_encoding_spec *spec,
                                                   basin_error *error);
/* Sets features and edge_features from the other fields. */
BASIN_API void basin_graphset_encoding_count(basin_graphset_encoding *encoding);
BASIN_API void basin_graphset_encoding_free(basin_graphset_encoding *encoding);
/* Whether a set has the columns that the encoding wants. */
BASIN_API basin_status basin_graphset_encoding_check(const basin_graphset_encoding *encoding,
                                                     const basin_graphset *set, const char *path,
                                                     basin_error *error);

/* ---- batches ---- */

/* Graphs laid out for basin_graphs_batch, without padding. */
typedef struct basin_graphset_batch {
    int64_t graphs, nodes, tokens;
    int64_t capacity_graphs, capacity_tokens, capacity_pairs; /* of the arrays */
    int64_t features, edge_features, width;                   /* F, P, k */
    float *feature;                                           /* [nodes, F] */
    float *position;                                          /* [tokens, k] */
    float *edge_feature;                      /* [pairs, P] in the order of `pairs` */
    float *share;                             /* [graphs] */
    float *strength;                          /* [pairs] 1 / sqrt of its tokens' pairs */
    int32_t *source, *before, *after, *owner; /* [tokens] */
    int32_t *first;                           /* [graphs] */
    basin_pairs pairs;
} basin_graphset_batch;

/* Tokens and pairs that a graph takes; with `no_cls_self` it is one pair less. */
BASIN_API int64_t basin_graphset_tokens(const basin_graphset *set, int64_t graph);
BASIN_API int64_t basin_graphset_pairs(const basin_graphset *set, int64_t graph);

/* Fills the batch with the given graphs, growing it where needed. With `flip`, each eigenvector of
 * each graph gets a random sign, a pure function of (seed, epoch, graph); otherwise the sign is
 * that of the positions, which a fixed rule chose. */
BASIN_API basin_status basin_graphset_batch_fill(basin_graphset_batch *batch,
                                                 const basin_graphset *set,
                                                 const basin_graphset_encoding *encoding,
                                                 const basin_positions *positions,
                                                 const int64_t *graph, int64_t count, bool flip,
                                                 uint64_t seed, uint64_t epoch, basin_error *error);
BASIN_API void basin_graphset_batch_free(basin_graphset_batch *batch);

/* ---- folds ---- */

/* A fold number 0 .. folds - 1 for every item, each class spread evenly over the folds; items of
 * class -1 are spread as a class of their own. A pure function of the seed. */
BASIN_API basin_status basin_folds_stratified(int32_t *fold /* [count] */, const int32_t *class_of,
                                              int64_t count, int64_t folds, uint64_t seed,
                                              basin_error *error);

typedef struct basin_fold {
    int64_t *item[3]; /* training, validation, test */
    int64_t count[3];
} basin_fold;

/* Moves a stratified part, `inner` of it, of the training items to validation, where none are. */
BASIN_API basin_status basin_fold_part(basin_fold *fold, const int32_t *class_of, double inner,
                                       uint64_t seed, basin_error *error);

typedef struct basin_folds {
    int64_t folds;
    basin_fold *fold; /* [folds] */
} basin_folds;

/* Stratified folds; of each rest a stratified part, `inner` of it, is for validation. */
BASIN_API basin_status basin_folds_new(basin_folds *folds, const int32_t *class_of, int64_t count,
                                       int64_t number, double inner, uint64_t seed,
                                       basin_error *error);
/* Given folds: NAME_train.index, NAME_val.index, NAME_test.index (a line a fold, numbers from 0,
 * commas), where `path` is NAME; or a folder with train_idx-1.txt, test_idx-1.txt, ... (a number a
 * line), whose training part is divided as above. */
BASIN_API basin_status basin_folds_read(basin_folds *folds, const char *path,
                                        const int32_t *class_of, int64_t count, double inner,
                                        uint64_t seed, basin_error *error);
BASIN_API void basin_folds_free(basin_folds *folds);

/* ---- sets from arrays ---- */

/* Graphs held in arrays. Nodes are numbered through all graphs, from 0: those of the first graph,
 * then those of the second. Arrays that are NULL are absent; zero fields mean so. */
typedef struct basin_graphset_arrays {
    size_t size;      /* sizeof(basin_graphset_arrays) */
    const char *name; /* NULL: "graphs" */
    int64_t graphs;
    const int64_t *nodes; /* [graphs] nodes of each */
    int64_t edges;
    const int64_t *from, *to; /* [edges] nodes; self loops are dropped, of equal edges the first
                                 stays */
    bool undirected;          /* each edge is given once and goes both ways */
    int64_t node_attributes, node_labels, edge_attributes, edge_labels; /* columns */
    const float *node_attribute;                                        /* [nodes, columns] */
    const int32_t *node_label;                                          /* [nodes, columns] */
    const float *edge_attribute;                                        /* [edges, columns] */
    const int32_t *edge_label;                                          /* [edges, columns] */
    const int64_t *graph_class;                                         /* [graphs] any numbers */
    const int64_t *node_class;                                          /* [nodes] any numbers */
    int64_t targets;
    const float *target; /* [graphs, targets] values, NaN: not known; of classes and values one at
                            most */
    int64_t split[3];    /* as in basin_graphset */
} basin_graphset_arrays;

/* Copies the arrays into a set, checked as files are. */
BASIN_API basin_status basin_graphset_from_arrays(basin_graphset *set,
                                                  const basin_graphset_arrays *arrays,
                                                  basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
