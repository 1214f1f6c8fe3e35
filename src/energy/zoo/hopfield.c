/* Modern Hopfield networks and their Fenchel-Young relatives:
 * E = -Omega*(beta xi x) / beta + |x|^2 / 2 + H(uniform) / beta + max |xi|^2 / 2. */
#include "energy/zoo/zoo.h"

#include <math.h>

static basin_expr scores(const basin_zoo_hopfield *m, basin_expr x) {
    return basin_mul(m->beta, basin_matmul_t(x, false, m->xi, true));
}

static basin_expr conjugate(basin_zoo_entropy entropy, basin_expr z) {
    switch (entropy) {
    case BASIN_ZOO_ENTMAX15: return basin_entmax15_conjugate(z);
    case BASIN_ZOO_SPARSEMAX: return basin_sparsemax_conjugate(z);
    case BASIN_ZOO_NORMMAX2: return basin_normmax2_conjugate(z);
    default: return basin_logsumexp(z);
    }
}

/* The largest entropy, of `count` equal probabilities. */
static double uniform_entropy(basin_zoo_entropy entropy, double count) {
    switch (entropy) {
    case BASIN_ZOO_ENTMAX15: return (1 - 1 / sqrt(count)) * 4 / 3;
    case BASIN_ZOO_SPARSEMAX: return (1 - 1 / count) / 2;
    case BASIN_ZOO_NORMMAX2: return 1 - 1 / sqrt(count);
    default: return log(count);
    }
}

basin_expr basin_zoo_hopfield_recall(const basin_zoo_hopfield *model, basin_expr x) {
    basin_expr z = scores(model, x);
    switch (model->entropy) {
    case BASIN_ZOO_ENTMAX15: return basin_entmax15(z);
    case BASIN_ZOO_SPARSEMAX: return basin_sparsemax(z);
    case BASIN_ZOO_NORMMAX2: return basin_normmax2(z);
    default: return basin_softmax(z);
    }
}

static basin_expr energy(const void *context, basin_expr x, int part) {
    const basin_zoo_hopfield *m = context;
    basin_shape shape = basin_expr_shape(m->xi);
    if (!x || shape.rank < 2) return NULL;
    (void)part;
    double most = uniform_entropy(m->entropy, (double)shape.dim[shape.rank - 2]);
    basin_expr gain =
        basin_sub(basin_const(basin_expr_graph(x), most), conjugate(m->entropy, scores(m, x)));
    basin_expr longest = basin_maximum(basin_zoo_half_square(m->xi), -1, 1); /* [..] */
    basin_expr bound = basin_axes_insert(longest, -1, 1);
    return basin_add(basin_add(basin_div(gain, m->beta), basin_zoo_half_square(x)), bound);
}

basin_energy basin_zoo_hopfield_energy(const basin_zoo_hopfield *model) {
    return (basin_energy){.parts = 1, .name = {"memories"}, .part = energy, .context = model};
}
