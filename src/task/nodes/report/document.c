/* The document of a report on a detector; see report.h and docs/reports.md. Sections in the order
 * in which one asks: how good is it, how are scores spread, who is anomalous and why, have the data
 * moved, what is it. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/try.h"
#include "task/nodes/report/report.h"
#include "view/document.h"

typedef basin_nodes_findings findings;

#define PUT(...) basin_document_put(r, __VA_ARGS__)
#define TEXT(tone, ...) basin_document_text(r, tone, __VA_ARGS__)

static void put_plot(basin_document *r, const char *title, const char *x, const char *y,
                     const basin_plot_line *line, int lines) {
    basin_document_plot(
        r, &(basin_plot){.title = title, .x_label = x, .y_label = y, .line = line, .lines = lines});
}

/* ---- how good it is ---- */

static void put_facts(basin_document *r, const findings *f) {
    const basin_nodes_figures *g = &f->figures;
    char note[48];
    PUT("{'type':'facts','facts':[");
    if (f->judged)
        PUT("{'name':'AUROC','value':%g,'digits':1,'unit':%s},"
            "{'name':'AUPRC','value':%g,'digits':1,'unit':%s},"
            "{'name':'Calibration error','value':%g,'digits':1,'unit':%s}",
            100 * g->auroc, "%", 100 * g->auprc, "%", 100 * g->reliability.ece, "%");
    PUT("{'name':'Nodes','value':%lld},{'name':'Threshold','value':%g,'digits':3}",
        (long long)f->network->nodes, basin_nodes_get_info(f->model)->threshold);
    snprintf(note, sizeof note, "of %lld columns", (long long)f->drift.columns);
    if (f->drift.columns)
        PUT("{'name':'Large drift','value':%lld,'note':%s}", (long long)f->drift.large, note);
    PUT("]}");
}

static void put_note(basin_document *r, const basin_nodes_figures *g) {
    if (g->trained_on < 0)
        TEXT("note", "Which nodes took part in training is not known: they may be among these.");
    else if (g->trained_on + g->validated_on)
        TEXT("note",
             "%lld of the %lld nodes judged were trained on and %lld more chose epoch and "
             "threshold: what follows is better than what to expect.",
             (long long)g->trained_on, (long long)g->nodes, (long long)g->validated_on);
    TEXT("",
         "At the threshold of %.4f there are %lld alerts among the %lld nodes judged: %.1f %% of "
         "them are right, and they are %.1f %% of the %lld anomalies (F1 %.1f, macro-F1 %.1f).",
         g->threshold, (long long)g->alerts, (long long)g->nodes, 100 * g->precision,
         100 * g->recall, (long long)g->anomalous, 100 * g->f1, 100 * g->macro_f1);
}

static void put_ranking(basin_document *r, const findings *f) {
    const basin_nodes_figures *g = &f->figures;
    double rate = (double)g->anomalous / (double)g->nodes;
    const double ends[] = {0, 1}, flat[] = {rate, rate};
    const basin_plot_line precision[] = {
        {"detector", f->precision.x, f->precision.y, f->precision.count, BASIN_PLOT_DOTTED},
        {"chance", ends, flat, 2, BASIN_PLOT_DASHED}};
    const basin_plot_line roc[] = {
        {"detector", f->roc.x, f->roc.y, f->roc.count, BASIN_PLOT_DOTTED},
        {"chance", ends, ends, 2, BASIN_PLOT_DASHED}};
    PUT("{'type':'plots','plots':[");
    put_plot(r, "Precision by recall", "anomalies found", "alerts that are right", precision, 2);
    put_plot(r, "ROC", "normal nodes that are alerts", "anomalies found", roc, 2);
    PUT("]}");
}

static void put_budgets(basin_document *r, const basin_nodes_figures *g) {
    if (!g->budgets) return;
    PUT("{'type':'heading','text':'Precision and recall by number of alerts reviewed'},"
        "{'type':'table','columns':[{'name':'alerts','number':true},"
        "{'name':'right','number':true,'digits':1,'unit':%s},"
        "{'name':'found','number':true,'digits':1,'unit':%s}],'rows':[",
        "%", "%");
    for (const basin_nodes_budget *b = g->budget; b < g->budget + g->budgets; b++)
        PUT("[%lld,%g,%g]", (long long)b->alerts, 100 * b->precision, 100 * b->recall);
    PUT("]}");
}

