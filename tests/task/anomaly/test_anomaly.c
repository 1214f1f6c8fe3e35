/* Detectors: a planted signal is found, also by samples; streaming gives what the whole graph
 * gives; files and checkpoints keep every bit; what cannot be learned from is told in one line. */
#include <math.h>
#include <string.h>

#include "io/folder.h"
#include "task/anomaly/file.h"
#include "task/anomaly/fraud.h"

static double test_auroc(const basin_network *network, const uint8_t *part,
                         const basin_anomaly_settings *settings, const basin_anomaly_work *work) {
    basin_anomaly_detector *detector;
    basin_anomaly_figures figures;
    basin_error error;
    double *p = calloc((size_t)network->nodes, sizeof *p);
    must(basin_anomaly_fit(&detector, network, part, settings, work, &error), &error);
    must(basin_anomaly_score(p, detector, network, work, &error), &error);
    must(basin_anomaly_measure(&figures, p, network, part, "all", &error), &error);
    basin_anomaly_free(detector);
    free(p);
    return figures.auroc;
}

/* Full graph, subgraphs and neighbours find it; without the graph there is little to find. */
static void a_planted_signal_is_found(void **state) {
    (void)state;
    basin_network *network = fraud_new(1500, 3, 1, false);
    uint8_t *part = calloc((size_t)network->nodes, 1);
    basin_error error;
    must(basin_split_stratified(part, network, 0.4, 1, 0, &error), &error);
    basin_anomaly_work work = fraud_work();
    basin_anomaly_settings settings = fraud_settings();
    settings.hops = 0; /* the block itself must carry the signal */
    double full = test_auroc(network, part, &settings, &work);
    settings.sampling = "subgraph", settings.fraction = 0.5;
    double subgraph = test_auroc(network, part, &settings, &work);
    settings.sampling = "neighbours", settings.fraction = 0.5, settings.batch = 100;
    double neighbours = test_auroc(network, part, &settings, &work);
    settings = fraud_settings();
    settings.form = "mlp", settings.hops = 0, settings.degree = false;
    double plain = test_auroc(network, part, &settings, &work);
    settings = fraud_settings();
    settings.form = "published", settings.hops = 0, settings.self_loops = "add";
    double published = test_auroc(network, part, &settings, &work);
    if (!(full > 0.9 && subgraph > 0.8 && neighbours > 0.85 && published > 0.85 && plain < 0.8))
        fail_msg("AUROC full %g subgraph %g neighbours %g published %g, without the graph %g", full,
                 subgraph, neighbours, published, plain);
    basin_backend_close(work.backend);
    basin_network_free(network);
    free(part);
}

/* ---- streaming ---- */

static void compare_stream(const char *what, const basin_network *network,
                           const basin_anomaly_settings *settings, const basin_anomaly_work *work) {
    basin_anomaly_detector *detector;
    basin_error error;
    uint8_t *part = calloc((size_t)network->nodes, 1);
    double *whole = calloc((size_t)network->nodes, sizeof *whole);
    double *stream = calloc((size_t)network->nodes, sizeof *stream);
    must(basin_split_stratified(part, network, 0.4, 1, 0, &error), &error);
    must(basin_anomaly_fit(&detector, network, part, settings, work, &error), &error);
    must(basin_anomaly_score(whole, detector, network, work, &error), &error);
    basin_anomaly_work small = *work;
    small.least = true;
    must(basin_anomaly_score(stream, detector, network, &small, &error), &error);
    double largest = 0, spread = 0;
    for (int64_t i = 0; i < network->nodes; i++) {
        largest = fmax(largest, fabs(whole[i] - stream[i]));
        spread = fmax(spread, fabs(whole[i] - whole[0]));
    }
    if (largest > 2e-5 || spread < 0.1)
        fail_msg("%s: streamed scores differ by %g (they spread by %g)", what, largest, spread);
    basin_anomaly_free(detector);
    free(part);
    free(whole);
    free(stream);
}

