/* Matrix products and contractions, with their reverse: two more matrix products. */
#include <string.h>

#include "expr/graph.h"

static basin_expr mismatch(basin_expr a, bool ta, basin_expr b, bool tb) {
    char x[BASIN_EXPR_TEXT], y[BASIN_EXPR_TEXT];
    return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "matmul: %s%s and %s%s do not multiply",
                            basin_expr_print(x, a), ta ? " (transposed)" : "",
                            basin_expr_print(y, b), tb ? " (transposed)" : "");
}

/* a vector is a matrix of one row */
static basin_expr matmul_vector(basin_expr a, basin_expr b, bool tb) {
    basin_expr row = basin_reshape(a, BASIN_SHAPE(1, a->shape.dim[0]));
    basin_expr out = basin_matmul_t(row, false, b, tb);
    return out ? basin_reshape(out, basin_shape_drop(out->shape, 0, 1)) : NULL;
}

static basin_expr product(basin_expr a, bool transpose_a, basin_expr b, bool transpose_b) {
    int ra = a->shape.rank, rb = b->shape.rank;
    if (ra == 1 && rb == 2 && !transpose_a) return matmul_vector(a, b, transpose_b);
    if (ra < 2 || rb < 2 || (rb > 2 && ra != rb) || (rb == 2 && ra > 2 && transpose_a))
        return mismatch(a, transpose_a, b, transpose_b);
    int64_t m = a->shape.dim[ra - 1 - !transpose_a], ka = a->shape.dim[ra - 1 - transpose_a];
    int64_t n = b->shape.dim[rb - 1 - transpose_b], kb = b->shape.dim[rb - 1 - !transpose_b];
    bool fits = ka == kb;
    for (int i = 0; rb > 2 && i < rb - 2; i++) fits = fits && a->shape.dim[i] == b->shape.dim[i];
    if (!fits) return mismatch(a, transpose_a, b, transpose_b);
    basin_shape shape = a->shape;
    shape.dim[ra - 2] = m;
    shape.dim[ra - 1] = n;
    basin_attr attr = {.transpose_a = transpose_a, .transpose_b = transpose_b};
    return basin_node_single(a->graph, BASIN_OP_MATMUL, &attr, (basin_expr[]){a, b}, 2, shape);
}

double basin_split_factor(basin_expr *a) {
    const basin_node *node = (*a)->node;
    if (node->op == BASIN_OP_NEG) {
        *a = node->in[0];
        return -1;
    }
    if (node->op != BASIN_OP_MUL || !basin_expr_is_const(node->in[0])) return 1;
    *a = node->in[1];
    return node->in[0]->node->attr.value;
}

/* For a plan, constant factors move behind the product, where they cost nothing and the operand can
 * be shared with whoever else reads it. */
basin_expr basin_matmul_t(basin_expr a, bool transpose_a, basin_expr b, bool transpose_b) {
    if (!a || !b) return NULL;
    if (!a->graph->simplify) return product(a, transpose_a, b, transpose_b);
    double factor = basin_split_factor(&a) * basin_split_factor(&b);
    return basin_scale(product(a, transpose_a, b, transpose_b), factor);
}
basin_expr basin_matmul(basin_expr a, basin_expr b) { return basin_matmul_t(a, false, b, false); }

/* All leading axes merged: [.., k] -> [rows, k]. */
static basin_expr flatten_rows(basin_expr a) {
    if (!a || a->shape.rank == 2) return a;
    int64_t k = a->shape.dim[a->shape.rank - 1];
    int64_t rows = 1;
    for (int i = 0; i < a->shape.rank - 1; i++) rows *= a->shape.dim[i];
    return basin_reshape(a, BASIN_SHAPE(rows, k));
}

void basin_rule_matmul(basin_node *node, const basin_expr *cotangent, const bool *want,
                       basin_expr *grad) {
    basin_expr a = node->in[0], b = node->in[1], c = cotangent[0];
    bool ta = node->attr.transpose_a, tb = node->attr.transpose_b;
    if (want[0]) grad[0] = ta ? basin_matmul_t(b, tb, c, true) : basin_matmul_t(c, false, b, !tb);
    if (!want[1]) return;
    if (b->shape.rank == 2) a = flatten_rows(a), c = flatten_rows(c);
    grad[1] = tb ? basin_matmul_t(c, true, a, ta) : basin_matmul_t(a, !ta, c, false);
}

/* ---- einsum: two operands brought to [batch, m, k] x [batch, k, n] ---- */

typedef struct contraction {
    char a[BASIN_MAX_RANK + 1], b[BASIN_MAX_RANK + 1], out[BASIN_MAX_RANK + 1];
    char batch[BASIN_MAX_RANK + 1], m[BASIN_MAX_RANK + 1], n[BASIN_MAX_RANK + 1],
        k[BASIN_MAX_RANK + 1];
    int64_t dim[128];
} contraction;

