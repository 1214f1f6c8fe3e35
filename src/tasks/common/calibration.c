/* Calibration of scores, their reliability, thresholds for a goal, drift; see
 * include/basin/tasks/calibration.h. */
#include "tasks/common/calibration.h"

#include "base/sized.h"
#include "base/sort.h"
#include "base/try.h"

static int lower_first(const void *a, const void *b) {
    return BASIN_COMPARE(((const basin_sample *)a)->score, ((const basin_sample *)b)->score);
}

static int higher_first(const void *a, const void *b) { return lower_first(b, a); }

basin_status basin_samples_sort(basin_sample **sorted, const double *score, const uint8_t *label,
                                int64_t n, bool falling, basin_error *error) {
    BASIN_TRY(BASIN_NEW_RAW(sorted, n, "scores", error));
    for (int64_t i = 0; i < n; i++) (*sorted)[i] = (basin_sample){score[i], label[i] != 0};
    qsort(*sorted, (size_t)n, sizeof **sorted, falling ? higher_first : lower_first);
    return BASIN_OK;
}

static basin_status check(const double *score, const uint8_t *label, int64_t n,
                          basin_error *error) {
    int64_t positives = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(score[i] >= 0 && score[i] <= 1))
            return basin_fail(error, BASIN_BAD_VALUE, "score %lld is %g, expected 0 to 1",
                              (long long)i, score[i]);
        positives += label[i] != 0;
    }
    if (positives > 0 && positives < n) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%lld positive and %lld negative samples; a calibration requires both",
                      (long long)positives, (long long)(n - positives));
}

/* ---- Platt ---- */

double basin_logit(double p) {
    double cut = fmin(fmax(p, 1e-9), 1 - 1e-9);
    return log(cut / (1 - cut));
}

double basin_probability_of(double z) { return z >= 0 ? 1 / (1 + exp(-z)) : exp(z) / (1 + exp(z)); }

/* Newton's method on the log loss, which is convex in slope and offset. The slope stays above 0,
 * so that the order of samples stays. */
static void fit_platt(basin_calibration *c, const double *score, const uint8_t *label, int64_t n) {
    double positives = 0;
    for (int64_t i = 0; i < n; i++) positives += label[i] != 0;
    double negatives = (double)n - positives;
    c->slope = 1;
    c->offset = 0;
    for (int step = 0; step < 50; step++) {
        double gs = 0, go = 0, ss = 1e-9, so = 0, oo = 1e-9;
        for (int64_t i = 0; i < n; i++) {
            double z = basin_logit(score[i]), p = basin_probability_of(c->slope * z + c->offset);
            /* Platt's targets keep a class of few samples from being certain. */
            double target = label[i] ? (positives + 1) / (positives + 2) : 1 / (negatives + 2);
            double d = p - target, w = p * (1 - p);
            gs += d * z, go += d;
            ss += w * z * z, so += w * z, oo += w;
        }
        double determinant = fmax(ss * oo - so * so, 1e-12);
        double slope = (oo * gs - so * go) / determinant,
               offset = (ss * go - so * gs) / determinant;
        double shrink = fmin(1, 2 / fmax(fabs(slope), fabs(offset)));
        c->slope = fmax(c->slope - shrink * slope, 1e-3);
        c->offset -= shrink * offset;
        if (fabs(slope) + fabs(offset) < 1e-10) break;
    }
}

/* ---- isotonic ---- */

typedef struct block {
    double scores, positives, count;
} block;

/* Pools neighbours whose shares of positives fall: what is left rises. */
static int64_t pool(block *b, const basin_sample *s, int64_t n) {
    int64_t blocks = 0;
    for (int64_t i = 0; i < n; i++) {
        block next = {s[i].score, s[i].label, 1};
        while (blocks &&
               (b[blocks - 1].positives * next.count >= next.positives * b[blocks - 1].count ||
                b[blocks - 1].scores * next.count >= next.scores * b[blocks - 1].count)) {
            blocks--;
            next.scores += b[blocks].scores;
            next.positives += b[blocks].positives;
            next.count += b[blocks].count;
        }
        b[blocks++] = next;
    }
    return blocks;
}

