/* What `basin bench` is made of: things to time, which take turns so that a busy neighbour affects
 * them all, a median each; the sets for images and for graphs. */
#ifndef BASIN_BENCH_BENCH_H
#define BASIN_BENCH_BENCH_H

#include "basin/tasks/networks.h"
#include "tasks/common/run/run.h"

enum { BASIN_BENCH_ROUNDS = 101, BASIN_BENCH_ITEMS = 8 };

/* Sizes of a run. Those of the other kind are 0. */
typedef struct basin_bench_shape {
    const char *name;
    int64_t batch, tokens, patch;   /* images */
    int64_t nodes, edges, features; /* graphs; edges counts both directions */
    int64_t dim, heads, head_dim, memories, steps;
} basin_bench_shape;

typedef struct basin_bench_item {
    const char *key, *name; /* "forward", "whole forward pass" */
    basin_plan *plan;
    double flops; /* of the matrix products of one run; 0 where they are not counted */
    double bytes; /* that a run without products reads and writes, likewise */
    double median, least;
    double seconds[BASIN_BENCH_ROUNDS];
} basin_bench_item;

/* What the machine can do: operations and bytes per second; 0 where that was not measured. */
typedef struct basin_bench_limit {
    double f32, bf16; /* multiply-adds in registers, two operations each */
    double memory;    /* x = y + a z of arrays that no cache holds: three passes */
} basin_bench_limit;

typedef struct basin_bench {
    basin_bench_shape shape;
    bool recompute, whole; /* whole: only the forward pass and the training step */
    uint64_t seed;
    basin_backend *backend;
    basin_store *store;
    basin_graph *graph;
    basin_params params;
    basin_optimizer adamw;
    basin_pairs pairs;
    basin_plan_stats training; /* of the training step */
    basin_bench_item item[BASIN_BENCH_ITEMS];
    int items;
    int64_t peak;               /* bytes of the process once all has run */
    basin_bench_limit limit[2]; /* of one thread and of all, on cpu */
} basin_bench;

/* ---- bench.c ---- */

/* A plan for the outputs (and updates), to be timed as an item. */
basin_status basin_bench_plan(basin_plan **plan, basin_bench *bench, const char *key,
                              const char *name, const basin_plan_spec *spec, double flops,
                              basin_error *error);
/* The same for a training step with AdamW. */
basin_status basin_bench_training(basin_plan **plan, basin_bench *bench, basin_expr loss,
                                  double flops, basin_error *error);
/* Normal numbers for an input; 0 and 1 with the given share of ones where that is not 0. */
basin_status basin_bench_write(basin_bench *bench, basin_plan *plan, basin_expr input, double share,
                               basin_error *error);
/* A single thread is timed by its CPU time, which other programs do not change. */
bool basin_bench_alone(const basin_bench *bench);
/* Keeps only the item of that key; the error of an unknown key names all items. */
basin_status basin_bench_keep(basin_bench *bench, const char *key, basin_error *error);
basin_status basin_bench_run(basin_bench *bench, int rounds, const basin_watch *watch,
                             basin_error *error);
const basin_bench_item *basin_bench_find(const basin_bench *bench, const char *key); /* or NULL */
void basin_bench_free(basin_bench *bench);
/* The settings of a block of this shape, with a beta per head. */
basin_block_config basin_bench_block(const basin_bench_shape *shape);

/* ---- limit.c: limits of one thread, and of several ---- */

basin_status basin_bench_limits(basin_bench_limit limit[2], int threads, basin_error *error);

/* ---- image.c, graph.c: declare the model and add the items ---- */

basin_status basin_bench_image(basin_bench *bench, basin_error *error);
basin_status basin_bench_graph(basin_bench *bench, basin_error *error);

#endif
