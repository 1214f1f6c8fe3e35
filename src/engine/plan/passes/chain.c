/* Chains of products. A sum such as x + a ((P - Q) + R) of matrix products and other terms becomes
 * ((x + a P) - a Q) + a R, in the order of computing: each product adds its multiple to what is
 * there, in its epilogue. */
#include <stdlib.h>

#include "base/memory.h"
#include "engine/plan/ir.h"

enum { TERMS = 96, DEPTH = 200 };

typedef struct term {
    int value;
    double factor;
    int product; /* the instruction, of a product that nobody else reads; -1 */
} term;

typedef struct sum {
    basin_ir *ir;
    basin_shape shape;
    term term[TERMS];
    int terms, products;
    int inner[2 * TERMS], inners; /* instructions that the chain replaces */
    bool scaled;                  /* a factor precedes a sum of several terms */
    int after;                    /* the instruction after which new ones are placed */
} sum;

/* Where new instructions belong, so that a product adds its multiple as soon as it can. */
typedef struct places {
    int *after; /* [instructions] of new ones: the old instruction that they follow */
    size_t old; /* how many old instructions there are */
    size_t capacity;
} places;

static const basin_node *constant(const basin_ir *ir, int value) {
    const basin_node *leaf = ir->value[value].leaf;
    return leaf && leaf->op == BASIN_OP_CONST ? leaf : NULL;
}

/* Which operand of a product by a constant is the constant; -1 where it is none. */
static int constant_side(const basin_ir *ir, const basin_ir_instruction *instruction) {
    if (instruction->op != BASIN_OP_MUL) return -1;
    return constant(ir, instruction->in[0]) ? 0 : constant(ir, instruction->in[1]) ? 1 : -1;
}

static bool is_linear(const basin_ir *ir, const basin_ir_instruction *instruction) {
    return instruction->op == BASIN_OP_ADD || instruction->op == BASIN_OP_SUB ||
           instruction->op == BASIN_OP_NEG || constant_side(ir, instruction) >= 0;
}

/* Whether the value's instruction can be taken apart: nobody else reads its result. */
static bool is_inner(const sum *s, int value) {
    const basin_ir_value *v = &s->ir->value[value];
    return v->root == value && v->producer >= 0 && v->uses == 1 && !v->output && !v->state &&
           basin_shape_equal(v->shape, s->shape) &&
           is_linear(s->ir, &s->ir->instruction[v->producer]);
}

static int product_of(const sum *s, int value) {
    const basin_ir_value *v = &s->ir->value[value], *root = &s->ir->value[v->root];
    bool own = root->producer >= 0 && root->uses == 1 && !root->output && !root->state &&
               basin_shape_equal(v->shape, s->shape);
    return own && s->ir->instruction[root->producer].op == BASIN_OP_MATMUL ? root->producer : -1;
}

static bool collect(sum *s, int value, double factor, int depth);

/* The terms of a linear instruction; false where there are too many. */
static bool collect_instruction(sum *s, const basin_ir_instruction *instruction, double factor,
                                int depth) {
    int side = constant_side(s->ir, instruction);
    if (instruction->op == BASIN_OP_NEG) return collect(s, instruction->in[0], -factor, depth);
    if (side >= 0) {
        int before = s->terms;
        double by = constant(s->ir, instruction->in[side])->attr.value;
        if (!collect(s, instruction->in[1 - side], factor * by, depth)) return false;
        s->scaled = s->scaled || s->terms > before + 1;
        return true;
    }
    return collect(s, instruction->in[0], factor, depth) &&
           collect(s, instruction->in[1], instruction->op == BASIN_OP_SUB ? -factor : factor,
                   depth);
}

