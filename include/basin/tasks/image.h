/* Completing masked pictures: train a model, open one, use it.
 *
 *     #include <basin/tasks/image.h>
 *
 *     int main(void) {
 *         basin_error error;
 *         basin_backend *backend;
 *         basin_image_model *model;
 *         basin_picture photo = {0};
 *         basin_image_complete_options how = {.rectangle = {40, 60, 80, 80}};
 *         basin_image_complete_result done = {sizeof done};
 *         if (basin_backend_open(&backend, NULL, &error) ||
 *             basin_image_open(&model, "model.safetensors", backend, &error) ||
 *             basin_picture_read(&photo, "photo.jpg", &error) ||
 *             basin_image_complete(&done, model, &photo, 1, &how, &error) ||
 *             basin_picture_write_png("completed.png", &done.completed, &error))
 *             return 1; // error.text says why
 *         return 0;
 *     }
 */
#ifndef BASIN_TASKS_IMAGE_H
#define BASIN_TASKS_IMAGE_H

#include "basin/tasks/pictures.h"
#include "basin/tasks/run.h"
#include "basin/tasks/settings.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- models ---- */

/* One thread at a time may use a model, and the models of one backend. */
typedef struct basin_image_model basin_image_model;

/* A model file. The backend is the caller's and must outlive the model. */
BASIN_API basin_status basin_image_open(basin_image_model **model, const char *path,
                                        basin_backend *backend, basin_error *error);
BASIN_API void basin_image_close(basin_image_model *model);

/* What a model is and how it was trained. Members may be added at the end. */
typedef struct basin_image_info {
    const basin_settings *settings;
    int64_t parameters;
} basin_image_info;

/* Valid as long as the model. */
BASIN_API const basin_image_info *basin_image_get_info(const basin_image_model *model);

/* The weights with all settings; to a temporary file, then renamed. `dtype` is BASIN_F32, or
 * BASIN_BF16 for half the bytes; such a file opens like any other. */
BASIN_API basin_status basin_image_write(const char *path, basin_image_model *model,
                                         basin_dtype dtype, basin_error *error);

/* How a model descends when it is used. Zero members keep the values of training. */
typedef struct basin_image_descent_options {
    size_t size;   /* sizeof(basin_image_descent_options), or 0 */
    int64_t steps; /* a maximum for models with the setting implicit */
    double alpha;
} basin_image_descent_options;

/* Sets the descent for completion and evaluation from now on; files keep the model's own. An error
 * for models other than Energy Transformers, which have layers, not steps. */
BASIN_API basin_status basin_image_set_descent(basin_image_model *model,
                                               const basin_image_descent_options *options,
                                               basin_error *error);

/* ---- pictures ---- */

/* The pictures of a task: a collection, or paths. */
typedef struct basin_image_source {
    size_t size;                    /* sizeof(basin_image_source), or 0 */
    const basin_pictures *pictures; /* borrowed; NULL: `path` is opened */
    const char *const *path;        /* [paths], as basin_pictures_open takes them */
    int paths;
    basin_pictures_split split;
    int64_t limit;    /* use only the first `limit` pictures; 0: all */
    int64_t hold_out; /* the number of pictures held out for evaluation, chosen by the seed of the
                         settings; 0: none */
    int64_t max;      /* the maximum number of the pictures that are left then; 0: all */
} basin_image_source;

/* ---- training ---- */

typedef struct basin_image_data {
    size_t size; /* sizeof(basin_image_data), or 0 */
    const basin_image_source *train;
    const basin_image_source *test; /* evaluated after epochs; NULL: those that `train` holds out */
    int threads;                    /* that decode; 0: one per processor, at most 16 */
} basin_image_data;

/* What a training run read. */
typedef struct basin_image_data_result {
    size_t size; /* set by the caller */
    int64_t pictures, unreadable;
    size_t kept;   /* bytes of pictures kept decoded */
    double waited; /* seconds in which training waited for pictures */
    /* The error on the scored pictures of the mean colour of what is shown, which a model has to
     * beat; 0: none were. */
    double mean_mse;
} basin_image_data_result;

/* Gives every setting that was not set by its name (basin_settings_set) a suitable value: that of
 * the preset for such pictures, with their channels and size, or that of the model file `from` (or
 * NULL), from which training is to start. `summary`, `size` bytes, receives one line of text. */
BASIN_API basin_status basin_image_fit(basin_settings *settings, char *summary, size_t size,
                                       const basin_image_source *source, const char *from,
                                       basin_error *error);

/* Trains a model by settings of the task "image". `model` NULL: only the file is requested. `read`
 * may be NULL. After an interrupt the model holds what was learnt so far. The score is "test_mse".
 * With the setting `patience` the weights of the best score are kept, else those of the last step.
 */
BASIN_API basin_status basin_image_train(basin_image_model **model, basin_training_result *result,
                                         basin_image_data_result *read,
                                         const basin_settings *settings,
                                         const basin_image_data *data,
                                         const basin_training_options *training,
                                         basin_error *error);

/* ---- completion ---- */

/* What is missing, and how it is completed. A hole that is empty, reaches out of the picture or
 * takes all of it is an error. */
