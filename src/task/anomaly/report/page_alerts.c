/* The section of the highest scores, each with its reasons and the neighbours that they come
 * through. */
#include "task/anomaly/report/page.h"

static const char *label_name(const basin_network *network, int64_t node) {
    if (!network->label || network->label[node] < 0) return "no label";
    return network->label[node] ? "anomalous" : "normal";
}

static void put_moves(basin_html *page, double moves) {
    basin_html_put(page, "<td class=\"number %s\">%+.2f</td>", moves < 0 ? "down" : "up", moves);
}

static void put_feature(basin_html *page, const basin_anomaly_findings *f,
                        const basin_anomaly_feature *own) {
    const basin_schema *schema = basin_anomaly_get_schema(f->model);
    const double value[] = {own->value, own->typical};
    char name[BASIN_REASON_TEXT], text[BASIN_VALUE_TEXT];
    basin_html_put(page, "<tr><td>");
    basin_html_text(page, basin_anomaly_reason_name(name, f->network, own));
    basin_html_put(page, "</td>");
    put_moves(page, own->share);
    for (int k = 0; k < 2; k++) {
        basin_html_put(page, "<td class=\"number\">");
        basin_html_text(page, basin_schema_value(text, schema, own->column, value[k], own->hop));
        basin_html_put(page, "</td>");
    }
    basin_html_put(page, "</tr>\n");
}

static void put_features(basin_html *page, const basin_anomaly_findings *f,
                         const basin_anomaly_explanation *e) {
    basin_html_put(page, "<table>\n<tr><th>feature</th><th class=\"number\">moves</th><th "
                         "class=\"number\">value</th><th class=\"number\">typical</th></tr>\n");
    for (int64_t i = 0; i < e->features && i < f->reasons; i++)
        if (e->feature[i].share != 0) put_feature(page, f, &e->feature[i]);
    basin_html_put(page, "</table>\n");
}

/* No minus before a zero. */
static double rounded(double x) { return x > -0.005 && x < 0.005 ? 0 : x; }

static void put_neighbours(basin_html *page, const basin_anomaly_findings *f,
                           const basin_anomaly_explanation *e) {
    char id[BASIN_NODE_TEXT];
    double all = 0;
    for (int64_t i = 0; i < e->neighbours; i++) all += e->neighbour[i].push;
    basin_html_put(page,
                   "<p>%+.2f from a typical node's logit: %+.2f by the node itself, %+.2f through "
                   "%lld neighbours, %+.2f from further away.</p>\n",
                   e->logit - e->typical_logit, rounded(e->own), rounded(all),
                   (long long)e->neighbours, rounded(e->rest));
    if (!e->neighbours) return;
    basin_html_put(page, "<table>\n<tr><th>neighbour</th><th class=\"number\">moves</th><th "
                         "class=\"number\">score</th><th>label</th></tr>\n");
    for (int64_t i = 0; i < e->neighbours && i < f->reasons / 2; i++) {
        const basin_anomaly_neighbour *n = &e->neighbour[i];
        basin_html_put(page, "<tr><td>");
        basin_html_text(page, basin_network_id(f->network, n->node, id));
        basin_html_put(page, "</td>");
        put_moves(page, n->push);
        basin_html_put(page, "<td class=\"number\">%.3f</td><td>%s</td></tr>\n", n->probability,
                       label_name(f->network, n->node));
    }
    basin_html_put(page, "</table>\n");
}

static void put_alert(basin_html *page, const basin_anomaly_findings *f, int64_t i) {
    const basin_anomaly_explanation *e = f->why[i];
    char id[BASIN_NODE_TEXT], reason[BASIN_REASON_TEXT];
    basin_html_put(page, "<details class=\"alert\"%s><summary>%lld. ", i < 4 ? " open" : "",
                   (long long)e->rank);
    basin_html_text(page, basin_network_id(f->network, e->node, id));
    basin_html_put(page, "<span class=\"tag\">%.4f, %s</span><span class=\"tag\">", e->probability,
                   label_name(f->network, e->node));
    basin_html_text(page, basin_anomaly_reason_print(reason, e, f->network,
                                                     basin_anomaly_get_schema(f->model), 0));
    basin_html_put(page, "</span></summary>\n");
    put_features(page, f, e);
    put_neighbours(page, f, e);
    basin_html_put(page, "</details>\n");
}

void basin_anomaly_page_alerts(basin_html *page, const basin_anomaly_findings *f) {
    basin_html_section(page, "alerts", "The highest scores, and why", true);
    basin_html_put(page, "<p>Every number is a part of the distance between the node's logit and "
                         "that of a typical node, one of median features, in its place. Features "
                         "and neighbours tell the same distance in two ways.</p>\n<div "
                         "class=\"alerts\">\n");
    for (int64_t i = 0; i < f->alerts; i++) put_alert(page, f, i);
    basin_html_put(page, "</div>\n");
    basin_html_section_end(page);
}
