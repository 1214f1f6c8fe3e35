/* Ranks over MPI; see ranks.h and include/basin/tasks/ranks.h: opening MPI, messages, agreement and
 * small sums.
 *
 * MPI is opened at run time, and the few functions that ranks use are declared here, so that no
 * header of MPI is needed and one program runs under any of them. Open MPI's handles are addresses
 * of objects, those of MPICH and its kin (Intel MPI, MVAPICH, Cray) are numbers of 32 bits. Both
 * fit a word and travel in the same registers on the 64-bit machines that Basin knows, all
 * little-endian. What differs besides is in the fields below the functions. */
#define _GNU_SOURCE
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/library.h"
#include "base/number.h"
#include "base/try.h"
#include "tasks/common/ranks/ranks.h"

typedef uintptr_t mpi_handle;

/* Result, name, arguments. */
#define MPI_FUNCTIONS(X)                                                                           \
    X(Get_library_version, (char *text, int *length))                                              \
    X(Initialized, (int *flag))                                                                    \
    X(Init_thread, (int *argc, char ***argv, int required, int *provided))                         \
    X(Finalize, (void))                                                                            \
    X(Comm_set_errhandler, (mpi_handle comm, mpi_handle handler))                                  \
    X(Comm_rank, (mpi_handle comm, int *rank))                                                     \
    X(Comm_size, (mpi_handle comm, int *size))                                                     \
    X(Ibarrier, (mpi_handle comm, mpi_handle * request))                                           \
    X(Ibcast,                                                                                      \
      (void *data, int count, mpi_handle type, int root, mpi_handle comm, mpi_handle *request))    \
    X(Iallreduce, (const void *from, void *to, int count, mpi_handle type, mpi_handle op,          \
                   mpi_handle comm, mpi_handle *request))                                          \
    X(Isend, (const void *data, int count, mpi_handle type, int rank, int tag, mpi_handle comm,    \
              mpi_handle *request))                                                                \
    X(Irecv, (void *data, int count, mpi_handle type, int rank, int tag, mpi_handle comm,          \
              mpi_handle *request))                                                                \
    X(Test, (mpi_handle * request, int *flag, void *status))                                       \
    X(Abort, (mpi_handle comm, int code))

typedef struct mpi {
#define FIELD(name, arguments) int(*name) arguments;
    MPI_FUNCTIONS(FIELD)
#undef FIELD
    mpi_handle world, byte, integer, largest, errors_return;
    void *status_ignore;
    char name[80]; /* "Open MPI 4.1.4" */
    int began;     /* by us, and to be ended by us */
} mpi;

enum { MPI_SUCCESS = 0, MPI_SERIALIZED = 2 };

enum { HOST_TEXT = 64 };

struct basin_ranks {
    int64_t rank, count;
    mpi mpi;
    char (*hosts)[HOST_TEXT]; /* [count] */
    int threads;
    bool failed; /* MPI has failed: nobody is waited for any more */
};

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

static basin_status load(mpi *m, void *library, basin_error *error) {
    static const char *const name[] = {
#define NAME(name, arguments) "MPI_" #name,
        MPI_FUNCTIONS(NAME)
#undef NAME
    };
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        void *function = basin_library_symbol(library, name[i]);
        if (!function)
            return basin_fail(error, BASIN_UNSUPPORTED, "MPI lacks %s; needs version 3 or later",
                              name[i]);
        memcpy((char *)m + i * sizeof function, &function, sizeof function); /* in their order */
    }
    return BASIN_OK;
}

/* ---- which dialect ---- */

/* "Open MPI v4.1.4, package: .." and "MPICH Version:\t4.0.2\n.." without what follows the number.
 */
static void take_name(mpi *m) {
    enum { LONGEST = 8192 }; /* MPI_MAX_LIBRARY_VERSION_STRING of either */
    char text[LONGEST] = "";
    int length = 0;
    m->Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    const char *number = strpbrk(text, "0123456789");
    size_t words = number ? (size_t)(number - text) : strlen(text);
    while (words && strchr(" v\t:", text[words - 1])) words--;
    snprintf(m->name, sizeof m->name, "%.*s%s%s", (int)words, text, number ? " " : "",
             number ? number : "");
    char *version = strstr(m->name, " Version");
    if (version) memmove(version, version + 8, strlen(version + 8) + 1);
}

