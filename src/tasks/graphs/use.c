/* What models are used for: predictions, evaluation; how well outputs fit. See graphs.h. */
#include "base/info.h"
#include "base/sized.h"
#include "base/sort.h"
#include "basin/tasks/metrics.h"
#include "tasks/graphs/graphs.h"

/* Graphs with all that a model needs to see them. */
typedef struct use {
    const char *path;
    basin_graphs_input input;
    int64_t *all;         /* own; NULL: the caller chose */
    const int64_t *graph; /* [count] */
    int64_t count;
    float *output; /* [rows, C] */
    float *spread; /* [rows, C] over members; NULL: of one */
} use;

static basin_status check_data(const basin_graphs_data *d, basin_error *error) {
    BASIN_TRY(BASIN_SIZE_CHECK(d, "basin_graphs_data", error));
    if (!d->set) return basin_fail(error, BASIN_BAD_VALUE, "data.set is NULL");
    for (int64_t i = 0; d->graph && i < d->graphs; i++)
        if (d->graph[i] < 0 || d->graph[i] >= d->set->graphs)
            return basin_fail(error, BASIN_BAD_VALUE, "graph[%lld] is %lld; %s has %lld graphs",
                              (long long)i, (long long)d->graph[i],
                              basin_graphs_path(d->path, d->set), (long long)d->set->graphs);
    return BASIN_OK;
}

/* Walks and positions are computed for the graphs from the first to the last requested. */
static basin_status open_input(use *u, const basin_graphs_model *model, const basin_graphset *set,
                               bool labels, basin_error *error) {
    int64_t first = u->count ? u->graph[0] : 0, last = first;
    const basin_graphs_settings *s = &model->settings;
    for (int64_t i = 1; i < u->count; i++) {
        first = basin_int_min(first, u->graph[i]);
        last = basin_int_max(last, u->graph[i]);
    }
    int64_t span = u->count ? last - first + 1 : 0;
    BASIN_TRY(basin_graphs_input_begin(&u->input, s, set, first, span, error));
    BASIN_TRY(basin_graphs_input_match(&u->input, model, u->path, labels, error));
    if (labels && u->count)
        BASIN_TRY(
            basin_graphs_check_known(&u->input.set, u->path, u->graph, u->count, "graphs", error));
    return basin_graphs_input_place(&u->input, s, first, span, error);
}

/* All but the outputs. */
static basin_status use_prepare(use *u, basin_graphs_model *model, const basin_graphs_data *data,
                                bool labels, basin_error *error) {
    BASIN_TRY(check_data(data, error));
    u->path = basin_graphs_path(data->path, data->set);
    u->count = data->graph ? data->graphs : data->set->graphs;
    if (!data->graph && !(u->all = basin_graphs_range(0, u->count)))
        return basin_fail_memory(error, "a list of graphs");
    u->graph = data->graph ? data->graph : u->all;
    return open_input(u, model, data->set, labels, error);
}

/* One graph: the plans stay with the model, since to make one takes longer than to run it. Steps of
 * a few dozen atoms: most molecules meet a plan that is there. */
static basin_status run_one(use *u, basin_graphs_model *model, basin_error *error) {
    if (!model->one) {
        BASIN_TRY(BASIN_NEW(&model->one, 1, "a plan", error));
        *model->one =
            (basin_graphs_plans){.model = model, .batch = 1, .need = {{0, 32}, {0, 128}, {0, 1}}};
    }
    return basin_graphs_outputs(&u->output, model->one, &u->input, u->graph, 1, error);
}

/* Means of values, or of probabilities as their logarithms, and their deviations; `sum` and
 * `squares` [rows, C] have those of the members before. */
