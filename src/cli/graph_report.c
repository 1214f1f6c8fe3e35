/* basin graph report: a page on a model's predictions for labelled graphs; and pictures of
 * molecules. */
#include "base/sort.h"
#include "base/try.h"
#include "cli/graph.h"
#include "data/graphset/molecule.h"
#include "view/document.h"

/* ---- pictures ---- */

enum { DRAWN = 1000, NAME = 12 };

bool basin_graph_is_molecules(const basin_graphset *set) {
    return set->line && set->node_labels >= BASIN_ATOM_LABELS && set->edge_labels > 0;
}

void basin_graph_drawing_free(basin_graph_drawing *d) {
    BASIN_FREE(d->at, d->name, d->text, d->order);
}

basin_status basin_graph_draw(basin_graph_drawing *d, const basin_graphset *s, int64_t graph,
                              basin_error *error) {
    int64_t nodes = s->node_start[graph + 1] - s->node_start[graph], columns = s->node_labels;
    int64_t first = s->edge_start[graph], edges = s->edge_start[graph + 1] - first;
    bool molecule = basin_graph_is_molecules(s);
    BASIN_AT_EXIT(basin_molecule_free) basin_molecule m = {0};
    if (nodes > DRAWN || !nodes)
        return basin_fail(error, BASIN_UNSUPPORTED, "graph %lld has %lld nodes; 1 to %d are drawn",
                          (long long)graph, (long long)nodes, DRAWN);
    BASIN_TRY(BASIN_NEW(&d->at, 2 * nodes, "a picture", error));
    BASIN_TRY(BASIN_NEW(&d->name, nodes, "a picture", error));
    BASIN_TRY(BASIN_NEW(&d->text, NAME * nodes, "a picture", error));
    BASIN_TRY(BASIN_NEW(&d->order, edges + 4 * nodes, "a picture", error));
    BASIN_TRY(basin_molecule_of(&m, s, graph, error));
    BASIN_TRY(basin_molecule_layout(d->at, &m, error));
    for (int64_t i = 0; i < nodes; i++) {
        const int32_t *label = s->node_label + (s->node_start[graph] + i) * columns;
        d->name[i] = d->text + NAME * i;
        if (molecule)
            snprintf(d->text + NAME * i, NAME, "%s", basin_element(label[0]));
        else
            snprintf(d->text + NAME * i, NAME, "%d", columns == 1 ? label[0] : (int)i);
        if (molecule) memcpy(d->order + edges + 4 * i, label, 4 * sizeof *label);
    }
    for (int64_t e = 0; e < edges && molecule; e++)
        d->order[e] = s->edge_label[(first + e) * s->edge_labels];
    d->graph = (basin_svg_graph_of){.title = "",
                                    .nodes = nodes,
                                    .edges = edges,
                                    .edge = s->edge + 2 * first,
                                    .at = d->at,
                                    .name = d->name,
                                    .order = molecule ? d->order : NULL,
                                    .atom = molecule ? d->order + edges : NULL};
    return BASIN_OK;
}

/* ---- the report: names, numbers and pictures, of which the page makes sections ---- */

enum { DRAWINGS = 200, NAME_TEXT = 100 };
enum { TRUTH, PREDICTED, ERROR, NEAREST, COVERED, SCAFFOLD, COLUMNS };
static const char *const column_name[COLUMNS] = {"truth",   "predicted", "error",
                                                 "nearest", "covered",   "scaffold"};

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
    double *value[COLUMNS];               /* [rows] each; NaN: not known */
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

/* What is true of a row: the value, or the column of the class. */
static double truth_of(const job *j, int64_t row) {
    const basin_graphset *s = &j->set;
    int64_t g = j->list[row];
    if (j->column >= 0) return (double)s->target[g * s->targets + j->column];
    for (int64_t c = 0; s->class_of[g] >= 0 && c < j->columns; c++)
        if (j->about.class_value[c] == s->class_value[s->class_of[g]]) return (double)c;
    return NAN;
}

/* Whether its interval or set has the truth. */
static bool is_covered(const job *j, int64_t row, double y) {
    int64_t at = row * j->columns + (j->column < 0 ? (int64_t)y : j->column);
    int64_t high = j->rows * j->columns + at;
    if (j->column < 0 || j->about.binary) return j->low[j->column < 0 || y == 0 ? at : high] > 0;
    return (double)j->low[at] <= y && y <= (double)j->low[high];
}

