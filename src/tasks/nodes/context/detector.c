/* Labelled nodes as stored patterns: chooses and stores them, scores and explains; see
 * basin/tasks/context.h. */
#include "base/sort.h"
#include "basin/random.h"
#include "tasks/common/run/run.h"
#include "tasks/nodes/context/context.h"

enum {
    MAX_STORED_CELLS = 100000, /* labels times cells */
    MIN_LABELS = 200,
    CANDIDATES = 20000, /* normal nodes of which the nearest are chosen, */
    NEAR = 200,         /* and anomalies that they are near to */
    BATCH = 1024,       /* rows that are ranked together */
    SOURCES = 50,
};
static const char what[] = "a context";

basin_status basin_context_open(basin_context **context, const char *path, basin_backend *backend,
                                basin_error *error) {
    BASIN_TRY(BASIN_NEW(context, 1, what, error));
    basin_context *c = *context;
    BASIN_TRY_OR(basin_context_net_open(&c->net, path, backend, error),
                 (basin_context_close(c), *context = NULL));
    basin_context_shape shape = basin_context_net_shape(c->net);
    c->info.parameters = shape.parameters, c->info.blocks = shape.blocks;
    return BASIN_OK;
}

static void forget(basin_context *c) {
    BASIN_FREE(c->node, c->label, c->row);
    c->node = NULL, c->label = NULL, c->row = NULL;
    c->stored = 0, c->pass = -1;
}

static void table_close(basin_context_table *t) {
    basin_cells_close(&t->cells);
    basin_network_close(t->ordered);
    free(t->place);
    *t = (basin_context_table){0};
}

static void close_network(basin_context *c) {
    forget(c);
    table_close(&c->table);
    free(c->known);
    c->known = NULL;
}

void basin_context_close(basin_context *c) {
    if (!c) return;
    close_network(c);
    basin_context_net_close(c->net);
    free(c);
}

const basin_context_info *basin_context_get_info(const basin_context *c) { return &c->info; }

const char *basin_context_column(char text[BASIN_MAX_COLUMN], const basin_context *c,
                                 int64_t column) {
    return basin_cells_name(text, &c->table.cells, column);
}

/* Scores do not depend on the order of rows: all is done in the order of ids. */
static basin_status table_open(basin_context_table *t, const basin_network *network,
                               const basin_cells *as, size_t memory, basin_error *error) {
    BASIN_TRY(basin_network_ordered(&t->ordered, network, error));
    if (t->ordered) {
        BASIN_TRY(BASIN_NEW_RAW(&t->place, network->nodes, what, error));
        for (int64_t i = 0; i < network->nodes; i++) t->place[t->ordered->origin[i]] = i;
    }
    return basin_cells_open(&t->cells, t->ordered ? t->ordered : network, as, memory, error);
}

static int64_t place_of(const basin_context_table *t, int64_t node) {
    return t->place ? t->place[node] : node;
}

static int64_t number_of(const basin_context *c, int64_t place) {
    return c->table.ordered ? c->table.ordered->origin[place] : place;
}

void basin_context_rows(float *row, const basin_context_table *t, const int64_t *node,
                        int64_t count) {
    int64_t width = t->cells.cells * BASIN_CELL;
    for (int64_t i = 0; i < count; i++)
        basin_cells_rows(row + i * width, &t->cells, &(int64_t){place_of(t, node[i])}, 1);
}

basin_status basin_context_read(basin_context *c, const basin_network *network, size_t memory,
                                basin_error *error) {
    close_network(c);
    BASIN_TRY(BASIN_NEW_RAW(&c->known, network->nodes, what, error));
    BASIN_TRY_OR(table_open(&c->table, network, NULL, memory, error), close_network(c));
    c->network = network, c->info.schema = network->schema;
    c->info.columns = c->table.cells.columns, c->info.cells = c->table.cells.cells;
    c->info.reduced = c->table.cells.components;
    return BASIN_OK;
}

/* ---- labels ---- */

static basin_status check_nodes(const basin_context *c, const basin_network *network,
                                const int64_t *node, int64_t count, basin_error *error) {
    if (!c->stored) return basin_fail(error, BASIN_BAD_VALUE, "no labels were stored");
    for (int64_t i = 0; i < count; i++)
        if (node[i] < 0 || node[i] >= network->nodes)
            return basin_fail(error, BASIN_BAD_VALUE, "%s: no node %lld among %lld", network->path,
                              (long long)node[i], (long long)network->nodes);
    return BASIN_OK;
}

