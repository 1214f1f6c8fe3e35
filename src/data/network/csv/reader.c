/* Reading CSV and TSV record by record, from a file or from memory, plain or packed by gzip or
 * zstd.
 *
 * Fields may be quoted, with "" for a quote and line breaks within. The delimiter is told from the
 * first record: a tab if there is one, else a comma or a semicolon, whichever is there more often.
 * Empty lines are passed over, so is a byte order mark. Text that is not UTF-8 is taken as Latin-1.
 * All records have as many fields as the first.
 *
 * Lists of edges come without a header as well: where the first line that is no comment (#) has two
 * to four numbers, the first two of them whole, the columns are called src, dst, "column 3", ..
 * Where the caller says that there is none, two or three columns are src, dst and relation. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/csv/rows.h"

enum { BUFFER = 1 << 18 };

static basin_status refill(basin_table_rows *c, basin_error *error) {
    size_t got;
    basin_status status = basin_packed_read(&got, c->csv.buffer, BUFFER, c->csv.file, error);
    if (status) return status;
    c->csv.at = c->csv.buffer;
    c->csv.end = c->csv.buffer + got;
    c->csv.done = got == 0;
    return BASIN_OK;
}

/* The next byte, or -1 at the end. */
static basin_status peek(int *byte, basin_table_rows *c, basin_error *error) {
    if (c->csv.at == c->csv.end && !c->csv.done) {
        basin_status status = refill(c, error);
        if (status) return status;
    }
    *byte = c->csv.at == c->csv.end ? -1 : *c->csv.at;
    return BASIN_OK;
}

/* A quoted field behind its first quote, up to the one that closes it. */
static basin_status read_quoted(basin_table_rows *c, basin_error *error) {
    for (;;) {
        int byte;
        basin_status status = peek(&byte, c, error);
        if (status) return status;
        if (byte < 0)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: the file ends within quotes; the record begins in line %" PRId64,
                              c->path, c->line);
        c->csv.at++;
        if (byte == '\n') c->csv.next_line++;
        if (byte == '"') {
            status = peek(&byte, c, error);
            if (status || byte != '"') return status;
            c->csv.at++;
        }
        if (byte == 0)
            return basin_fail(error, BASIN_BAD_FILE, "%s: line %" PRId64 " holds a zero byte",
                              c->path, c->line);
        status = basin_table_rows_put(c, (char)byte, error);
        if (status) return status;
    }
}

/* A field with what follows it consumed; *last where that was the end of the record. */
static basin_status read_field(bool *last, basin_table_rows *c, basin_error *error) {
    basin_status status = basin_table_rows_begin_field(c, error);
    bool fresh = true;
    *last = false;
    while (!status) {
        int byte;
        status = peek(&byte, c, error);
        if (status) break;
        if (byte >= 0) c->csv.at++;
        if (byte == '\n') c->csv.next_line++;
        if (byte < 0 || byte == '\n') {
            *last = true;
            if (c->length > c->start[c->fields - 1] && c->text[c->length - 1] == '\r') c->length--;
            break;
        }
        if (byte == c->csv.delimiter) break;
        if (byte == 0)
            return basin_fail(error, BASIN_BAD_FILE, "%s: line %" PRId64 " holds a zero byte",
                              c->path, c->line);
        status = byte == '"' && fresh ? read_quoted(c, error)
                                      : basin_table_rows_put(c, (char)byte, error);
        fresh = false;
    }
    return status ? status : basin_table_rows_end_field(c, error);
}

/* One record, empty lines passed over; no fields at the end of the file. */
static basin_status read_record(basin_table_rows *c, basin_error *error) {
    do {
        int byte;
        bool last = false;
        c->line = c->csv.next_line;
        c->fields = c->length = 0;
        basin_status status = peek(&byte, c, error);
        if (status || byte < 0) return status;
        while (!last && !status) status = read_field(&last, c, error);
        if (status) return status;
    } while (c->fields == 1 && c->length == 1);
    return BASIN_OK;
}

