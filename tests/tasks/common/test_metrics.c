/* Measures against hand-made cases, brute force over pairs, and numbers that scikit-learn documents
 * or gives. */
#include <math.h>

#include "basin/random.h"
#include "basin/tasks/metrics.h"
#include "support/test.h"

enum { N = 200 };

static basin_ranking rank(const double *score, const uint8_t *label, int64_t n, int64_t k) {
    basin_ranking r = {.size = sizeof r};
    assert_ok(basin_ranking_measure(&r, score, label, n, k, &failure));
    return r;
}

/* roc_auc_score and average_precision_score of scikit-learn's own examples. */
TEST(known_rankings) {
    const double score[] = {0.1, 0.4, 0.35, 0.8};
    const uint8_t label[] = {0, 0, 1, 1};
    basin_ranking r = rank(score, label, 4, 0);
    assert_float_equal(r.auroc, 0.75, 1e-12);
    assert_float_equal(r.auprc, 0.8333333333333333, 1e-12);
    assert_int_equal(r.k, 2);
    assert_float_equal(r.recall_k, 0.5, 1e-12);
    const double reversed[] = {0.9, 0.8, 0.2, 0.1};
    r = rank(reversed, label, 4, 0);
    assert_float_equal(r.auroc, 0, 1e-12);
    assert_float_equal(r.auprc, (1.0 / 3 + 2.0 / 4) / 2, 1e-12);
}

/* average_precision_score([1, 0, 1, 0, 1], [.5, .5, .5, .2, .2]): thresholds .5 (precision 2/3,
 * recall 2/3) and .2 (3/5, 1). */
TEST(ties_have_no_order) {
    const double score[] = {0.5, 0.5, 0.5, 0.2, 0.2};
    const uint8_t label[] = {1, 0, 1, 0, 1}, other[] = {0, 1, 1, 1, 0};
    basin_ranking r = rank(score, label, 5, 0), s = rank(score, other, 5, 0);
    assert_float_equal(r.auprc, 2.0 / 3 * 2.0 / 3 + 1.0 / 3 * 3.0 / 5, 1e-12);
    assert_float_equal(r.auroc, (0.5 * 2 + 2 + 0.5) / 6, 1e-12);
    assert_true(r.auroc == s.auroc && r.auprc == s.auprc && r.recall_k == s.recall_k);
    r = rank(score, label, 5, 2); /* two of three tied places: 2/3 of 2 positives */
    assert_float_equal(r.recall_k, 2.0 / 3 * 2 / 3, 1e-12);
    const double flat[] = {1, 1, 1, 1, 1};
    r = rank(flat, label, 5, 0);
    assert_float_equal(r.auroc, 0.5, 1e-12);
    assert_float_equal(r.auprc, 0.6, 1e-12);
}

