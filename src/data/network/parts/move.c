/* Rows of halos on their way between parts. Between two ranks there is one message each way: for
 * every part of the sender and every part of the receiver, in this order, the rows that the one has
 * for the other. Forward these are a part's own rows that are in the other's halo; back, what the
 * other found for them, which the owner adds part by part, so that sums do not depend on ranks. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/parts/shared.h"

/* One exchange. */
typedef struct moving {
    basin_parts *p;
    const basin_exchange_rows *rows; /* [p->count] */
    size_t bytes;                    /* of a row */
    bool back;
    size_t *out_at, *in_at; /* [ranks + 1] where messages begin, in rows */
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

/* How many rows part k of this rank sends to part q, and gets from it. */
static int64_t sent_to(const moving *m, int64_t k, int64_t q) {
    const basin_part *part = m->p->part[k];
    const int64_t *at = m->back ? part->halo_at : part->send_at;
    return at[q + 1] - at[q];
}

static int64_t got_from(const moving *m, int64_t k, int64_t q) {
    const basin_part *part = m->p->part[k];
    const int64_t *at = m->back ? part->send_at : part->halo_at;
    return at[q + 1] - at[q];
}

/* ---- one part to another ---- */

/* The rows of part k for part q, one after the other. */
static void pack(char *to, const moving *m, int64_t k, int64_t q) {
    const basin_part *part = m->p->part[k];
    const basin_exchange_rows *rows = &m->rows[k];
    const char *from = rows->from;
    int64_t count = sent_to(m, k, q);
    if (m->back) {
        memcpy(to, from + (size_t)(rows->own + part->halo_at[q]) * m->bytes,
               (size_t)count * m->bytes);
        return;
    }
    const int32_t *send = part->send + part->send_at[q];
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)i * m->bytes, from + (size_t)send[i] * m->bytes, m->bytes);
}

static void add(void *to, const void *from, int64_t width, basin_dtype dtype) {
    if (dtype == BASIN_F64)
        for (int64_t i = 0; i < width; i++) ((double *)to)[i] += ((const double *)from)[i];
    else
        for (int64_t i = 0; i < width; i++) ((float *)to)[i] += ((const float *)from)[i];
}

/* What part q has for part k goes to its place. */
static void unpack(const moving *m, int64_t k, int64_t q, const char *from) {
    const basin_part *part = m->p->part[k];
    const basin_exchange_rows *rows = &m->rows[k];
    char *to = rows->to;
    int64_t count = got_from(m, k, q);
    if (!m->back) {
        memcpy(to + (size_t)(rows->own + part->halo_at[q]) * m->bytes, from,
               (size_t)count * m->bytes);
        return;
    }
    const int32_t *place = part->send + part->send_at[q];
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++)
        add(to + (size_t)place[i] * m->bytes, from + (size_t)i * m->bytes, rows->width,
            rows->dtype);
}

/* ---- messages ---- */

static basin_ranks_share parts_of(const moving *m, int64_t rank) {
    return basin_ranks_deal_to(rank, basin_ranks_count(m->p->ranks), m->p->parts);
}

static void size_messages(moving *m) {
    int64_t ranks = basin_ranks_count(m->p->ranks);
    for (int64_t r = 0; r < ranks; r++) {
        basin_ranks_share theirs = parts_of(m, r);
        m->out_at[r + 1] = m->out_at[r], m->in_at[r + 1] = m->in_at[r];
        for (int64_t k = 0; k < m->p->count; k++)
            for (int64_t q = theirs.first; q < theirs.first + theirs.count; q++) {
                m->out_at[r + 1] += (size_t)sent_to(m, k, q);
                m->in_at[r + 1] += (size_t)got_from(m, k, q);
            }
    }
}

static bool grow(char **buffer, size_t *have, size_t need) {
    if (need <= *have) return true;
    free(*buffer);
    *buffer = basin_array_new(need, 1);
    *have = *buffer ? need : 0;
    return *buffer != NULL;
}

