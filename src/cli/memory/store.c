/* basin memory store: writes patterns down as an associative memory. */
#include <stdio.h>

#include "cli/command.h"
#include "cli/memory/patterns.h"

typedef struct options {
    const char *output, *function, *tensor;
    double power, beta;
    int64_t limit, height, width, channels;
    bool binary, quiet;
} options;

static const options defaults = {.output = "memory.safetensors", .function = "softmax"};

static const basin_option table[] = {
    BASIN_TEXT(options, output, 'o', "output", "FILE", "Where the memory is written.",
               .writes = true),
    BASIN_CHOICE(options, function, "function",
                 "classical|power|softmax|entmax15|sparsemax|normmax2|lsr",
                 "The separation function: how overlaps of cue and memories pull."),
    BASIN_REAL(options, power, "power", "N", 0, 100, "The n of --function power; 0: 3."),
    BASIN_REAL(options, beta, "beta", "X", 0, 1e6,
               "Inverse temperature of softmax and its relatives and of lsr; 0: 50, for lsr 2."),
    BASIN_FLAG(options, binary, 0, "binary",
               "Signs instead of numbers: above and below the middle of all values."),
    BASIN_INTEGER(options, height, "height", "N", 0, 4096,
                  "Pictures are resized to this height; 0: that of the first."),
    BASIN_INTEGER(options, width, "width", "N", 0, 4096, "And to this width."),
    BASIN_INTEGER(options, channels, "channels", "N", 0, 3, "1: grey, 3: colour; 0: as the first."),
    BASIN_TEXT(options, tensor, 0, "tensor", "NAME",
               "The tensor of a file that has several of rank 2."),
    BASIN_INTEGER(options, limit, "limit", "N", 0, 1e12, "Only the first N patterns; 0: all."),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

static basin_status store(const options *o, basin_memory **memory, basin_patterns *p, char **path,
                          int paths, basin_error *error) {
    basin_status status = basin_patterns_read(p, path, paths, o->tensor, o->limit, error);
    if (!status && !p->channels && (o->height || o->width || o->channels))
        status = basin_fail(error, BASIN_BAD_VALUE,
                            "%s: --height, --width and --channels are for pictures, not vectors",
                            path[0]);
    if (status) return status;
    basin_memory_spec spec = {.size = sizeof spec,
                              .function = o->function,
                              .power = o->power,
                              .beta = o->beta,
                              .binary = o->binary,
                              .height = p->height,
                              .width = p->width,
                              .channels = p->channels};
    status = basin_memory_new(memory, &spec, &p->tensor, error);
    return status ? status : basin_memory_write(o->output, *memory, error);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_error error;
    basin_memory *memory = NULL;
    basin_patterns p = {.height = o->height, .width = o->width, .channels = (int)o->channels};
    basin_status status = store(o, &memory, &p, operand, operands, &error);
    if (!status && !o->quiet)
        basin_say("%lld patterns of %lld numbers, %s%s", (long long)p.tensor.shape.dim[0],
                  (long long)p.tensor.shape.dim[1], o->function, o->binary ? ", as signs" : "");
    if (!status) printf("%s\n", o->output);
    basin_memory_close(memory);
    basin_tensor_free(&p.tensor);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_memory_store = {
    .name = "memory store",
    .summary = "Store pictures or vectors in an associative memory",
    .operands = "PATTERNS...",
    .operands_least = 1,
    .operands_most = 1000,
    .text = "PATTERNS are pictures, as basin image train takes them, or one file of vectors: a "
            "tensor [count, D] in safetensors or npz, or a CSV of numbers. The file holds the "
            "patterns, the separation function and its settings; nothing is trained.",
    .example = "  basin memory store faces/ -o faces.safetensors\n"
               "  basin memory store /usr/share/datasets/mnist --limit 100 --binary --function "
               "power --power 4\n"
               "  basin memory store vectors.csv --function sparsemax --beta 20\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run_old = run,
};
