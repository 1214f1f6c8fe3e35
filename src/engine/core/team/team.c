/* Loops shared by threads; see team.h.
 *
 * A loop is cut into pieces and the pieces into one range per place. A thread takes the pieces of
 * its range first, so that it works on the same rows in the next loop, then those of others. A
 * range is one word, the number of its loop and how many pieces are left: taking a piece compares
 * and swaps it. So a thread that slept through a loop takes nothing of it, and what it read of the
 * loop before it took a piece belongs to the piece: a loop ends only when all its pieces are
 * done. */
#define _GNU_SOURCE
#include "engine/core/team/team.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- what a team asks of Linux ---- */

enum { STACK = 4 << 20 };                        /* bytes; musl's own choice would be too few */
enum { WAIT_PRIVATE = 128, WAKE_PRIVATE = 129 }; /* of the futex call; no header of libc has them */

/* Sleeps while *word is `value`; may return for no reason. Who changes it wakes one sleeper. */
static void sleep_while(_Atomic uint32_t *word, uint32_t value) {
    syscall(SYS_futex, word, WAIT_PRIVATE, value, NULL, NULL, 0);
}
static void wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* How often this thread had to make room for another; 0 where nobody counts. */
static long times_preempted(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
}

/* Signals that others send are for the program's own threads. Those that a thread brings upon
 * itself must reach its handlers: blocked, they end the process, as where a mapped file shrinks. */
