/* Drift of columns against training; see drift.h. */
#include "task/anomaly/after/drift.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/schema/schema.h"
#include "task/anomaly/anomaly.h"

enum { EDGES = BASIN_DRIFT_EDGES, BINS = BASIN_DRIFT_BINS };
enum { SAMPLE = 20000, FEW = 50 }; /* nodes that set edges at most; that can tell of drift */

/* ---- values ---- */

static const basin_relation *main_relation(const basin_network *network) {
    int main = basin_network_main_relation(network);
    return network->relations ? &network->relation[main < 0 ? 0 : main] : NULL;
}

/* A feature; behind the last the number of neighbours. */
static float value_at(const basin_network *network, const basin_relation *relation, int64_t row,
                      int64_t node) {
    int64_t features = network->feature ? network->features : 0;
    if (row < features) return network->feature[node * features + row];
    return relation ? (float)(relation->row[node + 1] - relation->row[node]) : 0;
}

/* 0: below the first edge; 1: on it; then up to and with each further edge, and above the last. */
static int bin_of(const float edge[EDGES], float x) {
    int bin = x >= edge[0];
    for (int i = 0; i < EDGES; i++) bin += edge[i] < x;
    return bin;
}

static void count_row(double count[BINS], const float *edge, const basin_network *network,
                      int64_t row, int64_t first) {
    const basin_relation *relation = main_relation(network);
    for (int i = 0; i < BINS; i++) count[i] = 0;
    for (int64_t n = first; n < network->nodes; n++)
        count[bin_of(edge, value_at(network, relation, row, n))]++;
}

static int lower_first(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Values of the nodes from `first` on, evenly thinned out, ascending; returns how many. */
static int64_t sample_row(float sample[SAMPLE], const basin_network *network, int64_t row,
                          int64_t first) {
    const basin_relation *relation = main_relation(network);
    int64_t all = network->nodes - first, taken = all < SAMPLE ? all : SAMPLE;
    for (int64_t i = 0; i < taken; i++)
        sample[i] = value_at(network, relation, row, first + i * all / taken);
    qsort(sample, (size_t)taken, sizeof *sample, lower_first);
    return taken;
}

/* ---- training ---- */

static basin_status reference_new(basin_anomaly_reference *r, int64_t rows, basin_error *error) {
    *r = (basin_anomaly_reference){.rows = rows};
    r->edge = basin_array_new((size_t)rows * EDGES, sizeof *r->edge);
    r->count = basin_array_new((size_t)rows * BINS, sizeof *r->count);
    if (r->edge && r->count) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "no memory for what columns look like");
}

/* Each value where there are few, else the least one and deciles. */
static void set_edges(float edge[EDGES], const float *sample, int64_t taken) {
    int values = 0;
    for (int64_t i = 0; i < taken && values <= EDGES; i++) {
        if (i && sample[i] == sample[i - 1]) continue;
        if (values < EDGES) edge[values] = sample[i];
        values++;
    }
    for (int i = values; i < EDGES; i++) edge[i] = edge[values - 1];
    for (int i = 0; i < EDGES && values > EDGES; i++) edge[i] = sample[i * taken / EDGES];
}

basin_status basin_anomaly_reference_take(basin_anomaly_reference *reference,
                                          const basin_network *network, basin_error *error) {
    float *sample = basin_array_new(SAMPLE, sizeof *sample);
    basin_anomaly_reference_free(reference);
    basin_status status =
        reference_new(reference, (network->feature ? network->features : 0) + 1, error);
    if (!status && !sample)
        status = basin_fail(error, BASIN_NO_MEMORY, "no memory for what columns look like");
    for (int64_t row = 0; row < reference->rows && !status; row++) {
        double count[BINS];
        float *edge = reference->edge + row * EDGES;
        int64_t taken = sample_row(sample, network, row, 0);
        set_edges(edge, sample, taken);
        count_row(count, edge, network, row, 0);
        for (int i = 0; i < BINS; i++) reference->count[row * BINS + i] = (float)count[i];
    }
    free(sample);
    return status;
}

