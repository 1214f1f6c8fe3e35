/* basin graph report: a page on predictions for labelled graphs, with pictures of molecules. */
#include "base/sort.h"
#include "program/graph.h"
#include "tasks/graphs/set/molecule.h"

#define OPTIONS basin_graph_options

bool basin_graph_is_molecules(const basin_graphset *set) {
    return set->line && set->node_labels >= BASIN_ATOM_LABELS && set->edge_labels > 0;
}

/* Edges are [from, to, order, what they add]; one that goes both ways is there once. */
void basin_graph_put_drawing(basin_document *d, const basin_graphset *s, int64_t graph,
                             const double *node, const double *edge) {
    int64_t first = s->node_start[graph], nodes = s->node_start[graph + 1] - first;
    int64_t from = s->edge_start[graph], edges = s->edge_start[graph + 1] - from;
    const int32_t *end = s->edge + 2 * from, *label = s->node_label + first * s->node_labels;
    bool molecule = basin_graph_is_molecules(s);
    char name[24];
    basin_document_put(d, "{'name':[");
    for (int64_t i = 0; i < nodes; i++) {
        snprintf(name, sizeof name, "%lld",
                 (long long)(s->node_labels == 1 ? label[i * s->node_labels] : i));
        basin_document_put(d, "%s", molecule ? basin_element(label[i * s->node_labels]) : name);
    }
    basin_document_put(d, "]");
    for (int c = 1; c < 3 && molecule; c++) {
        basin_document_put(d, "%s:[", c == 1 ? "charge" : "hydrogens");
        for (int64_t i = 0; i < nodes; i++)
            basin_document_put(d, "%d", label[i * s->node_labels + c]);
        basin_document_put(d, "]");
    }
    basin_document_put(d, "'edge':[");
    for (int64_t e = 0; e < edges; e++) {
        const int32_t back[2] = {end[2 * e + 1], end[2 * e]};
        const int32_t *other = bsearch(back, end, (size_t)edges, sizeof back, basin_compare_ends);
        if (other && back[0] < back[1]) continue;
        basin_document_put(d, "[%d,%d,%d,%g]", end[2 * e], end[2 * e + 1],
                           molecule ? s->edge_label[(from + e) * s->edge_labels] : 1,
                           edge ? edge[e] + (other ? edge[(other - end) / 2] : 0) : 0.0);
    }
    basin_document_put(d, "]");
    if (node) basin_document_put(d, "'node':");
    if (node) basin_document_numbers(d, node, nodes);
    basin_document_put(d, "}");
}

/* ---- the report: names, numbers and pictures, of which the page makes sections ---- */

enum { DRAWINGS = 200, NAME_TEXT = 100 };
enum { TRUTH, PREDICTED, ERROR, NEAREST, COVERED, SCAFFOLD, COLUMNS };
static const char *const column_name[COLUMNS] = {"truth",   "predicted", "error",
                                                 "nearest", "covered",   "scaffold"};

typedef struct job {
    basin_graph_job all;
    basin_graphset training; /* without graphs where no table is given */
    int64_t column;          /* that errors are about; -1 for classes */
    double *value[COLUMNS];  /* [rows] each; NaN: not known */
    basin_ranked *order;     /* [rows] the largest error first */
} job;

static const basin_option report_table[] = {
    BASIN_TEXT(output, 'o', "output", "FILE", .writes = true, .text = "report.html"),
    BASIN_TEXT(training_file, 0, "training", "FILE"),
    BASIN_TEXT(about, 0, "about", "N"),
    BASIN_GRAPH_OPTION_COVERAGE,
    BASIN_FLAG(unseen, "unseen"),
    BASIN_GRAPH_OPTIONS_MOLECULES,
    BASIN_GRAPH_OPTION_TARGET,
    BASIN_GRAPH_OPTIONS_USE,
    BASIN_OPTIONS_LAST,
};

/* The true value of a row, or the column of its class. */
static double truth_of(const job *j, int64_t row) {
    const basin_graphset *s = &j->all.set;
    int64_t g = j->all.list[row];
    if (j->column >= 0) return (double)s->target[g * s->targets + j->column];
    for (int64_t c = 0; s->class_of[g] >= 0 && c < j->all.columns; c++)
        if (j->all.info->class_value[c] == s->class_value[s->class_of[g]]) return (double)c;
    return NAN;
}

/* Whether its interval or set has the truth. */
static bool is_covered(const job *j, int64_t row, double y) {
    int64_t at = row * j->all.columns + (j->column < 0 ? (int64_t)y : j->column);
    const float *low = j->all.result.low, *high = j->all.result.high;
    if (j->column < 0 || j->all.info->binary) return (j->column < 0 || y == 0 ? low : high)[at] > 0;
    return (double)low[at] <= y && y <= (double)high[at];
}

