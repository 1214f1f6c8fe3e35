/* The message of a failure; see basin/status.h. */

#include "basin/status.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

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
