/* Graphs: models that tell classes or values of graphs, or classes of their nodes.
 *
 *     basin_error error;
 *     basin_backend *backend;
 *     basin_graphs_model *model;
 *     basin_graphset set;
 *     basin_backend_open(&backend, NULL, &error);
 *     basin_graphs_open(&model, "model.safetensors", backend, &error);
 *     basin_graphset_read(&set, "MUTAG.zip", &error);
 *     basin_graphs_data data = {.set = &set};
 *     float *output = malloc(basin_graphs_rows(model, &data) * basin_graphs_about(model).columns *
 * 4); basin_graphs_predict(output, NULL, model, &data, &error);
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
    const int64_t *class_value; /* [columns] the number that the training data give each class; NULL
                                   of a model of values */
    const char *names; /* of molecules: of what it predicts, line feeds between; else NULL */
    int64_t parameters;
    int64_t members;        /* models that it is the mean of */
    bool binary;            /* values are probabilities of yes */
    double near;            /* of molecules: the weight, in predictions, of the memory of training
                               molecules; NaN: it has none */
    const char *remembered; /* of molecules: their ids, or "line 7" of their table, each ends with
                               a zero byte; NULL: not known */
    double temperature; /* of classes and of yes or no: chosen on validation graphs; 1: none was */
    int64_t calibrated; /* predictions of validation graphs that intervals and sets come from */
    int64_t width;      /* numbers in what its head reads of a row */
} basin_graphs_info;
BASIN_API basin_graphs_info basin_graphs_about(const basin_graphs_model *model);
/* How descents to rest (setting implicit) went since it was asked last; see basin_convergence_tell.
 */
BASIN_API basin_convergence basin_graphs_take_convergence(basin_graphs_model *model);

/* ---- data ---- */

/* Graphs of a set. Zero fields mean their defaults. */
typedef struct basin_graphs_data {
    const basin_graphset *set;
    const char *path; /* training: read from here where there is no set; else a name for messages */
    const int64_t *graph; /* [graphs] those to train on, predict or score; NULL: all of the set, or
                             in training its training part */
    int64_t graphs;
    const int64_t *validation; /* [validations] training on given graphs: these choose the epoch */
    int64_t validations;
    double hold_out; /* training on a set that is not divided: this part of it, stratified, chooses
                        the epoch; 0: the last epoch is kept */
    int64_t noisy;   /* scores: so many of them, `measures` [noisy], with the noise of training left
                        on, other noise each time, as the paper evaluates: what differs is the noise
                        in one model, not training, seeds or splits; 0: one score without noise */
    float *spread; /* predictions: the deviation over members [rows, columns] goes there; or NULL */
    float *nearest; /* predictions for molecules: the similarity, 0 to 1, of the nearest training
                       molecule [rows] goes there; or NULL */
    int64_t
        *nearest_at;    /* and where its name begins in `remembered` of the model [rows]; or NULL */
    float *low, *high;  /* predictions [rows, columns], where `calibrated` is above 0: conformal
                           intervals of values, infinite where validation graphs were too few; of
                           classes `low` is 1 where the set has the class; of yes or no `low` is 1
                           where it has no, `high` where it has yes. Or NULL */
    basin_ranks *ranks; /* predictions: each rank computes some of the rows, and all get all, the
                           bits of one rank; NULL: alone */
    double coverage; /* the share of intervals or sets that hold the truth; 0: 0.9. Of classes for
                        each class by itself */
    int64_t limit;   /* training on at most so many graphs, drawn by the settings' seed; 0: all */
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
    int64_t items;       /* graphs, or nodes, whose class the model knows */
    double accuracy;     /* percent of items */
    double balanced;     /* percent, mean over the classes */
    double loss;         /* cross entropy, or mean absolute error */
    double deviation;    /* root mean square error of values */
    double auroc, auprc; /* of two classes, or of several yes or no the mean; else NaN */
    double explained;    /* R squared of values, the mean over them; else NaN */
    int64_t missing;     /* values that are not known, or items whose class is not; left out */
    double coverage;     /* the share of intervals or sets that hold the truth; NaN: the model has
                            none */
    double size;         /* mean width of intervals, each in units of its value's deviation where
                            there are several, or mean number of classes in sets */
    double merit; /* what chooses epochs, more is better: accuracy, class-averaged accuracy of
                     nodes, minus the mean absolute error; of molecules with two classes, or
                     several yes or no, AUROC in percent */
} basin_graphs_measures;
/* Of several values, which may be in different units, the errors are means of each error over the
 * deviation of that value in training (in plain units where the model does not standardise). */

