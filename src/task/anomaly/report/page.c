/* A report on a detector as a page of HTML; see page.h. Sections in the order in which one asks:
 * how good is it, how do scores lie, who is odd and why, have the data moved, what is it. */
#include "task/anomaly/report/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "basin/version.h"
#include "io/file.h"

/* ---- the head ---- */

static const char *last_part(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

static void put_links(basin_html *page, const basin_anomaly_findings *f) {
    const struct {
        const char *id, *text;
        bool there;
    } link[] = {{"figures", "How good", true},
                {"reliability", "Reliability", f->judged},
                {"scores", "Scores", true},
                {"alerts", "Highest scores", true},
                {"columns", "Columns", f->drift.columns > 0},
                {"model", "Model", true}};
    basin_html_put(page, "<nav aria-label=\"Sections\"><ul>\n");
    for (size_t i = 0; i < sizeof link / sizeof *link; i++)
        if (link[i].there)
            basin_html_put(page, "<li><a href=\"#%s\">%s</a></li>\n", link[i].id, link[i].text);
    basin_html_put(page, "</ul></nav>\n");
}

static void put_percent(basin_html *page, const char *name, double value) {
    basin_html_put(page, "<div><dt>%s</dt><dd>%.1f %%</dd></div>\n", name, 100 * value);
}

static void put_facts(basin_html *page, const basin_anomaly_findings *f) {
    const basin_anomaly_figures *g = &f->figures;
    basin_html_put(page, "<dl class=\"facts\">\n");
    if (f->judged) {
        put_percent(page, "AUROC", g->auroc);
        put_percent(page, "AUPRC", g->auprc);
        put_percent(page, "Calibration error", g->reliability.ece);
    }
    basin_html_put(page, "<div><dt>Nodes</dt><dd>");
    basin_html_number(page, f->network->nodes);
    basin_html_put(page, "</dd></div>\n<div><dt>Threshold</dt><dd>%.3f</dd></div>\n",
                   basin_anomaly_threshold(f->model));
    if (f->drift.columns)
        basin_html_put(page,
                       "<div><dt>Large drift</dt><dd>%lld<small>of %lld columns</small></dd>"
                       "</div>\n",
                       (long long)f->drift.large, (long long)f->drift.columns);
    basin_html_put(page, "</dl>\n");
}

static void put_header(basin_html *page, const basin_anomaly_findings *f) {
    const basin_anomaly_card *card = basin_anomaly_get_card(f->model);
    basin_html_put(page, "<header>\n<h1>");
    basin_html_text(page, last_part(f->name));
    basin_html_put(page, "</h1>\n<p class=\"lead\">A detector of anomalous nodes");
    if (card) {
        basin_html_put(page, ", trained %s on <code>", card->date);
        basin_html_text(page, card->data);
        basin_html_put(page, "</code>");
    }
    basin_html_put(page, ". Here it scores <code>");
    basin_html_text(page, f->network->path);
    basin_html_put(page, "</code>.</p>\n");
    if (f->drift.large)
        basin_html_put(page,
                       "<p class=\"note\">%lld of %lld columns have moved far since training (<a "
                       "href=\"#columns\">drift</a>): scores and thresholds may no longer "
                       "hold.</p>\n",
                       (long long)f->drift.large, (long long)f->drift.columns);
    put_facts(page, f);
    put_links(page, f);
    basin_html_put(page, "</header>\n<main>\n");
}

/* ---- columns ---- */

static void put_value(basin_html *page, const basin_anomaly_drift_column *c, double value) {
    char day[BASIN_DAY_TEXT];
    basin_html_put(page, "<td class=\"number\">");
    if (c->category)
        basin_html_put(page, "%.1f %% unknown", 100 * value);
    else if (c->date)
        basin_html_text(page, basin_day_print(day, (int64_t)(value * 86400)));
    else
        basin_html_put(page, "%.6g", value);
    basin_html_put(page, "</td>");
}

static void put_column(basin_html *page, const basin_anomaly_drift_column *c, bool few) {
    static const char *const level[] = {"little", "some", "large"};
    basin_html_put(page, "<tr class=\"level-%d\"><td>", c->level);
    basin_html_text(page, c->name);
    basin_html_put(page, "</td><td class=\"number\">%.3f</td><td>%s</td>", c->index,
                   few ? "-" : level[c->level]);
    put_value(page, c, c->then);
    put_value(page, c, c->now);
    basin_html_put(page, "</tr>\n");
}

void basin_anomaly_page_columns(basin_html *page, const basin_anomaly_findings *f) {
    const basin_anomaly_drift *d = &f->drift;
    if (!d->columns) return;
    basin_html_section(page, "columns", "Columns, and how far they have moved", false);
    basin_html_put(page,
                   "<p>The population stability index against training: below 0.1 little has "
                   "changed, above 0.25 much.%s</p>\n<div class=\"table\"><table>\n<tr><th>column"
                   "</th><th class=\"number\">index</th><th>drift</th><th class=\"number\">median "
                   "then</th><th class=\"number\">now</th></tr>\n",
                   d->few ? " These are too few nodes to tell." : "");
    for (int64_t i = 0; i < d->columns; i++) put_column(page, &d->column[i], d->few);
    basin_html_put(page, "</table></div>\n");
    basin_html_section_end(page);
}

/* ---- the model ---- */

static void put_row(basin_html *page, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void put_row(basin_html *page, const char *name, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    basin_html_put(page, "<tr><td>%s</td><td>", name);
    basin_html_text(page, text);
    basin_html_put(page, "</td></tr>\n");
}

static void put_card(basin_html *page, const basin_anomaly_card *card) {
    const basin_score *v = &card->validation;
    put_row(page, "trained", "%s, Basin %s", card->date, card->version);
    put_row(page, "on", "%s: %lld nodes, %lld edges", card->data, (long long)card->nodes,
            (long long)card->edges);
    put_row(page, "labels", "%lld trained on, %lld for validation", (long long)card->trained_on,
            (long long)card->validated_on);
    put_row(page, "base rate", "%.2f %% anomalous", 100 * card->base_rate);
    if (v->measures)
        put_row(page, "validation", "AUROC %.2f, AUPRC %.2f, macro-F1 %.2f, calibration error %.2f",
                100 * basin_score_get(v, "auroc"), 100 * basin_score_get(v, "auprc"),
                100 * basin_score_get(v, "macro_f1"), 100 * basin_score_get(v, "ece"));
}

void basin_anomaly_page_model(basin_html *page, const basin_anomaly_findings *f) {
    const basin_anomaly_model *m = f->model;
    const basin_anomaly_card *card = basin_anomaly_get_card(m);
    basin_html_section(page, "model", "What the model is", false);
    basin_html_put(page, "<div class=\"table\"><table>\n");
    if (card) put_card(page, card);
    put_row(page, "network", "%s, %lld member%s of %lld parameters, share %.2f", m->settings.arch,
            (long long)m->members, m->members == 1 ? "" : "s",
            (long long)basin_anomaly_parameters(m), basin_anomaly_share(m));
    if (m->ensemble.fits)
        put_row(page, "trees", "%lld fits, share %.2f", (long long)m->ensemble.fits,
                1 - m->ensemble.share);
    put_row(page, "calibration", "%s", basin_anomaly_calibration(m));
    put_row(page, "threshold", "%.4f", basin_anomaly_threshold(m));
    put_row(page, "features", "%lld", (long long)m->features);
    basin_html_put(page, "</table></div>\n");
    basin_html_section_end(page);
}

/* ---- the whole ---- */

basin_status basin_anomaly_page_write(const char *path, const basin_anomaly_findings *f,
                                      basin_error *error) {
    basin_writer file;
    char title[300];
    basin_status status = basin_writer_create(&file, path, error);
    if (status) return status;
    snprintf(title, sizeof title, "%.250s: anomalous nodes", last_part(f->name));
    basin_html page = basin_html_begin(file.file, title, basin_anomaly_page_style);
    put_header(&page, f);
    basin_anomaly_page_curves(&page, f);
    basin_anomaly_page_scores(&page, f);
    basin_anomaly_page_alerts(&page, f);
    basin_anomaly_page_columns(&page, f);
    basin_anomaly_page_model(&page, f);
    basin_html_put(&page, "</main>\n<footer>Written by Basin %s.</footer>\n", BASIN_VERSION_STRING);
    status = basin_html_end(&page, NULL, error);
    if (!status) return basin_writer_commit(&file, error);
    basin_writer_discard(&file);
    return status;
}
