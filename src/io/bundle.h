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

#endif
