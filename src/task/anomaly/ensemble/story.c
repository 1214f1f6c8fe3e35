/* An explanation of an ensemble: the network's features get its share of the logit, the trees'
 * columns are added to them, and values are shown unscaled, as trees read them. A column of several
 * relations counts as one: the parts of the relations add up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/anomaly/ensemble/story.h"

typedef struct story {
    const basin_anomaly_ensemble *ensemble;
    const basin_node_inputs *inputs;
    basin_tree_table table;
    int64_t features, slots, hops; /* of the network; slots of a hop: its columns and the table's */
    int64_t *slot;                 /* [table.own] */
    basin_anomaly_feature *told;   /* [slots (1 + hops)] */
    double *part, *typical;        /* [table.columns] */
} story;

/* Which of the relations that the network runs on is that of the table; -1: none. */
static int64_t relation_slot(const story *s, int r) {
    for (int k = 0; k < s->inputs->shape.relations; k++)
        if (s->inputs->relation[k] == s->table.relation[r]) return k;
    return -1;
}

/* Where the table's own columns stand: as the network numbers them, new ones behind. */
static void place_columns(story *s) {
    const basin_node_inputs *inputs = s->inputs;
    int64_t R = s->table.relations, *slot = s->slot;
    int64_t degrees = inputs->settings->degree ? inputs->shape.relations : 0;
    int64_t width = s->table.facts / R; /* of one relation */
    bool facts = inputs->features > s->features + degrees;
    s->slots = inputs->features;
    for (int64_t c = 0; c < s->features; c++) *slot++ = c;
    for (int r = 0; r < R && s->ensemble->degree; r++) {
        int64_t k = degrees ? relation_slot(s, r) : -1;
        *slot++ = k >= 0 ? s->features + k : s->slots++;
    }
    for (int r = 0; r < R; r++) {
        int64_t k = facts ? relation_slot(s, r) : -1;
        for (int64_t c = 0; c < width; c++)
            *slot++ = k >= 0 ? s->features + degrees + k * width + c : s->slots++;
    }
}

static basin_anomaly_feature *place_of(const story *s, int64_t column) {
    int64_t block = column / s->table.own, own = column % s->table.own;
    if (column >= s->table.plain) /* the share among neighbours, then among theirs */
        return &s->told[(1 + (column - s->table.plain) % 2) * s->slots + s->slots - 1];
    int64_t hop = block == 0 ? 0 : 1 + (block - 1) / s->table.relations;
    return &s->told[hop * s->slots + s->slot[own]];
}

static basin_status story_open(story *s, const basin_anomaly_ensemble *ensemble,
                               const basin_node_inputs *inputs, size_t memory, basin_error *error) {
    const basin_network *network = inputs->network;
    *s = (story){.ensemble = ensemble, .inputs = inputs};
    basin_status status = basin_tree_table_open(&s->table, network, ensemble, memory, error);
    if (status) return status;
    s->features = network->feature ? network->features : 0;
    s->slot = basin_array_new((size_t)s->table.own, sizeof *s->slot);
    if (!s->slot) return basin_fail(error, BASIN_NO_MEMORY, "no memory for an explanation");
    place_columns(s);
    s->slots += s->table.label != NULL;
    s->hops = inputs->settings->hops > 2 ? inputs->settings->hops : 2;
    s->told = calloc((size_t)(s->slots * (1 + s->hops)) + 1, sizeof *s->told);
    s->part = calloc((size_t)s->table.columns, sizeof *s->part);
    s->typical = calloc((size_t)s->table.columns, sizeof *s->typical);
    if (!s->told || !s->part || !s->typical)
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for an explanation");
    for (int64_t i = 0; i < s->slots * (1 + s->hops); i++) {
        bool known = s->table.label && i % s->slots == s->slots - 1;
        s->told[i] =
            (basin_anomaly_feature){.column = known ? -1 : i % s->slots, .hop = i / s->slots};
    }
    return BASIN_OK;
}

static void story_close(story *s) {
    basin_tree_table_close(&s->table);
    free(s->told), free(s->part), free(s->typical), free(s->slot);
}

