/* Shared by the files that make networks: readers, one per format, and parts of the container. */
#ifndef BASIN_DATA_NETWORK_NETWORK_H
#define BASIN_DATA_NETWORK_NETWORK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/dictionary.h"
#include "base/try.h"
#include "basin/io.h"
#include "basin/pairs.h"
#include "basin/tasks/network.h"
#include "tasks/common/table/columns.h"

typedef struct basin_relation {
    char *name;
    int64_t edges;    /* how many entries `col` has */
    int64_t *row;     /* [N + 1] */
    int32_t *col;     /* [edges] */
    bool mapped;      /* row and col belong to the file of the network */
    float *fact;      /* [edges, facts] what edges carry; NULL: nothing */
    bool fact_mapped; /* it also belongs to the file */
} basin_relation;

/* What an edge carries: a number each, summed over the rows that name its two ends; in an
 * undirected network over both directions, in a directed one each has its own. */
typedef enum basin_fact_kind {
    BASIN_FACT_COUNT, /* how many rows */
    BASIN_FACT_SUM,   /* of a column of numbers */
    BASIN_FACT_LAST,  /* the number of the latest row: by time, else by its numbers */
    BASIN_FACT_DATE,  /* the same of a column of dates */
    BASIN_FACT_TIME,  /* when the latest row was */
    BASIN_FACT_KIND,  /* how many rows have a value of a category */
    /* Where the schema has `extremes`, after those above of the same column: */
    BASIN_FACT_MAX,
    BASIN_FACT_MIN,
    BASIN_FACT_SQUARES, /* the sum of squares, */
    BASIN_FACT_ROUND,   /* and how many numbers are round: two digits, then zeros */
    BASIN_FACT_FIRST,   /* when the earliest row was */
} basin_fact_kind;

typedef struct basin_facts {
    int64_t count;    /* 0: edges carry nothing */
    uint8_t *kind;    /* [count] a basin_fact_kind each; the first is COUNT */
    basin_names name; /* "count", "amount sum", "amount last", "time last", "kind=wire" */
    int64_t time;     /* which of them is TIME; -1: none */
    double now;       /* the latest time of all edges; 0 where there is none */
} basin_facts;

/* SHA-256 and path of the files that a network was read from, in lines as sha256sum prints them. */
typedef struct basin_digests {
    char *text;
    size_t size, room;
} basin_digests;
/* NULL in place of the digests: none are taken. */
basin_status basin_digests_add(basin_digests *digests, const char *path, const void *data,
                               size_t size, basin_error *error);
basin_status basin_digests_add_later(basin_digests *digests, const char *path, basin_error *error);
/* Adds those of `from` to `to`, without what is still to be taken. */
basin_status basin_digests_finish(basin_digests *to, const basin_digests *from, basin_error *error);

struct basin_network {
    char *path; /* where it came from, as errors name it */
    int64_t nodes, features;
    float *feature;     /* [N, F], or NULL */
    int32_t *label;     /* [N] 0 normal, 1 anomalous (or more classes), -1 unknown; or NULL */
    basin_names id;     /* of nodes; where there are none they go by number */
    basin_names column; /* names of features, or none */
    int relations;
    basin_relation *relation;    /* [relations] */
    bool directed;               /* whether a relation may hold an edge in only one direction */
    bool both;                   /* seen both ways (ways.c), where `directed` is false */
    int64_t splits;              /* how many splits the file brings */
    uint8_t *train, *val, *test; /* [splits, N] 1: in that part; or NULL */
    int64_t *origin;      /* [N] of a subgraph: which node of the whole each one is; else NULL */
    int64_t *order;       /* [N] nodes in the order of their ids (order.c); NULL: as they are */
    char *note;           /* notes of a reader on the data, in lines; or NULL */
    bool note_lost;       /* there was no memory for a line of it */
    basin_bundle *file;   /* what a mapped network borrows from; arrays that it has not are owned */
    basin_schema *schema; /* NULL: none is known */
    basin_facts facts;    /* what every relation's `fact` has */
    double *since;        /* [N] the time of a node's first edge, NaN: none; or NULL */
    basin_names class_name; /* of labels 0, 1, ..; where there are none they go by number */
    char *table_path[2];    /* the first file of nodes and of edges; NULL where it is not a table */
    basin_digests files;    /* that it was read from */
    struct basin_parts *parts; /* of a graph in parts, which this stands for; or NULL */
    char *cuts;                /* time, until, split_time of its options, in lines; or NULL */
    int8_t *known; /* [N] of a part: labels in training that trees know, -1: none; else NULL */
    int64_t knows; /* how many of the whole are known */
};