void basin_anomaly_reference_free(basin_anomaly_reference *reference) {
    free(reference->edge);
    free(reference->count);
    *reference = (basin_anomaly_reference){0};
}

basin_status basin_anomaly_reference_store(basin_bundle *bundle, const basin_anomaly_reference *r,
                                           basin_error *error) {
    if (!r->rows) return BASIN_OK;
    basin_tensor edge = basin_tensor_borrow(r->edge, BASIN_F32, BASIN_SHAPE(r->rows, EDGES));
    basin_tensor count = basin_tensor_borrow(r->count, BASIN_F32, BASIN_SHAPE(r->rows, BINS));
    basin_status status = basin_bundle_add(bundle, "drift.edge", &edge, error);
    return status ? status : basin_bundle_add(bundle, "drift.count", &count, error);
}

basin_status basin_anomaly_reference_load(basin_anomaly_reference *r, const basin_bundle *bundle,
                                          int64_t features, basin_error *error) {
    const basin_tensor *edge = basin_bundle_find(bundle, "drift.edge"), *count = NULL;
    if (!edge) return BASIN_OK;
    basin_status status = basin_bundle_get(&count, bundle, "drift.count", error);
    if (status) return status;
    int64_t rows = features + 1;
    bool fits = edge->dtype == BASIN_F32 && count->dtype == BASIN_F32 &&
                basin_shape_count(edge->shape) == rows * EDGES &&
                basin_shape_count(count->shape) == rows * BINS &&
                basin_tensor_first_bad(edge) < 0 && basin_tensor_first_bad(count) < 0;
    if (!fits)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: drift.edge and drift.count do not fit; wanted finite F32 of %lld "
                          "rows, %d and %d a row",
                          basin_bundle_path(bundle), (long long)rows, EDGES, BINS);
    status = reference_new(r, rows, error);
    if (status) return status;
    memcpy(r->edge, edge->data, (size_t)rows * EDGES * sizeof *r->edge);
    memcpy(r->count, count->data, (size_t)rows * BINS * sizeof *r->count);
    return BASIN_OK;
}

/* ---- measuring ---- */

typedef struct measurer {
    const basin_anomaly_reference *reference;
    const basin_network *network;
    int64_t first, nodes;
    float *sample; /* [SAMPLE] */
} measurer;

/* Little evidence draws what is seen towards training; the rest of what chance alone would give is
 * allowed for. */
static void judge(basin_anomaly_drift_column *c, const double *then, double *now, int64_t bins,
                  double nodes) {
    static const double strength = 5;
    double all = 0;
    for (int64_t i = 0; i < bins; i++) all += then[i];
    for (int64_t i = 0; i < bins && all > 0; i++) now[i] += strength * then[i] / all;
    c->index = all > 0 ? basin_stability_index(then, now, bins) : 0;
    double chance = (double)(bins - 1) * (1 / nodes + 1 / fmax(all, 1));
    c->level = nodes < FEW ? 0 : (c->index > 0.1 + chance) + (c->index > 0.25 + chance);
}

/* The edge up to which half of the nodes lie. */
static double middle(const float edge[EDGES], const double count[BINS]) {
    double all = 0, below = 0;
    int at = 1;
    for (int i = 0; i < BINS; i++) all += count[i];
    for (int i = 0; i <= 1; i++) below += count[i];
    while (at < EDGES && below < all / 2) below += count[++at];
    return (double)edge[at - 1];
}

static void measure_number(basin_anomaly_drift_column *c, measurer *m, int64_t row) {
    double then[BINS], now[BINS];
    const float *edge = m->reference->edge + row * EDGES;
    for (int i = 0; i < BINS; i++) then[i] = (double)m->reference->count[row * BINS + i];
    count_row(now, edge, m->network, row, m->first);
    int64_t taken = sample_row(m->sample, m->network, row, m->first);
    c->then = middle(edge, then);
    c->now = (double)m->sample[taken / 2];
    judge(c, then, now, BINS, (double)m->nodes);
}

