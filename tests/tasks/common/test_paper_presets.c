/* Every entry of the paper's tables of hyper-parameters against the presets paper-*, written by
 * hand from the paper: "Hyperparameter, architecture, and data augmentation choices" (appendix B),
 * "Hyperparameters choice of our method on all the datasets" (C), those of TUDataset and of
 * GNNBenchmark (D). What the tables leave open is in paper/README.md. Totals of parameters are in
 * tests/tasks/graphs/test_graphs.c. */
#include "basin/tasks/settings.h"
#include "support/test.h"

/* A setting and what the table says; NULL ends a list. */
typedef struct entry {
    const char *name, *value;
} entry;

static void hold(const char *task, const char *preset, const entry *entries) {
    basin_settings *settings;
    basin_error error;
    char text[64];
    assert_ok(basin_settings_new(&settings, task, preset, &failure));
    for (; entries->name; entries++) {
        assert_ok(basin_settings_get(text, sizeof text, settings, entries->name, &failure));
        char *end;
        double found = strtod(text, &end);
        bool number = end != text && !strchr(text, ',');
        if (number ? found != strtod(entries->value, NULL) : strcmp(text, entries->value) != 0)
            fail_msg("%s %s: %s is %s, the paper has %s", task, preset, entries->name, text,
                     entries->value);
    }
    if (basin_settings_check(settings, &error)) fail_msg("%s: %s", preset, error.text);
    basin_settings_free(settings);
}

/* ---- images ---- */

TEST(imagenet) {
    static const entry table[] = {
        /* Training; b1 is 0.9 in all of Basin */
        {"batch", "768"},
        {"epochs", "100"},
        {"rate", "5e-4"},
        {"warmup", "2"},
        {"rate_first", "5e-7"},
        {"rate_last", "5e-7"},
        {"beta2", "0.99"},
        {"decay", "0.05"},
        {"clip", "1"},
        /* Architecture; beta 0 is 1 / sqrt(Y) = 1/8 */
        {"dim", "768"},
        {"heads", "12"},
        {"head_dim", "64"},
        {"beta", "0"},
        {"learn_beta", "off"},
        {"alpha", "0.1"},
        {"steps", "12"},
        {"memories", "3072"},
        /* Data augmentation */
        {"flip", "on"},
        {"jitter", "0.4"},
        {"crop", "random"},
        {"crop_scale", "0.08"},
        /* The text: 224 x 224, patches of 16 x 16, 100 of 196 occluded, of which 10 stay; ReLU;
         * self-attention is allowed; ImageNet's means; the algorithm's first values, no CLS */
        {"channels", "3"},
        {"size", "224"},
        {"patch", "16"},
        {"occlude", "100"},
        {"keep", "10"},
        {"arch", "et"},
        {"attention", "on"},
        {"hopfield", "on"},
        {"hopfield_kind", "relu"},
        {"self_attention", "on"},
        {"init", "paper"},
        {"cls", "off"},
        {NULL, NULL},
    };
    hold("image", "paper-imagenet", table);
    /* The ViT beside it: ViT-Tiny, 5.52 million without the decoder */
    static const entry vit[] = {
        {"arch", "vit"},     {"dim", "192"},    {"heads", "3"}, {"head_dim", "64"},
        {"memories", "768"}, {"steps", "12"},   {"cls", "off"}, {"batch", "768"},
        {"occlude", "100"},  {"epochs", "100"}, {NULL, NULL},
    };
    hold("image", "paper-vit", vit);
}

/* ---- anomalies ---- */

/* Y, K, T, H by dataset and share of nodes for training; sampled: the large graphs' 5 %. */
static const struct {
    const char *preset, *y, *k, *t, *h;
    bool sampled;
} anomaly[] = {
    {"paper-amazon", "128", "640", "1", "2", false},
    {"paper-amazon-1", "64", "128", "1", "1", false},
    {"paper-yelp", "128", "256", "1", "1", false},
    {"paper-yelp-1", "128", "256", "1", "1", false},
    {"paper-tfinance", "128", "256", "1", "3", true},
    {"paper-tfinance-1", "128", "256", "1", "1", true},
    {"paper-tsocial", "128", "256", "3", "3", true},
    {"paper-tsocial-1", "128", "256", "3", "3", true},
};

