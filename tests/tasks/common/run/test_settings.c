/* Settings to JSON and back, what a wrong file is told, and logs that a resumed run goes on. */
#include "support/folder.h"
#include "support/test.h"
#include "tasks/common/run/run.h"
#include "tasks/common/run/settings.h"

#define SAMPLE(X)                                                                                  \
    X(INTEGER, dim, "D", 1, 4096, "Dimension.")                                                    \
    X(REAL, alpha, "X", 0, 10, "Step.", .absent = "0.25", .needs = "arch=et|albert depth=9")       \
    X(CHANNELS, mean, "R,G,B", "Mean.")                                                            \
    X(SWITCH, cls, "CLS token.", .absent = "on", .needs = "arch=et")                               \
    X(CHOICE, arch, BASIN_CHOICES("et", "vit"), "The model.")                                      \
    X(SWITCH, attention, "Attention.", .absent = "on")                                             \
    X(INTEGER, heads, "H", 1, 64, "Heads.", .absent = "4", .needs = "attention=on,depth=9,arch=vit")
#define SEED(X) X(INTEGER, seed, "N", 0, 9007199254740991.0, "Seed.", .absent = "0")
#define LOOSE(X) X(INTEGER, epochs, "N", 0, 100, "Epochs.", .absent = "1")

typedef struct sample {
    SAMPLE(BASIN_SETTING_FIELD)
    LOOSE(BASIN_SETTING_FIELD)
    SEED(BASIN_SETTING_FIELD)
} sample;

#define BASIN_SETTINGS_TYPE sample
static const basin_setting_entry table[] = {SAMPLE(BASIN_SETTING_ENTRY) LOOSE(BASIN_LOOSE_ENTRY)
                                                SEED(BASIN_SETTING_ENTRY) BASIN_SETTINGS_END};
static const sample some = {128, 0.1, {0.485, 0.456, 1.0 / 3}, true, "vit", true, 4, 3, 0};

TEST(settings_survive_json) {
    sample back = {0};
    char *text = basin_settings_print(&some, table, false);
    assert_non_null(text);
    assert_null(strchr(text, '\n'));
    assert_ok(basin_settings_parse(&back, table, text, true, "f", &failure));
    assert_ok(basin_settings_match(&some, &back, table, "f", &failure));
    assert_true(back.mean[2] == some.mean[2] && back.alpha == some.alpha);
    free(text);
}

TEST(a_resumed_run_keeps_all_but_loose_settings) {
    sample other = some;
    other.epochs = 99;
    assert_ok(basin_settings_match(&some, &other, table, "f", &failure));
    other.mean[2] = 0.5;
    assert_failure(basin_settings_match(&some, &other, table, "f", &failure), BASIN_BAD_VALUE,
                   "its run has mean 0.485,0.456,0.3333333333333333, requested "
                   "is 0.485,0.456,0.5");
}

static void refuse(const char *json, const char *wanted) {
    sample back = some;
    assert_failure(basin_settings_parse(&back, table, json, true, "m.safetensors", &failure),
                   BASIN_BAD_FILE, wanted);
}

TEST(wrong_settings_are_named) {
    refuse("{\"dim\":0,\"alpha\":0.1,\"mean\":[1,2,3],\"cls\":true,\"arch\":\"et\"}",
           "m.safetensors: configuration: dim: 0 is too small; at least 1");
    refuse("{\"dim\":1.5,\"alpha\":0.1,\"mean\":[1,2,3],\"cls\":true,\"arch\":\"et\"}",
           "dim: '1.5' is not a whole number");
    refuse("{\"dim\":1,\"alpha\":0.1,\"mean\":[1,2],\"cls\":true,\"arch\":\"et\"}",
           "mean: '1,2' is not three numbers");
    refuse("{\"dim\":1,\"alpha\":0.1,\"mean\":[1,2,3],\"cls\":1,\"arch\":\"et\"}",
           "cls is 1, expected true or false");
    refuse("{\"dim\":1,\"alpha\":0.1,\"mean\":[1,2,3],\"cls\":true,\"arch\":\"mlp\"}",
           "arch: 'mlp' is not one of et|vit");
    refuse("{\"dim\":1,\"alpha\":0.1,\"mean\":[1,2,3],\"cls\":true}", "arch is absent");
    refuse("{\"depth\":1}", "'depth' is not known");
}

TEST(earlier_files_lack_what_came_later) {
    sample back = {0};
    const char *old = "{\"dim\":7,\"mean\":[1,2,3],\"arch\":\"et\"}";
    assert_ok(basin_settings_parse(&back, table, old, true, "f", &failure));
    assert_true(back.dim == 7 && back.alpha == 0.25 && back.cls && back.epochs == 1);
}

TEST(settings_are_read_from_words) {
    sample back = some;
    char text[64];
    assert_ok(basin_setting_parse(&back, &table[2], "1,0.5,2", &failure));
    basin_setting_print(text, sizeof text, &back, &table[2]);
    assert_string_equal(text, "1,0.5,2");
    assert_ok(basin_setting_parse(&back, &table[3], "off", &failure));
    assert_false(back.cls);
    assert_int_equal(basin_setting_parse(&back, &table[3], "maybe", &failure), BASIN_BAD_VALUE);
    assert_int_equal(basin_setting_parse(&back, &table[0], "12x", &failure), BASIN_BAD_VALUE);
    assert_int_equal(basin_setting_parse(&back, &table[1], "nan", &failure), BASIN_BAD_VALUE);
}

