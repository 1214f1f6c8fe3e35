/* Scaling of features, fitted on some nodes (those that train) and used on all.
 *
 *     standard   y = (x - mean) / deviation
 *     quantile   y = Phi^-1(F(x)), F the empirical distribution of the fitted nodes, read off
 * `points` quantiles with straight lines between them; ties go to the middle of their ranks
 *     rows       y = x / sum over features of |x|, which is fitted on nothing */

#include "base/bundle.h"
#include "base/parallel.h"
#include "base/shape.h"
#include "base/sort.h"
#include "tasks/nodes/network/network.h"

enum { MAX_POINTS = 1001, KINDS = 4 };

static const char *const kind_name[KINDS] = {"none", "standard", "quantile", "rows"};

static bool is_fitted(basin_scaler_kind kind) {
    return kind == BASIN_SCALE_STANDARD || kind == BASIN_SCALE_QUANTILE;
}

basin_status basin_scaler_parse(basin_scaler_kind *kind, const char *name, basin_error *error) {
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(name, kind_name[i])) {
            *kind = (basin_scaler_kind)i;
            return BASIN_OK;
        }
    return basin_fail(error, BASIN_BAD_VALUE,
                      "scaling '%s', expected none, standard, quantile or rows", name);
}

void basin_scaler_free(basin_scaler *scale) {
    BASIN_FREE(scale->mean, scale->factor, scale->quantile, scale->score);
    *scale = (basin_scaler){0};
}

static basin_status alloc(basin_scaler *s, basin_error *error) {
    size_t count, features = (size_t)s->features;
    if (!basin_size_multiply(&count, features, (size_t)s->points))
        return basin_fail_memory(error, "scaling of features");
    if (s->kind == BASIN_SCALE_STANDARD) {
        BASIN_TRY(BASIN_NEW_RAW(&s->mean, features, "scaling of features", error));
        return BASIN_NEW_RAW(&s->factor, features, "scaling of features", error);
    }
    BASIN_TRY(BASIN_NEW_RAW(&s->quantile, count, "scaling of features", error));
    return BASIN_NEW_RAW(&s->score, count, "scaling of features", error);
}

/* Two passes in double: the second about the mean. */
static void fit_standard(basin_scaler *s, const float *x, const int64_t *node, int64_t count) {
    int64_t features = s->features;
    for (int64_t f = 0; f < features; f++) {
        double sum = 0, square = 0;
        for (int64_t i = 0; i < count; i++) sum += x[node[i] * features + f];
        double mean = sum / (double)count;
        for (int64_t i = 0; i < count; i++) {
            double d = x[node[i] * features + f] - mean;
            square += d * d;
        }
        double deviation = sqrt(square / (double)count);
        s->mean[f] = (float)mean;
        /* a constant column differs from its mean only by rounding */
        s->factor[f] = deviation > 1e-7 * fabs(mean) && deviation > 0 ? (float)(1 / deviation) : 1;
    }
}

static void fit_quantile(basin_scaler *s, float *column, const float *x, const int64_t *node,
                         int64_t count) {
    for (int64_t f = 0; f < s->features; f++) {
        float *q = s->quantile + f * s->points;
        for (int64_t i = 0; i < count; i++) column[i] = x[node[i] * s->features + f];
        qsort(column, (size_t)count, sizeof *column, basin_compare_float);
        for (int64_t k = 0; k < s->points; k++) {
            double at =
                s->points > 1 ? (double)k * (double)(count - 1) / (double)(s->points - 1) : 0;
            int64_t i = (int64_t)at;
            double t = at - (double)i;
            double high = column[i + 1 < count ? i + 1 : i];
            q[k] = (float)(column[i] + t * (high - column[i]));
        }
    }
}

