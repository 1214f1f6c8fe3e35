/* Locks of whole files, which readers and writers may disregard; see ../../posix.h. */
#ifndef BASIN_WINDOWS_FILE_H
#define BASIN_WINDOWS_FILE_H

#define flock basin_windows_flock

enum { LOCK_EX = 2, LOCK_NB = 4 };

int flock(int fd, int operation);

#endif
