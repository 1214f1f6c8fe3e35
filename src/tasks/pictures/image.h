/* Masked image completion inside the library: settings and presets, masks, models in memory,
 * running them on batches of patches. Training, scores and completion (train.c, eval.c, complete.c)
 * stand on these; what callers see is in include/basin/tasks/image.h. */
#ifndef BASIN_TASK_IMAGE_IMAGE_H
#define BASIN_TASK_IMAGE_IMAGE_H

#include "basin/tasks/image.h"
#include "basin/train.h"
#include "tasks/common/pixels/picture.h"
#include "tasks/common/run/run.h"
#include "tasks/pictures/net.h"
#include "tasks/pictures/sets/pictures.h"

/* ---- settings ---- */

#define BASIN_IMAGE_MODEL_SETTINGS(X)                                                              \
    X(CHOICE, arch, BASIN_CHOICES("et", "vit", "albert"),                                          \
      "The model: Energy Transformer, or a Vision Transformer of the same sizes, or one whose "    \
      "layers share their weights. A ViT has `memories` hidden units and `steps` layers.")         \
    X(INTEGER, channels, "1|3", 1, 3, "Grey or colour.")                                           \
    X(INTEGER, size, "PIXELS", 1, 8192, "Height and width of a picture.")                          \
    X(INTEGER, patch, "PIXELS", 1, 8192, "Height and width of a patch.")                           \
    BASIN_BLOCK_SETTINGS(X)                                                                        \
    X(SWITCH, self_attention, "Whether a token attends to itself.",                                \
      .needs = "arch=et attention=on")                                                             \
    X(SWITCH, cls, "A CLS token before the patches, as in the published code.")                    \
    X(CHOICE, init, BASIN_CHOICES("paper", "published"),                                           \
      "First values: all of them N(0, 0.02), as the paper has it; or as the published code draws " \
      "them.",                                                                                     \
      .needs = "arch=et")                                                                          \
    X(REAL, occlude, "N|SHARE", 0, 1 << 24,                                                        \
      "Patches of a picture that are occluded and count in the loss: a share of all where it is "  \
      "below 1, else their number.")                                                               \
    X(REAL, keep, "N|SHARE", 0, 1 << 24,                                                           \
      "How many of them are left as they are in training, or which share of them.",                \
      .needs = "holes!=1")                                                                         \
    X(REAL, holes, "SHARE", 0, 1,                                                                  \
      "Share of the training pictures that lose one rectangle of patches instead, its sides 1/7 "  \
      "to 4/7 of the picture's; all of it is hidden.",                                             \
      .absent = "0")                                                                               \
    X(REAL, strokes, "SHARE", 0, 1,                                                                \
      "Share of these holes that are as a brush paints them: one to three strokes or spots of "    \
      "any "                                                                                       \
      "direction, up to a fifth of the picture wide.",                                             \
      .absent = "0", .needs = "holes!=0")                                                          \
    X(CHANNELS, mean, "R,G,B",                                                                     \
      "Pixels become (value / 255 - mean) / deviation; 0: measured on the training pictures.")     \
    X(CHANNELS, deviation, "R,G,B", "The deviation of each channel; 0: measured.")
#define BASIN_IMAGE_TRAINING_SETTINGS(X)                                                           \
    BASIN_RUN_SETTINGS(X)                                                                          \
    BASIN_SHARD_SETTINGS(X)                                                                        \
    X(CHOICE, crop, BASIN_CHOICES("none", "random"),                                               \
      "How a picture becomes SIZE x SIZE in training: resized and cut in the middle, or a random " \
      "part of it, resized.")                                                                      \
    X(REAL, crop_scale, "SHARE", 1e-4, 1,                                                          \
      "The minimum share of a picture's area that a random part has.", .absent = "0.08",           \
      .needs = "crop=random")                                                                      \
    X(SWITCH, flip, "Mirror every other picture in training.")                                     \
    X(REAL, jitter, "X", 0, 1, "Change brightness, contrast and saturation by up to this factor.") \
    X(REAL, average, "X", 0, 0.99999,                                                              \
      "Averaging of weights over steps, w' = X w' + (1 - X) w; averages are scored and kept. 0: "  \
      "none.",                                                                                     \
      .absent = "0")

typedef struct basin_image_settings {
    BASIN_IMAGE_MODEL_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_IMAGE_TRAINING_SETTINGS(BASIN_SETTING_FIELD)
    BASIN_LOOSE_SETTINGS(BASIN_SETTING_FIELD)
    bool holes_apart; /* the file has a separate decoder for holes; see net.h */
} basin_image_settings;

/* Table, presets, and what cannot be trained or run. */
extern const basin_task_settings basin_image_task;
basin_status basin_image_settings_check(const void *values, basin_error *error);

int64_t basin_image_tokens(const basin_image_settings *settings);       /* N */
int64_t basin_image_patch_values(const basin_image_settings *settings); /* P */
/* How many patches are occluded in training and scoring, and how many of them kept in training,
 * whether the settings say numbers or shares; shares are rounded down, to no fewer than one. */
