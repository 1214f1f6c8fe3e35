/* Factors of eight bits. A large product of tokens with a weight, or of tokens with tokens for the
 * gradient of a weight, that is narrow after narrow.c reads bytes instead, where every writer of
 * the tokens can store these:
 *
 *     layer norms, products under a ReLU, forces of attention              e4m3
 *     reverses of layer norms and of attention, products that are masked   e5m2
 *
 * Weights are e4m3. Products of bytes sum along rows of both factors, A B', so a weight that is
 * read the other way is transposed once, and tokens are where they are summed over. All else stays
 * as narrow.c left it.
 *
 * Scales are constants: a layer norm is at most the root of its width; hidden units and forces grow
 * to 30 and 100; weights are of the order of a hundredth; the cotangent of a mean over m rows is of
 * the order of 1 / m, and e5m2 leaves 13 powers of two above that. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "engine/plan/ir.h"

enum { MULTIPLE = 16 }; /* of sizes and strides of factors, required by cuBLASLt */

/* Scales of weights, layer norms, values derived from them; cotangents of tokens, values derived
 * from them. */
static const double WEIGHTS = 64, NORMS = 8, FORCES = 1, COTANGENTS = 4, DERIVED = 128;

/* A factor the other way round: columns of a root, from `first` on. */
typedef struct transposed {
    int root, value;                     /* value: bytes [columns, rows] */
    int64_t first, columns, rows, apart; /* apart: from one row of the root to the next */
    size_t writer;                       /* after which the rest is transposed; SIZE_MAX */
} transposed;

typedef struct converting {
    basin_ir *ir;
    double min;
    size_t values, instructions; /* as they were */
    bool *varies;                /* [values] of roots: depends on an input */
    bool *converted;             /* [instructions] products that read bytes */
    double *scale;               /* [values] of roots that become bytes or get a copy; 0: not */
    basin_kind *kind;            /* [values] of these: E4M3 or E5M2 */
    int *byte_copy;              /* [values] of roots: the value of bytes, perhaps itself; -1 */
    basin_ir_list list;          /* the new one */
    transposed *transposed;
    size_t turns, transposed_capacity;
} converting;

/* Which result of the instruction is, or is a part of, the root; -1. */
static int result_in(const basin_ir *ir, const basin_ir_instruction *instruction, int root) {
    for (int k = 0; k < instruction->outs; k++)
        if (instruction->out[k] >= 0 && basin_root_of(ir, instruction->out[k]) == root) return k;
    return -1;
}

/* A new value of bytes; -1 when out of memory. */
static int byte_value(converting *c, basin_shape shape, basin_kind kind, double scale) {
    int value = basin_ir_value_new(c->ir, shape, kind);
    if (value >= 0) c->ir->value[value].scale = scale;
    return value;
}

/* ---- what may become bytes ---- */

static void find_varying(converting *c) {
    const basin_ir *ir = c->ir;
    for (size_t i = 0; i < c->values; i++) {
        const basin_node *leaf = ir->value[i].leaf;
        c->varies[i] = leaf && leaf->op == BASIN_OP_INPUT;
    }
    for (size_t i = 0; i < c->instructions; i++) {
        const basin_ir_instruction *instruction = &ir->instruction[i];
        bool varies = false;
        for (int k = 0; k < instruction->ins; k++)
            if (instruction->in[k] >= 0)
                varies = varies || c->varies[basin_root_of(ir, instruction->in[k])];
        for (int k = 0; k < instruction->outs && varies; k++)
            if (instruction->out[k] >= 0) c->varies[basin_root_of(ir, instruction->out[k])] = true;
    }
}

/* The kind of bytes that the instruction can store for its result k; NARROW where it can not. A
 * force of the order of 1 has weights of its energies that no input changes. */
