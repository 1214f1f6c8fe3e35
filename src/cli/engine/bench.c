/* basin bench: times the block, its parts and the training step at a given shape, beside the matrix
 * products they are made of. */
#include <string.h>
#include <sys/resource.h>

#include "backend/isa.h"
#include "bench/bench.h"
#include "bench/blas.h"
#include "cli/command.h"
#include "cli/engine/bench_latency.h"
#include "cli/table.h"
#include "cli/watch.h"
#include "io/json_writer.h"

typedef struct options {
    const char *shape, *backend, *products, *dtype, *only;
    int64_t batch, tokens, patch, nodes, edges, features;
    int64_t dim, heads, head_dim, memories, steps, threads, rounds, seed;
    bool recompute, whole, calls, latency, quiet, json;
} options;

static const options defaults = {
    .shape = "paper", .backend = "cpu", .products = "f32", .rounds = 5};

#define SIZE(field, name, value, needs_, help)                                                     \
    BASIN_INTEGER(options, field, name, value, 0, 1000000000, help, .needs = "latency=off" needs_)
#define IMAGE " shape=paper|image-small"
#define GRAPH " shape=amazon|amazon-part|graph-small"

static const basin_option table[] = {
    BASIN_CHOICE(options, shape, "shape", "paper|image-small|amazon|amazon-part|graph-small",
                 "Which sizes to take; options override single ones unless they are 0.",
                 .needs = "latency=off"),
    SIZE(batch, "batch", "B", IMAGE, "Images at a time."),
    SIZE(tokens, "tokens", "N", IMAGE, "Patches of an image."),
    SIZE(patch, "patch", "P", IMAGE, "Numbers of a patch."),
    SIZE(nodes, "nodes", "N", GRAPH, "Nodes of the graph."),
    SIZE(edges, "edges", "E", GRAPH, "Edges of the graph, each direction counted."),
    SIZE(features, "features", "F", GRAPH, "Numbers of a node."),
    SIZE(dim, "dim", "D", "", "Dimension of a token."),
    SIZE(heads, "heads", "H", "", "Heads of attention."),
    SIZE(head_dim, "head-dim", "Y", "", "Dimension of a head: of queries and keys."),
    SIZE(memories, "memories", "M", "", "Memories of the Hopfield network."),
    SIZE(steps, "steps", "T", "", "Steps of the descent in a block."),
    BASIN_FLAG(options, recompute, 0, "recompute",
               "Keep one token tensor a step of the descent and compute the rest again.",
               .needs = "latency=off"),
    BASIN_FLAG(
        options, whole, 0, "whole",
        "Time the forward pass and the training step alone: the process's memory is then theirs.",
        .needs = "latency=off"),
    BASIN_TEXT(
        options, only, 0, "only", "KEY",
        "Only that item, by its key in --json (forward, training, ..): on a GPU that is held "
        "back by its power, what runs before an item changes its time.",
        .needs = "latency=off"),
    BASIN_FLAG(options, calls, 0, "calls",
               "Print the kernel calls of the training step (or of --only), a line each, and time "
               "nothing; those with a * run again only after a state has changed.",
               .needs = "latency=off"),
    BASIN_FLAG(options, latency, 0, "latency",
               "Instead: how long one picture, one node and one molecule take from call to result "
               "on an open model, median and 99th percentile. The models are small and made for "
               "the purpose; options of sizes do not go with it."),
    BASIN_INTEGER(options, rounds, "rounds", "R", 1, BASIN_BENCH_ROUNDS,
                  "Times each item is run; the median is printed.",
                  .needs = "latency=off calls=off"),
    BASIN_OPTIONS_COMPUTE(options),
    BASIN_OPTION_SEED(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON_FOR(options, "calls=off"),
    BASIN_OPTIONS_END,
};

static const basin_bench_shape shapes[] = {
    {"paper", 4, 196, 768, 0, 0, 0, 768, 12, 64, 3072, 12},
    {"image-small", 16, 64, 48, 0, 0, 0, 128, 4, 32, 512, 12},
    {"amazon", 0, 0, 0, 11944, 8796784, 25, 128, 2, 128, 640, 1},
    {"amazon-part", 0, 0, 0, 11944, 1760000, 25, 128, 2, 128, 640, 1},
    {"graph-small", 0, 0, 0, 1000, 20000, 16, 64, 2, 32, 128, 2},
};

static void take(int64_t *size, int64_t given) {
    if (given > 0) *size = given;
}

static basin_bench_shape read_shape(const options *o) {
    basin_bench_shape s = shapes[0];
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!strcmp(shapes[i].name, o->shape)) s = shapes[i];
    take(&s.batch, o->batch);
    take(&s.tokens, o->tokens);
    take(&s.patch, o->patch);
    take(&s.nodes, o->nodes);
    take(&s.edges, o->edges);
    take(&s.features, o->features);
    take(&s.dim, o->dim);
    take(&s.heads, o->heads);
    take(&s.head_dim, o->head_dim);
    take(&s.memories, o->memories);
    take(&s.steps, o->steps);
    return s;
}

