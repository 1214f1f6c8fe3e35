/* Numbers in texts; see number.h. */
#include "base/number.h"

#include <errno.h>
#include <stdlib.h>

bool basin_integer_read(int64_t *value, const char **text) {
    char *end;
    errno = 0;
    long long number = strtoll(*text, &end, 10);
    if (end == *text || errno) return false;
    *value = number;
    *text = end;
    return true;
}
