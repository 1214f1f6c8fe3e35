/* The number of threads that a process should have; see team.h. */
#define _GNU_SOURCE
#include "engine/core/team/team.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PROCESSORS = 4096, PATH = 512 };

static int clamp(long count) {
    return count < 1 ? 1 : count > MAX_PROCESSORS ? MAX_PROCESSORS : (int)count;
}

/* OMP_NUM_THREADS may be a list, one number per level; the first counts. 0: not set or not a
 * number. */
static int asked_for(void) {
    const char *text = getenv("OMP_NUM_THREADS");
    long count = text ? strtol(text, NULL, 10) : 0;
    return count > 0 ? clamp(count) : 0;
}

/* "200000 100000" in cpu.max means two processors; "max 100000" means no limit. */
static int granted_in(const char *folder) {
    char path[PATH + 64], text[64] = "", *rest = text;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder);
    FILE *file = fopen(path, "re");
    bool read = file && fgets(text, sizeof text, file);
    if (file) fclose(file);
    long quota = read ? strtol(text, &rest, 10) : 0, period = strtol(rest, NULL, 10);
    return quota > 0 && period > 0 ? clamp((quota + period - 1) / period) : MAX_PROCESSORS;
}

/* Version 2 of control groups: "0::/folder" is ours; the limits of all parent folders apply as
 * well. */
static int granted(void) {
    char line[PATH] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file) && strncmp(line, "0::", 3) != 0) line[0] = 0;
    if (file) fclose(file);
    if (strncmp(line, "0::", 3) != 0) return MAX_PROCESSORS;
    char *folder = line + 3;
    folder[strcspn(folder, "\n")] = 0;
    int min = granted_in("");
    for (char *slash; *folder && (slash = strrchr(folder, '/')); *slash = 0) {
        int here = granted_in(folder);
        if (here < min) min = here;
    }
    return min;
}

long basin_processors_here(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    return sysconf(_SC_NPROCESSORS_ONLN); /* more processors than a cpu_set_t has */
}

static _Atomic int known;

void basin_processors_set(int count) { atomic_store(&known, count); }

int basin_thread_count(void) {
    int count = atomic_load_explicit(&known, memory_order_relaxed);
    if (count > 0) return count;
    count = asked_for();
    if (count == 0) {
        int limit = granted();
        count = clamp(basin_processors_here());
        if (limit < count) count = limit;
    }
    atomic_store_explicit(&known, count, memory_order_relaxed);
    return count;
}
