/* Bundles: tensors and strings by name, in order, found through a dictionary; see basin/io.h. */
#include "engine/io/bundle.h"
#include "base/file.h"
#include "base/shape.h"

#include "base/dictionary.h"
#include "base/number.h"
#include "base/text.h"
#include "base/try.h"

typedef struct entry {
    char *name;
    char *text;          /* of metadata */
    basin_tensor tensor; /* of a tensor */
} entry;

/* Entries in order, each in its own allocation so that pointers to them hold. */
typedef struct table {
    entry **entry;
    size_t count, capacity;
    basin_dictionary names; /* whose numbers are places in `entry` */
} table;

struct basin_bundle {
    char *path;
    table tensors, meta;
    basin_map map;
};

static entry *find(const table *t, const char *name) {
    int32_t at = basin_dictionary_find(&t->names, name);
    return at < 0 ? NULL : t->entry[at];
}

static void entry_free(entry *e) {
    if (!e) return;
    basin_tensor_free(&e->tensor);
    BASIN_FREE(e->name, e->text, e);
}

/* A new entry at the end of the table, or NULL without memory. `name` must not be there yet. */
static entry *append(table *t, const char *name) {
    int32_t at;
    if (!BASIN_RESERVE(&t->entry, &t->capacity, t->count + 1)) return NULL;
    entry *e = calloc(1, sizeof *e);
    if (e) e->name = basin_string_copy(name);
    if (!e || !e->name || basin_dictionary_add(&t->names, &at, name, NULL)) {
        entry_free(e);
        return NULL;
    }
    t->entry[t->count++] = e;
    return e;
}

static void table_free(table *t) {
    for (size_t i = 0; i < t->count; i++) entry_free(t->entry[i]);
    free(t->entry);
    basin_dictionary_free(&t->names);
}

basin_status basin_bundle_new(basin_bundle **bundle, const char *path, basin_error *error) {
    if (!path) path = "";
    *bundle = calloc(1, sizeof **bundle);
    if (*bundle) (*bundle)->path = basin_string_copy(path);
    if (*bundle && (*bundle)->path) return BASIN_OK;
    basin_bundle_free(*bundle);
    *bundle = NULL;
    return basin_fail(error, BASIN_NO_MEMORY, "%s%sno memory for a bundle of tensors", path,
                      *path ? ": " : "");
}

void basin_bundle_free(basin_bundle *bundle) {
    if (!bundle) return;
    table_free(&bundle->tensors);
    table_free(&bundle->meta);
    basin_map_close(&bundle->map);
    BASIN_FREE(bundle->path, bundle);
}

basin_status basin_bundle_blame_file(basin_status status, basin_error *error) {
    if (status != BASIN_BAD_VALUE) return status;
    if (error) error->status = BASIN_BAD_FILE;
    return BASIN_BAD_FILE;
}

const char *basin_bundle_path(const basin_bundle *bundle) { return bundle->path; }

/* "model.safetensors: tensor 'wk' " + what; names are cut so that the reason always has room. */
static basin_status refuse(const basin_bundle *bundle, basin_status status, const char *kind,
                           const char *name, const char *reason, basin_error *error) {
    return basin_fail(error, status, "%s%s%s '%.100s' %s", bundle->path, *bundle->path ? ": " : "",
                      kind, name, reason);
}

basin_status basin_bundle_add(basin_bundle *bundle, const char *name, basin_tensor *tensor,
                              basin_error *error) {
    const char *reason = NULL;
    size_t bytes;
    int64_t count = basin_shape_count(tensor->shape);
    if (strcmp(name, BASIN_METADATA_NAME) == 0)
        reason = "has a reserved name";
    else if (!basin_text_is_utf8(name))
        reason = "has a name that is not UTF-8";
    else if (count < 0 ||
             !basin_size_multiply(&bytes, (size_t)count, basin_dtype_size(tensor->dtype)))
        reason = "has a shape without a valid size";
    else if (count > 0 && !tensor->data)
        reason = "has no data";
    else if (find(&bundle->tensors, name))
        reason = "is there twice";
    if (reason) return refuse(bundle, BASIN_BAD_VALUE, "tensor", name, reason, error);

    entry *e = append(&bundle->tensors, name);
    if (!e) return refuse(bundle, BASIN_NO_MEMORY, "tensor", name, "finds no memory", error);
    e->tensor = *tensor;
    *tensor = (basin_tensor){0};
    return BASIN_OK;
}

