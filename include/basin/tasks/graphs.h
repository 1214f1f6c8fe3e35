/* Graphs: models that predict classes or values of graphs, or classes of their nodes.
 *
 *     basin_graphs_model *model;
 *     basin_graphset set;
 *     basin_graphs_open(&model, "model.safetensors", backend, &error);
 *     basin_graphset_read(&set, "MUTAG.zip", NULL, &error);
 *     basin_graphs_data data = {.set = &set};
 *     int64_t rows = basin_graphs_rows(model, &data);
 *     int64_t columns = basin_graphs_get_info(model)->columns;
 *     basin_graphs_predict_result result = {
 *         .output = malloc(sizeof(float[rows * columns]))};
 *     basin_graphs_predict(&result, model, &data, NULL, &error);
 *
 * Sets come from files or from arrays (basin/tasks/graphset.h). */
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
/* What it is: valid as long as the model. */
typedef struct basin_graphs_info {
    const basin_settings *settings; /* the model's */
    basin_graphs_target target;
    int64_t columns;            /* of its predictions: classes, or values */
    const int64_t *class_value; /* [columns] the number of each class in the training data; NULL for
                                   a model of values */
    const char *const *column;  /* [columns] names of values of a table, or classes that are words;
                                   else NULL */
    const char *table_target;   /* molecules: `target` of basin_graphset_options for tables with the
                                   same columns and classes; else NULL */
    bool binary;                /* values are probabilities of yes */
    int64_t parameters;
    int64_t members;     /* models that it is the mean of */
    double temperature;  /* classes, yes or no: chosen on validation graphs; 1: none was */
    int64_t calibrated;  /* predictions of validation graphs that intervals and sets come from */
    int64_t remembered;  /* training graphs in its memory; 0: it has none */
    double memory_share; /* the weight of the memory in predictions */
    const char *const *remembered_name; /* [remembered] ids, or "line 7" of their table; NULL:
                                           unknown */
} basin_graphs_info;
BASIN_API const basin_graphs_info *basin_graphs_get_info(const basin_graphs_model *model);
/* Convergence statistics of implicit descents (setting implicit) since the last call; see
 * basin_convergence_describe. */
BASIN_API void basin_graphs_take_convergence(basin_convergence *convergence,
                                             basin_graphs_model *model);

/* ---- use ---- */

/* Graphs of a set. */
typedef struct basin_graphs_data {
    size_t size; /* sizeof this struct, or 0 */
    const basin_graphset *set;
    const char *path;     /* a name for messages; NULL: the set's */
    const int64_t *graph; /* [graphs] those to use; NULL: all */
    int64_t graphs;
} basin_graphs_data;

/* How many rows predictions have: the graphs, or with classes of nodes all their nodes. */
BASIN_API int64_t basin_graphs_rows(const basin_graphs_model *model, const basin_graphs_data *data);

typedef struct basin_graphs_predict_options {
    size_t size;     /* sizeof this struct, or 0 */
    double coverage; /* the fraction of intervals or sets that contain the true value; 0: 0.9. For
                        classes it holds per class */
} basin_graphs_predict_options;

/* Arrays of the caller that predictions go to; NULL: not needed. */
typedef struct basin_graphs_predict_result {
    size_t size;          /* sizeof this struct, or 0 */
    float *output;        /* [rows, columns] probabilities of the classes, or values in the units of
                             the training data; needed */
    int64_t *class_value; /* [rows] the most likely class; not written by a model of values */
    float *spread;        /* [rows, columns] the deviation over members */
    float *low, *high;    /* [rows, columns] where `calibrated` is above 0: conformal intervals of
                             values, infinite where there were too few validation graphs. For classes,
                             `low` is 1 where the set contains the class; for yes or no, `low` is 1
                             where it contains no, `high` where it contains yes. Both or none */
    float *nearest;       /* [rows] where graphs are remembered: the similarity, 0 to 1, of the
                             nearest */
    int64_t *nearest_at;  /* [rows] and its place among them */
} basin_graphs_predict_result;

/* The set needs no labels. Options NULL: defaults. */
BASIN_API basin_status basin_graphs_predict(const basin_graphs_predict_result *result,
                                            basin_graphs_model *model,
                                            const basin_graphs_data *data,
                                            const basin_graphs_predict_options *options,
                                            basin_error *error);

/* How many nodes and edges of the data have a label beyond those of training, which the model sees
 * as none. */
BASIN_API basin_status basin_graphs_unknown_labels(int64_t unknown[2] /* nodes, edges */,
                                                   const basin_graphs_model *model,
                                                   const basin_graphs_data *data,
                                                   basin_error *error);

typedef struct basin_graphs_measures {
    int64_t items;       /* graphs, or nodes, with a class that the model knows */
    double accuracy;     /* percent of items */
    double balanced;     /* percent, mean over the classes */
    double loss;         /* cross entropy, or mean absolute error */
    double deviation;    /* root mean square error of values */
    double auroc, auprc; /* of two classes, or of several yes or no the mean; else NaN */
    double r_squared;    /* mean over the values; NaN for classes */
    int64_t missing;     /* targets without a value, or items of an unknown class; left out */
    double coverage;     /* the fraction of intervals or sets that contain the true value; NaN: the
                            model has none */
    double width;        /* mean width of intervals, each in units of its value's deviation where
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
    double r_squared;    /* 1 - squared errors / spread; NaN where all are equal */
    double auroc, auprc; /* of yes or no; else NaN */
} basin_graphs_value;

