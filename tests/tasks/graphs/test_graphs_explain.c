/* Explanations of graphs: what nodes and edges add is what their loss changes. */
#include "tasks/graphs/graph_world.h"

enum { GRAPHS = 24 };

static void scene_open(world_scene *s, basin_graphs_target target, bool walks) {
    basin_graphs_settings values = world_settings();
    values.epochs = 5;
    if (walks) values.edge_walks = 3, values.pair_hidden = 4;
    if (walks) values.average = 0.9, values.adjacency = "bias";
    world_train(s, target, GRAPHS, &values);
}

static double sum_of(const double *number, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += number[i];
    return sum;
}

static basin_graphs_explanation explained(world_scene *s, int64_t graph, int64_t column) {
    basin_graphs_explanation e;
    assert_ok(basin_graphs_explain(&e, s->model, &s->set, graph, column, &failure));
    return e;
}

/* A copy of graph `graph` of the set without node or edge (by its ends; -1: none). */
static double predicted_without(world_scene *s, int64_t graph, int32_t node, const int32_t *edge,
                                int64_t column) {
    int64_t first = s->set.node_start[graph], n = s->set.node_start[graph + 1] - first;
    int64_t from[200], to[200], nodes = n - (node >= 0), edges = 0;
    int32_t label[20], at = 0;
    float output[2];
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set = {0};
    for (int32_t i = 0; i < n; i++)
        if (i != node) label[at++] = s->set.node_label[first + i];
    for (int64_t e = s->set.edge_start[graph]; e < s->set.edge_start[graph + 1]; e++) {
        const int32_t *own = s->set.edge + 2 * e;
        bool same = edge && ((own[0] == edge[0] && own[1] == edge[1]) ||
                             (own[1] == edge[0] && own[0] == edge[1]));
        if (own[0] == node || own[1] == node || same) continue;
        from[edges] = own[0] - (node >= 0 && own[0] > node);
        to[edges++] = own[1] - (node >= 0 && own[1] > node);
    }
    basin_graphset_arrays a = {.graphs = 1, .nodes = &nodes, .edges = edges, .from = from};
    a.to = to, a.node_labels = 1, a.node_label = label;
    assert_ok(basin_graphset_from_arrays(&set, &a, &failure));
    assert_ok(world_predict(output, NULL, s->model, &(basin_graphs_data){.set = &set}, &failure));
    double p = (double)output[column];
    return s->set.task == BASIN_GRAPHS_VALUES ? p : log(p / (1 - p));
}

static void one_graph(world_scene *s, int64_t graph) {
    float output[2];
    basin_graphs_data data = {.set = &s->set, .graph = &graph, .graphs = 1};
    assert_ok(world_predict(output, NULL, s->model, &data, &failure));
    basin_graphs_explanation e = explained(s, graph, -1);
    const int32_t *edge = s->set.edge + 2 * s->set.edge_start[graph];
    if (s->set.task == BASIN_GRAPHS_VALUES)
        assert_true(fabs(e.output - (double)output[0]) < 1e-3);
    else {
        assert_int_equal(e.column, output[1] > output[0]);
        basin_graphs_explanation other = explained(s, graph, !e.column);
        for (int64_t i = 0; i < e.nodes; i++) assert_true(fabs(e.node[i] + other.node[i]) < 1e-3);
        basin_graphs_explanation_free(&other);
    }
    assert_true(isnan(e.blank));
    for (int32_t i = 0; i < e.nodes; i++)
        assert_true(fabs(e.output - predicted_without(s, graph, i, NULL, e.column) - e.node[i]) <
                    1e-4);
    for (int64_t k = 0; k < e.edges; k++) {
        double all = e.output - predicted_without(s, graph, -1, edge + 2 * k, e.column);
        assert_true(fabs(all / 2 - e.edge[k]) < 1e-4);
    }
    basin_graphs_explanation_free(&e);
}

TEST(nodes_and_edges_add_what_their_loss_changes) {
    for (int i = 0; i < 4; i++) { /* with only edges, and with walks along them */
        world_scene s;
        scene_open(&s, i % 2 ? BASIN_GRAPHS_VALUES : BASIN_GRAPHS_CLASSES, i > 1);
        for (int64_t graph = 0; graph < GRAPHS; graph += 9) one_graph(&s, graph);
        world_close(&s);
    }
}

