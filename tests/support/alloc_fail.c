/* Allocation functions that can be told to fail, and the sweep over them; see alloc_fail.h.
 *
 * Live allocations are kept in a set of addresses, not a counter: free also gets what shared
 * libraries allocated, which was never counted. */
#include "support/alloc_fail.h"
#include "support/test.h"

#include <pthread.h>
#include <stdbool.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *address);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void __wrap_free(void *address);

enum { SLOTS = 1 << 20 };

static struct {
    pthread_mutex_t lock;
    bool counting, persistent;
    long made;    /* allocations since the run began */
    long failing; /* the one that fails, from 1; 0 for none */
    long hits;    /* how many have failed */
    long live;
    uintptr_t set[SLOTS]; /* open addressing, 0 is free */
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t home(uintptr_t address) {
    return (size_t)((address >> 4) * 0x9E3779B97F4A7C15u >> 20) % SLOTS;
}

static void remember(void *pointer) {
    uintptr_t address = (uintptr_t)pointer;
    if (!address) return;
    pthread_mutex_lock(&heap.lock);
    if (heap.counting) {
        if (heap.live > SLOTS / 2) abort();
        size_t i = home(address);
        while (heap.set[i]) i = (i + 1) % SLOTS;
        heap.set[i] = address;
        heap.live++;
    }
    pthread_mutex_unlock(&heap.lock);
}

/* Removes an address and moves up those behind it that its slot had kept from their home. */
static void forget(void *pointer) {
    uintptr_t address = (uintptr_t)pointer;
    if (!address) return;
    pthread_mutex_lock(&heap.lock);
    size_t i = home(address);
    while (heap.set[i] && heap.set[i] != address) i = (i + 1) % SLOTS;
    if (heap.set[i]) {
        heap.live--;
        for (size_t j = (i + 1) % SLOTS; heap.set[j]; j = (j + 1) % SLOTS) {
            size_t from_home = (j - home(heap.set[j]) + SLOTS) % SLOTS;
            if (from_home < (j - i + SLOTS) % SLOTS) continue;
            heap.set[i] = heap.set[j];
            i = j;
        }
        heap.set[i] = 0;
    }
    pthread_mutex_unlock(&heap.lock);
}

static bool refused(void) {
    pthread_mutex_lock(&heap.lock);
    bool now = false;
    if (heap.counting) {
        heap.made++;
        now = heap.failing &&
              (heap.made == heap.failing || (heap.persistent && heap.made > heap.failing));
        heap.hits += now;
    }
    pthread_mutex_unlock(&heap.lock);
    return now;
}

void *__wrap_malloc(size_t bytes) {
    if (refused()) return NULL;
    void *made = __real_malloc(bytes);
    remember(made);
    return made;
}

void *__wrap_calloc(size_t count, size_t bytes) {
    if (refused()) return NULL;
    void *made = __real_calloc(count, bytes);
    remember(made);
    return made;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    if (refused()) return NULL;
    void *made = __real_aligned_alloc(alignment, bytes);
    remember(made);
    return made;
}

/* The old address is forgotten first: another thread may be given it at once. */
void *__wrap_realloc(void *old, size_t bytes) {
    if (refused()) return NULL;
    forget(old);
    void *made = __real_realloc(old, bytes);
    remember(made ? made : old);
    return made;
}

void __wrap_free(void *address) {
    forget(address);
    __real_free(address);
}

/* One run; *hit tells whether an allocation failed in it. */
static basin_status run_once(bool *hit, long *leaked, long *made, alloc_scenario *run,
                             void *context, long failing, bool persistent) {
    heap.failing = failing;
    heap.persistent = persistent;
    heap.made = heap.hits = 0;
    long before = heap.live;
    heap.counting = true;
    basin_status status = run(context);
    heap.counting = false;
    *hit = heap.hits > 0;
    *leaked = heap.live - before;
    *made = heap.made;
    return status;
}

/* What is wrong with a run, or NULL. */
static const char *verdict(basin_status status, bool hit, long leaked) {
    if (leaked) return "something leaked";
    if (hit && status == BASIN_OK) return "the failure went unnoticed";
    if (hit && status != BASIN_NO_MEMORY) return "the status is not 'out of memory'";
    if (!hit && status != BASIN_OK) return "the scenario failed without one";
    return NULL;
}

/* The first half of `points` all, the others evenly apart; 0: one by one. */
static long next_point(long n, long points, long most) {
    if (!points || n < points / 2 || most <= points) return n + 1;
    long apart = (most - points / 2) / (points - points / 2);
    return n + (apart > 1 ? apart : 1);
}

static long check(char text[ALLOC_FAIL_TEXT], alloc_scenario *run, void *context, long points) {
    bool hit = true;
    long leaked, made, most = 0, last = 0;
    for (long n = 0; hit; last = n, n = next_point(n, points, most)) {
        for (int persistent = 0; persistent <= 1; persistent++) {
            basin_status status = run_once(&hit, &leaked, &made, run, context, n, persistent);
            const char *wrong = verdict(status, hit, leaked);
            if (n == 0) most = made;
            if (!wrong) continue;
            snprintf(text, ALLOC_FAIL_TEXT,
                     "allocation %ld of %ld failing%s: %s (status: %d, leaked: %ld)", n, most,
                     persistent ? ", and all after it" : "", wrong, (int)status, leaked);
            return -1;
        }
        if (n == 0)
            hit = true; /* the run without failures */
        else if (!hit)
            return points ? most : last;
    }
    return 0;
}

long alloc_fail_check(char text[ALLOC_FAIL_TEXT], alloc_scenario *run, void *context) {
    return check(text, run, context, 0);
}

long alloc_fail_sample(alloc_scenario *run, void *context, long points) {
    char text[ALLOC_FAIL_TEXT];
    long made = check(text, run, context, getenv("BASIN_TEST_ALLOC_ALL") ? 0 : points);
    if (made < 0) fail_msg("%s", text);
    return made;
}

long alloc_fail_sweep(alloc_scenario *run, void *context) {
    char text[ALLOC_FAIL_TEXT];
    long made = alloc_fail_check(text, run, context);
    if (made < 0) fail_msg("%s", text);
    return made;
}
