/* The files of a cut: part-0.basin, part-1.basin, .. of a folder. Each is the mapped network of its
 * nodes (nodes/network/file.c) with the metadata `format` "basin part", `part`, `parts`,
 * `total` (nodes of the whole) and `stamp` (alike in all parts of a cut), and beside its tensors
 *
 *     node I64 [n]   numbers of its nodes in the whole graph, ascending
 *     halo_at I64 [parts + 1]   send_at I64 [parts + 1], send I32 []   see parts.h
 *
 * A number of col.NAME from n on is a node of the halo. */
#include <inttypes.h>
#include <sys/stat.h>

#include "base/bundle.h"
#include "tasks/common/digest.h"
#include "tasks/nodes/network/parts/parts.h"

typedef struct taking {
    const basin_partition *cut;
    int64_t number, nodes; /* of the part */
    int64_t *node;         /* [nodes] */
    int32_t *halo_place;   /* [N] where a node of the halo stands there; else -1 */
    basin_part *part;
} taking;

/* Both lists in one piece of memory: two of begins, then the nodes sent. */
static basin_status list_halo(taking *t, basin_error *error) {
    const basin_partition *c = t->cut;
    int64_t N = c->network->nodes, P = c->parts, sent = 0;
    basin_part *part = t->part;
    for (int64_t i = 0; i < t->nodes; i++)
        for (int64_t p = 0; p < P; p++) sent += basin_partition_shows(c, t->node[i], p);
    size_t begins = 2 * ((size_t)P + 1), words = ((size_t)sent + 1) / 2;
    BASIN_TRY(BASIN_NEW(&part->owned, begins + words, "a part of a network", error));
    int64_t *memory = part->owned;
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

static basin_status take_relation(const taking *t, basin_network *to, const basin_relation *from,
                                  basin_error *error) {
    const basin_partition *c = t->cut;
    basin_relation *relation;
    BASIN_TRY(basin_network_new_relation(&relation, to, from->name, error));
    BASIN_TRY(BASIN_NEW_RAW(&relation->row, (size_t)t->nodes + 1, "a network", error));
    relation->row[0] = 0;
    for (int64_t i = 0; i < t->nodes; i++)
        relation->row[i + 1] = relation->row[i] + from->row[t->node[i] + 1] - from->row[t->node[i]];
    relation->edges = relation->row[t->nodes];
    BASIN_TRY(BASIN_NEW_RAW(&relation->col, relation->edges, "a network", error));
    int32_t *col = relation->col;
    int64_t F = to->facts.count;
    BASIN_TRY(basin_relation_alloc_facts(relation, &to->facts, error));
    for (int64_t i = 0; i < t->nodes && F; i++)
        memcpy(relation->fact + relation->row[i] * F, from->fact + from->row[t->node[i]] * F,
               (size_t)((relation->row[i + 1] - relation->row[i]) * F) * sizeof *from->fact);
    for (int64_t i = 0; i < t->nodes; i++)
        for (int64_t e = from->row[t->node[i]]; e < from->row[t->node[i] + 1]; e++) {
            int32_t j = from->col[e];
            bool own = c->part[j] == t->number;
            *col++ = own ? c->place[j] : (int32_t)t->nodes + t->halo_place[j];
        }
    return BASIN_OK;
}

static basin_status take(taking *t, basin_error *error) {
    const basin_network *n = t->cut->network;
    basin_network **to = &t->part->network;
    int64_t count = 0;
    for (int64_t i = 0; i < n->nodes; i++)
        if (t->cut->part[i] == t->number) t->node[count++] = i;
    BASIN_TRY(basin_network_new(to, n->path, t->nodes, error));
    BASIN_TRY(list_halo(t, error));
    BASIN_TRY(basin_network_copy_head(*to, n, error));
    BASIN_TRY(basin_network_copy_nodes(*to, n, t->node, error));
    BASIN_TRY(basin_facts_copy(&(*to)->facts, &n->facts, error));
    memcpy((*to)->origin, t->node, (size_t)t->nodes * sizeof *t->node);
    for (int r = 0; r < n->relations; r++) BASIN_TRY(take_relation(t, *to, &n->relation[r], error));
    return BASIN_OK;
}

static void part_free_at(basin_part **part) { basin_part_free(*part); }

basin_status basin_partition_take(basin_part **part, const basin_partition *cut, int64_t number,
                                  basin_error *error) {
    taking t = {.cut = cut, .number = number, .nodes = cut->nodes[number]};
    BASIN_AT_EXIT(part_free_at) basin_part *p = NULL;
    *part = NULL;
    BASIN_SCRATCH_RAW(int64_t, node, t.nodes, "a part of a network", error);
    BASIN_SCRATCH_RAW(int32_t, halo_place, cut->network->nodes, "a part of a network", error);
    BASIN_TRY(BASIN_NEW(&p, 1, "a part of a network", error));
    *p = (basin_part){
        .part = number, .parts = cut->parts, .total = cut->network->nodes, .stamp = cut->stamp};
    t.part = p, t.node = node, t.halo_place = halo_place;
    BASIN_TRY(take(&t, error));
    *part = p, p = NULL;
    return BASIN_OK;
}

void basin_part_free(basin_part *part) {
    if (!part) return;
    basin_network_close(part->network);
    BASIN_FREE(part->owned, part);
}

/* ---- files ---- */

static const char format_name[] = "basin part";

char *basin_part_path(const char *folder, int64_t number) {
    size_t room = strlen(folder) + 40;
    char *path = malloc(room);
    if (path) snprintf(path, room, "%s/part-%" PRId64 ".basin", folder, number);
    return path;
}

bool basin_cut_is(const char *path) {
    struct stat found;
    if (stat(path, &found) != 0 || !S_ISDIR(found.st_mode)) return false;
    char *first = basin_part_path(path, 0);
    bool is = first && stat(first, &found) == 0;
    free(first);
    return is;
}

/* ---- writing ---- */

static basin_status put_meta(basin_bundle *bundle, const basin_part *part, basin_error *error) {
    const struct {
        const char *key;
        int64_t value;
    } number[] = {{"part", part->part}, {"parts", part->parts}, {"total", part->total}};
    char text[40];
    BASIN_TRY(basin_bundle_meta_set(bundle, "format", format_name, error));
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "%" PRId64, number[i].value);
        BASIN_TRY(basin_bundle_meta_set(bundle, number[i].key, text, error));
    }
    basin_real_print(text, sizeof text, 17, part->network->facts.now);
    BASIN_TRY(basin_bundle_meta_set(bundle, "now", text, error));
    snprintf(text, sizeof text, "%016" PRIx64, part->stamp);
    return basin_bundle_meta_set(bundle, "stamp", text, error);
}