static void pack_all(const moving *m) {
    char *to = m->p->out;
    for (int64_t r = 0; r < basin_ranks_count(m->p->ranks); r++) {
        basin_ranks_share theirs = parts_of(m, r);
        for (int64_t k = 0; k < m->p->count; k++)
            for (int64_t q = theirs.first; q < theirs.first + theirs.count; q++) {
                pack(to, m, k, q);
                to += (size_t)sent_to(m, k, q) * m->bytes;
            }
    }
}

/* Messages of rank r are by its parts, then by ours; what is added must come by its parts for each
 * of ours, which that order is, and ranks hold parts in ascending order. */
static void unpack_all(const moving *m) {
    const char *from = m->p->in;
    for (int64_t r = 0; r < basin_ranks_count(m->p->ranks); r++) {
        basin_ranks_share theirs = parts_of(m, r);
        for (int64_t q = theirs.first; q < theirs.first + theirs.count; q++)
            for (int64_t k = 0; k < m->p->count; k++) {
                unpack(m, k, q, from);
                from += (size_t)got_from(m, k, q) * m->bytes;
            }
    }
}

static basin_status send_all(const moving *m, basin_error *error) {
    int64_t ranks = basin_ranks_count(m->p->ranks);
    basin_ranks_part *part = basin_array_new(2 * (size_t)ranks, sizeof *part);
    if (!part) return basin_fail(error, BASIN_NO_MEMORY, "no memory for rows of other parts");
    for (int64_t r = 0; r < ranks; r++) {
        part[r] = (basin_ranks_part){m->p->out + m->out_at[r] * m->bytes,
                                     (m->out_at[r + 1] - m->out_at[r]) * m->bytes, r};
        part[ranks + r] = (basin_ranks_part){m->p->in + m->in_at[r] * m->bytes,
                                             (m->in_at[r + 1] - m->in_at[r]) * m->bytes, r};
    }
    basin_status status =
        basin_ranks_exchange(m->p->ranks, part, ranks, part + ranks, ranks, error);
    free(part);
    return status;
}

/* ---- all of it ---- */

/* Own rows stay; those of the halo beyond this part's become zero. */
static void keep_own(const moving *m) {
    for (int64_t k = 0; k < m->p->count; k++) {
        const basin_exchange_rows *rows = &m->rows[k];
        size_t own = (size_t)rows->own * m->bytes, halo = (size_t)m->p->part[k]->halo * m->bytes;
        memcpy(rows->to, rows->from, own);
        if (!m->back)
            memset((char *)rows->to + own + halo, 0, (size_t)rows->halo * m->bytes - halo);
    }
}

basin_status basin_parts_move(void *context, const basin_exchange_rows *rows, int count,
                              basin_error *error) {
    basin_parts *p = context;
    size_t ranks = (size_t)basin_ranks_count(p->ranks);
    moving m = {.p = p, .rows = rows};
    if (count != p->count)
        return basin_fail(error, BASIN_BAD_VALUE, "%d plans for the %lld parts of this rank", count,
                          (long long)p->count);
    if (count > 0) {
        m.back = rows[0].back;
        m.bytes = (size_t)rows[0].width * (rows[0].dtype == BASIN_F64 ? 8 : 4);
    }
    m.out_at = calloc(2 * (ranks + 1), sizeof *m.out_at);
    if (!m.out_at) return basin_fail(error, BASIN_NO_MEMORY, "no memory for rows of other parts");
    m.in_at = m.out_at + ranks + 1;
    size_messages(&m);
    basin_status status =
        grow(&p->out, &p->out_bytes, m.out_at[ranks] * m.bytes) &&
                grow(&p->in, &p->in_bytes, m.in_at[ranks] * m.bytes)
            ? BASIN_OK
            : basin_fail(error, BASIN_NO_MEMORY, "no memory for rows of other parts");
    if (!status) pack_all(&m);
    if (!status) status = send_all(&m, error);
    if (!status) keep_own(&m);
    if (!status) unpack_all(&m);
    free(m.out_at);
    return status;
}
