/* XGBoost, opened at run time, as the rival that every fraud team has: boosted trees on the inputs
 * that our own trees read, stopped where validation AUPRC no longer rises. The few functions of its
 * C API are declared here, so that building wants no header of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/library.h"
#include "base/memory.h"
#include "base/team/processors.h"
#include "task/anomaly/anomaly.h"

typedef void *handle;
int XGDMatrixCreateFromMat(const float *data, uint64_t rows, uint64_t columns, float missing,
                           handle *matrix);
int XGDMatrixSetFloatInfo(handle matrix, const char *field, const float *value, uint64_t count);
int XGDMatrixFree(handle matrix);
int XGBoosterCreate(const handle *matrix, uint64_t count, handle *booster);
int XGBoosterSetParam(handle booster, const char *name, const char *value);
int XGBoosterUpdateOneIter(handle booster, int round, handle matrix);
int XGBoosterPredict(handle booster, handle matrix, int options, unsigned trees, int training,
                     uint64_t *count, const float **value);
int XGBoosterFree(handle booster);
const char *XGBGetLastError(void);

#define FUNCTIONS(X)                                                                               \
    X(XGDMatrixCreateFromMat)                                                                      \
    X(XGDMatrixSetFloatInfo)                                                                       \
    X(XGDMatrixFree)                                                                               \
    X(XGBoosterCreate)                                                                             \
    X(XGBoosterSetParam)                                                                           \
    X(XGBoosterUpdateOneIter)                                                                      \
    X(XGBoosterPredict)                                                                            \
    X(XGBoosterFree)                                                                               \
    X(XGBGetLastError)

enum { ROUNDS = 1000, PATIENCE = 50 };

typedef struct rival {
    struct {
        FUNCTIONS(BASIN_LIBRARY_FIELD)
    } xgb;
    const basin_network *network;
    const uint8_t *part;
    const basin_tree_table *table;
    handle train, all, validation, booster;
    int64_t rounds; /* best */
} rival;

static basin_status failed(const rival *r, basin_error *error) {
    return basin_fail(error, BASIN_UNSUPPORTED, "XGBoost: %.300s", r->xgb.XGBGetLastError());
}

/* A matrix of the nodes of a part, or of all. */
static basin_status make_matrix(handle *matrix, rival *r, int part, basin_error *error) {
    int64_t N = r->network->nodes, C = r->table->columns;
    int64_t count = part ? basin_split_nodes(NULL, r->part, N, part) : N;
    int64_t *node = basin_array_new((size_t)count, sizeof *node);
    float *label = basin_array_new((size_t)count, sizeof *label), *x = NULL;
    size_t cells;
    if (basin_size_multiply(&cells, (size_t)count, (size_t)C))
        x = basin_array_new(cells, sizeof *x);
    basin_status status = node && label && x ? BASIN_OK : BASIN_NO_MEMORY;
    if (status) basin_fail(error, status, "out of memory for the inputs of XGBoost");
    if (!status) {
        if (part) basin_split_nodes(node, r->part, N, part);
        for (int64_t i = 0; i < count; i++) {
            if (!part) node[i] = i;
            label[i] = r->network->label[node[i]] == 1;
        }
        basin_tree_table_rows(x, r->table, node, 0, count);
        if (r->xgb.XGDMatrixCreateFromMat(x, (uint64_t)count, (uint64_t)C, NAN, matrix) ||
            r->xgb.XGDMatrixSetFloatInfo(*matrix, "label", label, (uint64_t)count))
            status = failed(r, error);
    }
    free(node), free(label), free(x);
    return status;
}

static basin_status start(rival *r, int64_t seed, basin_error *error) {
    char number[32], threads[32];
    snprintf(number, sizeof number, "%lld", (long long)(seed % 2147483647));
    snprintf(threads, sizeof threads, "%d", basin_processors());
    const char *const parameter[][2] = {{"objective", "binary:logistic"},
                                        {"tree_method", "hist"},
                                        {"eta", "0.05"},
                                        {"max_depth", "6"},
                                        {"subsample", "0.8"},
                                        {"colsample_bytree", "0.8"},
                                        {"verbosity", "0"},
                                        {"seed", number},
                                        {"nthread", threads}};
    if (r->xgb.XGBoosterCreate(&r->train, 1, &r->booster)) return failed(r, error);
    for (size_t i = 0; i < sizeof parameter / sizeof *parameter; i++)
        if (r->xgb.XGBoosterSetParam(r->booster, parameter[i][0], parameter[i][1]))
            return failed(r, error);
    return BASIN_OK;
}

