/* CRATE: attention with q = k = v, then one proximal step of |y - d a|^2 / 2 + lambda |a|, a >= 0.
 */
#include "energy/zoo/zoo.h"

#include <math.h>

static basin_expr attend(const basin_zoo_crate *m, basin_expr x) {
    basin_shape shape = basin_expr_shape(x);
    basin_expr w = basin_zoo_linear(basin_zoo_norm(x, m->ln1_w, m->ln1_b, m->epsilon), m->u, NULL);
    int64_t all = basin_expr_shape(w).dim[1];
    if (!basin_zoo_divides(basin_expr_graph(x), all, m->heads)) return NULL;
    int64_t width = all / m->heads;
    w = basin_reshape(w, BASIN_SHAPE(shape.dim[0], m->heads, width));
    basin_expr score = basin_einsum("ihy,jhy->hij", w, w);
    basin_expr a = basin_softmax(basin_scale(score, 1 / sqrt((double)width)));
    basin_expr mixed = basin_reshape(basin_einsum("hij,jhy->ihy", a, w), BASIN_SHAPE(-1, all));
    return basin_add(x, basin_zoo_linear(mixed, m->out_w, m->out_b));
}

typedef struct code {
    const basin_zoo_crate *model;
    basin_expr y;
} code;

/* |y - d a|^2 / 2, and lambda |a| */
static basin_expr energy(const void *context, basin_expr a, int part) {
    const code *c = context;
    if (part == 1) return basin_scale(basin_sum_all(basin_abs(a)), c->model->lambda);
    basin_expr gap = basin_sub(c->y, basin_zoo_linear(a, c->model->d, NULL));
    return basin_scale(basin_sum_all(basin_square(gap)), 0.5);
}

static basin_expr land(const void *context, basin_expr a, basin_expr t) {
    const basin_zoo_crate *m = ((const code *)context)->model;
    (void)t;
    return basin_relu(basin_offset(a, -m->eta * m->lambda));
}

basin_expr basin_zoo_crate_block(const basin_zoo_crate *model, basin_expr x,
                                 basin_expr *objective) {
    code c = {model, basin_zoo_norm(attend(model, x), model->ln2_w, model->ln2_b, model->epsilon)};
    basin_energy lasso = {.parts = 2, .name = {"fit", "size"}, .part = energy, .context = &c};
    basin_turn turn = {.parts = 1, .land = land, .context = &c};
    basin_descent_spec spec = {.steps = 1, .alpha = model->eta, .turn = &turn, .turns = 1};
    basin_expr trace[4], end = basin_descend(&lasso, c.y, &spec, trace);
    if (objective)
        *objective = basin_stack(
            (basin_expr[]){basin_add(trace[0], trace[1]), basin_add(trace[2], trace[3])}, 2, 0);
    return end;
}
