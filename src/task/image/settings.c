/* Settings of masked image completion: the table of their names, the presets, what is refused. */
#include <math.h>
#include <string.h>

#include "task/image/image.h"

#define BASIN_SETTINGS_TYPE basin_image_settings
static const basin_setting table[] = {
    BASIN_IMAGE_MODEL_SETTINGS(BASIN_SETTING_ENTRY) BASIN_IMAGE_TRAINING_SETTINGS(
        BASIN_SETTING_ENTRY) BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

int64_t basin_image_tokens(const basin_image_settings *s) {
    return (s->size / s->patch) * (s->size / s->patch);
}

int64_t basin_image_patch_values(const basin_image_settings *s) {
    return s->channels * s->patch * s->patch;
}

/* Just below a whole number is that number: 0.51 of 100 is 51. */
static int64_t count_of(double count_or_share, int64_t all) {
    double count = count_or_share < 1 ? count_or_share * (double)all : count_or_share;
    return (int64_t)floor(count + 1e-6);
}

int64_t basin_image_occluded(const basin_image_settings *s) {
    int64_t count = count_of(s->occlude, basin_image_tokens(s));
    return count > 1 ? count : 1;
}

int64_t basin_image_kept(const basin_image_settings *s) {
    return count_of(s->keep, basin_image_occluded(s));
}

void basin_image_settings_resolve(basin_image_settings *s) {
    int64_t occluded = basin_image_occluded(s), kept = basin_image_kept(s);
    s->occlude = (double)occluded;
    s->keep = (double)kept;
}

static basin_status check_sizes(const basin_image_settings *s, basin_error *error) {
    if (s->channels != 1 && s->channels != 3)
        return basin_fail(error, BASIN_BAD_VALUE, "channels is %lld, wanted 1 or 3",
                          (long long)s->channels);
    if (s->patch < 1 || s->size % s->patch != 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "patch is %lld, wanted a divisor of the size, %lld", (long long)s->patch,
                          (long long)s->size);
    return BASIN_OK;
}

static bool is_whole_or_share(double x) { return x < 1 || x == floor(x); }

static basin_status check_masks(const basin_image_settings *s, basin_error *error) {
    int64_t tokens = basin_image_tokens(s);
    if (!(s->occlude > 0) || s->occlude > (double)tokens || !is_whole_or_share(s->occlude))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "occlude is %.15g, wanted 1 to %lld patches, or a share below 1",
                          s->occlude, (long long)tokens);
    if (!is_whole_or_share(s->keep) || basin_image_kept(s) >= basin_image_occluded(s))
        return basin_fail(error, BASIN_BAD_VALUE, "keep is %.15g, wanted fewer than %lld occluded",
                          s->keep, (long long)basin_image_occluded(s));
    return BASIN_OK;
}

basin_status basin_image_settings_check(const basin_image_settings *s, basin_error *error) {
    basin_status status = check_sizes(s, error);
    if (!status) status = check_masks(s, error);
    if (status) return status;
    if (s->positive_gamma && !basin_choice_is(s->arch, "et"))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "positive_gamma with arch %s, which has no gamma; wanted arch et",
                          s->arch);
    if (!s->attention && !s->hopfield)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "neither attention nor Hopfield network: wanted at least one of them");
    return BASIN_OK;
}

static basin_status check(const void *values, basin_error *error) {
    return basin_image_settings_check(values, error);
}

const basin_task_settings basin_image_task = {"image", table, sizeof(basin_image_settings),
                                              check,   NULL,  NULL};
