/* Pictures for image models; see image_data.h. */
#include "task/image/data.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The side of a held-out split that is wanted, of `count` pictures. */
static basin_status hold_out(basin_image_data *data, const basin_image_source *source,
                             int64_t count, basin_error *error) {
    if (source->hold_out >= count)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%lld pictures are to be held out of %lld, wanted fewer",
                          (long long)source->hold_out, (long long)count);
    int64_t helds = source->hold_out;
    int64_t *kept = basin_array_new((size_t)(count - helds), sizeof *kept);
    int64_t *held = basin_array_new((size_t)helds, sizeof *held);
    basin_status status = BASIN_OK;
    if (!kept || !held) status = basin_fail(error, BASIN_NO_MEMORY, "no memory for a split");
    if (!status) status = basin_pictures_hold_out(kept, held, count, helds, source->seed, error);
    data->item = source->held ? held : kept;
    data->items = source->held ? helds : count - helds;
    free(source->held ? kept : held);
    return status;
}

static basin_status first_items(basin_image_data *data, int64_t count, basin_error *error) {
    data->item = basin_array_new((size_t)count, sizeof *data->item);
    if (!data->item) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a split");
    for (int64_t i = 0; i < count; i++) data->item[i] = i;
    data->items = count;
    return BASIN_OK;
}

basin_status basin_image_data_open(basin_image_data *data, const basin_image_source *source,
                                   basin_error *error) {
    *data = (basin_image_data){0};
    basin_status status =
        basin_pictures_open(&data->pictures, source->path, source->paths, source->split, error);
    if (status) return status;
    int64_t count = basin_pictures_count(data->pictures);
    if (source->limit > 0 && source->limit < count) count = source->limit;
    if (source->hold_out > 0)
        status = hold_out(data, source, count, error);
    else
        status = first_items(data, count, error);
    if (status) basin_image_data_close(data);
    return status;
}

void basin_image_data_close(basin_image_data *data) {
    basin_pictures_free(data->pictures);
    free(data->item);
    *data = (basin_image_data){0};
}

basin_status basin_image_measure(basin_image_settings *settings, const basin_image_data *data,
                                 basin_error *error) {
    enum { MOST = 60000 };
    float mean[3] = {0}, deviation[3] = {1, 1, 1};
    if (settings->deviation[0] > 0) return BASIN_OK;
    basin_status status =
        basin_pictures_statistics(mean, deviation, data->pictures, data->item, data->items,
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

basin_feed_config basin_image_feed_config(const basin_image_data *data,
                                          const basin_image_settings *settings, int64_t batch,
                                          bool training, int threads, const basin_watch *watch) {
    return (basin_feed_config){
        .pictures = data->pictures,
        .item = data->item,
        .items = data->items,
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

basin_status basin_image_feed(basin_feed **feed, const basin_image_data *data,
                              const basin_image_settings *settings, int64_t batch, bool training,
                              int threads, const basin_watch *watch, basin_error *error) {
    basin_feed_config config =
        basin_image_feed_config(data, settings, batch, training, threads, watch);
    return basin_feed_new(feed, &config, error);
}