static void streaming_equals_the_whole(void **state) {
    (void)state;
    basin_anomaly_work work = fraud_work();
    basin_anomaly_settings settings = fraud_settings();
    basin_network *network = fraud_new(700, 5, 1, false);
    settings.epochs = 15, settings.blocks = 2, settings.steps = 2, settings.alpha = 0.5;
    compare_stream("two blocks", network, &settings, &work);
    settings.scaling = "both+quantile+bins", settings.members = 3, settings.epochs = 5;
    compare_stream("members that see different scalings", network, &settings, &work);
    settings.heads = 18, settings.head_dim = 4, settings.dim = 100, settings.members = 1;
    compare_stream("several blocks of nodes, rows that are padded", network, &settings, &work);
    settings = fraud_settings();
    settings.epochs = 15, settings.blocks = 2, settings.steps = 2, settings.alpha = 0.5;
    settings.degree_power = 0.5, settings.self_loops = "add", settings.embedding = 12;
    compare_stream("weights of nodes, self loops", network, &settings, &work);
    settings.position = "laplacian", settings.eigenvectors = 4, settings.sampling = "subgraph";
    settings.fraction = 0.5;
    compare_stream("laplacian positions", network, &settings, &work);
    settings.position = "none", settings.sampling = "full";
    settings.hopfield = false;
    compare_stream("attention alone", network, &settings, &work);
    basin_network_free(network);
    network = fraud_new(600, 6, 2, true);
    settings = fraud_settings();
    settings.epochs = 15, settings.relations = "concat";
    compare_stream("two directed relations", network, &settings, &work);
    settings.relations = "max", settings.attention = false;
    compare_stream("hopfield alone", network, &settings, &work);
    basin_network_free(network);
    basin_backend_close(work.backend);
}

/* ---- files ---- */

static void a_file_scores_as_the_detector_did(void **state) {
    char path[PATH_TEXT];
    folder_path(path, state, "model.safetensors");
    basin_anomaly_work work = fraud_work();
    basin_anomaly_settings settings = fraud_settings();
    basin_anomaly_detector *detector, *back;
    basin_error error;
    settings.members = 3, settings.epochs = 10, settings.scaling = "both+quantile+bins";
    basin_network *network = fraud_new(500, 8, 1, false), *unseen = fraud_new(300, 9, 1, false);
    uint8_t *part = calloc(500, 1);
    double a[500], b[500];
    must(basin_split_stratified(part, network, 0.4, 1, 0, &error), &error);
    must(basin_anomaly_fit(&detector, network, part, &settings, &work, &error), &error);
    must(basin_anomaly_write(path, detector, &error), &error);
    must(basin_anomaly_read(&back, path, &error), &error);
    basin_error unlike;
    if (basin_settings_match(&back->settings, &detector->settings, basin_anomaly_task.table, "f",
                             &unlike))
        fail_msg("%s", unlike.text);
    assert_true(back->threshold == detector->threshold);
    assert_int_equal(back->members, 3);
    must(basin_anomaly_score(a, detector, network, &work, &error), &error);
    must(basin_anomaly_score(b, back, network, &work, &error), &error);
    assert_memory_equal(a, b, sizeof a);
    must(basin_anomaly_score(b, back, unseen, &work, &error), &error); /* nodes never seen */
    basin_network *other = fraud_new(50, 9, 1, false);
    other->features = 5;
    assert_int_equal(basin_anomaly_score(b, back, other, &work, &error), BASIN_BAD_SHAPE);
    assert_non_null(strstr(error.text, "5 features"));
    other->features = FRAUD_FEATURES;
    basin_anomaly_free(back);
    basin_anomaly_free(detector);
    basin_network_free(network);
    basin_network_free(unseen);
    basin_network_free(other);
    basin_backend_close(work.backend);
    free(part);
}

/* What the default leaves open is settled in the detector. */
static void small_graphs_get_more_members(void **state) {
    (void)state;
    basin_anomaly_work work = fraud_work();
    basin_anomaly_settings settings = fraud_settings();
    basin_anomaly_detector *detector;
    basin_error error;
    settings.members = 0, settings.epochs = 1, settings.scaling = "auto", settings.hops = -1;
    basin_network *network = fraud_new(120, 8, 1, false);
    uint8_t part[120];
    must(basin_split_stratified(part, network, 0.4, 1, 0, &error), &error);
    must(basin_anomaly_fit(&detector, network, part, &settings, &work, &error), &error);
    assert_int_equal(detector->members, 6);
    assert_int_equal(detector->settings.members, 6);
    assert_true(detector->settings.hops == 0 || detector->settings.hops == 2);
    assert_non_null(strchr(detector->settings.scaling, '+'));
    basin_anomaly_free(detector);
    basin_network_free(network);
    basin_backend_close(work.backend);
}

/* A watcher who stops after some epochs. */
typedef struct stopper {
    volatile sig_atomic_t stop;
    int64_t at;
} stopper;

static void stop_later(void *context, const basin_news *news) {
    stopper *s = context;
    if (news->done >= s->at) s->stop = 1;
}

static void assert_same_members(const basin_anomaly_detector *a, const basin_anomaly_detector *b) {
    assert_int_equal(a->members, b->members);
    for (int64_t m = 0; m < a->members; m++)
        for (size_t i = 0; i < basin_bundle_count(a->member[m].weights); i++) {
            const basin_tensor *x = basin_bundle_at(a->member[m].weights, i);
            const basin_tensor *y = basin_bundle_at(b->member[m].weights, i);
            assert_memory_equal(x->data, y->data, basin_tensor_bytes(x));
        }
}

