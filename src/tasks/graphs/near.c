/* A memory of the training molecules, or graphs with labels of nodes, beside the network: kernel
 * ridge regression with the Tanimoto similarity of counted circular neighbourhoods (atoms, then
 * what is around them up to two bonds), of probabilities with its exponential. Its share in
 * predictions is chosen on validation graphs (calibrate.c); and it says how near the nearest
 * training graph is. */
#include "base/bundle.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "base/wide.h"
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

static double kernel(const basin_graphs_near *near, double similar) {
    return near->width > 0 ? exp((similar - 1) / near->width) : similar;
}

basin_status basin_graphs_near_index(basin_graphs_near *near, basin_error *error) {
    int64_t entries = near->start ? near->start[near->count] : 0, n = 0;
    const int64_t kinds = (int64_t)1 << 32;
    BASIN_SCRATCH_RAW(int64_t, all, entries + 1, memory, error);
    for (int64_t g = 0; g < near->count; g++)
        for (int64_t e = near->start[g]; e < near->start[g + 1]; e++)
            all[e] = (int64_t)near->feature[e] * kinds + g;
    qsort(all, (size_t)entries, sizeof *all, basin_compare_int64);
    BASIN_TRY(BASIN_NEW_RAW(&near->kind, entries + 1, memory, error));
    BASIN_TRY(BASIN_NEW_RAW(&near->first, entries + 1, memory, error));
    BASIN_TRY(BASIN_NEW_RAW(&near->holder, entries + 1, memory, error));
    for (int64_t e = 0; e < entries; e++) {
        int32_t graph = (int32_t)(all[e] & (kinds - 1)), kind = (int32_t)((all[e] - graph) / kinds);
        if (e && all[e] == all[e - 1]) {
            near->holder[n - 1].times++;
            continue;
        }
        if (!near->kinds || near->kind[near->kinds - 1] != kind)
            near->kind[near->kinds] = kind, near->first[near->kinds++] = n;
        near->holder[n++] = (basin_graphs_holder){graph, 1};
    }
    near->first[near->kinds] = n;
    return BASIN_OK;
}

/* ---- all similarities ---- */

enum { LANES = 8, ROWS = 4 }; /* systems of equations that are solved side by side; rows at once */

typedef struct table {
    const basin_graphs_near *rows, *columns;
    float *cell; /* [rows, columns] */
    bool kernel; /* of similarities, in place of these */
} table;

/* Adds what each column has in common with a row that has a neighbourhood `times` times. */
static void add_shared(float *cell, const basin_graphs_near *b, int32_t kind, int32_t times) {
    const int32_t *found =
        bsearch(&kind, b->kind, (size_t)b->kinds, sizeof kind, basin_compare_int32);
    if (!found) return;
    const int64_t *range = b->first + (found - b->kind);
    for (const basin_graphs_holder *h = b->holder + range[0]; h < b->holder + range[1]; h++)
        cell[h->graph] += (float)(h->times < times ? h->times : times);
}

/* The size of the intersection of two lists over that of their union, with counts. */
static void fill_rows(const void *context, int64_t first, int64_t last) {
    const table *t = context;
    const basin_graphs_near *a = t->rows, *b = t->columns;
    for (int64_t i = first; i < last; i++) {
        float *cell = t->cell + i * b->count;
        const int32_t *end = a->feature + a->start[i + 1];
        memset(cell, 0, (size_t)b->count * sizeof *cell);
        for (const int32_t *x = a->feature + a->start[i], *next; x < end; x = next) {
            for (next = x; next < end && *next == *x;) next++;
            add_shared(cell, b, *x, (int32_t)(next - x));
        }
        for (int64_t k = 0; k < b->count; k++) {
            double all = (double)(a->start[i + 1] - a->start[i] + b->start[k + 1] - b->start[k]);
            double shared = (double)cell[k];
            cell[k] = all > shared ? (float)(shared / (all - shared)) : 1;
            if (t->kernel) cell[k] = (float)kernel(b, (double)cell[k]);
        }
    }
}

/* What is known of the rows, and what is computed of it, LANES systems side by side: [rows, LANES]
 * each. */
typedef struct systems {
    const table *t;
    double *y, *x, *r, *p, *q; /* y: the right sides; NAN where a row has no part in a system */
} systems;