/* Labelled nodes of both classes, in a drawn order. */
typedef struct labelled {
    int64_t *node[2], count[2];
} labelled;

static void labelled_free(labelled *l) { BASIN_FREE(l->node[0], l->node[1]); }

static basin_status find_labels(labelled *l, const basin_network *n, const int32_t *label,
                                basin_error *error) {
    for (int64_t i = 0; i < n->nodes; i++)
        if (label[i] >= 0) l->count[label[i]]++;
    if (l->count[0] + l->count[1] == 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: no labels; needs normal and anomalous nodes to compare with",
                          n->path);
    if (!l->count[0] || !l->count[1])
        return basin_fail(
            error, BASIN_BAD_VALUE, "%s: all %lld labels are %s; needs at least one of each class",
            n->path, (long long)(l->count[0] + l->count[1]), l->count[0] ? "normal" : "anomalous");
    for (int y = 0; y < 2; y++) {
        int64_t at = 0;
        BASIN_TRY(BASIN_NEW_RAW(&l->node[y], l->count[y], what, error));
        for (int64_t i = 0; i < n->nodes; i++)
            if (label[i] == y) l->node[y][at++] = i;
    }
    return BASIN_OK;
}

/* The first `kept` become a random sample; an order by number if all are kept. */
static void draw(int64_t *node, int64_t count, int64_t kept, uint64_t stream) {
    basin_random random = basin_random_start(0, stream, 0);
    if (kept < count) basin_random_shuffle(node, (size_t)count, &random);
}

/* Orders nodes by the squared distance of their scores to the nearest anomaly. */
static basin_status nearest_first(int64_t *node, int64_t count, const int64_t *anomaly,
                                  int64_t anomalies, const basin_cells *c, basin_error *error) {
    int64_t width = c->cells * BASIN_CELL;
    BASIN_SCRATCH_RAW(float, near, anomalies *width, what, error);
    BASIN_SCRATCH_RAW(float, row, width, what, error);
    BASIN_SCRATCH_RAW(basin_ranked, list, count, what, error);
    basin_cells_rows(near, c, anomaly, anomalies);
    for (int64_t i = 0; i < count; i++) {
        double best = INFINITY;
        basin_cells_rows(row, c, node + i, 1);
        for (int64_t a = 0; a < anomalies; a++) {
            float sum = 0;
            for (int64_t k = 0; k < width; k += BASIN_CELL_ENTRY) {
                float d = row[k] - near[a * width + k];
                sum += d * d;
            }
            best = fmin(best, (double)sum);
        }
        list[i] = (basin_ranked){best, node[i]};
    }
    qsort(list, (size_t)count, sizeof *list, basin_lower_first);
    for (int64_t i = 0; i < count; i++) node[i] = list[i].at;
    return BASIN_OK;
}

static basin_status choose(basin_context *c, labelled *l, int64_t places, basin_error *error) {
    int64_t all = l->count[0] + l->count[1], kept[2] = {l->count[0], l->count[1]};
    if (all > places) {
        kept[1] = basin_int_min(l->count[1], basin_int_max(places / 2, places - l->count[0]));
        kept[0] = places - kept[1];
        for (int y = 0; y < 2; y++) draw(l->node[y], l->count[y], kept[y], (uint64_t)y);
        int64_t others = basin_int_min(l->count[0], CANDIDATES) - kept[0] / 2;
        if (others > kept[0] - kept[0] / 2)
            BASIN_TRY(nearest_first(l->node[0] + kept[0] / 2, others, l->node[1],
                                    basin_int_min(kept[1], NEAR), &c->table.cells, error));
    }
    c->stored = kept[0] + kept[1];
    BASIN_TRY(BASIN_NEW_RAW(&c->node, c->stored, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&c->label, c->stored, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&c->row, c->stored * c->table.cells.cells * BASIN_CELL, what, error));
    for (int64_t i = 0; i < c->stored; i++) {
        c->label[i] = i < kept[1];
        c->node[i] = c->label[i] ? l->node[1][i] : l->node[0][i - kept[1]];
    }
    for (int y = 0; y < 2; y++) c->info.labelled[y] = l->count[y], c->info.stored[y] = kept[y];
    return BASIN_OK;
}

