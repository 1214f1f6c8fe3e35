/* Detectors with boosted trees beside the network: what is mixed, kept in files, calibrated,
 * thresholds for a goal; runs that were cut. */
#include <math.h>
#include <string.h>

#include "base/bundle.h"
#include "support/folder.h"
#include "tasks/common/digest.h"
#include "tasks/nodes/fraud.h"

static fraud_scene scene_of(int64_t nodes, int relations) {
    needs_xgboost();
    fraud_scene s = fraud_scene_of(fraud_new(nodes, 3, relations, false));
    s.settings.trees = 4, s.settings.labels = true, s.settings.calibrate = "auto",
    s.settings.epochs = 20;
    return s;
}

static fraud_scene scene_new(int relations) { return scene_of(500, relations); }

static basin_nodes_model *train(const fraud_scene *s) {
    return fraud_train(s->network, s->part, &s->settings, &s->training);
}

static double *score(const basin_nodes_model *model, const basin_network *network, bool least) {
    basin_nodes_predict_options work = {.stream = least};
    double *probability = calloc((size_t)network->nodes, sizeof *probability);
    assert_ok(basin_nodes_predict(probability, model, network, &work, &failure));
    return probability;
}

static double largest_difference(const double *a, const double *b, int64_t count) {
    double most = 0;
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

/* ---- mixing ---- */

TEST(is_at_least_as_good_on_validation_as_each_part) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(1);
    basin_nodes_model *model = train(&s);
    double both = basin_score_get(basin_nodes_get_info(model)->reached[BASIN_SPLIT_VAL], "auprc");
    for (int which = 0; which < 2; which++) {
        const basin_score *alone = basin_nodes_get_info(model)->alone[which][BASIN_SPLIT_VAL];
        assert_non_null(alone);
        assert_true(both >= basin_score_get(alone, "auprc") - 1e-12);
        assert_true(basin_score_get(alone, "auroc") > 0.7);
    }
    basin_nodes_close(model);
}

TEST(mixes_logits_by_share) {
    basin_nodes_ensemble e = {.share = 0.25, .scale = 2, .shift = 1};
    const double trees[] = {-1, 3}, network[] = {0.5, -2};
    double probability[2];
    basin_nodes_ensemble_mix(probability, &e, trees, network, 2);
    assert_float_equal(probability[0], 1 / (1 + exp(-(0.75 * -1 + 0.25 * 2))), 1e-12);
    assert_float_equal(probability[1], 1 / (1 + exp(-(0.75 * 3 + 0.25 * -3))), 1e-12);
}

/* One view knows the labels, the other and the network are noise. */
TEST(gives_weight_to_the_view_that_knows) {
    enum { KNOWING = 3 };
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(1);
    int64_t N = s.network->nodes;
    double *view = calloc((size_t)(BASIN_TREE_VIEWS * N), sizeof *view);
    double *trees = calloc((size_t)N, sizeof *trees), *noise = calloc((size_t)N, sizeof *noise);
    for (int knows = 0; knows < 2; knows++) { /* the first view or the second */
        basin_nodes_ensemble e = {.fits = 3, .seeing = {1, 2}, .weight = {1.0 / 3, 2.0 / 3}};
        for (int64_t i = 0; i < N; i++) {
            for (int v = 0; v < 2; v++)
                view[v * N + i] = basin_random_normal_at(1, (uint64_t)v, (uint64_t)i);
            noise[i] = basin_random_normal_at(1, 9, (uint64_t)i);
            view[knows * N + i] = 10 * (view[knows * N + i] + KNOWING * s.network->label[i]);
        }
        assert_ok(basin_nodes_ensemble_choose(&e, trees, view, noise, s.network, s.part, "all",
                                              &failure));
        assert_float_equal(e.weight[0] + e.weight[1], 1, 1e-12);
        assert_float_equal(e.weight[BASIN_VIEW_KNOWN], 0, 0);
        /* Its logits are ten times as large, which counts for nothing. */
        double other = e.weight[1 - knows], knowing = e.weight[knows];
        assert_true(knowing * 12 > 2 * other);
        assert_true(e.share < 0.4);
        for (int64_t i = 0; i < N; i++)
            assert_true(fabs(trees[i] - e.weight[0] * view[i] - e.weight[1] * view[N + i]) < 1e-9);
    }
    free(view), free(trees), free(noise);
}