static basin_status fit_isotonic(basin_calibration *c, const double *score, const uint8_t *label,
                                 int64_t n, basin_error *error) {
    BASIN_FREE_AT_EXIT basin_sample *s = NULL;
    BASIN_TRY(basin_samples_sort(&s, score, label, n, false, error));
    BASIN_SCRATCH_RAW(block, b, n, "scores", error);
    c->knots = pool(b, s, n);
    BASIN_TRY(BASIN_NEW_RAW(&c->score, c->knots, "a calibration", error));
    BASIN_TRY(BASIN_NEW_RAW(&c->probability, c->knots, "a calibration", error));
    for (int64_t i = 0; i < c->knots; i++) {
        c->score[i] = b[i].scores / b[i].count;
        c->probability[i] = b[i].positives / b[i].count;
    }
    return BASIN_OK;
}

static double interpolate(const basin_calibration *c, double score) {
    int64_t low = 0, high = c->knots - 1;
    if (score <= c->score[low]) return c->probability[low];
    if (score >= c->score[high]) return c->probability[high];
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (c->score[middle] <= score)
            low = middle;
        else
            high = middle;
    }
    double share = (score - c->score[low]) / (c->score[high] - c->score[low]);
    return c->probability[low] + share * (c->probability[high] - c->probability[low]);
}

/* ---- both ---- */

basin_status basin_calibration_fit(basin_calibration *c, basin_calibration_kind kind,
                                   const double *score, const uint8_t *label, int64_t n,
                                   basin_error *error) {
    *c = (basin_calibration){.kind = kind};
    basin_status status = check(score, label, n, error);
    if (!status && kind == BASIN_CALIBRATION_PLATT) fit_platt(c, score, label, n);
    if (!status && kind == BASIN_CALIBRATION_ISOTONIC)
        status = fit_isotonic(c, score, label, n, error);
    if (status) basin_calibration_free(c);
    return status;
}

double basin_calibration_apply(const basin_calibration *c, double score) {
    if (c->kind == BASIN_CALIBRATION_PLATT)
        return basin_probability_of(c->slope * basin_logit(score) + c->offset);
    if (c->kind == BASIN_CALIBRATION_ISOTONIC) return interpolate(c, score);
    return score;
}

void basin_calibration_free(basin_calibration *c) {
    BASIN_FREE(c->score, c->probability);
    *c = (basin_calibration){0};
}

const char *basin_calibration_name(basin_calibration_kind kind) {
    static const char *const name[] = {"none", "platt", "isotonic"};
    return name[kind];
}

/* Fold i % 5 is predicted by a fit to the others. */
static basin_status folded_loss(double *loss, basin_calibration_kind kind, const double *score,
                                const uint8_t *label, int64_t n, basin_error *error) {
    BASIN_SCRATCH_RAW(double, some, n, "scores", error);
    BASIN_SCRATCH_RAW(uint8_t, truth, n, "scores", error);
    *loss = 0;
    for (int fold = 0; fold < 5; fold++) {
        BASIN_AT_EXIT(basin_calibration_free) basin_calibration c = {0};
        int64_t count = 0;
        for (int64_t i = 0; i < n; i++) {
            if (i % 5 == fold) continue;
            some[count] = score[i];
            truth[count++] = label[i];
        }
        BASIN_TRY(basin_calibration_fit(&c, kind, some, truth, count, error));
        for (int64_t i = fold; i < n; i += 5) {
            double p = fmin(fmax(basin_calibration_apply(&c, score[i]), 1e-6), 1 - 1e-6);
            *loss -= log(label[i] ? p : 1 - p);
        }
    }
    return BASIN_OK;
}

basin_status basin_calibration_choose(basin_calibration *c, const double *score,
                                      const uint8_t *label, int64_t n, basin_error *error) {
    basin_calibration_kind best = BASIN_CALIBRATION_PLATT;
    double platt, isotonic;
    *c = (basin_calibration){0};
    BASIN_TRY(check(score, label, n, error));
    /* A fold may lack a class where one is rare; a line then has too little to go by. */
    if (!folded_loss(&platt, BASIN_CALIBRATION_PLATT, score, label, n, NULL) &&
        !folded_loss(&isotonic, BASIN_CALIBRATION_ISOTONIC, score, label, n, NULL) &&
        isotonic < platt)
        best = BASIN_CALIBRATION_ISOTONIC;
    return basin_calibration_fit(c, best, score, label, n, error);
}

