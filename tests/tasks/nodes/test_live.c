/* Single nodes of a network that grows: the scores of basin_nodes_predict on base and additions
 * read as a whole, wherever no cap bit; what the schema refuses leaves nothing behind. */
#include <math.h>
#include <string.h>

#include "tasks/nodes/fraud.h"
#include "tasks/nodes/near.h"

enum { NODES = 240, EDGES = 420, TEXT = 1 << 16 };

static const char *const city[] = {"Rome", "Oslo", "Bonn"};

/* Rows of nodes first .. last; of edges among them, or from new ones to older ones. */
static void write_nodes(char *to, int first, int last) {
    to += sprintf(to, "id,age,city,income,label\n");
    for (int i = first; i < last; i++)
        to += sprintf(to, "a%d,%.3f,%s,%.3f,%d\n", i, 20 + 40 * coin(3, 1, i), city[i % 3],
                      basin_random_normal_at(3, 2, (uint64_t)i) + (i % 6 == 0), i % 6 == 0);
}

static void write_edges(char *to, int first, int last, int nodes, const char *columns) {
    bool facts = strstr(columns, "amount"), times = strstr(columns, "time");
    to += sprintf(to, "source,target%s\n", columns);
    for (int e = first; e < last; e++) {
        int a = e % nodes, b = (int)(coin(5, 3, e) * nodes);
        if (e % 3) b = a + b % 7 < nodes ? a + b % 7 : 0; /* near ones, so that paths are long */
        to += sprintf(to, "a%d,a%d", a, b);
        if (facts) to += sprintf(to, ",%.2f", 1 + 100 * coin(5, 4, e));
        if (times) to += sprintf(to, ",%d", 1 + (int)(1000 * coin(5, 5, e)));
        to += sprintf(to, "\n");
    }
}

static basin_network *read(const char *nodes, const char *edges, basin_network_options *options) {
    basin_csv_source source[2] = {{.path = "nodes", .data = nodes, .size = strlen(nodes)},
                                  {.path = "edges", .data = edges, .size = strlen(edges)}};
    basin_network *network;
    int first = !*nodes;
    assert_ok(basin_network_csv_read(&network, source + first, 2 - first, options, &failure));
    assert_ok(basin_network_finish(network, options, &failure));
    return network;
}

typedef struct sample {
    const char *columns; /* of edges */
    bool directed;
    const char *facts;
    int64_t hops, trees; /* the latter with a teacher where directed */
} sample;

static fraud_scene scene_of(const sample *s, char *text) {
    basin_network_options options = {.directed = s->directed};
    write_nodes(text, 0, NODES);
    write_edges(text + TEXT, 0, EDGES, NODES, s->columns);
    fraud_scene scene = fraud_scene_of(read(text, text + TEXT, &options));
    scene.settings.epochs = 6, scene.settings.hops = s->hops, scene.settings.facts = s->facts;
    scene.settings.trees = s->trees, scene.settings.labels = s->trees > 0;
    scene.settings.teacher = s->trees > 0 && s->directed;
    if (s->directed && s->hops == 2 && !strcmp(s->facts, "none"))
        scene.settings.directions = "come";
    scene.settings.scaling = "quantile", scene.settings.members = 2;
    scene.model = fraud_train(scene.network, scene.part, &scene.settings, &scene.training);
    return scene;
}

/* Every sixth node from `first` on, and all added ones, against the whole graph; those that are
 * capped are off by `limit` in the mean. */
static void check_all(basin_nodes_live *live, const basin_nodes_model *model,
                      const basin_network *whole, int first, double limit) {
    double *expected = calloc((size_t)whole->nodes, sizeof *expected);
    int64_t capped = 0;
    double off = 0;
    assert_ok(basin_nodes_predict(expected, model, whole, NULL, &failure));
    for (int64_t i = 0; i < whole->nodes; i++) {
        char text[BASIN_MAX_NODE];
        if (i < NODES && i % 6 != first) continue;
        const char *id = basin_network_id(whole, i, text);
        basin_nodes_live_score score;
        assert_ok(basin_nodes_live_predict(&score, live, &id, 1, &failure));
        assert_int_equal(score.node, i);
        capped += score.capped;
        off += fabs(score.probability - expected[i]);
        if (!score.capped && score.probability != expected[i])
            fail_msg("node %s has %.9g, expected %.9g", id, score.probability, expected[i]);
    }
    assert_true(capped < whole->nodes);
    assert_true(off <= limit * (double)capped);
    free(expected);
}