/* A view whose fits have no trees is the same for all nodes, up to rounding. */
TEST(a_view_without_trees_takes_no_part) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(1);
    int64_t N = s.network->nodes;
    double *view = calloc((size_t)(BASIN_TREE_VIEWS * N), sizeof *view);
    double *trees = calloc((size_t)N, sizeof *trees), *noise = calloc((size_t)N, sizeof *noise);
    basin_nodes_ensemble e = {.fits = 2, .seeing = {1, 1}, .weight = {0.5, 0.5}};
    for (int64_t i = 0; i < N; i++) {
        view[i] = -1.7 + 1e-9 * (double)(i % 3);
        view[N + i] = basin_random_normal_at(1, 1, (uint64_t)i) + 3 * s.network->label[i];
        noise[i] = basin_random_normal_at(1, 9, (uint64_t)i);
    }
    assert_ok(
        basin_nodes_ensemble_choose(&e, trees, view, noise, s.network, s.part, "all", &failure));
    assert_float_equal(e.weight[0], 0, 0);
    assert_float_equal(e.weight[1], 1, 1e-12);
    assert_true(e.share < 0.5);
    free(view), free(trees), free(noise);
}

/* Without known labels the other views share what is left; alone, known labels have it all. */
TEST(weighs_fits_by_what_they_see) {
    basin_nodes_ensemble e = {
        .fits = 4, .seeing = {1, 0, 2, 0, 1}, .weight = {0.2, 0, 0.3, 0, 0.5}};
    basin_tree_table with = {.known = 1}, without = {.known = 0};
    assert_float_equal(basin_nodes_ensemble_weight(&e, &with, 0), 0.2, 1e-12);
    assert_float_equal(basin_nodes_ensemble_weight(&e, &with, 2), 0.15, 1e-12);
    assert_float_equal(basin_nodes_ensemble_weight(&e, &with, 3), 0.5, 1e-12);
    assert_float_equal(basin_nodes_ensemble_weight(&e, &without, 0), 0.4, 1e-12);
    assert_float_equal(basin_nodes_ensemble_weight(&e, &without, 1), 0.3, 1e-12);
    assert_float_equal(basin_nodes_ensemble_weight(&e, &without, 3), 0, 0);
    basin_nodes_ensemble last = {.fits = 4, .seeing = {1, 0, 2, 0, 1}, .weight = {0, 0, 0, 0, 1}};
    assert_float_equal(basin_nodes_ensemble_weight(&last, &without, 1), 1.0 / 3, 1e-12);
    basin_nodes_ensemble only = {.fits = 2, .seeing = {0, 0, 0, 0, 2}, .weight = {0, 0, 0, 0, 1}};
    assert_float_equal(basin_nodes_ensemble_weight(&only, &without, 1), 0.5, 1e-12);
}

