/* basin image report --positions: one picture of several models, what it prints, models that do not
 * fit. */
#include <sys/stat.h>

#include "cli/program.h"

static void train(void **state, const char *name, const char *options) {
    run_ok(state,
           "image train shapes:32 -q --dim 16 --heads 2 --head-dim 8 --memories 20 "
           "--steps 2 --batch 16 --warmup 0 --epochs 1 --threads 1 -o %s %s",
           name, options);
}

TEST_WITH(draws_and_prints, folder_new, folder_remove) {
    char path[PATH_TEXT];
    struct stat file;
    train(state, "a.safetensors", "");
    train(state, "b.safetensors", "--beta 2 --decay 0.01");
    train(state, "c.safetensors", "--size 24");
    const program *p =
        run_ok(state, "image report a.safetensors b.safetensors --positions two.png");
    assert_contains(p->out, "1/sqrt(8)");
    assert_contains(p->out, "b.safetensors");
    assert_int_equal(stat(folder_path(path, state, "two.png"), &file), 0);
    cJSON *tree = run_json(
        run(state, "image report a.safetensors b.safetensors --positions positions.png --json"));
    assert_true(json_number(tree, "models.1.beta") == 2);
    assert_true(json_number(tree, "models.1.decay") == 0.01);
    assert_true(json_number(tree, "models.0.cosine_of_next_patches") < 1);
    assert_error(run(state, "image report a.safetensors c.safetensors --positions x.png"), 1,
                 "wanted models of one size");
    assert_error(run(state, "image report nowhere.safetensors --positions x.png"), 1, "nowhere");
    assert_error(run(state, "image report --positions x.png"), 2, "MODEL");
}
