/* Settings of rivals; see rival.h. The presets follow the published code of GADBench: raw features,
 * self-loops, 32 units, 2 layers, Adam 0.01, at most 200 epochs, the epoch by validation AUPRC. */
#include "task/anomaly/rival/rival.h"
#include "base/try.h"

#include <string.h>

static const struct {
    const char *name;
    basin_gnn_arch arch;
} rivals[] = {{"bwgnn", BASIN_GNN_BWGNN},
              {"gt", BASIN_GNN_GT},
              {"gcn", BASIN_GNN_GCN},
              {"gat", BASIN_GNN_GAT},
              {"sage", BASIN_GNN_SAGE}};
enum { RIVALS = sizeof rivals / sizeof *rivals };

bool basin_rival_asked(const basin_anomaly_settings *settings) {
    return !basin_choice_is(settings->arch, "et");
}

static basin_gnn_arch arch_of(const basin_anomaly_settings *settings) {
    int i = 0;
    while (i + 1 < RIVALS && !basin_choice_is(settings->arch, rivals[i].name)) i++;
    return rivals[i].arch;
}

basin_gnn_config basin_rival_config(const basin_anomaly_settings *r,
                                    const basin_anomaly_shape *shape) {
    return (basin_gnn_config){
        .arch = arch_of(r),
        .features = shape->columns,
        .dim = r->dim,
        .heads = r->heads,
        .hidden = r->hidden,
        .layers = (int)r->blocks,
        .relations = shape->relations,
        .merge = basin_choice_is(r->relations, "concat") ? BASIN_MERGE_CONCAT : BASIN_MERGE_MAX,
        .dropout = r->dropout,
        .recompute = r->recompute,
        .outputs = r->classes,
    };
}

/* ---- settings without effect ---- */

#define BASIN_SETTINGS_TYPE basin_anomaly_settings
static const basin_setting model[] = {BASIN_ANOMALY_MODEL_SETTINGS(BASIN_SETTING_ENTRY)
                                          BASIN_SETTINGS_END};

static bool has(basin_gnn_arch arch, const char *setting) {
    static const char *const all[] = {"arch", "dim", "blocks", "hidden", "dropout"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(setting, all[i])) return true;
    return !strcmp(setting, "heads") && (arch == BASIN_GNN_GT || arch == BASIN_GNN_GAT);
}

static basin_status check_unused(const basin_anomaly_settings *r, const basin_task_settings *task,
                                 const basin_setting *setting, basin_error *error) {
    basin_anomaly_settings usual;
    char found[64], wanted[64];
    BASIN_TRY(basin_settings_preset(&usual, task, "default", error));
    basin_setting_print(found, sizeof found, r, setting);
    basin_setting_print(wanted, sizeof wanted, &usual, setting);
    if (!strcmp(found, wanted)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s is %s, which has no effect with arch %s; wanted %s, as the presets "
                      "default and rival-%s have it",
                      setting->name, found, r->arch, wanted, r->arch);
}

basin_status basin_rival_check(const basin_anomaly_settings *r, const basin_task_settings *task,
                               basin_error *error) {
    basin_gnn_arch arch = arch_of(r);
    basin_status status = BASIN_OK;
    if (!basin_rival_asked(r)) return BASIN_OK;
    for (const basin_setting *s = model; s->name && !status; s++)
        if (!has(arch, s->name)) status = check_unused(r, task, s, error);
    if (status) return status;
    if (has(arch, "heads") && r->dim % r->heads)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "dim is %lld and heads %lld with arch %s; wanted heads that divide dim",
                          (long long)r->dim, (long long)r->heads, r->arch);
    if (arch == BASIN_GNN_BWGNN && r->recompute)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "recompute is on, which has no effect with arch bwgnn; wanted off");
    return BASIN_OK;
}
