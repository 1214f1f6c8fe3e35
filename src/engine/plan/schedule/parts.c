/* Parts: a run of instructions in which the pictures of a batch do not meet (a descent) is cut
 * along the batch into equal slices of memory. Each part goes through the run at its own pace;
 * threads wait for each other only at its end. Kernels compute a slice to the same bits as the
 * whole. */
#include "engine/plan/ir.h"

enum {
    MIN_CALLS = 4,     /* instructions of a run that is worth cutting */
    MIN_WORK = 1 << 17 /* multiply-adds of an instruction and part, on average */
};

/* How a root is used within a run. */
enum { UNUSED, CUT, SHARED };

typedef struct parting {
    const basin_ir *ir;
    const basin_backend_table *table;
    int64_t parts;
    char *use;   /* [values] of roots */
    double work; /* multiply-adds of the run */
} parting;

/* Whether a value can be cut along its first axis into slices that begin where buffers may. */
static bool is_even(const parting *p, int value) {
    const basin_ir_value *v = &p->ir->value[value], *root = &p->ir->value[v->root];
    if (root->kind != BASIN_REAL && root->kind != BASIN_NARROW) return false;
    if (v->stride || v->first || v->shape.rank < 2 || root->bytes || root->state) return false;
    int64_t count = basin_shape_count(v->shape);
    size_t slice = (size_t)(count / p->parts) * basin_kind_size(p->table, root->kind);
    return count > 0 && count == basin_shape_count(root->shape) &&
           v->shape.dim[0] % p->parts == 0 && slice % 64 == 0;
}

bool basin_ir_is_cut(const basin_ir_instruction *instruction, int k) {
    switch (instruction->op) {
    case BASIN_OP_MATMUL: return k == 0 || (k > 1 && instruction->program->stride[k - 2][1] != 0);
    case BASIN_OP_LAYERNORM: return k == 0;
    default: return k == BASIN_ATT_Q || k == BASIN_ATT_K || k == BASIN_ATT_W;
    }
}

static bool has(const int *value, int count, int k) { return k < count && value[k] >= 0; }

/* One product by a shared matrix, with what its epilogue reads as dense as its rows. */
static bool product_parts(parting *p, const basin_ir_instruction *instruction) {
    int64_t size[4];
    basin_product_sizes(size, p->ir, instruction);
    if (instruction->attr.transpose_a || p->ir->value[instruction->in[1]].shape.rank != 2 ||
        size[1] % p->parts)
        return false;
    for (int k = 2; k < instruction->ins; k++) {
        int64_t step = instruction->program->stride[k - 2][1];
        int64_t count = basin_shape_count(p->ir->value[instruction->in[k]].shape);
        if (step != 0 && count != size[1] * step) return false;
    }
    p->work += (double)size[1] * (double)size[2] * (double)size[3];
    return true;
}

/* Attention over all pairs of a picture, whose results are the pictures' own. */
static bool attention_parts(parting *p, const basin_ir_instruction *instruction) {
    static const int whole[] = {BASIN_ATT_SCALE, BASIN_ATT_MIX, BASIN_ATT_ROW};
    static const int sums[] = {BASIN_ATT_DBETA, BASIN_ATT_DSCALE, BASIN_ATT_DMIX};
    for (int i = 0; i < 3; i++)
        if (has(instruction->in, instruction->ins, whole[i]) ||
            has(instruction->out, instruction->outs, sums[i]))
            return false;
    basin_shape q = p->ir->value[instruction->in[BASIN_ATT_Q]].shape;
    basin_shape k = p->ir->value[instruction->in[BASIN_ATT_K]].shape;
    if (q.rank != 4 || k.rank != 4 || q.dim[0] % p->parts) return false;
    p->work += 3.0 * (double)basin_shape_count(q) * (double)k.dim[1];
    return true;
}

static bool operation_parts(parting *p, const basin_ir_instruction *instruction) {
    switch (instruction->op) {
    case BASIN_OP_MATMUL: return product_parts(p, instruction);
    case BASIN_OP_LAYERNORM: return true;
    case BASIN_OP_ATTENTION_FORCE: return attention_parts(p, instruction);
    default: return false;
    }
}

