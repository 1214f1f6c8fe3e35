/* The safetensors format: u64 little-endian header length, a JSON header, the data.
 *
 *     {"__metadata__": {"key": "text"}, "wk": {"dtype": "F32", "shape": [2, 3],
 *      "data_offsets": [0, 24]}, ...}
 *
 * Offsets count from the end of the header; together the tensors cover the data without holes or
 * overlap. Everything a file claims is checked before it is used. */

#include "base/file.h"
#include "base/shape.h"
#include "engine/io/bundle.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "data are mapped as they lie in the file");

enum { LENGTH_BYTES = 8, HEADER_MAX = 100000000 };

/* A file being read: the data that follows its header, and the spans of it that are taken. */
typedef struct span {
    size_t begin, end;
    const char *name; /* borrowed from the JSON tree */
} span;

typedef struct reading {
    const char *path;
    const unsigned char *data; /* [size] */
    size_t size;
    basin_bundle *bundle;
    span *spans;
    size_t count, capacity;
    basin_error *error;
} reading;

/* A JSON number as a size. Doubles hold integers exactly only below 2^53. */
static bool number_to_size(size_t *value, const cJSON *item) {
    if (!cJSON_IsNumber(item)) return false;
    double number = item->valuedouble;
    if (!(number >= 0 && number < 9007199254740992.0)) return false;
    *value = (size_t)number;
    return (double)*value == number;
}

static basin_status bad(const reading *in, const char *name, const char *what) {
    return basin_fail(in->error, BASIN_BAD_FILE, "%s: tensor '%.100s': %s", in->path, name, what);
}

static basin_status read_dtype(basin_dtype *dtype, const reading *in, const cJSON *item,
                               const char *name) {
    if (!cJSON_IsString(item)) return bad(in, name, "dtype is not a string");
    for (basin_dtype d = BASIN_F64; d <= BASIN_BOOL; d++) {
        if (strcmp(item->valuestring, basin_dtype_name(d)) == 0) {
            *dtype = d;
            return BASIN_OK;
        }
    }
    return basin_fail(in->error, BASIN_UNSUPPORTED,
                      "%s: tensor '%.100s': dtype '%.40s' is not one of F64 F32 F16 BF16 I64 I32 "
                      "I16 I8 U8 BOOL",
                      in->path, name, item->valuestring);
}

static basin_status read_shape(basin_shape *shape, const reading *in, const cJSON *item,
                               const char *name) {
    const cJSON *dim;
    *shape = BASIN_SCALAR;
    if (!cJSON_IsArray(item)) return bad(in, name, "shape is not a list");
    cJSON_ArrayForEach(dim, item) {
        size_t value;
        if (shape->rank == BASIN_MAX_RANK)
            return basin_fail(in->error, BASIN_UNSUPPORTED,
                              "%s: tensor '%.100s': rank %d, at most %d is supported", in->path,
                              name, cJSON_GetArraySize(item), BASIN_MAX_RANK);
        if (!number_to_size(&value, dim))
            return basin_fail(
                in->error, BASIN_BAD_FILE,
                "%s: tensor '%.100s': dimension %d of the shape is %.17g, not a whole "
                "number from 0 to 2^53",
                in->path, name, shape->rank, cJSON_IsNumber(dim) ? dim->valuedouble : 0.0 / 0.0);
        shape->dim[shape->rank++] = (int64_t)value;
    }
    return BASIN_OK;
}

static basin_status read_offsets(span *at, const reading *in, const cJSON *item, const char *name) {
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2 ||
        !number_to_size(&at->begin, item->child) || !number_to_size(&at->end, item->child->next))
        return bad(in, name, "data_offsets are not two whole numbers from 0 to 2^53");
    if (at->begin > at->end || at->end > in->size)
        return basin_fail(in->error, BASIN_BAD_FILE,
                          "%s: tensor '%.100s': data_offsets [%zu, %zu] do not lie within the %zu "
                          "bytes of data",
                          in->path, name, at->begin, at->end, in->size);
    at->name = name;
    return BASIN_OK;
}

static basin_status check_span(const reading *in, const span *at, basin_dtype dtype,
                               basin_shape shape) {
    size_t bytes;
    int64_t count = basin_shape_count(shape);
    const char *text = basin_shape_text(shape);
    if (count < 0 || !basin_size_multiply(&bytes, (size_t)count, basin_dtype_size(dtype)))
        return basin_fail(in->error, BASIN_BAD_FILE,
                          "%s: tensor '%.100s': shape %s of %s is too large for any file", in->path,
                          at->name, text, basin_dtype_name(dtype));
    if (bytes != at->end - at->begin)
        return basin_fail(
            in->error, BASIN_BAD_FILE,
            "%s: tensor '%.100s': data_offsets [%zu, %zu] span %zu bytes, shape %s of %s needs %zu",
            in->path, at->name, at->begin, at->end, at->end - at->begin, text,
            basin_dtype_name(dtype), bytes);
    return BASIN_OK;
}

