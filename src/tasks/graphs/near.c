/* A memory of the training molecules, or graphs with labels of nodes, beside the network: kernel
 * ridge regression with the Tanimoto similarity of counted circular neighbourhoods (atoms, then
 * what is around them up to two bonds), of probabilities with its exponential. Its share in
 * predictions is chosen on validation graphs (calibrate.c); and it says how near the nearest
 * training graph is. */
#include "base/bundle.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "tasks/graphs/graphs.h"

static const char memory[] = "the memory of molecules";
enum { RADIUS = 2, MAX_GRAPHS = 5000, ROUNDS = 60 };
static const double RIDGE = 0.3;

/* ---- neighbourhoods ---- */

/* Lists the neighbourhoods of graph g: (RADIUS + 1) numbers per node, [RADIUS + 1, nodes]; `colour`
 * has room for twice the nodes. */
static void list_neighbourhoods(int32_t *to, uint64_t *colour, const basin_graphset *s, int64_t g) {
    int64_t first = s->node_start[g], n = s->node_start[g + 1] - first;
    uint64_t *next = colour + n;
    for (int64_t i = 0; i < n; i++) {
        const int32_t *label = s->node_label + (first + i) * s->node_labels;
        colour[i] = basin_hash_pair(
            basin_hash_bytes(BASIN_HASH_START, label, 4 * (size_t)s->node_labels), 1);
    }
    for (int round = 0; round <= RADIUS; round++) {
        for (int64_t i = 0; i < n; i++) to[round * n + i] = (int32_t)(colour[i] >> 33), next[i] = 0;
        for (int64_t e = s->edge_start[g]; e < s->edge_start[g + 1]; e++)
            next[s->edge[2 * e]] +=
                basin_hash_pair(colour[s->edge[2 * e + 1]],
                                s->edge_labels ? (uint64_t)s->edge_label[e * s->edge_labels] : 0);
        for (int64_t i = 0; i < n; i++) colour[i] = basin_hash_pair(colour[i], next[i]);
    }
}

static basin_status list_all(basin_graphs_near *near, const basin_graphset *s, const int64_t *graph,
                             int64_t count, basin_error *error) {
    int64_t max = 1;
    if (!s->node_labels)
        return basin_fail(error, BASIN_BAD_VALUE, "graphs without labels of nodes");
    *near = (basin_graphs_near){.count = count};
    BASIN_TRY(BASIN_NEW(&near->start, count + 1, memory, error));
    for (int64_t i = 0; i < count; i++) {
        int64_t n = s->node_start[graph[i] + 1] - s->node_start[graph[i]];
        near->start[i + 1] = near->start[i] + n * (RADIUS + 1);
        max = basin_int_max(max, n);
    }
    BASIN_SCRATCH_RAW(uint64_t, colour, 2 * max, memory, error);
    BASIN_TRY(BASIN_NEW_RAW(&near->feature, near->start[count] + 1, memory, error));
    for (int64_t i = 0; i < count; i++) {
        int32_t *to = near->feature + near->start[i];
        list_neighbourhoods(to, colour, s, graph[i]);
        qsort(to, (size_t)(near->start[i + 1] - near->start[i]), sizeof *to, basin_compare_int32);
    }
    return BASIN_OK;
}

/* The size of the intersection of two ascending lists over that of their union, with counts. */
static double similarity(const basin_graphs_near *a, int64_t i, const basin_graphs_near *b,
                         int64_t k) {
    const int32_t *x = a->feature + a->start[i], *x_end = a->feature + a->start[i + 1];
    const int32_t *y = b->feature + b->start[k], *y_end = b->feature + b->start[k + 1];
    double all = (double)(x_end - x + (y_end - y)), shared = 0;
    while (x < x_end && y < y_end) {
        shared += *x == *y;
        bool left = *x <= *y, right = *y <= *x;
        x += left, y += right;
    }
    return all > shared ? shared / (all - shared) : 1;
}

