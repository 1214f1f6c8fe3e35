/* The list of a program's tests; see test.h. */
#include "support/test.h"

enum { TESTS_MOST = 100 };
static struct CMUnitTest tests[TESTS_MOST];
static size_t count;

void tests_add(struct CMUnitTest test) {
    if (count == TESTS_MOST) abort();
    tests[count++] = test;
}

int tests_run(CMFixtureFunction setup, CMFixtureFunction teardown) {
    return _cmocka_run_group_tests("tests", tests, count, setup, teardown);
}
