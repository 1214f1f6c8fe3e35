/* Golden case "ham": a hierarchical associative memory of three layers, with linear synapses, a
 * bias and a dense associative memory; dE/dg, the descent and the energy tree of every step. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "basin/ham.h"
#include "verify/verify.h"

enum { LAYERS = 3 };

static const char *const names[LAYERS] = {"v", "h", "c"};

/* The time constants: {"v": 1.0, ...} in the metadata. */
static void read_times(basin_case *c, double tau[LAYERS]) {
    const char *text = basin_bundle_meta(c->bundle, "tau");
    cJSON *tree = text ? cJSON_Parse(text) : NULL;
    for (int i = 0; i < LAYERS; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(tree, names[i]);
        if (!cJSON_IsNumber(item))
            basin_graph_fail(c->graph, BASIN_BAD_FILE, "%s: metadata 'tau' has no number '%s'",
                             basin_bundle_path(c->bundle), names[i]);
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
         .gamma = basin_const(c->graph, basin_case_number(c, "gamma")),
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
    for (int i = 0; i < 4; i++) {
        basin_ham_synapse(ham, &synapse[i]);
        basin_ham_connect(ham, synapse[i].name, layers[i]);
    }
    basin_case_state_add(c, "vh.w", "W_vh");
    basin_case_state_add(c, "hc.w", "W_hc");
    basin_case_state_add(c, "bias.b", "b_c");
    basin_case_state_add(c, "memory.xi", "xi");
}

/* The network wants a batch; the file has one sample without that axis. */
static void write_states(basin_case *c, const basin_expr *x) {
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
static basin_expr energies(const basin_expr *trace, int terms, int steps) {
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

static void add_descent(basin_case *c, basin_ham *ham) {
    basin_expr x[LAYERS] = {0}, gradient[LAYERS] = {0}, end[LAYERS] = {0};
    basin_ham_spec spec = {.steps = basin_case_steps(c), .dt = basin_case_number(c, "dt")};
    int terms = basin_ham_terms(ham);
    basin_ham_inputs(ham, x, 1);
    write_states(c, x);
    if (basin_graph_error(c->graph)) return;
    basin_expr trace[(size_t)(spec.steps + 1) * (size_t)terms];
    basin_ham_gradient(ham, gradient, x, false);
    basin_ham_descend(ham, end, x, &spec, trace);
    if (basin_graph_error(c->graph)) return;
    add_vectors(c, gradient, "dEdg");
    add_vectors(c, end, "x");
    basin_case_output_add(c, energies(trace, terms, spec.steps), "out.energy");
    basin_case_output_add(c, basin_const(c->graph, 0), "out.loss");
}

void basin_case_build_ham(basin_case *c) {
    basin_ham *ham = basin_ham_new(c->graph);
    if (!ham) {
        basin_graph_fail(c->graph, BASIN_NO_MEMORY, "out of memory for a network");
        return;
    }
    basin_expr beta = basin_const(c->graph, basin_case_number(c, "beta"));
    add_layers(c, ham, beta);
    add_synapses(c, ham, beta);
    if (!basin_graph_error(c->graph)) add_descent(c, ham);
    basin_ham_free(ham);
}
