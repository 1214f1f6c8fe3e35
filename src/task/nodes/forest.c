/* Trees of an ensemble: grown from several seeds, asked for logits, kept in a model file; see
 * ensemble.h. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/team/team.h"
#include "base/try.h"
#include "task/nodes/ensemble.h"
#include "task/nodes/nodes.h"

void basin_nodes_ensemble_free(basin_nodes_ensemble *e) {
    for (int64_t i = 0; i < e->fits; i++) basin_trees_free(e->trees[i]);
    for (int r = 0; r < e->relations; r++) free(e->relation[r]);
    free(e->trees);
    basin_known_labels_free(&e->known);
    *e = (basin_nodes_ensemble){0};
}

static basin_status add_relation(basin_nodes_ensemble *e, const char *name, basin_error *error) {
    e->relation[e->relations] = basin_string_copy(name);
    if (!e->relation[e->relations]) return basin_fail_memory(error, "a relation's name");
    e->relations++;
    return BASIN_OK;
}

basin_status basin_nodes_ensemble_name(basin_nodes_ensemble *e, const basin_network *network,
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

/* More rows teach a tree little and take their time: there may be so many, at most half of them
 * anomalies. Anomalies are rarely so many; what is left out are normal nodes. */
enum { TRAINS = 100000, VALIDATIONS = 100000 };

typedef struct rows_to_fit {
    int64_t *node;   /* [trains + validations] */
    float *x;        /* [trains + validations, columns] */
    uint8_t *label;  /* [trains + validations] */
    double taken[2]; /* share of each class that is here; the rest weighs with it */
    basin_trees_data data;
} rows_to_fit;

/* Nodes of a part, evenly thinned out to a share of each class; `node` may be NULL. */
static int64_t list_part(int64_t *node, const basin_network *network, const uint8_t *part,
                         int which, const double share[2]) {
    int64_t seen[2] = {0, 0}, count = 0;
    for (int64_t i = 0; i < network->nodes; i++) {
        if (part[i] != which) continue;
        int class = network->label[i] == 1;
        int64_t before = (int64_t)((double)seen[class] * share[class]);
        bool take = (int64_t)((double)++seen[class] * share[class]) > before;
        if (take && node) node[count] = i;
        count += take;
    }
    return count;
}

/* What is taken of each class, and in what part of that validation is. */
static double find_shares(double share[2], const basin_network *network, const uint8_t *part) {
    static const double anomalies_alone[2] = {0, 1}, normals_alone[2] = {1, 0};
    double a = (double)list_part(NULL, network, part, BASIN_PART_TRAIN, anomalies_alone);
    double n = (double)list_part(NULL, network, part, BASIN_PART_TRAIN, normals_alone);
    share[1] = fmin(1, TRAINS / 2 / fmax(a, 1));
    share[0] = fmin(1, (TRAINS - share[1] * a) / fmax(n, 1));
    double judges = (double)list_part(NULL, network, part, BASIN_PART_VAL, share);
    return fmin(1, VALIDATIONS / fmax(judges, 1));
}

static basin_status rows_new(rows_to_fit *l, const basin_tree_source *source, const uint8_t *part,
                             basin_error *error) {
    const basin_network *network = source->network;
    const basin_tree_table *table = source->table;
    double judging = find_shares(l->taken, network, part);
    const double judges[2] = {judging * l->taken[0], judging * l->taken[1]};
    int64_t trains = list_part(NULL, network, part, BASIN_PART_TRAIN, l->taken);
    int64_t validations = list_part(NULL, network, part, BASIN_PART_VAL, judges);
    size_t rows = (size_t)(trains + validations), cells;
    if (!basin_size_multiply(&cells, rows, (size_t)table->columns))
        return basin_fail_memory(error, "rows of trees");
    BASIN_TRY(BASIN_NEW_RAW(&l->node, rows, "rows of trees", error));
    BASIN_TRY(BASIN_NEW_RAW(&l->label, rows, "rows of trees", error));
    BASIN_TRY(BASIN_NEW_RAW(&l->x, cells, "rows of trees", error));
    list_part(l->node, network, part, BASIN_PART_TRAIN, l->taken);
    list_part(l->node + trains, network, part, BASIN_PART_VAL, judges);
    for (size_t i = 0; i < rows; i++) l->label[i] = network->label[l->node[i]] == 1;
    l->data = (basin_trees_data){.x = l->x,
                                 .label = l->label,
                                 .stride = table->columns,
                                 .trains = trains,
                                 .validations = validations};
    BASIN_TRY(source->rows(source, l->x, l->node, trains, error));
    return source->rows(source, l->x + trains * table->columns, l->node + trains, validations,
                        error);
}

