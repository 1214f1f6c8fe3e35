/* The network: layers, synapses, E = sum <x, g> - L + sum E_synapse, g = dL/dx (at x - bias), and
 * the descent x <- x - (dt / tau) mask (x + dE_synapses/dg), by loop.c. */

#include "base/shape.h"
#include "base/sized.h"
#include "base/try.h"
#include "engine/energy/network.h"
#include "engine/expr/graph.h"

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
    BASIN_FREE(ham->text, ham->binding);
    basin_params_free(&ham->params);
    free(ham);
}

/* A copy of `text` that lives as long as the network; NULL with the graph's error set. */
static const char *keep(basin_ham *ham, const char *text) {
    char *copy = NULL;
    if (BASIN_RESERVE(&ham->text, &ham->text_capacity, ham->texts + 1))
        copy = basin_string_copy(text);
    if (copy) return ham->text[ham->texts++] = copy;
    basin_graph_fail(ham->graph, BASIN_NO_MEMORY, "out of memory for the name '%s'", text);
    return NULL;
}

/* Replaces a name and a Lagrangian's by copies; false on failure. */
static bool keep_names(basin_ham *ham, const char **name, basin_lagrangian *lagrangian) {
    *name = keep(ham, *name);
    if (lagrangian->name) lagrangian->name = keep(ham, lagrangian->name);
    return !basin_graph_error(ham->graph);
}

/* Whether there is room for one more of `max`; otherwise the graph has an error. */
static bool has_room(basin_ham *ham, int count, int max, const char *what) {
    if (count < max) return true;
    return basin_graph_fail(ham->graph, BASIN_UNSUPPORTED, "a network of more than %d %s", max,
                            what);
}

/* ---- parameters ---- */

void basin_ham_bind(basin_ham *ham, const char *parameter, basin_expr value) {
    const char *name = value ? keep(ham, parameter) : NULL;
    if (!name) return;
    if (!BASIN_RESERVE(&ham->binding, &ham->binding_capacity, ham->bindings + 1))
        basin_graph_fail(ham->graph, BASIN_NO_MEMORY, "out of memory for the parameter '%s'", name);
    else
        ham->binding[ham->bindings++] = (basin_binding){name, value};
}

/* The expression that `name` is bound to, or its state; NULL where there is neither. */
static basin_expr find_parameter(const basin_ham *ham, const char *name) {
    for (size_t i = 0; i < ham->bindings; i++)
        if (strcmp(ham->binding[i].parameter, name) == 0) return ham->binding[i].value;
    for (size_t i = 0; i < ham->params.count; i++)
        if (strcmp(basin_expr_name(ham->params.param[i].state), name) == 0)
            return ham->params.param[i].state;
    return NULL;
}

basin_expr basin_ham_parameter(basin_ham *ham, const char *owner, const char *part,
                               basin_shape shape, basin_init init) {
    char name[256];
    int length = snprintf(name, sizeof name, "%s.%s", owner, part);
    if (length < 0 || (size_t)length >= sizeof name)
        return basin_graph_fail(ham->graph, BASIN_BAD_VALUE,
                                "the parameter name '%s.%s' is longer than 255 characters", owner,
                                part);
    basin_expr found = find_parameter(ham, name);
    if (found && !basin_shape_equal(basin_expr_shape(found), shape))
        return basin_graph_fail(ham->graph, BASIN_BAD_SHAPE,
                                "the parameter '%s' has shape %s, expected %s", name,
                                basin_shape_text(basin_expr_shape(found)), basin_shape_text(shape));
    if (found) return found;
    return basin_param_add(&ham->params, "", name, shape, init);
}

const basin_params *basin_ham_params(const basin_ham *ham) { return &ham->params; }

/* ---- layers ---- */

static int find_layer(const basin_ham *ham, const char *layer) {
    for (int i = 0; i < ham->layers; i++)
        if (strcmp(ham->layer[i].name, layer) == 0) return i;
    return -1;
}

