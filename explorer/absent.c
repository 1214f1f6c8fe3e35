/* What libc has on Linux and a page has not: one thread runs here. */
#define _GNU_SOURCE
#include <sched.h>

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set) {
    (void)process, (void)size, (void)set;
    return -1;
}

int __sched_cpucount(size_t size, const cpu_set_t *set) {
    (void)size, (void)set;
    return 1;
}

/* Eigenvectors of graphs, which nothing in the page asks for. */
#include <stdlib.h>
void dsyevr_(void) { abort(); }
void dsaupd_(void) { abort(); }
void dseupd_(void) { abort(); }
