/* Masks, pixels and model files of masked image completion. */
#include "basin/random.h"
#include "support/folder.h"
#include "support/test.h"
#include "tasks/pictures/image.h"

static basin_image_settings tiny(void) {
    basin_image_settings s;
    assert_int_equal(basin_settings_preset(&s, &basin_image_task, "fashion", NULL), BASIN_OK);
    s.channels = 3;
    s.size = 12;
    s.dim = 16;
    s.heads = 2;
    s.head_dim = 8;
    s.memories = 24;
    s.steps = 3;
    s.occlude = 5;
    s.keep = 1;
    for (int c = 0; c < 3; c++) s.mean[c] = 0.4 + 0.1 * c, s.deviation[c] = 0.2 + 0.05 * c;
    return s;
}

TEST(masks_have_the_counts_asked_for) {
    enum { TOKENS = 20, DRAWS = 4000 };
    int often[TOKENS] = {0}, kept[TOKENS] = {0};
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        uint8_t mask[TOKENS], again[TOKENS];
        int count[3] = {0};
        basin_image_mask_draw(mask, TOKENS, 8, 3, 7, draw);
        basin_image_mask_draw(again, TOKENS, 8, 3, 7, draw);
        assert_memory_equal(mask, again, TOKENS);
        for (int i = 0; i < TOKENS; i++) {
            count[mask[i]]++;
            often[i] += mask[i] != BASIN_PATCH_SHOWN;
            kept[i] += mask[i] == BASIN_PATCH_KEPT;
        }
        assert_int_equal(count[BASIN_PATCH_REPLACED], 5);
        assert_int_equal(count[BASIN_PATCH_KEPT], 3);
    }
    /* Expected 1600 and 600, with deviations of 31 and 23: five of them either way. */
    for (int i = 0; i < TOKENS; i++) {
        assert_in_range(often[i], 1445, 1755);
        assert_in_range(kept[i], 485, 715);
    }
}

/* The rectangle of a mask; it has no other patch. */
static void find_hole(int64_t from[2], int64_t size[2], const uint8_t *mask, int64_t side) {
    int64_t to[2] = {-1, -1}, count = 0;
    from[0] = from[1] = side;
    for (int64_t i = 0; i < side * side; i++) {
        int64_t at[2] = {i / side, i % side};
        if (mask[i] == BASIN_PATCH_SHOWN) continue;
        assert_int_equal(mask[i], BASIN_PATCH_REPLACED);
        for (int k = 0; k < 2; k++) {
            if (at[k] < from[k]) from[k] = at[k];
            if (at[k] > to[k]) to[k] = at[k];
        }
        count++;
    }
    for (int k = 0; k < 2; k++) size[k] = to[k] - from[k] + 1;
    assert_int_equal(count, size[0] * size[1]);
}

TEST(holes_have_the_sizes_and_places_promised) {
    enum { SIDE = 14, DRAWS = 3000, LEAST = 2, MOST = 8 };
    int tall[SIDE + 1] = {0}, left = 0, right = 0;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        uint8_t mask[SIDE * SIDE], again[SIDE * SIDE];
        int64_t from[2], size[2];
        basin_image_hole_draw(mask, SIDE, 7, draw);
        basin_image_hole_draw(again, SIDE, 7, draw);
        assert_memory_equal(mask, again, sizeof mask);
        find_hole(from, size, mask, SIDE);
        assert_in_range(size[0], LEAST, MOST);
        assert_in_range(size[1], LEAST, MOST);
        tall[size[0]]++;
        left += from[1] == 0;
        right += from[1] + size[1] == SIDE;
    }
    /* 3000 / 7, deviation 19; 1/7 of the mean of 1 / (13 .. 7), 317 with deviation 17. */
    for (int i = LEAST; i <= MOST; i++) assert_in_range(tall[i], 333, 524);
    assert_in_range(left, 225, 405);
    assert_in_range(right, 225, 405);
    for (int64_t side = 1; side < 6; side++) { /* small ones leave something to see */
        uint8_t mask[25];
        int64_t from[2], size[2];
        basin_image_hole_draw(mask, side, 7, 1);
        find_hole(from, size, mask, side);
        assert_true(side == 1 || size[0] < side);
    }
}

