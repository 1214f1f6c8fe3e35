/* Calibration and conformal prediction from validation graphs: a temperature that calibrates
 * probabilities, the weight of the memory of molecules, and the distribution of errors. The last
 * gives conformal intervals of values (quantiles of absolute errors) and sets of classes (a set
 * contains a class unless few graphs of that class had as low a probability; it always contains the
 * most likely class); where there is a memory, from graphs that were about as near to training.
 * Members with different validation graphs each predict only their own: the mean of the members is
 * better, so that intervals cover too much rather than too little. */
#include "base/bundle.h"
#include "base/sort.h"
#include "tasks/graphs/graphs.h"

static const char confidence[] = "the confidence of predictions";
enum { ENOUGH = 50, ENOUGH_RARE = 5, SHARES = 10 };

static bool is_value(const basin_graphs_model *m) {
    return m->target == BASIN_GRAPHS_VALUES && !m->binary;
}

/* ---- temperature ---- */

static double tempered(double p, double temperature) {
    double odds = log(fmax(p, 1e-12) / fmax(1 - p, 1e-12));
    return 1 / (1 + exp(-odds / temperature));
}

static void temper_row(float *p, const basin_graphs_model *m, double temperature) {
    double sum = 0;
    if (temperature == 1 || is_value(m)) return;
    for (int64_t c = 0; c < m->outputs; c++)
        sum += p[c] = (float)(m->binary ? tempered((double)p[c], temperature)
                                        : pow((double)p[c], 1 / temperature));
    for (int64_t c = 0; c < m->outputs && !m->binary; c++) p[c] = (float)((double)p[c] / sum);
}

void basin_graphs_temper(float *output, int64_t rows, const basin_graphs_model *m, bool logits) {
    double t = m->calibration.temperature > 0 ? m->calibration.temperature : 1;
    if (t == 1 || is_value(m)) return;
    for (int64_t i = 0; i < rows * m->outputs && logits && !m->binary; i++)
        output[i] = (float)((double)output[i] / t);
    for (int64_t i = 0; i < rows && (!logits || m->binary); i++)
        temper_row(output + i * m->outputs, m, t);
}

/* ---- fitting to validation graphs ---- */

typedef struct trial {
    const basin_graphs_model *m;
    const basin_graphset *set;
    const int64_t *graph;
    int64_t count, members;
    const float *given, *held, *nearest;
    float *row;   /* [C] */
    float *mean;  /* [C] */
    double *loss; /* [SHARES + 2, count] losses per graph: of the last prediction, then by share */
} trial;

/* The prediction for graph i; false where the memory does not have it. */
static bool predict(const trial *t, int64_t i, double temperature, double share) {
    int64_t C = t->m->outputs;
    for (int64_t c = 0; c < C; c++) t->mean[c] = 0;
    for (int64_t k = 0; k < t->members; k++) {
        memcpy(t->row, t->given + (k * t->count + i) * C, (size_t)C * sizeof *t->row);
        temper_row(t->row, t->m, temperature);
        for (int64_t c = 0; c < C; c++) t->mean[c] += t->row[c];
    }
    for (int64_t c = 0; c < C; c++) t->mean[c] = (float)((double)t->mean[c] / (double)t->members);
    if (t->held && isnan(t->held[i * C])) return false;
    for (int64_t c = 0; c < C && t->held; c++)
        t->mean[c] = (float)((1 - share) * (double)t->mean[c] + share * (double)t->held[i * C + c]);
    return true;
}

/* The mean loss: squares of values, in units of their deviation; else minus log-likelihoods. */
static double loss_of(const trial *t, double temperature, double share, int64_t *known) {
    double loss = 0;
    *known = 0;
    for (int64_t i = 0; i < t->count; i++) {
        t->loss[i] = 0;
        if (!predict(t, i, temperature, share)) continue;
        for (int64_t c = 0; c < basin_graphs_columns(t->m); c++) {
            double y = basin_graphs_truth(t->set, t->graph[i], c), p = (double)t->mean[c];
            bool values = is_value(t->m), classes = t->m->target == BASIN_GRAPHS_CLASSES;
            if (isnan(y) || (classes && y == 0)) continue;
            double miss = values ? (p - y) / t->m->target_scale[c] : 0;
            t->loss[i] += values ? miss * miss : -log(fmax(y > 0 ? p : 1 - p, 1e-6));
            ++*known;
        }
        loss += t->loss[i];
    }
    return loss / fmax(1, (double)*known);
}

static double share_of(const trial *t, int part) { /* the network ranks what the memory bounds */
    return fmin((double)part / SHARES, is_value(t->m) ? 1 : 0.99);
}

bool basin_graphs_one_sided(const basin_graphs_model *m, const basin_graphset *set,
                            const int64_t *graph, int64_t count) {
    int64_t known = 0, ones = 0, max = 0;
    for (int64_t c = 0; c < basin_graphs_columns(m) && !is_value(m); c++) {
        int64_t before = ones;
        for (int64_t i = 0; i < count; i++) {
            double y = basin_graphs_truth(set, graph[i], c);
            ones += y > 0, known += m->binary ? !isnan(y) : y > 0;
        }
        max = basin_int_max(max, ones - before);
    }
    if (m->binary) max = basin_int_max(ones, known - ones);
    return !is_value(m) && known - max < ENOUGH_RARE;
}

