/* The sections on how good a detector is: curves, probabilities beside frequencies, numbers of
 * alerts; and how its scores lie. */
#include <stdlib.h>

#include "task/anomaly/report/page.h"

static void put_plot(basin_html *page, const char *title, const char *x, const char *y,
                     const basin_plot_line *line, int lines) {
    basin_plot plot = {.title = title, .x_label = x, .y_label = y, .line = line, .lines = lines};
    basin_html_put(page, "<div>\n");
    basin_html_plot(page, &plot);
    basin_html_put(page, "</div>\n");
}

/* ---- curves ---- */

static void put_note(basin_html *page, const basin_anomaly_figures *g) {
    if (g->trained_on < 0)
        basin_html_put(page, "<p class=\"note\">Which nodes took part in training cannot be told: "
                             "they may be among these.</p>\n");
    else if (g->trained_on + g->validated_on)
        basin_html_put(page,
                       "<p class=\"note\">%lld of the %lld nodes judged were trained on and %lld "
                       "more chose epoch and threshold: what follows is better than what to "
                       "expect.</p>\n",
                       (long long)g->trained_on, (long long)g->nodes, (long long)g->validated_on);
    basin_html_put(page,
                   "<p>At the threshold of %.4f there are %lld alerts among the %lld nodes judged: "
                   "%.1f %% of them are right, and they are %.1f %% of the %lld anomalies (F1 "
                   "%.1f, macro-F1 %.1f).</p>\n",
                   g->threshold, (long long)g->alerts, (long long)g->nodes, 100 * g->precision,
                   100 * g->recall, (long long)g->anomalous, 100 * g->f1, 100 * g->macro_f1);
}

static void put_ranking(basin_html *page, const basin_anomaly_findings *f) {
    const basin_anomaly_figures *g = &f->figures;
    double rate = (double)g->anomalous / (double)g->nodes;
    const double ends[] = {0, 1}, flat[] = {rate, rate};
    const basin_plot_line precision[] = {
        {"detector", f->precision.x, f->precision.y, f->precision.count, BASIN_PLOT_DOTTED},
        {"chance", ends, flat, 2, BASIN_PLOT_DASHED}};
    const basin_plot_line roc[] = {
        {"detector", f->roc.x, f->roc.y, f->roc.count, BASIN_PLOT_DOTTED},
        {"chance", ends, ends, 2, BASIN_PLOT_DASHED}};
    basin_html_put(page, "<div class=\"plots\">\n");
    put_plot(page, "Precision by recall", "anomalies found", "alerts that are right", precision, 2);
    put_plot(page, "ROC", "normal nodes that are alerts", "anomalies found", roc, 2);
    basin_html_put(page, "</div>\n");
}

static void put_budgets(basin_html *page, const basin_anomaly_figures *g) {
    if (!g->budgets) return;
    basin_html_put(page, "<h3>If so many alerts are looked at</h3>\n<div "
                         "class=\"table\"><table>\n<tr><th class=\"number\">alerts</th><th "
                         "class=\"number\">right</th><th class=\"number\">found</th></tr>\n");
    for (int i = 0; i < g->budgets; i++)
        basin_html_put(page,
                       "<tr><td class=\"number\">%lld</td><td class=\"number\">%.1f %%</td><td "
                       "class=\"number\">%.1f %%</td></tr>\n",
                       (long long)g->budget[i].alerts, 100 * g->budget[i].precision,
                       100 * g->budget[i].recall);
    basin_html_put(page, "</table></div>\n");
}

/* ---- probabilities ---- */

static void put_bins(basin_html *page, const basin_reliability *r) {
    basin_html_put(page,
                   "<details><summary>Numbers</summary>\n<div class=\"table\"><table>\n"
                   "<tr><th>probability</th><th class=\"number\">nodes</th><th "
                   "class=\"number\">predicted</th><th class=\"number\">observed</th></tr>\n");
    for (int i = 0; i < BASIN_RELIABILITY_BINS; i++)
        if (r->bin[i].count)
            basin_html_put(page,
                           "<tr><td>%.1f to %.1f</td><td class=\"number\">%lld</td><td "
                           "class=\"number\">%.3f</td><td class=\"number\">%.3f</td></tr>\n",
                           (double)i / BASIN_RELIABILITY_BINS,
                           (double)(i + 1) / BASIN_RELIABILITY_BINS, (long long)r->bin[i].count,
                           r->bin[i].predicted, r->bin[i].observed);
    basin_html_put(page, "</table></div></details>\n");
}

