/* Where a model looks at a picture with a hole: squares around what is missing. */
#ifndef BASIN_TASK_IMAGE_COMPLETE_WINDOW_H
#define BASIN_TASK_IMAGE_COMPLETE_WINDOW_H

#include "task/image/complete/hole.h"

/* A part of the picture, mostly a square, that the model sees resized to its own size. */
typedef struct basin_window {
    int64_t top, left, height, width;
    bool flip;       /* seen in a mirror */
    bool first;      /* of several looks, the one whose patches are aligned with the hole */
    int lane;        /* of a colour picture, the channel that a grey model sees */
    int64_t picture; /* its number in the call */
} basin_window;

typedef struct basin_windows {
    basin_window *window; /* [count] */
    size_t count, capacity;
} basin_windows;

enum { BASIN_LOOKS = 8 };

/* How windows are laid over a hole. */
typedef struct basin_cover {
    const basin_hole *hole;
    int64_t height, width; /* of the picture */
    int64_t side;          /* of a window, at most both */
    int64_t across;        /* patches in a row of it */
    int64_t reach;         /* only what is missing and at most so deep is to be covered */
    bool whole;            /* one window, the whole picture */
    int looks;             /* a window, 1 to BASIN_LOOKS */
    bool flips;            /* looks in a mirror, too: what the model was trained for */
    int lanes;
    int64_t picture;
} basin_cover;

/* Adds windows in which all that is to be covered lies, centred on it as far as the picture lets
 * them, and placed so that their patches hide few known pixels. Neighbours overlap by half. Further
 * looks at a window are moved by parts of a patch, and mirrored. */
basin_status basin_windows_cover(basin_windows *windows, const basin_cover *cover,
                                 basin_error *error);
void basin_windows_free(basin_windows *windows);

/* Where patch i of a row begins, in pixels of the window. */
int64_t basin_window_edge(int64_t i, int64_t length, int64_t across);

#endif
