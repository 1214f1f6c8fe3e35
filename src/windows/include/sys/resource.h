/* What the process has used; see ../../posix.h. */
#ifndef BASIN_WINDOWS_RESOURCE_H
#define BASIN_WINDOWS_RESOURCE_H

#define getrusage basin_windows_getrusage

enum { RUSAGE_SELF };

struct rusage {
    size_t ru_maxrss; /* KiB */
};

int getrusage(int who, struct rusage *usage);

#endif