/* Stores what is known. */
static basin_status take_labels(basin_context *c, basin_error *error) {
    BASIN_AT_EXIT(labelled_free) labelled l = {0};
    forget(c);
    BASIN_TRY(find_labels(&l, c->table.cells.network, c->known, error));
    int64_t usual =
        basin_int_min(BASIN_CONTEXT_LABELS, MAX_STORED_CELLS / (c->table.cells.cells + 1));
    int64_t places = c->max_labels ? c->max_labels : basin_int_max(usual, MIN_LABELS);
    BASIN_TRY_OR(choose(c, &l, places, error), forget(c));
    c->odds = log((double)l.count[1] / (double)l.count[0]);
    basin_cells_rows(c->row, &c->table.cells, c->node, c->stored);
    return BASIN_OK;
}

static basin_status fail_label(const basin_context *c, int64_t place, basin_error *error) {
    char text[BASIN_MAX_NODE];
    return basin_fail(error, BASIN_BAD_VALUE, "%s: label %d of node '%s'; expected 0, 1 or none",
                      c->network->path, (int)c->known[place],
                      basin_network_id(c->network, number_of(c, place), text));
}

static const char *own_column(char text[BASIN_MAX_REASON], const void *cells, int64_t column) {
    return basin_cells_name(text, cells, column);
}

basin_status basin_context_store(basin_context *c, const basin_context_options *options,
                                 basin_error *error) {
    static const basin_context_options none = {0};
    const basin_context_options *o = options ? options : &none;
    const basin_network *n = c->table.cells.network;
    basin_context_shape shape = basin_context_net_shape(c->net);
    if (!n) return basin_fail(error, BASIN_BAD_VALUE, "labels of a network that was not read");
    if (o->labels < 0 || o->labels == 1 || o->passes < 0 || o->passes > shape.passes)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "labels is %lld, passes is %lld; expected 2 or more, and at most %lld",
                          (long long)o->labels, (long long)o->passes, (long long)shape.passes);
    forget(c);
    c->watch = o->watch, c->max_labels = o->labels;
    c->info.passes = o->passes ? o->passes : 1;
    for (int64_t i = 0; i < n->nodes; i++) {
        int32_t y = o->label ? o->label[number_of(c, i)] : n->label ? n->label[i] : -1;
        c->known[i] = y < 0 ? -1 : y;
        if (y > 1) return fail_label(c, i, error);
    }
    const basin_cells *cells = &c->table.cells;
    basin_leaks leaks = {n, c->known, cells->value, cells->columns, cells->own, own_column, cells};
    if (!o->label && !cells->components) BASIN_TRY(basin_nodes_note_leaks(&leaks, c->watch, error));
    basin_cells_label(cells, c->known);
    return take_labels(c, error);
}

int32_t basin_context_get_label(const basin_context *c, int64_t node) {
    return c->known[place_of(&c->table, node)];
}

/* Exchanges labels with those of nodes, the last first: twice restores what was there. */
static void exchange(basin_context *c, const int64_t *node, int32_t *label, int64_t count,
                     bool forwards) {
    for (int64_t k = 0; k < count; k++) {
        int64_t i = forwards ? k : count - 1 - k, at = place_of(&c->table, node[i]);
        int32_t before = c->known[at];
        c->known[at] = label[i], label[i] = before;
        basin_cells_relabel(&c->table.cells, at, before, c->known[at]);
    }
    basin_cells_rank_labels(&c->table.cells);
}

basin_status basin_context_label(basin_context *c, const int64_t *node, const int32_t *label,
                                 int64_t count, basin_error *error) {
    return basin_context_commit(c, node, label, count, NULL, error);
}

basin_status basin_context_commit(basin_context *c, const int64_t *node, const int32_t *label,
                                  int64_t count, const basin_near_commit *commit,
                                  basin_error *error) {
    BASIN_TRY(check_nodes(c, c->network, node, count, error));
    BASIN_SCRATCH_RAW(int32_t, given, count, what, error);
    for (int64_t i = 0; i < count; i++) {
        given[i] = label[i];
        if (label[i] < -1 || label[i] > 1)
            return basin_fail(error, BASIN_BAD_VALUE, "label %d; expected 0, 1 or -1 for none",
                              (int)label[i]);
    }
    exchange(c, node, given, count, true);
    basin_status status = take_labels(c, error);
    if (!status && commit) status = commit->run(commit->context, error);
    if (!status) return BASIN_OK;
    basin_error again; /* what was there had labels of both classes, and its memory is free */
    exchange(c, node, given, count, false);
    (void)take_labels(c, &again);
    return status;
}

