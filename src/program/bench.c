/* basin bench: times the forward pass and the training step at a given shape. They take turns, so
 * that a busy neighbour affects both, and each has a median. */
#include <sys/resource.h>

#include "base/clock.h"
#include "base/info.h"
#include "base/sort.h"
#include "base/training.h"
#include "basin/random.h"
#include "basin/tasks/networks.h"
#include "program/cli.h"
#include "tasks/common/run/run.h"
#include "tasks/nodes/anomaly.h"
#include "tasks/pictures/net.h"

enum { MAX_ROUNDS = 101, MAX_ITEMS = 2, MAX_INPUTS = 3 };

/* Sizes of a run, with the options that override them; those of the other kind are 0. */
#define SIZES(X)                                                                                   \
    X(nodes, "nodes", "N", GRAPH)                                                                  \
    X(edges, "edges", "E", GRAPH) /* both directions counted */                                    \
    X(features, "features", "F", GRAPH)                                                            \
    X(batch, "batch", "B", IMAGE)                                                                  \
    X(tokens, "tokens", "N", IMAGE)                                                                \
    X(patch, "patch", "P", IMAGE)                                                                  \
    X(dim, "dim", "D", "")                                                                         \
    X(heads, "heads", "H", "")                                                                     \
    X(head_dim, "head-dim", "Y", "")                                                               \
    X(memories, "memories", "M", "")                                                               \
    X(steps, "steps", "T", "")
#define IMAGE "shape=paper|image-small"
#define GRAPH "shape=amazon|graph-small"
#define MEMBER(name, ...) int64_t name;

typedef struct bench_shape {
    SIZES(MEMBER)
} bench_shape;

static const struct {
    const char *name;
    bench_shape size;
} shapes[] = {{"paper", {0, 0, 0, 4, 196, 768, 768, 12, 64, 3072, 12}},
              {"image-small", {0, 0, 0, 16, 64, 48, 128, 4, 32, 512, 12}},
              {"amazon", {11944, 8796784, 25, 0, 0, 0, 128, 2, 128, 640, 1}},
              {"graph-small", {1000, 20000, 16, 0, 0, 0, 64, 2, 32, 128, 2}}};

/* What is timed: one plan. */
typedef struct timing {
    const char *key, *name; /* "forward", "whole forward pass" */
    double flops;           /* of the matrix products of one run; 0 where they are not counted */
    basin_plan *plan;
    double median, minimum;
    double seconds[MAX_ROUNDS];
} timing;

typedef struct options {
    BASIN_ARGS;
    const char *shape, *only;
    bench_shape size;
    int64_t rounds;
    bool calls;
} options;
#define OPTIONS options

typedef struct benchmark {
    bench_shape shape;
    const options *o;
    uint64_t seed;
    basin_backend *backend;
    basin_store *store;
    basin_graph *graph;
    basin_params params;
    basin_trainer *trainer; /* its plan is an item */
    basin_pairs pairs;      /* of graphs; */
    basin_pattern pattern;
    basin_expr input[MAX_INPUTS];
    double share[MAX_INPUTS]; /* of ones in an input of 0 and 1; 0: normal numbers */
    int inputs;
    basin_plan_stats training; /* of the training step */
    timing item[MAX_ITEMS];
    int items;
    int64_t peak; /* bytes of the process once all has run */
} benchmark;

#define SIZE(field, name, value, needs_)                                                           \
    BASIN_INTEGER(size.field, name, value, 0, 1000000000, .needs = needs_, .more = true),

static const basin_option table[] = {
    BASIN_CHOICE(shape, "shape", "paper|image-small|amazon|graph-small", .text = "paper"),
    SIZES(SIZE) BASIN_CHOICE(only, "only", "forward|training"),
    BASIN_FLAG(calls, "calls"),
    BASIN_INTEGER(rounds, "rounds", "R", 1, MAX_ROUNDS, .needs = "calls=off", .initial = 5),
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTION_SEED,
    BASIN_OPTION_QUIET,
    BASIN_OPTION_JSON_FOR("calls=off"),
    BASIN_OPTIONS_END,
};

#define NAME(name, ...) #name,
static const char *const size_names[] = {SIZES(NAME)};
enum { COUNT = sizeof size_names / sizeof *size_names };

static bench_shape read_shape(const options *o) {
    int64_t size[COUNT], given[COUNT];
    bench_shape s = shapes[0].size;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!strcmp(shapes[i].name, o->shape)) s = shapes[i].size;
    memcpy(size, &s, sizeof size);
    memcpy(given, &o->size, sizeof given);
    for (int i = 0; i < COUNT; i++)
        if (given[i] > 0) size[i] = given[i];
    memcpy(&s, size, sizeof s);
    return s;
}

