/* What `basin node eval` runs and prints: figures of every model on every split (eval.c), and its
 * tables (eval_table.c). */
#ifndef BASIN_CLI_NODE_EVAL_H
#define BASIN_CLI_NODE_EVAL_H

#include "basin/tasks/node.h"
#include "cli/network.h"
#include "cli/rivals/rivals.h"
#include "cli/splits.h"
#include "cli/training.h"

typedef struct basin_node_eval_options {
    const char *split, *rivals, *model;
    basin_settings *settings;
    basin_start start;
    basin_network_flags data;
    double ratio, memory;
    int64_t runs, first, threads;
    bool json, quiet;
    const char *backend, *products, *dtype;
    const basin_parsed *parsed; /* which options were given */
} basin_node_eval_options;

/* What one model reached on one split. */
typedef struct basin_node_figures {
    basin_score validation, test;
    double seconds, cpu; /* cpu: seconds of all threads */
    int64_t epoch;
} basin_node_figures;

/* Model 0 is that of the settings, the others are rivals. */
typedef struct basin_node_eval {
    const basin_node_eval_options *o;
    basin_backend *backend;
    basin_network *network;
    basin_cli_watch watch;
    size_t memory;
    uint8_t *part; /* [N] */
    basin_cli_rivals rivals;
    int models;
    basin_node_figures *figures; /* [models, runs] */
    basin_splits splits;
    int64_t seed;
    bool stopped;
    /* of model 0: */
    int64_t classes, parameters;
    char **class_name;  /* [classes] */
    int64_t *confusion; /* [classes, classes] test nodes of all runs */
} basin_node_eval;

/* False: there was no memory for a table. */
bool basin_node_eval_print(const basin_node_eval *eval);
void basin_node_eval_print_json(const basin_node_eval *eval);

#endif
