/* basin graph predict: a model's outputs for graphs, as CSV. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/graph/options.h"
#include "io/file.h"

typedef struct options {
    const char *part, *out, *cache, *backend, *products;
    int64_t threads;
    bool quiet;
} options;

static const options defaults = {.part = "auto", .backend = "cpu", .products = "f32"};

static const basin_option table[] = {
    BASIN_TEXT(options, out, 'o', "output", "FILE", "The CSV file; without it standard output."),
    BASIN_CHOICE(options, part, "part", "auto|train|validation|test|all",
                 "Which graphs; auto: the test part of a set that has one, else all."),
    BASIN_GRAPH_OPTION_CACHE(options),
    BASIN_OPTION_BACKEND(options),
    BASIN_OPTION_PRODUCTS(options),
    BASIN_OPTION_THREADS(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

static void print_head(FILE *file, const basin_graphs_session *s) {
    fprintf(file, s->task == BASIN_NODE_CLASSES ? "graph,node" : "graph");
    if (s->task == BASIN_GRAPHS_VALUES)
        for (int64_t c = 0; c < s->outputs; c++) fprintf(file, ",value%lld", (long long)c + 1);
    else {
        fprintf(file, ",class");
        for (int64_t c = 0; c < s->classes; c++)
            fprintf(file, ",p_%lld", (long long)s->class_value[c]);
    }
    fprintf(file, "\n");
}

/* The class and the probabilities of the model's classes; outputs beyond them are left out. */
static void print_classes(FILE *file, const basin_graphs_session *s, const float *output) {
    double top = (double)output[0], sum = 0;
    int64_t best = 0;
    char text[BASIN_NUMBER_TEXT];
    for (int64_t c = 1; c < s->classes; c++) {
        if ((double)output[c] > top) best = c;
        top = fmax(top, (double)output[c]);
    }
    for (int64_t c = 0; c < s->classes; c++) sum += exp((double)output[c] - top);
    fprintf(file, ",%lld", (long long)s->class_value[best]);
    for (int64_t c = 0; c < s->classes; c++)
        fprintf(file, ",%s",
                basin_number_print(text, (double)(float)(exp((double)output[c] - top) / sum)));
    fprintf(file, "\n");
}

static void print_values(FILE *file, const basin_graphs_session *s, const float *output) {
    char text[BASIN_NUMBER_TEXT];
    for (int64_t c = 0; c < s->outputs; c++)
        fprintf(file, ",%s", basin_number_print(text, (double)output[c]));
    fprintf(file, "\n");
}

static void print_all(FILE *file, const basin_graphs_use *u) {
    const basin_graphs_session *s = &u->session;
    const float *output = u->output;
    print_head(file, s);
    for (int64_t i = 0; i < u->count; i++) {
        int64_t rows =
            s->task == BASIN_NODE_CLASSES ? basin_graphset_tokens(&u->set, u->list[i]) - 1 : 1;
        for (int64_t n = 0; n < rows; n++, output += s->outputs) {
            fprintf(file, "%lld", (long long)u->list[i]);
            if (s->task == BASIN_NODE_CLASSES) fprintf(file, ",%lld", (long long)n);
            if (s->task == BASIN_GRAPHS_VALUES)
                print_values(file, s, output);
            else
                print_classes(file, s, output);
        }
    }
}

static basin_status write_all(const options *o, const basin_graphs_use *u, basin_error *error) {
    basin_writer writer;
    if (!o->out) {
        print_all(stdout, u);
        return BASIN_OK;
    }
    basin_status status = basin_writer_create(&writer, o->out, error);
    if (status) return status;
    print_all(writer.file, u);
    return basin_writer_commit(&writer, error);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_graphs_use u;
    basin_error error;
    (void)operands;
    basin_status status = basin_graphs_use_open(&u, operand[0], operand[1], o->part, o->cache,
                                                o->backend, o->products, o->threads, false, &error);
    if (!status) status = write_all(o, &u, &error);
    basin_graphs_use_free(&u);
    return status ? basin_report(&error) : BASIN_EXIT_OK;
}

const basin_command basin_command_graph_predict = {
    .name = "graph predict",
    .summary = "Write a graph model's classes or values as CSV",
    .operands = "MODEL DATA",
    .operands_least = 2,
    .operands_most = 2,
    .text =
        "One line a graph (numbered from 0), or a node with classes of nodes: the class as the "
        "training data number it, and the probability of each; or the values. A set without labels "
        "(a TUDataset of DS_A.txt and DS_graph_indicator.txt) will do.",
    .example = "  basin graph predict proteins.safetensors PROTEINS.zip -o classes.csv\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