/* Whether the instruction may join the run: then its operands and results are noted. */
static bool joins(parting *p, const basin_ir_instruction *instruction) {
    const basin_ir_value *value = p->ir->value;
    if (instruction->byte_copies || !operation_parts(p, instruction)) return false;
    for (int k = 0; k < instruction->ins; k++) {
        if (instruction->in[k] < 0) continue;
        bool cut = basin_ir_is_cut(instruction, k);
        char use = p->use[value[instruction->in[k]].root];
        if (use == (cut ? SHARED : CUT) || (cut && !is_even(p, instruction->in[k]))) return false;
    }
    for (int k = 0; k < instruction->outs; k++)
        if (instruction->out[k] >= 0 && !is_even(p, instruction->out[k])) return false;
    for (int k = 0; k < instruction->ins; k++)
        if (instruction->in[k] >= 0)
            p->use[value[instruction->in[k]].root] = basin_ir_is_cut(instruction, k) ? CUT : SHARED;
    for (int k = 0; k < instruction->outs; k++)
        if (instruction->out[k] >= 0) p->use[value[instruction->out[k]].root] = CUT;
    return true;
}

/* The run that begins at `first`; returns its end. */
static size_t run_from(parting *p, size_t first) {
    size_t end = first;
    p->work = 0;
    for (size_t i = 0; i < p->ir->values; i++) p->use[i] = UNUSED;
    while (end < p->ir->instructions && joins(p, &p->ir->instruction[end])) end++;
    return end;
}

/* Pictures of the first attention over all pairs; 0: there is none. */
static int64_t batch_of(const basin_ir *ir) {
    for (size_t i = 0; i < ir->instructions; i++) {
        const basin_ir_instruction *instruction = &ir->instruction[i];
        if (instruction->op != BASIN_OP_ATTENTION_FORCE) continue;
        basin_shape q = ir->value[instruction->in[BASIN_ATT_Q]].shape;
        if (q.rank == 4) return q.dim[0];
    }
    return 0;
}

/* As few parts as let threads of unequal speed share them; 0: none do. */
static int64_t parts_of(int64_t batch, int threads) {
    for (int64_t parts = 2 * (int64_t)threads; parts <= batch && parts <= BASIN_PARTS; parts++)
        if (batch % parts == 0) return parts;
    return 0;
}

basin_status basin_ir_part(basin_ir *ir, const basin_backend *backend) {
    parting p = {.ir = ir, .table = backend->table};
    if (backend->threads > 1) p.parts = parts_of(batch_of(ir), backend->threads);
    if (!p.parts) return BASIN_OK;
    p.use = basin_ir_scratch(ir, ir->values, sizeof *p.use);
    if (!p.use) return BASIN_NO_MEMORY;
    for (size_t first = ir->hoisted, end; first < ir->instructions; first = end + 1) {
        end = run_from(&p, first);
        double calls = (double)(end - first);
        if (calls < MIN_CALLS || p.work < MIN_WORK * calls * (double)p.parts) continue;
        for (size_t i = first; i < end; i++) ir->instruction[i].parts = (int)p.parts;
    }
    return BASIN_OK;
}

static void cut_operand(basin_operand *operand, int value, int parts,
                        const basin_backend_table *table) {
    if (value < 0) return;
    operand->shape.dim[0] /= parts;
    operand->part =
        (size_t)basin_shape_count(operand->shape) * basin_kind_size(table, operand->kind);
}

void basin_ir_part_call(basin_call *call, const basin_ir_instruction *instruction,
                        const basin_backend_table *table) {
    call->parts = instruction->parts;
    for (int k = 0; k < call->ins; k++)
        if (basin_ir_is_cut(instruction, k))
            cut_operand(&call->in[k], instruction->in[k], call->parts, table);
    for (int k = 0; k < call->outs; k++)
        cut_operand(&call->out[k], instruction->out[k], call->parts, table);
}
