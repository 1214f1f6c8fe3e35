/* Boosted trees: a stump against brute force, tables that they must learn, the same bits for any
 * number of threads, files and what is refused in them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/team/processors.h"
#include "basin/metrics.h"
#include "basin/random.h"
#include "support/lab.h"
#include "train/trees/trees.h"

enum { ROWS = 600, FEATURES = 5, TRAINS = 400 };

typedef struct table {
    float x[ROWS * FEATURES];
    int32_t label[ROWS];
    int64_t row[ROWS];
    basin_trees_data data;
} table;

static void must(basin_status status, const basin_error *error) {
    if (status) fail_msg("%s", error->text);
}

/* Class by two features that say nothing one by one; the others are noise. */
static int32_t quadrant(const float *x) { return (x[0] > 0) != (x[3] > 0.5f); }
static int32_t terraces(const float *x) { return x[1] < -0.5f ? 0 : x[1] < 0.5f ? 1 : 2; }

static void fill(table *t, int32_t (*label)(const float *x), uint64_t seed) {
    basin_random_fill_normal(t->x, seed, 0, 0, ROWS * FEATURES);
    for (int64_t i = 0; i < ROWS; i++) {
        t->label[i] = label(t->x + i * FEATURES);
        t->row[i] = i;
    }
    t->data = (basin_trees_data){.x = t->x,
                                 .label = t->label,
                                 .features = FEATURES,
                                 .train = t->row,
                                 .trains = TRAINS,
                                 .validation = t->row + TRAINS,
                                 .validations = ROWS - TRAINS};
}

static basin_trees *fit(const table *t, basin_trees_spec spec) {
    basin_error error;
    basin_trees *trees;
    must(basin_trees_fit(&trees, &t->data, &spec, NULL, &error), &error);
    return trees;
}

static double right(const table *t, const basin_trees *trees, int64_t from) {
    static double score[ROWS * 3];
    basin_trees_predict(score, trees, t->x, ROWS);
    int64_t hits = 0;
    for (int64_t i = from; i < ROWS; i++) {
        const double *s = score + i * trees->scores;
        int32_t guess = s[0] > 0;
        if (trees->scores == 3) guess = s[0] > s[1] && s[0] > s[2] ? 0 : s[1] > s[2] ? 1 : 2;
        hits += guess == t->label[i];
    }
    return (double)hits / (double)(ROWS - from);
}

static void learns_what_no_feature_says_alone(void **state) {
    (void)state;
    table t;
    fill(&t, quadrant, 1);
    basin_trees *trees = fit(&t, BASIN_TREES_DEFAULT);
    assert_true(right(&t, trees, TRAINS) > 0.95);
    basin_trees_free(trees);
}

static void learns_several_classes(void **state) {
    (void)state;
    table t;
    fill(&t, terraces, 2);
    basin_trees_spec spec = BASIN_TREES_DEFAULT;
    spec.classes = 3;
    basin_trees *trees = fit(&t, spec);
    assert_int_equal(trees->scores, 3);
    assert_true(right(&t, trees, TRAINS) > 0.97);
    basin_trees_free(trees);
}

/* The gain of cutting feature f at x, with weights 1, from the base score. */
static double gain_of(const table *t, int64_t f, float x, double p) {
    double slope[2] = {0, 0}, curve[2] = {0, 0};
    for (int64_t i = 0; i < TRAINS; i++) {
        int side = t->x[i * FEATURES + f] > x;
        slope[side] += p - t->label[i];
        curve[side] += p * (1 - p);
    }
    double gain = 0;
    for (int s = 0; s < 2; s++) gain += slope[s] * slope[s] / (curve[s] + 1);
    return curve[0] < 1 || curve[1] < 1 ? -INFINITY : gain;
}

