/* Libraries opened at run time; see library.h. */
#define _GNU_SOURCE
#include "base/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name, *file, *purpose;
    bool linked;     /* in a static program */
    const char *pip; /* a package of Python's that has it, and where; NULL: none */
} libraries[BASIN_LIBRARIES] = {
    [BASIN_LIBRARY_ARCHIVE] = {"libarchive", BASIN_SONAME_ARCHIVE, "tar and zip files", true},
    [BASIN_LIBRARY_LAPACK] = {"LAPACK", BASIN_SONAME_LAPACK, "eigenvectors of graphs", true},
    [BASIN_LIBRARY_MICROHTTPD] = {"libmicrohttpd", "libmicrohttpd.so.12", "HTTP", false},
    [BASIN_LIBRARY_MPI] = {"MPI", "libmpi.so.40", "several ranks", false},
    [BASIN_LIBRARY_NCCL] = {"NCCL", "libnccl.so.2", "ranks with a GPU each", false},
    [BASIN_LIBRARY_WEBP] = {"libwebp", BASIN_SONAME_WEBP, "WebP pictures", false},
    /* not looked for at build time: its functions keep their form */
    [BASIN_LIBRARY_XGBOOST] = {"XGBoost", "libxgboost.so.0", "boosted trees", false,
                               "xgboost/lib/libxgboost.so"},
};

#ifdef BASIN_LIBRARY_LINKED
static const bool is_static = true;

void *basin_library_open(const char *file) {
    (void)file;
    return NULL;
}

void *basin_library_open_global(const char *file) { return basin_library_open(file); }

void *basin_library_symbol(void *library, const char *name) {
    (void)library, (void)name;
    return NULL;
}

const char *basin_library_why(void) { return "this program is static and opens no libraries"; }
#else
static const bool is_static = false;

void *basin_library_open(const char *file) { return dlopen(file, RTLD_NOW | RTLD_LOCAL); }

void *basin_library_open_global(const char *file) { return dlopen(file, RTLD_NOW | RTLD_GLOBAL); }

void *basin_library_symbol(void *library, const char *name) { return dlsym(library, name); }

const char *basin_library_why(void) {
    const char *why = dlerror();
    return why ? why : "it cannot be opened";
}
#endif

/* A program started by its bare name is asked of the system. */
void basin_home_find(char home[BASIN_HOME]) {
    static const char mark = 0;
    Dl_info here;
    if (dladdr(&mark, &here) && here.dli_fname && strchr(here.dli_fname, '/')) {
        snprintf(home, BASIN_HOME, "%s", here.dli_fname);
        return;
    }
    ssize_t length = readlink("/proc/self/exe", home, BASIN_HOME - 1);
    home[length > 0 ? length : 0] = 0;
}

/* Inside a package of Python's: beside our own package, in the virtual environment, in the user's
 * packages, in the system's. */
static bool find_in_python(char path[BASIN_HOME], basin_library library) {
    const char *places[] = {"", getenv("VIRTUAL_ENV"), getenv("HOME"), "/usr/local", "/usr"};
    const char *pip = libraries[library].pip;
    char home[BASIN_HOME], pattern[2 * BASIN_HOME];
    basin_home_find(home);
    char *slash = strrchr(home, '/');
    if (slash) *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places && pip && !is_static; i++) {
        glob_t found = {0};
        if (!places[i]) continue;
        if (i == 0)
            snprintf(pattern, sizeof pattern, "%s/../%s", home, pip);
        else
            snprintf(pattern, sizeof pattern, "%s%s/lib/python3*/*-packages/%s", places[i],
                     i == 2 ? "/.local" : "", pip);
        bool there = !glob(pattern, 0, NULL, &found) && found.gl_pathc > 0;
        if (there) snprintf(path, BASIN_HOME, "%s", found.gl_pathv[0]);
        globfree(&found);
        if (there) return true;
    }
    return false;
}

/* Beside the file that holds this code (a Python package carries its own), then where the system
 * keeps libraries, then inside Python's packages. */
