/* A program whose load of one operand is replaced by another program. Both become a list in which
 * every result is made once; equal ones are shared, and registers are dealt out anew. */
#include <stdlib.h>
#include <string.h>

#include "plan/passes/program.h"

enum { MOST = BASIN_PROGRAM_MERGED, NONE = 0xffff };

/* Results in order. a, b and c are numbers of results; of loads, a is an operand. */
typedef struct list {
    basin_instruction result[MOST];
    int count;
    bool full;
} list;

static int operands_of(const basin_instruction *in) {
    if (in->op >= BASIN_INSTRUCTION_LOAD) return 0;
    if (in->op == BASIN_OP_OWN) return in->own.operands;
    return in->op < BASIN_OP_ADD ? 1 : in->op < BASIN_OP_SELECT ? 2 : 3;
}

bool basin_instruction_equal(const basin_instruction *a, const basin_instruction *b) {
    return a->op == b->op && a->a == b->a && a->b == b->b && a->c == b->c &&
           memcmp(&a->value, &b->value, sizeof a->value) == 0 && a->own.name == b->own.name &&
           a->own.source == b->own.source;
}

static uint16_t add(list *l, basin_instruction made) {
    int operands = operands_of(&made);
    made.to = 0;
    if (operands < 3) made.c = 0;
    if (operands < 2) made.b = 0;
    if (operands < 1 && made.op != BASIN_INSTRUCTION_LOAD) made.a = 0;
    for (int i = 0; i < l->count; i++)
        if (basin_instruction_equal(&l->result[i], &made)) return (uint16_t)i;
    l->full = l->full || l->count == MOST;
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
        int operands = operands_of(&in);
        if (in.op == BASIN_INSTRUCTION_LOAD && in.a == at) {
            held[to] = instead;
            continue;
        }
        if (in.op == BASIN_INSTRUCTION_LOAD) in.a = (uint16_t)where[in.a];
        if (operands > 0) in.a = held[in.a];
        if (operands > 1) in.b = held[in.b];
        if (operands > 2) in.c = held[in.c];
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
    uint16_t at[MOST];
    for (int r = 0; r < BASIN_MAX_REGISTERS; r++) until[r] = -1;
    p->registers = 0;
    for (int i = 0; i < l->count; i++) {
        basin_instruction in = l->result[i];
        int operands = operands_of(&in), r = 0;
        if (operands > 0) in.a = at[in.a];
        if (operands > 1) in.b = at[in.b];
        if (operands > 2) in.c = at[in.c];
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
