/* What a model remembers of its training: which pictures it has seen, and its card. */
#include "tasks/pictures/image.h"

#include "basin/io.h"
#include "tasks/pictures/image_bench.h"

static const char *const others[] = {"shapes:40:9:16x16x1"};

/* The scores of the model file `path` on `source`. */
static basin_status score(basin_image_evaluate_result *scores, const bench *b, const char *path,
                          const basin_image_source *source, basin_error *error) {
    basin_image_model *model;
    basin_image_evaluate_options scoring = {.source = source, .fast = true, .watch = &b->watch};
    basin_status status = basin_image_open(&model, path, b->training.backend, error);
    if (status) return status;
    status = basin_image_evaluate(scores, model, &scoring, error);
    basin_image_close(model);
    return status;
}

static void knows(const bench *b, const char *path, const basin_image_source *source,
                  int64_t wanted) {
    basin_image_evaluate_result scores = {0};
    assert_ok(score(&scores, b, path, source, &failure));
    assert_int_equal(scores.trained_on, wanted);
    assert_false(scores.trained_on_about);
    basin_image_evaluate_result_free(&scores);
}

TEST(a_model_knows_what_it_was_trained_on) {
    BASIN_AT_EXIT(bench_close) bench b;
    basin_image_evaluate_result scores = {0};
    bench_tiny(&b, state, "seen");
    b.s->epochs = 1;
    bench_train(&b, -1, false);
    basin_image_source source = b.train;
    knows(&b, b.out, &source, 0);
    source.hold_out = 0;
    knows(&b, b.out, &source, 80);
    source.hold_out = 17; /* one of them was trained on */
    assert_failure(score(&scores, &b, b.out, &source, &failure), BASIN_BAD_VALUE,
                   "1 of the 17 pictures that hold_out chooses were trained");
    source.path = others;
    knows(&b, b.out, &source, 0);
}

TEST(a_tuned_model_knows_both_sets) {
    BASIN_AT_EXIT(bench_close) bench first, tuned;
    basin_image_source source;
    bench_tiny(&first, state, "before");
    bench_tiny(&tuned, state, "after");
    first.s->epochs = tuned.s->epochs = 1;
    bench_train(&first, -1, false);
    tuned.training.from = first.out;
    tuned.train.path = others, tuned.train.hold_out = 0;
    bench_train(&tuned, -1, false);
    source = first.train, source.hold_out = 0;
    knows(&first, first.out, &source, 80);
    knows(&tuned, tuned.out, &source, 80);
    source.path = others;
    knows(&first, first.out, &source, 0);
    knows(&tuned, tuned.out, &source, 40);
    char *whole = tuned.out; /* cut and resumed, it knows the same */
    tuned.training.output = tuned.out = folder_path(state, "cut.safetensors");
    bench_train(&tuned, 1, false);
    bench_train(&tuned, -1, true);
    same_file(whole, tuned.out);
}

TEST(a_card_goes_with_the_file) {
    BASIN_AT_EXIT(bench_close) bench b;
    basin_image_model *model;
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    bench_tiny(&b, state, "card");
    bench_train(&b, -1, false);
    char *copy = folder_path(state, "copy.safetensors");
    assert_ok(basin_image_open(&model, b.out, b.training.backend, &failure));
    assert_ok(basin_image_write(copy, model, BASIN_F32, &failure));
    basin_image_close(model);
    same_file(b.out, copy);
    assert_ok(basin_bundle_read(&bundle, copy, &failure));
    const char *card = basin_bundle_meta(bundle, "basin.card");
    assert_non_null(card);
    assert_non_null(strstr(card, "\"paths\":[\"shapes:96:3:16x16x1\"],\"pictures\":80,"
                                 "\"held_out\":16,"));
    assert_non_null(strstr(card, "\"epochs\":4,\"views\":320,\"test_mse\":"));
}

TEST(pictures_seen_again_count_once) {
    BASIN_AT_EXIT(bench_close) bench first, tuned;
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    bench_tiny(&first, state, "once");
    bench_tiny(&tuned, state, "twice");
    bench_train(&first, -1, false);
    tuned.training.from = first.out;
    bench_train(&tuned, -1, false);
    assert_ok(basin_bundle_read(&bundle, tuned.out, &failure));
    const char *card = basin_bundle_meta(bundle, "basin.card");
    assert_non_null(card);
    assert_non_null(strstr(card, "\"pictures\":80,"));
    assert_non_null(strstr(card, "\"epochs\":4,\"views\":640,"));
}

TEST(large_sets_are_remembered_in_part) {
    static const char *const path[] = {"shapes:20000:3:4x4x1"};
    basin_image_source source = {.path = path, .paths = 1};
    basin_image_set all, some, none = {0};
    BASIN_AT_EXIT(basin_image_card_free) basin_image_card card = {0};
    basin_image_overlap overlap;
    assert_ok(basin_image_set_open(&all, &source, false, 0, &failure));
    source.limit = 500;
    assert_ok(basin_image_set_open(&some, &source, false, 0, &failure));
    assert_ok(basin_image_card_begin(&card, &all, &none, NULL, &failure));
    assert_int_equal(card.prints, BASIN_IMAGE_PRINTS);
    assert_ok(basin_image_card_compare(&overlap, &card, &some, &failure));
    assert_false(overlap.exact || overlap.held_out);
    assert_in_range(overlap.trained_on, 450, 500); /* evenly spread, so 500 but for rounding */
    basin_image_set_close(&all);
    basin_image_set_close(&some);
}

TEST(a_broken_card_is_an_error) {
    BASIN_AT_EXIT(bench_close) bench b;
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    basin_image_card card = {0};
    basin_tensor tensor;
    bench_tiny(&b, state, "broken");
    assert_ok(basin_bundle_new(&bundle, NULL, &failure));
    assert_ok(basin_bundle_meta_set(bundle, "basin.card", "{\"pictures\":3}", &failure));
    assert_ok(basin_image_card_read(&card, bundle, &failure));
    basin_image_card_free(&card);
    assert_ok(basin_tensor_new(&tensor, BASIN_F32, BASIN_SHAPE(3), &failure));
    assert_ok(basin_bundle_add(bundle, "trained_on", &tensor, &failure));
    assert_failure(basin_image_card_read(&card, bundle, &failure), BASIN_BAD_FILE,
                   "trained_on is F32 [3], expected I64 [-1]");
    assert_ok(basin_bundle_meta_set(bundle, "basin.card", "{\"pictures\":", &failure));
    assert_int_equal(basin_image_card_read(&card, bundle, &failure), BASIN_BAD_FILE);
}

int main(void) { return tests_run(folder_new, folder_remove); }
