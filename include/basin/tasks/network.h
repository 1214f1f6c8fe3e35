/* A network: one graph of many nodes, of which each has features and perhaps a label; what anomaly
 * detection reads.
 *
 *     basin_network *network;
 *     basin_error error;
 *     if (basin_network_open(&network, (const char *[]){"amazon.npz"}, 1, NULL, &error))
 *         return fprintf(stderr, "%s\n", error.text), 1;
 *     const basin_relation *edges = &network->relation[0];
 *     for (int64_t e = edges->row[5]; e < edges->row[6]; e++) ... edges->col[e] ...
 *     basin_network_free(network);
 *
 * A relation is the set of edges of one kind, in CSR form: the nodes that node i sees are
 * col[row[i]]
 * .. col[row[i + 1] - 1], ascending. Of an undirected edge both ends see each other and it counts
 * as two; along a directed edge u -> v it is v that sees u, as messages flow. Networks are written
 * to one file that is mapped, not parsed, when it is opened again (docs/formats.md). What is mapped
 * must not be written to.
 * */
#ifndef BASIN_TASKS_NETWORK_H
#define BASIN_TASKS_NETWORK_H

#include "basin/io.h"
#include "basin/pairs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Text by number: entry i is the string at text + at[i]; `at` has one more, the end. */
typedef struct basin_names {
    int64_t count; /* 0: none */
    int64_t *at;   /* [count + 1] */
    char *text;    /* [at[count]], each entry ends with a zero byte */
} basin_names;

typedef struct basin_relation {
    char *name;
    int64_t edges;                   /* how many entries `col` has */
    int64_t *row;                    /* [N + 1] */
    int32_t *col;                    /* [edges] */
    bool mapped;                     /* row and col belong to the file of the network */
    struct basin_edge_file *scratch; /* a file that col belongs to; NULL: none */
    float *fact;                     /* [edges, facts] what edges carry; NULL: nothing */
    bool fact_mapped;                /* it belongs to the file, too */
} basin_relation;

/* What an edge carries: one number each of what the rows that name its two ends add up to. Of an
 * undirected network rows of both directions count, and both entries of an edge have the same; of a
 * directed one each direction has its own. */
typedef enum basin_fact_kind {
    BASIN_FACT_COUNT, /* how many rows */
    BASIN_FACT_SUM,   /* of a column of numbers */
    BASIN_FACT_LAST,  /* the number of the latest row: by time, else by the order of rows */
    BASIN_FACT_DATE,  /* the same of a column of dates */
    BASIN_FACT_TIME,  /* when the latest row was */
    BASIN_FACT_KIND,  /* how many rows have a value of a category */
} basin_fact_kind;

typedef struct basin_facts {
    int64_t count;    /* 0: edges carry nothing */
    uint8_t *kind;    /* [count] a basin_fact_kind each; the first is COUNT */
    basin_names name; /* "count", "amount sum", "amount last", "time last", "kind=wire" */
    int64_t time;     /* which of them is TIME; -1: none */
    double now;       /* the latest time of all edges; 0 where there is none */
} basin_facts;

/* What the columns of tables mean: names, types, categories, what fills gaps; directions,
 * relations. A network that was read has one, a model keeps that of its training, and with it in
 * the options another table is read the same way, whatever the order of its columns
 * (docs/tables.md). */
typedef struct basin_schema basin_schema;