static basin_status take_dialect(mpi *m, void *library, basin_error *error) {
    static const struct {
        const char *name;
        size_t at;
        mpi_handle kin; /* of the ABI that MPICH and its kin share */
    } known[] = {{"ompi_mpi_comm_world", offsetof(mpi, world), 0x44000000},
                 {"ompi_mpi_byte", offsetof(mpi, byte), 0x4c00010d},
                 {"ompi_mpi_int", offsetof(mpi, integer), 0x4c000405},
                 {"ompi_mpi_op_max", offsetof(mpi, largest), 0x58000001},
                 {"ompi_mpi_errors_return", offsetof(mpi, errors_return), 0x54000001}};
    enum { KNOWN = sizeof known / sizeof *known };
    mpi_handle open_mpi[KNOWN];
    bool is_open_mpi = true, is_kin = false;
    for (int i = 0; i < KNOWN; i++) {
        open_mpi[i] = (uintptr_t)basin_library_symbol(library, known[i].name);
        is_open_mpi = is_open_mpi && open_mpi[i];
    }
    static const char *const kin[] = {"MPICH", "Intel", "MVAPICH", "CRAY"};
    for (size_t i = 0; i < sizeof kin / sizeof *kin; i++)
        is_kin = is_kin || !strncmp(m->name, kin[i], strlen(kin[i]));
    for (int i = 0; i < KNOWN; i++)
        *(mpi_handle *)((char *)m + known[i].at) = is_open_mpi ? open_mpi[i] : known[i].kin;
    m->status_ignore = is_open_mpi ? NULL : (void *)1; /* NOLINT(performance-no-int-to-ptr) */
    if (is_open_mpi || is_kin) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "MPI is '%s', needs Open MPI, MPICH or one that derives from it", m->name);
}

/* ---- beginning and end ---- */

static basin_status begin(mpi *m, basin_error *error) {
    int there = 0, provided = 0;
    m->Initialized(&there);
    if (there) return BASIN_OK;
    if (m->Init_thread(NULL, NULL, MPI_SERIALIZED, &provided))
        return basin_fail(error, BASIN_UNSUPPORTED, "%s cannot begin", m->name);
    m->began = 1;
    return BASIN_OK;
}

static basin_status mpi_begin(mpi *m, const char *file, basin_error *error) {
    *m = (mpi){0};
    void *library = find(file, error); /* stays open: MPI does not like to be unloaded */
    if (!library) return BASIN_UNSUPPORTED;
    BASIN_TRY(load(m, library, error));
    take_name(m);
    BASIN_TRY(take_dialect(m, library, error));
    BASIN_TRY(begin(m, error));
    m->Comm_set_errhandler(m->world, m->errors_return);
    return BASIN_OK;
}