static void rows_free(rows_to_fit *l) { free(l->node), free(l->label), free(l->x); }

static bool is_own(basin_tree_view view) {
    return view == BASIN_VIEW_OWN || view == BASIN_VIEW_OWN_BOLD;
}

/* The first so many columns are what a view has. */
static int64_t columns_of(const basin_tree_table *table, basin_tree_view view) {
    return is_own(view) ? table->own : view == BASIN_VIEW_HOPS ? table->plain : table->columns;
}

/* Every other fit that sees neighbours, and a view of its own, upweight anomalies and allow leaves
 * of a few rows. Others stop by ranks, which few labels disturb less than the loss. Where anomalies
 * are few, a tree sees all rows; where rows are many, larger steps do. Own columns are few, so are
 * the levels they need. */
static void vary(basin_trees_data *data, basin_trees_spec *spec, const rows_to_fit *l,
                 basin_tree_view view, int64_t turn) {
    const double few = 30, many = 20000;
    double anomalies = 0, rows = (double)data->trains;
    for (int64_t i = 0; i < data->trains; i++) anomalies += l->label[i] == 1;
    double ratio = (rows - anomalies) / l->taken[0] / (anomalies / l->taken[1]);
    bool own = is_own(view), upweights = own ? view == BASIN_VIEW_OWN_BOLD : turn % 2;
    spec->stop = (own ? turn % 2 : turn / 2 % 2) ? BASIN_TREES_BY_RANKS : BASIN_TREES_BY_LOSS;
    if (anomalies < few) spec->rows = 1;
    if (rows > many) spec->rate = 0.1;
    if (own) spec->depth = 4, spec->l2 = 0.3;
    data->weight[0] = 1 / l->taken[0];
    data->weight[1] = (upweights ? sqrt(ratio) : 1) / l->taken[1];
    if (upweights) spec->least_hessian = 0.1;
}

/* How many fits each view gets: a quarter, the rest to the means over neighbours. */
static void deal(int64_t fits[BASIN_TREE_VIEWS], int64_t all, bool known) {
    fits[BASIN_VIEW_OWN] = fits[BASIN_VIEW_OWN_BOLD] = all / 4;
    fits[BASIN_VIEW_KNOWN] = known ? (all + 2) / 4 : 0;
    fits[BASIN_VIEW_HOPS] = all - all / 4 * 2 - fits[BASIN_VIEW_KNOWN];
}

/* All fits alike, whatever they see. */
static void weigh_alike(basin_nodes_ensemble *e) {
    for (int v = 0; v < BASIN_TREE_VIEWS; v++)
        e->weight[v] = e->fits ? (double)e->seeing[v] / (double)e->fits : 0;
}

typedef struct growing {
    basin_nodes_ensemble *ensemble;
    const rows_to_fit *rows;
    const basin_tree_table *table;
    uint64_t seed;
    const basin_watch *watch;
} growing;

static basin_tree_view view_of(const basin_nodes_ensemble *e, int64_t fit, int64_t *turn) {
    int view = 0;
    while (view + 1 < BASIN_TREE_VIEWS && fit >= e->seeing[view]) fit -= e->seeing[view++];
    if (turn) *turn = fit;
    return (basin_tree_view)view;
}

