/* `basin --version` comes at once: it opens no library and starts no thread to tell what is there.
 */
#include <sys/resource.h>

#include "cli/program.h"

#include "base/library.h"

/* The loader's own report, in one file a process. */
TEST(opens_nothing) {
    char line[1000], path[PATH_TEXT];
    static char text[262144];
    snprintf(line, sizeof line,
             "cd '%s' && LD_DEBUG=files LD_DEBUG_OUTPUT=\"$PWD\"/loaded %s --version >.out && "
             "cat loaded.* >.err",
             (const char *)*state, BASIN_PROGRAM);
    if (system(line) != 0) skip(); /* a loader that does not report */
    slurp(text, sizeof text, folder_path(path, state, ".err"));
    assert_contains(text, "libz.so");
    for (int i = 0; basin_library_name(i); i++)
        if (strstr(text, basin_library_file(i))) fail_msg("%s was opened", basin_library_name(i));
    assert_null(strstr(text, "libcuda"));
}

/* Processor time, which others on the machine hardly move: 2 ms of it, against 60 before. */
TEST(starts_at_once) {
    struct rusage before, after;
    getrusage(RUSAGE_CHILDREN, &before);
    run_ok(state, "--version");
    getrusage(RUSAGE_CHILDREN, &after);
    double spent = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                   (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                   1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
                   1e-6 * (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
#ifndef __SANITIZE_ADDRESS__
    if (!strchr(&BASIN_PROGRAM[1], ' ')) assert_true(spent < 0.06); /* not under valgrind */
#endif
    assert_true(spent > 0);
}

int main(void) { return tests_run(folder_new, program_teardown); }