typedef struct basin_network {
    char *path; /* where it came from, as errors name it */
    int64_t nodes, features;
    float *feature;     /* [N, F], or NULL */
    int32_t *label;     /* [N] 0 normal, 1 anomalous (or more classes), -1 unknown; or NULL */
    basin_names id;     /* of nodes; where there are none they go by number */
    basin_names column; /* names of features, or none */
    int relations;
    basin_relation *relation;    /* [relations] */
    bool directed;               /* whether a relation may hold an edge in one direction alone */
    int64_t splits;              /* how many splits the file brings */
    uint8_t *train, *val, *test; /* [splits, N] 1: in that part; or NULL */
    int64_t *origin;    /* [N] of a subgraph: which node of the whole each one is; else NULL */
    char *note;         /* what a reader wants said about the data, in lines; or NULL */
    bool note_lost;     /* there was no memory for a line of it */
    basin_bundle *file; /* what a mapped network borrows from */
    /* What replaces an array of the mapped file where options change it; or NULL. */
    float *own_feature;
    int32_t *own_label;
    basin_names own_column;
    basin_schema *schema;   /* NULL: none is known */
    basin_facts facts;      /* what every relation's `fact` has */
    double *since;          /* [N] the time of a node's first edge, NaN: none; or NULL */
    double *own_since;      /* of those, where they do not lie in the mapped file */
    uint8_t *own_masks;     /* [3, N] train, val and test, likewise */
    basin_names class_name; /* of labels 0, 1, ..; where there are none they go by number */
    char *table_path[2];    /* the first file of nodes and of edges; NULL where it is no table */
} basin_network;

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
    /* Tables add to this network: its nodes come first, and edges may lead to them. Its schema
     * holds where none is given. */
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
    /* Of CSV: a folder for the edges while they are read, which then stay in a file there until the
     * network is freed, and take no memory; NULL: they are held. Edges carry nothing then. */
    const char *scratch;
} basin_network_options;

/* ---- files ---- */

/* Opens one file (npz, .mat, DGL, the mapped file), or CSV files: one of edges, and any of nodes;
 * what a file is goes by its content. One of them may be "-", standard input (docs/tables.md).
 * Every number is checked, those of a mapped file included. */
BASIN_API basin_status basin_network_open(basin_network **network, const char *const *path,
                                          int paths, const basin_network_options *options,
                                          basin_error *error);
/* Writes the file that is mapped, or npz where `path` ends so. */
BASIN_API basin_status basin_network_write(const char *path, const basin_network *network,
                                           basin_error *error);
BASIN_API void basin_network_free(basin_network *network);
/* Every row, column, label, mask and feature. What was opened has been checked; for networks whose
 * arrays a caller filled. */
BASIN_API basin_status basin_network_check(const basin_network *network, basin_error *error);

/* ---- schemas ---- */

/* The form that files carry (docs/formats.md); `path` is what errors call it. */
BASIN_API basin_status basin_schema_parse(basin_schema **schema, const char *json, const char *path,
                                          basin_error *error);
/* The same as text; free() it. NULL without memory. */
BASIN_API char *basin_schema_print(const basin_schema *schema);
BASIN_API basin_status basin_schema_copy(basin_schema **copy, const basin_schema *schema,
                                         basin_error *error);
BASIN_API void basin_schema_free(basin_schema *schema);
/* How many features its columns become. */
BASIN_API int64_t basin_schema_features(const basin_schema *schema);
/* A value of feature `feature` as people know it: a day, yes or no of a category's value, a number;
 * "-" of NaN. `mean`: it is a mean over nodes. NULL in place of a schema: a number. */
enum { BASIN_VALUE_TEXT = 32 };
BASIN_API const char *basin_schema_value(char text[BASIN_VALUE_TEXT], const basin_schema *schema,
                                         int64_t feature, double value, bool mean);
/* Makes a network fit: features in the schema's order, by name; a category that is absent is zero;
 * relations likewise. A column that is absent is an error; what is left over is noted.
 * basin_network_open and basin_network_from_arrays do it where the options have a schema. */
BASIN_API basin_status basin_network_match(basin_network *network, const basin_schema *schema,
                                           basin_error *error);
/* A copy of the network's schema, or one that is made from its features. */
BASIN_API basin_status basin_network_describe(basin_schema **schema, const basin_network *network,
                                              basin_error *error);
