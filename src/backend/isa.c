/* Detection of instruction sets; see device.h. */
#include "backend/device.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

const char *basin_isa_unknown(void) {
    const char *wanted = getenv("BASIN_ISA");
    for (int i = 0; wanted && i < BASIN_ISA_COUNT; i++)
        if (!strcmp(wanted, basin_isa_name((basin_isa)i))) return NULL;
    return wanted;
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

#if defined(__x86_64__) && defined(__linux__)
/* The tiles are a large state, so Linux wants to be asked for them once per process. */
static bool amx_detect(void) {
    enum { XSAVE = 1 << 27, BF16 = 1 << 22, TILE = 1 << 24, TILE_STATES = 3 << 17, TILE_DATA = 18 };
    enum { REQUEST_PERMISSION = 0x1023 }; /* ARCH_REQ_XCOMP_PERM, newer than some headers */
    unsigned a, b, c, d, states, high;
    const char *wanted = getenv("BASIN_ISA");
    if (basin_cpu_isa() != BASIN_ISA_AVX512 || (wanted && !strcmp(wanted, "avx512"))) return false;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & XSAVE)) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    if ((d & (BF16 | TILE)) != (BF16 | TILE)) return false;
    __asm__("xgetbv" : "=a"(states), "=d"(high) : "c"(0));
    if ((states & TILE_STATES) != TILE_STATES) return false;
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#else
static bool amx_detect(void) { return false; }
#endif

bool basin_cpu_amx(void) {
    static atomic_int found = -1;
    int amx = atomic_load_explicit(&found, memory_order_relaxed);
    if (amx < 0) {
        amx = amx_detect();
        atomic_store_explicit(&found, amx, memory_order_relaxed);
    }
    return amx != 0;
}

bool basin_cpu_bf16(void) {
#if defined(__x86_64__)
    return basin_cpu_amx() ||
           (basin_cpu_isa() == BASIN_ISA_AVX512 && __builtin_cpu_supports("avx512bf16"));
#elif defined(__aarch64__) && defined(__linux__)
    enum { BF16 = 1 << 14 }; /* HWCAP2_BF16, newer than some headers */
    return basin_cpu_isa() == BASIN_ISA_NEON && (getauxval(AT_HWCAP2) & BF16) != 0;
#else
    return false;
#endif
}
