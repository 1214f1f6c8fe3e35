/* basin bench pictures: how many pictures a second the input pipeline delivers, from files or from
 * pictures kept decoded, and where one thread's time goes. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "basin/tasks/feed.h"
#include "cli/command.h"
#include "cli/table.h"
#include "data/pictures/pictures.h"
#include "io/json_writer.h"
#include "picture/augment.h"
#include "task/image/input.h"

enum { ROUNDS = 101, SAMPLE = 256 };

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
    BASIN_INTEGER(options, rounds, "rounds", "R", 1, ROUNDS,
                  "Passes over all pictures; the median is printed."),
    BASIN_CHOICE(
        options, keep, "keep-decoded", BASIN_IMAGE_KEEPS,
        "Where decoded pictures are kept; the first pass, which decodes them, is not timed."),
    BASIN_CHOICE(options, cut, "cut-from", BASIN_IMAGE_CUTS, "What crops are cut from."),
    BASIN_OPTION_BACKEND(options),
    BASIN_OPTION_THREADS(options),
    BASIN_OPTION_SEED(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

typedef struct result {
    int64_t pictures, unreadable;
    const char *keep, *cut;
    size_t kept;                       /* bytes of decoded pictures */
    double rate;                       /* images/s of batches in the plan's input */
    double read, crop, augment, whole; /* seconds a picture, one thread */
} result;

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ImageNet's figures; which ones they are does not matter to the time. */
static basin_augment transforms(const options *o) {
    basin_augment a = basin_augment_training(o->size, 3, o->patch);
    const float mean[3] = {0.485F, 0.456F, 0.406F}, deviation[3] = {0.229F, 0.224F, 0.225F};
    memcpy(a.mean, mean, sizeof mean);
    memcpy(a.deviation, deviation, sizeof deviation);
    return a;
}

/* What a training run has of the input pipeline: a plan with an input for the batch. */
typedef struct rig {
    basin_backend *backend;
    basin_store *store;
    basin_graph *graph;
    basin_expr patches;
    basin_plan *plan;
    basin_image_data data;
    basin_image_settings settings;
    basin_image_input *input;
} rig;

static basin_status rig_plan(rig *g, basin_error *error) {
    const basin_image_settings *s = &g->settings;
    g->graph = basin_graph_new();
    if (!g->graph) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a graph");
    g->patches =
        basin_input(g->graph, "patches",
                    BASIN_SHAPE(s->batch, basin_image_tokens(s), basin_image_patch_values(s)));
    basin_expr output = basin_sum_all(g->patches);
    basin_status status = basin_store_new(&g->store, g->backend, error);
    if (status) return status;
    basin_plan_spec spec = {.output = &output, .outputs = 1};
    return basin_plan_new(&g->plan, g->store, &spec, error);
}

static basin_status rig_new(rig *g, const options *o, const char *const *path, int paths,
                            basin_error *error) {
    basin_image_source source = {.path = path, .paths = paths};
    *g = (rig){0};
    basin_status status = basin_option_backend(&g->backend, o->backend, 0, NULL, NULL, error);
    if (!status) status = basin_image_data_open(&g->data, &source, error);
    if (status) return status;
    basin_image_task.fill(&g->settings, "imagenet");
    g->settings.size = o->size;
    g->settings.patch = o->patch;
    g->settings.seed = o->seed;
    g->settings.batch = o->batch < g->data.items ? o->batch : g->data.items;
    status = rig_plan(g, error);
    basin_image_input_config config = {.data = &g->data,
                                       .settings = &g->settings,
                                       .backend = g->backend,
                                       .keep = o->keep,
                                       .cut = o->cut,
                                       .threads = (int)o->threads};
    if (!status) status = basin_image_input_new(&g->input, &config, error);
    return status;
}

static void rig_free(rig *g) {
    basin_image_input_free(g->input);
    basin_plan_free(g->plan);
    basin_store_free(g->store);
    basin_graph_free(g->graph);
    basin_image_data_close(&g->data);
    basin_backend_close(g->backend);
}

static basin_status rig_epoch(rig *g, int64_t epoch, basin_error *error) {
    int64_t steps = g->data.items / g->settings.batch;
    basin_status status = BASIN_OK;
    for (int64_t s = 0; s < steps && !status; s++)
        status = basin_image_input_write(g->input, g->plan, g->patches, epoch * steps + s, error);
    return status ? status : basin_backend_wait(g->backend, error);
}

