/* The document of a report; see report.h and docs/reports.md. It holds names, numbers and pictures;
 * the viewer page makes sections, plots and explanations of them. */
#include "tasks/common/view/document.h"
#include "base/shape.h"
#include "base/sort.h"
#include "tasks/pictures/report/report.h"

typedef basin_image_entry entry;

typedef struct writer {
    basin_document report;
    const basin_image_findings *findings;
    const entry *first;     /* of `models` */
    basin_picture picture;  /* scratch */
    int64_t tokens, values; /* N, P */
    int models;
} writer;

#define PUT(...) basin_document_put(&w->report, __VA_ARGS__)

/* ---- names ---- */

static const char *last_part(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

/* The last part of a model's name, or all of it where two have that. */
static const char *model_name(const writer *w, const entry *e) {
    const char *name = last_part(e->name);
    for (const entry *other = w->first; other < w->first + w->models; other++)
        if (other != e && !strcmp(last_part(other->name), name)) return e->name;
    return name;
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

/* From low .. 1. */
static void put_bytes(writer *w, const double *value, int64_t count, double low) {
    double range = low < 1 ? 1 - low : 1;
    BASIN_FREE_AT_EXIT uint8_t *bytes = NULL;
    basin_error error;
    if (!basin_document_check(&w->report, BASIN_NEW_RAW(&bytes, count, "a report", &error), &error))
        return;
    for (int64_t i = 0; i < count; i++) bytes[i] = basin_image_byte((value[i] - low) / range);
    basin_document_bytes(&w->report, bytes, (size_t)count);
}

/* A picture of this many pixels or fewer across shows its pixels. */
static basin_document_form form_of(const entry *e) {
    enum { CRISP = 96 };
    return e->model->settings.size <= CRISP ? BASIN_DOCUMENT_PIXELS : BASIN_DOCUMENT_PHOTO;
}

/* Patches [N, P] as that model has normalised them, those of `mask` in grey. */
static void put_picture(writer *w, const entry *e, const float *patches, const uint8_t *mask) {
    basin_error error;
    basin_status status =
        basin_image_sheet_picture(&w->picture, patches, mask, &e->model->settings, &error);
    if (!basin_document_check(&w->report, status, &error)) return;
    PUT("{");
    basin_document_picture(&w->report, &w->picture, form_of(e), NULL);
    PUT("}");
}

/* ---- the pictures shown ---- */

static void put_pictures(writer *w) {
    const basin_image_exhibit *x = &w->first->exhibit;
    PUT("'pictures':[");
    for (int64_t i = 0; i < x->count; i++) {
        char text[BASIN_MAX_PICTURE_NAME];
        const uint8_t *mask = x->mask + i * w->tokens;
        const float *patches = x->patches + i * w->tokens * w->values;
        basin_pictures_name(text, w->findings->set.pictures, x->index[i]);
        PUT("{'name':%s,'hidden':[", last_part(text));
        for (int64_t n = 0; n < w->tokens; n++) PUT("%d", mask[n] == BASIN_PATCH_REPLACED);
        PUT("],'truth':");
        put_picture(w, w->first, patches, NULL);
        PUT("'given':");
        put_picture(w, w->first, patches, mask);
        PUT("}");
    }
    PUT("]");
}

/* The error of each pixel [N, patch, patch], root mean square over channels; half of the range is
 * 1. */
static void put_errors(writer *w, const entry *e, const float *output, const float *truth) {
    const basin_image_settings *s = &e->model->settings;
    int64_t area = s->patch * s->patch, size = w->tokens * area;
    BASIN_FREE_AT_EXIT double *off = NULL;
    basin_error error;
    if (!basin_document_check(&w->report, BASIN_NEW_RAW(&off, size, "a report", &error), &error))
        return;
    for (int64_t i = 0; i < size; i++) {
        double sum = 0;
        for (int64_t c = 0; c < s->channels; c++) {
            int64_t v = i / area * w->values + c * area + i % area;
            double by = s->deviation[c] * ((double)output[v] - truth[v]);
            sum += by * by / (double)s->channels;
        }
        off[i] = 2 * sqrt(sum);
    }
    put_bytes(w, off, size, 0);
}

/* What a model made of picture i: completed, all of it as it came out, and its errors. */
static void put_answer(writer *w, const entry *e, int64_t i) {
    const basin_image_exhibit *x = &e->exhibit;
    int64_t size = w->tokens * w->values;
    const float *output = x->output + i * size, *truth = x->patches + i * size;
    const uint8_t *mask = x->mask + i * w->tokens;
    BASIN_FREE_AT_EXIT float *pasted = NULL;
    basin_error error;
    if (!basin_document_check(&w->report, BASIN_NEW_RAW(&pasted, size, "a picture", &error),
                              &error))
        return;
    basin_image_paste(pasted, output, truth, mask, w->tokens, w->values);
    PUT("{'mse':%g,'completed':", x->mse[i]);
    put_picture(w, e, pasted, NULL);
    PUT("'output':");
    put_picture(w, e, output, NULL);
    PUT("'errors':");
    put_errors(w, e, output, truth);
    PUT("}");
}

/* ---- the descent ---- */

/* Frames [T + 1, count, N, P] of a picture; at most FRAMES of them. */
static void put_frames(writer *w, const entry *e, const float *frames, int64_t picture) {
    enum { FRAMES = 40 };
    const basin_image_trace *t = &e->trace;
    int count = t->steps < FRAMES ? t->steps + 1 : FRAMES;
    PUT("[");
    for (int i = 0; i < count; i++) {
        int step = count > 1 ? (int)((int64_t)i * t->steps / (count - 1)) : 0;
        PUT("{'step':%d,'picture':", step);
        put_picture(w, e, frames + (step * t->count + picture) * w->tokens * w->values, NULL);
        PUT("}");
    }
    PUT("]");
}

static void put_trace(writer *w, const entry *e) {
    const basin_image_trace *t = &e->trace;
    PUT("'steps':%d,'scenes':[", t->steps);
    for (int64_t i = 0; i < t->count; i++) {
        PUT("{'tokens':");
        put_frames(w, e, t->token, i);
        PUT("'forces':[");
        for (int p = 0; p < t->parts; p++) put_frames(w, e, t->force[p], i);
        PUT("]}");
    }
    PUT("]");
}

/* Means over the pictures shown, by step. */
static void put_course(writer *w, const entry *e) {
    const basin_image_course *c = &e->course;
    PUT("'course':{'pictures':%lld,'rises':%lld,'mean_mse':%g,'mean_psnr':%g",
        (long long)c->pictures, (long long)c->rises, c->mean_mse, c->mean_psnr);
    put_numbers(w, "mse", c->mse, c->steps + 1);
    put_numbers(w, "psnr", c->psnr, c->steps + 1);
    PUT("'terms':[");
    for (int p = 0; p < c->parts; p++) {
        PUT("{'name':%s", e->trace.part[p]);
        put_numbers(w, "energy", c->energy[p], c->steps + 1);
        put_numbers(w, "force", c->size[p], c->steps + 1);
        PUT("}");
    }
    PUT("]}");
}

static void put_attention(writer *w, const entry *e) {
    const basin_image_attention *a = &e->attention;
    size_t size = (size_t)(a->steps * a->heads * a->tokens * a->keys);
    if (!a->heads) return;
    PUT("'attention':{'heads':%lld,'keys':%lld,'steps':[", (long long)a->heads, (long long)a->keys);
    /* The attention of a ViT's layer i is that before layer i + 1. */
    for (int i = 0; i < a->steps; i++) PUT("%d", a->step[i] + (e->trace.parts == 0));
    PUT("],'shares':[");
    for (int64_t i = 0; i < a->pictures; i++)
        basin_document_bytes(&w->report, a->share + (size_t)i * size, size);
    PUT("]}");
}

/* ---- a hole ---- */

/* Traced pictures with a square hole in the middle, filled as `image complete` does, and the energy
 * by step. */
static basin_status put_hole(writer *w, const entry *e, int64_t i, basin_error *error) {
    const basin_image_settings *s = &e->model->settings;
    BASIN_AT_EXIT(basin_image_complete_result_free) basin_image_complete_result done = {0};
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = {0};
    int64_t side = s->size * 2 / 7, at = (s->size - side) / 2;
    basin_image_complete_options how = {
        .rectangle = {at, at, side, side},
    };
    const float *patches = e->exhibit.patches + i * w->tokens * w->values;
    BASIN_TRY(basin_image_sheet_picture(&picture, patches, NULL, s, error));
    BASIN_TRY(basin_image_complete(&done, e->model, &picture, 1, &how, error));
    if (!done.energies) return BASIN_OK; /* too small a picture to copy from */
    PUT("{'side':%lld,'given':{", (long long)side);
    basin_document_picture(&w->report, &done.masked, form_of(e), NULL);
    PUT("},'completed':{");
    basin_document_picture(&w->report, &done.completed, form_of(e), NULL);
    PUT("}");
    put_numbers(w, "energy", done.energy, done.energies);
    put_numbers(w, "model_energy", done.model_energy, done.energies);
    PUT("}");
    return BASIN_OK;
}

static void put_holes(writer *w, const entry *e) {
    basin_error error;
    PUT("'holes':[");
    for (int64_t i = 0; i < w->findings->traced; i++)
        if (!basin_document_check(&w->report, put_hole(w, e, i, &error), &error)) return;
    PUT("]");
}

/* ---- weights ---- */

/* Patches [count, P], of which the page makes a sheet. */
static void put_patches(writer *w, const entry *e, const float *patches, int64_t count) {
    const basin_image_settings *s = &e->model->settings;
    BASIN_FREE_AT_EXIT double *value = NULL;
    basin_error error;
    if (!basin_document_check(&w->report,
                              BASIN_NEW_RAW(&value, count * w->values, "a report", &error), &error))
        return;
    for (int64_t i = 0; i < count * w->values; i++) {
        int64_t c = i % w->values / (s->patch * s->patch);
        value[i] = patches[i] * s->deviation[c] + s->mean[c];
    }
    put_bytes(w, value, count * w->values, 0);
}

/* With what each has of the energy. */
static void put_memories(writer *w, const entry *e) {
    int64_t count = e->model->settings.memories;
    if (!e->weights.memory) return;
    PUT("'memories':{'patches':");
    put_patches(w, e, e->weights.memory, count);
    put_numbers(w, "use", e->course.use, count);
    PUT("}");
}

static void put_heads(writer *w, const entry *e, const char *name, const float *weights) {
    const basin_image_settings *s = &e->model->settings;
    PUT("%s:[", name);
    for (int64_t h = 0; weights && h < s->heads; h++)
        put_patches(w, e, weights + h * s->head_dim * w->values, s->head_dim);
    PUT("]");
}

/* The smallest cosine of positions over all models, so that their maps have one scale. */
static double min_cosine(const writer *w) {
    double low = 1;
    for (int k = 0; k < w->models; k++)
        for (int64_t i = 0; i < w->tokens * w->tokens; i++)
            low = fmin(low, w->first[k].weights.cosine[i]);
    return low;
}

static void put_positions(writer *w, const entry *e) {
    PUT("'positions':");
    put_bytes(w, e->weights.cosine, w->tokens * w->tokens, min_cosine(w));
}

/* ---- parameters and settings ---- */

/* Makes a graph for its parameters. A ViT has at most 64 layers: what cannot be built is left out.
 */
static bool open_graph(writer *w, basin_image_graph *graph, const basin_image_settings *s) {
    basin_error error;
    basin_status status = basin_image_graph_new(graph, s, 1, &error);
    if (status == BASIN_NO_MEMORY) basin_document_check(&w->report, status, &error);
    return !status;
}

static void put_tensors(writer *w, const entry *e) {
    basin_image_graph graph;
    PUT("'tensors':[");
    if (open_graph(w, &graph, &e->model->settings)) {
        for (size_t i = 0; i < graph.params.count; i++) {
            basin_expr state = graph.params.param[i].state;
            PUT("[%s,%s,%lld]", basin_expr_name(state), basin_shape_text(basin_expr_shape(state)),
                (long long)basin_shape_count(basin_expr_shape(state)));
        }
        basin_image_graph_free(&graph);
    }
    PUT("]");
}

/* How many parameters each architecture has at the first model's sizes; the paper's comparison. */
static void put_architectures(writer *w) {
    static const char *const arch[] = {"et", "albert", "vit"};
    PUT("'architectures':[");
    for (int i = 0; i < 3; i++) {
        basin_image_settings s = w->first->model->settings;
        basin_image_graph graph;
        s.arch = arch[i];
        if (!open_graph(w, &graph, &s)) continue;
        PUT("[%s,%lld]", arch_name(arch[i]), (long long)basin_params_total(&graph.params));
        basin_image_graph_free(&graph);
    }
    PUT("]");
}

static void put_settings(writer *w, const entry *e) {
    PUT("'settings':{");
    for (const basin_setting_entry *s = basin_image_task.table; s->is.name; s++) {
        char text[200];
        basin_setting_print(text, sizeof text, &e->model->settings, s);
        PUT("%s:%s", s->is.name, text);
    }
    PUT("}");
}

/* ---- the whole ---- */

static void put_model(writer *w, const entry *e) {
    const basin_image_evaluate_result *r = &e->scores;
    const basin_image_settings *s = &e->model->settings;
    PUT("{'name':%s,'kind':%s,'parameters':%lld,'gamma':%g,'unit':%s", model_name(w, e),
        arch_name(s->arch), (long long)e->model->info.parameters, e->weights.gamma,
        e->trace.parts ? "step" : "layer");
    put_numbers(w, "deviation", s->deviation, s->channels);
    put_numbers(w, "mean", s->mean, s->channels);
    PUT("'scores':{'masks':%d,'mse':%g,'psnr':%g,'ssim':%g,'mean_mse':%g,'mean_psnr':%g", r->masks,
        r->mse, r->psnr, r->ssim, r->mean_mse, r->mean_psnr);
    put_numbers(w, "pictures", r->picture_mse, r->pictures);
    PUT("},'answers':[");
    for (int64_t i = 0; i < e->exhibit.count; i++) put_answer(w, e, i);
    PUT("]");
    put_trace(w, e);
    put_course(w, e);
    put_holes(w, e);
    put_attention(w, e);
    put_memories(w, e);
    put_heads(w, e, "keys", e->weights.key);
    put_heads(w, e, "queries", e->weights.query);
    put_positions(w, e);
    put_tensors(w, e);
    put_settings(w, e);
    PUT("}");
}

static basin_status begin(writer *w, const char *path, basin_error *error) {
    const basin_image_settings *s = &w->first->model->settings;
    char title[1000] = "", lead[1000], subject[64];
    for (int i = 0; i < w->models; i++)
        snprintf(title + strlen(title), sizeof title - strlen(title), "%s%s",
                 !i                  ? ""
                 : i < w->models - 1 ? ", "
                                     : " and ",
                 model_name(w, &w->first[i]));
    snprintf(subject, sizeof subject, "%d models that complete", w->models);
    if (w->models == 1) snprintf(subject, sizeof subject, "%s that completes", arch_name(s->arch));
    snprintf(lead, sizeof lead,
             "%s pictures of %lld \u00d7 %lld pixels, %lld of %lld patches occluded. Scored on "
             "%.700s.",
             subject, (long long)s->size, (long long)s->size, (long long)basin_image_occluded(s),
             (long long)w->tokens, w->findings->options->name);
    return basin_document_begin(&w->report, path, "image", title, lead, error);
}

basin_status basin_image_document_write(const char *path, const basin_image_findings *findings,
                                        basin_error *error) {
    const basin_image_settings *s = &findings->entry[0].model->settings;
    writer all = {.findings = findings,
                  .first = findings->entry,
                  .models = findings->entries,
                  .tokens = basin_image_tokens(s),
                  .values = basin_image_patch_values(s)},
           *w = &all;
    BASIN_TRY(begin(w, path, error));
    PUT("'size':%lld,'patch':%lld,'shown':%lld,'traced':%lld,'extremes':%lld,'least_cosine':%g",
        (long long)s->size, (long long)s->patch, (long long)findings->shown,
        (long long)findings->traced, (long long)findings->extremes, min_cosine(w));
    put_architectures(w);
    put_pictures(w);
    PUT("'models':[");
    for (int i = 0; i < w->models; i++) put_model(w, &w->first[i]);
    PUT("]");
    basin_picture_free(&w->picture);
    return basin_document_end(&w->report, error);
}
