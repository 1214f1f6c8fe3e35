/* Backends for several threads; what CUDA offers here, for callers that only report it; and the
 * tables of further functions that some backends have: collectives, own operations, single calls.
 */
#ifndef BASIN_BACKEND_DEVICE_H
#define BASIN_BACKEND_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "basin/backend.h"
#include "basin/collective.h"
#include "engine/backend/kernel.h"
#include "engine/backend/op.h"

/* How many threads compute, 0 on a device; and in which type plans store intermediate results. */
int basin_backend_threads(const basin_backend *backend);
basin_dtype basin_backend_storage(const basin_backend *backend);

/* Bytes that could still be allocated; SIZE_MAX where that is not known. */
size_t basin_device_free_bytes(const basin_backend *backend);

/* Whether the files are there: opens nothing, so whether they work remains to be seen. */
bool basin_cuda_module_present(void);
bool basin_cuda_driver_present(void);

/* Operations of the caller's own on backends that cannot call the host: they compile source. */

typedef struct basin_custom_table {
    /* Whether the source compiles; an error has the operation's name and the compiler's message. */
    basin_status (*check)(basin_backend *backend, const basin_custom_code *code,
                          basin_error *error);
} basin_custom_table;

/* Single calls on the caller's stream; a backend for them alone takes little memory, no plans. */

/* On the device that is the calling thread's; threads may share the backend. */
typedef struct basin_eager_table {
    size_t (*workspace)(const basin_backend *backend, const basin_call *call);
    /* Queues the call; block[i] is the address of block i. */
    basin_status (*run)(const basin_backend *backend, const basin_call *call, void *const *block,
                        void *stream, basin_error *error);
    /* For a backend that runs plans: orders its later work and the stream's against each other. */
    basin_status (*enter)(basin_backend *backend, void *stream, basin_error *error);
    basin_status (*leave)(basin_backend *backend, void *stream, basin_error *error);
    /* Queues a copy within the device's memory. */
    void (*copy)(basin_backend *backend, void *to, const void *from, size_t bytes);
} basin_eager_table;

/* NULL where `run` of the backend's own table does, finished when it returns. */
static inline const basin_eager_table *basin_backend_eager(const basin_backend *backend) {
    return backend->table->eager;
}
/* A backend for single calls; only on cuda another than basin_backend_open's. */
basin_status basin_backend_open_eager(basin_backend **backend, const basin_compute *compute,
                                      basin_error *error);

/* ---- which instruction set the fast backend uses, found once when the program runs ---- */

typedef enum basin_isa {
    BASIN_ISA_PORTABLE, /* what the compiler makes of plain C for the baseline processor */
    BASIN_ISA_NEON,
    BASIN_ISA_AVX2,   /* with FMA */
    BASIN_ISA_AVX512, /* F, VL, DQ, BW */
    BASIN_ISA_COUNT,
} basin_isa;

/* The best set this processor has and this build contains. BASIN_ISA=portable|neon|avx2|avx512 in
 * the environment asks for another one; a set that is not there is not used. */
basin_isa basin_cpu_isa(void);

/* What BASIN_ISA says where no set is called so, else NULL. */
const char *basin_isa_unknown(void);

bool basin_isa_available(basin_isa isa);
const char *basin_isa_name(basin_isa isa); /* "portable", "neon", "avx2", "avx512" */

/* Whether this process may use AMX's bfloat16; not where BASIN_ISA asks for avx512 or less. */
bool basin_cpu_amx(void);

/* Whether bfloat16 can be multiplied: AMX, AVX-512, BFMMLA; not with a lower BASIN_ISA. */
bool basin_cpu_bf16(void);

/* ---- the entry to the CUDA backend ----
 * It is a separate module (libbasin_cuda.so), so that Basin itself needs no CUDA library: load.c
 * opens it when the backend is asked for. */

#define BASIN_CUDA_MODULE "libbasin_cuda.so"
#define BASIN_CUDA_OPEN "basin_cuda_open"

/* Both sides pass the version they were built from; the tables of another one may differ. */
typedef basin_status basin_cuda_opener(basin_backend **backend, const char *version, bool lists,
                                       basin_error *error);

#endif
