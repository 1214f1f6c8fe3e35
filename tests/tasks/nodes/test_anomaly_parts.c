/* Detectors on a graph in parts, in one process: scores and losses are the whole graph's but for
 * rounding, streamed scores are its bits, trees are the same; relations, weights of nodes, members;
 * what is refused. */
#include <math.h>
#include <string.h>

#include "tasks/nodes/fraud.h"
#include "tasks/nodes/network/parts/parts.h"

enum { NODES = 300, PARTS = 3 };

static basin_parts *cut(const basin_network *network, int64_t count) {
    basin_cut_spec spec = {.parts = count, .method = "stream"};
    basin_parts *parts;
    assert_ok(basin_parts_cut(&parts, network, &spec, NULL, &failure));
    return parts;
}

static double *score(const basin_nodes_model *model, const basin_network *network,
                     basin_parts *parts, bool least) {
    basin_nodes_predict_options work = {.stream = least};
    double *probability = calloc(NODES, sizeof *probability);
    assert_ok(basin_nodes_predict(probability, model, parts ? basin_parts_face(parts) : network,
                                  &work, &failure));
    return probability;
}

static void assert_near(const double *a, const double *b, double tolerance) {
    for (int i = 0; i < NODES; i++)
        if (!(fabs(a[i] - b[i]) <= tolerance))
            fail_msg("node %d: %.9g, expected %.9g", i, a[i], b[i]);
}

/* Edges that carry amounts. */
static basin_network *paid_new(void) {
    const char *path[] = {"nodes", "edges"};
    basin_network_options options = {0};
    basin_network *network;
    char *text[2];
    size_t size;
    FILE *nodes = open_memstream(&text[0], &size), *edges = open_memstream(&text[1], &size);
    fputs("id,x,label\n", nodes), fputs("src,dst,amount\n", edges);
    for (int i = 0; i < NODES; i++)
        fprintf(nodes, "%d,%g,%d\n", i, coin(3, 1, i), coin(3, 2, i) < 0.2);
    for (int e = 0; e < 4 * NODES; e++)
        fprintf(edges, "%d,%d,%g\n", e / 4, (int)(coin(3, 3, e) * NODES), 100 * coin(3, 4, e));
    fclose(nodes), fclose(edges);
    options.table = &(basin_table_options){.text = (const char *[]){text[0], text[1]}};
    assert_ok(basin_network_open(&network, path, 2, &options, &failure));
    free(text[0]), free(text[1]);
    return network;
}

/* A model of each kind, trained on the whole graph, scores it in parts. */
TEST(parts_score_as_the_whole) {
    for (int kind = 0; kind < 5; kind++) {
        basin_network *network =
            kind == 4 ? paid_new() : fraud_new(NODES, 3, kind == 1 ? 2 : 1, false);
        basin_training_options training = fraud_training();
        basin_nodes_settings settings = fraud_settings();
        uint8_t *split = fraud_split(network);
        settings.epochs = 5, settings.blocks = 2;
        if (kind == 1) settings.relations = "max";
        if (kind == 2) settings.steps = 2;
        if (kind == 4) settings.facts = "both";
        if (kind == 3) settings.self_loops = "add", settings.members = 2;
        basin_nodes_model *model = fraud_train(network, split, &settings, &training);
        double *whole = score(model, network, NULL, false);
        double *streamed = score(model, network, NULL, true);
        for (int64_t count = 1; count <= PARTS; count++) {
            basin_parts *parts = cut(network, count);
            double *found = score(model, NULL, parts, false);
            double *flowed = score(model, NULL, parts, true);
            assert_near(found, whole, 1e-6);
            assert_near(flowed, streamed, kind == 3 ? 1e-6 : 0); /* where loops stand may differ */
            free(found), free(flowed);
            basin_parts_close(parts);
        }
        free(whole), free(streamed), free(split);
        basin_nodes_close(model);
        basin_backend_close(training.backend);
        basin_network_close(network);
    }
}

