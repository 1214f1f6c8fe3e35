/* What a run says: to a watcher, as scores, of fixed points. See run.h and
 * include/basin/tasks/run.h. */
#include "train/run/run.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "basin/tasks/run.h"

void basin_watch_show(const basin_watch *watch, const basin_news *news) {
    if (watch && watch->show) watch->show(watch->context, news);
}

void basin_watch_note(const basin_watch *watch, const char *format, ...) {
    char line[1024];
    if (!watch || !watch->note) return;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    watch->note(watch->context, line);
}

bool basin_watch_stopped(const basin_watch *watch) { return watch && watch->stop && *watch->stop; }

/* ---- scores ---- */

double basin_score_get(const basin_score *score, const char *name) {
    for (int i = 0; i < score->measures; i++)
        if (!strcmp(score->measure[i].name, name)) return score->measure[i].value;
    return NAN;
}

void basin_score_add(basin_score *score, const char *name, double value) {
    if (score->measures >= BASIN_MEASURES) return;
    int i = score->measures++;
    snprintf(score->measure[i].name, sizeof score->measure[i].name, "%s", name);
    score->measure[i].value = value;
}

/* ---- fixed points ---- */

/* The larger one; NaN where one is. */
static double worse(double a, double b) { return a <= b || isnan(b) ? b : a; }

void basin_convergence_add(basin_convergence *sum, const basin_convergence *more) {
    sum->points += more->points;
    sum->steps += more->steps;
    if (more->most_steps > sum->most_steps) sum->most_steps = more->most_steps;
    sum->restless += more->restless;
    sum->change = worse(sum->change, more->change);
    sum->solutions += more->solutions;
    sum->products += more->products;
    sum->unsolved += more->unsolved;
    sum->residual = worse(sum->residual, more->residual);
}

void basin_convergence_log(basin_json *line, const basin_convergence *r) {
    if (!r->points) return;
    basin_json_number(line, "rest_steps", (double)r->steps / (double)r->points);
    basin_json_integer(line, "rest_most_steps", r->most_steps);
    basin_json_number(line, "rest_change", r->change);
    basin_json_integer(line, "restless", r->restless);
    if (!r->solutions) return;
    basin_json_number(line, "rest_products", (double)r->products / (double)r->solutions);
    basin_json_number(line, "rest_residual", r->residual);
    basin_json_integer(line, "unsolved", r->unsolved);
}

bool basin_convergence_tell(char *text, size_t size, const basin_convergence *r) {
    size_t at = 0;
    if (size) *text = 0;
    if (r->restless)
        at = (size_t)snprintf(text, size,
                              "%lld of %lld descents were not at rest after %lld steps, forces of "
                              "up to %.2g of a token were left; more rest_steps or another alpha "
                              "may help",
                              (long long)r->restless, (long long)r->points,
                              (long long)r->most_steps, r->change);
    if (r->unsolved && at < size)
        snprintf(text + at, size - at,
                 "%s%lld of %lld gradients at rest are off, their linear systems by up to %.2g; "
                 "more rest_products may help",
                 at ? "; " : "", (long long)r->unsolved, (long long)r->solutions, r->residual);
    return r->restless || r->unsolved;
}

void basin_convergence_note(const basin_watch *watch, const char *when,
                            const basin_convergence *r) {
    char text[400];
    if (basin_convergence_tell(text, sizeof text, r)) basin_watch_note(watch, "%s: %s", when, text);
}