static bool collect(sum *s, int value, double factor, int depth) {
    if (is_inner(s, value)) {
        int instruction = s->ir->value[value].producer;
        if (depth == DEPTH || s->inners == 2 * TERMS) return false;
        s->inner[s->inners++] = instruction;
        return collect_instruction(s, &s->ir->instruction[instruction], factor, depth + 1);
    }
    if (s->terms == TERMS) return false;
    int product = product_of(s, value);
    s->term[s->terms++] = (term){value, factor, product};
    s->products += product >= 0;
    return true;
}

/* Others first, as they were; then products as they are computed. */
static void sort_terms(sum *s) {
    for (int i = 1; i < s->terms; i++)
        for (int k = i; k > 0 && s->term[k].product < s->term[k - 1].product; k--) {
            term t = s->term[k];
            s->term[k] = s->term[k - 1];
            s->term[k - 1] = t;
        }
}

static int add_instruction(sum *s, places *p, basin_op op, int a, int b) {
    size_t made = s->ir->instructions - p->old;
    if (!BASIN_RESERVE(&p->after, &p->capacity, made + 1)) return -1;
    p->after[made] = s->after;
    return basin_ir_apply(s->ir, op, a, b, s->shape);
}

static int add_constant(sum *s, basin_graph *graph, double number) {
    basin_expr expr = basin_scalar(graph, number);
    int value = expr ? basin_ir_value_new(s->ir, expr->shape, BASIN_REAL) : -1;
    if (value >= 0) s->ir->value[value].leaf = expr->node;
    return value;
}

/* factor * value, as a value. */
static int scaled_term(sum *s, places *p, basin_graph *graph, const term *t) {
    int producer = s->ir->value[s->ir->value[t->value].root].producer;
    if (producer > s->after) s->after = producer;
    if (t->factor == 1) return t->value;
    if (t->factor == -1) return add_instruction(s, p, BASIN_OP_NEG, t->value, -1);
    int number = add_constant(s, graph, t->factor);
    return number < 0 ? -1 : add_instruction(s, p, BASIN_OP_MUL, number, t->value);
}

/* The chain; its last instruction takes the place of the sum's. */
static basin_status rebuild(sum *s, places *p, basin_graph *graph, int last) {
    int so_far = scaled_term(s, p, graph, &s->term[0]);
    for (int i = 1; i < s->terms && so_far >= 0; i++) {
        term t = s->term[i];
        basin_op op = t.factor < 0 ? BASIN_OP_SUB : BASIN_OP_ADD;
        if (t.factor < 0) t.factor = -t.factor;
        int next = scaled_term(s, p, graph, &t);
        if (next < 0) return BASIN_NO_MEMORY;
        if (i + 1 < s->terms) {
            so_far = add_instruction(s, p, op, so_far, next);
            continue;
        }
        basin_ir_instruction *instruction = &s->ir->instruction[last];
        *instruction = (basin_ir_instruction){.op = op,
                                              .ins = 2,
                                              .outs = 1,
                                              .in = {so_far, next},
                                              .out = {instruction->out[0]},
                                              .again = instruction->again,
                                              .workspace = -1};
    }
    for (int i = 0; i < s->inners; i++) s->ir->instruction[s->inner[i]].dead = true;
    return so_far < 0 ? BASIN_NO_MEMORY : BASIN_OK;
}

/* A sum that is not a term of a larger one, with products that have to wait for one another. */
static bool wants_chain(sum *s, basin_ir *ir, int instruction) {
    const basin_ir_instruction *last = &ir->instruction[instruction];
    if (last->dead || !is_linear(ir, last)) return false;
    *s = (sum){.ir = ir, .shape = ir->value[last->out[0]].shape};
    if (!collect_instruction(s, last, 1, 0) || s->terms < 2) return false;
    for (int i = 0; i < s->terms; i++)
        if (s->term[i].factor == 0) return false;
    return s->products > 1 || (s->products == 1 && s->scaled);
}

