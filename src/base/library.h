/* Libraries that only some commands need, opened when one does: libarchive, libwebp, .. A user of
 * one lists its functions once, as a macro, and calls them through a table:
 *
 *     #define FUNCTIONS(X) X(WebPGetInfo) X(WebPDecodeRGBInto)
 *     struct { FUNCTIONS(BASIN_LIBRARY_FIELD) } webp;
 *     static const basin_library_function functions[] = {FUNCTIONS(BASIN_LIBRARY_NAME){0}};
 *     basin_library_load(&webp, BASIN_LIBRARY_WEBP, functions, &error);
 *
 * What was opened stays open. A static program (BASIN_LIBRARY_LINKED) opens nothing: what lists its
 * functions by BASIN_LIBRARY_LINK is within, the rest is absent. */
#ifndef BASIN_BASE_LIBRARY_H
#define BASIN_BASE_LIBRARY_H

#include <stdbool.h>

#include "basin/status.h"

/* A function by its name and, where it is linked, its address. A list ends with {0}. */
typedef struct basin_library_function {
    const char *name;
    void (*address)(void);
} basin_library_function;

/* A field of the table, with the type that the library's header declares; and an entry of the
 * list. */
#define BASIN_LIBRARY_FIELD(function) __typeof__(function) *function;
#define BASIN_LIBRARY_NAME(function) {#function, NULL},
#ifdef BASIN_LIBRARY_LINKED
#define BASIN_LIBRARY_LINK(function) {#function, (void (*)(void))function},
#else
#define BASIN_LIBRARY_LINK(function) BASIN_LIBRARY_NAME(function)
#endif

typedef enum basin_library {
    BASIN_LIBRARY_ARCHIVE,
    BASIN_LIBRARY_LAPACK,
    BASIN_LIBRARY_MICROHTTPD,
    BASIN_LIBRARY_MPI, /* opened by src/tasks/common/ranks/ranks.c, under the name of the launcher's
                          own */
    BASIN_LIBRARY_NCCL, /* opened by the CUDA backend's module */
    BASIN_LIBRARY_WEBP,
    BASIN_LIBRARY_XGBOOST,
    BASIN_LIBRARIES,
} basin_library;

/* Fills a table of pointers, one a function, in that order. */
basin_status basin_library_load(void *table, basin_library library,
                                const basin_library_function *functions, basin_error *error);
/* A function that may be absent; NULL then. */
void *basin_library_find(basin_library library, const char *name);

/* For messages: "libarchive", "archives". NULL past the last library. */
const char *basin_library_name(int library);
const char *basin_library_purpose(int library);
const char *basin_library_file(int library); /* "libarchive.so.13" */
bool basin_library_present(int library);     /* whether it is installed here */

/* Any other library, by its file's name or path; NULL where it cannot be opened, and
 * basin_library_why then says why. */
void *basin_library_open(const char *file);
/* The same for one whose own plugins look for its symbols among all: MPI. */
void *basin_library_open_global(const char *file);
void *basin_library_symbol(void *library, const char *name); /* NULL where it has none */
const char *basin_library_why(void);
/* Whether the loader would find a file of that name; opens nothing. */
bool basin_library_file_present(const char *file);

/* The file that holds this code: the program, or libbasin.so; "" where nobody knows. */
enum { BASIN_HOME = 4096 };
void basin_home_find(char home[BASIN_HOME]);

#endif
