/* A report's page while it is written, for the files that write its sections. */
#ifndef BASIN_TASK_IMAGE_REPORT_PAGE_H
#define BASIN_TASK_IMAGE_REPORT_PAGE_H

#include "task/image/report/report.h"
#include "view/html.h"

typedef struct basin_image_page {
    basin_html page;
    const basin_image_findings *report;
    const basin_image_settings *settings; /* of the first model; sizes are those of all */
    basin_picture picture;                /* scratch */
    int64_t tokens, values;               /* N, P */
} basin_image_page;

/* ---- what sections are made of ---- */

/* The last part of a picture's name. */
const char *basin_image_page_name(char text[BASIN_PICTURE_NAME], const basin_image_page *w,
                                  int64_t index);
/* What a model is called: the last part of its name, or all of it where two have that; and by a
 * letter where there are several, "" where there is one. */
const char *basin_image_page_model(const basin_image_page *w, const basin_image_entry *entry);
const char *basin_image_page_letter(const basin_image_page *w, const basin_image_entry *entry);
/* Which kind of model it is, in words. */
const char *basin_image_page_arch(const basin_image_settings *settings);
/* A heading with letter and name where there are several models. */
void basin_image_page_heading(basin_image_page *w, const basin_image_entry *entry);
/* A check box that shows the second of either. */
void basin_image_page_toggle(basin_image_page *w, const char *target, const char *label);
/* A picture of patches [N, P], normalised as that model has it; those of `mask` in grey. */
void basin_image_page_picture(basin_image_page *w, const basin_image_entry *entry,
                              const float *patches, const uint8_t *mask, const char *alt,
                              const char *attributes);
/* Thumbnails of traced pictures to choose one by; `group` names the radio buttons. */
void basin_image_page_picks(basin_image_page *w, const char *group, int64_t count);
/* The colours of maps, with what both ends mean. */
void basin_image_page_scale(basin_image_page *w, const char *low, const char *high);
/* A plot over steps, in a cell of class plots. */
void basin_image_page_plot(basin_image_page *w, const char *title, const char *y_label,
                           const basin_plot_line *line, int lines, const char *x_label);
/* `count` numbers 0, 1, ..; NULL, and an error in the page, where memory lacks. */
double *basin_image_page_steps(basin_image_page *w, int count);

/* ---- sections; a model that lacks what they show has none ---- */

void basin_image_page_scores(basin_image_page *w);
void basin_image_page_completed(basin_image_page *w);
void basin_image_page_extremes(basin_image_page *w);
void basin_image_page_descent(basin_image_page *w);
void basin_image_page_attention(basin_image_page *w);
void basin_image_page_memories(basin_image_page *w);
void basin_image_page_heads(basin_image_page *w);
void basin_image_page_positions(basin_image_page *w);
void basin_image_page_parameters(basin_image_page *w);
void basin_image_page_settings(basin_image_page *w);

/* page.css and page.js, NULL-terminated lists of lines, embedded by the build. */
extern const char *const basin_image_page_style[], *const basin_image_page_script[];

#endif
