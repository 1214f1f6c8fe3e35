/* Pointwise functions with broadcasting, and their reverse rules side by side in one table.
 *
 * The builders simplify as they go (x + 0, 1 * x, constants folded, broadcasts read through), so
 * that gradients, which are made of such pieces, stay small. */
#include <math.h>
#include <string.h>

#include "base/shape.h"
#include "engine/expr/graph.h"

/* The shape to which a and b broadcast; false if they do not. */
static bool shape_meet(basin_shape *out, basin_shape a, basin_shape b) {
    int rank = a.rank > b.rank ? a.rank : b.rank;
    *out = (basin_shape){.rank = rank};
    if (rank > BASIN_MAX_RANK) return false;
    for (int i = 1; i <= rank; i++) {
        int64_t x = i <= a.rank ? a.dim[a.rank - i] : 1, y = i <= b.rank ? b.dim[b.rank - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        out->dim[rank - i] = x == 1 ? y : x;
    }
    return true;
}

/* Sums `a` over the axes along which `shape` was broadcast to a's shape. */
static basin_expr sum_to(basin_expr a, basin_shape shape) {
    if (!a || basin_shape_equal(a->shape, shape)) return a;
    basin_expr sum = basin_sum(a, 0, a->shape.rank - shape.rank);
    for (int i = shape.rank - 1; sum && i >= 0; i--) {
        if (shape.dim[i] != 1 || sum->shape.dim[i] == 1) continue;
        int first = i;
        while (first > 0 && shape.dim[first - 1] == 1) first--;
        basin_shape ones = sum->shape;
        for (int k = first; k <= i; k++) ones.dim[k] = 1;
        sum = basin_reshape(basin_sum(sum, first, i - first + 1), ones);
        i = first;
    }
    return sum;
}

static double fold_unary(basin_op op, double a, double value) {
    switch (op) {
    case BASIN_OP_NEG: return -a;
    case BASIN_OP_ABS: return fabs(a);
    case BASIN_OP_SQRT: return sqrt(a);
    case BASIN_OP_EXP: return exp(a);
    case BASIN_OP_LOG: return log(a);
    case BASIN_OP_POW: return pow(a, value);
    default: return NAN;
    }
}

static basin_expr unary(basin_op op, basin_expr a, double value);

/* What op(a) simplifies to, or NULL. */
static basin_expr simplify_unary(basin_op op, basin_expr a, double value) {
    const basin_node *node = a->node;
    if (op == BASIN_OP_NEG && node->op == BASIN_OP_NEG) return node->in[0];
    if (op == BASIN_OP_NEG && node->op == BASIN_OP_MUL && basin_expr_is_const(node->in[0]))
        return basin_mul(basin_neg(node->in[0]), node->in[1]);
    if (node->op == BASIN_OP_COPY)
        return basin_broadcast_to(unary(op, node->in[0], value), a->shape);
    return NULL;
}

static basin_expr unary(basin_op op, basin_expr a, double value) {
    if (!a) return NULL;
    if (a->kind != BASIN_REAL)
        return basin_graph_fail(a->graph, BASIN_BAD_VALUE, "arithmetic on the index tensor '%s'",
                                basin_expr_name(a));
    if (basin_expr_is_const(a)) {
        double folded = fold_unary(op, a->node->attr.value, value);
        if (isfinite(folded)) return basin_scalar(a->graph, folded);
    }
    if (a->graph->simplify) {
        basin_expr simple = simplify_unary(op, a, value);
        if (simple) return simple;
    }
    basin_attr attr = {.value = value};
    return basin_node_single(a->graph, op, &attr, &a, 1, a->shape);
}

basin_expr basin_neg(basin_expr a) { return unary(BASIN_OP_NEG, a, 0); }
basin_expr basin_abs(basin_expr a) { return unary(BASIN_OP_ABS, a, 0); }
basin_expr basin_sign(basin_expr a) { return unary(BASIN_OP_SIGN, a, 0); }
basin_expr basin_sqrt(basin_expr a) { return unary(BASIN_OP_SQRT, a, 0); }
basin_expr basin_exp(basin_expr a) { return unary(BASIN_OP_EXP, a, 0); }
basin_expr basin_log(basin_expr a) { return unary(BASIN_OP_LOG, a, 0); }
basin_expr basin_log1p(basin_expr a) { return unary(BASIN_OP_LOG1P, a, 0); }
basin_expr basin_expm1(basin_expr a) { return unary(BASIN_OP_EXPM1, a, 0); }
basin_expr basin_tanh(basin_expr a) { return unary(BASIN_OP_TANH, a, 0); }
basin_expr basin_sigmoid(basin_expr a) { return unary(BASIN_OP_SIGMOID, a, 0); }
basin_expr basin_softplus(basin_expr a) { return unary(BASIN_OP_SOFTPLUS, a, 0); }
basin_expr basin_lncosh(basin_expr a) { return unary(BASIN_OP_LNCOSH, a, 0); }
basin_expr basin_relu(basin_expr a) { return unary(BASIN_OP_RELU, a, 0); }
basin_expr basin_heaviside(basin_expr a) { return unary(BASIN_OP_STEP, a, 0); }
basin_expr basin_sin(basin_expr a) { return unary(BASIN_OP_SIN, a, 0); }
basin_expr basin_cos(basin_expr a) { return unary(BASIN_OP_COS, a, 0); }
basin_expr basin_erf(basin_expr a) { return unary(BASIN_OP_ERF, a, 0); }

basin_expr basin_power_scalar(basin_expr a, double exponent) {
    if (a && exponent == 0) return basin_full(a->graph, a->shape, 1);
    if (exponent == 1) return a;
    if (exponent == 2) return basin_mul(a, a);
    if (exponent == 0.5) return basin_sqrt(a);
    return unary(BASIN_OP_POW, a, exponent);
}

basin_expr basin_power(basin_expr a, basin_expr exponent) {
    return basin_exp(basin_mul(exponent, basin_log(a)));
}

basin_expr basin_square(basin_expr a) { return basin_mul(a, a); }
basin_expr basin_reciprocal(basin_expr a) {
    return a ? basin_div(basin_scalar(a->graph, 1), a) : NULL;
}
basin_expr basin_scale(basin_expr a, double factor) {
    return a ? basin_mul(basin_scalar(a->graph, factor), a) : NULL;
}
basin_expr basin_offset(basin_expr a, double term) {
    return a ? basin_add(a, basin_scalar(a->graph, term)) : NULL;
}

/* Copies with the operand's shape: one that blocks gradients, marked by its count, and one that is
 * equal to no other, marked by a unique number. Plans contain neither. */
basin_expr basin_stop_gradient(basin_expr a) {
    basin_attr attr = {.count = 1};
    return a ? basin_node_single(a->graph, BASIN_OP_COPY, &attr, &a, 1, a->shape) : NULL;
}

basin_expr basin_variable(basin_expr a) {
    if (!a) return NULL;
    basin_attr attr = {.start = ++a->graph->variables};
    return basin_node_single(a->graph, BASIN_OP_COPY, &attr, &a, 1, a->shape);
}

basin_expr basin_variable_source(basin_expr variable) {
    const basin_node *node = variable ? variable->node : NULL;
    return node && node->op == BASIN_OP_COPY && node->attr.start ? node->in[0] : variable;
}

basin_expr basin_broadcast_to(basin_expr a, basin_shape shape) {
    basin_shape both;
    basin_attr attr = {0};
    if (!a || basin_shape_equal(a->shape, shape)) return a;
    if (!shape_meet(&both, a->shape, shape) || !basin_shape_equal(both, shape))
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "broadcast: %s does not repeat to %s",
                                basin_expr_text(a), basin_shape_text(shape));
    if (a->graph->simplify && basin_expr_op(a) == BASIN_OP_COPY) a = a->node->in[0];
    return basin_node_single(a->graph, BASIN_OP_COPY, &attr, &a, 1, shape);
}

