/* Sets of graphs from arrays: what they become, and what is refused. */
#include <math.h>

#include "support/test.h"
#include "tasks/graphs/set/graphset.h"

/* A triangle and a pair, their edges given once. */
static const int64_t nodes[] = {3, 2}, from[] = {2, 0, 1, 3}, to[] = {0, 1, 2, 4};
static const float colour[] = {1, 2, 3, 4, 5}, length[] = {0.5f, 1.5f, 2.5f, 3.5f};
static const int32_t kind[] = {6, 7, 6, 6, 7};
static const int64_t graph_class[] = {-1, 1};

static basin_graphset_arrays sample(void) {
    return (basin_graphset_arrays){.name = "two",
                                   .graphs = 2,
                                   .nodes = nodes,
                                   .edges = 4,
                                   .from = from,
                                   .to = to,
                                   .undirected = true,
                                   .node_attributes = 1,
                                   .node_attribute = colour,
                                   .node_labels = 1,
                                   .node_label = kind,
                                   .edge_attributes = 1,
                                   .edge_attribute = length,
                                   .graph_class = graph_class};
}

TEST(becomes_a_set) {
    basin_graphset set;
    basin_graphset_arrays a = sample();
    assert_ok(basin_graphset_from_arrays(&set, &a, &failure));
    static const int32_t edge[] = {0, 1, 0, 2, 1, 0, 1, 2, 2, 0, 2, 1, 0, 1, 1, 0};
    static const float along[] = {1.5f, 0.5f, 1.5f, 2.5f, 0.5f, 2.5f, 3.5f, 3.5f};
    assert_string_equal(set.name, "two");
    assert_true(set.graphs == 2 && set.nodes == 5 && set.edges == 8);
    assert_memory_equal(set.edge, edge, sizeof edge);
    assert_memory_equal(set.edge_attribute, along, sizeof along);
    assert_memory_equal(set.node_label, kind, sizeof kind);
    assert_true(set.edge_start[1] == 6 && set.classes == 2 && set.class_value[0] == -1);
    basin_graphset_free(&set);
    a.undirected = false;
    assert_ok(basin_graphset_from_arrays(&set, &a, &failure));
    assert_int_equal(set.edges, 4);
    basin_graphset_free(&set);
}

TEST(takes_values_and_node_classes) {
    basin_graphset set;
    basin_graphset_arrays a = sample();
    static const int64_t node_class[] = {5, 5, 3, 3, 5};
    a.graph_class = NULL, a.node_class = node_class;
    assert_ok(basin_graphset_from_arrays(&set, &a, &failure));
    assert_true(set.task == BASIN_GRAPHS_NODE_CLASSES && set.class_of[2] == 0);
    basin_graphset_free(&set);
    a.node_class = NULL, a.target = colour, a.targets = 2, a.split[0] = a.split[2] = 1;
    assert_ok(basin_graphset_from_arrays(&set, &a, &failure));
    assert_true(set.task == BASIN_GRAPHS_VALUES && set.target[3] == 4 && set.split[2] == 1);
    basin_graphset_free(&set);
}

static void refuse(const basin_graphset_arrays *a, const char *wanted) {
    basin_graphset set;
    assert_failure(basin_graphset_from_arrays(&set, a, &failure), BASIN_BAD_VALUE, wanted);
}

TEST(refuses_wrong_arrays) {
    static const int64_t across[] = {0, 1, 2, 0}, beyond[] = {0, 1, 2, 5}, below[] = {-1, 5};
    static const float bad[] = {1, 2, NAN, 4, 5};
    basin_graphset_arrays a = sample();
    a.to = across;
    refuse(&a, "edge 3 joins node 3 of graph 1 and node 0 of graph 0; expected both in one graph");
    a.to = beyond;
    refuse(&a, "edge 3 joins nodes 3 and 5; expected 0 to 4");
    a = sample(), a.nodes = below;
    refuse(&a, "nodes[0] is -1");
    a = sample(), a.node_attribute = bad;
    refuse(&a, "node_attribute[2] is nan; expected a finite number");
    a = sample(), a.node_attribute = NULL;
    refuse(&a, "node_attribute has 1 columns and no array");
    a = sample(), a.node_labels = 33;
    refuse(&a, "33 columns of node labels");
    a = sample(), a.target = colour, a.targets = 1;
    refuse(&a, "2 of graph_class, node_class and target");
    a = sample(), a.split[0] = INT64_MAX, a.split[1] = INT64_MAX;
    refuse(&a, "a split into");
    a = sample(), a.split[1] = 1;
    refuse(&a, "a split into 0, 1, 0 of 2 graphs");
    a = sample(), a.graphs = 0;
    refuse(&a, "0 graphs");
    a = sample(), a.edges = -4;
    refuse(&a, "-4 edges");
}
