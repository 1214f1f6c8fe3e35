/* Positions of nodes: eigenvectors of the normalised Laplacian L = I - D^-1/2 A D^-1/2, and return
 * probabilities of random walks. Graphs are taken as undirected.
 *
 * The eigenvectors 1 .. k behind the first, ascending, each with the sign that makes the sum of its
 * cubes positive (where that vanishes: its largest entry). A graph with fewer has zeros behind
 * them. LAPACK for graphs that a dense matrix suits, ARPACK for larger ones. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"
#include "base/memory.h"
#include "data/graphset/graphset.h"

enum { DENSE_LIMIT = 1000 }; /* nodes up to which LAPACK is used */

extern void dsyevr_(const char *job, const char *range, const char *half, const int *n, double *a,
                    const int *lda, const double *low, const double *high, const int *first,
                    const int *last, const double *tolerance, int *found, double *value,
                    double *vector, const int *ldz, int *support, double *work, const int *lwork,
                    int *iwork, const int *liwork, int *info);
extern void dsaupd_(int *ido, const char *bmat, const int *n, const char *which, const int *nev,
                    const double *tol, double *resid, const int *ncv, double *v, const int *ldv,
                    int *iparam, int *ipntr, double *workd, double *workl, const int *lworkl,
                    int *info);
extern void dseupd_(const int *rvec, const char *all, int *select, double *d, double *z,
                    const int *ldz, const double *sigma, const char *bmat, const int *n,
                    const char *which, const int *nev, const double *tol, double *resid,
                    const int *ncv, double *v, const int *ldv, int *iparam, int *ipntr,
                    double *workd, double *workl, const int *lworkl, int *info);

#define ARPACK_FUNCTIONS(X) X(dsaupd_) X(dseupd_)
typedef struct arpack_table {
    ARPACK_FUNCTIONS(BASIN_LIBRARY_FIELD)
} arpack_table;
typedef struct lapack_table {
    BASIN_LIBRARY_FIELD(dsyevr_)
} lapack_table;
static const basin_library_function arpack_functions[] = {ARPACK_FUNCTIONS(BASIN_LIBRARY_LINK){0}};
static const basin_library_function lapack_functions[] = {BASIN_LIBRARY_LINK(dsyevr_){0}};

/* A graph as S = D^-1/2 A D^-1/2 in CSR, symmetric, without self loops (but the CLS's own, where
 * that is in). */
typedef struct matrix {
    int n;
    int64_t *row; /* [n + 1] */
    int32_t *column;
    double *value;
} matrix;

static void matrix_free(matrix *s) {
    free(s->row);
    free(s->column);
    free(s->value);
}

static basin_status no_memory(int64_t nodes, basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the positions of %lld nodes",
                      (long long)nodes);
}

/* With the CLS it is node 0 and the others follow, as published: tied to all and to itself. */
static basin_status matrix_new(matrix *s, int64_t nodes, const int32_t *edge, int64_t count,
                               bool cls, basin_error *error) {
    basin_pairs pairs = {0};
    int64_t n = nodes + cls, total = count + (cls ? n : 0);
    *s = (matrix){.n = (int)n};
    int32_t *all = basin_array_new((size_t)total, 2 * sizeof *all);
    if (!all) return no_memory(nodes, error);
    for (int64_t e = 0; e < 2 * count; e++) all[e] = edge[e] + cls;
    for (int64_t i = 0; i < n && cls; i++)
        all[2 * (count + i)] = 0, all[2 * (count + i) + 1] = (int32_t)i;
    basin_status status = basin_pairs_new(&pairs, n, n, all, total, BASIN_PAIRS_BOTH_WAYS, error);
    free(all);
    if (status) return status;
    s->row = basin_array_new((size_t)n + 1, sizeof *s->row);
    s->column = basin_array_new((size_t)pairs.pairs, sizeof *s->column);
    s->value = basin_array_new((size_t)pairs.pairs, sizeof *s->value);
    if (s->row && s->column && s->value) {
        for (int64_t i = 0; i <= n; i++) s->row[i] = pairs.row[i];
        memcpy(s->column, pairs.key, (size_t)pairs.pairs * sizeof *s->column);
        for (int64_t i = 0; i < n; i++)
            for (int64_t e = s->row[i]; e < s->row[i + 1]; e++) {
                int32_t j = s->column[e];
                double degrees = (double)(pairs.row[i + 1] - pairs.row[i]) *
                                 (double)(pairs.row[j + 1] - pairs.row[j]);
                s->value[e] = 1 / sqrt(degrees);
            }
    } else
        status = no_memory(nodes, error);
    basin_pairs_free(&pairs);
    return status;
}

