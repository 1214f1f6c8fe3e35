/* How good predictions are: ranking, decisions at a threshold, and plain errors.
 *
 * Binary tasks have a score per sample, larger meaning more likely positive, and labels 0 and 1.
 * Samples of equal score are never ordered by chance or by place: every measure here gives a tie
 * the value it has on average over all orders of the tied samples (average precision: over the
 * thresholds between distinct scores, as is usual). */
#ifndef BASIN_METRICS_H
#define BASIN_METRICS_H

#include "basin/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct basin_ranking {
    size_t size; /* set by the caller */
    int64_t positives, negatives;
    double auroc;    /* the chance that a positive scores above a negative; ties count half */
    double auprc;    /* average precision: sum over thresholds of (recall gained) x precision */
    int64_t k;       /* the number of highest scores that recall_k counts */
    double recall_k; /* positives among them over all positives */
} basin_ranking;

/* `k` 0 means the number of positives. An error where a class is missing or a score is NaN. */
BASIN_API basin_status basin_ranking_measure(basin_ranking *ranking, const double *score /* [n] */,
                                             const uint8_t *label /* [n] */, int64_t n, int64_t k,
                                             basin_error *error);

/* Does not grow. */
typedef struct basin_confusion {
    int64_t true_positive, false_positive, true_negative, false_negative;
} basin_confusion;

/* A sample counts as positive where its score is above the threshold. */
BASIN_API void basin_confusion_count(basin_confusion *confusion, const double *score /* [n] */,
                                     const uint8_t *label /* [n] */, int64_t n, double threshold);
/* The mean of both classes' F1; 0 for a class that is neither there nor predicted. */
BASIN_API double basin_confusion_macro_f1(const basin_confusion *confusion);

typedef enum basin_threshold_scan {
    BASIN_THRESHOLD_SCAN_ALL,  /* halfway between any two neighbouring scores */
    BASIN_THRESHOLD_SCAN_GRID, /* 0.05, 0.10, .. 0.95, as published comparisons do */
    /* as ALL, but each judged by the mean macro-F1 of the cuts around it, up to a fifth of the
     * positives further up and down: with few positives the single best cut is chance */
    BASIN_THRESHOLD_SCAN_SMOOTH,
} basin_threshold_scan;

/* The threshold of the highest macro-F1 on these samples (validation, never test); ties go to the
 * middle of the first run of equal ones. `macro_f1`, its value there, may be NULL. */
BASIN_API basin_status basin_threshold_best(double *threshold, double *macro_f1,
                                            const double *score /* [n] */,
                                            const uint8_t *label /* [n] */, int64_t n,
                                            basin_threshold_scan scan, basin_error *error);

/* The mean, and the population standard deviation: divided by n, not by n - 1, as numpy's std.
 * The program prints both as "mean +- deviation", over folds, runs or masks. */
BASIN_API void basin_mean_deviation(double *mean, double *deviation, const double *value /* [n] */,
                                    int64_t n);
/* The 95 % interval of the mean by Student's t. `overlap` 0: the numbers are independent. Those of
 * folds are not, since their training sets are mostly the same: there it is test items over
 * training items (Nadeau and Bengio 2003), 1/9 for ten folds, and the variance of the mean is
 * s^2 (1 / n + overlap). False, and nothing written, for fewer than two numbers. */
BASIN_API bool basin_mean_interval(double *low, double *high, const double *value /* [n] */,
                                   int64_t n, double overlap);

#ifdef __cplusplus
}
#endif
#endif
