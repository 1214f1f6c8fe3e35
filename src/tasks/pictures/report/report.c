/* A report; see report.h and docs/reports.md. All pictures are scored first; then a few are read
 * again, so that memory does not grow with the number scored, and traced. The document holds names,
 * numbers and pictures; the viewer page makes sections, plots and explanations of them. */
#include "tasks/pictures/report/report.h"
#include "base/sized.h"
#include "base/sort.h"
#include "tasks/common/view/document.h"

/* About this many bytes of attention go into a page. */
enum { ATTENTION_BYTES = 4 << 20 };

typedef struct writer {
    basin_document report;
    const basin_image_report_options *options;
    basin_image_model *model;
    const basin_image_settings *settings; /* of the model */
    int64_t tokens, values;               /* N, P */
    basin_image_set set;                  /* the pictures scored */
    basin_image_evaluate_result scores;
    int64_t shown;
    int64_t *place;          /* [shown] of chosen pictures, in the scores */
    float *patches;          /* [shown, N, P] */
    uint8_t *mask;           /* [shown, N] that of the first mask seed */
    basin_image_trace trace; /* of these */
    basin_picture picture;   /* scratch */
} writer;

#define PUT(...) basin_document_put(&w->report, __VA_ARGS__)

static const char *last_part(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

static const char *arch_name(const char *arch) {
    if (!strcmp(arch, "vit")) return "Vision Transformer";
    if (!strcmp(arch, "albert")) return "weight-shared Vision Transformer";
    return "Energy Transformer";
}

/* ---- values ---- */

static void put_numbers(writer *w, const char *name, const double *value, int64_t count) {
    PUT("%s:", name);
    basin_document_numbers(&w->report, value, count);
}

/* A picture of this many pixels or fewer across shows its pixels. */
static basin_document_form form_of(const writer *w) {
    enum { CRISP = 96 };
    return w->settings->size <= CRISP ? BASIN_DOCUMENT_PIXELS : BASIN_DOCUMENT_PHOTO;
}

/* Patches [N, P] as the model has normalised them, those of `mask` in grey. */
static void put_picture(writer *w, const float *patches, const uint8_t *mask) {
    basin_error error;
    basin_status status =
        basin_image_sheet_picture(&w->picture, patches, mask, w->settings, &error);
    if (!basin_document_check(&w->report, status, &error)) return;
    PUT("{");
    basin_document_picture(&w->report, &w->picture, form_of(w), NULL);
    PUT("}");
}

/* ---- the pictures shown, and what the model made of them ---- */

static void put_pictures(writer *w) {
    PUT("'pictures':[");
    for (int64_t i = 0; i < w->shown; i++) {
        char text[BASIN_MAX_PICTURE_NAME];
        const uint8_t *mask = w->mask + i * w->tokens;
        const float *patches = w->patches + i * w->tokens * w->values;
        basin_pictures_name(text, w->set.pictures, w->scores.index[w->place[i]]);
        PUT("{'name':%s,'hidden':[", last_part(text));
        for (int64_t n = 0; n < w->tokens; n++) PUT("%d", mask[n] == BASIN_PATCH_REPLACED);
        PUT("],'truth':");
        put_picture(w, patches, NULL);
        PUT("'given':");
        put_picture(w, patches, mask);
        PUT("}");
    }
    PUT("]");
}

static void put_answers(writer *w) {
    int64_t size = w->tokens * w->values;
    BASIN_FREE_AT_EXIT float *pasted = NULL;
    basin_error error;
    if (!basin_document_check(&w->report, BASIN_NEW_RAW(&pasted, size, "a picture", &error),
                              &error))
        return;
    PUT("'answers':[");
    for (int64_t i = 0; i < w->shown; i++) {
        const float *output = w->trace.token + (w->trace.steps * w->shown + i) * size;
        basin_image_paste(pasted, output, w->patches + i * size, w->mask + i * w->tokens, w->tokens,
                          w->values);
        PUT("{'mse':%g,'completed':", w->scores.picture_mse[w->place[i]]);
        put_picture(w, pasted, NULL);
        PUT("}");
    }
    PUT("]");
}

/* ---- the descent ---- */

/* Frames [T + 1, count, N, P] of a picture; at most FRAMES of them. */
static void put_frames(writer *w, const float *frames, int64_t picture) {
    enum { FRAMES = 40 };
    const basin_image_trace *t = &w->trace;
    int count = t->steps < FRAMES ? t->steps + 1 : FRAMES;
    PUT("[");
    for (int i = 0; i < count; i++) {
        int step = count > 1 ? (int)((int64_t)i * t->steps / (count - 1)) : 0;
        PUT("{'step':%d,'picture':", step);
        put_picture(w, frames + (step * t->count + picture) * w->tokens * w->values, NULL);
        PUT("}");
    }
    PUT("]");
}

static void put_trace(writer *w) {
    const basin_image_trace *t = &w->trace;
    PUT("'steps':%d,'scenes':[", t->steps);
    for (int64_t i = 0; i < t->count; i++) {
        PUT("{'tokens':");
        put_frames(w, t->token, i);
        PUT("'forces':[");
        for (int p = 0; p < t->parts; p++) put_frames(w, t->force[p], i);
        PUT("]}");
    }
    PUT("]");
}

/* The mean over the pictures of [T + 1, count], by step; `root`: its root. */
static void put_means(writer *w, const char *name, const double *value, bool root) {
    const basin_image_trace *t = &w->trace;
    PUT("%s:[", name);
    for (int step = 0; step <= t->steps; step++) {
        double sum = 0;
        for (int64_t i = 0; i < t->count; i++) sum += value[step * t->count + i];
        PUT("%g", root ? sqrt(sum / (double)t->count) : sum / (double)t->count);
    }
    PUT("]");
}

/* Errors of the decoded tokens [T + 1, count], as scores have them; `mean`: of the mean colour. */
static basin_status find_errors(double *mse, double *psnr, double mean[2], const writer *w,
                                basin_error *error) {
    const basin_image_settings *s = w->settings;
    int64_t size = w->tokens * w->values;
    BASIN_SCRATCH_RAW(float, room, size * 3, "comparing pictures", error);
    float *plane[2] = {room + size, room + 2 * size};
    for (int64_t k = 0; k < (w->trace.steps + 1) * w->shown; k++) {
        const float *truth = w->patches + k % w->shown * size, *output = w->trace.token + k * size;
        const uint8_t *mask = w->mask + k % w->shown * w->tokens;
        mse[k] = basin_image_masked_error(output, truth, mask, w->tokens, w->values);
        basin_image_paste(room, output, truth, mask, w->tokens, w->values);
        psnr[k] = basin_image_psnr(plane, room, truth, s);
        if (k >= w->shown) continue;
        mean[0] += basin_image_mean_error(truth, mask, s) / (double)w->shown;
        basin_image_mean_fill(room, truth, mask, s);
        mean[1] += basin_image_psnr(plane, room, truth, s) / (double)w->shown;
    }
    return BASIN_OK;
}

/* Means over the pictures shown, by step. */
static basin_status put_course(writer *w, basin_error *error) {
    const basin_image_trace *t = &w->trace;
    int64_t all = (t->steps + 1) * t->count;
    double mean[2] = {0};
    BASIN_SCRATCH_RAW(double, off, 2 * all, "the course of a descent", error);
    BASIN_TRY(find_errors(off, off + all, mean, w, error));
    PUT("'course':{'pictures':%lld,'rises':%lld,'mean_mse':%g,'mean_psnr':%g", (long long)t->count,
        (long long)basin_image_trace_rises(t), mean[0], mean[1]);
    put_means(w, "mse", off, false);
    put_means(w, "psnr", off + all, false);
    PUT("'terms':[");
    for (int p = 0; p < t->parts; p++) {
        PUT("{'name':%s", t->part[p]);
        put_means(w, "energy", t->energy[p], false);
        put_means(w, "force", t->square[p], true);
        PUT("}");
    }
    PUT("]}");
    return BASIN_OK;
}

static void put_attention(writer *w) {
    const basin_image_attention *a = &w->trace.attention;
    size_t size = (size_t)(a->steps * a->heads * a->tokens * a->keys);
    if (!a->heads) return;
    PUT("'attention':{'heads':%lld,'keys':%lld,'steps':[", (long long)a->heads, (long long)a->keys);
    /* The attention of a ViT's layer i is that before layer i + 1. */
    for (int i = 0; i < a->steps; i++) PUT("%d", a->step[i] + (w->trace.parts == 0));
    PUT("],'shares':[");
    for (int64_t i = 0; i < a->pictures; i++)
        basin_document_bytes(&w->report, a->share + (size_t)i * size, size);
    PUT("]}");
}

/* ---- a hole ---- */

/* The first pictures with a square hole in the middle, filled as `image complete` does, and the
 * energy by step. */
static basin_status put_hole(writer *w, int64_t i, basin_error *error) {
    const basin_image_settings *s = w->settings;
    BASIN_AT_EXIT(basin_image_complete_result_free) basin_image_complete_result done = {0};
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = {0};
    int64_t side = s->size * 2 / 7, at = (s->size - side) / 2;
    basin_image_complete_options how = {
        .rectangle = {at, at, side, side},
    };
    const float *patches = w->patches + i * w->tokens * w->values;
    BASIN_TRY(basin_image_sheet_picture(&picture, patches, NULL, s, error));
    BASIN_TRY(basin_image_complete(&done, w->model, &picture, 1, &how, error));
    if (!done.energies) return BASIN_OK; /* too small a picture to copy from */
    PUT("{'side':%lld,'given':{", (long long)side);
    basin_document_picture(&w->report, &done.masked, form_of(w), NULL);
    PUT("},'completed':{");
    basin_document_picture(&w->report, &done.completed, form_of(w), NULL);
    PUT("}");
    put_numbers(w, "energy", done.energy, done.energies);
    put_numbers(w, "model_energy", done.model_energy, done.energies);
    PUT("}");
    return BASIN_OK;
}

static void put_holes(writer *w) {
    enum { PICTURES = 4 };
    basin_error error;
    PUT("'holes':[");
    for (int64_t i = 0; i < w->shown && i < PICTURES; i++)
        if (!basin_document_check(&w->report, put_hole(w, i, &error), &error)) return;
    PUT("]");
}

/* ---- weights ---- */

/* Patches [count, P] as bytes, of which the page makes a sheet. */
static void put_patches(writer *w, const float *patches, int64_t count) {
    const basin_image_settings *s = w->settings;
    BASIN_FREE_AT_EXIT uint8_t *bytes = NULL;
    basin_error error;
    if (!basin_document_check(&w->report,
                              BASIN_NEW_RAW(&bytes, count * w->values, "a report", &error), &error))
        return;
    for (int64_t i = 0; i < count * w->values; i++) {
        int64_t c = i % w->values / (s->patch * s->patch);
        bytes[i] = basin_image_byte(patches[i] * s->deviation[c] + s->mean[c]);
    }
    basin_document_bytes(&w->report, bytes, (size_t)(count * w->values));
}

/* With what each has of the energy, the mean over the pictures. */
static void put_memories(writer *w) {
    if (!w->trace.weight[BASIN_IMAGE_MEMORY]) return;
    PUT("'memories':{'patches':");
    put_patches(w, w->trace.weight[BASIN_IMAGE_MEMORY], w->settings->memories);
    put_numbers(w, "use", w->trace.use, w->settings->memories);
    PUT("}");
}

static void put_heads(writer *w, const char *name, const float *weights) {
    const basin_image_settings *s = w->settings;
    PUT("%s:[", name);
    for (int64_t h = 0; weights && h < s->heads; h++)
        put_patches(w, weights + h * s->head_dim * w->values, s->head_dim);
    PUT("]");
}

/* ---- the whole ---- */

static void put_settings(writer *w) {
    PUT("'settings':{");
    for (const basin_setting_entry *s = basin_image_task.table; s->is.name; s++) {
        char text[200];
        basin_setting_print(text, sizeof text, w->settings, s);
        PUT("%s:%s", s->is.name, text);
    }
    PUT("}");
}

static void put_model(writer *w) {
    const basin_image_evaluate_result *r = &w->scores;
    const basin_image_settings *s = w->settings;
    basin_error error;
    PUT("{'name':%s,'kind':%s,'parameters':%lld,'gamma':%g,'unit':%s",
        last_part(w->options->model_name), arch_name(s->arch), (long long)w->model->info.parameters,
        w->trace.gamma, w->trace.parts ? "step" : "layer");
    put_numbers(w, "deviation", s->deviation, s->channels);
    put_numbers(w, "mean", s->mean, s->channels);
    PUT("'scores':{'masks':%d,'mse':%g,'psnr':%g,'ssim':%g,'mean_mse':%g,'mean_psnr':%g", r->masks,
        r->mse, r->psnr, r->ssim, r->mean_mse, r->mean_psnr);
    put_numbers(w, "pictures", r->picture_mse, r->pictures);
    PUT("}");
    put_answers(w);
    put_trace(w);
    basin_document_check(&w->report, put_course(w, &error), &error);
    put_holes(w);
    put_attention(w);
    put_memories(w);
    put_heads(w, "keys", w->trace.weight[BASIN_IMAGE_KEY]);
    put_heads(w, "queries", w->trace.weight[BASIN_IMAGE_QUERY]);
    put_settings(w);
    PUT("}");
}

static basin_status write_document(const char *path, writer *w, basin_error *error) {
    const basin_image_settings *s = w->settings;
    const char *name = last_part(w->options->model_name);
    char lead[1000];
    snprintf(
        lead, sizeof lead,
        "%s that completes pictures of %lld \u00d7 %lld pixels, %lld of %lld patches occluded. "
        "Scored on %.700s.",
        arch_name(s->arch), (long long)s->size, (long long)s->size,
        (long long)basin_image_occluded(s), (long long)w->tokens, w->options->name);
    BASIN_TRY(basin_document_begin(&w->report, path, "image", name, lead, error));
    PUT("'size':%lld,'patch':%lld", (long long)s->size, (long long)s->patch);
    put_pictures(w);
    PUT("'models':[");
    put_model(w);
    PUT("]");
    return basin_document_end(&w->report, error);
}

/* ---- what it shows ---- */

static void free_feed(basin_picture_feed **feed) { basin_picture_feed_free(*feed); }

/* The chosen pictures, spread evenly over those scored, and their masks. */
static basin_status read_chosen(writer *w, basin_error *error) {
    static const char what[] = "the pictures of a report";
    const basin_image_settings *s = w->settings;
    int64_t N = w->tokens, size = N * w->values;
    BASIN_AT_EXIT(free_feed) basin_picture_feed *feed = NULL;
    basin_picture_feed_batch batch = {0};
    BASIN_SCRATCH_RAW(int64_t, index, w->shown, what, error);
    BASIN_TRY(BASIN_NEW_RAW(&w->place, w->shown, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&w->mask, w->shown * N, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&w->patches, w->shown * size, what, error));
    for (int64_t i = 0; i < w->shown; i++) {
        w->place[i] = i * w->scores.pictures / w->shown;
        index[i] = w->scores.index[w->place[i]];
        basin_image_evaluate_mask(w->mask + i * N, s, index[i], 0);
    }
    basin_image_set chosen = {.pictures = w->set.pictures, .item = index, .items = w->shown};
    BASIN_TRY(basin_image_feed(&feed, &chosen, s, &(basin_picture_feed_config){.batch = w->shown},
                               w->options->watch, error));
    BASIN_TRY(basin_picture_feed_next(&batch, feed, error));
    if (batch.count != w->shown)
        return basin_fail(error, BASIN_BAD_FILE,
                          "of %lld chosen pictures %lld can be read again: did the files change?",
                          (long long)w->shown, (long long)batch.count);
    memcpy(w->patches, batch.values, (size_t)(w->shown * size) * sizeof *w->patches);
    return BASIN_OK;
}

static basin_status gather(writer *w, basin_error *error) {
    const basin_image_report_options *o = w->options;
    basin_image_evaluate_options scoring = {.masks = o->masks, .watch = o->watch};
    if (!o->name || !o->model_name)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a report needs names for the model and the pictures");
    BASIN_TRY(
        basin_image_set_open(&w->set, o->source, true, (uint64_t)w->model->settings.seed, error));
    BASIN_TRY(basin_image_evaluate_set(&w->scores, w->model, &w->set, &scoring, error));
    w->shown = basin_int_min(o->shown > 0 ? o->shown : 1, w->scores.pictures);
    BASIN_TRY(read_chosen(w, error));
    return basin_image_trace_new(&w->trace, w->model, w->patches, w->mask, w->shown,
                                 ATTENTION_BYTES, error);
}

static void writer_free(writer *w) {
    basin_image_evaluate_result_free(&w->scores);
    BASIN_FREE(w->place, w->patches, w->mask);
    basin_image_trace_free(&w->trace);
    basin_image_set_close(&w->set);
    basin_picture_free(&w->picture);
}

basin_status basin_image_report(const char *path, basin_image_evaluate_result *result,
                                basin_image_model *model, const basin_image_report_options *options,
                                basin_error *error) {
    const basin_image_settings *s = &model->settings;
    BASIN_AT_EXIT(writer_free)
    writer w = {.options = options,
                .model = model,
                .settings = s,
                .tokens = basin_image_tokens(s),
                .values = basin_image_patch_values(s)};
    BASIN_TRY(BASIN_SIZE_CHECK(options, "basin_image_report_options", error));
    if (result) {
        BASIN_TRY(BASIN_SIZE_CHECK(result, "basin_image_evaluate_result", error));
        w.scores.size = result->size;
        *result = (basin_image_evaluate_result){.size = result->size};
    }
    BASIN_TRY(gather(&w, error));
    BASIN_TRY(write_document(path, &w, error));
    if (!result) return BASIN_OK;
    *result = w.scores;
    w.scores = (basin_image_evaluate_result){0};
    return BASIN_OK;
}
