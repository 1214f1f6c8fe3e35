/* The inside of a hierarchical associative memory. */
#ifndef BASIN_ENERGY_NETWORK_H
#define BASIN_ENERGY_NETWORK_H

#include "basin/ham.h"
#include "engine/energy/energy.h"

enum {
    BASIN_MAX_ENDS = 8, /* layers that one connection joins */
    BASIN_HAM_LAYERS = 64,
    BASIN_HAM_SYNAPSES = 64,
    BASIN_HAM_CONNECTIONS = 128,
    BASIN_HAM_TERMS = BASIN_HAM_LAYERS + BASIN_HAM_CONNECTIONS,
};

typedef struct basin_connection {
    int synapse;
    int layer[BASIN_MAX_ENDS];
    int count;
    const char *name;
} basin_connection;

typedef struct basin_binding {
    const char *parameter;
    basin_expr value;
} basin_binding;

struct basin_ham {
    basin_graph *graph;
    basin_params params;
    basin_binding *binding;
    size_t bindings, binding_capacity;
    basin_layer layer[BASIN_HAM_LAYERS]; /* [layers] tau is set */
    basin_expr bias[BASIN_HAM_LAYERS];   /* or NULL where there is none */
    basin_synapse synapse[BASIN_HAM_SYNAPSES];
    basin_connection connection[BASIN_HAM_CONNECTIONS];
    int layers, synapses, connections;
    char **text; /* [texts] copies of names, which the above point to */
    size_t texts, text_capacity;
};

static inline int basin_ham_terms(const basin_ham *ham) { return ham->layers + ham->connections; }

#endif
