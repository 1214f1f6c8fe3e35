/* Splits to go over; see splits.h. */
#include "cli/splits.h"

#include <stdio.h>
#include <string.h>

/* A file with fewer splits than runs: each of them once, or the only one with other seeds. */
static void note_fewer(const basin_splits *s, int64_t runs, const basin_watch *watch) {
    char line[200];
    long long splits = s->network->splits;
    if (!s->masks || (s->runs == runs && (splits > 1 || runs == 1))) return;
    if (splits == 1)
        snprintf(line, sizeof line, "the file has 1 split: %lld runs on it with different seeds",
                 (long long)s->runs);
    else
        snprintf(line, sizeof line, "the file has %lld splits: %lld runs instead of %lld", splits,
                 (long long)s->runs, (long long)runs);
    watch->note(watch->context, line);
}

static void note_idle(const char *option, const basin_watch *watch) {
    char line[200];
    snprintf(line, sizeof line,
             "--%s has no effect: the file brings splits; --split ratio draws others", option);
    watch->note(watch->context, line);
}

basin_status basin_splits_plan(basin_splits *splits, const basin_network *network,
                               const char *split, double ratio, const char *idle, int64_t first,
                               int64_t runs, const basin_watch *watch, basin_error *error) {
    int64_t there = network->splits;
    bool masks = !strcmp(split, "masks") || (!strcmp(split, "auto") && there > 0);
    *splits = (basin_splits){network, masks, ratio, first, runs};
    if (!network->label)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no labels to compare with", network->path);
    if (masks && first >= there)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: %lld splits; there is no number %lld",
                          network->path, (long long)there, (long long)first);
    if (masks && there > 1 && runs > there - first) splits->runs = there - first;
    if (masks && idle) note_idle(idle, watch);
    note_fewer(splits, runs, watch);
    return BASIN_OK;
}

basin_status basin_splits_take(uint8_t *part, const basin_splits *splits, int64_t run, int64_t seed,
                               basin_error *error) {
    const basin_splits *s = splits;
    int64_t number = s->first + run;
    if (s->masks) /* of a file with one split, each run has another seed */
        return basin_split_from_masks(part, s->network, s->network->splits > 1 ? number : 0, error);
    return basin_split_stratified(part, s->network, s->ratio, (uint64_t)seed, (uint64_t)number,
                                  error);
}
