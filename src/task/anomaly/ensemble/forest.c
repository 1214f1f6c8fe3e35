/* Trees of an ensemble: grown from several seeds, asked for logits, kept in a model file; see
 * ensemble.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/anomaly/anomaly.h"
#include "task/anomaly/ensemble/ensemble.h"

void basin_anomaly_ensemble_free(basin_anomaly_ensemble *e) {
    for (int64_t i = 0; i < e->fits; i++) basin_trees_free(e->trees[i]);
    for (int r = 0; r < e->relations; r++) free(e->relation[r]);
    free(e->trees);
    basin_known_labels_free(&e->known);
    *e = (basin_anomaly_ensemble){0};
}

static basin_status add_relation(basin_anomaly_ensemble *e, const char *name, basin_error *error) {
    e->relation[e->relations] = basin_string_copy(name);
    if (!e->relation[e->relations])
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for a relation's name");
    e->relations++;
    return BASIN_OK;
}

basin_status basin_anomaly_ensemble_name(basin_anomaly_ensemble *e, const basin_network *network,
                                         basin_error *error) {
    int whole = basin_network_main_relation(network);
    basin_status status = BASIN_OK;
    if (whole >= 0) return add_relation(e, network->relation[whole].name, error);
    if (network->relations < 1 || network->relations > BASIN_TREE_RELATIONS)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: %d relations and no union of them; wanted one named homo",
                          network->path, network->relations);
    for (int r = 0; r < network->relations && !status; r++)
        status = add_relation(e, network->relation[r].name, error);
    return status;
}

/* ---- growing ---- */

/* More rows teach a tree little and take their time. */
enum { TRAINS = 1000000, VALIDATIONS = 300000 };

typedef struct lesson {
    int64_t *node; /* [trains + validations] */
    float *x;      /* [trains + validations, columns] */
    int32_t *label;
    int64_t *row;     /* 0, 1, .. */
    double weight[2]; /* of the classes */
    basin_trees_data data;
} lesson;

/* Nodes of a part, evenly thinned out to at most `most`. */
static int64_t list_part(int64_t *node, const uint8_t *part, int64_t nodes, int which,
                         int64_t most) {
    int64_t all = basin_split_nodes(NULL, part, nodes, which), seen = 0, count = 0;
    for (int64_t i = 0; i < nodes; i++) {
        if (part[i] != which) continue;
        bool take = all <= most || seen * most / all != (seen + 1) * most / all;
        if (take && node) node[count] = i;
        count += take;
        seen++;
    }
    return count;
}

static basin_status lesson_new(lesson *l, const basin_tree_table *table, const uint8_t *part,
                               basin_error *error) {
    const basin_network *network = table->network;
    int64_t N = network->nodes, trains = list_part(NULL, part, N, BASIN_PART_TRAIN, TRAINS);
    int64_t validations = list_part(NULL, part, N, BASIN_PART_VAL, VALIDATIONS);
    size_t rows = (size_t)(trains + validations), cells;
    *l = (lesson){0};
    if (basin_size_multiply(&cells, rows, (size_t)table->columns)) {
        l->node = basin_array_new(rows, sizeof *l->node);
        l->row = basin_array_new(rows, sizeof *l->row);
        l->label = basin_array_new(rows, sizeof *l->label);
        l->x = basin_array_new(cells, sizeof *l->x);
    }
    if (!l->node || !l->row || !l->label || !l->x)
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for trees of %zu nodes", rows);
    list_part(l->node, part, N, BASIN_PART_TRAIN, TRAINS);
    list_part(l->node + trains, part, N, BASIN_PART_VAL, VALIDATIONS);
    for (size_t i = 0; i < rows; i++) {
        l->row[i] = (int64_t)i;
        l->label[i] = network->label[l->node[i]];
    }
    basin_tree_table_rows(l->x, table, l->node, 0, (int64_t)rows);
    l->data = (basin_trees_data){.x = l->x,
                                 .label = l->label,
                                 .features = table->columns,
                                 .train = l->row,
                                 .trains = trains,
                                 .validation = l->row + trains,
                                 .validations = validations};
    return BASIN_OK;
}

static void lesson_free(lesson *l) { free(l->node), free(l->row), free(l->label), free(l->x); }

/* The first half of the fits sees no shares of known labels: they serve networks without any. */
static void hide(lesson *l, const basin_tree_table *table) {
    for (int64_t i = 0; i < l->data.trains + l->data.validations; i++)
        for (int64_t c = table->plain; c < table->columns; c++) l->x[i * table->columns + c] = 0;
}

/* Every other fit counts anomalies more and allows leaves of a few rows: better where labels are
 * few, and its mistakes differ. */
