/* Single nodes of a network that grows; see live.h. */

#include "task/nodes/live.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"

struct basin_nodes_live {
    const basin_nodes_model *model;
    const basin_network *base;
    basin_network *whole; /* base and additions; NULL: there are none */
    int64_t added_nodes, added_edges;
    pthread_rwlock_t lock;
};

static const basin_network *network_of(const basin_nodes_live *live) {
    return live->whole ? live->whole : live->base;
}

basin_status basin_nodes_live_open(basin_nodes_live **live, const basin_nodes_model *model,
                                   const basin_network *network,
                                   const basin_nodes_live_options *options, basin_error *error) {
    (void)options;
    *live = NULL;
    BASIN_TRY(basin_nodes_check_network(model, network, error));
    BASIN_TRY(BASIN_NEW(live, 1, "a live detector", error));
    (*live)->model = model, (*live)->base = network;
    pthread_rwlock_init(&(*live)->lock, NULL);
    return BASIN_OK;
}

void basin_nodes_live_close(basin_nodes_live *live) {
    if (!live) return;
    basin_network_free(live->whole);
    pthread_rwlock_destroy(&live->lock);
    free(live);
}

static basin_status get(basin_nodes_live_score *score, basin_nodes_live *live,
                        const char *const *id, int64_t count, basin_error *error) {
    const basin_network *n = network_of(live);
    BASIN_FREE_AT_EXIT double *probability = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&probability, n->nodes, "scores", error));
    BASIN_TRY(basin_nodes_score(probability, live->model, n, NULL, error));
    for (int64_t i = 0; i < count; i++) {
        score[i] = (basin_nodes_live_score){.node = basin_network_find(n, id[i])};
        if (score[i].node < 0) continue;
        score[i].probability = probability[score[i].node];
        score[i].anomalous = score[i].probability > live->model->threshold;
        score[i].nodes = n->nodes;
    }
    return BASIN_OK;
}

basin_status basin_nodes_live_get(basin_nodes_live_score *score, basin_nodes_live *live,
                                  const char *const *id, int64_t count, basin_error *error) {
    pthread_rwlock_rdlock(&live->lock);
    basin_status status = get(score, live, id, count, error);
    pthread_rwlock_unlock(&live->lock);
    return status;
}

/* ---- additions ---- */

/* The first line of a table without rows, as the schema names its columns; free it. */
static basin_status header_of(char **text, const basin_schema_table *table, const char *otherwise,
                              basin_error *error) {
    size_t size = strlen(otherwise) + 2, used = 0;
    for (size_t i = 0; i < table->columns; i++) size += 2 * strlen(table->column[i].name) + 3;
    BASIN_TRY(BASIN_NEW(text, size, "additions", error));
    for (size_t i = 0; i < table->columns; i++) {
        if (table->column[i].type == BASIN_COLUMN_DROPPED) continue;
        if (used) (*text)[used++] = ',';
        (*text)[used++] = '"';
        for (const char *c = table->column[i].name; *c; c++) {
            if (*c == '"') (*text)[used++] = '"';
            (*text)[used++] = *c;
        }
        (*text)[used++] = '"';
    }
    snprintf(*text + used, size - used, "%s\n", used ? "" : otherwise);
    return BASIN_OK;
}

static basin_status add(basin_nodes_live *live, const char *nodes, const char *edges,
                        basin_error *error) {
    const basin_network *n = network_of(live);
    const basin_schema *schema = live->base->schema;
    BASIN_FREE_AT_EXIT char *no_nodes = NULL, *no_edges = NULL;
    BASIN_TRY(header_of(&no_nodes, &schema->nodes, "id", error));
    BASIN_TRY(header_of(&no_edges, &schema->edges, "source,target", error));
    if (!nodes) nodes = no_nodes;
    if (!edges) edges = no_edges;
    basin_csv_source source[] = {{"nodes", nodes, strlen(nodes), false},
                                 {"edges", edges, strlen(edges), false}};
    basin_network_options options = {.base = n, .schema = schema};
    basin_network *whole;
    BASIN_TRY(basin_network_csv_read(&whole, source, 2, &options, error));
    live->added_nodes += whole->nodes - n->nodes;
    basin_network_free(live->whole);
    live->whole = whole;
    return BASIN_OK;
}

basin_status basin_nodes_live_add(basin_nodes_live *live, const char *nodes, const char *edges,
                                  basin_error *error) {
    pthread_rwlock_wrlock(&live->lock);
    basin_status status = add(live, nodes, edges, error);
    pthread_rwlock_unlock(&live->lock);
    return status;
}

basin_nodes_live_counts basin_nodes_live_count(const basin_nodes_live *live) {
    const basin_network *n = network_of(live);
    int homo = basin_network_main_relation(n);
    return (basin_nodes_live_counts){.nodes = n->nodes,
                                     .edges = n->relation[homo < 0 ? 0 : homo].edges,
                                     .added_nodes = live->added_nodes,
                                     .added_edges = live->added_edges};
}

const basin_nodes_model *basin_nodes_live_model(const basin_nodes_live *live) {
    return live->model;
}
