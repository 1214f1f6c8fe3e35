/* Memories, keys and queries as patches (appendix B); see report.h. */
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

basin_status basin_image_weights_new(basin_image_weights *weights, basin_image_model *model,
                                     basin_error *error) {
    const basin_image_settings *s = &model->settings;
    int64_t rows = s->heads * s->head_dim;
    BASIN_AT_EXIT(basin_image_graph_free) basin_image_graph g = {0};
    *weights = (basin_image_weights){.gamma = NAN};
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
    BASIN_FREE(weights->memory, weights->key, weights->query);
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
