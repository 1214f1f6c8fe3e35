/* Models of classes: what is planted is found, whole and in samples; streaming gives what
 * the whole graph gives; files keep every bit and the names of classes; reasons add up; what cannot
 * be learned from is told in one line. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "support/folder.h"
#include "tasks/nodes/fraud.h"
#include "tasks/nodes/net.h"

enum { NODES = 300, CLASSES = 3, FEATURES = 5 };
static const char *const names[CLASSES] = {"ash", "birch", "cedar"};

/* Three classes; a node's own features say little, its neighbours are mostly of its class. */
static basin_network *woods_of(const float *x, int64_t features, bool directed) {
    int32_t *y = calloc(NODES, sizeof *y), *edge = calloc((size_t)NODES * 8, sizeof *edge);
    basin_network *network;
    for (int64_t i = 0; i < NODES; i++) {
        y[i] = (int32_t)(i % CLASSES);
        for (int k = 0; k < 4; k++) {
            int64_t far = (int64_t)(coin(5, 2, 4 * i + k) * NODES / CLASSES) * CLASSES;
            bool same = coin(5, 3, 4 * i + k) < 0.9;
            edge[2 * (4 * i + k)] = (int32_t)i;
            edge[2 * (4 * i + k) + 1] = (int32_t)(far + (same ? y[i] : (i + 1) % CLASSES));
        }
    }
    basin_edges edges = {edge, edge + 1, BASIN_I32, 2, (int64_t)NODES * 4};
    basin_network_arrays arrays = {.nodes = NODES,
                                   .features = features,
                                   .feature = x,
                                   .label = y,
                                   .relations = 1,
                                   .edges = &edges};
    basin_network_options options = {.directed = directed};
    assert_ok(basin_network_from_arrays(&network, &arrays, &options, &failure));
    free(y), free(edge);
    return network;
}

static basin_network *woods(bool named, bool directed) {
    float *x = calloc((size_t)NODES * FEATURES, sizeof *x);
    for (int64_t i = 0; i < NODES; i++)
        for (int f = 0; f < FEATURES; f++)
            x[i * FEATURES + f] =
                (float)(coin(5, 1, i * FEATURES + f) + 0.4 * (double)(f == i % CLASSES));
    basin_network *network = woods_of(x, FEATURES, directed);
    if (named) assert_ok(basin_network_set_classes(network, names, CLASSES, &failure));
    free(x);
    return network;
}

static basin_nodes_settings quick(void) {
    basin_nodes_settings s;
    assert_int_equal(basin_settings_preset(&s, &basin_node_task, "default", NULL), BASIN_OK);
    s.scaling = "standard", s.hops = 0, s.smoothing = 3, s.members = 1, s.epochs = 40;
    s.dim = 16, s.heads = 2, s.head_dim = 8, s.memories = 16;
    s.dropout = s.input_dropout = 0.1, s.decay = 0.02;
    return s;
}

static basin_nodes_model *learn(const basin_network *network, const uint8_t *part,
                                const basin_nodes_settings *settings,
                                const basin_training_options *training) {
    basin_nodes_data data = {.network = network, .part = part};
    basin_nodes_model *model;
    basin_training_result outcome = {.size = sizeof outcome};
    assert_ok(basin_nodes_train_with(&model, &outcome, &basin_node_task, settings, &data, training,
                                     false, &failure));
    return model;
}

static double test_accuracy(const basin_network *network, const basin_nodes_settings *settings,
                            const basin_training_options *training) {
    uint8_t *part = fraud_split(network);
    basin_nodes_model *model = learn(network, part, settings, training);
    double accuracy =
        basin_score_get(basin_nodes_get_info(model)->reached[BASIN_SPLIT_TEST], "accuracy");
    basin_nodes_close(model);
    free(part);
    return accuracy;
}

TEST(classes_are_told_apart) {
    BASIN_AT_EXIT(free_network) basin_network *network = woods(false, false);
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    basin_nodes_settings s = quick();
    double full = test_accuracy(network, &s, &training);
    s.sampling = "neighbours", s.fraction = 0.5, s.batch = 40;
    double sampled = test_accuracy(network, &s, &training);
    s = quick(), s.smoothing = 0;
    double block = test_accuracy(network, &s, &training);
    s.form = "mlp", s.hidden = 16;
    double alone = test_accuracy(network, &s, &training);
    if (!(full > 0.9 && sampled > 0.85 && block > 0.85 && alone < 0.8))
        fail_msg("accuracy full %g sampled %g without smoothing %g without the graph %g", full,
                 sampled, block, alone);
}

