/* One part of a cut, in memory: its own nodes' rows of everything, their lists with numbers of the
 * part's own, the halo, and which of its nodes are in the halos of others. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/network.h"
#include "data/network/parts/parts.h"

typedef struct taking {
    const basin_partition *cut;
    int64_t number, nodes; /* of the part */
    int64_t *node;         /* [nodes] */
    int32_t *halo_place;   /* [N] where a node of the halo stands there; else -1 */
    basin_part *part;
} taking;

static basin_status no_memory(const taking *t, basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for part %" PRId64,
                      t->cut->network->path, t->number);
}

/* ---- halo and what others want ---- */

/* Both lists in one piece of memory: two of begins, then the nodes sent. */
static basin_status list_halo(taking *t, basin_error *error) {
    const basin_partition *c = t->cut;
    int64_t N = c->network->nodes, P = c->parts, sent = 0;
    basin_part *part = t->part;
    for (int64_t i = 0; i < t->nodes; i++)
        for (int64_t p = 0; p < P; p++) sent += basin_partition_shows(c, t->node[i], p);
    size_t begins = 2 * ((size_t)P + 1), words = ((size_t)sent + 1) / 2;
    int64_t *memory = part->owned = calloc(begins + words + 1, sizeof *memory);
    if (!memory) return no_memory(t, error);
    int64_t *halo_at = memory, *send_at = memory + P + 1, *next = send_at + 1;
    int32_t *send = (int32_t *)(void *)(memory + begins);
    for (int64_t i = 0; i < N; i++)
        if (basin_partition_shows(c, i, t->number)) halo_at[c->part[i] + 1]++;
    for (int64_t p = 0; p < P; p++) halo_at[p + 1] += halo_at[p];
    for (int64_t i = 0; i < N; i++) {
        bool here = basin_partition_shows(c, i, t->number);
        t->halo_place[i] = here ? (int32_t)halo_at[c->part[i]]++ : -1;
    }
    for (int64_t p = P; p > 0; p--) halo_at[p] = halo_at[p - 1];
    halo_at[0] = 0;
    for (int64_t p = 0; p < P; p++) {
        next[p] = send_at[p];
        for (int64_t i = 0; i < t->nodes; i++)
            if (basin_partition_shows(c, t->node[i], p)) send[next[p]++] = (int32_t)i;
    }
    part->halo = halo_at[P];
    part->halo_at = halo_at, part->send_at = send_at, part->send = send;
    return BASIN_OK;
}

/* ---- rows of nodes ---- */

/* `rows` tables [N, width] of bytes become tables of the part's rows. */
static void *take_rows(const taking *t, const void *from, size_t width, int64_t tables) {
    size_t n = (size_t)t->nodes, N = (size_t)t->cut->network->nodes, cells;
    char *to = NULL;
    if (basin_size_multiply(&cells, n * (size_t)tables, width)) to = basin_array_new(cells, 1);
    for (size_t k = 0; k < (size_t)tables && to; k++)
        for (size_t i = 0; i < n; i++)
            memcpy(to + (k * n + i) * width,
                   (const char *)from + (k * N + (size_t)t->node[i]) * width, width);
    return to;
}

static basin_status take_nodes(const taking *t, basin_network *to, basin_error *error) {
    const basin_network *n = t->cut->network;
    const uint8_t *mask[] = {n->train, n->val, n->test};
    uint8_t **slot[] = {&to->train, &to->val, &to->test};
    bool good = true;
    to->features = n->features;
    to->splits = n->splits;
    to->directed = n->directed;
    if (n->feature)
        good = (to->feature =
                    take_rows(t, n->feature, (size_t)n->features * sizeof *n->feature, 1)) != NULL;
    if (n->label) good = good && (to->label = take_rows(t, n->label, sizeof *n->label, 1)) != NULL;
    for (int i = 0; i < 3; i++)
        if (mask[i]) good = good && (*slot[i] = take_rows(t, mask[i], 1, n->splits)) != NULL;
    if (n->note) good = good && (to->note = basin_string_copy(n->note)) != NULL;
    if (!good) return no_memory(t, error);
    return n->schema ? basin_schema_copy(&to->schema, n->schema, error) : BASIN_OK;
}