static basin_status measure(basin_bench *bench, const options *o, basin_error *error) {
    basin_status status =
        basin_option_backend(&bench->backend, o->backend, o->threads, o->products, o->dtype, error);
    if (!status) status = basin_store_new(&bench->store, bench->backend, error);
    if (status) return status;
    bench->graph = basin_graph_new();
    if (!bench->graph) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a graph");
    basin_params_begin(&bench->params, bench->graph);
    status = bench->shape.nodes ? basin_bench_graph(bench, error) : basin_bench_image(bench, error);
    if (!status && o->only) status = basin_bench_keep(bench, o->only, error);
    if (status || o->calls) return status;
    basin_cli_watch watch;
    basin_cli_watch_plain(&watch, o->quiet);
    status = basin_bench_run(bench, (int)o->rounds, &watch.watch, error);
    basin_cli_watch_end(&watch);
    return status;
}

/* ---- results ---- */

/* The median of `over` divided by that of `under`; 0 where one is missing. */
static double ratio(const basin_bench *bench, const char *over, const char *under) {
    const basin_bench_item *a = basin_bench_find(bench, over), *b = basin_bench_find(bench, under);
    return a && b && b->median > 0 ? a->median / b->median : 0;
}

static double rate(const basin_bench *bench, const char *key, int64_t count) {
    const basin_bench_item *item = basin_bench_find(bench, key);
    return item && item->median > 0 ? (double)count / item->median : 0;
}

static int64_t peak_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? 0 : 1024 * (int64_t)usage.ru_maxrss;
}

static const struct {
    const char *key, *text, *over, *under;
} ratios[] = {
    {"blas_over_forward", "products through BLAS / forward pass", "blas_forward", "forward"},
    {"own_over_forward", "products through Basin / forward pass", "own_forward", "forward"},
    {"blas_over_training", "products through BLAS / training step", "blas_training", "training"},
    {"own_over_training", "products through Basin / training step", "own_training", "training"},
};
enum { RATIOS = sizeof ratios / sizeof *ratios };

static void json_shape(basin_json *json, const basin_bench *bench) {
    const basin_bench_shape *s = &bench->shape;
    basin_json_object(json, "shape");
    basin_json_text(json, "name", s->name);
    if (s->nodes) {
        basin_json_integer(json, "nodes", s->nodes);
        basin_json_integer(json, "edges", bench->pairs.pairs);
        basin_json_integer(json, "features", s->features);
    } else {
        basin_json_integer(json, "batch", s->batch);
        basin_json_integer(json, "tokens", s->tokens);
        basin_json_integer(json, "patch", s->patch);
    }
    basin_json_integer(json, "dim", s->dim);
    basin_json_integer(json, "heads", s->heads);
    basin_json_integer(json, "head_dim", s->head_dim);
    basin_json_integer(json, "memories", s->memories);
    basin_json_integer(json, "steps", s->steps);
    basin_json_end(json);
}