static void mpi_end(mpi *m) {
    if (m->began) m->Finalize();
    m->began = 0;
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

static basin_status wait_for(basin_ranks *r, mpi_handle *request, int64_t count,
                             basin_error *error) {
    double since = basin_clock();
    for (int64_t i = 0; i < count;) {
        int flag, code = r->mpi.Test(&request[i], &flag, r->mpi.status_ignore);
        if (code != MPI_SUCCESS) return fail(r, "exchange", code, error);
        if (flag)
            i++;
        else
            pause_between(since);
    }
    return BASIN_OK;
}

/* A call that MPI has begun, to its end. */
static basin_status complete(basin_ranks *r, int code, const char *what, mpi_handle *request,
                             basin_error *error) {
    return code == MPI_SUCCESS ? wait_for(r, request, 1, error) : fail(r, what, code, error);
}

/* ---- all to all ---- */

basin_status basin_ranks_barrier(basin_ranks *ranks, basin_error *error) {
    mpi_handle request = 0;
    if (!ranks) return BASIN_OK;
    int code = ranks->mpi.Ibarrier(ranks->mpi.world, &request);
    return complete(ranks, code, "wait", &request, error);
}

basin_status basin_ranks_broadcast(basin_ranks *ranks, void *data, size_t bytes, int64_t root,
                                   basin_error *error) {
    if (!ranks || ranks->count == 1) return BASIN_OK;
    for (size_t at = 0; at < bytes; at += PIECE) {
        mpi_handle request = 0;
        int count = bytes - at < PIECE ? (int)(bytes - at) : PIECE;
        int code = ranks->mpi.Ibcast((char *)data + at, count, ranks->mpi.byte, (int)root,
                                     ranks->mpi.world, &request);
        BASIN_TRY(complete(ranks, code, "send", &request, error));
    }
    return BASIN_OK;
}

/* The largest of all ranks' numbers; allocates nothing. */
static basin_status find_largest(basin_ranks *ranks, int *value, basin_error *error) {
    mpi_handle request = 0;
    const mpi *m = &ranks->mpi;
    int own = *value;
    int code = m->Iallreduce(&own, value, 1, m->integer, m->largest, m->world, &request);
    return complete(ranks, code, "compare", &request, error);
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
    mpi_handle request[];
} transfer;

static int64_t pieces(const basin_ranks_part *part, int64_t parts, int64_t self) {
    int64_t count = 0;
    for (int64_t i = 0; i < parts; i++)
        if (part[i].rank != self) count += (int64_t)((part[i].bytes + PIECE - 1) / PIECE);
    return count;
}

static basin_status post(transfer *t, const basin_ranks_part *part, bool send, basin_error *error) {
    const mpi *m = &t->ranks->mpi;
    int code = MPI_SUCCESS;
    for (size_t at = 0; at < part->bytes && code == MPI_SUCCESS; at += PIECE) {
        int count = part->bytes - at < PIECE ? (int)(part->bytes - at) : PIECE;
        char *data = (char *)part->data + at;
        mpi_handle *request = &t->request[t->requests++];
        code = send ? m->Isend(data, count, m->byte, (int)part->rank, TAG, m->world, request)
                    : m->Irecv(data, count, m->byte, (int)part->rank, TAG, m->world, request);
    }
    return code == MPI_SUCCESS ? BASIN_OK : fail(t->ranks, send ? "send" : "receive", code, error);
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
    transfer *t BASIN_FREE_AT_EXIT = calloc(1, sizeof *t + (size_t)requests * sizeof(mpi_handle));
    if (!t) return basin_fail_memory(error, "a message");
    t->ranks = ranks;
    BASIN_TRY(copy_own(self, send, sends, receive, receives, error));
    for (int64_t i = 0; i < receives; i++)
        if (receive[i].rank != self) BASIN_TRY(post(t, &receive[i], false, error));
    for (int64_t i = 0; i < sends; i++)
        if (send[i].rank != self) BASIN_TRY(post(t, &send[i], true, error));
    return ranks ? wait_for(ranks, t->request, t->requests, error) : BASIN_OK;
}

/* ---- the launcher ---- */

/* The launcher by its environment variables: mpirun of Open MPI, mpiexec of MPICH, srun. A batch
 * script of Slurm, which is not a step of a job, counts as none. */
static bool read_one(int64_t *value, const char *name) {
    const char *text = getenv(name);
    return text && basin_integer_read(value, &text) && *value >= 0;
}

bool basin_ranks_launched(int64_t *rank, int64_t *count) {
    static const struct {
        const char *rank, *count;
    } known[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                 {"PMI_RANK", "PMI_SIZE"},
                 {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    int64_t found[2];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!read_one(&found[0], known[i].rank) || !read_one(&found[1], known[i].count)) continue;
        if (found[1] < 1 || found[0] >= found[1]) continue;
        if (rank) *rank = found[0];
        if (count) *count = found[1];
        return true;
    }
    if (rank) *rank = 0;
    if (count) *count = 1;
    return false;
}

/* Ranks on one host that may run on the same processors share them. */
static basin_status share_processors(basin_ranks *r, basin_error *error) {
    cpu_set_t mine, both;
    int others = 0;
    BASIN_SCRATCH_RAW(cpu_set_t, all, r->count, "ranks", error);
    if (sched_getaffinity(0, sizeof mine, &mine)) memset(&mine, 0xff, sizeof mine); /* more */
    BASIN_TRY(basin_ranks_gather(r, all, &mine, sizeof mine, error));
    for (int64_t i = 0; i < r->count; i++) { /* this one is among them */
        CPU_AND(&both, &mine, &all[i]);
        others += !strcmp(r->hosts[i], r->hosts[r->rank]) && CPU_COUNT(&both) > 0;
    }
    int processors = CPU_COUNT(&mine);
    r->threads = others && processors > others ? processors / others : 1;
    return BASIN_OK;
}

/* ---- opening and closing ---- */

/* A launcher whose MPI is another one starts processes that know nothing of each other. */
static basin_status count_ranks(basin_ranks *r, int64_t expected, basin_error *error) {
    int rank = 0, count = 0;
    r->mpi.Comm_rank(r->mpi.world, &rank);
    r->mpi.Comm_size(r->mpi.world, &count);
    r->rank = rank;
    r->count = count;
    if (count == expected) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "the launcher started %lld ranks and %s sees %d: use the launcher of the "
                      "same MPI (srun: mpi=pmix or mpi=pmi2), or BASIN_MPI that names the library",
                      (long long)expected, r->mpi.name, count);
}

