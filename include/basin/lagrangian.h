/* Lagrangians: the function that defines a layer of neurons.
 *
 * A layer has internal states x. A convex function L(x), its Lagrangian, gives both the neurons'
 * activations and the energy they contribute by themselves:
 *
 *     g = dL/dx             the activation (ReLU, softmax, layer norm, ...)
 *     E = <x, g> - L(x)     the Legendre transform of L, an energy of g
 *
 * and therefore dE/dg = x. Eleven are known by name; with r = max(x, 0):
 *
 *     name       L(x)                                 g
 *     identity   1/2 sum x^2                          x
 *     relu       1/2 sum r^2                          r
 *     repu       1/n sum r^n                          r^(n-1), n >= 2
 *     exp        1/beta sum e^(beta x)                e^(beta x)
 *     rexp       sum e^(beta r)/beta - r              e^(beta r) - 1
 *     tanh       1/beta sum ln cosh(beta x)           tanh(beta x)
 *     sigmoid    s/beta sum ln(1 + e^(beta x))        s / (1 + e^(-beta x))
 *     softmax    1/beta ln sum e^(beta x)             e^(beta x) / sum e^(beta x)
 *     ghostmax   1/beta ln(1 + sum b e^(beta x))      b e^(beta x) / (1 + sum b e^(beta x))
 *     layernorm  D gamma sqrt(var + eps) + <delta, x>         gamma (x - mean)/sqrt(..) + delta
 *     spherical  gamma sqrt(sum x^2 + eps) + <delta, x>       gamma x / sqrt(..) + delta
 *
 * The last five act along rows (the last axis by default), each row by itself; the others act on
 * every element. Values, activations and energies are closed forms that neither overflow nor lose
 * digits where the result itself is an ordinary number: there is no 0 log 0 in a saturated neuron
 * and no difference of two large numbers in the energy.
 *
 *     basin_lagrangian softmax = {.name = "softmax", .beta = basin_scalar(graph, 2)};
 *     basin_expr g = basin_lagrangian_activation(&softmax, x);
 *     basin_expr energy = basin_lagrangian_energy(&softmax, x, 1);
 *
 * A custom Lagrangian is a function that builds L(x); the rest is derived from it. */
#ifndef BASIN_LAGRANGIAN_H
#define BASIN_LAGRANGIAN_H

#include "basin/expr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* L(x) for x of any shape: any expression whose leading axes are those of x (terms of x's own
 * shape, or a sum over its last axes); what is left of the sum is taken afterwards. */
typedef basin_expr basin_lagrangian_function(basin_expr x, void *context);

/* Parameters may be constants or any other expressions, learnable states among them; NULL and 0
 * stand for the defaults. A learnable beta is kept above 1e-6. */
typedef struct basin_lagrangian {
    const char *name;  /* of the table above; NULL: identity, or `custom` if given. A number at the
                          end is the power: "repu4" */
    basin_expr beta;   /* inverse temperature, 1; [] for softmax and ghostmax, else as x */
    basin_expr scale;  /* s of sigmoid, 1 */
    basin_expr gamma;  /* [], 1 */
    basin_expr delta;  /* [D], 0 */
    basin_expr weight; /* b of ghostmax, positive, [D], 1 */
    double power;      /* n of repu, 2 */
    double epsilon;    /* 1e-5 */
    int axis;          /* rows lie along this axis, counted from the end (-1 is the last); -1 */
    int axes;          /* and this many axes from there on, taken as one; 1 */
    basin_lagrangian_function *custom;
    void *context; /* for `custom` */
} basin_lagrangian;

/* L(x) and E(x) are summed over all but the first `batch` axes of x: 0 gives a number, 1 a number
 * per sample. The activation has x's shape. */
BASIN_API basin_expr basin_lagrangian_value(const basin_lagrangian *lagrangian, basin_expr x,
                                            int batch);
BASIN_API basin_expr basin_lagrangian_activation(const basin_lagrangian *lagrangian, basin_expr x);
BASIN_API basin_expr basin_lagrangian_energy(const basin_lagrangian *lagrangian, basin_expr x,
                                             int batch);

/* The names, for configurations and help texts; NULL beyond the last. */
BASIN_API const char *basin_lagrangian_name(int i);

#ifdef __cplusplus
}
#endif
#endif
