/* Settings of graph tasks: the table of their names, the presets, what is refused. */
#include <string.h>

#include "task/graphs/graphs.h"

typedef basin_graph_settings type;

static const char *const adjacencies[] = {"conv", "bilinear", "edges", "none", NULL};
static const char *const readouts[] = {"auto",    "cls",       "mean",           "sum", "cls+mean",
                                       "cls+sum", "cls+sized", "cls+mean+sized", NULL};

const basin_setting basin_graph_settings_table[] = {
    BASIN_SETTING_INTEGER_OF(type, vectors, 0, 1024),
    BASIN_SETTING_INTEGER_OF(type, walks, 0, 1024),
    BASIN_SETTING_INTEGER_SINCE(type, edge_walks, 0, 1024, 0),
    BASIN_SETTING_SWITCH_OF(type, cls_laplacian),
    BASIN_SETTING_SWITCH_OF(type, raw),
    BASIN_SETTING_SWITCH_OF(type, standardise),
    BASIN_SETTING_SWITCH_OF(type, edge_sums),
    BASIN_SETTING_INTEGER_OF(type, degrees, -1, 4096),
    BASIN_SETTING_INTEGER_OF(type, dim, 2, 65536),
    BASIN_SETTING_INTEGER_OF(type, heads, 1, 4096),
    BASIN_SETTING_INTEGER_OF(type, head_dim, 1, 65536),
    BASIN_SETTING_INTEGER_OF(type, memories, 1, 1 << 24),
    BASIN_SETTING_INTEGER_SINCE(type, couplings, 0, 4096, 0),
    BASIN_SETTING_INTEGER_OF(type, blocks, 1, BASIN_MAX_BLOCKS),
    BASIN_SETTING_INTEGER_OF(type, steps, 1, 1000),
    BASIN_SETTING_REAL_OF(type, alpha, 0, 1e3),
    BASIN_SETTING_REAL_OF(type, noise, 0, 1e3),
    BASIN_SETTING_SWITCH_OF(type, attention),
    BASIN_SETTING_SWITCH_OF(type, hopfield),
    BASIN_SETTING_SWITCH_OF(type, mix),
    BASIN_SETTING_SWITCH_OF(type, learn_beta),
    BASIN_SETTING_CHOICE_OF(type, adjacency, adjacencies),
    BASIN_SETTING_CHOICE_OF(type, readout, readouts),
    BASIN_SETTING_INTEGER_OF(type, hidden, 0, 65536),
    BASIN_SETTING_SWITCH_OF(type, norm_head),
    BASIN_SETTING_REAL_OF(type, drop, 0, 0.99),
    BASIN_SETTING_SWITCH_OF(type, reconstruct),
    BASIN_SETTING_REAL_OF(type, query_deviation, 0, 100),
    BASIN_SETTING_REAL_OF(type, memory_deviation, 0, 100),
    BASIN_SETTING_INTEGER_OF(type, outputs, 0, 1 << 20),
    BASIN_SETTING_INTEGER_OF(type, epochs, 0, 1 << 24),
    BASIN_SETTING_INTEGER_OF(type, warmup, 0, 1 << 24),
    BASIN_SETTING_INTEGER_OF(type, batch, 1, 1 << 20),
    BASIN_SETTING_REAL_OF(type, rate, 0, 1e3),
    BASIN_SETTING_REAL_OF(type, rate_first, 0, 1e3),
    BASIN_SETTING_REAL_OF(type, rate_last, 0, 1e3),
    BASIN_SETTING_REAL_OF(type, decay, 0, 1e3),
    BASIN_SETTING_REAL_OF(type, beta2, 0, 1),
    BASIN_SETTING_REAL_OF(type, clip, 0, 1e9),
    BASIN_SETTING_REAL_OF(type, smoothing, 0, 0.99),
    BASIN_SETTING_SWITCH_OF(type, centralise),
    BASIN_SETTING_SWITCH_OF(type, weight_classes),
    BASIN_SETTING_SWITCH_OF(type, recompute),
    BASIN_SETTING_INTEGER_OF(type, seed, 0, 9007199254740992.0),
    BASIN_SETTINGS_END,
};