/* An error where features or directions are not the schema's, in its order. */
BASIN_API basin_status basin_network_check_schema(const basin_network *network,
                                                  const basin_schema *schema, basin_error *error);

/* ---- building ---- */

/* A network of N nodes without features, labels or edges. `path` is what errors call it. */
BASIN_API basin_status basin_network_new(basin_network **network, const char *path, int64_t nodes,
                                         basin_error *error);
/* Copies x [N, F] of any type. NaN and infinity follow `options->missing`. */
BASIN_API basin_status basin_network_set_features(basin_network *network, const basin_tensor *x,
                                                  const basin_network_options *options,
                                                  basin_error *error);
/* Copies y [N], whole numbers of any type with -1 for unknown, or [N, C] one-hot. */
BASIN_API basin_status basin_network_set_labels(basin_network *network, const basin_tensor *y,
                                                const basin_network_options *options,
                                                basin_error *error);
/* Copies what labels 0, 1, .. are called; no label may be beyond. */
BASIN_API basin_status basin_network_set_classes(basin_network *network,
                                                 const char *const *name /* [classes] */,
                                                 int64_t classes, basin_error *error);
/* Copies masks [N], [splits, N] or [N, splits]; `part` is "train", "val" or "test". */
BASIN_API basin_status basin_network_set_masks(basin_network *network, const char *part,
                                               const basin_tensor *mask, basin_error *error);

/* Edges somewhere in memory: edge e goes from from[e * stride] to to[e * stride]. */
typedef struct basin_edges {
    const void *from, *to;
    basin_dtype dtype; /* I32 or I64 */
    int64_t stride, count;
} basin_edges;

BASIN_API basin_status basin_network_add_relation(basin_network *network, const char *name,
                                                  const basin_edges *edges,
                                                  const basin_network_options *options,
                                                  basin_error *error);
/* Adds the relation "homo", the union of all, where there is none yet. */
BASIN_API basin_status basin_network_add_union(basin_network *network, basin_error *error);

/* What edges carry is as if it had not been read. */
BASIN_API void basin_network_forget_facts(basin_network *network);

/* ---- use ---- */

/* The relation of that name, or -1. */
BASIN_API int basin_network_relation(const basin_network *network, const char *name);
/* The relation to use where one is wanted: "homo", or the only one; -1 where there are several. */
BASIN_API int basin_network_main_relation(const basin_network *network);
/* The id of a node, or its number, in `text`; valid as long as both. */
enum { BASIN_NODE_TEXT = 24 };
BASIN_API const char *basin_network_id(const basin_network *network, int64_t node,
                                       char text[BASIN_NODE_TEXT]);
/* The line of the note behind `note`, of `length` bytes; the first one behind NULL, NULL behind the
 * last. */
BASIN_API const char *basin_network_next_note(int *length, const basin_network *network,
                                              const char *note);
/* The file that a line of the note speaks of: that of edges where it begins with "edges: ". */
BASIN_API const char *basin_network_note_path(const basin_network *network, const char *note);
/* The node of that id, or -1. */
BASIN_API int64_t basin_network_find(const basin_network *network, const char *id);
/* What a label is called: as its table has it, or its number, in `text`; valid as long as both. */
BASIN_API const char *basin_network_class(const basin_network *network, int32_t label,
                                          char text[BASIN_NODE_TEXT]);
/* How many nodes have label `label`; -1 counts those without. */
BASIN_API int64_t basin_network_count_label(const basin_network *network, int32_t label);
/* -1 where no node has a label. */
BASIN_API int32_t basin_network_greatest_label(const basin_network *network);

/* A relation as the list of pairs that attention wants, with loops dropped or added by `self`. */
BASIN_API basin_status basin_network_pairs(basin_pairs *pairs, const basin_network *network,
                                           int relation, basin_self_loops self, basin_error *error);

/* The subgraph of the given nodes, each named once, with all edges among them; `origin` leads
 * back. */
