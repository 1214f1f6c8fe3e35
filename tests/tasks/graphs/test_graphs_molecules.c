/* Models of molecules: members and their spread, the memory of training molecules, several yes or
 * no, files; splits by scaffold. */
#include "support/folder.h"
#include "tasks/graphs/graph_world.h"

enum { COUNT = 24 };

static void molecules_new(basin_graphset *set, bool several) {
    static char text[COUNT][40];
    const char *smiles[COUNT];
    for (int i = 0; i < COUNT; i++) { /* chains with and without an acid */
        snprintf(text[i], sizeof text[i], "%.*s%s", 1 + i / 2, "CCCCCCCCCCCCCC",
                 i % 2 ? "C(=O)O" : "Cl");
        smiles[i] = text[i];
    }
    basin_graphset_options options = {.text = smiles, .count = COUNT};
    assert_ok(basin_graphset_read(set, NULL, &options, &failure));
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
    basin_graphset set;
    basin_backend *backend;
    basin_graphs_model *model, *again;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_graphs_settings values = world_settings();
    float first[2 * COUNT], second[2 * COUNT], spread[2 * COUNT], nearest[COUNT];
    basin_graphs_measures m;
    values.members = 3, values.epochs = 2;
    basin_settings settings = {.kind = &basin_graphs_task, .values = &values};
    molecules_new(&set, several);
    char *path = folder_path(state, "m.safetensors");
    assert_ok(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &failure));
    basin_graphs_data data = {.set = &set};
    basin_graphs_train_data given = {.set = &set, .hold_out = 0.25};
    basin_training_options training = {.backend = backend, .output = path};
    assert_ok(basin_graphs_train(&model, &outcome, &settings, &given, &training, &failure));
    assert_int_equal(basin_graphs_get_info(model)->members, 3);
    assert_true(basin_graphs_get_info(model)->binary == several);
    assert_string_equal(model->settings.adjacency, "bias"); /* what molecules have by default */
    assert_int_equal(model->settings.pair_hidden, 16);
    basin_graphs_predict_result result = {.output = first, .spread = spread, .nearest = nearest};
    assert_ok(basin_graphs_predict(&result, model, &data, NULL, &failure));
    assert_ok(basin_graphs_open(&again, path, backend, &failure));
    assert_ok(world_predict(second, NULL, again, &data, &failure));
    assert_memory_equal(first, second, sizeof first);
    double apart = 0;
    for (int i = 0; i < 2 * COUNT; i++) {
        apart += (double)spread[i];
        assert_true(first[i] > 0 && first[i] < 1 && nearest[i / 2] == 1);
    }
    assert_true(apart > 0);
    assert_ok(world_evaluate(&m, NULL, model, &data, &failure));
    assert_true(m.auroc > 0.8 && m.auprc > 0.7 && m.merit == 100 * m.auroc);
    assert_true(basin_graphs_get_info(again)->calibrated > 0 && m.coverage > 0.8 && m.width > 0);
    set.binary = false; /* the model says what its values are */
    assert_ok(world_evaluate(&m, NULL, model, &data, &failure));
    assert_true(m.auroc > 0.8);
    if (several) set.target[1] = 2;
    if (several)
        assert_failure(world_evaluate(&m, NULL, model, &data, &failure), BASIN_BAD_VALUE,
                       "has the value 2; the model answers 0 or 1");
    basin_graphs_close(model);
    basin_graphs_close(again);
    basin_backend_close(backend);
    basin_graphset_free(&set);
}

TEST_WITH(classes, folder_new, folder_remove) { learns(state, false); }
TEST_WITH(several_yes_or_no, folder_new, folder_remove) { learns(state, true); }

/* 80 molecules in three copies, each with a label by chance: what remembers training molecules is
 * right about all copies of them, and about nothing else. */
