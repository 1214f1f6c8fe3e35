/* Golden cases of the block, the models, the Lagrangians and a network. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "basin/ham.h"
#include "basin/tasks/networks.h"
#include "program/verify/verify.h"
#include "tasks/pictures/net.h"

/* ---- block_*: the paper's block, forces, energies, gradients through the descent ---- */

/* All pairs, or all but a token with itself, where `allowed` [N, N] says just that; else a list. */
static void read_pattern(basin_case *c, int64_t n, bool self) {
    basin_tensor allowed = basin_case_integers(c, "allowed", 2);
    int32_t *edge = basin_array_new((size_t)basin_shape_count(allowed.shape), 2 * sizeof *edge);
    if (!allowed.data || !edge || allowed.shape.dim[0] != n || allowed.shape.dim[1] != n) {
        basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "in.allowed; expected [%lld, %lld]",
                         (long long)n, (long long)n);
    } else {
        const int32_t *may = allowed.data;
        int64_t count = 0;
        for (int64_t i = 0; i < n * n; i++)
            if (may[i]) {
                edge[2 * count] = (int32_t)(i / n);
                edge[2 * count++ + 1] = (int32_t)(i % n);
            }
        if (count == (self ? n * n : n * n - n))
            c->pattern = self ? BASIN_ALL_PAIRS : BASIN_OTHER_PAIRS;
        else
            basin_case_pairs(c, n, edge, count, 0);
    }
    free(edge);
    basin_tensor_free(&allowed);
}

/* The force of each term on its own. */
static void add_forces(basin_case *c, const basin_energy *energy, basin_expr g) {
    for (int p = 0; p < energy->terms; p++) {
        bool attention = energy->term[p].name[0] == 'a';
        basin_expr force = basin_neg(basin_grad(basin_energy_term(energy, g, p), g));
        basin_case_output_add(c, force, "out.force_%s0", attention ? "att" : "hn");
    }
}

static void add_descent(basin_case *c, const basin_block *block, basin_expr x, basin_expr target,
                        basin_expr facts) {
    basin_block_bound bound = {.block = block, .pattern = &c->pattern, .facts = facts};
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
    if (facts) config.facts = basin_expr_shape(facts).dim[1];
    if (!x || !target) return;
    read_pattern(c, basin_expr_shape(x).dim[0], basin_case_flag(c, "self_attention"));
    if (basin_graph_error(c->graph)) return;
    if (basin_block_declare(&block, &c->params, "", &config)) return;
    basin_lagrangian norm = {.name = "layernorm",
                             .gamma = block.gamma,
                             .delta = block.delta,
                             .epsilon = block.config.epsilon};
    basin_case_output_add(c, basin_lagrangian_value(&norm, x, 0), "out.lagrangian0");
    add_descent(c, &block, x, target, facts);
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
    basin_case_edges(c, config.nodes, "edges", BASIN_PAIRS_BOTH_WAYS);
    basin_expr features = basin_case_input_add(c, "features", 2);
    basin_expr label = basin_case_input_add(c, "label", 1);
    double omega = basin_case_number(c, "omega"); /* the weight of an anomalous node */
    basin_expr weight = basin_mul(basin_case_input_add(c, "train", 1),
                                  basin_offset(basin_scale(label, omega - 1), 1));
    if (basin_graph_error(c->graph) || basin_anomaly_declare(&model, &c->params, &config)) return;
    basin_expr logits = basin_anomaly_logits(
        &model, &(basin_anomaly_inputs){.features = features, .neighbours = &c->pattern});
    basin_expr loss = basin_weighted_cross_entropy(logits, label, weight);
    basin_case_output_add(c, basin_sigmoid(logits), "out.probability");
    basin_case_loss(c, loss, NULL);
}

/* ---- graph, graph_mixed: classification of a few graphs in one batch without padding: one after
 * the other, each graph's CLS token before its nodes ---- */

enum { MAX_GRAPHS = 10000 };