TEST(a_share_of_the_training_masks_are_holes) {
    enum { DRAWS = 2000 };
    basin_image_settings s = tiny();
    int holes = 0;
    s.size = 56, s.occlude = 98, s.keep = 9, s.holes = 0.25;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        uint8_t mask[196], scattered[196];
        basin_image_mask_train(mask, &s, 7, draw);
        basin_image_mask_draw(scattered, 196, 98, 9, 7, draw);
        holes += memcmp(mask, scattered, 196) != 0;
    }
    assert_in_range(holes, 403, 597); /* 500, deviation 19 */
    s.holes = 1;
    uint8_t mask[196], hole[196];
    basin_image_mask_train(mask, &s, 7, 5);
    basin_image_hole_draw(hole, 14, 7, 5);
    assert_memory_equal(mask, hole, 196);
}

TEST(strokes_hide_something_and_never_all) {
    enum { SIDE = 14, DRAWS = 2000 };
    int64_t hidden = 0;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        uint8_t mask[SIDE * SIDE], again[SIDE * SIDE];
        int64_t count = 0;
        basin_image_strokes_draw(mask, SIDE, 7, draw);
        basin_image_strokes_draw(again, SIDE, 7, draw);
        assert_memory_equal(mask, again, sizeof mask);
        for (int i = 0; i < SIDE * SIDE; i++) count += mask[i] == BASIN_PATCH_REPLACED;
        assert_in_range(count, 1, SIDE * SIDE / 2);
        hidden += count;
    }
    assert_in_range(hidden / DRAWS, 8, 40);
    uint8_t one = 9, mask[196], stroke[196];
    basin_image_strokes_draw(&one, 1, 7, 1);
    assert_int_equal(one, BASIN_PATCH_SHOWN);
    basin_image_settings s = tiny();
    s.size = 56, s.holes = s.strokes = 1;
    basin_image_mask_train(mask, &s, 7, 5);
    basin_image_strokes_draw(stroke, 14, 7, 5);
    assert_memory_equal(mask, stroke, 196);
}

TEST(occlusion_is_a_number_or_a_share) {
    basin_image_settings s;
    static const struct {
        const char *preset;
        int64_t size, occluded, kept;
    } wanted[] = {{"fashion", 28, 24, 2},
                  {"cifar10", 32, 32, 3},
                  {"photos", 64, 32, 3},
                  {"photos", 32, 8, 0},
                  {"paper-imagenet", 224, 100, 10}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_ok(basin_settings_preset(&s, &basin_image_task, wanted[i].preset, &failure));
        s.size = wanted[i].size;
        assert_ok(basin_image_settings_check(&s, &failure));
        assert_int_equal(basin_image_occluded(&s), wanted[i].occluded);
        assert_int_equal(basin_image_kept(&s), wanted[i].kept);
        basin_image_settings_resolve(&s);
        assert_true(s.occlude == (double)wanted[i].occluded && s.keep == (double)wanted[i].kept);
    }
    s.size = 112, s.occlude = 2.5;
    assert_says(basin_image_settings_check(&s, &failure), BASIN_BAD_VALUE,
                "occlude is 2.5; expected 1 to 49 patches, or a share below 1");
}

TEST(pixels_survive_patches) {
    basin_image_settings s = tiny();
    uint8_t pixel[12 * 12 * 3], back[12 * 12 * 3];
    float patches[12 * 12 * 3];
    for (int i = 0; i < 12 * 12 * 3; i++) pixel[i] = (uint8_t)(i * 37);
    basin_patching patching = basin_image_patching(&s);
    basin_patches_from_pixels(patches, pixel, &patching);
    basin_patches_to_pixels(back, patches, &patching);
    assert_memory_equal(pixel, back, sizeof pixel);
    /* Patch 4 (row 1, column 1), green, row 2, column 3: the pixel (6, 7). */
    float wanted = (float)((pixel[(6 * 12 + 7) * 3 + 1] / 255.0 - 0.5) / 0.25);
    assert_true(patches[4 * 48 + 16 + 2 * 4 + 3] == wanted);
}

