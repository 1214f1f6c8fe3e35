/* Libraries opened at run time; see include/dlfcn.h. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

static _Thread_local struct {
    DWORD code; /* of the last failure */
    char text[200];
} last;

void *dlopen(const char *file, int flags) {
    (void)flags;
    UINT quiet = SetErrorMode(SEM_FAILCRITICALERRORS); /* no window that asks for a disk */
    HMODULE library = LoadLibraryA(file);
    last.code = library ? 0 : GetLastError();
    SetErrorMode(quiet);
    return library;
}

void *dlsym(void *library, const char *name) {
    FARPROC found = GetProcAddress(library, name);
    void *symbol;
    memcpy(&symbol, &found, sizeof symbol);
    if (!symbol) last.code = GetLastError();
    return symbol;
}

int dlclose(void *library) { return FreeLibrary(library) ? 0 : -1; }

const char *dlerror(void) {
    DWORD how = FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS;
    if (!last.code) return NULL;
    if (!FormatMessageA(how, NULL, last.code, 0, last.text, sizeof last.text, NULL))
        snprintf(last.text, sizeof last.text, "Windows' error %lu", last.code);
    last.text[strcspn(last.text, "\r\n")] = 0;
    last.code = 0;
    return last.text;
}
