/* Rows of inputs of a base with additions; see near.h. Those of the base are made once. A node that
 * is changed has its own row anew; means of those around it are found when they are needed, level
 * by level: the means over h hops of a node are means of those over h - 1 of its neighbours. Sums
 * have the order that they have in a network that was read whole. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/team/team.h"
#include "base/try.h"
#include "task/nodes/near.h"

/* ---- opening ---- */

static basin_status open_rows(basin_near_rows *rows, size_t memory, basin_error *error) {
    const basin_nodes_model *model = rows->model;
    const basin_network *base = rows->graph->base;
    basin_node_inputs *inputs = &rows->inputs;
    if (rows->network) {
        BASIN_TRY(basin_node_inputs_open(inputs, base, &model->settings, error));
        BASIN_TRY(basin_node_inputs_scale(inputs, &model->scale, &model->edge_scale, error));
        rows->hops = (int)model->settings.hops;
        rows->width = inputs->shape.columns / (1 + rows->hops);
    }
    if (rows->trees)
        BASIN_TRY(basin_tree_table_open(&rows->table, base, &model->ensemble, memory, error));
    if (rows->hops > BASIN_NEAR_LEVELS + 1)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "single nodes need a detector with at most %d hops of inputs; this one "
                          "has %d",
                          BASIN_NEAR_LEVELS + 1, rows->hops);
    rows->levels = rows->hops > 1 ? rows->hops - 1 : rows->trees;
    return BASIN_NEW_RAW(&rows->scratch, inputs->features + base->facts.count + 1, "inputs", error);
}

basin_status basin_near_rows_open(basin_near_rows *rows, basin_near_graph *graph,
                                  const basin_nodes_model *model, int64_t most_edges, size_t memory,
                                  basin_error *error) {
    const basin_nodes_ensemble *e = &model->ensemble;
    *rows = (basin_near_rows){.graph = graph,
                              .model = model,
                              .network = !e->fits || e->share > 0,
                              .trees = e->fits && e->share < 1,
                              .most_edges = most_edges};
    return open_rows(rows, memory, error);
}

void basin_near_rows_close(basin_near_rows *rows) {
    basin_node_inputs_close(&rows->inputs);
    basin_tree_table_close(&rows->table);
    free(rows->scratch);
}

/* ---- a node's own row ---- */

/* Features, logarithms of degrees and totals of what edges carry, along some relations. */
typedef struct own_columns {
    const int *relation;
    int relations;
    bool degree, facts;
} own_columns;

static void fill_own(float *x, float *total, const basin_near_graph *g, int64_t node,
                     const own_columns *c) {
    const basin_network *base = g->base;
    const basin_facts *facts = &base->facts;
    int64_t F = base->feature ? base->features : 0;
    if (F) memcpy(x, basin_near_feature(g, node), (size_t)F * sizeof *x);
    x += F;
    for (int r = 0; r < c->relations && c->degree; r++)
        *x++ = (float)log1p((double)basin_near_sees(g, c->relation[r], node, false).count);
    for (int r = 0; r < c->relations && c->facts; r++)
        for (int leaving = 0; leaving <= base->directed; leaving++) {
            basin_near_list list = basin_near_sees(g, c->relation[r], node, leaving);
            memset(total, 0, (size_t)facts->count * sizeof *total);
            for (int64_t i = 0; i < list.count; i++)
                basin_facts_merge(total, basin_near_fact(&list, i, facts->count), facts);
            basin_node_facts_columns(x, total, facts);
            x += basin_facts_width(facts);
        }
}

/* The scaled columns of inputs, then those of trees as they are. */
static basin_status renew_own(basin_near_rows *rows, int64_t node, basin_error *error) {
    const basin_node_inputs *in = &rows->inputs;
    const basin_nodes_settings *s = &rows->model->settings;
    const basin_tree_table *t = &rows->table;
    basin_near_node *to = rows->graph->node[node];
    float *raw = rows->scratch;
    if (!to->own) {
        BASIN_TRY(BASIN_NEW_RAW(&to->own, rows->width + t->own + 1, "additions", error));
        rows->graph->bytes += (size_t)(rows->width + t->own) * sizeof *to->own;
    }
    if (rows->network) {
        basin_scaler scale = rows->model->scale;
        own_columns c = {in->relation, in->shape.relations, s->degree, basin_facts_are_features(s)};
        scale.features = in->features;
        fill_own(raw, raw + in->features, rows->graph, node, &c);
        basin_scaler_apply(to->own, &scale, raw, 1);
    }
    if (!rows->trees) return BASIN_OK;
    own_columns c = {t->relation, t->relations, rows->model->ensemble.degree, t->facts > 0};
    fill_own(to->own + rows->width, raw, rows->graph, node, &c);
    return BASIN_OK;
}

static void forget_levels(basin_near_node *node) {
    for (int h = 0; h < BASIN_NEAR_LEVELS; h++) free(node->level[h]), node->level[h] = NULL;
}