/* A network freed at the end of its scope, unless the variable is NULL. */
#define BASIN_NETWORK_AT_EXIT BASIN_AT_EXIT(basin_network_close_at)
static inline void basin_network_close_at(basin_network **network) {
    basin_network_close(*network);
}

/* ---- files ---- */

/* Every row, column, label, mask and feature. */
basin_status basin_network_check(const basin_network *network, basin_error *error);

/* What a network holds, a line each with a digest of it: equal texts, equal data. */
enum { BASIN_DIGEST_LINES = 4096 };
void basin_network_digest(char text[BASIN_DIGEST_LINES], const basin_network *network);

/* ---- schemas ---- */

basin_status basin_schema_copy(basin_schema **copy, const basin_schema *schema, basin_error *error);
/* That of a file with this number of features; to be freed even after an error. */
basin_status basin_schema_read(basin_schema **schema, const char *json, int64_t features,
                               const char *path, basin_error *error);
/* A feature's value as text: a day, yes or no, a number, "-" for NaN. `mean`: a mean over nodes. */
enum { BASIN_VALUE_TEXT = 32 };
const char *basin_schema_value(char text[BASIN_VALUE_TEXT], const basin_schema *schema,
                               int64_t feature, double value, bool mean);
/* Whether the times of edges are dates; and a time as its column has it: "2026-11-15",
 * "2026-11-15T08:30:00", to the microsecond where it is not a whole second, or a number. */
enum { BASIN_TIME_TEXT = BASIN_DAY_TEXT };
bool basin_schema_has_dates(const basin_schema *schema);
void basin_time_print(char text[BASIN_TIME_TEXT], double time, bool date);
/* Makes a network fit, features and relations by name: an absent category is zero, an absent column
 * an error, what is left over is noted. Opening with a schema in the options does it. */
basin_status basin_network_match(basin_network *network, const basin_schema *schema,
                                 basin_error *error);
/* An error where features or directions are not the schema's, in its order. */
basin_status basin_network_check_schema(const basin_network *network, const basin_schema *schema,
                                        basin_error *error);

/* ---- building ---- */

/* A network of N nodes without features, labels or edges. `path` is what errors call it. */
basin_status basin_network_new(basin_network **network, const char *path, int64_t nodes,
                               basin_error *error);
/* Copies x [N, F] of any type. NaN and infinity follow `options->missing`. */
basin_status basin_network_set_features(basin_network *network, const basin_tensor *x,
                                        const basin_network_options *options, basin_error *error);
/* Copies y [N], whole numbers of any type with -1 for unknown, or [N, C] one-hot. */
basin_status basin_network_set_label_tensor(basin_network *network, const basin_tensor *y,
                                            const basin_network_options *options,
                                            basin_error *error);
/* Copies masks [N], [splits, N] or [N, splits]; `part` is "train", "val" or "test". */
basin_status basin_network_set_masks(basin_network *network, const char *part,
                                     const basin_tensor *mask, basin_error *error);

basin_status basin_network_add_relation(basin_network *network, const char *name,
                                        const basin_edges *edges,
                                        const basin_network_options *options, basin_error *error);
/* Adds the relation "homo", the union of all, where there is none yet. */
basin_status basin_network_add_union(basin_network *network, basin_error *error);

/* What edges carry is as if it had not been read. */
void basin_network_forget_facts(basin_network *network);