int64_t basin_image_occluded(const basin_image_settings *settings);
int64_t basin_image_kept(const basin_image_settings *settings);
/* Replaces shares by the numbers that they come to, as models and their files have them. */
void basin_image_settings_resolve(basin_image_settings *settings);

/* ---- masks ---- */

enum { BASIN_PATCH_SHOWN, BASIN_PATCH_REPLACED, BASIN_PATCH_KEPT, BASIN_PATCH_GUESSED };

/* `occlude` of `tokens` patches, of which `keep` are KEPT and the others REPLACED; every choice
 * equally likely, a function of (seed, stream). */
void basin_image_mask_draw(uint8_t *mask /* [tokens] */, int64_t tokens, int64_t occlude,
                           int64_t keep, uint64_t seed, uint64_t stream);
/* One rectangle of REPLACED patches, each of its sides 1/7 to 4/7 of the picture's `side` patches,
 * every size and place equally likely; a function of (seed, stream). */
void basin_image_hole_draw(uint8_t *mask /* [side, side] */, int64_t side, uint64_t seed,
                           uint64_t stream);
/* What a brush hides: one to three strokes, each a straight line of any direction and length (0: a
 * spot), its width a fourteenth to a fifth of the side; never all patches. */
void basin_image_strokes_draw(uint8_t *mask /* [side, side] */, int64_t side, uint64_t seed,
                              uint64_t stream);
/* The mask of a picture in training: a hole with the chance `holes`, else scattered patches. */
void basin_image_mask_train(uint8_t *mask /* [N] */, const basin_image_settings *settings,
                            uint64_t seed, uint64_t stream);

/* ---- a model in memory ---- */

/* What it remembers of its training; see image.h. */
typedef struct basin_image_card {
    char *text;       /* JSON for people; NULL: none */
    int64_t pictures; /* that were trained on */
    int64_t views;    /* of them, in all; in training: those of the model that it begins with */
    uint64_t held;    /* a digest of those held out; 0: none */
    uint64_t run;     /* in training, one of those that this run trains on; 0: not known */
    int64_t *print;   /* [prints] fingerprints, ascending */
    int64_t prints;   /* 0: not known */
} basin_image_card;

struct basin_image_model {
    basin_image_settings settings;
    basin_settings described; /* the same, as callers see them */
    basin_backend *backend;   /* the caller's */
    basin_store *store;
    basin_image_info info; /* of them */
    basin_image_card card;
    basin_image_descent_options descent; /* zeros: as the settings have it */
    struct basin_image_runner *kept;     /* of the last completion, for the next one; or NULL */
};

/* First weights by the settings' seed. */
basin_status basin_image_model_new(basin_image_model **model, const basin_image_settings *settings,
                                   basin_backend *backend, basin_error *error);
/* The same without weights: the caller writes them into the store. */
basin_status basin_image_model_bare(basin_image_model **model, const basin_image_settings *settings,
                                    basin_backend *backend, basin_error *error);

/* The model on a separate graph for one batch size, with the model's parameters. */
typedef struct basin_image_graph {
    basin_graph *graph;
    basin_params params;
    basin_image_net net;
    int64_t batch;
    basin_expr patches, replaced, occluded; /* inputs [B, N, P] [B, N] [B, N] */
    basin_expr output;                      /* patches [B, N, P] */
} basin_image_graph;

basin_status basin_image_graph_new(basin_image_graph *graph, const basin_image_settings *settings,
                                   int64_t batch, basin_error *error);
void basin_image_graph_free(basin_image_graph *graph);

/* Writes `count` pictures and what is replaced of them into a plan of that graph. */
basin_status basin_image_write_batch(basin_plan *plan, const basin_image_graph *graph,
                                     const float *patches, const uint8_t *mask, int64_t count,
                                     basin_error *error);

/* The settings by which the model runs: its own, with the steps and alpha that a caller has set. */
basin_image_settings basin_image_run_settings(const basin_image_model *model);

/* Completes patches in batches of one size; what a short batch lacks is filled up. */
typedef struct basin_image_runner {
    basin_image_graph graph;
    basin_plan *plan;
} basin_image_runner;

basin_status basin_image_runner_new(basin_image_runner *runner, basin_image_model *model,
                                    int64_t batch, basin_error *error);
void basin_image_runner_free(basin_image_runner *runner);
/* One that stays with the model until another batch is asked for: it is slow to make. */
basin_status basin_image_runner_borrow(basin_image_runner **runner, basin_image_model *model,
                                       int64_t batch, basin_error *error);
void basin_image_runner_drop(basin_image_model *model);
/* count <= batch pictures. */
basin_status basin_image_runner_run(basin_image_runner *runner, float *output, /* [count, N, P] */
                                    const float *patches,                      /* [count, N, P] */
                                    const uint8_t *mask,                       /* [count, N] */
                                    int64_t count, basin_error *error);

/* ---- pixels ---- */

