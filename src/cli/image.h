/* What the image commands share: how a model descends, where not as it was trained. */
#ifndef BASIN_CLI_IMAGE_H
#define BASIN_CLI_IMAGE_H

#include "basin/tasks/image.h"
#include "cli/command.h"

typedef struct basin_descent_flags {
    int64_t steps;
    double alpha, until;
    bool accelerate;
} basin_descent_flags;

/* `type` has a member `descent` of these. */
#define BASIN_OPTIONS_DESCENT(type)                                                                \
    BASIN_INTEGER(type, descent.steps, "steps", "N", 0, 10000,                                     \
                  "Steps of the descent, with --until at most so many; 0: the model's, with "      \
                  "--until 1000."),                                                                \
        BASIN_REAL(type, descent.alpha, "alpha", "X", 0, 1e6, "Size of a step; 0: the model's.",   \
                   .more = true),                                                                  \
        BASIN_REAL(type, descent.until, "until", "SHARE", 0, 0.999,                                \
                   "Descend until no token moves by more than this share of its length in a "      \
                   "step; 0: a fixed number of steps.",                                            \
                   .more = true),                                                                  \
        BASIN_FLAG(type, descent.accelerate, 0, "accelerate",                                      \
                   "With --until: Nesterov's momentum, dropped where the energy would rise.",      \
                   .more = true)

static inline basin_image_descent basin_descent_make(const basin_descent_flags *flags) {
    return (basin_image_descent){.steps = flags->steps,
                                 .alpha = flags->alpha,
                                 .until = flags->until,
                                 .accelerate = flags->accelerate};
}

bool basin_ends_with(const char *text, const char *end);

#endif
