/* A kernel call as a line of text: what it is, what it reads and writes, and the formula of its
 * program. For people who look at a plan; nothing reads it back. */
#include "plan/describe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[BASIN_OP_COUNT] = {
    [BASIN_OP_NEG] = "neg",
    [BASIN_OP_ABS] = "abs",
    [BASIN_OP_SIGN] = "sign",
    [BASIN_OP_SQRT] = "sqrt",
    [BASIN_OP_EXP] = "exp",
    [BASIN_OP_LOG] = "log",
    [BASIN_OP_LOG1P] = "log1p",
    [BASIN_OP_EXPM1] = "expm1",
    [BASIN_OP_TANH] = "tanh",
    [BASIN_OP_SIGMOID] = "sigmoid",
    [BASIN_OP_SOFTPLUS] = "softplus",
    [BASIN_OP_LNCOSH] = "lncosh",
    [BASIN_OP_RELU] = "relu",
    [BASIN_OP_STEP] = "step",
    [BASIN_OP_SIN] = "sin",
    [BASIN_OP_COS] = "cos",
    [BASIN_OP_ERF] = "erf",
    [BASIN_OP_POW] = "pow",
    [BASIN_OP_COPY] = "copy",
    [BASIN_OP_ADD] = "add",
    [BASIN_OP_SUB] = "sub",
    [BASIN_OP_MUL] = "mul",
    [BASIN_OP_DIV] = "div",
    [BASIN_OP_MAX2] = "max",
    [BASIN_OP_MIN2] = "min",
    [BASIN_OP_GREATER] = "greater",
    [BASIN_OP_EQUAL] = "equal",
    [BASIN_OP_SELECT] = "select",
    [BASIN_OP_POINTWISE] = "POINTWISE",
    [BASIN_OP_PERMUTE] = "PERMUTE",
    [BASIN_OP_SLICE] = "SLICE",
    [BASIN_OP_PAD] = "PAD",
    [BASIN_OP_CONCAT] = "CONCAT",
    [BASIN_OP_GATHER] = "GATHER",
    [BASIN_OP_SCATTER] = "SCATTER",
    [BASIN_OP_SUM] = "SUM",
    [BASIN_OP_MAX] = "MAX",
    [BASIN_OP_SQUARES] = "SQUARES",
    [BASIN_OP_LOGSUMEXP] = "LOGSUMEXP",
    [BASIN_OP_SOFTMAX] = "SOFTMAX",
    [BASIN_OP_LAYERNORM] = "LAYERNORM",
    [BASIN_OP_LAYERNORM_REVERSE] = "LAYERNORM_REVERSE",
    [BASIN_OP_MATMUL] = "MATMUL",
    [BASIN_OP_PACK] = "PACK",
    [BASIN_OP_ATTENTION] = "ATTENTION",
    [BASIN_OP_ATTENTION_FORCE] = "ATTENTION_FORCE",
    [BASIN_OP_ATTENTION_REVERSE] = "ATTENTION_REVERSE",
    [BASIN_OP_PAIR_DOT] = "PAIR_DOT",
    [BASIN_OP_PAIR_SUM] = "PAIR_SUM",
    [BASIN_OP_CONV] = "CONV",
    [BASIN_OP_CONV_INPUT] = "CONV_INPUT",
    [BASIN_OP_CONV_KERNEL] = "CONV_KERNEL",
    [BASIN_OP_AVGPOOL] = "AVGPOOL",
    [BASIN_OP_AVGPOOL_REVERSE] = "AVGPOOL_REVERSE",
    [BASIN_OP_MAXPOOL] = "MAXPOOL",
    [BASIN_OP_MAXPOOL_SCATTER] = "MAXPOOL_SCATTER",
    [BASIN_OP_MAXPOOL_GATHER] = "MAXPOOL_GATHER",
    [BASIN_OP_NORMAL] = "NORMAL",
    [BASIN_OP_UNIFORM] = "UNIFORM",
};

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
                                           : "",
            basin_shape_print(shape, operand->shape));
    if (operand->stride) put(w, " of %lld", (long long)operand->stride);
}

enum { FORMULA = 400 };

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
    else if (s->op < BASIN_OP_ADD)
        snprintf(text, sizeof text, "%s(%s)", names[s->op], r[s->a]);
    else if (s->op <= BASIN_OP_DIV)
        snprintf(text, sizeof text, "(%s %c %s)", r[s->a], "+-*/"[s->op - BASIN_OP_ADD], r[s->b]);
    else if (s->op < BASIN_OP_SELECT)
        snprintf(text, sizeof text, "%s(%s, %s)", names[s->op], r[s->a], r[s->b]);
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
    put(&w, "%-17s ", names[call->op] ? names[call->op] : "?");
    for (int i = 0; i < call->outs; i++) {
        if (i) put(&w, ", ");
        put_operand(&w, &call->out[i]);
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
}
