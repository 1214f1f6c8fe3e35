/* The program on a database: what CSV gives, from training to reasons; and options that do not go
 * together. */
#include "cli/accounts.h"
#include "data/database/sqlite.h"

#define QUERIES "bank.db --nodes 'SELECT * FROM accounts' --edges 'SELECT * FROM transfers'"
#define QUICK "--epochs 4 --members 1 --hops 1 --blocks 1 --threads 1 --quiet"

/* The tables of accounts.h once more, made from the CSV files. */
static void make_bank(void **state) {
    static char sql[200000];
    char line[200], path[PATH_TEXT], *at = sql;
    at += sprintf(at, "CREATE TABLE accounts (id TEXT, label INTEGER, amount REAL, age REAL);"
                      "CREATE TABLE transfers (source TEXT, target TEXT);");
    const char *const name[] = {"accounts", "transfers"};
    for (int t = 0; t < 2; t++) {
        snprintf(line, sizeof line, "%s.csv", name[t]);
        FILE *file = fopen(folder_path(path, state, line), "r");
        assert_non_null(file);
        assert_non_null(fgets(line, sizeof line, file));
        while (fgets(line, sizeof line, file)) {
            char *rest = line;
            line[strcspn(line, "\n")] = 0;
            at += sprintf(at, "INSERT INTO %s VALUES (", name[t]);
            for (const char *cell; (cell = strsep(&rest, ","));)
                at += sprintf(at, *cell ? "'%s'%s" : "NULL%.0s%s", cell, rest ? "," : ");");
        }
        fclose(file);
    }
    unlink(folder_path(path, state, "bank.db"));
    sqlite_run(path, sql);
}

static void assert_same(void **state, const char *a, const char *b) {
    static char text[2][1 << 18];
    char path[PATH_TEXT];
    slurp(text[0], sizeof text[0], folder_path(path, state, a));
    slurp(text[1], sizeof text[1], folder_path(path, state, b));
    assert_memory_equal(text[0], text[1], sizeof text[0]);
}

static void a_database_is_converted_as_files_are(void **state) {
    make_bank(state);
    const program *p = run(state, "data convert accounts.csv transfers.csv files.basin");
    assert_int_equal(p->code, 0);
    p = run(state, "data convert " QUERIES " queries.basin");
    if (p->code) fail_msg("%s", p->err);
    assert_same(state, "files.basin", "queries.basin");
    p = run(state, "data info sqlite:" QUERIES);
    assert_int_equal(p->code, 0);
    assert_contains(p->out, "sqlite:bank.db: 300 nodes, 2 features");
}

static void a_detector_may_live_on_a_database(void **state) {
    make_bank(state);
    static char scores[sizeof((program *)0)->out];
    const program *p = run(state, "anomaly train " QUERIES " -o m.safetensors " QUICK);
    if (p->code) fail_msg("%s", p->err);
    p = run(state, "anomaly score m.safetensors accounts.csv transfers.csv --quiet");
    assert_int_equal(p->code, 0);
    memcpy(scores, p->out, sizeof scores);
    p = run(state, "anomaly score m.safetensors " QUERIES " --quiet");
    if (p->code) fail_msg("%s", p->err);
    assert_string_equal(p->out, scores);
    p = run(state, "anomaly explain m.safetensors acc3 " QUERIES " --quiet");
    if (p->code) fail_msg("%s", p->err);
    assert_contains(p->out, "acc3");
}

static void options_that_do_not_fit_are_refused(void **state) {
    make_bank(state);
    assert_error(run(state, "data info accounts.csv transfers.csv --nodes 'SELECT 1'"), 1,
                 "accounts.csv: is no database, wanted no option nodes");
    assert_error(run(state, "data info bank.db"), 1,
                 "bank.db: is a database, wanted the option edges");
    assert_error(run(state, "data info bank.db transfers.csv --edges 'SELECT 1'"), 1,
                 "wanted it alone");
    assert_error(run(state, "data info bank.db --edges 'DROP TABLE transfers'"), 1,
                 "bank.db: query 'DROP TABLE transfers': it writes");
}

/* In whatever place an address is given. */
static void passwords_are_not_printed(void **state) {
    static const char *const line[] = {
        "data info 'postgresql://u:s3cret@/x?host=/nowhere' --edges 'SELECT 1'",
        "data info 'postgresql://u:s3@cret@/x?host=/nowhere' --edges 'SELECT 1'",
        "data info 'postgresql://u:s3cret@[::1' --edges 'SELECT 1'",
        "data info 'postgresql://u@/x?host=/nowhere&password=s3cret' --edges 'SELECT 1'",
        "data info 'postgresql://u:s3cret@/x?host=/nowhere'",
        "data info 'mysql://u:s3cret@host/x'",
        "anomaly score 'postgresql://u:s3cret@/x' bank.db --edges 'SELECT 1'",
        "data convert transfers.csv 'postgresql://u:s3cret@/x'"};
    for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
        const program *p = run(state, "%s", line[i]);
        assert_int_equal(p->code, 1);
        if (strstr(p->err, "cret")) fail_msg("%s: %s", line[i], p->err);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_database_is_converted_as_files_are),
        cmocka_unit_test(a_detector_may_live_on_a_database),
        cmocka_unit_test(options_that_do_not_fit_are_refused),
        cmocka_unit_test(passwords_are_not_printed),
    };
    return cmocka_run_group_tests(tests, make_table, program_teardown);
}
