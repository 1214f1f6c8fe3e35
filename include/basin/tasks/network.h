/* A network: one graph of many nodes, of which each has features and perhaps a label; what anomaly
 * detection and models of nodes read.
 *
 *     basin_network *network;
 *     basin_error error;
 *     if (basin_network_open(&network, (const char *[]){"amazon.npz"}, 1, NULL, &error))
 *         return fprintf(stderr, "%s\n", error.text), 1;
 *     basin_relation_view edges = basin_network_get_relation(network, 0);
 *     for (int64_t e = edges.row[5]; e < edges.row[6]; e++) ... edges.col[e] ...
 *     basin_network_free(network);
 *
 * A relation is the set of edges of one kind, in CSR form: the nodes that node i sees are
 * col[row[i]] .. col[row[i + 1] - 1], ascending. Of an undirected edge both ends see each other and
 * it counts as two; along a directed edge u -> v it is v that sees u, as messages flow. Networks
 * are written to one file that is mapped, not parsed, when it is opened again (docs/formats.md). */
#ifndef BASIN_TASKS_NETWORK_H
#define BASIN_TASKS_NETWORK_H

#include "basin/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_network basin_network;
/* What the columns of tables mean: names, types, categories, what fills gaps; directions,
 * relations. A network that was read has one, a model keeps that of its training, and with it in
 * the options another table is read the same way, whatever the order of its columns
 * (docs/tables.md). */
typedef struct basin_schema basin_schema;

typedef enum basin_self_loops {
    BASIN_SELF_KEEP, /* as the data have them */
    BASIN_SELF_DROP,
    BASIN_SELF_ADD, /* one at each node */
} basin_self_loops;

typedef enum basin_missing {
    BASIN_MISSING_ERROR, /* a feature that is NaN, infinite or an empty cell is an error, unless the
                            schema of the options fills it */
    BASIN_MISSING_ZERO,
    BASIN_MISSING_MEAN,   /* the mean of its column where it is known */
    BASIN_MISSING_KEEP,   /* gaps stay NaN, for a caller that fills them */
    BASIN_MISSING_REFUSE, /* an error, whatever a schema says */
} basin_missing;

/* Ends of edges that no table of nodes has. */
typedef enum basin_unknown {
    BASIN_UNKNOWN_ERROR,  /* unless the schema of the options says otherwise */
    BASIN_UNKNOWN_SKIP,   /* the edge is left out */
    BASIN_UNKNOWN_ADD,    /* the node is added, with the mean of every number and no category */
    BASIN_UNKNOWN_REFUSE, /* an error, whatever a schema says */
} basin_unknown;

/* How data become a network. All zeros, or NULL in place of it, are the defaults. */
typedef struct basin_network_options {
    bool directed;        /* edges as they stand; else each goes both ways */
    bool keep_duplicates; /* else equal edges are merged */
    basin_self_loops self;
    basin_missing missing;
    int64_t unlabelled_first; /* labels of the first so many nodes do not count */
    bool unite;               /* add the union of all relations where there are several */
    size_t memory;            /* bytes that an array may take; 0: three quarters of what is free */
    /* Of CSV. Names of columns; NULL: the usual names, see docs/formats.md. */
    const char *id, *label, *source, *target, *edge_type;
    const char *drop;       /* columns to leave out, by commas */
    int64_t max_categories; /* of a text column that becomes one column a value; 0: 32 */
    basin_unknown unknown;
    const char *date_format; /* as strptime reads it; NULL: ISO 8601 alone */
    bool no_header;          /* files of two or three columns list edges and have no header */
    /* Read as these columns have it, by name: features in its order, gaps filled by its means, its
     * directions and relations. What is zero above comes from it, too. */
    const basin_schema *schema;
    /* Tables add to this network: its nodes come first, and edges may lead to them. Rows of nodes
     * that it has update the columns that they fill. Its schema holds where none is given. */
    const basin_network *base;
    /* Of edges with times: the column that has them (NULL: the usual names), and the last time that
     * counts, written as the column writes it (NULL: all do). */
    const char *time, *until;
    /* A split by time in place of the masks: see basin_network_split_by_time; NULL: none. */
    const char *split_time;
    double split_train, split_val;
    /* Of CSV: labels are classes by any name, numbered in the order of their names (of numbers, as
     * numbers); else 0 and 1. */
    bool classes;
    /* [paths] CSV with a header, in place of the files; paths are what messages call it. */
    const char *const *text;
} basin_network_options;

/* ---- files ---- */

/* Opens one file (npz, the mapped file), or CSV files: one of edges, and any of nodes;
 * or one such file and CSV files that add to it, as to options->base. What a file is goes by its
 * content. One of them may be "-", standard input (docs/tables.md).
 * Every number is checked, those of a mapped file included. */
