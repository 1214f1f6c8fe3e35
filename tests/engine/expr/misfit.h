/* Tables of formulas that must not build: each gives NULL and one message that says what it got. */
#ifndef BASIN_TESTS_EXPR_MISFIT_H
#define BASIN_TESTS_EXPR_MISFIT_H

#include <string.h>

#include "support/lab.h"

/* A row of a table; the expression is the function's of that name. */
#define MISFIT(name, expression, ...) {#name, name, {__VA_ARGS__}},

enum { MISFIT_SAYS = 3 };

/* Whether `made` is NULL and the graph's message has all of `says`; prints what is wrong. */
static inline bool misfit_told(const char *name, basin_expr made, const basin_graph *graph,
                               const char *const says[MISFIT_SAYS]) {
    const basin_error *error = basin_graph_error(graph);
    bool told = !made && error && error->status != BASIN_OK && !strchr(error->text, '\n');
    for (int k = 0; k < MISFIT_SAYS && says[k]; k++) told = told && strstr(error->text, says[k]);
    if (!told)
        print_error("%s: %s, '%s'\n", name, made ? "built" : "NULL",
                    error ? error->text : "no error");
    return told;
}

#endif