/* ROWS rows at once, which read p once. */
BASIN_WIDE static void multiply_lanes(double *restrict q, const double *restrict p,
                                      const float *restrict cell, int64_t columns) {
    double sum[ROWS][LANES] = {0};
    for (int64_t k = 0; k < columns; k++)
        for (int r = 0; r < ROWS; r++)
            for (int l = 0; l < LANES; l++)
                sum[r][l] += (double)cell[r * columns + k] * p[k * LANES + l];
    memcpy(q, sum, sizeof sum);
}

/* q = K p */
static void multiply_rows(const void *context, int64_t first, int64_t last) {
    const systems *s = context;
    int64_t columns = s->t->columns->count;
    for (int64_t i = first; i < last; i++) {
        const float *cell = s->t->cell + i * ROWS * columns;
        multiply_lanes(s->q + i * ROWS * LANES, s->p, cell, columns);
    }
}

/* Solves (K + RIDGE) x = y by conjugate gradients over the rows where y is a number; x is 0
 * elsewhere. */
static void solve(const systems *s) {
    int64_t n = s->t->rows->count;
    double old[LANES] = {0}, first[LANES];
    for (int64_t i = 0; i < n * LANES; i++) {
        s->x[i] = 0, s->r[i] = s->p[i] = isnan(s->y[i]) ? 0 : s->y[i];
        old[i % LANES] += s->r[i] * s->r[i];
    }
    memcpy(first, old, sizeof first);
    for (int round = 0; round < ROUNDS; round++) {
        double along[LANES] = {0}, now[LANES] = {0};
        int open = 0;
        basin_parallel_for(multiply_rows, s, basin_int_ceil(n, ROWS), 16, 0);
        for (int64_t i = 0; i < n * LANES; i++) {
            s->q[i] = isnan(s->y[i]) ? 0 : s->q[i] + RIDGE * s->p[i];
            along[i % LANES] += s->p[i] * s->q[i];
        }
        for (int l = 0; l < LANES; l++) { /* one that is solved stays as it is */
            bool more = old[l] > 1e-8 * first[l];
            along[l] = more ? old[l] / along[l] : 0, open += more;
        }
        if (!open) break;
        for (int64_t i = 0; i < n * LANES; i++) {
            int64_t l = i % LANES;
            s->x[i] += along[l] * s->p[i], s->r[i] -= along[l] * s->q[i];
            now[l] += s->r[i] * s->r[i];
        }
        for (int64_t i = 0; i < n * LANES; i++) {
            int64_t l = i % LANES;
            s->p[i] = s->r[i] + (old[l] > 0 ? now[l] / old[l] : 0) * s->p[i];
        }
        memcpy(old, now, sizeof old);
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

static double bounded(const basin_graphs_model *m, double value) {
    if (m->target == BASIN_GRAPHS_VALUES && !m->binary) return value;
    return fmin(fmax(value, 1e-4), 1 - 1e-4);
}

/* What is being learnt: columns of the molecules `graph`, by memories without the validation
 * molecules of each part, then by one of all. */
typedef struct learning {
    const basin_graphs_model *m;
    const basin_graphset *set;
    const int64_t *graph; /* [n] */
    const basin_fold *fold;
    int64_t parts;
    uint8_t *hidden; /* [parts + 1, n] */
    int32_t *row;    /* [graphs] of the memory, -1: none */
    float *held;
} learning;

/* System c of a memory: deviations from the mean of what is known; returns the mean. */
static double begin_system(double *y, const learning *w, int64_t system) {
    int64_t n = w->m->near.count, c = system % w->m->outputs;
    const uint8_t *hidden = w->hidden + system / w->m->outputs * n;
    double sum = 0, known = 0;
    for (int64_t i = 0; i < n; i++) {
        double value = hidden[i] ? NAN : basin_graphs_truth(w->set, w->graph[i], c);
        y[i * LANES] = value;
        if (!isnan(value)) sum += value, known++;
    }
    for (int64_t i = 0; i < n; i++) y[i * LANES] -= sum / fmax(known, 1);
    return sum / fmax(known, 1);
}

/* Keeps the solution of a system: weights of the memory, or predictions of what was hidden from it,
 * of the products K x. */
static void end_system(const learning *w, int64_t system, double mean, const double *x,
                       const double *product) {
    int64_t C = w->m->outputs, part = system / C, c = system % C, n = w->m->near.count;
    float *held = w->held;
    if (part == w->parts) {
        float *weight = w->m->near.weight;
        weight[n * C + c] = (float)mean;
        for (int64_t i = 0; i < n; i++) weight[i * C + c] = (float)x[i * LANES];
        return;
    }
    for (int64_t k = 0; k < part; k++) held += C * w->fold[k].count[1];
    const basin_fold *f = &w->fold[part];
    for (int64_t i = 0; i < f->count[1]; i++) {
        int32_t own = w->row[f->item[1][i]];
        held[i * C + c] = own < 0 ? NAN : (float)bounded(w->m, mean + product[own * LANES]);
    }
}

/* LANES systems at once, so that the similarities are read once for all of them. */
static basin_status solve_all(const learning *w, const table *t, basin_error *error) {
    int64_t n = w->m->near.count, systems_count = (w->parts + 1) * w->m->outputs;
    int64_t size = basin_int_ceil(n, ROWS) * ROWS * LANES;
    BASIN_SCRATCH(double, work, 5 * size, memory, error);
    systems s = {t,
                 work,
                 work + n * LANES,
                 work + 2 * n * LANES,
                 work + 3 * n * LANES,
                 work + 4 * n * LANES};
    for (int64_t first = 0; first < systems_count; first += LANES) {
        int64_t lanes = basin_int_min(LANES, systems_count - first);
        double mean[LANES];
        memset(s.y, 0, (size_t)(n * LANES) * sizeof *s.y);
        for (int64_t l = 0; l < lanes; l++) mean[l] = begin_system(s.y + l, w, first + l);
        solve(&s);
        memcpy(s.p, s.x, (size_t)(n * LANES) * sizeof *s.p);
        basin_parallel_for(multiply_rows, &s, basin_int_ceil(n, ROWS), 16, 0);
        for (int64_t l = 0; l < lanes; l++) end_system(w, first + l, mean[l], s.x + l, s.q + l);
    }
    return BASIN_OK;
}

/* Marks the validation molecules of a part, and finds the nearest of the others to each. */
static void hide(float *nearest, const learning *w, int64_t part, const float *cell) {
    const basin_graphs_near *near = &w->m->near;
    const basin_fold *f = &w->fold[part];
    uint8_t *hidden = w->hidden + part * near->count;
    for (int64_t i = 0; i < f->count[1]; i++)
        if (w->row[f->item[1][i]] >= 0) hidden[w->row[f->item[1][i]]] = 1;
    for (int64_t i = 0; i < f->count[1]; i++) {
        int32_t own = w->row[f->item[1][i]];
        float max = 0;
        for (int64_t k = 0; own >= 0 && k < near->count; k++)
            if (!hidden[k]) max = fmaxf(max, cell[own * near->count + k]);
        nearest[i] = own < 0 ? NAN : near->width > 0 ? 1 + (float)near->width * logf(max) : max;
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
    near->share = basin_graphs_near_usual(m);
    near->width = basin_graphs_near_usual(m) > 0; /* of values the similarity itself does better */
    BASIN_TRY(name_all(near, set, graph, error));
    BASIN_TRY(basin_graphs_near_index(near, error));
    BASIN_TRY(BASIN_NEW(&near->weight, (n + 1) * C, memory, error));
    BASIN_SCRATCH(float, cell, (n + ROWS) * n, memory, error); /* the last ones are zeros */
    BASIN_SCRATCH_RAW(int32_t, row, set->graphs, memory, error);
    parts = held ? parts : 0;
    BASIN_SCRATCH(uint8_t, hidden, (parts + 1) * n, memory, error);
    learning w = {m, set, graph, fold, parts, hidden, row, held};
    table t = {.rows = near, .columns = near, .cell = cell, .kernel = true};
    basin_parallel_for(fill_rows, &t, n, 16, 0);
    for (int64_t g = 0; g < set->graphs; g++) row[g] = -1;
    for (int64_t i = 0; i < n; i++) row[graph[i]] = (int32_t)i;
    for (int64_t k = 0; k < parts; nearest += fold[k++].count[1]) hide(nearest, &w, k, cell);
    return solve_all(&w, &t, error);
}

void basin_graphs_near_free(basin_graphs_near *near) {
    BASIN_FREE(near->start, near->feature, near->weight, near->name, near->kind, near->first,
               near->holder);
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
