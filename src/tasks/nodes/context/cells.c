/* The columns of a network as cells of three, ranked; see context.h. */
#include "base/parallel.h"
#include "base/sort.h"
#include "base/states.h"
#include "basin/random.h"
#include "tasks/nodes/context/context.h"
#include "tasks/nodes/net.h"

enum {
    MAX_OWN = 100,   /* more own columns become components, as in bench/context/evaluate.py, */
    COMPONENTS = 21, /* of which these are kept, */
    SPACE = 32,      /* and these are iterated, */
    ITERATIONS = 40, /* that often, */
    ROWS = 4096,     /* on a sample of at most this many rows */
    SAMPLE = 65536,  /* rows that ranks refer to */
};
static const char what[] = "a table of columns";

/* ---- own columns: those of the table and totals of edges, in the order of their names, so that
 * scores do not depend on the order of a table's columns ---- */

typedef struct own_table {
    const basin_network *network;
    const float *total; /* [N, totals] */
    const int64_t *order;
    int64_t features, totals;
} own_table;

static float own_at(const own_table *t, int64_t node, int64_t column) {
    int64_t at = t->order[column], F = t->features;
    return at < F ? t->network->feature[node * F + at] : t->total[node * t->totals + at - F];
}

static const char *own_name(char text[BASIN_MAX_REASON], const basin_network *n, int64_t column,
                            int64_t hop) {
    int64_t F = n->feature ? n->features : 0;
    basin_nodes_feature f = {.column = column, .hop = hop, .fact = column < F ? -1 : column - F};
    return basin_nodes_reason_name(text, n, &f);
}

typedef struct named {
    char name[BASIN_MAX_REASON];
    int64_t column;
} named;

static int by_name(const void *a, const void *b) {
    const named *x = a, *y = b;
    int found = basin_id_compare(x->name, y->name);
    return found ? found : BASIN_COMPARE(x->column, y->column);
}

/* Numbers in names are compared as numbers, so columns without names keep their order. */
static basin_status order_columns(basin_cells *c, int64_t columns, basin_error *error) {
    BASIN_SCRATCH_RAW(named, list, columns, what, error);
    BASIN_TRY(BASIN_NEW_RAW(&c->order, columns, what, error));
    for (int64_t k = 0; k < columns; k++)
        own_name(list[k].name, c->network, k, 0), list[k].column = k;
    qsort(list, (size_t)columns, sizeof *list, by_name);
    for (int64_t k = 0; k < columns; k++) c->order[k] = list[k].column;
    return BASIN_OK;
}

/* ---- principal components ---- */

typedef struct principal {
    const own_table *table;
    int64_t columns, rows;
    double *mean, *scale; /* [columns] of the cells; so are `axes` */
    float *row;           /* [rows, columns] standardised */
    float *axes, *next;   /* [columns, SPACE] */
    double *axis;         /* [columns] */
    float *found;         /* [rows, SPACE] */
    basin_engine engine;
    basin_expr x, v, xv, xxv;
    basin_plan *plan;
} principal;

static void principal_close(principal *p) {
    basin_plan_free(p->plan);
    basin_engine_close(&p->engine);
    BASIN_FREE(p->row, p->next, p->axis, p->found);
}

/* Rows node[i] = first + i * step of the network; gaps become means. */
static void take_rows(principal *p, int64_t first, double step, int64_t count) {
    memset(p->row, 0, (size_t)(p->rows * p->columns) * sizeof *p->row);
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < p->columns; c++) {
            double x = (double)own_at(p->table, first + (int64_t)((double)i * step), c);
            p->row[i * p->columns + c] = isnan(x) ? 0 : (float)((x - p->mean[c]) * p->scale[c]);
        }
}

/* Mean and 1 / deviation of every column, over the sample. */
static void standardise(principal *p, double step) {
    for (int64_t c = 0; c < p->columns; c++) {
        double sum = 0, square = 0, count = 0;
        for (int64_t i = 0; i < p->rows; i++) {
            double x = (double)own_at(p->table, (int64_t)((double)i * step), c);
            if (!isnan(x)) sum += x, square += x * x, count++;
        }
        p->mean[c] = count > 0 ? sum / count : 0;
        double variance = count > 0 ? square / count - p->mean[c] * p->mean[c] : 0;
        p->scale[c] = 1 / (sqrt(fmax(variance, 0)) + 1e-6);
    }
}

