/* Pictures for image models; see image.h. */
#include "base/sized.h"
#include "base/sort.h"
#include "base/states.h"
#include "tasks/pictures/image.h"

/* One side of a held-out split of `count` pictures. */
static basin_status hold_out(basin_image_set *set, int64_t count, int64_t helds, bool held,
                             uint64_t seed, basin_error *error) {
    if (helds >= count)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "hold_out is %lld of %lld pictures; expected fewer", (long long)helds,
                          (long long)count);
    set->items = held ? helds : count - helds;
    BASIN_TRY(BASIN_NEW_RAW(&set->item, set->items, "a split", error));
    BASIN_SCRATCH_RAW(int64_t, other, count - set->items, "a split", error);
    return basin_pictures_hold_out(held ? other : set->item, held ? set->item : other, count, helds,
                                   seed, error);
}

static basin_status first_items(basin_image_set *set, int64_t count, basin_error *error) {
    BASIN_TRY(BASIN_NEW_RAW(&set->item, count, "a split", error));
    for (int64_t i = 0; i < count; i++) set->item[i] = i;
    set->items = count;
    return BASIN_OK;
}

static basin_status check(const basin_image_source *s, basin_error *error) {
    if (!s->pictures && (!s->path || s->paths < 1))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a source of pictures has neither a collection "
                          "nor a path; expected one of them");
    if (s->limit < 0 || s->hold_out < 0 || s->max < 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "limit is %lld, hold_out %lld, max %lld; expected at least 0",
                          (long long)s->limit, (long long)s->hold_out, (long long)s->max);
    return BASIN_OK;
}

basin_status basin_image_set_open(basin_image_set *set, const basin_image_source *source, bool held,
                                  uint64_t seed, basin_error *error) {
    basin_image_source s = source ? *source : (basin_image_source){0};
    *set = (basin_image_set){0};
    BASIN_TRY(BASIN_SIZE_CHECK(source, "basin_image_source", error));
    BASIN_TRY(check(&s, error));
    if (!s.pictures) BASIN_TRY(basin_pictures_open(&set->opened, s.path, s.paths, s.split, error));
    set->pictures = s.pictures ? s.pictures : set->opened;
    int64_t count = basin_pictures_count(set->pictures);
    if (s.limit > 0) count = basin_int_min(count, s.limit);
    basin_status status = s.hold_out > 0 ? hold_out(set, count, s.hold_out, held, seed, error)
                                         : first_items(set, count, error);
    if (status)
        basin_image_set_close(set);
    else if (s.max > 0 && s.max < set->items)
        set->items = s.max;
    else
        set->held = held && s.hold_out > 0;
    return status;
}

void basin_image_set_close(basin_image_set *set) {
    basin_pictures_close(set->opened);
    free(set->item);
    *set = (basin_image_set){0};
}

static basin_augment augment(const basin_image_settings *s, bool training) {
    int channels = (int)s->channels;
    basin_augment a = basin_augment_evaluation(s->size, channels, s->patch);
    if (training && !strcmp(s->crop, "random")) {
        a = basin_augment_training(s->size, channels, s->patch);
        a.scale_low = s->crop_scale;
    } else if (strcmp(s->crop, "random") != 0)
        a.enlarge = 1;
    a.flip = training && s->flip ? 0.5 : 0;
    a.brightness = a.contrast = a.saturation = training ? s->jitter : 0;
    for (int c = 0; c < 3; c++) {
        a.mean[c] = (float)s->mean[c];
        a.deviation[c] = (float)s->deviation[c];
    }
    return a;
}

static void report_unreadable(void *context, const char *name, const char *why) {
    const basin_watch *watch = context;
    (void)name;
    basin_watch_note(watch, "skipped: %s", why);
}

basin_status basin_image_feed(basin_picture_feed **feed, const basin_image_set *set,
                              const basin_image_settings *settings,
                              const basin_picture_feed_config *how, const basin_watch *watch,
                              basin_error *error) {
    basin_picture_feed_config config = *how;
    config.pictures = set->pictures;
    config.item = set->item;
    config.items = set->items;
    config.augment = augment(settings, how->training);
    config.seed = (uint64_t)settings->seed;
    config.unreadable = report_unreadable;
    config.context = (void *)(uintptr_t)watch;
    return basin_picture_feed_new(feed, &config, error);
}