typedef struct bench {
    basin_backend *backend;
    basin_image_model *model;
    float patches[2 * 9 * 48];
    uint8_t mask[2 * 9];
} bench;

static void complete(float *output, basin_image_model *model, const bench *b, int64_t batch,
                     int64_t count) {
    basin_image_runner runner;
    assert_ok(basin_image_runner_new(&runner, model, batch, &failure));
    assert_ok(basin_image_runner_run(&runner, output, b->patches, b->mask, count, &failure));
    basin_image_runner_free(&runner);
}

/* Opens the bench with a fresh model of 3 steps and two masked pictures of noise. */
static void bench_start(bench *b) {
    basin_image_settings s = tiny();
    assert_ok(basin_backend_open(&b->backend, &(basin_compute){.threads = 1}, &failure));
    assert_ok(basin_image_model_new(&b->model, &s, b->backend, &failure));
    basin_random_fill_normal(b->patches, 3, 0, 0, 2 * 9 * 48);
    for (uint64_t i = 0; i < 2; i++) basin_image_mask_draw(b->mask + 9 * i, 9, 5, 1, 1, i);
}

static void bench_end(bench *b) {
    basin_image_close(b->model);
    basin_backend_close(b->backend);
}

TEST(a_model_file_alone_is_enough) {
    BASIN_AT_EXIT(bench_end) bench b;
    basin_image_model *again;
    basin_image_settings s = tiny();
    float first[2 * 9 * 48], second[2 * 9 * 48], alone[9 * 48];
    char *path = folder_path(state, "model.safetensors");
    bench_start(&b);
    complete(first, b.model, &b, 2, 2);
    assert_ok(basin_image_write(path, b.model, BASIN_F32, &failure));
    assert_ok(basin_image_open(&again, path, b.backend, &failure));
    assert_ok(basin_settings_match(&s, &again->settings, basin_image_task.table, "f", &failure));
    complete(second, again, &b, 2, 2);
    assert_memory_equal(first, second, sizeof first);
    char text[40];
    assert_ok(basin_settings_get(text, sizeof text, basin_image_get_info(again)->settings, "dim",
                                 &failure));
    assert_string_equal(text, "16");
    assert_true(basin_image_get_info(again)->parameters > 1000 &&
                basin_image_get_info(again)->parameters ==
                    basin_image_get_info(b.model)->parameters);
    complete(alone, again, &b, 4, 1);
    for (int i = 0; i < 9 * 48; i++) assert_float_equal(alone[i], first[i], 1e-5);
    basin_image_close(again);
}

/* Steps and alpha set from outside do what a model trained with them does, and are forgotten when
 * they are set to 0. */
TEST(a_descent_can_be_changed_from_outside) {
    BASIN_AT_EXIT(bench_end) bench b;
    basin_image_model *other;
    basin_image_settings s = tiny();
    basin_image_descent_options descent = {.steps = 7, .alpha = 0.03};
    float own[2 * 9 * 48], changed[2 * 9 * 48], wanted[2 * 9 * 48], back[2 * 9 * 48];
    bench_start(&b);
    complete(own, b.model, &b, 2, 2);
    assert_ok(basin_image_set_descent(b.model, &descent, &failure));
    complete(changed, b.model, &b, 2, 2);
    assert_memory_not_equal(own, changed, sizeof own);
    s.steps = 7, s.alpha = 0.03;
    assert_ok(basin_image_model_new(&other, &s, b.backend, &failure));
    complete(wanted, other, &b, 2, 2);
    assert_memory_equal(wanted, changed, sizeof wanted);
    descent = (basin_image_descent_options){};
    assert_ok(basin_image_set_descent(b.model, &descent, &failure));
    complete(back, b.model, &b, 2, 2);
    assert_memory_equal(own, back, sizeof own);
    basin_image_close(other);
}

