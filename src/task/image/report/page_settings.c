/* What models are: their parameters, tensor by tensor, and their settings side by side. */
#include <string.h>

#include "task/image/report/page.h"

/* A row for each tensor. */
static void put_tensors(basin_image_page *w, const basin_params *params) {
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
        basin_html_number(&w->page, count);
        basin_html_put(page, "</td><td class=\"number\">%.1f&nbsp;%%</td></tr>\n",
                       100 * (double)count / (double)total);
    }
    basin_html_put(page, "</tbody>\n<tfoot><tr><td>all</td><td></td><td class=\"number\">");
    basin_html_number(&w->page, total);
    basin_html_put(page, "</td><td></td></tr></tfoot>\n</table></div>\n");
}

/* Makes the model's graph, for its parameters; an error goes into the page. */
static bool open_graph(basin_image_page *w, basin_image_graph *graph,
                       const basin_image_settings *s) {
    basin_error why;
    basin_status status = basin_image_graph_new(graph, s, 1, &why);
    if (status == BASIN_NO_MEMORY && !w->page.status)
        w->page.status = basin_fail(&w->page.error, status, "%s", why.text);
    return !status;
}

static void put_model(basin_image_page *w, const basin_image_entry *e) {
    enum { MANY = 24 };
    basin_image_graph graph;
    if (!open_graph(w, &graph, &e->model->settings)) return;
    bool many = graph.params.count > MANY || w->report->entries > 1;
    basin_image_page_heading(w, e);
    if (many)
        basin_html_put(&w->page, "<details><summary>All %zu tensors</summary>\n",
                       graph.params.count);
    put_tensors(w, &graph.params);
    if (many) basin_html_put(&w->page, "</details>\n");
    basin_image_graph_free(&graph);
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
        s.arch = arch[i];
        if (!open_graph(w, &graph, &s)) continue; /* a ViT has at most 64 layers */
        basin_html_put(page, "<tr><td>%s</td><td class=\"number\">", basin_image_page_arch(&s));
        basin_html_number(&w->page, basin_params_total(&graph.params));
        basin_html_put(page, "</td></tr>\n");
        basin_image_graph_free(&graph);
    }
    basin_html_put(page, "</tbody></table></div>\n");
}

void basin_image_page_parameters(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    basin_html_section(&w->page, "parameters", "Parameters", false);
    for (int i = 0; i < r->entries; i++) put_model(w, &r->entry[i]);
    put_rivals(w);
    basin_html_section_end(&w->page);
}

/* A setting's values, one a model; a row in which they differ is marked. */
static void put_setting(basin_image_page *w, const basin_setting *setting) {
    const basin_image_findings *r = w->report;
    char text[BASIN_IMAGE_REPORT_MODELS][200];
    bool differs = false;
    for (int i = 0; i < r->entries; i++) {
        basin_setting_print(text[i], sizeof text[i], &r->entry[i].model->settings, setting);
        differs = differs || strcmp(text[i], text[0]) != 0;
    }
    basin_html_put(&w->page, "<tr%s><td>%s</td>", differs ? " class=\"differs\"" : "",
                   setting->name);
    for (int i = 0; i < r->entries; i++) {
        basin_html_put(&w->page, "<td><code>");
        basin_html_text(&w->page, text[i]);
        basin_html_put(&w->page, "</code></td>");
    }
    basin_html_put(&w->page, "</tr>\n");
}

void basin_image_page_settings(basin_image_page *w) {
    const basin_image_findings *r = w->report;
    basin_html *page = &w->page;
    basin_html_section(page, "settings", "Settings", false);
    basin_html_put(page, "<div class=\"table\"><table>\n");
    if (r->entries > 1) {
        basin_html_put(page, "<thead><tr><th></th>");
        for (int i = 0; i < r->entries; i++)
            basin_html_put(page, "<th>%s</th>", basin_image_page_letter(w, &r->entry[i]));
        basin_html_put(page, "</tr></thead>\n");
    }
    basin_html_put(page, "<tbody>\n");
    for (const basin_setting *s = basin_image_task.table; s->name; s++) put_setting(w, s);
    basin_html_put(page, "</tbody></table></div>\n");
    basin_html_section_end(page);
}
