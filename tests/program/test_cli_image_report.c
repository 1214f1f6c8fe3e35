/* basin image report: the page is whole and needs nothing else, for each architecture; its numbers
 * are those of basin image eval. */
#include "program/report.h"
#include "tasks/pictures/image.h"

static void train(void **state, const char *name, const char *options) {
    run_ok(state,
           "image train shapes:64:1:12x12x3 -q --channels 3 --size 12 --dim 16 "
           "%s %s --steps 3 --occlude 4 --keep 1 "
           "--batch 16 --warmup 0 --epochs 1 --threads 1 --log log.jsonl -o %s %s",
           strstr(options, "--no-attention") ? "" : "--heads 2 --head-dim 8",
           strstr(options, "--no-hopfield") ? "" : "--memories 120", name, options);
}

static cJSON *report(void **state, const char *arguments, const char *name) {
    run_ok(state, "image report %s -o %s", arguments, name);
    return report_read(state, name);
}

TEST(reports_of_all_models) {
    static const struct {
        const char *options, *unit, *has, *lacks;
        int forces, sheets, keys;
    } trial[] = {{"", "step", "memories", "none", 2, 2, 9},
                 {"--no-hopfield --cls", "step", "attention", "memories", 1, 2, 10},
                 {"--no-attention", "step", "memories", "attention", 1, 0, 0},
                 {"--arch vit", "layer", "attention", "memories", 0, 0, 9},
                 {"--arch albert --cls", "layer", "attention", "memories", 0, 0, 10}};
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        train(state, "m.safetensors", trial[i].options);
        cJSON *tree = report(state, "m.safetensors shapes:100:1:12x12x3 -q --limit 30 --shown 3",
                             "page.html");
        char *page = report_text(state, "page.html");
        assert_self_contained(page);
        assert_string_equal(json_at(tree, "kind")->valuestring, "image");
        const cJSON *model = json_at(tree, "models.0");
        assert_string_equal(json_at(model, "unit")->valuestring, trial[i].unit);
        assert_true(cJSON_HasObjectItem(model, trial[i].has));
        assert_false(cJSON_HasObjectItem(model, trial[i].lacks));
        assert_int_equal(cJSON_GetArraySize(json_at(model, "scenes")), 3);
        assert_int_equal(cJSON_GetArraySize(json_at(model, "scenes.0.forces")), trial[i].forces);
        assert_int_equal(cJSON_GetArraySize(json_at(model, "scenes.1.tokens")), 4);
        assert_int_equal(cJSON_GetArraySize(json_at(model, "queries")), trial[i].sheets);
        if (trial[i].keys) assert_int_equal(json_number(model, "attention.keys"), trial[i].keys);
        assert_int_equal(cJSON_GetArraySize(json_at(tree, "pictures")), 3);
        assert_int_equal(cJSON_GetArraySize(json_at(model, "answers")), 3);
        assert_int_equal(cJSON_GetArraySize(json_at(model, "scores.pictures")), 30);
        free(page);
    }
}

/* The document on stdout, or in a file, is that of the page; names stay text. */
TEST(documents_are_bare) {
    train(state, "'<i>.safetensors'", "");
    const char *subjects = "'<i>.safetensors' shapes:8:1:12x12x3 -q --shown 1 --threads 1";
    const program *p = run(state, "image report %s -o page.html", subjects);
    assert_contains(p->out, "page.html: ");
    assert_contains(p->out, "on 8 pictures");
    char *page = report_text(state, "page.html");
    assert_null(strstr(page, "<i>"));
    cJSON *inside = report_read(state, "page.html"), *bare = report(state, subjects, "page.json");
    assert_true(cJSON_Compare(inside, bare, true));
    p = run_ok(state, "image report %s --json >printed.json", subjects);
    cJSON *printed = report_read(state, "printed.json");
    assert_true(cJSON_Compare(printed, bare, true));
    assert_string_equal(json_at(bare, "title")->valuestring, "<i>.safetensors");
    free(page);
    assert_error(run(state, "image report m.safetensors shapes:8 --json -o x.html"), 2, "json");
}

/* Two folders are two names; the units of errors are those of the model; one force is one; scores
 * are those of basin image eval, and where all pictures are shown the descent ends there. */
