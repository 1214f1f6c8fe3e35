/* Detectors: a planted signal is found, also by samples; streaming gives what the whole graph
 * gives; files keep every bit; what cannot be learned from is told in one line. */
#include <math.h>
#include <string.h>

#include "support/folder.h"
#include "tasks/nodes/fraud.h"

static double test_auroc(const basin_network *network, const uint8_t *part,
                         const basin_nodes_settings *settings,
                         const basin_training_options *training) {
    basin_score score;
    double *p = calloc((size_t)network->nodes, sizeof *p);
    basin_nodes_model *model = fraud_train(network, part, settings, training);
    assert_ok(basin_nodes_predict(p, model, network, NULL, &failure));
    assert_ok(
        basin_nodes_evaluate(&score, p, NULL, network, part, BASIN_SPLIT_TEST, 0.5, &failure));
    basin_nodes_close(model);
    free(p);
    return basin_score_get(&score, "auroc");
}

/* Full graph, subgraphs and neighbours find it; without the graph there is little to find. */
TEST(a_planted_signal_is_found) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = fraud_scene_of(fraud_new(1500, 3, 1, false));
    s.settings.hops = 0; /* the block itself must carry the signal */
    s.settings.sampling = "full";
    double full = test_auroc(s.network, s.part, &s.settings, &s.training);
    s.settings.sampling = "subgraph", s.settings.fraction = 0.5;
    double subgraph = test_auroc(s.network, s.part, &s.settings, &s.training);
    s.settings.sampling = "neighbours", s.settings.fraction = 0.5, s.settings.batch = 100;
    double neighbours = test_auroc(s.network, s.part, &s.settings, &s.training);
    s.settings = fraud_settings();
    s.settings.form = "mlp", s.settings.hops = 0, s.settings.degree = false;
    double plain = test_auroc(s.network, s.part, &s.settings, &s.training);
    s.settings = fraud_settings();
    s.settings.form = "published", s.settings.hops = 0, s.settings.self_loops = "add";
    double published = test_auroc(s.network, s.part, &s.settings, &s.training);
    if (!(full > 0.9 && subgraph > 0.8 && neighbours > 0.85 && published > 0.85 && plain < 0.8))
        fail_msg("AUROC full %g subgraph %g neighbours %g published %g, without the graph %g", full,
                 subgraph, neighbours, published, plain);
}

/* ---- streaming ---- */

static void compare_stream(const char *what, const basin_network *network,
                           const basin_nodes_settings *settings,
                           const basin_training_options *training) {
    uint8_t *part = fraud_split(network);
    double *whole = calloc((size_t)network->nodes, sizeof *whole);
    double *stream = calloc((size_t)network->nodes, sizeof *stream);
    basin_nodes_predict_options small = {.stream = true};
    basin_nodes_model *model = fraud_train(network, part, settings, training);
    assert_ok(basin_nodes_predict(whole, model, network, NULL, &failure));
    assert_ok(basin_nodes_predict(stream, model, network, &small, &failure));
    double largest = 0, spread = 0;
    for (int64_t i = 0; i < network->nodes; i++) {
        largest = fmax(largest, fabs(whole[i] - stream[i]));
        spread = fmax(spread, fabs(whole[i] - whole[0]));
    }
    if (largest > 2e-5 || spread < 0.1)
        fail_msg("%s: streamed scores differ by %g (they spread by %g)", what, largest, spread);
    basin_nodes_close(model);
    free(part);
    free(whole);
    free(stream);
}

