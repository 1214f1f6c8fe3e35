/* Values as DGL serialises them: numbers, names, tensors, sparse matrices, from a file in memory.
 * network_dgl.c has the order in which they stand. Reading goes on with zeros after the first
 * error, which sticks in the cursor. */
#ifndef BASIN_DATA_NETWORK_DGL_VALUES_H
#define BASIN_DATA_NETWORK_DGL_VALUES_H

#include "basin/tensor.h"

enum { BASIN_DGL_COO = 1, BASIN_DGL_CSR = 2, BASIN_DGL_CSC = 4 };

typedef struct basin_dgl_cursor {
    const unsigned char *data;
    size_t size, at;
    const char *path;
    basin_status status;
    basin_error *error;
} basin_dgl_cursor;

typedef struct basin_dgl_matrix {
    int form; /* BASIN_DGL_* */
    uint64_t rows, columns;
    basin_tensor first, second; /* COO: row, col; else starts, columns */
    basin_tensor number;        /* of each entry, or empty */
} basin_dgl_matrix;

const unsigned char *basin_dgl_take(basin_dgl_cursor *c, uint64_t bytes, const char *what);
uint64_t basin_dgl_u64(basin_dgl_cursor *c, const char *what);
void basin_dgl_magic(basin_dgl_cursor *c, uint64_t magic, const char *what);
/* A count of things of which each takes at least `least` bytes. */
size_t basin_dgl_count(basin_dgl_cursor *c, uint64_t least, uint64_t most, const char *what);
void basin_dgl_name(basin_dgl_cursor *c, char *name, size_t room);
/* A tensor that borrows from the file, aligned or not. */
basin_tensor basin_dgl_tensor(basin_dgl_cursor *c, const char *what);
/* An aligned copy, as the container's functions want it; basin_tensor_free it. */
basin_status basin_dgl_align(basin_tensor *to, const basin_tensor *from, basin_error *error);
basin_dgl_matrix basin_dgl_take_matrix(basin_dgl_cursor *c, int form);
/* Element i of a tensor of whole numbers. */
int64_t basin_dgl_whole(const basin_tensor *t, int64_t i);
/* The row of every entry of a CSR or CSC matrix, [entries]; NULL and an error where rows overlap.
 */
int32_t *basin_dgl_rows(basin_dgl_cursor *c, const basin_dgl_matrix *m);

#endif
