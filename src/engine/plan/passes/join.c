/* Joint products. A chain x + a (h Xi + dQ Wq + dK Wk) is one product of the joint matrices [h dQ
 * dK], side by side, and [Xi; Wq; Wk], one below the other: the tokens are read and written once.
 * Products of one left factor with several of the weights (Q and K) also become one, and so do
 * gradients of small weights, [dQ dK]' u, and with bytes those of large ones. A separate value
 * becomes rows, or columns, of the joint one, which only products and attention over all pairs read
 * and write. Only narrow plans are joined: their weights are copies. */

#include "base/try.h"
#include "engine/plan/ir.h"

enum {
    ALIGNED = 32,    /* parts begin at multiples of this many elements */
    SMALL = 1 << 20, /* elements of a gradient that would leave much of a device idle */
};

/* ---- joint values: matrices that several values of a plan become rows or columns of ---- */

enum { PARTS = 8 };

typedef struct joint {
    int value;       /* the joint value */
    int part[PARTS]; /* the roots that became parts of it, in their order */
    int64_t at[PARTS + 1];
    int parts;
    int transposed; /* of a joint weight: its transpose, -1 before that is needed */
} joint;

typedef struct joining {
    basin_ir *ir;
    joint *joint;
    size_t joints, capacity;
    int *reader;   /* [values] of roots: the last instruction that reads it */
    bool *bound;   /* [values] of roots: read or written by something that needs it dense */
    size_t values; /* how many there were; joint ones follow */
    int64_t small; /* elements of the largest gradient that is joined */
} joining;

/* Instructions of the same kind that one instruction will replace, in their order. */
typedef struct product_group {
    int instruction[PARTS], part[PARTS]; /* part: which of the joint each belongs to */
    int instructions;
} product_group;

/* A joint value without parts; NULL when out of memory. It moves when another one is made. */
static joint *joint_new(joining *j, basin_shape shape, basin_kind kind) {
    int value = basin_ir_value_new(j->ir, shape, kind);
    if (value < 0 || !BASIN_RESERVE(&j->joint, &j->capacity, j->joints + 1)) return NULL;
    j->joint[j->joints] = (joint){.value = value, .transposed = -1};
    return &j->joint[j->joints++];
}

/* Makes `root` the next part: `length` rows or columns; stride 0: dense rows of `width`. */
static void joint_add(joining *j, joint *t, int root, int64_t length, int64_t width,
                      int64_t stride) {
    basin_ir *ir = j->ir;
    int64_t at = t->at[t->parts];
    t->part[t->parts++] = root;
    t->at[t->parts] = at + length;
    for (size_t i = 0; i < ir->values; i++) {
        basin_ir_value *v = &ir->value[i];
        if (v->root != root) continue;
        v->root = t->value;
        v->first = stride ? at : at * width;
        v->stride = stride;
    }
}

/* The joint value that this one is, or is a part of; NULL. */
static const joint *joint_of(const joining *j, int value) {
    int root = basin_root_of(j->ir, value);
    for (size_t i = 0; i < j->joints; i++)
        if (j->joint[i].value == root) return &j->joint[i];
    return NULL;
}

/* Which part of it; -1. */
static int joint_part(const joining *j, const joint *t, int value) {
    const basin_ir_value *v = &j->ir->value[value];
    for (int p = 0; p < t->parts; p++)
        if (v->first == j->ir->value[t->part[p]].first) return p;
    return -1;
}

/* Parts first .. last of a joint value, as one operand of the given shape; -1: no memory. */
static int joint_span(joining *j, const joint *t, int first, int last, basin_shape shape) {
    if (first == 0 && last == t->parts - 1) return t->value;
    const basin_ir_value *like = &j->ir->value[t->part[first]];
    return basin_ir_view_new(j->ir, t->value, shape, like->first, like->stride);
}

/* Parts ascending; false unless they are neighbours, at least two. */
static bool group_sort(product_group *g) {
    for (int i = 1; i < g->instructions; i++)
        for (int k = i; k > 0 && g->part[k] < g->part[k - 1]; k--) {
            int part = g->part[k], instruction = g->instruction[k];
            g->part[k] = g->part[k - 1], g->instruction[k] = g->instruction[k - 1];
            g->part[k - 1] = part, g->instruction[k - 1] = instruction;
        }
    for (int i = 1; i < g->instructions; i++)
        if (g->part[i] != g->part[0] + i) return false;
    return g->instructions > 1;
}

