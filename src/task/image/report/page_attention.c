/* Where a patch looks: the reader chooses a patch, page.js draws each head's attention to all
 * others at a step. */
#include "task/image/report/page.h"

/* The bytes of one picture, and which of its patches are occluded. */
static void put_data(basin_image_page *w, const basin_image_entry *e, int64_t i) {
    const basin_image_attention *a = &e->attention;
    size_t size = (size_t)(a->steps * a->heads * a->tokens * a->keys);
    const uint8_t *mask = e->exhibit.mask + i * w->tokens;
    basin_html_put(&w->page, "<script type=\"text/plain\" data-picture=\"%lld\" data-mask=\"",
                   (long long)i);
    for (int64_t n = 0; n < w->tokens; n++)
        basin_html_put(&w->page, "%d", mask[n] == BASIN_PATCH_REPLACED);
    basin_html_put(&w->page, "\">");
    basin_html_bytes(&w->page, a->share + (size_t)i * size, size);
    basin_html_put(&w->page, "</script>\n");
}

static void put_controls(basin_image_page *w, const basin_image_attention *a, const char *unit) {
    basin_html_put(&w->page,
                   "<div class=\"control\"><label>%s <input type=\"range\" min=\"0\" max=\"%d\" "
                   "value=\"%d\" step=\"1\"></label><output></output>\n<label><input "
                   "type=\"checkbox\">Who looks at the patch instead</label></div>\n",
                   unit, a->steps - 1, a->steps - 1);
}

/* What a page had no room for, if anything. */
static void put_limits(basin_image_page *w, const basin_image_entry *e) {
    const basin_image_attention *a = &e->attention;
    int all = e->trace.steps + (e->trace.parts > 0);
    bool fewer = a->pictures < w->report->traced;
    if (!a->share)
        basin_html_put(&w->page, "<p>Too large for a page: %lld heads, %lld patches.</p>\n",
                       (long long)a->heads, (long long)a->tokens);
    else if (fewer || a->steps < all)
        basin_html_put(&w->page,
                       "<p class=\"soft\">More would be too large for a page: %s%lld of %lld "
                       "pictures, %d of %d %s.</p>\n",
                       fewer ? "the first " : "", (long long)a->pictures,
                       (long long)w->report->traced, a->steps, all,
                       e->trace.parts ? "steps" : "layers");
}

static void put_widget(basin_image_page *w, const basin_image_entry *e) {
    const basin_image_attention *a = &e->attention;
    const char *unit = e->trace.parts ? "Step" : "Layer";
    basin_html *page = &w->page;
    char group[32];
    snprintf(group, sizeof group, "look%s", basin_image_page_letter(w, e));
    basin_image_page_heading(w, e);
    put_limits(w, e);
    if (!a->share) return;
    basin_html_put(page,
                   "<div class=\"attend\" data-heads=\"%lld\" data-across=\"%lld\" "
                   "data-keys=\"%lld\" data-unit=\"%s\" data-steps=\"",
                   (long long)a->heads, (long long)(w->settings->size / w->settings->patch),
                   (long long)a->keys, unit);
    /* The attention of a ViT's layer i is that before layer i + 1. */
    for (int i = 0; i < a->steps; i++)
        basin_html_put(page, "%s%d", i ? " " : "", a->step[i] + (e->trace.parts == 0));
    basin_html_put(page, "\">\n");
    basin_image_page_picks(w, group, a->pictures);
    put_controls(w, a, unit);
    basin_html_put(page, "<div class=\"attend-body\"><div><div class=\"patches\" tabindex=\"0\" "
                         "role=\"application\" aria-label=\"Patches of the picture: click one, or "
                         "move with the arrow keys\"></div>\n<p aria-live=\"polite\"></p></div>\n"
                         "<div class=\"attend-heads\"></div></div>\n");
    for (int64_t i = 0; i < a->pictures; i++) put_data(w, e, i);
    basin_html_put(page, "</div>\n");
}

void basin_image_page_attention(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    bool any = false;
    for (int i = 0; i < r->entries; i++) any = any || r->entry[i].attention.heads;
    if (!any) return;
    basin_html_section(&w->page, "attention", "Where a patch looks", true);
    basin_html_put(&w->page,
                   "<p>Click a patch, or move with the arrow keys: each map shows how one head "
                   "spreads that patch's attention over the others, from the least share to the "
                   "greatest, which is brightest. The shares of a head add up to "
                   "100&nbsp;%%.</p>\n"
                   "<noscript><p>This part needs JavaScript.</p></noscript>\n");
    for (int i = 0; i < r->entries; i++)
        if (r->entry[i].attention.heads) put_widget(w, &r->entry[i]);
    basin_html_section_end(&w->page);
}
