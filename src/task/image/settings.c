/* Settings of masked image completion: the table of their names, the presets, what is refused. */
#include <math.h>
#include <string.h>

#include "task/image/image.h"

typedef basin_image_settings type;

static const char *const archs[] = {"et", "vit", "albert", NULL};
static const char *const inits[] = {"paper", "published", NULL};
static const char *const crops[] = {"none", "random", NULL};

const basin_setting basin_image_settings_table[] = {
    BASIN_SETTING_CHOICE_OF(type, arch, archs),
    BASIN_SETTING_INTEGER_OF(type, channels, 1, 3),
    BASIN_SETTING_INTEGER_OF(type, size, 1, 8192),
    BASIN_SETTING_INTEGER_OF(type, patch, 1, 8192),
    BASIN_SETTING_INTEGER_OF(type, dim, 1, 65536),
    BASIN_SETTING_INTEGER_OF(type, heads, 1, 4096),
    BASIN_SETTING_INTEGER_OF(type, head_dim, 1, 65536),
    BASIN_SETTING_INTEGER_OF(type, memories, 1, 1 << 24),
    BASIN_SETTING_INTEGER_OF(type, steps, 1, 10000),
    BASIN_SETTING_REAL_OF(type, alpha, 0, 1e3),
    BASIN_SETTING_SWITCH_OF(type, attention),
    BASIN_SETTING_SWITCH_OF(type, hopfield),
    BASIN_SETTING_SWITCH_OF(type, self_attention),
    BASIN_SETTING_SWITCH_OF(type, cls),
    BASIN_SETTING_CHOICE_OF(type, init, inits),
    BASIN_SETTING_INTEGER_OF(type, occlude, 1, 1 << 24),
    BASIN_SETTING_INTEGER_OF(type, keep, 0, 1 << 24),
    BASIN_SETTING_REALS_OF(type, mean, 3),
    BASIN_SETTING_REALS_OF(type, deviation, 3),
    BASIN_SETTING_INTEGER_OF(type, epochs, 1, 1 << 24),
    BASIN_SETTING_INTEGER_OF(type, warmup, 0, 1 << 24),
    BASIN_SETTING_INTEGER_OF(type, batch, 1, 1 << 20),
    BASIN_SETTING_REAL_OF(type, rate, 0, 1e3),
    BASIN_SETTING_REAL_OF(type, rate_ends, 0, 1e3),
    BASIN_SETTING_REAL_OF(type, decay, 0, 1e3),
    BASIN_SETTING_REAL_OF(type, beta2, 0, 1),
    BASIN_SETTING_REAL_OF(type, clip, 0, 1e9),
    BASIN_SETTING_CHOICE_OF(type, crop, crops),
    BASIN_SETTING_REAL_SINCE(type, crop_scale, 1e-4, 1, 0.08),
    BASIN_SETTING_SWITCH_OF(type, flip),
    BASIN_SETTING_REAL_OF(type, jitter, 0, 1),
    BASIN_SETTING_SWITCH_OF(type, recompute),
    BASIN_SETTING_INTEGER_OF(type, seed, 0, 9007199254740992.0),
    BASIN_SETTINGS_END,
};

/* Means and deviations of 0 are measured on the training pictures. */
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
    .rate_ends = 5e-7,
    .decay = 0.05,
    .beta2 = 0.99,
    .clip = 1,
    .crop = "random",
    .crop_scale = 0.08,
    .flip = true,
    .jitter = 0.4,
};

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
    s.occlude = size * size / 32;
    s.keep = s.occlude / 10;
    memset(s.mean, 0, sizeof s.mean);
    memset(s.deviation, 0, sizeof s.deviation);
    s.epochs = 20;
    s.batch = 256;
    s.rate = 1e-3;
    s.rate_ends = 0;
    s.crop = "none";
    s.flip = false;
    s.jitter = 0;
    return s;
}

bool basin_image_preset(basin_image_settings *settings, const char *name) {
    if (!strcmp(name, "imagenet"))
        *settings = imagenet;
    else if (!strcmp(name, "fashion"))
        *settings = small(1, 28, 128, 4, 512);
    else if (!strcmp(name, "fashion-large")) {
        *settings = small(1, 28, 192, 6, 640);
        settings->steps = 12;
        settings->epochs = 40;
    } else if (!strcmp(name, "cifar10")) {
        *settings = small(3, 32, 256, 8, 1024);
        settings->flip = true;
        settings->epochs = 50;
        settings->rate = 5e-4;
    } else if (!strcmp(name, "photos")) {
        *settings = small(3, 64, 256, 8, 1024);
        settings->patch = 8;
        settings->occlude = 32;
        settings->keep = 3;
        settings->crop = "random";
        settings->flip = true;
        settings->jitter = 0.4;
        settings->epochs = 100;
        settings->rate = 5e-4;
    } else
        return false;
    return true;
}

int64_t basin_image_tokens(const basin_image_settings *s) {
    return (s->size / s->patch) * (s->size / s->patch);
}

int64_t basin_image_patch_values(const basin_image_settings *s) {
    return s->channels * s->patch * s->patch;
}

basin_status basin_image_settings_check(const basin_image_settings *s, basin_error *error) {
    if (s->channels != 1 && s->channels != 3)
        return basin_fail(error, BASIN_BAD_VALUE, "channels is %lld, wanted 1 or 3",
                          (long long)s->channels);
    if (s->patch < 1 || s->size % s->patch != 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "patch is %lld, wanted a divisor of the size, %lld", (long long)s->patch,
                          (long long)s->size);
    if (s->occlude < 1 || s->occlude > basin_image_tokens(s))
        return basin_fail(error, BASIN_BAD_VALUE, "occlude is %lld, wanted 1 to %lld patches",
                          (long long)s->occlude, (long long)basin_image_tokens(s));
    if (s->keep >= s->occlude)
        return basin_fail(error, BASIN_BAD_VALUE, "keep is %lld, wanted fewer than %lld occluded",
                          (long long)s->keep, (long long)s->occlude);
    if (!s->attention && !s->hopfield)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "neither attention nor Hopfield network: wanted at least one of them");
    return BASIN_OK;
}
