/* Golden files of the oracle: those in tests/golden, or in the folder that BASIN_GOLDEN names. */
#ifndef BASIN_TESTS_ENERGY_GOLDEN_H
#define BASIN_TESTS_ENERGY_GOLDEN_H

#include "basin/io.h"
#include "support/test.h"

/* Skips the test, and says so, where the file is not there. */
static inline basin_bundle *golden_open(const char *name) {
    char path[4096];
    basin_bundle *bundle;
    const char *folder = getenv("BASIN_GOLDEN");
    snprintf(path, sizeof path, "%s/%s.safetensors", folder ? folder : BASIN_SOURCE "/tests/golden",
             name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        print_message("no %s: skipped\n", path);
        skip();
    }
    fclose(file);
    assert_ok(basin_bundle_read(&bundle, path, &failure));
    return bundle;
}

static inline const basin_tensor *golden_get(const basin_bundle *bundle, const char *name) {
    const basin_tensor *tensor;
    assert_ok(basin_bundle_get(&tensor, bundle, name, &failure));
    return tensor;
}

/* A metadata number. */
static inline double golden_number(const basin_bundle *bundle, const char *key) {
    const char *text = basin_bundle_meta(bundle, key);
    if (!text) fail_msg("no metadata '%s'", key);
    return text ? atof(text) : 0;
}

#endif
