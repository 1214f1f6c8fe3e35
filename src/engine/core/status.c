/* The message of a failure; see basin/status.h. */

#include "basin/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

basin_status basin_fail(basin_error *error, basin_status status, const char *format, ...) {
    if (error) {
        va_list args;
        va_start(args, format);
        error->status = status;
        error->number = 0;
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
        basin_text_clean(error->text); /* a message is one line, whatever the names in it hold */
    }
    return status;
}

const char *basin_status_name(basin_status status) {
    static const char *const name[] = {"BASIN_OK",         "BASIN_NO_MEMORY", "BASIN_BAD_SHAPE",
                                       "BASIN_BAD_VALUE",  "BASIN_BAD_FILE",  "BASIN_IO",
                                       "BASIN_UNSUPPORTED"};
    return status >= BASIN_OK && status <= BASIN_UNSUPPORTED ? name[status] : "unknown status";
}

void basin_free(void *memory) { free(memory); }