static basin_kind stored_kind(const converting *c, size_t i, int k) {
    const basin_ir_instruction *instruction = &c->ir->instruction[i];
    const int *in = instruction->in;
    switch (instruction->op) {
    case BASIN_OP_LAYERNORM: /* how large others are, their gains say */
        return c->ir->value[in[1]].shape.rank == 0 ? BASIN_E4M3 : BASIN_NARROW;
    case BASIN_OP_LAYERNORM_REVERSE: return k == 3 ? BASIN_E5M2 : BASIN_NARROW;
    case BASIN_OP_ATTENTION_FORCE:
        return (k == BASIN_ATT_DQ || k == BASIN_ATT_DK) && in[BASIN_ATT_ROW] < 0 &&
                       basin_ir_is_narrow(c->ir, in[BASIN_ATT_Q]) && in[BASIN_ATT_W] >= 0 &&
                       !c->varies[basin_root_of(c->ir, in[BASIN_ATT_W])]
                   ? BASIN_E4M3
                   : BASIN_NARROW;
    case BASIN_OP_ATTENTION_REVERSE:
        return (k == BASIN_ATT_GQ || k == BASIN_ATT_GK) && in[BASIN_ATT_ROW] < 0 &&
                       basin_ir_is_narrow(c->ir, in[BASIN_ATT_Q])
                   ? BASIN_E5M2
                   : BASIN_NARROW;
    case BASIN_OP_MATMUL: {
        basin_form_kind form = basin_program_form_of(instruction->program).kind;
        bool stores = c->converted[i] && (form == BASIN_FORM_RELU || form == BASIN_FORM_MASKED);
        return stores ? c->kind[basin_root_of(c->ir, in[0])] : BASIN_NARROW;
    }
    default: return BASIN_NARROW;
    }
}

/* Kind and scale of bytes that all writers of the root before `end` can store; or NARROW. */
static basin_kind token_kind(double *scale, const converting *c, int root, size_t end, int64_t m) {
    basin_kind kind = BASIN_NARROW;
    bool derived = false;
    for (size_t i = 0; i < c->instructions; i++) {
        const basin_ir_instruction *instruction = &c->ir->instruction[i];
        for (int k = 0; k < instruction->outs; k++) {
            if (instruction->out[k] < 0 || basin_root_of(c->ir, instruction->out[k]) != root)
                continue;
            basin_kind own = i < end ? stored_kind(c, i, k) : BASIN_NARROW;
            if (own == BASIN_NARROW || (kind != BASIN_NARROW && kind != own)) return BASIN_NARROW;
            kind = own;
            derived = derived || (instruction->op != BASIN_OP_LAYERNORM_REVERSE &&
                                  instruction->op != BASIN_OP_LAYERNORM);
        }
    }
    double mean = ldexp(1, (int)ceil(log2((double)m)));
    *scale =
        kind == BASIN_E4M3 ? (derived ? FORCES : NORMS) : (derived ? DERIVED : COTANGENTS) * mean;
    return kind;
}

/* Whether the root holds only narrow copies of states, perhaps transposed. */
static bool is_weight(const converting *c, int root, int depth) {
    const basin_ir *ir = c->ir;
    bool found = false;
    for (size_t i = 0; i < c->instructions; i++) {
        const basin_ir_instruction *instruction = &ir->instruction[i];
        if (result_in(ir, instruction, root) < 0) continue;
        int from = basin_root_of(ir, instruction->in[0]);
        const basin_node *leaf = ir->value[from].leaf;
        bool copy = instruction->op == BASIN_OP_POINTWISE && instruction->ins == 1 &&
                    instruction->outs == 1 && instruction->program->instructions == 1 && leaf &&
                    leaf->op == BASIN_OP_STATE;
        bool turn = instruction->op == BASIN_OP_PERMUTE && depth > 0 && is_weight(c, from, 0);
        if (!copy && !turn) return false;
        found = true;
    }
    return found && basin_ir_is_narrow(ir, root);
}

/* Whether a backend computes the epilogue with the product, result and all. */
static bool fits_epilogue(const basin_ir *ir, const basin_ir_instruction *p, int64_t n) {
    basin_program_form form = basin_program_form_of(p->program);
    bool own = n % 64 == 0 && basin_ir_is_narrow(ir, p->out[0]);
    switch (form.kind) {
    case BASIN_FORM_SUM: return p->outs == 1 && (form.operand < 0 || !ir->value[p->out[0]].stride);
    case BASIN_FORM_RELU: return own;
    case BASIN_FORM_MASKED:
        return own && ir->value[basin_root_of(ir, p->in[2 + form.operand])].kind == BASIN_INDEX;
    default: return false;
    }
}

