/* Settings of graph tasks: the table of their names, the presets, what is refused. Presets come in
 * three families: paper-*, the paper's tables; published-*, the released code; and ours. */
#include <string.h>

#include "task/graphs/graphs.h"

#define BASIN_SETTINGS_TYPE basin_graphs_settings
static const basin_setting table[] = {
    BASIN_GRAPHS_INPUT_SETTINGS(BASIN_SETTING_ENTRY)
        BASIN_GRAPHS_MODEL_SETTINGS(BASIN_SETTING_ENTRY)
            BASIN_GRAPHS_TRAINING_SETTINGS(BASIN_SETTING_ENTRY)
                BASIN_LOOSE_SETTINGS(BASIN_LOOSE_ENTRY) BASIN_SETTINGS_END,
};

/* ---- published-*: the released notebooks ---- */

/* Their configuration for TUDatasets; the others change what differs. */
static const basin_graphs_settings tu = {
    .eigenvectors = 15,
    .cls_laplacian = true,
    .cls_self = true,
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
    .reconstruct_all = true,
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

/* ---- paper-*: its tables of hyper-parameters (appendix D) ---- */

/* What they leave open is as published. Its energy has no pair of a token with itself, and its head
 * as many outputs as there are classes. */
static basin_graphs_settings paper(basin_graphs_settings s, int64_t batch) {
    s.cls_self = false;
    s.outputs = 0;
    s.batch = batch;
    return s;
}

static basin_graphs_settings paper_tu(void) {
    basin_graphs_settings s = paper(tu, 32);
    s.alpha = 0.01;
    return s;
}

static basin_graphs_settings paper_zinc(void) {
    basin_graphs_settings s = paper(zinc(), 128);
    s.noise = 0.005;
    return s;
}

/* MNIST and CIFAR-10, without smoothing. */
static basin_graphs_settings paper_pictures(void) {
    basin_graphs_settings s = paper(pictures(), 128);
    s.smoothing = 0;
    return s;
}

/* PATTERN and CLUSTER, of which no code is published. */
static basin_graphs_settings paper_nodes(int64_t epochs) {
    basin_graphs_settings s = paper(tu, 128);
    s.blocks = 2;
    s.steps = 4;
    s.alpha = 0.1;
    s.noise = 0.005;
    s.epochs = epochs;
    s.rate_first = 1e-3;
    s.rate_last = 5e-7;
    return s;
}

/* ---- ours ---- */

/* Chosen by inner validation: docs/graphs.md. */
static const basin_graphs_settings usual = {
    .walks = 16,
    .edge_walks = 6,
    .cls_self = true,
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
    .reconstruct_all = true,
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

/* Tuned on ZINC. */
static basin_graphs_settings molecules(void) {
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

static const char *const presets[] = {"default",
                                      "molecules",
                                      "sbm",
                                      "communities",
                                      "superpixels",
                                      "gin",
                                      "gcn",
                                      "paper-tu",
                                      "paper-zinc",
                                      "paper-pattern",
                                      "paper-cluster",
                                      "paper-mnist",
                                      "paper-cifar10",
                                      "published-tu",
                                      "published-zinc",
                                      "published-mnist",
                                      "published-cifar10",
                                      NULL};

static void fill(void *values, const char *preset) {
    basin_graphs_settings *s = values;
    *s = usual;
    if (!strcmp(preset, "molecules")) *s = molecules();
    if (!strcmp(preset, "sbm")) *s = sbm();
    if (!strcmp(preset, "communities")) *s = communities();
    if (!strcmp(preset, "superpixels")) *s = superpixels();
    if (!strcmp(preset, "paper-tu")) *s = paper_tu();
    if (!strcmp(preset, "paper-zinc")) *s = paper_zinc();
    if (!strcmp(preset, "paper-pattern")) *s = paper_nodes(100);
    if (!strcmp(preset, "paper-cluster")) *s = paper_nodes(300);
    if (!strcmp(preset, "paper-mnist") || !strcmp(preset, "paper-cifar10")) *s = paper_pictures();
    if (!strcmp(preset, "published-tu")) *s = tu;
    if (!strcmp(preset, "published-zinc")) *s = zinc();
    if (!strcmp(preset, "published-mnist") || !strcmp(preset, "published-cifar10")) *s = pictures();
    if (!basin_graphs_gnn_preset(s, preset)) s->arch = "et";
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

/* Of a model to be trained; one in a file may have been trained when defaults were others. */
static basin_status check(const void *values, basin_error *error) {
    basin_status status = basin_graphs_settings_check(values, error);
    return status ? status : basin_graphs_arch_check(values, error);
}

basin_status basin_graphs_settings_take(const basin_graphs_settings **values,
                                        const basin_settings *settings, basin_error *error) {
    *values = settings->values;
    if (settings->kind == &basin_graphs_task) return check(*values, error);
    return basin_fail(error, BASIN_BAD_VALUE, "settings of the task %s, wanted graphs",
                      settings->kind->task);
}

const basin_task_settings basin_graphs_task = {"graphs", table, sizeof(basin_graphs_settings),
                                               presets,  fill,  check};
