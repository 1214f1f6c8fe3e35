/* Model files of every task with one bit changed: each is refused in one line, or is the same as
 * the whole one. FLIPS is how many bits of the header, and of the tensors of each type. */
#include "base/file.h"
#include "tasks/common/digest.h"
#include "tasks/graphs/graph_world.h"
#include "tasks/nodes/context/context.h"
#include "tasks/nodes/fraud.h"
#include "tasks/pictures/image_bench.h"

/* Opens a model and writes it again. */
typedef basin_status rewrite(const char *to, const char *from, basin_backend *backend,
                             basin_error *error);

static basin_status rewrite_nodes(const char *to, const char *from, basin_backend *backend,
                                  basin_error *error) {
    basin_nodes_model *model;
    BASIN_TRY(basin_nodes_open(&model, "anomaly", from, backend, error));
    basin_status status = basin_nodes_write(to, model, error);
    basin_nodes_close(model);
    return status;
}

static basin_status rewrite_image(const char *to, const char *from, basin_backend *backend,
                                  basin_error *error) {
    basin_image_model *model;
    BASIN_TRY(basin_image_open(&model, from, backend, error));
    basin_status status = basin_image_write(to, model, BASIN_F32, error);
    basin_image_close(model);
    return status;
}

static basin_status rewrite_graphs(const char *to, const char *from, basin_backend *backend,
                                   basin_error *error) {
    basin_graphs_model *model;
    BASIN_TRY(basin_graphs_open(&model, from, backend, error));
    basin_status status = basin_graphs_write(to, model, error);
    basin_graphs_close(model);
    return status;
}

/* It is never written: the number of its weights has to do. */
static basin_status rewrite_context(const char *to, const char *from, basin_backend *backend,
                                    basin_error *error) {
    basin_context_net *net;
    BASIN_TRY(basin_context_net_open(&net, from, backend, error));
    FILE *file = fopen(to, "w");
    assert_non_null(file);
    fprintf(file, "%lld\n", (long long)basin_context_net_shape(net).parameters);
    fclose(file);
    basin_context_net_close(net);
    return BASIN_OK;
}

static void write_bytes(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_true(file && fwrite(data, 1, size, file) == size && !fclose(file));
}

/* Changes single bits of bytes `begin` to `end`; how many files were refused. */
static int flip(const char *path, void **state, size_t begin, size_t end, rewrite *again,
                basin_backend *backend) {
    char *good_copy = folder_path(state, "good");
    size_t size, good_size, other_size;
    char *data = slurp(&size, path);
    basin_random draw = basin_random_start(31, begin, 0);
    int refused = 0;
    char *bad = folder_path(state, "damaged.safetensors");
    assert_ok(again(good_copy, path, backend, &failure));
    char *bad_copy = folder_path(state, "bad");
    char *good = slurp(&good_size, good_copy);
    for (int i = 0; i < FLIPS; i++) {
        basin_error error = {0};
        size_t at = begin + (size_t)basin_random_below(&draw, end - begin);
        char bit = (char)(1 << basin_random_below(&draw, 8));
        data[at] ^= bit;
        write_bytes(bad, data, size);
        if (again(bad_copy, bad, backend, &error)) {
            refused++;
            assert_true(*error.text && !strchr(error.text, '\n'));
            if (!strstr(error.text, bad)) fail_msg("does not name the file: %s", error.text);
        } else {
            char *other = slurp(&other_size, bad_copy);
            if (other_size != good_size || memcmp(good, other, good_size))
                fail_msg("%s: bit %d of byte %zu makes another model", path, bit, at);
            free(other);
        }
        data[at] ^= bit;
    }
    free(good), free(data);
    return refused;
}

/* The header, then all tensors of each type, which lie one after the other. */
static void flips(const char *path, void **state, rewrite *again, basin_backend *backend) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    BASIN_AT_EXIT(basin_map_close) basin_map map;
    assert_ok(basin_model_read(&bundle, path, &failure));
    assert_true(basin_bundle_has_digests(bundle));
    assert_ok(basin_map_open(&map, path, &failure));
    uint64_t header;
    memcpy(&header, map.data, sizeof header);
    size_t first = 8 + (size_t)header;
    int refused = flip(path, state, 0, first, again, backend);
    print_message("header: %d of %d refused\n", refused, FLIPS);
    assert_true(refused > FLIPS * 9 / 10);
    for (size_t size = 8, begin = first, end; size; size /= 2, begin = end) {
        end = begin;
        for (size_t i = 0; i < basin_bundle_count(bundle); i++) {
            const basin_tensor *t = basin_bundle_at(bundle, i);
            if (basin_dtype_size(t->dtype) == size) end += basin_tensor_bytes(t);
        }
        if (end == begin) continue;
        refused = flip(path, state, begin, end, again, backend);
        print_message("%zu bytes of types of %zu: %d of %d refused\n", end - begin, size, refused,
                      FLIPS);
        assert_int_equal(refused, FLIPS);
    }
}

