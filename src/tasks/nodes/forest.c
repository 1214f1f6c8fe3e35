/* Trees of an ensemble: growing, logits, the model file; see nodes.h. */
#include <pthread.h>

#include "base/bundle.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "tasks/nodes/network/parts/parts.h"
#include "tasks/nodes/nodes.h"
#include "tasks/nodes/trees/trees.h"

void basin_nodes_ensemble_free(basin_nodes_ensemble *e) {
    for (int64_t i = 0; i < e->fits; i++) basin_trees_free(e->trees[i]);
    free(e->trees);
    basin_known_labels_free(&e->known);
    *e = (basin_nodes_ensemble){0};
}

basin_status basin_nodes_ensemble_name(basin_nodes_ensemble *e, const basin_network *network,
                                       basin_error *error) {
    int whole = basin_network_main_relation(network);
    if (whole < 0 && (network->relations < 1 || network->relations > BASIN_TREE_RELATIONS))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: %d relations and no union of them; needs one named homo",
                          network->path, network->relations);
    for (int r = 0; r < network->relations; r++)
        if (whole < 0 || r == whole) basin_nodes_add_line(e->relations, network->relation[r].name);
    return BASIN_OK;
}

/* ---- growing ---- */

/* Most rows to train on and to validate, at most half of them anomalies: more add little. */
static const double max_rows = 100000;

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
static double find_shares(double share[2], const basin_network *network, const uint8_t *part,
                          double max) {
    static const double one[2][2] = {{1, 0}, {0, 1}};
    double n = (double)list_part(NULL, network, part, BASIN_SPLIT_TRAIN, one[0]);
    double a = (double)list_part(NULL, network, part, BASIN_SPLIT_TRAIN, one[1]);
    share[1] = fmin(1, max / 2 / fmax(a, 1));
    share[0] = fmin(1, (max - share[1] * a) / fmax(n, 1));
    double judges = (double)list_part(NULL, network, part, BASIN_SPLIT_VAL, share);
    return fmin(1, max / fmax(judges, 1));
}

basin_status basin_tree_rows_take(basin_tree_rows *l, const basin_tree_tables *tables,
                                  const uint8_t *part, double max, basin_error *error) {
    const basin_network *network = tables->network;
    int64_t columns = tables->table[0].columns;
    *l = (basin_tree_rows){0};
    double judging = find_shares(l->taken, network, part, max);
    const double judges[2] = {judging * l->taken[0], judging * l->taken[1]};
    int64_t trains = list_part(NULL, network, part, BASIN_SPLIT_TRAIN, l->taken);
    int64_t validations = list_part(NULL, network, part, BASIN_SPLIT_VAL, judges);
    size_t rows = (size_t)(trains + validations), cells;
    if (!basin_size_multiply(&cells, rows, (size_t)columns))
        return basin_fail_memory(error, "rows of trees");
    BASIN_TRY(BASIN_NEW_RAW(&l->node, rows, "rows of trees", error));
    BASIN_TRY(BASIN_NEW_RAW(&l->label, rows, "rows of trees", error));
    BASIN_TRY(BASIN_NEW_RAW(&l->x, cells, "rows of trees", error));
    list_part(l->node, network, part, BASIN_SPLIT_TRAIN, l->taken);
    list_part(l->node + trains, network, part, BASIN_SPLIT_VAL, judges);
    for (size_t i = 0; i < rows; i++) l->label[i] = network->label[l->node[i]] == 1;
    l->data =
        (basin_trees_data){l->x, l->label, {1, 1}, columns, columns, trains, validations, NULL};
    BASIN_TRY(basin_tree_tables_rows(l->x, tables, l->node, trains, error));
    return basin_tree_tables_rows(l->x + trains * columns, tables, l->node + trains, validations,
                                  error);
}

void basin_tree_rows_free(basin_tree_rows *rows) {
    free(rows->node), free(rows->label), free(rows->x);
}

enum { TAUGHT = 2 }; /* fits */

static bool is_own(basin_tree_view view) {
    return view == BASIN_VIEW_OWN || view == BASIN_VIEW_OWN_WEIGHTED || view == BASIN_VIEW_NET_OWN;
}

