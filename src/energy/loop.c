/* What rest points and scans share; see loop.h. */
#include "energy/loop.h"

#include <stdio.h>

basin_expr basin_loop_state(const basin_loop *loop, const char *what, basin_shape shape) {
    char text[400];
    snprintf(text, sizeof text, "%s.%s", loop->name, what);
    return basin_state(loop->graph, text, shape);
}

basin_status basin_loop_plan(basin_plan **plan, const basin_loop *loop, basin_expr output,
                             const basin_update *update, int updates, basin_error *error) {
    const basin_error *found = basin_graph_error(loop->graph);
    if (found) return basin_fail(error, found->status, "%s", found->text);
    basin_plan_spec spec = {
        .output = &output, .outputs = output != NULL, .update = update, .updates = updates};
    basin_plan_free(*plan);
    return basin_plan_new(plan, loop->store, &spec, error);
}

basin_status basin_loop_run(double *value, basin_plan *plan, basin_expr output,
                            basin_error *error) {
    basin_tensor number = basin_tensor_borrow(value, BASIN_F64, BASIN_SCALAR);
    basin_status status = basin_plan_run(plan, error);
    return status ? status : basin_plan_read(plan, output, &number, error);
}

basin_status basin_loop_check_start(const basin_tensor *start, basin_expr x, basin_error *error) {
    char a[BASIN_SHAPE_TEXT], b[BASIN_SHAPE_TEXT];
    if (basin_shape_equal(start->shape, basin_expr_shape(x))) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_SHAPE, "a descent of tokens %s was given %s",
                      basin_shape_print(a, basin_expr_shape(x)),
                      basin_shape_print(b, start->shape));
}

basin_status basin_loop_check_loss(basin_expr loss, basin_error *error) {
    char text[BASIN_SHAPE_TEXT];
    if (basin_expr_shape(loss).rank == 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_SHAPE,
                      "the loss has shape %s, wanted []: the sum or the mean of it",
                      basin_shape_print(text, basin_expr_shape(loss)));
}