static void put_figures(basin_document *r, const findings *f) {
    basin_document_section(r, "figures", "How good it is", "How good", true);
    if (f->judged) {
        put_note(r, &f->figures);
        put_ranking(r, f);
        put_budgets(r, &f->figures);
    } else {
        TEXT("", "There are no labels of both kinds here to judge by.");
    }
    PUT("]}");
}

static void put_reliability(basin_document *r, const basin_reliability *all) {
    double predicted[BASIN_RELIABILITY_BINS], observed[BASIN_RELIABILITY_BINS];
    const double ends[] = {0, 1};
    int64_t count = 0;
    for (int i = 0; i < BASIN_RELIABILITY_BINS; i++) {
        if (!all->bin[i].count) continue;
        predicted[count] = all->bin[i].predicted;
        observed[count++] = all->bin[i].observed;
    }
    const basin_plot_line line[] = {{"detector", predicted, observed, count, BASIN_PLOT_DOTTED},
                                    {"as it should be", ends, ends, 2, BASIN_PLOT_DASHED}};
    basin_document_section(r, "reliability", "Probabilities beside frequencies", "Reliability",
                           false);
    TEXT("",
         "Of a hundred nodes with a probability of 0.3 about thirty should be anomalous. The mean "
         "distance is %.4f (expected calibration error).",
         all->ece);
    PUT("{'type':'plots','plots':[");
    put_plot(r, "Reliability", "mean probability", "share of anomalies", line, 2);
    PUT("]},{'type':'table','folded':'Numbers','columns':[{'name':'probability'},"
        "{'name':'nodes','number':true},{'name':'predicted','number':true,'digits':3},"
        "{'name':'observed','number':true,'digits':3}],'rows':[");
    for (int i = 0; i < BASIN_RELIABILITY_BINS; i++) {
        char bin[32];
        snprintf(bin, sizeof bin, "%.1f to %.1f", (double)i / BASIN_RELIABILITY_BINS,
                 (double)(i + 1) / BASIN_RELIABILITY_BINS);
        if (all->bin[i].count)
            PUT("[%s,%lld,%g,%g]", bin, (long long)all->bin[i].count, all->bin[i].predicted,
                all->bin[i].observed);
    }
    PUT("]}]}");
}

/* ---- scores ---- */

enum { BARS = 20, OUTLINE = 2 * BARS + 2 };

/* The share of the nodes of a class (of all: -1) in each bar, in percent. */
static void fill_bars(double x[OUTLINE], double y[OUTLINE], double *value, const findings *f,
                      int which) {
    int64_t count = 0;
    for (int64_t i = 0; which < 0 && i < f->network->nodes; i++) value[count++] = f->probability[i];
    for (int64_t i = 0; which >= 0 && i < f->samples.count; i++)
        if (f->samples.label[i] == which) value[count++] = f->samples.score[i];
    basin_plot_histogram(x, y, BARS, value, count, 0, 1);
    for (int i = 0; i < OUTLINE && count; i++) y[i] *= 100.0 / (double)count;
}

static void put_scores(basin_document *r, const findings *f) {
    static const char *const name[] = {"normal", "anomalous"};
    double x[2][OUTLINE], y[2][OUTLINE], threshold = basin_nodes_get_info(f->model)->threshold;
    basin_plot_line line[2];
    int lines = f->judged ? 2 : 1;
    int64_t alerts = 0;
    BASIN_FREE_AT_EXIT double *value = NULL;
    basin_error error;
    basin_status status = BASIN_NEW_RAW(&value, f->network->nodes, "a histogram", &error);
    if (!basin_document_check(r, status, &error)) return;
    for (int i = 0; i < lines; i++) {
        fill_bars(x[i], y[i], value, f, f->judged ? i : -1);
        line[i] = (basin_plot_line){f->judged ? name[i] : "all nodes", x[i], y[i], OUTLINE,
                                    BASIN_PLOT_AREA};
    }
    for (int64_t i = 0; i < f->network->nodes; i++) alerts += f->probability[i] > threshold;
    basin_document_section(r, "scores", "How scores are spread", "Scores", false);
    TEXT("", "%lld of %lld nodes lie above the threshold of %.4f.", (long long)alerts,
         (long long)f->network->nodes, threshold);
    PUT("{'type':'plots','plots':[");
    put_plot(r, "Histogram of probabilities", "probability",
             f->judged ? "percent of each class" : "percent of the nodes", line, lines);
    PUT("]}]}");
}

/* ---- the highest scores, each with its reasons and the neighbours that they come through ---- */