static void put_reliability(basin_html *page, const basin_reliability *r) {
    double predicted[BASIN_RELIABILITY_BINS], observed[BASIN_RELIABILITY_BINS];
    const double ends[] = {0, 1};
    int64_t count = 0;
    for (int i = 0; i < BASIN_RELIABILITY_BINS; i++) {
        if (!r->bin[i].count) continue;
        predicted[count] = r->bin[i].predicted;
        observed[count++] = r->bin[i].observed;
    }
    const basin_plot_line line[] = {{"detector", predicted, observed, count, BASIN_PLOT_DOTTED},
                                    {"as it should be", ends, ends, 2, BASIN_PLOT_DASHED}};
    basin_html_section(page, "reliability", "Probabilities beside frequencies", false);
    basin_html_put(page,
                   "<p>Of a hundred nodes with a probability of 0.3 about thirty should be "
                   "anomalous. The mean distance is %.4f (expected calibration error).</p>\n<div "
                   "class=\"plots\">\n",
                   r->ece);
    put_plot(page, "Reliability", "mean probability", "share of anomalies", line, 2);
    basin_html_put(page, "</div>\n");
    put_bins(page, r);
    basin_html_section_end(page);
}

void basin_anomaly_page_curves(basin_html *page, const basin_anomaly_findings *f) {
    basin_html_section(page, "figures", "How good it is", true);
    if (f->judged) {
        put_note(page, &f->figures);
        put_ranking(page, f);
        put_budgets(page, &f->figures);
    } else {
        basin_html_put(page, "<p>There are no labels of both kinds here to judge by.</p>\n");
    }
    basin_html_section_end(page);
    if (f->judged) put_reliability(page, &f->figures.reliability);
}

/* ---- scores ---- */

enum { BARS = 20, OUTLINE = 2 * BARS + 2 };

/* The share of the nodes of a class (of all: -1) in each bar, in percent. */
static void fill_bars(double x[OUTLINE], double y[OUTLINE], double *value,
                      const basin_anomaly_findings *f, int which) {
    int64_t count = 0;
    for (int64_t i = 0; which < 0 && i < f->network->nodes; i++) value[count++] = f->probability[i];
    for (int64_t i = 0; which >= 0 && i < f->samples.count; i++)
        if (f->samples.label[i] == which) value[count++] = f->samples.score[i];
    basin_plot_histogram(x, y, BARS, value, count, 0, 1);
    for (int i = 0; i < OUTLINE && count; i++) y[i] *= 100.0 / (double)count;
}

static void put_alert_count(basin_html *page, const basin_anomaly_findings *f) {
    double threshold = basin_anomaly_threshold(f->model);
    int64_t alerts = 0;
    for (int64_t i = 0; i < f->network->nodes; i++) alerts += f->probability[i] > threshold;
    basin_html_put(page, "<p>");
    basin_html_number(page, alerts);
    basin_html_put(page, " of ");
    basin_html_number(page, f->network->nodes);
    basin_html_put(page, " nodes lie above the threshold of %.4f.</p>\n", threshold);
}

void basin_anomaly_page_scores(basin_html *page, const basin_anomaly_findings *f) {
    static const char *const name[] = {"normal", "anomalous"};
    double x[2][OUTLINE], y[2][OUTLINE];
    basin_plot_line line[2];
    int lines = f->judged ? 2 : 1;
    double *value = malloc((size_t)f->network->nodes * sizeof *value + 1);
    if (!value) {
        page->status = basin_fail(&page->error, BASIN_NO_MEMORY, "out of memory for a histogram");
        return;
    }
    for (int i = 0; i < lines; i++) {
        fill_bars(x[i], y[i], value, f, f->judged ? i : -1);
        line[i] = (basin_plot_line){f->judged ? name[i] : "all nodes", x[i], y[i], OUTLINE,
                                    BASIN_PLOT_AREA};
    }
    free(value);
    basin_html_section(page, "scores", "How scores lie", false);
    put_alert_count(page, f);
    basin_html_put(page, "<div class=\"plots\">\n");
    put_plot(page, "Histogram of probabilities", "probability",
             f->judged ? "percent of each class" : "percent of the nodes", line, lines);
    basin_html_put(page, "</div>\n");
    basin_html_section_end(page);
}
