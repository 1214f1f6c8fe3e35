/* See formula.h. The grammar, loosest first:
 *
 *     sum      product (('+' | '-') product)*
 *     product  sign (('*' | '/' | '@') sign)*
 *     sign     ('-' | '+') sign | power
 *     power    part ('**' sign)?
 *     part     atom ('.T' | '[' place ']')*
 *     atom     NUMBER | NAME | NAME '(' argument (',' argument)* ')' | '(' sum ')'
 *     argument sum (('<' | '>') sum)?
 */
#include "formula.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A value: of one state, or one for each (then the first axis is the states'). */
typedef struct value {
    basin_expr e;
    bool batched;
    bool constant; /* a number that is known */
    double number;
} value;

typedef struct parser {
    formula *f;
    basin_graph *graph;
    basin_expr g;
    int at;
    int depth;
} parser;

enum { DEPTH = 60 };

static value sum(parser *p);

static value fail(parser *p, int place, const char *format, ...) {
    va_list list;
    if (!p->f->message[0]) {
        va_start(list, format);
        vsnprintf(p->f->message, sizeof p->f->message, format, list);
        va_end(list);
        p->f->place = place;
    }
    return (value){0};
}

static bool failed(const parser *p) { return p->f->message[0]; }

static char look(parser *p) {
    while (p->f->text[p->at] == ' ') p->at++;
    return p->f->text[p->at];
}

static bool take(parser *p, const char *symbol) {
    look(p);
    size_t length = strlen(symbol);
    if (strncmp(p->f->text + p->at, symbol, length)) return false;
    p->at += (int)length;
    return true;
}

/* What the library refused, or the expression. */
static value made(parser *p, int place, basin_expr e, bool batched) {
    const basin_error *error = basin_graph_error(p->graph);
    if (!e) return fail(p, place, "%s", error ? error->text : "no expression");
    return (value){.e = e, .batched = batched};
}

static value number(parser *p, double n) {
    return (value){.e = basin_scalar(p->graph, n), .constant = true, .number = n};
}

static int rank(value v) { return basin_expr_shape(v.e).rank - v.batched; }

/* The same value with ones before its own axes, so that it has `wanted` of them. */
static basin_expr widened(value v, int wanted) {
    int more = wanted - rank(v);
    return more > 0 && v.batched ? basin_expand_dims(v.e, 1, more) : v.e;
}

/* ---- operators ---- */

typedef basin_expr binary(basin_expr a, basin_expr b);

static value combine(parser *p, int place, binary *f, value a, value b) {
    if (failed(p)) return (value){0};
    int wanted = rank(a) > rank(b) ? rank(a) : rank(b);
    return made(p, place, f(widened(a, wanted), widened(b, wanted)), a.batched || b.batched);
}

/* As a matrix, or a stack of one a state where the other operand has one. */
static basin_expr matrix(value v, bool column, bool batched, int64_t states) {
    basin_expr e = v.e;
    if (rank(v) == 1) e = basin_expand_dims(e, v.batched + (column ? 1 : 0), 1);
    if (batched && !v.batched) {
        basin_shape s = basin_expr_shape(e);
        e = basin_broadcast_to(e, BASIN_SHAPE(states, s.dim[0], s.dim[1]));
    }
    return e;
}

static value multiply(parser *p, int place, value a, value b) {
    if (failed(p)) return (value){0};
    int ra = rank(a), rb = rank(b);
    if (ra < 1 || rb < 1 || ra > 2 || rb > 2)
        return fail(p, place, "@ multiplies vectors and matrices; a number needs *");
    basin_shape sa = basin_expr_shape(a.e), sb = basin_expr_shape(b.e);
    int64_t inner = sa.dim[sa.rank - 1], other = sb.dim[sb.rank - (rb == 1 ? 1 : 2)];
    if (inner != other)
        return fail(p, place, "@ of a last axis of %d and one of %d: they must be equal",
                    (int)inner, (int)other);
    bool batched = a.batched || b.batched;
    int64_t states = a.batched ? sa.dim[0] : b.batched ? sb.dim[0] : 1;
    basin_expr e =
        basin_matmul(matrix(a, false, batched, states), matrix(b, true, batched, states));
    basin_shape found = basin_expr_shape(e), shape = {0};
    for (int i = 0; e && i < found.rank; i++) { /* without the axes that vectors were given */
        bool row = i == found.rank - 2 && ra == 1, column = i == found.rank - 1 && rb == 1;
        if (!row && !column) shape.dim[shape.rank++] = found.dim[i];
    }
    return made(p, place, e ? basin_reshape(e, shape) : NULL, batched);
}

