/* MATLAB files in CARE-GNN's layout, written by matio. */
#include "data/network/mats.h"
#include "data/network/networks.h"

#include <math.h>

TEST(reads_packed_and_plain_files) {
    char path[PATH_TEXT];
    folder_path(path, state, "fraud.mat");
    for (int i = 0; i < 4; i++) {
        basin_network *n;
        basin_error error;
        basin_network_options o = {.directed = true, .unlabelled_first = 1};
        write_mat_as(path, MAT_FT_MAT5, i / 2 ? MAT_COMPRESSION_ZLIB : MAT_COMPRESSION_NONE, i % 2,
                     mat_label, 4);
        if (open_one(&n, path, &o, &error)) fail_msg("%s", error.text);
        assert_int_equal(n->nodes, 4);
        assert_int_equal(n->relations, 2);
        ASSERT_ROW(&n->relation[basin_network_relation(n, "upu")], 1, 0, 2);
        ASSERT_ROW(&n->relation[basin_network_relation(n, "homo")], 2, 0);
        assert_int_equal(n->relation[0].edges, 3);
        const int32_t wanted[] = {-1, 1, 0, 1};
        assert_memory_equal(n->label, wanted, sizeof wanted);
        const float by_rows[] = {1, 5, 2, 6, 3, 7, 4, 8}, of_sparse[] = {1, 3, 0, 0, 2, 0, 0, 4};
        assert_memory_equal(n->feature, i % 2 ? of_sparse : by_rows, sizeof by_rows);
        basin_network_free(n);
    }
}

TEST(refuses_bad_files) {
    char path[PATH_TEXT];
    folder_path(path, state, "bad.mat");
    double odd[] = {0, 1, 0.5, 1};
    write_mat(path, MAT_FT_MAT5, false, odd, 4);
    assert_refused(path, "the label of node 2 is 0.5");
    write_mat(path, MAT_FT_MAT5, false, mat_label, 3);
    assert_refused(path, "labels are [3], wanted [4]");
    double nan_x[8] = {1, 2, NAN};
    memcpy(nan_x + 3, mat_dense, 5 * sizeof(double));
    mat_t *file = Mat_CreateVer(path, NULL, MAT_FT_MAT5);
    mat_sparse_t s = small_sparse();
    put_variable(file, "features", MAT_C_DOUBLE, 4, 2, nan_x);
    put_variable(file, "homo", MAT_C_SPARSE, 4, 4, &s);
    Mat_Close(file);
    assert_refused(path, "feature 0 of node 2 is missing or NaN");
    file = Mat_CreateVer(path, NULL, MAT_FT_MAT5);
    put_variable(file, "features", MAT_C_DOUBLE, 4, 2, mat_dense);
    Mat_Close(file);
    assert_refused(path, "no edges are in it");
    write_mat(path, MAT_FT_MAT73, false, mat_label, 4);
    assert_refused(path, "bad.mat: a MATLAB file of version 7.3 (HDF5), wanted version 5");
}

/* A cut between two variables leaves a file that is whole in itself, with fewer of them. */
static void assert_part_of(const basin_network *part, const basin_network *whole) {
    size_t nodes = (size_t)whole->nodes;
    assert_true(part->nodes == whole->nodes && part->relations > 0);
    for (int r = 0; r < part->relations; r++) {
        const basin_relation *p = &part->relation[r], *q = &whole->relation[r];
        assert_string_equal(p->name, q->name);
        assert_int_equal(p->edges, q->edges);
        assert_memory_equal(p->row, q->row, (nodes + 1) * sizeof *p->row);
        assert_memory_equal(p->col, q->col, (size_t)p->edges * sizeof *p->col);
    }
    if (part->feature) assert_memory_equal(part->feature, whole->feature, 2 * nodes * 4);
    if (part->label) assert_memory_equal(part->label, whole->label, nodes * 4);
}

