/* A kernel call as a line of text: what it is, what it reads and writes, and the formula of its
 * program. For people who look at a plan; nothing reads it back. */
#include "plan/describe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "basin/expr.h"

/* Text of bounded length; what does not fit is left out. */
typedef struct writer {
    char *text;
    size_t size, used;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = vsnprintf(w->text + w->used, w->size - w->used, format, list);
    va_end(list);
    w->used += length > 0 ? (size_t)length : 0;
    if (w->used >= w->size) w->used = w->size - 1;
}

static void put_operand(writer *w, const basin_operand *operand) {
    char shape[BASIN_SHAPE_TEXT];
    if (operand->block < 0)
        put(w, "-");
    else
        put(w, "%s%s",
            operand->kind == BASIN_NARROW  ? "bf16 "
            : operand->kind == BASIN_INDEX ? "index "
            : operand->kind == BASIN_E4M3  ? "e4m3 "
            : operand->kind == BASIN_E5M2  ? "e5m2 "
                                           : "",
            basin_shape_print(shape, operand->shape));
    if (operand->stride) put(w, " of %lld", (long long)operand->stride);
}

enum { FORMULA = 400 };

static void put_own(char *text, size_t size, const basin_instruction *s, char (*r)[FORMULA]) {
    const uint16_t operand[] = {s->a, s->b, s->c};
    writer w = {text, size, 0};
    put(&w, "%s", s->own.name);
    for (int i = 0; i < s->own.operands; i++) put(&w, "%s%s", i ? ", " : "(", r[operand[i]]);
    put(&w, ")");
}

static void put_instruction(char *formula, const basin_instruction *s, char (*r)[FORMULA]) {
    char text[3 * FORMULA + 40];
    if (s->op == BASIN_INSTRUCTION_LOAD)
        snprintf(text, sizeof text, "%c", 'a' + s->a);
    else if (s->op == BASIN_INSTRUCTION_TILE)
        snprintf(text, sizeof text, "product");
    else if (s->op == BASIN_INSTRUCTION_IMMEDIATE)
        snprintf(text, sizeof text, "%.4g", s->value);
    else if (s->op == BASIN_OP_POW)
        snprintf(text, sizeof text, "%s^%g", r[s->a], s->value);
    else if (s->op == BASIN_OP_OWN)
        put_own(text, sizeof text, s, r);
    else if (s->op < BASIN_OP_ADD)
        snprintf(text, sizeof text, "%s(%s)", basin_op_name((basin_op)s->op), r[s->a]);
    else if (s->op <= BASIN_OP_DIV)
        snprintf(text, sizeof text, "(%s %c %s)", r[s->a], "+-*/"[s->op - BASIN_OP_ADD], r[s->b]);
    else if (s->op < BASIN_OP_SELECT)
        snprintf(text, sizeof text, "%s(%s, %s)", basin_op_name((basin_op)s->op), r[s->a], r[s->b]);
    else
        snprintf(text, sizeof text, "select(%s, %s, %s)", r[s->a], r[s->b], r[s->c]);
    text[FORMULA - 1] = 0;
    memcpy(formula, text, FORMULA);
}

/* The formula of each result over a, b, c.., the operands of the program in their order. */
static void put_program(writer *w, const basin_program *program) {
    char r[BASIN_MAX_REGISTERS][FORMULA] = {{0}};
    for (int i = 0; i < program->instructions; i++)
        put_instruction(r[program->instruction[i].to], &program->instruction[i], r);
    for (int i = 0; i < program->stores; i++) put(w, "%s%s", i ? ", " : "; ", r[program->store[i]]);
}

void basin_call_describe(char *text, size_t size, const basin_call *call) {
    writer w = {text, size, 0};
    text[0] = 0;
    put(&w, "%-17s ", call->op == BASIN_OP_OWN ? call->attr.own->name : basin_op_name(call->op));
    for (int i = 0; i < call->outs; i++) {
        if (i) put(&w, ", ");
        put_operand(&w, &call->out[i]);
    }
    for (int i = 0; i < call->twins; i++) {
        put(&w, ", ");
        put_operand(&w, &call->twin[i]);
    }
    put(&w, " <- ");
    for (int i = 0; i < call->ins; i++) {
        bool turned = call->op == BASIN_OP_MATMUL &&
                      (i == 0 ? call->attr.transpose_a : i == 1 && call->attr.transpose_b);
        if (i) put(&w, ", ");
        put_operand(&w, &call->in[i]);
        if (turned) put(&w, "'");
    }
    if (call->program) put_program(&w, call->program);
    if (call->parts > 1) put(&w, "; one of %d parts", call->parts);
}
