/* Opening the parts of a graph that this rank holds, and the face of the whole. */
#include "data/network/parts/shared.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/network.h"
#include "data/network/parts/parts.h"

static basin_status no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the parts of a graph");
}

/* ---- what all ranks know ---- */

/* What ranks tell each other of a part. */
typedef struct about {
    uint64_t stamp;
    int64_t total, nodes, halo, features;
    int64_t edges[BASIN_PARTS_RELATIONS];
} about;

static about about_part(const basin_part *part) {
    const basin_network *n = part->network;
    about a = {part->stamp, part->total, n->nodes, part->halo, n->features, {0}};
    for (int r = 0; r < n->relations; r++) a.edges[r] = n->relation[r].edges;
    return a;
}

static basin_status check_about(const basin_parts *p, const about *all, basin_error *error) {
    int64_t nodes = 0;
    for (int64_t q = 0; q < p->parts; q++) {
        if (all[q].stamp != all[0].stamp || all[q].features != all[0].features ||
            all[q].total != all[0].total)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: parts 0 and %" PRId64 " are of different cuts; wanted files of "
                              "one run of basin data part, or one graph on all ranks",
                              p->part[0]->network->path, q);
        nodes += all[q].nodes;
    }
    if (nodes == all[0].total) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: the parts have %" PRId64 " nodes of %" PRId64,
                      p->part[0]->network->path, nodes, all[0].total);
}

static void take_about(basin_parts *p, const about *all) {
    int relations = p->part[0]->network->relations;
    for (int64_t q = 0; q < p->parts; q++) {
        p->nodes[q] = all[q].nodes;
        if (all[q].nodes > p->most_nodes) p->most_nodes = all[q].nodes;
        if (all[q].halo > p->most_halo) p->most_halo = all[q].halo;
        for (int r = 0; r < relations; r++) {
            if (all[q].edges[r] > p->most_edges[r]) p->most_edges[r] = all[q].edges[r];
            p->face->relation[r].edges += all[q].edges[r];
        }
    }
}

/* A gather of one entry a part. */
static basin_status gather_entries(basin_parts *p, void *all, const void *mine, size_t entry,
                                   basin_error *error) {
    int64_t ranks = basin_ranks_count(p->ranks);
    size_t *bytes = basin_array_new((size_t)ranks, sizeof *bytes);
    if (!bytes) return no_memory(error);
    for (int64_t r = 0; r < ranks; r++)
        bytes[r] = (size_t)basin_ranks_deal_to(r, ranks, p->parts).count * entry;
    basin_status status = basin_ranks_gather_parts(p->ranks, all, mine, bytes, error);
    free(bytes);
    return status;
}

static basin_status learn_sizes(basin_parts *p, basin_error *error) {
    about *mine = calloc((size_t)p->count + 1, sizeof *mine);
    about *all = calloc((size_t)p->parts, sizeof *all);
    p->nodes = calloc((size_t)p->parts, sizeof *p->nodes);
    p->most_edges = calloc(BASIN_PARTS_RELATIONS, sizeof *p->most_edges);
    basin_status status = mine && all && p->nodes && p->most_edges ? BASIN_OK : no_memory(error);
    for (int64_t k = 0; k < p->count && !status; k++) mine[k] = about_part(p->part[k]);
    if (!status) status = gather_entries(p, all, mine, sizeof *all, error);
    if (!status) status = check_about(p, all, error);
    if (!status) take_about(p, all);
    free(mine);
    free(all);
    return status;
}

/* ---- who has which node ---- */

static basin_status learn_owners(basin_parts *p, basin_error *error) {
    int64_t N = p->face->nodes, ranks = basin_ranks_count(p->ranks), at = 0;
    size_t *bytes = calloc((size_t)ranks, sizeof *bytes);
    int64_t *node = basin_array_new((size_t)N, sizeof *node), own = 0;
    for (int64_t k = 0; k < p->count; k++) own += p->part[k]->network->nodes;
    int64_t *mine = basin_array_new((size_t)own, sizeof *mine);
    p->owner = basin_array_new((size_t)N, sizeof *p->owner);
    basin_status status = bytes && node && mine && p->owner ? BASIN_OK : no_memory(error);
    for (int64_t k = 0; k < p->count && !status; k++) {
        const basin_network *n = p->part[k]->network;
        memcpy(mine + at, n->origin, (size_t)n->nodes * sizeof *mine);
        at += n->nodes;
    }
    for (int64_t q = 0; q < p->parts && !status; q++)
        bytes[basin_parts_rank(p, q)] += (size_t)p->nodes[q] * sizeof *node;
    if (!status) status = basin_ranks_gather_parts(p->ranks, node, mine, bytes, error);
    at = 0;
    for (int64_t q = 0; q < p->parts && !status; q++)
        for (int64_t i = 0; i < p->nodes[q]; i++) p->owner[node[at++]] = (uint16_t)q;
    free(bytes), free(node), free(mine);
    return status;
}