static bool is_even(const basin_ir *ir, int value) {
    const basin_ir_value *v = &ir->value[value];
    return v->first % MULTIPLE == 0 && v->stride % MULTIPLE == 0;
}

/* Whether sizes and strides are valid for products of bytes. */
static bool fits_sizes(const converting *c, const basin_ir_instruction *p) {
    const basin_ir *ir = c->ir;
    int64_t size[4];
    if (p->op != BASIN_OP_MATMUL || p->attr.packed_b || !basin_ir_is_narrow(ir, p->in[0]) ||
        !basin_ir_is_narrow(ir, p->in[1]))
        return false;
    basin_product_sizes(size, ir, p);
    return size[0] == 1 && size[2] % MULTIPLE == 0 && size[3] % MULTIPLE == 0 && size[1] > 0 &&
           size[3] > 0 && is_even(ir, p->in[0]) && is_even(ir, p->in[1]) &&
           is_even(ir, p->out[0]) && fits_epilogue(ir, p, size[2]) &&
           (double)size[1] * (double)size[2] * (double)size[3] >= c->min;
}

/* A product of tokens with a weight. */
static bool decide_reading(converting *c, const basin_ir_instruction *p, size_t i) {
    const basin_ir *ir = c->ir;
    int64_t size[4];
    double scale;
    int tokens = basin_root_of(ir, p->in[0]), weight = basin_root_of(ir, p->in[1]);
    if (p->attr.transpose_a || ir->value[p->in[1]].stride || !is_weight(c, weight, 1)) return false;
    basin_product_sizes(size, ir, p);
    basin_kind kind = token_kind(&scale, c, tokens, i, size[1]);
    basin_form_kind form = basin_program_form_of(p->program).kind;
    if (kind == BASIN_NARROW || (kind == BASIN_E4M3 && form == BASIN_FORM_MASKED) ||
        (kind == BASIN_E5M2 && form == BASIN_FORM_RELU))
        return false;
    c->kind[tokens] = kind, c->scale[tokens] = scale;
    if (p->attr.transpose_b) c->kind[weight] = BASIN_E4M3, c->scale[weight] = WEIGHTS;
    return true;
}

/* The gradient of a weight, summed over all tokens; no product takes two factors of e5m2. */
static bool decide_gradient(converting *c, const basin_ir_instruction *p, size_t i) {
    const basin_ir *ir = c->ir;
    int64_t size[4];
    double scale[2];
    basin_kind kind[2];
    basin_product_sizes(size, ir, p);
    if (!p->attr.transpose_a || p->attr.transpose_b || size[1] % MULTIPLE != 0 || p->outs != 1)
        return false;
    for (int k = 0; k < 2; k++)
        kind[k] = token_kind(&scale[k], c, basin_root_of(ir, p->in[k]), i, size[3]);
    if (kind[0] == BASIN_NARROW || kind[1] == BASIN_NARROW ||
        (kind[0] == BASIN_E5M2 && kind[1] == BASIN_E5M2))
        return false;
    for (int k = 0; k < 2; k++) {
        int root = basin_root_of(ir, p->in[k]);
        c->kind[root] = kind[k], c->scale[root] = scale[k];
    }
    return true;
}

/* ---- values of bytes ---- */

/* Whether products that were converted are the only readers of the root. */
static bool is_read_as_bytes(const converting *c, int root) {
    const basin_ir *ir = c->ir;
    if (ir->value[root].output || ir->value[root].state) return false;
    for (size_t i = 0; i < c->instructions; i++)
        for (int k = 0; k < ir->instruction[i].ins; k++) {
            int value = ir->instruction[i].in[k];
            if (value >= 0 && basin_root_of(ir, value) == root && !(c->converted[i] && k < 2))
                return false;
        }
    return true;
}

/* Tokens become bytes where nobody reads them otherwise; else, as weights do, they get a byte copy.
 */
