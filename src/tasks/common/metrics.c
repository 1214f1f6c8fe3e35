/* Measures of predictions; see include/basin/tasks/metrics.h. */

#include "base/sized.h"
#include "base/sort.h"
#include "base/try.h"
#include "basin/tasks/metrics_picture.h"
#include "tasks/common/calibration.h"

/* The samples by falling score; free them. */
static basin_status sort_samples(basin_sample **sorted, const double *score, const uint8_t *label,
                                 int64_t n, basin_error *error) {
    for (int64_t i = 0; i < n; i++) {
        if (isnan(score[i]))
            return basin_fail(error, BASIN_BAD_VALUE, "score %lld is not a number", (long long)i);
        if (label[i] > 1)
            return basin_fail(error, BASIN_BAD_VALUE, "label %lld is %d; expected 0 or 1",
                              (long long)i, label[i]);
    }
    return basin_samples_sort(sorted, score, label, n, true, error);
}

/* The end of the group of equal scores that begins at `i`, and its positives. */
static int64_t group_end(const basin_sample *s, int64_t i, int64_t n, int64_t *positives) {
    int64_t j = i;
    *positives = 0;
    for (; j < n && s[j].score == s[i].score; j++) *positives += s[j].label;
    return j;
}

static void walk_ranking(basin_ranking *r, const basin_sample *s, int64_t n) {
    double pairs = 0, precision_sum = 0, found = 0;
    int64_t above = 0, wrong = 0, positives; /* positives and negatives so far */
    for (int64_t i = 0, j; i < n; i = j) {
        j = group_end(s, i, n, &positives);
        int64_t negatives = j - i - positives;
        pairs += (double)negatives * ((double)above + 0.5 * (double)positives);
        if (i < r->k)
            found += (double)positives * (double)((j < r->k ? j : r->k) - i) / (double)(j - i);
        above += positives;
        wrong += negatives;
        precision_sum += (double)positives * (double)above / (double)(above + wrong);
    }
    r->auroc = pairs / ((double)r->positives * (double)r->negatives);
    r->auprc = precision_sum / (double)r->positives;
    r->recall_k = found / (double)r->positives;
}

basin_status basin_ranking_measure(basin_ranking *ranking, const double *score,
                                   const uint8_t *label, int64_t n, int64_t k, basin_error *error) {
    basin_ranking r = {.auroc = NAN, .auprc = NAN, .recall_k = NAN};
    for (int64_t i = 0; i < n; i++) r.positives += label[i] == 1;
    r.negatives = n - r.positives;
    r.k = k > 0 ? k : r.positives;
    basin_info_fill(ranking, &r, sizeof r);
    if (!r.positives || !r.negatives)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%lld positive and %lld negative samples; a ranking requires both",
                          (long long)r.positives, (long long)r.negatives);
    BASIN_FREE_AT_EXIT basin_sample *sorted = NULL;
    BASIN_TRY(sort_samples(&sorted, score, label, n, error));
    walk_ranking(&r, sorted, n);
    basin_info_fill(ranking, &r, sizeof r);
    return BASIN_OK;
}

void basin_confusion_count(basin_confusion *confusion, const double *score, const uint8_t *label,
                           int64_t n, double threshold) {
    basin_confusion c = {0};
    for (int64_t i = 0; i < n; i++) {
        bool positive = score[i] > threshold;
        if (label[i])
            *(positive ? &c.true_positive : &c.false_negative) += 1;
        else
            *(positive ? &c.false_positive : &c.true_negative) += 1;
    }
    *confusion = c;
}

static double macro_f1_at(const double *score, const uint8_t *label, int64_t n, double threshold) {
    basin_confusion c;
    basin_confusion_count(&c, score, label, n, threshold);
    return basin_confusion_macro_f1(&c);
}

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

static double f1(int64_t hit, int64_t false_alarm, int64_t missed) {
    return ratio(2 * (double)hit, (double)(2 * hit + false_alarm + missed));
}

double basin_confusion_macro_f1(const basin_confusion *c) {
    return 0.5 * (f1(c->true_positive, c->false_positive, c->false_negative) +
                  f1(c->true_negative, c->false_negative, c->false_positive));
}

/* The best cut so far: where it is, and the scores on both sides of its run. */
typedef struct best_cut {
    double f1, threshold, high;
    bool open; /* the run of equally good cuts goes on */
} best_cut;