/* ---- items: plans with their inputs ---- */

/* Numbers for an input, by its name. */
static basin_status write_input(benchmark *b, basin_plan *plan, int i, basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor tensor = {0};
    basin_expr input = b->input[i];
    BASIN_TRY(basin_tensor_new(&tensor, BASIN_F32, basin_expr_shape(input), error));
    float *number = tensor.data;
    size_t count = (size_t)basin_shape_count(tensor.shape);
    uint64_t stream = 1000 + (uint64_t)strlen(basin_expr_name(input));
    if (b->share[i] > 0) {
        for (size_t k = 0; k < count; k++)
            number[k] = (double)basin_random_uniform_at(b->seed, stream, k) < b->share[i] ? 1 : 0;
    } else {
        basin_random_fill_normal(number, b->seed, stream, 0, count);
    }
    return basin_plan_write(plan, input, &tensor, error);
}

static basin_expr add_input(benchmark *b, const char *name, basin_shape shape, double share) {
    b->share[b->inputs] = share;
    return b->input[b->inputs++] = basin_input(b->graph, name, shape);
}

/* An item, which owns the plan, or the trainer does. */
static basin_status add_item(benchmark *b, const timing *what, basin_plan *plan,
                             basin_error *error) {
    timing *added = &b->item[b->items++];
    *added = *what;
    added->plan = plan;
    for (int i = 0; i < b->inputs; i++) BASIN_TRY(write_input(b, plan, i, error));
    return b->shape.nodes ? basin_pairs_write(plan, &b->pattern, &b->pairs, error) : BASIN_OK;
}

static bool is_asked(const benchmark *b, const char *key) {
    return !b->o->only || !strcmp(b->o->only, key);
}

/* Both, or the one that --only names; a training step takes three times the operations, since each
 * product A B = C is followed by its two reverses. */
static basin_status add_items(benchmark *b, const char *forward, basin_expr output, basin_expr loss,
                              double flops, basin_error *error) {
    BASIN_TRY(basin_graph_check(b->graph, error));
    if (is_asked(b, "forward")) {
        basin_plan *plan;
        basin_plan_spec spec = {.output = &output, .outputs = 1};
        BASIN_TRY(basin_plan_new(&plan, b->store, &spec, error));
        BASIN_TRY(add_item(b, &(timing){"forward", forward, .flops = flops}, plan, error));
    }
    if (!is_asked(b, "training")) return BASIN_OK;
    basin_trainer_spec spec = {.optimizer = BASIN_OPTIMIZER_DEFAULT,
                               .schedule = {.peak = 1e-5, .last = 1e-5}};
    timing what = {"training", "training step with AdamW", .flops = 3 * flops};
    BASIN_TRY(basin_trainer_new(&b->trainer, b->store, &b->params, loss, &spec, error));
    b->training = basin_plan_stats_of(basin_trainer_plan(b->trainer));
    return add_item(b, &what, basin_trainer_plan(b->trainer), error);
}

/* The settings of a block of this shape, with a beta per head. */
static basin_block_config block_of(const bench_shape *shape) {
    return (basin_block_config){.dim = shape->dim,
                                .heads = shape->heads,
                                .head_dim = shape->head_dim,
                                .memories = shape->memories,
                                .learn_beta = true,
                                .init_query = {BASIN_INIT_NORMAL, 0.02},
                                .init_memory = {BASIN_INIT_NORMAL, 0.02}};
}

/* ---- images ---- */

static basin_status add_images(benchmark *b, basin_error *error) {
    const bench_shape *s = &b->shape;
    double rows = (double)(s->batch * s->tokens), wide = (double)(s->heads * s->head_dim);
    double project = 4 * rows * (double)s->dim * wide, pairs = 6 * rows * (double)s->tokens * wide;
    double hopfield = 4 * rows * (double)(s->dim * s->memories);
    double flops = (double)s->steps * (2 * project + pairs + hopfield) +
                   4 * rows * (double)(s->dim * s->patch); /* encoder and decoder */
    basin_image_net model;
    basin_image_net_config config = {.tokens = s->tokens,
                                     .patch = s->patch,
                                     .block = block_of(s),
                                     .descent = {.steps = (int)s->steps, .alpha = 0.1}};
    basin_image_net_declare(&model, &b->params, &config);
    BASIN_TRY(basin_graph_check(b->graph, error));
    basin_expr patches = add_input(b, "patches", BASIN_SHAPE(s->batch, s->tokens, s->patch), 0);
    basin_expr replaced = add_input(b, "replaced", BASIN_SHAPE(s->batch, s->tokens), 0.45);
    basin_expr occluded = add_input(b, "occluded", BASIN_SHAPE(s->batch, s->tokens), 0.5);
    basin_expr output = basin_image_net_forward(&model, patches, replaced, NULL);
    basin_expr loss = basin_image_net_loss(output, patches, occluded);
    BASIN_TRY(add_items(b, "forward pass", output, loss, flops, error));
    /* A plan that is too large fails before numbers are drawn. */
    return basin_params_init(&b->params, b->store, b->seed, error);
}

