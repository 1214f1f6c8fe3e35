/* Parts of training that both libraries compute: the rate of a step, gradients of a loss. */
#ifndef BASIN_BASE_TRAINING_H
#define BASIN_BASE_TRAINING_H

#include <math.h>

#include "base/shape.h"
#include "base/try.h"
#include "basin/train.h"

/* Frees the trainer, also for BASIN_AT_EXIT, and leaves NULL. */
static inline void basin_trainer_free_at(basin_trainer **trainer) {
    basin_trainer_free(*trainer);
    *trainer = NULL;
}

static inline basin_trainer_info basin_trainer_info_of(const basin_trainer *trainer) {
    basin_trainer_info info = {.size = sizeof info};
    basin_trainer_get_info(&info, trainer);
    return info;
}

/* The learning rate of a step. */
static inline double basin_schedule_rate(const basin_schedule *s, int64_t step) {
    if (step < s->warmup) return s->first + (s->peak - s->first) * (double)step / (double)s->warmup;
    double done =
        s->total > s->warmup ? (double)(step - s->warmup) / (double)(s->total - s->warmup) : 1;
    return s->last + (s->peak - s->last) * 0.5 * (1 + cos(acos(-1) * fmin(done, 1)));
}

/* The gradients of `loss`, one per parameter, passed through params->adjust. */
static inline basin_status basin_gradients(basin_expr *gradient, const basin_params *params,
                                           basin_expr loss, basin_error *error) {
    if (basin_expr_shape(loss).rank > 0) {
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "the loss has shape %s, expected []: the sum or the mean of it",
                          basin_shape_text(basin_expr_shape(loss)));
    }
    BASIN_SCRATCH_RAW(basin_expr, state, params->count, "an optimizer", error);
    for (size_t i = 0; i < params->count; i++) state[i] = params->param[i].state;
    basin_vjp(gradient, loss, NULL, state, (int)params->count);
    for (size_t i = 0; i < params->count && params->adjust; i++)
        gradient[i] = params->adjust(params->adjust_context, state[i], gradient[i]);
    BASIN_TRY(basin_graph_check(params->graph, error));
    return loss ? BASIN_OK : basin_fail(error, BASIN_BAD_VALUE, "no loss to train");
}

#endif
