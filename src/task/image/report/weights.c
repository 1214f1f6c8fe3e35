/* Memories, keys and queries as patches, and how positions resemble each other (appendix B); see
 * report.h. */
#include "base/try.h"
#include "task/image/report/report.h"

/* The value of `out`, built on that graph from weights alone. */
static basin_status evaluate(basin_tensor *result, const basin_image_graph *g,
                             basin_image_model *model, basin_expr out, basin_error *error) {
    basin_plan *plan = NULL;
    basin_plan_spec spec = {.output = &out, .outputs = 1};
    BASIN_TRY(basin_graph_check(g->graph, error));
    BASIN_TRY(basin_plan_new(&plan, model->store, &spec, error));
    basin_status status = basin_plan_run(plan, error);
    if (!status) status = basin_plan_read(plan, out, result, error);
    basin_plan_free(plan);
    return status;
}

/* Decodes a parameter of the block (NULL: none), read as rows [rows, D]; the result is [rows, P].
 */
static basin_status decode(float **patches, const basin_image_graph *g, basin_image_model *model,
                           basin_expr state, int64_t rows, basin_error *error) {
    const basin_image_et *m = &g->net.et;
    basin_shape shape = BASIN_SHAPE(rows, basin_image_patch_values(&model->settings));
    if (!state) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(patches, basin_shape_count(shape), "decoded weights", error));
    basin_expr norm =
        basin_block_norm(&m->block, basin_reshape(state, BASIN_SHAPE(rows, model->settings.dim)));
    basin_expr out = basin_add(basin_matmul(norm, m->patches.dec_w), m->patches.dec_b);
    basin_tensor result = basin_tensor_borrow(*patches, BASIN_F32, shape);
    return evaluate(&result, g, model, out, error);
}

/* cosine[i, j] of rows i and j [N, D]. */
static void resemble(double *cosine, const double *row, int64_t N, int64_t D) {
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j <= i; j++) {
            double ij = 0, ii = 0, jj = 0;
            for (int64_t d = 0; d < D; d++) {
                ij += row[i * D + d] * row[j * D + d];
                ii += row[i * D + d] * row[i * D + d];
                jj += row[j * D + d] * row[j * D + d];
            }
            double size = sqrt(ii * jj);
            cosine[i * N + j] = cosine[j * N + i] = size > 0 ? ij / size : 0;
        }
}

static basin_status compare_positions(double **cosine, basin_image_model *model,
                                      basin_error *error) {
    int64_t N = basin_image_tokens(&model->settings);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor stored = {0};
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor row = {0};
    BASIN_TRY(basin_store_read(model->store, "pos", &stored, error));
    BASIN_TRY(BASIN_NEW_RAW(cosine, N * N, "comparing positions", error));
    BASIN_TRY(basin_tensor_new(&row, BASIN_F64, stored.shape, error));
    BASIN_TRY(basin_tensor_convert(&row, &stored, error));
    int64_t D = stored.shape.dim[1], skip = stored.shape.dim[0] - N;
    resemble(*cosine, (double *)row.data + skip * D, N, D);
    return BASIN_OK;
}

basin_status basin_image_weights_new(basin_image_weights *weights, basin_image_model *model,
                                     basin_error *error) {
    const basin_image_settings *s = &model->settings;
    int64_t rows = s->heads * s->head_dim;
    BASIN_AT_EXIT(basin_image_graph_free) basin_image_graph g = {0};
    *weights = (basin_image_weights){.gamma = NAN};
    BASIN_TRY(compare_positions(&weights->cosine, model, error));
    if (strcmp(s->arch, "et") != 0) return BASIN_OK;
    BASIN_TRY(basin_image_graph_new(&g, s, 1, error));
    const basin_block *block = &g.net.et.block;
    /* the gain as it is used, whatever the parameter is that it comes from */
    basin_tensor gamma = basin_tensor_borrow(&weights->gamma, BASIN_F64, BASIN_SCALAR);
    BASIN_TRY(evaluate(&gamma, &g, model, basin_scale(block->gamma, 1), error));
    BASIN_TRY(decode(&weights->memory, &g, model, block->xi, s->memories, error));
    BASIN_TRY(decode(&weights->key, &g, model, block->wk, rows, error));
    return decode(&weights->query, &g, model, block->wq, rows, error);
}

void basin_image_weights_free(basin_image_weights *weights) {
    BASIN_FREE(weights->memory, weights->key, weights->query, weights->cosine);
    *weights = (basin_image_weights){0};
}

/* ---- pictures of patches ---- */

enum { GREY = 128 };

static uint8_t to_byte(double value) { return (uint8_t)lrint(255 * fmin(fmax(value, 0), 1)); }

/* What lies between the patches of a sheet: no grey, so that grey patches show their edges. */
static const uint8_t gap[3] = {104, 134, 166};

