/* basin graph report: a page on a model's predictions for labelled graphs; and pictures of
 * molecules. */
#include "base/sort.h"
#include "base/try.h"
#include "basin/calibration.h"
#include "cli/graph.h"
#include "data/graphset/molecule.h"
#include "view/document.h"

/* ---- pictures ---- */

enum { DRAWN = 1000 }; /* atoms that a drawing can have; beyond it is one of a graph */

bool basin_graph_is_molecules(const basin_graphset *set) {
    return set->line && set->node_labels >= BASIN_ATOM_LABELS && set->edge_labels > 0;
}

void basin_graph_drawing_free(basin_graph_drawing *d) {
    BASIN_FREE(d->at, d->name, d->text, d->order);
}

basin_status basin_graph_draw(basin_graph_drawing *d, const basin_graphset *s, int64_t graph,
                              basin_error *error) {
    int64_t nodes = s->node_start[graph + 1] - s->node_start[graph];
    int64_t first = s->edge_start[graph], edges = s->edge_start[graph + 1] - first;
    BASIN_AT_EXIT(basin_molecule_free) basin_molecule m = {0};
    d->graph = (basin_svg_graph_of){
        .title = "", .legend = "", .nodes = nodes, .edges = edges, .edge = s->edge + 2 * first};
    if (!basin_graph_is_molecules(s) || nodes > DRAWN || !nodes) return BASIN_OK;
    BASIN_TRY(BASIN_NEW(&d->at, 2 * nodes, "a picture", error));
    BASIN_TRY(BASIN_NEW(&d->name, nodes, "a picture", error));
    BASIN_TRY(BASIN_NEW(&d->text, 4 * nodes, "a picture", error));
    BASIN_TRY(BASIN_NEW(&d->order, edges + 4 * nodes, "a picture", error));
    BASIN_TRY(basin_molecule_of(&m, s, graph, error));
    BASIN_TRY(basin_molecule_layout(d->at, &m, error));
    for (int64_t i = 0; i < nodes; i++) {
        const int32_t *label = s->node_label + (s->node_start[graph] + i) * s->node_labels;
        d->name[i] = d->text + 4 * i;
        snprintf(d->text + 4 * i, 4, "%s", basin_element(label[0]));
        memcpy(d->order + edges + 4 * i, label, 4 * sizeof *label);
    }
    for (int64_t e = 0; e < edges; e++) d->order[e] = s->edge_label[(first + e) * s->edge_labels];
    d->graph.at = d->at, d->graph.name = d->name, d->graph.order = d->order;
    d->graph.atom = d->order + edges;
    return BASIN_OK;
}

/* ---- the report ---- */

enum { CARDS = 24, SCAFFOLDS = 24, BANDS = 5, LINE_TEXT = 200 };
static const double band_end[BANDS] = {0.3, 0.5, 0.7, 0.9, 2};

typedef struct job {
    basin_args *o;
    basin_graphs_model *model;
    basin_graphs_info about;
    basin_graphset set, training; /* training: without graphs where no table is given */
    basin_graphs_data data;
    basin_graphs_measures measures;
    int64_t *list, rows, columns, column; /* the column that errors are about; of classes -1 */
    int64_t seen;                         /* graphs that the model was trained on or validated by */
    float *output, *low, *nearest;        /* [rows, columns] [2, rows, columns] [rows] */
    int64_t *nearest_at;                  /* [rows] */
    int64_t *class_value;                 /* [rows] */
    double *truth, *error;                /* [rows] NaN: not known */
    basin_ranked *order;                  /* [rows] the largest error first */
} job;

static const basin_option report_table[] = {
    BASIN_TEXT(output, 'o', "output", "FILE",
               "The page; one that ends in .json gets the document alone.", .writes = true,
               .text = "report.html"),
    BASIN_TEXT(training_file, 0, "training", "FILE",
               "The table that the model was trained on: nearest training molecules are drawn."),
    BASIN_TEXT(about, 0, "about", "N", "Of several values: the one, counted from 1."),
    BASIN_GRAPH_OPTION_COVERAGE,
    BASIN_FLAG(unseen, "unseen", "Only graphs that had no part in training."),
    BASIN_GRAPH_OPTIONS_MOLECULES,
    BASIN_GRAPH_OPTION_TARGET,
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTIONS_LAST,
};