static basin_status grow_fit(const void *context, int64_t fit, basin_error *error) {
    static const int64_t unjudged = 200; /* rounds, where no validation says when to stop */
    const growing *g = context;
    basin_trees_spec spec = BASIN_TREES_DEFAULT;
    basin_trees_data data = g->rows->data;
    int64_t turn;
    basin_tree_view view = view_of(g->ensemble, fit, &turn);
    data.features = columns_of(g->table, view);
    if (!data.validations) spec.rounds = unjudged;
    spec.seed = g->seed + 1000003u * (uint64_t)fit;
    vary(&data, &spec, g->rows, view, turn);
    return basin_trees_fit(&g->ensemble->trees[fit], &data, &spec, g->watch, error);
}

basin_status basin_nodes_ensemble_grow(basin_nodes_ensemble *e, int64_t fits, uint64_t seed,
                                       const basin_tree_source *source, const uint8_t *part,
                                       const basin_watch *watch, basin_error *error) {
    rows_to_fit rows = {0};
    growing g = {e, &rows, source->table, seed, watch};
    BASIN_TRY(BASIN_NEW(&e->trees, fits + 1, "trees", error));
    e->fits = fits;
    deal(e->seeing, fits, e->known.count > 0);
    weigh_alike(e);
    basin_status status = rows_new(&rows, source, part, error);
    if (!status) status = basin_team_try(grow_fit, &g, fits, 1, error);
    rows_free(&rows);
    return status;
}

/* ---- logits ---- */

double basin_nodes_ensemble_weight(const basin_nodes_ensemble *e, const basin_tree_table *table,
                                   int64_t fit) {
    int64_t others = e->fits - e->seeing[BASIN_VIEW_KNOWN];
    double whole = 0;
    for (int v = 0; v < BASIN_VIEW_KNOWN; v++) whole += e->weight[v];
    basin_tree_view view = view_of(e, fit, NULL);
    if (table->known || !others) return e->weight[view] / (double)e->seeing[view];
    if (view == BASIN_VIEW_KNOWN) return 0;
    return whole > 0 ? e->weight[view] / whole / (double)e->seeing[view] : 1 / (double)others;
}

/* Adds each fit's logits to rows [rows, N] of sums: those of its view, or of all together. */
static basin_status add_logits(double *logit, const basin_nodes_ensemble *e,
                               const basin_tree_table *table, bool apart, basin_error *error) {
    enum { BLOCK = 4096 };
    int64_t N = table->network->nodes;
    size_t cells;
    float *x = NULL;
    double *one = basin_array_new(BLOCK, sizeof *one);
    if (basin_size_multiply(&cells, BLOCK, (size_t)table->columns))
        x = basin_array_new(cells, sizeof *x);
    basin_status status = one && x ? BASIN_OK : BASIN_NO_MEMORY;
    if (status) basin_fail(error, status, "out of memory for the scores of trees");
    for (int64_t first = 0; first < N && !status; first += BLOCK) {
        int64_t rows = N - first < BLOCK ? N - first : BLOCK;
        basin_tree_table_rows(x, table, NULL, first, rows);
        for (int64_t k = 0; k < e->fits && !status; k++) {
            int view = view_of(e, k, NULL);
            double weight =
                apart ? 1 / (double)e->seeing[view] : basin_nodes_ensemble_weight(e, table, k);
            double *sum = logit + (apart ? view * N : 0) + first;
            if (weight <= 0) continue;
            status = basin_trees_predict(one, e->trees[k], x, rows, table->columns, error);
            for (int64_t i = 0; i < rows && !status; i++) sum[i] += weight * one[i];
        }
    }
    free(one);
    free(x);
    return status;
}

basin_status basin_nodes_ensemble_views(double *logit, const basin_nodes_ensemble *e,
                                        const basin_tree_table *table, basin_error *error) {
    for (int64_t i = 0; i < BASIN_TREE_VIEWS * table->network->nodes; i++) logit[i] = 0;
    return add_logits(logit, e, table, true, error);
}

