/* A report as names and numbers, of which the viewer page makes sections; see docs/reports.md. */
#include <time.h>

#include "base/clock.h"
#include "base/sort.h"
#include "basin/version.h"
#include "tasks/common/view/document.h"
#include "tasks/nodes/nodes.h"

enum { POINTS = 200, BARS = 20 };

typedef struct curve {
    double x[POINTS + 2], y[POINTS + 2];
    int64_t count;
} curve;

typedef struct findings {
    const basin_nodes_model *model;
    const basin_nodes_info *info;
    const basin_network *network;
    double *probability; /* [N] */
    bool judged;         /* there are labels of both kinds: */
    basin_nodes_figures figures;
    basin_nodes_samples samples;
    curve precision, roc;     /* by recall; true by false alarms */
    basin_nodes_drift *drift; /* NULL: not known */
    int64_t alerts, reasons;
    basin_nodes_explanation **why; /* [alerts] by falling probability */
} findings;

static void findings_free(findings *f) {
    for (int64_t i = 0; i < f->alerts && f->why; i++) basin_nodes_explanation_free(f->why[i]);
    free(f->why);
    basin_nodes_drift_free(f->drift);
    basin_nodes_samples_free(&f->samples);
    free(f->probability);
}

/* ---- what is found ---- */

/* A point that is far enough from the one before, or the last. */
static void add(curve *c, double x, double y, bool last) {
    static const double apart = 1.5 / POINTS;
    int64_t n = c->count;
    double far = n ? x - c->x[n - 1] + (y > c->y[n - 1] ? y - c->y[n - 1] : 0) : 1;
    if (!last && (far < apart || n > POINTS)) return;
    c->x[n] = x;
    c->y[n] = y;
    c->count++;
}

/* Curves over all thresholds; equal scores change sides together. */
static basin_status draw_curves(findings *f, basin_error *error) {
    const basin_nodes_samples *s = &f->samples;
    double normal = (double)(f->figures.nodes - f->figures.anomalous), found[2] = {0, 0};
    BASIN_FREE_AT_EXIT basin_sample *list = NULL;
    BASIN_TRY(basin_samples_sort(&list, s->score, s->label, s->count, true, error));
    add(&f->roc, 0, 0, false);
    for (int64_t i = 0; i < s->count; i++) {
        bool last = i + 1 == s->count;
        found[list[i].label]++;
        if (!last && list[i].score == list[i + 1].score) continue;
        double recall = found[1] / (double)f->figures.anomalous;
        add(&f->precision, recall, found[1] / (found[0] + found[1]), last);
        add(&f->roc, found[0] / normal, recall, last);
    }
    return BASIN_OK;
}

/* By the caller's nodes, or all that have a label. */
static basin_status judge(findings *f, const uint8_t *asked, basin_error *error) {
    const basin_network *n = f->network;
    int64_t count[2] = {0, 0};
    BASIN_SCRATCH(uint8_t, part, n->nodes, "a report", error);
    for (int64_t i = 0; i < n->nodes && n->label; i++) {
        if (n->label[i] < 0 || (asked && asked[i] != BASIN_SPLIT_TEST)) continue;
        part[i] = BASIN_SPLIT_TEST;
        count[n->label[i] == 1]++;
    }
    f->judged = count[0] && count[1];
    if (!f->judged) return BASIN_OK;
    BASIN_TRY(basin_nodes_backtest(&f->figures, f->model, n, f->probability, part, BASIN_SPLIT_TEST,
                                   f->info->threshold, error));
    BASIN_TRY(
        basin_nodes_samples_take(&f->samples, f->probability, n, part, BASIN_SPLIT_TEST, error));
    return draw_curves(f, error);
}

static basin_status explain(findings *f, const basin_nodes_report_options *o, basin_error *error) {
    int64_t N = f->network->nodes;
    basin_nodes_explain_options how = {
        .watch = o->watch, .memory = o->memory, .probability = f->probability, .brief = true};
    BASIN_SCRATCH_RAW(basin_ranked, list, N, "a report", error);
    BASIN_SCRATCH_RAW(int64_t, node, f->alerts, "a report", error);
    BASIN_TRY(BASIN_NEW(&f->why, f->alerts, "a report", error));
    for (int64_t i = 0; i < N; i++) list[i] = (basin_ranked){f->probability[i], i};
    qsort(list, (size_t)N, sizeof *list, basin_higher_first);
    for (int64_t i = 0; i < f->alerts; i++) node[i] = list[i].at;
    return basin_nodes_explain(f->why, f->model, f->network, node, f->alerts, &how, error);
}

