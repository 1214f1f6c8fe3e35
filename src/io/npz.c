/* npz: a zip archive with one .npy array per entry.
 *
 * An array's type and shape must account for every byte of its entry before memory is asked for,
 * and the zip reader has checked by then that the entry can hold that many. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/zip.h"

/* The array being read: its name without ".npy", and what errors need. */
typedef struct reading {
    basin_bundle *bundle;
    const char *path;
    char *name;
    basin_zip_stream stream;
    bool numbers_only; /* arrays of other types are passed over */
    basin_error *error;
} reading;

static basin_status bad(const reading *in, basin_status status, const char *what) {
    return basin_fail(in->error, status, "%s: array '%.100s': %s", in->path, in->name, what);
}

static basin_status no_memory(const reading *in) {
    return bad(in, BASIN_NO_MEMORY, "out of memory to read it");
}

static basin_status read_header(basin_npy *npy, reading *in) {
    unsigned char preamble[BASIN_NPY_PREAMBLE];
    char reason[BASIN_NPY_TEXT];
    size_t before, length;
    basin_status status = basin_zip_stream_read(&in->stream, preamble, sizeof preamble, in->error);
    if (status != BASIN_OK) return status;
    if (!basin_npy_lengths(&before, &length, preamble))
        return bad(in, BASIN_BAD_FILE, "is not a .npy array of version 1, 2 or 3");
    size_t had = sizeof preamble - before; /* of the text, in a preamble of version 1 */
    if (length < had || length > BASIN_NPY_HEADER_MAX)
        return bad(in, BASIN_BAD_FILE, "its header has no valid length");
    char *text = basin_array_new(length, 1);
    if (!text) return no_memory(in);
    memcpy(text, preamble + before, had);
    status = basin_zip_stream_read(&in->stream, text + had, length - had, in->error);
    if (status == BASIN_OK) {
        status = basin_npy_parse(npy, reason, text, length);
        if (status != BASIN_OK) bad(in, status, reason);
    }
    free(text);
    return status;
}

/* The rest of the entry must be exactly the elements. */
static basin_status check_bytes(size_t *bytes, const basin_npy *npy, const reading *in) {
    char text[BASIN_SHAPE_TEXT];
    size_t left = in->stream.entry->size - in->stream.taken;
    int64_t count = basin_shape_count(npy->shape);
    basin_shape_print(text, npy->shape);
    if (count < 0 || !basin_size_multiply(bytes, (size_t)count, npy->size))
        return basin_fail(in->error, BASIN_BAD_FILE,
                          "%s: array '%.100s': shape %s of '%s' is too large for any file",
                          in->path, in->name, text, npy->descr);
    if (*bytes != left)
        return basin_fail(in->error, BASIN_BAD_FILE,
                          "%s: array '%.100s': %zu bytes of data, shape %s of '%s' needs %zu",
                          in->path, in->name, left, text, npy->descr, *bytes);
    return BASIN_OK;
}

static void swap_bytes(unsigned char *data, size_t bytes, size_t size) {
    for (size_t i = 0; i < bytes; i += size)
        for (size_t a = i, b = i + size - 1; a < b; a++, b--) {
            unsigned char byte = data[a];
            data[a] = data[b];
            data[b] = byte;
        }
}

/* Element `to` of the tensor from the element at `from`; unsigned types get the next wider signed
 * one. False if a u8 does not fit. */
static bool place(basin_tensor *tensor, int64_t to, const unsigned char *from, const basin_npy *npy,
                  bool is_unsigned) {
    uint64_t value = 0;
    if (!is_unsigned) {
        memcpy((unsigned char *)tensor->data + (size_t)to * npy->size, from, npy->size);
        return true;
    }
    memcpy(&value, from, npy->size);
    if (tensor->dtype == BASIN_I32)
        ((int32_t *)tensor->data)[to] = (int32_t)value;
    else
        ((int64_t *)tensor->data)[to] = (int64_t)value;
    return value <= INT64_MAX;
}

/* Walks through the tensor in its own order, the last index fastest, with `from` the position in
 * the file, whose strides grow from the first index (Fortran) or from the last. */
