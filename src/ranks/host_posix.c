/* The machine that this process runs on; see host.h. Only Linux says which processors a process may
 * use; elsewhere it may use all. */
#ifdef __linux__
#define _GNU_SOURCE
#include <sched.h>
#endif
#include <unistd.h>

#include "ranks/host.h"

static void add(basin_processor_set *to, int processor) {
    to->word[processor / 64] |= UINT64_C(1) << processor % 64;
}

void basin_processor_set_find(basin_processor_set *mine) {
    enum { MOST = 64 * BASIN_PROCESSOR_WORDS };
    *mine = (basin_processor_set){0};
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (int i = 0; i < MOST && i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, &set)) add(mine, i);
        return;
    }
#endif
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; i < MOST && i < count; i++) add(mine, i);
}

void basin_host_name(char *name, size_t size) {
    if (gethostname(name, size)) name[0] = 0;
    name[size - 1] = 0;
}