static bool create_thread(const pthread_attr_t *attr, void *(*run)(void *), void *argument) {
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

/* Starts a thread that ends with the process. */
static bool start_thread(void *(*run)(void *), void *argument) {
    pthread_attr_t attr;
    if (pthread_attr_init(&attr)) return false;
    pthread_attr_setstacksize(&attr, STACK);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    bool good = create_thread(&attr, run, argument);
    pthread_attr_destroy(&attr);
    return good;
}

enum {
    PLACES = 512,  /* threads of a team at most */
    TEAMS = 8,     /* callers that have teams at the same time; others work alone */
    PIECES = 8,    /* pieces per thread by default */
    LOOKS = 32,    /* pauses between two questions to the clock */
    PREEMPTED = 2, /* times per WINDOW: other processes need this core */
    MAX_PIECES = 1 << 30,
};

static const double SPIN = 200e-6; /* seconds: longer than most gaps between loops of a step */
static const double SHORT_SPIN =
    30e-6; /* where other processes need the core: less than it takes to wake */
static const double WINDOW = 50e-3; /* a busy neighbour preempts about every 6 ms */
static const double POLITE = 0.5;   /* so long the short spin must do after that */

/* The state of one place of a team, on a separate cache line. */
typedef struct seat {
    _Alignas(64) _Atomic uint64_t range; /* number of the loop << 32 | pieces left */
    _Atomic uint32_t asleep;             /* 1: its thread waits to be woken */
} seat;

typedef struct team {
    _Alignas(64) atomic_flag taken; /* by a caller */
    int workers;                    /* threads that were started; places 1 .. workers */
    uint32_t number;                /* of the loop */
    /* The loop. Late threads may read these while the next one is written. */
    _Atomic(basin_parallel_body *) body;
    _Atomic(const void *) context;
    _Atomic int64_t count, grain;
    _Atomic int64_t pieces;
    _Atomic int ranges;
    _Alignas(64) _Atomic uint32_t signal; /* changes with each loop */
    _Alignas(64) _Atomic uint32_t left;   /* pieces that are not done */
    _Atomic uint32_t caller_asleep;
    seat at[PLACES];
} team;

/* One set of threads for the process, as many as it has cores, whoever calls: engines that come and
 * go should not start and end threads, nor ten open models have ten times as many. */
static team teams[TEAMS];
static _Atomic int started;         /* threads in all teams */
static _Atomic double polite_until; /* basin_clock */
static _Thread_local bool inside;   /* a body runs on this thread, */
static _Thread_local int place;     /* in this place */

int basin_parallel_place(void) { return place; }

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Where this thread is preempted again and again, other processes need its core: spinning would
 * then slow them and our own threads down. */
static void watch_neighbours(double now) {
    static _Thread_local double since, last;
    static _Thread_local long before;
    if (now - last < 1e-3) return;
    last = now;
    long count = times_preempted();
    double windows = (now - since) / WINDOW;
    bool often = (double)(count - before) >= PREEMPTED * (windows > 1 ? windows : 1);
    if (often) atomic_store_explicit(&polite_until, now + POLITE, memory_order_relaxed);
    if (often || windows > 1) since = now, before = count;
}

bool basin_team_contended(void) {
    double until = atomic_load_explicit(&polite_until, memory_order_relaxed);
    return until > 0 && basin_clock() < until;
}

/* Seconds to spin from `now` on. */
static double patience(double now) {
    double until = atomic_load_explicit(&polite_until, memory_order_relaxed);
    return now < until ? SHORT_SPIN : SPIN;
}

/* Waits for *word to become another than `value`; false: in vain. `since` is when waiting began; 0:
 * now. */
static bool spin_while(_Atomic uint32_t *word, uint32_t value, double *since) {
    for (int look = 1;; look++) {
        if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
        pause_briefly();
        if (look % LOOKS) continue;
        double now = basin_clock();
        if (*since == 0) *since = now;
        if (look == LOOKS) watch_neighbours(now);
        if (now - *since > patience(now)) return false;
    }
}

/* A piece of a loop. */
typedef struct piece {
    basin_parallel_body *body;
    const void *context;
    int64_t first, last; /* items */
} piece;

/* Takes a piece of range r for the thread at `own`, if one is left and the loop has that place. */
static bool take_piece(piece *p, team *t, int r, int own) {
    _Atomic uint64_t *range = &t->at[r].range;
    uint64_t word = atomic_load_explicit(range, memory_order_acquire);
    while ((uint32_t)word > 0) {
        int64_t pieces = atomic_load_explicit(&t->pieces, memory_order_relaxed);
        int64_t ranges = atomic_load_explicit(&t->ranges, memory_order_relaxed);
        int64_t count = atomic_load_explicit(&t->count, memory_order_relaxed);
        int64_t grain = atomic_load_explicit(&t->grain, memory_order_relaxed);
        p->body = atomic_load_explicit(&t->body, memory_order_relaxed);
        p->context = atomic_load_explicit(&t->context, memory_order_relaxed);
        p->first = ((r + 1) * pieces / ranges - (uint32_t)word) * grain;
        p->last = p->first + grain < count ? p->first + grain : count;
        if (own >= ranges) return false;
        if (atomic_compare_exchange_weak_explicit(range, &word, word - 1, memory_order_acq_rel,
                                                  memory_order_acquire))
            return true;
    }
    return false;
}

/* Does what is left of the loop. Returns how many pieces that was. */
static uint32_t work(team *t, int own) {
    uint32_t done = 0;
    int ranges = atomic_load_explicit(&t->ranges, memory_order_relaxed);
    for (int i = 0; i < ranges; i++) {
        int r = own + i < ranges ? own + i : own + i - ranges;
        for (piece p; r >= 0 && take_piece(&p, t, r, own); done++)
            p.body(p.context, p.first, p.last);
    }
    return done;
}

static void report(team *t, uint32_t done) {
    if (done && atomic_fetch_sub(&t->left, done) == done && atomic_load(&t->caller_asleep))
        wake(&t->left);
}

/* Threads wake each other along a tree, so that no one has many to wake. */
static void wake_next(team *t, int own) {
    int ranges = atomic_load_explicit(&t->ranges, memory_order_relaxed);
    for (int p = 2 * own + 1; p <= 2 * own + 2 && p < ranges; p++)
        if (atomic_load(&t->at[p].asleep) && atomic_exchange(&t->at[p].asleep, 0))
            wake(&t->at[p].asleep);
}

/* Loops that have no work for a place do not keep its thread from sleeping. */
static void await_signal(team *t, seat *own, uint32_t seen, double *idle_since) {
    if (spin_while(&t->signal, seen, idle_since)) return;
    *idle_since = 0;
    atomic_store(&own->asleep, 1);
    if (atomic_load(&t->signal) != seen) atomic_store(&own->asleep, 0);
    while (atomic_load(&own->asleep)) sleep_while(&own->asleep, 1);
}

static void *worker(void *argument) {
    seat *own = argument;
    team *t = &teams[((char *)own - (char *)teams) / (ptrdiff_t)sizeof *t];
    int number = (int)(own - t->at);
    double idle_since = 0;
    inside = true;
    place = number;
    for (;;) {
        uint32_t seen = atomic_load(&t->signal), done;
        wake_next(t, number);
        report(t, done = work(t, number));
        if (done) idle_since = 0;
        await_signal(t, own, seen, &idle_since);
    }
    return NULL;
}

/* A forked child has none of the threads. */
static void forget_threads(void) {
    for (int i = 0; i < TEAMS; i++) {
        teams[i].workers = 0;
        for (int p = 0; p < PLACES; p++) atomic_store(&teams[i].at[p].asleep, 0);
        atomic_flag_clear(&teams[i].taken);
    }
    atomic_store(&started, 0);
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forget_threads); }

