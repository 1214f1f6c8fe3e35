/* What a fuzz target provides, to libFuzzer (make fuzz) and to replay.c (every make test). */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Must return 0 for any input, whatever is in it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes good input number `index` to start from into `out` and returns its size; 0 past the
 * last. */
enum { FUZZ_ROOM = 1 << 14 };
size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index);

#endif
