/* Boosted trees by XGBoost; see trees.h. */
#include "tasks/nodes/trees/trees.h"

#include <inttypes.h>
#include <pthread.h>

#include "base/library.h"
#include "base/number.h"
#include "base/parallel.h"
#include "basin/tasks/metrics.h"

typedef void *handle;
#define FUNCTIONS(X)                                                                               \
    X(int, XGDMatrixCreateFromDense, (const char *array, const char *config, handle *matrix))      \
    X(int, XGDMatrixSetFloatInfo,                                                                  \
      (handle matrix, const char *field, const float *value, uint64_t count))                      \
    X(int, XGDMatrixFree, (handle matrix))                                                         \
    X(int, XGBoosterCreate, (const handle *matrix, uint64_t count, handle *booster))               \
    X(int, XGBoosterSetParam, (handle booster, const char *name, const char *value))               \
    X(int, XGBoosterUpdateOneIter, (handle booster, int round, handle matrix))                     \
    X(int, XGBoosterBoostedRounds, (handle booster, int *rounds))                                  \
    X(int, XGBoosterGetNumFeature, (handle booster, uint64_t * count))                             \
    X(int, XGBoosterSlice, (handle booster, int begin, int end, int step, handle *slice))          \
    X(int, XGBoosterPredictFromDMatrix,                                                            \
      (handle booster, handle matrix, const char *config, const uint64_t **shape, uint64_t *rank,  \
       const float **value))                                                                       \
    X(int, XGBoosterPredictFromDense,                                                              \
      (handle booster, const char *array, const char *config, handle matrix,                       \
       const uint64_t **shape, uint64_t *rank, const float **value))                               \
    X(int, XGBoosterSaveModelToBuffer,                                                             \
      (handle booster, const char *config, uint64_t *bytes, const char **buffer))                  \
    X(int, XGBoosterLoadModelFromBuffer, (handle booster, const void *buffer, uint64_t bytes))     \
    X(int, XGBoosterFree, (handle booster))                                                        \
    X(const char *, XGBGetLastError, (void))
#define FIELD(type, name, arguments) type(*name) arguments;
#define NAME(type, name, arguments) {#name, NULL},

static struct { FUNCTIONS(FIELD) } xgb;

const basin_trees_spec BASIN_TREES_DEFAULT = {
    .rounds = 1000,
    .patience = 50,
    .leaves = 31,
    .depth = 6,
    .bins = 64,
    .rate = 0.05,
    .l2 = 1,
    .min_hessian = 1,
    .rows = 0.8,
    .columns = 0.8,
};

struct basin_trees {
    handle booster;
    basin_row_net *net; /* in its place */
};

/* ---- the library ---- */

basin_status basin_trees_available(basin_error *error) {
    static const basin_library_function needed[] = {FUNCTIONS(NAME){0}};
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    basin_status status = xgb.XGBGetLastError
                              ? BASIN_OK
                              : basin_library_load(&xgb, BASIN_LIBRARY_XGBOOST, needed, error);
    if (status) xgb.XGBGetLastError = NULL;
    pthread_mutex_unlock(&lock);
    return status;
}

/* The first line of what XGBoost says; a stack trace follows. */
static basin_status fail(basin_status status, const char *path, basin_error *error) {
    const char *text = xgb.XGBGetLastError();
    return basin_fail(error, status, "%s%sXGBoost: %.*s", path,
                      *path ? ": its boosted trees: " : "", (int)strcspn(text, "\n"), text);
}

/* The status of a call, which is 0 where it went well. */
static basin_status check(int code, basin_error *error) {
    return code ? fail(BASIN_UNSUPPORTED, "", error) : BASIN_OK;
}

static basin_status set(handle booster, const char *name, const char *value, basin_error *error) {
    return check(xgb.XGBoosterSetParam(booster, name, value), error);
}

static basin_status set_number(handle booster, const char *name, double value, basin_error *error) {
    char text[40];
    basin_real_print(text, sizeof text, 12, value);
    return set(booster, name, text, error);
}

enum { ARRAY = 200 };

/* The first `features` columns of rows as XGBoost describes arrays. */
static const char *describe(char text[ARRAY], const float *x, int64_t rows, int64_t features,
                            int64_t stride) {
    snprintf(text, ARRAY,
             "{\"data\":[%" PRIuPTR ",true],\"shape\":[%" PRId64 ",%" PRId64
             "],\"strides\":[%" PRId64 ",4],\"typestr\":\"<f4\",\"version\":3}",
             (uintptr_t)x, rows, features, stride * (int64_t)sizeof *x);
    return text;
}