/* The group's last instruction, the joint one if nobody reads another's result before; -1. */
static int group_last(const joining *j, const product_group *g) {
    const basin_ir *ir = j->ir;
    int last = g->instruction[0];
    for (int i = 1; i < g->instructions; i++)
        if (g->instruction[i] > last) last = g->instruction[i];
    for (int i = 0; i < g->instructions; i++) {
        int out = ir->instruction[g->instruction[i]].out[0];
        for (int s = g->instruction[i] + 1; s <= last; s++)
            for (int k = 0; k < ir->instruction[s].ins; k++)
                if (!ir->instruction[s].dead && ir->instruction[s].in[k] >= 0 &&
                    basin_root_of(ir, ir->instruction[s].in[k]) == out)
                    return -1;
    }
    return last;
}

/* The last one takes the place of all. */
static void group_replace(joining *j, const product_group *g, int last) {
    for (int i = 0; i < g->instructions; i++)
        j->ir->instruction[g->instruction[i]].dead = g->instruction[i] != last;
}

/* ---- what instructions are ---- */

/* Whether both are the same numbers, in whatever shape. */
static bool is_same(const basin_ir *ir, int a, int b) {
    return basin_root_of(ir, a) == basin_root_of(ir, b) &&
           ir->value[a].first == ir->value[b].first &&
           basin_shape_count(ir->value[a].shape) == basin_shape_count(ir->value[b].shape);
}

static bool is_attention(const basin_ir_instruction *instruction) {
    return (instruction->op == BASIN_OP_ATTENTION_FORCE ||
            instruction->op == BASIN_OP_ATTENTION_REVERSE) &&
           instruction->in[BASIN_ATT_ROW] < 0;
}

/* A product of two narrow matrices. */
static bool is_product(const basin_ir *ir, const basin_ir_instruction *instruction, bool ta,
                       bool tb) {
    int64_t size[4];
    if (instruction->dead || instruction->op != BASIN_OP_MATMUL ||
        !basin_ir_is_narrow(ir, instruction->in[0]) ||
        !basin_ir_is_narrow(ir, instruction->in[1]) || instruction->attr.transpose_a != ta ||
        instruction->attr.transpose_b != tb)
        return false;
    basin_product_sizes(size, ir, instruction);
    return size[0] == 1 && size[3] > 0;
}

/* ---- what may become a part ---- */

/* Whether the instruction can read operand k with its rows apart. */
static bool reads_apart(const basin_ir_instruction *instruction, int k) {
    if (instruction->op == BASIN_OP_MATMUL) return k < 2;
    return is_attention(instruction) &&
           (k == BASIN_ATT_Q || k == BASIN_ATT_K || k == BASIN_ATT_A || k == BASIN_ATT_B);
}

/* Whether a product needs no program after it. Only masks of bits are applied with it. */
static bool is_whole(const basin_ir *ir, const basin_ir_instruction *instruction) {
    basin_program_form form = basin_program_form_of(instruction->program);
    switch (form.kind) {
    case BASIN_FORM_SUM: return form.operand < 0;
    case BASIN_FORM_RELU: return true;
    case BASIN_FORM_MASKED:
        return ir->value[basin_root_of(ir, instruction->in[2 + form.operand])].kind == BASIN_INDEX;
    default: return false;
    }
}

/* Whether it can write result k so. */
static bool writes_apart(const basin_ir *ir, const basin_ir_instruction *instruction, int k) {
    if (instruction->op == BASIN_OP_MATMUL) return k == 0 && is_whole(ir, instruction);
    if (!is_attention(instruction)) return false;
    return instruction->op == BASIN_OP_ATTENTION_FORCE ? k == BASIN_ATT_DQ || k == BASIN_ATT_DK
                                                       : k == BASIN_ATT_GQ || k == BASIN_ATT_GK;
}

static void find_bound(joining *j) {
    const basin_ir *ir = j->ir;
    for (size_t i = 0; i < ir->values; i++) {
        const basin_ir_value *v = &ir->value[i];
        j->bound[i] = v->kind != BASIN_NARROW || v->producer < 0 || v->output || v->state;
    }
    for (size_t i = 0; i < ir->instructions; i++) {
        const basin_ir_instruction *instruction = &ir->instruction[i];
        int64_t size[4] = {1};
        if (instruction->op == BASIN_OP_MATMUL) basin_product_sizes(size, ir, instruction);
        for (int k = 0; k < instruction->ins; k++) {
            if (instruction->in[k] < 0) continue;
            int root = basin_root_of(ir, instruction->in[k]);
            j->reader[root] = (int)i;
            if (!reads_apart(instruction, k) || size[0] != 1) j->bound[root] = true;
        }
        for (int k = 0; k < instruction->outs; k++)
            if (instruction->out[k] >= 0 && (!writes_apart(ir, instruction, k) || size[0] != 1))
                j->bound[instruction->out[k]] = true;
    }
}

