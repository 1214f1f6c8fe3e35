/* Averages of parameters over steps; see run.h. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/try.h"
#include "train/run/run.h"

enum { NAME = 320 };

/* A graph that failed leaves no expression by which a plan could find its error. */
static basin_status build(basin_average *a, basin_update *update, const basin_params *params,
                          basin_error *error) {
    a->keep = basin_input(a->graph, "keep", BASIN_SCALAR);
    for (size_t i = 0; i < params->count; i++) {
        char name[NAME];
        const char *own = basin_expr_name(params->param[i].state);
        basin_shape shape = basin_expr_shape(params->param[i].state);
        snprintf(name, sizeof name, "average.%s", own);
        basin_expr mean = basin_state(a->graph, name, shape);
        basin_expr now = basin_state(a->graph, own, shape);
        basin_expr apart = basin_mul(basin_sub(mean, now), a->keep);
        update[i] = (basin_update){mean, basin_add(now, apart)};
    }
    const basin_error *found = basin_graph_error(a->graph);
    return found ? basin_fail(error, found->status, "%s", found->text) : BASIN_OK;
}

basin_status basin_average_new(basin_average *average, basin_store *store,
                               const basin_params *params, double most, basin_error *error) {
    *average =
        (basin_average){.graph = basin_graph_new(), .most = most, .store = store, .params = params};
    basin_update *update = basin_array_new(params->count, sizeof *update);
    basin_status status = average->graph && update
                              ? build(average, update, params, error)
                              : basin_fail_memory(error, "averages of weights");
    basin_plan_spec spec = {.update = update, .updates = (int)params->count};
    if (!status) status = basin_plan_new(&average->plan, store, &spec, error);
    free(update);
    if (status) basin_average_free(average);
    return status;
}

void basin_average_free(basin_average *average) {
    basin_plan_free(average->plan);
    basin_graph_free(average->graph);
    *average = (basin_average){0};
}

basin_status basin_average_step(basin_average *average, int64_t t, basin_error *error) {
    double keep = fmin(average->most, (double)t / (10 + (double)t));
    basin_tensor tensor = basin_tensor_borrow(&keep, BASIN_F64, BASIN_SCALAR);
    BASIN_TRY(basin_plan_write(average->plan, average->keep, &tensor, error));
    return basin_plan_run(average->plan, error);
}

static basin_status copy(basin_average *a, const char *to, const char *from, basin_error *error) {
    return a->plan ? basin_states_copy(a->store, a->params, to, from, error) : BASIN_OK;
}

basin_status basin_average_begin(basin_average *average, basin_error *error) {
    return copy(average, "average.", "", error);
}

basin_status basin_average_lend(basin_average *average, basin_error *error) {
    BASIN_TRY(copy(average, "aside.", "", error));
    return copy(average, "", "average.", error);
}

basin_status basin_average_end_lending(basin_average *average, basin_error *error) {
    return copy(average, "", "aside.", error);
}
