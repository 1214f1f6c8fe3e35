/* The size of the terminal; see ../../posix.h. */
#ifndef BASIN_WINDOWS_IOCTL_H
#define BASIN_WINDOWS_IOCTL_H

#define ioctl basin_windows_ioctl

enum { TIOCGWINSZ = 1 };

struct winsize {
    int ws_row, ws_col;
};

int ioctl(int fd, int request, struct winsize *size);

#endif
