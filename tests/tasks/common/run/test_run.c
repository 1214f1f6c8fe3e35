/* The one run: cut anywhere and resumed, it ends with the same weights and the same log; what
 * stands in its way is told before the first step. */
#include <sys/stat.h>

#include "support/files.h"
#include "tasks/common/digest.h"
#include "tasks/common/run/rig.h"

/* ---- what is compared ---- */

/* All weights that are kept, in one line. */
static char *weights(rig *r) {
    static const char *const name[] = {"member0.w", "member0.b", "member1.w", "member1.b"};
    char *text = calloc(1, 4000);
    assert_non_null(text);
    for (int i = 0; i < 4; i++) {
        basin_tensor t;
        basin_error error;
        if (basin_store_get(&t, r->lab.store, name[i], &error)) continue;
        for (int64_t k = 0; k < basin_shape_count(t.shape); k++)
            sprintf(text + strlen(text), "%a ", basin_tensor_at(&t, k));
        basin_tensor_free(&t);
    }
    return text;
}

typedef struct files {
    char *out, *log, checkpoint[PATH_TEXT + 20];
    basin_training_options training;
} files;

static void name_files(files *f, void **state, const char *name) {
    char text[64];
    snprintf(text, sizeof text, "%s.safetensors", name);
    f->out = folder_path(state, text);
    snprintf(text, sizeof text, "%s.log", name);
    f->log = folder_path(state, text);
    snprintf(f->checkpoint, sizeof f->checkpoint, "%.280s.checkpoint", f->out);
    f->training = (basin_training_options){.output = f->out, .log = f->log, .save_every = 1e9};
}

/* ---- cut and resumed ---- */

TEST(a_cut_run_ends_alike) {
    files whole, cut;
    rig r;
    basin_training_result outcome = {.size = sizeof outcome};
    name_files(&whole, state, "whole");
    rig_open(&r, NULL);
    assert_ok(rig_run(&outcome, &r, &whole.training, 0, &failure));
    assert_false(outcome.stopped);
    assert_int_equal(outcome.best_epoch, 2);
    assert_int_equal(r.finished, MEMBERS);
    assert_int_equal(r.written, 1);
    char *log = timeless(whole.log), *kept = weights(&r);
    rig_close(&r);
    for (int64_t step = 1; step < MEMBERS * STEPS * EPOCHS; step++) {
        name_files(&cut, state, "cut");
        rig_open(&r, NULL);
        assert_ok(rig_run(&outcome, &r, &cut.training, step, &failure));
        assert_true(outcome.stopped);
        assert_int_equal(r.written, 0);
        rig_close(&r);
        rig_open(&r, NULL);
        cut.training.resume = true;
        assert_ok(rig_run(&outcome, &r, &cut.training, 0, &failure));
        assert_true(outcome.resumed && !outcome.stopped);
        char *again = timeless(cut.log), *same = weights(&r);
        assert_string_equal(again, log);
        assert_string_equal(same, kept);
        assert_true(access(cut.checkpoint, F_OK));
        free(again), free(same);
        rig_close(&r);
    }
    free(log), free(kept);
}

TEST(more_epochs_follow_a_kept_checkpoint) {
    files f;
    rig r;
    basin_training_result outcome = {.size = sizeof outcome};
    name_files(&f, state, "more");
    f.training.keep_checkpoint = true;
    rig_open(&r, NULL);
    r.task.members = 1, r.task.epochs = 2;
    assert_ok(rig_run(&outcome, &r, &f.training, 0, &failure));
    rig_close(&r);
    assert_int_equal(access(f.checkpoint, F_OK), 0);
    rig_open(&r, NULL);
    f.training.resume = true;
    r.task.members = 1;
    assert_ok(rig_run(&outcome, &r, &f.training, 0, &failure));
    assert_true(outcome.resumed);
    assert_int_equal(outcome.epochs, EPOCHS);
    assert_int_equal(outcome.steps, EPOCHS * STEPS);
    rig_close(&r);
    rig_open(&r, NULL);
    r.task.members = 1, r.task.epochs = 3;
    assert_failure(rig_run(&outcome, &r, &f.training, 0, &failure), BASIN_BAD_VALUE,
                   "has done 4 epochs; 3 are requested");
    rig_close(&r);
}