TEST(reports_say_what_is) {
    train(state, "m.safetensors", "--no-hopfield --mean 0.5,0.5,0.5 --deviation 0.2,0.2,0.25");
    cJSON *tree = report(
        state, "m.safetensors shapes:8:1:12x12x3 shapes:4:2:12x12x3 -q --part all --shown 12",
        "page.json");
    assert_contains(json_at(tree, "lead")->valuestring,
                    "Scored on shapes:8:1:12x12x3, shapes:4:2:12x12x3.");
    assert_float_equal(json_number(tree, "models.0.deviation.2"), 0.25, 0);
    assert_int_equal(cJSON_GetArraySize(json_at(tree, "models.0.course.terms")), 1);
    assert_int_equal(json_number(tree, "models.0.course.rises"), 0);
    assert_true(json_number(tree, "models.0.answers.0.mse") > 0);
    const program *p = run(state, "image eval m.safetensors shapes:8:1:12x12x3 shapes:4:2:12x12x3 "
                                  "--part all --masks 1 --json -q");
    cJSON *eval = run_json(p);
    const cJSON *scores = json_at(tree, "models.0.scores");
    assert_float_equal(json_number(scores, "mean_mse"), json_number(eval, "mean_mse"), 1e-12);
    assert_float_equal(json_number(scores, "mse"), json_number(eval, "mse"), 1e-12);
    const cJSON *course = json_at(tree, "models.0.course");
    assert_float_equal(json_number(course, "mean_mse"), json_number(eval, "mean_mse"), 1e-9);
    assert_float_equal(json_number(course, "mean_psnr"), json_number(scores, "mean_psnr"), 1e-4);
    assert_float_equal(json_number(course, "mse.3"), json_number(eval, "mse"), 1e-4);
    assert_float_equal(json_number(course, "psnr.3"), json_number(eval, "psnr"), 1e-4);
}

/* 576 patches of 576 shares, 2 heads: six maps fill what a page has for them. */
TEST(attention_is_limited) {
    train(state, "m.safetensors", "--size 48 --patch 2 --occlude 100");
    cJSON *tree = report(state, "m.safetensors shapes:8:1:12x12x3 -q --shown 3", "p.json");
    const cJSON *attention = json_at(tree, "models.0.attention");
    assert_int_equal(cJSON_GetArraySize(json_at(attention, "steps")), 3);
    assert_int_equal(json_number(attention, "steps.1"), 1);
    assert_int_equal(json_number(attention, "steps.2"), 3);
    assert_int_equal(cJSON_GetArraySize(json_at(attention, "shares")), 2);
    size_t bytes = 3 * 2 * 576 * 576;
    assert_int_equal(strlen(json_at(attention, "shares.1")->valuestring), (bytes + 2) / 3 * 4);
}

/* A gain below 0 ascends: nothing in the training forbids it, the report says it. */
TEST(ascents_are_reported) {
    basin_backend *backend;
    basin_image_model *model;
    double gamma = -1.3;
    basin_tensor value = basin_tensor_borrow(&gamma, BASIN_F64, BASIN_SCALAR);
    train(state, "m.safetensors", "");
    char *path = folder_path(state, "m.safetensors");
    assert_ok(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &failure));
    assert_ok(basin_image_open(&model, path, backend, &failure));
    assert_ok(basin_store_write(model->store, "gamma", &value, &failure));
    assert_ok(basin_image_write(path, model, BASIN_F32, &failure));
    basin_image_close(model);
    basin_backend_close(backend);
    cJSON *tree = report(state, "m.safetensors shapes:8:1:12x12x3 -q --shown 4", "page.json");
    assert_float_equal(json_number(tree, "models.0.gamma"), -1.3, 1e-6);
    assert_int_equal(json_number(tree, "models.0.course.rises"), 12);
}

TEST(what_cannot_be_shown) {
    train(state, "m.safetensors", "");
    assert_error(run(state, "image report m.safetensors"), 2, "needs MODEL PICTURES...");
    assert_error(run(state, "image report m.safetensors m.safetensors shapes:8"), 2,
                 "'m.safetensors' is a second model");
    assert_error(run(state, "image report m.safetensors nowhere -q"), 1, "nowhere");
    assert_error(run(state, "image report nowhere.safetensors shapes:8 -q"), 1, "nowhere");
}

int main(void) { return tests_run(folder_new, program_teardown); }
