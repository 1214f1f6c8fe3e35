/* Sets of many small graphs: what graph classification, node classification and graph regression
 * learn from.
 *
 * A set is packed: all nodes in a row, all edges in a row, and where each graph's begin. Node and
 * edge labels stay the numbers of the file; an encoding turns them into features when a batch is
 * made, so a set of 300,000 nodes with 89 kinds takes 1 MB for them and not 100.
 *
 *     basin_graphset set;
 *     basin_graphset_read(&set, "MUTAG.zip", NULL, &error);
 *     printf("%lld graphs\n", (long long)set.graphs);
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
    BASIN_GRAPHS_CLASSES,      /* one class per graph */
    BASIN_GRAPHS_NODE_CLASSES, /* one class per node */
    BASIN_GRAPHS_VALUES,       /* numbers per graph */
} basin_graphs_target;

BASIN_API const char *basin_graphs_target_name(basin_graphs_target task);

enum { BASIN_GRAPHSET_NAME = 64 };

/* Filled by the functions below; threads may share one that they only read. */
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
    float *target;     /* [graphs, targets]; NaN where a value is not known */
    float *limit;      /* [graphs, 2 targets] censored values: above what they are, then below what;
                          NaN where there is no limit; NULL: there are none */
    int64_t split[3];  /* the number of graphs for training, validation and test, in this order;
                          zeros: no split in the file */
    bool binary;       /* of several targets: all are 0 or 1, or not known */
    int64_t *line;     /* [graphs] of molecules: where each is in its table; else NULL */
    int64_t *scaffold; /* [graphs] of molecules: equal for equal Murcko scaffolds, 0: no rings */
    char *id;          /* of molecules: names, that of graph i at id + id_start[i]; or NULL */
    int64_t *id_start; /* [graphs + 1] */
    int64_t id_bytes;  /* of all names */
    char *columns;     /* of molecules: `target` of basin_graphset_options for tables with the same
                          columns and classes; or NULL */
    char **column;     /* names [classes] or [targets], of classes that are words or of values from
                          a table; or NULL */
    char *note;        /* lines on what was left out or not used; or NULL */
    /* What a model adds; zeros in a set that was read: */
    int64_t edge_walks;  /* how many edge attributes, at the end, are walks along the edges */
    int64_t max_nodes;   /* only the first nodes of a graph; 0: all */
    double edge_dropout; /* in training, of pairs of nodes */
    basin_bundle *file;  /* what the arrays lie in; NULL where the set owns them */
} basin_graphset;

/* Tables of molecules have SMILES (CSV, TSV, .smi) or molblocks (SDF), and may be packed by gzip or
 * zstd. Nodes are atoms but for hydrogen, with labels atomic number, charge, hydrogens and
 * aromatic; edges are bonds, with label 1, 2, 3, 4 for an aromatic one, 0 for another. Molecules
 * that cannot be read are left out; the set's note lists them, and `line` says which are there. One
 * target of words or of up to 10 whole numbers is a class, others are values. */
typedef struct basin_graphset_options {
    size_t size; /* sizeof this struct, or 0 */
    bool bare;   /* TUDatasets: classes and values may be of any kind, and are not read */
    /* Tables of molecules: */
    const char *smiles; /* the column; NULL: "smiles" or another usual name */
    const char *target; /* columns to learn, separated by commas or line feeds; NULL: none */
    const char *id;     /* the column of names; NULL: "id" or another usual name, or none */
    bool values;        /* also treat one column of few whole numbers as values, not classes */
    bool merge;         /* copies of a molecule become one with the mean of their values, or the
                           class that more of them have */
    bool
        stereo; /* the last label of an atom is 2 or 3 where its neighbours turn one way or the
                   other, that of a double bond 5 or 6 where they are on opposite sides or on one */
    bool as_is; /* salts stay whole, charges and deuterium as they are written; else the largest
                   part is kept, protons make it neutral, and isotopes are ignored */
    const char *const *text; /* [count] SMILES in place of a file; `line` has places in it */
    int64_t count;
} basin_graphset_options;

/* Reads a TUDataset (folder or archive), a packed set (basin_graphset_write), the packed arrays of
 * ZINC (npz with train_node_ptr, ...), or a table of molecules: by the file's ending, or where the
 * options name its column of SMILES. Options NULL: defaults. */
BASIN_API basin_status basin_graphset_read(basin_graphset *set, const char *path,
                                           const basin_graphset_options *options,
                                           basin_error *error);
/* The packed form, which is memory-mapped when it is read. */
BASIN_API basin_status basin_graphset_write(const char *path, const basin_graphset *set,
                                            basin_error *error);
BASIN_API void basin_graphset_free(basin_graphset *set);

/* Which graphs are the same, whatever the order of their nodes, by all labels and attributes:
 * first[g] is the first that is equal to graph g, which may be g itself. */
BASIN_API basin_status basin_graphset_copies(int64_t *first /* [graphs] */,
                                             const basin_graphset *set, basin_error *error);

