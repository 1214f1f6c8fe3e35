/* Tests in which the n-th allocation fails.
 *
 * A test file named test_*_alloc.c is linked with the linker's --wrap, so that every malloc,
 * calloc, realloc and aligned_alloc in the library's and the test's own code goes through
 * alloc_fail.c. Shared libraries (cJSON, BLAS, the C library itself) keep their own. */
#ifndef TESTS_SUPPORT_ALLOC_FAIL_H
#define TESTS_SUPPORT_ALLOC_FAIL_H

#include "basin/status.h"

/* Does what is to be tested, frees all it made, and returns the first status that is not
 * BASIN_OK. It may not use cmocka's assertions between its allocations: they jump over the
 * cleanup. */
typedef basin_status alloc_scenario(void *context);

/* Runs the scenario with no failure; then, for n = 1, 2, ... until it makes no n-th allocation,
 * once with the n-th alone failing and once with all from the n-th on. Each run must return
 * BASIN_NO_MEMORY and leave as many allocations alive as it found. Fails the cmocka test
 * otherwise; returns how many allocations the scenario makes. */
long alloc_fail_sweep(alloc_scenario *run, void *context);

/* The same for scenarios of thousands of allocations: about `points` of them fail, the first ones
 * and then others evenly apart; all with BASIN_TEST_ALLOC_ALL in the environment. */
long alloc_fail_sample(alloc_scenario *run, void *context, long points);

/* The same without cmocka: -1 and a line in `text` where a run did not do what it must. */
enum { ALLOC_FAIL_TEXT = 200 };
long alloc_fail_check(char text[ALLOC_FAIL_TEXT], alloc_scenario *run, void *context);

#endif