static bool make_byte_copies(converting *c) {
    for (size_t i = 0; i < c->values; i++) {
        basin_ir *ir = c->ir;
        if (c->scale[i] == 0) continue;
        if (!is_weight(c, (int)i, 1) && is_read_as_bytes(c, (int)i)) {
            ir->value[i].kind = c->kind[i], ir->value[i].scale = c->scale[i];
            c->byte_copy[i] = (int)i;
        } else {
            c->byte_copy[i] = byte_value(c, ir->value[i].shape, c->kind[i], c->scale[i]);
            if (c->byte_copy[i] < 0) return false;
        }
    }
    return true;
}

/* What lies in `root` where `value` lies in its own; -1 when out of memory. */
static int view(converting *c, int value, int root, basin_shape shape) {
    const basin_ir_value *like = &c->ir->value[value];
    if (root == like->root) return value;
    return basin_ir_view_new(c->ir, root, shape, like->first, like->stride);
}

/* ---- transposed factors, for products of bytes along rows of both: stored by a product under a
 * ReLU or mask with its result, else transposed right after it
 * ---- */

static bool add_turn(converting *c, int to, int from) {
    basin_ir_instruction turn = basin_ir_transpose(to, from);
    return basin_ir_list_add(&c->list, &turn);
}

/* The factor's bytes the other way round, made or to be made; NULL where there are none. */
static transposed *find_transposed(const converting *c, int value, int64_t columns) {
    int root = basin_root_of(c->ir, value);
    int64_t first = c->ir->value[value].first;
    for (size_t i = 0; i < c->turns; i++)
        if (c->transposed[i].root == root && c->transposed[i].first == first &&
            c->transposed[i].columns == columns)
            return &c->transposed[i];
    return NULL;
}

/* Room for those of a factor [rows, columns]; NULL when out of memory. */
static transposed *new_transposed(converting *c, int value, int64_t rows, int64_t columns) {
    int root = basin_root_of(c->ir, value);
    bool tokens = c->byte_copy[root] >= 0;
    int bytes = byte_value(c, BASIN_SHAPE(columns, rows), tokens ? c->kind[root] : BASIN_E4M3,
                           tokens ? c->scale[root] : WEIGHTS);
    if (bytes < 0 || !BASIN_RESERVE(&c->transposed, &c->transposed_capacity, c->turns + 1))
        return NULL;
    const basin_ir_value *v = &c->ir->value[value];
    c->transposed[c->turns] = (transposed){
        root, bytes, v->first, columns, rows, v->stride ? v->stride : columns, SIZE_MAX};
    return &c->transposed[c->turns++];
}

/* Columns of the factor's root, from `first` on, as they lie. */
static int columns_of(converting *c, const transposed *t, int64_t first, int64_t columns) {
    int byte_copy = c->byte_copy[t->root];
    return basin_ir_view_new(c->ir, byte_copy < 0 ? t->root : byte_copy,
                             BASIN_SHAPE(t->rows, columns), first,
                             t->apart == columns ? 0 : t->apart);
}

/* Their place among those of the factor, the other way round. */
static int place_transposed(converting *c, const transposed *t, int64_t first, int64_t columns) {
    if (columns == t->columns) return t->value;
    return basin_ir_view_new(c->ir, t->value, BASIN_SHAPE(columns, t->rows),
                             (first - t->first) * t->rows, 0);
}

/* The bytes of a factor [rows, columns], transposed; made here unless they were needed before. A
 * weight may have no bytes as it is: it is transposed first. -1 when out of memory. */
static int turn_of(converting *c, int value, int64_t rows, int64_t columns) {
    transposed *found = find_transposed(c, value, columns);
    if (found) return found->value;
    transposed *made = new_transposed(c, value, rows, columns);
    if (!made) return -1;
    transposed t = *made;
    int from = columns_of(c, &t, t.first, columns), plain = -1;
    if (from < 0) return -1;
    if (c->byte_copy[t.root] >= 0) return add_turn(c, t.value, from) ? t.value : -1;
    plain = basin_ir_value_new(c->ir, BASIN_SHAPE(columns, rows), BASIN_NARROW);
    bool ok = plain >= 0 && add_turn(c, plain, from) &&
              basin_ir_list_copy(&c->list, c->ir, t.value, plain);
    return ok ? t.value : -1;
}

/* ---- tokens the other way round ---- */

