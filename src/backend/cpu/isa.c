/* Detection of instruction sets; see isa.h. */
#include "backend/cpu/isa.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

bool basin_isa_available(basin_isa isa) {
    switch (isa) {
    case BASIN_ISA_PORTABLE: return true;
#if defined(__aarch64__)
    case BASIN_ISA_NEON: return true;
#elif defined(__x86_64__)
    case BASIN_ISA_AVX2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case BASIN_ISA_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("fma");
#endif
    default: return false;
    }
}

const char *basin_isa_name(basin_isa isa) {
    static const char *const names[] = {"portable", "neon", "avx2", "avx512"};
    return isa >= 0 && isa < BASIN_ISA_COUNT ? names[isa] : "unknown";
}

static basin_isa detect(void) {
    const char *wanted = getenv("BASIN_ISA");
    basin_isa best = BASIN_ISA_PORTABLE;
    for (int i = 0; i < BASIN_ISA_COUNT; i++) {
        if (!basin_isa_available((basin_isa)i)) continue;
        if (wanted && !strcmp(wanted, basin_isa_name((basin_isa)i))) return (basin_isa)i;
        best = (basin_isa)i;
    }
    return best;
}

basin_isa basin_cpu_isa(void) {
    /* Every thread that gets here before the first store finds the same answer. */
    static atomic_int found = -1;
    int isa = atomic_load_explicit(&found, memory_order_relaxed);
    if (isa < 0) {
        isa = (int)detect();
        atomic_store_explicit(&found, isa, memory_order_relaxed);
    }
    return (basin_isa)isa;
}
