/* SQLite files, opened for reading alone. The functions are declared here, as libsqlite3 has them
 * since 3.7, so that building needs no header of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/library.h"
#include "data/database/engine.h"
#include "io/json_writer.h"

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
int sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs);
int sqlite3_close(sqlite3 *db);
const char *sqlite3_errmsg(sqlite3 *db);
int sqlite3_busy_timeout(sqlite3 *db, int milliseconds);
int sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **),
                 void *context, char **message);
int sqlite3_prepare_v2(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **statement,
                       const char **tail);
int sqlite3_stmt_readonly(sqlite3_stmt *statement);
int sqlite3_step(sqlite3_stmt *statement);
int sqlite3_finalize(sqlite3_stmt *statement);
int sqlite3_column_count(sqlite3_stmt *statement);
const char *sqlite3_column_name(sqlite3_stmt *statement, int column);
int sqlite3_column_type(sqlite3_stmt *statement, int column);
double sqlite3_column_double(sqlite3_stmt *statement, int column);
const unsigned char *sqlite3_column_text(sqlite3_stmt *statement, int column);
int sqlite3_column_bytes(sqlite3_stmt *statement, int column);

#define FUNCTIONS(X)                                                                               \
    X(sqlite3_open_v2)                                                                             \
    X(sqlite3_close)                                                                               \
    X(sqlite3_errmsg)                                                                              \
    X(sqlite3_busy_timeout)                                                                        \
    X(sqlite3_exec)                                                                                \
    X(sqlite3_prepare_v2)                                                                          \
    X(sqlite3_stmt_readonly)                                                                       \
    X(sqlite3_step)                                                                                \
    X(sqlite3_finalize)                                                                            \
    X(sqlite3_column_count)                                                                        \
    X(sqlite3_column_name)                                                                         \
    X(sqlite3_column_type)                                                                         \
    X(sqlite3_column_double)                                                                       \
    X(sqlite3_column_text)                                                                         \
    X(sqlite3_column_bytes)

/* The numbers of sqlite3.h. */
enum { SQLITE_OK = 0, SQLITE_ROW = 100, SQLITE_DONE = 101, SQLITE_OPEN_READONLY = 1 };
enum { SQLITE_FLOAT = 2, SQLITE_BLOB = 4, SQLITE_NULL = 5 };

/* The library comes first: basin_library_load fills it. */
typedef struct state {
    struct {
        FUNCTIONS(BASIN_LIBRARY_FIELD)
    } lib;
    sqlite3 *db;
    sqlite3_stmt *statement;
    int64_t row;
    char number[BASIN_NUMBER_TEXT];
} state;

static basin_status fail(const basin_database *d, basin_error *error) {
    const state *s = d->state;
    return basin_database_fail(d, s->db ? s->lib.sqlite3_errmsg(s->db) : "out of memory", error);
}

/* One state of the file for all queries; writers wait as long. */
static basin_status begin(basin_database *d, const char *path, basin_error *error) {
    state *s = d->state;
    if (s->lib.sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        return fail(d, error);
    (void)s->lib.sqlite3_busy_timeout(s->db, 5000);
    if (s->lib.sqlite3_exec(s->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) return fail(d, error);
    return BASIN_OK;
}

static basin_status open_file(basin_database *d, basin_error *error) {
    static const basin_library_function wanted[] = {FUNCTIONS(BASIN_LIBRARY_NAME){0}};
    const char *path = d->address + (strncasecmp(d->address, "sqlite:", 7) ? 0 : 7);
    basin_error why;
    if (!*path)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: wanted the path of a file behind it",
                          d->name);
    state *s = d->state = calloc(1, sizeof *s);
    if (!s) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", d->name);
    if (basin_library_load(&s->lib, BASIN_LIBRARY_SQLITE, wanted, &why))
        return basin_fail(error, why.status, "%s: %s", d->name, why.text);
    return begin(d, path, error);
}

static void close_file(basin_database *d) {
    state *s = d->state;
    if (s && s->db) (void)s->lib.sqlite3_close(s->db);
    free(s);
}

static void end(basin_database *d) {
    state *s = d->state;
    if (s->statement) (void)s->lib.sqlite3_finalize(s->statement);
    s->statement = NULL;
}

static basin_status query(basin_database *d, basin_error *error) {
    state *s = d->state;
    const char *tail = "";
    s->row = 0;
    if (s->lib.sqlite3_prepare_v2(s->db, d->sql, -1, &s->statement, &tail) != SQLITE_OK)
        return fail(d, error);
    if (s->statement && !s->lib.sqlite3_stmt_readonly(s->statement))
        return basin_database_fail(d, "it writes; wanted a query that reads", error);
    if (!s->statement || !s->lib.sqlite3_column_count(s->statement))
        return basin_database_fail(d, "it has no columns; wanted a query that gives rows", error);
    if (tail[strspn(tail, " \t\r\n;")])
        return basin_database_fail(d, "something follows the first statement; wanted one", error);
    return BASIN_OK;
}

static int columns(const basin_database *d) {
    const state *s = d->state;
    return s->lib.sqlite3_column_count(s->statement);
}

static const char *column_name(const basin_database *d, int column) {
    const state *s = d->state;
    return s->lib.sqlite3_column_name(s->statement, column);
}

static basin_status next(bool *more, basin_database *d, basin_error *error) {
    state *s = d->state;
    int code = s->lib.sqlite3_step(s->statement);
    *more = code == SQLITE_ROW;
    s->row++;
    return *more || code == SQLITE_DONE ? BASIN_OK : fail(d, error);
}

/* SQLite itself prints 15 digits of a number. */
static basin_status cell(const char **text, size_t *length, basin_database *d, int column,
                         basin_error *error) {
    state *s = d->state;
    int type = s->lib.sqlite3_column_type(s->statement, column);
    *text = NULL;
    *length = 0;
    if (type == SQLITE_NULL) return BASIN_OK;
    if (type == SQLITE_BLOB) {
        char message[200];
        snprintf(message, sizeof message,
                 "row %" PRId64 ": column '%.80s' holds a blob, wanted text or a number", s->row,
                 column_name(d, column));
        return basin_database_fail(d, message, error);
    }
    if (type == SQLITE_FLOAT) {
        *text = basin_number_print(s->number, s->lib.sqlite3_column_double(s->statement, column));
        *length = strlen(*text);
        return BASIN_OK;
    }
    *text = (const char *)s->lib.sqlite3_column_text(s->statement, column);
    *length = (size_t)s->lib.sqlite3_column_bytes(s->statement, column);
    return *text ? BASIN_OK : fail(d, error);
}

const basin_database_engine basin_database_sqlite = {open_file, close_file,  query, end,
                                                     columns,   column_name, next,  cell};
