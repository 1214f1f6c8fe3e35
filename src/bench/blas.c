/* The machine's BLAS opened at run time; see bench.h. */
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "backend/isa.h"
#include "base/library.h"

typedef void sgemm(int layout, int turn_a, int turn_b, int m, int n, int k, float alpha,
                   const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

/* Opened at most once and kept to the end; the program runs one command. */
static struct {
    void *library;
    const char *file;
    sgemm *product;
    void (*set_threads)(int threads);
    char *(*config)(void);
    char *(*core)(void);
} blas;

/* A symbol is a data pointer, which C does not convert to one to a function. */
static void find(void *function, const char *name) {
    void *symbol = basin_library_symbol(blas.library, name);
    memcpy(function, &symbol, sizeof symbol);
}

static bool load(const char *file) {
    blas.library = basin_library_open(file);
    if (!blas.library) return false;
    blas.file = file;
    find(&blas.product, "cblas_sgemm");
    find(&blas.set_threads, "openblas_set_num_threads");
    find(&blas.config, "openblas_get_config");
    find(&blas.core, "openblas_get_corename");
    if (blas.product) return true;
    basin_library_close(blas.library);
    blas.library = NULL;
    return false;
}

/* An OpenBLAS older than the processor takes it for a Prescott of 2004, which would be a yardstick
 * too short. It reads OPENBLAS_CORETYPE when it is loaded. */
static const char *better_core(void) {
    static const char *const old[] = {"Prescott", "Core2",  "Penryn",  "Dunnington",
                                      "Nehalem",  "Athlon", "Opteron", "Atom"};
    basin_isa isa = basin_cpu_isa();
    if (!blas.core || getenv("OPENBLAS_CORETYPE")) return NULL;
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        if (!strcmp(blas.core(), old[i]))
            return isa == BASIN_ISA_AVX512 ? "SkylakeX" : isa == BASIN_ISA_AVX2 ? "Haswell" : NULL;
    return NULL;
}

static const char *const files[] = {"libopenblas.so.0", "libopenblas.so", "libcblas.so.3",
                                    "libblas.so.3", "libopenblas.0.dylib"};
enum { FILES = sizeof files / sizeof *files };

bool basin_blas_open(void) {
    for (int i = 0; i < FILES && !blas.library; i++) {
        if (!load(files[i])) continue;
        const char *core = better_core();
        if (!core) break;
        basin_library_close(blas.library);
        blas.library = NULL;
        setenv("OPENBLAS_CORETYPE", core, 1);
        load(files[i]);
    }
    return blas.library != NULL;
}

const char *basin_blas_file(void) {
    for (int i = 0; i < FILES; i++)
        if (basin_library_file_present(files[i])) return files[i];
    return NULL;
}

const char *basin_blas_name(void) {
    if (!basin_blas_open()) return "none found";
    return blas.config ? blas.config() : blas.file;
}

void basin_blas_threads(int threads) {
    if (blas.set_threads) blas.set_threads(threads);
}

void basin_blas_product(float *c, const float *a, bool a_turned, const float *b, bool b_turned,
                        int64_t m, int64_t n, int64_t k) {
    enum { ROWS = 101, PLAIN = 111, TURNED = 112 }; /* of cblas.h */
    blas.product(ROWS, a_turned ? TURNED : PLAIN, b_turned ? TURNED : PLAIN, (int)m, (int)n, (int)k,
                 1, a, (int)(a_turned ? m : k), b, (int)(b_turned ? k : n), 0, c, (int)n);
}
