/* CSV and TSV; see csv_reader.h. Plain files and packed ones go the same way, through gz.h. */
#include "data/network/csv/reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "data/gz.h"

enum { BUFFER = 1 << 18, MOST_FIELDS = 1 << 20, MOST_BYTES = 1 << 26 };

static basin_status no_memory(const basin_csv *c, basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", c->path);
}

static basin_status refill(basin_csv *c, basin_error *error) {
    if (!c->file) {
        c->done = true;
        return BASIN_OK;
    }
    size_t got;
    basin_status status = basin_gz_read(&got, c->buffer, BUFFER, c->file, c->path, error);
    if (status) return status;
    c->at = c->buffer;
    c->end = c->buffer + got;
    c->done = got == 0;
    return BASIN_OK;
}

/* The next byte, or -1 at the end. */
static basin_status peek(int *byte, basin_csv *c, basin_error *error) {
    if (c->at == c->end && !c->done) {
        basin_status status = refill(c, error);
        if (status) return status;
    }
    *byte = c->at == c->end ? -1 : *c->at;
    return BASIN_OK;
}

static basin_status put(basin_csv *c, char byte, basin_error *error) {
    if (c->length == c->capacity) {
        if (c->length >= MOST_BYTES)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: line %" PRId64 " begins a record of more than %d bytes; is a "
                              "quote not closed?",
                              c->path, c->line, MOST_BYTES);
        if (!basin_array_reserve((void **)&c->text, &c->capacity, c->length + 256, 1))
            return no_memory(c, error);
    }
    c->text[c->length++] = byte;
    return BASIN_OK;
}

static basin_status begin_field(basin_csv *c, basin_error *error) {
    if (c->fields >= MOST_FIELDS)
        return basin_fail(error, BASIN_BAD_FILE, "%s: line %" PRId64 " has more than %d fields",
                          c->path, c->line, MOST_FIELDS);
    if (!basin_array_reserve((void **)&c->start, &c->start_capacity, c->fields + 1,
                             sizeof *c->start))
        return no_memory(c, error);
    c->start[c->fields++] = c->length;
    return BASIN_OK;
}

/* A quoted field behind its first quote, up to the one that closes it. */
static basin_status read_quoted(basin_csv *c, basin_error *error) {
    for (;;) {
        int byte;
        basin_status status = peek(&byte, c, error);
        if (status) return status;
        if (byte < 0)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: the file ends within quotes; the record begins in line %" PRId64,
                              c->path, c->line);
        c->at++;
        if (byte == '\n') c->next_line++;
        if (byte == '"') {
            status = peek(&byte, c, error);
            if (status || byte != '"') return status;
            c->at++;
        }
        if (byte == 0)
            return basin_fail(error, BASIN_BAD_FILE, "%s: line %" PRId64 " holds a zero byte",
                              c->path, c->line);
        status = put(c, (char)byte, error);
        if (status) return status;
    }
}

/* A field with what follows it consumed; *last where that was the end of the record. */
static basin_status read_field(bool *last, basin_csv *c, basin_error *error) {
    basin_status status = begin_field(c, error);
    bool fresh = true;
    *last = false;
    while (!status) {
        int byte;
        status = peek(&byte, c, error);
        if (status) break;
        if (byte >= 0) c->at++;
        if (byte == '\n') c->next_line++;
        if (byte < 0 || byte == '\n') {
            *last = true;
            if (c->length > c->start[c->fields - 1] && c->text[c->length - 1] == '\r') c->length--;
            break;
        }
        if (byte == c->delimiter) break;
        if (byte == 0)
            return basin_fail(error, BASIN_BAD_FILE, "%s: line %" PRId64 " holds a zero byte",
                              c->path, c->line);
        status = byte == '"' && fresh ? read_quoted(c, error) : put(c, (char)byte, error);
        fresh = false;
    }
    return status ? status : put(c, 0, error);
}

