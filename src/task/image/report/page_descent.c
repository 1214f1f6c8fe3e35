/* The descent step by step, or the layers of a ViT: tokens and forces decoded, a slider through
 * them, energy, error and PSNR beside them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/image/report/page.h"

/* Of a longer descent, so many frames are shown. */
enum { FRAMES = 40 };

static bool is_attention(const basin_image_trace *t, int part) {
    return !strcmp(t->part[part], "attention");
}

/* ---- pictures ---- */

/* All frames of one panel; the slider shows one of them. */
static void put_frames(basin_image_page *w, const basin_image_entry *e, const float *frames,
                       int64_t picture, const char *what) {
    const basin_image_trace *t = &e->trace;
    int64_t size = w->tokens * w->values;
    int count = t->steps < FRAMES ? t->steps + 1 : FRAMES;
    for (int i = 0; i < count; i++) {
        int step = count > 1 ? (int)((int64_t)i * t->steps / (count - 1)) : 0;
        char alt[96], attribute[32];
        snprintf(alt, sizeof alt, "%s, %s %d", what, t->parts ? "step" : "layer", step);
        snprintf(attribute, sizeof attribute, "data-step=\"%d\"", step);
        basin_image_page_picture(w, e, frames + (step * t->count + picture) * size, NULL, alt,
                                 attribute);
    }
}

static void end_panel(basin_image_page *w, const char *title, const char *note) {
    basin_html_put(&w->page, "<figcaption><b>%s</b><span>%s</span></figcaption></figure>\n", title,
                   note);
}

/* A picture that stands among the completed ones already. */
static void put_copy(basin_image_page *w, const char *id, int64_t i, const char *title,
                     const char *note) {
    basin_html_put(&w->page, "<figure class=\"panel\"><div data-copy=\"%s-%lld\"></div>", id,
                   (long long)i);
    end_panel(w, title, note);
}

static void put_scene(basin_image_page *w, const basin_image_entry *e, int64_t i) {
    const basin_image_trace *t = &e->trace;
    basin_html_put(&w->page, "<div class=\"scene panels together\">\n");
    put_copy(w, "given", i, "Given", "grey: occluded");
    basin_html_put(&w->page, "<figure class=\"panel\">");
    put_frames(w, e, t->token, i, "Tokens decoded");
    end_panel(w, "Tokens", "where they are now");
    for (int p = 0; p < t->parts; p++) {
        bool attention = is_attention(t, p);
        basin_html_put(&w->page, "<figure class=\"panel\">");
        put_frames(w, e, t->force[p], i,
                   attention ? "Attention force decoded" : "Hopfield force decoded");
        end_panel(w, attention ? "Attention force" : "Hopfield force",
                  attention ? "what other patches say" : "what memories say");
    }
    put_copy(w, "truth", i, "Original", "what it should be");
    basin_html_put(&w->page, "</div>\n");
}

/* ---- plots ---- */

static void put_errors(basin_image_page *w, const basin_image_course *c, const double *step) {
    const char *unit = c->parts ? "step" : "layer";
    double x[2] = {0, c->steps}, mse[2] = {c->baseline.mse, c->baseline.mse};
    double psnr[2] = {c->baseline.psnr, c->baseline.psnr};
    basin_plot_line error[] = {{"completed", step, c->mse, c->steps + 1, BASIN_PLOT_DOTTED},
                               {"mean colour", x, mse, 2, BASIN_PLOT_DASHED}};
    basin_plot_line near[] = {{"completed", step, c->psnr, c->steps + 1, BASIN_PLOT_DOTTED},
                              {"mean colour", x, psnr, 2, BASIN_PLOT_DASHED}};
    basin_image_page_plot(w, "Masked MSE", "MSE", error, 2, unit);
    basin_image_page_plot(w, "PSNR", "dB", near, 2, unit);
}

/* Total energy, its parts as changes from the start, and how strong forces are. */
static void put_energies(basin_image_page *w, const basin_image_entry *e, const double *step) {
    const basin_image_course *c = &e->course;
    int count = c->steps + 1;
    double *number = basin_array_new((size_t)count * 3, sizeof *number);
    if (!number) {
        w->page.status = basin_fail(&w->page.error, BASIN_NO_MEMORY, "out of memory for a plot");
        return;
    }
    double *total = number, *change[2] = {total + count, total + (ptrdiff_t)2 * count};
    basin_plot_line line[2], size[2];
    for (int i = 0; i < count; i++) {
        total[i] = 0;
        for (int p = 0; p < c->parts; p++) {
            total[i] += c->energy[p][i];
            change[p][i] = c->energy[p][i] - c->energy[p][0];
        }
    }
    for (int p = 0; p < c->parts; p++) {
        const char *name = is_attention(&e->trace, p) ? "attention" : "Hopfield";
        line[p] = (basin_plot_line){name, step, change[p], count, BASIN_PLOT_DOTTED};
        size[p] = (basin_plot_line){name, step, c->size[p], count, BASIN_PLOT_DOTTED};
    }
    basin_plot_line all = {"total", step, total, count, BASIN_PLOT_DOTTED};
    basin_image_page_plot(w, "Energy of a picture", "energy", &all, 1, "step");
    if (c->parts > 1)
        basin_image_page_plot(w, "Change of the parts", "change", line, c->parts, "step");
    basin_image_page_plot(w, "Force on occluded tokens", "root mean square", size, c->parts,
                          "step");
    free(number);
}

