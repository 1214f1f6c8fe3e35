/* Features as bins of equal count, by the values of the training rows. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/team/team.h"
#include "train/trees/grow.h"

static int ascending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Cuts half way between neighbouring values: between all of them where they are few, else where
 * the counts are nearest to equal. Returns how many; `value` is sorted on the way. */
static int64_t choose_cuts(float *cut, float *value, int64_t n) {
    qsort(value, (size_t)n, sizeof *value, ascending);
    int64_t distinct = 1, cuts = 0;
    for (int64_t i = 1; i < n; i++) distinct += value[i] > value[i - 1];
    for (int64_t i = 1; i < n && cuts < BASIN_TREE_BINS - 1; i++) {
        if (value[i] <= value[i - 1]) continue;
        if (distinct > BASIN_TREE_BINS && i * BASIN_TREE_BINS < (cuts + 1) * n) continue;
        float middle = value[i - 1] + (value[i] - value[i - 1]) / 2;
        cut[cuts++] = middle < value[i] ? middle : value[i - 1];
    }
    return cuts;
}

static uint8_t code_of(const float *cut, int64_t cuts, float x) {
    int64_t low = 0, high = cuts;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (x <= cut[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return (uint8_t)low;
}

static int64_t table_row(const basin_trees_data *data, int64_t r) {
    return r < data->trains ? data->train[r] : data->validation[r - data->trains];
}

static void encode(basin_binned *binned, const basin_trees_data *data, int64_t f) {
    const float *cut = binned->cut + f * BASIN_TREE_BINS;
    int64_t cuts = binned->start[f + 1] - 1;
    for (int64_t r = 0; r < binned->rows; r++)
        binned->code[f * binned->rows + r] =
            code_of(cut, cuts, data->x[table_row(data, r) * binned->features + f]);
}

/* Cuts lie in a table of fixed width while they are counted; here they move together. */
static void pack(basin_binned *binned) {
    for (int64_t f = 0; f < binned->features; f++) {
        int64_t bins = binned->start[f + 1];
        memmove(binned->cut + binned->start[f], binned->cut + f * BASIN_TREE_BINS,
                (size_t)(bins - 1) * sizeof *binned->cut);
        binned->start[f + 1] += binned->start[f];
    }
}

typedef struct binning {
    basin_binned *binned;
    const basin_trees_data *data;
} binning;

/* Returns the first feature that there was no memory for. */
static int64_t bin_features(const void *context, int64_t first, int64_t last) {
    basin_binned *binned = ((const binning *)context)->binned;
    const basin_trees_data *data = ((const binning *)context)->data;
    for (int64_t f = first; f < last; f++) {
        float *value = basin_array_new((size_t)data->trains, sizeof *value);
        if (!value) return f;
        for (int64_t r = 0; r < data->trains; r++)
            value[r] = data->x[data->train[r] * binned->features + f];
        binned->start[f + 1] =
            1 + choose_cuts(binned->cut + f * BASIN_TREE_BINS, value, data->trains);
        encode(binned, data, f);
        free(value);
    }
    return last;
}

static bool cut_and_encode(basin_binned *binned, const basin_trees_data *data) {
    binning b = {binned, data};
    return basin_team_find(bin_features, &b, binned->features, 1) == binned->features;
}

basin_status basin_binned_new(basin_binned *binned, const basin_trees_data *data,
                              basin_error *error) {
    size_t rows = (size_t)(data->trains + data->validations), features = (size_t)data->features;
    *binned =
        (basin_binned){.rows = (int64_t)rows, .trains = data->trains, .features = data->features};
    size_t codes = 0;
    bool fits = basin_size_multiply(&codes, rows, features);
    binned->code = fits ? basin_array_new(codes, 1) : NULL;
    binned->start = calloc(features + 1, sizeof *binned->start);
    binned->cut = basin_array_new(features * BASIN_TREE_BINS, sizeof *binned->cut);
    if (!binned->code || !binned->start || !binned->cut || !cut_and_encode(binned, data)) {
        basin_binned_free(binned);
        return basin_fail(error, BASIN_NO_MEMORY, "boosted trees: %zu rows of %zu features", rows,
                          features);
    }
    pack(binned);
    return BASIN_OK;
}

void basin_binned_free(basin_binned *binned) {
    free(binned->code);
    free(binned->start);
    free(binned->cut);
    *binned = (basin_binned){0};
}