static bool looks_at_labels(basin_tree_view view) {
    return view == BASIN_VIEW_KNOWN || view == BASIN_VIEW_NET_ALL;
}

/* The number of columns of a view, from the first on. */
static int64_t columns_of(const basin_tree_table *table, basin_tree_view view) {
    return is_own(view)               ? table->node.own
           : view == BASIN_VIEW_KNOWN ? table->columns
                                      : table->plain;
}

/* Every other fit that sees neighbours, and one view, upweight anomalies and allow small leaves;
 * others stop by ranks. Few anomalies: trees see all rows; many rows: larger steps. Own columns
 * need few levels. */
static void vary(basin_trees_data *data, basin_trees_spec *spec, const basin_tree_rows *l,
                 basin_tree_view view, int64_t turn) {
    const double few = 30, many = 20000;
    double anomalies = 0, rows = (double)data->trains;
    for (int64_t i = 0; i < data->trains; i++) anomalies += l->label[i] == 1;
    double ratio = (rows - anomalies) / l->taken[0] / (anomalies / l->taken[1]);
    bool own = is_own(view), upweights = own ? view == BASIN_VIEW_OWN_WEIGHTED : turn % 2;
    spec->stop = (own ? turn % 2 : turn / 2 % 2) ? BASIN_TREES_BY_RANKS : BASIN_TREES_BY_LOSS;
    if (anomalies < few) spec->rows = 1;
    if (rows > many) spec->rate = 0.1;
    if (own) spec->depth = 4, spec->l2 = 0.3;
    data->weight[0] = 1 / l->taken[0];
    data->weight[1] = (upweights ? sqrt(ratio) : 1) / l->taken[1];
    if (upweights) spec->min_hessian = 0.1;
}

/* How many fits each view gets: of trees a quarter, the rest to the means over neighbours; those
 * that are taught come on top. */
static void deal(int64_t fits[BASIN_TREE_VIEWS], int64_t all, bool known, bool taught) {
    fits[BASIN_VIEW_TAUGHT] = taught ? TAUGHT : 0;
    fits[BASIN_VIEW_OWN] = fits[BASIN_VIEW_OWN_WEIGHTED] = all / 4;
    fits[BASIN_VIEW_KNOWN] = known ? (all + 2) / 4 : 0;
    fits[BASIN_VIEW_HOPS] = all - all / 4 * 2 - fits[BASIN_VIEW_KNOWN];
}

typedef struct growing {
    basin_nodes_ensemble *ensemble;
    const basin_tree_rows *rows;
    const basin_tree_table *table;
    basin_trees_data lesson;
    uint64_t seed;
    basin_ranks_share own; /* this rank's fits */
    const basin_watch *watch;
    pthread_mutex_t *lock; /* of */
    int64_t *done;         /* fits that are there */
} growing;

static basin_tree_view view_of(const basin_nodes_ensemble *e, int64_t fit, int64_t *turn) {
    int view = 0;
    while (view + 1 < BASIN_READ_VIEWS && fit >= e->seeing[view]) fit -= e->seeing[view++];
    if (turn) *turn = fit;
    return (basin_tree_view)view;
}

static basin_status grow_fit(const void *context, int64_t item, basin_error *error) {
    static const int64_t unjudged = 200; /* rounds, where no validation says when to stop */
    const growing *g = context;
    int64_t fit = g->own.first + item, turn;
    basin_trees_spec spec = BASIN_TREES_DEFAULT;
    basin_trees_data data = g->rows->data;
    basin_tree_view view = view_of(g->ensemble, fit, &turn);
    data.features = columns_of(g->table, view);
    if (!data.validations) spec.rounds = unjudged;
    spec.seed = g->seed + 1000003u * (uint64_t)fit;
    vary(&data, &spec, g->rows, view, turn);
    if (view == BASIN_VIEW_TAUGHT) {
        int64_t features = data.features;
        data = g->lesson, data.features = features;
        spec = BASIN_TREES_DEFAULT;
        spec.rounds = unjudged, spec.seed = g->seed + 1000003u * (uint64_t)fit;
    }
    BASIN_TRY(basin_trees_fit(&g->ensemble->trees[fit], &data, &spec, g->watch, error));
    pthread_mutex_lock(g->lock);
    basin_watch_progress(g->watch, "fitting to rows", ++*g->done, g->own.count, NAN, NULL);
    pthread_mutex_unlock(g->lock);
    return BASIN_OK;
}