typedef struct basin_image_complete_options {
    size_t size; /* sizeof(basin_image_complete_options), or 0 */
    /* [count] masks of the pictures' sizes: pixels that are not black are missing. */
    const basin_picture *mask;
    int64_t rectangle[4];           /* without masks: left, top, width, height in pixels */
    const int64_t *more_rectangles; /* [rectangles, 4] besides `rectangle` */
    int64_t rectangles;
    uint64_t seed; /* of the search for patches */
    bool plain;    /* the model's output only: one pass per window, no correction at the border */
    bool smooth;   /* without the memory of the picture's own patches: the model and the membrane
                      from the rim; closer in the mean, and blurred */
    const basin_watch *watch; /* or NULL */
} basin_image_complete_options;

/* All of the picture's size and channels. What was not missing is the original, bit for bit. */
typedef struct basin_image_complete_result {
    size_t size; /* set by the caller */
    basin_picture masked, completed;
    basin_picture hole; /* grey: 255 where something was missing, else 0 */
    int64_t windows;    /* that the model looked at; 0 where no part of the hole is wider than 10
                           pixels (5/8 of the model's patch, if that is less): the membrane only */
    int64_t missing;    /* pixels */
    /* [energies] by step, per unit of confidence: of the memory of the picture's own patches, and
     * of the distance of their mean colours from the model's. NULL: nothing was retrieved. */
    double *energy, *model_energy;
    int energies;
} basin_image_complete_result;

/* Completes `count` pictures of any sizes; a grey
 * model completes the channels of a colour picture one by one; for a grey picture, the output of a
 * colour model is converted to grey. */
BASIN_API basin_status basin_image_complete(basin_image_complete_result *result, /* [count] */
                                            basin_image_model *model,
                                            const basin_picture *picture, /* [count] */
                                            int64_t count,
                                            const basin_image_complete_options *options,
                                            basin_error *error);
BASIN_API void basin_image_complete_result_free(basin_image_complete_result *result);

/* ---- evaluation ---- */

typedef struct basin_image_evaluate_options {
    size_t size; /* sizeof(basin_image_evaluate_options), or 0 */
    const basin_image_source *source;
    int masks;           /* mask seeds to average over; 0: 1 */
    uint64_t first_mask; /* the first of them */
    int64_t batch;       /* 0: as many pictures at a time as in training */
    bool fast;           /* only the error, neither PSNR nor SSIM */
    bool holes;          /* one rectangle of patches is hidden, as the setting `holes` draws them */
    double ratio;        /* else this share of the patches; 0: as many as in training */
    const basin_watch *watch; /* or NULL */
} basin_image_evaluate_options;

/* All occluded patches are replaced by MASK, none kept. The error is the mean over pixels of
 * occluded patches, of normalized values; PSNR and SSIM compare the whole picture, shown patches
 * pasted in, on values 0 .. 1; NaN where they are not measured. Means over pictures; deviations
 * between mask seeds, as basin_mean_deviation has them. It is an error if `hold_out` selects
 * pictures that the model was trained on. */
typedef struct basin_image_evaluate_result {
    size_t size; /* set by the caller */
    int64_t pictures, unreadable;
    int masks;
    double mse, psnr, ssim;
    double mse_deviation, psnr_deviation, ssim_deviation;
    double mean_mse, mean_psnr; /* errors of a baseline: the mean colour of the shown patches */
    int64_t *index;             /* [pictures] numbers in the collection */
    double *picture_mse;        /* [pictures] mean over the masks */
    int64_t *order;             /* [pictures] positions in `index` by rising error */
    int64_t trained_on;         /* how many the model was trained on; -1: it does not know */
    bool trained_on_about;      /* that number is an estimate, from a part of the pictures */
} basin_image_evaluate_result;

BASIN_API basin_status basin_image_evaluate(basin_image_evaluate_result *result,
                                            basin_image_model *model,
                                            const basin_image_evaluate_options *options,
                                            basin_error *error);
BASIN_API void basin_image_evaluate_result_free(basin_image_evaluate_result *result);

/* ---- a page on a model ---- */

typedef struct basin_image_report_options {
    size_t size;                      /* sizeof(basin_image_report_options), or 0 */
    const char *model_name;           /* what the page calls the model, */
    const char *name;                 /* and the pictures */
    const basin_image_source *source; /* pictures to evaluate and to choose from */
    int masks;                        /* mask seeds to evaluate with; 0: 1 */
    int64_t shown;                    /* pictures that the page shows step by step; at least 1 */
    const basin_watch *watch;         /* or NULL */
} basin_image_report_options;

/* One page of HTML that needs no other file, or the JSON document that it shows (path ends in
 * .json, or NULL: stdout; docs/reports.md has the schema). Scores, completed pictures, the descent
 * step by step, energies, attention of every patch, memories, keys and queries. `result`, where not
 * NULL, are the scores on the page; free them. */
BASIN_API basin_status basin_image_report(const char *path, basin_image_evaluate_result *result,
                                          basin_image_model *model,
                                          const basin_image_report_options *options,
                                          basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