basin_expr basin_full(basin_graph *graph, basin_shape shape, double value) {
    return basin_broadcast_to(basin_scalar(graph, value), shape);
}

static double fold_binary(basin_op op, double a, double b) {
    switch (op) {
    case BASIN_OP_ADD: return a + b;
    case BASIN_OP_SUB: return a - b;
    case BASIN_OP_MUL: return a * b;
    case BASIN_OP_DIV: return a / b;
    case BASIN_OP_MAX2: return fmax(a, b);
    case BASIN_OP_MIN2: return fmin(a, b);
    default: return NAN;
    }
}

static bool is_value(basin_expr a, double value) {
    return basin_expr_is_const(a) && a->node->attr.value == value;
}

/* Whether `slope` is 1 where y, a multiple of a relu, is not 0. */
static bool is_slope_of(basin_expr slope, basin_expr y) {
    if (basin_expr_op(slope) != BASIN_OP_STEP) return false;
    if (basin_expr_op(y) == BASIN_OP_NEG) y = y->node->in[0];
    if (basin_expr_op(y) == BASIN_OP_MUL && basin_expr_is_const(y->node->in[0])) y = y->node->in[1];
    return basin_expr_op(y) == BASIN_OP_RELU && slope->node->in[0] == y;
}

/* What a op b simplifies to, or NULL. Shapes have been checked; `shape` is the result's. */
static basin_expr simplify(basin_op op, basin_expr a, basin_expr b, basin_shape shape) {
    if (basin_expr_is_const(a) && basin_expr_is_const(b)) {
        double folded = fold_binary(op, a->node->attr.value, b->node->attr.value);
        if (isfinite(folded)) return basin_scalar(a->graph, folded);
    }
    bool additive = op == BASIN_OP_ADD || op == BASIN_OP_SUB;
    bool product = op == BASIN_OP_MUL || op == BASIN_OP_DIV;
    if ((additive && is_value(b, 0)) || (product && is_value(b, 1)))
        return basin_broadcast_to(a, shape);
    if ((op == BASIN_OP_ADD && is_value(a, 0)) || (op == BASIN_OP_MUL && is_value(a, 1)))
        return basin_broadcast_to(b, shape);
    if (op == BASIN_OP_ADD && a == b) return basin_scale(a, 2);
    /* relu(x) is already 0 where its slope is. */
    if (op == BASIN_OP_MUL && is_slope_of(b, a)) return a;
    if (op == BASIN_OP_MUL && is_slope_of(a, b)) return b;
    if (op == BASIN_OP_SUB && is_value(a, 0)) return basin_broadcast_to(basin_neg(b), shape);
    if (op == BASIN_OP_MUL && is_value(a, -1)) return basin_broadcast_to(basin_neg(b), shape);
    return NULL;
}

