/* Scores: a few measures by name; see include/basin/tasks/run.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "basin/tasks/run.h"

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