/* Images a second over whole epochs, after one that keeps what is to be kept. */
static basin_status time_feed(result *r, const options *o, const char *const *path, int paths,
                              basin_error *error) {
    double rate[ROUNDS];
    rig g;
    basin_status status = rig_new(&g, o, path, paths, error);
    int64_t first = status || strcmp(basin_image_input_keep(g.input), "off") == 0 ? 0 : 1;
    if (!status && first) status = rig_epoch(&g, 0, error);
    for (int64_t i = 0; i < o->rounds && !status; i++) {
        double start = basin_clock();
        status = rig_epoch(&g, first + i, error);
        rate[i] =
            (double)(g.data.items / g.settings.batch * g.settings.batch) / (basin_clock() - start);
    }
    if (!status) {
        qsort(rate, (size_t)o->rounds, sizeof *rate, compare);
        r->rate = rate[o->rounds / 2];
        r->unreadable = basin_image_input_unreadable(g.input);
        r->keep = basin_image_input_keep(g.input);
        r->cut = basin_image_input_cut(g.input);
        r->kept = basin_image_input_bytes(g.input);
    }
    rig_free(&g);
    return status;
}

/* One picture, stage by stage, in CPU time. */
static basin_status time_one(result *r, const basin_augment *a, const basin_pictures *pictures,
                             int64_t i, float *values, basin_scratch *scratch, basin_error *error) {
    basin_picture *picture = &scratch->picture;
    basin_fetched fetched;
    basin_decoder decoder;
    basin_drawn drawn;
    double start = basin_thread_clock();
    basin_status status = basin_pictures_fetch(&fetched, picture, pictures, i, error);
    r->read = basin_thread_clock() - start;
    if (!status && fetched.bytes) {
        start = basin_thread_clock();
        status = basin_picture_decode(picture, fetched.bytes, fetched.size, "", error);
        r->whole = basin_thread_clock() - start;
        start = basin_thread_clock();
        if (!status) status = basin_decoder_open(&decoder, fetched.bytes, fetched.size, "", error);
        if (!status) {
            basin_augment_draw(&drawn, a, decoder.height, decoder.width, 1, 0, i);
            status = basin_augment_decode(picture, &drawn, a, &decoder, false, error);
            basin_decoder_close(&decoder);
        }
        r->crop = basin_thread_clock() - start;
    } else if (!status) {
        basin_augment_draw(&drawn, a, picture->height, picture->width, 1, 0, i);
    }
    basin_map_close(&fetched.map);
    start = basin_thread_clock();
    if (!status) status = basin_augment_run(values, a, &drawn, picture, scratch, error);
    r->augment = basin_thread_clock() - start;
    return status;
}

static basin_status time_stages(result *r, const options *o, const basin_pictures *pictures,
                                basin_error *error) {
    basin_scratch scratch = {0};
    basin_augment a = transforms(o);
    int64_t seen = 0, most = r->pictures < SAMPLE ? r->pictures : SAMPLE;
    float *values = malloc((size_t)basin_augment_values(&a) * sizeof *values);
    if (!values) return basin_fail(error, BASIN_NO_MEMORY, "no memory for a picture");
    for (int64_t i = 0; i < most; i++) {
        result one = {0};
        if (time_one(&one, &a, pictures, i * r->pictures / most, values, &scratch, error)) continue;
        r->read += one.read;
        r->crop += one.crop;
        r->augment += one.augment;
        r->whole += one.whole;
        seen++;
    }
    double by = seen > 0 ? 1 / (double)seen : 0;
    r->read *= by, r->crop *= by, r->augment *= by, r->whole *= by;
    free(values);
    basin_scratch_free(&scratch);
    return BASIN_OK;
}

static void print_json(const result *r, const options *o) {
    basin_json json = basin_json_begin(stdout);
    basin_json_integer(&json, "pictures", r->pictures);
    basin_json_integer(&json, "unreadable", r->unreadable);
    basin_json_integer(&json, "size", o->size);
    basin_json_number(&json, "images_per_second", r->rate);
    basin_json_text(&json, "pictures_kept", r->keep);
    basin_json_text(&json, "crops_cut_from", r->cut);
    basin_json_integer(&json, "pictures_kept_bytes", (int64_t)r->kept);
    basin_json_number(&json, "read_seconds", r->read);
    basin_json_number(&json, "decode_part_seconds", r->crop);
    basin_json_number(&json, "decode_whole_seconds", r->whole);
    basin_json_number(&json, "augment_seconds", r->augment);
    basin_json_end(&json);
}

static bool print_table(const result *r) {
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
        printf(", pictures kept decoded (%s, %s): %.2f GiB", r->keep, r->cut,
               (double)r->kept / 1073741824.0);
    printf("\n");
    return true;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    basin_pictures *pictures;
    result r = {0};
    int code = BASIN_EXIT_OK;
    if (basin_pictures_open(&pictures, (const char *const *)operand, operands, NULL, &error))
        return basin_report(&error);
    r.pictures = basin_pictures_count(pictures);
    if (time_feed(&r, o, (const char *const *)operand, operands, &error) ||
        time_stages(&r, o, pictures, &error))
        code = basin_report(&error);
    else if (o->json)
        print_json(&r, o);
    else if (!print_table(&r))
        code = BASIN_EXIT_FAILURE;
    basin_pictures_free(pictures);
    return code;
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
