/* Hoisted calls: what a plan computes of unchanged states alone runs once, and again after a state
 * has changed, whoever changed it. Results have the bits of a plan that is new, in every run. */
#include <string.h>

#include "base/info.h"
#include "basin/energy.h"
#include "engine/backend/kernel.h"
#include "engine/plan/plan.h"
#include "support/lab.h"

enum { BATCH = 2, TOKENS = 7, DIM = 8, STEPS = 3 };

/* A backend whose calls are counted, and whose waiting can be made to fail. */
static struct {
    basin_backend_table table;
    const basin_backend_table *real;
    size_t calls;
    bool fails;
} counter;

static void count_run(basin_backend *backend, const basin_call *call, size_t calls,
                      void *const *block) {
    counter.calls += calls;
    counter.real->run(backend, call, calls, block);
}

static basin_status count_wait(basin_backend *backend, basin_error *error) {
    basin_status status = counter.real->wait(backend, error);
    return counter.fails ? basin_fail(error, BASIN_IO, "a fault") : status;
}

static void count_calls(basin_backend *backend) {
    counter.real = backend->table;
    counter.table = *backend->table;
    counter.table.run = count_run;
    counter.table.wait = count_wait;
    counter.fails = false;
    backend->table = &counter.table;
}

static size_t calls_of_run(basin_plan *plan) {
    counter.calls = 0;
    lab_run(plan);
    return counter.calls;
}

typedef struct way {
    const char *backend;
    bool narrow;
} way;
static const way ways[] = {{"cpu", false}, {"ref", true}, {"ref", false}};
enum { WAYS = sizeof ways / sizeof *ways, PLAIN = WAYS - 1 }; /* ref, where nothing is hoisted */

/* A descent of a block, with the parameters in a store. */
typedef struct trial {
    lab l;
    basin_block block;
    basin_expr end;
    basin_plan *plan;
    basin_plan_stats stats;
} trial;

static void open_backend(lab *l, const way *w) {
    lab_open(l, w->backend, 2);
    if (w->narrow) {
        lab_narrow(l, BASIN_BF16);
    }
    count_calls(l->backend);
}

static basin_expr give_tokens(lab *l) {
    double x[BATCH * TOKENS * DIM];
    for (int i = 0; i < BATCH * TOKENS * DIM; i++)
        x[i] = 2 * basin_random_uniform_at(7, 1, (uint64_t)i) - 1;
    return lab_input(l, "x", BASIN_SHAPE(BATCH, TOKENS, DIM), x);
}

static void open_trial(trial *t, const way *w, uint64_t seed) {
    basin_block_config config = {
        .dim = DIM, .heads = 2, .head_dim = 16, .memories = 128, .learn_beta = true};
    basin_pattern pattern = BASIN_OTHER_PAIRS;
    basin_block_bound bound = {.block = &t->block, .pattern = &pattern};
    basin_descent_spec spec = {.steps = STEPS, .alpha = 0.1};
    *t = (trial){0};
    open_backend(&t->l, w);
    assert_int_equal(basin_block_declare(&t->block, &t->l.params, "", &config), BASIN_OK);
    lab_fill(&t->l, seed, 0.5);
    basin_energy energy = basin_block_energy(&bound);
    t->end = basin_descend(&energy, give_tokens(&t->l), &spec, NULL);
    t->plan = lab_plan(&t->l, &t->end, 1);
    t->stats = basin_plan_stats_of(t->plan);
}

static void close_trial(trial *t) {
    basin_plan_free(t->plan);
    lab_close(&t->l);
}

static void assert_same(const basin_tensor *a, const basin_tensor *b) {
    assert_int_equal(basin_tensor_bytes(a), basin_tensor_bytes(b));
    assert_memory_equal(a->data, b->data, basin_tensor_bytes(a));
}

/* Where the tokens go under the parameters of that seed, by a plan that never ran before. */
static basin_tensor fresh(const way *w, uint64_t seed) {
    trial t;
    open_trial(&t, w, seed);
    lab_run(t.plan);
    basin_tensor value = lab_read(t.plan, t.end);
    close_trial(&t);
    return value;
}

/* Runs the plan; so many calls must have run, and the numbers are those wanted. */
static void assert_run(trial *t, size_t calls, const basin_tensor *wanted) {
    assert_int_equal(calls_of_run(t->plan), calls);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor found = lab_read(t->plan, t->end);
    assert_same(&found, wanted);
}