static double kernel(const basin_graphs_near *near, double similar) {
    return near->width > 0 ? exp((similar - 1) / near->width) : similar;
}

/* ---- all similarities ---- */

typedef struct table {
    const basin_graphs_near *rows, *columns;
    float *cell;        /* [rows, columns] */
    const double *from; /* [columns] or NULL */
    double *to;         /* [rows] */
} table;

static void fill_rows(const void *context, int64_t first, int64_t last) {
    const table *t = context;
    int64_t columns = t->columns->count;
    bool same = t->rows == t->columns; /* then the table is symmetric */
    for (int64_t i = first; i < last; i++)
        for (int64_t k = same ? i : 0; k < columns; k++) {
            t->cell[i * columns + k] = (float)similarity(t->rows, i, t->columns, k);
            if (same) t->cell[k * columns + i] = t->cell[i * columns + k];
        }
}

static void multiply_rows(const void *context, int64_t first, int64_t last) {
    const table *t = context;
    for (int64_t i = first; i < last; i++) {
        double sum = 0;
        const float *row = t->cell + i * t->columns->count;
        for (int64_t k = 0; k < t->columns->count; k++) sum += (double)row[k] * t->from[k];
        t->to[i] = sum;
    }
}

/* Solves (K + RIDGE) x = y by conjugate gradients over the rows where y is a number; x is 0
 * elsewhere. `work` [3, rows]. */
static void solve(double *x, const double *y, table *t, double *work) {
    int64_t n = t->rows->count;
    double *r = work, *p = work + n, *q = work + 2 * n, old = 0, first;
    for (int64_t i = 0; i < n; i++)
        x[i] = 0, r[i] = p[i] = isnan(y[i]) ? 0 : y[i], old += r[i] * r[i];
    first = old;
    for (int round = 0; round < ROUNDS && old > 1e-8 * first; round++) {
        double along = 0, now = 0;
        t->from = p, t->to = q;
        basin_parallel_for(multiply_rows, t, n, 64, 0);
        for (int64_t i = 0; i < n; i++)
            q[i] = isnan(y[i]) ? 0 : q[i] + RIDGE * p[i], along += p[i] * q[i];
        for (int64_t i = 0; i < n; i++)
            x[i] += old / along * p[i], r[i] -= old / along * q[i], now += r[i] * r[i];
        for (int64_t i = 0; i < n; i++) p[i] = r[i] + now / old * p[i];
        old = now;
    }
}

/* ---- learning ---- */

bool basin_graphs_near_serves(const basin_graphs_settings *settings, const basin_graphset *set) {
    bool classes = set->task == BASIN_GRAPHS_CLASSES && set->node_labels;
    return settings->near && (set->line || classes);
}

/* The default for molecules, used where there are too few for validation to choose it. */
double basin_graphs_near_usual(const basin_graphs_model *m) {
    return m->target == BASIN_GRAPHS_CLASSES || m->binary ? 0.5 : 0;
}

double basin_graphs_truth(const basin_graphset *s, int64_t graph, int64_t c) {
    if (s->task == BASIN_GRAPHS_VALUES) return (double)s->target[graph * s->targets + c];
    return s->class_of[graph] < 0 ? NAN : s->class_of[graph] == c;
}

/* What is being learnt: similarities of the molecules `graph` among each other. */
typedef struct rows {
    const basin_graphset *set;
    const int64_t *graph;
    table t;
    double *y; /* [5, molecules] what is known, the solution, work */
} rows;

/* Column c as deviations from the mean of the rows that are known and not `hidden` (may be NULL),
 * solved; returns the mean. */
static double solve_column(rows *l, int64_t c, const uint8_t *hidden) {
    int64_t n = l->t.rows->count;
    double sum = 0, known = 0;
    for (int64_t i = 0; i < n; i++) {
        l->y[i] = hidden && hidden[i] ? NAN : basin_graphs_truth(l->set, l->graph[i], c);
        if (!isnan(l->y[i])) sum += l->y[i], known++;
    }
    for (int64_t i = 0; i < n; i++) l->y[i] -= sum / fmax(known, 1);
    solve(l->y + n, l->y, &l->t, l->y + 2 * n);
    return sum / fmax(known, 1);
}

