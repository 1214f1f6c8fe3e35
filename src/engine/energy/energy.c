/* Any energy: activation, total, force from its terms; maps to spheres. */
#include "engine/energy/energy.h"
#include "base/shape.h"

basin_expr basin_energy_activation(const basin_energy *energy, basin_expr x) {
    if (!energy->activation) return x;
    basin_expr g = energy->activation(energy->context, x);
    if (!g)
        basin_graph_fail(basin_expr_graph(x), BASIN_BAD_VALUE, "an energy's activation is NULL");
    return g;
}

basin_expr basin_energy_term(const basin_energy *energy, basin_expr g, int term) {
    const basin_term *t = &energy->term[term];
    const char *name = t->name ? t->name : "";
    if (!t->build)
        return basin_graph_fail(basin_expr_graph(g), BASIN_BAD_VALUE,
                                "term %d of an energy ('%s') has no function that builds it", term,
                                name);
    basin_expr made = t->build(t->context ? t->context : energy->context, g);
    if (!made)
        basin_graph_fail(basin_expr_graph(g), BASIN_BAD_VALUE,
                         "term %d of an energy ('%s') is NULL; expected an expression", term, name);
    return made;
}

static basin_expr sum_terms(const basin_energy *energy, basin_expr g, unsigned terms) {
    basin_expr total = NULL;
    for (int i = 0; i < energy->terms; i++) {
        if (terms && (i >= 32 || !(terms >> i & 1))) continue;
        basin_expr term = basin_energy_term(energy, g, i);
        total = total ? basin_add(total, term) : term;
        if (!term) return NULL;
    }
    return total ? total : basin_scalar(basin_expr_graph(g), 0);
}

basin_expr basin_energy_total(const basin_energy *energy, basin_expr g) {
    return sum_terms(energy, g, 0);
}

basin_expr basin_energy_force_of(const basin_energy *energy, basin_expr g, unsigned terms) {
    g = basin_variable(g); /* g may be anything, a constant too */
    return basin_grad(basin_neg(sum_terms(energy, g, terms)), g);
}

basin_expr basin_energy_force(const basin_energy *energy, basin_expr g) {
    return basin_energy_force_of(energy, g, 0);
}

/* ---- maps ---- */

/* [.., D] -> [.., D / group, group] */
static basin_expr groups(basin_expr x, int64_t group) {
    basin_shape shape = basin_expr_shape(x);
    int last = shape.rank - 1;
    if (!x) return NULL;
    if (last < 0 || shape.rank == BASIN_MAX_RANK || group < 1 || shape.dim[last] % group != 0)
        return basin_graph_fail(
            basin_expr_graph(x), BASIN_BAD_SHAPE,
            "spheres of %lld neighbours in tokens %s; expected a divisor of the last axis",
            (long long)group, basin_shape_text(shape));
    shape.dim[last] /= group;
    shape.dim[shape.rank++] = group;
    return basin_reshape(x, shape);
}

/* Below 1e-12 a length counts as that, so that nothing is divided by 0. */
basin_expr basin_to_sphere(basin_expr x, int64_t group) {
    basin_expr rows = groups(x, group);
    if (!rows) return NULL;
    basin_expr square = basin_expand_dims(basin_sum(basin_square(rows), -1, 1), -1, 1);
    basin_expr min = basin_scalar(basin_expr_graph(x), 1e-24);
    return basin_reshape(basin_div(rows, basin_sqrt(basin_maximum(square, min))),
                         basin_expr_shape(x));
}

basin_expr basin_to_tangent(basin_expr force, basin_expr x, int64_t group) {
    basin_expr f = groups(force, group), rows = groups(x, group);
    if (!f || !rows) return NULL;
    basin_expr along = basin_expand_dims(basin_sum(basin_mul(f, rows), -1, 1), -1, 1);
    return basin_reshape(basin_sub(f, basin_mul(along, rows)), basin_expr_shape(force));
}
