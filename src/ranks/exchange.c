/* Messages between ranks; see ranks.h. MPI counts in ints, so that large parts go in pieces. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/try.h"
#include "ranks/mpi.h"

enum { PIECE = 1 << 28, TAG = 17 };
/* Seconds of asking without a pause. */
static const double EAGER = 0.002;

/* ---- waiting ---- */

/* Messages move while MPI is asked. Asking all the time would take a core from those who compute,
 * so that who has waited for a while sleeps in between. */
static void pause_between(double since) {
    struct timespec nap = {.tv_nsec = 50000};
    if (basin_clock() - since < EAGER)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

static basin_status fail(basin_ranks *r, const char *what, int code, basin_error *error) {
    r->failed = true;
    return basin_fail(error, BASIN_IO, "rank %lld: %s cannot %s: code %d", (long long)r->rank,
                      r->mpi.name, what, code);
}

static basin_status wait_for(basin_ranks *r, basin_mpi_handle *request, int64_t count,
                             basin_error *error) {
    double since = basin_clock();
    for (int64_t i = 0; i < count;) {
        int flag, code = r->mpi.Test(&request[i], &flag, r->mpi.status_ignore);
        if (code != BASIN_MPI_SUCCESS) return fail(r, "exchange", code, error);
        if (flag)
            i++;
        else
            pause_between(since);
    }
    return BASIN_OK;
}

static basin_status begun(basin_ranks *r, int code, const char *what, basin_error *error) {
    return code == BASIN_MPI_SUCCESS ? BASIN_OK : fail(r, what, code, error);
}

/* ---- all to all ---- */

basin_status basin_ranks_barrier(basin_ranks *ranks, basin_error *error) {
    basin_mpi_handle request = 0;
    if (!ranks) return BASIN_OK;
    BASIN_TRY(begun(ranks, ranks->mpi.Ibarrier(ranks->mpi.world, &request), "wait", error));
    return wait_for(ranks, &request, 1, error);
}

basin_status basin_ranks_broadcast(basin_ranks *ranks, void *data, size_t bytes, int64_t root,
                                   basin_error *error) {
    if (!ranks || ranks->count == 1) return BASIN_OK;
    for (size_t at = 0; at < bytes; at += PIECE) {
        basin_mpi_handle request = 0;
        int count = bytes - at < PIECE ? (int)(bytes - at) : PIECE;
        int code = ranks->mpi.Ibcast((char *)data + at, count, ranks->mpi.byte, (int)root,
                                     ranks->mpi.world, &request);
        BASIN_TRY(begun(ranks, code, "send", error));
        BASIN_TRY(wait_for(ranks, &request, 1, error));
    }
    return BASIN_OK;
}

basin_status basin_ranks_largest(basin_ranks *ranks, int *value, basin_error *error) {
    basin_mpi_handle request = 0;
    const basin_mpi *m = &ranks->mpi;
    int own = *value;
    BASIN_TRY(begun(ranks,
                    m->Iallreduce(&own, value, 1, m->integer, m->largest, m->world, &request),
                    "compare", error));
    return wait_for(ranks, &request, 1, error);
}

basin_status basin_ranks_gather_parts(basin_ranks *ranks, void *all, const void *mine,
                                      const size_t *bytes, basin_error *error) {
    int64_t count = basin_ranks_count(ranks), rank = basin_ranks_rank(ranks);
    basin_ranks_part *part;
    BASIN_TRY(BASIN_NEW_RAW(&part, 2 * count, "a message", error));
    size_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        part[i] = (basin_ranks_part){(void *)(uintptr_t)mine, bytes[rank], i};
        part[count + i] = (basin_ranks_part){(char *)all + at, bytes[i], i};
        at += bytes[i];
    }
    basin_status status = basin_ranks_exchange(ranks, part, count, part + count, count, error);
    free(part);
    return status;
}

basin_status basin_ranks_gather(basin_ranks *ranks, void *all, const void *mine, size_t bytes,
                                basin_error *error) {
    int64_t count = basin_ranks_count(ranks);
    size_t *each;
    BASIN_TRY(BASIN_NEW_RAW(&each, count, "a message", error));
    for (int64_t i = 0; i < count; i++) each[i] = bytes;
    basin_status status = basin_ranks_gather_parts(ranks, all, mine, each, error);
    free(each);
    return status;
}

/* ---- neighbours ---- */

/* Messages under way. */
typedef struct transfer {
    basin_ranks *ranks;
    int64_t requests;
    basin_mpi_handle request[];
} transfer;

static int64_t pieces(const basin_ranks_part *part, int64_t parts, int64_t self) {
    int64_t count = 0;
    for (int64_t i = 0; i < parts; i++)
        if (part[i].rank != self) count += (int64_t)((part[i].bytes + PIECE - 1) / PIECE);
    return count;
}

static basin_status post(transfer *t, const basin_ranks_part *part, bool send, basin_error *error) {
    const basin_mpi *m = &t->ranks->mpi;
    int code = BASIN_MPI_SUCCESS;
    for (size_t at = 0; at < part->bytes && code == BASIN_MPI_SUCCESS; at += PIECE) {
        int count = part->bytes - at < PIECE ? (int)(part->bytes - at) : PIECE;
        char *data = (char *)part->data + at;
        basin_mpi_handle *request = &t->request[t->requests++];
        code = send ? m->Isend(data, count, m->byte, (int)part->rank, TAG, m->world, request)
                    : m->Irecv(data, count, m->byte, (int)part->rank, TAG, m->world, request);
    }
    return begun(t->ranks, code, send ? "send" : "receive", error);
}

/* What a rank sends to itself: the n-th such part to the n-th that it receives. */
static basin_status copy_own(int64_t self, const basin_ranks_part *send, int64_t sends,
                             const basin_ranks_part *receive, int64_t receives,
                             basin_error *error) {
    int64_t to = 0;
    for (int64_t i = 0; i < sends; i++) {
        if (send[i].rank != self) continue;
        while (to < receives && receive[to].rank != self) to++;
        if (to == receives || receive[to].bytes != send[i].bytes)
            return basin_fail(error, BASIN_BAD_SHAPE,
                              "a rank sends itself %zu bytes, and receives %zu", send[i].bytes,
                              to == receives ? (size_t)0 : receive[to].bytes);
        if (send[i].bytes) memmove(receive[to].data, send[i].data, send[i].bytes);
        to++;
    }
    return BASIN_OK;
}

basin_status basin_ranks_exchange(basin_ranks *ranks, const basin_ranks_part *send, int64_t sends,
                                  const basin_ranks_part *receive, int64_t receives,
                                  basin_error *error) {
    int64_t self = basin_ranks_rank(ranks);
    int64_t requests = pieces(send, sends, self) + pieces(receive, receives, self);
    transfer *t BASIN_FREE_AT_EXIT =
        calloc(1, sizeof *t + (size_t)requests * sizeof(basin_mpi_handle));
    if (!t) return basin_fail_memory(error, "a message");
    t->ranks = ranks;
    BASIN_TRY(copy_own(self, send, sends, receive, receives, error));
    for (int64_t i = 0; i < receives; i++)
        if (receive[i].rank != self) BASIN_TRY(post(t, &receive[i], false, error));
    for (int64_t i = 0; i < sends; i++)
        if (send[i].rank != self) BASIN_TRY(post(t, &send[i], true, error));
    return ranks ? wait_for(ranks, t->request, t->requests, error) : BASIN_OK;
}
