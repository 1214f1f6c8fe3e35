/* What is told of nodes: typical values, where shares are gathered, and explanations made of them;
 * see explain.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/nodes/explain/explain.h"

/* ---- slots ---- */

/* Which of the relations that the network runs on is that of the table; -1: none. */
static int64_t relation_of(const basin_explainer *x, int r) {
    for (int k = 0; k < x->inputs.shape.relations; k++)
        if (x->inputs.relation[k] == x->table.relation[r]) return k;
    return -1;
}

/* Where the network's own columns of facts stand, or what its energy reads of them. */
static void place_facts(basin_explainer *x, int64_t behind) {
    const basin_node_inputs *inputs = &x->inputs;
    bool features = basin_facts_are_features(&x->model->settings);
    x->edge_slots = basin_node_facts_width(x->network, 1);
    for (int r = 0; r < inputs->shape.relations && (features || inputs->shape.facts); r++) {
        x->edge_slot[r] = features ? behind + r * x->edge_slots : x->slots;
        if (!features) x->slots += x->edge_slots;
        x->edge_relations++;
    }
}

/* Where the table's own columns stand: as the network numbers them, new ones behind. */
static void place_columns(basin_explainer *x) {
    const basin_node_inputs *inputs = &x->inputs; /* not opened: without features */
    int64_t R = x->table.relations, at = 0, F = x->features;
    int64_t degrees = inputs->features && x->model->settings.degree ? inputs->shape.relations : 0;
    int64_t width = x->table.facts / R; /* of one relation */
    x->slots = inputs->features > F ? inputs->features : F;
    place_facts(x, F + degrees);
    for (; at < F; at++) x->slot[at] = at, x->fact[at] = -1;
    for (int r = 0; r < R && x->ensemble->degree; r++) {
        int64_t k = degrees ? relation_of(x, r) : -1;
        x->fact[at] = -1;
        x->slot[at++] = k >= 0 ? F + k : x->slots++;
    }
    for (int r = 0; r < R; r++) {
        int64_t k = x->edge_relations ? relation_of(x, r) : -1;
        for (int64_t c = 0; c < width; c++) {
            x->fact[at] = c;
            x->slot[at++] = k >= 0 ? x->edge_slot[k] + c : x->slots++;
        }
    }
}

void basin_explainer_place(int64_t *slot, int64_t *hop, const basin_explainer *x, int64_t column) {
    const basin_tree_table *t = &x->table;
    int64_t block = column / t->own, own = column % t->own;
    if (column >= t->plain) { /* the share among neighbours, then among theirs */
        *slot = x->slots - 1;
        *hop = 1 + (column - t->plain) % 2;
        return;
    }
    *hop = block == 0 ? 0 : 1 + (block - 1) / t->relations;
    *slot = x->slot[own];
}

void basin_told_add(basin_told *told, const basin_explainer *x, int64_t slot, int64_t hop,
                    double moves) {
    told->feature[(hop < x->hops ? hop : x->hops) * x->slots + slot] += moves;
}

static int64_t find(const basin_told *told, int64_t neighbour) {
    int64_t low = 0, high = told->neighbours;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (told->neighbour[middle] < neighbour)
            low = middle + 1;
        else
            high = middle;
    }
    return low < told->neighbours && told->neighbour[low] == neighbour ? low : -1;
}

void basin_told_push(basin_told *told, int64_t neighbour, double moves) {
    int64_t at = neighbour < 0 ? -1 : find(told, neighbour);
    *(at < 0 ? &told->own : &told->push[at]) += moves;
}

basin_status basin_told_push_between(basin_told *told, const basin_explainer *x, int64_t node,
                                     double moves, basin_error *error) {
    int64_t *next, count, between = 0;
    basin_status status = basin_vicinity_list(&next, &count, &x->near, node, error);
    if (status) return status;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0, k = 0; i < count && k < told->neighbours;) {
            if (next[i] == told->neighbour[k]) {
                if (pass) basin_told_push(told, next[i], moves / (double)between);
                between += !pass;
            }
            bool lower = next[i] < told->neighbour[k];
            i += lower || next[i] == told->neighbour[k];
            k += !lower;
        }
    free(next);
    return BASIN_OK;
}

/* ---- a typical node ---- */

enum { SAMPLE = 1024 }; /* nodes that say what is typical */

