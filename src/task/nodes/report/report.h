/* A report on a detector: what was found (report.c), and the document that says it (document.c). */
#ifndef BASIN_TASK_NODES_REPORT_REPORT_H
#define BASIN_TASK_NODES_REPORT_REPORT_H

#include "task/nodes/nodes.h"

enum { BASIN_CURVE_POINTS = 200 };

/* A curve over thresholds, thinned out. */
typedef struct basin_nodes_curve {
    double x[BASIN_CURVE_POINTS + 2], y[BASIN_CURVE_POINTS + 2];
    int64_t count;
} basin_nodes_curve;

typedef struct basin_nodes_findings {
    const basin_nodes_model *model;
    const basin_network *network;
    const char *name;    /* of the model */
    double *probability; /* [N] */
    bool judged;         /* there are labels of both kinds: */
    basin_nodes_figures figures;
    basin_nodes_samples samples;
    basin_nodes_curve precision, roc; /* by recall; true by false alarms */
    basin_nodes_drift drift;          /* without columns: not known */
    int64_t alerts, reasons;
    basin_nodes_explanation **why; /* [alerts] by falling probability */
} basin_nodes_findings;

basin_status basin_nodes_document_write(const char *path, const basin_nodes_findings *findings,
                                        basin_error *error);

#endif
