/* Host tensors: shapes, types, conversion; see include/basin/tensor.h. */
#include "engine/tensor/tensor.h"
#include "base/shape.h"
#include "base/try.h"
#include "basin/tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/tensor/byte.h"

basin_shape basin_shape_of(int rank, const int64_t *dim) {
    basin_shape shape = {rank, {0}};
    for (int i = 0; i < rank && i < BASIN_MAX_RANK; i++) shape.dim[i] = dim[i];
    return shape;
}

bool basin_shape_equal(basin_shape a, basin_shape b) {
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; i++)
        if (a.dim[i] != b.dim[i]) return false;
    return true;
}

int64_t basin_shape_count(basin_shape shape) {
    int64_t count = 1;
    bool empty = false;
    if (shape.rank < 0 || shape.rank > BASIN_MAX_RANK) return -1;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[i] < 0) return -1;
        if (shape.dim[i] == 0)
            empty = true;
        else if (count > INT64_MAX / shape.dim[i])
            return -1;
        else
            count *= shape.dim[i];
    }
    return empty ? 0 : count;
}

char *basin_shape_print(char text[BASIN_SHAPE_TEXT], basin_shape shape) {
    size_t at = 1;
    text[0] = '[';
    for (int i = 0; i < shape.rank && i < BASIN_MAX_RANK; i++)
        at += (size_t)snprintf(text + at, BASIN_SHAPE_TEXT - at, "%s%lld", i ? ", " : "",
                               (long long)shape.dim[i]);
    snprintf(text + at, BASIN_SHAPE_TEXT - at, shape.rank > BASIN_MAX_RANK ? ", ..]" : "]");
    return text;
}

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [BASIN_F64] = {"F64", 8},   [BASIN_F32] = {"F32", 4},         [BASIN_F16] = {"F16", 2},
    [BASIN_BF16] = {"BF16", 2}, [BASIN_I64] = {"I64", 8},         [BASIN_I32] = {"I32", 4},
    [BASIN_I16] = {"I16", 2},   [BASIN_I8] = {"I8", 1},           [BASIN_U8] = {"U8", 1},
    [BASIN_BOOL] = {"BOOL", 1}, [BASIN_F8_E4M3] = {"F8_E4M3", 1}, [BASIN_F8_E5M2] = {"F8_E5M2", 1},
};

size_t basin_dtype_size(basin_dtype dtype) { return dtypes[dtype].size; }
const char *basin_dtype_name(basin_dtype dtype) { return dtypes[dtype].name; }

basin_status basin_tensor_new(basin_tensor *tensor, basin_dtype dtype, basin_shape shape,
                              basin_error *error) {
    size_t bytes;
    int64_t count = basin_shape_count(shape);
    *tensor = (basin_tensor){.dtype = dtype, .shape = shape};
    if (count < 0 || !basin_size_multiply(&bytes, (size_t)count, basin_dtype_size(dtype)))
        return basin_fail(error, BASIN_BAD_SHAPE, "a tensor of shape %s has no valid size",
                          basin_shape_text(shape));
    tensor->data = calloc(bytes ? bytes : 1, 1);
    if (!tensor->data)
        return basin_fail(error, BASIN_NO_MEMORY,
                          "out of memory for a tensor of shape %s (%zu bytes)",
                          basin_shape_text(shape), bytes);
    tensor->owned = true;
    return BASIN_OK;
}

basin_tensor basin_tensor_borrow(void *data, basin_dtype dtype, basin_shape shape) {
    return (basin_tensor){.dtype = dtype, .shape = shape, .data = data};
}

basin_tensor basin_tensor_view(const void *data, basin_dtype dtype, basin_shape shape) {
    return (basin_tensor){
        .dtype = dtype, .shape = shape, .data = (void *)(uintptr_t)data, .constant = true};
}

