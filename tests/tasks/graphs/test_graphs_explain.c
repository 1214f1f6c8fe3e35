/* Explanations of graphs: what nodes and edges add makes up the output, for every target; attention
 * and energies are the model's. */
#include "tasks/graphs/graph_world.h"

enum { GRAPHS = 24 };

static void scene_open(world_scene *s, basin_graphs_target target, int64_t reach) {
    basin_graphs_settings values = world_settings();
    values.epochs = 5;
    if (reach > 1) values.reach = reach, values.edge_walks = 3, values.pair_hidden = 4;
    if (reach > 1) values.average = 0.9, values.adjacency = "bias";
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

static void one_graph(world_scene *s, int64_t graph) {
    float output[2];
    basin_graphs_data data = {.set = &s->set, .graph = &graph, .graphs = 1};
    assert_ok(world_predict(output, NULL, s->model, &data, &failure));
    basin_graphs_explanation e = explained(s, graph, -1);
    if (s->set.task == BASIN_GRAPHS_VALUES)
        assert_true(fabs(e.output - (double)output[0]) < 1e-3);
    else {
        assert_int_equal(e.column, output[1] > output[0]);
        double odds = (double)output[e.column] / (double)output[!e.column];
        assert_true(fabs(e.output - log(odds)) < 1e-3);
        basin_graphs_explanation other = explained(s, graph, !e.column);
        assert_true(fabs(e.output + other.output) < 1e-3 && fabs(e.blank + other.blank) < 1e-3);
        basin_graphs_explanation_free(&other);
    }
    double added = sum_of(e.node, e.nodes) + sum_of(e.edge, e.edges), all = e.output - e.blank;
    assert_true(fabs(all - added - e.missed) < 1e-6 + 1e-6 * fabs(all));
    assert_true(fabs(e.missed) < 1e-2 * fabs(all) + 1e-3);
    assert_true(e.has_energy);
    double attention = sum_of(e.attention, e.nodes);
    assert_true(attention > 0.1 && attention < 1);
    for (int64_t i = 0; i < e.nodes; i++) assert_true(e.energy[i] < 0);
    basin_graphs_explanation_free(&e);
}

TEST(parts_make_up_the_output) {
    for (int i = 0; i < 4; i++) { /* with only edges, and with pairs further apart */
        world_scene s;
        scene_open(&s, i % 2 ? BASIN_GRAPHS_VALUES : BASIN_GRAPHS_CLASSES, 1 + i / 2 * 2);
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
    assert_int_equal(basin_graphs_explain(&e, s.model, &s.set, GRAPHS, -1, &error),
                     BASIN_BAD_VALUE);
    assert_string_equal(error.text, "graph 24; expected 0 to 23");
    assert_int_equal(basin_graphs_explain(&e, s.model, &s.set, 0, 2, &error), BASIN_BAD_VALUE);
    world_close(&s);
    scene_open(&s, BASIN_GRAPHS_NODE_CLASSES, 1);
    assert_int_equal(basin_graphs_explain(&e, s.model, &s.set, 0, -1, &error), BASIN_UNSUPPORTED);
    world_close(&s);
}
