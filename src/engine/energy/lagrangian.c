/* Lagrangians: L(x), g = dL/dx and E = <x, g> - L(x) of each, side by side.
 *
 * Energies are written in x where that is exact: the entropies of tanh, sigmoid, softmax and
 * ghostmax in logarithms that softplus and log-sum-exp give without overflow, and the two norms as
 * E = -gamma D eps / sqrt(var + eps), in which <x, g> and L have been cancelled by hand. */
#include "basin/lagrangian.h"
#include "base/shape.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "engine/expr/graph.h"

static const double min_beta = 1e-6;

/* A Lagrangian's parameters with the defaults filled in. */
typedef struct parameters {
    basin_expr beta, scale, gamma, delta, weight;
    double power, epsilon;
} parameters;

typedef basin_expr term(const parameters *p, basin_expr x);

/* A term of one expression of p and x. */
#define TERM(name, ...)                                                                            \
    static basin_expr name(const parameters *p, basin_expr x) {                                    \
        (void)p;                                                                                   \
        return __VA_ARGS__;                                                                        \
    }

/* Along rows: value and energy lose the last axis. Otherwise both are terms of x's shape. */
typedef struct formula {
    const char *name;
    bool rows;
    term *value, *activation, *energy;
} formula;

/* ---- element by element ---- */

TERM(identity_value, basin_scale(basin_square(x), 0.5))
TERM(identity_activation, x)

TERM(repu_value, basin_scale(basin_power_scalar(basin_relu(x), p->power), 1 / p->power))
TERM(repu_activation, basin_power_scalar(basin_relu(x), p->power - 1))
TERM(repu_energy, basin_scale(basin_power_scalar(basin_relu(x), p->power), 1 - 1 / p->power))

TERM(exp_activation, basin_exp(basin_mul(p->beta, x)))
TERM(exp_value, basin_div(exp_activation(p, x), p->beta))
TERM(exp_energy, basin_mul(exp_activation(p, x), basin_sub(x, basin_reciprocal(p->beta))))

static basin_expr rexp_value(const parameters *p, basin_expr x) {
    basin_expr r = basin_relu(x);
    return basin_sub(exp_value(p, r), r);
}
TERM(rexp_activation, basin_expm1(basin_mul(p->beta, basin_relu(x))))
TERM(rexp_energy, exp_energy(p, basin_relu(x)))

/* The value of one expression, the derivatives of another: without these, only the first is
 * computed (simplify.c drops x - x). */
static basin_expr valued(basin_expr value, basin_expr smooth) {
    return basin_add(basin_stop_gradient(value), basin_sub(smooth, basin_stop_gradient(smooth)));
}

/* -s ln s - (1 - s) ln(1 - s), s = sigmoid(v); both logarithms are softplus, exact near 0. The
 * value takes half as many: softplus(-u) + u sigmoid(-u), u = |v|. */
static basin_expr binary_entropy(basin_expr v) {
    basin_expr w = basin_neg(v), u = basin_abs(v), below = basin_neg(u);
    basin_expr value = basin_add(basin_softplus(below), basin_mul(u, basin_sigmoid(below)));
    return valued(value, basin_add(basin_mul(basin_sigmoid(v), basin_softplus(w)),
                                   basin_mul(basin_sigmoid(w), basin_softplus(v))));
}

TERM(tanh_value, basin_div(basin_lncosh(basin_mul(p->beta, x)), p->beta))
TERM(tanh_activation, basin_tanh(basin_mul(p->beta, x)))
/* (1 + g)/2 = sigmoid(2 beta x), so E = (ln 2 - entropy) / beta. */
static basin_expr tanh_energy(const parameters *p, basin_expr x) {
    basin_expr entropy = binary_entropy(basin_scale(basin_mul(p->beta, x), 2));
    return basin_div(basin_offset(basin_neg(entropy), log(2)), p->beta);
}

TERM(sigmoid_value, basin_mul(basin_div(p->scale, p->beta), basin_softplus(basin_mul(p->beta, x))))
TERM(sigmoid_activation, basin_mul(p->scale, basin_sigmoid(basin_mul(p->beta, x))))
static basin_expr sigmoid_energy(const parameters *p, basin_expr x) {
    basin_expr entropy = binary_entropy(basin_mul(p->beta, x));
    return basin_neg(basin_mul(basin_div(p->scale, p->beta), entropy));
}

/* ---- along rows ---- */

static basin_expr row_sum(basin_expr a) { return basin_sum(a, -1, 1); }

static int64_t row_length(basin_expr x) { return x->shape.dim[x->shape.rank - 1]; }

