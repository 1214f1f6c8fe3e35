/* Curves over all thresholds: precision by recall, and true by false alarms; see page.h. Equal
 * scores change sides together. */
#include <stdlib.h>

#include "base/memory.h"
#include "task/anomaly/report/page.h"

typedef struct sample {
    double score;
    uint8_t label;
} sample;

static int higher_first(const void *a, const void *b) {
    double x = ((const sample *)a)->score, y = ((const sample *)b)->score;
    return (x < y) - (x > y);
}

/* A point that is far enough from the one before, or the last. */
static void add(basin_anomaly_curve *curve, double x, double y, bool last) {
    static const double apart = 1.5 / BASIN_CURVE_POINTS;
    int64_t n = curve->count;
    double far = n ? x - curve->x[n - 1] + (y > curve->y[n - 1] ? y - curve->y[n - 1] : 0) : 1;
    if (!last && (far < apart || n > BASIN_CURVE_POINTS)) return;
    curve->x[n] = x;
    curve->y[n] = y;
    curve->count++;
}

basin_status basin_anomaly_curves(basin_anomaly_findings *f, basin_error *error) {
    const basin_anomaly_samples *s = &f->samples;
    double normal = (double)(f->figures.nodes - f->figures.anomalous), found[2] = {0, 0};
    sample *list = basin_array_new((size_t)s->count, sizeof *list);
    if (!list) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for curves");
    for (int64_t i = 0; i < s->count; i++) list[i] = (sample){s->score[i], s->label[i]};
    qsort(list, (size_t)s->count, sizeof *list, higher_first);
    add(&f->roc, 0, 0, false);
    for (int64_t i = 0; i < s->count; i++) {
        bool last = i + 1 == s->count;
        found[list[i].label]++;
        if (!last && list[i].score == list[i + 1].score) continue;
        double recall = found[1] / (double)f->figures.anomalous;
        add(&f->precision, recall, found[1] / (found[0] + found[1]), last);
        add(&f->roc, found[0] / normal, recall, last);
    }
    free(list);
    return BASIN_OK;
}