/* Whether share `a` is worse than `b` by more than two standard errors of the difference. */
static bool is_worse(const trial *t, int a, int b) {
    double sum = 0, squares = 0, n = (double)t->count;
    for (int64_t i = 0; i < t->count; i++) {
        double d = t->loss[(a + 1) * t->count + i] - t->loss[(b + 1) * t->count + i];
        sum += d, squares += d * d;
    }
    return sum > 0 && sum * sum > 4 * (squares - sum * sum / n);
}

/* For probabilities of molecules, chooses the share nearest to the default that is not clearly
 * worse than the best: epochs were chosen on the same graphs, and few of these may be active. */
static void choose(double *temperature, double *share, const trial *t) {
    int64_t known;
    int best = 0, last = t->held ? SHARES : 0, usual = (int)(*share * SHARES + 0.5);
    double at[SHARES + 1], min[SHARES + 1];
    loss_of(t, *temperature, *share, &known);
    if (known < ENOUGH || basin_graphs_one_sided(t->m, t->set, t->graph, t->count)) return;
    for (int part = 0; part <= last; part++) {
        min[part] = INFINITY, at[part] = 1;
        for (int step = -6; step <= 8; step++) {
            double tried = pow(2, step / 4.0);
            if (is_value(t->m) && step) continue;
            double loss = loss_of(t, tried, share_of(t, part), &known);
            if (!(loss < min[part])) continue;
            min[part] = loss, at[part] = tried;
            memcpy(t->loss + (part + 1) * t->count, t->loss, (size_t)t->count * sizeof *t->loss);
        }
        if (min[part] < min[best]) best = part;
    }
    if (!usual || !t->held) usual = best;
    while (is_worse(t, usual, best)) usual += best > usual ? 1 : -1;
    *temperature = at[usual], *share = share_of(t, usual);
}

/* How wrong a prediction is about column c: of values the error, else 1 - the probability of what
 * is true; and its list, -1: not known. */
static int64_t judge(float *score, const trial *t, int64_t i, int64_t c) {
    double y = basin_graphs_truth(t->set, t->graph[i], c), p = (double)t->mean[c];
    if (isnan(y)) return -1;
    *score = (float)(is_value(t->m) ? fabs(p - y) : y > 0 ? 1 - p : p);
    if (t->m->binary) return 2 * c + (y > 0);
    return is_value(t->m) || y > 0 ? c : -1;
}

/* A score, and how near the graph was; ties go by the graph's place, which says nothing of scores.
 */
typedef struct scored {
    float near, score;
    int64_t at;
} scored;

static int by_nearness(const void *a, const void *b) {
    const scored *x = a, *y = b;
    return x->near != y->near ? BASIN_COMPARE(x->near, y->near) : BASIN_COMPARE(x->at, y->at);
}

static basin_status keep_scores(basin_graphs_calibration *to, const trial *t, double share,
                                basin_error *error) {
    int64_t columns = basin_graphs_columns(t->m), lists = columns * (t->m->binary ? 2 : 1), n = 0;
    scored own = {0};
    BASIN_TRY(BASIN_NEW(&to->start, lists + 1, confidence, error));
    BASIN_TRY(BASIN_NEW_RAW(&to->score, t->count * columns, confidence, error));
    if (t->nearest) BASIN_TRY(BASIN_NEW_RAW(&to->near, t->count * columns, confidence, error));
    BASIN_SCRATCH_RAW(scored, all, t->count, confidence, error);
    for (int64_t l = 0; l < lists; l++) {
        int64_t count = 0;
        for (int64_t i = 0; i < t->count; i++) {
            if (!predict(t, i, to->temperature, share) ||
                judge(&own.score, t, i, t->m->binary ? l / 2 : l) != l)
                continue;
            own.at = i, own.near = t->nearest ? t->nearest[i] : 0;
            all[count++] = own;
        }
        qsort(all, (size_t)count, sizeof *all, by_nearness);
        for (int64_t i = 0; i < count; i++, n++) {
            to->score[n] = all[i].score;
            if (to->near) to->near[n] = all[i].near;
        }
        to->start[l + 1] = n;
    }
    to->lists = lists;
    return BASIN_OK;
}

basin_status basin_graphs_calibration_fit(basin_graphs_model *m, const basin_graphset *set,
                                          const int64_t *graph, int64_t count, float *given,
                                          int64_t members, const float *held, const float *nearest,
                                          basin_error *error) {
    basin_graphs_calibration *to = &m->calibration;
    basin_graphs_calibration_free(to);
    to->temperature = 1;
    if (!count || m->target == BASIN_GRAPHS_NODE_CLASSES) return BASIN_OK;
    BASIN_SCRATCH(float, row, 2 * m->outputs, confidence, error);
    BASIN_SCRATCH(double, loss, (SHARES + 2) * count, confidence, error);
    trial t = {m, set, graph, count, members, given, held, nearest, row, row + m->outputs, loss};
    choose(&to->temperature, &m->near.share, &t);
    BASIN_TRY(keep_scores(to, &t, m->near.share, error));
    for (int64_t i = 0; i < count; i++) { /* row i is not read any more by then */
        predict(&t, i, to->temperature, m->near.share);
        memcpy(given + i * m->outputs, t.mean, (size_t)m->outputs * sizeof *given);
    }
    return BASIN_OK;
}