/* ---- functions ---- */

typedef basin_expr unary(basin_expr a);

static const struct {
    const char *name;
    unary *f;
} pointwise[] = {
    {"exp", basin_exp},         {"log", basin_log},           {"sqrt", basin_sqrt},
    {"abs", basin_abs},         {"sign", basin_sign},         {"tanh", basin_tanh},
    {"sin", basin_sin},         {"cos", basin_cos},           {"relu", basin_relu},
    {"sigmoid", basin_sigmoid}, {"softplus", basin_softplus}, {"lncosh", basin_lncosh},
    {"erf", basin_erf},         {"square", basin_square},     {"log1p", basin_log1p},
    {"expm1", basin_expm1},     {"step", basin_heaviside},
};

static const struct {
    const char *name;
    binary *f;
} pairwise[] = {
    {"maximum", basin_maximum},
    {"minimum", basin_minimum},
    {"greater", basin_greater},
    {"equal", basin_equal},
};

static basin_expr smallest(basin_expr a, int axis, int count) {
    return basin_neg(basin_max(basin_neg(a), axis, count));
}
static basin_expr length(basin_expr a, int axis, int count) {
    return basin_sqrt(basin_sum(basin_square(a), axis, count));
}

static const struct {
    const char *name;
    basin_expr (*f)(basin_expr a, int axis, int count);
} reductions[] = {
    {"sum", basin_sum}, {"mean", basin_mean}, {"max", basin_max},
    {"min", smallest},  {"norm", length},
};

/* Over all axes of a state, or over one. */
static value reduce(parser *p, int place, int which, value a, const value *axis) {
    int from = a.batched, count = rank(a);
    if (axis) {
        int wanted = axis->number < 0 ? rank(a) + (int)axis->number : (int)axis->number;
        if (!axis->constant || wanted < 0 || wanted >= rank(a) ||
            axis->number != rint(axis->number))
            return fail(p, place, "%s: its second argument is an axis of the first, which has %d",
                        reductions[which].name, rank(a));
        from += wanted, count = 1;
    }
    if (count == 0) return a;
    return made(p, place, reductions[which].f(a.e, from, count), a.batched);
}

static value layernorm(parser *p, int place, value a) {
    basin_shape shape = basin_expr_shape(a.e);
    if (rank(a) < 1) return fail(p, place, "layernorm of a number; it takes a vector");
    basin_expr zero = basin_full(p->graph, BASIN_SHAPE(shape.dim[shape.rank - 1]), 0);
    basin_expr one = basin_scalar(p->graph, 1);
    return made(p, place, basin_layernorm(a.e, one, zero, 1e-5), a.batched);
}

/* Every pair of rows but a row with itself: 0, and -1e9 on the diagonal. */
static value others(parser *p, int place, value a) {
    basin_shape s = basin_expr_shape(a.e);
    if (rank(a) != 2 || s.dim[s.rank - 1] != s.dim[s.rank - 2])
        return fail(p, place, "others: it takes a square matrix of scores");
    return made(p, place, basin_add(a.e, basin_scale(basin_eye(p->graph, s.dim[s.rank - 1]), -1e9)),
                a.batched);
}

/* where(condition, yes, no); a comparison is 1 or 0. */
static value choose(parser *p, int place, const value *a) {
    int wanted = 0;
    bool batched = false;
    for (int i = 0; i < 3; i++) {
        if (rank(a[i]) > wanted) wanted = rank(a[i]);
        batched = batched || a[i].batched;
    }
    basin_expr e[3];
    for (int i = 0; i < 3; i++) e[i] = widened(a[i], wanted);
    return made(p, place, basin_where(e[0], e[1], e[2]), batched);
}