static basin_status gather(findings *f, const basin_nodes_report_options *o, basin_error *error) {
    basin_nodes_predict_options how = {.watch = o->watch, .memory = o->memory};
    BASIN_TRY(BASIN_NEW_RAW(&f->probability, f->network->nodes, "a report", error));
    BASIN_TRY(basin_nodes_predict(f->probability, f->model, f->network, &how, error));
    BASIN_TRY(judge(f, o->part, error));
    BASIN_TRY(explain(f, o, error));
    basin_status status = basin_nodes_drift_new(&f->drift, f->model, f->network, 0, error);
    return status == BASIN_UNSUPPORTED ? BASIN_OK : status;
}

/* ---- the document ---- */

#define PUT(...) basin_document_put(r, __VA_ARGS__)

static void put_curve(basin_document *r, const char *name, const curve *c) {
    PUT("{'name':%s,'x':", name), basin_document_numbers(r, c->x, c->count);
    PUT("'y':"), basin_document_numbers(r, c->y, c->count);
    PUT("}");
}

static void put_figures(basin_document *r, const findings *f) {
    const basin_nodes_figures *g = &f->figures;
    if (!f->judged) return;
    PUT("'figures':{'nodes':%lld,'anomalous':%lld,'trained_on':%lld,'validated_on':%lld,"
        "'threshold':%g,'alerts':%lld,'precision':%g,'recall':%g,'f1':%g,'macro_f1':%g,"
        "'auroc':%g,'auprc':%g,'ece':%g,'budgets':[",
        (long long)g->nodes, (long long)g->anomalous, (long long)g->trained_on,
        (long long)g->validated_on, g->threshold, (long long)g->alerts, g->precision, g->recall,
        g->f1, g->macro_f1, g->auroc, g->auprc, g->reliability.ece);
    for (const basin_nodes_budget *b = g->budget; b < g->budget + g->budgets; b++)
        PUT("[%lld,%g,%g]", (long long)b->alerts, b->precision, b->recall);
    PUT("],'reliability':[");
    for (int i = 0; i < BASIN_RELIABILITY_BINS; i++)
        PUT("[%lld,%g,%g]", (long long)g->reliability.bin[i].count, g->reliability.bin[i].predicted,
            g->reliability.bin[i].observed);
    PUT("],'curves':[");
    put_curve(r, "precision by recall", &f->precision);
    put_curve(r, "ROC", &f->roc);
    PUT("]}");
}

/* Shares of the nodes of a class (of all: -1) in each bar. */
static void put_bars(basin_document *r, const char *name, const findings *f, int class) {
    double bar[BARS] = {0}, count = 0;
    int64_t all = class < 0 ? f->network->nodes : f->samples.count;
    for (int64_t i = 0; i < all; i++) {
        if (class >= 0 && f->samples.label[i] != class) continue;
        double p = class < 0 ? f->probability[i] : f->samples.score[i];
        if (!(p >= 0 && p <= 1)) continue;
        bar[basin_int_min((int64_t)(p * BARS), BARS - 1)]++;
        count++;
    }
    for (int i = 0; i < BARS && count > 0; i++) bar[i] /= count;
    PUT("{'name':%s,'bars':", name);
    basin_document_numbers(r, bar, BARS);
    PUT("}");
}

static void put_scores(basin_document *r, const findings *f) {
    int64_t alerts = 0;
    for (int64_t i = 0; i < f->network->nodes; i++)
        alerts += f->probability[i] > f->info->threshold;
    PUT("'scores':{'nodes':%lld,'alerts':%lld,'histogram':[", (long long)f->network->nodes,
        (long long)alerts);
    put_bars(r, f->judged ? "normal" : "all nodes", f, f->judged ? 0 : -1);
    if (f->judged) put_bars(r, "anomalous", f, 1);
    PUT("]}");
}

static const char *label_name(const basin_network *network, int64_t node) {
    if (!network->label || network->label[node] < 0) return "no label";
    return network->label[node] ? "anomalous" : "normal";
}