TEST(a_run_begins_with_a_models_weights) {
    files f;
    rig r;
    basin_training_result outcome = {.size = sizeof outcome};
    name_files(&f, state, "first");
    rig_open(&r, NULL);
    r.task.members = 1;
    assert_ok(rig_run(&outcome, &r, &f.training, 0, &failure));
    double learnt = rig_weight(&r);
    rig_close(&r);
    basin_training_options fine = {.from = f.out};
    rig_open(&r, NULL);
    r.task.members = 1, r.task.schedule.peak = 0;
    rig_train(&r, (basin_schedule){0, 1, 0, 0, 0}, NULL);
    assert_ok(rig_run(&outcome, &r, &fine, 1, &failure));
    assert_true(rig_weight(&r) == learnt);
    rig_close(&r);
}

/* ---- the end of a run ---- */

TEST(patience_ends_a_member) {
    BASIN_AT_EXIT(rig_close) rig r;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_training_options training = {0};
    rig_open(&r, NULL);
    r.task.patience = 1;
    assert_ok(rig_run(&outcome, &r, &training, 0, &failure));
    assert_int_equal(outcome.epochs, 3);
    assert_int_equal(outcome.best_epoch, 2);
    assert_true(basin_score_get(&outcome.best, "validation_merit") == 0.75);
    assert_true(isnan(basin_score_get(&outcome.best, "nothing")));
}

/* The kept weights are those that were scored, not the last. */
TEST(the_best_weights_are_kept) {
    BASIN_AT_EXIT(rig_close) rig r;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_training_options training = {0};
    rig_open(&r, NULL);
    assert_ok(rig_run(&outcome, &r, &training, 0, &failure));
    assert_true(rig_weight(&r) == basin_score_get(&outcome.best, "validation_weight"));
}

TEST(a_rehearsal_writes_nothing) {
    files f;
    BASIN_AT_EXIT(rig_close) rig r;
    basin_training_result outcome = {.size = sizeof outcome};
    name_files(&f, state, "never");
    int before = folder_count(state);
    f.training.dry_run_seconds = 1e-6;
    rig_open(&r, NULL);
    assert_ok(rig_run(&outcome, &r, &f.training, 0, &failure));
    assert_true(outcome.step_seconds > 0 && outcome.parameters == WIDTH * 3 + 3);
    assert_int_equal(outcome.steps_planned, MEMBERS * STEPS * EPOCHS);
    assert_int_equal(folder_count(state), before);
}

/* ---- what stands in the way ---- */

static void refuse(const basin_training_options *training, const char *wanted) {
    BASIN_AT_EXIT(rig_close) rig r;
    basin_training_result outcome = {.size = sizeof outcome};
    rig_open(&r, NULL);
    assert_failed(rig_run(&outcome, &r, training, 0, &failure), wanted);

    assert_int_equal(r.finished, 0);
}

TEST(what_cannot_be_written_is_told_first) {
    char *path = folder_path(state, "nowhere/model.safetensors");
    char *log = folder_path(state, "nowhere/log.jsonl");
    refuse(&(basin_training_options){.output = path},
           "nowhere/model.safetensors: cannot write: No such file");
    refuse(&(basin_training_options){.log = log}, "nowhere/log.jsonl: cannot open");
    refuse(&(basin_training_options){.from = path}, "nowhere/model.safetensors: cannot open");
}

/* A pipe stands for a device here, which only root can make: it is neither renamed nor removed. */
TEST(a_checkpoint_is_a_regular_file) {
    char *path = folder_path(state, "pipe");
    struct stat info;
    assert_int_equal(mkfifo(path, 0666), 0);
    refuse(&(basin_training_options){.checkpoint = path, .restart = true},
           "pipe: is not a regular file");
    assert_true(stat(path, &info) == 0 && S_ISFIFO(info.st_mode));
    BASIN_AT_EXIT(rig_close) rig r; /* and a run that is cut leaves none beside it */
    basin_training_result outcome = {.size = sizeof outcome};
    int before = folder_count(state);
    rig_open(&r, NULL);
    assert_ok(rig_run(&outcome, &r, &(basin_training_options){.output = path}, 3, &failure));
    assert_int_equal(folder_count(state), before);
    unlink(path);
}

