/* Opens this rank's parts and the network that stands for the whole; gathers rows of nodes,
 * exchanges halos. */
#include <inttypes.h>

#include "base/parallel.h"
#include "base/sort.h"
#include "tasks/nodes/network/parts/parts.h"

static int64_t rank_of(const basin_parts *parts, int64_t part) {
    int64_t ranks = basin_ranks_count(parts->ranks), r = 0;
    while (r + 1 < ranks) {
        basin_ranks_share share = basin_ranks_deal_to(r, ranks, parts->parts);
        if (part < share.first + share.count) break;
        r++;
    }
    return r;
}

int basin_parts_threads(const basin_parts *parts, int64_t numbers) {
    enum { MINIMUM = 1 << 15 };
    return parts->threads > 1 && numbers > MINIMUM ? parts->threads : 1;
}

/* ---- rows of nodes from all ranks ---- */

/* What all ranks have, part after part: `count` [parts] entries of `width` bytes each. */
static basin_status gather(void *all, basin_parts *p, const void *mine, const int64_t *count,
                           size_t width, basin_error *error) {
    size_t bytes[BASIN_CUT_PARTS] = {0}; /* there are no more ranks than parts */
    for (int64_t q = 0; q < p->parts; q++) bytes[rank_of(p, q)] += (size_t)count[q] * width;
    return basin_ranks_gather_parts(p->ranks, all, mine, bytes, error);
}

static basin_status gather_entries(void *all, basin_parts *p, const void *mine, size_t width,
                                   basin_error *error) {
    int64_t one[BASIN_CUT_PARTS];
    for (int64_t q = 0; q < p->parts; q++) one[q] = 1;
    return gather(all, p, mine, one, width, error);
}

/* Counts become begins; returns the sum. */
static int64_t sum_counts(int64_t *count, int64_t parts) {
    int64_t sum = 0;
    for (int64_t q = 0; q < parts; q++) {
        int64_t own = count[q];
        count[q] = sum;
        sum += own;
    }
    return sum;
}

basin_status basin_parts_gather_packed(void *all, basin_parts *p, const void *own,
                                       const uint8_t *chosen, size_t width, basin_error *error) {
    int64_t next[BASIN_CUT_PARTS] = {0}, nodes = p->face->nodes, total = 0;
    BASIN_FREE_AT_EXIT char *packed = NULL;
    for (int64_t i = 0; i < nodes; i++) next[p->owner[i]] += !chosen || chosen[i];
    for (int64_t q = 0; q < p->parts; q++) total += next[q];
    if (!(packed = basin_array_new((size_t)total, width)))
        return basin_fail_memory(error, "rows of nodes");
    BASIN_TRY(gather(packed, p, own, next, width, error));
    (void)sum_counts(next, p->parts);
    for (int64_t i = 0; i < nodes; i++) {
        if (chosen && !chosen[i]) continue;
        memcpy(all, packed + (size_t)next[p->owner[i]]++ * width, width);
        all = (char *)all + width;
    }
    return BASIN_OK;
}

basin_status basin_parts_gather(void *all, basin_parts *p, const void *const *mine,
                                const uint8_t *chosen, size_t width, basin_error *error) {
    int64_t rows = 0;
    for (int64_t k = 0; k < p->count; k++) rows += p->part[k]->network->nodes;
    BASIN_FREE_AT_EXIT char *own = basin_array_new((size_t)rows, width);
    if (!own) return basin_fail_memory(error, "rows of nodes");
    char *to = own;
    for (int64_t k = 0; k < p->count; k++) {
        const basin_network *n = p->part[k]->network;
        for (int64_t i = 0; i < n->nodes; i++) {
            if (chosen && !chosen[n->origin[i]]) continue;
            memcpy(to, (const char *)mine[k] + (size_t)i * width, width);
            to += width;
        }
    }
    return basin_parts_gather_packed(all, p, own, chosen, width, error);
}

/* ---- rows of halos ---- */

typedef struct moving {
    basin_parts *p;
    const basin_exchange_rows *rows; /* [p->count] */
    size_t bytes;                    /* of a row */
    bool back;
    basin_ranks_part *send, *receive; /* [p->count, p->parts] at most */
    int64_t sends, receives;
    char *buffer; /* rows that are packed, or come back */
} moving;

/* How many rows of part k are in the halo of part q; how many of k's halo q owns. */
static int64_t shown_to(const moving *m, int64_t k, int64_t q) {
    return m->p->part[k]->send_at[q + 1] - m->p->part[k]->send_at[q];
}

