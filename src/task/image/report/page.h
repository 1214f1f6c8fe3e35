/* A report's page while it is written, for the files that write its sections. */
#ifndef BASIN_TASK_IMAGE_REPORT_PAGE_H
#define BASIN_TASK_IMAGE_REPORT_PAGE_H

#include "task/image/report/report.h"
#include "view/html.h"

typedef struct basin_image_page {
    basin_html page;
    const basin_image_findings *report;
    const basin_image_settings *settings;
    basin_picture picture;  /* scratch */
    int64_t tokens, values; /* N, P */
} basin_image_page;

/* A check box that shows the second of either. */
void basin_image_page_toggle(basin_image_page *w, const char *target, const char *label);

/* Sections; a model that lacks what they show has none. */
void basin_image_page_memories(basin_image_page *w);
void basin_image_page_attention(basin_image_page *w);
void basin_image_page_positions(basin_image_page *w);

#endif
