/* How the columns of a network have moved since training: the population stability index over bins
 * that the nodes of training's network set: a bin a value where there are few, else ten of about
 * equal count, one for the least value, one below it. A category has a bin for none of its values,
 * too. */
#ifndef BASIN_TASK_NODES_AFTER_DRIFT_H
#define BASIN_TASK_NODES_AFTER_DRIFT_H

#include "basin/tasks/nodes.h"
#include "data/network/network.h"

enum { BASIN_DRIFT_EDGES = 10, BASIN_DRIFT_BINS = BASIN_DRIFT_EDGES + 2 };

/* What some columns looked like. */
typedef struct basin_drift_sketch {
    int64_t rows; /* columns */
    float *edge;  /* [rows, EDGES] ascending; the first is the least value */
    float *count; /* [rows, BINS] nodes, or edges */
} basin_drift_sketch;

/* What training's network looked like. */
typedef struct basin_nodes_reference {
    basin_drift_sketch node; /* a row a feature, then the number of neighbours; no rows: a file of
                                earlier versions */
    basin_drift_sketch fact; /* what edges carry (basin_facts_columns), where the model reads it */
} basin_nodes_reference;

basin_status basin_nodes_reference_take(basin_nodes_reference *reference,
                                        const basin_network *network, bool facts,
                                        basin_error *error);
void basin_nodes_reference_free(basin_nodes_reference *reference);
/* As tensors drift.edge and drift.count, drift.fact_edge and drift.fact_count; older files have
 * none. */
basin_status basin_nodes_reference_store(basin_bundle *bundle,
                                         const basin_nodes_reference *reference,
                                         basin_error *error);
basin_status basin_nodes_reference_load(basin_nodes_reference *reference,
                                        const basin_bundle *bundle, int64_t features,
                                        basin_error *error);

#endif
