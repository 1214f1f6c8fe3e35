/* The .npy header (NumPy's NEP 1 and its versions 2 and 3):
 *
 *     \x93NUMPY, major, minor, the text's length (2 bytes; 4 from version 2 on), then
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 7), }   padded to 64 bytes
 *
 * Only the part of Python's syntax that can occur there is read. */
#include "io/npy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static bool bad(scanner *s, const char *reason) {
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
    if (!take(s, "(")) return bad(s, "its shape is not a tuple");
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
            return bad(s, "its shape is not a tuple of numbers");
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
    if (!take_string(s, npy->descr, sizeof npy->descr)) return bad(s, "its descr is not a type");
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
    return bad(s, "its fortran_order is neither True nor False");
}

static bool read_dictionary(basin_npy *npy, scanner *s) {
    char key[24];
    unsigned seen = 0;
    if (!take(s, "{")) return bad(s, "its header is not a dictionary");
    while (!take(s, "}")) {
        if (!take_string(s, key, sizeof key) || !take(s, ":"))
            return bad(s, "its header is not a dictionary");
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
            return bad(s, "its header is not a dictionary");
    }
    skip_space(s);
    if (seen != 7) return bad(s, "its header lacks descr, fortran_order or shape");
    if (s->at != s->end) return bad(s, "its header goes on after the dictionary");
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
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "{'descr': '%c%s', 'fortran_order': False, "
                                 "'shape': (",
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
