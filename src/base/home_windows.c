/* Where this code lies; see home.h. */
#include <windows.h>

#include "base/home.h"

void basin_home_find(char home[BASIN_HOME]) {
    static const char mark = 0;
    DWORD how =
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    HMODULE module;
    DWORD length = 0;
    if (GetModuleHandleExA(how, &mark, &module))
        length = GetModuleFileNameA(module, home, BASIN_HOME);
    home[length < BASIN_HOME ? length : 0] = 0;
    for (char *at = home; *at; at++)
        if (*at == '\\') *at = '/';
}
