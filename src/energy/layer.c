/* Neuron layers: g = dL/dx and E = <x, g> - L, both taken at x - bias. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "energy/network.h"

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
    else if (basin_ham_find(ham, layer->name) >= 0)
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

int basin_ham_layers(const basin_ham *ham) { return (int)ham->layers; }

int basin_ham_find(const basin_ham *ham, const char *layer) {
    for (size_t i = 0; i < ham->layers; i++)
        if (strcmp(ham->layer[i].name, layer) == 0) return (int)i;
    return -1;
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