static void *open_library(basin_library library) {
    char home[BASIN_HOME], path[BASIN_HOME];
    basin_home_find(home);
    const char *slash = strrchr(home, '/');
    int length = slash ? (int)(slash - home) + 1 : 0;
    int written = snprintf(path, sizeof path, "%.*s%s", length, home, libraries[library].file);
    void *opened = NULL;
    if (slash && written > 0 && written < (int)sizeof path) opened = basin_library_open(path);
    if (!opened && libraries[library].pip && find_in_python(path, library) &&
        !basin_library_file_present(libraries[library].file))
        opened = basin_library_open(path);
    return opened ? opened : basin_library_open(libraries[library].file);
}

/* Where to get it: Debian calls the package of libwebp.so.7 libwebp7, that of libfoo1.so.0
 * libfoo1-0. A static program gets none. */
static const char *advice(char text[100], basin_library library) {
    const char *file = libraries[library].file, *so = strstr(file, ".so.");
    text[0] = 0;
    if (is_static || !so) return text;
    bool number = so > file && so[-1] >= '0' && so[-1] <= '9';
    snprintf(text, 100, "; Debian's package %.*s%s%s has it%s", (int)(so - file), file,
             number ? "-" : "", so + 4, libraries[library].pip ? ", and pip install xgboost" : "");
    return text;
}

static basin_status absent(basin_library library, const char *what, basin_error *error) {
    char text[100];
    return basin_fail(error, BASIN_UNSUPPORTED, "%s, needed for %s, cannot be used: %s%s",
                      libraries[library].name, libraries[library].purpose, what,
                      advice(text, library));
}

basin_status basin_library_load(void *table, basin_library library,
                                const basin_library_function *functions, basin_error *error) {
    void *handle = functions->address ? NULL : open_library(library);
    if (!functions->address && !handle) return absent(library, basin_library_why(), error);
    for (int i = 0; functions[i].name; i++) {
        void *function;
        memcpy(&function, &functions[i].address, sizeof function);
        if (!function) function = basin_library_symbol(handle, functions[i].name);
        if (!function) return absent(library, functions[i].name, error);
        memcpy((char *)table + (size_t)i * sizeof function, &function, sizeof function);
    }
    return BASIN_OK;
}

void *basin_library_find(basin_library library, const char *name) {
    void *handle = open_library(library);
    return handle ? basin_library_symbol(handle, name) : NULL;
}

const char *basin_library_name(int library) {
    return library < BASIN_LIBRARIES ? libraries[library].name : NULL;
}

const char *basin_library_purpose(int library) {
    return library < BASIN_LIBRARIES ? libraries[library].purpose : NULL;
}

const char *basin_library_file(int library) {
    return library < BASIN_LIBRARIES ? libraries[library].file : NULL;
}

/* ---- whether one is installed ---- */

/* Without opening it: that would run its initialisers and open all that it needs, OpenBLAS's
 * threads for one. The folders are those of the loader. */
#if defined(__GLIBC__) && !defined(BASIN_LIBRARY_LINKED)

enum { PATH_BYTES = 4096 };

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
            found = length > 0 && length < PATH_BYTES && access(path, R_OK) == 0;
        }
    free(places);
    return found;
}

/* What ldconfig found is kept as paths that end in a zero. */
static bool in_cache(const char *file) {
    struct stat status;
    FILE *cache = fopen("/etc/ld.so.cache", "rb");
    if (!cache) return false;
    size_t size = fstat(fileno(cache), &status) ? 0 : (size_t)status.st_size;
    char *index = size ? malloc(size) : NULL;
    char name[PATH_BYTES];
    int length = snprintf(name, sizeof name, "/%s", file);
    bool found = index && fread(index, 1, size, cache) == size &&
                 memmem(index, size, name, (size_t)length + 1);
    free(index);
    fclose(cache);
    return found;
}

bool basin_library_file_present(const char *file) { return in_folders(file) || in_cache(file); }
#else
/* A loader that does not say where it looks has to look; a static program has none. */
bool basin_library_file_present(const char *file) { return basin_library_open(file) != NULL; }
#endif

bool basin_library_present(int library) {
    if (library >= BASIN_LIBRARIES) return false;
    char path[BASIN_HOME];
    if (is_static) return libraries[library].linked;
    return basin_library_file_present(libraries[library].file) ||
           find_in_python(path, (basin_library)library);
}