static bool place_all(basin_tensor *tensor, const unsigned char *raw, const basin_npy *npy,
                      bool is_unsigned) {
    int rank = npy->shape.rank;
    int64_t stride[BASIN_MAX_RANK], index[BASIN_MAX_RANK] = {0}, step = 1, from = 0;
    int64_t count = basin_shape_count(npy->shape);
    for (int i = 0; i < rank; i++) {
        int axis = npy->fortran ? i : rank - 1 - i;
        stride[axis] = step;
        step *= npy->shape.dim[axis];
    }
    for (int64_t to = 0; to < count; to++) {
        if (!place(tensor, to, raw + (size_t)from * npy->size, npy, is_unsigned)) return false;
        for (int axis = rank - 1; axis >= 0; axis--) {
            from += stride[axis];
            if (++index[axis] < npy->shape.dim[axis]) break;
            from -= stride[axis] * npy->shape.dim[axis];
            index[axis] = 0;
        }
    }
    return true;
}

/* Unpacks into the tensor itself where the file has its type and order, else by way of a copy. */
static basin_status read_elements(basin_tensor *tensor, const basin_npy *npy, size_t bytes,
                                  reading *in) {
    bool is_unsigned = strchr(npy->descr, 'u') && npy->dtype != BASIN_U8;
    bool direct = !is_unsigned && !(npy->fortran && npy->shape.rank > 1);
    basin_status status = basin_tensor_new(tensor, npy->dtype, npy->shape, NULL);
    if (status != BASIN_OK) return no_memory(in);
    unsigned char *raw = direct ? tensor->data : basin_array_new(bytes, 1);
    if (!raw) return no_memory(in);
    status = basin_zip_stream_read(&in->stream, raw, bytes, in->error);
    if (status == BASIN_OK) status = basin_zip_stream_finish(&in->stream, in->error);
    if (status == BASIN_OK && npy->swapped) swap_bytes(raw, bytes, npy->size);
    if (status == BASIN_OK && !direct && !place_all(tensor, raw, npy, is_unsigned))
        status = bad(in, BASIN_UNSUPPORTED, "has a u8 above 2^63 - 1, the largest I64");
    if (!direct) free(raw);
    return status;
}

/* "__metadata__" holds the metadata as the writer below puts them there. */
static basin_status add(reading *in, basin_tensor *tensor) {
    cJSON *tree = NULL;
    if (strcmp(in->name, BASIN_METADATA_NAME) != 0)
        return basin_bundle_blame_file(basin_bundle_add(in->bundle, in->name, tensor, in->error),
                                       in->error);
    if (tensor->dtype != BASIN_U8 || tensor->shape.rank != 1)
        return bad(in, BASIN_BAD_FILE, "is not a text of bytes");
    basin_status status = basin_json_parse(&tree, tensor->data, (size_t)tensor->shape.dim[0],
                                           in->path, BASIN_METADATA_NAME, in->error);
    if (status == BASIN_OK) status = basin_json_to_meta(in->bundle, tree, in->error);
    cJSON_Delete(tree);
    return status;
}

static basin_status read_array(reading *in, const basin_zip *zip, const basin_zip_entry *entry) {
    basin_npy npy;
    basin_tensor tensor = {0};
    size_t bytes = 0;
    basin_status status = basin_zip_stream_open(&in->stream, zip, entry, in->error);
    if (status != BASIN_OK) return status;
    status = read_header(&npy, in);
    if (status == BASIN_UNSUPPORTED && in->numbers_only) {
        basin_zip_stream_close(&in->stream);
        return BASIN_OK;
    }
    if (status == BASIN_OK) status = check_bytes(&bytes, &npy, in);
    if (status == BASIN_OK) status = read_elements(&tensor, &npy, bytes, in);
    if (status == BASIN_OK) status = add(in, &tensor);
    basin_tensor_free(&tensor);
    basin_zip_stream_close(&in->stream);
    return status;
}