typedef struct basin_graphs_evaluate_options {
    size_t size;     /* sizeof this struct, or 0 */
    double coverage; /* as in basin_graphs_predict_options */
} basin_graphs_evaluate_options;

typedef struct basin_graphs_evaluate_result {
    size_t size; /* sizeof this struct, or 0 */
    basin_graphs_measures measures;
    basin_graphs_value
        *value; /* [columns] an array of the caller, for a model of values; or NULL */
    basin_graphs_measures network_only, memory_only; /* each by itself; merit NaN: no memory */
} basin_graphs_evaluate_result;

/* How good a model is on labelled graphs. Options NULL: defaults. */
BASIN_API basin_status basin_graphs_evaluate(basin_graphs_evaluate_result *result,
                                             basin_graphs_model *model,
                                             const basin_graphs_data *data,
                                             const basin_graphs_evaluate_options *options,
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

/* What nodes and edges add to an output: its change where the graph lacks them. In a molecule an
 * atom, with what hangs on it, is replaced by hydrogen, or a hetero atom of the frame by carbon;
 * frame carbons share the rest, so that all make up the difference from the mean in training, and
 * edges add nothing. */
typedef struct basin_graphs_explanation {
    int64_t graph, nodes, edges; /* edges are directed, in the order of the set */
    int64_t column;              /* the class or value explained */
    double predicted;            /* the predicted probability or value */
    double output;               /* the logarithm of the odds of that class, or the value */
    double blank;        /* the same of the mean of the training molecules; NaN for other graphs */
    double *node, *edge; /* [nodes] [edges] what each adds; half of an edge both ways */
} basin_graphs_explanation;

/* Explains the prediction, of all members and the memory, for one graph. */
enum { BASIN_GRAPHS_LIKELIEST = -1 }; /* the most likely class, or the first value */
BASIN_API basin_status basin_graphs_explain(basin_graphs_explanation *explanation,
                                            basin_graphs_model *model, const basin_graphset *set,
                                            int64_t graph, int64_t column, basin_error *error);
BASIN_API void basin_graphs_explanation_free(basin_graphs_explanation *explanation);

/* ---- training ---- */

typedef struct basin_graphs_train_data {
    size_t size; /* sizeof this struct, or 0 */
    const basin_graphset *set;
    const char *path; /* the file to read where `set` is NULL; else a name for messages */
    const int64_t
        *graph; /* [graphs] those to train on; NULL: the training part of the set, or all */
    int64_t graphs;
    const int64_t *validation; /* [validations] with `graph`: these choose the epoch */
    int64_t validations;
    double hold_out; /* without `validation`, of a set that is not divided: this part, stratified,
                        chooses the epoch, another of each member; 0: the last epoch is kept */
    const int64_t *group; /* [graphs of the set] those of one number, such as of one scaffold, stay
                             together in that part; NULL: only copies do */
    int64_t limit;        /* the maximum number of graphs, drawn by the settings' seed; 0: all */
} basin_graphs_train_data;

/* Trains a model; `model` NULL: only its file is requested. Where the run was stopped, the model is
 * what it has learnt by then. The outcome's scores are validation_accuracy, validation_balanced and
 * validation_loss of classes, validation_loss and validation_deviation of values. */
BASIN_API basin_status basin_graphs_train(basin_graphs_model **model, basin_training_result *result,
                                          const basin_settings *settings,
                                          const basin_graphs_train_data *data,
                                          const basin_training_options *training,
                                          basin_error *error);

/* ---- cross-validation ---- */

typedef struct basin_graphs_cv_options {
    size_t size;     /* sizeof this struct, or 0 */
    int64_t fold;    /* the one fold to run, from 1; 0: all */
    int64_t members; /* models per fold, with different seeds, whose outputs are averaged; 0: one */
    int64_t jobs; /* models trained at once, each with its own backend and thread; 0: one per core;
                     with cuda, where they share a device, two per core, at most 32, and at most one
                     per 4 GiB of its memory */
    int threads;  /* of each model; 0: cores / jobs */
    const char *backend; /* NULL: "cpu" */
    basin_products products;
    const basin_watch *watch; /* called by one thread at a time */
} basin_graphs_cv_options;

typedef struct basin_graphs_cv_result {
    bool done;
    int64_t trains, validations, tests; /* graphs */
    int64_t epochs, best_epoch;         /* of the first member */
    basin_graphs_measures validation, test;
    basin_graphs_measures network_only, memory_only; /* each by itself on the test graphs (the
                                 memory also has those for validation); merit NaN: no memory */
    double memory_share;                             /* in predictions */
    double seconds, epoch_seconds;
    int64_t memory; /* bytes of the training plan */
} basin_graphs_cv_result;

/* A new model for each fold: trained on its training graphs, its epoch chosen by its validation
 * graphs only, tested once. What is computed does not depend on `jobs`. An error in one fold, or an
 * interrupt, ends all. */
BASIN_API basin_status basin_graphs_cross_validate(basin_graphs_cv_result *result /* [folds] */,
                                                   const basin_settings *settings,
                                                   const basin_graphset *set,
                                                   const basin_folds *folds,
                                                   const basin_graphs_cv_options *spec,
                                                   basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
