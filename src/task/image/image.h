/* Masked image completion as a task: settings and presets, masks, model files, running a model on
 * batches of patches. Training, evaluation and completion (image_train.c, image_eval.c,
 * image_complete.c) stand on these. */
#ifndef BASIN_TASK_IMAGE_IMAGE_H
#define BASIN_TASK_IMAGE_IMAGE_H

#include "basin/model.h"
#include "basin/train.h"
#include "picture/patches.h"
#include "train/run/settings.h"
#include "train/run/watch.h"

/* ---- settings ---- */

typedef struct basin_image_settings {
    const char *arch;                       /* et, vit, albert */
    int64_t channels, size, patch;          /* square pictures of size x size pixels */
    int64_t dim, heads, head_dim, memories; /* D, H, Y, M; of a ViT M is the hidden layer */
    int64_t steps;                          /* T; of a ViT its depth */
    double alpha;
    bool attention, hopfield, self_attention, cls;
    const char *init;      /* first values: paper, published */
    int64_t occlude, keep; /* patches that count, and how many of them are left as they are */
    double mean[3], deviation[3]; /* of the channels; pixels are (value / 255 - mean) / deviation */
    int64_t epochs, warmup, batch;
    double rate, rate_ends, decay, beta2, clip;
    const char *crop;  /* none, random: the random resized crop of the paper's table */
    double crop_scale; /* the least share of a picture's area that a random crop has */
    bool flip;
    double jitter;
    bool recompute; /* trade time for memory */
    int64_t seed;
} basin_image_settings;

extern const basin_setting basin_image_settings_table[];
/* False where there is no preset of that name. "imagenet" is the paper's table; "fashion" a small
 * model for 28 x 28 grey pictures, "fashion-large" one of twice its parameters and a longer
 * descent. */
bool basin_image_preset(basin_image_settings *settings, const char *name);
#define BASIN_IMAGE_PRESETS "imagenet|cifar10|fashion|fashion-large|photos"
/* What cannot be trained or run: a patch that does not divide the size, more occluded patches than
 * there are. */
basin_status basin_image_settings_check(const basin_image_settings *settings, basin_error *error);

int64_t basin_image_tokens(const basin_image_settings *settings);       /* N */
int64_t basin_image_patch_values(const basin_image_settings *settings); /* P */

/* ---- masks ---- */

enum { BASIN_PATCH_SHOWN, BASIN_PATCH_REPLACED, BASIN_PATCH_KEPT };

/* `occlude` of `tokens` patches, of which `keep` are KEPT and the others REPLACED; every choice
 * equally likely, a function of (seed, stream). */
void basin_image_mask_draw(uint8_t *mask /* [tokens] */, int64_t tokens, int64_t occlude,
                           int64_t keep, uint64_t seed, uint64_t stream);

/* ---- a model in memory ---- */

typedef struct basin_image_session {
    basin_image_settings settings;
    basin_backend *backend; /* the caller's */
    basin_store *store;
} basin_image_session;

/* First weights by the settings' seed. */
basin_status basin_image_session_new(basin_image_session *session,
                                     const basin_image_settings *settings, basin_backend *backend,
                                     basin_error *error);
/* A model file of ours, or the published weights as npz. */
basin_status basin_image_session_open(basin_image_session *session, const char *path,
                                      basin_backend *backend, basin_error *error);
void basin_image_session_close(basin_image_session *session);
/* The model with its settings, aside and renamed. */
basin_status basin_image_session_write(const char *path, basin_image_session *session,
                                       basin_error *error);
/* The settings that a model file or a checkpoint of ours holds. */
basin_status basin_image_settings_read(basin_image_settings *settings, const basin_bundle *bundle,
                                       basin_error *error);

/* The model on a graph of its own for one batch size; its parameters are the session's. */
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

/* Completes patches: batch after batch of equal size, the last one filled up by itself. */
typedef struct basin_image_runner {
    basin_image_graph graph;
    basin_plan *plan;
} basin_image_runner;

basin_status basin_image_runner_new(basin_image_runner *runner, basin_image_session *session,
                                    int64_t batch, basin_error *error);
void basin_image_runner_free(basin_image_runner *runner);
/* count <= batch pictures. */
basin_status basin_image_runner_run(basin_image_runner *runner, float *output, /* [count, N, P] */
                                    const float *patches,                      /* [count, N, P] */
                                    const uint8_t *mask,                       /* [count, N] */
                                    int64_t count, basin_error *error);

/* ---- pixels ---- */

/* How pictures and patches belong together: for basin_patches_to_pixels and the like. */
basin_patching basin_image_patching(const basin_image_settings *settings);

#endif
