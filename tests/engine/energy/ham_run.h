/* A descent of a network, made, run from x and freed. */
#ifndef TESTS_ENERGY_HAM_RUN_H
#define TESTS_ENERGY_HAM_RUN_H

#include "base/try.h"
#include "basin/ham.h"

static inline basin_status ham_run(basin_ham *ham, basin_store *store, basin_descent_result *result,
                                   const basin_tensor *x, const basin_ham_spec *spec,
                                   const basin_stop *stop, basin_error *error) {
    basin_descent *descent;
    int64_t batch = basin_ham_term_name(ham, 0) ? x[0].shape.dim[0] : 0;
    *result = (basin_descent_result){0};
    BASIN_TRY(basin_ham_descent_new(&descent, ham, store, batch, spec, stop, error));
    basin_status status = basin_descent_run(descent, result, x, error);
    basin_descent_free(descent);
    return status;
}

#endif