TEST(test_repeated) {
    for (int i = 0; i < WAYS; i++) {
        trial t;
        basin_tensor wanted = fresh(&ways[i], 1);
        open_trial(&t, &ways[i], 1);
        size_t all = (size_t)t.stats.calls, hoisted = (size_t)t.stats.hoisted;
        if (i == PLAIN)
            assert_int_equal(hoisted, 0);
        else /* weights packed; 1 / beta and the weights cast */
            assert_in_range(hoisted, 3, all - 1);
        assert_run(&t, all, &wanted);
        for (int k = 0; k < 3; k++) assert_run(&t, all - hoisted, &wanted);
        basin_tensor_free(&wanted);
        close_trial(&t);
    }
}

/* The host writes other weights; then those from before. */
TEST(test_written) {
    for (int i = 0; i < WAYS; i++) {
        trial t;
        basin_tensor wanted[2] = {fresh(&ways[i], 1), fresh(&ways[i], 2)};
        assert_true(lab_distance(&wanted[0], &wanted[1]) > 1e-3);
        open_trial(&t, &ways[i], 1);
        size_t all = (size_t)t.stats.calls, rest = all - (size_t)t.stats.hoisted;
        assert_run(&t, all, &wanted[0]);
        for (int k = 0; k < 2; k++) {
            lab_fill(&t.l, 2 - (uint64_t)k, 0.5);
            assert_run(&t, all, &wanted[1 - k]);
            assert_run(&t, rest, &wanted[1 - k]);
        }
        for (int k = 0; k < 2; k++) basin_tensor_free(&wanted[k]);
        close_trial(&t);
    }
}

/* Another plan on the store updates a weight, as training does between evaluations; a third one
 * reads the store alone, and nothing has to be computed again. */
TEST(test_updated) {
    for (int i = 0; i < WAYS; i++) {
        trial t;
        basin_plan *trainer, *reader;
        open_trial(&t, &ways[i], 1);
        basin_expr xi = t.block.xi, sum = basin_sum_all(xi);
        basin_update update = {xi, basin_scale(xi, 0.5)};
        basin_plan_spec spec = {.update = &update, .updates = 1};
        assert_int_equal(basin_plan_new(&trainer, t.l.store, &spec, NULL), BASIN_OK);
        reader = lab_plan(&t.l, &sum, 1);
        lab_run(t.plan);
        basin_tensor before = lab_read(t.plan, t.end);
        lab_run(trainer);
        size_t all = (size_t)t.stats.calls;
        assert_int_equal(calls_of_run(t.plan), all);
        basin_tensor after = lab_read(t.plan, t.end);
        assert_true(lab_distance(&before, &after) > 1e-3);
        basin_plan *other = lab_plan(&t.l, &t.end, 1);
        lab_run(other);
        basin_tensor wanted = lab_read(other, t.end);
        assert_same(&after, &wanted);
        lab_run(reader);
        assert_run(&t, all - (size_t)t.stats.hoisted, &wanted);
        basin_tensor_free(&before);
        basin_tensor_free(&after);
        basin_tensor_free(&wanted);
        basin_plan_free(other);
        basin_plan_free(reader);
        basin_plan_free(trainer);
        close_trial(&t);
    }
}

/* A plan that updates one weight and leaves another: what depends on the other alone is hoisted,
 * also while the plan changes the store itself; what depends on the updated one is not. */
TEST(test_frozen) {
    basin_tensor value[WAYS];
    for (int i = 0; i < WAYS; i++) {
        lab l;
        open_backend(&l, &ways[i]);
        basin_expr x = give_tokens(&l), table = lab_state(&l, "table", BASIN_SHAPE(DIM, DIM)),
                   w = lab_state(&l, "w", BASIN_SHAPE(DIM, DIM)),
                   transposed = basin_transpose(table);
        lab_fill(&l, 3, 0.5);
        basin_expr y = basin_sum_all(basin_square(
            basin_matmul(basin_matmul(x, basin_softmax(transposed, -1)), basin_softmax(w, -1))));
        basin_update update = {w, basin_sub(w, basin_scale(basin_grad(y, w), 1e-2))};
        basin_plan_spec spec = {.output = &y, .outputs = 1, .update = &update, .updates = 1};
        basin_plan *plan;
        assert_int_equal(basin_plan_new(&plan, l.store, &spec, NULL), BASIN_OK);
        lab_write(&l, plan);
        basin_plan_stats stats = basin_plan_stats_of(plan);
        char text[200];
        for (int k = 0; k < stats.hoisted; k++) {
            basin_plan_describe(plan, k, text, sizeof text);
            assert_null(strstr(text, "MATMUL"));
        }
        assert_true(i == PLAIN ? stats.hoisted == 0 : stats.hoisted >= 2);
        for (int run = 0; run < 4; run++)
            assert_int_equal(calls_of_run(plan), stats.calls - (run > 0 ? stats.hoisted : 0));
        value[i] = lab_read(plan, y);
        basin_plan_free(plan);
        lab_close(&l);
    }
    lab_assert_near(&value[0], &value[PLAIN], 1e-5, "cpu");
    lab_assert_near(&value[1], &value[PLAIN], 2e-2, "narrow");
    for (int i = 0; i < WAYS; i++) basin_tensor_free(&value[i]);
}

