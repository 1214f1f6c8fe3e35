/* Training on generated pictures: it learns, and a run that is stopped at any step and resumed ends
 * with the same model file, byte for byte, and the same log as one that was not. Scores. */
#include <math.h>

#include "basin/tasks/metrics.h"
#include "tasks/pictures/image_bench.h"

TEST(training_learns) {
    BASIN_AT_EXIT(bench_close) bench b;
    bench_tiny(&b, state, "whole");
    basin_training_result o = bench_train(&b, -1, false);
    assert_false(o.stopped || o.resumed);
    assert_int_equal(b.read.pictures, 80);
    assert_int_equal(o.steps, 20);
    assert_int_equal(o.epochs, 4);
    assert_true(basin_score_get(&o.best, "test_mse") < 0.97); /* the mean picture has about 1 */
}

TEST(a_stopped_run_resumes_to_the_same_bytes) {
    BASIN_AT_EXIT(bench_close) bench whole, cut;
    char checkpoint[PATH_TEXT + 20];
    bench_tiny(&whole, state, "whole");
    bench_tiny(&cut, state, "cut");
    whole.s->holes = cut.s->holes = 0.4;
    whole.s->average = cut.s->average = 0.8;
    whole.training.log_every = cut.training.log_every = 3; /* cuts lie between such lines */
    basin_training_result a = bench_train(&whole, -1, false);
    snprintf(checkpoint, sizeof checkpoint, "%s.checkpoint", cut.out);
    const int64_t stops[] = {1, 5, 13};
    for (int i = 0; i < 3; i++) {
        basin_training_result o = bench_train(&cut, stops[i], i > 0);
        assert_true(o.stopped);
        assert_int_equal(o.steps, stops[i]);
        assert_int_equal(access(checkpoint, F_OK), 0);
    }
    basin_training_result o = bench_train(&cut, -1, true);
    assert_true(o.resumed && !o.stopped);
    assert_true(o.loss == a.loss);
    assert_int_equal(access(checkpoint, F_OK), -1);
    same_file(whole.out, cut.out);
    char *one = timeless(whole.log), *two = timeless(cut.log);
    assert_non_null(strstr(one, "\"epoch\":4,\"test_mse\":"));
    assert_string_equal(one, two);
    free(one);
    free(two);
    o = bench_train(&cut, -1, true);
    assert_true(o.finished_before);
    assert_int_equal(o.parameters, a.parameters);
}

static void bench_resting(bench *b, void **state, const char *name) {
    bench_tiny(b, state, name);
    b->s->implicit = true;
    b->s->alpha = 0.5;
    b->s->rate = 2e-3, b->s->epochs = 8, b->s->crop = "none", b->s->jitter = 0;
    b->training.log_every = 3;
}

/* At rest points, too; the model file says how to descend. */
TEST(rest_points_are_trained_and_resumed) {
    BASIN_AT_EXIT(bench_close) bench whole, cut;
    bench_resting(&whole, state, "whole");
    bench_resting(&cut, state, "cut");
    basin_image_model *model;
    basin_training_result a = bench_train(&whole, -1, false);
    assert_true(basin_score_get(&a.best, "test_mse") < 0.9); /* 0.96 after an epoch */
    bench_train(&cut, 7, false);
    basin_training_result o = bench_train(&cut, -1, true);
    assert_true(o.resumed && o.loss == a.loss);
    same_file(whole.out, cut.out);
    char *one = timeless(whole.log), *two = timeless(cut.log);
    assert_string_equal(one, two);
    free(one);
    free(two);
    assert_ok(basin_image_open(&model, whole.out, whole.training.backend, &failure));
    assert_true(model->settings.implicit);
    basin_image_close(model);
}