static void free_matrix(handle *matrix) {
    if (*matrix) xgb.XGDMatrixFree(*matrix);
}

static basin_status make_matrix(handle *matrix, const float *x, int64_t rows, int64_t features,
                                int64_t stride, basin_error *error) {
    char array[ARRAY];
    return check(xgb.XGDMatrixCreateFromDense(describe(array, x, rows, features, stride),
                                              "{\"missing\":NaN,\"nthread\":1}", matrix),
                 error);
}

/* Logits (1) or Shapley values (2) of rows; cached for rows that the booster was made with. */
static basin_status ask(const float **value, handle booster, handle matrix, int type,
                        basin_error *error) {
    char config[120];
    const uint64_t *shape;
    uint64_t rank;
    snprintf(config, sizeof config,
             "{\"type\":%d,\"training\":false,\"iteration_begin\":0,\"iteration_end\":0,"
             "\"strict_shape\":false}",
             type);
    return check(xgb.XGBoosterPredictFromDMatrix(booster, matrix, config, &shape, &rank, value),
                 error);
}

/* ---- a fit ---- */

typedef struct fit {
    const basin_trees_data *data;
    const basin_trees_spec *spec;
    handle train, validation, booster;
    double *logit; /* [validations] */
    bool ranks;    /* validation has both classes, and judges by ranks */
} fit;

static basin_status make_rows(handle *matrix, const basin_trees_data *d, int64_t first,
                              int64_t rows, basin_error *error) {
    BASIN_SCRATCH_RAW(float, value, rows, "labels of trees", error);
    BASIN_TRY(make_matrix(matrix, d->x + first * d->stride, rows, d->features, d->stride, error));
    const float *target = first < d->trains ? d->target : NULL;
    for (int64_t i = 0; i < rows; i++) value[i] = target ? target[i] : d->label[first + i];
    BASIN_TRY(check(xgb.XGDMatrixSetFloatInfo(*matrix, "label", value, (uint64_t)rows), error));
    for (int64_t i = 0; i < rows; i++)
        value[i] = target ? 1 : (float)d->weight[d->label[first + i]];
    return check(xgb.XGDMatrixSetFloatInfo(*matrix, "weight", value, (uint64_t)rows), error);
}

/* Without trees a row scores the logarithm of its class's odds. */
static double base_of(const basin_trees_data *d) {
    double sum[2] = {0, 0};
    for (int64_t i = 0; i < d->trains; i++)
        if (d->target)
            sum[1] += (double)d->target[i], sum[0] += 1 - (double)d->target[i];
        else
            sum[d->label[i]] += d->weight[d->label[i]];
    return (sum[1] + 0.5) / (sum[0] + sum[1] + 1);
}

static basin_status configure(fit *f, basin_error *error) {
    const basin_trees_spec *s = f->spec;
    const struct {
        const char *name;
        double value;
    } number[] = {
        {"base_score", base_of(f->data)},
        {"eta", s->rate},
        {"max_depth", (double)s->depth},
        {"max_leaves", (double)s->leaves},
        {"lambda", s->l2},
        {"min_child_weight", s->min_hessian},
        {"subsample", s->rows},
        {"colsample_bytree", s->columns},
        {"colsample_bynode", s->split_columns > 0 ? s->split_columns : 1},
        {"num_parallel_tree", (double)(s->forest > 0 ? s->forest : 1)},
        {"seed", (double)(s->seed % 2147483647)},
        {"nthread", 1},
        {"verbosity", 0},
        {"max_bin", (double)s->bins},
    };
    BASIN_TRY(set(f->booster, "objective", "binary:logistic", error));
    BASIN_TRY(set(f->booster, "tree_method", "hist", error));
    BASIN_TRY(set(f->booster, "seed_per_iteration", "true", error));
    BASIN_TRY(set(f->booster, "grow_policy", s->leaves ? "lossguide" : "depthwise", error));
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        BASIN_TRY(set_number(f->booster, number[i].name, number[i].value, error));
    return BASIN_OK;
}

