/* Pairs of nodes without an edge, some of which a model sees beside the edges: drawn at random,
 * others in each epoch (GRASS, Liao et al. 2024). Listed once; a batch draws from the list. */
#include "basin/random.h"
#include "base/sort.h"
#include "base/try.h"
#include "basin/parallel.h"
#include "tasks/graphs/set/graphset.h"

enum { STREAM_LIST = 46, ALL = 64, SPARE = 4 };
static const char pairs_of[] = "random pairs of nodes";

/* Graphs of up to ALL nodes have all pairs on the list, others SPARE times as many as are drawn. */
static bool takes_all(int64_t nodes, double mean) {
    return nodes <= ALL || (double)nodes <= SPARE * mean;
}

/* Room for a list, two numbers per pair. */
static int64_t room_for(int64_t nodes, double mean) {
    return takes_all(nodes, mean) ? nodes * nodes : 2 * nodes * (int64_t)ceil(SPARE * mean / 2);
}

static bool has_edge(const basin_graphset *set, int64_t g, int32_t a, int32_t b) {
    const int32_t *edge = set->edge + 2 * set->edge_start[g], ends[2] = {a, b}, back[2] = {b, a};
    size_t count = (size_t)(set->edge_start[g + 1] - set->edge_start[g]);
    return bsearch(ends, edge, count, sizeof ends, basin_compare_ends) ||
           bsearch(back, edge, count, sizeof back, basin_compare_ends);
}

/* Both ways, ascending, without edges; returns how many. The list of a graph depends on nothing
 * but the graph and the seed. */
static int64_t list_pairs(int32_t (*pair)[2], const basin_graphset *set, int64_t g, double mean,
                          uint64_t seed) {
    int64_t n = basin_graphset_nodes(set, g), room = room_for(n, mean), kept = 0;
    basin_random random = basin_random_start(seed, STREAM_LIST, 0);
    bool all = takes_all(n, mean);
    for (int64_t k = 0; k < room; k += all ? 1 : 2) {
        int32_t a = (int32_t)(all ? k / n : k * n / room);
        int32_t b = (int32_t)(all ? k % n : (int64_t)basin_random_below(&random, (uint64_t)n));
        pair[k][0] = a, pair[k][1] = b;
        if (!all) pair[k + 1][0] = b, pair[k + 1][1] = a;
    }
    if (!all) qsort(pair, (size_t)room, sizeof *pair, basin_compare_ends);
    for (int64_t k = 0; k < room; k++) {
        int32_t a = pair[k][0], b = pair[k][1];
        bool again = kept && pair[kept - 1][0] == a && pair[kept - 1][1] == b;
        if (a == b || again || has_edge(set, g, a, b)) continue;
        pair[kept][0] = a, pair[kept++][1] = b;
    }
    return kept;
}

typedef struct listing {
    basin_random_pairs *r;
    const basin_graphset *set;
    int64_t first, *count; /* [graphs] */
    uint64_t seed;
} listing;

static void list_graphs(const void *context, int64_t begin, int64_t end) {
    const listing *l = context;
    for (int64_t g = l->first + begin; g < l->first + end; g++)
        l->count[g] = list_pairs((int32_t(*)[2])(l->r->pair + 2 * l->r->start[g]), l->set, g,
                                 l->r->mean, l->seed);
}

/* Lists every graph in its own room, then moves the lists together. */
static basin_status list_all(basin_random_pairs *r, const basin_graphset *set, uint64_t seed,
                             int64_t first, int64_t count, basin_error *error) {
    BASIN_SCRATCH(int64_t, found, set->graphs, pairs_of, error);
    BASIN_TRY(BASIN_NEW(&r->start, set->graphs + 1, pairs_of, error));
    for (int64_t g = 0; g < set->graphs; g++) {
        bool in = g >= first && g < first + count;
        r->start[g + 1] = r->start[g] + (in ? room_for(basin_graphset_nodes(set, g), r->mean) : 0);
    }
    BASIN_TRY(BASIN_NEW_RAW(&r->pair, 2 * r->start[set->graphs], pairs_of, error));
    listing l = {r, set, first, found, seed};
    basin_parallel_for(list_graphs, &l, count, 0, 0);
    for (int64_t g = 0, to = 0; g < set->graphs; g++) {
        memmove(r->pair + 2 * to, r->pair + 2 * r->start[g],
                2 * (size_t)found[g] * sizeof *r->pair);
        r->start[g] = to, to += found[g];
        if (g + 1 == set->graphs) r->start[g + 1] = to;
    }
    return BASIN_OK;
}

basin_status basin_random_pairs_new(basin_random_pairs **random, const basin_graphset *set,
                                    double mean, int64_t walks, uint64_t seed, int64_t first,
                                    int64_t count, basin_error *error) {
    BASIN_TRY(BASIN_NEW(random, 1, pairs_of, error));
    basin_random_pairs *r = *random;
    r->mean = mean, r->walks = walks;
    BASIN_TRY(list_all(r, set, seed, first, count, error));
    BASIN_TRY(BASIN_NEW(&r->walk, r->start[set->graphs] * walks, pairs_of, error));
    return walks ? basin_graphset_pair_walks(r, set, first, count, error) : BASIN_OK;
}

void basin_random_pairs_free(basin_random_pairs *r) {
    if (r) BASIN_FREE(r->start, r->pair, r->walk);
    free(r);
}