static double bounded(const basin_graphs_model *m, double value) {
    if (m->target == BASIN_GRAPHS_VALUES && !m->binary) return value;
    return fmin(fmax(value, 1e-4), 1 - 1e-4);
}

/* Predicts the validation molecules of one part by a memory without them. */
static void hold_out(float *held, float *nearest, rows *l, const basin_graphs_model *m,
                     const basin_fold *f, int32_t *row, uint8_t *hidden) {
    int64_t n = l->t.rows->count, C = m->outputs;
    for (int64_t g = 0; g < l->set->graphs; g++) row[g] = -1;
    for (int64_t i = 0; i < n; i++) row[l->graph[i]] = (int32_t)i, hidden[i] = 0;
    for (int64_t i = 0; i < f->count[1]; i++)
        if (row[f->item[1][i]] >= 0) hidden[row[f->item[1][i]]] = 1;
    for (int64_t i = 0; i < f->count[1]; i++) {
        int32_t own = row[f->item[1][i]];
        float max = 0;
        for (int64_t k = 0; own >= 0 && k < n; k++)
            if (!hidden[k]) max = fmaxf(max, l->t.cell[own * n + k]);
        nearest[i] = own < 0 ? NAN : m->near.width > 0 ? 1 + (float)m->near.width * logf(max) : max;
    }
    for (int64_t c = 0; c < C; c++) {
        double mean = solve_column(l, c, hidden);
        l->t.from = l->y + n, l->t.to = l->y + 2 * n;
        basin_parallel_for(multiply_rows, &l->t, n, 64, 0);
        for (int64_t i = 0; i < f->count[1]; i++) {
            int32_t own = row[f->item[1][i]];
            held[i * C + c] = own < 0 ? NAN : (float)bounded(m, mean + l->y[2 * n + own]);
        }
    }
}

/* What the molecules are called. */
static basin_status name_all(basin_graphs_near *near, const basin_graphset *set,
                             const int64_t *graph, basin_error *error) {
    size_t length;
    FILE *file = open_memstream(&near->name, &length);
    if (!file) return basin_fail_memory(error, memory);
    for (int64_t i = 0; i < near->count; i++) {
        const char *id = set->id ? set->id + set->id_start[graph[i]] : "";
        if (*id)
            fputs(id, file);
        else
            fprintf(file, set->line ? "line %lld" : "%lld",
                    (long long)(set->line ? set->line[graph[i]] : graph[i]));
        fputc(0, file);
    }
    if (fclose(file)) return basin_fail_memory(error, memory);
    near->names = (int64_t)length;
    return BASIN_OK;
}

