/* What others make of the same labels and the same ranked columns; see context.h. Settings are
 * those of bench/context/evaluate.py. */
#include "base/sort.h"
#include "tasks/nodes/context/context.h"

enum { BATCH = 1024, TREES = 300, NEIGHBOURS = 10, ITERATIONS = 30 };
static const char what[] = "a rival";

const char *const basin_context_rival_name[] = {"logistic regression", "nearest neighbours",
                                                "XGBoost", "forest", "bag"};

/* Scores of all columns, a row after the other. */
typedef struct table {
    float *x;  /* [rows, columns] */
    float gap; /* in place of a missing value */
    uint8_t *label;
    int64_t rows, columns;
} table;

static void table_free(table *t) { BASIN_FREE(t->x, t->label); }

static void copy_scores(const table *t, int64_t first, const basin_context *c, const float *row,
                        int64_t rows) {
    float *x = t->x + first * t->columns;
    for (int64_t i = 0; i < rows; i++, row += c->table.cells.cells * BASIN_CELL)
        for (int64_t k = 0; k < c->table.cells.columns; k++) {
            const float *entry = row + basin_cells_place(&c->table.cells, k);
            *x++ = entry[2] != 0 ? entry[0] : t->gap;
        }
}

static basin_status table_of_nodes(table *t, const basin_context *c, const int64_t *node,
                                   int64_t count, basin_error *error) {
    BASIN_SCRATCH_RAW(float, row, BATCH * c->table.cells.cells * BASIN_CELL, what, error);
    t->rows = count, t->columns = c->table.cells.columns;
    BASIN_TRY(BASIN_NEW_RAW(&t->x, count * t->columns, what, error));
    for (int64_t first = 0; first < count; first += BATCH) {
        int64_t some = basin_int_min(BATCH, count - first);
        basin_context_rows(row, &c->table, node + first, some);
        copy_scores(t, first, c, row, some);
    }
    return BASIN_OK;
}

static basin_status table_of_stored(table *t, const basin_context *c, basin_error *error) {
    t->rows = c->stored, t->columns = c->table.cells.columns;
    BASIN_TRY(BASIN_NEW_RAW(&t->x, t->rows * t->columns, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&t->label, t->rows, what, error));
    copy_scores(t, 0, c, c->row, c->stored);
    for (int64_t i = 0; i < c->stored; i++) t->label[i] = (uint8_t)c->label[i];
    return BASIN_OK;
}

/* ---- trees ---- */

static basin_status fit(double *logit, const table *t, const table *asked,
                        const basin_trees_spec *spec, basin_error *error) {
    basin_trees *trees;
    basin_trees_data data = {t->x, t->label, {1, 1}, t->columns, t->columns, t->rows, 0, NULL};
    BASIN_TRY(basin_trees_fit(&trees, &data, spec, NULL, error));
    basin_status status =
        basin_trees_predict(logit, trees, asked->x, asked->rows, asked->columns, error);
    basin_trees_free(trees);
    return status;
}

static basin_status boost(double *p, const table *t, const table *asked, uint64_t seed,
                          basin_error *error) {
    static const struct {
        int64_t rounds, depth;
        double rate;
    } setting[] = {{150, 3, 0.08}, {100, 5, 0.1}, {300, 2, 0.05}};
    BASIN_SCRATCH_RAW(double, logit, asked->rows, what, error);
    for (int s = 0; s < 3; s++) {
        basin_trees_spec spec = {.rounds = setting[s].rounds,
                                 .depth = setting[s].depth,
                                 .rate = setting[s].rate,
                                 .bins = 256,
                                 .l2 = 1,
                                 .min_hessian = 1,
                                 .rows = 0.8,
                                 .columns = 0.6,
                                 .seed = seed};
        BASIN_TRY(fit(logit, t, asked, &spec, error));
        for (int64_t i = 0; i < asked->rows; i++) p[i] += 1 / (1 + exp(-logit[i])) / 3;
    }
    return BASIN_OK;
}

/* One round of many trees: a leaf's step from the rate b is (mean - b) / (b (1 - b)), so that the
 * logit gives the mean over trees of the leaves' rates. */
static basin_status grow_forest(double *p, const table *t, const table *asked, uint64_t seed,
                                basin_error *error) {
    double ones = 0.5;
    for (int64_t i = 0; i < t->rows; i++) ones += t->label[i];
    double base = ones / (double)(t->rows + 1), spread = base * (1 - base);
    basin_trees_spec spec = {.rounds = 1,
                             .depth = 16,
                             .rate = 1,
                             .bins = 256,
                             .l2 = 1e-6,
                             .min_hessian = 2 * spread,
                             .rows = 0.63,
                             .columns = 1,
                             .forest = TREES,
                             .split_columns = 1 / sqrt((double)t->columns),
                             .seed = seed};
    BASIN_TRY(fit(p, t, asked, &spec, error));
    for (int64_t i = 0; i < asked->rows; i++)
        p[i] = fmin(fmax(base + (p[i] - log(base / (1 - base))) * spread, 0), 1);
    return BASIN_OK;
}

/* ---- logistic regression ---- */

