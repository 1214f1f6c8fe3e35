/* What the readers and writers need of a bundle beyond its public face. */
#ifndef BASIN_IO_BUNDLE_H
#define BASIN_IO_BUNDLE_H

#include "basin/io.h"
#include "io/file.h"

/* The name under which both formats keep the metadata; no tensor can have it. */
#define BASIN_METADATA_NAME "__metadata__"

/* For BASIN_AT_EXIT. */
static inline void basin_bundle_free_at(basin_bundle **bundle) { basin_bundle_free(*bundle); }

/* An empty bundle whose errors name `path`. */
basin_status basin_bundle_open(basin_bundle **bundle, const char *path, basin_error *error);
/* Adds an array that the bundle borrows. */
basin_status basin_bundle_put(basin_bundle *bundle, const char *name, const void *data,
                              basin_dtype dtype, basin_shape shape, basin_error *error);
/* The tensor of that name, which must have this type and shape; -1 in a shape is any size. */
basin_status basin_bundle_expect(const basin_tensor **tensor, const basin_bundle *bundle,
                                 const char *name, basin_dtype dtype, basin_shape shape,
                                 basin_error *error);
/* A number of the metadata, from `low` to `high`. */
basin_status basin_bundle_number(double *value, const basin_bundle *bundle, const char *key,
                                 double low, double high, basin_error *error);
/* What a reader returns where the bundle refused a value: to the reader's caller the file is bad.
 */
basin_status basin_bundle_blame_file(basin_status status, basin_error *error);
/* basin_bundle_read; `numbers_only` passes over arrays of strings, objects and records in an npz,
 * which others put beside theirs. */
basin_status basin_bundle_read_numbers(basin_bundle **bundle, const char *path, bool numbers_only,
                                       basin_error *error);

/* ---- one format, from memory; `path` is what errors call it ---- */

/* The bundle borrows from `data`. */
basin_status basin_safetensors_parse(basin_bundle **bundle, const void *data, size_t size,
                                     const char *path, basin_error *error);
/* The bundle copies what it needs. */
basin_status basin_npz_parse(basin_bundle **bundle, const void *data, size_t size, const char *path,
                             bool numbers_only, basin_error *error);
/* Keys in the bundle's order; data by falling element size, so that every tensor is aligned. */
basin_status basin_safetensors_write(const char *path, const basin_bundle *bundle,
                                     basin_error *error);
/* Writes what numpy.load reads. Metadata become the array "__metadata__", a JSON text in U8, which
 * the reader turns back. BF16 is refused: npy has no such type. */
basin_status basin_npz_write(const char *path, const basin_bundle *bundle, basin_error *error);

/* ---- the header of a .npy array: a Python dictionary with the type, the order and the shape ----
 */

enum { BASIN_NPY_PREAMBLE = 12, BASIN_NPY_HEADER_MAX = 1 << 20, BASIN_NPY_TEXT = 512 };

/* How the elements lie in the file, and what they become. */
typedef struct basin_npy {
    basin_shape shape;
    basin_dtype dtype; /* of the tensor to be made */
    size_t size;    /* bytes of an element in the file; smaller than the tensor's where widened */
    bool swapped;   /* big-endian */
    bool fortran;   /* the first index runs fastest */
    char descr[24]; /* the type as the file has it, for messages */
} basin_npy;

/* Bytes before the dictionary's text and of the text, from the first BASIN_NPY_PREAMBLE bytes of an
 * array; false if these are none. */
bool basin_npy_lengths(size_t *before, size_t *text,
                       const unsigned char preamble[BASIN_NPY_PREAMBLE]);
/* Reads the dictionary `text` [length]; on failure `reason` says what is wrong with it. */
basin_status basin_npy_parse(basin_npy *npy, char reason[BASIN_NPY_TEXT], const char *text,
                             size_t length);
/* A whole header for a tensor, preamble included, as numpy would write it; returns its bytes, or 0
 * for a type that npy does not have. */
size_t basin_npy_print(unsigned char header[BASIN_NPY_TEXT], const basin_tensor *tensor);

#endif
