/* Networks from a real PostgreSQL server: the same as from CSV; passwords; connections that break;
 * statements that write. Skipped where the server is not installed. */
#include <math.h>
#include <sys/stat.h>

#include "data/database/random_sql.h"
#include "data/database/server.h"

static server *here(void **state) {
    static server one;
    (void)state;
    return &one;
}

static int start(void **state) {
    setenv("PGTZ", "UTC", 1);
    setenv("PGOPTIONS", "-c client_min_messages=warning", 1);
    return server_start(here(state)) ? -1 : folder_new(state);
}

static int stop(void **state) {
    server_stop(here(state));
    return folder_remove(state);
}

static void random_tables_are_read_as_csv_is(void **state) {
    server_or_skip(here(state));
    assert_cases_alike(state, server_address(here(state)), server_run);
}

static basin_status read_server(basin_network **n, void **state, basin_network_options o,
                                basin_error *error) {
    const char *address = server_address(here(state));
    return basin_network_open(n, &address, 1, &o, error);
}

static void refuse(void **state, const char *nodes, const char *edges, const char *wanted) {
    basin_network_options o = {.nodes = nodes, .edges = edges, .missing = BASIN_MISSING_ZERO};
    basin_network *n;
    basin_error error;
    assert_int_not_equal(read_server(&n, state, o, &error), BASIN_OK);
    assert_null(n);
    if (!strstr(error.text, wanted)) fail_msg("'%s' is not in: %s", wanted, error.text);
    assert_null(strstr(error.text, SERVER_PASSWORD));
    assert_null(strchr(error.text, '\n'));
}

static const char none[] = "SELECT 1 AS src, 1 AS dst WHERE false";

/* More rows than are fetched at a time, and types that the server prints its own way. */
static void types_of_the_server_are_understood(void **state) {
    server_or_skip(here(state));
    basin_network_options o = {
        .nodes =
            "SELECT i + 9007199254740992 AS id, i % 2 = 0 AS label, "
            "(0.1 + i)::real AS small, sqrt(i::float8) AS root, (i * 1.5)::numeric(20, 4) AS n, "
            "NULLIF(i, 5)::bigint AS gap, DATE '1970-01-01' + i AS day, "
            "TIMESTAMPTZ '1970-01-02 00:00:00+00' AS at, i % 3 = 0 AS third "
            "FROM generate_series(0, 4999) i",
        .edges = "SELECT i + 9007199254740992 AS src, 9007199254740993 AS dst "
                 "FROM generate_series(2, 4999) i",
        .missing = BASIN_MISSING_ZERO};
    char text[BASIN_NODE_TEXT];
    basin_network *n;
    basin_error error;
    if (read_server(&n, state, o, &error)) fail_msg("%s", error.text);
    assert_int_equal(n->nodes, 5000);
    assert_int_equal(n->features, 8);
    assert_string_equal(basin_network_id(n, 1, text), "9007199254740993");
    for (int64_t i = 0; i < n->nodes; i++) {
        float wanted[] = {(float)(0.1 + (double)i),
                          (float)sqrt((double)i),
                          (float)i * 1.5f,
                          i == 5 ? 0 : (float)i,
                          (float)i,
                          1,
                          i % 3 != 0,
                          i % 3 == 0};
        assert_int_equal(n->label[i], i % 2 == 0);
        assert_memory_equal(n->feature + i * 8, wanted, sizeof wanted);
    }
    assert_int_equal(n->relation[0].edges, 2 * 4998);
    basin_network_free(n);
}

static void statements_that_write_are_refused(void **state) {
    server_or_skip(here(state));
    server_run(server_address(here(state)),
               "CREATE TABLE kept (src INTEGER, dst INTEGER); CREATE SEQUENCE numbers;"
               "INSERT INTO kept VALUES (1, 2);"
               "CREATE FUNCTION spoil() RETURNS INTEGER LANGUAGE sql AS"
               " 'DELETE FROM kept RETURNING 1'");
    refuse(state, NULL, "DELETE FROM kept", "query 'DELETE FROM kept': syntax error");
    refuse(state, NULL, "SELECT 1; DROP TABLE kept", "multiple commands");
    refuse(state, NULL, "SELECT 1; COMMIT; DROP TABLE kept", "multiple commands");
    refuse(state, NULL, "WITH gone AS (DELETE FROM kept RETURNING *) SELECT * FROM gone",
           "must not contain data-modifying statements");
    refuse(state, NULL, "SELECT nextval('numbers') AS src, 1 AS dst", "read-only transaction");
    refuse(state, NULL, "SELECT spoil() AS src, 1 AS dst", "read-only transaction");
    basin_network *n;
    basin_error error;
    if (read_server(&n, state, (basin_network_options){.edges = "TABLE kept;"}, &error))
        fail_msg("%s", error.text);
    assert_int_equal(n->relation[0].edges, 2);
    basin_network_free(n);
}