/* Whether the layer can be added; otherwise the graph has an error. */
static bool check_layer(basin_ham *ham, const basin_layer *layer) {
    basin_error newer = {0};
    if (BASIN_SIZE_CHECK(layer, "basin_layer", &newer))
        return basin_graph_fail(ham->graph, newer.status, "%s", newer.text);
    if (!layer->name || !*layer->name || strpbrk(layer->name, ", ()\t\n"))
        return basin_graph_fail(
            ham->graph, BASIN_BAD_VALUE,
            "a layer named '%s'; expected a name without spaces, commas and brackets",
            layer->name ? layer->name : "");
    if (find_layer(ham, layer->name) >= 0)
        return basin_graph_fail(ham->graph, BASIN_BAD_VALUE, "there are two layers named '%s'",
                                layer->name);
    if (layer->shape.rank >= BASIN_MAX_RANK || basin_shape_count(layer->shape) < 1)
        return basin_graph_fail(
            ham->graph, BASIN_BAD_SHAPE,
            "layer '%s' has shape %s; expected at least one neuron and rank %d at most",
            layer->name, basin_shape_text(layer->shape), BASIN_MAX_RANK - 1);
    if (!(layer->tau >= 0) || isinf(layer->tau))
        return basin_graph_fail(ham->graph, BASIN_BAD_VALUE,
                                "layer '%s' has time constant %g, expected more than 0",
                                layer->name, layer->tau);
    return true;
}

/* The layer's shape with a batch axis before it. */
static basin_shape batch_shape(const basin_layer *layer, int64_t batch) {
    basin_shape shape = {.rank = layer->shape.rank + 1, .dim = {batch}};
    for (int i = 0; i < layer->shape.rank; i++) shape.dim[i + 1] = layer->shape.dim[i];
    return shape;
}

int basin_ham_layer(basin_ham *ham, const basin_layer *layer) {
    if (!check_layer(ham, layer) || !has_room(ham, ham->layers, BASIN_HAM_LAYERS, "layers"))
        return -1;
    basin_layer copy = *layer;
    basin_expr bias = NULL;
    if (copy.tau == 0) copy.tau = 1;
    if (!keep_names(ham, &copy.name, &copy.lagrangian)) return -1;
    if (layer->bias && !(bias = basin_ham_parameter(ham, copy.name, "bias", copy.shape,
                                                    (basin_init){BASIN_INIT_CONSTANT, 0})))
        return -1;
    /* A Lagrangian that does not fit the shape is an error now, not at the first use. */
    basin_expr zero = basin_full(ham->graph, batch_shape(&copy, 1), 0);
    if (!basin_lagrangian_value(&copy.lagrangian, zero, 1)) return -1;
    ham->bias[ham->layers] = bias;
    ham->layer[ham->layers] = copy;
    return ham->layers++;
}

/* x - bias */
static basin_expr centred(const basin_ham *ham, int layer, basin_expr x) {
    return ham->bias[layer] ? basin_sub(x, ham->bias[layer]) : x;
}

/* Whether x are states of the layer. */
static bool check_states(const basin_ham *ham, int layer, basin_expr x) {
    if (!x) return false;
    basin_shape found = basin_expr_shape(x);
    basin_shape expected = batch_shape(&ham->layer[layer], found.rank ? found.dim[0] : 1);
    if (basin_shape_equal(found, expected)) return true;
    return basin_graph_fail(ham->graph, BASIN_BAD_SHAPE,
                            "states of shape %s for layer '%s', expected a batch axis and %s",
                            basin_shape_text(found), ham->layer[layer].name,
                            basin_shape_text(ham->layer[layer].shape));
}

basin_expr basin_ham_activation(basin_ham *ham, int layer, basin_expr x) {
    if (!check_states(ham, layer, x)) return NULL;
    return basin_lagrangian_activation(&ham->layer[layer].lagrangian, centred(ham, layer, x));
}

/* ---- synapses and connections ---- */

static int find_synapse(const basin_ham *ham, const char *name) {
    for (int i = 0; i < ham->synapses; i++)
        if (strcmp(ham->synapse[i].name, name) == 0) return i;
    return -1;
}

