/* CSV that commands print; see csv.h. */
#include "cli/csv.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What a spreadsheet would compute: a cell that begins like a formula and is no number. */
static bool is_formula(const char *text) {
    char *end;
    if (!*text || !strchr("=+-@\t\r", *text)) return false;
    strtod(text, &end);
    return end == text || *end;
}

void basin_csv_put(FILE *file, const char *text) {
    if (is_formula(text)) fputc('\'', file);
    if (!strpbrk(text, ",\"\n\r")) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (const char *c = text; *c; c++) {
        if (*c == '"') fputc('"', file);
        fputc(*c, file);
    }
    fputc('"', file);
}
