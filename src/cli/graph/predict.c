/* basin graph predict: a model's outputs for graphs, as CSV. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/graph/options.h"
#include "io/file.h"

typedef struct options {
    const char *part, *output, *cache, *backend, *products, *dtype;
    int64_t threads;
    bool quiet;
} options;

static const options defaults = {.part = "auto", .backend = "cpu", .products = "f32"};

static const basin_option table[] = {
    BASIN_TEXT(options, output, 'o', "output", "FILE", "The CSV file; without it standard output."),
    BASIN_GRAPH_OPTIONS(options),
    BASIN_OPTION_QUIET(options),
    BASIN_OPTIONS_END,
};

typedef struct job {
    basin_graph_use use;
    int64_t rows, columns;
    float *output;        /* [rows, columns] */
    int64_t *class_value; /* [rows] */
} job;

static basin_status predict(job *j, basin_error *error) {
    basin_graph_use *u = &j->use;
    j->rows = basin_graphs_rows(u->model, &u->data);
    j->columns = basin_graphs_columns(u->model);
    j->output = calloc((size_t)j->rows + 1, (size_t)j->columns * sizeof *j->output);
    j->class_value = calloc((size_t)j->rows + 1, sizeof *j->class_value);
    if (!j->output || !j->class_value)
        return basin_fail(error, BASIN_NO_MEMORY, "no memory for outputs");
    return basin_graphs_predict(j->output, j->class_value, u->model, &u->data, error);
}

static void print_head(FILE *file, const job *j) {
    const int64_t *class_value = basin_graphs_class_values(j->use.model);
    bool nodes = basin_graphs_get_target(j->use.model) == BASIN_NODE_CLASSES;
    fprintf(file, "graph%s%s", nodes ? ",node" : "", class_value ? ",class" : "");
    for (int64_t c = 0; c < j->columns; c++)
        fprintf(file, class_value ? ",p_%lld" : ",value%lld",
                class_value ? (long long)class_value[c] : (long long)c + 1);
    fprintf(file, "\n");
}

static void print_row(FILE *file, const job *j, int64_t row) {
    char text[BASIN_NUMBER_TEXT];
    if (basin_graphs_class_values(j->use.model))
        fprintf(file, ",%lld", (long long)j->class_value[row]);
    for (int64_t c = 0; c < j->columns; c++)
        fprintf(file, ",%s", basin_number_print(text, (double)j->output[row * j->columns + c]));
    fprintf(file, "\n");
}

static void print_all(FILE *file, const job *j) {
    const basin_graph_use *u = &j->use;
    bool nodes = basin_graphs_get_target(u->model) == BASIN_NODE_CLASSES;
    int64_t row = 0;
    print_head(file, j);
    for (int64_t i = 0; i < u->count; i++) {
        int64_t rows = nodes ? basin_graphset_tokens(&u->set, u->list[i]) - 1 : 1;
        for (int64_t n = 0; n < rows; n++, row++) {
            fprintf(file, "%lld", (long long)u->list[i]);
            if (nodes) fprintf(file, ",%lld", (long long)n);
            print_row(file, j, row);
        }
    }
}

static basin_status write_all(const options *o, const job *j, basin_error *error) {
    basin_writer writer;
    if (!o->output) {
        print_all(stdout, j);
        return BASIN_OK;
    }
    basin_status status = basin_writer_create(&writer, o->output, error);
    if (status) return status;
    print_all(writer.file, j);
    return basin_writer_commit(&writer, error);
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    job j = {0};
    basin_error error;
    (void)operands;
    basin_status status =
        basin_option_backend(&j.use.backend, o->backend, o->threads, o->products, o->dtype, &error);
    if (!status)
        status =
            basin_graph_use_open(&j.use, operand[0], operand[1], o->part, o->cache, false, &error);
    if (!status) basin_note_gamma(operand[0], o->quiet);
    if (!status) status = predict(&j, &error);
    if (!status) status = write_all(o, &j, &error);
    free(j.output);
    free(j.class_value);
    basin_graph_use_close(&j.use);
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
