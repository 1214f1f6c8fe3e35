/* The document of a report; see report.h and docs/reports.md. Sections in the order in which one
 * asks: how good is it, what does it do, how does it get there, what has it learnt, where does it
 * fail, what is it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/try.h"
#include "task/image/report/report.h"
#include "view/document.h"

typedef basin_image_entry entry;

typedef struct writer {
    basin_document report;
    const basin_image_findings *findings;
    const entry *first;                   /* of `models` */
    const basin_image_settings *settings; /* of the first model; sizes are those of all */
    basin_picture picture;                /* scratch */
    int64_t tokens, values, across;       /* N, P, patches in a row */
    int models;
} writer;

#define PUT(...) basin_document_put(&w->report, __VA_ARGS__)
#define TEXT(tone, ...) basin_document_text(&w->report, tone, __VA_ARGS__)

/* ---- names ---- */

static const char *last_part(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

/* The last part of a picture's name. */
static const char *picture_name(char text[BASIN_PICTURE_NAME], const writer *w, int64_t i) {
    int64_t index = w->first->exhibit.index[i];
    return last_part(basin_pictures_name(text, w->findings->set.pictures, index));
}

/* The last part of a model's name, or all of it where two have that. */
static const char *model_name(const writer *w, const entry *e) {
    const char *name = last_part(e->name);
    for (const entry *other = w->first; other < w->first + w->models; other++)
        if (other != e && !strcmp(last_part(other->name), name)) return e->name;
    return name;
}

/* A letter where there are several models, "" where there is one. */
static const char *letter_of(const writer *w, const entry *e) {
    static const char *const letter[BASIN_IMAGE_REPORT_MODELS] = {"A", "B", "C", "D",
                                                                  "E", "F", "G", "H"};
    return w->models > 1 ? letter[e - w->first] : "";
}

static const char *arch_name(const basin_image_settings *s) {
    if (!strcmp(s->arch, "vit")) return "Vision Transformer";
    if (!strcmp(s->arch, "albert")) return "weight-shared Vision Transformer";
    return "Energy Transformer";
}

/* ---- parts of the document ---- */

static void end_section(writer *w) { PUT("]}"); }

static void put_heading(writer *w, const char *tone, const char *text) {
    PUT("{'type':'heading','tone':%s,'text':%s}", tone, text);
}

/* Letter and name, where there are several models. */
static void name_model(writer *w, const entry *e) {
    char text[BASIN_PICTURE_NAME + 16];
    snprintf(text, sizeof text, "%s: %s", letter_of(w, e), model_name(w, e));
    if (w->models > 1) put_heading(w, "", text);
}

static void put_plot(writer *w, const char *title, const char *x, const char *y,
                     const basin_plot_line *line, int lines) {
    basin_document_plot(&w->report, &(basin_plot){.title = title,
                                                  .x_label = x,
                                                  .y_label = y,
                                                  .line = line,
                                                  .lines = lines,
                                                  .x_whole = true});
}

/* A picture of this many pixels or fewer across shows its pixels. */
enum { CRISP = 96 };

static basin_document_form form_of(const writer *w) {
    return w->settings->size <= CRISP ? BASIN_DOCUMENT_PIXELS : BASIN_DOCUMENT_PHOTO;
}

/* Members of a picture object: patches [N, P] as that model has normalised them, those of `mask` in
 * grey. */
static void put_picture(writer *w, const entry *e, const float *patches, const uint8_t *mask,
                        const char *alt) {
    basin_error error;
    basin_status status =
        basin_image_sheet_picture(&w->picture, patches, mask, &e->model->settings, &error);
    if (basin_document_check(&w->report, status, &error))
        basin_document_picture(&w->report, &w->picture, form_of(w), alt);
}

/* Each picture shown, with and without its occluded patches: the document has them once, by name.
 */
static void put_media(writer *w) {
    const entry *e = w->first;
    PUT("'media':{");
    for (int64_t i = 0; i < e->exhibit.count; i++)
        for (int masked = 0; masked < 2; masked++) {
            char name[BASIN_PICTURE_NAME], alt[BASIN_PICTURE_NAME + 64], id[48];
            snprintf(id, sizeof id, "%s-%lld", masked ? "given" : "truth", (long long)i);
            snprintf(alt, sizeof alt, masked ? "%s with occluded patches in grey" : "%s as it is",
                     picture_name(name, w, i));
            PUT("%s:{", id);
            put_picture(w, e, e->exhibit.patches + i * w->tokens * w->values,
                        masked ? e->exhibit.mask + i * w->tokens : NULL, alt);
            PUT("}");
        }
    PUT("}");
}

/* A picture object that names one of them. */
static void put_again(writer *w, const char *what, int64_t i, const char *title, const char *note) {
    char id[48];
    snprintf(id, sizeof id, "%s-%lld", what, (long long)i);
    PUT("{'media':%s,'title':%s,'note':%s}", id, title, note);
}

/* ---- scores ---- */

/* Errors in different units cannot be ranked, their shares of the mean colour's can. */
static bool alike(const writer *w) {
    for (int i = 1; i < w->models; i++)
        if (!basin_image_same_units(w->settings, &w->first[i].model->settings)) return false;
    return true;
}

/* On how many pictures no other model has a lower share of the mean colour's error. */
static int64_t wins(const writer *w, const entry *e) {
    int64_t count = 0;
    for (int64_t p = 0; p < e->scores.pictures; p++) {
        bool best = true;
        for (const entry *other = w->first; other < w->first + w->models && best; other++)
            best = e->scores.picture_mse[p] / e->scores.mean_mse <=
                   other->scores.picture_mse[p] / other->scores.mean_mse;
        count += best;
    }
    return count;
}

static void put_comparison(writer *w) {
    PUT("{'type':'table','columns':[{'name':'model','code':true},"
        "{'name':'MSE','number':true,'digits':4,'best':%s},"
        "{'name':'PSNR','number':true,'digits':2,'unit':'dB','best':'high'},"
        "{'name':'SSIM','number':true,'digits':3,'best':'high'},"
        "{'name':%s,'number':true,'digits':1,'unit':%s,'best':'low'},"
        "{'name':'best on','number':true,'unit':'pictures','best':'high'},"
        "{'name':'parameters','number':true},{'name':'steps','number':true},{'name':'kind'}],"
        "'rows':[",
        alike(w) ? "low" : "", "of the mean colour's MSE", "%");
    for (const entry *e = w->first; e < w->first + w->models; e++) {
        char name[BASIN_PICTURE_NAME];
        snprintf(name, sizeof name, "%s %s", letter_of(w, e), model_name(w, e));
        PUT("[%s,%g,%g,%g,%g,%lld,%lld,%lld,%s]", name, e->scores.mse, e->scores.psnr,
            e->scores.ssim, 100 * e->scores.mse / e->scores.mean_mse, (long long)wins(w, e),
            (long long)e->model->parameters, (long long)e->model->settings.steps,
            arch_name(&e->model->settings));
    }
    PUT("],'foot':['mean colour',%g,%g]}", w->first->scores.mean_mse, w->first->scores.mean_psnr);
}

/* How many pictures have which error, an outline for each model. */
static void put_histogram(writer *w) {
    enum { BINS = 40, POINTS = 2 * BINS + 2 };
    double point[BASIN_IMAGE_REPORT_MODELS][2][POINTS], most = 0;
    basin_plot_line line[BASIN_IMAGE_REPORT_MODELS];
    for (const entry *e = w->first; e < w->first + w->models; e++)
        for (int64_t p = 0; p < e->scores.pictures; p++)
            most = fmax(most, e->scores.picture_mse[p]);
    double high = most > 0 ? most : 1;
    int bins = (int)fmin(fmax(2 * sqrt((double)w->first->scores.pictures), 8), BINS);
    for (int i = 0; i < w->models; i++) {
        const entry *e = &w->first[i];
        basin_plot_histogram(point[i][0], point[i][1], bins, e->scores.picture_mse,
                             e->scores.pictures, 0, high);
        line[i] = (basin_plot_line){w->models > 1 ? letter_of(w, e) : "pictures", point[i][0],
                                    point[i][1], 2 * bins + 2, BASIN_PLOT_AREA};
    }
    basin_document_plot(&w->report, &(basin_plot){.title = "Pictures by their error",
                                                  .x_label = "masked MSE",
                                                  .y_label = "pictures",
                                                  .line = line,
                                                  .lines = w->models,
                                                  .y_whole = true});
}

/* Values by step, with the mean colour's as a dashed line behind them. */
static void put_course(writer *w, const char *title, const char *unit, const char *y,
                       basin_plot_line *line /* [lines + 1] */, int lines, double mean) {
    double ends[2] = {0, 0}, flat[2] = {mean, mean};
    for (int i = 0; i < lines; i++) ends[1] = fmax(ends[1], (double)line[i].count - 1);
    line[lines] = (basin_plot_line){"mean colour", ends, flat, 2, BASIN_PLOT_DASHED};
    put_plot(w, title, unit, y, line, lines + 1);
}

/* MSE and PSNR of all models step by step, with the mean colour of the first. */
static void put_courses(writer *w) {
    basin_plot_line mse[BASIN_IMAGE_REPORT_MODELS + 1], psnr[BASIN_IMAGE_REPORT_MODELS + 1];
    for (int i = 0; i < w->models; i++) {
        const basin_image_course *c = &w->first[i].course;
        const char *name = letter_of(w, &w->first[i]);
        mse[i] = (basin_plot_line){name, NULL, c->mse, c->steps + 1, BASIN_PLOT_DOTTED};
        psnr[i] = (basin_plot_line){name, NULL, c->psnr, c->steps + 1, BASIN_PLOT_DOTTED};
    }
    const basin_image_course *c = &w->first->course;
    put_course(w, "Masked MSE by step", "step", "MSE", mse, w->models, c->mean_mse);
    put_course(w, "PSNR by step", "step", "dB", psnr, w->models, c->mean_psnr);
}

static void put_training(writer *w) {
    const basin_image_curve *c = &w->findings->curve;
    const basin_plot_line line[] = {{"training", c->loss.step, c->loss.value, c->loss.count, 0},
                                    {"test", c->test.step, c->test.value, c->test.count, 0}};
    int skip = !c->loss.count, lines = !!c->loss.count + !!c->test.count;
    const char *letter = letter_of(w, w->first);
    char title[48];
    snprintf(title, sizeof title, "Training%s%s: masked MSE", *letter ? " of " : "", letter);
    if (lines) put_plot(w, title, "step", "MSE", line + skip, lines);
}

static void explain_scores(writer *w) {
    const basin_image_scores *scores = &w->first->scores;
    const basin_image_settings *s = w->settings;
    char units[100] = "";
    for (int64_t c = 0; c < s->channels; c++)
        snprintf(units + strlen(units), sizeof units - strlen(units), "%s%.3g", c ? ", " : "",
                 s->deviation[c]);
    TEXT("",
         "The masked MSE is the mean square over the pixels of occluded patches, in units of the "
         "square of the model's deviation%s (%s of a range of 1); PSNR and SSIM compare whole "
         "pictures. Means over %lld picture%s, %d mask%s each. The mean colour of the shown "
         "patches, put into every occluded one, scores %.4f and %.2f dB.",
         s->channels > 1 ? "s" : "", units, (long long)scores->pictures,
         scores->pictures > 1 ? "s" : "", scores->masks, scores->masks > 1 ? "s" : "",
         scores->mean_mse, scores->mean_psnr);
    if (w->models < 2) return;
    TEXT("",
         "All models see the same pictures behind the same masks. The plots by step are means over "
         "the %lld pictures shown below.%s",
         (long long)w->first->course.pictures,
         alike(w) ? ""
                  : " The models were trained with different deviations, so compare PSNR, or the "
                    "share of the mean colour's MSE, rather than MSE.");
}

static void put_scores(writer *w) {
    basin_document_section(&w->report, "scores", "Scores", "", true);
    explain_scores(w);
    if (w->models > 1) put_comparison(w);
    PUT("{'type':'plots','plots':[");
    put_histogram(w);
    if (w->models > 1) put_courses(w);
    put_training(w);
    PUT("]}");
    if (w->findings->spec->log)
        TEXT("soft", "Training errors are means over the last steps and their masks; test errors "
                     "are on pictures never trained on.");
    end_section(w);
}

/* ---- completed pictures ---- */

/* An error of this share of the range has the brightest colour. */
static const double most_error = 0.5;

/* What one model made of picture i: completed, or all of it as it came out; and its errors. */
static void put_answer(writer *w, const entry *e, int64_t i, const char *name) {
    const basin_image_exhibit *x = &e->exhibit;
    const char *letter = letter_of(w, e);
    int64_t size = w->tokens * w->values;
    const float *output = x->output + i * size, *truth = x->patches + i * size;
    const uint8_t *mask = x->mask + i * w->tokens;
    BASIN_FREE_AT_EXIT float *whole = NULL;
    char text[BASIN_PICTURE_NAME + 96];
    basin_error error;
    if (!basin_document_check(&w->report, BASIN_NEW_RAW(&whole, size, "a picture", &error), &error))
        return;
    basin_image_paste(whole, output, truth, mask, w->tokens, w->values);
    snprintf(text, sizeof text, "%s%scompleted", letter, *letter ? " " : "");
    PUT("{'title':%s", text);
    snprintf(text, sizeof text, "%s completed%s%s", name, *letter ? " by " : "", letter);
    put_picture(w, e, whole, NULL, text);
    PUT("'other':{");
    snprintf(text, sizeof text, "%s, all patches as the network%s%s puts them out", name,
             *letter ? " " : "", letter);
    put_picture(w, e, output, NULL, text);
    PUT("}}");
    basin_status status = basin_image_sheet_errors(&w->picture, output, truth, mask,
                                                   &e->model->settings, most_error, &error);
    if (!basin_document_check(&w->report, status, &error)) return;
    snprintf(text, sizeof text, *letter ? "error, MSE %.3f" : "error", x->mse[i]);
    PUT("{'title':%s", text);
    snprintf(text, sizeof text, "%s: errors of its pixels%s%s", name, *letter ? ", " : "", letter);
    basin_document_picture(&w->report, &w->picture, form_of(w), text);
    PUT("}");
}

static void put_card(writer *w, int64_t i) {
    char text[BASIN_PICTURE_NAME], note[48];
    const char *name = picture_name(text, w, i);
    snprintf(note, sizeof note, "MSE %.3f", w->first->exhibit.mse[i]);
    PUT("{'name':%s,'note':%s,'pictures':[", name, w->models > 1 ? "" : note);
    put_again(w, "given", i, "masked", "");
    if (w->models > 1) put_again(w, "truth", i, "original", "");
    for (const entry *e = w->first; e < w->first + w->models; e++) put_answer(w, e, i, name);
    if (w->models == 1) put_again(w, "truth", i, "original", "");
    PUT("]}");
}

static void put_cards(writer *w, int64_t first, int64_t count, const char *label) {
    enum { CELL_SMALL = 84, CELL_LARGE = 150 };
    PUT("{'type':'cards','cell':%d,'label':%s,'cards':[",
        w->settings->size <= CRISP ? CELL_SMALL : CELL_LARGE, label);
    for (int64_t i = first; i < first + count; i++) put_card(w, i);
    PUT("]}");
}

static void put_completed(writer *w) {
    char high[32];
    snprintf(high, sizeof high, "%.1f and more", most_error);
    basin_document_section(&w->report, "completed", "Completed pictures", "Completed", true);
    TEXT("", "Occluded patches are replaced by the MASK token; the model fills them in. The map "
             "of errors has a colour for each of their pixels: the difference from the original, "
             "as a share of the range from black to white.");
    PUT("{'type':'scale','low':'0','high':%s}", high);
    put_cards(w, 0, w->findings->shown, "Show all patches as the network puts them out");
    end_section(w);
}

static void put_extremes(writer *w) {
    int64_t shown = w->findings->shown, count = w->findings->extremes;
    if (count == 0) return;
    basin_document_section(&w->report, "extremes", "Best and worst", "", true);
    TEXT("", "Of all pictures scored, those with the least and the greatest error%s%s.",
         w->models > 1 ? " of " : "", letter_of(w, w->first));
    put_heading(w, "good", "Least error");
    put_cards(w, shown, count, "");
    put_heading(w, "bad", "Greatest error");
    put_cards(w, shown + count, count, "");
    end_section(w);
}

/* ---- the descent ---- */

static bool is_attention(const basin_image_trace *t, int part) {
    return !strcmp(t->part[part], "attention");
}

/* A panel whose frames [T + 1, count, N, P] the slider chooses from; of a longer descent so many
 * are kept. */
static void put_frames(writer *w, const entry *e, const float *frames, int64_t picture,
                       const char *title, const char *note) {
    enum { FRAMES = 40 };
    const basin_image_trace *t = &e->trace;
    int count = t->steps < FRAMES ? t->steps + 1 : FRAMES;
    PUT("{'title':%s,'note':%s,'frames':[", title, note);
    for (int i = 0; i < count; i++) {
        int step = count > 1 ? (int)((int64_t)i * t->steps / (count - 1)) : 0;
        PUT("{'step':%d", step);
        put_picture(w, e, frames + (step * t->count + picture) * w->tokens * w->values, NULL, NULL);
        PUT("}");
    }
    PUT("]}");
}

static void put_scene(writer *w, const entry *e, int64_t i) {
    const basin_image_trace *t = &e->trace;
    PUT("{'pick':");
    put_again(w, "truth", i, "", "");
    PUT("'panels':[");
    put_again(w, "given", i, "Given", "grey: occluded");
    put_frames(w, e, t->token, i, "Tokens", "where they are now");
    for (int p = 0; p < t->parts; p++)
        put_frames(w, e, t->force[p], i, is_attention(t, p) ? "Attention force" : "Hopfield force",
                   is_attention(t, p) ? "from other patches" : "from memories");
    put_again(w, "truth", i, "Original", "what it should be");
    PUT("]}");
}

/* Total energy, its terms as changes from the start, and how strong forces are. */
static void put_energies(writer *w, const entry *e) {
    const basin_image_course *c = &e->course;
    int count = c->steps + 1;
    BASIN_FREE_AT_EXIT double *number = NULL;
    basin_error error;
    basin_status status = BASIN_NEW(&number, (size_t)count * 3, "a plot", &error);
    if (!basin_document_check(&w->report, status, &error)) return;
    double *total = number, *change[2] = {total + count, total + (ptrdiff_t)2 * count};
    basin_plot_line line[2], size[2], all = {"total", NULL, total, count, BASIN_PLOT_DOTTED};
    for (int p = 0; p < c->parts; p++) {
        const char *name = is_attention(&e->trace, p) ? "attention" : "Hopfield";
        for (int i = 0; i < count; i++) {
            total[i] += c->energy[p][i];
            change[p][i] = c->energy[p][i] - c->energy[p][0];
        }
        line[p] = (basin_plot_line){name, NULL, change[p], count, BASIN_PLOT_DOTTED};
        size[p] = (basin_plot_line){name, NULL, c->size[p], count, BASIN_PLOT_DOTTED};
    }
    put_plot(w, "Energy of a picture", "step", "energy", &all, 1);
    if (c->parts > 1) put_plot(w, "Change of the terms", "step", "change", line, c->parts);
    put_plot(w, "Force on occluded tokens", "step", "root mean square", size, c->parts);
}

static void explain_steps(writer *w, const basin_image_trace *t) {
    if (t->parts == 0)
        TEXT("", "Tokens after each layer, decoded as if it were the last. Only the last was "
                 "trained to be decoded.");
    else if (t->parts == 2)
        TEXT("", "Tokens descend the energy: each step adds the two forces, its negative "
                 "gradients. All three live in the same space, so the decoder turns each of them "
                 "into a picture. A force is shown by itself, whatever its size; the sizes are "
                 "in a plot below.");
    else
        TEXT("",
             "Tokens descend the energy of %s: each step adds its force, the negative gradient. "
             "Both live in the same space, so the decoder turns each of them into a picture. The "
             "force is shown by itself, whatever its size; its size is in a plot below.",
             is_attention(t, 0) ? "attention" : "the Hopfield network");
}

/* Whether the energy falls, as it should: it does where the gain is positive and alpha small. */
static void say_falls(writer *w, const entry *e) {
    const basin_image_course *c = &e->course;
    long long all = (long long)(c->pictures * c->steps), rises = (long long)c->rises;
    if (e->weights.gamma < 0)
        TEXT("note",
             "The gain gamma of the layer norm is %.3g. A negative gain turns the descent into an "
             "ascent: the energy rose in %lld of %lld steps.",
             e->weights.gamma, rises, all);
    else if (rises)
        TEXT("note", "The energy rose in %lld of %lld steps: alpha, %g, is large for this model.",
             rises, all, e->model->settings.alpha);
    else
        TEXT("",
             "The energy rose in none of the %lld steps of %lld pictures; the gain gamma is %.3g.",
             all, (long long)c->pictures, e->weights.gamma);
}

static void put_stepper(writer *w, const entry *e) {
    const basin_image_trace *t = &e->trace;
    const basin_image_course *c = &e->course;
    const char *unit = t->parts ? "step" : "layer";
    char note[100];
    name_model(w, e);
    explain_steps(w, t);
    if (t->parts) say_falls(w, e);
    snprintf(note, sizeof note, "The plots are means over the %lld pictures shown above.",
             (long long)c->pictures);
    PUT("{'type':'descent','unit':%s,'steps':%d,'note':%s,'scenes':[", unit, t->steps, note);
    for (int64_t i = 0; i < t->count; i++) put_scene(w, e, i);
    PUT("],'plots':[");
    basin_plot_line mse[2] = {{"completed", NULL, c->mse, c->steps + 1, BASIN_PLOT_DOTTED}};
    basin_plot_line psnr[2] = {{"completed", NULL, c->psnr, c->steps + 1, BASIN_PLOT_DOTTED}};
    put_course(w, "Masked MSE", unit, "MSE", mse, 1, c->mean_mse);
    put_course(w, "PSNR", unit, "dB", psnr, 1, c->mean_psnr);
    if (c->parts) put_energies(w, e);
    PUT("]}");
}

static void put_descent(writer *w) {
    bool any = false;
    for (int i = 0; i < w->models; i++) any = any || w->first[i].trace.parts;
    basin_document_section(&w->report, "descent",
                           any ? "The descent, step by step" : "Layer by layer",
                           any ? "Descent" : "Layers", true);
    for (int i = 0; i < w->models; i++) put_stepper(w, &w->first[i]);
    end_section(w);
}

/* ---- attention ---- */

static void put_shares(writer *w, const entry *e, int64_t i) {
    const basin_image_attention *a = &e->attention;
    const uint8_t *mask = e->exhibit.mask + i * w->tokens;
    size_t size = (size_t)(a->steps * a->heads * a->tokens * a->keys);
    PUT("{'given':");
    put_again(w, "given", i, "", "");
    PUT("'truth':");
    put_again(w, "truth", i, "", "");
    PUT("'mask':'");
    for (int64_t n = 0; n < w->tokens; n++)
        fputc(mask[n] == BASIN_PATCH_REPLACED ? '1' : '0', w->report.file.file);
    fputs("\",\"share\":", w->report.file.file);
    w->report.last = ':';
    basin_document_bytes(&w->report, a->share + (size_t)i * size, size);
    PUT("}");
}

static void put_attention_of(writer *w, const entry *e) {
    const basin_image_attention *a = &e->attention;
    int all = e->trace.steps + (e->trace.parts > 0);
    bool fewer = a->pictures < w->findings->traced;
    name_model(w, e);
    if (!a->share) {
        TEXT("", "Too large for a page: %lld heads, %lld patches.", (long long)a->heads,
             (long long)a->tokens);
        return;
    }
    if (fewer || a->steps < all)
        TEXT("soft", "More would be too large for a page: %s%lld of %lld pictures, %d of %d %s.",
             fewer ? "the first " : "", (long long)a->pictures, (long long)w->findings->traced,
             a->steps, all, e->trace.parts ? "steps" : "layers");
    PUT("{'type':'attention','unit':%s,'heads':%lld,'across':%lld,'keys':%lld,'steps':[",
        e->trace.parts ? "step" : "layer", (long long)a->heads, (long long)w->across,
        (long long)a->keys);
    /* The attention of a ViT's layer i is that before layer i + 1. */
    for (int i = 0; i < a->steps; i++) PUT("%d", a->step[i] + (e->trace.parts == 0));
    PUT("],'pictures':[");
    for (int64_t i = 0; i < a->pictures; i++) put_shares(w, e, i);
    PUT("]}");
}

static void put_attention(writer *w) {
    bool any = false;
    for (int i = 0; i < w->models; i++) any = any || w->first[i].attention.heads;
    if (!any) return;
    basin_document_section(&w->report, "attention", "Where a patch looks", "Attention", true);
    TEXT("", "Click a patch, or move with the arrow keys: each map shows how one head spreads "
             "that patch's attention over the others, from the least share to the greatest, "
             "which is brightest. The shares of a head add up to 100 %%.");
    for (int i = 0; i < w->models; i++)
        if (w->first[i].attention.heads) put_attention_of(w, &w->first[i]);
    end_section(w);
}

/* ---- weights ---- */

/* About how large a patch is drawn, in pixels: lines between patches are thin then, and still seen
 * where the page shows the sheet smaller. */
enum { SMALL = 32, LARGE = 64, MOST_WIDTH = 1120 };

/* Columns for a sheet that is about square, and without a gap at its end where that can be. */
static int64_t columns_for(int64_t count) {
    int64_t least = (int64_t)ceil(sqrt((double)count));
    for (int64_t columns = least; columns <= 2 * least; columns++)
        if (count % columns == 0) return columns;
    return least;
}

/* What was drawn last, with a caption. */
static void put_drawn(writer *w, basin_status status, const basin_error *error, const char *alt,
                      const char *caption) {
    if (!basin_document_check(&w->report, status, error)) return;
    PUT("{'note':%s", caption);
    basin_document_picture(&w->report, &w->picture, BASIN_DOCUMENT_SHEET, alt);
    PUT("}");
}

static void put_sheet(writer *w, const entry *e, const float *patches, const int64_t *order,
                      int64_t count, int64_t columns, int64_t side, const char *alt,
                      const char *caption) {
    basin_error error;
    basin_status status = basin_image_sheet(&w->picture, patches, order, count, columns, side,
                                            &e->model->settings, &error);
    put_drawn(w, status, &error, alt, caption);
}

typedef struct ranked {
    double use;
    int64_t memory;
} ranked;

static int by_use(const void *a, const void *b) {
    const ranked *p = a, *q = b;
    return p->use != q->use ? BASIN_COMPARE(q->use, p->use) : BASIN_COMPARE(p->memory, q->memory);
}

/* Memories, those most used first; and the share of the energy that the first `few` have. */
static basin_status rank_memories(int64_t **order, double *share, const entry *e, int64_t few,
                                  basin_error *error) {
    int64_t count = e->model->settings.memories;
    BASIN_FREE_AT_EXIT ranked *rank = NULL;
    double some = 0, all = 0;
    BASIN_TRY(BASIN_NEW_RAW(order, count, "memories", error));
    BASIN_TRY(BASIN_NEW_RAW(&rank, count, "memories", error));
    for (int64_t i = 0; i < count; i++) rank[i] = (ranked){e->course.use[i], i};
    qsort(rank, (size_t)count, sizeof *rank, by_use);
    for (int64_t i = 0; i < count; i++) {
        (*order)[i] = rank[i].memory;
        all += rank[i].use;
        if (i < few) some += rank[i].use;
    }
    *share = all > 0 ? some / all : 0;
    return BASIN_OK;
}

static void put_memory_sheet(writer *w, const entry *e, const int64_t *order, int64_t count,
                             int64_t columns, int64_t side, bool all) {
    char caption[64];
    snprintf(caption, sizeof caption, all ? "all %lld, by use" : "the %lld used most",
             (long long)count);
    PUT("{'type':'pictures','pictures':[");
    put_sheet(w, e, e->weights.memory, order, count, columns, side,
              all ? "All memories as patches" : "The memories used most, as patches", caption);
    PUT("]}");
}

/* The sheet of those used most and, behind a check box, of all. */
static void put_memories_of(writer *w, const entry *e) {
    const basin_image_settings *s = &e->model->settings;
    int64_t count = s->memories, few = basin_int_min(count, 100), columns = columns_for(count);
    BASIN_FREE_AT_EXIT int64_t *order = NULL;
    double share = 0;
    char label[64];
    basin_error error;
    basin_status status = rank_memories(&order, &share, e, few, &error);
    if (!basin_document_check(&w->report, status, &error)) return;
    name_model(w, e);
    TEXT(
        "",
        "Each is a vector of the token space, decoded as a patch of %lld \u00d7 %lld pixels. Those "
        "that contribute most on the pictures shown come first: the first %lld of %lld carry "
        "%.0f %% of the %s.",
        (long long)s->patch, (long long)s->patch, (long long)few, (long long)count, 100 * share,
        basin_choice_is(s->hopfield_kind, "softmax") ? "softmax over memories" : "Hopfield energy");
    snprintf(label, sizeof label, "Show all %lld", (long long)count);
    if (few < count) PUT("{'type':'either','label':%s,'first':[", label);
    put_memory_sheet(w, e, order, few, 10, LARGE, false);
    if (few == count) return;
    PUT("],'second':[");
    put_memory_sheet(w, e, order, count, columns, basin_int_min(MOST_WIDTH / columns, SMALL), true);
    PUT("]}");
}

static bool has_memories(const writer *w) {
    for (int i = 0; i < w->models; i++)
        if (w->first[i].weights.memory) return true;
    return false;
}

static void put_memories(writer *w) {
    if (!has_memories(w)) return;
    basin_document_section(&w->report, "memories", "Memories of the Hopfield network", "Memories",
                           w->models > 1);
    for (int i = 0; i < w->models; i++)
        if (w->first[i].weights.memory) put_memories_of(w, &w->first[i]);
    end_section(w);
}

static void put_heads_of(writer *w, const entry *e, const char *title, const float *weights) {
    const basin_image_settings *s = &e->model->settings;
    const char *letter = letter_of(w, e);
    char alt[64], caption[32];
    snprintf(alt, sizeof alt, "%s%s%s", title, *letter ? " of " : "", letter);
    put_heading(w, "", alt);
    PUT("{'type':'pictures','small':true,'pictures':[");
    for (int64_t h = 0; h < s->heads; h++) {
        snprintf(alt, sizeof alt, "%s of head %lld as patches", title, (long long)(h + 1));
        snprintf(caption, sizeof caption, "head %lld", (long long)(h + 1));
        put_sheet(w, e, weights + h * s->head_dim * w->values, NULL, s->head_dim,
                  columns_for(s->head_dim), SMALL, alt, caption);
    }
    PUT("]}");
}

static void put_heads(writer *w) {
    bool any = false;
    for (int i = 0; i < w->models; i++) any = any || w->first[i].weights.key;
    if (!any) return;
    basin_document_section(&w->report, "heads", "Keys and queries", "", true);
    TEXT("", "The rows of each head's key and query matrices, decoded as patches. A patch asks "
             "with its overlaps with the queries and is found by its overlaps with the keys.");
    for (const entry *e = w->first; e < w->first + w->models; e++) {
        if (!e->weights.key) continue;
        put_heads_of(w, e, "Keys", e->weights.key);
        put_heads_of(w, e, "Queries", e->weights.query);
    }
    end_section(w);
}

/* Maps of cosines, in one scale of colours for all models. */
static void put_positions(writer *w) {
    double low = 1;
    char text[BASIN_PICTURE_NAME + 16];
    for (int k = 0; k < w->models; k++)
        for (int64_t i = 0; i < w->tokens * w->tokens; i++)
            low = fmin(low, w->first[k].weights.cosine[i]);
    basin_document_section(&w->report, "positions", "Positions", "",
                           w->models > 1 || !has_memories(w));
    TEXT(
        "",
        "How the learnt position of each of the %lld \u00d7 %lld patches resembles all others: one "
        "map for each patch, at its place; the colour is the cosine of the two vectors.",
        (long long)w->across, (long long)w->across);
    snprintf(text, sizeof text, "%.2f", low);
    PUT("{'type':'scale','low':%s,'high':'1'},{'type':'pictures','pictures':[", text);
    for (const entry *e = w->first; e < w->first + w->models; e++) {
        basin_error error;
        snprintf(text, sizeof text, "%s: %s", letter_of(w, e), model_name(w, e));
        basin_status status =
            basin_image_sheet_positions(&w->picture, e->weights.cosine, w->across, low, &error);
        put_drawn(w, status, &error, "Maps of the cosine similarity of positions",
                  w->models > 1 ? text : "one map for each patch, at its place");
    }
    PUT("]}");
    end_section(w);
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
    enum { MANY = 24 };
    basin_image_graph graph;
    char folded[48];
    if (!open_graph(w, &graph, &e->model->settings)) return;
    const basin_params *params = &graph.params;
    int64_t total = basin_params_total(params);
    snprintf(folded, sizeof folded, "All %zu tensors", params->count);
    name_model(w, e);
    PUT("{'type':'table','folded':%s,'columns':[{'name':'tensor','code':true},"
        "{'name':'shape','code':true},{'name':'numbers','number':true},"
        "{'name':'share','number':true,'digits':1,'unit':%s}],'rows':[",
        params->count > MANY || w->models > 1 ? folded : "", "%");
    for (size_t i = 0; i < params->count; i++) {
        char shape[BASIN_SHAPE_TEXT];
        basin_expr state = params->param[i].state;
        int64_t count = basin_shape_count(basin_expr_shape(state));
        PUT("[%s,%s,%lld,%g]", basin_expr_name(state),
            basin_shape_print(shape, basin_expr_shape(state)), (long long)count,
            100 * (double)count / (double)total);
    }
    PUT("],'foot':['all',null,%lld]}", (long long)total);
    basin_image_graph_free(&graph);
}

/* How many parameters each architecture has at these sizes; the paper's comparison. */
static void put_parameters(writer *w) {
    static const char *const arch[] = {"et", "albert", "vit"};
    basin_document_section(&w->report, "parameters", "Parameters", "", false);
    for (int i = 0; i < w->models; i++) put_tensors(w, &w->first[i]);
    put_heading(w, "", "At the same sizes");
    PUT("{'type':'table','columns':[{'name':'model'},{'name':'parameters','number':true}],"
        "'rows':[");
    for (int i = 0; i < 3; i++) {
        basin_image_settings s = *w->settings;
        basin_image_graph graph;
        s.arch = arch[i];
        if (!open_graph(w, &graph, &s)) continue;
        PUT("[%s,%lld]", arch_name(&s), (long long)basin_params_total(&graph.params));
        basin_image_graph_free(&graph);
    }
    PUT("]}");
    end_section(w);
}

/* A column for each model; a row in which they differ is marked. */
static void put_settings(writer *w) {
    basin_document_section(&w->report, "settings", "Settings", "", false);
    PUT("{'type':'table','columns':[{'name':''}");
    for (int i = 0; i < w->models; i++) PUT("{'name':%s,'code':true}", letter_of(w, &w->first[i]));
    PUT("],'rows':[");
    for (const basin_setting *s = basin_image_task.table; s->name; s++) {
        char text[BASIN_IMAGE_REPORT_MODELS][200];
        bool differs = false;
        for (int i = 0; i < w->models; i++) {
            basin_setting_print(text[i], sizeof text[i], &w->first[i].model->settings, s);
            differs = differs || strcmp(text[i], text[0]) != 0;
        }
        PUT("{'tone':%s,'cells':[%s", differs ? "strong" : "", s->name);
        for (int i = 0; i < w->models; i++) PUT("%s", text[i]);
        PUT("]}");
    }
    PUT("]}");
    end_section(w);
}

/* ---- the whole ---- */

static void put_facts(writer *w) {
    const basin_image_scores *s = &w->first->scores;
    char mse[48], psnr[48];
    snprintf(mse, sizeof mse, "mean colour %.4f", s->mean_mse);
    snprintf(psnr, sizeof psnr, "mean colour %.2f dB", s->mean_psnr);
    PUT("{'type':'facts','facts':[{'name':'Masked MSE','value':%g,'digits':4,'note':%s}", s->mse,
        mse);
    if (s->psnr > 0)
        PUT("{'name':'PSNR','value':%g,'digits':2,'unit':'dB','note':%s}", s->psnr, psnr);
    if (s->ssim > 0) PUT("{'name':'SSIM','value':%g,'digits':3}", s->ssim);
    PUT("{'name':'Pictures','value':%lld},{'name':'Parameters','value':%lld},"
        "{'name':%s,'value':%lld}]}",
        (long long)s->pictures, (long long)w->first->model->parameters,
        w->first->trace.parts ? "Steps" : "Layers", (long long)w->settings->steps);
}

static basin_status begin(writer *w, const char *path, basin_error *error) {
    const basin_image_settings *s = w->settings;
    char title[1000] = "", lead[1000], subject[64];
    for (int i = 0; i < w->models; i++)
        snprintf(title + strlen(title), sizeof title - strlen(title), "%s%s",
                 i == 0              ? ""
                 : i < w->models - 1 ? ", "
                                     : " and ",
                 model_name(w, &w->first[i]));
    if (w->models > 1)
        snprintf(subject, sizeof subject, "%d models that complete", w->models);
    else
        snprintf(subject, sizeof subject, "%s that completes", arch_name(s));
    snprintf(lead, sizeof lead,
             "%s pictures of %lld \u00d7 %lld pixels, %lld of %lld patches occluded. Scored on "
             "%.700s.",
             subject, (long long)s->size, (long long)s->size, (long long)basin_image_occluded(s),
             (long long)w->tokens, w->findings->spec->name);
    return basin_document_begin(&w->report, path, "image", title, lead, error);
}

basin_status basin_image_document_write(const char *path, const basin_image_findings *findings,
                                        basin_error *error) {
    const basin_image_settings *s = &findings->entry[0].model->settings;
    writer all = {.findings = findings,
                  .first = findings->entry,
                  .models = findings->entries,
                  .settings = s,
                  .tokens = basin_image_tokens(s),
                  .values = basin_image_patch_values(s),
                  .across = s->size / s->patch},
           *w = &all;
    BASIN_TRY(begin(w, path, error));
    PUT("'head':[");
    if (w->models == 1) put_facts(w);
    PUT("]");
    put_media(w);
    PUT("'sections':[");
    put_scores(w);
    put_completed(w);
    put_descent(w);
    put_attention(w);
    put_memories(w);
    put_positions(w);
    put_heads(w);
    put_extremes(w);
    put_parameters(w);
    put_settings(w);
    PUT("]");
    basin_picture_free(&w->picture);
    return basin_document_end(&w->report, error);
}