static void vary(lesson *l, basin_trees_spec *spec, int64_t fit, uint64_t seed) {
    double anomalies = 0, rows = (double)l->data.trains;
    for (int64_t i = 0; i < l->data.trains; i++) anomalies += l->label[i] == 1;
    bool bold = fit % 2;
    l->weight[0] = 1;
    l->weight[1] = sqrt((rows - anomalies) / anomalies);
    l->data.weight = bold ? l->weight : NULL;
    spec->least_hessian = bold ? 0.1 : BASIN_TREES_DEFAULT.least_hessian;
    spec->seed = seed + 1000003u * (uint64_t)fit;
}

basin_status basin_anomaly_ensemble_grow(basin_anomaly_ensemble *e, int64_t fits, uint64_t seed,
                                         const basin_tree_table *table, const uint8_t *part,
                                         const basin_watch *watch, basin_error *error) {
    static const int64_t unjudged = 200; /* rounds, where no validation says when to stop */
    basin_trees_spec spec = BASIN_TREES_DEFAULT;
    lesson l;
    e->trees = calloc((size_t)fits + 1, sizeof(basin_trees *));
    if (!e->trees) return basin_fail(error, BASIN_NO_MEMORY, "no memory for trees");
    basin_status status = lesson_new(&l, table, part, error);
    if (!status && !l.data.validations) spec.rounds = unjudged;
    e->labelled = e->known.count ? fits / 2 : 0;
    if (!status) hide(&l, table);
    while (e->fits < fits && !status && !basin_watch_stopped(watch)) {
        if (e->fits == fits - e->labelled)
            basin_tree_table_rows(l.x, table, l.node, 0, l.data.trains + l.data.validations);
        vary(&l, &spec, e->fits, seed);
        status = basin_trees_fit(&e->trees[e->fits], &l.data, &spec, watch, error);
        if (!status) e->fits++;
    }
    lesson_free(&l);
    return status;
}

/* ---- logits ---- */

int64_t basin_anomaly_ensemble_heard(const basin_anomaly_ensemble *e,
                                     const basin_tree_table *table) {
    return table->known || e->labelled >= e->fits ? e->fits : e->fits - e->labelled;
}

basin_status basin_anomaly_ensemble_logits(double *logit, const basin_anomaly_ensemble *e,
                                           const basin_tree_table *table, basin_error *error) {
    enum { BLOCK = 4096 };
    int64_t N = table->network->nodes, fits = basin_anomaly_ensemble_heard(e, table);
    size_t cells;
    float *x = NULL;
    double *one = basin_array_new(BLOCK, sizeof *one);
    if (basin_size_multiply(&cells, BLOCK, (size_t)table->columns))
        x = basin_array_new(cells, sizeof *x);
    basin_status status = one && x ? BASIN_OK : BASIN_NO_MEMORY;
    if (status) basin_fail(error, status, "no memory for the scores of trees");
    for (int64_t first = 0; first < N && !status; first += BLOCK) {
        int64_t rows = N - first < BLOCK ? N - first : BLOCK;
        basin_tree_table_rows(x, table, NULL, first, rows);
        for (int64_t i = 0; i < rows; i++) logit[first + i] = 0;
        for (int64_t k = 0; k < fits; k++) {
            basin_trees_predict(one, e->trees[k], x, rows);
            for (int64_t i = 0; i < rows; i++) logit[first + i] += one[i] / (double)fits;
        }
    }
    free(one);
    free(x);
    return status;
}

basin_status basin_anomaly_ensemble_score(double *logit, const basin_anomaly_ensemble *e,
                                          const basin_network *network, size_t memory,
                                          const basin_watch *watch, basin_error *error) {
    basin_tree_table table;
    basin_status status = basin_tree_table_open(&table, network, e, memory, error);
    if (status) return status;
    for (int64_t k = 0; k < e->fits && !status; k++)
        if (e->trees[k]->features != table.columns || e->trees[k]->scores != 1)
            status = basin_fail(
                error, BASIN_BAD_SHAPE, "%s: %lld columns for trees that were trained on %lld",
                network->path, (long long)table.columns, (long long)e->trees[k]->features);
    if (!status && e->known.count && !table.known)
        basin_watch_note(watch,
                         "%s: none of the nodes that the detector was trained on: trees that look "
                         "at known labels are left out",
                         network->path);
    if (!status) status = basin_anomaly_ensemble_logits(logit, e, &table, error);
    basin_tree_table_close(&table);
    return status;
}

/* ---- files ---- */

static const char *const part_name[2] = {"trees", "network"};
static const char *const figure[] = {"auroc", "auprc"};

/* What each reaches on validation: "validation.trees.auprc". */
static const char *figure_key(char text[64], int which, int i) {
    snprintf(text, 64, "validation.%s.%s", part_name[which], figure[i]);
    return text;
}