/* Starts what is missing, as long as the process has fewer threads than cores, or than asked for.
 */
static void grow(team *t, int threads) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int max = basin_thread_count() > threads ? basin_thread_count() : threads;
    if (t->workers + 1 >= threads) return;
    pthread_once(&once, watch_forks);
    while (t->workers + 1 < threads) {
        bool allowed = atomic_fetch_add(&started, 1) + 1 < max;
        if (!allowed || !start_thread(worker, &t->at[t->workers + 1])) {
            atomic_fetch_sub(&started, 1);
            return;
        }
        t->workers++;
    }
}

static team *take_team(int threads) {
    for (int i = 0; i < TEAMS; i++) {
        if (atomic_flag_test_and_set_explicit(&teams[i].taken, memory_order_acquire)) continue;
        grow(&teams[i], threads);
        return &teams[i];
    }
    return NULL;
}

static void publish(team *t, const piece *all, int64_t grain, int64_t pieces, int ranges) {
    atomic_store_explicit(&t->body, all->body, memory_order_relaxed);
    atomic_store_explicit(&t->context, all->context, memory_order_relaxed);
    atomic_store_explicit(&t->count, all->last, memory_order_relaxed);
    atomic_store_explicit(&t->grain, grain, memory_order_relaxed);
    atomic_store_explicit(&t->pieces, pieces, memory_order_relaxed);
    atomic_store_explicit(&t->ranges, ranges, memory_order_relaxed);
    atomic_store_explicit(&t->left, (uint32_t)pieces, memory_order_relaxed);
    t->number++;
    for (int r = 0; r < ranges; r++) {
        int64_t share = (r + 1) * pieces / ranges - r * pieces / ranges;
        atomic_store_explicit(&t->at[r].range, (uint64_t)t->number << 32 | (uint64_t)share,
                              memory_order_release);
    }
    atomic_fetch_add(&t->signal, 1);
}

/* Pieces that others took are being computed. */
static void await_rest(team *t) {
    double since = 0;
    for (uint32_t left; (left = atomic_load(&t->left)) > 0;) {
        if (spin_while(&t->left, left, &since)) continue;
        atomic_store(&t->caller_asleep, 1);
        left = atomic_load(&t->left);
        if (left > 0) sleep_while(&t->left, left);
        atomic_store(&t->caller_asleep, 0);
    }
}

void basin_parallel_for(basin_parallel_body *body, const void *context, int64_t count,
                        int64_t grain, int threads) {
    piece all = {body, context, 0, count};
    if (count <= 0) return;
    if (threads <= 0) threads = basin_thread_count();
    if (threads > PLACES) threads = PLACES;
    if (grain <= 0 && threads > 0) grain = (count - 1) / ((int64_t)threads * PIECES) + 1;
    if (grain < count / MAX_PIECES + 1) grain = count / MAX_PIECES + 1;
    int64_t pieces = (count - 1) / grain + 1;
    if (pieces < threads) threads = (int)pieces;
    team *t = threads > 1 && !inside ? take_team(threads) : NULL;
    if (t && t->workers + 1 < threads) threads = t->workers + 1;
    if (t && threads > 1) {
        inside = true;
        publish(t, &all, grain, pieces, threads);
        wake_next(t, 0);
        report(t, work(t, 0));
        await_rest(t);
        inside = false;
    } else {
        int outer = place;
        place = 0;
        body(context, 0, count);
        place = outer;
    }
    if (t) atomic_flag_clear_explicit(&t->taken, memory_order_release);
}
