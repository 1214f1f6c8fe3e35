/* Using graph models through the public API: predictions and scores of graphs of a set. */
#include <math.h>

#include "tasks/graphs/graph_world.h"

enum { GRAPHS = 16 };

static void scene_open(world_scene *s, basin_graphs_target target) {
    basin_graphs_settings values = world_settings();
    values.epochs = 2, values.edge_walks = 2;
    world_train(s, target, GRAPHS, &values);
}

TEST(says_what_it_is) {
    char text[64];
    world_scene s;
    scene_open(&s, BASIN_GRAPHS_CLASSES);
    const basin_settings *settings = basin_graphs_get_info(s.model)->settings;
    assert_string_equal(basin_settings_task(settings), "graphs");
    assert_ok(basin_settings_get(text, sizeof text, settings, "head_dim", &failure));
    assert_string_equal(text, "8");
    assert_int_equal(basin_graphs_get_info(s.model)->columns, 2);
    assert_int_equal(basin_graphs_get_info(s.model)->class_value[1], 1);
    assert_true(basin_graphs_get_info(s.model)->parameters > 1000);
    world_close(&s);
    scene_open(&s, BASIN_GRAPHS_VALUES);
    assert_null(basin_graphs_get_info(s.model)->class_value);
    world_close(&s);
}

/* For all graphs, and for some in any order; probabilities sum to one. */
TEST(predicts_chosen_graphs) {
    static const int64_t some[] = {9, 2, 11};
    for (int target = 0; target < 3; target++) {
        world_scene s;
        scene_open(&s, (basin_graphs_target)target);
        basin_graphs_data all = {.set = &s.set};
        basin_graphs_data data = {.set = &s.set, .graph = some, .graphs = 3};
        int64_t rows = basin_graphs_rows(s.model, &all), few = basin_graphs_rows(s.model, &data);
        int64_t columns = basin_graphs_get_info(s.model)->columns, row = 0;
        assert_int_equal(rows, target == BASIN_GRAPHS_NODE_CLASSES ? s.set.nodes : GRAPHS);
        float *x = calloc((size_t)(rows * columns), sizeof *x);
        float *y = calloc((size_t)(few * columns), sizeof *y);
        int64_t *class_value = calloc((size_t)rows, sizeof *class_value);
        assert_ok(world_predict(x, class_value, s.model, &all, &failure));
        assert_ok(world_predict(y, NULL, s.model, &data, &failure));
        for (int i = 0; i < 3; i++) {
            bool nodes = target == BASIN_GRAPHS_NODE_CLASSES;
            int64_t at = nodes ? s.set.node_start[some[i]] : some[i];
            int64_t count = nodes ? s.set.node_start[some[i] + 1] - at : 1;
            for (int64_t k = 0; k < count * columns; k++, row++)
                assert_true(fabsf(x[at * columns + k] - y[row]) < 1e-4f);
        }
        assert_int_equal(row, few * columns);
        for (int64_t i = 0; i < rows && target != BASIN_GRAPHS_VALUES; i++) {
            assert_true(fabsf(x[2 * i] + x[2 * i + 1] - 1) < 1e-6f);
            assert_int_equal(class_value[i], x[2 * i + 1] > x[2 * i]);
        }
        free(x), free(y), free(class_value);
        world_close(&s);
    }
}

/* One graph at a time, of differing sizes and twice each: a plan that is kept gives the outputs of
 * all graphs together, and the same bits again. */
TEST(predicts_one_by_one) {
    BASIN_AT_EXIT(world_close) world_scene s;
    scene_open(&s, BASIN_GRAPHS_CLASSES);
    basin_graphs_data all = {.set = &s.set};
    float together[GRAPHS][2], alone[2][GRAPHS][2];
    assert_ok(world_predict(together[0], NULL, s.model, &all, &failure));
    for (int64_t i = 0; i < 2 * GRAPHS; i++) {
        int64_t g = i % GRAPHS;
        basin_graphs_data one = {.set = &s.set, .graph = &g, .graphs = 1};
        assert_ok(world_predict(alone[i / GRAPHS][g], NULL, s.model, &one, &failure));
        for (int c = 0; c < 2; c++)
            assert_true(fabsf(alone[i / GRAPHS][g][c] - together[g][c]) < 1e-4f);
    }
    assert_memory_equal(alone[0], alone[1], sizeof alone[0]);
}

