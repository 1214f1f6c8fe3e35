/* Ranks meet and part; see include/basin/tasks/ranks.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ranks/host.h"
#include "ranks/inside.h"

/* ---- meeting ---- */

static basin_status take_options(basin_ranks_options *to, const basin_ranks_options *options,
                                 basin_error *error) {
    *to = (basin_ranks_options){0};
    if (!options) return BASIN_OK;
    if (options->size < sizeof options->size)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the size of basin_ranks_options is %zu, wanted "
                          "sizeof(basin_ranks_options)",
                          options->size);
    memcpy(to, options, options->size < sizeof *to ? options->size : sizeof *to);
    return BASIN_OK;
}

/* A launcher whose MPI is another one starts processes that know nothing of each other. */
static basin_status count_ranks(basin_ranks *r, int64_t expected, basin_error *error) {
    int rank = 0, count = 0;
    r->mpi.Comm_rank(r->mpi.world, &rank);
    r->mpi.Comm_size(r->mpi.world, &count);
    r->rank = rank;
    r->count = count;
    if (count == expected) return BASIN_OK;
    return basin_fail(error, BASIN_UNSUPPORTED,
                      "the launcher started %lld ranks and %s sees %d: wanted the launcher of the "
                      "same MPI (srun: mpi=pmix or mpi=pmi2), or BASIN_MPI that names the library",
                      (long long)expected, r->mpi.name, count);
}

static basin_status name_hosts(basin_ranks *r, basin_error *error) {
    char host[BASIN_HOST_TEXT] = "";
    r->hosts = basin_array_new((size_t)r->count, sizeof *r->hosts);
    if (!r->hosts) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for ranks");
    basin_host_name(host, sizeof host);
    return basin_ranks_gather(r, r->hosts, host, sizeof host, error);
}

static bool meet(const basin_processor_set *a, const basin_processor_set *b) {
    for (int i = 0; i < BASIN_PROCESSOR_WORDS; i++)
        if (a->word[i] & b->word[i]) return true;
    return false;
}

/* Ranks on one host that may run on the same processors share them. */
static basin_status share_processors(basin_ranks *r, basin_error *error) {
    basin_processor_set mine, *all = basin_array_new((size_t)r->count, sizeof *all);
    int others = 0, processors = 0;
    if (!all) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for ranks");
    basin_processor_set_find(&mine);
    basin_status status = basin_ranks_gather(r, all, &mine, sizeof mine, error);
    for (int64_t i = 0; i < r->count && !status; i++)
        others += !strcmp(r->hosts[i], r->hosts[r->rank]) && meet(&mine, &all[i]);
    free(all);
    for (int i = 0; i < BASIN_PROCESSOR_WORDS; i++)
        processors += __builtin_popcountll(mine.word[i]);
    int share = others ? processors / others : 1;
    r->threads = share > 1 ? share : 1;
    return status;
}

static basin_status begin_watch(basin_ranks *r, const basin_ranks_options *options,
                                basin_error *error) {
    basin_lifeline_address address = {0};
    basin_lifeline_spec spec = {.rank = r->rank,
                                .count = r->count,
                                .hosts = (const char(*)[BASIN_HOST_TEXT])r->hosts,
                                .options = *options};
    basin_lifeline *line;
    if (r->count == 1) return BASIN_OK;
    basin_status status = basin_lifeline_new(&line, &address, &spec, error);
    status = basin_ranks_agree(r, status, error);
    if (!status) status = basin_ranks_broadcast(r, &address, sizeof address, 0, error);
    if (!status) status = basin_lifeline_connect(line, &address, error);
    status = basin_ranks_agree(r, status, error);
    if (!status) status = basin_lifeline_start(line, &address, error);
    if (status)
        basin_lifeline_free(line);
    else
        r->line = line;
    return status;
}