/* Means over two hops, by hand. */
TEST(reads_features_degrees_and_means) {
    BASIN_AT_EXIT(free_network) basin_network *network;
    float x[] = {1, 2, 4, 8};
    const int32_t end[] = {0, 1, 1, 2, 2, 3};
    assert_ok(basin_network_new(&network, "path", 4, &failure));
    basin_tensor feature = basin_tensor_borrow(x, BASIN_F32, BASIN_SHAPE(4, 1));
    assert_ok(basin_network_set_features(network, &feature, NULL, &failure));
    basin_edges edges = {end, end + 1, BASIN_I32, 2, 3};
    assert_ok(basin_network_add_relation(network, "homo", &edges, NULL, &failure));
    BASIN_AT_EXIT(basin_nodes_ensemble_free) basin_nodes_ensemble e = {.degree = false};
    basin_tree_table table;
    assert_ok(basin_nodes_ensemble_name(&e, network, &failure));
    assert_ok(basin_tree_table_open(&table, network, &e, 0, &failure));
    float row[2][3];
    basin_tree_table_rows(row[0], &table, NULL, 0, 2);
    const float wanted[2][3] = {{1, 2, 2.5f}, {2, 2.5f, 3.5f}}; /* itself, 1 hop, 2 hops */
    assert_int_equal(table.columns, 3);
    for (int i = 0; i < 2; i++)
        for (int c = 0; c < 3; c++) assert_float_equal(row[i][c], wanted[i][c], 1e-6);
    basin_tree_table_close(&table);
    assert_failure(basin_tree_table_open(&table, network, &e, 8, &failure), BASIN_NO_MEMORY,
                   "trees 0");
}

/* Of 150,000 nodes trees see 100,000, but every anomaly, and still say how frequent they are. */
TEST(many_nodes_are_thinned_out) {
    needs_xgboost();
    enum { NODES = 200000, TRAINS = 150000 };
    BASIN_AT_EXIT(free_network) basin_network *network;
    float *x = calloc(NODES, sizeof *x);
    int32_t *y = calloc(NODES, sizeof *y);
    uint8_t *part = calloc(NODES, 1);
    double *logit = calloc(NODES, sizeof *logit), expected = 0, found = 0;
    for (int64_t i = 0; i < NODES; i++) {
        y[i] = basin_random_uniform_at(1, 0, (uint64_t)i) < 0.02f;
        x[i] = (float)(basin_random_normal_at(1, 1, (uint64_t)i) + y[i]);
        part[i] = i < TRAINS ? BASIN_SPLIT_TRAIN : BASIN_SPLIT_VAL;
    }
    assert_ok(basin_network_new(&network, "many", NODES, &failure));
    basin_tensor feature = basin_tensor_borrow(x, BASIN_F32, BASIN_SHAPE(NODES, 1));
    basin_tensor label = basin_tensor_borrow(y, BASIN_I32, BASIN_SHAPE(NODES));
    assert_ok(basin_network_set_features(network, &feature, NULL, &failure));
    assert_ok(basin_network_set_label_tensor(network, &label, NULL, &failure));
    const int32_t end[] = {0, 1};
    basin_edges edges = {end, end + 1, BASIN_I32, 2, 1};
    assert_ok(basin_network_add_relation(network, "homo", &edges, NULL, &failure));
    BASIN_AT_EXIT(basin_nodes_ensemble_free) basin_nodes_ensemble e = {.degree = false};
    basin_tree_table table;
    assert_ok(basin_nodes_ensemble_name(&e, network, &failure));
    assert_ok(basin_tree_table_open(&table, network, &e, 0, &failure));
    basin_tree_tables tables = {.network = network, .count = 1, .table = &table};
    assert_ok(basin_nodes_ensemble_grow(&e, 1, 1, &tables, part, NULL, NULL, NULL, &failure));
    assert_ok(basin_nodes_ensemble_logits(logit, &e, &tables, false, &failure));
    for (int64_t i = TRAINS; i < NODES; i++) {
        expected += y[i];
        found += 1 / (1 + exp(-logit[i]));
    }
    assert_true(fabs(found / expected - 1) < 0.1);
    basin_tree_table_close(&table);
    free(x), free(y), free(part), free(logit);
}

/* ---- few labels ---- */

/* The model in context answers for nodes without a label; those of validation are neither labels
 * nor pupils. */