basin_status basin_graphs_near_fit(basin_graphs_model *m, const basin_graphset *set,
                                   const basin_fold *fold, int64_t parts, float *held,
                                   float *nearest, basin_error *error) {
    int64_t all = fold->count[0] + fold->count[1], n = 0, C = m->outputs;
    basin_graphs_near *near = &m->near;
    BASIN_SCRATCH_RAW(int64_t, graph, all, memory, error);
    for (int64_t i = 0; i < all; i++) /* at most MOST, evenly drawn */
        if (all <= MAX_GRAPHS || i * MAX_GRAPHS / all != (i + 1) * MAX_GRAPHS / all)
            graph[n++] = i < fold->count[0] ? fold->item[0][i] : fold->item[1][i - fold->count[0]];
    basin_graphs_near_free(near);
    BASIN_TRY(list_all(near, set, graph, n, error));
    near->share = set->line ? basin_graphs_near_usual(m) : 0;
    near->width = basin_graphs_near_usual(m) > 0; /* of values the similarity itself does better */
    BASIN_TRY(name_all(near, set, graph, error));
    BASIN_TRY(BASIN_NEW(&near->weight, (n + 1) * C, memory, error));
    BASIN_SCRATCH(double, y, 5 * n, memory, error);
    BASIN_SCRATCH_RAW(float, cell, (n * n), memory, error);
    BASIN_SCRATCH_RAW(int32_t, row, set->graphs, memory, error);
    BASIN_SCRATCH_RAW(uint8_t, hidden, n, memory, error);
    rows l = {set, graph, {.rows = near, .columns = near, .cell = cell}, y};
    basin_parallel_for(fill_rows, &l.t, n, 16, 0);
    for (int64_t i = 0; i < n * n; i++) cell[i] = (float)kernel(near, (double)cell[i]);
    for (int64_t k = 0; held && k < parts; k++) {
        hold_out(held, nearest, &l, m, &fold[k], row, hidden);
        held += C * fold[k].count[1], nearest += fold[k].count[1];
    }
    for (int64_t c = 0; c < C; c++) {
        near->weight[n * C + c] = (float)solve_column(&l, c, NULL);
        for (int64_t i = 0; i < n; i++) near->weight[i * C + c] = (float)y[n + i];
    }
    return BASIN_OK;
}

void basin_graphs_near_free(basin_graphs_near *near) {
    BASIN_FREE(near->start, near->feature, near->weight, near->name);
    *near = (basin_graphs_near){0};
}

/* One row: its similarities become a prediction, mixed with the network's, and unmixed in `own`
 * (may be NULL); gives the nearest. */
static int64_t mix_row(float *to, float *own, const float *similar, const basin_graphs_model *m) {
    const basin_graphs_near *near = &m->near;
    bool classes = m->target == BASIN_GRAPHS_CLASSES;
    int64_t max = 0;
    for (int64_t k = 1; k < near->count; k++)
        if (similar[k] > similar[max]) max = k;
    if (classes && near->share > 0) basin_graphs_softmax(to, to, m->outputs);
    for (int64_t c = 0; c < m->outputs && (own || near->share > 0); c++) {
        double value = (double)near->weight[near->count * m->outputs + c];
        for (int64_t k = 0; k < near->count; k++)
            value += kernel(near, (double)similar[k]) * (double)near->weight[k * m->outputs + c];
        value = bounded(m, value);
        if (own) own[c] = (float)(classes ? log(value) : value);
        if (!(near->share > 0)) continue;
        value = (1 - near->share) * (double)to[c] + near->share * value;
        to[c] = (float)(classes ? log(value) : value);
    }
    return max;
}

basin_status basin_graphs_near_add(float *output, float *own, float *nearest, int64_t *place,
                                   const basin_graphs_model *m, const basin_graphset *set,
                                   const int64_t *graph, int64_t count, basin_error *error) {
    const basin_graphs_near *near = &m->near;
    int64_t part = basin_int_min(count, 1024);
    BASIN_AT_EXIT(basin_graphs_near_free) basin_graphs_near listed = {0};
    if (!near->count) return BASIN_OK;
    BASIN_SCRATCH_RAW(float, cell, part * near->count, memory, error);
    for (int64_t at = 0; at < count; at += part) {
        int64_t now = basin_int_min(part, count - at);
        basin_graphs_near_free(&listed);
        BASIN_TRY(list_all(&listed, set, graph + at, now, error));
        table t = {.rows = &listed, .columns = near, .cell = cell};
        basin_parallel_for(fill_rows, &t, now, 4, 0);
        for (int64_t i = 0; i < now; i++) {
            const float *similar = cell + i * near->count;
            int64_t row = (at + i) * m->outputs;
            int64_t max = mix_row(output + row, own ? own + row : NULL, similar, m);
            if (nearest) nearest[at + i] = similar[max];
            if (place) place[at + i] = max;
        }
    }
    return BASIN_OK;
}
