/* The splits of the nodes that `anomaly eval` and `node eval` go over: those of the file, or drawn
 * ones. */
#ifndef BASIN_CLI_SPLITS_H
#define BASIN_CLI_SPLITS_H

#include "cli/command.h"
#include "cli/watch.h"
#include "data/network/network.h"

enum { BASIN_SPLITS_RUNS = 1000 }; /* at most */

/* `type` has members split, ratio, runs and first; what `ratio` and `runs` need is the command's.
 */
#define BASIN_OPTIONS_SPLITS(type, ratio_needs, runs_needs)                                        \
    BASIN_CHOICE(type, split, "split", "auto|ratio|masks",                                         \
                 "ratio: stratified, drawn anew each run; masks: the file's; auto: masks where "   \
                 "there are."),                                                                    \
        BASIN_REAL(type, ratio, "ratio", "X", 0.0001, 0.95,                                        \
                   "The part of the labelled nodes for training; the rest is split 1:2 into "      \
                   "validation and test.",                                                         \
                   .needs = ratio_needs),                                                          \
        BASIN_INTEGER(type, runs, "runs", "N", 1, BASIN_SPLITS_RUNS,                               \
                      "Runs, each with a split of its own; where the file has but one, with a "    \
                      "seed of its own.",                                                          \
                      .needs = runs_needs),                                                        \
        BASIN_INTEGER(type, first, "first", "N", 0, 1000, "The number of the first split.")

typedef struct basin_splits {
    const basin_network *network;
    bool masks; /* the file's; else drawn by `ratio` */
    double ratio;
    int64_t first, runs;
} basin_splits;

/* What the options mean for this network; `watch` is told where that is fewer runs than `runs`, and
 * where the file's own splits leave `idle`, an option of drawn ones that was given (or NULL), no
 * effect. Fails without labels, and where there is no split `first`. */
basin_status basin_splits_plan(basin_splits *splits, const basin_network *network,
                               const char *split, double ratio, const char *idle, int64_t first,
                               int64_t runs, const basin_watch *watch, basin_error *error);
/* The nodes of split `run`, counted from 0; `seed` is that of drawn ones. */
basin_status basin_splits_take(uint8_t *part /* [N] */, const basin_splits *splits, int64_t run,
                               int64_t seed, basin_error *error);

#endif