BASIN_API basin_status basin_network_induce(basin_network **part, const basin_network *network,
                                            const int64_t *node /* [count] */, int64_t count,
                                            basin_error *error);

/* A mini-batch: the target nodes come first, then up to fanout[0] neighbours of each in each
 * relation, then up to fanout[1] of each of those, ... (a fan-out of 0 takes all). Edges are those
 * that were walked (both ways in an undirected network), or all among the nodes with `induce`. A
 * pure function of its arguments: another `stream` is another draw. */
typedef struct basin_sample_spec {
    const int64_t *fanout; /* [steps] */
    int steps;
    bool induce;
    uint64_t seed, stream;
} basin_sample_spec;

BASIN_API basin_status basin_network_sample(basin_network **batch, const basin_network *network,
                                            const int64_t *target /* [count] */, int64_t count,
                                            const basin_sample_spec *spec, basin_error *error);

enum { BASIN_DEGREE_BINS = 33 };
typedef struct basin_degrees {
    int64_t edges, self_loops, isolated; /* edges as `col` counts them */
    int64_t least, median, most;
    double mean;
    int64_t bin[BASIN_DEGREE_BINS]; /* nodes of degree 0, 1, 2-3, 4-7, ... */
    bool symmetric;                 /* every edge is there both ways */
    double homophily;         /* how many edges join equal labels, of those with two; NaN without */
    double anomaly_homophily; /* the same over the edges of nodes with label 1 */
} basin_degrees;

BASIN_API basin_status basin_network_degrees(basin_degrees *degrees, const basin_network *network,
                                             int relation, basin_error *error);

/* ---- made networks ---- */

/* A network in the manner of the fraud sets: degrees with a heavy tail, features that depend on the
 * class, anomalies that hide among the others. A pure function of the spec. */
typedef struct basin_fraud_spec {
    int64_t nodes, edges, features; /* edges once each */
    double anomalous;               /* share of the nodes */
    double homophily;               /* share of the edges that join equal labels */
    double ring;                    /* share of the edges that join two anomalies */
    double shift;                   /* how far the features of anomalies are from the others' */
    double camouflage;              /* share of the anomalies that hide most of it */
    uint64_t seed;
} basin_fraud_spec;

/* Like "amazon", "yelp", "tfinance" or "tsocial" (the paper's table), with `scale` times the nodes
 * and edges. */
BASIN_API basin_status basin_fraud_like(basin_fraud_spec *spec, const char *name, double scale,
                                        basin_error *error);
BASIN_API basin_status basin_network_make_fraud(basin_network **network,
                                                const basin_fraud_spec *spec, basin_error *error);

/* ---- splits ---- */

enum { BASIN_PART_NONE = 0, BASIN_PART_TRAIN = 1, BASIN_PART_VAL = 2, BASIN_PART_TEST = 3 };

/* The protocol of the paper: `ratio` of the labelled nodes for training, the rest one to two for
 * validation and test, each class by itself (stratified). Every class keeps at least one node in
 * training. Nodes without a label are in no part. */
BASIN_API basin_status basin_split_stratified(uint8_t *part /* [N] */, const basin_network *network,
                                              double ratio, uint64_t seed, uint64_t run,
                                              basin_error *error);
/* Split `split` of the file, which may have no validation or test; a node without a label is in no
 * part, one in two is an error. */
BASIN_API basin_status basin_split_from_masks(uint8_t *part /* [N] */, const basin_network *network,
                                              int64_t split, basin_error *error);
/* The past for training, the future for tests: the labelled nodes in the order of `column`, a
 * feature by its name, or the column of times of edges, which stands for a node's first edge. The
 * earliest `train` of them train, `val` of them come next, the latest test. Nodes of one time stay
 * together; those without a time are in no part. The network's masks are then this one split, and
 * its note says where the cuts are. */
