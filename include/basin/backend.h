/* Backends: what plans run on. */
#ifndef BASIN_BACKEND_H
#define BASIN_BACKEND_H

#include "basin/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How matrix products are computed; ref always computes in double. */
typedef enum basin_products {
    BASIN_PRODUCTS_F32,  /* float multiply-adds */
    BASIN_PRODUCTS_TF32, /* on cuda: factors rounded to 10 bits, about 2^-11; else float */
} basin_products;

/* Which backend computes, and how; zeros select the defaults. */
typedef struct basin_compute {
    size_t size; /* sizeof this struct; 0: as in version 1.0 */
    /* "ref" (double, plain loops, the reference), "cpu" (float, fast) or "cuda" (float, on an
     * NVIDIA GPU); NULL: "cpu". */
    const char *backend;
    int threads; /* 0: all cores; cuda needs none */
    basin_products products;
    /* How plans store intermediate results: 0 for the backend's own type, or BASIN_BF16 on cuda, on
     * cpu where the processor has bfloat16 instructions (AMX, AVX-512 BF16, Arm's BFMMLA) and on
     * ref, which rounds what it stores. Then what large matrix products and attention over all
     * pairs read is rounded to bfloat16; everything else stays float: tokens and their cotangents,
     * sums, statistics, gradients of weights, states, inputs and outputs.
     *
     * BASIN_F8_E4M3, on cuda with compute capability 9.0 and on ref: the same, and large products
     * of tokens with weights read factors of 8 bits, e4m3, cotangents e5m2. Scales are fixed:
     * weights up to 7, layer norms up to 56, hidden units and forces up to 448 are kept, larger
     * ones cut off; cotangents of a mean over the rows of a product are expected to be about a
     * row's share of it. */
    basin_dtype storage;
    /* With such storage: products (and attention over all pairs) of fewer multiply-adds gain
     * nothing from narrow factors and are computed in float, results and all. 0: 2^26, or 2^20 on
     * cpu; 1: none are left out. */
    double narrow_min;
    /* The bytes that a plan may need for results and inputs; 0: what the device has free. A plan
     * that needs more is refused before anything is allocated, with a message that suggests what to
     * change. */
    size_t memory_limit;
} basin_compute;

/* `compute` may be NULL: all defaults. A backend and all that is made on it belong to one thread at
 * a time. */
typedef struct basin_backend basin_backend;
BASIN_API basin_status basin_backend_open(basin_backend **backend, const basin_compute *compute,
                                          basin_error *error);
/* Another backend with the settings of `other`, for another thread; closed in any order. */
BASIN_API basin_status basin_backend_open_like(basin_backend **backend, const basin_backend *other,
                                               basin_error *error);
BASIN_API void basin_backend_close(basin_backend *backend);
typedef struct basin_backend_info {
    size_t size;         /* sizeof(basin_backend_info), set by the caller */
    const char *name;    /* "ref", "cpu" or "cuda" */
    basin_dtype dtype;   /* in which it computes: F64 or F32 */
    int threads;         /* that compute; 0 on a device */
    basin_dtype storage; /* in which plans store intermediate results */
    size_t free_bytes;   /* that could still be allocated; SIZE_MAX where that is not known */
} basin_backend_info;
BASIN_API void basin_backend_get_info(basin_backend_info *info, const basin_backend *backend);
/* Waits for all runs to finish, and reports what failed. Reading a result waits by itself; only
 * measuring time needs this. */
BASIN_API basin_status basin_backend_wait(basin_backend *backend, basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