TEST(copies_do_not_make_scores) {
    enum { DIFFERENT = 80, COPIES = 240, FOLDS = 5 };
    static char text[DIFFERENT][12];
    const char *smiles[COPIES];
    int64_t copy[COPIES];
    int32_t class_of[COPIES];
    basin_random random = basin_random_start(3, 1, 0);
    for (int i = 0; i < COPIES; i++) {
        char *to = text[i % DIFFERENT];
        for (int k = 0; i < DIFFERENT && k < 11; k++)
            to[k] = k < 10 ? "CNOS"[basin_random_below(&random, 4)] : 0;
        smiles[i] = to;
        class_of[i] =
            i < DIFFERENT ? (int32_t)basin_random_below(&random, 2) : class_of[i % DIFFERENT];
    }
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set = {0};
    basin_graphset_options options = {.text = smiles, .count = COPIES};
    assert_ok(basin_graphset_read(&set, NULL, &options, &failure));
    set.classes = 2, set.class_value = calloc(2, sizeof(int64_t)), set.class_value[1] = 1;
    set.class_of = malloc(sizeof class_of);
    memcpy(set.class_of, class_of, sizeof class_of);
    assert_ok(basin_graphset_copies(copy, &set, &failure));
    basin_graphs_settings values = world_settings();
    values.near = true, values.epochs = 1;
    basin_settings settings = {.kind = &basin_graphs_task, .values = &values};
    basin_graphs_cv_options spec = {.jobs = 1, .threads = 1};
    for (int together = 0; together < 2; together++) {
        basin_folds folds;
        basin_folds_options split = {.count = COPIES, .folds = FOLDS, .inner = 0.1};
        double auroc = 0;
        split.class_of = class_of, split.copy = together ? copy : NULL;
        assert_ok(basin_folds_new(&folds, &split, &failure));
        basin_graphs_cv_result result[FOLDS] = {{0}};
        assert_ok(basin_graphs_cross_validate(result, &settings, &set, &folds, &spec, &failure));
        for (int f = 0; f < FOLDS; f++) auroc += result[f].memory_only.auroc / FOLDS;
        assert_true(together ? fabs(auroc - 0.5) < 0.15 : auroc > 0.95);
        basin_folds_free(&folds);
    }
}

/* Where a class is a group, each member is scored on the class that it has not seen. */
TEST(members_set_whole_groups_aside) {
    enum { GRAPHS = 60, EACH = 20 };
    world_scene s = {0};
    int64_t graph[2 * EACH], group[GRAPHS], count[2] = {0}, n = 0;
    basin_graphs_settings values = world_settings();
    values.members = 2, values.epochs = 6;
    basin_settings settings = {.kind = &basin_graphs_task, .values = &values};
    world_new(&s.set, BASIN_GRAPHS_CLASSES, GRAPHS, 4, NULL);
    for (int64_t g = 0; g < GRAPHS; g++) {
        group[g] = s.set.class_of[g];
        if (count[group[g]]++ < EACH) graph[n++] = g;
    }
    assert_int_equal(n, 2 * EACH);
    assert_ok(basin_backend_open(&s.backend, &(basin_compute){.threads = 1}, &failure));
    for (int whole = 0; whole < 2; whole++) {
        basin_training_result outcome = {.size = sizeof outcome};
        basin_graphs_train_data data = {
            .set = &s.set, .graph = graph, .graphs = n, .hold_out = 0.5};
        basin_training_options training = {.backend = s.backend};
        data.group = whole ? group : NULL;
        assert_ok(basin_graphs_train(NULL, &outcome, &settings, &data, &training, &failure));
        double accuracy = basin_score_get(&outcome.best, "validation_accuracy");
        assert_true(whole ? accuracy < 5 : accuracy > 40);
    }
    world_close(&s);
}

static basin_status groups(basin_folds *folds, const int64_t *group, int64_t count, int64_t number,
                           double inner, uint64_t seed) {
    basin_folds_options options = {.kind = group ? BASIN_FOLDS_GROUPED : BASIN_FOLDS_ORDERED,
                                   .count = count,
                                   .folds = number,
                                   .group = group,
                                   .inner = inner,
                                   .seed = seed};
    return basin_folds_new(folds, &options, &failure);
}

