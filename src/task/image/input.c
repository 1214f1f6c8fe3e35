/* Pictures for image models; see image.h. */
#include "backend/device.h"
#include "base/sort.h"
#include "plan/plan.h"
#include "task/image/image.h"

/* One side of a held-out split of `count` pictures. */
static basin_status hold_out(basin_image_set *set, int64_t count, int64_t helds, bool held,
                             uint64_t seed, basin_error *error) {
    if (helds >= count)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%lld pictures are to be held out of %lld, wanted fewer",
                          (long long)helds, (long long)count);
    BASIN_FREE_AT_EXIT int64_t *other = NULL;
    set->items = held ? helds : count - helds;
    BASIN_TRY(BASIN_NEW_RAW(&set->item, set->items, "a split", error));
    BASIN_TRY(BASIN_NEW_RAW(&other, count - set->items, "a split", error));
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
                          "nor a path; wanted one of them");
    if (s->limit < 0 || s->hold_out < 0 || s->most < 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "limit is %lld, hold_out %lld, most %lld; wanted none below 0",
                          (long long)s->limit, (long long)s->hold_out, (long long)s->most);
    return BASIN_OK;
}

basin_status basin_image_set_open(basin_image_set *set, const basin_image_source *source, bool held,
                                  uint64_t seed, basin_error *error) {
    basin_image_source s = source ? *source : (basin_image_source){0};
    *set = (basin_image_set){0};
    BASIN_TRY(check(&s, error));
    if (!s.pictures) BASIN_TRY(basin_pictures_open(&set->opened, s.path, s.paths, s.split, error));
    set->pictures = s.pictures ? s.pictures : set->opened;
    int64_t count = basin_pictures_count(set->pictures);
    if (s.limit > 0) count = basin_int_min(count, s.limit);
    basin_status status = s.hold_out > 0 ? hold_out(set, count, s.hold_out, held, seed, error)
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

static basin_feed_config feed_config(const basin_image_set *set,
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
    basin_feed_config config = feed_config(set, settings, batch, training, threads, watch);
    return basin_feed_new(feed, &config, error);
}

/* ---- The pictures of a training run; see image.h ---- */

typedef enum keep { OFF, HOST, DEVICE } keep;

static const char *const keep_names[] = {"off", "host", "device"};
static const char *const cut_names[] = {"files", "whole", "reduced"};

struct basin_image_input {
    basin_image_input_config config;
    keep keep;
    basin_cut cut;
    basin_feed_config feed_config;
    basin_feed *feed;   /* the host cuts */
    basin_album *album; /* the device cuts */
    basin_crop *crop;   /* [batch] */
    const float *fed;   /* [places, N, P] of the feed's last step */
    int64_t now;        /* the step that they, or the crops, are of; -1: none */
};

/* ---- memory ---- */

static bool on_device(const basin_image_input *input) {
    return basin_backend_crops(input->config.backend) != NULL;
}

/* Whether pictures of so many bytes may be kept there: a share of what is free, since others want
 * memory, too, and the size is estimated. */
static bool fits(const basin_image_input *input, keep where, double bytes) {
    if (where == HOST) return bytes < (double)basin_memory_free() * (on_device(input) ? 0.5 : 0.25);
    double left = (double)basin_device_free_bytes(input->config.backend);
    return on_device(input) && bytes < 0.8 * left - 1073741824.0;
}

static void *album_alloc(void *context, size_t bytes) {
    const basin_image_input *input = context;
    basin_backend *b = input->config.backend;
    return input->keep == HOST ? basin_backend_crops(b)->alloc_host(b, bytes)
                               : basin_device_alloc(b, bytes);
}
static void album_free(void *context, void *memory) {
    const basin_image_input *input = context;
    basin_backend *b = input->config.backend;
    input->keep == HOST ? basin_backend_crops(b)->free_host(b, memory)
                        : basin_device_free(b, memory);
}
static void album_write(void *context, void *to, const void *from, size_t bytes) {
    const basin_image_input *input = context;
    if (input->keep == HOST)
        memcpy(to, from, bytes);
    else
        basin_device_copy_in(input->config.backend, to, from, bytes);
}

/* ---- making ---- */

static bool show_decoding(void *context, int64_t done, int64_t items) {
    const basin_image_input *input = context;
    basin_watch_progress(input->config.watch, "decoding", done, items, NAN, "images");
    return !basin_watch_stopped(input->config.watch);
}

static basin_status make_album(basin_image_input *input, basin_error *error) {
    basin_album_config config = {.feed = input->feed_config,
                                 .memory = {input, album_alloc, album_free, album_write},
                                 .progress = show_decoding,
                                 .progress_context = input};
    config.feed.cut = input->cut;
    BASIN_TRY(BASIN_NEW_RAW(&input->crop, config.feed.batch, "crops", error));
    BASIN_TRY_OR(basin_album_new(&input->album, &config, error),
                 (free(input->crop), input->crop = NULL));
    return BASIN_OK;
}

static basin_status make(basin_image_input *input, basin_error *error) {
    if (input->keep != OFF && on_device(input)) return make_album(input, error);
    basin_feed_config config = input->feed_config;
    config.cut = input->cut;
    config.keep_bytes = input->keep == HOST ? basin_memory_free() / 2 : 0;
    return basin_feed_new(&input->feed, &config, error);
}

/* ---- choosing ---- */

/* Which of three names `name` is; -1: "auto". */
static basin_status find(int *found, const char *what, const char *name, const char *const *names,
                         basin_error *error) {
    *found = -1;
    if (!name || strcmp(name, "auto") == 0) return BASIN_OK;
    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0) *found = i;
    if (*found >= 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s is '%.40s', wanted auto, %s, %s or %s", what,
                      name, names[0], names[1], names[2]);
}

