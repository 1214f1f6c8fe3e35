/* Graphs: models that predict classes or values of graphs, or classes of their nodes.
 *
 *     basin_error error;
 *     basin_backend *backend;
 *     basin_graphs_model *model;
 *     basin_graphset set;
 *     basin_backend_open(&backend, NULL, &error);
 *     basin_graphs_open(&model, "model.safetensors", backend, &error);
 *     basin_graphset_read(&set, "MUTAG.zip", &error);
 *     basin_graphs_data data = {.set = &set};
 *     int64_t rows = basin_graphs_rows(model, &data);
 *     int64_t columns = basin_graphs_about(model).columns;
 *     float *output = malloc(rows * columns * sizeof(float));
 *     basin_graphs_predict(output, NULL, model, &data, &error);
 *
 * Sets come from files (basin/tasks/graphset.h) or from arrays (basin_graphset_from_arrays). */
#ifndef BASIN_TASKS_GRAPHS_H
#define BASIN_TASKS_GRAPHS_H

#include "basin/tasks/graphset.h"
#include "basin/tasks/run.h"
#include "basin/tasks/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a model ---- */

/* It belongs to its backend, which must outlive it, and with it to one thread at a time. */
typedef struct basin_graphs_model basin_graphs_model;

BASIN_API basin_status basin_graphs_open(basin_graphs_model **model, const char *path,
                                         basin_backend *backend, basin_error *error);
BASIN_API void basin_graphs_close(basin_graphs_model *model);
BASIN_API basin_status basin_graphs_write(const char *path, basin_graphs_model *model,
                                          basin_error *error);
/* What it is. */
typedef struct basin_graphs_info {
    const basin_settings *settings; /* the model's */
    basin_graphs_target target;
    int64_t columns;            /* of its predictions: classes, or values */
    const int64_t *class_value; /* [columns] the number of each class in the training data; NULL for
                                   a model of values */
    const char
        *names; /* molecules: names of the predicted columns, separated by line feeds; else NULL */
    int64_t parameters;
    int64_t members; /* models that it is the mean of */
    bool binary;     /* values are probabilities of yes */
    double near; /* molecules: the weight of the memory of training molecules in predictions; NaN:
                    no memory */
    const char *remembered; /* molecules: their ids, or "line 7" of their table, zero-terminated;
                               NULL: unknown */
    double temperature;     /* classes, yes or no: chosen on validation graphs; 1: none was */
    int64_t calibrated;     /* predictions of validation graphs that intervals and sets come from */
    int64_t width;          /* the number of features that the head reads per row */
} basin_graphs_info;
BASIN_API basin_graphs_info basin_graphs_about(const basin_graphs_model *model);
/* Convergence statistics of implicit descents (setting implicit) since the last call; see
 * basin_convergence_describe. */
BASIN_API basin_convergence basin_graphs_take_convergence(basin_graphs_model *model);

/* ---- data ---- */

/* Graphs of a set. Zero fields mean their defaults. */
typedef struct basin_graphs_data {
    const basin_graphset *set;
    const char *path; /* training: the file to read where `set` is NULL; else a name for messages */
    const int64_t *graph; /* [graphs] those to train on, predict or score; NULL: all of the set, or
                             in training its training part */
    int64_t graphs;
    const int64_t *validation; /* [validations] training on given graphs: these choose the epoch */
    int64_t validations;
    double hold_out; /* training on a set that is not divided: this part of it, stratified, chooses
                        the epoch; 0: the last epoch is kept */
    int64_t noisy; /* scores: the number of scores, `measures` [noisy], with the training noise left
                      on and drawn anew each time, as the paper evaluates: they differ by the noise
                      in one model, not by training, seeds or splits; 0: one score without noise */
    float *spread; /* predictions: the deviation over members [rows, columns] goes there; or NULL */
    float *nearest; /* predictions for molecules: the similarity, 0 to 1, of the nearest training
                       molecule [rows] goes there; or NULL */
    int64_t
        *nearest_at;    /* and where its name begins in `remembered` of the model [rows]; or NULL */
    float *low, *high;  /* predictions [rows, columns], where `calibrated` is above 0: conformal
                           intervals of values, infinite where there were too few validation graphs.
                           For classes, `low` is 1 where the set contains the class; for yes or no,
                           `low` is 1 where it contains no, `high` where it contains yes. Or NULL */
    basin_ranks *ranks; /* predictions: each rank computes some of the rows and receives all of
                           them, the same bits as one rank; NULL: one process */
    double coverage; /* the fraction of intervals or sets that contain the true value; 0: 0.9. For
                        classes it holds per class */
    int64_t limit; /* training: the maximum number of graphs, drawn by the settings' seed; 0: all */
} basin_graphs_data;