/* ---- numbers ---- */

/* What is true of a row: the value, or the column of the class. */
static double truth_of(const job *j, int64_t row) {
    const basin_graphset *s = &j->set;
    int64_t g = j->list[row];
    if (j->column >= 0) return (double)s->target[g * s->targets + j->column];
    for (int64_t c = 0; s->class_of[g] >= 0 && c < j->columns; c++)
        if (j->about.class_value[c] == s->class_value[s->class_of[g]]) return (double)c;
    return NAN;
}

static double predicted_of(const job *j, int64_t row) {
    return (double)j->output[row * j->columns + (j->column >= 0 ? j->column : 0)];
}

/* Whether its interval or set has the truth. */
static bool is_covered(const job *j, int64_t row) {
    int64_t at = row * j->columns + j->column, high = j->rows * j->columns + at;
    double y = j->truth[row];
    if (j->column < 0) return j->low[row * j->columns + (int64_t)y] > 0;
    if (j->about.binary) return j->low[y > 0 ? high : at] > 0;
    return (double)j->low[at] <= y && y <= (double)j->low[high];
}

static basin_status predict_all(job *j, basin_error *error) {
    BASIN_TRY(BASIN_NEW(&j->output, j->rows * j->columns, "a report", error));
    BASIN_TRY(BASIN_NEW(&j->low, 2 * j->rows * j->columns, "a report", error));
    BASIN_TRY(BASIN_NEW(&j->nearest, j->rows, "a report", error));
    BASIN_TRY(BASIN_NEW(&j->nearest_at, j->rows, "a report", error));
    BASIN_TRY(BASIN_NEW(&j->class_value, j->rows, "a report", error));
    BASIN_TRY(BASIN_NEW(&j->truth, 2 * j->rows, "a report", error));
    BASIN_TRY(BASIN_NEW(&j->order, j->rows, "a report", error));
    BASIN_TRY(basin_graphs_score(&j->measures, NULL, j->model, &j->data, error));
    basin_graphs_data data = j->data;
    data.low = j->low, data.high = j->low + j->rows * j->columns;
    data.nearest = j->nearest, data.nearest_at = j->nearest_at;
    BASIN_TRY(basin_graphs_predict(j->output, j->class_value, j->model, &data, error));
    j->error = j->truth + j->rows;
    for (int64_t i = 0; i < j->rows; i++) {
        double y = j->truth[i] = truth_of(j, i);
        if (isnan(y))
            j->error[i] = NAN;
        else if (j->column < 0)
            j->error[i] = 1 - (double)j->output[i * j->columns + (int64_t)y];
        else
            j->error[i] = fabs(predicted_of(j, i) - y);
        j->order[i] = (basin_ranked){isnan(y) ? -1 : j->error[i], i};
    }
    qsort(j->order, (size_t)j->rows, sizeof *j->order, basin_higher_first);
    return BASIN_OK;
}

/* ---- blocks ---- */

static void put_picture(basin_document *d, const basin_graphset *set, int64_t graph,
                        const char *title) {
    BASIN_AT_EXIT(basin_graph_drawing_free) basin_graph_drawing drawing = {0};
    basin_memory_file memory;
    basin_error error;
    FILE *file = basin_memory_file_open(&memory);
    if (!file || !basin_document_check(d, basin_graph_draw(&drawing, set, graph, &error), &error))
        return;
    fputs("data:image/svg+xml;charset=utf-8,", file);
    if (drawing.graph.at) basin_svg_molecule(file, &drawing.graph);
    BASIN_FREE_AT_EXIT char *text = basin_memory_file_close(&memory);
    BASIN_FREE_AT_EXIT char *escaped = text ? malloc(3 * strlen(text) + 1) : NULL;
    if (!escaped) return;
    char *to = escaped;
    for (const char *at = text; *at; at++) /* the only signs of an address that it has */
        to += sprintf(to, *at == '#' ? "%%23" : *at == '%' ? "%%25" : "%c", *at);
    basin_document_put(d, "{'src':%s,'title':%s,'alt':%s}", escaped, title, title);
}