const basin_tensor *basin_bundle_find(const basin_bundle *bundle, const char *name) {
    const entry *e = find(&bundle->tensors, name);
    return e ? &e->tensor : NULL;
}

basin_status basin_bundle_get(const basin_tensor **tensor, const basin_bundle *bundle,
                              const char *name, basin_error *error) {
    *tensor = basin_bundle_find(bundle, name);
    if (*tensor) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "%s%sno tensor '%.100s' among its %zu", bundle->path,
                      *bundle->path ? ": " : "", name, bundle->tensors.count);
}

size_t basin_bundle_count(const basin_bundle *bundle) { return bundle->tensors.count; }

const char *basin_bundle_name(const basin_bundle *bundle, size_t i) {
    return i < bundle->tensors.count ? bundle->tensors.entry[i]->name : NULL;
}

const basin_tensor *basin_bundle_at(const basin_bundle *bundle, size_t i) {
    return i < bundle->tensors.count ? &bundle->tensors.entry[i]->tensor : NULL;
}

basin_status basin_bundle_meta_set(basin_bundle *bundle, const char *key, const char *value,
                                   basin_error *error) {
    if (!basin_text_is_utf8(key) || !basin_text_is_utf8(value))
        return refuse(bundle, BASIN_BAD_VALUE, "metadata", key, "is not UTF-8", error);
    char *text = basin_string_copy(value);
    entry *e = find(&bundle->meta, key);
    if (text && !e) e = append(&bundle->meta, key);
    if (!text || !e) {
        free(text);
        return refuse(bundle, BASIN_NO_MEMORY, "metadata", key, "finds no memory", error);
    }
    free(e->text);
    e->text = text;
    return BASIN_OK;
}

const char *basin_bundle_meta(const basin_bundle *bundle, const char *key) {
    const entry *e = find(&bundle->meta, key);
    return e ? e->text : NULL;
}

const char *basin_bundle_meta_at(const basin_bundle *bundle, size_t i, const char **value) {
    bool there = i < bundle->meta.count;
    if (value) *value = there ? bundle->meta.entry[i]->text : NULL;
    return there ? bundle->meta.entry[i]->name : NULL;
}

/* ---- reading files ---- */

/* Zip files start with a local header or, when empty, with the end of the directory. */
static bool is_zip(const void *data, size_t size) {
    return size >= 4 && (!memcmp(data, "PK\3\4", 4) || !memcmp(data, "PK\5\6", 4));
}

basin_status basin_bundle_parse(basin_bundle **bundle, const void *data, size_t size,
                                const char *path, basin_error *error) {
    *bundle = NULL;
    if (is_zip(data, size)) return basin_npz_parse(bundle, data, size, path, false, error);
    return basin_safetensors_parse(bundle, data, size, path, error);
}

static basin_status read_file(basin_bundle **bundle, const char *path, bool numbers_only,
                              basin_error *error) {
    BASIN_AT_EXIT(basin_map_close) basin_map map = {0};
    *bundle = NULL;
    BASIN_TRY(basin_map_open(&map, path, error));
    if (is_zip(map.data, map.size))
        return basin_npz_parse(bundle, map.data, map.size, path, numbers_only, error);
    BASIN_TRY(basin_safetensors_parse(bundle, map.data, map.size, path, error));
    (*bundle)->map = map; /* closed with the bundle */
    map = (basin_map){0};
    return BASIN_OK;
}

basin_status basin_bundle_read_numbers(basin_bundle **bundle, const char *path,
                                       basin_error *error) {
    return read_file(bundle, path, true, error);
}

basin_status basin_bundle_read(basin_bundle **bundle, const char *path, basin_error *error) {
    return read_file(bundle, path, false, error);
}

basin_status basin_bundle_write(const char *path, const basin_bundle *bundle, basin_error *error) {
    size_t length = strlen(path);
    if (length >= 4 && strcmp(path + length - 4, ".npz") == 0)
        return basin_npz_write(path, bundle, error);
    return basin_bundle_write_safetensors(path, bundle, error);
}
