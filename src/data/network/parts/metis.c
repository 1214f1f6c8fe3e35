/* METIS (Karypis and Kumar 1998), opened at run time: it finds parts of equally many nodes and
 * edges between which few edges run. The function of its C API is declared here, so that building
 * wants no header of it; Debian's has 32-bit numbers. */
#include <stdlib.h>

#include "base/library.h"
#include "base/memory.h"
#include "data/network/parts/parts.h"

typedef int32_t whole;
int METIS_SetDefaultOptions(whole *options);
int METIS_PartGraphKway(whole *nodes, whole *constraints, whole *begin, whole *other,
                        whole *node_weight, whole *node_size, whole *edge_weight, whole *parts,
                        float *share, float *slack, whole *options, whole *cut, whole *part);

#define FUNCTIONS(X) X(METIS_SetDefaultOptions) X(METIS_PartGraphKway)

enum { OPTIONS = 40, OPTION_SEED = 8, METIS_GOOD = 1, METIS_NO_MEMORY = -3 };

typedef struct lists {
    whole *begin, *other, *weight, *part; /* [N + 1], [edges], [N, 2], [N] */
    int64_t edges;
} lists;

static int64_t edges_of(const basin_network *network) {
    int first, end;
    int64_t edges = 0;
    basin_cut_relations(&first, &end, network);
    for (int r = first; r < end; r++) edges += network->relation[r].edges;
    return network->directed ? 2 * edges : edges;
}

size_t basin_cut_metis_bytes(const basin_network *network) {
    int64_t edges = edges_of(network);
    if (edges >= INT32_MAX) return 0;
    return (size_t)edges * 80 + (size_t)network->nodes * 100; /* its coarser graphs with it */
}

/* ---- lists that METIS takes: each edge both ways, no loops ---- */

/* Calls for every edge between two nodes; of a directed network also the other way. */
static void visit(lists *l, const basin_network *network, bool count) {
    int first, end;
    basin_cut_relations(&first, &end, network);
    for (int r = first; r < end; r++) {
        const basin_relation *relation = &network->relation[r];
        for (int64_t i = 0; i < network->nodes; i++)
            for (int64_t e = relation->row[i]; e < relation->row[i + 1]; e++) {
                int64_t j = relation->col[e];
                if (j == i) continue;
                if (count)
                    l->begin[i + 1]++, l->begin[j + 1] += network->directed;
                else
                    l->other[l->begin[i]++] = (whole)j;
                if (!count && network->directed) l->other[l->begin[j]++] = (whole)i;
            }
    }
}

static void fill(lists *l, const basin_network *network) {
    int64_t N = network->nodes;
    visit(l, network, true);
    for (int64_t i = 0; i < N; i++) l->begin[i + 1] += l->begin[i];
    visit(l, network, false);
    for (int64_t i = N; i > 0; i--) l->begin[i] = l->begin[i - 1];
    l->begin[0] = 0;
    for (int64_t i = 0; i < N; i++) {
        l->weight[2 * i] = 1;
        l->weight[2 * i + 1] = (whole)basin_cut_degree(network, i);
    }
}

static basin_status open_lists(lists *l, const basin_network *network, basin_error *error) {
    size_t N = (size_t)network->nodes, word = sizeof(whole);
    l->edges = edges_of(network);
    l->begin = calloc(N + 2, word);
    l->other = basin_array_new((size_t)l->edges, word);
    l->weight = basin_array_new(N, 2 * word);
    l->part = basin_array_new(N, word);
    if (!l->begin || !l->other || !l->weight || !l->part)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to cut %lld edges",
                          network->path, (long long)l->edges);
    fill(l, network);
    return BASIN_OK;
}

static void close_lists(lists *l) {
    free(l->begin), free(l->other), free(l->weight), free(l->part);
}

basin_status basin_cut_by_metis(uint16_t *part, const basin_network *network, int64_t parts,
                                basin_error *error) {
    struct {
        FUNCTIONS(BASIN_LIBRARY_FIELD)
    } metis;
    static const basin_library_function wanted[] = {FUNCTIONS(BASIN_LIBRARY_NAME){0}};
    lists l = {0};
    whole nodes = (whole)network->nodes, constraints = 2, count = (whole)parts, cut = 0;
    whole option[OPTIONS];
    float slack[2] = {1.05f, 1.05f};
    basin_status status = basin_library_load(&metis, BASIN_LIBRARY_METIS, wanted, error);
    if (!status && !basin_cut_metis_bytes(network))
        status = basin_fail(error, BASIN_UNSUPPORTED,
                            "%s: %lld edges are more than METIS counts, wanted method stream",
                            network->path, (long long)edges_of(network));
    if (!status) status = open_lists(&l, network, error);
    if (!status) {
        metis.METIS_SetDefaultOptions(option);
        option[OPTION_SEED] = 1;
        int found =
            metis.METIS_PartGraphKway(&nodes, &constraints, l.begin, l.other, l.weight, NULL, NULL,
                                      &count, NULL, slack, option, &cut, l.part);
        if (found != METIS_GOOD)
            status =
                basin_fail(error, found == METIS_NO_MEMORY ? BASIN_NO_MEMORY : BASIN_UNSUPPORTED,
                           "%s: METIS ended with %d, wanted a smaller graph or method stream",
                           network->path, found);
    }
    for (int64_t i = 0; i < network->nodes && !status; i++) part[i] = (uint16_t)l.part[i];
    close_lists(&l);
    return status;
}