/* New instructions are appended to the list; this moves each to its place after an old one. */
static basin_status place_instructions(basin_ir *ir, const places *p) {
    size_t made = ir->instructions - p->old, at = 0;
    int *order = basin_ir_scratch(ir, ir->instructions, sizeof *order);
    if (!order) return BASIN_NO_MEMORY;
    for (size_t i = 0; i < p->old; i++) {
        order[at++] = (int)i;
        for (size_t k = 0; k < made; k++)
            if (p->after[k] == (int)i) order[at++] = (int)(p->old + k);
    }
    return basin_ir_reorder(ir, order, at);
}

basin_status basin_ir_chain(basin_ir *ir, basin_graph *graph) {
    places p = {.old = ir->instructions};
    sum *s = basin_ir_scratch(ir, 1, sizeof *s);
    basin_status status = s ? BASIN_OK : BASIN_NO_MEMORY;
    basin_ir_count_uses(ir);
    for (size_t i = p.old; i-- > 0 && !status;)
        if (wants_chain(s, ir, (int)i)) {
            sort_terms(s);
            status = rebuild(s, &p, graph, (int)i);
        }
    if (!status) status = place_instructions(ir, &p);
    free(p.after);
    return status ? basin_ir_no_memory(ir) : basin_ir_sort(ir);
}

/* Packing: the right factor of several products (a weight, the same in all steps of a descent) is
 * brought once into the layout in which the backend's products read it. */

/* Whether two instructions are products by one and the same matrix. */
static bool share_factor(const basin_ir *ir, const basin_ir_instruction *a,
                         const basin_ir_instruction *b) {
    const basin_ir_value *x = &ir->value[a->in[1]], *y = &ir->value[b->in[1]];
    return b->op == BASIN_OP_MATMUL && !b->attr.packed_b && x->root == y->root &&
           basin_shape_equal(x->shape, y->shape) && a->attr.transpose_b == b->attr.transpose_b;
}

/* Makes all products from `first` on that share its factor read the packed one. */
static basin_status pack_factor(basin_ir *ir, size_t first, size_t bytes) {
    const basin_ir_instruction model = ir->instruction[first];
    int packed = basin_ir_value_new(ir, ir->value[model.in[1]].shape, BASIN_REAL);
    if (packed < 0) return BASIN_NO_MEMORY;
    ir->value[packed].bytes = bytes;
    basin_ir_instruction pack = {
        .op = BASIN_OP_PACK, .ins = 1, .outs = 1, .in = {model.in[1]}, .out = {packed}};
    pack.attr.transpose_b = model.attr.transpose_b;
    size_t instructions = ir->instructions;
    for (size_t i = first; i < instructions; i++)
        if (share_factor(ir, &model, &ir->instruction[i])) {
            ir->instruction[i].in[1] = packed;
            ir->instruction[i].attr.packed_b = true;
        }
    return basin_ir_instruction_new(ir, &pack) < 0 ? BASIN_NO_MEMORY : BASIN_OK;
}

basin_status basin_ir_pack(basin_ir *ir, basin_backend *backend) {
    basin_status status = BASIN_OK;
    size_t instructions = ir->instructions;
    if (!backend->table->packed_bytes) return BASIN_OK;
    for (size_t i = 0; i < instructions && !status; i++) {
        const basin_ir_instruction *instruction = &ir->instruction[i];
        if (instruction->op != BASIN_OP_MATMUL || instruction->attr.packed_b ||
            ir->value[instruction->in[1]].shape.rank != 2)
            continue;
        int64_t size[4];
        int products = 0;
        for (size_t k = i; k < instructions; k++)
            products += share_factor(ir, instruction, &ir->instruction[k]);
        basin_product_sizes(size, ir, instruction);
        basin_kind kind = ir->value[ir->value[instruction->in[1]].root].kind;
        size_t bytes =
            products > 1 ? backend->table->packed_bytes(backend, size[3], size[2], kind) : 0;
        if (bytes > 0) status = pack_factor(ir, i, bytes);
    }
    return status ? status : basin_ir_sort(ir);
}