/* For classes the prediction is the probability of the second, the error 1 minus that of the truth.
 */
static void fill_row(job *j, int64_t i) {
    const float *own = j->all.result.output + i * j->all.columns;
    double y = truth_of(j, i), p = (double)own[j->column < 0 ? j->all.columns > 1 : j->column];
    double error = j->column >= 0 ? fabs(p - y) : isnan(y) ? NAN : 1 - (double)own[(int64_t)y];
    int64_t scaffold = j->all.set.scaffold ? j->all.set.scaffold[j->all.list[i]] : 0;
    double near = j->all.result.nearest ? (double)j->all.result.nearest[i] : NAN;
    double covered = isnan(y) || !j->all.info->calibrated ? NAN : is_covered(j, i, y);
    double group = (double)(scaffold & ((INT64_C(1) << 52) - 1));
    const double value[COLUMNS] = {y, p, error, near, covered, group};
    for (int c = 0; c < COLUMNS; c++) j->value[c][i] = value[c];
    j->order[i] = (basin_ranked){isnan(error) ? -1 : error, i};
}

static basin_status fill(job *j, basin_error *error) {
    int64_t rows = j->all.rows;
    BASIN_TRY(BASIN_NEW(&j->order, rows, "a report", error));
    for (int c = 0; c < COLUMNS; c++) BASIN_TRY(BASIN_NEW(&j->value[c], rows, "a report", error));
    for (int64_t i = 0; i < rows; i++) fill_row(j, i);
    qsort(j->order, (size_t)rows, sizeof *j->order, basin_higher_first);
    return BASIN_OK;
}

static const char *id_of(char text[NAME_TEXT], const basin_graphset *s, int64_t graph) {
    const char *id = s->id ? s->id + s->id_start[graph] : "";
    if (*id)
        snprintf(text, NAME_TEXT, "%s", id);
    else
        snprintf(text, NAME_TEXT, s->line ? "line %lld" : "graph %lld",
                 (long long)(s->line ? s->line[graph] : graph));
    return text;
}

/* What is known of a training molecule: its value, or its class. */
static void put_measured(basin_document *d, const job *j, int64_t graph) {
    const basin_graphset *s = &j->training;
    char name[100];
    double y = s->target && j->column >= 0 && j->column < s->targets
                   ? (double)s->target[graph * s->targets + j->column]
                   : NAN;
    if (!isnan(y)) basin_document_put(d, ",'measured':%g", y);
    if (!s->class_of || s->class_of[graph] < 0) return;
    basin_graph_name_column(name, (const char *const *)s->column, s->class_value,
                            s->class_of[graph]);
    basin_document_put(d, ",'measured':%s", name + 2); /* without p_ */
}

/* For the largest errors: the molecule, and its nearest in the training table if that is given. */
static void put_drawings(basin_document *d, const job *j) {
    char text[NAME_TEXT];
    const char *const *name = j->all.info->remembered_name;
    basin_document_put(d, "'drawings':[");
    for (int64_t i = 0; i < j->all.rows && i < DRAWINGS && j->order[i].value >= 0; i++) {
        int64_t row = j->order[i].at, g = name ? 0 : j->training.graphs;
        basin_document_put(d, "{'row':%lld,'own':", (long long)row);
        basin_graph_put_drawing(d, &j->all.set, j->all.list[row], NULL, NULL);
        while (g < j->training.graphs &&
               strcmp(id_of(text, &j->training, g), name[j->all.result.nearest_at[row]]) != 0)
            g++;
        if (g < j->training.graphs) basin_document_put(d, "'near':");
        if (g < j->training.graphs) basin_graph_put_drawing(d, &j->training, g, NULL, NULL);
        if (g < j->training.graphs) put_measured(d, j, g);
        basin_document_put(d, "}");
    }
    basin_document_put(d, "]");
}

