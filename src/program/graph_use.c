/* basin graph predict, eval and explain. */
#include "base/bundle.h"
#include "program/graph.h"
#include "tasks/graphs/set/molecule.h"

#define OPTIONS basin_graph_options

typedef basin_graph_job job;
typedef basin_graph_added part;

/* The graphs that --part names, of the set's own split or of one that the options make. */
static basin_status choose_graphs(job *j, basin_error *error) {
    static const char *const name[] = {"train", "validation", "test"};
    const basin_graph_options *o = j->o;
    const char *asked = o->reading.part ? o->reading.part : "all";
    bool made = o->reading.index || (o->reading.split && strcmp(o->reading.split, "random") != 0);
    int which = 2;
    if (!made || !strcmp(asked, "all"))
        return basin_graphs_part(&j->list, &j->count, &j->set, asked, error);
    for (int i = 0; i < 3; i++)
        if (!strcmp(asked, name[i])) which = i;
    BASIN_AT_EXIT(basin_folds_free) basin_folds folds = {0};
    BASIN_TRY(basin_graph_divide(&folds, &o->reading, &j->set, 1, 0.1, 0, error));
    if (o->reading.fold > folds.folds)
        return basin_usage(error, "--fold %lld of %lld", (long long)o->reading.fold,
                           (long long)folds.folds);
    const basin_fold *f = &folds.fold[o->reading.fold - 1];
    BASIN_TRY(BASIN_NEW_RAW(&j->list, f->count[which] + 1, "a list of graphs", error));
    memcpy(j->list, f->item[which], (size_t)f->count[which] * sizeof *j->list);
    j->count = f->count[which];
    j->o->reading.part = name[which];
    return BASIN_OK;
}

basin_status basin_graph_open_all(job *j, bool labels, basin_error *error) {
    const basin_graph_options *o = j->o;
    const char *data = o->operand[1];
    BASIN_TRY(basin_graphs_open(&j->model, o->operand[0], o->compute, error));
    j->about = basin_graphs_about(j->model);
    j->o->reading.values = j->about.target == BASIN_GRAPHS_VALUES;
    BASIN_TRY(basin_graph_read(&j->set, &o->args, &o->reading, data, labels ? j->about.names : "",
                               j->about.settings, error));
    BASIN_TRY(choose_graphs(j, error));
    j->data = (basin_graphs_data){.set = &j->set, .path = data, .coverage = o->coverage};
    j->data.graph = j->list, j->data.graphs = j->count;
    basin_note_gamma(&o->args, o->operand[0]);
    return BASIN_OK;
}

/* Notes on labels that are not in the training data, and on descents that did not converge. */
static void note_graphs(job *j) {
    static const char *const of[2][2] = {
        {"nodes with a label", "edges with a label"},
        {"atoms with an element, charge or hydrogen count", "bonds, both ways, of a kind"}};
    char text[400];
    int64_t unknown[2];
    bool known = !basin_graphs_unknown_labels(unknown, j->model, &j->data, NULL);
    for (int i = 0; i < 2 && known; i++)
        if (unknown[i])
            basin_note(j->o, "%lld %s that is not in the training data; treated as unlabelled",
                       (long long)unknown[i], of[j->set.line != NULL][i]);
    double most = 0;
    const int64_t *start = j->set.node_start;
    int64_t cut = 0;
    bool cuts = !basin_settings_get_number(&most, j->about.settings, "max_nodes", NULL) && most > 0;
    for (int64_t i = 0; i < j->count && cuts; i++)
        cut += (double)(start[j->list[i] + 1] - start[j->list[i]]) > most;
    if (cut)
        basin_note(j->o, "%lld graphs are cut to their first %.0f nodes (max_nodes of the model)",
                   (long long)cut, most);
    basin_convergence convergence = basin_graphs_take_convergence(j->model);
    if (basin_convergence_describe(text, sizeof text, &convergence)) basin_note(j->o, "%s", text);
}