static bool stop_at_once(void *context) {
    (void)context;
    return true;
}

/* A run that is stopped while it chooses inputs has chosen nothing: resumed, it chooses anew. */
TEST(nothing_is_chosen_by_half) {
    char *path = folder_path(state, "half.checkpoint");
    BASIN_AT_EXIT(free_network) basin_network *network = woods(false, false);
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    BASIN_FREE_AT_EXIT uint8_t *part = fraud_split(network);
    basin_nodes_data data = {.network = network, .part = part};
    basin_nodes_settings s = quick();
    basin_nodes_model *stopped;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_watch watch = {.stop = stop_at_once};
    s.hops = s.smoothing = -1, s.epochs = 2;
    basin_nodes_model *straight = learn(network, part, &s, &training);
    training.checkpoint = path, training.watch = &watch;
    assert_ok(basin_nodes_train_with(&stopped, &outcome, &basin_node_task, &s, &data, &training,
                                     false, &failure));
    assert_true(!stopped && outcome.stopped);
    assert_int_not_equal(access(path, F_OK), 0);
    training.watch = NULL, training.resume = true;
    basin_nodes_model *resumed = learn(network, part, &s, &training);
    assert_int_equal(resumed->settings.hops, straight->settings.hops);
    assert_int_equal(resumed->settings.smoothing, straight->settings.smoothing);
    training.checkpoint = NULL;
    basin_nodes_close(straight), basin_nodes_close(resumed);
}

/* ---- streaming ---- */

static void compare(const char *what, const basin_network *network,
                    const basin_nodes_settings *settings, const basin_training_options *training) {
    uint8_t *part = fraud_split(network);
    double *whole = calloc((size_t)NODES * CLASSES, sizeof *whole), largest = 0, spread = 0;
    double *stream = calloc((size_t)NODES * CLASSES, sizeof *stream);
    basin_nodes_predict_options small = {.stream = true};
    basin_nodes_model *model = learn(network, part, settings, training);
    assert_ok(basin_nodes_predict(whole, model, network, NULL, &failure));
    assert_ok(basin_nodes_predict(stream, model, network, &small, &failure));
    for (int64_t i = 0; i < NODES * CLASSES; i++) {
        largest = fmax(largest, fabs(whole[i] - stream[i]));
        spread = fmax(spread, fabs(whole[i] - whole[0]));
    }
    if (largest > 2e-5 || spread < 0.1)
        fail_msg("%s: streamed probabilities differ by %g (they spread by %g)", what, largest,
                 spread);
    basin_nodes_close(model);
    free(part), free(whole), free(stream);
}

TEST(streaming_equals_the_whole) {
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    BASIN_AT_EXIT(free_network)
    basin_network *network = woods(false, false), *one_way = woods(false, true);
    basin_nodes_settings s = quick();
    s.epochs = 10;
    compare("smoothed", network, &s, &training);
    s.smoothing = 0, s.members = 2;
    compare("two members, not smoothed", network, &s, &training);
    s = quick();
    s.epochs = 10, s.self_loops = "add";
    compare("self loops", network, &s, &training);
    compare("edges in one direction, self loops", one_way, &s, &training);
    s.self_loops = "keep";
    compare("edges in one direction", one_way, &s, &training);
}

/* The same woods, each tree with six words of 400. */
static basin_network *papers(void) {
    enum { WORDS = 400, EACH = 6 };
    float *x = calloc((size_t)NODES * WORDS, sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < NODES; i++)
        for (int k = 0; k < EACH; k++) {
            bool own = coin(5, 7, i * EACH + k) < 0.3;
            double word =
                coin(5, 8, i * EACH + k) * (own ? 20 : WORDS) + (own ? 20.0 * (double)(i % 3) : 0);
            x[i * WORDS + (int64_t)word] = 1;
        }
    basin_network *network = woods_of(x, WORDS, false);
    free(x);
    return network;
}

