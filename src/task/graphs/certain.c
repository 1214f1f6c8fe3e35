/* How far predictions can be trusted, learnt of validation graphs: a temperature that calibrates
 * probabilities, the share of the memory of molecules, and how wrong predictions of such graphs
 * are. From the last come conformal intervals of values (quantiles of absolute errors) and sets of
 * classes (a class is in it unless few graphs of that class had as low a probability). Members that
 * set different graphs aside predict their own alone: the mean of members is better, so that
 * intervals rather cover too much. */
#include "base/sort.h"
#include "task/graphs/graphs.h"

static const char confidence[] = "the confidence of predictions";
enum { ENOUGH = 50, SHARES = 10 };

static bool is_value(const basin_graphs_model *m) {
    return m->target == BASIN_GRAPHS_VALUES && !m->binary;
}

static int64_t columns_of(const basin_graphs_model *m) {
    return m->target == BASIN_GRAPHS_VALUES ? m->outputs : m->classes;
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
    double t = m->certain.temperature > 0 ? m->certain.temperature : 1;
    if (t == 1 || is_value(m)) return;
    for (int64_t i = 0; i < rows * m->outputs && logits && !m->binary; i++)
        output[i] = (float)((double)output[i] / t);
    for (int64_t i = 0; i < rows && (!logits || m->binary); i++)
        temper_row(output + i * m->outputs, m, t);
}

/* ---- what validation graphs say ---- */

typedef struct trial {
    const basin_graphs_model *m;
    const basin_graphset *set;
    const int64_t *graph;
    int64_t count, members;
    const float *given, *held;
    float *row;  /* [C] */
    float *mean; /* [C] */
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
        if (!predict(t, i, temperature, share)) continue;
        for (int64_t c = 0; c < columns_of(t->m); c++) {
            double y = basin_graphs_truth(t->set, t->graph[i], c), p = (double)t->mean[c];
            bool values = is_value(t->m), classes = t->m->target == BASIN_GRAPHS_CLASSES;
            if (isnan(y) || (classes && y == 0)) continue;
            double miss = values ? (p - y) / t->m->target_scale[c] : 0;
            loss += values ? miss * miss : -log(fmax(y > 0 ? p : 1 - p, 1e-6));
            ++*known;
        }
    }
    return loss / fmax(1, (double)*known);
}

