/* Golden cases of the block, the models, the Lagrangians and a network. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pairs.h"
#include "base/try.h"
#include "basin/ham.h"
#include "basin/tasks/networks.h"
#include "program/verify/verify.h"
#include "tasks/nodes/anomaly.h"
#include "tasks/pictures/net.h"

/* ---- block_*: the paper's block, forces, energies, gradients through the descent ---- */

/* All pairs, or all but a token with itself, where `allowed` [N, N] has just these; else a list. */
static basin_pattern read_pattern(basin_case *c, int64_t n, bool self) {
    basin_tensor allowed = basin_case_integers(c, "allowed", 2);
    basin_pattern pattern = self ? BASIN_ALL_PAIRS : BASIN_OTHER_PAIRS;
    int64_t count = 0, cells = basin_shape_count(allowed.shape);
    int32_t *edge = basin_array_new((size_t)cells, 2 * sizeof *edge), *may = allowed.data;
    bool square = may && allowed.shape.dim[0] == n && allowed.shape.dim[1] == n;
    if (!edge || !square)
        basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "in.allowed; expected [%lld, %lld]",
                         (long long)n, (long long)n);
    for (int64_t i = 0; i < cells && edge && square; i++)
        if (may[i]) {
            edge[2 * count] = (int32_t)(i / n);
            edge[2 * count++ + 1] = (int32_t)(i % n);
        }
    if (count < (self ? cells : cells - n)) {
        basin_pairs pairs;
        pattern = basin_case_pairs(c, &pairs, n, edge, count, 0);
        basin_pairs_free(&pairs);
    }
    free(edge);
    basin_tensor_free(&allowed);
    return pattern;
}

/* The force of each term on its own. */
static void add_forces(basin_case *c, const basin_energy *energy, basin_expr g) {
    for (int p = 0; p < energy->terms; p++) {
        bool attention = energy->term[p].name[0] == 'a';
        basin_expr force = basin_neg(basin_grad(basin_energy_term(energy, g, p), g));
        basin_case_output_add(c, force, "out.force_%s0", attention ? "att" : "hn");
    }
}

static void add_descent(basin_case *c, const basin_block *block, const basin_pattern *pattern,
                        basin_expr x, basin_expr target, basin_expr facts) {
    basin_block_graph_inputs inputs = {.facts = facts};
    basin_block_bound bound = {.block = block, .pattern = pattern, .graph = &inputs};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = basin_case_descent(c);
    basin_expr trace[(size_t)((spec.steps + 1) * energy.terms)];
    basin_expr g = basin_energy_activation(&energy, x);
    basin_case_output_add(c, g, "out.g0");
    add_forces(c, &energy, g);
    basin_expr end = basin_descend(&energy, x, &spec, trace);
    basin_case_output_add(c, end, "out.xT");
    basin_expr energies = basin_case_energies(c, &block->config, trace, spec.steps, 0);
    basin_case_output_add(c, energies, "out.energy");
    basin_expr loss = basin_scale(basin_sum_all(basin_square(basin_sub(end, target))), 0.5);
    basin_case_loss(c, loss, x);
    if (facts) basin_case_output_add(c, basin_grad(loss, facts), "grad.facts");
}

void basin_case_build_block(basin_case *c) {
    basin_block block;
    basin_block_config config = basin_case_block(c, "");
    config.no_attention = !basin_case_flag(c, "attention");
    config.no_hopfield = !basin_case_flag(c, "hopfield");
    basin_expr x = basin_case_input_add(c, "x0", 2), target = basin_case_input_add(c, "target", 2);
    basin_expr facts = NULL; /* of pairs, by query and then by key */
    if (basin_bundle_find(c->bundle, "in.facts")) facts = basin_case_input_add(c, "facts", 2);
    basin_block_graph extra = {.facts = facts ? basin_expr_shape(facts).dim[1] : 0};
    config.graph = &extra;
    if (!x || !target) return;
    basin_pattern pattern =
        read_pattern(c, basin_expr_shape(x).dim[0], basin_case_flag(c, "self_attention"));
    if (basin_graph_error(c->graph) || basin_block_declare(&block, &c->params, "", &config)) return;
    basin_lagrangian norm = {.name = "layernorm",
                             .gamma = block.gamma,
                             .delta = block.delta,
                             .epsilon = block.config.epsilon};
    basin_case_output_add(c, basin_lagrangian_value(&norm, x, 0), "out.lagrangian0");
    add_descent(c, &block, &pattern, x, target, facts);
}