typedef struct layout {
    int graphs;
    int64_t nodes, tokens, edges; /* edges: those of the file, and one from each CLS to each node */
    int64_t *first;               /* [graphs + 1] CLS token of each graph */
    int32_t *edge;                /* [edges, 2] */
    int64_t wide;                 /* P, numbers per edge */
} layout;

static const char *name_of(char name[BASIN_CASE_WORD], int graph, const char *what) {
    snprintf(name, BASIN_CASE_WORD, "graph%d.%s", graph, what);
    return name;
}

static bool measure(basin_case *c, layout *l) {
    char name[BASIN_CASE_WORD];
    double graphs = basin_case_number(c, "graphs");
    if (!(graphs >= 1 && graphs <= MAX_GRAPHS))
        return basin_graph_fail(c->graph, BASIN_BAD_VALUE, "%g graphs; expected 1 to %d", graphs,
                                MAX_GRAPHS);
    l->graphs = (int)graphs;
    l->wide = basin_case_dim(c, "adj_w", 2, 0);
    l->first = calloc((size_t)l->graphs + 1, sizeof *l->first);
    if (!l->first) return false;
    for (int i = 0; i < l->graphs; i++) {
        int64_t nodes = basin_case_dim(c, name_of(name, i, "features"), 2, 0);
        l->first[i + 1] = l->first[i] + nodes + 1;
        l->nodes += nodes;
        l->edges += nodes + basin_case_dim(c, name_of(name, i, "edges"), 2, 0);
    }
    l->tokens = l->first[l->graphs];
    l->edge = basin_array_new((size_t)l->edges, 2 * sizeof *l->edge);
    return l->edge && !basin_graph_error(c->graph);
}

/* The edges of all graphs, numbered by token, CLS edges of a graph before its own. */
static bool list_edges(basin_case *c, layout *l) {
    char name[BASIN_CASE_WORD];
    int32_t *at = l->edge;
    bool good = true;
    for (int i = 0; i < l->graphs && good; i++) {
        basin_tensor edges = basin_case_integers(c, name_of(name, i, "edges"), 2);
        int64_t first = l->first[i], nodes = l->first[i + 1] - first - 1;
        good = edges.data && edges.shape.dim[1] == 2;
        for (int64_t n = 1; n <= nodes && good; n++, at += 2)
            at[0] = (int32_t)first, at[1] = (int32_t)(first + n);
        const int32_t *end = edges.data;
        for (int64_t e = 0; good && e < 2 * edges.shape.dim[0]; e++) {
            good = end[e] >= 0 && end[e] < nodes;
            *at++ = good ? (int32_t)(first + 1 + end[e]) : 0;
        }
        if (!good)
            basin_graph_fail(c->graph, BASIN_BAD_VALUE,
                             "in.%s; expected [edges, 2] of nodes 0 to %lld", name,
                             (long long)nodes - 1);
        basin_tensor_free(&edges);
    }
    return good;
}

/* The rows of every graph's tensor `what`, one graph after another, for the input. */
static void write_stacked(basin_case *c, const layout *l, basin_expr input, const char *what) {
    char name[BASIN_CASE_WORD];
    basin_tensor all;
    basin_error error;
    if (!input || basin_tensor_new(&all, BASIN_F64, basin_expr_shape(input), &error)) return;
    double *at = all.data;
    int64_t left = basin_shape_count(all.shape), wide = all.shape.dim[1];
    for (int i = 0; i < l->graphs; i++) {
        const basin_tensor *one = basin_case_tensor(c, name_of(name, i, what), 2);
        if (!one || one->shape.dim[1] != wide || basin_shape_count(one->shape) > left) {
            basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "in.%s; expected %lld columns", name,
                             (long long)wide);
            break;
        }
        basin_tensor view = basin_tensor_borrow(at, BASIN_F64, one->shape);
        basin_tensor_convert(&view, one, &error);
        at += basin_shape_count(one->shape);
        left -= basin_shape_count(one->shape);
    }
    basin_case_write(c, input, &all);
}