void basin_graphs_calibration_free(basin_graphs_calibration *calibration) {
    BASIN_FREE(calibration->start, calibration->score, calibration->near);
    *calibration = (basin_graphs_calibration){0};
}

/* ---- intervals and sets ---- */

/* How many scores around a graph's similarity to training say how wrong a prediction may be: a
 * quarter of them, in bounds, and twice what the coverage needs. */
enum { FEW = 60, MANY = 200 };
static int64_t count_around(int64_t scores, double coverage) {
    int64_t around = basin_int_min(basin_int_max(scores / 4, FEW), MANY);
    return basin_int_min(basin_int_max(around, (int64_t)(2 / (1 - coverage))), scores);
}

/* The smallest score that `coverage` of the predictions do not exceed, among graphs as near to
 * training as this one; infinite where there are too few. `work` [MANY or what the coverage needs].
 */
static double quantile(const basin_graphs_calibration *calibration, int64_t list, double coverage,
                       const float *nearest, float *work) {
    int64_t first = calibration->start[list], n = calibration->start[list + 1] - first, begin = 0;
    if (calibration->near && nearest) {
        const float *near = calibration->near + first;
        int64_t around = count_around(n, coverage);
        while (begin + around<n && * nearest - near[begin]> near[begin + around] - *nearest)
            begin++;
        n = around;
    }
    int64_t k = (int64_t)ceil((double)(n + 1) * coverage - 1e-9);
    if (k > n) return INFINITY;
    memcpy(work, calibration->score + first + begin, (size_t)n * sizeof *work);
    qsort(work, (size_t)n, sizeof *work, basin_compare_float);
    return (double)work[k > 0 ? k - 1 : 0];
}

static bool is_likeliest(const float *p, int64_t c, int64_t columns) {
    for (int64_t i = 0; i < columns; i++)
        if (p[i] > p[c]) return false;
    return true;
}

basin_status basin_graphs_calibration_bound(float *low, float *high, const float *predicted,
                                            const float *nearest, int64_t rows,
                                            const basin_graphs_model *m, double coverage,
                                            basin_error *error) {
    const basin_graphs_calibration *own = &m->calibration;
    int64_t columns = basin_graphs_columns(m);
    double share = coverage > 0 ? coverage : 0.9;
    BASIN_SCRATCH_RAW(float, work, own->lists ? own->start[own->lists] + 1 : 1, confidence, error);
    for (int64_t i = 0; i < rows * columns && own->lists; i++) {
        int64_t c = i % columns;
        const float *near = nearest ? &nearest[i / columns] : NULL;
        double p = (double)predicted[i];
        double q = quantile(own, m->binary ? 2 * c : c, share, near, work);
        if (is_value(m)) {
            low[i] = (float)(p - q), high[i] = (float)(p + q);
        } else if (m->binary) {
            low[i] = p <= q || p < 0.5;
            high[i] = 1 - p <= quantile(own, 2 * c + 1, share, near, work) || p >= 0.5;
        } else {
            low[i] = high[i] = 1 - p <= q || is_likeliest(predicted + i - c, c, columns);
        }
    }
    return BASIN_OK;
}

basin_status basin_graphs_calibration_measure(basin_graphs_measures *measures,
                                              const float *predicted, const float *nearest,
                                              const basin_graphset *set, const int64_t *graph,
                                              int64_t count, const basin_graphs_model *m,
                                              double coverage, basin_error *error) {
    int64_t columns = basin_graphs_columns(m), cells = count * columns;
    double known = 0, right = 0, size = 0;
    measures->coverage = measures->width = NAN;
    if (!m->calibration.lists || m->target == BASIN_GRAPHS_NODE_CLASSES) return BASIN_OK;
    BASIN_SCRATCH(float, bound, 2 * cells, confidence, error);
    BASIN_TRY(basin_graphs_calibration_bound(bound, bound + cells, predicted, nearest, count, m,
                                             coverage, error));
    for (int64_t i = 0; i < cells; i++) {
        double y = basin_graphs_truth(set, graph[i / columns], i % columns);
        double low = (double)bound[i], high = (double)bound[cells + i];
        if (isnan(y)) continue;
        if (is_value(m)) {
            known++, right += low <= y && y <= high;
            size += (high - low) / (columns > 1 ? m->target_scale[i % columns] : 1);
        } else if (m->binary) {
            known++, right += y > 0 ? high : low, size += low + high;
        } else {
            known += y, right += y * low, size += low;
        }
    }
    measures->coverage = right / known, measures->width = size / known;
    return BASIN_OK;
}
