/* Attention along lists in the tokens' own space. Where queries Wq g and keys Wk g are products of
 * the same tokens, and H Y is more than D, a force that reads tokens, with M_h = Wk_h' Wq_h between
 * them, gathers one row a pair instead of one a pair and head, and no tensor [N, H, Y] is there:
 *
 *     q = g Wq', k = g Wk';  dq, dk = force;  dq Wq + dk Wk         ->  dg = force(g, M)
 *     a = t Wq', b = t Wk';  gq, gk = reverse;  gq Wq + gk Wk       ->  gg, gM = reverse(g, M, t)
 *     gq' g + dq' t,  gk' g + dk' t                                 ->  Wk gM,  Wq gM'
 *
 * Products may be multiplied by constants, t by one that stands before a and b (the step's size).
 * An attention of which anything else is read stays as it is. */
#include "plan/ir.h"

enum { SIDES = 2, DEPTH = 100 };

/* The products of one side, queries or keys: instructions, -1 where there is none. */
typedef struct side {
    int weight;      /* a value, [H Y, D] */
    int onto, slope; /* dq W,  dq' t */
    int back, grad;  /* gq W,  gq' g */
} side;

/* A force, its reverse, or both. */
typedef struct family {
    int force, reverse; /* instructions; -1 */
    int g, t;           /* values */
    double step;        /* a = step t Wq', b likewise */
    side side[SIDES];
} family;

static bool same(const basin_ir *ir, int a, int b) {
    return (a < 0) == (b < 0) && (a < 0 || ir->value[a].root == ir->value[b].root);
}

static int64_t dim_of(const basin_ir *ir, int value, int axis) {
    return ir->value[value].shape.dim[axis];
}

/* ---- constant factors ---- */

/* The operand that the instruction multiplies by a constant, which goes into the factor; -1 where
 * it does something else. */
static int scaled_operand(const basin_ir *ir, int instruction, double *factor) {
    if (instruction < 0) return -1;
    const basin_ir_instruction *i = &ir->instruction[instruction];
    if (i->op == BASIN_OP_NEG) {
        *factor = -*factor;
        return i->in[0];
    }
    for (int k = 0; i->op == BASIN_OP_MUL && k < 2; k++) {
        const basin_node *leaf = ir->value[i->in[k]].leaf;
        if (!leaf || leaf->op != BASIN_OP_CONST) continue;
        *factor *= leaf->attr.value;
        return i->in[1 - k];
    }
    return -1;
}

/* What the value is a multiple of, or itself. */
static int unscaled(const basin_ir *ir, int value, double *factor) {
    int from = scaled_operand(ir, ir->value[ir->value[value].root].producer, factor);
    return from >= 0 ? from : value;
}

/* The one instruction that reads a value, -1 where several do, or it leaves the plan. */
static int reader_of(const basin_ir *ir, int value) {
    const basin_ir_value *v = &ir->value[value];
    if (v->uses != 1 || v->output || v->state) return -1;
    for (size_t i = 0; i < ir->instructions; i++)
        for (int k = 0; k < ir->instruction[i].ins && !ir->instruction[i].dead; k++)
            if (ir->instruction[i].in[k] >= 0 && ir->value[ir->instruction[i].in[k]].root == value)
                return (int)i;
    return -1;
}

/* A product as a term of a sum: its result, or the multiple of it that alone is read. */
static int term_of(const basin_ir *ir, int product, double *factor) {
    int value = ir->instruction[product].out[0];
    *factor = 1;
    for (;;) {
        int reader = reader_of(ir, value);
        if (scaled_operand(ir, reader, factor) < 0) return value;
        value = ir->instruction[reader].out[0];
    }
}

/* ---- finding ---- */

/* Whether the value is tokens times weights', of the instruction that computes it. */
static bool is_projection(const basin_ir *ir, int value, int *tokens, int *weight) {
    int producer = value < 0 ? -1 : ir->value[ir->value[value].root].producer;
    if (producer < 0) return false;
    const basin_ir_instruction *p = &ir->instruction[producer];
    if (p->op != BASIN_OP_MATMUL || p->attr.transpose_a || !p->attr.transpose_b) return false;
    *tokens = p->in[0], *weight = p->in[1];
    return ir->value[*tokens].shape.rank == 2 && ir->value[*weight].shape.rank == 2;
}

