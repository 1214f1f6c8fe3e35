/* The list of a program's tests; see test.h. */
#include "support/test.h"

#include "basin/expr.h"
#include "basin/io.h"
#include "basin/tasks/network.h"
#include "basin/tasks/pictures.h"

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

basin_error failure;

void test_ok(basin_status found, const char *file, int line) {
    if (!found) return;
    print_error("%s\n", failure.text);
    _fail(file, line);
}

void test_failure(basin_status found, basin_status wanted, const char *part, const char *file,
                  int line) {
    if (wanted)
        _assert_int_equal(found, wanted, file, line);
    else
        _assert_int_not_equal(found, BASIN_OK, file, line);
    if (strstr(failure.text, part)) return;
    print_error("\"%s\" is not in: %s\n", part, failure.text);
    _fail(file, line);
}

void test_says(basin_status found, basin_status wanted, const char *text, const char *file,
               int line) {
    _assert_int_equal(found, wanted, file, line);
    _assert_string_equal(failure.text, text, file, line);
}

void free_network(basin_network **network) { basin_network_close(*network); }
void free_bundle(basin_bundle **bundle) { basin_bundle_free(*bundle); }
void free_pictures(basin_pictures **pictures) { basin_pictures_close(*pictures); }
void free_graph(basin_graph **graph) { basin_graph_free(*graph); }
