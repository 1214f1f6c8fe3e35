/* The program as several ranks, under mpirun. */
#ifndef TESTS_CLI_RANKS_H
#define TESTS_CLI_RANKS_H

#include <stdbool.h>
#include <time.h>

#include "program/kill.h"

/* Words for Open MPI by its environment: root may run it, more ranks than cores, none bound to one.
 * What MPI itself leaks is no matter of ours. */
#define MPI_WORDS                                                                                  \
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "                                   \
    "OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none "                 \
    "ASAN_OPTIONS=\"$ASAN_OPTIONS:detect_leaks=0\" "

/* Ranks of one host start sooner without the parts of Open MPI that look for others, and leave
 * their core to other tests while they wait. */
#define MPI_HERE                                                                                   \
    "OMPI_MCA_plm=isolated OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader "                              \
    "OMPI_MCA_mpi_yield_when_idle=1 "

/* Of what can be measured here; valgrind would watch MPI. Returns 77, which CTest shows as skipped.
 */
static inline int ranks_absent(void) {
    if (!strstr(BASIN_PROGRAM, "valgrind") && system("command -v mpirun >/dev/null") == 0) return 0;
    printf("skipped: no mpirun here (or valgrind, which would watch MPI)\n");
    return 77;
}

static inline double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* `mpirun WORDS` in the folder of `state`, where WORDS say how many of which program, PROGRAM being
 * ours. All are killed after `seconds`. */
static inline const program *run_mpi_for(void **state, double seconds, const char *words) {
    static program result;
    char line[8000];
    snprintf(line, sizeof line, "mpirun %s", words);
    result.code = run_for(state, seconds,
                          "export PROGRAM='" BASIN_PROGRAM "' " MPI_WORDS MPI_HERE "&&", line);
    slurp(result.out, sizeof result.out, folder_path(state, ".out"));
    slurp(result.err, sizeof result.err, folder_path(state, ".err"));
    return &result;
}

enum { RANKS_SECONDS = 120 }; /* nothing may hang */

static inline const program *run_mpi(void **state, const char *format, ...) {
    char words[5000];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    return run_mpi_for(state, RANKS_SECONDS, words);
}

/* `basin ARGUMENTS` as `n` ranks. */
static inline const program *run_ranks(void **state, int n, const char *arguments) {
    return run_mpi(state, "-n %d $PROGRAM %s", n, arguments);
}

/* The same, and rank `victim` is killed without warning, so many milliseconds after the run has
 * first saved `output`.checkpoint; before ranks have met, the launcher alone watches over them. */
static inline const program *run_and_kill_rank(void **state, int n, int victim,
                                               unsigned milliseconds, const char *output,
                                               const char *arguments) {
    char before[2000] = "", after[2000] = "", line[PATH_TEXT + 40];
    snprintf(line, sizeof line, "touch '%s/stamp'; sleep 0.1", (const char *)*state);
    assert_int_equal(system(line), 0);
    if (victim > 0) snprintf(before, sizeof before, "-n %d $PROGRAM %s : ", victim, arguments);
    if (victim + 1 < n)
        snprintf(after, sizeof after, " : -n %d $PROGRAM %s", n - victim - 1, arguments);
    return run_mpi(state,
                   "%s-n 1 sh -c '(while [ ! %s.checkpoint -nt stamp ]; do kill -0 $$ || exit; "
                   "sleep 0.05; done; sleep %u.%03u; kill -KILL $$) 2>/dev/null & exec $PROGRAM "
                   "%s'%s",
                   before, output, milliseconds / 1000, milliseconds % 1000, arguments, after);
}

/* How many lines begin with "basin: ". */
static inline int basin_lines(const char *text) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, "basin: ")); at++)
        count += at == text || at[-1] == '\n';
    return count;
}

#endif
