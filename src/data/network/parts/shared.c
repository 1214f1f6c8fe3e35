/* Opening the parts of a graph that this rank holds, and the face of the whole. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/team/team.h"
#include "base/try.h"
#include "data/network/network.h"
#include "data/network/parts/parts.h"

/* ---- rows of nodes from all ranks ---- */

/* How many of each part's nodes are chosen. */
static void count_chosen(int64_t *count, const basin_parts *p, const uint8_t *chosen) {
    memset(count, 0, (size_t)p->parts * sizeof *count);
    for (int64_t i = 0; i < p->face->nodes; i++) count[p->owner[i]] += !chosen || chosen[i];
}

/* This rank's rows, part by part. */
static void pack(char *to, const basin_parts *p, const void *const *mine, const uint8_t *chosen,
                 size_t width) {
    for (int64_t k = 0; k < p->count; k++) {
        const basin_network *n = p->part[k]->network;
        for (int64_t i = 0; i < n->nodes; i++) {
            if (chosen && !chosen[n->origin[i]]) continue;
            memcpy(to, (const char *)mine[k] + (size_t)i * width, width);
            to += width;
        }
    }
}

/* Rows by part become rows by node. `next` [parts] is where the next row of a part lies. */
static void order(char *all, const char *packed, const basin_parts *p, int64_t *next,
                  const uint8_t *chosen, size_t width) {
    int64_t begin = 0;
    for (int64_t q = 0; q < p->parts; q++) {
        int64_t count = next[q];
        next[q] = begin;
        begin += count;
    }
    for (int64_t i = 0; i < p->face->nodes; i++) {
        if (chosen && !chosen[i]) continue;
        memcpy(all, packed + (size_t)next[p->owner[i]]++ * width, width);
        all += width;
    }
}

basin_status basin_parts_gather_packed(void *all, basin_parts *p, const void *own,
                                       const uint8_t *chosen, size_t width, basin_error *error) {
    size_t ranks = (size_t)basin_ranks_count(p->ranks);
    int64_t *count = basin_array_new((size_t)p->parts, sizeof *count), total = 0;
    size_t *bytes = calloc(ranks, sizeof *bytes);
    char *packed = NULL;
    if (count && bytes) {
        count_chosen(count, p, chosen);
        for (int64_t q = 0; q < p->parts; q++) {
            bytes[basin_parts_rank(p, q)] += (size_t)count[q] * width;
            total += count[q];
        }
        packed = basin_array_new((size_t)total, width);
    }
    basin_status status =
        packed ? BASIN_OK
               : basin_fail(error, BASIN_NO_MEMORY, "out of memory for rows of %lld nodes",
                            (long long)total);
    if (!status) status = basin_ranks_gather_parts(p->ranks, packed, own, bytes, error);
    if (!status) order(all, packed, p, count, chosen, width);
    free(count), free(bytes), free(packed);
    return status;
}

basin_status basin_parts_gather(void *all, basin_parts *p, const void *const *mine,
                                const uint8_t *chosen, size_t width, basin_error *error) {
    int64_t rows = 0;
    for (int64_t k = 0; k < p->count; k++) rows += p->part[k]->network->nodes;
    BASIN_FREE_AT_EXIT char *own = basin_array_new((size_t)rows, width);
    if (!own)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for rows of %lld nodes",
                          (long long)rows);
    pack(own, p, mine, chosen, width);
    return basin_parts_gather_packed(all, p, own, chosen, width, error);
}

/* ---- rows of halos ---- */

/* One exchange. */
typedef struct moving {
    basin_parts *p;
    const basin_exchange_rows *rows; /* [p->count] */
    size_t bytes;                    /* of a row */
    bool back;
    basin_ranks_part *send, *receive; /* [p->count, p->parts] at most */
    int64_t sends, receives;
    char *buffer; /* rows that are packed, or come back */
} moving;

int64_t basin_parts_rank(const basin_parts *parts, int64_t part) {
    int64_t ranks = basin_ranks_count(parts->ranks), r = 0;
    while (r + 1 < ranks) {
        basin_ranks_share share = basin_ranks_deal_to(r, ranks, parts->parts);
        if (part < share.first + share.count) break;
        r++;
    }
    return r;
}

int basin_parts_threads(const basin_parts *parts, int64_t numbers) {
    enum { LEAST = 1 << 15 };
    return parts->threads > 1 && numbers > LEAST ? parts->threads : 1;
}