static void add_member(use *u, const basin_graphs_model *m, double *sum, double *squares,
                       int64_t rows, int64_t member) {
    bool values = m->target == BASIN_GRAPHS_VALUES, last = member + 1 == m->members;
    double n = (double)m->members;
    for (int64_t i = 0; i < rows; i++) {
        float *own = u->output + i * m->outputs;
        if (!values) basin_graphs_softmax(own, own, m->outputs);
        for (int64_t c = 0; c < m->outputs; c++) {
            int64_t at = i * m->outputs + c;
            sum[at] += (double)own[c] / n, squares[at] += (double)own[c] * (double)own[c] / n;
            if (!last) continue;
            u->spread[at] = (float)sqrt(fmax(squares[at] - sum[at] * sum[at], 0));
            own[c] = (float)(values ? sum[at] : log(fmax(sum[at], 1e-30)));
        }
    }
}

/* Outputs of all members. */
static basin_status use_open(use *u, basin_graphs_model *model, const basin_graphs_data *data,
                             bool labels, basin_error *error) {
    BASIN_AT_EXIT(basin_graphs_plans_free) basin_graphs_plans plans = {0};
    BASIN_FREE_AT_EXIT double *sum = NULL;
    BASIN_TRY(use_prepare(u, model, data, labels, error));
    if (!u->count) return BASIN_OK;
    bool alone = u->count == 1;
    int64_t rows = basin_graphs_count_rows(&u->input.set, model->target, u->graph, u->count);
    int64_t cells = rows * model->outputs, members = model->members;
    if (members > 1) BASIN_TRY(BASIN_NEW(&sum, 2 * cells, "outputs", error));
    if (members > 1) BASIN_TRY(BASIN_NEW(&u->spread, cells, "outputs", error));
    if (!alone) basin_graphs_plans_begin(&plans, model, &u->input.set, u->graph, u->count, NULL);
    for (int64_t k = 0; k < members; k++) {
        free(u->output);
        u->output = NULL;
        BASIN_TRY(basin_graphs_take_member(model, k, error));
        BASIN_TRY(
            alone ? run_one(u, model, error)
                  : basin_graphs_outputs(&u->output, &plans, &u->input, u->graph, u->count, error));
        basin_graphs_temper(u->output, rows, model, true);
        if (members > 1) add_member(u, model, sum, sum + cells, rows, k);
    }
    return members > 1 ? basin_graphs_take_member(model, 0, error) : BASIN_OK;
}

static void use_close(use *u) {
    BASIN_FREE(u->output, u->spread, u->all);
    basin_graphs_input_free(&u->input);
}

void basin_graphs_take_convergence(basin_convergence *convergence, basin_graphs_model *model) {
    basin_store_take_convergence(convergence, model->store);
}

int64_t basin_graphs_rows(const basin_graphs_model *model, const basin_graphs_data *d) {
    if (check_data(d, NULL)) return 0;
    if (d->graph) return basin_graphs_count_rows(d->set, model->target, d->graph, d->graphs);
    return model->target == BASIN_GRAPHS_NODE_CLASSES ? d->set->nodes : d->set->graphs;
}

/* Counts the rows first .. end - 1 of labels [.., columns] that have a label outside its range. */
static int64_t count_unknown(const int32_t *label, int64_t first, int64_t end, int64_t columns,
                             const basin_label_column *column) {
    int64_t unknown = 0;
    for (int64_t i = first; i < end; i++) {
        bool known = true;
        for (int64_t c = 0; c < columns && known; c++)
            known = basin_label_known(&column[c], label[i * columns + c]);
        unknown += !known;
    }
    return unknown;
}

basin_status basin_graphs_unknown_labels(int64_t unknown[2], const basin_graphs_model *model,
                                         const basin_graphs_data *d, basin_error *error) {
    const basin_graphset_encoding *e = &model->encoding;
    unknown[0] = unknown[1] = 0;
    basin_status status = check_data(d, error);
    if (status || e->raw) return status;
    const basin_graphset *s = d->set;
    for (int64_t i = 0; i < (d->graph ? d->graphs : s->graphs); i++) {
        int64_t g = d->graph ? d->graph[i] : i;
        if (s->node_labels == e->labels)
            unknown[0] += count_unknown(s->node_label, s->node_start[g], s->node_start[g + 1],
                                        e->labels, e->label);
        if (s->edge_labels == e->edge_labels)
            unknown[1] += count_unknown(s->edge_label, s->edge_start[g], s->edge_start[g + 1],
                                        e->edge_labels, e->edge_label);
    }
    return BASIN_OK;
}

