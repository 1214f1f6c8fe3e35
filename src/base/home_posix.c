/* Where this code lies; see home.h. */
#define _GNU_SOURCE
#include "base/home.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
