/* Edges in files while a network is built; see edge_file.h. */
#include "data/network/edge_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "data/network/network.h"

/* ---- files ---- */

enum { TRIES = 10000 };

/* A name that no file of the folder has. */
static FILE *create(char *path, size_t size, const char *folder) {
    for (int i = 0; i < TRIES; i++) {
        snprintf(path, size, "%s/edges-%d.tmp", folder, i);
        FILE *file = fopen(path, "wbx");
        if (file || errno != EEXIST) return file;
    }
    return NULL;
}

basin_status basin_edge_file_new(basin_edge_file **file, const char *folder, basin_error *error) {
    size_t size = strlen(folder) + 32;
    basin_edge_file *s = calloc(1, sizeof *s);
    *file = NULL;
    if (s) s->path = malloc(size);
    basin_status status = s && s->path
                              ? basin_folder_make(folder, error)
                              : basin_fail(error, BASIN_NO_MEMORY, "out of memory for edges");
    if (!status && !(s->file = create(s->path, size, folder)))
        status = basin_fail(error, BASIN_IO, "%s: cannot open for writing: %s", s->path,
                            strerror(errno));
    if (!status) {
        *file = s;
        return BASIN_OK;
    }
    if (s) free(s->path);
    free(s);
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
    bool whole = fclose(s->file) == 0;
    s->file = NULL;
    return whole ? basin_map_open(&s->map, s->path, error) : fail_write(s, error);
}

void basin_edge_file_free(basin_edge_file *s) {
    if (!s) return;
    if (s->file) fclose(s->file);
    basin_map_close(&s->map);
    remove(s->path);
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
    r->row = calloc((size_t)nodes + 1, sizeof *r->row);
    if (!r->row) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for edges");
    BASIN_TRY(basin_edge_file_new(&r->scratch, folder, error));
    for (int64_t first = 0, last; first < nodes; first = last) {
        last = end_of_range(entries, first, nodes, room);
        BASIN_TRY(put_range(r, r->scratch, first, last, make, context, error));
    }
    BASIN_TRY(basin_edge_file_map(r->scratch, error));
    r->col = (int32_t *)(uintptr_t)r->scratch->map.data;
    return BASIN_OK;
}
