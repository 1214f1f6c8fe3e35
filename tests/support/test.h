/* What every test needs: cmocka and the headers that it needs before it, tests that register
 * themselves, and a check of statuses. */
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

#include "base/try.h"
#include "basin/status.h"

/* For calls whose error nobody looks at again: assert_ok(basin_x(.., &failure)) fails the test with
 * the message, assert_failure(basin_x(.., &failure), status, part) unless the call gives that
 * status and a message with that part, assert_says(.., text) unless the message is that text,
 * assert_failed(.., part) any status with a message with that part. */
extern basin_error failure;
#define assert_ok(call) test_ok(call, __FILE__, __LINE__)
#define assert_failure(call, status, part)                                                         \
    (failure = (basin_error){0}, test_failure(call, status, part, __FILE__, __LINE__))
#define assert_says(call, status, text)                                                            \
    (failure = (basin_error){0}, test_says(call, status, text, __FILE__, __LINE__))
#define assert_failed(call, part) assert_failure(call, BASIN_OK, part)
void test_ok(basin_status found, const char *file, int line);
void test_failure(basin_status found, basin_status wanted, const char *part, const char *file,
                  int line);
void test_says(basin_status found, basin_status wanted, const char *text, const char *file,
               int line);

/* TEST(name) { .. } is a test, run in the order of the file; `state` is what the setup left there.
 * A file has no main unless its tests share a setup and a teardown: tests_run(setup, teardown). */
#define TEST(name) TEST_WITH(name, NULL, NULL)
/* A test with a setup and a teardown of its own. */
#define TEST_WITH(name, setup, teardown)                                                           \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void name##_is_a_test(void) {                              \
        tests_add((struct CMUnitTest){#name, name, setup, teardown, NULL});                        \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)

void tests_add(struct CMUnitTest test);
int tests_run(CMFixtureFunction setup, CMFixtureFunction teardown);

/* For BASIN_AT_EXIT(free_network) basin_network *n: released where the test ends. */
struct basin_network;
struct basin_bundle;
struct basin_pictures;
struct basin_graph;
void free_network(struct basin_network **network);
void free_bundle(struct basin_bundle **bundle);
void free_pictures(struct basin_pictures **pictures);
void free_graph(struct basin_graph **graph);

#endif
