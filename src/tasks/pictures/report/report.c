/* Gathers what a report shows; see report.h. All pictures are scored first; then a few are read
 * again, so that memory does not grow with the number scored, and traced. */
#include "tasks/pictures/report/report.h"

#include "base/sized.h"
#include "base/sort.h"

/* About this many bytes of attention go into a page. */
enum { ATTENTION_BYTES = 4 << 20 };

static void free_feed(basin_picture_feed **feed) { basin_picture_feed_free(*feed); }

/* The chosen pictures, spread evenly over those scored, and their masks. */
static basin_status read_chosen(basin_image_findings *r, basin_error *error) {
    static const char what[] = "the pictures of a report";
    const basin_image_settings *s = &r->model->settings;
    int64_t N = basin_image_tokens(s), size = N * basin_image_patch_values(s);
    BASIN_AT_EXIT(free_feed) basin_picture_feed *feed = NULL;
    basin_picture_feed_batch batch = {0};
    BASIN_SCRATCH_RAW(int64_t, index, r->shown, what, error);
    BASIN_TRY(BASIN_NEW_RAW(&r->place, r->shown, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&r->mask, r->shown * N, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&r->patches, r->shown * size, what, error));
    for (int64_t i = 0; i < r->shown; i++) {
        r->place[i] = i * r->scores.pictures / r->shown;
        index[i] = r->scores.index[r->place[i]];
        basin_image_evaluate_mask(r->mask + i * N, s, index[i], 0);
    }
    basin_image_set chosen = {.pictures = r->set.pictures, .item = index, .items = r->shown};
    BASIN_TRY(basin_image_feed(&feed, &chosen, s, &(basin_picture_feed_config){.batch = r->shown},
                               r->options->watch, error));
    BASIN_TRY(basin_picture_feed_next(&batch, feed, error));
    if (batch.count != r->shown)
        return basin_fail(error, BASIN_BAD_FILE,
                          "of %lld chosen pictures %lld can be read again: did the files change?",
                          (long long)r->shown, (long long)batch.count);
    memcpy(r->patches, batch.values, (size_t)(r->shown * size) * sizeof *r->patches);
    return BASIN_OK;
}

static basin_status gather(basin_image_findings *r, basin_error *error) {
    const basin_image_report_options *o = r->options;
    basin_image_evaluate_options scoring = {.masks = o->masks, .watch = o->watch};
    if (!o->name || !o->model_name)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a report needs names for the model and the pictures");
    BASIN_TRY(
        basin_image_set_open(&r->set, o->source, true, (uint64_t)r->model->settings.seed, error));
    BASIN_TRY(basin_image_evaluate_set(&r->scores, r->model, &r->set, &scoring, error));
    r->shown = basin_int_min(o->shown > 0 ? o->shown : 1, r->scores.pictures);
    BASIN_TRY(read_chosen(r, error));
    return basin_image_trace_new(&r->trace, r->model, r->patches, r->mask, r->shown,
                                 ATTENTION_BYTES, error);
}

static void findings_free(basin_image_findings *r) {
    basin_image_evaluate_result_free(&r->scores);
    BASIN_FREE(r->place, r->patches, r->mask);
    basin_image_trace_free(&r->trace);
    basin_image_set_close(&r->set);
}

basin_status basin_image_report(const char *path, basin_image_evaluate_result *result,
                                basin_image_model *model, const basin_image_report_options *options,
                                basin_error *error) {
    BASIN_AT_EXIT(findings_free)
    basin_image_findings r = {.options = options, .model = model};
    BASIN_TRY(BASIN_SIZE_CHECK(options, "basin_image_report_options", error));
    if (result) {
        BASIN_TRY(BASIN_SIZE_CHECK(result, "basin_image_evaluate_result", error));
        r.scores.size = result->size;
        *result = (basin_image_evaluate_result){.size = result->size};
    }
    BASIN_TRY(gather(&r, error));
    BASIN_TRY(basin_image_document_write(path, &r, error));
    if (!result) return BASIN_OK;
    *result = r.scores;
    r.scores = (basin_image_evaluate_result){0};
    return BASIN_OK;
}
