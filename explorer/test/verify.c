/* Golden cases in WebAssembly, under node: as `basin verify` on the cpu backend.
 *
 *     node verify.js [--each] FILE...
 *
 * --each prints the error of every tensor in full, to compare the bits of two builds. */
#include <stdio.h>
#include <string.h>

#include "engine/backend/device.h"
#include "program/verify/verify.h"

static void tell(void *context, const char *tensor, double error) {
    if (context) printf("%s %s %a\n", (const char *)context, tensor, error);
}

int main(int count, char **file) {
    basin_backend *backend;
    basin_error error;
    int failed = 0;
    bool each = count > 1 && !strcmp(file[1], "--each");
    count -= each, file += each;
    if (basin_backend_open(&backend, &(basin_compute){.backend = "cpu", .threads = 1}, &error)) {
        puts(error.text);
        return 1;
    }
    for (int i = 1; i < count; i++) {
        basin_verdict verdict;
        if (basin_verify(&verdict, file[i], backend, false, tell, each ? file[i] : NULL, &error)) {
            printf("%s: %s\n", file[i], error.text);
            failed++;
            continue;
        }
        if (!(verdict.error <= 1e-3)) {
            printf("%s: error %.2e in %s\n", file[i], verdict.error, verdict.worst);
            failed++;
        }
    }
    printf("%d of %d golden files within 0.001 in WebAssembly\n", count - 1 - failed, count - 1);
    basin_backend_close(backend);
    return failed != 0;
}