/* "+-" is the population deviation of what each mask seed gives by itself, as for folds. */
TEST(deviations_are_between_masks) {
    enum { MASKS = 3 };
    BASIN_AT_EXIT(bench_close) bench b;
    basin_image_model *model;
    BASIN_AT_EXIT(basin_image_evaluate_result_free) basin_image_evaluate_result all = {0};
    double mse[MASKS], psnr[MASKS], mean, deviation;
    bench_tiny(&b, state, "whole");
    basin_image_settings s = *b.s;
    s.mean[0] = 0.5;
    s.deviation[0] = 0.25;
    assert_ok(basin_image_model_new(&model, &s, b.training.backend, &failure));
    basin_image_evaluate_options scoring = {.source = &b.train, .masks = MASKS, .batch = 16};
    assert_ok(basin_image_evaluate(&all, model, &scoring, &failure));
    for (int m = 0; m < MASKS; m++) {
        basin_image_evaluate_result one = {0};
        scoring.masks = 1, scoring.first_mask = (uint64_t)m;
        assert_ok(basin_image_evaluate(&one, model, &scoring, &failure));
        mse[m] = one.mse, psnr[m] = one.psnr;
        assert_float_equal(one.mse_deviation, 0, 0);
        basin_image_evaluate_result_free(&one);
    }
    basin_mean_deviation(&mean, &deviation, mse, MASKS);
    assert_true(deviation > 0);
    assert_float_equal(all.mse, mean, 1e-12);
    assert_float_equal(all.mse_deviation, deviation, 1e-12);
    basin_mean_deviation(&mean, &deviation, psnr, MASKS);
    assert_float_equal(all.psnr, mean, 1e-9);
    assert_float_equal(all.psnr_deviation, deviation, 1e-9);
    basin_image_close(model);
}

/* The least that a model should beat, by hand: one picture, half black and half white columns. */
TEST(scores_come_with_that_of_the_mean_colour) {
    enum { SIDE = 16 };
    BASIN_AT_EXIT(bench_close) bench b;
    basin_image_model *model;
    basin_image_evaluate_result scores = {0};
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = {0};
    BASIN_AT_EXIT(free_pictures) basin_pictures *pictures;
    float value[SIDE * SIDE];
    bench_tiny(&b, state, "mean");
    for (int i = 0; i < SIDE * SIDE; i++) value[i] = (float)(i % 2);
    assert_ok(basin_picture_from_floats(&picture, value, SIDE, SIDE, 1, &failure));
    assert_ok(basin_pictures_from_memory(&pictures, &picture, 1, &failure));
    basin_image_settings s = *b.s;
    for (int c = 0; c < 3; c++) s.mean[c] = 0.25, s.deviation[c] = 0.5;
    assert_ok(basin_image_model_new(&model, &s, b.training.backend, &failure));
    basin_image_source source = {.pictures = pictures};
    basin_image_evaluate_options scoring = {.source = &source, .fast = true};
    for (int holes = 0; holes < 2; holes++) { /* every patch has the mean 0.5, (0.5 / 0.5)^2 off */
        scoring.holes = holes;
        assert_ok(basin_image_evaluate(&scores, model, &scoring, &failure));
        assert_float_equal(scores.mean_mse, 1, 1e-6);
        basin_image_evaluate_result_free(&scores);
    }
    basin_image_close(model);
}

TEST(scores_do_not_depend_on_the_batch) {
    BASIN_AT_EXIT(bench_close) bench b;
    basin_image_model *model;
    BASIN_AT_EXIT(basin_image_evaluate_result_free)
    basin_image_evaluate_result one = {0}, many = {0};
    bench_tiny(&b, state, "whole");
    basin_image_settings s = *b.s;
    s.mean[0] = 0.5;
    s.deviation[0] = s.deviation[1] = s.deviation[2] = 0.25;
    assert_ok(basin_image_model_new(&model, &s, b.training.backend, &failure));
    basin_image_evaluate_options scoring = {.source = &b.train, .masks = 3, .batch = 5};
    assert_ok(basin_image_evaluate(&one, model, &scoring, &failure));
    scoring.batch = 16;
    assert_ok(basin_image_evaluate(&many, model, &scoring, &failure));
    assert_int_equal(one.pictures, 16);
    assert_true(fabs(one.mse - many.mse) < 1e-6 && one.mse_deviation > 0);
    for (int i = 0; i < 16; i++) {
        assert_int_equal(one.index[i], many.index[i]);
        assert_true(fabs(one.picture_mse[i] - many.picture_mse[i]) < 1e-5);
    }
    basin_image_close(model);
}

int main(void) { return tests_run(folder_new, folder_remove); }
