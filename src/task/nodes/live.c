/* Single nodes of a network that grows; see live.h. */

#include "task/nodes/live.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/try.h"
#include "task/nodes/near.h"

enum { CAP_NODES = 1024, CAP_EDGES = 32768 };

struct basin_nodes_live {
    const basin_nodes_model *model;
    basin_near_graph graph;
    basin_near_rows rows;
    basin_near_scorer *scorer;
    pthread_rwlock_t lock;
};

static basin_status open_live(basin_nodes_live *live, const basin_network *network,
                              const basin_nodes_live_options *o, basin_error *error) {
    basin_near_config config = {.cap_nodes = o->cap_nodes ? o->cap_nodes : CAP_NODES,
                                .cap_edges = o->cap_edges ? o->cap_edges : CAP_EDGES,
                                .memory = o->memory,
                                .watch = o->watch};
    const basin_nodes_model *model = live->model;
    live->rows.graph = &live->graph, live->rows.model = model;
    BASIN_TRY(basin_nodes_check_network(model, network, error));
    BASIN_TRY(basin_near_graph_open(&live->graph, network, &model->ensemble, error));
    if (o->states >= 0)
        BASIN_TRY(basin_near_rows_open(&live->rows, &live->graph, model, o->memory, error));
    return basin_near_scorer_new(&live->scorer, &live->rows, &config, error);
}

basin_status basin_nodes_live_open(basin_nodes_live **live, const basin_nodes_model *model,
                                   const basin_network *network,
                                   const basin_nodes_live_options *options, basin_error *error) {
    static const basin_nodes_live_options none = {0};
    BASIN_TRY(BASIN_NEW(live, 1, "single nodes", error));
    (*live)->model = model;
    pthread_rwlock_init(&(*live)->lock, NULL);
    basin_status status = open_live(*live, network, options ? options : &none, error);
    if (status) basin_nodes_live_close(*live), *live = NULL;
    return status;
}

void basin_nodes_live_close(basin_nodes_live *live) {
    if (!live) return;
    basin_near_scorer_free(live->scorer);
    basin_near_rows_close(&live->rows);
    if (live->graph.node) basin_near_graph_close(&live->graph);
    pthread_rwlock_destroy(&live->lock);
    free(live);
}

static basin_status get(basin_nodes_live_score *score, basin_nodes_live *live, const char *id,
                        basin_error *error) {
    int64_t node = basin_near_find(&live->graph, id);
    *score = (basin_nodes_live_score){.node = node};
    if (node < 0) return BASIN_OK;
    BASIN_TRY(basin_near_score(score, live->scorer, node, error));
    score->anomalous = score->probability > live->model->threshold;
    return BASIN_OK;
}

basin_status basin_nodes_live_get(basin_nodes_live_score *score, basin_nodes_live *live,
                                  const char *const *id, int64_t count, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t i = 0; i < count && !status; i++) {
        pthread_rwlock_rdlock(&live->lock);
        status = get(&score[i], live, id[i], error);
        pthread_rwlock_unlock(&live->lock);
    }
    return status;
}

basin_status basin_nodes_live_add(basin_nodes_live *live, const char *nodes, const char *edges,
                                  basin_error *error) {
    pthread_rwlock_wrlock(&live->lock);
    basin_status status = basin_near_add(&live->graph, &live->rows, nodes, edges, error);
    pthread_rwlock_unlock(&live->lock);
    return status;
}

basin_nodes_live_counts basin_nodes_live_count(basin_nodes_live *live) {
    const basin_near_graph *g = &live->graph;
    int homo = basin_network_main_relation(g->base);
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

const basin_nodes_model *basin_nodes_live_model(const basin_nodes_live *live) {
    return live->model;
}
