/* Cross-validation: the same numbers however many folds run at once, and an end of all of them at
 * an error or an interrupt. */
#include <stdatomic.h>

#include "tasks/graphs/graph_world.h"

enum { GRAPHS = 24, FOLDS = 4 };

typedef struct scene {
    basin_graphset set;
    basin_folds folds;
    basin_graphs_settings settings;
    basin_graphs_cv_result result[FOLDS];
} scene;

static void scene_open(scene *s, basin_graphs_target target) {
    *s = (scene){.settings = world_settings()};
    world_new(&s->set, target, GRAPHS, 4, NULL);
    const int32_t *class_of = target == BASIN_GRAPHS_CLASSES ? s->set.class_of : NULL;
    assert_ok(world_folds(&s->folds, class_of, GRAPHS, FOLDS, 0.2, 1, &failure));
}

static void scene_close(scene *s) {
    basin_folds_free(&s->folds);
    basin_graphset_free(&s->set);
}

static basin_status run(scene *s, basin_graphs_cv_options spec, basin_error *error) {
    basin_settings settings = {.kind = &basin_graphs_task, .values = &s->settings};
    memset(s->result, 0, sizeof s->result);
    return basin_graphs_cross_validate(s->result, &settings, &s->set, &s->folds, &spec, error);
}

static void same_measures(const basin_graphs_measures *a, const basin_graphs_measures *b) {
    assert_int_equal(a->items, b->items);
    assert_true(a->accuracy == b->accuracy && a->balanced == b->balanced && a->loss == b->loss &&
                a->deviation == b->deviation);
}

TEST(jobs_do_not_matter) {
    static const basin_graphs_cv_options spec[] = {{.jobs = 1, .members = 2, .threads = 1},
                                                   {.jobs = 2, .members = 2, .threads = 2},
                                                   {.jobs = 9, .members = 2, .threads = 1}};
    for (int target = 0; target < 3; target++) {
        scene s;
        basin_graphs_cv_result want[FOLDS];
        scene_open(&s, (basin_graphs_target)target);
        for (int i = 0; i < 3; i++) {
            assert_ok(run(&s, spec[i], &failure));
            if (!i) memcpy(want, s.result, sizeof want);
            for (int f = 0; f < FOLDS; f++) {
                assert_true(s.result[f].done && s.result[f].tests == GRAPHS / FOLDS);
                assert_int_equal(s.result[f].best_epoch, want[f].best_epoch);
                same_measures(&s.result[f].validation, &want[f].validation);
                same_measures(&s.result[f].test, &want[f].test);
            }
        }
        scene_close(&s);
    }
}

TEST(one_fold_alone) {
    BASIN_AT_EXIT(scene_close) scene s;
    scene_open(&s, BASIN_GRAPHS_CLASSES);
    assert_ok(run(&s, (basin_graphs_cv_options){.fold = 2, .threads = 1}, &failure));
    for (int f = 0; f < FOLDS; f++) assert_int_equal(s.result[f].done, f == 1);
    assert_failure(run(&s, (basin_graphs_cv_options){.fold = 5}, &failure), BASIN_BAD_VALUE,
                   "fold 5 of 4");
}

/* The other folds would take hours. */
TEST(an_error_ends_all) {
    BASIN_AT_EXIT(scene_close) scene s;
    scene_open(&s, BASIN_GRAPHS_CLASSES);
    s.settings.epochs = 10000000;
    s.folds.fold[1].count[0] = 0;
    assert_says(run(&s, (basin_graphs_cv_options){.jobs = 2, .threads = 1}, &failure),
                BASIN_BAD_VALUE, "fold 2: no graphs to train on");
}

/* It is reported before the first fold is trained. */
TEST(a_fold_has_something_to_test) {
    BASIN_AT_EXIT(scene_close) scene s;
    scene_open(&s, BASIN_GRAPHS_VALUES);
    s.settings.epochs = 10000000;
    const basin_fold *fold = &s.folds.fold[FOLDS - 1];
    for (int64_t i = 0; i < fold->count[2]; i++) s.set.target[fold->item[2][i]] = NAN;
    assert_failure(run(&s, (basin_graphs_cv_options){.threads = 1}, &failure), BASIN_BAD_VALUE,
                   "test graphs of fold 4 has a value that is known");
}

typedef struct watcher {
    atomic_bool stop;
    int64_t shown;
    double loss;
} watcher;

static void look(void *context, const basin_progress_report *news) {
    watcher *w = context;
    w->shown = news->done;
    w->loss = news->loss;
    if (news->done >= 3) w->stop = true;
}

static bool is_stopping(void *context) { return ((watcher *)context)->stop; }

TEST(an_interrupt_ends_all) {
    BASIN_AT_EXIT(scene_close) scene s;
    watcher w = {0};
    basin_watch watch = {.show = look, .context = &w, .stop = is_stopping};
    scene_open(&s, BASIN_GRAPHS_CLASSES);
    s.settings.epochs = 10000000;
    basin_graphs_cv_options spec = {.jobs = 3, .threads = 1, .watch = &watch};
    assert_says(run(&s, spec, &failure), BASIN_BAD_VALUE, "interrupted");
    assert_true(w.shown >= 3 && w.loss > 0);
}

/* The caller's arrays stay as they are. */
TEST(the_set_is_only_read) {
    BASIN_AT_EXIT(scene_close) scene s;
    scene_open(&s, BASIN_GRAPHS_CLASSES);
    s.settings.edge_walks = 2, s.settings.epochs = 1;
    basin_graphset before = s.set;
    assert_ok(run(&s, (basin_graphs_cv_options){.threads = 1}, &failure));
    assert_memory_equal(&before, &s.set, sizeof before);
}

TEST(trains_on_all) {
    BASIN_AT_EXIT(scene_close) scene s;
    scene_open(&s, BASIN_GRAPHS_CLASSES);
    basin_folds_free(&s.folds);
    assert_ok(world_folds(&s.folds, NULL, GRAPHS, 1, 0, 0, &failure));
    assert_ok(run(&s, (basin_graphs_cv_options){.threads = 1}, &failure));
    assert_true(s.result[0].trains == GRAPHS && s.result[0].test.items == GRAPHS);
    assert_int_equal(s.result[0].best_epoch, s.settings.epochs);
}