TEST(auroc_counts_pairs) {
    double score[N], pairs = 0, wins = 0;
    uint8_t label[N];
    for (int i = 0; i < N; i++) {
        label[i] = basin_random_uniform_at(1, 0, (uint64_t)i) < 0.2;
        score[i] = floor(10 * (basin_random_uniform_at(1, 1, (uint64_t)i) + 0.3 * label[i]));
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            if (label[i] && !label[j]) {
                pairs++;
                wins += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
            }
    assert_float_equal(rank(score, label, N, 0).auroc, wins / pairs, 1e-12);
}

TEST(missing_classes_are_errors) {
    const double score[] = {0.1, NAN};
    const uint8_t one[] = {1, 1}, both[] = {0, 1};
    basin_ranking r = {.size = sizeof r};
    basin_error error;
    assert_int_equal(basin_ranking_measure(&r, score, one, 2, 0, &error), BASIN_BAD_VALUE);
    assert_string_equal(error.text, "2 positive and 0 negative samples; a ranking requires both");
    assert_int_equal(basin_ranking_measure(&r, score, both, 2, 0, &error), BASIN_BAD_VALUE);
    assert_string_equal(error.text, "score 1 is not a number");
    double threshold;
    assert_int_equal(
        basin_threshold_best(&threshold, NULL, score, one, 0, BASIN_THRESHOLD_SCAN_ALL, &error),
        BASIN_BAD_VALUE);
}

/* f1_score(.., average="macro") of [0,1,1,0,1,0] against predictions [0,1,0,0,1,1]. */
TEST(decisions) {
    const uint8_t label[] = {0, 1, 1, 0, 1, 0};
    const double score[] = {0.1, 0.9, 0.2, 0.3, 0.8, 0.7};
    basin_confusion c;
    basin_confusion_count(&c, score, label, 6, 0.5);
    assert_int_equal(c.true_positive, 2);
    assert_int_equal(c.false_positive, 1);
    assert_int_equal(c.true_negative, 2);
    assert_int_equal(c.false_negative, 1);
    assert_float_equal(basin_confusion_macro_f1(&c), 2.0 / 3, 1e-12);
    basin_confusion_count(&c, score, label, 6, 0.9); /* the threshold itself is not above it */
    assert_int_equal(c.true_positive, 0);
    assert_float_equal(basin_confusion_macro_f1(&c), 1.0 / 3, 1e-12);
}

/* The scan finds what trying every score finds, and the grid what the grid finds. */
TEST(best_threshold) {
    double score[N], threshold, f1, best = 0, grid = 0;
    uint8_t label[N];
    basin_error error;
    for (int i = 0; i < N; i++) {
        label[i] = basin_random_uniform_at(2, 0, (uint64_t)i) < 0.1;
        score[i] = 0.6 * basin_random_uniform_at(2, 1, (uint64_t)i) + 0.3 * label[i];
    }
    for (int i = 0; i < N; i++) {
        basin_confusion c;
        basin_confusion_count(&c, score, label, N, score[i]);
        best = fmax(best, basin_confusion_macro_f1(&c));
    }
    for (int i = 1; i < 20; i++) {
        basin_confusion c;
        basin_confusion_count(&c, score, label, N, 0.05 * i);
        grid = fmax(grid, basin_confusion_macro_f1(&c));
    }
    assert_int_equal(
        basin_threshold_best(&threshold, &f1, score, label, N, BASIN_THRESHOLD_SCAN_ALL, &error),
        0);
    basin_confusion c;
    basin_confusion_count(&c, score, label, N, threshold);
    assert_float_equal(f1, best, 1e-12);
    assert_float_equal(basin_confusion_macro_f1(&c), best, 1e-12);
    assert_int_equal(
        basin_threshold_best(&threshold, &f1, score, label, N, BASIN_THRESHOLD_SCAN_GRID, &error),
        0);
    assert_float_equal(f1, grid, 1e-12);
    assert_true(grid <= best);
    /* All positive, all negative: cuts beyond both ends are tried. */
    const double two[] = {0.2, 0.4};
    const uint8_t ones[] = {1, 1}, zeros[] = {0, 0};
    basin_threshold_best(&threshold, &f1, two, ones, 2, BASIN_THRESHOLD_SCAN_ALL, &error);
    assert_true(threshold < 0.2);
    basin_threshold_best(&threshold, &f1, two, zeros, 2, BASIN_THRESHOLD_SCAN_ALL, &error);
    assert_true(threshold >= 0.4);
}

/* The mean of the cuts around each, by trying them all. */
TEST(smooth_threshold) {
    enum { CUTS = 300 };
    double score[CUTS], value[CUTS + 1], threshold, f1, best = -1;
    uint8_t label[CUTS];
    basin_error error;
    int64_t positives = 0, at = 0;
    for (int i = 0; i < CUTS; i++) { /* from the highest down, some close to each other */
        score[i] = 1 - (i + 0.3 * basin_random_uniform_at(3, 0, (uint64_t)i)) / CUTS;
        label[i] = basin_random_uniform_at(3, 1, (uint64_t)i) < (i < 60 ? 0.6 : 0.05);
        positives += label[i];
    }
    for (int k = 0; k <= CUTS; k++) {
        double cut = k == 0 ? 2 : k == CUTS ? -1 : 0.5 * (score[k - 1] + score[k]);
        basin_confusion c;
        basin_confusion_count(&c, score, label, CUTS, cut);
        value[k] = basin_confusion_macro_f1(&c);
    }
    int64_t reach = positives / 5;
    for (int64_t k = 0; k <= CUTS; k++) {
        double sum = 0;
        int64_t low = k > reach ? k - reach : 0, high = k + reach < CUTS ? k + reach : CUTS;
        for (int64_t i = low; i <= high; i++) sum += value[i];
        sum /= (double)(high + 1 - low);
        if (sum > best + 1e-12) best = sum, at = k;
    }
    assert_true(reach > 3 && at > 0 && at < CUTS);
    assert_int_equal(basin_threshold_best(&threshold, &f1, score, label, CUTS,
                                          BASIN_THRESHOLD_SCAN_SMOOTH, &error),
                     0);
    assert_float_equal(threshold, 0.5 * (score[at - 1] + score[at]), 1e-12);
    assert_float_equal(f1, value[at], 1e-12);
    for (int i = 0; i < CUTS; i++) score[i] = i < 100; /* two groups: no cut inside one */
    assert_int_equal(basin_threshold_best(&threshold, &f1, score, label, CUTS,
                                          BASIN_THRESHOLD_SCAN_SMOOTH, &error),
                     0);
    assert_float_equal(threshold, 0.5, 1e-12);
}

TEST(means_and_deviations) {
    const double a[] = {1, 2, 4};
    double mean, deviation;
    basin_mean_deviation(&mean, &deviation, a, 3);
    assert_float_equal(mean, 7.0 / 3, 1e-12);
    assert_float_equal(deviation, 1.247219128924647, 1e-12); /* numpy.std([1, 2, 4]) */
}

/* Half widths of tables of Student's t: of two numbers 12.7062, of three 4.30265, of ten 2.26216.
 */
TEST(intervals) {
    const double two[] = {1, 3}, three[] = {1, 2, 4}, ten[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    double low = -1, high;
    assert_false(basin_mean_interval(&low, &high, two, 1, 0));
    assert_true(low == -1);
    assert_true(basin_mean_interval(&low, &high, two, 2, 0));
    assert_float_equal(high, 2 + 12.7062047364, 1e-7); /* s / sqrt(2) = 1 */
    assert_float_equal(low, 2 - 12.7062047364, 1e-7);
    assert_true(basin_mean_interval(&low, &high, three, 3, 0));
    assert_float_equal((high - low) / 2, 4.30265272991 * sqrt(7.0 / 9), 1e-7);
    assert_true(basin_mean_interval(&low, &high, ten, 10, 1.0 / 9));
    assert_float_equal((high - low) / 2, 2.26215716280 * sqrt(110.0 / 12 * (0.1 + 1.0 / 9)), 1e-7);
}
