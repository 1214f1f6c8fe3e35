/* Inlining. A pointwise result that only pointwise programs read is computed again by each of them,
 * rather than written and read, where none has to read more for it: most such programs wait for
 * memory. A gelu, its derivatives and theirs then read their one argument, and nothing else is
 * kept. Functions that take long are left as they are on processors. */

#include "base/try.h"
#include "engine/plan/ir.h"

/* Whether it is one pass over operands like its result, element by element, and cheap enough. */
static bool is_simple(const basin_ir *ir, const basin_ir_instruction *call, bool device) {
    const basin_program *p = call->program;
    if (call->dead || call->op != BASIN_OP_POINTWISE || call->outs != 1 || call->ins < 1 ||
        p->domain.rank != 1)
        return false;
    for (int k = 0; k < call->ins; k++)
        if (p->stride[k][0] != 1 || ir->value[ir->value[call->in[k]].root].leaf) return false;
    for (int i = 0; i < p->instructions && !device; i++)
        if (basin_op_is_slow(p->instruction[i].op)) return false;
    return true;
}

static bool reads(const basin_ir_instruction *call, int value) {
    bool found = false;
    for (int k = 0; k < call->ins; k++) found = found || call->in[k] == value;
    return found;
}

/* Operands of the program begin at `base` among those of the call. */
static int base_of(const basin_ir_instruction *call) { return call->op == BASIN_OP_MATMUL ? 2 : 0; }

/* Operands of a reader that computes a call's result itself. */
typedef struct operands {
    int in[BASIN_MAX_IN], count; /* values */
    int rank;                    /* of the domain */
    int64_t stride[BASIN_MAX_IN][BASIN_MAX_RANK];
    int at;                  /* the operand that goes */
    int kept[BASIN_MAX_IN];  /* where the reader's other ones are now */
    int where[BASIN_MAX_IN]; /* and the call's */
    int added;
} operands;

/* The place of an operand, one that is there already if it can be. */
static int place(operands *o, int value, const int64_t *stride) {
    size_t bytes = (size_t)o->rank * sizeof *stride;
    for (int k = 0; k < o->count; k++)
        if (o->in[k] == value && !memcmp(o->stride[k], stride, bytes)) return k;
    o->added++;
    if (o->count == BASIN_MAX_IN) return 0; /* too many: one was added beside the one that goes */
    o->in[o->count] = value;
    memcpy(o->stride[o->count], stride, bytes);
    return o->count++;
}

static void find_operands(operands *o, const basin_ir_instruction *reader,
                          const basin_ir_instruction *call) {
    int base = base_of(reader), count = reader->ins - base;
    *o = (operands){.at = -1, .rank = reader->program->domain.rank};
    for (int k = 0; k < count; k++) {
        if (reader->in[base + k] == call->out[0])
            o->at = k;
        else
            o->kept[k] = place(o, reader->in[base + k], reader->program->stride[k]);
    }
    o->added = 0;
    for (int k = 0; k < call->ins && o->at >= 0; k++)
        o->where[k] = place(o, call->in[k], reader->program->stride[o->at]);
}

/* The reader's program with the call's in it, whose operands are *o, into `made`, which has room
 * for BASIN_PROGRAM_MERGED instructions; false where that does not go. A reader takes a result
 * once, over all its elements, and loads one more operand at most in the place of the one that
 * goes. */
static bool merge(basin_program *made, operands *o, const basin_ir *ir,
                  const basin_ir_instruction *reader, const basin_ir_instruction *call) {
    const basin_program *p = reader->program;
    int uses = 0;
    for (int k = 0; k < reader->ins; k++) uses += reader->in[k] == call->out[0];
    if (!p || uses != 1 ||
        basin_shape_count(p->domain) != basin_shape_count(ir->value[call->out[0]].shape) ||
        (reader->op == BASIN_OP_MATMUL && basin_program_form_of(p).kind != BASIN_FORM_OTHER))
        return false;
    find_operands(o, reader, call);
    if (o->at < 0 || o->added > 1 || o->count > BASIN_MAX_IN - base_of(reader)) return false;
    made->domain = p->domain;
    memcpy(made->stride, o->stride, sizeof made->stride);
    return basin_program_merge(made, p, o->at, o->kept, call->program, o->where);
}

