/* The positions of a set or a part of it, in parallel over its graphs. */
#include "base/library.h"
#include "base/parallel.h"
#include "base/sized.h"
#include "base/sort.h"
#include "base/try.h"
#include "base/wide.h"
#include "tasks/graphs/set/graphset.h"

/* A LAPACK with its own threads (OpenBLAS) would divide each small graph among them, while we
 * already run one thread per graph: several times slower, and worse on busy cores. Other LAPACKs do
 * not have these functions. */
static int set_blas_threads(int threads) {
    void (*set)(int) = NULL;
    int (*get)(void) = NULL;
    void *found[2] = {basin_library_find(BASIN_LIBRARY_LAPACK, "openblas_set_num_threads"),
                      basin_library_find(BASIN_LIBRARY_LAPACK, "openblas_get_num_threads")};
    if (!found[0] || !found[1]) return threads;
    memcpy(&set, &found[0], sizeof set);
    memcpy(&get, &found[1], sizeof get);
    int before = get();
    if (before != threads) set(threads);
    return before;
}

typedef struct computing {
    const basin_positions *p;
    const basin_graphset *set;
    int64_t first; /* graph */
} computing;

static basin_status compute_graph(const void *context, int64_t i, basin_error *error) {
    const computing *c = context;
    const basin_positions *p = c->p;
    const basin_graphset *set = c->set;
    int64_t g = c->first + i, first = set->edge_start[g], edges = set->edge_start[g + 1] - first;
    int64_t nodes = basin_graphset_nodes(set, g);
    float *value = p->value + p->start[i] * p->width;
    const int32_t *edge = set->edge + 2 * first;
    BASIN_FREE_AT_EXIT int32_t *own = NULL;
    basin_error why;
    if (set->max_nodes) {
        int64_t kept = 0;
        BASIN_TRY(BASIN_NEW_RAW(&own, 2 * edges, "positions of nodes", error));
        for (int64_t e = 0; e < edges; e++)
            if (basin_graphset_inside(set, first + e, nodes))
                memcpy(own + 2 * kept++, edge + 2 * e, 2 * sizeof *own);
        edge = own, edges = kept;
    }
    basin_status status = basin_positions_of(value, &p->options, nodes, edge, edges, &why);
    if (!status) return BASIN_OK;
    return basin_fail(error, status, "graph %lld: %s", (long long)g, why.text);
}

basin_status basin_positions_new(basin_positions *positions, const basin_graphset *set,
                                 const basin_position_options *o, int64_t first, int64_t count,
                                 basin_error *error) {
    basin_positions *p = positions;
    computing all = {p, set, first};
    BASIN_TRY(BASIN_SIZE_CHECK(o, "basin_position_options", error));
    *p = (basin_positions){.options = *o, .first = first, .width = o->vectors + o->walks};
    if (!p->width) return BASIN_OK;
    BASIN_TRY(BASIN_NEW(&p->start, count + 1, "positions of tokens", error));
    for (int64_t i = 0; i < count; i++)
        p->start[i + 1] = p->start[i] + basin_graphset_tokens(set, first + i);
    p->tokens = p->start[count];
    BASIN_TRY_OR(BASIN_NEW_RAW(&p->value, p->tokens * p->width, "positions of tokens", error),
                 basin_positions_free(p));
    int threads = o->vectors > 0 ? set_blas_threads(1) : 0;
    basin_status status = basin_parallel_try(compute_graph, &all, count, 8, error);
    if (o->vectors > 0) set_blas_threads(threads);
    if (status) basin_positions_free(p);
    return status;
}

void basin_positions_free(basin_positions *positions) {
    BASIN_FREE(positions->value, positions->start);
    *positions = (basin_positions){0};
}

/* Eigenvectors of the normalised Laplacian L = I - D^-1/2 A D^-1/2, and return probabilities of
 * random walks. Graphs are taken as undirected. The eigenvectors 1 .. k after the first, ascending,
 * each with the sign that makes the sum of its cubes positive (where that vanishes: its largest
 * entry). A graph with fewer is padded with zeros. */

enum { MAX_NODES = 20000 }; /* whose dense matrix takes 3 GB */