/* Whether the value, `columns` wide, can become some columns of a joint one. */
static bool can_lie_apart(const joining *j, int value, int64_t columns) {
    int root = basin_root_of(j->ir, value);
    return (size_t)root < j->values && !j->bound[root] && columns % ALIGNED == 0;
}

/* The program of a product that is to be `rows` by `columns`. */
static void widen(basin_program *program, int64_t rows, int64_t columns) {
    if (!program) return;
    program->domain = BASIN_SHAPE(1, rows, columns);
    for (int a = 0; a < BASIN_MAX_IN; a++) program->stride[a][0] = 0;
}

/* ---- chains ---- */

/* Whether the value is a narrow copy of a weight, made only for products, or a part of one. */
static bool is_weight(const joining *j, int value) {
    const basin_ir *ir = j->ir;
    int root = basin_root_of(ir, value);
    if ((size_t)root >= j->values) return !ir->value[value].stride;
    if (!basin_ir_is_narrow(ir, root) || ir->value[root].producer < 0) return false;
    const basin_ir_instruction *cast = &ir->instruction[ir->value[root].producer];
    if (cast->op != BASIN_OP_POINTWISE || cast->ins != 1 || cast->outs != 1) return false;
    const basin_node *leaf = ir->value[basin_root_of(ir, cast->in[0])].leaf;
    return leaf && leaf->op == BASIN_OP_STATE &&
           basin_shape_count(ir->value[root].shape) % ALIGNED == 0;
}

/* Whether the instruction is a link: adds a multiple of (what can lie apart) (a weight). */
static bool is_link(const joining *j, const basin_ir_instruction *instruction,
                    basin_program_form *form) {
    int64_t size[4];
    if (!is_product(j->ir, instruction, false, false) || instruction->outs != 1 ||
        !is_weight(j, instruction->in[1]))
        return false;
    *form = basin_program_form_of(instruction->program);
    basin_product_sizes(size, j->ir, instruction);
    bool sum = form->kind == BASIN_FORM_SUM && instruction->ins <= 3 &&
               (form->operand < 0 || form->of_operand == 1);
    return sum && can_lie_apart(j, instruction->in[0], size[3]);
}

/* The link that adds to this one's result, which nobody else reads; -1. */
static int next_link(const joining *j, int from, double factor) {
    const basin_ir *ir = j->ir;
    const basin_ir_value *out = &ir->value[ir->instruction[from].out[0]];
    basin_program_form form;
    int next = j->reader[ir->instruction[from].out[0]];
    if (out->uses != 1 || out->output || out->state || next <= from) return -1;
    const basin_ir_instruction *instruction = &ir->instruction[next];
    bool adds = is_link(j, instruction, &form) && form.operand == 0 && form.of_product == factor &&
                instruction->in[2] >= 0 &&
                basin_root_of(ir, instruction->in[2]) == ir->instruction[from].out[0] &&
                ir->value[instruction->out[0]].kind == out->kind;
    return adds ? next : -1;
}

/* Whether a product with nothing behind it reads the weight transposed, as those of Q and K do. */
static bool is_read_plainly(const joining *j, int weight) {
    for (size_t i = 0; i < j->ir->instructions; i++) {
        const basin_ir_instruction *instruction = &j->ir->instruction[i];
        if (is_product(j->ir, instruction, false, true) &&
            basin_root_of(j->ir, instruction->in[1]) == weight && !instruction->program)
            return true;
    }
    return false;
}

/* The joint weight of the chain's weights: one that exists, or a new one. The group's parts are
 * set. NULL where they cannot be joint; *failed where there is no memory. */