/* ---- the face ---- */

/* Names and sizes, of the first part at hand. */
static basin_status make_face(basin_parts *p, basin_error *error) {
    const basin_network *n = p->part[0]->network;
    basin_status status = basin_network_new(&p->face, n->path, p->part[0]->total, error);
    if (status) return status;
    basin_network *face = p->face;
    face->features = n->features;
    face->splits = n->splits;
    face->directed = n->directed;
    if (n->note && !(face->note = basin_string_copy(n->note))) status = no_memory(error);
    if (!status && n->schema) status = basin_schema_copy(&face->schema, n->schema, error);
    if (!status) status = basin_names_copy(&face->column, &n->column, error);
    if (!status) status = basin_names_copy(&face->class_name, &n->class_name, error);
    for (int r = 0; r < n->relations && !status; r++) {
        basin_relation *relation;
        status = basin_network_new_relation(&relation, face, n->relation[r].name, error);
    }
    return status;
}

/* Rows of nodes of which a part has a table, `offset` bytes within basin_network. */
static basin_status gather_table(void **to, basin_parts *p, size_t offset, size_t row, size_t width,
                                 basin_error *error) {
    const void **mine = basin_array_new((size_t)p->count, sizeof *mine);
    char *all = basin_array_new((size_t)p->face->nodes, width);
    basin_status status = mine && all ? BASIN_OK : no_memory(error);
    for (int64_t k = 0; k < p->count && !status; k++) {
        const basin_network *n = p->part[k]->network;
        const char *table = *(char *const *)(const void *)((const char *)n + offset);
        mine[k] = table + row * (size_t)n->nodes * width;
    }
    if (!status) status = basin_parts_gather(all, p, mine, NULL, width, error);
    free(mine);
    if (status)
        free(all);
    else
        *to = all;
    return status;
}

static basin_status gather_mask(uint8_t **to, basin_parts *p, size_t offset, basin_error *error) {
    size_t N = (size_t)p->face->nodes, splits = (size_t)p->face->splits;
    const char *first = (const char *)p->part[0]->network + offset;
    if (!*(char *const *)(const void *)first) return BASIN_OK;
    basin_status status = (*to = basin_array_new(N, splits)) ? BASIN_OK : no_memory(error);
    for (size_t s = 0; s < splits && !status; s++) {
        void *one = NULL;
        status = gather_table(&one, p, offset, s, 1, error);
        if (!status) memcpy(*to + s * N, one, N);
        free(one);
    }
    return status;
}

static basin_status fill_face(basin_parts *p, basin_error *error) {
    basin_network *face = p->face;
    basin_status status = BASIN_OK;
    if (p->part[0]->network->label)
        status = gather_table((void **)(void *)&face->label, p, offsetof(basin_network, label), 0,
                              sizeof *face->label, error);
    if (!status) status = gather_mask(&face->train, p, offsetof(basin_network, train), error);
    if (!status) status = gather_mask(&face->val, p, offsetof(basin_network, val), error);
    return status ? status : gather_mask(&face->test, p, offsetof(basin_network, test), error);
}

/* ---- opening ---- */

static basin_status begin(basin_parts **parts, int64_t count, basin_ranks *ranks,
                          basin_error *error) {
    basin_ranks_share share = basin_ranks_deal(ranks, count);
    *parts = NULL;
    if (basin_ranks_count(ranks) > count)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%" PRId64 " ranks for a graph in %" PRId64 " parts; wanted at most one "
                          "rank a part",
                          basin_ranks_count(ranks), count);
    basin_parts *p = calloc(1, sizeof *p);
    if (p) p->part = calloc((size_t)share.count + 1, sizeof *p->part);
    if (!p || !p->part) {
        free(p);
        return no_memory(error);
    }
    p->ranks = ranks, p->parts = count, p->first = share.first, p->count = share.count;
    *parts = p;
    return BASIN_OK;
}

static basin_status check_relations(const basin_parts *p, basin_error *error) {
    int relations = p->part[0]->network->relations;
    if (relations <= BASIN_PARTS_RELATIONS) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED, "%s: %d relations, wanted at most %d in parts",
                      p->part[0]->network->path, relations, BASIN_PARTS_RELATIONS);
}