BASIN_API basin_status basin_network_open(basin_network **network, const char *const *path,
                                          int paths, const basin_network_options *options,
                                          basin_error *error);
/* Writes the file that is mapped, or npz where `path` ends so. */
BASIN_API basin_status basin_network_write(const char *path, const basin_network *network,
                                           basin_error *error);
BASIN_API void basin_network_free(basin_network *network);
/* ---- schemas ---- */

/* The form that files carry (docs/formats.md); `path` is what errors call it. */
BASIN_API basin_status basin_schema_parse(basin_schema **schema, const char *json, const char *path,
                                          basin_error *error);
/* The same as text; free() it. NULL without memory. */
BASIN_API char *basin_schema_print(const basin_schema *schema);
BASIN_API void basin_schema_free(basin_schema *schema);
/* ---- what it holds ---- */

/* What a network holds; pointers live as long as it does, and nothing may be written there. */
typedef struct basin_network_view {
    const char *path; /* where it came from, as errors name it */
    const char *note; /* what its reader says about the data, in lines; or NULL */
    int64_t nodes, features;
    const float *feature; /* [N, F], or NULL */
    const int32_t *label; /* [N] 0 normal, 1 anomalous (or more classes), -1 unknown; or NULL */
    int relations;
    bool directed;  /* whether a relation may hold an edge in one direction alone */
    int64_t splits; /* how many splits the file brings */
} basin_network_view;

typedef struct basin_relation_view {
    const char *name;
    int64_t edges;      /* how many entries `col` has */
    const int64_t *row; /* [N + 1] */
    const int32_t *col; /* [edges] */
} basin_relation_view;

BASIN_API basin_network_view basin_network_get_view(const basin_network *network);
BASIN_API basin_relation_view basin_network_get_relation(const basin_network *network,
                                                         int relation);
/* The name of a feature; NULL where features have none. */
BASIN_API const char *basin_network_column(const basin_network *network, int64_t feature);
/* The id of a node, or its number, in `text`; valid as long as both. */
enum { BASIN_NODE_TEXT = 24 };
BASIN_API const char *basin_network_id(const basin_network *network, int64_t node,
                                       char text[BASIN_NODE_TEXT]);
/* The node of that id, or -1. */
BASIN_API int64_t basin_network_find(const basin_network *network, const char *id);
/* What a label is called: as its table has it, or its number, in `text`; valid as long as both. */
BASIN_API const char *basin_network_class(const basin_network *network, int32_t label,
                                          char text[BASIN_NODE_TEXT]);
/* Copies labels [N]: 0, 1, .. or -1 where a label is not known. */
BASIN_API basin_status basin_network_set_labels(basin_network *network, const int32_t *label,
                                                basin_error *error);
/* Copies what labels 0, 1, .. are called; no label may be beyond. */
BASIN_API basin_status basin_network_set_classes(basin_network *network,
                                                 const char *const *name /* [classes] */,
                                                 int64_t classes, basin_error *error);
/* Edges somewhere in memory: edge e goes from from[e * stride] to to[e * stride]. */
typedef struct basin_edges {
    const void *from, *to;
    basin_dtype dtype; /* I32 or I64 */
    int64_t stride, count;
} basin_edges;

/* ---- from arrays ---- */

/* A network that lies in a caller's arrays. Those that are NULL are not known. */
typedef struct basin_network_arrays {
    int64_t nodes, features;
    const float *feature;              /* [N, F]; of a date: days since 1970 */
    const int32_t *label;              /* [N] 0 normal, 1 anomalous, -1 unknown */
    const uint8_t *train, *val, *test; /* [N] 1: in that part */
    int relations;
    const char *const *name;   /* [relations]; NULL: "homo" of one, "relation 0", .. of several */
    const basin_edges *edges;  /* [relations] */
    const char *const *column; /* [features] names; NULL: they go by their place */
    const char *const *id;     /* [N] all different; NULL: nodes go by number */
} basin_network_arrays;

/* Copies the arrays, checked as what a file holds is. Where there are several relations, their
 * union "homo" is added. */
BASIN_API basin_status basin_network_from_arrays(basin_network **network,
                                                 const basin_network_arrays *arrays,
                                                 const basin_network_options *options,
                                                 basin_error *error);

/* ---- splits ---- */

enum { BASIN_PART_NONE = 0, BASIN_PART_TRAIN = 1, BASIN_PART_VAL = 2, BASIN_PART_TEST = 3 };

/* The protocol of the paper: `ratio` of the labelled nodes for training, the rest one to two for
 * validation and test, each class by itself (stratified). Every class keeps at least one node in
 * training. Nodes without a label are in no part. */
BASIN_API basin_status basin_split_stratified(uint8_t *part /* [N] */, const basin_network *network,
                                              double ratio, uint64_t seed, uint64_t run,
                                              basin_error *error);
#ifdef __cplusplus
}
#endif
#endif
