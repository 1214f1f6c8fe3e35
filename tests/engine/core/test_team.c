/* Loops shared by threads: every item once, places of one's own, loops within loops, callers side
 * by side, children of a fork. */
#include "engine/core/team/team.h"
#include "support/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_THREADS = 9, PLACES = 1024 };

typedef struct visits {
    _Atomic int *count;     /* [items] how often each was done */
    _Atomic int *busy;      /* [MOST_THREADS] a thread is at this place */
    _Atomic int64_t *wrong; /* empty pieces, places out of range or shared */
    int threads;
} visits;

static void visit(const void *context, int64_t first, int64_t last) {
    int place = basin_parallel_place();
    const visits *v = context;
    bool known = place >= 0 && place < v->threads;
    if (!known || first >= last) atomic_fetch_add(v->wrong, 1);
    if (known && atomic_fetch_add(&v->busy[place], 1) != 0) atomic_fetch_add(v->wrong, 1);
    for (int64_t i = first; i < last; i++) atomic_fetch_add(&v->count[i], 1);
    if (known) atomic_fetch_sub(&v->busy[place], 1);
}

static bool loop_is_right(int64_t items, int64_t grain, int threads) {
    _Atomic int busy[PLACES] = {0};
    _Atomic int64_t wrong = 0;
    _Atomic int *count = calloc((size_t)items + 1, sizeof *count);
    if (!count) return false;
    visits v = {count, busy, &wrong, threads < 1 ? basin_thread_count() : threads};
    basin_parallel_for(visit, &v, items, grain, threads);
    for (int64_t i = 0; i <= items; i++)
        if (count[i] != (i < items)) wrong++;
    free((void *)count);
    return wrong == 0;
}

TEST(every_item_is_done_once) {
    static const int64_t items[] = {0, 1, 2, 3, 7, 64, 1000, 4097};
    for (int threads = 0; threads <= MOST_THREADS; threads++)
        for (size_t i = 0; i < sizeof items / sizeof *items; i++)
            for (int64_t grain = 0; grain < 70; grain = 3 * grain + 1)
                assert_true(loop_is_right(items[i], grain, threads));
}

/* Loops so short that threads come late to most of them, and so to the next one's numbers. */
TEST(short_loops_do_not_mix) {
    for (int i = 0; i < 20000; i++) assert_true(loop_is_right(i % 13, i % 3, 2 + i % 3));
}

static void count_inner(const void *context, int64_t first, int64_t last) {
    int place = basin_parallel_place();
    _Atomic int64_t *sum = *(_Atomic int64_t *const *)context;
    atomic_fetch_add(sum, place == 0 ? last - first : 1000000);
}

static void run_inner(const void *context, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) basin_parallel_for(count_inner, context, 100, 1, 4);
}

TEST(a_loop_within_a_loop_is_serial) {
    _Atomic int64_t sum = 0, *where = &sum;
    basin_parallel_for(run_inner, &where, 50, 1, 4);
    assert_int_equal(sum, 5000);
}

static void *call_often(void *argument) {
    bool *right = argument;
    for (int i = 0; i < 300; i++) *right = *right && loop_is_right(200, 1 + i % 5, 3);
    return NULL;
}

TEST(callers_do_not_disturb_each_other) {
    pthread_t thread[12]; /* more than there are teams */
    bool right[12];
    for (int i = 0; i < 12; i++) {
        right[i] = true;
        assert_int_equal(pthread_create(&thread[i], NULL, call_often, &right[i]), 0);
    }
    for (int i = 0; i < 12; i++) {
        pthread_join(thread[i], NULL);
        assert_true(right[i]);
    }
}

static void add_squares(const void *context, int64_t first, int64_t last) {
    double *const *part = context;
    for (int64_t i = first; i < last; i++) (*part)[i] = 1.0 / (double)((i + 1) * (i + 1));
}