static void multiply(double *y, const matrix *s, const double *x) {
    for (int64_t i = 0; i < s->n; i++) {
        double sum = 0;
        for (int64_t e = s->row[i]; e < s->row[i + 1]; e++) sum += s->value[e] * x[s->column[e]];
        y[i] = sum;
    }
}

/* ---- eigenvectors ---- */

/* Columns 0 .. want - 1 of `vector` become the eigenvectors of the smallest eigenvalues of L,
 * ascending. */
static basin_status eigen_dense(double *vector, const matrix *s, int want, basin_error *error) {
    int n = s->n, first = 1, found = 0, info = 0, lwork = 40 * n, liwork = 20 * n;
    double zero = 0, tolerance = 1e-12;
    double *a = calloc((size_t)n * (size_t)n, sizeof *a);
    double *value = basin_array_new((size_t)n, sizeof *value);
    double *work = basin_array_new((size_t)lwork, sizeof *work);
    int *iwork = basin_array_new((size_t)liwork + 2 * (size_t)n, sizeof *iwork);
    lapack_table lapack;
    basin_status status =
        basin_library_load(&lapack, BASIN_LIBRARY_LAPACK, lapack_functions, error);
    if (!status && a && value && work && iwork) {
        for (int64_t i = 0; i < n; i++) {
            a[i * n + i] = 1;
            for (int64_t e = s->row[i]; e < s->row[i + 1]; e++)
                a[i * n + s->column[e]] -= s->value[e];
        }
        lapack.dsyevr_("V", "I", "U", &n, a, &n, &zero, &zero, &first, &want, &tolerance, &found,
                       value, vector, &n, iwork + liwork, work, &lwork, iwork, &liwork, &info);
        if (info || found != want)
            status = basin_fail(error, BASIN_BAD_VALUE,
                                "LAPACK found %d of %d eigenvectors of a graph of %d nodes "
                                "(dsyevr: %d)",
                                found, want, n, info);
    } else if (!status)
        status = no_memory(n, error);
    free(a);
    free(value);
    free(work);
    free(iwork);
    return status;
}

typedef struct lanczos {
    arpack_table arpack;
    int n, want, basis, lwork, info;
    double *v, *work, *large, *residual, *value;
    int *select;
} lanczos;

/* The largest eigenvalues of S are the smallest of L. They come ascending: the smallest of L is
 * last. Starts from a vector of its own, so that the result is the same every time. */
static bool eigen_lanczos(lanczos *l, const matrix *s, double *vector) {
    int ido = 0, parameter[11] = {1, 0, 100000 / l->basis + 300, 0, 0, 0, 1}, at[11], info = 1;
    int yes = 1;
    double tolerance = 1e-13, sigma = 0;
    for (int i = 0; i < l->n; i++) l->residual[i] = 1 + 0.3 * sin(1.0 + (double)i);
    for (;;) {
        l->arpack.dsaupd_(&ido, "I", &l->n, "LA", &l->want, &tolerance, l->residual, &l->basis,
                          l->v, &l->n, parameter, at, l->work, l->large, &l->lwork, &info);
        if (ido != -1 && ido != 1) break;
        multiply(l->work + at[1] - 1, s, l->work + at[0] - 1);
    }
    if (info || parameter[4] < l->want) return false;
    l->arpack.dseupd_(&yes, "A", l->select, l->value, vector, &l->n, &sigma, "I", &l->n, "LA",
                      &l->want, &tolerance, l->residual, &l->basis, l->v, &l->n, parameter, at,
                      l->work, l->large, &l->lwork, &info);
    return info == 0;
}

static void reverse_columns(double *vector, int n, int count) {
    for (int c = 0; c < count / 2; c++)
        for (int i = 0; i < n; i++) {
            double *a = vector + (size_t)c * (size_t)n + i;
            double *b = vector + (size_t)(count - 1 - c) * (size_t)n + i;
            double keep = *a;
            *a = *b, *b = keep;
        }
}