/* Nodes next to a changed one, along every relation and both ways; and so on. */
static basin_status touch(basin_near_rows *rows, int64_t node, int levels, basin_error *error) {
    basin_near_graph *g = rows->graph;
    if (levels < 1 || basin_near_degree(g, node) > rows->most_edges) return BASIN_OK;
    for (int r = 0; r < g->base->relations; r++)
        for (int way = 0; way <= g->base->directed; way++) {
            basin_near_list list = basin_near_sees(g, r, node, way);
            for (int64_t i = 0; i < list.count; i++) {
                basin_near_node **next = &g->node[list.col[i]];
                if (!*next) {
                    BASIN_TRY(BASIN_NEW(next, 1, "additions", error));
                    g->bytes += sizeof **next;
                }
                forget_levels(*next);
                BASIN_TRY(touch(rows, list.col[i], levels - 1, error));
            }
        }
    return BASIN_OK;
}

basin_status basin_near_rows_renew(basin_near_rows *rows, const int64_t *changed, int64_t count,
                                   basin_error *error) {
    for (int64_t i = 0; i < count; i++) {
        BASIN_TRY(renew_own(rows, changed[i], error));
        forget_levels(rows->graph->node[changed[i]]);
        BASIN_TRY(touch(rows, changed[i], rows->levels, error));
    }
    return BASIN_OK;
}

bool basin_near_touched(const basin_near_rows *rows, int64_t node) {
    const basin_near_graph *g = rows->graph;
    if (g->node[node]) return true;
    for (int r = 0; r < g->base->relations; r++)
        for (int way = 0; way <= g->base->directed; way++) {
            basin_near_list list = basin_near_sees(g, r, node, way);
            for (int64_t i = 0; i < list.count; i++)
                if (g->node[list.col[i]]) return true;
        }
    return false;
}

/* ---- levels ---- */

/* What is asked of a node: its row of inputs, after so many means; or of trees its own row, or the
 * first means along one of their relations. */
typedef struct asked {
    int level;
    bool trees;
    int relation; /* of trees' means */
} asked;

static int64_t level_size(const basin_near_rows *rows, int level) {
    const basin_tree_table *t = &rows->table;
    int64_t size = level < rows->hops ? rows->width : 0;
    return level == 1 && rows->trees ? size + t->relations * (t->own + 2) : size;
}

static const float *find_level(const basin_near_rows *rows, int64_t node, int level);

/* NULL without memory. */
static const float *row_of(const basin_near_rows *rows, int64_t node, const asked *a) {
    const basin_near_node *own = rows->graph->node[node];
    const basin_tree_table *t = &rows->table;
    const basin_node_inputs *in = &rows->inputs;
    if (a->level && own) {
        const float *level = find_level(rows, node, a->level);
        int64_t at = a->level < rows->hops ? rows->width : 0;
        return level && a->trees ? level + at + a->relation * t->own : level;
    }
    if (own && own->own) return own->own + (a->trees ? rows->width : 0);
    if (!a->trees) return in->table + node * in->shape.columns + a->level * rows->width;
    return a->level ? t->near + (node * t->relations + a->relation) * t->own
                    : t->raw + node * t->own;
}

static bool mean(float *to, const basin_near_rows *rows, int relation, int64_t node,
                 int64_t columns, const asked *a) {
    basin_near_list list = basin_near_sees(rows->graph, relation, node, false);
    int64_t count = 0;
    memset(to, 0, (size_t)columns * sizeof *to);
    for (int64_t i = 0; i < list.count; i++) {
        if (list.col[i] == node) continue;
        const float *row = row_of(rows, list.col[i], a);
        if (!row) return false;
        basin_row_add(to, row, columns);
        count++;
    }
    for (int64_t c = 0; c < columns && count; c++) to[c] /= (float)count;
    return true;
}

static int8_t label_of(const basin_near_rows *rows, int64_t node) {
    const basin_near_node *own = rows->graph->node[node];
    return node < rows->graph->base->nodes ? rows->table.label[node] : own->label;
}

/* Known neighbours: how many are anomalous, and how many there are. */
static void sum_labels(float sum[2], const basin_near_rows *rows, int relation, int64_t node) {
    basin_near_list list = basin_near_sees(rows->graph, relation, node, false);
    sum[0] = sum[1] = 0;
    for (int64_t i = 0; i < list.count; i++) {
        if (list.col[i] == node) continue;
        int8_t label = label_of(rows, list.col[i]);
        if (label >= 0) sum[0] += label, sum[1]++;
    }
}

static bool fill_level(float *to, const basin_near_rows *rows, int64_t node, int level) {
    const basin_tree_table *t = &rows->table;
    if (level < rows->hops) {
        const basin_relation *hops = basin_node_inputs_hops(&rows->inputs);
        int along = (int)(hops - rows->graph->base->relation);
        if (!mean(to, rows, along, node, rows->width, &(asked){level - 1, false, 0})) return false;
        to += rows->width;
    }
    for (int r = 0; r < t->relations && level == 1 && rows->trees; r++, to += t->own)
        if (!mean(to, rows, t->relation[r], node, t->own, &(asked){0, true, 0})) return false;
    for (int r = 0; r < t->relations && level == 1 && rows->trees && t->label; r++, to += 2)
        sum_labels(to, rows, t->relation[r], node);
    return true;
}

