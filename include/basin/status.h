/* What every fallible function returns, and the one-line message that goes with it.
 *
 * A message names the file, tensor or operation, the value found and the value expected. The caller
 * owns the error object, so nothing is global and threads share nothing. Every function that
 * takes a `basin_error *` accepts NULL from a caller that only needs the status. */
#ifndef BASIN_STATUS_H
#define BASIN_STATUS_H

#include "basin/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum basin_status {
    BASIN_OK = 0,
    BASIN_NO_MEMORY,   /* an allocation failed */
    BASIN_BAD_SHAPE,   /* shapes that do not fit each other */
    BASIN_BAD_VALUE,   /* an argument or a number outside its range, NaN included */
    BASIN_BAD_FILE,    /* a file whose content is not what its format promises */
    BASIN_IO,          /* the operating system refused: missing file, full disk */
    BASIN_UNSUPPORTED, /* valid, but not something this build or backend does */
} basin_status;

enum { BASIN_ERROR_TEXT = 512 };

typedef struct basin_error {
    basin_status status;
    int number;                  /* the errno of a failed system call; 0 where there was none */
    char text[BASIN_ERROR_TEXT]; /* one line, no newline at its end */
} basin_error;

/* "BASIN_OK", "BASIN_BAD_SHAPE", .. */
BASIN_API const char *basin_status_name(basin_status status);

/* Writes a printf-style message into `error` (if not NULL), with number 0, and returns `status`. */
BASIN_API basin_status basin_fail(basin_error *error, basin_status status, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 3, 4)))
#endif
    ;

/* Releases memory that a function of Basin gave to the caller. */
BASIN_API void basin_free(void *memory);

#ifdef __cplusplus
}
#endif
#endif
