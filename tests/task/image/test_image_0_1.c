/* Files of 0.1 (tests/files-0.1): the model opens and is what it was, and its run, cut at step 11,
 * ends with the same weights. */
#include <math.h>

#include "task/image/image_bench.h"

static const char model_0_1[] = BASIN_SOURCE "/tests/files-0.1/image.safetensors";
static const char checkpoint_0_1[] = BASIN_SOURCE "/tests/files-0.1/image.checkpoint";

/* The settings of tests/files-0.1/README.md. */
static void as_then(bench *b, void **state) {
    static const char *const shapes[] = {"shapes:64"};
    bench_open(b, state, "resumed", "cpu");
    basin_image_settings *s = b->s;
    s->size = 8, s->patch = 4, s->dim = 8, s->heads = 1, s->head_dim = 8, s->memories = 8;
    s->steps = 2, s->occlude = 2, s->keep = 0, s->batch = 8, s->epochs = 3, s->warmup = 0;
    b->train =
        (basin_image_source){.size = sizeof b->train, .path = shapes, .paths = 1, .split = "train"};
    b->training.log_every = 4;
}

static void copy_file(const char *to, const char *from) {
    size_t size;
    char *bytes = slurp(&size, from);
    assert_int_equal(file_put(to, bytes, size), 0);
    free(bytes);
}

/* What 0.1 printed: basin image eval image.safetensors shapes:64 --split all --masks 2 --json. */
static void the_model_of_0_1_opens(void **state) {
    bench b;
    basin_error error = {0};
    basin_image_model *model;
    basin_image_scores scores;
    as_then(&b, state);
    b.train.split = NULL;
    basin_image_scoring scoring = {.size = sizeof scoring, .source = &b.train, .masks = 2};
    must(basin_image_open(&model, model_0_1, b.training.backend, &error), &error);
    must(basin_image_score(&scores, model, &scoring, &error), &error);
    assert_int_equal(scores.pictures, 64);
    assert_true(fabs(scores.mse - 0.64131321) < 1e-5);
    assert_true(fabs(scores.psnr - 19.345799) < 1e-3);
    basin_image_scores_free(&scores);
    basin_image_close(model);
    bench_close(&b);
}

static void the_run_of_0_1_goes_on(void **state) {
    bench b;
    basin_error error = {0};
    char path[PATH_TEXT + 20];
    basin_bundle *then, *now;
    as_then(&b, state);
    snprintf(path, sizeof path, "%s.checkpoint", b.out);
    copy_file(path, checkpoint_0_1);
    basin_outcome o = bench_train(&b, -1, true);
    assert_true(o.resumed && o.steps == 24);
    must(basin_bundle_read(&then, model_0_1, &error), &error);
    must(basin_bundle_read(&now, b.out, &error), &error);
    assert_int_equal(basin_bundle_count(then) + 1, basin_bundle_count(now)); /* "trained_on" */
    for (size_t i = 0; i < basin_bundle_count(then); i++) {
        const basin_tensor *x = basin_bundle_at(then, i), *y;
        must(basin_bundle_get(&y, now, basin_bundle_name(then, i), &error), &error);
        assert_true(basin_shape_equal(x->shape, y->shape));
        for (int64_t k = 0; k < basin_shape_count(x->shape); k++)
            assert_true(fabs(basin_tensor_at(x, k) - basin_tensor_at(y, k)) < 1e-5);
    }
    basin_bundle_free(then);
    basin_bundle_free(now);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_of_0_1_opens),
        cmocka_unit_test(the_run_of_0_1_goes_on),
    };
    return cmocka_run_group_tests(tests, folder_new, folder_remove);
}
