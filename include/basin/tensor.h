/* Tensors in the host's memory: how numbers enter and leave Basin.
 *
 * A tensor is a type, a shape and contiguous row-major data. One that owns its data frees it in
 * basin_tensor_free; one that borrows (a slice of a mapped file, the caller's array) does not. */
#ifndef BASIN_TENSOR_H
#define BASIN_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basin/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BASIN_MAX_RANK = 8 };

typedef struct basin_shape {
    int rank;
    int64_t dim[BASIN_MAX_RANK];
} basin_shape;

static const basin_shape BASIN_SCALAR = {0, {0}};

/* BASIN_SHAPE(4, n, 768): a shape of one to eight dimensions; none is BASIN_SCALAR. */
BASIN_API basin_shape basin_shape_of(int rank, const int64_t *dim);
#ifndef __cplusplus
#define BASIN_SHAPE(...)                                                                           \
    basin_shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                      \
                   (const int64_t[]){__VA_ARGS__})
#else
/* C++ has no arrays without a name. */
extern "C++" {
template <class... Dim> inline basin_shape basin_shape_list(Dim... dim) {
    static_assert(sizeof...(dim) <= BASIN_MAX_RANK,
                  "a shape has at most BASIN_MAX_RANK dimensions");
    const int64_t list[] = {static_cast<int64_t>(dim)...};
    return basin_shape_of(static_cast<int>(sizeof...(dim)), list);
}
}
#define BASIN_SHAPE(...) basin_shape_list(__VA_ARGS__)
#endif

BASIN_API bool basin_shape_equal(basin_shape a, basin_shape b);
/* The number of elements; -1 if it does not fit into int64_t or a dimension is negative. */
BASIN_API int64_t basin_shape_count(basin_shape shape);
/* "[4, 196, 768]"; returns `text`. */
enum { BASIN_SHAPE_TEXT = 200 };
BASIN_API char *basin_shape_print(char text[BASIN_SHAPE_TEXT], basin_shape shape);

typedef enum basin_dtype {
    BASIN_F64,
    BASIN_F32,
    BASIN_F16,
    BASIN_BF16,
    BASIN_I64,
    BASIN_I32,
    BASIN_I16,
    BASIN_I8,
    BASIN_U8,
    BASIN_BOOL,
    BASIN_F8_E4M3, /* how backends store factors; no file has it */
    BASIN_F8_E5M2,
} basin_dtype;

BASIN_API size_t basin_dtype_size(basin_dtype dtype);
BASIN_API const char *basin_dtype_name(basin_dtype dtype); /* "F64", "I32", as in safetensors */

typedef struct basin_tensor {
    basin_dtype dtype;
    basin_shape shape;
    void *data;
    bool owned;    /* basin_tensor_free frees the data */
    bool constant; /* functions that write into tensors refuse it */
} basin_tensor;

/* A new tensor of zeros. */
BASIN_API basin_status basin_tensor_new(basin_tensor *tensor, basin_dtype dtype, basin_shape shape,
                                        basin_error *error);
/* A tensor over the caller's data, which must outlive it; and one that nothing writes to. */
BASIN_API basin_tensor basin_tensor_borrow(void *data, basin_dtype dtype, basin_shape shape);
BASIN_API basin_tensor basin_tensor_view(const void *data, basin_dtype dtype, basin_shape shape);
BASIN_API void basin_tensor_free(basin_tensor *tensor);
/* Copies with conversion between any two types; the shapes must have equal counts. Floats round to
 * nearest even; integers drop the fraction, are cut to their range, and take 0 for NaN. */
BASIN_API basin_status basin_tensor_convert(basin_tensor *to, const basin_tensor *from,
                                            basin_error *error);
/* The bytes its data take; the shape must be valid. */
BASIN_API size_t basin_tensor_bytes(const basin_tensor *tensor);
/* The index of the first element that is NaN or infinite; -1 where all are finite. */
BASIN_API int64_t basin_tensor_first_bad(const basin_tensor *tensor);
/* Element i (row-major) as a double; for printing and small loops, not for speed. */
BASIN_API double basin_tensor_at(const basin_tensor *tensor, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
