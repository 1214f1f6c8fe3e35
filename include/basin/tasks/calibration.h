/* Scores as probabilities, and thresholds that reach a goal.
 *
 *     basin_calibration calibration;
 *     basin_calibration_fit(&calibration, BASIN_CALIBRATION_PLATT, score, label, n, &error);
 *     double p = basin_calibration_apply(&calibration, score[i]);
 *     basin_calibration_free(&calibration);
 *
 * The scores of a model may be badly calibrated: of 100 samples scored 0.7, 40 may be positive. A
 * calibration, fitted where the labels are known, maps 0.7 to 0.4. It never reverses the order of
 * two samples. */
#ifndef BASIN_CALIBRATION_H
#define BASIN_CALIBRATION_H

#include "basin/tasks/metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum basin_calibration_kind {
    BASIN_CALIBRATION_NONE,     /* the score itself */
    BASIN_CALIBRATION_PLATT,    /* sigmoid(slope logit(score) + offset) */
    BASIN_CALIBRATION_ISOTONIC, /* piecewise linear through knots, constant beyond them */
} basin_calibration_kind;

typedef struct basin_calibration {
    basin_calibration_kind kind;
    double slope, offset; /* PLATT */
    int64_t knots;        /* ISOTONIC */
    double *score;        /* [knots] ascending */
    double *probability;  /* [knots] ascending */
} basin_calibration;

/* Scores lie in 0 .. 1. An error where a class is missing. */
BASIN_API basin_status basin_calibration_fit(basin_calibration *calibration,
                                             basin_calibration_kind kind,
                                             const double *score /* [n] */,
                                             const uint8_t *label /* [n] */, int64_t n,
                                             basin_error *error);
BASIN_API double basin_calibration_apply(const basin_calibration *calibration, double score);
BASIN_API void basin_calibration_free(basin_calibration *calibration);

/* How far probabilities are from frequencies. */
enum { BASIN_RELIABILITY_BINS = 10 };
typedef struct basin_reliability {
    size_t size; /* set by the caller */
    struct {
        int64_t count;
        double predicted, observed; /* mean probability; share of positives; NaN without samples */
    } bin[BASIN_RELIABILITY_BINS];  /* of equal width */
    double ece;                     /* mean of |predicted - observed| over samples */
    double brier, log_loss;
} basin_reliability;
BASIN_API void basin_reliability_measure(basin_reliability *reliability,
                                         const double *probability /* [n] */,
                                         const uint8_t *label /* [n] */, int64_t n);

/* What a threshold should reach. Samples that score above it are alerts. */
typedef enum basin_goal {
    BASIN_GOAL_PRECISION, /* as many alerts as possible with this precision */
    BASIN_GOAL_RECALL,    /* as few alerts as possible with this recall */
    BASIN_GOAL_BUDGET,    /* at most this number of alerts */
    BASIN_GOAL_FPR,       /* as many alerts as possible with this false positive rate */
    BASIN_GOAL_SURE,      /* as PRECISION, by the lower bound of Wilson's interval of 90 % */
} basin_goal;
/* An error where no threshold reaches the precision. */
BASIN_API basin_status basin_threshold_for(double *threshold, basin_goal goal, double value,
                                           const double *score /* [n] */,
                                           const uint8_t *label /* [n] */, int64_t n,
                                           basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
