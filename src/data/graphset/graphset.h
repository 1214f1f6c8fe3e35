/* What the readers of graph sets share: a set being filled from edges in any order. */
#ifndef BASIN_DATA_GRAPHSET_GRAPHSET_H
#define BASIN_DATA_GRAPHSET_GRAPHSET_H

#include "basin/tasks/graphset.h"

/* Takes edges [count, 2] by number in the whole set and sorts them into set->edge: by graph, from,
 * to; self loops go, of equal edges the first stays. node_start and the edge columns of the set
 * must be there; edge_attribute and edge_label [count, columns] are put into the new order. `path`
 * and `what` (a file) are for errors, which count edges as lines. */
basin_status basin_graphset_set_edges(basin_graphset *set, const int32_t *edge, int64_t count,
                                      const char *path, const char *what, basin_error *error);

/* Maps class numbers [count] of any kind to 0 .. classes - 1 and sets classes, class_value and
 * class_of. */
basin_status basin_graphset_set_classes(basin_graphset *set, const int64_t *value, int64_t count,
                                        basin_error *error);

/* The set's edge attributes and behind them walks along its edges, [edges, columns + walks]; those
 * of graphs first .. first + count - 1 alone, others are zeros. Free them. */
basin_status basin_graphset_edge_walks(float **value, const basin_graphset *set, int64_t walks,
                                       int64_t first, int64_t count, basin_error *error);

/* Copies at most BASIN_GRAPHSET_NAME - 1 characters. */
void basin_graphset_set_name(basin_graphset *set, const char *name, size_t length);

/* A packed set or ZINC, whichever the bundle holds; takes the bundle over. */
basin_status basin_graphset_from_bundle(basin_graphset *set, basin_bundle *bundle, const char *path,
                                        basin_error *error);
/* A TUDataset; `bare`: without classes and values of graphs, which are not even looked at. */
basin_status basin_graphset_open_tu(basin_graphset *set, const char *path, bool bare,
                                    basin_error *error);
/* An archive of a TUDataset in memory. */
basin_status basin_graphset_parse_tu(basin_graphset *set, const void *data, size_t size,
                                     const char *path, basin_error *error);

#endif
