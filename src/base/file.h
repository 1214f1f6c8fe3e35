/* Whole files: mapping one for reading, replacing one so that it is never half written, and the
 * files below a folder. */
#ifndef BASIN_IO_FILE_H
#define BASIN_IO_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/sha256.h"
#include "basin/status.h"

typedef struct basin_map {
    const unsigned char *data;
    size_t size;
} basin_map;

/* Opens a regular file for reading; pipes and devices are refused, never waited for. */
basin_status basin_file_open(int *fd, size_t *size, const char *path, basin_error *error);

/* Maps a regular file for reading. An empty file is an empty map without data. Whoever changes a
 * file that others read should replace it, as basin_writer does: one that is made shorter while it
 * is mapped ends its readers with SIGBUS. */
basin_status basin_map_open(basin_map *map, const char *path, basin_error *error);
void basin_map_close(basin_map *map);
/* The SHA-256 of a regular file, as sha256sum prints it. */
basin_status basin_file_sha256(char text[BASIN_SHA256_TEXT], const char *path, basin_error *error);

/* *same: whether two paths name one file, which need not be there yet; no device is the same as
 * another. */
basin_status basin_file_same(bool *same, const char *a, const char *b, basin_error *error);

/* Whether a device, a pipe or a folder is there: nothing to replace, to rename or to remove. */
bool basin_file_special(const char *path);

/* Makes a folder where there is none yet. */
basin_status basin_folder_make(const char *path, basin_error *error);

/* Gets every regular file whose name does not begin with a dot: its path below the folder; and
 * links to nowhere, which may be files that have gone, with size 0. */
typedef basin_status basin_folder_take(void *context, const char *path, size_t size,
                                       basin_error *error);

/* Hands out the files, those of a folder in the order of their names' bytes. A folder that links
 * lead to more than once is listed once, under the first of its paths, so that a link to a folder
 * above it ends the walk there. */
basin_status basin_folder_walk(const char *root, basin_folder_take *take, void *context,
                               basin_error *error);

/* A file being written aside. Create, write, then either commit or discard; after a failed create
 * or commit nothing is left to discard. Devices and pipes are written in place, and
 * /dev/stdout and /dev/stderr whatever they lead to. */
typedef struct basin_writer {
    FILE *file;
    const char *path; /* as the caller gave it; must outlive the writer */
    char *target;     /* what is replaced: `path` with symbolic links resolved */
    char *aside;      /* the temporary beside it; NULL when writing in place */
} basin_writer;

basin_status basin_writer_create(basin_writer *writer, const char *path, basin_error *error);
basin_status basin_writer_put(basin_writer *writer, const void *data, size_t bytes,
                              basin_error *error);
basin_status basin_writer_commit(basin_writer *writer, basin_error *error);
void basin_writer_discard(basin_writer *writer);
/* Commits where `written` is BASIN_OK, else discards and returns it. */
basin_status basin_writer_finish(basin_writer *writer, basin_status written, basin_error *error);
/* Whether a file could be written there, before hours are spent on what is to be in it. Devices and
 * pipes are not opened: their readers would see an end. */
basin_status basin_writer_try(const char *path, basin_error *error);
/* An error where its file system has less space than `bytes`. */
basin_status basin_writer_space(const char *path, uint64_t bytes, basin_error *error);
/* Removes what killed processes left beside `path`; what a living one writes stays. */
basin_status basin_writer_sweep(const char *path, basin_error *error);

/* "PATH: cannot DOING: .." by errno. */
basin_status basin_fail_errno(const char *path, const char *doing, basin_error *error);

/* A file in memory, for what writes to files. */
typedef struct basin_memory_file {
    FILE *file;
    char *text;
    size_t size;
} basin_memory_file;

/* The file to write to; NULL where memory is short. */
FILE *basin_memory_file_open(basin_memory_file *memory);
/* What was written, zero-terminated, for the caller to free; NULL where something failed. */
char *basin_memory_file_close(basin_memory_file *memory);

#endif
