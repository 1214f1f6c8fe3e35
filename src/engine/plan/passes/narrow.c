/* Narrow storage: which intermediate results are kept as bfloat16 where the backend was asked to.
 *
 * Narrow are the factors of large matrix products and of attention over all pairs, and rows that
 * attention along a list gathers where the backend takes them so: values that only these read, or a
 * layer norm's reverse as its cotangent; where the backend reads them, also results of large
 * products that go into a program with narrow results, into a causal softmax, or as a factor into a
 * sum; and permutations of these. A factor with other readers stays float and gets a narrow copy.
 * All else stays float. */
#include "engine/plan/ir.h"

typedef struct narrowing {
    basin_ir *ir;
    double min;         /* multiply-adds that make a product or an attention large */
    bool lists;         /* also attention along lists */
    bool reads;         /* sums, permutations and causal softmax take narrow operands */
    bool *wide;         /* [values] of roots */
    bool *factor;       /* [values] of roots: of a large product */
    bool *summed;       /* [values] roots that only sums read */
    int *cast;          /* [values] of wide roots: the narrow copy, -1 before it is needed */
    basin_ir_list list; /* the new one */
    size_t values;
} narrowing;

typedef enum demand { ANY, WIDE, NARROW } demand;

static bool is_attention(basin_op op) {
    return op >= BASIN_OP_ATTENTION && op <= BASIN_OP_ATTENTION_REVERSE;
}

static bool is_values(basin_op op) { return op >= BASIN_OP_VALUES && op <= BASIN_OP_VALUES_SECOND; }

static double count_of(const basin_ir *ir, int value) {
    return (double)basin_shape_count(ir->value[value].shape);
}

/* The keys that a query sees, on average along a list; 0 for lists that stay wide. */
static double keys_seen(const narrowing *n, const basin_ir_instruction *instruction) {
    const basin_ir *ir = n->ir;
    const int *in = instruction->in;
    if (in[BASIN_ATT_ROW] < 0) return (double)ir->value[in[BASIN_ATT_K]].shape.dim[1];
    if (!n->lists || in[BASIN_ATT_SCALE] >= 0 || in[BASIN_ATT_MIX] >= 0) return 0;
    double queries = (double)ir->value[in[BASIN_ATT_Q]].shape.dim[1];
    return queries > 0 ? count_of(ir, in[BASIN_ATT_KEY]) / queries : 0;
}

/* Whether the instruction has enough to multiply that narrow factors pay. */
static bool is_large(const narrowing *n, const basin_ir_instruction *instruction) {
    const basin_ir *ir = n->ir;
    if (instruction->op == BASIN_OP_MATMUL) {
        int64_t size[4];
        basin_product_sizes(size, ir, instruction);
        return (double)size[0] * (double)size[1] * (double)size[2] * (double)size[3] >= n->min;
    }
    if (is_values(instruction->op)) {
        int keys = instruction->in[BASIN_VAL_K];
        double seen = instruction->in[BASIN_VAL_ROW] < 0 ? (double)ir->value[keys].shape.dim[1] : 0;
        return seen > 0 && count_of(ir, instruction->in[BASIN_VAL_Q]) * seen >= n->min;
    }
    if (!is_attention(instruction->op)) return false;
    double keys = keys_seen(n, instruction);
    return keys > 0 && count_of(ir, instruction->in[BASIN_ATT_Q]) * keys >= n->min;
}

/* What an instruction requires of operand k. */
static demand operand_demand(const narrowing *n, const basin_ir_instruction *instruction, int k) {
    switch (instruction->op) {
    case BASIN_OP_POINTWISE: return ANY;
    case BASIN_OP_MATMUL: return k >= 2 ? ANY : is_large(n, instruction) ? NARROW : WIDE;
    case BASIN_OP_LAYERNORM_REVERSE: return k == 2 ? ANY : WIDE;
    case BASIN_OP_SUM: return ANY;
    case BASIN_OP_PERMUTE: return n->reads && !n->wide[instruction->out[0]] ? NARROW : WIDE;
    case BASIN_OP_CAUSAL_SOFTMAX:
    case BASIN_OP_CAUSAL_SOFTMAX_REVERSE: return ANY;
    default: break;
    }
    bool numbers = k <= BASIN_VAL_V || (k >= BASIN_VAL_C && k != BASIN_VAL_TBIAS);
    if (is_values(instruction->op)) return numbers && is_large(n, instruction) ? NARROW : WIDE;
    bool tokens = k == BASIN_ATT_Q || k == BASIN_ATT_K || k == BASIN_ATT_A || k == BASIN_ATT_B;
    return is_attention(instruction->op) && tokens && is_large(n, instruction) ? NARROW : WIDE;
}

