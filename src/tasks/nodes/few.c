/* Scores of some nodes of a network by the part of it that lies around them, and which nodes a
 * night of new tables has changed. See nodes.h. */
#include "base/sort.h"
#include "tasks/nodes/near.h"

/* ---- the part around some nodes ---- */

typedef struct region {
    const basin_network *network;
    basin_relation back[BASIN_TREE_RELATIONS]; /* where edges have a direction */
    bool *taken;                               /* [N] */
    int64_t *node;                             /* [N] those that are taken, nearest first */
    int64_t count;
} region;

static void take(region *g, int64_t node, int64_t cap) {
    if (g->taken[node] || g->count >= cap) return;
    g->taken[node] = true;
    g->node[g->count++] = node;
}

static void take_row(region *g, const basin_relation *r, int64_t node, int64_t cap) {
    for (int64_t e = r->row ? r->row[node] : 0; r->row && e < r->row[node + 1]; e++)
        take(g, r->col[e], cap);
}

/* Returns whether the cap left something out. */
static bool grow(region *g, int64_t hops, int64_t cap) {
    for (int64_t first = 0; hops-- > 0;) {
        int64_t last = g->count;
        for (; first < last; first++)
            for (int r = 0; r < g->network->relations; r++) {
                take_row(g, &g->network->relation[r], g->node[first], cap);
                take_row(g, &g->back[r], g->node[first], cap);
            }
    }
    return g->count >= cap;
}

static void region_free(region *g) {
    for (int r = 0; r < BASIN_TREE_RELATIONS; r++) basin_relation_free(&g->back[r]);
    free(g->taken), free(g->node);
}

/* What trees know of the part's nodes, as in the whole. */
static basin_status know(basin_network *part, const basin_nodes_model *model,
                         const basin_network *whole, basin_error *error) {
    const basin_known_labels *known = &model->ensemble.known;
    if (!known->count) return BASIN_OK;
    BASIN_SCRATCH_RAW(int8_t, label, whole->nodes, "known labels", error);
    BASIN_TRY(BASIN_NEW_RAW(&part->known, part->nodes, "known labels", error));
    part->knows = basin_known_labels_find(label, known, whole);
    for (int64_t i = 0; i < part->nodes; i++) part->known[i] = label[part->origin[i]];
    return BASIN_OK;
}

static basin_status score_region(double *probability, const basin_nodes_model *model,
                                 const region *g, const int64_t *node, int64_t count,
                                 const basin_nodes_predict_options *options, basin_error *error) {
    BASIN_NETWORK_AT_EXIT basin_network *part = NULL;
    int64_t N = g->network->nodes;
    qsort(g->node, (size_t)g->count, sizeof *g->node, basin_compare_int64);
    BASIN_TRY(basin_network_induce(&part, g->network, g->node, g->count, error));
    BASIN_TRY(basin_network_find_order(part, error));
    BASIN_TRY(know(part, model, g->network, error));
    BASIN_SCRATCH_RAW(double, all, g->count, "scores", error);
    BASIN_TRY(basin_nodes_predict(all, model, part, options, error));
    for (int64_t i = 0; i < N; i++) probability[i] = NAN;
    for (int64_t i = 0; i < count; i++) {
        const int64_t *at =
            bsearch(&node[i], g->node, (size_t)g->count, sizeof *at, basin_compare_int64);
        probability[node[i]] = all[at - g->node];
    }
    return BASIN_OK;
}

basin_status basin_nodes_predict_some(double *probability, bool *capped,
                                      const basin_nodes_model *model, const basin_network *network,
                                      const int64_t *node, int64_t count, int64_t cap,
                                      const basin_nodes_predict_options *options,
                                      basin_error *error) {
    BASIN_AT_EXIT(region_free) region g = {.network = network};
    int64_t hops = basin_nodes_reach(model);
    *capped = false;
    if (network->relations > BASIN_TREE_RELATIONS || hops < 0 || count >= cap ||
        cap >= network->nodes)
        return basin_nodes_predict(probability, model, network, options, error);
    BASIN_TRY(BASIN_NEW(&g.taken, network->nodes, "a neighbourhood", error));
    BASIN_TRY(BASIN_NEW_RAW(&g.node, network->nodes, "a neighbourhood", error));
    for (int r = 0; r < network->relations && network->directed; r++)
        BASIN_TRY(
            basin_relation_turn(&g.back[r], NULL, &network->relation[r], network->nodes, error));
    for (int64_t i = 0; i < count; i++) take(&g, node[i], network->nodes);
    *capped = grow(&g, hops, cap);
    return score_region(probability, model, &g, node, count, options, error);
}

/* ---- what additions changed ---- */

/* Whether edge e of node i is there in the base as well, and carries the same. */
static bool same_edge(const basin_relation *now, int64_t e, const basin_relation *then, int64_t i,
                      size_t bytes) {
    int64_t at = basin_relation_find(then, i, now->col[e]);
    if (at < 0 || !bytes) return at >= 0;
    size_t facts = bytes / sizeof(float);
    return !memcmp(now->fact + (size_t)e * facts, then->fact + (size_t)at * facts, bytes);
}

int64_t basin_nodes_changed(int64_t *node, bool *changed, const basin_network *base,
                            const basin_network *network) {
    int64_t count = 0, N = base->nodes;
    int64_t features = base->feature ? base->features : 0;
    size_t bytes = (size_t)network->facts.count * sizeof(float);
    size_t width = (size_t)features * sizeof(float);
    for (int64_t i = 0; i < network->nodes; i++)
        changed[i] = i >= N || (width && memcmp(network->feature + i * features,
                                                base->feature + i * features, width) != 0);
    for (int r = 0; r < network->relations; r++) {
        const basin_relation *now = &network->relation[r];
        int at = basin_network_relation(base, now->name);
        for (int64_t i = 0; i < network->nodes; i++)
            for (int64_t e = now->row[i]; e < now->row[i + 1]; e++)
                if (i >= N || at < 0 || !same_edge(now, e, &base->relation[at], i, bytes))
                    changed[i] = changed[now->col[e]] = true;
    }
    for (int64_t i = 0; i < network->nodes; i++)
        if (changed[i]) node[count++] = i;
    return count;
}
