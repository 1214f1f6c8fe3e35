/* Which instructions run, and in which order: dead ones are dropped, log-sum-exps that a force or
 * a softmax computes anyway are taken from there, what is added to the reverse of a layer norm is
 * added there, and the rest is sorted so that producers come first. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/backend/values.h"
#include "engine/plan/ir.h"

static int producer_of(const basin_ir *ir, int value) {
    return value < 0 ? -1 : ir->value[ir->value[value].root].producer;
}

/* A walk from instructions to what they need, depth first, keeping the old order where it can. */
typedef struct walk {
    basin_ir *ir;
    int *order; /* [instructions] old numbers, producers first */
    int count;
    bool *seen; /* [instructions] */
    int *stack; /* [instructions] begun instructions */
    int *next;  /* [instructions] of each begun instruction: the operand to follow next */
} walk;

static bool walk_begin(walk *w, basin_ir *ir) {
    *w = (walk){.ir = ir};
    w->order = basin_ir_scratch(ir, ir->instructions, sizeof *w->order);
    w->seen = basin_ir_scratch(ir, ir->instructions, sizeof *w->seen);
    w->stack = basin_ir_scratch(ir, ir->instructions, sizeof *w->stack);
    w->next = basin_ir_scratch(ir, ir->instructions, sizeof *w->next);
    return w->order && w->seen && w->stack && w->next;
}

static void walk_restart(walk *w) {
    w->count = 0;
    memset(w->seen, 0, w->ir->instructions * sizeof *w->seen);
}

static void visit(walk *w, int instruction) {
    int depth = 0, found = instruction;
    for (;;) {
        if (found >= 0 && !w->seen[found]) {
            w->seen[found] = true;
            w->next[found] = 0;
            w->stack[depth++] = found;
        }
        if (depth == 0) return;
        int top = w->stack[depth - 1];
        const basin_ir_instruction *s = &w->ir->instruction[top];
        if (w->next[top] < s->ins)
            found = producer_of(w->ir, s->in[w->next[top]++]);
        else {
            w->order[w->count++] = top;
            depth--;
            found = -1;
        }
    }
}

static bool writes_something_needed(const basin_ir *ir, const basin_ir_instruction *instruction) {
    for (int i = 0; i < instruction->outs; i++) {
        if (instruction->out[i] < 0) continue;
        const basin_ir_value *v = &ir->value[instruction->out[i]];
        if (v->output || v->state) return true;
    }
    return false;
}

/* Instructions reachable from what is requested, found with the same walk. */
static void find_needed(walk *w) {
    for (size_t i = 0; i < w->ir->instructions; i++)
        if (!w->ir->instruction[i].dead && writes_something_needed(w->ir, &w->ir->instruction[i]))
            visit(w, (int)i);
    for (size_t i = 0; i < w->ir->instructions; i++) w->ir->instruction[i].dead = !w->seen[i];
}

basin_status basin_ir_reorder(basin_ir *ir, const int *order, size_t count) {
    basin_ir_instruction *sorted = basin_array_new(count, sizeof *sorted);
    if (!sorted) return basin_ir_no_memory(ir);
    for (size_t i = 0; i < count; i++) {
        sorted[i] = ir->instruction[order[i]];
        ir->instruction[order[i]].program = NULL;
    }
    for (size_t i = 0; i < ir->instructions; i++) basin_program_free(ir->instruction[i].program);
    free(ir->instruction);
    ir->instruction = sorted;
    ir->instructions = ir->instruction_capacity = count;
    basin_ir_number(ir);
    return BASIN_OK;
}

basin_status basin_ir_sort(basin_ir *ir) {
    walk w;
    if (!walk_begin(&w, ir)) return BASIN_NO_MEMORY;
    find_needed(&w);
    walk_restart(&w);
    for (size_t i = 0; i < ir->instructions; i++)
        if (!ir->instruction[i].dead) visit(&w, (int)i);
    return basin_ir_reorder(ir, w.order, (size_t)w.count);
}

void basin_ir_number(basin_ir *ir) {
    for (size_t i = 0; i < ir->instructions; i++)
        for (int k = 0; k < basin_ir_results(&ir->instruction[i]); k++) {
            int result = basin_ir_result(&ir->instruction[i], k);
            if (result < 0) continue;
            ir->value[result].producer = (int)i;
            ir->value[ir->value[result].root].producer = (int)i;
        }
}