/* ---- scores ---- */

static basin_status encode(basin_context *c, int64_t pass, basin_error *error) {
    if (c->pass == pass) return BASIN_OK;
    c->pass = -1;
    BASIN_TRY(basin_context_net_store(c->net, c->row, c->label, c->stored, c->table.cells.cells,
                                      pass, error));
    c->pass = pass;
    return BASIN_OK;
}

static double probability_of(double logit) { return 1 / (1 + exp(-logit)); }

static basin_status predict(double *probability, basin_context *c, const basin_context_table *t,
                            const int64_t *node, int64_t count, basin_error *error) {
    int64_t width = t->cells.cells * BASIN_CELL, passes = c->info.passes;
    double ratio[BATCH];
    BASIN_SCRATCH_RAW(float, row, BATCH *width, what, error);
    for (int64_t i = 0; i < count; i++) probability[i] = c->odds;
    for (int64_t pass = 0; pass < passes; pass++) {
        BASIN_TRY(encode(c, pass, error));
        for (int64_t first = 0; first < count; first += BATCH) {
            int64_t some = basin_int_min(BATCH, count - first);
            if (basin_watch_stopped(c->watch))
                return basin_fail(error, BASIN_BAD_VALUE, "stopped; nothing was kept");
            basin_context_rows(row, t, node + first, some);
            BASIN_TRY(basin_context_net_predict(ratio, c->net, row, some, error));
            for (int64_t i = 0; i < some; i++) probability[first + i] += ratio[i] / (double)passes;
            basin_watch_progress(c->watch, "scoring", pass * count + first + some, passes * count,
                                 NAN, "nodes");
        }
    }
    for (int64_t i = 0; i < count; i++) probability[i] = probability_of(probability[i]);
    return BASIN_OK;
}

basin_status basin_context_predict(double *probability, basin_context *c, const int64_t *node,
                                   int64_t count, basin_error *error) {
    BASIN_TRY(check_nodes(c, c->network, node, count, error));
    return predict(probability, c, &c->table, node, count, error);
}

static bool same_network(const basin_network *a, const basin_network *b) {
    int r = basin_network_main_relation(a), s = basin_network_main_relation(b);
    if (a->nodes != b->nodes || a->features != b->features || (r < 0) != (s < 0)) return false;
    if (a->feature &&
        memcmp(a->feature, b->feature, (size_t)(a->nodes * a->features) * sizeof *a->feature) != 0)
        return false;
    const basin_relation *x = &a->relation[r], *y = &b->relation[s];
    return r < 0 || (x->edges == y->edges &&
                     !memcmp(x->row, y->row, (size_t)(a->nodes + 1) * sizeof *x->row) &&
                     !memcmp(x->col, y->col, (size_t)x->edges * sizeof *x->col));
}

/* What queries of a network read; `other` is opened where that is not the one of the context. */
static basin_status table_of(const basin_context_table **table, basin_context_table *other,
                             const basin_context *c, const basin_network *network,
                             basin_error *error) {
    bool own = !network || same_network(network, c->network);
    *table = own ? &c->table : other;
    return own ? BASIN_OK : table_open(other, network, &c->table.cells, 0, error);
}

basin_status basin_context_predict_network(double *probability, basin_context *c,
                                           const basin_network *network, basin_error *error) {
    BASIN_AT_EXIT(table_close) basin_context_table other = {0};
    const basin_context_table *table;
    BASIN_TRY(check_nodes(c, network, NULL, 0, error));
    BASIN_SCRATCH_RAW(int64_t, node, network->nodes, what, error);
    for (int64_t i = 0; i < network->nodes; i++) node[i] = i;
    BASIN_TRY(table_of(&table, &other, c, network, error));
    return predict(probability, c, table, node, network->nodes, error);
}

/* ---- explanations ---- */

/* The share of nodes whose rank is at least as near to the query's as the stored node's is. */
static double nearer(const float *query, const float *stored) {
    double a = 0.5 * erfc(-(double)query[0] / sqrt(2));
    double way = fabs(0.5 * erfc(-(double)stored[0] / sqrt(2)) - a);
    return fmin(fmin(a + way, 1) - fmax(a - way, 0) + (double)query[1], 1);
}