static void a_stump_is_the_best_of_all_cuts(void **state) {
    (void)state;
    table t;
    fill(&t, terraces, 3);
    for (int64_t i = 0; i < ROWS; i++) t.label[i] = t.label[i] > 0;
    for (int64_t i = 0; i < ROWS * FEATURES; i++) t.x[i] = roundf(t.x[i] * 20) / 20;
    basin_trees_spec spec = BASIN_TREES_DEFAULT;
    spec.rounds = 1, spec.patience = 0, spec.leaves = 2, spec.rows = spec.columns = 1;
    basin_trees *trees = fit(&t, spec);
    double p = 1 / (1 + exp(-trees->base[0])), best = -INFINITY;
    for (int64_t f = 0; f < FEATURES; f++)
        for (int64_t i = 0; i < TRAINS; i++)
            best = fmax(best, gain_of(&t, f, t.x[i * FEATURES + f], p));
    const basin_tree_node *root = trees->node;
    assert_int_equal(trees->root[1], 3);
    assert_true(fabs(gain_of(&t, root->feature, root->threshold, p) - best) < 1e-9 * best);
    basin_trees_free(trees);
}

static void threads_do_not_matter(void **state) {
    (void)state;
    table t;
    fill(&t, quadrant, 4);
    int64_t often[10 * TRAINS]; /* enough rows that threads share them */
    for (int64_t i = 0; i < 10 * TRAINS; i++) often[i] = i % TRAINS;
    t.data.train = often;
    t.data.trains = 10 * TRAINS;
    basin_trees *made[2];
    for (int i = 0; i < 2; i++) {
        basin_processors_set(i ? 3 : 1);
        made[i] = fit(&t, BASIN_TREES_DEFAULT);
    }
    basin_processors_set(0);
    assert_int_equal(made[0]->trees, made[1]->trees);
    assert_memory_equal(made[0]->node, made[1]->node,
                        (size_t)made[0]->root[made[0]->trees] * sizeof *made[0]->node);
    basin_trees_free(made[0]);
    basin_trees_free(made[1]);
}

static void validation_says_when_to_stop(void **state) {
    (void)state;
    table t;
    fill(&t, quadrant, 5);
    for (int64_t i = 0; i < ROWS; i++) /* a third of the labels mean nothing */
        if (basin_random_uniform_at(9, 9, (uint64_t)i) < 0.33f) t.label[i] = (int32_t)(i & 1);
    basin_trees_spec spec = BASIN_TREES_DEFAULT;
    basin_trees *stopped = fit(&t, spec);
    spec.patience = 0;
    basin_trees *whole = fit(&t, spec);
    assert_int_equal(whole->trees, spec.rounds);
    assert_true(stopped->trees < spec.rounds / 2);
    assert_true(right(&t, stopped, TRAINS) >= right(&t, whole, TRAINS));
    basin_trees_free(stopped);
    basin_trees_free(whole);
}

/* Some of validation's labels are wrong and anomalies weigh much: the loss stops elsewhere than
 * where ranks are best. */
static void ranks_say_when_to_stop(void **state) {
    (void)state;
    static table t;
    fill(&t, quadrant, 11);
    basin_trees_spec spec = BASIN_TREES_DEFAULT;
    double weight[] = {1, 30};
    t.data.weight = weight;
    for (int64_t i = TRAINS; i < ROWS; i += 4) t.label[i] = 0;
    basin_trees *by_loss = fit(&t, spec);
    spec.ranks = true;
    basin_trees *by_ranks = fit(&t, spec);
    double score[2][ROWS];
    basin_ranking ranking[2];
    uint8_t label[ROWS];
    basin_error error;
    basin_trees_predict(score[0], by_loss, t.x, ROWS);
    basin_trees_predict(score[1], by_ranks, t.x, ROWS);
    for (int64_t i = 0; i < ROWS; i++) label[i] = t.label[i] == 1;
    for (int k = 0; k < 2; k++)
        must(basin_ranking_measure(&ranking[k], score[k] + TRAINS, label + TRAINS, ROWS - TRAINS, 0,
                                   &error),
             &error);
    assert_true(ranking[1].auroc + ranking[1].auprc > ranking[0].auroc + ranking[0].auprc);
    basin_trees_free(by_loss);
    basin_trees_free(by_ranks);
}