/* What it guarantees for result k. */
static demand result_demand(const narrowing *n, const basin_ir_instruction *instruction, int k) {
    switch (instruction->op) {
    case BASIN_OP_POINTWISE:
    case BASIN_OP_MATMUL:
    case BASIN_OP_LAYERNORM: return ANY;
    case BASIN_OP_UNIFORM: return n->reads && instruction->attr.drop > 0 ? ANY : WIDE;
    case BASIN_OP_CONCAT:
    case BASIN_OP_PERMUTE:
    case BASIN_OP_CAUSAL_SOFTMAX:
    case BASIN_OP_CAUSAL_SOFTMAX_REVERSE: return n->reads ? ANY : WIDE;
    case BASIN_OP_ATTENTION_FORCE:
        return (k == BASIN_ATT_DQ || k == BASIN_ATT_DK) && is_large(n, instruction) ? NARROW : WIDE;
    case BASIN_OP_ATTENTION_REVERSE:
        return (k == BASIN_ATT_GQ || k == BASIN_ATT_GK) && is_large(n, instruction) ? NARROW : WIDE;
    case BASIN_OP_VALUES:
    case BASIN_OP_VALUES_REVERSE:
    case BASIN_OP_VALUES_SECOND:
        return k != BASIN_VAL_OUT_BIAS && is_large(n, instruction) ? NARROW : WIDE;
    default: return WIDE;
    }
}

/* ---- which values are wide ---- */

static const basin_ir_instruction *producer_of(const narrowing *n, int value) {
    const basin_ir_value *root = &n->ir->value[n->ir->value[value].root];
    return root->producer < 0 ? NULL : &n->ir->instruction[root->producer];
}

static bool is_large_product(const narrowing *n, int value) {
    const basin_ir_instruction *instruction = producer_of(n, value);
    return instruction && instruction->op == BASIN_OP_MATMUL && is_large(n, instruction);
}

/* A large product, or what a program makes of one, element by element. */
static bool is_from_product(const narrowing *n, int value) {
    const basin_ir_instruction *program = producer_of(n, value);
    bool found = is_large_product(n, value);
    if (!program || program->op != BASIN_OP_POINTWISE) return found;
    for (int k = 0; k < program->ins && !found; k++)
        found = is_large_product(n, program->in[k]) &&
                count_of(n->ir, program->in[k]) == count_of(n->ir, value);
    return found;
}

/* Zeros and ones, which are exact in any width. */
static bool is_mask(const narrowing *n, int value) {
    const basin_ir_instruction *instruction = producer_of(n, value);
    return n->reads && instruction && instruction->op == BASIN_OP_UNIFORM &&
           instruction->attr.drop > 0;
}

/* How many results of the instruction are narrow. */
static int narrow_results(const narrowing *n, const basin_ir_instruction *instruction) {
    int found = 0;
    for (int i = 0; i < instruction->outs; i++)
        found += instruction->out[i] >= 0 && !n->wide[instruction->out[i]];
    return found;
}

/* Whether nothing but sums over many elements comes of it. */
static bool is_summed(const narrowing *n, const basin_ir_instruction *instruction) {
    bool all = true;
    for (int i = 0; i < instruction->outs; i++)
        all = all && instruction->out[i] >= 0 && n->summed[instruction->out[i]];
    return all;
}

/* Whether operand k of the instruction may be narrow though it is not a factor: a large product
 * that a layer norm takes as its cotangent, what a product adds to a narrow result, or what is as
 * rough as a product, for callers that read it. Results of the instruction are decided already. */
static bool tolerates(const narrowing *n, const basin_ir_instruction *instruction, int k) {
    bool is_factor = n->factor[n->ir->value[instruction->in[k]].root];
    bool program = instruction->op == BASIN_OP_POINTWISE;
    if ((program || (instruction->op == BASIN_OP_MATMUL && k >= 2)) &&
        is_mask(n, instruction->in[k]))
        return true;
    switch (instruction->op) {
    case BASIN_OP_LAYERNORM_REVERSE: return k == 2 && is_large_product(n, instruction->in[k]);
    case BASIN_OP_MATMUL: return k >= 2 && narrow_results(n, instruction) > 0;
    case BASIN_OP_POINTWISE:
        if (!n->reads) return false;
        if (is_summed(n, instruction)) return is_factor;
        return narrow_results(n, instruction) == instruction->outs &&
               (is_factor || is_from_product(n, instruction->in[k]));
    case BASIN_OP_SUM: return n->reads && is_factor && is_from_product(n, instruction->in[k]);
    case BASIN_OP_CAUSAL_SOFTMAX:
    case BASIN_OP_CAUSAL_SOFTMAX_REVERSE:
        return n->reads && is_large_product(n, instruction->in[k]);
    default: return false;
    }
}