/* Nodes that have the value of a row, then and now. */
static double with_value(const measurer *m, int64_t row, bool training) {
    double count = 0;
    for (int i = bin_of(m->reference->edge + row * EDGES, 1); i < BINS && training; i++)
        count += (double)m->reference->count[row * BINS + i];
    if (training) return count;
    for (int64_t n = m->first; n < m->network->nodes; n++)
        count += (double)(value_at(m->network, NULL, row, n) > 0.5f);
    return count;
}

static basin_status measure_category(basin_anomaly_drift_column *c, const measurer *m,
                                     int64_t first, int64_t values, basin_error *error) {
    double *then = calloc((size_t)values + 1, sizeof *then), all = 0;
    double *now = calloc((size_t)values + 1, sizeof *now);
    basin_status status = then && now ? BASIN_OK : BASIN_NO_MEMORY;
    if (status) basin_fail(error, status, "no memory for drift");
    for (int i = 0; i < BINS; i++) all += (double)m->reference->count[first * BINS + i];
    for (int64_t v = 0; v < values && !status; v++) {
        then[v] = with_value(m, first + v, true);
        now[v] = with_value(m, first + v, false);
        then[values] += then[v], now[values] += now[v];
    }
    if (!status) {
        then[values] = fmax(all - then[values], 0);
        now[values] = fmax((double)m->nodes - now[values], 0);
        c->category = true;
        c->then = all > 0 ? then[values] / all : 0;
        c->now = now[values] / (double)m->nodes;
        judge(c, then, now, values + 1, (double)m->nodes);
    }
    free(then);
    free(now);
    return status;
}

static basin_status measure_columns(basin_anomaly_drift *d, measurer *m, const basin_schema *schema,
                                    basin_error *error) {
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < schema->nodes.columns && !status; i++) {
        const basin_schema_column *own = &schema->nodes.column[i];
        if (!basin_column_is_feature(own->type) || !basin_schema_width(own)) continue;
        basin_anomaly_drift_column *c = &d->column[d->columns++];
        snprintf(c->name, sizeof c->name, "%s%s", schema->named ? "" : "feature ", own->name);
        c->date = own->type == BASIN_COLUMN_DATE;
        if (own->type == BASIN_COLUMN_CATEGORY)
            status = measure_category(c, m, own->first, own->value.count, error);
        else
            measure_number(c, m, own->first);
    }
    if (status) return status;
    basin_anomaly_drift_column *last = &d->column[d->columns++];
    snprintf(last->name, sizeof last->name, "number of neighbours");
    measure_number(last, m, m->reference->rows - 1);
    return BASIN_OK;
}

static int larger_first(const void *a, const void *b) {
    double x = ((const basin_anomaly_drift_column *)a)->index;
    double y = ((const basin_anomaly_drift_column *)b)->index;
    return (x < y) - (x > y);
}

basin_status basin_anomaly_drift_measure(basin_anomaly_drift *drift,
                                         const basin_anomaly_model *model,
                                         const basin_network *network, int64_t first,
                                         basin_error *error) {
    measurer m = {&model->reference, network, first, network->nodes - first, NULL};
    *drift = (basin_anomaly_drift){.nodes = m.nodes, .few = m.nodes < FEW};
    if (!model->reference.rows || !model->schema)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "the model does not say what its training's columns looked like; wanted "
                          "one trained by this version");
    basin_status status = basin_anomaly_check_network(model, network, error);
    if (status) return status;
    drift->column = calloc(model->schema->nodes.columns + 1, sizeof *drift->column);
    m.sample = basin_array_new(SAMPLE, sizeof *m.sample);
    if (!drift->column || !m.sample || m.nodes < 1)
        status = basin_fail(error, BASIN_NO_MEMORY, "no memory for drift");
    if (!status) status = measure_columns(drift, &m, model->schema, error);
    free(m.sample);
    if (status) {
        basin_anomaly_drift_free(drift);
        return status;
    }
    for (int64_t i = 0; i < drift->columns; i++) {
        drift->some += drift->column[i].level == 1;
        drift->large += drift->column[i].level == 2;
    }
    qsort(drift->column, (size_t)drift->columns, sizeof *drift->column, larger_first);
    return BASIN_OK;
}

void basin_anomaly_drift_free(basin_anomaly_drift *drift) {
    free(drift->column);
    *drift = (basin_anomaly_drift){0};
}