static bool is_listed(const basin_ir *ir, const basin_ir_instruction *i) {
    bool attention = i->op == BASIN_OP_ATTENTION_FORCE || i->op == BASIN_OP_ATTENTION_REVERSE;
    return attention && !i->dead && i->in[BASIN_ATT_ROW] >= 0 && i->in[BASIN_ATT_SCALE] < 0 &&
           i->in[BASIN_ATT_MIX] < 0 &&
           dim_of(ir, i->in[BASIN_ATT_Q], 1) == dim_of(ir, i->in[BASIN_ATT_K], 1);
}

static bool same_scores(const basin_ir *ir, const basin_ir_instruction *a,
                        const basin_ir_instruction *b) {
    for (int i = 0; i <= BASIN_ATT_W; i++)
        if (!same(ir, a->in[i], b->in[i])) return false;
    return true;
}

/* The one instruction of that kind with the same operands; -1: none, -2: several. */
static int partner_of(const basin_ir *ir, basin_op op, const basin_ir_instruction *like) {
    int found = -1;
    for (size_t i = 0; i < ir->instructions; i++) {
        const basin_ir_instruction *other = &ir->instruction[i];
        if (other->op != op || !is_listed(ir, other) || !same_scores(ir, other, like)) continue;
        if (found >= 0) return -2;
        found = (int)i;
    }
    return found;
}

/* Sorts the readers of a result into `onto` (by the side's weights) and `across` (transposed, by
 * tokens); false where something else reads it. */
static bool sort_readers(const basin_ir *ir, int result, int weight, int tokens, int *onto,
                         int *across) {
    *onto = *across = -1;
    if (result < 0 || ir->value[result].output || ir->value[result].state) return false;
    for (size_t i = 0; i < ir->instructions; i++) {
        const basin_ir_instruction *r = &ir->instruction[i];
        for (int k = 0; k < r->ins && !r->dead; k++) {
            if (r->in[k] < 0 || ir->value[r->in[k]].root != result) continue;
            if (r->op != BASIN_OP_MATMUL || k != 0 || r->attr.transpose_b) return false;
            bool turned = r->attr.transpose_a;
            int *found = turned ? across : onto;
            if (*found >= 0 || !same(ir, r->in[1], turned ? tokens : weight)) return false;
            *found = (int)i;
        }
    }
    return true;
}

/* ---- sums ---- */

/* The additions that a value goes through, one after the other, as the only reader's operand. */
static int climb(const basin_ir *ir, int value, int add[DEPTH]) {
    int count = 0;
    while (count < DEPTH) {
        int reader = reader_of(ir, value);
        if (reader < 0 || ir->instruction[reader].op != BASIN_OP_ADD) break;
        int out = ir->instruction[reader].out[0];
        if (basin_shape_count(ir->value[out].shape) != basin_shape_count(ir->value[value].shape))
            break;
        add[count++] = reader;
        value = out;
    }
    return count;
}

/* Whether two products are terms of one sum, the second times so much. */
static bool are_added(const basin_ir *ir, int first, int second, double times) {
    int a[DEPTH], b[DEPTH];
    double factor[2];
    if (first < 0 || second < 0) return first == second;
    int na = climb(ir, term_of(ir, first, &factor[0]), a);
    int nb = climb(ir, term_of(ir, second, &factor[1]), b);
    bool meet = false;
    for (int i = 0; i < na; i++)
        for (int k = 0; k < nb; k++) meet = meet || a[i] == b[k];
    if (!meet || factor[1] != factor[0] * times) return false;
    const basin_ir_value *out = &ir->value[ir->instruction[b[0]].out[0]]; /* that goes */
    return !out->output && !out->state;
}

/* Every reader of `value` reads `instead`. */
static void replace(basin_ir *ir, int value, int instead) {
    for (size_t v = 0; v < ir->values; v++)
        if (ir->value[v].root == value) ir->value[v].root = ir->value[instead].root;
}

/* Takes a product out of the sum that it is a term of. */
static void drop(basin_ir *ir, int product) {
    double factor;
    basin_ir_count_uses(ir);
    int value = term_of(ir, product, &factor);
    basin_ir_instruction *sum = &ir->instruction[reader_of(ir, value)];
    int other = ir->value[sum->in[0]].root == value ? sum->in[1] : sum->in[0];
    sum->dead = ir->instruction[product].dead = true;
    ir->instruction[ir->value[value].producer].dead = true;
    replace(ir, sum->out[0], other);
}

/* ---- what fits ---- */

