/* Graph networks in place of the Energy Transformer, in the same run: each finds a planted signal,
 * on the full graph and on samples; files, relations, reasons; and what has no effect is refused.
 */
#include <math.h>
#include <string.h>

#include "io/folder.h"
#include "task/anomaly/fraud.h"

static const char *const archs[] = {"bwgnn", "gt", "gcn", "gat", "sage"};
enum { ARCHS = sizeof archs / sizeof *archs };

static basin_anomaly_settings rival_settings(const char *arch) {
    basin_anomaly_settings s;
    char preset[32];
    snprintf(preset, sizeof preset, "rival-%s", arch);
    assert_int_equal(basin_settings_preset(&s, &basin_anomaly_task, preset, NULL), BASIN_OK);
    s.dim = 16, s.epochs = 40;
    return s;
}

static double auroc(const basin_network *network, const uint8_t *part,
                    const basin_anomaly_settings *settings, const basin_training *training) {
    basin_anomaly_model *model = fraud_train(network, part, settings, training);
    double value = basin_score_get(basin_anomaly_reached(model, BASIN_PART_TEST), "auroc");
    basin_anomaly_close(model);
    return value;
}

static void each_finds_a_planted_signal(void **state) {
    (void)state;
    basin_network *network = fraud_new(800, 3, 1, false);
    uint8_t *part = fraud_split(network);
    basin_training training = fraud_training();
    for (int i = 0; i < ARCHS; i++) {
        basin_anomaly_settings settings = rival_settings(archs[i]);
        assert_string_equal(settings.arch, archs[i]);
        double full = auroc(network, part, &settings, &training);
        settings.sampling = "neighbours", settings.fraction = 0.5, settings.batch = 100;
        double neighbours = auroc(network, part, &settings, &training);
        settings.sampling = "subgraph", settings.dropout = 0.1;
        double subgraph = auroc(network, part, &settings, &training);
        if (!(full > 0.88 && neighbours > 0.85 && subgraph > 0.75))
            fail_msg("%s: AUROC full %g, neighbours %g, subgraph %g", archs[i], full, neighbours,
                     subgraph);
    }
    basin_backend_close(training.backend);
    basin_network_free(network);
    free(part);
}

/* The file tells the arch; scores and reasons come from it. */
static void a_file_scores_as_the_rival_did(void **state) {
    char path[PATH_TEXT];
    basin_network *network = fraud_new(400, 6, 2, false);
    folder_path(path, state, "rival.safetensors");
    uint8_t *part = fraud_split(network);
    basin_training training = fraud_training();
    double *again = calloc((size_t)network->nodes, sizeof *again);
    for (int i = 0; i < ARCHS; i++) {
        basin_anomaly_settings settings = rival_settings(archs[i]);
        basin_anomaly_model *read;
        basin_anomaly_explanation *why;
        basin_error error;
        settings.epochs = 5, settings.relations = i % 2 ? "concat" : "max", settings.hidden = 4;
        basin_anomaly_model *model = fraud_train(network, part, &settings, &training);
        must(basin_anomaly_write(path, model, &error), &error);
        must(basin_anomaly_open(&read, path, training.backend, &error), &error);
        assert_string_equal(read->settings.arch, archs[i]);
        assert_int_equal(read->relations, 2);
        must(basin_anomaly_score(again, read, network, NULL, &error), &error);
        for (int64_t n = 0; n < network->nodes; n++)
            assert_true(fabs(again[n] - basin_anomaly_scores(model)[n]) < 1e-6);
        must(basin_anomaly_explain(&why, read, network, 3, NULL, &error), &error);
        assert_false(why->has_energy);
        assert_false(why->has_attention);
        assert_true(why->features > 0);
        for (int64_t n = 1; n < why->neighbours; n++) /* without attention, by their push */
            assert_true(fabs(why->neighbour[n - 1].push) >= fabs(why->neighbour[n].push));
        basin_anomaly_explanation_free(why);
        basin_anomaly_close(read);
        basin_anomaly_close(model);
    }
    free(again);
    free(part);
    basin_backend_close(training.backend);
    basin_network_free(network);
}

static void expect_refusal(const basin_anomaly_settings *settings, const char *wanted) {
    basin_error error = {0};
    assert_int_equal(basin_anomaly_check(settings, &error), BASIN_BAD_VALUE);
    if (!strstr(error.text, wanted)) fail_msg("'%s', wanted '%s'", error.text, wanted);
}

static void settings_without_effect_are_refused(void **state) {
    (void)state;
    basin_anomaly_settings s;
    for (int i = 0; i < ARCHS; i++) {
        basin_error error;
        s = rival_settings(archs[i]);
        must(basin_anomaly_check(&s, &error), &error);
        s.alpha = 0.5;
        expect_refusal(&s, "alpha is 0.5, which has no effect with arch");
    }
    s = rival_settings("gcn");
    s.heads = 4;
    expect_refusal(&s, "heads is 4, which has no effect with arch gcn; wanted 2");
    s = rival_settings("gat");
    s.form = "mlp";
    expect_refusal(&s, "form is mlp");
    s = rival_settings("gt");
    s.heads = 5;
    expect_refusal(&s, "dim is 16 and heads 5");
    s = rival_settings("gt");
    s.position = "learned";
    expect_refusal(&s, "position is learned");
    s = rival_settings("bwgnn");
    s.recompute = true;
    expect_refusal(&s, "recompute is on");
    assert_int_equal(basin_settings_preset(&s, &basin_anomaly_task, "default", NULL),
                     BASIN_OK); /* its training with another arch is fine */
    s.arch = "sage";
    basin_error error;
    must(basin_anomaly_check(&s, &error), &error);
}

/* A graph that does not fit is not streamed through a rival. */
static void streams_are_refused(void **state) {
    (void)state;
    basin_network *network = fraud_new(300, 6, 1, false);
    uint8_t *part = fraud_split(network);
    basin_training training = fraud_training();
    basin_anomaly_settings settings = rival_settings("bwgnn");
    basin_anomaly_work small = {.size = sizeof small, .least = true};
    double probability[300];
    basin_error error = {0};
    settings.epochs = 2;
    basin_anomaly_model *model = fraud_train(network, part, &settings, &training);
    assert_int_equal(basin_anomaly_score(probability, model, network, &small, &error),
                     BASIN_UNSUPPORTED);
    assert_non_null(strstr(error.text, "arch bwgnn cannot be streamed"));
    basin_anomaly_close(model);
    free(part);
    basin_backend_close(training.backend);
    basin_network_free(network);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_finds_a_planted_signal),
        cmocka_unit_test(a_file_scores_as_the_rival_did),
        cmocka_unit_test(settings_without_effect_are_refused),
        cmocka_unit_test(streams_are_refused),
    };
    return cmocka_run_group_tests(tests, folder_new, folder_remove);
}
