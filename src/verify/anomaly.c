/* Golden case "anomaly": node anomaly detection on one graph, probabilities, loss and gradients. */
#include "basin/model.h"
#include "verify/verify.h"

/* 1 where "in.train" is 1, times "omega" where a node is anomalous. */
static basin_expr training_weights(basin_case *c, basin_expr label) {
    double omega = basin_case_number(c, "omega");
    basin_expr train = basin_case_input_add(c, "train", 1);
    return basin_mul(train, basin_offset(basin_scale(label, omega - 1), 1));
}

void basin_case_build_anomaly(basin_case *c) {
    basin_anomaly model;
    basin_anomaly_config config = {.nodes = basin_case_dim(c, "features", 2, 0),
                                   .features = basin_case_dim(c, "features", 2, 1),
                                   .block = basin_case_block(c, ""),
                                   .descent = basin_case_descent(c),
                                   .position = BASIN_POSITION_LEARNED};
    basin_case_edges(c, 0, config.nodes, "edges", BASIN_PAIRS_BOTH_WAYS);
    basin_expr features = basin_case_input_add(c, "features", 2);
    basin_expr label = basin_case_input_add(c, "label", 1);
    basin_expr weight = training_weights(c, label);
    if (basin_graph_error(c->graph) || basin_anomaly_declare(&model, &c->params, &config)) return;
    basin_expr logits = basin_anomaly_forward(&model, features, c->pattern);
    basin_expr loss = basin_weighted_cross_entropy(logits, label, weight);
    basin_case_output_add(c, basin_sigmoid(logits), "out.probability");
    basin_case_output_add(c, loss, "out.loss");
    basin_case_gradients(c, loss, NULL);
}
