/* Rows of a query; see rows.h. A table of nodes is read twice, so its query runs twice: both times
 * it must give the same rows, in any order. */
#include <stdlib.h>

#include "base/memory.h"
#include "data/database/database.h"
#include "data/network/csv/rows.h"

basin_status basin_query_open(basin_table_rows *r, basin_error *error) {
    basin_database *database = r->query->database;
    basin_status status = basin_database_query(database, r->query->sql, error);
    if (status) return status;
    int columns = basin_database_columns(database);
    r->name = calloc((size_t)columns + 1, sizeof *r->name);
    if (!r->name) return basin_table_rows_no_memory(r, error);
    r->columns = (size_t)columns;
    for (int i = 0; i < columns; i++) {
        const char *name = basin_database_column(database, i);
        if (!name || !(r->name[i] = basin_string_copy(name)))
            return basin_table_rows_no_memory(r, error);
    }
    return columns ? BASIN_OK
                   : basin_fail(error, BASIN_BAD_FILE, "%s: the query has no columns", r->path);
}

static basin_status add_field(basin_table_rows *r, int column, basin_error *error) {
    const char *text;
    size_t length;
    basin_status status = basin_table_rows_begin_field(r, error);
    if (!status) status = basin_database_cell(&text, &length, r->query->database, column, error);
    for (size_t i = 0; !status && i < length; i++) {
        if (!text[i])
            return basin_fail(error, BASIN_BAD_FILE, "%s: row %lld: '%s' holds a zero byte",
                              r->path, (long long)r->line, r->name[column]);
        status = basin_table_rows_put(r, text[i], error);
    }
    return status ? status : basin_table_rows_end_field(r, error);
}

/* FNV-1a of the row, mixed; the sum does not depend on the order of rows. */
static uint64_t hash_row(const basin_table_rows *r) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < r->length; i++)
        h = (h ^ (unsigned char)r->text[i]) * UINT64_C(0x100000001b3);
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return h ^ h >> 33;
}

static basin_status finish(basin_table_rows *r, basin_error *error) {
    basin_query *q = r->query;
    bool same = !q->read || (q->rows == r->line - 1 && q->sum == r->sum);
    q->read = true;
    q->rows = r->line - 1;
    q->sum = r->sum;
    return same ? BASIN_OK : basin_table_rows_fail_changed(r, error);
}

basin_status basin_query_next(basin_table_rows *r, basin_error *error) {
    bool more;
    r->fields = r->length = 0;
    r->line++;
    basin_status status = basin_database_next(&more, r->query->database, error);
    if (status) return status;
    if (!more) return finish(r, error);
    for (int i = 0; i < (int)r->columns && !status; i++) status = add_field(r, i, error);
    if (!status) r->sum += hash_row(r);
    return status;
}

void basin_query_close(basin_table_rows *r) { basin_database_end(r->query->database); }