static double sum_squares(int threads) {
    double part[500], *where = part, sum = 0;
    basin_parallel_for(add_squares, &where, 500, 0, threads);
    for (int i = 0; i < 500; i++) sum += part[i];
    return sum;
}

TEST(a_forked_child_has_threads_of_its_own) {
    double expected = sum_squares(3);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        for (int i = 0; i < 100; i++)
            if (sum_squares(3) != expected) _exit(1);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(sum_squares(3) == expected);
}

/* Wanted are three numbers. */
static int64_t find_wanted(const void *context, int64_t first, int64_t last) {
    const int64_t *wanted = context;
    for (int64_t i = first; i < last; i++)
        for (int k = 0; k < 3; k++)
            if (i == wanted[k]) return i;
    return last;
}

TEST(the_first_of_several_is_found) {
    for (int64_t i = 0; i < 300; i++) {
        int64_t wanted[3] = {7000 - i, 200 + 13 * i, 9999};
        int64_t least = wanted[0] < wanted[1] ? wanted[0] : wanted[1];
        assert_int_equal(basin_parallel_find(find_wanted, wanted, 10000, i % 60), least);
        assert_int_equal(basin_parallel_find(find_wanted, wanted, least, i % 60), least);
    }
    assert_int_equal(basin_parallel_find(find_wanted, NULL, 0, 0), 0);
}

static basin_status attempt(const void *context, int64_t item, basin_error *error) {
    const int64_t *every = context;
    if ((item + 1) % *every) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "item %d", (int)item);
}

TEST(the_first_error_is_told) {
    basin_error error;
    for (int64_t every = 5; every < 1000; every += 71) {
        char text[30];
        assert_int_equal(basin_parallel_try(attempt, &every, 1000, 3, &error), BASIN_BAD_VALUE);
        snprintf(text, sizeof text, "item %d", (int)every - 1);
        assert_string_equal(error.text, text);
        assert_int_equal(basin_parallel_try(attempt, &every, every - 1, 3, &error), BASIN_OK);
    }
}

static int processors_with(const char *value) {
    if (value)
        setenv("OMP_NUM_THREADS", value, 1);
    else
        unsetenv("OMP_NUM_THREADS");
    basin_processors_set(0);
    return basin_thread_count();
}

typedef struct masks {
    pthread_t caller;
    _Atomic int *looked, *wrong; /* by other threads */
} masks;

static void look_at_mask(const void *context, int64_t first, int64_t last) {
    int place = basin_parallel_place();
    (void)first, (void)last, (void)place;
    const masks *m = context;
    sigset_t blocked;
    if (pthread_sigmask(SIG_SETMASK, NULL, &blocked)) return;
    if (!pthread_equal(m->caller, pthread_self())) {
        atomic_fetch_add(m->looked, 1);
        if (sigismember(&blocked, SIGBUS) || sigismember(&blocked, SIGSEGV) ||
            !sigismember(&blocked, SIGTERM))
            atomic_fetch_add(m->wrong, 1);
    }
    usleep(1000);
}

/* A fault in a thread must reach the program's handler, SIGTERM the program's own threads. */
TEST(threads_take_their_own_faults_alone) {
    _Atomic int looked = 0, wrong = 0;
    masks m = {pthread_self(), &looked, &wrong};
    for (int i = 0; i < 50 && looked == 0; i++) basin_parallel_for(look_at_mask, &m, 20, 1, 3);
    assert_true(looked > 0);
    assert_int_equal(wrong, 0);
}

TEST(the_number_of_threads_can_be_asked_for) {
    char *before = getenv("OMP_NUM_THREADS"), keep[64] = "";
    if (before) snprintf(keep, sizeof keep, "%s", before);
    int own = processors_with(NULL);
    assert_true(own >= 1);
    assert_int_equal(processors_with("3"), 3);
    assert_int_equal(processors_with("5,2"), 5);
    assert_int_equal(processors_with("many"), own);
    assert_int_equal(processors_with("-1"), own);
    processors_with(before ? keep : NULL);
}