/* A fit of rank `owner` to all others, in the bytes of a file. */
static basin_status send_fit(basin_trees **trees, int64_t owner, basin_ranks *ranks,
                             basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    BASIN_FREE_AT_EXIT uint8_t *bytes = NULL;
    bool mine = basin_ranks_rank(ranks) == owner;
    int64_t count = 0;
    basin_status status = basin_bundle_new(&bundle, "trees of another rank", error);
    if (!status && mine) status = basin_trees_store(bundle, "", *trees, error);
    BASIN_TRY(basin_ranks_agree(ranks, status, error));
    const basin_tensor *own = mine ? basin_bundle_at(bundle, 0) : NULL;
    if (own) count = own->shape.dim[0];
    BASIN_TRY(basin_ranks_broadcast(ranks, &count, sizeof count, owner, error));
    if (!mine) status = BASIN_NEW_RAW(&bytes, (size_t)count, "trees", error);
    BASIN_TRY(basin_ranks_agree(ranks, status, error));
    BASIN_TRY(basin_ranks_broadcast(ranks, own ? own->data : bytes, (size_t)count, owner, error));
    if (mine) return BASIN_OK;
    BASIN_TRY(basin_bundle_put(bundle, "xgboost", bytes, BASIN_U8, BASIN_SHAPE(count), error));
    return basin_trees_load(trees, bundle, "", error);
}

/* Every fit is grown once, by the rank that it is dealt to. */
basin_status basin_nodes_ensemble_grow(basin_nodes_ensemble *e, int64_t fits, uint64_t seed,
                                       const basin_tree_tables *tables, const uint8_t *part,
                                       const basin_lesson *lesson, basin_ranks *ranks,
                                       const basin_watch *watch, basin_error *error) {
    bool taught = lesson && lesson->count;
    int64_t done = 0, columns = tables->table[0].columns, given = fits;
    fits += taught ? TAUGHT : 0;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    BASIN_AT_EXIT(basin_tree_rows_free) basin_tree_rows rows = {0};
    BASIN_FREE_AT_EXIT float *x = NULL;
    growing g = {e,     &rows, tables->table, {0}, seed, basin_ranks_deal(ranks, fits),
                 watch, &lock, &done};
    BASIN_TRY(BASIN_NEW(&e->trees, fits, "trees", error));
    e->fits = fits;
    deal(e->seeing, given, e->known.count > 0, taught);
    for (int v = 0; v < BASIN_TREE_VIEWS; v++) /* all fits alike, whatever they see */
        e->weight[v] = e->fits ? (double)e->seeing[v] / (double)e->fits : 0;
    BASIN_TRY(basin_tree_rows_take(&rows, tables, part, max_rows, error));
    if (taught) {
        BASIN_TRY(BASIN_NEW_RAW(&x, lesson->count * columns, "rows of trees", error));
        BASIN_TRY(basin_tree_tables_rows(x, tables, lesson->node, lesson->count, error));
        g.lesson = (basin_trees_data){
            .x = x, .stride = columns, .trains = lesson->count, .target = lesson->target};
    }
    basin_status status = basin_parallel_try(grow_fit, &g, g.own.count, 1, error);
    BASIN_TRY(basin_ranks_agree(ranks, status, error));
    for (int64_t rank = 0; rank < basin_ranks_count(ranks); rank++) {
        basin_ranks_share of = basin_ranks_deal_to(rank, basin_ranks_count(ranks), fits);
        for (int64_t k = of.first; k < of.first + of.count && basin_ranks_count(ranks) > 1; k++)
            BASIN_TRY(send_fit(&e->trees[k], rank, ranks, error));
    }
    return BASIN_OK;
}

/* ---- logits ---- */