/* How many rows of part k of this rank are in the halo of part q; and how many of its halo part q
 * owns. */
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

/* ---- rows of a part that are in the halo of another ---- */

typedef struct shown {
    const moving *m;
    const int32_t *place;            /* of the rows that are shown */
    const basin_exchange_rows *rows; /* the part's */
    char *to;                        /* packed, where they are sent; NULL: they came back ... */
    const char *from;                /* ... from here */
} shown;

static shown shown_rows(const moving *m, int64_t k, int64_t q, char *to, const char *from) {
    return (shown){m, m->p->part[k]->send + m->p->part[k]->send_at[q], &m->rows[k], to, from};
}

static void share_rows(const shown *s, basin_team_body *body, int64_t count) {
    basin_team_run(body, s, count, 0, basin_parts_threads(s->m->p, count * s->rows->width));
}

static void pack_some(const void *context, int64_t first, int64_t last, int place) {
    const shown *s = context;
    const char *from = s->rows->from;
    size_t bytes = s->m->bytes;
    (void)place;
    for (int64_t i = first; i < last; i++)
        memcpy(s->to + (size_t)i * bytes, from + (size_t)s->place[i] * bytes, bytes);
}

static void pack_halo(char *to, const moving *m, int64_t k, int64_t q) {
    shown s = shown_rows(m, k, q, to, NULL);
    share_rows(&s, pack_some, shown_to(m, k, q));
}

static void add(void *to, const void *from, int64_t width, basin_dtype dtype) {
    if (dtype == BASIN_F64)
        for (int64_t i = 0; i < width; i++) ((double *)to)[i] += ((const double *)from)[i];
    else
        for (int64_t i = 0; i < width; i++) ((float *)to)[i] += ((const float *)from)[i];
}

static void add_some(const void *context, int64_t first, int64_t last, int place) {
    const shown *s = context;
    char *to = s->rows->to;
    size_t bytes = s->m->bytes;
    (void)place;
    for (int64_t i = first; i < last; i++)
        add(to + (size_t)s->place[i] * bytes, s->from + (size_t)i * bytes, s->rows->width,
            s->rows->dtype);
}

static void add_rows(const moving *m, int64_t k, int64_t q, const char *from) {
    shown s = shown_rows(m, k, q, NULL, from);
    share_rows(&s, add_some, shown_to(m, k, q));
}

/* ---- messages ---- */

static void list(basin_ranks_part *to, int64_t *count, const moving *m, void *data, int64_t rows,
                 int64_t part) {
    if (rows > 0)
        to[(*count)++] =
            (basin_ranks_part){data, (size_t)rows * m->bytes, basin_parts_rank(m->p, part)};
}

/* By the sender's part, then by the receiver's: on both sides in this order. */
static void list_messages(moving *m) {
    char *at = m->buffer;
    for (int64_t k = 0; k < m->p->count; k++)
        for (int64_t q = 0; q < m->p->parts; q++) {
            int64_t rows = m->back ? seen_of(m, k, q) : shown_to(m, k, q);
            if (!m->back) pack_halo(at, m, k, q);
            list(m->send, &m->sends, m, m->back ? halo_rows(m, k, q) : at, rows, q);
            if (!m->back) at += (size_t)rows * m->bytes;
        }
    for (int64_t q = 0; q < m->p->parts; q++)
        for (int64_t k = 0; k < m->p->count; k++) {
            int64_t rows = m->back ? shown_to(m, k, q) : seen_of(m, k, q);
            list(m->receive, &m->receives, m, m->back ? at : halo_rows(m, k, q), rows, q);
            if (m->back) at += (size_t)rows * m->bytes;
        }
}

/* What came back, in the order in which it was listed. */
static void add_all(const moving *m) {
    const char *at = m->buffer;
    for (int64_t q = 0; q < m->p->parts; q++)
        for (int64_t k = 0; k < m->p->count; k++) {
            add_rows(m, k, q, at);
            at += (size_t)shown_to(m, k, q) * m->bytes;
        }
}

/* ---- all of it ---- */

