/* What every test needs: cmocka and the headers that it wants before it, and a check of statuses.
 */
#ifndef BASIN_TESTS_SUPPORT_TEST_H
#define BASIN_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "basin/status.h"

/* Fails the test with the message of an error. */
static inline void must(basin_status status, const basin_error *error) {
    if (status) fail_msg("%s", error->text);
}

#endif