static const joint *join_weights(joining *j, product_group *g, bool *failed) {
    const basin_ir *ir = j->ir;
    int64_t size[4], rows = 0;
    int weight[PARTS], order[PARTS], known = 0, plain = 0;
    for (int i = 0; i < g->instructions; i++) {
        weight[i] = basin_root_of(ir, ir->instruction[g->instruction[i]].in[1]);
        const joint *t = joint_of(j, ir->instruction[g->instruction[i]].in[1]);
        known += t != NULL;
    }
    if (known > 0) {
        const joint *t = joint_of(j, ir->instruction[g->instruction[0]].in[1]);
        for (int i = 0; i < g->instructions && t; i++) {
            if (weight[i] != t->value) return NULL;
            g->part[i] = joint_part(j, t, ir->instruction[g->instruction[i]].in[1]);
        }
        return t && t->parts == g->instructions ? t : NULL;
    }
    for (int i = 0; i < g->instructions; i++)
        for (int k = 0; k < i; k++)
            if (weight[i] == weight[k]) return NULL;
    for (int i = 0; i < g->instructions; i++) /* those followed by a program first */
        if (!is_read_plainly(j, weight[i])) order[plain++] = i;
    for (int i = 0, at = plain; i < g->instructions; i++)
        if (is_read_plainly(j, weight[i])) order[at++] = i;
    for (int i = 0; i < g->instructions; i++) {
        basin_product_sizes(size, ir, &ir->instruction[g->instruction[i]]);
        rows += size[3];
    }
    joint *t = joint_new(j, BASIN_SHAPE(rows, size[2]), BASIN_NARROW);
    *failed = !t;
    for (int i = 0; i < g->instructions && t; i++) {
        basin_product_sizes(size, j->ir, &j->ir->instruction[g->instruction[order[i]]]);
        joint_add(j, t, weight[order[i]], size[3], size[2], 0);
        g->part[order[i]] = i;
    }
    return t;
}

/* Transposes the joint weight once for all chains, in the place of an instruction of the group but
 * the last; not where parts of it are made later. False: no memory. */
static bool turn_weight(joining *j, joint *weight, const product_group *g, int last) {
    basin_ir *ir = j->ir;
    basin_shape shape = ir->value[weight->value].shape;
    int place = -1, made = -1;
    for (int i = 0; i < weight->parts; i++)
        if (ir->value[weight->part[i]].producer > made) made = ir->value[weight->part[i]].producer;
    for (int i = 0; i < g->instructions; i++)
        if (g->instruction[i] != last && g->instruction[i] > made) place = g->instruction[i];
    if (place < 0) return true;
    int transposed = basin_ir_value_new(ir, BASIN_SHAPE(shape.dim[1], shape.dim[0]), BASIN_NARROW);
    if (transposed < 0) return false;
    basin_ir_instruction *instruction = &ir->instruction[place];
    basin_program_free(instruction->program);
    *instruction = basin_ir_transpose(transposed, weight->value);
    weight->transposed = transposed;
    return true;
}

/* Replaces a chain of links by one product; false where there is no memory. A sum in float reads
 * the weight transposed: cuBLASLt adds a tenth faster then. */
static bool join_chain(joining *j, product_group *g) {
    basin_ir *ir = j->ir;
    bool failed = false;
    int first = g->instruction[0], last = g->instruction[g->instructions - 1];
    int64_t size[4];
    for (int i = 0; i < g->instructions; i++) /* none may have to lie in two places */
        for (int k = 0; k < i; k++)
            if (basin_root_of(ir, ir->instruction[g->instruction[i]].in[0]) ==
                basin_root_of(ir, ir->instruction[g->instruction[k]].in[0]))
                return true;
    const joint *weights = join_weights(j, g, &failed);
    if (!weights) return !failed;
    size_t which = (size_t)(weights - j->joint);
    int weight = weights->value;
    int64_t columns = weights->at[weights->parts];
    if (!group_sort(g)) return true;
    basin_product_sizes(size, ir, &ir->instruction[last]);
    joint *left = joint_new(j, BASIN_SHAPE(size[1], columns), BASIN_NARROW);
    if (!left) return false;
    for (int i = 0; i < g->instructions; i++) {
        basin_product_sizes(size, ir, &ir->instruction[g->instruction[i]]);
        joint_add(j, left, basin_root_of(ir, ir->instruction[g->instruction[i]].in[0]), size[3], 0,
                  columns);
    }
    basin_program *program =
        ir->instruction[last].program; /* what the first one adds to is added to */
    ir->instruction[last].program = ir->instruction[first].program;
    ir->instruction[first].program = program;
    ir->instruction[last].ins = ir->instruction[first].ins;
    ir->instruction[last].in[2] = ir->instruction[first].in[2];
    ir->instruction[last].in[0] = left->value;
    ir->instruction[last].in[1] = weight;
    group_replace(j, g, last);
    if (ir->value[ir->instruction[last].out[0]].kind != BASIN_REAL) return true;
    joint *t = &j->joint[which];
    if (t->transposed < 0 && !turn_weight(j, t, g, last)) return false;
    ir->instruction[last].attr.transpose_b = t->transposed >= 0;
    if (t->transposed >= 0) ir->instruction[last].in[1] = t->transposed;
    return true;
}

