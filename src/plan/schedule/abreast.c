/* Small instructions that run at once. Where a launch costs more than what it computes, products,
 * draws of normal numbers, and programs that do the same go together: what waits for nothing but
 * earlier instructions moves up to the first one that could have run beside it. A product that adds
 * to the result of one of them goes along, too, since the same threads can compute both. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "plan/ir.h"
#include "plan/passes/program.h"

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
        if (basin_op_exchanges(s->op) || r->count - r->first == BASIN_ABREAST) break;
        if (r->place[j] < 0 && is_alike(ir, &ir->instruction[i], s) && is_ready(r, (int)j))
            take(r, (int)j);
    }
    int abreast = (int)(r->count - r->first);
    ir->instruction[i].abreast = abreast > 1 ? abreast : 0;
}

static void rearrange(arrangement *r, basin_ir_instruction *sorted) {
    basin_ir *ir = r->ir;
    for (size_t i = 0; i < ir->instructions; i++) sorted[i] = ir->instruction[r->order[i]];
    free(ir->instruction);
    ir->instruction = sorted;
    ir->instruction_capacity = ir->instructions > 0 ? ir->instructions : 1;
    basin_ir_number(ir);
}

basin_status basin_ir_abreast(basin_ir *ir) {
    arrangement r = {.ir = ir};
    basin_ir_instruction *sorted = basin_array_new(ir->instructions, sizeof *sorted);
    r.order = basin_array_new(ir->instructions, sizeof *r.order);
    r.place = basin_array_new(ir->instructions, sizeof *r.place);
    bool ok = sorted && r.order && r.place;
    if (ok) {
        basin_ir_count_uses(ir);
        for (size_t i = 0; i < ir->instructions; i++) r.place[i] = -1;
        for (size_t i = 0; i < ir->hoisted; i++) take(&r, (int)i);
        for (size_t i = ir->hoisted; i < ir->instructions; i++)
            if (r.place[i] < 0) take_with(&r, (int)i);
        rearrange(&r, sorted);
    } else
        free(sorted);
    free(r.order);
    free(r.place);
    return ok ? BASIN_OK : basin_fail(ir->error, BASIN_NO_MEMORY, "out of memory for a plan");
}
