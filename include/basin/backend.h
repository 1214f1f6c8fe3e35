/* Backends: what plans run on. One is opened by name; what it is told about products, storage and
 * memory holds for plans made from then on. */
#ifndef BASIN_BACKEND_H
#define BASIN_BACKEND_H

#include "basin/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "ref" (double, plain loops, the judge), "cpu" (float, fast) or "cuda" (float,
 * on an NVIDIA GPU). `threads` 0 means all cores. A backend and all that is made on it belong to
 * one thread at a time. */
typedef struct basin_backend basin_backend;
BASIN_API basin_status basin_backend_open(basin_backend **backend, const char *name, int threads,
                                          basin_error *error);
BASIN_API void basin_backend_close(basin_backend *backend);
BASIN_API const char *basin_backend_name(const basin_backend *backend);
BASIN_API basin_dtype basin_backend_dtype(const basin_backend *backend);
BASIN_API int basin_backend_threads(const basin_backend *backend);
/* Waits for all runs to finish, and reports what failed. Reading a result waits by itself; only
 * measuring time needs this. */
BASIN_API basin_status basin_backend_wait(basin_backend *backend, basin_error *error);

/* How matrix products are computed. Some processors (AMX) multiply bfloat16 numbers so much faster
 * that it pays to split each float into parts. Others compute in float whatever is asked, and so
 * does ref, in double. Numbers of 2^111 and more become NaN when they are split. */
typedef enum basin_products {
    BASIN_PRODUCTS_F32,    /* float multiply-adds */
    BASIN_PRODUCTS_BF16X6, /* six bfloat16 products for one: as accurate as float */
    BASIN_PRODUCTS_BF16X3, /* three: a relative error of about 2^-16 in each product */
    BASIN_PRODUCTS_TF32,   /* on cuda: factors rounded to 10 bits, about 2^-11; else float */
} basin_products;
/* For plans made from now on. */
BASIN_API void basin_backend_set_products(basin_backend *backend, basin_products products);

/* How intermediate results are stored by plans made from now on: the backend's own type, or
 * BASIN_BF16 on cuda, on cpu where the processor has bfloat16 instructions (AMX, AVX-512 BF16,
 * Arm's BFMMLA) and on ref, which rounds what it stores. Then what large matrix products and
 * attention over all pairs read is rounded to bfloat16; everything else stays float: tokens and
 * their cotangents, sums, statistics, gradients of weights, states, inputs and outputs.
 *
 * BASIN_F8_E4M3, on cuda with compute capability 9.0 and on ref: the same, and large products of
 * tokens with weights read factors of 8 bits, e4m3, cotangents e5m2. Scales are fixed: weights up
 * to 7, layer norms up to 56, hidden units and forces up to 448 are kept, larger ones cut off;
 * cotangents of a mean over the rows of a product are expected to be about a row's share of it. */
BASIN_API basin_status basin_backend_set_storage(basin_backend *backend, basin_dtype dtype,
                                                 basin_error *error);
/* The least number of multiply-adds with which a matrix product (or an attention over all pairs)
 * takes part in BASIN_BF16 storage, for plans made from now on; after basin_backend_set_storage,
 * which sets BASIN_NARROW_LEAST, or 2^20 on cpu.
 * Smaller ones gain nothing from narrow factors and are computed in float, results and all. 0: all
 * of them take part. */
#define BASIN_NARROW_LEAST 0x1p26
BASIN_API void basin_backend_set_narrow_least(basin_backend *backend, double multiply_adds);
BASIN_API basin_dtype basin_backend_storage(const basin_backend *backend);

/* Plans made from now on may need that many bytes for results and inputs; 0: what the device has
 * free. A plan that needs more is refused before anything is allocated, and the message says what
 * would help. */
BASIN_API void basin_backend_set_memory_limit(basin_backend *backend, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