static bool join_chains(joining *j) {
    basin_program_form form;
    bool ok = true;
    for (size_t i = 0; i < j->ir->instructions && ok; i++) {
        product_group g = {.instruction = {(int)i}, .instructions = 1};
        if (!is_link(j, &j->ir->instruction[i], &form)) continue;
        double factor = form.of_product;
        for (int next = (int)i; g.instructions < PARTS && (next = next_link(j, next, factor)) >= 0;)
            g.instruction[g.instructions++] = next;
        if (g.instructions > 1) ok = join_chain(j, &g);
    }
    return ok;
}

/* ---- products that differ in one factor ---- */

typedef bool product_kind(const joining *j, const basin_ir_instruction *instruction,
                          basin_program_form *form);

/* Products from the first on that differ only in factor `side`, each with another part of one joint
 * value. Returns the instruction that may replace all; or -1. */
static int find_group(product_group *g, const joining *j, size_t first, int side,
                      product_kind *is_one) {
    const basin_ir *ir = j->ir;
    const basin_ir_instruction *one = &ir->instruction[first];
    basin_program_form form, other;
    *g = (product_group){.instructions = 0};
    if (!is_one(j, one, &form)) return -1;
    const joint *t = joint_of(j, one->in[side]);
    for (size_t k = first; k < ir->instructions && g->instructions < PARTS; k++) {
        const basin_ir_instruction *instruction = &ir->instruction[k];
        if (!is_one(j, instruction, &other) || joint_of(j, instruction->in[side]) != t ||
            !is_same(ir, instruction->in[1 - side], one->in[1 - side]) ||
            other.of_product != form.of_product || instruction->ins != one->ins)
            continue;
        g->instruction[g->instructions] = (int)k;
        g->part[g->instructions++] = joint_part(j, t, instruction->in[side]);
    }
    return group_sort(g) ? group_last(j, g) : -1;
}

/* ---- one left factor, several weights ---- */

/* Whether the instruction is a multiple of (x) (part of a joint weight)' and writes columns. */
static bool is_reading(const joining *j, const basin_ir_instruction *instruction,
                       basin_program_form *form) {
    int64_t size[4];
    if (!is_product(j->ir, instruction, false, true) || instruction->outs != 1 ||
        instruction->ins != 2)
        return false;
    const joint *t = joint_of(j, instruction->in[1]);
    int part = t ? joint_part(j, t, instruction->in[1]) : -1;
    *form = basin_program_form_of(instruction->program);
    basin_product_sizes(size, j->ir, instruction);
    return part >= 0 && size[2] == t->at[part + 1] - t->at[part] && form->kind == BASIN_FORM_SUM &&
           can_lie_apart(j, instruction->out[0], size[2]);
}

static bool join_readings(joining *j) {
    basin_ir *ir = j->ir;
    product_group g;
    for (size_t i = 0; i < ir->instructions; i++) {
        int last = find_group(&g, j, i, 1, is_reading);
        if (last < 0) continue;
        const joint *weights = joint_of(j, ir->instruction[i].in[1]);
        int from = g.part[0], to = g.part[g.instructions - 1];
        int64_t size[4], columns = weights->at[to + 1] - weights->at[from];
        basin_product_sizes(size, ir, &ir->instruction[last]);
        int weight = joint_span(j, weights, from, to, BASIN_SHAPE(columns, size[3]));
        joint *results = joint_new(j, BASIN_SHAPE(size[1], columns), BASIN_NARROW);
        if (weight < 0 || !results) return false;
        weights = joint_of(j, weight);
        for (int k = 0; k < g.instructions; k++)
            joint_add(j, results, ir->instruction[g.instruction[k]].out[0],
                      weights->at[from + k + 1] - weights->at[from + k], 0, columns);
        ir->instruction[last].in[1] = weight;
        ir->instruction[last].out[0] = results->value;
        widen(ir->instruction[last].program, size[1], columns);
        group_replace(j, &g, last);
    }
    return true;
}

/* ---- gradients of the weights ---- */

