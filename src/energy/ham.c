/* The network: its layers, its synapses, its energy E = sum <x, g> - L + sum E_synapse with g =
 * dL/dx (at x - bias), and the descent x <- x - (dt / tau) mask (x + dE_synapses/dg), as
 * expressions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "energy/network.h"
#include "expr/graph.h"

basin_ham *basin_ham_new(basin_graph *graph) {
    basin_ham *ham = graph ? calloc(1, sizeof *ham) : NULL;
    if (!ham) return NULL;
    ham->graph = graph;
    basin_params_begin(&ham->params, graph);
    return ham;
}

void basin_ham_free(basin_ham *ham) {
    if (!ham) return;
    for (size_t i = 0; i < ham->texts; i++) free(ham->text[i]);
    free(ham->text);
    free(ham->connection);
    free(ham->synapse);
    free(ham->bias);
    free(ham->layer);
    basin_params_free(&ham->params);
    free(ham);
}

const char *basin_ham_keep(basin_ham *ham, const char *text) {
    char *copy = NULL;
    if (basin_array_reserve((void **)&ham->text, &ham->text_capacity, ham->texts + 1,
                            sizeof *ham->text))
        copy = basin_string_copy(text);
    if (!copy) {
        basin_graph_fail(ham->graph, BASIN_NO_MEMORY, "out of memory for the name '%s'", text);
        return NULL;
    }
    return ham->text[ham->texts++] = copy;
}

bool basin_ham_keep_lagrangian(basin_ham *ham, basin_lagrangian *lagrangian) {
    if (lagrangian->name) lagrangian->name = basin_ham_keep(ham, lagrangian->name);
    return lagrangian->name || !basin_graph_error(ham->graph);
}

/* ---- parameters ---- */

basin_expr basin_ham_parameter(basin_ham *ham, const char *owner, const char *part,
                               basin_shape shape, basin_init init) {
    char name[256];
    int length = snprintf(name, sizeof name, "%s.%s", owner, part);
    if (length < 0 || (size_t)length >= sizeof name)
        return basin_graph_fail(ham->graph, BASIN_BAD_VALUE,
                                "the parameter name '%s.%s' is longer than 255 characters", owner,
                                part);
    for (size_t i = 0; i < ham->params.count; i++)
        if (strcmp(basin_expr_name(ham->params.param[i].state), name) == 0)
            return basin_state(ham->graph, name, shape);
    return basin_param_add(&ham->params, "", name, shape, init);
}

const basin_params *basin_ham_params(const basin_ham *ham) { return &ham->params; }

/* ---- layers ---- */

static int find_layer(const basin_ham *ham, const char *layer) {
    for (size_t i = 0; i < ham->layers; i++)
        if (strcmp(ham->layer[i].name, layer) == 0) return (int)i;
    return -1;
}

static bool name_is_valid(const char *name) {
    return name && *name && strcspn(name, ", ()\t\n") == strlen(name);
}

/* Whether the layer can be added; otherwise the graph has an error. */
static bool check_layer(basin_ham *ham, const basin_layer *layer) {
    char text[BASIN_SHAPE_TEXT];
    if (!name_is_valid(layer->name))
        basin_graph_fail(ham->graph, BASIN_BAD_VALUE,
                         "a layer named '%s'; wanted a name without spaces, commas and brackets",
                         layer->name ? layer->name : "");
    else if (find_layer(ham, layer->name) >= 0)
        basin_graph_fail(ham->graph, BASIN_BAD_VALUE, "there are two layers named '%s'",
                         layer->name);
    else if (layer->shape.rank >= BASIN_MAX_RANK || basin_shape_count(layer->shape) < 1)
        basin_graph_fail(ham->graph, BASIN_BAD_SHAPE,
                         "layer '%s' has shape %s; wanted at least one neuron and rank %d at most",
                         layer->name, basin_shape_print(text, layer->shape), BASIN_MAX_RANK - 1);
    else if (!(layer->tau >= 0) || isinf(layer->tau))
        basin_graph_fail(ham->graph, BASIN_BAD_VALUE,
                         "layer '%s' has time constant %g, wanted more than 0", layer->name,
                         layer->tau);
    else
        return true;
    return false;
}