static basin_status reserve(moving *m, basin_error *error) {
    basin_parts *p = m->p;
    size_t most = (size_t)(p->count * p->parts), rows = 0;
    for (int64_t k = 0; k < p->count; k++) rows += (size_t)p->part[k]->send_at[p->parts];
    if (rows * m->bytes > p->buffer_bytes) {
        free(p->buffer);
        p->buffer_bytes = rows * m->bytes;
        p->buffer = basin_array_new(p->buffer_bytes, 1);
    }
    m->buffer = p->buffer;
    m->send = basin_array_new(2 * most, sizeof *m->send);
    m->receive = m->send ? m->send + most : NULL;
    if (m->send && (m->buffer || !rows)) return BASIN_OK;
    p->buffer_bytes = p->buffer ? p->buffer_bytes : 0;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for rows of other parts");
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

basin_status basin_parts_move(void *context, const basin_exchange_rows *rows, int count,
                              basin_error *error) {
    basin_parts *p = context;
    moving m = {.p = p, .rows = rows};
    if (count != p->count)
        return basin_fail(error, BASIN_BAD_VALUE, "%d plans for the %lld parts of this rank", count,
                          (long long)p->count);
    m.back = rows[0].back;
    m.bytes = (size_t)rows[0].width * (rows[0].dtype == BASIN_F64 ? 8 : 4);
    basin_status status = reserve(&m, error);
    if (!status) {
        list_messages(&m);
        keep_own(&m);
        status = basin_ranks_exchange(p->ranks, m.send, m.sends, m.receive, m.receives, error);
    }
    if (!status && m.back) add_all(&m);
    free(m.send);
    return status;
}

basin_status basin_parts_fetch(basin_parts *p, float *const *rows, int64_t width,
                               basin_error *error) {
    BASIN_FREE_AT_EXIT basin_exchange_rows *move = calloc((size_t)p->count, sizeof *move);
    if (!move) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for rows of other parts");
    for (int64_t k = 0; k < p->count; k++)
        move[k] = (basin_exchange_rows){
            rows[k],   rows[k], p->part[k]->network->nodes, p->part[k]->halo, width,
            BASIN_F32, false};
    return basin_parts_move(p, move, (int)p->count, error);
}

/* ---- the parts of a rank ---- */

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
    BASIN_FREE_AT_EXIT size_t *bytes = basin_array_new((size_t)ranks, sizeof *bytes);
    if (!bytes) return no_memory(error);
    for (int64_t r = 0; r < ranks; r++)
        bytes[r] = (size_t)basin_ranks_deal_to(r, ranks, p->parts).count * entry;
    return basin_ranks_gather_parts(p->ranks, all, mine, bytes, error);
}

static basin_status learn_sizes(basin_parts *p, basin_error *error) {
    BASIN_FREE_AT_EXIT about *mine = calloc((size_t)p->count + 1, sizeof *mine);
    BASIN_FREE_AT_EXIT about *all = calloc((size_t)p->parts, sizeof *all);
    p->nodes = calloc((size_t)p->parts, sizeof *p->nodes);
    p->most_edges = calloc(BASIN_PARTS_RELATIONS, sizeof *p->most_edges);
    BASIN_TRY(mine && all && p->nodes && p->most_edges ? BASIN_OK : no_memory(error));
    for (int64_t k = 0; k < p->count; k++) mine[k] = about_part(p->part[k]);
    BASIN_TRY(gather_entries(p, all, mine, sizeof *all, error));
    BASIN_TRY(check_about(p, all, error));
    take_about(p, all);
    return BASIN_OK;
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
    BASIN_TRY(basin_network_new(&p->face, n->path, p->part[0]->total, error));
    basin_network *face = p->face;
    face->features = n->features;
    face->splits = n->splits;
    face->directed = n->directed;
    if (n->note && !(face->note = basin_string_copy(n->note))) BASIN_TRY(no_memory(error));
    if (n->schema) BASIN_TRY(basin_schema_copy(&face->schema, n->schema, error));
    BASIN_TRY(basin_names_copy(&face->column, &n->column, error));
    BASIN_TRY(basin_names_copy(&face->class_name, &n->class_name, error));
    for (int r = 0; r < n->relations; r++) {
        basin_relation *relation;
        BASIN_TRY(basin_network_new_relation(&relation, face, n->relation[r].name, error));
    }
    return BASIN_OK;
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
    if (p->part[0]->network->label)
        BASIN_TRY(gather_table((void **)(void *)&face->label, p, offsetof(basin_network, label), 0,
                               sizeof *face->label, error));
    BASIN_TRY(gather_mask(&face->train, p, offsetof(basin_network, train), error));
    BASIN_TRY(gather_mask(&face->val, p, offsetof(basin_network, val), error));
    return gather_mask(&face->test, p, offsetof(basin_network, test), error);
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