/* Borrows the data where their address suits the type, else copies them. */
static basin_status add_tensor(reading *in, const span *at, basin_dtype dtype, basin_shape shape) {
    const unsigned char *data = in->data + at->begin;
    basin_tensor tensor = basin_tensor_view(data, dtype, shape);
    if ((uintptr_t)data % basin_dtype_size(dtype) != 0) {
        BASIN_TRY(basin_tensor_new(&tensor, dtype, shape, in->error));
        memcpy(tensor.data, data, at->end - at->begin);
    }
    basin_status status = basin_bundle_add(in->bundle, at->name, &tensor, in->error);
    basin_tensor_free(&tensor);
    return basin_bundle_blame_file(status, in->error);
}

static basin_status read_tensor(reading *in, const cJSON *item) {
    const char *name = item->string;
    const cJSON *field, *dtype_item = NULL, *shape_item = NULL, *offsets_item = NULL;
    basin_dtype dtype = BASIN_F64;
    basin_shape shape;
    span at;
    if (!cJSON_IsObject(item)) return bad(in, name, "its entry is not a JSON object");
    cJSON_ArrayForEach(field, item) {
        const cJSON **known = strcmp(field->string, "dtype") == 0          ? &dtype_item
                              : strcmp(field->string, "shape") == 0        ? &shape_item
                              : strcmp(field->string, "data_offsets") == 0 ? &offsets_item
                                                                           : NULL;
        if (known && *known) return bad(in, name, "a field of its entry is there twice");
        if (known) *known = field;
    }
    if (!dtype_item || !shape_item || !offsets_item)
        return bad(in, name, "its entry lacks dtype, shape or data_offsets");
    BASIN_TRY(read_dtype(&dtype, in, dtype_item, name));
    BASIN_TRY(read_shape(&shape, in, shape_item, name));
    BASIN_TRY(read_offsets(&at, in, offsets_item, name));
    BASIN_TRY(check_span(in, &at, dtype, shape));
    BASIN_TRY(add_tensor(in, &at, dtype, shape));
    if (!basin_array_reserve((void **)&in->spans, &in->capacity, in->count + 1, sizeof at))
        return basin_fail_memory(in->error, "a list of tensors");
    in->spans[in->count++] = at;
    return BASIN_OK;
}

static int span_order(const void *a, const void *b) {
    const span *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Sorted, each span must begin where the one before ended, and the last end with the file. */
static basin_status check_cover(const reading *in) {
    size_t covered = 0;
    if (in->count) qsort(in->spans, in->count, sizeof *in->spans, span_order);
    for (size_t i = 0; i < in->count; i++) {
        const span *at = &in->spans[i];
        if (at->begin < covered)
            return basin_fail(in->error, BASIN_BAD_FILE,
                              "%s: tensor '%.100s': data_offsets [%zu, %zu] overlap those of "
                              "'%.100s' [%zu, %zu]",
                              in->path, at->name, at->begin, at->end, at[-1].name, at[-1].begin,
                              at[-1].end);
        if (at->begin > covered)
            return basin_fail(in->error, BASIN_BAD_FILE,
                              "%s: tensor '%.100s': data_offsets begin at %zu, and no tensor has "
                              "the bytes from %zu on",
                              in->path, at->name, at->begin, covered);
        covered = at->end;
    }
    if (covered == in->size) return BASIN_OK;
    return basin_fail(in->error, BASIN_BAD_FILE,
                      "%s: %zu bytes of data, of which the tensors cover only %zu", in->path,
                      in->size, covered);
}

static basin_status read_entries(reading *in, const cJSON *tree) {
    const cJSON *item;
    bool metadata = false;
    cJSON_ArrayForEach(item, tree) {
        bool is_metadata = strcmp(item->string, BASIN_METADATA_NAME) == 0;
        if (is_metadata && metadata)
            return basin_fail(in->error, BASIN_BAD_FILE, "%s: __metadata__ is there twice",
                              in->path);
        metadata = metadata || is_metadata;
        BASIN_TRY(is_metadata ? basin_json_to_meta(in->bundle, item, in->error)
                              : read_tensor(in, item));
    }
    return check_cover(in);
}

basin_status basin_safetensors_parse(basin_bundle **bundle, const void *data, size_t size,
                                     const char *path, basin_error *error) {
    const unsigned char *bytes = data;
    uint64_t length = 0;
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    *bundle = NULL;
    if (size < LENGTH_BYTES)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: %s: %zu bytes, a safetensors file has 10 or more", path,
                          size ? "cut short" : "empty", size);
    for (int i = 0; i < LENGTH_BYTES; i++) length |= (uint64_t)bytes[i] << 8 * i;
    size -= LENGTH_BYTES;
    if (length > HEADER_MAX)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: not a safetensors file: its first %d bytes are not the length "
                          "of a header, at most %d",
                          path, LENGTH_BYTES, HEADER_MAX);
    if (length > size)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: cut short: a header of %llu bytes in a file with room for %zu", path,
                          (unsigned long long)length, size);
    reading in = {.path = path, .error = error};
    in.data = bytes + LENGTH_BYTES + length;
    in.size = size - (size_t)length;
    basin_status status =
        basin_json_parse(&tree, bytes + LENGTH_BYTES, (size_t)length, path, "the header", error);
    if (!status) status = basin_bundle_new(&in.bundle, path, error);
    if (!status) status = read_entries(&in, tree);
    free(in.spans);
    if (status) basin_bundle_free(in.bundle);
    *bundle = status ? NULL : in.bundle;
    return status;
}

