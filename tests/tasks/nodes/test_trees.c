/* Boosted trees: tables that they must learn, the same bits for any number of threads, Shapley
 * values and files. Skipped where XGBoost is absent. */
#include <math.h>
#include <string.h>

#include "basin/random.h"
#include "basin/tasks/metrics.h"
#include "engine/core/team/team.h"
#include "support/lab.h"
#include "support/test.h"
#include "support/xgboost.h"
#include "tasks/nodes/trees/trees.h"

enum { ROWS = 600, FEATURES = 5, STRIDE = 7, TRAINS = 400 };

typedef struct table {
    float x[ROWS * STRIDE];
    uint8_t label[ROWS];
    basin_trees_data data;
} table;

/* Class by two features that say nothing one by one; the others are noise. The last columns, which
 * no tree may read, are the label. */
static void fill(table *t, uint64_t seed) {
    needs_xgboost();
    basin_random_fill_normal(t->x, seed, 0, 0, ROWS * STRIDE);
    for (int64_t i = 0; i < ROWS; i++) {
        float *x = t->x + i * STRIDE;
        t->label[i] = (x[0] > 0) != (x[3] > 0.5f);
        x[FEATURES] = x[FEATURES + 1] = t->label[i];
    }
    t->data =
        (basin_trees_data){t->x, t->label, {1, 1}, FEATURES, STRIDE, TRAINS, ROWS - TRAINS, NULL};
}

static basin_trees *fit(const table *t, basin_trees_spec spec) {
    basin_trees *trees;
    assert_ok(basin_trees_fit(&trees, &t->data, &spec, NULL, &failure));
    return trees;
}

static void predict(double *logit, const basin_trees *trees, const table *t) {
    assert_ok(basin_trees_predict(logit, trees, t->x, ROWS, STRIDE, &failure));
}

TEST(learns_what_no_feature_says_alone) {
    static table t;
    double logit[ROWS];
    int64_t hits = 0;
    fill(&t, 1);
    basin_trees *trees = fit(&t, BASIN_TREES_DEFAULT);
    predict(logit, trees, &t);
    for (int64_t i = TRAINS; i < ROWS; i++) hits += (logit[i] > 0) == t.label[i];
    assert_true(hits > (ROWS - TRAINS) * 95 / 100);
    assert_int_equal(basin_trees_features(trees), FEATURES);
    basin_trees_free(trees);
}

typedef struct fitting {
    const table *t;
    basin_trees **made;
} fitting;

static basin_status fit_one(const void *context, int64_t item, basin_error *error) {
    const fitting *f = context;
    basin_trees_spec spec = BASIN_TREES_DEFAULT;
    spec.seed = (uint64_t)item % 2;
    return basin_trees_fit(&f->made[item], &f->t->data, &spec, NULL, error);
}

static void assert_same(const basin_trees *a, const basin_trees *b) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    assert_ok(basin_bundle_new(&bundle, NULL, &failure));
    assert_ok(basin_trees_store(bundle, "a.", a, &failure));
    assert_ok(basin_trees_store(bundle, "b.", b, &failure));
    const basin_tensor *one = basin_bundle_find(bundle, "a.xgboost");
    const basin_tensor *two = basin_bundle_find(bundle, "b.xgboost");
    assert_int_equal(one->shape.dim[0], two->shape.dim[0]);
    assert_memory_equal(one->data, two->data, (size_t)one->shape.dim[0]);
}

/* Fits that run at once are those that ran alone; so are fits of a process with more threads. */
TEST(threads_do_not_matter) {
    static table t;
    basin_trees *made[6], *more[2];
    fill(&t, 4);
    basin_processors_set(1);
    fitting f = {&t, made};
    assert_ok(basin_parallel_try(fit_one, &f, 2, 1, &failure));
    basin_processors_set(3);
    f.made = made + 2;
    assert_ok(basin_parallel_try(fit_one, &f, 4, 1, &failure));
    for (int i = 2; i < 6; i++) assert_same(made[i], made[i % 2]);
    double logit[2][ROWS];
    predict(logit[0], made[0], &t);
    predict(logit[1], made[2], &t);
    assert_memory_equal(logit[0], logit[1], sizeof logit[0]);
    f.made = more;
    assert_ok(basin_parallel_try(fit_one, &f, 2, 1, &failure));
    for (int i = 0; i < 2; i++) assert_same(more[i], made[i]), basin_trees_free(more[i]);
    for (int i = 0; i < 6; i++) basin_trees_free(made[i]);
    basin_processors_set(0);
}

TEST(validation_says_when_to_stop) {
    static table t;
    fill(&t, 5);
    for (int64_t i = 0; i < ROWS; i++) /* a third of the labels mean nothing */
        if (basin_random_uniform_at(9, 9, (uint64_t)i) < 0.33f) t.label[i] = (uint8_t)(i & 1);
    basin_trees_spec spec = BASIN_TREES_DEFAULT;
    spec.rounds = 400;
    basin_trees *stopped = fit(&t, spec);
    spec.patience = 0;
    basin_trees *whole = fit(&t, spec);
    assert_int_equal(basin_trees_rounds(whole), spec.rounds);
    assert_true(basin_trees_rounds(stopped) < spec.rounds / 2);
    basin_trees_free(stopped);
    basin_trees_free(whole);
}