basin_status basin_ranks_open(basin_ranks **ranks, const basin_ranks_options *options,
                              basin_error *error) {
    int64_t expected;
    basin_ranks_options taken;
    *ranks = NULL;
    basin_status status = take_options(&taken, options, error);
    if (status || !basin_ranks_launched(NULL, &expected)) return status;
    basin_ranks *r = calloc(1, sizeof *r);
    if (!r) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for ranks");
    status = basin_mpi_begin(&r->mpi, getenv("BASIN_MPI"), error);
    if (status && expected == 1) { /* nobody to talk to */
        free(r);
        return BASIN_OK;
    }
    if (!status) status = count_ranks(r, expected, error);
    if (!status) status = name_hosts(r, error);
    if (!status) status = share_processors(r, error);
    if (!status) status = begin_watch(r, &taken, error);
    if (status) {
        free(r->hosts);
        free(r);
    } else
        *ranks = r;
    return status;
}

void basin_ranks_close(basin_ranks *ranks) {
    if (!ranks) return;
    bool whole = !basin_ranks_barrier(ranks, NULL);
    basin_lifeline_free(ranks->line);
    if (whole) basin_mpi_end(&ranks->mpi);
    free(ranks->hosts);
    free(ranks);
}

/* ---- who is who ---- */

int64_t basin_ranks_rank(const basin_ranks *ranks) { return ranks ? ranks->rank : 0; }
int64_t basin_ranks_count(const basin_ranks *ranks) { return ranks ? ranks->count : 1; }
const char *basin_ranks_host(const basin_ranks *ranks) {
    return ranks ? ranks->hosts[ranks->rank] : "";
}
const char *basin_ranks_engine(const basin_ranks *ranks) { return ranks ? ranks->mpi.name : ""; }

int64_t basin_ranks_local(const basin_ranks *ranks) {
    int64_t before = 0;
    for (int64_t i = 0; ranks && i < ranks->rank; i++)
        before += !strcmp(ranks->hosts[i], ranks->hosts[ranks->rank]);
    return before;
}

int basin_ranks_threads(const basin_ranks *ranks) { return ranks ? ranks->threads : 0; }

bool basin_ranks_speaks(const basin_ranks *ranks) {
    if (!ranks || ranks->rank == 0) return true;
    return ranks->rank == 1 && ranks->line && basin_lifeline_headless(ranks->line);
}

/* ---- failures ---- */

basin_status basin_ranks_check(const basin_ranks *ranks, basin_error *error) {
    if (!ranks || !basin_lifeline_broken(ranks->line)) return BASIN_OK;
    return basin_lifeline_why(ranks->line, error);
}

/* The failure of rank `from` to all. */
static basin_status spread(basin_ranks *r, basin_status worst, int64_t from, basin_error *error) {
    basin_error theirs = {.status = worst};
    if (r->rank == from && error) theirs = *error;
    basin_status status = basin_ranks_broadcast(r, &theirs, sizeof theirs, from, error);
    if (status) return status;
    return basin_fail(error, theirs.status ? theirs.status : worst, "rank %lld on %s: %.400s",
                      (long long)from, r->hosts[from], theirs.text);
}

basin_status basin_ranks_agree(basin_ranks *ranks, basin_status mine, basin_error *error) {
    if (!ranks || ranks->count == 1) return mine;
    int32_t own = (int32_t)mine, *all = basin_array_new((size_t)ranks->count, sizeof *all);
    if (!all) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for ranks");
    basin_error found = {0};
    basin_status status = basin_ranks_gather(ranks, all, &own, sizeof own, &found);
    int64_t from = 0;
    while (!status && from < ranks->count && !all[from]) from++;
    bool failed = !status && from < ranks->count;
    basin_status worst = failed ? (basin_status)all[from] : BASIN_OK;
    free(all);
    if (failed) return spread(ranks, worst, from, error);
    if (status && mine) return mine; /* the others learn of it by other means */
    if (status && error) *error = found;
    return status;
}

void basin_ranks_fail(basin_ranks *ranks, const basin_error *error) {
    if (ranks && ranks->line) basin_lifeline_fail(ranks->line, error);
}
