/* Opening the CUDA backend: its module is looked for beside the file that holds this code (the
 * program, or libbasin.so), where `make install` puts it, and where the system keeps libraries. */
#include <stdio.h>
#include <string.h>

#include "base/library.h"
#include "basin/version.h"
#include "engine/backend/device.h"

#ifndef BASIN_CUDA_FOLDER
#define BASIN_CUDA_FOLDER "/usr/lib"
#endif

enum { PATH_BYTES = 4096 };

/* The path of the module in a folder; false where it is not there. */
static bool is_in(char path[PATH_BYTES], const char *folder, size_t length) {
    int written = snprintf(path, PATH_BYTES, "%.*s/" BASIN_CUDA_MODULE, (int)length, folder);
    if (written < 0 || written >= PATH_BYTES) return false;
    FILE *file = fopen(path, "rb");
    if (file) fclose(file);
    return file != NULL;
}

/* Beside this code, or where it is installed; false where only the loader may know it. */
static bool find_module(char path[PATH_BYTES]) {
    char home[BASIN_HOME];
    basin_home_find(home);
    const char *slash = strrchr(home, '/');
    if (slash && is_in(path, home, (size_t)(slash - home))) return true;
    return is_in(path, BASIN_CUDA_FOLDER, strlen(BASIN_CUDA_FOLDER));
}

/* What the loader has to say of a file that is there goes to `reason`. */
static void *open_module(char reason[BASIN_ERROR_TEXT]) {
    char path[PATH_BYTES];
    bool found = find_module(path);
    void *module = basin_library_open(found ? path : BASIN_CUDA_MODULE);
    if (found && !module) snprintf(reason, BASIN_ERROR_TEXT, "%s", basin_library_why());
    return module;
}

bool basin_cuda_module_present(void) {
    char path[PATH_BYTES];
    return find_module(path) || basin_library_file_present(BASIN_CUDA_MODULE);
}

bool basin_cuda_driver_present(void) { return basin_library_file_present("libcuda.so.1"); }

basin_status basin_backend_open_cuda(basin_backend **backend, bool lists, basin_error *error) {
    char reason[BASIN_ERROR_TEXT] = "";
    basin_cuda_opener *opener = NULL;
    *backend = NULL;
    void *module = open_module(reason); /* stays open: CUDA does not like to be unloaded */
    if (!module)
        return basin_fail(error, BASIN_UNSUPPORTED, "backend cuda: %.400s",
                          reason[0] ? reason
                                    : "this build has none: there is no " BASIN_CUDA_MODULE
                                      " beside the program or among the libraries");
    void *symbol = basin_library_symbol(module, BASIN_CUDA_OPEN);
    if (!symbol)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "backend cuda: " BASIN_CUDA_MODULE " lacks " BASIN_CUDA_OPEN);
    memcpy(&opener, &symbol, sizeof opener); /* ISO C has no cast from void * to a function */
    return opener(backend, BASIN_VERSION_STRING, lists, error);
}
