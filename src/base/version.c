/* The version the library was built as; see include/basin/version.h. */
#include "basin/version.h"

const char *basin_version(void) { return BASIN_VERSION_STRING; }