int basin_ham_layer(basin_ham *ham, const basin_layer *layer) {
    if (!check_layer(ham, layer)) return -1;
    if (!basin_array_reserve((void **)&ham->layer, &ham->layer_capacity, ham->layers + 1,
                             sizeof *ham->layer) ||
        !basin_array_reserve((void **)&ham->bias, &ham->bias_capacity, ham->layers + 1,
                             sizeof *ham->bias)) {
        basin_graph_fail(ham->graph, BASIN_NO_MEMORY, "out of memory for layer '%s'", layer->name);
        return -1;
    }
    basin_layer copy = *layer;
    copy.name = basin_ham_keep(ham, layer->name);
    if (copy.tau == 0) copy.tau = 1;
    if (!copy.name || !basin_ham_keep_lagrangian(ham, &copy.lagrangian)) return -1;
    basin_expr bias = NULL;
    if (layer->bias) {
        bias = basin_ham_parameter(ham, copy.name, "bias", copy.shape,
                                   (basin_init){BASIN_INIT_CONSTANT, 0});
        if (!bias) return -1;
    }
    /* A Lagrangian that does not fit the shape is an error now, not at the first use. */
    basin_expr zero = basin_fill(ham->graph, basin_layer_shape(&copy, 1), 0);
    if (!basin_lagrangian_value(&copy.lagrangian, zero, 1)) return -1;
    ham->bias[ham->layers] = bias;
    ham->layer[ham->layers] = copy;
    return (int)ham->layers++;
}

basin_shape basin_layer_shape(const basin_layer *layer, int64_t batch) {
    basin_shape shape = {.rank = layer->shape.rank + 1, .dim = {batch}};
    for (int i = 0; i < layer->shape.rank; i++) shape.dim[i + 1] = layer->shape.dim[i];
    return shape;
}

basin_expr basin_ham_centred(const basin_ham *ham, int layer, basin_expr x) {
    return ham->bias[layer] ? basin_sub(x, ham->bias[layer]) : x;
}

/* Whether x are states of the layer. */
static bool check_states(const basin_ham *ham, int layer, basin_expr x) {
    char a[BASIN_SHAPE_TEXT], b[BASIN_SHAPE_TEXT];
    if (!x) return false;
    basin_shape found = basin_expr_shape(x);
    basin_shape wanted = basin_layer_shape(&ham->layer[layer], found.rank ? found.dim[0] : 1);
    if (basin_shape_equal(found, wanted)) return true;
    basin_graph_fail(ham->graph, BASIN_BAD_SHAPE,
                     "states of shape %s for layer '%s', wanted a batch axis and %s",
                     basin_shape_print(a, found), ham->layer[layer].name,
                     basin_shape_print(b, ham->layer[layer].shape));
    return false;
}

basin_expr basin_ham_activation(basin_ham *ham, int layer, basin_expr x) {
    if (!check_states(ham, layer, x)) return NULL;
    return basin_lagrangian_activation(&ham->layer[layer].lagrangian,
                                       basin_ham_centred(ham, layer, x));
}

basin_expr basin_ham_layer_energy(const basin_ham *ham, int layer, basin_expr x) {
    if (!check_states(ham, layer, x)) return NULL;
    return basin_lagrangian_energy(&ham->layer[layer].lagrangian, basin_ham_centred(ham, layer, x),
                                   1);
}

/* ---- synapses and connections ---- */

static int find_synapse(const basin_ham *ham, const char *name) {
    for (size_t i = 0; i < ham->synapses; i++)
        if (strcmp(ham->synapse[i].name, name) == 0) return (int)i;
    return -1;
}

