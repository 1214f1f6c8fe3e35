/* Structs that callers fill; see given.h. */
#include "task/given.h"

#include <string.h>

basin_status basin_given_take(void *taken, size_t size, const void *given, const char *name,
                              basin_error *error) {
    size_t known = 0;
    memset(taken, 0, size);
    if (given) memcpy(&known, given, sizeof known);
    if (known <= sizeof known)
        return basin_fail(error, BASIN_BAD_VALUE, "the size of %s is %zu, wanted sizeof(%s)", name,
                          known, name);
    memcpy(taken, given, known < size ? known : size);
    return BASIN_OK;
}
