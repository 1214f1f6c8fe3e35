/* Files whose names match a pattern, which may have wildcards in its last part alone; see
 * ../posix.h. */
#ifndef BASIN_WINDOWS_GLOB_H
#define BASIN_WINDOWS_GLOB_H

#include <stddef.h>

#define glob basin_windows_glob
#define globfree basin_windows_globfree
#define glob_t basin_windows_glob_t

typedef struct glob_t {
    size_t gl_pathc;
    char **gl_pathv; /* [gl_pathc] */
} glob_t;

int glob(const char *pattern, int flags, int (*failed)(const char *path, int code), glob_t *found);
void globfree(glob_t *found);

#endif
