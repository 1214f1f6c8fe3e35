/* Opening the ranks, their numbers and hosts, agreement and small sums; see
 * include/basin/tasks/ranks.h. */
#define _GNU_SOURCE
#include <sched.h>
#include <unistd.h>

#include "base/number.h"
#include "base/try.h"
#include "tasks/common/ranks/mpi.h"

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
    char host[BASIN_HOST_TEXT] = "";
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
    basin_status status = basin_mpi_begin(&r->mpi, getenv("BASIN_MPI"), error);
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
    if (!ranks->failed && !basin_ranks_barrier(ranks, NULL)) basin_mpi_end(&ranks->mpi);
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
    basin_status status = basin_ranks_largest(ranks, &first, &found);
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
    BASIN_TRY(basin_ranks_largest(ranks, &any, error));
    *value = any;
    return BASIN_OK;
}