static int64_t seen_of(const moving *m, int64_t k, int64_t q) {
    return m->p->part[k]->halo_at[q + 1] - m->p->part[k]->halo_at[q];
}

/* Where part k of this rank keeps the rows that part q owns. */
static char *halo_rows(const moving *m, int64_t k, int64_t q) {
    const basin_exchange_rows *rows = &m->rows[k];
    char *all = m->back ? (char *)(uintptr_t)rows->from : rows->to;
    return all + (size_t)(rows->own + m->p->part[k]->halo_at[q]) * m->bytes;
}

/* Rows of a part that are in the halo of another, on their way to or from `packed`. */
typedef struct shown {
    const moving *m;
    const int32_t *place; /* of the rows */
    const basin_exchange_rows *rows;
    char *packed;
} shown;

static void add(void *to, const void *from, int64_t width, basin_dtype dtype) {
    if (dtype == BASIN_F64)
        for (int64_t i = 0; i < width; i++) ((double *)to)[i] += ((const double *)from)[i];
    else
        for (int64_t i = 0; i < width; i++) ((float *)to)[i] += ((const float *)from)[i];
}

/* Those that came back are added. */
static void move_some(const void *context, int64_t first, int64_t last) {
    const shown *s = context;
    size_t bytes = s->m->bytes;
    for (int64_t i = first; i < last; i++) {
        char *packed = s->packed + (size_t)i * bytes;
        size_t row = (size_t)s->place[i] * bytes;
        if (s->m->back)
            add((char *)s->rows->to + row, packed, s->rows->width, s->rows->dtype);
        else
            memcpy(packed, (const char *)s->rows->from + row, bytes);
    }
}

/* Returns what follows them. */
static char *move_shown(const moving *m, int64_t k, int64_t q, char *packed) {
    const basin_part *part = m->p->part[k];
    shown s = {m, part->send + part->send_at[q], &m->rows[k], packed};
    int64_t count = shown_to(m, k, q);
    basin_parallel_for(move_some, &s, count, 0,
                       basin_parts_threads(m->p, count * m->rows[k].width));
    return count ? packed + (size_t)count * m->bytes : packed; /* NULL: nothing is sent */
}

static void list(basin_ranks_part *to, int64_t *count, const moving *m, void *data, int64_t rows,
                 int64_t part) {
    if (rows > 0)
        to[(*count)++] = (basin_ranks_part){data, (size_t)rows * m->bytes, rank_of(m->p, part)};
}

/* By the sender's part, then by the receiver's: on both sides in this order. */
static void list_messages(moving *m) {
    char *at = m->buffer;
    for (int64_t k = 0; k < m->p->count; k++)
        for (int64_t q = 0; q < m->p->parts; q++) {
            int64_t rows = m->back ? seen_of(m, k, q) : shown_to(m, k, q);
            list(m->send, &m->sends, m, m->back ? halo_rows(m, k, q) : at, rows, q);
            if (!m->back) at = move_shown(m, k, q, at);
        }
    for (int64_t q = 0; q < m->p->parts; q++)
        for (int64_t k = 0; k < m->p->count; k++) {
            int64_t rows = m->back ? shown_to(m, k, q) : seen_of(m, k, q);
            list(m->receive, &m->receives, m, m->back ? at : halo_rows(m, k, q), rows, q);
            if (m->back) at += (size_t)rows * m->bytes;
        }
}

static basin_status reserve(moving *m, basin_error *error) {
    basin_parts *p = m->p;
    size_t max = (size_t)(p->count * p->parts), rows = 0;
    for (int64_t k = 0; k < p->count; k++) rows += (size_t)p->part[k]->send_at[p->parts];
    BASIN_TRY(BASIN_NEW_RAW(&m->send, 2 * max, "rows of other parts", error));
    m->receive = m->send + max;
    if (rows * m->bytes > p->buffer_bytes) {
        free(p->buffer);
        p->buffer_bytes = 0;
        BASIN_TRY(BASIN_NEW_RAW(&p->buffer, rows * m->bytes, "rows of other parts", error));
        p->buffer_bytes = rows * m->bytes;
    }
    m->buffer = p->buffer;
    return BASIN_OK;
}

/* Own rows stay; those of the halo beyond this part's become zero. */
static void keep_own(const moving *m) {
    for (int64_t k = 0; k < m->p->count; k++) {
        const basin_exchange_rows *rows = &m->rows[k];
        size_t own = (size_t)rows->own * m->bytes, halo = (size_t)m->p->part[k]->halo * m->bytes;
        if (rows->to != rows->from) memcpy(rows->to, rows->from, own);
        if (!m->back)
            memset((char *)rows->to + own + halo, 0, (size_t)rows->halo * m->bytes - halo);
    }
}

