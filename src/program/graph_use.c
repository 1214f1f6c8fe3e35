/* basin graph predict, eval and explain. */
#include "program/graph.h"
#include "tasks/graphs/set/molecule.h"

#define OPTIONS basin_graph_options

typedef basin_graph_job job;
typedef basin_graph_added part;

/* The graphs that --part names, of the set's split or of one that the options make. */
static basin_status choose_graphs(job *j, basin_error *error) {
    static const char *const name[] = {"train", "validation", "test", "all"};
    const char *asked = j->o->reading.part ? j->o->reading.part : "all";
    const int64_t *split = j->set.split;
    BASIN_AT_EXIT(basin_folds_free) basin_folds folds = {0};
    const basin_fold *f = NULL;
    int64_t first = 0;
    int which = 0;
    if (strcmp(asked, "all") != 0)
        BASIN_TRY(basin_graph_fold(&f, &folds, &j->o->reading, &j->set, 0.1, 0, error));
    if (!strcmp(asked, "auto")) asked = f || split[2] ? "test" : "all";
    for (; strcmp(asked, name[which]) != 0; which++) first += split[which];
    j->part = name[which];
    j->count = which == 3 ? j->set.graphs : f ? f->count[which] : split[which];
    if (!j->count && !f && which < 3)
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "%s: no graphs for the part '%s'; expected a set with splits, or the part all",
            j->set.name, asked);
    BASIN_TRY(BASIN_NEW_RAW(&j->list, j->count + 1, "a list of graphs", error));
    for (int64_t i = 0; i < j->count; i++)
        j->list[i] = which == 3 ? i : f ? f->item[which][i] : first + i;
    return BASIN_OK;
}

basin_status basin_graph_open_all(job *j, bool labels, basin_error *error) {
    const basin_graph_options *o = j->o;
    const char *data = o->operand[1];
    BASIN_TRY(basin_graphs_open(&j->model, o->operand[0], o->compute, error));
    j->info = basin_graphs_get_info(j->model);
    j->columns = j->info->columns;
    j->o->reading.values = j->info->target == BASIN_GRAPHS_VALUES;
    BASIN_TRY(basin_graph_read(&j->set, &o->args, &o->reading, data,
                               labels ? j->info->table_target : "", j->info->settings, error));
    BASIN_TRY(choose_graphs(j, error));
    j->data =
        (basin_graphs_data){.set = &j->set, .path = data, .graph = j->list, .graphs = j->count};
    basin_note_gamma(&o->args, o->operand[0]);
    return BASIN_OK;
}

/* Notes on labels that are not in the training data, and on descents that did not converge. */
static void note_graphs(job *j) {
    char text[400];
    static const char *const of[2][2] = {
        {"nodes with a label", "edges with a label"},
        {"atoms with an element, charge or hydrogen count", "bonds, both ways, of a kind"}};
    int64_t unknown[2], cut = 0;
    bool known = !basin_graphs_unknown_labels(unknown, j->model, &j->data, NULL);
    for (int i = 0; i < 2 && known; i++)
        if (unknown[i])
            basin_note(j->o, "%lld %s that is not in the training data; treated as unlabelled",
                       (long long)unknown[i], of[j->set.line != NULL][i]);
    double max = 0;
    const int64_t *start = j->set.node_start;
    bool cuts = !basin_settings_get_number(&max, j->info->settings, "max_nodes", NULL) && max > 0;
    for (int64_t i = 0; i < j->count && cuts; i++)
        cut += (double)(start[j->list[i] + 1] - start[j->list[i]]) > max;
    if (cut)
        basin_note(j->o, "%lld graphs are cut to their first %.0f nodes (max_nodes of the model)",
                   (long long)cut, max);
    basin_convergence convergence = {.size = sizeof convergence};
    basin_graphs_take_convergence(&convergence, j->model);
    if (basin_convergence_describe(text, sizeof text, &convergence)) basin_note(j->o, "%s", text);
}