static basin_status take_ids(const taking *t, basin_network *to, basin_error *error) {
    const basin_names *from = &t->cut->network->id;
    basin_names_builder builder = {0};
    basin_status status = BASIN_OK;
    for (int64_t i = 0; i < t->nodes && from->count && !status; i++) {
        const char *text = from->text + from->at[t->node[i]];
        status = basin_names_add(&builder, text, strlen(text), error);
    }
    to->id = builder.names;
    return status;
}

/* ---- lists ---- */

static basin_status take_relation(const taking *t, basin_network *to, const basin_relation *from,
                                  basin_error *error) {
    const basin_partition *c = t->cut;
    basin_relation *relation;
    basin_status status = basin_network_new_relation(&relation, to, from->name, error);
    if (status) return status;
    relation->row = basin_array_new((size_t)t->nodes + 1, sizeof *relation->row);
    if (!relation->row) return no_memory(t, error);
    relation->row[0] = 0;
    for (int64_t i = 0; i < t->nodes; i++)
        relation->row[i + 1] = relation->row[i] + from->row[t->node[i] + 1] - from->row[t->node[i]];
    relation->edges = relation->row[t->nodes];
    relation->col = basin_array_new((size_t)relation->edges, sizeof *relation->col);
    if (!relation->col) return no_memory(t, error);
    int32_t *col = relation->col;
    for (int64_t i = 0; i < t->nodes; i++)
        for (int64_t e = from->row[t->node[i]]; e < from->row[t->node[i] + 1]; e++) {
            int32_t j = from->col[e];
            bool own = c->part[j] == t->number;
            *col++ = own ? c->place[j] : (int32_t)t->nodes + t->halo_place[j];
        }
    return BASIN_OK;
}

/* ---- the part ---- */

static basin_status take(taking *t, basin_error *error) {
    const basin_network *n = t->cut->network;
    basin_network **to = &t->part->network;
    basin_status status = basin_network_new(to, n->path, t->nodes, error);
    if (status) return status;
    (*to)->origin = t->node;
    status = list_halo(t, error);
    if (!status) status = take_nodes(t, *to, error);
    if (!status) status = take_ids(t, *to, error);
    if (!status) status = basin_names_copy(&(*to)->column, &n->column, error);
    if (!status) status = basin_names_copy(&(*to)->class_name, &n->class_name, error);
    for (int r = 0; r < n->relations && !status; r++)
        status = take_relation(t, *to, &n->relation[r], error);
    return status;
}

basin_status basin_partition_take(basin_part **part, const basin_partition *cut, int64_t number,
                                  basin_error *error) {
    taking t = {.cut = cut, .number = number, .nodes = cut->nodes[number]};
    int64_t count = 0;
    *part = NULL;
    t.part = calloc(1, sizeof *t.part);
    t.node = basin_array_new((size_t)t.nodes, sizeof *t.node);
    t.halo_place = basin_array_new((size_t)cut->network->nodes, sizeof *t.halo_place);
    basin_status status = t.part && t.node && t.halo_place ? BASIN_OK : no_memory(&t, error);
    for (int64_t i = 0; i < cut->network->nodes && !status; i++)
        if (cut->part[i] == number) t.node[count++] = i;
    if (!status) {
        t.part->part = number, t.part->parts = cut->parts;
        t.part->total = cut->network->nodes, t.part->stamp = cut->stamp;
        status = take(&t, error);
    }
    free(t.halo_place);
    if (!t.part || !t.part->network) free(t.node); /* else it is the network's */
    if (status)
        basin_part_free(t.part);
    else
        *part = t.part;
    return status;
}

void basin_part_free(basin_part *part) {
    if (!part) return;
    basin_network_free(part->network);
    free(part->owned);
    free(part);
}
