/* Tensor files: safetensors and npz, in and out.
 *
 * A bundle is a file in memory: tensors by name, in the file's order, and metadata, strings by
 * name. Read one, look tensors up, free it:
 *
 *     basin_bundle *bundle;
 *     basin_error error;
 *     if (basin_bundle_read(&bundle, "model.safetensors", &error) != BASIN_OK)
 *         return fprintf(stderr, "%s\n", error.text), 1;
 *     const basin_tensor *wk = basin_bundle_find(bundle, "wk");
 *     ...
 *     basin_bundle_free(bundle);
 *
 * Safetensors are memory-mapped: their tensors borrow from the map, must not be written to, and
 * live as long as the bundle. A file must not be truncated in place while it is mapped; replacing
 * it by rename, as the writers here do, is safe, also for the file a bundle was read from.
 * Writers fill a temporary file in the same folder, bring it to the disk and rename it over the
 * old one, so that at any moment the old content or the new is there, whole.
 *
 * NaN and infinity are numbers to this module; basin_tensor_first_bad finds them. */
#ifndef BASIN_IO_H
#define BASIN_IO_H

#include "basin/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Several threads may read a bundle at once; adding to it requires exclusive access. */
typedef struct basin_bundle basin_bundle;

/* An empty bundle; errors name `path` (NULL: nothing). */
BASIN_API basin_status basin_bundle_new(basin_bundle **bundle, const char *path,
                                        basin_error *error);
BASIN_API void basin_bundle_free(basin_bundle *bundle);
/* The path it was read from, as errors should name it; "" for a new one. */
BASIN_API const char *basin_bundle_path(const basin_bundle *bundle);

/* Moves `*tensor` into the bundle and leaves an empty tensor in its place; on failure it is
 * unchanged. Either way basin_tensor_free may be called on it afterwards. A tensor that borrows its
 * data keeps borrowing it. Names are UTF-8 and unique; "__metadata__" is not one. */
BASIN_API basin_status basin_bundle_add(basin_bundle *bundle, const char *name,
                                        basin_tensor *tensor, basin_error *error);
/* NULL where there is none. The pointer is valid until the bundle is freed. */
BASIN_API const basin_tensor *basin_bundle_find(const basin_bundle *bundle, const char *name);
/* As find, with an error that names the file where there is none. */
BASIN_API basin_status basin_bundle_get(const basin_tensor **tensor, const basin_bundle *bundle,
                                        const char *name, basin_error *error);
BASIN_API size_t basin_bundle_count(const basin_bundle *bundle);
BASIN_API const char *basin_bundle_name(const basin_bundle *bundle, size_t i);
BASIN_API const basin_tensor *basin_bundle_at(const basin_bundle *bundle, size_t i);

/* Sets the metadata `key`, replacing an earlier value in its place. */
BASIN_API basin_status basin_bundle_meta_set(basin_bundle *bundle, const char *key,
                                             const char *value, basin_error *error);
BASIN_API const char *basin_bundle_meta(const basin_bundle *bundle, const char *key); /* or NULL */
/* The i-th key, and its value where `value` is not NULL; NULL beyond the last. */
BASIN_API const char *basin_bundle_meta_at(const basin_bundle *bundle, size_t i,
                                           const char **value);

/* Detects the format by content: npz where the file starts like a zip, else safetensors. npz arrays
 * may be f2 f4 f8 i1 i2 i4 i8 u1 or bool, in either byte order, in C or Fortran order, stored or
 * deflated. u2 is read as I32, u4 as I64, u8 as I64 where its values fit. Arrays of Python objects,
 * strings and records are refused. */
BASIN_API basin_status basin_bundle_read(basin_bundle **bundle, const char *path,
                                         basin_error *error);
/* The same, except that arrays of Python objects, strings and records in an npz are passed over. */
BASIN_API basin_status basin_bundle_read_numbers(basin_bundle **bundle, const char *path,
                                                 basin_error *error);
/* The same from memory, which the bundle may borrow from: `data` must outlive it. Errors name
 * `path`. */
BASIN_API basin_status basin_bundle_parse(basin_bundle **bundle, const void *data, size_t size,
                                          const char *path, basin_error *error);
/* Writes by name: npz where `path` ends in .npz, else safetensors. numpy.load reads the npz, in
 * which metadata become the array "__metadata__", a JSON text in U8; it has no BF16. */
BASIN_API basin_status basin_bundle_write(const char *path, const basin_bundle *bundle,
                                          basin_error *error);
/* Safetensors, whatever the name. */
BASIN_API basin_status basin_bundle_write_safetensors(const char *path, const basin_bundle *bundle,
                                                      basin_error *error);

#ifdef __cplusplus
}
#endif
#endif
