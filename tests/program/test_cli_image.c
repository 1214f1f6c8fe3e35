/* basin image: training, completing, scoring, from the command line. */
#include "program/kill.h"

#define TINY                                                                                       \
    "--size 16 --dim 16 --heads 2 --head-dim 8 --memories 32 --steps 3 --occlude 6 --keep 1 "      \
    "--batch 16 --warmup 1 --threads 1 --quiet"

TEST_WITH(train_complete_and_eval, folder_new, program_teardown) {
    const program *p =
        run(state, "image train shapes:96:3:16x16x3 " TINY
                   " --channels 3 --epochs 2 --hold-out 16 -o m.safetensors --log m.jsonl --json");
    cJSON *json = run_json(p);
    assert_true(json_number(json, "parameters") > 1000);
    assert_true(json_number(json, "steps") == 10);
    assert_true(json_number(json, "validation.test_mse") > 0);
    assert_true(json_number(json, "mean_mse") > 0);
    assert_true(json_number(json, "loss") > 0 && json_number(json, "epochs") == 2);
    assert_true(json_number(json, "items_per_second") > 0 && json_number(json, "memory_bytes") > 0);

    p = run_ok(state, "info m.safetensors");
    assert_contains(p->out, "basin.config");

    json =
        run_json(run(state, "image eval m.safetensors shapes:96:3:16x16x3 --hold-out 16 --masks 3 "
                            "--json --quiet"));
    assert_true(json_number(json, "pictures") == 16);
    assert_true(json_number(json, "mse") > 0 && json_number(json, "psnr") > 0);
    assert_true(json_number(json, "mse_deviation") > 0);
    assert_true(json_number(json, "best.0.mse") <= json_number(json, "worst.0.mse"));

    p = run_ok(state, "image complete m.safetensors shapes:3:9:16x16x3 --mask 4,4,8,8 -o out");
    assert_contains(p->out, "out/shapes:3:9:16x16x3-2.completed.png\n");
    p = run(
        state,
        "image complete m.safetensors shapes:1:9:16x16x3 shapes:1:9:16x16x3 --mask 4,4,8,8 -o out");
    assert_contains(p->out, "out/shapes:1:9:16x16x3-0.completed.png");
    assert_contains(p->out, "out/shapes:1:9:16x16x3-0-2.completed.png");
    assert_error(run(state, "image complete m.safetensors shapes:3:9:16x16x3 --mask 1,2,3"), 1,
                 "--mask 1,2,3: needs four whole numbers");
    char line[PATH_TEXT + 20];
    snprintf(line, sizeof line, "rm -r '%s/out'", (const char *)*state);
    assert_int_equal(system(line), 0);
}

static double eval_mse(void **state, const char *more) {
    char line[400];
    snprintf(line, sizeof line, "image eval m.safetensors shapes:20:9:16x16x1 --masks 1 --json %s",
             more);
    cJSON *json = run_json(run(state, line));
    double mse = json_number(json, "mse");
    assert_true(json_number(json, "trained_on") == 0);
    assert_true(json_number(json, "mean_mse") > 0.1);
    return mse;
}

/* What changes the descent, or what is hidden, changes the score; what repeats the model does not.
 */
TEST_WITH(scores_follow_the_descent_asked_for, folder_new, program_teardown) {
    run_ok(state, "image train shapes:96:3:16x16x1 " TINY
                  " --epochs 2 --hold-out 16 --quiet -o m.safetensors");
    double plain = eval_mse(state, "");
    assert_true(eval_mse(state, "--steps 3 --alpha 0.1") == plain);
    assert_true(eval_mse(state, "--steps 9") != plain);
    assert_true(eval_mse(state, "--alpha 0.01") != plain);
    assert_true(eval_mse(state, "--ratio 0.375") == plain); /* 6 of 16 */
    assert_true(eval_mse(state, "--ratio 0.9") != plain);
    assert_true(eval_mse(state, "--mask holes") != plain);
    assert_error(run(state, "image eval m.safetensors shapes:20 --mask holes --ratio 0.5"), 2,
                 "--ratio has no effect with --mask holes");
    const program *p = run(state, "image eval m.safetensors shapes:96:3:16x16x1 --part train");
    assert_field(p->out, "trained on", "80");
    assert_contains(p->out, "of the mean colour");
    p = run_ok(state,
               "image complete m.safetensors shapes:4:1:16x16x1 --mask 4,4,8,8 -o pictures -q");
    p = run(state, "image eval m.safetensors pictures --part train");
    assert_contains(p->err, "--part train has no effect");
    assert_error(run(state, "image eval m.safetensors shapes:95:3:16x16x1 --hold-out 16"), 1,
                 "pictures that hold_out chooses were trained on");
    assert_contains(run(state, "info m.safetensors")->out, "\"paths\":[\"shapes:96:3:16x16x1\"]");
}

/* A model to begin with brings its settings; pictures that do not suit the channels are noted. */
TEST_WITH(settings_come_from_the_model_to_begin_with, folder_new, program_teardown) {
    run_ok(state, "image train shapes:40:3:16x16x1 " TINY " --epochs 1 --quiet -o m.safetensors");
    const program *p = run_ok(state, "image train shapes:20:4:24x24x3 --from m.safetensors "
                                     "--epochs 1 --batch 4 -o n.safetensors");
    assert_contains(p->err, "settings of m.safetensors, 1 channel, 16 pixels, batch 4");
    assert_contains(p->err, "channels is 1, and the pictures are in colour");
    assert_contains(run(state, "info n.safetensors")->out, "\"from\":\"m.safetensors\"");
    assert_error(run(state, "image train shapes:20 --from m.safetensors --dim 24 -q -o o.st"), 1,
                 "m.safetensors: its dim is 16, requested is 24");
}