/* One value in its own units, over the graphs of which it is known. */
typedef struct basin_graphs_value {
    int64_t known;       /* graphs */
    double mean, spread; /* of what is true: mean and population deviation */
    double error;        /* mean absolute error */
    double deviation;    /* root mean square error */
    double explained;    /* R squared: 1 - misses / spread; NaN where all are equal */
    double auroc, auprc; /* of yes or no; else NaN */
} basin_graphs_value;

/* How well the model does on labelled graphs; of a model of values also for each value. Either may
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

/* Which nodes and edges an output convergence on. Beside the graph stands a blank one of the same
 * shape: features, positions and edge features are 0. What nodes and edges add, by gradients
 * integrated from the one to the other, makes up the difference. */
typedef struct basin_graphs_explanation {
    int64_t graph, nodes, edges; /* edges are directed, in the order of the set */
    int64_t column;              /* the class or value that it is about */
    double predicted;            /* the probability or value that predictions have */
    double output, blank;        /* the logarithm of the odds of that class, or the value */
    double missed;               /* what the integral leaves of their difference; small */
    double *node, *edge;         /* [nodes] [edges] what each adds */
    double *attention;           /* [nodes] their share of the CLS token's attention */
    double *energy;              /* [nodes] in the last block */
    bool has_energy;             /* else the last two are zeros */
    double share;                /* of the memory of molecules in predictions; 0: it has none */
    double recalled, usual; /* the probability or the value that the memory has, and what it has for
                               a molecule that is like none */
    double *memory;         /* [nodes] what each adds to the difference of these two */
} basin_graphs_explanation;

/* Of the one graph of the data, the mean over the model's members; beside it that of the memory of
 * molecules. `column` -1: the likeliest class, or the first value. */
BASIN_API basin_status basin_graphs_explain(basin_graphs_explanation *explanation,
                                            basin_graphs_model *model,
                                            const basin_graphs_data *data, int64_t column,
                                            basin_error *error);
BASIN_API void basin_graphs_explanation_free(basin_graphs_explanation *explanation);

/* ---- training ---- */

/* Trains a model; `model` NULL: only its file is requested. Where the run was stopped, the model is
 * what it has learnt by then. The outcome's scores are validation_accuracy, validation_balanced and
 * validation_loss of classes, validation_loss and validation_deviation of values. */
BASIN_API basin_status basin_graphs_train(basin_graphs_model **model, basin_outcome *outcome,
                                          const basin_settings *settings,
                                          const basin_graphs_data *data,
                                          const basin_training *training, basin_error *error);

/* ---- cross-validation ---- */

typedef struct basin_graphs_cv {
    int64_t fold;        /* the one fold to run, from 1; 0: all */
    int64_t members;     /* models a fold, of different seeds, whose outputs are averaged; 0: one */
    int64_t jobs;        /* models at once, each on a backend and a thread of its own; 0: one a
                            core; with cuda, where they share a device, two a core, 32 at most, and
                            no more than its memory has 4 GiB for each */
    int threads;         /* of each model; 0: cores / jobs */
    const char *backend; /* NULL: "cpu" */
    basin_products products;
    const basin_watch *watch; /* called by one thread at a time */
    basin_ranks *ranks; /* folds are dealt to them, and every rank gets all results; NULL: alone */
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
 * graphs alone, tested once. What is computed does not depend on `jobs`. An error in one fold, or
 * an interrupt, ends all. */
BASIN_API basin_status basin_graphs_cross_validate(basin_graphs_fold *result /* [folds] */,
                                                   const basin_settings *settings,
                                                   const basin_graphset *set,
                                                   const basin_folds *folds,
                                                   const basin_graphs_cv *spec, basin_error *error);
/* What a model has to beat on a fold, trained on its training graphs and tested on its test graphs;
 * neither looks at an edge (where nodes have no features, their degrees are looked at). */
typedef struct basin_graphs_baselines {
    basin_graphs_measures constant;   /* the commonest class, the mean of each value */
    basin_graphs_measures regression; /* on sums over each graph of its nodes' features and on their
                                         number; on a node's own where nodes have classes */
    const char *name[2]; /* "the commonest class", "logistic regression on sums of node features" */
} basin_graphs_baselines;

BASIN_API basin_status basin_graphs_baseline(basin_graphs_baselines *result,
                                             const basin_graphset *set, const basin_fold *fold,
                                             basin_backend *backend, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