/* Whether all readers can take it, and the result has no other use. */
static bool may_go(const basin_ir *ir, int producer, bool device) {
    const basin_ir_instruction *call = &ir->instruction[producer];
    if (!is_simple(ir, call, device)) return false;
    const basin_ir_value *v = &ir->value[call->out[0]];
    int found = 0;
    if (v->output || v->state || v->root != call->out[0]) return false;
    for (size_t i = (size_t)producer + 1; i < ir->instructions && found < v->uses; i++) {
        const basin_ir_instruction *reader = &ir->instruction[i];
        basin_instruction room[BASIN_PROGRAM_MERGED];
        basin_program made = {.instruction = room};
        operands o;
        if (reader->dead || !reads(reader, call->out[0])) continue;
        if (!merge(&made, &o, ir, reader, call)) return false;
        found++;
    }
    return found > 0 && found == v->uses;
}

static basin_status inline_into(basin_ir *ir, basin_ir_instruction *reader,
                                const basin_ir_instruction *call) {
    operands o;
    basin_program *made = basin_program_new(BASIN_PROGRAM_MERGED);
    if (!made) return basin_ir_no_memory(ir);
    merge(made, &o, ir, reader, call); /* it went before */
    basin_program_free(reader->program);
    reader->program = made;
    reader->ins = base_of(reader) + o.count;
    memcpy(reader->in + base_of(reader), o.in, (size_t)o.count * sizeof *o.in);
    return BASIN_OK;
}

/* One sweep, from the last call to the first; *gone: how many went. */
static basin_status sweep(int *gone, basin_ir *ir, bool device) {
    *gone = 0;
    for (size_t i = ir->instructions; i-- > 0;) {
        if (!may_go(ir, (int)i, device)) continue;
        basin_ir_instruction *call = &ir->instruction[i];
        for (size_t k = i + 1; k < ir->instructions; k++)
            if (!ir->instruction[k].dead && reads(&ir->instruction[k], call->out[0]))
                BASIN_TRY(inline_into(ir, &ir->instruction[k], call));
        call->dead = true;
        basin_ir_count_uses(ir);
        ++*gone;
    }
    return BASIN_OK;
}

/* An inlined call passes its operands to its readers, which may allow further inlining. */
basin_status basin_ir_inline(basin_ir *ir, bool device) {
    int gone = 1;
    basin_ir_count_uses(ir);
    while (gone > 0) BASIN_TRY(sweep(&gone, ir, device));
    return BASIN_OK;
}

/* A program whose load of one operand is replaced by another program. Both become a list in which
 * every result is made once; equal ones are shared, and registers are dealt out anew. */

enum { MAX_RESULTS = BASIN_PROGRAM_MERGED, NONE = 0xffff };

/* Results in order. a, b and c are indices of results; in loads, a is an operand. */
typedef struct list {
    basin_instruction result[MAX_RESULTS];
    int count;
    bool full;
} list;

static int operands_of(const basin_instruction *in) {
    if (in->op >= BASIN_INSTRUCTION_LOAD) return 0;
    if (in->op == BASIN_OP_OWN) return in->own.operands;
    return in->op < BASIN_OP_ADD ? 1 : in->op < BASIN_OP_SELECT ? 2 : 3;
}

static void rename_operands(basin_instruction *in, const uint16_t *name) {
    int count = operands_of(in);
    if (count > 0) in->a = name[in->a];
    if (count > 1) in->b = name[in->b];
    if (count > 2) in->c = name[in->c];
}

