/* The sections of a report that show weights: memories, keys and queries, positions. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "task/image/report/page.h"
#include "task/image/report/sheet.h"

/* Columns for a sheet that is about square, and without a gap at its end where that can be. */
static int64_t columns_for(int64_t count) {
    int64_t least = (int64_t)ceil(sqrt((double)count));
    for (int64_t columns = least; columns <= 2 * least; columns++)
        if (count % columns == 0) return columns;
    return least;
}

/* About how large a patch is drawn, in pixels: lines between patches are thin then, and still seen
 * where the page shows the sheet smaller. */
enum { SMALL = 32, LARGE = 64, MOST_WIDTH = 1120 };

/* A sheet of patches in a figure with that caption. */
static void put_sheet(basin_image_page *w, const basin_image_entry *e, const float *patches,
                      const int64_t *order, int64_t count, int64_t columns, int64_t side,
                      const char *alt, const char *caption) {
    basin_html *page = &w->page;
    if (page->status) return;
    page->status = basin_image_sheet(&w->picture, patches, order, count, columns, side,
                                     &e->model->settings, &page->error);
    if (page->status) return;
    basin_html_put(page, "<figure>");
    basin_html_picture(page, &w->picture, BASIN_HTML_SHEET, 0, alt, NULL);
    basin_html_put(page, "<figcaption>%s</figcaption></figure>\n", caption);
}

typedef struct ranked {
    double use;
    int64_t memory;
} ranked;

static int by_use(const void *a, const void *b) {
    const ranked *p = a, *q = b;
    if (p->use != q->use) return p->use < q->use ? 1 : -1;
    return p->memory < q->memory ? -1 : 1;
}

/* Memories, those most used first. */
static int64_t *memory_order(const basin_image_entry *e) {
    int64_t count = e->model->settings.memories;
    int64_t *order = basin_array_new((size_t)count, sizeof *order);
    ranked *rank = basin_array_new((size_t)count, sizeof *rank);
    for (int64_t i = 0; i < count && rank; i++) rank[i] = (ranked){e->course.use[i], i};
    if (rank) qsort(rank, (size_t)count, sizeof *rank, by_use);
    for (int64_t i = 0; i < count && order && rank; i++) order[i] = rank[i].memory;
    if (!rank) {
        free(order);
        order = NULL;
    }
    free(rank);
    return order;
}

/* The share of the energy that the `first` memories in that order have, in percent. */
static double share(const basin_image_entry *e, const int64_t *order, int64_t first) {
    double some = 0, all = 0;
    for (int64_t i = 0; i < e->model->settings.memories; i++) {
        all += e->course.use[order[i]];
        if (i < first) some += e->course.use[order[i]];
    }
    return all > 0 ? 100 * some / all : 0;
}

/* The sheet of those used most and, behind a check box, of all. */
static void put_memory_sheets(basin_image_page *w, const basin_image_entry *e, const int64_t *order,
                              int64_t few) {
    int64_t count = e->model->settings.memories;
    int64_t columns = columns_for(count);
    char id[32], label[64];
    snprintf(id, sizeof id, "memory-sheets%s", basin_image_page_letter(w, e));
    snprintf(label, sizeof label, "Show all %lld", (long long)count);
    if (few < count) basin_image_page_toggle(w, id, label);
    basin_html_put(&w->page, "<div class=\"either\" id=\"%s\">\n<div class=\"first sheets\">", id);
    snprintf(label, sizeof label, "the %lld used most", (long long)few);
    put_sheet(w, e, e->weights.memory, order, few, 10, LARGE, "The memories used most, as patches",
              label);
    if (few < count) {
        basin_html_put(&w->page, "</div>\n<div class=\"second sheets\">");
        snprintf(label, sizeof label, "all %lld, by use", (long long)count);
        put_sheet(w, e, e->weights.memory, order, count, columns,
                  MOST_WIDTH / columns < SMALL ? MOST_WIDTH / columns : SMALL,
                  "All memories as patches", label);
    }
    basin_html_put(&w->page, "</div>\n</div>\n");
}

static void put_memories(basin_image_page *w, const basin_image_entry *e) {
    const basin_image_settings *s = &e->model->settings;
    int64_t few = s->memories < 100 ? s->memories : 100;
    int64_t *order = memory_order(e);
    if (!order) {
        w->page.status = basin_fail(&w->page.error, BASIN_NO_MEMORY, "out of memory for memories");
        return;
    }
    basin_image_page_heading(w, e);
    basin_html_put(
        &w->page,
        "<p>Each is a vector of the token space, decoded as a patch of %lld &times; "
        "%lld pixels. Those that say most about the pictures shown come first: the first "
        "%lld of %lld carry %.0f&nbsp;%% of the %s.</p>\n",
        (long long)s->patch, (long long)s->patch, (long long)few, (long long)s->memories,
        share(e, order, few),
        basin_choice_is(s->hopfield_kind, "softmax") ? "softmax over memories" : "Hopfield energy");
    put_memory_sheets(w, e, order, few);
    free(order);
}

