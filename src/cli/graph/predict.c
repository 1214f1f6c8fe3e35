/* basin graph predict: a model's outputs for graphs, as CSV. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/graph/options.h"
#include "io/file.h"

typedef struct options {
    const char *part, *output, *embeddings, *cache, *backend, *products, *dtype;
    int64_t threads;
    bool energies, quiet;
} options;

static const options defaults = {.part = "auto", .backend = "cpu", .products = "f32"};

static const basin_option table[] = {
    BASIN_TEXT(options, output, 'o', "output", "FILE", "The CSV file; without it standard output.",
               .writes = true),
    BASIN_TEXT(options, embeddings, 0, "embeddings", "FILE",
               "Also write what the head reads of each graph, or node: embedding [rows, R] and the "
               "numbers of graph and node, as npz or safetensors.",
               .writes = true),
    BASIN_FLAG(options, energies, 0, "energies",
               "With --embeddings: also each row's energy [rows, 3] in attention, memories and "
               "couplings.",
               .needs = "embeddings!="),
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
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for outputs");
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

/* ---- embeddings ---- */

static basin_status add(basin_bundle *bundle, const char *name, void *data, basin_dtype dtype,
                        basin_shape shape, basin_error *error) {
    basin_tensor tensor = basin_tensor_borrow(data, dtype, shape);
    return basin_bundle_add(bundle, name, &tensor, error);
}

/* Which graph, and which node of it, each row is. */
static void number_rows(int64_t *graph, int64_t *node, const job *j) {
    const basin_graph_use *u = &j->use;
    bool nodes = basin_graphs_get_target(u->model) == BASIN_NODE_CLASSES;
    for (int64_t i = 0, row = 0; i < u->count; i++) {
        int64_t rows = nodes ? basin_graphset_tokens(&u->set, u->list[i]) - 1 : 1;
        for (int64_t n = 0; n < rows; n++, row++) graph[row] = u->list[i], node[row] = n;
    }
}

static basin_status write_embeddings(const options *o, job *j, basin_error *error) {
    int64_t rows = j->rows, width = basin_graphs_width(j->use.model);
    float *embedding = calloc((size_t)(rows * width) + 1, sizeof *embedding);
    float *energy = calloc((size_t)(rows * 3) + 1, sizeof *energy);
    int64_t *graph = calloc((size_t)(2 * rows) + 1, sizeof *graph);
    basin_bundle *bundle = NULL;
    basin_status status = basin_bundle_new(&bundle, error);
    if (!status && (!embedding || !energy || !graph))
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for embeddings");
    if (!status)
        status = basin_graphs_embed(embedding, o->energies ? energy : NULL, j->use.model,
                                    &j->use.data, error);
    if (!status) number_rows(graph, graph + rows, j);
    if (!status) status = add(bundle, "graph", graph, BASIN_I64, BASIN_SHAPE(rows), error);
    if (!status && basin_graphs_get_target(j->use.model) == BASIN_NODE_CLASSES)
        status = add(bundle, "node", graph + rows, BASIN_I64, BASIN_SHAPE(rows), error);
    if (!status)
        status = add(bundle, "embedding", embedding, BASIN_F32, BASIN_SHAPE(rows, width), error);
    if (!status && o->energies)
        status = add(bundle, "energy", energy, BASIN_F32, BASIN_SHAPE(rows, 3), error);
    if (!status) status = basin_bundle_write(o->embeddings, bundle, error);
    basin_bundle_free(bundle);
    free(embedding);
    free(energy);
    free(graph);
    return status;
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
    if (!status) basin_graph_use_tell(&j.use, o->quiet);
    if (!status && o->embeddings) status = write_embeddings(o, &j, &error);
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
    .example = "  basin graph predict proteins.safetensors PROTEINS.zip -o classes.csv\n"
               "  basin graph predict proteins.safetensors NEW.zip --embeddings rows.npz "
               "--energies\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
