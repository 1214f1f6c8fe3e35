/* Rows of halos on their way between parts: one message from each part to each other that wants
 * any. Forward, a part's own rows that are in the other's halo are packed and arrive where they
 * belong; back, what the other found for them leaves from where it is, and the owner adds it, part
 * by part, so that sums do not depend on ranks. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/team/team.h"
#include "data/network/parts/shared.h"

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

static void pack(char *to, const moving *m, int64_t k, int64_t q) {
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
            if (!m->back) pack(at, m, k, q);
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
    basin_exchange_rows *move = calloc((size_t)p->count, sizeof *move);
    if (!move) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for rows of other parts");
    for (int64_t k = 0; k < p->count; k++)
        move[k] = (basin_exchange_rows){
            rows[k],   rows[k], p->part[k]->network->nodes, p->part[k]->halo, width,
            BASIN_F32, false};
    basin_status status = basin_parts_move(p, move, (int)p->count, error);
    free(move);
    return status;
}