static basin_status move(moving *m, basin_error *error) {
    BASIN_TRY(reserve(m, error));
    list_messages(m);
    keep_own(m);
    BASIN_TRY(basin_ranks_exchange(m->p->ranks, m->send, m->sends, m->receive, m->receives, error));
    char *at = m->buffer;
    for (int64_t q = 0; q < m->p->parts && m->back; q++)
        for (int64_t k = 0; k < m->p->count; k++) at = move_shown(m, k, q, at);
    return BASIN_OK;
}

basin_status basin_parts_move(void *context, const basin_exchange_rows *rows, int count,
                              basin_error *error) {
    basin_parts *p = context;
    moving m = {.p = p, .rows = rows, .back = rows[0].back};
    if (count != p->count)
        return basin_fail(error, BASIN_BAD_VALUE, "%d plans for the %lld parts of this rank", count,
                          (long long)p->count);
    m.bytes = (size_t)rows[0].width * (rows[0].dtype == BASIN_F64 ? 8 : 4);
    basin_status status = move(&m, error);
    free(m.send);
    return status;
}

basin_status basin_parts_fetch(basin_parts *p, float *const *rows, int64_t width,
                               basin_error *error) {
    BASIN_SCRATCH(basin_exchange_rows, to, p->count, "rows of other parts", error);
    for (int64_t k = 0; k < p->count; k++)
        to[k] = (basin_exchange_rows){
            rows[k],   rows[k], p->part[k]->network->nodes, p->part[k]->halo, width,
            BASIN_F32, false};
    return basin_parts_move(p, to, (int)p->count, error);
}

/* ---- what all ranks know ---- */

typedef struct about {
    uint64_t stamp;
    int64_t total, nodes, halo, features;
    int64_t edges[BASIN_PARTS_RELATIONS];
} about;

static basin_status check_about(const basin_parts *p, const about *all, basin_error *error) {
    const char *path = p->part[0]->network->path;
    int64_t nodes = 0;
    for (int64_t q = 0; q < p->parts; q++) {
        if (all[q].stamp != all[0].stamp || all[q].features != all[0].features ||
            all[q].total != all[0].total)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: parts 0 and %" PRId64
                              " are of different cuts; expected files of "
                              "one run of basin data part, or one graph on all ranks",
                              path, q);
        nodes += all[q].nodes;
    }
    if (nodes == all[0].total) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: the parts have %" PRId64 " nodes of %" PRId64,
                      path, nodes, all[0].total);
}

static void take_about(basin_parts *p, const about *a, int64_t q) {
    p->nodes[q] = a->nodes;
    p->max_nodes = basin_int_max(p->max_nodes, a->nodes);
    p->max_halo = basin_int_max(p->max_halo, a->halo);
    for (int r = 0; r < p->face->relations; r++) {
        p->max_edges[r] = basin_int_max(p->max_edges[r], a->edges[r]);
        p->face->relation[r].edges += a->edges[r];
    }
}

static basin_status learn_sizes(basin_parts *p, basin_error *error) {
    BASIN_SCRATCH(about, mine, p->count, "parts", error);
    BASIN_SCRATCH(about, all, p->parts, "parts", error);
    BASIN_TRY(BASIN_NEW(&p->nodes, p->parts, "parts", error));
    BASIN_TRY(BASIN_NEW(&p->max_edges, BASIN_PARTS_RELATIONS, "parts", error));
    for (int64_t k = 0; k < p->count; k++) {
        const basin_part *part = p->part[k];
        const basin_network *n = part->network;
        mine[k] = (about){part->stamp, part->total, n->nodes, part->halo, n->features, {0}};
        for (int r = 0; r < n->relations; r++) mine[k].edges[r] = n->relation[r].edges;
    }
    BASIN_TRY(gather_entries(all, p, mine, sizeof *all, error));
    BASIN_TRY(check_about(p, all, error));
    for (int64_t q = 0; q < p->parts; q++) take_about(p, &all[q], q);
    return BASIN_OK;
}

/* What of a part is read by the first one's counts. */
static basin_status check_alike(const basin_parts *p, basin_error *error) {
    const basin_network *first = p->part[0]->network;
    for (int64_t k = 1; k < p->count; k++) {
        const basin_network *n = p->part[k]->network;
        if (p->part[k]->parts != p->part[0]->parts || n->relations != first->relations ||
            n->splits != first->splits || !n->id.count != !first->id.count)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: is of another cut than %s; expected files of one run of basin "
                              "data part",
                              n->path, first->path);
    }
    return BASIN_OK;
}