/* Bags of words are read as lists where the graph is whole, in full where it is streamed. */
TEST(words_are_read_as_lists) {
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    BASIN_AT_EXIT(free_network) basin_network *network = papers();
    basin_nodes_settings s = quick();
    basin_node_inputs inputs;
    basin_scaler scale = {.kind = BASIN_SCALE_ROWS}, none = {0};
    s.scaling = "rows";
    assert_ok(basin_node_inputs_open(&inputs, network, &s, &failure));
    assert_ok(basin_node_inputs_scale(&inputs, &scale, &none, &failure));
    assert_true(inputs.shape.listed > NODES && inputs.shape.listed <= 6 * NODES);
    basin_node_inputs_close(&inputs);
    compare("words", network, &s, &training);
}

/* ---- files and names ---- */

TEST(files_keep_classes) {
    char text[BASIN_MAX_NODE];
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    BASIN_AT_EXIT(free_network) basin_network *network = woods(true, false), *mapped;
    basin_nodes_settings s = quick();
    BASIN_FREE_AT_EXIT uint8_t *part = fraud_split(network);
    basin_nodes_model *model = learn(network, part, &s, &training), *read;
    basin_nodes_model *detector;
    double p[NODES * CLASSES], q[NODES * CLASSES];
    char *path = folder_path(state, "model.safetensors");
    assert_ok(basin_nodes_write(path, model, &failure));
    assert_ok(basin_nodes_open(&read, "node", path, training.backend, &failure));
    assert_int_equal(basin_nodes_get_info(read)->classes, CLASSES);
    for (int c = 0; c < CLASSES; c++) assert_string_equal(basin_nodes_class(read, c), names[c]);
    assert_null(basin_nodes_class(read, CLASSES));
    assert_null(basin_nodes_class(read, -1));
    assert_ok(basin_nodes_predict(p, model, network, NULL, &failure));
    /* A mapped network keeps the names, too. */
    char *map = folder_path(state, "woods.basin");
    assert_ok(basin_network_write(map, network, &failure));
    assert_ok(basin_network_open(&mapped, (const char *[]){map}, 1, NULL, &failure));
    assert_ok(basin_nodes_predict(q, read, mapped, NULL, &failure));
    assert_memory_equal(p, q, sizeof p);
    assert_string_equal(basin_network_class(mapped, 1, text), "birch");
    assert_int_equal(basin_network_set_classes(mapped, names, CLASSES, &failure), BASIN_BAD_VALUE);
    assert_failure(basin_nodes_open(&detector, "anomaly", path, training.backend, &failure),
                   BASIN_BAD_FILE, "the model is 'node', expected 'anomaly'");
    basin_nodes_close(read);
    basin_nodes_close(model);
}

/* Labels are compared by name, whatever their numbers; unknown names are mistakes. */
TEST(classes_go_by_name) {
    basin_training_options training = fraud_training();
    BASIN_AT_EXIT(free_network) basin_network *network = woods(true, false);
    basin_nodes_settings s = quick();
    basin_score score, other;
    uint8_t *part = fraud_split(network), *all = calloc(NODES, 1);
    basin_nodes_model *model = learn(network, part, &s, &training);
    double p[NODES * CLASSES];
    int64_t right = 0;
    memset(all, BASIN_SPLIT_TEST, NODES);
    assert_ok(basin_nodes_predict(p, model, network, NULL, &failure));
    assert_ok(basin_nodes_evaluate(&score, p, model, network, all, BASIN_SPLIT_TEST, 0, &failure));
    for (int64_t i = 0; i < NODES; i++)
        right += basin_best_class(p + i * CLASSES, CLASSES) == network->label[i];
    assert_true(fabs((double)right / NODES - basin_score_get(&score, "accuracy")) < 1e-12);
    /* The same names by other numbers: a rotation of both. */
    char *text = network->class_name.text;
    memcpy(text, "cedar\0ash\0birch", 16);
    network->class_name.at[1] = 6, network->class_name.at[2] = 10;
    for (int64_t i = 0; i < NODES; i++) network->label[i] = (network->label[i] + 1) % CLASSES;
    assert_ok(basin_nodes_evaluate(&other, p, model, network, all, BASIN_SPLIT_TEST, 0, &failure));
    assert_true(basin_score_get(&other, "accuracy") == basin_score_get(&score, "accuracy"));
    assert_true(basin_score_get(&other, "auroc") == basin_score_get(&score, "auroc"));
    memcpy(text, "larch", 5); /* was cedar */
    assert_ok(basin_nodes_evaluate(&other, p, model, network, all, BASIN_SPLIT_TEST, 0, &failure));
    assert_true(basin_score_get(&other, "accuracy") < 0.67);
    basin_nodes_close(model);
    basin_backend_close(training.backend);
    free(part), free(all);
}