TEST(few_labels_have_a_teacher) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(1);
    s.settings.teacher = true;
    BASIN_AT_EXIT(basin_lesson_free) basin_lesson lesson;
    const basin_network *n = s.network;
    int64_t known = 0, judges = 0;
    assert_ok(basin_nodes_teach(&lesson, n, s.part, s.training.backend, 0, NULL, &failure));
    for (int64_t i = 0; i < lesson.count; i++) {
        int64_t node = lesson.node[i];
        known += s.part[node] == BASIN_SPLIT_TRAIN;
        judges += s.part[node] == BASIN_SPLIT_VAL;
        if (s.part[node] == BASIN_SPLIT_TRAIN)
            assert_true(lesson.target[i] == (float)n->label[node]);
        else
            assert_true(lesson.target[i] > 0 && lesson.target[i] < 1);
    }
    assert_int_equal(judges, 0);
    assert_int_equal(known, basin_split_nodes(NULL, s.part, n->nodes, BASIN_SPLIT_TRAIN));
    assert_true(lesson.count > known);
    basin_nodes_model *model = train(&s);
    assert_int_equal(model->ensemble.seeing[BASIN_VIEW_TAUGHT], 2);
    assert_true(model->ensemble.weight[BASIN_VIEW_TAUGHT] > 0);
    basin_nodes_close(model);
    s.settings.teacher = false;
    model = train(&s);
    assert_int_equal(model->ensemble.seeing[BASIN_VIEW_TAUGHT], 0);
    basin_nodes_close(model);
}

TEST(many_labels_have_none) {
    needs_xgboost();
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = fraud_scene_of(fraud_new(3000, 3, 1, false));
    BASIN_AT_EXIT(basin_lesson_free) basin_lesson lesson;
    assert_ok(basin_nodes_teach(&lesson, s.network, s.part, s.training.backend, 0, NULL, &failure));
    assert_int_equal(lesson.count, 0);
}

/* ---- known labels ---- */

static const basin_salt salt = {true, "0123456789abcde"};

/* Only sums of known labels along the first relation. */
static basin_tree_table table_of(const basin_network *network, int8_t *label, float *sums) {
    basin_tree_table t = {.label = label, .rate = 0.25};
    t.node = (basin_node_table){
        .network = network, .relations = 1, .chain = -1, .stride = 2, .row = sums};
    for (int64_t i = 0; i < network->nodes; i++) basin_known_sums_fill(&t, i);
    return t;
}

/* A path of five, of which 1 (normal), 2 and 4 (anomalous) are trained on. */
TEST(shares_of_known_labels_leave_the_node_out) {
    BASIN_AT_EXIT(free_network) basin_network *network;
    const int32_t end[] = {0, 1, 1, 2, 2, 3, 3, 4};
    const uint8_t part[] = {BASIN_SPLIT_TEST, 1, 1, BASIN_SPLIT_VAL, 1};
    int32_t y[] = {1, 0, 1, 1, 1};
    int8_t label[5];
    float sums[5][2], share[2];
    assert_ok(basin_network_new(&network, "path", 5, &failure));
    basin_tensor labels = basin_tensor_borrow(y, BASIN_I32, BASIN_SHAPE(5));
    assert_ok(basin_network_set_label_tensor(network, &labels, NULL, &failure));
    basin_edges edges = {end, end + 1, BASIN_I32, 2, 4};
    assert_ok(basin_network_add_relation(network, "homo", &edges, NULL, &failure));
    basin_known_labels known;
    assert_ok(
        basin_known_labels_take(&known, network, part, BASIN_SPLIT_TRAIN, true, &salt, &failure));
    for (int i = 0; i < 5; i++) network->label[i] = 1; /* what is scored is not looked at */
    assert_int_equal(basin_known_labels_find(label, &known, network), 3);
    assert_memory_equal(label, ((const int8_t[]){-1, 0, 1, -1, 1}), 5);
    basin_tree_table table = table_of(network, label, sums[0]);
    basin_known_shares(share, &table, 0, 2);
    assert_float_equal(share[0], (0 + 0.5) / (1 + 2), 1e-6); /* 1 is normal, 3 unknown */
    /* of 1: 0 is unknown, itself left out; of 3: 4 is anomalous, itself left out */
    assert_float_equal(share[1], (0.5 / 2 + 1.5 / 3) / 2, 1e-6);
    basin_known_labels_free(&known);
}