/* A runner stays with the model for the next call, until its batch or the descent is another. */
TEST(a_kept_runner_follows_the_descent) {
    BASIN_AT_EXIT(bench_end) bench b;
    basin_image_runner *first, *again;
    basin_image_descent_options descent = {.steps = 7, .alpha = 0.03};
    float kept[2 * 9 * 48], made[2 * 9 * 48];
    bench_start(&b);
    assert_ok(basin_image_runner_borrow(&first, b.model, 2, &failure));
    assert_ok(basin_image_runner_borrow(&again, b.model, 2, &failure));
    assert_ptr_equal(first, again);
    assert_ok(basin_image_runner_borrow(&again, b.model, 1, &failure));
    assert_int_equal(again->graph.batch, 1);
    assert_ok(basin_image_runner_borrow(&again, b.model, 2, &failure));
    assert_ok(basin_image_set_descent(b.model, &descent, &failure));
    assert_ok(basin_image_runner_borrow(&again, b.model, 2, &failure));
    assert_ok(basin_image_runner_run(again, kept, b.patches, b.mask, 2, &failure));
    complete(made, b.model, &b, 2, 2);
    assert_memory_equal(kept, made, sizeof kept);
}

TEST(impossible_descents_are_refused) {
    BASIN_AT_EXIT(bench_end) bench b;
    basin_image_descent_options descent = {.steps = -1};
    bench_start(&b);
    assert_says(basin_image_set_descent(b.model, &descent, &failure), BASIN_BAD_VALUE,
                "steps is -1; expected 0 to 10000");
    descent.steps = 0, descent.alpha = -1;
    assert_says(basin_image_set_descent(b.model, &descent, &failure), BASIN_BAD_VALUE,
                "alpha is -1; expected at least 0");
    basin_image_settings s = tiny();
    s.arch = "vit";
    basin_image_close(b.model);
    assert_ok(basin_image_model_new(&b.model, &s, b.backend, &failure));
    descent.alpha = 0.1;
    assert_failure(basin_image_set_descent(b.model, &descent, &failure), BASIN_BAD_VALUE,
                   "the model's arch is 'vit'");
}

TEST(impossible_settings_are_refused) {
    basin_error error = {0};
    basin_image_settings s = tiny();
    s.patch = 5;
    assert_says(basin_image_settings_check(&s, &failure), BASIN_BAD_VALUE,
                "patch is 5; expected a divisor of the size, 12");
    s = tiny();
    s.occlude = 10;
    assert_says(basin_image_settings_check(&s, &failure), BASIN_BAD_VALUE,
                "occlude is 10; expected 1 to 9 patches, or a share below 1");
    assert_int_equal(basin_settings_preset(&s, &basin_image_task, "nothing", &error),
                     BASIN_BAD_VALUE);
}

/* The objective match went: files of the other one are read as before. */
TEST(files_of_the_objective_match_are_refused) {
    static const char *const config[] = {
        "{\"size\": 12, \"objective\": \"complete\", \"field\": \"energy\", \"scales\": 4}",
        "{\"size\": 12, \"objective\": \"match\", \"field\": \"energy\", \"scales\": 4}"};
    basin_error error = {0};
    basin_image_settings s = tiny();
    assert_ok(basin_settings_parse(&s, basin_image_task.table, config[0], false, "f", &error));
    assert_says(basin_settings_parse(&s, basin_image_task.table, config[1], false, "f", &failure),
                BASIN_UNSUPPORTED,
                "f: configuration: objective \"match\" is no longer supported; a "
                "model with it must be trained again");
}

int main(void) { return tests_run(folder_new, folder_remove); }
