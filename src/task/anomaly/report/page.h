/* A report on a detector while it is written: what was found, and the sections of its page. */
#ifndef BASIN_TASK_ANOMALY_REPORT_PAGE_H
#define BASIN_TASK_ANOMALY_REPORT_PAGE_H

#include "task/anomaly/anomaly.h"
#include "view/html.h"

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

/* ---- curves.c ---- */

basin_status basin_anomaly_curves(basin_anomaly_findings *findings, basin_error *error);

/* ---- the page and its sections ---- */

basin_status basin_anomaly_page_write(const char *path, const basin_anomaly_findings *findings,
                                      basin_error *error);
void basin_anomaly_page_curves(basin_html *page, const basin_anomaly_findings *findings);
void basin_anomaly_page_scores(basin_html *page, const basin_anomaly_findings *findings);
void basin_anomaly_page_alerts(basin_html *page, const basin_anomaly_findings *findings);
void basin_anomaly_page_columns(basin_html *page, const basin_anomaly_findings *findings);
void basin_anomaly_page_model(basin_html *page, const basin_anomaly_findings *findings);

/* page.css, a NULL-terminated list of lines, embedded by the build. */
extern const char *const basin_anomaly_page_style[];

#endif
