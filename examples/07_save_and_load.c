/* Files: a block's weights to safetensors, to npz, and back, bit for bit.
 *
 * A bundle is what a tensor file holds: tensors by name, and metadata. Reading goes by a file's
 * content, writing by the end of its name. */
#include <string.h>

#include "must.h"

static const char *const path[2] = {"example_block.safetensors", "example_block.npz"};

/* All states of the store, with the configuration that a reader needs to use them. */
static void save(const char *file, basin_store *store) {
    basin_bundle *bundle;
    must(basin_bundle_new(&bundle, NULL, &error));
    const char *name;
    for (int i = 0; (name = basin_store_name(store, i)); i++) {
        basin_tensor tensor;
        must(basin_store_get(&tensor, store, name, &error));
        must(basin_bundle_add(bundle, name, &tensor, &error));
    }
    must(basin_bundle_meta_set(bundle, "hopfield", "relu", &error));
    must(basin_bundle_meta_set(bundle, "alpha", "0.1", &error));
    must(basin_bundle_write(file, bundle, &error));
    basin_bundle_free(bundle);
}

static void print(const basin_bundle *bundle) {
    for (size_t i = 0; i < basin_bundle_count(bundle); i++) {
        const basin_tensor *tensor = basin_bundle_at(bundle, i);
        char shape[BASIN_SHAPE_TEXT];
        printf("  %-6s %s %s\n", basin_bundle_name(bundle, i), basin_dtype_name(tensor->dtype),
               basin_shape_print(shape, tensor->shape));
    }
    const char *key, *value;
    for (size_t i = 0; (key = basin_bundle_meta_at(bundle, i, &value)); i++)
        printf("  %s = %s\n", key, value);
}

static bool equal(const basin_bundle *a, const basin_bundle *b) {
    for (size_t i = 0; i < basin_bundle_count(a); i++) {
        const basin_tensor *here = basin_bundle_at(a, i), *there;
        must(basin_bundle_get(&there, b, basin_bundle_name(a, i), &error));
        if (here->dtype != there->dtype || !basin_shape_equal(here->shape, there->shape) ||
            memcmp(here->data, there->data, basin_tensor_bytes(here)) != 0)
            return false;
    }
    return basin_bundle_count(a) == basin_bundle_count(b);
}

int main(void) {
    basin_backend *backend;
    basin_store *store, *fresh;
    basin_graph *graph = basin_graph_new();
    if (!graph) return 1;
    must(basin_backend_open(&backend, NULL, &error));
    must(basin_store_new(&store, backend, &error));
    must(basin_store_new(&fresh, backend, &error));

    basin_params params;
    basin_block block;
    basin_block_config config = {.dim = 8, .heads = 2, .head_dim = 4, .memories = 16};
    basin_params_begin(&params, graph);
    must(basin_block_declare(&block, &params, "", &config));
    must(basin_params_init(&params, store, 5, &error));

    basin_bundle *bundle[2];
    for (int i = 0; i < 2; i++) {
        save(path[i], store);
        must(basin_bundle_read(&bundle[i], path[i], &error));
        printf("%s\n", path[i]);
        print(bundle[i]);
    }
    printf("the two are %s\n", equal(bundle[0], bundle[1]) ? "equal" : "different");

    /* Into another store: from here on a plan made on it computes with the weights of the file. */
    size_t states = basin_bundle_count(bundle[0]);
    for (size_t i = 0; i < states; i++)
        must(basin_store_write(fresh, basin_bundle_name(bundle[0], i),
                               basin_bundle_at(bundle[0], i), &error));
    printf("%zu states loaded\n", states);

    /* A wrong file is one clear line, not a crash. */
    basin_bundle *none;
    if (basin_bundle_read(&none, "no_such_file.npz", &error)) printf("error: %s\n", error.text);

    for (int i = 0; i < 2; i++) {
        basin_bundle_free(bundle[i]);
        remove(path[i]);
    }
    basin_params_free(&params);
    basin_graph_free(graph);
    basin_store_free(fresh);
    basin_store_free(store);
    basin_backend_close(backend);
    return 0;
}
