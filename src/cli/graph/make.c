/* basin graph make: sets of graphs that are generated or cut from pictures, packed into one file.
 */
#include <stdlib.h>
#include <string.h>

#include "basin/tasks/graphset.h"
#include "cli/command.h"
#include "io/json_writer.h"

typedef struct options {
    const char *pictures;
    int64_t train, validation, test, limit, segments, seed;
    double compactness;
    bool quiet, json;
} options;

static const options defaults = {.train = -1, .validation = -1, .test = -1};

static const basin_option table[] = {
    BASIN_INTEGER(options, train, "train", "N", -1, 1 << 24,
                  "Graphs for training; -1: the benchmark's 10000.",
                  .needs = "OPERAND!=superpixels"),
    BASIN_INTEGER(options, validation, "validation", "N", -1, 1 << 24,
                  "Graphs for validation; -1: the benchmark's 2000 (pattern), 1000 (cluster), 5000 "
                  "of the training pictures (superpixels)."),
    BASIN_INTEGER(options, test, "test", "N", -1, 1 << 24,
                  "Graphs for the test; -1: the benchmark's 2000 or 1000.",
                  .needs = "OPERAND!=superpixels"),
    BASIN_TEXT(options, pictures, 0, "pictures", "PATH",
               "For superpixels: MNIST's or CIFAR-10's files, or an archive with a folder a class.",
               .needs = "OPERAND=superpixels"),
    BASIN_INTEGER(options, limit, "limit", "N", 0, 1 << 24,
                  "At most so many pictures of each half; 0: all.", .needs = "OPERAND=superpixels"),
    BASIN_INTEGER(options, segments, "segments", "N", 0, 1 << 20,
                  "Superpixels a picture, at most; 0: 75 of grey ones, 150 of colours.",
                  .needs = "OPERAND=superpixels"),
    BASIN_REAL(options, compactness, "compactness", "X", 0, 1e6,
               "How much place counts against colour; 0: 0.25 of grey ones, 10 of colours.",
               .needs = "OPERAND=superpixels"),
    BASIN_OPTION_SEED(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

static basin_status make(basin_graphset *set, const options *o, const char *kind,
                         basin_error *error) {
    bool pattern = !strcmp(kind, "pattern");
    int64_t other = pattern ? 2000 : 1000;
    int64_t size[3] = {o->train >= 0 ? o->train : 10000, o->validation >= 0 ? o->validation : other,
                       o->test >= 0 ? o->test : other};
    if (pattern) return basin_graphset_pattern(set, size, (uint64_t)o->seed, error);
    if (!strcmp(kind, "cluster"))
        return basin_graphset_cluster(set, size, (uint64_t)o->seed, error);
    basin_superpixels spec = {.segments = o->segments, .compactness = o->compactness};
    return basin_graphset_read_pictures(set, o->pictures, &spec,
                                        o->validation >= 0 ? o->validation : 5000, o->limit,
                                        (uint64_t)o->seed, error);
}

static void print(const options *o, const basin_graphset *set, const char *path) {
    double graphs = (double)(set->graphs ? set->graphs : 1);
    if (o->json) {
        basin_json json = basin_json_begin(stdout);
        basin_json_text(&json, "file", path);
        basin_json_integer(&json, "graphs", set->graphs);
        basin_json_integer(&json, "nodes", set->nodes);
        basin_json_integer(&json, "edges", set->edges);
        basin_json_integer(&json, "classes", set->classes);
        basin_json_end(&json);
    } else
        printf("%s: %lld graphs (%lld for training, %lld for validation, %lld for the test), %.1f "
               "nodes and %.1f edges each, %lld classes\n",
               path, (long long)set->graphs, (long long)set->split[0], (long long)set->split[1],
               (long long)set->split[2], (double)set->nodes / graphs, (double)set->edges / graphs,
               (long long)set->classes);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    const char *kind = operand[0];
    basin_graphset set;
    basin_error error;
    (void)operands;
    bool pictures = !strcmp(kind, "superpixels");
    if (!pictures && strcmp(kind, "pattern") != 0 && strcmp(kind, "cluster") != 0)
        return basin_report_usage(&basin_command_graph_make,
                                  "'%s'; wanted pattern, cluster or superpixels", kind);
    if (pictures && !o->pictures)
        return basin_report_usage(&basin_command_graph_make, "superpixels want --pictures");
    if (make(&set, o, kind, &error)) return basin_report(&error);
    basin_status status = basin_graphset_write(operand[1], &set, &error);
    if (!status) print(o, &set, operand[1]);
    basin_graphset_free(&set);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_graph_make = {
    .name = "graph make",
    .summary = "Generate PATTERN or CLUSTER, or cut superpixel graphs of pictures",
    .operands = "pattern|cluster|superpixels OUT",
    .operands_least = 2,
    .operands_most = 2,
    .text =
        "Writes a packed set (safetensors) with its split into training, validation and test. "
        "PATTERN and CLUSTER are drawn with the parameters of the benchmark, from the seed; its "
        "own files cannot be regenerated, as their seeds were not kept. Superpixels are SLIC "
        "segments, each tied to its 8 nearest.",
    .example = "  basin graph make cluster cluster.safetensors --seed 1\n"
               "  basin graph make superpixels mnist.safetensors --pictures mnist/\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
