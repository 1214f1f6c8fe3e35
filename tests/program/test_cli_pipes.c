/* Tables through standard input: the same network as from files, also from sqlite3 and from psql,
 * which reads a server that the test starts. Both are skipped where they are not installed. */
#include <glob.h>
#include <pwd.h>
#include <unistd.h>

#include "program/accounts.h"

#define PRINT_NODES "'SELECT * FROM accounts'"
#define PRINT_EDGES "'SELECT * FROM transfers'"

static int shell(void **state, const char *format, ...) {
    char command[2000], line[3000];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    snprintf(line, sizeof line, "cd '%s' && { %s; } >>.log 2>&1", (const char *)*state, command);
    return system(line);
}

static int remove_all(void **state) {
    (void)shell(state, "rm -rf data .s.PGSQL*");
    return program_teardown(state);
}

static void must_run(void **state, const char *command) {
    if (!shell(state, "%s", command)) return;
    shell(state, "cat .log >&2");
    fail_msg("%s", command);
}

static void skip_without(void **state, const char *name, const char *package) {
    if (!shell(state, "command -v %s", name)) return;
    print_message("skipped: %s is absent: Debian's package %s has it\n", name, package);
    skip();
}

TEST_WITH(tables_from_standard_input_are_those_of_files, make_table, remove_all) {
    must_run(state, BASIN_PROGRAM " data convert accounts.csv transfers.csv files.basin");
    must_run(state,
             BASIN_PROGRAM " data convert accounts.csv - a.basin <transfers.csv && cmp files.basin "
                           "a.basin");
    must_run(state,
             "gzip -c accounts.csv | " BASIN_PROGRAM " data convert - transfers.csv b.basin");
    const program *p = run_ok(state, "data info b.basin");
    assert_contains(p->out, "nodes     300\nfeatures  2\n");
    assert_error(run(state, "data info - - <transfers.csv"), 1,
                 "standard input: is given twice, expected once");
    assert_error(run(state, "data info accounts.csv - <files.basin"), 1, "-: ");
    assert_error(run(state, "data info - </dev/null"), 1, "-: the file is empty");
}

/* A file that standard output is redirected to keeps what it has, and gets what comes after. */
TEST_WITH(standard_output_has_a_name, make_table, remove_all) {
    static const char convert[] = BASIN_PROGRAM " data convert --quiet accounts.csv transfers.csv";
    must_run(state, BASIN_PROGRAM " data convert accounts.csv transfers.csv files.basin");
    assert_int_equal(shell(state, "%s /dev/stdout | cmp - files.basin", convert), 0);
    assert_int_equal(shell(state, "{ echo a; %s /dev/stdout; echo z; } >mixed", convert), 0);
    must_run(state, "{ echo a; cat files.basin; echo z; } | cmp - mixed");
}

TEST_WITH(sqlite_is_read_through_a_pipe, make_table, remove_all) {
    skip_without(state, "sqlite3", "sqlite3");
    must_run(state, "sqlite3 bank.db '.mode csv' '.import accounts.csv accounts' "
                    "'.import transfers.csv transfers'");
    must_run(state, BASIN_PROGRAM " data convert accounts.csv transfers.csv files.basin");
    must_run(state, "sqlite3 -csv -header bank.db " PRINT_EDGES " | " BASIN_PROGRAM
                    " data convert accounts.csv - piped.basin && cmp files.basin piped.basin");
    must_run(state,
             "sqlite3 -csv -header bank.db " PRINT_NODES " | " BASIN_PROGRAM
             " anomaly train - transfers.csv -o m.safetensors --epochs 2 --members 1 --hops 1 "
             "--blocks 1 --threads 1 --quiet");
    must_run(state, BASIN_PROGRAM " anomaly score m.safetensors accounts.csv transfers.csv >a");
    must_run(state, "sqlite3 -csv -header bank.db " PRINT_NODES " | " BASIN_PROGRAM
                    " anomaly score m.safetensors - transfers.csv >b && cmp a b");
}

/* A server in the test's folder, reached by a socket there; it ends with the test, by itself after
 * some minutes in any case. */
TEST_WITH(postgresql_is_read_through_a_pipe, make_table, remove_all) {
    glob_t found = {0};
    char programs[100] = "";
    skip_without(state, "psql", "postgresql");
    if (!glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &found))
        snprintf(programs, sizeof programs, "%.*s",
                 (int)(strlen(found.gl_pathv[found.gl_pathc - 1]) - strlen("/postgres")),
                 found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    if (!*programs) {
        print_message("skipped: no PostgreSQL server: Debian's package postgresql has it\n");
        skip();
    }
    /* a server refuses to be run by root */
    const struct passwd *user = getuid() ? NULL : getpwnam("postgres");
    const char *as = user ? "runuser -u postgres --" : "";
    if (user) assert_int_equal(chown(*state, user->pw_uid, user->pw_gid), 0);
    if (shell(state, "%s %s/initdb -D data -U basin -A trust --no-sync -E UTF8 --locale=C", as,
              programs) ||
        shell(state,
              "timeout 300 %s %s/postgres -D \"$PWD/data\" -k \"$PWD\" -c listen_addresses= "
              "-c fsync=off & for i in $(seq 100); do %s/pg_isready -q -h \"$PWD\" && exit 0; "
              "sleep 0.1; done; exit 1",
              as, programs, programs))
        must_run(state, "false");
#define PSQL "psql -v ON_ERROR_STOP=1 -q -h \"$PWD\" -U basin postgres "
    must_run(state, PSQL "-c 'CREATE TABLE accounts (id text, label int, amount real, age real)' "
                         "-c 'CREATE TABLE transfers (source text, target text)' "
                         "-c '\\copy accounts from accounts.csv csv header' "
                         "-c '\\copy transfers from transfers.csv csv header'");
    must_run(state, BASIN_PROGRAM " data convert accounts.csv transfers.csv files.basin");
    must_run(state, PSQL "--csv -c " PRINT_EDGES " | " BASIN_PROGRAM
                         " data convert accounts.csv - piped.basin && cmp files.basin piped.basin");
    must_run(state, PSQL "--csv -c " PRINT_NODES " | " BASIN_PROGRAM " data info - transfers.csv");
    (void)shell(state, "%s %s/pg_ctl -D data -m immediate -w stop", as, programs);
}