static void offer_cut(best_cut *best, double value, double threshold) {
    if (value > best->f1) {
        *best = (best_cut){value, threshold, threshold, true};
    } else if (best->open && value == best->f1) {
        best->threshold = 0.5 * (best->high + threshold);
    } else {
        best->open = false;
    }
}

static void scan_grid(best_cut *best, const double *score, const uint8_t *label, int64_t n) {
    for (int i = 1; i < 20; i++) {
        double value = macro_f1_at(score, label, n, 0.05 * i);
        if (value > best->f1) *best = (best_cut){value, 0.05 * i, 0, false};
    }
}

/* What all cuts reach: value[k] below the first k samples, sum[k] over those before; inside a group
 * of equal scores as if its positives were spread evenly. */
static void try_cuts(double *value /* [n + 1] */, double *sum /* [n + 2] */, const basin_sample *s,
                     int64_t n, int64_t all_positives) {
    double P = (double)all_positives, hit = 0;
    int64_t positives = 0;
    sum[0] = 0;
    for (int64_t i = 0, j; i <= n; i = j) {
        j = i < n ? group_end(s, i, n, &positives) : n + 1;
        for (int64_t k = i; k < j; k++) {
            double tp = hit + (i < n ? (double)(k - i) * (double)positives / (double)(j - i) : 0);
            double fp = (double)k - tp, fn = P - tp, tn = (double)(n - k) - fn;
            value[k] = ratio(tp, 2 * tp + fp + fn) + ratio(tn, 2 * tn + fn + fp);
            sum[k + 1] = sum[k] + value[k];
        }
        if (i < n) hit += (double)positives;
    }
}

/* Cuts between groups of equal scores, from the highest down; the last lets all be positive.
 * Smooth: each by the mean over those around it. */
static basin_status scan_all(best_cut *best, const basin_sample *s, int64_t n, bool smooth,
                             basin_error *error) {
    int64_t positives = 0, ignored;
    BASIN_SCRATCH_RAW(double, value, n + 1, "thresholds", error);
    BASIN_SCRATCH_RAW(double, sum, n + 2, "thresholds", error);
    for (int64_t i = 0; i < n; i++) positives += s[i].label;
    try_cuts(value, sum, s, n, positives);
    for (int64_t i = 0, j; i <= n; i = j) {
        int64_t low = basin_int_max(i - positives / 5, 0);
        int64_t high = basin_int_min(i + positives / 5, n);
        double below = i == n ? nextafter(s[n - 1].score, -INFINITY)
                       : i    ? 0.5 * (s[i - 1].score + s[i].score)
                              : s[0].score;
        offer_cut(best, smooth ? (sum[high + 1] - sum[low]) / (double)(high + 1 - low) : value[i],
                  below);
        j = i < n ? group_end(s, i, n, &ignored) : n + 1;
    }
    return BASIN_OK;
}

basin_status basin_threshold_best(double *threshold, double *macro_f1, const double *score,
                                  const uint8_t *label, int64_t n, basin_threshold_scan scan,
                                  basin_error *error) {
    best_cut best = {.f1 = -1, .threshold = 0.5};
    BASIN_FREE_AT_EXIT basin_sample *sorted = NULL;
    BASIN_TRY(sort_samples(&sorted, score, label, n, error));
    if (n < 1) return basin_fail(error, BASIN_BAD_VALUE, "no samples to choose a threshold on");
    bool smooth = scan == BASIN_THRESHOLD_SCAN_SMOOTH;
    if (scan == BASIN_THRESHOLD_SCAN_GRID)
        scan_grid(&best, score, label, n);
    else
        BASIN_TRY(scan_all(&best, sorted, n, smooth, error));
    if (smooth) best.f1 = macro_f1_at(score, label, n, best.threshold);
    *threshold = best.threshold;
    if (macro_f1) *macro_f1 = best.f1;
    return BASIN_OK;
}

void basin_mean_deviation(double *mean, double *deviation, const double *value, int64_t n) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += value[i];
    *mean = n > 0 ? sum / (double)n : NAN;
    for (int64_t i = 0; i < n; i++) squares += (value[i] - *mean) * (value[i] - *mean);
    *deviation = n > 0 ? sqrt(squares / (double)n) : NAN;
}

