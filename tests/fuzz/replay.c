/* Runs a fuzz target without libFuzzer: on its seeds, on cuts of them (all, of
 * seeds below 1 KiB), and on mutations that
 * are the same in every run. Named files are run instead: replay_fuzz_npz crash-1234. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "basin/random.h"
#include "fuzz/fuzz.h"

enum { MUTATIONS = 400, CUTS = 1024 };

/* In an allocation of just its size, so that a sanitizer sees a step beyond it. */
static void run(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) abort();
    memcpy(copy, data, size);
    if (LLVMFuzzerTestOneInput(copy, size) != 0) abort();
    free(copy);
}

/* A handful of changes: a byte, a bit, a 16- or 32-bit number that likes to break things, a piece
 * copied elsewhere, or the end cut off. */
static size_t mutate(uint8_t *data, size_t size, basin_random *random) {
    static const uint32_t nasty[] = {0,      1,      0x7f,       0x80,      0xff,
                                     0x7fff, 0xffff, 0x7fffffff, 0xffffffff};
    for (uint64_t n = 1 + basin_random_below(random, 4); n > 0 && size >= 8; n--) {
        size_t at = (size_t)basin_random_below(random, size - 4);
        size_t from = (size_t)basin_random_below(random, size - 4);
        uint32_t value = nasty[basin_random_below(random, sizeof nasty / sizeof *nasty)];
        switch (basin_random_below(random, 6)) {
        case 0: data[at] = (uint8_t)basin_random_next(random); break;
        case 1: data[at] ^= (uint8_t)(1 << basin_random_below(random, 8)); break;
        case 2: memcpy(data + at, &value, 2); break;
        case 3: memcpy(data + at, &value, 4); break;
        case 4: memmove(data + at, data + from, size - (at > from ? at : from)); break;
        default: size -= (size_t)basin_random_below(random, size / 4 + 1); break;
        }
    }
    return size;
}

static int run_file(const char *path) {
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    run(data, size);
    return 0;
}

int main(int argc, char **argv) {
    static uint8_t seed[FUZZ_ROOM], changed[FUZZ_ROOM];
    int seeds = 0, failed = 0;
    for (int i = 1; i < argc; i++) failed |= run_file(argv[i]);
    if (argc > 1) return failed;
    for (size_t size; (size = fuzz_seed(seed, seeds)) > 0; seeds++) {
        basin_random random = basin_random_start(1, (uint64_t)seeds, 0);
        for (size_t cut = 0; cut <= size; cut += 1 + size / CUTS) run(seed, cut);
        for (int i = 0; i < MUTATIONS; i++) {
            memcpy(changed, seed, size);
            run(changed, mutate(changed, size, &random));
        }
    }
    printf("%d seeds, %d mutations each\n", seeds, MUTATIONS);
    return seeds == 0;
}
