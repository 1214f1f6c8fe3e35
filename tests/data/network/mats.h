/* A small network as a MATLAB file in CARE-GNN's layout, written by matio itself. */
#ifndef TESTS_DATA_MATS_H
#define TESTS_DATA_MATS_H

#include <matio.h>

#include "data/network/networks.h"

/* Column after column: edges 0 -> 1, 2 -> 1, 0 -> 2 and a stored zero at (3, 3). */
static mat_uint32_t mat_rows[] = {0, 2, 0, 3}, mat_starts[] = {0, 0, 2, 3, 4};
static double mat_ones[] = {1, 1, 1, 0};
static double mat_dense[] = {1, 2, 3, 4, 5, 6, 7, 8}; /* [4, 2] by columns */
static double mat_label[] = {0, 1, 0, 1};

static inline mat_sparse_t small_sparse(void) {
    return (mat_sparse_t){.nzmax = 4,
                          .ir = mat_rows,
                          .nir = 4,
                          .jc = mat_starts,
                          .njc = 5,
                          .ndata = 4,
                          .data = mat_ones};
}

static inline void put_variable_as(mat_t *file, const char *name, enum matio_classes class,
                                   size_t r, size_t c, void *data, enum matio_compression packed) {
    size_t dims[] = {r, c};
    matvar_t *v = Mat_VarCreate(name, class, MAT_T_DOUBLE, 2, dims, data, MAT_F_DONT_COPY_DATA);
    assert_non_null(v);
    assert_int_equal(Mat_VarWrite(file, v, packed), 0);
    Mat_VarFree(v);
}

static inline void put_variable(mat_t *file, const char *name, enum matio_classes class, size_t r,
                                size_t c, void *data) {
    put_variable_as(file, name, class, r, c, data, MAT_COMPRESSION_ZLIB);
}

static inline void write_mat_as(const char *path, enum mat_ft version,
                                enum matio_compression packed, bool sparse_features, void *y,
                                size_t labels) {
    remove(path);
    mat_t *file = Mat_CreateVer(path, NULL, version);
    assert_non_null(file);
    mat_sparse_t s = small_sparse();
    put_variable_as(file, "homo", MAT_C_SPARSE, 4, 4, &s, packed);
    put_variable_as(file, "net_upu", MAT_C_SPARSE, 4, 4, &s, packed);
    mat_uint32_t feature_starts[] = {0, 2, 4};
    mat_sparse_t x = {.nzmax = 4,
                      .ir = mat_rows,
                      .nir = 4,
                      .jc = feature_starts,
                      .njc = 3,
                      .ndata = 4,
                      .data = mat_dense};
    put_variable_as(file, "features", sparse_features ? MAT_C_SPARSE : MAT_C_DOUBLE, 4, 2,
                    sparse_features ? (void *)&x : mat_dense, packed);
    put_variable_as(file, "label", MAT_C_DOUBLE, 1, labels, y, packed);
    Mat_Close(file);
}

static inline void write_mat(const char *path, enum mat_ft version, bool sparse_features, void *y,
                             size_t labels) {
    write_mat_as(path, version, MAT_COMPRESSION_ZLIB, sparse_features, y, labels);
}

#endif
