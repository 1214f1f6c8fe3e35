/* Status codes and their messages, and the version; see include/basin/status.h, version.h. */
#include "basin/status.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "basin/version.h"

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

const char *basin_version(void) { return BASIN_VERSION_STRING; }