/* ---- reasons ---- */

/* What is explained of a class is the probability that was predicted, and its odds. */
TEST(reasons_are_of_the_prediction) {
    BASIN_AT_EXIT(free_training) basin_training_options training = fraud_training();
    BASIN_AT_EXIT(free_network) basin_network *network = woods(true, false);
    basin_nodes_settings s = quick();
    BASIN_FREE_AT_EXIT uint8_t *part = fraud_split(network);
    basin_nodes_model *model = learn(network, part, &s, &training);
    basin_nodes_explanation *why;
    double p[NODES * CLASSES];
    assert_ok(basin_nodes_predict(p, model, network, NULL, &failure));
    for (int64_t c = 0; c < CLASSES; c++) {
        assert_ok(basin_nodes_explain(&why, model, network, &(int64_t){7}, 1,
                                      &(basin_nodes_explain_options){.number = c, .probability = p},
                                      &failure));
        double odds = log(p[7 * CLASSES + c] / (1 - p[7 * CLASSES + c]));
        assert_true(fabs(why->probability - p[7 * CLASSES + c]) < 1e-5);
        assert_true(fabs(why->logit - odds) < 1e-2);
        basin_nodes_explanation_free(why);
        assert_ok(basin_nodes_explain(&why, model, network, &(int64_t){7}, 1,
                                      &(basin_nodes_explain_options){.number = c, .stream = true},
                                      &failure));
        assert_true(fabs(why->probability - p[7 * CLASSES + c]) < 1e-5); /* of streamed scores */
        basin_nodes_explanation_free(why);
    }
    assert_failure(basin_nodes_explain(&why, model, network, &(int64_t){7}, 1,
                                       &(basin_nodes_explain_options){.number = CLASSES}, &failure),
                   BASIN_BAD_VALUE, "class 3, expected 0 to 2");
    assert_failure(basin_nodes_report("never.html", model, network,
                                      &(basin_nodes_report_options){0}, &failure),
                   BASIN_UNSUPPORTED, "needs a detector");
    basin_nodes_close(model);
}

/* ---- what is refused ---- */

static void expect(const basin_network *network, const uint8_t *part,
                   const basin_nodes_settings *settings, const char *wanted) {
    basin_training_options training = fraud_training();
    basin_nodes_data data = {.network = network, .part = part};
    basin_nodes_model *model;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_error error;
    basin_status status = basin_nodes_train_with(&model, &outcome, &basin_node_task, settings,
                                                 &data, &training, false, &error);
    assert_int_not_equal(status, BASIN_OK);
    if (!strstr(error.text, wanted)) fail_msg("'%s', expected '%s'", error.text, wanted);
    basin_backend_close(training.backend);
}

TEST(what_cannot_be_learned_is_said) {
    BASIN_AT_EXIT(free_network) basin_network *network = woods(false, false);
    basin_nodes_settings s = quick();
    BASIN_FREE_AT_EXIT uint8_t *part = fraud_split(network);
    s.smoothing = 3, s.relations = "max";
    expect(network, part, &s, "smoothing 3 with relations max");
    s = quick();
    for (int64_t i = 0; i < NODES; i++)
        if (network->label[i] && part[i] == BASIN_SPLIT_TRAIN) part[i] = BASIN_SPLIT_NONE;
    expect(network, part, &s, "the training nodes have 1 class; needs 2");
    for (int64_t i = 0; i < NODES; i++) network->label[i] = -1;
    expect(network, part, &s, "is to be trained on and has no label");
}

int main(void) { return tests_run(folder_new, folder_remove); }
