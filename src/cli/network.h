/* The options of all commands that open a network: how its data become edges, features, labels. */
#ifndef BASIN_CLI_NETWORK_H
#define BASIN_CLI_NETWORK_H

#include "cli/options.h"
#include "data/network/parts/parts.h"

typedef struct basin_network_flags {
    bool directed, keep_duplicates, keep_gaps, no_header;
    bool unite;   /* add the union of all relations */
    bool classes; /* labels are classes by any name */
    const char *self, *missing, *unknown, *id, *label, *source, *target, *edge_type, *drop;
    const char *date_format, *time, *until, *split_time;
    double split_train, split_val; /* no options of their own */
    int64_t unlabelled_first, max_categories;
    const basin_network *base; /* what the files add to; no option of its own */
    const char *scratch;       /* where tables keep their edges; likewise */
} basin_network_flags;

/* Defaults for models, which need the union of relations. */
#define BASIN_NETWORK_UNITED                                                                       \
    { .unite = true, .self = "keep" }
#define BASIN_NETWORK_CLASSES                                                                      \
    { .unite = true, .classes = true, .self = "keep" }
#define BASIN_NETWORK_FLAGS                                                                        \
    { .self = "keep" }

/* `field` is the basin_network_flags in the command's own struct. */
#define BASIN_OPTIONS_NETWORK(type, field)                                                         \
    BASIN_FLAG(                                                                                    \
        type, field.directed, 0, "directed",                                                       \
        "Keep the direction of edges: the target sees the source. Else they go both ways."),       \
        BASIN_TEXT(type, field.id, 0, "id", "COLUMN", "CSV of nodes: the column of ids."),         \
        BASIN_TEXT(type, field.label, 0, "label", "COLUMN",                                        \
                   "CSV of nodes: the column of labels; for detectors 1 is anomalous."),           \
        BASIN_TEXT(type, field.source, 0, "source", "COLUMN",                                      \
                   "CSV of edges: the column of sources.", .more = true),                          \
        BASIN_TEXT(type, field.target, 0, "target", "COLUMN",                                      \
                   "CSV of edges: the column of targets.", .more = true),                          \
        BASIN_CHOICE(                                                                              \
            type, field.missing, "missing", "error|zero|mean",                                     \
            "Features that are empty, NaN or infinite: refuse the file (the default), or "         \
            "replace them by 0 or by the mean of the column; for a trained model that is "         \
            "training's mean, and the default what training did.",                                 \
            .more = true),                                                                         \
        BASIN_INTEGER(type, field.unlabelled_first, "unlabelled-first", "N", 0, 2147483647,        \
                      "Ignore the labels of the first N nodes (Amazon.mat: 3305, as in the "       \
                      "paper).",                                                                   \
                      .more = true),                                                               \
        BASIN_TEXT(                                                                                \
            type, field.edge_type, 0, "relation-column", "COLUMN",                                 \
            "CSV of edges: the column of relations; none: what is named like one is a fact.",      \
            .more = true),                                                                         \
        BASIN_TEXT(type, field.time, 0, "time", "COLUMN",                                          \
                   "CSV of edges: the column that says when an edge was.", .more = true),          \
        BASIN_TEXT(type, field.until, 0, "until", "TIME",                                          \
                   "CSV of edges: leave out those that are later.", .more = true),                 \
        BASIN_TEXT(type, field.drop, 0, "drop", "COLUMNS",                                         \
                   "CSV: columns to leave out, separated by commas.", .more = true),               \
        BASIN_INTEGER(type, field.max_categories, "max-categories", "N", 1, 100000,                \
                      "CSV of nodes: a text column of at most N values (32) becomes one feature "  \
                      "per value; one of more values is left out.",                                \
                      .more = true),                                                               \
        BASIN_CHOICE(type, field.unknown, "unknown", "error|skip|add",                             \
                     "CSV: edges to nodes that no file of nodes has: refuse the file (the "        \
                     "default), leave the edge out, or add the node without features of its own; " \
                     "for a trained model the default is what training did.",                      \
                     .more = true),                                                                \
        BASIN_FLAG(type, field.no_header, 0, "no-header",                                          \
                   "CSV of edges: files of two or three columns have no header; they are source, " \
                   "target and relation. Lists of numbers are known without this.",                \
                   .more = true),                                                                  \
        BASIN_TEXT(type, field.date_format, 0, "date-format", "FORMAT",                            \
                   "CSV of nodes: columns of dates in this form, as strptime(3) has it: "          \
                   "%d.%m.%Y",                                                                     \
                   .more = true)

/* Of commands that split. */
#define BASIN_OPTION_SPLIT_TIME(type, field, needs_)                                               \
    BASIN_TEXT(type, field.split_time, 0, "split-time", "COLUMN",                                  \
               "Train on the past and test on the future: labelled nodes in the order of this "    \
               "column of theirs, or of the edges' column of times, which stands for a node's "    \
               "first edge.",                                                                      \
               .needs = needs_, .more = true)

/* What computes, and within which memory; `type` has memory, compute and quiet. */
#define BASIN_WORK_OPTIONS(type)                                                                   \
    BASIN_REAL(type, memory, "memory", "GIB", 0, 1e6,                                              \
               "Memory to stay within; 0: three quarters of what is free.", .more = true),         \
        BASIN_COMPUTE_OPTIONS(type), BASIN_OPTION_QUIET(type)

/* What only commands have whose task has no setting for it. */
#define BASIN_OPTIONS_NETWORK_EDGES(type, field)                                                   \
    BASIN_CHOICE(                                                                                  \
        type, field.self, "self-loops", "keep|drop|add",                                           \
        "Edges from a node to itself: keep those of the data, drop them, or add one to each."),    \
        BASIN_FLAG(type, field.classes, 0, "classes",                                              \
                   "CSV of nodes: labels are classes by any name, for 'basin node'; else 0 and "   \
                   "1."),                                                                          \
        BASIN_FLAG(type, field.keep_duplicates, 0, "keep-duplicates",                              \
                   "Keep equal edges instead of merging them.")

/* `gib` of memory may be taken; 0: three quarters of what is free. */
basin_network_options basin_network_flags_options(const basin_network_flags *flags, double gib);
/* Opens the files, as `schema` (or NULL) has it, and says on standard error how they were read. */
basin_status basin_network_flags_open(basin_network **network, const basin_network_flags *flags,
                                      const basin_schema *schema, double gib, int paths,
                                      char **path, bool quiet, basin_error *error);
/* Option of commands that score: `type` has `parts`, an int64_t. */
#define BASIN_OPTION_PARTS(type, needs_)                                                           \
    BASIN_INTEGER(                                                                                 \
        type, parts, "parts", "N", 0, BASIN_CUT_PARTS,                                             \
        "Cut the graph into N parts, which ranks share; 0: 1, or with mpirun 8, or as many "       \
        "as there are ranks.",                                                                     \
        .needs = needs_, .more = true)
/* Parts of a graph to score: those of a folder, or, where `folder` is NULL, of what was opened,
 * which is then no longer held and becomes NULL. *parts is NULL where none are asked for. Options
 * of how files are read are errors beside a folder. A model with `facts` none reads none of edges.
 */
basin_status basin_cli_parts_open(basin_parts **parts, basin_network **opened, const char *folder,
                                  const basin_network_flags *flags, int64_t asked,
                                  const char *facts, basin_ranks *ranks, basin_error *error);
/* Prints what was written to `path`, as JSON or else, unless quiet, as text. */
basin_status basin_network_print_written(const char *path, const basin_network *network, bool json,
                                         bool quiet, basin_error *error);

#endif
