/* Bytes as a file with a path, for readers that want one; and files that a writer wants by path. */
#ifndef TESTS_FUZZ_MEMORY_FILE_H
#define TESTS_FUZZ_MEMORY_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MEMORY_PATH = 64 };

/* A file without a name, whose path is written to `path`; close the descriptor. */
static inline int memory_file(char path[MEMORY_PATH], const uint8_t *data, size_t size) {
    char name[] = "/dev/shm/basin-fuzz-XXXXXX";
    int fd = mkstemp(name);
    if (fd < 0) abort();
    unlink(name);
    if (size && write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, MEMORY_PATH, "/proc/self/fd/%d", fd);
    return fd;
}

/* A name in the temporary folder that no other process has. */
static inline void temporary_name(char path[MEMORY_PATH], const char *what) {
    snprintf(path, MEMORY_PATH, "/tmp/basin-fuzz-%ld.%s", (long)getpid(), what);
}

/* Reads a file of `room` bytes at most, removes it and returns its size. */
static inline size_t take_file(uint8_t *out, size_t room, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) abort();
    size_t size = fread(out, 1, room, file);
    if (fgetc(file) != EOF) abort();
    fclose(file);
    unlink(path);
    return size;
}

#endif
