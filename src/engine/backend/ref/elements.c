/* Elements in double: pointwise programs, the caller's functions, draws, moving numbers. */
#include <math.h>
#include <string.h>

#include "basin/random.h"
#include "engine/backend/ref/ref.h"

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

/* All registers of an element are filled before one is stored: outputs may lie on operands. */
static void run_program(const basin_frame *frame, const basin_program *program) {
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

void basin_ref_pointwise_fused(const basin_frame *frame) {
    run_program(frame, frame->call->program);
}

void basin_ref_pointwise(const basin_frame *frame) {
    basin_instruction instruction[4];
    basin_program program = basin_program_alone(instruction, frame->call);
    run_program(frame, &program);
}

/* Operations of the caller's own: its function at every element of the operands, broadcast. */

void basin_ref_own(const basin_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->out[0].shape;
    int64_t stride[BASIN_OWN_INS][BASIN_MAX_RANK], count = basin_shape_count(*shape);
    for (int a = 0; a < call->ins; a++) basin_shape_broadcast(stride[a], &call->in[a].shape, shape);
    for (int64_t i = 0; i < count; i++) {
        double x[BASIN_OWN_INS];
        for (int a = 0; a < call->ins; a++)
            x[a] = ((const double *)
                        frame->in[a])[basin_shape_offset(i, shape, shape->rank, stride[a])];
        ((double *)frame->out[0])[i] = call->attr.function(x, call->attr.context);
    }
}

/* Random draws: element i of stream attr.stream under the operand's seed (basin/random.h). */

void basin_ref_normal(const basin_frame *frame) {
    uint64_t seed = basin_seed_of(frame->in[0]);
    double *y = frame->out[0];
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    for (int64_t i = 0; i < count; i++)
        y[i] = basin_random_normal_at(seed, frame->call->attr.stream, (uint64_t)i);
}

void basin_ref_uniform(const basin_frame *frame) {
    uint64_t seed = basin_seed_of(frame->in[0]);
    double *y = frame->out[0];
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    for (int64_t i = 0; i < count; i++)
        y[i] = (double)basin_random_uniform_at(seed, frame->call->attr.stream, (uint64_t)i);
    double drop = frame->call->attr.drop;
    for (int64_t i = 0; i < count && drop > 0; i++) y[i] = y[i] > drop ? 1 : 0;
}

/* Moving numbers: permutations, slices, pads, concatenation, and rows gathered or summed by
 * index. All but SCATTER only copy, so they take REAL and INDEX elements alike. */

static size_t element_size(const basin_operand *operand) {
    return operand->kind == BASIN_INDEX ? sizeof(int32_t) : sizeof(double);
}

/* out axis i is in axis axes[i]. */
void basin_ref_permute(const basin_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->out[0].shape;
    size_t size = element_size(&call->out[0]);
    int64_t own[BASIN_MAX_RANK], stride[BASIN_MAX_RANK];
    basin_shape_strides(own, &call->in[0].shape);
    for (int i = 0; i < shape->rank; i++) stride[i] = own[call->attr.axes[i]];
    int64_t count = basin_shape_count(*shape);
    for (int64_t i = 0; i < count; i++) {
        int64_t from = basin_shape_offset(i, shape, shape->rank, stride);
        memcpy((char *)frame->out[0] + (size_t)i * size,
               (const char *)frame->in[0] + (size_t)from * size, size);
    }
}

/* Copies `span` elements along `axis`, from_start to to_start; other axes agree. */
static void copy_span(void *to, const basin_operand *to_operand, int64_t to_start, const void *from,
                      const basin_operand *from_operand, int64_t from_start, int64_t span,
                      int axis) {
    const basin_shape *a = &to_operand->shape, *b = &from_operand->shape;
    int64_t outer = basin_shape_product(a, 0, axis);
    size_t inner = (size_t)basin_shape_product(a, axis + 1, a->rank) * element_size(to_operand);
    if (span <= 0 || inner == 0) return;
    for (int64_t i = 0; i < outer; i++)
        memcpy((char *)to + (size_t)(i * a->dim[axis] + to_start) * inner,
               (const char *)from + (size_t)(i * b->dim[axis] + from_start) * inner,
               (size_t)span * inner);
}

void basin_ref_slice(const basin_frame *frame) {
    const basin_call *call = frame->call;
    int axis = call->attr.axis;
    copy_span(frame->out[0], &call->out[0], 0, frame->in[0], &call->in[0], call->attr.start,
              call->out[0].shape.dim[axis], axis);
}

void basin_ref_pad(const basin_frame *frame) {
    const basin_call *call = frame->call;
    int axis = call->attr.axis;
    size_t bytes = (size_t)basin_shape_count(call->out[0].shape) * element_size(&call->out[0]);
    memset(frame->out[0], 0, bytes);
    copy_span(frame->out[0], &call->out[0], call->attr.start, frame->in[0], &call->in[0], 0,
              call->in[0].shape.dim[axis], axis);
}

void basin_ref_concat(const basin_frame *frame) {
    const basin_call *call = frame->call;
    int axis = call->attr.axis;
    int64_t start = 0;
    for (int i = 0; i < call->ins; i++) {
        int64_t span = call->in[i].shape.dim[axis];
        copy_span(frame->out[0], &call->out[0], start, frame->in[i], &call->in[i], 0, span, axis);
        start += span;
    }
}

/* out[i] = table[index[i]]; zeros where the index is -1. */
void basin_ref_gather(const basin_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *table = &call->in[0].shape;
    const int32_t *index = frame->in[1]; /* [n] */
    int64_t n = basin_shape_count(call->in[1].shape), rows = table->dim[0];
    size_t bytes = (size_t)basin_shape_product(table, 1, table->rank) * element_size(&call->out[0]);
    for (int64_t i = 0; i < n; i++) {
        char *to = (char *)frame->out[0] + (size_t)i * bytes;
        bool inside = index[i] >= 0 && index[i] < rows;
        if (inside)
            memcpy(to, (const char *)frame->in[0] + (size_t)index[i] * bytes, bytes);
        else
            memset(to, 0, bytes);
        if (!inside && index[i] != -1) basin_host_bad_index(frame, "gather", i, index[i], -1, rows);
    }
}

/* out[v] = sum of values[i] over the i with index[i] = v. */
void basin_ref_scatter(const basin_frame *frame) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->out[0].shape;
    const double *values = frame->in[0]; /* [n, R] */
    const int32_t *index = frame->in[1]; /* [n] */
    double *out = frame->out[0];         /* [rows, R] */
    int64_t n = basin_shape_count(call->in[1].shape), rows = shape->dim[0];
    int64_t width = basin_shape_product(shape, 1, shape->rank);
    basin_ref_clear(frame);
    for (int64_t i = 0; i < n; i++) {
        if (index[i] >= 0 && index[i] < rows) {
            for (int64_t j = 0; j < width; j++) out[index[i] * width + j] += values[i * width + j];
        } else if (index[i] != -1)
            basin_host_bad_index(frame, "scatter", i, index[i], -1, rows);
    }
}

void basin_ref_from_index(const basin_frame *frame) {
    const int32_t *index = frame->in[0];
    double *out = frame->out[0];
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    for (int64_t i = 0; i < count; i++) out[i] = index[i];
}

/* The nearest of 0 .. start - 1. */
void basin_ref_to_index(const basin_frame *frame) {
    const double *x = frame->in[0];
    int32_t *out = frame->out[0];
    int64_t count = basin_shape_count(frame->call->out[0].shape), limit = frame->call->attr.start;
    for (int64_t i = 0; i < count; i++) {
        double nearest = floor(x[i] + 0.5);
        out[i] = nearest > 0 ? (int32_t)fmin(nearest, (double)(limit - 1)) : 0;
    }
}
