/* basin version: what this build is made of and what it found on this machine. */
#include "basin/version.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <zlib.h>

#include "backend/device.h"
#include "backend/isa.h"
#include "base/library.h"
#include "base/team/processors.h"
#include "bench/blas.h"
#include "cli/command.h"
#include "io/json_writer.h"

typedef struct options {
    bool json;
} options;

static const options defaults = {0};

static const basin_option table[] = {
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

#if defined(__x86_64__)
#define PROCESSOR "x86-64"
#elif defined(__aarch64__)
#define PROCESSOR "arm64"
#else
#define PROCESSOR "unknown"
#endif

/* Nothing is opened to tell of it: this page comes at once. */
static bool has_cuda(void) { return basin_cuda_module_present() && basin_cuda_driver_present(); }

static const char *blas_file(void) {
    const char *file = basin_blas_file();
    return file ? file : "none found";
}

static void print_json(void) {
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "version", basin_version());
    basin_json_array(&json, "backends");
    basin_json_text(&json, NULL, "ref");
    basin_json_text(&json, NULL, "cpu");
    if (has_cuda()) basin_json_text(&json, NULL, "cuda");
    basin_json_end(&json);
    basin_json_text(&json, "processor", PROCESSOR);
    basin_json_array(&json, "instruction_sets");
    for (basin_isa isa = 0; isa < BASIN_ISA_COUNT; isa++)
        if (basin_isa_available(isa)) basin_json_text(&json, NULL, basin_isa_name(isa));
    if (basin_cpu_amx()) basin_json_text(&json, NULL, "amx");
    basin_json_end(&json);
    basin_json_text(&json, "instruction_set", basin_isa_name(basin_cpu_isa()));
    basin_json_integer(&json, "threads", basin_processors());
    basin_json_text(&json, "blas", blas_file());
    basin_json_text(&json, "compiler", COMPILER);
    basin_json_object(&json, "libraries");
    basin_json_text(&json, "zlib", zlibVersion());
    basin_json_text(&json, "cJSON", cJSON_Version());
    basin_json_end(&json);
    basin_json_object(&json, "opened_when_needed");
    for (int i = 0; basin_library_name(i); i++)
        basin_json_boolean(&json, basin_library_name(i), basin_library_present(i));
    basin_json_end(&json);
    basin_json_end(&json);
}

static void print_text(void) {
    printf("basin %s\n", basin_version());
    printf("backends          ref, cpu%s\n", has_cuda() ? ", cuda (module and driver present)"
                                             : basin_cuda_module_present()
                                                 ? "; cuda lacks its driver, libcuda.so.1"
                                                 : "");
    printf("processor         %s, %d thread%s\ninstruction sets  ", PROCESSOR, basin_processors(),
           basin_processors() == 1 ? "" : "s");
    for (basin_isa isa = 0, first = 1; isa < BASIN_ISA_COUNT; isa++)
        if (basin_isa_available(isa)) {
            printf("%s%s", first ? "" : ", ", basin_isa_name(isa));
            first = 0;
        }
    if (basin_cpu_amx()) printf(", amx");
    printf("; %s in use\n", basin_isa_name(basin_cpu_isa()));
    printf("BLAS to compare   %s\n", blas_file());
    printf("compiler          %s\n", COMPILER);
    printf("libraries         zlib %s, cJSON %s\n", zlibVersion(), cJSON_Version());
    for (int i = 0; basin_library_name(i); i++)
        printf("%-18s%s, for %s%s\n", i ? "" : "opened if needed", basin_library_name(i),
               basin_library_purpose(i), basin_library_present(i) ? "" : " (absent here)");
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    (void)operands, (void)operand;
    if (o->json)
        print_json();
    else
        print_text();
    return BASIN_EXIT_OK;
}

const basin_command basin_command_version = {
    .name = "version",
    .summary = "Name the build: backends, BLAS, instruction sets, libraries",
    .operands = "",
    .text =
        "The instruction sets are those that this build contains and this processor has. "
        "BASIN_ISA=portable|neon|avx2|avx512 in the environment chooses another than the best "
        "of them. Nothing is opened to print this page: a library, or CUDA, that is named here is "
        "installed, and whether it works shows when it is used. \"basin bench\" prints which "
        "BLAS it compares with.",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
