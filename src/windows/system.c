/* What the machine has and the process uses, its terminal and its environment; see posix.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <windows.h>
/* after windows.h */
#include <psapi.h>

enum { PAGE = 4096 };

long basin_windows_sysconf(int name) {
    SYSTEM_INFO system;
    MEMORYSTATUSEX memory = {.dwLength = sizeof memory};
    if (name == _SC_PAGESIZE) return PAGE;
    if (name == _SC_PHYS_PAGES)
        return GlobalMemoryStatusEx(&memory) ? (long)(memory.ullTotalPhys / PAGE) : -1;
    GetSystemInfo(&system);
    return (long)system.dwNumberOfProcessors;
}

int getrusage(int who, struct rusage *usage) {
    PROCESS_MEMORY_COUNTERS memory;
    (void)who;
    if (!GetProcessMemoryInfo(GetCurrentProcess(), &memory, sizeof memory)) return -1;
    usage->ru_maxrss = memory.PeakWorkingSetSize / 1024;
    return 0;
}

int ioctl(int fd, int request, struct winsize *size) {
    CONSOLE_SCREEN_BUFFER_INFO console;
    (void)request;
    if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(fd), &console)) return -1;
    size->ws_col = console.srWindow.Right - console.srWindow.Left + 1;
    size->ws_row = console.srWindow.Bottom - console.srWindow.Top + 1;
    return 0;
}

int basin_windows_setenv(const char *name, const char *value, int overwrite) {
    if (!overwrite && getenv(name)) return 0;
    return _putenv_s(name, value) ? -1 : 0;
}

char *basin_windows_strcasestr(const char *text, const char *part) {
    size_t length = strlen(part);
    for (; strlen(text) >= length; text++)
        if (!_strnicmp(text, part, length)) return (char *)text;
    return NULL;
}

ssize_t basin_windows_getline(char **line, size_t *capacity, FILE *file) {
    size_t length = 0;
    for (int c = 0; c != '\n' && (c = getc(file)) != EOF;) {
        if (length + 2 > *capacity) {
            size_t grown = *capacity < 64 ? 128 : 2 * *capacity;
            char *moved = realloc(*line, grown);
            if (!moved) return -1;
            *line = moved;
            *capacity = grown;
        }
        (*line)[length++] = (char)c;
    }
    if (length) (*line)[length] = 0;
    return length ? (ssize_t)length : -1;
}
