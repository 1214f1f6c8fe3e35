/* Single operations inside: what an open one holds. */
#ifndef BASIN_EAGER_EAGER_H
#define BASIN_EAGER_EAGER_H

#include "basin/eager.h"
#include "engine/backend/device.h"

struct basin_eager {
    basin_backend *backend; /* asked for sizes; on a host each call runs on a new one */
    bool device;            /* memory is not the host's */
};

/* A job as a call: block 0 is the workspace; then come the inputs, then the results. */
enum { BASIN_EAGER_BLOCKS = 1 + BASIN_MAX_IN + BASIN_MAX_OUT };
typedef struct basin_eager_job {
    basin_call call;
    void *block[BASIN_EAGER_BLOCKS];
} basin_eager_job;

/* Operand i, or result i; NULL is absent. */
void basin_eager_in(basin_eager_job *j, int i, const void *data, basin_kind kind,
                    basin_shape shape);
void basin_eager_out(basin_eager_job *j, int i, void *data, basin_kind kind, basin_shape shape);

/* Operations with values: the call, and what it may be. */
static inline bool basin_eager_has_values(basin_eager_operation operation) {
    return operation >= BASIN_EAGER_VALUES;
}
void basin_eager_values_describe(basin_eager_job *j, basin_eager_operation operation,
                                 const basin_eager_attention *at);
basin_status basin_eager_values_check(const basin_eager_attention *at, basin_error *error);
basin_status basin_eager_values_present(basin_eager_operation operation,
                                        const basin_eager_attention *at, basin_error *error);

#endif
