/* Several values per graph, in units far apart and partly missing; and which graphs a model has
 * seen. */
#include <stdio.h>

#include "support/folder.h"
#include "tasks/graphs/graph_world.h"

enum { GRAPHS = 40, TRAINS = 25, VALIDATIONS = 5 };

typedef struct scene {
    basin_graphset set;
    basin_backend *backend;
    basin_graphs_settings values;
    int64_t *all;
    char *output;
} scene;

/* Values: the size of a graph, the same in thousandths, and a constant; `gaps`: every third of the
 * second is missing. */
static void scene_open(scene *s, void **state, bool gaps) {
    *s = (scene){.values = world_settings(), .all = basin_graphs_range(0, GRAPHS)};
    s->values.epochs = 30;
    world_new(&s->set, BASIN_GRAPHS_VALUES, GRAPHS, 4, NULL);
    float *target = malloc(3 * GRAPHS * sizeof *target);
    for (int g = 0; g < GRAPHS; g++) {
        target[3 * g] = s->set.target[g];
        target[3 * g + 1] = gaps && g % 3 == 0 ? NAN : s->set.target[g] * 1e-3f;
        target[3 * g + 2] = 4;
    }
    free(s->set.target);
    s->set.target = target, s->set.targets = 3;
    assert_ok(basin_backend_open(&s->backend, &(basin_compute){.threads = 1}, &failure));
    s->output = folder_path(state, "model.safetensors");
}

static void scene_close(scene *s) {
    free(s->all);
    basin_backend_close(s->backend);
    basin_graphset_free(&s->set);
}

static basin_status train(basin_graphs_model **model, scene *s, const char *from, int64_t first,
                          basin_error *error) {
    basin_training_result outcome = {.size = sizeof outcome};
    basin_settings settings = {.kind = &basin_graphs_task, .values = &s->values};
    basin_training_options training = {.backend = s->backend, .output = s->output, .from = from};
    basin_graphs_train_data data = {.set = &s->set,
                                    .graph = s->all + first,
                                    .graphs = TRAINS - first,
                                    .validation = s->all + TRAINS,
                                    .validations = VALIDATIONS};
    return basin_graphs_train(model, &outcome, &settings, &data, &training, error);
}

TEST_WITH(values_in_their_own_units, folder_new, folder_remove) {
    BASIN_AT_EXIT(scene_close) scene s;
    basin_graphs_model *model;
    basin_graphs_measures pooled;
    basin_graphs_value value[3];
    scene_open(&s, state, true);
    assert_ok(train(&model, &s, NULL, 0, &failure));
    basin_graphs_data data = {.set = &s.set};
    assert_ok(world_evaluate(&pooled, NULL, model, &data, &failure));
    assert_ok(world_evaluate(NULL, value, model, &data, &failure));
    assert_int_equal(pooled.missing, 14);
    assert_true(value[0].known == GRAPHS && value[1].known == GRAPHS - 14);
    for (int c = 0; c < 2; c++) {
        assert_true(value[c].r_squared > 0.5); /* it was learnt, small units or not */
        assert_true(value[c].error < value[c].spread);
        assert_true(value[c].error <= value[c].deviation);
    }
    assert_true(isnan(value[2].r_squared) && value[2].mean == 4 && value[2].spread < 1e-3);
    double sum = value[0].error / model->target_scale[0] * GRAPHS +
                 value[1].error / model->target_scale[1] * (GRAPHS - 14) + value[2].error * GRAPHS;
    assert_true(fabs(pooled.loss - sum / (3 * GRAPHS - 14)) < 1e-6);
    basin_graphs_close(model);
}

