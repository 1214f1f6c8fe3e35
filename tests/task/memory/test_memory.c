/* Associative memories: every separation function recalls what it holds and never climbs; files
 * give the same memory back; capacities grow as theory says; wrong input has its own line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basin/random.h"
#include "basin/tasks/memory.h"
#include "io/folder.h"

enum { COUNT = 6, DIM = 120 };

static float random_values[COUNT * DIM];

static basin_memory *make(const char *function, bool binary) {
    basin_error error;
    basin_memory *memory;
    basin_memory_spec spec = {.size = sizeof spec, .function = function, .binary = binary};
    basin_random_fill_normal(random_values, 3, 0, 0, COUNT * DIM);
    basin_tensor t = basin_tensor_borrow(random_values, BASIN_F32, BASIN_SHAPE(COUNT, DIM));
    if (basin_memory_new(&memory, &spec, &t, &error)) fail_msg("%s", error.text);
    return memory;
}

/* Damages the stored patterns and recalls them; the least overlap with the truth afterwards. */
static double recall(const basin_memory *memory, const char *erase, double noise) {
    float cue[COUNT * DIM];
    unsigned char known[COUNT * DIM];
    basin_error error;
    basin_memory_recalled r;
    basin_memory_recalling how = {.size = sizeof how};
    double least = 1;
    memcpy(cue, random_values, sizeof cue);
    for (int i = 0; i < COUNT; i++) {
        basin_memory_damage d = {.size = sizeof d,
                                 .erase = erase,
                                 .share = 0.3,
                                 .noise = noise,
                                 .seed = 5,
                                 .stream = (uint64_t)i};
        if (basin_memory_damage_cue(cue + i * DIM, known + i * DIM, memory, &d, &error))
            fail_msg("%s", error.text);
    }
    assert_int_equal(
        basin_backend_open(&how.backend, &(basin_compute){.backend = "ref", .threads = 1}, &error),
        BASIN_OK);
    if (basin_memory_recall(&r, memory, cue, known, COUNT, &how, &error))
        fail_msg("%s", error.text);
    assert_true(r.rested);
    for (int t = 0; t < r.steps; t++)
        for (int i = 0; i < COUNT; i++)
            assert_true(r.energy[(t + 1) * COUNT + i] <= r.energy[t * COUNT + i] + 1e-9);
    for (int i = 0; i < COUNT; i++) {
        double overlap, mse;
        assert_int_equal(r.nearest[i], i);
        basin_memory_compare(&overlap, &mse, memory, r.value + i * DIM, random_values + i * DIM,
                             NULL);
        least = fmin(least, overlap);
    }
    basin_memory_recalled_free(&r);
    basin_backend_close(how.backend);
    return least;
}

static void every_function_recalls(void **state) {
    (void)state;
    for (int f = 1; basin_memory_function(f); f++)
        for (int binary = 0; binary < 2; binary++) {
            basin_memory *memory = make(basin_memory_function(f), binary);
            bool ball = !strcmp(basin_memory_function(f), "lsr");
            assert_true(recall(memory, "none", 0.3) > 0.99);
            if (!ball || !binary) assert_true(recall(memory, "top", 0) > 0.99);
            if (!ball || !binary) assert_true(recall(memory, "random", 0.1) > 0.99);
            basin_memory_close(memory);
        }
    basin_memory *memory = make("classical", true);
    assert_true(recall(memory, "bottom", 0) > 0.95);
    basin_memory_close(memory);
}

static void a_file_gives_it_back(void **state) {
    char path[PATH_TEXT];
    basin_error error;
    basin_memory *memory = make("power", true), *again;
    folder_path(path, state, "m.safetensors");
    assert_int_equal(basin_memory_write(path, memory, &error), BASIN_OK);
    if (basin_memory_open(&again, path, &error)) fail_msg("%s", error.text);
    basin_memory_spec spec = basin_memory_get_spec(again);
    assert_string_equal(spec.function, "power");
    assert_true(spec.power == 3 && spec.binary && spec.channels == 0);
    assert_memory_equal(basin_memory_patterns(again)->data, random_values, sizeof random_values);
    assert_true(recall(again, "top", 0) > 0.99);
    basin_memory_close(memory);
    basin_memory_close(again);
}

