/* Rows of tables; see rows.h. Fields are gathered here, whatever they come from. */
#include "data/network/csv/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"

enum { MOST_FIELDS = 1 << 20, MOST_BYTES = 1 << 26 };

basin_status basin_table_rows_no_memory(const basin_table_rows *r, basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", r->path);
}

basin_status basin_table_rows_fail_changed(const basin_table_rows *r, basin_error *error) {
    return basin_fail(error, BASIN_BAD_FILE, "%s: %s", r->path,
                      r->query ? "the query gives other rows when it runs again, wanted the same "
                                 "ones (does it call random()?)"
                               : "the file changed while it was read");
}

/* ---- fields ---- */

basin_status basin_table_rows_begin_field(basin_table_rows *r, basin_error *error) {
    if (r->fields >= MOST_FIELDS)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s %" PRId64 " has more than %d fields",
                          r->path, r->unit, r->line, MOST_FIELDS);
    if (!basin_array_reserve((void **)&r->start, &r->start_capacity, r->fields + 1,
                             sizeof *r->start))
        return basin_table_rows_no_memory(r, error);
    r->start[r->fields++] = r->length;
    return BASIN_OK;
}

basin_status basin_table_rows_grow(basin_table_rows *r, basin_error *error) {
    if (r->length >= MOST_BYTES)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: %s %" PRId64 " begins a record of more than %d bytes%s", r->path,
                          r->unit, r->line, MOST_BYTES, r->query ? "" : "; is a quote not closed?");
    if (!basin_array_reserve((void **)&r->text, &r->capacity, r->length + 256, 1))
        return basin_table_rows_no_memory(r, error);
    return BASIN_OK;
}

/* Text that is not UTF-8 is Latin-1: bytes from 128 on become two. */
static basin_status widen(basin_table_rows *r, basin_error *error) {
    size_t first = r->start[r->fields - 1], count = r->length - first;
    if (basin_text_is_utf8(r->text + first)) return BASIN_OK;
    r->latin = true;
    r->length = first;
    char *bytes = basin_string_copy(r->text + first);
    basin_status status = bytes ? BASIN_OK : basin_table_rows_no_memory(r, error);
    for (size_t i = 0; i + 1 < count && !status; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (byte >= 0x80) status = basin_table_rows_put(r, (char)(0xc0 | byte >> 6), error);
        if (!status)
            status =
                basin_table_rows_put(r, (char)(byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte), error);
    }
    free(bytes);
    return status ? status : basin_table_rows_put(r, 0, error);
}

basin_status basin_table_rows_end_field(basin_table_rows *rows, basin_error *error) {
    basin_status status = basin_table_rows_put(rows, 0, error);
    return status ? status : widen(rows, error);
}

/* ---- rows ---- */

basin_status basin_table_rows_open(basin_table_rows *rows, const basin_csv_source *source,
                                   basin_error *error) {
    *rows = (basin_table_rows){
        .path = source->path, .unit = source->query ? "row" : "line", .query = source->query};
    basin_status status =
        source->query ? basin_query_open(rows, error) : basin_csv_open(rows, source, error);
    if (status) basin_table_rows_close(rows);
    return status;
}

basin_status basin_table_rows_next(basin_table_rows *rows, bool *more, basin_error *error) {
    basin_status status = rows->query ? basin_query_next(rows, error) : basin_csv_next(rows, error);
    *more = !status && rows->fields > 0;
    if (status || !*more || rows->fields == rows->columns) return status;
    *more = false;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: %s %" PRId64 " has %zu fields, wanted %zu as in the header", rows->path,
                      rows->unit, rows->line, rows->fields, rows->columns);
}

void basin_table_rows_close(basin_table_rows *rows) {
    if (rows->query)
        basin_query_close(rows);
    else
        basin_csv_close(rows);
    for (size_t i = 0; rows->name && i < rows->columns; i++) free(rows->name[i]);
    free(rows->name);
    free(rows->text);
    free(rows->start);
    *rows = (basin_table_rows){0};
}

const char *basin_table_rows_field(const basin_table_rows *rows, size_t i) {
    return rows->text + rows->start[i];
}

int basin_table_rows_column(const basin_table_rows *rows, const char *name) {
    for (size_t i = 0; i < rows->columns; i++)
        if (!strcasecmp(rows->name[i], name)) return (int)i;
    return -1;
}
