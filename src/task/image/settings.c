/* Settings of masked image completion: the table of their names, the presets, what is refused. */
#include <math.h>
#include <string.h>

#include "task/image/image.h"

#define BASIN_SETTINGS_TYPE basin_image_settings
static const basin_setting table[] = {
    BASIN_IMAGE_MODEL_SETTINGS(BASIN_SETTING_ENTRY) BASIN_IMAGE_TRAINING_SETTINGS(
        BASIN_SETTING_ENTRY) BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

/* The paper's table (appendix B), which the other presets change. Means and deviations of 0 are
 * measured on the training pictures. */
static const basin_image_settings imagenet = {
    .arch = "et",
    .channels = 3,
    .size = 224,
    .patch = 16,
    .dim = 768,
    .heads = 12,
    .head_dim = 64,
    .memories = 3072,
    .steps = 12,
    .alpha = 0.1,
    .attention = true,
    .hopfield = true,
    .hopfield_kind = "relu",
    .hopfield_power = 3,
    .self_attention = true,
    .init = "paper",
    .occlude = 100,
    .keep = 10,
    .mean = {0.485, 0.456, 0.406},
    .deviation = {0.229, 0.224, 0.225},
    .epochs = 100,
    .warmup = 2,
    .batch = 768,
    .rate = 5e-4,
    .rate_first = 5e-7,
    .rate_last = 5e-7,
    .decay = 0.05,
    .beta2 = 0.99,
    .clip = 1,
    .crop = "random",
    .crop_scale = 0.08,
    .flip = true,
    .jitter = 0.4,
};

/* What the released code does otherwise: a CLS token, and other first values. */
static basin_image_settings published(void) {
    basin_image_settings s = imagenet;
    s.cls = true;
    s.init = "published";
    return s;
}

static basin_image_settings small(int64_t channels, int64_t size, int64_t dim, int64_t heads,
                                  int64_t memories) {
    basin_image_settings s = imagenet;
    s.channels = channels;
    s.size = size;
    s.patch = 4;
    s.dim = dim;
    s.heads = heads;
    s.head_dim = 32;
    s.memories = memories;
    s.steps = 8;
    s.self_attention = false;
    s.occlude = 0.5;
    s.keep = 0.1;
    memset(s.mean, 0, sizeof s.mean);
    memset(s.deviation, 0, sizeof s.deviation);
    s.epochs = 20;
    s.batch = 256;
    s.rate = 1e-3;
    s.rate_first = s.rate_last = 0;
    s.crop = "none";
    s.flip = false;
    s.jitter = 0;
    return s;
}

static basin_image_settings fashion_large(void) {
    basin_image_settings s = small(1, 28, 192, 6, 640);
    s.steps = 12;
    s.epochs = 40;
    return s;
}

static basin_image_settings cifar10(void) {
    basin_image_settings s = small(3, 32, 256, 8, 1024);
    s.flip = true;
    s.epochs = 50;
    s.rate = 5e-4;
    return s;
}

static basin_image_settings photos(void) {
    basin_image_settings s = small(3, 64, 256, 8, 1024);
    s.patch = 8;
    s.crop = "random";
    s.flip = true;
    s.jitter = 0.4;
    s.epochs = 100;
    s.rate = 5e-4;
    return s;
}

static const char *const presets[] = {"default", "fashion",        "fashion-large",      "cifar10",
                                      "photos",  "paper-imagenet", "published-imagenet", NULL};

static void fill(void *values, const char *preset) {
    basin_image_settings *s = values;
    *s = small(1, 28, 128, 4, 512);
    if (!strcmp(preset, "paper-imagenet")) *s = imagenet;
    if (!strcmp(preset, "published-imagenet")) *s = published();
    if (!strcmp(preset, "fashion-large")) *s = fashion_large();
    if (!strcmp(preset, "cifar10")) *s = cifar10();
    if (!strcmp(preset, "photos")) *s = photos();
}

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
                                              presets, fill,  check};
