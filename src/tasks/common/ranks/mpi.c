/* Opening MPI, and messages between ranks; see mpi.h and ranks.h. */
#include "tasks/common/ranks/mpi.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "base/library.h"
#include "base/try.h"

/* ---- which library ---- */

enum { CANDIDATES = 4 };

/* The launcher's own library first: one that does not know the launcher sees one rank. */
static void list(const char *file[CANDIDATES]) {
    static const char *const open_mpi[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", NULL};
    static const char *const mpich[] = {"libmpi.so.12", "libmpich.so.12", "libmpi.so.40", NULL};
    bool hydra = getenv("PMI_SIZE") && !getenv("OMPI_COMM_WORLD_SIZE") && !getenv("PMIX_RANK");
    memcpy(file, hydra ? mpich : open_mpi, CANDIDATES * sizeof *file);
}

static void *find(const char *file, basin_error *error) {
    const char *candidate[CANDIDATES] = {file, NULL};
    if (!file) list(candidate);
    for (int i = 0; candidate[i]; i++) {
        void *library = basin_library_open_global(candidate[i]);
        if (library) return library;
    }
    basin_fail(error, BASIN_UNSUPPORTED,
               "MPI, needed for several ranks, cannot be used: %.300s; Debian's package "
               "libopenmpi3 has it, or BASIN_MPI names another file",
               basin_library_why());
    return NULL;
}

static basin_status load(basin_mpi *mpi, void *library, basin_error *error) {
    struct {
        const char *name;
        size_t at;
    } required[] = {
#define ROW(name, arguments) {"MPI_" #name, offsetof(basin_mpi, name)},
        BASIN_MPI_FUNCTIONS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        void *function = basin_library_symbol(library, required[i].name);
        if (!function)
            return basin_fail(error, BASIN_UNSUPPORTED, "MPI lacks %s; needs version 3 or later",
                              required[i].name);
        memcpy((char *)mpi + required[i].at, &function, sizeof function);
    }
    return BASIN_OK;
}

/* ---- which dialect ---- */

/* "Open MPI v4.1.4, package: .." and "MPICH Version:\t4.0.2\n.." without what follows the number.
 */
static void take_name(basin_mpi *mpi) {
    enum { LONGEST = 8192 }; /* MPI_MAX_LIBRARY_VERSION_STRING of either */
    char text[LONGEST] = "";
    int length = 0;
    mpi->Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    const char *number = strpbrk(text, "0123456789");
    size_t words = number ? (size_t)(number - text) : strlen(text);
    while (words && strchr(" v\t:", text[words - 1])) words--;
    snprintf(mpi->name, sizeof mpi->name, "%.*s%s%s", (int)words, text, number ? " " : "",
             number ? number : "");
    char *version = strstr(mpi->name, " Version");
    if (version) memmove(version, version + 8, strlen(version + 8) + 1);
}

static basin_status take_dialect(basin_mpi *mpi, void *library, basin_error *error) {
    static const struct {
        const char *name;
        size_t at;
        basin_mpi_handle kin; /* of the ABI that MPICH and its kin share */
    } known[] = {{"ompi_mpi_comm_world", offsetof(basin_mpi, world), 0x44000000},
                 {"ompi_mpi_byte", offsetof(basin_mpi, byte), 0x4c00010d},
                 {"ompi_mpi_int", offsetof(basin_mpi, integer), 0x4c000405},
                 {"ompi_mpi_op_max", offsetof(basin_mpi, largest), 0x58000001},
                 {"ompi_mpi_errors_return", offsetof(basin_mpi, errors_return), 0x54000001}};
    enum { KNOWN = sizeof known / sizeof *known };
    basin_mpi_handle open_mpi[KNOWN];
    bool is_open_mpi = true, is_kin = false;
    for (int i = 0; i < KNOWN; i++) {
        open_mpi[i] = (uintptr_t)basin_library_symbol(library, known[i].name);
        is_open_mpi = is_open_mpi && open_mpi[i];
    }
    static const char *const kin[] = {"MPICH", "Intel", "MVAPICH", "CRAY"};
    for (size_t i = 0; i < sizeof kin / sizeof *kin; i++)
        is_kin = is_kin || !strncmp(mpi->name, kin[i], strlen(kin[i]));
    for (int i = 0; i < KNOWN; i++)
        *(basin_mpi_handle *)((char *)mpi + known[i].at) = is_open_mpi ? open_mpi[i] : known[i].kin;
    mpi->status_ignore = is_open_mpi ? NULL : (void *)1; /* NOLINT(performance-no-int-to-ptr) */
    if (is_open_mpi || is_kin) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "MPI is '%s', needs Open MPI, MPICH or one that derives from it", mpi->name);
}

/* ---- beginning and end ---- */

static basin_status begin(basin_mpi *mpi, basin_error *error) {
    int there = 0, provided = 0;
    mpi->Initialized(&there);
    if (there) return BASIN_OK;
    if (mpi->Init_thread(NULL, NULL, BASIN_MPI_SERIALIZED, &provided))
        return basin_fail(error, BASIN_UNSUPPORTED, "%s cannot begin", mpi->name);
    mpi->began = 1;
    return BASIN_OK;
}

basin_status basin_mpi_begin(basin_mpi *mpi, const char *file, basin_error *error) {
    *mpi = (basin_mpi){0};
    void *library = find(file, error); /* stays open: MPI does not like to be unloaded */
    if (!library) return BASIN_UNSUPPORTED;
    BASIN_TRY(load(mpi, library, error));
    take_name(mpi);
    BASIN_TRY(take_dialect(mpi, library, error));
    BASIN_TRY(begin(mpi, error));
    mpi->Comm_set_errhandler(mpi->world, mpi->errors_return);
    return BASIN_OK;
}

void basin_mpi_end(basin_mpi *mpi) {
    if (mpi->began) mpi->Finalize();
    mpi->began = 0;
}

/* ---- messages; MPI counts in ints, so that large parts go in pieces ---- */

enum { PIECE = 1 << 28, TAG = 17 };
/* Seconds of asking without a pause. */
static const double EAGER = 0.002;

/* ---- waiting ---- */

/* Messages progress only while MPI is polled. Polling all the time would take a core from the
 * threads that compute, so that a rank that has waited for a while sleeps in between. */
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
    BASIN_SCRATCH_RAW(basin_ranks_part, part, 2 * count, "a message", error);
    size_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        part[i] = (basin_ranks_part){(void *)(uintptr_t)mine, bytes[rank], i};
        part[count + i] = (basin_ranks_part){(char *)all + at, bytes[i], i};
        at += bytes[i];
    }
    return basin_ranks_exchange(ranks, part, count, part + count, count, error);
}

basin_status basin_ranks_gather(basin_ranks *ranks, void *all, const void *mine, size_t bytes,
                                basin_error *error) {
    int64_t count = basin_ranks_count(ranks);
    BASIN_SCRATCH_RAW(size_t, each, count, "a message", error);
    for (int64_t i = 0; i < count; i++) each[i] = bytes;
    return basin_ranks_gather_parts(ranks, all, mine, each, error);
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