static const char *id_of(char text[LINE_TEXT], const basin_graphset *s, int64_t graph) {
    const char *id = s->id ? s->id + s->id_start[graph] : "";
    if (*id)
        snprintf(text, LINE_TEXT, "%s", id);
    else
        snprintf(text, LINE_TEXT, s->line ? "line %lld" : "graph %lld",
                 (long long)(s->line ? s->line[graph] : graph));
    return text;
}

/* "predicted -2.31, measured -1.9, nearest 0.62 (aspirin)". */
static const char *describe(char text[LINE_TEXT], const job *j, int64_t row) {
    char end[120] = "";
    if (j->about.remembered)
        snprintf(end, sizeof end, ", nearest %.2f (%.60s)", (double)j->nearest[row],
                 j->about.remembered + j->nearest_at[row]);
    if (j->column < 0)
        snprintf(text, LINE_TEXT, "class %lld, predicted with %.3f%s",
                 (long long)j->about.class_value[(int64_t)j->truth[row]], 1 - j->error[row], end);
    else
        snprintf(text, LINE_TEXT, "predicted %.3g, known %.3g%s", predicted_of(j, row),
                 j->truth[row], end);
    return text;
}

/* The training molecule of that name; -1: it is not there. */
static int64_t find_training(const job *j, const char *name) {
    char text[LINE_TEXT];
    for (int64_t g = 0; g < j->training.graphs; g++)
        if (!strcmp(id_of(text, &j->training, g), name)) return g;
    return -1;
}

static void put_card(basin_document *d, const job *j, int64_t row) {
    char id[LINE_TEXT], note[LINE_TEXT];
    const char *names = j->about.remembered;
    int64_t near = names ? find_training(j, names + j->nearest_at[row]) : -1;
    snprintf(note, sizeof note, "error %.3g", j->error[row]);
    basin_document_put(d, "{'name':%s,'note':%s,'pictures':[", id_of(id, &j->set, j->list[row]),
                       note);
    put_picture(d, &j->set, j->list[row], describe(note, j, row));
    if (near >= 0) put_picture(d, &j->training, near, "nearest in training");
    basin_document_put(d, "]}");
}

static void put_cards(basin_document *d, const job *j, int64_t first, int64_t count) {
    basin_document_put(d, "{'type':'cards','cell':230,'cards':[");
    for (int64_t i = first; i < first + count && i < j->rows && j->order[i].value >= 0; i++)
        put_card(d, j, j->order[i].at);
    basin_document_put(d, "]}");
}

/* ---- sections ---- */

static void put_text(basin_document *d, const char *tone, const char *text) {
    basin_document_put(d, "{'type':'text','tone':%s,'text':%s}", tone, text);
}

static void begin_section(basin_document *d, const char *id, const char *title, int wide) {
    basin_document_put(d, "{'id':%s,'title':%s,'wide':%d,'blocks':[", id, title, wide);
}

/* Dots of x and y where both are known; at most some thousands. */
static void put_dots(basin_document *d, const job *j, const char *name, bool against_nearest) {
    for (int axis = 0; axis < 2; axis++) {
        if (axis)
            basin_document_put(d, "'y':[");
        else
            basin_document_put(d, "{'name':%s,'form':'points','x':[", name);
        for (int64_t i = 0; i < j->rows; i += 1 + j->rows / 4000)
            if (!isnan(j->truth[i]))
                basin_document_put(d, "%g",
                                   against_nearest ? axis ? j->error[i] : (double)j->nearest[i]
                                   : axis ? predicted_of(j, i)
                                                   : j->truth[i]);
        basin_document_put(d, "]");
    }
    basin_document_put(d, "}");
}

static void put_values(basin_document *d, const job *j) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < j->rows; i++)
        if (!isnan(j->truth[i])) low = fmin(low, j->truth[i]), high = fmax(high, j->truth[i]);
    begin_section(d, "predictions", "Predictions", 0);
    basin_document_put(d, "{'type':'plots','plots':[{'title':'Predicted by known','x':'known',"
                          "'y':'predicted','series':[");
    put_dots(d, j, "graphs", false);
    basin_document_put(d, "{'name':'equal','form':'dashed','x':[%g,%g],'y':[%g,%g]}]}]}]}", low,
                       high, low, high);
}

