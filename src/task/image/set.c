/* Pictures for image models; see set.h. */
#include "task/image/set.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/given.h"

/* One side of a held-out split of `count` pictures. */
static basin_status hold_out(basin_image_set *set, int64_t count, int64_t helds, bool held,
                             uint64_t seed, basin_error *error) {
    if (helds >= count)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%lld pictures are to be held out of %lld, wanted fewer",
                          (long long)helds, (long long)count);
    int64_t *rest = basin_array_new((size_t)(count - helds), sizeof *rest);
    int64_t *out = basin_array_new((size_t)helds, sizeof *out);
    basin_status status = BASIN_OK;
    if (!rest || !out) status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for a split");
    if (!status) status = basin_pictures_hold_out(rest, out, count, helds, seed, error);
    set->item = held ? out : rest;
    set->items = held ? helds : count - helds;
    free(held ? rest : out);
    return status;
}

static basin_status first_items(basin_image_set *set, int64_t count, basin_error *error) {
    set->item = basin_array_new((size_t)count, sizeof *set->item);
    if (!set->item) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a split");
    for (int64_t i = 0; i < count; i++) set->item[i] = i;
    set->items = count;
    return BASIN_OK;
}

static basin_status check(const basin_image_source *s, basin_error *error) {
    if (!s->pictures && (!s->path || s->paths < 1))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a source of pictures has neither a collection "
                          "nor a path; wanted one of them");
    if (s->limit < 0 || s->hold_out < 0 || s->most < 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "limit is %lld, hold_out %lld, most %lld; wanted none below 0",
                          (long long)s->limit, (long long)s->hold_out, (long long)s->most);
    return BASIN_OK;
}

basin_status basin_image_set_open(basin_image_set *set, const basin_image_source *source, bool held,
                                  uint64_t seed, basin_error *error) {
    basin_image_source s;
    *set = (basin_image_set){0};
    basin_status status = basin_given_take(&s, sizeof s, source, "basin_image_source", error);
    if (!status) status = check(&s, error);
    if (!status && !s.pictures)
        status = basin_pictures_open(&set->opened, s.path, s.paths, s.split, error);
    if (status) return status;
    set->pictures = s.pictures ? s.pictures : set->opened;
    int64_t count = basin_pictures_count(set->pictures);
    if (s.limit > 0 && s.limit < count) count = s.limit;
    status = s.hold_out > 0 ? hold_out(set, count, s.hold_out, held, seed, error)
                            : first_items(set, count, error);
    if (status)
        basin_image_set_close(set);
    else if (s.most > 0 && s.most < set->items)
        set->items = s.most;
    else
        set->held = held && s.hold_out > 0;
    return status;
}

void basin_image_set_close(basin_image_set *set) {
    basin_pictures_free(set->opened);
    free(set->item);
    *set = (basin_image_set){0};
}

basin_status basin_image_measure(basin_image_settings *settings, const basin_image_set *set,
                                 basin_error *error) {
    enum { MOST = 60000 };
    float mean[3] = {0}, deviation[3] = {1, 1, 1};
    if (settings->deviation[0] > 0) return BASIN_OK;
    basin_status status =
        basin_pictures_statistics(mean, deviation, set->pictures, set->item, set->items,
                                  (int)settings->channels, MOST, error);
    for (int c = 0; c < 3; c++) {
        settings->mean[c] = c < settings->channels ? (double)mean[c] : 0;
        settings->deviation[c] = c < settings->channels ? (double)deviation[c] : 1;
    }
    return status;
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

static void tell(void *context, const char *name, const char *why) {
    const basin_watch *watch = context;
    (void)name;
    basin_watch_note(watch, "skipped: %s", why);
}

basin_feed_config basin_image_feed_config(const basin_image_set *set,
                                          const basin_image_settings *settings, int64_t batch,
                                          bool training, int threads, const basin_watch *watch) {
    return (basin_feed_config){
        .pictures = set->pictures,
        .item = set->item,
        .items = set->items,
        .augment = augment(settings, training),
        .batch = batch,
        .training = training,
        .seed = (uint64_t)settings->seed,
        .threads = threads,
        .keep_bytes = (size_t)1 << 30,
        .unreadable = tell,
        .context = (void *)(uintptr_t)watch,
    };
}

basin_status basin_image_feed(basin_feed **feed, const basin_image_set *set,
                              const basin_image_settings *settings, int64_t batch, bool training,
                              int threads, const basin_watch *watch, basin_error *error) {
    basin_feed_config config =
        basin_image_feed_config(set, settings, batch, training, threads, watch);
    return basin_feed_new(feed, &config, error);
}
