/* A relation summed up: degrees, loops, symmetry, homophily. */
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/team/team.h"
#include "data/network/network.h"

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void count_degrees(basin_degrees *d, int64_t *degree, const basin_relation *r,
                          int64_t nodes) {
    for (int64_t i = 0; i < nodes; i++) {
        degree[i] = r->row[i + 1] - r->row[i];
        int bin = 0;
        while (bin < BASIN_DEGREE_BINS - 1 && degree[i] >> bin) bin++;
        d->bin[bin]++;
        d->isolated += degree[i] == 0;
    }
    qsort(degree, (size_t)nodes, sizeof *degree, compare);
    d->least = degree[0];
    d->median = degree[nodes / 2];
    d->most = degree[nodes - 1];
    d->mean = (double)d->edges / (double)nodes;
}

typedef struct counts {
    _Atomic int64_t loops, one_way, both, equal, of_anomalies, alike;
} counts;

typedef struct counting {
    const basin_network *network;
    const basin_relation *relation;
    counts *to;
} counting;

static void count_some(const void *context, int64_t first, int64_t last, int place) {
    const basin_network *n = ((const counting *)context)->network;
    const basin_relation *r = ((const counting *)context)->relation;
    counts *to = ((const counting *)context)->to;
    int64_t loops = 0, one_way = 0, both = 0, equal = 0, of_anomalies = 0, alike = 0;
    (void)place;
    for (int64_t i = first; i < last; i++) {
        int32_t y = n->label ? n->label[i] : -1;
        for (int64_t e = r->row[i]; e < r->row[i + 1]; e++) {
            int32_t k = r->col[e], z = n->label ? n->label[k] : -1;
            loops += k == i;
            /* an undirected network has both ways by construction */
            if (n->directed) one_way += basin_relation_find(r, k, (int32_t)i) < 0;
            if (k == i || y < 0 || z < 0) continue;
            both++;
            equal += y == z;
            of_anomalies += y == 1;
            alike += y == 1 && z == 1;
        }
    }
    atomic_fetch_add(&to->loops, loops);
    atomic_fetch_add(&to->one_way, one_way);
    atomic_fetch_add(&to->both, both);
    atomic_fetch_add(&to->equal, equal);
    atomic_fetch_add(&to->of_anomalies, of_anomalies);
    atomic_fetch_add(&to->alike, alike);
}

static void count_edges(basin_degrees *d, const basin_network *n, const basin_relation *r) {
    counts c = {0};
    counting all = {n, r, &c};
    basin_team_run_all(count_some, &all, n->nodes, 256);
    d->self_loops = c.loops;
    d->symmetric = c.one_way == 0;
    d->homophily = c.both ? (double)c.equal / (double)c.both : NAN;
    d->anomaly_homophily = c.of_anomalies ? (double)c.alike / (double)c.of_anomalies : NAN;
}

basin_status basin_network_degrees(basin_degrees *degrees, const basin_network *network,
                                   int relation, basin_error *error) {
    const basin_relation *r = &network->relation[relation];
    int64_t *degree = basin_array_new((size_t)network->nodes, sizeof *degree);
    *degrees = (basin_degrees){.edges = r->edges};
    if (!degree)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for %" PRId64 " degrees",
                          network->path, network->nodes);
    count_degrees(degrees, degree, r, network->nodes);
    free(degree);
    count_edges(degrees, network, r);
    return BASIN_OK;
}