/* Tries where and how pictures may be kept, the best first. Those much larger than crops need are
 * kept reduced: whole, they would only take memory. */
static basin_status choose(basin_image_input *input, int keep_asked, int cut_asked,
                           basin_error *error) {
    const basin_image_set *set = input->config.set;
    double bytes[3] = {0};
    for (int cut = BASIN_CUT_WHOLE; cut <= BASIN_CUT_REDUCED; cut++)
        bytes[cut] = basin_album_estimate(set->pictures, set->item, set->items, (basin_cut)cut,
                                          input->config.settings->size);
    bool large = bytes[BASIN_CUT_WHOLE] > 4 * bytes[BASIN_CUT_REDUCED];
    for (int cut = BASIN_CUT_WHOLE; cut <= BASIN_CUT_REDUCED; cut++)
        for (keep where = DEVICE; where >= HOST; where--) {
            if (cut_asked >= 0 && cut != cut_asked) continue;
            if (keep_asked >= 0 && (int)where != keep_asked) continue;
            if (cut_asked < 0 && on_device(input) && large && cut == BASIN_CUT_WHOLE) continue;
            if (cut_asked < 0 && !on_device(input) && cut == BASIN_CUT_REDUCED) continue;
            if (!fits(input, where, bytes[cut])) continue;
            input->keep = where;
            input->cut = (basin_cut)cut;
            basin_status status = make(input, error);
            if (status != BASIN_NO_MEMORY) return status;
        }
    if (keep_asked > 0)
        return basin_fail(error, BASIN_NO_MEMORY,
                          "out of memory to keep %lld pictures decoded (%s): %.1f GiB whole, %.1f "
                          "reduced; wanted keep_decoded auto or off, or fewer pictures",
                          (long long)set->items, keep_names[keep_asked],
                          bytes[BASIN_CUT_WHOLE] / 1073741824.0,
                          bytes[BASIN_CUT_REDUCED] / 1073741824.0);
    input->keep = OFF;
    input->cut = cut_asked < 0 ? BASIN_CUT_FILES : (basin_cut)cut_asked;
    return make(input, error);
}

static basin_status decide(basin_image_input *input, basin_error *error) {
    const basin_image_input_config *c = &input->config;
    int where, cut;
    BASIN_TRY(find(&where, "keep_decoded", c->keep_decoded, keep_names, error));
    BASIN_TRY(find(&cut, "cut_from", c->cut_from, cut_names, error));
    if (where == DEVICE && !on_device(input))
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "backend %s has no memory of its own to keep pictures in; wanted "
                          "keep_decoded auto, off or host",
                          basin_backend_name(c->backend));
    /* One pass over the pictures gains nothing by keeping them. */
    if (where < 0 && c->settings->epochs < 2) where = OFF;
    if (where < 0 && cut == BASIN_CUT_FILES) where = on_device(input) ? OFF : HOST;
    if (where > OFF && cut == BASIN_CUT_FILES && on_device(input))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "crops of kept pictures are not cut from files; wanted cut_from auto, "
                          "whole or reduced");
    if (where == OFF || cut == BASIN_CUT_FILES) {
        input->keep = where == HOST ? HOST : OFF;
        input->cut = cut < 0 ? BASIN_CUT_FILES : (basin_cut)cut;
        return make(input, error);
    }
    return choose(input, where, cut, error);
}

