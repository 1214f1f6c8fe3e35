/* What models are used for: predictions, scores, embeddings; how well outputs fit. See graphs.h. */
#include "base/info.h"
#include "base/sort.h"
#include "basin/tasks/metrics.h"
#include "tasks/graphs/graphs.h"

/* Graphs with all that a model needs to see them. */
typedef struct use {
    basin_graphs_data data;
    basin_graphs_input input;
    int64_t *all;         /* own; NULL: the caller chose */
    const int64_t *graph; /* [count] those of this rank */
    int64_t count;
    const int64_t *whole; /* [wholes] those of all ranks; this rank's begin at `first` */
    int64_t wholes, first;
    float *output; /* [rows, C] */
    float *spread; /* [rows, C] over members; NULL: of one */
} use;

static basin_status take_data(basin_graphs_data *taken, const basin_graphs_data *data,
                              basin_error *error) {
    *taken = basin_graphs_data_of(data);
    const basin_graphset *set = taken->set;
    if (!set) return basin_fail(error, BASIN_BAD_VALUE, "data.set is NULL");
    for (int64_t i = 0; taken->graph && i < taken->graphs; i++)
        if (taken->graph[i] < 0 || taken->graph[i] >= set->graphs)
            return basin_fail(error, BASIN_BAD_VALUE, "graph[%lld] is %lld; %s has %lld graphs",
                              (long long)i, (long long)taken->graph[i], taken->path,
                              (long long)set->graphs);
    return BASIN_OK;
}

/* Walks and positions are computed for the graphs from the first to the last requested. */
static basin_status open_input(use *u, const basin_graphs_model *model, bool labels,
                               basin_error *error) {
    int64_t first = u->count ? u->graph[0] : 0, last = first;
    const basin_graphs_settings *s = &model->settings;
    for (int64_t i = 1; i < u->count; i++) {
        first = u->graph[i] < first ? u->graph[i] : first;
        last = u->graph[i] > last ? u->graph[i] : last;
    }
    int64_t span = u->count ? last - first + 1 : 0;
    BASIN_TRY(basin_graphs_input_begin(&u->input, s, u->data.set, first, span, error));
    BASIN_TRY(basin_graphs_input_match(&u->input, model, u->data.path, labels, error));
    if (labels && u->count)
        BASIN_TRY(basin_graphs_check_known(&u->input.set, u->data.path, u->graph, u->count,
                                           "graphs", error));
    return basin_graphs_input_place(&u->input, s, first, span, error);
}

/* The graphs of a rank: whole batches, each of which is one that a single process makes. */
static basin_ranks_share deal_to(const use *u, const basin_graphs_model *m, int64_t rank) {
    int64_t batch = basin_int_max(basin_int_min(m->settings.batch, u->wholes), 1);
    basin_ranks_share s = basin_ranks_deal_to(rank, basin_ranks_count(u->data.ranks),
                                              basin_int_ceil(u->wholes, batch));
    int64_t first = basin_int_min(s.first * batch, u->wholes);
    return (basin_ranks_share){first, basin_int_min(s.count * batch, u->wholes - first)};
}

/* All but the outputs. */
static basin_status use_prepare(use *u, basin_graphs_model *model, const basin_graphs_data *data,
                                bool labels, basin_error *error) {
    *u = (use){0};
    BASIN_TRY(take_data(&u->data, data, error));
    u->count = u->data.graph ? u->data.graphs : u->data.set->graphs;
    if (!u->data.graph && !(u->all = basin_graphs_range(0, u->count)))
        return basin_fail_memory(error, "a list of graphs");
    u->whole = u->data.graph ? u->data.graph : u->all;
    u->wholes = u->count;
    basin_ranks_share own = deal_to(u, model, basin_ranks_rank(u->data.ranks));
    u->first = own.first, u->graph = u->whole + own.first, u->count = own.count;
    return open_input(u, model, labels, error);
}

/* One graph: the plans stay with the model, since to make one takes longer than to run it. Steps of
 * a few dozen atoms: most molecules meet a plan that is there. */