/* Mean cross entropy of the validation rows, as they weigh in training. */
static double validation_loss(const fit *f) {
    const basin_trees_data *d = f->data;
    double loss = 0, weights = 0;
    for (int64_t i = 0; i < d->validations; i++) {
        int label = d->label[d->trains + i];
        double z = label ? f->logit[i] : -f->logit[i];
        loss += d->weight[label] * (z > 0 ? log1p(exp(-z)) : log1p(exp(z)) - z);
        weights += d->weight[label];
    }
    return loss / weights;
}

/* What validation should have low. */
static basin_status judge(double *fault, const fit *f, basin_error *error) {
    const basin_trees_data *d = f->data;
    const float *value;
    basin_ranking ranking = {.size = sizeof ranking};
    BASIN_TRY(ask(&value, f->booster, f->validation, 1, error));
    for (int64_t i = 0; i < d->validations; i++) f->logit[i] = (double)value[i];
    *fault = validation_loss(f);
    if (!f->ranks) return BASIN_OK;
    BASIN_TRY(
        basin_ranking_measure(&ranking, f->logit, d->label + d->trains, d->validations, 0, error));
    *fault = -ranking.auprc - (f->spec->stop == BASIN_TREES_BY_RANKS ? ranking.auroc : 0);
    return BASIN_OK;
}

static basin_status run_rounds(fit *f, const basin_watch *watch, basin_error *error) {
    int64_t best_round = 0, round = 0;
    double best = INFINITY, fault = 0;
    bool stops = f->spec->patience > 0 && f->data->validations > 0;
    while (round < f->spec->rounds && !basin_watch_stopped(watch)) {
        BASIN_TRY(check(xgb.XGBoosterUpdateOneIter(f->booster, (int)round++, f->train), error));
        if (stops) BASIN_TRY(judge(&fault, f, error));
        if (!stops || fault < best) best = fault, best_round = round;
        if (round - best_round >= f->spec->patience && stops) break;
    }
    if (best_round == round) return BASIN_OK;
    handle all = f->booster; /* the rounds after the best one go */
    BASIN_TRY(check(xgb.XGBoosterSlice(all, 0, (int)best_round, 1, &f->booster), error));
    xgb.XGBoosterFree(all);
    return BASIN_OK;
}

static void fit_free(fit *f) {
    free_matrix(&f->train), free_matrix(&f->validation);
    if (f->booster) xgb.XGBoosterFree(f->booster);
    free(f->logit);
}

basin_status basin_trees_fit(basin_trees **trees, const basin_trees_data *data,
                             const basin_trees_spec *spec, const basin_watch *watch,
                             basin_error *error) {
    BASIN_AT_EXIT(fit_free) fit f = {.data = data, .spec = spec};
    int64_t ones = 0;
    *trees = NULL;
    if (data->trains < 1 || data->features < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "boosted trees of %lld rows and %lld columns",
                          (long long)data->trains, (long long)data->features);
    BASIN_TRY(basin_trees_available(error));
    BASIN_TRY(BASIN_NEW(&f.logit, data->validations, "boosted trees", error));
    BASIN_TRY(make_rows(&f.train, data, 0, data->trains, error));
    if (data->validations)
        BASIN_TRY(make_rows(&f.validation, data, data->trains, data->validations, error));
    const handle known[2] = {f.train, f.validation};
    BASIN_TRY(check(xgb.XGBoosterCreate(known, data->validations ? 2 : 1, &f.booster), error));
    BASIN_TRY(configure(&f, error));
    for (int64_t i = 0; i < data->validations; i++) ones += data->label[data->trains + i];
    f.ranks = spec->stop != BASIN_TREES_BY_LOSS && ones && ones < data->validations;
    BASIN_TRY(run_rounds(&f, watch, error));
    BASIN_TRY(set_number(f.booster, "nthread", basin_thread_count(), error));
    BASIN_TRY(BASIN_NEW(trees, 1, "boosted trees", error));
    (*trees)->booster = f.booster;
    f.booster = NULL;
    return BASIN_OK;
}

void basin_trees_free(basin_trees *trees) {
    if (!trees) return;
    if (trees->booster) xgb.XGBoosterFree(trees->booster);
    basin_row_net_free(trees->net);
    free(trees);
}

int64_t basin_trees_features(const basin_trees *trees) {
    uint64_t count = 0;
    if (trees->net) return basin_row_net_features(trees->net);
    return xgb.XGBoosterGetNumFeature(trees->booster, &count) ? 0 : (int64_t)count;
}