static value call(parser *p, int place, const char *name, const value *a, int count) {
    for (size_t i = 0; i < sizeof pointwise / sizeof *pointwise; i++)
        if (!strcmp(name, pointwise[i].name)) {
            if (count != 1) return fail(p, place, "%s: it takes 1 argument, not %d", name, count);
            return made(p, place, pointwise[i].f(a[0].e), a[0].batched);
        }
    for (size_t i = 0; i < sizeof pairwise / sizeof *pairwise; i++)
        if (!strcmp(name, pairwise[i].name)) {
            if (count != 2) return fail(p, place, "%s: it takes 2 arguments, not %d", name, count);
            return combine(p, place, pairwise[i].f, a[0], a[1]);
        }
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (!strcmp(name, reductions[i].name)) {
            if (count > 2) return fail(p, place, "%s: it takes 1 or 2 arguments", name);
            return reduce(p, place, (int)i, a[0], count == 2 ? &a[1] : NULL);
        }
    if (!strcmp(name, "where")) {
        if (count != 3)
            return fail(p, place, "where: it takes 3 arguments, where(a > b, yes, no), not %d",
                        count);
        return choose(p, place, a);
    }
    if (!strcmp(name, "dot")) {
        if (count != 2) return fail(p, place, "dot: it takes 2 arguments, not %d", count);
        return multiply(p, place, a[0], a[1]);
    }
    if (count != 1) return fail(p, place, "%s: it takes 1 argument, not %d", name, count);
    if (!strcmp(name, "layernorm")) return layernorm(p, place, a[0]);
    if (!strcmp(name, "others")) return others(p, place, a[0]);
    if (!strcmp(name, "logsumexp") || !strcmp(name, "softmax")) {
        if (rank(a[0]) < 1) return fail(p, place, "%s of a number; it takes a vector", name);
        basin_expr e = name[0] == 'l' ? basin_logsumexp(a[0].e, -1) : basin_softmax(a[0].e, -1);
        return made(p, place, e, a[0].batched);
    }
    return fail(p, place, "%s: no such function", name);
}

/* ---- the grammar ---- */

static value named(parser *p, int place, const char *name) {
    if (!strcmp(name, "g")) return (value){.e = p->g, .batched = p->f->batched};
    if (!strcmp(name, "pi")) return number(p, 3.14159265358979323846);
    for (int i = 0; i < p->f->names; i++)
        if (!strcmp(name, p->f->name[i].name)) return (value){.e = p->f->name[i].value};
    char known[120] = "g";
    for (int i = 0; i < p->f->names; i++) {
        strncat(known, ", ", sizeof known - strlen(known) - 1);
        strncat(known, p->f->name[i].name, sizeof known - strlen(known) - 1);
    }
    return fail(p, place, "%s: no such name; there are %s", name, known);
}

static value argument(parser *p) {
    value v = sum(p);
    char c = failed(p) ? 0 : look(p);
    if (c != '<' && c != '>') return v;
    int place = p->at++;
    value other = sum(p);
    return c == '>' ? combine(p, place, basin_greater, v, other)
                    : combine(p, place, basin_greater, other, v);
}

static value arguments(parser *p, int place, const char *name) {
    value a[3] = {0};
    int count = 0;
    do {
        value v = argument(p);
        if (failed(p)) return (value){0};
        if (count < 3) a[count] = v;
        count++;
    } while (take(p, ","));
    if (!take(p, ")")) return fail(p, p->at, "a ) is missing");
    return call(p, place, name, a, count);
}

static value atom(parser *p) {
    char c = look(p), name[16];
    int place = p->at, length = 0;
    const char *text = p->f->text + p->at;
    if (isdigit((unsigned char)c) || c == '.') {
        char *end;
        double n = strtod(text, &end);
        if (end == text) return fail(p, place, "a number is expected");
        p->at += (int)(end - text);
        return number(p, n);
    }
    if (take(p, "(")) {
        value v = sum(p);
        return failed(p) || take(p, ")") ? v : fail(p, p->at, "a ) is missing");
    }
    if (!isalpha((unsigned char)c) && c != '_')
        return c ? fail(p, place, "'%c' does not belong here", c)
                 : fail(p, place, "the formula ends too soon");
    while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
    if (length >= (int)sizeof name) return fail(p, place, "%.*s: no such name", 40, text);
    memcpy(name, text, (size_t)length);
    name[length] = 0;
    p->at += length;
    return take(p, "(") ? arguments(p, place, name) : named(p, place, name);
}

