/* Settings of masked image completion: the table of their names, the presets, what is refused. */
#include <math.h>
#include <string.h>

#include "base/try.h"
#include "basin/random.h"
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

basin_status basin_image_settings_check(const void *values, basin_error *error) {
    const basin_image_settings *s = values;
    BASIN_TRY(check_sizes(s, error));
    BASIN_TRY(check_masks(s, error));
    if (s->positive_gamma && !basin_choice_is(s->arch, "et"))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "positive_gamma with arch %s, which has no gamma; wanted arch et",
                          s->arch);
    if (!s->attention && !s->hopfield)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "neither attention nor Hopfield network: wanted at least one of them");
    return BASIN_OK;
}

const basin_task_settings basin_image_task = {
    "image", table, sizeof(basin_image_settings), basin_image_settings_check, NULL, NULL, NULL};

/* ---- Masks and patches of masked image completion; see image.h ---- */

/* Selection sampling: patch i is taken with the chance that leaves every subset equally likely,
 * then the kept ones are chosen among the taken in the same way. */
void basin_image_mask_draw(uint8_t *mask, int64_t tokens, int64_t occlude, int64_t keep,
                           uint64_t seed, uint64_t stream) {
    basin_random random = basin_random_start(seed, stream, 0);
    int64_t open = occlude, kept = keep;
    for (int64_t i = 0; i < tokens; i++) {
        mask[i] = BASIN_PATCH_SHOWN;
        if ((int64_t)basin_random_below(&random, (uint64_t)(tokens - i)) >= open) continue;
        bool stays = (int64_t)basin_random_below(&random, (uint64_t)open) < kept;
        mask[i] = stays ? BASIN_PATCH_KEPT : BASIN_PATCH_REPLACED;
        kept -= stays;
        open--;
    }
}

void basin_image_hole_draw(uint8_t *mask, int64_t side, uint64_t seed, uint64_t stream) {
    basin_random random = basin_random_start(seed, stream, 0);
    int64_t least = (side + 3) / 7, most = (4 * side + 3) / 7, size[2], from[2];
    if (least < 1) least = 1;
    if (most < least) most = least;
    for (int i = 0; i < 2; i++) {
        size[i] = least + (int64_t)basin_random_below(&random, (uint64_t)(most - least + 1));
        from[i] = (int64_t)basin_random_below(&random, (uint64_t)(side - size[i] + 1));
    }
    for (int64_t i = 0; i < side * side; i++) {
        int64_t y = i / side - from[0], x = i % side - from[1];
        bool inside = y >= 0 && y < size[0] && x >= 0 && x < size[1];
        mask[i] = inside ? BASIN_PATCH_REPLACED : BASIN_PATCH_SHOWN;
    }
}

/* The choice has a seed of its own, so that scattered masks do not depend on `holes`. */
void basin_image_mask_train(uint8_t *mask, const basin_image_settings *s, uint64_t seed,
                            uint64_t stream) {
    enum { HOLE_SALT = 0x686f6c65 };
    if ((double)basin_random_uniform_at(seed ^ HOLE_SALT, stream, 0) < s->holes)
        basin_image_hole_draw(mask, s->size / s->patch, seed, stream);
    else
        basin_image_mask_draw(mask, basin_image_tokens(s), basin_image_occluded(s),
                              basin_image_kept(s), seed, stream);
}

basin_patching basin_image_patching(const basin_image_settings *s) {
    basin_patching p = {.size = s->size, .patch = s->patch, .channels = s->channels};
    for (int c = 0; c < 3; c++) p.mean[c] = s->mean[c], p.deviation[c] = s->deviation[c];
    return p;
}
