/* Why nodes score as they do, but for the network's share; see net.h. */
#include "base/sized.h"
#include "base/sort.h"
#include "tasks/nodes/net.h"

/* ---- neighbours ---- */

/* Opens the relations of table and inputs, each once. */
static basin_status open_relations(basin_explainer *x, basin_error *error) {
    const basin_node_table *of[] = {&x->table.node, &x->inputs.node};
    for (int k = 0; k < 2; k++)
        for (int r = 0, known; r < of[k]->relations; r++) {
            const basin_relation *own = &x->network->relation[of[k]->relation[r]];
            for (known = 0; known < x->relations && x->relation[known] != own;) known++;
            if (known < x->relations) continue;
            x->relation[x->relations++] = own;
            if (x->network->directed)
                BASIN_TRY(
                    basin_relation_turn(&x->back[known], NULL, own, x->network->nodes, error));
        }
    return BASIN_OK;
}

/* ---- slots ---- */

static void place(int64_t *slot, int64_t *hop, const basin_explainer *x, int64_t column) {
    const basin_tree_table *t = &x->table;
    int64_t block = column / t->node.own;
    bool known = column >= t->plain; /* the share among neighbours, then among theirs */
    *slot = known
                ? x->slots - 1
                : basin_explainer_slot(x, column % t->node.own, t->node.relation, t->node.degrees);
    *hop = known        ? 1 + (column - t->plain) % 2
           : block == 0 ? 0
                        : 1 + (block - 1) / t->node.relations;
}

/* Which of the columns of edges a slot is; -1: none. */
static int64_t fact_at(const basin_explainer *x, int64_t slot) {
    int64_t first = basin_explainer_fact_slot(x, 0, 0);
    bool is_fact = slot >= first && slot < basin_explainer_fact_slot(x, x->network->relations, 0);
    return is_fact ? (slot - first) % x->facts : -1;
}

/* ---- a typical node ---- */

enum { SAMPLE = 1024 }; /* rows that say what is typical */

/* Medians of the columns, over rows evenly spread; 0 where there are none. */
static basin_status find_medians(float **median, const float *x, int64_t rows, int64_t columns,
                                 basin_error *error) {
    int64_t n = basin_int_min(rows, SAMPLE);
    BASIN_TRY(BASIN_NEW(median, columns, "an explanation", error));
    BASIN_SCRATCH_RAW(float, value, n, "an explanation", error);
    for (int64_t c = 0; c < columns && n; c++) {
        for (int64_t i = 0; i < n; i++) value[i] = x[i * rows / n * columns + c];
        qsort(value, (size_t)n, sizeof *value, basin_compare_float);
        (*median)[c] = value[n / 2];
    }
    return BASIN_OK;
}

/* The table in the user's units, the network's inputs, and what an edge carries, as the energy
 * reads it. */
basin_status basin_explainer_typical(basin_explainer *x, basin_error *error) {
    const basin_facts *facts = &x->network->facts;
    int64_t N = x->network->nodes, C = x->inputs.shape.columns, width = x->inputs.shape.facts;
    int64_t n = basin_int_min(N, SAMPLE);
    BASIN_SCRATCH_RAW(int64_t, node, n, "an explanation", error);
    BASIN_SCRATCH_RAW(float, row, n * x->table.columns, "an explanation", error);
    for (int64_t i = 0; i < n; i++) node[i] = i * N / n;
    basin_tree_table_rows(row, &x->table, node, 0, n);
    BASIN_TRY(find_medians(&x->column_typical, row, n, x->table.columns, error));
    if (C) BASIN_TRY(find_medians(&x->input_typical, x->inputs.node.row, N, C, error));
    if (!width) return BASIN_OK;
    const basin_relation *r = &x->network->relation[x->inputs.node.relation[0]];
    n = basin_int_min(r->edges, SAMPLE);
    BASIN_SCRATCH_RAW(float, edge, n *width, "an explanation", error);
    for (int64_t i = 0; i < n; i++) {
        basin_facts_columns(edge + i * width, facts, r->fact + i * r->edges / n * facts->count);
        basin_scaler_apply(edge + i * width, x->inputs.edge_scale, edge + i * width, 1);
    }
    return find_medians(&x->edge_typical, edge, n, width, error);
}