/* Of two classes, or of yes or no: probabilities beside frequencies. */
static basin_status put_reliability(basin_document *d, const job *j, basin_error *error) {
    BASIN_FREE_AT_EXIT double *p = NULL;
    BASIN_FREE_AT_EXIT uint8_t *label = NULL;
    int64_t n = 0, column = j->column < 0 ? 1 : j->column;
    char text[LINE_TEXT];
    BASIN_TRY(BASIN_NEW(&p, j->rows, "a report", error));
    BASIN_TRY(BASIN_NEW(&label, j->rows, "a report", error));
    for (int64_t i = 0; i < j->rows; i++)
        if (!isnan(j->truth[i]))
            p[n] = (double)j->output[i * j->columns + column], label[n++] = j->truth[i] > 0;
    basin_reliability r = basin_reliability_measure(p, label, n);
    begin_section(d, "reliability", "Probabilities beside frequencies", 0);
    snprintf(text, sizeof text,
             "Mean distance (expected calibration error) %.4f, Brier score %.4f.", r.ece, r.brier);
    put_text(d, "", text);
    basin_document_put(d, "{'type':'plots','plots':[{'title':'Reliability','x':'mean probability',"
                          "'y':'share that is so','series':[");
    for (int axis = 0; axis < 2; axis++) {
        if (axis)
            basin_document_put(d, "'y':[");
        else
            basin_document_put(d, "{'name':'model','form':'dots','x':[");
        for (int b = 0; b < BASIN_RELIABILITY_BINS; b++)
            if (r.bin[b].count)
                basin_document_put(d, "%g", axis ? r.bin[b].observed : r.bin[b].predicted);
        basin_document_put(d, "]");
    }
    basin_document_put(d, "},{'name':'as it should be','form':'dashed','x':[0,1],'y':[0,1]}]}]}]}");
    return BASIN_OK;
}

/* By similarity to the nearest training molecule. */
static void put_applicability(basin_document *d, const job *j) {
    begin_section(d, "applicability", "Distance to training", 0);
    put_text(d, "",
             "Similarity to the nearest training molecule (Tanimoto, counted neighbourhoods of "
             "up to two bonds), the error, and the share of intervals or sets that hold the "
             "truth.");
    basin_document_put(d,
                       "{'type':'plots','plots':[{'title':'Error by similarity','x':'similarity',"
                       "'y':'error','series':[");
    put_dots(d, j, "graphs", true);
    basin_document_put(d,
                       "]}]},{'type':'table','columns':[{'name':'similarity'},{'name':'graphs',"
                       "'number':1},{'name':'mean error','number':1,'digits':3},{'name':'covered',"
                       "'number':1,'digits':1,'unit':%s}],'rows':[",
                       "%");
    for (int b = 0; b < BANDS; b++) {
        double from = b ? band_end[b - 1] : 0, n = 0, sum = 0, covered = 0;
        char name[40];
        snprintf(name, sizeof name, "%.1f to %.1f", from, fmin(band_end[b], 1));
        for (int64_t i = 0; i < j->rows; i++) {
            double near = (double)j->nearest[i];
            if (isnan(j->truth[i]) || near < from || near >= band_end[b]) continue;
            n++, sum += j->error[i], covered += j->about.calibrated && is_covered(j, i);
        }
        basin_document_put(d, "[%s,%lld,%g,%g]", name, (long long)n, sum / n,
                           j->about.calibrated ? 100 * covered / n : NAN);
    }
    basin_document_put(d, "]}]}");
}

typedef struct scaffold {
    int64_t number, graph, count;
    double error;
} scaffold;

static int by_number(const void *a, const void *b) {
    const scaffold *x = a, *y = b;
    return x->number != y->number ? BASIN_COMPARE(x->number, y->number)
                                  : BASIN_COMPARE(x->graph, y->graph);
}