/* Every cut of every form: refused, or what is there has its true values. */
TEST(refuses_cut_files) {
    static unsigned char bytes[1 << 16];
    char path[PATH_TEXT], cut[PATH_TEXT];
    folder_path(path, state, "whole.mat");
    folder_path(cut, state, "cut.mat");
    for (int i = 0; i < 4; i++) {
        basin_network *whole, *n;
        enum matio_compression packed = i & 1 ? MAT_COMPRESSION_ZLIB : MAT_COMPRESSION_NONE;
        write_mat_as(path, MAT_FT_MAT5, packed, i & 2, mat_label, 4);
        FILE *in = fopen(path, "rb");
        size_t size = fread(bytes, 1, sizeof bytes, in);
        fclose(in);
        assert_int_equal(open_one(&whole, path, NULL, NULL), BASIN_OK);
        int accepted = 0;
        for (size_t k = 0; k < size; k++) {
            basin_error error;
            assert_int_equal(file_put(cut, bytes, k), 0);
            if (open_one(&n, cut, NULL, &error)) {
                assert_null(strchr(error.text, '\n'));
                continue;
            }
            assert_part_of(n, whole);
            basin_network_free(n);
            accepted++;
        }
        assert_true(accepted <= 3); /* behind homo, net_upu, features */
        basin_network_free(whole);
    }
}

/* Sizes that the bytes do not back, and those beyond the limit. */
TEST(refuses_what_is_too_large) {
    char path[PATH_TEXT];
    folder_path(path, state, "large.mat");
    mat_t *file = Mat_CreateVer(path, NULL, MAT_FT_MAT5);
    mat_sparse_t s = small_sparse();
    put_variable(file, "homo", MAT_C_SPARSE, 4, 4, &s);
    static mat_uint32_t wide_starts[300001];
    mat_sparse_t x = {.nzmax = 1, .ir = mat_rows, .nir = 1, .jc = wide_starts, .njc = 300001};
    x.ndata = 1;
    x.data = mat_ones;
    put_variable(file, "features", MAT_C_SPARSE, 4, 300000, &x);
    Mat_Close(file);
    basin_network *n;
    basin_network_options o = {.memory = 1 << 20};
    assert_failure(open_one(&n, path, &o, &failure), BASIN_NO_MEMORY, "large.mat: needs 0.00");
    o.memory = (size_t)4 << 20; /* the matrix fits, dense features do not */
    assert_int_equal(open_one(&n, path, &o, &failure), BASIN_NO_MEMORY);
    o.memory = (size_t)8 << 20;
    assert_ok(open_one(&n, path, &o, &failure));
    basin_network_free(n);
    /* a dense matrix that claims four times the rows it has */
    write_mat_as(path, MAT_FT_MAT5, MAT_COMPRESSION_NONE, false, mat_label, 4);
    static unsigned char bytes[1 << 14];
    FILE *in = fopen(path, "rb");
    size_t size = fread(bytes, 1, sizeof bytes, in), at = 0;
    fclose(in);
    while (at < size && memcmp(bytes + at, "\6\0\0\0\10\0\0\0\6", 9) != 0) at++;
    assert_true(at < size); /* flags of a dense matrix, then its sizes */
    bytes[at + 24] = 16;
    assert_int_equal(file_put(path, bytes, size), 0);
    assert_refused(path, "another count of numbers than its sizes say");
}

/* Every field of a sparse matrix wrong in turn. */
TEST(refuses_bad_structures) {
    static const char *const wanted[] = {"another count of numbers than its sizes say",
                                         "outside of its entries",
                                         "a row beyond its last",
                                         "ends before it begins",
                                         "joins other nodes",
                                         "is not sparse"};
    char path[PATH_TEXT];
    folder_path(path, state, "bad.mat");
    for (int i = 0; i < 6; i++) {
        mat_uint32_t bad_rows[] = {0, 4, 0, 3}, bad_starts[] = {0, 2, 1, 3, 4};
        mat_sparse_t s = small_sparse();
        if (i == 0) s.njc = 4;
        if (i == 1) s.nir = 3;
        if (i == 2) s.ir = bad_rows;
        if (i == 3) s.jc = bad_starts;
        mat_t *file = Mat_CreateVer(path, NULL, MAT_FT_MAT5);
        size_t rows = i == 4 ? 5 : 4;
        put_variable(file, "net_a", i == 5 ? MAT_C_DOUBLE : MAT_C_SPARSE, rows, 4,
                     i == 5 ? (void *)(double[16]){0} : &s);
        Mat_Close(file);
        assert_refused(path, wanted[i]);
    }
}

int main(void) { return tests_run(folder_new, folder_remove); }