basin_status basin_csv_next(basin_table_rows *c, basin_error *error) {
    basin_status status = c->csv.held ? BASIN_OK : read_record(c, error);
    c->csv.held = false;
    return status;
}

/* ---- the header ---- */

/* Looks ahead in the first buffer, outside of quotes. */
static char find_delimiter(const basin_table_rows *c) {
    bool quoted = false, space = false;
    size_t commas = 0, semicolons = 0;
    for (const unsigned char *p = c->csv.at; p < c->csv.end && (*p != '\n' || quoted); p++) {
        if (*p == '"') quoted = !quoted;
        if (quoted) continue;
        if (*p == '\t') return '\t';
        commas += *p == ',';
        semicolons += *p == ';';
        space = space || *p == ' ';
    }
    if (c->headerless && space && !commas && !semicolons) return ' ';
    return semicolons > commas ? ';' : ',';
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
static void find_edges(basin_table_rows *c) {
    const unsigned char *p = c->csv.at;
    int64_t lines = 0;
    for (; p < c->csv.end && *p == '#'; lines++) p = skip_line(p, c->csv.end);
    if (p == c->csv.end || !is_edge(p, c->csv.end)) return;
    c->csv.at = p;
    c->csv.next_line += lines;
    c->headerless = true;
}

static const char *usual_name(char text[40], const basin_table_rows *c, size_t i) {
    static const char *const end[] = {"src", "dst"};
    const char *field = basin_table_rows_field(c, i);
    bool number = isdigit((unsigned char)*field) || *field == '-' || *field == '.';
    if (i < 2) return end[i];
    if (i == 2 && !number) return "relation";
    snprintf(text, 40, "column %zu", i + 1);
    return text;
}

/* A file of old Macintosh lines is one long header. */
static basin_status check_lines(const basin_table_rows *c, const char *name, basin_error *error) {
    for (const char *p = strchr(name, '\r'); p; p = strchr(p + 1, '\r'))
        if (p[1] != '\n')
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: lines end with a carriage return, wanted a line feed, or both",
                              c->path);
    return BASIN_OK;
}

static basin_status keep_header(basin_table_rows *c, basin_error *error) {
    char text[40];
    basin_status status = BASIN_OK;
    c->name = calloc(c->fields, sizeof *c->name);
    if (!c->name) return basin_table_rows_no_memory(c, error);
    c->columns = c->fields;
    for (size_t i = 0; i < c->columns; i++) {
        const char *name = c->headerless ? usual_name(text, c, i) : basin_table_rows_field(c, i);
        if (!(c->name[i] = basin_string_copy(name))) return basin_table_rows_no_memory(c, error);
        if (!status) status = check_lines(c, name, error);
    }
    c->csv.held = c->headerless;
    return status;
}

static basin_status read_header(basin_table_rows *c, bool none, basin_error *error) {
    int byte;
    c->csv.next_line = 1;
    basin_status status = peek(&byte, c, error);
    if (!status && c->csv.end - c->csv.at >= 3 && !memcmp(c->csv.at, "\xef\xbb\xbf", 3))
        c->csv.at += 3;
    if (!status) find_edges(c);
    c->csv.delimiter = find_delimiter(c);
    if (!status) status = read_record(c, error);
    if (!status && c->fields == 0)
        status =
            basin_fail(error, BASIN_BAD_FILE, "%s: the file is empty, wanted a header", c->path);
    if (none && (c->fields == 2 || c->fields == 3)) c->headerless = true;
    return status ? status : keep_header(c, error);
}

basin_status basin_csv_open(basin_table_rows *c, const basin_csv_source *s, basin_error *error) {
    basin_status status =
        s->data ? basin_packed_open_memory(&c->csv.file, s->data, s->size, s->path, error)
                : basin_packed_open(&c->csv.file, s->path, error);
    if (status) return status;
    c->csv.buffer = malloc(BUFFER);
    return c->csv.buffer ? read_header(c, s->no_header, error)
                         : basin_table_rows_no_memory(c, error);
}

void basin_csv_close(basin_table_rows *c) {
    basin_packed_close(c->csv.file);
    free(c->csv.buffer);
}