int basin_ham_synapse(basin_ham *ham, const basin_synapse *synapse) {
    const char *name = synapse->name;
    basin_synapse copy = *synapse;
    if (!name || !*name || !synapse->energy)
        basin_graph_fail(ham->graph, BASIN_BAD_VALUE,
                         "synapse '%s' wants a name and an energy function", name ? name : "");
    else if (find_synapse(ham, name) >= 0)
        basin_graph_fail(ham->graph, BASIN_BAD_VALUE, "there are two synapses named '%s'", name);
    else if (!basin_array_reserve((void **)&ham->synapse, &ham->synapse_capacity, ham->synapses + 1,
                                  sizeof *ham->synapse))
        basin_graph_fail(ham->graph, BASIN_NO_MEMORY, "out of memory for synapse '%s'", name);
    else if ((copy.name = basin_ham_keep(ham, name)) &&
             basin_ham_keep_lagrangian(ham, &copy.hidden)) {
        ham->synapse[ham->synapses] = copy;
        return (int)ham->synapses++;
    }
    return -1;
}

int basin_ham_terms(const basin_ham *ham) { return (int)(ham->layers + ham->connections); }

const char *basin_ham_term_name(const basin_ham *ham, int term) {
    if (term < 0 || term >= basin_ham_terms(ham)) return NULL;
    if ((size_t)term < ham->layers) return ham->layer[term].name;
    return ham->connection[(size_t)term - ham->layers].name;
}

/* Reads "v, h" into the connection's layers. */
static bool read_ends(basin_ham *ham, basin_connection *connection, const char *list) {
    char name[128];
    for (const char *at = list;;) {
        at += strspn(at, ", \t\n");
        if (!*at) break;
        size_t length = strcspn(at, ", \t\n");
        int shown = (int)(length < sizeof name ? length : sizeof name - 1);
        snprintf(name, sizeof name, "%.*s", shown, at);
        int layer = find_layer(ham, name);
        if (layer < 0 || connection->count == BASIN_MAX_ENDS) {
            basin_graph_fail(ham->graph, BASIN_BAD_VALUE,
                             layer < 0 ? "connection '%s': there is no layer '%s'"
                                       : "connection '%s': '%s' is one layer more than 8",
                             list, name);
            return false;
        }
        connection->layer[connection->count++] = layer;
        at += length;
    }
    if (connection->count) return true;
    basin_graph_fail(ham->graph, BASIN_BAD_VALUE, "a connection of no layer");
    return false;
}

/* "vh(v, h)" */
static const char *name_connection(basin_ham *ham, const basin_connection *connection) {
    char text[1200];
    const char *between = "(";
    size_t at =
        (size_t)snprintf(text, sizeof text, "%.127s", ham->synapse[connection->synapse].name);
    for (int i = 0; i < connection->count; i++, between = ", ")
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.127s", between,
                               ham->layer[connection->layer[i]].name);
    snprintf(text + at, sizeof text - at, ")");
    return basin_ham_keep(ham, text);
}

/* Builds the energy once on zeros: shapes that do not fit are an error now, and the synapse's
 * parameters are known from here on. */
static bool try_connection(basin_ham *ham, int connection) {
    basin_expr *zero = calloc(ham->layers, sizeof *zero);
    if (!zero) {
        basin_graph_fail(ham->graph, BASIN_NO_MEMORY, "out of memory for a connection");
        return false;
    }
    for (size_t i = 0; i < ham->layers; i++)
        zero[i] = basin_fill(ham->graph, basin_layer_shape(&ham->layer[i], 1), 0);
    bool fits = basin_ham_connection_energy(ham, connection, zero) != NULL;
    free(zero);
    return fits;
}

int basin_ham_connect(basin_ham *ham, const char *synapse, const char *layers) {
    basin_connection connection = {.synapse = find_synapse(ham, synapse)};
    if (connection.synapse < 0) {
        basin_graph_fail(ham->graph, BASIN_BAD_VALUE, "there is no synapse '%s'", synapse);
        return -1;
    }
    if (!read_ends(ham, &connection, layers)) return -1;
    connection.name = name_connection(ham, &connection);
    if (!connection.name) return -1;
    if (!basin_array_reserve((void **)&ham->connection, &ham->connection_capacity,
                             ham->connections + 1, sizeof *ham->connection)) {
        basin_graph_fail(ham->graph, BASIN_NO_MEMORY, "out of memory for a connection");
        return -1;
    }
    ham->connection[ham->connections] = connection;
    if (!try_connection(ham, (int)ham->connections)) return -1;
    return (int)ham->connections++;
}