static basin_network *read_table(const char *nodes) {
    static const char edges[] = "src,dst\n0,1\n1,2\n2,3\n";
    basin_csv_source source[] = {{.path = "nodes.csv", .data = nodes, .size = strlen(nodes)},
                                 {.path = "edges.csv", .data = edges, .size = sizeof edges - 1}};
    basin_network *network;
    assert_ok(basin_network_csv_read(&network, source, 2, NULL, &failure));
    return network;
}

/* Ids that are 0, 1, .. are ids: rows in another order, or one more, are the same accounts. */
TEST(known_nodes_go_by_their_ids) {
    const uint8_t part[] = {1, BASIN_SPLIT_VAL, 1, 1};
    int8_t label[5];
    basin_known_labels known;
    BASIN_AT_EXIT(free_network)
    basin_network *first = read_table("id,f,label\n0,1,0\n1,2,1\n2,3,1\n3,4,0\n");
    BASIN_AT_EXIT(free_network)
    basin_network *other = read_table("id,f,label\n4,0,1\n3,4,0\n2,3,1\n1,2,1\n0,1,0\n");
    assert_ok(
        basin_known_labels_take(&known, first, part, BASIN_SPLIT_TRAIN, true, &salt, &failure));
    assert_int_equal(basin_known_labels_find(label, &known, other), 3);
    assert_memory_equal(label, ((const int8_t[]){-1, 0, 1, -1, 0}), 5);
    known.named = false; /* as models have it that were trained on such a table before */
    assert_int_equal(basin_known_labels_find(label, &known, other), 0);
    assert_int_equal(basin_known_labels_find(label, &known, first), 3);
    basin_known_labels_free(&known);
}

/* Hashes of one id differ under two salts; those of older files can be salted, others not joined.
 */
TEST(known_nodes_join_under_one_salt) {
    static const basin_salt none = {0}, other = {true, "another"};
    const uint8_t part[] = {1, BASIN_SPLIT_VAL, 1, 1};
    int8_t label[4];
    bool fits;
    BASIN_AT_EXIT(free_network)
    basin_network *n = read_table("id,f,label\n0,1,0\n1,2,1\n2,3,1\n3,4,0\n");
    basin_known_labels own, plain, apart, all = {.salt = salt};
    assert_ok(basin_known_labels_take(&own, n, part, BASIN_SPLIT_TRAIN, true, &salt, &failure));
    assert_ok(basin_known_labels_take(&plain, n, part, BASIN_SPLIT_VAL, false, &none, &failure));
    assert_ok(basin_known_labels_take(&apart, n, part, BASIN_SPLIT_TRAIN, true, &other, &failure));
    for (int64_t i = 0; i < own.count; i++)
        for (int64_t k = 0; k < apart.count; k++) assert_true(own.id[i] != apart.id[k]);
    assert_null(plain.label);
    assert_ok(basin_known_labels_join(&all, &fits, &own, &failure));
    assert_ok(basin_known_labels_join(&all, &fits, &plain, &failure));
    assert_true(fits);
    assert_int_equal(basin_known_labels_find(label, &all, n), 4);
    assert_ok(basin_known_labels_join(&all, &fits, &own, &failure)); /* once each */
    assert_int_equal(all.count, 4);
    assert_ok(basin_known_labels_join(&all, &fits, &apart, &failure));
    assert_false(fits);
    basin_known_labels_free(&own), basin_known_labels_free(&plain);
    basin_known_labels_free(&apart), basin_known_labels_free(&all);
}

typedef struct listener {
    int said;
} listener;

static void listen(void *context, const char *line) {
    ((listener *)context)->said += strstr(line, "known labels are left out") != NULL;
}