/* ---- settings without effect ---- */

static const char *const names[] = {"default", NULL};
static const char *const texts[] = {"{\"arch\": \"vit\"}", NULL};
static const basin_preset_list presets = {"sample", names, texts, NULL};
static basin_status fits(const void *values, basin_error *error) {
    (void)values, (void)error;
    return BASIN_OK;
}
static const basin_task_settings task = {"sample", table, sizeof some, fits, &some, &presets, NULL};

TEST(a_configuration_file_changes_what_it_names) {
    sample back = some;
    const char *text = "{\"basin\":\"0.2.0\",\"settings\":{\"dim\":9}}";
    char *path = folder_path(state, "config.json");
    assert_int_equal(file_put(path, text, strlen(text)), 0);
    assert_ok(basin_settings_load(&back, &task, path, &failure));
    assert_true(back.dim == 9 && back.alpha == some.alpha);
}

static void refuse_file(void **state, const char *text, const char *wanted) {
    sample back = some;
    char *path = folder_path(state, "config.json");
    assert_int_equal(file_put(path, text, strlen(text)), 0);
    assert_failure(basin_settings_load(&back, &task, path, &failure), BASIN_BAD_FILE, wanted);
}

TEST(configuration_files_are_checked) {
    refuse_file(state, "", "is empty");
    refuse_file(state, "{\"task\":\"image\",\"settings\":{\"dim\":9}}",
                "of the task 'image', needs one of sample");
    refuse_file(state, "{\"dim\":9,\"alpha\":1,\"dim\":8}", "'dim' is there twice");
    refuse_file(state, "{\"seed\":9007199254740993}", "is too large");
}

TEST(presets_may_be_files) {
    basin_settings *settings;
    basin_error error = {0};
    double number;
    char *path = folder_path(state, "mine.json");
    assert_int_equal(file_put(path, "{\"dim\":9}", 9), 0);
    assert_ok(basin_settings_make(&settings, &task, path, &failure));
    assert_ok(basin_settings_get_number(&number, settings, "dim", &failure));
    assert_true(number == 9);
    assert_ok(basin_settings_set_number(settings, "cls", 0, &failure));
    assert_ok(basin_settings_get_number(&number, settings, "cls", &failure));
    assert_true(number == 0);
    assert_says(basin_settings_set_number(settings, "dim", 1.5, &failure), BASIN_BAD_VALUE,
                "dim: '1.5' is not a whole number");
    assert_int_equal(basin_settings_set_number(settings, "arch", 1, &error), BASIN_BAD_VALUE);
    basin_settings_free(settings);
    assert_int_equal(basin_settings_make(&settings, &task, "other", &error), BASIN_BAD_VALUE);
}

static void set(basin_settings *settings, const char *name, const char *text) {
    assert_ok(basin_settings_set(settings, name, text, &failure));
}

/* A preset or a file may say anything of `alpha` where it is idle; who names it means something. */
TEST(settings_without_effect_are_refused_where_they_were_named) {
    basin_settings *settings;
    assert_ok(basin_settings_make(&settings, &task, NULL, &failure));
    assert_ok(basin_settings_check(settings, &failure));
    set(settings, "alpha", "0.1");
    set(settings, "dim", "8");
    assert_says(basin_settings_check(settings, &failure), BASIN_BAD_VALUE,
                "alpha has no effect with arch vit; leave it out");
    set(settings, "cls", "on");
    assert_says(basin_settings_check(settings, &failure), BASIN_BAD_VALUE,
                "alpha and cls have no effect with arch vit; leave them out");
    set(settings, "arch", "et");
    assert_ok(basin_settings_check(settings, &failure));
    assert_ok(basin_settings_start(settings, "default", &failure));
    assert_ok(basin_settings_check(settings, &failure));
    basin_settings_free(settings);
}

/* A vit has heads, whatever `attention` says; `depth` is a setting of other tasks. */
TEST(one_of_several_conditions_is_enough) {
    basin_settings *settings;
    assert_ok(basin_settings_make(&settings, &task, NULL, &failure));
    set(settings, "heads", "8");
    set(settings, "attention", "off");
    assert_ok(basin_settings_check(settings, &failure));
    set(settings, "arch", "et");
    assert_says(basin_settings_check(settings, &failure), BASIN_BAD_VALUE,
                "heads has no effect with attention off; leave it out");
    set(settings, "attention", "on");
    assert_ok(basin_settings_check(settings, &failure));
    basin_settings_free(settings);
}

static void add_line(const char *path, int64_t step, int64_t resumed) {
    FILE *log;
    basin_run_place done = {.step = resumed};
    assert_ok(basin_log_open(&log, path, resumed ? &done : NULL, &failure));
    basin_json line = basin_json_begin_line(log);
    basin_json_integer(&line, "step", step);
    basin_json_end(&line);
    fclose(log);
}

TEST(a_resumed_log_drops_what_was_undone) {
    char text[200] = {0}, *path = folder_path(state, "log.jsonl");
    add_line(path, 9, 0);
    add_line(path, 1, 0);
    add_line(path, 2, 1);
    add_line(path, 3, 2);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs("{\"step\":4,\"lo", file);
    fclose(file);
    add_line(path, 3, 2);
    assert_true(file_get(text, sizeof text - 1, path) > 0);
    assert_string_equal(text, "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
}

int main(void) { return tests_run(folder_new, folder_remove); }
