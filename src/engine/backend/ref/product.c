/* Matrix products. */
#include "engine/backend/ref/ref.h"

static double element(const double *row, const basin_factor *a, const double *column,
                      const basin_factor *b) {
    double sum = 0;
    for (int64_t l = 0; l < a->columns; l++)
        sum += row[l * a->step_column] * column[l * b->step_row];
    return sum;
}

/* Operand a of the epilogue at a place: a number, or a bit of a mask. */
static double operand_at(const basin_frame *frame, int a, int64_t at) {
    const void *data = frame->in[2 + a];
    if (frame->call->in[2 + a].kind != BASIN_INDEX) return ((const double *)data)[at];
    return (double)(((const uint32_t *)data)[at / 32] >> at % 32 & 1);
}

/* Stores one element of the product, through the epilogue if there is one. */
static void emit(const basin_frame *frame, double value, int64_t batch, int64_t i, int64_t j,
                 int64_t place) {
    const basin_call *call = frame->call;
    const basin_program *program = call->program;
    double registers[BASIN_MAX_REGISTERS], number[BASIN_MAX_IN];
    const void *in[BASIN_MAX_IN];
    const int64_t at[BASIN_MAX_IN] = {0};
    if (!program) {
        ((double *)frame->out[0])[place] = value;
        return;
    }
    for (int a = 0; a + 2 < call->ins; a++) {
        const int64_t *stride = program->stride[a];
        number[a] = operand_at(frame, a, batch * stride[0] + i * stride[1] + j * stride[2]);
        in[a] = &number[a];
    }
    basin_ref_program(registers, program, in, at, value);
    for (int o = 0; o < program->stores; o++)
        if (frame->out[o]) ((double *)frame->out[o])[place] = registers[program->store[o]];
    if (call->outs > program->stores) { /* a mask, of rows that fill their words */
        uint32_t *word = (uint32_t *)frame->out[1] + place / 32;
        uint32_t bit = (uint32_t)1 << place % 32;
        *word = registers[program->store[0]] > 0 ? *word | bit : *word & ~bit;
    }
}

void basin_ref_matmul(const basin_frame *frame) {
    const basin_call *call = frame->call;
    basin_factor a = basin_factor_of(&call->in[0].shape, call->attr.transpose_a);
    basin_factor b = basin_factor_of(&call->in[1].shape, call->attr.transpose_b);
    const double *x = frame->in[0], *y = frame->in[1];
    int64_t batch = a.batch == 1 ? b.batch : a.batch, place = 0;
    for (int64_t n = 0; n < batch; n++)
        for (int64_t i = 0; i < a.rows; i++)
            for (int64_t j = 0; j < b.columns; j++, place++) {
                const double *row = x + n * a.step_batch + i * a.step_row;
                const double *column = y + n * b.step_batch + j * b.step_column;
                emit(frame, element(row, &a, column, &b), n, i, j, place);
            }
}