/* The largest groups train; no group is in two parts. */
TEST(divides_by_groups) {
    static const int64_t group[] = {7, 7, 7, 7, 7, 7, 3, 3, 1, 2};
    basin_folds f;
    assert_ok(groups(&f, group, 10, 1, 0, 0));
    assert_int_equal(f.fold->count[0], 8);
    assert_int_equal(f.fold->item[1][0], 9);
    assert_int_equal(f.fold->item[2][0], 8);
    basin_folds_free(&f);
    assert_ok(groups(&f, NULL, 10, 1, 0, 0));
    assert_int_equal(f.fold->item[2][0], 9);
    basin_folds_free(&f);
    assert_ok(groups(&f, group, 10, 2, 0.25, 1));
    assert_int_equal(f.fold[0].count[2], 6);
    assert_int_equal(f.fold[1].count[2], 4);
    assert_int_equal(f.fold[0].count[0] + f.fold[0].count[1], 4);
    basin_folds_free(&f);
    assert_failure(groups(&f, group, 6, 2, 0, 0), BASIN_BAD_VALUE, "6 graphs in 2 folds");
}

/* Two large groups hold most: the others make one part of a tenth, not ten of a fiftieth. */
TEST(parts_by_groups_have_their_size) {
    enum { ITEMS = 100, SMALL = 12 };
    int64_t group[ITEMS];
    for (int64_t i = 0; i < ITEMS; i++) group[i] = i < SMALL ? i : SMALL + i % 2;
    for (int grouped = 0; grouped < 2; grouped++) {
        basin_fold f = {{basin_graphs_range(0, ITEMS)}, {ITEMS}};
        assert_ok(basin_fold_part(&f, NULL, grouped ? group : NULL, 0.1, 1, 0, 3, &failure));
        assert_int_equal(f.count[1], grouped ? SMALL : ITEMS / 10);
        assert_int_equal(f.count[0], ITEMS - f.count[1]);
        for (int i = 0; i < 2; i++) free(f.item[i]);
    }
}

/* Atoms of one kind or another decide a chain's class, which the memory knows without mistake: the
 * default trains two members of five, a number that was given stays. */
TEST(members_end_where_the_memory_is_best) {
    enum { GRAPHS = 120 };
    char text[GRAPHS][12];
    const char *smiles[GRAPHS];
    basin_random random = {.seed = 5};
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set = {0};
    for (int i = 0; i < GRAPHS; i++) {
        for (int k = 0; k < 10; k++)
            text[i][k] = (i % 2 ? "CN" : "OS")[basin_random_below(&random, 2)];
        text[i][10] = 0, smiles[i] = text[i];
    }
    basin_graphset_options options = {.text = smiles, .count = GRAPHS};
    assert_ok(basin_graphset_read(&set, NULL, &options, &failure));
    set.task = BASIN_GRAPHS_CLASSES, set.classes = 2;
    set.class_value = calloc(2, sizeof(int64_t)), set.class_value[1] = 1;
    set.class_of = malloc(GRAPHS * sizeof *set.class_of);
    for (int i = 0; i < GRAPHS; i++) set.class_of[i] = i % 2;
    for (int asked = 0; asked < 2; asked++) {
        basin_backend *backend;
        basin_graphs_model *model;
        basin_training_result outcome = {.size = sizeof outcome};
        basin_graphs_settings values = world_settings();
        values.near = true, values.epochs = 1, values.members = asked ? 3 : 0;
        basin_settings settings = {.kind = &basin_graphs_task, .values = &values};
        basin_graphs_train_data given = {.set = &set, .hold_out = 0.34};
        assert_ok(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &failure));
        basin_training_options training = {.backend = backend};
        assert_ok(basin_graphs_train(&model, &outcome, &settings, &given, &training, &failure));
        assert_int_equal(basin_graphs_get_info(model)->members, asked ? 3 : 2);
        basin_graphs_evaluate_result parts = {0};
        basin_graphs_data data = {.set = &set};
        assert_ok(basin_graphs_evaluate(&parts, model, &data, NULL, &failure));
        assert_true(parts.memory_only.accuracy == 100);
        assert_true(parts.network_only.loss != parts.memory_only.loss);
        basin_graphs_close(model);
        basin_backend_close(backend);
    }
}