int basin_ham_synapse(basin_ham *ham, const basin_synapse *synapse) {
    const char *name = synapse->name;
    basin_synapse copy = *synapse;
    basin_error newer = {0};
    if (BASIN_SIZE_CHECK(synapse, "basin_synapse", &newer))
        basin_graph_fail(ham->graph, newer.status, "%s", newer.text);
    else if (!name || !*name || (synapse->kind == BASIN_SYNAPSE_CUSTOM && !synapse->energy))
        basin_graph_fail(ham->graph, BASIN_BAD_VALUE,
                         "synapse '%s' needs a name, and a kind or an energy function",
                         name ? name : "");
    else if (find_synapse(ham, name) >= 0)
        basin_graph_fail(ham->graph, BASIN_BAD_VALUE, "there are two synapses named '%s'", name);
    else if (has_room(ham, ham->synapses, BASIN_HAM_SYNAPSES, "synapses") &&
             keep_names(ham, &copy.name, &copy.hidden)) {
        ham->synapse[ham->synapses] = copy;
        return ham->synapses++;
    }
    return -1;
}

const char *basin_ham_term_name(const basin_ham *ham, int term) {
    if (term < 0 || term >= basin_ham_terms(ham)) return NULL;
    return term < ham->layers ? ham->layer[term].name : ham->connection[term - ham->layers].name;
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
        if (layer < 0 || connection->count == BASIN_MAX_ENDS)
            return basin_graph_fail(ham->graph, BASIN_BAD_VALUE,
                                    layer < 0 ? "connection '%s': there is no layer '%s'"
                                              : "connection '%s': '%s' is one layer more than 8",
                                    list, name);
        connection->layer[connection->count++] = layer;
        at += length;
    }
    if (connection->count) return true;
    return basin_graph_fail(ham->graph, BASIN_BAD_VALUE, "a connection of no layer");
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
    return keep(ham, text);
}

/* The energy of a connection at activations g (of all layers), [batch]. */
static basin_expr connection_energy(basin_ham *ham, int connection, const basin_expr *g) {
    const basin_connection *c = &ham->connection[connection];
    const basin_synapse *synapse = &ham->synapse[c->synapse];
    basin_expr end[BASIN_MAX_ENDS];
    for (int i = 0; i < c->count; i++) end[i] = g[c->layer[i]];
    if (!end[0]) return NULL;
    int64_t batch = basin_expr_shape(end[0]).dim[0];
    basin_expr energy = basin_synapse_energy(ham, synapse, end, c->count);
    if (!energy)
        return basin_graph_fail(ham->graph, BASIN_BAD_VALUE, "%s: the synapse gave no energy",
                                c->name);
    basin_shape shape = basin_expr_shape(energy);
    if (shape.rank < 1 || shape.dim[0] != batch)
        return basin_graph_fail(
            ham->graph, BASIN_BAD_SHAPE,
            "%s: an energy of shape %s, expected [%lld, ..], a number per sample", c->name,
            basin_shape_text(shape), (long long)batch);
    return basin_sum(energy, 1, shape.rank - 1);
}

/* Builds its energy once on zeros: shapes that do not fit are an error now. */
int basin_ham_connect(basin_ham *ham, const char *synapse, const char *layers) {
    basin_connection connection = {.synapse = find_synapse(ham, synapse)};
    basin_expr zero[BASIN_HAM_LAYERS];
    if (connection.synapse < 0)
        basin_graph_fail(ham->graph, BASIN_BAD_VALUE, "there is no synapse '%s'", synapse);
    if (connection.synapse < 0 || !read_ends(ham, &connection, layers) ||
        !has_room(ham, ham->connections, BASIN_HAM_CONNECTIONS, "connections") ||
        !(connection.name = name_connection(ham, &connection)))
        return -1;
    ham->connection[ham->connections] = connection;
    for (int i = 0; i < ham->layers; i++)
        zero[i] = basin_full(ham->graph, batch_shape(&ham->layer[i], 1), 0);
    return connection_energy(ham, ham->connections, zero) ? ham->connections++ : -1;
}

/* ---- energies ---- */

