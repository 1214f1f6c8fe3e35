/* Gives libFuzzer the target's seeds: they go into the first corpus folder on its command line. So
 * no binary files need to lie in the repository. */
#include <stdio.h>

#include "fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    static uint8_t seed[FUZZ_ROOM];
    const char *folder = NULL;
    for (int i = 1; i < *argc && !folder; i++)
        if ((*argv)[i][0] != '-') folder = (*argv)[i];
    for (int index = 0; folder; index++) {
        char path[4096];
        size_t size = fuzz_seed(seed, index);
        if (size == 0) break;
        snprintf(path, sizeof path, "%s/seed-%d", folder, index);
        FILE *file = fopen(path, "wb");
        if (!file) break; /* a single input to run, or a read-only corpus: no seeds then */
        fwrite(seed, 1, size, file);
        fclose(file);
    }
    return 0;
}
