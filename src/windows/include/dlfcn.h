/* Libraries opened at run time; see ../posix.h. */
#ifndef BASIN_WINDOWS_DLFCN_H
#define BASIN_WINDOWS_DLFCN_H

#define dlopen basin_windows_dlopen
#define dlsym basin_windows_dlsym
#define dlclose basin_windows_dlclose
#define dlerror basin_windows_dlerror

enum { RTLD_LAZY = 1, RTLD_NOW = 2, RTLD_LOCAL = 0, RTLD_GLOBAL = 0 };

void *dlopen(const char *file, int flags);
void *dlsym(void *library, const char *name);
int dlclose(void *library);
const char *dlerror(void); /* of this thread's last failure */

#endif
