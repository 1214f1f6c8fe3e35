/* A report on a detector: what was found (report.c), and the document that says it (document.c). */
#ifndef BASIN_TASK_ANOMALY_REPORT_REPORT_H
#define BASIN_TASK_ANOMALY_REPORT_REPORT_H

#include "task/anomaly/anomaly.h"

enum { BASIN_CURVE_POINTS = 200 };

/* A curve over thresholds, thinned out. */
typedef struct basin_anomaly_curve {
    double x[BASIN_CURVE_POINTS + 2], y[BASIN_CURVE_POINTS + 2];
    int64_t count;
} basin_anomaly_curve;

typedef struct basin_anomaly_findings {
    const basin_anomaly_model *model;
    const basin_network *network;
    const char *name;    /* of the model */
    double *probability; /* [N] */
    bool judged;         /* there are labels of both kinds: */
    basin_anomaly_figures figures;
    basin_anomaly_samples samples;
    basin_anomaly_curve precision, roc; /* by recall; true by false alarms */
    basin_anomaly_drift drift;          /* without columns: not known */
    int64_t alerts, reasons;
    basin_anomaly_explanation **why; /* [alerts] by falling probability */
} basin_anomaly_findings;

basin_status basin_anomaly_document_write(const char *path, const basin_anomaly_findings *findings,
                                          basin_error *error);

#endif