static basin_status learn_owners(basin_parts *p, basin_error *error) {
    int64_t N = p->face->nodes, own = 0;
    for (int64_t k = 0; k < p->count; k++) own += p->part[k]->network->nodes;
    BASIN_SCRATCH_RAW(int64_t, node, N, "parts", error);
    BASIN_SCRATCH_RAW(int64_t, mine, own, "parts", error);
    BASIN_TRY(BASIN_NEW_RAW(&p->owner, N, "parts", error));
    int64_t *at = mine;
    for (int64_t k = 0; k < p->count; k++) {
        const basin_network *n = p->part[k]->network;
        memcpy(at, n->origin, (size_t)n->nodes * sizeof *at);
        at += n->nodes;
    }
    BASIN_TRY(gather(node, p, mine, p->nodes, sizeof *node, error));
    memset(p->owner, 0xff, (size_t)N * sizeof *p->owner);
    at = node;
    for (int64_t q = 0; q < p->parts; q++)
        for (int64_t i = 0; i < p->nodes[q]; i++, at++) {
            if (p->owner[*at] != UINT16_MAX)
                return basin_fail(error, BASIN_BAD_FILE, "%s: node %" PRId64 " is in two parts",
                                  p->face->path, *at);
            p->owner[*at] = (uint16_t)q;
        }
    return BASIN_OK;
}

/* ---- the whole without edges and features ---- */

static basin_status make_face(basin_parts *p, basin_error *error) {
    const basin_network *n = p->part[0]->network;
    BASIN_TRY(check_alike(p, error));
    if (n->relations > BASIN_PARTS_RELATIONS)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: %d relations, expected at most %d in parts", n->path, n->relations,
                          BASIN_PARTS_RELATIONS);
    BASIN_TRY(basin_network_new(&p->face, n->path, p->part[0]->total, error));
    p->face->parts = p;
    BASIN_TRY(basin_network_copy_head(p->face, n, error));
    BASIN_TRY(basin_facts_copy(&p->face->facts, &n->facts, error));
    for (int r = 0; r < n->relations; r++) {
        basin_relation *relation;
        BASIN_TRY(basin_network_new_relation(&relation, p->face, n->relation[r].name, error));
    }
    return BASIN_OK;
}

/* `tables` tables of rows at `offset` in each part's basin_network; none where parts lack them. */
static basin_status gather_tables(basin_parts *p, size_t offset, int64_t tables, size_t width,
                                  basin_error *error) {
    size_t N = (size_t)p->face->nodes;
    char **to = (char **)(void *)((char *)p->face + offset);
    BASIN_FREE_AT_EXIT const void **mine = NULL;
    BASIN_TRY(BASIN_NEW(&mine, p->count, "parts", error));
    for (int64_t s = 0; s < tables; s++) {
        for (int64_t k = 0; k < p->count; k++) {
            const basin_network *n = p->part[k]->network;
            const char *table = *(char *const *)(const void *)((const char *)n + offset);
            if (!table) return BASIN_OK;
            mine[k] = table + (size_t)(s * n->nodes) * width;
        }
        if (!*to && !(*to = basin_array_new(N, (size_t)tables * width)))
            return basin_fail_memory(error, "parts");
        BASIN_TRY(basin_parts_gather(*to + (size_t)s * N * width, p, mine, NULL, width, error));
    }
    return BASIN_OK;
}

static basin_status fill_face(basin_parts *p, basin_error *error) {
    int64_t splits = p->face->splits;
    BASIN_TRY(gather_tables(p, offsetof(basin_network, label), 1, sizeof *p->face->label, error));
    BASIN_TRY(gather_tables(p, offsetof(basin_network, train), splits, 1, error));
    BASIN_TRY(gather_tables(p, offsetof(basin_network, val), splits, 1, error));
    return gather_tables(p, offsetof(basin_network, test), splits, 1, error);
}

/* ---- opening ---- */

static void close_at(basin_parts **parts) { basin_parts_close(*parts); }

static basin_status begin(basin_parts **parts, int64_t count, basin_ranks *ranks,
                          basin_error *error) {
    basin_ranks_share share = basin_ranks_deal(ranks, count);
    if (basin_ranks_count(ranks) > count)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%" PRId64 " ranks for a graph in %" PRId64
                          " parts; expected at most one "
                          "rank per part",
                          basin_ranks_count(ranks), count);
    BASIN_TRY(BASIN_NEW(parts, 1, "parts", error));
    basin_parts *p = *parts;
    BASIN_TRY(BASIN_NEW(&p->part, share.count, "parts", error));
    p->ranks = ranks, p->parts = count, p->first = share.first, p->count = share.count;
    return BASIN_OK;
}