/* ---- use ---- */

/* The relation of that name, or -1. */
int basin_network_relation(const basin_network *network, const char *name);
/* The main relation: "homo", or the only one; -1 where there are several. */
int basin_network_main_relation(const basin_network *network);
/* The line of the note after `note` (NULL: the first); NULL after the last. */
const char *basin_network_next_note(int *length, const basin_network *network, const char *note);
/* The file that a line of the note speaks of: that of edges where it begins with "edges: ". */
const char *basin_network_note_path(const basin_network *network, const char *note);
/* Edges of the largest relation. */
int64_t basin_network_max_edges(const basin_network *network);
/* How many nodes have label `label`; -1 counts those without. */
int64_t basin_network_count_label(const basin_network *network, int32_t label);
/* -1 where no node has a label. */
int32_t basin_network_greatest_label(const basin_network *network);

typedef enum basin_self_loops {
    BASIN_SELF_LOOPS_KEEP, /* as in the data */
    BASIN_SELF_LOOPS_DROP,
    BASIN_SELF_LOOPS_ADD, /* one at each node */
} basin_self_loops;

/* A relation as pairs for attention, with loops dropped or added by `self`. In a part
 * (parts/parts.h) node i of its halo is key room + i; a whole network has none. */
basin_status basin_network_pairs(basin_pairs *pairs, const basin_network *network, int relation,
                                 basin_self_loops self, int64_t room, int64_t halo,
                                 basin_error *error);

/* Copies sizes, directions, note, schema, names of columns and classes. */
basin_status basin_network_copy_head(basin_network *to, const basin_network *from,
                                     basin_error *error);
/* What it has of some nodes: features, labels, masks, ids; `origin` leads back. */
basin_status basin_network_copy_nodes(basin_network *to, const basin_network *from,
                                      const int64_t *node /* [to->nodes] */, basin_error *error);
/* The subgraph of the given nodes, each named once; `origin` leads back. */
basin_status basin_network_induce(basin_network **part, const basin_network *network,
                                  const int64_t *node /* [count] */, int64_t count,
                                  basin_error *error);

/* A mini-batch: the targets, then up to fanout[0] neighbours of each per relation, then up to
 * fanout[1] of each of those, ... (0: all). Edges are those that were walked. */
typedef struct basin_sample_spec {
    const int64_t *fanout; /* [steps] */
    int steps;
    uint64_t seed, stream;
} basin_sample_spec;

basin_status basin_network_sample(basin_network **batch, const basin_network *network,
                                  const int64_t *target /* [count] */, int64_t count,
                                  const basin_sample_spec *spec, basin_error *error);

/* How many edges join equal labels, of those with two; NaN without. And of those of nodes with
 * label 1. */
void basin_network_homophily(double *all, double *anomalies, const basin_network *network,
                             int relation);

/* ---- schemas: what every column of a table means. Columns of nodes are features (number,
 * category, date) or have a role; a number or a date is one feature, a category one per value.
 * Columns of edges likewise make the cells of a row, from which facts are made. ---- */

struct basin_schema {
    bool named;     /* columns have names; else they go by their place */
    bool of_arrays; /* basin_schema_of made it: types of columns are not known */
    bool directed;
    bool extremes; /* edges carry the later kinds of facts; not in files of earlier versions */
    basin_missing missing;
    basin_unknown unknown;
    char *date_format;      /* NULL: ISO 8601 */
    char *edge_date_format; /* of tables of edges, where it is another one; or NULL */
    basin_schema_table nodes, edges;
    basin_names relation; /* of edges, without the union of several */
    int64_t features;
    int64_t cells; /* of a row of edges */
};

basin_status basin_schema_new(basin_schema **schema, basin_error *error);
/* Adds a column, and its features after those that are there. `value` is copied. */
basin_status basin_schema_add(basin_schema *schema, basin_schema_table *table,
                              const basin_schema_column *column, basin_error *error);
