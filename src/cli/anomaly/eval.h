/* What `basin anomaly eval` runs and prints: the bench with the figures of every model on every
 * split (eval.c), and its tables (eval_table.c). */
#ifndef BASIN_CLI_ANOMALY_EVAL_H
#define BASIN_CLI_ANOMALY_EVAL_H

#include "cli/anomaly/options.h"
#include "cli/rivals/rivals.h"
#include "cli/splits.h"
#include "cli/training.h"
#include "io/file.h"

typedef struct basin_eval_options {
    const char *split, *scores, *rivals;
    const char *model, *part, *threshold_for; /* of a back-test */
    basin_settings *settings;
    basin_start start;
    basin_network_flags data;
    double ratio, memory;
    int64_t runs, first, split_seed, threads;
    bool best_run, reliability, no_baselines, only_baselines, unseen, unsupervised, json, quiet;
    const char *backend, *products, *dtype;
    basin_ranks *ranks;         /* runs are dealt to them */
    const basin_parsed *parsed; /* which options were given */
} basin_eval_options;

/* Models in the order of the rows: the detector, its trees and its network alone, the plain models,
 * the rivals. */
enum {
    BASIN_EVAL_DETECTOR,
    BASIN_EVAL_TREES,
    BASIN_EVAL_NETWORK,
    BASIN_EVAL_PLAIN,
    BASIN_EVAL_RIVALS = BASIN_EVAL_PLAIN + BASIN_ANOMALY_BASELINES
};

/* What one model reached on one split. */
typedef struct basin_eval_figures {
    basin_score validation, test;
    basin_reliability reliability;  /* on test, of the detector */
    double threshold, seconds, cpu; /* cpu: seconds of all threads */
    int64_t epoch;
} basin_eval_figures;

typedef struct basin_eval {
    const basin_eval_options *o;
    basin_backend *backend;
    basin_network *network;
    basin_cli_watch watch;
    size_t memory;
    uint8_t *part;
    basin_cli_rivals rivals;
    int models;
    basin_eval_figures *figures; /* [models, runs] */
    basin_writer scores;         /* open where the options ask for it */
    basin_splits splits;
    int64_t seed;
    bool stopped;
    double overlap;                   /* test nodes over the others, for intervals */
    char title[100], trained_on[200]; /* of the detector */
    int64_t parameters;
} basin_eval;

/* The file of --scores, of one split. */
basin_status basin_cli_scores_write(const char *path, const basin_network *network,
                                    const uint8_t *part /* [N] */,
                                    const double *probability /* [N] */, basin_error *error);
/* The file of scores: rank 0 writes it, the others keep theirs aside until it is shared. */
basin_status basin_eval_scores_begin(basin_eval *eval, basin_error *error);
/* Keeps the file, or after a failure or a stop discards it. */
basin_status basin_eval_scores_end(basin_eval *eval, basin_status status, basin_error *error);
/* The runs that this rank makes, and afterwards: every rank gets all figures, rank 0 all scores. */
void basin_eval_deal(const basin_eval *eval, int64_t *first, int64_t *last);
basin_status basin_eval_share(basin_eval *eval, basin_error *error);

/* Whether a model has a row. */
bool basin_eval_shown(const basin_eval *eval, int model);
/* False: there was no memory for a table. */
bool basin_eval_print(const basin_eval *eval);
void basin_eval_print_json(const basin_eval *eval);

#endif