double basin_nodes_ensemble_weight(const basin_nodes_ensemble *e, const basin_tree_table *table,
                                   int64_t fit) {
    int64_t others = e->fits;
    basin_tree_view view = view_of(e, fit, NULL);
    double whole = 0;
    for (int v = 0; v < BASIN_READ_VIEWS; v++)
        if (looks_at_labels(v))
            others -= e->seeing[v];
        else
            whole += e->weight[v];
    if (table->known || !others) return e->weight[view] / (double)e->seeing[view];
    if (looks_at_labels(view)) return 0;
    return whole > 0 ? e->weight[view] / whole / (double)e->seeing[view] : 1 / (double)others;
}

/* Adds the fits' logits of some rows; `apart`: how far apart views are, 0: all make up one sum. */
static basin_status add_fits(double *logit, int64_t apart, const basin_nodes_ensemble *e,
                             const basin_tree_table *table, const float *x, int64_t rows,
                             basin_error *error) {
    BASIN_SCRATCH_RAW(double, one, rows, "the scores of trees", error);
    for (int64_t k = 0; k < e->fits; k++) {
        int view = view_of(e, k, NULL);
        double *sum = logit + view * apart, weight = apart ? 1 / (double)e->seeing[view] : 0;
        if (!apart) weight = basin_nodes_ensemble_weight(e, table, k);
        if (weight <= 0) continue;
        BASIN_TRY(basin_trees_predict(one, e->trees[k], x, rows, table->columns, error));
        for (int64_t i = 0; i < rows; i++) sum[i] += weight * one[i];
    }
    return BASIN_OK;
}

basin_status basin_nodes_ensemble_node(double *logit, const basin_nodes_ensemble *e,
                                       const basin_tree_table *table, int64_t node,
                                       basin_error *error) {
    BASIN_SCRATCH_RAW(float, x, table->columns, "the scores of trees", error);
    basin_tree_table_rows(x, table, &node, 0, 1);
    *logit = 0;
    return add_fits(logit, 0, e, table, x, 1, error);
}

/* Sums of the fits' logits: those of each view by itself [BASIN_TREE_VIEWS, N], or of all [N]. */
static basin_status sum_logits(double *logit, const basin_nodes_ensemble *e,
                               const basin_tree_table *table, bool apart, basin_error *error) {
    enum { BLOCK = 4096 };
    int64_t N = table->node.network->nodes;
    size_t cells = 0;
    memset(logit, 0, (size_t)((apart ? BASIN_TREE_VIEWS : 1) * N) * sizeof *logit);
    if (!basin_size_multiply(&cells, BLOCK, (size_t)table->columns))
        return basin_fail_memory(error, "the scores of trees");
    BASIN_SCRATCH_RAW(float, x, cells, "the scores of trees", error);
    for (int64_t first = 0; first < N; first += BLOCK) {
        int64_t rows = basin_int_min(N - first, BLOCK);
        basin_tree_table_rows(x, table, NULL, first, rows);
        BASIN_TRY(add_fits(logit + first, apart ? N : 0, e, table, x, rows, error));
    }
    return BASIN_OK;
}

/* to [columns, rows] = the transpose of from. */
static void transpose(double *to, const double *from /* [rows, columns] */, int64_t rows,
                      int64_t columns) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < columns; c++) to[c * rows + i] = from[i * columns + c];
}

/* Those of this rank's nodes, part by part; free them. */
static basin_status sum_parts(double **mine /* [own nodes, width] */, const basin_nodes_ensemble *e,
                              const basin_tree_tables *t, int64_t width, basin_error *error) {
    int64_t own = 0, at = 0;
    for (int64_t k = 0; k < t->count; k++) own += t->table[k].node.network->nodes;
    BASIN_TRY(BASIN_NEW_RAW(mine, own * width, "trees of parts", error));
    BASIN_SCRATCH_RAW(double, one, (t->parts->max_nodes * width), "trees of parts", error);
    for (int64_t k = 0; k < t->count; k++) {
        int64_t n = t->table[k].node.network->nodes;
        BASIN_TRY(sum_logits(one, e, &t->table[k], width > 1, error));
        transpose(*mine + at * width, one, width, n);
        at += n;
    }
    return BASIN_OK;
}