/* ---- image: the masked image model ---- */

void basin_case_build_image(basin_case *c) {
    basin_image_net model;
    basin_image_net_config config = {.tokens = basin_case_dim(c, "patches", 3, 1),
                                     .patch = basin_case_dim(c, "patches", 3, 2),
                                     .block = basin_case_block(c, ""),
                                     .descent = basin_case_descent(c),
                                     .self_attention = basin_case_flag(c, "self_attention")};
    basin_expr patches = basin_case_input_add(c, "patches", 3);
    basin_expr replaced = basin_case_input_add(c, "replaced", 2);
    basin_expr occluded = basin_case_input_add(c, "occluded", 2);
    if (basin_graph_error(c->graph) || basin_image_net_declare(&model, &c->params, &config)) return;
    int steps = config.descent.steps;
    basin_expr trace[2 * (size_t)(steps + 1)];
    basin_expr output = basin_image_net_forward(&model, patches, replaced, trace);
    basin_expr loss = basin_image_net_loss(output, patches, occluded);
    basin_case_output_add(c, output, "out.patches");
    basin_case_output_add(
        c, basin_case_energies(c, &config.block, trace, steps, basin_expr_shape(patches).dim[0]),
        "out.energy");
    basin_case_loss(c, loss, NULL);
}

/* ---- anomaly: node anomaly detection on one graph, probabilities, loss and gradients ---- */

void basin_case_build_anomaly(basin_case *c) {
    basin_anomaly model;
    basin_anomaly_config config = {.nodes = basin_case_dim(c, "features", 2, 0),
                                   .features = basin_case_dim(c, "features", 2, 1),
                                   .block = basin_case_block(c, ""),
                                   .descent = basin_case_descent(c),
                                   .position = BASIN_POSITION_LEARNED};
    basin_tensor edges = basin_case_integers(c, "edges", 2);
    basin_pairs pairs;
    if (edges.data && edges.shape.dim[1] != 2)
        basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "in.edges; expected [edges, 2]");
    basin_pattern pattern = basin_case_pairs(c, &pairs, config.nodes, edges.data,
                                             edges.shape.dim[0], BASIN_PAIRS_BOTH_WAYS);
    basin_pairs_free(&pairs);
    basin_tensor_free(&edges);
    basin_expr features = basin_case_input_add(c, "features", 2);
    basin_expr label = basin_case_input_add(c, "label", 1);
    double omega = basin_case_number(c, "omega"); /* the weight of an anomalous node */
    basin_expr weight = basin_mul(basin_case_input_add(c, "train", 1),
                                  basin_offset(basin_scale(label, omega - 1), 1));
    if (basin_graph_error(c->graph) || basin_anomaly_declare(&model, &c->params, &config)) return;
    basin_expr logits = basin_anomaly_logits(
        &model, &(basin_anomaly_inputs){.features = features, .neighbours = &pattern});
    basin_expr loss = basin_weighted_cross_entropy(logits, label, weight);
    basin_case_output_add(c, basin_sigmoid(logits), "out.probability");
    basin_case_loss(c, loss, NULL);
}

/* ---- graph, graph_mixed: classification of a few graphs, each with a CLS token before its nodes
 * and pairs of that with every node ---- */

enum { MAX_GRAPHS = 10000 };

static basin_expr indices(basin_case *c, const int32_t *number, int64_t count) {
    basin_tensor tensor = basin_tensor_view(number, BASIN_I32, BASIN_SHAPE(count));
    return basin_constant(c->graph, &tensor);
}

/* Edges [nodes + edges, 2] of graph `which` by token, those of the CLS first; free them. */
static int32_t *list_edges(basin_case *c, int which, int64_t nodes, int64_t *count) {
    char name[BASIN_CASE_WORD];
    snprintf(name, sizeof name, "graph%d.edges", which);
    basin_tensor edges = basin_case_integers(c, name, 2);
    const int32_t *end = edges.data;
    bool good = end && edges.shape.dim[1] == 2;
    *count = nodes + (good ? edges.shape.dim[0] : 0);
    int32_t *edge = basin_array_new((size_t)*count, 2 * sizeof *edge);
    for (int32_t i = 0; i < 2 * *count && edge && good; i++) {
        bool own = i >= 2 * nodes;
        good = !own || (end[i - 2 * nodes] >= 0 && end[i - 2 * nodes] < nodes);
        edge[i] = own ? end[i - 2 * nodes] + 1 : i % 2 ? i / 2 + 1 : 0;
    }
    if (!good || !edge)
        basin_graph_fail(c->graph, BASIN_BAD_VALUE, "in.%s; expected [edges, 2] of nodes 0 to %lld",
                         name, (long long)nodes - 1);
    basin_tensor_free(&edges);
    return edge;
}

