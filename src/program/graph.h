/* What the commands of graphs share: printing measures. */
#ifndef BASIN_CLI_GRAPH_H
#define BASIN_CLI_GRAPH_H

#include "base/sort.h"
#include "basin/tasks/graphs.h"
#include "program/cli.h"
#include "tasks/common/view/document.h"
#include "tasks/graphs/set/molecule.h"

/* How commands of graphs read a set and choose graphs of it. */
typedef struct basin_graph_reading {
    const char *smiles, *target;
    const char *part; /* NULL of commands that train or convert */
    const char *split, *index;
    const char *replicates; /* keep, mean */
    int64_t fold;
    bool values, stereo, as_is;
} basin_graph_reading;

/* A set of graphs, or a table of molecules, whose notes are printed. `target` are the columns to
 * read of a table unless the options name others; NULL: they must; "": none. The settings, of a run
 * or of a model, decide on stereochemistry; NULL: none. */
basin_status basin_graph_read(basin_graphset *set, const basin_args *args,
                              const basin_graph_reading *reading, const char *path,
                              const char *target, const basin_settings *settings,
                              basin_error *error);
#define BASIN_GRAPH_OPTION_SMILES BASIN_TEXT(reading.smiles, 0, "smiles", "COLUMN")
#define BASIN_GRAPH_OPTIONS_MOLECULES                                                              \
    BASIN_GRAPH_OPTION_SMILES, BASIN_TEXT(table.id, 0, "id", "COLUMN", .more = true)
#define BASIN_GRAPH_OPTION_TARGET BASIN_TEXT(reading.target, 0, "target", "COLUMNS")
#define BASIN_GRAPH_OPTION_VALUES BASIN_FLAG(reading.values, "values", .more = true)

#define BASIN_GRAPH_OPTION_COVERAGE                                                                \
    BASIN_REAL(coverage, "coverage", "X", 0.01, 0.999, .initial = 0.9)

#define BASIN_GRAPH_OPTIONS_SPLIT                                                                  \
    BASIN_CHOICE(reading.split, "split", "random|scaffold|time", .text = "random"),                \
        BASIN_TEXT(reading.index, 0, "index", "PATH", .needs = "split=random", .more = true)
#define BASIN_GRAPH_OPTION_FOLD                                                                    \
    BASIN_INTEGER(reading.fold, "fold", "N", 1, 1 << 20, .needs = "index!=", .more = true,         \
                  .initial = 1)
#define BASIN_GRAPH_OPTION_REPLICATES                                                              \
    BASIN_CHOICE(reading.replicates, "replicates", "keep|mean", .text = "keep", .more = true)
/* The fold that --fold names of a division by --index, scaffold or time; NULL: there is none. */
basin_status basin_graph_fold(const basin_fold **fold, basin_folds *folds,
                              const basin_graph_reading *reading, const basin_graphset *set,
                              double inner, uint64_t seed, basin_error *error);

/* Whether a set's labels are those of molecules. */
bool basin_graph_is_molecules(const basin_graphset *set);
/* A graph for the viewer to draw, with what nodes and edges add (or NULL). */
void basin_graph_put_drawing(basin_document *d, const basin_graphset *set, int64_t graph,
                             const double *node, const double *edge);

#define BASIN_GRAPH_OPTIONS_USE                                                                    \
    BASIN_CHOICE(reading.part, "part", "auto|train|validation|test|all", .text = "auto"),          \
        BASIN_GRAPH_OPTIONS_SPLIT, BASIN_GRAPH_OPTION_FOLD, BASIN_COMPUTE_OPTIONS

/* A node, or an edge in both directions, and its contribution. */
typedef struct basin_graph_added {
    int64_t a, b; /* b: -1 of a node */
    double added;
} basin_graph_added;

/* Options of the commands that use a model. */
typedef struct basin_graph_options {
    BASIN_ARGS;
    basin_graph_reading reading;
    const char *about, *page, *training_file, *molecule;
    int64_t top, graph, nodes, edges;
    double coverage;
    bool sort, unseen;
} basin_graph_options;

/* A model, the graphs that it is used on, and the results. */
typedef struct basin_graph_job {
    basin_graph_options *o;
    basin_graphs_model *model;
    const basin_graphs_info *info;
    basin_graphset set;
    int64_t *list, count; /* the graphs of the part */
    const char *part;
    basin_graphs_data data;
    /* predict */
    int64_t rows, columns;
    basin_graphs_predict_result result;
    float *cells;                /* what the result consists of, */
    int64_t *numbers;            /* with the next two: */
    int64_t *graph_of, *node_of; /* [rows] what each row is */
    basin_ranked *order;         /* [rows] */
    int64_t shown;               /* of these */
    /* eval */
    basin_graphs_evaluate_result evaluation;
    bool known;      /* whether the model's file says what it has seen */
    int64_t before;  /* graphs before the unseen were chosen */
    int64_t seen[3]; /* of these, by basin_graphs_memory */
    /* explain */
    basin_graphs_explanation e;
    basin_graph_added *node, *edge; /* by falling size */
    int64_t edges;                  /* an edge both ways counts once */
} basin_graph_job;

/* Opens what the operands MODEL DATA name. Without `labels` those of the set are not read. */
basin_status basin_graph_open_all(basin_graph_job *job, bool labels, basin_error *error);
/* Finds the graphs that took part in training; with --unseen only the others are left. */
basin_status basin_graph_look_back(basin_graph_job *job, basin_error *error);
void basin_graph_put_seen(basin_record *r, const basin_graph_job *job);
/* The column of --about, by name or number; -1 without it. */
basin_status basin_graph_find_column(int64_t *column, const basin_graph_job *job,
                                     basin_error *error);
/* Predicts them, with all outputs of the model. */
basin_status basin_graph_predict(basin_graph_job *job, basin_error *error);
/* Evaluates them. */
basin_status basin_graph_evaluate(basin_graph_job *job, basin_error *error);
void basin_graph_close_all(void *job);

/* Describes a set. */
void basin_record_set(basin_record *r, const void *set);
/* The fields of measures of a target, in an object where `key` is not NULL; with `items`, the
 * number of graphs or nodes before them. */
void basin_record_measures(basin_record *r, const char *key, const basin_graphs_measures *measures,
                           basin_graphs_target target, bool items);
/* Where there is a memory, it and the network by themselves. */
void basin_record_parts(basin_record *r, const basin_graphs_evaluate_result *evaluation,
                        basin_graphs_target target);
/* The key of column c: its name, or "p_active" or "p_3" of a class, or "value3". */
void basin_graph_name_column(char key[100], const char *const *column, const int64_t *class_value,
                             int64_t c);

#endif
