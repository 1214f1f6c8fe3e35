/* Every allocation of the tensor files fails once: an error each time, and nothing leaks. */
#include "engine/io/archive.h"
#include "engine/io/bundle.h"
#include "support/alloc_fail.h"
#include "support/folder.h"
#include "support/test.h"

/* Thirty tensors, so that tables and lists grow more than once. */
static basin_status fill(basin_bundle *bundle, basin_error *error) {
    basin_status status = BASIN_OK;
    char name[20];
    for (int i = 0; i < 30 && status == BASIN_OK; i++) {
        basin_tensor tensor;
        snprintf(name, sizeof name, "tensor %d", i);
        status = basin_tensor_new(&tensor, i % 2 ? BASIN_F64 : BASIN_I16, BASIN_SHAPE(i, 3), error);
        if (status == BASIN_OK) status = basin_bundle_add(bundle, name, &tensor, error);
        basin_tensor_free(&tensor);
        if (status == BASIN_OK) status = basin_bundle_meta_set(bundle, name, "value", error);
    }
    if (status == BASIN_OK) status = basin_bundle_meta_set(bundle, "tensor 3", "other", error);
    return status;
}

static basin_status write_bundle(void *path) {
    basin_error error = {0};
    basin_bundle *bundle;
    basin_status status = basin_bundle_new(&bundle, NULL, &error);
    if (status == BASIN_OK) status = fill(bundle, &error);
    if (status == BASIN_OK) status = basin_bundle_write(path, bundle, &error);
    basin_bundle_free(bundle);
    /* the error object tells the same as the status */
    return error.status == status ? status : BASIN_BAD_VALUE;
}

static basin_status read_bundle(void *path) {
    basin_error error = {0};
    basin_bundle *bundle;
    basin_status status = basin_bundle_read(&bundle, path, &error);
    bool empty = status == BASIN_OK ? !basin_bundle_count(bundle) : bundle != NULL;
    basin_bundle_free(bundle);
    return error.status == status && !empty ? status : BASIN_BAD_VALUE;
}

TEST(safetensors) {
    char *path = folder_path(state, "a.safetensors");
    assert_true(alloc_fail_sweep(write_bundle, path) > 100);
    assert_true(alloc_fail_sweep(read_bundle, path) > 60);
    assert_int_equal(folder_count(state), 1); /* no temporary survives a failure either */
}

TEST(npz) {
    char *path = folder_path(state, "a.npz");
    assert_true(alloc_fail_sweep(write_bundle, path) > 100);
    assert_true(alloc_fail_sweep(read_bundle, path) > 100);
    assert_int_equal(folder_count(state), 2);
}

/* Deflated, in Fortran order, with misaligned safetensors data: the paths that copy. */
static archive zip;

static basin_status read_packed(void *context) {
    (void)context;
    basin_bundle *bundle;
    basin_status status = basin_npz_parse(&bundle, zip.bytes, zip.size, "f", false, NULL);
    basin_bundle_free(bundle);
    return status;
}

static basin_status read_askew(void *file) {
    basin_bundle *bundle;
    basin_status status = basin_safetensors_parse(&bundle, file, 8 + 59 + 16, "f", NULL);
    basin_bundle_free(bundle);
    return status;
}

TEST(copies) {
    static _Alignas(8) char file[100] =
        "\x3b\0\0\0\0\0\0\0{\"x\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,16]}}    ";
    archive_add_npy(&zip, "a.npy", "{'descr': '>u2', 'fortran_order': True, 'shape': (2, 2), }",
                    "abcdefgh", 8, 1, 1);
    archive_end(&zip);
    assert_true(alloc_fail_sweep(read_packed, NULL) >= 8);
    assert_true(alloc_fail_sweep(read_askew, file) >= 6);
}

/* The sweep itself must notice what it is there for. What is not stored, clang does not allocate.
 */
static void *volatile kept;

static basin_status leaks(void *context) {
    (void)context;
    void *a = malloc(1), *b = malloc(1);
    kept = b;
    kept = a;
    if (b || !a) free(a);
    free(b);
    return a && b ? BASIN_OK : BASIN_NO_MEMORY;
}

static basin_status hides(void *context) {
    (void)context;
    kept = malloc(1);
    free(kept);
    return BASIN_OK;
}

static basin_status misnames(void *context) {
    (void)context;
    kept = realloc(NULL, 1);
    basin_status status = kept ? BASIN_OK : BASIN_BAD_SHAPE;
    free(kept);
    return status;
}

static basin_status is_right(void *context) {
    (void)context;
    void *a = aligned_alloc(64, 64), *b = a ? calloc(1, 1) : NULL;
    kept = a;
    kept = b;
    free(a);
    free(b);
    return a && b ? BASIN_OK : BASIN_NO_MEMORY;
}

TEST(sweep_notices) {
    char text[ALLOC_FAIL_TEXT];
    assert_int_equal(alloc_fail_check(text, leaks, NULL), -1);
    assert_string_equal(text, "allocation 2 of 2 failing: something leaked "
                              "(status: 1, leaked: 1)");
    free(kept);
    assert_int_equal(alloc_fail_check(text, hides, NULL), -1);
    assert_string_equal(text, "allocation 1 of 1 failing: the failure went unnoticed "
                              "(status: 0, leaked: 0)");
    assert_int_equal(alloc_fail_check(text, misnames, NULL), -1);
    assert_string_equal(text, "allocation 1 of 1 failing: the status is not 'out of memory' "
                              "(status: 2, leaked: 0)");
    assert_int_equal(alloc_fail_check(text, is_right, NULL), 2);
}

int main(void) { return tests_run(folder_new, folder_remove); }