BASIN_API basin_status basin_network_split_by_time(basin_network *network, const char *column,
                                                   double train, double val, basin_error *error);
/* Nodes of one part, ascending; returns how many. `node` may be NULL to count only. */
BASIN_API int64_t basin_split_nodes(int64_t *node, const uint8_t *part, int64_t nodes, int which);

/* ---- scaling of features ---- */

typedef enum basin_scaler_kind {
    BASIN_SCALE_NONE,
    BASIN_SCALE_STANDARD, /* mean 0, deviation 1 */
    BASIN_SCALE_QUANTILE, /* ranks turned into normal scores, cut at 5.2 */
    BASIN_SCALE_BOTH,     /* standard and quantile side by side */
    BASIN_SCALE_BINS,     /* how far through each of eight bins of equal count, from -1 to 1 */
    BASIN_SCALE_ALL,      /* standard, quantile and bins side by side */
    BASIN_SCALE_ROWS,     /* a node's numbers over the sum of their sizes, as bags of words are */
} basin_scaler_kind;

/* Fitted on some nodes, used on all. */
typedef struct basin_scaler {
    basin_scaler_kind kind;
    int64_t features, points;
    float *mean, *factor; /* [F] of standard: (x - mean) factor; a constant column gets factor 1 */
    float *quantile;      /* [F, points] of quantile and bins, ascending */
    float *score;         /* [F, points] of quantile: what the quantiles themselves become */
} basin_scaler;

/* How many numbers a feature becomes: 1, of both 2, of bins 8, of all 10. */
BASIN_API int64_t basin_scaler_planes(basin_scaler_kind kind);

BASIN_API basin_status basin_scaler_fit(basin_scaler *scale, basin_scaler_kind kind,
                                        const float *x /* [N, F] */, int64_t features,
                                        const int64_t *node /* [count] */, int64_t count,
                                        basin_error *error);
/* Rows of F numbers become rows of planes x F; y may be x where there is one plane. */
BASIN_API void basin_scaler_apply(float *y /* [n, planes, F] */, const basin_scaler *scale,
                                  const float *x /* [n, F] */, int64_t n);
BASIN_API void basin_scaler_free(basin_scaler *scale);
/* As tensors PREFIXmean, PREFIXfactor or PREFIXquantile; the metadata PREFIXkind says which. Stored
 * ones borrow from `scale`. */
BASIN_API basin_status basin_scaler_store(basin_bundle *bundle, const char *prefix,
                                          const basin_scaler *scale, basin_error *error);
BASIN_API basin_status basin_scaler_load(basin_scaler *scale, const basin_bundle *bundle,
                                         const char *prefix, basin_error *error);
BASIN_API const char *basin_scaler_name(basin_scaler_kind kind); /* "none", "standard", .. */
BASIN_API basin_status basin_scaler_parse(basin_scaler_kind *kind, const char *name,
                                          basin_error *error);

/* ---- from arrays ---- */

/* A network that lies in a caller's arrays. Those that are NULL are not known. */
typedef struct basin_network_arrays {
    size_t size; /* sizeof(basin_network_arrays): fields beyond it are taken as zero */
    int64_t nodes, features;
    const float *feature;              /* [N, F]; of a date: days since 1970 */
    const int32_t *label;              /* [N] 0 normal, 1 anomalous, -1 unknown */
    const uint8_t *train, *val, *test; /* [N] 1: in that part */
    int relations;
    const char *const *name;   /* [relations]; NULL: "homo" of one, "relation 0", .. of several */
    const basin_edges *edges;  /* [relations] */
    const char *const *column; /* [features] names; NULL: they go by their place */
} basin_network_arrays;

/* Copies the arrays, checked as what a file holds is. Where there are several relations, their
 * union "homo" is added. */
BASIN_API basin_status basin_network_from_arrays(basin_network **network,
                                                 const basin_network_arrays *arrays,
                                                 const basin_network_options *options,
                                                 basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