basin_status basin_nodes_ensemble_logits(double *logit, const basin_nodes_ensemble *e,
                                         const basin_tree_table *table, basin_error *error) {
    for (int64_t i = 0; i < table->network->nodes; i++) logit[i] = 0;
    return add_logits(logit, e, table, false, error);
}

basin_status basin_nodes_ensemble_check(const basin_nodes_ensemble *e,
                                        const basin_tree_table *table, const basin_watch *watch,
                                        basin_error *error) {
    const char *path = table->network->path;
    for (int64_t k = 0; k < e->fits; k++) {
        int64_t reads = basin_trees_features(e->trees[k]);
        if (reads != columns_of(table, view_of(e, k, NULL)) && reads != table->columns)
            return basin_fail(error, BASIN_BAD_SHAPE,
                              "%s: %lld columns for trees that were trained on %lld", path,
                              (long long)columns_of(table, view_of(e, k, NULL)), (long long)reads);
    }
    if (e->known.count && !table->known)
        basin_watch_note(watch,
                         "%s: none of the nodes that the detector was trained on: trees that look "
                         "at known labels are left out",
                         path);
    return BASIN_OK;
}

basin_status basin_nodes_ensemble_score(double *logit, const basin_nodes_ensemble *e,
                                        const basin_network *network, size_t memory,
                                        const basin_watch *watch, basin_error *error) {
    basin_tree_table table;
    BASIN_TRY(basin_tree_table_open(&table, network, e, memory, error));
    basin_status status = basin_nodes_ensemble_check(e, &table, watch, error);
    if (!status) status = basin_nodes_ensemble_logits(logit, e, &table, error);
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

static basin_status store_figures(basin_bundle *bundle, const basin_nodes_ensemble *e,
                                  basin_error *error) {
    char key[64];
    basin_status status = BASIN_OK;
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < 2 && e->alone[which][BASIN_PART_VAL].measures && !status; i++)
            status = basin_nodes_set_number(
                bundle, figure_key(key, which, i),
                basin_score_get(&e->alone[which][BASIN_PART_VAL], figure[i]), error);
    return status;
}

static const char *const view_name[] = {"own", "own_bold", "hops", "known"};

/* "trees.own.fits" and "trees.own.weight", and so on. */
static const char *view_key(char text[64], int view, const char *what) {
    snprintf(text, 64, "trees.%s.%s", view_name[view], what);
    return text;
}

static basin_status store_views(basin_bundle *bundle, const basin_nodes_ensemble *e,
                                basin_error *error) {
    char key[64];
    basin_status status = BASIN_OK;
    for (int v = 0; v < BASIN_TREE_VIEWS && !status; v++) {
        status =
            basin_nodes_set_number(bundle, view_key(key, v, "fits"), (double)e->seeing[v], error);
        if (!status)
            status =
                basin_nodes_set_number(bundle, view_key(key, v, "weight"), e->weight[v], error);
    }
    return status;
}

basin_status basin_nodes_ensemble_store(basin_bundle *bundle, const basin_nodes_ensemble *e,
                                        basin_error *error) {
    char names[2048] = "", prefix[32];
    if (!e->fits) return BASIN_OK;
    for (int r = 0; r < e->relations; r++) {
        size_t at = strlen(names);
        snprintf(names + at, sizeof names - at, "%s%s", r ? "\n" : "", e->relation[r]);
    }
    basin_status status = basin_bundle_meta_set(bundle, "trees.relations", names, error);
    if (!status) status = basin_nodes_set_number(bundle, "trees.fits", (double)e->fits, error);
    if (!status) status = basin_nodes_set_number(bundle, "network.share", e->share, error);
    if (!status) status = basin_nodes_set_number(bundle, "network.scale", e->scale, error);
    if (!status) status = basin_nodes_set_number(bundle, "network.shift", e->shift, error);
    if (!status) status = store_views(bundle, e, error);
    if (!status) status = basin_nodes_set_number(bundle, "trees.rate", e->rate, error);
    if (!status) status = basin_known_labels_store(bundle, "known.", &e->known, error);
    if (!status) status = store_figures(bundle, e, error);
    for (int64_t k = 0; k < e->fits && !status; k++) {
        snprintf(prefix, sizeof prefix, "trees%lld.", (long long)k);
        status = basin_trees_store(bundle, prefix, e->trees[k], error);
    }
    return status;
}

