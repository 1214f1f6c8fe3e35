/* One result in three forms; see record.h. JSON and CSV are written as they come. */
#include "program/record.h"
#include "base/file.h"
#include "base/shape.h"

#include <stdarg.h>

#include "base/json.h"
#include "base/text.h"

enum { DEPTH = BASIN_JSON_DEPTH, KEY = 300 };

typedef enum level {
    LEVEL_FIELDS, /* the outermost */
    LEVEL_LINE,   /* an object: one line of text */
    LEVEL_LIST,
    LEVEL_TABLE,
    LEVEL_ROW,
    LEVEL_SILENT, /* only in JSON */
    LEVEL_MUTED,  /* in JSON: only in text */
} level;

typedef struct column {
    char *name;
    bool right;
    size_t width;
} column;

/* Cells in the order of rows; a row may lack some. */
typedef struct cell {
    size_t row, column;
    char *text;
} cell;

typedef struct grid {
    column *column;
    cell *cell;
    size_t columns, columns_room, cells, cells_room, rows;
} grid;

struct basin_record {
    FILE *file;
    basin_print_form form;
    basin_json json;
    int depth;
    level level[DEPTH];
    bool row[DEPTH];    /* a row, which ends by itself */
    grid fields, table; /* text */
    FILE *line, *head;  /* an object or a list of text; the first row of CSV, and the heading */
    char *line_text, *head_text;
    size_t next; /* cell of a line, or of a row in CSV */
    char line_name[KEY], key[KEY];
    const char *title;
    bool data_keys, heading_only, failed, headed;
};

/* ---- names ---- */

static const struct {
    const char *key, *name;
} names[] = {
    {"auprc", "AUPRC"},
    {"auroc", "AUROC"},
    {"ece", "ECE"},
    {"f1", "F1"},
    {"mae", "MAE"},
    {"macro_f1", "macro-F1"},
    {"mse", "MSE"},
    {"psnr", "PSNR"},
    {"rmse", "RMSE"},
    {"r2", "R2"},
    {"recall_at_k", "recall@k"},
    {"ssim", "SSIM"},
    {"gflops", "GFLOP/s"},
    {"cpu_seconds", "CPU s"},
};

/* The key in JSON and CSV; valid until the next call. */
static const char *key_of(basin_record *r, const char *key) {
    if (!key || r->data_keys) return key;
    key += *key == '.';
    snprintf(r->key, KEY, "%.*s", (int)strcspn(key, "|"), key);
    return r->key;
}

/* The name in text, likewise. */
static const char *name_of(basin_record *r, const char *key) {
    const char *bar = !key || r->data_keys ? NULL : strchr(key, '|');
    if (!key || r->data_keys) return key;
    if (bar) key = bar + 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i].key, key)) return names[i].name;
    snprintf(r->key, KEY, "%s", key);
    for (char *c = r->key; *c; c++)
        if (*c == '_') *c = ' ';
    return r->key;
}

static bool is_json(const basin_record *r) { return r->form == BASIN_FORM_JSON; }
static bool is_csv(const basin_record *r) { return r->form == BASIN_FORM_CSV; }

/* Whether a key begins with the mark of a field only in JSON, '.', or only in text, '|'. */
static bool marked(const basin_record *r, const char *key, char mark) {
    return key && !r->data_keys && *key == mark;
}
static bool in_json(const basin_record *r, const char *key) {
    return is_json(r) && !marked(r, key, '|') && r->level[r->depth] != LEVEL_MUTED;
}

/* ---- text ---- */