void basin_graph_close_all(void *context) {
    job *j = context;
    BASIN_FREE(j->output, j->spread, j->nearest, j->nearest_at, j->low, j->class_value, j->value,
               j->node, j->edge, j->order);
    basin_graphs_explanation_free(&j->e);
    free(j->list);
    basin_graphset_free(&j->set);
    basin_graphs_close(j->model);
}

/* The units of several values that are pooled; else "". */
static const char *units_of(const basin_graphs_info *about) {
    char text[8];
    if (about->target != BASIN_GRAPHS_VALUES || about->columns < 2 || about->binary ||
        basin_settings_get(text, sizeof text, about->settings, "standardise", NULL))
        return "";
    return strcmp(text, "on") ? "all values pooled, each in its units"
                              : "each value in units of its deviation in training";
}

/* ---- predict ---- */

static const basin_option predict_table[] = {
    BASIN_TEXT(output, 'o', "output", "FILE", .writes = true),
    BASIN_TEXT(embeddings, 0, "embeddings", "FILE", .writes = true),
    BASIN_FLAG(sort, "sort"),
    BASIN_TEXT(about, 0, "about", "NAME", .needs = "sort=on"),
    BASIN_INTEGER(top, "top", "N", 0, 1e15, .needs = "sort=on"),
    BASIN_GRAPH_OPTION_COVERAGE,
    BASIN_GRAPH_OPTIONS_MOLECULES,
    BASIN_GRAPH_OPTIONS_USE,
    BASIN_OPTION_QUIET,
    BASIN_OPTIONS_END,
};

void basin_graph_name_column(char key[100], const char *names, const int64_t *class_value,
                             int64_t c) {
    const char *name = class_value ? NULL : names, *word = names;
    for (int64_t i = 0; class_value && word && i <= class_value[c]; i++)
        word = (word = strstr(word, "\n\t")) ? word + 2 : NULL;
    for (int64_t i = 0; name && i < c; i++)
        name = strchr(name, '\n') ? strchr(name, '\n') + 1 : NULL;
    if (name)
        snprintf(key, 100, "%.*s", (int)strcspn(name, "\n"), name);
    else if (class_value && word)
        snprintf(key, 100, "p_%.*s", (int)strcspn(word, "\n"), word);
    else
        snprintf(key, 100, class_value ? "p_%lld" : "value%lld",
                 class_value ? (long long)class_value[c] : (long long)c + 1);
}

static void name_column(char key[100], const job *j, int64_t c) {
    basin_graph_name_column(key, j->about.names, j->about.class_value, c);
}

/* A class: its word, or the number that the training data give it. */
static void put_class(basin_record *r, const job *j, int64_t value) {
    char key[100];
    int64_t c = 0;
    while (j->about.class_value[c] != value) c++;
    name_column(key, j, c);
    if (j->about.names && strstr(j->about.names, "\n\t"))
        basin_record_text(r, "class", key + 2);
    else
        basin_record_integer(r, "class", value);
}

/* Where a molecule stands in its table, and its name. */
static void put_place(basin_record *r, const basin_graphset *set, int64_t graph) {
    if (set->id) basin_record_text(r, "id", set->id + set->id_start[graph]);
    if (set->line) basin_record_integer(r, "line", set->line[graph]);
}

/* Conformal intervals, or sets of classes such as "active|inactive". */
static void put_bounds(basin_record *r, const job *j, int64_t row) {
    const float *low = j->low + row * j->columns, *high = j->high + row * j->columns;
    char key[100], name[120], set[4000] = "";
    for (int64_t c = 0; c < j->columns; c++) {
        name_column(key, j, c);
        if (j->about.class_value) {
            size_t used = strlen(set), skip = strncmp(key, "p_", 2) ? 0 : 2;
            if (low[c] > 0)
                snprintf(set + used, sizeof set - used, "%s%s", used ? "|" : "", key + skip);
        } else if (j->about.binary) {
            snprintf(name, sizeof name, "%s_set", key);
            basin_record_text(r, name, low[c] == 0 ? "1" : high[c] > 0 ? "0|1" : "0");
        } else {
            snprintf(name, sizeof name, "%s_low", key);
            basin_record_number(r, name, "%g", (double)low[c]);
            snprintf(name, sizeof name, "%s_high", key);
            basin_record_number(r, name, "%g", (double)high[c]);
        }
    }
    if (j->about.class_value) basin_record_text(r, "set", set);
}

