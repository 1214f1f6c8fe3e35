/* What the program does about Windows before anything else; see surroundings.h. Files and pipes
 * carry the bytes that were written, text is UTF-8, and a console obeys the escapes of a progress
 * bar. */
#include <windows.h>

#include "cli/surroundings/surroundings.h"

void basin_surroundings_prepare(int arguments, char *const *argument) {
    HANDLE console = GetStdHandle(STD_ERROR_HANDLE);
    DWORD mode;
    (void)arguments, (void)argument;
    _fmode = _O_BINARY;
    for (int fd = 0; fd <= 2; fd++) _setmode(fd, _O_BINARY);
    SetConsoleOutputCP(CP_UTF8);
    if (GetConsoleMode(console, &mode))
        SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}
