/* The settings of masked image completion as options, and the backend that commands share. */
#ifndef BASIN_CLI_IMAGE_OPTIONS_H
#define BASIN_CLI_IMAGE_OPTIONS_H

#include "cli/command.h"
#include "task/image/image.h"

/* For a struct with members `settings` (basin_image_settings) and `preset`. */
#define BASIN_IMAGE_MODEL_OPTIONS(type)                                                            \
    BASIN_CHOICE(type, preset, "preset", BASIN_IMAGE_PRESETS,                                      \
                 "Settings to start from; other options override them. imagenet is the paper's "   \
                 "table, fashion a small model for 28 x 28 grey pictures."),                       \
        BASIN_CHOICE(type, settings.arch, "arch", "et|vit|albert",                                 \
                     "The model: Energy Transformer, or a Vision Transformer of the same sizes, "  \
                     "or one whose layers share their weights."),                                  \
        BASIN_INTEGER(type, settings.size, "size", "PIXELS", 1, 8192,                              \
                      "Height and width of a picture."),                                           \
        BASIN_INTEGER(type, settings.channels, "channels", "1|3", 1, 3, "Grey or colour."),        \
        BASIN_INTEGER(type, settings.patch, "patch", "PIXELS", 1, 8192,                            \
                      "Height and width of a patch."),                                             \
        BASIN_INTEGER(type, settings.dim, "dim", "D", 1, 65536, "Token dimension."),               \
        BASIN_INTEGER(type, settings.heads, "heads", "H", 1, 4096, "Attention heads."),            \
        BASIN_INTEGER(type, settings.head_dim, "head-dim", "Y", 1, 65536, "Dimension of a head."), \
        BASIN_INTEGER(type, settings.memories, "memories", "M", 1, 1 << 24,                        \
                      "Hopfield memories; of a ViT the hidden units."),                            \
        BASIN_INTEGER(type, settings.steps, "steps", "T", 1, 10000,                                \
                      "Steps of the descent; of a ViT its layers."),                               \
        BASIN_REAL(type, settings.alpha, "alpha", "STEP", 0, 1e3, "Size of a step."),              \
        BASIN_SWITCH(type, settings.attention, "attention", "The attention energy."),              \
        BASIN_SWITCH(type, settings.hopfield, "hopfield", "The Hopfield energy."),                 \
        BASIN_SWITCH(type, settings.self_attention, "self-attention",                              \
                     "Whether a token attends to itself."),                                        \
        BASIN_SWITCH(type, settings.cls, "cls",                                                    \
                     "A CLS token before the patches, as in the published code."),                 \
        BASIN_CHOICE(type, settings.init, "init", "paper|published",                               \
                     "First values: all of them N(0, 0.02), as the paper has it; or as the "       \
                     "published code draws them."),                                                \
        BASIN_INTEGER(type, settings.occlude, "occlude", "N", 1, 1 << 24,                          \
                      "Patches of a picture that are occluded and count in the loss."),            \
        BASIN_INTEGER(type, settings.keep, "keep", "N", 0, 1 << 24,                                \
                      "How many of them are left as they are in training.")

#define BASIN_IMAGE_TRAINING_OPTIONS(type)                                                         \
    BASIN_INTEGER(type, settings.epochs, "epochs", "N", 1, 1 << 24, "Passes over the pictures."),  \
        BASIN_INTEGER(type, settings.warmup, "warmup", "N", 0, 1 << 24,                            \
                      "Epochs in which the learning rate rises."),                                 \
        BASIN_INTEGER(type, settings.batch, "batch", "N", 1, 1 << 20, "Pictures a step."),         \
        BASIN_REAL(type, settings.rate, "rate", "RATE", 0, 1e3, "Highest learning rate."),         \
        BASIN_REAL(type, settings.rate_ends, "rate-ends", "RATE", 0, 1e3,                          \
                   "Learning rate at the start and at the end."),                                  \
        BASIN_REAL(type, settings.decay, "decay", "W", 0, 1e3, "Weight decay."),                   \
        BASIN_REAL(type, settings.beta2, "beta2", "B", 0, 1, "AdamW's second decay rate."),        \
        BASIN_REAL(type, settings.clip, "clip", "NORM", 0, 1e9,                                    \
                   "Largest norm of the gradient; 0: any."),                                       \
        BASIN_CHOICE(type, settings.crop, "crop", "none|random",                                   \
                     "How a picture becomes SIZE x SIZE in training: resized and cut in the "      \
                     "middle, or a random part of it, resized."),                                  \
        BASIN_REAL(type, settings.crop_scale, "crop-scale", "SHARE", 1e-4, 1,                      \
                   "The least share of a picture's area that a random part has."),                 \
        BASIN_SWITCH(type, settings.flip, "flip", "Mirror every other picture in training."),      \
        BASIN_REAL(type, settings.jitter, "jitter", "J", 0, 1,                                     \
                   "Change brightness, contrast and saturation by up to this factor."),            \
        BASIN_SWITCH(type, settings.recompute, "recompute",                                        \
                     "Keep one token tensor a step and compute the rest again: less memory, more " \
                     "time."),                                                                     \
        BASIN_OPTION_SEED(type)

#endif