static basin_nodes_model *train(basin_training_result *outcome, const basin_network *network,
                                basin_parts *parts, const uint8_t *split,
                                const basin_nodes_settings *settings,
                                const basin_training_options *training) {
    basin_nodes_data data = {.network = parts ? basin_parts_face(parts) : network, .part = split};
    basin_nodes_model *model;
    assert_ok(basin_nodes_train_with(&model, outcome, &basin_anomaly_task, settings, &data,
                                     training, false, &failure));
    return model;
}

static void assert_weights_near(const basin_nodes_model *a, const basin_nodes_model *b,
                                float tolerance) {
    for (size_t i = 0; i < basin_bundle_count(a->member[0]); i++) {
        const basin_tensor *x = basin_bundle_at(a->member[0], i);
        const basin_tensor *y = basin_bundle_find(b->member[0], basin_bundle_name(a->member[0], i));
        for (int64_t k = 0; k < basin_shape_count(x->shape); k++)
            if (!(fabsf(((float *)x->data)[k] - ((float *)y->data)[k]) <= tolerance))
                fail_msg("%s[%d] is %.9g, expected %.9g", basin_bundle_name(a->member[0], i),
                         (int)k, (double)((float *)x->data)[k], (double)((float *)y->data)[k]);
    }
}

static void train_as_the_whole(basin_network *network, const char *facts) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = fraud_scene_of(network);
    basin_training_result whole, apart, given;
    s.settings.facts = facts;
    s.settings.epochs = 4, s.settings.dropout = 0, s.settings.average = 0;
    s.settings.sampling = "full";
    basin_nodes_model *one = train(&whole, s.network, NULL, s.part, &s.settings, &s.training);
    basin_parts *parts = cut(s.network, PARTS);
    basin_nodes_model *two = train(&apart, NULL, parts, s.part, &s.settings, &s.training);
    s.settings.parts = PARTS; /* another cut */
    basin_nodes_model *three = train(&given, s.network, NULL, s.part, &s.settings, &s.training);
    assert_true(fabs(whole.loss - apart.loss) < 1e-6 && fabs(whole.loss - given.loss) < 1e-6);
    assert_weights_near(two, one, 2e-6f);
    assert_weights_near(three, one, 2e-6f);
    assert_int_equal(two->settings.parts, PARTS);
    assert_int_equal(two->features, network->features);
    assert_non_null(strstr(basin_nodes_get_info(two)->trained_on, "3 parts on 1 rank"));
    basin_nodes_close(one), basin_nodes_close(two), basin_nodes_close(three);
    basin_parts_close(parts);
}

TEST(parts_train_as_the_whole) {
    train_as_the_whole(fraud_new(NODES, 5, 1, false), "auto");
    train_as_the_whole(paid_new(), "both");
}

/* Another number of parts is another run; the same parts give the same bits. */
TEST(the_same_parts_give_the_same_bits) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = fraud_scene_of(fraud_new(NODES, 6, 1, false));
    basin_training_result outcome = {.size = sizeof outcome};
    basin_nodes_model *model[2];
    s.settings.epochs = 3, s.settings.members = 2, s.settings.dropout = 0.3;
    for (int i = 0; i < 2; i++) {
        basin_parts *parts = cut(s.network, PARTS);
        model[i] = train(&outcome, NULL, parts, s.part, &s.settings, &s.training);
        basin_parts_close(parts);
    }
    assert_same_members(model[0], model[1]);
    for (int i = 0; i < 2; i++) basin_nodes_close(model[i]);
}

static basin_bundle *trees_of(const basin_nodes_model *model) {
    basin_bundle *bundle;
    assert_ok(basin_bundle_new(&bundle, NULL, &failure));
    assert_ok(basin_nodes_ensemble_store(bundle, &model->ensemble, &failure));
    return bundle;
}