static void put_outputs(basin_record *r, const job *j, int64_t row) {
    char key[100];
    if (j->about.class_value) put_class(r, j, j->class_value[row]);
    for (int64_t c = 0; c < j->columns; c++) {
        name_column(key, j, c);
        basin_record_number(r, key, "%g", (double)j->output[row * j->columns + c]);
    }
    if (j->nearest) basin_record_number(r, "nearest", "%.3f", (double)j->nearest[row]);
    if (j->nearest && j->about.remembered)
        basin_record_text(r, "nearest_id",
                          j->nearest[row] > 0 ? j->about.remembered + j->nearest_at[row] : "");
    for (int64_t c = 0; c < j->columns && j->about.members > 1; c++) {
        char name[120];
        if (j->about.class_value && j->columns == 2 && !c) continue; /* the same of both */
        name_column(key, j, c);
        snprintf(name, sizeof name, "%s_spread", key);
        basin_record_number(r, name, "%.3g", (double)j->spread[row * j->columns + c]);
    }
    if (j->low) put_bounds(r, j, row);
    basin_graphs_data own = j->data;
    int64_t unknown[2];
    own.graph = &j->graph_of[row], own.graphs = 1;
    if (j->set.line && !basin_graphs_unknown_labels(unknown, j->model, &own, NULL))
        basin_record_integer(r, "unknown_atoms", unknown[0]);
}

static void put_predictions(basin_record *r, const void *context) {
    const job *j = context;
    basin_record_table(r, "graphs", NULL);
    for (int64_t i = 0; i < j->shown; i++) {
        int64_t row = j->order[i].at;
        basin_record_row(r);
        put_place(r, &j->set, j->graph_of[row]);
        basin_record_integer(r, "graph", j->graph_of[row]);
        if (j->about.target == BASIN_NODE_CLASSES) basin_record_integer(r, "node", j->node_of[row]);
        put_outputs(r, j, row);
    }
    basin_record_end(r);
}

/* The graph of each row, and the node in it. */
static void number_rows(job *j) {
    const int64_t *start = j->about.target == BASIN_NODE_CLASSES ? j->set.node_start : NULL;
    for (int64_t i = 0, row = 0; i < j->count; i++) {
        int64_t g = j->list[i], rows = start ? start[g + 1] - start[g] : 1;
        for (int64_t n = 0; n < rows; n++, row++) j->graph_of[row] = g, j->node_of[row] = n;
    }
}

static basin_status write_embeddings(job *j, basin_error *error) {
    int64_t rows = j->rows, width = j->about.width;
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    BASIN_SCRATCH(float, embedding, (rows * width), "embeddings", error);
    BASIN_TRY(basin_bundle_new(&bundle, NULL, error));
    BASIN_TRY(basin_graphs_embed(embedding, j->model, &j->data, error));
    BASIN_TRY(basin_bundle_put(bundle, "graph", j->graph_of, BASIN_I64, BASIN_SHAPE(rows), error));
    if (j->about.target == BASIN_NODE_CLASSES)
        BASIN_TRY(
            basin_bundle_put(bundle, "node", j->node_of, BASIN_I64, BASIN_SHAPE(rows), error));
    BASIN_TRY(basin_bundle_put(bundle, "embedding", embedding, BASIN_F32, BASIN_SHAPE(rows, width),
                               error));
    return basin_bundle_write(j->o->embeddings, bundle, error);
}

