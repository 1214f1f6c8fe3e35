/* A trainer: plan, optimiser and schedule of one loss; see include/basin/train.h. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "basin/train.h"

static basin_status make_plan(basin_trainer *t, const basin_trainer_spec *spec,
                              basin_error *error) {
    size_t outputs = (size_t)spec->outputs + 1;
    basin_expr *output = basin_array_new(outputs, sizeof *output);
    if (!output) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a trainer");
    output[0] = t->loss;
    for (size_t i = 1; i < outputs; i++) output[i] = spec->output[i - 1];
    basin_plan_spec plan = {.output = output,
                            .outputs = (int)outputs,
                            .update = t->adamw.update,
                            .updates = t->adamw.updates};
    basin_status status = basin_plan_new(&t->plan, t->store, &plan, error);
    free(output);
    return status;
}

basin_status basin_trainer_new(basin_trainer *trainer, basin_store *store,
                               const basin_params *params, basin_expr loss,
                               const basin_trainer_spec *spec, basin_error *error) {
    *trainer = (basin_trainer){.store = store, .loss = loss, .schedule = spec->schedule};
    basin_status status = basin_adamw_new(&trainer->adamw, params, loss, &spec->adamw, error);
    if (!status) status = make_plan(trainer, spec, error);
    if (status) basin_trainer_free(trainer);
    return status;
}

void basin_trainer_free(basin_trainer *trainer) {
    basin_plan_free(trainer->plan);
    basin_adamw_free(&trainer->adamw);
    *trainer = (basin_trainer){0};
}

basin_status basin_trainer_step(basin_trainer *trainer, double *loss, basin_error *error) {
    const basin_schedule *s = &trainer->schedule;
    double rate = basin_rate_cosine(trainer->step, s->warmup, s->total, s->first, s->peak, s->last);
    basin_status status =
        basin_adamw_write(&trainer->adamw, trainer->plan, trainer->step + 1, rate, error);
    if (!status) status = basin_plan_run(trainer->plan, error);
    if (status) return status;
    trainer->step++;
    return loss ? basin_trainer_loss(trainer, loss, error) : BASIN_OK;
}

basin_status basin_trainer_loss(const basin_trainer *trainer, double *loss, basin_error *error) {
    basin_tensor value = basin_tensor_borrow(loss, BASIN_F64, BASIN_SCALAR);
    basin_status status = basin_plan_read(trainer->plan, trainer->loss, &value, error);
    if (status || isfinite(*loss)) return status;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "the loss is %g at step %lld, wanted a finite number: a smaller learning "
                      "rate or a smaller alpha may help",
                      *loss, (long long)trainer->step);
}