/* The same, looking into the operands: for graphs that are not differentiated any more. x - x and
 * 0 x become 0 here even where x is not finite, and plans compute neither: a NaN of x shows in x
 * itself, not in these. Tokens that are held in place depend on it. */
static basin_expr simplify_signs(basin_op op, basin_expr a, basin_expr b) {
    if (op == BASIN_OP_ADD && basin_expr_op(a) == BASIN_OP_NEG) return basin_sub(b, a->node->in[0]);
    if (op == BASIN_OP_ADD && basin_expr_op(b) == BASIN_OP_NEG) return basin_sub(a, b->node->in[0]);
    if (op == BASIN_OP_SUB && basin_expr_op(b) == BASIN_OP_NEG) return basin_add(a, b->node->in[0]);
    /* held + mask (x - held), where x is held: masks only gradients. */
    if (op == BASIN_OP_SUB && a == b) return basin_scalar(a->graph, 0);
    if (op == BASIN_OP_MUL && is_value(a, 0)) return a;
    /* c1 * (c2 * x) = (c1 c2) * x, and the sign of a product moves into its constant. */
    if (op == BASIN_OP_MUL && basin_expr_is_const(a)) {
        if (basin_expr_op(b) == BASIN_OP_MUL && basin_expr_is_const(b->node->in[0]))
            return basin_mul(basin_mul(a, b->node->in[0]), b->node->in[1]);
        if (basin_expr_op(b) == BASIN_OP_NEG) return basin_mul(basin_neg(a), b->node->in[0]);
    }
    return NULL;
}

