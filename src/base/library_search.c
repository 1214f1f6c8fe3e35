/* Whether a library is installed, without opening it: that would take its initialisers and all that
 * it stands on, OpenBLAS's threads for one. The places are the loader's own. */
#define _GNU_SOURCE
#include "base/library.h"

#include <stdio.h> /* says whether this is glibc */

#if defined(__GLIBC__) && !defined(BASIN_LIBRARY_LINKED)
#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096, HEADER = 20 /* bytes that say for which machine a file is */ };

static bool read_header(char header[HEADER], const char *path) {
    FILE *file = fopen(path, "rb");
    bool read = file && fread(header, 1, HEADER, file) == HEADER;
    if (file) fclose(file);
    return read;
}

/* Machines with several architectures keep a library of the same name for each. */
static bool is_ours(const char *path) {
    char theirs[HEADER], ours[HEADER];
    if (!read_header(theirs, path) || memcmp(theirs, ELFMAG, SELFMAG) != 0) return false;
    if (!read_header(ours, "/proc/self/exe")) return true;
    size_t machine = HEADER - sizeof(Elf32_Half);
    return theirs[EI_CLASS] == ours[EI_CLASS] && theirs[EI_DATA] == ours[EI_DATA] &&
           !memcmp(theirs + machine, ours + machine, sizeof(Elf32_Half));
}

/* LD_LIBRARY_PATH, the program's own folders, the system's. */
static bool in_folders(const char *file) {
    Dl_serinfo size;
    void *program = dlopen(NULL, RTLD_LAZY);
    if (!program || dlinfo(program, RTLD_DI_SERINFOSIZE, &size)) return false;
    Dl_serinfo *places = malloc(size.dls_size);
    bool found = false;
    if (places && !dlinfo(program, RTLD_DI_SERINFOSIZE, places) &&
        !dlinfo(program, RTLD_DI_SERINFO, places))
        for (unsigned i = 0; i < places->dls_cnt && !found; i++) {
            char path[PATH_BYTES];
            int length =
                snprintf(path, sizeof path, "%s/%s", places->dls_serpath[i].dls_name, file);
            found = length > 0 && length < PATH_BYTES && is_ours(path);
        }
    free(places);
    return found;
}

/* What ldconfig found is kept as paths that end in a zero. */
static bool in_index(const char *file, const char *index, size_t size) {
    size_t length = strlen(file) + 1;
    const char *end = index + size;
    for (const char *at = index; (at = memmem(at, (size_t)(end - at), file, length)); at++) {
        const char *path = at;
        while (path > index && path[-1]) path--;
        if (*path == '/' && at[-1] == '/' && is_ours(path)) return true;
    }
    return false;
}

static bool in_cache(const char *file) {
    struct stat status;
    FILE *cache = fopen("/etc/ld.so.cache", "rb");
    if (!cache) return false;
    size_t size = fstat(fileno(cache), &status) ? 0 : (size_t)status.st_size;
    char *index = size ? malloc(size) : NULL;
    bool found = index && fread(index, 1, size, cache) == size && in_index(file, index, size);
    free(index);
    fclose(cache);
    return found;
}

bool basin_library_file_present(const char *file) { return in_folders(file) || in_cache(file); }
#else
/* A loader that does not say where it looks has to look; a static program has none. */
bool basin_library_file_present(const char *file) { return basin_library_open(file) != NULL; }
#endif
