/* Tables; see table.h. */
#include "cli/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* A cell is one line, whatever the names and texts of a file hold. */
static void clean(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127) *text = '?';
}

static char *format_new(const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = length < 0 ? NULL : malloc((size_t)length + 1);
    if (text) vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

void basin_table_add(basin_table *table, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = format_new(format, args);
    va_end(args);
    if (!text || !basin_array_reserve((void **)&table->cell, &table->capacity, table->count + 1,
                                      sizeof *table->cell)) {
        free(text);
        table->failed = true;
        return;
    }
    clean(text);
    table->cell[table->count++] = text;
}

/* Columns on the screen: bytes that do not continue a UTF-8 sequence. */
static size_t text_width(const char *text) {
    size_t width = 0;
    for (; *text; text++) width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* Blanks are owed until a cell needs them, so that no line ends in blanks. */
static void print_row(char *const *cell, const char *layout, const size_t *width, FILE *file,
                      int indent) {
    int owed = indent;
    for (size_t i = 0; layout[i]; i++) {
        int blank = (int)(width[i] - text_width(cell[i]));
        if (layout[i] == 'r') owed += blank;
        if (*cell[i]) {
            fprintf(file, "%*s%s", owed, "", cell[i]);
            owed = 0;
        }
        if (layout[i] != 'r') owed += blank;
        owed += 2;
    }
    fputc('\n', file);
}

static void print_rows(const basin_table *table, size_t *width, FILE *file, int indent) {
    size_t columns = strlen(table->layout);
    for (size_t i = 0; i < table->count; i++) {
        size_t w = text_width(table->cell[i]);
        if (w > width[i % columns]) width[i % columns] = w;
    }
    for (size_t i = 0; i + columns <= table->count; i += columns)
        print_row(table->cell + i, table->layout, width, file, indent);
}

bool basin_table_print(basin_table *table, FILE *file, int indent) {
    size_t *width = calloc(strlen(table->layout), sizeof *width);
    bool good = width && !table->failed;
    if (good)
        print_rows(table, width, file, indent);
    else
        fputs("basin: out of memory for a table\n", stderr);
    free(width);
    for (size_t i = 0; i < table->count; i++) free(table->cell[i]);
    free(table->cell);
    *table = (basin_table){.layout = table->layout};
    return good;
}