/* ---- sets from arrays ---- */

/* Graphs held in arrays. Nodes are numbered through all graphs, from 0: those of the first graph,
 * then those of the second. Arrays that are NULL are absent; zero fields mean so. */
typedef struct basin_graphset_arrays {
    size_t size;      /* sizeof this struct, or 0 */
    const char *name; /* NULL: "graphs" */
    int64_t graphs;
    const int64_t *nodes; /* [graphs] nodes of each */
    int64_t edges;
    const int64_t *from, *to; /* [edges] nodes; self loops are dropped, of equal edges the first
                                 stays */
    bool undirected;          /* each edge is given once and goes both ways */
    bool molecules;           /* labels are those of molecules, see above */
    int64_t node_attributes, node_labels, edge_attributes, edge_labels; /* columns */
    const float *node_attribute;                                        /* [nodes, columns] */
    const int32_t *node_label;                                          /* [nodes, columns] */
    const float *edge_attribute;                                        /* [edges, columns] */
    const int32_t *edge_label;                                          /* [edges, columns] */
    const int64_t *graph_class;                                         /* [graphs] any numbers */
    const int64_t *node_class;                                          /* [nodes] any numbers */
    int64_t targets;
    const float *target; /* [graphs, targets] values, NaN: unknown; at most one of `target` and the
                            classes is given */
    int64_t split[3];    /* as in basin_graphset */
    bool binary;         /* all targets are yes, 1, or no, 0 */
} basin_graphset_arrays;

/* Copies the arrays into a set, checked as files are. */
BASIN_API basin_status basin_graphset_from_arrays(basin_graphset *set,
                                                  const basin_graphset_arrays *arrays,
                                                  basin_error *error);

/* ---- positions of nodes ---- */

typedef struct basin_position_options {
    size_t size;     /* sizeof this struct, or 0 */
    int64_t vectors; /* k: eigenvectors of the normalised Laplacian after the first */
    int64_t walks;   /* return probabilities of random walks of 1 .. `walks` steps */
    bool with_cls;   /* the Laplacian of the graph with the CLS node connected to all, as published;
                        else that of the graph itself, with zeros for the CLS token */
} basin_position_options;

/* One row per token: the CLS token of each graph, then its nodes; eigenvectors, then walks. Missing
 * eigenvectors of a small graph are 0; a rule fixes the sign of each. */
typedef struct basin_positions {
    basin_position_options options;
    int64_t tokens, width;
    int64_t first;  /* the graph that they begin with */
    int64_t *start; /* [graphs + 1] where the rows of each begin */
    float *value;   /* [tokens, width] */
} basin_positions;

/* Those of graphs first .. first + count - 1, computed in parallel. */
BASIN_API basin_status basin_positions_new(basin_positions *positions, const basin_graphset *set,
                                           const basin_position_options *options, int64_t first,
                                           int64_t count, basin_error *error);
BASIN_API void basin_positions_free(basin_positions *positions);

/* ---- folds ---- */

typedef struct basin_fold {
    int64_t *item[3]; /* training, validation, test */
    int64_t count[3];
} basin_fold;

typedef struct basin_folds {
    int64_t folds;
    basin_fold *fold; /* [folds] */
} basin_folds;

typedef enum basin_folds_kind {
    BASIN_FOLDS_STRATIFIED, /* one fold, the published notebooks' protocol, trains on all items and
                               tests on the same */
    BASIN_FOLDS_GROUPED,    /* items of one group, such as molecules of one scaffold, stay together.
                               One fold: the largest groups train, up to 80 %, then 10 % validate,
                               the rest is the test, as DeepChem divides. Several: groups are dealt to
                               folds, large ones first, each to the smallest fold */
    BASIN_FOLDS_ORDERED, /* the same with groups of one item, in their order, such as that of time
                          */
    BASIN_FOLDS_READ,    /* NAME_train.index, NAME_val.index, NAME_test.index (one line per fold,
                            numbers    from 0, commas), where `path` is NAME; or a folder with
                            train_idx-1.txt,    test_idx-1.txt, ... (one number per line) */
} basin_folds_kind;

typedef struct basin_folds_options {
    size_t size; /* sizeof this struct, or 0 */
    basin_folds_kind kind;
    int64_t count;           /* items */
    int64_t folds;           /* unless they are read */
    const int32_t *class_of; /* [count] for stratified parts; or NULL */
    const int64_t *group;    /* [count] */
    const int64_t *copy;     /* [count] as of basin_graphset_copies: equal items stay together,
                                unless folds are read; or NULL */
    const char *path;
    double inner; /* a stratified fraction of the items outside each fold is for validation, where
                     these are not given; where items have groups: whole groups of at most that
                     fraction */
    uint64_t seed;
} basin_folds_options;

BASIN_API basin_status basin_folds_new(basin_folds *folds, const basin_folds_options *options,
                                       basin_error *error);
BASIN_API void basin_folds_free(basin_folds *folds);

#ifdef __cplusplus
}
#endif
#endif