/* Another network has none of the nodes: half of the trees is left out, and that is said. */
TEST(another_network_is_scored_without_labels) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(1);
    s.settings.trees = 4, s.settings.labels = true;
    basin_nodes_model *model = train(&s);
    BASIN_AT_EXIT(free_network) basin_network *other = fraud_new(400, 9, 1, false);
    uint8_t *part = fraud_split(other);
    basin_score reached;
    listener heard = {0};
    basin_watch watch = {.note = listen, .context = &heard};
    basin_nodes_predict_options work = {.watch = &watch};
    double *probability = calloc(500, sizeof *probability);
    model->ensemble.share = 0.5;
    assert_ok(basin_nodes_predict(probability, model, s.network, &work, &failure));
    assert_int_equal(heard.said, 0);
    assert_ok(basin_nodes_predict(probability, model, other, &work, &failure));
    assert_int_equal(heard.said, 1);
    assert_ok(basin_nodes_evaluate(&reached, probability, NULL, other, part, BASIN_SPLIT_TEST, 0.5,
                                   &failure));
    assert_true(basin_score_get(&reached, "auroc") > 0.75);
    free(probability), free(part);
    basin_nodes_close(model);
}

/* ---- files, streams, cuts ---- */

TEST_WITH(scores_the_same_from_a_file_and_streamed, folder_new, folder_remove) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(2);
    s.settings.teacher = true;
    basin_nodes_model *model = train(&s), *back;
    char *path = folder_path(state, "model.safetensors");
    assert_ok(basin_nodes_write(path, model, &failure));
    assert_ok(basin_nodes_open(&back, "anomaly", path, s.training.backend, &failure));
    double *whole = score(back, s.network, false), *streamed = score(back, s.network, true);
    int64_t N = s.network->nodes;
    assert_true(largest_difference(whole, basin_nodes_get_info(model)->scores, N) < 1e-6);
    assert_true(largest_difference(whole, streamed, N) < 1e-4);
    assert_true(basin_nodes_get_info(back)->share == basin_nodes_get_info(model)->share);
    assert_true(basin_nodes_get_info(back)->threshold == basin_nodes_get_info(model)->threshold);
    assert_int_equal(basin_nodes_get_info(back)->calibration,
                     basin_nodes_get_info(model)->calibration);
    assert_non_null(basin_nodes_get_info(back)->alone[BASIN_NODES_TREES][BASIN_SPLIT_VAL]);
    free(whole), free(streamed);
    basin_nodes_close(back);
    basin_nodes_close(model);
}

TEST_WITH(a_cut_run_ends_the_same, folder_new, folder_remove) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_of(200, 1);
    s.settings.teacher = true;
    basin_nodes_model *straight = train(&s);
    stopper stop = {0, 7};
    basin_watch watch = {.show = stop_later, .context = &stop, .stop = is_stopping};
    s.training.checkpoint = folder_path(state, "run.checkpoint");
    s.training.watch = &watch;
    basin_nodes_close(train(&s));
    s.training.watch = NULL, s.training.resume = true;
    basin_nodes_model *resumed = train(&s);
    assert_true(straight->threshold == resumed->threshold);
    assert_true(straight->ensemble.share == resumed->ensemble.share);
    assert_memory_equal(straight->score, resumed->score, (size_t)s.network->nodes * sizeof(double));
    basin_nodes_close(straight);
    basin_nodes_close(resumed);
}

/* ---- calibration, thresholds ---- */