/* Whether the operands are usable and broadcast; on success *shape is the result's. */
static bool check_binary(basin_shape *shape, basin_op op, basin_expr a, basin_expr b) {
    if (!a || !b) return false;
    if (a->graph != b->graph)
        return basin_graph_fail(a->graph, BASIN_BAD_VALUE, "%s: operands of different graphs",
                                basin_op_name(op));
    if (a->kind != BASIN_REAL || b->kind != BASIN_REAL)
        return basin_graph_fail(a->graph, BASIN_BAD_VALUE, "%s: arithmetic on the index tensor %s",
                                basin_op_name(op), basin_expr_text(a->kind != BASIN_REAL ? a : b));
    if (!shape_meet(shape, a->shape, b->shape))
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "%s: %s and %s do not broadcast",
                                basin_op_name(op), basin_expr_text(a), basin_expr_text(b));
    return true;
}

/* Reads through a broadcast where the other operand already brings the full shape. */
static basin_expr skip_broadcast(basin_expr a, basin_expr other, basin_shape shape) {
    basin_shape both;
    if (basin_expr_op(a) != BASIN_OP_COPY) return a;
    basin_expr source = a->node->in[0];
    bool same = shape_meet(&both, source->shape, other->shape) && basin_shape_equal(both, shape);
    return same ? source : a;
}

/* What a broadcast repeats; anything else is itself. */
static basin_expr unrepeated(basin_expr a) {
    return basin_expr_op(a) == BASIN_OP_COPY ? a->node->in[0] : a;
}

/* Constants first in products; else the order of making: equal expressions are found equal. */
static void order_operands(basin_op op, basin_expr *a, basin_expr *b) {
    bool commutes = op == BASIN_OP_ADD || op == BASIN_OP_MUL || op == BASIN_OP_MAX2 ||
                    op == BASIN_OP_MIN2 || op == BASIN_OP_EQUAL;
    bool constant = basin_expr_is_const(*a) || basin_expr_is_const(*b);
    bool swap = constant ? !basin_expr_is_const(*a) : (*a)->id > (*b)->id;
    if (!commutes || !swap) return;
    basin_expr kept = *a;
    *a = *b;
    *b = kept;
}

static basin_expr binary(basin_op op, basin_expr a, basin_expr b) {
    basin_shape shape, small;
    if (!check_binary(&shape, op, a, b)) return NULL;
    if (a->graph->simplify) {
        /* Repeating comes after computing: what is computed stays small. */
        basin_expr x = unrepeated(a), y = unrepeated(b);
        if (shape_meet(&small, x->shape, y->shape) && !basin_shape_equal(small, shape))
            return basin_broadcast_to(binary(op, x, y), shape);
        a = skip_broadcast(a, b, shape);
        b = skip_broadcast(b, a, shape);
    }
    order_operands(op, &a, &b);
    basin_expr simple = simplify(op, a, b, shape);
    if (!simple && a->graph->simplify) simple = simplify_signs(op, a, b);
    if (simple) return basin_broadcast_to(simple, shape);
    basin_attr attr = {0};
    return basin_node_single(a->graph, op, &attr, (basin_expr[]){a, b}, 2, shape);
}

basin_expr basin_add(basin_expr a, basin_expr b) { return binary(BASIN_OP_ADD, a, b); }
basin_expr basin_sub(basin_expr a, basin_expr b) { return binary(BASIN_OP_SUB, a, b); }
basin_expr basin_mul(basin_expr a, basin_expr b) { return binary(BASIN_OP_MUL, a, b); }
basin_expr basin_div(basin_expr a, basin_expr b) { return binary(BASIN_OP_DIV, a, b); }
basin_expr basin_maximum(basin_expr a, basin_expr b) { return binary(BASIN_OP_MAX2, a, b); }
basin_expr basin_minimum(basin_expr a, basin_expr b) { return binary(BASIN_OP_MIN2, a, b); }
basin_expr basin_greater(basin_expr a, basin_expr b) { return binary(BASIN_OP_GREATER, a, b); }
basin_expr basin_equal(basin_expr a, basin_expr b) { return binary(BASIN_OP_EQUAL, a, b); }

