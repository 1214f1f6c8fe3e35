/* basin info: what is in a tensor file. Configuration (metadata), one line a tensor, totals. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "basin/io.h"
#include "cli/command.h"
#include "cli/table.h"
#include "io/json_writer.h"
#include "view/summary.h"

enum { LONG_VALUE = 2000 }; /* bytes of metadata that are printed whole */

typedef struct options {
    bool stats, json;
} options;

static const options defaults = {0};

static const basin_option table[] = {
    BASIN_FLAG(options, stats, 0, "stats",
               "Mean, standard deviation, least and greatest number of each tensor, and how many "
               "are NaN or infinite. Reads the whole file."),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

typedef struct totals {
    int64_t numbers;
    size_t bytes;
} totals;

static totals count_all(const basin_bundle *bundle) {
    totals all = {0, 0};
    for (size_t i = 0; i < basin_bundle_count(bundle); i++) {
        const basin_tensor *tensor = basin_bundle_at(bundle, i);
        all.numbers += basin_shape_count(tensor->shape);
        all.bytes += basin_tensor_bytes(tensor);
    }
    return all;
}

static void add_stats(basin_table *rows, const basin_tensor *tensor) {
    basin_summary s = basin_tensor_summary(tensor);
    const double value[] = {s.mean, s.std, s.low, s.high};
    for (int i = 0; i < 4; i++)
        if (isnan(value[i]))
            basin_table_add(rows, "-");
        else
            basin_table_add(rows, "%.5g", value[i]);
    if (s.nan || s.infinite)
        basin_table_add(rows, "%lld NaN, %lld infinite", (long long)s.nan, (long long)s.infinite);
    else
        basin_table_add(rows, "%s", "");
}

static bool print_tensors(const basin_bundle *bundle, bool stats) {
    basin_table rows = {.layout = stats ? "llrrrrrrl" : "llrr"};
    const char *heading[] = {"tensor", "type", "shape", "count", "mean", "std", "min", "max", ""};
    for (int i = 0; i < (stats ? 9 : 4); i++) basin_table_add(&rows, "%s", heading[i]);
    for (size_t i = 0; i < basin_bundle_count(bundle); i++) {
        const basin_tensor *tensor = basin_bundle_at(bundle, i);
        char shape[BASIN_SHAPE_TEXT];
        basin_table_add(&rows, "%s", basin_bundle_name(bundle, i));
        basin_table_add(&rows, "%s", basin_dtype_name(tensor->dtype));
        basin_table_add(&rows, "%s", basin_shape_print(shape, tensor->shape));
        basin_table_add(&rows, "%lld", (long long)basin_shape_count(tensor->shape));
        if (stats) add_stats(&rows, tensor);
    }
    return basin_table_print(&rows, stdout, 2);
}

static bool print_table(const basin_bundle *bundle, const options *o) {
    totals all = count_all(bundle);
    size_t tensors = basin_bundle_count(bundle), keys = basin_bundle_meta_count(bundle);
    printf("%s: %zu tensor%s, %lld numbers, %zu bytes\n", basin_bundle_path(bundle), tensors,
           tensors == 1 ? "" : "s", (long long)all.numbers, all.bytes);
    bool good = true;
    if (keys) {
        basin_table rows = {.layout = "ll"};
        printf("configuration:\n");
        for (size_t i = 0; i < keys; i++) {
            const char *value = basin_bundle_meta_value(bundle, i);
            size_t length = strlen(value);
            basin_table_add(&rows, "%s", basin_bundle_meta_key(bundle, i));
            if (length <= LONG_VALUE)
                basin_table_add(&rows, "%s", value);
            else
                basin_table_add(&rows, "%.200s ... (%zu bytes; --json has all)", value, length);
        }
        good = basin_table_print(&rows, stdout, 2);
    }
    if (tensors) good = print_tensors(bundle, o->stats) && good;
    return good;
}

static void json_tensor(basin_json *json, const char *name, const basin_tensor *tensor,
                        bool stats) {
    basin_json_object(json, NULL);
    basin_json_text(json, "name", name);
    basin_json_text(json, "dtype", basin_dtype_name(tensor->dtype));
    basin_json_shape(json, "shape", tensor->shape);
    basin_json_integer(json, "count", basin_shape_count(tensor->shape));
    if (stats) {
        basin_summary s = basin_tensor_summary(tensor);
        basin_json_number(json, "mean", s.mean);
        basin_json_number(json, "std", s.std);
        basin_json_number(json, "min", s.low);
        basin_json_number(json, "max", s.high);
        basin_json_integer(json, "nan", s.nan);
        basin_json_integer(json, "infinite", s.infinite);
    }
    basin_json_end(json);
}

static void print_json(basin_json *json, const basin_bundle *bundle, const options *o) {
    totals all = count_all(bundle);
    basin_json_object(json, NULL);
    basin_json_text(json, "file", basin_bundle_path(bundle));
    basin_json_integer(json, "numbers", all.numbers);
    basin_json_integer(json, "bytes", (int64_t)all.bytes);
    basin_json_object(json, "configuration");
    for (size_t i = 0; i < basin_bundle_meta_count(bundle); i++)
        basin_json_text(json, basin_bundle_meta_key(bundle, i), basin_bundle_meta_value(bundle, i));
    basin_json_end(json);
    basin_json_array(json, "tensors");
    for (size_t i = 0; i < basin_bundle_count(bundle); i++)
        json_tensor(json, basin_bundle_name(bundle, i), basin_bundle_at(bundle, i), o->stats);
    basin_json_end(json);
    basin_json_end(json);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    int code = BASIN_EXIT_OK;
    basin_json json;
    if (o->json) {
        json = basin_json_begin(stdout);
        basin_json_array(&json, "files");
    }
    for (int i = 0; i < operands; i++) {
        basin_bundle *bundle;
        basin_error error;
        if (basin_bundle_read(&bundle, operand[i], &error)) {
            code = basin_report(&error);
            continue;
        }
        if (o->json) {
            print_json(&json, bundle, o);
        } else {
            if (i) putchar('\n');
            if (!print_table(bundle, o)) code = BASIN_EXIT_FAILURE;
        }
        basin_bundle_free(bundle);
        basin_note_gamma(operand[i], false);
    }
    if (o->json) {
        basin_json_end(&json);
        basin_json_end(&json);
    }
    return code;
}

const basin_command basin_command_info = {
    .name = "info",
    .summary = "Describe a model or tensor file: configuration, tensors, totals",
    .operands = "FILE...",
    .operands_least = 1,
    .operands_most = INT_MAX,
    .text =
        "Reads safetensors and npz. The configuration is the metadata of the file. A model file "
        "written by Basin holds all that is needed to run it.",
    .example = "  basin info model.safetensors\n"
               "  basin info --stats --json weights.npz\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