/* ---- energies ---- */

void basin_ham_inputs(basin_ham *ham, basin_expr *x, int64_t batch) {
    char name[256];
    for (size_t i = 0; i < ham->layers; i++) {
        snprintf(name, sizeof name, "x.%.200s[%lld]", ham->layer[i].name, (long long)batch);
        x[i] = basin_input(ham->graph, name, basin_layer_shape(&ham->layer[i], batch));
    }
}

void basin_ham_activations(basin_ham *ham, basin_expr *g, const basin_expr *x) {
    for (size_t i = 0; i < ham->layers; i++) g[i] = basin_ham_activation(ham, (int)i, x[i]);
}

basin_expr basin_ham_connection_energy(basin_ham *ham, int connection, const basin_expr *g) {
    char text[BASIN_SHAPE_TEXT];
    const basin_connection *c = &ham->connection[connection];
    const basin_synapse *synapse = &ham->synapse[c->synapse];
    basin_expr end[BASIN_MAX_ENDS];
    for (int i = 0; i < c->count; i++) end[i] = g[c->layer[i]];
    if (!end[0]) return NULL;
    int64_t batch = basin_expr_shape(end[0]).dim[0];
    basin_expr energy = synapse->energy(ham, synapse, end, c->count);
    if (!energy) {
        basin_graph_fail(ham->graph, BASIN_BAD_VALUE, "%s: the synapse gave no energy", c->name);
        return NULL;
    }
    basin_shape shape = basin_expr_shape(energy);
    if (shape.rank < 1 || shape.dim[0] != batch)
        return basin_graph_fail(ham->graph, BASIN_BAD_SHAPE,
                                "%s: an energy of shape %s, wanted [%lld, ..], a number per sample",
                                c->name, basin_shape_print(text, shape), (long long)batch);
    return basin_sum(energy, 1, shape.rank - 1);
}

void basin_ham_energies(basin_ham *ham, basin_expr *energy, const basin_expr *x) {
    basin_expr *g = calloc(ham->layers + 1, sizeof *g);
    if (!g) basin_graph_fail(ham->graph, BASIN_NO_MEMORY, "out of memory for the energies");
    if (g) basin_ham_activations(ham, g, x);
    for (size_t i = 0; i < ham->layers; i++)
        energy[i] = g ? basin_ham_layer_energy(ham, (int)i, x[i]) : NULL;
    for (size_t i = 0; i < ham->connections; i++)
        energy[ham->layers + i] = g ? basin_ham_connection_energy(ham, (int)i, g) : NULL;
    free(g);
}

/* The sum of count terms, or zeros [batch] of none. */
static basin_expr sum_terms(const basin_expr *term, size_t count, basin_expr x) {
    if (!x) return NULL;
    basin_expr sum =
        count ? term[0]
              : basin_fill(basin_expr_graph(x), BASIN_SHAPE(basin_expr_shape(x).dim[0]), 0);
    for (size_t i = 1; i < count; i++) sum = basin_add(sum, term[i]);
    return sum;
}

basin_expr basin_ham_energy(basin_ham *ham, const basin_expr *x, bool synapses_only) {
    size_t terms = ham->layers + ham->connections, first = synapses_only ? ham->layers : 0;
    BASIN_FREE_AT_EXIT basin_expr *energy = basin_zeros_new(terms + 1, sizeof *energy);
    if (!ham->layers)
        return basin_graph_fail(ham->graph, BASIN_BAD_VALUE,
                                "a network without layers has no energy");
    if (!energy)
        return basin_graph_fail(ham->graph, BASIN_NO_MEMORY, "out of memory for the energies");
    basin_ham_energies(ham, energy, x);
    return sum_terms(energy + first, terms - first, x[0]);
}

/* ---- the gradient ---- */

