/* A network: one graph of many nodes, each with features and possibly a label; the data of anomaly
 * detection and node classification.
 *
 *     basin_network *network;
 *     basin_error error;
 *     if (basin_network_open(&network, (const char *[]){"amazon.npz"}, 1, NULL, &error))
 *         return fprintf(stderr, "%s\n", error.text), 1;
 *     basin_relation_view edges = {.size = sizeof edges};
 *     basin_network_get_relation(&edges, network, 0);
 *     for (int64_t e = edges.row[5]; e < edges.row[6]; e++) ... edges.col[e] ...
 *     basin_network_close(network);
 *
 * A relation is the set of edges of one kind, in CSR form: the neighbours of node i are
 * col[row[i]] .. col[row[i + 1] - 1], ascending. An undirected edge is stored at both ends and
 * counts as two; a directed edge u -> v is stored at v, as messages flow. Networks are written to
 * one file that is mapped, not parsed, when it is opened again (docs/formats.md).
 *
 * Threads: any number may read a network at the same time. */
#ifndef BASIN_TASKS_NETWORK_H
#define BASIN_TASKS_NETWORK_H

#include "basin/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_network basin_network;
/* The meaning of the columns of tables: names, types, categories, values for gaps; directions,
 * relations. A network has one, a model has that of its training data, and with it in the options
 * other tables are read the same way, in any order of their columns (docs/tables.md). */
typedef struct basin_schema basin_schema;

typedef enum basin_missing {
    BASIN_MISSING_ERROR, /* a feature that is NaN, infinite or an empty cell is an error, unless the
                            schema of the options fills it */
    BASIN_MISSING_ZERO,
    BASIN_MISSING_MEAN,   /* the mean of the known values of its column */
    BASIN_MISSING_KEEP,   /* gaps stay NaN, for a caller that fills them */
    BASIN_MISSING_REFUSE, /* an error, whatever the schema says */
} basin_missing;

/* Ends of edges that are in no table of nodes. */
typedef enum basin_unknown {
    BASIN_UNKNOWN_ERROR,  /* unless the schema of the options says otherwise */
    BASIN_UNKNOWN_SKIP,   /* the edge is dropped */
    BASIN_UNKNOWN_ADD,    /* the node is added, with the mean of every number and no category */
    BASIN_UNKNOWN_REFUSE, /* an error, whatever the schema says */
} basin_unknown;

/* How CSV is read. All zeros are the defaults. */
typedef struct basin_table_options {
    size_t size; /* sizeof(basin_table_options), or 0 */
    /* Names of columns; NULL: the usual names, see docs/formats.md. */
    const char *id, *label, *source, *target, *edge_type;
    const char *drop;       /* columns to ignore, separated by commas */
    int64_t max_categories; /* of a text column, one feature per value; 0: 32 */
    basin_unknown unknown;
    /* For strptime; NULL: only ISO 8601. That of edges; NULL: the same. */
    const char *date_format, *edge_date_format;
    bool headerless; /* files of two or three columns are lists of edges without a header */
    bool classes;    /* labels are classes with any names, numbered in the order of their
                        names (numbers: as numbers); else they are 0 and 1 */
    /* For edges with times: their column (NULL: the usual names), and the last time that counts,
     * written as in the column (NULL: no limit). */
    const char *time, *until;
    /* [paths] CSV with a header, in place of the files; messages name it by its path. */
    const char *const *text;
    /* A program wrote `text`: cells without quotes that are numbers have a decimal point, whatever
     * the schema's tables have; those in quotes are text. */
    bool exact;
} basin_table_options;

/* How data become a network. All zeros, or NULL in place of it, are the defaults. */
typedef struct basin_network_options {
    size_t size;   /* sizeof(basin_network_options), or 0 */
    bool directed; /* edges have a direction; else each goes both ways */
    basin_missing missing;
    int64_t unlabelled_first; /* ignore the labels of this many nodes, the first ones */
    bool unite;               /* add the union of all relations where there are several */
    size_t memory;            /* limit of an array in bytes; 0: three quarters of what is free */
    const basin_table_options *table; /* of CSV; or NULL */
    /* Read by these columns, by name: features in its order, gaps filled by its means, its
     * directions and relations. It also gives the value of options that are zero. */
    const basin_schema *schema;
    /* Tables add to this network: its nodes come first, and edges may lead to them. Rows of its
     * nodes update the columns that they fill. Its schema is the default. */
    const basin_network *base;
    /* A split by time in place of the masks: the column (a feature, or the times of edges: a node's
     * first edge); NULL: none. The earliest share split_train of the labelled nodes trains,
     * split_val validates, the latest test. */
    const char *split_time;
    double split_train, split_val;
    bool edgeless; /* tables of nodes are enough */
} basin_network_options;

/* ---- files ---- */

