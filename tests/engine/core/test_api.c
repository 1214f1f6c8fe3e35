/* What lets the API grow: sizes of structs, constant tensors, errors with an errno, bundles from
 * memory, reductions by NumPy's names. */
#include <errno.h>

#include "basin/basin.h"
#include "support/test.h"

TEST(a_struct_of_another_version_is_refused) {
    basin_backend *backend;
    basin_compute compute = {.size = sizeof compute + 8, .backend = "ref"};
    assert_int_equal(basin_backend_open(&backend, &compute, &failure), BASIN_UNSUPPORTED);
    assert_null(backend);
    for (size_t size = 0; size <= sizeof compute; size += sizeof compute) {
        compute.size = size;
        assert_ok(basin_backend_open(&backend, &compute, &failure));
        basin_backend_close(backend);
    }
}

/* A caller that knows fewer members gets no more than these. */
TEST(a_result_is_filled_as_far_as_its_size) {
    basin_backend *backend;
    basin_backend_info info = {.size = offsetof(basin_backend_info, storage), .free_bytes = 7};
    assert_ok(basin_backend_open(&backend, &(basin_compute){.threads = 1}, &failure));
    basin_backend_get_info(&info, backend);
    assert_int_equal(info.threads, 1);
    assert_int_equal(info.free_bytes, 7);
    info.size = sizeof info;
    basin_backend_get_info(&info, backend);
    assert_true(info.free_bytes == SIZE_MAX);
    assert_int_equal(info.storage, BASIN_F32);
    basin_backend_close(backend);
}

TEST(a_view_is_not_written_to) {
    const double from[2] = {1, 2}, kept[2] = {3, 4};
    double to[2];
    basin_tensor source = basin_tensor_view(from, BASIN_F64, BASIN_SHAPE(2));
    basin_tensor constant = basin_tensor_view(kept, BASIN_F64, BASIN_SHAPE(2));
    basin_tensor target = basin_tensor_borrow(to, BASIN_F64, BASIN_SHAPE(2));
    assert_int_equal(basin_tensor_convert(&constant, &source, &failure), BASIN_BAD_VALUE);
    assert_true(kept[0] == 3 && kept[1] == 4);
    assert_ok(basin_tensor_convert(&target, &source, &failure));
    assert_true(to[0] == 1 && to[1] == 2);
}

TEST(an_error_has_its_errno) {
    basin_bundle *bundle;
    assert_int_equal(basin_bundle_read(&bundle, "/nowhere/at.all", &failure), BASIN_IO);
    assert_int_equal(failure.number, ENOENT);
    basin_fail(&failure, BASIN_BAD_VALUE, "another");
    assert_int_equal(failure.number, 0);
    assert_string_equal(basin_status_name(BASIN_IO), "BASIN_IO");
    assert_string_equal(basin_status_name((basin_status)99), "unknown status");
}

TEST(a_bundle_is_read_from_memory) {
    static const _Alignas(8) char text[] =
        "\x38\0\0\0\0\0\0\0"
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}  "
        "\0\0\x80\x3f\0\0\0\x40";
    basin_bundle *bundle;
    assert_ok(basin_bundle_parse(&bundle, text, sizeof text - 1, "memory", &failure));
    const basin_tensor *a = basin_bundle_find(bundle, "a");
    assert_non_null(a);
    assert_true(basin_tensor_at(a, 0) == 1 && basin_tensor_at(a, 1) == 2 && a->constant);
    basin_bundle_free(bundle);
    assert_int_equal(basin_bundle_parse(&bundle, text, 20, "memory", &failure), BASIN_BAD_FILE);
}

TEST(max_and_min_reduce_maximum_and_minimum_are_pointwise) {
    basin_engine engine;
    basin_tensor result[4];
    const double number[3] = {2, -1, 5};
    basin_tensor x = basin_tensor_view(number, BASIN_F64, BASIN_SHAPE(3));
    assert_ok(basin_engine_open(&engine, &(basin_compute){.backend = "ref"}, &failure));
    basin_expr in = basin_input(engine.graph, "x", BASIN_SHAPE(3));
    basin_expr three = basin_scalar(engine.graph, 3);
    basin_expr out[4] = {basin_max(in, 0, 1), basin_min(in, 0, 1), basin_maximum(in, three),
                         basin_minimum(in, three)};
    assert_ok(basin_engine_compute(&engine, result, out, 4, &(basin_feed){in, &x}, 1, &failure));
    assert_true(basin_tensor_at(&result[0], 0) == 5 && basin_tensor_at(&result[1], 0) == -1);
    for (int i = 0; i < 3; i++) {
        assert_true(basin_tensor_at(&result[2], i) == fmax(number[i], 3));
        assert_true(basin_tensor_at(&result[3], i) == fmin(number[i], 3));
    }
    for (int i = 0; i < 4; i++) basin_tensor_free(&result[i]);
    basin_engine_close(&engine);
}