basin_status basin_graph_predict(job *j, basin_error *error) {
    j->rows = basin_graphs_rows(j->model, &j->data);
    j->columns = j->about.columns;
    int64_t by; /* found before predicting, so that a wrong name fails early */
    BASIN_TRY(basin_graph_find_column(&by, j, error));
    BASIN_TRY(BASIN_NEW(&j->output, j->rows * j->columns, "outputs", error));
    BASIN_TRY(BASIN_NEW(&j->spread, j->rows * j->columns, "outputs", error));
    j->data.spread = j->spread;
    if (!isnan(j->about.near)) BASIN_TRY(BASIN_NEW(&j->nearest, j->rows, "outputs", error));
    if (j->nearest) BASIN_TRY(BASIN_NEW(&j->nearest_at, j->rows, "outputs", error));
    j->data.nearest = j->nearest, j->data.nearest_at = j->nearest_at;
    if (j->about.calibrated) {
        BASIN_TRY(BASIN_NEW(&j->low, 2 * j->rows * j->columns, "outputs", error));
        j->high = j->low + j->rows * j->columns;
        j->data.low = j->low, j->data.high = j->high;
    }
    BASIN_TRY(BASIN_NEW(&j->class_value, 3 * j->rows, "outputs", error));
    j->graph_of = j->class_value + j->rows, j->node_of = j->graph_of + j->rows;
    number_rows(j);
    j->data.ranks = j->o->ranks;
    BASIN_TRY(basin_graphs_predict(j->output, j->class_value, j->model, &j->data, error));
    note_graphs(j);
    j->data.ranks = NULL;
    bool words = j->about.class_value && j->about.names && strstr(j->about.names, "\n\t");
    if (by < 0) {
        by = j->about.class_value ? j->columns - 1 : 0;
        char key[100];
        name_column(key, j, by);
        if (j->o->sort && (words || j->columns > 2 - !j->about.class_value))
            basin_note(j->o, "sorted by %s, highest first; --about names another column", key);
    }
    BASIN_TRY(BASIN_NEW_RAW(&j->order, j->rows + 1, "outputs", error));
    for (int64_t i = 0; i < j->rows; i++)
        j->order[i] = (basin_ranked){(double)j->output[i * j->columns + by], i};
    if (j->o->sort) qsort(j->order, (size_t)j->rows, sizeof *j->order, basin_higher_first);
    j->shown = j->o->sort && j->o->top ? basin_int_min(j->o->top, j->rows) : j->rows;
    j->data.low = j->data.high = j->data.spread = j->data.nearest = NULL, j->data.nearest_at = NULL;
    return BASIN_OK;
}

static basin_status predict(void *context, basin_error *error) {
    job *j = context;
    BASIN_TRY(basin_graph_open_all(j, false, error));
    BASIN_TRY(basin_graph_predict(j, error));
    return j->o->embeddings && !basin_ranks_rank(j->o->ranks) ? write_embeddings(j, error)
                                                              : BASIN_OK;
}

const basin_command basin_command_graph_predict = {
    BASIN_COMMAND("graph predict", predict_table),
    BASIN_USES(job, .work = predict, .print = put_predictions, .close = basin_graph_close_all,
               .rows = true),
    .ranks = true};

/* ---- eval: measures on a set of graphs, whether they took part in training, and the spread that
 * noise of the descent causes ---- */