basin_status basin_nodes_ensemble_logits(double *logit, const basin_nodes_ensemble *e,
                                         const basin_tree_tables *t, bool views,
                                         basin_error *error) {
    int64_t width = views ? BASIN_TREE_VIEWS : 1;
    BASIN_FREE_AT_EXIT double *mine = NULL, *all = NULL;
    if (!t->parts) return sum_logits(logit, e, t->table, views, error);
    basin_status status = sum_parts(&mine, e, t, width, error);
    if (!status) status = BASIN_NEW_RAW(&all, t->network->nodes * width, "trees of parts", error);
    BASIN_TRY(basin_ranks_agree(t->parts->ranks, status, error));
    BASIN_TRY(
        basin_parts_gather_packed(all, t->parts, mine, NULL, (size_t)width * sizeof *all, error));
    transpose(logit, all, t->network->nodes, width);
    return BASIN_OK;
}

static basin_status check(const basin_nodes_ensemble *e, const basin_tree_table *table,
                          const basin_watch *watch, basin_error *error) {
    const char *path = table->node.network->path;
    for (int64_t k = 0; k < e->fits; k++) {
        int64_t reads = basin_trees_features(e->trees[k]);
        int64_t columns = columns_of(table, view_of(e, k, NULL));
        if (reads != columns && reads != table->columns)
            return basin_fail(error, BASIN_BAD_SHAPE,
                              "%s: %lld columns for trees that were trained on %lld", path,
                              (long long)columns, (long long)reads);
    }
    if (e->known.count && !table->known)
        basin_watch_note(watch,
                         "%s: none of the nodes that the detector was trained on: trees that look "
                         "at known labels are left out",
                         path);
    return BASIN_OK;
}

basin_status basin_nodes_ensemble_score(double *logit, const basin_nodes_ensemble *e,
                                        const basin_network *network, basin_parts *parts,
                                        size_t memory, const basin_watch *watch,
                                        basin_error *error) {
    BASIN_AT_EXIT(basin_tree_tables_close) basin_tree_tables tables;
    BASIN_TRY(basin_tree_tables_open(&tables, network, parts, e, memory, error));
    BASIN_TRY(check(e, tables.table, watch, error));
    return basin_nodes_ensemble_logits(logit, e, &tables, false, error);
}

/* ---- files ---- */

/* Numbers of an ensemble by their keys, with what they may be. */
static const struct {
    const char *key;
    size_t offset;
    double low, high;
} number[] = {{"network.share", offsetof(basin_nodes_ensemble, share), 0, 1},
              {"network.scale", offsetof(basin_nodes_ensemble, scale), 0, 1e300},
              {"network.shift", offsetof(basin_nodes_ensemble, shift), -1e300, 1e300},
              {"trees.rate", offsetof(basin_nodes_ensemble, rate), 0, 1}};
enum { NUMBERS = sizeof number / sizeof *number, KEY = 64 };

/* What each reaches on validation: "validation.trees.auprc". */
static const char *const figure[] = {"auroc", "auprc"};
static const char *figure_key(char text[KEY], int which, int i) {
    snprintf(text, KEY, "validation.%s.%s", which ? "network" : "trees", figure[i]);
    return text;
}

/* "trees.own.fits" and "trees.own.weight", and so on. */
static const char *view_key(char text[KEY], int view, const char *what) {
    static const char *const name[] = {"own",   "own_bold", "hops",   "taught",
                                       "known", "net_own",  "net_all"};
    snprintf(text, KEY, "trees.%s.%s", name[view], what);
    return text;
}

/* "trees3." */
static const char *fit_prefix(char text[KEY], int64_t fit) {
    snprintf(text, KEY, "trees%lld.", (long long)fit);
    return text;
}

static basin_status store_numbers(basin_bundle *bundle, const basin_nodes_ensemble *e,
                                  basin_error *error) {
    char key[KEY];
    BASIN_TRY(basin_nodes_set_number(bundle, "trees.fits", (double)e->fits, error));
    for (int i = 0; i < NUMBERS; i++) {
        double value = *(const double *)((const char *)e + number[i].offset);
        BASIN_TRY(basin_nodes_set_number(bundle, number[i].key, value, error));
    }
    for (int v = 0; v < BASIN_READ_VIEWS; v++) {
        int64_t fits = e->seeing[v];
        if (v >= BASIN_TREE_VIEWS && !fits) continue;
        BASIN_TRY(basin_nodes_set_number(bundle, view_key(key, v, "fits"), (double)fits, error));
        BASIN_TRY(basin_nodes_set_number(bundle, view_key(key, v, "weight"), e->weight[v], error));
    }
    for (int i = 0; i < 4; i++) {
        const basin_score *alone = &e->alone[i / 2][BASIN_SPLIT_VAL];
        if (!alone->measures) continue;
        BASIN_TRY(basin_nodes_set_number(bundle, figure_key(key, i / 2, i % 2),
                                         basin_score_get(alone, figure[i % 2]), error));
    }
    return BASIN_OK;
}

