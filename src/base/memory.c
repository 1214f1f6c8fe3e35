/* Allocation with overflow checks; see memory.h. */
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/number.h"

bool basin_size_multiply(size_t *product, size_t a, size_t b) {
    if (b != 0 && a > SIZE_MAX / b) return false;
    *product = a * b;
    return true;
}

void *basin_array_new(size_t count, size_t size) {
    size_t bytes;
    if (!basin_size_multiply(&bytes, count, size)) return NULL;
    return malloc(bytes ? bytes : 1);
}

void *basin_zeros_new(size_t count, size_t size) { return calloc(count ? count : 1, size); }

void basin_free_all(void *const *memory, size_t count) {
    for (size_t i = 0; i < count; i++) free(memory[i]);
}

basin_status basin_fail_memory(basin_error *error, const char *what) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %s", what);
}

bool basin_array_reserve(void **array, size_t *capacity, size_t need, size_t size) {
    if (need <= *capacity) return true;
    size_t grown = *capacity < 8 ? 8 : *capacity, bytes;
    while (grown < need) {
        if (grown > SIZE_MAX / 2) return false;
        grown *= 2;
    }
    if (!basin_size_multiply(&bytes, grown, size)) return false;
    void *moved = realloc(*array, bytes);
    if (!moved) return false;
    *array = moved;
    *capacity = grown;
    return true;
}

void *basin_aligned_new(size_t bytes) {
    if (bytes > SIZE_MAX - 64) return NULL;
    return aligned_alloc(64, bytes ? (bytes + 63) / 64 * 64 : 64);
}

void *basin_large_new(size_t bytes) {
    size_t large = (size_t)2 << 20;
    if (bytes < 4 * large || bytes > SIZE_MAX - large) return basin_aligned_new(bytes);
    void *memory = aligned_alloc(large, (bytes + large - 1) / large * large);
#ifdef MADV_HUGEPAGE
    if (memory) (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

void basin_aligned_free(void *memory) { free(memory); }

char *basin_string_copy(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

size_t basin_memory_free(void) {
    const char *name = "MemAvailable:", *number;
    int64_t kib = 0;
    char line[200];
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        number = line + strlen(name);
        if (!strncmp(line, name, strlen(name)) && basin_integer_read(&kib, &number)) break;
    }
    if (file) fclose(file);
    if (kib > 0) return (size_t)kib * 1024;
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages / 2 * (size_t)size : (size_t)2 << 30;
}

size_t basin_memory_share(void) { return basin_memory_free() / 4 * 3; }

basin_status basin_memory_check(double bytes, size_t limit, const char *what, basin_status status,
                                basin_error *error) {
    enum { SMALL = 1 << 24 }; /* not worth a look at the machine */
    const double gib = 1073741824.0;
    if (limit ? bytes <= (double)limit : bytes <= SMALL) return BASIN_OK;
    if (!limit) limit = basin_memory_share();
    if (bytes <= (double)limit) return BASIN_OK;
    return basin_fail(error, status, "%s: needs %.3g GiB of memory, allowed are %.3g GiB", what,
                      bytes / gib, (double)limit / gib);
}