basin_expr basin_where(basin_expr where, basin_expr yes, basin_expr no) {
    basin_shape inner, shape;
    if (!where || !check_binary(&inner, BASIN_OP_SELECT, yes, no)) return NULL;
    if (!shape_meet(&shape, where->shape, inner))
        return basin_graph_fail(where->graph, BASIN_BAD_SHAPE,
                                "select: the condition %s does not broadcast with %s",
                                basin_expr_text(where), basin_shape_text(inner));
    basin_attr attr = {0};
    return basin_node_single(where->graph, BASIN_OP_SELECT, &attr, (basin_expr[]){where, yes, no},
                             3, shape);
}

basin_expr basin_pointwise(basin_op op, const basin_expr *in, double value) {
    if (op == BASIN_OP_SELECT) return basin_where(in[0], in[1], in[2]);
    if (op >= BASIN_OP_ADD) return binary(op, in[0], in[1]);
    return op == BASIN_OP_POW ? basin_power_scalar(in[0], value) : unary(op, in[0], value);
}

/* d f(a) / d a for the functions of one operand; y = f(a) is at hand. NULL: zero. */
static basin_expr slope(const basin_node *node, basin_expr a, basin_expr y) {
    basin_graph *graph = a->graph;
    double p = node->attr.value;
    switch (node->op) {
    case BASIN_OP_NEG: return basin_scalar(graph, -1);
    case BASIN_OP_ABS: return basin_sign(a);
    case BASIN_OP_SQRT: return basin_div(basin_scalar(graph, 0.5), y);
    case BASIN_OP_EXP: return y;
    case BASIN_OP_LOG: return basin_reciprocal(a);
    case BASIN_OP_LOG1P: return basin_reciprocal(basin_offset(a, 1));
    case BASIN_OP_EXPM1: return basin_offset(y, 1);
    case BASIN_OP_TANH: return basin_sub(basin_scalar(graph, 1), basin_square(y));
    case BASIN_OP_SIGMOID: return basin_mul(y, basin_sub(basin_scalar(graph, 1), y));
    case BASIN_OP_SOFTPLUS: return basin_sigmoid(a);
    case BASIN_OP_LNCOSH: return basin_tanh(a);
    case BASIN_OP_RELU: return basin_heaviside(y); /* y > 0 where a > 0: a need not be kept */
    case BASIN_OP_SIN: return basin_cos(a);
    case BASIN_OP_COS: return basin_neg(basin_sin(a));
    case BASIN_OP_ERF:
        return basin_scale(basin_exp(basin_neg(basin_square(a))), 2 / sqrt(acos(-1)));
    case BASIN_OP_POW: return basin_scale(basin_power_scalar(a, p - 1), p);
    case BASIN_OP_COPY: return node->attr.count ? NULL : basin_scalar(graph, 1);
    default: return NULL; /* SIGN, STEP */
    }
}

/* Where two operands tie in a maximum, each gets half. */
static basin_expr share_of_maximum(basin_expr a, basin_expr y, basin_expr other) {
    basin_expr tie = basin_equal(a, other);
    return basin_mul(basin_equal(a, y), basin_offset(basin_scale(tie, -0.5), 1));
}

static void rule_binary(basin_node *node, basin_expr c, const bool *want, basin_expr *grad) {
    basin_expr a = node->in[0], b = node->in[1], y = node->out[0];
    basin_expr da = NULL, db = NULL;
    switch (node->op) {
    case BASIN_OP_ADD: da = db = c; break;
    case BASIN_OP_SUB: da = c, db = want[1] ? basin_neg(c) : NULL; break;
    case BASIN_OP_MUL:
        if (want[0]) da = basin_mul(c, b);
        if (want[1]) db = basin_mul(c, a);
        break;
    case BASIN_OP_DIV:
        if (want[0]) da = basin_div(c, b);
        if (want[1]) db = basin_neg(basin_div(basin_mul(c, y), b));
        break;
    case BASIN_OP_MAX2:
    case BASIN_OP_MIN2:
        if (want[0]) da = basin_mul(c, share_of_maximum(a, y, b));
        if (want[1]) db = basin_mul(c, share_of_maximum(b, y, a));
        break;
    default: break; /* GREATER, EQUAL: flat */
    }
    if (want[0] && da) grad[0] = sum_to(da, a->shape);
    if (want[1] && db) grad[1] = sum_to(db, b->shape);
}

