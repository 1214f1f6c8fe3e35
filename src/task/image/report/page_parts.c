/* What the sections of a report are made of: names, numbers, pictures, plots; see page.h. */
#include <string.h>

#include "base/memory.h"
#include "task/image/report/page.h"
#include "task/image/report/sheet.h"

/* A picture of this many pixels or fewer across shows its pixels. */
enum { CRISP = 96 };

static const char *last_part(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

const char *basin_image_page_name(char text[BASIN_PICTURE_NAME], const basin_image_page *w,
                                  int64_t index) {
    return last_part(basin_pictures_name(text, w->report->set.pictures, index));
}

const char *basin_image_page_model(const basin_image_page *w, const basin_image_entry *entry) {
    const char *name = last_part(entry->name);
    for (int i = 0; i < w->report->entries; i++) {
        const basin_image_entry *other = &w->report->entry[i];
        if (other != entry && !strcmp(last_part(other->name), name)) return entry->name;
    }
    return name;
}

const char *basin_image_page_letter(const basin_image_page *w, const basin_image_entry *entry) {
    static const char *const letter[BASIN_IMAGE_REPORT_MODELS] = {"A", "B", "C", "D",
                                                                  "E", "F", "G", "H"};
    return w->report->entries > 1 ? letter[entry - w->report->entry] : "";
}

const char *basin_image_page_arch(const basin_image_settings *s) {
    if (!strcmp(s->arch, "vit")) return "Vision Transformer";
    if (!strcmp(s->arch, "albert")) return "weight-shared Vision Transformer";
    return "Energy Transformer";
}

void basin_image_page_heading(basin_image_page *w, const basin_image_entry *entry) {
    if (w->report->entries < 2) return;
    basin_html_put(&w->page, "<h3>%s: ", basin_image_page_letter(w, entry));
    basin_html_text(&w->page, basin_image_page_model(w, entry));
    basin_html_put(&w->page, "</h3>\n");
}

void basin_image_page_toggle(basin_image_page *w, const char *target, const char *label) {
    basin_html_put(&w->page,
                   "<div class=\"control\"><label><input type=\"checkbox\" "
                   "data-toggle=\"%s\">%s</label></div>\n",
                   target, label);
}

void basin_image_page_picture(basin_image_page *w, const basin_image_entry *entry,
                              const float *patches, const uint8_t *mask, const char *alt,
                              const char *attributes) {
    basin_html *page = &w->page;
    const basin_image_settings *s = &entry->model->settings;
    if (page->status) return;
    page->status = basin_image_sheet_picture(&w->picture, patches, mask, s, &page->error);
    if (page->status) return;
    basin_html_picture(page, &w->picture, s->size <= CRISP ? BASIN_HTML_PIXELS : BASIN_HTML_PHOTO,
                       0, alt, attributes);
}

void basin_image_page_picks(basin_image_page *w, const char *group, int64_t count) {
    if (count < 2) return;
    basin_html_put(&w->page, "<fieldset class=\"picks\"><legend class=\"soft\">Picture</legend>\n");
    for (int64_t i = 0; i < count; i++) {
        char text[BASIN_PICTURE_NAME];
        basin_html_put(&w->page,
                       "<label><input type=\"radio\" name=\"%s\"%s><span data-plain "
                       "data-copy=\"truth-%lld\">",
                       group, i ? "" : " checked", (long long)i);
        basin_html_text(&w->page,
                        basin_image_page_name(text, w, w->report->entry[0].exhibit.index[i]));
        basin_html_put(&w->page, "</span></label>\n");
    }
    basin_html_put(&w->page, "</fieldset>\n");
}

void basin_image_page_scale(basin_image_page *w, const char *low, const char *high) {
    basin_html *page = &w->page;
    if (!page->status) page->status = basin_image_sheet_colours(&w->picture, &page->error);
    if (page->status) return;
    basin_html_put(page, "<div class=\"scale\"><span>%s</span>", low);
    basin_html_picture(page, &w->picture, BASIN_HTML_PHOTO, 240,
                       "Colours from the least to the greatest", NULL);
    basin_html_put(page, "<span>%s</span></div>\n", high);
}

void basin_image_page_plot(basin_image_page *w, const char *title, const char *y_label,
                           const basin_plot_line *line, int lines, const char *x_label) {
    basin_plot plot = {.title = title,
                       .x_label = x_label,
                       .y_label = y_label,
                       .line = line,
                       .lines = lines,
                       .x_whole = true};
    basin_html_put(&w->page, "<div>");
    basin_html_plot(&w->page, &plot);
    basin_html_put(&w->page, "</div>\n");
}

double *basin_image_page_steps(basin_image_page *w, int count) {
    double *step = basin_array_new((size_t)count, sizeof *step);
    if (!step && !w->page.status)
        w->page.status = basin_fail(&w->page.error, BASIN_NO_MEMORY, "out of memory for a plot");
    for (int i = 0; i < count && step; i++) step[i] = i;
    return step;
}
