/* One interface for the models of graphs: the Energy Transformer, GIN and GCN. */
#include "basin/model.h"

basin_status basin_graphs_net_declare(basin_graphs_net *net, basin_params *params,
                                      const basin_graphs_net_config *config) {
    net->arch = config->arch;
    if (config->arch == BASIN_GRAPHS_ET) return basin_graphs_declare(&net->et, params, &config->et);
    return basin_graphs_gnn_declare(&net->gnn, params, &config->gnn);
}

basin_graphs_batch basin_graphs_net_inputs(const basin_graphs_net *net, basin_graph *graph,
                                           int64_t graphs, int64_t nodes, int64_t pairs) {
    if (net->arch == BASIN_GRAPHS_ET)
        return basin_graphs_inputs(&net->et, graph, graphs, nodes, pairs);
    const basin_graphs_gnn_config *c = &net->gnn.config;
    basin_graphs wanted = {.config = {.features = c->features,
                                      .edge_features = c->edge_features > 0 ? c->edge_features : 1,
                                      .positions = c->positions}};
    return basin_graphs_inputs(&wanted, graph, graphs, nodes, pairs);
}

basin_expr basin_graphs_net_forward(const basin_graphs_net *net, const basin_graphs_batch *batch) {
    return net->arch == BASIN_GRAPHS_ET ? basin_graphs_forward(&net->et, batch)
                                        : basin_graphs_gnn_forward(&net->gnn, batch, NULL, NULL);
}

basin_expr basin_graphs_net_look(basin_graphs_view *view, const basin_graphs_net *net,
                                 const basin_graphs_batch *batch, basin_expr weight) {
    if (net->arch == BASIN_GRAPHS_ET) {
        basin_graphs_look(view, &net->et, batch);
        return basin_graphs_forward(&net->et, batch);
    }
    *view = (basin_graphs_view){0};
    return basin_graphs_gnn_forward(&net->gnn, batch, weight, &view->embedding);
}