/* Whoever finds it first keeps it for all. */
static const float *find_level(const basin_near_rows *rows, int64_t node, int level) {
    _Atomic(float *) *at = &rows->graph->node[node]->level[level - 1];
    float *own = atomic_load(at), *none = NULL;
    if (own) return own;
    own = malloc((size_t)(level_size(rows, level) + 1) * sizeof *own);
    if (own && fill_level(own, rows, node, level)) {
        if (atomic_compare_exchange_strong(at, &none, own)) return own;
        free(own);
        return none;
    }
    free(own);
    return NULL;
}

/* ---- rows ---- */

basin_status basin_near_inputs_row(float *x, const basin_near_rows *rows, int64_t node,
                                   basin_error *error) {
    const basin_node_inputs *in = &rows->inputs;
    int along = (int)(basin_node_inputs_hops(in) - rows->graph->base->relation);
    if (!basin_near_touched(rows, node)) {
        memcpy(x, in->table + node * in->shape.columns, (size_t)in->shape.columns * sizeof *x);
        return BASIN_OK;
    }
    for (int h = 0; h <= rows->hops; h++, x += rows->width) {
        asked own = {h, false, 0}, theirs = {h - 1, false, 0};
        if (h && h == rows->hops) {
            if (!mean(x, rows, along, node, rows->width, &theirs))
                return basin_fail_memory(error, "inputs");
            continue;
        }
        const float *from = row_of(rows, node, &own);
        if (!from) return basin_fail_memory(error, "inputs");
        memcpy(x, from, (size_t)rows->width * sizeof *x);
    }
    return BASIN_OK;
}

/* Known neighbours of a node along the trees' relation `r`. */
static bool known_sums(float sum[2], const basin_near_rows *rows, int64_t node, int r) {
    const basin_tree_table *t = &rows->table;
    if (!rows->graph->node[node]) {
        sum[0] = t->sums[r].anomalous[node], sum[1] = t->sums[r].count[node];
        return true;
    }
    const float *level = find_level(rows, node, 1);
    if (!level) return false;
    level += (rows->hops > 1 ? rows->width : 0) + t->relations * t->own + 2 * r;
    sum[0] = level[0], sum[1] = level[1];
    return true;
}

/* How often a node sees another: edges may have been kept several times. */
static int64_t times(const basin_near_rows *rows, int r, int64_t node, int64_t other) {
    basin_near_list list = basin_near_sees(rows->graph, rows->table.relation[r], node, false);
    int64_t low = 0, high = list.count, count = 0;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (list.col[middle] < other)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < list.count && list.col[low] == other; low++) count++;
    return count;
}

/* As basin_known_shares has it. */
static bool known_shares(float share[2], const basin_near_rows *rows, int64_t node, int r) {
    const double strength = 2, rate = rows->table.rate;
    basin_near_list list = basin_near_sees(rows->graph, rows->table.relation[r], node, false);
    float own[2], theirs[2];
    double sum = 0, count = 0;
    int8_t label = label_of(rows, node);
    if (!known_sums(own, rows, node, r)) return false;
    share[0] = (float)((own[0] + rate * strength) / (own[1] + strength));
    for (int64_t i = 0; i < list.count; i++) {
        int32_t j = list.col[i];
        if (j == node) continue;
        if (!known_sums(theirs, rows, j, r)) return false;
        double back = label >= 0 ? (double)times(rows, r, j, node) : 0;
        double anomalous = theirs[0] - back * (label > 0);
        sum += (anomalous + rate * strength) / (theirs[1] - back + strength);
        count++;
    }
    share[1] = (float)(count > 0 ? sum / count : rate);
    return true;
}

basin_status basin_near_trees_row(float *x, const basin_near_rows *rows, int64_t node,
                                  basin_error *error) {
    const basin_tree_table *t = &rows->table;
    size_t own = (size_t)t->own * sizeof *x;
    if (!basin_near_touched(rows, node)) {
        basin_tree_table_rows(x, t, &node, 0, 1);
        return BASIN_OK;
    }
    memcpy(x, row_of(rows, node, &(asked){0, true, 0}), own);
    for (int r = 0; r < t->relations; r++) {
        asked near = {1, true, r};
        float *first = x + (1 + r) * t->own, *second = first + t->relations * t->own;
        const float *from = row_of(rows, node, &near);
        if (!from || !mean(second, rows, t->relation[r], node, t->own, &near) ||
            (t->label && !known_shares(x + t->plain + 2 * r, rows, node, r)))
            return basin_fail_memory(error, "the inputs of trees");
        memcpy(first, from, own);
    }
    return BASIN_OK;
}
