/* Completed pictures: what was given, what each model made of it, where it errs, what it should
 * be; some spread over all, then the best and the worst. */
#include <stdlib.h>

#include "base/memory.h"
#include "task/image/report/page.h"
#include "task/image/report/sheet.h"

/* An error of this part of the range has the brightest colour. */
static const double most_error = 0.5;

enum { SMALL = 96, CELL_SMALL = 84, CELL_LARGE = 150 };

static void put_errors(basin_image_page *w, const basin_image_entry *e, int64_t i,
                       const char *name) {
    basin_html *page = &w->page;
    int64_t size = w->tokens * w->values;
    char alt[BASIN_PICTURE_NAME + 64];
    if (page->status) return;
    page->status = basin_image_sheet_errors(
        &w->picture, e->exhibit.output + i * size, e->exhibit.patches + i * size,
        e->exhibit.mask + i * w->tokens, &e->model->settings, most_error, &page->error);
    if (page->status) return;
    snprintf(alt, sizeof alt, "%s: errors of its pixels%s%s", name,
             w->report->entries > 1 ? ", " : "", basin_image_page_letter(w, e));
    basin_html_picture(page, &w->picture,
                       w->settings->size <= SMALL ? BASIN_HTML_PIXELS : BASIN_HTML_PHOTO, 0, alt,
                       NULL);
}

/* What one model made of picture i: completed, or all of it as it came out; and its errors. */
static void put_answer(basin_image_page *w, const basin_image_entry *e, int64_t i,
                       const char *name) {
    const basin_image_exhibit *x = &e->exhibit;
    const char *letter = basin_image_page_letter(w, e);
    basin_html *page = &w->page;
    char alt[BASIN_PICTURE_NAME + 96];
    int64_t size = w->tokens * w->values;
    float *whole = basin_array_new((size_t)size, sizeof *whole);
    if (!whole) {
        page->status = basin_fail(&page->error, BASIN_NO_MEMORY, "out of memory for a picture");
        return;
    }
    basin_image_paste(whole, x->output + i * size, x->patches + i * size, x->mask + i * w->tokens,
                      w->tokens, w->values);
    basin_html_put(page, "<div><div class=\"first\">");
    snprintf(alt, sizeof alt, "%s completed%s%s", name, *letter ? " by " : "", letter);
    basin_image_page_picture(w, e, whole, NULL, alt, NULL);
    basin_html_put(page, "</div><div class=\"second\">");
    snprintf(alt, sizeof alt, "%s, all patches as the network%s%s puts them out", name,
             *letter ? " " : "", letter);
    basin_image_page_picture(w, e, x->output + i * size, NULL, alt, NULL);
    basin_html_put(page, "</div><span>%s%s%scompleted</span></div>\n", *letter ? "<b>" : "", letter,
                   *letter ? "</b> " : "");
    basin_html_put(page, "<div>");
    put_errors(w, e, i, name);
    basin_html_put(page, "<span>error");
    if (*letter) basin_html_put(page, ", <b class=\"number\">MSE&nbsp;%.3f</b>", x->mse[i]);
    basin_html_put(page, "</span></div>\n");
    free(whole);
}

/* The picture with or without its occluded patches. Other places of the page show it again, by its
 * id. */
static void put_given(basin_image_page *w, int64_t i, const char *name, bool masked) {
    const basin_image_entry *e = &w->report->entry[0];
    char alt[BASIN_PICTURE_NAME + 64], id[48];
    snprintf(alt, sizeof alt, masked ? "%s with occluded patches in grey" : "%s as it is", name);
    snprintf(id, sizeof id, "id=\"%s-%lld\"", masked ? "given" : "truth", (long long)i);
    basin_html_put(&w->page, "<div>");
    basin_image_page_picture(w, e, e->exhibit.patches + i * w->tokens * w->values,
                             masked ? e->exhibit.mask + i * w->tokens : NULL, alt, id);
    basin_html_put(&w->page, "<span>%s</span></div>\n", masked ? "masked" : "original");
}

static void put_card(basin_image_page *w, int64_t i) {
    const basin_image_findings *r = w->report;
    char text[BASIN_PICTURE_NAME];
    const char *name = basin_image_page_name(text, w, r->entry[0].exhibit.index[i]);
    basin_html_put(&w->page, "<figure class=\"card\"><div class=\"row together\">\n");
    put_given(w, i, name, true);
    if (r->entries > 1) put_given(w, i, name, false);
    for (int k = 0; k < r->entries; k++) put_answer(w, &r->entry[k], i, name);
    if (r->entries == 1) put_given(w, i, name, false);
    basin_html_put(&w->page, "</div><figcaption><span class=\"name\">");
    basin_html_text(&w->page, name);
    basin_html_put(&w->page, "</span>");
    if (r->entries == 1)
        basin_html_put(&w->page, "<span class=\"number\">MSE&nbsp;%.3f</span>",
                       r->entry[0].exhibit.mse[i]);
    basin_html_put(&w->page, "</figcaption></figure>\n");
}

static void put_cards(basin_image_page *w, const char *id, int64_t first, int64_t count) {
    int cell = w->settings->size <= SMALL ? CELL_SMALL : CELL_LARGE;
    int cells = 2 + 2 * w->report->entries;
    basin_html_put(&w->page,
                   "<div class=\"cards either\" id=\"%s\" "
                   "style=\"--cell:%dpx;--card-width:%dpx\">\n",
                   id, cell, cells * (cell + 8) + 24);
    for (int64_t i = first; i < first + count; i++) put_card(w, i);
    basin_html_put(&w->page, "</div>\n");
}

void basin_image_page_completed(basin_image_page *w) {
    basin_html *page = &w->page;
    char high[32];
    basin_html_section(page, "completed", "Completed pictures", true);
    basin_html_put(page, "<p>Occluded patches are replaced by the MASK token; the model fills them "
                         "in. The map of errors has a colour for each of their pixels: the "
                         "difference from the original, as a part of the range from black to "
                         "white.</p>\n");
    snprintf(high, sizeof high, "%.1f and more", most_error);
    basin_image_page_scale(w, "0", high);
    basin_image_page_toggle(w, "completed-pictures",
                            "Show all patches as the network puts them out");
    put_cards(w, "completed-pictures", 0, w->report->shown);
    basin_html_section_end(page);
}

void basin_image_page_extremes(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    basin_html *page = &w->page;
    if (r->extremes == 0) return;
    basin_html_section(page, "extremes", "Best and worst", true);
    basin_html_put(page,
                   "<p>Of all pictures scored, those with the least and the greatest error%s%s."
                   "</p>\n<h3 class=\"good\">Least error</h3>\n",
                   r->entries > 1 ? " of " : "", basin_image_page_letter(w, &r->entry[0]));
    put_cards(w, "best-pictures", r->shown, r->extremes);
    basin_html_put(page, "<h3 class=\"bad\">Greatest error</h3>\n");
    put_cards(w, "worst-pictures", r->shown + r->extremes, r->extremes);
    basin_html_section_end(page);
}