/* The graphs of a part: "train", "validation", "test" as the set is divided, "all", or "auto": the
 * test part of a set that has one, else all. Free *list. */
BASIN_API basin_status basin_graphs_part(int64_t **list, int64_t *count, const basin_graphset *set,
                                         const char *part, basin_error *error);

/* ---- use ---- */

/* How many rows predictions have: the graphs, or with classes of nodes all their nodes. */
BASIN_API int64_t basin_graphs_rows(const basin_graphs_model *model, const basin_graphs_data *data);
/* Probabilities of the classes, or values in the units of the training data. `class_value` may be
 * NULL, and is not written by a model of values. The set needs no labels. */
BASIN_API basin_status basin_graphs_predict(float *output /* [rows, columns] */,
                                            int64_t *class_value /* [rows] the likeliest */,
                                            basin_graphs_model *model,
                                            const basin_graphs_data *data, basin_error *error);

/* How many nodes and edges of the data have a label beyond those of training, which the model sees
 * as none. */
BASIN_API basin_status basin_graphs_unknown_labels(int64_t unknown[2] /* nodes, edges */,
                                                   const basin_graphs_model *model,
                                                   const basin_graphs_data *data,
                                                   basin_error *error);

/* What the head reads of each row of predictions. */
BASIN_API basin_status basin_graphs_embed(float *embedding /* [rows, width] */,
                                          basin_graphs_model *model, const basin_graphs_data *data,
                                          basin_error *error);

typedef struct basin_graphs_measures {
    int64_t items;       /* graphs, or nodes, with a class that the model knows */
    double accuracy;     /* percent of items */
    double balanced;     /* percent, mean over the classes */
    double loss;         /* cross entropy, or mean absolute error */
    double deviation;    /* root mean square error of values */
    double auroc, auprc; /* of two classes, or of several yes or no the mean; else NaN */
    double explained;    /* R squared, mean over the values; NaN for classes */
    int64_t missing;     /* targets without a value, or items of an unknown class; left out */
    double coverage;     /* the fraction of intervals or sets that contain the true value; NaN: the
                            model has none */
    double size;         /* mean width of intervals, each in units of its value's deviation where
                            there are several, or mean number of classes in sets */
    double merit; /* the score that selects epochs, higher is better: accuracy, class-averaged
                     accuracy of nodes, minus the mean absolute error; AUROC in percent for
                     molecules with two classes or several yes-or-no targets */
} basin_graphs_measures;
/* With several values, which may be in different units, each error is divided by the standard
 * deviation of that value in training before averaging (not where the model does not
 * standardise). */

/* One value in its own units, over the graphs of which it is known. */
typedef struct basin_graphs_value {
    int64_t known;       /* graphs */
    double mean, spread; /* of what is true: mean and population deviation */
    double error;        /* mean absolute error */
    double deviation;    /* root mean square error */
    double explained;    /* R squared: 1 - misses / spread; NaN where all are equal */
    double auroc, auprc; /* of yes or no; else NaN */
} basin_graphs_value;

/* Evaluates the model on labelled graphs; a model of values also for each value. Either result may
 * be NULL. */
BASIN_API basin_status basin_graphs_score(basin_graphs_measures *measures,
                                          basin_graphs_value *value /* [columns] */,
                                          basin_graphs_model *model, const basin_graphs_data *data,
                                          basin_error *error);
/* Whether a model knows a graph, or one that is equal to it, node by node. */
typedef enum basin_graphs_memory {
    BASIN_GRAPHS_NEW,
    BASIN_GRAPHS_TRAINED_ON,
    BASIN_GRAPHS_VALIDATED_ON, /* it had a part in the choice of the epoch */
} basin_graphs_memory;

/* BASIN_UNSUPPORTED where the model's file does not say. */
BASIN_API basin_status basin_graphs_seen(basin_graphs_memory *memory /* [count] */,
                                         const basin_graphs_model *model, const basin_graphset *set,
                                         const int64_t *graph, int64_t count, basin_error *error);

