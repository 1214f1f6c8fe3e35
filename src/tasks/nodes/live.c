/* Single nodes of a network that grows; see nodes.h. */

#include <pthread.h>
#include <stdatomic.h>

#include "base/sized.h"
#include "base/sort.h"
#include "tasks/nodes/near.h"

enum { CAP_NODES = 1024, CAP_EDGES = 32768, RECENT = 4096 };

struct basin_nodes_live {
    const basin_nodes_model *model;
    const basin_network *network; /* the base, */
    basin_network *ordered;       /* and in the order of ids; NULL: it is */
    basin_near_graph graph;
    basin_near_rows rows;
    basin_near_scorer *scorer;
    basin_explainer typical;             /* of the base, where its inputs are kept */
    atomic_llong scored, recent[RECENT]; /* how many nodes, and the last ones */
    pthread_rwlock_t lock;
};

static basin_status open_live(basin_nodes_live *live, const basin_network *network,
                              const basin_nodes_live_options *o, basin_error *error) {
    const basin_nodes_model *model = live->model;
    basin_nodes_live_options options = *o;
    if (!o->cap_nodes) options.cap_nodes = CAP_NODES;
    if (!o->cap_edges) options.cap_edges = CAP_EDGES;
    live->rows.graph = &live->graph, live->rows.model = model;
    BASIN_TRY(basin_nodes_check_network(model, network, error));
    BASIN_TRY(basin_nodes_view(&live->ordered, &model->settings, network, error));
    live->network = network;
    if (live->ordered) network = live->ordered;
    BASIN_TRY(basin_near_graph_open(&live->graph, network, &model->ensemble, error));
    BASIN_TRY(basin_near_rows_open(&live->rows, &live->graph, model, o->memory, error));
    BASIN_TRY(basin_near_scorer_new(&live->scorer, &live->rows, &options, error));
    live->typical = (basin_explainer){
        .network = network, .model = model, .inputs = live->rows.inputs, .table = live->rows.table};
    return live->rows.trees ? basin_explainer_typical(&live->typical, error) : BASIN_OK;
}

basin_status basin_nodes_live_open(basin_nodes_live **live, const basin_nodes_model *model,
                                   const basin_network *network,
                                   const basin_nodes_live_options *options, basin_error *error) {
    static const basin_nodes_live_options none = {0};
    BASIN_TRY(BASIN_SIZE_CHECK(options, "basin_nodes_live_options", error));
    BASIN_TRY(BASIN_NEW(live, 1, "single nodes", error));
    (*live)->model = model;
    pthread_rwlock_init(&(*live)->lock, NULL);
    BASIN_TRY_OR(open_live(*live, network, options ? options : &none, error),
                 (basin_nodes_live_close(*live), *live = NULL));
    return BASIN_OK;
}

void basin_nodes_live_close(basin_nodes_live *live) {
    if (!live) return;
    basin_explainer_forget(&live->typical);
    basin_near_scorer_free(live->scorer);
    basin_near_rows_close(&live->rows);
    if (live->graph.node) basin_near_graph_close(&live->graph);
    basin_network_close(live->ordered);
    pthread_rwlock_destroy(&live->lock);
    free(live);
}

/* A node's number as the caller's network has it. */
static int64_t number_of(const basin_nodes_live *live, int64_t node) {
    return live->ordered && node < live->ordered->nodes ? live->ordered->origin[node] : node;
}

static basin_status get(basin_nodes_live_score *score, basin_nodes_live *live, const char *id,
                        basin_error *error) {
    int64_t node = basin_near_find(&live->graph, id);
    *score = (basin_nodes_live_score){.node = node};
    if (node < 0) return BASIN_OK;
    BASIN_TRY(basin_near_score(score, live->scorer, node, error));
    score->anomalous = score->probability > live->model->threshold;
    live->recent[live->scored++ % RECENT] = node;
    score->node = number_of(live, node);
    return BASIN_OK;
}

basin_status basin_nodes_live_predict(basin_nodes_live_score *score, basin_nodes_live *live,
                                      const char *const *id, int64_t count, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t i = 0; i < count && !status; i++) {
        pthread_rwlock_rdlock(&live->lock);
        status = get(&score[i], live, id[i], error);
        pthread_rwlock_unlock(&live->lock);
    }
    return status;
}

basin_status basin_nodes_live_commit(basin_nodes_live *live, const char *nodes, const char *edges,
                                     const basin_near_commit *commit, basin_error *error) {
    pthread_rwlock_wrlock(&live->lock);
    basin_status status = basin_near_add(&live->graph, &live->rows, nodes, edges, commit, error);
    pthread_rwlock_unlock(&live->lock);
    return status;
}

