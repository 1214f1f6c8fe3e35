/* Runs of the graph task: those that are cut end with the bits and the log of those that are not,
 * damaged checkpoints are refused, models are trained further. */
#include <math.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "support/files.h"
#include "support/folder.h"
#include "tasks/common/digest.h"
#include "tasks/graphs/graph_world.h"

enum { GRAPHS = 20, TRAINS = 15 };

typedef struct scene {
    void **state;
    basin_graphset set;
    basin_backend *backend;
    basin_graphs_settings settings;
    bool choose; /* five graphs are for validation */
    char *output, *log, checkpoint[PATH_TEXT + 20];
    char note[1000]; /* all of them */
} scene;

static void note(void *context, const char *line) {
    scene *s = context;
    size_t used = strlen(s->note);
    snprintf(s->note + used, sizeof s->note - used, "%s\n", line);
}

static void scene_open(scene *s, void **state) {
    *s = (scene){.state = state, .settings = world_settings(), .choose = true};
    world_new(&s->set, BASIN_GRAPHS_CLASSES, GRAPHS, 4, NULL);
    assert_ok(basin_backend_open(&s->backend, &(basin_compute){.threads = 1}, &failure));
}

static void scene_close(scene *s) {
    basin_backend_close(s->backend);
    basin_graphset_free(&s->set);
}

/* Files of the run called `name`. */
static void name_files(scene *s, const char *name) {
    char text[100];
    snprintf(text, sizeof text, "%s.safetensors", name);
    s->output = folder_path(s->state, text);
    snprintf(text, sizeof text, "%s.jsonl", name);
    s->log = folder_path(s->state, text);
    snprintf(s->checkpoint, sizeof s->checkpoint, "%s.checkpoint", s->output);
}

typedef struct stopper {
    scene *scene;
    bool stop;
    int64_t steps, limit;
} stopper;

static void count_steps(void *context, const basin_progress_report *news) {
    stopper *s = context;
    (void)news;
    if (++s->steps == s->limit) s->stop = true;
}

static bool is_stopping(void *context) { return ((stopper *)context)->stop; }

static void stopper_note(void *context, const char *line) {
    note(((stopper *)context)->scene, line);
}

/* Trains for `limit` steps at most; 0: to the end. */
static basin_status train(basin_graphs_model **model, basin_training_result *outcome, scene *s,
                          basin_training_options training, int64_t limit, basin_error *error) {
    int64_t *all = basin_graphs_range(0, GRAPHS);
    stopper stop = {.scene = s, .limit = limit};
    basin_watch watch = {
        .show = count_steps, .note = stopper_note, .context = &stop, .stop = is_stopping};
    basin_settings settings = {.kind = &basin_graphs_task, .values = &s->settings};
    basin_graphs_train_data data = {.set = &s->set,
                                    .graph = all,
                                    .graphs = TRAINS,
                                    .validation = all + TRAINS,
                                    .validations = s->choose ? GRAPHS - TRAINS : 0};
    training.backend = s->backend;
    training.watch = &watch;
    if (!(training.dry_run_seconds > 0)) training.output = s->output, training.log = s->log;
    basin_status status = basin_graphs_train(model, outcome, &settings, &data, &training, error);
    free(all);
    return status;
}

static basin_training_result trained(scene *s, basin_training_options training, int64_t limit) {
    basin_training_result outcome = {.size = sizeof outcome};
    assert_ok(train(NULL, &outcome, s, training, limit, &failure));
    return outcome;
}

static basin_status refused(basin_error *error, scene *s, basin_training_options training) {
    basin_training_result outcome = {.size = sizeof outcome};
    return train(NULL, &outcome, s, training, 0, error);
}

/* Cuts a run after each of the limits, then lets it end: as one that was not cut. */
static void survives(scene *s, int64_t log_every, const int64_t *limit, int cuts) {
    basin_training_options training = {.log_every = log_every, .resume = true};
    name_files(s, "whole");
    char *whole = s->output;
    basin_training_result end = trained(s, training, 0);
    char *want = timeless(s->log);
    name_files(s, "cut");
    for (int i = 0; i < cuts; i++) {
        basin_training_result outcome = trained(s, training, limit[i]);
        assert_true(outcome.stopped);
        assert_int_equal(access(s->checkpoint, F_OK), 0);
    }
    basin_training_result outcome = trained(s, training, 0);
    char *got = timeless(s->log);
    world_same_files(whole, s->output, 0);
    assert_string_equal(got, want);
    assert_true(outcome.loss == end.loss && outcome.best.merit == end.best.merit);
    assert_int_equal(outcome.best_epoch, end.best_epoch);
    assert_int_not_equal(access(s->checkpoint, F_OK), 0);
    free(want), free(got);
}

/* An epoch has two steps. The first cut is in the second epoch, the next at the end of a third. */
TEST_WITH(resumes_inside_an_epoch, folder_new, folder_remove) {
    BASIN_AT_EXIT(scene_close) scene s;
    static const int64_t limit[] = {3, 3, 1};
    scene_open(&s, state);
    s.settings.batch = 8;
    survives(&s, 0, limit, 3);
}

