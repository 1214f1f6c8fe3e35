/* Status codes and their messages; see include/basin/status.h. */
#include "basin/status.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

void basin_text_clean(char *text) {
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        if (*c < ' ' || *c == 127) *c = '?';
        if (*c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f) c[0] = c[1] = '?';
    }
}

basin_status basin_fail(basin_error *error, basin_status status, const char *format, ...) {
    if (error) {
        va_list args;
        va_start(args, format);
        error->status = status;
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
        basin_text_clean(error->text); /* a message is one line, whatever the names in it hold */
    }
    return status;
}

const char *basin_status_name(basin_status status) {
    switch (status) {
    case BASIN_OK: return "ok";
    case BASIN_NO_MEMORY: return "out of memory";
    case BASIN_BAD_SHAPE: return "bad shape";
    case BASIN_BAD_VALUE: return "bad value";
    case BASIN_BAD_FILE: return "bad file";
    case BASIN_IO: return "input/output error";
    case BASIN_UNSUPPORTED: return "not supported";
    }
    return "unknown status";
}
