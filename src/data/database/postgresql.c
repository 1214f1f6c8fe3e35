/* PostgreSQL through libpq: a cursor in a transaction that only reads. Addresses, PG* variables of
 * the environment and .pgpass are libpq's matter. The functions are declared here, as libpq.so.5
 * has them, so that building needs no header of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "data/database/engine.h"

typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
PGconn *PQconnectdb(const char *address);
int PQstatus(const PGconn *connection);
char *PQerrorMessage(const PGconn *connection);
void PQfinish(PGconn *connection);
void (*PQsetNoticeProcessor(PGconn *connection, void (*processor)(void *, const char *),
                            void *context))(void *, const char *);
int PQsetClientEncoding(PGconn *connection, const char *encoding);
PGresult *PQexec(PGconn *connection, const char *sql);
PGresult *PQexecParams(PGconn *connection, const char *sql, int count, const unsigned *types,
                       const char *const *values, const int *lengths, const int *formats,
                       int binary);
int PQresultStatus(const PGresult *result);
char *PQresultErrorField(const PGresult *result, int field);
void PQclear(PGresult *result);
int PQntuples(const PGresult *result);
int PQnfields(const PGresult *result);
char *PQfname(const PGresult *result, int column);
unsigned PQftype(const PGresult *result, int column);
int PQgetisnull(const PGresult *result, int row, int column);
char *PQgetvalue(const PGresult *result, int row, int column);
int PQgetlength(const PGresult *result, int row, int column);

#define FUNCTIONS(X)                                                                               \
    X(PQconnectdb)                                                                                 \
    X(PQstatus)                                                                                    \
    X(PQerrorMessage)                                                                              \
    X(PQfinish)                                                                                    \
    X(PQsetNoticeProcessor)                                                                        \
    X(PQsetClientEncoding)                                                                         \
    X(PQexec)                                                                                      \
    X(PQexecParams)                                                                                \
    X(PQresultStatus)                                                                              \
    X(PQresultErrorField)                                                                          \
    X(PQclear)                                                                                     \
    X(PQntuples)                                                                                   \
    X(PQnfields)                                                                                   \
    X(PQfname)                                                                                     \
    X(PQftype)                                                                                     \
    X(PQgetisnull)                                                                                 \
    X(PQgetvalue)                                                                                  \
    X(PQgetlength)

/* The numbers of libpq-fe.h and pg_type.h. */
enum { CONNECTION_OK = 0, PGRES_COMMAND_OK = 1, PGRES_TUPLES_OK = 2, BOOLOID = 16 };
enum { PG_DIAG_MESSAGE_PRIMARY = 'M' };

/* The library comes first: basin_library_load fills it. */
typedef struct state {
    struct {
        FUNCTIONS(BASIN_LIBRARY_FIELD)
    } lib;
    PGconn *connection;
    PGresult *batch; /* the rows that are here */
    int row;         /* of these */
} state;

static void clear(state *s) {
    if (s->batch) s->lib.PQclear(s->batch);
    s->batch = NULL;
}

/* Takes a result over; it must be as wanted. */
static basin_status take(basin_database *d, PGresult *result, int wanted, basin_error *error) {
    state *s = d->state;
    clear(s);
    s->batch = result;
    if (result && s->lib.PQresultStatus(result) == wanted) return BASIN_OK;
    const char *said = result ? s->lib.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    return basin_database_fail(d, said ? said : s->lib.PQerrorMessage(s->connection), error);
}

static basin_status execute(basin_database *d, const char *sql, int wanted, basin_error *error) {
    state *s = d->state;
    return take(d, s->lib.PQexec(s->connection, sql), wanted, error);
}

/* libpq prints what a server remarks unless told otherwise. */
static void ignore(void *context, const char *remark) { (void)context, (void)remark; }