static void check_resumed(void **state, const char *sampling) {
    char path[PATH_TEXT];
    folder_path(path, state, "checkpoint.safetensors");
    basin_anomaly_work work = fraud_work();
    basin_anomaly_settings settings = fraud_settings();
    basin_anomaly_detector *straight, *broken, *resumed;
    basin_error error;
    settings.members = 2, settings.epochs = 8, settings.sampling = sampling,
    settings.fraction = 0.6;
    settings.batch = 64, settings.scaling = "both+quantile+bins";
    basin_network *network = fraud_new(400, 4, 1, false);
    uint8_t *part = calloc(400, 1);
    must(basin_split_stratified(part, network, 0.4, 1, 0, &error), &error);
    must(basin_anomaly_fit(&straight, network, part, &settings, &work, &error), &error);
    for (int64_t at = 3; at < 16; at += 8) { /* in the first member, in the second */
        stopper s = {0, at};
        basin_watch watch = {.show = stop_later, .context = &s, .stop = &s.stop};
        work.watch = &watch, work.checkpoint = path, work.resume = false;
        must(basin_anomaly_fit(&broken, network, part, &settings, &work, &error), &error);
        assert_true(broken->stopped);
        basin_anomaly_free(broken);
        work.watch = NULL, work.resume = true;
        must(basin_anomaly_fit(&resumed, network, part, &settings, &work, &error), &error);
        assert_true(resumed->threshold == straight->threshold);
        assert_same_members(straight, resumed);
        basin_anomaly_free(resumed);
    }
    settings.rate *= 2;
    assert_int_equal(basin_anomaly_fit(&resumed, network, part, &settings, &work, &error),
                     BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "rate"));
    basin_anomaly_free(straight);
    basin_network_free(network);
    basin_backend_close(work.backend);
    free(part);
}

/* A number that was spoiled is told, not turned into an epoch. */
static void spoiled_checkpoints_are_refused(void **state) {
    char path[PATH_TEXT];
    folder_path(path, state, "spoiled.safetensors");
    const char *const key[] = {"member", "epoch", "best_epoch", "best"};
    const char *const bad[] = {"2", "1e300", "nan", "x"};
    basin_anomaly_work work = fraud_work();
    basin_anomaly_settings settings = fraud_settings();
    basin_anomaly_detector *detector;
    basin_error error;
    settings.members = 2, settings.epochs = 8;
    basin_network *network = fraud_new(400, 4, 1, false);
    uint8_t *part = calloc(400, 1);
    must(basin_split_stratified(part, network, 0.4, 1, 0, &error), &error);
    for (int i = 0; i < 4; i++) {
        stopper s = {0, 3};
        basin_watch watch = {.show = stop_later, .context = &s, .stop = &s.stop};
        basin_bundle *bundle;
        work.watch = &watch, work.checkpoint = path, work.resume = false;
        must(basin_anomaly_fit(&detector, network, part, &settings, &work, &error), &error);
        basin_anomaly_free(detector);
        must(basin_bundle_read(&bundle, path, &error), &error);
        must(basin_bundle_meta_set(bundle, key[i], bad[i], &error), &error);
        must(basin_bundle_write(path, bundle, &error), &error);
        basin_bundle_free(bundle);
        work.watch = NULL, work.resume = true;
        assert_int_equal(basin_anomaly_fit(&detector, network, part, &settings, &work, &error),
                         BASIN_BAD_FILE);
        assert_non_null(strstr(error.text, key[i]));
    }
    basin_network_free(network);
    basin_backend_close(work.backend);
    free(part);
}

static void a_resumed_run_ends_with_the_same_bits(void **state) {
    check_resumed(state, "full");
    check_resumed(state, "neighbours");
}

/* ---- what cannot be learned from ---- */

static void check_refused(const basin_network *network, const uint8_t *part, const char *wanted) {
    basin_anomaly_work work = fraud_work();
    basin_anomaly_settings settings = fraud_settings();
    basin_anomaly_detector *detector;
    basin_error error;
    assert_int_not_equal(basin_anomaly_fit(&detector, network, part, &settings, &work, &error), 0);
    assert_null(detector);
    if (!strstr(error.text, wanted)) fail_msg("'%s' is not in '%s'", wanted, error.text);
    basin_backend_close(work.backend);
}

static void hopeless_data_are_told(void **state) {
    (void)state;
    basin_network *network = fraud_new(100, 2, 1, false);
    uint8_t part[100] = {0};
    check_refused(network, part, "no training nodes");
    for (int i = 0; i < 100; i++) part[i] = network->label[i] ? BASIN_PART_TEST : BASIN_PART_TRAIN;
    check_refused(network, part, "0 anomalous nodes for training");
    for (int i = 0; i < 100; i++)
        part[i] = i < 60 ? BASIN_PART_TRAIN : network->label[i] ? 0 : BASIN_PART_VAL;
    check_refused(network, part, "0 anomalous nodes for validation");
    free(network->label);
    network->label = NULL;
    check_refused(network, part, "no labels");
    basin_network_free(network);
}

