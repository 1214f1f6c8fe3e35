/* Cutting a network: the part of each node, halos, and the files of parts. */
#include "base/file.h"
#include "tasks/nodes/network/parts/parts.h"

/* ---- which part a node is in: streams and ranges ---- */

/* The relations that count: the main one, or all. */
static void relations_of(int *first, int *end, const basin_network *network) {
    int all = basin_network_main_relation(network);
    *first = all < 0 ? 0 : all;
    *end = all < 0 ? network->relations : all + 1;
}

static int64_t weight_of(const basin_network *network, int64_t node) {
    int first, end;
    int64_t weight = BASIN_NODE_EDGES;
    relations_of(&first, &end, network);
    for (int r = first; r < end; r++)
        weight += network->relation[r].row[node + 1] - network->relation[r].row[node];
    return weight;
}

static int64_t weigh(const basin_network *network) {
    int64_t sum = 0;
    for (int64_t i = 0; i < network->nodes; i++) sum += weight_of(network, i);
    return sum;
}

/* Ranges of nodes, alike in nodes and edges. */
static void cut_by_range(uint16_t *part, const basin_network *network, int64_t parts) {
    double all = (double)weigh(network), before = 0;
    for (int64_t i = 0; i < network->nodes; i++) {
        double w = (double)weight_of(network, i);
        int64_t p = (int64_t)((before + w / 2) / all * (double)parts);
        part[i] = (uint16_t)(p < parts ? p : parts - 1);
        before += w;
    }
}

/* ---- linear deterministic greedy: nodes go where most neighbours are; then again ---- */

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
    relations_of(&first, &end, s->network);
    for (int r = first; r < end; r++) {
        const basin_relation *relation = &s->network->relation[r];
        for (int64_t e = relation->row[node]; e < relation->row[node + 1]; e++) {
            uint16_t p = s->part[relation->col[e]];
            if (p != NOWHERE && relation->col[e] != node) s->seen[p]++;
        }
    }
}

/* Most neighbours times what is free; ties go to the part with most room. */
static int64_t best_part(const stream *s) {
    int64_t best = 0;
    double value = -1, minimal = 0;
    for (int64_t p = 0; p < s->parts; p++) {
        double a = s->weight[p] / s->weight_room, b = s->nodes[p] / s->node_room;
        double load = a > b ? a : b, here = load < 1 ? (double)s->seen[p] * (1 - load) : -load;
        if (here > value || p == 0 ||
            (here == value && load < minimal)) /* the first counts as well */
            best = p, value = here, minimal = load;
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

static void cut_by_stream(uint16_t *part, const basin_network *network, int64_t parts) {
    const double slack = 1.05;
    double weight[BASIN_CUT_PARTS] = {0}, nodes[BASIN_CUT_PARTS] = {0};
    int64_t seen[BASIN_CUT_PARTS];
    stream s = {.network = network,
                .part = part,
                .parts = parts,
                .weight = weight,
                .nodes = nodes,
                .weight_room = slack * (double)weigh(network) / (double)parts,
                .node_room = slack * (double)network->nodes / (double)parts + 1,
                .seen = seen};
    for (int64_t i = 0; i < network->nodes; i++) part[i] = NOWHERE;
    for (int i = 0; i < PASSES; i++) run_pass(&s);
}

static basin_status assign(basin_partition *c, const char *method, basin_error *error) {
    if (!method || !strcmp(method, "stream"))
        cut_by_stream(c->part, c->network, c->parts);
    else if (!strcmp(method, "range"))
        cut_by_range(c->part, c->network, c->parts);
    else
        return basin_fail(error, BASIN_BAD_VALUE, "the method %s, needs stream or range", method);
    return BASIN_OK;
}

/* ---- halos and the report ---- */

/* Marks what nodes of other parts see. */
static void mark_halos(basin_partition *c, int64_t *edges /* [parts] */) {
    const basin_network *n = c->network;
    for (int r = 0; r < n->relations; r++)
        for (int64_t i = 0; i < n->nodes; i++) {
            const basin_relation *relation = &n->relation[r];
            size_t p = c->part[i];
            edges[p] += relation->row[i + 1] - relation->row[i];
            for (int64_t e = relation->row[i]; e < relation->row[i + 1]; e++) {
                size_t j = (size_t)relation->col[e];
                if (c->part[j] == p) continue;
                c->shown[j * c->words + p / 64] |= UINT64_C(1) << (p % 64);
                c->report.cut++;
            }
        }
}

static void report(basin_partition *c, const int64_t *edges) {
    basin_cut_report *r = &c->report;
    double mean_nodes = (double)c->network->nodes / (double)c->parts, mean_edges = 0;
    r->parts = c->parts;
    for (int64_t p = 0; p < c->parts; p++) {
        int64_t halo = 0;
        for (int64_t i = 0; i < c->network->nodes; i++) halo += basin_partition_shows(c, i, p);
        r->halo += halo;
        r->edges += edges[p];
        if (halo > r->max_halo) r->max_halo = halo;
        if (c->nodes[p] > r->max_nodes) r->max_nodes = c->nodes[p];
        if (edges[p] > r->max_edges) r->max_edges = edges[p];
    }
    mean_edges = (double)r->edges / (double)c->parts;
    r->node_balance = (double)r->max_nodes / mean_nodes;
    r->edge_balance = mean_edges > 0 ? (double)r->max_edges / mean_edges : 1;
}

/* Parts of two cuts must not meet: a number made of where nodes are. */
static uint64_t stamp_of(const basin_partition *c) {
    uint64_t stamp = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)c->parts;
    for (int64_t i = 0; i < c->network->nodes; i++)
        stamp = (stamp ^ (c->part[i] + 1u)) * UINT64_C(0x100000001b3);
    for (int r = 0; r < c->network->relations; r++)
        stamp = (stamp ^ (uint64_t)c->network->relation[r].edges) * UINT64_C(0x100000001b3);
    return stamp;
}

static basin_status finish(basin_partition *c, basin_error *error) {
    int64_t edges[BASIN_CUT_PARTS] = {0};
    for (int64_t i = 0; i < c->network->nodes; i++) c->place[i] = (int32_t)c->nodes[c->part[i]]++;
    mark_halos(c, edges);
    report(c, edges);
    c->stamp = stamp_of(c);
    for (int64_t p = 0; p < c->parts; p++)
        if (!c->nodes[p])
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: part %lld of %lld is empty, expected fewer parts than the %lld "
                              "nodes, or another method",
                              c->network->path, (long long)p, (long long)c->parts,
                              (long long)c->network->nodes);
    return BASIN_OK;
}