/* log-sum-exp of a row y = z - max z, true to the last digit where one entry dominates (log1p),
 * from its probabilities p; derivatives are those of the plain one. */
static basin_expr exact_logsumexp(basin_expr y, basin_expr p) {
    basin_expr top = basin_equal(y, basin_scalar(y->graph, 0));
    basin_expr others = row_sum(basin_mul(p, basin_sub(basin_scalar(y->graph, 1), top)));
    basin_expr rest =
        basin_add(basin_div(others, basin_max(p, -1, 1)), basin_offset(row_sum(top), -1));
    return valued(basin_log1p(rest), basin_logsumexp(y, -1));
}

/* sum of p ln p over the row, p = softmax(z), moved to a maximum of 0 first, so that ln p is not a
 * small difference of large numbers; the shift has no gradient. */
static basin_expr negative_entropy(basin_expr z) {
    basin_expr top = basin_stop_gradient(basin_as_column(basin_max(z, -1, 1)));
    basin_expr y = basin_sub(z, top), p = basin_softmax(z, -1);
    if (!y || !p) return NULL;
    return basin_sub(row_sum(basin_mul(p, y)), exact_logsumexp(y, p));
}

TERM(softmax_value, basin_div(basin_logsumexp(basin_mul(p->beta, x), -1), p->beta))
TERM(softmax_activation, basin_softmax(basin_mul(p->beta, x), -1))
TERM(softmax_energy, basin_div(negative_entropy(basin_mul(p->beta, x)), p->beta))

/* A softmax whose row has one more entry, the ghost, with score 0. */
static basin_expr with_ghost(const parameters *p, basin_expr x) {
    basin_expr z = basin_mul(p->beta, x);
    if (p->weight) z = basin_add(z, basin_log(p->weight));
    return basin_pad(z, -1, 0, 1);
}
TERM(ghostmax_value, basin_div(basin_logsumexp(with_ghost(p, x), -1), p->beta))
TERM(ghostmax_activation, basin_slice(basin_softmax(with_ghost(p, x), -1), -1, 0, row_length(x)))
static basin_expr ghostmax_energy(const parameters *p, basin_expr x) {
    basin_expr sum = negative_entropy(with_ghost(p, x));
    if (p->weight)
        sum = basin_sub(sum, row_sum(basin_mul(ghostmax_activation(p, x), basin_log(p->weight))));
    return basin_div(sum, p->beta);
}

/* <delta, x> belongs to L once, whatever the number of rows: delta lies along the row. */
static basin_expr add_delta(const parameters *p, basin_expr sum, basin_expr x) {
    return p->delta ? basin_add(sum, row_sum(basin_mul(p->delta, x))) : sum;
}

/* sqrt(var + epsilon) of each row */
static basin_expr deviation(const parameters *p, basin_expr x) {
    basin_expr centred = basin_sub(x, basin_as_column(basin_mean(x, -1, 1)));
    return basin_sqrt(basin_offset(basin_mean(basin_square(centred), -1, 1), p->epsilon));
}
static basin_expr layernorm_value(const parameters *p, basin_expr x) {
    basin_expr norm = basin_scale(basin_mul(p->gamma, deviation(p, x)), (double)row_length(x));
    return add_delta(p, norm, x);
}
static basin_expr layernorm_activation(const parameters *p, basin_expr x) {
    basin_shape row = BASIN_SHAPE(row_length(x));
    basin_expr delta = p->delta ? p->delta : basin_full(x->graph, row, 0);
    return basin_layernorm(x, p->gamma, delta, p->epsilon);
}
static basin_expr layernorm_energy(const parameters *p, basin_expr x) {
    basin_expr constant = basin_scale(p->gamma, -p->epsilon * (double)row_length(x));
    return basin_div(constant, deviation(p, x));
}

TERM(radius, basin_sqrt(basin_offset(row_sum(basin_square(x)), p->epsilon)))
TERM(spherical_value, add_delta(p, basin_mul(p->gamma, radius(p, x)), x))
static basin_expr spherical_activation(const parameters *p, basin_expr x) {
    basin_expr g = basin_mul(x, basin_as_column(basin_div(p->gamma, radius(p, x))));
    return p->delta ? basin_add(g, p->delta) : g;
}
TERM(spherical_energy, basin_div(basin_scale(p->gamma, -p->epsilon), radius(p, x)))

/* ---- by name ---- */

