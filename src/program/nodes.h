/* What the commands of nodes share. */
#ifndef BASIN_CLI_NODES_H
#define BASIN_CLI_NODES_H

#include "program/cli.h"
#include "tasks/nodes/context/context.h"
#include "tasks/nodes/nodes.h"

/* The end of the tables of these commands. */
#define BASIN_NODES_OPTIONS                                                                        \
    BASIN_OPTIONS_NETWORK, BASIN_OPTION_JSON, BASIN_WORK_OPTIONS, BASIN_OPTIONS_END

/* An error if a goal is given and not valid: before anything is trained or scored. */
basin_status basin_goal_check(const char *goal, basin_error *error);

/* A model with the network that it is used on. */
typedef struct basin_nodes_use {
    basin_nodes_model *model;     /* or NULL */
    const basin_nodes_info *info; /* of the model */
    basin_network *network;
    basin_nodes_predict_options how;
} basin_nodes_use;

/* Whether a command is of the group `node`; networks are read accordingly. */
bool basin_args_classes(basin_args *args);
/* The class of the model that has this name, or -1. */
int64_t basin_class_find(const basin_nodes_model *model, const char *name);
/* Opens the model, unless that is NULL. */
basin_status basin_nodes_model_open(basin_nodes_use *use, basin_args *args, const char *model,
                                    basin_error *error);
/* The same, and the operands from `first` on as files, read as training's were. */
basin_status basin_nodes_use_open(basin_nodes_use *use, basin_args *args, const char *model,
                                  int first, basin_error *error);
void basin_nodes_use_close(basin_nodes_use *use);

/* The expected effect of a threshold for a goal, in words and as fields. */
enum { BASIN_EXPECTED_TEXT = 400 };
const char *basin_expected_print(char text[BASIN_EXPECTED_TEXT],
                                 const basin_nodes_threshold_result *t, const char *goal);
void basin_record_expected(basin_record *r, const basin_nodes_threshold_result *t,
                           const char *goal);
/* Measures of a ranking, and of the alerts at a threshold. */
void basin_record_figures(basin_record *r, const basin_nodes_figures *figures, bool alerts);
/* Probabilities and observed frequencies. */
void basin_record_reliability(basin_record *r, const basin_reliability *reliability,
                              const char *title);

/* ---- nodes_context.c: --in-context ---- */

#define BASIN_CONTEXT_OPTIONS                                                                      \
    BASIN_FLAG(context.on, "in-context"),                                                          \
        BASIN_INTEGER(context.passes, "passes", "N", 1, 4, .needs = "in-context=on", .initial = 1, \
                      .more = true),                                                               \
        BASIN_TEXT(context.weights, 0, "weights", "FILE", .needs = "in-context=on", .more = true)

/* For BASIN_AT_EXIT. */
static inline void basin_context_close_at(basin_context **context) {
    basin_context_close(*context);
}
/* How networks are read with --in-context: before they are. */
void basin_args_context_read(basin_args *args);
/* Opens the weights and reads the network's columns. */
basin_status basin_args_context(basin_context **context, const basin_args *args,
                                const basin_network *network, basin_error *error);
/* Stores labels [N] (NULL: the network's, with notes on standard error). */
basin_status basin_args_store(basin_context *context, const basin_args *args, const int32_t *label,
                              basin_error *error);
/* Probabilities of nodes without a label; NaN for the others. */
basin_status basin_context_score(double *probability /* [N] */, const basin_args *args,
                                 const basin_network *network, basin_error *error);
void basin_record_context(basin_record *r, const basin_context *context,
                          const basin_context_explanation *e, const basin_network *network,
                          int64_t sources);
/* "20:180", anomalous and normal labels; by class. */
basin_status basin_labels_parse(int64_t labels[2], const char *text, basin_error *error);
/* Draws labels[c] training nodes of each class c; test nodes are others, at most 4,000. */
basin_status basin_labels_draw(uint8_t *part /* [N] */, const int64_t labels[2],
                               const basin_network *network, uint64_t seed, uint64_t run,
                               basin_error *error);
/* Model 0 stores the training nodes and scores the test nodes; the others are rivals on what it
 * stored. */
basin_status basin_context_compare(double *probability /* [N] */, basin_context *context,
                                   const basin_args *args, int model, const uint8_t *part,
                                   const basin_network *network, uint64_t seed, basin_error *error);

#endif
