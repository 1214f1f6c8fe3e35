/* Reading CSV and TSV record by record, from a file or from memory, plain or packed by gzip or
 * zstd. Fields may be quoted, with "" for a quote and line breaks within. The delimiter is a tab if
 * the first record has one, else the more frequent of comma and semicolon. Empty lines and a byte
 * order mark are skipped. Text that is not UTF-8 is taken as Latin-1. All records have as many
 * fields as the first. Where the first line that is not a comment (#) has two to four numbers, the
 * first two whole, there is no header: the columns are src, dst, "column 3", .. Where the caller
 * says that there is none, two or three columns are src, dst and relation. */

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>

#include "base/text.h"
#include "tasks/common/table/table.h"

enum { BUFFER = 1 << 18, MAX_FIELDS = 1 << 20, MAX_BYTES = 1 << 26 };

basin_status basin_table_rows_fail(const basin_table_rows *rows, basin_error *error,
                                   const char *format, ...) {
    char text[BASIN_ERROR_TEXT];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return basin_fail(error, BASIN_BAD_FILE, "%s: line %" PRId64 "%s", rows->path, rows->line,
                      text);
}

/* ---- fields ---- */

static basin_status begin_field(basin_table_rows *c, basin_error *error) {
    if (c->fields >= MAX_FIELDS)
        return basin_table_rows_fail(c, error, " has more than %d fields", MAX_FIELDS);
    BASIN_TRY(BASIN_GROW(&c->field, &c->field_capacity, c->fields + 1, c->path, error));
    c->field[c->fields++] = (basin_table_field){.start = c->length};
    return BASIN_OK;
}

static basin_status grow(basin_table_rows *c, size_t bytes, basin_error *error) {
    if (c->length >= MAX_BYTES)
        return basin_table_rows_fail(
            c, error, " begins a record of more than %d bytes; is a quote not closed?", MAX_BYTES);
    return basin_array_reserve((void **)&c->text, &c->capacity, c->length + bytes + 256, 1)
               ? BASIN_OK
               : basin_fail_memory(error, c->path);
}

static basin_status put(basin_table_rows *c, const void *bytes, size_t count, basin_error *error) {
    if (c->capacity - c->length < count) BASIN_TRY(grow(c, count, error));
    memcpy(c->text + c->length, bytes, count);
    c->length += count;
    return BASIN_OK;
}

static basin_status put_byte(basin_table_rows *c, int byte, basin_error *error) {
    return put(c, &(char){(char)byte}, 1, error);
}

/* Text that is not UTF-8 is Latin-1: bytes from 128 on become two. */
static basin_status widen(basin_table_rows *c, basin_error *error) {
    size_t first = c->field[c->fields - 1].start, count = c->length - first;
    if (basin_text_is_utf8(c->text + first)) return BASIN_OK;
    BASIN_FREE_AT_EXIT char *bytes = basin_string_copy(c->text + first);
    if (!bytes) return basin_fail_memory(error, c->path);
    c->latin = true;
    c->length = first;
    for (size_t i = 0; i + 1 < count; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (byte >= 0x80) BASIN_TRY(put_byte(c, 0xc0 | byte >> 6, error));
        BASIN_TRY(put_byte(c, byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte, error));
    }
    return put_byte(c, 0, error);
}

/* ---- records ---- */

static basin_status refill(basin_table_rows *c, basin_error *error) {
    size_t got;
    BASIN_TRY(basin_packed_read(&got, c->buffer, BUFFER, c->file, error));
    c->at = c->buffer;
    c->end = c->buffer + got;
    c->done = got == 0;
    return BASIN_OK;
}

/* The next byte, or -1 at the end. */
static basin_status peek(int *byte, basin_table_rows *c, basin_error *error) {
    if (c->at == c->end && !c->done) BASIN_TRY(refill(c, error));
    *byte = c->at == c->end ? -1 : *c->at;
    return BASIN_OK;
}

/* A quoted field after its first quote, up to the one that closes it. */
static basin_status read_quoted(basin_table_rows *c, basin_error *error) {
    for (;;) {
        int byte;
        BASIN_TRY(peek(&byte, c, error));
        if (byte < 0)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: the file ends within quotes; the record begins in line %" PRId64,
                              c->path, c->line);
        c->at++;
        if (byte == '\n') c->next_line++;
        if (byte == '"') {
            BASIN_TRY(peek(&byte, c, error));
            if (byte != '"') return BASIN_OK;
            c->at++;
        }
        if (byte == 0) return basin_table_rows_fail(c, error, " holds a zero byte");
        BASIN_TRY(put_byte(c, byte, error));
    }
}

/* What the buffer has of a field that is not quoted. */
static basin_status read_plain(basin_table_rows *c, basin_error *error) {
    const unsigned char *from = c->at, *p = from;
    while (p < c->end && *p != (unsigned char)c->delimiter && *p != '\n' && *p) p++;
    c->at = p;
    if (p < c->end && !*p)
        return basin_table_rows_fail(c, error, " holds a zero byte; save UTF-16 as UTF-8");
    return put(c, from, (size_t)(p - from), error);
}