basin_status basin_image_input_new(basin_image_input **out, const basin_image_input_config *config,
                                   basin_error *error) {
    *out = NULL;
    basin_image_input *input = NULL;
    BASIN_TRY(BASIN_NEW(&input, 1, "the pictures of a run", error));
    input->config = *config;
    input->now = -1;
    input->feed_config = feed_config(config->set, config->settings, config->settings->batch, true,
                                     config->threads, config->watch);
    input->feed_config.first = config->first;
    input->feed_config.count = config->count;
    BASIN_TRY_OR(decide(input, error), basin_image_input_free(input));
    *out = input;
    return BASIN_OK;
}

void basin_image_input_free(basin_image_input *input) {
    if (!input) return;
    basin_feed_free(input->feed);
    basin_album_free(input->album);
    BASIN_FREE(input->crop, input);
}

/* ---- batches ---- */

static basin_crop crop_of(const basin_picture *page, const basin_drawn *drawn) {
    const basin_resize *r = &drawn->resize;
    basin_crop crop = {.pixel = page->pixel,
                       .box_y = r->box.y,
                       .box_x = r->box.x,
                       .box_height = r->box.height,
                       .box_width = r->box.width,
                       .height = (int32_t)page->height,
                       .width = (int32_t)page->width,
                       .channels = page->channels,
                       .full_height = (int32_t)r->height,
                       .full_width = (int32_t)r->width,
                       .from_y = (int32_t)r->y,
                       .from_x = (int32_t)r->x,
                       .mirror = r->flip};
    for (int i = 0; i < 3; i++) {
        crop.order[i] = drawn->order[i];
        crop.factor[i] = drawn->factor[i];
    }
    return crop;
}

static int64_t places(const basin_image_input *input) {
    const basin_feed_config *c = &input->feed_config;
    return c->count ? c->count : c->batch;
}

void basin_image_input_prepare(basin_image_input *input, int64_t step) {
    if (!input->album || input->now == step) return;
    for (int64_t i = 0; i < places(input); i++) {
        const basin_kept *page;
        basin_drawn drawn;
        int64_t index;
        basin_album_draw(&page, &drawn, &index, input->album, step, input->feed_config.first + i);
        input->crop[i] = crop_of(&page->picture, &drawn);
    }
    input->now = step;
}

static basin_status write_crops(basin_image_input *input, basin_plan *plan, basin_expr patches,
                                int64_t step, int64_t at, basin_error *error) {
    const basin_augment *a = &input->feed_config.augment;
    basin_image_input_prepare(input, step);
    basin_crop_batch batch = {.crop = input->crop + at,
                              .count = basin_expr_shape(patches).dim[0],
                              .size = a->size,
                              .patch = a->patch,
                              .channels = a->channels};
    for (int c = 0; c < a->channels; c++) {
        batch.factor[c] = 1 / (255 * a->deviation[c]);
        batch.offset[c] = -a->mean[c] / a->deviation[c];
    }
    return basin_plan_crop(plan, patches, &batch, error);
}

static basin_status await_feed(basin_image_input *input, int64_t step, basin_error *error) {
    basin_feed_batch batch;
    if (input->now == step) return BASIN_OK;
    if (!input->feed) return basin_fail(error, BASIN_BAD_VALUE, "the pictures were not decoded");
    if (input->now + 1 != step || step == 0) basin_feed_seek(input->feed, step);
    basin_status status = basin_feed_next(&batch, input->feed, error);
    input->now = status ? -1 : step;
    input->fed = batch.values;
    return status;
}

basin_status basin_image_input_write(basin_image_input *input, basin_plan *plan, basin_expr patches,
                                     int64_t step, int64_t at, basin_error *error) {
    basin_shape shape = basin_expr_shape(patches);
    if (input->album) return write_crops(input, plan, patches, step, at, error);
    BASIN_TRY(await_feed(input, step, error));
    const float *from = input->fed + at * shape.dim[1] * shape.dim[2];
    return basin_values_write(plan, patches, from, BASIN_F32, error);
}

basin_image_feeding basin_image_input_state(const basin_image_input *input) {
    basin_feed_counts counts = {0};
    if (input->album) counts = basin_album_count(input->album);
    if (input->feed) counts = basin_feed_count(input->feed);
    return (basin_image_feeding){.pictures = input->config.set->items,
                                 .keep_decoded = keep_names[input->keep],
                                 .cut_from = cut_names[input->cut],
                                 .kept = counts.kept,
                                 .unreadable = counts.unreadable,
                                 .waited = counts.waited};
}
