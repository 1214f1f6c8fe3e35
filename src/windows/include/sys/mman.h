/* Mapping of whole files for reading; see ../../posix.h. There is no madvise: who calls it asks for
 * MADV_ constants first. */
#ifndef BASIN_WINDOWS_MMAN_H
#define BASIN_WINDOWS_MMAN_H

#include <stddef.h>
#include <stdint.h>

#define mmap basin_windows_mmap
#define munmap basin_windows_munmap
#define memfd_create basin_windows_memfd_create
#define MAP_FAILED ((void *)-1)

enum { PROT_READ = 1, MAP_PRIVATE = 2, MFD_CLOEXEC = 0 };

void *mmap(void *wanted, size_t size, int protection, int flags, int fd, int64_t offset);
int munmap(void *data, size_t size);
int memfd_create(const char *name, unsigned flags); /* there is none: -1 */

#endif
