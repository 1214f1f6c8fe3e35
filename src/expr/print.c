/* Expressions in messages: their name, or the operation they come from, and their shape. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "expr/graph.h"

enum { SHOWN = 3, LONGEST = 48 }; /* operands of an operation, characters of a name */

static size_t put_name(char *text, size_t size, basin_expr a) {
    if (a->node->name)
        snprintf(text, size, "'%.*s'", LONGEST, a->node->name);
    else if (basin_expr_is_const(a))
        snprintf(text, size, "%g", a->node->attr.value);
    else
        snprintf(text, size, "..");
    return strlen(text);
}

/* matmul('x', 'w'): one level, which shows where in a formula to look. */
static size_t put_operation(char *text, size_t size, const basin_node *node) {
    size_t used = 0;
    int shown = 0;
    for (const char *name = basin_op_name(node->op); *name; name++)
        text[used++] = (char)tolower((unsigned char)*name);
    text[used++] = '(';
    for (int i = 0; i < node->ins && shown < SHOWN; i++) {
        if (!node->in[i]) continue;
        if (shown++) used += strlen(strcpy(text + used, ", "));
        used += put_name(text + used, size - used, node->in[i]);
    }
    text[used++] = ')';
    text[used] = 0;
    return used;
}

char *basin_expr_print(char text[BASIN_EXPR_TEXT], basin_expr a) {
    char shape[BASIN_SHAPE_TEXT];
    const basin_node *node = a->node;
    bool leaf = node->name || basin_expr_is_const(a);
    size_t used =
        leaf ? put_name(text, BASIN_EXPR_TEXT, a) : put_operation(text, BASIN_EXPR_TEXT, node);
    snprintf(text + used, BASIN_EXPR_TEXT - used, " %s", basin_shape_print(shape, a->shape));
    return text;
}
