/* What a team asks of the operating system; see thread.h. */
#define _GNU_SOURCE
#include "base/team/thread.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

enum { STACK = 4 << 20 }; /* bytes; musl's own choice would be too few */

#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { WAIT_PRIVATE = 128, WAKE_PRIVATE = 129 }; /* of the futex call; no header of libc has them */

void basin_thread_sleep(_Atomic uint32_t *word, uint32_t value) {
    syscall(SYS_futex, word, WAIT_PRIVATE, value, NULL, NULL, 0);
}

void basin_thread_wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, WAKE_PRIVATE, 1, NULL, NULL, 0);
}

long basin_thread_preempted(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
}

long basin_thread_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    return sysconf(_SC_NPROCESSORS_ONLN); /* more processors than a cpu_set_t has */
}
#else
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void basin_thread_sleep(_Atomic uint32_t *word, uint32_t value) {
    pthread_mutex_lock(&lock);
    while (atomic_load(word) == value) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void basin_thread_wake(_Atomic uint32_t *word) {
    (void)word;
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

long basin_thread_preempted(void) { return 0; }

long basin_thread_processors(void) { return sysconf(_SC_NPROCESSORS_ONLN); }
#endif

void basin_thread_after_fork(void (*forget)(void)) { pthread_atfork(NULL, NULL, forget); }

/* Signals that others send are for the program's own threads. Those that a thread brings upon
 * itself must reach its handlers: blocked, they end the process, as where a mapped file shrinks. */
static bool start(const pthread_attr_t *attr, void *(*run)(void *), void *argument) {
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
    pthread_t thread;
    sigset_t others, before;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&others, own[i]);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    bool good = pthread_create(&thread, attr, run, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return good;
}

bool basin_thread_start(void *(*run)(void *), void *argument) {
    pthread_attr_t attr;
    if (pthread_attr_init(&attr)) return false;
    pthread_attr_setstacksize(&attr, STACK);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    bool good = start(&attr, run, argument);
    pthread_attr_destroy(&attr);
    return good;
}