/* Where the data of each tensor begin: those of large elements first, so that each is aligned to
 * its element without the holes that the format forbids. */
static void lay_out(size_t *begin /* [count] */, const basin_bundle *bundle) {
    size_t at = 0, count = basin_bundle_count(bundle);
    for (size_t element = 8; element >= 1; element /= 2)
        for (size_t i = 0; i < count; i++) {
            const basin_tensor *tensor = basin_bundle_at(bundle, i);
            if (basin_dtype_size(tensor->dtype) != element) continue;
            begin[i] = at;
            at += basin_tensor_bytes(tensor);
        }
}

static bool add_entry(cJSON *tree, const char *name, const basin_tensor *tensor, size_t begin) {
    cJSON *item = cJSON_AddObjectToObject(tree, name);
    if (!item || !cJSON_AddStringToObject(item, "dtype", basin_dtype_name(tensor->dtype)))
        return false;
    cJSON *shape = cJSON_AddArrayToObject(item, "shape");
    for (int i = 0; shape && i < tensor->shape.rank; i++)
        if (!cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)tensor->shape.dim[i])))
            return false;
    cJSON *offsets = cJSON_AddArrayToObject(item, "data_offsets");
    double end = (double)(begin + basin_tensor_bytes(tensor));
    return shape && offsets && cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)begin)) &&
           cJSON_AddItemToArray(offsets, cJSON_CreateNumber(end));
}

/* The header as JSON text, to be released with cJSON_free; NULL without memory. */
static char *header_print(const basin_bundle *bundle, const size_t *begin /* [count] */) {
    char *text = NULL;
    size_t count = basin_bundle_count(bundle);
    cJSON *tree = cJSON_CreateObject();
    cJSON *meta = basin_json_from_meta(bundle);
    bool done = tree && meta;
    if (done && meta->child) done = cJSON_AddItemToObject(tree, BASIN_METADATA_NAME, meta);
    if (!done || !meta->child) cJSON_Delete(meta);
    for (size_t i = 0; done && i < count; i++)
        done = add_entry(tree, basin_bundle_name(bundle, i), basin_bundle_at(bundle, i), begin[i]);
    if (done) text = cJSON_PrintUnformatted(tree);
    cJSON_Delete(tree);
    return text;
}

static basin_status write_all(basin_writer *writer, const basin_bundle *bundle, const char *header,
                              basin_error *error) {
    unsigned char prefix[LENGTH_BYTES];
    size_t length = strlen(header), padding = (8 - length % 8) % 8;
    for (int i = 0; i < LENGTH_BYTES; i++)
        prefix[i] = (unsigned char)((uint64_t)(length + padding) >> 8 * i);
    BASIN_TRY(basin_writer_put(writer, prefix, sizeof prefix, error));
    BASIN_TRY(basin_writer_put(writer, header, length, error));
    BASIN_TRY(basin_writer_put(writer, "       ", padding, error));
    for (size_t element = 8; element >= 1; element /= 2)
        for (size_t i = 0; i < basin_bundle_count(bundle); i++) {
            const basin_tensor *t = basin_bundle_at(bundle, i);
            if (basin_dtype_size(t->dtype) == element)
                BASIN_TRY(basin_writer_put(writer, t->data, basin_tensor_bytes(t), error));
        }
    return BASIN_OK;
}

basin_status basin_bundle_write_safetensors(const char *path, const basin_bundle *bundle,
                                            basin_error *error) {
    BASIN_FREE_AT_EXIT size_t *begin = basin_array_new(basin_bundle_count(bundle), sizeof *begin);
    if (begin) lay_out(begin, bundle);
    BASIN_FREE_AT_EXIT char *header = begin ? header_print(bundle, begin) : NULL;
    basin_writer writer;
    if (!header) return basin_fail_memory(error, "a header of tensors");
    if (strlen(header) > HEADER_MAX - 8)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: a header of %zu bytes, safetensors allows %d", path, strlen(header),
                          HEADER_MAX);
    BASIN_TRY(basin_writer_create(&writer, path, error));
    return basin_writer_finish(&writer, write_all(&writer, bundle, header, error), error);
}