/* Totals of edges in the user's units, where no table has them. */
static basin_status find_totals(basin_explainer *x, basin_error *error) {
    int64_t N = x->network->nodes, width = x->inputs.shape.relations * x->facts;
    if (!x->inputs.shape.facts || x->table.node.facts) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&x->total, N * width, "an explanation", error));
    BASIN_TRY(basin_node_facts_fill(x->total, width, x->network, x->inputs.node.relation,
                                    x->inputs.shape.relations, true, error));
    return find_medians(&x->total_typical, x->total, N, width, error);
}

/* ---- opening ---- */

static basin_status open_tables(basin_explainer *x, basin_error *error) {
    const basin_nodes_ensemble *e = &x->model->ensemble;
    x->weight[BASIN_NODES_NETWORK] = e->fits ? e->share * e->scale : 1;
    x->weight[BASIN_NODES_TREES] = e->fits ? 1 - e->share : 0;
    x->shift = e->fits ? e->share * e->shift : 0;
    x->ensemble = e->fits ? e : &x->plain;
    x->plain.degree = x->model->settings.degree;
    x->plain.facts = basin_facts_are_features(&x->model->settings);
    if (!e->fits) BASIN_TRY(basin_nodes_ensemble_name(&x->plain, x->network, error));
    BASIN_TRY(basin_tree_table_open(&x->table, x->network, x->ensemble, x->work.memory, error));
    if (!(x->weight[BASIN_NODES_NETWORK] > 0)) return BASIN_OK;
    BASIN_TRY(basin_node_inputs_open(&x->inputs, x->network, &x->model->settings, error));
    BASIN_TRY(basin_node_inputs_scale(&x->inputs, &x->model->scale, &x->model->edge_scale, error));
    x->inputs.shape.listed = 0; /* gradients of zeros are needed as well */
    return BASIN_OK;
}

static basin_status open_one(basin_nodes_explanation **explanation, const basin_explainer *x,
                             int64_t node, basin_error *error) {
    BASIN_FREE_AT_EXIT int64_t *near = NULL;
    BASIN_TRY(BASIN_NEW(explanation, 1, "an explanation", error));
    basin_nodes_explanation *e = *explanation;
    e->node = node;
    e->typical_logit = e->rest = x->shift;
    e->features = x->slots * (1 + x->hops);
    BASIN_TRY(basin_explainer_list(&near, &e->neighbours, x, node, error));
    BASIN_TRY(BASIN_NEW(&e->neighbour, e->neighbours, "an explanation", error));
    BASIN_TRY(BASIN_NEW(&e->feature, e->features, "an explanation", error));
    for (int64_t i = 0; i < e->neighbours; i++) e->neighbour[i].node = near[i];
    for (int64_t i = 0; i < e->features; i++) {
        int64_t slot = i % x->slots;
        bool known = x->table.label && slot == x->slots - 1;
        e->feature[i] = (basin_nodes_feature){.column = known ? -1 : slot,
                                              .hop = i / x->slots,
                                              .value = NAN,
                                              .typical = NAN,
                                              .fact = fact_at(x, slot)};
    }
    return BASIN_OK;
}

void basin_explainer_forget(basin_explainer *x) {
    free(x->column_typical), free(x->input_typical), free(x->edge_typical);
}

static basin_status explainer_open(basin_explainer *x, const int64_t *node, basin_error *error) {
    BASIN_TRY(open_tables(x, error));
    if (x->whole) {
        x->give_rows(x, x->context);
        x->column_typical = x->whole->column_typical, x->input_typical = x->whole->input_typical;
        x->edge_typical = x->whole->edge_typical;
    } else {
        BASIN_TRY(basin_explainer_typical(x, error));
    }
    BASIN_TRY(open_relations(x, error));
    x->features = x->network->feature ? x->network->features : 0;
    x->facts = basin_node_facts_width(x->network, 1, true);
    x->slots = basin_explainer_fact_slot(x, x->network->relations, 0) + (x->table.label != NULL);
    x->hops = basin_int_max(x->model->settings.hops, 2);
    BASIN_TRY(find_totals(x, error));
    for (int64_t i = 0; i < x->count; i++) BASIN_TRY(open_one(&x->of[i], x, node[i], error));
    return BASIN_OK;
}

static void explainer_close(basin_explainer *x) {
    for (int r = 0; r < x->relations; r++) free(x->back[r].row), free(x->back[r].col);
    if (!x->whole) basin_explainer_forget(x);
    free(x->total), free(x->total_typical);
    basin_tree_table_close(&x->table);
    basin_node_inputs_close(&x->inputs);
    basin_nodes_ensemble_free(&x->plain);
}