static void put_plots(basin_image_page *w, const basin_image_entry *e) {
    double *step = basin_image_page_steps(w, e->course.steps + 1);
    if (!step) return;
    basin_html_put(&w->page, "<div class=\"plots dense\">\n");
    put_errors(w, &e->course, step);
    if (e->course.parts) put_energies(w, e, step);
    basin_html_put(&w->page, "</div>\n");
    free(step);
}

/* ---- words ---- */

static const char *explain(const basin_image_trace *t) {
    if (t->parts == 0)
        return "Tokens after each layer, decoded as if it were the last. Only the last was trained "
               "to be decoded.";
    if (t->parts == 2)
        return "Tokens roll down the energy: each step adds the two forces, its negative "
               "gradients. All three live in the same space, so the decoder turns each of them "
               "into a picture. A force is shown by itself, whatever its size; the sizes are in a "
               "plot below.";
    return is_attention(t, 0)
               ? "Tokens roll down the energy of attention: each step adds its force, the negative "
                 "gradient. Both live in the same space, so the decoder turns each of them into a "
                 "picture. The force is shown by itself, whatever its size; its size is in a plot "
                 "below."
               : "Tokens roll down the energy of the Hopfield network: each step adds its force, "
                 "the negative gradient. Both live in the same space, so the decoder turns each of "
                 "them into a picture. The force is shown by itself, whatever its size; its size "
                 "is in a plot below.";
}

/* Whether the energy falls, as it should: it does where the gain is positive and alpha small. */
static void put_falls(basin_image_page *w, const basin_image_entry *e) {
    const basin_image_course *c = &e->course;
    long long all = (long long)(c->pictures * c->steps), rises = (long long)c->rises;
    basin_html *page = &w->page;
    if (e->weights.gamma < 0)
        basin_html_put(page,
                       "<p class=\"note\">The gain gamma of the layer norm is %.3g. A negative "
                       "gain turns the descent into a climb: the energy rose in %lld of %lld "
                       "steps.</p>\n",
                       e->weights.gamma, rises, all);
    else if (rises)
        basin_html_put(page,
                       "<p class=\"note\">The energy rose in %lld of %lld steps: alpha, %g, is "
                       "large for this model.</p>\n",
                       rises, all, e->model->settings.alpha);
    else
        basin_html_put(page,
                       "<p>The energy rose in none of the %lld steps of %lld pictures; the gain "
                       "gamma is %.3g.</p>\n",
                       all, (long long)c->pictures, e->weights.gamma);
}

static void put_stepper(basin_image_page *w, const basin_image_entry *e) {
    const basin_image_trace *t = &e->trace;
    basin_html *page = &w->page;
    char group[32];
    snprintf(group, sizeof group, "scene%s", basin_image_page_letter(w, e));
    basin_image_page_heading(w, e);
    basin_html_put(page, "<p>%s</p>\n", explain(t));
    if (t->parts) put_falls(w, e);
    basin_html_put(page, "<div class=\"stepper\">\n");
    basin_image_page_picks(w, group, t->count);
    basin_html_put(page,
                   "<div class=\"control\"><button type=\"button\">Play</button>\n"
                   "<input type=\"range\" min=\"0\" max=\"%d\" value=\"%d\" step=\"1\" "
                   "data-unit=\"%s\" aria-label=\"%s\"><output></output></div>\n",
                   t->steps, t->steps, t->parts ? "step" : "layer",
                   t->parts ? "Step of the descent" : "Layer");
    for (int64_t i = 0; i < t->count; i++) put_scene(w, e, i);
    basin_html_put(page,
                   "<p class=\"soft\">The plots are means over the %lld pictures shown "
                   "above.</p>\n",
                   (long long)e->course.pictures);
    put_plots(w, e);
    basin_html_put(page, "</div>\n");
}

void basin_image_page_descent(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    bool any = false;
    for (int i = 0; i < r->entries; i++) any = any || r->entry[i].trace.parts;
    basin_html_section(&w->page, "descent", any ? "The descent, step by step" : "Layer by layer",
                       true);
    for (int i = 0; i < r->entries; i++) put_stepper(w, &r->entry[i]);
    basin_html_section_end(&w->page);
}