static basin_status put_part(basin_bundle *bundle, const basin_part *part, basin_error *error) {
    const basin_network *n = part->network;
    basin_shape begins = BASIN_SHAPE(part->parts + 1);
    BASIN_TRY(basin_network_file_put(bundle, n, error));
    BASIN_TRY(put_meta(bundle, part, error));
    BASIN_TRY(basin_bundle_put(bundle, "node", n->origin, BASIN_I64, BASIN_SHAPE(n->nodes), error));
    BASIN_TRY(basin_bundle_put(bundle, "halo_at", part->halo_at, BASIN_I64, begins, error));
    BASIN_TRY(basin_bundle_put(bundle, "send_at", part->send_at, BASIN_I64, begins, error));
    return basin_bundle_put(bundle, "send", part->send, BASIN_I32,
                            BASIN_SHAPE(part->send_at[part->parts]), error);
}

basin_status basin_part_write(const char *path, const basin_part *part, basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    BASIN_TRY(basin_bundle_new(&bundle, NULL, error));
    BASIN_TRY(put_part(bundle, part, error));
    BASIN_TRY(basin_bundle_digest(bundle, error));
    return basin_bundle_write_safetensors(path, bundle, error);
}

/* ---- reading ---- */

static basin_status bad(const basin_part *part, const char *what, basin_error *error) {
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s, expected a part as basin data part writes it",
                      part->network->path, what);
}

/* Begins of lists: from 0, never falling. */
static bool rises(const int64_t *at, int64_t count) {
    bool good = at[0] == 0;
    for (int64_t i = 0; i < count; i++) good = good && at[i + 1] >= at[i];
    return good;
}

