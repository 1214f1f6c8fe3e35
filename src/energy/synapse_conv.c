/* The convolutional synapse, E = -<g2, pool(conv(g1, w))>. Its signal into g1 is the transposed
 * convolution (through the pool's reverse) of g2, which differentiation gives. */
#include "energy/synapse.h"

static basin_expr pooled(basin_ham *ham, const basin_synapse *s, basin_expr y) {
    if (s->pool == BASIN_POOL_NONE) return y;
    if (!basin_synapse_positive(ham, s, "pool_window", s->pool_window)) return NULL;
    int stride = s->pool_stride ? s->pool_stride : s->pool_window;
    return s->pool == BASIN_POOL_AVERAGE ? basin_avgpool2d(y, s->pool_window, stride)
                                         : basin_maxpool2d(y, s->pool_window, stride);
}

basin_expr basin_synapse_conv2d(basin_ham *ham, const basin_synapse *synapse, const basin_expr *g,
                                int count) {
    char a[BASIN_SHAPE_TEXT], b[BASIN_SHAPE_TEXT];
    if (!basin_synapse_check(ham, synapse, g, count, 2, 2) ||
        !basin_synapse_positive(ham, synapse, "kernel", synapse->kernel))
        return NULL;
    basin_shape in = basin_expr_shape(g[0]), out = basin_expr_shape(g[1]);
    if (in.rank != 4 || out.rank != 4)
        return basin_graph_fail(ham->graph, BASIN_BAD_SHAPE,
                                "synapse '%s' joins activations of shapes %s and %s, wanted "
                                "[batch, height, width, channels] twice",
                                synapse->name, basin_shape_print(a, in), basin_shape_print(b, out));
    basin_shape kernel = BASIN_SHAPE(synapse->kernel, synapse->kernel, in.dim[3], out.dim[3]);
    basin_expr w = basin_synapse_weight(ham, synapse, "w", kernel);
    basin_expr y = basin_conv2d(g[0], w, synapse->stride ? synapse->stride : 1, !synapse->valid);
    y = pooled(ham, synapse, y);
    if (synapse->bias)
        y = basin_add(y, basin_synapse_offset(ham, synapse, "b", BASIN_SHAPE(out.dim[3]), 0));
    if (y && !basin_shape_equal(basin_expr_shape(y), out))
        return basin_graph_fail(ham->graph, BASIN_BAD_SHAPE,
                                "synapse '%s' makes shape %s of its first layer, its second has %s",
                                synapse->name, basin_shape_print(a, basin_expr_shape(y)),
                                basin_shape_print(b, out));
    return basin_neg(basin_sum(basin_mul(y, g[1]), 1, 3));
}
