/* Edges in files while a network is built; see edge_file.h. */
#include "data/network/edge_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/try.h"
#include "data/network/network.h"

/* ---- files ---- */

basin_status basin_edge_file_new(basin_edge_file **file, const char *folder, basin_error *error) {
    BASIN_FREE_AT_EXIT char *path = NULL;
    size_t size = strlen(folder) + 16;
    *file = NULL;
    BASIN_TRY(basin_folder_make(folder, error));
    BASIN_TRY(BASIN_NEW(&path, size, "edges", error));
    snprintf(path, size, "%s/edges-XXXXXX", folder);
    int fd = mkstemp(path);
    if (fd < 0)
        return basin_fail(error, BASIN_IO, "%s: cannot open for writing: %s", path,
                          strerror(errno));
    unlink(path); /* nothing is left of it when the process ends, however it does */
    basin_status status = BASIN_NEW(file, 1, "edges", error);
    if (!status && !((*file)->file = fdopen(fd, "w+b"))) status = basin_fail_memory(error, "edges");
    if (!status) {
        (*file)->path = path;
        path = NULL;
        return BASIN_OK;
    }
    close(fd);
    free(*file);
    *file = NULL;
    return status;
}

static basin_status fail_write(const basin_edge_file *s, basin_error *error) {
    return basin_fail(error, BASIN_IO, "%s: cannot write edges: %s", s->path, strerror(errno));
}

basin_status basin_edge_file_put(basin_edge_file *s, const void *data, size_t bytes,
                                 basin_error *error) {
    return fwrite(data, 1, bytes, s->file) == bytes ? BASIN_OK : fail_write(s, error);
}

basin_status basin_edge_file_map(basin_edge_file *s, basin_error *error) {
    struct stat info;
    if (fflush(s->file) || fstat(fileno(s->file), &info)) return fail_write(s, error);
    if (!info.st_size) return BASIN_OK;
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fileno(s->file), 0);
    if (data == MAP_FAILED) return fail_write(s, error);
    s->map = (basin_map){data, (size_t)info.st_size};
    return BASIN_OK;
}

void basin_edge_file_free(basin_edge_file *s) {
    if (!s) return;
    basin_map_close(&s->map);
    fclose(s->file);
    free(s->path);
    free(s);
}

/* ---- rows ---- */

/* The end of the range that begins at `first`. */
static int64_t end_of_range(const int64_t *entries, int64_t first, int64_t nodes, int64_t room) {
    int64_t last = first, sum = 0;
    while (last < nodes && (last == first || sum + entries[last] <= room)) sum += entries[last++];
    return last;
}

static basin_status put_range(basin_relation *r, basin_edge_file *file, int64_t first, int64_t last,
                              basin_rows_maker make, const void *context, basin_error *error) {
    basin_relation piece = {0};
    basin_status status = make(&piece, context, first, last, error);
    for (int64_t i = 0; i < last - first && !status; i++)
        r->row[first + i + 1] = r->edges + piece.row[i + 1];
    if (!status)
        status =
            basin_edge_file_put(file, piece.col, (size_t)piece.edges * sizeof *piece.col, error);
    r->edges += piece.edges;
    basin_relation_free(&piece);
    return status;
}

basin_status basin_relation_make_in_file(basin_relation *relation, int64_t nodes,
                                         const int64_t *entries, basin_rows_maker make,
                                         const void *context, const char *folder, size_t memory,
                                         basin_error *error) {
    basin_relation *r = relation;
    int64_t room = (int64_t)(memory / sizeof *r->col);
    r->edges = 0;
    BASIN_TRY(BASIN_NEW(&r->row, (size_t)nodes + 1, "edges", error));
    BASIN_TRY(basin_edge_file_new(&r->scratch, folder, error));
    for (int64_t first = 0, last; first < nodes; first = last) {
        last = end_of_range(entries, first, nodes, room);
        BASIN_TRY(put_range(r, r->scratch, first, last, make, context, error));
    }
    BASIN_TRY(basin_edge_file_map(r->scratch, error));
    r->col = (int32_t *)(uintptr_t)r->scratch->map.data;
    return BASIN_OK;
}