static bool find_tokens(const basin_ir *ir, family *f, const basin_ir_instruction *i) {
    int g[SIDES], t[SIDES], weight;
    double step[SIDES] = {1, 1};
    for (int s = 0; s < SIDES; s++)
        if (!is_projection(ir, i->in[BASIN_ATT_Q + s], &g[s], &f->side[s].weight)) return false;
    f->g = g[0], f->t = -1, f->step = 1;
    if (!same(ir, g[0], g[1])) return false;
    if (f->reverse < 0) return true;
    const basin_ir_instruction *r = &ir->instruction[f->reverse];
    for (int s = 0; s < SIDES; s++) {
        if (r->in[BASIN_ATT_A + s] < 0) return false;
        int product = unscaled(ir, r->in[BASIN_ATT_A + s], &step[s]);
        if (!is_projection(ir, product, &t[s], &weight) || !same(ir, weight, f->side[s].weight))
            return false;
    }
    f->t = t[0], f->step = step[0];
    return same(ir, t[0], t[1]) && step[0] == step[1];
}

static bool find_products(const basin_ir *ir, family *f) {
    for (int s = 0; s < SIDES; s++) {
        side *p = &f->side[s];
        p->onto = p->slope = p->back = p->grad = -1;
        if (f->force >= 0 && !sort_readers(ir, ir->instruction[f->force].out[BASIN_ATT_DQ + s],
                                           p->weight, f->t, &p->onto, &p->slope))
            return false;
        if (f->reverse >= 0 && !sort_readers(ir, ir->instruction[f->reverse].out[BASIN_ATT_GQ + s],
                                             p->weight, f->g, &p->back, &p->grad))
            return false;
        if (f->reverse >= 0 && p->back < 0) return false;
        if ((p->slope < 0) != (p->grad < 0) || !are_added(ir, p->grad, p->slope, f->step))
            return false;
    }
    const side *q = &f->side[0], *k = &f->side[1];
    return are_added(ir, q->onto, k->onto, 1) && are_added(ir, q->back, k->back, 1) &&
           (q->grad < 0) == (k->grad < 0);
}

/* What a force gives beside the tokens' own: nothing for other parameters. */
static bool gives_no_more(const basin_ir *ir, const family *f) {
    if (f->force >= 0) {
        const basin_ir_instruction *i = &ir->instruction[f->force];
        for (int k = BASIN_ATT_DBETA; k < i->outs; k++)
            if (i->out[k] >= 0) return false;
        int lse = i->out[BASIN_ATT_LSE];
        bool read = lse >= 0 && (ir->value[lse].uses > 0 || ir->value[lse].output);
        if (read && f->side[0].onto < 0) return false;
    }
    for (int k = BASIN_ATT_GSCALE; f->reverse >= 0 && k <= BASIN_ATT_GMIX; k++)
        if (ir->instruction[f->reverse].out[k] >= 0) return false;
    return true;
}

static bool fits(const basin_ir *ir, family *f, const basin_ir_instruction *i,
                 const basin_backend *backend) {
    f->force = partner_of(ir, BASIN_OP_ATTENTION_FORCE, i);
    f->reverse = partner_of(ir, BASIN_OP_ATTENTION_REVERSE, i);
    if (f->force < -1 || f->reverse < -1 || !find_tokens(ir, f, i)) return false;
    int q = i->in[BASIN_ATT_Q];
    int64_t H = dim_of(ir, q, 2), Y = dim_of(ir, q, 3), D = dim_of(ir, f->g, 1);
    double pairs = (double)dim_of(ir, i->in[BASIN_ATT_KEY], 0);
    bool any = pairs > 0 && dim_of(ir, f->g, 0) > 0; /* kernels read rows of the next pair ahead */
    return any && H * Y > D && pairs * (double)(H * Y) >= backend->narrow_least &&
           backend->table->takes_tokens(backend, H, D) && find_products(ir, f) &&
           gives_no_more(ir, f);
}

/* ---- writing ---- */

static int multiply(basin_ir *ir, int a, bool turn_a, int b, bool turn_b, basin_shape shape) {
    int out = basin_ir_value_new(ir, shape, BASIN_REAL);
    basin_ir_instruction product = {.op = BASIN_OP_MATMUL, .ins = 2, .outs = 1};
    product.attr.transpose_a = turn_a, product.attr.transpose_b = turn_b;
    product.in[0] = a, product.in[1] = b, product.out[0] = out;
    return out < 0 || a < 0 || b < 0 || basin_ir_instruction_new(ir, &product) < 0 ? -1 : out;
}

/* The operands of the new instruction: tokens in place of queries, M in place of keys. */
static basin_ir_instruction like(basin_ir_instruction from, const family *f, int m, basin_op op) {
    from.op = op;
    from.in[BASIN_ATT_Q] = f->g, from.in[BASIN_ATT_K] = m, from.in[BASIN_ATT_PAIR] = -1;
    from.ins = op == BASIN_OP_TOKENS_FORCE ? BASIN_ATT_W + 1 : BASIN_ATT_A + 1;
    if (op == BASIN_OP_TOKENS_REVERSE) from.in[BASIN_ATT_A] = f->t;
    from.outs = op == BASIN_OP_TOKENS_FORCE ? BASIN_ATT_DQ + 1 : BASIN_ATT_GBETA + 1;
    return from;
}