/* ---- trees: Shapley values less a typical row's; parts of means go to the neighbours ---- */

/* How far a neighbour's value lies from a typical one, of the mean that a column is. */
static double away(const basin_explainer *x, int64_t column, int relation, int64_t neighbour) {
    const basin_tree_table *t = &x->table;
    double typical = (double)x->column_typical[column];
    int64_t own = column % t->node.own, block = column / t->node.own;
    if (column >= t->plain) {
        const float *sums = basin_known_sums(t, relation, neighbour);
        bool first = (column - t->plain) % 2 == 0;
        if (first) return t->label[neighbour] < 0 ? 0 : t->label[neighbour] - t->rate;
        return (sums[0] + 2 * t->rate) / (sums[1] + 2) - typical;
    }
    int64_t from = block <= t->node.relations ? 0 : 1 + relation; /* whose mean it is */
    return (double)t->node.row[neighbour * t->node.stride + from * t->node.own + own] - typical;
}

/* A mean above the typical one is due to the neighbours above it, in proportion; likewise below. */
static void hand_on(basin_nodes_explanation *e, const basin_explainer *x, int64_t column,
                    float value, double moves) {
    const basin_tree_table *t = &x->table;
    int relation = (int)(column >= t->plain ? (column - t->plain) / 2
                                            : (column / t->node.own - 1) % t->node.relations);
    const basin_relation *r = &x->network->relation[t->node.relation[relation]];
    double sign = value >= x->column_typical[column] ? 1 : -1, sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t k = r->row[e->node]; k < r->row[e->node + 1]; k++) {
            if (r->col[k] == e->node) continue;
            double far = fmax(0, sign * away(x, column, relation, r->col[k]));
            if (pass && far > 0) basin_explainer_push(e, r->col[k], moves * far / sum);
            if (!pass) sum += far;
        }
        if (sum > 0) continue;
        basin_explainer_push(e, -1, moves);
        return;
    }
}

/* The typical row's values taken off the node's; they sum to the distance of the logits. */
static basin_status add_fit(double *moves, basin_nodes_explanation *e, const basin_trees *trees,
                            const float *rows /* [2, columns] */, int64_t columns, double factor,
                            basin_error *error) {
    int64_t read = basin_trees_features(trees), largest = 0;
    double logit[2], sum = 0;
    BASIN_SCRATCH(float, value, 2 * (read + 1), "the reasons of trees", error); /* [2, read + 1] */
    BASIN_TRY(basin_trees_shapley(value, trees, rows, 2, columns, error));
    BASIN_TRY(basin_trees_predict(logit, trees, rows, 2, columns, error));
    for (int64_t c = 0; c < read; c++) {
        value[c] = value[read + 1 + c] - value[c];
        moves[c] += factor * (double)value[c];
        sum += (double)value[c];
        if (fabsf(value[c]) > fabsf(value[largest])) largest = c;
    }
    moves[largest] += factor * (logit[1] - logit[0] - sum); /* what single precision lost */
    e->typical_logit += factor * logit[0];
    e->rest += factor * logit[1];
    return BASIN_OK;
}

static basin_status explain_trees(basin_explainer *x, basin_error *error) {
    const basin_nodes_ensemble *trees = x->ensemble;
    int64_t columns = x->table.columns, slot, hop;
    double weight = x->weight[BASIN_NODES_TREES];
    if (!(weight > 0)) return BASIN_OK;
    BASIN_SCRATCH_RAW(float, rows, 2 * columns, "the reasons of trees", error);
    BASIN_SCRATCH_RAW(double, moves, columns, "the reasons of trees", error);
    memcpy(rows, x->column_typical, (size_t)columns * sizeof *rows);
    for (int64_t i = 0; i < x->count; i++) {
        basin_nodes_explanation *e = x->of[i];
        memset(moves, 0, (size_t)columns * sizeof *moves);
        basin_tree_table_rows(rows + columns, &x->table, &e->node, 0, 1);
        for (int64_t k = 0; k < trees->fits; k++) {
            double factor = weight * basin_nodes_ensemble_weight(trees, &x->table, k);
            if (factor > 0)
                BASIN_TRY(add_fit(moves, e, trees->trees[k], rows, columns, factor, error));
        }
        for (int64_t c = 0; c < columns; c++) {
            if (moves[c] == 0) continue;
            place(&slot, &hop, x, c);
            basin_explainer_add(e, x, slot, hop, moves[c]);
            if (hop)
                hand_on(e, x, c, rows[columns + c], moves[c]);
            else
                basin_explainer_push(e, -1, moves[c]);
        }
    }
    return BASIN_OK;
}