/* An added node and an old one; both lists tell the distance, and neighbours have their ids. */
static void check_explained(basin_nodes_live *live, const basin_network *whole) {
    for (int64_t node = 3; node < whole->nodes; node += NODES) {
        basin_nodes_explanation *why;
        basin_nodes_live_score score;
        char text[BASIN_MAX_NODE], id[64];
        const char *name = basin_network_id(whole, node, text);
        double through, own;
        assert_ok(basin_nodes_live_predict(&score, live, &name, 1, &failure));
        assert_ok(basin_nodes_live_explain(&why, live, name, &failure));
        assert_int_equal(why->node, node);
        assert_true(why->probability == score.probability);
        assert_string_equal(basin_nodes_live_id(live, node, id, sizeof id), name);
        through = own = why->rest + why->missed;
        for (int64_t i = 0; i < why->features; i++) own += why->feature[i].share;
        for (int64_t i = 0; i < why->neighbours; i++) {
            through += why->neighbour[i].push;
            assert_true(basin_relation_find(&whole->relation[0], node,
                                            (int32_t)why->neighbour[i].node) >= 0 ||
                        whole->directed);
        }
        assert_true(fabs(own - why->logit + why->typical_logit) < 1e-6);
        assert_true(fabs(through + why->own - why->logit + why->typical_logit) < 1e-6);
        basin_nodes_explanation_free(why);
    }
}

/* A neighbourhood that is not capped has the bits of the whole graph, with and without states. */
static void check_sample(const sample *s, int first) {
    char *text = calloc(4, TEXT);
    fraud_scene scene = scene_of(s, text);
    write_nodes(text + 2 * TEXT, NODES, NODES + 5);
    write_edges(text + 3 * TEXT, EDGES + 100, EDGES + 112, NODES + 5, s->columns);
    basin_network_options more = {.base = scene.network, .directed = s->directed};
    basin_network *whole = read(text + 2 * TEXT, text + 3 * TEXT, &more);
    for (int states = -1; states < 1; states++) {
        basin_nodes_live_options options = {.states = states ? BASIN_NODES_STATES_ABSENT
                                                             : BASIN_NODES_STATES_KEPT,
                                            .cap_nodes = 200};
        basin_nodes_live *live;
        assert_ok(basin_nodes_live_open(&live, scene.model, scene.network, &options, &failure));
        check_all(live, scene.model, scene.network, first, states < 0 ? 1 : 0);
        assert_ok(basin_nodes_live_add(live, text + 2 * TEXT, text + 3 * TEXT, &failure));
        assert_int_equal(basin_nodes_live_count(live).nodes, NODES + 5);
        check_all(live, scene.model, whole, first, states < 0 ? 1 : 0.001);
        check_explained(live, whole);
        basin_nodes_live_close(live);
    }
    basin_network_close(whole);
    fraud_scene_free(&scene);
    free(text);
}

