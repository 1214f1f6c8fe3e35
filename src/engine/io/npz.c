/* npz: a zip archive with one .npy array per entry.
 *
 * An array's type and shape must account for every byte of its entry before memory is asked for,
 * and the zip reader has checked by then that the entry can hold that many. */
#include <stdarg.h>

#include "base/file.h"
#include "base/shape.h"
#include "engine/io/bundle.h"
#include "engine/io/zip.h"

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
    BASIN_TRY(basin_zip_stream_read(&in->stream, preamble, sizeof preamble, in->error));
    if (!basin_npy_lengths(&before, &length, preamble))
        return bad(in, BASIN_BAD_FILE, "is not a .npy array of version 1, 2 or 3");
    size_t had = sizeof preamble - before; /* of the text, in a preamble of version 1 */
    if (length < had || length > BASIN_NPY_HEADER_MAX)
        return bad(in, BASIN_BAD_FILE, "its header has no valid length");
    BASIN_FREE_AT_EXIT char *text = basin_array_new(length, 1);
    if (!text) return no_memory(in);
    memcpy(text, preamble + before, had);
    BASIN_TRY(basin_zip_stream_read(&in->stream, text + had, length - had, in->error));
    basin_status status = basin_npy_parse(npy, reason, text, length);
    return status ? bad(in, status, reason) : BASIN_OK;
}

/* The rest of the entry must be exactly the elements. */
static basin_status check_bytes(size_t *bytes, const basin_npy *npy, const reading *in) {
    size_t left = in->stream.entry->size - in->stream.taken;
    int64_t count = basin_shape_count(npy->shape);
    const char *text = basin_shape_text(npy->shape);
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
    if (basin_tensor_new(tensor, npy->dtype, npy->shape, NULL)) return no_memory(in);
    BASIN_FREE_AT_EXIT unsigned char *copy = direct ? NULL : basin_array_new(bytes, 1);
    unsigned char *raw = direct ? tensor->data : copy;
    if (!raw) return no_memory(in);
    BASIN_TRY(basin_zip_stream_read(&in->stream, raw, bytes, in->error));
    BASIN_TRY(basin_zip_stream_finish(&in->stream, in->error));
    if (npy->swapped) swap_bytes(raw, bytes, npy->size);
    if (!direct && !place_all(tensor, raw, npy, is_unsigned))
        return bad(in, BASIN_UNSUPPORTED, "has a u8 above 2^63 - 1, the largest I64");
    return BASIN_OK;
}

/* "__metadata__" holds the metadata as the writer below puts them there. */
static basin_status add(reading *in, basin_tensor *tensor) {
    BASIN_JSON_AT_EXIT cJSON *tree = NULL;
    if (strcmp(in->name, BASIN_METADATA_NAME) != 0)
        return basin_bundle_blame_file(basin_bundle_add(in->bundle, in->name, tensor, in->error),
                                       in->error);
    if (tensor->dtype != BASIN_U8 || tensor->shape.rank != 1)
        return bad(in, BASIN_BAD_FILE, "is not a text of bytes");
    BASIN_TRY(basin_json_parse(&tree, tensor->data, (size_t)tensor->shape.dim[0], in->path,
                               BASIN_METADATA_NAME, in->error));
    return basin_json_to_meta(in->bundle, tree, in->error);
}

static basin_status read_array(reading *in) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor tensor = {0};
    basin_npy npy;
    size_t bytes = 0;
    basin_status status = read_header(&npy, in);
    if (status == BASIN_UNSUPPORTED && in->numbers_only) return BASIN_OK;
    BASIN_TRY(status);
    BASIN_TRY(check_bytes(&bytes, &npy, in));
    BASIN_TRY(read_elements(&tensor, &npy, bytes, in));
    return add(in, &tensor);
}

static basin_status read_entry(reading *in, const basin_zip *zip, const basin_zip_entry *entry) {
    size_t length = (size_t)entry->name_length;
    if (length < 4 || memcmp(entry->name + length - 4, ".npy", 4) != 0 ||
        memchr(entry->name, 0, length))
        return basin_fail(in->error, BASIN_BAD_FILE, "%s: entry '%.*s' is not a .npy array",
                          in->path, length < 100 ? (int)length : 100, entry->name);
    BASIN_FREE_AT_EXIT char *name = basin_array_new(length, 1);
    if (!name)
        return basin_fail(in->error, BASIN_NO_MEMORY, "%s: out of memory for a name", in->path);
    memcpy(name, entry->name, length - 4);
    name[length - 4] = '\0';
    in->name = name;
    BASIN_TRY(basin_zip_stream_open(&in->stream, zip, entry, in->error));
    basin_status status = read_array(in);
    basin_zip_stream_close(&in->stream);
    return status;
}

static basin_status read_all(reading *in, const void *data, size_t size) {
    basin_zip zip;
    basin_zip_entry entry;
    bool more = true;
    BASIN_TRY(basin_zip_open(&zip, data, size, in->path, in->error));
    BASIN_TRY(basin_bundle_new(&in->bundle, in->path, in->error));
    for (;;) {
        BASIN_TRY(basin_zip_next(&entry, &more, &zip, in->error));
        if (!more) return BASIN_OK;
        BASIN_TRY(read_entry(in, &zip, &entry));
    }
}