void basin_graph_close_all(void *context) {
    job *j = context;
    BASIN_FREE(j->cells, j->numbers, j->evaluation.value, j->node, j->edge, j->order, j->list);
    basin_graphs_explanation_free(&j->e);
    basin_graphset_free(&j->set);
    basin_graphs_close(j->model);
}

/* The units of several values that are pooled; else "". */
static const char *units_of(const basin_graphs_info *info) {
    char text[8];
    if (info->target != BASIN_GRAPHS_VALUES || info->columns < 2 || info->binary ||
        basin_settings_get(text, sizeof text, info->settings, "standardise", NULL))
        return "";
    return strcmp(text, "on") ? "all values pooled, each in its units"
                              : "each value in units of its deviation in training";
}

/* ---- predict ---- */

static const basin_option predict_table[] = {
    BASIN_TEXT(output, 'o', "output", "FILE", .writes = true),
    BASIN_FLAG(sort, "sort"),
    BASIN_TEXT(about, 0, "about", "NAME", .needs = "sort=on"),
    BASIN_INTEGER(top, "top", "N", 0, 1e15, .needs = "sort=on"),
    BASIN_GRAPH_OPTION_COVERAGE,
    BASIN_GRAPH_OPTIONS_MOLECULES,
    BASIN_GRAPH_OPTIONS_USE,
    BASIN_OPTIONS_LAST,
};

void basin_graph_name_column(char key[100], const char *const *column, const int64_t *class_value,
                             int64_t c) {
    const char *before = class_value ? "p_" : "";
    if (column)
        snprintf(key, 100, "%s%s", before, column[c]);
    else
        snprintf(key, 100, class_value ? "p_%lld" : "value%lld",
                 class_value ? (long long)class_value[c] : (long long)c + 1);
}

static void name_column(char key[100], const job *j, int64_t c) {
    basin_graph_name_column(key, j->info->column, j->info->class_value, c);
}

/* A class: its word, or the number that the training data give it. */
static void put_class(basin_record *r, const job *j, int64_t value) {
    int64_t c = 0;
    while (j->info->class_value[c] != value) c++;
    if (j->info->column)
        basin_record_text(r, "class", j->info->column[c]);
    else
        basin_record_integer(r, "class", value);
}

/* Where a molecule stands in its table, and its name. */
static void put_place(basin_record *r, const basin_graphset *set, int64_t graph) {
    if (set->id) basin_record_text(r, "id", set->id + set->id_start[graph]);
    if (set->line) basin_record_integer(r, "line", set->line[graph]);
}

/* A number of column c, under the column's name and what follows it. */
static void put_number(basin_record *r, const job *j, int64_t c, const char *after,
                       const char *format, double value) {
    char key[100], name[120];
    name_column(key, j, c);
    snprintf(name, sizeof name, "%s%s", key, after);
    basin_record_number(r, name, format, value);
}

/* Conformal intervals, or sets of classes such as "active|inactive". */
static void put_bounds(basin_record *r, const job *j, int64_t row) {
    const float *low = j->result.low + row * j->columns, *high = j->result.high + row * j->columns;
    char key[100], name[120], set[4000] = "";
    for (int64_t c = 0; c < j->columns; c++) {
        size_t used = strlen(set);
        name_column(key, j, c);
        if (j->info->class_value && low[c] > 0)
            snprintf(set + used, sizeof set - used, "%s%s", used ? "|" : "", key + 2);
        if (j->info->binary) {
            snprintf(name, sizeof name, "%s_set", key);
            basin_record_text(r, name, low[c] == 0 ? "1" : high[c] > 0 ? "0|1" : "0");
        } else if (!j->info->class_value) {
            put_number(r, j, c, "_low", "%g", (double)low[c]);
            put_number(r, j, c, "_high", "%g", (double)high[c]);
        }
    }
    if (j->info->class_value) basin_record_text(r, "set", set);
}