/* Queries see one state of the database; numbers come with all their digits, dates as ISO 8601. */
static basin_status begin(basin_database *d, basin_error *error) {
    static const char *const command[] = {
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SET LOCAL DateStyle = ISO",
        "SET LOCAL extra_float_digits = 3", "SET LOCAL cursor_tuple_fraction = 1"};
    state *s = d->state;
    basin_status status = BASIN_OK;
    (void)s->lib.PQsetNoticeProcessor(s->connection, ignore, NULL);
    if (s->lib.PQsetClientEncoding(s->connection, "UTF8"))
        return basin_database_fail(d, s->lib.PQerrorMessage(s->connection), error);
    for (size_t i = 0; i < sizeof command / sizeof *command && !status; i++)
        status = execute(d, command[i], PGRES_COMMAND_OK, error);
    return status;
}

static basin_status connect_server(basin_database *d, basin_error *error) {
    static const basin_library_function wanted[] = {FUNCTIONS(BASIN_LIBRARY_NAME){0}};
    basin_error why;
    state *s = d->state = calloc(1, sizeof *s);
    if (!s) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", d->name);
    if (basin_library_load(&s->lib, BASIN_LIBRARY_PQ, wanted, &why))
        return basin_fail(error, why.status, "%s: %s", d->name, why.text);
    s->connection = s->lib.PQconnectdb(d->address);
    if (!s->connection) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", d->name);
    if (s->lib.PQstatus(s->connection) != CONNECTION_OK)
        return basin_database_fail(d, s->lib.PQerrorMessage(s->connection), error);
    return begin(d, error);
}

static void close_connection(basin_database *d) {
    state *s = d->state;
    if (!s) return;
    clear(s);
    if (s->connection) s->lib.PQfinish(s->connection);
    free(s);
}

static void end(basin_database *d) {
    state *s = d->state;
    clear(s);
    s->batch = s->lib.PQexec(s->connection, "CLOSE basin_rows");
    clear(s);
}

/* PQexecParams takes one statement alone: nothing can follow that would end the transaction. The
 * fetch of no row tells the columns before the query is run. */
static basin_status query(basin_database *d, basin_error *error) {
    static const char before[] = "DECLARE basin_rows NO SCROLL CURSOR FOR ";
    state *s = d->state;
    size_t size = sizeof before + strlen(d->sql);
    char *sql = malloc(size);
    if (!sql) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", d->name);
    snprintf(sql, size, "%s%s", before, d->sql);
    basin_status status =
        take(d, s->lib.PQexecParams(s->connection, sql, 0, NULL, NULL, NULL, NULL, 0),
             PGRES_COMMAND_OK, error);
    free(sql);
    s->row = -1;
    return status ? status : execute(d, "FETCH 0 FROM basin_rows", PGRES_TUPLES_OK, error);
}

static int columns(const basin_database *d) {
    const state *s = d->state;
    return s->lib.PQnfields(s->batch);
}

static const char *column_name(const basin_database *d, int column) {
    const state *s = d->state;
    return s->lib.PQfname(s->batch, column);
}

static basin_status next(bool *more, basin_database *d, basin_error *error) {
    state *s = d->state;
    basin_status status = BASIN_OK;
    if (++s->row >= s->lib.PQntuples(s->batch)) {
        status = execute(d, "FETCH 2000 FROM basin_rows", PGRES_TUPLES_OK, error);
        s->row = 0;
    }
    *more = !status && s->row < s->lib.PQntuples(s->batch);
    return status;
}

/* Booleans as t and f are nothing that labels could be. */
static basin_status cell(const char **text, size_t *length, basin_database *d, int column,
                         basin_error *error) {
    const state *s = d->state;
    (void)error;
    *text = NULL;
    *length = 0;
    if (s->lib.PQgetisnull(s->batch, s->row, column)) return BASIN_OK;
    *text = s->lib.PQgetvalue(s->batch, s->row, column);
    *length = (size_t)s->lib.PQgetlength(s->batch, s->row, column);
    if (s->lib.PQftype(s->batch, column) != BOOLOID) return BASIN_OK;
    *text = **text == 't' ? "true" : "false";
    *length = strlen(*text);
    return BASIN_OK;
}

const basin_database_engine basin_database_postgresql = {
    connect_server, close_connection, query, end, columns, column_name, next, cell};
