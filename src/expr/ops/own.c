/* Pointwise operations of the caller's own, with derivatives that the caller gives. */
#include <string.h>

#include "expr/graph.h"

_Static_assert((int)BASIN_OWN_OPERANDS == (int)BASIN_OWN_INS,
               "backends make room for as many operands");

static basin_graph *graph_of(const basin_own *own, const basin_expr *x) {
    for (int i = 0; i < own->operands; i++)
        if (!x[i]) return NULL;
    return x[0]->graph;
}

static basin_expr refuse(basin_graph *graph, const basin_own *own, const char *why) {
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

/* NULL where it has the form of a body. What it says is the compiler's affair. */
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
            return "has a directive (#) in its source for cuda; wanted a function's body";
        depth += (*s == '{') - (*s == '}');
        if (depth < 0) return "has a } without its { in its source for cuda";
        s++;
    }
    if (!s) return "has a comment without an end in its source for cuda";
    return depth ? "has a { without its } in its source for cuda" : NULL;
}

basin_expr basin_own_apply(const basin_own *own, const basin_expr *x) {
    char text[2][BASIN_SHAPE_TEXT];
    if (!own || !x || !x[0]) return NULL;
    if (!own->name || !own->value || own->operands < 1 || own->operands > BASIN_OWN_OPERANDS)
        return refuse(x[0]->graph, own, "lacks a name, a value or 1 to 3 operands");
    basin_graph *graph = graph_of(own, x);
    if (!graph) return NULL;
    const char *fault = own->cuda ? source_fault(own->cuda) : NULL;
    if (fault) return refuse(graph, own, fault);
    basin_shape shape = x[0]->shape;
    for (int i = 0; i < own->operands; i++) {
        basin_shape both;
        if (x[i]->kind != BASIN_REAL)
            return refuse(graph, own, "of an index tensor; wanted numbers");
        if (!basin_shape_meet(&both, shape, x[i]->shape))
            return basin_graph_fail(graph, BASIN_BAD_SHAPE, "%s: %s does not broadcast with %s",
                                    own->name, basin_shape_print(text[0], x[i]->shape),
                                    basin_shape_print(text[1], shape));
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
    const basin_own *own = node->attr.own;
    if (own->slope) return own->slope(own, node->in, i);
    if (own->derivative[i]) return basin_own_apply(own->derivative[i], node->in);
    return basin_graph_fail(node->in[0]->graph, BASIN_UNSUPPORTED,
                            "the operation '%s' has no derivative by operand %d; wanted a slope or "
                            "an operation for it",
                            own->name, i);
}

void basin_rule_own(basin_node *node, const basin_expr *cotangent, const bool *want,
                    basin_expr *grad) {
    for (int i = 0; i < node->ins; i++) {
        basin_expr slope = want[i] ? derivative(node, i) : NULL;
        if (slope) grad[i] = basin_sum_to(basin_mul(cotangent[0], slope), node->in[i]->shape);
    }
}
