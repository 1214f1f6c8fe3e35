/* Names that people type and that are not those of today: slips of the finger, spellings of an
 * earlier version, which still work, and options of other tools, which get a hint. */
#ifndef BASIN_CLI_SPELLING_H
#define BASIN_CLI_SPELLING_H

#include "base/text.h"

/* What we call an option that other tools call `foreign`: the i-th name to try, the best first;
 * NULL behind the last. */
const char *basin_option_hint(const char *foreign, int i);

#endif