/* How many columns of the factor product i could store the other way round itself, 0 for none;
 * `first`: from where on. Nobody reads them but as bytes. */
static int64_t storable(int64_t *first, const converting *c, const transposed *t, size_t i) {
    const basin_ir *ir = c->ir;
    const basin_ir_instruction *p = &ir->instruction[i];
    if (p->op != BASIN_OP_MATMUL || !c->converted[i] || p->attr.transpose_a ||
        basin_root_of(ir, p->out[0]) != t->root || c->byte_copy[t->root] != t->root)
        return 0;
    basin_form_kind form = basin_program_form_of(p->program).kind;
    if (form != BASIN_FORM_RELU && form != BASIN_FORM_MASKED) return 0;
    int64_t size[4];
    basin_product_sizes(size, ir, p);
    *first = ir->value[p->out[0]].first;
    bool inside = *first >= t->first && *first + size[2] <= t->first + t->columns;
    return inside && size[1] == t->rows ? size[2] : 0;
}

/* The same of factor k, for those that it does store there: a product stores one. */
static int64_t stored(int64_t *first, const converting *c, size_t k, size_t i) {
    for (size_t j = 0; j < k; j++)
        if (storable(first, c, &c->transposed[j], i) > 0) return 0;
    return storable(first, c, &c->transposed[k], i);
}

/* The last instruction that writes some of factor k but does not store it so; SIZE_MAX. */
static size_t last_plain(const converting *c, size_t k) {
    size_t last = SIZE_MAX;
    int64_t first;
    for (size_t i = 0; i < c->instructions; i++)
        if (result_in(c->ir, &c->ir->instruction[i], c->transposed[k].root) >= 0 &&
            stored(&first, c, k, i) == 0)
            last = i;
    return last;
}

/* Which tokens gradients of weights will read; copies are known. False when out of memory. */
static bool find_turns(converting *c) {
    for (size_t i = 0; i < c->instructions; i++) {
        const basin_ir_instruction p = c->ir->instruction[i];
        int64_t size[4];
        if (!c->converted[i] || !p.attr.transpose_a) continue;
        basin_product_sizes(size, c->ir, &p);
        for (int k = 0; k < 2; k++) {
            if (find_transposed(c, p.in[k], size[1 + k])) continue;
            transposed *t = new_transposed(c, p.in[k], size[3], size[1 + k]);
            if (!t) return false;
            t->writer = last_plain(c, c->turns - 1);
        }
    }
    return true;
}

/* Lets product i also store its result transposed, where that is needed. */
static bool turn_store(converting *c, basin_ir_instruction *instruction, size_t i) {
    for (size_t k = 0; k < c->turns; k++) {
        int64_t first, columns = stored(&first, c, k, i);
        if (columns == 0) continue;
        int to = place_transposed(c, &c->transposed[k], first, columns);
        if (to < 0) return false;
        if (instruction->byte_copies == 0) instruction->byte_copy[0] = -1;
        instruction->byte_copies = BASIN_BYTE_COPY_TRANSPOSED + 1;
        instruction->byte_copy[BASIN_BYTE_COPY_TRANSPOSED] = to;
    }
    return true;
}

/* From column `at` of factor k on: how many are alike, and whether a product stores those. */
static int64_t run_length(bool *done, const converting *c, size_t k, int64_t at) {
    int64_t next = c->transposed[k].first + c->transposed[k].columns, first;
    *done = false;
    for (size_t i = 0; i < c->instructions; i++) {
        int64_t columns = stored(&first, c, k, i);
        if (columns == 0 || first < at) continue;
        if (first == at) {
            *done = true;
            return columns;
        }
        if (first < next) next = first;
    }
    return next - at;
}

/* Turns those columns of factor k that no product stores so. */
static bool turn_columns(converting *c, size_t k) {
    const transposed t = c->transposed[k];
    int64_t length;
    for (int64_t at = t.first; at < t.first + t.columns; at += length) {
        bool done;
        length = run_length(&done, c, k, at);
        if (done) continue;
        int from = columns_of(c, &t, at, length), to = place_transposed(c, &t, at, length);
        if (from < 0 || to < 0 || !add_turn(c, to, from)) return false;
    }
    return true;
}