static basin_status predict(const float **value, uint64_t *count, rival *r, handle matrix,
                            int64_t rounds, basin_error *error) {
    if (r->xgb.XGBoosterPredict(r->booster, matrix, 0, (unsigned)rounds, 0, count, value))
        return failed(r, error);
    return BASIN_OK;
}

/* AUPRC of the validation nodes, whose labels `s` has. */
static basin_status judge(double *auprc, rival *r, basin_anomaly_samples *s, basin_error *error) {
    const float *value;
    uint64_t count;
    basin_ranking ranking;
    basin_status status = predict(&value, &count, r, r->validation, 0, error);
    for (int64_t i = 0; i < s->count && !status; i++) s->score[i] = (double)value[i];
    if (!status) status = basin_ranking_measure(&ranking, s->score, s->label, s->count, 0, error);
    *auprc = status ? 0 : ranking.auprc;
    return status;
}

static basin_status boost(rival *r, const double *zero, const basin_watch *watch,
                          basin_error *error) {
    basin_anomaly_samples s;
    double best = -1, auprc;
    basin_status status =
        basin_anomaly_samples_take(&s, zero, r->network, r->part, BASIN_PART_VAL, error);
    for (int64_t i = 0; i < ROUNDS && !status && i - r->rounds < PATIENCE; i++) {
        if (basin_watch_stopped(watch)) break;
        if (r->xgb.XGBoosterUpdateOneIter(r->booster, (int)i, r->train)) status = failed(r, error);
        if (!status) status = judge(&auprc, r, &s, error);
        if (status || auprc <= best) continue;
        best = auprc;
        r->rounds = i + 1;
    }
    basin_anomaly_samples_free(&s);
    return status;
}

static basin_status run(double *probability, rival *r, int64_t seed, const basin_watch *watch,
                        basin_error *error) {
    const float *value;
    uint64_t count;
    basin_status status = make_matrix(&r->train, r, BASIN_PART_TRAIN, error);
    if (!status) status = make_matrix(&r->validation, r, BASIN_PART_VAL, error);
    if (!status) status = make_matrix(&r->all, r, BASIN_PART_NONE, error);
    if (!status) status = start(r, seed, error);
    for (int64_t i = 0; i < r->network->nodes; i++) probability[i] = 0;
    if (!status) status = boost(r, probability, watch, error);
    if (!status) status = predict(&value, &count, r, r->all, r->rounds, error);
    for (int64_t i = 0; i < r->network->nodes && !status; i++) probability[i] = (double)value[i];
    if (r->booster) r->xgb.XGBoosterFree(r->booster);
    if (r->train) r->xgb.XGDMatrixFree(r->train);
    if (r->validation) r->xgb.XGDMatrixFree(r->validation);
    if (r->all) r->xgb.XGDMatrixFree(r->all);
    return status;
}

basin_status basin_anomaly_xgboost(double *probability, int64_t *rounds, int64_t seed,
                                   const basin_network *network, const uint8_t *part,
                                   const basin_training *training, basin_error *error) {
    static const basin_library_function wanted[] = {FUNCTIONS(BASIN_LIBRARY_NAME){0}};
    basin_anomaly_ensemble inputs = {.degree = true, .facts = network->facts.count > 0};
    basin_tree_table table = {0};
    rival r = {.network = network, .part = part, .table = &table};
    basin_status status = basin_library_load(&r.xgb, BASIN_LIBRARY_XGBOOST, wanted, error);
    if (!status && !basin_split_nodes(NULL, part, network->nodes, BASIN_PART_VAL))
        status = basin_fail(error, BASIN_BAD_VALUE, "%s: no nodes for validation", network->path);
    if (!status) status = basin_anomaly_ensemble_name(&inputs, network, error);
    if (!status) status = basin_tree_table_open(&table, network, &inputs, training->memory, error);
    if (!status) status = run(probability, &r, seed, training->watch, error);
    *rounds = r.rounds;
    basin_tree_table_close(&table);
    basin_anomaly_ensemble_free(&inputs);
    return status;
}
