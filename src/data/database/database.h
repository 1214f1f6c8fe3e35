/* Databases that tables are read from: PostgreSQL (libpq) and SQLite files, whose libraries are
 * opened at run time.
 *
 *     basin_database_open(&database, "postgresql://reader@host/bank", &error);
 *     basin_database_query(database, "SELECT id, balance FROM accounts", &error);
 *     while (!basin_database_next(&more, database, &error) && more)
 *         basin_database_cell(&text, &length, database, 1, &error);
 *     basin_database_close(database);
 *
 * A database is read, never written to, and all queries see the same state of it. One query runs at
 * a time; its rows are not kept. Cells are text: numbers have all their digits. Messages name the
 * database without its password, the beginning of the query, and what the database says. */
#ifndef BASIN_DATA_DATABASE_DATABASE_H
#define BASIN_DATA_DATABASE_DATABASE_H

#include <stdbool.h>
#include <stddef.h>

#include "basin/status.h"

typedef struct basin_database basin_database;

/* Whether it is one by itself: postgresql://.., sqlite:PATH, or a file that SQLite made. */
bool basin_database_is(const char *address);
/* The names that files of SQLite usually have: .sqlite, .sqlite3, .db. */
bool basin_database_is_named(const char *path);

/* The address as messages show it, with *** for passwords; free() it. Fails where a password may be
 * somewhere else than it should be: it would be shown. */
basin_status basin_database_mask(char **name, const char *address, basin_error *error);
basin_status basin_database_open(basin_database **database, const char *address,
                                 basin_error *error);
void basin_database_close(basin_database *database);
/* As basin_database_mask has it. */
const char *basin_database_name(const basin_database *database);

/* Begins a query, which must live as long as it runs; ends one that runs. Rows come by
 * basin_database_next; names of columns are there at once. */
basin_status basin_database_query(basin_database *database, const char *sql, basin_error *error);
void basin_database_end(basin_database *database);
int basin_database_columns(const basin_database *database);
const char *basin_database_column(const basin_database *database, int column);
basin_status basin_database_next(bool *more, basin_database *database, basin_error *error);
/* A cell of the row, valid until the next cell; NULL where it is empty. */
basin_status basin_database_cell(const char **text, size_t *length, basin_database *database,
                                 int column, basin_error *error);

#endif