extern void dsyevr_(const char *job, const char *range, const char *half, const int *n, double *a,
                    const int *lda, const double *low, const double *high, const int *first,
                    const int *last, const double *tolerance, int *found, double *value,
                    double *vector, const int *ldz, int *support, double *work, const int *lwork,
                    int *iwork, const int *liwork, int *info);
typedef struct lapack_table {
    BASIN_LIBRARY_FIELD(dsyevr_)
} lapack_table;
static const basin_library_function lapack_functions[] = {BASIN_LIBRARY_LINK(dsyevr_){0}};

/* A graph as S = D^-1/2 A D^-1/2, symmetric, without self loops (but the CLS's own, where that is
 * in): its pairs, by query, and their values. */
typedef struct matrix {
    int n;
    basin_pairs pairs;
    double *value; /* [pairs] */
} matrix;

static void matrix_free(matrix *s) {
    basin_pairs_free(&s->pairs);
    free(s->value);
}

static const char positions_of[] = "positions of nodes";

/* With the CLS it is node 0 and the others follow, as published: tied to all and to itself. */
static basin_status matrix_new(matrix *s, int64_t nodes, const int32_t *edge, int64_t count,
                               bool cls, basin_error *error) {
    int64_t n = nodes + cls, total = count + (cls ? n : 0);
    *s = (matrix){.n = (int)n};
    BASIN_SCRATCH_RAW(int32_t, all, 2 * total, positions_of, error);
    for (int64_t e = 0; e < 2 * count; e++) all[e] = edge[e] + cls;
    for (int64_t i = 0; i < n && cls; i++)
        all[2 * (count + i)] = 0, all[2 * (count + i) + 1] = (int32_t)i;
    BASIN_TRY(basin_pairs_new(&s->pairs, n, n, all, total, BASIN_PAIRS_BOTH_WAYS, error));
    const int32_t *row = s->pairs.row;
    BASIN_TRY(BASIN_NEW_RAW(&s->value, s->pairs.pairs, positions_of, error));
    for (int64_t i = 0; i < n; i++)
        for (int32_t e = row[i]; e < row[i + 1]; e++) {
            int32_t j = s->pairs.key[e];
            s->value[e] = 1 / sqrt((double)(row[i + 1] - row[i]) * (double)(row[j + 1] - row[j]));
        }
    return BASIN_OK;
}

/* The `count` rows of a list; all where it is NULL. */
static void multiply(double *y, const matrix *s, const double *x, const int32_t *list,
                     int64_t count) {
    const int32_t *row = s->pairs.row, *key = s->pairs.key;
    for (int64_t r = 0; r < count; r++) {
        int64_t i = list ? list[r] : r;
        double sum = 0;
        for (int32_t e = row[i]; e < row[i + 1]; e++) sum += s->value[e] * x[key[e]];
        y[i] = sum;
    }
}

/* ---- eigenvectors ---- */

/* The first columns of `vector` become the eigenvectors of the smallest eigenvalues of L,
 * ascending. */
static basin_status find_vectors(double *vector, const matrix *s, int want, basin_error *error) {
    int n = s->n, first = 1, found = 0, info = 0, lwork = 40 * n, liwork = 20 * n;
    double zero = 0, tolerance = 1e-12;
    size_t size = (size_t)n;
    BASIN_FREE_AT_EXIT double *a = basin_zeros_new(size * size, sizeof *a);
    BASIN_FREE_AT_EXIT double *work = basin_array_new(size + (size_t)lwork, sizeof *work);
    BASIN_FREE_AT_EXIT int *iwork = basin_array_new((size_t)liwork + 2 * size, sizeof *iwork);
    lapack_table lapack;
    if (!a || !work || !iwork) return basin_fail_memory(error, positions_of);
    BASIN_TRY(basin_library_load(&lapack, BASIN_LIBRARY_LAPACK, lapack_functions, error));
    for (int64_t i = 0; i < n; i++) {
        a[i * n + i] = 1;
        for (int32_t e = s->pairs.row[i]; e < s->pairs.row[i + 1]; e++)
            a[i * n + s->pairs.key[e]] -= s->value[e];
    }
    lapack.dsyevr_("V", "I", "U", &n, a, &n, &zero, &zero, &first, &want, &tolerance, &found,
                   work + lwork, vector, &n, iwork + liwork, work, &lwork, iwork, &liwork, &info);
    if (!info && found == want) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "LAPACK found %d of %d eigenvectors of a graph of %d nodes (dsyevr: %d)",
                      found, want, n, info);
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