static int by_count(const void *a, const void *b) {
    const scaffold *x = a, *y = b;
    return x->count != y->count ? BASIN_COMPARE(y->count, x->count) : by_number(a, b);
}

static basin_status put_scaffolds(basin_document *d, const job *j, basin_error *error) {
    BASIN_FREE_AT_EXIT scaffold *s = NULL;
    int64_t n = 0, groups = 0;
    BASIN_TRY(BASIN_NEW(&s, j->rows, "a report", error));
    for (int64_t i = 0; i < j->rows; i++)
        if (!isnan(j->truth[i]))
            s[n++] = (scaffold){j->set.scaffold[j->list[i]], j->list[i], 1, j->error[i]};
    qsort(s, (size_t)n, sizeof *s, by_number);
    for (int64_t i = 0; i < n; i++)
        if (groups && s[groups - 1].number == s[i].number)
            s[groups - 1].count++, s[groups - 1].error += s[i].error;
        else
            s[groups++] = s[i];
    qsort(s, (size_t)groups, sizeof *s, by_count);
    begin_section(d, "scaffolds", "Errors by scaffold", 1);
    char text[LINE_TEXT], note[LINE_TEXT];
    snprintf(text, sizeof text,
             "%lld Murcko scaffolds; the commonest, each with one of its molecules.",
             (long long)groups);
    put_text(d, "", text);
    basin_document_put(d, "{'type':'cards','cell':150,'cards':[");
    for (int64_t i = 0; i < groups && i < SCAFFOLDS; i++) {
        snprintf(text, sizeof text, s[i].number ? "%lld molecules" : "%lld without rings",
                 (long long)s[i].count);
        snprintf(note, sizeof note, "mean error %.3g", s[i].error / (double)s[i].count);
        basin_document_put(d, "{'name':%s,'note':%s,'pictures':[", text, note);
        put_picture(d, &j->set, s[i].graph, "");
        basin_document_put(d, "]}");
    }
    basin_document_put(d, "]}]}");
    return BASIN_OK;
}

static void put_head(basin_document *d, const job *j) {
    const basin_graphs_measures *m = &j->measures;
    bool values = j->column >= 0 && !j->about.binary;
    const struct {
        const char *name;
        double value;
        int digits;
    } fact[] = {{"AUROC", m->auroc, 3},
                {"Average precision", m->auprc, 3},
                {"Accuracy, %", j->column < 0 ? m->accuracy : NAN, 1},
                {"RMSE", values ? m->deviation : NAN, 3},
                {"Mean absolute error", values ? m->loss : NAN, 3},
                {"R2", values ? m->explained : NAN, 3},
                {"Covered, %", 100 * m->coverage, 1},
                {values ? "Mean width of intervals" : "Mean size of sets", m->size, 2},
                {"Graphs", (double)m->items, 0}};
    char text[LINE_TEXT];
    basin_document_put(d, "'head':[");
    if (j->seen) {
        snprintf(text, sizeof text,
                 "%lld of these graphs had a part in training: figures are "
                 "better than what to expect of others (--unseen).",
                 (long long)j->seen);
        put_text(d, "note", text);
    }
    basin_document_put(d, "{'type':'facts','facts':[");
    for (size_t i = 0; i < sizeof fact / sizeof *fact; i++)
        if (!isnan(fact[i].value))
            basin_document_put(d, "{'name':%s,'value':%g,'digits':%d}", fact[i].name, fact[i].value,
                               fact[i].digits);
    basin_document_put(d, "]}]");
}

static basin_status put_sections(basin_document *d, const job *j, basin_error *error) {
    bool molecules = basin_graph_is_molecules(&j->set);
    put_head(d, j);
    basin_document_put(d, "'sections':[");
    if (j->column >= 0 && !j->about.binary)
        put_values(d, j);
    else if (j->about.binary || j->columns == 2)
        BASIN_TRY(put_reliability(d, j, error));
    if (!isnan(j->about.near)) put_applicability(d, j);
    begin_section(d, "worst", "Largest errors", 1);
    put_cards(d, j, 0, CARDS);
    basin_document_put(d, "]}");
    if (molecules && j->set.scaffold) BASIN_TRY(put_scaffolds(d, j, error));
    begin_section(d, "best", "Smallest errors", 1);
    int64_t known = 0;
    while (known < j->rows && j->order[known].value >= 0) known++;
    put_cards(d, j, known > 8 ? known - 8 : 0, 8);
    basin_document_put(d, "]}]");
    return BASIN_OK;
}

