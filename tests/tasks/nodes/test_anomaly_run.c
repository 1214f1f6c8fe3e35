/* Runs of detectors: cut and resumed they end with the bits and the log of uncut ones; they begin
 * with a model's weights. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "support/files.h"
#include "support/folder.h"
#include "tasks/common/digest.h"
#include "tasks/nodes/fraud.h"

/* A run of two members on a small network. */
static fraud_scene scene_new(void) {
    fraud_scene s = fraud_scene_of(fraud_new(200, 4, 1, false));
    s.settings.members = 2, s.settings.epochs = 8, s.settings.fraction = 0.6;
    s.settings.batch = 16, s.settings.scaling = "quantile", s.settings.evaluate = 2;
    return s;
}

static basin_nodes_model *train(basin_training_result *outcome, const fraud_scene *s) {
    basin_nodes_data data = {.network = s->network, .part = s->part};
    basin_nodes_model *model;
    assert_ok(basin_nodes_train_with(&model, outcome, &basin_anomaly_task, &s->settings, &data,
                                     &s->training, s->least, &failure));
    return model;
}

/* Stops after `at` steps. */
static void cut(fraud_scene *s, int64_t at) {
    stopper stop = {0, at};
    basin_watch watch = {.show = stop_later, .context = &stop, .stop = is_stopping};
    basin_training_result outcome = {.size = sizeof outcome};
    s->training.watch = &watch, s->training.resume = false, s->training.restart = true;
    basin_nodes_model *model = train(&outcome, s);
    assert_true(outcome.stopped);
    assert_int_equal(basin_nodes_get_info(model)->members, at / (outcome.steps_planned + 1) + 1);
    assert_true(basin_nodes_get_info(model)->parameters > 0); /* what was learnt */
    basin_nodes_close(model);
    s->training.watch = NULL, s->training.resume = true, s->training.restart = false;
}

/* ---- logs ---- */

static int compare_logs(const char *a, const char *b) {
    BASIN_FREE_AT_EXIT char *x = timeless(a), *y = timeless(b);
    assert_string_equal(x, y);
    int lines = 0;
    for (const char *at = x; (at = strchr(at, '\n')); at++) lines++;
    return lines;
}

/* ---- resuming ---- */

/* Cut in the first member and in the second; with samples, inside an epoch. */
static void check_resumed(void **state, const char *sampling, const char *position, int64_t steps,
                          bool least) {
    fraud_scene s = scene_new();
    basin_training_result outcome = {.size = sizeof outcome};
    s.least = least;
    s.settings.implicit = strcmp(sampling, "rest") == 0;
    if (s.settings.implicit) sampling = "full", s.settings.alpha = 0.3;
    s.settings.sampling = sampling, s.settings.position = position;
    s.training.log_every = steps > 1;
    char *whole = folder_path(state, "whole.jsonl");
    s.training.log = whole;
    basin_nodes_model *straight = train(&outcome, &s);
    assert_int_equal(outcome.steps, 8 * steps);
    s.training.log = folder_path(state, "cut.jsonl");
    s.training.checkpoint = folder_path(state, "run.checkpoint");
    for (int member = 0; member < 2; member++) {
        cut(&s, (8 * member + 3) * steps + steps / 2);
        basin_nodes_model *resumed = train(&outcome, &s);
        assert_true(outcome.resumed && !outcome.stopped);
        assert_true(resumed->threshold == straight->threshold);
        assert_same_members(straight, resumed);
        assert_int_equal(compare_logs(whole, s.training.log), 2 * 8 * (steps > 1 ? steps + 1 : 1));
        assert_int_not_equal(access(s.training.checkpoint, F_OK), 0); /* not needed any more */
        basin_nodes_close(resumed);
    }
    basin_nodes_close(straight);
    fraud_scene_free(&s);
}

TEST(a_resumed_run_ends_with_the_same_bits) {
    check_resumed(state, "full", "none", 1, false);
    check_resumed(state, "rest", "none", 1, false); /* full, and descents to rest */
    check_resumed(state, "subgraph", "none", 1, false);
    check_resumed(state, "subgraph", "learned", 1, false);
    check_resumed(state, "neighbours", "none", 3, false);
    /* neighbours; scores streamed, plans given up for them */
    check_resumed(state, "auto", "none", 3, true);
    check_resumed(state, "auto", "learned", 3, true);
}

/* Without validation the last weights count, and a cut run has no best epoch. */
TEST(runs_without_validation_are_resumed) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new();
    basin_training_result outcome = {.size = sizeof outcome};
    for (int64_t i = 0; i < s.network->nodes; i++)
        if (s.part[i] == BASIN_SPLIT_VAL) s.part[i] = BASIN_SPLIT_NONE;
    basin_nodes_model *straight = train(&outcome, &s);
    assert_int_equal(outcome.best_epoch, 0);
    assert_null(basin_nodes_get_info(straight)->scores);
    assert_true(basin_nodes_get_info(straight)->threshold == 0.5);
    s.training.checkpoint = folder_path(state, "unjudged.checkpoint");
    cut(&s, 3);
    basin_nodes_model *resumed = train(&outcome, &s);
    assert_same_members(straight, resumed);
    basin_nodes_close(straight);
    basin_nodes_close(resumed);
}

