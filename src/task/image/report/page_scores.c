/* How good models are: a table that compares them, the spread of errors over pictures, errors step
 * by step, the learning curve. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "task/image/report/page.h"

/* ---- the table ---- */

enum { MSE, PSNR, SSIM, SHARE, MEASURES };

static double measure(const basin_image_entry *e, int which) {
    switch (which) {
    case MSE: return e->scores.mse;
    case PSNR: return e->scores.psnr;
    case SSIM: return e->scores.ssim;
    default: return e->scores.mse / e->baseline.mse;
    }
}

/* Errors in different units cannot be ranked, their shares of the baseline can. */
static bool alike(const basin_image_page *w) {
    for (int i = 1; i < w->report->entries; i++)
        if (!basin_image_same_units(w->settings, &w->report->entry[i].model->settings))
            return false;
    return true;
}

static bool is_best(const basin_image_page *w, const basin_image_entry *e, int which) {
    bool high = which == PSNR || which == SSIM;
    if (which == MSE && !alike(w)) return false;
    for (int i = 0; i < w->report->entries; i++) {
        double other = measure(&w->report->entry[i], which), own = measure(e, which);
        if (high ? other > own : other < own) return false;
    }
    return true;
}

/* On how many pictures no other model has a lower share of error. */
static int64_t wins(const basin_image_page *w, const basin_image_entry *e) {
    int64_t count = 0;
    for (int64_t p = 0; p < e->scores.pictures; p++) {
        bool best = true;
        for (int i = 0; i < w->report->entries && best; i++) {
            const basin_image_entry *other = &w->report->entry[i];
            best = e->scores.picture_mse[p] / e->baseline.mse <=
                   other->scores.picture_mse[p] / other->baseline.mse;
        }
        count += best;
    }
    return count;
}

static void put_row(basin_image_page *w, const basin_image_entry *e) {
    static const char *const format[MEASURES] = {"%.4f", "%.2f&nbsp;dB", "%.3f", "%.1f&nbsp;%%"};
    basin_html *page = &w->page;
    basin_html_put(page, "<tr><td><b>%s</b> <code>", basin_image_page_letter(w, e));
    basin_html_text(page, basin_image_page_model(w, e));
    basin_html_put(page, "</code></td>");
    for (int k = 0; k < MEASURES; k++) {
        double value = measure(e, k);
        char text[48];
        snprintf(text, sizeof text, format[k], k == SHARE ? 100 * value : value);
        basin_html_put(page, "<td class=\"number%s\">%s</td>", is_best(w, e, k) ? " best" : "",
                       isfinite(value) ? text : "");
    }
    basin_html_put(page, "<td class=\"number\">%lld of %lld</td><td class=\"number\">",
                   (long long)wins(w, e), (long long)e->scores.pictures);
    basin_html_number(&w->page, e->model->parameters);
    basin_html_put(page, "</td><td class=\"number\">%lld</td><td>%s</td></tr>\n",
                   (long long)e->model->settings.steps, basin_image_page_arch(&e->model->settings));
}

static void put_table(basin_image_page *w) {
    static const char *const head[] = {"MSE",     "PSNR",       "SSIM", "of the mean colour's MSE",
                                       "best on", "parameters", "steps"};
    const basin_image_findings *r = w->report;
    basin_html *page = &w->page;
    basin_html_put(page, "<div class=\"table\"><table>\n<thead><tr><th>model</th>");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        basin_html_put(page, "<th class=\"number\">%s</th>", head[i]);
    basin_html_put(page, "<th>kind</th></tr></thead>\n<tbody>\n");
    for (int i = 0; i < r->entries; i++) put_row(w, &r->entry[i]);
    const basin_image_entry *e = &r->entry[0];
    basin_html_put(page,
                   "</tbody>\n<tfoot><tr><td>mean colour</td><td class=\"number\">%.4f</td>"
                   "<td class=\"number\">%.2f&nbsp;dB</td><td></td><td class=\"number\">"
                   "100.0&nbsp;%%</td><td></td><td></td><td></td><td></td></tr></tfoot>\n"
                   "</table></div>\n",
                   e->baseline.mse, e->baseline.psnr);
}

/* ---- plots ---- */

/* Bins up to a round number beyond the greatest error. */
static double upper_end(const basin_image_findings *r) {
    double most = 0;
    for (int i = 0; i < r->entries; i++)
        for (int64_t p = 0; p < r->entry[i].scores.pictures; p++)
            most = fmax(most, r->entry[i].scores.picture_mse[p]);
    double step = basin_plot_step(0, most > 0 ? most : 1, 8);
    return ceil(most / step + 1e-9) * step;
}

/* One outline a model. */
static void put_histogram(basin_image_page *w) {
    enum { BINS = 40, POINTS = 2 * BINS + 2 };
    const basin_image_findings *r = w->report;
    basin_plot_line line[BASIN_IMAGE_REPORT_MODELS];
    double *point = basin_array_new((size_t)(2 * POINTS * r->entries), sizeof *point);
    double high = upper_end(r);
    int bins = (int)fmin(fmax(2 * sqrt((double)r->entry[0].scores.pictures), 8), BINS);
    if (!point) {
        w->page.status = basin_fail(&w->page.error, BASIN_NO_MEMORY, "out of memory for a plot");
        return;
    }
    for (int i = 0; i < r->entries; i++) {
        const basin_image_entry *e = &r->entry[i];
        double *x = point + (ptrdiff_t)2 * POINTS * i, *y = x + POINTS;
        basin_plot_histogram(x, y, bins, e->scores.picture_mse, e->scores.pictures, 0, high);
        line[i] = (basin_plot_line){r->entries > 1 ? basin_image_page_letter(w, e) : "pictures", x,
                                    y, 2 * bins + 2, BASIN_PLOT_AREA};
    }
    basin_plot plot = {.title = "Pictures by their error",
                       .x_label = "masked MSE",
                       .y_label = "pictures",
                       .line = line,
                       .lines = r->entries,
                       .y_whole = true};
    basin_html_put(&w->page, "<div>");
    basin_html_plot(&w->page, &plot);
    basin_html_put(&w->page, "</div>\n");
    free(point);
}