/* ---- the cut ---- */

static basin_status check_spec(const basin_cut_spec *spec, const basin_network *network,
                               basin_error *error) {
    if (spec->parts < 1 || spec->parts > BASIN_CUT_PARTS)
        return basin_fail(error, BASIN_BAD_VALUE, "%lld parts, expected 1 to %d",
                          (long long)spec->parts, BASIN_CUT_PARTS);
    if (spec->parts <= network->nodes) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: of %lld parts of %lld nodes one is empty, expected fewer parts",
                      network->path, (long long)spec->parts, (long long)network->nodes);
}

basin_status basin_partition_new(basin_partition **cut, const basin_network *network,
                                 const basin_cut_spec *spec, basin_error *error) {
    BASIN_AT_EXIT(basin_partition_free_at) basin_partition *c = NULL;
    int64_t N = network->nodes;
    *cut = NULL;
    BASIN_TRY(check_spec(spec, network, error));
    if (network->facts.count && network->directed)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: is directed and its edges carry amounts, times or kinds, which a "
                          "part sees at one end only; expected facts none, sampling neighbours, or "
                          "edges without a direction",
                          network->path);
    BASIN_TRY(BASIN_NEW(&c, 1, "a cut", error));
    c->network = network, c->parts = spec->parts;
    c->words = ((size_t)spec->parts + 63) / 64;
    BASIN_TRY(BASIN_NEW_RAW(&c->part, N, "a cut", error));
    BASIN_TRY(BASIN_NEW_RAW(&c->place, N, "a cut", error));
    BASIN_TRY(BASIN_NEW(&c->shown, (size_t)N * c->words, "a cut", error));
    BASIN_TRY(BASIN_NEW(&c->nodes, spec->parts, "a cut", error));
    BASIN_TRY(assign(c, spec->method, error));
    BASIN_TRY(finish(c, error));
    *cut = c, c = NULL;
    return BASIN_OK;
}

void basin_partition_free(basin_partition *cut) {
    if (!cut) return;
    free(cut->part), free(cut->place), free(cut->shown), free(cut->nodes);
    free(cut);
}

/* ---- files ---- */

/* A folder may be cut anew into as many parts (*there); what killed runs left is removed. */
static basin_status check_folder(int64_t *there, const char *folder, const basin_cut_spec *spec,
                                 basin_error *error) {
    *there = spec->parts;
    BASIN_TRY(basin_folder_make(folder, error));
    if (basin_cut_is(folder)) BASIN_TRY(basin_cut_count(there, folder, error));
    if (*there != spec->parts && !spec->replace)
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "%s: holds a graph in %lld parts, expected as many, another folder, or the "
            "option replace",
            folder, (long long)*there);
    for (int64_t p = 0; p < spec->parts; p++) {
        BASIN_FREE_AT_EXIT char *path = basin_part_path(folder, p);
        if (!path) return basin_fail_memory(error, "a cut");
        BASIN_TRY(basin_writer_sweep(path, error));
    }
    return BASIN_OK;
}

static basin_status write_part(const char *folder, const basin_partition *cut, int64_t number,
                               basin_error *error) {
    BASIN_FREE_AT_EXIT char *path = basin_part_path(folder, number);
    basin_part *part;
    if (!path) return basin_fail_memory(error, "a cut");
    BASIN_TRY(basin_partition_take(&part, cut, number, error));
    basin_status status = basin_part_write(path, part, error);
    basin_part_free(part);
    return status;
}

basin_status basin_network_cut(basin_cut_report *report, const char *folder,
                               const basin_network *network, const basin_cut_spec *spec,
                               basin_error *error) {
    BASIN_AT_EXIT(basin_partition_free_at) basin_partition *cut = NULL;
    BASIN_NETWORK_AT_EXIT basin_network *ordered = NULL;
    int64_t there;
    BASIN_TRY(check_folder(&there, folder, spec, error));
    BASIN_TRY(basin_network_ordered(&ordered, network, error));
    BASIN_TRY(basin_partition_new(&cut, ordered ? ordered : network, spec, error));
    for (int64_t p = 0; p < cut->parts; p++) BASIN_TRY(write_part(folder, cut, p, error));
    for (int64_t p = cut->parts; p < there; p++) {
        BASIN_FREE_AT_EXIT char *path = basin_part_path(folder, p);
        if (!path) return basin_fail_memory(error, "a cut");
        (void)remove(path);
    }
    *report = cut->report;
    return BASIN_OK;
}