TEST(streaming_equals_the_whole) {
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    basin_nodes_settings settings = fraud_settings();
    basin_network *network = fraud_new(320, 5, 1, false); /* more than a block of the wide rows */
    settings.epochs = 15, settings.blocks = 2, settings.steps = 2, settings.alpha = 0.5;
    compare_stream("two blocks", network, &settings, &training);
    settings.scaling = "quantile", settings.members = 3, settings.epochs = 5;
    compare_stream("several members", network, &settings, &training);
    settings.heads = 18, settings.head_dim = 4, settings.dim = 100, settings.members = 1;
    compare_stream("several blocks of nodes, rows that are padded", network, &settings, &training);
    settings = fraud_settings();
    settings.epochs = 15, settings.blocks = 2, settings.steps = 2, settings.alpha = 0.5;
    settings.self_loops = "add";
    compare_stream("self loops", network, &settings, &training);
    settings.sampling = "subgraph";
    settings.fraction = 0.5;
    compare_stream("subgraphs", network, &settings, &training);
    settings.position = "none", settings.sampling = "full";
    settings.hopfield_kind = "softmax";
    settings.position = "learned";
    compare_stream("learned positions", network, &settings, &training);
    settings.position = "none";
    compare_stream("memories of another kind", network, &settings, &training);
    settings.hopfield = false;
    compare_stream("attention alone", network, &settings, &training);
    basin_network_close(network);
    network = fraud_new(300, 6, 2, true);
    settings = fraud_settings();
    settings.epochs = 15, settings.relations = "concat";
    compare_stream("two directed relations", network, &settings, &training);
    settings.relations = "max", settings.attention = false;
    compare_stream("hopfield alone", network, &settings, &training);
    basin_network_close(network);
}

/* ---- reasons ---- */

/* With first weights, all near 0, log sum exp over 16 memories is near log 16. */
TEST(energies_follow_the_kind_of_memories) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = fraud_scene_of(fraud_new(100, 5, 1, false));
    basin_nodes_explanation *why;
    s.settings.epochs = 0, s.settings.hopfield_kind = "softmax", s.settings.memories = 16;
    BASIN_AT_EXIT(free_model)
    basin_nodes_model *model = fraud_train(s.network, s.part, &s.settings, &s.training);
    assert_ok(basin_nodes_explain(&why, model, s.network, &(int64_t){7}, 1, NULL, &failure));
    assert_true(fabs(why->hopfield + log(16)) < 0.3);
    assert_int_equal(why->node, 7);
    basin_nodes_explanation_free(why);
    assert_failure(basin_nodes_explain(&why, model, s.network, &(int64_t){100}, 1, NULL, &failure),
                   BASIN_BAD_VALUE, "node 100, expected 0 to 99");
}

/* ---- files ---- */

TEST(a_file_scores_as_the_detector_did) {
    char *path = folder_path(state, "model.safetensors");
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    basin_nodes_settings settings = fraud_settings();
    basin_nodes_model *back;
    settings.members = 3, settings.epochs = 10, settings.scaling = "quantile";
    BASIN_AT_EXIT(free_network)
    basin_network *network = fraud_new(500, 8, 1, false), *unseen = fraud_new(300, 9, 1, false);
    BASIN_FREE_AT_EXIT uint8_t *part = fraud_split(network);
    double a[500], b[500];
    BASIN_AT_EXIT(free_model)
    basin_nodes_model *model = fraud_train(network, part, &settings, &training);
    assert_ok(basin_nodes_write(path, model, &failure));
    assert_ok(basin_nodes_open(&back, "anomaly", path, training.backend, &failure));
    assert_ok(basin_settings_match(&back->settings, &model->settings, basin_anomaly_task.table, "f",
                                   &failure));
    assert_true(basin_nodes_get_info(back)->threshold == basin_nodes_get_info(model)->threshold);
    assert_int_equal(basin_nodes_get_info(back)->members, 3);
    assert_int_equal(basin_nodes_get_info(back)->parameters,
                     basin_nodes_get_info(model)->parameters);
    assert_int_equal(basin_nodes_get_info(back)->nodes, 500);
    assert_ok(basin_nodes_predict(a, model, network, NULL, &failure));
    assert_ok(basin_nodes_predict(b, back, network, NULL, &failure));
    assert_memory_equal(a, b, sizeof a);
    assert_memory_equal(a, basin_nodes_get_info(model)->scores, sizeof a);
    assert_null(basin_nodes_get_info(back)->scores);
    assert_ok(basin_nodes_predict(b, back, unseen, NULL, &failure)); /* nodes never seen */
    BASIN_AT_EXIT(free_network) basin_network *other = fraud_new(50, 9, 1, false);
    other->features = 5;
    assert_failure(basin_nodes_predict(b, back, other, NULL, &failure), BASIN_BAD_SHAPE,
                   "5 features");
    other->features = FRAUD_FEATURES;
    basin_nodes_close(back);
}

