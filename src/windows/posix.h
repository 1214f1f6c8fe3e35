/* The part of POSIX that Basin uses and MinGW lacks. The compiler includes this before every file
 * on Windows (cmake/windows.cmake): the rest of Basin is written for POSIX and knows nothing of it.
 * What POSIX has in a header that MinGW lacks altogether is in include/. */
#ifndef BASIN_WINDOWS_POSIX_H
#define BASIN_WINDOWS_POSIX_H

#include <direct.h>
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Other libraries may bring functions of these names, too; ours have names of their own. */
#define open basin_windows_open
#define rename basin_windows_rename
#define realpath basin_windows_realpath
#define pread basin_windows_pread
#define fsync _commit
#define fchmod basin_windows_fchmod
#define fcntl basin_windows_fcntl
#define getline basin_windows_getline
#define setenv basin_windows_setenv
#define sysconf basin_windows_sysconf
#define strcasestr basin_windows_strcasestr
#define mkdir(path, mode) _mkdir(path)
#define tell basin_windows_tell /* io.h has another one than we */

#define O_CLOEXEC O_NOINHERIT
#define O_NONBLOCK 0 /* nothing that is opened here blocks */
#define O_NOFOLLOW 0
enum { F_GETFD = 1, F_DUPFD_CLOEXEC };
enum { _SC_NPROCESSORS_ONLN = 1, _SC_PHYS_PAGES, _SC_PAGESIZE };

/* Always binary; others may rename and remove the file meanwhile, as on POSIX. */
int basin_windows_open(const char *path, int flags, ...);
/* Replaces a file of the new name. */
int basin_windows_rename(const char *from, const char *to);
/* With '/' between folders; into memory of its own. */
char *basin_windows_realpath(const char *path, char *resolved);
ssize_t basin_windows_pread(int fd, void *data, size_t bytes, off_t offset);
int basin_windows_fchmod(int fd, int mode); /* files have no mode here: succeeds */
int basin_windows_fcntl(int fd, int command, ...);
ssize_t basin_windows_getline(char **line, size_t *capacity, FILE *file);
int basin_windows_setenv(const char *name, const char *value, int overwrite);
long basin_windows_sysconf(int name);
char *basin_windows_strcasestr(const char *text, const char *part);

#endif
