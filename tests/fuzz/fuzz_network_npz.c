/* Fuzz target: npz files as networks, and safetensors as mapped ones. Archives are stored, and
 * their checksums not looked at by mutations that hit a number alone, so tensors are built from the
 * bytes: the first say which names, types and shapes there are, the rest is data. */
#include "fuzz/fuzz.h"
#include "fuzz/network.h"

static const char *const name[] = {"x",         "y",         "edges",        "edges_a",  "labelled",
                                   "val_masks", "test_mask", "train_masks",  "row.homo", "col.homo",
                                   "id_at",     "id_text",   "node_features"};
enum { NAMES = sizeof name / sizeof *name };

/* One tensor from the bytes at *at: name, type, two sizes, then its data. */
static void add_tensor(basin_bundle *bundle, const uint8_t *data, size_t size, size_t *at) {
    basin_tensor t = {0};
    const uint8_t *head = data + *at;
    basin_shape shape = {.rank = 1 + head[1] / 16 % 3, .dim = {head[2] % 16, head[3] % 16, 1}};
    basin_dtype dtype = (basin_dtype)(head[1] % 10);
    *at += 4;
    if (basin_tensor_new(&t, dtype, shape, NULL) != BASIN_OK) return;
    size_t bytes = basin_tensor_bytes(&t), left = size - *at;
    if (bytes > left) bytes = left;
    if (bytes) memcpy(t.data, data + *at, bytes);
    if (dtype == BASIN_BOOL)
        for (size_t i = 0; i < bytes; i++) ((uint8_t *)t.data)[i] &= 1;
    *at += bytes;
    (void)basin_bundle_add(bundle, name[head[0] % NAMES], &t, NULL);
    basin_tensor_free(&t);
}

static void read_both(basin_bundle *bundle) {
    basin_network *n;
    basin_error error;
    basin_network_options o = {.missing = BASIN_MISSING_MEAN};
    basin_status status = basin_network_npz_read(&n, bundle, &o, &error);
    network_check_outcome(n, status, &error);
    basin_network_close(n);
    status = basin_network_file_read(&n, bundle, &error);
    if ((status == BASIN_OK) != (n != NULL)) abort();
    /* any rows are allowed, but none may crash it */
    if (status == BASIN_OK) (void)basin_network_check(n, NULL);
    basin_network_close(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    basin_bundle *bundle;
    if (basin_bundle_new(&bundle, NULL, NULL) != BASIN_OK) return 0;
    char nodes[8];
    snprintf(nodes, sizeof nodes, "%d", size ? data[0] % 16 : 0);
    (void)basin_bundle_meta_set(bundle, "nodes", nodes, NULL);
    for (size_t at = 1; at + 4 <= size;) add_tensor(bundle, data, size, &at);
    read_both(bundle); /* frees it */
    return 0;
}

static size_t put(uint8_t *out, size_t at, int which, int type, int rows, int columns,
                  const void *data, size_t bytes) {
    const uint8_t head[] = {(uint8_t)which, (uint8_t)(type + (columns >= 0 ? 16 : 0)),
                            (uint8_t)rows, (uint8_t)(columns >= 0 ? columns : 1)};
    memcpy(out + at, head, sizeof head);
    memcpy(out + at + sizeof head, data, bytes);
    return at + sizeof head + bytes;
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    const float x[] = {1, 2, 3, 4, 5, 6};
    const uint8_t y[] = {0, 1, 0}, masks[] = {1, 0, 0, 0, 1, 1};
    const int32_t edges[] = {0, 1, 1, 2}, col[] = {1, 0, 2, 1};
    const int64_t row[] = {0, 1, 3, 4}, at_id[] = {0, 2, 4, 6};
    size_t at = 1;
    out[0] = 3;
    if (index == 0) {
        at = put(out, at, 0, BASIN_F32, 3, 2, x, sizeof x);
        at = put(out, at, 1, BASIN_U8, 3, -1, y, sizeof y);
        at = put(out, at, 2, BASIN_I32, 2, 2, edges, sizeof edges);
        at = put(out, at, 3, BASIN_I32, 2, 2, edges, sizeof edges);
        return put(out, at, 7, BASIN_U8, 2, 3, masks, sizeof masks);
    }
    if (index > 1) return 0;
    at = put(out, at, 0, BASIN_F32, 3, 2, x, sizeof x);
    at = put(out, at, 8, BASIN_I64, 4, -1, row, sizeof row);
    at = put(out, at, 9, BASIN_I32, 4, -1, col, sizeof col);
    at = put(out, at, 10, BASIN_I64, 4, -1, at_id, sizeof at_id);
    return put(out, at, 11, BASIN_U8, 6, -1, "a\0b\0c", 6);
}
