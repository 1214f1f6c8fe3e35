/* Why nodes score as they do, apart from the network's share; see explain.h. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sort.h"
#include "base/try.h"
#include "basin/tasks/nodes.h"
#include "data/network/network.h"
#include "task/nodes/explain.h"
#include "task/nodes/nodes.h"

/* The same edges, seen from the other end. */
static basin_status turn_back(basin_relation *back, const basin_relation *from, int64_t nodes,
                              basin_error *error) {
    back->row = calloc((size_t)nodes + 2, sizeof *back->row);
    back->col = basin_array_new((size_t)from->edges, sizeof *back->col);
    back->edges = from->edges;
    if (!back->row || !back->col) return basin_fail_memory(error, "the edges of a graph");
    for (int64_t e = 0; e < from->edges; e++) back->row[from->col[e] + 2]++;
    for (int64_t i = 0; i < nodes; i++) back->row[i + 2] += back->row[i + 1];
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t e = from->row[i]; e < from->row[i + 1]; e++)
            back->col[back->row[from->col[e] + 1]++] = (int32_t)i;
    return BASIN_OK;
}

basin_status basin_vicinity_open(basin_vicinity *near, const basin_network *network,
                                 const int *relation, int relations, basin_error *error) {
    basin_status status = BASIN_OK;
    *near = (basin_vicinity){.network = network};
    for (int i = 0; i < relations && !status; i++) {
        const basin_relation *own = &network->relation[relation[i]];
        bool twice = false;
        for (int k = 0; k < near->relations; k++) twice = twice || near->relation[k] == own;
        if (twice) continue;
        near->relation[near->relations] = own;
        if (network->directed)
            status = turn_back(&near->back[near->relations], own, network->nodes, error);
        near->relations++;
    }
    return status;
}

void basin_vicinity_close(basin_vicinity *near) {
    for (int i = 0; i < near->relations; i++) free(near->back[i].row), free(near->back[i].col);
    *near = (basin_vicinity){0};
}

static int64_t degree_of(const basin_relation *r, int64_t node) {
    return r->row ? r->row[node + 1] - r->row[node] : 0;
}

static int64_t copy_row(int64_t *to, const basin_relation *r, int64_t node) {
    int64_t degree = degree_of(r, node);
    for (int64_t e = 0; e < degree; e++) to[e] = r->col[r->row[node] + e];
    return degree;
}

basin_status basin_vicinity_list(int64_t **neighbour, int64_t *count, const basin_vicinity *near,
                                 int64_t node, basin_error *error) {
    int64_t all = 0, kept = 0;
    for (int r = 0; r < near->relations; r++)
        all += degree_of(near->relation[r], node) + degree_of(&near->back[r], node);
    int64_t *list = *neighbour = basin_array_new((size_t)all, sizeof *list);
    *count = 0;
    if (!list) return basin_fail_memory(error, "neighbours");
    for (int r = 0, at = 0; r < near->relations; r++) {
        at += (int)copy_row(list + at, near->relation[r], node);
        at += (int)copy_row(list + at, &near->back[r], node);
    }
    qsort(list, (size_t)all, sizeof *list, basin_compare_int64);
    for (int64_t i = 0; i < all; i++)
        if (list[i] != node && (!kept || list[i] != list[kept - 1])) list[kept++] = list[i];
    *count = kept;
    return BASIN_OK;
}

/* ---- What is told of nodes: typical values, where shares are gathered, and explanations made of
 * them; see explain.h. */

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
    BASIN_TRY(basin_vicinity_list(&next, &count, &x->near, node, error));
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