/* Without one of its tensors a file scores nothing, instead of something else. */
TEST(a_file_that_lacks_weights_is_refused) {
    char *path = folder_path(state, "lacking.safetensors");
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = fraud_scene_of(fraud_new(120, 8, 1, false));
    s.settings.members = 2, s.settings.epochs = 1;
    double score[120];
    basin_nodes_model *model = fraud_train(s.network, s.part, &s.settings, &s.training), *back;
    basin_bundle_free(model->member[1]);
    assert_ok(basin_bundle_new(&model->member[1], NULL, &failure));
    assert_ok(basin_nodes_write(path, model, &failure));
    assert_ok(basin_nodes_open(&back, "anomaly", path, s.training.backend, &failure));
    assert_failure(basin_nodes_predict(score, back, s.network, NULL, &failure), BASIN_BAD_FILE,
                   "lacking.safetensors: no tensor");
    basin_nodes_close(back);
    basin_nodes_close(model);
}

/* What the default leaves open is settled in the detector. */
TEST(small_graphs_get_more_members) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = fraud_scene_of(fraud_new(120, 8, 1, false));
    s.settings.members = 0, s.settings.epochs = 1, s.settings.scaling = "auto",
    s.settings.hops = -1;
    BASIN_AT_EXIT(free_model)
    basin_nodes_model *model = fraud_train(s.network, s.part, &s.settings, &s.training);
    assert_int_equal(model->members, 2);
    assert_int_equal(model->settings.members, 2);
    assert_true(model->settings.hops == 0 || model->settings.hops == 2);
    assert_true(strcmp(model->settings.scaling, "auto") != 0);
}

/* ---- learned positions of sampled nodes ---- */

static double position_at(const basin_nodes_model *model, int64_t i) {
    const basin_tensor *pos;
    assert_ok(basin_bundle_get(&pos, model->member[0], "pos", &failure));
    return basin_tensor_at(pos, i);
}

/* A subgraph of all nodes, which come in another order, is the full graph. */
TEST(positions_follow_their_nodes) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = fraud_scene_of(fraud_new(300, 6, 1, false));
    s.settings.position = "learned", s.settings.dropout = 0, s.settings.epochs = 6;
    s.settings.average = 0, s.settings.fraction = 1;
    s.settings.sampling = "full";
    basin_nodes_model *full = fraud_train(s.network, s.part, &s.settings, &s.training);
    s.settings.sampling = "subgraph";
    basin_nodes_model *sampled = fraud_train(s.network, s.part, &s.settings, &s.training);
    double moved = 0;
    for (int64_t i = 0; i < s.network->nodes * s.settings.dim; i++) {
        moved = fmax(moved, fabs(position_at(full, i)));
        assert_float_equal(position_at(full, i), position_at(sampled, i), 2e-4);
    }
    assert_true(moved > 0.05);
    basin_nodes_close(full);
    basin_nodes_close(sampled);
}

/* Of one epoch on 5 % of the nodes only theirs change; then it scores, from its file, too. */
TEST(the_papers_preset_samples) {
    BASIN_AT_EXIT(free_network) basin_network *network = fraud_new(400, 6, 1, false);
    BASIN_FREE_AT_EXIT uint8_t *part = fraud_split(network);
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    basin_nodes_settings settings;
    assert_ok(basin_settings_preset(&settings, &basin_anomaly_task, "paper-tfinance", &failure));
    settings.dim = settings.head_dim = settings.hidden = 16, settings.memories = 24;
    settings.epochs = 0;
    basin_nodes_model *before = fraud_train(network, part, &settings, &training);
    settings.epochs = 1;
    basin_nodes_model *after = fraud_train(network, part, &settings, &training);
    int64_t changed = 0;
    for (int64_t n = 0; n < network->nodes; n++) {
        bool moved = false;
        for (int64_t d = 0; d < settings.dim; d++) {
            int64_t i = n * settings.dim + d;
            moved = moved || position_at(before, i) != position_at(after, i);
        }
        changed += moved;
    }
    assert_true(changed > 0 && changed <= 20); /* 5 % of 400 */
    double *probability = calloc((size_t)network->nodes, sizeof *probability);
    assert_ok(basin_nodes_predict(probability, after, network, NULL, &failure));
    for (int64_t n = 0; n < network->nodes; n++)
        assert_true(probability[n] > 0 && probability[n] < 1);
    free(probability);
    basin_nodes_close(before);
    basin_nodes_close(after);
}