/* Columns on the screen: bytes that do not continue a UTF-8 sequence. */
static size_t text_width(const char *text) {
    size_t width = 0;
    for (; *text; text++) width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void grid_free(grid *g) {
    for (size_t i = 0; i < g->columns; i++) free(g->column[i].name);
    for (size_t i = 0; i < g->cells; i++) free(g->cell[i].text);
    BASIN_FREE(g->column, g->cell);
    *g = (grid){0};
}

/* The column of that name; it is added where there is none. -1: out of memory. */
static int64_t find_column(basin_record *r, grid *g, const char *name, bool right) {
    for (size_t i = 0; i < g->columns; i++)
        if (!strcmp(g->column[i].name, name)) return (int64_t)i;
    char *copy = basin_string_copy(name);
    if (!copy || !BASIN_RESERVE(&g->column, &g->columns_room, g->columns + 1)) {
        free(copy);
        r->failed = true;
        return -1;
    }
    g->column[g->columns] = (column){copy, right, text_width(copy)};
    return (int64_t)g->columns++;
}

static void add_cell(basin_record *r, grid *g, int64_t at, const char *text) {
    char *copy = at < 0 ? NULL : basin_string_copy(text);
    if (!copy || !BASIN_RESERVE(&g->cell, &g->cells_room, g->cells + 1)) {
        free(copy);
        r->failed = true;
        return;
    }
    basin_text_clean(copy);
    size_t width = text_width(copy);
    if (width > g->column[at].width) g->column[at].width = width;
    g->cell[g->cells++] = (cell){g->rows, (size_t)at, copy};
}

/* Blanks are printed before the next cell, so that no line ends in blanks. */
static void print_cell(FILE *file, int *owed, const column *c, const char *text) {
    int blank = (int)(c->width - text_width(text));
    if (c->right) *owed += blank;
    if (*text) {
        fprintf(file, "%*s%s", *owed, "", text);
        *owed = 0;
    }
    if (!c->right) *owed += blank;
    *owed += 2;
}

/* Prints the rows and frees them. */
static void grid_print(grid *g, FILE *file, int indent, bool heading) {
    int owed = indent;
    for (size_t c = 0; c < g->columns && heading; c++)
        print_cell(file, &owed, &g->column[c], g->column[c].name);
    if (heading && g->columns) fputc('\n', file);
    for (size_t i = 0, row = 0; row < g->rows; row++) {
        size_t end = i;
        owed = indent;
        while (end < g->cells && g->cell[end].row == row) end++;
        for (size_t c = 0; c < g->columns; c++) {
            const char *text = "";
            for (size_t k = i; k < end; k++)
                if (g->cell[k].column == c) text = g->cell[k].text;
            print_cell(file, &owed, &g->column[c], text);
        }
        fputc('\n', file);
        i = end;
    }
    grid_free(g);
}

static void flush_fields(basin_record *r) { grid_print(&r->fields, r->file, 0, false); }

static void add_field(basin_record *r, const char *name, const char *text) {
    add_cell(r, &r->fields, find_column(r, &r->fields, "", false), name);
    add_cell(r, &r->fields, find_column(r, &r->fields, "value", false), text);
    r->fields.rows++;
}

/* A text that grows; NULL: out of memory. */
static FILE *growing(basin_record *r, char **text) {
    static size_t size; /* texts end in a 0 */
    FILE *file = open_memstream(text, &size);
    r->failed |= !file;
    return file;
}

/* The finished text; free it. */
static char *grown(basin_record *r, FILE **file, char **text) {
    if (!*file || fclose(*file)) r->failed = true;
    *file = NULL;
    char *whole = *text;
    *text = NULL;
    return whole;
}

/* Appends "name value" to the line; a list has no names. */
static void add_to_line(basin_record *r, const char *name, const char *text) {
    const char *gap = !r->next++ ? "" : name ? "  " : ", ";
    if (r->line &&
        fprintf(r->line, "%s%s%s%s", gap, name ? name : "", name && *name ? " " : "", text) < 0)
        r->failed = true;
}

/* ---- CSV ---- */

/* A cell, in quotes where it must be; a reader gets the same bytes back. */
static void put_csv(basin_record *r, FILE *file, const char *text) {
    if (r->next) fputc(',', file);
    bool quoted = strpbrk(text, ",\"\n\r") || *text == ' ', grows = true;
    if (quoted) fputc('"', file);
    for (const char *c = text; *c; c++) {
        if (*c == '"' && quoted) fputc('"', file);
        grows &= fputc(*c, file) != EOF;
    }
    if (quoted) grows &= fputc('"', file) != EOF;
    if (!grows && file != r->file) r->failed = true; /* errors of r->file are found at its end */
}

/* The first row is kept until it has named the columns. */
static void csv_cell(basin_record *r, const char *key, const char *text) {
    if (!r->headed && !r->next) {
        r->head = growing(r, &r->head_text);
        r->line = growing(r, &r->line_text);
    }
    if (r->failed || (r->headed && r->heading_only)) return;
    if (!r->headed) put_csv(r, r->head, key_of(r, key));
    put_csv(r, r->headed ? r->file : r->line, text);
    r->next++;
}

static void csv_row_end(basin_record *r) {
    if (!r->headed) {
        BASIN_FREE_AT_EXIT char *head = grown(r, &r->head, &r->head_text);
        BASIN_FREE_AT_EXIT char *row = grown(r, &r->line, &r->line_text);
        if (r->failed) return;
        r->headed = true;
        fprintf(r->file, "%s\n%s", head, r->heading_only ? "" : row);
    }
    if (!r->heading_only) fputc('\n', r->file);
    r->next = 0;
}

/* ---- one value, wherever it belongs ---- */

/* A value of text and CSV; JSON has got it already. */
static void put(basin_record *r, const char *key, const char *text, const char *csv, bool right) {
    level at = r->level[r->depth];
    if (is_json(r) || marked(r, key, '.') || at == LEVEL_SILENT) return;
    if (is_csv(r)) {
        if (marked(r, key, '|')) return;
        if (at == LEVEL_ROW || (at == LEVEL_LINE && r->depth > 2)) csv_cell(r, key, csv);
    } else if (at == LEVEL_FIELDS) {
        add_field(r, name_of(r, key), text);
    } else if (at == LEVEL_ROW) {
        add_cell(r, &r->table, find_column(r, &r->table, name_of(r, key), right), text);
    } else {
        add_to_line(r, name_of(r, key), text);
    }
}

basin_print_form basin_record_form(const basin_record *r) { return r->form; }
bool basin_record_is_text(const basin_record *r) { return r->form == BASIN_FORM_TEXT; }

void basin_record_text(basin_record *r, const char *key, const char *value) {
    if (in_json(r, key)) basin_json_text(&r->json, key_of(r, key), value);
    put(r, key, value ? value : "-", value ? value : "", false);
}

void basin_record_format(basin_record *r, const char *key, const char *format, ...) {
    char text[2000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    basin_record_text(r, key, text);
}

static void put_integer(basin_record *r, const char *key, int64_t value, const char *text) {
    char csv[32];
    snprintf(csv, sizeof csv, "%lld", (long long)value);
    if (in_json(r, key)) basin_json_integer(&r->json, key_of(r, key), value);
    put(r, key, text ? text : csv, csv, true);
}

void basin_record_integer(basin_record *r, const char *key, int64_t value) {
    put_integer(r, key, value, NULL);
}

void basin_record_bytes(basin_record *r, const char *key, int64_t bytes) {
    static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB"};
    char text[40];
    double value = (double)bytes;
    int step = 0;
    for (; value >= 1024 && step < 3; step++) value /= 1024;
    snprintf(text, sizeof text, "%.*f %s", step ? 2 : 0, value, unit[step]);
    put_integer(r, key, bytes, text);
}

void basin_record_flag(basin_record *r, const char *key, bool value) {
    if (in_json(r, key)) basin_json_boolean(&r->json, key_of(r, key), value);
    put(r, key, value ? "yes" : "no", value ? "1" : "0", false);
}

void basin_record_number(basin_record *r, const char *key, const char *format, ...) {
    char text[400], csv[BASIN_NUMBER_TEXT];
    va_list args;
    va_start(args, format);
    double value = va_arg(args, double);
    va_end(args);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (in_json(r, key)) basin_json_number(&r->json, key_of(r, key), value);
    put(r, key, isnan(value) ? "-" : text, isnan(value) ? "" : basin_number_print(csv, value),
        true);
}

void basin_record_fields(basin_record *r, const char *fields, ...) {
    char key[100], format[40];
    va_list args;
    va_start(args, fields);
    for (const char *at = fields; *at; at += *at == ';') {
        int name = (int)strcspn(at, "="), length = (int)strcspn(at, ";");
        snprintf(key, sizeof key, "%.*s", name, at);
        snprintf(format, sizeof format, "%.*s", length - name - 1, at + name + 1);
        at += length;
        if (!strcmp(format, "%lld"))
            basin_record_integer(r, key, va_arg(args, long long));
        else if (!strcmp(format, "%s"))
            basin_record_text(r, key, va_arg(args, const char *));
        else if (!strcmp(format, "%d"))
            basin_record_flag(r, key, va_arg(args, int));
        else
            basin_record_number(r, key, format, va_arg(args, double));
    }
    va_end(args);
}

void basin_record_spread(basin_record *r, const char *key, int decimals, double mean,
                         double deviation) {
    char text[100], csv[BASIN_NUMBER_TEXT];
    snprintf(text, sizeof text, "%.*f +- %.*f", decimals, mean, decimals, deviation);
    if (in_json(r, key))
        basin_json_numbers(&r->json, key_of(r, key), (double[]){mean, deviation}, 2);
    put(r, key, text, basin_number_print(csv, mean), true);
}

void basin_record_interval(basin_record *r, const char *key, const char *format,
                           const double bound[2]) {
    char form[40], text[100];
    snprintf(form, sizeof form, "%s to %s", format, format);
    snprintf(text, sizeof text, form, bound[0], bound[1]);
    if (in_json(r, key)) basin_json_numbers(&r->json, key_of(r, key), bound, 2);
    put(r, key, text, "", true);
}

void basin_record_numbers(basin_record *r, const char *key, const double *value, int64_t count) {
    if (in_json(r, key)) basin_json_numbers(&r->json, key_of(r, key), value, count);
}

void basin_record_shape(basin_record *r, const char *key, basin_shape shape) {
    if (in_json(r, key)) basin_json_shape(&r->json, key_of(r, key), shape);
    const char *text = basin_shape_text(shape);
    put(r, key, text, text, true);
}

/* ---- structs ---- */

static void put_field(basin_record *r, const basin_field *f, const void *at) {
    const char *key = f->key + (*f->key == '?');
    bool always = key == f->key;
    if (f->kind == BASIN_FIELD_REAL) {
        double value = *(const double *)at * (f->scale != 0 ? f->scale : 1);
        if (always || !isnan(value))
            basin_record_number(r, key, f->format ? f->format : "%g", value);
    } else if (f->kind == BASIN_FIELD_FLAG) {
        if (always || *(const bool *)at) basin_record_flag(r, key, *(const bool *)at);
    } else if (f->kind >= BASIN_FIELD_TEXT) {
        const char *text = f->kind == BASIN_FIELD_TEXT ? *(const char *const *)at : at;
        if (always || text) basin_record_text(r, key, text);
    } else {
        int64_t value = f->kind == BASIN_FIELD_INT     ? *(const int *)at
                        : f->kind == BASIN_FIELD_BYTES ? (int64_t) * (const size_t *)at
                                                       : *(const int64_t *)at;
        if (always || value > 0)
            (f->kind == BASIN_FIELD_BYTES ? basin_record_bytes : basin_record_integer)(r, key,
                                                                                       value);
    }
}

void basin_record_struct(basin_record *r, const basin_field *table, const void *object) {
    for (; table->key; table++) put_field(r, table, (const char *)object + table->offset);
}

void basin_record_rows(basin_record *r, const char *key, const char *title,
                       const basin_field *table, const void *first, int64_t count, size_t size) {
    basin_record_table(r, key, title);
    for (int64_t i = 0; i < count; i++) {
        basin_record_row(r);
        basin_record_struct(r, table, (const char *)first + (size_t)i * size);
    }
    basin_record_end(r);
}

/* ---- groups ---- */

/* The level of a group in text, by its place. */
static level level_inside(const basin_record *r, const char *key, level expected) {
    level at = r->level[r->depth];
    if (is_json(r) && !in_json(r, key)) return LEVEL_MUTED;
    if (marked(r, key, '.') || at == LEVEL_SILENT) return LEVEL_SILENT;
    if (at == LEVEL_ROW) return is_csv(r) && expected == LEVEL_LINE ? LEVEL_LINE : LEVEL_SILENT;
    if (at == LEVEL_LINE || at == LEVEL_LIST) return expected == LEVEL_LINE ? at : LEVEL_SILENT;
    return expected;
}

static void descend(basin_record *r, level inside) {
    if (r->depth + 1 < DEPTH) r->depth++;
    r->level[r->depth] = inside;
    r->row[r->depth] = false;
}

static void enter(basin_record *r, const char *key, bool object, level expected,
                  const char *title) {
    level inside = level_inside(r, key, expected), at = r->level[r->depth];
    if (in_json(r, key)) (object ? basin_json_object : basin_json_array)(&r->json, key_of(r, key));
    if (r->form == BASIN_FORM_TEXT && inside == LEVEL_TABLE) flush_fields(r);
    if (r->form == BASIN_FORM_TEXT && at == LEVEL_FIELDS &&
        (inside == LEVEL_LINE || inside == LEVEL_LIST)) {
        snprintf(r->line_name, KEY, "%s", name_of(r, key));
        r->line = growing(r, &r->line_text);
        r->next = 0;
    }
    if (inside == LEVEL_TABLE) r->title = title;
    descend(r, inside);
}

void basin_record_object(basin_record *r, const char *key) {
    enter(r, key, true, LEVEL_LINE, NULL);
}
void basin_record_list(basin_record *r, const char *key) { enter(r, key, false, LEVEL_LIST, NULL); }

void basin_record_table(basin_record *r, const char *key, const char *title) {
    enter(r, key, false, LEVEL_TABLE, title);
}

void basin_record_dictionary(basin_record *r, const char *key, const char *title) {
    enter(r, key, true, LEVEL_TABLE, title);
}

void basin_record_section(basin_record *r, const char *key) {
    if (is_json(r)) basin_json_object(&r->json, key_of(r, key));
    descend(r, r->level[r->depth]);
}

static void end(basin_record *r) {
    level left = r->level[r->depth], outer = r->depth ? r->level[r->depth - 1] : LEVEL_SILENT;
    if (in_json(r, NULL)) basin_json_end(&r->json);
    if (r->depth) r->depth--;
    if (is_json(r) || left == outer) return;
    if (left == LEVEL_ROW && is_csv(r)) csv_row_end(r);
    if (is_csv(r)) return;
    if (left == LEVEL_ROW) r->table.rows++;
    if (left == LEVEL_TABLE && r->table.rows) {
        if (r->title) fprintf(r->file, "%s\n", r->title);
        grid_print(&r->table, r->file, 2, true);
    }
    if ((left == LEVEL_LINE || left == LEVEL_LIST) && outer == LEVEL_FIELDS) {
        BASIN_FREE_AT_EXIT char *line = grown(r, &r->line, &r->line_text);
        if (line && *line) add_field(r, r->line_name, line);
    }
}

void basin_record_row(basin_record *r) { basin_record_entry(r, NULL); }

/* Ends the row that is open, if any; returns the depth. */
static int end_row(basin_record *r) {
    if (r->row[r->depth]) end(r);
    return r->depth;
}

void basin_record_entry(basin_record *r, const char *key) {
    level at = r->level[end_row(r)];
    if (in_json(r, NULL)) basin_json_object(&r->json, key);
    descend(r, at == LEVEL_TABLE ? LEVEL_ROW : at == LEVEL_MUTED ? at : LEVEL_SILENT);
    r->row[r->depth] = true;
}

void basin_record_end(basin_record *r) {
    end_row(r);
    end(r);
}

void basin_record_data_keys(basin_record *r, bool are) { r->data_keys = are; }

void basin_record_heading_only(basin_record *r, bool only) {
    end_row(r);
    r->heading_only = only;
}

void basin_record_note(basin_record *r, const char *format, ...) {
    char text[2000];
    va_list args;
    if (r->form != BASIN_FORM_TEXT) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    basin_text_clean(text);
    flush_fields(r);
    fprintf(r->file, "%s\n", text);
}

/* ---- whole records ---- */

basin_record *basin_record_open(FILE *file, basin_print_form form) {
    basin_record *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->file = file;
    r->form = form;
    if (form == BASIN_FORM_JSON) r->json = basin_json_begin(file);
    return r;
}

basin_status basin_record_close(basin_record *r, basin_error *error) {
    bool failed = r->failed;
    if (r->form == BASIN_FORM_JSON) basin_json_end(&r->json);
    if (r->form == BASIN_FORM_TEXT && !failed) flush_fields(r);
    grid_free(&r->fields);
    grid_free(&r->table);
    if (r->line) free(grown(r, &r->line, &r->line_text));
    if (r->head) free(grown(r, &r->head, &r->head_text));
    free(r);
    return failed ? basin_fail_memory(error, "a table") : BASIN_OK;
}

static basin_status print_to(FILE *file, basin_print_form form, basin_record_fill *fill,
                             const void *context, basin_error *error) {
    basin_record *r = basin_record_open(file, form);
    if (!r) return basin_fail_memory(error, "a result");
    fill(r, context);
    return basin_record_close(r, error);
}

basin_status basin_record_print(bool json, basin_record_fill *fill, const void *context,
                                basin_error *error) {
    return print_to(stdout, json ? BASIN_FORM_JSON : BASIN_FORM_TEXT, fill, context, error);
}

basin_status basin_record_write(const char *path, basin_print_form form, basin_record_fill *fill,
                                const void *context, basin_error *error) {
    basin_writer writer;
    if (!path) return print_to(stdout, form, fill, context, error);
    BASIN_TRY(basin_writer_create(&writer, path, error));
    basin_status status = print_to(writer.file, form, fill, context, error);
    return basin_writer_finish(&writer, status, error);
}
