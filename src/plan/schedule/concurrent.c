/* Small instructions that run at once. Where a launch costs more than what it computes, products,
 * draws of normal numbers, and programs that do the same go together: what waits for nothing but
 * earlier instructions moves up to the first one that could have run beside it. A product that adds
 * to the result of one of them goes along, too, since the same threads can compute both. */
#include <string.h>

#include "plan/ir.h"

/* How far is looked ahead, in instructions; the elements of a result and the terms of a product in
 * a chain, at most. */
enum { AHEAD = 64, ELEMENTS = 1 << 18, CHAIN = 512 };

typedef struct arrangement {
    basin_ir *ir;
    int *order;   /* [instructions] old numbers in their new order */
    size_t count; /* of them */
    int *place;   /* [instructions] the new number of an old one; -1: it has none yet */
    size_t first; /* where those that run at once begin in `order` */
} arrangement;

static bool is_real(const basin_ir *ir, int value) {
    return value >= 0 && ir->value[value].kind == BASIN_REAL && !ir->value[value].stride;
}

static bool is_small(const basin_ir *ir, const basin_ir_instruction *s) {
    int64_t size[4];
    if (s->op != BASIN_OP_MATMUL || s->outs != 1 || s->twins || !is_real(ir, s->in[0]) ||
        !is_real(ir, s->in[1]) || !is_real(ir, s->out[0]) || ir->value[s->out[0]].state)
        return false;
    basin_product_sizes(size, ir, s);
    return size[0] == 1 && basin_product_is_small(size[1], size[2], size[3]);
}

static bool is_draw(const basin_ir *ir, const basin_ir_instruction *s) {
    return s->op == BASIN_OP_NORMAL && is_real(ir, s->out[0]) &&
           basin_shape_count(ir->value[s->out[0]].shape) <= ELEMENTS;
}

static bool is_program(const basin_ir *ir, const basin_ir_instruction *s) {
    bool fits = s->op == BASIN_OP_POINTWISE && s->program && !s->twins;
    for (int k = 0; k < s->outs && fits; k++)
        fits = is_real(ir, s->out[k]) && !ir->value[s->out[k]].state &&
               basin_shape_count(ir->value[s->out[k]].shape) <= ELEMENTS;
    return fits;
}

/* Whether two programs do the same with operands that lie alike. */
static bool is_same_program(const basin_program *p, const basin_program *q) {
    bool same = p->instructions == q->instructions && p->stores == q->stores &&
                basin_shape_equal(p->domain, q->domain) &&
                !memcmp(p->store, q->store, (size_t)p->stores * sizeof *p->store) &&
                !memcmp(p->stride, q->stride, sizeof p->stride);
    for (int i = 0; i < p->instructions && same; i++)
        same = p->instruction[i].to == q->instruction[i].to &&
               basin_instruction_equal(&p->instruction[i], &q->instruction[i]);
    return same;
}

static bool is_alike(const basin_ir *ir, const basin_ir_instruction *s,
                     const basin_ir_instruction *t) {
    if (s->op != t->op) return false;
    if (is_program(ir, s))
        return is_program(ir, t) && s->ins == t->ins && is_same_program(s->program, t->program);
    return is_small(ir, s) ? is_small(ir, t) : is_draw(ir, s) && is_draw(ir, t);
}

/* Whether product `to` may add to the result of `from`, which runs at once with it: nobody else
 * reads that, and it lies as the result does. */
static bool may_follow(const basin_ir *ir, int to, int operand, int from) {
    const basin_ir_instruction *s = &ir->instruction[to], *t = &ir->instruction[from];
    int64_t size[4], other[4];
    if (s->op != BASIN_OP_MATMUL || operand < 2 || ir->value[t->out[0]].uses != 1) return false;
    basin_product_sizes(size, ir, s);
    basin_product_sizes(other, ir, t);
    return size[1] == other[1] && size[2] == other[2] && size[3] <= CHAIN && other[3] <= CHAIN;
}