static basin_status open_report(job *j, basin_error *error) {
    basin_args *o = j->o;
    BASIN_TRY(basin_graphs_open(&j->model, o->operand[0], o->compute, error));
    j->about = basin_graphs_about(j->model);
    if (j->about.target == BASIN_NODE_CLASSES)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: a model of classes of nodes; needs one of "
                          "graphs",
                          o->operand[0]);
    const basin_settings *settings = j->about.settings;
    BASIN_TRY(basin_graph_read(&j->set, o, o->operand[1], j->about.names, settings, error));
    if (o->training_file)
        BASIN_TRY(basin_graph_read(&j->training, o, o->training_file, "", settings, error));
    BASIN_TRY(basin_graphs_part(&j->list, &j->rows, &j->set, "auto", error));
    BASIN_FREE_AT_EXIT basin_graphs_memory *memory = NULL;
    BASIN_TRY(BASIN_NEW(&memory, j->rows, "a report", error));
    int64_t kept = 0;
    if (!basin_graphs_seen(memory, j->model, &j->set, j->list, j->rows, NULL))
        for (int64_t i = 0; i < j->rows; i++) {
            j->seen += memory[i] != BASIN_GRAPHS_NEW;
            if (memory[i] == BASIN_GRAPHS_NEW) j->list[kept++] = j->list[i];
        }
    if (o->unseen && !kept)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: the model has seen all %lld graphs, or its "
                          "file does not say which",
                          o->operand[1], (long long)j->rows);
    if (o->unseen) j->rows = kept, j->seen = 0;
    if (!o->unseen) { /* all, in their order */
        free(j->list);
        j->list = NULL;
        BASIN_TRY(basin_graphs_part(&j->list, &j->rows, &j->set, "auto", error));
    }
    j->columns = j->about.columns;
    j->column = j->about.class_value ? -1 : o->about ? strtoll(o->about, NULL, 10) - 1 : 0;
    if (j->column >= j->columns || (o->about && j->column < 0))
        return basin_fail(error, BASIN_BAD_VALUE, "--about %.40s; needs a value, 1 to %lld",
                          o->about, (long long)j->columns);
    j->data = (basin_graphs_data){.set = &j->set,
                                  .path = o->operand[1],
                                  .graph = j->list,
                                  .graphs = j->rows,
                                  .coverage = o->coverage};
    return BASIN_OK;
}

static basin_status report(void *context, basin_error *error) {
    job *j = context;
    basin_document d;
    char lead[300];
    BASIN_TRY(open_report(j, error));
    BASIN_TRY(predict_all(j, error));
    snprintf(lead, sizeof lead, "%lld graphs of %.100s; %lld member%s; intervals and sets at %g",
             (long long)j->rows, j->set.name, (long long)j->about.members,
             j->about.members == 1 ? "" : "s", j->o->coverage);
    BASIN_TRY(basin_document_begin(&d, j->o->output, "graph", j->o->operand[0], lead, error));
    basin_error own;
    basin_document_check(&d, put_sections(&d, j, &own), &own);
    return basin_document_end(&d, error);
}

static void put_report(basin_record *r, const void *context) {
    const job *j = context;
    basin_record_text(r, "report", j->o->output);
    basin_record_measures(r, &j->measures, j->about.target, true);
}

static void close_report(void *context) {
    job *j = context;
    BASIN_FREE(j->output, j->low, j->nearest, j->nearest_at, j->class_value, j->truth, j->order,
               j->list);
    basin_graphset_free(&j->set);
    basin_graphset_free(&j->training);
    basin_graphs_close(j->model);
}

const basin_command basin_command_graph_report = {
    "graph report", report_table,
    BASIN_USES(job, .work = report, .print = put_report, .close = close_report)};
