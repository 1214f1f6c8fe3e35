/* Calibration: what is distorted on purpose comes back, order stays, goals are met exactly. */
#include <math.h>
#include <string.h>

#include "basin/random.h"
#include "support/lab.h"
#include "support/test.h"
#include "tasks/common/calibration.h"

enum { N = 4000 };

typedef struct world {
    double truth[N], score[N];
    uint8_t label[N];
} world;

/* True probabilities, labels drawn by them, and scores that are a rising function of them. */
static void make(world *w, double (*distort)(double p), uint64_t seed) {
    for (int i = 0; i < N; i++) {
        double u = basin_random_uniform_at(seed, 0, (uint64_t)i);
        w->truth[i] = u * u;
        w->label[i] = basin_random_uniform_at(seed, 1, (uint64_t)i) < w->truth[i];
        w->score[i] = distort(w->truth[i]);
    }
}

static double overconfident(double p) {
    double z = log((p + 1e-6) / (1 - p + 1e-6));
    return 1 / (1 + exp(-(2.5 * z + 1)));
}
static double stepped(double p) {
    return p < 0.3 ? 0.1 * p : p < 0.6 ? 0.5 + 0.1 * p : 0.9 + 0.1 * p;
}

static basin_reliability reliability_of(const world *w, const basin_calibration *c) {
    static double p[N];
    for (int i = 0; i < N; i++) p[i] = basin_calibration_apply(c, w->score[i]);
    basin_reliability r = {.size = sizeof r};
    basin_reliability_measure(&r, p, w->label, N);
    return r;
}

TEST(both_kinds_mend_scores) {
    static world learn, judge;
    double (*const distort[2])(double) = {overconfident, stepped};
    for (int k = 0; k < 2; k++) {
        basin_calibration none = {0}, c;
        make(&learn, distort[k], 1);
        make(&judge, distort[k], 2);
        assert_ok(basin_calibration_choose(&c, learn.score, learn.label, N, &failure));
        assert_true(reliability_of(&judge, &none).ece > 0.06);
        assert_true(reliability_of(&judge, &c).ece < 0.02);
        if (k == 1) assert_int_equal(c.kind, BASIN_CALIBRATION_ISOTONIC);
        basin_calibration_free(&c);
    }
}

TEST(order_stays) {
    static world w;
    make(&w, overconfident, 3);
    for (int k = BASIN_CALIBRATION_PLATT; k <= BASIN_CALIBRATION_ISOTONIC; k++) {
        basin_calibration c;
        assert_ok(
            basin_calibration_fit(&c, (basin_calibration_kind)k, w.score, w.label, N, &failure));
        double last = -1;
        for (int i = 0; i <= 1000; i++) {
            double p = basin_calibration_apply(&c, i / 1000.0);
            assert_true(p >= last && p >= 0 && p <= 1);
            last = p;
        }
        basin_calibration_free(&c);
    }
}

TEST(platt_finds_a_line_of_logits) {
    static world w;
    basin_calibration c;
    make(&w, overconfident, 4);
    assert_ok(basin_calibration_fit(&c, BASIN_CALIBRATION_PLATT, w.score, w.label, N, &failure));
    assert_true(fabs(c.slope - 1 / 2.5) < 0.03);
    assert_true(fabs(c.offset + 1 / 2.5) < 0.12);
}

TEST(samples_of_one_class_are_refused) {
    basin_calibration c;
    const double score[3] = {0.1, 0.5, 0.2}, wild[3] = {0.1, 1.5, 0.2};
    assert_int_equal(basin_calibration_choose(&c, score, (uint8_t[]){0, 0, 0}, 3, &failure),
                     BASIN_BAD_VALUE);
    assert_failure(basin_calibration_choose(&c, wild, (uint8_t[]){0, 1, 0}, 3, &failure),
                   BASIN_BAD_VALUE, "score 1 is 1.5, expected 0 to 1");
}

/* Every goal against all thresholds tried one by one. */
TEST(goals_are_met) {
    const double score[8] = {0.9, 0.8, 0.8, 0.7, 0.5, 0.4, 0.2, 0.1};
    const uint8_t label[8] = {1, 0, 1, 1, 0, 1, 0, 0};
    double t;
    assert_ok(basin_threshold_for(&t, BASIN_GOAL_PRECISION, 0.75, score, label, 8, &failure));
    assert_true(t < 0.7 && t >= 0.5); /* 3 of 4 are right; 0.4 would make it 4 of 6 */
    assert_ok(basin_threshold_for(&t, BASIN_GOAL_RECALL, 0.5, score, label, 8, &failure));
    assert_true(t < 0.8 && t >= 0.7);
    assert_ok(basin_threshold_for(&t, BASIN_GOAL_BUDGET, 2, score, label, 8, &failure));
    assert_true(t < 0.9 && t >= 0.8); /* the two at 0.8 come together or not at all */
    assert_ok(basin_threshold_for(&t, BASIN_GOAL_BUDGET, 0, score, label, 8, &failure));
    assert_true(t >= 0.9);
    assert_ok(basin_threshold_for(&t, BASIN_GOAL_RECALL, 1, score, label, 8, &failure));
    assert_true(t < 0.4 && t >= 0.2);
    assert_ok(basin_threshold_for(&t, BASIN_GOAL_FPR, 0.25, score, label, 8, &failure));
    assert_true(t < 0.7 && t >= 0.5); /* one of four negatives */
    assert_ok(basin_threshold_for(&t, BASIN_GOAL_SURE, 0.35, score, label, 8, &failure));
    assert_true(t < 0.4 && t >= 0.2); /* 4 of 6: 0.41 at least; 4 of 7: 0.34 */
    const uint8_t low[8] = {0, 0, 0, 0, 0, 0, 0, 1};
    assert_int_equal(basin_threshold_for(&t, BASIN_GOAL_PRECISION, 0.9, score, low, 8, &failure),
                     BASIN_BAD_VALUE);
}

TEST(drift_is_told) {
    const double a[4] = {25, 25, 25, 25}, same[4] = {250, 250, 250, 250},
                 other[4] = {40, 30, 20, 10};
    assert_true(fabs(basin_stability_index(a, same, 4)) < 1e-15);
    double wanted = 0;
    for (int i = 0; i < 4; i++) wanted += (other[i] / 100 - 0.25) * log(other[i] / 25);
    assert_true(fabs(basin_stability_index(a, other, 4) - wanted) < 1e-15);
    assert_true(isfinite(basin_stability_index(a, (double[]){100, 0, 0, 0}, 4)));
}
