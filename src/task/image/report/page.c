/* A report as a page of HTML; see report.h. Sections in the order in which one asks: what
 * does it do, how does it get there, what has it learnt, where does it fail, what is it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "basin/version.h"
#include "io/file.h"
#include "task/image/report/page.h"
#include "task/image/report/sheet.h"

/* A picture of this many pixels or fewer across shows its pixels. */
enum { CRISP = 96 };

static void put_number(basin_html *page, int64_t number) {
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number);
    for (int i = 0; i < length; i++)
        basin_html_put(page, "%s%c", i && (length - i) % 3 == 0 ? "," : "", digits[i]);
}

/* The last part of a picture's name. */
static const char *short_name(char text[BASIN_PICTURE_NAME], const basin_image_page *w,
                              int64_t index) {
    const char *name = basin_pictures_name(text, w->report->set.pictures, index);
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* ---- pictures ---- */

static void put_picture(basin_image_page *w, const float *patches, const uint8_t *mask,
                        const char *alt, const char *attributes) {
    basin_html *page = &w->page;
    if (page->status) return;
    page->status = basin_image_sheet_picture(&w->picture, patches, mask, w->settings, &page->error);
    if (page->status) return;
    basin_html_picture(page, &w->picture, w->settings->size <= CRISP, 0, alt, attributes);
}

/* Output patches where `mask` hides the truth, and the truth elsewhere; [N, P]. */
static void paste(float *out, const float *output, const float *truth, const uint8_t *mask,
                  int64_t tokens, int64_t values) {
    for (int64_t n = 0; n < tokens; n++)
        memcpy(out + n * values, (mask[n] == BASIN_PATCH_REPLACED ? output : truth) + n * values,
               (size_t)values * sizeof *out);
}

/* Masked, completed, original; the completed one also as the network puts it out, whole. */
static void put_triple(basin_image_page *w, int64_t i) {
    const basin_image_exhibit *e = &w->report->exhibit;
    basin_html *page = &w->page;
    char text[BASIN_PICTURE_NAME], alt[BASIN_PICTURE_NAME + 64];
    int64_t size = w->tokens * w->values;
    const float *truth = e->patches + i * size, *output = e->output + i * size;
    const uint8_t *mask = e->mask + i * w->tokens;
    const char *name = short_name(text, w, e->index[i]);
    float *whole = basin_array_new((size_t)size, sizeof *whole);
    if (!whole) {
        page->status = basin_fail(&page->error, BASIN_NO_MEMORY, "no memory for a picture");
        return;
    }
    paste(whole, output, truth, mask, w->tokens, w->values);
    basin_html_put(page, "<figure class=\"triple\"><div class=\"row\">\n<div><span>masked</span>");
    snprintf(alt, sizeof alt, "%s with occluded patches in grey", name);
    put_picture(w, truth, mask, alt, NULL);
    basin_html_put(page, "</div>\n<div><span>completed</span>");
    snprintf(alt, sizeof alt, "%s completed", name);
    basin_html_put(page, "<div class=\"first\">");
    put_picture(w, whole, NULL, alt, NULL);
    basin_html_put(page, "</div><div class=\"second\">");
    snprintf(alt, sizeof alt, "%s, all patches as the network puts them out", name);
    put_picture(w, output, NULL, alt, NULL);
    basin_html_put(page, "</div></div>\n<div><span>original</span>");
    snprintf(alt, sizeof alt, "%s as it is", name);
    put_picture(w, truth, NULL, alt, NULL);
    basin_html_put(page, "</div>\n</div><figcaption><span>");
    basin_html_text(page, name);
    basin_html_put(page, "</span><span>MSE&nbsp;%.3f</span></figcaption></figure>\n", e->mse[i]);
    free(whole);
}

static void put_triples(basin_image_page *w, const char *id, int64_t first, int64_t count) {
    basin_html_put(&w->page, "<div class=\"triples either\" id=\"%s\">\n", id);
    for (int64_t i = first; i < first + count; i++) put_triple(w, i);
    basin_html_put(&w->page, "</div>\n");
}

void basin_image_page_toggle(basin_image_page *w, const char *target, const char *label) {
    basin_html_put(&w->page,
                   "<div class=\"control\"><label><input type=\"checkbox\" "
                   "data-toggle=\"%s\">%s</label></div>\n",
                   target, label);
}

/* ---- sections ---- */

static void put_fact(basin_image_page *w, const char *name, const char *format, double value) {
    basin_html_put(&w->page, "<div><dt>%s</dt><dd>", name);
    char text[64];
    snprintf(text, sizeof text, format, value);
    basin_html_text(&w->page, text);
    basin_html_put(&w->page, "</dd></div>\n");
}

static const char *arch_name(const basin_image_settings *s) {
    if (!strcmp(s->arch, "vit")) return "Vision Transformer";
    if (!strcmp(s->arch, "albert")) return "weight-shared Vision Transformer";
    return "Energy Transformer";
}

static void put_links(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    const struct {
        const char *id, *text;
        bool there;
    } link[] = {{"completed", "Completed", true},
                {"descent", r->trace.parts ? "Descent" : "Layers", true},
                {"memories", "Memories", r->weights.memory != NULL},
                {"attention", "Keys and queries", r->weights.key != NULL},
                {"positions", "Positions", true},
                {"extremes", "Best and worst", r->extremes > 0},
                {"training", "Training", r->curve.loss.count || r->curve.test.count},
                {"parameters", "Parameters", true},
                {"settings", "Settings", true}};
    basin_html_put(&w->page, "<nav aria-label=\"Sections\"><ul>\n");
    for (size_t i = 0; i < sizeof link / sizeof *link; i++)
        if (link[i].there)
            basin_html_put(&w->page, "<li><a href=\"#%s\">%s</a></li>\n", link[i].id, link[i].text);
    basin_html_put(&w->page, "</ul></nav>\n");
}

static void put_header(basin_image_page *w, int64_t parameters) {
    const basin_image_findings *r = w->report;
    const basin_image_settings *s = w->settings;
    basin_html *page = &w->page;
    const char *slash = strrchr(r->spec->model, '/');
    basin_html_put(page, "<header>\n<h1>");
    basin_html_text(page, slash ? slash + 1 : r->spec->model);
    basin_html_put(page,
                   "</h1>\n<p class=\"lead\">%s that completes pictures of %lld &times; %lld "
                   "pixels, %lld of %lld patches occluded. Scored on <code>",
                   arch_name(s), (long long)s->size, (long long)s->size, (long long)s->occlude,
                   (long long)w->tokens);
    basin_html_text(page, r->spec->name);
    basin_html_put(page, "</code>.</p>\n<dl class=\"facts\">\n");
    put_fact(w, "Masked MSE", "%.4f", r->scores.mse);
    if (r->scores.psnr > 0) put_fact(w, "PSNR", "%.2f dB", r->scores.psnr);
    if (r->scores.ssim > 0) put_fact(w, "SSIM", "%.3f", r->scores.ssim);
    basin_html_put(page, "<div><dt>Pictures</dt><dd>");
    put_number(page, r->scores.pictures);
    basin_html_put(page, "</dd></div>\n<div><dt>Parameters</dt><dd>");
    put_number(page, parameters);
    basin_html_put(page, "</dd></div>\n<div><dt>%s</dt><dd>%lld</dd></div>\n</dl>\n",
                   r->trace.parts ? "Steps" : "Layers", (long long)s->steps);
    put_links(w);
    basin_html_put(page, "</header>\n<main>\n");
}

static void put_completed(basin_image_page *w) {
    basin_html *page = &w->page;
    basin_html_section(page, "completed", "Completed pictures");
    basin_html_put(page, "<p>Occluded patches are replaced by the MASK token; the model fills them "
                         "in. The error is the mean square over their pixels, where a pixel's "
                         "variance over the training pictures is&nbsp;1.</p>\n");
    basin_image_page_toggle(w, "completed-pictures",
                            "Show all patches as the network puts them out");
    put_triples(w, "completed-pictures", 0, w->report->shown);
    basin_html_section_end(page);
}

static void put_extremes(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    basin_html *page = &w->page;
    if (r->extremes == 0) return;
    basin_html_section(page, "extremes", "Best and worst");
    basin_html_put(page,
                   "<p>Of all pictures scored, those with the least and the greatest error.</p>"
                   "\n<h3 class=\"good\">Least error</h3>\n");
    put_triples(w, "best-pictures", r->shown, r->extremes);
    basin_html_put(page, "<h3 class=\"bad\">Greatest error</h3>\n");
    put_triples(w, "worst-pictures", r->shown + r->extremes, r->extremes);
    basin_html_section_end(page);
}

/* ---- step by step ---- */

/* All frames of one panel; the slider shows one of them. */
static void put_frames(basin_image_page *w, const float *frames, int64_t picture,
                       const char *what) {
    const basin_image_trace *t = &w->report->trace;
    int64_t size = w->tokens * w->values;
    for (int step = 0; step <= t->steps; step++) {
        char alt[96], attribute[32];
        snprintf(alt, sizeof alt, "%s, %s %d", what, t->parts ? "step" : "layer", step);
        snprintf(attribute, sizeof attribute, "data-step=\"%d\"", step);
        put_picture(w, frames + (step * t->count + picture) * size, NULL, alt, attribute);
    }
}

static void put_panel(basin_image_page *w, const char *title, const char *note) {
    basin_html_put(&w->page,
                   "<figure class=\"panel\"><figcaption><b>%s</b><span>%s</span>"
                   "</figcaption>",
                   title, note);
}

static void put_scene(basin_image_page *w, int64_t i) {
    const basin_image_findings *r = w->report;
    const basin_image_trace *t = &r->trace;
    const float *truth = r->exhibit.patches + i * w->tokens * w->values;
    basin_html *page = &w->page;
    basin_html_put(page, "<div class=\"scene panels\">\n");
    put_panel(w, "Given", "grey: occluded");
    put_picture(w, truth, r->exhibit.mask + i * w->tokens, "The picture with occluded patches",
                NULL);
    basin_html_put(page, "</figure>\n");
    put_panel(w, "Tokens", "where they are now");
    put_frames(w, t->token, i, "Tokens decoded");
    basin_html_put(page, "</figure>\n");
    for (int p = 0; p < t->parts; p++) {
        bool attention = !strcmp(t->part[p], "attention");
        put_panel(w, attention ? "Attention force" : "Hopfield force",
                  attention ? "what other patches say" : "what memories say");
        put_frames(w, t->force[p], i,
                   attention ? "Attention force decoded" : "Hopfield force decoded");
        basin_html_put(page, "</figure>\n");
    }
    put_panel(w, "Original", "what it should be");
    put_picture(w, truth, NULL, "The picture as it is", NULL);
    basin_html_put(page, "</figure>\n</div>\n");
}

/* Thumbnails to choose a scene by. */
static void put_picks(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    if (r->trace.count < 2) return;
    basin_html_put(&w->page, "<fieldset class=\"picks\"><legend class=\"soft\">Picture</legend>\n");
    for (int64_t i = 0; i < r->trace.count; i++) {
        char text[BASIN_PICTURE_NAME];
        const char *name = short_name(text, w, r->exhibit.index[i]);
        basin_html_put(&w->page, "<label><input type=\"radio\" name=\"scene\"%s>",
                       i ? "" : " checked");
        put_picture(w, r->exhibit.patches + i * w->tokens * w->values, NULL, name, NULL);
        basin_html_put(&w->page, "</label>\n");
    }
    basin_html_put(&w->page, "</fieldset>\n");
}

static void put_plot(basin_image_page *w, const char *title, const char *y_label,
                     const basin_plot_line *line, int lines, const char *x_label) {
    basin_plot plot = {
        .title = title, .x_label = x_label, .y_label = y_label, .line = line, .lines = lines};
    basin_html_plot(&w->page, &plot);
}

static void put_energies(basin_image_page *w) {
    const basin_image_trace *t = &w->report->trace;
    int count = t->steps + 1;
    double *number = basin_array_new((size_t)count * 4, sizeof *number);
    if (!number) {
        w->page.status = basin_fail(&w->page.error, BASIN_NO_MEMORY, "no memory for a plot");
        return;
    }
    double *step = number, *total = number + count, *change[2] = {total + count, total + 2 * count};
    basin_plot_line line[2], size[2];
    for (int i = 0; i < count; i++) {
        step[i] = i, total[i] = 0;
        for (int p = 0; p < t->parts; p++) {
            total[i] += t->energy[p][i];
            change[p][i] = t->energy[p][i] - t->energy[p][0];
        }
    }
    for (int p = 0; p < t->parts; p++) {
        const char *name = strcmp(t->part[p], "attention") != 0 ? "Hopfield" : "attention";
        line[p] = (basin_plot_line){name, step, change[p], count};
        size[p] = (basin_plot_line){name, step, t->size[p], count};
    }
    basin_plot_line all = {"total", step, total, count};
    basin_html_put(&w->page, "<div class=\"plots\">\n<div>");
    put_plot(w, "Energy of a picture", "energy", &all, 1, "step");
    basin_html_put(&w->page, "</div>\n<div>");
    put_plot(w, "Parts: change from the start", "change", line, t->parts, "step");
    basin_html_put(&w->page, "</div>\n<div>");
    put_plot(w, "Forces on occluded tokens", "root mean square", size, t->parts, "step");
    basin_html_put(&w->page, "</div>\n</div>\n");
    free(number);
}

static void put_descent(basin_image_page *w) {
    const basin_image_trace *t = &w->report->trace;
    basin_html *page = &w->page;
    bool et = t->parts > 0;
    basin_html_section(page, "descent", et ? "The descent, step by step" : "Layer by layer");
    basin_html_put(page, "<p>%s</p>\n",
                   et ? "Tokens roll down the energy: each step adds the two forces, its negative "
                        "gradients. All three live in the same space, so the decoder turns each of "
                        "them into a picture. A force is shown by itself, whatever its size; the "
                        "sizes are in the plot below."
                      : "Tokens after each layer, decoded as if it were the last. Only the last "
                        "was trained to be decoded.");
    basin_html_put(page, "<div class=\"stepper\">\n");
    put_picks(w);
    basin_html_put(page,
                   "<div class=\"control\"><button type=\"button\">Play</button>\n"
                   "<input type=\"range\" min=\"0\" max=\"%d\" value=\"%d\" step=\"1\" "
                   "data-unit=\"%s\" aria-label=\"%s\"><output></output></div>\n",
                   t->steps, t->steps, et ? "step" : "layer", et ? "Step of the descent" : "Layer");
    for (int64_t i = 0; i < t->count; i++) put_scene(w, i);
    if (et) put_energies(w);
    basin_html_put(page, "</div>\n");
    basin_html_section_end(page);
}

/* ---- the rest ---- */

static void put_training(basin_image_page *w) {
    const basin_image_curve *c = &w->report->curve;
    basin_plot_line line[2];
    int lines = 0;
    if (c->loss.count)
        line[lines++] = (basin_plot_line){"training", c->loss.step, c->loss.value, c->loss.count};
    if (c->test.count)
        line[lines++] = (basin_plot_line){"test", c->test.step, c->test.value, c->test.count};
    if (lines == 0) return;
    basin_html_section(&w->page, "training", "Training");
    basin_html_put(&w->page, "<p>Training errors are means over the last steps and their masks; "
                             "test errors are on pictures never trained on.</p>\n"
                             "<div class=\"plots\"><div>");
    put_plot(w, "Masked MSE", "MSE", line, lines, "step");
    basin_html_put(&w->page, "</div></div>\n");
    basin_html_section_end(&w->page);
}

/* A row for each tensor; returns their sum. */
static int64_t put_tensors(basin_image_page *w, const basin_params *params) {
    basin_html *page = &w->page;
    int64_t total = basin_params_total(params);
    basin_html_put(page, "<div class=\"table\"><table>\n<thead><tr><th>tensor</th><th>shape</th>"
                         "<th class=\"number\">numbers</th><th class=\"number\">share</th></tr>"
                         "</thead>\n<tbody>\n");
    for (size_t i = 0; i < params->count; i++) {
        char shape[BASIN_SHAPE_TEXT];
        basin_expr state = params->param[i].state;
        int64_t count = basin_shape_count(basin_expr_shape(state));
        basin_html_put(page, "<tr><td><code>");
        basin_html_text(page, basin_expr_name(state));
        basin_html_put(page, "</code></td><td><code>%s</code></td><td class=\"number\">",
                       basin_shape_print(shape, basin_expr_shape(state)));
        put_number(page, count);
        basin_html_put(page, "</td><td class=\"number\">%.1f&nbsp;%%</td></tr>\n",
                       100 * (double)count / (double)total);
    }
    basin_html_put(page, "</tbody>\n<tfoot><tr><td>all</td><td></td><td class=\"number\">");
    put_number(page, total);
    basin_html_put(page, "</td><td></td></tr></tfoot>\n</table></div>\n");
    return total;
}

/* How many parameters each architecture has at these sizes; the paper's comparison. */
static void put_rivals(basin_image_page *w) {
    static const char *const arch[] = {"et", "albert", "vit"};
    basin_html *page = &w->page;
    basin_html_put(page, "<h3>At the same sizes</h3>\n<div class=\"table\"><table>\n<thead><tr>"
                         "<th>model</th><th class=\"number\">parameters</th></tr></thead>\n<tbody>"
                         "\n");
    for (int i = 0; i < 3; i++) {
        basin_image_settings s = *w->settings;
        basin_image_graph graph;
        basin_error why;
        s.arch = arch[i];
        basin_status status = basin_image_graph_new(&graph, &s, 1, &why);
        if (status == BASIN_NO_MEMORY && !page->status)
            page->status = basin_fail(&page->error, status, "%s", why.text);
        if (status) continue; /* a ViT cannot have as many layers as a descent has steps */
        basin_html_put(page, "<tr><td>%s</td><td class=\"number\">", arch_name(&s));
        put_number(page, basin_params_total(&graph.params));
        basin_html_put(page, "</td></tr>\n");
        basin_image_graph_free(&graph);
    }
    basin_html_put(page, "</tbody></table></div>\n");
}

static void put_parameters(basin_image_page *w, const basin_params *params) {
    enum { MANY = 24 };
    bool many = params->count > MANY;
    basin_html_section(&w->page, "parameters", "Parameters");
    if (many)
        basin_html_put(&w->page, "<details><summary>All %zu tensors</summary>\n", params->count);
    put_tensors(w, params);
    if (many) basin_html_put(&w->page, "</details>\n");
    put_rivals(w);
    basin_html_section_end(&w->page);
}

static void put_settings(basin_image_page *w) {
    basin_html *page = &w->page;
    basin_html_section(page, "settings", "Settings");
    basin_html_put(page, "<div class=\"table\"><table>\n<tbody>\n");
    for (const basin_setting *s = basin_image_task.table; s->name; s++) {
        char text[200];
        basin_setting_print(text, sizeof text, w->settings, s);
        basin_html_put(page, "<tr><td>%s</td><td><code>", s->name);
        basin_html_text(page, text);
        basin_html_put(page, "</code></td></tr>\n");
    }
    basin_html_put(page, "</tbody></table></div>\n");
    basin_html_section_end(page);
}

static void put_all(basin_image_page *w, const basin_params *params) {
    put_header(w, basin_params_total(params));
    put_completed(w);
    put_descent(w);
    basin_image_page_memories(w);
    basin_image_page_attention(w);
    basin_image_page_positions(w);
    put_extremes(w);
    put_training(w);
    put_parameters(w, params);
    put_settings(w);
    basin_html_put(&w->page, "</main>\n<footer>Written by Basin %s.</footer>\n",
                   BASIN_VERSION_STRING);
}

basin_status basin_image_page_write(const char *path, const basin_image_findings *findings,
                                    basin_error *error) {
    basin_writer file;
    basin_image_graph graph;
    const basin_image_settings *s = &findings->model->settings;
    basin_status status = basin_image_graph_new(&graph, s, 1, error);
    if (status) return status;
    status = basin_writer_create(&file, path, error);
    if (!status) {
        char title[BASIN_PICTURE_NAME];
        snprintf(title, sizeof title, "%s: completed pictures", findings->spec->model);
        basin_image_page w = {.page = basin_html_begin(file.file, title),
                              .report = findings,
                              .settings = s,
                              .tokens = basin_image_tokens(s),
                              .values = basin_image_patch_values(s)};
        put_all(&w, &graph.params);
        status = basin_html_end(&w.page, error);
        basin_picture_free(&w.picture);
        if (status)
            basin_writer_discard(&file);
        else
            status = basin_writer_commit(&file, error);
    }
    basin_image_graph_free(&graph);
    return status;
}