/* The published notebooks' configuration for TUDatasets; the others change what differs. */
static const basin_graph_settings tu = {
    .vectors = 15,
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

static basin_graph_settings zinc(void) {
    basin_graph_settings s = tu;
    s.raw = true;
    s.outputs = 1;
    s.epochs = 500;
    s.batch = 1024;
    s.rate_first = s.rate_last = 5e-7;
    s.smoothing = 0;
    return s;
}

/* MNIST and CIFAR-10: superpixels with the reconstruction of their edges. */
static basin_graph_settings pictures(void) {
    basin_graph_settings s = tu;
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
static basin_graph_settings nodes(void) {
    basin_graph_settings s = pictures();
    s.reconstruct = false;
    s.outputs = 0;
    s.epochs = 100;
    s.warmup = 10;
    s.batch = 64;
    s.smoothing = 0;
    s.weight_classes = true;
    return s;
}

static const basin_graph_settings honest = BASIN_GRAPH_HONEST;

static basin_graph_settings zinc_honest(void) {
    basin_graph_settings s = honest;
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
    s.drop = 0;
    return s;
}

static basin_graph_settings sbm(void) {
    basin_graph_settings s = honest;
    s.vectors = 16;
    s.walks = 8;
    s.edge_walks = 0;
    s.blocks = 8;
    s.degrees = 0;
    s.drop = 0;
    s.epochs = 15;
    s.warmup = 1;
    s.batch = 32;
    s.smoothing = 0;
    s.weight_classes = true;
    return s;
}

/* CLUSTER: walks tell edges within a community from others, and couplings carry the known classes
 * along them. */
static basin_graph_settings communities(void) {
    basin_graph_settings s = sbm();
    s.vectors = 0;
    s.edge_walks = 6;
    s.couplings = 4;
    s.blocks = 12;
    s.epochs = 37;
    return s;
}

static basin_graph_settings superpixels(void) {
    basin_graph_settings s = honest;
    s.degrees = 0;
    s.walks = 0;
    s.edge_walks = 0;
    s.edge_sums = false;
    s.vectors = 8;
    s.epochs = 15;
    s.warmup = 1;
    s.batch = 128;
    s.rate = 1.5e-3;
    s.drop = 0;
    return s;
}

bool basin_graph_preset(basin_graph_settings *settings, const char *name) {
    if (!strcmp(name, "honest"))
        *settings = honest;
    else if (!strcmp(name, "tu"))
        *settings = tu;
    else if (!strcmp(name, "zinc"))
        *settings = zinc();
    else if (!strcmp(name, "pattern") || !strcmp(name, "cluster"))
        *settings = nodes();
    else if (!strcmp(name, "mnist") || !strcmp(name, "cifar10"))
        *settings = pictures();
    else if (!strcmp(name, "zinc-honest"))
        *settings = zinc_honest();
    else if (!strcmp(name, "sbm"))
        *settings = sbm();
    else if (!strcmp(name, "communities"))
        *settings = communities();
    else if (!strcmp(name, "superpixels"))
        *settings = superpixels();
    else
        return false;
    return true;
}

/* 100 epochs; of large graphs fewer, 12 million tokens in all, but not below 30. */
int64_t basin_graph_epochs(const basin_graph_settings *settings, const basin_graphset *set,
                           const int64_t *graph, int64_t count) {
    if (settings->epochs) return settings->epochs;
    int64_t tokens = 1;
    for (int64_t i = 0; i < count; i++) tokens += basin_graphset_tokens(set, graph[i]);
    int64_t epochs = 12000000 / tokens;
    return epochs > 100 ? 100 : epochs < 30 ? 30 : epochs;
}

basin_status basin_graph_settings_check(const basin_graph_settings *s, basin_error *error) {
    if (!s->attention && !s->hopfield)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "neither attention nor Hopfield network: wanted at least one of them");
    if (s->reconstruct && !strcmp(s->adjacency, "none"))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "edges are reconstructed from the adjacency; wanted one other than none");
    return BASIN_OK;
}
