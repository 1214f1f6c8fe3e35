/* Digests inside files of tensors: damage to a model is found before anything is done with it. They
 * are 64 bits against accidents; who changes a file on purpose can change them as well. */
#ifndef BASIN_TASKS_DIGEST_H
#define BASIN_TASKS_DIGEST_H

#include "base/bundle.h"

/* Sets the metadata "basin.digests": a line for each tensor, of its type, shape, digest and name,
 * and one for all other metadata. The last thing to do before a bundle is written. */
basin_status basin_bundle_digest(basin_bundle *bundle, basin_error *error);
/* Compares; what differs is BASIN_BAD_FILE. The order of tensors and metadata does not count, and
 * files without digests pass, as those of older versions and of other programs are. */
basin_status basin_bundle_check(const basin_bundle *bundle, basin_error *error);
bool basin_bundle_has_digests(const basin_bundle *bundle);

/* basin_bundle_read with that check: for models and checkpoints. */
basin_status basin_model_read(basin_bundle **bundle, const char *path, basin_error *error);

#endif