static int lower_first(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Medians of the columns of `rows` rows. */
static basin_status find_medians(float *median, const float *x, int64_t rows, int64_t columns,
                                 basin_error *error) {
    float *value = basin_array_new((size_t)rows, sizeof *value);
    if (!value) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for an explanation");
    for (int64_t c = 0; c < columns; c++) {
        for (int64_t i = 0; i < rows; i++) value[i] = x[i * columns + c];
        qsort(value, (size_t)rows, sizeof *value, lower_first);
        median[c] = value[rows / 2];
    }
    free(value);
    return BASIN_OK;
}

/* Of the table in the user's units and of the network's inputs, from nodes evenly spread. */
static basin_status find_typical(basin_explainer *x, basin_error *error) {
    int64_t N = x->network->nodes, n = N < SAMPLE ? N : SAMPLE, C = x->inputs.shape.columns;
    int64_t most = x->table.columns > C ? x->table.columns : C;
    int64_t *node = basin_array_new((size_t)n, sizeof *node);
    float *row = basin_array_new((size_t)n * (size_t)most, sizeof *row);
    x->column_typical = basin_array_new((size_t)x->table.columns, sizeof *x->column_typical);
    x->input_typical = basin_array_new((size_t)C, sizeof *x->input_typical);
    basin_status status =
        node && row && x->column_typical && x->input_typical
            ? BASIN_OK
            : basin_fail(error, BASIN_NO_MEMORY, "out of memory for an explanation");
    for (int64_t i = 0; i < n && !status; i++) node[i] = i * N / n;
    if (!status) basin_tree_table_rows(row, &x->table, node, 0, n);
    if (!status) status = find_medians(x->column_typical, row, n, x->table.columns, error);
    for (int64_t i = 0; i < n && !status && C; i++)
        memcpy(row + i * C, x->inputs.table + node[i] * C, (size_t)C * sizeof *row);
    if (!status && C) status = find_medians(x->input_typical, row, n, C, error);
    free(node);
    free(row);
    return status;
}

/* ---- opening ---- */

/* What z is made of. */
static void weigh(basin_explainer *x) {
    const basin_nodes_ensemble *e = &x->model->ensemble;
    x->weight[BASIN_NODES_NETWORK] = e->fits ? e->share * e->scale : 1;
    x->weight[BASIN_NODES_TREES] = e->fits ? 1 - e->share : 0;
    x->shift = e->fits ? e->share * e->shift : 0;
}

static basin_status open_tables(basin_explainer *x, basin_error *error) {
    basin_status status = BASIN_OK;
    x->ensemble = x->model->ensemble.fits ? &x->model->ensemble : &x->plain;
    x->plain.degree = x->model->settings.degree;
    x->plain.facts = basin_facts_are_features(&x->model->settings);
    if (!x->model->ensemble.fits) status = basin_nodes_ensemble_name(&x->plain, x->network, error);
    if (!status)
        status = basin_tree_table_open(&x->table, x->network, x->ensemble, x->work.memory, error);
    if (status || !(x->weight[BASIN_NODES_NETWORK] > 0)) return status;
    status = basin_node_inputs_open(&x->inputs, x->network, &x->model->settings, error);
    if (status) return status;
    status = basin_node_inputs_scale(&x->inputs, &x->model->scale, &x->model->edge_scale, error);
    x->inputs.shape.listed = 0; /* gradients are wanted of what is 0, too */
    return status;
}

static basin_status count_slots(basin_explainer *x, basin_error *error) {
    x->features = x->network->feature ? x->network->features : 0;
    x->slot = basin_array_new((size_t)x->table.own, sizeof *x->slot);
    x->fact = basin_array_new((size_t)x->table.own, sizeof *x->fact);
    if (!x->slot || !x->fact)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for explanations");
    place_columns(x);
    x->slots += x->table.label != NULL;
    x->hops = x->model->settings.hops > 2 ? x->model->settings.hops : 2;
    return BASIN_OK;
}

/* What a typical edge carries, as the energy reads it: medians of edges evenly spread. */
static basin_status find_typical_edge(basin_explainer *x, basin_error *error) {
    const basin_facts *facts = &x->network->facts;
    int64_t width = x->inputs.shape.facts;
    if (!width) return BASIN_OK;
    const basin_relation *r = &x->network->relation[x->inputs.relation[0]];
    int64_t n = r->edges < SAMPLE ? r->edges : SAMPLE;
    float *row = basin_array_new((size_t)(n * width), sizeof *row);
    x->edge_typical = calloc((size_t)width, sizeof *x->edge_typical);
    if (!row || !x->edge_typical) {
        free(row);
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for an explanation");
    }
    for (int64_t i = 0; i < n; i++) {
        float *own = row + i * width;
        basin_facts_columns(own, facts, r->fact + i * r->edges / n * facts->count);
        basin_scaler_apply(own, x->inputs.reader.scale, own, 1);
    }
    basin_status status = n ? find_medians(x->edge_typical, row, n, width, error) : BASIN_OK;
    free(row);
    return status;
}

/* Totals of edges in the user's units, where no table has them. */
static basin_status find_totals(basin_explainer *x, basin_error *error) {
    int64_t N = x->network->nodes, n = N < SAMPLE ? N : SAMPLE;
    int64_t width = basin_node_facts_width(x->network, x->edge_relations);
    if (!x->inputs.shape.facts || x->table.facts) return BASIN_OK;
    float *row = basin_array_new((size_t)(n * width), sizeof *row);
    x->total = basin_array_new((size_t)N * (size_t)width, sizeof *x->total);
    x->total_typical = basin_array_new((size_t)width, sizeof *x->total_typical);
    basin_status status =
        row && x->total && x->total_typical
            ? BASIN_OK
            : basin_fail(error, BASIN_NO_MEMORY, "out of memory for an explanation");
    if (!status)
        status = basin_node_facts_fill(x->total, width, x->network, x->inputs.relation,
                                       x->edge_relations, error);
    for (int64_t i = 0; i < n && !status; i++)
        memcpy(row + i * width, x->total + i * N / n * width, (size_t)width * sizeof *row);
    if (!status) status = find_medians(x->total_typical, row, n, width, error);
    free(row);
    return status;
}

static basin_status open_near(basin_explainer *x, basin_error *error) {
    int relation[2 * BASIN_TREE_RELATIONS], relations = 0;
    for (int r = 0; r < x->table.relations; r++) relation[relations++] = x->table.relation[r];
    for (int r = 0; r < x->inputs.shape.relations; r++)
        relation[relations++] = x->inputs.relation[r];
    return basin_vicinity_open(&x->near, x->network, relation, relations, error);
}

static basin_status open_told(basin_told *told, const basin_explainer *x, int64_t node,
                              basin_error *error) {
    told->node = node;
    told->typical = told->reached = x->shift;
    told->feature = calloc((size_t)(x->slots * (1 + x->hops)) + 1, sizeof *told->feature);
    basin_status status =
        basin_vicinity_list(&told->neighbour, &told->neighbours, &x->near, node, error);
    if (!status) told->push = calloc((size_t)told->neighbours + 1, sizeof *told->push);
    if (status || (told->feature && told->push)) return status;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for an explanation");
}

basin_status basin_explainer_open(basin_explainer *x, const basin_nodes_model *model,
                                  const basin_network *network, const int64_t *node, int64_t count,
                                  const basin_nodes_resources *work, basin_error *error) {
    *x = (basin_explainer){.model = model, .network = network, .work = *work};
    weigh(x);
    basin_status status = open_tables(x, error);
    if (!status) status = find_typical(x, error);
    if (!status) status = find_typical_edge(x, error);
    if (!status) status = open_near(x, error);
    if (!status) status = count_slots(x, error);
    if (!status) status = find_totals(x, error);
    if (status) return status;
    x->told = calloc((size_t)count + 1, sizeof *x->told);
    if (!x->told) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for explanations");
    for (; x->count < count && !status; x->count++)
        status = open_told(&x->told[x->count], x, node[x->count], error);
    return status;
}

void basin_explainer_close(basin_explainer *x) {
    for (int64_t i = 0; i < x->count; i++) {
        free(x->told[i].feature), free(x->told[i].neighbour), free(x->told[i].push);
        free(x->told[i].share), free(x->told[i].returned);
    }
    free(x->told), free(x->energy);
    free(x->column_typical), free(x->input_typical), free(x->slot), free(x->fact);
    free(x->edge_typical), free(x->total), free(x->total_typical);
    basin_vicinity_close(&x->near);
    basin_tree_table_close(&x->table);
    basin_node_inputs_close(&x->inputs);
    basin_nodes_ensemble_free(&x->plain);
}

/* ---- explanations ---- */

static int larger_push(const void *a, const void *b) {
    const basin_nodes_neighbour *x = a, *y = b;
    if (fabs(x->push) != fabs(y->push)) return fabs(x->push) < fabs(y->push) ? 1 : -1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Equal ones by hop, then by column; known labels (-1) are the last. */
static int larger_share(const void *a, const void *b) {
    const basin_nodes_feature *x = a, *y = b;
    uint64_t first = (uint64_t)x->column, second = (uint64_t)y->column;
    if (fabs(x->share) != fabs(y->share)) return fabs(x->share) < fabs(y->share) ? 1 : -1;
    if (x->hop != y->hop) return x->hop < y->hop ? -1 : 1;
    return (first > second) - (first < second);
}

/* A value of the table as the user has it: degrees and most facts are logarithms there. */
static double in_units(const basin_explainer *x, int64_t column, double value) {
    const basin_tree_table *t = &x->table;
    int64_t own = column % t->own;
    if (column >= t->plain || own < x->features) return value;
    if (x->fact[own] < 0) return expm1(value);
    return basin_facts_value(&x->network->facts, x->fact[own], value);
}

/* Values of a row of the table: of the whole graph, which comes first of the relations. */
static void tell_values(basin_nodes_explanation *e, const basin_explainer *x, const float *row) {
    const basin_tree_table *t = &x->table;
    for (int64_t c = t->columns - 1; c >= 0; c--) {
        int64_t slot, hop;
        basin_explainer_place(&slot, &hop, x, c);
        basin_nodes_feature *f = &e->feature[hop * x->slots + slot];
        f->value = in_units(x, c, (double)row[c]);
        f->typical = in_units(x, c, (double)x->column_typical[c]);
        if (c < t->plain) f->fact = x->fact[c % t->own];
    }
}

/* Which of the columns of edges a slot is; -1: none. */
static int64_t fact_at(const basin_explainer *x, int64_t slot) {
    for (int r = 0; r < x->edge_relations; r++)
        if (slot >= x->edge_slot[r] && slot < x->edge_slot[r] + x->edge_slots)
            return slot - x->edge_slot[r];
    return -1;
}

static void tell_totals(basin_nodes_explanation *e, const basin_explainer *x, int64_t node) {
    int64_t width = x->edge_relations * x->edge_slots;
    for (int64_t c = 0; c < width && x->total; c++) {
        int64_t fact = c % x->edge_slots;
        basin_nodes_feature *f = &e->feature[x->edge_slot[c / x->edge_slots] + fact];
        f->value = basin_facts_value(&x->network->facts, fact, (double)x->total[node * width + c]);
        f->typical = basin_facts_value(&x->network->facts, fact, (double)x->total_typical[c]);
    }
}

static void tell_features(basin_nodes_explanation *e, const basin_explainer *x,
                          const basin_told *told, const float *row) {
    for (int64_t i = 0; i < e->features; i++) {
        int64_t slot = i % x->slots;
        bool known = x->table.label && slot == x->slots - 1;
        e->feature[i] = (basin_nodes_feature){.column = known ? -1 : slot,
                                              .hop = i / x->slots,
                                              .value = NAN,
                                              .typical = NAN,
                                              .fact = fact_at(x, slot),
                                              .share = told->feature[i]};
    }
    tell_values(e, x, row);
    tell_totals(e, x, told->node);
    qsort(e->feature, (size_t)e->features, sizeof *e->feature, larger_share);
}

static void tell_neighbours(basin_nodes_explanation *e, const basin_told *told,
                            const double *probability) {
    e->has_attention = told->share != NULL;
    for (int64_t i = 0; i < e->neighbours; i++)
        e->neighbour[i] =
            (basin_nodes_neighbour){.node = told->neighbour[i],
                                    .share = told->share ? told->share[i] : 0,
                                    .returned = told->returned ? told->returned[i] : 0,
                                    .push = told->push[i],
                                    .probability = probability[told->neighbour[i]]};
    qsort(e->neighbour, (size_t)e->neighbours, sizeof *e->neighbour, larger_push);
}

static void tell_energy(basin_nodes_explanation *e, const basin_explainer *x,
                        const basin_told *told) {
    e->has_energy = told->has_energy;
    e->attention = told->energy[0];
    e->hopfield = told->energy[1];
    e->energy = e->attention + e->hopfield;
    e->energy_mean = x->energy_mean;
    e->energy_deviation = x->energy_deviation;
    int64_t below = 0, N = x->network->nodes;
    while (x->energy && below < N && x->energy[below] < e->energy) below++;
    e->energy_below = (double)below / (double)N;
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

basin_status basin_told_finish(basin_nodes_explanation **explanation, const basin_explainer *x,
                               const basin_told *told, const double *probability,
                               basin_error *error) {
    basin_nodes_explanation *e = *explanation = calloc(1, sizeof *e);
    float *row = basin_array_new((size_t)x->table.columns, sizeof *row);
    if (e) {
        e->neighbours = told->neighbours;
        e->features = x->slots * (1 + x->hops);
        e->neighbour = basin_array_new((size_t)e->neighbours, sizeof *e->neighbour);
        e->feature = basin_array_new((size_t)e->features, sizeof *e->feature);
    }
    if (!e || !row || !e->neighbour || !e->feature) {
        free(row);
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for an explanation");
    }
    e->node = told->node;
    e->probability = probability[told->node];
    e->threshold = x->model->threshold;
    e->rank = 1;
    for (int64_t i = 0; i < x->network->nodes; i++) e->rank += probability[i] > e->probability;
    e->logit = basin_nodes_logit(uncalibrated(x->model, e->probability));
    e->typical_logit = told->typical;
    e->own = told->own;
    e->rest = e->logit - told->reached;
    basin_tree_table_rows(row, &x->table, &told->node, 0, 1);
    tell_features(e, x, told, row);
    tell_neighbours(e, told, probability);
    tell_energy(e, x, told);
    free(row);
    return BASIN_OK;
}
