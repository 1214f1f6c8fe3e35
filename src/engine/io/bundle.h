/* What the readers and writers need of a bundle beyond its public interface. */
#ifndef BASIN_IO_BUNDLE_H
#define BASIN_IO_BUNDLE_H

#include "base/bundle.h"
#include "base/file.h"
#include "base/json.h"

/* The name under which both formats keep the metadata; no tensor can have it. */
#define BASIN_METADATA_NAME "__metadata__"

/* What a reader returns where the bundle refused a value: to the reader's caller the file is bad.
 */
basin_status basin_bundle_blame_file(basin_status status, basin_error *error);
/* Adds the strings of a JSON object to the bundle's metadata. */
basin_status basin_json_to_meta(basin_bundle *bundle, const cJSON *object, basin_error *error);
/* The metadata as a JSON object; NULL without memory. */
cJSON *basin_json_from_meta(const basin_bundle *bundle);

/* ---- one format, from memory; `path` is what errors call it ---- */

/* The bundle borrows from `data`. */
basin_status basin_safetensors_parse(basin_bundle **bundle, const void *data, size_t size,
                                     const char *path, basin_error *error);
/* The bundle copies what it needs. */
basin_status basin_npz_parse(basin_bundle **bundle, const void *data, size_t size, const char *path,
                             bool numbers_only, basin_error *error);
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