/* ---- graphs: the anomaly detector on a random graph ---- */

/* Half as many undirected edges between random nodes, each way; few are drawn twice. */
static basin_status draw_graph(benchmark *b, basin_error *error) {
    const bench_shape *s = &b->shape;
    size_t ends = (size_t)s->edges / 2 * 2;
    BASIN_SCRATCH_RAW(int32_t, edge, ends, "edges", error);
    basin_random random = basin_random_start(b->seed, 7, 0);
    for (size_t i = 0; i < ends; i++)
        edge[i] = (int32_t)basin_random_below(&random, (uint64_t)s->nodes);
    BASIN_TRY(basin_pairs_new(&b->pairs, s->nodes, s->nodes, edge, s->edges / 2,
                              BASIN_PAIRS_BOTH_WAYS | BASIN_PAIRS_DROP_SELF, error));
    b->pattern = basin_pairs_declare(b->graph, "pairs", s->nodes, s->nodes, b->pairs.pairs);
    return BASIN_OK;
}

static basin_status add_graphs(benchmark *b, basin_error *error) {
    const bench_shape *s = &b->shape;
    basin_anomaly model;
    basin_anomaly_config config = {.nodes = s->nodes,
                                   .features = s->features,
                                   .block = block_of(s),
                                   .descent = {.steps = (int)s->steps, .alpha = 1}};
    BASIN_TRY(draw_graph(b, error));
    basin_anomaly_declare(&model, &b->params, &config);
    BASIN_TRY(basin_graph_check(b->graph, error));
    BASIN_TRY(basin_params_init(&b->params, b->store, b->seed, error));
    basin_expr features = add_input(b, "features", BASIN_SHAPE(s->nodes, s->features), 0);
    basin_expr label = add_input(b, "label", BASIN_SHAPE(s->nodes), 0.07);
    basin_expr logits = basin_anomaly_logits(
        &model, &(basin_anomaly_inputs){.features = features, .neighbours = &b->pattern});
    basin_expr weight = basin_offset(basin_scale(label, 12), 1);
    basin_expr loss = basin_weighted_cross_entropy(logits, label, weight);
    return add_items(b, "scores of all nodes", logits, loss, 0, error);
}

/* ---- timing ---- */

static bool is_cuda(const benchmark *bench) {
    return !strcmp(basin_backend_info_of(bench->backend).name, "cuda");
}

/* A single thread is timed by its CPU time, which other programs do not change. */
static bool is_alone(const benchmark *bench) {
    return basin_backend_info_of(bench->backend).threads == 1 && !is_cuda(bench);
}

static void summarize(timing *item, int rounds) {
    double sorted[MAX_ROUNDS];
    memcpy(sorted, item->seconds, (size_t)rounds * sizeof *sorted);
    qsort(sorted, (size_t)rounds, sizeof *sorted, basin_compare_double);
    item->minimum = sorted[0];
    item->median = (sorted[(rounds - 1) / 2] + sorted[rounds / 2]) / 2;
}

static basin_status time_items(benchmark *b, int rounds, const basin_watch *watch,
                               basin_error *error) {
    double (*clock)(void) = is_alone(b) ? basin_cpu_clock : basin_clock;
    int warm = is_cuda(b) ? 3 : 1;
    int64_t done = 0, total = (int64_t)(rounds + warm) * b->items;
    /* the first round warms up (on cuda three: compiled, captured, replayed) and does not count */
    for (int r = -warm; r < rounds; r++)
        for (int i = 0; i < b->items; i++, done++) {
            basin_watch_progress(watch, "bench", done, total, NAN, NULL);
            double start = clock();
            BASIN_TRY(basin_plan_run(b->item[i].plan, error));
            BASIN_TRY(basin_backend_wait(b->backend, error));
            if (r >= 0) b->item[i].seconds[r] = clock() - start;
        }
    for (int i = 0; i < b->items; i++) summarize(&b->item[i], rounds);
    return BASIN_OK;
}

/* ---- all of it ---- */