/* Activations to differentiate by, each on its own even where two are equal expressions (both start
 * from zeros, say). */
static void activation_variables(basin_ham *ham, basin_expr *g, const basin_expr *x) {
    basin_ham_activations(ham, g, x);
    for (size_t i = 0; i < ham->layers; i++) g[i] = basin_variable(g[i]);
}

void basin_ham_gradient(basin_ham *ham, basin_expr *dEdg, const basin_expr *x, bool synapses_only) {
    size_t layers = ham->layers, connections = ham->connections;
    BASIN_FREE_AT_EXIT basin_expr *g = basin_zeros_new(layers + connections + 1, sizeof *g);
    BASIN_FREE_AT_EXIT bool *want = basin_zeros_new(layers + 1, sizeof *want);
    for (size_t i = 0; i < layers; i++) dEdg[i] = NULL;
    if (!layers) return;
    if (!g || !want) {
        basin_graph_fail(ham->graph, BASIN_NO_MEMORY, "out of memory for a network's gradient");
        return;
    }
    basin_expr *term = g + layers;
    activation_variables(ham, g, x);
    for (size_t i = 0; i < connections; i++) term[i] = basin_ham_connection_energy(ham, (int)i, g);
    for (size_t i = 0; i < layers; i++) want[i] = true;
    basin_expr energy = sum_terms(term, connections, x[0]);
    basin_expr one = basin_fill(ham->graph, basin_expr_shape(energy), 1);
    basin_partial(dEdg, &energy, &one, 1, g, want, (int)layers);
    for (size_t i = 0; i < layers && !synapses_only; i++)
        dEdg[i] = basin_add(basin_ham_centred(ham, (int)i, x[i]), dEdg[i]);
}

/* ---- the descent ---- */

static bool is_clamped(basin_expr mask) {
    return mask && mask == basin_const(basin_expr_graph(mask), 0);
}

void basin_ham_step_by(basin_ham *ham, basin_expr *next, const basin_expr *x,
                       const basin_ham_spec *spec, basin_expr dt) {
    BASIN_FREE_AT_EXIT basin_expr *dEdg = basin_zeros_new(ham->layers + 1, sizeof *dEdg);
    if (dEdg)
        basin_ham_gradient(ham, dEdg, x, spec->synapses_only);
    else
        basin_graph_fail(ham->graph, BASIN_NO_MEMORY, "out of memory for a network's step");
    for (size_t i = 0; i < ham->layers; i++) {
        basin_expr mask = spec->mask ? spec->mask[i] : NULL, move = dEdg ? dEdg[i] : NULL;
        basin_expr size = basin_per_sample(dt, basin_expr_shape(x[i]));
        move = basin_mul(basin_scale(size, 1 / ham->layer[i].tau), move);
        if (mask && move) move = basin_mul(basin_broadcast(mask, basin_expr_shape(x[i])), move);
        next[i] = is_clamped(mask) ? x[i] : basin_sub(x[i], move);
    }
}

static void record(basin_ham *ham, basin_expr *trace, const basin_expr *x) {
    basin_ham_energies(ham, trace, x);
    for (int i = 0; i < basin_ham_terms(ham); i++) trace[i] = basin_keep(trace[i]);
}

void basin_ham_descend(basin_ham *ham, basin_expr *end, const basin_expr *x,
                       const basin_ham_spec *spec, basin_expr *trace) {
    int terms = basin_ham_terms(ham);
    basin_expr dt = basin_const(ham->graph, spec->dt);
    for (size_t i = 0; i < ham->layers; i++) end[i] = x[i];
    for (int t = 0; t < spec->steps; t++) {
        if (spec->recompute) basin_recompute_begin(ham->graph);
        if (trace) record(ham, trace + t * terms, end);
        basin_ham_step_by(ham, end, end, spec, dt);
        for (size_t i = 0; i < ham->layers; i++) end[i] = basin_keep(end[i]);
        if (spec->recompute) basin_recompute_end(ham->graph);
    }
    if (trace) record(ham, trace + spec->steps * terms, end);
}
