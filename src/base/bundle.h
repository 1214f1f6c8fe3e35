/* A bundle that is freed at the end of its scope. */
#ifndef BASIN_BASE_BUNDLE_H
#define BASIN_BASE_BUNDLE_H

#include "base/try.h"
#include "basin/io.h"

/* For BASIN_AT_EXIT. */
static inline void basin_bundle_free_at(basin_bundle **bundle) { basin_bundle_free(*bundle); }

#endif
