/* examples/memories: every separation function recalls what it holds and never climbs; a file gives
 * the same memory back; capacities grow as theory says. */
#pragma GCC diagnostic ignored "-Wunused-function" /* what the program alone calls */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../examples/memories/capacity.h"

enum { COUNT = 6, DIM = 120 };

static char *no_options[1];
static float pattern[COUNT * DIM];

static memory make(separation function, bool binary) {
    memory m = {.function = function, .binary = binary, .power = 3};
    m.beta = function == LSR ? 2 : 50;
    basin_random_fill_normal(pattern, 3, 0, 0, COUNT * DIM);
    m.patterns = basin_tensor_borrow(pattern, BASIN_F32, BASIN_SHAPE(COUNT, DIM));
    make_keys(&m);
    return m;
}

/* Recalls patterns with noise, the first `erased` numbers unknown; the least overlap afterwards. */
static double recall_damaged(const memory *m, int erased, double noise) {
    float cue[COUNT * DIM];
    uint8_t known[COUNT * DIM];
    basin_engine engine;
    recalled r;
    double least = 1;
    for (int i = 0; i < COUNT * DIM; i++) {
        cue[i] = pattern[i] + (float)(noise * basin_random_normal_at(5, 1, (uint64_t)i));
        known[i] = i % DIM >= erased;
    }
    must(basin_engine_open(&engine, &(basin_compute){.backend = "ref", .threads = 1}, &error));
    recall(&r, m, &engine, cue, known, COUNT, 100);
    assert_true(r.path.converged);
    for (int t = 0; t < r.path.steps * COUNT; t++)
        assert_true(r.path.energy[t + COUNT] <= r.path.energy[t] + 1e-9);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(r.nearest[i], i);
        least = fmin(least, overlap_of(m, r.value + i * DIM, NULL, pattern + i * DIM));
    }
    recalled_free(&r);
    basin_engine_close(&engine);
    return least;
}

static void every_function_recalls(void **state) {
    (void)state;
    options = no_options;
    for (int f = POWER; f < FUNCTIONS; f++)
        for (int binary = 0; binary < 2; binary++) {
            memory m = make((separation)f, binary);
            assert_true(recall_damaged(&m, 0, 0.3) > 0.99);
            if (f != LSR || !binary) assert_true(recall_damaged(&m, 36, 0) > 0.99);
            if (f != LSR || !binary) assert_true(recall_damaged(&m, 30, 0.1) > 0.99);
            memory_free(&m);
        }
    memory m = make(CLASSICAL, true);
    assert_true(recall_damaged(&m, 36, 0) > 0.95);
    memory_free(&m);
}

static void a_file_gives_it_back(void **state) {
    (void)state;
    const char *path = "test_memories.safetensors";
    memory m = make(POWER, true), again;
    memory_write(path, &m);
    memory_open(&again, path);
    assert_int_equal(remove(path), 0);
    assert_true(again.function == POWER && again.power == 3 && again.binary && !again.channels);
    assert_true(again.count == COUNT && again.dim == DIM);
    assert_memory_equal(again.patterns.data, pattern, sizeof pattern);
    assert_memory_equal(again.keys.data, m.keys.data, sizeof pattern);
    memory_free(&m);
    memory_free(&again);
}

static void capacities_grow_as_theory_says(void **state) {
    (void)state;
    const struct {
        separation function;
        double power, tolerance;
        int64_t bits[3];
    } all[] = {{CLASSICAL, 0, 0.1, {128, 256, 512}},
               {POWER, 3, 0.1, {32, 64, 128}},
               {POWER, 4, 0.1, {32, 48, 64}},
               {SOFTMAX, 0, 0.2, {10, 13, 16}}};
    for (int k = 0; k < 4; k++) {
        double held[3];
        for (int i = 0; i < 3; i++)
            held[i] = measure(all[k].function, all[k].power, all[k].bits[i], 0, 2);
        double expected = theory(all[k].function, all[k].power);
        double found = exponent(all[k].function, held, all[k].bits, 3);
        assert_true(fabs(found / expected - 1) < all[k].tolerance);
    }
    assert_true(theory(POWER, 5) == 4);
    assert_true(measure(POWER, 3, 40, 0.1, 2) < measure(POWER, 3, 40, 0, 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_recalls),
        cmocka_unit_test(a_file_gives_it_back),
        cmocka_unit_test(capacities_grow_as_theory_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