static void json_items(basin_json *json, const basin_bench *bench, int rounds) {
    basin_json_object(json, "items");
    for (int i = 0; i < bench->items; i++) {
        const basin_bench_item *item = &bench->item[i];
        basin_json_object(json, item->key);
        basin_json_text(json, "name", item->name);
        basin_json_number(json, "median_s", item->median);
        basin_json_number(json, "least_s", item->least);
        basin_json_numbers(json, "seconds", item->seconds, rounds);
        if (item->flops > 0) basin_json_number(json, "gflops", item->flops / item->median * 1e-9);
        basin_json_end(json);
    }
    basin_json_end(json);
}

/* Nothing where the item was not timed. */
static void json_rate(basin_json *json, const char *name, const basin_bench *bench, const char *key,
                      int64_t count) {
    if (basin_bench_find(bench, key)) basin_json_number(json, name, rate(bench, key, count));
}

static void print_json(const basin_bench *bench, const options *o) {
    const basin_bench_shape *s = &bench->shape;
    basin_json json = basin_json_begin(stdout);
    json_shape(&json, bench);
    basin_json_text(&json, "backend", o->backend);
    basin_json_text(&json, "products", o->products);
    basin_json_text(&json, "dtype", basin_dtype_name(basin_backend_storage(bench->backend)));
    basin_json_text(&json, "instruction_set", basin_isa_name(basin_cpu_isa()));
    basin_json_text(&json, "blas", basin_blas_name());
    basin_json_integer(&json, "threads", basin_backend_threads(bench->backend));
    basin_json_text(&json, "clock", basin_bench_alone(bench) ? "cpu" : "wall");
    basin_json_integer(&json, "rounds", o->rounds);
    json_items(&json, bench, (int)o->rounds);
    if (s->nodes) {
        json_rate(&json, "edges_per_s", bench, "training", bench->pairs.pairs);
    } else {
        json_rate(&json, "images_per_s", bench, "forward", s->batch);
        json_rate(&json, "training_images_per_s", bench, "training", s->batch);
        basin_json_object(&json, "ratios");
        for (int i = 0; i < RATIOS; i++)
            if (basin_bench_find(bench, ratios[i].over))
                basin_json_number(&json, ratios[i].key,
                                  ratio(bench, ratios[i].over, ratios[i].under));
        basin_json_end(&json);
    }
    basin_json_integer(&json, "training_arena_bytes", (int64_t)bench->training.arena_bytes);
    basin_json_integer(&json, "training_state_bytes", (int64_t)bench->training.state_bytes);
    basin_json_integer(&json, "training_input_bytes", (int64_t)bench->training.input_bytes);
    basin_json_integer(&json, "peak_resident_bytes", peak_bytes());
    basin_json_end(&json);
}

static void print_heading(const basin_bench *bench) {
    const basin_bench_shape *s = &bench->shape;
    if (s->nodes)
        printf("%s: %lld nodes, %lld directed edges, F %lld", s->name, (long long)s->nodes,
               (long long)bench->pairs.pairs, (long long)s->features);
    else
        printf("%s: B %lld, N %lld, P %lld", s->name, (long long)s->batch, (long long)s->tokens,
               (long long)s->patch);
    printf(", D %lld, H %lld, Y %lld, M %lld, T %lld; %s, ", (long long)s->dim, (long long)s->heads,
           (long long)s->head_dim, (long long)s->memories, (long long)s->steps,
           basin_backend_name(bench->backend));
    if (basin_bench_alone(bench))
        puts("1 thread, CPU time");
    else
        printf("%d threads\n", basin_backend_threads(bench->backend));
}

/* Of the last item: the training step, or what --only asked for. All are plans here. */
static void print_calls(const basin_bench *bench) {
    const basin_plan *plan = bench->item[bench->items - 1].context;
    basin_plan_stats stats = basin_plan_get_stats(plan);
    char text[1000];
    for (int i = 0; i < stats.calls; i++) {
        basin_plan_describe(plan, i, text, sizeof text);
        printf("%4d%c %s\n", i, i < stats.hoisted ? '*' : ' ', text);
    }
}

