/* One window of tokens, run on a model: what follows its last token, and where asked how surprising
 * each of its tokens is. */
#ifndef BASIN_TASK_TEXT_WINDOW_H
#define BASIN_TASK_TEXT_WINDOW_H

#include "task/text/text.h"

/* Lengths that have a plan: 16, 32, .. up to the context. A window is filled up behind its last
 * token, where nothing before it sees. */
enum { BASIN_WINDOW_LENGTHS = 24 };

typedef struct basin_text_plan {
    basin_text_graph graph;
    basin_plan *plan;
    basin_expr last, label;      /* index [1]; index [tokens], NULL where surprises are not asked */
    basin_expr logits, surprise; /* [1, V] [tokens] */
} basin_text_plan;

typedef struct basin_text_window {
    basin_text_model *model;
    int64_t steps;                                  /* of energies; 0: without */
    basin_text_plan *plan[2][BASIN_WINDOW_LENGTHS]; /* [1]: with surprises */
    int32_t *id, *label;                            /* [context] */
    /* Of the last run: */
    double *logit;    /* [V] after the last token */
    double *surprise; /* [context] of each token, by those before it; NaN of the first */
    double *energy;   /* [steps + 1, 2, context] */
    int64_t length;   /* of its plan, and the stride of the energies */
} basin_text_window;

basin_status basin_text_window_new(basin_text_window *window, basin_text_model *model,
                                   bool energies, basin_error *error);
void basin_text_window_free(basin_text_window *window);
/* 1 <= count <= context tokens. `look`: surprises, too. */
basin_status basin_text_window_run(basin_text_window *window, const int32_t *id, int64_t count,
                                   bool look, basin_error *error);
/* The energies of token n of the last run, [steps + 1, 2]. */
void basin_text_window_energies(double *energy, const basin_text_window *window, int64_t n);

#endif