/* Plans that compute in one place: what another one has overwritten is computed again. */
TEST(test_shared) {
    for (int i = 0; i < WAYS; i++) {
        trial t;
        basin_tensor wanted = fresh(&ways[i], 1);
        open_trial(&t, &ways[i], 1);
        basin_plan_free(t.plan);
        basin_store_share_results(t.l.store);
        t.plan = lab_plan(&t.l, &t.end, 1);
        size_t all = (size_t)t.stats.calls, rest = all - (size_t)t.stats.hoisted;
        assert_run(&t, all, &wanted);
        assert_run(&t, rest, &wanted);
        basin_expr once = basin_matmul_t(t.block.xi, false, t.block.xi, true);
        basin_expr wide = basin_softmax(basin_matmul(once, once), -1);
        basin_plan *other = lab_plan(&t.l, &wide, 1);
        assert_true(basin_plan_stats_of(other).arena_bytes > t.stats.arena_bytes);
        assert_run(&t, all, &wanted); /* the place has grown and moved */
        lab_run(other);
        assert_run(&t, all, &wanted);
        assert_run(&t, rest, &wanted);
        basin_plan_free(other);
        assert_run(&t, rest, &wanted);
        basin_tensor_free(&wanted);
        close_trial(&t);
    }
}

/* After a run that failed, all is computed again. */
TEST(test_failed) {
    trial t;
    basin_tensor wanted = fresh(&ways[0], 1);
    open_trial(&t, &ways[0], 1);
    for (int i = 0; i < 2; i++) {
        counter.fails = true;
        assert_int_equal(basin_plan_run(t.plan, &failure), BASIN_IO);
        counter.fails = false;
        assert_run(&t, (size_t)t.stats.calls, &wanted);
        assert_run(&t, (size_t)(t.stats.calls - t.stats.hoisted), &wanted);
    }
    basin_tensor_free(&wanted);
    close_trial(&t);
}

/* Without states: constants are hoisted; inputs, and draws, which depend on a seed, are not. A
 * plan of which everything is hoisted is still read after every run. */
TEST(test_without_states) {
    for (int i = 0; i < WAYS; i++) {
        lab l;
        open_backend(&l, &ways[i]);
        basin_expr x = give_tokens(&l), seed = lab_index(&l, "seed", (int32_t[]){1, 2}, 2);
        basin_expr y[] = {basin_add(basin_exp(x), basin_normal(seed, basin_expr_shape(x))),
                          basin_softmax(basin_full(l.graph, BASIN_SHAPE(4), 3), -1)};
        basin_plan *plan = lab_plan(&l, y, 2), *still = lab_plan(&l, &y[1], 1);
        basin_plan_stats stats = basin_plan_stats_of(plan), all = basin_plan_stats_of(still);
        assert_int_equal(stats.hoisted, i == PLAIN ? 0 : 2);
        assert_int_equal(all.hoisted, i == PLAIN ? 0 : all.calls);
        lab_run(plan);
        basin_tensor first = lab_read(plan, y[0]);
        for (int32_t k = 1; k >= 0; k--) {
            lab_give(&l, seed, (int32_t[]){1 + k, 2});
            lab_write(&l, plan);
            assert_int_equal(calls_of_run(plan), stats.calls - stats.hoisted);
            basin_tensor found = lab_read(plan, y[0]);
            assert_int_equal(lab_distance(&found, &first) == 0, k == 0);
            basin_tensor_free(&found);
            lab_run(still);
            basin_tensor even = lab_read(still, y[1]);
            for (int e = 0; e < 4; e++) assert_float_equal(basin_tensor_at(&even, e), 0.25, 1e-6);
            basin_tensor_free(&even);
        }
        basin_tensor_free(&first);
        basin_plan_free(still);
        basin_plan_free(plan);
        lab_close(&l);
    }
}