/* What stands where a value is missing is not looked at, and no step is taken towards it. */
TEST_WITH(missing_values_teach_nothing, folder_new, folder_remove) {
    BASIN_AT_EXIT(scene_close) scene s;
    basin_graphs_model *model;
    basin_graphs_value value[3];
    scene_open(&s, state, false);
    for (int g = 0; g < GRAPHS; g++) s.set.target[3 * g + 2] = g == 3 ? 9 : NAN;
    assert_ok(train(&model, &s, NULL, 0, &failure));
    basin_graphs_data data = {.set = &s.set};
    assert_ok(world_evaluate(NULL, value, model, &data, &failure));
    assert_true(value[2].known == 1 && value[2].error < 1);
    assert_true(value[0].r_squared > 0.5);
    basin_graphs_close(model);
    s.set.target[3 * 3 + 2] = NAN;
    assert_says(train(&model, &s, NULL, 0, &failure), BASIN_BAD_VALUE,
                "world: value 3 is known of none of the 25 graphs to train on; "
                "needs one at least");
}

/* An error of 0 would be the best of all epochs. */
TEST_WITH(nothing_known_is_no_score, folder_new, folder_remove) {
    BASIN_AT_EXIT(scene_close) scene s;
    basin_graphs_model *model;
    basin_graphs_measures measures;
    scene_open(&s, state, false);
    s.values.epochs = 1;
    assert_ok(train(&model, &s, NULL, 0, &failure));
    for (int i = 3 * TRAINS; i < 3 * GRAPHS; i++) s.set.target[i] = NAN;
    basin_graphs_data data = {.set = &s.set, .graph = s.all + TRAINS, .graphs = 2};
    assert_failure(world_evaluate(&measures, NULL, model, &data, &failure), BASIN_BAD_VALUE,
                   "world: none of the 2 graphs has a value");
    basin_graphs_close(model);
    assert_failure(train(&model, &s, NULL, 0, &failure), BASIN_BAD_VALUE,
                   "none of the 5 graphs for validation has a value");
}

/* ---- graphs that were seen ---- */

static void expect_seen(const scene *s, const basin_graphs_model *model, int64_t trained,
                        int64_t validated) {
    basin_graphs_memory memory[GRAPHS];
    int64_t count[3] = {0};
    assert_ok(basin_graphs_seen(memory, model, &s->set, s->all, GRAPHS, &failure));
    for (int g = 0; g < GRAPHS; g++) count[memory[g]]++;
    assert_int_equal(count[BASIN_GRAPHS_TRAINED_ON], trained);
    assert_int_equal(count[BASIN_GRAPHS_VALIDATED_ON], validated);
}

TEST_WITH(knows_what_it_has_seen, folder_new, folder_remove) {
    BASIN_AT_EXIT(scene_close) scene s;
    basin_graphs_model *model;
    scene_open(&s, state, false);
    s.values.epochs = 1;
    assert_ok(train(&model, &s, NULL, 10, &failure));
    expect_seen(&s, model, TRAINS - 10, VALIDATIONS);
    basin_graphs_close(model);
    char *first = s.output;
    s.output = folder_path(state, "second.safetensors");
    assert_ok(train(&model, &s, first, 0, &failure)); /* of the first 10, and what was before */
    basin_graphs_close(model);
    assert_ok(basin_graphs_open(&model, s.output, s.backend, &failure));
    expect_seen(&s, model, TRAINS, VALIDATIONS);
    s.set.node_label[s.set.node_start[0]] ^= 1; /* another graph */
    s.set.target[3] = 7;                        /* the same, with another value */
    expect_seen(&s, model, TRAINS - 1, VALIDATIONS);
    free(model->seen[0].print), free(model->seen[1].print);
    model->seen[0] = model->seen[1] = (basin_graphs_seen_list){0};
    assert_ok(basin_graphs_write(first, model, &failure)); /* without them */
    basin_graphs_close(model);
    assert_ok(basin_graphs_open(&model, first, s.backend, &failure));
    basin_graphs_memory memory[GRAPHS];
    assert_int_equal(basin_graphs_seen(memory, model, &s.set, s.all, 1, &failure),
                     BASIN_UNSUPPORTED);
    basin_graphs_close(model);
    s.output = folder_path(state, "third.safetensors");
    assert_ok(train(&model, &s, first, 0, &failure));
    assert_int_equal(basin_graphs_seen(memory, model, &s.set, s.all, 1, &failure),
                     BASIN_UNSUPPORTED);
    basin_graphs_close(model);
}