/* The network's features, with its share; values of hops that trees do not see stay. */
static void take_network(story *s, const basin_anomaly_explanation *e) {
    for (int64_t i = 0; i < e->features; i++) {
        basin_anomaly_feature *f = &s->told[e->feature[i].hop * s->slots + e->feature[i].column];
        *f = e->feature[i];
        f->share *= s->ensemble->share * s->ensemble->scale;
    }
}

/* Means of the table's columns over all nodes. */
static basin_status find_typical(story *s, basin_error *error) {
    float *row = basin_array_new((size_t)s->table.columns, sizeof *row);
    int64_t N = s->table.network->nodes;
    if (!row) return basin_fail(error, BASIN_NO_MEMORY, "no memory for an explanation");
    for (int64_t i = 0; i < N; i++) {
        basin_tree_table_rows(row, &s->table, NULL, i, 1);
        for (int64_t c = 0; c < s->table.columns; c++) s->typical[c] += (double)row[c] / (double)N;
    }
    free(row);
    return BASIN_OK;
}

/* The trees' columns; values are those of the whole graph, which comes first of the relations. */
static basin_status take_trees(story *s, basin_anomaly_explanation *e, basin_error *error) {
    double mean, logit, share = s->ensemble->share, weight = 1 - share;
    float *row = basin_array_new((size_t)s->table.columns, sizeof *row);
    if (!row) return basin_fail(error, BASIN_NO_MEMORY, "no memory for an explanation");
    basin_tree_table_rows(row, &s->table, &e->node, 0, 1);
    basin_status status = find_typical(s, error);
    if (!status)
        status = basin_anomaly_ensemble_reasons(s->part, &mean, &logit, s->ensemble, &s->table,
                                                e->node, error);
    for (int64_t c = 0; c < s->table.columns && !status; c++) {
        int64_t block = c / s->table.own;
        basin_anomaly_feature *f = place_of(s, c);
        f->share += weight * s->part[c];
        bool plain = c < s->table.plain;
        if (plain && block && (block - 1) % s->table.relations) continue;
        if (!plain && c >= s->table.plain + 2) continue;
        f->value = (double)row[c];
        f->typical = s->typical[c];
    }
    free(row);
    if (status) return status;
    e->logit = share * (s->ensemble->scale * e->logit + s->ensemble->shift) + weight * logit;
    e->typical_logit =
        share * (s->ensemble->scale * e->typical_logit + s->ensemble->shift) + weight * mean;
    return BASIN_OK;
}

basin_status basin_anomaly_story_mix(double *probability, const basin_anomaly_ensemble *ensemble,
                                     const basin_network *network, size_t memory,
                                     basin_error *error) {
    double *trees = basin_array_new((size_t)network->nodes, sizeof *trees);
    if (!trees) return basin_fail(error, BASIN_NO_MEMORY, "no memory for scores");
    basin_status status =
        basin_anomaly_ensemble_score(trees, ensemble, network, memory, NULL, error);
    if (!status)
        basin_anomaly_ensemble_mix(probability, ensemble, trees, probability, network->nodes);
    free(trees);
    return status;
}

static int larger_size(const void *a, const void *b) {
    double x = fabs(((const basin_anomaly_feature *)a)->share);
    double y = fabs(((const basin_anomaly_feature *)b)->share);
    return (x < y) - (x > y);
}

basin_status basin_anomaly_story_tell(basin_anomaly_explanation *e,
                                      const basin_anomaly_ensemble *ensemble,
                                      const basin_node_inputs *inputs, size_t memory,
                                      basin_error *error) {
    story s;
    basin_status status = story_open(&s, ensemble, inputs, memory, error);
    if (!status) {
        take_network(&s, e);
        status = take_trees(&s, e, error);
    }
    if (!status) {
        free(e->feature);
        e->feature = s.told;
        e->features = s.slots * (1 + s.hops);
        s.told = NULL;
        qsort(e->feature, (size_t)e->features, sizeof *e->feature, larger_size);
    }
    story_close(&s);
    return status;
}
