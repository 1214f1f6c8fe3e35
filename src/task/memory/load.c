/* Patterns from files: pictures, tensors, and CSV of numbers. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "basin/io.h"
#include "basin/tasks/augment.h"
#include "data/network/csv/cell.h"
#include "data/network/csv/rows.h"
#include "task/memory/memory.h"

/* ---- pictures ---- */

static basin_status fit_sizes(int64_t *height, int64_t *width, int *channels,
                              const basin_pictures *pictures, basin_error *error) {
    int64_t h, w;
    int c;
    basin_status status = basin_pictures_probe(&h, &w, &c, pictures, error);
    if (status) return status;
    if (*height == 0) *height = h;
    if (*width == 0) *width = w;
    if (*channels == 0) *channels = c;
    if (*height > 0 && *width > 0 && (*channels == 1 || *channels == 3)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "pictures of %lld x %lld x %d; wanted sizes above 0, and 1 or 3 channels",
                      (long long)*height, (long long)*width, *channels);
}

static basin_status take_picture(float *value, basin_picture *picture, basin_picture *scaled,
                                 int64_t height, int64_t width, int channels, basin_error *error) {
    basin_status status = basin_picture_set_channels(picture, channels, error);
    const basin_picture *from = picture;
    if (!status && (picture->height != height || picture->width != width)) {
        status = basin_picture_scale(scaled, picture, height, width, error);
        from = scaled;
    }
    for (int64_t i = 0; i < height * width * channels && !status; i++)
        value[i] = (float)from->pixel[i] / 255;
    return status;
}

basin_status basin_memory_load_pictures(basin_tensor *patterns, int64_t *height, int64_t *width,
                                        int *channels, const basin_pictures *pictures,
                                        int64_t limit, basin_error *error) {
    basin_picture picture = {0}, scaled = {0};
    int64_t count = basin_pictures_count(pictures);
    if (limit > 0 && limit < count) count = limit;
    memset(patterns, 0, sizeof *patterns);
    basin_status status = fit_sizes(height, width, channels, pictures, error);
    int64_t dim = status ? 0 : *height * *width * *channels;
    if (!status)
        status = basin_memory_check((double)count * (double)dim * 8, 0, "the pictures to store",
                                    BASIN_NO_MEMORY, error);
    if (!status) status = basin_tensor_new(patterns, BASIN_F32, BASIN_SHAPE(count, dim), error);
    for (int64_t i = 0; i < count && !status; i++) {
        float *value = (float *)patterns->data + i * dim;
        status = basin_pictures_load(&picture, pictures, i, error);
        if (!status)
            status = take_picture(value, &picture, &scaled, *height, *width, *channels, error);
    }
    basin_picture_free(&picture);
    basin_picture_free(&scaled);
    if (status) basin_tensor_free(patterns);
    return status;
}

/* ---- tensors ---- */

static basin_status find_tensor(const basin_tensor **found, const basin_bundle *bundle,
                                const char *name, basin_error *error) {
    *found = NULL;
    if (name) return basin_bundle_get(found, bundle, name, error);
    for (size_t i = 0; i < basin_bundle_count(bundle); i++) {
        const basin_tensor *tensor = basin_bundle_at(bundle, i);
        if (tensor->shape.rank != 2) continue;
        if (*found)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: several tensors of rank 2, %s among them; wanted one, or a name",
                              basin_bundle_path(bundle), basin_bundle_name(bundle, i));
        *found = tensor;
    }
    if (*found) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s: no tensor of rank 2; wanted vectors [count, D]",
                      basin_bundle_path(bundle));
}

