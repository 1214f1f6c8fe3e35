/* Masked image completion inside the library: settings and presets, masks, models in memory,
 * running them on batches of patches. Training, scores and completion (train.c, eval.c, complete.c)
 * stand on these; what callers see is in include/basin/tasks/image.h. */
#ifndef BASIN_TASK_IMAGE_IMAGE_H
#define BASIN_TASK_IMAGE_IMAGE_H

#include "basin/model.h"
#include "basin/tasks/image.h"
#include "basin/train.h"
#include "picture/patches.h"
#include "train/run/rests.h"
#include "train/run/settings.h"
#include "train/run/watch.h"

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
      "The least share of a picture's area that a random part has.", .absent = "0.08",             \
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
} basin_image_settings;

/* Table, presets, and what cannot be trained or run: a patch that does not divide the size, more
 * occluded patches than there are. */
extern const basin_task_settings basin_image_task;
basin_status basin_image_settings_check(const basin_image_settings *settings, basin_error *error);

int64_t basin_image_tokens(const basin_image_settings *settings);       /* N */
int64_t basin_image_patch_values(const basin_image_settings *settings); /* P */
/* How many patches are occluded in training and scoring, and how many of them kept in training,
 * whether the settings say numbers or shares; shares are rounded down, to no fewer than one. */
int64_t basin_image_occluded(const basin_image_settings *settings);
int64_t basin_image_kept(const basin_image_settings *settings);
/* Replaces shares by the numbers that they come to, as models and their files have them. */
void basin_image_settings_resolve(basin_image_settings *settings);

/* ---- masks ---- */

enum { BASIN_PATCH_SHOWN, BASIN_PATCH_REPLACED, BASIN_PATCH_KEPT };

/* `occlude` of `tokens` patches, of which `keep` are KEPT and the others REPLACED; every choice
 * equally likely, a function of (seed, stream). */
void basin_image_mask_draw(uint8_t *mask /* [tokens] */, int64_t tokens, int64_t occlude,
                           int64_t keep, uint64_t seed, uint64_t stream);
/* One rectangle of REPLACED patches, each of its sides 1/7 to 4/7 of the picture's `side` patches,
 * every size and place equally likely; a function of (seed, stream). */
void basin_image_hole_draw(uint8_t *mask /* [side, side] */, int64_t side, uint64_t seed,
                           uint64_t stream);
/* The mask of a picture in training: a hole with the chance `holes`, else scattered patches. */
void basin_image_mask_train(uint8_t *mask /* [N] */, const basin_image_settings *settings,
                            uint64_t seed, uint64_t stream);

/* ---- a model in memory ---- */

/* What it remembers of its training; see card.h. */
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
    int64_t parameters;
    basin_image_card card;
    basin_image_descent descent;     /* zeros: as the settings have it */
    basin_rests rests;               /* since they were taken */
    struct basin_image_runner *kept; /* of the last completion, for the next one; or NULL */
};

/* First weights by the settings' seed. */
basin_status basin_image_model_new(basin_image_model **model, const basin_image_settings *settings,
                                   basin_backend *backend, basin_error *error);
/* The same without weights: the caller writes them into the store. */
basin_status basin_image_model_bare(basin_image_model **model, const basin_image_settings *settings,
                                    basin_backend *backend, basin_error *error);
/* The settings that a model file or a checkpoint of ours holds. */
basin_status basin_image_settings_read(basin_image_settings *settings, const basin_bundle *bundle,
                                       basin_error *error);
/* Writes them there, with the kind of model. */
basin_status basin_image_settings_write(basin_bundle *bundle, const basin_image_settings *settings,
                                        basin_error *error);

/* The model on a graph of its own for one batch size; its parameters are the model's. */
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
/* Whether all that was built on it since could be built. */
basin_status basin_image_graph_check(const basin_image_graph *graph, basin_error *error);
void basin_image_graph_free(basin_image_graph *graph);

/* The settings by which the model runs: its own, with the steps and alpha that a caller has set. */
basin_image_settings basin_image_run_settings(const basin_image_model *model);

/* Completes patches in batches of one size; what a short batch lacks is filled up. It descends as
 * the model was told to when the runner was made. Where the descent ends by itself it goes step by
 * step, each picture on its own account: what it comes to does not depend on its batch. */
typedef struct basin_image_runner {
    basin_image_graph graph;
    basin_plan *plan; /* all steps; or one step, between the two below */
    basin_plan *encoder, *decoder;
    basin_expr first, tokens, next, decoded; /* [B, N (+ 1), D] three times, [B, N, P] */
    basin_expr energy;                       /* [B] after the step, where it is accelerated */
    bool accelerate;
    double until;             /* 0: all steps at once */
    int64_t steps;            /* how many there are, or at most */
    int64_t *taken;           /* [batch] steps that each picture of the last run took */
    basin_image_model *model; /* counts the rest points of runs */
} basin_image_runner;

basin_status basin_image_runner_new(basin_image_runner *runner, basin_image_model *model,
                                    int64_t batch, basin_error *error);
void basin_image_runner_free(basin_image_runner *runner);
/* One that stays with the model until another batch is asked for: to make one takes longer than to
 * complete a small picture. */
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

#endif