static basin_status run_one(use *u, basin_graphs_model *model, basin_error *error) {
    if (!model->one) {
        BASIN_TRY(BASIN_NEW(&model->one, 1, "a plan", error));
        *model->one =
            (basin_graphs_plans){.model = model, .batch = 1, .tokens_step = 32, .pairs_step = 128};
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

/* What is inside is that of the first member. */
static basin_status use_open(use *u, basin_graphs_model *model, const basin_graphs_data *data,
                             bool labels, float *embedding, basin_error *error) {
    BASIN_AT_EXIT(basin_graphs_plans_free) basin_graphs_plans plans = {0};
    BASIN_FREE_AT_EXIT double *sum = NULL;
    BASIN_TRY(use_prepare(u, model, data, labels, error));
    if (!u->count) return BASIN_OK;
    bool alone = u->wholes == 1 && !embedding;
    int64_t rows = basin_graphs_count_rows(&u->input.set, model->target, u->graph, u->count);
    int64_t cells = rows * model->outputs, members = embedding ? 1 : model->members;
    if (members > 1) BASIN_TRY(BASIN_NEW(&sum, 2 * cells, "outputs", error));
    if (members > 1) BASIN_TRY(BASIN_NEW(&u->spread, cells, "outputs", error));
    if (!alone) basin_graphs_plans_begin(&plans, model, &u->input.set, u->whole, u->wholes, NULL);
    plans.embedding = embedding;
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
    if (members > 1) BASIN_TRY(basin_graphs_take_member(model, 0, error));
    return basin_graphs_near_add(u->output, data->nearest ? data->nearest + u->first : NULL,
                                 data->nearest_at ? data->nearest_at + u->first : NULL, model,
                                 &u->input.set, u->graph, u->count, error);
}

static void use_close(use *u) {
    BASIN_FREE(u->output, u->spread, u->all);
    basin_graphs_input_free(&u->input);
}

basin_convergence basin_graphs_take_convergence(basin_graphs_model *model) {
    return basin_convergence_of(model->store);
}

int64_t basin_graphs_rows(const basin_graphs_model *model, const basin_graphs_data *data) {
    basin_graphs_data d;
    if (take_data(&d, data, NULL)) return 0;
    if (d.graph) return basin_graphs_count_rows(d.set, model->target, d.graph, d.graphs);
    return model->target == BASIN_NODE_CLASSES ? d.set->nodes : d.set->graphs;
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
                                         const basin_graphs_data *data, basin_error *error) {
    const basin_graphset_encoding *e = &model->encoding;
    basin_graphs_data d;
    unknown[0] = unknown[1] = 0;
    basin_status status = take_data(&d, data, error);
    if (status || e->raw) return status;
    const basin_graphset *s = d.set;
    int64_t count = d.graph ? d.graphs : s->graphs;
    for (int64_t i = 0; i < count; i++) {
        int64_t g = d.graph ? d.graph[i] : i;
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

static int64_t rows_before(const use *u, const basin_graphs_model *m, int64_t graphs) {
    return basin_graphs_count_rows(&u->input.set, m->target, u->whole, graphs);
}

/* Rows of `each` bytes of all ranks, on all. */
static basin_status share(void *all, size_t each, const use *u, const basin_graphs_model *m,
                          basin_error *error) {
    int64_t ranks = basin_ranks_count(u->data.ranks);
    if (!all || ranks < 2) return BASIN_OK;
    for (int64_t r = 0; r < ranks; r++) {
        basin_ranks_share own = deal_to(u, m, r);
        int64_t first = rows_before(u, m, own.first),
                rows = rows_before(u, m, own.first + own.count) - first;
        BASIN_TRY(basin_ranks_broadcast(u->data.ranks, (char *)all + (size_t)first * each,
                                        (size_t)rows * each, r, error));
    }
    return BASIN_OK;
}

basin_status basin_graphs_predict(float *output, int64_t *class_value, basin_graphs_model *model,
                                  const basin_graphs_data *data, basin_error *error) {
    BASIN_AT_EXIT(use_close) use u = {0};
    int64_t columns = basin_graphs_about(model).columns;
    BASIN_TRY(use_open(&u, model, data, false, NULL, error));
    int64_t first = rows_before(&u, model, u.first), rows = basin_graphs_rows(model, data);
    int64_t end = rows_before(&u, model, u.first + u.count);
    for (int64_t i = first; i < end; i++) {
        const float *from = u.output + (i - first) * model->outputs;
        if (model->target == BASIN_GRAPHS_VALUES) {
            memcpy(output + i * columns, from, (size_t)columns * sizeof *from);
        } else {
            int64_t best = basin_graphs_softmax(output + i * columns, from, columns);
            if (class_value) class_value[i] = model->class_value[best];
        }
        for (int64_t c = 0; data->spread && c < columns; c++)
            data->spread[i * columns + c] =
                u.spread ? u.spread[(i - first) * model->outputs + c] : 0;
    }
    size_t row = (size_t)columns * sizeof *output;
    BASIN_TRY(share(output, row, &u, model, error));
    BASIN_TRY(share(data->spread, row, &u, model, error));
    if (class_value && model->class_value)
        BASIN_TRY(share(class_value, sizeof *class_value, &u, model, error));
    BASIN_TRY(share(data->nearest, sizeof *data->nearest, &u, model, error));
    BASIN_TRY(share(data->nearest_at, sizeof *data->nearest_at, &u, model, error));
    if (data->low && data->high)
        basin_graphs_calibration_bound(data->low, data->high, output, rows, model, data->coverage);
    return BASIN_OK;
}

static basin_status measure(basin_graphs_measures *measures, const use *u,
                            const basin_graphs_model *model, basin_error *error) {
    return basin_graphs_measure(measures, u->output, &u->input.set, u->graph, u->count,
                                model->outputs, model->target_scale, error);
}

static basin_status measure_all(basin_graphs_measures *measures, const use *u,
                                const basin_graphs_model *m, basin_error *error) {
    BASIN_TRY(measure(measures, u, m, error));
    for (int64_t i = 0; i < u->count && m->target == BASIN_GRAPHS_CLASSES; i++)
        basin_graphs_softmax(u->output + i * m->classes, u->output + i * m->outputs, m->classes);
    return basin_graphs_calibration_measure(measures, u->output, &u->input.set, u->graph, u->count,
                                            m, u->data.coverage, error);
}

static basin_status score_noisy(basin_graphs_measures *measures, basin_graphs_model *model,
                                const basin_graphs_data *data, basin_error *error) {
    BASIN_AT_EXIT(use_close) use u = {0};
    BASIN_AT_EXIT(basin_graphs_plans_free) basin_graphs_plans plans = {0};
    if (model->settings.implicit)
        return basin_fail(
            error, BASIN_UNSUPPORTED,
            "the model descends to a fixed point (implicit), without noise: every evaluation "
            "would be the same");
    if (!(model->settings.noise > 0))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the model has noise 0: every evaluation would be the same");
    BASIN_TRY(use_prepare(&u, model, data, true, error));
    basin_graphs_plans_begin(&plans, model, &u.input.set, u.graph, u.count, NULL);
    plans.noisy = true;
    for (int64_t i = 0; i < data->noisy; i++) {
        free(u.output);
        BASIN_TRY(basin_graphs_outputs(&u.output, &plans, &u.input, u.graph, u.count, error));
        BASIN_TRY(measure(&measures[i], &u, model, error));
    }
    return BASIN_OK;
}

/* AUROC and average precision of column c, of classes or of yes or no; NaN where one is absent. */
static basin_status rank_column(double *auroc, double *auprc, const float *output,
                                const basin_graphset *set, const int64_t *graph, int64_t count,
                                int64_t c, basin_error *error) {
    bool values = set->task == BASIN_GRAPHS_VALUES;
    int64_t C = values ? set->targets : 2, n = 0;
    basin_ranking ranking;
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
    v->explained = spread > 0 ? 1 - misses / spread : NAN;
    return rank_column(&v->auroc, &v->auprc, output, set, graph, count, c, error);
}

basin_status basin_graphs_score(basin_graphs_measures *measures, basin_graphs_value *value,
                                basin_graphs_model *model, const basin_graphs_data *data,
                                basin_error *error) {
    BASIN_AT_EXIT(use_close) use u = {0};
    if (value && model->target != BASIN_GRAPHS_VALUES)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the model predicts %s; expected a model of values",
                          basin_graphs_target_name(model->target));
    if (data->noisy > 0) return score_noisy(measures, model, data, error);
    BASIN_TRY(use_open(&u, model, data, true, NULL, error));
    if (measures) BASIN_TRY(measure_all(measures, &u, model, error));
    for (int64_t c = 0; value && c < u.input.set.targets; c++)
        BASIN_TRY(measure_column(&value[c], u.output, &u.input.set, u.graph, u.count, c, error));
    return BASIN_OK;
}

basin_status basin_graphs_embed(float *embedding, basin_graphs_model *model,
                                const basin_graphs_data *data, basin_error *error) {
    BASIN_AT_EXIT(use_close) use u = {0};
    return use_open(&u, model, data, false, embedding, error);
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
    if (set->task != BASIN_NODE_CLASSES) return (items){graph, graph + 1};
    return (items){set->node_start[graph], set->node_start[graph + 1]};
}

/* One item; unknown classes are left out and counted. */
static void add_item(basin_graphs_measures *measures, const float *output, int64_t outputs,
                     int32_t own) {
    measures->missing += own < 0;
    if (own < 0) return;
    measures->items++;
    measures->accuracy += best_of(output, outputs) == own;
    measures->loss += cross_entropy(output, outputs, own);
}

/* Percent of the items of each class that are right, averaged over classes; over all nodes, not per
 * graph. There may be many classes: they are counted 256 at a time. */
static double class_average(const float *output, const basin_graphset *set, const int64_t *graph,
                            int64_t count, int64_t outputs) {
    double sum = 0, present = 0;
    for (int64_t first = 0; first < set->classes; first += 256) {
        double right[256] = {0}, all[256] = {0};
        const float *row = output;
        for (int64_t i = 0; i < count; i++) {
            items of = items_of(set, graph[i]);
            for (int64_t n = of.first; n < of.end; n++, row += outputs) {
                int64_t own = set->class_of[n], at = own - first;
                if (own < 0 || at < 0 || at >= 256) continue;
                right[at] += best_of(row, outputs) == own;
                all[at]++;
            }
        }
        for (int c = 0; c < 256; c++)
            if (all[c] > 0) sum += right[c] / all[c], present++;
    }
    return present > 0 ? 100 * sum / present : 0;
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
    double explained = 0, varied = 0, auroc = 0, auprc = 0, ranked = 0;
    for (int64_t c = 0; c < C; c++) {
        basin_graphs_value v;
        BASIN_TRY(measure_column(&v, output, set, graph, count, c, error));
        if (!isnan(v.explained)) explained += v.explained, varied++;
        if (!isnan(v.auroc)) auroc += v.auroc, auprc += v.auprc, ranked++;
    }
    measures->explained = explained / varied;
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

basin_status basin_graphs_measure(basin_graphs_measures *measures, const float *output,
                                  const basin_graphset *set, const int64_t *graph, int64_t count,
                                  int64_t outputs, const double *scale, basin_error *error) {
    *measures = (basin_graphs_measures){
        .auroc = NAN, .auprc = NAN, .explained = NAN, .coverage = NAN, .size = NAN};
    if (set->task == BASIN_GRAPHS_VALUES)
        return measure_values(measures, output, set, graph, count, scale, error);
    if (set->task == BASIN_GRAPHS_CLASSES && set->classes == 2 && outputs == 2)
        BASIN_TRY(
            rank_column(&measures->auroc, &measures->auprc, output, set, graph, count, 1, error));
    measures->balanced = class_average(output, set, graph, count, outputs);
    for (int64_t i = 0; i < count; i++) {
        items of = items_of(set, graph[i]);
        for (int64_t n = of.first; n < of.end; n++, output += outputs)
            add_item(measures, output, outputs, set->class_of[n]);
    }
    if (measures->items) {
        measures->accuracy *= 100 / (double)measures->items;
        measures->loss /= (double)measures->items;
    }
    measures->merit = set->task == BASIN_NODE_CLASSES ? measures->balanced : measures->accuracy;
    if (set->line && !isnan(measures->auroc)) measures->merit = 100 * measures->auroc;
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
    if (target != BASIN_NODE_CLASSES) return count;
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
