/* Searches and attempts over a range, shared by threads; see parallel.h. */

#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct finding {
    basin_parallel_search *search;
    const void *context;
    _Atomic int64_t *min;
} finding;

static void find_some(const void *context, int64_t first, int64_t last) {
    const finding *f = context;
    int64_t min = atomic_load_explicit(f->min, memory_order_relaxed);
    if (first >= min) return;
    int64_t found = f->search(f->context, first, last);
    while (found < last && found < min &&
           !atomic_compare_exchange_weak_explicit(f->min, &min, found, memory_order_relaxed,
                                                  memory_order_relaxed)) {}
}

int64_t basin_parallel_find(basin_parallel_search *search, const void *context, int64_t count,
                            int64_t grain) {
    _Atomic int64_t min = count;
    finding f = {search, context, &min};
    basin_parallel_for(find_some, &f, count, grain, 0);
    return min;
}

typedef struct trying {
    basin_parallel_attempt *attempt;
    const void *context;
    pthread_mutex_t *lock; /* of these two */
    int64_t *failed;       /* the first item that did */
    basin_error *error;    /* and why */
} trying;

static void try_some(const void *context, int64_t first, int64_t last) {
    const trying *t = context;
    for (int64_t i = first; i < last; i++) {
        basin_error own;
        if (!t->attempt(t->context, i, &own)) continue;
        pthread_mutex_lock(t->lock);
        if (i < *t->failed) *t->failed = i, *t->error = own;
        pthread_mutex_unlock(t->lock);
    }
}

basin_status basin_parallel_try(basin_parallel_attempt *attempt, const void *context, int64_t count,
                                int64_t grain, basin_error *error) {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int64_t failed = count;
    basin_error own;
    trying t = {attempt, context, &lock, &failed, &own};
    basin_parallel_for(try_some, &t, count, grain, 0);
    if (failed == count) return BASIN_OK;
    if (error) *error = own;
    return own.status;
}
