/* What this machine offers; see basin/machine.h. */

#include "basin/machine.h"

#include "base/sized.h"
#include "engine/backend/device.h"
#include "engine/core/team/team.h"

/* Every set contains the smaller ones. */
static const char *all_sets(void) {
#if defined(__aarch64__)
    return "portable neon";
#else
    return basin_isa_available(BASIN_ISA_AVX512) ? "portable avx2 avx512"
           : basin_isa_available(BASIN_ISA_AVX2) ? "portable avx2"
                                                 : "portable";
#endif
}

void basin_machine_get_info(basin_machine_info *info) {
    basin_machine_info all = {.processors = basin_processors_here(),
                              .instruction_set = basin_isa_name(basin_cpu_isa()),
                              .instruction_sets = all_sets(),
                              .bf16 = basin_cpu_bf16(),
                              .amx = basin_cpu_amx(),
                              .cuda_module = basin_cuda_module_present(),
                              .cuda_driver = basin_cuda_driver_present()};
    basin_info_fill(info, &all, sizeof all);
}
