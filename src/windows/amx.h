/* gcc's tile instructions take their stride as a long, which has 32 bits on Windows: an address
 * then has halves of two sizes. The compiler includes this before the files that use them. */
#ifndef BASIN_WINDOWS_AMX_H
#define BASIN_WINDOWS_AMX_H

#include <immintrin.h>

#undef _tile_loadd_internal
#define _tile_loadd_internal(tile, base, stride)                                                   \
    __asm__ volatile("tileloadd\t(%0,%1,1), %%tmm" #tile                                           \
                     :                                                                             \
                     : "r"((const void *)(base)), "r"((long long)(stride)))
#undef _tile_stored_internal
#define _tile_stored_internal(tile, base, stride)                                                  \
    __asm__ volatile("tilestored\t%%tmm" #tile ", (%0,%1,1)"                                       \
                     :                                                                             \
                     : "r"((void *)(base)), "r"((long long)(stride))                               \
                     : "memory")

#endif