/* ---- more of it ---- */

/* What the settings leave open is as the model has it; without epochs its weights are the result.
 */
TEST(a_run_begins_with_a_model) {
    char *path = folder_path(state, "first.safetensors");
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new();
    basin_nodes_model *model;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_nodes_model *first = train(&outcome, &s);
    assert_ok(basin_nodes_write(path, first, &failure));
    s.training.from = path;
    s.settings.scaling = "auto", s.settings.hops = -1, s.settings.members = 0;
    s.settings.epochs = 0, s.settings.seed = 5;
    basin_nodes_model *second = train(&outcome, &s);
    assert_string_equal(second->settings.scaling, first->settings.scaling);
    assert_same_members(first, second);
    s.settings.dim *= 2;
    assert_failure(
        fraud_try(&model, &outcome, s.network, s.part, &s.settings, &s.training, &failure),
        BASIN_BAD_SHAPE, "first.safetensors: tensor");
    basin_nodes_close(first);
    basin_nodes_close(second);
}

typedef struct heard {
    int leaks, guesses;
} heard;

static void hear(void *context, const char *line) {
    heard *h = context;
    h->leaks += strstr(line, "'feature 2' by itself has an AUROC of 1.0000") != NULL;
    h->guesses += strstr(line, "only 4 anomalous nodes for training") != NULL;
}

/* A copy of the label among the features is named, an honest column is not; so are few labels. No
 * probability is nearer to 0 than half an anomaly among the validation nodes. */
TEST(what_makes_figures_worthless_is_said) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new();
    basin_training_result outcome = {.size = sizeof outcome};
    heard h = {0};
    basin_watch watch = {.note = hear, .context = &h};
    int64_t validated = basin_split_nodes(NULL, s.part, s.network->nodes, BASIN_SPLIT_VAL);
    double floor = 0.5 / (double)(validated + 1);
    s.training.watch = &watch;
    basin_nodes_model *model = train(&outcome, &s);
    assert_int_equal(h.leaks + h.guesses, 0);
    for (int64_t i = 0; i < s.network->nodes; i++)
        assert_true(model->score[i] >= floor && model->score[i] <= 1 - floor);
    basin_nodes_close(model);
    for (int64_t i = 0, kept = 0; i < s.network->nodes; i++) {
        s.network->feature[i * s.network->features + 2] = s.network->label[i] == 1 ? -1 : 2;
        bool trains = s.part[i] == BASIN_SPLIT_TRAIN && s.network->label[i] == 1;
        if (trains && kept++ >= 4) s.part[i] = BASIN_SPLIT_TEST;
    }
    basin_nodes_close(train(&outcome, &s));
    assert_true(h.leaks == 1 && h.guesses == 1);
}

/* ---- the caller's side ---- */

/* Settings by name, files in place of a network, a split by ratio; figures of both parts. */
TEST(a_caller_trains_from_files) {
    char *path = folder_path(state, "network.basin");
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = scene_new();
    basin_settings *settings, *other;
    basin_nodes_model *model;
    basin_training_result outcome = {.size = sizeof outcome};
    char text[32];
    const char *file[] = {path};
    assert_ok(basin_network_write(path, s.network, &failure));
    assert_ok(basin_settings_new(&settings, "anomaly", NULL, &failure));
    assert_ok(basin_settings_set(settings, "epochs", "3", &failure));
    assert_ok(basin_settings_set(settings, "members", "1", &failure));
    basin_nodes_data data = {
        .path = file, .paths = 1, .split = BASIN_NODES_SPLIT_RATIO, .ratio = 0.4};
    assert_ok(basin_nodes_train(&model, &outcome, settings, &data, &s.training, &failure));
    assert_int_equal(basin_nodes_get_info(model)->nodes, 200);
    assert_int_equal(outcome.epochs, 3);
    assert_true(basin_score_get(&outcome.best, "validation_auroc") >= 0);
    const basin_score *validation = basin_nodes_get_info(model)->reached[BASIN_SPLIT_VAL];
    const basin_score *test = basin_nodes_get_info(model)->reached[BASIN_SPLIT_TEST];
    assert_true(basin_score_get(validation, "macro_f1") > 0);
    assert_true(basin_score_get(test, "recall_at_k") >= 0);
    assert_ok(basin_settings_get(text, sizeof text, basin_nodes_get_info(model)->settings, "hops",
                                 &failure));
    assert_true(!strcmp(text, "0") || !strcmp(text, "2")); /* what training chose */
    basin_nodes_close(model);
    assert_ok(basin_settings_new(&other, "image", NULL, &failure));
    assert_failure(basin_nodes_train(&model, &outcome, other, &data, &s.training, &failure),
                   BASIN_BAD_VALUE, "the task image");
    data.paths = 0;
    assert_int_equal(basin_nodes_train(&model, &outcome, settings, &data, &s.training, &failure),
                     BASIN_BAD_VALUE);
    basin_settings_free(settings);
    basin_settings_free(other);
}

int main(void) { return tests_run(folder_new, folder_remove); }