basin_status basin_nodes_live_add(basin_nodes_live *live, const char *nodes, const char *edges,
                                  basin_error *error) {
    return basin_nodes_live_commit(live, nodes, edges, NULL, error);
}

basin_status basin_nodes_live_drift(basin_nodes_drift **drift, basin_nodes_live *live,
                                    basin_error *error) {
    int64_t node[RECENT], count = basin_int_min(live->scored, RECENT);
    for (int64_t i = 0; i < count; i++) node[i] = live->recent[i];
    pthread_rwlock_rdlock(&live->lock);
    basin_status status =
        basin_nodes_drift_near(drift, live->model, &live->graph, node, count, error);
    pthread_rwlock_unlock(&live->lock);
    return status;
}

/* ---- explanations ---- */

/* The nodes of a part have the rows that they have in the whole. */
static void give_rows(basin_explainer *x, void *context) {
    const basin_near_rows *rows = &((const basin_nodes_live *)context)->rows;
    const basin_node_table *to[] = {&x->inputs.node, &x->table.node};
    const basin_node_table *from[] = {&rows->inputs.node, &rows->table.node};
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < x->network->nodes && to[k]->row; i++)
            memcpy(to[k]->row + i * to[k]->stride, basin_node_row(from[k], x->network->origin[i]),
                   (size_t)to[k]->stride * sizeof(float));
}

static basin_status score_around(double *probability, basin_nodes_live *live,
                                 const basin_network *part, int64_t place, basin_error *error) {
    for (int r = 0; r < part->relations; r++) {
        const int64_t *row = part->relation[r].row + place;
        for (int64_t e = row[0] - (r == 0); e < row[1]; e++) {
            int64_t at = e < row[0] ? place : part->relation[r].col[e];
            basin_nodes_live_score score;
            if (probability[at] > 0) continue;
            BASIN_TRY(basin_near_score(&score, live->scorer, part->origin[at], error));
            probability[at] = score.probability;
        }
    }
    return BASIN_OK;
}

static basin_status explain(basin_nodes_explanation **why, basin_nodes_live *live, int64_t node,
                            basin_error *error) {
    BASIN_AT_EXIT(basin_near_part_free) basin_network *part = NULL;
    int64_t place;
    BASIN_TRY(basin_near_around(&part, &place, live->scorer, node, error));
    BASIN_SCRATCH(double, probability, part->nodes, "scores", error);
    BASIN_TRY(score_around(probability, live, part, place, error));
    basin_nodes_explain_options brief = {
        .memory = SIZE_MAX / 2, .probability = probability, .brief = true};
    basin_explainer x = {.model = live->model, .network = part, .count = 1, .of = why};
    if (live->typical.column_typical)
        x.whole = &live->typical, x.give_rows = give_rows, x.context = live;
    BASIN_TRY(basin_explainer_run(&x, &place, &brief, error));
    (*why)->node = number_of(live, node), (*why)->rank = 0;
    for (int64_t i = 0; i < (*why)->neighbours; i++)
        (*why)->neighbour[i].node = number_of(live, part->origin[(*why)->neighbour[i].node]);
    return BASIN_OK;
}

basin_status basin_nodes_live_explain(basin_nodes_explanation **why, basin_nodes_live *live,
                                      const char *id, basin_error *error) {
    *why = NULL;
    pthread_rwlock_rdlock(&live->lock);
    int64_t node = basin_near_find(&live->graph, id);
    basin_status status = node < 0 ? BASIN_OK : explain(why, live, node, error);
    pthread_rwlock_unlock(&live->lock);
    return status;
}

const char *basin_nodes_live_id(basin_nodes_live *live, int64_t node, char *text, size_t size) {
    char number[BASIN_MAX_NODE];
    bool given = node < live->network->nodes;
    pthread_rwlock_rdlock(&live->lock);
    snprintf(text, size, "%s",
             given ? basin_network_id(live->network, node, number)
                   : basin_near_id(&live->graph, node, number));
    pthread_rwlock_unlock(&live->lock);
    return text;
}

basin_nodes_live_counts basin_nodes_live_count(basin_nodes_live *live) {
    const basin_near_graph *g = &live->graph;
    int homo = g->base->both ? BASIN_COME : basin_network_main_relation(g->base);
    pthread_rwlock_rdlock(&live->lock);
    basin_nodes_live_counts counts = {.nodes = g->nodes,
                                      .edges = g->base->relation[homo < 0 ? 0 : homo].edges +
                                               g->added_edges,
                                      .added_nodes = g->nodes - g->base->nodes,
                                      .added_edges = g->added_edges,
                                      .bytes = g->bytes + basin_near_scorer_bytes(live->scorer)};
    pthread_rwlock_unlock(&live->lock);
    return counts;
}