/* Of classes the prediction is the probability of the second, the error what is lacking of 1. */
static void fill_row(job *j, int64_t i) {
    const float *own = j->output + i * j->columns;
    double y = truth_of(j, i), p = (double)own[j->column < 0 ? j->columns > 1 : j->column];
    double error = j->column >= 0 ? fabs(p - y) : isnan(y) ? NAN : 1 - (double)own[(int64_t)y];
    int64_t scaffold = j->set.scaffold ? j->set.scaffold[j->list[i]] : 0;
    const double value[COLUMNS] = {y,
                                   p,
                                   error,
                                   isnan(j->about.near) ? NAN : (double)j->nearest[i],
                                   isnan(y) || !j->about.calibrated ? NAN : is_covered(j, i, y),
                                   (double)(scaffold & ((INT64_C(1) << 52) - 1))};
    for (int c = 0; c < COLUMNS; c++) j->value[c][i] = value[c];
    j->order[i] = (basin_ranked){isnan(error) ? -1 : error, i};
}

static basin_status predict_all(job *j, basin_error *error) {
    BASIN_TRY(BASIN_NEW(&j->output, j->rows * j->columns, "a report", error));
    BASIN_TRY(BASIN_NEW(&j->low, 2 * j->rows * j->columns, "a report", error));
    BASIN_TRY(BASIN_NEW(&j->nearest, j->rows, "a report", error));
    BASIN_TRY(BASIN_NEW(&j->nearest_at, j->rows, "a report", error));
    BASIN_TRY(BASIN_NEW(&j->order, j->rows, "a report", error));
    for (int c = 0; c < COLUMNS; c++)
        BASIN_TRY(BASIN_NEW(&j->value[c], j->rows, "a report", error));
    BASIN_TRY(basin_graphs_score(&j->measures, NULL, j->model, &j->data, error));
    basin_graphs_data data = j->data;
    data.low = j->low, data.high = j->low + j->rows * j->columns;
    data.nearest = j->nearest, data.nearest_at = j->nearest_at;
    BASIN_TRY(basin_graphs_predict(j->output, NULL, j->model, &data, error));
    for (int64_t i = 0; i < j->rows; i++) fill_row(j, i);
    qsort(j->order, (size_t)j->rows, sizeof *j->order, basin_higher_first);
    return BASIN_OK;
}

