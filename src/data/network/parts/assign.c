/* Which part a node is in, without more memory than a few bytes a node: by ranges of numbers, and
 * by linear deterministic greedy (Stanton and Kliot 2012), streamed again with what the pass before
 * found. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/parts/parts.h"

void basin_cut_relations(int *first, int *end, const basin_network *network) {
    int all = basin_network_main_relation(network);
    *first = all < 0 ? 0 : all;
    *end = all < 0 ? network->relations : all + 1;
}

int64_t basin_cut_degree(const basin_network *network, int64_t node) {
    int first, end;
    int64_t degree = 0;
    basin_cut_relations(&first, &end, network);
    for (int r = first; r < end; r++)
        degree += network->relation[r].row[node + 1] - network->relation[r].row[node];
    return degree;
}

static int64_t weight_of(const basin_network *network, int64_t node) {
    return BASIN_NODE_EDGES + basin_cut_degree(network, node);
}

static int64_t weigh(const basin_network *network) {
    int64_t sum = 0;
    for (int64_t i = 0; i < network->nodes; i++) sum += weight_of(network, i);
    return sum;
}

void basin_cut_by_range(uint16_t *part, const basin_network *network, int64_t parts) {
    double all = (double)weigh(network), before = 0;
    for (int64_t i = 0; i < network->nodes; i++) {
        double w = (double)weight_of(network, i);
        int64_t p = (int64_t)((before + w / 2) / all * (double)parts);
        part[i] = (uint16_t)(p < parts ? p : parts - 1);
        before += w;
    }
}

/* ---- greedy ---- */

enum { PASSES = 4, NOWHERE = UINT16_MAX };

typedef struct stream {
    const basin_network *network;
    uint16_t *part;
    int64_t parts;
    double *weight, *nodes; /* [parts] of what is there */
    double weight_room, node_room;
    int64_t *seen; /* [parts] neighbours of the node in question */
} stream;

static void count_seen(stream *s, int64_t node) {
    int first, end;
    memset(s->seen, 0, (size_t)s->parts * sizeof *s->seen);
    basin_cut_relations(&first, &end, s->network);
    for (int r = first; r < end; r++) {
        const basin_relation *relation = &s->network->relation[r];
        for (int64_t e = relation->row[node]; e < relation->row[node + 1]; e++) {
            uint16_t p = s->part[relation->col[e]];
            if (p != NOWHERE && relation->col[e] != node) s->seen[p]++;
        }
    }
}

static double load_of(const stream *s, int64_t p) {
    double a = s->weight[p] / s->weight_room, b = s->nodes[p] / s->node_room;
    return a > b ? a : b;
}

/* Most neighbours times what is free; of equals, the part with most room. */
static int64_t best_part(const stream *s) {
    int64_t best = 0;
    double value = -1, least = 0;
    for (int64_t p = 0; p < s->parts; p++) {
        double load = load_of(s, p), here = load < 1 ? (double)s->seen[p] * (1 - load) : -load;
        if (here > value || p == 0 || (here == value && load < least)) /* the first counts, too */
            best = p, value = here, least = load;
    }
    return best;
}

static void put(stream *s, int64_t node, int64_t p, double sign) {
    s->weight[p] += sign * (double)weight_of(s->network, node);
    s->nodes[p] += sign;
}

static void run_pass(stream *s) {
    for (int64_t i = 0; i < s->network->nodes; i++) {
        if (s->part[i] != NOWHERE) put(s, i, s->part[i], -1);
        count_seen(s, i);
        int64_t p = best_part(s);
        s->part[i] = (uint16_t)p;
        put(s, i, p, 1);
    }
}

basin_status basin_cut_by_stream(uint16_t *part, const basin_network *network, int64_t parts,
                                 basin_error *error) {
    const double slack = 1.05;
    stream s = {.network = network, .part = part, .parts = parts};
    s.weight = calloc((size_t)parts, sizeof *s.weight);
    s.nodes = calloc((size_t)parts, sizeof *s.nodes);
    s.seen = calloc((size_t)parts, sizeof *s.seen);
    s.weight_room = slack * (double)weigh(network) / (double)parts;
    s.node_room = slack * (double)network->nodes / (double)parts + 1;
    basin_status status =
        s.weight && s.nodes && s.seen
            ? BASIN_OK
            : basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld parts", (long long)parts);
    for (int64_t i = 0; i < network->nodes; i++) part[i] = NOWHERE;
    for (int i = 0; i < PASSES && !status; i++) run_pass(&s);
    free(s.weight), free(s.nodes), free(s.seen);
    return status;
}