static void put_outputs(basin_record *r, const job *j, int64_t row) {
    const basin_graphs_predict_result *p = &j->result;
    const char *const *name = j->info->remembered_name;
    basin_record_data_keys(r, true);
    if (j->info->class_value) put_class(r, j, p->class_value[row]);
    for (int64_t c = 0; c < j->columns; c++)
        put_number(r, j, c, "", "%g", (double)p->output[row * j->columns + c]);
    if (p->nearest) basin_record_number(r, "nearest", "%.3f", (double)p->nearest[row]);
    if (p->nearest && name)
        basin_record_text(r, "nearest_id", p->nearest[row] > 0 ? name[p->nearest_at[row]] : "");
    for (int64_t c = 0; c < j->columns && j->info->members > 1; c++)
        if (!j->info->class_value || j->columns != 2 || c) /* the same of both */
            put_number(r, j, c, "_spread", "%.3g", (double)p->spread[row * j->columns + c]);
    if (p->low) put_bounds(r, j, row);
    basin_graphs_data own = {.set = &j->set, .graph = &j->graph_of[row], .graphs = 1};
    int64_t unknown[2];
    if (j->set.line && !basin_graphs_unknown_labels(unknown, j->model, &own, NULL))
        basin_record_integer(r, "unknown_atoms", unknown[0]);
    basin_record_data_keys(r, false);
}

static void put_predictions(basin_record *r, const void *context) {
    const job *j = context;
    bool nodes = j->info->target == BASIN_GRAPHS_NODE_CLASSES;
    basin_record_fields(r, "model=%s;data=%s;part=%s", j->o->operand[0], j->set.name, j->part);
    basin_record_table(r, nodes ? "nodes" : "graphs", NULL);
    for (int64_t i = 0; i < j->shown; i++) {
        int64_t row = j->order[i].at;
        basin_record_row(r);
        put_place(r, &j->set, j->graph_of[row]);
        basin_record_integer(r, "graph", j->graph_of[row]);
        if (nodes) basin_record_integer(r, "node", j->node_of[row]);
        put_outputs(r, j, row);
    }
    basin_record_end(r);
}

/* The graph of each row, and the node in it. */
static void number_rows(job *j) {
    bool nodes = j->info->target == BASIN_GRAPHS_NODE_CLASSES;
    const int64_t *start = j->set.node_start;
    for (int64_t i = 0, row = 0; i < j->count; i++) {
        int64_t g = j->list[i], rows = nodes ? start[g + 1] - start[g] : 1;
        for (int64_t n = 0; n < rows; n++, row++) j->graph_of[row] = g, j->node_of[row] = n;
    }
}

/* The arrays of a result, with those that the model has. */
static basin_status reserve(job *j, basin_error *error) {
    int64_t rows = j->rows, cells = rows * j->columns;
    BASIN_TRY(BASIN_NEW(&j->cells, 4 * cells + rows, "outputs", error));
    BASIN_TRY(BASIN_NEW(&j->numbers, 4 * rows, "outputs", error));
    BASIN_TRY(BASIN_NEW_RAW(&j->order, rows + 1, "outputs", error));
    j->graph_of = j->numbers, j->node_of = j->numbers + rows;
    j->result = (basin_graphs_predict_result){
        .output = j->cells, .spread = j->cells + cells, .class_value = j->numbers + 2 * rows};
    if (j->info->calibrated)
        j->result.low = j->cells + 2 * cells, j->result.high = j->cells + 3 * cells;
    if (j->info->remembered)
        j->result.nearest = j->cells + 4 * cells, j->result.nearest_at = j->numbers + 3 * rows;
    return BASIN_OK;
}

basin_status basin_graph_predict(job *j, basin_error *error) {
    const basin_graphs_info *info = j->info;
    basin_graphs_predict_options options = {.coverage = j->o->coverage};
    int64_t by; /* found before predicting, so that a wrong name fails early */
    BASIN_TRY(basin_graph_find_column(&by, j, error));
    j->rows = basin_graphs_rows(j->model, &j->data);
    BASIN_TRY(reserve(j, error));
    number_rows(j);
    BASIN_TRY(basin_graphs_predict(&j->result, j->model, &j->data, &options, error));
    note_graphs(j);
    if (by < 0) {
        char key[100];
        by = info->class_value ? j->columns - 1 : 0;
        name_column(key, j, by);
        bool words = info->class_value && info->column;
        if (j->o->sort && (words || j->columns > 2 - !info->class_value))
            basin_note(j->o, "sorted by %s, highest first; --about names another column", key);
    }
    for (int64_t i = 0; i < j->rows; i++)
        j->order[i] = (basin_ranked){(double)j->result.output[i * j->columns + by], i};
    if (j->o->sort) qsort(j->order, (size_t)j->rows, sizeof *j->order, basin_higher_first);
    j->shown = j->o->sort && j->o->top ? basin_int_min(j->o->top, j->rows) : j->rows;
    return BASIN_OK;
}