static void weights_move_the_balance(void **state) {
    (void)state;
    table t;
    fill(&t, quadrant, 6);
    basin_trees *plain = fit(&t, BASIN_TREES_DEFAULT);
    t.data.weight = (const double[]){1, 10};
    basin_trees *heavy = fit(&t, BASIN_TREES_DEFAULT);
    assert_true(heavy->base[0] > plain->base[0] + 2);
    basin_trees_free(plain);
    basin_trees_free(heavy);
}

static void files_keep_them(void **state) {
    (void)state;
    table t;
    basin_error error;
    basin_bundle *bundle;
    basin_trees *read;
    static double before[ROWS], after[ROWS];
    fill(&t, quadrant, 7);
    basin_trees *trees = fit(&t, BASIN_TREES_DEFAULT);
    must(basin_bundle_new(&bundle, &error), &error);
    must(basin_trees_store(bundle, "trees.0.", trees, &error), &error);
    must(basin_trees_load(&read, bundle, "trees.0.", &error), &error);
    basin_trees_predict(before, trees, t.x, ROWS);
    basin_trees_predict(after, read, t.x, ROWS);
    assert_memory_equal(before, after, sizeof before);
    basin_trees_free(read);

    int32_t *link = basin_bundle_find(bundle, "trees.0.link")->data;
    static const int32_t wrong[][2] = {{FEATURES, 1}, {-2, 1},        {0, 0},
                                       {0, 1 << 20},  {0, INT32_MAX}, {0, -5}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(link, wrong[i], sizeof wrong[i]);
        assert_int_equal(basin_trees_load(&read, bundle, "trees.0.", &error), BASIN_BAD_FILE);
        assert_null(read);
    }
    assert_int_equal(basin_trees_load(&read, bundle, "trees.1.", &error), BASIN_BAD_FILE);
    basin_bundle_free(bundle);
    basin_trees_free(trees);
}

/* A chain of nodes so deep, each with a leaf on its left. */
static basin_status load_chain(int depth) {
    basin_tree_node node[2 * BASIN_TREE_DEPTH + 3];
    int64_t root[] = {0, 2 * depth + 1};
    double base = 0;
    basin_trees chain = {.features = 1, .scores = 1, .trees = 1, .base = &base, .root = root},
                *read;
    basin_bundle *bundle;
    basin_error error;
    chain.node = node;
    for (int i = 0; i <= 2 * depth; i++)
        node[i] = (basin_tree_node){i % 2 || i == 2 * depth ? -1 : 0, i + 1, 0, 1};
    must(basin_bundle_new(&bundle, &error), &error);
    must(basin_trees_store(bundle, "", &chain, &error), &error);
    basin_status status = basin_trees_load(&read, bundle, "", &error);
    basin_trees_free(read);
    basin_bundle_free(bundle);
    return status;
}

/* Explanations keep the way to a leaf. */
static void deep_trees_are_refused(void **state) {
    (void)state;
    assert_int_equal(load_chain(BASIN_TREE_DEPTH), BASIN_OK);
    assert_int_equal(load_chain(BASIN_TREE_DEPTH + 1), BASIN_BAD_FILE);
}

static void labels_beyond_the_classes_are_refused(void **state) {
    (void)state;
    table t;
    basin_error error;
    basin_trees *trees;
    fill(&t, terraces, 8);
    assert_int_equal(basin_trees_fit(&trees, &t.data, &BASIN_TREES_DEFAULT, NULL, &error),
                     BASIN_BAD_VALUE);
    assert_non_null(strstr(error.text, "label 2, wanted 0 to 1"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learns_what_no_feature_says_alone),
        cmocka_unit_test(learns_several_classes),
        cmocka_unit_test(a_stump_is_the_best_of_all_cuts),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(validation_says_when_to_stop),
        cmocka_unit_test(ranks_say_when_to_stop),
        cmocka_unit_test(weights_move_the_balance),
        cmocka_unit_test(files_keep_them),
        cmocka_unit_test(deep_trees_are_refused),
        cmocka_unit_test(labels_beyond_the_classes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