/* Energies of all terms at x, each [batch]: the layers, then the connections. */
static void ham_energies(basin_ham *ham, basin_expr *energy, const basin_expr *x) {
    basin_expr g[BASIN_HAM_LAYERS];
    for (int i = 0; i < ham->layers; i++) g[i] = basin_ham_activation(ham, i, x[i]);
    for (int i = 0; i < ham->layers; i++) /* <x, g> - L(x) */
        energy[i] =
            g[i] ? basin_lagrangian_energy(&ham->layer[i].lagrangian, centred(ham, i, x[i]), 1)
                 : NULL;
    for (int i = 0; i < ham->connections; i++)
        energy[ham->layers + i] = connection_energy(ham, i, g);
}

/* The sum of count terms, or zeros [batch] of none. */
static basin_expr sum_terms(const basin_expr *term, int count, basin_expr x) {
    if (!x) return NULL;
    basin_expr sum =
        count ? term[0]
              : basin_full(basin_expr_graph(x), BASIN_SHAPE(basin_expr_shape(x).dim[0]), 0);
    for (int i = 1; i < count; i++) sum = basin_add(sum, term[i]);
    return sum;
}

basin_expr basin_ham_energy(basin_ham *ham, const basin_expr *x, bool synapses_only) {
    basin_expr energy[BASIN_HAM_TERMS];
    int first = synapses_only ? ham->layers : 0;
    if (!ham->layers)
        return basin_graph_fail(ham->graph, BASIN_BAD_VALUE,
                                "a network without layers has no energy");
    ham_energies(ham, energy, x);
    return sum_terms(energy + first, basin_ham_terms(ham) - first, x[0]);
}

/* By activations that are variables, each its own even where two are equal expressions. */
void basin_ham_gradient(basin_ham *ham, basin_expr *dEdg, const basin_expr *x, bool synapses_only) {
    basin_expr g[BASIN_HAM_LAYERS], term[BASIN_HAM_CONNECTIONS];
    bool want[BASIN_HAM_LAYERS];
    for (int i = 0; i < ham->layers; i++) {
        g[i] = basin_variable(basin_ham_activation(ham, i, x[i]));
        want[i] = true;
        dEdg[i] = NULL;
    }
    if (!ham->layers) return;
    for (int i = 0; i < ham->connections; i++) term[i] = connection_energy(ham, i, g);
    basin_expr energy = sum_terms(term, ham->connections, x[0]);
    basin_expr one = basin_full(ham->graph, basin_expr_shape(energy), 1);
    basin_partial(dEdg, &energy, &one, 1, g, want, ham->layers);
    for (int i = 0; i < ham->layers && !synapses_only; i++)
        dEdg[i] = basin_add(centred(ham, i, x[i]), dEdg[i]);
}

/* ---- the descent ---- */

static bool is_clamped(basin_expr mask) {
    return mask && mask == basin_scalar(basin_expr_graph(mask), 0);
}

/* One step of size `dt`, [] or one per sample, [batch]. next may be x. */
static void ham_step_by(basin_ham *ham, basin_expr *next, const basin_expr *x,
                        const basin_ham_spec *spec, basin_expr dt) {
    basin_expr dEdg[BASIN_HAM_LAYERS];
    basin_ham_gradient(ham, dEdg, x, spec->synapses_only);
    for (int i = 0; i < ham->layers; i++) {
        basin_expr mask = spec->mask ? spec->mask[i] : NULL;
        basin_expr size = basin_per_sample(dt, basin_expr_shape(x[i]));
        basin_expr move = basin_mul(basin_scale(size, 1 / ham->layer[i].tau), dEdg[i]);
        if (mask && move) move = basin_mul(basin_broadcast_to(mask, basin_expr_shape(x[i])), move);
        next[i] = is_clamped(mask) ? x[i] : basin_sub(x[i], move);
    }
}

static void record(basin_ham *ham, basin_expr *trace, const basin_expr *x) {
    ham_energies(ham, trace, x);
    for (int i = 0; i < basin_ham_terms(ham); i++) trace[i] = basin_keep(trace[i]);
}