/* Solves a x = b in place for a symmetric positive a [n, n]: Cholesky. */
static void solve(double *a, double *b, int64_t n) {
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j; i < n; i++) {
            double sum = a[i * n + j];
            for (int64_t k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? sqrt(fmax(sum, 1e-12)) : sum / a[j * n + j];
        }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < i; k++) b[i] -= a[i * n + k] * b[k];
        b[i] /= a[i * n + i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t k = i + 1; k < n; k++) b[i] -= a[k * n + i] * b[k];
        b[i] /= a[i * n + i];
    }
}

static double logit_of(const double *w, const float *x, int64_t columns) {
    double z = w[columns];
    for (int64_t k = 0; k < columns; k++) z += w[k] * (double)x[k];
    return z;
}

/* Newton's method on |w|^2 / 2 + C sum of losses; the last weight is the intercept. */
static basin_status regress(double *w, const table *t, double C, basin_error *error) {
    int64_t n = t->columns + 1;
    BASIN_SCRATCH_RAW(double, hessian, n *n, what, error);
    BASIN_SCRATCH_RAW(double, step, n, what, error);
    memset(w, 0, (size_t)n * sizeof *w);
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        double moved = 0;
        memset(hessian, 0, (size_t)(n * n) * sizeof *hessian);
        for (int64_t k = 0; k < n; k++)
            step[k] = k < n - 1 ? w[k] : 0, hessian[k * n + k] = k < n - 1;
        for (int64_t i = 0; i < t->rows; i++) {
            const float *x = t->x + i * t->columns;
            double p = 1 / (1 + exp(-logit_of(w, x, t->columns)));
            double slope = C * (p - t->label[i]), curve = C * p * (1 - p);
            for (int64_t j = 0; j < n; j++) {
                double xj = j < n - 1 ? (double)x[j] : 1;
                step[j] += slope * xj;
                for (int64_t k = 0; k <= j; k++)
                    hessian[j * n + k] += curve * xj * (k < n - 1 ? (double)x[k] : 1);
            }
        }
        solve(hessian, step, n);
        for (int64_t k = 0; k < n; k++) w[k] -= step[k], moved = fmax(moved, fabs(step[k]));
        if (moved < 1e-6) break;
    }
    return BASIN_OK;
}

static basin_status run_logistic(double *p, const table *t, const table *asked,
                                 basin_error *error) {
    BASIN_SCRATCH(double, w, t->columns + 1, what, error);
    for (int s = 0; s < 2; s++) {
        BASIN_TRY(regress(w, t, s ? 0.3 : 0.03, error));
        for (int64_t i = 0; i < asked->rows; i++)
            p[i] += 0.5 / (1 + exp(-logit_of(w, asked->x + i * t->columns, t->columns)));
    }
    return BASIN_OK;
}

/* ---- nearest neighbours, by 1 / distance ---- */

static void run_neighbours(double *p, const table *t, const table *asked) {
    for (int64_t i = 0; i < asked->rows; i++) {
        basin_ranked near[NEIGHBOURS];
        int64_t found = 0;
        double weight = 0;
        for (int64_t s = 0; s < t->rows; s++) {
            double sum = 0;
            for (int64_t k = 0; k < t->columns; k++) {
                double d = (double)(asked->x[i * t->columns + k] - t->x[s * t->columns + k]);
                sum += d * d;
            }
            int64_t at = found < NEIGHBOURS ? found++ : NEIGHBOURS - 1;
            if (at == NEIGHBOURS - 1 && found == NEIGHBOURS && s >= NEIGHBOURS &&
                sum >= near[at].value)
                continue;
            for (; at > 0 && near[at - 1].value > sum; at--) near[at] = near[at - 1];
            near[at] = (basin_ranked){sum, s};
        }
        for (int64_t k = 0; k < found; k++) {
            double w = 1 / (sqrt(near[k].value) + 1e-9);
            weight += w, p[i] += w * t->label[near[k].at];
        }
        p[i] /= weight;
    }
}

basin_status basin_context_run_rival(double *p, const basin_context *c, basin_context_rival rival,
                                     uint64_t seed, const int64_t *node, int64_t count,
                                     basin_error *error) {
    float gap = rival >= BASIN_CONTEXT_XGBOOST ? NAN : 0; /* which trees know */
    BASIN_AT_EXIT(table_free) table stored = {.gap = gap};
    BASIN_AT_EXIT(table_free) table asked = {.gap = gap};
    BASIN_TRY(table_of_stored(&stored, c, error));
    BASIN_TRY(table_of_nodes(&asked, c, node, count, error));
    memset(p, 0, (size_t)count * sizeof *p);
    if (rival == BASIN_CONTEXT_NEIGHBOURS) run_neighbours(p, &stored, &asked);
    if (rival == BASIN_CONTEXT_LOGISTIC) return run_logistic(p, &stored, &asked, error);
    if (rival == BASIN_CONTEXT_XGBOOST) return boost(p, &stored, &asked, seed, error);
    if (rival == BASIN_CONTEXT_FOREST) return grow_forest(p, &stored, &asked, seed, error);
    if (rival != BASIN_CONTEXT_BAG) return BASIN_OK;
    BASIN_SCRATCH_RAW(double, forest, count, what, error);
    BASIN_TRY(boost(p, &stored, &asked, seed, error));
    BASIN_TRY(grow_forest(forest, &stored, &asked, seed, error));
    for (int64_t i = 0; i < count; i++) p[i] = (p[i] + forest[i]) / 2;
    return BASIN_OK;
}