static void pictures_and_vectors_are_read(void **state) {
    const char *shapes = "shapes:5:1:8x8x3";
    char path[PATH_TEXT];
    int64_t height = 4, width = 0;
    int channels = 1;
    basin_pictures *pictures;
    basin_tensor t;
    basin_error error;
    assert_int_equal(basin_pictures_open(&pictures, &shapes, 1, NULL, &error), BASIN_OK);
    assert_int_equal(
        basin_memory_load_pictures(&t, &height, &width, &channels, pictures, 3, &error), BASIN_OK);
    assert_true(basin_shape_equal(t.shape, BASIN_SHAPE(3, 4 * 8)));
    basin_tensor_free(&t);
    basin_pictures_free(pictures);
    const char *text[] = {"a,b,c\n1,2,3\n-4,5e-1,6\n", "1,2,3\n-4,0.5,6\n"};
    for (int i = 0; i < 2; i++) {
        folder_path(path, state, "v.csv");
        assert_int_equal(file_put(path, text[i], strlen(text[i])), 0);
        if (basin_memory_load_vectors(&t, path, NULL, 0, &error)) fail_msg("%s", error.text);
        assert_true(basin_shape_equal(t.shape, BASIN_SHAPE(2, 3)));
        assert_true(((float *)t.data)[4] == 0.5f);
        basin_tensor_free(&t);
    }
}

static double exponent(const char *function, double power, const int64_t dim[3]) {
    double capacity[3];
    basin_error error;
    for (int i = 0; i < 3; i++) {
        basin_memory_curve curve;
        basin_memory_trial trial = {
            .size = sizeof trial, .function = function, .power = power, .dim = dim[i], .seed = 2};
        if (basin_memory_measure(&curve, &trial, &error)) fail_msg("%s", error.text);
        capacity[i] = curve.capacity;
    }
    return basin_memory_exponent(function, capacity, dim, 3);
}

static void capacities_grow_as_theory_says(void **state) {
    (void)state;
    const int64_t wide[3] = {128, 256, 512}, middle[3] = {32, 64, 128}, small[3] = {32, 48, 64};
    const int64_t tiny[3] = {10, 13, 16};
    assert_true(fabs(exponent("classical", 0, wide) / 1 - 1) < 0.1);
    assert_true(fabs(exponent("power", 3, middle) / 2 - 1) < 0.1);
    assert_true(fabs(exponent("power", 4, small) / 3 - 1) < 0.1);
    assert_true(fabs(exponent("softmax", 0, tiny) / basin_memory_theory("softmax", 0) - 1) < 0.2);
    assert_true(basin_memory_theory("power", 5) == 4);
    assert_true(isnan(basin_memory_theory("sparsemax", 0)));
}

/* More threads, the same bits. */
static void threads_change_nothing(void **state) {
    basin_memory_curve curve[2];
    basin_error error;
    (void)state;
    for (int i = 0; i < 2; i++) {
        basin_memory_trial trial = {.size = sizeof trial,
                                    .function = "power",
                                    .power = 3,
                                    .dim = 40,
                                    .flips = 0.1,
                                    .threads = i + 1};
        assert_int_equal(basin_memory_measure(&curve[i], &trial, &error), BASIN_OK);
    }
    assert_memory_equal(&curve[0], &curve[1], sizeof curve[0]);
}

static void wrong_input_is_told(void **state) {
    basin_error error;
    basin_memory *memory;
    basin_memory_curve curve;
    basin_tensor t = basin_tensor_borrow(random_values, BASIN_F32, BASIN_SHAPE(COUNT, DIM));
    (void)state;
    const basin_memory_spec bad[] = {
        {.size = sizeof bad[0], .function = "cubic"},
        {.size = sizeof bad[0], .function = "softmax", .power = 3},
        {.size = sizeof bad[0], .function = "power", .beta = 3},
        {.size = sizeof bad[0], .height = 3, .width = 3, .channels = 1},
    };
    const char *wanted[] = {"cubic", "only power has one", "beta of 3", "3 x 3 x 1"};
    for (int i = 0; i < 4; i++) {
        assert_int_not_equal(basin_memory_new(&memory, &bad[i], &t, &error), BASIN_OK);
        if (!strstr(error.text, wanted[i])) fail_msg("%s", error.text);
        assert_null(memory);
    }
    basin_memory_trial trial = {.size = sizeof trial, .function = "sparsemax", .dim = 20};
    assert_int_equal(basin_memory_measure(&curve, &trial, &error), BASIN_UNSUPPORTED);
    trial = (basin_memory_trial){.size = sizeof trial, .function = "lsr", .dim = 1};
    assert_int_equal(basin_memory_measure(&curve, &trial, &error), BASIN_BAD_VALUE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_recalls),
        cmocka_unit_test_setup_teardown(a_file_gives_it_back, folder_new, folder_remove),
        cmocka_unit_test_setup_teardown(pictures_and_vectors_are_read, folder_new, folder_remove),
        cmocka_unit_test(capacities_grow_as_theory_says),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(wrong_input_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
