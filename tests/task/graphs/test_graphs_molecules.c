/* Models of molecules: members and their spread, the memory of training molecules, several yes or
 * no, files; splits by scaffold. */
#include "io/folder.h"
#include "task/graphs/graph_world.h"

enum { COUNT = 24 };

static void molecules_new(basin_graphset *set, bool several) {
    static char text[COUNT][40];
    const char *smiles[COUNT];
    for (int i = 0; i < COUNT; i++) { /* chains with and without an acid */
        snprintf(text[i], sizeof text[i], "%.*s%s", 1 + i / 2, "CCCCCCCCCCCCCC",
                 i % 2 ? "C(=O)O" : "Cl");
        smiles[i] = text[i];
    }
    basin_molecules spec = {.text = smiles, .count = COUNT};
    assert_ok(basin_graphset_read_molecules(set, &spec, &failure));
    set->classes = 2, set->class_value = calloc(2, sizeof(int64_t)), set->class_value[1] = 1;
    set->class_of = calloc(COUNT, sizeof(int32_t));
    for (int i = 0; i < COUNT; i++) set->class_of[i] = i % 2;
    if (!several) return;
    set->task = BASIN_GRAPHS_VALUES, set->targets = 2, set->binary = true;
    set->target = calloc(2 * COUNT, sizeof(float));
    for (int i = 0; i < 2 * COUNT; i++)
        set->target[i] = i % 5 == 0 ? NAN : i % 2 ? (float)(i > COUNT) : (float)(i / 2 % 2);
}

static void learns(void **state, bool several) {
    char path[PATH_TEXT];
    basin_graphset set;
    basin_backend *backend;
    basin_graphs_model *model, *again;
    basin_outcome outcome;
    basin_graphs_settings values = world_settings();
    float first[2 * COUNT], second[2 * COUNT], spread[2 * COUNT], nearest[COUNT];
    basin_graphs_measures m;
    values.members = 3, values.epochs = 2;
    basin_settings settings = {.kind = &basin_graphs_task, .values = &values};
    molecules_new(&set, several);
    folder_path(path, state, "m.safetensors");
    assert_ok(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &failure));
    basin_graphs_data data = {.set = &set, .hold_out = 0.25};
    basin_training training = {.backend = backend, .output = path};
    assert_ok(basin_graphs_train(&model, &outcome, &settings, &data, &training, &failure));
    assert_int_equal(basin_graphs_about(model).members, 3);
    assert_true(basin_graphs_about(model).binary == several);
    data.spread = spread, data.nearest = nearest;
    assert_ok(basin_graphs_predict(first, NULL, model, &data, &failure));
    assert_ok(basin_graphs_open(&again, path, backend, &failure));
    assert_ok(basin_graphs_predict(second, NULL, again, &data, &failure));
    assert_memory_equal(first, second, sizeof first);
    double apart = 0;
    for (int i = 0; i < 2 * COUNT; i++) {
        apart += (double)spread[i];
        assert_true(first[i] > 0 && first[i] < 1 && nearest[i / 2] == 1);
    }
    assert_true(apart > 0);
    assert_ok(basin_graphs_score(&m, NULL, model, &data, &failure));
    assert_true(m.auroc > 0.8 && m.auprc > 0.7 && m.merit == 100 * m.auroc);
    set.binary = false; /* the model says what its values are */
    assert_ok(basin_graphs_score(&m, NULL, model, &data, &failure));
    assert_true(m.auroc > 0.8);
    if (several) set.target[1] = 2;
    if (several)
        assert_failure(basin_graphs_score(&m, NULL, model, &data, &failure), BASIN_BAD_VALUE,
                       "has the value 2; the model answers 0 or 1");
    basin_graphs_close(model);
    basin_graphs_close(again);
    basin_backend_close(backend);
    basin_graphset_free(&set);
}

TEST_WITH(classes, folder_new, folder_remove) { learns(state, false); }
TEST_WITH(several_yes_or_no, folder_new, folder_remove) { learns(state, true); }

/* The largest groups train; no group is in two parts. */
TEST(groups) {
    static const int64_t group[] = {7, 7, 7, 7, 7, 7, 3, 3, 1, 2};
    basin_folds f;
    assert_ok(basin_folds_group(&f, group, 10, 1, 0, 0, &failure));
    assert_int_equal(f.fold->count[0], 8);
    assert_int_equal(f.fold->item[1][0], 9);
    assert_int_equal(f.fold->item[2][0], 8);
    basin_folds_free(&f);
    assert_ok(basin_folds_group(&f, NULL, 10, 1, 0, 0, &failure));
    assert_int_equal(f.fold->item[2][0], 9);
    basin_folds_free(&f);
    assert_ok(basin_folds_group(&f, group, 10, 2, 0.25, 1, &failure));
    assert_int_equal(f.fold[0].count[2], 6);
    assert_int_equal(f.fold[1].count[2], 4);
    assert_int_equal(f.fold[0].count[0] + f.fold[0].count[1], 4);
    basin_folds_free(&f);
    assert_failure(basin_folds_group(&f, group, 6, 2, 0, 0, &failure), BASIN_BAD_VALUE,
                   "too few groups");
}
