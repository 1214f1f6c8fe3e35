/* Opening the CUDA backend: its module is looked for beside the file that holds this code (the
 * program, or libbasin.so), where `make install` puts it, and where the system keeps libraries. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/module.h"
#include "base/home.h"
#include "basin/version.h"

#ifndef BASIN_CUDA_FOLDER
#define BASIN_CUDA_FOLDER "/usr/lib"
#endif

enum { PATH_BYTES = 4096 };

/* The module in a folder; NULL where it is not there. What dlopen has to say of a file that is
 * there goes to `reason`. */
static void *open_in(const char *folder, size_t length, char reason[BASIN_ERROR_TEXT]) {
    char path[PATH_BYTES];
    int written = snprintf(path, sizeof path, "%.*s/" BASIN_CUDA_MODULE, (int)length, folder);
    if (written < 0 || written >= PATH_BYTES) return NULL;
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fclose(file);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *text = module ? NULL : dlerror();
    if (text) snprintf(reason, BASIN_ERROR_TEXT, "%s", text);
    return module;
}

static void *open_module(char reason[BASIN_ERROR_TEXT]) {
    char home[BASIN_HOME];
    void *module = NULL;
    basin_home_find(home);
    const char *slash = strrchr(home, '/');
    if (slash) module = open_in(home, (size_t)(slash - home), reason);
    if (!module && !reason[0])
        module = open_in(BASIN_CUDA_FOLDER, strlen(BASIN_CUDA_FOLDER), reason);
    if (!module && !reason[0]) module = dlopen(BASIN_CUDA_MODULE, RTLD_NOW | RTLD_LOCAL);
    return module;
}

basin_status basin_backend_open_cuda(basin_backend **backend, basin_error *error) {
    char reason[BASIN_ERROR_TEXT] = "";
    basin_cuda_opener *opener = NULL;
    *backend = NULL;
    void *module = open_module(reason); /* stays open: CUDA does not like to be unloaded */
    if (!module)
        return basin_fail(error, BASIN_UNSUPPORTED, "backend cuda: %.400s",
                          reason[0] ? reason
                                    : "this build has none: there is no " BASIN_CUDA_MODULE
                                      " beside the program or among the libraries");
    void *symbol = dlsym(module, BASIN_CUDA_OPEN);
    if (!symbol)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "backend cuda: " BASIN_CUDA_MODULE " lacks " BASIN_CUDA_OPEN);
    memcpy(&opener, &symbol, sizeof opener); /* ISO C has no cast from void * to a function */
    return opener(backend, BASIN_VERSION_STRING, error);
}
