/* Made networks have the counts that were asked for, the same ones for a seed, and a heavy tail. */
#include "data/network/networks.h"

#include <math.h>

#include "base/team/team.h"

static basin_fraud_spec like(const char *name, double scale) {
    basin_fraud_spec spec;
    assert_int_equal(basin_fraud_like(&spec, name, scale, NULL), BASIN_OK);
    spec.seed = 7;
    return spec;
}

static basin_network *make(const basin_fraud_spec *spec) {
    basin_network *n;
    basin_error error;
    if (basin_network_make_fraud(&n, spec, &error)) fail_msg("%s", error.text);
    return n;
}

TEST(keeps_the_papers_table) {
    const struct {
        const char *name;
        int64_t nodes, edges, features;
        double anomalous;
    } set[] = {{"amazon", 11944, 4398392, 25, 0.0687},
               {"yelp", 45954, 3846979, 32, 0.1453},
               {"tfinance", 39357, 21222543, 10, 0.0458},
               {"tsocial", 5781065, 73105508, 10, 0.0301}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        basin_fraud_spec spec = like(set[i].name, 1);
        assert_int_equal(spec.nodes, set[i].nodes);
        assert_int_equal(spec.edges, set[i].edges);
        assert_int_equal(spec.features, set[i].features);
        assert_true(spec.anomalous == set[i].anomalous);
    }
    basin_fraud_spec spec;
    assert_int_equal(basin_fraud_like(&spec, "ebay", 1, &failure), BASIN_BAD_VALUE);
}

TEST(makes_what_was_asked_for) {
    const struct {
        const char *name;
        double scale;
    } set[] = {
        {"amazon", 0.05}, {"yelp", 0.05}, {"tfinance", 0.02}, {"tsocial", 0.002}, {"amazon", 1e-6}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        basin_fraud_spec spec = like(set[i].name, set[i].scale);
        basin_network *n = make(&spec);
        basin_degrees d;
        assert_int_equal(basin_network_check(n, NULL), BASIN_OK);
        assert_int_equal(basin_network_degrees(&d, n, 0, NULL), BASIN_OK);
        assert_int_equal(d.edges, 2 * spec.edges); /* so no edge was drawn twice */
        assert_int_equal(d.self_loops, 0);
        assert_int_equal(basin_network_count_label(n, 1),
                         llround(spec.anomalous * (double)spec.nodes));
        if (set[i].scale > 0.01 && i != 2) assert_true(fabs(d.homophily - spec.homophily) < 0.03);
        if (i == 1 || i == 3) assert_true((double)d.most > 4 * d.mean && d.median < d.mean);
        basin_network_free(n);
    }
}

TEST(repeats) {
    basin_fraud_spec spec = like("yelp", 0.02);
    basin_processors_set(3);
    BASIN_AT_EXIT(free_network) basin_network *a = make(&spec);
    basin_processors_set(1);
    basin_network *b = make(&spec);
    basin_processors_set(0);
    assert_networks_equal(a, b);
    basin_network_free(b);
    spec.seed = 8;
    b = make(&spec);
    assert_memory_not_equal(a->label, b->label, (size_t)a->nodes * sizeof *a->label);
    basin_network_free(b);
}

TEST(refuses_impossible_ones) {
    basin_fraud_spec spec = like("yelp", 0.01);
    basin_network *n;
    spec.edges = 200000;
    assert_int_equal(basin_network_make_fraud(&n, &spec, &failure), BASIN_BAD_VALUE);
    assert_null(n);
    spec = like("yelp", 0.01);
    spec.anomalous = 0.7;
    assert_int_equal(basin_network_make_fraud(&n, &spec, &failure), BASIN_BAD_VALUE);
}
