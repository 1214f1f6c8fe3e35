/* Switches of the graph task: the CLS node's pair with itself, reconstruction of all features of an
 * edge, noise in evaluation; and what files that do not know them mean. */
#include <math.h>

#include "base/pairs.h"
#include "support/folder.h"
#include "tasks/graphs/graph_world.h"

enum { GRAPHS = 12 };

static void scene_open(world_scene *s, basin_graphs_settings values) {
    values.epochs = 2;
    world_train(s, BASIN_GRAPHS_CLASSES, GRAPHS, &values);
}

/* Pairs of a token with itself in a batch of all graphs. */
static int64_t selves(world_scene *s, int64_t *pairs) {
    basin_graphset_batch batch = {0};
    basin_positions none = {0};
    int64_t *all = basin_graphs_range(0, GRAPHS), found = 0;
    assert_ok(basin_graphset_batch_fill(&batch, &s->set, &s->model->encoding, &none, all, GRAPHS,
                                        false, 0, 0, &failure));
    for (int64_t q = 0; q < batch.pairs.queries; q++)
        for (int64_t i = batch.pairs.row[q]; i < batch.pairs.row[q + 1]; i++)
            found += batch.pairs.key[i] == q;
    *pairs = batch.pairs.pairs;
    basin_graphset_batch_free(&batch);
    free(all);
    return found;
}

TEST(the_cls_may_see_itself) {
    basin_graphs_settings settings = world_settings();
    settings.edge_walks = 0;
    BASIN_AT_EXIT(world_close) world_scene with, without;
    int64_t pairs[2];
    scene_open(&with, settings);
    settings.cls_self = false;
    scene_open(&without, settings);
    assert_int_equal(selves(&with, &pairs[0]), GRAPHS);
    assert_int_equal(selves(&without, &pairs[1]), 0);
    assert_int_equal(pairs[0] - pairs[1], GRAPHS);
}

/* The switch goes with the file, and moves probabilities. */
TEST_WITH(files_keep_the_switch, folder_new, folder_remove) {
    const char *folder = *state;
    basin_graphs_settings settings = world_settings();
    settings.cls_self = false;
    settings.norm = "graph";
    BASIN_AT_EXIT(world_close) world_scene s;
    basin_graphs_model *again;
    char path[300];
    float first[2 * GRAPHS], second[2 * GRAPHS];
    double moved = 0;
    basin_graphs_data data = {.set = &s.set};
    scene_open(&s, settings);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_ok(basin_graphs_write(path, s.model, &failure));
    assert_ok(basin_graphs_open(&again, path, s.backend, &failure));
    assert_ok(world_predict(first, NULL, s.model, &data, &failure));
    assert_ok(world_predict(second, NULL, again, &data, &failure));
    assert_memory_equal(first, second, sizeof first);
    again->encoding.no_cls_self = false;
    assert_ok(world_predict(second, NULL, again, &data, &failure));
    for (int i = 0; i < 2 * GRAPHS; i++) moved = fmax(moved, fabs((double)(first[i] - second[i])));
    assert_true(moved > 1e-6);
    basin_graphs_close(again);
}

/* Takes the text of a name and its value out of a JSON object. */
static void forget(char *json, const char *name) {
    char *at = strstr(json, name), *end = strchr(at, ',');
    memmove(at - 1, end + 1, strlen(end));
}

TEST(older_files) {
    basin_graphs_settings settings = world_settings(), read;
    BASIN_FREE_AT_EXIT char *json = basin_settings_print(&settings, basin_graphs_task.table, false);
    BASIN_FREE_AT_EXIT char *with = malloc(strlen(json) + 200);
    static const char gone[] =
        "{\"sinks\":0,\"step_dropout\":0,\"residual\":\"block\",\"best_of\":1,"
        "\"degree_scalers\":false,\"reconstruct_all\":true,\"random_pairs\":0,\"random_draws\":0,";
    forget(json, "cls_self\"");
    forget(json, "norm\"");
    sprintf(with, "%s%s", gone, json + 1);
    assert_ok(basin_settings_parse(&read, basin_graphs_task.table, with, true, "a", &failure));
    assert_true(read.cls_self);
    assert_string_equal(read.norm, "layer");
    memcpy(strstr(with, "block\""), "other", 5);
    assert_failure(basin_settings_parse(&read, basin_graphs_task.table, with, true, "a", &failure),
                   BASIN_UNSUPPORTED, "residual \"other\" is no longer supported");
    assert_failure(basin_settings_parse(&read, basin_graphs_task.table, "{\"random_pairs\":2}",
                                        false, "a", &failure),
                   BASIN_UNSUPPORTED, "random_pairs 2 is no longer supported");
}

TEST(reconstructs_all_features) {
    basin_graphs_settings settings = world_settings();
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor head = {0};
    BASIN_AT_EXIT(world_close) world_scene s;
    settings.reconstruct = true;
    settings.edge_walks = 3;
    scene_open(&s, settings);
    assert_ok(basin_store_get(&head, s.model->store, "edge_w", &failure));
    assert_int_equal(head.shape.dim[1], s.model->encoding.edge_features);
    assert_true(s.model->encoding.edge_features >= 3);
}