static void mark_readers(narrowing *n) {
    const basin_ir *ir = n->ir;
    for (size_t i = 0; i < ir->values; i++)
        n->summed[i] = ir->value[i].uses > 0 && !ir->value[i].output && !ir->value[i].state;
    for (size_t i = 0; i < ir->instructions; i++) {
        const basin_ir_instruction *instruction = &ir->instruction[i];
        bool product = instruction->op == BASIN_OP_MATMUL && is_large(n, instruction);
        for (int k = 0; k < instruction->ins; k++) {
            if (instruction->in[k] < 0) continue;
            int root = ir->value[instruction->in[k]].root;
            if (product && k < 2) n->factor[root] = true;
            if (instruction->op != BASIN_OP_SUM) n->summed[root] = false;
        }
    }
}

/* From the last instruction to the first, so that the readers of a result are decided before it is.
 * A result starts as wide as its instruction gives it, and any reader can make it wide. */
static void mark_wide(narrowing *n) {
    const basin_ir *ir = n->ir;
    for (size_t i = 0; i < ir->values; i++) {
        const basin_ir_value *v = &ir->value[i];
        n->wide[i] = v->leaf || v->output || v->state || v->kind != BASIN_REAL || v->producer < 0 ||
                     v->uses == 0;
    }
    for (size_t i = ir->instructions; i-- > 0;) {
        const basin_ir_instruction *instruction = &ir->instruction[i];
        for (int k = 0; k < instruction->outs; k++)
            if (instruction->out[k] >= 0 && result_demand(n, instruction, k) == WIDE)
                n->wide[instruction->out[k]] = true;
        for (int k = 0; k < instruction->ins; k++) {
            if (instruction->in[k] < 0) continue;
            if (operand_demand(n, instruction, k) != NARROW && !tolerates(n, instruction, k))
                n->wide[ir->value[instruction->in[k]].root] = true;
        }
    }
}

/* ---- casts ---- */

/* A narrow value like `value`; its root is `root`, or itself for -1. */
static int narrow_like(narrowing *n, int value, int root) {
    int made = basin_ir_value_new(n->ir, n->ir->value[value].shape, BASIN_NARROW);
    if (made >= 0 && root >= 0) n->ir->value[made].root = root;
    return made;
}

/* Lets the program that computes `root`, if there is one with room, also store it as `made`. */
static bool store_twice(narrowing *n, int made, int root) {
    for (size_t i = n->list.count; i-- > 0;) {
        basin_ir_instruction *instruction = &n->list.instruction[i];
        for (int k = 0; k < instruction->outs; k++) {
            if (instruction->out[k] != root) continue;
            if (instruction->op == BASIN_OP_LAYERNORM_REVERSE && k == 0 && instruction->outs == 3) {
                instruction->out[instruction->outs++] = made;
                return true;
            }
            if (instruction->op != BASIN_OP_POINTWISE || instruction->outs == BASIN_MAX_OUT)
                return false;
            instruction->program->store[instruction->program->stores++] =
                instruction->program->store[k];
            instruction->out[instruction->outs++] = made;
            return true;
        }
    }
    return false;
}

/* The narrow form of a wide operand, made here unless an earlier instruction needed it. */
static int narrow_operand(narrowing *n, int value) {
    int root = n->ir->value[value].root;
    if (n->cast[root] < 0) {
        int made = narrow_like(n, value, -1);
        if (made < 0 ||
            (!store_twice(n, made, root) && !basin_ir_list_copy(&n->list, n->ir, made, value)))
            return -1;
        n->cast[root] = made;
    }
    int cast = n->cast[root];
    bool same = basin_shape_equal(n->ir->value[cast].shape, n->ir->value[value].shape);
    return same ? cast : narrow_like(n, value, cast);
}

/* Copies an instruction, with casts of what it needs narrow before and wide after it. */
static bool move_instruction(narrowing *n, basin_ir_instruction instruction) {
    int after[BASIN_MAX_OUT][2], casts = 0;
    for (int k = 0; k < instruction.ins; k++) {
        if (instruction.in[k] < 0 || operand_demand(n, &instruction, k) != NARROW) continue;
        int root = n->ir->value[instruction.in[k]].root;
        if ((size_t)root >= n->values || !n->wide[root]) continue;
        instruction.in[k] = narrow_operand(n, instruction.in[k]);
        if (instruction.in[k] < 0) return false;
    }
    for (int k = 0; k < instruction.outs; k++) {
        int value = instruction.out[k];
        if (value < 0 || result_demand(n, &instruction, k) != NARROW || !n->wide[value]) continue;
        int made = narrow_like(n, value, -1);
        if (made < 0) return false;
        after[casts][0] = value, after[casts++][1] = made;
        instruction.out[k] = made;
    }
    if (!basin_ir_list_add(&n->list, &instruction)) return false;
    for (int i = 0; i < casts; i++)
        if (!basin_ir_list_copy(&n->list, n->ir, after[i][0], after[i][1])) return false;
    return true;
}

