/* What a team asks of the operating system. Linux has a system call for each; elsewhere threads of
 * POSIX do. */
#ifndef BASIN_BASE_TEAM_THREAD_H
#define BASIN_BASE_TEAM_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Sleeps while *word is `value`; may return for no reason. Who changes it wakes one sleeper. */
void basin_thread_sleep(_Atomic uint32_t *word, uint32_t value);
void basin_thread_wake(_Atomic uint32_t *word);

/* How often this thread had to make room for another; 0 where nobody counts. */
long basin_thread_preempted(void);

/* Starts a thread that ends with the process. It takes no signals: they are the host program's. */
bool basin_thread_start(void *(*run)(void *), void *argument);

/* Calls `forget` in children of a fork, where only the thread that forked is left. */
void basin_thread_after_fork(void (*forget)(void));

/* Processors that this process may run on, at least 1. */
long basin_thread_processors(void);

#endif