static basin_status add_vectors(float *value, int64_t width, const basin_position_options *o,
                                int64_t nodes, const int32_t *edge, int64_t count,
                                basin_error *error) {
    BASIN_AT_EXIT(matrix_free) matrix s = {0};
    bool cls = o->with_cls;
    int64_t n = nodes + cls;
    int want = (int)(o->vectors + 1 < n ? o->vectors + 1 : n);
    if (want < 2) return BASIN_OK;
    if (n > MAX_NODES)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "eigenvectors of a graph of %lld nodes; expected at most %d (max_nodes)",
                          (long long)n, MAX_NODES);
    BASIN_TRY(matrix_new(&s, nodes, edge, count, cls, error));
    BASIN_FREE_AT_EXIT double *vector = basin_array_new((size_t)n * (size_t)want, sizeof *vector);
    if (!vector) return basin_fail_memory(error, positions_of);
    BASIN_TRY(find_vectors(vector, &s, want, error));
    for (int64_t c = 1; c < want; c++) {
        const double *v = vector + c * n;
        double sign = sign_of(v, n);
        for (int64_t i = 0; i < n; i++) value[(i + !cls) * width + c - 1] = (float)(sign * v[i]);
    }
    return BASIN_OK;
}

/* ---- walks ---- */

/* The nodes that a walk has reached, ascending; those of a large part are all, for less work. */
typedef struct reached {
    int32_t *node; /* [n] */
    bool *is;      /* [n] */
    int64_t count;
} reached;

static void reached_free(reached *r) { BASIN_FREE(r->node, r->is); }

static void reach_next(reached *r, const matrix *s) {
    int64_t known = r->count;
    if (known == s->n) return;
    for (int64_t k = 0; k < known; k++)
        for (int32_t e = s->pairs.row[r->node[k]]; e < s->pairs.row[r->node[k] + 1]; e++) {
            int32_t j = s->pairs.key[e];
            if (!r->is[j]) r->node[r->count++] = j;
            r->is[j] = true;
        }
    if (4 * r->count > s->n) {
        for (r->count = 0; r->count < s->n; r->count++)
            r->node[r->count] = (int32_t)r->count, r->is[r->count] = true;
    } else if (r->count > known) {
        qsort(r->node, (size_t)r->count, sizeof *r->node, basin_compare_int32);
    }
}

/* (P^t)_ii = (S^t)_ii = (S^a e_i) . (S^b e_i) with a + b = t: half the steps suffice. */
static basin_status add_walks(float *value, int64_t width, const basin_position_options *o,
                              int64_t nodes, const int32_t *edge, int64_t count,
                              basin_error *error) {
    BASIN_AT_EXIT(matrix_free) matrix s = {0};
    BASIN_AT_EXIT(reached_free) reached r = {0};
    BASIN_TRY(matrix_new(&s, nodes, edge, count, false, error));
    BASIN_SCRATCH(double, step, 2 * nodes, positions_of, error);
    BASIN_TRY(BASIN_NEW(&r.node, nodes, positions_of, error));
    BASIN_TRY(BASIN_NEW(&r.is, nodes, positions_of, error));
    for (int64_t i = 0; i < nodes; i++) {
        double *now = step, *next = step + nodes;
        float *out = value + (i + 1) * width + o->vectors;
        now[i] = 1;
        r.node[0] = (int32_t)i, r.is[i] = true, r.count = 1;
        for (int64_t t = 1; t <= o->walks; t += 2) {
            double odd = 0, even = 0;
            reach_next(&r, &s);
            multiply(next, &s, now, r.node, r.count);
            for (int64_t k = 0; k < r.count; k++) {
                int32_t j = r.node[k];
                odd += now[j] * next[j], even += next[j] * next[j];
            }
            out[t - 1] = (float)odd;
            if (t < o->walks) out[t] = (float)even;
            double *keep = now;
            now = next, next = keep;
        }
        for (int64_t k = 0; k < r.count; k++)
            step[r.node[k]] = step[nodes + r.node[k]] = 0, r.is[r.node[k]] = false;
    }
    return BASIN_OK;
}

