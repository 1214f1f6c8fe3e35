/* Networks from arrays: what is copied, what the union adds, and what is refused. */
#include <math.h>

#include "support/test.h"
#include "tasks/nodes/network/network.h"

enum { NODES = 4 };
static const float feature[NODES * 2] = {0, 1, 2, 3, 4, 5, 6, 7};
static const int32_t label[NODES] = {0, 1, -1, 0};
static const uint8_t train[NODES] = {1, 1, 0, 0}, test[NODES] = {0, 0, 0, 1};
static const int32_t from[] = {0, 1}, to[] = {1, 2};
static const int64_t wide[] = {3, 0, 2, 3}; /* pairs: 3 -> 0, 2 -> 3 */

static basin_network_arrays some(const basin_edges *edges, int relations) {
    return (basin_network_arrays){.nodes = NODES,
                                  .features = 2,
                                  .feature = feature,
                                  .label = label,
                                  .train = train,
                                  .test = test,
                                  .relations = relations,
                                  .edges = edges};
}

TEST(arrays_become_a_network) {
    basin_edges edges[] = {{from, to, BASIN_I32, 1, 2}, {wide, wide + 1, BASIN_I64, 2, 2}};
    basin_network_arrays arrays = some(edges, 2);
    basin_network *network;
    basin_error error;
    assert_ok(basin_network_from_arrays(&network, &arrays, NULL, &failure));
    assert_memory_equal(network->feature, feature, sizeof feature);
    assert_memory_equal(network->label, label, sizeof label);
    assert_int_equal(network->splits, 1);
    assert_memory_equal(network->train, train, sizeof train);
    assert_null(network->val);
    assert_int_equal(network->relations, 3);
    assert_string_equal(network->relation[1].name, "relation 1");
    const basin_relation *all = &network->relation[basin_network_main_relation(network)];
    assert_string_equal(all->name, "homo");
    assert_int_equal(all->edges, 8); /* four edges, both ways */
    assert_int_equal(basin_network_check(network, &error), BASIN_OK);
    basin_network_close(network);
    arrays = some(edges, 1);
    arrays.id = (const char *const[]){"a", "b", "c", "d"};
    assert_ok(basin_network_from_arrays(&network, &arrays, NULL, &failure));
    assert_int_equal(basin_network_find(network, "c"), 2);
    basin_network_close(network);
    arrays.id = NULL, arrays.feature = NULL, arrays.label = NULL;
    assert_ok(basin_network_from_arrays(&network, &arrays, NULL, &failure));
    assert_string_equal(network->relation[0].name, "homo");
    assert_null(network->feature);
    basin_network_close(network);
}

static void refuse(const basin_network_arrays *arrays, const char *wanted) {
    basin_network *network;
    assert_failed(basin_network_from_arrays(&network, arrays, NULL, &failure), wanted);
    assert_null(network);
}

TEST(what_cannot_be_is_refused) {
    float bad[NODES * 2] = {0};
    const int32_t far[] = {0, NODES}, odd[NODES] = {0, -7, 0, 1};
    static const char *const twice[] = {"a", "a"};
    basin_edges good[] = {{from, to, BASIN_I32, 1, 2}, {from, to, BASIN_I32, 1, 2}};
    basin_edges wild = {from, far, BASIN_I32, 1, 2}, null = {from, NULL, BASIN_I32, 1, 2};
    basin_edges floats = {from, to, BASIN_F32, 1, 2}, still = {from, to, BASIN_I32, 0, 2};
    basin_network_arrays a = some(good, 0);
    refuse(&a, "0 relations");
    a = some(good, 1), a.nodes = 0;
    refuse(&a, "0 nodes");
    a = some(good, 1), a.features = 0;
    refuse(&a, "0 features");
    bad[5] = NAN;
    a = some(good, 1), a.feature = bad;
    refuse(&a, "feature 1 of node 2 is missing or NaN");
    a = some(good, 1), a.label = odd;
    refuse(&a, "the label of node 1 is -7");
    a = some(good, 1), a.id = (const char *const[]){"a", "b", "a", "c"};
    refuse(&a, "nodes 0 and 2 have the id 'a'");
    a = some(&wild, 1);
    refuse(&a, "edge 1 of 'homo' joins nodes 1 and 4");
    a = some(&null, 1);
    refuse(&a, "expected arrays from and to");
    a = some(&floats, 1);
    refuse(&a, "of type F32");
    a = some(&still, 1);
    refuse(&a, "0 apart");
    a = some(good, 2), a.name = twice;
    refuse(&a, "two relations are called 'a'");
}
