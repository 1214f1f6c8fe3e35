/* Training on generated pictures: it learns, and a run that is stopped at any step and resumed ends
 * with the same model file, byte for byte, as one that was not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "basin/metrics.h"
#include "io/folder.h"
#include "task/image/eval.h"
#include "task/image/train.h"

static const char *const shapes[] = {"shapes:96:3:16x16x1"};

typedef struct bench {
    basin_image_run run;
    basin_watch watch;
    volatile sig_atomic_t stop;
    int64_t stop_at;
    char out[PATH_TEXT], log[PATH_TEXT];
} bench;

static void must(basin_status status, const basin_error *error) {
    if (status) fail_msg("%s", error->text);
}

static void stop_there(void *context, const basin_news *news) {
    bench *b = context;
    if (strcmp(news->what, "training") == 0 && news->done == b->stop_at) b->stop = 1;
}

static basin_image_settings tiny(void) {
    basin_image_settings s;
    basin_image_task.fill(&s, "fashion");
    s.size = 16;
    s.dim = 16;
    s.heads = 2;
    s.head_dim = 8;
    s.memories = 32;
    s.steps = 3;
    s.occlude = 6;
    s.keep = 1;
    s.batch = 16;
    s.epochs = 4;
    s.warmup = 1;
    s.rate = 5e-3;
    s.crop = "random";
    s.flip = true;
    s.jitter = 0.2;
    return s;
}

static void bench_open(bench *b, void **state, const char *name) {
    basin_error error = {0};
    char file[40];
    *b = (bench){.stop_at = -1};
    snprintf(file, sizeof file, "%s.safetensors", name);
    folder_path(b->out, state, file);
    snprintf(file, sizeof file, "%s.jsonl", name);
    folder_path(b->log, state, file);
    b->watch = (basin_watch){.show = stop_there, .context = b, .stop = &b->stop};
    b->run = (basin_image_run){
        .settings = tiny(),
        .train = {.path = shapes, .paths = 1, .hold_out = 16, .seed = 1},
        .test = {.path = shapes, .paths = 1, .hold_out = 16, .held = true, .seed = 1},
        .out = b->out,
        .log = b->log,
        .save_every = 1e9,
        .loader_threads = 2,
        .watch = &b->watch,
    };
    must(basin_backend_open(&b->run.backend, "cpu", 1, &error), &error);
}

static basin_image_outcome train(bench *b) {
    basin_error error = {0};
    basin_image_outcome outcome;
    b->stop = 0;
    must(basin_image_train(&outcome, &b->run, &error), &error);
    return outcome;
}

static size_t slurp(char *text, size_t size, const char *path) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t got = fread(text, 1, size, file);
    fclose(file);
    assert_true(got < size);
    return got;
}

static void same_file(const char *a, const char *b) {
    enum { MOST = 1 << 20 };
    char *x = malloc(MOST), *y = malloc(MOST);
    assert_true(x && y);
    size_t size = slurp(x, MOST, a);
    assert_int_equal(size, slurp(y, MOST, b));
    assert_memory_equal(x, y, size);
    free(x);
    free(y);
}

static int count_lines(const char *path) {
    int lines = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    for (int c; (c = fgetc(file)) != EOF;) lines += c == '\n';
    fclose(file);
    return lines;
}

static void training_learns(void **state) {
    bench b;
    bench_open(&b, state, "whole");
    basin_image_outcome o = train(&b);
    assert_false(o.stopped || o.resumed);
    assert_int_equal(o.pictures, 80);
    assert_int_equal(o.steps, 20);
    assert_true(o.test_mse < 0.97); /* the mean picture has about 1 */
    assert_int_not_equal(access(b.log, F_OK), -1);
    basin_backend_close(b.run.backend);
}

static void a_stopped_run_resumes_to_the_same_bytes(void **state) {
    bench whole, cut;
    char checkpoint[PATH_TEXT + 20];
    bench_open(&whole, state, "whole");
    train(&whole);
    bench_open(&cut, state, "cut");
    snprintf(checkpoint, sizeof checkpoint, "%s.checkpoint", cut.out);
    const int64_t stops[] = {1, 5, 13};
    for (int i = 0; i < 3; i++) {
        cut.run.resume = i > 0;
        cut.stop_at = stops[i];
        basin_image_outcome o = train(&cut);
        assert_true(o.stopped);
        assert_int_equal(o.steps, stops[i]);
        assert_int_equal(access(checkpoint, F_OK), 0);
    }
    cut.run.resume = true;
    cut.stop_at = -1;
    basin_image_outcome o = train(&cut);
    assert_true(o.resumed && !o.stopped);
    assert_int_equal(access(checkpoint, F_OK), -1);
    same_file(whole.out, cut.out);
    o = train(&cut);
    assert_true(o.finished_before);
    basin_backend_close(whole.run.backend);
    basin_backend_close(cut.run.backend);
}

/* Generated pictures are never reduced: where crops are cut from changes nothing, and a run goes on
 * with what it began with. */
