/* The graph task when memory is short: a session, a step of training, scores, a model file. */
#include "io/folder.h"
#include "support/alloc_fail.h"
#include "task/graphs/graph_world.h"

typedef struct scene {
    basin_graphset set;
    basin_graphs_settings settings;
    const char *path;
} scene;

static basin_status scenario(void *context) {
    scene *s = context;
    static const int64_t graph[] = {0, 1};
    basin_backend *backend = NULL;
    basin_positions positions = {0};
    basin_graphs_session session = {0}, again = {0};
    basin_graphs_outcome outcome;
    basin_graphs_run run = {.set = &s->set, .positions = &positions, .train = graph, .trains = 2};
    basin_status status = basin_backend_open(&backend, "cpu", 1, NULL);
    if (!status)
        status = basin_graphs_session_positions(&positions, &s->settings, &s->set, NULL, NULL);
    if (!status)
        status = basin_graphs_session_new(&session, &s->settings, &s->set, graph, 2, backend, NULL);
    if (!status) status = basin_graphs_train(&outcome, &session, &run, NULL);
    if (!status) status = basin_graphs_session_write(s->path, &session, NULL);
    if (!status) status = basin_graphs_session_open(&again, s->path, backend, NULL);
    basin_graphs_session_close(&again);
    basin_graphs_session_close(&session);
    basin_positions_free(&positions);
    if (backend) basin_backend_close(backend);
    return status;
}

static void all_of_it(void **state) {
    char path[PATH_TEXT];
    scene s = {.settings = world_settings(), .path = folder_path(path, state, "model.safetensors")};
    world_new(&s.set, BASIN_GRAPHS_CLASSES, 2, 4, NULL);
    s.settings.dim = 4, s.settings.heads = 1, s.settings.head_dim = 2, s.settings.memories = 3;
    s.settings.blocks = 1, s.settings.hidden = 0, s.settings.epochs = 1, s.settings.walks = 2;
    assert_true(alloc_fail_sweep(scenario, &s) > 100);
    basin_graphset_free(&s.set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_of_it, folder_new, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