static basin_status load_tensor(basin_tensor *patterns, const char *path, const char *name,
                                int64_t limit, basin_error *error) {
    basin_bundle *bundle = NULL;
    const basin_tensor *found = NULL;
    char text[BASIN_SHAPE_TEXT];
    basin_status status = basin_bundle_read(&bundle, path, error);
    if (!status) status = find_tensor(&found, bundle, name, error);
    if (!status && found->shape.rank != 2)
        status = basin_fail(error, BASIN_BAD_SHAPE, "%s: %s has shape %s; wanted [count, D]", path,
                            name, basin_shape_print(text, found->shape));
    if (!status) {
        basin_tensor head = *found;
        head.owned = false;
        if (limit > 0 && limit < head.shape.dim[0]) head.shape.dim[0] = limit;
        status = basin_tensor_new(patterns, BASIN_F32, head.shape, error);
        if (!status) status = basin_tensor_convert(patterns, &head, error);
    }
    basin_bundle_free(bundle);
    return status;
}

/* ---- CSV ---- */

typedef struct rows {
    float *number;
    size_t count, capacity;
} rows;

/* A field of a row; `line` names it in messages. */
static basin_status add_number(rows *r, const char *text, const char *path, int64_t line,
                               size_t column, basin_error *error) {
    double value;
    if (!basin_cell_number(&value, text))
        return basin_fail(error, BASIN_BAD_FILE, "%s: line %lld, column %zu: '%.60s' is no number",
                          path, (long long)line, column + 1, text);
    if (!basin_array_reserve((void **)&r->number, &r->capacity, r->count + 1, sizeof *r->number))
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for its rows", path);
    r->number[r->count++] = (float)value;
    return BASIN_OK;
}

/* Names of columns that are numbers were the first row. */
static basin_status add_header(rows *r, const basin_table_rows *csv, basin_error *error) {
    double value;
    for (size_t i = 0; i < csv->columns; i++)
        if (csv->headerless || !basin_cell_number(&value, csv->name[i])) return BASIN_OK;
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < csv->columns && !status; i++)
        status = add_number(r, csv->name[i], csv->path, 1, i, error);
    return status;
}

static basin_status read_rows(rows *r, basin_table_rows *csv, int64_t limit, basin_error *error) {
    bool more = true;
    basin_status status = add_header(r, csv, error);
    while (!status) {
        if (limit > 0 && r->count >= (size_t)limit * csv->columns) break;
        status = basin_table_rows_next(csv, &more, error);
        if (status || !more) break;
        for (size_t i = 0; i < csv->columns && !status; i++)
            status = add_number(r, basin_table_rows_field(csv, i), csv->path, csv->line, i, error);
    }
    if (!status && r->count == 0)
        status = basin_fail(error, BASIN_BAD_FILE, "%s: no rows of numbers", csv->path);
    return status;
}

static basin_status load_csv(basin_tensor *patterns, const char *path, int64_t limit,
                             basin_error *error) {
    basin_table_rows csv;
    rows r = {0};
    basin_status status = basin_table_rows_open(&csv, &(basin_csv_source){.path = path}, error);
    if (status) return status;
    status = read_rows(&r, &csv, limit, error);
    if (!status) {
        basin_shape shape = BASIN_SHAPE((int64_t)(r.count / csv.columns), (int64_t)csv.columns);
        basin_tensor view = basin_tensor_borrow(r.number, BASIN_F32, shape);
        status = basin_tensor_new(patterns, BASIN_F32, shape, error);
        if (!status) status = basin_tensor_convert(patterns, &view, error);
    }
    free(r.number);
    basin_table_rows_close(&csv);
    return status;
}

static bool ends_in(const char *path, const char *end) {
    size_t length = strlen(path), tail = strlen(end);
    return length >= tail && !strcmp(path + length - tail, end);
}

basin_status basin_memory_load_vectors(basin_tensor *patterns, const char *path, const char *name,
                                       int64_t limit, basin_error *error) {
    memset(patterns, 0, sizeof *patterns);
    bool tensors = ends_in(path, ".npz") || ends_in(path, ".safetensors");
    if (!tensors && name)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: the tensor %s of a CSV, which has none",
                          path, name);
    basin_status status = tensors ? load_tensor(patterns, path, name, limit, error)
                                  : load_csv(patterns, path, limit, error);
    if (status) basin_tensor_free(patterns);
    return status;
}
