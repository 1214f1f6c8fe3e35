/* Random expressions: the same number always gives the same graph, with or without its regions of
 * recomputation. */
#ifndef BASIN_TESTS_SUPPORT_WORLD_H
#define BASIN_TESTS_SUPPORT_WORLD_H

#include "basin/expr.h"
#include "basin/plan.h"
#include "basin/random.h"

enum { WORLD_POOL = 100, WORLD_LEAVES = 24, WORLD_OUTPUTS = 16, WORLD_UPDATES = 4 };

typedef struct world {
    basin_random random;
    basin_graph *graph;
    bool rough;   /* may hold kinks and jumps, whose place float and double see differently */
    bool regions; /* recompute */
    bool large;   /* sizes that fill vectors, blocks and threads */
    basin_expr pool[WORLD_POOL];
    int pools;
    basin_expr leaf[WORLD_LEAVES]; /* inputs and states, then index inputs */
    double low[WORLD_LEAVES], high[WORLD_LEAVES];
    int leaves, real_leaves;
    basin_expr index, seed, beta, gamma, kernel;
    basin_expr output[WORLD_OUTPUTS];
    int outputs;
    basin_update update[WORLD_UPDATES];
    int updates;
} world;

/* Builds graph number `seed`; basin_graph_free(w->graph) ends it. */
void world_build(world *w, uint64_t seed, bool rough, bool regions);

#endif
