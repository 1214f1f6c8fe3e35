/* basin bench: times the block, its parts and the training step at a given shape. */
#include <sys/resource.h>

#include "base/info.h"
#include "program/bench/bench.h"
#include "program/cli.h"

typedef struct options {
    BASIN_ARGS;
    const char *shape, *only;
    int64_t batch, tokens, patch, nodes, edges, features, dim, heads, head_dim, memories, steps;
    int64_t rounds;
    bool recompute, whole, calls;
} options;
#define OPTIONS options

#define SIZE(field, name, value, needs_)                                                           \
    BASIN_INTEGER(field, name, value, 0, 1000000000, .needs = needs_, .more = true)
#define IMAGE "shape=paper|image-small"
#define GRAPH "shape=amazon|amazon-part|graph-small"

static const basin_option table[] = {
    BASIN_CHOICE(shape, "shape", "paper|image-small|amazon|amazon-part|graph-small",
                 .text = "paper"),
    BASIN_INTEGER(batch, "batch", "B", 0, 1000000000, .needs = IMAGE),
    SIZE(tokens, "tokens", "N", IMAGE),
    SIZE(patch, "patch", "P", IMAGE),
    SIZE(nodes, "nodes", "N", GRAPH),
    SIZE(edges, "edges", "E", GRAPH),
    SIZE(features, "features", "F", GRAPH),
    SIZE(dim, "dim", "D", ""),
    SIZE(heads, "heads", "H", ""),
    SIZE(head_dim, "head-dim", "Y", ""),
    SIZE(memories, "memories", "M", ""),
    SIZE(steps, "steps", "T", ""),
    BASIN_FLAG(recompute, "recompute"),
    BASIN_FLAG(whole, "whole"),
    BASIN_TEXT(only, 0, "only", "KEY"),
    BASIN_FLAG(calls, "calls"),
    BASIN_INTEGER(rounds, "rounds", "R", 1, BASIN_BENCH_ROUNDS, .needs = "calls=off", .initial = 5),
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTION_SEED,
    BASIN_OPTION_QUIET,
    BASIN_OPTION_JSON_FOR("calls=off"),
    BASIN_OPTIONS_END,
};

static const basin_bench_shape shapes[] = {
    {"paper", 4, 196, 768, 0, 0, 0, 768, 12, 64, 3072, 12},
    {"image-small", 16, 64, 48, 0, 0, 0, 128, 4, 32, 512, 12},
    {"amazon", 0, 0, 0, 11944, 8796784, 25, 128, 2, 128, 640, 1},
    {"amazon-part", 0, 0, 0, 11944, 1760000, 25, 128, 2, 128, 640, 1},
    {"graph-small", 0, 0, 0, 1000, 20000, 16, 64, 2, 32, 128, 2},
};

/* Sizes of a shape, and the options that override them. */
#define SIZE_OF(name)                                                                              \
    { #name, offsetof(basin_bench_shape, name), offsetof(options, name) }
static const struct {
    const char *name;
    size_t size, option;
} sizes[] = {SIZE_OF(nodes),    SIZE_OF(edges),    SIZE_OF(features), SIZE_OF(batch),
             SIZE_OF(tokens),   SIZE_OF(patch),    SIZE_OF(dim),      SIZE_OF(heads),
             SIZE_OF(head_dim), SIZE_OF(memories), SIZE_OF(steps)};
enum { SIZES = sizeof sizes / sizeof *sizes };

static basin_bench_shape read_shape(const options *o) {
    basin_bench_shape s = shapes[0];
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!strcmp(shapes[i].name, o->shape)) s = shapes[i];
    for (int i = 0; i < SIZES; i++) {
        int64_t given = *(const int64_t *)((const char *)o + sizes[i].option);
        if (given > 0) *(int64_t *)((char *)&s + sizes[i].size) = given;
    }
    return s;
}

static basin_status measure(basin_bench *bench, options *o, basin_error *error) {
    BASIN_TRY(basin_compute_open(&o->args, error));
    bench->backend = o->compute, o->compute = NULL; /* which closes it */
    BASIN_TRY(basin_store_new(&bench->store, bench->backend, error));
    bench->graph = basin_graph_new();
    if (!bench->graph) return basin_fail_memory(error, "a graph");
    basin_params_begin(&bench->params, bench->graph);
    BASIN_TRY(bench->shape.nodes ? basin_bench_graph(bench, error)
                                 : basin_bench_image(bench, error));
    if (o->only) BASIN_TRY(basin_bench_keep(bench, o->only, error));
    if (o->calls) return BASIN_OK;
    basin_cli_watch_plain(&o->watch, o->quiet);
    BASIN_TRY(basin_bench_run(bench, (int)o->rounds, &o->watch.watch, error));
    struct rusage usage; /* before the limits, whose arrays are not the model's */
    bench->peak = getrusage(RUSAGE_SELF, &usage) ? 0 : 1024 * (int64_t)usage.ru_maxrss;
    if (strcmp(o->backend, "cpu") != 0) return BASIN_OK;
    return basin_bench_limits(bench->limit, basin_backend_info_of(bench->backend).threads, error);
}

/* ---- results ---- */

static double rate(const basin_bench *bench, const char *key, int64_t count) {
    const basin_bench_item *item = basin_bench_find(bench, key);
    return item && item->median > 0 ? (double)count / item->median : 0;
}