TEST_WITH(resumes_at_rest_points, folder_new, folder_remove) {
    BASIN_AT_EXIT(scene_close) scene s;
    static const int64_t limit[] = {3, 1};
    scene_open(&s, state);
    s.settings.batch = 8, s.settings.implicit = true, s.settings.alpha = 0.3;
    survives(&s, 0, limit, 2);
}

TEST_WITH(resumes_without_validation, folder_new, folder_remove) {
    BASIN_AT_EXIT(scene_close) scene s;
    static const int64_t limit[] = {2, 3, 4};
    scene_open(&s, state);
    s.settings.batch = 4;
    s.choose = false;
    survives(&s, 1, limit, 3);
}

/* Every line of steps has the losses of just these steps. */
TEST_WITH(step_lines_have_their_losses, folder_new, folder_remove) {
    BASIN_AT_EXIT(scene_close) scene s;
    scene_open(&s, state);
    s.settings.batch = 8, s.settings.epochs = 1;
    name_files(&s, "steps");
    trained(&s, (basin_training_options){.log_every = 1}, 0);
    BASIN_FREE_AT_EXIT char *text = timeless(s.log);
    double loss[3];
    char *line = text;
    for (int i = 0; i < 3; i++, line = strchr(line, '\n') + 1) {
        cJSON *object = cJSON_Parse(line);
        const cJSON *item = cJSON_GetObjectItem(object, "loss");
        assert_true(cJSON_IsNumber(item));
        loss[i] = item->valuedouble;
        cJSON_Delete(object);
    }
    assert_true(fabs((8 * loss[0] + 7 * loss[1]) / 15 - loss[2]) < 1e-12);
}

TEST_WITH(begins_where_there_is_no_checkpoint, folder_new, folder_remove) {
    BASIN_AT_EXIT(scene_close) scene s;
    scene_open(&s, state);
    s.settings.epochs = 1;
    name_files(&s, "first");
    assert_false(trained(&s, (basin_training_options){.resume = true}, 0).resumed);
    assert_non_null(strstr(s.note, "no checkpoint to resume: the run begins"));
    basin_training_result again = trained(&s, (basin_training_options){.resume = true}, 0);
    assert_true(again.finished_before && again.parameters > 0);
}

TEST_WITH(refuses_other_graphs_and_settings, folder_new, folder_remove) {
    BASIN_AT_EXIT(scene_close) scene s;
    basin_error error;
    scene_open(&s, state);
    name_files(&s, "other");
    trained(&s, (basin_training_options){0}, 3);
    assert_int_equal(refused(&error, &s, (basin_training_options){0}), BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "unfinished run"));
    s.choose = false;
    assert_int_equal(refused(&error, &s, (basin_training_options){.resume = true}),
                     BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "its run trains on other graphs than these"));
    s.choose = true, s.set.node_label[0] ^= 1; /* as many as before */
    assert_int_equal(refused(&error, &s, (basin_training_options){.resume = true}),
                     BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "its run trains on other graphs than these"));
    s.set.node_label[0] ^= 1, s.settings.rate = 0.25;
    assert_int_equal(refused(&error, &s, (basin_training_options){.resume = true}),
                     BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "rate"));
}

/* ---- further than one run ---- */

/* Fine-tuning at a rate of 0 leaves the weights as they are, whatever the new set's labels are. */
TEST_WITH(begins_with_a_model, folder_new, folder_remove) {
    basin_error error;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_graphs_model *model;
    BASIN_AT_EXIT(scene_close) scene s;
    scene_open(&s, state);
    s.settings.epochs = 2;
    name_files(&s, "first");
    trained(&s, (basin_training_options){0}, 0);
    char *first = s.output;
    name_files(&s, "second");
    s.settings.rate = s.settings.rate_first = s.settings.rate_last = 0, s.settings.epochs = 1;
    s.set.class_value[1] = 77;
    assert_ok(train(&model, &outcome, &s, (basin_training_options){.from = first}, 0, &failure));
    world_same_files(first, s.output, 0);
    assert_int_equal(basin_graphs_get_info(model)->class_value[1], 77);
    basin_graphs_close(model);
    s.settings.dim = 12;
    name_files(&s, "third");
    assert_int_equal(refused(&error, &s, (basin_training_options){.from = first}), BASIN_BAD_SHAPE);
}

/* The model holds what was learnt by then. */
TEST_WITH(a_stopped_run_gives_a_model, folder_new, folder_remove) {
    basin_training_result outcome = {.size = sizeof outcome};
    basin_graphs_model *model;
    basin_graphs_measures measures;
    BASIN_AT_EXIT(scene_close) scene s;
    scene_open(&s, state);
    basin_graphs_data data = {.set = &s.set};
    name_files(&s, "stopped");
    assert_ok(train(&model, &outcome, &s, (basin_training_options){0}, 3, &failure));
    assert_true(outcome.stopped);
    assert_ok(world_evaluate(&measures, NULL, model, &data, &failure));
    assert_int_equal(measures.items, GRAPHS);
    basin_graphs_close(model);
}

TEST_WITH(holds_to_its_memory, folder_new, folder_remove) {
    basin_error error;
    BASIN_AT_EXIT(scene_close) scene s;
    scene_open(&s, state);
    name_files(&s, "small");
    assert_int_equal(refused(&error, &s, (basin_training_options){.memory = 4096}),
                     BASIN_NO_MEMORY);
    assert_non_null(strstr(error.text, "a smaller batch"));
}