/* ---- finishing ---- */

static int larger_push(const void *a, const void *b) {
    const basin_nodes_neighbour *x = a, *y = b;
    int by_size = BASIN_COMPARE(fabs(y->push), fabs(x->push));
    return by_size ? by_size : BASIN_COMPARE(x->node, y->node);
}

/* Equal ones by hop, then by column; known labels (-1) are the last. */
static int larger_share(const void *a, const void *b) {
    const basin_nodes_feature *x = a, *y = b;
    int by_size = BASIN_COMPARE(fabs(y->share), fabs(x->share));
    if (by_size || x->hop != y->hop) return by_size ? by_size : BASIN_COMPARE(x->hop, y->hop);
    return BASIN_COMPARE((uint64_t)x->column, (uint64_t)y->column);
}

/* A value of the table as the user has it: degrees and most facts are logarithms there. */
static double in_units(const basin_explainer *x, int64_t slot, double value) {
    int64_t fact = fact_at(x, slot);
    if (fact >= 0) return basin_facts_value(x->network, fact, value);
    return slot < x->features || slot >= x->features + x->network->relations ? value : expm1(value);
}

static void set_value(basin_nodes_explanation *e, const basin_explainer *x, int64_t slot,
                      int64_t hop, double value, double typical) {
    basin_nodes_feature *f = &e->feature[hop * x->slots + slot];
    f->value = in_units(x, slot, value), f->typical = in_units(x, slot, typical);
}

/* Values of a row of the table, of the whole graph; then totals of edges where it has none. */
static void add_values(basin_nodes_explanation *e, const basin_explainer *x, const float *row) {
    int64_t slot, hop, width = x->total ? x->inputs.shape.relations * x->facts : 0;
    for (int64_t c = x->table.columns - 1; c >= 0; c--) {
        place(&slot, &hop, x, c);
        set_value(e, x, slot, hop, (double)row[c], (double)x->column_typical[c]);
    }
    for (int64_t c = 0; c < width; c++) {
        slot = basin_explainer_slot(x, x->features + c, x->inputs.node.relation, 0);
        set_value(e, x, slot, 0, (double)x->total[e->node * width + c],
                  (double)x->total_typical[c]);
    }
}

/* Nodes one and two hops away with known labels, and the anomalous ones, without the node. */
static void count_known(basin_nodes_explanation *e, const basin_explainer *x) {
    const basin_tree_table *t = &x->table;
    const float *sums = basin_known_sums(t, 0, e->node);
    const basin_relation *r = &x->network->relation[t->node.relation[0]];
    double count[2] = {sums[1], 0}, bad[2] = {sums[0], 0};
    bool own = t->label[e->node] >= 0 && !x->network->directed;
    for (int64_t k = r->row[e->node]; k < r->row[e->node + 1]; k++) {
        if (r->col[k] == e->node || (k > r->row[e->node] && r->col[k] == r->col[k - 1])) continue;
        sums = basin_known_sums(t, 0, r->col[k]);
        count[1] += sums[1] - own;
        bad[1] += sums[0] - (own && t->label[e->node]);
    }
    for (int hop = 0; hop < 2; hop++) {
        basin_nodes_feature *f = &e->feature[(hop + 1) * x->slots + x->slots - 1];
        f->known = (int64_t)count[hop], f->anomalous = (int64_t)bad[hop];
        f->value = bad[hop] / count[hop];
    }
}