static bool has_memories(const basin_image_findings *r) {
    for (int i = 0; i < r->entries; i++)
        if (r->entry[i].weights.memory) return true;
    return false;
}

void basin_image_page_memories(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    basin_html *page = &w->page;
    if (!has_memories(r)) return;
    basin_html_section(page, "memories", "Memories of the Hopfield network", r->entries > 1);
    basin_html_put(page, "<div class=\"blocks\">\n");
    for (int i = 0; i < r->entries; i++) {
        if (!r->entry[i].weights.memory) continue;
        basin_html_put(page, "<div>\n");
        put_memories(w, &r->entry[i]);
        basin_html_put(page, "</div>\n");
    }
    basin_html_put(page, "</div>\n");
    basin_html_section_end(page);
}

/* ---- heads ---- */

static void put_heads(basin_image_page *w, const basin_image_entry *e, const char *title,
                      const float *weights) {
    const basin_image_settings *s = &e->model->settings;
    int64_t columns = columns_for(s->head_dim);
    const char *letter = basin_image_page_letter(w, e);
    basin_html_put(&w->page, "<h3>%s%s%s</h3>\n<div class=\"heads together\">\n", title,
                   *letter ? " of " : "", letter);
    for (int64_t h = 0; h < s->heads; h++) {
        char alt[64], caption[32];
        snprintf(alt, sizeof alt, "%s of head %lld as patches", title, (long long)(h + 1));
        snprintf(caption, sizeof caption, "head %lld", (long long)(h + 1));
        put_sheet(w, e, weights + h * s->head_dim * w->values, NULL, s->head_dim, columns, SMALL,
                  alt, caption);
    }
    basin_html_put(&w->page, "</div>\n");
}

void basin_image_page_heads(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    bool open = false;
    for (int i = 0; i < r->entries; i++) {
        const basin_image_weights *weights = &r->entry[i].weights;
        if (!weights->key) continue;
        if (!open) {
            basin_html_section(&w->page, "heads", "Keys and queries", true);
            basin_html_put(&w->page,
                           "<p>The rows of each head's key and query matrices, decoded as patches. "
                           "A patch asks with its overlaps with the queries and is found by its "
                           "overlaps with the keys.</p>\n");
        }
        open = true;
        put_heads(w, &r->entry[i], "Keys", weights->key);
        put_heads(w, &r->entry[i], "Queries", weights->query);
    }
    if (open) basin_html_section_end(&w->page);
}

/* ---- positions ---- */

static void put_positions(basin_image_page *w, const basin_image_entry *e, double low) {
    basin_html *page = &w->page;
    int64_t across = w->settings->size / w->settings->patch;
    if (page->status) return;
    page->status =
        basin_image_sheet_positions(&w->picture, e->weights.cosine, across, low, &page->error);
    if (page->status) return;
    basin_html_put(page, "<figure>");
    basin_html_picture(page, &w->picture, BASIN_HTML_SHEET, 0,
                       "Maps of the cosine similarity of positions", NULL);
    basin_html_put(page, "<figcaption>");
    const char *letter = basin_image_page_letter(w, e);
    if (*letter) {
        basin_html_put(page, "%s: ", letter);
        basin_html_text(page, basin_image_page_model(w, e));
    } else {
        basin_html_put(page, "one map a patch, at its place");
    }
    basin_html_put(page, "</figcaption></figure>\n");
}

/* The least cosine, where one scale of colours begins for all models. */
static double least_cosine(const basin_image_page *w) {
    double low = 1;
    for (int k = 0; k < w->report->entries; k++)
        for (int64_t i = 0; i < w->tokens * w->tokens; i++)
            low = fmin(low, w->report->entry[k].weights.cosine[i]);
    return low;
}

/* Beside the memories, where a model has some. */
void basin_image_page_positions(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    basin_html *page = &w->page;
    int64_t across = w->settings->size / w->settings->patch;
    double low = least_cosine(w);
    char end[32];
    bool alone = r->entries == 1 && !has_memories(r);
    basin_html_section(page, "positions", "Positions", alone || r->entries > 1);
    basin_html_put(page,
                   "<div%s><div>\n<p>How the learnt position of each of the %lld &times; %lld "
                   "patches resembles all others: one map a patch, at its place; the colour is the "
                   "cosine of the two vectors.</p>\n",
                   alone ? " class=\"beside\"" : "", (long long)across, (long long)across);
    snprintf(end, sizeof end, "%.2f", low);
    basin_image_page_scale(w, end, "1");
    basin_html_put(page, "</div>\n<div class=\"sheets together\">\n");
    for (int i = 0; i < r->entries; i++) put_positions(w, &r->entry[i], low);
    basin_html_put(page, "</div>\n</div>\n");
    basin_html_section_end(page);
}
