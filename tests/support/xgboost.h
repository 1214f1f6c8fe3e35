/* Tests of what XGBoost does: skipped, with the reason, where it is not installed. */
#ifndef BASIN_TESTS_SUPPORT_XGBOOST_H
#define BASIN_TESTS_SUPPORT_XGBOOST_H

#include "support/test.h"
#include "tasks/nodes/trees/trees.h"

static inline bool has_xgboost(void) {
    basin_error error;
    if (!basin_trees_available(&error)) return true;
    print_message("skipped: %s\n", error.text);
    return false;
}

static inline void needs_xgboost(void) {
    if (!has_xgboost()) skip();
}

/* For the setup of a whole program, which cmocka cannot skip. */
static inline void program_needs_xgboost(void) {
    if (!has_xgboost()) exit(0);
}

#endif
