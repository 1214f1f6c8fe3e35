/* The fast backend against the reference, operation by operation, once per instruction set this
 * processor has. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/backend/device.h"
#include "engine/backend/operations.h"

static basin_backend *open_cpu(int round) {
    static const int threads[] = {1, 2, 5};
    basin_backend *backend;
    assert_int_equal(basin_backend_open_cpu(&backend, threads[round], NULL), BASIN_OK);
    return backend;
}

static int run_all(void) {
    duel_rival.open = open_cpu;
    duel_rival.close = basin_backend_close;
    duel_rival.rounds = 3;
    return tests_run(NULL, NULL);
}

/* The instruction set is chosen once in a process, so each has its own. */
int main(void) {
    int failures = 0;
    for (int isa = 0; isa < BASIN_ISA_COUNT; isa++) {
        int status = 0;
        if (!basin_isa_available((basin_isa)isa)) continue;
        printf("instruction set %s\n", basin_isa_name((basin_isa)isa));
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            setenv("BASIN_ISA", basin_isa_name((basin_isa)isa), 1);
            exit(run_all() != 0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) failures++;
    }
    return failures;
}