/* Each edge's features at both of its pairs; ones at pairs with the CLS. */
static basin_expr pair_features(basin_case *c, const basin_pairs *pairs, const int32_t *edge,
                                int64_t edges, int64_t nodes, basin_expr features) {
    basin_shape ones = BASIN_SHAPE(1, basin_expr_shape(features).dim[1]);
    basin_expr rows = basin_concat((basin_expr[]){basin_full(c->graph, ones, 1), features}, 2, 0);
    BASIN_FREE_AT_EXIT int32_t *row = basin_zeros_new((size_t)pairs->pairs, sizeof *row);
    for (int64_t e = 0; e < edges && row; e++)
        for (int way = 0; way < 2; way++)
            row[basin_pairs_find(pairs, edge[2 * e + way], edge[2 * e + 1 - way])] =
                e < nodes ? 0 : (int32_t)(e - nodes + 1);
    return row ? basin_take(rows, 0, indices(c, row, pairs->pairs)) : NULL;
}

/* The logits of graph `which`, [1, C]. */
static basin_expr one_graph(basin_case *c, const basin_graph_net *model, int which) {
    static const char *const what[] = {"features", "pe", "edge_features"};
    const basin_tensor *part[3];
    for (int i = 0; i < 3; i++) {
        char name[BASIN_CASE_WORD];
        snprintf(name, sizeof name, "graph%d.%s", which, what[i]);
        part[i] = basin_case_tensor(c, name, 2);
        if (!part[i]) return NULL;
    }
    int64_t nodes = part[0]->shape.dim[0], edges;
    /* -1, 0, .., nodes, -1: tokens before each from the first on, after each from the third on */
    BASIN_FREE_AT_EXIT int32_t *place = basin_array_new((size_t)nodes + 3, sizeof *place);
    for (int32_t t = 0; t <= nodes + 2 && place; t++) place[t] = t <= nodes + 1 ? t - 1 : -1;
    int32_t *edge = list_edges(c, which, nodes, &edges);
    basin_pairs pairs;
    basin_pattern pattern =
        basin_case_pairs(c, &pairs, nodes + 1, edge, edges, BASIN_PAIRS_BOTH_WAYS);
    basin_expr features = basin_constant(c->graph, part[2]), logits = NULL;
    if (!place) basin_graph_fail(c->graph, BASIN_NO_MEMORY, "out of memory");
    if (!basin_graph_error(c->graph)) {
        basin_graph_net_batch batch = {
            .nodes = basin_constant(c->graph, part[0]),
            .positions = basin_constant(c->graph, part[1]),
            .edge_features = pair_features(c, &pairs, edge, edges, nodes, features),
            .source = indices(c, place, nodes + 1), /* token t is node t - 1 */
            .before = indices(c, place, nodes + 1),
            .after = indices(c, place + 2, nodes + 1),
            .first = indices(c, place + 1, 1),
            .pattern = pattern};
        logits = basin_graph_net_forward(model, &batch);
    }
    basin_pairs_free(&pairs);
    free(edge);
    return logits;
}