/* ---- the memory allowed ---- */

static basin_status fit_within(size_t memory, bool least, const char *sampling,
                               const basin_network *network, const uint8_t *part,
                               basin_error *error) {
    basin_anomaly_work work = fraud_work();
    basin_anomaly_settings settings = fraud_settings();
    basin_anomaly_detector *detector;
    work.memory = memory, work.least = least;
    settings.sampling = sampling, settings.epochs = 1, settings.fraction = 0.2, settings.batch = 64;
    settings.fanout = 4;
    basin_status status = basin_anomaly_fit(&detector, network, part, &settings, &work, error);
    if (!status && least) assert_non_null(strstr(detector->how, "neighbours"));
    assert_int_equal(!status, detector != NULL);
    basin_anomaly_free(detector);
    basin_backend_close(work.backend);
    return status;
}

/* The least limit that is taken: what the run needs, to a sixteenth. */
static size_t least_limit(const char *sampling, const basin_network *network, const uint8_t *part) {
    basin_error error;
    size_t low = 1, high = (size_t)1 << 30;
    must(fit_within(high, false, sampling, network, part, &error), &error);
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
static void a_shrunk_run_is_resumed(void **state) {
    char path[PATH_TEXT];
    folder_path(path, state, "shrunk.safetensors");
    basin_anomaly_work work = fraud_work();
    basin_anomaly_settings settings = fraud_settings();
    basin_anomaly_detector *straight, *broken, *resumed;
    basin_error error;
    basin_network *network = fraud_new(400, 3, 1, false);
    uint8_t part[400];
    stopper s = {0, 2};
    basin_watch watch = {.show = stop_later, .context = &s, .stop = &s.stop};
    must(basin_split_stratified(part, network, 0.4, 1, 0, &error), &error);
    work.memory = least_limit("auto", network, part);
    settings.sampling = "auto", settings.epochs = 4, settings.fraction = 0.2, settings.batch = 64;
    settings.fanout = 4;
    must(basin_anomaly_fit(&straight, network, part, &settings, &work, &error), &error);
    assert_true(straight->settings.batch < 64);
    work.watch = &watch, work.checkpoint = path;
    must(basin_anomaly_fit(&broken, network, part, &settings, &work, &error), &error);
    assert_true(broken->stopped);
    work.watch = NULL, work.resume = true;
    must(basin_anomaly_fit(&resumed, network, part, &settings, &work, &error), &error);
    assert_int_equal(resumed->settings.batch, straight->settings.batch);
    assert_same_members(straight, resumed);
    basin_anomaly_free(straight), basin_anomaly_free(broken), basin_anomaly_free(resumed);
    basin_network_free(network);
    basin_backend_close(work.backend);
}

static void samples_stay_within_the_memory_allowed(void **state) {
    (void)state;
    static const char *const sampling[] = {"auto", "subgraph", "neighbours"};
    static const char *const wanted[] = {"--fanout", "--fraction", "--fanout"};
    basin_network *network = fraud_new(400, 3, 1, false);
    uint8_t part[400];
    basin_error error;
    size_t need[3];
    must(basin_split_stratified(part, network, 0.4, 1, 0, &error), &error);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fit_within(1, false, sampling[i], network, part, &error), BASIN_NO_MEMORY);
        if (!strstr(error.text, "allowed") || !strstr(error.text, wanted[i]))
            fail_msg("'%s' in '%s'", wanted[i], error.text);
        need[i] = least_limit(sampling[i], network, part);
        assert_true(need[i] > 400 * FRAUD_FEATURES * 3 * sizeof(float));
    }
    assert_true(need[0] < need[2] * 7 / 8); /* left open, batches become smaller */
    must(fit_within(0, true, "auto", network, part, &error), &error);
    basin_network_free(network);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_planted_signal_is_found),
        cmocka_unit_test(streaming_equals_the_whole),
        cmocka_unit_test(a_file_scores_as_the_detector_did),
        cmocka_unit_test(small_graphs_get_more_members),
        cmocka_unit_test(spoiled_checkpoints_are_refused),
        cmocka_unit_test(a_resumed_run_ends_with_the_same_bits),
        cmocka_unit_test(hopeless_data_are_told),
        cmocka_unit_test(a_shrunk_run_is_resumed),
        cmocka_unit_test(samples_stay_within_the_memory_allowed),
    };
    return cmocka_run_group_tests(tests, folder_new, folder_remove);
}