/* A checkpoint goes with the end of its run, and the model with it that has the same name. */
TEST(files_of_a_run_are_apart) {
    char *path = folder_path(state, "one.safetensors");
    char *log = folder_path(state, "one.jsonl");
    refuse(&(basin_training_options){.output = path, .checkpoint = path},
           "output and checkpoint are both");
    refuse(&(basin_training_options){.output = path, .log = path}, "output and log are both");
    refuse(&(basin_training_options){.checkpoint = log, .log = log}, "checkpoint and log are both");
    refuse(&(basin_training_options){.output = path, .resume = true, .restart = true},
           "resume and restart exclude each other");
}

TEST(a_checkpoint_is_not_overwritten) {
    files f;
    rig r;
    basin_training_result outcome = {.size = sizeof outcome};
    name_files(&f, state, "way");
    rig_open(&r, NULL);
    assert_ok(rig_run(&outcome, &r, &f.training, 3, &failure));
    rig_close(&r);
    refuse(&f.training, "way.safetensors.checkpoint: the checkpoint of an unfinished run");
    f.training.restart = true;
    rig_open(&r, NULL);
    assert_ok(rig_run(&outcome, &r, &f.training, 0, &failure));
    assert_false(outcome.resumed);
    assert_non_null(strstr(r.note, "is kept as"));
    rig_close(&r);
    assert_int_equal(access(folder_path(state, "way.safetensors.checkpoint.old"), F_OK), 0);
    f.training.restart = false, f.training.resume = true;
    rig_open(&r, NULL);
    assert_ok(rig_run(&outcome, &r, &f.training, 0, &failure));
    assert_true(outcome.finished_before);
    rig_close(&r);
}

/* A checkpoint in which one number or word is another. */
static void damage(const char *path, const char *from, const char *to) {
    static char text[40000];
    size_t size = file_get(text, sizeof text, path);
    assert_int_equal(strlen(from), strlen(to));
    bool found = false;
    for (size_t i = 0; i + strlen(from) <= size; i++)
        if (!memcmp(text + i, from, strlen(from))) {
            memcpy(text + i, to, strlen(to));
            found = true;
        }
    assert_true(found);
    assert_int_equal(file_put(path, text, size), 0);
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle; /* its digests are to fit */
    assert_ok(basin_bundle_read(&bundle, path, &failure));
    assert_ok(basin_bundle_digest(bundle, &failure));
    assert_ok(basin_bundle_write(path, bundle, &failure));
}

/* Leaves a checkpoint of step 8. */
static void stop_at_8(files *f, void **state, const char *name) {
    rig r;
    basin_training_result outcome = {.size = sizeof outcome};
    name_files(f, state, name);
    unlink(f->checkpoint);
    rig_open(&r, NULL);
    assert_ok(rig_run(&outcome, &r, &f->training, 8, &failure));
    rig_close(&r);
}

TEST(damaged_checkpoints_are_refused) {
    static const char *const change[][3] = {
        {"\\\"step\\\":8", "\\\"step\\\":3", "step is 3, expected 5 to 10"},
        {"\\\"member\\\":0", "\\\"member\\\":7", "is damaged"},
        {"\\\"epoch\\\":1", "\\\"epoch\\\":9", "has done 9 epochs"},
        {"\\\"weight\\\"", "\\\"weighs\\\"", "is damaged"},
        {"\"best.w\"", "\"rest.w\"", "'rest.w' belongs to no parameter"},
        {"\"rig\"", "\"sea\"", "the model is 'sea', expected 'rig'"},
    };
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        files f;
        stop_at_8(&f, state, "damaged");
        damage(f.checkpoint, change[i][0], change[i][1]);
        f.training.resume = true;
        refuse(&f.training, change[i][2]);
    }
}

