/* CSV and TSV; see reader.h. */
#include "data/network/csv/reader.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"

enum { BUFFER = 1 << 18, MOST_FIELDS = 1 << 20, MOST_BYTES = 1 << 26 };

static basin_status no_memory(const basin_csv *c, basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", c->path);
}

static basin_status refill(basin_csv *c, basin_error *error) {
    size_t got;
    basin_status status = basin_packed_read(&got, c->buffer, BUFFER, c->file, error);
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

/* Text that is not UTF-8 is Latin-1: bytes from 128 on become two. */
static basin_status widen(basin_csv *c, basin_error *error) {
    size_t first = c->start[c->fields - 1], count = c->length - first;
    if (basin_text_is_utf8(c->text + first)) return BASIN_OK;
    c->latin = true;
    c->length = first;
    char *bytes = basin_string_copy(c->text + first);
    basin_status status = bytes ? BASIN_OK : no_memory(c, error);
    for (size_t i = 0; i + 1 < count && !status; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (byte >= 0x80) status = put(c, (char)(0xc0 | byte >> 6), error);
        if (!status) status = put(c, (char)(byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte), error);
    }
    free(bytes);
    return status ? status : put(c, 0, error);
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
    if (!status) status = put(c, 0, error);
    return status ? status : widen(c, error);
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
    basin_status status = csv->held ? BASIN_OK : read_record(csv, error);
    csv->held = false;
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
    bool quoted = false, comma = false, semicolon = false, space = false;
    for (const unsigned char *p = c->at; p < c->end && (*p != '\n' || quoted); p++) {
        if (*p == '"') quoted = !quoted;
        if (quoted) continue;
        if (*p == '\t') return '\t';
        comma = comma || *p == ',';
        semicolon = semicolon || *p == ';';
        space = space || *p == ' ';
    }
    if (c->headerless && space && !comma && !semicolon) return ' ';
    return semicolon && !comma ? ';' : ',';
}

static const unsigned char *skip_line(const unsigned char *p, const unsigned char *end) {
    while (p < end && *p != '\n') p++;
    return p < end ? p + 1 : end;
}

/* Two to four numbers in a line, of which the first two are whole: no header has such names. */
static bool is_edge(const unsigned char *p, const unsigned char *end) {
    int fields = 0;
    for (;;) {
        const unsigned char *from = p;
        bool whole = true;
        for (; p < end && (isdigit(*p) || *p == '.' || *p == '-' || *p == 'e'); p++)
            whole = whole && isdigit(*p);
        if (p == from || (fields < 2 && !whole)) return false;
        fields++;
        if (p == end || *p == '\n' || *p == '\r') return fields >= 2 && fields <= 4;
        if (!strchr("\t,; ", *p++)) return false;
    }
}

/* Comments stand before lists of edges alone; a header may begin with a # of its own. */
static void find_edges(basin_csv *c) {
    const unsigned char *p = c->at;
    int64_t lines = 0;
    for (; p < c->end && *p == '#'; lines++) p = skip_line(p, c->end);
    if (p == c->end || !is_edge(p, c->end)) return;
    c->at = p;
    c->next_line += lines;
    c->headerless = true;
}

static const char *usual_name(char text[40], const basin_csv *c, size_t i) {
    static const char *const end[] = {"src", "dst"};
    const char *field = basin_csv_field(c, i);
    bool number = isdigit((unsigned char)*field) || *field == '-' || *field == '.';
    if (i < 2) return end[i];
    if (i == 2 && !number) return "relation";
    snprintf(text, 40, "column %zu", i + 1);
    return text;
}

static basin_status keep_header(basin_csv *c, basin_error *error) {
    char text[40];
    c->name = calloc(c->fields, sizeof *c->name);
    if (!c->name) return no_memory(c, error);
    c->columns = c->fields;
    for (size_t i = 0; i < c->columns; i++) {
        const char *name = c->headerless ? usual_name(text, c, i) : basin_csv_field(c, i);
        if (!(c->name[i] = basin_string_copy(name))) return no_memory(c, error);
    }
    c->held = c->headerless;
    return BASIN_OK;
}

static basin_status read_header(basin_csv *c, bool none, basin_error *error) {
    int byte;
    c->next_line = 1;
    basin_status status = peek(&byte, c, error);
    if (!status && c->end - c->at >= 3 && !memcmp(c->at, "\xef\xbb\xbf", 3)) c->at += 3;
    if (!status) find_edges(c);
    c->delimiter = find_delimiter(c);
    if (!status) status = read_record(c, error);
    if (!status && c->fields == 0)
        status =
            basin_fail(error, BASIN_BAD_FILE, "%s: the file is empty, wanted a header", c->path);
    if (none && (c->fields == 2 || c->fields == 3)) c->headerless = true;
    if (!status) status = keep_header(c, error);
    if (status) basin_csv_close(c);
    return status;
}

basin_status basin_csv_open(basin_csv *csv, const basin_csv_source *s, basin_error *error) {
    *csv = (basin_csv){.path = s->path};
    basin_status status =
        s->data ? basin_packed_open_memory(&csv->file, s->data, s->size, s->path, error)
                : basin_packed_open(&csv->file, s->path, error);
    if (status) return status;
    csv->buffer = malloc(BUFFER);
    if (csv->buffer) return read_header(csv, s->no_header, error);
    basin_csv_close(csv);
    *csv = (basin_csv){.path = s->path};
    return no_memory(csv, error);
}

void basin_csv_close(basin_csv *csv) {
    basin_packed_close(csv->file);
    free(csv->buffer);
    for (size_t i = 0; csv->name && i < csv->columns; i++) free(csv->name[i]);
    free(csv->name);
    free(csv->text);
    free(csv->start);
    *csv = (basin_csv){0};
}