/* The released code's head reads [h(T) || embedding], of samples h(T) alone. */
TEST(published_heads) {
    static const char *const preset[] = {"published-amazon", "published-tfinance"};
    BASIN_AT_EXIT(free_network) basin_network *network = fraud_new(300, 6, 1, false);
    BASIN_FREE_AT_EXIT uint8_t *part = fraud_split(network);
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    for (int i = 0; i < 2; i++) {
        basin_nodes_settings settings;
        const basin_tensor *head;
        assert_ok(basin_settings_preset(&settings, &basin_anomaly_task, preset[i], &failure));
        settings.dim = settings.head_dim = 16, settings.memories = 24, settings.epochs = 2;
        basin_nodes_model *model = fraud_train(network, part, &settings, &training);
        assert_ok(basin_bundle_get(&head, model->member[0], "head_w", &failure));
        assert_int_equal(head->shape.dim[0], i ? 16 : 32);
        basin_nodes_close(model);
    }
}

/* ---- what cannot be learned from ---- */

static void check_refused(const basin_network *network, const uint8_t *part, const char *wanted) {
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    basin_nodes_settings settings = fraud_settings();
    basin_nodes_model *model;
    basin_training_result outcome = {.size = sizeof outcome};
    assert_failed(fraud_try(&model, &outcome, network, part, &settings, &training, &failure),
                  wanted);
    assert_null(model);
}

TEST(hopeless_data_are_told) {
    BASIN_AT_EXIT(free_network) basin_network *network = fraud_new(100, 2, 1, false);
    uint8_t part[100] = {0};
    check_refused(network, part, "no training nodes");
    for (int i = 0; i < 100; i++)
        part[i] = network->label[i] ? BASIN_SPLIT_TEST : BASIN_SPLIT_TRAIN;
    check_refused(network, part, "0 anomalous nodes for training");
    for (int i = 0; i < 100; i++)
        part[i] = i < 60 ? BASIN_SPLIT_TRAIN : network->label[i] ? 0 : BASIN_SPLIT_VAL;
    check_refused(network, part, "0 anomalous nodes for validation");
    free(network->label);
    network->label = NULL;
    check_refused(network, part, "no labels");
}

/* ---- the memory allowed ---- */

static basin_status fit_within(size_t memory, bool least, const char *sampling,
                               const basin_network *network, const uint8_t *part,
                               basin_error *error) {
    basin_training_options training = fraud_training();
    basin_nodes_settings settings = fraud_settings();
    basin_nodes_data data = {.network = network, .part = part};
    basin_nodes_model *model;
    basin_training_result outcome = {.size = sizeof outcome};
    training.memory = memory;
    settings.sampling = sampling, settings.epochs = 1, settings.fraction = 0.2;
    settings.batch = 64, settings.fanout = 4;
    basin_status status = basin_nodes_train_with(&model, &outcome, &basin_anomaly_task, &settings,
                                                 &data, &training, least, error);
    if (!status && least)
        assert_non_null(strstr(basin_nodes_get_info(model)->trained_on, "neighbours"));
    assert_int_equal(!status, model != NULL);
    basin_nodes_close(model);
    basin_backend_close(training.backend);
    return status;
}

