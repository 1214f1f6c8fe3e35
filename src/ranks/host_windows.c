/* The machine that this process runs on; see host.h. One rank alone uses all processors. */
#include <windows.h>

#include "ranks/host.h"

void basin_processor_set_find(basin_processor_set *mine) {
    *mine = (basin_processor_set){.word = {1}};
}

void basin_host_name(char *name, size_t size) {
    DWORD length = (DWORD)size;
    if (!GetComputerNameA(name, &length)) name[0] = 0;
}