static const formula table[] = {
    {"identity", false, identity_value, identity_activation, identity_value},
    {"relu", false, repu_value, repu_activation, repu_energy},
    {"repu", false, repu_value, repu_activation, repu_energy},
    {"exp", false, exp_value, exp_activation, exp_energy},
    {"rexp", false, rexp_value, rexp_activation, rexp_energy},
    {"tanh", false, tanh_value, tanh_activation, tanh_energy},
    {"sigmoid", false, sigmoid_value, sigmoid_activation, sigmoid_energy},
    {"softmax", true, softmax_value, softmax_activation, softmax_energy},
    {"ghostmax", true, ghostmax_value, ghostmax_activation, ghostmax_energy},
    {"layernorm", true, layernorm_value, layernorm_activation, layernorm_energy},
    {"spherical", true, spherical_value, spherical_activation, spherical_energy},
};
enum { FORMULAS = sizeof table / sizeof *table };

const char *basin_lagrangian_name(int i) { return i >= 0 && i < FORMULAS ? table[i].name : NULL; }

/* The formula of that name. A number at the end of "repu" is its power, written to *power. */
static const formula *find(const char *name, double *power) {
    size_t letters = strcspn(name, "0123456789.");
    for (int i = 0; i < FORMULAS; i++) {
        if (strlen(table[i].name) != letters || strncmp(name, table[i].name, letters) != 0)
            continue;
        if (!name[letters]) return &table[i];
        char *end;
        *power = basin_real_read(name + letters, &end);
        return *end == 0 && table[i].value == repu_value ? &table[i] : NULL;
    }
    return NULL;
}

static basin_expr or_number(basin_graph *graph, basin_expr a, double value) {
    return a ? a : basin_scalar(graph, value);
}

static bool check_parameters(basin_graph *graph, const char *name, const parameters *p) {
    if (!p->beta || !p->scale || !p->gamma) return false;
    if (!(p->power >= 2))
        return basin_graph_fail(graph, BASIN_BAD_VALUE,
                                "Lagrangian '%s': power %g, expected 2 or more", name, p->power);
    if (!(p->epsilon > 0))
        return basin_graph_fail(graph, BASIN_BAD_VALUE,
                                "Lagrangian '%s': epsilon %g, expected more than 0", name,
                                p->epsilon);
    if (basin_expr_is_const(p->beta) && !(p->beta->node->attr.value > 0))
        return basin_graph_fail(graph, BASIN_BAD_VALUE,
                                "Lagrangian '%s': beta %g, expected more than 0", name,
                                p->beta->node->attr.value);
    return true;
}

/* The formula and the completed parameters, or NULL with an error in the graph. */
static const formula *resolve(parameters *p, const basin_lagrangian *l, basin_graph *graph) {
    const char *name = l->name ? l->name : "identity";
    double power = l->power != 0 ? l->power : 2;
    const formula *f = find(name, &power);
    if (!f) {
        basin_graph_fail(graph, BASIN_BAD_VALUE,
                         "there is no Lagrangian '%s'; expected one of identity, relu, repu, exp, "
                         "rexp, tanh, sigmoid, softmax, ghostmax, layernorm, spherical",
                         name);
        return NULL;
    }
    *p = (parameters){.beta = or_number(graph, l->beta, 1),
                      .scale = or_number(graph, l->scale, 1),
                      .gamma = or_number(graph, l->gamma, 1),
                      .delta = l->delta,
                      .weight = l->weight,
                      .power = strcmp(f->name, "relu") == 0 ? 2 : power,
                      .epsilon = l->epsilon != 0 ? l->epsilon : 1e-5};
    if (!check_parameters(graph, name, p)) return NULL;
    if (f->rows && l->beta && p->beta->shape.rank != 0) {
        basin_graph_fail(graph, BASIN_BAD_SHAPE, "Lagrangian '%s': beta is %s, expected []", name,
                         basin_expr_text(p->beta));
        return NULL;
    }
    if (!basin_expr_is_const(p->beta))
        p->beta = basin_maximum(p->beta, basin_scalar(graph, min_beta));
    return f;
}

/* ---- rows along other axes ---- */

/* How the axes of x are ordered to bring the rows to the end. */
typedef struct row_view {
    int first, count; /* the axes of a row */
    int order[BASIN_MAX_RANK];
    basin_shape moved;  /* x's shape in that order */
    basin_shape merged; /* with the axes of a row as one */
} row_view;