void basin_case_build_graphs(basin_case *c) {
    basin_graph_net model;
    basin_graph_net_config config = {.features = basin_case_dim(c, "enc_w", 2, 0),
                                     .edge_features = basin_case_dim(c, "adj_w", 2, 0),
                                     .positions = basin_case_dim(c, "pos_w", 2, 0),
                                     .outputs = basin_case_dim(c, "dec_w", 2, 1),
                                     .blocks = (int)basin_case_number(c, "blocks"),
                                     .block = basin_case_block(c, "block0."),
                                     .descent = basin_case_descent(c)};
    double graphs = basin_case_number(c, "graphs"), smoothing = basin_case_number(c, "smoothing");
    config.block.mix = basin_case_flag(c, "mixed");
    if (!(graphs >= 1 && graphs <= MAX_GRAPHS))
        basin_graph_fail(c->graph, BASIN_BAD_VALUE, "%g graphs; expected 1 to %d", graphs,
                         MAX_GRAPHS);
    basin_expr label = basin_case_index(c, "label", config.outputs), row[MAX_GRAPHS];
    if (basin_graph_error(c->graph) || basin_graph_net_declare(&model, &c->params, &config)) return;
    for (int i = 0; i < (int)graphs; i++) row[i] = one_graph(c, &model, i);
    basin_expr logits = basin_concat(row, (int)graphs, 0);
    basin_expr hit = basin_take(basin_eye(c->graph, config.outputs), 0, label);
    basin_expr target = basin_offset(basin_scale(hit, 1 - smoothing), /* spread over all classes */
                                     smoothing / (double)config.outputs);
    basin_case_output_add(c, logits, "out.logits");
    basin_case_loss(c, basin_cross_entropy(logits, target), NULL);
}

/* ---- lagrangians: each one, its activation, its energy, at a mild and a large state ---- */

static void add_outputs(basin_case *c, const basin_lagrangian *l, basin_expr x, const char *size) {
    const char *name = l->name;
    char energy[96], value[96];
    snprintf(energy, sizeof energy, "out.%s.%s.E", size, name);
    snprintf(value, sizeof value, "out.%s.%s.L", size, name);
    basin_case_output_add(c, basin_lagrangian_value(l, x, 0), "%s", value);
    basin_case_output_add(c, basin_lagrangian_activation(l, x), "out.%s.%s.g", size, name);
    /* the oracle's energy is <x, g> - L, the library's a closed form without that cancellation */
    basin_case_difference_add(c, basin_lagrangian_energy(l, x, 0), energy, value);
}

void basin_case_build_lagrangians(basin_case *c) {
    /* the oracle's ghostmax has no temperature, and its repu the power 4 */
    static const char *const names[] = {"identity", "relu",      "repu4",    "exp",
                                        "rexp",     "tanh",      "sigmoid",  "softmax",
                                        "ghostmax", "layernorm", "spherical"};
    basin_expr beta = basin_scalar(c->graph, basin_case_number(c, "beta"));
    basin_expr gamma = basin_scalar(c->graph, basin_case_number(c, "gamma"));
    basin_expr delta = basin_case_input_add(c, "delta", 1);
    basin_expr mild = basin_case_input_add(c, "mild", 1);
    basin_expr large = basin_case_input_add(c, "large", 1);
    double epsilon = basin_case_number(c, "eps");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        basin_lagrangian l = {.name = names[i],
                              .beta = i == 8 ? NULL : beta,
                              .gamma = gamma,
                              .delta = delta,
                              .epsilon = epsilon};
        add_outputs(c, &l, mild, "mild");
        add_outputs(c, &l, large, "large");
    }
    basin_case_output_add(c, basin_scalar(c->graph, 0), "out.loss");
}

/* ---- ham: a hierarchical associative memory of three layers, with linear synapses, a bias and a
 * dense associative memory; dE/dg, the descent and the energy tree of every step ---- */

enum { LAYERS = 3 };

static const char *const names[LAYERS] = {"v", "h", "c"};

/* The time constants: {"v": 1.0, ...} in the metadata. */
static double time_of(basin_case *c, const char *layer) {
    const char *text = basin_bundle_meta(c->bundle, "tau");
    cJSON *tree = text ? cJSON_Parse(text) : NULL;
    double tau = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(tree, layer));
    cJSON_Delete(tree);
    if (tau > 0) return tau;
    basin_graph_fail(c->graph, BASIN_BAD_FILE, "metadata 'tau' has no number '%s'", layer);
    return 1;
}

static void add_layers(basin_case *c, basin_ham *ham, basin_expr beta) {
    const basin_lagrangian lagrangian[LAYERS] = {
        {.name = "layernorm",
         .gamma = basin_scalar(c->graph, basin_case_number(c, "gamma")),
         .delta = basin_case_input_add(c, "delta", 1),
         .epsilon = basin_case_number(c, "eps")},
        {.name = "softmax", .beta = beta},
        {.name = "tanh", .beta = beta},
    };
    for (int i = 0; i < LAYERS; i++) {
        char state[BASIN_CASE_WORD];
        snprintf(state, sizeof state, "x.%s", names[i]);
        basin_ham_layer(ham, &(basin_layer){.name = names[i],
                                            .shape = BASIN_SHAPE(basin_case_dim(c, state, 1, 0)),
                                            .lagrangian = lagrangian[i],
                                            .tau = time_of(c, names[i])});
    }
}