void basin_ham_descend(basin_ham *ham, basin_expr *end, const basin_expr *x,
                       const basin_ham_spec *spec, basin_expr *trace) {
    int terms = basin_ham_terms(ham);
    basin_expr dt = basin_scalar(ham->graph, spec->dt);
    if (spec->noise != 0)
        basin_graph_fail(ham->graph, BASIN_BAD_VALUE, "noise in a descent that is unrolled");
    for (int i = 0; i < ham->layers; i++) end[i] = x[i];
    for (int t = 0; t < spec->steps; t++) {
        if (spec->recompute) basin_recompute_begin(ham->graph);
        if (trace) record(ham, trace + t * terms, end);
        ham_step_by(ham, end, end, spec, dt);
        for (int i = 0; i < ham->layers; i++) end[i] = basin_keep(end[i]);
        if (spec->recompute) basin_recompute_end(ham->graph);
    }
    if (trace) record(ham, trace + spec->steps * terms, end);
}

/* ---- on numbers ---- */

typedef struct descended {
    basin_ham *ham;
    const basin_ham_spec *spec;
} descended;

static void activate(const void *context, basin_expr *g, const basin_expr *x) {
    basin_ham *ham = ((const descended *)context)->ham;
    for (int i = 0; i < ham->layers; i++) g[i] = basin_ham_activation(ham, i, x[i]);
}

static void energies(const void *context, basin_expr *term, const basin_expr *x,
                     const basin_expr *g) {
    (void)g;
    ham_energies(((const descended *)context)->ham, term, x);
}

static void take_step(const void *context, basin_expr *next, const basin_expr *x,
                      const basin_expr *g, const basin_pace *pace) {
    const descended *d = context;
    (void)g;
    ham_step_by(d->ham, next, x, d->spec, pace->alpha);
    for (int i = 0; i < d->ham->layers && pace->seed; i++) {
        basin_expr mask = d->spec->mask ? d->spec->mask[i] : NULL;
        basin_shape shape = basin_expr_shape(x[i]);
        if (is_clamped(mask)) continue;
        basin_expr size = basin_per_sample(pace->alpha, shape);
        size = basin_sqrt(basin_scale(size, 1 / d->ham->layer[i].tau));
        basin_expr draw = basin_scale(basin_normal(pace->seed, shape), d->spec->noise);
        if (mask) draw = basin_mul(basin_broadcast_to(mask, shape), draw);
        next[i] = basin_add(next[i], basin_mul(size, draw));
    }
}

basin_status basin_ham_descent_new(basin_descent **descent, basin_ham *ham, basin_store *store,
                                   int64_t batch, const basin_ham_spec *spec,
                                   const basin_stop *stop, basin_error *error) {
    int terms = basin_ham_terms(ham);
    basin_shape shape[BASIN_HAM_LAYERS];
    const char *name[BASIN_HAM_TERMS];
    *descent = NULL;
    BASIN_TRY(BASIN_SIZE_CHECK(spec, "basin_ham_spec", error));
    BASIN_TRY(BASIN_SIZE_CHECK(stop, "basin_stop", error));
    if (batch < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "a batch of %lld samples, expected 1 or more",
                          (long long)batch);
    if (ham->layers < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "a network without layers cannot descend");
    if (!(spec->noise >= 0))
        return basin_fail(error, BASIN_BAD_VALUE, "a descent with noise %g; expected none below 0",
                          spec->noise);
    for (int i = 0; i < ham->layers; i++) shape[i] = batch_shape(&ham->layer[i], batch);
    for (int p = 0; p < terms; p++) name[p] = basin_ham_term_name(ham, p);
    basin_dynamics dynamics = {.count = ham->layers,
                               .shape = shape,
                               .terms = terms,
                               .first = spec->synapses_only ? ham->layers : 0,
                               .noise = spec->noise,
                               .independent = true,
                               .name = name,
                               .activate = activate,
                               .energies = energies,
                               .step = take_step,
                               .context = &(descended){ham, spec}};
    return basin_loop_new(descent, store, ham->graph, &dynamics, spec->steps, spec->dt, stop,
                          error);
}