static void assert_same_trees(const basin_nodes_model *a, const basin_nodes_model *b) {
    basin_bundle *one = trees_of(a), *two = trees_of(b);
    assert_true(basin_bundle_count(one) > 0);
    assert_int_equal(basin_bundle_count(one), basin_bundle_count(two));
    for (size_t i = 0; i < basin_bundle_count(one); i++) {
        const basin_tensor *x = basin_bundle_at(one, i);
        const basin_tensor *y = basin_bundle_find(two, basin_bundle_name(one, i));
        assert_non_null(y);
        assert_int_equal(basin_tensor_bytes(x), basin_tensor_bytes(y));
        assert_memory_equal(x->data, y->data, basin_tensor_bytes(x));
    }
    basin_bundle_free(one), basin_bundle_free(two);
}

/* Rows of halos, their means and their known labels arrive: of two relations, too. */
TEST(trees_of_parts_are_those_of_the_whole) {
    needs_xgboost();
    for (int relations = 1; relations <= 2; relations++) {
        basin_network *network = fraud_new(NODES, 8, relations, false);
        basin_training_options training = fraud_training();
        basin_nodes_settings settings = fraud_settings();
        basin_training_result outcome = {.size = sizeof outcome};
        uint8_t *split = fraud_split(network);
        settings.epochs = 2, settings.trees = 4, settings.labels = true, settings.dropout = 0;
        basin_nodes_model *whole = train(&outcome, network, NULL, split, &settings, &training);
        basin_parts *parts = cut(network, PARTS);
        basin_nodes_model *apart = train(&outcome, NULL, parts, split, &settings, &training);
        assert_same_trees(whole, apart);
        double *wanted = score(whole, network, NULL, false);
        double *found = score(whole, NULL, parts, false);
        assert_near(found, wanted, 1e-6);
        free(wanted), free(found), free(split);
        basin_nodes_close(whole), basin_nodes_close(apart);
        basin_parts_close(parts);
        basin_backend_close(training.backend);
        basin_network_close(network);
    }
}

TEST(known_labels_of_directed_parts_are_refused) {
    needs_xgboost();
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = fraud_scene_of(fraud_new(NODES, 9, 1, true));
    basin_training_result outcome = {.size = sizeof outcome};
    double probability[NODES];
    s.settings.epochs = 1, s.settings.trees = 4, s.settings.labels = true;
    basin_nodes_model *whole = train(&outcome, s.network, NULL, s.part, &s.settings, &s.training);
    basin_parts *parts = cut(s.network, PARTS);
    basin_nodes_predict_options work = {0};
    whole->ensemble.share = 0.5; /* the trees are asked */
    assert_failure(
        basin_nodes_predict(probability, whole, basin_parts_face(parts), &work, &failure),
        BASIN_UNSUPPORTED, "needs the whole graph");
    basin_nodes_model *apart = train(&outcome, NULL, parts, s.part, &s.settings, &s.training);
    assert_int_equal(apart->ensemble.known.count, 0);
    assert_int_equal(apart->ensemble.fits, 4);
    basin_nodes_close(whole), basin_nodes_close(apart);
    basin_parts_close(parts);
}

TEST(a_directed_graph_is_not_streamed_in_parts) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = fraud_scene_of(fraud_new(NODES, 7, 1, true));
    double probability[NODES];
    s.settings.directions = "come", s.settings.epochs = 2;
    BASIN_AT_EXIT(free_model)
    basin_nodes_model *model = fraud_train(s.network, s.part, &s.settings, &s.training);
    basin_parts *parts = cut(s.network, PARTS);
    double *whole = score(model, s.network, NULL, false), *found = score(model, NULL, parts, false);
    assert_near(found, whole, 1e-6);
    basin_nodes_predict_options work = {.stream = true};
    assert_failure(
        basin_nodes_predict(probability, model, basin_parts_face(parts), &work, &failure),
        BASIN_UNSUPPORTED, "directed graph in parts");
    free(whole), free(found);
    basin_parts_close(parts);
}