/* One record, empty lines passed over; no fields at the end of the file. */
static basin_status read_record(basin_csv *c, basin_error *error) {
    do {
        int byte;
        bool last = false;
        c->line = c->next_line;
        c->fields = c->length = 0;
        basin_status status = peek(&byte, c, error);
        if (status || byte < 0) return status;
        while (!last && !status) status = read_field(&last, c, error);
        if (status) return status;
    } while (c->fields == 1 && c->length == 1);
    return BASIN_OK;
}

const char *basin_csv_field(const basin_csv *csv, size_t i) { return csv->text + csv->start[i]; }

basin_status basin_csv_next(basin_csv *csv, bool *more, basin_error *error) {
    basin_status status = read_record(csv, error);
    *more = !status && csv->fields > 0;
    if (status || !*more || csv->fields == csv->columns) return status;
    *more = false;
    return basin_fail(error, BASIN_BAD_FILE,
                      "%s: line %" PRId64 " has %zu fields, wanted %zu as in the header", csv->path,
                      csv->line, csv->fields, csv->columns);
}

int basin_csv_column(const basin_csv *csv, const char *name) {
    for (size_t i = 0; i < csv->columns; i++)
        if (!strcasecmp(csv->name[i], name)) return (int)i;
    return -1;
}

/* ---- the header ---- */

/* Looks ahead in the first buffer, outside of quotes. */
static char find_delimiter(const basin_csv *c) {
    bool quoted = false, comma = false, semicolon = false;
    for (const unsigned char *p = c->at; p < c->end && (*p != '\n' || quoted); p++) {
        if (*p == '"') quoted = !quoted;
        if (quoted) continue;
        if (*p == '\t') return '\t';
        comma = comma || *p == ',';
        semicolon = semicolon || *p == ';';
    }
    return semicolon && !comma ? ';' : ',';
}

static basin_status keep_header(basin_csv *c, basin_error *error) {
    c->name = calloc(c->fields, sizeof *c->name);
    if (!c->name) return no_memory(c, error);
    c->columns = c->fields;
    for (size_t i = 0; i < c->columns; i++)
        if (!(c->name[i] = basin_string_copy(basin_csv_field(c, i)))) return no_memory(c, error);
    return BASIN_OK;
}

static basin_status read_header(basin_csv *c, basin_error *error) {
    int byte;
    c->next_line = 1;
    basin_status status = peek(&byte, c, error);
    if (!status && c->end - c->at >= 3 && !memcmp(c->at, "\xef\xbb\xbf", 3)) c->at += 3;
    c->delimiter = find_delimiter(c);
    if (!status) status = read_record(c, error);
    if (!status && c->fields == 0)
        status =
            basin_fail(error, BASIN_BAD_FILE, "%s: the file is empty, wanted a header", c->path);
    if (!status) status = keep_header(c, error);
    if (status) basin_csv_close(c);
    return status;
}

basin_status basin_csv_open(basin_csv *csv, const char *path, basin_error *error) {
    gzFile file;
    *csv = (basin_csv){.path = path};
    basin_status status = basin_gz_open(&file, path, error);
    if (status) return status;
    csv->file = file;
    csv->buffer = malloc(BUFFER);
    if (csv->buffer) return read_header(csv, error);
    basin_csv_close(csv);
    *csv = (basin_csv){.path = path};
    return no_memory(csv, error);
}

basin_status basin_csv_open_memory(basin_csv *csv, const void *data, size_t size, const char *path,
                                   basin_error *error) {
    *csv = (basin_csv){.path = path, .at = data, .end = (const unsigned char *)data + size};
    return read_header(csv, error);
}

void basin_csv_close(basin_csv *csv) {
    if (csv->file) gzclose(csv->file);
    free(csv->buffer);
    for (size_t i = 0; csv->name && i < csv->columns; i++) free(csv->name[i]);
    free(csv->name);
    free(csv->text);
    free(csv->start);
    *csv = (basin_csv){0};
}
