/* The frame of the program: help everywhere, wrong usage in one line with a suggestion, exit codes,
 * the manual page that comes from the tables, and what the build says of itself. */
#include "cli/program.h"

#include "basin/version.h"

static void helps(void **state) {
    const program *p = run(state, "");
    assert_int_equal(p->code, 0);
    assert_contains(p->out, "Commands:");
    assert_contains(p->out, "  info ");
    assert_contains(run(state, "--help")->out, "Commands:");
    assert_contains(run(state, "help info")->out, "Usage: basin info FILE...");
    assert_contains(run(state, "info --help")->out, "--stats");
    assert_contains(run(state, "info x -h")->out, "--stats");
    assert_contains(run(state, "help anomaly train")->out, "|both+standard+quantile\n");
    p = run(state, "help help");
    assert_int_equal(p->code, 0);
    assert_string_equal(p->err, "");
}

static void rejects_wrong_usage(void **state) {
    assert_error(run(state, "inof"), 2, "did you mean 'info'?");
    assert_error(run(state, "xyzzy"), 2, "unknown command 'xyzzy'");
    assert_error(run(state, "help inof"), 2, "did you mean 'info'?");
    assert_error(run(state, "--frob"), 2, "--frob");
    assert_error(run(state, "info --stast x"), 2, "did you mean '--stats'?");
    assert_error(run(state, "info -z x"), 2, "unknown option '-z'");
    assert_error(run(state, "info --json=1 x"), 2, "--json takes no value");
    assert_error(run(state, "info"), 2, "wants FILE...");
    assert_error(run(state, "version x"), 2, "'x' is one operand too many");
    assert_string_equal(run(state, "inof")->out, "");
}

static void ends_options(void **state) {
    assert_error(run(state, "info -- --stats"), 1, "--stats");
    assert_error(run(state, "version >/dev/full"), 1, "standard output");
}

static void names_the_build(void **state) {
    const program *p = run(state, "--version");
    assert_int_equal(p->code, 0);
    assert_contains(p->out, "basin " BASIN_VERSION_STRING "\n");
    assert_contains(p->out, "BLAS");
    cJSON *tree = run_json(run(state, "version --json"));
    assert_string_equal(json_at(tree, "version")->valuestring, BASIN_VERSION_STRING);
    assert_string_equal(json_at(tree, "backends.0")->valuestring, "ref");
    assert_true(json_number(tree, "threads") >= 1);
    cJSON_Delete(tree);
    tree = run_json(run(state, "--version --json"));
    cJSON_Delete(tree);
}

/* Without a waiting policy in the environment the program starts itself again with a short spin:
 * the same output, and its arguments arrive. */
static void waits_politely(void **state) {
    char line[1000], path[PATH_TEXT], text[200] = "";
    snprintf(line, sizeof line,
             "cd '%s' && env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT sh -c '"
             "%s help nothing 2>.err; echo $?' >.out",
             (const char *)*state, BASIN_PROGRAM);
    assert_int_equal(system(line), 0);
    slurp(text, sizeof text, folder_path(path, state, ".out"));
    assert_string_equal(text, "2\n");
    slurp(text, sizeof text, folder_path(path, state, ".err"));
    assert_contains(text, "unknown command 'nothing'");
}

static void keeps_the_manual(void **state) {
    static char page[65536];
    slurp(page, sizeof page, BASIN_SOURCE "/docs/commands.md");
    const program *p = run(state, "help --markdown");
    assert_int_equal(p->code, 0);
    if (strcmp(p->out, page))
        fail_msg("docs/commands.md is stale: build/basin help --markdown > docs/commands.md");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(helps),          cmocka_unit_test(rejects_wrong_usage),
        cmocka_unit_test(ends_options),   cmocka_unit_test(names_the_build),
        cmocka_unit_test(waits_politely), cmocka_unit_test(keeps_the_manual),
    };
    return cmocka_run_group_tests(tests, folder_new, program_teardown);
}