static bool view_rows(row_view *view, const basin_lagrangian *l, basin_expr x, int batch) {
    int rank = x->shape.rank, axis = l->axis ? l->axis : -1, count = l->axes ? l->axes : 1;
    if (axis > 0 || rank + axis < batch || count < 1 || axis + count > 0)
        return basin_graph_fail(x->graph, BASIN_BAD_SHAPE,
                                "Lagrangian '%s': %d axes from %d on, for states %s with %d "
                                "batch axes",
                                l->name, count, axis, basin_expr_text(x), batch);
    *view = (row_view){.first = rank + axis, .count = count, .moved.rank = rank};
    int k = 0;
    for (int i = 0; i < rank; i++)
        if (i < view->first || i >= view->first + count) view->order[k++] = i;
    for (int i = 0; i < count; i++) view->order[k++] = view->first + i;
    for (int i = 0; i < rank; i++) view->moved.dim[i] = x->shape.dim[view->order[i]];
    view->merged = view->moved;
    view->merged.rank = rank - count + 1;
    for (int i = 1; i < count; i++)
        view->merged.dim[rank - count] *= view->moved.dim[rank - count + i];
    return true;
}

static basin_expr to_rows(const row_view *view, basin_expr x) {
    return basin_reshape(basin_permute(x, view->order), view->merged);
}

static basin_expr from_rows(const row_view *view, basin_expr g) {
    int back[BASIN_MAX_RANK] = {0};
    for (int i = 0; i < view->moved.rank; i++) back[view->order[i]] = i;
    return basin_permute(basin_reshape(g, view->moved), back);
}

/* ---- the three functions ---- */

static basin_expr sum_after(basin_expr a, int batch) {
    return a ? basin_sum(a, batch, a->shape.rank - batch) : NULL;
}

static basin_expr own_value(const basin_lagrangian *l, basin_expr x, int batch) {
    basin_expr terms = l->custom(x, l->context);
    if (!terms)
        return basin_graph_fail(x->graph, BASIN_BAD_VALUE,
                                "a custom Lagrangian returned NULL for states %s",
                                basin_expr_text(x));
    for (int i = 0; i < batch; i++)
        if (terms->shape.rank < batch || terms->shape.dim[i] != x->shape.dim[i])
            return basin_graph_fail(x->graph, BASIN_BAD_SHAPE,
                                    "a custom Lagrangian has shape %s for states of shape %s; "
                                    "expected one number per sample, [%lld, ..]",
                                    basin_shape_text(terms->shape), basin_shape_text(x->shape),
                                    (long long)x->shape.dim[0]);
    return sum_after(terms, batch);
}

static bool check_batch(basin_expr x, int batch) {
    if (!x) return false;
    if (batch >= 0 && batch <= x->shape.rank) return true;
    return basin_graph_fail(x->graph, BASIN_BAD_SHAPE, "%d batch axes of states %s", batch,
                            basin_expr_text(x));
}

/* The value (or the energy) of a named Lagrangian. */
static basin_expr reduced(const basin_lagrangian *l, basin_expr x, int batch, bool energy) {
    parameters p;
    row_view view;
    const formula *f = resolve(&p, l, x->graph);
    if (!f || (f->rows && !view_rows(&view, l, x, batch))) return NULL;
    if (f->rows) x = to_rows(&view, x);
    return x ? sum_after((energy ? f->energy : f->value)(&p, x), batch) : NULL;
}

basin_expr basin_lagrangian_value(const basin_lagrangian *lagrangian, basin_expr x, int batch) {
    if (!check_batch(x, batch)) return NULL;
    if (lagrangian->custom) return own_value(lagrangian, x, batch);
    return reduced(lagrangian, x, batch, false);
}

basin_expr basin_lagrangian_activation(const basin_lagrangian *lagrangian, basin_expr x) {
    parameters p;
    row_view view;
    if (!x) return NULL;
    if (lagrangian->custom) {
        x = basin_variable(x);
        return x ? basin_grad(own_value(lagrangian, x, 0), x) : NULL;
    }
    const formula *f = resolve(&p, lagrangian, x->graph);
    if (!f) return NULL;
    if (!f->rows) return basin_broadcast_to(f->activation(&p, x), x->shape);
    if (!view_rows(&view, lagrangian, x, 0)) return NULL;
    basin_expr rows = to_rows(&view, x);
    return rows ? from_rows(&view, f->activation(&p, rows)) : NULL;
}

basin_expr basin_lagrangian_energy(const basin_lagrangian *lagrangian, basin_expr x, int batch) {
    if (!check_batch(x, batch)) return NULL;
    if (!lagrangian->custom) return reduced(lagrangian, x, batch, true);
    basin_expr g = basin_lagrangian_activation(lagrangian, x);
    return basin_sub(sum_after(basin_mul(x, g), batch), own_value(lagrangian, x, batch));
}