/* Gram-Schmidt, twice for accuracy; the largest loading of an axis is positive. */
static void orthonormalise(principal *p) {
    const float *from = p->next;
    float *axes = p->axes;
    double *v = p->axis;
    int64_t columns = p->columns;
    for (int k = 0; k < SPACE; k++) {
        double size = 0, largest = 0;
        for (int64_t c = 0; c < columns; c++) v[c] = (double)from[c * SPACE + k];
        for (int j = 0; j < 2 * k; j++) {
            double dot = 0;
            for (int64_t c = 0; c < columns; c++) dot += v[c] * (double)axes[c * SPACE + j % k];
            for (int64_t c = 0; c < columns; c++) v[c] -= dot * (double)axes[c * SPACE + j % k];
        }
        for (int64_t c = 0; c < columns; c++) {
            size += v[c] * v[c];
            if (fabs(v[c]) > fabs(largest)) largest = v[c];
        }
        size = copysign(sqrt(size) + 1e-30, largest);
        for (int64_t c = 0; c < columns; c++) axes[c * SPACE + k] = (float)(v[c] / size);
    }
}

static basin_status principal_run(principal *p, basin_error *error) {
    BASIN_TRY(basin_values_write(p->plan, p->x, p->row, BASIN_F32, error));
    BASIN_TRY(basin_values_write(p->plan, p->v, p->axes, BASIN_F32, error));
    return basin_plan_run(p->plan, error);
}

static basin_status principal_open(principal *p, basin_error *error) {
    int64_t R = p->rows, C = p->columns;
    BASIN_TRY(BASIN_NEW_RAW(&p->row, R * C, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&p->next, C * SPACE, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&p->axis, C, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&p->found, R * SPACE, what, error));
    BASIN_TRY(basin_engine_open(&p->engine, NULL, error));
    p->x = basin_input(p->engine.graph, "x", BASIN_SHAPE(R, C));
    p->v = basin_input(p->engine.graph, "v", BASIN_SHAPE(C, SPACE));
    p->xv = basin_matmul(p->x, p->v);
    p->xxv = basin_matmul_t(p->x, true, p->xv, false);
    basin_expr output[] = {p->xv, p->xxv};
    basin_plan_spec spec = {.output = output, .outputs = 2};
    return basin_plan_new(&p->plan, p->engine.store, &spec, error);
}

static basin_status find_axes(principal *p, double step, basin_error *error) {
    standardise(p, step);
    take_rows(p, 0, step, p->rows);
    basin_random_fill_normal(p->next, 1, 0, 0, (size_t)(p->columns * SPACE));
    for (int i = 0; i < ITERATIONS; i++) {
        orthonormalise(p);
        BASIN_TRY(principal_run(p, error));
        BASIN_TRY(basin_values_read(p->plan, p->xxv, p->next, BASIN_F32, error));
    }
    orthonormalise(p);
    return BASIN_OK;
}

/* The first components of all rows: simultaneous iteration on a sample, or another table's axes. */
static basin_status find_components(basin_cells *c, const own_table *table, basin_error *error) {
    const basin_network *n = c->network;
    int64_t columns = c->components;
    const basin_cells *from = c->as ? c->as : c;
    if (!c->as) BASIN_TRY(BASIN_NEW_RAW(&c->axes, columns * SPACE, what, error));
    if (!c->as) BASIN_TRY(BASIN_NEW_RAW(&c->moment, 2 * columns, what, error));
    BASIN_AT_EXIT(principal_close)
    principal p = {.table = table,
                   .columns = columns,
                   .rows = basin_int_min(n->nodes, ROWS),
                   .mean = from->moment,
                   .scale = from->moment + columns,
                   .axes = from->axes};
    BASIN_TRY(principal_open(&p, error));
    if (!c->as) BASIN_TRY(find_axes(&p, (double)n->nodes / (double)p.rows, error));
    for (int64_t first = 0; first < n->nodes; first += p.rows) {
        int64_t count = basin_int_min(p.rows, n->nodes - first);
        take_rows(&p, first, 1, count);
        BASIN_TRY(principal_run(&p, error));
        BASIN_TRY(basin_values_read(p.plan, p.xv, p.found, BASIN_F32, error));
        for (int64_t i = 0; i < count; i++)
            memcpy(c->value + (first + i) * c->columns, p.found + i * SPACE,
                   COMPONENTS * sizeof *p.found);
    }
    return BASIN_OK;
}

/* ---- columns ---- */