void basin_ir_count_uses(basin_ir *ir) {
    for (size_t i = 0; i < ir->values; i++) ir->value[i].uses = 0;
    for (size_t i = 0; i < ir->instructions; i++)
        for (int k = 0; k < ir->instruction[i].ins && !ir->instruction[i].dead; k++)
            if (ir->instruction[i].in[k] >= 0)
                ir->value[ir->value[ir->instruction[i].in[k]].root].uses++;
}

/* Whether instruction `to` needs the results of instruction `from`. */
static bool depends(walk *w, int to, int from) {
    walk_restart(w);
    visit(w, to);
    return w->seen[from];
}

/* Whether both are the same numbers in the same shape. */
static bool is_same(const basin_ir *ir, int a, int b) {
    if (a < 0 || b < 0) return a < 0 && b < 0;
    const basin_ir_value *x = &ir->value[a], *y = &ir->value[b];
    return x->root == y->root && x->first == y->first && x->stride == y->stride &&
           basin_shape_equal(x->shape, y->shape);
}

static bool same_scores(const basin_ir *ir, const basin_ir_instruction *lse,
                        const basin_ir_instruction *force) {
    if (force->op != BASIN_OP_ATTENTION_FORCE || force->out[BASIN_ATT_LSE] < 0 ||
        force->attr.exclude_self != lse->attr.exclude_self ||
        force->attr.causal != lse->attr.causal || force->attr.added != lse->attr.added)
        return false;
    for (int i = 0; i <= BASIN_ATT_PAIR; i++)
        if (!is_same(ir, lse->in[i], force->in[i])) return false;
    return true;
}

/* Every reader of `lse` reads `instead`. */
static void replace(basin_ir *ir, int lse, int instead) {
    for (size_t v = 0; v < ir->values; v++)
        if (ir->value[v].root == lse) ir->value[v].root = instead;
    ir->value[instead].output = ir->value[instead].output || ir->value[lse].output;
    ir->value[lse].output = false;
}

/* A softmax of the operand of instruction `lse`, which can give the log-sum-exp as well without
 * being kept for longer: nobody who reads it waits for that. -1 where there is none. */
static int softmax_of(walk *w, int lse) {
    const basin_ir *ir = w->ir;
    const basin_ir_instruction *one = &ir->instruction[lse];
    for (size_t i = 0; i < ir->instructions; i++) {
        const basin_ir_instruction *s = &ir->instruction[i];
        if (s->op != BASIN_OP_SOFTMAX || s->outs != 1 || s->again != one->again ||
            !is_same(ir, s->in[0], one->in[0]))
            continue;
        bool waits = false;
        for (size_t r = 0; r < ir->instructions && !waits; r++)
            for (int k = 0; k < ir->instruction[r].ins && !waits; k++)
                waits =
                    producer_of(ir, ir->instruction[r].in[k]) == (int)i && depends(w, (int)r, lse);
        return waits ? -1 : (int)i;
    }
    return -1;
}

/* Softmaxes give the log-sum-exps of their rows, which they know. */
static void share_softmaxes(walk *w) {
    basin_ir *ir = w->ir;
    for (size_t i = 0; i < ir->instructions; i++) {
        basin_ir_instruction *lse = &ir->instruction[i];
        int found = lse->op == BASIN_OP_LOGSUMEXP ? softmax_of(w, (int)i) : -1;
        if (found < 0) continue;
        ir->instruction[found].out[ir->instruction[found].outs++] = lse->out[0];
        ir->value[lse->out[0]].producer = found;
        lse->dead = true;
    }
}

/* A force that waits for the log-sum-exp itself cannot give it; replaced ones count. */
basin_status basin_ir_share_forces(basin_ir *ir) {
    walk w;
    if (!walk_begin(&w, ir)) return BASIN_NO_MEMORY;
    for (size_t i = 0; i < ir->instructions; i++) {
        if (ir->instruction[i].op != BASIN_OP_ATTENTION) continue;
        for (size_t f = i + 1; f < ir->instructions; f++) {
            if (!same_scores(ir, &ir->instruction[i], &ir->instruction[f]) ||
                depends(&w, (int)f, (int)i))
                continue;
            replace(ir, ir->instruction[i].out[0], ir->instruction[f].out[BASIN_ATT_LSE]);
            break;
        }
    }
    share_softmaxes(&w);
    return basin_ir_sort(ir);
}

