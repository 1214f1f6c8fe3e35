/* Files as POSIX has them: open ones can be renamed and removed, renaming replaces, locks bind
 * nobody who does not ask; see posix.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <windows.h>

static int fail(DWORD code) {
    errno = code == ERROR_FILE_EXISTS || code == ERROR_ALREADY_EXISTS           ? EEXIST
            : code == ERROR_ACCESS_DENIED || code == ERROR_SHARING_VIOLATION    ? EACCES
            : code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND      ? ENOENT
            : code == ERROR_DISK_FULL                                           ? ENOSPC
            : code == ERROR_LOCK_VIOLATION || code == ERROR_IO_PENDING          ? EWOULDBLOCK
            : code == ERROR_INVALID_NAME || code == ERROR_BAD_PATHNAME          ? EINVAL
            : code == ERROR_NOT_ENOUGH_MEMORY || code == ERROR_COMMITMENT_LIMIT ? ENOMEM
                                                                                : EIO;
    return -1;
}

/* Folders open as on POSIX, to be examined: they need a flag that files ignore. */
int basin_windows_open(const char *path, int flags, ...) {
    DWORD sharing = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    DWORD access = flags & (O_WRONLY | O_RDWR) ? GENERIC_WRITE : GENERIC_READ;
    DWORD making = !(flags & O_CREAT) ? OPEN_EXISTING : flags & O_EXCL ? CREATE_NEW : OPEN_ALWAYS;
    if (!strcmp(path, "/dev/null")) path = "NUL";
    if (flags & O_RDWR) access |= GENERIC_READ;
    HANDLE handle =
        CreateFileA(path, access, sharing, NULL, making, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (handle == INVALID_HANDLE_VALUE) return fail(GetLastError());
    int fd = _open_osfhandle((intptr_t)handle, O_BINARY | (flags & (O_APPEND | O_NOINHERIT)));
    if (fd < 0) CloseHandle(handle);
    return fd;
}

int basin_windows_rename(const char *from, const char *to) {
    DWORD how = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
    return MoveFileExA(from, to, how) ? 0 : fail(GetLastError());
}

/* Windows enforces locks, but only of the bytes that are locked: one that no file has. */
int flock(int fd, int operation) {
    OVERLAPPED place = {.OffsetHigh = 0x7fffffff};
    DWORD how = LOCKFILE_EXCLUSIVE_LOCK | (operation & LOCK_NB ? LOCKFILE_FAIL_IMMEDIATELY : 0);
    HANDLE handle = (HANDLE)_get_osfhandle(fd);
    return LockFileEx(handle, how, 0, 1, 0, &place) ? 0 : fail(GetLastError());
}

ssize_t basin_windows_pread(int fd, void *data, size_t bytes, off_t offset) {
    OVERLAPPED place = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)((uint64_t)offset >> 32)};
    DWORD got = 0, most = bytes < 1u << 30 ? (DWORD)bytes : 1u << 30;
    HANDLE handle = (HANDLE)_get_osfhandle(fd);
    if (ReadFile(handle, data, most, &got, &place)) return (ssize_t)got;
    return GetLastError() == ERROR_HANDLE_EOF ? 0 : fail(GetLastError());
}

int basin_windows_fchmod(int fd, int mode) {
    (void)fd, (void)mode;
    return 0;
}

int basin_windows_fcntl(int fd, int command, ...) {
    if (command == F_DUPFD_CLOEXEC) return _dup(fd);
    return _get_osfhandle(fd) == -1 ? -1 : 0;
}

char *basin_windows_realpath(const char *path, char *resolved) {
    if (GetFileAttributesA(path) == INVALID_FILE_ATTRIBUTES) {
        fail(GetLastError());
        return NULL;
    }
    char *full = _fullpath(resolved, path, MAX_PATH);
    for (char *at = full; at && *at; at++)
        if (*at == '\\') *at = '/';
    return full;
}