int64_t basin_schema_width(const basin_schema_column *column);
/* Copies the formats of dates of nodes and edges. */
basin_status basin_schema_set_formats(basin_schema *schema, const char *nodes, const char *edges,
                                      basin_error *error);
/* The column of that name, else one that differs only by the case of letters; or NULL. */
const basin_schema_column *basin_schema_find(const basin_schema_table *table, const char *name);
/* The names of all features: "age", "city=Rome"; free them. */
basin_status basin_schema_names(basin_names *names, const basin_schema *schema, basin_error *error);
/* What fills the gaps of every feature; `fill` [features]. */
void basin_schema_fill(float *fill, const basin_schema *schema, basin_missing missing);

/* The schema of a network that was not read from tables: numbers, by name or by place. */
basin_status basin_schema_of(basin_schema **schema, const basin_network *network,
                             basin_missing missing, basin_error *error);
/* Takes the names of the network's relations into the schema. */
basin_status basin_schema_set_relations(basin_schema *schema, const basin_network *network,
                                        basin_error *error);
/* The facts that its columns of edges become: none where there are no such columns. Free them. */
basin_status basin_schema_facts(basin_facts *facts, const basin_schema *schema, basin_error *error);
/* basin_network_check_schema but for what edges carry, for models that do not read it. */
basin_status basin_network_check_columns(const basin_network *network, const basin_schema *schema,
                                         basin_error *error);
/* Where a schema decides, what options leave open comes from it; an error where they contradict. */
typedef struct basin_settled_options {
    basin_network_options network; /* its `table` is the one below */
    basin_table_options table;
} basin_settled_options;
basin_status basin_schema_settle(basin_settled_options *settled,
                                 const basin_network_options *options, const char *path,
                                 basin_error *error);

/* ---- splits and scaling ---- */

/* Splits labelled nodes by `column`, a feature or the column of times of edges (a node's first
 * edge): the earliest `train` train, `val` come next, the latest test. Equal times stay together;
 * nodes without a time are in no part. Sets the masks; the note has the cuts. */
basin_status basin_network_split_by_time(basin_network *network, const char *column, double train,
                                         double val, basin_error *error);
/* Split `split` of the file; a node without a label is in no part, one in two is an error. */
basin_status basin_split_from_masks(uint8_t *part /* [N] */, const basin_network *network,
                                    int64_t split, basin_error *error);
/* Nodes of one part, ascending; returns how many. `node` may be NULL to count only. */
int64_t basin_split_nodes(int64_t *node, const uint8_t *part, int64_t nodes, int which);

/* ---- scaling of features ---- */

/* The inverse of the normal distribution: Acklam's approximation and a step of Halley's method. */
double basin_normal_score(double p);
/* How many ascending values are below x, or with `too` not above it. */
int64_t basin_count_below(const float *sorted, int64_t count, float x, bool too);

typedef enum basin_scaler_kind {
    BASIN_SCALE_NONE,
    BASIN_SCALE_STANDARD, /* mean 0, deviation 1 */
    BASIN_SCALE_QUANTILE, /* ranks turned into normal scores, cut at 5.2 */
    BASIN_SCALE_ROWS,     /* a node's numbers over the sum of their sizes, as bags of words are */
} basin_scaler_kind;

typedef struct basin_scaler {
    basin_scaler_kind kind;
    int64_t features, points;
    float *mean, *factor; /* [F] of standard: (x - mean) factor; a constant column gets factor 1 */
    float *quantile;      /* [F, points] of quantile, ascending */
    float *score;         /* [F, points] of quantile: what the quantiles themselves become */
} basin_scaler;

basin_status basin_scaler_fit(basin_scaler *scale, basin_scaler_kind kind,
                              const float *x /* [N, F] */, int64_t features,
                              const int64_t *node /* [count] */, int64_t count, basin_error *error);
/* y may be x. */
void basin_scaler_apply(float *y /* [n, F] */, const basin_scaler *scale,
                        const float *x /* [n, F] */, int64_t n);
