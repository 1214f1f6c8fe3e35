/* Pictures for image models; see image.h. */
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
    if (s->limit < 0 || s->hold_out < 0 || s->most < 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "limit is %lld, hold_out %lld, most %lld; expected at least 0",
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

static void report_unreadable(void *context, const char *name, const char *why) {
    const basin_watch *watch = context;
    (void)name;
    basin_watch_note(watch, "skipped: %s", why);
}

static basin_picture_feed_config feed_config(const basin_image_set *set,
                                             const basin_image_settings *settings, int64_t batch,
                                             bool training, int threads, const basin_watch *watch) {
    return (basin_picture_feed_config){
        .pictures = set->pictures,
        .item = set->item,
        .items = set->items,
        .augment = augment(settings, training),
        .batch = batch,
        .training = training,
        .seed = (uint64_t)settings->seed,
        .threads = threads,
        .keep_bytes = (size_t)1 << 30,
        .unreadable = report_unreadable,
        .context = (void *)(uintptr_t)watch,
    };
}

basin_status basin_image_feed(basin_picture_feed **feed, const basin_image_set *set,
                              const basin_image_settings *settings, int64_t batch, bool training,
                              int threads, const basin_watch *watch, basin_error *error) {
    basin_picture_feed_config config = feed_config(set, settings, batch, training, threads, watch);
    return basin_picture_feed_new(feed, &config, error);
}

/* ---- The pictures of a training run; see image.h ---- */

static const char *const keep_names[] = {"off", "host", NULL};
static const char *const cut_names[] = {"files", "whole", "reduced", NULL};

struct basin_image_input {
    basin_image_input_config config;
    bool keep;
    basin_cut cut;
    basin_picture_feed_config feed_config;
    basin_picture_feed *feed;
    const float *fed; /* [places, N, P] of the feed's last step */
    int64_t now;      /* the step that they are of; -1: none */
};

/* ---- choosing ---- */

/* Which of the names `name` is; -1: "auto". */
static basin_status find(int *found, const char *what, const char *name, const char *const *names,
                         basin_error *error) {
    char list[64] = "";
    *found = -1;
    if (!name || strcmp(name, "auto") == 0) return BASIN_OK;
    for (int i = 0; names[i]; i++) {
        if (strcmp(name, names[i]) == 0) *found = i;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", names[i + 1] ? ", " : " or ", names[i]);
    }
    if (*found >= 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s is '%.40s'; expected auto%s", what, name, list);
}

/* Whether and how decoded pictures are kept: within a share of the free memory, since other
 * programs need some and the size is an estimate. With a GPU, pictures much larger than the crops
 * are reduced: decoding them again would slow it down. */
static basin_status choose(basin_image_input *input, int keep_asked, int cut_asked,
                           basin_error *error) {
    const basin_image_set *set = input->config.set;
    bool gpu = !strcmp(basin_backend_name(input->config.backend), "cuda");
    double bytes[3] = {0}, max = (double)basin_memory_free() * (gpu ? 0.5 : 0.25);
    for (int cut = BASIN_CUT_WHOLE; cut <= BASIN_CUT_REDUCED; cut++)
        bytes[cut] = basin_kept_estimate(set->pictures, set->item, set->items, (basin_cut)cut,
                                         input->config.settings->size);
    bool large = gpu && bytes[BASIN_CUT_WHOLE] > 4 * bytes[BASIN_CUT_REDUCED];
    int cut = cut_asked >= 0 ? cut_asked : large ? BASIN_CUT_REDUCED : BASIN_CUT_WHOLE;
    if (cut_asked < 0 && gpu && bytes[cut] >= max) cut = BASIN_CUT_REDUCED;
    input->keep = bytes[cut] < max;
    input->cut = input->keep || cut_asked >= 0 ? (basin_cut)cut : BASIN_CUT_FILES;
    if (input->keep || keep_asked < 0) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY,
                      "out of memory to keep %lld pictures decoded: %.1f GiB whole, %.1f reduced; "
                      "use keep_decoded auto or off, or fewer pictures",
                      (long long)set->items, bytes[BASIN_CUT_WHOLE] / 1073741824.0,
                      bytes[BASIN_CUT_REDUCED] / 1073741824.0);
}

static basin_status decide(basin_image_input *input, basin_error *error) {
    const basin_image_input_config *c = &input->config;
    int keep, cut;
    BASIN_TRY(find(&keep, "keep_decoded", c->keep_decoded, keep_names, error));
    BASIN_TRY(find(&cut, "cut_from", c->cut_from, cut_names, error));
    /* One pass over the pictures gains nothing by keeping them. */
    if (keep < 0 && c->settings->epochs < 2) keep = 0;
    input->keep = keep != 0;
    input->cut = cut < 0 ? BASIN_CUT_FILES : (basin_cut)cut;
    if (keep != 0 && cut != BASIN_CUT_FILES) BASIN_TRY(choose(input, keep, cut, error));
    basin_picture_feed_config config = input->feed_config;
    config.cut = input->cut;
    config.keep_bytes = input->keep ? basin_memory_free() / 2 : 0;
    return basin_picture_feed_new(&input->feed, &config, error);
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
    basin_picture_feed_free(input->feed);
    free(input);
}

/* ---- batches ---- */

static basin_status await_feed(basin_image_input *input, int64_t step, basin_error *error) {
    basin_picture_feed_batch batch;
    if (input->now == step) return BASIN_OK;
    if (input->now + 1 != step || step == 0) basin_picture_feed_seek(input->feed, step);
    basin_status status = basin_picture_feed_next(&batch, input->feed, error);
    input->now = status ? -1 : step;
    input->fed = batch.values;
    return status;
}

basin_status basin_image_input_write(basin_image_input *input, basin_plan *plan, basin_expr patches,
                                     int64_t step, int64_t at, basin_error *error) {
    basin_shape shape = basin_expr_shape(patches);
    BASIN_TRY(await_feed(input, step, error));
    const float *from = input->fed + at * shape.dim[1] * shape.dim[2];
    return basin_values_write(plan, patches, from, BASIN_F32, error);
}

basin_image_feeding basin_image_input_state(const basin_image_input *input) {
    basin_picture_feed_counts counts = basin_picture_feed_count(input->feed);
    return (basin_image_feeding){.pictures = input->config.set->items,
                                 .keep_decoded = keep_names[input->keep],
                                 .cut_from = cut_names[input->cut],
                                 .kept = counts.kept,
                                 .unreadable = counts.unreadable,
                                 .waited = counts.waited};
}