/* Features and totals of edges, or their components. */
static basin_status own_columns(basin_cells *c, int relation, int64_t totals, int64_t all,
                                basin_error *error) {
    const basin_network *n = c->network;
    BASIN_FREE_AT_EXIT float *total = NULL;
    if (totals) {
        BASIN_TRY(BASIN_NEW_RAW(&total, n->nodes * totals, what, error));
        BASIN_TRY(basin_node_facts_fill(total, totals, n, &relation, 1, false, error));
    }
    if (!c->as) BASIN_TRY(order_columns(c, all, error));
    const own_table table = {n, total, c->as ? c->as->order : c->order, all - totals, totals};
    if (c->components) return find_components(c, &table, error);
    for (int64_t i = 0; i < n->nodes; i++)
        for (int64_t k = 0; k < all; k++) c->value[i * c->columns + k] = own_at(&table, i, k);
    return BASIN_OK;
}

typedef struct averaging {
    const basin_cells *cells;
    int hop;
} averaging;

/* Means of known values over neighbours other than the node; 0 where there are none, as in
 * training. */
static void average(const void *context, int64_t first, int64_t last) {
    const averaging *a = context;
    const basin_cells *c = a->cells;
    const basin_relation *r = c->relation;
    for (int64_t i = first; i < last; i++)
        for (int64_t f = 0; f < c->own; f++) {
            double sum = 0;
            int64_t known = 0, others = 0;
            for (int64_t e = r->row[i]; e < r->row[i + 1]; e++) {
                if (r->col[e] == i) continue;
                float x = c->value[r->col[e] * c->columns + (a->hop - 1) * c->own + f];
                others++;
                if (!isnan(x)) sum += (double)x, known++;
            }
            c->value[i * c->columns + a->hop * c->own + f] = known    ? (float)(sum / (double)known)
                                                             : others ? NAN
                                                                      : 0;
        }
}

static void fill_degrees(const basin_cells *c) {
    const basin_relation *r = c->relation;
    for (int64_t i = 0; i < c->network->nodes; i++) {
        int64_t others = 0;
        for (int64_t e = r->row[i]; e < r->row[i + 1]; e++) others += r->col[e] != i;
        c->value[i * c->columns + c->degree] = (float)log1p((double)others);
    }
}

/* ---- labels of neighbours ---- */

typedef struct counting {
    const basin_cells *cells;
    const int32_t *label;
} counting;

static void count_neighbours(const void *context, int64_t first, int64_t last) {
    const counting *v = context;
    const basin_relation *r = v->cells->relation;
    for (int64_t i = first; i < last; i++) {
        int64_t *found = v->cells->vote + 4 * i;
        found[0] = found[1] = 0;
        for (int64_t e = r->row[i]; e < r->row[i + 1]; e++)
            if (r->col[e] != i && v->label[r->col[e]] >= 0)
                found[0] += v->label[r->col[e]], found[1]++;
    }
}

/* Paths of two steps, without the way back: a node's own label is never in its own counts. */
static void count_ends(const void *context, int64_t first, int64_t last) {
    const counting *v = context;
    const basin_relation *r = v->cells->relation;
    for (int64_t i = first; i < last; i++) {
        int64_t *found = v->cells->vote + 4 * i;
        found[2] = found[3] = 0;
        for (int64_t e = r->row[i]; e < r->row[i + 1]; e++) {
            const int64_t *near = v->cells->vote + INT64_C(4) * r->col[e];
            if (r->col[e] == i) continue;
            found[2] += near[0] - (v->label[i] > 0);
            found[3] += near[1] - (v->label[i] >= 0);
        }
    }
}

void basin_cells_relabel(const basin_cells *c, int64_t node, int32_t before, int32_t after) {
    const basin_relation *r = c->relation;
    int64_t anomalous = (after > 0) - (before > 0), known = (after >= 0) - (before >= 0);
    for (int64_t e = c->grouped ? r->row[node] : 0; c->grouped && e < r->row[node + 1]; e++) {
        int64_t near = r->col[e];
        if (near == node) continue;
        c->vote[4 * near] += anomalous, c->vote[4 * near + 1] += known;
        for (int64_t f = r->row[near]; f < r->row[near + 1]; f++) {
            int64_t end = r->col[f];
            if (end == near || end == node) continue;
            c->vote[4 * end + 2] += anomalous, c->vote[4 * end + 3] += known;
        }
    }
}