/* Medians of the columns of `rows` rows. */
static basin_status find_medians(float *median, const float *x, int64_t rows, int64_t columns,
                                 basin_error *error) {
    float *value = basin_array_new((size_t)rows, sizeof *value);
    if (!value) return basin_fail_memory(error, "an explanation");
    for (int64_t c = 0; c < columns; c++) {
        for (int64_t i = 0; i < rows; i++) value[i] = x[i * columns + c];
        qsort(value, (size_t)rows, sizeof *value, basin_compare_float);
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
    basin_status status = node && row && x->column_typical && x->input_typical
                              ? BASIN_OK
                              : basin_fail_memory(error, "an explanation");
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
    BASIN_TRY(basin_node_inputs_open(&x->inputs, x->network, &x->model->settings, error));
    status = basin_node_inputs_scale(&x->inputs, &x->model->scale, &x->model->edge_scale, error);
    x->inputs.shape.listed = 0; /* gradients are wanted of what is 0, too */
    return status;
}

static basin_status count_slots(basin_explainer *x, basin_error *error) {
    x->features = x->network->feature ? x->network->features : 0;
    x->slot = basin_array_new((size_t)x->table.own, sizeof *x->slot);
    x->fact = basin_array_new((size_t)x->table.own, sizeof *x->fact);
    if (!x->slot || !x->fact) return basin_fail_memory(error, "explanations");
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
        return basin_fail_memory(error, "an explanation");
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
        row && x->total && x->total_typical ? BASIN_OK : basin_fail_memory(error, "an explanation");
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
    return basin_fail_memory(error, "an explanation");
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
    BASIN_TRY(BASIN_NEW(&x->told, count + 1, "explanations", error));
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
        return basin_fail_memory(error, "an explanation");
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

/* ---- Reasons in words, in the user's units. */

const char *basin_nodes_reason_name(char text[BASIN_REASON_TEXT], const basin_network *network,
                                    const basin_nodes_feature *f) {
    const basin_names *names = &network->column;
    char plain[BASIN_FACT_TEXT];
    int64_t features = network->feature ? network->features : 0;
    if (f->column < 0)
        snprintf(plain, sizeof plain, "known anomalies");
    else if (f->fact >= 0)
        basin_nodes_fact_name(plain, network, f->fact);
    else if (f->column >= features)
        snprintf(plain, sizeof plain, "number of neighbours");
    else if (names->count > f->column)
        snprintf(plain, sizeof plain, "%.140s", names->text + names->at[f->column]);
    else
        snprintf(plain, sizeof plain, "feature %lld", (long long)f->column);
    if (f->hop)
        snprintf(text, BASIN_REASON_TEXT, "%s, mean %lld hop%s away", plain, (long long)f->hop,
                 f->hop > 1 ? "s" : "");
    else
        snprintf(text, BASIN_REASON_TEXT, "%s", plain);
    return text;
}

const char *basin_nodes_reason_print(char text[BASIN_REASON_TEXT], const basin_nodes_explanation *e,
                                     const basin_network *network, const basin_schema *schema,
                                     int n) {
    char name[BASIN_REASON_TEXT], value[BASIN_VALUE_TEXT], typical[BASIN_VALUE_TEXT];
    *text = 0;
    for (int64_t i = 0; i < e->features; i++) {
        const basin_nodes_feature *f = &e->feature[i];
        if (!(f->share > 0) || n-- > 0) continue;
        basin_schema_value(value, schema, f->column, f->value, f->hop);
        basin_schema_value(typical, schema, f->column, f->typical, f->hop);
        snprintf(text, BASIN_REASON_TEXT, "%.180s %s (typical %s) %+.2f",
                 basin_nodes_reason_name(name, network, f), value, typical, f->share);
        break;
    }
    return text;
}

/* ---- What the columns of trees move a node's logit by: its Shapley values less those of a typical
 * row, both by XGBoost. What means over neighbours add is passed on to the neighbours behind them.
 */

/* ---- through neighbours ---- */

/* How far a neighbour's value lies from a typical one, of the mean that a column is. */
static double away(const basin_explainer *x, int64_t column, int relation, int64_t neighbour) {
    const basin_tree_table *t = &x->table;
    double typical = (double)x->column_typical[column];
    int64_t own = column % t->own, block = column / t->own;
    if (column >= t->plain) {
        const basin_known_sums *s = &t->sums[relation];
        bool first = (column - t->plain) % 2 == 0;
        if (first) return t->label[neighbour] < 0 ? 0 : t->label[neighbour] - t->rate;
        return (s->anomalous[neighbour] + 2 * t->rate) / (s->count[neighbour] + 2) - typical;
    }
    if (block <= t->relations) return (double)t->raw[neighbour * t->own + own] - typical;
    return (double)t->near[(neighbour * t->relations + relation) * t->own + own] - typical;
}

/* A mean over neighbours that lies above the typical one was made so by those that lie above, each
 * as far as it does; likewise below. */
static void hand_on(basin_told *told, const basin_explainer *x, int64_t column, int relation,
                    float value, double moves) {
    const basin_relation *r = &x->network->relation[x->table.relation[relation]];
    double sign = value >= x->column_typical[column] ? 1 : -1, sum = 0;
    for (int64_t e = r->row[told->node]; e < r->row[told->node + 1]; e++)
        if (r->col[e] != told->node) sum += fmax(0, sign * away(x, column, relation, r->col[e]));
    if (!(sum > 0)) {
        basin_told_push(told, -1, moves);
        return;
    }
    for (int64_t e = r->row[told->node]; e < r->row[told->node + 1]; e++) {
        double far = fmax(0, sign * away(x, column, relation, r->col[e]));
        if (r->col[e] != told->node && far > 0) basin_told_push(told, r->col[e], moves * far / sum);
    }
}

/* ---- a node ---- */

static int trees_relation_of(const basin_explainer *x, int64_t column) {
    const basin_tree_table *t = &x->table;
    if (column >= t->plain) return (int)((column - t->plain) / 2);
    return (int)((column / t->own - 1) % t->relations);
}

static void tell(basin_told *told, const basin_explainer *x, const double *part, const float *row) {
    for (int64_t c = 0; c < x->table.columns; c++) {
        int64_t slot, hop;
        if (part[c] == 0) continue;
        basin_explainer_place(&slot, &hop, x, c);
        basin_told_add(told, x, slot, hop, part[c]);
        if (hop)
            hand_on(told, x, c, trees_relation_of(x, c), row[c], part[c]);
        else
            basin_told_push(told, -1, part[c]);
    }
}

/* Both rows of a fit: the typical one's values taken off the node's, their sum is the distance
 * between the two logits. */
static basin_status add_fit(double *moves, basin_told *told, const basin_trees *trees,
                            const float *rows /* [2, columns] */, int64_t columns, double factor,
                            basin_error *error) {
    int64_t read = basin_trees_features(trees);
    BASIN_FREE_AT_EXIT float *value = NULL; /* [2, read + 1] */
    double logit[2], sum = 0;
    BASIN_TRY(BASIN_NEW(&value, 2 * (read + 1), "the reasons of trees", error));
    BASIN_TRY(basin_trees_shapley(value, trees, rows, 2, columns, error));
    BASIN_TRY(basin_trees_predict(logit, trees, rows, 2, columns, error));
    int64_t largest = 0;
    for (int64_t c = 0; c < read; c++) {
        value[c] = value[read + 1 + c] - value[c];
        moves[c] += factor * (double)value[c];
        sum += (double)value[c];
        if (fabsf(value[c]) > fabsf(value[largest])) largest = c;
    }
    moves[largest] += factor * (logit[1] - logit[0] - sum); /* what single precision lost */
    told->typical += factor * logit[0];
    told->reached += factor * logit[1];
    return BASIN_OK;
}

basin_status basin_explain_trees(basin_explainer *x, basin_error *error) {
    const basin_nodes_ensemble *e = x->ensemble;
    int64_t columns = x->table.columns;
    double weight = x->weight[BASIN_NODES_TREES];
    BASIN_FREE_AT_EXIT float *rows = NULL;
    BASIN_FREE_AT_EXIT double *moves = NULL;
    if (!(weight > 0)) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&rows, 2 * columns, "the reasons of trees", error));
    BASIN_TRY(BASIN_NEW_RAW(&moves, columns, "the reasons of trees", error));
    memcpy(rows, x->column_typical, (size_t)columns * sizeof *rows);
    for (int64_t i = 0; i < x->count; i++) {
        basin_told *told = &x->told[i];
        memset(moves, 0, (size_t)columns * sizeof *moves);
        basin_tree_table_rows(rows + columns, &x->table, &told->node, 0, 1);
        for (int64_t k = 0; k < e->fits; k++) {
            double factor = weight * basin_nodes_ensemble_weight(e, &x->table, k);
            if (factor > 0)
                BASIN_TRY(add_fit(moves, told, e->trees[k], rows, columns, factor, error));
        }
        tell(told, x, moves, rows + columns);
    }
    return BASIN_OK;
}