/* The chance that Student's t of `freedom` degrees lies within 0 .. t: with t = sqrt(freedom) tan a
 * its density is c cos(a)^(freedom - 1), summed here by Simpson's rule. */
static double t_within(double t, double freedom) {
    enum { STEPS = 400 };
    double end = atan(t / sqrt(freedom)), sum = 0;
    double c = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(acos(-1));
    for (int i = 0; i <= STEPS; i++) {
        double weight = i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2;
        sum += weight * pow(cos(end * i / STEPS), freedom - 1);
    }
    return c * sum * end / (3 * STEPS);
}

/* The t that 95 % lie within, on both sides of 0; by halving. */
static double t_quantile(double freedom) {
    double low = 0, high = 20;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (t_within(middle, freedom) < 0.475)
            low = middle;
        else
            high = middle;
    }
    return low;
}

bool basin_mean_interval(double *low, double *high, const double *value, int64_t n,
                         double overlap) {
    double mean, deviation, count = (double)n;
    if (n < 2) return false;
    basin_mean_deviation(&mean, &deviation, value, n);
    double variance = deviation * deviation * count / (count - 1);
    double half = t_quantile(count - 1) * sqrt(variance * (1 / count + overlap));
    *low = mean - half;
    *high = mean + half;
    return true;
}

/* ---- pictures ---- */

enum { SIDE = 7, PRODUCTS = 5 }; /* of a window */

double basin_psnr(const float *a, const float *b, int64_t count, double range) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];
        sum += d * d;
    }
    return 10 * log10(range * range * (double)count / sum);
}

static const double weight = 1.0 / SIDE;

/* The five products of a row, filtered along it: out[p, x]. */
static void filter_row(double *out /* [PRODUCTS, across] */, const float *a, const float *b,
                       int64_t across) {
    for (int64_t x = 0; x < across; x++) {
        double sum[PRODUCTS] = {0};
        for (int k = 0; k < SIDE; k++) {
            double u = (double)a[x + k], v = (double)b[x + k], w = weight;
            sum[0] += w * u;
            sum[1] += w * v;
            sum[2] += w * u * u;
            sum[3] += w * v * v;
            sum[4] += w * u * v;
        }
        for (int p = 0; p < PRODUCTS; p++) out[p * across + x] = sum[p];
    }
}

static double similarity(const double m[PRODUCTS], double range) {
    const double unbias = (double)(SIDE * SIDE) / (SIDE * SIDE - 1);
    double c1 = 0.01 * range * 0.01 * range, c2 = 0.03 * range * 0.03 * range;
    double va = unbias * (m[2] - m[0] * m[0]), vb = unbias * (m[3] - m[1] * m[1]);
    double vab = unbias * (m[4] - m[0] * m[1]);
    return (2 * m[0] * m[1] + c1) * (2 * vab + c2) /
           ((m[0] * m[0] + m[1] * m[1] + c1) * (va + vb + c2));
}

basin_status basin_ssim(double *ssim, const float *a, const float *b, int64_t channels,
                        int64_t height, int64_t width, double range, basin_error *error) {
    double total = 0;
    int64_t across = width - SIDE + 1, down = height - SIDE + 1;
    if (channels < 1 || across < 1 || down < 1)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "SSIM of %lld x %lld pixels; the minimum is %d x %d", (long long)height,
                          (long long)width, SIDE, SIDE);
    size_t line = (size_t)across * PRODUCTS;
    double *rows = basin_array_new(line * SIDE, sizeof *rows); /* a ring of SIDE rows */
    if (!rows) return basin_fail_memory(error, "SSIM");
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = 0; y < height; y++) {
            int64_t at = (c * height + y) * width;
            filter_row(rows + (size_t)(y % SIDE) * line, a + at, b + at, across);
            if (y < SIDE - 1) continue;
            double sum = 0;
            for (int64_t x = 0; x < across; x++) {
                double m[PRODUCTS] = {0};
                for (int k = 0; k < SIDE; k++) {
                    const double *row = rows + (size_t)((y - SIDE + 1 + k) % SIDE) * line + x;
                    for (int p = 0; p < PRODUCTS; p++) m[p] += weight * row[p * across];
                }
                sum += similarity(m, range);
            }
            total += sum;
        }
    free(rows);
    *ssim = total / ((double)channels * (double)across * (double)down);
    return BASIN_OK;
}