void basin_scaler_free(basin_scaler *scale);
/* As tensors PREFIXmean, PREFIXfactor or PREFIXquantile, which borrow; metadata PREFIXkind. */
basin_status basin_scaler_store(basin_bundle *bundle, const char *prefix, const basin_scaler *scale,
                                basin_error *error);
basin_status basin_scaler_load(basin_scaler *scale, const basin_bundle *bundle, const char *prefix,
                               basin_error *error);
basin_status basin_scaler_parse(basin_scaler_kind *kind, const char *name, basin_error *error);

/* A graph in parts over ranks (parts/parts.h). */
typedef struct basin_parts basin_parts;

/* The most nodes a network may have: nodes are int32_t in `col`. */
enum { BASIN_NETWORK_NODES = INT32_MAX - 1 };

/* Element i of whole numbers, int64_t or int32_t, which may lie in a file at any byte. */
static inline int64_t basin_whole_at(const void *data, basin_dtype dtype, int64_t i) {
    int64_t wide;
    int32_t narrow;
    if (dtype == BASIN_I64) {
        memcpy(&wide, (const char *)data + i * 8, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const char *)data + i * 4, sizeof narrow);
    return narrow;
}

/* Readers. Parsers read from memory and copy what they need; `path` is what errors call it. */
basin_status basin_network_npz_read(basin_network **network, const basin_bundle *bundle,
                                    const basin_network_options *options, basin_error *error);
basin_status basin_network_csv_read(basin_network **network, const basin_csv_source *source,
                                    int sources, const basin_network_options *options,
                                    basin_error *error);
/* Takes the bundle over, whether it succeeds or not. */
basin_status basin_network_file_read(basin_network **network, basin_bundle *bundle,
                                     basin_error *error);
/* The tensors and metadata of such a file into a bundle, which borrows from the network. */
basin_status basin_network_file_put(basin_bundle *bundle, const basin_network *network,
                                    basin_error *error);
/* Whether a bundle is a network that can be mapped. */
bool basin_network_file_is(const basin_bundle *bundle);

basin_status basin_names_make(basin_names *names, const char *const *name, int64_t count,
                              basin_error *error);

/* Frees an array of the network, unless it lies in its file. */
void basin_network_release(const basin_network *network, void *array);
void basin_network_release_names(const basin_network *network, basin_names *names);

/* `options`, or the defaults in place of NULL. */
const basin_network_options *basin_network_options_or(const basin_network_options *options);
const basin_table_options *basin_table_options_of(const basin_network_options *options);

/* Room for features [N, F], not filled; owned by the network. */
basin_status basin_network_alloc_features(basin_network *network, int64_t features,
                                          const basin_network_options *options, basin_error *error);
/* Makes the union, the schema or the match that the options ask for; fills gaps. */
basin_status basin_network_finish(basin_network *network, const basin_network_options *options,
                                  basin_error *error);
/* Treats NaN and infinities as `missing` says; a mapped network gets a copy of its features. */
basin_status basin_network_fill_missing(basin_network *network, basin_missing missing,
                                        basin_error *error);
/* Forgets the labels of the first nodes, and those below 0; notes a single class. */
void basin_network_finish_labels(basin_network *network, const basin_network_options *options);
/* The same for a mapped network, whose labels are copied first; nothing where none are to go. */
basin_status basin_network_forget_labels(basin_network *network,
                                         const basin_network_options *options, basin_error *error);
/* An error where options say how files are to be read: a folder of parts has no use for them. */
basin_status basin_network_options_check_parts(const basin_network_options *options,
                                               const char *folder, basin_error *error);
/* Checks rows, entries below `keys` (ascending where `sorted`), ids, columns, labels and masks. */
basin_status basin_network_check_relation(const basin_network *network,
                                          const basin_relation *relation, int64_t keys, bool sorted,
                                          basin_error *error);