/* ---- Why nodes score as they do; see explain.h, and include/basin/tasks/nodes.h for what callers
 * get. */

/* Energies and attention want the whole graph in a plan. */
static basin_status look(basin_explainer *x, bool *fits, basin_error *error) {
    const basin_nodes_settings *settings = &x->model->settings;
    size_t bytes = 0;
    *fits = true;
    if (!x->inputs.table || !basin_nodes_descends(settings)) return BASIN_OK;
    basin_status status =
        basin_nodes_net_memory(&bytes, settings, &x->inputs.shape, true, x->work.backend, error);
    *fits = bytes <= basin_nodes_memory_limit(&x->work);
    return status || !*fits ? status : basin_explain_look(x, error);
}

static basin_status explain(basin_nodes_explanation **list, const basin_nodes_model *model,
                            const basin_network *network, const int64_t *node, int64_t count,
                            const double *probability, bool brief,
                            const basin_nodes_resources *work, basin_error *error) {
    basin_explainer x;
    bool fits = true;
    basin_status status = basin_explainer_open(&x, model, network, node, count, work, error);
    if (!status) status = basin_explain_trees(&x, error);
    if (!status) status = basin_explain_network(&x, error);
    if (!status && !brief) status = look(&x, &fits, error);
    for (int64_t i = 0; i < count && !status; i++) {
        status = basin_told_finish(&list[i], &x, &x.told[i], probability, error);
        if (!status) list[i]->nearby = !fits;
    }
    basin_explainer_close(&x);
    return status;
}

