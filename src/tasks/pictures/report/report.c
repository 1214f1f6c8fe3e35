/* Gathers what a report shows; see report.h. All models are scored first; then the pictures chosen
 * are completed, traced and measured. */
#include "tasks/pictures/report/report.h"

#include "base/sized.h"
#include "base/sort.h"

/* About this many bytes of attention go into a page, over all its models. */
enum { ATTENTION_BYTES = 4 << 20 };

/* ---- chosen pictures, read a second time: memory does not grow with the number scored ---- */

enum { BATCH = 16 };

static basin_status exhibit_room(basin_image_exhibit *e, const basin_image_settings *s,
                                 basin_error *error) {
    static const char what[] = "the pictures of a report";
    size_t tokens = (size_t)basin_image_tokens(s), values;
    if (!basin_size_multiply(&tokens, tokens, (size_t)e->count) ||
        !basin_size_multiply(&values, tokens, (size_t)basin_image_patch_values(s)))
        return basin_fail_memory(error, what);
    BASIN_TRY(BASIN_NEW_RAW(&e->index, e->count, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&e->mse, e->count, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&e->mask, tokens, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&e->patches, values, what, error));
    return BASIN_NEW_RAW(&e->output, values, what, error);
}

static basin_status complete(basin_image_exhibit *e, basin_image_model *model,
                             basin_picture_feed *feed, basin_image_runner *runner,
                             basin_error *error) {
    const basin_image_settings *s = &model->settings;
    int64_t N = basin_image_tokens(s), size = N * basin_image_patch_values(s);
    for (int64_t done = 0; done < e->count;) {
        basin_picture_feed_batch batch = {0};
        BASIN_TRY(basin_picture_feed_next(&batch, feed, error));
        if (batch.count == 0 || done + batch.count > e->count)
            return basin_fail(error, BASIN_BAD_FILE,
                              "of %lld chosen pictures %lld can be read again: did the files "
                              "change?",
                              (long long)e->count, (long long)done);
        for (int64_t i = 0; i < batch.count; i++)
            basin_image_evaluate_mask(e->mask + (done + i) * N, s, e->index[done + i], 0);
        memcpy(e->patches + done * size, batch.values,
               (size_t)(batch.count * size) * sizeof *e->patches);
        BASIN_TRY(basin_image_runner_run(runner, e->output + done * size, e->patches + done * size,
                                         e->mask + done * N, batch.count, error));
        done += batch.count;
    }
    return BASIN_OK;
}

static basin_status exhibit_new(basin_image_exhibit *e, basin_image_model *model,
                                const basin_image_set *set,
                                const basin_image_evaluate_result *scores, const int64_t *place,
                                int64_t count, const basin_watch *watch, basin_error *error) {
    basin_picture_feed *feed;
    BASIN_AT_EXIT(basin_image_runner_free) basin_image_runner runner = {0};
    *e = (basin_image_exhibit){.count = count};
    BASIN_TRY(exhibit_room(e, &model->settings, error));
    for (int64_t i = 0; i < count; i++) {
        e->index[i] = scores->index[place[i]];
        e->mse[i] = scores->picture_mse[place[i]];
    }
    basin_image_set chosen = {.pictures = set->pictures, .item = e->index, .items = count};
    BASIN_TRY(basin_image_runner_new(&runner, model, BATCH, error));
    BASIN_TRY(basin_image_feed(&feed, &chosen, &model->settings,
                               &(basin_picture_feed_config){.batch = BATCH}, watch, error));
    basin_status status = complete(e, model, feed, &runner, error);
    basin_picture_feed_free(feed);
    return status;
}

/* ---- the models ---- */

/* One page has one set of pictures and masks: models must cut and hide them alike. */
static basin_status check_alike(const basin_image_entry *first, const basin_image_entry *other,
                                basin_error *error) {
    static const char *const same[] = {"channels", "size", "patch", "occlude", "crop", NULL};
    char expected[BASIN_SETTING_VALUE], found[BASIN_SETTING_VALUE];
    const char *name = basin_settings_differ(found, expected, &other->model->settings,
                                             &first->model->settings, basin_image_task.table, same);
    if (!name) return BASIN_OK;
    return basin_fail(
        error, BASIN_BAD_VALUE,
        "%s: %s is %s; expected %s as in %s: a page compares models on the same pictures and masks",
        other->name, name, found, expected, first->name);
}

static basin_status take_models(basin_image_findings *r, basin_image_model *const *model,
                                int models, basin_error *error) {
    const basin_image_report_options *o = r->options;
    if (models < 1 || models > BASIN_IMAGE_REPORT_MODELS)
        return basin_fail(error, BASIN_BAD_VALUE, "%d models for a page; expected 1 to %d", models,
                          BASIN_IMAGE_REPORT_MODELS);
    if (!o->name || !o->model_name)
        return basin_fail(error, BASIN_BAD_VALUE, "a report needs names for models and pictures");
    for (int i = 0; i < models; i++) {
        basin_image_entry *e = &r->entry[r->entries++];
        *e = (basin_image_entry){.model = model[i], .name = o->model_name[i]};
        BASIN_TRY(check_alike(&r->entry[0], e, error));
        if (o->source && o->source->hold_out > 0 &&
            e->model->settings.seed != model[0]->settings.seed)
            basin_watch_note(o->watch,
                             "%s has another seed than %s, by which pictures are held out: it may "
                             "have been trained on some of these",
                             e->name, r->entry[0].name);
    }
    return BASIN_OK;
}

