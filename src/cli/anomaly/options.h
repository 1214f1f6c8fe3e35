/* What the anomaly commands share: options of the data and of the work, figures in percent. */
#ifndef BASIN_CLI_ANOMALY_OPTIONS_H
#define BASIN_CLI_ANOMALY_OPTIONS_H

#include "basin/tasks/anomaly.h"
#include "cli/command.h"
#include "cli/watch.h"
#include "io/json_writer.h"

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
        BASIN_TEXT(type, data.edge_type, 0, "relation-column", "COLUMN",                           \
                   "CSV: relations of edges."),                                                    \
        BASIN_TEXT(type, data.drop, 0, "drop", "COLUMNS",                                          \
                   "CSV: columns to leave out, by commas."),                                       \
        BASIN_CHOICE(type, data.missing, "missing", "error|zero|mean",                             \
                     "Features that are empty, NaN or infinite."),                                 \
        BASIN_INTEGER(type, data.unlabelled_first, "unlabelled-first", "N", 0, 9e15,               \
                      "The first N nodes have no label that counts (Amazon: 3305).")

/* What computes; `type` has backend, products, threads and quiet. */
#define BASIN_ENGINE_OPTIONS(type)                                                                 \
    BASIN_OPTION_BACKEND(type), BASIN_OPTION_PRODUCTS(type), BASIN_OPTION_THREADS(type),           \
        BASIN_OPTION_QUIET(type)
/* The same for commands that do not train, with memory. */
#define BASIN_WORK_OPTIONS(type)                                                                   \
    BASIN_REAL(type, memory, "memory", "GIB", 0, 1e6,                                              \
               "Memory to stay within; 0: three quarters of what is free."),                       \
        BASIN_ENGINE_OPTIONS(type)

basin_network_options basin_data_network_options(const basin_data_options *options);
/* Opens the files as a network with the union of its relations. */
basin_status basin_data_open(basin_network **network, char **path, int paths,
                             const basin_data_options *options, basin_error *error);

/* The measures of a score in percent, as an object; nothing where there is no score. */
void basin_put_percent(basin_json *json, const char *key, const basin_score *score);

#endif
