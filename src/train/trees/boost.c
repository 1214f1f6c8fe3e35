/* Boosting: rounds of trees on the gradient of the loss, until validation stops improving. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/team/processors.h"
#include "base/team/team.h"
#include "basin/metrics.h"
#include "train/trees/grow.h"

const basin_trees_spec BASIN_TREES_DEFAULT = {
    .rounds = 1000,
    .patience = 50,
    .leaves = 31,
    .depth = 6,
    .rate = 0.05,
    .l2 = 1,
    .least_hessian = 1,
    .rows = 0.8,
    .columns = 0.8,
    .classes = 2,
};

typedef struct boost {
    const basin_trees_data *data;
    const basin_trees_spec *spec;
    basin_trees *trees;
    basin_binned binned;
    basin_grower grower;
    double *score;            /* [rows, scores] */
    uint8_t *hit;             /* [validations] whether of class 1; NULL: the loss judges */
    basin_gradient *gradient; /* [trains] */
} boost;

static int32_t label_of(const basin_trees_data *data, int64_t r) {
    return data->label[r < data->trains ? data->train[r] : data->validation[r - data->trains]];
}

static double weight_of(const basin_trees_data *data, int32_t label) {
    return data->weight ? data->weight[label] : 1;
}

/* ---- losses ---- */

/* The probability of class `k`, numbered by scores: the only score is that of class 1. */
static double probability(const double *score, int64_t scores, int64_t k) {
    if (scores == 1) return 1 / (1 + exp(-score[0]));
    double most = score[0], sum = 0;
    for (int64_t j = 1; j < scores; j++) most = fmax(most, score[j]);
    for (int64_t j = 0; j < scores; j++) sum += exp(score[j] - most);
    return exp(score[k] - most) / sum;
}

typedef struct sloping {
    const boost *boost;
    int64_t k;
} sloping;

static void set_gradients(const void *context, int64_t first, int64_t last, int place) {
    const boost *b = ((const sloping *)context)->boost;
    int64_t scores = b->trees->scores, k = ((const sloping *)context)->k;
    (void)place;
    for (int64_t r = first; r < last; r++) {
        int32_t label = label_of(b->data, r);
        double p = probability(b->score + r * scores, scores, k), w = weight_of(b->data, label);
        bool hit = scores == 1 ? label == 1 : label == k;
        b->gradient[r] = (basin_gradient){w * (p - hit), fmax(w * p * (1 - p), 1e-16)};
    }
}

static void set_gradient(const boost *b, int64_t k) {
    sloping s = {b, k};
    int64_t rows = b->data->trains, work = 16 * rows * b->trees->scores;
    basin_team_run(set_gradients, &s, rows, 0, basin_team_size(basin_processors(), work));
}

/* Mean cross entropy of the validation rows, as they weigh in training. */
static double validation_loss(const boost *b) {
    int64_t scores = b->trees->scores;
    double loss = 0, weights = 0;
    for (int64_t r = b->data->trains; r < b->binned.rows; r++) {
        int32_t label = label_of(b->data, r);
        double p = probability(b->score + r * scores, scores, scores == 1 ? 0 : label);
        double w = weight_of(b->data, label), hit = scores == 1 && label == 0 ? 1 - p : p;
        loss -= w * log(fmax(hit, 1e-15));
        weights += w;
    }
    return loss / weights;
}

/* What validation wants low: the loss, or AUROC and AUPRC turned round. */
static basin_status judge(double *fault, const boost *b, basin_error *error) {
    basin_ranking ranking;
    if (!b->hit) {
        *fault = validation_loss(b);
        return BASIN_OK;
    }
    basin_status status = basin_ranking_measure(&ranking, b->score + b->data->trains, b->hit,
                                                b->data->validations, 0, error);
    *fault = status ? 0 : -ranking.auroc - ranking.auprc;
    return status;
}

/* ---- rounds ---- */

/* Without a tree a row scores the logarithm of its class's share. */
static void set_base(boost *b) {
    int64_t scores = b->trees->scores, classes = b->spec->classes;
    double total = 0, *share = b->trees->base;
    for (int64_t k = 0; k < scores; k++) share[k] = 0;
    for (int64_t r = 0; r < b->data->trains; r++) {
        int32_t label = label_of(b->data, r);
        double w = weight_of(b->data, label);
        total += w;
        if (scores > 1 || label == 1) share[scores > 1 ? label : 0] += w;
    }
    for (int64_t k = 0; k < scores; k++) {
        double p = (share[k] + 0.5) / (total + 0.5 * (double)classes);
        share[k] = scores == 1 ? log(p / (1 - p)) : log(p);
    }
    for (int64_t r = 0; r < b->binned.rows; r++)
        memcpy(b->score + r * scores, share, (size_t)scores * sizeof *share);
}