basin_status basin_npz_parse(basin_bundle **bundle, const void *data, size_t size, const char *path,
                             bool numbers_only, basin_error *error) {
    reading in = {.path = path, .numbers_only = numbers_only, .error = error};
    basin_status status = read_all(&in, data, size);
    if (status) basin_bundle_free(in.bundle);
    *bundle = status ? NULL : in.bundle;
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
    BASIN_FREE_AT_EXIT char *file = basin_array_new(length + 5, 1);
    if (!file)
        return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for a name", zip->file->path);
    memcpy(file, name, length);
    memcpy(file + length, ".npy", 5);
    return basin_zip_add(zip, file, header, bytes, tensor->data, basin_tensor_bytes(tensor), error);
}

static basin_status write_metadata(basin_zip_writer *zip, const basin_bundle *bundle,
                                   basin_error *error) {
    if (!basin_bundle_meta_at(bundle, 0, NULL)) return BASIN_OK;
    BASIN_JSON_AT_EXIT cJSON *tree = basin_json_from_meta(bundle);
    BASIN_FREE_AT_EXIT char *text = tree ? cJSON_PrintUnformatted(tree) : NULL;
    if (!text) return basin_fail_memory(error, "metadata");
    basin_tensor tensor = basin_tensor_borrow(text, BASIN_U8, BASIN_SHAPE((int64_t)strlen(text)));
    return write_array(zip, BASIN_METADATA_NAME, &tensor, error);
}

static basin_status write_all(basin_zip_writer *zip, const basin_bundle *bundle,
                              basin_error *error) {
    BASIN_TRY(write_metadata(zip, bundle, error));
    for (size_t i = 0; i < basin_bundle_count(bundle); i++)
        BASIN_TRY(
            write_array(zip, basin_bundle_name(bundle, i), basin_bundle_at(bundle, i), error));
    return basin_zip_end(zip, error);
}

basin_status basin_npz_write(const char *path, const basin_bundle *bundle, basin_error *error) {
    basin_writer writer;
    BASIN_TRY(basin_writer_create(&writer, path, error));
    BASIN_AT_EXIT(basin_zip_free) basin_zip_writer zip = basin_zip_begin(&writer);
    return basin_writer_finish(&writer, write_all(&zip, bundle, error), error);
}

/* ---- the header of one array ---- */

/* The .npy header (NumPy's NEP 1 and its versions 2 and 3):
 *
 *     \x93NUMPY, major, minor, the text's length (2 bytes; 4 from version 2 on), then
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 7), }   padded to 64 bytes
 *
 * Only the part of Python's syntax that can occur there is read. */

typedef struct scanner {
    const char *at, *end;
    char *reason;
    basin_status status;
} scanner;

__attribute__((format(printf, 3, 4))) static bool complain(scanner *s, basin_status status,
                                                           const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(s->reason, BASIN_NPY_TEXT, format, args);
    va_end(args);
    s->status = status;
    return false;
}

static bool wrong(scanner *s, const char *reason) {
    return complain(s, BASIN_BAD_FILE, "%s", reason);
}

bool basin_npy_lengths(size_t *before, size_t *text,
                       const unsigned char preamble[BASIN_NPY_PREAMBLE]) {
    const unsigned char *at = preamble + 8;
    int major = preamble[6];
    if (memcmp(preamble, "\x93NUMPY", 6) != 0 || major < 1 || major > 3) return false;
    *before = major == 1 ? 10 : 12;
    *text = at[0] | (size_t)at[1] << 8;
    if (major > 1) *text |= (size_t)at[2] << 16 | (size_t)at[3] << 24;
    return true;
}

static void skip_space(scanner *s) {
    while (s->at < s->end && memchr(" \t\r\n", *s->at, 4)) s->at++;
}

/* Takes `text` if it comes next. */
static bool take(scanner *s, const char *text) {
    size_t length = strlen(text);
    skip_space(s);
    if ((size_t)(s->end - s->at) < length || memcmp(s->at, text, length) != 0) return false;
    s->at += length;
    return true;
}

static bool take_string(scanner *s, char *out, size_t room) {
    skip_space(s);
    if (s->at == s->end || (*s->at != '\'' && *s->at != '"')) return false;
    const char *begin = s->at + 1;
    const char *close = memchr(begin, *s->at, (size_t)(s->end - begin));
    if (!close) return false;
    size_t length = (size_t)(close - begin);
    if (length >= room || memchr(begin, '\\', length)) return false;
    memcpy(out, begin, length);
    out[length] = '\0';
    s->at = close + 1;
    return true;
}

static bool take_number(scanner *s, int64_t *value) {
    int digits = 0;
    *value = 0;
    skip_space(s);
    for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++, digits++) {
        if (*value > (INT64_MAX - 9) / 10) return false;
        *value = 10 * *value + (*s->at - '0');
    }
    take(s, "L"); /* as Python 2 wrote it */
    return digits > 0;
}

