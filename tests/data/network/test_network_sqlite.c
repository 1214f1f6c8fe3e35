/* Networks from files of SQLite: the same as from CSV, and what is refused. */
#include "data/database/random_sql.h"
#include "data/database/sqlite.h"

static void make(const char *address, const char *sql) { sqlite_run(address, sql); }

static void random_tables_are_read_as_csv_is(void **state) {
    char path[PATH_TEXT];
    (void)sqlite_or_skip();
    assert_cases_alike(state, folder_path(path, state, "random.db"), make);
}

static const char *make_bank(void **state) {
    static char path[PATH_TEXT];
    unlink(folder_path(path, state, "bank.db"));
    sqlite_run(path, "CREATE TABLE accounts (id INTEGER, balance REAL, source TEXT, target TEXT);"
                     "INSERT INTO accounts VALUES (9007199254740993, 1.5, 'web', 'x'),"
                     "  (9007199254740992, NULL, 'web', 'y'), (7, 3, 'shop', 'x');"
                     "CREATE TABLE transfers (src INTEGER, dst INTEGER);"
                     "INSERT INTO transfers VALUES (9007199254740993, 7), (7, 9007199254740992)");
    return path;
}

static basin_network *read_bank(void **state, basin_network_options o) {
    const char *path = make_bank(state);
    basin_network *n;
    basin_error error;
    if (!o.nodes) o.nodes = "SELECT * FROM accounts";
    if (!o.edges) o.edges = "SELECT * FROM transfers";
    if (basin_network_open(&n, &path, 1, &o, &error)) fail_msg("%s", error.text);
    return n;
}

/* Columns called source and target make no edges of what the caller calls nodes. */
static void the_option_says_which_query_is_which(void **state) {
    basin_network *n = read_bank(state, (basin_network_options){.missing = BASIN_MISSING_MEAN});
    char text[BASIN_NODE_TEXT], path[PATH_TEXT];
    assert_int_equal(n->nodes, 3);
    assert_int_equal(n->features, 5);
    assert_string_equal(basin_network_id(n, 0, text), "9007199254740993");
    assert_string_equal(basin_network_id(n, 1, text), "9007199254740992");
    assert_true(n->feature[5] == 2.25f);
    assert_int_equal(n->relation[0].edges, 4);
    assert_string_equal(n->path, folder_path(path, state, "bank.db"));
    basin_network_free(n);
}

static void refuse(void **state, basin_network_options o, const char *wanted) {
    const char *path = make_bank(state);
    basin_network *n;
    basin_error error;
    assert_int_not_equal(basin_network_open(&n, &path, 1, &o, &error), BASIN_OK);
    assert_null(n);
    if (!strstr(error.text, wanted)) fail_msg("'%s' is not in: %s", wanted, error.text);
}

static void mistakes_are_told(void **state) {
    const char *nodes = "SELECT id, balance FROM accounts WHERE id = 7";
    const char *edges = "SELECT * FROM transfers";
#define OPTIONS(...) ((basin_network_options){__VA_ARGS__})
    refuse(state, OPTIONS(.nodes = nodes), "bank.db: is a database, wanted the option edges");
    refuse(state, OPTIONS(.edges = edges, .no_header = true), "wanted no option no_header");
    refuse(state, OPTIONS(.edges = nodes),
           "bank.db (edges): no column for the source of an edge; there are id, balance");
    refuse(state, OPTIONS(.nodes = nodes, .edges = edges),
           "bank.db (edges): row 1: node '9007199254740993' is in no file of nodes");
    refuse(state, OPTIONS(.nodes = "SELECT id, balance FROM accounts", .edges = edges),
           "bank.db (nodes): feature 0 balance of node 9007199254740992 is missing");
    refuse(state, OPTIONS(.nodes = "SELECT id, random() AS r FROM accounts", .edges = edges),
           "bank.db (nodes): the query gives other rows when it runs again");
    refuse(state,
           OPTIONS(.nodes = "SELECT random() AS id FROM accounts", .edges = edges,
                   .unknown = BASIN_UNKNOWN_SKIP),
           "bank.db (nodes): the query gives other rows when it runs again");
    refuse(state,
           OPTIONS(.nodes = "SELECT id, CASE id WHEN 7 THEN 'x' ELSE 1 END v FROM accounts",
                   .edges = edges),
           "bank.db (nodes): row 3: column 'v' holds 'x', wanted a number");
    refuse(state, OPTIONS(.nodes = "SELECT id FROM accounts WHERE id < 0", .edges = edges),
           "row 1: node");
    refuse(state, OPTIONS(.edges = "SELECT * FROM transfers WHERE src < 0"),
           "bank.db (edges): no row");
#undef OPTIONS
}

/* Queries go with one database, and with nothing else. */
static void queries_go_with_a_database(void **state) {
    char csv[PATH_TEXT];
    const char *bank = make_bank(state);
    FILE *file = fopen(folder_path(csv, state, "edges.csv"), "w");
    fputs("src,dst\n1,2\n", file);
    fclose(file);
    const char *both[] = {csv, bank};
    basin_network_options o = {.edges = "SELECT * FROM transfers"};
    basin_network *n;
    basin_error error;
    assert_int_equal(basin_network_open(&n, both, 1, &o, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "edges.csv: is no database, wanted no option edges"));
    assert_int_equal(basin_network_open(&n, both, 2, &o, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "bank.db: is a database among 2 files, wanted it alone"));
    assert_int_equal(basin_network_open(&n, &both[1], 1, NULL, &error), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "bank.db: is a database, wanted the option edges"));
}

/* Tables of a database add to a graph as those of files do. */
static void databases_add_to_a_base(void **state) {
    basin_network *base = read_bank(state, (basin_network_options){.missing = BASIN_MISSING_MEAN});
    basin_network *n = read_bank(
        state, (basin_network_options){
                   .base = base,
                   .nodes = "SELECT 8 AS id, 2.5 AS balance, 'web' AS source, 'y' AS target",
                   .edges = "SELECT 8 AS src, 7 AS dst"});
    assert_int_equal(n->nodes, 4);
    assert_true(n->feature[15] == 2.5f);
    assert_int_equal(n->relation[0].edges, 6);
    basin_network_free(n);
    basin_network_free(base);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_tables_are_read_as_csv_is),
        cmocka_unit_test(the_option_says_which_query_is_which),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(queries_go_with_a_database),
        cmocka_unit_test(databases_add_to_a_base),
    };
    return cmocka_run_group_tests(tests, folder_new, folder_remove);
}