/* Whether the instruction is a multiple of (a part of joint columns)' (u), perhaps added to
 * something, and so small that it pays to join it with others. */
static bool is_gradient(const joining *j, const basin_ir_instruction *instruction,
                        basin_program_form *form) {
    if (!is_product(j->ir, instruction, true, false) || instruction->outs != 1 ||
        instruction->ins > 3)
        return false;
    const joint *t = joint_of(j, instruction->in[0]);
    const basin_ir_value *out = &j->ir->value[instruction->out[0]];
    *form = basin_program_form_of(instruction->program);
    if (basin_shape_count(out->shape) > j->small) return false;
    return t && j->ir->value[instruction->in[0]].stride &&
           joint_part(j, t, instruction->in[0]) >= 0 && out->kind == BASIN_REAL && !out->output &&
           !out->state && form->kind == BASIN_FORM_SUM &&
           (form->operand < 0 || form->of_operand == 1);
}

/* What a group of gradients adds to, as one operand: the same parts of an earlier joint gradient.
 * -1 where they are not; -2 where there is no memory. */
static int joint_addend(joining *j, const product_group *g, basin_shape shape) {
    const basin_ir *ir = j->ir;
    const joint *t = joint_of(j, ir->instruction[g->instruction[0]].in[2]);
    int first = t ? joint_part(j, t, ir->instruction[g->instruction[0]].in[2]) : -1;
    if (first < 0) return -1;
    for (int i = 0; i < g->instructions; i++) {
        int value = ir->instruction[g->instruction[i]].in[2];
        if (joint_of(j, value) != t || joint_part(j, t, value) != first + i) return -1;
    }
    int addend = joint_span(j, t, first, first + g->instructions - 1, shape);
    bool same =
        addend >= 0 && basin_shape_count(ir->value[addend].shape) == basin_shape_count(shape);
    return addend < 0 ? -2 : same ? addend : -1;
}

static bool join_gradients(joining *j) {
    basin_ir *ir = j->ir;
    product_group g;
    for (size_t i = 0; i < ir->instructions; i++) {
        int last = find_group(&g, j, i, 0, is_gradient);
        if (last < 0) continue;
        const joint *columns = joint_of(j, ir->instruction[i].in[0]);
        int from = g.part[0], to = g.part[g.instructions - 1];
        int64_t size[4], rows = columns->at[to + 1] - columns->at[from];
        basin_product_sizes(size, ir, &ir->instruction[last]);
        basin_shape shape = BASIN_SHAPE(rows, size[2]);
        int addend = ir->instruction[i].ins == 3 ? joint_addend(j, &g, shape) : 0;
        if (addend == -2) return false;
        if (addend == -1) continue;
        int left = joint_span(j, columns, from, to, BASIN_SHAPE(size[3], rows));
        joint *sums = joint_new(j, shape, BASIN_REAL);
        if (left < 0 || !sums) return false;
        columns = joint_of(j, left);
        for (int k = 0; k < g.instructions; k++)
            joint_add(j, sums, ir->instruction[g.instruction[k]].out[0],
                      columns->at[from + k + 1] - columns->at[from + k], size[2], 0);
        ir->instruction[last].in[0] = left;
        if (ir->instruction[last].ins == 3) ir->instruction[last].in[2] = addend;
        ir->instruction[last].out[0] = sums->value;
        widen(ir->instruction[last].program, rows, size[2]);
        group_replace(j, &g, last);
    }
    return true;
}

/* ---- the pass ---- */

basin_status basin_ir_join(basin_ir *ir, bool bytes) {
    joining j = {.ir = ir, .values = ir->values, .small = bytes ? INT64_MAX : SMALL};
    int *order = basin_ir_scratch(ir, ir->instructions, sizeof *order);
    j.reader = basin_ir_scratch_none(ir, ir->values);
    j.bound = basin_ir_scratch(ir, ir->values, sizeof *j.bound);
    if (!order || !j.reader || !j.bound) return BASIN_NO_MEMORY;
    basin_ir_count_uses(ir);
    find_bound(&j);
    bool ok = join_chains(&j) && join_readings(&j) && join_gradients(&j);
    free(j.joint);
    if (!ok) return basin_ir_no_memory(ir);
    size_t kept = 0;
    for (size_t i = 0; i < ir->instructions; i++)
        if (!ir->instruction[i].dead) order[kept++] = (int)i;
    BASIN_TRY(basin_ir_reorder(ir, order, kept));
    basin_ir_count_uses(ir);
    return BASIN_OK;
}
