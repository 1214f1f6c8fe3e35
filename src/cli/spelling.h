/* Names that people type and that are not those of today: slips of the finger, spellings of an
 * earlier version, which still work, and options of other tools, which get a hint. */
#ifndef BASIN_CLI_SPELLING_H
#define BASIN_CLI_SPELLING_H

#include "base/spelling.h"

/* Today's name, without dashes, of an option that 0.1 called `was`: "--out", "-d". NULL where it
 * was not renamed. `value` becomes what a flag of then says as a value of today's option, or NULL.
 * The table of settings has the old names of settings. */
const char *basin_option_renamed(const char *command, const char *was, const char **value);

/* What we call an option that other tools call `foreign`: the i-th name to try, the best first;
 * NULL behind the last. */
const char *basin_option_hint(const char *foreign, int i);

#endif
