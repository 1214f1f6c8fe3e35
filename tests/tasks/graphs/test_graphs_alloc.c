/* The graph task when memory is short: training, a model file, predictions and scores of it. */
#include "support/alloc_fail.h"
#include "support/folder.h"
#include "tasks/graphs/graph_world.h"

typedef struct scene {
    basin_graphset set;
    basin_graphs_settings settings;
    const char *path;
} scene;

static basin_status scenario(void *context) {
    scene *s = context;
    static const int64_t graph[] = {0, 1};
    float output[4];
    basin_settings settings = {.kind = &basin_graphs_task, .values = &s->settings};
    basin_backend *backend = NULL;
    basin_graphs_model *model = NULL, *again = NULL;
    basin_graphs_measures measures;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_graphs_data data = {.set = &s->set, .graph = graph, .graphs = 2};
    basin_graphs_train_data given = {
        .set = &s->set, .graph = graph, .graphs = 2, .validation = graph, .validations = 1};
    basin_status status = basin_backend_open(&backend, &(basin_compute){.threads = 1}, NULL);
    basin_training_options training = {.backend = backend};
    if (!status) status = basin_graphs_train(&model, &outcome, &settings, &given, &training, NULL);
    if (!status) status = basin_graphs_write(s->path, model, NULL);
    if (!status) status = basin_graphs_open(&again, s->path, backend, NULL);
    if (!status) status = world_predict(output, NULL, again, &data, NULL);
    if (!status) status = world_evaluate(&measures, NULL, again, &data, NULL);
    basin_graphs_close(again);
    basin_graphs_close(model);
    if (backend) basin_backend_close(backend);
    return status;
}

TEST_WITH(all_of_it, folder_new, folder_remove) {
    scene s = {.settings = world_settings(), .path = folder_path(state, "model.safetensors")};
    world_new(&s.set, BASIN_GRAPHS_CLASSES, 6, 4, NULL);
    s.settings.dim = 4, s.settings.heads = 1, s.settings.head_dim = 2, s.settings.memories = 3;
    s.settings.blocks = 1, s.settings.hidden = 0, s.settings.epochs = 1, s.settings.walks = 2;
    assert_true(alloc_fail_sample(scenario, &s, 300) > 100);
    basin_graphset_free(&s.set);
}