BASIN_RULE(pointwise) {
    basin_expr c = cotangent[0], first = node->in[0];
    if (node->ins == 1) {
        basin_expr factor = slope(node, first, node->out[0]);
        if (factor) grad[0] = sum_to(basin_mul(c, factor), first->shape);
    } else if (node->ins == 2) {
        rule_binary(node, c, want, grad);
    } else { /* select */
        basin_expr zero = basin_scalar(c->graph, 0);
        if (want[1]) grad[1] = sum_to(basin_where(first, c, zero), node->in[1]->shape);
        if (want[2]) grad[2] = sum_to(basin_where(first, zero, c), node->in[2]->shape);
    }
}

/* ---- Pointwise operations of the caller's own, with derivatives that the caller gives ---- */

_Static_assert((int)BASIN_MAX_CUSTOM_OPERANDS == (int)BASIN_OWN_INS,
               "backends make room for as many operands");

static basin_expr refuse(basin_graph *graph, const basin_custom_op *own, const char *why) {
    return basin_graph_fail(graph, BASIN_BAD_VALUE, "the operation '%s' %s",
                            own->name ? own->name : "", why);
}

/* ---- the form of a source, which stands inside a function among others ---- */

/* What follows a comment; NULL where it has no end. */
static const char *skip_comment(const char *s) {
    bool line = s[1] == '/';
    const char *end = line ? s + strcspn(s, "\n") : strstr(s + 2, "*/");
    return end && !line ? end + 2 : end;
}

/* What follows a text or a character in quotes. */
static const char *skip_quoted(const char *s) {
    char quote = *s++;
    while (*s && *s != quote) s += s[0] == '\\' && s[1] ? 2 : 1;
    return *s ? s + 1 : s;
}

/* NULL where it has the form of a body. Its content is left to the compiler. */
static const char *source_fault(const char *s) {
    int depth = 0;
    if (!s[strspn(s, " \t\r\n")]) return "has an empty source for cuda";
    while (s && *s) {
        if (s[0] == '/' && (s[1] == '/' || s[1] == '*')) {
            s = skip_comment(s);
            continue;
        }
        if (*s == '"' || *s == '\'') {
            s = skip_quoted(s);
            continue;
        }
        if (*s == '#')
            return "has a directive (#) in its source for cuda; expected a function's body";
        depth += (*s == '{') - (*s == '}');
        if (depth < 0) return "has a } without its { in its source for cuda";
        s++;
    }
    if (!s) return "has a comment without an end in its source for cuda";
    return depth ? "has a { without its } in its source for cuda" : NULL;
}

basin_expr basin_custom_apply(const basin_custom_op *own, const basin_expr *x) {
    if (!own || !x || !x[0]) return NULL;
    if (!own->name || !own->value || own->operands < 1 || own->operands > BASIN_MAX_CUSTOM_OPERANDS)
        return refuse(x[0]->graph, own, "lacks a name, a value or 1 to 3 operands");
    for (int i = 0; i < own->operands; i++)
        if (!x[i]) return NULL;
    basin_graph *graph = x[0]->graph;
    const char *fault = own->cuda ? source_fault(own->cuda) : NULL;
    if (fault) return refuse(graph, own, fault);
    basin_shape shape = x[0]->shape;
    for (int i = 0; i < own->operands; i++) {
        basin_shape both;
        if (x[i]->kind != BASIN_REAL)
            return refuse(graph, own, "of an index tensor; expected numbers");
        if (!shape_meet(&both, shape, x[i]->shape))
            return basin_graph_fail(graph, BASIN_BAD_SHAPE, "%s: %s does not broadcast with %s",
                                    own->name, basin_expr_text(x[i]),
                                    i == 1 ? basin_expr_text(x[0]) : basin_shape_text(shape));
        shape = both;
    }
    basin_attr attr = {.own = own,
                       .function = own->value,
                       .context = own->context,
                       .code = {own->name, own->cuda, own->operands}};
    return basin_node_single(graph, BASIN_OP_OWN, &attr, x, own->operands, shape);
}