static basin_status name_hosts(basin_ranks *r, basin_error *error) {
    char host[HOST_TEXT] = "";
    BASIN_TRY(BASIN_NEW_RAW(&r->hosts, r->count, "ranks", error));
    if (gethostname(host, sizeof host)) host[0] = 0;
    host[sizeof host - 1] = 0;
    return basin_ranks_gather(r, r->hosts, host, sizeof host, error);
}

static basin_status open_ranks(basin_ranks *r, int64_t expected, basin_error *error) {
    BASIN_TRY(count_ranks(r, expected, error));
    BASIN_TRY(name_hosts(r, error));
    return share_processors(r, error);
}

static void release(basin_ranks *r) { BASIN_FREE(r->hosts, r); }

basin_status basin_ranks_open(basin_ranks **ranks, basin_error *error) {
    int64_t expected;
    basin_ranks *r;
    *ranks = NULL;
    if (!basin_ranks_launched(NULL, &expected)) return BASIN_OK;
    BASIN_TRY(BASIN_NEW(&r, 1, "ranks", error));
    basin_status status = mpi_begin(&r->mpi, getenv("BASIN_MPI"), error);
    if (status && expected == 1) { /* no other rank to talk to */
        release(r);
        return BASIN_OK;
    }
    if (!status) status = open_ranks(r, expected, error);
    BASIN_TRY_OR(status, release(r));
    *ranks = r;
    return BASIN_OK;
}

void basin_ranks_close(basin_ranks *ranks) {
    if (!ranks) return;
    if (!ranks->failed && !basin_ranks_barrier(ranks, NULL)) mpi_end(&ranks->mpi);
    release(ranks);
}

void basin_ranks_abort(basin_ranks *ranks, int code) {
    if (ranks) ranks->mpi.Abort(ranks->mpi.world, code);
}

/* ---- numbers and hosts ---- */

int64_t basin_ranks_rank(const basin_ranks *ranks) { return ranks ? ranks->rank : 0; }
int64_t basin_ranks_count(const basin_ranks *ranks) { return ranks ? ranks->count : 1; }
const char *basin_ranks_host(const basin_ranks *ranks) {
    return ranks ? ranks->hosts[ranks->rank] : "";
}

int64_t basin_ranks_local(const basin_ranks *ranks) {
    int64_t before = 0;
    for (int64_t i = 0; ranks && i < ranks->rank; i++)
        before += !strcmp(ranks->hosts[i], ranks->hosts[ranks->rank]);
    return before;
}

int basin_ranks_threads(const basin_ranks *ranks) { return ranks ? ranks->threads : 0; }

/* ---- failures ---- */

/* The failure of rank `from` to all. */
static basin_status spread(basin_ranks *r, basin_status mine, int64_t from, basin_error *error) {
    basin_error theirs = {0};
    if (r->rank == from && error) theirs = *error;
    theirs.status = mine;
    BASIN_TRY(basin_ranks_broadcast(r, &theirs, sizeof theirs, from, error));
    return basin_fail(error, theirs.status, "rank %lld on %s: %.400s", (long long)from,
                      r->hosts[from], theirs.text);
}