/* Graphs with labels of nodes that are not molecules: classes have a memory, values none. */
TEST(memory_of_labelled_graphs) {
    for (int i = 0; i < 3; i++) { /* classes, classes without it, values */
        basin_graphset set;
        basin_backend *backend;
        basin_graphs_model *model;
        basin_training_result outcome = {.size = sizeof outcome};
        basin_graphs_settings values = world_settings();
        float output[2 * 120], nearest[120];
        int64_t at[120];
        values.epochs = 1, values.near = i != 1;
        basin_settings settings = {.kind = &basin_graphs_task, .values = &values};
        world_new(&set, i == 2 ? BASIN_GRAPHS_VALUES : BASIN_GRAPHS_CLASSES, 120, 4, NULL);
        assert_ok(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &failure));
        basin_graphs_data data = {.set = &set};
        basin_graphs_train_data given = {.set = &set, .hold_out = 0.5};
        basin_training_options training = {.backend = backend};
        assert_ok(basin_graphs_train(&model, &outcome, &settings, &given, &training, &failure));
        const basin_graphs_info *info = basin_graphs_get_info(model);
        assert_int_equal(info->remembered, i ? 0 : 120);
        if (!i) {
            assert_true(info->memory_share > 0 && info->memory_share <= 1); /* by 60 graphs */
            basin_graphs_predict_result result = {
                .output = output, .nearest = nearest, .nearest_at = at};
            assert_ok(basin_graphs_predict(&result, model, &data, NULL, &failure));
            for (int k = 0; k < 120; k++) assert_true(nearest[k] == 1);
            assert_in_range(atoi(info->remembered_name[at[7]]), 0, 119);
        }
        basin_graphs_close(model);
        basin_backend_close(backend);
        basin_graphset_free(&set);
    }
}

/* Butane and pentane share 10 of 17 neighbourhoods: of one atom 4, with the next bond 4, with two
 * bonds the ends; butane and propane 5 of 16. Weights of nine columns, more than are solved at
 * once, solve the equations. */
TEST(memory_is_kernel_regression) {
    enum { N = 4, M = 6, C = 9 };
    const char *smiles[M] = {"CCCC", "CCCO", "CCN", "c1ccccc1", "CCCCC", "CCC"};
    int64_t graph[M] = {0, 1, 2, 3, 4, 5};
    basin_graphset set;
    basin_graphset_options options = {.text = smiles, .count = M};
    double scale[C];
    float target[M * C], nearest[N], output[N * C] = {0}, own[N * C];
    assert_ok(basin_graphset_read(&set, NULL, &options, &failure));
    set.task = BASIN_GRAPHS_VALUES, set.targets = C, set.target = target;
    for (int i = 0; i < M * C; i++) target[i] = (float)(i * i % 7 - 3);
    for (int c = 0; c < C; c++) scale[c] = 1;
    basin_graphs_model m = {.target = BASIN_GRAPHS_VALUES, .outputs = C, .target_scale = scale};
    basin_fold fold = {.item = {graph}, .count = {N}};
    assert_ok(basin_graphs_near_fit(&m, &set, &fold, 0, NULL, nearest, &failure));
    assert_ok(basin_graphs_near_add(output, own, nearest, NULL, &m, &set, graph + N, 2, &failure));
    assert_float_equal(nearest[0], 10.0 / 17, 1e-6);
    assert_float_equal(nearest[1], 5.0 / 16, 1e-6);
    assert_ok(basin_graphs_near_add(output, own, nearest, NULL, &m, &set, graph, N, &failure));
    for (int i = 0; i < N * C; i++) /* K w + mean = y - 0.3 w */
        assert_float_equal(own[i], target[i] - 0.3F * m.near.weight[i], 1e-3);
    basin_graphs_near_free(&m.near);
    set.target = NULL;
    basin_graphset_free(&set);
}