static const char *label_name(const basin_network *network, int64_t node) {
    if (!network->label || network->label[node] < 0) return "no label";
    return network->label[node] ? "anomalous" : "normal";
}

static void put_features(basin_document *r, const findings *f, const basin_nodes_explanation *e) {
    const basin_schema *schema = basin_nodes_get_info(f->model)->schema;
    PUT("{'type':'table','columns':[{'name':'feature'},"
        "{'name':'moves','number':true,'digits':2,'sign':true},{'name':'value','number':true},"
        "{'name':'typical','number':true}],'rows':[");
    for (int64_t i = 0; i < e->features && i < f->reasons; i++) {
        const basin_nodes_feature *own = &e->feature[i];
        char name[BASIN_REASON_TEXT], value[BASIN_VALUE_TEXT], typical[BASIN_VALUE_TEXT];
        if (own->share == 0) continue;
        PUT("[%s,%g,%s,%s]", basin_nodes_reason_name(name, f->network, own), own->share,
            basin_schema_value(value, schema, own->column, own->value, own->hop),
            basin_schema_value(typical, schema, own->column, own->typical, own->hop));
    }
    PUT("]}");
}

/* No minus before a zero. */
static double rounded(double x) { return x > -0.005 && x < 0.005 ? 0 : x; }

static void put_neighbours(basin_document *r, const findings *f, const basin_nodes_explanation *e) {
    double all = 0;
    for (int64_t i = 0; i < e->neighbours; i++) all += e->neighbour[i].push;
    TEXT("",
         "%+.2f from a typical node's logit: %+.2f by the node itself, %+.2f through %lld "
         "neighbours, %+.2f from further away.",
         e->logit - e->typical_logit, rounded(e->own), rounded(all), (long long)e->neighbours,
         rounded(e->rest));
    if (!e->neighbours) return;
    PUT("{'type':'table','columns':[{'name':'neighbour'},"
        "{'name':'moves','number':true,'digits':2,'sign':true},"
        "{'name':'score','number':true,'digits':3},{'name':'label'}],'rows':[");
    for (int64_t i = 0; i < e->neighbours && i < f->reasons / 2; i++) {
        const basin_nodes_neighbour *n = &e->neighbour[i];
        char id[BASIN_NODE_TEXT];
        PUT("[%s,%g,%g,%s]", basin_network_id(f->network, n->node, id), n->push, n->probability,
            label_name(f->network, n->node));
    }
    PUT("]}");
}

static void put_alert(basin_document *r, const findings *f, int64_t i) {
    const basin_nodes_explanation *e = f->why[i];
    char id[BASIN_NODE_TEXT], reason[BASIN_REASON_TEXT], title[BASIN_NODE_TEXT + 32], tag[64];
    snprintf(title, sizeof title, "%lld. %s", (long long)e->rank,
             basin_network_id(f->network, e->node, id));
    snprintf(tag, sizeof tag, "%.4f, %s", e->probability, label_name(f->network, e->node));
    PUT("{'title':%s,'open':%d,'tags':[%s,%s],'blocks':[", title, i < 4, tag,
        basin_nodes_reason_print(reason, e, f->network, basin_nodes_get_info(f->model)->schema, 0));
    put_features(r, f, e);
    put_neighbours(r, f, e);
    PUT("]}");
}

static void put_alerts(basin_document *r, const findings *f) {
    basin_document_section(r, "alerts", "The highest scores, and why", "Highest scores", true);
    TEXT("", "Every number is a share of the distance between the node's logit and that of a "
             "typical node, one of median features, in its place. Features and neighbours "
             "attribute the same distance in two ways.");
    PUT("{'type':'items','items':[");
    for (int64_t i = 0; i < f->alerts; i++) put_alert(r, f, i);
    PUT("]}]}");
}

/* ---- columns ---- */

static const char *value_text(char text[64], const basin_nodes_drift_column *c, double value) {
    char day[BASIN_DAY_TEXT];
    if (c->category)
        snprintf(text, 64, "%.1f %% unknown", 100 * value);
    else if (c->date)
        snprintf(text, 64, "%s", basin_day_print(day, (int64_t)(value * 86400)));
    else
        snprintf(text, 64, "%.6g", value);
    return text;
}

