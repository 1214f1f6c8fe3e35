/* Golden cases in WebAssembly, under node: as `basin verify` on the cpu backend.
 *
 *     node verify.js [--each] FILE...
 *
 * --each prints the error of every tensor in full, to compare the bits of two builds. */
#include <stdio.h>
#include <string.h>

#include "program/verify/verify.h"

int main(int count, char **file) {
    basin_backend *backend;
    basin_error error;
    int passed = 0;
    bool each = count > 1 && !strcmp(file[1], "--each");
    count -= each, file += each;
    if (basin_backend_open(&backend, &(basin_compute){.backend = "cpu", .threads = 1}, &error)) {
        puts(error.text);
        return 1;
    }
    for (int i = 1; i < count; i++) {
        basin_case c = {.backend = backend};
        basin_status status = basin_case_run(&c, file[i], &error);
        double worst = status ? -1 : c.off[c.worst];
        for (size_t k = 0; each && !status && k < basin_bundle_count(c.bundle); k++)
            if (!(c.off[k] < 0))
                printf("%s %s %a\n", file[i], basin_bundle_name(c.bundle, k), c.off[k]);
        if (status) puts(error.text);
        if (!status && !(worst <= 1e-3)) printf("%s: error %.2e\n", file[i], worst);
        passed += !status && worst <= 1e-3;
        basin_case_free(&c);
    }
    printf("%d of %d golden files within 0.001 in WebAssembly\n", passed, count - 1);
    basin_backend_close(backend);
    return passed < count - 1;
}