static void detector(void **state, int64_t trees) {
    BASIN_AT_EXIT(fraud_scene_free) fraud_scene s = fraud_scene_of(fraud_new(200, 3, 1, false));
    s.settings.trees = trees, s.settings.epochs = 2, s.settings.labels = true;
    s.model = fraud_train(s.network, s.part, &s.settings, &s.training);
    char *path = folder_path(state, "detector.safetensors");
    assert_ok(basin_nodes_write(path, s.model, &failure));
    flips(path, state, rewrite_nodes, s.training.backend);
}

TEST(damage_to_a_detector) { detector(state, 0); }

TEST(damage_to_trees) {
    needs_xgboost();
    detector(state, 5);
}

TEST(damage_to_a_model_of_pictures) {
    BASIN_AT_EXIT(bench_close) bench b;
    bench_tiny(&b, state, "pictures");
    b.s->epochs = 1;
    bench_train(&b, -1, false);
    flips(b.out, state, rewrite_image, b.training.backend);
}

TEST(damage_to_a_model_of_graphs) {
    enum { GRAPHS = 24 };
    char *path = folder_path(state, "graphs.safetensors");
    BASIN_AT_EXIT(basin_graphset_free) basin_graphset set;
    basin_graphs_settings s = world_settings();
    basin_settings settings = {.kind = &basin_graphs_task, .values = &s};
    basin_training_options training = fraud_training();
    basin_training_result outcome = {.size = sizeof outcome};
    int64_t *all = basin_graphs_range(0, GRAPHS);
    world_new(&set, BASIN_GRAPHS_CLASSES, GRAPHS, 4, NULL);
    basin_graphs_train_data data = {.set = &set, .graph = all, .graphs = GRAPHS};
    s.epochs = 1;
    training.output = path;
    assert_ok(basin_graphs_train(NULL, &outcome, &settings, &data, &training, &failure));
    flips(path, state, rewrite_graphs, training.backend);
    basin_backend_close(training.backend);
    free(all);
}

TEST(damage_to_weights_of_detection_in_context) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    basin_training_options training = fraud_training();
    assert_ok(basin_bundle_read(&bundle, BASIN_SOURCE "/tests/golden/context/context.safetensors",
                                &failure));
    assert_ok(basin_bundle_digest(bundle, &failure));
    char *path = folder_path(state, "context.safetensors");
    assert_ok(basin_bundle_write(path, bundle, &failure));
    flips(path, state, rewrite_context, training.backend);
    basin_backend_close(training.backend);
}

/* Files without digests, of older versions or of other programs, are what they are. */
TEST(digests_may_be_absent_and_in_another_order) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *one, *two;
    float x[2] = {1, 2};
    const char *value;
    assert_ok(basin_bundle_new(&one, "one", &failure));
    assert_ok(basin_bundle_new(&two, "two", &failure));
    assert_ok(basin_bundle_put(one, "a", x, BASIN_F32, BASIN_SHAPE(2), &failure));
    assert_ok(basin_bundle_put(one, "b", x, BASIN_F32, BASIN_SHAPE(2, 1), &failure));
    assert_ok(basin_bundle_meta_set(one, "key", "value", &failure));
    assert_ok(basin_bundle_check(one, &failure));
    assert_ok(basin_bundle_digest(one, &failure));
    assert_ok(basin_bundle_check(one, &failure));
    for (size_t i = 2; i-- > 0;) {
        const char *key = basin_bundle_meta_at(one, i, &value);
        assert_ok(basin_bundle_meta_set(two, key, value, &failure));
    }
    assert_ok(basin_bundle_put(two, "b", x, BASIN_F32, BASIN_SHAPE(2, 1), &failure));
    assert_failure(basin_bundle_check(two, &failure), BASIN_BAD_FILE, "two: the list of tensors");
    assert_ok(basin_bundle_put(two, "a", x, BASIN_F32, BASIN_SHAPE(2), &failure));
    assert_ok(basin_bundle_check(two, &failure));
    x[1] = 3;
    assert_failure(basin_bundle_check(two, &failure), BASIN_BAD_FILE, "two: tensor b");
    x[1] = 2;
    assert_ok(basin_bundle_meta_set(two, "key", "Value", &failure));
    assert_failure(basin_bundle_check(two, &failure), BASIN_BAD_FILE, "two: the metadata");
}

int main(void) { return tests_run(folder_new, folder_remove); }