TEST_WITH(a_run_that_nothing_validates_has_no_best_epoch, folder_new, program_teardown) {
    const program *p =
        run(state, "image train shapes:32:3:16x16x3 " TINY " --channels 3 --epochs 1 -o m --json");
    assert_true(json_number(run_json(p), "epochs") == 1);
    assert_null(strstr(p->out, "best_epoch"));
    assert_null(strstr(p->out, "validation"));
}

TEST(presets_are_overridden_by_flags) {
    const program *p = run(state, "image train --alpha 0.5 --preset paper-imagenet --print-config");
    cJSON *json = run_json(p);
    assert_true(json_number(json, "settings.alpha") == 0.5);
    assert_true(json_number(json, "settings.dim") == 768);
    assert_true(json_number(json, "settings.batch") == 768);
    assert_true(json_number(json, "settings.rate_first") == 5e-7);
}

/* With pictures the run is rehearsed, and nothing is written. What is printed can be read back. */
TEST_WITH(the_configuration_says_what_a_run_takes, folder_new, program_teardown) {
    const program *p =
        run(state, "image train shapes:96:3:16x16x1 " TINY " --epochs 3 --print-config");
    cJSON *json = run_json(p);
    assert_true(json_number(json, "settings.dim") == 16);
    assert_true(json_number(json, "estimate.parameters") > 1000);
    assert_true(json_number(json, "estimate.steps") == 18);
    assert_true(json_number(json, "estimate.seconds") > 0);
    folder_put(state, "c.json", p->out);
    json = run_json(run(state, "image train --config c.json --print-config"));
    assert_true(json_number(json, "settings.occlude") == 6);
    assert_null(cJSON_GetObjectItemCaseSensitive(json, "estimate"));
    assert_int_equal(folder_count(state), 1);
}

TEST(wrong_input_is_told_in_a_line) {
    assert_error(run(state, "image train nowhere -o x.safetensors"), 1, "nowhere");
    assert_error(run(state, "image train shapes:40 --patch 5 -q"), 1, "patch is 5");
    assert_error(run(state, "image train shapes:40 --preset fashion --quiet"), 1,
                 "batch is 256; expected at most 40");
    assert_error(run(state, "image train shapes:40 --no-attention --heads 4 -q"), 1,
                 "heads has no effect with attention off; leave it out");
    assert_error(run(state, "image train shapes:40 --no-hopfield --memories 9 -q"), 1,
                 "memories has no effect with hopfield off; leave it out");
    assert_error(run(state, "image train shapes:40 --batch 20 --score-every 2 -q"), 1,
                 "score_every is 2, but there is no data for validation");
    assert_error(run(state, "image train"), 2, "needs data to train on");
    assert_error(run(state, "image train shapes:40 --preset large"), 2, "large");
    assert_error(run(state, "image eval m.safetensors shapes:40"), 1, "m.safetensors");
    assert_error(run(state, "image complete nothing.safetensors shapes:40"), 1,
                 "nothing.safetensors");
}

/* Trains a model of 2913 floats where the folder `small` is a file system of that many KiB; the
 * exit code. */
static int train_on_small_disk(void **state, int size, const char *options) {
    char words[1000];
    snprintf(words, sizeof words,
             "unshare -m sh -c 'mkdir -p small; mount -t tmpfs -o size=%dk none small && exec "
             "%s image train shapes:32:3:16x16x3 --channels 3 --epochs 2 %s -o small/m.safetensors "
             "%s'",
             size, BASIN_PROGRAM, TINY, options);
    return run_for(state, 300, "", words);
}

static void assert_said(void **state, const char *wanted) {
    char text[1000];
    slurp(text, sizeof text, folder_path(state, ".err"));
    assert_contains(text, wanted);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

TEST_WITH(a_full_disk_costs_no_training, folder_new, program_teardown) {
    char log[100];
    assert_error(run(state, "image train shapes:32 -o /dev/full " TINY), 1,
                 "/dev/full: cannot write: No space left on device");
    if (system("unshare -m true 2>/dev/null") != 0) {
        print_message("no mounts here\n");
        skip();
    }
    folder_put(state, "l.jsonl", "earlier\n");
    assert_int_equal(train_on_small_disk(state, 8, "--log l.jsonl"), 1);
    assert_said(state, "m.safetensors: needs 11652 bytes, its file system has 8192 free");
    slurp(log, sizeof log, folder_path(state, "l.jsonl"));
    assert_string_equal(log, "earlier\n");
    /* the weights have space, not what else is in the file; nor a second one, or checkpoint */
    assert_int_equal(train_on_small_disk(state, 12, ""), 1);
    assert_said(state, "No space left on device; there is no checkpoint");
    assert_int_equal(train_on_small_disk(state, 20, ""), 0);
    assert_said(state, "note: the model lacks the command that trained it: small/m.safetensors");
    assert_int_equal(train_on_small_disk(state, 64, "--save-every 0"), 1);
    assert_said(state, "No space left on device; the last checkpoint is kept, and resume");
}

TEST_WITH(a_killed_run_ends_with_the_same_bytes, folder_new, program_teardown) {
    survive_pictures(state, 5, 2);
}

int main(void) { return tests_run(folder_new, program_teardown); }