/* Writes the checkpoint with a number in its "basin.run" replaced. */
static void damage_number(const char *path, const char *name, double value) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    assert_ok(basin_bundle_read(&bundle, path, &failure));
    cJSON *run = cJSON_Parse(basin_bundle_meta(bundle, "basin.run"));
    cJSON_ReplaceItemInObject(run, name, cJSON_CreateNumber(value));
    char *text = cJSON_PrintUnformatted(run);
    assert_ok(basin_bundle_meta_set(bundle, "basin.run", text, &failure));
    assert_ok(basin_bundle_digest(bundle, &failure));
    assert_ok(basin_bundle_write(path, bundle, &failure));
    cJSON_free(text);
    cJSON_Delete(run);
}

/* A number that makes no sense is an error, not an epoch. */
TEST(damaged_numbers_are_refused) {
    static const struct {
        const char *name;
        double value;
    } wrong[] = {{"epoch", -100000}, {"epoch", 50},      {"epoch", 1e300}, {"step", -1},
                 {"step", 1 << 30},  {"best_epoch", 99}, {"member", 50},   {"step", 0.5}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        files f;
        stop_at_8(&f, state, "number");
        damage_number(f.checkpoint, wrong[i].name, wrong[i].value);
        f.training.resume = true;
        refuse(&f.training, "number.safetensors.checkpoint");
    }
}

/* Without its moments an optimiser would go on as if it had just begun. */
TEST(a_checkpoint_without_moments_is_refused) {
    files f;
    rig r;
    basin_training_result outcome = {.size = sizeof outcome};
    basin_bundle *whole, *part;
    name_files(&f, state, "moments");
    rig_open(&r, NULL);
    assert_ok(rig_run(&outcome, &r, &f.training, 8, &failure));
    rig_close(&r);
    assert_ok(basin_bundle_read(&whole, f.checkpoint, &failure));
    assert_ok(basin_bundle_new(&part, NULL, &failure));
    const char *key, *value;
    for (size_t i = 0; (key = basin_bundle_meta_at(whole, i, &value)); i++)
        assert_ok(basin_bundle_meta_set(part, key, value, &failure));
    for (size_t i = 0; i < basin_bundle_count(whole); i++) {
        const basin_tensor *t = basin_bundle_at(whole, i);
        basin_tensor borrowed = basin_tensor_borrow(t->data, t->dtype, t->shape);
        if (strcmp(basin_bundle_name(whole, i), "b.v") != 0)
            assert_ok(basin_bundle_add(part, basin_bundle_name(whole, i), &borrowed, &failure));
    }
    assert_ok(basin_bundle_digest(part, &failure));
    assert_ok(basin_bundle_write(f.checkpoint, part, &failure));
    basin_bundle_free(part);
    basin_bundle_free(whole);
    f.training.resume = true;
    refuse(&f.training, "no tensor 'b.v'");
}

/* ---- ranks ---- */

typedef struct pair {
    rig *r;
    int reductions;
} pair;

static basin_status meet(void *context, basin_store *store, const char *const *name, int count,
                         basin_error *error) {
    pair *p = context;
    p->reductions++;
    for (int i = 0; i < count; i++) {
        basin_tensor gradient;
        basin_status status = basin_store_get(&gradient, store, name[i], error);
        if (status) return status;
        basin_tensor_free(&gradient);
    }
    return BASIN_OK;
}

/* Gradients and update apart, with a reduction of one in between, train as one plan does. */
TEST(a_reduction_of_one_changes_nothing) {
    BASIN_AT_EXIT(rig_close) rig alone, met;
    pair p = {0};
    basin_training_result outcome = {.size = sizeof outcome};
    basin_training_options training = {0};
    rig_open(&alone, NULL);
    assert_ok(rig_run(&outcome, &alone, &training, 0, &failure));
    rig_open(&met, &(basin_reduction){meet, &p});
    assert_ok(rig_run(&outcome, &met, &training, 0, &failure));
    assert_int_equal(p.reductions, MEMBERS * STEPS * EPOCHS);
    assert_true(fabs(rig_weight(&alone) - rig_weight(&met)) < 1e-6);
}

int main(void) { return tests_run(folder_new, folder_remove); }
