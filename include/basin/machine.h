/* What this machine offers. */
#ifndef BASIN_MACHINE_H
#define BASIN_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basin/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Texts are constants of the library. */
typedef struct basin_machine_info {
    size_t size;     /* sizeof(basin_machine_info), set by the caller */
    long processors; /* that this process may run on, at least 1 */
    /* The instruction set that the cpu backend uses, and all that it could use here, separated by
     * spaces: "portable neon". BASIN_ISA=NAME in the environment chooses another one. */
    const char *instruction_set, *instruction_sets;
    bool bf16;        /* whether it multiplies bfloat16 */
    bool amx;         /* whether it may use AMX for that */
    bool cuda_module; /* whether libbasin_cuda and the driver's library are installed; */
    bool cuda_driver; /* neither is opened */
} basin_machine_info;

BASIN_API void basin_machine_get_info(basin_machine_info *info);

#ifdef __cplusplus
}
#endif
#endif
