/* Memories, keys and queries as patches, and how positions resemble each other (appendix B); see
 * report.h. */
#include "tasks/pictures/report/report.h"

/* The value of `out`, built on that graph from weights only. */
static basin_status evaluate(basin_tensor *result, const basin_image_graph *g,
                             basin_image_model *model, basin_expr out, basin_error *error) {
    basin_plan *plan = NULL;
    basin_plan_spec spec = {.output = &out, .outputs = 1};
    BASIN_TRY(basin_graph_check(g->graph, error));
    BASIN_TRY(basin_plan_new(&plan, model->store, &spec, error));
    basin_status status = basin_plan_run(plan, error);
    if (!status) status = basin_plan_read(result, plan, out, error);
    basin_plan_free(plan);
    return status;
}

/* Decodes a parameter of the block (NULL: none), read as rows [rows, D]; the result is [rows, P].
 */
static basin_status decode(float **patches, const basin_image_graph *g, basin_image_model *model,
                           basin_expr state, int64_t rows, basin_error *error) {
    const basin_image_net *m = &g->net;
    basin_shape shape = BASIN_SHAPE(rows, basin_image_patch_values(&model->settings));
    if (!state) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(patches, basin_shape_count(shape), "decoded weights", error));
    basin_expr norm =
        basin_block_norm(&m->block, basin_reshape(state, BASIN_SHAPE(rows, model->settings.dim)));
    basin_expr out = basin_add(basin_matmul(norm, m->dec_w), m->dec_b);
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
    BASIN_TRY(basin_store_get(&stored, model->store, "pos", error));
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
    const basin_block *block = &g.net.block;
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

uint8_t basin_image_byte(double value) { return (uint8_t)lrint(255 * fmin(fmax(value, 0), 1)); }

basin_status basin_image_sheet_picture(basin_picture *picture, const float *patches,
                                       const uint8_t *mask, const basin_image_settings *s,
                                       basin_error *error) {
    enum { GREY = 128 };
    basin_patching patching = basin_image_patching(s);
    int64_t across = s->size / s->patch, row = s->size * s->channels,
            width = s->patch * s->channels;
    BASIN_TRY(basin_picture_resize_memory(picture, s->size, s->size, (int)s->channels, error));
    basin_patches_to_pixels(picture->pixel, patches, &patching);
    for (int64_t n = 0; mask && n < across * across; n++)
        for (int64_t y = 0; y < s->patch && mask[n] == BASIN_PATCH_REPLACED; y++)
            memset(picture->pixel + (n / across * s->patch + y) * row + n % across * width, GREY,
                   (size_t)width);
    return BASIN_OK;
}