/* ---- reliability, goals, drift ---- */

void basin_reliability_measure(basin_reliability *reliability, const double *probability,
                               const uint8_t *label, int64_t n) {
    basin_reliability r = {0};
    double predicted[BASIN_RELIABILITY_BINS] = {0}, observed[BASIN_RELIABILITY_BINS] = {0};
    for (int64_t i = 0; i < n; i++) {
        double p = probability[i], truth = label[i] != 0;
        int bin = (int)fmin(p * BASIN_RELIABILITY_BINS, BASIN_RELIABILITY_BINS - 1);
        r.bin[bin].count++;
        predicted[bin] += p;
        observed[bin] += truth;
        r.brier += (p - truth) * (p - truth) / (double)n;
        r.log_loss -= log(fmax(truth > 0 ? p : 1 - p, 1e-15)) / (double)n;
    }
    for (int b = 0; b < BASIN_RELIABILITY_BINS; b++) {
        double count = (double)r.bin[b].count;
        r.ece += fabs(predicted[b] - observed[b]) / (double)n;
        r.bin[b].predicted = count > 0 ? predicted[b] / count : NAN;
        r.bin[b].observed = count > 0 ? observed[b] / count : NAN;
    }
    basin_info_fill(reliability, &r, sizeof r);
}

typedef struct cut {
    int64_t alerts, right, positives, all;
} cut;

static bool reaches(basin_goal goal, double value, cut c) {
    if (goal == BASIN_GOAL_PRECISION) return (double)c.right >= value * (double)c.alerts;
    if (goal == BASIN_GOAL_RECALL) return (double)c.right >= value * (double)c.positives;
    if (goal == BASIN_GOAL_FPR)
        return (double)(c.alerts - c.right) <= value * (double)(c.all - c.positives);
    if (goal == BASIN_GOAL_SURE) {
        double n = (double)c.alerts, share = (double)c.right / n, z = 1.2815515655446004;
        double spread = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n));
        return share + z * z / (2 * n) - spread >= value * (1 + z * z / n);
    }
    return (double)c.alerts <= value;
}

basin_status basin_threshold_for(double *threshold, basin_goal goal, double value,
                                 const double *score, const uint8_t *label, int64_t n,
                                 basin_error *error) {
    BASIN_FREE_AT_EXIT basin_sample *s = NULL;
    BASIN_TRY(check(score, label, n, error));
    BASIN_TRY(basin_samples_sort(&s, score, label, n, false, error));
    cut c = {.all = n};
    for (int64_t i = 0; i < n; i++) c.positives += s[i].label;
    bool found = goal == BASIN_GOAL_BUDGET || goal == BASIN_GOAL_FPR; /* of no alert at all */
    *threshold = s[n - 1].score;
    for (int64_t i = n; i > 0;) { /* from the highest score down, ties together */
        double here = s[i - 1].score;
        for (; i > 0 && s[i - 1].score == here; i--) {
            c.alerts++;
            c.right += s[i - 1].label;
        }
        if (!reaches(goal, value, c)) continue;
        *threshold = i > 0 ? s[i - 1].score + (here - s[i - 1].score) / 2 : nextafter(here, -1);
        found = true;
        if (goal == BASIN_GOAL_RECALL) break;
    }
    if (found) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "no threshold has a precision of %g", value);
}

double basin_stability_index(const double *a, const double *b, int64_t bins) {
    double sum_a = 0, sum_b = 0, index = 0;
    for (int64_t i = 0; i < bins; i++) {
        sum_a += a[i];
        sum_b += b[i];
    }
    for (int64_t i = 0; i < bins; i++) {
        double x = fmax(a[i] / sum_a, 1e-4), y = fmax(b[i] / sum_b, 1e-4);
        index += (y - x) * log(y / x);
    }
    return index;
}
