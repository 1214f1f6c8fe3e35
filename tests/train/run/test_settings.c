/* Settings to JSON and back, what a wrong file is told, and logs that a resumed run goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/folder.h"
#include "train/run/log.h"
#include "train/run/settings.h"

typedef struct sample {
    int64_t dim;
    double alpha, mean[3];
    bool cls;
    const char *arch;
} sample;

static const char *const archs[] = {"et", "vit", NULL};
static const basin_setting table[] = {
    BASIN_SETTING_INTEGER_OF(sample, dim, 1, 4096), BASIN_SETTING_REAL_OF(sample, alpha, 0, 10),
    BASIN_SETTING_REALS_OF(sample, mean, 3),        BASIN_SETTING_SWITCH_OF(sample, cls),
    BASIN_SETTING_CHOICE_OF(sample, arch, archs),   BASIN_SETTINGS_END,
};
static const sample some = {128, 0.1, {0.485, 0.456, 1.0 / 3}, true, "vit"};

static void settings_survive_json(void **state) {
    (void)state;
    sample back = {0};
    basin_error error = {0};
    char *text = basin_settings_print(&some, table, false);
    assert_non_null(text);
    assert_null(strchr(text, '\n'));
    assert_int_equal(basin_settings_parse(&back, table, text, "f", &error), BASIN_OK);
    assert_null(basin_settings_differ(&some, &back, table));
    back.mean[2] = 0.5;
    assert_string_equal(basin_settings_differ(&some, &back, table), "mean");
    free(text);
}

static void refuse(const char *json, const char *wanted) {
    sample back = some;
    basin_error error = {0};
    assert_int_equal(basin_settings_parse(&back, table, json, "m.safetensors", &error),
                     BASIN_BAD_FILE);
    if (!strstr(error.text, wanted)) fail_msg("\"%s\" is not in: %s", wanted, error.text);
}

static void wrong_settings_are_named(void **state) {
    (void)state;
    refuse("{\"dim\":0,\"alpha\":0.1,\"mean\":[1,2,3],\"cls\":true,\"arch\":\"et\"}",
           "m.safetensors: configuration: dim is 0, wanted an integer from 1 to 4096");
    refuse("{\"dim\":1,\"alpha\":0.1,\"mean\":[1,2],\"cls\":true,\"arch\":\"et\"}",
           "mean is [1,2], wanted 3 numbers");
    refuse("{\"dim\":1,\"alpha\":0.1,\"mean\":[1,2,3],\"cls\":1,\"arch\":\"et\"}",
           "cls is 1, wanted true or false");
    refuse("{\"dim\":1,\"alpha\":0.1,\"mean\":[1,2,3],\"cls\":true,\"arch\":\"mlp\"}",
           "arch is \"mlp\", wanted et or vit");
    refuse("{\"dim\":1,\"alpha\":0.1,\"mean\":[1,2,3],\"cls\":true}", "arch is absent");
    refuse("{\"depth\":1}", "'depth' is not known");
}

static void settings_of_later_versions_may_be_absent(void **state) {
    (void)state;
    const basin_setting wider[] = {BASIN_SETTING_INTEGER_SINCE(sample, dim, 1, 4096, 5),
                                   BASIN_SETTING_REAL_SINCE(sample, alpha, 0, 10, 0.25),
                                   BASIN_SETTINGS_END};
    sample back = some;
    basin_error error = {0};
    assert_int_equal(basin_settings_parse(&back, wider, "{\"dim\":7}", "f", &error), BASIN_OK);
    assert_true(back.dim == 7 && back.alpha == 0.25);
    assert_int_equal(basin_settings_parse(&back, wider, "{\"dim\":7,\"alpha\":2}", "f", &error),
                     BASIN_OK);
    assert_true(back.alpha == 2);
    assert_int_equal(basin_settings_parse(&back, wider, "{\"alpha\":2}", "f", &error), BASIN_OK);
    assert_true(back.dim == 5);
}

static void add_line(const char *path, int64_t step, int64_t resumed) {
    basin_run_log log;
    basin_error error = {0};
    assert_int_equal(basin_log_open(&log, path, resumed, &error), BASIN_OK);
    basin_json line = basin_log_line(&log);
    basin_json_integer(&line, "step", step);
    assert_int_equal(basin_log_end(&log, &line, &error), BASIN_OK);
    basin_log_close(&log);
}

static void a_resumed_log_drops_what_was_undone(void **state) {
    char path[PATH_TEXT], text[200] = {0};
    folder_path(path, state, "log.jsonl");
    add_line(path, 9, 0);
    add_line(path, 1, 0);
    add_line(path, 2, 1);
    add_line(path, 3, 2);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs("{\"step\":4,\"lo", file);
    fclose(file);
    add_line(path, 3, 2);
    file = fopen(path, "r");
    assert_non_null(file);
    fread(text, 1, sizeof text - 1, file);
    fclose(file);
    assert_string_equal(text, "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_survive_json),
        cmocka_unit_test(wrong_settings_are_named),
        cmocka_unit_test(settings_of_later_versions_may_be_absent),
        cmocka_unit_test(a_resumed_log_drops_what_was_undone),
    };
    return cmocka_run_group_tests(tests, folder_new, folder_remove);
}
