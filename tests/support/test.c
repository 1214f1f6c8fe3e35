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

void free_network(basin_network **network) { basin_network_free(*network); }
void free_bundle(basin_bundle **bundle) { basin_bundle_free(*bundle); }
void free_pictures(basin_pictures **pictures) { basin_pictures_free(*pictures); }
void free_graph(basin_graph **graph) { basin_graph_free(*graph); }
