/* basin image train --objective match, sample, eval and complete of such a model. */
#include "program/kill.h"

#define TINY                                                                                       \
    "image train shapes:64:3:12x12x3 --objective match --size 12 --channels 3 --dim 12 --heads 2 " \
    "--head-dim 4 --memories 16 --batch 16 --warmup 1 --quiet --epochs 2 --hold-out 16 "

static bool same_files(void **state, const char *a, const char *b) {
    char line[3 * PATH_TEXT];
    snprintf(line, sizeof line, "cd '%s' && cmp -s %s %s", (const char *)*state, a, b);
    return system(line) == 0;
}

TEST_WITH(samples_are_a_function_of_the_seed, folder_new, program_teardown) {
    cJSON *json = run_json(run(state, TINY "--threads 1 -o m.safetensors --json"));
    assert_true(json_number(json, "validation.test_match") > 0);
    run_ok(state, TINY "--threads 2 -o n.safetensors");
    json = run_json(run(state, "image sample m.safetensors -n 5 --steps 7 --folder p --threads 1 "
                               "--seed 3 -o a.png --json -q"));
    assert_true(json_number(json, "pictures") == 5);
    assert_true(json_number(json, "energies.0") > json_number(json, "energies.7"));
    run_ok(state, "image sample n.safetensors -n 3 --steps 7 --folder q --threads 2 --seed 3 -q "
                  "-o b.png");
    assert_true(same_files(state, "p/0002.png", "q/0002.png"));
    assert_false(same_files(state, "p/0001.png", "p/0002.png"));
    run_ok(state, "image sample m.safetensors -n 5 --steps 7 --seed 4 -q -o b.png");
    assert_false(same_files(state, "a.png", "b.png"));
    const program *p = run_ok(state, "image sample m.safetensors -n 2 --steps 5 -o b.png");
    assert_contains(p->out, "mean energy before step 5");
    assert_error(run(state, "image sample m.safetensors --alpha 1000 -q -o b.png"), 1, "diverges");
    assert_error(run(state, "image sample m.safetensors -o b.jpg"), 2, "ends in .png");
}

TEST_WITH(energies_of_pictures, folder_new, program_teardown) {
    run_ok(state, TINY "--threads 1 -o m.safetensors");
    cJSON *json = run_json(run(state, "image eval m.safetensors shapes:64:3:12x12x3 --hold-out 16 "
                                      "--masks 2 --json -q"));
    assert_true(json_number(json, "pictures") == 16 && json_number(json, "match") > 0);
    assert_true(json_number(json, "best.0.outlier") <= json_number(json, "worst.0.outlier"));
    assert_true(isfinite(json_number(json, "best.0.energy")));
    const program *p = run_ok(state, "image eval m.safetensors shapes:64:3:12x12x3 -q");
    assert_contains(p->out, "squared error of the gradient");
    assert_error(run(state, "image eval m.safetensors shapes:8 --mask holes -q"), 1, "objective");
    assert_error(run(state, "image report m.safetensors shapes:8:1:12x12x3 -q"), 1, "objective");
    assert_error(run(state, "image complete m.safetensors shapes:1 --mask random --fit windows"), 2,
                 "--fit has no effect on a model of objective match");
    run_ok(state, "image complete m.safetensors shapes:1:1:12x12x3 --mask 4,4,5,5 --samples 2 "
                  "--steps 5 --seed 2 -o . -q");
    assert_false(same_files(state, "*-0.completed.png", "*-0.2.completed.png"));
}

TEST_WITH(other_fields, folder_new, program_teardown) {
    static const char *const field[] = {"--field free", "--arch vit --field free --steps 2"};
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        run_ok(state, TINY "--threads 1 -o m.safetensors %s", field[i]);
        const program *p = run_ok(state, "image sample m.safetensors -n 2 --steps 2 -o a.png");
        assert_contains(p->out, "the field is free");
        run_ok(state, "image eval m.safetensors shapes:8:1:12x12x3 -q --masks 1");
    }
}

TEST_WITH(a_killed_run_ends_with_the_same_bytes, folder_new, program_teardown) {
    survive_kills(state,
                  "image train shapes:160:3:12x12x1 --objective match --size 12 --dim 12 --heads 2 "
                  "--head-dim 4 --memories 16 --batch 4 --quiet --epochs 12 --threads 1",
                  1, 60, 0);
}

TEST_WITH(what_is_refused, folder_new, program_teardown) {
    static const char *const line[][2] = {
        {"--arch vit", "arch is vit, whose layers have no energy; expected et, or field free"},
        {"--steps 3", "steps has no effect with objective match"},
        {"--alpha 0.2", "alpha has no effect with objective match"},
        {"--occlude 6", "occlude has no effect with objective match"},
        {"--holes 0.5", "holes has no effect with objective match"},
        {"--keep 0.5", "keep has no effect with objective match"},
        {"--cls", "cls has no effect with objective match"},
        {"--field free --scales 2", "scales has no effect with field free"},
    };
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        assert_error(run(state, TINY "-o m.safetensors %s", line[i][0]), 1, line[i][1]);
    assert_error(run(state, "image train shapes:64 --field free -q"), 1,
                 "field has no effect with objective complete");
    run_ok(state, "image train shapes:64:3:12x12x1 --dim 8 --heads 1 --head-dim 8 --memories 8 "
                  "--steps 2 --batch 16 --epochs 1 -q -o c.safetensors");
    assert_error(run(state, "image sample c.safetensors -q"), 1, "expected objective match");
    assert_error(
        run(state, "image complete c.safetensors shapes:1:1:12x12x1 --samples 2 --mask 1,1,5,5 -q"),
        2, "--samples needs a model of objective match");
}

int main(void) { return tests_run(folder_new, program_teardown); }
