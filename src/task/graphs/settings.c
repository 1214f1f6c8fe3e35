/* Settings of graph tasks: the table of their names, the presets, what is refused. */
#include <string.h>

#include "task/graphs/graphs.h"

#define BASIN_SETTINGS_TYPE basin_graphs_settings
static const basin_setting table[] = {
    BASIN_GRAPHS_INPUT_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_GRAPHS_MODEL_SETTINGS(BASIN_SETTING_ENTRY)
            BASIN_GRAPHS_TRAINING_SETTINGS(BASIN_SETTING_ENTRY)
                BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

/* The published notebooks' configuration for TUDatasets; the others change what differs. */
static const basin_graphs_settings tu = {
    .eigenvectors = 15,
    .cls_laplacian = true,
    .dim = 128,
    .heads = 12,
    .head_dim = 64,
    .memories = 512,
    .blocks = 4,
    .steps = 1,
    .alpha = 0.1,
    .noise = 0.02,
    .attention = true,
    .hopfield = true,
    .hopfield_kind = "relu",
    .hopfield_power = 3,
    .mix = true,
    .learn_beta = true,
    .adjacency = "conv",
    .readout = "cls",
    .query_deviation = 0.002,
    .outputs = 10,
    .degrees = 0,
    .epochs = 300,
    .warmup = 50,
    .batch = 64,
    .rate = 1e-3,
    .rate_first = 5e-6,
    .rate_last = 5e-6,
    .decay = 0.05,
    .beta2 = 0.99,
    .smoothing = 0.05,
    .centralise = true,
};

static basin_graphs_settings zinc(void) {
    basin_graphs_settings s = tu;
    s.raw = true;
    s.outputs = 1;
    s.epochs = 500;
    s.batch = 1024;
    s.rate_first = s.rate_last = 5e-7;
    s.smoothing = 0;
    return s;
}

/* MNIST and CIFAR-10: superpixels with the reconstruction of their edges. */
static basin_graphs_settings pictures(void) {
    basin_graphs_settings s = tu;
    s.blocks = 2;
    s.steps = 4;
    s.alpha = 0.25;
    s.reconstruct = true;
    s.epochs = 150;
    s.batch = 512;
    s.rate_first = 1e-3;
    s.rate_last = 5e-5;
    return s;
}

/* PATTERN and CLUSTER: no notebook is published; sizes by the paper's parameter counts. */
static basin_graphs_settings nodes(void) {
    basin_graphs_settings s = pictures();
    s.reconstruct = false;
    s.outputs = 0;
    s.epochs = 100;
    s.warmup = 10;
    s.batch = 64;
    s.smoothing = 0;
    s.weight_classes = true;
    return s;
}

/* Chosen by inner validation: docs/graphs.md. */
static const basin_graphs_settings usual = {
    .walks = 16,
    .edge_walks = 6,
    .standardise = true,
    .edge_sums = true,
    .degrees = 8,
    .dim = 64,
    .heads = 4,
    .head_dim = 16,
    .memories = 128,
    .blocks = 4,
    .steps = 1,
    .alpha = 0.5,
    .noise = 0.02,
    .attention = true,
    .hopfield = true,
    .hopfield_kind = "relu",
    .hopfield_power = 3,
    .learn_beta = true,
    .adjacency = "bilinear",
    .readout = "auto",
    .hidden = 64,
    .norm_head = true,
    .dropout = 0.2,
    .warmup = 5,
    .batch = 32,
    .rate = 1e-3,
    .rate_last = 1e-5,
    .decay = 0.05,
    .beta2 = 0.99,
    .clip = 1,
    .smoothing = 0.05,
    .weight_classes = true,
};

static basin_graphs_settings zinc_default(void) {
    basin_graphs_settings s = usual;
    s.walks = 20;
    s.dim = 96;
    s.heads = 6;
    s.couplings = 6;
    s.memories = 192;
    s.blocks = 6;
    s.degrees = 0;
    s.epochs = 150;
    s.batch = 64;
    s.smoothing = 0;
    s.dropout = 0;
    return s;
}

static basin_graphs_settings sbm(void) {
    basin_graphs_settings s = usual;
    s.eigenvectors = 16;
    s.walks = 8;
    s.edge_walks = 0;
    s.blocks = 8;
    s.degrees = 0;
    s.dropout = 0;
    s.epochs = 15;
    s.warmup = 1;
    s.batch = 32;
    s.smoothing = 0;
    s.weight_classes = true;
    return s;
}

/* CLUSTER: walks tell edges within a community from others, and couplings carry the known classes
 * along them. */
static basin_graphs_settings communities(void) {
    basin_graphs_settings s = sbm();
    s.eigenvectors = 0;
    s.edge_walks = 6;
    s.couplings = 4;
    s.blocks = 12;
    s.epochs = 37;
    return s;
}

static basin_graphs_settings superpixels(void) {
    basin_graphs_settings s = usual;
    s.degrees = 0;
    s.walks = 0;
    s.edge_walks = 0;
    s.edge_sums = false;
    s.eigenvectors = 8;
    s.epochs = 15;
    s.warmup = 1;
    s.batch = 128;
    s.rate = 1.5e-3;
    s.dropout = 0;
    return s;
}

static const char *const presets[] = {"default", "tu",          "zinc",        "pattern",
                                      "cluster", "mnist",       "cifar10",     "zinc-default",
                                      "sbm",     "communities", "superpixels", NULL};

static const char *const renamed[] = {"honest", "default", "zinc-honest", "zinc-default", NULL};

static void fill(void *values, const char *preset) {
    basin_graphs_settings *s = values;
    *s = usual;
    if (!strcmp(preset, "tu")) *s = tu;
    if (!strcmp(preset, "zinc")) *s = zinc();
    if (!strcmp(preset, "pattern") || !strcmp(preset, "cluster")) *s = nodes();
    if (!strcmp(preset, "mnist") || !strcmp(preset, "cifar10")) *s = pictures();
    if (!strcmp(preset, "zinc-default")) *s = zinc_default();
    if (!strcmp(preset, "sbm")) *s = sbm();
    if (!strcmp(preset, "communities")) *s = communities();
    if (!strcmp(preset, "superpixels")) *s = superpixels();
}

/* 100 epochs; of large graphs fewer, 12 million tokens in all, but not below 30. */
int64_t basin_graphs_epochs(const basin_graphs_settings *settings, const basin_graphset *set,
                            const int64_t *graph, int64_t count) {
    if (settings->epochs) return settings->epochs;
    int64_t tokens = 1;
    for (int64_t i = 0; i < count; i++) tokens += basin_graphset_tokens(set, graph[i]);
    int64_t epochs = 12000000 / tokens;
    return epochs > 100 ? 100 : epochs < 30 ? 30 : epochs;
}

basin_status basin_graphs_settings_check(const basin_graphs_settings *s, basin_error *error) {
    if (!s->attention && !s->hopfield)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "neither attention nor Hopfield network: wanted at least one of them");
    if (s->reconstruct && !strcmp(s->adjacency, "none"))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "edges are reconstructed from the adjacency; wanted one other than none");
    return BASIN_OK;
}

basin_status basin_graphs_settings_take(const basin_graphs_settings **values,
                                        const basin_settings *settings, basin_error *error) {
    *values = settings->values;
    if (settings->kind == &basin_graphs_task) return basin_graphs_settings_check(*values, error);
    return basin_fail(error, BASIN_BAD_VALUE, "settings of the task %s, wanted graphs",
                      settings->kind->task);
}

static basin_status check(const void *values, basin_error *error) {
    return basin_graphs_settings_check(values, error);
}

const basin_task_settings basin_graphs_task = {
    "graphs", table, sizeof(basin_graphs_settings), presets, renamed, fill, check};
