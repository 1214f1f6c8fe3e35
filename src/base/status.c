/* Status codes and their messages; see include/basin/status.h. */
#include "basin/status.h"

#include <stdarg.h>
#include <stdio.h>

basin_status basin_fail(basin_error *error, basin_status status, const char *format, ...) {
    if (error) {
        va_list args;
        va_start(args, format);
        error->status = status;
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
        /* names and texts from files are quoted here, and a message is one line whatever they hold
         */
        for (char *c = error->text; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
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