/* 60 graphs of two classes, of which a quarter was predicted with certainty and wrong. */
TEST(confidence_of_classes) {
    enum { N = 60 };
    int32_t class_of[N];
    int64_t graph[N];
    float given[2 * N], held[2 * N], low[2], high[2];
    basin_graphs_model m = {.classes = 2, .outputs = 2, .near.share = 0.5};
    basin_graphset set = {.graphs = N, .classes = 2, .class_of = class_of};
    for (int i = 0; i < N; i++) {
        graph[i] = i, class_of[i] = i % 2;
        given[2 * i + 1] = (i % 2) == (i % 4 < 3) ? 0.99f : 0.01f;
        given[2 * i] = 1 - given[2 * i + 1];
        held[2 * i + 1] = i == 7 ? NAN : i % 2 ? 0.9f : 0.1f, held[2 * i] = 1 - held[2 * i + 1];
    }
    held[14] = NAN; /* the memory does not have it */
    assert_ok(basin_graphs_calibration_fit(&m, &set, graph, N, given, 1, NULL, NULL, &failure));
    assert_true(m.calibration.temperature > 2);
    assert_int_equal(m.calibration.start[2], N);
    for (int i = 0; i < N; i++) given[2 * i] = 0.6f, given[2 * i + 1] = 0.4f;
    assert_ok(basin_graphs_calibration_fit(&m, &set, graph, N, given, 1, held, NULL, &failure));
    assert_true(m.near.share == 0.99);
    assert_float_equal(given[0], 0.898589, 1e-6); /* 0.99 of 0.9, and the network */
    assert_ok(basin_graphs_calibration_bound(low, high, (float[]){0.95f, 0.05f}, NULL, 1, &m, 0.9,
                                             &failure));
    assert_true(low[0] == 1 && low[1] == 0);
    assert_ok(basin_graphs_calibration_bound(low, high, (float[]){0.45f, 0.55f}, NULL, 1, &m, 0.9,
                                             &failure));
    assert_true(low[0] == 0 && low[1] == 1); /* neither is likely enough, one is likeliest */
    basin_graphs_calibration_free(&m.calibration);
}

/* The usual info->memory_share stays where the memory is right about one graph more, of a fifth
 * that the network has wrong, and less sure of another; and where hardly any graph is of the second
 * class. */
TEST(usual_share_stays) {
    enum { N = 100 };
    static const struct {
        int right, rare;
        float sure;
        bool stays;
    } want[] = {
        {1, 50, 0.8f, true}, {20, 50, 0.95f, false}, {20, 5, 0.95f, false}, {20, 4, 0.95f, true}};
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        int32_t class_of[N];
        int64_t graph[N];
        float given[2 * N], held[2 * N];
        basin_graphs_model m = {.classes = 2, .outputs = 2, .near.share = 0.5};
        basin_graphset set = {.graphs = N, .classes = 2, .class_of = class_of};
        for (int i = 0; i < N; i++) {
            int one = class_of[i] = i < want[k].rare;
            graph[i] = i;
            given[2 * i + one] = i % 5 ? 0.8f : 0.2f, given[2 * i + !one] = i % 5 ? 0.2f : 0.8f;
            held[2 * i + one] = i == 1                           ? 0.7f
                                : i % 5 || i / 5 < want[k].right ? want[k].sure
                                                                 : 0.2f;
            held[2 * i + !one] = 1 - held[2 * i + one];
        }
        assert_ok(basin_graphs_calibration_fit(&m, &set, graph, N, given, 1, held, NULL, &failure));
        assert_true(want[k].stays ? m.near.share == 0.5 : m.near.share > 0.5);
        assert_true(basin_graphs_one_sided(&m, &set, graph, N) == (want[k].rare < 5));
        basin_graphs_calibration_free(&m.calibration);
    }
}

/* Split conformal: of n errors the ceil((n + 1) coverage)-th. */
TEST(intervals_of_values) {
    float target[9], given[9] = {0}, low, high;
    int64_t graph[9];
    double scale = 1;
    basin_graphs_model m = {.target = BASIN_GRAPHS_VALUES, .outputs = 1, .target_scale = &scale};
    basin_graphset set = {.task = BASIN_GRAPHS_VALUES, .graphs = 9, .targets = 1, .target = target};
    for (int i = 0; i < 9; i++) graph[i] = i, target[i] = (float)(i + 1);
    assert_ok(basin_graphs_calibration_fit(&m, &set, graph, 9, given, 1, NULL, NULL, &failure));
    assert_ok(
        basin_graphs_calibration_bound(&low, &high, (float[]){5}, NULL, 1, &m, 0.9, &failure));
    assert_true(low == -4 && high == 14);
    assert_ok(
        basin_graphs_calibration_bound(&low, &high, (float[]){5}, NULL, 1, &m, 0.5, &failure));
    assert_true(low == 0 && high == 10);
    assert_ok(basin_graphs_calibration_bound(&low, &high, (float[]){5}, NULL, 1, &m, 0.95,
                                             &failure)); /* they are too few */
    assert_true(isinf(low) && isinf(high));
    basin_graphs_calibration_free(&m.calibration);
}

