/* Mapping of files; see include/sys/mman.h. */
#include <errno.h>
#include <sys/mman.h>
#include <windows.h>

void *mmap(void *wanted, size_t size, int protection, int flags, int fd, int64_t offset) {
    (void)wanted, (void)size, (void)protection, (void)flags, (void)offset;
    HANDLE file = (HANDLE)_get_osfhandle(fd);
    HANDLE mapping = CreateFileMappingA(file, NULL, PAGE_READONLY, 0, 0, NULL);
    void *data = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : NULL;
    if (mapping) CloseHandle(mapping); /* the view keeps it */
    if (data) return data;
    errno = ENOMEM;
    return MAP_FAILED;
}

int munmap(void *data, size_t size) {
    (void)size;
    return UnmapViewOfFile(data) ? 0 : -1;
}

int memfd_create(const char *name, unsigned flags) {
    (void)name, (void)flags;
    errno = ENOSYS;
    return -1;
}