static basin_status check_lists(const basin_part *part, int64_t sent, basin_error *error) {
    const basin_network *n = part->network;
    if (!rises(part->halo_at, part->parts) || !rises(part->send_at, part->parts) ||
        part->send_at[part->parts] != sent || part->halo > part->total - n->nodes)
        return bad(part, "halo_at or send_at do not fit", error);
    for (int64_t i = 0; i < sent; i++)
        if (part->send[i] < 0 || part->send[i] >= n->nodes)
            return bad(part, "send names a node that it has not", error);
    for (int64_t i = 0; i < n->nodes; i++)
        if (n->origin[i] < 0 || n->origin[i] >= part->total ||
            (i && n->origin[i] <= n->origin[i - 1]))
            return bad(part, "the numbers of its nodes do not rise", error);
    for (int r = 0; r < n->relations; r++)
        BASIN_TRY(
            basin_network_check_relation(n, &n->relation[r], n->nodes + part->halo, false, error));
    return basin_network_check_nodes(n, error);
}

static basin_status fill(basin_part *part, const basin_bundle *bundle, basin_error *error) {
    const char *stamp = basin_bundle_meta(bundle, "stamp");
    basin_shape begins = BASIN_SHAPE(part->parts + 1), nodes = BASIN_SHAPE(part->network->nodes);
    const basin_tensor *node, *halo_at, *send_at, *send;
    BASIN_TRY(basin_bundle_expect(&node, bundle, "node", BASIN_I64, nodes, error));
    BASIN_TRY(basin_bundle_expect(&halo_at, bundle, "halo_at", BASIN_I64, begins, error));
    BASIN_TRY(basin_bundle_expect(&send_at, bundle, "send_at", BASIN_I64, begins, error));
    BASIN_TRY(basin_bundle_expect(&send, bundle, "send", BASIN_I32, BASIN_SHAPE(-1), error));
    if (part->network->facts.count)
        BASIN_TRY(
            basin_bundle_number(&part->network->facts.now, bundle, "now", -1e300, 1e300, error));
    part->network->origin = node->data;
    part->halo_at = halo_at->data, part->send_at = send_at->data, part->send = send->data;
    part->halo = part->halo_at[part->parts];
    part->stamp = stamp ? strtoull(stamp, NULL, 16) : 0;
    return check_lists(part, send->shape.dim[0], error);
}

static basin_status check_meta(basin_part *part, const basin_bundle *bundle, int64_t number,
                               basin_error *error) {
    const char *format = basin_bundle_meta(bundle, "format");
    if (!format || strcmp(format, format_name) != 0)
        return basin_fail(error, BASIN_BAD_FILE, "%s: is not a part of a graph (format %.40s)",
                          basin_bundle_path(bundle), format ? format : "unknown");
    double parts, total, own = (double)number;
    BASIN_TRY(basin_bundle_number(&parts, bundle, "parts", 1, BASIN_CUT_PARTS, error));
    BASIN_TRY(basin_bundle_number(&own, bundle, "part", own, own, error));
    BASIN_TRY(basin_bundle_number(&total, bundle, "total", 1, BASIN_NETWORK_NODES, error));
    part->part = number, part->parts = (int64_t)parts, part->total = (int64_t)total;
    return BASIN_OK;
}

/* The bundle of part `number`, and its metadata; free the bundle even after an error. */
static basin_status read_meta(basin_bundle **bundle, basin_part *part, const char *folder,
                              int64_t number, basin_error *error) {
    BASIN_FREE_AT_EXIT char *path = basin_part_path(folder, number);
    if (!path) return basin_fail_memory(error, "a part of a network");
    BASIN_TRY(basin_bundle_read(bundle, path, error));
    return check_meta(part, *bundle, number, error);
}

basin_status basin_cut_count(int64_t *parts, const char *folder, basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    basin_part first = {0};
    BASIN_TRY(read_meta(&bundle, &first, folder, 0, error));
    *parts = first.parts;
    return BASIN_OK;
}

basin_status basin_part_open(basin_part **part, const char *folder, int64_t number,
                             basin_error *error) {
    BASIN_AT_EXIT(part_free_at) basin_part *p = NULL;
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    *part = NULL;
    BASIN_TRY(BASIN_NEW(&p, 1, "a part of a network", error));
    BASIN_TRY(read_meta(&bundle, p, folder, number, error));
    basin_bundle *file = bundle;
    bundle = NULL; /* the network's from here on */
    BASIN_TRY(basin_network_file_read(&p->network, file, error));
    BASIN_TRY(fill(p, p->network->file, error));
    *part = p, p = NULL;
    return BASIN_OK;
}