/* `status` is how this rank's own parts went; all ranks hear of it. */
static basin_status complete(basin_parts **parts, basin_status status, basin_error *error) {
    basin_parts *p = *parts;
    if (!status) status = check_relations(p, error);
    if (!status) status = make_face(p, error);
    status = basin_ranks_agree(p->ranks, status, error);
    if (!status) status = learn_sizes(p, error);
    if (!status) status = learn_owners(p, error);
    if (!status) status = fill_face(p, error);
    if (status) {
        basin_parts_close(p);
        *parts = NULL;
    }
    return status;
}

basin_status basin_parts_open(basin_parts **parts, const char *folder, basin_ranks *ranks,
                              basin_error *error) {
    int64_t count = 0;
    *parts = NULL;
    basin_status status = basin_ranks_agree(ranks, basin_cut_count(&count, folder, error), error);
    if (!status) status = basin_ranks_agree(ranks, begin(parts, count, ranks, error), error);
    if (status) {
        basin_parts_close(*parts);
        *parts = NULL;
        return status;
    }
    basin_parts *p = *parts;
    for (int64_t k = 0; k < p->count && !status; k++)
        status = basin_part_open(&p->part[k], folder, p->first + k, error);
    return complete(parts, status, error);
}

basin_status basin_parts_cut(basin_parts **parts, const basin_network *network,
                             const basin_cut_spec *spec, basin_ranks *ranks, basin_error *error) {
    basin_partition *cut = NULL;
    *parts = NULL;
    basin_status status = basin_partition_new(&cut, network, spec, error);
    if (!status) status = begin(parts, cut->parts, ranks, error);
    status = basin_ranks_agree(ranks, status, error);
    if (status) {
        basin_parts_close(*parts);
        *parts = NULL;
    } else {
        basin_parts *p = *parts;
        for (int64_t k = 0; k < p->count && !status; k++)
            status = basin_partition_take(&p->part[k], cut, p->first + k, error);
        status = complete(parts, status, error);
    }
    basin_partition_free(cut);
    return status;
}

void basin_parts_close(basin_parts *parts) {
    if (!parts) return;
    for (int64_t k = 0; k < parts->count; k++) basin_part_free(parts->part[k]);
    basin_network_free(parts->face);
    free(parts->part), free(parts->owner), free(parts->nodes), free(parts->most_edges);
    free(parts->buffer);
    free(parts);
}

int64_t basin_parts_count(const basin_parts *parts) { return parts->parts; }
const basin_network *basin_parts_face(const basin_parts *parts) { return parts->face; }

/* ---- ids ---- */

/* The texts of all parts, one part after the other; `at` [parts] where each begins. */
static basin_status gather_texts(char **all, int64_t *at, basin_parts *p, basin_error *error) {
    int64_t *length = basin_array_new((size_t)p->count, sizeof *length), mine = 0, total = 0;
    size_t ranks = (size_t)basin_ranks_count(p->ranks), *bytes = calloc(ranks, sizeof *bytes);
    char *own = NULL;
    for (int64_t k = 0; k < p->count && length; k++) {
        const basin_names *id = &p->part[k]->network->id;
        mine += length[k] = id->at[id->count];
    }
    own = basin_array_new((size_t)mine, 1);
    basin_status status = length && bytes && own ? BASIN_OK : no_memory(error);
    if (!status) status = gather_entries(p, at, length, sizeof *at, error);
    mine = 0;
    for (int64_t k = 0; k < p->count && !status; k++) {
        memcpy(own + mine, p->part[k]->network->id.text, (size_t)length[k]);
        mine += length[k];
    }
    for (int64_t q = 0; q < p->parts && !status; q++) {
        int64_t count = at[q];
        bytes[basin_parts_rank(p, q)] += (size_t)count;
        at[q] = total;
        total += count;
    }
    if (!status && !(*all = basin_array_new((size_t)total, 1))) status = no_memory(error);
    if (!status) status = basin_ranks_gather_parts(p->ranks, *all, own, bytes, error);
    free(length), free(bytes), free(own);
    return status;
}

basin_status basin_parts_name_nodes(basin_parts *p, basin_error *error) {
    basin_names_builder builder = {0};
    char *all = NULL;
    if (!p->part[0]->network->id.count || p->face->id.count) return BASIN_OK;
    int64_t *at = basin_array_new((size_t)p->parts, sizeof *at);
    basin_status status = at ? gather_texts(&all, at, p, error) : no_memory(error);
    for (int64_t i = 0; i < p->face->nodes && !status; i++) {
        const char *text = all + at[p->owner[i]];
        size_t length = strlen(text);
        status = basin_names_add(&builder, text, length, error);
        at[p->owner[i]] += (int64_t)length + 1;
    }
    p->face->id = builder.names;
    free(at), free(all);
    return status;
}