static int64_t best_of(const float *output, int64_t count) {
    int64_t best = 0;
    for (int64_t c = 1; c < count; c++)
        if (output[c] > output[best]) best = c;
    return best;
}

int64_t basin_graphs_softmax(float *to, const float *output, int64_t count) {
    int64_t best = best_of(output, count);
    double top = (double)output[best], sum = 0;
    for (int64_t c = 0; c < count; c++) sum += exp((double)output[c] - top);
    for (int64_t c = 0; c < count; c++) to[c] = (float)(exp((double)output[c] - top) / sum);
    return best;
}

void basin_graphs_likelihoods(float *to, const float *output, int64_t rows,
                              const basin_graphs_model *m) {
    for (int64_t i = 0; i < rows * m->outputs; i += m->outputs)
        if (m->target == BASIN_GRAPHS_VALUES)
            memcpy(to + i, output + i, (size_t)m->outputs * sizeof *to);
        else
            basin_graphs_softmax(to + i, output + i, m->outputs);
}

static void put_rows(const basin_graphs_predict_result *r, const use *u,
                     const basin_graphs_model *m, int64_t rows) {
    int64_t columns = basin_graphs_columns(m);
    for (int64_t i = 0; i < rows; i++) {
        int64_t from = i * m->outputs, to = i * columns;
        if (m->target == BASIN_GRAPHS_VALUES) {
            memcpy(r->output + to, u->output + from, (size_t)columns * sizeof *r->output);
        } else {
            int64_t best = basin_graphs_softmax(r->output + to, u->output + from, columns);
            if (r->class_value) r->class_value[i] = m->class_value[best];
        }
        for (int64_t c = 0; r->spread && c < columns; c++)
            r->spread[to + c] = u->spread ? u->spread[from + c] : 0;
    }
}

basin_status basin_graphs_predict(const basin_graphs_predict_result *r, basin_graphs_model *model,
                                  const basin_graphs_data *data,
                                  const basin_graphs_predict_options *options, basin_error *error) {
    BASIN_AT_EXIT(use_close) use u = {.path = NULL};
    BASIN_TRY(BASIN_SIZE_CHECK(r, "basin_graphs_predict_result", error));
    BASIN_TRY(BASIN_SIZE_CHECK(options, "basin_graphs_predict_options", error));
    BASIN_TRY(use_open(&u, model, data, false, error));
    int64_t rows = basin_graphs_rows(model, data);
    bool bounds = r->low && r->high && model->near.count;
    BASIN_SCRATCH(float, nearest, bounds ? rows : 1, "similarities", error);
    float *near = r->nearest ? r->nearest : bounds ? nearest : NULL;
    BASIN_TRY(basin_graphs_near_add(u.output, NULL, near, r->nearest_at, model, &u.input.set,
                                    u.graph, u.count, error));
    put_rows(r, &u, model, rows);
    if (!r->low || !r->high) return BASIN_OK;
    return basin_graphs_calibration_bound(r->low, r->high, r->output, bounds ? near : NULL, rows,
                                          model, options ? options->coverage : 0, error);
}

/* ---- evaluation ---- */