static void kept_pictures_train_the_same(void **state) {
    bench plain, kept;
    basin_error error = {0};
    basin_image_outcome outcome;
    bench_open(&plain, state, "plain");
    plain.run.keep = "off";
    basin_image_outcome o = train(&plain);
    assert_string_equal(o.keep, "off");
    assert_string_equal(o.cut, "files");
    bench_open(&kept, state, "kept");
    kept.run.keep = "host";
    kept.run.test_every = 3;
    kept.run.log_every = 1;
    kept.stop_at = 7;
    o = train(&kept);
    assert_string_equal(o.keep, "host");
    assert_string_equal(o.cut, "whole");
    kept.run.resume = true;
    kept.stop_at = -1;
    kept.run.cut = "reduced";
    assert_int_equal(basin_image_train(&outcome, &kept.run, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "its crops are cut from 'whole', wanted 'reduced'"));
    kept.run.cut = "auto";
    kept.run.keep = "off";
    o = train(&kept);
    assert_string_equal(o.keep, "off");
    assert_string_equal(o.cut, "whole");
    same_file(plain.out, kept.out);
    assert_int_equal(count_lines(kept.log), 20 + 4);
    kept.run.resume = false;
    kept.run.keep = "device";
    assert_int_equal(basin_image_train(&outcome, &kept.run, &error), BASIN_UNSUPPORTED);
    assert_non_null(strstr(error.text, "wanted --keep-decoded auto, off or host"));
    basin_backend_close(plain.run.backend);
    basin_backend_close(kept.run.backend);
}

static void another_configuration_does_not_resume(void **state) {
    bench b;
    basin_error error = {0};
    basin_image_outcome outcome;
    bench_open(&b, state, "other");
    b.stop_at = 2;
    train(&b);
    b.run.resume = true;
    b.run.settings.alpha = 0.2;
    assert_int_equal(basin_image_train(&outcome, &b.run, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "its run has alpha"));
    basin_backend_close(b.run.backend);
}

static void too_few_pictures_are_refused(void **state) {
    bench b;
    basin_error error = {0};
    basin_image_outcome outcome;
    bench_open(&b, state, "few");
    b.run.settings.batch = 500;
    assert_int_equal(basin_image_train(&outcome, &b.run, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "80 pictures to train on, wanted at least a batch of 500"));
    basin_backend_close(b.run.backend);
}

/* "+-" is the population deviation of what each mask seed gives by itself, as for folds. */
static void deviations_are_between_masks(void **state) {
    enum { MASKS = 3 };
    bench b;
    basin_error error = {0};
    basin_image_session session;
    basin_image_data data;
    basin_image_scores all;
    double mse[MASKS], psnr[MASKS], mean, deviation;
    bench_open(&b, state, "whole");
    basin_image_settings s = tiny();
    s.mean[0] = 0.5;
    s.deviation[0] = 0.25;
    must(basin_image_session_new(&session, &s, b.run.backend, &error), &error);
    must(basin_image_data_open(&data, &b.run.test, &error), &error);
    basin_image_scoring scoring = {.data = &data, .masks = MASKS, .batch = 16, .pictures = true};
    must(basin_image_score(&all, &session, &scoring, &error), &error);
    for (int m = 0; m < MASKS; m++) {
        basin_image_scores one;
        scoring.masks = 1, scoring.first_mask = (uint64_t)m;
        must(basin_image_score(&one, &session, &scoring, &error), &error);
        mse[m] = one.mse, psnr[m] = one.psnr;
        assert_float_equal(one.mse_deviation, 0, 0);
        basin_image_scores_free(&one);
    }
    basin_mean_deviation(&mean, &deviation, mse, MASKS);
    assert_true(deviation > 0);
    assert_float_equal(all.mse, mean, 1e-12);
    assert_float_equal(all.mse_deviation, deviation, 1e-12);
    basin_mean_deviation(&mean, &deviation, psnr, MASKS);
    assert_float_equal(all.psnr, mean, 1e-9);
    assert_float_equal(all.psnr_deviation, deviation, 1e-9);
    basin_image_scores_free(&all);
    basin_image_data_close(&data);
    basin_image_session_close(&session);
    basin_backend_close(b.run.backend);
}

static void scores_do_not_depend_on_the_batch(void **state) {
    bench b;
    basin_error error = {0};
    basin_image_session session;
    basin_image_data data;
    basin_image_scores one, many;
    bench_open(&b, state, "whole");
    basin_image_settings s = tiny();
    s.mean[0] = 0.5;
    s.deviation[0] = s.deviation[1] = s.deviation[2] = 0.25;
    must(basin_image_session_new(&session, &s, b.run.backend, &error), &error);
    must(basin_image_data_open(&data, &b.run.test, &error), &error);
    basin_image_scoring scoring = {.data = &data, .masks = 3, .batch = 5};
    must(basin_image_score(&one, &session, &scoring, &error), &error);
    scoring.batch = 16;
    must(basin_image_score(&many, &session, &scoring, &error), &error);
    assert_int_equal(one.pictures, 16);
    assert_true(fabs(one.mse - many.mse) < 1e-6 && one.mse_deviation > 0);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(one.index[i], many.index[i]);
        assert_true(fabs(one.picture_mse[i] - many.picture_mse[i]) < 1e-5);
    }
    basin_image_scores_free(&one);
    basin_image_scores_free(&many);
    basin_image_data_close(&data);
    basin_image_session_close(&session);
    basin_backend_close(b.run.backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_learns),
        cmocka_unit_test(a_stopped_run_resumes_to_the_same_bytes),
        cmocka_unit_test(kept_pictures_train_the_same),
        cmocka_unit_test(another_configuration_does_not_resume),
        cmocka_unit_test(too_few_pictures_are_refused),
        cmocka_unit_test(deviations_are_between_masks),
        cmocka_unit_test(scores_do_not_depend_on_the_batch),
    };
    return cmocka_run_group_tests(tests, folder_new, folder_remove);
}