static void put_document(basin_document *d, const job *j) {
    const basin_graphs_measures *m = &j->all.evaluation.measures;
    char text[NAME_TEXT];
    basin_document_put(d, "'graphs':{'task':%s,'coverage':%g,'seen':%lld",
                       j->column < 0         ? "classes"
                       : j->all.info->binary ? "yes"
                                             : "values",
                       j->all.o->coverage,
                       (long long)(j->all.seen[1] + j->all.seen[2]) * !j->all.o->unseen);
    basin_document_put(d, "'classes':%lld,'items':%lld,'auroc':%g,'auprc':%g,'accuracy':%g",
                       (long long)j->all.columns, (long long)m->items, m->auroc, m->auprc,
                       m->accuracy);
    basin_document_put(d, "'rmse':%g,'mae':%g,'r2':%g,'covered_all':%g,'size':%g,'id':[",
                       m->deviation, m->loss, m->r_squared, m->coverage, m->width);
    for (int64_t i = 0; i < j->all.rows; i++)
        basin_document_put(d, "%s", id_of(text, &j->all.set, j->all.list[i]));
    basin_document_put(d, "],'class':[");
    for (int64_t c = 0; c < j->all.columns && j->all.info->class_value; c++)
        basin_document_put(d, "%lld", (long long)j->all.info->class_value[c]);
    basin_document_put(d, "],'near':[");
    const char *const *name = j->all.info->remembered_name;
    for (int64_t i = 0; i < j->all.rows && name; i++)
        basin_document_put(d, "%s", name[j->all.result.nearest_at[i]]);
    basin_document_put(d, "]");
    for (int c = 0; c < COLUMNS; c++) {
        basin_document_put(d, "%s:", column_name[c]);
        basin_document_numbers(d, j->value[c], j->all.rows);
    }
    if (basin_graph_is_molecules(&j->all.set)) put_drawings(d, j);
    basin_document_put(d, "}");
}

/* With another table, its molecules would be drawn as the nearest. */
static basin_status check_training(job *j, basin_error *error) {
    int64_t n = j->training.graphs, known = 0;
    BASIN_SCRATCH_RAW(int64_t, list, n, "a list of graphs", error);
    for (int64_t i = 0; i < n; i++) list[i] = i;
    BASIN_SCRATCH(basin_graphs_memory, seen, n, "a list of graphs", error);
    if (basin_graphs_seen(seen, j->all.model, &j->training, list, n, NULL)) return BASIN_OK;
    for (int64_t i = 0; i < n; i++) known += seen[i] != BASIN_GRAPHS_NEW;
    if (10 * known >= n) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "--training %s: the model was trained on %lld of its %lld molecules; must be "
                      "the table that it was trained on",
                      j->all.o->training_file, (long long)known, (long long)n);
}

static basin_status report(void *context, basin_error *error) {
    job *j = context;
    basin_graph_job *all = context;
    basin_graph_options *o = all->o;
    basin_document d;
    char lead[300];
    BASIN_TRY(basin_graph_open_all(all, true, error));
    if (all->info->target == BASIN_GRAPHS_NODE_CLASSES)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s predicts classes of nodes; a report needs a model of graphs",
                          o->operand[0]);
    BASIN_TRY(basin_graph_find_column(&j->column, all, error));
    if (all->info->class_value && o->about)
        return basin_usage(error, "--about has no effect: a report on classes covers all of them");
    if (j->column < 0 && !all->info->class_value) j->column = 0;
    const char *measured = all->info->table_target; /* which a table of structures may lack */
    bool without =
        o->training_file &&
        (!measured || basin_graph_read(&j->training, &o->args, &o->reading, o->training_file,
                                       measured, all->info->settings, NULL) != BASIN_OK);
    if (without)
        BASIN_TRY(basin_graph_read(&j->training, &o->args, &o->reading, o->training_file, "",
                                   all->info->settings, error));
    if (o->training_file) BASIN_TRY(check_training(j, error));
    BASIN_TRY(basin_graph_look_back(all, error));
    BASIN_TRY(basin_graph_evaluate(all, error));
    BASIN_TRY(basin_graph_predict(all, error));
    BASIN_TRY(fill(j, error));
    snprintf(lead, sizeof lead, "%lld graphs of %.100s; %lld member%s", (long long)all->rows,
             all->set.name, (long long)all->info->members, all->info->members == 1 ? "" : "s");
    BASIN_TRY(basin_document_begin(&d, o->output, "graph", o->operand[0], lead, error));
    put_document(&d, j);
    return basin_document_end(&d, error);
}

static void put_report(basin_record *r, const void *context) {
    const basin_graph_job *j = context;
    basin_record_text(r, "report", j->o->output);
    basin_record_measures(r, NULL, &j->evaluation.measures, j->info->target, true);
    basin_graph_put_seen(r, j);
}

static void close_report(void *context) {
    job *j = context;
    for (int c = 0; c < COLUMNS; c++) free(j->value[c]);
    free(j->order);
    basin_graphset_free(&j->training);
    basin_graph_close_all(context);
}

const basin_command basin_command_graph_report = {
    BASIN_COMMAND("graph report", report_table),
    BASIN_USES(job, .work = report, .print = put_report, .close = close_report)};
