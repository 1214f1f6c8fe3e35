/* From labels and attributes to features: what is learnt from the training graphs, the ranges of
 * labels, means and deviations of attributes. See include/basin/graphset.h. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/graphset/graphset.h"

enum { MOST_KINDS = 4096, DEGREES = 32 };
static const double LEAST_VARIANCE = 1e-70; /* 1 over its root is a float */

/* Rows (nodes or edges) of graph g. */
typedef struct rows {
    const int64_t *start;
    const int64_t *graph;
    int64_t count;
} rows;

static basin_status label_ranges(basin_label_column *column, const int32_t *label, int64_t columns,
                                 const rows *r, const char *what, basin_error *error) {
    for (int64_t c = 0; c < columns; c++) {
        int64_t low = INT32_MAX, high = INT32_MIN;
        for (int64_t i = 0; i < r->count; i++)
            for (int64_t n = r->start[r->graph[i]]; n < r->start[r->graph[i] + 1]; n++) {
                int32_t value = label[n * columns + c];
                low = value < low ? value : low;
                high = value > high ? value : high;
            }
        if (low > high) low = 0, high = 0;
        if (high - low >= MOST_KINDS)
            return basin_fail(error, BASIN_UNSUPPORTED,
                              "%s labels from %lld to %lld; wanted a range of %d at most", what,
                              (long long)low, (long long)high, MOST_KINDS);
        column[c] = (basin_label_column){(int32_t)low, (int32_t)(high - low + 1)};
    }
    return BASIN_OK;
}

/* Of the columns from `first` on. What varies no more than its sums are rounded is a constant,
 * whatever its units: lengths in metres are of 1e-10 where they are of molecules. */
static void statistics(float *mean, float *scale, const float *number, int64_t first,
                       int64_t columns, const rows *r) {
    for (int64_t c = first; c < columns; c++) {
        double sum = 0, squares = 0, count = 0;
        for (int64_t i = 0; i < r->count; i++)
            for (int64_t n = r->start[r->graph[i]]; n < r->start[r->graph[i] + 1]; n++) {
                double value = (double)number[n * columns + c];
                sum += value, squares += value * value, count += 1;
            }
        double centre = count > 0 ? sum / count : 0;
        double variance = count > 0 ? squares / count - centre * centre : 0;
        bool varies = variance > fmax(1e-12 * squares / count, LEAST_VARIANCE);
        mean[c] = (float)centre;
        scale[c] = varies ? (float)(1 / sqrt(variance)) : 1;
    }
}

void basin_graphset_encoding_count(basin_graphset_encoding *e) {
    e->edge_features = e->edge_attributes;
    for (int64_t c = 0; c < e->edge_labels; c++)
        e->edge_features += e->raw ? 1 : e->edge_label[c].count;
    e->features = e->attributes + e->degrees;
    for (int64_t c = 0; c < e->labels; c++) e->features += e->raw ? 1 : e->label[c].count;
    if (e->edge_sums) e->features += e->edge_features;
    if (!e->features) e->features = 1;
    if (!e->edge_features) e->edge_features = 1;
}

basin_status basin_graphset_encoding_new(basin_graphset_encoding *e, const basin_graphset *set,
                                         const int64_t *graph, int64_t count,
                                         const basin_encoding_spec *spec, basin_error *error) {
    rows nodes = {set->node_start, graph, count}, edges = {set->edge_start, graph, count};
    bool bare = !set->node_labels && !set->node_attributes;
    *e = (basin_graphset_encoding){
        .attributes = set->node_attributes,
        .labels = set->node_labels,
        .edge_attributes = set->edge_attributes,
        .edge_labels = set->edge_labels,
        .raw = spec->raw,
        .edge_sums =
            spec->edge_sums && (set->edge_labels || set->edge_attributes > set->edge_walks)};
    e->degrees = spec->degrees >= 0 ? spec->degrees : bare ? DEGREES : 0;
    if (bare && e->degrees && e->degrees < DEGREES) e->degrees = DEGREES; /* all that is known */
    int64_t columns = e->attributes + e->edge_attributes;
    e->mean = calloc((size_t)columns + 1, sizeof *e->mean);
    e->scale = calloc((size_t)columns + 1, sizeof *e->scale);
    if (!e->mean || !e->scale) {
        basin_graphset_encoding_free(e);
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for an encoding");
    }
    for (int64_t c = 0; c < columns; c++) e->scale[c] = 1;
    if (spec->standardise)
        statistics(e->mean, e->scale, set->node_attribute, 0, e->attributes, &nodes);
    statistics(e->mean + e->attributes, e->scale + e->attributes, set->edge_attribute,
               e->edge_attributes - set->edge_walks, e->edge_attributes, &edges);
    basin_status status = label_ranges(e->label, set->node_label, e->labels, &nodes, "node", error);
    if (!status)
        status =
            label_ranges(e->edge_label, set->edge_label, e->edge_labels, &edges, "edge", error);
    basin_graphset_encoding_count(e);
    if (status) basin_graphset_encoding_free(e);
    return status;
}

void basin_graphset_encoding_free(basin_graphset_encoding *encoding) {
    free(encoding->mean);
    free(encoding->scale);
    *encoding = (basin_graphset_encoding){0};
}

basin_status basin_graphset_encoding_check(const basin_graphset_encoding *e,
                                           const basin_graphset *set, const char *path,
                                           basin_error *error) {
    if (set->node_attributes == e->attributes && set->node_labels == e->labels &&
        set->edge_attributes == e->edge_attributes && set->edge_labels == e->edge_labels)
        return BASIN_OK;
    int64_t walks = set->edge_walks; /* made here, not of the files */
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: %lld node attributes, %lld node labels, %lld edge attributes, %lld edge "
                      "labels; the model wants %lld, %lld, %lld, %lld",
                      path, (long long)set->node_attributes, (long long)set->node_labels,
                      (long long)(set->edge_attributes - walks), (long long)set->edge_labels,
                      (long long)e->attributes, (long long)e->labels,
                      (long long)(e->edge_attributes - walks), (long long)e->edge_labels);
}