static basin_status check_nodes(const basin_network *network, const int64_t *node, int64_t count,
                                basin_error *error) {
    for (int64_t i = 0; i < count; i++)
        if (node[i] < 0 || node[i] >= network->nodes)
            return basin_fail(error, BASIN_BAD_VALUE, "%s: node %lld, wanted 0 to %lld",
                              network->path, (long long)node[i], (long long)network->nodes - 1);
    return BASIN_OK;
}

static basin_status explain_as(basin_nodes_explanation **list, const basin_nodes_model *model,
                               const basin_network *network, const int64_t *node, int64_t count,
                               const basin_nodes_work *work, basin_error *error) {
    basin_nodes_resources with = basin_nodes_resources_of(work, model->backend);
    /* Of several classes those of one against all others are needed, which are not at hand. */
    const double *probability = work && !model->settings.classes ? work->probability : NULL;
    BASIN_FREE_AT_EXIT double *scored = NULL;
    BASIN_TRY(check_nodes(network, node, count, error));
    BASIN_TRY(basin_nodes_check_network(model, network, error));
    if (!probability) {
        BASIN_TRY(BASIN_NEW_RAW(&scored, network->nodes, "scores", error));
        BASIN_TRY(basin_nodes_score(scored, model, network, work, error));
        probability = scored;
    }
    return explain(list, model, network, node, count, probability, work && work->brief, &with,
                   error);
}

basin_status basin_nodes_explain(basin_nodes_explanation **list, const basin_nodes_model *model,
                                 const basin_network *network, const int64_t *node, int64_t count,
                                 const basin_nodes_work *work, basin_error *error) {
    int64_t number = work ? work->number : 0;
    basin_nodes_model one = *model;
    for (int64_t i = 0; i < count; i++) list[i] = NULL;
    if (model->settings.classes && (number < 0 || number >= model->settings.classes))
        return basin_fail(error, BASIN_BAD_VALUE, "class %lld, wanted 0 to %lld", (long long)number,
                          (long long)model->settings.classes - 1);
    if (model->settings.classes) { /* a detector of that class: its odds against all others */
        one.settings.focus = number + 1;
        one.face.values = &one.settings;
    }
    basin_status status = explain_as(list, &one, network, node, count, work, error);
    for (int64_t i = 0; i < count && status; i++) {
        basin_nodes_explanation_free(list[i]);
        list[i] = NULL;
    }
    return status;
}

void basin_nodes_explanation_free(basin_nodes_explanation *explanation) {
    if (!explanation) return;
    free(explanation->neighbour);
    free(explanation->feature);
    free(explanation);
}