int64_t basin_trees_rounds(const basin_trees *trees) {
    int rounds = 0;
    return xgb.XGBoosterBoostedRounds(trees->booster, &rounds) ? 0 : rounds;
}

/* ---- predictions ---- */

basin_status basin_trees_predict(double *logit, const basin_trees *trees, const float *x,
                                 int64_t rows, int64_t stride, basin_error *error) {
    char array[ARRAY];
    const uint64_t *shape;
    const float *value;
    uint64_t rank;
    if (!rows) return BASIN_OK;
    if (trees->net) return basin_row_net_predict(logit, trees->net, x, rows, stride, error);
    if (!basin_trees_rounds(trees)) { /* the fit was stopped before its first */
        memset(logit, 0, (size_t)rows * sizeof *logit);
        return BASIN_OK;
    }
    describe(array, x, rows, basin_trees_features(trees), stride);
    BASIN_TRY(check(xgb.XGBoosterPredictFromDense(trees->booster, array,
                                                  "{\"type\":1,\"training\":false,"
                                                  "\"iteration_begin\":0,\"iteration_end\":0,"
                                                  "\"missing\":NaN,\"strict_shape\":false,"
                                                  "\"cache_id\":0}",
                                                  NULL, &shape, &rank, &value),
                    error));
    for (int64_t i = 0; i < rows; i++) logit[i] = (double)value[i];
    return BASIN_OK;
}

basin_status basin_trees_shapley(float *value, const basin_trees *trees, const float *x,
                                 int64_t rows, int64_t stride, basin_error *error) {
    BASIN_AT_EXIT(free_matrix) handle matrix = NULL;
    const float *found;
    int64_t features = basin_trees_features(trees);
    if (trees->net) return basin_row_net_moves(value, trees->net, x, rows, stride, error);
    BASIN_TRY(make_matrix(&matrix, x, rows, features, stride, error));
    BASIN_TRY(ask(&found, trees->booster, matrix, 2, error));
    memcpy(value, found, (size_t)(rows * (features + 1)) * sizeof *value);
    return BASIN_OK;
}

/* ---- files ---- */

enum { KEY = 64 };

basin_status basin_trees_store(basin_bundle *bundle, const char *prefix, const basin_trees *trees,
                               basin_error *error) {
    char key[KEY];
    const char *bytes;
    uint64_t count;
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor copy = {0};
    if (trees->net) return basin_row_net_store(bundle, prefix, trees->net, error);
    BASIN_TRY(check(
        xgb.XGBoosterSaveModelToBuffer(trees->booster, "{\"format\":\"ubj\"}", &count, &bytes),
        error));
    BASIN_TRY(basin_tensor_new(&copy, BASIN_U8, BASIN_SHAPE((int64_t)count), error));
    memcpy(copy.data, bytes, count);
    snprintf(key, KEY, "%sxgboost", prefix);
    return basin_bundle_add(bundle, key, &copy, error);
}

static basin_status load(basin_trees *trees, const basin_bundle *bundle, const char *prefix,
                         basin_error *error) {
    char key[KEY];
    const char *path = basin_bundle_path(bundle);
    snprintf(key, KEY, "%sxgboost", prefix);
    const basin_tensor *bytes = basin_bundle_find(bundle, key);
    if (!bytes || bytes->dtype != BASIN_U8)
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s is %s, needs U8", path, key,
                          bytes ? basin_dtype_name(bytes->dtype) : "absent");
    BASIN_TRY(basin_trees_available(error));
    BASIN_TRY(check(xgb.XGBoosterCreate(NULL, 0, &trees->booster), error));
    size_t count = (size_t)basin_shape_count(bytes->shape);
    if (!xgb.XGBoosterLoadModelFromBuffer(trees->booster, bytes->data, count) &&
        basin_trees_features(trees) > 0)
        return set_number(trees->booster, "nthread", basin_thread_count(), error);
    return fail(BASIN_BAD_FILE, path, error);
}

basin_status basin_trees_load(basin_trees **trees, const basin_bundle *bundle, const char *prefix,
                              basin_error *error) {
    BASIN_TRY(BASIN_NEW(trees, 1, "boosted trees", error));
    basin_status status = basin_row_net_load(&(*trees)->net, bundle, prefix, error);
    if (!status && !(*trees)->net) status = load(*trees, bundle, prefix, error);
    if (status) basin_trees_free(*trees), *trees = NULL;
    return status;
}