double basin_normal_score(double p) {
    static const double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,
                               -2.759285104469687e+02, 1.383577518672690e+02,
                               -3.066479806614716e+01, 2.506628277459239e+00};
    static const double b[] = {-5.447609879822406e+01, 1.615858368580409e+02,
                               -1.556989798598866e+02, 6.680131188771972e+01,
                               -1.328068155288572e+01};
    static const double c[] = {-7.784894002430293e-03, -3.223964580411365e-01,
                               -2.400758277161838e+00, -2.549732539343734e+00,
                               4.374664141464968e+00,  2.938163982698783e+00};
    static const double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                               3.754408661907416e+00};
    if (p > 0.5) return -basin_normal_score(1 - p);
    double x;
    if (p < 0.02425) {
        double q = sqrt(-2 * log(p));
        x = (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
            ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
    } else {
        double q = p - 0.5, r = q * q;
        x = (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
            (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
    }
    double e = 0.5 * erfc(-x / sqrt(2)) - p;
    double u = e * sqrt(2 * acos(-1)) * exp(x * x / 2);
    return x - u / (1 + x * u / 2);
}

int64_t basin_count_below(const float *sorted, int64_t count, float x, bool too) {
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (sorted[middle] < x || (too && sorted[middle] == x))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static float score_of(double p) {
    const double minimal = 1e-7;
    if (p < minimal) p = minimal;
    if (p > 1 - minimal) p = 1 - minimal;
    return (float)basin_normal_score(p);
}

/* The score of x below, between or above quantiles, of which q[low] is the first that is larger. */
static float score_between(const float *q, int64_t points, float x, int64_t low) {
    if (low == 0 || low == points) return score_of(low == 0 ? 0 : 1);
    double part = ((double)x - q[low - 1]) / ((double)q[low] - q[low - 1]);
    return score_of(((double)(low - 1) + part) / (double)(points - 1));
}

/* The scores of the quantiles themselves: many columns have few values, and those are these. */
static void score_quantiles(basin_scaler *s) {
    for (int64_t f = 0; f < s->features; f++) {
        const float *q = s->quantile + f * s->points;
        float *score = s->score + f * s->points;
        for (int64_t low = 0, high; low < s->points; low = high) {
            high = low + 1;
            while (high < s->points && q[high] == q[low]) high++;
            double last = s->points > 1 ? (double)(s->points - 1) : 1;
            float y = score_of(s->points > 1 ? 0.5 * (double)(low + high - 1) / last : 0.5);
            for (int64_t k = low; k < high; k++) score[k] = y;
        }
    }
}

static float to_score(const basin_scaler *s, int64_t f, float x) {
    const float *q = s->quantile + f * s->points;
    int64_t low = basin_count_below(q, s->points, x, false);
    if (low < s->points && q[low] == x) return s->score[f * s->points + low];
    return score_between(q, s->points, x, low);
}

basin_status basin_scaler_fit(basin_scaler *scale, basin_scaler_kind kind, const float *x,
                              int64_t features, const int64_t *node, int64_t count,
                              basin_error *error) {
    *scale = (basin_scaler){.kind = kind, .features = features};
    if (!is_fitted(kind)) return BASIN_OK;
    if (count <= 0)
        return basin_fail(error, BASIN_BAD_VALUE, "no training nodes to fit the scaling on");
    bool standard = kind == BASIN_SCALE_STANDARD;
    if (!standard) scale->points = count < MAX_POINTS ? count : MAX_POINTS;
    BASIN_FREE_AT_EXIT float *column = NULL;
    basin_status status = BASIN_NEW_RAW(&column, count, "scaling of features", error);
    if (!status) status = alloc(scale, error);
    if (status) return basin_scaler_free(scale), status;
    if (standard) return fit_standard(scale, x, node, count), BASIN_OK;
    fit_quantile(scale, column, x, node, count);
    score_quantiles(scale);
    return BASIN_OK;
}

static void share_row(float *y, const float *x, int64_t features) {
    double sum = 0;
    for (int64_t f = 0; f < features; f++) sum += fabs((double)x[f]);
    for (int64_t f = 0; f < features; f++) y[f] = sum > 0 ? (float)(x[f] / sum) : 0;
}

static void apply_row(float *y, const basin_scaler *s, const float *x) {
    int64_t F = s->features;
    if (s->kind == BASIN_SCALE_ROWS) share_row(y, x, F);
    for (int64_t f = 0; f < F && is_fitted(s->kind); f++)
        y[f] = s->mean ? (x[f] - s->mean[f]) * s->factor[f] : to_score(s, f, x[f]);
}

typedef struct applying {
    float *y;
    const basin_scaler *scale;
    const float *x;
} applying;

static void apply_rows(const void *context, int64_t first, int64_t last) {
    const applying *a = context;
    for (int64_t i = first; i < last; i++)
        apply_row(a->y + i * a->scale->features, a->scale, a->x + i * a->scale->features);
}

void basin_scaler_apply(float *y, const basin_scaler *scale, const float *x, int64_t n) {
    if (scale->kind == BASIN_SCALE_NONE) {
        if (y != x) memcpy(y, x, (size_t)(n * scale->features) * sizeof *y);
        return;
    }
    applying a = {y, scale, x};
    int threads = n > 64 ? basin_thread_count() : 1;
    basin_parallel_for(apply_rows, &a, n, 0, threads);
}

/* ---- in model files ---- */

enum { KEY_TEXT = 100 };

/* What is stored of each kind. */
static const struct {
    const char *name;
    size_t offset; /* in basin_scaler */
    basin_scaler_kind kind;
} array[] = {{"mean", offsetof(basin_scaler, mean), BASIN_SCALE_STANDARD},
             {"factor", offsetof(basin_scaler, factor), BASIN_SCALE_STANDARD},
             {"quantile", offsetof(basin_scaler, quantile), BASIN_SCALE_QUANTILE}};

static float **array_of(basin_scaler *s, int i) {
    return (float **)(void *)((char *)s + array[i].offset);
}

basin_status basin_scaler_store(basin_bundle *bundle, const char *prefix, const basin_scaler *scale,
                                basin_error *error) {
    bool rows = scale->kind == BASIN_SCALE_QUANTILE;
    basin_shape shape =
        rows ? BASIN_SHAPE(scale->features, scale->points) : BASIN_SHAPE(scale->features);
    char key[KEY_TEXT];
    snprintf(key, sizeof key, "%skind", prefix);
    BASIN_TRY(basin_bundle_meta_set(bundle, key, kind_name[scale->kind], error));
    for (int i = 0; i < 3; i++) {
        if (array[i].kind != scale->kind) continue;
        snprintf(key, sizeof key, "%s%s", prefix, array[i].name);
        const float *data = *array_of((basin_scaler *)(uintptr_t)scale, i);
        BASIN_TRY(basin_bundle_put(bundle, key, data, BASIN_F32, shape, error));
    }
    return BASIN_OK;
}

/* One array; the first says how many features there are. */
static basin_status load(basin_scaler *s, int i, const basin_bundle *bundle, const char *prefix,
                         basin_error *error) {
    char key[KEY_TEXT];
    const basin_tensor *t;
    int rank = s->kind == BASIN_SCALE_QUANTILE ? 2 : 1;
    snprintf(key, sizeof key, "%s%s", prefix, array[i].name);
    BASIN_TRY(basin_bundle_get(&t, bundle, key, error));
    if (t->shape.rank != rank || basin_shape_count(t->shape) < 1 ||
        basin_tensor_first_bad(t) >= 0 || (s->features && t->shape.dim[0] != s->features))
        return basin_fail(error, BASIN_BAD_FILE, "%s: %s is %s, expected %d axes of finite numbers",
                          basin_bundle_path(bundle), key, basin_shape_text(t->shape), rank);
    bool first = !s->features;
    s->features = t->shape.dim[0], s->points = rank == 2 ? t->shape.dim[1] : 0;
    if (first) BASIN_TRY(alloc(s, error));
    basin_tensor to = basin_tensor_borrow(*array_of(s, i), BASIN_F32, t->shape);
    return basin_tensor_convert(&to, t, error);
}

basin_status basin_scaler_load(basin_scaler *scale, const basin_bundle *bundle, const char *prefix,
                               basin_error *error) {
    char key[KEY_TEXT];
    *scale = (basin_scaler){0};
    snprintf(key, sizeof key, "%skind", prefix);
    const char *kind = basin_bundle_meta(bundle, key);
    BASIN_TRY(basin_scaler_parse(&scale->kind, kind ? kind : "none", error));
    for (int i = 0; i < 3; i++)
        if (array[i].kind == scale->kind)
            BASIN_TRY_OR(load(scale, i, bundle, prefix, error), basin_scaler_free(scale));
    if (scale->quantile) score_quantiles(scale);
    return BASIN_OK;
}