static void put_shape(basin_record *r, const basin_bench *bench) {
    basin_bench_shape s = bench->shape;
    if (s.nodes) s.edges = bench->pairs.pairs;
    basin_record_object(r, "shape");
    basin_record_text(r, "name|", s.name);
    for (int i = 0; i < SIZES; i++) {
        int64_t size = *(const int64_t *)((const char *)&s + sizes[i].size);
        if (size) basin_record_integer(r, sizes[i].name, size); /* 0: of the other kind of shape */
    }
    basin_record_end(r);
}

/* The share of the machine's limit that an item reached; 0: not known. */
static double share(const basin_bench *bench, const basin_bench_item *item) {
    const basin_bench_limit *most = &bench->limit[1];
    bool narrow = basin_backend_info_of(bench->backend).storage == BASIN_BF16;
    double done = item->flops > 0 ? item->flops : item->bytes;
    double rate = item->flops <= 0 ? most->memory : narrow ? most->bf16 : most->f32;
    return rate > 0 ? done / item->median / rate : 0;
}

static void put_limits(basin_record *r, const basin_bench *bench) {
    static const char *const name[] = {"limits, one thread", "limits, all threads"};
    basin_record_dictionary(r, "limits", NULL);
    for (int i = 0; i < 2; i++) {
        const basin_bench_limit *l = &bench->limit[i];
        basin_record_entry(r, i ? "all_threads" : "one_thread");
        basin_record_fields(r, "name|=%s;f32_gflops|f32 GFLOP/s=%.1f", name[i], 1e-9 * l->f32);
        if (l->bf16 > 0) basin_record_number(r, "bf16_gflops|bf16 GFLOP/s", "%.1f", 1e-9 * l->bf16);
        basin_record_number(r, "memory_gb_s|memory GB/s", "%.1f", 1e-9 * l->memory);
    }
    basin_record_end(r);
}

static void put_items(basin_record *r, const basin_bench *bench, int rounds) {
    basin_record_dictionary(r, "items", NULL);
    for (int i = 0; i < bench->items; i++) {
        const basin_bench_item *item = &bench->item[i];
        basin_record_entry(r, item->key);
        basin_record_fields(r, "name|=%s;.median_s=%g;.least_s=%g;|median ms=%.3f;|min ms=%.3f",
                            item->name, item->median, item->least, 1e3 * item->median,
                            1e3 * item->least);
        basin_record_numbers(r, "seconds", item->seconds, rounds);
        if (item->flops > 0)
            basin_record_number(r, "gflops", "%.1f", item->flops / item->median * 1e-9);
        if (share(bench, item) > 0)
            basin_record_number(r, "of_limit|of limit", "%.2f", share(bench, item));
    }
    basin_record_end(r);
}

/* Nothing if the item was not timed. */
static void put_rate(basin_record *r, const char *name, const basin_bench *bench, const char *key,
                     int64_t count) {
    if (basin_bench_find(bench, key)) basin_record_number(r, name, "%.3f", rate(bench, key, count));
}

typedef struct measured {
    const basin_bench *bench;
    options *o;
} measured;

static void put_bench(basin_record *r, const void *context) {
    const basin_bench *bench = ((const measured *)context)->bench;
    options *o = ((const measured *)context)->o;
    const basin_bench_shape *s = &bench->shape;
    put_shape(r, bench);
    basin_record_fields(r, "backend=%s;products=%s;dtype=%s;instruction_set=%s;threads=%lld",
                        o->backend, o->products,
                        basin_dtype_name(basin_backend_info_of(bench->backend).storage),
                        basin_machine_info_now().instruction_set,
                        (long long)basin_backend_info_of(bench->backend).threads);
    basin_record_text(r, "clock", basin_bench_alone(bench) ? "cpu" : "wall");
    basin_record_integer(r, "rounds", o->rounds);
    put_items(r, bench, (int)o->rounds);
    if (bench->limit->f32 > 0) put_limits(r, bench);
    if (s->nodes) {
        put_rate(r, "edges_per_s|training edges/s", bench, "training", bench->pairs.pairs);
    } else {
        put_rate(r, "images_per_s|forward images/s", bench, "forward", s->batch);
        put_rate(r, "training_images_per_s|training images/s", bench, "training", s->batch);
    }
    basin_record_bytes(r, "training_arena_bytes|training results",
                       (int64_t)bench->training.arena_bytes);
    basin_record_bytes(r, "training_state_bytes|training states",
                       (int64_t)bench->training.state_bytes);
    basin_record_bytes(r, "training_input_bytes|training inputs",
                       (int64_t)bench->training.input_bytes);
    basin_record_bytes(r, "peak_resident_bytes|process at its peak", bench->peak);
}

/* The calls of the last item: the training step, or that of --only. */
static void print_calls(const basin_bench *bench) {
    const basin_plan *plan = bench->item[bench->items - 1].plan;
    basin_plan_stats stats = basin_plan_stats_of(plan);
    char text[1000];
    for (int i = 0; i < stats.calls; i++) {
        basin_plan_describe(plan, i, text, sizeof text);
        printf("%4d%c %s\n", i, i < stats.hoisted ? '*' : ' ', text);
    }
}

static basin_status run(void *context, basin_error *error) {
    options *o = context;
    BASIN_AT_EXIT(basin_bench_free)
    basin_bench bench = {.shape = read_shape(o),
                         .recompute = o->recompute,
                         .whole = o->whole || o->calls,
                         .seed = (uint64_t)o->seed};
    BASIN_TRY(measure(&bench, o, error));
    basin_cli_watch_end(&o->watch);
    if (o->calls) return print_calls(&bench), BASIN_OK;
    return basin_record_print(o->json, put_bench, &(measured){&bench, o}, error);
}

const basin_command basin_command_bench = {BASIN_COMMAND("bench", table), .run = run};
