/* The batches of a training run; see batch.h. */
#include "task/image/batch.h"

#include <stdlib.h>

#include "base/memory.h"

/* Masks of training come from another seed than weights and crops do. */
enum { MASK_SALT = 0x6d61736b };

basin_status basin_image_batch_new(basin_image_batch *batch, basin_image_input *input,
                                   const basin_image_settings *settings, int64_t first,
                                   int64_t count, basin_error *error) {
    *batch = (basin_image_batch){
        .settings = settings, .input = input, .first = first, .count = count, .step = -1};
    size_t patches = (size_t)(count * basin_image_tokens(settings));
    batch->mask = basin_array_new(patches, sizeof *batch->mask);
    batch->replaced = basin_array_new(patches, sizeof *batch->replaced);
    batch->counts = basin_array_new(patches, sizeof *batch->counts);
    if (batch->mask && batch->replaced && batch->counts) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a batch of masks");
}

void basin_image_batch_free(basin_image_batch *batch) {
    basin_image_input_free(batch->input);
    free(batch->mask);
    free(batch->replaced);
    free(batch->counts);
    *batch = (basin_image_batch){0};
}

void basin_image_batch_prepare(basin_image_batch *batch, int64_t step) {
    const basin_image_settings *s = batch->settings;
    int64_t tokens = basin_image_tokens(s);
    basin_image_input_prepare(batch->input, step);
    if (batch->step == step) return;
    batch->step = step;
    for (int64_t i = 0; i < batch->count; i++)
        basin_image_mask_train(batch->mask + i * tokens, s, (uint64_t)s->seed ^ MASK_SALT,
                               (uint64_t)(step * s->batch + batch->first + i));
    for (int64_t i = 0; i < batch->count * tokens; i++) {
        batch->replaced[i] = batch->mask[i] == BASIN_PATCH_REPLACED;
        batch->counts[i] = batch->mask[i] != BASIN_PATCH_SHOWN;
    }
}

static basin_status write_mask(basin_plan *plan, basin_expr input, const float *values,
                               basin_error *error) {
    basin_tensor tensor = basin_tensor_borrow(values, BASIN_F32, basin_expr_shape(input));
    return basin_plan_write(plan, input, &tensor, error);
}

basin_status basin_image_batch_write(basin_image_batch *batch, basin_plan *plan,
                                     const basin_image_graph *graph, int64_t step, int64_t at,
                                     basin_error *error) {
    int64_t from = at * basin_image_tokens(batch->settings);
    basin_image_batch_prepare(batch, step);
    basin_status status =
        basin_image_input_write(batch->input, plan, graph->patches, step, at, error);
    if (!status) status = write_mask(plan, graph->replaced, batch->replaced + from, error);
    if (!status) status = write_mask(plan, graph->occluded, batch->counts + from, error);
    return status;
}

double basin_image_batch_weight(const basin_image_batch *batch, int64_t at, int64_t count) {
    int64_t tokens = basin_image_tokens(batch->settings);
    double sum = 0;
    for (int64_t i = at * tokens; i < (at + count) * tokens; i++) sum += (double)batch->counts[i];
    return sum;
}