basin_status basin_network_check_nodes(const basin_network *network, basin_error *error);
/* basin_network_check without the features. */
basin_status basin_network_check_tables(const basin_network *network, basin_error *error);
void basin_relation_free(basin_relation *relation);
/* Where the entry of `other` is in a node's row, or -1. */
int64_t basin_relation_find(const basin_relation *relation, int64_t node, int32_t other);

/* ---- order.c ---- */

/* Below 0 where `a` comes before `b`; 0 only of equal ids. */
int basin_id_compare(const char *a, const char *b);
/* Sets `order`; networks that are opened or made of arrays have it. */
basin_status basin_network_find_order(basin_network *network, basin_error *error);
/* A copy whose nodes are in the order of their ids, `origin` leads back; NULL: they are already. */
basin_status basin_network_ordered(basin_network **copy, const basin_network *network,
                                   basin_error *error);
/* A copy in that order in any case. */
basin_status basin_network_as_is(basin_network **copy, const basin_network *network,
                                 basin_error *error);
/* Rows of `width` bytes as the nodes are become those of the copy, or with `restore` back. `order`
 * is the network's; NULL: nothing changes. */
basin_status basin_rows_reorder(void *rows, const int64_t *order, int64_t nodes, size_t width,
                                bool restore, basin_error *error);

/* ---- ways.c ---- */

/* Relations of a network seen both ways: the union of both directions, an edge at its head, an edge
 * at its tail. Neighbours are those of the first. */
enum { BASIN_HOMO, BASIN_COME, BASIN_GO };
static inline int basin_network_walked(const basin_network *network) {
    return network->both ? 1 : network->relations;
}
/* A copy, ordered by ids, of a directed network of one relation. */
basin_status basin_network_both_ways(basin_network **copy, const basin_network *network,
                                     basin_error *error);
/* Makes it what tables add to: the one relation, by its name there. */
basin_status basin_network_one_way(basin_network *network, const char *name, basin_error *error);

/* ---- facts.c ---- */

void basin_facts_free(basin_facts *facts);
basin_status basin_facts_copy(basin_facts *copy, const basin_facts *facts, basin_error *error);
/* Takes those of a later row into those of an edge, or becomes them where nothing is there yet. */
void basin_facts_merge(float *to, const float *later, const basin_facts *facts);
/* Zeros for every entry, where edges carry facts. */
basin_status basin_relation_alloc_facts(basin_relation *relation, const basin_facts *facts,
                                        basin_error *error);
/* Merges the facts of a relation's edges into those of another, which has all these edges. */
void basin_relation_merge_facts(basin_relation *to, const basin_relation *from, int64_t nodes,
                                const basin_facts *facts);
/* Copies the facts of edges from the whole, of which the relation is a part. */
basin_status basin_relation_copy_facts(basin_relation *part, const basin_relation *whole,
                                       const int64_t *node /* [nodes] of the whole */,
                                       int64_t nodes, const basin_facts *facts, basin_error *error);
/* Adds rows of edges, as cells of the schema, to the facts of a relation. The latest row goes by
 * `time` (double: a float of days has no minutes), or NULL; the order of rows has no effect. */
basin_status basin_network_add_facts(basin_network *network, basin_relation *relation,
                                     const basin_edges *edges, const float *cell,
                                     const double *time /* [edges] */, basin_error *error);

/* Adds an empty relation of that name; unique names only. */
basin_status basin_network_new_relation(basin_relation **relation, basin_network *network,
                                        const char *name, basin_error *error);
/* Edges from the other end; `entry`: which edge each was, or NULL. Free it even after an error. */
basin_status basin_relation_turn(basin_relation *back, int64_t **entry /* [edges] */,
                                 const basin_relation *from, int64_t nodes, basin_error *error);
/* Sorts each row of a CSR, merges equal entries, and gives back what is left over. */
basin_status basin_relation_tidy(basin_relation *relation, int64_t nodes, basin_error *error);

/* Adds a line to the note; basin_network_check_note reports one that could not be kept. */
void basin_network_add_note(basin_network *network, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
basin_status basin_network_check_note(const basin_network *network, basin_error *error);

#endif