static void put_alert(basin_document *r, const findings *f, const basin_nodes_explanation *e) {
    const basin_schema *schema = f->info->schema;
    char id[BASIN_MAX_NODE], reason[BASIN_MAX_REASON];
    char value[BASIN_VALUE_TEXT], typical[BASIN_VALUE_TEXT];
    double through = 0;
    for (int64_t i = 0; i < e->neighbours; i++) through += e->neighbour[i].push;
    PUT("{'rank':%lld,'id':%s,'probability':%g,'label':%s,'reason':%s,'distance':%g,'own':%g,"
        "'through':%g,'rest':%g,'missed':%g,'degree':%lld,'features':[",
        (long long)e->rank, basin_network_id(f->network, e->node, id), e->probability,
        label_name(f->network, e->node), basin_nodes_reason_print(reason, e, f->network, schema, 0),
        e->logit - e->typical_logit, e->own, through, e->rest, e->missed, (long long)e->neighbours);
    for (int64_t i = 0; i < basin_int_min(e->features, f->reasons); i++) {
        const basin_nodes_feature *own = &e->feature[i];
        if (own->share == 0) continue;
        PUT("[%s,%g,%s,%s]", basin_nodes_reason_name(reason, f->network, own), own->share,
            basin_schema_value(value, schema, own->column, own->value, own->hop),
            basin_schema_value(typical, schema, own->column, own->typical, own->hop));
    }
    PUT("],'neighbours':[");
    for (int64_t i = 0; i < basin_int_min(e->neighbours, f->reasons / 2); i++) {
        const basin_nodes_neighbour *n = &e->neighbour[i];
        PUT("[%s,%g,%g,%s]", basin_network_id(f->network, n->node, id), n->push, n->probability,
            label_name(f->network, n->node));
    }
    PUT("]}");
}

static const char *value_text(char text[64], const basin_nodes_drift_column *c, double value) {
    if (c->date) return basin_day_print(text, (int64_t)(value * 86400));
    snprintf(text, 64, c->category ? "%.1f %% unknown" : "%.6g", c->category ? 100 * value : value);
    return text;
}

static void put_drift(basin_document *r, const basin_nodes_drift *d) {
    if (!d) return;
    PUT("'drift':{'few':%d,'large':%lld,'columns':[", d->few, (long long)d->large);
    for (const basin_nodes_drift_column *c = d->column; c < d->column + d->columns; c++) {
        char then[64], now[64];
        PUT("[%s,%g,%d,%s,%s]", c->name, c->index, c->level, value_text(then, c, c->then),
            value_text(now, c, c->now));
    }
    PUT("]}");
}

static void put_detector(basin_document *r, const findings *f) {
    const basin_nodes_card *card = f->info->card;
    PUT("'detector':{'id':%s,'threshold':%g,'members':%lld,'parameters':%lld,'share':%g,'fits':%"
        "lld,"
        "'calibration':%s,'features':%lld",
        f->info->id, f->info->threshold, (long long)f->info->members,
        (long long)f->info->parameters, f->info->share, (long long)f->model->ensemble.fits,
        basin_calibration_name(f->info->calibration), (long long)f->model->features);
    if (card)
        PUT("'card':{'date':%s,'version':%s,'data':%s,'nodes':%lld,'edges':%lld,'trained_on':%lld,"
            "'validated_on':%lld,'base_rate':%g",
            card->date, card->version, card->data, (long long)card->nodes, (long long)card->edges,
            (long long)card->trained_on, (long long)card->validated_on, card->base_rate);
    for (int i = 0; card && i < card->validation.measures; i++)
        PUT("%s:%g", card->validation.measure[i].name, card->validation.measure[i].value);
    PUT(card ? "}}" : "}");
}

static basin_status write(const char *path, const char *name, const findings *f,
                          basin_error *error) {
    basin_document report, *r = &report;
    const basin_nodes_card *card = f->info->card;
    const char *slash = strrchr(name, '/');
    char lead[1000], trained[500] = "", day[BASIN_DAY_TEXT];
    if (card) snprintf(trained, sizeof trained, ", trained %s on %.400s", card->date, card->data);
    snprintf(lead, sizeof lead,
             "A detector of anomalous nodes, model %s%s. Here it scores %.300s on %s, by Basin %s.",
             f->info->id, trained, f->network->path, basin_day_print(day, time(NULL)),
             BASIN_VERSION_STRING);
    BASIN_TRY(basin_document_begin(r, path, "anomaly", slash && slash[1] ? slash + 1 : name, lead,
                                   error));
    put_detector(r, f);
    put_figures(r, f);
    put_scores(r, f);
    PUT("'alerts':[");
    for (int64_t i = 0; i < f->alerts; i++) put_alert(r, f, f->why[i]);
    PUT("]");
    put_drift(r, f->drift);
    return basin_document_end(r, error);
}

basin_status basin_nodes_report(const char *path, const basin_nodes_model *model,
                                const basin_network *network,
                                const basin_nodes_report_options *reporting, basin_error *error) {
    BASIN_AT_EXIT(findings_free)
    findings f = {.model = model,
                  .info = basin_nodes_get_info(model),
                  .network = network,
                  .alerts = reporting->alerts > 0 ? reporting->alerts : 20,
                  .reasons = reporting->reasons > 0 ? reporting->reasons : 6};
    if (model->settings.classes)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "a report on a model of several classes; "
                          "needs a detector of anomalies");
    f.alerts = basin_int_min(f.alerts, network->nodes);
    BASIN_TRY(gather(&f, reporting, error));
    return write(path, reporting->model ? reporting->model : "detector", &f, error);
}
