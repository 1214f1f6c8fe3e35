/* Pointwise operations, alone or as a program: y[i] = f(a[i], b[i], c[i]) with broadcasting.
 * A single operation runs as a program of one instruction. */
#include <math.h>

#include "backend/ref/ref.h"
#include "backend/shape.h"

static double sigmoid(double x) {
    double e = exp(-fabs(x)); /* in (0, 1]: never overflows */
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

static double unary(basin_op op, double x, double value) {
    switch (op) {
    case BASIN_OP_NEG: return -x;
    case BASIN_OP_ABS: return fabs(x);
    case BASIN_OP_SIGN: return (x > 0) - (x < 0);
    case BASIN_OP_SQRT: return sqrt(x);
    case BASIN_OP_EXP: return exp(x);
    case BASIN_OP_LOG: return log(x);
    case BASIN_OP_LOG1P: return log1p(x);
    case BASIN_OP_EXPM1: return expm1(x);
    case BASIN_OP_TANH: return tanh(x);
    case BASIN_OP_SIGMOID: return sigmoid(x);
    case BASIN_OP_SOFTPLUS: return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
    case BASIN_OP_LNCOSH: return fabs(x) - log(2) + log1p(exp(-2 * fabs(x)));
    case BASIN_OP_RELU: return x <= 0 ? 0 : x; /* a NaN stays one */
    case BASIN_OP_STEP: return x > 0;
    case BASIN_OP_SIN: return sin(x);
    case BASIN_OP_COS: return cos(x);
    case BASIN_OP_ERF: return erf(x);
    case BASIN_OP_POW: return pow(x, value);
    default: return x; /* COPY */
    }
}

static double binary(basin_op op, double a, double b) {
    switch (op) {
    case BASIN_OP_ADD: return a + b;
    case BASIN_OP_SUB: return a - b;
    case BASIN_OP_MUL: return a * b;
    case BASIN_OP_DIV: return a / b;
    case BASIN_OP_MAX2: return a > b || isnan(a) ? a : b;
    case BASIN_OP_MIN2: return a < b || isnan(a) ? a : b;
    case BASIN_OP_GREATER: return a > b;
    default: return a == b; /* EQUAL */
    }
}

void basin_ref_program(double *registers, const basin_program *program, const void *const *in,
                       const int64_t *at, double tile) {
    for (int i = 0; i < program->instructions; i++) {
        const basin_instruction *instruction = &program->instruction[i];
        double *to = &registers[instruction->to];
        if (instruction->op == BASIN_INSTRUCTION_LOAD)
            *to = ((const double *)in[instruction->a])[at[instruction->a]];
        else if (instruction->op == BASIN_INSTRUCTION_TILE)
            *to = tile;
        else if (instruction->op == BASIN_INSTRUCTION_IMMEDIATE)
            *to = instruction->value;
        else if (instruction->op < BASIN_OP_ADD)
            *to = unary((basin_op)instruction->op, registers[instruction->a], instruction->value);
        else if (instruction->op < BASIN_OP_SELECT)
            *to = binary((basin_op)instruction->op, registers[instruction->a],
                         registers[instruction->b]);
        else
            *to = registers[instruction->a] != 0 ? registers[instruction->b]
                                                 : registers[instruction->c];
    }
}

/* All registers of an element are filled before any is stored, so an output may lie on an operand
 * of the same shape. */
static void run_program(const basin_ref_frame *frame, const basin_program *program) {
    const basin_shape *domain = &program->domain;
    int64_t at[BASIN_MAX_IN] = {0};
    double registers[BASIN_MAX_REGISTERS];
    int outer = domain->rank > 0 ? domain->rank - 1 : 0;
    int64_t width = domain->rank > 0 ? domain->dim[outer] : 1;
    int64_t rows = basin_shape_product(domain, 0, outer);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < width; column++) {
            for (int a = 0; a < frame->call->ins; a++) {
                at[a] = column == 0 ? basin_shape_offset(row, domain, outer, program->stride[a])
                                    : at[a] + program->stride[a][outer];
            }
            basin_ref_program(registers, program, frame->in, at, 0);
            for (int i = 0; i < program->stores; i++)
                if (frame->out[i])
                    ((double *)frame->out[i])[row * width + column] = registers[program->store[i]];
        }
}

void basin_ref_pointwise_fused(const basin_ref_frame *frame) {
    run_program(frame, frame->call->program);
}

void basin_ref_pointwise(const basin_ref_frame *frame) {
    const basin_call *call = frame->call;
    basin_instruction instruction[4];
    basin_program program = {.registers = 4, .stores = 1, .instruction = instruction};
    program.store[0] = 3;
    program.domain = call->out[0].shape;
    for (int a = 0; a < call->ins; a++) {
        instruction[a] =
            (basin_instruction){.op = BASIN_INSTRUCTION_LOAD, .to = (uint16_t)a, .a = (uint16_t)a};
        basin_shape_broadcast(program.stride[a], &call->in[a].shape, &call->out[0].shape);
    }
    instruction[call->ins] = (basin_instruction){
        .op = (uint16_t)call->op, .to = 3, .a = 0, .b = 1, .c = 2, .value = call->attr.value};
    program.instructions = call->ins + 1;
    run_program(frame, &program);
}