/* Predictions need no labels and mind no labels of another kind; scores need the model's. */
TEST(labels_matter_to_scores_alone) {
    BASIN_AT_EXIT(world_close) world_scene s, other;
    basin_graphs_measures measures;
    float output[2 * GRAPHS];
    scene_open(&s, BASIN_GRAPHS_CLASSES);
    scene_open(&other, BASIN_GRAPHS_VALUES);
    basin_graphs_data data = {.set = &other.set};
    assert_ok(world_predict(output, NULL, s.model, &data, &failure));
    assert_failure(world_evaluate(&measures, NULL, s.model, &data, &failure), BASIN_BAD_VALUE,
                   "world has graph values; the model expects graph classes");
}

/* Classes go by their values, not by their numbers; one that the model does not know is left out
 * and counted. Where it knows none, 0 % would look like a score. */
TEST(classes_go_by_value) {
    BASIN_AT_EXIT(world_close) world_scene s;
    basin_graphs_measures before, after;
    scene_open(&s, BASIN_GRAPHS_CLASSES);
    basin_graphs_data data = {.set = &s.set};
    assert_ok(world_evaluate(&before, NULL, s.model, &data, &failure));
    for (int i = 0; i < GRAPHS; i++) s.set.class_of[i]++; /* after the new class */
    s.set.class_of[GRAPHS - 1] = 0;
    s.set.class_value = realloc(s.set.class_value, 3 * sizeof *s.set.class_value);
    for (int c = 0; c < 3; c++) s.set.class_value[c] = c ? c - 1 : -7;
    s.set.classes = 3;
    assert_ok(world_evaluate(&after, NULL, s.model, &data, &failure));
    assert_int_equal(s.set.classes, 3);
    assert_int_equal(after.items, GRAPHS - 1);
    assert_true(before.missing == 0 && after.missing == 1);
    assert_true(fabs(after.accuracy * (GRAPHS - 1) - before.accuracy * GRAPHS) < 101);
    for (int i = 0; i < s.set.classes; i++) s.set.class_value[i] += 100;
    assert_failure(world_evaluate(&after, NULL, s.model, &data, &failure), BASIN_BAD_VALUE,
                   "world: none of the 16 graphs has a class");
}

TEST(counts_labels_it_does_not_know) {
    BASIN_AT_EXIT(world_close) world_scene s;
    int64_t unknown[2], first[] = {0};
    scene_open(&s, BASIN_GRAPHS_CLASSES);
    basin_graphs_data data = {.set = &s.set};
    assert_ok(basin_graphs_unknown_labels(unknown, s.model, &data, &failure));
    assert_true(unknown[0] == 0 && unknown[1] == 0);
    s.set.node_label[0] = 1000, s.set.node_label[s.set.nodes - 1] = -1000;
    assert_ok(basin_graphs_unknown_labels(unknown, s.model, &data, &failure));
    assert_true(unknown[0] == 2 && unknown[1] == 0);
    data.graph = first, data.graphs = 1;
    assert_ok(basin_graphs_unknown_labels(unknown, s.model, &data, &failure));
    assert_true(unknown[0] == 1);
}

TEST(refuses_what_it_cannot_use) {
    static const int64_t wrong[] = {3, GRAPHS};
    BASIN_AT_EXIT(world_close) world_scene s;
    basin_error error;
    float output[2 * GRAPHS];
    scene_open(&s, BASIN_GRAPHS_CLASSES);
    basin_graphs_data data = {.set = &s.set, .graph = wrong, .graphs = 2};
    assert_says(world_predict(output, NULL, s.model, &data, &failure), BASIN_BAD_VALUE,
                "graph[1] is 16; world has 16 graphs");
    data = (basin_graphs_data){0};
    assert_int_equal(world_predict(output, NULL, s.model, &data, &error), BASIN_BAD_VALUE);
    s.set.node_labels = 0;
    data.set = &s.set;
    assert_failure(world_predict(output, NULL, s.model, &data, &failure), BASIN_BAD_VALUE,
                   "0 node labels");
    s.set.node_labels = 1;
}

TEST(refuses_other_settings) {
    basin_settings *settings;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_graphs_train_data data = {.path = "none"};
    basin_training_options training = {0};
    assert_ok(basin_settings_new(&settings, "image", NULL, &failure));
    assert_says(basin_graphs_train(NULL, &outcome, settings, &data, &training, &failure),
                BASIN_BAD_VALUE, "settings of the task image, needs those of graphs");
    basin_settings_free(settings);
}