static bool read_shape(basin_npy *npy, scanner *s) {
    basin_shape shape = BASIN_SCALAR;
    if (!take(s, "(")) return wrong(s, "its shape is not a tuple");
    while (!take(s, ")")) {
        int64_t dim;
        if (shape.rank == BASIN_MAX_RANK)
            return complain(s, BASIN_UNSUPPORTED, "its rank is above %d, the most supported",
                            BASIN_MAX_RANK);
        if (!take_number(s, &dim))
            return complain(s, BASIN_BAD_FILE, "its shape has no valid number at %d", shape.rank);
        shape.dim[shape.rank++] = dim;
        if (!take(s, ",")) {
            if (take(s, ")")) break;
            return wrong(s, "its shape is not a tuple of numbers");
        }
    }
    npy->shape = shape;
    return true;
}

static const struct {
    const char *code;
    basin_dtype dtype;
    size_t size;
} types[] = {
    {"f8", BASIN_F64, 8},  {"f4", BASIN_F32, 4}, {"f2", BASIN_F16, 2}, {"i8", BASIN_I64, 8},
    {"i4", BASIN_I32, 4},  {"i2", BASIN_I16, 2}, {"i1", BASIN_I8, 1},  {"u1", BASIN_U8, 1},
    {"b1", BASIN_BOOL, 1}, {"u2", BASIN_I32, 2}, {"u4", BASIN_I64, 4}, {"u8", BASIN_I64, 8},
};

static bool read_type(basin_npy *npy, scanner *s) {
    skip_space(s);
    if (s->at < s->end && *s->at == '[')
        return complain(s, BASIN_UNSUPPORTED, "it is an array of records, which is not read");
    if (!take_string(s, npy->descr, sizeof npy->descr)) return wrong(s, "its descr is not a type");
    const char *code = npy->descr;
    npy->swapped = *code == '>';
    if (*code && strchr("<>|=", *code)) code++;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(code, types[i].code) == 0) {
            npy->dtype = types[i].dtype;
            npy->size = types[i].size;
            return true;
        }
    if (*code == 'O')
        return complain(s, BASIN_UNSUPPORTED,
                        "it holds pickled Python objects ('%s'), which are not read", npy->descr);
    return complain(s, BASIN_UNSUPPORTED,
                    "its type '%s' is not one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1", npy->descr);
}

static bool read_order(basin_npy *npy, scanner *s) {
    npy->fortran = take(s, "True");
    if (npy->fortran || take(s, "False")) return true;
    return wrong(s, "its fortran_order is neither True nor False");
}

static bool read_dictionary(basin_npy *npy, scanner *s) {
    char key[24];
    unsigned seen = 0;
    if (!take(s, "{")) return wrong(s, "its header is not a dictionary");
    while (!take(s, "}")) {
        if (!take_string(s, key, sizeof key) || !take(s, ":"))
            return wrong(s, "its header is not a dictionary");
        unsigned field = strcmp(key, "descr") == 0           ? 1
                         : strcmp(key, "fortran_order") == 0 ? 2
                         : strcmp(key, "shape") == 0         ? 4
                                                             : 0;
        if (!field || seen & field)
            return complain(s, BASIN_BAD_FILE, "its header has '%s' %s", key,
                            field ? "twice" : "in it");
        seen |= field;
        if (field == 1   ? !read_type(npy, s)
            : field == 2 ? !read_order(npy, s)
                         : !read_shape(npy, s))
            return false;
        if (!take(s, ",") && !(s->at < s->end && *s->at == '}'))
            return wrong(s, "its header is not a dictionary");
    }
    skip_space(s);
    if (seen != 7) return wrong(s, "its header lacks descr, fortran_order or shape");
    if (s->at != s->end) return wrong(s, "its header goes on after the dictionary");
    return true;
}

basin_status basin_npy_parse(basin_npy *npy, char reason[BASIN_NPY_TEXT], const char *text,
                             size_t length) {
    scanner s = {text, text + length, reason, BASIN_OK};
    *npy = (basin_npy){0};
    read_dictionary(npy, &s);
    return s.status;
}

size_t basin_npy_print(unsigned char header[BASIN_NPY_TEXT], const basin_tensor *tensor) {
    char text[BASIN_NPY_TEXT];
    const char *code = NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types && !code; i++)
        if (types[i].dtype == tensor->dtype) code = types[i].code;
    if (!code) return 0;
    size_t at =
        (size_t)snprintf(text, sizeof text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                         basin_dtype_size(tensor->dtype) == 1 ? '|' : '<', code);
    for (int i = 0; i < tensor->shape.rank; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i ? ", " : "",
                               (long long)tensor->shape.dim[i]);
    at +=
        (size_t)snprintf(text + at, sizeof text - at, "%s), }", tensor->shape.rank == 1 ? "," : "");
    size_t total = (10 + at + 1 + 63) / 64 * 64;
    memcpy(header, "\x93NUMPY\1\0", 8);
    header[8] = (unsigned char)(total - 10);
    header[9] = (unsigned char)((total - 10) >> 8);
    memcpy(header + 10, text, at);
    memset(header + 10 + at, ' ', total - 11 - at);
    header[total - 1] = '\n';
    return total;
}
