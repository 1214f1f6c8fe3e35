/* basin memory: store, recall and capacity as a user calls them, and wrong usage. */
#include "cli/program.h"

#include <math.h>

static void stores_and_recalls(void **state) {
    const program *p = run(state, "memory store shapes:20:1:12x12x1 -o m.safetensors");
    if (p->code) fail_msg("%s", p->err);
    assert_string_equal(p->out, "m.safetensors\n");
    p = run(state, "memory recall m.safetensors --erase bottom --limit 3 -o o --svg e.svg --json");
    cJSON *tree = run_json(p);
    for (int i = 0; i < 3; i++) {
        char path[40];
        snprintf(path, sizeof path, "cues.%d.nearest", i);
        assert_int_equal(json_at(tree, path)->valueint, i);
        snprintf(path, sizeof path, "cues.%d.overlap_after", i);
        assert_true(json_at(tree, path)->valuedouble > 0.999);
        snprintf(path, sizeof path, "cues.%d.overlap_before", i);
        assert_true(json_at(tree, path)->valuedouble < 0.95);
    }
    assert_true(json_at(tree, "energy.1")->valuedouble < json_at(tree, "energy.0")->valuedouble);
    cJSON_Delete(tree);
    char path[PATH_TEXT];
    static const char *const written[] = {"o/cue0002.recalled.png", "o/cue0000.strip.png", "e.svg"};
    for (int i = 0; i < 3; i++) {
        FILE *file = fopen(folder_path(path, state, written[i]), "rb");
        assert_non_null(file);
        fclose(file);
    }
    p = run(state, "memory recall m.safetensors shapes:20:1:12x12x1 --noise 0.2 -o n");
    assert_int_equal(p->code, 0);
    assert_contains(p->out, "all states rest");
}

static void measures_capacity(void **state) {
    cJSON *tree = run_json(run(state, "memory capacity --functions power3 --dims 32,64,96 --svg "
                                      "c.svg --json --quiet"));
    assert_true(fabs(json_at(tree, "functions.0.measured")->valuedouble - 2) < 0.2);
    assert_true(json_at(tree, "functions.0.theory")->valuedouble == 2);
    cJSON_Delete(tree);
    const program *p = run(state, "memory capacity --functions classical --dims 64,128 --quiet");
    assert_contains(p->out, "N^a");
}

static void wrong_usage(void **state) {
    assert_int_equal(run(state, "memory store shapes:4:1:6x6x1 -o m.safetensors")->code, 0);
    assert_error(run(state, "memory recall none.safetensors"), 1, "none.safetensors");
    assert_error(run(state, "memory store shapes:4:1:6x6x1 --power 3"), 1, "only power has one");
    assert_error(run(state, "memory recall m.safetensors shapes:1:1:8x8x1 --mask m.safetensors"), 1,
                 "m.safetensors");
    assert_int_equal(run(state, "memory recall m.safetensors --share 0.2")->code, 2);
    assert_int_equal(run(state, "memory recall m.safetensors --seed 2")->code, 2);
    assert_int_equal(run(state, "memory capacity --functions cubic")->code, 2);
    assert_int_equal(run(state, "memory capacity --dims 32")->code, 2);
    assert_error(run(state, "memory capacity --functions sparsemax -q"), 1, "sparsemax");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stores_and_recalls, folder_new, folder_remove),
        cmocka_unit_test_setup_teardown(measures_capacity, folder_new, folder_remove),
        cmocka_unit_test_setup_teardown(wrong_usage, folder_new, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
