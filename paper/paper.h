/* What the three programs share: options (examples/options.h), and arrays to and from plans. */
#ifndef PAPER_H
#define PAPER_H

#include <math.h>

#include "../examples/options.h"

/* An input from an array of its shape. */
static void write_input(basin_plan *plan, basin_expr input, const void *from, basin_dtype type) {
    basin_tensor tensor = basin_tensor_view(from, type, basin_expr_shape(input));
    must(basin_plan_write(plan, input, &tensor, &error));
}

/* An output to an array of its shape. */
static void read_output(void *to, basin_plan *plan, basin_expr output, basin_dtype type) {
    basin_tensor tensor = basin_tensor_borrow(to, type, basin_expr_shape(output));
    must(basin_plan_read(&tensor, plan, output, &error));
}

/* The mean of n numbers and their deviation from it, of the population. */
static void mean_deviation(double *mean, double *deviation, const double *value, int64_t n) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += value[i];
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += (value[i] - *mean) * (value[i] - *mean);
    *deviation = sqrt(squares / (double)n);
}

#endif