static basin_status predict(void *context, basin_error *error) {
    job *j = context;
    BASIN_TRY(basin_graph_open_all(j, false, error));
    return basin_graph_predict(j, error);
}

const basin_command basin_command_graph_predict = {
    BASIN_COMMAND("graph predict", predict_table),
    BASIN_USES(job, .work = predict, .print = put_predictions, .close = basin_graph_close_all,
               .rows = true)};

/* ---- eval: measures on a set of graphs, and whether they took part in training ---- */

static const basin_option eval_table[] = {
    BASIN_FLAG(unseen, "unseen"), BASIN_GRAPH_OPTION_COVERAGE, BASIN_GRAPH_OPTIONS_MOLECULES,
    BASIN_GRAPH_OPTION_TARGET,    BASIN_GRAPH_OPTIONS_USE,     BASIN_OPTIONS_LAST,
};

basin_status basin_graph_look_back(job *j, basin_error *error) {
    BASIN_SCRATCH(basin_graphs_memory, memory, j->count, "a list of graphs", error);
    basin_status status = basin_graphs_seen(memory, j->model, &j->set, j->list, j->count, error);
    int64_t kept = 0;
    j->before = j->count;
    j->known = !status;
    for (int64_t i = 0; i < j->before && j->known; i++) {
        j->seen[memory[i]]++;
        if (memory[i] == BASIN_GRAPHS_NEW || !j->o->unseen) j->list[kept++] = j->list[i];
    }
    if (j->known) j->count = j->data.graphs = kept;
    if (status && (j->o->unseen || status != BASIN_UNSUPPORTED)) return status;
    if (j->o->unseen && !j->count)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: all %lld graphs took part in training",
                          j->set.name, (long long)j->before);
    return BASIN_OK;
}

#define F(member, ...) BASIN_FIELD(basin_graphs_value, member, __VA_ARGS__)
static const basin_field value_fields[] = {F(known, "known"),
                                           F(mean, "|mean", "%.4g"),
                                           F(spread, "|deviation", "%.4g"),
                                           F(error, "mae", "%.4g"),
                                           F(deviation, "rmse", "%.4g"),
                                           F(r_squared, "r2", "%.4g"),
                                           {0}};
#undef F

static void put_values(basin_record *r, const job *j) {
    basin_record_table(r, "values", NULL);
    for (int64_t c = 0; c < j->columns; c++) {
        const basin_graphs_value *v = &j->evaluation.value[c];
        char key[100];
        name_column(key, j, c);
        basin_record_row(r);
        basin_record_text(r, "name|value", key);
        basin_record_struct(r, value_fields, v);
        if (j->info->binary) basin_record_fields(r, "auroc=%.4g;auprc=%.4g", v->auroc, v->auprc);
    }
    basin_record_end(r);
}

void basin_graph_put_seen(basin_record *r, const job *j) {
    int64_t trained = j->seen[BASIN_GRAPHS_TRAINED_ON];
    int64_t validated = j->seen[BASIN_GRAPHS_VALIDATED_ON];
    if (!j->known)
        basin_record_note(r, "the model file does not record its training graphs: they may be "
                             "among these");
    else
        basin_record_fields(r, "trained_on=%lld;validated_on=%lld", (long long)trained,
                            (long long)validated);
    if (trained + validated)
        basin_record_note(r, j->o->unseen ? "graphs that took part in training were left out"
                                          : "this is not a score of unseen graphs (--unseen)");
}

