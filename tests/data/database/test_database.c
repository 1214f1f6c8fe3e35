/* Addresses of databases, and the cells of SQLite files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "data/database/engine.h"
#include "data/database/sqlite.h"
#include "io/folder.h"

static void passwords_are_masked(void **state) {
    static const char *const shown[][2] = {
        {"postgresql://u:s3cret@host:5432/bank", "postgresql://u:***@host:5432/bank"},
        {"postgres://u@host/bank?password=s3cret&sslmode=require",
         "postgres://u@host/bank?password=***&sslmode=require"},
        {"postgresql://u:s3cret@h?sslpassword=s3cret&password=&x=1",
         "postgresql://u:***@h?sslpassword=***&password=***&x=1"},
        {"postgresql://host:5432/bank", "postgresql://host:5432/bank"},
        {"postgresql://", "postgresql://"},
        {"bank.db", "bank.db"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char *name;
        assert_int_equal(basin_database_mask(&name, shown[i][0], NULL), BASIN_OK);
        assert_string_equal(name, shown[i][1]);
        free(name);
    }
}

/* What is left of a password that ends too early must not be shown as a host or a name. */
static void passwords_out_of_place_are_refused(void **state) {
    static const char *const address[] = {
        "postgresql://u:s3@cret@host/bank", "postgresql://u:s3/cret@host/bank",
        "postgresql://u:s3?cret@host/bank", "postgresql://u:1/s3cret@host"};
    (void)state;
    for (size_t i = 0; i < sizeof address / sizeof *address; i++) {
        char *name;
        basin_error error;
        assert_int_equal(basin_database_mask(&name, address[i], &error), BASIN_BAD_VALUE);
        assert_null(name);
        assert_null(strstr(error.text, "cret"));
    }
}

static void messages_hide_passwords(void **state) {
    char message[] = "invalid URI: \"postgresql://u:s3cret@[::1?password=hush\" (s3cret)";
    char said[] = "cannot open 'mysql://u:s3cret@host/x', nor http://host/y@z";
    (void)state;
    basin_database_hide(message, "postgresql://u:s3cret@[::1?password=hush");
    assert_string_equal(message,
                        "invalid URI: \"postgresql://u:******@[::1?password=****\" (******)");
    basin_text_hide(said);
    assert_string_equal(said, "cannot open 'mysql://u:******@host/x', nor http://host/y@z");
}

static void names_say_what_is_a_database(void **state) {
    (void)state;
    assert_true(basin_database_is("postgresql://host/bank"));
    assert_true(basin_database_is("postgres://"));
    assert_true(basin_database_is("sqlite:bank"));
    assert_false(basin_database_is("bank.csv"));
    assert_true(basin_database_is_named("a/bank.DB") && basin_database_is_named("x.sqlite3"));
    assert_false(basin_database_is_named("bank.csv") || basin_database_is_named(".db"));
}

static basin_database *open_made(void **state, const char *sql) {
    char path[PATH_TEXT];
    basin_database *database;
    basin_error error;
    unlink(folder_path(path, state, "made.db"));
    sqlite_run(path, sql);
    assert_true(basin_database_is(path));
    if (basin_database_open(&database, path, &error)) fail_msg("%s", error.text);
    return database;
}

static void assert_cell(basin_database *d, int column, const char *wanted) {
    const char *text;
    size_t length;
    assert_int_equal(basin_database_cell(&text, &length, d, column, NULL), BASIN_OK);
    if (wanted) {
        assert_int_equal(length, strlen(wanted));
        assert_string_equal(text, wanted);
    } else {
        assert_null(text);
    }
}

static void numbers_keep_their_digits(void **state) {
    bool more;
    basin_database *d = open_made(
        state, "CREATE TABLE t (a INTEGER, b REAL, c TEXT, d TEXT);"
               "INSERT INTO t VALUES (9007199254740993, 0.1 + 0.2, '007', NULL), (1, 2, 3, '')");
    assert_int_equal(basin_database_query(d, "SELECT a, b AS x, c, d FROM t;\n", NULL), BASIN_OK);
    assert_int_equal(basin_database_columns(d), 4);
    assert_string_equal(basin_database_column(d, 1), "x");
    assert_int_equal(basin_database_next(&more, d, NULL), BASIN_OK);
    assert_true(more);
    assert_cell(d, 0, "9007199254740993");
    assert_cell(d, 1, "0.30000000000000004");
    assert_cell(d, 2, "007");
    assert_cell(d, 3, NULL);
    assert_int_equal(basin_database_next(&more, d, NULL), BASIN_OK);
    assert_cell(d, 1, "2");
    assert_cell(d, 3, "");
    assert_int_equal(basin_database_next(&more, d, NULL), BASIN_OK);
    assert_false(more);
    basin_database_close(d);
}

static void what_is_no_query_is_refused(void **state) {
    static const char *const bad[][2] = {
        {"DELETE FROM t", "query 'DELETE FROM t': it writes"},
        {"INSERT INTO t VALUES (2) RETURNING a", "it writes"},
        {"SELECT a FROM t; DROP TABLE t", "something follows the first statement"},
        {"", "it has no columns"},
        {"-- nothing", "it has no columns"},
        {"ATTACH 'other.db' AS other", "it has no columns"},
        {"SELECT  *\n FROM nosuch", "query 'SELECT * FROM nosuch': no such table: nosuch"},
        {"SELECT 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o' FROM u",
         "'m', 'n',...': no such table: u"},
        {"SELEC", "syntax error"}};
    basin_database *d = open_made(state, "CREATE TABLE t (a); INSERT INTO t VALUES (x'00ff')");
    const char *text;
    size_t length;
    bool more;
    basin_error error;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(basin_database_query(d, bad[i][0], &error), BASIN_BAD_FILE);
        if (!strstr(error.text, bad[i][1])) fail_msg("%s", error.text);
    }
    assert_int_equal(basin_database_query(d, "SELECT a FROM t", &error), BASIN_OK);
    assert_int_equal(basin_database_next(&more, d, &error), BASIN_OK);
    assert_true(more);
    assert_int_equal(basin_database_cell(&text, &length, d, 0, &error), BASIN_BAD_FILE);
    assert_non_null(strstr(error.text, "row 1: column 'a' holds a blob"));
    basin_database_close(d);
}

static void absent_files_are_not_made(void **state) {
    char path[PATH_TEXT];
    basin_database *database;
    basin_error error;
    (void)sqlite_or_skip();
    folder_path(path, state, "absent.db");
    assert_int_equal(basin_database_open(&database, path, &error), BASIN_BAD_FILE);
    assert_null(database);
    assert_non_null(strstr(error.text, "absent.db: unable to open"));
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(basin_database_open(&database, "sqlite:", &error), BASIN_BAD_VALUE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passwords_are_masked),
        cmocka_unit_test(passwords_out_of_place_are_refused),
        cmocka_unit_test(messages_hide_passwords),
        cmocka_unit_test(names_say_what_is_a_database),
        cmocka_unit_test(numbers_keep_their_digits),
        cmocka_unit_test(what_is_no_query_is_refused),
        cmocka_unit_test(absent_files_are_not_made),
    };
    return cmocka_run_group_tests(tests, folder_new, folder_remove);
}