/* AUROC and average precision of column c, of classes or of yes or no; NaN where one is absent. */
static basin_status rank_column(double *auroc, double *auprc, const float *output,
                                const basin_graphset *set, const int64_t *graph, int64_t count,
                                int64_t c, basin_error *error) {
    bool values = set->task == BASIN_GRAPHS_VALUES;
    int64_t C = values ? set->targets : 2, n = 0;
    basin_ranking ranking = {.size = sizeof ranking};
    BASIN_SCRATCH_RAW(double, score, count, "a ranking", error);
    BASIN_SCRATCH_RAW(uint8_t, label, count, "a ranking", error);
    for (int64_t i = 0; i < count && (!values || set->binary); i++) {
        double known =
            values ? (double)set->target[graph[i] * C + c]
                   : (double)set->class_of[graph[i]] + (set->class_of[graph[i]] < 0 ? NAN : 0);
        if (isnan(known)) continue;
        label[n] = known > 0;
        score[n++] =
            values ? (double)output[i * C + c] : (double)(output[2 * i + 1] - output[2 * i]);
    }
    basin_status status = basin_ranking_measure(&ranking, score, label, n, 0, error);
    *auroc = ranking.auroc, *auprc = ranking.auprc;
    return status == BASIN_NO_MEMORY ? status : BASIN_OK;
}

/* Measures each value in its own units, [targets of the set]. */
static basin_status measure_column(basin_graphs_value *v, const float *output,
                                   const basin_graphset *set, const int64_t *graph, int64_t count,
                                   int64_t c, basin_error *error) {
    int64_t C = set->targets;
    double sum = 0, squares = 0, misses = 0;
    *v = (basin_graphs_value){0};
    for (int64_t i = 0; i < count; i++) {
        double y = (double)set->target[graph[i] * C + c];
        double miss = (double)output[i * C + c] - y;
        if (isnan(y)) continue;
        v->known++;
        sum += y, squares += y * y;
        v->error += fabs(miss), misses += miss * miss;
    }
    double n = (double)v->known, spread = squares - sum * sum / n;
    v->mean = sum / n;
    v->spread = sqrt(fmax(spread, 0) / n);
    v->error /= n;
    v->deviation = sqrt(misses / n);
    v->r_squared = spread > 0 ? 1 - misses / spread : NAN;
    return rank_column(&v->auroc, &v->auprc, output, set, graph, count, c, error);
}

/* Adds the memory; measures it and the network, each by itself: without a memory merits are NaN. */
static basin_status measure_parts(basin_graphs_evaluate_result *r, float *nearest, const use *u,
                                  const basin_graphs_model *m, basin_error *error) {
    const basin_graphset *set = &u->input.set;
    r->network_only.merit = r->memory_only.merit = NAN;
    if (!m->near.count) return BASIN_OK;
    BASIN_SCRATCH_RAW(float, memory, u->count * m->outputs, "outputs", error);
    BASIN_TRY(basin_graphs_measure(&r->network_only, u->output, set, u->graph, u->count, m->outputs,
                                   m->target_scale, error));
    BASIN_TRY(
        basin_graphs_near_add(u->output, memory, nearest, NULL, m, set, u->graph, u->count, error));
    return basin_graphs_measure(&r->memory_only, memory, set, u->graph, u->count, m->outputs,
                                m->target_scale, error);
}

basin_status basin_graphs_evaluate(basin_graphs_evaluate_result *r, basin_graphs_model *m,
                                   const basin_graphs_data *data,
                                   const basin_graphs_evaluate_options *options,
                                   basin_error *error) {
    BASIN_AT_EXIT(use_close) use u = {0};
    BASIN_TRY(BASIN_SIZE_CHECK(r, "basin_graphs_evaluate_result", error));
    BASIN_TRY(BASIN_SIZE_CHECK(options, "basin_graphs_evaluate_options", error));
    if (r->value && m->target != BASIN_GRAPHS_VALUES)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the model predicts %s; expected a model of values",
                          basin_graphs_target_name(m->target));
    BASIN_TRY(use_open(&u, m, data, true, error));
    BASIN_SCRATCH(float, nearest, u.count, "similarities", error);
    BASIN_TRY(measure_parts(r, nearest, &u, m, error));
    BASIN_TRY(basin_graphs_measure(&r->measures, u.output, &u.input.set, u.graph, u.count,
                                   m->outputs, m->target_scale, error));
    for (int64_t c = 0; r->value && c < u.input.set.targets; c++)
        BASIN_TRY(measure_column(&r->value[c], u.output, &u.input.set, u.graph, u.count, c, error));
    for (int64_t i = 0; i < u.count && m->target == BASIN_GRAPHS_CLASSES; i++)
        basin_graphs_softmax(u.output + i * m->classes, u.output + i * m->outputs, m->classes);
    return basin_graphs_calibration_measure(&r->measures, u.output, m->near.count ? nearest : NULL,
                                            &u.input.set, u.graph, u.count, m,
                                            options ? options->coverage : 0, error);
}