/* ---- scores ---- */

/* Places in the scores: some spread evenly over all, then the best, then the worst of the first
 * model. */
static void choose(int64_t *place, const basin_image_findings *r) {
    const basin_image_evaluate_result *scores = &r->entry[0].scores;
    for (int64_t i = 0; i < r->shown; i++) place[i] = i * scores->pictures / r->shown;
    for (int64_t i = 0; i < r->extremes; i++) {
        place[r->shown + i] = scores->order[i];
        place[r->shown + r->extremes + i] = scores->order[scores->pictures - 1 - i];
    }
}

/* ---- looking into a model ---- */

/* Traces the shown pictures, a batch at a time; the first batch is kept with all its frames. */
static basin_status follow(basin_image_findings *r, basin_image_entry *e, basin_error *error) {
    const basin_image_settings *s = &e->model->settings;
    int64_t N = basin_image_tokens(s), size = N * basin_image_patch_values(s);
    basin_status status = BASIN_OK;
    for (int64_t done = 0; done < r->shown && !status;) {
        basin_image_trace rest, *trace = done ? &rest : &e->trace;
        int64_t count = basin_int_min(r->traced, r->shown - done);
        const float *patches = e->exhibit.patches + done * size;
        const uint8_t *mask = e->exhibit.mask + done * N;
        status = basin_image_trace_new(trace, done ? NULL : &e->attention, e->model, patches, mask,
                                       count, error);
        if (!status) status = basin_image_course_add(&e->course, trace, patches, mask, s, error);
        if (done) basin_image_trace_free(trace);
        done += count;
    }
    if (!status) basin_image_course_end(&e->course);
    return status;
}

static basin_status inspect_model(basin_image_findings *r, basin_image_entry *e,
                                  const int64_t *place, basin_error *error) {
    const basin_image_settings *s = &e->model->settings;
    int64_t count = r->shown + 2 * r->extremes;
    int last = strcmp(s->arch, "et") != 0 ? (int)s->steps - 1 : (int)s->steps;
    BASIN_TRY(exhibit_new(&e->exhibit, e->model, &r->set, &e->scores, place, count,
                          r->options->watch, error));
    BASIN_TRY(basin_image_attention_new(&e->attention, s, r->traced, last,
                                        ATTENTION_BYTES / (size_t)r->entries, error));
    BASIN_TRY(follow(r, e, error));
    return basin_image_weights_new(&e->weights, e->model, error);
}

/* ---- the whole ---- */

static basin_status gather(basin_image_findings *r, basin_image_model *const *model, int models,
                           basin_error *error) {
    const basin_image_report_options *spec = r->options;
    BASIN_TRY(take_models(r, model, models, error));
    uint64_t seed = (uint64_t)model[0]->settings.seed;
    BASIN_TRY(basin_image_set_open(&r->set, spec->source, true, seed, error));
    basin_image_evaluate_options scoring = {.masks = spec->masks, .watch = spec->watch};
    for (basin_image_entry *e = r->entry; e < r->entry + r->entries; e++)
        BASIN_TRY(basin_image_evaluate_set(&e->scores, e->model, &r->set, &scoring, error));
    int64_t pictures = r->entry[0].scores.pictures;
    r->shown = basin_int_min(spec->shown > 0 ? spec->shown : 1, pictures);
    r->extremes = basin_int_min(spec->extremes > 0 ? spec->extremes : 0, pictures / 2);
    r->traced = basin_int_min(spec->traced > 0 ? spec->traced : 1, r->shown);
    BASIN_SCRATCH_RAW(int64_t, place, r->shown + 2 * r->extremes, "chosen pictures", error);
    choose(place, r);
    for (int i = 0; i < r->entries; i++) BASIN_TRY(inspect_model(r, &r->entry[i], place, error));
    return BASIN_OK;
}

static void findings_free(basin_image_findings *r) {
    for (int i = 0; i < r->entries; i++) {
        basin_image_entry *e = &r->entry[i];
        basin_image_evaluate_result_free(&e->scores);
        basin_image_exhibit *x = &e->exhibit;
        BASIN_FREE(x->index, x->mse, x->patches, x->output, x->mask);
        basin_image_trace_free(&e->trace);
        basin_image_attention_free(&e->attention);
        basin_image_course_free(&e->course);
        basin_image_weights_free(&e->weights);
    }
    basin_image_set_close(&r->set);
}

basin_status basin_image_report(const char *path, basin_image_evaluate_result *result,
                                basin_image_model *const *model, int models,
                                const basin_image_report_options *options, basin_error *error) {
    BASIN_TRY(BASIN_SIZE_CHECK(options, "basin_image_report_options", error));
    BASIN_AT_EXIT(findings_free) basin_image_findings r = {.options = options};
    for (int i = 0; result && i < models; i++) {
        BASIN_TRY(BASIN_SIZE_CHECK(&result[i], "basin_image_evaluate_result", error));
        result[i] = (basin_image_evaluate_result){.size = result[i].size};
    }
    BASIN_TRY(gather(&r, model, models, error));
    BASIN_TRY(basin_image_document_write(path, &r, error));
    for (int i = 0; result && i < models; i++) {
        result[i] = r.entry[i].scores;
        r.entry[i].scores = (basin_image_evaluate_result){0};
    }
    return BASIN_OK;
}