basin_status basin_tensor_check_writable(const basin_tensor *tensor, basin_error *error) {
    if (!tensor->constant) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "a constant tensor %s cannot be written to",
                      basin_shape_text(tensor->shape));
}

void basin_tensor_free(basin_tensor *tensor) {
    if (tensor && tensor->owned) free(tensor->data);
    if (tensor) *tensor = (basin_tensor){0};
}

/* Floating numbers of sixteen and eight bits. */
typedef struct layout {
    int mantissa, bias, sign; /* bits; what is added to exponents; the sign's bit */
    double max;               /* from here on: `over` */
    int over;
    int finite, infinite, nan; /* the largest finite one, infinity (0: none), a NaN */
} layout;

static const layout half = {10, 15, 0x8000, 65520, 0x7c00, 0x7bff, 0x7c00, 0x7e00};
static const layout byte_layouts[] = {
    [BASIN_BYTE_E4M3] = {3, 7, 0x80, 448, 0x7e, 0x7e, 0, 0x7f},
    [BASIN_BYTE_E5M2] = {2, 15, 0x80, 57344, 0x7b, 0x7b, 0x7c, 0x7e},
};

static double from_layout(int bits, const layout *l) {
    int size = bits & (l->sign - 1), exponent = size >> l->mantissa, unit = 1 << l->mantissa;
    double value = exponent ? ldexp(unit + size % unit, exponent - l->bias - l->mantissa)
                            : ldexp(size, 1 - l->bias - l->mantissa);
    if (size > l->finite) value = size == l->infinite ? HUGE_VAL : NAN;
    return bits & l->sign ? -value : value;
}

/* Rounds once, to nearest, ties to even. */
static int to_layout(double value, const layout *l) {
    int sign = signbit(value) ? l->sign : 0, unit = 1 << l->mantissa, min = 1 - l->bias;
    double size = fabs(value);
    if (isnan(value)) return sign | l->nan;
    if (size >= l->max) return sign | l->over;
    int exponent = size < ldexp(1, min) ? min : ilogb(size);
    /* nearbyint keeps ties to even; a carry into the exponent comes out right by itself */
    int mantissa = (int)nearbyint(ldexp(size, l->mantissa - exponent));
    if (mantissa < unit) return sign | mantissa;
    return sign | (((exponent + l->bias) << l->mantissa) + mantissa - unit);
}

double basin_byte_to_double(uint8_t byte, basin_byte_form form) {
    return from_layout(byte, &byte_layouts[form]);
}
uint8_t basin_byte_from_double(double value, basin_byte_form form) {
    return (uint8_t)to_layout(value, &byte_layouts[form]);
}