/* No rank may be left waiting: nothing is allocated here. */
basin_status basin_ranks_agree(basin_ranks *ranks, basin_status mine, basin_error *error) {
    if (!ranks || ranks->count == 1) return mine;
    int first = mine ? (int)(ranks->count - ranks->rank) : 0; /* of those that failed */
    basin_error found = {0};
    basin_status status = find_largest(ranks, &first, &found);
    if (!status && first) return spread(ranks, mine, ranks->count - first, error);
    if (status && !mine && error) *error = found;
    return mine ? mine : status;
}

bool basin_ranks_agreed(const basin_error *error) {
    int used = 0;
    return sscanf(error->text, "rank %*d on %n", &used) == 0 && used > 0;
}

/* ---- whether ranks were asked for the same ---- */

/* The line of `a` in which it first differs from `b`, and that of `b`. */
static void find_difference(const char **a, const char **b) {
    const char *x = *a, *y = *b;
    while (*x && *x == *y) {
        if (*x == '\n') *a = x + 1, *b = y + 1;
        x++, y++;
    }
}

static int line_length(const char *text) {
    enum { MAX_LENGTH = 100 };
    size_t length = strcspn(text, "\n");
    return length < MAX_LENGTH ? (int)length : MAX_LENGTH;
}

static basin_status compare(const char *mine, const char *first, const char *what,
                            basin_error *error) {
    if (!strcmp(mine, first)) return BASIN_OK;
    find_difference(&mine, &first);
    return basin_fail(
        error, BASIN_BAD_VALUE,
        "%s differ from those of rank 0: '%.*s', and there '%.*s'; they must be the same "
        "on all ranks",
        what, line_length(mine), mine, line_length(first), first);
}

basin_status basin_ranks_alike(basin_ranks *ranks, const char *text, const char *what,
                               basin_error *error) {
    uint64_t size = strlen(text) + 1;
    bool first = basin_ranks_rank(ranks) == 0;
    if (basin_ranks_count(ranks) == 1) return BASIN_OK;
    BASIN_TRY(basin_ranks_broadcast(ranks, &size, sizeof size, 0, error));
    BASIN_FREE_AT_EXIT char *copy = NULL;
    basin_status status = BASIN_NEW_RAW(&copy, size, "a comparison of ranks", error);
    if (copy && first) memcpy(copy, text, size);
    BASIN_TRY(basin_ranks_agree(ranks, status, error));
    status = basin_ranks_broadcast(ranks, copy, size, 0, error);
    if (!status) status = compare(text, copy, what, error);
    return basin_ranks_agree(ranks, status, error);
}

/* ---- sums of few numbers ---- */

/* All numbers have 8 bytes; `wide`: they are doubles, else integers. */
static basin_status sum(basin_ranks *ranks, void *values, int64_t count, bool wide,
                        basin_error *error) {
    BASIN_FREE_AT_EXIT int64_t *all = NULL;
    int64_t n = basin_ranks_count(ranks), *to = values;
    size_t bytes = (size_t)count * sizeof *all;
    if (n == 1) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&all, n * count, "a sum", error));
    BASIN_TRY(basin_ranks_gather(ranks, all, values, bytes, error));
    memcpy(values, all, bytes);
    for (int64_t i = count; i < n * count; i++)
        if (wide)
            ((double *)values)[i % count] += ((double *)all)[i];
        else
            to[i % count] += all[i];
    return BASIN_OK;
}

basin_status basin_ranks_sum(basin_ranks *ranks, double *values, int64_t count,
                             basin_error *error) {
    return sum(ranks, values, count, true, error);
}

basin_status basin_ranks_sum_integers(basin_ranks *ranks, int64_t *values, int64_t count,
                                      basin_error *error) {
    return sum(ranks, values, count, false, error);
}

basin_status basin_ranks_any(basin_ranks *ranks, bool *value, basin_error *error) {
    int any = *value;
    if (basin_ranks_count(ranks) == 1) return BASIN_OK;
    BASIN_TRY(find_largest(ranks, &any, error));
    *value = any;
    return BASIN_OK;
}