/* Each edge's numbers at both of its pairs; 1 in every column at pairs with a CLS. */
static void write_edge_features(basin_case *c, const layout *l, basin_expr input) {
    char name[BASIN_CASE_WORD];
    basin_tensor all;
    basin_error error;
    if (!input || basin_tensor_new(&all, BASIN_F64, basin_expr_shape(input), &error)) return;
    double *to = all.data;
    const int32_t *edge = l->edge;
    for (int i = 0; i < l->graphs; i++) {
        const basin_tensor *own = basin_case_tensor(c, name_of(name, i, "edge_features"), 2);
        int64_t nodes = l->first[i + 1] - l->first[i] - 1;
        int64_t edges = basin_case_dim(c, name_of(name, i, "edges"), 2, 0);
        if (!own || own->shape.dim[0] != edges || own->shape.dim[1] != l->wide) {
            basin_graph_fail(c->graph, BASIN_BAD_SHAPE,
                             "in.graph%d.edge_features; expected [%lld, %lld]", i, (long long)edges,
                             (long long)l->wide);
            break;
        }
        for (int64_t e = -nodes; e < edges; e++, edge += 2)
            for (int64_t p = 0; p < l->wide; p++) {
                double value = e < 0 ? 1 : basin_tensor_at(own, e * l->wide + p);
                to[basin_pairs_find(&c->pairs, edge[0], edge[1]) * l->wide + p] = value;
                to[basin_pairs_find(&c->pairs, edge[1], edge[0]) * l->wide + p] = value;
            }
    }
    basin_case_write(c, input, &all);
}

static void write_indices(basin_case *c, const layout *l, const basin_graph_net_batch *batch) {
    basin_expr input[4] = {batch->source, batch->before, batch->after, batch->first};
    basin_tensor index[4] = {0};
    bool good = true;
    for (int k = 0; k < 4; k++)
        good = good && !basin_tensor_new(&index[k], BASIN_I32, basin_expr_shape(input[k]), NULL);
    int32_t *source = index[0].data, *before = index[1].data, *after = index[2].data;
    for (int i = 0, node = 0; i < l->graphs && good; i++) {
        ((int32_t *)index[3].data)[i] = (int32_t)l->first[i];
        for (int64_t t = l->first[i]; t < l->first[i + 1]; t++) {
            source[t] = t == l->first[i] ? -1 : node++;
            before[t] = t == l->first[i] ? -1 : (int32_t)t - 1;
            after[t] = t + 1 == l->first[i + 1] ? -1 : (int32_t)t + 1;
        }
    }
    for (int k = 0; k < 4; k++) basin_case_write(c, input[k], &index[k]);
}

/* The label's share 1 - smoothing, and smoothing spread over all classes: [graphs, C]. */
static basin_expr target(basin_case *c, const layout *l, int64_t classes) {
    double smoothing = basin_case_number(c, "smoothing");
    basin_tensor label = basin_case_integers(c, "label", 1), all = {0};
    basin_expr input = basin_input(c->graph, "target", BASIN_SHAPE(l->graphs, classes));
    bool good = input && label.data && label.shape.dim[0] == l->graphs &&
                !basin_tensor_new(&all, BASIN_F64, basin_expr_shape(input), NULL);
    for (int64_t i = 0; i < l->graphs * classes && good; i++) {
        bool hit = ((int32_t *)label.data)[i / classes] == i % classes;
        ((double *)all.data)[i] = smoothing / (double)classes + (hit ? 1 - smoothing : 0);
    }
    if (!good) basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "in.label; expected [%d]", l->graphs);
    basin_case_write(c, input, &all);
    basin_tensor_free(&label);
    return input;
}

