/* Gathers what a report shows; see report.h. Pictures are scored first, then those chosen are
 * read a second time, so that memory does not grow with the pictures scored. */
#include "task/image/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/given.h"

/* ---- which pictures ---- */

/* Positions in the scores: some spread evenly over all, then the best, then the worst. */
static basin_status choose(int64_t *place, const basin_image_findings *r, basin_error *error) {
    for (int64_t i = 0; i < r->shown; i++) place[i] = i * r->scores.pictures / r->shown;
    if (r->extremes == 0) return BASIN_OK;
    basin_status status =
        basin_image_scores_rank(place + r->shown, &r->scores, r->extremes, false, error);
    if (!status)
        status = basin_image_scores_rank(place + r->shown + r->extremes, &r->scores, r->extremes,
                                         true, error);
    return status;
}

static basin_status exhibit_new(basin_image_exhibit *e, const basin_image_findings *r,
                                basin_error *error) {
    const basin_image_settings *s = &r->model->settings;
    size_t tokens, values;
    e->count = r->shown + 2 * r->extremes;
    int64_t *place = basin_array_new((size_t)e->count, sizeof *place);
    e->index = basin_array_new((size_t)e->count, sizeof *e->index);
    e->mse = basin_array_new((size_t)e->count, sizeof *e->mse);
    if (basin_size_multiply(&tokens, (size_t)e->count, (size_t)basin_image_tokens(s)) &&
        basin_size_multiply(&values, tokens, (size_t)basin_image_patch_values(s))) {
        e->mask = basin_array_new(tokens, 1);
        e->patches = basin_array_new(values, sizeof *e->patches);
        e->output = basin_array_new(values, sizeof *e->output);
    }
    basin_status status = BASIN_OK;
    if (!place || !e->index || !e->mse || !e->mask || !e->patches || !e->output)
        status = basin_fail(error, BASIN_NO_MEMORY, "no memory for the pictures of a report");
    if (!status) status = choose(place, r, error);
    for (int64_t i = 0; i < e->count && !status; i++) {
        e->index[i] = r->scores.index[place[i]];
        e->mse[i] = r->scores.picture_mse[place[i]];
    }
    free(place);
    return status;
}

static void exhibit_free(basin_image_exhibit *e) {
    free(e->index);
    free(e->mse);
    free(e->patches);
    free(e->output);
    free(e->mask);
    *e = (basin_image_exhibit){0};
}

/* ---- completing them ---- */

enum { BATCH = 16 };

static basin_status complete(basin_image_exhibit *e, basin_image_model *model, basin_feed *feed,
                             basin_image_runner *runner, basin_error *error) {
    const basin_image_settings *s = &model->settings;
    int64_t N = basin_image_tokens(s), size = N * basin_image_patch_values(s);
    for (int64_t done = 0; done < e->count;) {
        basin_feed_batch batch;
        basin_status status = basin_feed_next(&batch, feed, error);
        if (status) return status;
        if (batch.count == 0 || done + batch.count > e->count)
            return basin_fail(error, BASIN_BAD_FILE,
                              "of %lld chosen pictures %lld can be read again: did the files "
                              "change?",
                              (long long)e->count, (long long)done);
        for (int64_t i = 0; i < batch.count; i++)
            basin_image_score_mask(e->mask + (done + i) * N, s, e->index[done + i], 0);
        memcpy(e->patches + done * size, batch.values,
               (size_t)(batch.count * size) * sizeof *e->patches);
        status = basin_image_runner_run(runner, e->output + done * size, e->patches + done * size,
                                        e->mask + done * N, batch.count, error);
        if (status) return status;
        done += batch.count;
    }
    return BASIN_OK;
}

static basin_status fill_exhibit(basin_image_findings *r, basin_error *error) {
    basin_image_set chosen = {.pictures = r->set.pictures};
    basin_feed *feed = NULL;
    basin_image_runner runner = {0};
    basin_status status = exhibit_new(&r->exhibit, r, error);
    if (status) return status;
    chosen.item = r->exhibit.index;
    chosen.items = r->exhibit.count;
    status = basin_image_feed(&feed, &chosen, &r->model->settings, BATCH, false, 0, r->spec->watch,
                              error);
    if (!status) status = basin_image_runner_new(&runner, r->model, BATCH, error);
    if (!status) status = complete(&r->exhibit, r->model, feed, &runner, error);
    basin_image_runner_free(&runner);
    basin_feed_free(feed);
    return status;
}

/* ---- the whole ---- */

static int64_t at_most(int64_t wanted, int64_t there) { return wanted < there ? wanted : there; }

static basin_status gather(basin_image_findings *r, basin_error *error) {
    const basin_image_reporting *spec = r->spec;
    basin_image_scoring scoring = {.masks = spec->masks, .watch = spec->watch};
    basin_status status =
        basin_image_set_open(&r->set, spec->source, true, (uint64_t)r->model->settings.seed, error);
    if (!status) status = basin_image_score_set(&r->scores, r->model, &r->set, &scoring, error);
    if (status) return status;
    r->shown = at_most(spec->shown > 0 ? spec->shown : 1, r->scores.pictures);
    r->extremes = at_most(spec->extremes > 0 ? spec->extremes : 0, r->scores.pictures / 2);
    status = fill_exhibit(r, error);
    int64_t traced = at_most(spec->traced > 0 ? spec->traced : 1, r->shown);
    if (!status)
        status = basin_image_trace_new(&r->trace, r->model, r->exhibit.patches, r->exhibit.mask,
                                       traced, error);
    if (!status) status = basin_image_weights_new(&r->weights, r->model, error);
    if (!status && spec->log) status = basin_image_curve_read(&r->curve, spec->log, error);
    return status;
}

static void findings_free(basin_image_findings *r) {
    basin_image_set_close(&r->set);
    basin_image_scores_free(&r->scores);
    exhibit_free(&r->exhibit);
    basin_image_trace_free(&r->trace);
    basin_image_weights_free(&r->weights);
    basin_image_curve_free(&r->curve);
}

basin_status basin_image_report(const char *path, basin_image_scores *scores,
                                basin_image_model *model, const basin_image_reporting *reporting,
                                basin_error *error) {
    basin_image_reporting spec;
    basin_image_findings r = {.spec = &spec, .model = model};
    if (scores) *scores = (basin_image_scores){0};
    basin_status status =
        basin_given_take(&spec, sizeof spec, reporting, "basin_image_reporting", error);
    if (!status && (!spec.model || !spec.name))
        status = basin_fail(error, BASIN_BAD_VALUE, "a report wants names for model and pictures");
    if (!status) status = gather(&r, error);
    if (!status) status = basin_image_page_write(path, &r, error);
    if (!status && scores) {
        *scores = r.scores;
        r.scores = (basin_image_scores){0};
    }
    findings_free(&r);
    return status;
}