/* On part of the training graphs, drawn by the seed. */
TEST(trains_on_some) {
    BASIN_AT_EXIT(world_close) world_scene s;
    scene_open(&s, world_settings());
    basin_graphs_model *model;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_training_options training = {.backend = s.backend};
    const basin_settings *settings = basin_graphs_get_info(s.model)->settings;
    basin_graphs_train_data given = {.set = &s.set, .limit = 5};
    assert_ok(basin_graphs_train(&model, &outcome, settings, &given, &training, &failure));
    assert_int_equal(outcome.items, 5);
    basin_graphs_close(model);
    given.limit = GRAPHS + 1;
    assert_ok(basin_graphs_train(&model, &outcome, settings, &given, &training, &failure));
    assert_int_equal(outcome.items, GRAPHS);
    basin_graphs_close(model);
    given.limit = -1;
    assert_int_equal(basin_graphs_train(&model, &outcome, settings, &given, &training, &failure),
                     BASIN_BAD_VALUE);
}

/* Pairs are left out both ways, of a graph the same in any batch, others in another epoch, and none
 * in use. */
TEST(edges_dropped) {
    basin_graphs_settings settings = world_settings();
    BASIN_AT_EXIT(world_close) world_scene s;
    basin_graphset_batch batch = {0}, own = {0};
    basin_positions none = {0};
    settings.edge_dropout = 0.3;
    settings.edge_walks = 0;
    scene_open(&s, settings);
    basin_graphset seen = s.set;
    seen.edge_dropout = 0.3;
    BASIN_FREE_AT_EXIT int64_t *all = basin_graphs_range(0, GRAPHS);
    int64_t pairs = 0, edges = 0, kept[3];
    for (int64_t g = 0; g < GRAPHS; g++) pairs += basin_graphset_pairs(&seen, g);
    edges = seen.edge_start[GRAPHS];
    for (int epoch = 0; epoch < 3; epoch++) {
        assert_ok(basin_graphset_batch_fill(&batch, &seen, &s.model->encoding, &none, all, GRAPHS,
                                            epoch < 2, 5, (uint64_t)epoch, &failure));
        kept[epoch] = batch.pairs.pairs - (pairs - edges);
        int64_t last = GRAPHS - 1, first = batch.first[last];
        for (int64_t q = 0; q < batch.tokens; q++)
            for (int64_t i = batch.pairs.row[q]; i < batch.pairs.row[q + 1]; i++)
                assert_true(basin_pairs_find(&batch.pairs, batch.pairs.key[i], q) >= 0);
        assert_ok(basin_graphset_batch_fill(&own, &seen, &s.model->encoding, &none, &last, 1,
                                            epoch < 2, 5, (uint64_t)epoch, &failure));
        int64_t from = batch.pairs.row[first];
        assert_int_equal(own.pairs.pairs, batch.pairs.pairs - from);
        for (int64_t i = 0; i < own.pairs.pairs; i++)
            assert_int_equal(own.pairs.key[i], batch.pairs.key[from + i] - first);
    }
    assert_true(kept[0] < edges && kept[0] > edges / 3 && kept[2] == edges);
    basin_graphset_batch_free(&batch);
    basin_graphset_batch_free(&own);
}

/* Only the first nodes: tokens and pairs of each graph, what the CLS and nodes see. */
TEST(cut) {
    basin_graphs_settings settings = world_settings();
    BASIN_AT_EXIT(world_close) world_scene s;
    basin_graphset_batch batch = {0}, all = {0};
    settings.edge_walks = 0;
    settings.max_nodes = 5;
    settings.reconstruct = settings.all_pairs = true;
    scene_open(&s, settings);
    basin_positions none = {0};
    basin_graphset seen = s.set;
    seen.max_nodes = 5;
    for (int64_t g = 0; g < GRAPHS; g++) {
        int64_t nodes = basin_graphset_nodes(&seen, g), edges = 0, kept = 0, size = nodes + 1;
        assert_true(nodes <= 5 && basin_graphset_tokens(&seen, g) == size);
        for (int64_t e = seen.edge_start[g]; e < seen.edge_start[g + 1]; e++)
            edges += basin_graphset_inside(&seen, e, nodes);
        assert_ok(basin_graphset_batch_fill(&batch, &seen, &s.model->encoding, &none, &g, 1, false,
                                            0, 0, &failure));
        assert_int_equal(batch.pairs.pairs, 2 * nodes + 1 + edges);
        assert_int_equal(batch.pairs.pairs, basin_graphset_pairs(&seen, g));
        for (int64_t t = 0; t < size; t++) {
            assert_int_equal(batch.owner[t], t ? 0 : -1);
            for (int64_t p = batch.pairs.row[t]; t && p < batch.pairs.row[t + 1]; p++)
                assert_true(batch.pairs.key[p] <= nodes);
        }
        assert_ok(basin_graphset_batch_all(&all, &batch, &failure));
        assert_int_equal(all.pairs.pairs, size * size);
        for (int64_t p = 0; p < size * size; p++)
            for (int64_t e = batch.pairs.row[p / size]; e < batch.pairs.row[p / size + 1]; e++)
                if (batch.pairs.key[e] == p % size) {
                    kept++;
                    assert_memory_equal(all.edge_feature + p * all.edge_features,
                                        batch.edge_feature + e * all.edge_features,
                                        4 * (size_t)all.edge_features);
                }
        assert_int_equal(kept, batch.pairs.pairs);
    }
    basin_graphset_batch_free(&batch);
    basin_graphset_batch_free(&all);
}