static basin_status grow_round(boost *b, int64_t round, basin_error *error) {
    int64_t scores = b->trees->scores;
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < scores && !status; k++) {
        set_gradient(b, k);
        status = basin_grower_grow(&b->grower, b->trees, b->gradient, round * scores + k, error);
        if (!status) basin_grower_apply(&b->grower, b->trees, b->score + k, scores);
    }
    return status;
}

static basin_status run_rounds(boost *b, const basin_watch *watch, basin_error *error) {
    int64_t best_round = 0;
    double best = INFINITY;
    bool stops = b->spec->patience > 0 && b->data->validations > 0;
    basin_status status = BASIN_OK;
    for (int64_t round = 0; round < b->spec->rounds && !basin_watch_stopped(watch); round++) {
        status = grow_round(b, round, error);
        if (status) return status;
        double fault = 0;
        if (stops) status = judge(&fault, b, error);
        if (status) return status;
        if (!stops || fault < best) {
            best = fault;
            best_round = round + 1;
        }
        if (stops && round + 1 - best_round >= b->spec->patience) break;
    }
    b->trees->trees = best_round * b->trees->scores;
    return BASIN_OK;
}

static basin_status check(const basin_trees_data *data, const basin_trees_spec *spec,
                          basin_error *error) {
    if (data->trains < 1 || data->features < 1 || spec->leaves < 1 || spec->classes < 2)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "boosted trees of %lld rows, %lld features, %lld leaves and %lld classes",
                          (long long)data->trains, (long long)data->features,
                          (long long)spec->leaves, (long long)spec->classes);
    for (int64_t r = 0; r < data->trains + data->validations; r++) {
        int32_t label = label_of(data, r);
        if (label < 0 || label >= spec->classes)
            return basin_fail(error, BASIN_BAD_VALUE, "a row has label %d, wanted 0 to %lld",
                              (int)label, (long long)spec->classes - 1);
    }
    return BASIN_OK;
}

/* Both classes are needed to rank. */
static basin_status list_hits(boost *b, basin_error *error) {
    int64_t n = b->data->validations, hits = 0;
    if (!b->spec->ranks || b->trees->scores > 1) return BASIN_OK;
    for (int64_t i = 0; i < n; i++) hits += label_of(b->data, b->data->trains + i) == 1;
    if (!hits || hits == n) return BASIN_OK;
    b->hit = basin_array_new((size_t)n, 1);
    if (!b->hit)
        return basin_fail(error, BASIN_NO_MEMORY, "boosted trees of %lld rows", (long long)n);
    for (int64_t i = 0; i < n; i++) b->hit[i] = label_of(b->data, b->data->trains + i) == 1;
    return BASIN_OK;
}

static basin_status prepare(boost *b, basin_error *error) {
    int64_t scores = b->spec->classes == 2 ? 1 : b->spec->classes;
    basin_status status = basin_binned_new(&b->binned, b->data, error);
    if (!status) status = basin_grower_new(&b->grower, &b->binned, b->spec, error);
    if (status) return status;
    b->trees->features = b->data->features;
    b->trees->scores = scores;
    b->trees->base = calloc((size_t)scores, sizeof *b->trees->base);
    b->trees->root = calloc(1, sizeof *b->trees->root);
    b->trees->root_capacity = 1;
    b->score = basin_array_new((size_t)(b->binned.rows * scores), sizeof *b->score);
    b->gradient = basin_array_new((size_t)b->data->trains, sizeof *b->gradient);
    if (!b->trees->base || !b->trees->root || !b->score || !b->gradient)
        return basin_fail(error, BASIN_NO_MEMORY, "boosted trees of %lld rows",
                          (long long)b->binned.rows);
    set_base(b);
    return list_hits(b, error);
}

basin_status basin_trees_fit(basin_trees **trees, const basin_trees_data *data,
                             const basin_trees_spec *spec, const basin_watch *watch,
                             basin_error *error) {
    *trees = NULL;
    basin_status status = check(data, spec, error);
    if (status) return status;
    boost b = {.data = data, .spec = spec, .trees = calloc(1, sizeof **trees)};
    if (!b.trees) return basin_fail(error, BASIN_NO_MEMORY, "boosted trees");
    status = prepare(&b, error);
    if (!status) status = run_rounds(&b, watch, error);
    basin_grower_free(&b.grower);
    basin_binned_free(&b.binned);
    free(b.score);
    free(b.hit);
    free(b.gradient);
    if (status)
        basin_trees_free(b.trees);
    else
        *trees = b.trees;
    return status;
}