/* Errors of graphs far from training are ten times those of near ones: intervals follow. */
TEST(intervals_follow_the_distance) {
    enum { N = 800 };
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set = {.graphs = N, .targets = 1};
    static float given[N], nearest[N];
    static int64_t graph[N];
    double scale = 1;
    float low[2], high[2];
    basin_random random = basin_random_start(7, 1, 0);
    set.task = BASIN_GRAPHS_VALUES;
    set.target = calloc(N, sizeof *set.target);
    for (int i = 0; i < N; i++) {
        double u = (double)basin_random_next(&random) / 2147483648.0 - 1;
        graph[i] = i, nearest[i] = i % 2 ? 0.9f : 0.2f;
        set.target[i] = (float)(u * (i % 2 ? 0.1 : 1)), given[i] = 0;
    }
    basin_graphs_model m = {.target = BASIN_GRAPHS_VALUES, .outputs = 1, .target_scale = &scale};
    assert_ok(basin_graphs_calibration_fit(&m, &set, graph, N, given, 1, NULL, nearest, &failure));
    assert_ok(basin_graphs_calibration_bound(low, high, (float[]){0, 0}, (float[]){0.1f, 0.95f}, 2,
                                             &m, 0.9, &failure));
    assert_true(fabs((double)high[0] - 0.9) < 0.06 && fabs((double)high[1] - 0.09) < 0.006);
    assert_ok(basin_graphs_calibration_bound(low, high, (float[]){0}, NULL, 1, &m, 0.9, &failure));
    assert_true(high[0] > 0.7f && high[0] < 0.9f); /* all of them */
    basin_graphs_calibration_free(&m.calibration);
}

/* Chlorides are above 20, and no more is known of them: their predictions rise, of the others they
 * do not. Without the limits nothing says so. */
TEST(learns_from_censored_values) {
    basin_backend *backend;
    assert_ok(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &failure));
    for (int limited = 0; limited < 2; limited++) {
        BASIN_AT_EXIT(basin_graphset_free) basin_graphset set = {0};
        basin_graphs_model *model;
        basin_graphs_settings values = world_settings();
        basin_training_result outcome = {.size = sizeof outcome};
        float output[COUNT];
        double sum[2] = {0};
        values.members = 1, values.epochs = 60, values.near = false;
        basin_settings settings = {.kind = &basin_graphs_task, .values = &values};
        molecules_new(&set, false);
        set.task = BASIN_GRAPHS_VALUES, set.targets = 1, set.target = calloc(COUNT, sizeof(float));
        if (limited) set.limit = calloc(2 * COUNT, sizeof(float));
        for (int i = 0; i < COUNT; i++) {
            set.target[i] = i % 2 ? (float)(i / 2) : NAN;
            if (limited) set.limit[2 * i] = i % 2 ? NAN : 20, set.limit[2 * i + 1] = NAN;
        }
        basin_graphs_train_data data = {.set = &set};
        basin_training_options training = {.backend = backend};
        assert_ok(basin_graphs_train(&model, &outcome, &settings, &data, &training, &failure));
        assert_ok(world_predict(output, NULL, model, &(basin_graphs_data){.set = &set}, &failure));
        for (int i = 0; i < COUNT; i++) sum[i % 2] += (double)output[i] / (COUNT / 2);
        assert_true(limited ? sum[0] > 16 : sum[0] < 14);
        assert_true(fabs(sum[1] - 5.5) < 2);
        basin_graphs_close(model);
    }
    basin_backend_close(backend);
}
