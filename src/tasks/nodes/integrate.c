/* Inputs that move along straight lines, and sums of slopes there; see integrate.h. */
#include "tasks/nodes/integrate.h"
#include "base/states.h"

#include "base/try.h"
#include "basin/train.h"

basin_status basin_line_open(basin_line *l, basin_expr input, int64_t outputs, basin_error *error) {
    size_t cells = (size_t)basin_shape_count(basin_expr_shape(input));
    l->input = input, l->cells = (int64_t)cells;
    BASIN_TRY(BASIN_NEW(&l->start, outputs + 1, "an explanation", error));
    l->start[outputs] = l->cells;
    BASIN_TRY(BASIN_NEW(&l->base, cells, "an explanation", error));
    BASIN_TRY(BASIN_NEW(&l->own, cells, "an explanation", error));
    BASIN_TRY(BASIN_NEW_RAW(&l->now, cells, "an explanation", error));
    BASIN_TRY(BASIN_NEW_RAW(&l->value, cells, "an explanation", error));
    return BASIN_NEW(&l->sum, cells, "an explanation", error);
}

void basin_line_free(basin_line *line, int lines) {
    for (basin_line *l = line; l < line + lines; l++) {
        BASIN_FREE(l->start, l->base, l->own, l->now, l->value, l->sum);
    }
}

/* Runs the plan at the part t[i] of the lines of each output. */
static basin_status run_at(const basin_lines *l, const double *t, double *output,
                           basin_error *error) {
    for (basin_line *k = l->line; k < l->line + l->lines; k++) {
        if (!k->input) continue;
        for (int64_t o = 0; o < l->outputs; o++)
            for (int64_t i = k->start[o]; i < k->start[o + 1]; i++)
                k->now[i] = (float)((double)k->base[i] + t[o] * basin_line_length(k, i));
        BASIN_TRY(basin_values_write(l->plan, k->input, k->now, BASIN_F32, error));
    }
    BASIN_TRY(basin_plan_run(l->plan, error));
    return l->read(output, l->context, error);
}

/* Reads the slopes there: by them, how far each output moves along its whole lines. */
static basin_status read_slopes(const basin_lines *l, double *moves, basin_error *error) {
    memset(moves, 0, (size_t)l->outputs * sizeof *moves);
    for (basin_line *k = l->line; k < l->line + l->lines; k++) {
        if (!k->input) continue;
        BASIN_TRY(basin_values_read(l->plan, k->slope, k->value, BASIN_F64, error));
        for (int64_t o = 0; o < l->outputs; o++) {
            double sum = 0;
            for (int64_t i = k->start[o]; i < k->start[o + 1]; i++)
                sum += k->value[i] * basin_line_length(k, i);
            moves[o] += sum;
        }
    }
    return BASIN_OK;
}

/* Adds them to the sums with each output's weight. */
static void add_slopes(const basin_lines *l, const double *weight) {
    for (basin_line *k = l->line; k < l->line + l->lines; k++)
        for (int64_t o = 0; o < l->outputs && k->input; o++)
            for (int64_t i = k->start[o]; i < k->start[o + 1] && weight[o] != 0; i++)
                k->sum[i] += weight[o] * k->value[i];
}

/* ---- bisection ---- */

enum {
    STEPS = 8,
    POINTS = STEPS + 2, /* both ends, and the middles of the steps */
    LAST = POINTS - 1,
    MAX_DEPTH = 24,
    MAX_ENDS = POINTS + MAX_DEPTH,
    MAX_HALVED = 240,
};
/* What a piece may miss of the difference of its ends, beside what is allowed of the whole. */
static const double PART = 0.01;

static double point(int i) { return i == 0 ? 0 : i == LAST ? 1 : (i - 0.5) / STEPS; }

/* An output's pieces that are left. */
typedef struct pieces {
    double end[MAX_ENDS], last[MAX_ENDS]; /* [top + 1] their ends, the next one's on top, and the
                                               output there */
    double from, first;                   /* where the next one begins, and the output there */
    int top;                              /* -1: none is left */
    int halved;
} pieces;