static void fill_votes(const void *context, int64_t first, int64_t last) {
    const basin_cells *c = context;
    for (int64_t i = first; i < last; i++) {
        const int64_t *found = c->vote + 4 * i;
        float *value = c->value + i * c->columns + c->degree + 1;
        for (int k = 0; k < 2; k++, found += 2)
            value[k] = found[1] ? (float)((double)found[0] / (double)found[1]) : NAN;
        value[2] = (float)log1p((double)c->vote[4 * i + 1]);
    }
}

/* ---- ranks ---- */

/* Gaps last. */
static int gaps_last(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    if (isnan(x) || isnan(y)) return isnan(x) - isnan(y);
    return BASIN_COMPARE(x, y);
}

/* A range of columns. */
typedef struct sorting {
    const basin_cells *cells;
    int64_t first;
} sorting;

static void sort_columns(const void *context, int64_t first, int64_t last) {
    const sorting *range = context;
    const basin_cells *c = range->cells;
    double step = (double)c->network->nodes / (double)c->sample;
    for (int64_t k = range->first + first; k < range->first + last; k++) {
        float *sorted = c->sorted + k * c->sample;
        for (int64_t i = 0; i < c->sample; i++)
            sorted[i] = c->value[(int64_t)((double)i * step) * c->columns + k];
        qsort(sorted, (size_t)c->sample, sizeof *sorted, gaps_last);
        c->known[k] = c->sample;
        while (c->known[k] && isnan(sorted[c->known[k] - 1])) c->known[k]--;
    }
}

void basin_cells_rows(float *row, const basin_cells *c, const int64_t *node, int64_t count) {
    const basin_cells *ranks = c->as ? c->as : c;
    int64_t width = c->cells * BASIN_CELL;
    for (int64_t i = 0; i < count; i++, row += width) {
        for (int64_t e = 0; e < width; e++) row[e] = e % BASIN_CELL_ENTRY == 1; /* empty places */
        for (int64_t k = 0; k < c->columns; k++) {
            float x = c->value[node[i] * c->columns + k];
            const float *sorted = ranks->sorted + k * c->sample;
            float *entry = row + basin_cells_place(c, k);
            double R = (double)ranks->known[k];
            if (isnan(x)) entry[1] = (float)(1 - R / (double)c->sample);
            if (isnan(x) || !ranks->known[k]) continue;
            int64_t below = basin_count_below(sorted, ranks->known[k], x, false);
            int64_t upto = basin_count_below(sorted, ranks->known[k], x, true);
            double p = (double)(below + upto) / (2 * R);
            entry[0] = (float)basin_normal_score(fmin(fmax(p, 1e-3), 1 - 1e-3));
            entry[1] = (float)((double)(upto - below) / R);
            entry[2] = c->grouped && k != c->degree + BASIN_CELL_VOTES ? 1 : -1;
        }
    }
}

int64_t basin_cells_place(const basin_cells *c, int64_t column) {
    if (!c->grouped) return column * BASIN_CELL_ENTRY;
    if (column == c->degree) return c->own * BASIN_CELL;
    if (column > c->degree)
        return (c->own + 1) * BASIN_CELL + (column - c->degree - 1) * BASIN_CELL_ENTRY;
    return column % c->own * BASIN_CELL + column / c->own * BASIN_CELL_ENTRY;
}

double basin_cells_value(const basin_cells *c, int64_t node, int64_t column) {
    double x = (double)c->value[node * c->columns + column];
    if (c->grouped && column > c->degree && column < c->columns - 1) return x;
    if (c->grouped && column >= c->degree) return expm1(x);
    if (c->components) return x;
    int64_t F = c->network->feature ? c->network->features : 0;
    int64_t own = (c->as ? c->as : c)->order[column % c->own];
    return own < F ? x : basin_facts_value(c->network, own - F, x);
}

const char *basin_cells_name(char text[BASIN_MAX_REASON], const basin_cells *c, int64_t column) {
    static const char *const vote[] = {"anomalies among labelled neighbours",
                                       "anomalies among labelled, 2 hops away",
                                       "labelled neighbours"};
    const basin_network *n = c->network;
    basin_nodes_feature degree = {.column = n->feature ? n->features : 0, .fact = -1};
    int64_t hop = column / c->own, own = column % c->own;
    if (c->grouped && column > c->degree) {
        snprintf(text, BASIN_MAX_REASON, "%s", vote[column - c->degree - 1]);
        return text;
    }
    if (c->grouped && column == c->degree) return basin_nodes_reason_name(text, n, &degree);
    if (!c->components) return own_name(text, n, (c->as ? c->as : c)->order[own], hop);
    snprintf(text, BASIN_MAX_REASON, "component %lld%s", (long long)own + 1,
             hop > 1   ? ", mean 2 hops away"
             : hop > 0 ? ", mean 1 hop away"
                       : "");
    return text;
}