/* Of those that were timed. */
static void print_rates(const basin_bench *bench) {
    double forward = rate(bench, "forward", bench->shape.batch);
    double training = rate(bench, "training", bench->shape.batch);
    if (bench->shape.nodes && basin_bench_find(bench, "training"))
        printf("training: %.0f edges/s\n", rate(bench, "training", bench->pairs.pairs));
    else if (forward > 0 && training > 0)
        printf("forward: %.3f images/s, training: %.3f images/s\n", forward, training);
    else if (forward > 0 || training > 0)
        printf("%s: %.3f images/s\n", forward > 0 ? "forward" : "training", forward + training);
}

static bool print_table(const basin_bench *bench) {
    const double MiB = 1 << 20;
    const basin_plan_stats *m = &bench->training;
    basin_table rows = {.layout = "lrrr"};
    print_heading(bench);
    const char *heading[] = {"", "median ms", "least ms", "GFLOP/s"};
    for (int i = 0; i < 4; i++) basin_table_add(&rows, "%s", heading[i]);
    for (int i = 0; i < bench->items; i++) {
        const basin_bench_item *item = &bench->item[i];
        basin_table_add(&rows, "%s", item->name);
        basin_table_add(&rows, "%.3f", 1e3 * item->median);
        basin_table_add(&rows, "%.3f", 1e3 * item->least);
        if (item->flops > 0)
            basin_table_add(&rows, "%.1f", item->flops / item->median * 1e-9);
        else
            basin_table_add(&rows, "%s", "");
    }
    if (!basin_table_print(&rows, stdout, 2)) return false;
    print_rates(bench);
    for (int i = 0; i < RATIOS; i++)
        if (basin_bench_find(bench, ratios[i].over))
            printf("%-38s  %.3f\n", ratios[i].text, ratio(bench, ratios[i].over, ratios[i].under));
    if (!bench->shape.nodes) printf("BLAS: %s\n", basin_blas_name());
    printf("memory of the training plan: %.1f MiB results, %.1f MiB states, %.1f MiB inputs; "
           "process at its peak: %.1f MiB\n",
           (double)m->arena_bytes / MiB, (double)m->state_bytes / MiB, (double)m->input_bytes / MiB,
           (double)peak_bytes() / MiB);
    return true;
}

static int run_latency(const options *o) {
    basin_error error;
    basin_backend *backend = NULL;
    basin_status status =
        basin_option_backend(&backend, o->backend, o->threads, o->products, o->dtype, &error);
    if (status) return basin_report(&error);
    int code = basin_cli_bench_latency(backend, (uint64_t)o->seed, o->json);
    basin_backend_close(backend);
    return code;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    (void)operands, (void)operand;
    basin_error error;
    if (o->latency) return run_latency(o);
    basin_bench bench = {.shape = read_shape(o),
                         .recompute = o->recompute,
                         .whole = o->whole || o->calls,
                         .seed = (uint64_t)o->seed};
    int code = BASIN_EXIT_OK;
    if (measure(&bench, o, &error))
        code = basin_report(&error);
    else if (o->calls)
        print_calls(&bench);
    else if (o->json)
        print_json(&bench, o);
    else if (!print_table(&bench))
        code = BASIN_EXIT_FAILURE;
    basin_bench_free(&bench);
    return code;
}

const basin_command basin_command_bench = {
    .name = "bench",
    .summary = "Time the block, its parts and training at a given shape",
    .operands = "",
    .text =
        "For images: the parts of the block, the forward pass and a training step of the masked "
        "image model, and the same matrix products alone, through the machine's BLAS and through "
        "Basin's own product. For graphs: energy attention along the edges of a random graph, its "
        "reverse, and on the full graph the scores of all nodes and a training step of the anomaly "
        "detector. All of them take turns and each time is a median over the rounds, so that "
        "ratios hold on a busy machine. With --threads 1 times are CPU times, which other programs "
        "hardly change.",
    .example = "  basin bench\n"
               "  basin bench --shape image-small --batch 8 --threads 1\n"
               "  basin bench --shape amazon --rounds 3 --json\n"
               "  basin bench --latency\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