/* The least limit that is taken: what the run needs, to a sixteenth. */
static size_t least_limit(const char *sampling, const basin_network *network, const uint8_t *part) {
    basin_error error;
    size_t low = 1, high = (size_t)1 << 30;
    assert_ok(fit_within(high, false, sampling, network, part, &failure));
    while (high - low > high / 16) {
        size_t middle = low + (high - low) / 2;
        if (fit_within(middle, false, sampling, network, part, &error))
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Batches that were halved to fit stay so where the run goes on. */
TEST(a_shrunk_run_is_resumed) {
    char *path = folder_path(state, "shrunk.checkpoint");
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    basin_nodes_settings settings = fraud_settings();
    BASIN_AT_EXIT(free_network) basin_network *network = fraud_new(400, 3, 1, false);
    BASIN_FREE_AT_EXIT uint8_t *part = fraud_split(network);
    stopper s = {0, 2};
    basin_watch watch = {.show = stop_later, .context = &s, .stop = is_stopping};
    training.memory = least_limit("auto", network, part);
    settings.sampling = "auto", settings.epochs = 4, settings.fraction = 0.2;
    settings.batch = 64, settings.fanout = 4;
    basin_nodes_model *straight = fraud_train(network, part, &settings, &training);
    assert_true(straight->settings.batch < 64);
    training.watch = &watch, training.checkpoint = path;
    basin_nodes_close(fraud_train(network, part, &settings, &training));
    assert_true(s.stop);
    training.watch = NULL, training.resume = true;
    basin_nodes_model *resumed = fraud_train(network, part, &settings, &training);
    assert_int_equal(resumed->settings.batch, straight->settings.batch);
    assert_same_members(straight, resumed);
    basin_nodes_close(straight), basin_nodes_close(resumed);
}

/* At most 8,192 nodes an epoch, five validations; a run that goes on keeps both. */
TEST(epochs_of_large_graphs_are_short) {
    char *path = folder_path(state, "pace.checkpoint");
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    basin_nodes_settings settings = fraud_settings();
    BASIN_AT_EXIT(free_network) basin_network *network = fraud_new(120, 3, 1, false);
    BASIN_FREE_AT_EXIT uint8_t *part = fraud_split(network);
    stopper s = {0, 2};
    basin_watch watch = {.show = stop_later, .context = &s, .stop = is_stopping};
    settings.sampling = "neighbours", settings.fraction = 0, settings.evaluate = 0;
    settings.batch = 1, settings.fanout = 0, settings.epochs = 30;
    training.watch = &watch, training.checkpoint = path;
    basin_nodes_close(fraud_train(network, part, &settings, &training));
    assert_true(s.stop);
    training.watch = NULL, training.resume = true;
    basin_nodes_model *model = fraud_train(network, part, &settings, &training);
    assert_true(model->settings.fraction == 1);
    assert_int_equal(model->settings.fanout, 2);
    assert_int_equal(model->settings.evaluate, 6);
    basin_nodes_close(model);
    training.checkpoint = NULL, training.resume = false;
    settings.sampling = "full", settings.epochs = 1;
    model = fraud_train(network, part, &settings, &training);
    assert_int_equal(model->settings.evaluate, 4);
    basin_nodes_close(model);
}

TEST(samples_stay_within_the_memory_allowed) {
    static const char *const sampling[] = {"auto", "subgraph", "neighbours"};
    static const char *const wanted[] = {"fanout", "a smaller fraction", "fanout"};
    BASIN_AT_EXIT(free_network) basin_network *network = fraud_new(400, 3, 1, false);
    uint8_t part[400];
    basin_error error;
    size_t need[3];
    assert_ok(basin_split_stratified(part, network, 0.4, 1, 0, &failure));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fit_within(1, false, sampling[i], network, part, &error), BASIN_NO_MEMORY);
        if (!strstr(error.text, "allowed") || !strstr(error.text, wanted[i]))
            fail_msg("'%s' in '%s'", wanted[i], error.text);
        need[i] = least_limit(sampling[i], network, part);
        assert_true(need[i] > 400 * FRAUD_FEATURES * 3 * sizeof(float));
    }
    assert_true(need[0] < need[2] * 7 / 8); /* left open, batches become smaller */
    assert_ok(fit_within(0, true, "auto", network, part, &failure));
}

int main(void) { return tests_run(folder_new, folder_remove); }