static double predicted(basin_graphs_model *model, const char *smiles) {
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set = {0};
    float output;
    assert_ok(basin_graphset_read(
        &set, NULL, &(basin_graphset_options){.text = &smiles, .count = 1}, &failure));
    assert_ok(world_predict(&output, NULL, model, &(basin_graphs_data){.set = &set}, &failure));
    return (double)output;
}

/* Substituents at rings and chains that were not in training: what their atoms add is the
 * change from the molecule with hydrogen in their place. */
TEST(atoms_add_what_substitution_changes) {
    enum { TRAIN = 40 };
    static const char *const group[] = {"F", "Cl", "Br", "C", "O", "[N+](=O)[O-]"};
    static const char *const frame[] = {"c1ccc(CCO)cc1%s", "c1ccnc(c1)OCC%s", "C1CCN(C)CC1%s",
                                        "CC(C)CC(=O)NC%s"};
    static char text[TRAIN][60];
    const char *smiles[TRAIN];
    for (int i = 0; i < TRAIN; i++) {
        snprintf(text[i], sizeof text[i], "%.*s%s", 1 + i / 6, "CCCCCCCC", group[i % 6]);
        smiles[i] = text[i];
    }
    world_scene s = {0};
    basin_graphset_options options = {.text = smiles, .count = TRAIN};
    assert_ok(basin_graphset_read(&s.set, NULL, &options, &failure));
    s.set.task = BASIN_GRAPHS_VALUES, s.set.targets = 1, s.set.target = calloc(TRAIN, 4);
    for (int i = 0; i < TRAIN; i++) s.set.target[i] = (float)(i / 6 + i % 6);
    basin_graphs_settings values = world_settings();
    values.members = 2, values.epochs = 3;
    basin_settings settings = {.kind = &basin_graphs_task, .values = &values};
    basin_training_result outcome = {.size = sizeof outcome};
    assert_ok(basin_backend_open(&s.backend, &(basin_compute){.threads = 1}, &failure));
    basin_training_options training = {.backend = s.backend};
    assert_ok(basin_graphs_train(&s.model, &outcome, &settings,
                                 &(basin_graphs_train_data){.set = &s.set}, &training, &failure));
    s.model->near.share = 0.4;
    int alike = 0, all = 0;
    for (int f = 0; f < 4; f++)
        for (int g = 0; g < 6; g++, all++) {
            char with[80], without[80];
            const char *one = with;
            BASIN_AT_EXIT(basin_graphset_free) basin_graphset set = {0};
            snprintf(with, sizeof with, frame[f], group[g]);
            snprintf(without, sizeof without, frame[f], "");
            options = (basin_graphset_options){.text = &one, .count = 1};
            assert_ok(basin_graphset_read(&set, NULL, &options, &failure));
            basin_graphs_explanation e;
            assert_ok(basin_graphs_explain(&e, s.model, &set, 0, -1, &failure));
            int64_t atoms = g == 5 ? 3 : 1; /* the last ones */
            double adds = sum_of(e.node + e.nodes - atoms, atoms);
            double change = predicted(s.model, with) - predicted(s.model, without);
            alike += adds * change > 0;
            assert_true(fabs(adds - change) < 1e-4);
            assert_true(fabs(e.blank + sum_of(e.node, e.nodes) - e.output) < 1e-6);
            basin_graphs_explanation_free(&e);
        }
    assert_true(alike >= 0.9 * all);
    world_close(&s);
}

TEST(refuses) {
    world_scene s;
    basin_error error;
    basin_graphs_explanation e;
    scene_open(&s, BASIN_GRAPHS_CLASSES, 1);
    assert_says(basin_graphs_explain(&e, s.model, &s.set, GRAPHS, -1, &failure), BASIN_BAD_VALUE,
                "graph 24; expected 0 to 23");
    assert_int_equal(basin_graphs_explain(&e, s.model, &s.set, 0, 2, &error), BASIN_BAD_VALUE);
    world_close(&s);
    scene_open(&s, BASIN_GRAPHS_NODE_CLASSES, 1);
    assert_int_equal(basin_graphs_explain(&e, s.model, &s.set, 0, -1, &error), BASIN_UNSUPPORTED);
    world_close(&s);
}