static basin_status load_relations(basin_nodes_ensemble *e, const basin_bundle *bundle,
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

static basin_status load_figures(basin_nodes_ensemble *e, const basin_bundle *bundle,
                                 basin_error *error) {
    char key[64];
    double value;
    basin_status status = BASIN_OK;
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < 2 && !status; i++) {
            if (!basin_bundle_meta(bundle, figure_key(key, which, i))) continue;
            status = basin_nodes_get_number(&value, bundle, key, 0, 1, error);
            if (!status) basin_score_add(&e->alone[which][BASIN_PART_VAL], figure[i], value);
        }
    return status;
}

/* Files of before know two views, and all fits weigh alike. */
static basin_status load_alike(basin_nodes_ensemble *e, const basin_bundle *bundle, double fits,
                               basin_error *error) {
    double known = 0;
    basin_status status = basin_nodes_get_number(&known, bundle, "trees.labelled", 0, fits, error);
    e->seeing[BASIN_VIEW_KNOWN] = (int64_t)known;
    e->seeing[BASIN_VIEW_HOPS] = (int64_t)(fits - known);
    for (int v = 0; v < BASIN_TREE_VIEWS; v++) e->weight[v] = (double)e->seeing[v] / fits;
    return status;
}

static basin_status load_views(basin_nodes_ensemble *e, const basin_bundle *bundle, double fits,
                               basin_error *error) {
    char key[64];
    double sum = 0;
    basin_status status = BASIN_OK;
    if (basin_bundle_meta(bundle, "trees.labelled")) return load_alike(e, bundle, fits, error);
    for (int v = 0; v < BASIN_TREE_VIEWS && !status; v++) {
        double count = 0;
        status = basin_nodes_get_number(&count, bundle, view_key(key, v, "fits"), 0, fits, error);
        if (!status)
            status = basin_nodes_get_number(&e->weight[v], bundle, view_key(key, v, "weight"), 0, 1,
                                            error);
        e->seeing[v] = (int64_t)count;
        sum += count;
    }
    if (status || sum == fits) return status;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %g fits of trees by what they see; wanted %g",
                      basin_bundle_path(bundle), sum, fits);
}

basin_status basin_nodes_ensemble_load(basin_nodes_ensemble *e, const basin_bundle *bundle,
                                       basin_error *error) {
    double fits = 0;
    char prefix[32];
    basin_status status = basin_nodes_get_number(&fits, bundle, "trees.fits", 1, 64, error);
    if (!status) status = load_relations(e, bundle, error);
    if (!status) status = basin_nodes_get_number(&e->share, bundle, "network.share", 0, 1, error);
    if (!status)
        status = basin_nodes_get_number(&e->scale, bundle, "network.scale", 0, 1e300, error);
    if (!status)
        status = basin_nodes_get_number(&e->shift, bundle, "network.shift", -1e300, 1e300, error);
    if (!status) status = load_views(e, bundle, fits, error);
    if (!status) status = basin_nodes_get_number(&e->rate, bundle, "trees.rate", 0, 1, error);
    if (!status) status = basin_known_labels_load(&e->known, bundle, "known.", error);
    if (!status) status = load_figures(e, bundle, error);
    if (status) return status;
    e->trees = calloc((size_t)fits + 1, sizeof(basin_trees *));
    if (!e->trees) return basin_fail_memory(error, "trees");
    while (e->fits < (int64_t)fits && !status) {
        snprintf(prefix, sizeof prefix, "trees%lld.", (long long)e->fits);
        status = basin_trees_load(&e->trees[e->fits], bundle, prefix, error);
        if (!status) e->fits++;
    }
    return status;
}