/* Turns what instruction i has written and no product stores so; in the list, it comes next. */
static bool turn_rest(converting *c, size_t i) {
    for (size_t k = 0; k < c->turns; k++)
        if (c->transposed[k].writer == i && !turn_columns(c, k)) return false;
    return true;
}

/* ---- the new list ---- */

/* A converted product reads bytes, rows of both. */
static bool read_bytes(converting *c, basin_ir_instruction *p) {
    const basin_ir *ir = c->ir;
    int64_t size[4];
    basin_product_sizes(size, ir, p);
    for (int k = 0; k < 2; k++) {
        int value = p->in[k];
        bool turn = k == 0 ? p->attr.transpose_a : !p->attr.transpose_b;
        p->in[k] =
            turn ? turn_of(c, value, size[3], size[1 + k])
                 : view(c, value, c->byte_copy[basin_root_of(ir, value)], ir->value[value].shape);
        if (p->in[k] < 0) return false;
    }
    p->attr.transpose_a = false, p->attr.transpose_b = true;
    return true;
}

/* Results that have a byte copy are also stored there: by the instruction, or by a copy after
 * it. */
static bool write_bytes(converting *c, basin_ir_instruction *instruction, size_t i) {
    int copy[2] = {-1, -1};
    for (int k = 0; k < instruction->outs; k++) {
        int value = instruction->out[k], root = value < 0 ? -1 : basin_root_of(c->ir, value);
        if (root < 0 || (size_t)root >= c->values || c->byte_copy[root] < 0 ||
            c->byte_copy[root] == root)
            continue;
        int made = view(c, value, c->byte_copy[root], c->ir->value[value].shape);
        if (made < 0) return false;
        if (stored_kind(c, i, k) == BASIN_NARROW) {
            copy[0] = made, copy[1] = value;
            continue;
        }
        int which = instruction->op == BASIN_OP_LAYERNORM_REVERSE
                        ? 0
                        : k - basin_byte_copy_of(instruction->op, 0);
        for (; instruction->byte_copies <= which; instruction->byte_copies++)
            instruction->byte_copy[instruction->byte_copies] = -1;
        instruction->byte_copy[which] = made;
    }
    return basin_ir_list_add(&c->list, instruction) &&
           (copy[0] < 0 || basin_ir_list_copy(&c->list, c->ir, copy[0], copy[1]));
}

static bool rewrite(converting *c) {
    for (size_t i = 0; i < c->instructions; i++) {
        basin_ir_instruction instruction = c->ir->instruction[i];
        if (c->converted[i] && !read_bytes(c, &instruction)) return false;
        if (!turn_store(c, &instruction, i) || !write_bytes(c, &instruction, i) || !turn_rest(c, i))
            return false;
    }
    return true;
}

basin_status basin_ir_bytes(basin_ir *ir, double min) {
    converting c = {.ir = ir, .min = min, .values = ir->values, .instructions = ir->instructions};
    c.varies = basin_ir_scratch(ir, ir->values, sizeof *c.varies);
    c.converted = basin_ir_scratch(ir, ir->instructions, sizeof *c.converted);
    c.scale = basin_ir_scratch(ir, ir->values, sizeof *c.scale);
    c.kind = basin_ir_scratch(ir, ir->values, sizeof *c.kind);
    c.byte_copy = basin_ir_scratch_none(ir, ir->values);
    if (!c.varies || !c.converted || !c.scale || !c.kind || !c.byte_copy) return BASIN_NO_MEMORY;
    find_varying(&c);
    for (size_t i = 0; i < c.instructions; i++) { /* those before it being decided */
        const basin_ir_instruction *p = &ir->instruction[i];
        c.converted[i] =
            fits_sizes(&c, p) && (decide_reading(&c, p, i) || decide_gradient(&c, p, i));
    }
    bool ok = make_byte_copies(&c) && find_turns(&c) && rewrite(&c);
    if (ok) basin_ir_list_take(&c.list, ir);
    basin_ir_list_discard(&c.list, ir);
    free(c.transposed);
    return ok ? BASIN_OK : basin_ir_no_memory(ir);
}
