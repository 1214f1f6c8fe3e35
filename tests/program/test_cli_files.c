/* Model files that the program wrote before (tests/files): they open, and give the numbers that
 * they gave then. */
#include <math.h>
#include <stdbool.h>

#include "program/program.h"

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

TEST_WITH(scores_are_as_they_were, folder_new, program_teardown) {
    static const struct {
        const char *name, *arguments;
    } known[] = {{"image", "shapes:64 --part all --masks 2"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const cJSON *item;
        char path[400];
        snprintf(path, sizeof path, FILES "%s.json", known[i].name);
        char *text = read_all(path);
        cJSON *wanted = json_read(text);
        cJSON *got = run_json(run(state, "%s eval " FILES "%s.safetensors %s --json", known[i].name,
                                  known[i].name, known[i].arguments));
        cJSON_ArrayForEach(item, wanted) {
            double number = json_number(got, item->string);
            if (fabs(number - item->valuedouble) > 10 * TOLERANCE)
                fail_msg("%s: %s is %.9g, wanted %.9g", known[i].name, item->string, number,
                         item->valuedouble);
        }
        free(text);
    }
}
