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

/* A sheet of patches, each pixel `scale` times enlarged so that about `target` CSS pixels result.
 */
static void put_sheet(basin_image_page *w, const float *patches, const int64_t *order,
                      int64_t count, int64_t columns, int target, const char *alt) {
    basin_html *page = &w->page;
    if (page->status) return;
    page->status =
        basin_image_sheet(&w->picture, patches, order, count, columns, w->settings, &page->error);
    if (page->status) return;
    int64_t scale = target / w->picture.width;
    int64_t width = w->picture.width * (scale > 0 ? scale : 1);
    basin_html_picture(page, &w->picture, true, target ? (int)width : 0, alt, NULL);
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
static int64_t *memory_order(const basin_image_findings *r) {
    int64_t count = r->model->settings.memories;
    int64_t *order = basin_array_new((size_t)count, sizeof *order);
    ranked *rank = basin_array_new((size_t)count, sizeof *rank);
    for (int64_t i = 0; i < count && rank; i++) rank[i] = (ranked){r->trace.use[i], i};
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
static double share(const basin_image_findings *r, const int64_t *order, int64_t first) {
    double some = 0, all = 0;
    for (int64_t i = 0; i < r->model->settings.memories; i++) {
        all += r->trace.use[order[i]];
        if (i < first) some += r->trace.use[order[i]];
    }
    return all > 0 ? 100 * some / all : 0;
}

void basin_image_page_memories(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    basin_html *page = &w->page;
    int64_t count = w->settings->memories, few = count < 100 ? count : 100;
    if (!r->weights.memory) return;
    int64_t *order = memory_order(r);
    if (!order) {
        page->status = basin_fail(&page->error, BASIN_NO_MEMORY, "no memory for memories");
        return;
    }
    basin_html_section(page, "memories", "Memories of the Hopfield network");
    basin_html_put(
        page,
        "<p>Each is a vector of the token space, decoded as a patch of %lld &times; %lld "
        "pixels. Those that say most about the pictures above come first: the first "
        "%lld of %lld carry %.0f&nbsp;%% of the %s.</p>\n",
        (long long)w->settings->patch, (long long)w->settings->patch, (long long)few,
        (long long)count, share(r, order, few),
        basin_choice_is(w->settings->hopfield_kind, "softmax") ? "softmax over memories"
                                                               : "Hopfield energy");
    if (few < count) {
        char label[64];
        snprintf(label, sizeof label, "Show all %lld", (long long)count);
        basin_image_page_toggle(w, "memory-sheets", label);
    }
    basin_html_put(page, "<div class=\"either\" id=\"memory-sheets\">\n<div class=\"first\">");
    put_sheet(w, r->weights.memory, order, few, 10, 640, "The memories used most, as patches");
    if (few < count) {
        basin_html_put(page, "</div>\n<div class=\"second\">");
        put_sheet(w, r->weights.memory, order, count, columns_for(count), 1000,
                  "All memories as patches");
    }
    basin_html_put(page, "</div>\n</div>\n");
    basin_html_section_end(page);
    free(order);
}

static void put_heads(basin_image_page *w, const char *title, const float *weights) {
    const basin_image_settings *s = w->settings;
    int64_t columns = columns_for(s->head_dim);
    basin_html_put(&w->page, "<h3>%s</h3>\n<div class=\"heads\">\n", title);
    for (int64_t h = 0; h < s->heads; h++) {
        char alt[64];
        snprintf(alt, sizeof alt, "%s of head %lld as patches", title, (long long)(h + 1));
        basin_html_put(&w->page, "<figure><figcaption>head %lld</figcaption>", (long long)(h + 1));
        put_sheet(w, weights + h * s->head_dim * w->values, NULL, s->head_dim, columns, 0, alt);
        basin_html_put(&w->page, "</figure>\n");
    }
    basin_html_put(&w->page, "</div>\n");
}

void basin_image_page_attention(basin_image_page *w) {
    const basin_image_weights *weights = &w->report->weights;
    if (!weights->key) return;
    basin_html_section(&w->page, "attention", "Keys and queries");
    basin_html_put(&w->page,
                   "<p>The rows of each head's key and query matrices, decoded as patches. A patch "
                   "asks with its overlaps with the queries and is found by its overlaps with the "
                   "keys.</p>\n");
    put_heads(w, "Keys", weights->key);
    put_heads(w, "Queries", weights->query);
    basin_html_section_end(&w->page);
}

void basin_image_page_positions(basin_image_page *w) {
    basin_html *page = &w->page;
    double low = 1;
    const double *cosine = w->report->weights.cosine;
    for (int64_t i = 0; i < w->tokens * w->tokens; i++) low = fmin(low, cosine[i]);
    int64_t across = w->settings->size / w->settings->patch;
    basin_html_section(page, "positions", "Positions");
    basin_html_put(page,
                   "<p>How the learnt position of each of the %lld &times; %lld patches resembles "
                   "all others: one map a patch, at its place; the colour is the cosine of the two "
                   "vectors.</p>\n",
                   (long long)across, (long long)across);
    if (!page->status)
        page->status = basin_image_sheet_positions(&w->picture, cosine, across, low, &page->error);
    if (page->status) return;
    int64_t scale = 640 / w->picture.width;
    basin_html_picture(page, &w->picture, true, (int)(w->picture.width * (scale > 0 ? scale : 1)),
                       "Maps of the cosine similarity of positions", NULL);
    page->status = basin_image_sheet_colours(&w->picture, &page->error);
    if (page->status) return;
    basin_html_put(page, "<div class=\"scale\"><span>%.2f</span>", low);
    basin_html_picture(page, &w->picture, false, 240, "Colours from the least to the greatest",
                       NULL);
    basin_html_put(page, "<span>1</span></div>\n");
    basin_html_section_end(page);
}
