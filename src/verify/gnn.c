/* Golden cases "gnn_*": the graph networks that detectors are compared with, on one graph or on
 * several relations; probabilities, loss and gradients. */
#include <stdio.h>
#include <string.h>

#include "basin/gnn.h"
#include "verify/verify.h"

static basin_gnn_arch arch_of(basin_case *c) {
    static const char *const name[] = {[BASIN_GNN_BWGNN] = "bwgnn",
                                       [BASIN_GNN_GT] = "gt",
                                       [BASIN_GNN_GCN] = "gcn",
                                       [BASIN_GNN_GAT] = "gat",
                                       [BASIN_GNN_SAGE] = "sage"};
    char word[BASIN_CASE_WORD];
    basin_case_word(c, "arch", word);
    for (int i = 0; i <= BASIN_GNN_SAGE; i++)
        if (!strcmp(word, name[i])) return (basin_gnn_arch)i;
    basin_graph_fail(c->graph, BASIN_BAD_FILE, "%s: arch '%s'; wanted one of basin/gnn.h",
                     basin_bundle_path(c->bundle), word);
    return BASIN_GNN_BWGNN;
}

static basin_gnn_config config_of(basin_case *c) {
    char merge[BASIN_CASE_WORD];
    basin_case_word(c, "merge", merge);
    return (basin_gnn_config){
        .arch = arch_of(c),
        .features = basin_case_dim(c, "features", 2, 1),
        .dim = (int64_t)basin_case_number(c, "dim"),
        .heads = (int64_t)basin_case_number(c, "heads"),
        .hidden = (int64_t)basin_case_number(c, "hidden"),
        .layers = (int)basin_case_number(c, "layers"),
        .relations = (int)basin_case_number(c, "relations"),
        .merge = strcmp(merge, "concat") ? BASIN_MERGE_MAX : BASIN_MERGE_CONCAT,
        .recompute = c->recompute,
    };
}

/* The lists of all relations; both ways, nodes their own neighbours where the case says so. */
static void read_relations(basin_case *c, int relations) {
    int loops = basin_case_flag(c, "loops") ? BASIN_PAIRS_ADD_SELF : BASIN_PAIRS_DROP_SELF;
    int64_t nodes = basin_case_dim(c, "features", 2, 0);
    for (int r = 0; r < relations; r++) {
        char name[20] = "edges";
        if (r) snprintf(name, sizeof name, "edges%d", r);
        basin_case_edges(c, r, nodes, name, loops | BASIN_PAIRS_BOTH_WAYS);
    }
}

void basin_case_build_gnn(basin_case *c) {
    basin_gnn net;
    basin_gnn_config config = config_of(c);
    if (basin_graph_error(c->graph) || basin_gnn_declare(&net, &c->params, &config)) return;
    read_relations(c, config.relations);
    basin_gnn_inputs inputs = {.features = basin_case_input_add(c, "features", 2),
                               .neighbours = c->pattern};
    basin_expr label = basin_case_input_add(c, "label", 1);
    basin_expr weight = basin_case_training_weights(c, label);
    if (basin_graph_error(c->graph)) return;
    basin_expr logits = basin_gnn_logits(&net, &inputs);
    basin_expr loss = basin_weighted_cross_entropy(logits, label, weight);
    basin_case_output_add(c, basin_sigmoid(logits), "out.probability");
    basin_case_output_add(c, loss, "out.loss");
    basin_case_gradients(c, loss, NULL);
}