static void mistakes_are_told_with_the_servers_words(void **state) {
    server_or_skip(here(state));
    refuse(state, NULL, "SELECT *\n  FROM nosuch",
           "query 'SELECT * FROM nosuch': relation \"nosuch\" does not exist");
    refuse(state, "SELECT i AS id, 1 / (i - 3000) AS x FROM generate_series(0, 4000) i", none,
           "division by zero");
    refuse(state, "SELECT i AS id, random() AS r FROM generate_series(1, 3) i", none,
           "(nodes): the query gives other rows when it runs again");
    refuse(state, "SELECT 1 AS id, NULL AS x", "SELECT 1 AS src, 2 AS dst",
           "postgresql://basin:***@/postgres?host=");
}

/* Nothing is used of what came before. */
static void a_connection_that_breaks_is_an_error(void **state) {
    server_or_skip(here(state));
    refuse(state, NULL,
           "SELECT i AS src, 1 AS dst, "
           "CASE WHEN i = 5000 THEN pg_terminate_backend(pg_backend_pid()) END AS gone "
           "FROM generate_series(1, 100000) i",
           "terminating connection");
}

static basin_status try_address(const char *format, const server *s, basin_error *error) {
    char address[300];
    const char *path = address;
    basin_network *n;
    basin_network_options o = {.edges = "SELECT 1 AS src, 2 AS dst"};
    snprintf(address, sizeof address, format, s->folder);
    basin_status status = basin_network_open(&n, &path, 1, &o, error);
    basin_network_free(n);
    return status;
}

/* As libpq has it: in the address, in the environment, in a file. */
static void passwords_come_from_where_libpq_looks(void **state) {
    server *s = here(state);
    char path[PATH_TEXT];
    basin_error error;
    server_or_skip(s);
    server_run(server_address(s), "CREATE ROLE locked LOGIN PASSWORD '" SERVER_PASSWORD "'");
    assert_int_equal(try_address("postgresql://locked@/postgres?host=%s", s, &error),
                     BASIN_BAD_FILE);
    assert_non_null(strstr(error.text, "no password supplied"));
    assert_int_equal(try_address("postgresql://locked:wr0ng@/postgres?host=%s", s, &error),
                     BASIN_BAD_FILE);
    assert_non_null(strstr(error.text, "password authentication failed"));
    assert_null(strstr(error.text, "wr0ng"));
    setenv("PGPASSWORD", SERVER_PASSWORD, 1);
    setenv("PGUSER", "locked", 1);
    assert_int_equal(try_address("postgresql:///postgres?host=%s", s, &error), BASIN_OK);
    unsetenv("PGPASSWORD");
    static const char line[] = "*:*:*:locked:" SERVER_PASSWORD "\n";
    assert_int_equal(file_put(folder_path(path, state, "pgpass"), line, sizeof line - 1), 0);
    assert_int_equal(chmod(path, 0600), 0);
    setenv("PGPASSFILE", path, 1);
    assert_int_equal(try_address("postgres:///postgres?host=%s", s, &error), BASIN_OK);
    unsetenv("PGPASSFILE");
    unsetenv("PGUSER");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_tables_are_read_as_csv_is),
        cmocka_unit_test(types_of_the_server_are_understood),
        cmocka_unit_test(statements_that_write_are_refused),
        cmocka_unit_test(mistakes_are_told_with_the_servers_words),
        cmocka_unit_test(a_connection_that_breaks_is_an_error),
        cmocka_unit_test(passwords_come_from_where_libpq_looks),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
