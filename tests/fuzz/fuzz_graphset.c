/* Fuzz target: any bytes as a set of graphs: packed (safetensors), ZINC (npz), or an archive of a
 * TUDataset.
 * What is read is encoded and laid out as a batch. */
#include <stdlib.h>
#include <string.h>

#include "engine/io/bundle.h"
#include "fuzz/fuzz.h"
#include "fuzz/memory_file.h"
#include "fuzz/pack.h"
#include "tasks/graphs/set/graphset.h"
#include "tasks/graphs/set/tiny_tu.h"

enum { GRAPHS = 64, NODES = 2000, FEATURES = 1 << 12 };

static void use(const basin_graphset *set) {
    int64_t graph[GRAPHS], count = set->graphs < GRAPHS ? set->graphs : GRAPHS;
    basin_graphset_encoding encoding;
    basin_graphset_batch batch = {0};
    basin_encoding_spec spec = {.standardise = true, .edge_sums = true, .degrees = 4};
    if (set->graphs < 1 || set->nodes > NODES) return;
    for (int64_t i = 0; i < count; i++) graph[i] = i;
    if (basin_graphset_encoding_new(&encoding, set, graph, count, &spec, NULL)) return;
    if (encoding.features <= FEATURES && encoding.edge_features <= FEATURES) {
        basin_positions none = {0};
        (void)basin_graphset_batch_fill(&batch, set, &encoding, &none, graph, count, false, 1, 0,
                                        NULL);
    }
    basin_graphset_batch_free(&batch);
    basin_graphset_encoding_free(&encoding);
}

static void check(basin_graphset *set, basin_status status, const basin_error *error) {
    if (status && (error->status != status || !*error->text || set->node_start)) abort();
    if (!status) use(set);
    if (!status) basin_graphset_free(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    basin_graphset set;
    basin_bundle *bundle;
    basin_error error = {0};
    basin_status status = basin_graphset_parse_tu(&set, data, size, "fuzz", false, &error);
    check(&set, status, &error);
    if (!basin_safetensors_parse(&bundle, data, size, "fuzz", NULL)) {
        status = basin_graphset_from_bundle(&set, bundle, "fuzz", &error);
        check(&set, status, &error);
    }
    if (!basin_npz_parse(&bundle, data, size, "fuzz", false, NULL)) {
        status = basin_graphset_from_bundle(&set, bundle, "fuzz", &error);
        check(&set, status, &error);
    }
    return 0;
}

static size_t seed_tu(uint8_t *out, int form) {
    packed_file file[TINY_FILES];
    for (int i = 0; i < TINY_FILES; i++)
        file[i] = (packed_file){tiny_tu[i].name, tiny_tu[i].text, strlen(tiny_tu[i].text)};
    return pack(out, FUZZ_ROOM, form, file, TINY_FILES);
}

static size_t seed_packed(uint8_t *out) {
    char path[MEMORY_PATH];
    basin_graphset set;
    size_t size = seed_tu(out, PACK_TAR);
    if (basin_graphset_parse_tu(&set, out, size, "T", false, NULL)) abort();
    set.split[0] = 2, set.split[1] = 1;
    temporary_name(path, "safetensors");
    if (basin_graphset_write(path, &set, NULL)) abort();
    basin_graphset_free(&set);
    return take_file(out, FUZZ_ROOM, path);
}

static void put(basin_bundle *bundle, const char *split, const char *name, const int32_t *number,
                int64_t count) {
    char key[40];
    snprintf(key, sizeof key, "%s_%s", split, name);
    basin_tensor t = basin_tensor_view(number, BASIN_I32, BASIN_SHAPE(count));
    if (basin_bundle_add(bundle, key, &t, NULL)) abort();
}

static size_t seed_zinc(uint8_t *out) {
    static const char *const split[] = {"train", "val", "test"};
    static const int32_t node_ptr[] = {0, 2, 5}, edge_ptr[] = {0, 1, 3}, atom[] = {3, 0, 1, 1, 27};
    static const int32_t bond[] = {1, 2, 3}, edge[] = {0, 1, 0, 1, 1, 2}, y[] = {1, 2};
    char path[MEMORY_PATH];
    basin_bundle *bundle;
    if (basin_bundle_new(&bundle, NULL, NULL)) abort();
    for (int s = 0; s < 3; s++) {
        put(bundle, split[s], "node_ptr", node_ptr, 3);
        put(bundle, split[s], "edge_ptr", edge_ptr, 3);
        put(bundle, split[s], "atom", atom, 5);
        put(bundle, split[s], "bond", bond, 3);
        put(bundle, split[s], "edge", edge, 6);
        put(bundle, split[s], "y", y, 2);
    }
    temporary_name(path, "npz");
    if (basin_npz_write(path, bundle, NULL)) abort();
    basin_bundle_free(bundle);
    return take_file(out, FUZZ_ROOM, path);
}

size_t fuzz_seed(uint8_t out[FUZZ_ROOM], int index) {
    switch (index) {
    case 0: return seed_packed(out);
    case 1: return seed_tu(out, PACK_TAR);
    case 2: return seed_tu(out, PACK_ZIP);
    case 3: return seed_zinc(out);
    default: return 0;
    }
}
