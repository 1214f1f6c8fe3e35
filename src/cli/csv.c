/* CSV that commands print; see csv.h. */
#include "cli/csv.h"

#include <string.h>

void basin_csv_put(FILE *file, const char *text) {
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
