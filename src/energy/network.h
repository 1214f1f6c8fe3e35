/* The inside of a hierarchical associative memory. */
#ifndef BASIN_ENERGY_NETWORK_H
#define BASIN_ENERGY_NETWORK_H

#include "basin/ham.h"
#include "energy/energy.h"

enum { BASIN_MAX_ENDS = 8 }; /* layers that one connection joins */

typedef struct basin_connection {
    int synapse;
    int layer[BASIN_MAX_ENDS];
    int count;
    const char *name;
} basin_connection;

struct basin_ham {
    basin_graph *graph;
    basin_params params;
    basin_layer *layer; /* [layers] tau is set */
    basin_expr *bias;   /* [layers] or NULL where there is none */
    size_t layers, layer_capacity, bias_capacity;
    basin_synapse *synapse; /* [synapses] */
    size_t synapses, synapse_capacity;
    basin_connection *connection; /* [connections] */
    size_t connections, connection_capacity;
    char **text; /* [texts] copies of names, which the above point to */
    size_t texts, text_capacity;
};

/* A copy of `text` that lives as long as the network; NULL with the graph's error set. */
const char *basin_ham_keep(basin_ham *ham, const char *text);
/* Replaces a Lagrangian's name by a copy; false on failure. */
bool basin_ham_keep_lagrangian(basin_ham *ham, basin_lagrangian *lagrangian);

/* The layer's shape with a batch axis before it. */
basin_shape basin_layer_shape(const basin_layer *layer, int64_t batch);
/* x - bias */
basin_expr basin_ham_centred(const basin_ham *ham, int layer, basin_expr x);
/* Those of all layers. */
void basin_ham_activations(basin_ham *ham, basin_expr *g, const basin_expr *x);
/* The energy tree: energy[term], each [batch]. */
void basin_ham_energies(basin_ham *ham, basin_expr *energy, const basin_expr *x);
/* <x, g> - L(x), [batch] */
basin_expr basin_ham_layer_energy(const basin_ham *ham, int layer, basin_expr x);

/* The energy of a connection at activations g (of all layers), [batch]. */
basin_expr basin_ham_connection_energy(basin_ham *ham, int connection, const basin_expr *g);
/* One step of size `dt`, [] or one per sample, [batch]. next may be x. */
void basin_ham_step_by(basin_ham *ham, basin_expr *next, const basin_expr *x,
                       const basin_ham_spec *spec, basin_expr dt);

#endif
