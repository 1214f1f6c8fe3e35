/* Cutting a network: who is in which part, who is in whose halo, and the files of parts. One pass
 * over all edges finds the halos; then every part reads its own nodes' lists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "base/memory.h"
#include "basin/random.h"
#include "data/network/parts/parts.h"
#include "io/file.h"

/* ---- the method ---- */

enum { METIS_EDGES = 20000000 }; /* beyond, METIS takes minutes */

static bool suits_metis(const basin_network *network, const basin_cut_spec *spec) {
    size_t limit = spec->memory ? spec->memory : basin_memory_share();
    size_t need = basin_cut_metis_bytes(network);
    return need && need <= limit && network->relation[0].edges <= METIS_EDGES &&
           basin_library_present(BASIN_LIBRARY_METIS);
}

static const char *choose(const basin_network *network, const basin_cut_spec *spec) {
    const char *asked = spec->method ? spec->method : "auto";
    if (strcmp(asked, "auto") != 0) return asked;
    return suits_metis(network, spec) ? "metis" : "stream";
}

static basin_status assign(basin_partition *c, const char *method, basin_error *error) {
    c->report.method = method;
    if (!strcmp(method, "stream")) return basin_cut_by_stream(c->part, c->network, c->parts, error);
    if (!strcmp(method, "metis") && c->parts > 1)
        return basin_cut_by_metis(c->part, c->network, c->parts, error);
    if (!strcmp(method, "range") || !strcmp(method, "metis")) {
        basin_cut_by_range(c->part, c->network, c->parts);
        return BASIN_OK;
    }
    return basin_fail(error, BASIN_BAD_VALUE, "the method %s, wanted auto, metis, stream or range",
                      method);
}

/* ---- halos and the report ---- */

static void number_nodes(basin_partition *c) {
    for (int64_t i = 0; i < c->network->nodes; i++) c->place[i] = (int32_t)c->nodes[c->part[i]]++;
}

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
        if (halo > r->most_halo) r->most_halo = halo;
        if (c->nodes[p] > r->most_nodes) r->most_nodes = c->nodes[p];
        if (edges[p] > r->most_edges) r->most_edges = edges[p];
    }
    mean_edges = (double)r->edges / (double)c->parts;
    r->node_balance = (double)r->most_nodes / mean_nodes;
    r->edge_balance = mean_edges > 0 ? (double)r->most_edges / mean_edges : 1;
}

/* Parts of two cuts must not meet: a number made of who is where. */
static uint64_t stamp_of(const basin_partition *c) {
    uint64_t stamp = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)c->parts;
    for (int64_t i = 0; i < c->network->nodes; i++)
        stamp = (stamp ^ (c->part[i] + 1u)) * UINT64_C(0x100000001b3);
    for (int r = 0; r < c->network->relations; r++)
        stamp = (stamp ^ (uint64_t)c->network->relation[r].edges) * UINT64_C(0x100000001b3);
    return stamp;
}

static basin_status finish(basin_partition *c, basin_error *error) {
    int64_t *edges = calloc((size_t)c->parts, sizeof *edges);
    if (!edges) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a cut");
    number_nodes(c);
    mark_halos(c, edges);
    report(c, edges);
    free(edges);
    c->stamp = stamp_of(c);
    for (int64_t p = 0; p < c->parts; p++)
        if (!c->nodes[p])
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: part %lld of %lld is empty, wanted fewer parts than the %lld "
                              "nodes, or another method",
                              c->network->path, (long long)p, (long long)c->parts,
                              (long long)c->network->nodes);
    return BASIN_OK;
}

/* ---- the cut ---- */

/* More parts than nodes are refused here: METIS prints of them, on standard output. */
static basin_status check_spec(const basin_cut_spec *spec, const basin_network *network,
                               basin_error *error) {
    if (spec->parts < 1 || spec->parts > BASIN_CUT_PARTS)
        return basin_fail(error, BASIN_BAD_VALUE, "%lld parts, wanted 1 to %d",
                          (long long)spec->parts, BASIN_CUT_PARTS);
    if (spec->parts <= network->nodes) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: of %lld parts of %lld nodes one is empty, wanted fewer parts",
                      network->path, (long long)spec->parts, (long long)network->nodes);
}

basin_status basin_partition_new(basin_partition **cut, const basin_network *network,
                                 const basin_cut_spec *spec, basin_error *error) {
    *cut = NULL;
    basin_status status = check_spec(spec, network, error);
    if (!status && network->facts.count)
        status = basin_fail(
            error, BASIN_UNSUPPORTED,
            "%s: its edges carry facts (amounts, times, kinds), which parts do not "
            "keep; wanted facts none or sampling neighbours in training, or a graph from "
            "whose tables these columns were dropped",
            network->path);
    if (status) return status;
    basin_partition *c = calloc(1, sizeof *c);
    if (!c) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a cut");
    size_t N = (size_t)network->nodes;
    *c = (basin_partition){.network = network, .parts = spec->parts};
    c->words = ((size_t)spec->parts + 63) / 64;
    c->part = basin_array_new(N, sizeof *c->part);
    c->place = basin_array_new(N, sizeof *c->place);
    c->shown = calloc(N * c->words + 1, sizeof *c->shown);
    c->nodes = calloc((size_t)spec->parts, sizeof *c->nodes);
    if (!c->part || !c->place || !c->shown || !c->nodes)
        status = basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory to cut %zu nodes",
                            network->path, N);
    if (!status) status = assign(c, choose(network, spec), error);
    if (!status) status = finish(c, error);
    if (status)
        basin_partition_free(c);
    else
        *cut = c;
    return status;
}

void basin_partition_free(basin_partition *cut) {
    if (!cut) return;
    free(cut->part), free(cut->place), free(cut->shown), free(cut->nodes);
    free(cut);
}

basin_cut_report basin_partition_report(const basin_partition *cut) { return cut->report; }

/* ---- files ---- */

/* A cut into more parts that was here before would look whole. */
static basin_status remove_more(const char *folder, int64_t parts, basin_error *error) {
    for (int64_t p = parts; p < BASIN_CUT_PARTS; p++) {
        char *path = basin_part_path(folder, p);
        if (!path) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a cut");
        int gone = remove(path);
        free(path);
        if (gone) break;
    }
    return BASIN_OK;
}

basin_status basin_network_cut(basin_cut_report *report, const char *folder,
                               const basin_network *network, const basin_cut_spec *spec,
                               basin_error *error) {
    basin_partition *cut = NULL;
    basin_status status = basin_folder_make(folder, error);
    if (!status) status = basin_partition_new(&cut, network, spec, error);
    for (int64_t p = 0; !status && p < cut->parts; p++) {
        basin_part *part = NULL;
        char *path = basin_part_path(folder, p);
        status = path ? basin_partition_take(&part, cut, p, error)
                      : basin_fail(error, BASIN_NO_MEMORY, "out of memory for a cut");
        if (!status) status = basin_part_write(path, part, error);
        basin_part_free(part);
        free(path);
    }
    if (!status) status = remove_more(folder, cut->parts, error);
    if (!status) *report = cut->report;
    basin_partition_free(cut);
    return status;
}
