/* Files of version 0.1 (tests/files-0.1): its model gives the numbers it gave there, its checkpoint
 * ends as its run did. */
#include <math.h>
#include <stdio.h>

#include "io/folder.h"
#include "task/graphs/graph_world.h"

#define FOLDER BASIN_SOURCE "/tests/files-0.1/"

static void predicts_as_before(void **state) {
    (void)state;
    basin_error error;
    basin_backend *backend;
    basin_graphs_model *model;
    basin_graphset set;
    char line[200];
    must(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &error), &error);
    must(basin_graphs_open(&model, FOLDER "graph.safetensors", backend, &error), &error);
    must(basin_graphset_read(&set, FOLDER "rings", &error), &error);
    basin_graphs_data data = {.size = sizeof data, .set = &set};
    assert_int_equal(basin_graphs_rows(model, &data), 40);
    assert_int_equal(basin_graphs_columns(model), 2);
    float output[40][2];
    int64_t class_value[40];
    must(basin_graphs_predict(output[0], class_value, model, &data, &error), &error);
    FILE *file = fopen(FOLDER "graph.csv", "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    for (int i = 0; i < 40; i++) {
        long long graph, own;
        double p[2];
        assert_int_equal(fscanf(file, "%lld,%lld,%lf,%lf\n", &graph, &own, &p[0], &p[1]), 4);
        assert_true(graph == i && own == class_value[i]);
        for (int c = 0; c < 2; c++) assert_true(fabs(p[c] - (double)output[i][c]) < 1e-5);
    }
    fclose(file);
    basin_graphset_free(&set);
    basin_graphs_close(model);
    basin_backend_close(backend);
}

static void copy_file(const char *to, const char *from) {
    static char data[100000];
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    assert_true(size < sizeof data && !file_put(to, data, size));
}

/* The command is in the README there. */
static void resumes_as_before(void **state) {
    static const char *const given[][2] = {{"dim", "8"},        {"heads", "1"},  {"head_dim", "4"},
                                           {"memories", "8"},   {"blocks", "1"}, {"epochs", "4"},
                                           {"batch", "8"},      {"warmup", "1"}, {"walks", "4"},
                                           {"edge_walks", "2"}, {"hidden", "0"}};
    char output[PATH_TEXT], checkpoint[PATH_TEXT];
    basin_error error;
    basin_settings *settings;
    basin_outcome outcome;
    basin_graphs_data data = {.size = sizeof data, .path = FOLDER "rings", .hold_out = 0.1};
    basin_training training = {.size = sizeof training,
                               .output = folder_path(output, state, "graph.safetensors"),
                               .resume = true};
    copy_file(folder_path(checkpoint, state, "graph.safetensors.checkpoint"),
              FOLDER "graph.checkpoint");
    must(basin_backend_open(&training.backend, &(basin_compute){.threads = 1}, &error), &error);
    must(basin_settings_new(&settings, "graphs", NULL, &error), &error);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        must(basin_settings_set(settings, given[i][0], given[i][1], &error), &error);
    must(basin_graphs_train(NULL, &outcome, settings, &data, &training, &error), &error);
    assert_true(outcome.resumed && outcome.epochs == 4 && outcome.steps == 20);
    world_same_files(output, FOLDER "graph.safetensors", 1e-5);
    assert_true(basin_score_get(&outcome.best, "validation_loss") > 0);
    basin_settings_free(settings);
    basin_backend_close(training.backend);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predicts_as_before),
        cmocka_unit_test_setup_teardown(resumes_as_before, folder_new, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