static void choose(double *temperature, double *share, const trial *t) {
    int64_t known;
    double least = loss_of(t, *temperature, *share, &known);
    if (known < ENOUGH) return;
    for (int step = -6; step <= 8; step++)
        for (int part = 0; part <= (t->held ? SHARES : 0); part++) {
            double tried = pow(2, step / 4.0), s = (double)part / SHARES;
            if (!is_value(t->m)) s = fmin(s, 0.99); /* the network ranks what the memory bounds */
            if (is_value(t->m) && step) continue;
            double loss = loss_of(t, tried, s, &known);
            if (loss < least) least = loss, *temperature = tried, *share = s;
        }
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

static int64_t lists_of(const basin_graphs_model *m) { return columns_of(m) * (m->binary ? 2 : 1); }

static basin_status keep_scores(basin_graphs_certain *to, const trial *t, double share,
                                basin_error *error) {
    int64_t lists = lists_of(t->m), columns = columns_of(t->m);
    float score;
    BASIN_TRY(BASIN_NEW(&to->start, lists + 1, confidence, error));
    BASIN_TRY(BASIN_NEW_RAW(&to->score, t->count * columns, confidence, error));
    for (int64_t l = 0; l < lists; l++) {
        int64_t count = 0;
        for (int64_t i = 0; i < t->count; i++)
            if (predict(t, i, to->temperature, share) &&
                judge(&score, t, i, t->m->binary ? l / 2 : l) == l)
                to->score[to->start[l] + count++] = score;
        qsort(to->score + to->start[l], (size_t)count, sizeof *to->score, basin_compare_float);
        to->start[l + 1] = to->start[l] + count;
    }
    to->lists = lists;
    return BASIN_OK;
}

basin_status basin_graphs_certain_fit(basin_graphs_model *m, const basin_graphset *set,
                                      const int64_t *graph, int64_t count, float *given,
                                      int64_t members, const float *held, basin_error *error) {
    basin_graphs_certain *to = &m->certain;
    basin_graphs_certain_free(to);
    to->temperature = 1;
    if (!count || m->target == BASIN_NODE_CLASSES) return BASIN_OK;
    BASIN_SCRATCH(float, row, 2 * m->outputs, confidence, error);
    trial t = {m, set, graph, count, members, given, held, row, row + m->outputs};
    choose(&to->temperature, &m->near.share, &t);
    BASIN_TRY(keep_scores(to, &t, m->near.share, error));
    for (int64_t i = 0; i < count; i++) { /* row i is not read any more by then */
        predict(&t, i, to->temperature, m->near.share);
        memcpy(given + i * m->outputs, t.mean, (size_t)m->outputs * sizeof *given);
    }
    return BASIN_OK;
}

void basin_graphs_certain_free(basin_graphs_certain *certain) {
    BASIN_FREE(certain->start, certain->score);
    *certain = (basin_graphs_certain){0};
}

/* ---- intervals and sets ---- */

/* The least score that `coverage` of the predictions stay within; infinite where they are too few.
 */
static double quantile(const basin_graphs_certain *certain, int64_t list, double coverage) {
    int64_t first = certain->start[list], n = certain->start[list + 1] - first;
    int64_t k = (int64_t)ceil((double)(n + 1) * coverage - 1e-9);
    return k > n ? INFINITY : (double)certain->score[first + (k > 0 ? k - 1 : 0)];
}

void basin_graphs_certain_bound(float *low, float *high, const float *predicted, int64_t rows,
                                const basin_graphs_model *m, double coverage) {
    int64_t columns = columns_of(m);
    double share = coverage > 0 ? coverage : 0.9;
    for (int64_t i = 0; i < rows * columns && m->certain.lists; i++) {
        int64_t c = i % columns;
        double p = (double)predicted[i];
        double q = quantile(&m->certain, m->binary ? 2 * c : c, share);
        if (is_value(m)) {
            low[i] = (float)(p - q), high[i] = (float)(p + q);
        } else {
            low[i] = m->binary ? p <= q : 1 - p <= q;
            high[i] = m->binary ? 1 - p <= quantile(&m->certain, 2 * c + 1, share) : low[i];
        }
    }
}

basin_status basin_graphs_certain_measure(basin_graphs_measures *measures, const float *predicted,
                                          const basin_graphset *set, const int64_t *graph,
                                          int64_t count, const basin_graphs_model *m,
                                          double coverage, basin_error *error) {
    int64_t columns = columns_of(m), cells = count * columns;
    double known = 0, right = 0, size = 0;
    measures->coverage = measures->size = NAN;
    if (!m->certain.lists || m->target == BASIN_NODE_CLASSES) return BASIN_OK;
    BASIN_SCRATCH(float, bound, 2 * cells, confidence, error);
    basin_graphs_certain_bound(bound, bound + cells, predicted, count, m, coverage);
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
    measures->coverage = right / known, measures->size = size / known;
    return BASIN_OK;
}

basin_status basin_graphs_certain_write(basin_bundle *bundle, const basin_graphs_model *m,
                                        basin_error *error) {
    const basin_graphs_certain *c = &m->certain;
    if (!c->lists) return BASIN_OK;
    BASIN_TRY(basin_bundle_put(bundle, "conformal.start", c->start, BASIN_I64,
                               BASIN_SHAPE(c->lists + 1), error));
    return basin_bundle_put(bundle, "conformal.score", c->score, BASIN_F32,
                            BASIN_SHAPE(c->start[c->lists]), error);
}

basin_status basin_graphs_certain_read(basin_graphs_model *m, const basin_bundle *bundle,
                                       basin_error *error) {
    static const char *const name[2] = {"conformal.start", "conformal.score"};
    int64_t lists = lists_of(m);
    void *score = NULL;
    if (!basin_bundle_find(bundle, name[0])) return BASIN_OK;
    basin_status status =
        basin_graphs_lists_read(&m->certain.start, &lists, &score, BASIN_F32, name, bundle, error);
    m->certain.score = score;
    if (!status) m->certain.lists = lists;
    return status;
}