/* Some of validation's labels are wrong and anomalies weigh much: the loss stops elsewhere than
 * where ranks are best. */
TEST(ranks_say_when_to_stop) {
    static table t;
    fill(&t, 11);
    basin_trees_spec spec = BASIN_TREES_DEFAULT;
    t.data.weight[1] = 30;
    for (int64_t i = TRAINS; i < ROWS; i += 4) t.label[i] = 0;
    double merit[2];
    for (int k = 0; k < 2; k++) {
        double logit[ROWS];
        basin_ranking ranking = {.size = sizeof ranking};
        spec.stop = k ? BASIN_TREES_BY_RANKS : BASIN_TREES_BY_LOSS;
        basin_trees *trees = fit(&t, spec);
        predict(logit, trees, &t);
        assert_ok(basin_ranking_measure(&ranking, logit + TRAINS, t.label + TRAINS, ROWS - TRAINS,
                                        0, &failure));
        merit[k] = ranking.auroc + ranking.auprc;
        basin_trees_free(trees);
    }
    assert_true(merit[1] > merit[0]);
}

TEST(weights_move_the_balance) {
    static table t;
    double mean[2] = {0, 0}, logit[ROWS];
    fill(&t, 6);
    basin_trees_spec spec = BASIN_TREES_DEFAULT;
    spec.rounds = 1;
    for (int k = 0; k < 2; k++) {
        t.data.weight[1] = k ? 10 : 1;
        basin_trees *trees = fit(&t, spec);
        predict(logit, trees, &t);
        for (int64_t i = 0; i < ROWS; i++) mean[k] += logit[i] / ROWS;
        basin_trees_free(trees);
    }
    assert_true(mean[1] > mean[0] + 2);
}

TEST(shapley_values_add_up) {
    static table t;
    static float value[ROWS * (FEATURES + 1)];
    double logit[ROWS], of[FEATURES] = {0};
    fill(&t, 8);
    basin_trees *trees = fit(&t, BASIN_TREES_DEFAULT);
    predict(logit, trees, &t);
    assert_ok(basin_trees_shapley(value, trees, t.x, ROWS, STRIDE, &failure));
    for (int64_t i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int c = 0; c <= FEATURES; c++) sum += (double)value[i * (FEATURES + 1) + c];
        assert_true(fabs(sum - logit[i]) < 1e-4);
        for (int c = 0; c < FEATURES; c++)
            of[c] += fabs((double)value[i * (FEATURES + 1) + c]) / ROWS;
    }
    for (int c = 0; c < FEATURES; c++) /* the two that decide */
        if (c != 0 && c != 3) assert_true(of[c] < of[0] / 4 && of[c] < of[3] / 4);
    basin_trees_free(trees);
}

TEST(files_keep_them) {
    static table t;
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    basin_trees *read;
    double before[ROWS], after[ROWS];
    fill(&t, 7);
    basin_trees *trees = fit(&t, BASIN_TREES_DEFAULT);
    assert_ok(basin_bundle_new(&bundle, NULL, &failure));
    assert_ok(basin_trees_store(bundle, "trees0.", trees, &failure));
    assert_ok(basin_trees_load(&read, bundle, "trees0.", &failure));
    predict(before, trees, &t);
    predict(after, read, &t);
    assert_memory_equal(before, after, sizeof before);
    basin_trees_free(read);
    basin_trees_free(trees);
    memset(basin_bundle_find(bundle, "trees0.xgboost")->data, 'x', 40);
    assert_int_equal(basin_trees_load(&read, bundle, "trees0.", &failure), BASIN_BAD_FILE);
    assert_null(read);
    assert_int_equal(basin_trees_load(&read, bundle, "trees1.", &failure), BASIN_BAD_FILE);
}

TEST(trees_of_older_files_are_refused) {
    static const int64_t root[] = {0, 1};
    basin_bundle *bundle;
    basin_trees *trees;
    assert_ok(basin_bundle_new(&bundle, NULL, &failure));
    basin_tensor tensor = basin_tensor_view(root, BASIN_I64, BASIN_SHAPE(2));
    assert_ok(basin_bundle_add(bundle, "t.root", &tensor, &failure));
    assert_failure(basin_trees_load(&trees, bundle, "t.", &failure), BASIN_BAD_FILE,
                   "t.xgboost is absent, needs U8");
    basin_bundle_free(bundle);
}

TEST(a_table_without_rows_is_refused) {
    basin_trees_data data = {.features = 2, .stride = 2};
    basin_trees *trees;
    assert_failure(basin_trees_fit(&trees, &data, &BASIN_TREES_DEFAULT, NULL, &failure),
                   BASIN_BAD_VALUE, "0 rows and 2 columns");
}