/* Opens one file (npz, the mapped file), or CSV files: one of edges, and any of nodes; or one such
 * file and CSV files that add to it, as to options->base. The format is recognised by the
 * content. One of them may be "-", standard input (docs/tables.md).
 * Every number is checked, those of a mapped file included. */
BASIN_API basin_status basin_network_open(basin_network **network, const char *const *path,
                                          int paths, const basin_network_options *options,
                                          basin_error *error);
/* Writes the file that is mapped, or npz where `path` ends so. */
BASIN_API basin_status basin_network_write(const char *path, const basin_network *network,
                                           basin_error *error);
BASIN_API void basin_network_close(basin_network *network);

/* ---- schemas ---- */

/* The form that files carry (docs/formats.md); `path` is what errors call it. */
BASIN_API basin_status basin_schema_parse(basin_schema **schema, const char *json, const char *path,
                                          basin_error *error);
/* The same as text, for basin_free; NULL without memory. */
BASIN_API char *basin_schema_print(const basin_schema *schema);
BASIN_API void basin_schema_free(basin_schema *schema);

/* ---- what it holds ---- */

/* Pointers are valid as long as the network. */
typedef struct basin_network_view {
    size_t size;      /* set by the caller */
    const char *path; /* where it came from, as errors name it */
    const char *note; /* notes of the reader, one per line; or NULL */
    int64_t nodes, features;
    const float *feature; /* [N, F], or NULL */
    const int32_t *label; /* [N] 0 normal, 1 anomalous (or more classes), -1 unknown; or NULL */
    int relations;
    bool directed;  /* whether a relation may have an edge in only one direction */
    int64_t splits; /* number of splits in the file */
} basin_network_view;

typedef struct basin_relation_view {
    size_t size; /* set by the caller */
    const char *name;
    int64_t edges;      /* entries of `col` */
    const int64_t *row; /* [N + 1] */
    const int32_t *col; /* [edges] */
} basin_relation_view;

BASIN_API void basin_network_get_view(basin_network_view *view, const basin_network *network);
BASIN_API void basin_network_get_relation(basin_relation_view *view, const basin_network *network,
                                          int relation);
/* The name of a feature; NULL where features have none. */
BASIN_API const char *basin_network_column(const basin_network *network, int64_t feature);
/* The id of a node, or its number, in `text`; valid as long as both. */
enum { BASIN_MAX_NODE = 24 };
BASIN_API const char *basin_network_id(const basin_network *network, int64_t node,
                                       char text[BASIN_MAX_NODE]);
/* The node of that id, or -1. */
BASIN_API int64_t basin_network_find(const basin_network *network, const char *id);
/* The name of a label, as in its table, or its number in `text`; valid as long as both. */
BASIN_API const char *basin_network_class(const basin_network *network, int32_t label,
                                          char text[BASIN_MAX_NODE]);
/* Copies labels [N]: 0, 1, .. or -1 for an unknown one. */
BASIN_API basin_status basin_network_set_labels(basin_network *network, const int32_t *label,
                                                basin_error *error);
/* Copies the names of labels 0, 1, ..; no label may be larger. */
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

/* A network in arrays of the caller. NULL: not known. */
typedef struct basin_network_arrays {
    size_t size; /* sizeof(basin_network_arrays), or 0 */
    int64_t nodes, features;
    const float *feature;              /* [N, F]; dates are days since 1970 */
    const int32_t *label;              /* [N] 0 normal, 1 anomalous, -1 unknown */
    const uint8_t *train, *val, *test; /* [N] 1: in that part */
    int relations;
    const char *const *name;   /* [relations]; NULL: "homo" of one, "relation 0", .. of several */
    const basin_edges *edges;  /* [relations] */
    const char *const *column; /* [features] names; NULL: none */
    const char *const *id;     /* [N] all different; NULL: numbers */
} basin_network_arrays;

/* Copies and checks the arrays. The union of several relations is added as "homo". */
BASIN_API basin_status basin_network_from_arrays(basin_network **network,
                                                 const basin_network_arrays *arrays,
                                                 const basin_network_options *options,
                                                 basin_error *error);

/* ---- splits ---- */

typedef enum basin_split_part {
    BASIN_SPLIT_NONE = 0,
    BASIN_SPLIT_TRAIN = 1,
    BASIN_SPLIT_VAL = 2,
    BASIN_SPLIT_TEST = 3,
} basin_split_part;

/* The protocol of the paper: `ratio` of the labelled nodes for training, the rest one to two for
 * validation and test, each class by itself (stratified). Every class keeps at least one node in
 * training. Nodes without a label are in no part. */
BASIN_API basin_status basin_split_stratified(uint8_t *part /* [N] basin_split_part */,
                                              const basin_network *network, double ratio,
                                              uint64_t seed, uint64_t run, basin_error *error);
#ifdef __cplusplus
}
#endif
#endif
