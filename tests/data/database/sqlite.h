/* Files of SQLite for tests, made through the library that Basin opens at run time. */
#ifndef TESTS_DATA_DATABASE_SQLITE_H
#define TESTS_DATA_DATABASE_SQLITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/library.h"

typedef struct sqlite_maker {
    int (*open)(const char *path, void **db);
    int (*exec)(void *db, const char *sql, void *row, void *context, char **message);
    int (*close)(void *db);
} sqlite_maker;

/* Skips the test where SQLite is absent. */
static inline sqlite_maker sqlite_or_skip(void) {
    static const basin_library_function name[] = {
        {.name = "sqlite3_open"}, {.name = "sqlite3_exec"}, {.name = "sqlite3_close"}, {0}};
    sqlite_maker maker;
    basin_error error;
    if (!basin_library_load(&maker, BASIN_LIBRARY_SQLITE, name, &error)) return maker;
    print_message("skipped: %s\n", error.text);
    skip();
    return maker;
}

/* Runs statements on the file, which is made where it is not there. */
static inline void sqlite_run(const char *path, const char *sql) {
    sqlite_maker maker = sqlite_or_skip();
    void *db = NULL;
    char *message = NULL;
    assert_int_equal(maker.open(path, &db), 0);
    /* One transaction, not written through to the disk: each statement would wait for it. */
    assert_int_equal(maker.exec(db, "PRAGMA synchronous = OFF; BEGIN", NULL, NULL, NULL), 0);
    if (maker.exec(db, sql, NULL, NULL, &message)) fail_msg("%s: %s", path, message);
    assert_int_equal(maker.exec(db, "COMMIT", NULL, NULL, NULL), 0);
    assert_int_equal(maker.close(db), 0);
}

#endif