/* Whether all that instruction i reads is there, or is what it adds to. */
static bool is_ready(const arrangement *r, int i) {
    const basin_ir_instruction *s = &r->ir->instruction[i];
    int chained = 0;
    for (int k = 0; k < s->ins; k++) {
        int producer = s->in[k] < 0 ? -1 : r->ir->value[r->ir->value[s->in[k]].root].producer;
        if (producer < 0) continue;
        int place = r->place[producer];
        if (place < 0) return false;
        if (place < (int)r->first) continue;
        if (chained++ || !may_follow(r->ir, i, k, producer)) return false;
    }
    return true;
}

static void take(arrangement *r, int i) {
    r->place[i] = (int)r->count;
    r->order[r->count++] = i;
}

/* Takes instruction i, and those behind it that can run at once with it. */
static void take_with(arrangement *r, int i) {
    basin_ir *ir = r->ir;
    r->first = r->count;
    take(r, i);
    if (!is_alike(ir, &ir->instruction[i], &ir->instruction[i])) return;
    for (size_t j = (size_t)i + 1; j < ir->instructions && j < (size_t)i + AHEAD; j++) {
        const basin_ir_instruction *s = &ir->instruction[j];
        if (basin_op_exchanges(s->op) || r->count - r->first == BASIN_CONCURRENT) break;
        if (r->place[j] < 0 && is_alike(ir, &ir->instruction[i], s) && is_ready(r, (int)j))
            take(r, (int)j);
    }
    int concurrent = (int)(r->count - r->first);
    ir->instruction[i].concurrent = concurrent > 1 ? concurrent : 0;
}

basin_status basin_ir_concurrent(basin_ir *ir) {
    arrangement r = {.ir = ir};
    r.order = basin_ir_scratch(ir, ir->instructions, sizeof *r.order);
    r.place = basin_ir_scratch_none(ir, ir->instructions);
    if (!r.order || !r.place) return BASIN_NO_MEMORY;
    basin_ir_count_uses(ir);
    for (size_t i = 0; i < ir->hoisted; i++) take(&r, (int)i);
    for (size_t i = ir->hoisted; i < ir->instructions; i++)
        if (r.place[i] < 0) take_with(&r, (int)i);
    return basin_ir_reorder(ir, r.order, r.count);
}

/* Parts: a run of instructions in which the pictures of a batch do not meet (a descent: products
 * by shared weights, layer norms, attention within a picture) is cut along the batch. Each part
 * then goes through the whole run by itself, at its own pace, and threads wait for each other only
 * at the end of the run instead of after every instruction.
 *
 * What is cut is cut into equal slices of its memory, one a part; all else is read by all parts and
 * was written before the run. Kernels compute a slice to the same bits as the whole. */

enum {
    LEAST_CALLS = 4,     /* instructions of a run that is worth cutting */
    LEAST_WORK = 1 << 17 /* multiply-adds of an instruction and part, on average */
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

static size_t element_bytes(const basin_backend_table *table, basin_kind kind) {
    return kind == BASIN_NARROW ? table->narrow_size : table->real_size;
}

/* Whether a value can be cut along its first axis into slices that begin where buffers may. */
static bool is_even(const parting *p, int value) {
    const basin_ir_value *v = &p->ir->value[value], *root = &p->ir->value[v->root];
    if (root->kind != BASIN_REAL && root->kind != BASIN_NARROW) return false;
    if (v->stride || v->first || v->shape.rank < 2 || root->bytes || root->state) return false;
    int64_t count = basin_shape_count(v->shape);
    size_t slice = (size_t)(count / p->parts) * element_bytes(p->table, root->kind);
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
    if (instruction->twins || !operation_parts(p, instruction)) return false;
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
        if (calls < LEAST_CALLS || p.work < LEAST_WORK * calls * (double)p.parts) continue;
        for (size_t i = first; i < end; i++) ir->instruction[i].parts = (int)p.parts;
    }
    return BASIN_OK;
}

static void cut_operand(basin_operand *operand, int value, int parts,
                        const basin_backend_table *table) {
    if (value < 0) return;
    operand->shape.dim[0] /= parts;
    operand->part = (size_t)basin_shape_count(operand->shape) * element_bytes(table, operand->kind);
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
