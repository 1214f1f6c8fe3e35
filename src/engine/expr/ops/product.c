/* Matrix products, with their reverse: two more matrix products. */

#include "base/shape.h"
#include "base/try.h"
#include "engine/expr/graph.h"

static basin_expr mismatch(basin_expr a, bool ta, basin_expr b, bool tb) {
    return basin_graph_fail(a->graph, BASIN_BAD_SHAPE, "matmul: %s%s and %s%s do not multiply",
                            basin_expr_text(a), ta ? " (transposed)" : "", basin_expr_text(b),
                            tb ? " (transposed)" : "");
}

static basin_expr product(basin_expr a, bool transpose_a, basin_expr b, bool transpose_b) {
    int ra = a->shape.rank, rb = b->shape.rank;
    if (ra == 1 && rb == 2 && !transpose_a) { /* a vector is a matrix of one row */
        basin_expr row = basin_reshape(a, BASIN_SHAPE(1, a->shape.dim[0]));
        basin_expr out = basin_matmul_t(row, false, b, transpose_b);
        return out ? basin_reshape(out, basin_shape_drop(out->shape, 0, 1)) : NULL;
    }
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

/* Elements of a as matrices of r rows and c columns, of which `shape` has the leading axes. */
static basin_expr as_rows(basin_expr a, basin_shape shape, int64_t r, int64_t c) {
    shape.dim[shape.rank - 2] = r;
    shape.dim[shape.rank - 1] = c;
    return basin_reshape(a, shape);
}

/* The product of a column and a row, or of rows and a vector, for each of a stack of matrices, as
 * pointwise operations and sums: what reuses nothing is cheaper together with what is before and
 * after it. NULL: it is neither. */
static basin_expr thin_product(basin_expr a, bool ta, basin_expr b, bool tb) {
    enum { SHORT = 256 }; /* sums of up to 256 take a program for their operand; see fuse.c */
    int rank = a->shape.rank;
    if (rank < 3 || b->shape.rank != rank) return NULL;
    int64_t m = a->shape.dim[rank - 1 - !ta], k = a->shape.dim[rank - 1 - ta];
    int64_t n = b->shape.dim[rank - 1 - tb];
    if (k == 1) return basin_mul(as_rows(a, a->shape, m, 1), as_rows(b, b->shape, 1, n));
    bool column = n == 1 && (!ta || m == 1), row = m == 1 && (tb || n == 1);
    if (k > SHORT || (!column && !row)) return NULL;
    basin_expr all = basin_mul(as_rows(a, a->shape, m, k), as_rows(b, b->shape, n, k));
    return as_rows(basin_sum(all, -1, 1), a->shape, m, n);
}

/* For a plan, constant factors move after the product, where they cost nothing. */
basin_expr basin_matmul_t(basin_expr a, bool transpose_a, basin_expr b, bool transpose_b) {
    if (!a || !b) return NULL;
    if (!a->graph->simplify) return product(a, transpose_a, b, transpose_b);
    double factor = basin_split_factor(&a) * basin_split_factor(&b);
    basin_expr thin = a->graph->thin ? thin_product(a, transpose_a, b, transpose_b) : NULL;
    return basin_scale(thin ? thin : product(a, transpose_a, b, transpose_b), factor);
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

BASIN_RULE(matmul) {
    basin_expr a = node->in[0], b = node->in[1], c = cotangent[0];
    bool ta = node->attr.transpose_a, tb = node->attr.transpose_b;
    if (want[0]) grad[0] = ta ? basin_matmul_t(b, tb, c, true) : basin_matmul_t(c, false, b, !tb);
    if (!want[1]) return;
    if (b->shape.rank == 2) a = flatten_rows(a), c = flatten_rows(c);
    grad[1] = tb ? basin_matmul_t(c, true, a, ta) : basin_matmul_t(a, !ta, c, false);
}

/* Contractions: two operands as [batch, m, k] x [batch, k, n]; letters twice: the diagonal. */

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
    char straight[3 * BASIN_MAX_RANK + 1], swapped[3 * BASIN_MAX_RANK + 1];
    strcat(strcat(strcpy(straight, c->batch), first), second);
    strcat(strcat(strcpy(swapped, c->batch), second), first);
    *transposed = strcmp(letters, straight) != 0 && strcmp(letters, swapped) == 0;
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

/* ---- any number of operands ---- */

typedef struct term {
    char letters[BASIN_MAX_RANK + 1];
    basin_expr a;
} term;

typedef struct einsum {
    term term[BASIN_MAX_EINSUM];
    int terms;
    char out[BASIN_MAX_RANK + 1];
    int64_t dim[128];
} einsum;

static bool read_letters(char *set, const char **text) {
    set[0] = 0;
    for (; **text >= 'a' && **text <= 'z'; (*text)++) {
        if (strlen(set) == BASIN_MAX_RANK) return false;
        push(set, **text);
    }
    return true;
}

static bool is_repeated(const char *letters, int i) { return strchr(letters + i + 1, letters[i]); }

static bool parse(einsum *e, const char *spec) {
    for (int i = 0; i < e->terms; i++) {
        if (!read_letters(e->term[i].letters, &spec)) return false;
        if (i + 1 < e->terms && *spec++ != ',') return false;
    }
    if (*spec++ != '-' || *spec++ != '>') return false;
    if (!read_letters(e->out, &spec) || *spec != 0) return false;
    for (int i = 0; e->out[i]; i++)
        if (is_repeated(e->out, i)) return false;
    return true;
}

/* Gives every letter its length; false where an operand has another rank or length. */
static bool bind(einsum *e) {
    for (int t = 0; t < e->terms; t++) {
        const char *letters = e->term[t].letters;
        basin_shape shape = e->term[t].a->shape;
        if ((int)strlen(letters) != shape.rank) return false;
        for (int i = 0; letters[i]; i++) {
            int64_t *dim = &e->dim[(int)letters[i]];
            if (*dim >= 0 && *dim != shape.dim[i]) return false;
            *dim = shape.dim[i];
        }
    }
    for (const char *l = e->out; *l; l++)
        if (e->dim[(int)*l] < 0) return false;
    return true;
}

static void drop_letter(char *letters, int i) {
    memmove(letters + i, letters + i + 1, strlen(letters + i));
}

/* The diagonal of two axes with one letter becomes the last axis. */
static void take_diagonals(term *t) {
    for (int i = 0; t->a && t->letters[i]; i++) {
        if (!is_repeated(t->letters, i)) continue;
        char letter = t->letters[i];
        int other = (int)(strchr(t->letters + i + 1, letter) - t->letters);
        t->a = basin_diagonal(t->a, i, other);
        drop_letter(t->letters, other);
        drop_letter(t->letters, i);
        push(t->letters, letter);
        i = -1;
    }
}

/* Whether a letter is asked for by the result or by operands from `from` on. */
static bool is_used(const einsum *e, char letter, int from) {
    bool used = strchr(e->out, letter);
    for (int t = from; t < e->terms; t++) used = used || strchr(e->term[t].letters, letter);
    return used;
}

/* The product of what there is and operand t; false where the result has too many axes. */
static bool join(einsum *e, term *so_far, int t) {
    contraction c = {0};
    const char *const from[2] = {so_far->letters, e->term[t].letters};
    memcpy(c.dim, e->dim, sizeof c.dim);
    strcpy(c.a, from[0]);
    strcpy(c.b, from[1]);
    for (int side = 0; side < 2; side++)
        for (const char *l = from[side]; *l; l++) {
            if (strchr(c.out, *l) || !is_used(e, *l, t + 1)) continue;
            if (strlen(c.out) == BASIN_MAX_RANK) return false;
            push(c.out, *l);
        }
    if (t + 1 == e->terms) strcpy(c.out, e->out);
    if (!classify(&c)) return false;
    so_far->a = contract(&c, so_far->a, e->term[t].a);
    strcpy(so_far->letters, c.out);
    return true;
}

static basin_expr misfit(const char *spec, const basin_expr *a, int count) {
    if (count == 1)
        return basin_graph_fail(a[0]->graph, BASIN_BAD_SHAPE, "einsum: '%s' does not fit %s", spec,
                                basin_expr_text(a[0]));
    return basin_graph_fail(a[0]->graph, BASIN_BAD_SHAPE, "einsum: '%s' does not fit %s and %s%s",
                            spec, basin_expr_text(a[0]), basin_expr_text(a[1]),
                            count > 2 ? " .." : "");
}

basin_expr basin_einsum_many(const char *spec, const basin_expr *a, int count) {
    einsum e = {.terms = count};
    for (int i = 0; i < count; i++)
        if (!a[i]) return NULL;
    if (count < 1) return NULL;
    if (count > BASIN_MAX_EINSUM)
        return basin_graph_fail(a[0]->graph, BASIN_UNSUPPORTED,
                                "einsum: '%s' of %d operands, expected 1 to %d", spec, count,
                                BASIN_MAX_EINSUM);
    for (int i = 0; i < 128; i++) e.dim[i] = -1;
    for (int i = 0; i < count; i++) e.term[i].a = a[i];
    if (!parse(&e, spec) || !bind(&e)) return misfit(spec, a, count);
    for (int i = 0; i < count; i++) take_diagonals(&e.term[i]);
    term so_far = e.term[0];
    for (int t = 1; t < count; t++) {
        if (!so_far.a || !e.term[t].a) return NULL;
        if (!join(&e, &so_far, t)) return misfit(spec, a, count);
    }
    if (count == 1) so_far.a = drop_lonely(so_far.a, so_far.letters, "", e.out);
    return so_far.a ? reorder(so_far.a, so_far.letters, e.out) : NULL;
}

/* Convolution and pooling over [B, h, w, C]: formulas of patches, so derivatives follow. */

static basin_expr bad_window(basin_expr x, const char *what, const char *window) {
    return basin_graph_fail(x->graph, BASIN_BAD_SHAPE, "%s: %s and the window %s do not fit", what,
                            basin_expr_text(x), window);
}

/* The windows of `size` elements along an axis, `step` apart, their elements along the last axis.
 * The axis is cut into groups of `step`: a part of all windows is a slice. */
static basin_expr windows(basin_expr x, int axis, int64_t size, int step) {
    if (!x) return NULL;
    int last = x->shape.rank - 1;
    int64_t n = x->shape.dim[axis], width = x->shape.dim[last], count = (n - size) / step + 1;
    int64_t parts = (size + step - 1) / step, groups = count - 1 + parts, whole = groups * step;
    x = whole > n ? basin_pad(x, axis, 0, whole - n) : basin_slice(x, axis, 0, whole);
    if (!x) return NULL;
    basin_shape grouped = x->shape;
    for (int i = grouped.rank++; i > axis + 1; i--) grouped.dim[i] = grouped.dim[i - 1];
    grouped.dim[axis] = groups, grouped.dim[axis + 1] = step;
    x = basin_axis_back(basin_axis_last(basin_reshape(x, grouped), axis + 1), last);
    BASIN_FREE_AT_EXIT basin_expr *part = basin_array_new((size_t)parts, sizeof *part);
    if (!part || !x)
        return basin_graph_fail(basin_expr_graph(x), BASIN_NO_MEMORY, "out of memory for patches");
    basin_shape joined = basin_shape_drop(x->shape, last, 1);
    joined.dim[axis] = count, joined.dim[last] = step * width;
    for (int64_t i = 0; i < parts; i++)
        part[i] = basin_reshape(basin_slice(x, axis, i, count), joined);
    return basin_slice(basin_concat(part, (int)parts, -1), -1, 0, size * width);
}

/* [B, h', w', rows columns C] */
static basin_expr patches(basin_expr x, int64_t rows, int64_t columns, int step) {
    return windows(windows(x, 2, columns, step), 1, rows, step);
}

basin_expr basin_conv2d(basin_expr x, basin_expr kernel, int stride, bool same) {
    if (!x || !kernel) return NULL;
    basin_shape xs = x->shape, ks = kernel->shape;
    if (xs.rank != 4 || ks.rank != 4 || xs.dim[3] != ks.dim[2] || stride < 1)
        return bad_window(x, "conv2d", basin_expr_text(kernel));
    for (int i = 0; i < 2; i++) {
        int64_t in = xs.dim[1 + i], k = ks.dim[i], out = (in + stride - 1) / stride;
        int64_t missing = same ? (out - 1) * stride + k - in : 0;
        if (k < 1 || in < 1 || (!same && in < k))
            return bad_window(x, "conv2d", basin_expr_text(kernel));
        if (missing > 0) x = basin_pad(x, 1 + i, missing / 2, missing - missing / 2);
    }
    basin_shape matrix = BASIN_SHAPE(ks.dim[0] * ks.dim[1] * ks.dim[2], ks.dim[3]);
    return basin_matmul(patches(x, ks.dim[0], ks.dim[1], stride), basin_reshape(kernel, matrix));
}

/* [B, h', w', C, cells of a window] */
static basin_expr pool_cells(basin_expr x, int window, int stride) {
    basin_shape s = x->shape;
    if (s.rank != 4 || window < 1 || stride < 1 || s.dim[1] < window || s.dim[2] < window)
        return bad_window(x, "pool2d", basin_shape_text(BASIN_SHAPE(window, window)));
    x = patches(x, window, window, stride);
    if (!x) return NULL;
    basin_shape cells = {5,
                         {s.dim[0], x->shape.dim[1], x->shape.dim[2], window * window, s.dim[3]}};
    return basin_axis_last(basin_reshape(x, cells), 3);
}

basin_expr basin_pool2d(basin_expr x, basin_pool kind, int window, int stride) {
    if (!x || kind == BASIN_POOL_NONE) return x;
    basin_expr cells = pool_cells(x, window, stride);
    if (!cells || kind == BASIN_POOL_AVERAGE) return basin_mean(cells, -1, 1);
    basin_expr first = basin_one_hot(basin_argmax(cells, -1), cells->shape.dim[4]);
    return basin_sum(basin_where(first, cells, basin_scalar(cells->graph, 0)), -1, 1);
}