static basin_status read_entry(reading *in, const basin_zip *zip, const basin_zip_entry *entry) {
    size_t length = (size_t)entry->name_length;
    if (length < 4 || memcmp(entry->name + length - 4, ".npy", 4) != 0 ||
        memchr(entry->name, 0, length))
        return basin_fail(in->error, BASIN_BAD_FILE, "%s: entry '%.*s' is not a .npy array",
                          in->path, length < 100 ? (int)length : 100, entry->name);
    in->name = basin_array_new(length, 1);
    if (!in->name)
        return basin_fail(in->error, BASIN_NO_MEMORY, "%s: out of memory for a name", in->path);
    memcpy(in->name, entry->name, length - 4);
    in->name[length - 4] = '\0';
    basin_status status = read_array(in, zip, entry);
    free(in->name);
    return status;
}

static basin_status parse(basin_bundle **bundle, const void *data, size_t size, const char *path,
                          bool numbers_only, basin_error *error) {
    basin_zip zip;
    basin_zip_entry entry;
    bool more = true;
    reading in = {.path = path, .numbers_only = numbers_only, .error = error};
    *bundle = NULL;
    basin_status status = basin_zip_open(&zip, data, size, path, error);
    if (status == BASIN_OK) status = basin_bundle_open(&in.bundle, path, error);
    while (status == BASIN_OK) {
        status = basin_zip_next(&entry, &more, &zip, error);
        if (status == BASIN_OK && !more) break;
        if (status == BASIN_OK) status = read_entry(&in, &zip, &entry);
    }
    if (status == BASIN_OK)
        *bundle = in.bundle;
    else
        basin_bundle_free(in.bundle);
    return status;
}

basin_status basin_npz_parse(basin_bundle **bundle, const void *data, size_t size, const char *path,
                             basin_error *error) {
    return parse(bundle, data, size, path, false, error);
}

basin_status basin_npz_read_numbers(basin_bundle **bundle, const char *path, basin_error *error) {
    basin_map map;
    *bundle = NULL;
    basin_status status = basin_map_open(&map, path, error);
    if (status != BASIN_OK) return status;
    status = parse(bundle, map.data, map.size, path, true, error);
    basin_map_close(&map);
    return status;
}

static basin_status write_array(basin_zip_writer *zip, const char *name, const basin_tensor *tensor,
                                basin_error *error) {
    unsigned char header[BASIN_NPY_TEXT];
    size_t length = strlen(name), bytes = basin_npy_print(header, tensor);
    if (bytes == 0)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "%s: tensor '%.100s' is %s, which npz does not have: convert it to F32",
                          zip->file->path, name, basin_dtype_name(tensor->dtype));
    char *file = basin_array_new(length + 5, 1);
    if (!file)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for a name", zip->file->path);
    memcpy(file, name, length);
    memcpy(file + length, ".npy", 5);
    basin_status status =
        basin_zip_add(zip, file, header, bytes, tensor->data, basin_tensor_bytes(tensor), error);
    free(file);
    return status;
}

static basin_status write_metadata(basin_zip_writer *zip, const basin_bundle *bundle,
                                   basin_error *error) {
    if (basin_bundle_meta_count(bundle) == 0) return BASIN_OK;
    cJSON *tree = basin_json_from_meta(bundle);
    char *text = tree ? cJSON_PrintUnformatted(tree) : NULL;
    basin_status status;
    if (text) {
        basin_tensor tensor =
            basin_tensor_borrow(text, BASIN_U8, BASIN_SHAPE((int64_t)strlen(text)));
        status = write_array(zip, BASIN_METADATA_NAME, &tensor, error);
    } else {
        status = basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for its metadata",
                            zip->file->path);
    }
    cJSON_free(text);
    cJSON_Delete(tree);
    return status;
}

basin_status basin_npz_write(const char *path, const basin_bundle *bundle, basin_error *error) {
    basin_writer writer;
    basin_status status = basin_writer_create(&writer, path, error);
    if (status != BASIN_OK) return status;
    basin_zip_writer zip = basin_zip_begin(&writer);
    status = write_metadata(&zip, bundle, error);
    for (size_t i = 0; status == BASIN_OK && i < basin_bundle_count(bundle); i++)
        status = write_array(&zip, basin_bundle_name(bundle, i), basin_bundle_at(bundle, i), error);
    if (status == BASIN_OK) status = basin_zip_end(&zip, error);
    basin_zip_free(&zip);
    if (status == BASIN_OK) return basin_writer_commit(&writer, error);
    basin_writer_discard(&writer);
    return status;
}