/* The address of a drawing. */
static void put_picture(basin_document *d, const basin_graphset *set, int64_t graph) {
    BASIN_AT_EXIT(basin_graph_drawing_free) basin_graph_drawing drawing = {0};
    basin_memory_file memory;
    basin_error error;
    FILE *file = basin_memory_file_open(&memory);
    if (!file) return;
    fputs("data:image/svg+xml;charset=utf-8,", file);
    if (!basin_graph_draw(&drawing, set, graph, &error)) basin_svg_molecule(file, &drawing.graph);
    BASIN_FREE_AT_EXIT char *text = basin_memory_file_close(&memory);
    for (char *at = text; at && *at; at++) /* colours: # would end the address */
        if (*at == '#') *at = '\1';
    basin_document_put(d, "%s", text ? text : "");
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

/* Of the largest errors: the molecule, and its nearest in training where that was given. */
static void put_drawings(basin_document *d, const job *j) {
    char text[NAME_TEXT];
    const char *names = j->about.remembered;
    basin_document_put(d, "'drawings':[");
    for (int64_t i = 0; i < j->rows && i < DRAWINGS && j->order[i].value >= 0; i++) {
        int64_t row = j->order[i].at, g = names ? 0 : j->training.graphs;
        basin_document_put(d, "{'row':%lld,'own':", (long long)row);
        put_picture(d, &j->set, j->list[row]);
        while (g < j->training.graphs &&
               strcmp(id_of(text, &j->training, g), names + j->nearest_at[row]) != 0)
            g++;
        if (g < j->training.graphs) basin_document_put(d, "'near':");
        if (g < j->training.graphs) put_picture(d, &j->training, g);
        basin_document_put(d, "}");
    }
    basin_document_put(d, "]");
}

static void put_document(basin_document *d, const job *j) {
    const basin_graphs_measures *m = &j->measures;
    char text[NAME_TEXT];
    basin_document_put(d, "'graphs':{'task':%s,'coverage':%g,'seen':%lld",
                       j->column < 0     ? "classes"
                       : j->about.binary ? "yes"
                                         : "values",
                       j->o->coverage, (long long)j->seen);
    basin_document_put(d, "'classes':%lld,'items':%lld,'auroc':%g,'auprc':%g,'accuracy':%g",
                       (long long)j->columns, (long long)m->items, m->auroc, m->auprc, m->accuracy);
    basin_document_put(d, "'rmse':%g,'mae':%g,'r2':%g,'covered_all':%g,'size':%g,'id':[",
                       m->deviation, m->loss, m->explained, m->coverage, m->size);
    for (int64_t i = 0; i < j->rows; i++)
        basin_document_put(d, "%s", id_of(text, &j->set, j->list[i]));
    basin_document_put(d, "],'class':[");
    for (int64_t c = 0; c < j->columns && j->about.class_value; c++)
        basin_document_put(d, "%lld", (long long)j->about.class_value[c]);
    basin_document_put(d, "],'near':[");
    for (int64_t i = 0; i < j->rows && j->about.remembered; i++)
        basin_document_put(d, "%s", j->about.remembered + j->nearest_at[i]);
    basin_document_put(d, "]");
    for (int c = 0; c < COLUMNS; c++) {
        basin_document_put(d, "%s:", column_name[c]);
        basin_document_numbers(d, j->value[c], j->rows);
    }
    if (basin_graph_is_molecules(&j->set)) put_drawings(d, j);
    basin_document_put(d, "}");
}

/* The graphs of the part, or those that the model has not seen. */
static basin_status choose_graphs(job *j, basin_error *error) {
    BASIN_FREE_AT_EXIT basin_graphs_memory *memory = NULL;
    int64_t kept = 0;
    BASIN_TRY(basin_graphs_part(&j->list, &j->rows, &j->set, "auto", error));
    BASIN_TRY(BASIN_NEW(&memory, j->rows, "a report", error));
    bool known = !basin_graphs_seen(memory, j->model, &j->set, j->list, j->rows, NULL);
    for (int64_t i = 0; i < j->rows && known; i++) j->seen += memory[i] != BASIN_GRAPHS_NEW;
    if (!j->o->unseen) return BASIN_OK;
    for (int64_t i = 0; i < j->rows && known; i++)
        if (memory[i] == BASIN_GRAPHS_NEW) j->list[kept++] = j->list[i];
    if (!kept)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: the model has seen all %lld graphs, or its file does not say which",
                          j->o->operand[1], (long long)j->rows);
    j->rows = kept, j->seen = 0;
    return BASIN_OK;
}

static basin_status open_report(job *j, basin_error *error) {
    basin_args *o = j->o;
    BASIN_TRY(basin_graphs_open(&j->model, o->operand[0], o->compute, error));
    j->about = basin_graphs_about(j->model);
    if (j->about.target == BASIN_NODE_CLASSES)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: a model of classes of nodes; needs one of graphs", o->operand[0]);
    const basin_settings *settings = j->about.settings;
    BASIN_TRY(basin_graph_read(&j->set, o, o->operand[1], j->about.names, settings, error));
    if (o->training_file)
        BASIN_TRY(basin_graph_read(&j->training, o, o->training_file, "", settings, error));
    BASIN_TRY(choose_graphs(j, error));
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
    snprintf(lead, sizeof lead, "%lld graphs of %.100s; %lld member%s", (long long)j->rows,
             j->set.name, (long long)j->about.members, j->about.members == 1 ? "" : "s");
    BASIN_TRY(basin_document_begin(&d, j->o->output, "graph", j->o->operand[0], lead, error));
    put_document(&d, j);
    return basin_document_end(&d, error);
}

static void put_report(basin_record *r, const void *context) {
    const job *j = context;
    basin_record_text(r, "report", j->o->output);
    basin_record_measures(r, &j->measures, j->about.target, true);
}

static void close_report(void *context) {
    job *j = context;
    BASIN_FREE(j->output, j->low, j->nearest, j->nearest_at, j->order, j->list);
    for (int c = 0; c < COLUMNS; c++) free(j->value[c]);
    basin_graphset_free(&j->set);
    basin_graphset_free(&j->training);
    basin_graphs_close(j->model);
}

const basin_command basin_command_graph_report = {
    "graph report", report_table,
    BASIN_USES(job, .work = report, .print = put_report, .close = close_report)};
