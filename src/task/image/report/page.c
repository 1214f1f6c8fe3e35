/* A report as a page of HTML; see report.h. Sections in the order in which one asks: how good is
 * it, what does it do, how does it get there, what has it learnt, where does it fail, what is it.
 */
#include "task/image/report/page.h"

#include <string.h>

#include "basin/version.h"
#include "io/file.h"

/* ---- the head ---- */

static bool any(const basin_image_findings *r, bool (*has)(const basin_image_entry *entry)) {
    for (int i = 0; i < r->entries; i++)
        if (has(&r->entry[i])) return true;
    return false;
}

static bool has_steps(const basin_image_entry *e) { return e->trace.parts > 0; }
static bool has_memories(const basin_image_entry *e) { return e->weights.memory != NULL; }
static bool has_heads(const basin_image_entry *e) { return e->weights.key != NULL; }
static bool has_attention(const basin_image_entry *e) { return e->attention.heads > 0; }

static void put_links(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    const struct {
        const char *id, *text;
        bool there;
    } link[] = {{"scores", "Scores", true},
                {"completed", "Completed", true},
                {"descent", any(r, has_steps) ? "Descent" : "Layers", true},
                {"attention", "Attention", any(r, has_attention)},
                {"memories", "Memories", any(r, has_memories)},
                {"positions", "Positions", true},
                {"heads", "Keys and queries", any(r, has_heads)},
                {"extremes", "Best and worst", r->extremes > 0},
                {"parameters", "Parameters", true},
                {"settings", "Settings", true}};
    basin_html_put(&w->page, "<nav aria-label=\"Sections\"><ul>\n");
    for (size_t i = 0; i < sizeof link / sizeof *link; i++)
        if (link[i].there)
            basin_html_put(&w->page, "<li><a href=\"#%s\">%s</a></li>\n", link[i].id, link[i].text);
    basin_html_put(&w->page, "</ul></nav>\n");
}

/* A fact and, where that is a number, what the mean colour has of it. */
static void put_fact(basin_image_page *w, const char *name, const char *format, double value,
                     double baseline) {
    char text[64];
    basin_html_put(&w->page, "<div><dt>%s</dt><dd>", name);
    snprintf(text, sizeof text, format, value);
    basin_html_text(&w->page, text);
    if (baseline == baseline) {
        snprintf(text, sizeof text, format, baseline);
        basin_html_put(&w->page, "<small>mean colour %s</small>", text);
    }
    basin_html_put(&w->page, "</dd></div>\n");
}

static void put_facts(basin_image_page *w) {
    const basin_image_entry *e = &w->report->entry[0];
    basin_html *page = &w->page;
    double none = 0.0 / 0.0;
    basin_html_put(page, "<dl class=\"facts\">\n");
    put_fact(w, "Masked MSE", "%.4f", e->scores.mse, e->baseline.mse);
    if (e->scores.psnr > 0) put_fact(w, "PSNR", "%.2f dB", e->scores.psnr, e->baseline.psnr);
    if (e->scores.ssim > 0) put_fact(w, "SSIM", "%.3f", e->scores.ssim, none);
    basin_html_put(page, "<div><dt>Pictures</dt><dd>");
    basin_html_number(&w->page, e->scores.pictures);
    basin_html_put(page, "</dd></div>\n<div><dt>Parameters</dt><dd>");
    basin_html_number(&w->page, e->model->parameters);
    basin_html_put(page, "</dd></div>\n<div><dt>%s</dt><dd>%lld</dd></div>\n</dl>\n",
                   e->trace.parts ? "Steps" : "Layers", (long long)w->settings->steps);
}

static void put_header(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    const basin_image_settings *s = w->settings;
    basin_html *page = &w->page;
    basin_html_put(page, "<header>\n<h1>");
    for (int i = 0; i < r->entries; i++) {
        basin_html_put(page, "%s", i == 0 ? "" : i == r->entries - 1 ? " and " : ", ");
        basin_html_text(page, basin_image_page_model(w, &r->entry[i]));
    }
    if (r->entries == 1)
        basin_html_put(page, "</h1>\n<p class=\"lead\">%s that completes",
                       basin_image_page_arch(s));
    else
        basin_html_put(page, "</h1>\n<p class=\"lead\">%d models that complete", r->entries);
    basin_html_put(page,
                   " pictures of %lld &times; %lld pixels, %lld of %lld patches occluded. Scored "
                   "on <code>",
                   (long long)s->size, (long long)s->size, (long long)s->occlude,
                   (long long)w->tokens);
    basin_html_text(page, r->spec->name);
    basin_html_put(page, "</code>.</p>\n");
    if (r->entries == 1) put_facts(w);
    put_links(w);
    basin_html_put(page, "</header>\n<main>\n");
}

/* ---- the whole ---- */

static void put_all(basin_image_page *w) {
    put_header(w);
    basin_image_page_scores(w);
    basin_image_page_completed(w);
    basin_image_page_descent(w);
    basin_image_page_attention(w);
    basin_image_page_memories(w);
    basin_image_page_positions(w);
    basin_image_page_heads(w);
    basin_image_page_extremes(w);
    basin_image_page_parameters(w);
    basin_image_page_settings(w);
    basin_html_put(&w->page,
                   "</main>\n<footer>Written by Basin %s. A click on a picture shows it "
                   "large.</footer>\n",
                   BASIN_VERSION_STRING);
}

basin_status basin_image_page_write(const char *path, const basin_image_findings *findings,
                                    basin_error *error) {
    basin_writer file;
    const basin_image_settings *s = &findings->entry[0].model->settings;
    basin_status status = basin_writer_create(&file, path, error);
    if (status) return status;
    char title[BASIN_PICTURE_NAME], more[32] = "";
    if (findings->entries > 1) snprintf(more, sizeof more, " and %d more", findings->entries - 1);
    snprintf(title, sizeof title, "%s%s: completed pictures", findings->spec->model, more);
    basin_image_page w = {.page = basin_html_begin(file.file, title, basin_image_page_style),
                          .report = findings,
                          .settings = s,
                          .tokens = basin_image_tokens(s),
                          .values = basin_image_patch_values(s)};
    put_all(&w);
    status = basin_html_end(&w.page, basin_image_page_script, error);
    basin_picture_free(&w.picture);
    if (status)
        basin_writer_discard(&file);
    else
        status = basin_writer_commit(&file, error);
    return status;
}