/* MSE or PSNR of all models step by step, with the mean colour of the first. */
static void put_courses(basin_image_page *w, bool psnr) {
    const basin_image_findings *r = w->report;
    basin_plot_line line[BASIN_IMAGE_REPORT_MODELS + 1];
    int most = 0;
    for (int i = 0; i < r->entries; i++)
        most = r->entry[i].course.steps > most ? r->entry[i].course.steps : most;
    double *step = basin_image_page_steps(w, most + 1);
    if (!step) return;
    for (int i = 0; i < r->entries; i++) {
        const basin_image_course *c = &r->entry[i].course;
        line[i] = (basin_plot_line){basin_image_page_letter(w, &r->entry[i]), step,
                                    psnr ? c->psnr : c->mse, c->steps + 1, BASIN_PLOT_DOTTED};
    }
    const basin_image_baseline *b = &r->entry[0].course.baseline;
    double x[2] = {0, most}, y[2] = {psnr ? b->psnr : b->mse, psnr ? b->psnr : b->mse};
    line[r->entries] = (basin_plot_line){"mean colour", x, y, 2, BASIN_PLOT_DASHED};
    basin_image_page_plot(w, psnr ? "PSNR by step" : "Masked MSE by step", psnr ? "dB" : "MSE",
                          line, r->entries + 1, "step");
    free(step);
}

static void put_training(basin_image_page *w) {
    const basin_image_curve *c = &w->report->curve;
    basin_plot_line line[2];
    int lines = 0;
    char title[32];
    if (c->loss.count)
        line[lines++] =
            (basin_plot_line){"training", c->loss.step, c->loss.value, c->loss.count, 0};
    if (c->test.count)
        line[lines++] = (basin_plot_line){"test", c->test.step, c->test.value, c->test.count, 0};
    if (lines == 0) return;
    const char *letter = basin_image_page_letter(w, &w->report->entry[0]);
    snprintf(title, sizeof title, "Training%s%s: masked MSE", *letter ? " of " : "", letter);
    basin_html_put(&w->page, "<div id=\"training\">");
    basin_image_page_plot(w, title, "MSE", line, lines, "step");
    basin_html_put(&w->page, "<p class=\"soft\">Training errors are means over the last steps and "
                             "their masks; test errors are on pictures never trained on.</p>"
                             "</div>\n");
}

/* ---- the section ---- */

/* In what the error is counted, in plain numbers: they may be the pictures' own deviations, or
 * constants that somebody chose. */
static void put_units(basin_image_page *w) {
    const basin_image_settings *s = w->settings;
    basin_html_put(&w->page, "in units of the square of the model's deviation%s (",
                   s->channels > 1 ? "s" : "");
    for (int64_t c = 0; c < s->channels; c++)
        basin_html_put(&w->page, "%s%.3g", c ? ", " : "", s->deviation[c]);
    basin_html_put(&w->page, " of a range of 1)");
}

static void put_words(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    const basin_image_entry *e = &r->entry[0];
    basin_html *page = &w->page;
    basin_html_put(page, "<p>The masked MSE is the mean square over the pixels of occluded "
                         "patches, ");
    put_units(w);
    basin_html_put(page,
                   "; PSNR and SSIM compare whole pictures. Means over %lld picture%s, %d mask%s "
                   "each. The mean colour, put into every occluded patch, scores %.3f and "
                   "%.2f&nbsp;dB.</p>\n",
                   (long long)e->scores.pictures, e->scores.pictures > 1 ? "s" : "",
                   e->scores.masks, e->scores.masks > 1 ? "s" : "", e->baseline.mse,
                   e->baseline.psnr);
    if (r->entries < 2) return;
    basin_html_put(page,
                   "<p>All models see the same pictures behind the same masks. The plots by step "
                   "are means over the %lld pictures shown below.%s</p>\n",
                   (long long)e->course.pictures,
                   alike(w) ? ""
                            : " The models were trained with different deviations, so compare "
                              "PSNR, or the share of the mean colour's MSE, rather than MSE.");
}

void basin_image_page_scores(basin_image_page *w) {
    bool many = w->report->entries > 1;
    basin_html *page = &w->page;
    basin_html_section(page, "scores", "Scores", true);
    basin_html_put(page, "<div%s>\n<div>", many ? "" : " class=\"beside\"");
    put_words(w);
    if (many) put_table(w);
    basin_html_put(page, "</div>\n<div class=\"plots\">\n");
    put_histogram(w);
    if (many) {
        put_courses(w, false);
        put_courses(w, true);
    }
    put_training(w);
    basin_html_put(page, "</div>\n</div>\n");
    basin_html_section_end(page);
}