static void grows(void **state) {
    static const sample samples[] = {
        {"", false, "none", 0, 0},
        {"", false, "none", 2, 0},
        {"", true, "none", 2, 0},
        {",amount", false, "both", 1, 0},
        {",amount", false, "features", 2, 8},
        {"", true, "none", 1, 8},
        {",amount,time", true, "both", 2, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        check_sample(&samples[i], (int)(i % 3));
}

/* A changed row enters the means of its neighbours, which do not count themselves. */
static void renews_means(void **state) {
    static const sample s = {"", false, "none", 1, 0};
    static const char row[] = "id,age,city,income,label\na5,99,Rome,7,0\n";
    char *text = calloc(4, TEXT);
    fraud_scene scene = scene_of(&s, text);
    basin_near_graph graph;
    basin_near_rows rows = {.graph = &graph, .model = scene.model};
    basin_node_inputs inputs = {0};
    int64_t loops = 0;
    (void)state;
    assert_ok(basin_near_graph_open(&graph, scene.network, &scene.model->ensemble, &failure));
    assert_ok(basin_near_rows_open(&rows, &graph, scene.model, 0, &failure));
    assert_ok(basin_near_add(&graph, &rows, row, NULL, NULL, &failure));
    basin_network_options more = {.base = scene.network};
    basin_csv_source source = {.path = "nodes", .data = row, .size = sizeof row - 1};
    basin_network *whole;
    assert_ok(basin_network_csv_read(&whole, &source, 1, &more, &failure));
    assert_ok(basin_network_finish(whole, &more, &failure));
    assert_ok(basin_node_inputs_open(&inputs, whole, &scene.model->settings, &failure));
    assert_ok(
        basin_node_inputs_scale(&inputs, &scene.model->scale, &scene.model->edge_scale, &failure));
    for (int64_t i = 0; i < NODES; i++) {
        loops += basin_relation_find(&whole->relation[0], i, (int32_t)i) >= 0;
        for (int64_t c = 0; c < 2 * inputs.node.own; c++)
            assert_float_equal(basin_node_row(&rows.inputs.node, i)[c],
                               inputs.node.row[i * inputs.node.stride + c], 1e-5);
    }
    assert_true(loops > 0);
    basin_node_inputs_close(&inputs);
    basin_near_rows_close(&rows);
    basin_near_graph_close(&graph);
    basin_network_close(whole);
    fraud_scene_free(&scene);
    free(text);
}

/* After an addition trees read of every node what they read of the network as a whole. Of edges
 * that go both ways in a directed graph, a node's own label is in no share of known labels. */
static void reads_trees_as_in_the_whole(void **state) {
    static const char nodes[] = "id,age,label\na0,1,1\na1,2,0\na2,4,1\na3,8,0\na4,16,0\na5,3,1\n";
    static const char old[] = "source,target\na0,a1\na1,a0\na1,a2\na2,a1\na2,a3\na3,a4\n";
    static const char new[] = "source,target\na4,a5\na5,a4\n";
    static const uint8_t part[6] = {1, 1, 1, 1, 1, 1};
    static const basin_salt salt = {true, "0123456789abcde"};
    basin_nodes_model model = {.ensemble = {.fits = 1, .degree = true, .rate = 0.25}};
    basin_nodes_ensemble *e = &model.ensemble;
    basin_network_options options = {.directed = true};
    basin_network *base = read(nodes, old, &options), *whole;
    basin_near_graph graph;
    basin_near_rows rows = {.graph = &graph, .model = &model};
    basin_tree_table table;
    float x[2][64];
    (void)state;
    assert_ok(basin_nodes_ensemble_name(e, base, &failure));
    assert_ok(basin_known_labels_take(&e->known, base, part, 1, true, &salt, &failure));
    assert_ok(basin_near_graph_open(&graph, base, e, &failure));
    assert_ok(basin_near_rows_open(&rows, &graph, &model, 0, &failure));
    assert_ok(basin_near_add(&graph, &rows, NULL, new, NULL, &failure));
    options.base = base;
    whole = read("", new, &options);
    assert_ok(basin_tree_table_open(&table, whole, e, 0, &failure));
    for (int64_t i = 0; i < 6; i++) {
        basin_tree_table_rows(x[0], &rows.table, &i, 0, 1);
        basin_tree_table_rows(x[1], &table, &i, 0, 1);
        for (int64_t c = 0; c < table.columns; c++) assert_float_equal(x[0][c], x[1][c], 1e-6);
    }
    basin_tree_table_close(&table);
    basin_near_rows_close(&rows);
    basin_near_graph_close(&graph);
    basin_known_labels_free(&e->known);
    basin_network_close(whole), basin_network_close(base);
}

static void refuses(void **state) {
    char *text = calloc(2, TEXT);
    fraud_scene scene = scene_of(&(sample){"", false, "none", 1, 0}, text);
    basin_nodes_live *live;
    basin_nodes_live_score score;
    (void)state;
    assert_ok(basin_nodes_live_open(&live, scene.model, scene.network, NULL, &failure));
    assert_failed(basin_nodes_live_add(live, NULL, "source,target\na1,nobody\n", &failure),
                  "nobody");

    assert_failed(basin_nodes_live_add(live, "id,age,city,income\nn1,old,Rome,3\n", NULL, &failure),
                  "age");

    assert_int_equal(basin_nodes_live_count(live).nodes, NODES);
    assert_ok(basin_nodes_live_predict(&score, live, &(const char *){"nobody"}, 1, &failure));
    assert_int_equal(score.node, -1);
    basin_nodes_explanation *why;
    assert_ok(basin_nodes_live_explain(&why, live, "nobody", &failure));
    assert_null(why);
    basin_nodes_live_close(live);
    fraud_scene_free(&scene);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows),
        cmocka_unit_test(renews_means),
        cmocka_unit_test(reads_trees_as_in_the_whole),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