/* Zero without a message, or NULL with one. */
static basin_expr derivative(const basin_node *node, int i) {
    const basin_custom_op *own = node->attr.own;
    if (own->slope) return own->slope(own, node->in, i);
    if (own->derivative[i]) return basin_custom_apply(own->derivative[i], node->in);
    return basin_graph_fail(
        node->in[0]->graph, BASIN_UNSUPPORTED,
        "the operation '%s' has no derivative by operand %d; expected a slope or "
        "an operation for it",
        own->name, i);
}

BASIN_RULE(own) {
    for (int i = 0; i < node->ins; i++) {
        basin_expr slope = want[i] ? derivative(node, i) : NULL;
        if (slope) grad[i] = sum_to(basin_mul(cotangent[0], slope), node->in[i]->shape);
    }
}

/* ---- functions that few formulas use: operations like a caller's own, without kernels ---- */

static double remainder_value(const double *x, BASIN_UNUSED const void *context) {
    double rest = fmod(x[0], x[1]);
    return rest != 0 && (rest < 0) != (x[1] < 0) ? rest + x[1] : rest;
}

/* 1 by a, -floor(a / b) by b */
static basin_expr remainder_slope(BASIN_UNUSED const basin_custom_op *own, const basin_expr *x,
                                  int i) {
    return i == 0 ? basin_scalar(x[0]->graph, 1) : basin_neg(basin_divmod(x[0], x[1], NULL));
}

static double quotient_value(const double *x, const void *context) {
    if (x[1] == 0) return x[0] / x[1];
    return x[1] == 1 ? floor(x[0]) : rint((x[0] - remainder_value(x, context)) / x[1]);
}

static basin_expr flat(BASIN_UNUSED const basin_custom_op *own, BASIN_UNUSED const basin_expr *x,
                       BASIN_UNUSED int i) {
    return NULL;
}

#define REMAINDER "float r = fmodf(x[0], x[1]); if (r != 0 && (r < 0) != (x[1] < 0)) r += x[1]; "

basin_expr basin_divmod(basin_expr a, basin_expr b, basin_expr *remainder) {
    static const basin_custom_op quotient = {.name = "floor of a quotient",
                                             .operands = 2,
                                             .value = quotient_value,
                                             .slope = flat,
                                             .cuda = REMAINDER
                                             "return x[1] == 1 ? floorf(x[0]) : "
                                             "x[1] == 0 ? x[0] / x[1] : rintf((x[0] - r) / x[1]);"};
    static const basin_custom_op rest = {.name = "remainder",
                                         .operands = 2,
                                         .value = remainder_value,
                                         .slope = remainder_slope,
                                         .cuda = REMAINDER "return r;"};
    if (remainder) *remainder = b ? basin_custom_apply(&rest, (basin_expr[]){a, b}) : NULL;
    return b ? basin_custom_apply(&quotient, (basin_expr[]){a, b}) : NULL;
}

static double atan2_value(const double *x, BASIN_UNUSED const void *context) {
    return atan2(x[0], x[1]);
}

/* x / (x^2 + y^2) by y, -y / (x^2 + y^2) by x */
static basin_expr atan2_slope(BASIN_UNUSED const basin_custom_op *own, const basin_expr *yx,
                              int i) {
    basin_expr squares = basin_add(basin_square(yx[0]), basin_square(yx[1]));
    return basin_div(i == 0 ? yx[1] : basin_neg(yx[0]), squares);
}

basin_expr basin_atan2(basin_expr y, basin_expr x) {
    static const basin_custom_op own = {.name = "atan2",
                                        .operands = 2,
                                        .value = atan2_value,
                                        .slope = atan2_slope,
                                        .cuda = "return atan2f(x[0], x[1]);"};
    return x ? basin_custom_apply(&own, (basin_expr[]){y, x}) : NULL;
}