/* A field with what follows it consumed; *last where that was the end of the record. */
static basin_status read_field(bool *last, basin_table_rows *c, basin_error *error) {
    int byte;
    BASIN_TRY(begin_field(c, error));
    BASIN_TRY(peek(&byte, c, error));
    if (byte == '"') {
        c->at++;
        c->field[c->fields - 1].quoted = true;
        BASIN_TRY(read_quoted(c, error));
    }
    for (;;) {
        BASIN_TRY(peek(&byte, c, error));
        if (byte < 0 || byte == '\n' || byte == c->delimiter) break;
        BASIN_TRY(read_plain(c, error));
    }
    if (byte >= 0) c->at++;
    if (byte == '\n') c->next_line++;
    *last = byte < 0 || byte == '\n';
    bool filled = c->length > c->field[c->fields - 1].start;
    if (*last && filled && c->text[c->length - 1] == '\r') c->length--;
    BASIN_TRY(put_byte(c, 0, error));
    return widen(c, error);
}

/* One record, empty lines passed over; no fields at the end of the file. */
static basin_status read_record(basin_table_rows *c, basin_error *error) {
    do {
        int byte;
        bool last = false;
        c->line = c->next_line;
        c->fields = c->length = 0;
        BASIN_TRY(peek(&byte, c, error));
        if (byte < 0) return BASIN_OK;
        while (!last) BASIN_TRY(read_field(&last, c, error));
    } while (c->fields == 1 && c->length == 1);
    return BASIN_OK;
}

/* ---- the header ---- */

/* Looks ahead in the first buffer, outside of quotes. */
static char find_delimiter(const basin_table_rows *c) {
    bool quoted = false, space = false;
    size_t commas = 0, semicolons = 0;
    for (const unsigned char *p = c->at; p < c->end && (*p != '\n' || quoted); p++) {
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

/* Comments precede only lists of edges; a header may begin with a # itself. */
static void find_edges(basin_table_rows *c) {
    const unsigned char *p = c->at;
    int64_t lines = 0;
    for (; p < c->end && *p == '#'; lines++) p = skip_line(p, c->end);
    if (p == c->end || !is_edge(p, c->end)) return;
    c->at = p;
    c->next_line += lines;
    c->headerless = true;
}

/* A file of old Macintosh lines is one long header. */
static basin_status check_lines(const basin_table_rows *c, basin_error *error) {
    for (size_t i = 0; i + 1 < c->length && !c->headerless; i++)
        if (c->text[i] == '\r' && c->text[i + 1] != '\n')
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: lines end with a carriage return, expected a line feed, or both",
                              c->path);
    return BASIN_OK;
}

static basin_status read_header(basin_table_rows *c, bool none, basin_error *error) {
    int byte;
    c->next_line = 1;
    BASIN_TRY(peek(&byte, c, error));
    BASIN_TRY(basin_packed_refuse(c->at, (size_t)(c->end - c->at), c->path, error));
    if (c->end - c->at >= 3 && !memcmp(c->at, "\xef\xbb\xbf", 3)) c->at += 3;
    find_edges(c);
    bool stated = c->end - c->at > 5 && !memcmp(c->at, "sep=", 4) && strchr(",;\t", c->at[4]) &&
                  strchr("\r\n", c->at[5]); /* a line that spreadsheets read */
    char delimiter = (char)c->at[stated ? 4 : 0];
    if (stated) c->at = skip_line(c->at, c->end), c->next_line++;
    c->delimiter = stated ? delimiter : find_delimiter(c);
    BASIN_TRY(read_record(c, error));
    if (c->fields == 0)
        return basin_fail(error, BASIN_BAD_FILE, "%s: the file is empty, expected a header",
                          c->path);
    if (none && (c->fields == 2 || c->fields == 3)) c->headerless = true;
    c->held = c->headerless;
    c->columns = c->fields;
    return check_lines(c, error);
}

/* ---- rows ---- */

static basin_status open_rows(basin_table_rows *c, const basin_csv_source *s, basin_error *error) {
    if (s->data)
        BASIN_TRY(basin_packed_open_memory(&c->file, s->data, s->size, s->path, error));
    else
        BASIN_TRY(basin_packed_open(&c->file, s->path, error));
    BASIN_TRY(BASIN_NEW_RAW(&c->buffer, BUFFER, "a table", error));
    return read_header(c, s->no_header, error);
}

basin_status basin_table_rows_open(basin_table_rows *rows, const basin_csv_source *source,
                                   basin_error *error) {
    *rows = (basin_table_rows){.path = source->path, .exact = source->exact};
    BASIN_TRY_OR(open_rows(rows, source, error), basin_table_rows_close(rows));
    return BASIN_OK;
}

basin_status basin_table_rows_next(basin_table_rows *rows, bool *more, basin_error *error) {
    *more = false;
    if (!rows->held) BASIN_TRY(read_record(rows, error));
    rows->held = false;
    *more = rows->fields == rows->columns;
    if (*more || rows->fields == 0) return BASIN_OK;
    return basin_table_rows_fail(rows, error, " has %zu fields, expected %zu as in the header",
                                 rows->fields, rows->columns);
}

void basin_table_rows_close(basin_table_rows *rows) {
    basin_packed_close(rows->file);
    BASIN_FREE(rows->buffer, rows->text, rows->field);
    *rows = (basin_table_rows){0};
}

const char *basin_table_rows_trimmed(const basin_table_rows *rows, int i) {
    char *text = basin_table_rows_field(rows, i), *end;
    while (isspace((unsigned char)*text)) text++;
    for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);) *--end = 0;
    return text;
}