static void put_evaluation(basin_record *r, const void *context) {
    const job *j = context;
    const basin_graphs_evaluate_result *e = &j->evaluation;
    basin_record_fields(r, "model=%s;data=%s;task=%s;part=%s", j->o->operand[0], j->set.name,
                        basin_graphs_target_name(j->info->target), j->part);
    basin_record_measures(r, NULL, &e->measures, j->info->target, true);
    if (*units_of(j->info)) basin_record_note(r, "(%s)", units_of(j->info));
    basin_record_parts(r, e, j->info->target);
    basin_graph_put_seen(r, j);
    if (e->value || e->measures.missing)
        basin_record_integer(r, "missing|without known truth", e->measures.missing);
    if (e->value) put_values(r, j);
}

basin_status basin_graph_evaluate(job *j, basin_error *error) {
    basin_graphs_evaluate_options options = {.coverage = j->o->coverage};
    if (j->info->target == BASIN_GRAPHS_VALUES)
        BASIN_TRY(BASIN_NEW(&j->evaluation.value, j->columns, "values", error));
    return basin_graphs_evaluate(&j->evaluation, j->model, &j->data, &options, error);
}

static basin_status evaluate(void *context, basin_error *error) {
    job *j = context;
    BASIN_TRY(basin_graph_open_all(j, true, error));
    BASIN_TRY(basin_graph_look_back(j, error));
    BASIN_TRY(basin_graph_evaluate(j, error));
    note_graphs(j);
    return BASIN_OK;
}

const basin_command basin_command_graph_eval = {
    BASIN_COMMAND("graph eval", eval_table),
    BASIN_USES(job, .work = evaluate, .print = put_evaluation, .close = basin_graph_close_all)};

/* ---- explain: which nodes and edges an output comes from ---- */

static const basin_option explain_table[] = {
    BASIN_INTEGER(graph, "graph", "K", 0, 9007199254740992.0),
    BASIN_TEXT(molecule, 0, "molecule", "ID", .needs = "graph=0"),
    BASIN_TEXT(about, 0, "about", "NAME"),
    BASIN_TEXT(page, 0, "page", "FILE", .writes = true),
    BASIN_GRAPH_OPTIONS_MOLECULES,
    BASIN_INTEGER(nodes, "nodes", "N", 0, 1000000, .initial = 10),
    BASIN_INTEGER(edges, "edges", "N", 0, 1000000, .initial = 10),
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTIONS_LAST,
};