TEST(calibration_keeps_order_and_alerts) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(1);
    int64_t N = s.network->nodes;
    const char *const kinds[] = {"none", "platt", "isotonic"};
    basin_nodes_model *model[3];
    for (int k = 0; k < 3; k++) {
        s.settings.calibrate = kinds[k];
        model[k] = train(&s);
        assert_int_equal(basin_nodes_get_info(model[k])->calibration, k);
    }
    for (int k = 1; k < 3; k++)
        for (int64_t i = 0; i < N; i++) {
            const double *p = model[0]->score, *q = model[k]->score;
            assert_int_equal(p[i] > model[0]->threshold, q[i] > model[k]->threshold);
            for (int64_t j = 0; j < i; j++)
                if (p[i] != p[j]) assert_int_equal(p[i] < p[j], q[i] < q[j]);
        }
    double raw = basin_nodes_get_info(model[0])->reliability[BASIN_SPLIT_VAL]->ece;
    assert_true(basin_nodes_get_info(model[2])->reliability[BASIN_SPLIT_VAL]->ece < raw);
    for (int k = 0; k < 3; k++) basin_nodes_close(model[k]);
}

TEST(thresholds_reach_their_goals) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(1);
    basin_nodes_model *model = train(&s);
    basin_nodes_threshold_result threshold = {.size = sizeof threshold};
    int64_t N = s.network->nodes, alerts = 0, right = 0, positives = 0;
    assert_ok(basin_nodes_threshold_for(&threshold, model, "alerts=25", model->score, N, &failure));
    for (int64_t i = 0; i < N; i++) alerts += model->score[i] > threshold.threshold;
    assert_int_equal(alerts, 25);
    assert_ok(basin_nodes_threshold_for(&threshold, model, "recall=0.8", NULL, 0, &failure));
    for (int64_t i = 0; i < N; i++) {
        bool judged = s.part[i] == BASIN_SPLIT_VAL && s.network->label[i] == 1;
        positives += judged;
        right += judged && model->score[i] > threshold.threshold;
    }
    assert_true((double)right >= 0.8 * (double)positives);
    /* Intervals hold their medians, and a second call draws the same. */
    static const char *const goals[] = {"precision=0.5", "fpr=0.1", "cost=1:3", "recall=0.8"};
    for (int i = 0; i < 4; i++) {
        basin_nodes_threshold_result t = {.size = sizeof t}, again = t;
        assert_ok(basin_nodes_threshold_for(&t, model, goals[i], NULL, 0, &failure));
        assert_ok(basin_nodes_threshold_for(&again, model, goals[i], NULL, 0, &failure));
        assert_memory_equal(&t, &again, sizeof t);
        const double *value[] = {t.precision, t.recall, t.fpr, t.alerts};
        for (int k = 0; k < 4; k++)
            assert_true(0 <= value[k][1] && value[k][1] <= value[k][0] &&
                        value[k][0] <= value[k][2] && value[k][2] <= 1);
        if (i == 2) assert_float_equal(t.threshold, 0.25, 1e-12);
    }
    static const char *const wrong[] = {"recall",   "recall=2",  "recall=0.5x", "f1=0.5",
                                        "alerts=0", "fpr=0",     "cost=1:",     "cost=1:0",
                                        "cost=:1",  "cost=1:2x", "cost=1",      "precision="};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_failure(basin_nodes_threshold_for(&threshold, model, wrong[i], NULL, 0, &failure),
                       BASIN_BAD_VALUE, wrong[i]);
    }
    basin_nodes_close(model);
}

/* ---- Energy Transformers over rows, in files of earlier versions ---- */

#define ROWS BASIN_SOURCE "/tests/files/rows.safetensors"

TEST_WITH(networks_of_rows_are_stored_as_they_were, folder_new, folder_remove) {
    double *p[2];
    basin_training_options training = fraud_training();
    basin_network_options options = {0};
    basin_network *network;
    basin_nodes_model *model;
    const char *from[] = {ROWS, folder_path(state, "again.safetensors")};
    assert_ok(basin_network_open(&network,
                                 (const char *const[]){BASIN_SOURCE "/tests/files/payments.basin"},
                                 1, &options, &failure));
    for (int i = 0; i < 2; i++) {
        assert_ok(basin_nodes_open(&model, "anomaly", from[i], training.backend, &failure));
        assert_int_equal(model->ensemble.fits, 2);
        assert_true(basin_nodes_get_info(model)->share == 1);
        p[i] = score(model, network, false);
        if (!i) assert_ok(basin_nodes_write(from[1], model, &failure));
        basin_nodes_close(model);
    }
    assert_memory_equal(p[0], p[1], (size_t)network->nodes * sizeof *p[0]);
    free(p[0]), free(p[1]);
    basin_network_close(network);
    basin_backend_close(training.backend);
}

