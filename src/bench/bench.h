/* What `basin bench` is made of: things to time, which take turns so that a change of clock or a
 * busy neighbour meets them all, and give a median each; and the two sets of them, for images and
 * for graphs. */
#ifndef BASIN_BENCH_BENCH_H
#define BASIN_BENCH_BENCH_H

#include "basin/model.h"
#include "basin/train.h"
#include "train/run/watch.h"

enum { BASIN_BENCH_ROUNDS = 101, BASIN_BENCH_ITEMS = 16, BASIN_BENCH_PLANS = 12 };

/* Sizes of a run. Those of the other kind are 0. */
typedef struct basin_bench_shape {
    const char *name;
    int64_t batch, tokens, patch;   /* images */
    int64_t nodes, edges, features; /* graphs; edges counts both directions */
    int64_t dim, heads, head_dim, memories, steps;
} basin_bench_shape;

typedef struct basin_bench_item {
    const char *key, *name; /* "forward", "whole forward pass" */
    basin_status (*run)(void *context, basin_error *error);
    void *context;
    double flops; /* of the matrix products of one run; 0 where they are not counted */
    double median, least;
    double seconds[BASIN_BENCH_ROUNDS];
} basin_bench_item;

typedef struct basin_yardstick basin_yardstick;

typedef struct basin_bench {
    basin_bench_shape shape;
    bool recompute, whole; /* whole: the forward pass and the training step alone */
    uint64_t seed;
    basin_backend *backend;
    basin_store *store;
    basin_graph *graph;
    basin_params params;
    basin_adamw adamw;
    basin_pairs pairs;
    basin_yardstick *products;
    basin_plan *plan[BASIN_BENCH_PLANS];
    int plans;
    basin_plan_stats training; /* of the training step */
    basin_bench_item item[BASIN_BENCH_ITEMS];
    int items;
} basin_bench;

/* bench.c */
void basin_bench_add(basin_bench *bench, const char *key, const char *name,
                     basin_status (*run)(void *context, basin_error *error), void *context,
                     double flops);
/* A plan for the outputs (and updates), to be timed as an item; NULL on failure. */
basin_plan *basin_bench_plan(basin_bench *bench, const char *key, const char *name,
                             const basin_plan_spec *spec, double flops, basin_error *error);
/* Normal numbers (times `scale`) for an input; 0 and 1 with the given share of ones. */
basin_status basin_bench_normal(basin_bench *bench, basin_plan *plan, basin_expr input,
                                double scale, basin_error *error);
basin_status basin_bench_bits(basin_bench *bench, basin_plan *plan, basin_expr input, double share,
                              basin_error *error);
/* A single thread is timed by what it computed, which other programs on the machine do not move. */
bool basin_bench_alone(const basin_bench *bench);
/* Keeps the item of that key alone; an error that names all of them where there is none. */
basin_status basin_bench_keep(basin_bench *bench, const char *key, basin_error *error);
basin_status basin_bench_run(basin_bench *bench, int rounds, const basin_watch *watch,
                             basin_error *error);
const basin_bench_item *basin_bench_find(const basin_bench *bench, const char *key); /* or NULL */
void basin_bench_free(basin_bench *bench);
/* The settings of a block of this shape, with a beta a head. */
basin_block_config basin_bench_block(const basin_bench_shape *shape);

/* bench_image.c, bench_graph.c: declare the model and add the items */
basin_status basin_bench_image(basin_bench *bench, basin_error *error);
basin_status basin_bench_graph(basin_bench *bench, basin_error *error);

/* bench_products.c: the matrix products of the image model alone, forward and in training; the
 * first and third want basin_blas_open */
basin_status basin_yardstick_new(basin_yardstick **products, const basin_bench_shape *shape,
                                 int threads, basin_error *error);
void basin_yardstick_free(basin_yardstick *products);
double basin_yardstick_flops(const basin_bench_shape *shape); /* forward; training: three times */
basin_status basin_yardstick_blas(void *products, basin_error *error);
basin_status basin_yardstick_own(void *products, basin_error *error);
basin_status basin_yardstick_blas_training(void *products, basin_error *error);
basin_status basin_yardstick_own_training(void *products, basin_error *error);

/* ---- the machine's BLAS, opened only where it is asked for: the program does not link it, and
 * other commands do not load it and its threads ---- */

/* Opens it once a process; false where there is none. */
bool basin_blas_open(void);
/* The file that would be opened; NULL where there is none. */
const char *basin_blas_file(void);
/* What it says of itself, or its file's name; "none found". */
const char *basin_blas_name(void);
void basin_blas_threads(int threads); /* where it is OpenBLAS */

/* c [m, n] = a b, row by row; a is [m, k] or turned [k, m], b [k, n] or turned [n, k]. */
void basin_blas_product(float *c, const float *a, bool a_turned, const float *b, bool b_turned,
                        int64_t m, int64_t n, int64_t k);

/* ---- bench --latency: how long one item takes from call to result on an open model ---- */

enum { BASIN_LATENCY_ITEMS = 3 };

typedef struct basin_latency {
    const char *key, *name;    /* "picture", "a picture of 28 x 28, half of it missing" */
    double first, median, p99; /* seconds: of the first call, of those after it */
} basin_latency;

/* One picture, one node and one molecule, each `calls` times, on small models that are made for the
 * purpose. */
basin_status basin_bench_latency(basin_latency result[BASIN_LATENCY_ITEMS], basin_backend *backend,
                                 int calls, uint64_t seed, basin_error *error);

/* ---- bench --pictures: what the input of image training delivers, from files or from pictures
 * kept decoded, and where one thread's time goes ---- */

enum { BASIN_BENCH_PICTURES_ROUNDS = 101 };

typedef struct basin_bench_pictures_spec {
    const char *const *path; /* [paths], as basin_pictures_open takes them */
    int paths;
    basin_backend *backend;
    int64_t size, patch, batch, rounds, seed;
    int threads;
    const char *keep_decoded, *cut_from; /* as in basin_image_data */
} basin_bench_pictures_spec;

typedef struct basin_bench_pictures_result {
    int64_t pictures, unreadable;
    const char *keep_decoded, *cut_from; /* what "auto" came to */
    size_t kept;                         /* bytes of decoded pictures */
    double rate;                         /* images/s of batches in the plan's input */
    double read, crop, augment, whole;   /* seconds a picture, one thread */
} basin_bench_pictures_result;

basin_status basin_bench_pictures(basin_bench_pictures_result *result,
                                  const basin_bench_pictures_spec *spec, basin_error *error);

#endif