static basin_status store_figures(basin_bundle *bundle, const basin_anomaly_ensemble *e,
                                  basin_error *error) {
    char key[64];
    basin_status status = BASIN_OK;
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < 2 && e->alone[which][BASIN_PART_VAL].measures && !status; i++)
            status = basin_anomaly_set_number(
                bundle, figure_key(key, which, i),
                basin_score_get(&e->alone[which][BASIN_PART_VAL], figure[i]), error);
    return status;
}

basin_status basin_anomaly_ensemble_store(basin_bundle *bundle, const basin_anomaly_ensemble *e,
                                          basin_error *error) {
    char names[2048] = "", prefix[32];
    if (!e->fits) return BASIN_OK;
    for (int r = 0; r < e->relations; r++) {
        size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", r ? "\n" : "", e->relation[r]);
    }
    basin_status status = basin_bundle_meta_set(bundle, "trees.relations", names, error);
    if (!status) status = basin_anomaly_set_number(bundle, "trees.fits", (double)e->fits, error);
    if (!status) status = basin_anomaly_set_number(bundle, "network.share", e->share, error);
    if (!status) status = basin_anomaly_set_number(bundle, "network.scale", e->scale, error);
    if (!status) status = basin_anomaly_set_number(bundle, "network.shift", e->shift, error);
    if (!status)
        status = basin_anomaly_set_number(bundle, "trees.labelled", (double)e->labelled, error);
    if (!status) status = basin_anomaly_set_number(bundle, "trees.rate", e->rate, error);
    if (!status) status = basin_known_labels_store(bundle, "known.", &e->known, error);
    if (!status) status = store_figures(bundle, e, error);
    for (int64_t k = 0; k < e->fits && !status; k++) {
        snprintf(prefix, sizeof prefix, "trees%lld.", (long long)k);
        status = basin_trees_store(bundle, prefix, e->trees[k], error);
    }
    return status;
}

static basin_status load_relations(basin_anomaly_ensemble *e, const basin_bundle *bundle,
                                   basin_error *error) {
    const char *text = basin_bundle_meta(bundle, "trees.relations");
    basin_status status = BASIN_OK;
    while (text && *text && !status && e->relations < BASIN_TREE_RELATIONS) {
        char name[256];
        int length = (int)strcspn(text, "\n");
        snprintf(name, sizeof name, "%.*s", length, text);
        status = add_relation(e, name, error);
        text += length + (text[length] == '\n');
    }
    if (status || e->relations) return status;
    return basin_fail(error, BASIN_BAD_FILE, "%s: trees.relations is absent; wanted names",
                      basin_bundle_path(bundle));
}

static basin_status load_figures(basin_anomaly_ensemble *e, const basin_bundle *bundle,
                                 basin_error *error) {
    char key[64];
    double value;
    basin_status status = BASIN_OK;
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < 2 && !status; i++) {
            if (!basin_bundle_meta(bundle, figure_key(key, which, i))) continue;
            status = basin_anomaly_get_number(&value, bundle, key, 0, 1, error);
            if (!status) basin_score_add(&e->alone[which][BASIN_PART_VAL], figure[i], value);
        }
    return status;
}

basin_status basin_anomaly_ensemble_load(basin_anomaly_ensemble *e, const basin_bundle *bundle,
                                         basin_error *error) {
    double fits = 0;
    char prefix[32];
    basin_status status = basin_anomaly_get_number(&fits, bundle, "trees.fits", 1, 64, error);
    if (!status) status = load_relations(e, bundle, error);
    if (!status) status = basin_anomaly_get_number(&e->share, bundle, "network.share", 0, 1, error);
    if (!status)
        status = basin_anomaly_get_number(&e->scale, bundle, "network.scale", 0, 1e300, error);
    if (!status)
        status = basin_anomaly_get_number(&e->shift, bundle, "network.shift", -1e300, 1e300, error);
    double labelled = 0;
    if (!status)
        status = basin_anomaly_get_number(&labelled, bundle, "trees.labelled", 0, fits, error);
    if (!status) status = basin_anomaly_get_number(&e->rate, bundle, "trees.rate", 0, 1, error);
    if (!status) status = basin_known_labels_load(&e->known, bundle, "known.", error);
    if (!status) status = load_figures(e, bundle, error);
    e->labelled = (int64_t)labelled;
    if (status) return status;
    e->trees = calloc((size_t)fits + 1, sizeof(basin_trees *));
    if (!e->trees) return basin_fail(error, BASIN_NO_MEMORY, "no memory for trees");
    while (e->fits < (int64_t)fits && !status) {
        snprintf(prefix, sizeof prefix, "trees%lld.", (long long)e->fits);
        status = basin_trees_load(&e->trees[e->fits], bundle, prefix, error);
        if (!status) e->fits++;
    }
    return status;
}