static bool write_force(basin_ir *ir, const family *f, int m) {
    const side *q = &f->side[0], *k = &f->side[1];
    basin_ir_instruction force = like(ir->instruction[f->force], f, m, BASIN_OP_TOKENS_FORCE);
    ir->instruction[f->force].dead = true;
    if (q->onto < 0) return true; /* computed again, for gradients that the reverse has */
    force.out[BASIN_ATT_DQ] = ir->instruction[q->onto].out[0];
    drop(ir, k->onto);
    ir->instruction[q->onto].dead = true;
    return basin_ir_instruction_new(ir, &force) >= 0;
}

/* Gradients of the weights, from that of M. */
static bool write_gradients(basin_ir *ir, const family *f, const int weight[SIDES], int gm) {
    for (int s = 0; s < SIDES; s++) {
        int made = multiply(ir, weight[1 - s], false, gm, s == 1, ir->value[weight[s]].shape);
        if (made < 0) return false;
        drop(ir, f->side[s].slope);
        ir->instruction[f->side[s].grad].dead = true;
        replace(ir, ir->instruction[f->side[s].grad].out[0], made);
    }
    return true;
}

/* step t, of the constant that is among the operands of a's product. */
static bool scale_cotangent(basin_ir *ir, family *f) {
    if (f->step == 1) return true;
    int a = ir->instruction[f->reverse].in[BASIN_ATT_A];
    basin_ir_instruction scaled = ir->instruction[ir->value[ir->value[a].root].producer];
    int from = 0;
    for (int k = 0; k < scaled.ins; k++)
        if (!ir->value[scaled.in[k]].leaf) from = k;
    scaled.in[from] = f->t;
    f->t = scaled.out[0] = basin_ir_value_new(ir, ir->value[f->t].shape, BASIN_REAL);
    return f->t >= 0 && basin_ir_instruction_new(ir, &scaled) >= 0;
}

static bool write_reverse(basin_ir *ir, family *f, int m, const int weight[SIDES]) {
    const side *q = &f->side[0], *k = &f->side[1];
    if (!scale_cotangent(ir, f)) return false;
    basin_ir_instruction reverse = like(ir->instruction[f->reverse], f, m, BASIN_OP_TOKENS_REVERSE);
    ir->instruction[f->reverse].dead = true;
    reverse.out[BASIN_ATT_GQ] = ir->instruction[q->back].out[0];
    reverse.out[BASIN_ATT_GK] = -1;
    if (q->grad >= 0) {
        reverse.out[BASIN_ATT_GK] = basin_ir_value_new(ir, ir->value[m].shape, BASIN_REAL);
        if (reverse.out[BASIN_ATT_GK] < 0) return false;
    }
    drop(ir, k->back);
    ir->instruction[q->back].dead = true;
    if (basin_ir_instruction_new(ir, &reverse) < 0) return false;
    return q->grad < 0 || write_gradients(ir, f, weight, reverse.out[BASIN_ATT_GK]);
}

static bool rewrite(basin_ir *ir, family *f, int q) {
    int64_t H = dim_of(ir, q, 2), Y = dim_of(ir, q, 3), D = dim_of(ir, f->g, 1);
    int weight[SIDES];
    for (int s = 0; s < SIDES; s++)
        weight[s] =
            basin_ir_view_new(ir, basin_root_of(ir, f->side[s].weight), BASIN_SHAPE(H, Y, D), 0, 0);
    int m = multiply(ir, weight[1], true, weight[0], false, BASIN_SHAPE(H, D, D));
    return m >= 0 && (f->reverse < 0 || write_reverse(ir, f, m, weight)) &&
           (f->force < 0 || write_force(ir, f, m));
}

basin_status basin_ir_tokens(basin_ir *ir, const basin_backend *backend) {
    size_t instructions = ir->instructions;
    for (size_t i = 0; i < instructions; i++) {
        family f;
        if (!is_listed(ir, &ir->instruction[i])) continue;
        basin_ir_count_uses(ir);
        if (!fits(ir, &f, &ir->instruction[i], backend)) continue;
        if (!rewrite(ir, &f, ir->instruction[i].in[BASIN_ATT_Q])) return ir->error->status;
    }
    return basin_ir_sort(ir);
}