basin_status basin_positions_of(float *value, const basin_position_options *o, int64_t nodes,
                                const int32_t *edge, int64_t count, basin_error *error) {
    int64_t width = o->vectors + o->walks;
    memset(value, 0, (size_t)((nodes + 1) * width) * sizeof *value);
    if (o->vectors > 0) BASIN_TRY(add_vectors(value, width, o, nodes, edge, count, error));
    return o->walks > 0 && nodes > 0 ? add_walks(value, width, o, nodes, edge, count, error)
                                     : BASIN_OK;
}

/* Walks along edges: how much likelier than in the long run is a random walk from one end of an
 * edge at the other end after t = 2 .. K + 1 steps,
 *
 *     r_t(i, j) = (P^t)_ij / pi_j = E (S^t)_ij / sqrt(d_i d_j),   S = D^-1/2 A D^-1/2,
 *
 * with E the number of (directed) edges and pi_j = d_j / E. In an undirected graph it is symmetric,
 * and tends to 1 where that is connected and not bipartite; an edge within a community has more,
 * one between two less. */

enum { COLUMNS = 64 }; /* ends of walks that are followed at once, side by side */

/* What one thread needs for a graph of n nodes. Outside of its rows on the list, `now` and `next`
 * are zeros. */
typedef struct space {
    int64_t capacity;
    int64_t *row;      /* [n + 1] edges by the node they come from */
    float *root;       /* [n] 1 / sqrt(degree) */
    float *now, *next; /* [n, COLUMNS] columns of a power of S */
    int32_t *list;     /* [n] rows that walks to these columns can start from */
    bool *listed;      /* [n] */
    int64_t count;
} space;

static void space_free(space *s) {
    BASIN_FREE(s->row, s->root, s->now, s->next, s->list, s->listed);
    *s = (space){0};
}

static bool space_reserve(space *s, int64_t nodes) {
    if (nodes <= s->capacity) return true;
    space_free(s);
    size_t n = (size_t)nodes;
    s->row = basin_array_new(n + 1, sizeof *s->row);
    s->root = basin_array_new(n, sizeof *s->root);
    s->now = basin_zeros_new(n, COLUMNS * sizeof *s->now);
    s->next = basin_zeros_new(n, COLUMNS * sizeof *s->next);
    s->list = basin_array_new(n, sizeof *s->list);
    s->listed = basin_zeros_new(n, sizeof *s->listed);
    if (!s->row || !s->root || !s->now || !s->next || !s->list || !s->listed) return false;
    s->capacity = nodes;
    return true;
}

static void read_rows(int64_t *row, int64_t nodes, const int32_t *edge, int64_t edges) {
    for (int64_t i = 0, e = 0; i < nodes; i++) {
        row[i] = e;
        while (e < edges && edge[2 * e] == i) e++;
    }
    row[nodes] = edges;
}

/* Apart from the loop over edges, which compilers would turn inside out, and scalar. */
BASIN_WIDE static void add_row(float *restrict sum, const float *restrict from, float weight) {
    for (int c = 0; c < COLUMNS; c++) sum[c] += weight * from[c];
}

/* now <- S now */
static void step(space *s, const int32_t *edge) {
    for (int64_t r = 0; r < s->count; r++) {
        int64_t i = s->list[r];
        float sum[COLUMNS] = {0};
        for (int64_t e = s->row[i]; e < s->row[i + 1]; e++) {
            int32_t k = edge[2 * e + 1];
            add_row(sum, s->now + k * (int64_t)COLUMNS, s->root[i] * s->root[k]);
        }
        memcpy(s->next + i * COLUMNS, sum, sizeof sum);
    }
    float *now = s->now;
    s->now = s->next, s->next = now;
}

/* Lists the rows within `steps` of columns first .. end - 1 of an undirected graph, so that a large
 * one costs no more than its parts; all rows for a small or directed graph. */
static void list_rows(space *s, int64_t nodes, const int32_t *edge, int64_t first, int64_t end,
                      int64_t steps, bool all) {
    s->count = 0;
    for (int64_t i = all ? 0 : first; i < (all ? nodes : end); i++)
        s->list[s->count++] = (int32_t)i;
    for (int64_t r = 0; r < s->count; r++) s->listed[s->list[r]] = true;
    for (int64_t done = 0; steps > 0 && !all; steps--) {
        int64_t known = s->count;
        for (; done < known; done++)
            for (int64_t e = s->row[s->list[done]]; e < s->row[s->list[done] + 1]; e++) {
                int32_t k = edge[2 * e + 1];
                if (!s->listed[k]) s->list[s->count++] = k;
                s->listed[k] = true;
            }
    }
}