/* Whether both do the same with the same registers, wherever their results go. */
static bool is_equal(const basin_instruction *a, const basin_instruction *b) {
    return a->op == b->op && a->a == b->a && a->b == b->b && a->c == b->c &&
           memcmp(&a->value, &b->value, sizeof a->value) == 0 && a->own.name == b->own.name &&
           a->own.source == b->own.source;
}

static uint16_t add(list *l, basin_instruction made) {
    int count = operands_of(&made);
    made.to = 0;
    if (count < 3) made.c = 0;
    if (count < 2) made.b = 0;
    if (count < 1 && made.op != BASIN_INSTRUCTION_LOAD) made.a = 0;
    for (int i = 0; i < l->count; i++)
        if (is_equal(&l->result[i], &made)) return (uint16_t)i;
    l->full = l->full || l->count == MAX_RESULTS;
    if (l->full) return 0;
    l->result[l->count] = made;
    return (uint16_t)l->count++;
}

/* Adds a program; its loads are numbered by where[], and loads of operand `at` are `instead`. Which
 * result each register holds at the end goes to held[]. */
static void add_program(list *l, uint16_t held[BASIN_MAX_REGISTERS], const basin_program *p,
                        const int *where, int at, uint16_t instead) {
    for (int i = 0; i < p->instructions; i++) {
        basin_instruction in = p->instruction[i];
        uint16_t to = in.to;
        if (in.op == BASIN_INSTRUCTION_LOAD && in.a == at) {
            held[to] = instead;
            continue;
        }
        if (in.op == BASIN_INSTRUCTION_LOAD) in.a = (uint16_t)where[in.a];
        rename_operands(&in, held);
        held[to] = add(l, in);
    }
}

/* ---- registers ---- */

/* The last result that reads result i; past the end where it is stored. */
static int last_reader(const list *l, const uint16_t *store, int stores, int i) {
    int last = i;
    for (int s = 0; s < stores; s++)
        if (store[s] == i) return l->count;
    for (int k = i + 1; k < l->count; k++) {
        const basin_instruction *in = &l->result[k];
        const uint16_t of[] = {in->a, in->b, in->c};
        for (int o = 0; o < operands_of(in); o++)
            if (of[o] == i) last = k;
    }
    return last;
}

/* Writes the list as instructions of the program; false where registers do not suffice. */
static bool deal_registers(basin_program *p, const list *l, const uint16_t *store, int stores) {
    int until[BASIN_MAX_REGISTERS]; /* the last reader of what a register holds */
    uint16_t at[MAX_RESULTS];
    for (int r = 0; r < BASIN_MAX_REGISTERS; r++) until[r] = -1;
    p->registers = 0;
    for (int i = 0; i < l->count; i++) {
        basin_instruction in = l->result[i];
        int r = 0;
        rename_operands(&in, at);
        while (r < BASIN_MAX_REGISTERS && until[r] > i) r++;
        if (r == BASIN_MAX_REGISTERS) return false;
        until[r] = last_reader(l, store, stores, i);
        at[i] = in.to = (uint16_t)r;
        if (r >= p->registers) p->registers = r + 1;
        p->instruction[i] = in;
    }
    p->instructions = l->count;
    p->stores = stores;
    for (int s = 0; s < stores; s++) p->store[s] = at[store[s]];
    return true;
}

bool basin_program_merge(basin_program *merged, const basin_program *reader, int at,
                         const int *kept, const basin_program *call, const int *where) {
    list l = {.count = 0};
    uint16_t held[BASIN_MAX_REGISTERS], store[BASIN_MAX_OUT];
    add_program(&l, held, call, where, -1, NONE);
    uint16_t instead = held[call->store[0]];
    add_program(&l, held, reader, kept, at, instead);
    if (l.full) return false;
    for (int i = 0; i < reader->stores; i++) store[i] = held[reader->store[i]];
    return deal_registers(merged, &l, store, reader->stores);
}
