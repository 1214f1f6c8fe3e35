/* What the one run gives to pictures: fine-tuning, averages, models and
 * pictures that stay in memory; and what is refused before the first step. */
#include <math.h>

#include "tasks/pictures/image_bench.h"

TEST(every_kind_trains_and_opens_again) {
    static const struct {
        const char *name, *value;
    } trial[][2] = {{{"hopfield_kind", "relu"}, {"beta", "0.3"}},
                    {{"hopfield_kind", "power"}, {"hopfield_power", "4"}},
                    {{"hopfield_kind", "softmax"}, {"learn_beta", "on"}}};
    for (int i = 0; i < 3; i++) {
        bench b;
        basin_image_model *model;
        bench_tiny(&b, state, "kind");
        for (int k = 0; k < 2; k++)
            assert_ok(
                basin_settings_set(b.settings, trial[i][k].name, trial[i][k].value, &failure));
        basin_training_result o = bench_train(&b, -1, false);
        assert_true(isfinite(o.loss) && o.loss < 1.2);
        assert_ok(basin_image_open(&model, b.out, b.training.backend, &failure));
        for (int k = 0; k < 2; k++) {
            char text[40];
            assert_ok(basin_settings_get(text, sizeof text, basin_image_get_info(model)->settings,
                                         trial[i][k].name, &failure));
            assert_string_equal(text, trial[i][k].value);
        }
        basin_image_evaluate_result scores = {0};
        basin_image_evaluate_options scoring = {.source = &b.train, .fast = true};
        assert_ok(basin_image_evaluate(&scores, model, &scoring, &failure));
        assert_true(fabs(scores.mse - basin_score_get(&o.best, "test_mse")) < 1e-6);
        basin_image_evaluate_result_free(&scores);
        basin_image_close(model);
        bench_close(&b);
    }
}

/* As many pictures, but others: the model would not know which it has seen. */
TEST(a_run_goes_on_with_its_pictures) {
    static const char *const others[] = {"shapes:96:4:16x16x1"};
    BASIN_AT_EXIT(bench_close) bench b;
    bench_tiny(&b, state, "others");
    b.s->epochs = 2;
    b.training.keep_checkpoint = true;
    bench_train(&b, -1, false);
    b.s->epochs = 4;
    b.training.resume = true;
    b.train.path = others;
    bench_refused(&b, BASIN_BAD_VALUE, "its run trains on other images than these");
}

/* A run of no epochs that begins with a model is that model, statistics included. */
TEST(a_model_is_a_beginning) {
    BASIN_AT_EXIT(bench_close) bench first, tuned;
    bench_tiny(&first, state, "first");
    bench_train(&first, -1, false);
    bench_tiny(&tuned, state, "tuned");
    tuned.training.from = first.out;
    tuned.train.limit = 40; /* other pictures: measured anew, the statistics would differ */
    tuned.s->epochs = 0;
    bench_train(&tuned, -1, false);
    basin_bundle *a, *b;
    assert_ok(basin_bundle_read(&a, first.out, &failure));
    assert_ok(basin_bundle_read(&b, tuned.out, &failure));
    for (size_t i = 0; i < basin_bundle_count(a); i++) {
        const basin_tensor *x = basin_bundle_at(a, i), *y;
        if (!strcmp(basin_bundle_name(a, i), "trained_on")) continue;
        assert_ok(basin_bundle_get(&y, b, basin_bundle_name(a, i), &failure));
        assert_memory_equal(x->data, y->data, basin_tensor_bytes(x));
    }
    basin_image_settings x, y;
    assert_ok(basin_settings_take(&x, &basin_image_task, a, &failure));
    assert_ok(basin_settings_take(&y, &basin_image_task, b, &failure));
    assert_true(x.mean[0] == y.mean[0] && x.deviation[0] == y.deviation[0]);
    basin_bundle_free(a);
    basin_bundle_free(b);
    tuned.s->epochs = 1;
    basin_training_result o = bench_train(&tuned, -1, false);
    tuned.training.from = NULL;
    basin_training_result anew = bench_train(&tuned, -1, false);
    assert_true(o.loss < 0.97 * anew.loss);
    tuned.training.from = first.out;
    tuned.s->dim = 24;
    bench_refused(&tuned, BASIN_BAD_SHAPE, "first.safetensors");
}