/* The contributions of nodes and edges to an output, by integrated gradients. The baseline is a
 * graph of the same shape whose features, positions and edge features are 0; the contributions sum
 * to the difference between the two outputs. */
typedef struct basin_graphs_explanation {
    int64_t graph, nodes, edges; /* edges are directed, in the order of the set */
    int64_t column;              /* the class or value explained */
    double predicted;            /* the predicted probability or value */
    double output, blank;        /* the logarithm of the odds of that class, or the value */
    double missed;               /* the part of their difference that the integral misses; small */
    double *node, *edge;         /* [nodes] [edges] what each adds */
    double *attention;           /* [nodes] their share of the CLS token's attention */
    double *energy;              /* [nodes] in the last block */
    bool has_energy;             /* else the last two are zeros */
    double share;           /* the weight of the memory of molecules in predictions; 0: no memory */
    double recalled, usual; /* the memory's probability or value, and its output for a molecule
                               unlike any other */
    double *memory;         /* [nodes] what each adds to the difference of these two */
} basin_graphs_explanation;

/* Explains the prediction for the single graph of the data: the mean over the model's members, and
 * separately the memory of molecules. `column` -1: the most likely class, or the first value. */
BASIN_API basin_status basin_graphs_explain(basin_graphs_explanation *explanation,
                                            basin_graphs_model *model,
                                            const basin_graphs_data *data, int64_t column,
                                            basin_error *error);
BASIN_API void basin_graphs_explanation_free(basin_graphs_explanation *explanation);

/* ---- training ---- */

/* Trains a model; `model` NULL: only its file is requested. Where the run was stopped, the model is
 * what it has learnt by then. The outcome's scores are validation_accuracy, validation_balanced and
 * validation_loss of classes, validation_loss and validation_deviation of values. */
BASIN_API basin_status basin_graphs_train(basin_graphs_model **model, basin_training_result *result,
                                          const basin_settings *settings,
                                          const basin_graphs_data *data,
                                          const basin_training_options *training,
                                          basin_error *error);

/* ---- cross-validation ---- */

typedef struct basin_graphs_cv {
    int64_t fold;    /* the one fold to run, from 1; 0: all */
    int64_t members; /* models per fold, with different seeds, whose outputs are averaged; 0: one */
    int64_t jobs; /* models trained at once, each with its own backend and thread; 0: one per core;
                     with cuda, where they share a device, two per core, at most 32, and at most one
                     per 4 GiB of its memory */
    int threads;  /* of each model; 0: cores / jobs */
    const char *backend; /* NULL: "cpu" */
    basin_products products;
    const basin_watch *watch; /* called by one thread at a time */
    basin_ranks *ranks; /* the folds are distributed over them, and every rank gets all results;
                           NULL: one process */
} basin_graphs_cv;

typedef struct basin_graphs_fold {
    bool done;
    int64_t trains, validations, tests; /* graphs */
    int64_t epochs, best_epoch;         /* of the first member */
    basin_graphs_measures validation, test;
    double seconds, epoch_seconds;
    int64_t memory; /* bytes of the training plan */
} basin_graphs_fold;

/* A new model for each fold: trained on its training graphs, its epoch chosen by its validation
 * graphs only, tested once. What is computed does not depend on `jobs`. An error in one fold, or an
 * interrupt, ends all. */
BASIN_API basin_status basin_graphs_cross_validate(basin_graphs_fold *result /* [folds] */,
                                                   const basin_settings *settings,
                                                   const basin_graphset *set,
                                                   const basin_folds *folds,
                                                   const basin_graphs_cv *spec, basin_error *error);
/* Baselines for a fold, trained on its training graphs and tested on its test graphs; neither uses
 * edges (where nodes have no features, their degrees are used). */
typedef struct basin_graphs_baselines {
    basin_graphs_measures constant; /* the most common class, the mean of each value */
    basin_graphs_measures
        regression; /* on the sums of node features over each graph and the number of nodes; on each
                       node's features where nodes have classes */
    const char *name[2]; /* "the commonest class", "logistic regression on sums of node features" */
} basin_graphs_baselines;

BASIN_API basin_status basin_graphs_baseline(basin_graphs_baselines *result,
                                             const basin_graphset *set, const basin_fold *fold,
                                             basin_backend *backend, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
