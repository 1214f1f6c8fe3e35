/* Lines on standard error; names in them may hold anything, a terminal's control bytes included. */
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "basin/energy.h"
#include "cli/command.h"

void basin_say(const char *format, ...) {
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    basin_text_clean(text);
    basin_text_hide(text);
    fprintf(stderr, "%s\n", text);
}

void basin_note_gamma(const char *path, bool quiet) {
    basin_bundle *weights;
    basin_error error;
    double least;
    if (quiet || basin_bundle_read(&weights, path, &error)) return;
    int64_t count = basin_negative_gammas(&least, weights);
    if (count)
        basin_say("basin: note: %s: gamma of %lld layer norm%s is negative (least %.4g), so that "
                  "the descent climbs; training with positive_gamma keeps it above 0",
                  path, (long long)count, count > 1 ? "s" : "", least);
    basin_bundle_free(weights);
}

int basin_report(const basin_error *error) {
    basin_say("basin: %s", error->text);
    return BASIN_EXIT_FAILURE;
}

basin_status basin_usage(basin_error *error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return error->status = BASIN_USAGE;
}

int basin_report_usage(const basin_command *command, const char *format, ...) {
    char text[BASIN_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    basin_say("basin: %s: %s (see 'basin help %s')", command->name, text, command->name);
    return BASIN_EXIT_USAGE;
}