static int compare_ends(const void *a, const void *b) {
    const part *x = a, *y = b;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

static int compare(const void *a, const void *b) {
    double p = fabs(((const part *)a)->added), q = fabs(((const part *)b)->added);
    return p < q ? 1 : p > q ? -1 : compare_ends(a, b);
}

/* Edges of both directions side by side become one. */
static int64_t merge(part *edge, int64_t count) {
    int64_t kept = 0;
    qsort(edge, (size_t)count, sizeof *edge, compare_ends);
    for (int64_t i = 0; i < count; i++)
        if (kept && !compare_ends(&edge[kept - 1], &edge[i]))
            edge[kept - 1].added += edge[i].added;
        else
            edge[kept++] = edge[i];
    return kept;
}

static basin_status sort_parts(job *j, basin_error *error) {
    const basin_graphset *set = &j->set;
    const basin_graphs_explanation *e = &j->e;
    const int32_t *end = set->edge + 2 * set->edge_start[e->graph];
    BASIN_TRY(BASIN_NEW(&j->node, e->nodes, "an explanation", error));
    BASIN_TRY(BASIN_NEW(&j->edge, e->edges, "an explanation", error));
    for (int64_t i = 0; i < e->nodes; i++) j->node[i] = (part){i, -1, e->node[i]};
    for (int64_t i = 0; i < e->edges; i++, end += 2)
        j->edge[i] = (part){end[0] < end[1] ? end[0] : end[1], end[0] < end[1] ? end[1] : end[0],
                            e->edge[i]};
    j->edges = merge(j->edge, e->edges);
    qsort(j->node, (size_t)e->nodes, sizeof *j->node, compare);
    qsort(j->edge, (size_t)j->edges, sizeof *j->edge, compare);
    return BASIN_OK;
}

/* "class active", "logS", "value 2". */
static const char *subject(char text[120], const job *j) {
    const basin_graphs_info *i = j->info;
    int64_t c = j->e.column;
    const char *before = i->class_value ? "class " : i->column ? "" : "value ";
    if (i->column)
        snprintf(text, 120, "%s%s", before, i->column[c]);
    else
        snprintf(text, 120, "%s%lld", before,
                 (long long)(i->class_value ? i->class_value[c] : c + 1));
    return text;
}

static const int32_t *labels_of(const job *j) {
    const basin_graphset *set = &j->set;
    if (set->node_labels != 1) return NULL;
    return set->node_label + set->node_start[j->e.graph];
}

static void headline(char *text, size_t size, const job *j) {
    char about[120];
    const basin_graphs_explanation *e = &j->e;
    snprintf(text, size,
             j->info->class_value ? "%s, graph %lld: %s with probability %.4f"
                                  : "%s, graph %lld: %s is %.5g",
             j->set.name, (long long)e->graph, subject(about, j), e->predicted);
}

/* "C", "NH3+", "O-". */
static const char *name_atom(char text[40], const job *j, int64_t node) {
    const basin_graphset *s = &j->set;
    const int32_t *a = s->node_label + (s->node_start[j->e.graph] + node) * s->node_labels;
    char hydrogens[16] = "", charge[16] = "";
    if (a[2]) snprintf(hydrogens, sizeof hydrogens, a[2] > 1 ? "H%d" : "H", a[2]);
    if (a[1])
        snprintf(charge, sizeof charge, abs(a[1]) > 1 ? "%c%d" : "%c", a[1] > 0 ? '+' : '-',
                 abs(a[1]));
    snprintf(text, 40, "%s%s%s", basin_element(a[0]), hydrogens, charge);
    return text;
}

static void put_nodes(basin_record *r, const job *j) {
    const basin_graphs_explanation *e = &j->e;
    const int32_t *label = labels_of(j);
    bool molecule = basin_graph_is_molecules(&j->set);
    char title[100], atom[40];
    snprintf(title, sizeof title, "nodes that add most (of %lld):", (long long)e->nodes);
    basin_record_table(r, "nodes", title);
    for (int64_t i = 0; i < e->nodes && i < j->o->nodes; i++) {
        int64_t n = j->node[i].a;
        basin_record_row(r);
        basin_record_integer(r, "node", n);
        if (label) basin_record_integer(r, "|label", label[n]);
        if (molecule) basin_record_text(r, "element", name_atom(atom, j, n));
        basin_record_number(r, "adds", "%+.4g", e->node[n]);
    }
    basin_record_end(r);
}

static void put_edges(basin_record *r, const job *j) {
    char title[100];
    snprintf(title, sizeof title,
             "edges that add most (of %lld, both ways together):", (long long)j->edges);
    basin_record_table(r, "edges", title);
    for (int64_t i = 0; i < j->edges && i < j->o->edges; i++) {
        basin_record_row(r);
        basin_record_fields(r, "a=%lld;b=%lld", (long long)j->edge[i].a, (long long)j->edge[i].b);
        basin_record_number(r, "adds", "%+.4g", j->edge[i].added);
    }
    basin_record_end(r);
}

static void put_explanation(basin_record *r, const void *context) {
    const job *j = context;
    const basin_graphs_explanation *e = &j->e;
    const int64_t *class_value = j->info->class_value;
    char text[200];
    headline(text, sizeof text, j);
    basin_record_note(r, "%s", text);
    basin_record_fields(r, "model=%s;data=%s;graph=%lld", j->o->operand[0], j->set.name,
                        (long long)e->graph);
    put_place(r, &j->set, e->graph);
    if (class_value)
        put_class(r, j, class_value[e->column]);
    else
        basin_record_integer(r, "value", e->column + 1);
    basin_record_number(r, ".predicted", "%.4g", e->predicted);
    basin_record_number(r, class_value || j->info->binary ? "output|log-odds" : "output", "%.4g",
                        e->output);
    if (!isnan(e->blank))
        basin_record_fields(r, "blank|mean of the training molecules=%.4g", e->blank);
    put_nodes(r, j);
    if (isnan(e->blank)) put_edges(r, j);
    basin_record_note(
        r, isnan(e->blank) ? "\"adds\": the output's change where the graph lacks the node, with "
                             "its edges, or the edge"
                           : "\"adds\": the prediction's change where the atom, with what hangs on "
                             "it, is replaced by hydrogen, or a hetero atom of the frame by "
                             "carbon; carbons of the frame share the rest");
}

/* The page that draws the graph, coloured by contribution. */
static basin_status write_page(void *context, basin_error *error) {
    const job *j = context;
    const basin_graphs_explanation *e = &j->e;
    char title[200], about[120], lead[300];
    basin_document d;
    if (!j->o->page) return BASIN_OK;
    headline(title, sizeof title, j);
    snprintf(lead, sizeof lead, "Colours: what each node and each edge adds to %s",
             subject(about, j));
    BASIN_TRY(basin_document_begin(&d, j->o->page, "graph", title, lead, error));
    basin_document_put(&d, "'explanation':{'output':%g,'blank':%g,'drawing':", e->output, e->blank);
    basin_graph_put_drawing(&d, &j->set, e->graph, e->node, e->edge);
    basin_document_put(&d, "}");
    return basin_document_end(&d, error);
}

basin_status basin_graph_find_column(int64_t *column, const job *j, basin_error *error) {
    const basin_graphs_info *info = j->info;
    char *end;
    *column = -1;
    if (!j->o->about) return BASIN_OK;
    long long asked = strtoll(j->o->about, &end, 10);
    bool number = end > j->o->about && !*end;
    for (int64_t c = 0; c < j->columns && *column < 0; c++) {
        if (number && asked == (info->class_value ? info->class_value[c] : c + 1)) *column = c;
        if (info->column && !strcmp(info->column[c], j->o->about)) *column = c;
    }
    if (*column >= 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "--about %.40s is not %s", j->o->about,
                      info->class_value ? "a class of the training data (word or number)"
                                        : "a value (name or 1-based position)");
}

/* The graph that --molecule names. */
static basin_status find_molecule(job *j, basin_error *error) {
    const basin_graphset *s = &j->set;
    int64_t found = -1;
    if (!j->o->molecule) return BASIN_OK;
    for (int64_t g = 0; g < s->graphs && s->id; g++) {
        if (strcmp(s->id + s->id_start[g], j->o->molecule) != 0) continue;
        if (found >= 0)
            return basin_fail(error, BASIN_BAD_VALUE, "%s: graphs %lld and %lld are called '%.60s'",
                              s->name, (long long)found, (long long)g, j->o->molecule);
        found = g;
    }
    if (found < 0)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no molecule is called '%.60s'%s", s->name,
                          j->o->molecule, s->id ? "" : "; it has no ids (--id names their column)");
    j->o->graph = found;
    return BASIN_OK;
}

static basin_status explain(void *context, basin_error *error) {
    job *j = context;
    int64_t column;
    BASIN_TRY(basin_graph_open_all(j, false, error));
    BASIN_TRY(find_molecule(j, error));
    if (j->o->graph >= j->set.graphs)
        return basin_fail(error, BASIN_BAD_VALUE, "--graph %lld; %s has graphs 0 to %lld",
                          (long long)j->o->graph, j->set.name, (long long)j->set.graphs - 1);
    BASIN_TRY(basin_graph_find_column(&column, j, error));
    BASIN_TRY(basin_graphs_explain(&j->e, j->model, &j->set, j->o->graph, column, error));
    return sort_parts(j, error);
}

const basin_command basin_command_graph_explain = {
    BASIN_COMMAND("graph explain", explain_table),
    BASIN_USES(job, .work = explain, .print = put_explanation, .finish = write_page,
               .close = basin_graph_close_all)};