/* Whether the second is the reverse of the first, and the first has something to keep for it. */
static bool is_values_reverse(const basin_ir *ir, const basin_ir_instruction *values,
                              const basin_ir_instruction *reverse) {
    const basin_attr *a = &values->attr, *b = &reverse->attr;
    if (values->op != BASIN_OP_VALUES || reverse->in[BASIN_VAL_ROW] >= 0 || a->value != b->value ||
        a->drop != b->drop || a->stream != b->stream || a->causal != b->causal ||
        a->exclude_self != b->exclude_self || a->transpose_a != b->transpose_a)
        return false;
    for (int i = 0; i < BASIN_VAL_C; i++)
        if (!is_same(ir, i < values->ins ? values->in[i] : -1, reverse->in[i])) return false;
    return a->drop > 0 || basin_ir_is_narrow(ir, values->in[BASIN_VAL_Q]);
}

basin_status basin_ir_keep_values(basin_ir *ir) {
    for (size_t i = 0; i < ir->instructions; i++) {
        basin_ir_instruction *reverse = &ir->instruction[i], *values = reverse;
        if (reverse->op != BASIN_OP_VALUES_REVERSE) continue;
        while (values > ir->instruction && !is_values_reverse(ir, values, reverse)) values--;
        if (!is_values_reverse(ir, values, reverse)) continue;
        if (values->outs == 1) {
            int q = values->in[BASIN_VAL_Q], k = values->in[BASIN_VAL_K];
            int made = basin_ir_value_new(
                ir,
                basin_values_kept(&ir->value[q].shape, &ir->value[k].shape, values->attr.drop > 0),
                BASIN_REAL);
            if (made < 0) return BASIN_NO_MEMORY;
            ir->value[made].producer = (int)(values - ir->instruction);
            values->out[values->outs++] = made;
        }
        reverse->in[BASIN_VAL_KEPT] = values->out[1], reverse->in[BASIN_VAL_O] = values->out[0];
        reverse->ins = BASIN_VAL_O + 1;
    }
    basin_ir_count_uses(ir);
    return BASIN_OK;
}

/* Whether operand k is one of a program's that lies like its domain. */
static bool is_like_domain(const basin_ir_instruction *reader, int k) {
    int a = k - (reader->op == BASIN_OP_MATMUL ? 2 : 0);
    const basin_program *p = reader->program;
    if (!p || a < 0 || p->domain.rank == 0) return false;
    bool dense = p->domain.dim[p->domain.rank - 1] % 8 == 0; /* no call of Philox is cut */
    int64_t step = 1;
    for (int i = p->domain.rank - 1; i >= 0; step *= p->domain.dim[i--])
        dense = dense && (p->stride[a][i] == step || p->domain.dim[i] == 1);
    return dense;
}

/* Whether only programs read the value; they read `instead` from now on if that is a value. */
static bool programs_read(basin_ir *ir, int value, int instead) {
    bool all = !ir->value[value].output && !ir->value[value].state;
    for (size_t i = 0; i < ir->instructions; i++)
        for (int k = 0; k < ir->instruction[i].ins; k++) {
            int *in = &ir->instruction[i].in[k];
            if (*in < 0 || basin_root_of(ir, *in) != value) continue;
            all = all && is_like_domain(&ir->instruction[i], k);
            if (instead >= 0) *in = instead;
        }
    return all;
}

basin_status basin_ir_place_draws(basin_ir *ir) {
    int *order = basin_ir_scratch(ir, ir->instructions, sizeof *order);
    size_t left = 0;
    if (!order) return BASIN_NO_MEMORY;
    for (size_t i = 0; i < ir->instructions; i++) {
        const basin_ir_instruction *draw = &ir->instruction[i];
        order[left++] = (int)i;
        if (draw->op != BASIN_OP_UNIFORM || !(draw->attr.drop > 0) ||
            !programs_read(ir, draw->out[0], -1))
            continue;
        int seed = draw->in[0], root = basin_root_of(ir, seed);
        int made = basin_ir_view_new(ir, root, ir->value[seed].shape, 0, 0);
        if (made < 0) return BASIN_NO_MEMORY;
        ir->value[made].drop = draw->attr.drop, ir->value[made].stream = draw->attr.stream;
        programs_read(ir, draw->out[0], made);
        left--;
    }
    return basin_ir_reorder(ir, order, left);
}

