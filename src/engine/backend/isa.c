/* Detection of instruction sets; see device.h. */
#include "engine/backend/device.h"

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
    const char *requested = getenv("BASIN_ISA");
    for (int i = 0; requested && i < BASIN_ISA_COUNT; i++)
        if (!strcmp(requested, basin_isa_name((basin_isa)i))) return NULL;
    return requested;
}

static int detect(void) {
    const char *requested = getenv("BASIN_ISA");
    int best = BASIN_ISA_PORTABLE;
    for (int i = 0; i < BASIN_ISA_COUNT; i++) {
        if (!basin_isa_available((basin_isa)i)) continue;
        if (requested && !strcmp(requested, basin_isa_name((basin_isa)i))) return i;
        best = i;
    }
    return best;
}

/* What `detect` finds, kept in `found`, -1 before; every thread finds the same. */
static int once(atomic_int *found, int (*detect_it)(void)) {
    int answer = atomic_load_explicit(found, memory_order_relaxed);
    if (answer < 0) {
        answer = detect_it();
        atomic_store_explicit(found, answer, memory_order_relaxed);
    }
    return answer;
}

basin_isa basin_cpu_isa(void) {
    static atomic_int found = -1;
    return (basin_isa)once(&found, detect);
}

#if defined(__x86_64__) && defined(__linux__)
/* The tiles are a large state, so Linux requires a request for them once per process. */
static int amx_detect(void) {
    enum { XSAVE = 1 << 27, BF16 = 1 << 22, TILE = 1 << 24, TILE_STATES = 3 << 17, TILE_DATA = 18 };
    enum { REQUEST_PERMISSION = 0x1023 }; /* ARCH_REQ_XCOMP_PERM, newer than some headers */
    unsigned a, b, c, d, states, high;
    const char *requested = getenv("BASIN_ISA");
    if (basin_cpu_isa() != BASIN_ISA_AVX512 || (requested && !strcmp(requested, "avx512")))
        return false;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & XSAVE)) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    if ((d & (BF16 | TILE)) != (BF16 | TILE)) return false;
    __asm__("xgetbv" : "=a"(states), "=d"(high) : "c"(0));
    if ((states & TILE_STATES) != TILE_STATES) return false;
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}
#else
static int amx_detect(void) { return false; }
#endif

bool basin_cpu_amx(void) {
    static atomic_int found = -1;
    return once(&found, amx_detect) != 0;
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
