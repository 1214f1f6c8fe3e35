/* Golden case "anomaly": node anomaly detection on one graph, probabilities, loss and gradients. */
#include "basin/model.h"
#include "verify/verify.h"

/* 1 for a training node, omega where it is anomalous, 0 for the others. */
static basin_expr weights(basin_case *c, basin_expr label, basin_expr train) {
    double omega = basin_case_number(c, "omega");
    return basin_mul(train, basin_offset(basin_scale(label, omega - 1), 1));
}

void basin_case_build_anomaly(basin_case *c) {
    basin_anomaly model;
    basin_anomaly_config config = {.nodes = basin_case_dim(c, "features", 2, 0),
                                   .features = basin_case_dim(c, "features", 2, 1),
                                   .block = basin_case_block(c, ""),
                                   .descent = basin_case_descent(c),
                                   .position = BASIN_POSITION_LEARNED};
    basin_tensor edges = basin_case_integers(c, "edges", 2);
    if (edges.data && edges.shape.dim[1] == 2)
        basin_case_pairs(c, config.nodes, edges.data, edges.shape.dim[0], BASIN_PAIRS_BOTH_WAYS);
    else
        basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "%s: in.edges; wanted [edges, 2]",
                         basin_bundle_path(c->bundle));
    basin_tensor_free(&edges);
    basin_expr features = basin_case_input_add(c, "features", 2);
    basin_expr label = basin_case_input_add(c, "label", 1);
    basin_expr train = basin_case_input_add(c, "train", 1);
    if (basin_graph_error(c->graph) || basin_anomaly_declare(&model, &c->params, &config)) return;
    basin_expr logits = basin_anomaly_forward(&model, features, &c->pattern);
    basin_expr loss = basin_weighted_cross_entropy(logits, label, weights(c, label, train));
    basin_case_output_add(c, basin_sigmoid(logits), "out.probability");
    basin_case_output_add(c, loss, "out.loss");
    basin_case_gradients(c, loss, NULL);
}