basin_status basin_nodes_ensemble_store(basin_bundle *bundle, const basin_nodes_ensemble *e,
                                        basin_error *error) {
    char prefix[KEY];
    if (!e->fits) return BASIN_OK;
    BASIN_TRY(basin_bundle_meta_set(bundle, "trees.relations", e->relations, error));
    BASIN_TRY(store_numbers(bundle, e, error));
    BASIN_TRY(basin_known_labels_store(bundle, "known.", &e->known, error));
    for (int64_t k = 0; k < e->fits; k++)
        BASIN_TRY(basin_trees_store(bundle, fit_prefix(prefix, k), e->trees[k], error));
    return BASIN_OK;
}

static basin_status load_views(basin_nodes_ensemble *e, const basin_bundle *bundle, double fits,
                               basin_error *error) {
    char key[KEY];
    double sum = 0, count;
    for (int v = 0; v < BASIN_READ_VIEWS; v++) {
        bool may_lack = v == BASIN_VIEW_TAUGHT || v >= BASIN_TREE_VIEWS;
        if (may_lack && !basin_bundle_meta(bundle, view_key(key, v, "fits"))) continue;
        BASIN_TRY(basin_bundle_number(&count, bundle, view_key(key, v, "fits"), 0, fits, error));
        BASIN_TRY(
            basin_bundle_number(&e->weight[v], bundle, view_key(key, v, "weight"), 0, 1, error));
        e->seeing[v] = (int64_t)count;
        sum += count;
    }
    if (sum == fits) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: %g fits of trees by what they see; needs %g",
                      basin_bundle_path(bundle), sum, fits);
}

typedef struct loading {
    basin_nodes_ensemble *ensemble;
    const basin_bundle *bundle;
} loading;

static basin_status load_fit(const void *context, int64_t fit, basin_error *error) {
    const loading *l = context;
    char prefix[KEY];
    return basin_trees_load(&l->ensemble->trees[fit], l->bundle, fit_prefix(prefix, fit), error);
}

/* Fits are parsed concurrently. */
basin_status basin_nodes_ensemble_load(basin_nodes_ensemble *e, const basin_bundle *bundle,
                                       basin_error *error) {
    double fits = 0, value;
    char key[KEY];
    BASIN_TRY(basin_bundle_number(&fits, bundle, "trees.fits", 1, 64, error));
    const char *relations = basin_bundle_meta(bundle, "trees.relations");
    if (!relations || !*relations)
        return basin_fail(error, BASIN_BAD_FILE, "%s: trees.relations is absent; needs names",
                          basin_bundle_path(bundle));
    basin_nodes_add_line(e->relations, relations);
    for (int i = 0; i < NUMBERS; i++)
        BASIN_TRY(basin_bundle_number((double *)(void *)((char *)e + number[i].offset), bundle,
                                      number[i].key, number[i].low, number[i].high, error));
    BASIN_TRY(load_views(e, bundle, fits, error));
    BASIN_TRY(basin_known_labels_load(&e->known, bundle, "known.", error));
    for (int i = 0; i < 4; i++) {
        if (!basin_bundle_meta(bundle, figure_key(key, i / 2, i % 2))) continue;
        BASIN_TRY(basin_bundle_number(&value, bundle, key, 0, 1, error));
        basin_score_add(&e->alone[i / 2][BASIN_SPLIT_VAL], figure[i % 2], value);
    }
    BASIN_TRY(BASIN_NEW(&e->trees, (int64_t)fits, "trees", error));
    e->fits = (int64_t)fits;
    loading all = {e, bundle};
    return basin_parallel_try(load_fit, &all, e->fits, 1, error);
}