/* What is told of a run is what its file scores: the averages', whose weights differ. */
TEST(averages_are_scored_and_kept) {
    BASIN_AT_EXIT(bench_close) bench plain, mean;
    basin_image_model *model;
    BASIN_AT_EXIT(basin_image_evaluate_result_free) basin_image_evaluate_result scores = {0};
    bench_tiny(&plain, state, "plain");
    bench_tiny(&mean, state, "mean");
    mean.s->average = 0.9;
    basin_training_result o = bench_train(&plain, -1, false);
    double without = basin_score_get(&o.best, "test_mse");
    basin_training_result a = bench_train(&mean, -1, false);
    assert_true(o.loss == a.loss); /* the weights that learn are the same */
    assert_true(basin_score_get(&a.best, "test_mse") != without);
    basin_image_evaluate_options scoring = {.source = &mean.train, .fast = true};
    assert_ok(basin_image_open(&model, mean.out, mean.training.backend, &failure));
    assert_ok(basin_image_evaluate(&scores, model, &scoring, &failure));
    assert_true(scores.mse == basin_score_get(&a.best, "test_mse"));
    basin_image_close(model);
}

/* Positions are of patches, and weights of their sizes. */
TEST(a_model_of_another_size_is_no_beginning) {
    BASIN_AT_EXIT(bench_close) bench first, large;
    bench_tiny(&first, state, "small");
    bench_train(&first, -1, false);
    bench_tiny(&large, state, "large");
    large.training.from = first.out;
    large.s->size = 32;
    bench_refused(&large, BASIN_BAD_SHAPE, "its size is 16, requested is 32");
}

/* Neither pictures nor model need a file; what was learnt by an interrupt is in the model. */
TEST(all_stays_in_memory) {
    enum { COUNT = 40, SIDE = 16 };
    BASIN_AT_EXIT(bench_close) bench b;
    basin_picture picture[COUNT] = {0};
    basin_pictures *pictures;
    basin_image_model *model;
    basin_training_result outcome = {.size = sizeof outcome};
    float value[SIDE * SIDE];
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < SIDE * SIDE; k++)
            value[k] = (float)((k / SIDE * i + k % SIDE) % 7) / 7.0F;
        assert_ok(basin_picture_from_floats(&picture[i], value, SIDE, SIDE, 1, &failure));
    }
    assert_ok(basin_pictures_from_memory(&pictures, picture, COUNT, &failure));
    for (int i = 0; i < COUNT; i++) basin_picture_free(&picture[i]);
    bench_tiny(&b, state, "nothing");
    b.train = (basin_image_source){.pictures = pictures};
    b.training.output = b.training.log = NULL;
    b.stop_at = 3;
    assert_ok(
        basin_image_train(&model, &outcome, NULL, b.settings, &b.data, &b.training, &failure));
    assert_true(outcome.stopped && outcome.steps == 3);
    assert_int_equal(basin_image_get_info(model)->parameters, outcome.parameters);
    basin_image_evaluate_result scores = {0};
    basin_image_evaluate_options scoring = {.source = &b.train};
    assert_ok(basin_image_evaluate(&scores, model, &scoring, &failure));
    assert_true(scores.pictures == COUNT && isfinite(scores.mse) && isfinite(scores.psnr));
    basin_image_evaluate_result_free(&scores);
    basin_image_close(model);
    basin_pictures_close(pictures);
    assert_int_equal(access(b.out, F_OK), -1);
}

TEST(what_cannot_be_trained_is_refused) {
    BASIN_AT_EXIT(bench_close) bench b;
    bench_tiny(&b, state, "few");
    b.s->batch = 500;
    bench_refused(&b, BASIN_BAD_VALUE, "batch is 500; expected at most 80,");
    b.s->batch = 16;
    b.training.memory = 1000;
    bench_refused(&b, BASIN_NO_MEMORY, "use batch 1 or so instead of 16, or recompute");
    b.training.memory = 0;
    b.train.hold_out = 0;
    b.s->patience = 3;
    bench_refused(&b, BASIN_BAD_VALUE, "patience is 3 without pictures to score");
    b.s->patience = 0;
    b.train.hold_out = 16;
    b.data.test = &b.train;
    bench_refused(&b, BASIN_BAD_VALUE, "hold_out is 16 and there are test pictures");
    b.data.test = NULL;
    b.train.path = NULL;
    bench_refused(&b, BASIN_BAD_VALUE, "neither a collection nor a path");
    b.training.output = "/nowhere/m.safetensors"; /* told before the pictures are looked at */
    bench_refused(&b, BASIN_IO, "/nowhere");
    basin_settings_free(b.settings);
    assert_ok(basin_settings_new(&b.settings, "graphs", NULL, &failure));
    bench_refused(&b, BASIN_BAD_VALUE, "settings of the task graphs, needs those of image");
}

int main(void) { return tests_run(folder_new, folder_remove); }
