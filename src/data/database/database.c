/* Databases; see database.h. What both kinds have in common: addresses and messages. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "data/database/engine.h"

static bool begins(const char *text, const char *with) {
    return !strncasecmp(text, with, strlen(with));
}

static bool is_postgresql(const char *address) {
    return begins(address, "postgresql://") || begins(address, "postgres://");
}

static bool is_sqlite_file(const char *path) {
    static const char magic[16] = "SQLite format 3";
    char first[sizeof magic] = {0};
    struct stat about;
    FILE *file = !stat(path, &about) && S_ISREG(about.st_mode) ? fopen(path, "rb") : NULL;
    if (!file) return false;
    size_t got = fread(first, 1, sizeof first, file);
    fclose(file);
    return got == sizeof first && !memcmp(first, magic, sizeof magic);
}

bool basin_database_is_named(const char *path) {
    static const char *const ending[] = {".sqlite", ".sqlite3", ".db"};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        size_t part = strlen(ending[i]);
        if (length > part && !strcasecmp(path + length - part, ending[i])) return true;
    }
    return false;
}

bool basin_database_is(const char *address) {
    return is_postgresql(address) || begins(address, "sqlite:") || is_sqlite_file(address);
}

/* ---- messages ---- */

/* Blanks and line breaks become one blank; what is too long is cut. */
static void shorten(char *to, size_t size, const char *text) {
    size_t n = 0;
    while (isspace((unsigned char)*text)) text++;
    for (; *text && n + 4 < size; text++) {
        bool blank = isspace((unsigned char)*text);
        if (blank && (!text[1] || isspace((unsigned char)text[1]))) continue;
        to[n++] = blank ? ' ' : *text;
    }
    snprintf(to + n, size - n, "%s", *text ? "..." : "");
}

basin_status basin_database_fail(const basin_database *d, const char *message, basin_error *error) {
    char sql[80] = "", text[300];
    char *copy = basin_string_copy(message && *message ? message : "it does not say why");
    if (!copy) return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", d->name);
    basin_database_hide(copy, d->address);
    shorten(text, sizeof text, copy);
    free(copy);
    if (d->sql) shorten(sql, sizeof sql, d->sql);
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s%s%s%s", d->name, d->sql ? "query '" : "", sql,
                      d->sql ? "': " : "", text);
}

/* ---- the interface ---- */

basin_status basin_database_open(basin_database **database, const char *address,
                                 basin_error *error) {
    *database = NULL;
    basin_database *d = calloc(1, sizeof *d);
    if (!d) return basin_fail(error, BASIN_NO_MEMORY, "out of memory to open a database");
    d->engine = is_postgresql(address) ? &basin_database_postgresql : &basin_database_sqlite;
    basin_status status = basin_database_mask(&d->name, address, error);
    d->address = basin_string_copy(address);
    if (!status && !d->address)
        status = basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", d->name);
    if (!status) status = d->engine->open(d, error);
    if (status)
        basin_database_close(d);
    else
        *database = d;
    return status;
}

void basin_database_close(basin_database *d) {
    if (!d) return;
    basin_database_end(d);
    d->engine->close(d);
    free(d->address);
    free(d->name);
    free(d);
}

const char *basin_database_name(const basin_database *database) { return database->name; }

basin_status basin_database_query(basin_database *d, const char *sql, basin_error *error) {
    basin_database_end(d);
    d->sql = sql;
    return d->engine->query(d, error);
}

void basin_database_end(basin_database *d) {
    if (d->sql) d->engine->end(d);
    d->sql = NULL;
}

int basin_database_columns(const basin_database *d) { return d->engine->columns(d); }

const char *basin_database_column(const basin_database *d, int column) {
    return d->engine->column(d, column);
}

basin_status basin_database_next(bool *more, basin_database *d, basin_error *error) {
    return d->engine->next(more, d, error);
}

basin_status basin_database_cell(const char **text, size_t *length, basin_database *d, int column,
                                 basin_error *error) {
    return d->engine->cell(text, length, d, column, error);
}