static void add_model(basin_case *c, const layout *l) {
    basin_graph_net model;
    basin_graph_net_config config = {.features = basin_case_dim(c, "enc_w", 2, 0),
                                     .edge_features = l->wide,
                                     .positions = basin_case_dim(c, "pos_w", 2, 0),
                                     .outputs = basin_case_dim(c, "dec_w", 2, 1),
                                     .blocks = (int)basin_case_number(c, "blocks"),
                                     .block = basin_case_block(c, "block0."),
                                     .descent = basin_case_descent(c)};
    config.block.mix = basin_case_flag(c, "mixed");
    basin_case_pairs(c, l->tokens, l->edge, l->edges, BASIN_PAIRS_BOTH_WAYS);
    if (basin_graph_error(c->graph) || basin_graph_net_declare(&model, &c->params, &config)) return;
    basin_graph_net_batch batch;
    basin_graph_net_inputs(&batch, &model, c->graph, l->graphs, l->nodes, c->pairs.pairs);
    if (basin_graph_error(c->graph)) return;
    c->pattern = batch.pattern;
    write_stacked(c, l, batch.nodes, "features");
    write_stacked(c, l, batch.positions, "pe");
    write_edge_features(c, l, batch.edge_features);
    write_indices(c, l, &batch);
    basin_expr logits = basin_graph_net_forward(&model, &batch);
    basin_expr loss = basin_cross_entropy(logits, target(c, l, config.outputs));
    basin_case_output_add(c, logits, "out.logits");
    basin_case_loss(c, loss, NULL);
}

void basin_case_build_graphs(basin_case *c) {
    layout l = {0};
    if (measure(c, &l) && list_edges(c, &l))
        add_model(c, &l);
    else
        basin_graph_fail(c->graph, BASIN_NO_MEMORY, "out of memory");
    BASIN_FREE(l.first, l.edge);
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
static void read_times(basin_case *c, double tau[LAYERS]) {
    const char *text = basin_bundle_meta(c->bundle, "tau");
    cJSON *tree = text ? cJSON_Parse(text) : NULL;
    for (int i = 0; i < LAYERS; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(tree, names[i]);
        if (!cJSON_IsNumber(item))
            basin_graph_fail(c->graph, BASIN_BAD_FILE, "metadata 'tau' has no number '%s'",
                             names[i]);
        tau[i] = cJSON_IsNumber(item) ? item->valuedouble : 1;
    }
    cJSON_Delete(tree);
}

static void add_layers(basin_case *c, basin_ham *ham, basin_expr beta) {
    double tau[LAYERS];
    char state[BASIN_CASE_WORD];
    read_times(c, tau);
    basin_lagrangian lagrangian[LAYERS] = {
        {.name = "layernorm",
         .gamma = basin_scalar(c->graph, basin_case_number(c, "gamma")),
         .delta = basin_case_input_add(c, "delta", 1),
         .epsilon = basin_case_number(c, "eps")},
        {.name = "softmax", .beta = beta},
        {.name = "tanh", .beta = beta},
    };
    for (int i = 0; i < LAYERS; i++) {
        snprintf(state, sizeof state, "x.%s", names[i]);
        basin_layer layer = {.name = names[i],
                             .shape = BASIN_SHAPE(basin_case_dim(c, state, 1, 0)),
                             .lagrangian = lagrangian[i],
                             .tau = tau[i]};
        basin_ham_layer(ham, &layer);
    }
}

static void add_synapses(basin_case *c, basin_ham *ham, basin_expr beta) {
    const basin_synapse synapse[] = {
        {.name = "vh", .energy = basin_synapse_linear},
        {.name = "hc", .energy = basin_synapse_linear},
        {.name = "bias", .energy = basin_synapse_bias},
        {.name = "memory",
         .energy = basin_synapse_memory,
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

/* The network expects a batch; the file has one sample without that axis. */
static void write_network(basin_case *c, const basin_expr *x) {
    char state[BASIN_CASE_WORD];
    for (int i = 0; i < LAYERS; i++) {
        snprintf(state, sizeof state, "x.%s", names[i]);
        const basin_tensor *tensor = basin_case_tensor(c, state, 1);
        if (!tensor || !x[i]) return;
        basin_tensor view =
            basin_tensor_borrow(tensor->data, tensor->dtype, basin_expr_shape(x[i]));
        basin_case_write(c, x[i], &view);
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
    basin_ham_inputs(ham, x, 1);
    write_network(c, x);
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
