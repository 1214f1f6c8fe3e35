/* The network: its parts, its energy E = sum <x, g> - L + sum E_synapse, and the descent
 * x <- x - (dt / tau) mask (x + dE_synapses/dg), as expressions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
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

int basin_ham_synapses(const basin_ham *ham) { return (int)ham->synapses; }
int basin_ham_connections(const basin_ham *ham) { return (int)ham->connections; }
int basin_ham_parts(const basin_ham *ham) { return (int)(ham->layers + ham->connections); }

const char *basin_ham_part_name(const basin_ham *ham, int part) {
    if (part < 0 || part >= basin_ham_parts(ham)) return NULL;
    if ((size_t)part < ham->layers) return ham->layer[part].name;
    return ham->connection[(size_t)part - ham->layers].name;
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
        int layer = basin_ham_find(ham, name);
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

/* The sum of count parts, or zeros [batch] of none. */
static basin_expr sum_parts(const basin_expr *part, size_t count, basin_expr x) {
    if (!x) return NULL;
    basin_expr sum =
        count ? part[0]
              : basin_fill(basin_expr_graph(x), BASIN_SHAPE(basin_expr_shape(x).dim[0]), 0);
    for (size_t i = 1; i < count; i++) sum = basin_add(sum, part[i]);
    return sum;
}

static basin_expr total_energy(basin_ham *ham, const basin_expr *x, size_t first) {
    size_t parts = ham->layers + ham->connections;
    basin_expr *energy = calloc(parts + 1, sizeof *energy), sum = NULL;
    if (energy && ham->layers) {
        basin_ham_energies(ham, energy, x);
        sum = sum_parts(energy + first, parts - first, x[0]);
    } else
        basin_graph_fail(ham->graph, energy ? BASIN_BAD_VALUE : BASIN_NO_MEMORY,
                         energy ? "a network without layers has no energy"
                                : "out of memory for the energies");
    free(energy);
    return sum;
}

basin_expr basin_ham_energy(basin_ham *ham, const basin_expr *x) { return total_energy(ham, x, 0); }
basin_expr basin_ham_synapse_energy(basin_ham *ham, const basin_expr *x) {
    return total_energy(ham, x, ham->layers);
}

/* ---- the gradient ---- */

/* Activations to differentiate by, each on its own even where two are equal expressions (both start
 * from zeros, say). */
static void activation_variables(basin_ham *ham, basin_expr *g, const basin_expr *x) {
    basin_ham_activations(ham, g, x);
    for (size_t i = 0; i < ham->layers; i++) g[i] = basin_variable(g[i]);
}

/* g [layers], part [connections] and want [layers] are room to work in. */
static void gradient(basin_ham *ham, basin_expr *dEdg, const basin_expr *x, bool synapses_only,
                     basin_expr *g, basin_expr *part, bool *want) {
    activation_variables(ham, g, x);
    for (size_t i = 0; i < ham->connections; i++)
        part[i] = basin_ham_connection_energy(ham, (int)i, g);
    for (size_t i = 0; i < ham->layers; i++) want[i] = true;
    basin_expr energy = sum_parts(part, ham->connections, x[0]);
    basin_expr one = basin_fill(ham->graph, basin_expr_shape(energy), 1);
    basin_partial(dEdg, &energy, &one, 1, g, want, (int)ham->layers);
    for (size_t i = 0; i < ham->layers && !synapses_only; i++)
        dEdg[i] = basin_add(basin_ham_centred(ham, (int)i, x[i]), dEdg[i]);
}

void basin_ham_gradient(basin_ham *ham, basin_expr *dEdg, const basin_expr *x,
                        const basin_ham_spec *spec) {
    basin_expr *g = calloc(ham->layers + 1, sizeof *g);
    basin_expr *part = calloc(ham->connections + 1, sizeof *part);
    bool *want = calloc(ham->layers + 1, sizeof *want);
    if (g && part && want && ham->layers)
        gradient(ham, dEdg, x, spec->synapses_only, g, part, want);
    else {
        for (size_t i = 0; i < ham->layers; i++) dEdg[i] = NULL;
        if (ham->layers)
            basin_graph_fail(ham->graph, BASIN_NO_MEMORY, "out of memory for a network's gradient");
    }
    free(g);
    free(part);
    free(want);
}

/* ---- the descent ---- */

static bool is_clamped(basin_expr mask) {
    return mask && mask == basin_const(basin_expr_graph(mask), 0);
}

/* The step's size against a layer's states: a number, or one per sample as [B, 1, ..]. */
static basin_expr step_size(const basin_layer *layer, basin_expr dt) {
    basin_shape shape = basin_expr_shape(dt);
    if (shape.rank) {
        shape = basin_layer_shape(layer, shape.dim[0]);
        for (int i = 1; i < shape.rank; i++) shape.dim[i] = 1;
    }
    return basin_scale(basin_reshape(dt, shape), 1 / layer->tau);
}

void basin_ham_step_by(basin_ham *ham, basin_expr *next, const basin_expr *x,
                       const basin_ham_spec *spec, basin_expr dt) {
    basin_expr *dEdg = calloc(ham->layers + 1, sizeof *dEdg);
    if (dEdg)
        basin_ham_gradient(ham, dEdg, x, spec);
    else
        basin_graph_fail(ham->graph, BASIN_NO_MEMORY, "out of memory for a network's step");
    for (size_t i = 0; i < ham->layers; i++) {
        basin_expr mask = spec->mask ? spec->mask[i] : NULL, move = dEdg ? dEdg[i] : NULL;
        move = basin_mul(step_size(&ham->layer[i], dt), move);
        if (mask && move) move = basin_mul(basin_broadcast(mask, basin_expr_shape(x[i])), move);
        next[i] = is_clamped(mask) ? x[i] : basin_sub(x[i], move);
    }
    free(dEdg);
}

void basin_ham_step(basin_ham *ham, basin_expr *next, const basin_expr *x,
                    const basin_ham_spec *spec) {
    basin_ham_step_by(ham, next, x, spec, basin_const(ham->graph, spec->dt));
}

static void record(basin_ham *ham, basin_expr *trace, const basin_expr *x) {
    basin_ham_energies(ham, trace, x);
    for (int i = 0; i < basin_ham_parts(ham); i++) trace[i] = basin_keep(trace[i]);
}

void basin_ham_descend(basin_ham *ham, basin_expr *end, const basin_expr *x,
                       const basin_ham_spec *spec, basin_expr *trace) {
    int parts = basin_ham_parts(ham);
    for (size_t i = 0; i < ham->layers; i++) end[i] = x[i];
    for (int t = 0; t < spec->steps; t++) {
        if (spec->recompute) basin_recompute_begin(ham->graph);
        if (trace) record(ham, trace + t * parts, end);
        basin_ham_step(ham, end, end, spec);
        for (size_t i = 0; i < ham->layers; i++) end[i] = basin_keep(end[i]);
        if (spec->recompute) basin_recompute_end(ham->graph);
    }
    if (trace) record(ham, trace + spec->steps * parts, end);
}