/* Casts of states first of all, where a backend runs programs that do the same at once. */
static bool cast_states(narrowing *n) {
    const basin_ir *ir = n->ir;
    for (size_t i = 0; i < ir->instructions && n->reads; i++)
        for (int k = 0; k < ir->instruction[i].ins; k++) {
            int value = ir->instruction[i].in[k], root = value < 0 ? -1 : ir->value[value].root;
            const basin_node *leaf = root < 0 ? NULL : ir->value[root].leaf;
            if (leaf && leaf->op == BASIN_OP_STATE &&
                operand_demand(n, &ir->instruction[i], k) == NARROW && narrow_operand(n, value) < 0)
                return false;
        }
    return true;
}

static basin_status rewrite(narrowing *n) {
    basin_ir *ir = n->ir;
    for (size_t i = 0; i < n->values; i++)
        if (!n->wide[i] && ir->value[i].root == (int)i) ir->value[i].kind = BASIN_NARROW;
    if (!cast_states(n)) return basin_ir_no_memory(ir);
    for (size_t i = 0; i < ir->instructions; i++)
        if (!move_instruction(n, ir->instruction[i])) return basin_ir_no_memory(ir);
    basin_ir_list_take(&n->list, ir);
    return BASIN_OK;
}

basin_status basin_ir_narrow(basin_ir *ir, double min, const basin_backend_table *table) {
    narrowing n = {.ir = ir,
                   .min = min,
                   .lists = table->narrow_lists,
                   .reads = table->narrow_reads,
                   .values = ir->values};
    n.wide = basin_ir_scratch(ir, ir->values, sizeof *n.wide);
    n.factor = basin_ir_scratch(ir, ir->values, sizeof *n.factor);
    n.summed = basin_ir_scratch(ir, ir->values, sizeof *n.summed);
    n.cast = basin_ir_scratch_none(ir, ir->values);
    if (!n.wide || !n.factor || !n.summed || !n.cast) return BASIN_NO_MEMORY;
    mark_readers(&n);
    mark_wide(&n);
    basin_status status = rewrite(&n);
    basin_ir_list_discard(&n.list, ir);
    return status;
}

/* Masks of ReLUs. Where a product is kept under a ReLU, r = max(P, 0), and a later one is kept
 * where r is above 0 (the reverse of the first), the second reads a bit per element instead of r:
 * the first writes them beside r, in an order that the backend chooses. There is room for the bits
 * of m rounded up to a multiple of 64 rows: a backend may keep those of square blocks together. */

/* The instruction whose ReLU masks this one; -1 where there is none. */
static int relu_of(const basin_ir *ir, const basin_ir_instruction *instruction) {
    int64_t size[4], own[4];
    if (instruction->op != BASIN_OP_MATMUL || instruction->ins != 3 || instruction->outs != 1 ||
        basin_program_form_of(instruction->program).kind != BASIN_FORM_MASKED ||
        !basin_ir_is_narrow(ir, instruction->out[0]) || !basin_ir_is_narrow(ir, instruction->in[2]))
        return -1;
    int root = ir->value[instruction->in[2]].root, producer = ir->value[root].producer;
    const basin_ir_instruction *relu = producer < 0 ? NULL : &ir->instruction[producer];
    if (!relu || relu->op != BASIN_OP_MATMUL || relu->out[0] != root ||
        basin_program_form_of(relu->program).kind != BASIN_FORM_RELU)
        return -1;
    basin_product_sizes(own, ir, instruction);
    basin_product_sizes(size, ir, relu);
    bool fits = own[0] == 1 && size[0] == 1 && own[1] == size[1] && own[2] == size[2];
    return fits && own[2] % 128 == 0 && own[3] > 0 ? producer : -1;
}

basin_status basin_ir_mask(basin_ir *ir) {
    for (size_t i = 0; i < ir->instructions; i++) {
        int relu = relu_of(ir, &ir->instruction[i]);
        if (relu < 0) continue;
        if (ir->instruction[relu].outs == 1) {
            int64_t size[4];
            basin_product_sizes(size, ir, &ir->instruction[relu]);
            int64_t rows = (size[1] + 63) / 64 * 64;
            int bits = basin_ir_value_new(ir, BASIN_SHAPE(rows, size[2] / 32), BASIN_INDEX);
            if (bits < 0) return BASIN_NO_MEMORY;
            ir->value[bits].producer = relu;
            ir->instruction[relu].out[ir->instruction[relu].outs++] = bits;
        }
        ir->instruction[i].in[2] = ir->instruction[relu].out[1];
    }
    basin_ir_count_uses(ir);
    return BASIN_OK;
}