static const basin_option eval_table[] = {
    BASIN_FLAG(unseen, "unseen"), BASIN_INTEGER(noisy, "noisy", "N", 0, 100000),
    BASIN_GRAPH_OPTION_COVERAGE,  BASIN_GRAPH_OPTIONS_MOLECULES,
    BASIN_GRAPH_OPTION_TARGET,    BASIN_GRAPH_OPTIONS_USE,
    BASIN_OPTIONS_LAST,
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

static basin_status measure_noise(job *j, basin_error *error) {
    int64_t count = j->o->noisy;
    basin_graphs_data data = j->data;
    data.noisy = count;
    BASIN_SCRATCH(basin_graphs_measures, measures, count, "evaluations", error);
    BASIN_SCRATCH(double, value, count, "evaluations", error);
    BASIN_TRY(basin_graphs_score(measures, NULL, j->model, &data, error));
    for (int64_t i = 0; i < count; i++) value[i] = basin_graph_score(&j->set, &measures[i]);
    j->noisy = basin_spread_of(value, count, 0);
    return BASIN_OK;
}

static void put_noisy(basin_record *r, const basin_spread *s, const basin_graphset *set) {
    basin_record_object(r, "noisy|with noise");
    basin_record_fields(r, ".of=%s;score|=%s", "the noise of the descent in one model",
                        basin_graph_score_name(set));
    basin_record_fields(r, "evaluations=%lld;mean=%.5g;deviation=%.2g;lowest=%.5g;highest=%.5g",
                        (long long)s->count, s->mean, s->deviation, s->lowest, s->highest);
    basin_record_end(r);
    basin_record_note(r, "the spread of noise in one model, not of other runs, seeds or splits");
}

#define F(member, ...) BASIN_FIELD(basin_graphs_value, member, __VA_ARGS__)
static const basin_field value_fields[] = {F(known, "known"),
                                           F(mean, "|mean", "%.4g"),
                                           F(spread, "|deviation", "%.4g"),
                                           F(error, "mae", "%.4g"),
                                           F(deviation, "rmse", "%.4g"),
                                           F(explained, "r2", "%.4g"),
                                           {0}};
#undef F

static void put_values(basin_record *r, const job *j) {
    basin_record_table(r, "values", NULL);
    for (int64_t c = 0; c < j->about.columns; c++) {
        const basin_graphs_value *v = &j->value[c];
        char key[100];
        name_column(key, j, c);
        basin_record_row(r);
        basin_record_text(r, "name|value", key);
        basin_record_struct(r, value_fields, v);
        if (j->about.binary) basin_record_fields(r, "auroc=%.4g;auprc=%.4g", v->auroc, v->auprc);
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
    basin_graphs_target target = j->about.target;
    const char *chosen = j->o->reading.part;
    if (!strcmp(chosen, "auto")) chosen = j->set.split[2] ? "test" : "all";
    basin_record_fields(r, "model=%s;data=%s;task=%s;part=%s", j->o->operand[0], j->set.name,
                        basin_graphs_target_name(target), chosen);
    basin_record_measures(r, NULL, &j->measures, target, true);
    if (*units_of(&j->about)) basin_record_note(r, "(%s)", units_of(&j->about));
    basin_graph_put_seen(r, j);
    if (j->noisy.count) put_noisy(r, &j->noisy, &j->set);
    if (j->value || j->measures.missing)
        basin_record_integer(r, "missing|without known truth", j->measures.missing);
    if (j->value) put_values(r, j);
}

static basin_status evaluate(void *context, basin_error *error) {
    job *j = context;
    BASIN_TRY(basin_graph_open_all(j, true, error));
    BASIN_TRY(basin_graph_look_back(j, error));
    BASIN_TRY(basin_graphs_score(&j->measures, NULL, j->model, &j->data, error));
    note_graphs(j);
    if (j->about.target == BASIN_GRAPHS_VALUES) {
        BASIN_TRY(BASIN_NEW(&j->value, j->about.columns, "values", error));
        BASIN_TRY(basin_graphs_score(NULL, j->value, j->model, &j->data, error));
    }
    return j->o->noisy ? measure_noise(j, error) : BASIN_OK;
}

const basin_command basin_command_graph_eval = {
    BASIN_COMMAND("graph eval", eval_table),
    BASIN_USES(job, .work = evaluate, .print = put_evaluation, .close = basin_graph_close_all)};

/* ---- explain: which nodes and edges an output comes from ---- */

static const basin_option explain_table[] = {
    BASIN_INTEGER(graph, "graph", "K", 0, 9007199254740992.0),
    BASIN_TEXT(about, 0, "about", "NAME"),
    BASIN_TEXT(svg, 0, "svg", "FILE", .writes = true),
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

/* Whether the memory has the larger weight in the prediction. */
static bool by_memory(const basin_graphs_explanation *e) { return e->share > 0.5; }

static basin_status sort_parts(job *j, basin_error *error) {
    const basin_graphset *set = &j->set;
    const basin_graphs_explanation *e = &j->e;
    const int32_t *end = set->edge + 2 * set->edge_start[e->graph];
    BASIN_TRY(BASIN_NEW(&j->node, e->nodes, "an explanation", error));
    BASIN_TRY(BASIN_NEW(&j->edge, e->edges, "an explanation", error));
    const double *adds = by_memory(e) ? e->memory : e->node;
    for (int64_t i = 0; i < e->nodes; i++) j->node[i] = (part){i, -1, adds[i]};
    for (int64_t i = 0; i < e->edges; i++, end += 2)
        j->edge[i] = (part){end[0] < end[1] ? end[0] : end[1], end[0] < end[1] ? end[1] : end[0],
                            e->edge[i]};
    j->edges = merge(j->edge, e->edges);
    qsort(j->node, (size_t)e->nodes, sizeof *j->node, compare);
    qsort(j->edge, (size_t)j->edges, sizeof *j->edge, compare);
    return BASIN_OK;
}

static double sum_of(const double *number, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += number[i];
    return sum;
}

/* "class active", "logS", "value 2". */
static const char *subject(char text[120], const job *j) {
    char key[100];
    bool named = j->about.names || j->about.class_value;
    name_column(key, j, j->e.column);
    snprintf(text, 120, "%s%s", named ? j->about.class_value ? "class " : "" : "value ",
             key + (j->about.class_value ? 2
                    : named              ? 0
                                         : 5));
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
             j->about.class_value ? "%s, graph %lld: %s with probability %.4f"
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

/* "CH3-O", "C=O", "C:C" where it is aromatic. */
static const char *name_bond(char text[100], const job *j, const part *p) {
    static const char *const sign[] = {"~", "-", "=", "#", ":", "=", "="};
    const basin_graphset *s = &j->set;
    char a[40], b[40];
    int64_t e = s->edge_start[j->e.graph];
    while (e + 1 < s->edge_start[j->e.graph + 1] &&
           (s->edge[2 * e] != p->a || s->edge[2 * e + 1] != p->b))
        e++;
    int32_t order = s->edge_label[e * s->edge_labels];
    snprintf(text, 100, "%s%s%s", name_atom(a, j, p->a), sign[order > 0 && order < 7 ? order : 0],
             name_atom(b, j, p->b));
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
        if (e->share > 0) basin_record_number(r, "memory", "%+.4f", e->memory[n]);
        basin_record_number(r, "adds", "%+.4g", e->node[n]);
        if (e->has_energy)
            basin_record_fields(r, "attention|attention of the CLS=%.4f;energy=%.4g",
                                e->attention[n], e->energy[n]);
    }
    basin_record_end(r);
}

static void put_edges(basin_record *r, const job *j) {
    char title[100], bond[100];
    snprintf(title, sizeof title,
             "edges that add most (of %lld, both ways together):", (long long)j->edges);
    basin_record_table(r, "edges", title);
    for (int64_t i = 0; i < j->edges && i < j->o->edges; i++) {
        basin_record_row(r);
        basin_record_fields(r, "a=%lld;b=%lld", (long long)j->edge[i].a, (long long)j->edge[i].b);
        if (basin_graph_is_molecules(&j->set))
            basin_record_text(r, "bond", name_bond(bond, j, &j->edge[i]));
        basin_record_number(r, "adds", "%+.4g", j->edge[i].added);
    }
    basin_record_end(r);
}

static void put_explanation(basin_record *r, const void *context) {
    const job *j = context;
    const basin_graphs_explanation *e = &j->e;
    const int64_t *class_value = j->about.class_value;
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
    basin_record_number(r,
                        class_value || j->about.binary ? "output|log-odds of the network"
                                                       : "output|output of the network",
                        "%.4g", e->output);
    basin_record_fields(r,
                        "blank|of the blank graph=%.4g;nodes_add=%+.4g;edges_add=%+.4g;"
                        "missed|missed by the integral=%.2g",
                        e->blank, sum_of(e->node, e->nodes), sum_of(e->edge, e->edges), e->missed);
    if (e->share > 0)
        basin_record_fields(r,
                            "share|share of the memory=%.2g;recalled|output of the memory=%.4g;"
                            "usual|for an unfamiliar graph=%.4g",
                            e->share, e->recalled, e->usual);
    put_nodes(r, j);
    put_edges(r, j);
    if (fabs(e->missed) > 0.1 * fabs(e->output - e->blank) + 1e-3)
        basin_record_note(r, "the parts do not add up to the output, which jumps between the two "
                             "graphs");
    if (j->about.members > 1 || e->share > 0)
        basin_record_note(r, "\"adds\" is the mean over %lld member%s of the network%s",
                          (long long)j->about.members, j->about.members > 1 ? "s" : "",
                          e->share > 0 ? "; \"memory\" is the node's part in the memory's output"
                                       : "");
}

static basin_status draw(void *context, basin_error *error) {
    const job *j = context;
    const basin_graphs_explanation *e = &j->e;
    if (!j->o->svg) return BASIN_OK;
    char title[200], subtitle[200], about[120], legend[200];
    headline(title, sizeof title, j);
    snprintf(subtitle, sizeof subtitle, "%s %.3g, blank graph %.3g, nodes %+.3g, edges %+.3g",
             j->about.class_value || j->about.binary ? "log-odds" : "value", e->output, e->blank,
             sum_of(e->node, e->nodes), sum_of(e->edge, e->edges));
    snprintf(legend, sizeof legend, "what a node or an edge adds to %s; %s on nodes",
             subject(about, j), labels_of(j) ? "labels" : "numbers");
    BASIN_AT_EXIT(basin_graph_drawing_free) basin_graph_drawing d = {0};
    bool molecule = basin_graph_is_molecules(&j->set);
    BASIN_TRY(basin_graph_draw(&d, &j->set, e->graph, error));
    if (molecule)
        snprintf(legend, sizeof legend, "what an atom or a bond adds to %s", subject(about, j));
    d.graph.title = title, d.graph.subtitle = subtitle, d.graph.legend = legend;
    d.graph.node = e->node, d.graph.strength = e->edge;
    if (molecule && by_memory(e)) {
        snprintf(legend, sizeof legend, "what an atom and its surroundings add to %s by the memory",
                 subject(about, j));
        snprintf(subtitle, sizeof subtitle,
                 "memory %.3g, for an unfamiliar graph %.3g, its share %.2g", e->recalled, e->usual,
                 e->share);
        d.graph.node = e->memory, d.graph.strength = NULL;
    }
    return basin_svg_graph(j->o->svg, &d.graph, error);
}

basin_status basin_graph_find_column(int64_t *column, const job *j, basin_error *error) {
    const int64_t *class_value = j->about.class_value;
    int64_t columns = j->about.columns;
    char *end;
    *column = -1;
    if (!j->o->about) return BASIN_OK;
    long long asked = strtoll(j->o->about, &end, 10);
    bool number = end > j->o->about && !*end;
    for (int64_t c = 0; c < columns && *column < 0; c++) {
        char key[100];
        name_column(key, j, c);
        if (number && asked == (class_value ? class_value[c] : c + 1)) *column = c;
        if (j->about.names && !strcmp(key + (class_value ? 2 : 0), j->o->about)) *column = c;
    }
    if (*column >= 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "--about %.40s is not %s", j->o->about,
                      class_value ? "a class of the training data (word or number)"
                                  : "a value (name or 1-based position)");
}

static basin_status explain(void *context, basin_error *error) {
    job *j = context;
    int64_t column;
    BASIN_TRY(basin_graph_open_all(j, false, error));
    if (j->o->graph >= j->set.graphs)
        return basin_fail(error, BASIN_BAD_VALUE, "--graph %lld; %s has graphs 0 to %lld",
                          (long long)j->o->graph, j->set.name, (long long)j->set.graphs - 1);
    BASIN_TRY(basin_graph_find_column(&column, j, error));
    j->data.graph = &j->o->graph, j->data.graphs = 1;
    BASIN_TRY(basin_graphs_explain(&j->e, j->model, &j->data, column, error));
    return sort_parts(j, error);
}

const basin_command basin_command_graph_explain = {
    BASIN_COMMAND("graph explain", explain_table),
    BASIN_USES(job, .work = explain, .print = put_explanation, .finish = draw,
               .close = basin_graph_close_all)};