static void bench_free(benchmark *b) {
    for (int i = 0; i < b->items; i++)
        if (!b->trainer || b->item[i].plan != basin_trainer_plan(b->trainer))
            basin_plan_free(b->item[i].plan);
    basin_trainer_free_at(&b->trainer);
    basin_pairs_free(&b->pairs);
    basin_params_free(&b->params);
    basin_graph_free(b->graph);
    basin_store_free(b->store);
    basin_backend_close(b->backend);
}

static basin_status measure(benchmark *b, options *o, basin_error *error) {
    BASIN_TRY(basin_compute_open(&o->args, error));
    b->backend = o->compute, o->compute = NULL; /* which closes it */
    BASIN_TRY(basin_store_new(&b->store, b->backend, error));
    b->graph = basin_graph_new();
    if (!b->graph) return basin_fail_memory(error, "a graph");
    basin_params_begin(&b->params, b->graph);
    BASIN_TRY(b->shape.nodes ? add_graphs(b, error) : add_images(b, error));
    if (o->calls) return BASIN_OK;
    basin_cli_watch_plain(&o->watch, o->quiet);
    BASIN_TRY(time_items(b, (int)o->rounds, &o->watch.watch, error));
    struct rusage usage;
    b->peak = getrusage(RUSAGE_SELF, &usage) ? 0 : 1024 * (int64_t)usage.ru_maxrss;
    return BASIN_OK;
}

/* ---- results ---- */

static void put_shape(basin_record *r, const benchmark *bench) {
    bench_shape s = bench->shape;
    int64_t size[COUNT];
    if (s.nodes) s.edges = bench->pairs.pairs;
    memcpy(size, &s, sizeof size);
    basin_record_object(r, "shape");
    basin_record_text(r, "name|", bench->o->shape);
    for (int i = 0; i < COUNT; i++)
        if (size[i]) basin_record_integer(r, size_names[i], size[i]);
    basin_record_end(r);
}

static void put_items(basin_record *r, const benchmark *bench, int rounds) {
    double rate = (double)(bench->shape.nodes ? bench->pairs.pairs : bench->shape.batch);
    basin_record_dictionary(r, "items", NULL);
    for (int i = 0; i < bench->items; i++) {
        const timing *item = &bench->item[i];
        basin_record_entry(r, item->key);
        basin_record_fields(r, "name|=%s;.median_s=%g;.least_s=%g;|median ms=%.3f;|min ms=%.3f",
                            item->name, item->median, item->minimum, 1e3 * item->median,
                            1e3 * item->minimum);
        basin_record_numbers(r, "seconds", item->seconds, rounds);
        basin_record_number(r, bench->shape.nodes ? "edges_per_s|edges/s" : "images_per_s|images/s",
                            "%.3f", rate / item->median);
        if (item->flops > 0)
            basin_record_number(r, "gflops", "%.1f", item->flops / item->median * 1e-9);
    }
    basin_record_end(r);
}

static void put_bench(basin_record *r, const void *context) {
    const benchmark *bench = context;
    const options *o = bench->o;
    put_shape(r, bench);
    basin_record_fields(r, "backend=%s;products=%s;dtype=%s;instruction_set=%s;threads=%lld",
                        o->backend, o->products,
                        basin_dtype_name(basin_backend_info_of(bench->backend).storage),
                        basin_machine_info_now().instruction_set,
                        (long long)basin_backend_info_of(bench->backend).threads);
    basin_record_text(r, "clock", is_alone(bench) ? "cpu" : "wall");
    basin_record_integer(r, "rounds", o->rounds);
    put_items(r, bench, (int)o->rounds);
#define F(member, ...) BASIN_FIELD(basin_plan_stats, member, __VA_ARGS__)
    static const basin_field memory[] = {F(arena_bytes, "training_arena_bytes|training results"),
                                         F(state_bytes, "training_state_bytes|training states"),
                                         F(input_bytes, "training_input_bytes|training inputs"),
                                         {0}};
#undef F
    basin_record_struct(r, memory, &bench->training);
    basin_record_bytes(r, "peak_resident_bytes|process at its peak", bench->peak);
}

/* The calls of the last item: the training step, or that of --only. */
static void print_calls(const benchmark *bench) {
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
    BASIN_AT_EXIT(bench_free)
    benchmark b = {.shape = read_shape(o), .o = o, .seed = (uint64_t)o->seed};
    BASIN_TRY(measure(&b, o, error));
    basin_cli_watch_end(&o->watch);
    if (o->calls) return print_calls(&b), BASIN_OK;
    return basin_record_print(o->json, put_bench, &b, error);
}

const basin_command basin_command_bench = {BASIN_COMMAND("bench", table), .run = run};