/* Draws patch [P] (NULL: grey) with its corner at (top, left), each pixel as `zoom` x `zoom`. */
static void draw_patch(basin_picture *picture, const float *patch, int64_t top, int64_t left,
                       int64_t zoom, const basin_image_settings *s) {
    int64_t side = s->patch * zoom;
    int channels = picture->channels;
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++)
            for (int c = 0; c < channels; c++) {
                int64_t from = c < s->channels ? c : 0; /* a grey patch in a sheet of colours */
                int64_t v = (from * s->patch + y / zoom) * s->patch + x / zoom;
                uint8_t *to = picture->pixel + ((top + y) * picture->width + left + x) * channels;
                to[c] = patch ? to_byte(patch[v] * s->deviation[from] + s->mean[from]) : GREY;
            }
}

basin_status basin_image_sheet_picture(basin_picture *picture, const float *patches,
                                       const uint8_t *mask, const basin_image_settings *s,
                                       basin_error *error) {
    int64_t across = s->size / s->patch, values = basin_image_patch_values(s);
    BASIN_TRY(basin_picture_resize_memory(picture, s->size, s->size, (int)s->channels, error));
    for (int64_t n = 0; n < across * across; n++) {
        bool hidden = mask && mask[n] == BASIN_PATCH_REPLACED;
        draw_patch(picture, hidden ? NULL : patches + n * values, n / across * s->patch,
                   n % across * s->patch, 1, s);
    }
    return BASIN_OK;
}

/* Maps are drawn at about this size, so that the lines between them can be thin. */
enum { MAP_SIDE = 600 };

basin_status basin_image_sheet(basin_picture *picture, const float *patches, const int64_t *order,
                               int64_t count, int64_t columns, int64_t side,
                               const basin_image_settings *s, basin_error *error) {
    int64_t zoom = s->patch < side ? side / s->patch : 1, line = 3;
    int64_t cell = s->patch * zoom + line, values = basin_image_patch_values(s);
    int64_t rows = (count + columns - 1) / columns;
    BASIN_TRY(
        basin_picture_resize_memory(picture, rows * cell - line, columns * cell - line, 3, error));
    for (int64_t i = 0; i < picture->height * picture->width; i++)
        memcpy(picture->pixel + 3 * i, gap, 3);
    for (int64_t i = 0; i < count; i++)
        draw_patch(picture, patches + (order ? order[i] : i) * values, i / columns * cell,
                   i % columns * cell, zoom, s);
    return BASIN_OK;
}

/* Dark blue to yellow by way of green, as bright as the value is high. */
static void colour(uint8_t rgb[3], double value) {
    static const double stop[][3] = {
        {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
    double at = 4 * fmin(fmax(value, 0), 1);
    int i = at >= 4 ? 3 : (int)at;
    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)lrint(stop[i][c] + (at - i) * (stop[i + 1][c] - stop[i][c]));
}

/* Where a picture was shown, an error map has nothing to say. */
static const uint8_t nothing[3] = {52, 56, 64};

basin_status basin_image_sheet_errors(basin_picture *picture, const float *output,
                                      const float *truth, const uint8_t *mask,
                                      const basin_image_settings *s, double most,
                                      basin_error *error) {
    int64_t across = s->size / s->patch, area = s->patch * s->patch, P = s->channels * area;
    BASIN_TRY(basin_picture_resize_memory(picture, s->size, s->size, 3, error));
    for (int64_t i = 0; i < s->size * s->size; i++) {
        int64_t y = i / s->size, x = i % s->size, n = y / s->patch * across + x / s->patch;
        int64_t v = n * P + y % s->patch * s->patch + x % s->patch;
        double sum = 0;
        for (int64_t c = 0; c < s->channels; c++) {
            double off = s->deviation[c] * ((double)output[v + c * area] - truth[v + c * area]);
            sum += off * off / (double)s->channels;
        }
        if (mask[n] == BASIN_PATCH_REPLACED)
            colour(picture->pixel + 3 * i, sqrt(sum) / most);
        else
            memcpy(picture->pixel + 3 * i, nothing, 3);
    }
    return BASIN_OK;
}

basin_status basin_image_sheet_positions(basin_picture *picture, const double *cosine,
                                         int64_t across, double low, basin_error *error) {
    int64_t N = across * across, zoom = N < MAP_SIDE ? MAP_SIDE / N : 1, line = zoom > 1 ? 3 : 1;
    int64_t map = across * zoom + line, side = across * map - line;
    double range = low < 1 ? 1 - low : 1;
    BASIN_TRY(basin_picture_resize_memory(picture, side, side, 3, error));
    memset(picture->pixel, GREY, (size_t)(side * side * 3));
    for (int64_t y = 0; y < side; y++)
        for (int64_t x = 0; x < side; x++) {
            if (y % map >= across * zoom || x % map >= across * zoom) continue;
            int64_t i = y / map * across + x / map;
            int64_t j = y % map / zoom * across + x % map / zoom;
            colour(picture->pixel + (y * side + x) * 3, (cosine[i * N + j] - low) / range);
        }
    return BASIN_OK;
}
