/* Every allocation of networks fails once: an error each time, and nothing leaks. */
#include "tasks/nodes/network/networks.h"

#include "support/alloc_fail.h"
#include "tasks/nodes/network/network.h"

/* The library's own container: no assertions here, since they jump over the cleanup. */
static basin_status build(basin_network **n) {
    basin_tensor x = BORROW(small_x, BASIN_F32, 5, 2), y = BORROW(small_y, BASIN_U8, 5);
    basin_edges a = {small_edges_a, small_edges_a + 1, BASIN_I32, 2, 5};
    basin_edges b = {small_edges_b, small_edges_b + 1, BASIN_I32, 2, 1};
    basin_status status = basin_network_new(n, "small", 5, NULL);
    if (!status) status = basin_network_set_features(*n, &x, NULL, NULL);
    if (!status) status = basin_network_set_label_tensor(*n, &y, NULL, NULL);
    if (!status) status = basin_network_set_masks(*n, "train", &y, NULL);
    if (!status) status = basin_network_add_relation(*n, "a", &a, NULL, NULL);
    if (!status) status = basin_network_add_relation(*n, "b", &b, NULL, NULL);
    return status;
}

static basin_status use(void *context) {
    (void)context;
    basin_network *n = NULL, *part = NULL, *batch = NULL;
    basin_pairs pairs = {0};
    uint8_t split[5];
    const int64_t node[] = {0, 2, 3}, fanout[] = {1, 2};
    basin_sample_spec spec = {.fanout = fanout, .steps = 2};
    basin_status status = build(&n);
    if (!status) status = basin_network_add_union(n, NULL);
    if (!status)
        status = basin_network_pairs(&pairs, n, 0, BASIN_SELF_LOOPS_ADD, n->nodes, 0, NULL);
    if (!status) status = basin_network_induce(&part, n, node, 3, NULL);
    if (!status) status = basin_network_sample(&batch, n, node, 1, &spec, NULL);
    if (!status) status = basin_split_stratified(split, n, 0.4, 1, 0, NULL);
    basin_pairs_free(&pairs);
    basin_network_close(batch);
    basin_network_close(part);
    basin_network_close(n);
    return status;
}

TEST(the_container) { assert_true(alloc_fail_sweep(use, NULL) > 60); }

static basin_status write_file(void *path) {
    basin_network *n = NULL;
    basin_status status = build(&n);
    if (!status) status = basin_network_write(path, n, NULL);
    basin_network_close(n);
    return status;
}

static basin_status read_file(void *path) {
    basin_network *n;
    const char *paths[] = {path};
    basin_status status = basin_network_open(&n, paths, 1, NULL, NULL);
    basin_network_close(n);
    return status;
}

TEST(files) {
    char *path = folder_path(state, "n.basin");
    assert_true(alloc_fail_sweep(write_file, path) > 40);
    assert_true(alloc_fail_sweep(read_file, path) > 20);
    path = folder_path(state, "n.npz");
    assert_true(alloc_fail_sweep(write_file, path) > 40);
    assert_true(alloc_fail_sweep(read_file, path) > 40);
}

static basin_status read_csv(void *context) {
    (void)context;
    static const char edges[] = "src,dst,type\na,b,x\nb,c,y\n";
    static const char nodes[] = "id,f,city,label,split\na,1,r,1,train\nb,2,s,0,val\nc,3,r,,test\n";
    basin_csv_source source[] = {{.path = "e", .data = edges, .size = sizeof edges - 1},
                                 {.path = "n", .data = nodes, .size = sizeof nodes - 1}};
    basin_network *n;
    basin_status status = basin_network_csv_read(&n, source, 2, NULL, NULL);
    basin_network_close(n);
    return status;
}

/* By the schema of another table, added to a network; then matched. */
static basin_status read_more(void *context) {
    static const char edges[] = "dst,src,type\nd,a,x\nd,d,z\n";
    static const char nodes[] = "city,id,f\nq,d,\n";
    const basin_network *base = context;
    basin_csv_source source[] = {{.path = "e", .data = edges, .size = sizeof edges - 1},
                                 {.path = "n", .data = nodes, .size = sizeof nodes - 1}};
    basin_network_options o = {.schema = base->schema, .base = base, .missing = BASIN_MISSING_MEAN};
    basin_network *n;
    basin_status status = basin_network_csv_read(&n, source, 2, &o, NULL);
    if (!status) status = basin_network_finish(n, &o, NULL);
    basin_network_close(n);
    return status;
}

TEST(csv) {
    assert_true(alloc_fail_sweep(read_csv, NULL) > 60);
    static const char edges[] = "src,dst,type\na,b,x\nb,a,y\n",
                      nodes[] = "id,f,city\na,1,r\nb,2,s\n";
    basin_csv_source source[] = {{.path = "e", .data = edges, .size = sizeof edges - 1},
                                 {.path = "n", .data = nodes, .size = sizeof nodes - 1}};
    basin_network_options o = {.unite = true};
    BASIN_AT_EXIT(free_network) basin_network *n;
    assert_int_equal(basin_network_csv_read(&n, source, 2, &o, NULL), BASIN_OK);
    assert_int_equal(basin_network_finish(n, &o, NULL), BASIN_OK);
    assert_true(alloc_fail_sweep(read_more, n) > 80);
}

static basin_status scale(void *context) {
    const int64_t node[] = {0, 1, 2};
    basin_scaler s = {0}, t = {0};
    basin_bundle *bundle = NULL;
    basin_status status =
        basin_scaler_fit(&s, *(basin_scaler_kind *)context, small_x, 2, node, 3, NULL);
    if (!status) status = basin_bundle_new(&bundle, NULL, NULL);
    if (!status) status = basin_scaler_store(bundle, "s.", &s, NULL);
    if (!status) status = basin_scaler_load(&t, bundle, "s.", NULL);
    basin_bundle_free(bundle);
    basin_scaler_free(&s);
    basin_scaler_free(&t);
    return status;
}

TEST(scales) {
    for (basin_scaler_kind kind = BASIN_SCALE_STANDARD; kind <= BASIN_SCALE_QUANTILE; kind++)
        assert_true(alloc_fail_sweep(scale, &kind) > 5);
}

int main(void) { return tests_run(folder_new, folder_remove); }