static void push(char *set, char letter) {
    size_t n = strlen(set);
    if (n < BASIN_MAX_RANK) set[n] = letter, set[n + 1] = 0;
}

static bool read_letters(char *set, const char **text) {
    set[0] = 0;
    for (; **text >= 'a' && **text <= 'z'; (*text)++) {
        if (strchr(set, **text) || strlen(set) == BASIN_MAX_RANK) return false;
        push(set, **text);
    }
    return true;
}

static bool parse(contraction *c, const char *spec) {
    if (!read_letters(c->a, &spec) || *spec++ != ',') return false;
    if (!read_letters(c->b, &spec) || *spec++ != '-' || *spec++ != '>') return false;
    return read_letters(c->out, &spec) && *spec == 0;
}

static bool bind(contraction *c, const char *letters, basin_expr a) {
    if ((int)strlen(letters) != a->shape.rank) return false;
    for (int i = 0; letters[i]; i++) {
        int64_t *dim = &c->dim[(int)letters[i]];
        if (*dim >= 0 && *dim != a->shape.dim[i]) return false;
        *dim = a->shape.dim[i];
    }
    return true;
}

/* Sorts the letters into roles; false if one of out is in neither operand. */
static bool classify(contraction *c) {
    for (const char *l = c->out; *l; l++) {
        bool in_a = strchr(c->a, *l), in_b = strchr(c->b, *l);
        if (!in_a && !in_b) return false;
        push(in_a && in_b ? c->batch : in_a ? c->m : c->n, *l);
    }
    for (const char *l = c->a; *l; l++)
        if (strchr(c->b, *l) && !strchr(c->out, *l)) push(c->k, *l);
    return true;
}

/* Sums away the letters that only this operand has. */
static basin_expr drop_lonely(basin_expr a, char *letters, const char *other, const char *out) {
    for (int i = (int)strlen(letters) - 1; a && i >= 0; i--) {
        if (strchr(other, letters[i]) || strchr(out, letters[i])) continue;
        a = basin_sum(a, i, 1);
        memmove(letters + i, letters + i + 1, strlen(letters + i));
    }
    return a;
}

static int64_t volume(const contraction *c, const char *letters) {
    int64_t count = 1;
    for (; *letters; letters++) count *= c->dim[(int)*letters];
    return count;
}

static basin_expr reorder(basin_expr a, const char *from, const char *to) {
    int axes[BASIN_MAX_RANK];
    for (int i = 0; to[i]; i++) axes[i] = (int)(strchr(from, to[i]) - from);
    return basin_permute(a, axes);
}

/* Lays an operand out as [batch, first, second], or as its transpose where it lies so already. */
static basin_expr lay_out(const contraction *c, basin_expr a, const char *letters,
                          const char *first, const char *second, bool *transposed) {
    char straight[3 * BASIN_MAX_RANK + 1], turned[3 * BASIN_MAX_RANK + 1];
    strcat(strcat(strcpy(straight, c->batch), first), second);
    strcat(strcat(strcpy(turned, c->batch), second), first);
    *transposed = strcmp(letters, straight) != 0 && strcmp(letters, turned) == 0;
    if (!*transposed) a = reorder(a, letters, straight);
    int64_t x = volume(c, *transposed ? second : first);
    int64_t y = volume(c, *transposed ? first : second);
    return *c->batch ? basin_reshape(a, BASIN_SHAPE(volume(c, c->batch), x, y))
                     : basin_reshape(a, BASIN_SHAPE(x, y));
}

static basin_expr contract(contraction *c, basin_expr a, basin_expr b) {
    bool ta, tb;
    char natural[3 * BASIN_MAX_RANK + 1];
    basin_shape shape = {0};
    a = drop_lonely(a, c->a, c->b, c->out);
    b = drop_lonely(b, c->b, c->a, c->out);
    if (!a || !b) return NULL;
    a = lay_out(c, a, c->a, c->m, c->k, &ta);
    b = lay_out(c, b, c->b, c->k, c->n, &tb);
    basin_expr out = basin_matmul_t(a, ta, b, tb);
    strcat(strcat(strcpy(natural, c->batch), c->m), c->n);
    shape.rank = (int)strlen(natural);
    for (int i = 0; i < shape.rank; i++) shape.dim[i] = c->dim[(int)natural[i]];
    return out ? reorder(basin_reshape(out, shape), natural, c->out) : NULL;
}

basin_expr basin_einsum(const char *spec, basin_expr a, basin_expr b) {
    char x[BASIN_EXPR_TEXT], y[BASIN_EXPR_TEXT];
    contraction c = {0};
    if (!a || !b) return NULL;
    for (int i = 0; i < 128; i++) c.dim[i] = -1;
    if (!parse(&c, spec) || !bind(&c, c.a, a) || !bind(&c, c.b, b) || !classify(&c))
        return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "einsum: '%s' does not fit %s and %s",
                                spec, basin_expr_print(x, a), basin_expr_print(y, b));
    return contract(&c, a, b);
}