static void add_synapses(basin_case *c, basin_ham *ham, basin_expr beta) {
    const basin_synapse synapse[] = {
        {.name = "vh", .kind = BASIN_SYNAPSE_LINEAR},
        {.name = "hc", .kind = BASIN_SYNAPSE_LINEAR},
        {.name = "bias", .kind = BASIN_SYNAPSE_BIAS},
        {.name = "memory",
         .kind = BASIN_SYNAPSE_MEMORY,
         .units = basin_case_dim(c, "xi", 2, 0),
         .hidden = {.name = "softmax", .beta = beta}},
    };
    static const char *const layers[] = {"v, h", "h, c", "c", "v"};
    static const char *const parameter[][2] = {
        {"vh.w", "W_vh"}, {"hc.w", "W_hc"}, {"bias.b", "b_c"}, {"memory.xi", "xi"}};
    for (int i = 0; i < 4; i++) {
        basin_ham_bind(ham, parameter[i][0], basin_case_parameter(c, parameter[i][1]));
        basin_ham_synapse(ham, &synapse[i]);
        basin_ham_connect(ham, synapse[i].name, layers[i]);
    }
}

static void add_vectors(basin_case *c, const basin_expr *value, const char *what) {
    for (int i = 0; i < LAYERS; i++)
        if (value[i])
            basin_case_output_add(
                c, basin_reshape(value[i], BASIN_SHAPE(basin_expr_shape(value[i]).dim[1])),
                "out.%s.%s", what, names[i]);
}

/* [steps + 1, 4]: the layers, and all connections in one. */
static basin_expr tree(const basin_expr *trace, int terms, int steps) {
    basin_expr row[4 * (size_t)(steps + 1)];
    for (int t = 0; t <= steps; t++) {
        const basin_expr *term = trace + t * terms;
        for (int i = 0; i < LAYERS; i++) row[4 * t + i] = term[i];
        basin_expr sum = term[LAYERS];
        for (int p = LAYERS + 1; p < terms; p++) sum = basin_add(sum, term[p]);
        row[4 * t + LAYERS] = sum;
    }
    return basin_reshape(basin_concat(row, 4 * (steps + 1), 0), BASIN_SHAPE(steps + 1, 4));
}

static void add_network_descent(basin_case *c, basin_ham *ham) {
    basin_expr x[LAYERS] = {0}, gradient[LAYERS] = {0}, end[LAYERS] = {0};
    basin_ham_spec spec = {.steps = basin_case_steps(c), .dt = basin_case_number(c, "dt")};
    int terms = 0;
    while (basin_ham_term_name(ham, terms)) terms++;
    for (int i = 0; i < LAYERS; i++) { /* a batch of one */
        char state[BASIN_CASE_WORD];
        snprintf(state, sizeof state, "x.%s", names[i]);
        x[i] = basin_expand_dims(basin_case_input_add(c, state, 1), 0, 1);
    }
    if (basin_graph_error(c->graph)) return;
    basin_expr trace[(size_t)(spec.steps + 1) * (size_t)terms];
    basin_ham_gradient(ham, gradient, x, false);
    basin_ham_descend(ham, end, x, &spec, trace);
    if (basin_graph_error(c->graph)) return;
    add_vectors(c, gradient, "dEdg");
    add_vectors(c, end, "x");
    basin_case_output_add(c, tree(trace, terms, spec.steps), "out.energy");
    basin_case_output_add(c, basin_scalar(c->graph, 0), "out.loss");
}

void basin_case_build_ham(basin_case *c) {
    basin_ham *ham = basin_ham_new(c->graph);
    if (!ham) {
        basin_graph_fail(c->graph, BASIN_NO_MEMORY, "out of memory for a network");
        return;
    }
    basin_expr beta = basin_scalar(c->graph, basin_case_number(c, "beta"));
    add_layers(c, ham, beta);
    add_synapses(c, ham, beta);
    if (!basin_graph_error(c->graph)) add_network_descent(c, ham);
    basin_ham_free(ham);
}
