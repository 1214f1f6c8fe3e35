/* Inputs that move along straight lines, and sums of slopes there; see integrate.h. */
#include "train/integrate.h"

#include "base/try.h"

basin_status basin_line_open(basin_line *l, basin_expr input, basin_error *error) {
    size_t cells = (size_t)basin_shape_count(basin_expr_shape(input));
    l->input = input, l->cells = (int64_t)cells;
    BASIN_TRY(BASIN_NEW(&l->base, cells, "an explanation", error));
    BASIN_TRY(BASIN_NEW(&l->own, cells, "an explanation", error));
    BASIN_TRY(BASIN_NEW_RAW(&l->now, cells, "an explanation", error));
    BASIN_TRY(BASIN_NEW_RAW(&l->value, cells, "an explanation", error));
    return BASIN_NEW(&l->sum, cells, "an explanation", error);
}

void basin_lines_free(basin_line *line, int lines) {
    for (basin_line *l = line; l < line + lines; l++)
        free(l->base), free(l->own), free(l->now), free(l->value), free(l->sum);
}

basin_status basin_lines_run(basin_line *line, int lines, basin_plan *plan, double t,
                             basin_error *error) {
    for (basin_line *l = line; l < line + lines; l++) {
        if (!l->input) continue;
        for (int64_t i = 0; i < l->cells; i++)
            l->now[i] = (float)((double)l->base[i] + t * basin_line_length(l, i));
        basin_tensor tensor = basin_tensor_borrow(l->now, BASIN_F32, basin_expr_shape(l->input));
        BASIN_TRY(basin_plan_write(plan, l->input, &tensor, error));
    }
    return basin_plan_run(plan, error);
}

basin_status basin_lines_read(basin_line *line, int lines, basin_plan *plan, basin_error *error) {
    for (basin_line *l = line; l < line + lines; l++) {
        if (!l->input) continue;
        basin_tensor tensor = basin_tensor_borrow(l->value, BASIN_F64, basin_expr_shape(l->input));
        BASIN_TRY(basin_plan_read(plan, l->slope, &tensor, error));
    }
    return BASIN_OK;
}

void basin_lines_add(basin_line *line, int lines, double weight) {
    for (basin_line *l = line; l < line + lines; l++)
        for (int64_t i = 0; i < l->cells; i++) l->sum[i] += weight * l->value[i];
}
