/* The kinds of graph models: what the settings mean for each, the presets of GIN and GCN, and which
 * settings have no effect on them. */
#include <math.h>
#include <string.h>

#include "base/try.h"
#include "task/graphs/graphs.h"

/* ---- from settings to expressions ---- */

static basin_graphs_arch arch_of(const basin_graphs_settings *s) {
    if (!strcmp(s->arch, "gin")) return BASIN_GRAPHS_GIN;
    return strcmp(s->arch, "gcn") ? BASIN_GRAPHS_ET : BASIN_GRAPHS_GCN;
}

static int gnn_read(const basin_graphs_model *model) {
    const char *name = model->settings.readout;
    if (model->target == BASIN_NODE_CLASSES) return BASIN_READ_NODES;
    if (!strcmp(name, "auto")) name = strcmp(model->settings.arch, "gin") ? "mean" : "sum";
    return strcmp(name, "mean") ? BASIN_READ_SUM : BASIN_READ_MEAN;
}

static basin_graphs_gnn_config gnn_config(const basin_graphs_model *model) {
    const basin_graphs_settings *s = &model->settings;
    const basin_graphset_encoding *e = &model->encoding;
    bool edges = e->edge_attributes + e->edge_labels > 0 && arch_of(s) == BASIN_GRAPHS_GIN;
    return (basin_graphs_gnn_config){.arch = arch_of(s),
                                     .features = e->features,
                                     .edge_features = edges ? e->edge_features : 0,
                                     .positions = s->eigenvectors + s->walks,
                                     .outputs = model->outputs,
                                     .dim = s->dim,
                                     .layers = (int)s->blocks,
                                     .read = gnn_read(model),
                                     .learn_epsilon = s->learn_epsilon,
                                     .drop = s->dropout};
}

basin_graphs_net_config basin_graphs_model_net(const basin_graphs_model *model, basin_expr seed) {
    basin_graphs_net_config config = {.arch = arch_of(&model->settings)};
    if (config.arch != BASIN_GRAPHS_ET) {
        config.gnn = gnn_config(model);
        config.gnn.seed = seed;
        return config;
    }
    config.et = basin_graphs_model_config(model);
    config.et.descent.seed = seed;
    if (seed && !config.et.descent.implicit.on) config.et.descent.noise = model->settings.noise;
    return config;
}

/* ---- settings without effect ---- */

/* clang-format off */
static const char *const only_et[] = {
    "heads", "head_dim", "memories", "steps", "alpha", "attention", "hopfield", "hopfield_kind",
    "hopfield_power", "beta", "learn_beta", "couplings", "noise", "mix", "adjacency", "hidden",
    "norm_head", "reconstruct", "reconstruct_all", "cls_self", "query_deviation",
    "memory_deviation", "recompute", NULL};
/* clang-format on */
static const char *const only_gin[] = {"learn_epsilon", NULL};

/* Each must be as in the default preset, where nobody has asked for anything. */
static basin_status refuse(const char *const *name, const basin_graphs_settings *s,
                           basin_error *error) {
    basin_graphs_settings usual;
    BASIN_TRY(basin_settings_preset(&usual, &basin_graphs_task, "default", error));
    for (; *name; name++) {
        const basin_setting *setting = basin_setting_find(basin_graphs_task.table, *name);
        char found[64], wanted[64];
        basin_setting_print(found, sizeof found, s, setting);
        basin_setting_print(wanted, sizeof wanted, &usual, setting);
        if (strcmp(found, wanted) != 0)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s is %s, which has no effect with arch %s; wanted %s, as in preset "
                              "default",
                              *name, found, s->arch, wanted);
    }
    return BASIN_OK;
}

basin_status basin_graphs_arch_check(const basin_graphs_settings *s, basin_error *error) {
    basin_graphs_arch arch = arch_of(s);
    basin_status status = BASIN_OK;
    if (arch != BASIN_GRAPHS_GIN) status = refuse(only_gin, s, error);
    if (status || arch == BASIN_GRAPHS_ET) return status;
    if (strcmp(s->readout, "auto") != 0 && strcmp(s->readout, "mean") != 0 &&
        strcmp(s->readout, "sum") != 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "readout is %s; wanted auto, mean or sum with arch %s", s->readout,
                          s->arch);
    return refuse(only_et, s, error);
}

bool basin_graphs_sees_edges(const basin_graphs_settings *s) {
    return arch_of(s) != BASIN_GRAPHS_GCN || s->edge_sums;
}
