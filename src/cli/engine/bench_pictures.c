/* basin bench pictures: how many pictures a second the input pipeline delivers, from files or from
 * pictures kept decoded, and where one thread's time goes. */
#include "bench/pictures.h"
#include "cli/command.h"
#include "cli/table.h"
#include "io/json_writer.h"

typedef struct options {
    int64_t size, patch, batch, threads, rounds, seed;
    const char *keep, *cut, *backend;
    bool json;
} options;

static const options defaults = {.size = 224,
                                 .patch = 16,
                                 .batch = 64,
                                 .rounds = 3,
                                 .keep = "off",
                                 .cut = "auto",
                                 .backend = "cpu"};

static const basin_option table[] = {
    BASIN_INTEGER(options, size, "size", "S", 1, 4096, "Side of the crops, in pixels."),
    BASIN_INTEGER(options, patch, "patch", "P", 1, 4096, "Side of a patch."),
    BASIN_INTEGER(options, batch, "batch", "B", 1, 65536, "Pictures a batch."),
    BASIN_INTEGER(options, rounds, "rounds", "R", 1, BASIN_BENCH_PICTURES_ROUNDS,
                  "Passes over all pictures; the median is printed."),
    BASIN_CHOICE(
        options, keep, "keep-decoded", "auto|off|host|device",
        "Where decoded pictures are kept; the first pass, which decodes them, is not timed."),
    BASIN_CHOICE(options, cut, "cut-from", "auto|files|whole|reduced", "What crops are cut from."),
    BASIN_OPTION_BACKEND(options),
    BASIN_OPTION_THREADS(options),
    BASIN_OPTION_SEED(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

static void print_json(const basin_bench_pictures_result *r, const options *o) {
    basin_json json = basin_json_begin(stdout);
    basin_json_integer(&json, "pictures", r->pictures);
    basin_json_integer(&json, "unreadable", r->unreadable);
    basin_json_integer(&json, "size", o->size);
    basin_json_number(&json, "images_per_second", r->rate);
    basin_json_text(&json, "pictures_kept", r->keep_decoded);
    basin_json_text(&json, "crops_cut_from", r->cut_from);
    basin_json_integer(&json, "pictures_kept_bytes", (int64_t)r->kept);
    basin_json_number(&json, "read_seconds", r->read);
    basin_json_number(&json, "decode_part_seconds", r->crop);
    basin_json_number(&json, "decode_whole_seconds", r->whole);
    basin_json_number(&json, "augment_seconds", r->augment);
    basin_json_end(&json);
}

static bool print_table(const basin_bench_pictures_result *r) {
    const struct {
        const char *name;
        double seconds;
    } row[] = {{"open and map", r->read},
               {"decode what the crop needs", r->crop},
               {"(decode the whole instead)", r->whole},
               {"resize, flip, jitter, normalise", r->augment}};
    basin_table rows = {.layout = "lr"};
    basin_table_add(&rows, "%s", "one thread, a picture");
    basin_table_add(&rows, "%s", "CPU ms");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        basin_table_add(&rows, "%s", row[i].name);
        basin_table_add(&rows, "%.3f", 1e3 * row[i].seconds);
    }
    printf("%lld pictures, %lld unreadable\n", (long long)r->pictures, (long long)r->unreadable);
    if (!basin_table_print(&rows, stdout, 2)) return false;
    printf("feed: %.1f images/s", r->rate);
    if (r->kept)
        printf(", pictures kept decoded (%s, %s): %.2f GiB", r->keep_decoded, r->cut_from,
               (double)r->kept / 1073741824.0);
    printf("\n");
    return true;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    basin_bench_pictures_spec spec = {.path = (const char *const *)operand,
                                      .paths = operands,
                                      .size = o->size,
                                      .patch = o->patch,
                                      .batch = o->batch,
                                      .rounds = o->rounds,
                                      .seed = o->seed,
                                      .threads = (int)o->threads,
                                      .keep_decoded = o->keep,
                                      .cut_from = o->cut};
    basin_bench_pictures_result r;
    basin_status status = basin_option_backend(&spec.backend, o->backend, 0, "f32", "f32", &error);
    if (status) return basin_report(&error);
    status = basin_bench_pictures(&r, &spec, &error);
    basin_backend_close(spec.backend);
    if (status) return basin_report(&error);
    if (o->json) print_json(&r, o);
    return o->json || print_table(&r) ? BASIN_EXIT_OK : BASIN_EXIT_FAILURE;
}

const basin_command basin_command_bench_pictures = {
    .name = "bench pictures",
    .summary = "Time reading, decoding and augmenting pictures",
    .operands = "PATH...",
    .operands_least = 1,
    .operands_most = 1000,
    .text =
        "The pictures at PATH (folders, archives, idx, CIFAR, shapes:COUNT) go through the "
        "training transforms of the paper's table: a random resized crop, a flip, colour jitter, "
        "normalisation, into the input of a plan. Prints images/s with all worker threads, and one "
        "thread's time by stage.",
    .example = "  basin bench pictures photos/\n"
               "  basin bench pictures --size 112 --threads 1 train.tar\n"
               "  basin bench pictures --backend cuda --keep-decoded device photos/\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