/* What the calibration made the probability from: it rises strictly. */
static double uncalibrated(const basin_nodes_model *model, double probability) {
    double low = 0, high = 1;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        *(basin_nodes_calibrated(model, middle) < probability ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

/* Values are in the user's units. */
static basin_status finish(basin_nodes_explanation *e, const basin_explainer *x,
                           const double *probability, basin_error *error) {
    BASIN_SCRATCH_RAW(float, row, x->table.columns, "an explanation", error);
    e->probability = probability[e->node];
    e->threshold = x->model->threshold;
    e->rank = 1;
    for (int64_t i = 0; i < x->network->nodes; i++) e->rank += probability[i] > e->probability;
    e->logit = basin_logit(uncalibrated(x->model, e->probability));
    e->rest = e->logit - e->rest;
    e->missed = e->logit - e->typical_logit - e->rest;
    for (int64_t i = 0; i < e->features; i++) e->missed -= e->feature[i].share;
    basin_tree_table_rows(row, &x->table, &e->node, 0, 1);
    add_values(e, x, row);
    if (x->table.label) count_known(e, x);
    int64_t all = e->features;
    e->features = 0;
    for (int64_t i = 0; i < all; i++) /* slots that nothing reads go */
        if (e->feature[i].share != 0 || !isnan(e->feature[i].value))
            e->feature[e->features++] = e->feature[i];
    for (int64_t i = 0; i < e->neighbours; i++)
        e->neighbour[i].probability = probability[e->neighbour[i].node];
    qsort(e->feature, (size_t)e->features, sizeof *e->feature, larger_share);
    qsort(e->neighbour, (size_t)e->neighbours, sizeof *e->neighbour, larger_push);
    return BASIN_OK;
}

/* Energies and attention need the whole graph in a plan. */
static basin_status look(basin_explainer *x, basin_error *error) {
    const basin_nodes_settings *settings = &x->model->settings;
    size_t bytes = 0;
    if (!x->inputs.node.row || !basin_nodes_descends(settings)) return BASIN_OK;
    BASIN_TRY(
        basin_nodes_net_memory(&bytes, settings, &x->inputs.shape, true, x->work.backend, error));
    if (bytes <= basin_nodes_memory_limit(&x->work)) return basin_explain_look(x, error);
    for (int64_t i = 0; i < x->count; i++) x->of[i]->nearby = true;
    return BASIN_OK;
}

static basin_status explain(basin_explainer *x, const int64_t *node,
                            const basin_nodes_explain_options *o, basin_error *error) {
    const basin_network *network = x->network;
    /* With several classes those of one against all others are needed, which are not there. */
    const double *probability = x->model->settings.classes ? NULL : o->probability;
    BASIN_FREE_AT_EXIT double *scored = NULL;
    for (int64_t i = 0; i < x->count; i++)
        if (node[i] < 0 || node[i] >= network->nodes)
            return basin_fail(error, BASIN_BAD_VALUE, "%s: node %lld, expected 0 to %lld",
                              network->path, (long long)node[i], (long long)network->nodes - 1);
    BASIN_TRY(basin_nodes_check_network(x->model, network, error));
    if (!probability) {
        BASIN_TRY(BASIN_NEW_RAW(&scored, network->nodes, "scores", error));
        basin_nodes_predict_options how = {
            .watch = o->watch, .memory = o->memory, .stream = o->stream};
        BASIN_TRY(basin_nodes_predict(scored, x->model, network, &how, error));
        probability = scored;
    }
    BASIN_TRY(explainer_open(x, node, error));
    BASIN_TRY(explain_trees(x, error));
    BASIN_TRY(basin_explain_network(x, error));
    if (!o->brief) BASIN_TRY(look(x, error));
    for (int64_t i = 0; i < x->count; i++) BASIN_TRY(finish(x->of[i], x, probability, error));
    return BASIN_OK;
}

basin_status basin_explainer_run(basin_explainer *x, const int64_t *node,
                                 const basin_nodes_explain_options *o, basin_error *error) {
    x->work = (basin_nodes_resources){x->model->backend, o->watch, o->memory, o->stream, NULL};
    basin_status status = explain(x, node, o, error);
    explainer_close(x);
    for (int64_t i = 0; i < x->count && status; i++) {
        basin_nodes_explanation_free(x->of[i]);
        x->of[i] = NULL;
    }
    return status;
}

/* A copy of the network in the order of ids, where it is not: numbers go there and come back. */
static basin_status run_ordered(basin_explainer *x, const int64_t *node,
                                const basin_nodes_explain_options *o, basin_error *error) {
    const basin_network *given = x->network;
    BASIN_NETWORK_AT_EXIT basin_network *ordered = NULL;
    BASIN_TRY(basin_nodes_view(&ordered, &x->model->settings, given, error));
    if (!ordered) return basin_explainer_run(x, node, o, error);
    size_t count = (size_t)given->nodes;
    basin_nodes_explain_options how = *o;
    BASIN_SCRATCH_RAW(int64_t, place, count, "explanations", error);
    BASIN_SCRATCH_RAW(int64_t, own, x->count, "explanations", error);
    BASIN_SCRATCH_RAW(double, probability, count, "explanations", error);
    for (size_t i = 0; i < count; i++) {
        place[ordered->origin[i]] = (int64_t)i;
        if (o->probability) probability[i] = o->probability[ordered->origin[i]];
    }
    for (int64_t i = 0; i < x->count; i++)
        own[i] = node[i] >= 0 && node[i] < given->nodes ? place[node[i]] : node[i];
    if (o->probability) how.probability = probability;
    x->network = ordered;
    BASIN_TRY(basin_explainer_run(x, own, &how, error));
    for (int64_t i = 0; i < x->count; i++) {
        x->of[i]->node = node[i];
        for (int64_t k = 0; k < x->of[i]->neighbours; k++)
            x->of[i]->neighbour[k].node = ordered->origin[x->of[i]->neighbour[k].node];
    }
    return BASIN_OK;
}

basin_status basin_nodes_explain(basin_nodes_explanation **list, const basin_nodes_model *model,
                                 const basin_network *network, const int64_t *node, int64_t count,
                                 const basin_nodes_explain_options *options, basin_error *error) {
    static const basin_nodes_explain_options none = {0};
    const basin_nodes_explain_options *o = options ? options : &none;
    basin_nodes_model one = *model;
    BASIN_TRY(BASIN_SIZE_CHECK(o, "basin_nodes_explain_options", error));
    for (int64_t i = 0; i < count; i++) list[i] = NULL;
    if (model->settings.classes && (o->number < 0 || o->number >= model->settings.classes))
        return basin_fail(error, BASIN_BAD_VALUE, "class %lld, expected 0 to %lld",
                          (long long)o->number, (long long)model->settings.classes - 1);
    if (model->settings.classes) { /* a detector of that class: its odds against all others */
        one.settings.focus = o->number + 1;
        one.face.values = &one.settings;
    }
    basin_explainer x = {.model = &one, .network = network, .count = count, .of = list};
    return run_ordered(&x, node, o, error);
}

void basin_nodes_explanation_free(basin_nodes_explanation *explanation) {
    if (!explanation) return;
    BASIN_FREE(explanation->neighbour, explanation->feature, explanation);
}

/* ---- reasons in words, in the user's units ---- */

const char *basin_nodes_reason_name(char text[BASIN_MAX_REASON], const basin_network *network,
                                    const basin_nodes_feature *f) {
    const basin_names *names = &network->column;
    char plain[BASIN_FACT_TEXT], hops[60] = "";
    int64_t features = network->feature ? network->features : 0, side = f->column - features;
    bool sided = network->both || (network->directed && network->relations == 1);
    if (f->column < 0)
        snprintf(plain, sizeof plain, "known anomalies, %lld of %lld known %s",
                 (long long)f->anomalous, (long long)f->known,
                 f->hop > 1 ? "2 hops away" : "neighbours");
    else if (f->fact >= 0)
        basin_nodes_fact_name(plain, network, f->fact);
    else if (side >= 0)
        snprintf(plain, sizeof plain, "number of %sneighbours",
                 !sided || !side      ? ""
                 : side == BASIN_COME ? "in-"
                                      : "out-");
    else if (names->count > f->column)
        snprintf(plain, sizeof plain, "%.140s", names->text + names->at[f->column]);
    else
        snprintf(plain, sizeof plain, "feature %lld", (long long)f->column);
    if (f->column >= 0 && f->hop)
        snprintf(hops, sizeof hops, ", mean %lld hop%s away", (long long)f->hop,
                 f->hop > 1 ? "s" : "");
    snprintf(text, BASIN_MAX_REASON, "%s%s", plain, hops);
    return text;
}

const char *basin_nodes_reason_print(char text[BASIN_MAX_REASON], const basin_nodes_explanation *e,
                                     const basin_network *network, const basin_schema *schema,
                                     int n) {
    char name[BASIN_MAX_REASON], value[BASIN_VALUE_TEXT], typical[BASIN_VALUE_TEXT];
    *text = 0;
    for (int64_t i = 0; i < e->features; i++) {
        const basin_nodes_feature *f = &e->feature[i];
        if (!(f->share > 0) || n-- > 0) continue;
        basin_schema_value(value, schema, f->column, f->value, f->hop);
        basin_schema_value(typical, schema, f->column, f->typical, f->hop);
        snprintf(text, BASIN_MAX_REASON, "%.180s %s (typical %s) %+.2f",
                 basin_nodes_reason_name(name, network, f), value, typical, f->share);
        break;
    }
    return text;
}