/* The reverse of a layer norm whose dx only `add` reads, to add what is there before; or -1. */
static int residual_of(const basin_ir *ir, const basin_ir_instruction *add, int side) {
    int dx = add->in[side], other = add->in[1 - side];
    const basin_ir_value *v = &ir->value[dx], *r = &ir->value[other];
    if (v->root != dx || v->producer < 0 || v->uses != 1 || v->output || v->state) return -1;
    const basin_ir_instruction *reverse = &ir->instruction[v->producer];
    bool fits = reverse->op == BASIN_OP_LAYERNORM_REVERSE && reverse->ins == 3 &&
                reverse->out[0] == dx && basin_shape_equal(v->shape, r->shape) &&
                basin_shape_equal(v->shape, ir->value[add->out[0]].shape);
    return fits && ir->value[r->root].producer < v->producer ? v->producer : -1;
}

basin_status basin_ir_join_residuals(basin_ir *ir) {
    basin_ir_count_uses(ir);
    for (size_t i = 0; i < ir->instructions; i++) {
        basin_ir_instruction *add = &ir->instruction[i];
        if (add->op != BASIN_OP_ADD || add->dead) continue;
        for (int side = 0; side < 2; side++) {
            int reverse = residual_of(ir, add, side);
            if (reverse < 0) continue;
            ir->instruction[reverse].in[ir->instruction[reverse].ins++] = add->in[1 - side];
            ir->instruction[reverse].out[0] = add->out[0];
            ir->value[add->out[0]].producer = reverse;
            add->dead = true;
            break;
        }
    }
    return basin_ir_sort(ir);
}

/* Hoisted instructions: those that depend only on constants and unchanged states, as packed weights
 * for inference do. They come first, and run again only after a state has changed. Draws depend on
 * their seed, an input: never hoisted. */

static bool is_updated(const basin_ir *ir, const basin_node *state) {
    for (size_t i = 0; i < ir->values; i++)
        if (ir->value[i].state == state) return true;
    return false;
}

/* Whether another run may find other numbers there, whatever the instructions do. */
static bool begins_moving(const basin_ir *ir, const basin_ir_value *value) {
    if (value->state) return true;
    const basin_node *leaf = value->leaf;
    return leaf &&
           (leaf->op == BASIN_OP_INPUT || (leaf->op == BASIN_OP_STATE && is_updated(ir, leaf)));
}

/* A joint value moves where one of its parts does; so do all that write into it. */
static bool is_moving(const basin_ir *ir, const basin_ir_instruction *instruction,
                      const bool *moving) {
    if (basin_op_exchanges(instruction->op)) return true; /* others run as well */
    for (int k = 0; k < instruction->ins; k++)
        if (instruction->in[k] >= 0 && moving[basin_root_of(ir, instruction->in[k])]) return true;
    for (int k = 0; k < basin_ir_results(instruction); k++) {
        int result = basin_ir_result(instruction, k);
        if (result >= 0 && moving[basin_root_of(ir, result)]) return true;
    }
    return false;
}

/* Marks the results of an instruction that moves; whether any was not marked before. */
static bool spread(const basin_ir *ir, const basin_ir_instruction *instruction, bool *moving) {
    bool more = false;
    for (int k = 0; k < basin_ir_results(instruction); k++) {
        int result = basin_ir_result(instruction, k);
        if (result < 0 || moving[basin_root_of(ir, result)]) continue;
        moving[basin_root_of(ir, result)] = more = true;
    }
    return more;
}

static void find_moving(const basin_ir *ir, bool *moving) {
    for (size_t i = 0; i < ir->values; i++)
        if (begins_moving(ir, &ir->value[i])) moving[basin_root_of(ir, (int)i)] = true;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < ir->instructions; i++)
            if (is_moving(ir, &ir->instruction[i], moving))
                more = spread(ir, &ir->instruction[i], moving) || more;
    }
}

/* Hoisted instructions first; both kinds keep their order. */
basin_status basin_ir_hoist(basin_ir *ir) {
    bool *moving = basin_ir_scratch(ir, ir->values, sizeof *moving); /* of roots */
    int *order = basin_ir_scratch(ir, ir->instructions, sizeof *order);
    size_t at = 0;
    if (!moving || !order) return BASIN_NO_MEMORY;
    find_moving(ir, moving);
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = 0; i < ir->instructions; i++)
            if (is_moving(ir, &ir->instruction[i], moving) == (turn > 0)) order[at++] = (int)i;
        if (turn == 0) ir->hoisted = at;
    }
    return basin_ir_reorder(ir, order, at);
}