static double bfloat_to_double(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Rounds to nearest, ties to even. Rounding to float first must not turn what lies beside a tie
 * into one: its last bit is set where it was inexact (round to odd). */
static uint16_t double_to_bfloat(double value) {
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (fabs(value) < fabs((double)narrow) && isfinite(value)) bits--;
    if ((double)narrow != value && isfinite(value)) bits |= 1;
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 64);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double basin_tensor_at(const basin_tensor *tensor, int64_t i) {
    const void *data = tensor->data;
    switch (tensor->dtype) {
    case BASIN_F64: return ((const double *)data)[i];
    case BASIN_F32: return ((const float *)data)[i];
    case BASIN_F16: return from_layout(((const uint16_t *)data)[i], &half);
    case BASIN_BF16: return bfloat_to_double(((const uint16_t *)data)[i]);
    case BASIN_I64: return (double)((const int64_t *)data)[i];
    case BASIN_I32: return ((const int32_t *)data)[i];
    case BASIN_I16: return ((const int16_t *)data)[i];
    case BASIN_I8: return ((const int8_t *)data)[i];
    case BASIN_U8:
    case BASIN_BOOL: return ((const uint8_t *)data)[i];
    case BASIN_F8_E4M3: return basin_byte_to_double(((const uint8_t *)data)[i], BASIN_BYTE_E4M3);
    case BASIN_F8_E5M2: return basin_byte_to_double(((const uint8_t *)data)[i], BASIN_BYTE_E5M2);
    }
    return 0;
}

/* C leaves the conversion of what does not fit undefined. */
static int64_t double_to_integer(double value, double low, double high) {
    if (isnan(value)) return 0;
    if (value <= low) return (int64_t)low;
    if (value >= high) return high >= 0x1p63 ? INT64_MAX : (int64_t)high;
    return (int64_t)value;
}

static void put(basin_tensor *tensor, int64_t i, double value) {
    void *data = tensor->data;
    switch (tensor->dtype) {
    case BASIN_F64: ((double *)data)[i] = value; break;
    case BASIN_F32: ((float *)data)[i] = (float)value; break;
    case BASIN_F16: ((uint16_t *)data)[i] = (uint16_t)to_layout(value, &half); break;
    case BASIN_BF16: ((uint16_t *)data)[i] = double_to_bfloat(value); break;
    case BASIN_I64: ((int64_t *)data)[i] = double_to_integer(value, -0x1p63, 0x1p63); break;
    case BASIN_I32:
        ((int32_t *)data)[i] = (int32_t)double_to_integer(value, INT32_MIN, INT32_MAX);
        break;
    case BASIN_I16:
        ((int16_t *)data)[i] = (int16_t)double_to_integer(value, INT16_MIN, INT16_MAX);
        break;
    case BASIN_I8: ((int8_t *)data)[i] = (int8_t)double_to_integer(value, -128, 127); break;
    case BASIN_U8: ((uint8_t *)data)[i] = (uint8_t)double_to_integer(value, 0, 255); break;
    case BASIN_BOOL: ((uint8_t *)data)[i] = value != 0; break;
    case BASIN_F8_E4M3:
        ((uint8_t *)data)[i] = basin_byte_from_double(value, BASIN_BYTE_E4M3);
        break;
    case BASIN_F8_E5M2:
        ((uint8_t *)data)[i] = basin_byte_from_double(value, BASIN_BYTE_E5M2);
        break;
    }
}

size_t basin_tensor_bytes(const basin_tensor *tensor) {
    return (size_t)basin_shape_count(tensor->shape) * basin_dtype_size(tensor->dtype);
}

int64_t basin_tensor_first_bad(const basin_tensor *tensor) {
    int64_t count = basin_shape_count(tensor->shape);
    if (tensor->dtype > BASIN_BF16 && tensor->dtype < BASIN_F8_E4M3) return -1;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(basin_tensor_at(tensor, i))) return i;
    return -1;
}

basin_status basin_tensor_convert(basin_tensor *to, const basin_tensor *from, basin_error *error) {
    int64_t count = basin_shape_count(from->shape);
    BASIN_TRY(basin_tensor_check_writable(to, error));
    if (count < 0 || basin_shape_count(to->shape) != count)
        return basin_fail(error, BASIN_BAD_SHAPE, "cannot convert a tensor of shape %s into %s",
                          basin_shape_text(from->shape), basin_shape_text(to->shape));
    if (to->dtype == from->dtype) {
        if (count > 0) memcpy(to->data, from->data, basin_tensor_bytes(to));
        return BASIN_OK;
    }
    if (to->dtype == BASIN_F64 && from->dtype == BASIN_F32) {
        for (int64_t i = 0; i < count; i++)
            ((double *)to->data)[i] = (double)((const float *)from->data)[i];
        return BASIN_OK;
    }
    if (to->dtype == BASIN_F32 && from->dtype == BASIN_F64) {
        for (int64_t i = 0; i < count; i++)
            ((float *)to->data)[i] = (float)((const double *)from->data)[i];
        return BASIN_OK;
    }
    for (int64_t i = 0; i < count; i++) put(to, i, basin_tensor_at(from, i));
    return BASIN_OK;
}