/* ---- measures ---- */

static double cross_entropy(const float *output, int64_t count, int64_t class_of) {
    double top = (double)output[best_of(output, count)], sum = 0;
    for (int64_t c = 0; c < count; c++) sum += exp((double)output[c] - top);
    return log(sum) + top - (double)output[class_of];
}

/* What a graph has of items: itself, or its nodes; `first` to `end` - 1. */
typedef struct items {
    int64_t first, end;
} items;

static items items_of(const basin_graphset *set, int64_t graph) {
    if (set->task != BASIN_GRAPHS_NODE_CLASSES) return (items){graph, graph + 1};
    return (items){set->node_start[graph], set->node_start[graph + 1]};
}

/* Items of unknown classes are left out and counted. */
static basin_status measure_classes(basin_graphs_measures *measures, const float *output,
                                    const basin_graphset *set, const int64_t *graph, int64_t count,
                                    int64_t outputs, basin_error *error) {
    double right = 0, shares = 0, present = 0;
    BASIN_SCRATCH(int64_t, found, 2 * set->classes, "measures", error); /* right, all */
    for (int64_t i = 0; i < count; i++) {
        items of = items_of(set, graph[i]);
        for (int64_t n = of.first; n < of.end; n++, output += outputs) {
            int32_t own = set->class_of[n];
            measures->missing += own < 0;
            if (own < 0) continue;
            measures->items++;
            found[2 * own] += best_of(output, outputs) == own, found[2 * own + 1]++;
            measures->loss += cross_entropy(output, outputs, own);
        }
    }
    for (int64_t c = 0; c < set->classes; c++) {
        if (!found[2 * c + 1]) continue;
        right += (double)found[2 * c], present++;
        shares += (double)found[2 * c] / (double)found[2 * c + 1];
    }
    measures->balanced = present > 0 ? 100 * shares / present : 0;
    if (!measures->items) return BASIN_OK;
    measures->accuracy = right * (100 / (double)measures->items);
    measures->loss /= (double)measures->items;
    return BASIN_OK;
}

/* Values that are not known are left out and counted. */
static basin_status measure_values(basin_graphs_measures *measures, const float *output,
                                   const basin_graphset *set, const int64_t *graph, int64_t count,
                                   const double *scale, basin_error *error) {
    int64_t C = set->targets;
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < C; c++) measures->missing += isnan(set->target[graph[i] * C + c]);
    double squares = 0, n = (double)(count * C - measures->missing);
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < C; c++) {
            double miss = (double)output[i * C + c] - (double)set->target[graph[i] * C + c];
            if (isnan(set->target[graph[i] * C + c])) continue;
            if (scale && C > 1) miss /= scale[c];
            measures->loss += fabs(miss) / n;
            squares += miss * miss / n;
        }
    measures->items = count;
    measures->deviation = sqrt(squares);
    if (set->binary) measures->loss = 0;
    double r_squared = 0, varied = 0, auroc = 0, auprc = 0, ranked = 0;
    for (int64_t c = 0; c < C; c++) {
        basin_graphs_value v;
        BASIN_TRY(measure_column(&v, output, set, graph, count, c, error));
        if (!isnan(v.r_squared)) r_squared += v.r_squared, varied++;
        if (!isnan(v.auroc)) auroc += v.auroc, auprc += v.auprc, ranked++;
    }
    measures->r_squared = r_squared / varied;
    measures->auroc = auroc / ranked, measures->auprc = auprc / ranked;
    for (int64_t i = 0; i < count * C && set->binary; i++) {
        double t = (double)set->target[graph[i / C] * C + i % C];
        double p = fmin(fmax((double)output[i], 1e-7), 1 - 1e-7);
        if (!isnan(t)) measures->loss -= (t * log(p) + (1 - t) * log(1 - p)) / n;
    }
    measures->merit =
        set->binary && !isnan(measures->auroc) ? 100 * measures->auroc : -measures->loss;
    return BASIN_OK;
}