static basin_status eigen_sparse(double *vector, const matrix *s, int want, basin_error *error) {
    lanczos l = {.n = s->n, .want = want, .basis = 4 * want + 40};
    basin_status status =
        basin_library_load(&l.arpack, BASIN_LIBRARY_ARPACK, arpack_functions, error);
    if (status) return status;
    if (l.basis > l.n) l.basis = l.n;
    l.lwork = l.basis * (l.basis + 8);
    l.v = basin_array_new((size_t)l.n * (size_t)l.basis, sizeof *l.v);
    l.work = basin_array_new(3 * (size_t)l.n, sizeof *l.work);
    l.large = basin_array_new((size_t)l.lwork, sizeof *l.large);
    l.residual = basin_array_new((size_t)l.n, sizeof *l.residual);
    l.value = basin_array_new((size_t)l.basis, sizeof *l.value);
    l.select = basin_array_new((size_t)l.basis, sizeof *l.select);
    bool memory = l.v && l.work && l.large && l.residual && l.value && l.select, found = false;
    if (memory) {
        /* ARPACK keeps variables of its own between calls: one graph at a time. */
        static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&one_at_a_time);
        found = eigen_lanczos(&l, s, vector);
        pthread_mutex_unlock(&one_at_a_time);
    }
    if (found) reverse_columns(vector, l.n, want);
    free(l.v);
    free(l.work);
    free(l.large);
    free(l.residual);
    free(l.value);
    free(l.select);
    if (!memory) return no_memory(s->n, error);
    return found ? BASIN_OK : eigen_dense(vector, s, want, error);
}

/* +1 or -1, whatever makes the vector's sign the one of the rule. */
static double sign_of(const double *v, int64_t n) {
    double cubes = 0, size = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        cubes += v[i] * v[i] * v[i];
        size += fabs(v[i] * v[i] * v[i]);
        if (fabs(v[i]) > fabs(largest) * (1 + 1e-9)) largest = v[i];
    }
    if (fabs(cubes) > 1e-6 * size) return cubes < 0 ? -1 : 1;
    return largest < 0 ? -1 : 1;
}

static basin_status add_vectors(float *value, int64_t width, const basin_position_spec *spec,
                                int64_t nodes, const int32_t *edge, int64_t count,
                                basin_error *error) {
    matrix s;
    bool cls = spec->with_cls;
    int64_t n = nodes + cls;
    int want = (int)(spec->vectors + 1 < n ? spec->vectors + 1 : n);
    if (want < 2) return BASIN_OK;
    basin_status status = matrix_new(&s, nodes, edge, count, cls, error);
    double *vector = status ? NULL : basin_array_new((size_t)n * (size_t)want, sizeof *vector);
    if (!status && !vector) status = no_memory(nodes, error);
    bool dense = n <= DENSE_LIMIT || n <= 8 * (int64_t)want;
    if (!status)
        status =
            dense ? eigen_dense(vector, &s, want, error) : eigen_sparse(vector, &s, want, error);
    for (int64_t c = 1; c < want && !status; c++) {
        const double *v = vector + c * n;
        double sign = sign_of(v, n);
        for (int64_t i = 0; i < n; i++) value[(i + !cls) * width + c - 1] = (float)(sign * v[i]);
    }
    free(vector);
    matrix_free(&s);
    return status;
}

/* ---- walks ---- */

/* (P^t)_ii = (S^t)_ii = (S^a e_i) . (S^b e_i) with a + b = t: half the steps suffice. */
static basin_status add_walks(float *value, int64_t width, const basin_position_spec *spec,
                              int64_t nodes, const int32_t *edge, int64_t count,
                              basin_error *error) {
    matrix s;
    basin_status status = matrix_new(&s, nodes, edge, count, false, error);
    double *step = status ? NULL : basin_array_new((size_t)nodes, 2 * sizeof *step);
    if (!status && !step) status = no_memory(nodes, error);
    for (int64_t i = 0; i < nodes && !status; i++) {
        double *now = step, *next = step + nodes;
        float *out = value + (i + 1) * width + spec->vectors;
        memset(step, 0, 2 * (size_t)nodes * sizeof *step);
        now[i] = 1;
        for (int64_t t = 1; t <= spec->walks; t += 2) {
            multiply(next, &s, now);
            double odd = 0, even = 0;
            for (int64_t j = 0; j < nodes; j++) odd += now[j] * next[j], even += next[j] * next[j];
            out[t - 1] = (float)odd;
            if (t < spec->walks) out[t] = (float)even;
            double *keep = now;
            now = next, next = keep;
        }
    }
    free(step);
    matrix_free(&s);
    return status;
}

basin_status basin_positions_of(float *value, const basin_position_spec *spec, int64_t nodes,
                                const int32_t *edge, int64_t count, basin_error *error) {
    int64_t width = spec->vectors + spec->walks;
    memset(value, 0, (size_t)((nodes + 1) * width) * sizeof *value);
    basin_status status = BASIN_OK;
    if (spec->vectors > 0) status = add_vectors(value, width, spec, nodes, edge, count, error);
    if (!status && spec->walks > 0 && nodes > 0)
        status = add_walks(value, width, spec, nodes, edge, count, error);
    return status;
}