static void put_columns(basin_document *r, const findings *f) {
    static const char *const level[] = {"little", "some", "large"};
    static const char *const tone[] = {"", "strong", "bad"};
    const basin_nodes_drift *d = &f->drift;
    if (!d->columns) return;
    basin_document_section(r, "columns", "Columns, and how far they have moved", "Columns", false);
    TEXT("",
         "The population stability index against training: below 0.1 little has changed, above "
         "0.25 much.%s",
         d->few ? " These are too few nodes to judge by." : "");
    PUT("{'type':'table','columns':[{'name':'column'},{'name':'index','number':true,'digits':3},"
        "{'name':'drift'},{'name':'median then','number':true},{'name':'now','number':true}],"
        "'rows':[");
    for (const basin_nodes_drift_column *c = d->column; c < d->column + d->columns; c++) {
        char then[64], now[64];
        PUT("{'tone':%s,'cells':[%s,%g,%s,%s,%s]}", tone[c->level], c->name, c->index,
            d->few ? "-" : level[c->level], value_text(then, c, c->then),
            value_text(now, c, c->now));
    }
    PUT("]}]}");
}

/* ---- the model ---- */

static void put_row(basin_document *r, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void put_row(basin_document *r, const char *name, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    PUT("[%s,%s]", name, text);
}

static void put_card(basin_document *r, const basin_nodes_card *card) {
    const basin_score *v = &card->validation;
    put_row(r, "trained", "%s, Basin %s", card->date, card->version);
    put_row(r, "on", "%s: %lld nodes, %lld edges", card->data, (long long)card->nodes,
            (long long)card->edges);
    put_row(r, "labels", "%lld trained on, %lld for validation", (long long)card->trained_on,
            (long long)card->validated_on);
    put_row(r, "base rate", "%.2f %% anomalous", 100 * card->base_rate);
    if (v->measures)
        put_row(r, "validation", "AUROC %.2f, AUPRC %.2f, macro-F1 %.2f, calibration error %.2f",
                100 * basin_score_get(v, "auroc"), 100 * basin_score_get(v, "auprc"),
                100 * basin_score_get(v, "macro_f1"), 100 * basin_score_get(v, "ece"));
}

static void put_model(basin_document *r, const findings *f) {
    const basin_nodes_model *m = f->model;
    const basin_nodes_card *card = basin_nodes_get_info(m)->card;
    basin_document_section(r, "model", "What the model is", "Model", false);
    PUT("{'type':'table','columns':[{'name':''},{'name':''}],'rows':[");
    if (card) put_card(r, card);
    put_row(r, "network", "Energy Transformer, %lld member%s of %lld parameters, share %.2f",
            (long long)m->members, m->members == 1 ? "" : "s",
            (long long)basin_nodes_get_info(m)->parameters, basin_nodes_get_info(m)->share);
    if (m->ensemble.fits)
        put_row(r, "trees", "%lld fits, share %.2f", (long long)m->ensemble.fits,
                1 - m->ensemble.share);
    put_row(r, "calibration", "%s", basin_nodes_get_info(m)->calibration);
    put_row(r, "threshold", "%.4f", basin_nodes_get_info(m)->threshold);
    put_row(r, "features", "%lld", (long long)m->features);
    PUT("]}]}");
}

/* ---- the whole ---- */

static basin_status begin(basin_document *r, const char *path, const findings *f,
                          basin_error *error) {
    const basin_nodes_card *card = basin_nodes_get_info(f->model)->card;
    const char *slash = strrchr(f->name, '/');
    char lead[1000], trained[500] = "";
    if (card) snprintf(trained, sizeof trained, ", trained %s on %.400s", card->date, card->data);
    snprintf(lead, sizeof lead, "A detector of anomalous nodes%s. Here it scores %.400s.", trained,
             f->network->path);
    return basin_document_begin(r, path, "anomaly", slash && slash[1] ? slash + 1 : f->name, lead,
                                error);
}

basin_status basin_nodes_document_write(const char *path, const findings *f, basin_error *error) {
    basin_document report, *r = &report;
    BASIN_TRY(begin(r, path, f, error));
    PUT("'head':[");
    if (f->drift.large)
        TEXT("note",
             "%lld of %lld columns have moved far since training (see Columns): scores and "
             "thresholds may no longer hold.",
             (long long)f->drift.large, (long long)f->drift.columns);
    put_facts(r, f);
    PUT("],'sections':[");
    put_figures(r, f);
    if (f->judged) put_reliability(r, &f->figures.reliability);
    put_scores(r, f);
    put_alerts(r, f);
    put_columns(r, f);
    put_model(r, f);
    PUT("]");
    return basin_document_end(r, error);
}