/* `status` is how this rank's own parts went; all ranks hear of it. */
static basin_status complete(basin_parts *p, basin_status status, basin_error *error) {
    if (!status) status = make_face(p, error);
    BASIN_TRY(basin_ranks_agree(p->ranks, status, error));
    BASIN_TRY(learn_sizes(p, error));
    BASIN_TRY(learn_owners(p, error));
    return fill_face(p, error);
}

basin_status basin_parts_open(basin_parts **parts, const char *folder, basin_ranks *ranks,
                              basin_error *error) {
    BASIN_AT_EXIT(close_at) basin_parts *p = NULL;
    int64_t count = 0;
    *parts = NULL;
    BASIN_TRY(basin_ranks_agree(ranks, basin_cut_count(&count, folder, error), error));
    BASIN_TRY(basin_ranks_agree(ranks, begin(&p, count, ranks, error), error));
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < p->count && !status; k++)
        status = basin_part_open(&p->part[k], folder, p->first + k, error);
    BASIN_TRY(complete(p, status, error));
    *parts = p, p = NULL;
    return BASIN_OK;
}

basin_status basin_parts_cut(basin_parts **parts, const basin_network *network,
                             const basin_cut_spec *spec, basin_ranks *ranks, basin_error *error) {
    BASIN_NETWORK_AT_EXIT basin_network *ordered = NULL;
    BASIN_AT_EXIT(basin_partition_free_at) basin_partition *cut = NULL;
    BASIN_AT_EXIT(close_at) basin_parts *p = NULL;
    *parts = NULL;
    basin_status status = basin_network_ordered(&ordered, network, error);
    if (!status) status = basin_partition_new(&cut, ordered ? ordered : network, spec, error);
    if (!status) status = begin(&p, cut->parts, ranks, error);
    BASIN_TRY(basin_ranks_agree(ranks, status, error));
    for (int64_t k = 0; k < p->count && !status; k++)
        status = basin_partition_take(&p->part[k], cut, p->first + k, error);
    BASIN_TRY(complete(p, status, error));
    *parts = p, p = NULL;
    return BASIN_OK;
}

void basin_parts_close(basin_parts *parts) {
    if (!parts) return;
    for (int64_t k = 0; k < parts->count; k++) basin_part_free(parts->part[k]);
    basin_network_close(parts->face);
    free(parts->part), free(parts->owner), free(parts->nodes), free(parts->max_edges);
    free(parts->buffer);
    free(parts);
}

int64_t basin_parts_count(const basin_parts *parts) { return parts->parts; }
const basin_network *basin_parts_face(const basin_parts *parts) { return parts->face; }

/* ---- ids ---- */

/* The texts of all parts, one part after the other; `at` [parts] where each begins. */
static basin_status gather_texts(char **all, int64_t *at, basin_parts *p, basin_error *error) {
    int64_t length[BASIN_CUT_PARTS], mine = 0, total = 0;
    for (int64_t k = 0; k < p->count; k++) {
        const basin_names *id = &p->part[k]->network->id;
        mine += length[k] = id->at[id->count];
    }
    BASIN_SCRATCH_RAW(char, own, mine, "ids", error);
    BASIN_TRY(gather_entries(at, p, length, sizeof *at, error));
    char *to = own;
    for (int64_t k = 0; k < p->count; to += length[k++])
        memcpy(to, p->part[k]->network->id.text, (size_t)length[k]);
    for (int64_t q = 0; q < p->parts; q++) total += at[q];
    BASIN_TRY(BASIN_NEW_RAW(all, total, "ids", error));
    BASIN_TRY(gather(*all, p, own, at, 1, error));
    (void)sum_counts(at, p->parts);
    return BASIN_OK;
}

basin_status basin_parts_name_nodes(basin_parts *p, basin_error *error) {
    int64_t at[BASIN_CUT_PARTS];
    BASIN_FREE_AT_EXIT char *all = NULL;
    if (!p->part[0]->network->id.count || p->face->id.count) return BASIN_OK;
    BASIN_TRY(gather_texts(&all, at, p, error));
    for (int64_t i = 0; i < p->face->nodes; i++) {
        const char *text = all + at[p->owner[i]];
        BASIN_TRY(basin_names_add(&p->face->id, text, error));
        at[p->owner[i]] += (int64_t)strlen(text) + 1;
    }
    return BASIN_OK;
}
