/* Which instruction set the fast backend uses, found once when the program runs. */
#ifndef BASIN_BACKEND_ISA_H
#define BASIN_BACKEND_ISA_H

#include <stdbool.h>

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

/* Whether the AMX bfloat16 instructions are there and the system lets this process use them; not
 * where BASIN_ISA asks for avx512 or less. */
bool basin_cpu_amx(void);

/* Whether there are instructions that multiply bfloat16 numbers: AMX, those of AVX-512, BFMMLA. Not
 * where BASIN_ISA asks for less than avx512. */
bool basin_cpu_bf16(void);

#endif