static basin_bundle *read_rows(void) {
    basin_bundle *bundle;
    assert_ok(basin_model_read(&bundle, ROWS, &failure));
    return bundle;
}

TEST(networks_of_rows_say_what_moved_them) {
    enum { MOST = 32 };
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle = read_rows();
    for (int fit = 0; fit < 2; fit++) {
        basin_trees *trees;
        float x[2 * MOST], value[2 * MOST + 2];
        double logit[2], one, sum = 0;
        assert_ok(basin_trees_load(&trees, bundle, fit ? "trees1." : "trees0.", &failure));
        int64_t columns = basin_trees_features(trees);
        assert_int_equal(columns, fit ? 14 : 4);
        for (int64_t i = 0; i < 2 * columns; i++) x[i] = (float)(3 * sin((double)(i * i)));
        assert_ok(basin_trees_predict(logit, trees, x, 2, columns, &failure));
        assert_ok(basin_trees_predict(&one, trees, x + columns, 1, columns, &failure));
        assert_float_equal(logit[1], one, 1e-5);
        assert_ok(basin_trees_shapley(value, trees, x, 2, columns, &failure));
        for (int64_t i = 0; i < columns; i++) sum += (double)value[columns + 1 + i];
        assert_true(fabs(sum - (logit[1] - logit[0])) < 0.02 * (1 + fabs(logit[1] - logit[0])));
        basin_trees_free(trees);
    }
}

/* Members, tokens, the first width, then a weight: other ones, and a tensor that is cut. */
TEST(broken_networks_of_rows_are_refused) {
    static const struct {
        int64_t at, cut;
        float number;
    } wrong[] = {{0, 0, 0},    {0, 0, 65},   {0, 0, 3},       {1, 0, 1},
                 {1, 0, 33},   {2, 0, 0.5f}, {2, 0, 1e6f},    {2, 0, 5},
                 {20, 0, NAN}, {100, 1, 0},  {100, 17006, 0}, {100, 17000, 0}};
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle = read_rows();
    const basin_tensor *whole = basin_bundle_find(bundle, "trees1.net");
    BASIN_FREE_AT_EXIT float *number = malloc(basin_tensor_bytes(whole));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        BASIN_AT_EXIT(free_bundle) basin_bundle *broken;
        basin_trees *trees;
        basin_shape shape = BASIN_SHAPE(basin_shape_count(whole->shape) - wrong[i].cut);
        memcpy(number, whole->data, basin_tensor_bytes(whole));
        number[wrong[i].at] = wrong[i].number;
        assert_ok(basin_bundle_new(&broken, NULL, &failure));
        assert_ok(basin_bundle_put(broken, "a.net", number, BASIN_F32, shape, &failure));
        assert_failure(basin_trees_load(&trees, broken, "a.", &failure), BASIN_BAD_FILE,
                       "a.net is not a network of rows");
        assert_null(trees);
    }
}

/* ---- the rival ---- */

TEST(xgboost_learns_the_same_table) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new(1);
    basin_score reached;
    basin_nodes_rival rival;
    double *probability = calloc((size_t)s.network->nodes, sizeof *probability);
    assert_ok(basin_nodes_train_xgboost(probability, &rival, 1, s.network, s.part, &s.training,
                                        &failure));
    assert_ok(basin_nodes_evaluate(&reached, probability, NULL, s.network, s.part, BASIN_SPLIT_TEST,
                                   0.5, &failure));
    assert_true(rival.trees > 0 && basin_score_get(&reached, "auroc") > 0.7);
    free(probability);
}
