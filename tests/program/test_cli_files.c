/* Model files that the program wrote before (tests/files): they open, and give the numbers that
 * they gave then. */
#include <math.h>
#include <stdbool.h>

#include "base/bundle.h"
#include "base/file.h"
#include "program/program.h"
#include "tasks/common/digest.h"

#define FILES BASIN_SOURCE "/tests/files/"

static const double TOLERANCE = 1e-4; /* of probabilities: instruction sets round differently */

static char *read_all(const char *path) {
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    slurp(text, 1 << 16, path);
    return text;
}

/* The same rows and columns; numbers up to the tolerance. `columns`: those compared, the others may
 * differ. */
static void compare_tables(const char *got, const char *wanted, int columns) {
    for (int line = 1, column = 0; *wanted; column++) {
        char *end[2];
        double a = strtod(got, &end[0]), b = strtod(wanted, &end[1]);
        bool same = end[1] == wanted ? strcspn(got, ",\n") == strcspn(wanted, ",\n")
                                     : fabs(a - b) <= TOLERANCE;
        if (!same && column < columns) fail_msg("line %d, column %d: %.20s", line, column, got);
        got += strcspn(got, ",\n"), wanted += strcspn(wanted, ",\n");
        assert_int_equal(*got, *wanted);
        if (*wanted == '\n') line++, column = -1;
        got += *got != 0, wanted += *wanted != 0;
    }
    assert_int_equal(*got, 0);
}

TEST_WITH(tables_are_as_they_were, folder_new, program_teardown) {
    static const struct {
        const char *command, *data, *name;
        int columns;
    } known[] = {
        {"graph predict", "rings", "graph", 4},
        {"anomaly score", "accounts.basin", "anomaly", 2}, /* ranks of near ties may move */
        {"anomaly score", "payments.basin", "rows", 2},
        {"node predict", "accounts.basin", "node", 4}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char path[400];
        snprintf(path, sizeof path, FILES "%s.csv", known[i].name);
        char *wanted = read_all(path);
        const program *p = run(state, "%s " FILES "%s.safetensors " FILES "%s", known[i].command,
                               known[i].name, known[i].data);
        if (p->code) fail_msg("%s: %s", known[i].name, p->err);
        compare_tables(p->out, wanted, known[i].columns);
        free(wanted);
    }
}

/* What `wanted` has, with numbers up to ten times the tolerance. */
static void compare_values(const cJSON *got, const cJSON *wanted, const char *name) {
    int at = 0;
    const cJSON *item;
    if (!got || got->type != wanted->type) fail_msg("%s is absent, or something else", name);
    if (cJSON_IsNumber(wanted) && fabs(got->valuedouble - wanted->valuedouble) > 10 * TOLERANCE)
        fail_msg("%s is %.9g, wanted %.9g", name, got->valuedouble, wanted->valuedouble);
    if (cJSON_IsString(wanted)) assert_string_equal(got->valuestring, wanted->valuestring);
    cJSON_ArrayForEach(item, wanted) compare_values(
        item->string ? cJSON_GetObjectItem(got, item->string) : cJSON_GetArrayItem(got, at++), item,
        item->string ? item->string : name);
}

TEST_WITH(values_are_as_they_were, folder_new, program_teardown) {
    static const struct {
        const char *command, *name, *arguments;
    } known[] = {{"image eval", "image", "shapes:64 --part all --masks 2"},
                 {"anomaly explain", "rows", "a98 " FILES "payments.basin"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char path[400];
        snprintf(path, sizeof path, FILES "%s.json", known[i].name);
        char *text = read_all(path);
        cJSON *wanted = json_read(text);
        cJSON *got = run_json(run(state, "%s " FILES "%s.safetensors %s --json", known[i].command,
                                  known[i].name, known[i].arguments));
        compare_values(got, wanted, known[i].name);
        free(text);
    }
}

/* Networks over rows of the trees' table: read, not trained. */
TEST_WITH(no_run_begins_with_networks_over_rows, folder_new, program_teardown) {
    char record[200], digest[BASIN_SHA256_TEXT];
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    static const char gone[] = "rows.safetensors: configuration: tabular 2 is no longer supported";
    assert_error(run(state, "anomaly train " FILES "payments.basin --from " FILES
                            "rows.safetensors -q -o m.safetensors"),
                 1, gone);
    assert_ok(basin_file_sha256(digest, FILES "payments.basin", &failure));
    snprintf(record, sizeof record, "version 0.2.0\nmachine any\ncommand anomaly train\ndata %s\n",
             digest);
    assert_ok(basin_model_read(&bundle, FILES "rows.safetensors", &failure));
    assert_ok(basin_bundle_meta_set(bundle, "trained.command", record, &failure));
    assert_ok(basin_bundle_digest(bundle, &failure));
    assert_ok(basin_bundle_write(folder_path(state, "rows.safetensors"), bundle, &failure));
    assert_error(run(state, "reproduce rows.safetensors " FILES "payments.basin -q"), 1, gone);
}