/* How pictures and patches belong together: for basin_patches_to_pixels and the like. */
basin_patching basin_image_patching(const basin_image_settings *settings);

/* ---- The pictures of a task: which ones, and the feeds of training and of scores ---- */

/* Chosen pictures of a collection. */
typedef struct basin_image_set {
    const basin_pictures *pictures;
    basin_pictures *opened; /* the same where it is the set's own; else NULL */
    int64_t *item;          /* [items] the chosen ones */
    int64_t items;
    bool held; /* they are said to be all that was held out of training */
} basin_image_set;

/* The pictures that are held out (`held`), or the rest; nothing held out: all of them. */
basin_status basin_image_set_open(basin_image_set *set, const basin_image_source *source, bool held,
                                  uint64_t seed, basin_error *error);
void basin_image_set_close(basin_image_set *set);

/* Batches of patches. `how` has the batch and how it is read; pictures, augmentation and seed are
 * those of the set and of the settings. Unreadable pictures are reported to the watcher. */
basin_status basin_image_feed(basin_picture_feed **feed, const basin_image_set *set,
                              const basin_image_settings *settings,
                              const basin_picture_feed_config *how, const basin_watch *watch,
                              basin_error *error);

/* ---- What a model remembers of its training, in its file: fingerprints of the pictures, so that
 * nobody scores it on what it was trained on without a warning, and a card for people
 * ("basin.card": paths, date, views, scores) ---- */

/* Fingerprints that a file keeps at most, of pictures spread evenly over larger sets: 64 KiB. */
enum { BASIN_IMAGE_PRINTS = 8192 };

/* How many of a set of pictures were trained on. */
typedef struct basin_image_overlap {
    int64_t trained_on; /* -1: the model does not know */
    bool exact;         /* all were compared with all; else the number is an estimate */
    bool held_out;      /* they are the very pictures that training held out */
} basin_image_overlap;

/* What is known when training ends. */
typedef struct basin_image_facts {
    const basin_image_source *train; /* the paths */
    const char *from;                /* the model that it began with; NULL: none */
    const basin_training_result *outcome;
    int64_t held_out, batch;
} basin_image_facts;

/* The fingerprints of a run's pictures, with those of the model file that it begins with (`from`,
 * or NULL); of `held` only how to know them again. */
basin_status basin_image_card_begin(basin_image_card *card, const basin_image_set *train,
                                    const basin_image_set *held, const basin_bundle *from,
                                    basin_error *error);
/* Writes the card itself. */
basin_status basin_image_card_end(basin_image_card *card, const basin_image_facts *facts,
                                  basin_error *error);
void basin_image_card_free(basin_image_card *card);

/* Out of a model file, where it has one, and into a bundle. */
basin_status basin_image_card_read(basin_image_card *card, const basin_bundle *bundle,
                                   basin_error *error);
basin_status basin_image_card_add(basin_bundle *bundle, const basin_image_card *card,
                                  basin_error *error);

basin_status basin_image_card_compare(basin_image_overlap *overlap, const basin_image_card *card,
                                      const basin_image_set *set, basin_error *error);

/* ---- The settings that a run trains with ---- */

/* Fills in what the settings leave open: statistics of the pictures and shards, from the
 * checkpoint, the model that the run begins with, or the training pictures. What differs from the
 * checkpoint is an error. */
basin_status basin_image_start(basin_image_settings *settings, const basin_run *run,
                               const basin_image_set *set, basin_error *error);

/* ---- Scores of a chosen set of pictures, and the masks they are scored with ---- */

/* Mask number `mask_seed` of picture `index`: a separate stream, the same whatever the batch. */
void basin_image_evaluate_mask(uint8_t *mask /* [N] */, const basin_image_settings *settings,
                               int64_t index, uint64_t mask_seed);

/* The mean squared error over the replaced patches of one picture. */
double basin_image_masked_error(const float *output, /* [N, P] */
                                const float *truth,  /* [N, P] */
                                const uint8_t *mask, /* [N] */
                                int64_t tokens, int64_t values);
/* The same of the mean colour of the shown patches; and a picture filled in with it, [N, P]. */
double basin_image_mean_error(const float *truth, const uint8_t *mask,
                              const basin_image_settings *settings);
void basin_image_mean_fill(float *out, const float *truth, const uint8_t *mask,
                           const basin_image_settings *settings);
/* `output` where the mask says REPLACED, the truth elsewhere; all [N, P]. */
void basin_image_paste(float *out, const float *output, const float *truth, const uint8_t *mask,
                       int64_t tokens, int64_t values);
/* PSNR of a whole picture; `plane` are two of [channels, size, size], written. */
double basin_image_psnr(float *plane[2], const float *pasted, const float *truth,
                        const basin_image_settings *settings);

/* As basin_image_evaluate; the source that `scoring` names is not looked at. */
basin_status basin_image_evaluate_set(basin_image_evaluate_result *scores, basin_image_model *model,
                                      const basin_image_set *set,
                                      const basin_image_evaluate_options *scoring,
                                      basin_error *error);

#endif