/* One place along the first axis. */
static value subscript(parser *p, int place, value v) {
    value index = sum(p);
    if (failed(p)) return (value){0};
    if (!take(p, "]")) return fail(p, p->at, "a ] is missing");
    int64_t size = rank(v) > 0 ? basin_expr_shape(v.e).dim[v.batched] : 0;
    double i = index.number < 0 ? index.number + (double)size : index.number;
    if (!index.constant || i != rint(i) || i < 0 || i >= (double)size)
        return fail(p, place, "[ ] takes a whole number below %d here", (int)size);
    basin_shape shape = basin_expr_shape(v.e), less = {0};
    for (int k = 0; k < shape.rank; k++)
        if (k != v.batched) less.dim[less.rank++] = shape.dim[k];
    return made(p, place, basin_reshape(basin_slice(v.e, v.batched, (int64_t)i, 1), less),
                v.batched);
}

static value part(parser *p) {
    value v = atom(p);
    while (!failed(p)) {
        look(p);
        int place = p->at;
        if (take(p, ".T")) {
            v = rank(v) < 2 ? v : made(p, place, basin_transpose(v.e), v.batched);
        } else if (take(p, "[")) {
            v = subscript(p, place, v);
        } else {
            break;
        }
    }
    return v;
}

static value sign(parser *p);

static value power(parser *p) {
    value base = part(p);
    look(p);
    int place = p->at;
    if (failed(p) || !take(p, "**")) return base;
    value exponent = sign(p);
    if (failed(p)) return (value){0};
    if (base.constant && exponent.constant) return number(p, pow(base.number, exponent.number));
    if (exponent.constant)
        return made(p, place, basin_power_scalar(base.e, exponent.number), base.batched);
    return combine(p, place, basin_power, base, exponent);
}

static value sign(parser *p) {
    look(p);
    int place = p->at;
    if (p->depth++ > DEPTH) return fail(p, place, "too many parentheses and signs");
    value v;
    if (take(p, "-")) {
        v = sign(p);
        if (failed(p)) return (value){0};
        v = v.constant ? number(p, -v.number) : made(p, place, basin_neg(v.e), v.batched);
    } else {
        v = take(p, "+") ? sign(p) : power(p);
    }
    p->depth--;
    return v;
}

static value product(parser *p) {
    value v = sign(p);
    while (!failed(p)) {
        char c = look(p);
        int place = p->at;
        if (c != '*' && c != '/' && c != '@') break;
        p->at++;
        value other = sign(p);
        v = c == '@' ? multiply(p, place, v, other)
                     : combine(p, place, c == '*' ? basin_mul : basin_div, v, other);
    }
    return v;
}

static value sum(parser *p) {
    value v = product(p);
    while (!failed(p)) {
        char c = look(p);
        int place = p->at;
        if (c != '+' && c != '-') break;
        p->at++;
        v = combine(p, place, c == '+' ? basin_add : basin_sub, v, product(p));
    }
    return v;
}

basin_expr formula_build(formula *f, basin_expr g) {
    parser p = {.f = f, .graph = basin_expr_graph(g), .g = g};
    f->message[0] = 0;
    f->place = 0;
    value v = sum(&p);
    if (!failed(&p) && look(&p)) fail(&p, p.at, "'%c' does not belong here", look(&p));
    if (!failed(&p) && rank(v) != 0)
        fail(&p, 0, "an energy is one number, but this has %d axes: sum(..) adds them up", rank(v));
    if (failed(&p)) return NULL;
    if (f->batched && !v.batched)
        v.e = basin_broadcast_to(v.e, BASIN_SHAPE(basin_expr_shape(g).dim[0]));
    return v.e;
}