/* With `known` [points, outputs] at the points; allowed < 0: its sums stay. */
static void begin(pieces *p, const basin_lines *l, const double *known, double allowed,
                  int64_t output) {
    int points = allowed < 0 ? 1 : POINTS;
    p->from = 0, p->first = known[output], p->top = points - 2;
    for (int i = 1; i < points; i++) {
        p->end[points - 1 - i] = point(i);
        p->last[points - 1 - i] = known[i * l->outputs + output];
    }
    for (basin_line *k = l->line; k < l->line + l->lines && points > 1; k++)
        if (k->input)
            memset(k->sum + k->start[output], 0,
                   (size_t)(k->start[output + 1] - k->start[output]) * sizeof *k->sum);
}

/* The next piece of an output that moves by `moves` along all of its lines in the middle of it:
 * taken, its length; halved, where the output is `output`, 0. */
static double take(pieces *p, double allowed, double moves, double output) {
    double length = p->end[p->top] - p->from, way = p->last[p->top] - p->first;
    double tolerance = allowed * (length + 1.0 / 64) + PART * fabs(way);
    if (length > 1.0 / (1 << MAX_DEPTH) && p->halved < MAX_HALVED &&
        !(fabs(moves * length - way) <= tolerance)) {
        p->halved++;
        p->end[p->top + 1] = p->from + 0.5 * length;
        p->last[++p->top] = output;
        return 0;
    }
    p->first = p->last[p->top];
    p->from = p->end[p->top--];
    return length;
}

static basin_status bisect(const basin_lines *l, const double *known, const double *allowed,
                           basin_error *error) {
    int64_t n = l->outputs;
    BASIN_SCRATCH(pieces, left, n, "an explanation", error);
    BASIN_SCRATCH(double, t, 4 * n, "an explanation", error); /* [4, outputs] */
    double *output = t + n, *moves = output + n, *weight = moves + n;
    for (int64_t i = 0; i < n; i++) begin(&left[i], l, known, allowed[i], i);
    for (;;) {
        bool more = false;
        for (int64_t i = 0; i < n; i++) {
            const pieces *p = &left[i];
            if (p->top >= 0) more = true, t[i] = p->from + 0.5 * (p->end[p->top] - p->from);
        }
        if (!more) return BASIN_OK;
        BASIN_TRY(run_at(l, t, output, error));
        BASIN_TRY(read_slopes(l, moves, error));
        for (int64_t i = 0; i < n; i++)
            weight[i] = left[i].top < 0 ? 0 : take(&left[i], allowed[i], moves[i], output[i]);
        add_slopes(l, weight);
    }
}

static void clear_sums(const basin_lines *l) {
    for (basin_line *k = l->line; k < l->line + l->lines; k++)
        if (k->input) memset(k->sum, 0, (size_t)k->cells * sizeof *k->sum);
}

basin_status basin_lines_integrate(double *ends, const basin_lines *l, basin_error *error) {
    int64_t n = l->outputs;
    bool more = false;
    BASIN_SCRATCH_RAW(double, output, POINTS *n, "an explanation", error);
    BASIN_SCRATCH(double, gap, n, "an explanation", error);
    BASIN_SCRATCH_RAW(double, t, 3 * n, "an explanation", error); /* [3, outputs] */
    double *moves = t + n, *weight = moves + n;
    clear_sums(l);
    for (int p = 0; p < POINTS; p++) {
        for (int64_t i = 0; i < n; i++) t[i] = point(p), weight[i] = 1.0 / STEPS;
        BASIN_TRY(run_at(l, t, output + p * n, error));
        if (p == 0 || p == LAST) continue;
        BASIN_TRY(read_slopes(l, moves, error));
        add_slopes(l, weight);
        for (int64_t i = 0; i < n; i++) gap[i] += moves[i] / STEPS;
    }
    for (int64_t i = 0; i < n; i++) {
        ends[i] = output[i], ends[n + i] = output[LAST * n + i];
        double way = ends[n + i] - ends[i], allowed = l->allowed(way);
        gap[i] = fabs(gap[i] - way) <= allowed ? -1 : allowed;
        more = more || gap[i] > 0;
    }
    return more ? bisect(l, output, gap, error) : BASIN_OK;
}