/* ---- opening ---- */

void basin_cells_rank_labels(const basin_cells *c) {
    if (!c->grouped) return;
    basin_parallel_for(fill_votes, c, c->network->nodes, 4096, 0);
    if (!c->as)
        basin_parallel_for(sort_columns, &(sorting){c, c->degree + 1}, BASIN_CELL_VOTES, 1, 0);
}

static basin_status check_memory(const basin_cells *c, size_t memory, basin_error *error) {
    double bytes = (double)c->columns * (double)(c->network->nodes + c->sample) * sizeof *c->value +
                   (c->grouped ? 4.0 * (double)c->network->nodes * sizeof *c->vote : 0);
    if (!memory || bytes <= (double)memory) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY,
                      "%s: %lld columns of %lld nodes take %.1f GiB, of %.1f allowed",
                      c->network->path, (long long)c->columns, (long long)c->network->nodes,
                      bytes / (1 << 30), (double)memory / (1 << 30));
}

/* What ranks refer to. */
static basin_status rank_columns(basin_cells *c, basin_error *error) {
    BASIN_TRY(BASIN_NEW_RAW(&c->sorted, c->sample * c->columns, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&c->known, c->columns, what, error));
    basin_parallel_for(sort_columns, &(sorting){c, 0}, c->degree + c->grouped, 1, 0);
    return BASIN_OK;
}

basin_status basin_cells_open(basin_cells *c, const basin_network *n, const basin_cells *as,
                              size_t memory, basin_error *error) {
    int main = basin_network_main_relation(n);
    const basin_relation *r = main >= 0 ? &n->relation[main] : NULL;
    *c = (basin_cells){.network = n, .relation = r, .as = as, .grouped = r && r->edges > 0};
    if (as && r) c->grouped = as->grouped;
    int64_t totals = c->grouped ? basin_node_facts_width(n, 1, false) : 0;
    int64_t all = (n->feature ? n->features : 0) + totals;
    if (!r && n->relations)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: relations without their union", n->path);
    if (!all && !c->grouped)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: neither features nor edges", n->path);
    c->components = all > MAX_OWN ? all : 0;
    c->own = c->components ? COMPONENTS : all;
    c->degree = c->grouped ? BASIN_CELL_COLUMNS * c->own : c->own;
    c->columns = c->degree + (c->grouped ? 1 + BASIN_CELL_VOTES : 0);
    c->cells = c->grouped ? c->own + 2 : basin_int_ceil(c->own, BASIN_CELL_COLUMNS);
    c->sample = as ? as->sample : basin_int_min(n->nodes, SAMPLE);
    if (as && (as->columns != c->columns || as->components != c->components))
        return basin_fail(error, BASIN_BAD_SHAPE, "%s: %lld columns, expected the %lld of %s",
                          n->path, (long long)c->columns, (long long)as->columns,
                          as->network->path);
    BASIN_TRY(check_memory(c, memory, error));
    BASIN_TRY(BASIN_NEW_RAW(&c->value, n->nodes * c->columns, what, error));
    if (c->grouped) BASIN_TRY(BASIN_NEW(&c->vote, 4 * n->nodes, what, error));
    BASIN_TRY(own_columns(c, main, totals, all, error));
    for (int hop = 1; hop < BASIN_CELL_COLUMNS && c->grouped; hop++)
        basin_parallel_for(average, &(averaging){c, hop}, n->nodes, 256, 0);
    if (c->grouped) fill_degrees(c);
    if (!as) BASIN_TRY(rank_columns(c, error));
    basin_cells_rank_labels(c);
    return BASIN_OK;
}

void basin_cells_label(const basin_cells *c, const int32_t *label) {
    const counting v = {c, label};
    if (!c->grouped) return;
    basin_parallel_for(count_neighbours, &v, c->network->nodes, 256, 0);
    basin_parallel_for(count_ends, &v, c->network->nodes, 256, 0);
    basin_cells_rank_labels(c);
}

void basin_cells_close(basin_cells *c) {
    BASIN_FREE(c->value, c->order, c->sorted, c->known, c->vote, c->axes, c->moment);
    *c = (basin_cells){0};
}