basin_status basin_graphs_measure(basin_graphs_measures *m, const float *output,
                                  const basin_graphset *set, const int64_t *graph, int64_t count,
                                  int64_t outputs, const double *scale, basin_error *error) {
    *m = (basin_graphs_measures){
        .auroc = NAN, .auprc = NAN, .r_squared = NAN, .coverage = NAN, .width = NAN};
    if (set->task == BASIN_GRAPHS_VALUES)
        return measure_values(m, output, set, graph, count, scale, error);
    if (set->task == BASIN_GRAPHS_CLASSES && set->classes == 2 && outputs == 2)
        BASIN_TRY(rank_column(&m->auroc, &m->auprc, output, set, graph, count, 1, error));
    BASIN_TRY(measure_classes(m, output, set, graph, count, outputs, error));
    m->merit = set->task == BASIN_GRAPHS_NODE_CLASSES ? m->balanced : m->accuracy;
    if (set->line && !isnan(m->auroc)) m->merit = 100 * m->auroc;
    return BASIN_OK;
}

static bool has_known(const basin_graphset *set, int64_t graph) {
    items of = items_of(set, graph);
    bool known = false;
    for (int64_t i = of.first; i < of.end && !known && set->task != BASIN_GRAPHS_VALUES; i++)
        known = set->class_of[i] >= 0;
    for (int64_t c = 0; c < set->targets && !known && set->task == BASIN_GRAPHS_VALUES; c++)
        known = !isnan(set->target[graph * set->targets + c]);
    return known;
}

basin_status basin_graphs_check_known(const basin_graphset *set, const char *path,
                                      const int64_t *graph, int64_t count, const char *what,
                                      basin_error *error) {
    for (int64_t i = 0; i < count; i++)
        if (has_known(set, graph[i])) return BASIN_OK;
    return basin_fail(
        error, BASIN_BAD_VALUE, "%s: none of the %lld %s has a %s; expected at least one", path,
        (long long)count, what,
        set->task == BASIN_GRAPHS_VALUES ? "value that is known" : "class that the model knows");
}

int64_t basin_graphs_count_rows(const basin_graphset *set, basin_graphs_target target,
                                const int64_t *graph, int64_t count) {
    int64_t rows = 0;
    if (target != BASIN_GRAPHS_NODE_CLASSES) return count;
    for (int64_t i = 0; i < count; i++) rows += basin_graphset_tokens(set, graph[i]) - 1;
    return rows;
}

basin_status basin_graphs_outputs(float **output, basin_graphs_plans *plans,
                                  const basin_graphs_input *input, const int64_t *graph,
                                  int64_t count, basin_error *error) {
    const basin_graphs_model *m = plans->model;
    int64_t rows = basin_graphs_count_rows(&input->set, m->target, graph, count);
    BASIN_TRY(BASIN_NEW_RAW(output, rows * m->outputs, "outputs", error));
    BASIN_TRY_OR(basin_graphs_plans_score(plans, *output, input, graph, count, error),
                 (free(*output), *output = NULL));
    return BASIN_OK;
}