static void clear_rows(space *s) {
    for (int64_t r = 0; r < s->count; r++) {
        int64_t i = s->list[r];
        memset(s->now + i * COLUMNS, 0, COLUMNS * sizeof *s->now);
        memset(s->next + i * COLUMNS, 0, COLUMNS * sizeof *s->next);
        s->listed[i] = false;
    }
}

static bool goes_both_ways(const space *s, int64_t nodes, const int32_t *edge) {
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t e = s->row[i]; e < s->row[i + 1]; e++) {
            int64_t k = edge[2 * e + 1], f = s->row[k];
            while (f < s->row[k + 1] && edge[2 * f + 1] != i) f++;
            if (f == s->row[k + 1]) return false;
        }
    return true;
}

/* The last `walks` columns of value [edges, width]: walks of 2 steps and more. */
static void walk_graph(float *value, int64_t width, int64_t walks, space *s, int64_t nodes,
                       const int32_t *edge, int64_t edges) {
    read_rows(s->row, nodes, edge, edges);
    for (int64_t i = 0; i < nodes; i++) {
        int64_t degree = s->row[i + 1] - s->row[i];
        s->root[i] = degree ? 1 / sqrtf((float)degree) : 1;
    }
    bool all = nodes <= 8 * COLUMNS || !goes_both_ways(s, nodes, edge);
    for (int64_t first = 0; first < nodes; first += COLUMNS) {
        int64_t end = nodes - first < COLUMNS ? nodes : first + COLUMNS;
        list_rows(s, nodes, edge, first, end, walks + 1, all);
        for (int64_t i = first; i < end; i++) s->now[i * COLUMNS + i - first] = 1;
        step(s, edge);
        for (int64_t t = 0; t < walks; t++) {
            step(s, edge);
            for (int64_t r = 0; r < s->count; r++) {
                int64_t i = s->list[r];
                for (int64_t e = s->row[i]; e < s->row[i + 1]; e++) {
                    int64_t j = edge[2 * e + 1];
                    if (j >= first && j < end)
                        value[e * width + width - walks + t] = s->now[i * COLUMNS + j - first] *
                                                               (float)edges * s->root[i] *
                                                               s->root[j];
                }
            }
        }
        clear_rows(s);
    }
}

typedef struct walking {
    float *value; /* [edges, width] */
    int64_t width, walks;
    const basin_graphset *set;
    int64_t start; /* graph */
} walking;

/* Returns the first graph that there was no memory for. */
static int64_t walk_graphs(const void *context, int64_t begin, int64_t end) {
    const walking *w = context;
    const basin_graphset *set = w->set;
    int64_t done = begin;
    space s = {0};
    for (; done < end; done++) {
        int64_t g = w->start + done, nodes = set->node_start[g + 1] - set->node_start[g];
        int64_t first = set->edge_start[g], edges = set->edge_start[g + 1] - first;
        if (!edges) continue; /* and perhaps no node */
        if (!space_reserve(&s, nodes)) break;
        walk_graph(w->value + first * w->width, w->width, w->walks, &s, nodes,
                   set->edge + 2 * first, edges);
    }
    space_free(&s);
    return done;
}

basin_status basin_graphset_edge_walks(float **value, const basin_graphset *set, int64_t walks,
                                       int64_t first, int64_t count, basin_error *error) {
    int64_t old = set->edge_attributes, width = old + walks;
    float *all = *value = calloc((size_t)set->edges + 1, (size_t)width * sizeof *all);
    walking w = {all, width, walks, set, first};
    if (!all || basin_parallel_find(walk_graphs, &w, count, 0) != count) {
        free(all);
        *value = NULL;
        return basin_fail_memory(error, "walks along edges");
    }
    for (int64_t e = 0; e < set->edges && old; e++)
        memcpy(all + e * width, set->edge_attribute + e * old, (size_t)old * sizeof *all);
    return BASIN_OK;
}