static void compare(basin_context_source *s, const basin_context *c, const basin_cells *of,
                    int64_t query, const float *row, const float *stored) {
    for (int i = 0; i < BASIN_CONTEXT_AGREEING; i++) s->column[i] = -1, s->agreement[i] = -1;
    for (int64_t k = 0; k < c->table.cells.columns; k++) {
        int64_t at = basin_cells_place(&c->table.cells, k);
        if (row[at + 2] == 0 || stored[at + 2] == 0) continue;
        double agreement = 1 - nearer(row + at, stored + at);
        int i = BASIN_CONTEXT_AGREEING;
        for (; i > 0 && agreement > s->agreement[i - 1]; i--)
            if (i < BASIN_CONTEXT_AGREEING)
                s->column[i] = s->column[i - 1], s->agreement[i] = s->agreement[i - 1];
        if (i < BASIN_CONTEXT_AGREEING) s->column[i] = k, s->agreement[i] = agreement;
    }
    for (int i = 0; i < BASIN_CONTEXT_AGREEING && s->column[i] >= 0; i++) {
        s->value[i] = basin_cells_value(&c->table.cells, s->node, s->column[i]);
        s->asked[i] = basin_cells_value(of, query, s->column[i]);
    }
    s->node = number_of(c, s->node);
}

static basin_status explain(basin_context_explanation *e, basin_context *c,
                            const basin_context_table *t, basin_error *error) {
    int64_t width = c->table.cells.cells * BASIN_CELL, passes = c->info.passes;
    double part = 1 / (double)passes;
    BASIN_SCRATCH_RAW(float, row, width, what, error);
    BASIN_SCRATCH_RAW(double, found, 2 * e->blocks + 2 * c->stored, what, error);
    BASIN_SCRATCH(double, share, 2 * c->stored, what, error);
    BASIN_SCRATCH(basin_ranked, list, c->stored, what, error);
    basin_context_look look = {
        .energy = found, .share = found + 2 * e->blocks, .move = found + 2 * e->blocks + c->stored};
    basin_context_rows(row, t, &e->node, 1);
    for (int64_t pass = 0; pass < passes; pass++) {
        BASIN_TRY(encode(c, pass, error));
        BASIN_TRY(basin_context_net_look(&look, c->net, row, error));
        e->logit += look.ratio * part;
        for (int64_t i = 0; i < 2 * e->blocks; i++) e->energy[i] += look.energy[i] * part;
        for (int64_t i = 0; i < 2 * c->stored; i++) share[i] += look.share[i] * part;
    }
    e->probability = probability_of(e->logit);
    for (int64_t i = 0; i < c->stored; i++) {
        e->anomalous += c->label[i] ? share[i] : 0;
        list[i] = (basin_ranked){share[i], i};
    }
    qsort(list, (size_t)c->stored, sizeof *list, basin_higher_first);
    for (int64_t i = 0; i < e->sources; i++) {
        int64_t at = list[i].at;
        basin_context_source *s = &e->source[i];
        *s = (basin_context_source){.node = c->node[at],
                                    .label = c->label[at],
                                    .share = share[at],
                                    .move = share[c->stored + at]};
        compare(s, c, &t->cells, place_of(t, e->node), row, c->row + at * width);
    }
    return BASIN_OK;
}

basin_status basin_context_explain(basin_context_explanation **explanation, basin_context *c,
                                   const basin_network *network, int64_t node, basin_error *error) {
    BASIN_AT_EXIT(table_close) basin_context_table other = {0};
    const basin_context_table *table;
    basin_context_explanation *e;
    *explanation = NULL;
    BASIN_TRY(check_nodes(c, network ? network : c->network, &node, 1, error));
    BASIN_TRY(table_of(&table, &other, c, network, error));
    BASIN_TRY(BASIN_NEW(&e, 1, what, error));
    *e = (basin_context_explanation){.node = node,
                                     .logit = c->odds,
                                     .odds = c->odds,
                                     .blocks = c->info.blocks,
                                     .sources = basin_int_min(c->stored, SOURCES)};
    basin_status status = BASIN_NEW(&e->source, e->sources, what, error);
    if (!status) status = BASIN_NEW(&e->energy, 2 * e->blocks, what, error);
    if (!status) status = explain(e, c, table, error);
    if (status) basin_context_explanation_free(e);
    if (!status) *explanation = e;
    return status;
}

void basin_context_explanation_free(basin_context_explanation *e) {
    if (!e) return;
    BASIN_FREE(e->source, e->energy);
    free(e);
}