TEST(anomalies) {
    for (size_t i = 0; i < sizeof anomaly / sizeof *anomaly; i++) {
        const entry table[] = {
            {"head_dim", anomaly[i].y},
            {"memories", anomaly[i].k},
            {"steps", anomaly[i].t},
            {"heads", anomaly[i].h},
            /* The text: Adam 1e-3 for 100 epochs, the epoch by macro-F1, omega the classes' ratio,
             * x + dx (a step of 1), g(1) || g(T), an MLP, learned positions and beta, neighbours
             * alone, all edges alike */
            {"epochs", "100"},
            {"rate", "1e-3"},
            {"warmup", "0"},
            {"decay", "0"},
            {"clip", "0"},
            {"select", "macro_f1"},
            {"balance", "full"},
            {"alpha", "1"},
            {"form", "energy"},
            {"concat", "on"},
            {"position", "learned"},
            {"learn_beta", "on"},
            {"self_loops", "drop"},
            {"relations", "one"},
            {"hops", "0"},
            {"degree", "off"},
            {"dropout", "0"},
            {"average", "0"},
            {"members", "1"},
            {"hopfield_kind", "relu"},
            {"sampling", anomaly[i].sampled ? "subgraph" : "full"},
            {"fraction", "0.05"},
            {NULL, NULL},
        };
        hold("anomaly", anomaly[i].preset, table);
    }
}

/* ---- graphs ---- */

/* What all columns of the three tables agree on, and the text's gradient centralisation. */
static const entry all_graphs[] = {
    {"rate", "1e-3"},
    {"warmup", "50"},
    {"beta2", "0.99"},
    {"decay", "0.05"},
    {"clip", "0"},
    {"centralise", "on"},
    {"dim", "128"},
    {"heads", "12"},
    {"head_dim", "64"},
    {"beta", "0"}, /* 1 / sqrt(64) */
    {"learn_beta", "on"},
    {"eigenvectors", "15"},
    {"adjacency", "conv"}, /* 3 x 3, dilation 1 */
    {"memories", "512"},
    {"hopfield_kind", "relu"},
    {"walks", "0"},
    {"edge_walks", "0"},
    {"couplings", "0"},
    {"cls_laplacian", "on"},
    {"cls_self", "off"}, /* B != C */
    {"readout", "cls"},
    {"hidden", "0"},
    {"norm_head", "off"},
    {"dropout", "0"},
    {"weight_classes", "off"},
    {"outputs", "0"}, /* as many as there are classes */
    {NULL, NULL},
};

static const struct {
    const char *preset, *batch, *epochs, *first, *last, *alpha, *noise, *depth, *blocks;
    const char *smoothing, *reconstruct;
} graphs[] = {
    {"paper-tu", "32", "300", "5e-6", "5e-6", "0.01", "0.02", "1", "4", "0.05", "off"},
    {"paper-cifar10", "128", "150", "1e-3", "5e-5", "0.25", "0.02", "4", "2", "0", "on"},
    {"paper-mnist", "128", "150", "1e-3", "5e-5", "0.25", "0.02", "4", "2", "0", "on"},
    {"paper-pattern", "128", "100", "1e-3", "5e-7", "0.1", "0.005", "4", "2", "0.05", "off"},
    {"paper-cluster", "128", "300", "1e-3", "5e-7", "0.1", "0.005", "4", "2", "0.05", "off"},
    {"paper-zinc", "128", "500", "5e-7", "5e-7", "0.1", "0.005", "1", "4", "0", "off"},
};

TEST(graph_sets) {
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        const entry table[] = {
            {"batch", graphs[i].batch},
            {"epochs", graphs[i].epochs},
            {"rate_first", graphs[i].first},
            {"rate_last", graphs[i].last},
            {"alpha", graphs[i].alpha},
            {"noise", graphs[i].noise},
            {"steps", graphs[i].depth},
            {"blocks", graphs[i].blocks},
            {"smoothing", graphs[i].smoothing},
            {"reconstruct", graphs[i].reconstruct},
            {NULL, NULL},
        };
        hold("graphs", graphs[i].preset, table);
        hold("graphs", graphs[i].preset, all_graphs);
    }
}

/* ---- all of them ---- */

static bool tested(const char *preset) {
    for (size_t i = 0; i < sizeof anomaly / sizeof *anomaly; i++)
        if (!strcmp(anomaly[i].preset, preset)) return true;
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
        if (!strcmp(graphs[i].preset, preset)) return true;
    return !strcmp(preset, "paper-imagenet") || !strcmp(preset, "paper-vit");
}

/* A new row must come with its table; every preset must be one that can be trained. */
TEST(none_is_left_out) {
    static const char *const task[] = {"image", "anomaly", "graphs"};
    int count = 0;
    for (int t = 0; t < 3; t++)
        for (const char *const *name = basin_settings_presets(task[t]); *name; name++) {
            bool paper = !strncmp(*name, "paper-", strlen("paper-"));
            if (paper && !tested(*name)) fail_msg("%s %s has no table here", task[t], *name);
            count += paper;
            hold(task[t], *name, &(entry){NULL, NULL});
        }
    assert_int_equal(count, 2 + 8 + 6);
}
